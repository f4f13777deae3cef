/* run.h: the real core, engine and journal, run through a script over simulated files, clock,
 * entropy and clients.
 *
 * One thread, and nothing is read from the world outside, so a run is a function of its mix and its
 * script. */
#ifndef HF_PROOF_SIMULATE_RUN_H
#define HF_PROOF_SIMULATE_RUN_H

#include "simulate/mix.h"
#include "simulate/step.h"

/* What runs of an older simulator have shown says nothing about this one: counted up with each
 * change of what a seed means. */
#define SIM_VERSION 2

struct sim_outcome {
    bool failed;
    uint32_t label;      /* the step at which it failed; 0: the beginning or the end */
    char sentence[1024]; /* what was wrong */
    char fault[160];     /* the last thing that went wrong on purpose before */
    uint64_t trace;      /* hash of everything that happened */
    uint64_t operations, crashes, opens, lost, looks, audits;
};

/* sim_run: run the script and judge it.
 * mix, script: borrowed. out: out. */
void sim_run(const struct sim_mix *mix, const struct sim_script *script, struct sim_outcome *out);

/* The same for a seed: draw its mix and its script, and run it. */
void sim_run_seed(uint64_t seed, uint32_t operations, struct sim_outcome *out);

#endif
