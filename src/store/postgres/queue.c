/* The queue of the store on PostgreSQL: waiting operations by tenant, in order, and which worker
 * takes them.
 *
 * Tenants take turns. A tenant with more than HF_POOL_SMALL waiting operations is a large one.
 * While there is more than one tenant:
 *
 *   - A batch serves either large or small tenants, in turns if both wait, so that few operations
 *     do not wait for the commit of many. It has at most HF_POOL_SHARE operations of each tenant,
 *     so that no batch is long.
 *   - All workers but one may serve large tenants. They do not count as busy for small tenants,
 *     whose operations start at once.
 *
 * A tenant that is alone gets full batches and every worker. Where commits wait for standbys, the
 * last free worker takes only reads; and while the standbys are away, a batch has only reads or
 * only writes. The operations of a tenant are taken in the order of submission. If one is skipped,
 * later ones with its order key (hf_op) wait too. */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "core/action.h"
#include "store/postgres/pool.h"

/* ---- The parts of tenants ---- */

static uint64_t hash_of(const struct hf_pool *r, struct hf_bytes tenant)
{
    const struct hf_sipkey key = { hf_get64(r->shared.id_key) ^ HF_APPLY,
                                   hf_get64(r->shared.id_key + 8) };
    uint64_t hash = hf_siphash(&key, tenant, hf_mem(NULL, 0));
    return hash ? hash : 1;
}

void hf_pool_queue_init(struct hf_pool_queue *q)
{
    for (size_t i = 0; i < HF_POOL_PARTS; i++) {
        q->parts[i].chain = q->unused;
        q->unused = &q->parts[i];
    }
}

static struct hf_pool_part **bucket_of(struct hf_pool_queue *q, uint64_t hash)
{
    return &q->buckets[hash % HF_POOL_PART_BUCKETS];
}

/* The part begins to wait, after all others. */
static void ring_add(struct hf_pool_queue *q, struct hf_pool_part *part)
{
    part->end = &part->first;
    if (q->turn) {
        part->next = q->turn;
        part->prev = q->turn->prev;
        part->prev->next = part->next->prev = part;
    } else {
        q->turn = part->next = part->prev = part;
    }
    q->waiting++;
}

/* No operation of the part waits any more. */
static void ring_remove(struct hf_pool_queue *q, struct hf_pool_part *part)
{
    part->prev->next = part->next;
    part->next->prev = part->prev;
    if (q->turn == part)
        q->turn = part->next == part ? NULL : part->next;
    q->waiting--;
    if (part == &q->rest)
        return;
    struct hf_pool_part **at = bucket_of(q, part->hash);
    while (*at != part)
        at = &(*at)->chain;
    *at = part->chain;
    part->chain = q->unused;
    q->unused = part;
}

/* The tenant's part. If more tenants wait than there are parts, the others share `rest` until it is
 * empty: no tenant has operations in two parts. */
static struct hf_pool_part *part_of(struct hf_pool_queue *q, uint64_t hash)
{
    struct hf_pool_part **bucket = bucket_of(q, hash), *part = *bucket;
    while (part && part->hash != hash)
        part = part->chain;
    if (part)
        return part;
    part = q->rest.queued > 0 ? &q->rest : q->unused ? q->unused : &q->rest;
    if (part != &q->rest) {
        q->unused = part->chain;
        part->hash = hash;
        part->chain = *bucket;
        *bucket = part;
    }
    if (part->queued == 0)
        ring_add(q, part);
    return part;
}

void hf_pool_queue_add(struct hf_pool *r, struct hf_op *first, int64_t now)
{
    struct hf_pool_queue *q = &r->queue;
    while (first) { /* the operations of one tenant at a time */
        struct hf_op *last = first, *next;
        size_t count = 1;
        while (last->next && hf_bytes_equal(last->next->request->tenant, first->request->tenant)) {
            last = last->next;
            count++;
        }
        next = last->next;
        last->next = NULL;
        uint64_t hash = hash_of(r, first->request->tenant);
        if (q->tenant && q->tenant != hash)
            q->mixed_until_ms = now + HF_POOL_MIXED_MS;
        q->tenant = hash;
        struct hf_pool_part *part = part_of(q, hash);
        *part->end = first;
        part->end = &last->next;
        part->queued += count;
        r->queued += count;
        first = next;
    }
}

bool hf_pool_queue_mixed(const struct hf_pool *r, int64_t now)
{
    return now < r->queue.mixed_until_ms;
}

static bool is_large(const struct hf_pool_part *part)
{
    return part->queued > HF_POOL_SMALL;
}

/* ---- Taking ---- */

/* How much memory a batch may need, estimated from its requests and from a fraction of what may be
 * stored for them: a claim's response or a guard's result is read with its row, and few are of the
 * largest size. In the worst case a batch reads four times as much. */
enum { BYTES_MAX = 64 << 20 };

static size_t weight(const struct hf_request *q)
{
    const struct hf_action_info *action = hf_action_of(q->action);
    return action->weight + hf_action_bytes(q, action->payload).size;
}

/* May this worker have the operation now? */
static bool may_take(struct hf_pool_worker *w, const struct hf_op *op)
{
    const struct hf_pool_slot *slot = hf_pool_order_slot(w->pool, op);
    return !slot || slot->count == 0 || slot->worker == w->index;
}

/* Does another worker's batch need the same row? Two such batches would wait for each other, or one
 * would start again. Do not wait for a slow batch. */
static bool is_row_busy(const struct hf_pool_worker *w, const struct hf_op *op)
{
    const struct hf_pool_slot *row = hf_pool_row_slot(w->pool, op);
    if (!row || row->count == 0 || row->worker == w->index)
        return false;
    return hf_clock_monotonic_ms() - w->pool->workers[row->worker].begun_ms <= HF_POOL_SLOW_MS;
}

/* Reserve the operation's order key and row for this worker. */
static void slots_take(struct hf_pool_worker *w, const struct hf_op *op)
{
    struct hf_pool_slot *const slots[] = { hf_pool_order_slot(w->pool, op),
                                           hf_pool_row_slot(w->pool, op) };
    for (int i = 0; i < 2; i++)
        if (slots[i]) {
            slots[i]->count++;
            slots[i]->worker = w->index;
        }
}

void hf_pool_slots_give_back(struct hf_pool *r, const struct hf_op *op)
{
    struct hf_pool_slot *const slots[] = { hf_pool_order_slot(r, op), hf_pool_row_slot(r, op) };
    for (int i = 0; i < 2; i++)
        if (slots[i])
            slots[i]->count--;
}

/* Order keys of skipped operations: later operations with the same order key must wait too. */
struct passed {
    bool any;
    bool orders[HF_POOL_SLOTS];
};

static void pass_over(struct passed *passed, struct hf_pool *r, const struct hf_op *op)
{
    const struct hf_pool_slot *slot = hf_pool_order_slot(r, op);
    if (!slot)
        return;
    if (!passed->any)
        memset(passed->orders, 0, sizeof passed->orders);
    passed->any = passed->orders[slot - r->orders] = true;
}

static bool is_passed(const struct passed *passed, struct hf_pool *r, const struct hf_op *op)
{
    const struct hf_pool_slot *slot = passed->any ? hf_pool_order_slot(r, op) : NULL;
    return slot && passed->orders[slot - r->orders];
}

/* Must the operation wait until fewer of its kind are in progress? Operations that failed once run
 * alone and may wait for a locked row: they never get all workers. Of operations whose row is known
 * to be locked, one runs at a time. */
static bool must_wait(struct hf_pool *r, const struct hf_op *op, bool stuck)
{
    return (stuck && r->stuck_busy) || (hf_pool_tried(op) && r->tried_busy >= HF_POOL_BUSY);
}

/* A batch in the making. */
struct taking {
    struct hf_pool_worker *w;
    bool apart;         /* a batch has only reads, or no reads */
    bool asks, changes; /* it has such operations, or must not have the others */
    bool mixed;         /* there is more than one tenant */
    bool crowded;       /* enough workers are busy */
    bool crowded_small; /* also for small tenants */
    size_t bytes;
    struct passed passed;
};

/* Is the operation left to another batch? */
static bool is_left(const struct taking *t, const struct hf_op *op)
{
    return t->apart && (hf_action_reads(op->request->action) ? t->changes : t->asks);
}

static bool may_serve(const struct taking *t, const struct hf_pool_part *part)
{
    if (!t->mixed)
        return !t->crowded;
    if (!is_large(part))
        return !t->crowded_small;
    return !t->crowded && t->w->pool->queue.bulk_busy < HF_POOL_WORKERS - 1;
}

/* Take a tenant's operations in order, as many as the batch may have. False: the batch is
 * complete. */
static bool part_take(struct taking *t, struct hf_pool_part *part)
{
    struct hf_pool_worker *w = t->w;
    struct hf_pool *r = w->pool;
    struct hf_op **at = &part->first;
    size_t room = HF_PG_BATCH_MAX - w->count, bytes = BYTES_MAX - t->bytes, taken = 0, used = 0;
    if (t->mixed && room > HF_POOL_SHARE)
        room = HF_POOL_SHARE;
    if (t->mixed && bytes > BYTES_MAX / 4)
        bytes = BYTES_MAX / 4;
    bool alone = false;
    while (*at && taken < room && used < bytes && !alone) {
        struct hf_op *op = *at;
        bool stuck = hf_pool_is_stuck(r, op);
        bool later = must_wait(r, op, stuck) || (stuck && w->count > 0) || is_row_busy(w, op) ||
                     is_left(t, op);
        if (later)
            pass_over(&t->passed, r, op);
        if (later || !may_take(w, op) || is_passed(&t->passed, r, op)) {
            at = &op->next;
            continue;
        }
        alone = stuck || hf_pool_alone(op);
        if (hf_pool_alone(op) && w->count > 0)
            break; /* operations behind it may have the same order key */
        *at = op->next;
        if (part->end == &op->next)
            part->end = at;
        t->asks = hf_action_reads(op->request->action);
        t->changes = !t->asks;
        slots_take(w, op);
        w->ops[w->count++] = op;
        taken++;
        used += weight(op->request);
        w->stuck = stuck;
        w->tried = hf_pool_tried(op);
    }
    t->bytes += used;
    part->queued -= taken;
    w->bulk = w->bulk || (taken > 0 && part->queued + taken > HF_POOL_SMALL);
    return !(alone && taken > 0) && w->count < HF_PG_BATCH_MAX && t->bytes < BYTES_MAX;
}

enum sort { SMALL, LARGE, ANY };

/* Take from all tenants of a sort, in turn. */
static void sort_take(struct taking *t, enum sort sort)
{
    struct hf_pool_queue *q = &t->w->pool->queue;
    struct hf_pool_part *part = q->turn, *served = NULL;
    bool more = true;
    for (size_t i = q->waiting; i > 0 && more; i--) {
        struct hf_pool_part *next = part->next;
        size_t before = t->w->count;
        if (may_serve(t, part) && (sort == ANY || is_large(part) == (sort == LARGE)))
            more = part_take(t, part);
        if (t->w->count > before && !served)
            served = next;
        if (part->queued == 0)
            ring_remove(q, part);
        part = next;
    }
    if (served && served->queued > 0)
        q->turn = served;
}

static void batch_take(struct taking *t)
{
    struct hf_pool_worker *w = t->w;
    struct hf_pool *r = w->pool;
    struct hf_pool_queue *q = &r->queue;
    bool small = false, large = false;
    const struct hf_pool_part *part = q->turn;
    for (size_t i = q->waiting; i > 0; i--, part = part->next)
        if (may_serve(t, part)) {
            large = large || is_large(part);
            small = small || !is_large(part);
        }
    w->count = 0;
    t->bytes = 0;
    t->passed.any = false;
    if (t->mixed && small && large) {
        sort_take(t, q->large_next ? LARGE : SMALL);
        if (w->count == 0)
            sort_take(t, q->large_next ? SMALL : LARGE);
        q->large_next = !q->large_next;
    } else {
        sort_take(t, ANY);
    }
    r->stuck_busy = r->stuck_busy || w->stuck;
    r->tried_busy += w->tried;
    q->bulk_busy += w->bulk;
    r->queued -= w->count;
    r->in_flight += w->count;
}

/* Is there a worker with a connection that is idle or about to be? A worker without a connection
 * wakes that worker and lets it go first. */
static bool is_better_one(const struct hf_pool_worker *w)
{
    bool found = false;
    for (unsigned i = 0; i < HF_POOL_WORKERS && !w->session.conn.pg; i++) {
        struct hf_pool_worker *other = &w->pool->workers[i];
        if ((other->begun_ms && !other->answering) ||
            !other->session.conn.pg) /* a busy worker may change it */
            continue;
        found = true;
        if (other->idle)
            pthread_cond_signal(&other->wake);
    }
    return found;
}

/* Do commits seem to wait for a standby that is down? */
static bool is_standby_slow(struct hf_pool *r)
{
    enum { SLOW_MS = 1000 };
    int64_t before = hf_clock_monotonic_ms() - SLOW_MS;
    for (unsigned i = 0; i < HF_POOL_WORKERS; i++)
        if (r->workers[i].begun_ms && r->workers[i].begun_ms < before)
            return true;
    return hf_pool_is_silent(r);
}

/* Are enough workers busy? */
static void look_round(struct taking *t)
{
    struct hf_pool *r = t->w->pool;
    unsigned most = r->queued >= HF_POOL_FULL ? HF_POOL_BUSY : 1;
    unsigned busy = r->busy, small = busy;
    t->mixed = hf_pool_queue_mixed(r, hf_clock_monotonic_ms());
    if (r->busy >= most) {
        int64_t now = hf_clock_monotonic_ms();
        for (unsigned i = 0; i < HF_POOL_WORKERS; i++) {
            const struct hf_pool_worker *other = &r->workers[i];
            bool slow = other->begun_ms && now - other->begun_ms > HF_POOL_SLOW_MS;
            busy -= slow;
            small -= slow || (other->begun_ms && other->bulk);
        }
    }
    t->crowded = busy >= most;
    t->crowded_small = small >= most;
    /* Commits wait as long as a standby is down. Meanwhile, confirmed rows can still be read: one
     * worker is kept for reads, and no batch has both reads and writes. */
    bool waits = atomic_load(&r->shared.replicates);
    t->asks = waits && r->busy == HF_POOL_WORKERS - 1;
    t->apart = t->asks || (waits && is_standby_slow(r));
    t->changes = false;
}

/* Is there something in the queue that this worker may take? */
static bool has_some(struct taking *t)
{
    struct hf_pool *r = t->w->pool;
    const struct hf_pool_part *part = r->queue.turn;
    for (size_t i = r->queue.waiting; i > 0; i--, part = part->next)
        for (const struct hf_op *op = may_serve(t, part) ? part->first : NULL; op; op = op->next)
            if (may_take(t->w, op) && !is_row_busy(t->w, op) && !is_left(t, op) &&
                !must_wait(r, op, r->stuck_busy && hf_pool_is_stuck(r, op)))
                return true;
    return false;
}

bool hf_pool_take(struct hf_pool_worker *w)
{
    struct taking t; /* look_round and batch_take set the other members */
    t.w = w;
    if (w->pool->queued == 0 || is_better_one(w))
        return false;
    look_round(&t);
    if ((t.crowded && t.crowded_small) || !has_some(&t))
        return false;
    batch_take(&t);
    return true;
}

void hf_pool_give_back(struct hf_pool_worker *w)
{
    struct hf_pool *r = w->pool;
    for (size_t i = w->count; i > 0; i--) {
        struct hf_op *op = w->ops[i - 1];
        struct hf_pool_part *part = part_of(&r->queue, hash_of(r, op->request->tenant));
        hf_pool_slots_give_back(r, op);
        op->needs |= 2;
        op->next = part->first;
        if (!part->first)
            part->end = &op->next;
        part->first = op;
        part->queued++;
    }
    r->queued += w->count;
    r->in_flight -= w->count;
    w->count = 0;
}
