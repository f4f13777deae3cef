/* step.h: a run, written down before it begins.
 *
 * A script is a list of steps: what clients ask, what the clock does, what goes wrong. It is drawn
 * from the seed before anything runs, so that steps can be taken out of it and the rest run again.
 * A step therefore holds only plain numbers; what is not known before the run (the id of a hold, a
 * fence) is named by the step that gets it. */
#ifndef HF_PROOF_SIMULATE_STEP_H
#define HF_PROOF_SIMULATE_STEP_H

#include "holdfast.h"

#include <stdio.h>

enum sim_kind {
    SIM_ASK = 1,  /* a client submits a request */
    SIM_FLUSH,    /* commit what was submitted, and answer */
    SIM_MAINTAIN, /* `amount` steps of the work in the background */
    SIM_LOOK,     /* read everything that can be listed, and have it judged */
    /* clients ask again what got no answer, `amount` of them; variant 1: after a look at the key */
    SIM_RETRY,
    SIM_PASS, /* `amount` ms pass */
    /* the wall clock jumps by `amount` ms, which may be below 0; variant 1: all clocks do */
    SIM_JUMP,
    SIM_STALL, /* the wall clock stands still (amount 1) or goes on (0) */
    /* the power goes at the `amount`-th call to the disk from here; 0: now. `variant` more cuts
     * follow, in the starts */
    SIM_CUT,
    SIM_REOPEN, /* close in order and open again; `variant` says what changes */
    SIM_ROOM,   /* the disk has `amount` bytes left; below 0: enough again */
    SIM_FAIL,   /* the `amount`-th call of kind `variant` from here fails */
    SIM_SLOW,   /* each call to the disk takes `amount` us more */
    SIM_ROT,    /* a bit flips while the store is closed */
    /* the disk gives blocks of holds.idx back as they were at the step of this kind before, as if
     * writes had been lost; the first such step only notes them */
    SIM_STALE
};

/* How a step's fence relates to the newest one that was shown for the same name. */
enum sim_fence { SIM_FENCE_NONE, SIM_FENCE_NEWEST, SIM_FENCE_OLD, SIM_FENCE_NEXT };

/* What a key looks like. */
enum sim_key {
    SIM_KEY_NONE,
    SIM_KEY_TOKEN,  /* "k17" and padding: of calls that carry a key */
    SIM_KEY_CLAIM,  /* "c17": of claims */
    SIM_KEY_NUMBER, /* a client's name and a number instead of a key */
    SIM_KEY_LONG    /* longer than is allowed */
};

struct sim_step {
    uint32_t label; /* 1, 2, 3 ... in the whole script; stays when others are taken out */
    uint8_t kind;   /* enum sim_kind */
    uint8_t client;
    uint8_t tenant;
    uint8_t action;   /* SIM_ASK: enum hf_action */
    uint8_t variant;  /* by kind and action */
    uint8_t fence;    /* enum sim_fence */
    uint8_t key_kind; /* enum sim_key */
    uint32_t first;   /* SIM_ASK: label of the step that asked this before; 0: this is the first */
    uint32_t key;
    uint32_t thing;  /* number of the resource, guard, lease, register or value */
    uint32_t who;    /* number of the requester, holder or identity */
    uint32_t origin; /* label of the step whose hold is meant; 0: a hold that nobody has */
    uint32_t size;   /* bytes of a payload */
    int64_t amount;  /* a duration, a capacity, a count */
    uint64_t draw;   /* what chance decides inside the step */
};

struct sim_script {
    struct sim_step *steps; /* owned, free with sim_script_free */
    size_t count, room;
    uint32_t labels; /* the highest label of the whole script */
};

void sim_script_free(struct sim_script *script);
/* A copy of the step at the end. Aborts without memory. */
struct sim_step *sim_script_add(struct sim_script *script, const struct sim_step *step);

/* The step in one line for people. */
void sim_step_print(const struct sim_step *step, FILE *out);

#endif
