/* Usage: memory and records of each tenant. */
#include "store/journal/writer.h"

static void fill(const struct hf_owner *tenant, struct hf_usage *out)
{
    *out = (struct hf_usage){ .memory_bytes = hf_owner_memory(tenant),
                              .records = hf_owner_records(tenant),
                              .refusals = tenant->refusals };
    memcpy(out->tenant, tenant->name, tenant->size);
}

/* Insert `one` by its rank into the `count` so far, at most `max`. What does not fit is added to
 * `others`. */
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

size_t hf_writer_usage(struct hf_store *store, struct hf_usage *list, size_t max,
                       struct hf_usage *others)
{
    struct hf_writer *w = hf_writer_of(store);
    size_t count = 0;
    pthread_mutex_lock(&w->lock);
    const struct hf_owners *t = &w->journal->tables.rows.owners;
    for (uint32_t i = 0; i < t->count; i++) {
        struct hf_usage one;
        fill(&t->list[i], &one);
        if (one.records > 0)
            count = rank(list, count, max, &one, others);
    }
    pthread_mutex_unlock(&w->lock);
    return count;
}

void hf_writer_usage_of(struct hf_store *store, struct hf_bytes tenant, struct hf_usage *out)
{
    struct hf_writer *w = hf_writer_of(store);
    pthread_mutex_lock(&w->lock);
    struct hf_owners *t = &w->journal->tables.rows.owners;
    uint32_t place = hf_owners_find(t, tenant);
    if (place != HF_OWNER_NONE)
        fill(&t->list[place], out);
    pthread_mutex_unlock(&w->lock);
}
