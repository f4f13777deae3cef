/* transaction.h: a transaction while it is being made: what is asked, decided and written. Only
 * these files include it:
 *
 *   transaction.c  round trips: what is sent, and taking in what comes back
 *   want.c         which rows a request may need, and the statements that ask for them
 *   batch.c        deciding the requests of a batch
 *   write.c        the journal's entries, changed rows, COMMIT
 *   sweep.c        expiring overdue holds, removing rows that are over
 *   configure.c    the configuration in force */
#ifndef HF_STORE_POSTGRES_TRANSACTION_H
#define HF_STORE_POSTGRES_TRANSACTION_H

#include "store/postgres/batch.h"
#include "store/record/entry.h"

/* An entry of the journal that is to be written. */
struct hf_pg_written {
    struct hf_pg_written *next;
    uint64_t number;
    struct hf_entry_head head;
    struct hf_bytes claim; /* the key of the claim that it is about; none */
    struct hf_bytes image;
};

/* What a result of a round trip is about. table: of its rows, HF_PG_TABLES for none. */
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
    PGresult *drawn;                              /* owned: fresh numbers, a row each */
    int ordinals, fences, numbers;                /* how many of them have been used */
    struct hf_pg_written *entries, **entries_end; /* in order of their numbers */
    size_t entry_count;
    bool swift;  /* no row is locked: the commit fails if any has changed that was decided over */
    bool blind;  /* and keys are not looked up: it fails if any is bound */
    bool sweeps; /* overdue holds are asked for */
    bool timed;  /* the time came with the last round trip */
    bool
        /* there is no memory, or an entry of the journal would be larger than any can be */
        spoiled;
    bool unruled;         /* there are no rules that anything could be decided by */
    unsigned passed_over; /* rows that cannot be ours */
};

static inline struct hf_bytes hf_pg_none(void)
{
    return hf_mem(NULL, 0);
}

/* ---- transaction.c ---- */

void hf_pg_tx_begin(struct hf_pg_tx *w, struct hf_pg_session *s, struct hf_pg_batch *batch);
/* Free everything and leave the transaction, if it is still open. Returns `end`. */
enum hf_pg_end hf_pg_tx_end(struct hf_pg_tx *w, enum hf_pg_end end);

void hf_pg_tx_send(struct hf_pg_tx *w, int statement, enum hf_pg_table table,
                   const struct hf_bytes *params, int count);
/* Send a statement over the keys of `slots`, or over all columns; fixed ones are left out where
 * rows change. */
void hf_pg_tx_slots(struct hf_pg_tx *w, int statement, enum hf_pg_table table,
                    struct hf_pg_slot *const *slots, size_t count, bool all, bool changing);
/* Ask for the time, the rules, and fresh numbers. */
void hf_pg_tx_draw(struct hf_pg_tx *w, int numbers, int ordinals, int fences, int outbox);
/* Send, wait, and take in the results; they can be looked at until hf_pg_tx_clear. */
enum hf_pg_end hf_pg_tx_trip(struct hf_pg_tx *w);
void hf_pg_tx_clear(struct hf_pg_tx *w);
enum hf_pg_end hf_pg_end_of(enum hf_pg_outcome outcome);

/* What leaves. A batch that found no row under a name, and makes one, has only the primary key to
 * tell it that others made one meanwhile: so a row that others made and that is not wanted any more
 * must still be there when the batch inserts its own. That holds for keys, for entries of guards,
 * and for what deleted leases and registers have left, and so:
 *
 *   - A batch writes within SWIFT_MS of its reads, or LOCKED_MS if it takes locks, by the
 *     database's clock, or not at all: the writer's row is changed behind all its inserts, and
 *     fails if it is later. Nothing else bounds it: it may wait for one lock after the other, and
 *     its server may be stopped between its round trips. It fails too if that clock was set back
 *     meanwhile.
 *   - A row leaves only if the transaction that wrote it last had ended LEAVE_MS before, by the
 *     clock of the machine that takes it out, which nobody sets. A batch that did not see that
 *     transaction has read before its end, and is over.
 *
 *   - And only if the standbys are known to have that transaction. A batch gives the same answer
 *     with the row and without it: the window has closed. But on a standby that lacks the
 *     transaction and is promoted, the window may be open, or the claim may not be settled.
 *
 * How long a window was does not matter to that, nor what the servers take for engine time. */
enum { HF_PG_SWIFT_MS = 30000, HF_PG_LOCKED_MS = 60000, HF_PG_LEAVE_MS = 90000 };

/* Columns of HF_PG_DRAW. */
enum { HF_PG_DRAWN_NUMBER = 7, HF_PG_DRAWN_ORDINAL, HF_PG_DRAWN_FENCE, HF_PG_DRAWN_OUTBOX };
/* Numbers of the journal are drawn so many at a time. */
enum { HF_PG_BLOCK = 32 };
/* A fresh number, or 0 if not so many were drawn. */
uint64_t hf_pg_drawn(const struct hf_pg_tx *w, int index, int column);

/* One column of many slots as an array; numbers by themselves. */
struct hf_bytes hf_pg_param_array(struct hf_buffer *b, struct hf_pg_slot *const *slots,
                                  size_t count, enum hf_pg_table table, int column);
struct hf_bytes hf_pg_param4(unsigned char out[4], int64_t value);
struct hf_bytes hf_pg_param8(unsigned char out[8], int64_t value);
/* The latest engine time that is known without asking the database. */
struct hf_bytes hf_pg_param_told(unsigned char out[8], const struct hf_pg_session *s);

/* ---- want.c ---- */

struct hf_pg_slot *hf_pg_want(struct hf_pg_tx *w, enum hf_pg_table table, struct hf_bytes tenant,
                              struct hf_bytes scope, struct hf_bytes name, uint64_t number,
                              bool lock);
/* What may answer the request without a lock. */
void hf_pg_want_look(struct hf_pg_tx *w, const struct hf_request *request);
/* Everything that deciding it may read or change. */
void hf_pg_want_take(struct hf_pg_tx *w, const struct hf_request *request);
/* Read all that is wanted without a lock; take: and what deciding needs besides. */
void hf_pg_want_read(struct hf_pg_tx *w, bool take);
/* Lock and read all that is wanted, in the one order that everybody keeps. */
void hf_pg_want_lock(struct hf_pg_tx *w);
/* Wait for the locks of all guards that waiting requests go by, or set. statement:
 * HF_PG_KEEP_GUARDS or HF_PG_CHANGE_GUARDS. */
void hf_pg_want_guards(struct hf_pg_tx *w, int statement);
/* Those of a table that are wanted, locked or not, in no order. Returns how many; *out: borrowed
 * from the arena. */
size_t hf_pg_wanted(struct hf_pg_tx *w, enum hf_pg_table table, bool lock,
                    struct hf_pg_slot ***out);
/* Up to `each` overdue holds of each resource; 0: as many as its requests may expire. */
void hf_pg_want_overdue(struct hf_pg_tx *w, struct hf_pg_slot *const *slots, size_t count,
                        unsigned each);

/* ---- write.c ---- */

/* The journal's entry of the session's plan, and the rows it changes. need: an upper bound of its
 * size. False: without memory, or it would be larger, by what a row had that was changed by
 * hand. */
bool hf_pg_write_entry(struct hf_pg_tx *w, const struct hf_entry_head *head, size_t need);
/* The same for an action of the store itself, which has no request. */
bool hf_pg_write_own(struct hf_pg_tx *w, enum hf_action action, struct hf_bytes tenant);
/* Write what was decided, COMMIT at its end; nothing if nothing changed. */
enum hf_pg_end hf_pg_write(struct hf_pg_tx *w);

#endif
