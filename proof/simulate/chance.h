/* chance.h: numbers that look random and are a function of the seed (xoshiro256**, seeded by
 * splitmix64). */
#ifndef HF_PROOF_SIMULATE_CHANCE_H
#define HF_PROOF_SIMULATE_CHANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
