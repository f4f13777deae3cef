/* apart.h: runs in processes of their own, so that an assertion, a signal or a run without end is a
 * result like any other. */
#ifndef HF_PROOF_SIMULATE_APART_H
#define HF_PROOF_SIMULATE_APART_H

#include "simulate/run.h"

/* Run the script in a child. seconds: how long it may take. False if no child could be made. */
bool sim_run_apart(const struct sim_mix *mix, const struct sim_script *script, unsigned seconds,
                   struct sim_outcome *out);

struct sim_campaign {
    uint64_t from, count; /* seeds */
    uint32_t operations;
    unsigned jobs; /* processes at a time */
    /* A seed has ended, in any order. False: no more. */
    bool (*ended)(void *arg, uint64_t seed, const struct sim_outcome *outcome);
    void *arg;
};

/* Run all seeds. False if children could not be made or spoken with. */
bool sim_campaign_run(const struct sim_campaign *campaign);

#endif
