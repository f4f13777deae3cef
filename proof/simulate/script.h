/* script.h: a seed's script, drawn before anything runs. */
#ifndef HF_PROOF_SIMULATE_SCRIPT_H
#define HF_PROOF_SIMULATE_SCRIPT_H

#include "simulate/mix.h"
#include "simulate/step.h"

/* Numbers of things whose names are not allowed. */
enum { SIM_NAME_EMPTY = 1000, SIM_NAME_LONG = 1001 };

/* What SIM_REOPEN changes. */
enum {
    SIM_CHANGE_WINDOW = 1,
    SIM_CHANGE_TOKEN = 2,
    SIM_CHANGE_REGISTRY = 4,
    SIM_CHANGE_SEGMENT = 8,
    SIM_CHANGE_SNAPSHOT = 16,
    SIM_CHANGE_PLAIN = 32,
    SIM_CHANGE_MEMORY = 64
};

/* Draw the script of a mix. script: out, owned, free with sim_script_free. */
void sim_script_draw(const struct sim_mix *mix, struct sim_script *script);

#endif
