#include "store/journal/order.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_LEAST = 16, INDEX_LEAST = 8 };

static size_t chunk_bytes(uint32_t room)
{
    return sizeof(struct hf_order_chunk) + room * sizeof(struct hf_order_item);
}

static struct hf_order_chunk *last_of(const struct hf_order *o)
{
    return o->end > o->first ? o->chunks[o->end - 1] : NULL;
}

static void chunk_free(struct hf_order_chunk *c, uint64_t *bytes)
{
    *bytes -= chunk_bytes(c->room);
    free(c);
}

void hf_order_free(struct hf_order *o, uint64_t *bytes)
{
    for (size_t i = o->first; i < o->spare; i++)
        chunk_free(o->chunks[i], bytes);
    *bytes -= o->room * sizeof *o->chunks;
    free(o->chunks);
    *o = (struct hf_order){ 0 };
}

/* ---- Adding ---- */

/* Make room for `more` pointers after the last. */
static bool index_reserve(struct hf_order *o, size_t more, uint64_t *bytes)
{
    if (o->spare + more <= o->room)
        return true;
    if (o->first > 0 && o->first >= o->room / 2) {
        memmove(o->chunks, o->chunks + o->first, (o->spare - o->first) * sizeof *o->chunks);
        o->spare -= o->first;
        o->end -= o->first;
        o->first = 0;
    }
    size_t room = o->room ? o->room : INDEX_LEAST;
    while (room < o->spare + more)
        room *= 2;
    if (room == o->room)
        return true;
    struct hf_order_chunk **chunks = realloc(o->chunks, room * sizeof *chunks);
    if (!chunks)
        return false;
    *bytes += (room - o->room) * sizeof *chunks;
    o->chunks = chunks;
    o->room = room;
    return true;
}

/* Grow the last chunk up to full size: most orders are short. */
static bool last_grow(struct hf_order *o, unsigned more, uint64_t *bytes)
{
    struct hf_order_chunk *c = last_of(o);
    uint32_t room = c->room;
    while (room < HF_ORDER_CHUNK && room - c->used < more)
        room *= 2;
    if (room == c->room)
        return true;
    struct hf_order_chunk *grown = realloc(c, chunk_bytes(room));
    if (!grown)
        return false;
    *bytes += chunk_bytes(room) - chunk_bytes(grown->room);
    grown->room = room;
    o->chunks[o->end - 1] = grown;
    return true;
}

static bool spare_add(struct hf_order *o, uint32_t room, uint64_t *bytes)
{
    struct hf_order_chunk *c = malloc(chunk_bytes(room));
    if (!c)
        return false;
    c->used = c->live = 0;
    c->room = room;
    *bytes += chunk_bytes(room);
    o->chunks[o->spare++] = c;
    return true;
}

bool hf_order_reserve(struct hf_order *o, unsigned more, uint64_t *bytes)
{
    struct hf_order_chunk *c = last_of(o);
    if (c && c->room - c->used >= more)
        return true;
    if (!c) {
        if (o->spare == o->end &&
            (!index_reserve(o, 1, bytes) || !spare_add(o, CHUNK_LEAST, bytes)))
            return false;
        o->end++;
    }
    if (!last_grow(o, more, bytes))
        return false;
    c = last_of(o);
    size_t there = c->room - c->used + (o->spare - o->end) * HF_ORDER_CHUNK;
    for (; there < more; there += HF_ORDER_CHUNK)
        if (!index_reserve(o, 1, bytes) || !spare_add(o, HF_ORDER_CHUNK, bytes))
            return false;
    return true;
}

void hf_order_add(struct hf_order *o, uint64_t stamp, struct hf_node *node)
{
    struct hf_order_chunk *c = last_of(o);
    if (!c || c->used == c->room) {
        HF_ASSERT(o->end < o->spare);
        c = o->chunks[o->end++];
    }
    c->items[c->used++] = (struct hf_order_item){ stamp, node };
    c->live++;
    o->live++;
    if (stamp > o->newest)
        o->newest = stamp;
}

/* ---- Finding ---- */

static uint32_t item_find(const struct hf_order_chunk *c, uint64_t stamp)
{
    uint32_t lo = 0, hi = c->used;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (c->items[mid].stamp < stamp)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct hf_order_at hf_order_find(const struct hf_order *o, uint64_t stamp)
{
    size_t lo = o->first, hi = o->end;
    while (lo < hi) { /* the first chunk whose last stamp is >= `stamp`; an empty one is last */
        size_t mid = lo + (hi - lo) / 2;
        const struct hf_order_chunk *c = o->chunks[mid];
        if (c->used > 0 && c->items[c->used - 1].stamp < stamp)
            lo = mid + 1;
        else
            hi = mid;
    }
    return (struct hf_order_at){ lo, lo < o->end ? item_find(o->chunks[lo], stamp) : 0 };
}

struct hf_order_at hf_order_end(const struct hf_order *o)
{
    return (struct hf_order_at){ o->end, 0 };
}

const struct hf_order_item *hf_order_back(const struct hf_order *o, struct hf_order_at *at)
{
    for (;;) {
        while (at->item > 0) {
            const struct hf_order_item *item = &o->chunks[at->chunk]->items[--at->item];
            if (item->node)
                return item;
        }
        if (at->chunk == o->first)
            return NULL;
        at->chunk--;
        at->item = o->chunks[at->chunk]->used;
    }
}

const struct hf_order_item *hf_order_next(const struct hf_order *o, struct hf_order_at *at)
{
    for (; at->chunk < o->end; at->chunk++, at->item = 0) {
        const struct hf_order_chunk *c = o->chunks[at->chunk];
        while (at->item < c->used) {
            const struct hf_order_item *item = &c->items[at->item++];
            if (item->node)
                return item;
        }
    }
    return NULL;
}

/* ---- Leaving ---- */

static void close_up(struct hf_order_chunk *c)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->used; i++)
        if (c->items[i].node)
            c->items[kept++] = c->items[i];
    c->used = kept;
}

/* After many nodes have left. */
static void index_shrink(struct hf_order *o, uint64_t *bytes)
{
    size_t count = o->spare - o->first, room = o->room / 4;
    if (room <= INDEX_LEAST || count >= o->room / 8)
        return;
    memmove(o->chunks, o->chunks + o->first, count * sizeof *o->chunks);
    o->end -= o->first;
    o->spare = count;
    o->first = 0;
    struct hf_order_chunk **chunks = realloc(o->chunks, room * sizeof *chunks);
    if (!chunks)
        return; /* then it stays large */
    *bytes -= (o->room - room) * sizeof *chunks;
    o->room = room;
    o->chunks = chunks;
}

/* Free chunk i; move the shorter side of the pointers. */
static void chunk_remove(struct hf_order *o, size_t i, uint64_t *bytes)
{
    chunk_free(o->chunks[i], bytes);
    if (i - o->first < o->spare - i) {
        memmove(o->chunks + o->first + 1, o->chunks + o->first, (i - o->first) * sizeof *o->chunks);
        o->first++;
    } else {
        memmove(o->chunks + i, o->chunks + i + 1, (o->spare - i - 1) * sizeof *o->chunks);
        o->end--;
        o->spare--;
    }
    index_shrink(o, bytes);
}

/* Join chunk i and the next one, if both have few nodes. Not the last chunk: room in it may be
 * reserved. So any two neighbours before the last have more than HF_ORDER_CHUNK / 2 nodes. */
static bool merge(struct hf_order *o, size_t i, uint64_t *bytes)
{
    if (i + 2 >= o->end)
        return false;
    struct hf_order_chunk *a = o->chunks[i], *b = o->chunks[i + 1];
    if (a->live + b->live > HF_ORDER_CHUNK / 2)
        return false;
    close_up(a);
    close_up(b);
    HF_ASSERT(a->room >= a->used + b->used);
    memcpy(a->items + a->used, b->items, b->used * sizeof *b->items);
    a->used += b->used;
    a->live += b->live;
    chunk_remove(o, i + 1, bytes);
    return true;
}

/* A node has left chunk i. */
static void tidy(struct hf_order *o, size_t i, uint64_t *bytes)
{
    struct hf_order_chunk *c = o->chunks[i];
    if (i + 1 == o->end) {
        if (c->live == 0)
            c->used = 0;
    } else if (c->live == 0) {
        chunk_remove(o, i, bytes);
    } else if (!merge(o, i, bytes) && i > o->first) {
        merge(o, i - 1, bytes);
    }
}

/* The item of this node, and in *at the place after it. NULL: it is not there. */
static struct hf_order_item *node_find(const struct hf_order *o, uint64_t stamp,
                                       const struct hf_node *node, struct hf_order_at *at)
{
    const struct hf_order_item *item;
    *at = hf_order_find(o, stamp);
    do /* we never make two with one stamp, but a file may have them */
        item = hf_order_next(o, at);
    while (item && item->stamp == stamp && item->node != node);
    return item && item->node == node ? &o->chunks[at->chunk]->items[at->item - 1] : NULL;
}

void hf_order_swap(struct hf_order *o, uint64_t stamp, const struct hf_node *old,
                   struct hf_node *node)
{
    struct hf_order_at at;
    struct hf_order_item *item = node_find(o, stamp, old, &at);
    if (item)
        item->node = node;
}

void hf_order_leave(struct hf_order *o, uint64_t stamp, const struct hf_node *node, uint64_t *bytes)
{
    struct hf_order_at at;
    struct hf_order_item *item = node_find(o, stamp, node, &at);
    if (!item)
        return;
    item->node = NULL;
    o->chunks[at.chunk]->live--;
    o->live--;
    tidy(o, at.chunk, bytes);
}

/* ---- Loading ---- */

static int stamp_compare(const void *a, const void *b)
{
    const struct hf_order_item *x = a, *y = b;
    return x->stamp < y->stamp ? -1 : x->stamp > y->stamp;
}

bool hf_order_sort(struct hf_order *o)
{
    struct hf_order_item *all = malloc((size_t)(o->live ? o->live : 1) * sizeof *all);
    size_t count = 0, taken = 0;
    if (!all)
        return false;
    struct hf_order_at at = { o->first, 0 };
    for (const struct hf_order_item *item; (item = hf_order_next(o, &at)) != NULL;)
        all[count++] = *item;
    qsort(all, count, sizeof *all, stamp_compare);
    /* Back into the places that they had. */
    for (size_t i = o->first; i < o->end; i++)
        for (uint32_t k = 0; k < o->chunks[i]->used; k++)
            if (o->chunks[i]->items[k].node)
                o->chunks[i]->items[k] = all[taken++];
    HF_ASSERT(taken == count);
    free(all);
    return true;
}
