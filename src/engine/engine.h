/* engine.h: many threads, one commit.
 *
 * Whoever has something to be decided takes the lock, decides it into the batch that is being gathered, and
 * lets go. Whoever then waits for the disk and finds that nobody is writing becomes the writer: seals the
 * batch, gives up the lock, writes and syncs, and comes back to say that it is durable. Meanwhile the others
 * go on deciding into the next batch. A call from one thread alone so needs no other thread at all, and many
 * threads share one fdatasync. */
#ifndef HF_ENGINE_ENGINE_H
#define HF_ENGINE_ENGINE_H

#include "store/journal/journal.h"
#include "store/journal/maintain.h"

#include <pthread.h>
#include <stdatomic.h>

struct hf_remote;

struct hf_db {
    struct hf_remote
        *remote; /* owned; not NULL: the store is PostgreSQL, and nothing below is used (remote.h) */
    pthread_mutex_t lock;
    _Atomic unsigned wanted;    /* how many that decide or commit wait for the lock (hf_engine_lock) */
    pthread_cond_t landed;      /* the durable position moved, the writer left, or a segment became ready */
    pthread_cond_t work;        /* for the committer: something was submitted */
    pthread_cond_t tick;        /* for the maintainer: stop */
    struct hf_journal *journal; /* owned */
    struct hf_lock journal_lock;

    bool writing;     /* somebody is the writer */
    bool maintaining; /* somebody is in a step of maintenance */
    bool releasing;   /* somebody calls callbacks */
    bool stopping;
    bool failed;                          /* the journal could not be written: nothing goes on */
    struct hf_op *waiting, **waiting_end; /* submitted, not yet answered, in order of what they need */
    struct hf_op *ready, **ready_end;     /* may be answered */

    bool background; /* there is a maintainer */
    bool committing; /* there is a committer */
    pthread_t committer, maintainer;
    void (*on_fatal)(void *arg, const char *sentence);
    void *arg;
};

/* Take the lock in order to decide or to commit. A mutex is not fair: a thread that gives it up and takes it again at once is
 * faster than one that has to be woken. So others who need it for long, again and again, look at `wanted` and stand back. */
static inline void hf_engine_lock(struct hf_db *db)
{
    if (pthread_mutex_trylock(&db->lock) == 0)
        return;
    atomic_fetch_add_explicit(&db->wanted, 1, memory_order_relaxed);
    pthread_mutex_lock(&db->lock);
    atomic_fetch_sub_explicit(&db->wanted, 1, memory_order_relaxed);
}

/* The database whose apply function this thread is in, or NULL: calls from there are refused. */
extern _Thread_local const struct hf_db *hf_engine_applying;

/* With the lock. Wait until `needs` is durable, writing if nobody else does. HF_OK or HF_INDETERMINATE. */
enum hf_status hf_engine_wait(struct hf_db *db, uint64_t needs);

/* With the lock, which may be given up meanwhile. Decide one request into db->journal->plan.
 * HF_OK: needs and now are set. HF_STORAGE_FAILURE: the store has failed; the plan is not set. */
enum hf_status hf_engine_take(struct hf_db *db, const struct hf_request *request,
                              const struct hf_prepared *prepared, uint64_t *needs, hf_time *now);

/* Fill `result` from the journal's plan. False without memory, or if the answer has more than `answer_max` bytes (0: as
 * many as it has). */
bool hf_result_fill(struct hf_result *result, const struct hf_plan *plan, hf_time now, size_t answer_max);
/* Set the result to a bare status. */
void hf_result_status(struct hf_result *result, enum hf_status status);

/* Runs an apply function (apply.c); arg is the database. */
void hf_engine_run_apply(void *arg, const struct hf_request *request, struct hf_plan *plan, hf_time now);
/* The same over any view. outbox_first: the number for the first row that it puts into the outbox. */
void hf_engine_apply(const struct hf_db *db, const struct hf_request *request, const struct hf_view *view,
                     uint64_t outbox_first, struct hf_plan *plan, hf_time now);

#endif
