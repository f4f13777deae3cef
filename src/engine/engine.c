#include "engine/engine.h"

#include "base/bug.h"
#include "engine/remote.h"
#include "store/touch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- The writer ---- */

/* The journal could not be written: say so once, and never go on. */
static void fail(struct hf_db *db, int error)
{
    char sentence[256];
    if (db->failed)
        return;
    db->failed = true;
    snprintf(sentence, sizeof sentence,
             "holdfast: the journal could not be made durable (%s). What was not yet answered may or may not "
             "have happened; the process stops, and the next start finds out",
             strerror(-error));
    if (db->on_fatal) {
        db->on_fatal(db->arg, sentence);
        return;
    }
    fprintf(stderr, "%s\n", sentence);
    _exit(3);
}

/* Move what may be answered now from waiting to ready. */
static void promote(struct hf_db *db)
{
    struct hf_op **at = &db->waiting;
    while (*at && (db->failed || (*at)->needs <= db->journal->durable)) {
        if (db->failed && (*at)->needs > db->journal->durable) {
            (*at)->status = HF_INDETERMINATE;
            if ((*at)->result)
                hf_result_status((*at)->result, HF_INDETERMINATE);
        }
        at = &(*at)->next;
    }
    if (at == &db->waiting)
        return;
    *db->ready_end = db->waiting;
    db->ready_end = at;
    db->waiting = *at;
    *at = NULL;
    if (!db->waiting)
        db->waiting_end = &db->waiting;
}

/* Call back, one thread at a time so that the order holds; the lock is given up meanwhile. */
static void release(struct hf_db *db)
{
    if (db->releasing)
        return;
    db->releasing = true;
    while (db->ready) {
        struct hf_op *op = db->ready;
        db->ready = NULL;
        db->ready_end = &db->ready;
        pthread_mutex_unlock(&db->lock);
        while (op) {
            struct hf_op *next = op->next;
            op->next = NULL;
            op->done(op, op->status);
            op = next;
        }
        hf_engine_lock(db);
    }
    db->releasing = false;
    pthread_cond_broadcast(&db->landed);
}

static bool write_wanted(const struct hf_db *db)
{
    return !db->writing && !db->failed && hf_journal_gathered(db->journal);
}

/* Commit the gathered batch. The lock is given up while the disk works. */
static void write_batch(struct hf_db *db)
{
    struct hf_journal *j = db->journal;
    db->writing = true;
    hf_journal_seal(j);
    if (HF_BUG(answer_before_sync)) {
        j->durable = j->end;
        promote(db);
        release(db);
    }
    pthread_mutex_unlock(&db->lock);
    int error = hf_journal_commit(j);
    hf_engine_lock(db);
    db->writing = false;
    if (error)
        fail(db, error);
    else
        hf_journal_landed(j);
    promote(db);
    pthread_cond_broadcast(&db->landed);
    release(db);
    /* What was gathered meanwhile may belong to nobody who waits. */
    if (db->committing && write_wanted(db))
        pthread_cond_signal(&db->work);
}

enum hf_status hf_engine_wait(struct hf_db *db, uint64_t needs)
{
    while (needs > db->journal->durable) {
        if (db->failed)
            return HF_INDETERMINATE;
        if (write_wanted(db))
            write_batch(db);
        else
            pthread_cond_wait(&db->landed, &db->lock);
    }
    return HF_OK;
}

/* ---- Deciding ---- */

/* The next segment is not there yet: make it, or wait for who does. */
static void wait_for_segment(struct hf_db *db)
{
    if (db->maintaining || db->writing) {
        pthread_cond_wait(&db->landed, &db->lock);
        return;
    }
    db->maintaining = true;
    hf_journal_prepare(db->journal, &db->journal_lock);
    db->maintaining = false;
    pthread_cond_broadcast(&db->landed);
}

enum hf_status hf_engine_take(struct hf_db *db, const struct hf_request *request,
                              const struct hf_prepared *prepared, uint64_t *needs, hf_time *now)
{
    while (!db->failed) {
        switch (hf_journal_take(db->journal, request, prepared, needs, now)) {
        case HF_TAKEN: return HF_OK;
        case HF_TAKE_FULL:
            if (write_wanted(db))
                write_batch(db);
            else
                pthread_cond_wait(&db->landed, &db->lock);
            break;
        case HF_TAKE_WAIT: wait_for_segment(db); break;
        }
    }
    return HF_STORAGE_FAILURE;
}

_Thread_local const struct hf_db *hf_engine_applying;

/* Is this call made from inside an apply function? */
static bool misused(const struct hf_db *db)
{
    return hf_engine_applying == db;
}

/* What hf_do returns for a plan: the answer's status, but a look at a key that is known is fine. */
static enum hf_status plan_status(const struct hf_request *request, const struct hf_plan *plan)
{
    if (request->action == HF_GET_TOKEN && plan->token.action != 0)
        return HF_OK;
    return plan->answer.status;
}

/* Decide with the lock held and fill the result. */
static enum hf_status decide(struct hf_db *db, const struct hf_request *request,
                             const struct hf_prepared *prepared, struct hf_result *result, size_t answer_max,
                             uint64_t *needs)
{
    hf_time now = 0;
    *needs = 0;
    enum hf_status st = hf_engine_take(db, request, prepared, needs, &now);
    if (st != HF_OK) {
        if (result)
            hf_result_status(result, st);
        return st;
    }
    st = plan_status(request, db->journal->plan);
    if (result && !hf_result_fill(result, db->journal->plan, now, answer_max)) {
        /* It is decided and will be remembered; only its copy for the caller could not be made, or was not wanted.
         * What only reads has done nothing. */
        st = hf_action_reads(request->action) && answer_max == 0 ? HF_NO_MEMORY : HF_INDETERMINATE;
        hf_result_status(result, st);
    }
    return st;
}

enum { CHUNK = 64 };

enum hf_status hf_do_many(struct hf_db *db, const struct hf_request *requests, struct hf_result *results,
                          size_t count)
{
    struct hf_prepared prepared[CHUNK];
    uint64_t needs_most = 0;
    if (count > HF_GROUP_MAX || misused(db))
        return HF_MISUSE;
    if (db->remote)
        return hf_remote_do_many(db->remote, requests, results, count);
    for (size_t from = 0; from < count; from += CHUNK) {
        size_t n = count - from < CHUNK ? count - from : CHUNK;
        for (size_t i = 0; i < n; i++)
            hf_journal_ready(db->journal, &requests[from + i], &prepared[i]);
        hf_engine_lock(db);
        hf_journal_prefetch(db->journal, prepared, n);
        for (size_t i = 0; i < n; i++) {
            uint64_t needs;
            decide(db, &requests[from + i], &prepared[i], results ? &results[from + i] : NULL, 0, &needs);
            if (needs > needs_most)
                needs_most = needs;
        }
        if (from + n < count)
            pthread_mutex_unlock(&db->lock);
    }
    if (count == 0)
        return HF_OK;
    enum hf_status st = hf_engine_wait(db, needs_most);
    pthread_mutex_unlock(&db->lock);
    for (size_t i = 0; st != HF_OK && results && i < count; i++)
        hf_result_status(&results[i], st);
    return st;
}

enum hf_status hf_do(struct hf_db *db, const struct hf_request *request, struct hf_result *result)
{
    struct hf_prepared prepared;
    uint64_t needs;
    if (misused(db)) {
        if (result)
            hf_result_status(result, HF_MISUSE);
        return HF_MISUSE;
    }
    if (db->remote)
        return hf_remote_do(db->remote, request, result);
    hf_journal_ready(db->journal, request, &prepared);
    hf_engine_lock(db);
    enum hf_status st = decide(db, request, &prepared, result, 0, &needs);
    enum hf_status waited = hf_engine_wait(db, needs);
    pthread_mutex_unlock(&db->lock);
    if (waited != HF_OK) {
        st = waited;
        if (result)
            hf_result_status(result, st);
    }
    return st;
}

/* ---- Without waiting ---- */

static void queue(struct hf_db *db, struct hf_op *op)
{
    op->next = NULL;
    if (op->needs <= db->journal->durable) {
        *db->ready_end = op;
        db->ready_end = &op->next;
    } else {
        *db->waiting_end = op;
        db->waiting_end = &op->next;
    }
}

void hf_submit(struct hf_db *db, struct hf_op *first)
{
    struct hf_prepared prepared[CHUNK];
    while (first && misused(db)) {
        struct hf_op *op = first;
        first = op->next;
        op->next = NULL;
        if (op->result)
            hf_result_status(op->result, HF_MISUSE);
        op->done(op, HF_MISUSE);
    }
    if (db->remote && first) {
        hf_remote_submit(db->remote, first);
        return;
    }
    while (first) {
        struct hf_op *op = first;
        size_t n = 0;
        for (; op && n < CHUNK; op = op->next)
            hf_journal_ready(db->journal, op->request, &prepared[n++]);
        hf_engine_lock(db);
        hf_journal_prefetch(db->journal, prepared, n);
        for (size_t i = 0; i < n; i++) {
            struct hf_op *next = first->next;
            first->status =
                decide(db, first->request, &prepared[i], first->result, first->answer_max, &first->needs);
            queue(db, first);
            first = next;
        }
        if (db->committing && write_wanted(db))
            pthread_cond_signal(&db->work);
        promote(db);
        release(db);
        pthread_mutex_unlock(&db->lock);
    }
}

/* With the lock. Wait until everything that is decided is durable. */
static enum hf_status settle(struct hf_db *db)
{
    const struct hf_journal *j = db->journal;
    return hf_engine_wait(db, j->gather.size ? j->gather.base + 1 : j->flight.size ? j->flight.base + 1 : 0);
}

uint32_t hf_timeline(struct hf_db *db)
{
    uint32_t none = 0;
    return db->remote ? hf_remote_timeline(db->remote) : none;
}

enum hf_status hf_barrier(struct hf_db *db)
{
    return hf_barrier_on(db, hf_timeline(db));
}

enum hf_status hf_barrier_on(struct hf_db *db, uint32_t timeline)
{
    if (misused(db))
        return HF_MISUSE;
    if (db->remote)
        return hf_remote_barrier(db->remote, timeline);
    hf_engine_lock(db);
    enum hf_status st = settle(db);
    pthread_mutex_unlock(&db->lock);
    return st;
}

/* With the lock. Commit everything that is decided and call back. */
static void flush(struct hf_db *db)
{
    (void)settle(db);
    promote(db);
    release(db);
    while (db->releasing)
        pthread_cond_wait(&db->landed, &db->lock);
}

void hf_flush(struct hf_db *db)
{
    if (misused(db))
        return;
    if (db->remote) {
        hf_remote_flush(db->remote);
        return;
    }
    hf_engine_lock(db);
    if (db->waiting || db->ready || db->releasing) /* else all that was submitted is answered */
        flush(db);
    pthread_mutex_unlock(&db->lock);
}

/* ---- Background ---- */

static void *commit_loop(void *arg)
{
    struct hf_db *db = arg;
    hf_touch_unblock();
    pthread_mutex_lock(&db->lock);
    while (!db->stopping) {
        if (write_wanted(db))
            write_batch(db);
        else
            pthread_cond_wait(&db->work, &db->lock);
    }
    pthread_mutex_unlock(&db->lock);
    return NULL;
}

/* With the lock. One step of maintenance, if nobody else is in one. */
static bool maintain(struct hf_db *db)
{
    if (db->maintaining || db->failed)
        return false;
    db->maintaining = true;
    bool more = hf_journal_maintain(db->journal, &db->journal_lock);
    db->maintaining = false;
    pthread_cond_broadcast(&db->landed);
    if (write_wanted(db))
        write_batch(db);
    return more;
}

bool hf_maintain(struct hf_db *db)
{
    if (misused(db))
        return false;
    if (db->remote)
        return hf_remote_maintain(db->remote);
    pthread_mutex_lock(&db->lock);
    bool more = maintain(db);
    pthread_mutex_unlock(&db->lock);
    return more;
}

/* How long the maintainer sleeps when there is nothing to do, and between two steps. */
enum { TICK_NS = 50000000, PACE_NS = 500000 };

static void *maintain_loop(void *arg)
{
    struct hf_db *db = arg;
    hf_touch_unblock();
    pthread_mutex_lock(&db->lock);
    while (!db->stopping) {
        /* Between two steps the others have the lock and the disk, unless somebody waits for what is made. */
        bool more = maintain(db);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += !more ? TICK_NS : db->journal->segment_wanted ? 0 : PACE_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&db->tick, &db->lock, &until);
    }
    pthread_mutex_unlock(&db->lock);
    return NULL;
}

/* ---- Opening and closing ---- */

static void db_lock(void *arg)
{
    pthread_mutex_lock(&((struct hf_db *)arg)->lock);
}

static void db_unlock(void *arg)
{
    pthread_mutex_unlock(&((struct hf_db *)arg)->lock);
}

static void threads_stop(struct hf_db *db)
{
    pthread_mutex_lock(&db->lock);
    db->stopping = true;
    pthread_cond_broadcast(&db->work);
    pthread_cond_broadcast(&db->tick);
    pthread_mutex_unlock(&db->lock);
    if (db->committing)
        pthread_join(db->committer, NULL);
    if (db->background)
        pthread_join(db->maintainer, NULL);
    db->committing = db->background = false;
}

static bool threads_start(struct hf_db *db, bool committer)
{
    db->committing = committer; /* before there is anybody who could read it */
    if (committer && pthread_create(&db->committer, NULL, commit_loop, db) != 0) {
        db->committing = false;
        return false;
    }
    db->background = pthread_create(&db->maintainer, NULL, maintain_loop, db) == 0;
    if (!db->background)
        threads_stop(db);
    return db->background;
}

static void db_free(struct hf_db *db)
{
    hf_journal_close(db->journal);
    pthread_cond_destroy(&db->landed);
    pthread_cond_destroy(&db->work);
    pthread_cond_destroy(&db->tick);
    pthread_mutex_destroy(&db->lock);
    free(db);
}

enum hf_status hf_open(const char *path, const struct hf_options *options, struct hf_db **out,
                       struct hf_error *why)
{
    static const struct hf_options defaults;
    struct hf_error ignored;
    if (!options)
        options = &defaults;
    bool memory = !options->postgres && strcmp(path, ":memory:") == 0;
    if (!why)
        why = &ignored;
    *why = (struct hf_error){ .status = HF_OK };
    *out = NULL;
    struct hf_db *db = calloc(1, sizeof *db);
    if (!db) {
        why->status = HF_NO_MEMORY;
        snprintf(why->text, sizeof why->text, "not enough memory to open a store");
        return HF_NO_MEMORY;
    }
    pthread_mutex_init(&db->lock, NULL);
    pthread_cond_init(&db->landed, NULL);
    pthread_cond_init(&db->work, NULL);
    pthread_condattr_t steady; /* a wall clock that is set back must not stop the maintainer */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&db->tick, &steady);
    pthread_condattr_destroy(&steady);
    db->waiting_end = &db->waiting;
    db->ready_end = &db->ready;
    db->journal_lock = (struct hf_lock){ db_lock, db_unlock, db };
    db->on_fatal = options->on_fatal;
    db->arg = options->arg;
    if (options->postgres) {
        enum hf_status opened = hf_remote_open(db, options, &db->remote, why);
        if (opened == HF_OK)
            *out = db;
        else
            db_free(db);
        return opened;
    }
    const struct hf_io *io = memory ? hf_io_memory() : options->io ? options->io : hf_io_os();
    enum hf_status st = hf_journal_open(path, options, io, &db->journal, why);
    if (st != HF_OK) {
        db_free(db);
        return st;
    }
    db->journal->run_apply = hf_engine_run_apply;
    db->journal->run_arg = db;
    if (!options->no_background && !threads_start(db, !options->no_committer)) {
        db_free(db);
        why->status = HF_STORAGE_FAILURE;
        snprintf(why->text, sizeof why->text, "the system gives no threads for the store's background work");
        return HF_STORAGE_FAILURE;
    }
    *out = db;
    return HF_OK;
}

/* Callbacks may submit: flush until nothing is left. */
static void drain(struct hf_db *db)
{
    bool more = true;
    while (more) {
        pthread_mutex_lock(&db->lock);
        flush(db);
        more = db->waiting || db->ready || db->releasing || write_wanted(db);
        pthread_mutex_unlock(&db->lock);
    }
}

void hf_close(struct hf_db *db)
{
    if (!db)
        return;
    if (db->remote) {
        hf_remote_close(db->remote);
        db_free(db);
        return;
    }
    drain(db);
    if (db->background) {
        threads_stop(db);
        drain(db); /* what the last step of maintenance gathered */
    }
    db_free(db);
}
