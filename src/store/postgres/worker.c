/* A worker: takes operations from the queue, runs them as a batch, and continues until every
 * operation has a correct answer. */
#include "base/clock.h"
#include "core/action.h"
#include "core/digest.h"
#include "store/postgres/pool.h"
#include "store/record/options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

/* ---- Answering ---- */

void hf_pool_wake(struct hf_pool *r)
{
    struct hf_pool_worker *chosen = NULL;
    for (unsigned i = HF_POOL_WORKERS; i > 0; i--) {
        struct hf_pool_worker *w = &r->workers[i - 1];
        if (w->idle && (w->session.conn.pg || !chosen || !chosen->session.conn.pg))
            chosen = w;
    }
    if (chosen)
        pthread_cond_signal(&chosen->wake);
}

/* All operations of the batch have an answer: in the result, and in op->status. */
static void answer(struct hf_pool_worker *w)
{
    struct hf_pool *r = w->pool;
    uint64_t answered[2] = { 0, 0 };
    pthread_mutex_lock(&r->lock);
    w->answering = true;
    for (size_t i = 0; i < w->count; i++)
        hf_pool_slots_give_back(r, w->ops[i]);
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < w->count; i++) {
        struct hf_op *op = w->ops[i];
        answered[hf_pool_epoch(op)]++;
        op->next = NULL;
        op->done(op, op->status);
    }
    pthread_mutex_lock(&r->lock);
    r->unanswered[0] -= answered[0];
    r->unanswered[1] -= answered[1];
    r->in_flight -= w->count;
    pthread_cond_broadcast(&r->rest);
    pthread_mutex_unlock(&r->lock);
    w->count = 0;
}

/* cause: of a HF_STORAGE_FAILURE. */
static void fail_one(struct hf_op *op, enum hf_status status, const struct hf_cause *cause)
{
    if (status != HF_STORAGE_FAILURE) {
        op->status = hf_result_status(op->result, status);
        return;
    }
    op->status = hf_result_fault(op->result, cause);
    if (op->result && strcmp(cause->sqlstate, HF_PG_DISK_FULL) == 0)
        op->result->answer.limit = HF_LIMIT_DISK;
}

/* A decision fails only because it cannot read a row. */
static void decided(void *arg, size_t index, const struct hf_plan *plan, hf_time now)
{
    struct hf_pool_worker *w = arg;
    struct hf_op *op = w->ops[index];
    op->status = hf_result_answer(op->request, plan, now, op->answer_max, op->result);
    if (op->status == HF_STORAGE_FAILURE && op->result)
        op->result->answer.cause.fault = HF_FAULT_UNREADABLE;
    w->items[index].replayed = plan->replayed;
}

/* What the database refused, from its last error. */
static struct hf_cause refusal_of(const struct hf_pg_conn *conn)
{
    struct hf_cause cause = { .fault = HF_FAULT_DATABASE_REFUSED };
    if (strcmp(conn->state, HF_PG_UNRULED) != 0)
        memcpy(cause.sqlstate, conn->state, sizeof cause.sqlstate);
    return cause;
}

/* The database is unreachable. A call of a guard still has an answer: the guard's rule. */
static void fail_unanswered(struct hf_pool_worker *w, size_t index, enum hf_status status,
                            const struct hf_cause *cause)
{
    struct hf_pool *r = w->pool;
    hf_time now;
    if (hf_pool_guards_answer(r, w->ops[index]->request, w->session.plan, &now)) {
        decided(w, index, w->session.plan, now);
        return;
    }
    fail_one(w->ops[index], status, cause);
    pthread_mutex_lock(&r->lock);
    r->stats.refusals_storage++;
    pthread_mutex_unlock(&r->lock);
}

/* The batch had no effect. */
static void fail_all(struct hf_pool_worker *w, struct hf_cause cause)
{
    for (size_t i = 0; i < w->count; i++)
        fail_unanswered(w, i, HF_STORAGE_FAILURE, &cause);
}

static void fail_for(struct hf_pool_worker *w, enum hf_fault fault)
{
    fail_all(w, (struct hf_cause){ .fault = fault });
}

/* ---- Deciding ---- */

static void apply(void *arg, const struct hf_request *request, const struct hf_view *view,
                  uint64_t outbox_first, struct hf_plan *plan, hf_time now)
{
    struct hf_pool_worker *w = arg;
    const struct hf_store_host *host = &w->pool->host;
    host->apply(host->arg, request, view, outbox_first, plan, now);
}

static void count(struct hf_pool_worker *w, int64_t begun_ms)
{
    struct hf_pool *r = w->pool;
    uint64_t changed = 0, took_us = (uint64_t)(hf_clock_monotonic_ms() - begun_ms) * 1000;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < w->count; i++) {
        changed += w->items[i].changes;
        r->stats.duplicates += w->items[i].replayed;
        r->stats.races += w->items[i].raced || w->ops[i]->status == HF_IN_PROGRESS;
        r->stats.collisions += w->ops[i]->status == HF_TOKEN_COLLISION;
    }
    r->stats.operations += w->count;
    if (changed > 0) {
        r->stats.batches++;
        r->stats.syncs++;
        r->stats.batched += changed;
        r->stats.commits_by_time[hf_histogram_place(took_us, 32)]++;
        r->stats.commits_by_size[hf_histogram_place(changed, 1)]++;
        r->stats.sync_ns_total += took_us * 1000;
        if (took_us * 1000 > r->stats.sync_ns_max)
            r->stats.sync_ns_max = took_us * 1000;
    }
    pthread_mutex_unlock(&r->lock);
    if (changed > 0)
        hf_pool_note_head(w, false);
}

void hf_pool_note_head(struct hf_pool_worker *w, bool now)
{
    enum { HOUR_MS = 3600000 };
    const struct hf_pg_session *s = &w->session;
    int64_t clock = hf_clock_monotonic_ms();
    char line[160];
    if (s->writer == 0 || s->batch == 0 ||
        (!now && w->head_noted_ms && clock - w->head_noted_ms < HOUR_MS))
        return;
    w->head_noted_ms = clock;
    int used = snprintf(line, sizeof line, "chain head of writer %" PRId32 ": ", s->writer);
    for (size_t i = 0; i < HF_DIGEST_SIZE; i++)
        used += snprintf(line + used, sizeof line - (size_t)used, "%02x", s->chain[i]);
    snprintf(line + used, sizeof line - (size_t)used, " after batch %" PRId64, s->batch);
    hf_pool_note(w->pool, 0, line);
}

/* Log the events of the clock, and once that it was set back. */
void hf_pool_clock_note(struct hf_pool *r)
{
    bool is_new;
    struct hf_pg_said said;
    while (hf_pg_clock_said(&r->shared, &said))
        hf_pool_note(r, said.level, said.line);
    if (atomic_load(&r->shared.stalls) == 0)
        return;
    pthread_mutex_lock(&r->lock);
    is_new = !r->behind_said;
    r->behind_said = true;
    pthread_mutex_unlock(&r->lock);
    if (is_new)
        hf_pool_note(r, 1,
                     "the database's clock is behind engine time: engine time stands still "
                     "until the clock has caught up");
}

/* ---- Lost connections ---- */

static void pause_ms(struct hf_pool_worker *w, unsigned least, unsigned most)
{
    unsigned ms = least + (unsigned)rand_r(&w->seed) % (most - least + 1);
    struct timespec span = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    nanosleep(&span, NULL);
}

/* Until when a batch may wait for the database: some seconds in total, not for each batch while it
 * is unreachable. */
static int64_t patience_until(struct hf_pool_worker *w, int64_t wait_ms)
{
    struct hf_pool *r = w->pool;
    int64_t now = hf_clock_monotonic_ms();
    pthread_mutex_lock(&r->lock);
    int64_t until = r->away_since_ms ? r->away_since_ms + wait_ms : now + wait_ms;
    pthread_mutex_unlock(&r->lock);
    return until;
}

/* Connect, and retry until the time is up. committed: out, the outcome of the batch whose outcome
 * was unknown. */
static enum hf_pg_outcome reach(struct hf_pool_worker *w, int64_t until, bool *committed)
{
    unsigned wait = 20;
    for (;;) {
        enum hf_pg_outcome outcome = hf_pg_session_connect(&w->session, committed);
        if (outcome == HF_PG_FINE) {
            hf_pool_back(w->pool);
            return outcome;
        }
        hf_pool_away(w->pool, w->session.conn.why);
        if (hf_clock_monotonic_ms() >= until)
            return outcome;
        pause_ms(w, wait, 2 * wait);
        wait = wait < 500 ? wait * 2 : wait;
    }
}

/* Withhold the operation's answer: it may be wrong. A call that may have been answered before is
 * indeterminate, not failed. */
static void take_back(struct hf_pool_worker *w, size_t i)
{
    w->items[i].replayed = w->items[i].raced = false;
    bool reads = hf_action_reads(w->ops[i]->request->action);
    fail_unanswered(w, i, reads ? HF_STORAGE_FAILURE : HF_INDETERMINATE,
                    &(struct hf_cause){ .fault = HF_FAULT_STANDBY });
}

/* COMMIT was sent and no answer came, or not from the newest primary. True: it was committed. False
 * with *again: it was not. False without: unknown. */
static bool settle_doubt(struct hf_pool_worker *w, bool *again)
{
    bool committed = false;
    uint32_t timeline = w->session.conn.timeline; /* timeline of the answers */
    hf_pg_disconnect(&w->session.conn);
    *again = false;
    if (reach(w, hf_clock_monotonic_ms() + HF_POOL_DOUBT_MS, &committed) == HF_PG_FINE) {
        *again = !committed;
        return committed;
    }
    bool is_old = timeline && timeline < atomic_load(&w->pool->shared.timeline);
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].waits)
            fail_one(w->ops[i], HF_INDETERMINATE, NULL);
        else if (is_old)
            take_back(w, i);
    return false;
}

/* Answers that saw rows which a standby may not have wait until it has them. After a timeout they
 * fail as if the database were unreachable. */
static void hold_back(struct hf_pool_worker *w)
{
    bool proven;
    if (hf_pool_confirm(w->pool, w->session.conn.timeline, &proven)) {
        if (proven)
            hf_pg_batch_sure(&w->session);
        return;
    }
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].waits)
            take_back(w, i);
}

/* Connect for a batch. False: all its operations have failed. */
static bool reached(struct hf_pool_worker *w)
{
    enum hf_pg_outcome outcome = reach(w, patience_until(w, HF_POOL_AWAY_MS), NULL);
    if (outcome == HF_PG_REFUSED)
        fail_all(w, refusal_of(&w->session.conn));
    else if (outcome != HF_PG_FINE)
        fail_for(w, HF_FAULT_DATABASE_AWAY);
    return outcome == HF_PG_FINE;
}

/* ---- One batch ---- */

bool hf_pool_is_about_one(const struct hf_pg_conn *conn)
{
    const char *state = conn->state;
    return state[0] == '\0' || strncmp(state, "22", 2) == 0 || strncmp(state, "23", 2) == 0 ||
           strncmp(state, "54", 2) == 0;
}

static bool has_changed(const struct hf_pool_worker *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].changes)
            return true;
    return false;
}

/* Has the operation waited long enough for a locked row? */
static bool has_waited(const struct hf_op *op)
{
    return hf_clock_monotonic_ms() - hf_pool_since(op) >= HF_POOL_LOCKED_MS;
}

/* Run the batch until all its operations have an answer. False: try them one by one. */
static bool batch_run(struct hf_pool_worker *w)
{
    struct hf_pg_batch batch = {
        .items = w->items, .count = w->count, .decided = decided, .apply = apply, .arg = w
    };
    const struct hf_pg_conn *conn = &w->session.conn;
    int64_t first_ms = hf_clock_monotonic_ms();
    bool again = true;
    for (unsigned tries = 0; again; tries++) {
        batch.careful = tries > 0 || hf_pool_alone(w->ops[0]);
        batch.hurries =
            w->tried && !w->stuck && tries == 0; /* test whether its row is the locked one */
        int64_t begun_ms = hf_clock_monotonic_ms();
        if (!conn->pg && !reached(w))
            return true;
        enum hf_pg_end end = hf_pg_batch_run(&w->session, &batch);
        if (end == HF_PG_UNSURE)
            hold_back(w);
        switch (end) {
        case HF_PG_DONE:
        case HF_PG_UNSURE:
            if (w->stuck)
                hf_pool_stuck_forget(w->pool, w->ops[0]);
            if (has_changed(w))
                hf_pool_refused(w->pool, NULL);
            hf_pool_guards_learn(w->pool, &w->session.set);
            count(w, begun_ms);
            hf_pool_clock_note(w->pool);
            return true;
        case HF_PG_AGAIN:
            if (tries >= 10 && w->count > 1)
                return false;
            if (tries >= 200) {
                fail_for(w, HF_FAULT_CONFLICTS);
                return true;
            }
            if (tries > 2)
                pause_ms(w, 1, tries < 20 ? 5 : 25);
            break;
        case HF_PG_STUCK:
            if (w->count > 1)
                return false;
            if (w->ops[0]->request->action == HF_APPLY) { /* another function runs for its tenant */
                again = tries < 2;
                if (!again)
                    fail_for(w, HF_FAULT_LOCKED);
                break;
            }
            hf_pool_stuck_learn(w->pool, w->ops[0], w->session.stuck_at_guards);
            if (!has_waited(w->ops[0]))
                return false;
            fail_for(w, HF_FAULT_LOCKED);
            return true;
        case HF_PG_NO:
            if (w->count > 1 && hf_pool_is_about_one(conn))
                return false;
            hf_pool_refused(w->pool, conn);
            fail_all(w, refusal_of(conn));
            return true;
        case HF_PG_GONE: /* connect, and start again */
            again = tries < 20 && hf_clock_monotonic_ms() - first_ms < 2 * HF_POOL_AWAY_MS;
            if (!again)
                fail_for(w, HF_FAULT_DATABASE_AWAY);
            else if (tries > 0)
                pause_ms(w, 5, 50);
            break;
        case HF_PG_DOUBT:
            if (settle_doubt(w, &again))
                count(w, begun_ms);
            break;
        }
    }
    return true;
}

static void work_once(struct hf_pool_worker *w)
{
    for (size_t i = 0; i < w->count; i++) {
        w->items[i] = (struct hf_pg_item){ .request = w->ops[i]->request };
        hf_digest(w->ops[i]->request, w->items[i].digest);
    }
    /* It has waited in the queue while others tried to get the lock. */
    bool is_late = w->stuck && has_waited(w->ops[0]);
    if (is_late)
        fail_for(w, HF_FAULT_LOCKED);
    if (is_late || batch_run(w)) {
        answer(w);
        return;
    }
    pthread_mutex_lock(&w->pool->lock);
    hf_pool_give_back(w);
    pthread_mutex_unlock(&w->pool->lock);
}

static void wait_a_little(struct hf_pool_worker *w)
{
    struct hf_pool *r = w->pool;
    r->watchers++;
    w->idle = true;
    (void)hf_clock_wait(&w->wake, &r->lock,
                        hf_clock_monotonic_ns() + HF_POOL_SLOW_MS / 2 * 1000000L);
    w->idle = false;
    r->watchers--;
}

void *hf_pool_worker_run(void *arg)
{
    struct hf_pool_worker *w = arg;
    struct hf_pool *r = w->pool;
    pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        if (hf_pool_take(w)) {
            w->begun_ms = hf_clock_monotonic_ms();
            r->busy++;
            if (r->watchers == 0) /* one worker must watch whether it becomes slow */
                hf_pool_wake(r);
            pthread_mutex_unlock(&r->lock);
            bool took = w->count > 0;
            if (took)
                work_once(w);
            pthread_mutex_lock(&r->lock);
            r->stuck_busy = r->stuck_busy && !w->stuck;
            r->tried_busy -= w->tried;
            r->queue.bulk_busy -= w->bulk;
            w->begun_ms = 0;
            w->answering = w->stuck = w->tried = w->bulk = false;
            r->busy--;
            if (!took) /* all its operations must wait behind another one */
                wait_a_little(w);
            if (r->queued > 0 && r->busy == 0)
                hf_pool_wake(r);
        } else if (r->queued > 0 || r->busy > 0) { /* a batch may become slow */
            wait_a_little(w);
        } else {
            w->idle = true;
            pthread_cond_wait(&w->wake, &r->lock);
            w->idle = false;
        }
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}
