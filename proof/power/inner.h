/* inner.h: what kit.c, judge.c and choose.c share. */
#ifndef HF_PROOF_POWER_INNER_H
#define HF_PROOF_POWER_INNER_H

#include "power/kit.h"

enum { POWER_EXTRAS = 2, POWER_ANSWERS = 64 };

/* How the chooser answers. 0 is the oldest, n - 1 the newest. */
enum power_way {
    WAY_OLDEST,
    WAY_NEWEST,
    WAY_ONE_LOST,     /* all newest but number `index` */
    WAY_ONE_KEPT,     /* all oldest but number `index` */
    WAY_PREFIX,       /* the first `index` newest, the others oldest */
    WAY_ONE_TORN,     /* number `index` is in between, the others newest */
    WAY_ALONE_TORN,   /* number `index` is in between, the others oldest */
    WAY_NAMES_OLDEST, /* names by the bits of `index`, the rest oldest */
    WAY_NAMES_NEWEST, /* names by the bits of `index`, the rest newest */
    WAY_LISTED,       /* by `answers` */
    WAY_RANDOM
};

struct power_choosing {
    enum power_way way;
    uint64_t index;
    uint64_t random; /* its state */
    size_t names;    /* so many questions are about names */
    uint32_t answers[POWER_ANSWERS], of[POWER_ANSWERS];
    size_t asked;
    uint64_t combinations; /* the product of what was asked, tears aside */
};

struct power_limits {
    uint64_t all_max; /* every combination, if there are so many at most */
    /* else so many single changes are dropped, kept and torn, and so many prefixes */
    size_t ones_max;
    size_t names_max; /* changes of names of which all subsets are tried */
    size_t random;    /* and so many combinations are drawn */
    size_t second_every, fault_every,
        audit_every; /* of the states that are judged, one in so many */
    size_t go_on;    /* steps after the recovery */
};

struct power_answered {
    uint64_t hash;
    hf_time expires_at; /* when the key's window closes; 0: it had none, or was not remembered */
};

/* What the first run wrote down, and what all runs share. */
struct power_ledger {
    const struct power_script *script;
    struct power_limits limits[2];   /* for the first cut, and for the second */
    uint64_t *states;                /* owned: [s] after step s */
    struct power_answered **answers; /* owned: [s], of each request */
    size_t *answer_counts;
    char (*ids)[HF_ID_SIZE]; /* owned */
    size_t id_count, id_room;
    uint64_t *seen; /* owned: an open table of the disks that were judged */
    size_t seen_count, seen_room;
    struct power_count *count;
    char *audit_dir; /* owned */
    char objection[2000];
};

enum power_hook { HOOK_CALM, HOOK_WATCH, HOOK_FAULT };
enum power_doing { DOING_FIRST, DOING_REPLAY, DOING_AGAIN };

struct power {
    struct power_ledger *ledger;
    const struct power *above; /* the run that this one branched off from, or NULL */
    struct sim_disk *disk;     /* owned */
    struct hf_io io;
    struct hf_options options;
    struct hf_db *db; /* owned; NULL: closed */
    hf_time wall;
    size_t step;    /* that is going on */
    unsigned level; /* cuts so far */
    enum power_hook hook;
    enum power_doing doing;
    bool answered;     /* an answer of the step that is going on was given: it must be there */
    char warning[200]; /* what the library has warned of since it was opened, or "" */
    struct power_choosing choosing;
    uint64_t calls, fault_at;
    int fault;
    char where[200];  /* the call that is cut or fails, and what survives */
    bool pinned;      /* what was seen after the recovery must stay: */
    uint64_t pins[2]; /* this, or, once house was kept and overdue holds were expired, that */
    uint64_t extras[POWER_EXTRAS]; /* answers to requests outside the script ... */
    size_t extra_count;            /* ... that were shown */
};

/* ---- kit.c ---- */
/* A run over a copy of the disk (NULL: a new one). p: out, stays where it is. above: may be
 * NULL. */
void power_branch(struct power *p, struct power_ledger *ledger, const struct power *above,
                  const struct sim_disk *disk);
void power_end(struct power *p); /* close and free */
enum hf_status power_open(struct power *p, struct hf_error *why);
void power_close(struct power *p);
/* Keep the first objection. */
void power_object(struct power *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool power_objected(const struct power *p);
/* The state as one number; objects if it cannot be had. */
bool power_state(struct power *p, uint64_t *out);
void power_step(struct power *p, enum power_doing doing, size_t step);

/* ---- judge.c ---- */
/* The disk was cut and has settled: recover it and judge. Consumes the run: it is ended. */
void power_judge(struct power *p);
/* A second fault: all of them for this disk, which was cut and has settled. */
void power_second_cuts(const struct power *p);
void power_faults(const struct power *p);

/* ---- choose.c ---- */
uint32_t power_choose(struct power_choosing *c, uint32_t n);
/* Cut the power here, in every way that the limits allow, and judge what is left. */
void power_cut_here(struct power *p);

#endif
