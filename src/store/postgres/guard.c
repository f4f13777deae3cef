/* Guards without the database: while the database is unreachable, the rule `on_unavailable` of a
 * guard decides. The rules are in the database too, so the store reads all of them when it opens
 * and every few seconds, and remembers them here. A guard that this process has never read has no
 * rule: a call of it is a storage failure.
 *
 * There are two tables. One is of what was read: it is made without the lock, and takes the place
 * of the one before. The other is small, and of what batches have seen since then that is another
 * rule there. In neither can a tenant take the room of others: of each the newest are read, as many
 * of one as of the other if there is not room for all; and each has places of its own among those
 * that were seen. Both are hashed under the store's secret, so that nobody can choose names that
 * meet. */
#include "base/bytes.h"
#include "base/hash.h"
#include "core/decide.h"
#include "store/postgres/pool.h"

#include <stdlib.h>

/* Operators set up guards, a few for each purpose: these limits are far above real numbers. */
enum { BUCKETS = 4096, GUARDS_MAX = 4096, TENANT_MAX = 1024, SEEN_TENANTS = 64, SEEN_EACH = 16 };

struct hf_pool_guard {
    struct hf_pool_guard *next;
    struct hf_guard guard;
    uint64_t reading;      /* in `seen`: the reading before it was seen */
    unsigned char bytes[]; /* its tenant and its name */
};

struct table {
    struct hf_pool_guard *buckets[BUCKETS];
};

struct hf_pool_guards {
    pthread_mutex_t lock;                                /* no other lock is taken inside it */
    struct table *read;                                  /* owned; NULL: nothing was read yet */
    struct hf_pool_guard *seen[SEEN_TENANTS][SEEN_EACH]; /* owned */
    uint64_t reading;                                    /* how many readings were begun */
};

struct hf_pool_guards *hf_pool_guards_make(void)
{
    struct hf_pool_guards *known = calloc(1, sizeof *known);
    if (known)
        pthread_mutex_init(&known->lock, NULL);
    return known;
}

static void table_free(struct table *table)
{
    for (size_t i = 0; table && i < BUCKETS; i++)
        while (table->buckets[i]) {
            struct hf_pool_guard *g = table->buckets[i];
            table->buckets[i] = g->next;
            free(g);
        }
    free(table);
}

void hf_pool_guards_free(struct hf_pool_guards *known)
{
    if (!known)
        return;
    table_free(known->read);
    for (size_t i = 0; i < SEEN_TENANTS; i++)
        for (size_t k = 0; k < SEEN_EACH; k++)
            free(known->seen[i][k]);
    pthread_mutex_destroy(&known->lock);
    free(known);
}

/* ---- Places ---- */

static uint64_t hash_of(const struct hf_pool *r, struct hf_bytes tenant, struct hf_bytes name)
{
    const struct hf_sipkey key = { hf_get64(r->shared.id_key) ^ HF_SET_GUARD,
                                   hf_get64(r->shared.id_key + 8) };
    return hf_siphash(&key, tenant, name);
}

static bool is_named(const struct hf_pool_guard *g, struct hf_scoped name)
{
    return hf_bytes_equal(g->guard.name, name.name) && hf_bytes_equal(g->guard.tenant, name.tenant);
}

static struct hf_pool_guard **seen_at(const struct hf_pool *r, struct hf_scoped name)
{
    uint64_t tenant = hash_of(r, name.tenant, hf_mem(NULL, 0)),
             whole = hash_of(r, name.tenant, name.name);
    return &r->guards->seen[tenant % SEEN_TENANTS][whole % SEEN_EACH];
}

/* With the lock. NULL: unknown. */
static const struct hf_pool_guard *find(const struct hf_pool *r, struct hf_scoped name)
{
    const struct hf_pool_guard *g = *seen_at(r, name);
    if (g && is_named(g, name))
        return g;
    if (!r->guards->read)
        return NULL;
    g = r->guards->read->buckets[hash_of(r, name.tenant, name.name) % BUCKETS];
    while (g && !is_named(g, name))
        g = g->next;
    return g;
}

/* NULL if out of memory: then the guard counts as never seen. */
static struct hf_pool_guard *guard_make(const struct hf_guard *guard)
{
    struct hf_pool_guard *g = calloc(1, sizeof *g + guard->tenant.size + guard->name.size);
    if (!g)
        return NULL;
    if (guard->tenant.size > 0)
        memcpy(g->bytes, guard->tenant.data, guard->tenant.size);
    memcpy(g->bytes + guard->tenant.size, guard->name.data, guard->name.size);
    g->guard = *guard;
    g->guard.tenant = hf_mem(g->bytes, guard->tenant.size);
    g->guard.name = hf_mem(g->bytes + guard->tenant.size, guard->name.size);
    return g;
}

/* ---- Guards seen by batches ---- */

static bool is_same_rule(const struct hf_guard *a, const struct hf_guard *b)
{
    return a->window_ms == b->window_ms && a->on_unavailable == b->on_unavailable &&
           a->durable == b->durable && a->match_count == b->match_count &&
           memcmp(a->match, b->match, a->match_count * sizeof *a->match) == 0;
}

/* With the lock. */
static void see(struct hf_pool *r, const struct hf_guard *guard)
{
    struct hf_scoped name = { guard->tenant, guard->name };
    struct hf_pool_guard **at = seen_at(r, name), *g;
    const struct hf_pool_guard *known = find(r, name);
    if (known && known != *at && is_same_rule(&known->guard, guard))
        return;
    if (known && known == *at) {
        g = *at;
        g->guard = *guard;
        g->guard.tenant = hf_mem(g->bytes, guard->tenant.size);
        g->guard.name = hf_mem(g->bytes + guard->tenant.size, guard->name.size);
    } else if ((g = guard_make(guard)) != NULL) {
        free(*at); /* the next reading finds it again */
        *at = g;
    } else {
        return;
    }
    g->reading = r->guards->reading;
}

void hf_pool_guards_learn(struct hf_pool *r, const struct hf_pg_set *set)
{
    if (!set->tables[HF_PG_GUARD])
        return;
    pthread_mutex_lock(&r->guards->lock);
    for (const struct hf_pg_slot *s = set->tables[HF_PG_GUARD]; s; s = s->next)
        if (s->fetched && s->found)
            see(r, &s->record.row.guard);
    pthread_mutex_unlock(&r->guards->lock);
}

/* ---- Reading all ---- */

/* Walks the tenants by the index and takes the newest guards of each; the newest of every tenant
 * come first. */
static bool sql_make(struct hf_buffer *sql)
{
    hf_buffer_add_text(sql, "WITH RECURSIVE tenants AS ((SELECT g.tenant FROM holdfast.guard g "
                            "ORDER BY g.tenant LIMIT 1) UNION ALL SELECT (SELECT g.tenant FROM "
                            "holdfast.guard g WHERE g.tenant > n.tenant ORDER BY g.tenant LIMIT 1) "
                            "FROM tenants n WHERE n.tenant IS NOT NULL) SELECT ");
    hf_pg_sql_columns(sql, HF_PG_GUARD);
    hf_buffer_printf(sql,
                     " FROM tenants n CROSS JOIN LATERAL (SELECT l.*, row_number() OVER (ORDER BY "
                     "l.number DESC) AS place FROM (SELECT x.* FROM holdfast.guard x WHERE "
                     "x.tenant || chr(31) = n.tenant || chr(31) ORDER BY x.number DESC LIMIT %d) "
                     "l) t ORDER BY t.place LIMIT %d",
                     TENANT_MAX, GUARDS_MAX);
    return hf_buffer_text(sql) != NULL;
}

static void table_fill(const struct hf_pool *r, struct table *table, const PGresult *result,
                       struct hf_arena *arena)
{
    for (int i = 0; i < PQntuples(result); i++) {
        struct hf_pg_record record;
        struct hf_pool_guard *g = NULL;
        if (hf_pg_record_read(HF_PG_GUARD, result, i, 0, arena, &record))
            g = guard_make(&record.row.guard);
        if (!g)
            continue;
        struct hf_pool_guard **at =
            &table->buckets[hash_of(r, g->guard.tenant, g->guard.name) % BUCKETS];
        g->next = *at;
        *at = g;
    }
}

/* The new table has everything that was seen before the reading began, or it no longer exists.
 * Returns the previous table. */
static struct table *swap(struct hf_pool_guards *known, struct table *table, uint64_t reading)
{
    pthread_mutex_lock(&known->lock);
    struct table *before = known->read;
    known->read = table;
    for (size_t i = 0; i < SEEN_TENANTS; i++)
        for (size_t k = 0; k < SEEN_EACH; k++)
            if (known->seen[i][k] && known->seen[i][k]->reading < reading) {
                free(known->seen[i][k]);
                known->seen[i][k] = NULL;
            }
    pthread_mutex_unlock(&known->lock);
    return before;
}

enum hf_pg_outcome hf_pool_guards_read(struct hf_pool *r, struct hf_pg_session *session)
{
    struct hf_buffer sql = { .data = NULL };
    PGresult *result = NULL;
    enum hf_pg_outcome outcome = HF_PG_REFUSED;
    pthread_mutex_lock(&r->guards->lock);
    uint64_t reading = ++r->guards->reading;
    pthread_mutex_unlock(&r->guards->lock);
    if (sql_make(&sql))
        outcome = hf_pg_ask(&session->conn, hf_buffer_text(&sql), 0, NULL, true, &result);
    hf_buffer_free(&sql);
    if (outcome == HF_PG_FINE && !hf_pg_session_is_newest(session)) {
        PQclear(result);
        outcome = HF_PG_LOST;
    }
    if (outcome != HF_PG_FINE)
        return outcome;
    struct table *table = calloc(1, sizeof *table);
    if (table) {
        table_fill(r, table, result, &session->set.arena);
        table_free(swap(r->guards, table, reading));
    }
    hf_arena_reset(&session->set.arena);
    PQclear(result);
    return HF_PG_FINE;
}

/* ---- Answering ---- */

static enum hf_found view_guard(void *ctx, struct hf_scoped name, struct hf_guard *out)
{
    struct hf_pool *r = ctx;
    const struct hf_pool_guard *g = find(r, name);
    if (g)
        *out = g->guard;
    return g ? HF_FOUND : HF_UNREADABLE;
}

static enum hf_found view_entry(void *ctx, struct hf_scoped guard, struct hf_bytes identity,
                                struct hf_entry *out)
{
    (void)ctx;
    (void)guard;
    (void)identity;
    (void)out;
    return HF_UNREADABLE;
}

bool hf_pool_guards_answer(struct hf_pool *r, const struct hf_request *request,
                           struct hf_plan *plan, hf_time *now)
{
    const struct hf_view view = { .ctx = r, .guard = view_guard, .entry = view_entry };
    const struct hf_rules rules = { .token_max_length = HF_TOKEN_MAX };
    const struct hf_command cmd = { .request = request, .rules = &rules, .refuse_writes = true };
    if (request->action != HF_CHECK && request->action != HF_RECORD && request->action != HF_ADMIT)
        return false;
    *now = atomic_load(&r->shared.told);
    pthread_mutex_lock(&r->guards->lock);
    hf_decide(&view, &cmd, *now, plan);
    pthread_mutex_unlock(&r->guards->lock);
    pthread_mutex_lock(&r->lock);
    r->stats.guard_misses += plan->missed;
    pthread_mutex_unlock(&r->lock);
    return plan->answer.status != HF_STORAGE_FAILURE;
}
