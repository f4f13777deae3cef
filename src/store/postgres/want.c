#include "store/postgres/transaction.h"

#include "core/action.h"
#include "core/match.h"
#include "core/name.h"

/* ---- Wanting ---- */

struct hf_pg_slot *hf_pg_want(struct hf_pg_tx *w, enum hf_pg_table table, struct hf_bytes tenant,
                              struct hf_bytes scope, struct hf_bytes name, uint64_t number,
                              bool lock)
{
    struct hf_pg_slot *slot = hf_pg_set_slot(&w->s->set, table, tenant, scope, name, number);
    if (slot) {
        slot->wanted = true;
        slot->lock = slot->lock || lock;
    }
    return slot;
}

/* Invalid names are not read: the core refuses them first. */
static void want_named(struct hf_pg_tx *w, enum hf_pg_table table, const struct hf_request *q,
                       struct hf_bytes name, bool lock)
{
    if (hf_name_valid(name))
        hf_pg_want(w, table, q->tenant, hf_pg_none(), name, 0, lock);
}

/* whole: the request does not contain the first call's parameters. */
static void want_token(struct hf_pg_tx *w, const struct hf_request *q, bool lock, bool whole)
{
    struct hf_pg_slot *slot = NULL;
    if (q->key.size > 0 && q->key.size <= HF_TOKEN_MAX)
        slot = hf_pg_want(w, HF_PG_TOKEN, q->tenant, hf_pg_none(), q->key, 0, lock);
    if (slot)
        slot->whole = slot->whole || whole;
}

/* Assume that the key is not bound. */
static void assume_free(struct hf_pg_tx *w, const struct hf_request *q)
{
    struct hf_pg_slot *slot = NULL;
    if (q->key.size > 0 && q->key.size <= HF_TOKEN_MAX)
        slot = hf_pg_set_slot(&w->s->set, HF_PG_TOKEN, q->tenant, hf_pg_none(), q->key, 0);
    if (slot && !slot->wanted)
        slot->assumed = slot->fetched = true;
}

/* lock: lock its resource. */
static void want_hold(struct hf_pg_tx *w, struct hf_bytes id, bool lock)
{
    uint64_t ordinal;
    if (hf_pg_id_read(w->s->shared->id_key, id, &ordinal) && ordinal <= INT64_MAX)
        hf_pg_want(w, HF_PG_HOLD, hf_pg_none(), hf_pg_none(), hf_pg_none(), ordinal, lock);
}

/* Count the requests that need a free unit: overdue holds make room for them. */
static void want_resource(struct hf_pg_tx *w, const struct hf_request *q, struct hf_bytes name,
                          bool lock)
{
    struct hf_pg_slot *slot = NULL;
    if (hf_name_valid(name))
        slot = hf_pg_want(w, HF_PG_RESOURCE, q->tenant, hf_pg_none(), name, 0, lock);
    if (slot)
        slot->uses += hf_action_of(q->action)->overdue;
}

/* Want the resource of the hold `id`, if the hold was read: it is found by its name then. */
static void want_resource_of(struct hf_pg_tx *w, const struct hf_request *q, struct hf_bytes id)
{
    struct hf_hold hold;
    struct hf_scoped name = { q->tenant, id };
    if (w->s->set.view.hold(w->s->set.view.ctx, name, &hold) == HF_FOUND)
        want_resource(w, q, hold.resource, true);
}

/* Want the rows of a client and of its number. */
static void want_number(struct hf_pg_tx *w, const struct hf_request *q, bool lock)
{
    if (!hf_name_valid(q->client))
        return;
    hf_pg_want(w, HF_PG_CLIENT, q->tenant, hf_pg_none(), q->client, 0, lock);
    hf_pg_want(w, HF_PG_CALL, q->tenant, q->client, hf_pg_none(), q->sequence % HF_SEQUENCE_WINDOW,
               false);
}

/* Want the row that the request is about; for an entry its guard, without a lock. */
static void want_row(struct hf_pg_tx *w, const struct hf_request *q, bool lock)
{
    const struct hf_action_info *action = hf_action_of(q->action);
    struct hf_bytes name = hf_action_bytes(q, action->row_name);
    switch (action->row) {
    case HF_ROW_HOLD: want_hold(w, name, lock); break;
    case HF_ROW_RESOURCE: want_resource(w, q, name, lock); break;
    case HF_ROW_GUARD: want_named(w, HF_PG_GUARD, q, name, lock); break;
    case HF_ROW_ENTRY: want_named(w, HF_PG_GUARD, q, name, false); break;
    case HF_ROW_CLAIM:
        if (q->action == HF_GET_TOKEN && q->client.size > 0)
            want_number(w, q, lock);
        else
            want_token(w, q, lock, q->action == HF_GET_TOKEN);
        break;
    case HF_ROW_LEASE: want_named(w, HF_PG_LEASE, q, name, lock); break;
    case HF_ROW_REGISTER: want_named(w, HF_PG_REGISTER, q, name, lock); break;
    case HF_ROW_VALUE:
        if (name.size > 0 && name.size <= HF_APP_KEY_MAX)
            hf_pg_want(w, HF_PG_VALUE, q->tenant, hf_pg_none(), name, 0, lock);
        break;
    default: break;
    }
}

static bool by_key(const struct hf_request *q)
{
    return hf_action_keyed(q->action) && q->client.size == 0;
}

bool hf_pg_want_needs_look(const struct hf_action_info *action)
{
    return action->row == HF_ROW_ENTRY || (action->row == HF_ROW_HOLD && action->overdue);
}

void hf_pg_want_look(struct hf_pg_tx *w, const struct hf_request *q)
{
    const struct hf_action_info *action = hf_action_of(q->action);
    if (!hf_tenant_valid(q->tenant))
        return;
    if (by_key(q) && !w->blind)
        want_token(w, q, false, false);
    else if (by_key(q))
        assume_free(w, q);
    if (action->reads || hf_pg_want_needs_look(action))
        want_row(w, q, false);
}

/* An entry is found by its identity after the guard's match rule; the guard was read by look. */
static void want_entry(struct hf_pg_tx *w, const struct hf_request *q)
{
    struct hf_scoped name = { q->tenant, q->identity.guard };
    struct hf_guard guard;
    struct hf_bytes identity;
    if (!hf_name_valid(name.name) ||
        w->s->set.view.guard(w->s->set.view.ctx, name, &guard) != HF_FOUND)
        return;
    hf_plan_reset(w->s->plan);
    if (hf_match_apply(&guard, q->identity.identity, w->s->plan, &identity) != HF_OK)
        return;
    unsigned char *copy = hf_arena_take(&w->s->set.arena, identity.size);
    if (!copy) {
        w->spoiled = true;
        return;
    }
    memcpy(copy, identity.data, identity.size);
    hf_pg_want(w, HF_PG_ENTRY, q->tenant, q->identity.guard, hf_mem(copy, identity.size), 0,
               q->action != HF_CHECK);
}

/* Want the key that the call would bind, or the number that it would use. */
static void want_key(struct hf_pg_tx *w, const struct hf_request *q)
{
    if (q->client.size == 0) {
        struct hf_pg_slot *slot =
            hf_pg_set_slot(&w->s->set, HF_PG_TOKEN, q->tenant, hf_pg_none(), q->key, 0);
        if (slot && (slot->found ||
                     q->action == HF_APPLY)) /* its window has closed: replace it, under a lock */
            want_token(w, q, true, false);
    } else {
        want_number(w, q, true);
    }
}

void hf_pg_want_take(struct hf_pg_tx *w, const struct hf_request *q)
{
    const struct hf_action_info *action = hf_action_of(q->action);
    if (!hf_tenant_valid(q->tenant))
        return;
    if (action->keyed && q->key.size <= HF_TOKEN_MAX)
        want_key(w, q);
    if (action->row == HF_ROW_ENTRY)
        want_entry(w, q); /* want_row reads the guard again: it may have changed since look */
    else if (hf_pg_want_needs_look(action))
        want_resource_of(w, q, hf_action_bytes(q, action->row_name));
    /* A number that is looked up has two rows, which were read at two moments: now under the
     * client's lock. */
    if (q->action == HF_GET_TOKEN && q->client.size > 0)
        want_row(w, q, true);
    else if (action->reads || !action->row_name)
        hf_pg_want_look(w, q);
    else
        want_row(w, q, true);
}

/* ---- Reading what is wanted ---- */

size_t hf_pg_wanted(struct hf_pg_tx *w, enum hf_pg_table table, bool lock, struct hf_pg_slot ***out)
{
    size_t count = 0;
    for (struct hf_pg_slot *s = w->s->set.tables[table]; s; s = s->next)
        count += s->wanted && (table == HF_PG_HOLD || s->lock == lock);
    *out = count > 0 ? hf_arena_take(&w->s->set.arena, count * sizeof **out) : NULL;
    if (!*out) {
        w->spoiled = w->spoiled || count > 0;
        return 0;
    }
    count = 0;
    for (struct hf_pg_slot *s = w->s->set.tables[table]; s; s = s->next)
        if (s->wanted && (table == HF_PG_HOLD || s->lock == lock))
            (*out)[count++] = s;
    return count;
}

/* Resources are wanted by name, and for holds that may end. */
static void send_resources(struct hf_pg_tx *w, struct hf_pg_slot *const *slots, size_t count,
                           bool lock)
{
    struct hf_buffer *params = w->s->params;
    uint32_t ends = 0;
    hf_pg_array_begin(&params[2], HF_PG_INT8);
    for (const struct hf_pg_slot *h = w->s->set.tables[HF_PG_HOLD]; h; h = h->next)
        if (h->wanted && h->lock) {
            hf_pg_put_int8(&params[2], (int64_t)h->number);
            ends++;
        }
    hf_pg_array_end(&params[2], ends);
    if (ends == 0) {
        if (count > 0)
            hf_pg_tx_slots(w, (lock ? HF_PG_LOCK : HF_PG_READ) + HF_PG_RESOURCE, HF_PG_RESOURCE,
                           slots, count, false, false);
        return;
    }
    struct hf_bytes values[3] = { hf_pg_param_array(&params[0], slots, count, HF_PG_RESOURCE, 0),
                                  hf_pg_param_array(&params[1], slots, count, HF_PG_RESOURCE, 1),
                                  hf_mem(params[2].data, params[2].size) };
    hf_pg_tx_send(w, lock ? HF_PG_LOCK_OF : HF_PG_READ_OF, HF_PG_RESOURCE, values, 3);
}

void hf_pg_want_overdue(struct hf_pg_tx *w, struct hf_pg_slot *const *slots, size_t count,
                        unsigned each)
{
    struct hf_buffer *params = w->s->params;
    if (count == 0)
        return;
    unsigned char told[8];
    struct hf_bytes values[4] = { hf_pg_param_array(&params[0], slots, count, HF_PG_RESOURCE, 0),
                                  hf_pg_param_array(&params[1], slots, count, HF_PG_RESOURCE, 1) };
    hf_pg_array_begin(&params[2], HF_PG_INT4);
    for (size_t i = 0; i < count; i++) {
        slots[i]->swept = true;
        slots[i]->overdue_max = each ? each : slots[i]->uses * HF_OVERDUE_MAX;
        hf_pg_put_int4(&params[2], (int32_t)slots[i]->overdue_max);
    }
    hf_pg_array_end(&params[2], (uint32_t)count);
    values[2] = hf_mem(params[2].data, params[2].size);
    values[3] = hf_pg_param_told(told, w->s);
    hf_pg_tx_send(w, HF_PG_OVERDUE, HF_PG_HOLD, values, 4);
}

/* Read the overdue holds that may block new ones. */
static void send_overdue(struct hf_pg_tx *w)
{
    struct hf_pg_slot **slots;
    size_t count = hf_pg_wanted(w, HF_PG_RESOURCE, true, &slots), placed = 0;
    for (size_t i = 0; i < count; i++)
        if (slots[i]->uses > 0)
            slots[placed++] = slots[i];
    hf_pg_want_overdue(w, slots, placed, 0);
}

static int reading(enum hf_pg_table table, struct hf_pg_slot *const *slots, size_t count)
{
    for (size_t i = 0; table == HF_PG_TOKEN && i < count; i++)
        if (slots[i]->whole)
            return HF_PG_READ_WHOLE;
    return HF_PG_READ + (int)table;
}

void hf_pg_want_read(struct hf_pg_tx *w, bool take)
{
    struct hf_pg_slot **slots;
    for (int table = 0; take && table < HF_PG_TABLES;
         table++) { /* the rows that take_locks would lock */
        size_t count =
            table == HF_PG_HOLD ? 0 : hf_pg_wanted(w, (enum hf_pg_table)table, true, &slots);
        if (table == HF_PG_RESOURCE)
            send_resources(w, slots, count, false);
        else if (count > 0)
            hf_pg_tx_slots(w, reading((enum hf_pg_table)table, slots, count),
                           (enum hf_pg_table)table, slots, count, false, false);
    }
    for (int table = 0; table < HF_PG_TABLES; table++) {
        size_t count = hf_pg_wanted(w, (enum hf_pg_table)table, false, &slots);
        if (count > 0)
            hf_pg_tx_slots(w, reading((enum hf_pg_table)table, slots, count),
                           (enum hf_pg_table)table, slots, count, false, false);
    }
    if (take && w->sweeps)
        send_overdue(w);
}

void hf_pg_want_guards(struct hf_pg_tx *w, int statement)
{
    const struct hf_pg_batch *b = w->batch;
    struct hf_pg_slot **slots = hf_arena_take(&w->s->set.arena, b->count * sizeof *slots);
    size_t count = 0;
    for (size_t i = 0; i < b->count && slots; i++) {
        const struct hf_request *q = b->items[i].request;
        const struct hf_action_info *action = hf_action_of(q->action);
        bool by_guard =
            (action->row == HF_ROW_GUARD || action->row == HF_ROW_ENTRY) && !action->reads;
        struct hf_bytes name = hf_action_bytes(q, action->row_name);
        if (!b->items[i].deferred || !by_guard || !hf_tenant_valid(q->tenant) ||
            !hf_name_valid(name))
            continue;
        slots[count] = hf_pg_set_slot(&w->s->set, HF_PG_GUARD, q->tenant, hf_pg_none(), name, 0);
        if (slots[count])
            count++;
        else
            w->spoiled = true;
    }
    w->spoiled = w->spoiled || !slots;
    if (count == 0)
        return;
    const struct hf_bytes values[] = {
        hf_pg_param_array(&w->s->params[0], slots, count, HF_PG_GUARD, 0),
        hf_pg_param_array(&w->s->params[1], slots, count, HF_PG_GUARD, 1)
    };
    w->spoiled = w->spoiled || w->s->params[0].failed || w->s->params[1].failed;
    hf_pg_tx_send(w, statement, HF_PG_TABLES, values, 2);
}

void hf_pg_want_lock(struct hf_pg_tx *w)
{
    struct hf_pg_slot **slots;
    size_t count;
    for (int table = 0; table <= HF_PG_RESOURCE; table++) {
        count = hf_pg_wanted(w, (enum hf_pg_table)table, true, &slots);
        hf_pg_set_sort(slots, count);
        if (table == HF_PG_RESOURCE)
            send_resources(w, slots, count, true);
        else if (count > 0)
            hf_pg_tx_slots(w, HF_PG_LOCK + table, (enum hf_pg_table)table, slots, count, false,
                           false);
    }
    if ((count = hf_pg_wanted(w, HF_PG_TOKEN, true, &slots)) > 0)
        hf_pg_tx_slots(w, reading(HF_PG_TOKEN, slots, count), HF_PG_TOKEN, slots, count, false,
                       false);
    hf_pg_want_read(w, false);
    if (w->sweeps)
        send_overdue(w);
}
