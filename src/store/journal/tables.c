#include "base/assert.h"
#include "base/bytes.h"
#include "store/journal/journal.h"
#include "store/record/sound.h"

bool hf_tables_init(struct hf_tables *t, const struct hf_store_keys *keys, const struct hf_io *io,
                    struct hf_dir *dir)
{
    hf_live_init(&t->live);
    /* 4096 parts: with 50 M keys a part has 16 K slots, and growing it takes about 0.2 ms. */
    return hf_map64_init(&t->tokens, 12) && hf_rows_init(&t->rows, &keys->table) &&
           hf_holds_init(&t->holds, io, dir, &keys->table);
}

void hf_tables_free(struct hf_tables *t)
{
    hf_map64_free(&t->tokens);
    hf_rows_free(&t->rows);
    hf_live_free(&t->live);
    hf_holds_free(&t->holds);
}

uint64_t hf_tables_bytes(const struct hf_tables *t)
{
    return t->tokens.bytes + t->rows.map.bytes + t->rows.bytes + t->live.bytes +
           t->live.by_ordinal.bytes + hf_holds_bytes(&t->holds);
}

uint64_t hf_tables_in_use(const struct hf_tables *t)
{
    return (t->tokens.used + t->rows.map.used + t->holds.moved.used) * HF_SLOT_BYTES +
           t->rows.bytes +
           hf_live_count(&t->live) *
               (sizeof(struct hf_live_node) + sizeof(struct hf_live_heap_item)) +
           t->live.by_ordinal.bytes + t->holds.recent.bytes + hf_owners_bytes(&t->rows.owners);
}

uint64_t hf_tables_owed(const struct hf_tables *t)
{
    return hf_live_count(&t->live) * HF_OWED_HOLD + t->rows.started * HF_OWED_CLAIM +
           t->rows.deletable * HF_OWED_ROW;
}

void hf_tables_token_gone(struct hf_tables *t, struct hf_bytes tenant)
{
    uint32_t place = hf_owners_find(&t->rows.owners, tenant);
    if (place == HF_OWNER_NONE || t->rows.owners.list[place].tokens == 0)
        return; /* only in a forged journal */
    t->rows.owners.list[place].tokens--;
    hf_owners_leave(&t->rows.owners, place);
}

uint64_t hf_tables_hash(const struct hf_tables *t, struct hf_scoped key)
{
    unsigned char prefix[1 + HF_TENANT_MAX];
    HF_ASSERT(key.tenant.size <= HF_TENANT_MAX);
    prefix[0] = (unsigned char)key.tenant.size;
    if (key.tenant.size)
        memcpy(prefix + 1, key.tenant.data, key.tenant.size);
    return hf_siphash(&t->rows.key, hf_mem(prefix, 1 + key.tenant.size), key.name);
}

/* ---- Staging: everything that can fail ---- */

struct stage {
    struct hf_staged rows[HF_PLAN_ROWS];
    size_t count;
    uint64_t token_hash;
    uint32_t tenant;
};

static enum hf_status stage_hold(struct hf_tables *t, const struct hf_image *image,
                                 unsigned together)
{
    struct hf_image_hold hold;
    /* Ordinals are given out in sequence. */
    if (!hf_image_hold(image, &hold) || hold.ordinal == 0 || hold.ordinal > t->holds.highest + 1)
        return HF_STORE_DAMAGED;
    bool good = hf_holds_reserve(&t->holds, hold.ordinal, together) &&
                (hold.state != HF_HELD || hf_live_reserve(&t->live, hold.ordinal));
    return good ? HF_OK : HF_NO_MEMORY;
}

static enum hf_status stage_entry(struct hf_tables *t, const struct hf_entry_view *entry,
                                  struct stage *s)
{
    struct hf_bytes rows = entry->rows;
    struct hf_image image;
    unsigned together = (unsigned)entry->row_count + 1;
    s->count = 0;
    s->tenant = HF_OWNER_NONE;
    if (entry->row_count > HF_PLAN_ROWS)
        return HF_STORE_DAMAGED;
    s->tenant = hf_owners_make(&t->rows.owners, entry->head.tenant);
    if (s->tenant == HF_OWNER_NONE)
        return HF_NO_MEMORY;
    if (entry->head.remember == HF_REMEMBER_KEY) {
        s->token_hash =
            t->hint_token
                ? t->hint_token
                : hf_tables_hash(t, (struct hf_scoped){ entry->head.tenant, entry->head.key });
        if (!hf_map64_reserve(&t->tokens, s->token_hash, 1))
            return HF_NO_MEMORY;
    }
    for (unsigned i = 0; i < entry->row_count; i++) {
        if (!hf_image_next(&rows, &image))
            return HF_STORE_DAMAGED;
        enum hf_status st;
        if (image.kind == HF_ROW_HOLD)
            st = stage_hold(t, &image, together);
        else
            st = hf_rows_stage(&t->rows, entry->head.tenant, &image, together, &s->rows[s->count]);
        if (st != HF_OK)
            return st;
        if (image.kind != HF_ROW_HOLD)
            s->count++;
    }
    return rows.size == 0 ? HF_OK : HF_STORE_DAMAGED;
}

/* ---- Putting: cannot fail ---- */

static void put_hold(struct hf_tables *t, const struct hf_image *image, uint32_t tenant,
                     uint64_t position, bool held)
{
    struct hf_owner *owner = &t->rows.owners.list[tenant];
    struct hf_image_hold hold;
    bool good = hf_image_hold(image, &hold);
    HF_ASSERT(good);
    if ((hold.state == HF_HELD) != held)
        return;
    hf_holds_set(&t->holds, hold.ordinal, position);
    if (!held) {
        bool was = hf_live_remove(&t->live, hold.ordinal);
        owner->live -= was && owner->live > 0;
        return;
    }
    struct hf_image_key key = { .name = hold.resource };
    struct hf_node *resource =
        hf_rows_find(&t->rows, HF_ROW_RESOURCE, hf_mem(owner->name, owner->size), &key);
    if (resource) /* missing only in a forged journal */
        owner->live += hf_live_add(&t->live, hold.ordinal, hold.expires_at, &resource->live_root,
                                   resource->stamp);
}

/* Update what the tables keep besides the rows. */
static void put_extras(struct hf_tables *t, const struct hf_image *image)
{
    struct hf_row row;
    uint64_t fence = 0;
    switch (image->kind) {
    case HF_ROW_CLAIM: fence = hf_get64((const unsigned char *)image->bytes.data + 2); break;
    case HF_ROW_LEASE: fence = hf_get64(image->bytes.data); break;
    case HF_ROW_OUTBOX: {
        uint64_t number = hf_get64(image->bytes.data);
        if (number > t->highest_outbox)
            t->highest_outbox = number;
        break;
    }
    case HF_ROW_CONFIG:
        if (hf_image_decode(image, hf_mem(NULL, 0), &row)) {
            t->config = row.config;
            t->config.digest_name = t->config.program = hf_mem(NULL, 0);
            t->has_config = true;
        }
        break;
    default: break;
    }
    if (fence > t->highest_fence)
        t->highest_fence = fence;
}

static bool token_there(const struct hf_tables *t, uint64_t hash, uint64_t position)
{
    for (struct hf_slot *s = NULL; (s = hf_map64_next(&t->tokens, hash, s)) != NULL;)
        if (s->value == position)
            return true;
    return false;
}

/* The identity of a well-formed row within its entry. */
struct row_key {
    enum hf_row_kind kind;
    struct hf_image_key key;
};

static bool row_key(const struct hf_image *image, struct row_key *out)
{
    out->kind = image->kind;
    if (image->kind != HF_ROW_HOLD)
        return hf_image_key(image, &out->key);
    out->key = (struct hf_image_key){ .name = hf_mem(image->bytes.data, 8) }; /* the ordinal */
    return true;
}

static bool same_row(const struct row_key *a, const struct row_key *b)
{
    return a->kind == b->kind && hf_bytes_equal(a->key.name, b->key.name) &&
           hf_bytes_equal(a->key.scope, b->key.scope);
}

/* Could a store have written these rows? Only values and leases are erased; a row is in an entry
 * once; and no request makes two holds, for which no memory would be reserved. */
static bool rows_well_formed(const struct hf_entry_view *entry)
{
    struct hf_bytes rows = entry->rows;
    struct hf_image image;
    struct hf_row row;
    struct row_key keys[HF_PLAN_ROWS];
    size_t count = 0, held = 0;
    for (; hf_image_next(&rows, &image); count++) {
        if (image.erase && image.kind != HF_ROW_VALUE && image.kind != HF_ROW_LEASE)
            return false;
        if (!(image.erase && image.kind == HF_ROW_VALUE) &&
            (!hf_image_decode(&image, entry->head.tenant, &row) || !hf_row_sound(&row)))
            return false;
        if (count == HF_PLAN_ROWS || !row_key(&image, &keys[count]))
            return false;
        for (size_t k = 0; k < count; k++)
            if (same_row(&keys[k], &keys[count]))
                return false;
        held += image.kind == HF_ROW_HOLD && row.hold.state == HF_HELD;
    }
    return rows.size == 0 && held <= 1;
}

enum hf_status hf_tables_apply(struct hf_tables *t, const struct hf_entry_view *entry,
                               uint64_t position, bool replay)
{
    struct stage s;
    if (replay && (entry->head.tenant.size > HF_TENANT_MAX || !rows_well_formed(entry)))
        return HF_STORE_DAMAGED;
    enum hf_status st = stage_entry(t, entry, &s);
    if (st != HF_OK) {
        for (size_t i = 0; i < s.count; i++)
            hf_rows_drop(&t->rows, &s.rows[i]);
        if (s.tenant != HF_OWNER_NONE)
            hf_owners_leave(&t->rows.owners, s.tenant);
        return st;
    }
    for (size_t i = 0; i < s.count; i++) {
        struct hf_node *node = hf_rows_put(&t->rows, &s.rows[i], position + i);
        put_extras(t, &s.rows[i].image);
        if (node && node->kind == HF_ROW_CLIENT && entry->head.remember == HF_REMEMBER_SEQUENCE)
            node->ring[entry->head.sequence % HF_SEQUENCE_WINDOW] = position;
    }
    /* Add held holds before removing ended ones: a removal may free memory that was reserved. */
    for (int held = 1; held >= 0; held--) {
        struct hf_bytes rows = entry->rows;
        struct hf_image image;
        while (hf_image_next(&rows, &image))
            if (image.kind == HF_ROW_HOLD)
                put_hold(t, &image, s.tenant, position, held);
    }
    if (entry->head.remember == HF_REMEMBER_KEY) {
        t->rows.owners.list[s.tenant].tokens++;
        if (!(replay && token_there(t, s.token_hash, position)))
            hf_map64_add(&t->tokens, s.token_hash, position);
    }
    return HF_OK;
}

enum hf_status hf_tables_apply_volatile(struct hf_tables *t, struct hf_bytes tenant,
                                        const struct hf_image *image)
{
    struct hf_staged staged;
    enum hf_status st = hf_rows_stage_volatile(&t->rows, tenant, image, &staged);
    if (st == HF_OK)
        hf_rows_put(&t->rows, &staged, 0);
    else
        hf_rows_drop(&t->rows, &staged);
    return st;
}
