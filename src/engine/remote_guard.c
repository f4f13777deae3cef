/* Guards that cannot be asked: while the database is away, the rule `on_unavailable` of a guard decides. The rules are in the
 * database too, so all are read when the store is opened and every few seconds, and each is remembered here since it was seen
 * last. A guard that this process has never seen has no rule, and asking it is a storage failure. */
#include "base/bytes.h"
#include "core/decide.h"
#include "engine/remote_inner.h"

#include <stdlib.h>

/* Guards are set up by people, a few for each kind of thing: so many are far more than there are. */
enum { BUCKETS = 256, GUARDS_MAX = 4096 };

struct hf_remote_guard {
    struct hf_remote_guard *next;
    struct hf_guard guard;
    unsigned char bytes[]; /* its tenant and its name */
};

struct hf_remote_guards {
    struct hf_remote_guard *buckets[BUCKETS];
    size_t count;
};

static struct hf_remote_guard **place_of(struct hf_remote_guards *known, struct hf_scoped name)
{
    const unsigned char *p = name.name.data;
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < name.name.size; i++)
        hash = (hash ^ p[i]) * 16777619U;
    struct hf_remote_guard **at = &known->buckets[hash % BUCKETS];
    while (*at && !(hf_bytes_equal((*at)->guard.name, name.name) &&
                    hf_bytes_equal((*at)->guard.tenant, name.tenant)))
        at = &(*at)->next;
    return at;
}

struct hf_remote_guards *hf_remote_guards_make(void)
{
    return calloc(1, sizeof(struct hf_remote_guards));
}

void hf_remote_guards_free(struct hf_remote_guards *known)
{
    for (size_t i = 0; known && i < BUCKETS; i++)
        while (known->buckets[i]) {
            struct hf_remote_guard *g = known->buckets[i];
            known->buckets[i] = g->next;
            free(g);
        }
    free(known);
}

static void learn(struct hf_remote_guards *known, const struct hf_guard *guard)
{
    struct hf_scoped name = { guard->tenant, guard->name };
    struct hf_remote_guard **at = place_of(known, name), *g = *at;
    if (!g) {
        if (known->count == GUARDS_MAX || !(g = calloc(1, sizeof *g + name.tenant.size + name.name.size)))
            return; /* then it is as if it had never been seen */
        if (name.tenant.size > 0)
            memcpy(g->bytes, name.tenant.data, name.tenant.size);
        memcpy(g->bytes + name.tenant.size, name.name.data, name.name.size);
        *at = g;
        known->count++;
    }
    g->guard = *guard;
    g->guard.tenant = hf_mem(g->bytes, name.tenant.size);
    g->guard.name = hf_mem(g->bytes + name.tenant.size, name.name.size);
}

void hf_remote_guards_learn(struct hf_remote *r, const struct hf_pg_set *set)
{
    if (!set->tables[HF_PG_GUARD])
        return;
    pthread_mutex_lock(&r->lock);
    for (const struct hf_pg_slot *s = set->tables[HF_PG_GUARD]; s; s = s->next)
        if (s->fetched && s->found)
            learn(r->guards, &s->record.row.guard);
    pthread_mutex_unlock(&r->lock);
}

enum hf_pg_outcome hf_remote_guards_read(struct hf_remote *r, struct hf_pg_session *session)
{
    struct hf_buffer sql = { .data = NULL };
    PGresult *result = NULL;
    hf_buffer_add_text(&sql, "SELECT ");
    hf_pg_sql_columns(&sql, HF_PG_GUARD);
    hf_buffer_printf(&sql, " FROM holdfast.guard t LIMIT %d", GUARDS_MAX);
    const char *text = hf_buffer_text(&sql);
    enum hf_pg_outcome outcome =
        text ? hf_pg_ask(&session->conn, text, 0, NULL, true, &result) : HF_PG_REFUSED;
    hf_buffer_free(&sql);
    if (outcome != HF_PG_FINE)
        return outcome;
    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < PQntuples(result); i++) {
        struct hf_pg_record record;
        if (hf_pg_record_read(HF_PG_GUARD, result, i, 0, &session->set.arena, &record))
            learn(r->guards, &record.row.guard);
    }
    pthread_mutex_unlock(&r->lock);
    hf_arena_reset(&session->set.arena);
    PQclear(result);
    return HF_PG_FINE;
}

static enum hf_found view_guard(void *ctx, struct hf_scoped name, struct hf_guard *out)
{
    struct hf_remote *r = ctx;
    const struct hf_remote_guard *g = *place_of(r->guards, name);
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

bool hf_remote_guards_answer(struct hf_remote *r, const struct hf_request *request, struct hf_plan *plan,
                             hf_time *now)
{
    const struct hf_view view = { .ctx = r, .guard = view_guard, .entry = view_entry };
    const struct hf_rules rules = { .token_max_length = HF_TOKEN_MAX };
    const struct hf_command cmd = { .request = request, .rules = &rules, .refuse_writes = true };
    if (request->action != HF_CHECK && request->action != HF_RECORD && request->action != HF_ADMIT)
        return false;
    *now = atomic_load(&r->shared.told);
    pthread_mutex_lock(&r->lock);
    hf_decide(&view, &cmd, *now, plan);
    r->stats.guard_misses += plan->missed;
    pthread_mutex_unlock(&r->lock);
    return plan->answer.status != HF_STORAGE_FAILURE;
}
