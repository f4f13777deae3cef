#include "store/journal/rows.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <stdlib.h>

/* ---- Orders ---- */

static bool order_reserve(struct hf_rows *r, struct hf_order *o, unsigned more)
{
    if (o->end + more <= o->room)
        return true;
    if (o->start > o->room / 2 && o->start >= more) {
        memmove(o->items, o->items + o->start, (o->end - o->start) * sizeof *o->items);
        o->end -= o->start;
        o->start = 0;
        return true;
    }
    size_t room = o->room ? o->room * 2 : 16;
    while (room < o->end + more)
        room *= 2;
    struct hf_order_item *items = realloc(o->items, room * sizeof *items);
    if (!items)
        return false;
    r->bytes += (room - o->room) * sizeof *items;
    o->items = items;
    o->room = room;
    return true;
}

size_t hf_order_find(const struct hf_order *o, uint64_t stamp)
{
    size_t lo = o->start, hi = o->end;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (o->items[mid].stamp < stamp)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void order_leave(struct hf_order *o, const struct hf_node *node)
{
    size_t at = hf_order_find(o, node->stamp);
    if (at < o->end && o->items[at].node == node)
        o->items[at].node = NULL;
    while (o->start < o->end && !o->items[o->start].node)
        o->start++;
}

static int stamp_compare(const void *a, const void *b)
{
    const struct hf_order_item *x = a, *y = b;
    return x->stamp < y->stamp ? -1 : x->stamp > y->stamp;
}

static void order_sort(struct hf_order *o)
{
    if (o->end > o->start)
        qsort(o->items + o->start, o->end - o->start, sizeof *o->items, stamp_compare);
}

void hf_rows_loaded(struct hf_rows *r)
{
    order_sort(&r->resources);
    order_sort(&r->guards);
    order_sort(&r->outbox);
    for (size_t i = r->guards.start; i < r->guards.end; i++)
        order_sort(r->guards.items[i].node->entries);
    r->loading = false;
}

/* ---- Nodes ---- */

bool hf_rows_init(struct hf_rows *r, const struct hf_sipkey *key)
{
    *r = (struct hf_rows){ .key = *key };
    return hf_map64_init(&r->map, 10);
}

static uint64_t node_bytes(const struct hf_node *n)
{
    return sizeof *n + n->key_size + n->image_room;
}

static void node_free(struct hf_rows *r, struct hf_node *n)
{
    r->bytes -= node_bytes(n);
    if (n->kind == HF_ROW_GUARD && n->entries) {
        r->bytes -= sizeof *n->entries + n->entries->room * sizeof *n->entries->items;
        free(n->entries->items);
        free(n->entries);
    }
    if (n->kind == HF_ROW_CLIENT && n->ring) {
        r->bytes -= HF_SEQUENCE_WINDOW * sizeof *n->ring;
        free(n->ring);
    }
    free(n);
}

void hf_rows_free(struct hf_rows *r)
{
    if (!r->map.parts)
        return;
    hf_rows_bury(r);
    for (size_t i = 0; i < hf_map64_parts(&r->map); i++)
        for (uint32_t s = 0; s < r->map.parts[i].room; s++)
            if (r->map.parts[i].slots[s].value)
                node_free(r, (struct hf_node *)(uintptr_t)r->map.parts[i].slots[s].value);
    hf_map64_free(&r->map);
    free(r->resources.items);
    free(r->guards.items);
    free(r->outbox.items);
}

/* The bytes before the name: kind for the hash, then what node->bytes begins with. */
struct prefix {
    unsigned char bytes[4 + HF_TENANT_MAX + HF_NAME_MAX];
    size_t size;
};

static void prefix_make(struct prefix *p, enum hf_row_kind kind, struct hf_bytes tenant,
                        struct hf_bytes scope)
{
    HF_ASSERT(tenant.size <= HF_TENANT_MAX && scope.size <= HF_NAME_MAX);
    p->bytes[0] = (unsigned char)kind;
    p->bytes[1] = (unsigned char)tenant.size;
    if (tenant.size)
        memcpy(p->bytes + 2, tenant.data, tenant.size);
    p->size = 2 + tenant.size;
    if (kind == HF_ROW_ENTRY) {
        hf_put16(p->bytes + p->size, (uint16_t)scope.size);
        if (scope.size)
            memcpy(p->bytes + p->size + 2, scope.data, scope.size);
        p->size += 2 + scope.size;
    }
}

static bool node_is(const struct hf_node *n, const struct prefix *p, struct hf_bytes name)
{
    size_t head = p->size - 1;
    return n->kind == p->bytes[0] && n->key_size == head + name.size &&
           memcmp(n->bytes, p->bytes + 1, head) == 0 &&
           (name.size == 0 || memcmp(n->bytes + head, name.data, name.size) == 0);
}

static uint64_t hash_of(const struct hf_rows *r, const struct prefix *p, struct hf_bytes name)
{
    if (r->hint && p->bytes[0] == HF_ROW_RESOURCE && name.data == r->hint_name.data &&
        name.size == r->hint_name.size)
        return r->hint;
    return hf_siphash(&r->key, hf_mem(p->bytes, p->size), name);
}

/* hash: computed here if it is 0 and needed; out, if the row was not the one found last. */
static struct hf_node *find_node(struct hf_rows *r, const struct prefix *p, struct hf_bytes name,
                                 uint64_t *hash)
{
    if (r->last && node_is(r->last, p, name)) {
        *hash = r->last->hash;
        return r->last;
    }
    *hash = hash_of(r, p, name);
    if (r->count[p->bytes[0]] == 0)
        return NULL;
    for (struct hf_slot *s = NULL; (s = hf_map64_next(&r->map, *hash, s)) != NULL;) {
        struct hf_node *n = (struct hf_node *)(uintptr_t)s->value;
        if (node_is(n, p, name))
            return r->last = n;
    }
    return NULL;
}

struct hf_node *hf_rows_find(struct hf_rows *r, enum hf_row_kind kind, struct hf_bytes tenant,
                             const struct hf_image_key *key)
{
    struct prefix p;
    uint64_t hash;
    if (r->count[kind] == 0)
        return NULL;
    prefix_make(&p, kind, tenant, key->scope);
    return find_node(r, &p, key->name, &hash);
}

uint64_t hf_rows_hash(const struct hf_rows *r, enum hf_row_kind kind, struct hf_bytes tenant,
                      const struct hf_image_key *key)
{
    struct prefix p;
    prefix_make(&p, kind, tenant, key->scope);
    return hf_siphash(&r->key, hf_mem(p.bytes, p.size), key->name);
}

const struct hf_node *hf_rows_peek(const struct hf_rows *r, uint64_t hash)
{
    const struct hf_slot *s = hf_map64_next(&r->map, hash, NULL);
    return s ? (const struct hf_node *)(uintptr_t)s->value : NULL;
}

void hf_rows_prefetch(const struct hf_rows *r, uint64_t hash)
{
    const struct hf_node *n = hf_rows_peek(r, hash);
    if (n) {
        __builtin_prefetch(n);
        __builtin_prefetch(n->bytes + 64);
    }
}

struct hf_bytes hf_node_tenant(const struct hf_node *n)
{
    return hf_mem(n->bytes + 1, n->tenant_size);
}

struct hf_bytes hf_node_image(const struct hf_node *n)
{
    return hf_mem(n->bytes + n->key_size, n->image_size);
}

bool hf_node_row(const struct hf_node *n, struct hf_row *row)
{
    struct hf_image image = { n->kind, false, hf_node_image(n) };
    return hf_image_decode(&image, hf_node_tenant(n), row);
}

hf_time hf_node_entry_expiry(const struct hf_node *n)
{
    return (hf_time)hf_get64(n->bytes + n->key_size + 8);
}

/* ---- Changing ---- */

static struct hf_order *order_of(struct hf_rows *r, const struct hf_node *n)
{
    HF_ASSERT(r && n);
    switch (n->kind) {
    case HF_ROW_RESOURCE: return &r->resources;
    case HF_ROW_GUARD: return &r->guards;
    case HF_ROW_OUTBOX: return &r->outbox;
    case HF_ROW_ENTRY: return n->guard->entries;
    default: return NULL;
    }
}

/* What hangs on a new node beside its bytes. */
static bool extras_make(struct hf_rows *r, struct hf_node *n, struct hf_bytes scope, unsigned together)
{
    if (n->kind == HF_ROW_GUARD) {
        n->entries = calloc(1, sizeof *n->entries);
        if (!n->entries)
            return false;
        r->bytes += sizeof *n->entries;
    } else if (n->kind == HF_ROW_CLIENT) {
        n->ring = calloc(HF_SEQUENCE_WINDOW, sizeof *n->ring);
        if (!n->ring)
            return false;
        r->bytes += HF_SEQUENCE_WINDOW * sizeof *n->ring;
    } else if (n->kind == HF_ROW_ENTRY) {
        struct hf_image_key key = { .name = scope };
        n->guard = hf_rows_find(r, HF_ROW_GUARD, hf_node_tenant(n), &key);
        if (!n->guard)
            return false;
    }
    struct hf_order *order = order_of(r, n);
    return !order || order_reserve(r, order, together);
}

static struct hf_node *node_make(struct hf_rows *r, const struct prefix *p, struct hf_bytes name,
                                 const struct hf_image *image, uint64_t hash)
{
    size_t head = p->size - 1;
    /* Rows whose size changes get some slack; those that keep theirs do not. */
    size_t room = image->bytes.size;
    if (image->kind == HF_ROW_REGISTER || image->kind == HF_ROW_VALUE || image->kind == HF_ROW_CLAIM)
        room += room / 8;
    struct hf_node *n = malloc(sizeof *n + head + name.size + room);
    if (!n)
        return NULL;
    *n = (struct hf_node){ .hash = hash,
                           .key_size = (uint32_t)(head + name.size),
                           .image_room = (uint32_t)room,
                           .kind = (uint8_t)image->kind,
                           .tenant_size = p->bytes[1] };
    memcpy(n->bytes, p->bytes + 1, head);
    if (name.size)
        memcpy(n->bytes + head, name.data, name.size);
    r->bytes += node_bytes(n);
    return n;
}

enum hf_status hf_rows_stage(struct hf_rows *r, struct hf_bytes tenant, const struct hf_image *image,
                             unsigned together, struct hf_staged *out)
{
    struct hf_image_key key;
    struct prefix p;
    if (tenant.size > HF_TENANT_MAX || !hf_image_key(image, &key) || key.scope.size > HF_NAME_MAX)
        return HF_STORE_DAMAGED;
    prefix_make(&p, image->kind, tenant, key.scope);
    uint64_t hash;
    *out = (struct hf_staged){ .tenant = tenant, .image = *image };
    out->old = find_node(r, &p, key.name, &hash);
    if (image->erase ||
        (out->old && image->kind != HF_ROW_ENTRY && out->old->image_room >= image->bytes.size))
        return HF_OK;
    if (image->kind == HF_ROW_ENTRY) {
        struct hf_image_key guard = { .name = key.scope };
        if (!hf_rows_find(r, HF_ROW_GUARD, tenant, &guard))
            return HF_STORE_DAMAGED;
    }
    if (!hf_map64_reserve(&r->map, hash, together))
        return HF_NO_MEMORY;
    out->made = node_make(r, &p, key.name, image, hash);
    if (!out->made)
        return HF_NO_MEMORY;
    /* A larger register, claim or value takes the old one's place and has no extras. */
    if ((!out->old || image->kind == HF_ROW_ENTRY) && !extras_make(r, out->made, key.scope, together)) {
        hf_rows_drop(r, out);
        return HF_NO_MEMORY;
    }
    return HF_OK;
}

void hf_rows_drop(struct hf_rows *r, struct hf_staged *staged)
{
    if (staged->made)
        node_free(r, staged->made);
    staged->made = NULL;
}

static void image_set(struct hf_node *n, struct hf_bytes image)
{
    HF_ASSERT(image.size <= n->image_room);
    if (image.size)
        memcpy(n->bytes + n->key_size, image.data, image.size);
    n->image_size = (uint32_t)image.size;
}

struct hf_node *hf_rows_put(struct hf_rows *r, struct hf_staged *staged, uint64_t stamp)
{
    struct hf_node *n = staged->made;
    if (staged->image.erase) {
        if (staged->old)
            hf_rows_erase(r, staged->old);
        return NULL;
    }
    if (!n) {
        image_set(staged->old, staged->image.bytes);
        return staged->old;
    }
    image_set(n, staged->image.bytes);
    n->stamp = stamp;
    if (staged->old)
        hf_rows_erase(r, staged->old);
    struct hf_order *order = order_of(r, n);
    if (order) {
        if (!r->loading && order->end > order->start && order->items[order->end - 1].stamp >= stamp)
            n->stamp = order->items[order->end - 1].stamp + 1;
        order->items[order->end++] = (struct hf_order_item){ n->stamp, n };
    }
    hf_map64_add(&r->map, n->hash, (uint64_t)(uintptr_t)n);
    r->count[n->kind]++;
    staged->made = NULL;
    return n;
}

void hf_rows_erase(struct hf_rows *r, struct hf_node *node)
{
    struct hf_order *order = order_of(r, node);
    if (order)
        order_leave(order, node);
    for (struct hf_slot *s = NULL; (s = hf_map64_next(&r->map, node->hash, s)) != NULL;) {
        if (s->value == (uint64_t)(uintptr_t)node) {
            hf_map64_remove(&r->map, s);
            break;
        }
    }
    r->count[node->kind]--;
    if (r->last == node)
        r->last = NULL;
    HF_ASSERT(node->kind != HF_ROW_GUARD && node->kind != HF_ROW_CLIENT && node->kind != HF_ROW_RESOURCE);
    node->dead_next = r->dead;
    r->dead = node;
}

void hf_rows_bury(struct hf_rows *r)
{
    while (r->dead) {
        struct hf_node *next = r->dead->dead_next;
        node_free(r, r->dead);
        r->dead = next;
    }
}

size_t hf_rows_expire_entries(struct hf_rows *r, struct hf_node *guard, hf_time now, size_t max)
{
    struct hf_order *o = guard->entries;
    size_t freed = 0;
    while (freed < max && o->start < o->end && hf_node_entry_expiry(o->items[o->start].node) <= now) {
        hf_rows_erase(r, o->items[o->start].node);
        freed++;
    }
    return freed;
}
