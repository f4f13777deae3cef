/* minimize.h: the shortest script that still fails.
 *
 * Steps are taken out in runs, half of the script at first and single ones at the end, and stay out
 * if the rest still fails. What is left is not the shortest of all scripts, but none of its steps
 * can be missed. */
#ifndef HF_PROOF_SIMULATE_MINIMIZE_H
#define HF_PROOF_SIMULATE_MINIMIZE_H

#include "simulate/step.h"

struct sim_minimize {
    /* Does this script fail? Asked with scripts that have some of the steps, in their order. */
    bool (*fails)(void *arg, const struct sim_script *script);
    /* Asked before each try; false: what there is is good enough. NULL: never. */
    bool (*go_on)(void *arg);
    void *arg;
};

/* script: in, one that fails; out, the short one. Returns how often `fails` was asked. */
unsigned sim_minimize(struct sim_script *script, const struct sim_minimize *how);

#endif
