#include "store/journal/claims.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "store/journal/rows.h"

#include <stdlib.h>

enum { ROOM_LEAST = 64 };

struct hf_claim_mark hf_claim_mark(const void *image)
{
    enum { STATE_AT = 0, FENCE_AT = 2, LEASE_EXPIRES_AT = 26 };
    const unsigned char *p = image;
    return (struct hf_claim_mark){ .state = p[STATE_AT],
                                   .fence = hf_get64(p + FENCE_AT),
                                   .lease_expires_at = (hf_time)hf_get64(p + LEASE_EXPIRES_AT) };
}

void hf_claims_free(struct hf_claims *c, uint64_t *bytes)
{
    hf_order_free(&c->all, bytes);
    hf_order_free(&c->open, bytes);
    for (int h = 0; h < HF_CLAIMS_HEAPS; h++) {
        *bytes -= c->heaps[h].room * sizeof *c->heaps[h].items;
        free(c->heaps[h].items);
    }
    *c = (struct hf_claims){ 0 };
}

/* ---- The heaps ---- */

static void heap_set(struct hf_claims *c, int h, size_t at, struct hf_claims_item item)
{
    c->heaps[h].items[at] = item;
    item.node->due.at = (uint32_t)at;
    item.node->due.heap = (uint32_t)h;
}

static void heap_up(struct hf_claims *c, int h, size_t at)
{
    const struct hf_claims_item *items = c->heaps[h].items;
    struct hf_claims_item item = items[at];
    for (; at > 0; at = (at - 1) / 2) {
        if (items[(at - 1) / 2].lease_expires_at <= item.lease_expires_at)
            break;
        heap_set(c, h, at, items[(at - 1) / 2]);
    }
    heap_set(c, h, at, item);
}

static void heap_down(struct hf_claims *c, int h, size_t at)
{
    const struct hf_claims_item *items = c->heaps[h].items;
    struct hf_claims_item item = items[at];
    for (size_t child; (child = 2 * at + 1) < c->heaps[h].count; at = child) {
        if (child + 1 < c->heaps[h].count &&
            items[child + 1].lease_expires_at < items[child].lease_expires_at)
            child++;
        if (items[child].lease_expires_at >= item.lease_expires_at)
            break;
        heap_set(c, h, at, items[child]);
    }
    heap_set(c, h, at, item);
}

static void heap_add(struct hf_claims *c, int h, struct hf_node *node, hf_time lease_expires_at)
{
    size_t at = c->heaps[h].count++;
    HF_ASSERT(at < c->heaps[h].room);
    c->heaps[h].items[at] = (struct hf_claims_item){ lease_expires_at, node };
    heap_up(c, h, at);
}

static void heap_remove(struct hf_claims *c, const struct hf_node *node)
{
    int h = (int)node->due.heap;
    size_t at = node->due.at, end = --c->heaps[h].count;
    HF_ASSERT(at <= end && c->heaps[h].items[at].node == node);
    if (at == end)
        return;
    heap_set(c, h, at, c->heaps[h].items[end]);
    heap_up(c, h, at);
    heap_down(c, h, c->heaps[h].items[at].node->due.at);
}

/* Room for `count` claims in each heap: a claim changes heaps without new memory. */
static bool heaps_reserve(struct hf_claims *c, size_t count, uint64_t *bytes)
{
    for (int h = 0; h < HF_CLAIMS_HEAPS; h++) {
        size_t room = c->heaps[h].room ? c->heaps[h].room : ROOM_LEAST;
        while (room < count)
            room *= 2;
        if (room == c->heaps[h].room)
            continue;
        struct hf_claims_item *items = realloc(c->heaps[h].items, room * sizeof *items);
        if (!items)
            return false;
        *bytes += (room - c->heaps[h].room) * sizeof *items;
        c->heaps[h].items = items;
        c->heaps[h].room = room;
    }
    return true;
}

/* ---- Changing ---- */

static size_t open_count(const struct hf_claims *c)
{
    return c->heaps[HF_CLAIMS_RUNNING].count + c->heaps[HF_CLAIMS_LAPSED].count;
}

bool hf_claims_reserve(struct hf_claims *c, unsigned more, uint64_t *bytes)
{
    return !c->made ||
           (hf_order_reserve(&c->all, more, bytes) && hf_order_reserve(&c->open, more, bytes) &&
            heaps_reserve(c, open_count(c) + more, bytes));
}

static void leave(struct hf_claims *c, struct hf_node *node, const struct hf_claim_mark *was,
                  uint64_t *bytes)
{
    if (was->state == HF_CLAIM_STARTED) {
        heap_remove(c, node);
        hf_order_leave(&c->open, was->fence, node, bytes);
    } else {
        c->settled[was->state]--;
    }
}

/* A fence below another is only in a forged journal: then the claim is not listed. */
static void order_add(struct hf_order *o, uint64_t fence, struct hf_node *node)
{
    if (fence > o->newest)
        hf_order_add(o, fence, node);
}

static void enter(struct hf_claims *c, struct hf_node *node, const struct hf_claim_mark *is)
{
    if (is->state == HF_CLAIM_STARTED) {
        heap_add(c, HF_CLAIMS_RUNNING, node, is->lease_expires_at);
        order_add(&c->open, is->fence, node);
    } else {
        c->settled[is->state]++;
    }
}

void hf_claims_change(struct hf_claims *c, struct hf_node *old, const struct hf_claim_mark *was,
                      struct hf_node *node, const struct hf_claim_mark *is, uint64_t *bytes)
{
    if (!c->made)
        return;
    bool same = old && node && was->fence == is->fence;
    if (same && was->state == HF_CLAIM_STARTED && is->state == HF_CLAIM_STARTED) {
        heap_remove(c, old); /* its lease moves */
        if (old != node)
            hf_order_swap(&c->open, is->fence, old, node);
        heap_add(c, HF_CLAIMS_RUNNING, node, is->lease_expires_at);
    } else {
        if (old)
            leave(c, old, was, bytes);
        if (node)
            enter(c, node, is);
    }
    if (same) {
        if (old != node)
            hf_order_swap(&c->all, is->fence, old, node);
        return;
    }
    if (old)
        hf_order_leave(&c->all, was->fence, old, bytes);
    if (node)
        order_add(&c->all, is->fence, node);
}

bool hf_claims_add(struct hf_claims *c, struct hf_node *node, const struct hf_claim_mark *is,
                   hf_time now, uint64_t *bytes)
{
    if (!hf_order_reserve(&c->all, 1, bytes) || !hf_order_reserve(&c->open, 1, bytes) ||
        !heaps_reserve(c, open_count(c) + 1, bytes))
        return false;
    hf_order_add(&c->all, is->fence, node);
    if (is->state != HF_CLAIM_STARTED) {
        c->settled[is->state]++;
        return true;
    }
    hf_order_add(&c->open, is->fence, node);
    heap_add(c, is->lease_expires_at <= now ? HF_CLAIMS_LAPSED : HF_CLAIMS_RUNNING, node,
             is->lease_expires_at);
    return true;
}

bool hf_claims_made(struct hf_claims *c)
{
    c->made = true;
    return hf_order_sort(&c->all) && hf_order_sort(&c->open);
}

struct hf_node *hf_claims_lapse(struct hf_claims *c, hf_time now)
{
    const struct hf_claims_item *first = c->heaps[HF_CLAIMS_RUNNING].items;
    if (c->heaps[HF_CLAIMS_RUNNING].count == 0 || first->lease_expires_at > now)
        return NULL;
    struct hf_claims_item item = *first;
    heap_remove(c, item.node);
    heap_add(c, HF_CLAIMS_LAPSED, item.node, item.lease_expires_at);
    return item.node;
}

hf_time hf_claims_lapsed_since(const struct hf_claims *c)
{
    return c->heaps[HF_CLAIMS_LAPSED].count ? c->heaps[HF_CLAIMS_LAPSED].items->lease_expires_at
                                            : 0;
}
