#include "store/postgres/work.h"

#include "base/assert.h"
#include "core/decide.h"

/* ---- Deciding ---- */

static void decide(struct hf_pg_work *w, const struct hf_pg_item *item)
{
    struct hf_pg_session *s = w->s;
    struct hf_command cmd = { .request = item->request, .rules = &s->rules };
    memcpy(cmd.digest, item->digest, HF_DIGEST_SIZE);
    cmd.fresh_ordinal = hf_pg_drawn(w, w->ordinals, HF_PG_DRAWN_ORDINAL);
    if (cmd.fresh_ordinal)
        hf_pg_id_make(s->shared->id_key, cmd.fresh_ordinal, cmd.fresh_id);
    cmd.fresh_fence = hf_pg_drawn(w, w->fences, HF_PG_DRAWN_FENCE);
    s->set.missed = false;
    hf_decide(&s->set.view, &cmd, s->now, s->plan);
}

static void head_fill(const struct hf_pg_item *item, const struct hf_plan *plan, hf_time now,
                      struct hf_entry_head *head)
{
    const struct hf_request *q = item->request;
    bool by_sequence = plan->remember == HF_REMEMBER_SEQUENCE;
    *head = (struct hf_entry_head){ .action = q->action,
                                    .status = plan->answer.status,
                                    .remember = plan->remember,
                                    .tenant = q->tenant,
                                    .key = plan->remember == HF_REMEMBER_NOT ? hf_pg_none()
                                           : by_sequence                     ? q->client
                                                                             : q->key,
                                    .recorded_at = now,
                                    .expires_at = plan->token.expires_at,
                                    .sequence = by_sequence ? q->sequence : 0 };
    memcpy(head->digest, item->digest, HF_DIGEST_SIZE);
}

static bool has_effect(const struct hf_plan *plan)
{
    return plan->row_count > 0 || plan->remember != HF_REMEMBER_NOT;
}

/* Answer what looking was enough for. Replays wherever they stand; everything else only while nothing before it waits, so
 * that whoever asked behind a change sees it. */
static size_t decide_looked(struct hf_pg_work *w)
{
    struct hf_pg_batch *b = w->batch;
    const struct hf_plan *plan = w->s->plan;
    size_t waiting = 0;
    for (size_t i = 0; i < b->count; i++) {
        struct hf_pg_item *item = &b->items[i];
        decide(w, item);
        bool done = !w->s->set.missed && !has_effect(plan) && !plan->run &&
                    (waiting == 0 || plan->replayed || plan->answer.status == HF_TOKEN_COLLISION);
        item->raced = done && plan->replayed && item->deferred; /* not bound yet at the try before */
        item->deferred = !done;
        item->changes = item->waits = false;
        if (done)
            b->decided(b->arg, i, plan, w->s->now);
        else
            waiting++;
    }
    return waiting;
}

/* Is this the answer of a call before this batch, whatever becomes of the batch? */
static bool is_told_before(struct hf_pg_work *w, const struct hf_request *q)
{
    if (!w->s->plan->replayed || q->client.size > 0)
        return false;
    const struct hf_pg_slot *slot =
        hf_pg_set_slot(&w->s->set, HF_PG_TOKEN, q->tenant, hf_pg_none(), q->key, 0);
    return slot && slot->stored && !slot->dirty;
}

/* Decide the others over rows that are ours. False: begin again. */
static bool decide_taken(struct hf_pg_work *w, bool looked)
{
    struct hf_pg_batch *b = w->batch;
    struct hf_pg_session *s = w->s;
    for (size_t i = 0; i < b->count; i++) {
        struct hf_pg_item *item = &b->items[i];
        if (!item->deferred)
            continue;
        decide(w, item);
        if (s->set.missed)
            return false;
        if (s->plan->run)
            b->apply(b->arg, item->request, &s->set.view, hf_pg_drawn(w, 0, HF_PG_DRAWN_OUTBOX), s->plan,
                     s->now);
        if (!s->conn.pg) /* the function could not read a value */
            return false;
        item->changes = has_effect(s->plan);
        bool told_before = is_told_before(w, item->request);
        item->raced = s->plan->replayed && item->request->key.size > 0 &&
                      hf_action_keyed(item->request->action) && (looked || !told_before);
        if (item->changes) {
            struct hf_entry_head head;
            head_fill(item, s->plan, s->now, &head);
            if (!hf_pg_write_entry(w, &head, hf_entry_need(item->request)))
                w->spoiled = true;
        }
        item->waits = w->entry_count > 0 && !told_before;
        w->ordinals += s->plan->ordinal_used;
        w->fences += s->plan->fence_used;
        b->decided(b->arg, i, s->plan, s->now);
    }
    return true;
}

/* ---- Batches ---- */

static enum hf_pg_end look(struct hf_pg_work *w)
{
    bool any = false;
    for (size_t i = 0; i < w->batch->count; i++)
        hf_pg_want_look(w, w->batch->items[i].request);
    for (int t = 0; t < HF_PG_TABLES; t++)
        any = any || w->s->set.tables[t] != NULL;
    if (any || w->s->now == 0) {
        hf_pg_want_send(w, false);
        hf_pg_work_send(w, HF_PG_NOW, HF_PG_TABLES, NULL, 0);
        enum hf_pg_end end = hf_pg_work_trip(w);
        if (end != HF_PG_DONE)
            return end;
    }
    hf_pg_work_clear(w);
    return HF_PG_DONE;
}

/* How much of everything that is fresh the waiting requests may need, and which rules they go by or change. */
struct demand {
    int numbers, ordinals, fences, outbox;
    bool asks_guards, sets_guards;
    struct hf_bytes tenant; /* of an HF_APPLY */
};

static void demand_add(struct demand *d, const struct hf_request *q)
{
    d->numbers += !hf_action_reads(q->action);
    d->ordinals += q->action == HF_PLACE_HOLD || q->action == HF_REVERSE;
    d->fences += q->action == HF_BEGIN || q->action == HF_GRANT;
    d->asks_guards = d->asks_guards || q->action == HF_RECORD || q->action == HF_ADMIT;
    d->sets_guards = d->sets_guards || q->action == HF_SET_GUARD;
    if (q->action == HF_APPLY) {
        d->outbox = HF_APPLY_ROWS_MAX;
        d->tenant = q->tenant.size > 0 ? q->tenant : hf_str(""); /* NULL data would be SQL's NULL */
    }
}

static enum hf_pg_end take(struct hf_pg_work *w)
{
    struct demand d = { .numbers = 0 };
    enum hf_pg_end end = hf_pg_end_of(hf_pg_session_register(w->s));
    if (end != HF_PG_DONE)
        return end;
    for (size_t i = 0; i < w->batch->count; i++)
        if (w->batch->items[i].deferred) {
            hf_pg_want_take(w, w->batch->items[i].request);
            demand_add(&d, w->batch->items[i].request);
        }
    hf_pg_work_send(w, HF_PG_BEGIN, HF_PG_TABLES, NULL, 0);
    if (w->batch->hurries)
        hf_pg_work_send(w, HF_PG_HURRY, HF_PG_TABLES, NULL, 0);
    hf_pg_work_send(w, HF_PG_KEEP_RULES, HF_PG_TABLES, NULL, 0);
    if (d.sets_guards || d.asks_guards)
        hf_pg_work_send(w, d.sets_guards ? HF_PG_CHANGE_GUARDS : HF_PG_KEEP_GUARDS, HF_PG_TABLES, NULL, 0);
    if (d.outbox > 0)
        hf_pg_work_send(w, HF_PG_TENANT, HF_PG_TABLES, &d.tenant, 1);
    hf_pg_want_send(w, true);
    hf_pg_work_draw(w, d.numbers, d.ordinals, d.fences, d.outbox);
    end = hf_pg_work_trip(w);
    hf_pg_work_clear(w);
    return end;
}

/* For HF_APPLY: a value when the function asks for it, under the tenant's lock. */
static enum hf_found read_value(void *arg, struct hf_scoped key, struct hf_bytes *out)
{
    struct hf_pg_work *w = arg;
    struct hf_pg_slot *slot = hf_pg_want(w, HF_PG_VALUE, key.tenant, hf_pg_none(), key.name, 0, false);
    unsigned char *copy = slot ? hf_arena_take(&w->s->set.arena, key.name.size) : NULL;
    if (!copy)
        return HF_UNREADABLE;
    memcpy(copy, key.name.data,
           key.name.size); /* the caller's bytes may be gone before the batch is written */
    slot->name = slot->record.row.pair.key = hf_mem(copy, key.name.size);
    hf_pg_work_clear(w);
    hf_pg_work_slots(w, HF_PG_READ + HF_PG_VALUE, HF_PG_VALUE, &slot, 1, false, false);
    enum hf_pg_end end = hf_pg_work_trip(w);
    hf_pg_work_clear(w);
    if (end != HF_PG_DONE) {
        hf_pg_disconnect(&w->s->conn);
        return HF_UNREADABLE;
    }
    *out = slot->record.row.pair.value;
    return slot->found ? HF_FOUND : HF_ABSENT;
}

/* May the rows that the batch needs be taken without having looked? What a guard's rule makes of an identity is only known
 * when the guard has been read; and questions need no lock. */
static bool is_clear(const struct hf_pg_batch *b)
{
    bool changes = false;
    for (size_t i = 0; i < b->count; i++) {
        enum hf_action action = b->items[i].request->action;
        if (action == HF_CHECK || action == HF_RECORD || action == HF_ADMIT || action == HF_APPLY)
            return false;
        changes = changes || !hf_action_reads(action);
    }
    return changes;
}

static enum hf_pg_end look_and_take(struct hf_pg_work *w)
{
    struct hf_pg_batch *b = w->batch;
    for (size_t i = 0; i < b->count; i++) {
        hf_pg_want_look(w, b->items[i].request);
        b->items[i].deferred = true;
        b->items[i].changes = b->items[i].waits = false;
    }
    return take(w);
}

/* What the next batch is likely to be. */
static void learn(struct hf_pg_session *s, const struct hf_pg_batch *b)
{
    size_t changes = 0;
    for (size_t i = 0; i < b->count; i++)
        changes += b->items[i].changes;
    s->expects_new = changes > b->count / 2;
}

enum hf_pg_end hf_pg_batch_run(struct hf_pg_session *s, struct hf_pg_batch *batch)
{
    struct hf_pg_work w;
    HF_ASSERT(batch->count > 0 && batch->count <= HF_PG_BATCH_MAX);
    if (!s->conn.pg)
        return HF_PG_GONE;
    hf_pg_work_begin(&w, s, batch);
    s->set.value = read_value;
    s->set.value_arg = &w;
    bool looks = batch->careful || !s->expects_new || !is_clear(batch);
    enum hf_pg_end end = looks ? look(&w) : look_and_take(&w);
    if (end == HF_PG_DONE && (!looks || decide_looked(&w) > 0)) {
        if (looks)
            end = take(&w);
        if (end == HF_PG_DONE && !decide_taken(&w, looks))
            end = s->conn.pg ? HF_PG_AGAIN : HF_PG_GONE;
        if (end == HF_PG_DONE)
            end = hf_pg_write(&w);
    }
    if (end == HF_PG_DONE)
        learn(s, batch);
    return hf_pg_work_end(&w, end);
}
