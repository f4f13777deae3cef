/* writer.h: a store in a directory: many threads, one journal, one commit.
 *
 * A thread with a request takes the lock, decides the request into the batch that is being
 * gathered, and gives the lock up. A thread that then waits for the disk and finds that no thread
 * is writing becomes the writer: it seals the batch, gives up the lock, writes and syncs, and takes
 * the lock again to say that the batch is durable. Meanwhile the other threads go on deciding into
 * the next batch. So a call from a single thread needs no other thread, and many threads share one
 * fdatasync. */
#ifndef HF_STORE_JOURNAL_WRITER_H
#define HF_STORE_JOURNAL_WRITER_H

#include "base/worker.h"
#include "store/journal/journal.h"
#include "store/journal/maintain.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct hf_writer {
    struct hf_store store; /* what the engine sees of it */
    struct hf_store_host host;
    pthread_mutex_t lock;
    _Atomic unsigned wanted; /* how many that decide or commit wait for the lock (hf_writer_lock) */
    pthread_cond_t
        landed; /* the durable position moved, the writer left, or a segment became ready */
    pthread_cond_t work;        /* for the committer: something was submitted */
    struct hf_journal *journal; /* owned */
    struct hf_lock journal_lock;

    bool writing;     /* a thread is the writer */
    bool maintaining; /* a thread is in a step of maintenance */
    bool releasing;   /* a thread calls callbacks */
    bool stopping;
    bool failed; /* the journal could not be written: nothing goes on */
    struct hf_op *waiting,
        **waiting_end;                /* submitted, not yet answered, in order of what they need */
    struct hf_op *ready, **ready_end; /* may be answered */

    struct hf_worker maintainer;
    bool committing; /* there is a committer */
    pthread_t committer;
    void (*on_fatal)(void *arg, const char *sentence);
    void *arg;
};

/* Take the lock in order to decide or to commit. A mutex is not fair: a thread that gives it up and
 * takes it again at once is faster than one that has to be woken. So others who need it for long,
 * again and again, look at `wanted` and stand back. */
static inline void hf_writer_lock(struct hf_writer *w)
{
    if (pthread_mutex_trylock(&w->lock) == 0)
        return;
    atomic_fetch_add_explicit(&w->wanted, 1, memory_order_relaxed);
    pthread_mutex_lock(&w->lock);
    atomic_fetch_sub_explicit(&w->wanted, 1, memory_order_relaxed);
}

/* With the lock. Wait until `needs` is durable, writing if nobody else does. HF_OK or
 * HF_INDETERMINATE. */
enum hf_status hf_writer_wait(struct hf_writer *w, uint64_t needs);

/* With the lock, which may be given up meanwhile. Decide one request into w->journal->plan.
 * HF_OK: needs and now are set. HF_STORAGE_FAILURE: the store has failed; the plan is not set. */
enum hf_status hf_writer_take(struct hf_writer *w, const struct hf_request *request,
                              const struct hf_hashed *hashed, uint64_t *needs, hf_time *now);

/* list.c, usage.c: the operations of store.h. */
enum hf_status hf_writer_list(struct hf_store *store, const struct hf_query *query,
                              struct hf_page *page);
void hf_writer_stats(struct hf_store *store, bool applying, struct hf_stats *out);
size_t hf_writer_usage(struct hf_store *store, struct hf_usage *list, size_t max,
                       struct hf_usage *others);
void hf_writer_usage_of(struct hf_store *store, struct hf_bytes tenant, struct hf_usage *out);

static inline struct hf_writer *hf_writer_of(struct hf_store *store)
{
    return (struct hf_writer *)store;
}

/* As hf_store_open. path: a directory, or ":memory:". */
enum hf_status hf_journal_store_open(const char *path, const struct hf_options *options,
                                     const struct hf_store_host *host, struct hf_store **out,
                                     struct hf_error *why);

#endif
