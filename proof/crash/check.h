/* check.h: are all ledgers together true, and is there nothing that none of them has?
 *
 *   check.c    over HTTP: holds and resources
 *   check_rest.c  out of the ledgers, and over HTTP: guards, claims, leases, registers
 *   journal.c  after the end: the audit, and the journal entry by entry
 *   history.c  the same as a history, told to the judge of proof/judge
 *
 * Nothing here trusts the server: what must be there is counted from what the clients wrote
 * down. */
#ifndef HF_PROOF_CRASH_CHECK_H
#define HF_PROOF_CRASH_CHECK_H

#include "crash/crowd.h"

/* Much longer than a call takes, and much shorter than a round. */
#define CRASH_LATE_NS UINT64_C(20000000)

struct crash_check {
    const struct server *server; /* borrowed: one that can be asked; files go to its folder */
    const char *postgres;        /* borrowed: where the store is; NULL: in the server's own files */
    const struct crash_ledger *ledgers; /* borrowed */
    unsigned clients;                   /* how many ledgers there are */
    const char *program; /* borrowed: the holdfast to run, or NULL: that of the build */
    bool hush;           /* control: keep some decisions from the judge */
    bool late;           /* control: tell the judge that client 0 was earlier, by CRASH_LATE_NS */
    uint64_t holds, entries, judged, timed; /* out: how many there were */
    char complaint[CRASH_COMPLAINT];        /* out: what is wrong, or "" */
};

/* While the server runs and nobody else asks it for anything. False if something is wrong. */
bool crash_check_server(struct crash_check *k);
/* After it was stopped in order; if the store is in a database, while nobody changes anything. */
bool crash_check_journal(struct crash_check *k);
/* Write the whole journal, as people can read it, to DIR/export.jsonl in the server's folder, and
 * say where that is. False after a complaint. */
bool crash_check_export(struct crash_check *k, char file[600]);
/* How much was looked at. */
void crash_check_sum(const struct crash_check *k, struct crash_sum *sum);

/* ---- For the files above ---- */

/* Always false. The first complaint counts. */
bool crash_complain(struct crash_check *k, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* All operations of the kinds in `kinds` (1 << kind) that were answered; done: those that succeeded
 * alone. Sorted by `by`. count: out. Owned, free with free(). */
struct crash_op **crash_gather(const struct crash_check *k, unsigned kinds, bool done,
                               int (*by)(const void *, const void *), size_t *count);
/* Ask; false after a complaint unless the answer is 200. */
bool crash_get(struct crash_check *k, const char *what, struct reply *r);

bool crash_check_rest(struct crash_check *k);
bool crash_check_history(struct crash_check *k);

/* Operations by what the journal has of them. */
struct crash_index {
    const struct crash_check *check; /* borrowed */
    /* owned, by number: where the entry is; 0: not met yet */
    uint64_t *positions[CRASH_CLIENTS_MAX];
    struct crash_op **by_sequence[CRASH_CLIENTS_MAX]; /* owned */
    unsigned sequences[CRASH_CLIENTS_MAX];            /* the highest */
};
void crash_index_make(const struct crash_check *k, struct crash_index *x);
void crash_index_free(struct crash_index *x);
/* The operation of this name ("c2-17"), or with this number of the client of this name. NULL: there
 * is none. */
struct crash_op *crash_index_name(const struct crash_index *x, const char *name);
struct crash_op *crash_index_sequence(const struct crash_index *x, const char *client,
                                      uint64_t sequence);

#endif
