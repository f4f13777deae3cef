/* Rows that stay locked: another transaction has changed them and stays open, and all operations
 * that need them wait for its end. They wait one by one in a single session, so that the other
 * sessions stay free. */
#include "base/clock.h"
#include "base/hash.h"
#include "core/action.h"
#include "store/postgres/pool.h"

/* How long a row counts as locked after a lock timeout. */
enum { BELIEVED_MS = 5000 };

static uint64_t hash_of(enum hf_row_kind kind, struct hf_bytes tenant, struct hf_bytes name)
{
    const struct hf_sipkey key = { (uint64_t)kind, 0 };
    uint64_t hash = hf_siphash(&key, tenant, name);
    return hash ? hash : 1;
}

/* The request's key, or its numbered client. */
static uint64_t key_of(const struct hf_request *q)
{
    if (q->client.size > 0)
        return hash_of(HF_ROW_CLIENT, q->tenant, q->client);
    return q->key.size > 0 ? hash_of(HF_ROW_CLAIM, q->tenant, q->key) : 0;
}

/* The row that the request needs a lock on, besides its key; 0: none. For an entry: its guard. */
static uint64_t target_of(const struct hf_request *q)
{
    const struct hf_action_info *action = hf_action_of(q->action);
    enum hf_row_kind kind = action->row == HF_ROW_ENTRY ? HF_ROW_GUARD : action->row;
    if (action->reads || kind == HF_ROW_CLAIM || !action->row_name)
        return 0;
    return hash_of(kind, q->tenant, hf_action_bytes(q, action->row_name));
}

/* The identity that the request records under a guard; 0: it records none. */
static uint64_t identity_of(const struct hf_request *q)
{
    const struct hf_action_info *action = hf_action_of(q->action);
    if (action->reads || action->row != HF_ROW_ENTRY)
        return 0;
    const struct hf_sipkey key = { HF_ROW_ENTRY, target_of(q) };
    uint64_t hash = hf_siphash(&key, q->identity.guard, q->identity.identity);
    return hash ? hash : 1;
}

/* Recording only reads the guard: two such requests conflict at the identity. */
unsigned hf_pool_row(const struct hf_request *q)
{
    const struct hf_action_info *action = hf_action_of(q->action);
    uint64_t hash = identity_of(q) ? identity_of(q) : target_of(q);
    if (action->row == HF_ROW_CLAIM && !action->reads)
        hash = key_of(q);
    return (unsigned)(hash % HF_POOL_SLOTS);
}

static struct hf_pool_stuck *find(struct hf_pool *r, uint64_t hash, int64_t now)
{
    for (unsigned i = 0; i < HF_POOL_STUCK && hash; i++)
        if (r->stuck[i].hash == hash && r->stuck[i].until_ms > now)
            return &r->stuck[i];
    return NULL;
}

bool hf_pool_is_stuck(struct hf_pool *r, const struct hf_op *op)
{
    int64_t now;
    if (hf_action_reads(op->request->action)) /* reads take no lock */
        return false;
    if (r->stuck_until_ms == 0 || (now = hf_clock_monotonic_ms()) >= r->stuck_until_ms)
        return false;
    return find(r, target_of(op->request), now) || find(r, key_of(op->request), now) ||
           find(r, identity_of(op->request), now);
}

static void learn(struct hf_pool *r, uint64_t hash, int64_t now)
{
    struct hf_pool_stuck *place = find(r, hash, now);
    if (!hash)
        return;
    for (unsigned i = 0; i < HF_POOL_STUCK && !place; i++)
        if (r->stuck[i].until_ms <= now)
            place = &r->stuck[i];
    if (!place) /* replace one: the next timeout finds it again */
        place = &r->stuck[hash % HF_POOL_STUCK];
    *place = (struct hf_pool_stuck){ hash, now + BELIEVED_MS };
    r->stuck_until_ms = now + BELIEVED_MS;
}

void hf_pool_stuck_learn(struct hf_pool *r, const struct hf_op *op, bool by_guard)
{
    int64_t now = hf_clock_monotonic_ms();
    uint64_t identity = by_guard ? 0 : identity_of(op->request);
    bool is_new;
    pthread_mutex_lock(&r->lock);
    is_new = r->stuck_until_ms <= now;
    learn(r, identity ? identity : target_of(op->request), now);
    learn(r, key_of(op->request), now);
    pthread_mutex_unlock(&r->lock);
    if (is_new)
        hf_pool_note(r, 1,
                     "lock timeout: another transaction keeps a row locked. Requests that "
                     "need the row wait, and fail after some seconds. doc/POSTGRES.md, "
                     "\"Rows that stay locked\", has a query that finds the transaction");
}

void hf_pool_stuck_forget(struct hf_pool *r, const struct hf_op *op)
{
    pthread_mutex_lock(&r->lock);
    for (unsigned i = 0; i < HF_POOL_STUCK; i++)
        if (r->stuck[i].hash == target_of(op->request) || r->stuck[i].hash == key_of(op->request) ||
            r->stuck[i].hash == identity_of(op->request))
            r->stuck[i] = (struct hf_pool_stuck){ .hash = 0 };
    pthread_mutex_unlock(&r->lock);
}
