#include "store/postgres/transaction.h"

#include "base/assert.h"

#include <stdio.h>

void hf_pg_tx_send(struct hf_pg_tx *w, int statement, enum hf_pg_table table,
                   const struct hf_bytes *params, int count)
{
    HF_ASSERT(w->count < HF_PG_PIPELINE_MAX);
    w->sent[w->count++] = (struct hf_pg_sent){ statement, table };
    hf_pg_send(&w->s->conn, statement, params, count);
}

void hf_pg_tx_clear(struct hf_pg_tx *w)
{
    hf_pg_results_free(w->results, w->count);
    w->count = 0;
}

enum hf_pg_end hf_pg_end_of(enum hf_pg_outcome outcome)
{
    switch (outcome) {
    case HF_PG_FINE: return HF_PG_DONE;
    case HF_PG_CONFLICT: return HF_PG_AGAIN;
    case HF_PG_BUSY: return HF_PG_STUCK;
    case HF_PG_REFUSED: return HF_PG_NO;
    case HF_PG_LOST: break;
    }
    return HF_PG_GONE;
}

/* ---- Parameters ---- */

struct hf_bytes hf_pg_param_array(struct hf_buffer *b, struct hf_pg_slot *const *slots,
                                  size_t count, enum hf_pg_table table, int column)
{
    hf_pg_array_begin(b, hf_pg_column_type(table, column));
    for (size_t i = 0; i < count; i++)
        hf_pg_column_put(table, column, &slots[i]->record, b);
    if (column < hf_pg_spec(table)->keys)
        hf_pg_array_end(b, (uint32_t)count);
    else
        hf_pg_array_end_short(b, (uint32_t)count);
    return hf_mem(b->data, b->size);
}

/* The places of the rows, or their versions. */
static struct hf_bytes param_places(struct hf_buffer *b, struct hf_pg_slot *const *slots,
                                    size_t count, bool versions)
{
    hf_pg_array_begin(b, versions ? HF_PG_XID : HF_PG_TID);
    for (size_t i = 0; i < count; i++) {
        const struct hf_pg_place *p = &slots[i]->place;
        hf_pg_put_bytes(b, versions ? hf_mem(p->version, sizeof p->version)
                                    : hf_mem(p->at, sizeof p->at));
    }
    hf_pg_array_end(b, (uint32_t)count);
    return hf_mem(b->data, b->size);
}

void hf_pg_tx_slots(struct hf_pg_tx *w, int statement, enum hf_pg_table table,
                    struct hf_pg_slot *const *slots, size_t count, bool all, bool changing)
{
    const struct hf_pg_spec *spec = hf_pg_spec(table);
    struct hf_bytes params[HF_PG_PARAMS_MAX];
    unsigned char number[8];
    int n = 0;
    for (int i = 0; i < (all ? spec->count : spec->keys); i++) {
        if (changing && i >= spec->keys && hf_pg_column_fixed(table, i))
            continue;
        params[n] = hf_pg_param_array(&w->s->params[n], slots, count, table, i);
        n++;
    }
    if (changing) {
        params[n] = param_places(&w->s->params[n], slots, count, false);
        params[n + 1] = param_places(&w->s->params[n + 1], slots, count, true);
        n += 2;
    }
    for (int i = 0; i < n; i++)
        w->spoiled = w->spoiled || w->s->params[i].failed;
    if (changing)
        params[n++] = hf_pg_param8(number, (int64_t)count);
    hf_pg_tx_send(w, statement, statement < HF_PG_INSERT ? table : HF_PG_TABLES, params, n);
}

struct hf_bytes hf_pg_param4(unsigned char out[4], int64_t value)
{
    for (int i = 3; i >= 0; i--, value >>= 8)
        out[i] = (unsigned char)value;
    return hf_mem(out, 4);
}

struct hf_bytes hf_pg_param8(unsigned char out[8], int64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        out[i] = (unsigned char)value;
    return hf_mem(out, 8);
}

struct hf_bytes hf_pg_param_told(unsigned char out[8], const struct hf_pg_session *s)
{
    const struct hf_io *io = s->shared->io;
    hf_time told = atomic_load(&s->shared->told), clock = io ? io->wall_ms(io->ctx) : 0;
    return hf_pg_param8(out, hf_pg_time(clock > told ? clock : told));
}

void hf_pg_tx_draw(struct hf_pg_tx *w, int numbers, int ordinals, int fences, int outbox)
{
    unsigned char room[4][4];
    const struct hf_bytes values[] = {
        hf_pg_param4(room[0], (numbers + HF_PG_BLOCK - 1) / HF_PG_BLOCK),
        hf_pg_param4(room[1], ordinals), hf_pg_param4(room[2], fences),
        hf_pg_param4(room[3], outbox)
    };
    hf_pg_tx_send(w, w->swift ? HF_PG_DRAW_LIGHTLY : HF_PG_DRAW, HF_PG_TABLES, values, 4);
}

uint64_t hf_pg_drawn(const struct hf_pg_tx *w, int index, int column)
{
    int each = column == HF_PG_DRAWN_NUMBER ? HF_PG_BLOCK : 1;
    int64_t first;
    if (!w->drawn || !hf_pg_get_item8(w->drawn, 0, column, index / each, &first))
        return 0;
    return (uint64_t)first + (uint64_t)(index % each);
}

/* ---- Reading the results ---- */

/* Append to the resource's overdue holds. They come in order, soonest first. */
static void overdue_add(struct hf_pg_tx *w, struct hf_pg_slot *hold)
{
    const struct hf_hold *h = &hold->record.row.hold;
    struct hf_pg_slot *resource =
        hf_pg_set_slot(&w->s->set, HF_PG_RESOURCE, h->tenant, hf_pg_none(), h->resource, 0);
    if (!resource)
        return;
    resource->overdue_count++;
    resource->overdue_all = resource->overdue_count >= resource->record.row.resource.held;
    if (hold->record.unsound) {
        resource->overdue_unsound = true;
        return;
    }
    if (resource->overdue)
        resource->last_overdue->next_overdue = hold;
    else
        resource->overdue = hold;
    resource->last_overdue = hold;
    hold->next_overdue = NULL;
}

/* Mark keys as locked. Their rows come with another result. */
static void take_locks(struct hf_pg_tx *w, const PGresult *result)
{
    struct hf_pg_set *set = &w->s->set;
    for (int i = 0; i < PQntuples(result); i++) {
        struct hf_bytes key = hf_pg_get_key(result, i, 1, &set->arena);
        struct hf_pg_slot *slot =
            hf_pg_set_slot(set, HF_PG_TOKEN, hf_pg_get_bytes(result, i, 0), hf_pg_none(), key, 0);
        if (!slot)
            return;
        slot->locked = true;
    }
}

/* Is it possible that no standby has this transaction? */
static bool is_doubtful(const struct hf_pg_tx *w, const unsigned char version[4])
{
    const struct hf_pg_session *s = w->s;
    uint64_t xid = hf_pg_xid(hf_pg_version(version), s->next);
    return !w->timed || !hf_pg_replicated_has(&s->shared->replicated, s->conn.timeline, xid);
}

static void take_rows(struct hf_pg_tx *w, const struct hf_pg_sent *sent, const PGresult *result)
{
    if (sent->statement == HF_PG_LOCK + HF_PG_TOKEN) {
        take_locks(w, result);
        return;
    }
    bool locked = sent->statement == HF_PG_LOCK_OF || sent->statement == HF_PG_SWEEP ||
                  (sent->statement >= HF_PG_LOCK && sent->statement < HF_PG_INSERT);
    for (int i = 0; i < PQntuples(result); i++) {
        struct hf_pg_slot *slot = hf_pg_set_take(&w->s->set, sent->table, result, i, locked);
        if (!slot) {
            w->spoiled = true;
            return;
        }
        if (slot->record.unsound) {
            w->passed_over++;
            hf_pg_unsound(w->s->shared, sent->table, &slot->record);
        }
        slot->doubtful = w->s->replicates && is_doubtful(w, slot->place.version);
        if (sent->statement == HF_PG_OVERDUE)
            overdue_add(w, slot);
    }
}

/* A row is missing, and it is unknown whether and in which transaction a call removed it: so the
 * standbys must have everything visible. */
static void note_absent(struct hf_pg_tx *w)
{
    const struct hf_pg_session *s = w->s;
    bool doubtful = false, asked = !s->replicates;
    for (int t = 0; t < HF_PG_TABLES; t++)
        for (struct hf_pg_slot *slot = hf_pg_spec((enum hf_pg_table)t)->is_erased ? s->set.tables[t]
                                                                                  : NULL;
             slot; slot = slot->next) {
            if (!slot->fetched || slot->stored || slot->dirty)
                continue;
            if (!asked)
                doubtful = !w->timed ||
                           !hf_pg_replicated_all(&s->shared->replicated, s->conn.timeline, s->next);
            asked = true;
            slot->doubtful = doubtful;
        }
}

/* before: the latest time known when the query was sent. A clock behind a time that another session
 * has read since was not set back: that session just asked later. asked: the boot clock at that
 * moment. */
static void take_time(struct hf_pg_tx *w, const PGresult *result, hf_time before, hf_time asked)
{
    struct hf_pg_session *s = w->s;
    if (PQntuples(result) < 1) { /* holdfast.store was emptied by hand */
        w->unruled = true;
        return;
    }
    struct hf_engine_clock_reading r = hf_pg_clock_reading(s->shared, result, asked);
    s->read_at = hf_pg_get_time(result, 0, 0);
    s->now = hf_pg_clock_read(s->shared, &r);
    s->rules = (struct hf_rules){ .idempotency_window_ms = hf_pg_get_int8(result, 0, 2),
                                  .token_max_length = (uint32_t)hf_pg_get_int4(result, 0, 3),
                                  .registry_strict = hf_pg_get_bool(result, 0, 4) };
    w->unruled = w->unruled || !hf_pg_rules_sound(&s->rules);
    memcpy(s->rules_version, PQgetvalue(result, 0, 5), sizeof s->rules_version);
    s->replicates = hf_pg_get_snapshot(result, 0, 6, &s->oldest, &s->next);
    atomic_store_explicit(&s->shared->replicates, s->replicates, memory_order_relaxed);
    w->timed = true;
    s->doubtful = s->replicates && is_doubtful(w, s->rules_version);
    s->is_behind = r.wall < r.committed || r.wall < before;
}

static bool is_timed(int statement)
{
    return statement == HF_PG_NOW || statement == HF_PG_DRAW || statement == HF_PG_DRAW_LIGHTLY;
}

/* The time is processed first: it decides whether rows are in doubt. */
enum hf_pg_end hf_pg_tx_trip(struct hf_pg_tx *w)
{
    struct hf_pg_set *set = &w->s->set;
    if (w->spoiled || set->failed) {
        hf_pg_disconnect(&w->s->conn); /* some of the statements are queued */
        snprintf(w->s->conn.why, sizeof w->s->conn.why, "not enough memory for a batch");
        return HF_PG_NO;
    }
    hf_time before = atomic_load(&w->s->shared->told), asked = hf_pg_clock_boot(w->s->shared);
    enum hf_pg_end end = hf_pg_end_of(hf_pg_run(&w->s->conn, w->results));
    int failed = w->s->conn.failed;
    w->s->stuck_at_guards =
        end == HF_PG_STUCK && failed >= 0 && w->sent[failed].statement == HF_PG_KEEP_GUARDS;
    if (end != HF_PG_DONE)
        return end;
    for (int t = 0; t < HF_PG_TABLES; t++)
        for (struct hf_pg_slot *s = set->tables[t]; s; s = s->next)
            if (s->wanted) {
                s->fetched = true;
                s->found = s->stored = s->wanted = s->assumed = s->doubtful = s->record.unsound =
                    false;
            }
    w->timed = false;
    for (int i = 0; i < w->count; i++)
        if (is_timed(w->sent[i].statement))
            take_time(w, w->results[i], before, asked);
    for (int i = 0; i < w->count; i++) {
        if (w->sent[i].table != HF_PG_TABLES)
            take_rows(w, &w->sent[i], w->results[i]);
        if (is_timed(w->sent[i].statement) && w->sent[i].statement != HF_PG_NOW) {
            PQclear(w->drawn);
            w->drawn = w->results[i];
            w->results[i] = NULL;
        }
    }
    note_absent(w);
    if (w->unruled) {
        snprintf(w->s->conn.why, sizeof w->s->conn.why,
                 "holdfast.store has no row, or its window or key length is out of "
                 "range. Run `holdfast audit`");
        memcpy(w->s->conn.state, HF_PG_UNRULED, sizeof HF_PG_UNRULED);
        return HF_PG_NO;
    }
    if (w->spoiled || set->failed) {
        snprintf(w->s->conn.why, sizeof w->s->conn.why,
                 "not enough memory for the rows of a batch");
        return HF_PG_NO;
    }
    return HF_PG_DONE;
}

/* ---- Beginning and ending ---- */

void hf_pg_tx_begin(struct hf_pg_tx *w, struct hf_pg_session *s, struct hf_pg_batch *batch)
{
    memset(w, 0, sizeof *w);
    w->s = s;
    w->batch = batch;
    w->entries_end = &w->entries;
    hf_pg_set_clear(&s->set);
}

enum hf_pg_end hf_pg_tx_end(struct hf_pg_tx *w, enum hf_pg_end end)
{
    hf_pg_tx_clear(w);
    PQclear(w->drawn);
    w->s->set.value = NULL;
    w->s->set.guarded = NULL;
    hf_pg_rollback(&w->s->conn);
    return end;
}
