/* mix.h: what a seed's world is like.
 *
 * Each seed draws its own mix, so that some runs are all retries, some have one resource and many
 * who want it, some lose the power ten times, and some are calm. What every run has a little of is
 * found in every run or never; what is mixed anew each time meets everything sooner or later. */
#ifndef HF_PROOF_SIMULATE_MIX_H
#define HF_PROOF_SIMULATE_MIX_H

#include "holdfast.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_TENANTS_MAX = 3, SIM_THINGS_MAX = 8, SIM_CLIENTS_MAX = 8 };

struct sim_mix {
    uint64_t seed;
    uint32_t operations;

    /* ---- who and what: few, so that they meet ---- */
    uint32_t clients, tenants, things, requesters, identities, claims;
    uint32_t weights[128]; /* by action; 0: not in this run */
    uint32_t weight_total;

    /* ---- requests ---- */
    uint32_t again_in;    /* one in so many is asked again; 0: none */
    uint32_t together_in; /* one in so many is asked twice at once */
    uint32_t wrong_in;    /* one in so many has somebody else's key */
    uint32_t odd_in;      /* one in so many is malformed */
    uint32_t number_in;   /* one in so many keys is a client's number */
    uint32_t key_bytes, name_bytes, payload_max;
    int64_t hold_ms_max, lease_ms_max, guard_ms_max;
    bool match_rules, volatile_guards;

    /* ---- the store ---- */
    int64_t window_ms;
    uint32_t token_max;
    bool strict, keep_plain;
    uint64_t segment_least; /* so that every request of the run fits into a segment */
    uint64_t segment_bytes, snapshot_bytes;

    /* ---- pace ---- */
    uint32_t batch_max;
    uint32_t maintain_every; /* operations between */
    uint32_t pace_ms;        /* between two steps, at most */

    /* ---- what goes wrong, and how often in the run ---- */
    uint32_t cuts, reopens, rooms, failures, slows, jumps, stalls, rots, looks, stales;
    bool back;  /* the clock also steps back */
    bool tight; /* reopening may set a limit on memory */
};

/* Draw the mix of a seed. */
void sim_mix_draw(struct sim_mix *mix, uint64_t seed, uint32_t operations);

/* Numbers that look random and are a function of the seed (xoshiro256**, seeded by
 * splitmix64). */

struct sim_chance {
    uint64_t state[4];
};

void sim_chance_init(struct sim_chance *c, uint64_t seed);
uint64_t sim_chance_next(struct sim_chance *c);
/* A number below n, which is not 0. */
uint64_t sim_chance_below(struct sim_chance *c, uint64_t n);
/* True once in n times; never for 0. */
bool sim_chance_once_in(struct sim_chance *c, uint64_t n);
void sim_chance_bytes(struct sim_chance *c, void *data, size_t size);

#endif
