#include "store/journal/writer.h"

#include "base/error.h"
#include "store/record/result.h"
#include "store/touch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- The writer ---- */

/* The journal could not be written: report it once, and stop for good. */
static void fail(struct hf_writer *w, int error)
{
    char sentence[256];
    if (w->failed)
        return;
    w->failed = true;
    snprintf(sentence, sizeof sentence,
             "holdfast: cannot make the journal durable (%s). Requests without an "
             "answer may or may not have happened. The process stops, and the next "
             "start recovers the journal",
             strerror(-error));
    if (w->on_fatal) {
        w->on_fatal(w->arg, sentence);
        return;
    }
    fprintf(stderr, "%s\n", sentence);
    _exit(3);
}

/* Move operations that may be answered now from waiting to ready. */
static void promote(struct hf_writer *w)
{
    struct hf_op **at = &w->waiting;
    while (*at && (w->failed || (*at)->needs <= w->journal->durable)) {
        if (w->failed && (*at)->needs > w->journal->durable) {
            (*at)->status = hf_result_status((*at)->result, HF_INDETERMINATE);
        }
        at = &(*at)->next;
    }
    if (at == &w->waiting)
        return;
    *w->ready_end = w->waiting;
    w->ready_end = at;
    w->waiting = *at;
    *at = NULL;
    if (!w->waiting)
        w->waiting_end = &w->waiting;
}

/* Call the callbacks, one thread at a time to keep the order; the lock is released meanwhile. */
static void release(struct hf_writer *w)
{
    if (w->releasing)
        return;
    w->releasing = true;
    while (w->ready) {
        struct hf_op *op = w->ready;
        w->ready = NULL;
        w->ready_end = &w->ready;
        pthread_mutex_unlock(&w->lock);
        while (op) {
            struct hf_op *next = op->next;
            op->next = NULL;
            op->done(op, op->status);
            op = next;
        }
        hf_writer_lock(w);
    }
    w->releasing = false;
    pthread_cond_broadcast(&w->landed);
}

static bool write_wanted(const struct hf_writer *w)
{
    return !w->writing && !w->failed && hf_journal_gathered(w->journal);
}

/* Commit the gathered batch. The lock is released while the disk works. */
static void write_batch(struct hf_writer *w)
{
    struct hf_journal *j = w->journal;
    w->writing = true;
    hf_journal_seal(j);
    pthread_mutex_unlock(&w->lock);
    int error = hf_journal_commit(j);
    hf_writer_lock(w);
    w->writing = false;
    if (error)
        fail(w, error);
    else
        hf_journal_landed(j);
    promote(w);
    pthread_cond_broadcast(&w->landed);
    release(w);
    /* No caller may be waiting for what was gathered meanwhile. */
    if (w->committing && write_wanted(w))
        pthread_cond_signal(&w->work);
}

enum hf_status hf_writer_wait(struct hf_writer *w, uint64_t needs)
{
    while (needs > w->journal->durable) {
        if (w->failed)
            return HF_INDETERMINATE;
        if (write_wanted(w))
            write_batch(w);
        else
            pthread_cond_wait(&w->landed, &w->lock);
    }
    return HF_OK;
}

/* ---- Deciding ---- */

/* The next segment is not ready: prepare it, or wait for the thread that does. */
static void wait_for_segment(struct hf_writer *w)
{
    if (w->maintaining || w->writing) {
        pthread_cond_wait(&w->landed, &w->lock);
        return;
    }
    w->maintaining = true;
    hf_journal_prepare(w->journal, &w->journal_lock);
    w->maintaining = false;
    pthread_cond_broadcast(&w->landed);
}

enum hf_status hf_writer_take(struct hf_writer *w, const struct hf_request *request,
                              const struct hf_hashed *hashed, uint64_t *needs, hf_time *now)
{
    while (!w->failed) {
        switch (hf_journal_take(w->journal, request, hashed, needs, now)) {
        case HF_TAKEN: return HF_OK;
        case HF_TAKE_FULL:
            if (write_wanted(w))
                write_batch(w);
            else
                pthread_cond_wait(&w->landed, &w->lock);
            break;
        case HF_TAKE_WAIT: wait_for_segment(w); break;
        }
    }
    return HF_STORAGE_FAILURE;
}

/* Decide with the lock held and fill the result. */
static enum hf_status take(struct hf_writer *w, const struct hf_request *request,
                           const struct hf_hashed *hashed, struct hf_result *result,
                           size_t answer_max, uint64_t *needs)
{
    hf_time now = 0;
    *needs = 0;
    enum hf_status st = hf_writer_take(w, request, hashed, needs, &now);
    if (st == HF_OK)
        return hf_result_answer(request, w->journal->plan, now, answer_max, result);
    return hf_result_fault(result, &(struct hf_cause){ .fault = HF_FAULT_STOPPED });
}

enum { CHUNK = 64 };

static enum hf_status decide_many(struct hf_store *store, const struct hf_request *requests,
                                  struct hf_result *results, size_t count)
{
    struct hf_writer *w = hf_writer_of(store);
    struct hf_hashed hashed[CHUNK];
    uint64_t needs_most = 0;
    for (size_t from = 0; from < count; from += CHUNK) {
        size_t n = count - from < CHUNK ? count - from : CHUNK;
        for (size_t i = 0; i < n; i++)
            hf_journal_hash_request(w->journal, &requests[from + i], &hashed[i]);
        hf_writer_lock(w);
        hf_journal_prefetch(w->journal, hashed, n);
        for (size_t i = 0; i < n; i++) {
            uint64_t needs;
            take(w, &requests[from + i], &hashed[i], results ? &results[from + i] : NULL, 0,
                 &needs);
            if (needs > needs_most)
                needs_most = needs;
        }
        if (from + n < count)
            pthread_mutex_unlock(&w->lock);
    }
    if (count == 0)
        return HF_OK;
    enum hf_status st = hf_writer_wait(w, needs_most);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; st != HF_OK && results && i < count; i++)
        hf_result_status(&results[i], st);
    return st;
}

static enum hf_status decide(struct hf_store *store, const struct hf_request *request,
                             struct hf_result *result)
{
    struct hf_writer *w = hf_writer_of(store);
    struct hf_hashed hashed;
    uint64_t needs;
    hf_journal_hash_request(w->journal, request, &hashed);
    hf_writer_lock(w);
    enum hf_status st = take(w, request, &hashed, result, 0, &needs);
    enum hf_status waited = hf_writer_wait(w, needs);
    pthread_mutex_unlock(&w->lock);
    return waited == HF_OK ? st : hf_result_status(result, waited);
}

/* ---- Without waiting ---- */

static void queue(struct hf_writer *w, struct hf_op *op)
{
    op->next = NULL;
    if (op->needs <= w->journal->durable) {
        *w->ready_end = op;
        w->ready_end = &op->next;
    } else {
        *w->waiting_end = op;
        w->waiting_end = &op->next;
    }
}

static void submit(struct hf_store *store, struct hf_op *first)
{
    struct hf_writer *w = hf_writer_of(store);
    struct hf_hashed hashed[CHUNK];
    while (first) {
        struct hf_op *op = first;
        size_t n = 0;
        for (; op && n < CHUNK; op = op->next)
            hf_journal_hash_request(w->journal, op->request, &hashed[n++]);
        hf_writer_lock(w);
        hf_journal_prefetch(w->journal, hashed, n);
        for (size_t i = 0; i < n; i++) {
            struct hf_op *next = first->next;
            first->status = take(w, first->request, &hashed[i], first->result, first->answer_max,
                                 &first->needs);
            queue(w, first);
            first = next;
        }
        if (w->committing && write_wanted(w))
            pthread_cond_signal(&w->work);
        promote(w);
        release(w);
        pthread_mutex_unlock(&w->lock);
    }
}

/* With the lock. Wait until everything decided is durable. */
static enum hf_status settle(struct hf_writer *w)
{
    const struct hf_journal *j = w->journal;
    return hf_writer_wait(w, j->gather.size   ? j->gather.base + 1
                             : j->flight.size ? j->flight.base + 1
                                              : 0);
}

static uint32_t timeline(struct hf_store *store)
{
    (void)store; /* a directory has one history */
    return 0;
}

static enum hf_status barrier(struct hf_store *store, uint32_t seen)
{
    struct hf_writer *w = hf_writer_of(store);
    (void)seen;
    hf_writer_lock(w);
    enum hf_status st = settle(w);
    pthread_mutex_unlock(&w->lock);
    return st;
}

static enum hf_status head(struct hf_store *store, struct hf_head *out)
{
    struct hf_writer *w = hf_writer_of(store);
    pthread_mutex_lock(&w->lock);
    *out = w->journal->head;
    pthread_mutex_unlock(&w->lock);
    return out->position > 0 ? HF_OK : HF_NOT_KNOWN;
}

/* With the lock. Commit everything decided and call the callbacks. */
static void flush_all(struct hf_writer *w)
{
    (void)settle(w);
    promote(w);
    release(w);
    while (w->releasing)
        pthread_cond_wait(&w->landed, &w->lock);
}

static void flush(struct hf_store *store)
{
    struct hf_writer *w = hf_writer_of(store);
    hf_writer_lock(w);
    if (w->waiting || w->ready || w->releasing) /* else everything submitted is answered */
        flush_all(w);
    pthread_mutex_unlock(&w->lock);
}

/* ---- Background ---- */

static void *commit_loop(void *arg)
{
    struct hf_writer *w = arg;
    hf_touch_unblock();
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        if (write_wanted(w))
            write_batch(w);
        else
            pthread_cond_wait(&w->work, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* With the lock. One step of maintenance, unless another thread is in one. */
static bool maintain_step(struct hf_writer *w)
{
    if (w->maintaining || w->failed)
        return false;
    w->maintaining = true;
    bool more = hf_journal_maintain(w->journal, &w->journal_lock);
    w->maintaining = false;
    pthread_cond_broadcast(&w->landed);
    if (write_wanted(w))
        write_batch(w);
    return more;
}

static bool maintain(struct hf_store *store)
{
    struct hf_writer *w = hf_writer_of(store);
    pthread_mutex_lock(&w->lock);
    bool more = maintain_step(w);
    pthread_mutex_unlock(&w->lock);
    return more;
}

/* How long the maintainer sleeps when there is nothing to do, and between two steps. */
enum { TICK_NS = 50000000, PACE_NS = 500000 };

/* A step of the maintainer. In the pause after it, requests have the lock and the disk; no pause if
 * a request waits for the next segment. */
static int64_t maintain_pace(void *arg)
{
    struct hf_writer *w = arg;
    hf_touch_unblock();
    pthread_mutex_lock(&w->lock);
    bool more = maintain_step(w);
    int64_t pause_ns = !more ? TICK_NS : w->journal->segment_wanted ? 0 : PACE_NS;
    pthread_mutex_unlock(&w->lock);
    return pause_ns;
}

/* ---- Opening and closing ---- */

static void lock(void *arg)
{
    pthread_mutex_lock(&((struct hf_writer *)arg)->lock);
}

static void unlock(void *arg)
{
    pthread_mutex_unlock(&((struct hf_writer *)arg)->lock);
}

static void threads_stop(struct hf_writer *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->work);
    pthread_mutex_unlock(&w->lock);
    hf_worker_stop(&w->maintainer);
    if (w->committing)
        pthread_join(w->committer, NULL);
    w->committing = false;
}

static bool threads_start(struct hf_writer *w, bool committer)
{
    w->committing = committer; /* before another thread can read it */
    if (committer && pthread_create(&w->committer, NULL, commit_loop, w) != 0) {
        w->committing = false;
        return false;
    }
    if (hf_worker_start(&w->maintainer, maintain_pace, w))
        return true;
    threads_stop(w);
    return false;
}

static void writer_free(struct hf_writer *w)
{
    hf_journal_close(w->journal);
    pthread_cond_destroy(&w->landed);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* Callbacks may submit: flush until nothing is left. */
static void drain(struct hf_writer *w)
{
    bool more = true;
    while (more) {
        pthread_mutex_lock(&w->lock);
        flush_all(w);
        more = w->waiting || w->ready || w->releasing || write_wanted(w);
        pthread_mutex_unlock(&w->lock);
    }
}

static void close_store(struct hf_store *store)
{
    struct hf_writer *w = hf_writer_of(store);
    drain(w);
    if (w->maintainer.started) {
        threads_stop(w);
        drain(w); /* entries of the last maintenance step */
    }
    writer_free(w);
}

static const struct hf_store_operations operations = {
    .close = close_store,
    .decide = decide,
    .decide_many = decide_many,
    .submit = submit,
    .flush = flush,
    .barrier = barrier,
    .timeline = timeline,
    .head = head,
    .maintain = maintain,
    .list = hf_writer_list,
    .stats = hf_writer_stats,
    .usage = hf_writer_usage,
    .usage_of = hf_writer_usage_of,
};

static void run_apply(void *arg, const struct hf_request *request, struct hf_plan *plan,
                      hf_time now)
{
    const struct hf_writer *w = arg;
    const struct hf_journal *j = w->journal;
    w->host.apply(w->host.arg, request, &j->view, j->tables.highest_outbox + 1, plan, now);
}

static struct hf_writer *writer_make(const struct hf_options *options,
                                     const struct hf_store_host *host)
{
    struct hf_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->store.does = &operations;
    w->host = *host;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->landed, NULL);
    pthread_cond_init(&w->work, NULL);
    w->waiting_end = &w->waiting;
    w->ready_end = &w->ready;
    w->journal_lock = (struct hf_lock){ lock, unlock, w };
    w->on_fatal = options->on_fatal;
    w->arg = options->arg;
    return w;
}

enum hf_status hf_journal_store_open(const char *path, const struct hf_options *options,
                                     const struct hf_store_host *host, struct hf_store **out,
                                     struct hf_error *why)
{
    bool memory = strcmp(path, ":memory:") == 0;
    struct hf_writer *w = writer_make(options, host);
    if (!w)
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory to open a store");
    const struct hf_io *io = memory ? hf_io_memory() : options->io ? options->io : hf_io_os();
    enum hf_status st = hf_journal_open(path, options, io, &w->journal, why);
    if (st == HF_OK) {
        w->journal->run_apply = run_apply;
        w->journal->run_arg = w;
        if (!options->no_background && !threads_start(w, !options->no_committer))
            st = hf_error_set(why, HF_STORAGE_FAILURE,
                              "cannot start the store's background threads");
    }
    if (st == HF_OK)
        *out = &w->store;
    else
        writer_free(w);
    return st;
}
