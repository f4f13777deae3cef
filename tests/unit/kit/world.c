#include "unit/kit/world.h"

#include "base/bytes.h"
#include "core/decide.h"
#include "core/digest.h"
#include "support/test.h"

/* ---- Rows: their keys and their bytes ---- */

struct key {
    struct hf_bytes tenant, first, second;
};

static struct key row_key(const struct hf_row *row)
{
    switch (row->kind) {
    case HF_ROW_HOLD: return (struct key){ row->hold.tenant, hf_str(row->hold.id), { NULL, 0 } };
    case HF_ROW_RESOURCE:
        return (struct key){ row->resource.tenant, row->resource.name, { NULL, 0 } };
    case HF_ROW_GUARD: return (struct key){ row->guard.tenant, row->guard.name, { NULL, 0 } };
    case HF_ROW_ENTRY:
        return (struct key){ row->entry.tenant, row->entry.guard, row->entry.identity };
    case HF_ROW_CLAIM: return (struct key){ row->claim.tenant, row->claim.key, { NULL, 0 } };
    case HF_ROW_LEASE: return (struct key){ row->lease.tenant, row->lease.name, { NULL, 0 } };
    case HF_ROW_REGISTER: return (struct key){ row->reg.tenant, row->reg.name, { NULL, 0 } };
    case HF_ROW_CLIENT: return (struct key){ row->client.tenant, row->client.name, { NULL, 0 } };
    case HF_ROW_VALUE: return (struct key){ row->pair.tenant, row->pair.key, { NULL, 0 } };
    case HF_ROW_SUCCESSOR:
        return (struct key){ row->successor.tenant, hf_str(row->successor.original), { NULL, 0 } };
    case HF_ROW_OUTBOX:
    case HF_ROW_CONFIG: break;
    }
    fail_msg("the core planned a row of kind %d", (int)row->kind);
    return (struct key){ { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };
}

/* Replace borrowed bytes by a copy of the world's own. */
static void own(struct world *w, struct hf_bytes *b)
{
    if (w->copy_count == w->copy_room) {
        w->copy_room = w->copy_room ? 2 * w->copy_room : 64;
        w->copies = realloc(w->copies, w->copy_room * sizeof *w->copies);
        assert_non_null(w->copies);
    }
    void *copy = malloc(b->size + 1);
    assert_non_null(copy);
    if (b->size > 0)
        memcpy(copy, b->data, b->size);
    w->copies[w->copy_count++] = copy;
    b->data = copy;
}

static void own_all(struct world *w, struct hf_bytes **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        own(w, list[i]);
}

static void row_own(struct world *w, struct hf_row *r)
{
    switch (r->kind) {
    case HF_ROW_HOLD:
        own_all(w, (struct hf_bytes *[]){ &r->hold.tenant, &r->hold.resource, &r->hold.requester },
                3);
        break;
    case HF_ROW_RESOURCE:
        own_all(w, (struct hf_bytes *[]){ &r->resource.tenant, &r->resource.name }, 2);
        break;
    case HF_ROW_GUARD:
        own_all(w, (struct hf_bytes *[]){ &r->guard.tenant, &r->guard.name }, 2);
        break;
    case HF_ROW_ENTRY:
        own_all(w,
                (struct hf_bytes *[]){ &r->entry.tenant, &r->entry.guard, &r->entry.identity,
                                       &r->entry.result },
                4);
        break;
    case HF_ROW_CLAIM:
        own_all(w, (struct hf_bytes *[]){ &r->claim.tenant, &r->claim.key, &r->claim.response }, 3);
        break;
    case HF_ROW_LEASE:
        own_all(w, (struct hf_bytes *[]){ &r->lease.tenant, &r->lease.name, &r->lease.holder }, 3);
        break;
    case HF_ROW_REGISTER:
        own_all(w, (struct hf_bytes *[]){ &r->reg.tenant, &r->reg.name, &r->reg.value.bytes }, 3);
        break;
    case HF_ROW_CLIENT:
        own_all(w, (struct hf_bytes *[]){ &r->client.tenant, &r->client.name }, 2);
        break;
    case HF_ROW_VALUE:
        own_all(w, (struct hf_bytes *[]){ &r->pair.tenant, &r->pair.key, &r->pair.value }, 3);
        break;
    case HF_ROW_SUCCESSOR: own(w, &r->successor.tenant); break;
    case HF_ROW_OUTBOX:
    case HF_ROW_CONFIG: break;
    }
}

static bool same_key(struct key a, struct key b)
{
    return hf_bytes_equal(a.tenant, b.tenant) && hf_bytes_equal(a.first, b.first) &&
           hf_bytes_equal(a.second, b.second);
}

static struct hf_row *find(struct world *w, enum hf_row_kind kind, struct key key)
{
    struct world_table *t = &w->tables[kind];
    for (size_t i = 0; i < t->count; i++)
        if (same_key(row_key(&t->rows[i]), key))
            return &t->rows[i];
    return NULL;
}

const struct hf_row *world_row(struct world *w, enum hf_row_kind kind, const char *tenant,
                               const char *first, const char *second)
{
    return find(w, kind, (struct key){ hf_str(tenant), hf_str(first), hf_str(second) });
}

size_t world_count(const struct world *w, enum hf_row_kind kind)
{
    return w->tables[kind].count;
}

/* ---- The view ---- */

/* One look-up: injected failure, or the row with this key. */
static enum hf_found look(struct world *w, enum world_lookup lookup, enum hf_row_kind kind,
                          struct hf_scoped name, struct hf_bytes second, const struct hf_row **row)
{
    w->lookups++;
    if (w->unreadable[lookup])
        return HF_UNREADABLE;
    *row = find(w, kind, (struct key){ name.tenant, name.name, second });
    return *row ? HF_FOUND : HF_ABSENT;
}

#define LOOK_UP(function, lookup, row_kind, type, member)                               \
    static enum hf_found function(void *ctx, struct hf_scoped name, type *out)          \
    {                                                                                   \
        const struct hf_row *row;                                                       \
        enum hf_found found = look(ctx, lookup, row_kind, name, hf_mem(NULL, 0), &row); \
        if (found == HF_FOUND)                                                          \
            *out = row->member;                                                         \
        return found;                                                                   \
    }

LOOK_UP(view_client, WORLD_CLIENT, HF_ROW_CLIENT, struct hf_client, client)
LOOK_UP(view_hold, WORLD_HOLD, HF_ROW_HOLD, struct hf_hold, hold)
LOOK_UP(view_successor, WORLD_SUCCESSOR, HF_ROW_SUCCESSOR, struct hf_successor, successor)
LOOK_UP(view_resource, WORLD_RESOURCE, HF_ROW_RESOURCE, struct hf_resource, resource)
LOOK_UP(view_guard, WORLD_GUARD, HF_ROW_GUARD, struct hf_guard, guard)
LOOK_UP(view_claim, WORLD_CLAIM, HF_ROW_CLAIM, struct hf_claim, claim)
LOOK_UP(view_lease, WORLD_LEASE, HF_ROW_LEASE, struct hf_lease, lease)
LOOK_UP(view_reg, WORLD_REGISTER, HF_ROW_REGISTER, struct hf_register, reg)
LOOK_UP(view_value, WORLD_VALUE, HF_ROW_VALUE, struct hf_bytes, pair.value)

static enum hf_found view_entry(void *ctx, struct hf_scoped guard, struct hf_bytes identity,
                                struct hf_entry *out)
{
    const struct hf_row *row;
    enum hf_found found = look(ctx, WORLD_ENTRY, HF_ROW_ENTRY, guard, identity, &row);
    if (found == HF_FOUND)
        *out = row->entry;
    return found;
}

static enum hf_found view_guarded(void *ctx, struct hf_scoped guard, hf_time now)
{
    const struct world *w = ctx;
    if (w->unreadable[WORLD_ENTRY])
        return HF_UNREADABLE;
    for (size_t i = 0; i < w->tables[HF_ROW_ENTRY].count; i++) {
        const struct hf_entry *e = &w->tables[HF_ROW_ENTRY].rows[i].entry;
        if (hf_bytes_equal(e->tenant, guard.tenant) && hf_bytes_equal(e->guard, guard.name) &&
            now < e->expires_at)
            return HF_FOUND;
    }
    return HF_ABSENT;
}

static struct world_token *token_find(struct world *w, struct hf_scoped name, uint64_t sequence)
{
    for (size_t i = 0; i < w->token_count; i++) {
        struct world_token *t = &w->tokens[i];
        if (t->sequence == sequence && hf_bytes_equal(t->tenant, name.tenant) &&
            hf_bytes_equal(t->name, name.name))
            return t;
    }
    return NULL;
}

static enum hf_found token_look(struct world *w, enum world_lookup lookup, struct hf_scoped name,
                                uint64_t sequence, struct hf_remembered *out)
{
    w->lookups++;
    if (w->unreadable[lookup])
        return HF_UNREADABLE;
    const struct world_token *t = token_find(w, name, sequence);
    if (t)
        *out = t->first;
    return t ? HF_FOUND : HF_ABSENT;
}

static enum hf_found view_token(void *ctx, struct hf_scoped key, struct hf_remembered *out)
{
    return token_look(ctx, WORLD_TOKEN, key, 0, out);
}

static enum hf_found view_sequence(void *ctx, struct hf_scoped client, uint64_t sequence,
                                   struct hf_remembered *out)
{
    return token_look(ctx, WORLD_SEQUENCE, client, sequence, out);
}

static enum hf_found view_overdue(void *ctx, struct hf_scoped resource, hf_time now,
                                  struct hf_hold out[HF_OVERDUE_MAX], size_t *count)
{
    struct world *w = ctx;
    const struct world_table *t = &w->tables[HF_ROW_HOLD];
    w->lookups++;
    if (w->unreadable[WORLD_OVERDUE])
        return HF_UNREADABLE;
    *count = 0;
    for (size_t i = 0; i < t->count && *count < HF_OVERDUE_MAX; i++) {
        const struct hf_hold *h = &t->rows[i].hold;
        if (h->state == HF_HELD && h->expires_at <= now &&
            hf_bytes_equal(h->tenant, resource.tenant) &&
            hf_bytes_equal(h->resource, resource.name))
            out[(*count)++] = *h;
    }
    return HF_FOUND;
}

/* ---- Making and ending a world ---- */

struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->rules = (struct hf_rules){ .idempotency_window_ms = 86400000, .token_max_length = 256 };
    w->now = WORLD_START;
    w->plan.scratch = malloc(HF_PLAN_SCRATCH);
    assert_non_null(w->plan.scratch);
    w->view = (struct hf_view){ w,          view_token,     view_client,   view_sequence,
                                view_hold,  view_successor, view_resource, view_overdue,
                                view_guard, view_entry,     view_guarded,  view_claim,
                                view_lease, view_reg,       view_value };
    return w;
}

void world_free(struct world *w)
{
    for (size_t i = 0; i < w->copy_count; i++)
        free(w->copies[i]);
    for (size_t i = 0; i <= HF_ROW_CONFIG; i++)
        free(w->tables[i].rows);
    free(w->copies);
    free(w->tokens);
    free(w->plan.scratch);
    free(w);
}

/* ---- Carrying out ---- */

/* Writing over a hold: it must have been held, and what never changes must not (PC2 to PC5). */
static void hold_check_change(const struct hf_hold *was, const struct hf_hold *is)
{
    assert_int_equal(was->state, HF_HELD);
    assert_int_not_equal(is->state, HF_HELD);
    assert_true(hf_bytes_equal(was->resource, is->resource));
    assert_true(hf_bytes_equal(was->requester, is->requester));
    assert_true(was->ordinal == is->ordinal && was->previous == is->previous);
    assert_true(was->placed_at == is->placed_at && was->expires_at == is->expires_at);
}

static void row_put(struct world *w, const struct hf_row *given)
{
    struct world_table *t = &w->tables[given->kind];
    struct hf_row *row = find(w, given->kind, row_key(given));
    if (row && given->kind == HF_ROW_HOLD)
        hold_check_change(&row->hold, &given->hold);
    if (!row) {
        if (t->count == t->room) {
            t->room = t->room ? 2 * t->room : 64;
            t->rows = realloc(t->rows, t->room * sizeof *t->rows);
            assert_non_null(t->rows);
        }
        row = &t->rows[t->count++];
    }
    *row = *given;
    row_own(w, row);
}

/* An answer's record borrows the same members as the row of its kind. */
static void answer_own(struct world *w, struct hf_answer *answer)
{
    static const enum hf_row_kind kinds[] = {
        [HF_RECORD_HOLD] = HF_ROW_HOLD,   [HF_RECORD_RESOURCE] = HF_ROW_RESOURCE,
        [HF_RECORD_GUARD] = HF_ROW_GUARD, [HF_RECORD_CLAIM] = HF_ROW_CLAIM,
        [HF_RECORD_LEASE] = HF_ROW_LEASE, [HF_RECORD_REGISTER] = HF_ROW_REGISTER,
    };
    if (answer->kind == HF_RECORD_VALUE)
        own(w, &answer->value);
    if (answer->kind == HF_NO_RECORD || answer->kind == HF_RECORD_VALUE)
        return;
    assert_true(answer->kind < sizeof kinds / sizeof *kinds && kinds[answer->kind] != 0);
    struct hf_row row = { .kind = kinds[answer->kind] };
    memcpy(&row.hold, &answer->hold, sizeof *answer - offsetof(struct hf_answer, hold));
    row_own(w, &row);
    memcpy(&answer->hold, &row.hold, sizeof *answer - offsetof(struct hf_answer, hold));
}

static void token_put(struct world *w, const struct hf_request *r)
{
    bool by_key = w->plan.remember == HF_REMEMBER_KEY;
    struct hf_scoped name = { r->tenant, by_key ? r->key : r->client };
    uint64_t sequence = by_key ? 0 : r->sequence;
    struct world_token *t = token_find(w, name, sequence);
    if (t)
        assert_true(t->first.expires_at <= w->now); /* one token, one effect a window */
    if (!t && w->token_count == w->token_room) {
        w->token_room = w->token_room ? 2 * w->token_room : 64;
        w->tokens = realloc(w->tokens, w->token_room * sizeof *w->tokens);
        assert_non_null(w->tokens);
    }
    if (!t)
        t = &w->tokens[w->token_count++];
    *t = (struct world_token){ .tenant = name.tenant, .name = name.name, .sequence = sequence };
    own_all(w, (struct hf_bytes *[]){ &t->tenant, &t->name }, 2);
    t->first.action = w->plan.token.action;
    t->first.recorded_at = w->plan.token.recorded_at;
    t->first.expires_at = w->plan.token.expires_at;
    memcpy(t->first.digest, w->plan.token.digest, HF_DIGEST_SIZE);
    t->first.answer = w->plan.answer;
    answer_own(w, &t->first.answer);
    assert_int_equal(w->plan.token.status, w->plan.answer.status);
    assert_int_equal(w->plan.token.action, r->action);
    assert_int_equal(w->plan.token.recorded_at, w->now);
}

/* What every plan must keep, whatever was asked. */
static void plan_check(const struct world *w)
{
    const struct hf_plan *p = &w->plan;
    if (p->replayed)
        assert_true(p->row_count == 0 && p->remember == HF_REMEMBER_NOT && !p->ordinal_used);
    if (p->row_count > 0)
        assert_true(p->answer.status == HF_OK || p->remember != HF_REMEMBER_NOT);
    if (p->answer.status >= HF_STORAGE_FAILURE)
        assert_true(p->row_count == 0 && p->remember == HF_REMEMBER_NOT && !p->replayed && !p->run);
    if (p->ordinal_used)
        assert_true(p->answer.status == HF_OK && p->answer.hold.ordinal == w->ordinal + 1);
}

static void carry_out(struct world *w, const struct hf_request *r)
{
    plan_check(w);
    for (size_t i = 0; i < w->plan.row_count; i++)
        row_put(w, &w->plan.rows[i]);
    if (w->plan.remember != HF_REMEMBER_NOT)
        token_put(w, r);
    w->ordinal += w->plan.ordinal_used;
    w->fence += w->plan.fence_used;
}

enum hf_status world_decide(struct world *w, const struct hf_request *request)
{
    struct hf_command cmd = { .request = request,
                              .rules = &w->rules,
                              .fresh_ordinal = w->ordinal + 1,
                              .fresh_fence = w->fence + 1,
                              .refuse_writes = w->refuse_writes,
                              .may_end = w->may_end,
                              .has_reserve = w->has_reserve };
    hf_digest(request, cmd.digest);
    snprintf(cmd.fresh_id, sizeof cmd.fresh_id, "h%025llu", (unsigned long long)w->ordinal + 1);
    hf_decide(&w->view, &cmd, w->now, &w->plan);
    return w->plan.answer.status;
}

enum hf_status world_do(struct world *w, const struct hf_request *request)
{
    enum hf_status status = world_decide(w, request);
    carry_out(w, request);
    return status;
}

enum hf_status world_sweep(struct world *w, const struct hf_hold *hold)
{
    hf_decide_sweep(&w->view, hold, w->now, &w->plan);
    carry_out(w, NULL);
    return w->plan.answer.status;
}

/* ---- Checking ---- */

static void hold_check(const struct hf_hold *h)
{
    assert_in_range(h->state, HF_HELD, HF_EXPIRED);
    assert_true(h->placed_at < h->expires_at);
    assert_true((h->state == HF_HELD) == (h->ended_at == 0));
    if (h->state == HF_CONFIRMED)
        assert_true(h->placed_at <= h->ended_at && h->ended_at < h->expires_at);
    if (h->state == HF_RELEASED)
        assert_true(h->placed_at <= h->ended_at);
    if (h->state == HF_EXPIRED)
        assert_true(h->expires_at <= h->ended_at);
}

static void resource_check(const struct world *w, const struct hf_resource *r)
{
    const struct world_table *t = &w->tables[HF_ROW_HOLD];
    uint32_t held = 0, confirmed = 0;
    uint64_t newest = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct hf_hold *h = &t->rows[i].hold;
        if (!hf_bytes_equal(h->tenant, r->tenant) || !hf_bytes_equal(h->resource, r->name))
            continue;
        assert_true(h->previous == newest); /* rows stand in the order of placing */
        newest = h->ordinal;
        held += h->state == HF_HELD;
        confirmed += h->state == HF_CONFIRMED;
        confirmed -= h->reverses[0] != '\0';
    }
    assert_int_equal(r->held, held);
    assert_int_equal(r->confirmed, confirmed);
    assert_true(r->newest == newest);
    assert_true(r->held + r->confirmed <= r->capacity);
}

void world_check(const struct world *w)
{
    const struct world_table *holds = &w->tables[HF_ROW_HOLD];
    const struct world_table *resources = &w->tables[HF_ROW_RESOURCE];
    assert_true(holds->count == w->ordinal); /* PC9, PC10: none lost, none reused */
    for (size_t i = 0; i < holds->count; i++)
        hold_check(&holds->rows[i].hold);
    for (size_t i = 0; i < resources->count; i++)
        resource_check(w, &resources->rows[i].resource);
}
