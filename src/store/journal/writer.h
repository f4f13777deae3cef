/* writer.h: a store in a directory: many threads, one journal, one commit.
 *
 * A thread with a request takes the lock, decides the request into the gathered batch, and releases
 * the lock. A thread that must wait for the disk while no thread writes becomes the writer: it
 * seals the batch, releases the lock, writes and syncs, and takes the lock again to mark the batch
 * as durable. Meanwhile other threads decide requests into the next batch. So a single thread needs
 * no other thread, and many threads share one fdatasync. */
#ifndef HF_STORE_JOURNAL_WRITER_H
#define HF_STORE_JOURNAL_WRITER_H

#include "base/worker.h"
#include "store/journal/journal.h"
#include "store/journal/maintain.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct hf_writer {
    struct hf_store store; /* the engine's view of it */
    struct hf_store_host host;
    pthread_mutex_t lock;
    _Atomic unsigned wanted; /* threads that wait for the lock to decide or commit
                              * (hf_writer_lock) */
    pthread_cond_t landed; /* the durable position moved, the writer left, or a segment is ready */
    pthread_cond_t work;   /* for the committer: something was submitted */
    struct hf_journal *journal; /* owned */
    struct hf_lock journal_lock;

    bool writing;     /* a thread is the writer */
    bool maintaining; /* a thread is in a step of maintenance */
    bool releasing;   /* a thread calls callbacks */
    bool stopping;
    bool failed;                          /* the journal could not be written: the store stops */
    struct hf_op *waiting, **waiting_end; /* submitted, not yet answered, in order of `needs` */
    struct hf_op *ready, **ready_end;     /* may be answered */

    struct hf_worker maintainer;
    bool committing; /* there is a committer */
    pthread_t committer;
    void (*on_fatal)(void *arg, const char *sentence);
    void *arg;
};

/* Take the lock to decide or to commit. A mutex is not fair: a thread that releases it and takes it
 * again at once is faster than one that has to wake up. So threads that need it repeatedly and for
 * long check `wanted` and pause. */
static inline void hf_writer_lock(struct hf_writer *w)
{
    if (pthread_mutex_trylock(&w->lock) == 0)
        return;
    atomic_fetch_add_explicit(&w->wanted, 1, memory_order_relaxed);
    pthread_mutex_lock(&w->lock);
    atomic_fetch_sub_explicit(&w->wanted, 1, memory_order_relaxed);
}

/* With the lock. Wait until `needs` is durable; write if no other thread does. HF_OK or
 * HF_INDETERMINATE. */
enum hf_status hf_writer_wait(struct hf_writer *w, uint64_t needs);

/* With the lock, which may be released meanwhile. Decide one request into w->journal->plan. HF_OK:
 * needs and now are set. HF_STORAGE_FAILURE: the store has failed; the plan is not set. */
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
