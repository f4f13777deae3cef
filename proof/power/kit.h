/* kit.h: the power goes, before every call that changes the disk.
 *
 * A script runs over the real library and a simulated disk, twice. The first run writes down what
 * every request was answered with and what could be seen after each step. The second stops before
 * each write, sync, rename, removal, truncation, creation and directory sync, and takes the disk as
 * a power cut could leave it: every way if there are few, else a systematic selection. Each such
 * disk is recovered and judged:
 *
 *   - the store opens, and shows what it showed before the step that was going on, or after it:
 *     nothing else;
 *   - every answer that was given is given again, byte for byte;
 *   - what is shown after the recovery stays, even if the power goes again at once;
 *   - the steps that follow give what they gave in the first run;
 *   - the audit finds nothing.
 *
 * Some of them meet a second fault: the power goes at every call of the recovery and of the work
 * after it, and every call of the recovery fails once; a refusal must say why, and a later start
 * must find everything.
 *
 * One thread. The first objection ends the exploration. */
#ifndef HF_PROOF_POWER_KIT_H
#define HF_PROOF_POWER_KIT_H

#include "simulate/disk.h"

#define POWER_START INT64_C(1700000000000) /* what the clock says at first */

struct power; /* a run */

struct power_script {
    const char *name;
    struct hf_options options; /* the table and the callbacks are filled in */
    size_t steps;              /* 1, 2 ... steps; before the first stands the making of the store */
    void (*step)(struct power *p,
                 size_t number); /* by the calls below, one of power_do or power_settle at most */
    const char *const *tenants;  /* NULL-ended: whose records are looked at */
    const char *const
        *names; /* NULL-ended: registers, claims, leases and values that are looked at */
    /* Plant a bug: change the table that the library gets (not the disk behind it). NULL: none. */
    void (*plant)(struct hf_io *io);
};

/* ---- For a script's step ---- */

/* Do the requests in one group. Everything in them is borrowed. */
void power_do(struct power *p, const struct hf_request *requests, size_t count);
/* The clock says `ms` after POWER_START from now on. */
void power_at(struct power *p, int64_t ms);
/* Maintenance, until there is no more to do. */
void power_settle(struct power *p);
/* Close the store and open it again, with this window for keys (0: as it is). */
void power_reopen(struct power *p, int64_t window_ms);
/* The id of the n-th hold (0, 1 ...) that the script has placed. Borrowed. */
const char *power_id(const struct power *p, size_t n);

/* ---- Exploring ---- */

struct power_count {
    uint64_t cuts;          /* calls before which the power went */
    uint64_t states;        /* disks that were left */
    uint64_t judged;        /* different ones, recovered and judged */
    uint64_t second_states; /* of them, after a second cut */
    uint64_t faults;        /* recoveries in which a call failed */
    uint64_t refusals;      /* of them, that refused to open */
    uint64_t audits;
    uint64_t snapshots,
        packed; /* made by the first run: snapshots, and compressed segments at its end */
};

/* NULL: nothing to object to. Else what is wrong, where in the script and in which state. Borrowed
 * until the next call. count: out. HF_SCALE in the environment says how much is done. */
const char *power_explore(const struct power_script *script, struct power_count *count);

/* One line with the counts. */
void power_print(const struct power_script *script, const struct power_count *count);

#endif
