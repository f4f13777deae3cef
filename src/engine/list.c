/* Lists: pages of records, newest first, copied while the lock is held and shown when durable. */
#include "base/bug.h"
#include "base/bytes.h"
#include "core/name.h"
#include "engine/engine.h"

#include <stdlib.h>

/* A call looks at so many records at most, and no longer than this, so that a filter that matches little or
 * records that must be unpacked cannot hold the lock for long: the page then ends early and has a cursor. */
enum { LOOK_MAX = 20000, LOOK_MS = 20, LIMIT_DEFAULT = 100 };

/* The page being made. Records are copied into `rows`, their bytes into `bytes`; the slices hold offsets
 * until the end, because the bytes may move while they grow. */
struct paging {
    struct hf_journal *j;
    const struct hf_query *query;
    struct hf_page *page;
    size_t limit, size;
    unsigned char *rows;
    struct {
        unsigned char *data;
        size_t size, room;
    } bytes;
    enum hf_status status;
    size_t looked;
    uint64_t begun_ns;
};

/* Is the page full, or the call's share of the lock used up? */
static bool enough(struct paging *p)
{
    enum { CLOCK_EVERY = 64 };
    if (p->page->count == p->limit || p->looked == LOOK_MAX)
        return true;
    if (++p->looked % CLOCK_EVERY != 0)
        return false;
    const struct hf_io *io = p->j->io;
    return io->monotonic_ns(io->ctx) - p->begun_ns > UINT64_C(1000000) * LOOK_MS;
}

static void keep(struct paging *p, struct hf_bytes *b)
{
    if (p->bytes.size + b->size > p->bytes.room) {
        size_t room = p->bytes.room ? p->bytes.room * 2 : 4096;
        while (room < p->bytes.size + b->size)
            room *= 2;
        unsigned char *data = realloc(p->bytes.data, room);
        if (!data) {
            p->status = HF_NO_MEMORY;
            return;
        }
        p->bytes.data = data;
        p->bytes.room = room;
    }
    if (b->size)
        memcpy(p->bytes.data + p->bytes.size, b->data, b->size);
    b->data = (const void *)(uintptr_t)p->bytes.size;
    p->bytes.size += b->size;
}

/* All slices of a record of the page's kind. */
static size_t slices_of(enum hf_list_kind kind, void *row, struct hf_bytes **out)
{
    size_t n = 0;
    switch (kind) {
    case HF_LIST_HOLDS: {
        struct hf_hold *h = row;
        out[n++] = &h->tenant;
        out[n++] = &h->resource;
        out[n++] = &h->requester;
        break;
    }
    case HF_LIST_RESOURCES: {
        struct hf_resource *r = row;
        out[n++] = &r->tenant;
        out[n++] = &r->name;
        break;
    }
    case HF_LIST_GUARDS: {
        struct hf_guard *g = row;
        out[n++] = &g->tenant;
        out[n++] = &g->name;
        break;
    }
    case HF_LIST_ENTRIES: {
        struct hf_entry *e = row;
        out[n++] = &e->tenant;
        out[n++] = &e->guard;
        out[n++] = &e->identity;
        out[n++] = &e->result;
        break;
    }
    case HF_LIST_OUTBOX: {
        struct hf_outbox *o = row;
        out[n++] = &o->tenant;
        out[n++] = &o->key;
        out[n++] = &o->topic;
        out[n++] = &o->payload;
        break;
    }
    }
    return n;
}

static void add(struct paging *p, const void *row)
{
    struct hf_bytes *slices[4];
    unsigned char *to = p->rows + p->page->count * p->size;
    memcpy(to, row, p->size);
    size_t n = slices_of(p->query->kind, to, slices);
    for (size_t i = 0; i < n; i++)
        keep(p, slices[i]);
    p->page->count++;
}

/* ---- Holds ---- */

static bool hold_matches(const struct hf_query *q, const struct hf_hold *h)
{
    return hf_bytes_equal(h->tenant, q->tenant) && (q->state == 0 || h->state == q->state) &&
           (q->resource.size == 0 || hf_bytes_equal(h->resource, q->resource)) &&
           (q->requester.size == 0 || hf_bytes_equal(h->requester, q->requester)) &&
           (q->to == 0 || h->placed_at < q->to);
}

/* The ordinal to begin with when only holds placed before `to` are wanted: ordinals rise with time. */
static uint64_t begin_before(struct paging *p, uint64_t highest, hf_time to)
{
    uint64_t lo = 0, hi = highest; /* placed_at(lo) < to, or lo is 0 */
    struct hf_hold hold;
    while (lo < hi) {
        uint64_t mid = hi - (hi - lo) / 2;
        if (hf_journal_hold(p->j, mid, &hold) != HF_FOUND) {
            p->status = HF_STORAGE_FAILURE;
            return 0;
        }
        if (hold.placed_at < to)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

static void list_holds(struct paging *p)
{
    const struct hf_query *q = p->query;
    uint64_t ordinal = p->j->tables.holds.highest;
    ordinal -= HF_BUG(list_hides_newest) && ordinal > 0;
    bool by_resource = q->resource.size > 0;
    if (by_resource) {
        struct hf_resource resource;
        struct hf_scoped name = { q->tenant, q->resource };
        if (p->j->view.resource(p->j->view.ctx, name, &resource) != HF_FOUND)
            return;
        ordinal = resource.newest;
    } else if (q->to && !q->cursor) {
        ordinal = begin_before(p, ordinal, q->to);
    }
    if (q->cursor && q->cursor - 1 < ordinal)
        ordinal = q->cursor - 1;
    while (ordinal > 0 && p->status == HF_OK) {
        struct hf_hold hold;
        if (enough(p)) {
            p->page->next_cursor = ordinal + 1;
            return;
        }
        if (hf_journal_hold(p->j, ordinal, &hold) != HF_FOUND) {
            p->status = HF_STORAGE_FAILURE;
            return;
        }
        if (hold.placed_at < q->from)
            return;
        if (hold_matches(q, &hold))
            add(p, &hold);
        ordinal = by_resource ? hold.previous : ordinal - 1;
    }
}

/* ---- Rows in an order ---- */

static void add_node(struct paging *p, const struct hf_node *node, hf_time now)
{
    struct hf_row row;
    if (!hf_bytes_equal(hf_node_tenant(node), p->query->tenant))
        return;
    if (!hf_node_row(node, &row)) {
        p->status = HF_STORAGE_FAILURE;
        return;
    }
    switch (p->query->kind) {
    case HF_LIST_RESOURCES: add(p, &row.resource); break;
    case HF_LIST_GUARDS: add(p, &row.guard); break;
    case HF_LIST_OUTBOX: add(p, &row.outbox); break;
    case HF_LIST_ENTRIES:
        if (now < row.entry.expires_at)
            add(p, &row.entry);
        break;
    case HF_LIST_HOLDS: break;
    }
}

static void list_order(struct paging *p, const struct hf_order *o)
{
    hf_time now = hf_journal_now(p->j);
    size_t at = p->query->cursor ? hf_order_find(o, p->query->cursor) : o->end;
    while (at > o->start && p->status == HF_OK) {
        const struct hf_order_item *item = &o->items[at - 1];
        if (enough(p)) {
            p->page->next_cursor = item->stamp + 1;
            return;
        }
        if (item->node)
            add_node(p, item->node, now);
        at--;
    }
}

static void list_kind(struct paging *p)
{
    struct hf_rows *rows = &p->j->tables.rows;
    struct hf_image_key key = { .name = p->query->name };
    const struct hf_node *guard;
    switch (p->query->kind) {
    case HF_LIST_HOLDS: list_holds(p); break;
    case HF_LIST_RESOURCES: list_order(p, &rows->resources); break;
    case HF_LIST_GUARDS: list_order(p, &rows->guards); break;
    case HF_LIST_OUTBOX: list_order(p, &rows->outbox); break;
    case HF_LIST_ENTRIES:
        guard = hf_rows_find(rows, HF_ROW_GUARD, p->query->tenant, &key);
        if (guard)
            list_order(p, guard->entries);
        else
            p->status = HF_NOT_KNOWN;
        break;
    }
}

/* Turn offsets into pointers, now that nothing moves any more. */
static void settle(struct paging *p)
{
    struct hf_bytes *slices[4];
    for (size_t i = 0; i < p->page->count; i++) {
        size_t n = slices_of(p->query->kind, p->rows + i * p->size, slices);
        for (size_t k = 0; k < n; k++)
            slices[k]->data = p->bytes.data + (uintptr_t)slices[k]->data;
    }
}

void hf_page_clear(struct hf_page *page)
{
    free(page->rows);
    free(page->heap);
    *page = (struct hf_page){ 0 };
}

static enum hf_status query_check(const struct hf_query *q)
{
    if (!hf_tenant_valid(q->tenant) || q->limit > HF_LIST_MAX || (unsigned)q->state > HF_EXPIRED ||
        q->kind < HF_LIST_HOLDS || q->kind > HF_LIST_OUTBOX)
        return HF_INVALID_REQUEST;
    if ((q->resource.size && !hf_name_valid(q->resource)) ||
        (q->requester.size && !hf_name_valid(q->requester)))
        return HF_INVALID_REQUEST;
    return q->kind == HF_LIST_ENTRIES && !hf_name_valid(q->name) ? HF_INVALID_REQUEST : HF_OK;
}

enum hf_status hf_list(struct hf_db *db, const struct hf_query *query, struct hf_page *page)
{
    static const size_t sizes[] = { [HF_LIST_HOLDS] = sizeof(struct hf_hold),
                                    [HF_LIST_RESOURCES] = sizeof(struct hf_resource),
                                    [HF_LIST_GUARDS] = sizeof(struct hf_guard),
                                    [HF_LIST_ENTRIES] = sizeof(struct hf_entry),
                                    [HF_LIST_OUTBOX] = sizeof(struct hf_outbox) };
    *page = (struct hf_page){ 0 };
    if (hf_engine_applying == db)
        return HF_MISUSE;
    enum hf_status st = query_check(query);
    if (st != HF_OK)
        return st;
    struct paging p = { .j = db->journal,
                        .query = query,
                        .page = page,
                        .size = sizes[query->kind],
                        .limit = query->limit ? query->limit : LIMIT_DEFAULT };
    p.rows = malloc(p.limit * p.size);
    if (!p.rows)
        return HF_NO_MEMORY;
    pthread_mutex_lock(&db->lock);
    p.begun_ns = db->journal->io->monotonic_ns(db->journal->io->ctx);
    if (db->failed)
        p.status = HF_STORAGE_FAILURE;
    else
        list_kind(&p);
    const struct hf_journal *j = p.j;
    uint64_t needs = j->gather.size ? j->gather.base + 1 : j->flight.size ? j->flight.base + 1 : 0;
    st = p.status == HF_STORAGE_FAILURE && db->failed ? p.status : hf_engine_wait(db, needs);
    pthread_mutex_unlock(&db->lock);
    if (st == HF_OK)
        st = p.status;
    if (st == HF_OK)
        settle(&p);
    page->rows = p.rows;
    page->heap = p.bytes.data;
    if (st != HF_OK)
        hf_page_clear(page);
    return st;
}

void hf_stats(struct hf_db *db, struct hf_stats *out)
{
    bool has_lock = hf_engine_applying == db; /* an apply function runs with it */
    if (!has_lock)
        pthread_mutex_lock(&db->lock);
    struct hf_journal *j = db->journal;
    const struct hf_tables *t = &j->tables;
    *out = j->stats;
    out->tokens = t->tokens.used;
    out->holds = t->holds.highest;
    out->holds_live = hf_live_count(&t->live);
    out->resources = t->rows.count[HF_ROW_RESOURCE];
    out->guards = t->rows.count[HF_ROW_GUARD];
    out->entries = t->rows.count[HF_ROW_ENTRY];
    out->claims = t->rows.count[HF_ROW_CLAIM];
    out->registers = t->rows.count[HF_ROW_REGISTER];
    out->outbox = t->rows.count[HF_ROW_OUTBOX];
    out->values = t->rows.count[HF_ROW_VALUE];
    out->journal_bytes = j->end;
    out->memory_bytes = hf_journal_memory(j);
    out->memory_token_bytes = t->tokens.bytes;
    out->now = hf_journal_now(j);
    out->out_of_space = j->out_of_space;
    if (!has_lock)
        pthread_mutex_unlock(&db->lock);
}
