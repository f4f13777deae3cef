#include "server/tenant.h"

#include "base/bytes.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { SECOND_US = 1000000 };

void hf_tenants_init(struct hf_tenants *tenants, unsigned connections_max, unsigned rate)
{
    *tenants = (struct hf_tenants){ .connections_max = connections_max, .rate = rate };
    pthread_mutex_init(&tenants->lock, NULL);
}

void hf_tenants_free(struct hf_tenants *tenants)
{
    for (size_t i = 0; i < HF_TENANT_SLOTS; i++)
        while (tenants->slots[i]) {
            struct hf_tenant *t = tenants->slots[i];
            tenants->slots[i] = t->next;
            free(t);
        }
    pthread_mutex_destroy(&tenants->lock);
}

static bool is_named(const struct hf_tenant *t, struct hf_bytes name)
{
    return hf_bytes_equal(hf_mem(t->name, t->name_size), name);
}

struct hf_tenant *hf_tenant_find(struct hf_tenants *tenants, struct hf_tenant *before,
                                 struct hf_bytes name)
{
    static const struct hf_sipkey key = { 0 }; /* no secret: the operator chooses the names */
    if (before && is_named(before, name))
        return before;
    uint64_t hash = hf_siphash(&key, name, hf_mem("", 0));
    pthread_mutex_lock(&tenants->lock);
    struct hf_tenant **slot = &tenants->slots[hash % HF_TENANT_SLOTS];
    struct hf_tenant *t = *slot;
    while (t && !is_named(t, name))
        t = t->next;
    if (!t && name.size <= sizeof t->name && (t = calloc(1, sizeof *t)) != NULL) {
        t->group.max = tenants->connections_max;
        /* An operator can connect even if the tenants have all connections, to find out why. */
        t->group.first = hf_bytes_equal(name, hf_str(HF_TENANT_OPERATORS));
        t->name_size = name.size;
        if (name.size > 0)
            memcpy(t->name, name.data, name.size);
        t->next = *slot;
        *slot = t;
    }
    pthread_mutex_unlock(&tenants->lock);
    return t;
}

uint64_t hf_tenant_batch_max(const struct hf_tenants *tenants)
{
    return (uint64_t)tenants->rate * HF_OWED_SECONDS;
}

/* Each request moves `paid_us` ahead by the time that it costs. Unused time is kept for one second,
 * so paid_us counts as at most one second behind now. A request whose cost would move it ahead of
 * now must wait: the result says how long. */
static int64_t pay(_Atomic int64_t *paid_us, int64_t rate, int64_t now, int64_t count)
{
    int64_t paid = atomic_load_explicit(paid_us, memory_order_relaxed), next;
    int64_t cost = rate < SECOND_US ? SECOND_US / rate : 1;
    do {
        int64_t from = paid > now - SECOND_US ? paid : now - SECOND_US;
        if (from + cost > now)
            return from + cost - now;
        next = from + cost * count;
    } while (!atomic_compare_exchange_weak_explicit(paid_us, &paid, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return 0;
}

int64_t hf_tenant_take(struct hf_tenants *tenants, struct hf_tenant *tenant,
                       const struct hf_charge *charge)
{
    if (tenants->rate == 0)
        return 0;
    return pay(&tenant->paid_us[charge->ending], tenants->rate, charge->now_us,
               (int64_t)charge->count);
}

bool hf_tenant_may_log(struct hf_tenant *tenant, int64_t now_us)
{
    return pay(&tenant->logged_us, HF_TENANT_LOG_RATE, now_us, 1) == 0;
}
