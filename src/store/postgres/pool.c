#include "store/postgres/pool.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/postgres/conninfo.h"
#include "store/postgres/migrate.h"
#include "store/postgres/postgres.h"
#include "store/record/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- Log lines for the operator ---- */

void hf_pool_note(struct hf_pool *r, int level, const char *line)
{
    if (r->options.on_note)
        r->options.on_note(r->options.arg, level, line);
}

/* Log the line, unless it was logged within the last minute: a lasting problem may alternate
 * between several texts. */
static void complain(struct hf_pool *r, const char *line)
{
    enum { COUNT = sizeof r->complaints / sizeof *r->complaints, AGAIN_MS = 60000 };
    int64_t now = hf_clock_monotonic_ms();
    size_t at = 0;
    pthread_mutex_lock(&r->lock);
    while (at < COUNT - 1 && strcmp(r->complaints[at].line, line) != 0)
        at++;
    struct hf_pool_complaint *known = &r->complaints[at];
    bool again = strcmp(known->line, line) == 0 && now - known->said_ms < AGAIN_MS;
    if (!again) {
        memmove(r->complaints + 1, r->complaints, at * sizeof *r->complaints);
        r->complaints[0].said_ms = now;
        snprintf(r->complaints[0].line, sizeof r->complaints[0].line, "%s", line);
    }
    pthread_mutex_unlock(&r->lock);
    if (!again)
        hf_pool_note(r, 1, line);
}

/* With the lock. The problem is over: log it again if it returns. */
static void complaints_forget(struct hf_pool *r)
{
    memset(r->complaints, 0, sizeof r->complaints);
}

void hf_pool_away(struct hf_pool *r, const char *why)
{
    char line[480];
    bool silent = hf_pool_silent_ms(r) > 0;
    pthread_mutex_lock(&r->lock);
    if (r->away_since_ms == 0)
        r->away_since_ms = hf_clock_monotonic_ms();
    r->away_said = r->away_said || !silent;
    pthread_mutex_unlock(&r->lock);
    if (silent)
        return;
    snprintf(line, sizeof line, "the database cannot be reached: %.400s",
             why[0] ? why : "the connection was lost");
    complain(r, line);
}

void hf_pool_back(struct hf_pool *r)
{
    bool was_away;
    pthread_mutex_lock(&r->lock);
    was_away = r->away_said;
    r->away_since_ms = 0;
    r->away_said = false;
    if (was_away)
        complaints_forget(r);
    pthread_mutex_unlock(&r->lock);
    if (was_away)
        hf_pool_note(r, 0, "the database can be reached again");
}

void hf_pool_refused(struct hf_pool *r, const struct hf_pg_conn *conn)
{
    char line[480];
    bool was_refused;
    pthread_mutex_lock(&r->lock);
    was_refused = r->refused;
    if (!conn || conn->state[0]) { /* else the error is not from the database */
        r->refused = conn != NULL;
        r->is_full = conn && strcmp(conn->state, HF_PG_DISK_FULL) == 0;
    }
    if (was_refused && !conn)
        complaints_forget(r);
    pthread_mutex_unlock(&r->lock);
    if (conn) {
        snprintf(line, sizeof line, "%s: %.400s",
                 conn->state[0] ? "the database refuses a batch" : "a batch failed", conn->why);
        complain(r, line);
    } else if (was_refused) {
        hf_pool_note(r, 0, "the database accepts writes again");
    }
}

/* ---- The queue ---- */

static void submit(struct hf_store *store, struct hf_op *first)
{
    struct hf_pool *r = hf_pool_of(store);
    uint64_t count = 0;
    int64_t now = hf_clock_monotonic_ms();
    for (struct hf_op *op = first; op; op = op->next) {
        op->needs = hf_pool_ticket(now, 0, hf_pool_row(op->request));
        count++;
    }
    pthread_mutex_lock(&r->lock);
    for (struct hf_op *op = first; op; op = op->next)
        op->needs |= r->epoch;
    hf_pool_queue_add(r, first, now);
    r->unanswered[r->epoch] += count;
    /* A busy worker takes it when it is free; waking a worker that has no turn would cost more than
     * the request. */
    if (r->busy == 0 || (r->busy < HF_POOL_BUSY && r->queued >= HF_POOL_FULL) ||
        (r->queue.bulk_busy > 0 && hf_pool_queue_mixed(r, now)))
        hf_pool_wake(r);
    pthread_mutex_unlock(&r->lock);
}

void hf_pool_flush(struct hf_store *store)
{
    struct hf_pool *r = hf_pool_of(store);
    pthread_mutex_lock(&r->lock);
    while (r->flushing)
        pthread_cond_wait(&r->rest, &r->lock);
    r->flushing = true;
    unsigned old = r->epoch;
    r->epoch = 1 - old;
    while (r->unanswered[old] > 0)
        pthread_cond_wait(&r->rest, &r->lock);
    r->flushing = false;
    pthread_cond_broadcast(&r->rest);
    pthread_mutex_unlock(&r->lock);
}

/* ---- Waiting for an answer ---- */

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t done;
    size_t left;
};

static void waiting_done(struct hf_op *op, enum hf_status status)
{
    struct waiting *w = op->arg;
    pthread_mutex_lock(&w->lock);
    op->status = status;
    if (--w->left == 0)
        pthread_cond_signal(&w->done);
    pthread_mutex_unlock(&w->lock);
}

static void wait_for(struct hf_store *store, struct waiting *w, struct hf_op *first)
{
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->done, NULL);
    submit(store, first);
    pthread_mutex_lock(&w->lock);
    while (w->left > 0)
        pthread_cond_wait(&w->done, &w->lock);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_destroy(&w->done);
    pthread_mutex_destroy(&w->lock);
}

static enum hf_status decide(struct hf_store *store, const struct hf_request *request,
                             struct hf_result *result)
{
    struct waiting w = { .left = 1 };
    struct hf_op op = { .request = request, .result = result, .done = waiting_done, .arg = &w };
    wait_for(store, &w, &op);
    return op.status;
}

static enum hf_status decide_many(struct hf_store *store, const struct hf_request *requests,
                                  struct hf_result *results, size_t count)
{
    struct waiting w = { .left = count };
    if (count == 0)
        return HF_OK;
    struct hf_op *ops = calloc(count, sizeof *ops);
    if (!ops)
        return HF_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        ops[i] = (struct hf_op){ .request = &requests[i],
                                 .result = results ? &results[i] : NULL,
                                 .done = waiting_done,
                                 .arg = &w,
                                 .order_key = ops,
                                 .next = i + 1 < count ? &ops[i + 1] : NULL };
    wait_for(store, &w, ops);
    enum hf_status st = HF_OK;
    for (size_t i = 0; i < count; i++)
        if (ops[i].status == HF_INDETERMINATE)
            st = HF_INDETERMINATE;
    free(ops);
    return st;
}

/* ---- Opening and closing ---- */

static enum hf_status fault(struct hf_error *why, enum hf_status status, const char *doing,
                            const char *what)
{
    return hf_error_set(why, status, "%.100s: %.380s", doing, what);
}

/* Check the database on a separate connection: it may have no tables yet. */
static enum hf_status prepare(struct hf_pool *r, struct hf_rules *rules, struct hf_error *why)
{
    struct hf_pg_conn conn = { .patience_ms = 120000 };
    if (hf_pg_connect(&conn, r->conninfo, false) != HF_PG_FINE)
        return fault(why, HF_STORAGE_FAILURE, "PostgreSQL cannot be used", conn.why);
    enum hf_status st = hf_pg_migrate(&conn, &r->options, &r->shared, rules, why);
    hf_pg_disconnect(&conn);
    return st;
}

/* CONFIGURE_MS: how long a start tries to write its configuration while other transactions block
 * it. LEAST and MOST: its first and its longest lock timeout. The timeout doubles, because it must
 * outlast their longest commit; between two tries the others continue. */
enum { CONFIGURE_MS = 10000, CONFIGURE_LEAST_MS = 100, CONFIGURE_MOST_MS = 1000 };

/* The first session writes a new configuration into the journal. */
static enum hf_status configure(struct hf_pool *r, const struct hf_rules *in_force,
                                struct hf_error *why)
{
    struct hf_pg_session *s = &r->workers[0].session;
    struct hf_rules rules = hf_pg_rules_wanted(&r->options, in_force);
    PGresult *result = NULL;
    if (hf_pg_session_connect(s, NULL) != HF_PG_FINE)
        return fault(why, HF_STORAGE_FAILURE, "PostgreSQL cannot be used", s->conn.why);
    if (hf_pg_ask(&s->conn, "SELECT program = 'none' FROM holdfast.store", 0, NULL, false,
                  &result) != HF_PG_FINE)
        return fault(why, HF_STORAGE_FAILURE, "cannot read holdfast.store", s->conn.why);
    bool is_new = strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    bool changed = rules.idempotency_window_ms != in_force->idempotency_window_ms ||
                   rules.token_max_length != in_force->token_max_length ||
                   rules.registry_strict != in_force->registry_strict;
    enum hf_pg_end end = is_new || changed ? HF_PG_AGAIN : HF_PG_DONE;
    int64_t until = hf_clock_monotonic_ms() + CONFIGURE_MS;
    for (int patience_ms = CONFIGURE_LEAST_MS; end == HF_PG_AGAIN || end == HF_PG_STUCK;) {
        struct timespec pause = { patience_ms / 1000, patience_ms % 1000 * 1000000L };
        end = hf_pg_configure(s, &r->options, patience_ms);
        patience_ms = patience_ms * 2 < CONFIGURE_MOST_MS ? patience_ms * 2 : CONFIGURE_MOST_MS;
        if (end == HF_PG_DONE || hf_clock_monotonic_ms() >= until)
            break;
        nanosleep(&pause, NULL);
    }
    if (end == HF_PG_DOUBT)
        return fault(why, HF_INDETERMINATE, "the new configuration may or may not be in force",
                     s->conn.warned
                         ? "the database has committed it, but no synchronous standby has "
                           "confirmed it. Start again when a standby is available"
                         : s->conn.why);
    if (end != HF_PG_DONE)
        return fault(why, HF_STORAGE_FAILURE, "cannot write the configuration", s->conn.why);
    enum hf_status failed =
        is_new || changed ? HF_INDETERMINATE : HF_STORAGE_FAILURE; /* the configuration is written
                                                                    * by now */
    if (hf_pg_look(s) != HF_PG_DONE)
        return fault(why, failed, "cannot read the time from the database", s->conn.why);
    if (hf_pool_guards_read(r, s) != HF_PG_FINE)
        return fault(why, failed, "cannot read holdfast.guard", s->conn.why);
    char line[400];
    snprintf(line, sizeof line, "%s store in the database %.100s at %.200s, port %.10s",
             is_new ? "created a new" : "opened the", PQdb(s->conn.pg), PQhost(s->conn.pg),
             PQport(s->conn.pg));
    hf_pool_note(r, 0, line);
    return HF_OK;
}

static void threads_stop(struct hf_pool *r)
{
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    for (unsigned i = 0; i < HF_POOL_WORKERS; i++)
        pthread_cond_signal(&r->workers[i].wake);
    pthread_mutex_unlock(&r->lock);
    hf_worker_stop(&r->maintainer);
    for (unsigned i = 0; i < HF_POOL_WORKERS; i++)
        if (r->workers[i].started)
            pthread_join(r->workers[i].thread, NULL);
    hf_pool_confirm_stop(r);
}

static bool threads_start(struct hf_pool *r)
{
    for (unsigned i = 0; i < HF_POOL_WORKERS; i++) {
        struct hf_pool_worker *w = &r->workers[i];
        w->started = pthread_create(&w->thread, NULL, hf_pool_worker_run, w) == 0;
        if (!w->started)
            return false;
    }
    if (!hf_pool_confirm_start(r))
        return false;
    return r->options.no_background || hf_worker_start(&r->maintainer, hf_pool_maintain_pace, r);
}

static void pool_free(struct hf_pool *r)
{
    for (unsigned i = 0; i < HF_POOL_WORKERS; i++) {
        pthread_cond_destroy(&r->workers[i].wake);
        hf_pg_session_free(&r->workers[i].session);
        free(r->workers[i].ops);
        free(r->workers[i].items);
    }
    hf_pg_session_free(&r->sweeper);
    hf_pg_session_free(&r->reader);
    hf_pool_confirm_free(r);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->sweeper_lock);
    pthread_mutex_destroy(&r->reader_lock);
    pthread_mutex_destroy(&r->shared.clock_lock);
    pthread_cond_destroy(&r->rest);
    hf_pool_guards_free(r->guards);
    free(r->conninfo);
    free(r);
}

static void close_store(struct hf_store *store)
{
    struct hf_pool *r = hf_pool_of(store);
    pthread_mutex_lock(&r->lock);
    while (r->unanswered[0] + r->unanswered[1] > 0)
        pthread_cond_wait(&r->rest, &r->lock);
    pthread_mutex_unlock(&r->lock);
    threads_stop(r);
    for (unsigned i = 0; i < HF_POOL_WORKERS; i++)
        hf_pool_note_head(&r->workers[i], true);
    pool_free(r);
}

static uint32_t timeline(struct hf_store *store)
{
    return atomic_load(&hf_pool_of(store)->shared.timeline);
}

/* The rows are in the database, not in our memory: nothing is counted by tenant. */
static size_t usage(struct hf_store *store, struct hf_usage *list, size_t max,
                    struct hf_usage *others)
{
    (void)store, (void)list, (void)max, (void)others;
    return 0;
}

static void usage_of(struct hf_store *store, struct hf_bytes tenant, struct hf_usage *out)
{
    (void)store, (void)tenant, (void)out;
}

static const struct hf_store_operations operations = {
    .close = close_store,
    .decide = decide,
    .decide_many = decide_many,
    .submit = submit,
    .flush = hf_pool_flush,
    .barrier = hf_pool_barrier,
    .timeline = timeline,
    .head = hf_pool_head,
    .maintain = hf_pool_maintain,
    .list = hf_pool_list,
    .stats = hf_pool_stats,
    .usage = usage,
    .usage_of = usage_of,
};

static void name_make(char *name, size_t size)
{
    char host[64] = "";
    (void)gethostname(host, sizeof host - 1);
    snprintf(name, size, "%s, process %ld", host[0] ? host : "unknown host", (long)getpid());
}

static struct hf_pool *pool_make(const struct hf_options *options, const struct hf_store_host *host)
{
    struct hf_pool *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->store.does = &operations;
    r->host = *host;
    r->options = *options;
    hf_pool_queue_init(&r->queue);
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->sweeper_lock, NULL);
    pthread_mutex_init(&r->reader_lock, NULL);
    pthread_mutex_init(&r->shared.clock_lock, NULL);
    for (unsigned i = 0; i < HF_POOL_WORKERS; i++)
        hf_clock_cond_init(&r->workers[i].wake);
    pthread_cond_init(&r->rest, NULL);
    name_make(r->shared.name, sizeof r->shared.name);
    r->conninfo = strdup(options->postgres);
    r->shared.conninfo = r->conninfo;
    r->shared.io = options->io;
    r->guards = hf_pool_guards_make();
    bool good = r->conninfo && r->guards;
    for (unsigned i = 0; i < HF_POOL_WORKERS; i++) {
        struct hf_pool_worker *w = &r->workers[i];
        w->pool = r;
        w->index = i;
        w->seed = (unsigned)getpid() * 16 + i;
        w->ops = calloc(HF_PG_BATCH_MAX, sizeof *w->ops);
        w->items = calloc(HF_PG_BATCH_MAX, sizeof *w->items);
        good = hf_pg_session_init(&w->session, &r->shared) && good && w->ops && w->items;
    }
    good = hf_pg_session_init(&r->sweeper, &r->shared) && good;
    good = hf_pg_session_init(&r->reader, &r->shared) && good;
    good = hf_pool_confirm_make(r) && good;
    if (good)
        return r;
    pool_free(r);
    return NULL;
}

enum hf_status hf_postgres_open(const struct hf_options *options, const struct hf_store_host *host,
                                struct hf_store **out, struct hf_error *why)
{
    struct hf_rules rules;
    enum hf_status st = hf_options_check(options, why);
    if (st == HF_OK)
        st = hf_conninfo_check(options->postgres, why);
    if (st != HF_OK)
        return st;
    struct hf_pool *r = pool_make(options, host);
    if (!r)
        return fault(why, HF_NO_MEMORY, "cannot open the store", "not enough memory");
    st = prepare(r, &rules, why);
    if (st == HF_OK)
        st = configure(r, &rules, why);
    if (st == HF_OK && !threads_start(r)) {
        threads_stop(r);
        st = fault(why, HF_STORAGE_FAILURE, "cannot open the store",
                   "cannot start its background threads");
    }
    if (st == HF_OK)
        *out = &r->store;
    else
        pool_free(r);
    return st;
}
