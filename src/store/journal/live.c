#include "store/journal/live.h"

#include "base/assert.h"

#include <stdlib.h>

enum { CHUNK = 1 << 14 };

static struct hf_live_node *node_at(const struct hf_live *l, uint32_t n)
{
    return &l->chunks[n / CHUNK][n % CHUNK];
}

void hf_live_init(struct hf_live *l)
{
    *l = (struct hf_live){ .node_count = 1 }; /* node 0 means none */
}

void hf_live_free(struct hf_live *l)
{
    for (uint32_t i = 0; i < l->chunk_count; i++)
        free(l->chunks[i]);
    free(l->chunks);
    free(l->heap);
    hf_dense_free(&l->by_ordinal);
}

/* ---- The binary heap over all held holds ---- */

static void heap_set(struct hf_live *l, uint32_t at, struct hf_live_heap_item item)
{
    l->heap[at] = item;
    node_at(l, item.node)->heap_at = at;
}

static void heap_up(struct hf_live *l, uint32_t at)
{
    struct hf_live_heap_item item = l->heap[at];
    while (at > 0 && l->heap[(at - 1) / 2].expires_at > item.expires_at) {
        heap_set(l, at, l->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_set(l, at, item);
}

static void heap_down(struct hf_live *l, uint32_t at)
{
    struct hf_live_heap_item item = l->heap[at];
    for (;;) {
        uint64_t child = (uint64_t)at * 2 + 1;
        if (child >= l->heap_count)
            break;
        if (child + 1 < l->heap_count && l->heap[child + 1].expires_at < l->heap[child].expires_at)
            child++;
        if (l->heap[child].expires_at >= item.expires_at)
            break;
        heap_set(l, at, l->heap[child]);
        at = (uint32_t)child;
    }
    heap_set(l, at, item);
}

static void heap_remove(struct hf_live *l, uint32_t at)
{
    struct hf_live_heap_item last = l->heap[--l->heap_count];
    if (at == l->heap_count)
        return;
    hf_time gone = l->heap[at].expires_at;
    heap_set(l, at, last);
    if (last.expires_at < gone)
        heap_up(l, at);
    else
        heap_down(l, at);
}

/* ---- The pairing heap of one resource ---- */

static uint32_t pair_meld(struct hf_live *l, uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return a ? a : b;
    if (node_at(l, b)->expires_at < node_at(l, a)->expires_at) {
        uint32_t t = a;
        a = b;
        b = t;
    }
    struct hf_live_node *top = node_at(l, a);
    struct hf_live_node *low = node_at(l, b);
    low->prev = a;
    low->next = top->child;
    if (top->child)
        node_at(l, top->child)->prev = b;
    top->child = b;
    top->next = top->prev = 0;
    return a;
}

/* Meld a list of siblings, in pairs from left to right and then all from right to left. */
static uint32_t pair_gather(struct hf_live *l, uint32_t first)
{
    uint32_t done = 0; /* pairs so far, linked by next */
    while (first) {
        uint32_t a = first;
        uint32_t b = node_at(l, a)->next;
        first = b ? node_at(l, b)->next : 0;
        uint32_t m = pair_meld(l, a, b);
        node_at(l, m)->next = done;
        done = m;
    }
    uint32_t root = 0;
    while (done) {
        uint32_t next = node_at(l, done)->next;
        node_at(l, done)->next = 0;
        root = pair_meld(l, root, done);
        done = next;
    }
    if (root)
        node_at(l, root)->prev = 0;
    return root;
}

static void pair_remove(struct hf_live *l, uint32_t n)
{
    struct hf_live_node *node = node_at(l, n);
    uint32_t below = pair_gather(l, node->child);
    if (*node->root == n) {
        *node->root = below;
        return;
    }
    struct hf_live_node *left = node_at(l, node->prev);
    if (left->child == n)
        left->child = node->next;
    else
        left->next = node->next;
    if (node->next)
        node_at(l, node->next)->prev = node->prev;
    *node->root = pair_meld(l, *node->root, below);
}

/* ---- Both together ---- */

bool hf_live_reserve(struct hf_live *l, uint64_t ordinal)
{
    if (!hf_dense_reserve(&l->by_ordinal, ordinal))
        return false;
    if (l->heap_count == l->heap_room) {
        uint32_t room = l->heap_room ? l->heap_room * 2 : 1024;
        struct hf_live_heap_item *heap = realloc(l->heap, room * sizeof *heap);
        if (!heap)
            return false;
        l->bytes += (uint64_t)(room - l->heap_room) * sizeof *heap;
        l->heap = heap;
        l->heap_room = room;
    }
    if (l->free_list || l->node_count < (uint64_t)l->chunk_count * CHUNK)
        return true;
    struct hf_live_node **chunks = realloc(l->chunks, (l->chunk_count + 1) * sizeof *chunks);
    if (!chunks)
        return false;
    l->chunks = chunks;
    chunks[l->chunk_count] = malloc(CHUNK * sizeof **chunks);
    if (!chunks[l->chunk_count])
        return false;
    l->chunk_count++;
    l->bytes += CHUNK * sizeof **chunks;
    return true;
}

bool hf_live_add(struct hf_live *l, uint64_t ordinal, hf_time expires_at, uint32_t *root,
                 uint64_t resource)
{
    if (hf_dense_get(&l->by_ordinal, ordinal) != 0)
        return false;
    uint32_t n = l->free_list;
    if (n)
        l->free_list = node_at(l, n)->next;
    else
        n = l->node_count++;
    HF_ASSERT(n < (uint64_t)l->chunk_count * CHUNK && l->heap_count < l->heap_room);
    *node_at(l, n) = (struct hf_live_node){
        .ordinal = ordinal, .expires_at = expires_at, .root = root, .resource = resource
    };
    *root = pair_meld(l, *root, n);
    l->heap[l->heap_count] = (struct hf_live_heap_item){ expires_at, n };
    heap_up(l, l->heap_count++);
    hf_dense_set(&l->by_ordinal, ordinal, n);
    return true;
}

bool hf_live_remove(struct hf_live *l, uint64_t ordinal)
{
    uint32_t n = (uint32_t)hf_dense_get(&l->by_ordinal, ordinal);
    if (n == 0)
        return false;
    hf_dense_set(&l->by_ordinal, ordinal, 0);
    heap_remove(l, node_at(l, n)->heap_at);
    pair_remove(l, n);
    node_at(l, n)->next = l->free_list;
    l->free_list = n;
    return true;
}

void hf_live_put_off(struct hf_live *l, uint64_t ordinal, hf_time until)
{
    uint32_t n = (uint32_t)hf_dense_get(&l->by_ordinal, ordinal);
    if (n == 0)
        return;
    uint32_t at = node_at(l, n)->heap_at;
    l->heap[at].expires_at = until;
    heap_down(l, at);
}

uint64_t hf_live_first_overdue(const struct hf_live *l, hf_time now)
{
    if (l->heap_count == 0 || l->heap[0].expires_at > now)
        return 0;
    return node_at(l, l->heap[0].node)->ordinal;
}

hf_time hf_live_next_expiry(const struct hf_live *l)
{
    return l->heap_count ? l->heap[0].expires_at : INT64_MAX;
}

size_t hf_live_overdue(const struct hf_live *l, uint32_t root, hf_time now, uint64_t *out,
                       size_t max)
{
    enum { LOOK_MAX = 64 };
    uint32_t found[16];
    size_t count = 0, looked = 0;
    if (root == 0 || node_at(l, root)->expires_at > now)
        return 0;
    max = max < sizeof found / sizeof *found ? max : sizeof found / sizeof *found;
    found[count++] = root;
    /* Below a node that is not overdue, none is overdue. */
    for (size_t i = 0; i < count; i++)
        for (uint32_t c = node_at(l, found[i])->child; c && count < max && looked < LOOK_MAX;
             c = node_at(l, c)->next, looked++)
            if (node_at(l, c)->expires_at <= now)
                found[count++] = c;
    for (size_t i = 0; i < count; i++)
        out[i] = node_at(l, found[i])->ordinal;
    return count;
}

const struct hf_live_node *hf_live_node(const struct hf_live *l, uint64_t value)
{
    return node_at(l, (uint32_t)value);
}
