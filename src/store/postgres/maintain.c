/* Maintenance and figures, each on its own session. */
#include "store/postgres/pool.h"

#include "base/clock.h"

#include <stddef.h>
#include <stdio.h>

/* The work of one step, and how long the maintainer sleeps when there is nothing to do. */
enum { SWEEP_MAX = 256, LAPSE_MAX = 64, FREE_MAX = 2000, TICK_MS = 250 };

static bool is_refused(struct hf_pool *r)
{
    pthread_mutex_lock(&r->lock);
    bool refused = r->refused;
    pthread_mutex_unlock(&r->lock);
    return refused;
}

/* Does the database accept the writes of a batch? Writes the same kinds of rows and rolls back:
 * that needs the same rights and the same disk space. */
static bool takes_writes(struct hf_pg_session *s)
{
    static const char *const statements[] = {
        "BEGIN",
        "INSERT INTO holdfast.token (tenant, key, action, status, digest, recorded_at, expires_at, "
        "entry) VALUES ('', gen_random_uuid()::text, 'place_hold', 'ok', '', now(), now(), 0)",
        "INSERT INTO holdfast.hold (ordinal, id, tenant, resource, requester, state, placed_at, "
        "expires_at, previous) VALUES (-1, '', '', '', '', 'released', now(), now(), 0)",
        "INSERT INTO holdfast.journal (number, at, tenant, action, status, writer, batch, entry) "
        "VALUES (-1, now(), '', 'place_hold', 'ok', 0, 0, repeat('x', 300)::bytea)",
        "UPDATE holdfast.resource SET held = held WHERE false",
        "UPDATE holdfast.writer SET batch = batch WHERE false",
    };
    bool good = true;
    for (size_t i = 0; i < sizeof statements / sizeof *statements && good; i++)
        good = hf_pg_ask(&s->conn, statements[i], 0, NULL, false, NULL) == HF_PG_FINE;
    return hf_pg_ask(&s->conn, "ROLLBACK", 0, NULL, false, NULL) == HF_PG_FINE && good;
}

/* Note when a sweep began: confirm.c checks whether it waits for the standbys. */
static void sweeping(struct hf_pool *r, bool begins)
{
    pthread_mutex_lock(&r->lock);
    r->sweeping_since_ms = begins ? hf_clock_monotonic_ms() : 0;
    pthread_mutex_unlock(&r->lock);
}

bool hf_pool_maintain(struct hf_store *store)
{
    struct hf_pool *r = hf_pool_of(store);
    struct hf_pg_session *s = &r->sweeper;
    unsigned swept = 0;
    int told = 0;
    uint64_t freed = 0;
    enum hf_pg_end end = HF_PG_GONE;
    pthread_mutex_lock(&r->sweeper_lock);
    sweeping(r, true);
    (void)hf_pg_session_is_newest(s); /* closes it if not */
    if (s->conn.pg || hf_pg_session_connect(s, NULL) == HF_PG_FINE)
        end = hf_pg_sweep(s, SWEEP_MAX, &swept);
    if (end == HF_PG_DONE && r->options.on_unknown)
        end = hf_pg_lapse(s, LAPSE_MAX, r->options.on_unknown, r->options.arg, &told);
    if (end == HF_PG_DONE)
        end = hf_pg_free_expired(s, FREE_MAX, &freed);
    /* After a sweep with an unknown outcome, the next connect finds out; no caller waits for it. */
    if (end == HF_PG_DOUBT)
        hf_pg_disconnect(&s->conn);
    /* Log a row that cannot be expired; but the database accepts other writes. */
    if (end == HF_PG_NO && hf_pool_is_about_one(&s->conn))
        s->conn.state[0] = '\0';
    if (end == HF_PG_NO)
        hf_pool_refused(r, &s->conn);
    /* Clients send nothing to a store that is not ready, so this thread must notice that it is
     * ready again. */
    if (end == HF_PG_GONE)
        hf_pool_away(r, s->conn.why);
    else
        hf_pool_back(r);
    if (end == HF_PG_DONE && is_refused(r) && takes_writes(s))
        hf_pool_refused(r, NULL);
    bool waiting = end == HF_PG_DONE && s->horizon.waiting;
    uint32_t timeline = s->conn.timeline;
    sweeping(r, false);
    pthread_mutex_unlock(&r->sweeper_lock);
    if (waiting) /* after that, rows may leave in the next step */
        (void)hf_pool_confirm(r, timeline, NULL);
    hf_pool_clock_note(r);
    return end == HF_PG_DONE && (swept > 0 || told == LAPSE_MAX || freed > 0);
}

struct open_claims {
    uint64_t started, unknown;
    hf_time since; /* of the oldest unknown one; 0: there is none */
};

static void figures_read(struct hf_pool *r);

int64_t hf_pool_maintain_pace(void *arg)
{
    struct hf_pool *r = arg;
    bool more = hf_pool_maintain(&r->store);
    if (r->ticks++ % 20 == 0)
        figures_read(r);
    return (more ? 1 : TICK_MS) * INT64_C(1000000);
}

/* ---- Figures ---- */

/* The fraction of keys that are not claims, from the database's statistics. */
#define NO_CLAIMS                                                                             \
    "coalesce((SELECT null_frac FROM pg_stats WHERE schemaname = 'holdfast' AND tablename = " \
    "'token' AND "                                                                            \
    "attname = 'state'), 1)"

/* The fraction of registers that are not deleted: deleted ones have their own index. */
#define NOT_LEFT                                                                  \
    "greatest(0, 1 - coalesce((SELECT l.reltuples FROM pg_class l WHERE l.oid = " \
    "to_regclass('holdfast.register_left')), 0) / reltuples)"

/* The fraction of keys that are claims in this state. */
#define STATES(state)                                                                         \
    "coalesce((SELECT u.part FROM pg_stats s, unnest(s.most_common_vals::text::text[], "      \
    "s.most_common_freqs) AS u(state, part) WHERE s.schemaname = 'holdfast' AND s.tablename " \
    "= 'token' AND s.attname = 'state' AND u.state = '" state "'), 0)"

/* Row counts: counted while there are few, else estimated from the statistics: the rows of `index`,
 * times `part`. `where` selects the rows to count. */
static const struct figure {
    const char *table, *index, *where, *part;
    size_t at;
} figures[] = {
    { "token", "token", "state IS NULL", NO_CLAIMS, offsetof(struct hf_stats, tokens) },
    { "hold", "hold", "true", "1", offsetof(struct hf_stats, holds) },
    { "hold", "hold_overdue", "state = 'held'", "1", offsetof(struct hf_stats, holds_live) },
    { "resource", "resource", "true", "1", offsetof(struct hf_stats, resources) },
    { "guard", "guard", "true", "1", offsetof(struct hf_stats, guards) },
    { "guard_entry", "guard_entry", "true", "1", offsetof(struct hf_stats, entries) },
    { "token", "token", "state IS NOT NULL", "(1 - " NO_CLAIMS ")",
      offsetof(struct hf_stats, claims) },
    { "token", "token", "state = 'completed'", STATES("completed"),
      offsetof(struct hf_stats, claims_completed) },
    { "token", "token", "state = 'failed'", STATES("failed"),
      offsetof(struct hf_stats, claims_failed) },
    { "token", "token", "state = 'retryable'", STATES("retryable"),
      offsetof(struct hf_stats, claims_retryable) },
    { "client", "client", "true", "1", offsetof(struct hf_stats, clients) },
    { "register", "register", "type <> 'deleted'", NOT_LEFT, offsetof(struct hf_stats, registers) },
    { "outbox", "outbox", "true", "1", offsetof(struct hf_stats, outbox) },
    { "app_value", "app_value", "true", "1", offsetof(struct hf_stats, values) },
};
enum { FIGURES = sizeof figures / sizeof *figures, COUNTED_MAX = 10000 };

static enum hf_pg_outcome figure_read(struct hf_pg_conn *conn, const struct figure *f,
                                      uint64_t *out)
{
    char sql[600];
    PGresult *result = NULL;
    snprintf(
        sql, sizeof sql,
        "SELECT CASE WHEN reltuples > %d THEN (reltuples * %s)::bigint ELSE (SELECT count(*) FROM "
        "holdfast.%s WHERE %s) END FROM pg_class WHERE oid = 'holdfast.%s'::regclass",
        COUNTED_MAX, f->part, f->table, f->where, f->index);
    enum hf_pg_outcome outcome = hf_pg_ask(conn, sql, 0, NULL, true, &result);
    if (outcome == HF_PG_FINE && PQntuples(result) == 1)
        *out = (uint64_t)hf_pg_get_int8(result, 0, 0);
    PQclear(result);
    return outcome;
}

/* Claims that are not settled are few, and counted in their own index. */
static enum hf_pg_outcome open_claims_read(struct hf_pool *r, struct open_claims *out)
{
    char now[24];
    const char *const params[] = { now };
    PGresult *result = NULL;
    snprintf(now, sizeof now, "%lld", (long long)atomic_load(&r->shared.told));
    enum hf_pg_outcome outcome = hf_pg_ask(
        &r->reader.conn,
        "SELECT count(*) FILTER (WHERE lease_expires_at > t.now), count(*) FILTER (WHERE "
        "lease_expires_at <= t.now), min(lease_expires_at) FILTER (WHERE lease_expires_at <= "
        "t.now) FROM (SELECT to_timestamp($1::numeric / 1000) AS now OFFSET 0) t JOIN "
        "holdfast.token ON state = 'started'",
        1, params, true, &result);
    if (outcome == HF_PG_FINE) {
        out->started = (uint64_t)hf_pg_get_int8(result, 0, 0);
        out->unknown = (uint64_t)hf_pg_get_int8(result, 0, 1);
        out->since = PQgetisnull(result, 0, 2) ? 0 : hf_pg_get_time(result, 0, 2);
    }
    PQclear(result);
    return outcome;
}

/* "hold", and the number of this lock. */
#define MET_LOCK "1752132708, 1"

static uint64_t met_get(const PGresult *result, int column)
{
    return (uint64_t)hf_pg_get_int8(result, 0, column);
}

/* A database that was restored may have fewer. */
static uint64_t above(uint64_t is, uint64_t was)
{
    return is > was ? is - was : 0;
}

/* What SQL functions have met since the last look. Every server looks, but only the one that holds
 * the lock adds it to its figures, so that the sum over all servers is right. The lock goes with the
 * connection. */
static enum hf_pg_outcome met_read(struct hf_pool *r, struct hf_pool_met *more)
{
    PGresult *result = NULL;
    enum hf_pg_outcome outcome =
        hf_pg_ask(&r->reader.conn,
                  "SELECT d.last_value - 1 + d.is_called::integer, x.last_value - 1 + "
                  "x.is_called::integer, c.last_value - 1 + c.is_called::integer, "
                  "pg_try_advisory_lock(" MET_LOCK ") FROM holdfast.met_duplicate d, "
                  "holdfast.met_race x, holdfast.met_collision c",
                  0, NULL, true, &result);
    if (outcome == HF_PG_FINE && PQntuples(result) == 1) {
        const struct hf_pool_met was = r->met, is = { .known = true,
                                                      .duplicates = met_get(result, 0),
                                                      .races = met_get(result, 1),
                                                      .collisions = met_get(result, 2) };
        if (was.known && hf_pg_get_bool(result, 0, 3))
            *more = (struct hf_pool_met){ .duplicates = above(is.duplicates, was.duplicates),
                                          .races = above(is.races, was.races),
                                          .collisions = above(is.collisions, was.collisions) };
        r->met = is;
    }
    PQclear(result);
    return outcome;
}

static void figures_read(struct hf_pool *r)
{
    uint64_t values[FIGURES] = { 0 };
    struct open_claims claims = { .since = 0 };
    struct hf_pool_met met = { .known = false };
    enum hf_pg_outcome outcome = HF_PG_FINE;
    pthread_mutex_lock(&r->reader_lock);
    (void)hf_pg_session_is_newest(&r->reader); /* closes it if not */
    if (!r->reader.conn.pg)
        outcome = hf_pg_session_read(&r->reader);
    if (outcome == HF_PG_FINE)
        outcome = hf_pool_guards_read(r, &r->reader);
    for (int i = 0; i < FIGURES && outcome == HF_PG_FINE; i++)
        outcome = figure_read(&r->reader.conn, &figures[i], &values[i]);
    if (outcome == HF_PG_FINE)
        outcome = open_claims_read(r, &claims);
    if (outcome == HF_PG_FINE && !hf_pg_session_is_newest(&r->reader))
        outcome = HF_PG_LOST;
    if (outcome == HF_PG_FINE)
        outcome = met_read(r, &met);
    pthread_mutex_unlock(&r->reader_lock);
    if (outcome != HF_PG_FINE)
        return;
    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < FIGURES; i++)
        memcpy((char *)&r->stats + figures[i].at, &values[i], sizeof values[i]);
    r->stats.claims_started = claims.started;
    r->stats.claims_unknown = claims.unknown;
    r->stats.claims_unknown_since = claims.since;
    r->stats.duplicates += met.duplicates;
    r->stats.races += met.races;
    r->stats.collisions += met.collisions;
    pthread_mutex_unlock(&r->lock);
}

void hf_pool_stats(struct hf_store *store, bool applying, struct hf_stats *out)
{
    struct hf_pool *r = hf_pool_of(store);
    (void)applying;               /* an apply function has no lock of this store */
    if (r->options.no_background) /* no background thread does it */
        figures_read(r);
    uint64_t silent_ms = hf_pool_silent_ms(r);
    pthread_mutex_lock(&r->lock);
    *out = r->stats;
    out->now = atomic_load(&r->shared.told);
    out->clock_stalls = atomic_load(&r->shared.stalls);
    out->clock_jumps = hf_pg_clock_jumps(&r->shared);
    out->records_unreadable = atomic_load(&r->shared.unsound);
    out->out_of_space = r->is_full;
    out->standby_silent_ms = silent_ms;
    out->database_away = (r->away_since_ms != 0 && silent_ms == 0) || (r->refused && !r->is_full);
    pthread_mutex_unlock(&r->lock);
}

/* ---- The head ---- */

/* The newest batch of the writer that wrote the newest entry: its hash is in that writer's chain.
 * Everything visible must be on the standbys before it is shown. */
enum hf_status hf_pool_head(struct hf_store *store, struct hf_head *out)
{
    struct hf_pool *r = hf_pool_of(store);
    PGresult *result = NULL;
    enum hf_pg_outcome outcome = HF_PG_FINE;
    pthread_mutex_lock(&r->reader_lock);
    (void)hf_pg_session_is_newest(&r->reader); /* closes it if not */
    if (!r->reader.conn.pg)
        outcome = hf_pg_session_read(&r->reader);
    if (outcome == HF_PG_FINE)
        outcome = hf_pg_ask(&r->reader.conn,
                            "SELECT j.number, j.at, w.chain FROM holdfast.journal j JOIN "
                            "holdfast.writer w ON w.id = j.writer ORDER BY j.number DESC LIMIT 1",
                            0, NULL, true, &result);
    if (outcome == HF_PG_FINE && !hf_pg_session_is_newest(&r->reader))
        outcome = HF_PG_LOST;
    uint32_t timeline = r->reader.conn.timeline;
    pthread_mutex_unlock(&r->reader_lock);
    enum hf_status st = outcome == HF_PG_FINE ? HF_OK : HF_STORAGE_FAILURE;
    if (st == HF_OK && PQntuples(result) == 0)
        st = HF_NOT_KNOWN;
    if (st == HF_OK) {
        struct hf_bytes chain = hf_pg_get_bytes(result, 0, 2);
        out->position = (uint64_t)hf_pg_get_int8(result, 0, 0);
        out->at = hf_pg_get_time(result, 0, 1);
        if (chain.size == HF_DIGEST_SIZE)
            memcpy(out->hash, chain.data, HF_DIGEST_SIZE);
        if (chain.size != HF_DIGEST_SIZE || !hf_pool_confirm(r, timeline, NULL))
            st = HF_STORAGE_FAILURE;
    }
    PQclear(result);
    return st;
}
