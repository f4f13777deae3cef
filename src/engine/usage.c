/* Usage: what each tenant has in the tables. */
#include "engine/engine.h"

static void fill(const struct hf_owner *tenant, struct hf_usage *out)
{
    *out = (struct hf_usage){ .memory_bytes = hf_owner_memory(tenant),
                              .records = hf_owner_records(tenant),
                              .refusals = tenant->refusals };
    memcpy(out->tenant, tenant->name, tenant->size);
}

/* Put it where it belongs among the `count` so far, of at most `max`. What finds no place goes to the others. */
static size_t rank(struct hf_usage *list, size_t count, size_t max, const struct hf_usage *one,
                   struct hf_usage *others)
{
    size_t at = count;
    while (at > 0 && list[at - 1].memory_bytes < one->memory_bytes)
        at--;
    const struct hf_usage *out = count < max ? NULL : at < max ? &list[max - 1] : one;
    if (out && others) {
        others->memory_bytes += out->memory_bytes;
        others->records += out->records;
        others->refusals += out->refusals;
    }
    if (at == max)
        return count;
    count += count < max;
    memmove(&list[at + 1], &list[at], (count - at - 1) * sizeof *list);
    list[at] = *one;
    return count;
}

size_t hf_usage(struct hf_db *db, struct hf_usage *list, size_t max, struct hf_usage *others)
{
    size_t count = 0;
    if (others)
        *others = (struct hf_usage){ .records = 0 };
    if (db->remote)
        return 0;
    pthread_mutex_lock(&db->lock);
    const struct hf_owners *t = &db->journal->tables.rows.owners;
    for (uint32_t i = 0; i < t->count; i++) {
        struct hf_usage one;
        fill(&t->list[i], &one);
        if (one.records > 0)
            count = rank(list, count, max, &one, others);
    }
    pthread_mutex_unlock(&db->lock);
    return count;
}

void hf_usage_of(struct hf_db *db, struct hf_bytes tenant, struct hf_usage *out)
{
    *out = (struct hf_usage){ .records = 0 };
    if (tenant.size > HF_TENANT_MAX)
        return;
    memcpy(out->tenant, tenant.data ? tenant.data : "", tenant.size);
    if (db->remote)
        return;
    pthread_mutex_lock(&db->lock);
    struct hf_owners *t = &db->journal->tables.rows.owners;
    uint32_t place = hf_owners_find(t, tenant);
    if (place != HF_OWNER_NONE)
        fill(&t->list[place], out);
    pthread_mutex_unlock(&db->lock);
}
