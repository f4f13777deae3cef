/* world.h: a store, its clients, and a server that is killed again and again.
 *
 *   world.c    a round: start, kill, start again ...; the end of it, and the judgement
 *   kill.c     the sorts of kills
 *   control.c  a store that forgets, to see whether that is found
 *
 * Most lives are those of the program itself, `holdfast serve`. It has no options for small
 * segments and frequent snapshots, so the lives that are to end while such files are written run
 * the same server in a child of this program, with options of the library. All lives of a round
 * share one directory. */
#ifndef HF_PROOF_CRASH_WORLD_H
#define HF_PROOF_CRASH_WORLD_H

#include "crash/crowd.h"

enum { CRASH_CLIENTS = 4 };

enum crash_sort {
    CRASH_KILL,      /* SIGKILL */
    CRASH_COMMIT,    /* SIGKILL just after a write to the journal, while it is synced or just was */
    CRASH_STOP_KILL, /* SIGSTOP, and a moment later SIGKILL */
    CRASH_SNAPSHOT,  /* SIGKILL while a snapshot is made */
    CRASH_SEGMENT,   /* SIGKILL while a segment is prepared, compressed or removed */
    CRASH_RECOVERY,  /* SIGKILL 0 to 50 ms after the start, whether it listens yet or not */
    CRASH_TERM_KILL, /* SIGTERM, and SIGKILL while it finishes */
    CRASH_TERM,      /* SIGTERM: it ends in order */
    CRASH_SORTS
};
extern const char *const crash_sort_names[CRASH_SORTS];

/* What is done to the store behind everyone's back, so that the judge has something to find. */
enum crash_control {
    CRASH_FAIR,
    CRASH_OLD_COPY, /* an older copy of the directory takes its place */
    CRASH_CUT,      /* the journal's newest batches are lost */
    CRASH_GHOSTS,   /* things happen that no ledger has */
    /* a few decisions are kept from the judge, as if they had not been needed for what followed */
    CRASH_HUSH,
    /* what a client asked for is decided long after it was answered, by what the judge is told */
    CRASH_LATE
};

struct crash_count {
    uint64_t kills[CRASH_SORTS];
    uint64_t lives;         /* starts */
    uint64_t lives_program; /* of which of the program itself */
    struct crash_sum sum;
};

struct crash_round {
    uint64_t seed;
    unsigned kills;
    enum crash_control control;
    /* borrowed: the holdfast to run; in its sandbox, unless a sanitizer forbids that */
    const char *program;
    unsigned pause_us; /* of a client between two requests, at most */
    void (*progress)(const struct crash_count *count, void *arg); /* after each kill, or NULL */
    void *arg;
    /* Out. */
    struct crash_count count;
    char dir[256]; /* what is kept if something is wrong; "" if nothing was kept */
    char complaint[CRASH_COMPLAINT]; /* "" if all is well */
};

/* Run the round. True if nothing is wrong; else `complaint` says what, and `dir` has the ledgers,
 * the store and the log. */
bool crash_round_run(struct crash_round *round);

/* Add to totals. */
void crash_count_add(struct crash_count *to, const struct crash_count *more);
uint64_t crash_count_kills(const struct crash_count *count);

/* ---- For the files above ---- */

struct crash_world {
    struct crash_round *round; /* borrowed */
    struct server server;
    struct crash_crowd crowd;
    uint64_t random;
    int watch;    /* inotify of the store's directory; -1: none yet */
    bool small;   /* this life has small segments and snapshots all the time */
    FILE *notes;  /* what was done to the server, a line a life */
    bool reached; /* the life got as far as its sort of kill wants */
};

/* Always false. The first complaint counts. */
bool crash_world_complain(struct crash_world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* kill.c: let the life that was begun go on as the sort wants, and end it. False after a
 * complaint. */
bool crash_kill(struct crash_world *w, enum crash_sort sort);
/* End the server by this signal, and wait for it: SIGTERM must lead to exit code 0. False after a
 * complaint. */
bool crash_end(struct crash_world *w, int signal);
/* Wait until the server listens. False after a complaint. */
bool crash_listening(struct crash_world *w);

/* control.c: before a life begins, and when it has ended. */
bool crash_control_before(struct crash_world *w);
bool crash_control_after(struct crash_world *w);

#endif
