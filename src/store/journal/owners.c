#include "store/journal/owners.h"

#include <stdlib.h>

bool hf_owners_init(struct hf_owners *t, const struct hf_sipkey *key)
{
    enum { FIRST = 4 };
    *t = (struct hf_owners){
        .list = calloc(FIRST, sizeof *t->list), .count = 1, .room = FIRST, .key = *key
    };
    return t->list && hf_map64_init(&t->map, 0);
}

void hf_owners_free(struct hf_owners *t)
{
    free(t->list);
    t->list = NULL;
    hf_map64_free(&t->map);
}

static bool is_named(const struct hf_owner *tenant, struct hf_bytes name)
{
    return tenant->size == name.size && memcmp(tenant->name, name.data, name.size) == 0;
}

static uint32_t find(struct hf_owners *t, struct hf_bytes name, uint64_t *hash)
{
    if (name.size == 0)
        return 0;
    if (t->last && is_named(&t->list[t->last], name))
        return t->last;
    *hash = hf_siphash(&t->key, name, hf_mem(NULL, 0));
    for (struct hf_slot *s = NULL; (s = hf_map64_next(&t->map, *hash, s)) != NULL;)
        if (is_named(&t->list[s->value], name))
            return t->last = (uint32_t)s->value;
    return HF_OWNER_NONE;
}

uint32_t hf_owners_find(struct hf_owners *t, struct hf_bytes name)
{
    uint64_t hash;
    return find(t, name, &hash);
}

/* A place in the list, or HF_OWNER_NONE if out of memory. */
static uint32_t place_take(struct hf_owners *t)
{
    uint32_t place = t->free_list;
    if (place) {
        t->free_list = t->list[place].next_free;
        return place;
    }
    if (t->count == t->room) {
        struct hf_owner *list = realloc(t->list, (size_t)t->room * 2 * sizeof *list);
        if (!list)
            return HF_OWNER_NONE;
        t->list = list;
        t->room *= 2;
    }
    return t->count++;
}

uint32_t hf_owners_make(struct hf_owners *t, struct hf_bytes name)
{
    uint64_t hash = 0;
    uint32_t place = find(t, name, &hash);
    if (place != HF_OWNER_NONE)
        return place;
    if (!hf_map64_reserve(&t->map, hash, 1))
        return HF_OWNER_NONE;
    place = place_take(t);
    if (place == HF_OWNER_NONE)
        return place;
    t->list[place] = (struct hf_owner){ .size = (uint8_t)name.size };
    memcpy(t->list[place].name, name.data, name.size);
    hf_map64_add(&t->map, hash, place);
    return t->last = place;
}

void hf_owners_leave(struct hf_owners *t, uint32_t place)
{
    struct hf_owner *tenant = &t->list[place];
    if (place == 0 || tenant->bytes || tenant->rows || tenant->tokens || tenant->live)
        return;
    uint64_t hash = hf_siphash(&t->key, hf_mem(tenant->name, tenant->size), hf_mem(NULL, 0));
    for (struct hf_slot *s = NULL; (s = hf_map64_next(&t->map, hash, s)) != NULL;) {
        if (s->value != place)
            continue;
        hf_map64_remove(&t->map, s);
        tenant->next_free = t->free_list;
        t->free_list = place;
        if (t->last == place)
            t->last = 0;
        return;
    }
}

uint64_t hf_owners_bytes(const struct hf_owners *t)
{
    return (uint64_t)t->count * sizeof *t->list + t->map.used * HF_SLOT_BYTES;
}

uint64_t hf_owner_owed(const struct hf_owner *tenant)
{
    return tenant->live * HF_OWED_HOLD + tenant->started * HF_OWED_CLAIM +
           tenant->deletable * HF_OWED_ROW;
}

uint64_t hf_owner_memory(const struct hf_owner *tenant)
{
    return tenant->bytes + (tenant->rows + tenant->tokens) * HF_SLOT_BYTES +
           tenant->live * HF_LIVE_BYTES + hf_owner_owed(tenant);
}

uint64_t hf_owner_records(const struct hf_owner *tenant)
{
    return tenant->rows - tenant->left + tenant->tokens + tenant->live;
}
