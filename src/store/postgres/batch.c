#include "store/postgres/transaction.h"

#include "base/assert.h"
#include "core/action.h"
#include "core/decide.h"

/* ---- Expectations ---- */

/* After an event in one batch, it is expected again in so many batches. Locks: few at first, twice
 * as many each time it happens again soon. */
enum { LOCKING_MIN = 4, LOCKING_MAX = 256, CALM = 16, LOOKING = 256, SWEEPING = 64 };

static void expect(_Atomic int *what, int batches)
{
    atomic_store(what, batches);
}

static void expect_others(struct hf_pg_shared *shared)
{
    int before = atomic_load(&shared->caution);
    bool soon = atomic_exchange(&shared->calm, 0) < CALM;
    int batches = !soon || before < LOCKING_MIN ? LOCKING_MIN
                  : before < LOCKING_MAX        ? 2 * before
                                                : before;
    atomic_store(&shared->caution, batches);
    expect(&shared->locking, batches);
}

/* Is it expected? Counts one batch down. */
static bool is_expected(_Atomic int *what)
{
    int left = atomic_load(what);
    while (left > 0 && !atomic_compare_exchange_weak(what, &left, left - 1))
        ;
    return left > 0;
}

/* Set what to expect from the next batch. */
static void learn(const struct hf_pg_tx *w)
{
    struct hf_pg_session *s = w->s;
    const struct hf_pg_batch *b = w->batch;
    size_t changes = 0, questions = 0;
    for (size_t i = 0; i < b->count; i++) {
        changes += b->items[i].changes;
        questions += hf_action_reads(b->items[i].request->action);
    }
    s->expects_new = changes > b->count / 2;
    if (w->swift && changes > 0)
        atomic_fetch_add(&s->shared->calm, 1);
    if (changes + questions < b->count) /* perhaps retries */
        expect(&s->shared->looking, LOOKING);
}

/* Learn why a batch had to start again. */
static void learn_conflict(const struct hf_pg_tx *w)
{
    struct hf_pg_session *s = w->s;
    if (w->blind && strcmp(s->conn.state, "23505") == 0)
        expect(&s->shared->looking, LOOKING);
    else if (w->swift)
        expect_others(s->shared);
}

/* ---- Deciding ---- */

static void decide(struct hf_pg_tx *w, const struct hf_pg_item *item)
{
    struct hf_pg_session *s = w->s;
    struct hf_command cmd = { .request = item->request, .rules = &s->rules };
    memcpy(cmd.digest, item->digest, HF_DIGEST_SIZE);
    cmd.fresh_ordinal = hf_pg_drawn(w, w->ordinals, HF_PG_DRAWN_ORDINAL);
    if (cmd.fresh_ordinal)
        hf_pg_id_make(s->shared->id_key, cmd.fresh_ordinal, cmd.fresh_id);
    cmd.fresh_fence = hf_pg_drawn(w, w->fences, HF_PG_DRAWN_FENCE);
    s->set.missed = s->set.missed_overdue = false;
    s->set.doubtful = s->doubtful;
    s->set.asking = item->request;
    s->set.digest = item->digest;
    hf_decide(&s->set.view, &cmd, s->now, s->plan);
}

static bool has_effect(const struct hf_plan *plan)
{
    return plan->row_count > 0 || plan->remember != HF_REMEMBER_NOT;
}

/* The key of the request. NULL: no valid key, or out of memory. */
static struct hf_pg_slot *key_of(struct hf_pg_tx *w, const struct hf_request *q)
{
    if (q->key.size == 0 || q->key.size > HF_TOKEN_MAX)
        return NULL;
    return hf_pg_set_slot(&w->s->set, HF_PG_TOKEN, q->tenant, hf_pg_none(), q->key, 0);
}

static void defer(struct hf_pg_tx *w, const struct hf_request *q)
{
    struct hf_pg_slot *key = hf_action_reads(q->action) ? NULL : key_of(w, q);
    if (key)
        key->awaited = true;
}

/* Would the request get this answer after any of the deferred ones too? Not if one of them has the
 * same key: it may begin or settle a claim. */
static bool is_told_anywhere(struct hf_pg_tx *w, const struct hf_request *q)
{
    const struct hf_plan *plan = w->s->plan;
    if (!plan->replayed && plan->answer.status != HF_TOKEN_COLLISION)
        return false;
    const struct hf_pg_slot *key = key_of(w, q);
    return key && !key->awaited;
}

/* Answer the requests for which look was enough. Replays at any position; all others only if no
 * earlier request is deferred, so that a read after a change sees the change. */
static size_t decide_looked(struct hf_pg_tx *w)
{
    struct hf_pg_batch *b = w->batch;
    const struct hf_plan *plan = w->s->plan;
    size_t waiting = 0;
    for (size_t i = 0; i < b->count; i++) {
        struct hf_pg_item *item = &b->items[i];
        decide(w, item);
        bool done = !w->s->set.missed && !has_effect(plan) && !plan->run &&
                    (waiting == 0 || is_told_anywhere(w, item->request));
        /* Was the key unbound at the try before? */
        item->raced = done && plan->replayed && item->deferred && !item->known;
        item->known = plan->replayed;
        item->deferred = !done;
        item->changes = false;
        item->waits = done && w->s->set.doubtful;
        if (done)
            b->decided(b->arg, i, plan, w->s->now);
        else
            defer(w, item->request);
        waiting += !done;
    }
    return waiting;
}

/* Is this the answer of a call before this batch, valid even if the batch fails? */
static bool is_told_before(struct hf_pg_tx *w, const struct hf_request *q)
{
    if (!w->s->plan->replayed || q->client.size > 0)
        return false;
    const struct hf_pg_slot *slot =
        hf_pg_set_slot(&w->s->set, HF_PG_TOKEN, q->tenant, hf_pg_none(), q->key, 0);
    return slot && slot->stored && !slot->dirty;
}

/* Did the decision use only rows that the commit protects: rows that the item changes, and keys
 * that it binds? An answer without an effect is as old as the read, which is enough for a single
 * row. */
static bool is_sure(struct hf_pg_tx *w, const struct hf_pg_item *item)
{
    const struct hf_plan *plan = w->s->plan;
    const struct hf_request *q = item->request;
    const struct hf_pg_slot *slot;
    if (item->changes)
        return plan->answer.status == HF_OK && plan->row_count > 0;
    if (!hf_action_keyed(q->action) || plan->replayed)
        return true;
    if (q->client.size > 0)
        return false;
    slot = hf_pg_set_slot(&w->s->set, HF_PG_TOKEN, q->tenant, hf_pg_none(), q->key, 0);
    return slot && (!slot->assumed || slot->dirty);
}

/* For HF_SET_GUARD, once no other transaction can record under the guard. */
static enum hf_found read_guarded(void *arg, struct hf_scoped guard, hf_time now)
{
    struct hf_pg_tx *w = arg;
    unsigned char at[8];
    const struct hf_bytes values[] = { guard.tenant.size > 0 ? guard.tenant : hf_str(""),
                                       guard.name, hf_pg_param8(at, hf_pg_time(now)) };
    hf_pg_tx_clear(w);
    hf_pg_tx_send(w, HF_PG_GUARDED, HF_PG_ENTRY, values, 3);
    enum hf_pg_end end = hf_pg_tx_trip(w);
    hf_pg_tx_clear(w);
    if (end == HF_PG_DONE)
        return HF_FOUND;
    hf_pg_disconnect(&w->s->conn);
    return HF_UNREADABLE;
}

/* Decide the deferred items over rows that are locked, or that the commit will check. False: start
 * again. */
static bool decide_taken(struct hf_pg_tx *w, bool looked)
{
    struct hf_pg_batch *b = w->batch;
    struct hf_pg_session *s = w->s;
    s->set.guarded = read_guarded;
    for (size_t i = 0; i < b->count; i++) {
        struct hf_pg_item *item = &b->items[i];
        if (!item->deferred)
            continue;
        decide(w, item);
        if (s->set.missed_overdue)
            expect(&s->shared->sweeping, SWEEPING);
        if (s->set.missed)
            return false;
        if (s->plan->run)
            b->apply(b->arg, item->request, &s->set.view, hf_pg_drawn(w, 0, HF_PG_DRAWN_OUTBOX),
                     s->plan, s->now);
        if (!s->conn.pg) /* a value or a guard's entries could not be read */
            return false;
        item->changes = has_effect(s->plan);
        bool told_before = is_told_before(w, item->request);
        item->raced = s->plan->replayed && item->request->key.size > 0 &&
                      hf_action_keyed(item->request->action) &&
                      ((looked && !item->known) || !told_before);
        if (item->changes) {
            struct hf_entry_head head;
            hf_entry_head_fill(item->request, item->digest, s->plan, s->now, &head);
            if (!hf_pg_write_entry(w, &head, hf_entry_need(item->request)))
                w->spoiled = true;
        }
        if (w->swift && !is_sure(w, item)) {
            expect_others(s->shared);
            return false;
        }
        item->waits = (w->entry_count > 0 && !told_before) || s->set.doubtful;
        w->ordinals += s->plan->ordinal_used;
        w->fences += s->plan->fence_used;
        b->decided(b->arg, i, s->plan, s->now);
    }
    return true;
}

/* ---- Batches ---- */

static enum hf_pg_end look(struct hf_pg_tx *w)
{
    bool any = false;
    for (size_t i = 0; i < w->batch->count; i++)
        hf_pg_want_look(w, w->batch->items[i].request);
    for (int t = 0; t < HF_PG_TABLES; t++)
        any = any || w->s->set.tables[t] != NULL;
    if (any || w->s->now == 0) {
        hf_pg_want_read(w, false);
        hf_pg_tx_send(w, HF_PG_NOW, HF_PG_TABLES, NULL, 0);
        enum hf_pg_end end = hf_pg_tx_trip(w);
        if (end != HF_PG_DONE)
            return end;
    }
    hf_pg_tx_clear(w);
    return HF_PG_DONE;
}

/* How many fresh numbers the deferred requests may need, and which rules they use or change. */
struct demand {
    int numbers, ordinals, fences, outbox;
    bool asks_guards, sets_guards;
    struct hf_bytes tenant; /* of an HF_APPLY */
};

static void demand_add(struct demand *d, const struct hf_request *q)
{
    const struct hf_action_info *action = hf_action_of(q->action);
    d->numbers += !action->reads;
    d->ordinals += action->draws == HF_DRAWS_ORDINAL;
    d->fences += action->draws == HF_DRAWS_FENCE;
    d->asks_guards = d->asks_guards || (action->row == HF_ROW_ENTRY && !action->reads);
    d->sets_guards = d->sets_guards || (action->row == HF_ROW_GUARD && !action->reads);
    if (q->action == HF_APPLY) {
        d->outbox = 1;                                           /* one block: HF_APPLY_ROWS_MAX */
        d->tenant = q->tenant.size > 0 ? q->tenant : hf_str(""); /* NULL data is SQL's NULL */
    }
}

static void take_locks(struct hf_pg_tx *w, const struct demand *d)
{
    hf_pg_tx_send(w, HF_PG_BEGIN, HF_PG_TABLES, NULL, 0);
    if (w->batch->hurries)
        hf_pg_tx_send(w, HF_PG_HURRY, HF_PG_TABLES, NULL, 0);
    hf_pg_tx_send(w, HF_PG_KEEP_RULES, HF_PG_TABLES, NULL, 0);
    if (d->sets_guards || d->asks_guards)
        hf_pg_want_guards(w, d->sets_guards ? HF_PG_CHANGE_GUARDS : HF_PG_KEEP_GUARDS);
    if (d->outbox > 0)
        hf_pg_tx_send(w, HF_PG_TENANT, HF_PG_TABLES, &d->tenant, 1);
    hf_pg_want_lock(w);
}

static enum hf_pg_end take(struct hf_pg_tx *w)
{
    struct demand d = { .numbers = 0 };
    for (size_t i = 0; i < w->batch->count; i++)
        if (w->batch->items[i].deferred) {
            hf_pg_want_take(w, w->batch->items[i].request);
            demand_add(&d, w->batch->items[i].request);
        }
    enum hf_pg_end end = d.numbers > 0 ? hf_pg_end_of(hf_pg_session_register(w->s)) : HF_PG_DONE;
    if (end != HF_PG_DONE)
        return end;
    if (w->swift)
        hf_pg_want_read(w, true);
    else
        take_locks(w, &d);
    hf_pg_tx_draw(w, d.numbers, d.ordinals, d.fences, d.outbox);
    end = hf_pg_tx_trip(w);
    hf_pg_tx_clear(w);
    return end;
}

/* For HF_APPLY: read a value when the function asks for it, under the tenant's lock. */
static enum hf_found read_value(void *arg, struct hf_scoped key, struct hf_bytes *out)
{
    struct hf_pg_tx *w = arg;
    struct hf_pg_slot *slot =
        hf_pg_want(w, HF_PG_VALUE, key.tenant, hf_pg_none(), key.name, 0, false);
    unsigned char *copy = slot ? hf_arena_take(&w->s->set.arena, key.name.size) : NULL;
    if (!copy)
        return HF_UNREADABLE;
    memcpy(copy, key.name.data, key.name.size); /* the caller may free its bytes */
    slot->name = slot->record.row.pair.key = hf_mem(copy, key.name.size);
    hf_pg_tx_clear(w);
    hf_pg_tx_slots(w, HF_PG_READ + HF_PG_VALUE, HF_PG_VALUE, &slot, 1, false, false);
    enum hf_pg_end end = hf_pg_tx_trip(w);
    hf_pg_tx_clear(w);
    if (end != HF_PG_DONE) {
        hf_pg_disconnect(&w->s->conn);
        return HF_UNREADABLE;
    }
    *out = slot->record.row.pair.value;
    return slot->record.unsound ? HF_UNREADABLE : slot->found ? HF_FOUND : HF_ABSENT;
}

/* Can take run without look? Not for guards: the stored form of an identity is known only after the
 * guard was read. Not for a late confirm: its resource is known only after the hold was read. Not
 * for HF_APPLY: its reads are known only when it runs. Reads need no lock. */
static bool is_clear(const struct hf_pg_batch *b)
{
    bool changes = false;
    for (size_t i = 0; i < b->count; i++) {
        const struct hf_action_info *action = hf_action_of(b->items[i].request->action);
        if (hf_pg_want_needs_look(action) || !action->row_name)
            return false;
        changes = changes || !action->reads;
    }
    return changes;
}

static enum hf_pg_end look_and_take(struct hf_pg_tx *w)
{
    struct hf_pg_batch *b = w->batch;
    for (size_t i = 0; i < b->count; i++) {
        hf_pg_want_look(w, b->items[i].request);
        b->items[i].deferred = true;
        b->items[i].changes = b->items[i].waits = false;
    }
    return take(w);
}

/* Do the requests change every row that their decision reads? Then the commit notices if one has
 * changed. */
static bool may_be_swift(const struct hf_pg_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct hf_action_info *action = hf_action_of(b->items[i].request->action);
        if (!action->swift && !action->reads)
            return false;
    }
    return true;
}

/* For the next try: an item that then finds its key bound, and did not now, lost a race. Unknown
 * for keys that were not looked up. */
static void note_unbound(struct hf_pg_tx *w)
{
    for (size_t i = 0; i < w->batch->count; i++) {
        struct hf_pg_item *item = &w->batch->items[i];
        const struct hf_request *q = item->request;
        const struct hf_pg_slot *slot = NULL;
        if (hf_action_keyed(q->action) && q->key.size > 0)
            slot = hf_pg_set_slot(&w->s->set, HF_PG_TOKEN, q->tenant, hf_pg_none(), q->key, 0);
        item->deferred = slot && slot->fetched && !slot->assumed && !slot->stored;
    }
}

/* Must an answer wait until a standby has what it saw? Not after a commit, which has waited for
 * that. */
static bool is_unsure(const struct hf_pg_tx *w)
{
    for (size_t i = 0; i < w->batch->count && w->entry_count == 0; i++)
        if (w->batch->items[i].waits)
            return true;
    return false;
}

void hf_pg_batch_sure(struct hf_pg_session *s)
{
    for (int t = 0; t < HF_PG_TABLES; t++)
        for (const struct hf_pg_slot *slot = s->set.tables[t]; slot; slot = slot->next)
            if (slot->stored && slot->doubtful)
                hf_pg_replicated_add(&s->shared->replicated, s->conn.timeline,
                                     hf_pg_xid(hf_pg_version(slot->place.version), s->next));
    hf_pg_replicated_add(&s->shared->replicated, s->conn.timeline,
                         hf_pg_xid(hf_pg_version(s->rules_version), s->next));
}

enum hf_pg_end hf_pg_batch_run(struct hf_pg_session *s, struct hf_pg_batch *batch)
{
    struct hf_pg_tx w;
    HF_ASSERT(batch->count > 0 && batch->count <= HF_PG_BATCH_MAX);
    if (!s->conn.pg || !hf_pg_session_is_newest(s))
        return HF_PG_GONE;
    hf_pg_tx_begin(&w, s, batch);
    s->set.value = read_value;
    s->set.value_arg = &w;
    bool looks = batch->careful || !s->expects_new || !is_clear(batch);
    w.sweeps = is_expected(&s->shared->sweeping) || batch->careful;
    w.swift = !is_expected(&s->shared->locking) && !looks && may_be_swift(batch);
    w.blind = !is_expected(&s->shared->looking) && w.swift;
    enum hf_pg_end end = looks ? look(&w) : look_and_take(&w);
    if (end == HF_PG_DONE && (!looks || decide_looked(&w) > 0)) {
        if (looks)
            end = take(&w);
        if (end == HF_PG_DONE && !decide_taken(&w, looks))
            end = s->conn.pg ? HF_PG_AGAIN : HF_PG_GONE;
        if (end == HF_PG_DONE)
            end = hf_pg_write(&w);
        if (end == HF_PG_AGAIN && s->conn.state[0])
            learn_conflict(&w);
    }
    /* A read from a primary that was replaced meanwhile is no answer. (For a commit, hf_pg_write
     * has checked it.) */
    bool is_written = end == HF_PG_DOUBT || (end == HF_PG_DONE && w.entry_count > 0);
    if (!is_written && !hf_pg_session_is_newest(s))
        end = HF_PG_GONE;
    if (end == HF_PG_DONE) {
        learn(&w);
        end = is_unsure(&w) ? HF_PG_UNSURE : HF_PG_DONE;
    } else if (!looks) {
        note_unbound(&w);
    }
    return hf_pg_tx_end(&w, end);
}
