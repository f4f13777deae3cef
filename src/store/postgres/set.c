#include "store/postgres/set.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "store/record/entry.h"

#include <stdlib.h>

/* ---- Slots ---- */

static struct hf_bytes none(void)
{
    return hf_mem(NULL, 0);
}

/* Hashed with the store's secret: clients choose keys, and must not be able to put them all into
 * one bucket. */
static struct hf_pg_slot **bucket_of(struct hf_pg_set *set, enum hf_pg_table table,
                                     struct hf_bytes tenant, struct hf_bytes scope,
                                     struct hf_bytes name, uint64_t number)
{
    struct hf_sipkey key = { hf_get64(set->id_key) ^ (uint64_t)table,
                             hf_get64(set->id_key + 8) ^ number };
    uint64_t hash = hf_siphash(&key, tenant, name);
    if (scope.size > 0) {
        key.k0 ^= hash;
        hash = hf_siphash(&key, scope, none());
    }
    return &set->buckets[hash % HF_PG_BUCKETS];
}

static bool is_slot(const struct hf_pg_slot *s, enum hf_pg_table table, struct hf_bytes tenant,
                    struct hf_bytes scope, struct hf_bytes name, uint64_t number)
{
    return s->table == table && s->number == number && hf_bytes_equal(s->name, name) &&
           hf_bytes_equal(s->scope, scope) && hf_bytes_equal(s->tenant, tenant);
}

static struct hf_pg_slot *find_in(struct hf_pg_slot *bucket, enum hf_pg_table table,
                                  struct hf_bytes tenant, struct hf_bytes scope,
                                  struct hf_bytes name, uint64_t number)
{
    while (bucket && !is_slot(bucket, table, tenant, scope, name, number))
        bucket = bucket->chain;
    return bucket;
}

static struct hf_pg_slot *find(struct hf_pg_set *set, enum hf_pg_table table,
                               struct hf_bytes tenant, struct hf_bytes scope, struct hf_bytes name,
                               uint64_t number)
{
    return find_in(*bucket_of(set, table, tenant, scope, name, number), table, tenant, scope, name,
                   number);
}

/* Put the slot's key where the table's columns look for it. */
static void key_set(struct hf_pg_slot *s)
{
    struct hf_pg_record *r = &s->record;
    if (hf_pg_spec(s->table)->kind)
        r->row.kind = hf_pg_spec(s->table)->kind;
#define NAMED(member, field)         \
    do {                             \
        (member).tenant = s->tenant; \
        (member).field = s->name;    \
    } while (0)
    switch (s->table) {
    case HF_PG_CLIENT: NAMED(r->row.client, name); break;
    case HF_PG_TOKEN: NAMED(r->token, key); break;
    case HF_PG_GUARD: NAMED(r->row.guard, name); break;
    case HF_PG_ENTRY:
        NAMED(r->row.entry, identity);
        r->row.entry.guard = s->scope;
        break;
    case HF_PG_LEASE: NAMED(r->row.lease, name); break;
    case HF_PG_REGISTER: NAMED(r->row.reg, name); break;
    case HF_PG_RESOURCE:
        NAMED(r->row.resource, name);
        r->due_at = INT64_MAX;
        break;
    case HF_PG_CALL:
        r->call.tenant = s->tenant;
        r->call.client = s->scope;
        r->call.slot = (uint32_t)s->number;
        break;
    case HF_PG_HOLD: r->row.hold.ordinal = s->number; break;
    case HF_PG_VALUE: NAMED(r->row.pair, key); break;
    case HF_PG_OUTBOX: r->row.outbox.number = s->number; break;
    case HF_PG_TABLES: break;
    }
#undef NAMED
}

struct hf_pg_slot *hf_pg_set_slot(struct hf_pg_set *set, enum hf_pg_table table,
                                  struct hf_bytes tenant, struct hf_bytes scope,
                                  struct hf_bytes name, uint64_t number)
{
    struct hf_pg_slot **bucket = bucket_of(set, table, tenant, scope, name, number);
    struct hf_pg_slot *s = find_in(*bucket, table, tenant, scope, name, number);
    if (s)
        return s;
    s = hf_arena_take(&set->arena, sizeof *s);
    if (!s) {
        set->failed = true;
        return NULL;
    }
    memset(s, 0, sizeof *s);
    s->table = table;
    s->tenant = tenant;
    s->scope = scope;
    s->name = name;
    s->number = number;
    key_set(s);
    s->chain = *bucket;
    *bucket = s;
    s->next = set->tables[table];
    set->tables[table] = s;
    return s;
}

/* The slot of a record, by its key. */
static struct hf_pg_slot *slot_of(struct hf_pg_set *set, enum hf_pg_table table,
                                  const struct hf_pg_record *r)
{
    switch (table) {
    case HF_PG_CLIENT:
        return hf_pg_set_slot(set, table, r->row.client.tenant, none(), r->row.client.name, 0);
    case HF_PG_TOKEN: return hf_pg_set_slot(set, table, r->token.tenant, none(), r->token.key, 0);
    case HF_PG_GUARD:
        return hf_pg_set_slot(set, table, r->row.guard.tenant, none(), r->row.guard.name, 0);
    case HF_PG_ENTRY:
        return hf_pg_set_slot(set, table, r->row.entry.tenant, r->row.entry.guard,
                              r->row.entry.identity, 0);
    case HF_PG_LEASE:
        return hf_pg_set_slot(set, table, r->row.lease.tenant, none(), r->row.lease.name, 0);
    case HF_PG_REGISTER:
        return hf_pg_set_slot(set, table, r->row.reg.tenant, none(), r->row.reg.name, 0);
    case HF_PG_RESOURCE:
        return hf_pg_set_slot(set, table, r->row.resource.tenant, none(), r->row.resource.name, 0);
    case HF_PG_CALL:
        return hf_pg_set_slot(set, table, r->call.tenant, r->call.client, none(), r->call.slot);
    case HF_PG_HOLD: return hf_pg_set_slot(set, table, none(), none(), none(), r->row.hold.ordinal);
    case HF_PG_VALUE:
        return hf_pg_set_slot(set, table, r->row.pair.tenant, none(), r->row.pair.key, 0);
    case HF_PG_OUTBOX:
        return hf_pg_set_slot(set, table, none(), none(), none(), r->row.outbox.number);
    case HF_PG_TABLES: break;
    }
    return NULL;
}

struct hf_pg_slot *hf_pg_set_take(struct hf_pg_set *set, enum hf_pg_table table,
                                  const PGresult *result, int row, bool locked)
{
    struct hf_pg_record record;
    if (!hf_pg_record_read(table, result, row, 0, &set->arena, &record) && !record.unsound)
        return NULL;
    record.unsound = record.unsound || !hf_pg_record_fits(set->id_key, table, &record);
    struct hf_pg_slot *s = slot_of(set, table, &record);
    if (!s)
        return NULL;
    struct hf_bytes at = hf_pg_get_bytes(result, row, PQnfields(result) - 2);
    struct hf_bytes version = hf_pg_get_bytes(result, row, PQnfields(result) - 1);
    if (at.size != sizeof s->place.at || version.size != sizeof s->place.version)
        return NULL;
    memcpy(s->place.at, at.data, at.size);
    memcpy(s->place.version, version.data, version.size);
    s->record = record;
    s->fetched = s->stored = true;
    s->found = !record.unsound && record.deleted_at == 0;
    s->locked = s->locked || locked;
    return s;
}

/* ---- The view ---- */

static struct hf_pg_slot *seek(struct hf_pg_set *set, enum hf_pg_table table, struct hf_scoped key,
                               struct hf_bytes scope, uint64_t number)
{
    struct hf_pg_slot *s = find(set, table, key.tenant, scope, key.name, number);
    if (s && s->fetched) {
        set->doubtful = set->doubtful || s->doubtful;
        return s;
    }
    set->missed = true;
    return NULL;
}

static enum hf_found found(const struct hf_pg_slot *s)
{
    return !s || s->record.unsound ? HF_UNREADABLE : s->found ? HF_FOUND : HF_ABSENT;
}

#define VIEW_ROW(function, table, type, member)                               \
    static enum hf_found function(void *ctx, struct hf_scoped key, type *out) \
    {                                                                         \
        const struct hf_pg_slot *s = seek(ctx, table, key, none(), 0);        \
        if (found(s) == HF_FOUND)                                             \
            *out = s->record.row.member;                                      \
        return found(s);                                                      \
    }

VIEW_ROW(view_client, HF_PG_CLIENT, struct hf_client, client)
VIEW_ROW(view_guard, HF_PG_GUARD, struct hf_guard, guard)
VIEW_ROW(view_lease, HF_PG_LEASE, struct hf_lease, lease)
VIEW_ROW(view_register, HF_PG_REGISTER, struct hf_register, reg)
VIEW_ROW(view_resource, HF_PG_RESOURCE, struct hf_resource, resource)

/* Read the stored answer from the entry of a key's first call. */
static enum hf_found remembered(struct hf_bytes image, struct hf_remembered *out)
{
    struct hf_entry_view entry;
    if (image.size == 0 || !hf_entry_parse(image.data, image.size, &entry) ||
        !hf_entry_answer(&entry, &out->answer))
        return HF_UNREADABLE;
    out->action = entry.head.action;
    memcpy(out->digest, entry.head.digest, HF_DIGEST_SIZE);
    out->recorded_at = entry.head.recorded_at;
    out->expires_at = entry.head.expires_at;
    return HF_FOUND;
}

/* Rebuild the stored answer from the row of a key whose entry was not read: a successful
 * place_hold. If the digest is the same, the parameters are those of this request; if it differs,
 * the core compares nothing else. A request that needs the answer without sending the same
 * parameters has the entry read (hf_pg_slot.whole). */
static enum hf_found placed(const struct hf_pg_set *set, const struct hf_pg_token *t,
                            struct hf_remembered *out)
{
    const struct hf_request *q = set->asking;
    if (t->action != HF_PLACE_HOLD || t->status != HF_OK || t->hold == 0 || !q ||
        q->action == HF_GET_TOKEN)
        return HF_UNREADABLE;
    *out = (struct hf_remembered){ .action = t->action,
                                   .recorded_at = t->recorded_at,
                                   .expires_at = t->expires_at,
                                   .answer = { .status = t->status } };
    memcpy(out->digest, t->digest, HF_DIGEST_SIZE);
    if (q->action != HF_PLACE_HOLD || memcmp(set->digest, t->digest, HF_DIGEST_SIZE) != 0)
        return HF_FOUND;
    out->answer.kind = HF_RECORD_HOLD;
    out->answer.hold = (struct hf_hold){ .ordinal = t->hold,
                                         .previous = t->previous,
                                         .state = HF_HELD,
                                         .tenant = q->tenant,
                                         .resource = q->place_hold.resource,
                                         .requester = q->place_hold.requester,
                                         .placed_at = t->recorded_at,
                                         .expires_at = t->recorded_at + q->place_hold.duration_ms };
    hf_pg_id_make(set->id_key, t->hold, out->answer.hold.id);
    return HF_FOUND;
}

static enum hf_found view_token(void *ctx, struct hf_scoped key, struct hf_remembered *out)
{
    const struct hf_pg_slot *s = seek(ctx, HF_PG_TOKEN, key, none(), 0);
    if (found(s) != HF_FOUND)
        return found(s);
    const struct hf_pg_token *t = &s->record.token;
    if (t->state)
        return HF_ABSENT;
    return t->image.size > 0 ? remembered(t->image, out) : placed(ctx, t, out);
}

static enum hf_found view_claim(void *ctx, struct hf_scoped key, struct hf_claim *out)
{
    const struct hf_pg_slot *s = seek(ctx, HF_PG_TOKEN, key, none(), 0);
    if (found(s) != HF_FOUND)
        return found(s);
    const struct hf_pg_token *t = &s->record.token;
    if (!t->state)
        return HF_ABSENT;
    hf_pg_claim_of(t, out);
    return HF_FOUND;
}

static enum hf_found view_sequence(void *ctx, struct hf_scoped client, uint64_t sequence,
                                   struct hf_remembered *out)
{
    struct hf_pg_set *set = ctx;
    struct hf_scoped key = { client.tenant, none() };
    const struct hf_pg_slot *s =
        seek(ctx, HF_PG_CALL, key, client.name, sequence % HF_SEQUENCE_WINDOW);
    if (found(s) != HF_FOUND)
        return found(s);
    if (s->record.call.sequence == sequence)
        return remembered(s->record.call.image, out);
    /* The client's row says that the number is used: a later number has taken its place since that
     * row was read, and the next try sees that. Under the client's lock, a row was changed by
     * hand. */
    const struct hf_pg_slot *c = seek(ctx, HF_PG_CLIENT, client, none(), 0);
    set->missed = set->missed || !c || !c->locked;
    return HF_ABSENT;
}

static struct hf_pg_slot *hold_of(struct hf_pg_set *set, struct hf_scoped id, bool *is_id)
{
    struct hf_scoped key = { none(), none() };
    uint64_t ordinal;
    *is_id = hf_pg_id_read(set->id_key, id.name, &ordinal);
    return *is_id ? seek(set, HF_PG_HOLD, key, none(), ordinal) : NULL;
}

/* Rows that contradict each other. Without a lock, one has changed since the other was read, and
 * the next try sees that. Under the resource's lock, one was changed by hand. */
static enum hf_found misfit(struct hf_pg_set *set, const struct hf_pg_slot *resource)
{
    set->missed = set->missed || !resource->locked;
    return HF_UNREADABLE;
}

/* The hold's resource if it was read and does not count the hold; else NULL. */
static const struct hf_pg_slot *uncounted_by(struct hf_pg_set *set, const struct hf_pg_slot *hold)
{
    const struct hf_hold *h = &hold->record.row.hold;
    const struct hf_pg_slot *r = find(set, HF_PG_RESOURCE, h->tenant, none(), h->resource, 0);
    if (!r || !r->fetched)
        return NULL;
    if (r->record.unsound)
        return r;
    const struct hf_resource *is = &r->record.row.resource;
    bool held = h->state == HF_HELD,
         confirmed = h->state == HF_CONFIRMED && hold->record.succeeded_by[0] == '\0';
    return (held && (!r->found || is->held == 0)) ||
                   (confirmed && (!r->found || is->confirmed == 0))
               ? r
               : NULL;
}

static enum hf_found view_hold(void *ctx, struct hf_scoped id, struct hf_hold *out)
{
    bool is_id;
    const struct hf_pg_slot *s = hold_of(ctx, id, &is_id), *resource;
    if (!is_id)
        return HF_ABSENT;
    if (found(s) != HF_FOUND)
        return found(s);
    if (!hf_bytes_equal(s->record.row.hold.tenant, id.tenant))
        return HF_ABSENT;
    resource = uncounted_by(ctx, s);
    if (resource)
        return misfit(ctx, resource);
    *out = s->record.row.hold;
    return HF_FOUND;
}

static enum hf_found view_successor(void *ctx, struct hf_scoped id, struct hf_successor *out)
{
    bool is_id;
    const struct hf_pg_slot *s = hold_of(ctx, id, &is_id);
    if (!is_id)
        return HF_ABSENT;
    if (found(s) != HF_FOUND)
        return found(s);
    if (s->record.succeeded_by[0] == '\0')
        return HF_ABSENT;
    out->tenant = s->record.row.hold.tenant;
    memcpy(out->original, s->record.row.hold.id, HF_ID_SIZE);
    memcpy(out->successor, s->record.succeeded_by, HF_ID_SIZE);
    return HF_FOUND;
}

static enum hf_found view_overdue(void *ctx, struct hf_scoped resource, hf_time now,
                                  struct hf_hold out[HF_OVERDUE_MAX], size_t *count)
{
    struct hf_pg_set *set = ctx;
    struct hf_pg_slot *s = seek(set, HF_PG_RESOURCE, resource, none(), 0);
    *count = 0;
    if (!s)
        return HF_UNREADABLE;
    if (!s->swept) {
        set->missed_overdue = s->record.due_at <= now;
        set->missed = set->missed || set->missed_overdue;
        return set->missed_overdue ? HF_UNREADABLE : HF_FOUND;
    }
    /* Skip the holds at the front that this batch has expired, for good. */
    while (s->overdue && s->overdue->record.row.hold.state != HF_HELD)
        s->overdue = s->overdue->next_overdue;
    for (const struct hf_pg_slot *h = s->overdue; h && *count < HF_OVERDUE_MAX;
         h = h->next_overdue) {
        const struct hf_hold *hold = &h->record.row.hold;
        if (hold->expires_at > now)
            break;
        if (hold->state == HF_HELD && *count >= s->record.row.resource.held)
            return misfit(set, s);
        if (hold->state == HF_HELD)
            out[(*count)++] = *hold;
    }
    return HF_FOUND;
}

static enum hf_found view_entry(void *ctx, struct hf_scoped guard, struct hf_bytes identity,
                                struct hf_entry *out)
{
    struct hf_scoped key = { guard.tenant, identity };
    const struct hf_pg_slot *s = seek(ctx, HF_PG_ENTRY, key, guard.name, 0);
    if (found(s) == HF_FOUND)
        *out = s->record.row.entry;
    return found(s);
}

/* Is an identity under guard, as far as the set has them? One that was changed by hand counts. */
static bool is_guarded(const struct hf_pg_set *set, struct hf_scoped guard, hf_time now)
{
    for (const struct hf_pg_slot *s = set->tables[HF_PG_ENTRY]; s; s = s->next)
        if (hf_bytes_equal(s->tenant, guard.tenant) && hf_bytes_equal(s->scope, guard.name) &&
            (s->record.unsound || (s->found && now < s->record.row.entry.expires_at)))
            return true;
    return false;
}

/* The batch itself may have recorded one. */
static enum hf_found view_guarded(void *ctx, struct hf_scoped guard, hf_time now)
{
    struct hf_pg_set *set = ctx;
    if (!set->guarded) {
        set->missed = true;
        return HF_UNREADABLE;
    }
    if (!is_guarded(set, guard, now) && set->guarded(set->value_arg, guard, now) == HF_UNREADABLE)
        return HF_UNREADABLE;
    return is_guarded(set, guard, now) ? HF_FOUND : HF_ABSENT;
}

static enum hf_found view_value(void *ctx, struct hf_scoped key, struct hf_bytes *out)
{
    struct hf_pg_set *set = ctx;
    struct hf_pg_slot *s = find(set, HF_PG_VALUE, key.tenant, none(), key.name, 0);
    if (set->value && !(s && s->fetched)) {
        enum hf_found read = set->value(set->value_arg, key, out);
        if (read != HF_UNREADABLE)
            seek(set, HF_PG_VALUE, key, none(), 0);
        return read;
    }
    s = seek(set, HF_PG_VALUE, key, none(), 0);
    if (found(s) == HF_FOUND)
        *out = s->record.row.pair.value;
    return found(s);
}

/* ---- Absorbing a plan ---- */

/* Store a row of the core in its slot; the record gets the new state. */
static struct hf_pg_slot *absorb_row(struct hf_pg_set *set, enum hf_pg_table table,
                                     const struct hf_row *row, hf_time now)
{
    struct hf_pg_record record = { .row = *row };
    if (!hf_pg_record_keep(table, &record, &set->arena)) {
        set->failed = true;
        return NULL;
    }
    struct hf_pg_slot *s = slot_of(set, table, &record);
    if (!s)
        return NULL;
    s->record.row = record.row;
    s->record.unsound = false;
    s->record.deleted_at = row->erase ? now : 0;
    s->found = !row->erase;
    s->fetched = s->dirty = true;
    return s;
}

static bool absorb_claim(struct hf_pg_set *set, const struct hf_claim *c, uint64_t number)
{
    struct hf_pg_record record = { .token = {
                                       .tenant = c->tenant,
                                       .key = c->key,
                                       .action = HF_BEGIN,
                                       .status = HF_OK,
                                       .recorded_at = c->begun_at,
                                       .expires_at = c->expires_at ? c->expires_at : INT64_MAX,
                                       .entry = number,
                                       .state = c->state,
                                       .on_abandon = c->on_abandon == HF_ABANDON_RETRY ? 2 : 1,
                                       .fence = c->fence,
                                       .lease_ms = c->lease_ms,
                                       .lease_expires_at = c->lease_expires_at,
                                       .settled_at = c->settled_at,
                                       .response = c->response,
                                       .retention_ms = c->retention_ms } };
    memcpy(record.token.digest, c->fingerprint, HF_DIGEST_SIZE);
    struct hf_pg_slot *s = NULL;
    if (hf_pg_record_keep(HF_PG_TOKEN, &record, &set->arena))
        s = slot_of(set, HF_PG_TOKEN, &record);
    if (!s)
        return false;
    s->record = record;
    s->found = s->fetched = s->dirty = true;
    return true;
}

static bool absorb_successor(struct hf_pg_set *set, const struct hf_successor *r)
{
    uint64_t ordinal;
    struct hf_pg_slot *s = NULL;
    if (hf_pg_id_read(set->id_key, hf_str(r->original), &ordinal))
        s = hf_pg_set_slot(set, HF_PG_HOLD, none(), none(), none(), ordinal);
    if (!s)
        return false;
    memcpy(s->record.succeeded_by, r->successor, HF_ID_SIZE);
    s->dirty = true;
    return true;
}

static bool absorb_hold(struct hf_pg_set *set, const struct hf_row *row, hf_time now)
{
    const struct hf_hold *h = &row->hold;
    struct hf_pg_slot *r = NULL;
    if (!absorb_row(set, HF_PG_HOLD, row, now))
        return false;
    if (h->state != HF_HELD)
        return true;
    r = hf_pg_set_slot(set, HF_PG_RESOURCE, h->tenant, none(), h->resource, 0);
    if (!r)
        return false;
    if (h->expires_at < r->record.due_at)
        r->record.due_at = h->expires_at;
    if (r->soonest == 0 || h->expires_at < r->soonest)
        r->soonest = h->expires_at;
    return true;
}

static bool absorb_one(struct hf_pg_set *set, const struct hf_row *row, hf_time now,
                       uint64_t number)
{
    struct hf_pg_slot *s;
    switch (row->kind) {
    case HF_ROW_HOLD: return absorb_hold(set, row, now);
    case HF_ROW_CLIENT: return absorb_row(set, HF_PG_CLIENT, row, now) != NULL;
    case HF_ROW_LEASE: return absorb_row(set, HF_PG_LEASE, row, now) != NULL;
    case HF_ROW_REGISTER: return absorb_row(set, HF_PG_REGISTER, row, now) != NULL;
    case HF_ROW_VALUE: return absorb_row(set, HF_PG_VALUE, row, now) != NULL;
    case HF_ROW_OUTBOX: return absorb_row(set, HF_PG_OUTBOX, row, now) != NULL;
    case HF_ROW_RESOURCE: s = absorb_row(set, HF_PG_RESOURCE, row, now); break;
    case HF_ROW_GUARD: s = absorb_row(set, HF_PG_GUARD, row, now); break;
    case HF_ROW_ENTRY:
        s = absorb_row(set, HF_PG_ENTRY, row, now);
        if (s)
            s->record.number = 0; /* a new recording moves to the front of the list */
        break;
    case HF_ROW_CLAIM: return absorb_claim(set, &row->claim, number);
    case HF_ROW_SUCCESSOR: return absorb_successor(set, &row->successor);
    default: return true; /* HF_ROW_CONFIG: the caller writes it */
    }
    if (s && s->record.number == 0)
        s->record.number = number;
    return s != NULL;
}

static bool absorb_key(struct hf_pg_set *set, const struct hf_plan *plan,
                       const struct hf_entry_head *head, uint64_t number, struct hf_bytes image)
{
    bool by_key = plan->remember == HF_REMEMBER_KEY;
    struct hf_pg_slot *s =
        by_key ? hf_pg_set_slot(set, HF_PG_TOKEN, head->tenant, none(), head->key, 0)
               : hf_pg_set_slot(set, HF_PG_CALL, head->tenant, head->key, none(),
                                head->sequence % HF_SEQUENCE_WINDOW);
    if (!s)
        return false;
    const struct hf_hold *hold = plan->answer.kind == HF_RECORD_HOLD ? &plan->answer.hold : NULL;
    bool placed = hold && head->action == HF_PLACE_HOLD && head->status == HF_OK;
    s->record.unsound = false;
    if (by_key) {
        s->record.token = (struct hf_pg_token){ .tenant = s->tenant,
                                                .key = s->name,
                                                .action = head->action,
                                                .status = head->status,
                                                .recorded_at = head->recorded_at,
                                                .expires_at = head->expires_at,
                                                .entry = number,
                                                .hold = hold ? hold->ordinal : 0,
                                                .previous = placed ? hold->previous : 0,
                                                .image = image };
        memcpy(s->record.token.digest, head->digest, HF_DIGEST_SIZE);
    } else {
        s->record.call = (struct hf_pg_call){ .tenant = s->tenant,
                                              .client = s->scope,
                                              .slot = (uint32_t)s->number,
                                              .sequence = head->sequence,
                                              .action = head->action,
                                              .status = head->status,
                                              .recorded_at = head->recorded_at,
                                              .entry = number,
                                              .image = image };
        memcpy(s->record.call.digest, head->digest, HF_DIGEST_SIZE);
    }
    s->found = s->fetched = s->dirty = true;
    return true;
}

bool hf_pg_set_absorb(struct hf_pg_set *set, const struct hf_plan *plan,
                      const struct hf_entry_head *head, uint64_t number, struct hf_bytes image)
{
    for (size_t i = 0; i < plan->row_count; i++)
        if (!absorb_one(set, &plan->rows[i], head->recorded_at, number))
            return false;
    return plan->remember == HF_REMEMBER_NOT || absorb_key(set, plan, head, number, image);
}

/* The holds found are sorted by their end, soonest first. If the limit was reached, nothing is
 * known about later ones. The last one is a bound if it is unknown whether others follow. A hold
 * that cannot be read stays overdue until the operator has repaired it. */
void hf_pg_set_due(struct hf_pg_slot *resource)
{
    const struct hf_pg_slot *h = resource->overdue;
    hf_time *due = &resource->record.due_at;
    if (resource->record.row.resource.held == 0) {
        *due = INT64_MAX;
    } else if (resource->swept && resource->overdue_count < resource->overdue_max &&
               !resource->overdue_unsound) {
        while (h && h->record.row.hold.state != HF_HELD)
            h = h->next_overdue;
        if (!h && !resource->overdue_all)
            h = resource->last_overdue;
        *due = h ? h->record.row.hold.expires_at : INT64_MAX;
        if (resource->soonest > 0 && resource->soonest < *due)
            *due = resource->soonest;
    }
}

/* ---- The order of rows ---- */

static int slot_order(const void *a, const void *b)
{
    const struct hf_pg_slot *x = *(struct hf_pg_slot *const *)a,
                            *y = *(struct hf_pg_slot *const *)b;
    int c = hf_bytes_compare(x->tenant, y->tenant);
    if (c == 0)
        c = hf_bytes_compare(x->scope, y->scope);
    if (c == 0)
        c = hf_bytes_compare(x->name, y->name);
    return c != 0 ? c : x->number < y->number ? -1 : x->number > y->number;
}

void hf_pg_set_sort(struct hf_pg_slot **slots, size_t count)
{
    if (count > 1)
        qsort(slots, count, sizeof *slots, slot_order);
}

/* ---- The set ---- */

void hf_pg_set_init(struct hf_pg_set *set, const uint8_t *id_key)
{
    memset(set, 0, sizeof *set);
    set->id_key = id_key;
    set->view = (struct hf_view){ .ctx = set,
                                  .token = view_token,
                                  .client = view_client,
                                  .sequence = view_sequence,
                                  .hold = view_hold,
                                  .successor = view_successor,
                                  .resource = view_resource,
                                  .overdue = view_overdue,
                                  .guard = view_guard,
                                  .entry = view_entry,
                                  .guarded = view_guarded,
                                  .claim = view_claim,
                                  .lease = view_lease,
                                  .reg = view_register,
                                  .value = view_value };
}

void hf_pg_set_clear(struct hf_pg_set *set)
{
    hf_arena_reset(&set->arena);
    memset(set->buckets, 0, sizeof set->buckets);
    memset(set->tables, 0, sizeof set->tables);
    set->missed = set->missed_overdue = set->doubtful = set->failed = false;
    set->asking = NULL;
}

void hf_pg_set_free(struct hf_pg_set *set)
{
    hf_arena_free(&set->arena);
}
