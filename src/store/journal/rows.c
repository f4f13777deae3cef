#include "store/journal/rows.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <stdlib.h>

bool hf_rows_loaded(struct hf_rows *r)
{
    struct hf_order_at at = { r->guards.first, 0 };
    bool sorted =
        hf_order_sort(&r->resources) && hf_order_sort(&r->guards) && hf_order_sort(&r->outbox);
    for (const struct hf_order_item *g; sorted && (g = hf_order_next(&r->guards, &at)) != NULL;)
        sorted = hf_order_sort(&g->node->entries[0]);
    r->loading = false;
    return sorted;
}

static const void *image_of(const struct hf_node *n)
{
    return n->bytes + n->key_size;
}

bool hf_rows_recovered(struct hf_rows *r, hf_time now)
{
    bool good = true;
    for (size_t i = 0; r->count[HF_ROW_CLAIM] > 0 && i < hf_map64_parts(&r->map); i++)
        for (uint32_t s = 0; good && s < r->map.parts[i].room; s++) {
            struct hf_node *n = (struct hf_node *)(uintptr_t)r->map.parts[i].slots[s].value;
            if (!n || n->kind != HF_ROW_CLAIM)
                continue;
            struct hf_claim_mark is = hf_claim_mark(image_of(n));
            good = hf_claims_add(&r->claims, n, &is, now, &r->bytes);
        }
    return good && hf_claims_made(&r->claims);
}

/* ---- Nodes ---- */

bool hf_rows_init(struct hf_rows *r, const struct hf_sipkey *key)
{
    *r = (struct hf_rows){ .key = *key };
    return hf_map64_init(&r->map, 10) && hf_owners_init(&r->owners, key);
}

static uint64_t node_bytes(const struct hf_node *n)
{
    return sizeof *n + n->key_size + n->image_room;
}

/* Charge memory to the node's tenant. */
static void charge(struct hf_rows *r, const struct hf_node *n, uint64_t bytes)
{
    r->bytes += bytes;
    r->owners.list[n->tenant].bytes += bytes;
}

/* Charge the memory of a guard's order to the tenant of the guard; r->bytes, which was `before`,
 * already includes it. */
static void order_charge(struct hf_rows *r, const struct hf_node *n, uint64_t before)
{
    r->owners.list[n->tenant].bytes += r->bytes - before;
}

static void node_free(struct hf_rows *r, struct hf_node *n)
{
    uint64_t bytes = node_bytes(n);
    if (n->kind == HF_ROW_GUARD && n->entries) {
        uint64_t before = r->bytes;
        hf_order_free(&n->entries[0], &r->bytes);
        hf_order_free(&n->entries[1], &r->bytes);
        order_charge(r, n, before);
        bytes += 2 * sizeof *n->entries;
        free(n->entries);
    }
    if (n->kind == HF_ROW_CLIENT && n->ring) {
        bytes += HF_SEQUENCE_WINDOW * sizeof *n->ring;
        free(n->ring);
    }
    charge(r, n, -bytes);
    hf_owners_leave(&r->owners, n->tenant);
    free(n);
}

/* Can the row still be ended, so that memory is owed for that? */
static bool owes_ending(const struct hf_node *n)
{
    return n->kind == HF_ROW_CLAIM && n->bytes[n->key_size] == HF_CLAIM_STARTED;
}

/* Is it the row left by a deleted register? */
static bool is_left(const struct hf_node *n)
{
    return n->kind == HF_ROW_REGISTER &&
           (n->bytes[n->key_size] & ~HF_REGISTER_REQUIRES_FENCE) == HF_TYPE_DELETED;
}

static bool owes_deletion(const struct hf_node *n)
{
    return n->kind == HF_ROW_LEASE || (n->kind == HF_ROW_REGISTER && !is_left(n));
}

/* The row is added (1) or removed (-1), or its image is about to change (-1) or has changed (1). */
static void count_owed(struct hf_rows *r, const struct hf_node *n, int by)
{
    /* Most changed rows are resources, which owe nothing. */
    if (n->kind != HF_ROW_CLAIM && n->kind != HF_ROW_LEASE && n->kind != HF_ROW_REGISTER)
        return;
    struct hf_owner *tenant = &r->owners.list[n->tenant];
    uint64_t started = owes_ending(n), deletable = owes_deletion(n);
    uint64_t left = is_left(n);
    r->left += by * (int64_t)left;
    tenant->left += by * (int64_t)left;
    r->started += by * (int64_t)started;
    tenant->started += by * (int64_t)started;
    r->deletable += by * (int64_t)deletable;
    tenant->deletable += by * (int64_t)deletable;
}

void hf_rows_free(struct hf_rows *r)
{
    if (!r->map.parts || !r->owners.list) {
        hf_map64_free(&r->map);
        return;
    }
    hf_rows_bury(r);
    for (size_t i = 0; i < hf_map64_parts(&r->map); i++)
        for (uint32_t s = 0; s < r->map.parts[i].room; s++)
            if (r->map.parts[i].slots[s].value)
                node_free(r, (struct hf_node *)(uintptr_t)r->map.parts[i].slots[s].value);
    hf_map64_free(&r->map);
    hf_order_free(&r->resources, &r->bytes);
    hf_order_free(&r->guards, &r->bytes);
    hf_order_free(&r->outbox, &r->bytes);
    hf_claims_free(&r->claims, &r->bytes);
    hf_owners_free(&r->owners);
}

/* The bytes before the name: the kind for the hash, then the beginning of node->bytes. */
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

/* hash: out, of the row. */
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
    case HF_ROW_ENTRY: return &n->guard->entries[n->is_volatile];
    default: return NULL;
    }
}

/* Make the parts of a new node besides its bytes. */
static bool extras_make(struct hf_rows *r, struct hf_node *n, struct hf_bytes scope,
                        unsigned together)
{
    if (n->kind == HF_ROW_GUARD) {
        n->entries = calloc(2, sizeof *n->entries);
        if (!n->entries)
            return false;
        charge(r, n, 2 * sizeof *n->entries);
    } else if (n->kind == HF_ROW_CLIENT) {
        n->ring = calloc(HF_SEQUENCE_WINDOW, sizeof *n->ring);
        if (!n->ring)
            return false;
        charge(r, n, HF_SEQUENCE_WINDOW * sizeof *n->ring);
    } else if (n->kind == HF_ROW_ENTRY) {
        struct hf_image_key key = { .name = scope };
        n->guard = hf_rows_find(r, HF_ROW_GUARD, hf_node_tenant(n), &key);
        if (!n->guard)
            return false;
    }
    struct hf_order *order = order_of(r, n);
    if (!order)
        return true;
    uint64_t before = r->bytes;
    bool reserved = hf_order_reserve(order, together, &r->bytes);
    if (n->kind == HF_ROW_ENTRY)
        order_charge(r, n, before);
    return reserved;
}

static struct hf_node *node_make(struct hf_rows *r, const struct prefix *p, struct hf_bytes name,
                                 const struct hf_image *image, uint64_t hash)
{
    size_t head = p->size - 1;
    /* Rows whose size changes get some slack; others do not. */
    size_t room = image->bytes.size;
    if (image->kind == HF_ROW_REGISTER || image->kind == HF_ROW_VALUE ||
        image->kind == HF_ROW_CLAIM)
        room += room / 8;
    uint32_t tenant = hf_owners_make(&r->owners, hf_mem(p->bytes + 2, p->bytes[1]));
    struct hf_node *n =
        tenant == HF_OWNER_NONE ? NULL : malloc(sizeof *n + head + name.size + room);
    if (!n)
        return NULL;
    *n = (struct hf_node){ .hash = hash,
                           .key_size = (uint32_t)(head + name.size),
                           .image_room = (uint32_t)room,
                           .kind = (uint8_t)image->kind,
                           .tenant_size = p->bytes[1],
                           .tenant = tenant };
    memcpy(n->bytes, p->bytes + 1, head);
    if (name.size)
        memcpy(n->bytes + head, name.data, name.size);
    charge(r, n, node_bytes(n));
    return n;
}

/* Does the image fit into the row in place? A row with far too much room is replaced, to free the
 * room. */
static bool fits(const struct hf_node *old, const struct hf_image *image)
{
    enum { SPARE = 256 };
    return old->image_room >= image->bytes.size && old->image_room <= 2 * image->bytes.size + SPARE;
}

/* Is it a claim with a new fence? */
static bool is_begin(const struct hf_node *old, const struct hf_image *image)
{
    return image->kind == HF_ROW_CLAIM &&
           (!old || hf_claim_mark(image_of(old)).fence != hf_claim_mark(image->bytes.data).fence);
}

static enum hf_status stage(struct hf_rows *r, struct hf_bytes tenant, const struct hf_image *image,
                            unsigned together, bool is_volatile, struct hf_staged *out)
{
    struct hf_image_key key;
    struct prefix p;
    if (tenant.size > HF_TENANT_MAX || !hf_image_key(image, &key) || key.scope.size > HF_NAME_MAX)
        return HF_STORE_DAMAGED;
    prefix_make(&p, image->kind, tenant, key.scope);
    uint64_t hash;
    *out = (struct hf_staged){ .tenant = tenant, .image = *image };
    out->old = find_node(r, &p, key.name, &hash);
    if (is_begin(out->old, image) && !hf_claims_reserve(&r->claims, together, &r->bytes))
        return HF_NO_MEMORY;
    if (image->erase || (out->old && image->kind != HF_ROW_ENTRY && fits(out->old, image)))
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
        return out->old && image->kind != HF_ROW_ENTRY && out->old->image_room >= image->bytes.size
                   ? HF_OK
                   : HF_NO_MEMORY;
    out->made->is_volatile = is_volatile;
    /* A larger register, claim or value replaces the old one and has no extras. */
    if ((!out->old || image->kind == HF_ROW_ENTRY) &&
        !extras_make(r, out->made, key.scope, together)) {
        hf_rows_drop(r, out);
        return HF_NO_MEMORY;
    }
    return HF_OK;
}

enum hf_status hf_rows_stage(struct hf_rows *r, struct hf_bytes tenant,
                             const struct hf_image *image, unsigned together, struct hf_staged *out)
{
    return stage(r, tenant, image, together, false, out);
}

enum hf_status hf_rows_stage_volatile(struct hf_rows *r, struct hf_bytes tenant,
                                      const struct hf_image *image, struct hf_staged *out)
{
    return stage(r, tenant, image, 1, true, out);
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

/* The stamp of the new row in its order. */
static uint64_t stamp_in(struct hf_rows *r, const struct hf_order *order, const struct hf_node *n,
                         uint64_t stamp)
{
    if (n->is_volatile)
        return HF_STAMP_VOLATILE | ++r->volatile_stamps;
    bool behind = r->loading || order->newest < stamp;
    if (!behind)
        stamp = order->newest + 1;
    if ((r->loading || !behind) && stamp > r->foreign)
        r->foreign = stamp;
    return stamp;
}

/* The index of the claims follows: `old` becomes `node`, with this image. */
static void claim_changes(struct hf_rows *r, struct hf_node *old, struct hf_node *node,
                          const void *image)
{
    struct hf_claim_mark was = { .fence = 0 }, is = { .fence = 0 };
    if ((node ? node : old)->kind != HF_ROW_CLAIM)
        return;
    if (old)
        was = hf_claim_mark(image_of(old));
    if (node)
        is = hf_claim_mark(image);
    hf_claims_change(&r->claims, old, &was, node, &is, &r->bytes);
}

/* Take the row out of everything except the index of the claims. */
static void row_leave(struct hf_rows *r, struct hf_node *node)
{
    struct hf_order *order = order_of(r, node);
    uint64_t before = r->bytes;
    if (order)
        hf_order_leave(order, node->stamp, node, &r->bytes);
    if (node->kind == HF_ROW_ENTRY)
        order_charge(r, node, before);
    for (struct hf_slot *s = NULL; (s = hf_map64_next(&r->map, node->hash, s)) != NULL;) {
        if (s->value == (uint64_t)(uintptr_t)node) {
            hf_map64_remove(&r->map, s);
            break;
        }
    }
    r->count[node->kind]--;
    r->owners.list[node->tenant].rows -= node->kind != HF_ROW_CONFIG;
    count_owed(r, node, -1);
    if (r->last == node)
        r->last = NULL;
    HF_ASSERT(node->kind != HF_ROW_GUARD && node->kind != HF_ROW_CLIENT &&
              node->kind != HF_ROW_RESOURCE);
    node->dead_next = r->dead;
    r->dead = node;
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
        count_owed(r, staged->old, -1);
        claim_changes(r, staged->old, staged->old, staged->image.bytes.data);
        image_set(staged->old, staged->image.bytes);
        count_owed(r, staged->old, 1);
        return staged->old;
    }
    image_set(n, staged->image.bytes);
    n->stamp = stamp;
    claim_changes(r, staged->old, n, image_of(n));
    if (staged->old)
        row_leave(r, staged->old);
    struct hf_order *order = order_of(r, n);
    if (order) {
        n->stamp = stamp_in(r, order, n, stamp);
        hf_order_add(order, n->stamp, n);
    }
    hf_map64_add(&r->map, n->hash, (uint64_t)(uintptr_t)n);
    r->count[n->kind]++;
    r->owners.list[n->tenant].rows += n->kind != HF_ROW_CONFIG; /* the configuration belongs to no
                                                                 * tenant */
    count_owed(r, n, 1);
    staged->made = NULL;
    return n;
}

void hf_rows_erase(struct hf_rows *r, struct hf_node *node)
{
    claim_changes(r, node, NULL, NULL);
    row_leave(r, node);
}

void hf_rows_bury(struct hf_rows *r)
{
    while (r->dead) {
        struct hf_node *next = r->dead->dead_next;
        node_free(r, r->dead);
        r->dead = next;
    }
}

static size_t expire_order(struct hf_rows *r, const struct hf_order *o, hf_time now, size_t max)
{
    size_t freed = 0;
    while (freed < max) {
        struct hf_order_at oldest = { o->first, 0 };
        const struct hf_order_item *item = hf_order_next(o, &oldest);
        if (!item || hf_node_entry_expiry(item->node) > now)
            break;
        hf_rows_erase(r, item->node);
        freed++;
    }
    return freed;
}

size_t hf_rows_expire_entries(struct hf_rows *r, struct hf_node *guard, hf_time now, size_t max)
{
    size_t freed = expire_order(r, &guard->entries[0], now, max);
    return freed + expire_order(r, &guard->entries[1], now, max - freed);
}
