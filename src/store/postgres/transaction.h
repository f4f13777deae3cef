/* transaction.h: one transaction in the making: what it reads, decides and writes. Only these files
 * include it:
 *
 *   transaction.c  round trips: sending, and reading the results
 *   want.c         which rows a request may need, and the statements that read them
 *   batch.c        deciding the requests of a batch
 *   write.c        the journal's entries, changed rows, COMMIT
 *   sweep.c        expiring overdue holds, removing old rows
 *   configure.c    the configuration in force */
#ifndef HF_STORE_POSTGRES_TRANSACTION_H
#define HF_STORE_POSTGRES_TRANSACTION_H

#include "store/postgres/batch.h"
#include "store/record/entry.h"

/* A journal entry that will be written. */
struct hf_pg_written {
    struct hf_pg_written *next;
    uint64_t number;
    struct hf_entry_head head;
    struct hf_bytes claim; /* the key of the claim that it is about, if any */
    struct hf_bytes image;
};

/* What a result of a round trip contains. table: of its rows, HF_PG_TABLES for none. */
struct hf_pg_sent {
    int statement;
    enum hf_pg_table table;
};

struct hf_pg_tx {
    struct hf_pg_session *s;
    struct hf_pg_batch *batch;
    struct hf_pg_sent sent[HF_PG_PIPELINE_MAX];
    PGresult *results[HF_PG_PIPELINE_MAX];        /* owned */
    int count;                                    /* statements sent */
    PGresult *drawn;                              /* owned: fresh numbers, one row each */
    int ordinals, fences, numbers;                /* how many of them are used */
    struct hf_pg_written *entries, **entries_end; /* in order of their numbers */
    size_t entry_count;
    bool swift;  /* no locks: the commit fails if a row that the decision used has changed */
    bool blind;  /* and keys are not looked up: the commit fails if one is bound */
    bool sweeps; /* overdue holds are read */
    bool timed;  /* the last round trip read the time */
    /* out of memory, or a journal entry would exceed the largest size */
    bool spoiled;
    bool unruled;         /* the rules are unusable: nothing can be decided */
    unsigned passed_over; /* rows that cannot be ours */
};

static inline struct hf_bytes hf_pg_none(void)
{
    return hf_mem(NULL, 0);
}

/* ---- transaction.c ---- */

void hf_pg_tx_begin(struct hf_pg_tx *w, struct hf_pg_session *s, struct hf_pg_batch *batch);
/* Free everything and roll back the transaction if it is still open. Returns `end`. */
enum hf_pg_end hf_pg_tx_end(struct hf_pg_tx *w, enum hf_pg_end end);

void hf_pg_tx_send(struct hf_pg_tx *w, int statement, enum hf_pg_table table,
                   const struct hf_bytes *params, int count);
/* Send a statement with the keys of `slots`, or with all columns; `changing` leaves out fixed
 * columns. */
void hf_pg_tx_slots(struct hf_pg_tx *w, int statement, enum hf_pg_table table,
                    struct hf_pg_slot *const *slots, size_t count, bool all, bool changing);
/* Read the time and the rules, and draw fresh numbers. */
void hf_pg_tx_draw(struct hf_pg_tx *w, int numbers, int ordinals, int fences, int outbox);
/* Send, wait, and process the results; they stay valid until hf_pg_tx_clear. */
enum hf_pg_end hf_pg_tx_trip(struct hf_pg_tx *w);
void hf_pg_tx_clear(struct hf_pg_tx *w);
enum hf_pg_end hf_pg_end_of(enum hf_pg_outcome outcome);

/* What leaves. When a batch finds no row for a name and inserts one, only the primary key can tell
 * it that another batch inserted one meanwhile. So a row of another batch that is no longer needed
 * must still exist when the batch inserts its own. This concerns keys, entries of guards, and the
 * rows left by deleted leases and registers:
 *
 *   - A batch writes within SWIFT_MS of its reads, or LOCKED_MS with locks, by the database's
 *   clock,
 *     or not at all: its last statement before COMMIT updates the writer's row and fails if it is
 *     later. Nothing else bounds a batch: it may wait for several locks, and its server may be
 *     stopped between round trips. It also fails if the database's clock was set back meanwhile.
 *   - A row leaves only if the transaction that last wrote it ended LEAVE_MS before, by the boot
 *     clock of the machine that removes it. A batch that did not see that transaction has read
 *     before its end, and is over.
 *   - A row leaves only if the standbys are known to have that transaction. The window has closed,
 *     so a batch gives the same answer with the row and without it. But on a promoted standby
 *     that lacks the transaction, the window may be open, or the claim may not be settled.
 *
 * This does not depend on the length of a window, nor on the engine time of the servers. */
enum { HF_PG_SWIFT_MS = 30000, HF_PG_LOCKED_MS = 60000, HF_PG_LEAVE_MS = 90000 };

/* Columns of HF_PG_DRAW. */
enum { HF_PG_DRAWN_NUMBER = 7, HF_PG_DRAWN_ORDINAL, HF_PG_DRAWN_FENCE, HF_PG_DRAWN_OUTBOX };
/* Journal numbers are drawn in blocks of so many. */
enum { HF_PG_BLOCK = 32 };
/* A fresh number, or 0 if fewer were drawn. */
uint64_t hf_pg_drawn(const struct hf_pg_tx *w, int index, int column);

/* One column of many slots as an array; single numbers. */
struct hf_bytes hf_pg_param_array(struct hf_buffer *b, struct hf_pg_slot *const *slots,
                                  size_t count, enum hf_pg_table table, int column);
struct hf_bytes hf_pg_param4(unsigned char out[4], int64_t value);
struct hf_bytes hf_pg_param8(unsigned char out[8], int64_t value);
/* The latest engine time known without a query. */
struct hf_bytes hf_pg_param_told(unsigned char out[8], const struct hf_pg_session *s);

/* ---- want.c ---- */

struct hf_pg_slot *hf_pg_want(struct hf_pg_tx *w, enum hf_pg_table table, struct hf_bytes tenant,
                              struct hf_bytes scope, struct hf_bytes name, uint64_t number,
                              bool lock);
/* Is a row that the action needs known only after another was read? Then look reads that one: the
 * guard of an identity, whose stored form depends on it; the hold of a late confirm, whose resource
 * is to have its overdue holds read. */
struct hf_action_info;
bool hf_pg_want_needs_look(const struct hf_action_info *action);
/* Want the rows that may answer the request without a lock. */
void hf_pg_want_look(struct hf_pg_tx *w, const struct hf_request *request);
/* Want every row that deciding the request may read or change. */
void hf_pg_want_take(struct hf_pg_tx *w, const struct hf_request *request);
/* Read all wanted rows without a lock; take: and the rows that deciding needs besides. */
void hf_pg_want_read(struct hf_pg_tx *w, bool take);
/* Lock and read all wanted rows, in the common order. */
void hf_pg_want_lock(struct hf_pg_tx *w);
/* Wait for the locks of all guards that deferred requests use or set. statement: HF_PG_KEEP_GUARDS
 * or HF_PG_CHANGE_GUARDS. */
void hf_pg_want_guards(struct hf_pg_tx *w, int statement);
/* The wanted slots of a table, to lock or not, in no order. Returns their number; *out: borrowed
 * from the arena. */
size_t hf_pg_wanted(struct hf_pg_tx *w, enum hf_pg_table table, bool lock,
                    struct hf_pg_slot ***out);
/* Read up to `each` overdue holds of each resource; 0: as many as its requests may expire. */
void hf_pg_want_overdue(struct hf_pg_tx *w, struct hf_pg_slot *const *slots, size_t count,
                        unsigned each);

/* ---- write.c ---- */

/* Write the journal's entry of the session's plan and its rows into the set. need: an upper bound
 * of the entry's size. False: out of memory, or the entry would be larger, because of a row that
 * was changed by hand. */
bool hf_pg_write_entry(struct hf_pg_tx *w, const struct hf_entry_head *head, size_t need);
/* The same for an action of the store, which has no request. */
bool hf_pg_write_own(struct hf_pg_tx *w, enum hf_action action, struct hf_bytes tenant);
/* Write everything that was decided, then COMMIT; nothing if nothing changed. */
enum hf_pg_end hf_pg_write(struct hf_pg_tx *w);

#endif
