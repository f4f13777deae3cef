/* batch.h: many requests, one transaction.
 *
 *   look     one round trip without locks: keys, guards, and rows that are only read. It answers
 *            replays and reads.
 *   take     one round trip: BEGIN, lock every row that other transactions may change, table by
 *            table and in key order, then read the time and fresh numbers. The core decides.
 *   write    one round trip: changed rows, new rows, the journal's entries, the writer's row,
 *            COMMIT.
 *
 * If most recent calls were new, look and take are one step without locks (swift): the session
 * reads rows with their place and version, outside of a transaction. The write begins a transaction
 * and changes these rows only if they are still the same; otherwise it fails as a whole. This is
 * correct if the core used only rows that it changes, keys that it binds, and the rules, whose
 * version is compared too. So a stored refusal, and a request that reads a row without changing it,
 * takes locks; so does a batch that has failed, and some batches after it. If no retry has come for
 * long, keys are not even looked up (blind).
 *
 * Numbers are drawn after the reads. A transaction that changed a row before our read has drawn its
 * numbers before; one that changes it between our read and write makes the write fail. So the
 * numbers follow the order of the changes to every row, as they do with locks.
 *
 * All transactions lock in the same order, by FOR UPDATE or by changing rows, and then insert in
 * the same order, so they cannot deadlock. Two batches that bind the same key meet at the primary
 * key of holdfast.token: the later one fails as a whole, starts again, and finds the key bound.
 * Only the primary key protects a row that did not exist when the batch read it. So a row must not
 * be removed while such a batch is in progress: transaction.h, "What leaves". */
#ifndef HF_STORE_POSTGRES_BATCH_H
#define HF_STORE_POSTGRES_BATCH_H

#include "store/postgres/session.h"

struct hf_pg_item {
    const struct hf_request *request; /* borrowed */
    uint8_t digest[HF_DIGEST_SIZE];   /* hf_digest of it */
    bool deferred;                    /* private: look did not answer it */
    bool known;                       /* private: its key was bound when look read it */
    bool changes;                     /* out: it has an effect */
    /* out: its answer depends on this commit, or on a row that a standby may not have */
    bool waits;
    bool raced;    /* out: another call bound its key while it was in progress */
    bool replayed; /* for the caller */
};

enum hf_pg_end {
    HF_PG_DONE, /* everything is answered and durable */
    /* the same, nothing was written; but items with `waits` saw rows that a standby may not have */
    HF_PG_UNSURE,
    HF_PG_AGAIN, /* no effect: another transaction was first */
    HF_PG_STUCK, /* no effect: lock timeout */
    HF_PG_NO,    /* no effect: the database refuses; conn.why */
    HF_PG_GONE,  /* no effect: the connection is lost */
    /* after COMMIT was sent, the connection was lost, a standby did not answer, or the primary was
     * replaced: hf_pg_session_connect finds out whether it committed */
    HF_PG_DOUBT
};

enum { HF_PG_BATCH_MAX = 8192 };

struct hf_pg_batch {
    struct hf_pg_item *items; /* borrowed */
    size_t count;             /* up to HF_PG_BATCH_MAX; an HF_APPLY must be alone */
    bool careful;             /* look first: it was tried before */
    bool hurries;             /* use a short lock timeout */
    /* Called for each item when it is decided, perhaps more than once: the last call counts. The
     * answer may be shown when the batch is done. */
    void (*decided)(void *arg, size_t index, const struct hf_plan *plan, hf_time now);
    /* Runs an HF_APPLY: adds rows to the plan and sets its answer. */
    void (*apply)(void *arg, const struct hf_request *request, const struct hf_view *view,
                  uint64_t outbox_first, struct hf_plan *plan, hf_time now);
    void *arg;
};

enum hf_pg_end hf_pg_batch_run(struct hf_pg_session *s, struct hf_pg_batch *batch);
/* After HF_PG_UNSURE, once the standbys have everything that was visible when the batch was read:
 * remember the rows that the batch saw as replicated. */
void hf_pg_batch_sure(struct hf_pg_session *s);

/* Expire up to `max` overdue holds of resources that no other transaction has locked. swept:
 * out. */
enum hf_pg_end hf_pg_sweep(struct hf_pg_session *s, unsigned max, unsigned *swept);

/* Call `tell` for up to `max` claims that became unknown because their lease ended, and mark them,
 * so that no other server tells of them too. told: out. */
enum hf_pg_end hf_pg_lapse(struct hf_pg_session *s, int max,
                           void (*tell)(void *arg, const struct hf_claim *claim), void *arg,
                           int *told);

/* Read the time and the rules in force into the session. */
enum hf_pg_end hf_pg_look(struct hf_pg_session *s);

/* The rules in force, with the changes that the options ask for. */
struct hf_rules hf_pg_rules_wanted(const struct hf_options *options,
                                   const struct hf_rules *in_force);
/* Make them the configuration in force, if they are not yet, and write that into the journal.
 * patience_ms: the lock timeout; other writing transactions wait as long. HF_PG_STUCK: lock
 * timeout. */
enum hf_pg_end hf_pg_configure(struct hf_pg_session *s, const struct hf_options *options,
                               int patience_ms);

/* Remove keys, entries of guards, and the rows left by deleted registers and leases, if their
 * window has closed and no batch in progress can have missed them (transaction.h, "What leaves"),
 * up to `max` of each. freed: out. s->horizon.waiting: out, no row leaves before the standbys have
 * confirmed what was visible. */
enum hf_pg_end hf_pg_free_expired(struct hf_pg_session *s, int max, uint64_t *freed);

#endif
