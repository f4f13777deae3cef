/* Holds back answers that saw rows which the synchronous standbys may not have
 * (store/postgres/replicated.h), until a commit that began after the read was replicated. It is an
 * empty commit on its own connection, shared by all calls that wait at the same time: calls that
 * arrive while one is in progress wait for the next.
 *
 * The connection is its own because the wait may last as long as a standby is away: sessions that
 * read and write stay free for what needs no confirmation. */
#include "base/clock.h"
#include "store/postgres/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* An empty commit that is written to the log, and so waits for the standbys. Returns the lowest
 * transaction in progress when it began, and its own number, so that the next answer is not in
 * doubt because of it. No commit and no row where commits wait for no standby. */
static const char commit[] =
    "SELECT pg_snapshot_xmin(pg_current_snapshot()), pg_current_xact_id(), pg_conf_load_time(), "
    "pg_logical_emit_message(true, 'holdfast', '') WHERE "
    "current_setting('synchronous_standby_names') <> ''";

/* WAIT_MS: how long a call waits. PAUSE_MS: between two tries. SLOW_MS: after that time a batch or
 * a sweep may be waiting for the standbys. TICK_MS: how often that is checked. */
enum { WAIT_MS = HF_POOL_AWAY_MS, PAUSE_MS = 50, SLOW_MS = 1000, TICK_MS = 500 };

/* The database process of a lost connection still waits for the standby: cancel it, so that such
 * processes do not pile up. */
static void cancel(struct hf_pg_conn *conn, int pid)
{
    char text[16];
    const char *const params[] = { text };
    snprintf(text, sizeof text, "%d", pid);
    hf_pg_ask(conn,
              "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = $1::integer AND "
              "wait_event = 'SyncRep'",
              1, params, false, NULL);
}

/* Without the lock. Connect if needed. */
static bool reach(struct hf_pool *r)
{
    struct hf_pool_confirm *c = &r->confirm;
    struct hf_pg_conn *conn = &c->session.conn;
    if (conn->pg && hf_pg_session_is_newest(&c->session))
        return true;
    if (hf_pg_session_read(&c->session) != HF_PG_FINE)
        return false;
    if (c->left_behind && c->left_timeline == conn->timeline) /* else it is another database's */
        cancel(conn, c->left_behind);
    if (!conn->pg)
        return false;
    pthread_mutex_lock(&c->lock);
    if (c->socket >= 0)
        close(c->socket);
    c->socket = dup(PQsocket(conn->pg));
    pthread_mutex_unlock(&c->lock);
    return true;
}

/* Without the lock. A commit is sent, or cannot be sent. */
static void note_sent(struct hf_pool_confirm *c, bool sent)
{
    pthread_mutex_lock(&c->lock);
    if (!sent)
        c->silent_since_ms = 0;
    else if (c->silent_since_ms == 0)
        c->silent_since_ms = hf_clock_monotonic_ms();
    pthread_mutex_unlock(&c->lock);
}

/* Has the commit waited for the standbys? Then they have everything that was visible before it.
 * result: of the commit. settled: out, it is certain enough to be remembered (HF_PG_SETTLED). */
static bool learn(struct hf_pool *r, const PGresult *result, bool *settled)
{
    struct hf_pg_replicated *known = &r->shared.replicated;
    struct hf_pg_conn *conn = &r->confirm.session.conn;
    PGresult *settings = NULL;
    bool asked = hf_pg_ask(conn, "SELECT pg_conf_load_time(), (" HF_PG_SETTLED ") IS NOT NULL", 0,
                           NULL, true, &settings) == HF_PG_FINE;
    bool waited = asked && hf_pg_get_int8(settings, 0, 0) == hf_pg_get_int8(result, 0, 2);
    *settled = waited && *PQgetvalue(settings, 0, 1);
    PQclear(settings);
    if (*settled) {
        hf_pg_replicated_below(known, conn->timeline, (uint64_t)hf_pg_get_int8(result, 0, 0));
        hf_pg_replicated_add(known, conn->timeline, (uint64_t)hf_pg_get_int8(result, 0, 1));
    }
    return waited;
}

/* Without the lock. True: everything visible before is on the standbys, or there is no synchronous
 * standby. proven: out, the former. */
static bool commit_once(struct hf_pool *r, bool *proven)
{
    struct hf_pool_confirm *c = &r->confirm;
    struct hf_pg_conn *conn = &c->session.conn;
    PGresult *result = NULL;
    bool reached = reach(r);
    note_sent(c, reached);
    if (!reached)
        return false;
    c->left_behind = PQbackendPID(conn->pg);
    c->left_timeline = conn->timeline;
    conn->warned = false;
    bool done = hf_pg_ask(conn, commit, 0, NULL, true, &result) == HF_PG_FINE && !conn->warned;
    if (done && PQntuples(result) == 1)
        done =
            learn(r, result, proven); /* if false, try again: perhaps no standby is configured any
                                       * more */
    if (conn->pg)
        c->left_behind = 0;
    PQclear(result);
    /* Ignore the confirmation of a primary that was replaced meanwhile. */
    done = done && hf_pg_session_is_newest(&c->session);
    *proven = *proven && done;
    return done;
}

static void wait_until(struct hf_pool_confirm *c, pthread_cond_t *cond, int64_t until_ms)
{
    (void)hf_clock_wait(cond, &c->lock, until_ms * 1000000);
}

/* With the lock. */
static void note(struct hf_pool *r, bool stalled)
{
    struct hf_pool_confirm *c = &r->confirm;
    if (c->said == stalled)
        return;
    c->said = stalled;
    pthread_mutex_unlock(&c->lock);
    hf_pool_note(r, stalled,
                 stalled ? "the synchronous standbys confirm nothing: the server withholds "
                           "answers that they may not have"
                         : "the synchronous standbys confirm again");
    pthread_mutex_lock(&c->lock);
}

/* With the lock. For how long nothing was confirmed; 0: shorter than a call waits. */
static uint64_t silent_ms(const struct hf_pool_confirm *c)
{
    int64_t ms = c->silent_since_ms ? hf_clock_monotonic_ms() - c->silent_since_ms : 0;
    return ms >= WAIT_MS ? (uint64_t)ms : 0;
}

/* Without the lock. Has a write taken so long that it may be waiting for the standbys? */
static bool is_slow(struct hf_pool *r)
{
    int64_t before = hf_clock_monotonic_ms() - SLOW_MS;
    if (!atomic_load(&r->shared.replicates))
        return false;
    pthread_mutex_lock(&r->lock);
    bool slow = r->sweeping_since_ms && r->sweeping_since_ms < before;
    for (unsigned i = 0; i < HF_POOL_WORKERS; i++)
        slow = slow || (r->workers[i].begun_ms && r->workers[i].begun_ms < before);
    pthread_mutex_unlock(&r->lock);
    return slow;
}

/* With the lock, which is released meanwhile. Wait until a commit is needed: for a call; to see
 * whether writers wait for the standbys; or to see whether silent standbys confirm again. */
static void await_need(struct hf_pool *r)
{
    struct hf_pool_confirm *c = &r->confirm;
    bool slow = false;
    while (!slow && !c->stopping && (c->waiting == 0 || c->asked <= c->done) &&
           c->silent_since_ms == 0) {
        c->since_ms = 0;
        wait_until(c, &c->wake, hf_clock_monotonic_ms() + TICK_MS);
        pthread_mutex_unlock(&c->lock);
        slow = is_slow(r);
        pthread_mutex_lock(&c->lock);
    }
}

/* The thread. arg: the pool. */
static void *confirming(void *arg)
{
    struct hf_pool *r = arg;
    struct hf_pool_confirm *c = &r->confirm;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        await_need(r);
        if (c->stopping)
            break;
        uint64_t number = ++c->begun;
        if (c->since_ms == 0)
            c->since_ms = hf_clock_monotonic_ms();
        pthread_mutex_unlock(&c->lock);
        bool proven = false, done = commit_once(r, &proven);
        pthread_mutex_lock(&c->lock);
        if (done) {
            c->done = number;
            c->proven = proven ? number : c->proven;
            c->timeline = c->session.conn.timeline;
            c->since_ms = c->silent_since_ms = 0;
            pthread_cond_broadcast(&c->confirmed);
            note(r, false);
        } else if (!c->stopping) {
            if (silent_ms(c) > 0)
                note(r, true);
            wait_until(c, &c->wake, hf_clock_monotonic_ms() + PAUSE_MS);
        }
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

bool hf_pool_confirm(struct hf_pool *r, uint32_t timeline, bool *proven)
{
    struct hf_pool_confirm *c = &r->confirm;
    if (proven)
        *proven = false;
    pthread_mutex_lock(&c->lock);
    uint64_t wanted = c->begun + 1;
    if (c->asked < wanted)
        c->asked = wanted;
    c->waiting++;
    pthread_cond_signal(&c->wake);
    /* Some seconds in total, not for each call while a standby is down. */
    int64_t until = (c->since_ms ? c->since_ms : hf_clock_monotonic_ms()) + WAIT_MS;
    while (c->done < wanted && hf_clock_monotonic_ms() < until && !c->stopping)
        wait_until(c, &c->confirmed, until);
    bool sure = c->done >= wanted && c->timeline == timeline;
    if (proven)
        *proven = sure && c->proven >= wanted;
    if (c->done < wanted && !c->stopping)
        note(r, true);
    c->waiting--;
    pthread_mutex_unlock(&c->lock);
    return sure;
}

uint64_t hf_pool_silent_ms(struct hf_pool *r)
{
    struct hf_pool_confirm *c = &r->confirm;
    pthread_mutex_lock(&c->lock);
    uint64_t ms = silent_ms(c);
    if (ms > 0)
        note(r, true);
    pthread_mutex_unlock(&c->lock);
    return ms;
}

bool hf_pool_is_silent(struct hf_pool *r)
{
    struct hf_pool_confirm *c = &r->confirm;
    pthread_mutex_lock(&c->lock);
    bool silent = c->silent_since_ms && hf_clock_monotonic_ms() - c->silent_since_ms >= SLOW_MS;
    pthread_mutex_unlock(&c->lock);
    return silent;
}

enum hf_status hf_pool_barrier(struct hf_store *store, uint32_t timeline)
{
    struct hf_pool *r = hf_pool_of(store);
    hf_pool_flush(store);
    return hf_pool_confirm(r, timeline, NULL) ? HF_OK : HF_INDETERMINATE;
}

/* ---- Beginning and ending ---- */

bool hf_pool_confirm_make(struct hf_pool *r)
{
    struct hf_pool_confirm *c = &r->confirm;
    pthread_mutex_init(&c->lock, NULL);
    hf_clock_cond_init(&c->wake);
    hf_clock_cond_init(&c->confirmed);
    c->socket = -1;
    return hf_pg_session_init(&c->session, &r->shared);
}

bool hf_pool_confirm_start(struct hf_pool *r)
{
    r->confirm.started = pthread_create(&r->confirm.thread, NULL, confirming, r) == 0;
    return r->confirm.started;
}

void hf_pool_confirm_stop(struct hf_pool *r)
{
    struct hf_pool_confirm *c = &r->confirm;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_broadcast(&c->wake);
    pthread_cond_broadcast(&c->confirmed);
    if (c->socket >= 0)
        shutdown(c->socket, SHUT_RDWR); /* the thread may wait for a standby */
    pthread_mutex_unlock(&c->lock);
    if (c->started)
        pthread_join(c->thread, NULL);
    c->started = false;
}

void hf_pool_confirm_free(struct hf_pool *r)
{
    struct hf_pool_confirm *c = &r->confirm;
    hf_pg_session_free(&c->session);
    if (c->socket >= 0)
        close(c->socket);
    pthread_cond_destroy(&c->wake);
    pthread_cond_destroy(&c->confirmed);
    pthread_mutex_destroy(&c->lock);
}
