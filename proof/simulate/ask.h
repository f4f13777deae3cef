/* ask.h: a step of a script, as a request to the library.
 *
 * What the script cannot know, a client knows from the answers that it was shown: ids of holds,
 * fences, versions. A request that is made again is made with what was known the first time,
 * because that is what a retry is. */
#ifndef HF_PROOF_SIMULATE_ASK_H
#define HF_PROOF_SIMULATE_ASK_H

#include "base/arena.h"
#include "judge/judge.h"
#include "simulate/mix.h"
#include "simulate/step.h"

/* What the function of an apply does, and did. */
struct sim_effect {
    const struct sim_step *step; /* borrowed */
    struct hf_arena *arena;      /* borrowed */
    struct judge_effect did;     /* out: what it did the last time */
    struct judge_row rows[3];
    struct judge_intent intents[2];
    struct hf_bytes key; /* of the value that it changes */
};

/* One request in flight. It must stay in place until its answer has come. */
struct sim_ask {
    struct sim_step step;
    struct hf_request request;
    struct hf_op op;
    struct hf_result result;
    struct hf_item items[4];
    struct hf_value value;
    struct sim_effect effect;
    uint64_t number; /* the judge's; 0: not told */
    bool done;       /* the callback has run */
    bool settled;    /* the client has its answer, or knows that it has none */
    enum hf_status status;
};

/* What clients were shown. */
struct sim_known {
    struct sim_shown {
        char id[HF_ID_SIZE];     /* the hold that the step got, or "" */
        bool asked;              /* the step has been made into a request: with these */
        char used[HF_ID_SIZE];   /* id */
        uint64_t fence, version; /* numbers */
    } * steps;                   /* owned; by label */
    uint32_t labels;
    uint64_t claims[SIM_TENANTS_MAX][64], leases[SIM_TENANTS_MAX][SIM_THINGS_MAX],
        versions[SIM_TENANTS_MAX][SIM_THINGS_MAX];
};

void sim_known_init(struct sim_known *known, uint32_t labels);
void sim_known_free(struct sim_known *known);
/* A client was shown this answer. */
void sim_known_learn(struct sim_known *known, const struct sim_ask *ask);

/* sim_ask_make: turn ask->step into ask->request. mix: borrowed. known: what is used is noted in
 * it. arena: borrowed; holds the bytes until the answer. */
void sim_ask_make(struct sim_ask *ask, const struct sim_mix *mix, struct sim_known *known,
                  struct hf_arena *arena);

/* The name of a tenant. Static. */
struct hf_bytes sim_tenant(uint32_t number);
/* The name of a guard, in the arena. */
struct hf_bytes sim_guard_name(const struct sim_mix *mix, uint32_t number, struct hf_arena *arena);

#endif
