/* batch.h: many requests, one transaction.
 *
 *   look     one round trip without a lock: keys, guards, and what is only read. Replays and
 *            questions are answered from it.
 *   take     one round trip: BEGIN, every row that the others may change, locked table by table and
 *            in key order, then the time and fresh numbers. The core decides over them.
 *   write    one round trip: changed rows, new rows, the journal's entries, the writer's row,
 *            COMMIT.
 *
 * Where most calls have been new lately, looking is a part of taking, and takes no locks (swift):
 * rows are read with their place and version, outside of a transaction, and the write begins one,
 * changes them only if they are still the same, and fails as a whole otherwise. That is right if
 * the core decided over nothing but rows that it changes, keys that it binds, and the rules, which
 * are compared too. So a refusal that is written down, and whatever reads a row that it leaves
 * alone, takes locks; and so does a batch that has failed, and some behind it. Where no retry has
 * come for long, keys are not even looked up (blind).
 *
 * Numbers are drawn behind the reads. Whoever changed a row before it was read has drawn theirs
 * before; who changes it between read and write makes the write fail: so the numbers are in the
 * order of the changes to every row, as they are with locks.
 *
 * All transactions lock in the same order, be it by FOR UPDATE or by changing rows, and insert in
 * the same order behind that, so that they cannot wait for each other in a circle. Two that bind
 * the same key meet at the primary key of holdfast.token: the later one fails as a whole and begins
 * again, and finds the key bound. What was not there when a batch read it is compared by the
 * primary key alone, so a row that is taken out must not leave while such a batch is under way:
 * transaction.h, "What leaves". */
#ifndef HF_STORE_POSTGRES_BATCH_H
#define HF_STORE_POSTGRES_BATCH_H

#include "store/postgres/session.h"

struct hf_pg_item {
    const struct hf_request *request; /* borrowed */
    uint8_t digest[HF_DIGEST_SIZE];   /* hf_digest of it */
    bool deferred;                    /* private: not answered by looking alone */
    bool known;                       /* private: its key was bound already when it was looked at */
    bool changes;                     /* out: it has an effect of its own */
    bool
        /* out: it has seen what stands and falls with the commit, or what a standby may not have */
        waits;
    bool raced;    /* out: its key was bound by another call while it was under way */
    bool replayed; /* for the caller */
};

enum hf_pg_end {
    HF_PG_DONE, /* all is answered, and durable */
    /* the same, and nothing was written; but items that wait have seen what a standby may not
     * have */
    HF_PG_UNSURE,
    HF_PG_AGAIN, /* nothing happened: somebody else was faster */
    HF_PG_STUCK, /* nothing happened: a row stayed locked for too long */
    HF_PG_NO,    /* nothing happened: the database refuses; conn.why */
    HF_PG_GONE,  /* nothing happened: the connection is lost */
    /* the connection is lost, a standby did not answer, or the primary was replaced, after COMMIT
     * was sent: ask hf_pg_session_connect */
    HF_PG_DOUBT
};

enum { HF_PG_BATCH_MAX = 8192 };

struct hf_pg_batch {
    struct hf_pg_item *items; /* borrowed */
    size_t count;             /* up to HF_PG_BATCH_MAX; an HF_APPLY must be alone */
    bool careful;             /* look first: it has been tried before */
    bool hurries;             /* do not wait long for a row that is locked */
    /* Called for each item when it is decided, perhaps more than once: the last counts. The answer
     * may be shown when the batch is done. */
    void (*decided)(void *arg, size_t index, const struct hf_plan *plan, hf_time now);
    /* Runs an HF_APPLY: adds rows to the plan and sets its answer. */
    void (*apply)(void *arg, const struct hf_request *request, const struct hf_view *view,
                  uint64_t outbox_first, struct hf_plan *plan, hf_time now);
    void *arg;
};

enum hf_pg_end hf_pg_batch_run(struct hf_pg_session *s, struct hf_pg_batch *batch);
/* Behind HF_PG_UNSURE: the standbys have what could be seen when the batch was read. Remember that
 * of the rows that it saw. */
void hf_pg_batch_sure(struct hf_pg_session *s);

/* Expire overdue holds of resources that nobody else works on, up to `max`. swept: out. */
enum hf_pg_end hf_pg_sweep(struct hf_pg_session *s, unsigned max, unsigned *swept);

/* Read the time and the rules in force into the session. */
enum hf_pg_end hf_pg_look(struct hf_pg_session *s);

/* What the options change of the rules that are in force. */
struct hf_rules hf_pg_rules_wanted(const struct hf_options *options,
                                   const struct hf_rules *in_force);
/* Make them the configuration in force, if they are not, and write that into the journal.
 * patience_ms: the lock timeout; other transactions that write wait as long. HF_PG_STUCK: the lock
 * timed out. */
enum hf_pg_end hf_pg_configure(struct hf_pg_session *s, const struct hf_options *options,
                               int patience_ms);

/* Take out keys, entries of guards and what deleted registers and leases have left, if their window
 * has closed and no batch is under way that has not seen them (transaction.h, "What leaves"), up to
 * `max` of each. freed: out. s->horizon.waiting: out, nothing leaves before the standbys have
 * confirmed what could be seen. */
enum hf_pg_end hf_pg_free_expired(struct hf_pg_session *s, int max, uint64_t *freed);

#endif
