#include "audit/table.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

struct hf_audit_name hf_audit_name_of(enum hf_audit_space space, struct hf_bytes tenant,
                                      struct hf_bytes first, struct hf_bytes second)
{
    /* The lengths come first, so that different parts never give the same bytes. */
    struct hf_sha256 s;
    unsigned char lengths[7] = { (unsigned char)space };
    uint8_t digest[HF_DIGEST_SIZE];
    hf_put16(lengths + 1, (uint16_t)tenant.size);
    hf_put32(lengths + 3, (uint32_t)first.size);
    hf_sha256_init(&s);
    hf_sha256_add(&s, lengths, sizeof lengths);
    hf_sha256_add(&s, tenant.data, tenant.size);
    hf_sha256_add(&s, first.data, first.size);
    hf_sha256_add(&s, second.data, second.size);
    hf_sha256_end(&s, digest);
    return (struct hf_audit_name){ hf_get64(digest), hf_get64(digest + 8) | 1 };
}

static void *slot_at(const struct hf_audit_table *t, size_t i)
{
    return t->slots + i * t->item_size;
}

/* A random key for each run. Clients choose the names, and the hash of a name is not secret: with
 * many names in neighbouring slots a client could make the audit take days. */
static struct hf_sipkey secret;

static void secret_make(void)
{
    if (getrandom(&secret, sizeof secret, 0) == (ssize_t)sizeof secret)
        return;
    int64_t now_ns = hf_clock_monotonic_ns();
    secret = (struct hf_sipkey){ (uint64_t)now_ns, (uint64_t)(uintptr_t)&now_ns ^ (uint64_t)getpid()
                                                                                      << 48 };
}

static size_t first_slot(const struct hf_audit_table *t, struct hf_audit_name name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, secret_make);
    return (size_t)hf_siphash(&secret, hf_mem(&name, sizeof name), hf_mem(NULL, 0)) & (t->room - 1);
}

static size_t slot_of(const struct hf_audit_table *t, struct hf_audit_name name)
{
    size_t i = first_slot(t, name);
    for (;; i = (i + 1) & (t->room - 1)) {
        const struct hf_audit_name *n = slot_at(t, i);
        if (n->low == 0 || (n->low == name.low && n->high == name.high))
            return i;
    }
}

void *hf_audit_table_find(const struct hf_audit_table *t, struct hf_audit_name name)
{
    if (t->room == 0)
        return NULL;
    struct hf_audit_name *n = slot_at(t, slot_of(t, name));
    return n->low == 0 ? NULL : n;
}

/* Move all items that are not old into `room` new slots. */
static bool rebuild(struct hf_audit_table *t, size_t room, hf_time now)
{
    struct hf_audit_table fresh = *t;
    fresh.slots = calloc(room, t->item_size);
    if (!fresh.slots)
        return false;
    fresh.room = room;
    fresh.count = 0;
    for (size_t i = 0; i < t->room; i++) {
        const struct hf_audit_name *n = slot_at(t, i);
        if (n->low == 0 || (t->old && t->old(n, now)))
            continue;
        memcpy(slot_at(&fresh, slot_of(&fresh, *n)), n, t->item_size);
        fresh.count++;
    }
    unsigned char *before = t->slots;
    t->slots = fresh.slots;
    t->room = fresh.room;
    t->count = fresh.count;
    free(before);
    return true;
}

/* The number of items that are not old: decides whether a larger table is needed. */
static size_t count_alive(const struct hf_audit_table *t, hf_time now)
{
    size_t alive = 0;
    for (size_t i = 0; i < t->room; i++) {
        const struct hf_audit_name *n = slot_at(t, i);
        alive += n->low != 0 && !t->old(n, now);
    }
    return alive;
}

void *hf_audit_table_add(struct hf_audit_table *t, struct hf_audit_name name, hf_time now)
{
    HF_ASSERT(name.low != 0);
    if (t->count >= t->room / 4 * 3) {
        size_t alive = t->old ? count_alive(t, now) : t->count;
        size_t room = t->room == 0 ? 64 : alive >= t->room / 8 * 3 ? t->room * 2 : t->room;
        if (!rebuild(t, room, now))
            return NULL;
    }
    struct hf_audit_name *n = slot_at(t, slot_of(t, name));
    HF_ASSERT(n->low == 0);
    *n = name;
    t->count++;
    return n;
}

void hf_audit_table_free(struct hf_audit_table *t)
{
    free(t->slots);
    t->slots = NULL;
    t->room = t->count = 0;
}
