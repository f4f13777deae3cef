#include "store/record/page.h"

#include "base/bytes.h"
#include "core/claim.h"
#include "core/name.h"

#include <stdlib.h>

/* BYTES_MAX: a page ends after the record with which its bytes reach so many. */
enum { LIMIT_DEFAULT = 100, BYTES_MAX = 8 << 20 };

static void keep(struct hf_paging *p, struct hf_bytes *b)
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
    case HF_LIST_CLAIMS: {
        struct hf_claim *c = row;
        out[n++] = &c->tenant;
        out[n++] = &c->key;
        out[n++] = &c->response;
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

void hf_paging_add(struct hf_paging *p, const void *row)
{
    struct hf_bytes *slices[4];
    unsigned char *to = p->rows + p->page->count * p->size;
    memcpy(to, row, p->size);
    size_t n = slices_of(p->query->kind, to, slices);
    for (size_t i = 0; i < n; i++)
        keep(p, slices[i]);
    p->page->count++;
}

bool hf_paging_is_full(const struct hf_paging *p)
{
    return p->bytes.size >= BYTES_MAX;
}

/* ---- Queries ---- */

bool hf_paging_wants(const struct hf_query *q, const struct hf_hold *h)
{
    return hf_bytes_equal(h->tenant, q->tenant) && (q->state == 0 || h->state == q->state) &&
           (q->resource.size == 0 || hf_bytes_equal(h->resource, q->resource)) &&
           (q->requester.size == 0 || hf_bytes_equal(h->requester, q->requester)) &&
           (q->to == 0 || h->placed_at < q->to);
}

bool hf_paging_wants_claim(const struct hf_query *q, const struct hf_claim *c)
{
    return (q->all_tenants || hf_bytes_equal(c->tenant, q->tenant)) &&
           (q->claim_state == 0 || c->state == q->claim_state) &&
           (q->from == 0 || c->begun_at >= q->from) && (q->to == 0 || c->begun_at < q->to) &&
           c->key.size >= q->prefix.size &&
           (q->prefix.size == 0 || memcmp(c->key.data, q->prefix.data, q->prefix.size) == 0);
}

static enum hf_status query_check(const struct hf_query *q)
{
    if (!hf_tenant_valid(q->tenant) || q->limit > HF_LIST_MAX || (unsigned)q->state > HF_EXPIRED ||
        (unsigned)q->claim_state > HF_CLAIM_UNKNOWN || q->prefix.size > HF_TOKEN_MAX ||
        q->kind < HF_LIST_HOLDS || q->kind > HF_LIST_CLAIMS)
        return HF_INVALID_REQUEST;
    if (q->all_tenants && (q->kind != HF_LIST_CLAIMS || q->tenant.size > 0 ||
                           !hf_claim_state_is_open(q->claim_state)))
        return HF_INVALID_REQUEST;
    if ((q->resource.size && !hf_name_valid(q->resource)) ||
        (q->requester.size && !hf_name_valid(q->requester)))
        return HF_INVALID_REQUEST;
    return q->kind == HF_LIST_ENTRIES && !hf_name_valid(q->name) ? HF_INVALID_REQUEST : HF_OK;
}

enum hf_status hf_paging_begin(struct hf_paging *p, const struct hf_query *query,
                               struct hf_page *page)
{
    static const size_t sizes[] = { [HF_LIST_HOLDS] = sizeof(struct hf_hold),
                                    [HF_LIST_RESOURCES] = sizeof(struct hf_resource),
                                    [HF_LIST_GUARDS] = sizeof(struct hf_guard),
                                    [HF_LIST_ENTRIES] = sizeof(struct hf_entry),
                                    [HF_LIST_OUTBOX] = sizeof(struct hf_outbox),
                                    [HF_LIST_CLAIMS] = sizeof(struct hf_claim) };
    *page = (struct hf_page){ 0 };
    enum hf_status st = query_check(query);
    if (st != HF_OK)
        return st;
    *p = (struct hf_paging){ .query = query,
                             .page = page,
                             .size = sizes[query->kind],
                             .limit = query->limit ? query->limit : LIMIT_DEFAULT };
    p->rows = malloc(p->limit * p->size);
    return p->rows ? HF_OK : HF_NO_MEMORY;
}

/* Turn offsets into pointers: the bytes no longer move. */
static void settle(struct hf_paging *p)
{
    struct hf_bytes *slices[4];
    for (size_t i = 0; i < p->page->count; i++) {
        size_t n = slices_of(p->query->kind, p->rows + i * p->size, slices);
        for (size_t k = 0; k < n; k++)
            slices[k]->data = p->bytes.data + (uintptr_t)slices[k]->data;
    }
}

enum hf_status hf_paging_end(struct hf_paging *p, const struct hf_cause *cause)
{
    if (p->status == HF_OK)
        settle(p);
    p->page->rows = p->rows;
    p->page->heap = p->bytes.data;
    if (p->status != HF_OK)
        hf_page_clear(p->page);
    if (p->status == HF_STORAGE_FAILURE)
        p->page->cause = *cause;
    return p->status;
}

void hf_page_clear(struct hf_page *page)
{
    free(page->rows);
    free(page->heap);
    *page = (struct hf_page){ 0 };
}
