/* world.h: one run of one script: the store, the disk under it, the clock, the clients and the
 * judge.
 *
 *   run.c      the steps, one after the other, and the end in which everything must settle
 *   world.c    what the disk asks of its owner: the clock, chance, and what goes wrong
 *   store.c    opening, closing, crashing, rot
 *   clients.c  requests and answers
 *   look.c     everything that can be listed, for the judge
 *   pages.c    lists that are read in pages, across restarts
 *   audit.c    the auditor over the files that are left
 *
 * Private to these files. */
#ifndef HF_PROOF_SIMULATE_WORLD_H
#define HF_PROOF_SIMULATE_WORLD_H

#include "simulate/ask.h"
#include "simulate/disk.h"
#include "simulate/mix.h"
#include "simulate/run.h"
#include "simulate/trace.h"

enum { SIM_FAULTS_MAX = 8, SIM_LOST_MAX = 4096 };

/* A call that is going to fail. */
struct sim_fault {
    enum sim_call call;
    uint64_t left; /* calls of this kind until then; 0: this place is free */
    int error;
};

/* A list of which a client has read the first rows. */
struct sim_mark {
    uint64_t *ids; /* owned: of all rows that it had then */
    size_t count;
    uint64_t cursor; /* behind the first `shown` of them; 0: none */
    size_t shown;
};

struct sim_world {
    const struct sim_mix *mix;
    /* the one that is being carried out; NULL: the beginning or the end */
    const struct sim_step *step;
    struct sim_trace trace;
    struct sim_outcome *out;

    /* ---- the disk and its owner ---- */
    struct sim_disk_owner owner;
    struct sim_disk *disk;
    struct sim_chance chance; /* for what survives; set anew by each step that may need it */
    struct sim_chance entropy;
    int64_t wall_us;
    hf_time wall_latest; /* the latest that the wall clock has ever said */
    uint64_t steady_ns;  /* of the monotonic clock and the boot clock */
    struct {
        int64_t us;        /* engine time could be so much ... */
        uint64_t ns;       /* ... when the steady clock said this, and goes on with it */
        uint64_t begun_ns; /* since then the store has been open, or the wall clock believed */
        uint64_t ahead_ns; /* since then the wall clock is ahead of that */
        bool ahead;
    } sure;
    hf_time latest; /* the latest that engine time could ever be */
    struct {
        hf_time now; /* engine time was this; 0: it was not read since the start */
        uint64_t
            ns; /* since then, by the steady clock, the wall clock has gone as far or further */
    } paced;
    bool stalled;
    uint64_t slow_us;
    uint64_t calls;
    uint64_t cut_at;    /* the power goes at this call; 0: it does not */
    uint64_t cuts_left; /* cuts that follow, in the starts */
    struct sim_fault faults[SIM_FAULTS_MAX];
    bool limited;       /* the disk has a limit */
    bool quiet;         /* nothing goes wrong now */
    unsigned unread_in; /* but for the call that opens or reads a file after so many; 0: none */
    bool frozen; /* calls to the disk take no time: engine time may go with the steady clock */
    char fault[160];

    /* ---- the store ---- */
    struct hf_db *db;
    struct hf_options options;
    struct judge_rules rules; /* in force */
    struct judge *judge;
    bool stopped;        /* the store has said that it cannot go on */
    bool crashed;        /* since the last time that it was open */
    bool stale;          /* what holds.idx says may be old, since it was opened */
    unsigned char *kept; /* owned: holds.idx as it was at some time; NULL: not noted yet */
    size_t kept_size;
    bool orderly;  /* it was closed in order, and nothing went wrong since */
    bool starting; /* inside hf_open */
    /* something failed: writes may be refused until the store has recovered from it */
    bool troubled;
    bool unread;              /* a read failed since it was opened */
    uint64_t troubled_ns;     /* when, by the steady clock */
    uint64_t faults_happened; /* calls that failed, ever */
    hf_time told;             /* the latest engine time that anybody was shown */
    hf_time lasting;          /* the latest that was shown and is on disk for sure */

    /* ---- the clients ---- */
    struct sim_known known;
    struct hf_arena arena;
    struct sim_ask **asks; /* owned */
    size_t ask_count, ask_room;
    struct sim_mark *marks; /* owned: see sim_pages_look */
    size_t mark_count;
    struct sim_step lost[SIM_LOST_MAX]; /* requests without an answer, oldest first */
    size_t lost_count;
    size_t doubted; /* how many the last crash left without an answer, until they are asked for */
};

/* ---- run.c ---- */

/* The run has failed: with this sentence. The first one is kept. */
void sim_fail(struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool sim_failed(const struct sim_world *w);

/* ---- world.c ---- */

void sim_world_init(struct sim_world *w, const struct sim_mix *mix, uint32_t labels,
                    struct sim_outcome *out);
void sim_world_free(struct sim_world *w);
/* Time passes. */
void sim_pass_us(struct sim_world *w, uint64_t us);
/* The wall clock alone jumps, which may be back. */
void sim_clock_jump(struct sim_world *w, int64_t ms);
/* The machine sleeps: all clocks go on, but the wall clock if it stands still. */
void sim_clock_sleep(struct sim_world *w, int64_t ms);
/* The store is about to be opened: it believes the wall clock as it finds it, or waits for it. */
void sim_clock_first(struct sim_world *w);
/* The latest that engine time may be. A wall clock that is ahead of what the steady clock confirms,
 * by more than a second and for less than a minute, must not have moved it. This is not how the
 * store works it out, and it is told more: the jump itself, not when it was first seen. */
hf_time sim_clock_latest(struct sim_world *w);
/* The least that engine time may be, if it is read now: while the wall clock is not believed, it
 * goes on with the steady clock. */
hf_time sim_clock_least(struct sim_world *w);
/* Engine time was read just now. */
void sim_clock_read(struct sim_world *w, hf_time now);
void sim_fault_arm(struct sim_world *w, enum sim_call call, uint64_t count, uint64_t draw);
/* Before a start: engine time that was only shown, and left nothing on disk, is not remembered by
 * the store. No rule says what those who saw it may expect of a store that is started under a clock
 * that has stepped back, so the clock does not start before that. It may well be behind what is on
 * disk. */
void sim_clock_catch_up(struct sim_world *w);
/* Nothing goes wrong from here on. */
void sim_faults_stop(struct sim_world *w);
/* What excuses a refusal, for the judge. */
unsigned sim_weather(const struct sim_world *w);
/* The store had time to recover from what failed, if it can now. Told by whoever saw maintenance
 * end. */
void sim_trouble_over(struct sim_world *w);

/* ---- store.c ---- */

/* Open the store, through whatever happens meanwhile. */
void sim_store_open(struct sim_world *w);
/* Close it in order. */
void sim_store_close(struct sim_world *w);
/* After each call into the library: did the power go, or has the store stopped? Then it is open
 * again when this returns. True if so. */
bool sim_store_died(struct sim_world *w);
void sim_store_reopen(struct sim_world *w, const struct sim_step *step);
void sim_store_rot(struct sim_world *w, const struct sim_step *step);
/* Writes to holds.idx are lost, and the store is not told. */
void sim_store_stale(struct sim_world *w, const struct sim_step *step);

/* ---- forge.c ---- */

/* Leave a batch that a client made up behind `end`, where the journal ended. The store is
 * closed. */
void sim_forge(struct sim_world *w, uint64_t end);

/* ---- clients.c ---- */

void sim_submit(struct sim_world *w, const struct sim_step *step);
void sim_flush(struct sim_world *w);
void sim_maintain(struct sim_world *w, int64_t steps);
void sim_retry(struct sim_world *w, const struct sim_step *step);
/* Those in flight have no answer, and get none. The store is closed. Returns how many. */
size_t sim_asks_lose(struct sim_world *w);
/* After a crash that left many requests without an answer, ask what became of them: the judge
 * follows every history that explains what it is told, and should not have to follow too many. */
void sim_ask_doubted(struct sim_world *w);

/* ---- pages.c ---- */

/* A list as it was read just now. */
struct sim_read {
    size_t list; /* its number in the look, the same each time */
    const struct hf_query *query;
    const void *rows;
    size_t count;
};
/* Go on with the list where it was left the last time, and compare; then leave it somewhere in it.
 * False if it cannot be read. */
bool sim_pages_look(struct sim_world *w, struct hf_db *db, const struct sim_read *read);
void sim_pages_free(struct sim_world *w);

/* ---- look.c ---- */

enum sim_look { SIM_LOOK_OK, SIM_LOOK_FAULT };
/* Read everything from `db` and give it to the judge, as a look or as what is there after a crash.
 * recovered: NULL, or the rules that it was opened with. SIM_LOOK_FAULT: the store could not read
 * it; the judge was told nothing. */
enum sim_look sim_look(struct sim_world *w, struct hf_db *db, const struct judge_rules *recovered);
/* How many holds are held and overdue. */
size_t sim_overdue(struct sim_world *w);

/* ---- audit.c ---- */

/* Write the files out and have the auditor read them. The store is closed. */
void sim_audit(struct sim_world *w);

#endif
