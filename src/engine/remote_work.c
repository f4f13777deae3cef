/* A worker: takes what waits, runs it as a batch, and goes on until every operation has an answer that is true. */
#include "core/digest.h"
#include "engine/remote_inner.h"

#include <stdlib.h>
#include <time.h>

/* ---- Taking ---- */

/* How much memory a batch may need before it is enough, by what its requests bring and by a part of what may be stored for
 * them: a response of a claim or a result of a guard is read with its row, and few are as large as they may be. At the worst a
 * batch reads four times as much. */
enum { BYTES_MAX = 64 << 20 };

static size_t weight(const struct hf_request *q)
{
    switch (q->action) {
    case HF_CHECK:
    case HF_RECORD:
    case HF_ADMIT: return HF_GUARD_RESULT_MAX / 4 + q->identity.result.size;
    case HF_COMPLETE:
    case HF_FAIL:
    case HF_HEARTBEAT: return HF_RESPONSE_MAX / 4 + q->settle.response.size;
    case HF_WRITE: return 1024 + q->write.value.size;
    case HF_MERGE: return 1024 + HF_VALUE_MAX;
    case HF_GET_CLAIM:
    case HF_GET_TOKEN:
    case HF_BEGIN: return HF_RESPONSE_MAX / 4;
    default: return 1024;
    }
}

/* May this worker have the operation now? */
static bool may_take(struct hf_remote_worker *w, const struct hf_op *op)
{
    const struct hf_remote_lane *lane = hf_remote_lane(w->remote, op);
    return !lane || lane->count == 0 || lane->worker == w->index;
}

/* Has another worker a batch under way that needs the same row? Two of them at once would wait for each other, or one would
 * begin again. Who has it for long is not waited for. */
static bool is_row_busy(const struct hf_remote_worker *w, const struct hf_op *op)
{
    const struct hf_remote_lane *row = hf_remote_row_lane(w->remote, op);
    if (!row || row->count == 0 || row->worker == w->index)
        return false;
    return hf_remote_clock_ms() - w->remote->workers[row->worker].begun_ms <= HF_REMOTE_SLOW_MS;
}

/* Its lane and its row are this worker's from now on. */
static void lane_take(struct hf_remote_worker *w, const struct hf_op *op)
{
    struct hf_remote_lane *const lanes[] = { hf_remote_lane(w->remote, op),
                                             hf_remote_row_lane(w->remote, op) };
    for (int i = 0; i < 2; i++)
        if (lanes[i]) {
            lanes[i]->count++;
            lanes[i]->worker = w->index;
        }
}

static void lane_give_back(struct hf_remote *r, const struct hf_op *op)
{
    struct hf_remote_lane *const lanes[] = { hf_remote_lane(r, op), hf_remote_row_lane(r, op) };
    for (int i = 0; i < 2; i++)
        if (lanes[i])
            lanes[i]->count--;
}

/* Lanes of which an operation was passed over: what is behind it stays behind it. */
struct passed {
    bool any;
    bool lanes[HF_REMOTE_LANES];
};

static void pass_over(struct passed *passed, struct hf_remote *r, const struct hf_op *op)
{
    const struct hf_remote_lane *lane = hf_remote_lane(r, op);
    if (!lane)
        return;
    if (!passed->any)
        memset(passed->lanes, 0, sizeof passed->lanes);
    passed->any = passed->lanes[lane - r->lanes] = true;
}

static bool is_passed(const struct passed *passed, struct hf_remote *r, const struct hf_op *op)
{
    const struct hf_remote_lane *lane = passed->any ? hf_remote_lane(r, op) : NULL;
    return lane && passed->lanes[lane - r->lanes];
}

/* Must the operation wait until fewer of its sort are under way? Those that were tried in vain and are tried alone may wait for
 * a row that is locked: they never have all workers. Of those whose row is known to be locked there is one at a time. */
static bool must_wait(struct hf_remote *r, const struct hf_op *op, bool stuck)
{
    return (stuck && r->stuck_busy) || (hf_remote_tried(op) && r->tried_busy >= HF_REMOTE_BUSY);
}

/* With the lock. Take what waits, in order, as much as a batch holds. */
static void batch_take(struct hf_remote_worker *w)
{
    struct hf_remote *r = w->remote;
    struct hf_op **at = &r->first;
    struct passed passed = { .any = false };
    size_t bytes = 0;
    w->count = 0;
    while (*at && w->count < HF_PG_BATCH_MAX && bytes < BYTES_MAX && !w->stuck) {
        struct hf_op *op = *at;
        bool stuck = hf_remote_is_stuck(r, op);
        bool later = must_wait(r, op, stuck) || (stuck && w->count > 0) || is_row_busy(w, op);
        if (later)
            pass_over(&passed, r, op);
        if (later || !may_take(w, op) || is_passed(&passed, r, op)) {
            at = &op->next;
            continue;
        }
        if (hf_remote_alone(op) && w->count > 0)
            break; /* what is behind it may be of its lane */
        *at = op->next;
        if (r->end == &op->next)
            r->end = at;
        lane_take(w, op);
        w->ops[w->count++] = op;
        bytes += weight(op->request);
        w->stuck = stuck;
        w->tried = hf_remote_tried(op);
        if (hf_remote_alone(op))
            break;
    }
    r->stuck_busy = r->stuck_busy || w->stuck;
    r->tried_busy += w->tried;
    r->queued -= w->count;
    r->in_flight += w->count;
}

/* With the lock. Give operations back to the front of the queue, each to be tried alone. */
static void batch_return(struct hf_remote_worker *w)
{
    struct hf_remote *r = w->remote;
    for (size_t i = w->count; i > 0; i--) {
        struct hf_op *op = w->ops[i - 1];
        lane_give_back(r, op);
        op->needs |= 2;
        op->next = r->first;
        if (!r->first)
            r->end = &op->next;
        r->first = op;
    }
    r->queued += w->count;
    r->in_flight -= w->count;
    w->count = 0;
}

/* ---- Answering ---- */

void hf_remote_wake(struct hf_remote *r)
{
    struct hf_remote_worker *chosen = NULL;
    for (unsigned i = HF_REMOTE_WORKERS; i > 0; i--) {
        struct hf_remote_worker *w = &r->workers[i - 1];
        if (w->idle && (w->session.conn.pg || !chosen || !chosen->session.conn.pg))
            chosen = w;
    }
    if (chosen)
        pthread_cond_signal(&chosen->wake);
}

/* Is there a worker that has a connection, and is idle or about to be? Who has none lets it go first, and wakes it. */
static bool is_better_one(const struct hf_remote_worker *w)
{
    bool found = false;
    for (unsigned i = 0; i < HF_REMOTE_WORKERS && !w->session.conn.pg; i++) {
        struct hf_remote_worker *other = &w->remote->workers[i];
        if ((other->begun_ms && !other->answering) || !other->session.conn.pg) /* who is busy may change it */
            continue;
        found = true;
        if (other->idle)
            pthread_cond_signal(&other->wake);
    }
    return found;
}

/* Is there something in the queue that this worker may take, and is it its turn? */
static bool has_turn(struct hf_remote_worker *w)
{
    struct hf_remote *r = w->remote;
    if (!r->first)
        return false;
    if (is_better_one(w))
        return false;
    unsigned most = r->queued >= HF_REMOTE_FULL ? HF_REMOTE_BUSY : 1;
    if (r->busy >= most) {
        int64_t now = hf_remote_clock_ms();
        unsigned slow = 0;
        for (unsigned i = 0; i < HF_REMOTE_WORKERS; i++)
            slow += r->workers[i].begun_ms && now - r->workers[i].begun_ms > HF_REMOTE_SLOW_MS;
        if (r->busy - slow >= most)
            return false;
    }
    for (const struct hf_op *op = r->first; op; op = op->next)
        if (may_take(w, op) && !is_row_busy(w, op) &&
            !must_wait(r, op, r->stuck_busy && hf_remote_is_stuck(r, op)))
            return true;
    return false;
}

/* All operations of the batch have their answer: in the result, and in op->status. */
static void answer(struct hf_remote_worker *w)
{
    struct hf_remote *r = w->remote;
    uint64_t answered[2] = { 0, 0 };
    pthread_mutex_lock(&r->lock);
    w->answering = true;
    for (size_t i = 0; i < w->count; i++)
        lane_give_back(r, w->ops[i]);
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < w->count; i++) {
        struct hf_op *op = w->ops[i];
        answered[hf_remote_epoch(op)]++;
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

static void fail_one(struct hf_op *op, enum hf_status status)
{
    op->status = status;
    if (op->result)
        hf_result_status(op->result, status);
}

static void decided(void *arg, size_t index, const struct hf_plan *plan, hf_time now)
{
    struct hf_remote_worker *w = arg;
    struct hf_op *op = w->ops[index];
    op->status = op->request->action == HF_GET_TOKEN && plan->token.action != 0 ? HF_OK : plan->answer.status;
    if (op->result && !hf_result_fill(op->result, plan, now, op->answer_max))
        fail_one(op, hf_action_reads(op->request->action) && op->answer_max == 0 ? HF_NO_MEMORY
                                                                                 : HF_INDETERMINATE);
    w->items[index].replayed = plan->replayed;
}

/* Nothing happened. Questions to a guard have an answer all the same: its rule. */
static void fail_all(struct hf_remote_worker *w, enum hf_status status)
{
    struct hf_remote *r = w->remote;
    uint64_t failed = 0;
    for (size_t i = 0; i < w->count; i++) {
        struct hf_op *op = w->ops[i];
        hf_time now;
        if (hf_remote_guards_answer(r, op->request, w->session.plan, &now)) {
            decided(w, i, w->session.plan, now);
        } else {
            fail_one(op, status);
            failed++;
        }
    }
    pthread_mutex_lock(&r->lock);
    r->stats.refusals_storage += failed;
    pthread_mutex_unlock(&r->lock);
}

/* ---- Deciding ---- */

static void apply(void *arg, const struct hf_request *request, const struct hf_view *view,
                  uint64_t outbox_first, struct hf_plan *plan, hf_time now)
{
    struct hf_remote_worker *w = arg;
    hf_engine_apply(w->remote->db, request, view, outbox_first, plan, now);
}

static void count(struct hf_remote_worker *w, int64_t begun_ms)
{
    struct hf_remote *r = w->remote;
    uint64_t changed = 0, took_us = (uint64_t)(hf_remote_clock_ms() - begun_ms) * 1000;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < w->count; i++) {
        changed += w->items[i].changes;
        r->stats.duplicates += w->items[i].replayed;
        r->stats.races += w->items[i].raced;
        r->stats.collisions += w->ops[i]->status == HF_TOKEN_COLLISION;
    }
    r->stats.operations += w->count;
    if (changed > 0) {
        size_t by_time = 0, by_size = 0;
        while (by_time < HF_HISTOGRAM - 1 && took_us > UINT64_C(32) << by_time)
            by_time++;
        while (by_size < HF_HISTOGRAM - 1 && changed > UINT64_C(1) << by_size)
            by_size++;
        r->stats.batches++;
        r->stats.syncs++;
        r->stats.batched += changed;
        r->stats.commits_by_time[by_time]++;
        r->stats.commits_by_size[by_size]++;
        r->stats.sync_ns_total += took_us * 1000;
        if (took_us * 1000 > r->stats.sync_ns_max)
            r->stats.sync_ns_max = took_us * 1000;
    }
    pthread_mutex_unlock(&r->lock);
}

/* Say once that the clock was set back. */
static void behind_note(struct hf_remote *r)
{
    bool is_new;
    if (atomic_load(&r->shared.stalls) == 0)
        return;
    pthread_mutex_lock(&r->lock);
    is_new = !r->behind_said;
    r->behind_said = true;
    pthread_mutex_unlock(&r->lock);
    if (is_new)
        hf_remote_note(
            r, 1,
            "the database's clock is behind engine time: engine time stands still until it has caught up");
}

/* ---- Connections that come and go ---- */

static void pause_ms(struct hf_remote_worker *w, unsigned least, unsigned most)
{
    unsigned ms = least + (unsigned)rand_r(&w->seed) % (most - least + 1);
    struct timespec span = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    nanosleep(&span, NULL);
}

/* Until when a batch may wait for the database: some seconds, but not again and again while it stays away. */
static int64_t patience_until(struct hf_remote_worker *w, int64_t wait_ms)
{
    struct hf_remote *r = w->remote;
    int64_t now = hf_remote_clock_ms();
    pthread_mutex_lock(&r->lock);
    int64_t until = r->away_since_ms ? r->away_since_ms + wait_ms : now + wait_ms;
    pthread_mutex_unlock(&r->lock);
    return until;
}

/* Connect, and go on trying until the time is up. committed: out, the fate of the batch in doubt. */
static enum hf_pg_outcome reach(struct hf_remote_worker *w, int64_t until, bool *committed)
{
    unsigned wait = 20;
    for (;;) {
        enum hf_pg_outcome outcome = hf_pg_session_connect(&w->session, committed);
        if (outcome == HF_PG_FINE) {
            hf_remote_back(w->remote);
            return outcome;
        }
        hf_remote_away(w->remote, w->session.conn.why);
        if (hf_remote_clock_ms() >= until)
            return outcome;
        pause_ms(w, wait, 2 * wait);
        wait = wait < 500 ? wait * 2 : wait;
    }
}

/* COMMIT was sent and no answer came. True: it is known to have happened. False with *again: it is known not to have. */
static bool settle_doubt(struct hf_remote_worker *w, bool *again)
{
    bool committed = false;
    hf_pg_disconnect(&w->session.conn);
    *again = false;
    if (reach(w, hf_remote_clock_ms() + HF_REMOTE_DOUBT_MS, &committed) == HF_PG_FINE) {
        *again = !committed;
        return committed;
    }
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].waits)
            fail_one(w->ops[i], HF_INDETERMINATE);
    return false;
}

/* ---- One batch ---- */

/* Is it likely that a single operation makes the batch fail? Data that the database does not take; a row changed by hand; a value
 * that is too large for an index. */
static bool is_about_one(const struct hf_pg_conn *conn)
{
    const char *state = conn->state;
    return state[0] == '\0' || strncmp(state, "22", 2) == 0 || strncmp(state, "23", 2) == 0 ||
           strncmp(state, "54", 2) == 0;
}

static bool has_changed(const struct hf_remote_worker *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->items[i].changes)
            return true;
    return false;
}

/* For a row that is locked: long enough? */
static bool has_waited(const struct hf_op *op)
{
    return hf_remote_clock_ms() - hf_remote_since(op) >= HF_REMOTE_LOCKED_MS;
}

/* Run the batch until all its operations have an answer. False: they are to be tried one by one. */
static bool batch_run(struct hf_remote_worker *w)
{
    struct hf_pg_batch batch = {
        .items = w->items, .count = w->count, .decided = decided, .apply = apply, .arg = w
    };
    const struct hf_pg_conn *conn = &w->session.conn;
    bool again = true;
    for (unsigned tries = 0; again; tries++) {
        batch.careful = tries > 0 || hf_remote_alone(w->ops[0]);
        batch.hurries = w->tried && !w->stuck && tries == 0; /* is it this one whose row is locked? */
        int64_t begun_ms = hf_remote_clock_ms();
        if (!conn->pg && reach(w, patience_until(w, HF_REMOTE_AWAY_MS), NULL) != HF_PG_FINE) {
            fail_all(w, HF_STORAGE_FAILURE);
            return true;
        }
        switch (hf_pg_batch_run(&w->session, &batch)) {
        case HF_PG_DONE:
            if (w->stuck)
                hf_remote_stuck_forget(w->remote, w->ops[0]);
            if (has_changed(w))
                hf_remote_refused(w->remote, NULL);
            hf_remote_guards_learn(w->remote, &w->session.set);
            count(w, begun_ms);
            behind_note(w->remote);
            return true;
        case HF_PG_AGAIN:
            if (tries >= 10 && w->count > 1)
                return false;
            if (tries >= 200) {
                fail_all(w, HF_STORAGE_FAILURE);
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
                    fail_all(w, HF_STORAGE_FAILURE);
                break;
            }
            hf_remote_stuck_learn(w->remote, w->ops[0], w->session.stuck_at_guards);
            if (!has_waited(w->ops[0]))
                return false;
            fail_all(w, HF_STORAGE_FAILURE);
            return true;
        case HF_PG_NO:
            if (w->count > 1 && is_about_one(conn))
                return false;
            hf_remote_refused(w->remote, conn);
            fail_all(w, HF_STORAGE_FAILURE);
            return true;
        case HF_PG_GONE: /* connect, and begin again */
            again = tries < 20;
            if (!again)
                fail_all(w, HF_STORAGE_FAILURE);
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

static void work_once(struct hf_remote_worker *w)
{
    for (size_t i = 0; i < w->count; i++) {
        w->items[i] = (struct hf_pg_item){ .request = w->ops[i]->request };
        hf_digest(w->ops[i]->request, w->items[i].digest);
    }
    /* Others have tried in vain for it meanwhile. */
    bool is_late = w->stuck && has_waited(w->ops[0]);
    if (is_late)
        fail_all(w, HF_STORAGE_FAILURE);
    if (is_late || batch_run(w)) {
        answer(w);
        return;
    }
    pthread_mutex_lock(&w->remote->lock);
    batch_return(w);
    pthread_mutex_unlock(&w->remote->lock);
}

static void wait_a_little(struct hf_remote_worker *w)
{
    struct hf_remote *r = w->remote;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += HF_REMOTE_SLOW_MS / 2 * 1000000L;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    r->watchers++;
    w->idle = true;
    pthread_cond_timedwait(&w->wake, &r->lock, &until);
    w->idle = false;
    r->watchers--;
}

void *hf_remote_work(void *arg)
{
    struct hf_remote_worker *w = arg;
    struct hf_remote *r = w->remote;
    pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        if (has_turn(w)) {
            batch_take(w);
            w->begun_ms = hf_remote_clock_ms();
            r->busy++;
            if (r->watchers == 0) /* somebody must see whether it becomes slow */
                hf_remote_wake(r);
            pthread_mutex_unlock(&r->lock);
            bool took = w->count > 0;
            if (took)
                work_once(w);
            pthread_mutex_lock(&r->lock);
            r->stuck_busy = r->stuck_busy && !w->stuck;
            r->tried_busy -= w->tried;
            w->begun_ms = 0;
            w->answering = w->stuck = w->tried = false;
            r->busy--;
            if (!took) /* all that it may have is behind one that must wait */
                wait_a_little(w);
            if (r->first && r->busy == 0)
                hf_remote_wake(r);
        } else if (r->first || r->busy > 0) { /* it may become slow */
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
