/* Lists: pages of records, newest first, copied under the lock and shown when durable. */
#include "base/bytes.h"
#include "base/id.h"
#include "core/claim.h"
#include "store/journal/writer.h"
#include "store/record/page.h"

#include <time.h>

/* The most records that a call looks at, and its time limit, so that a filter with few matches, or
 * compressed records, cannot hold the lock for long: the page then ends early, with a cursor. The
 * time limit is shorter while requests wait for the lock. */
enum { LOOK_MAX = 20000, LOOK_US = 20000, LOOK_WANTED_US = 1000 };

struct listing {
    struct hf_paging to;
    struct hf_writer *w;
    struct hf_journal *j;
    size_t looked;
    uint64_t begun_ns; /* when it got the lock */
    bool wanted;       /* it ended early because requests wait for the lock */
};

static uint64_t held_ns(const struct listing *p)
{
    return p->j->io->monotonic_ns(p->j->io->ctx) - p->begun_ns;
}

/* Is the page full, or the time under the lock used up? */
static bool enough(struct listing *p)
{
    enum { CLOCK_EVERY = 64 };
    hf_segments_tick(&p->j->segments);
    if (p->to.page->count == p->to.limit || p->looked == LOOK_MAX)
        return true;
    if (++p->looked % CLOCK_EVERY != 0)
        return false;
    p->wanted = atomic_load_explicit(&p->w->wanted, memory_order_relaxed) > 0;
    return held_ns(p) > UINT64_C(1000) * (p->wanted ? LOOK_WANTED_US : LOOK_US);
}

/* Without the lock. A client that lists calls again at once and would get the lock before a waiting
 * request wakes up. So pause for as long as the list had the lock. */
static void stand_back(uint64_t ns)
{
    struct timespec pause = { .tv_sec = (time_t)(ns / 1000000000),
                              .tv_nsec = (long)(ns % 1000000000) };
    nanosleep(&pause, NULL);
}

/* ---- Holds ---- */

/* The ordinal to begin with for holds placed before `to`: ordinals rise with time. */
static uint64_t begin_before(struct listing *p, uint64_t highest, hf_time to)
{
    uint64_t lo = 0, hi = highest; /* placed_at(lo) < to, or lo is 0 */
    struct hf_hold hold;
    while (lo < hi) {
        uint64_t mid = hi - (hi - lo) / 2;
        /* An unreadable hold may have been placed before: beginning too late in time only takes
         * longer. */
        if (hf_journal_hold(p->j, mid, &hold) != 0 || hold.placed_at < to)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* The next hold to look at: for a resource, the previous one on that resource, if known. */
static uint64_t hold_next(const struct hf_query *q, const struct hf_hold *hold, uint64_t ordinal)
{
    bool chained = hold && q->resource.size > 0 && hf_bytes_equal(hold->resource, q->resource) &&
                   hf_bytes_equal(hold->tenant, q->tenant);
    return chained ? hold->previous : ordinal - 1;
}

/* An unreadable record is skipped, so that it does not hide the others; the journal counts and logs
 * it. If it is unreadable only for now, because memory is short or holds.idx is being rebuilt, the
 * list fails and the caller retries. */
static void list_holds(struct listing *p)
{
    const struct hf_query *q = p->to.query;
    uint64_t ordinal = p->j->tables.holds.highest;
    if (q->resource.size > 0) {
        struct hf_resource resource;
        struct hf_scoped name = { q->tenant, q->resource };
        if (p->j->view.resource(p->j->view.ctx, name, &resource) != HF_FOUND)
            return;
        ordinal = resource.newest;
    } else if (q->to && !q->cursor) {
        ordinal = begin_before(p, ordinal, q->to);
    }
    if (q->cursor && q->cursor - 1 < ordinal)
        ordinal = q->cursor - 1;
    while (ordinal > 0 && p->to.status == HF_OK) {
        struct hf_hold hold;
        if (enough(p)) {
            p->to.page->next_cursor = ordinal + 1;
            return;
        }
        int error = hf_journal_hold(p->j, ordinal, &hold);
        bool found = error == 0;
        if (error && hf_journal_hold_awaited(p->j, ordinal, error))
            p->to.status = HF_STORAGE_FAILURE;
        if (found && hold.placed_at < q->from)
            return;
        if (found && hf_paging_wants(q, &hold))
            hf_paging_add(&p->to, &hold);
        ordinal = hold_next(q, found ? &hold : NULL, ordinal);
    }
}

/* ---- Rows in an order ---- */

static void add_node(struct listing *p, const struct hf_node *node, hf_time now)
{
    struct hf_row row;
    if (!hf_bytes_equal(hf_node_tenant(node), p->to.query->tenant))
        return;
    if (!hf_node_row(node, &row)) {
        p->to.status = HF_STORAGE_FAILURE;
        return;
    }
    switch (p->to.query->kind) {
    case HF_LIST_RESOURCES: hf_paging_add(&p->to, &row.resource); break;
    case HF_LIST_GUARDS: hf_paging_add(&p->to, &row.guard); break;
    case HF_LIST_OUTBOX: hf_paging_add(&p->to, &row.outbox); break;
    case HF_LIST_ENTRIES:
        if (now < row.entry.expires_at)
            hf_paging_add(&p->to, &row.entry);
        break;
    case HF_LIST_HOLDS:
    case HF_LIST_CLAIMS: break;
    }
}

static void list_order(struct listing *p, const struct hf_order *o)
{
    hf_time now = hf_journal_now(p->j);
    struct hf_order_at at =
        p->to.query->cursor ? hf_order_find(o, p->to.query->cursor) : hf_order_end(o);
    for (const struct hf_order_item *item;
         p->to.status == HF_OK && (item = hf_order_back(o, &at)) != NULL;) {
        if (enough(p) || hf_paging_is_full(&p->to)) {
            p->to.page->next_cursor = item->stamp + 1;
            return;
        }
        add_node(p, item->node, now);
    }
}

/* Entries only in memory come first, then those in the journal, whose cursors are lower. So a list
 * that is read across a restart, which loses the first, still has all of the second. */
static void list_entries(struct listing *p, const struct hf_order entries[2])
{
    if (p->to.query->cursor == 0 || p->to.query->cursor > HF_STAMP_VOLATILE)
        list_order(p, &entries[1]);
    if (p->to.page->next_cursor == 0)
        list_order(p, &entries[0]);
}

/* ---- Claims ---- */

/* The place after the claims that were begun before `to`: fences rise with time. */
static struct hf_order_at claims_before(const struct hf_order *o, hf_time to)
{
    uint64_t lo = 0, hi = o->newest + 1; /* every claim with a fence below lo was begun before */
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        struct hf_order_at at = hf_order_find(o, mid);
        const struct hf_order_item *item = hf_order_next(o, &at);
        struct hf_row row;
        if (item && hf_node_row(item->node, &row) && row.claim.begun_at < to)
            lo = item->stamp + 1;
        else
            hi = mid;
    }
    return hf_order_find(o, lo);
}

static void list_claims(struct listing *p)
{
    const struct hf_query *q = p->to.query;
    const struct hf_claims *claims = &p->j->tables.rows.claims;
    const struct hf_order *o =
        hf_claim_state_is_open(q->claim_state) ? &claims->open : &claims->all;
    hf_time now = hf_journal_now(p->j);
    struct hf_order_at at = q->cursor ? hf_order_find(o, q->cursor)
                            : q->to   ? claims_before(o, q->to)
                                      : hf_order_end(o);
    for (const struct hf_order_item *item;
         p->to.status == HF_OK && (item = hf_order_back(o, &at)) != NULL;) {
        struct hf_row row;
        if (enough(p) || hf_paging_is_full(&p->to)) {
            p->to.page->next_cursor = item->stamp + 1;
            return;
        }
        if (!q->all_tenants && !hf_bytes_equal(hf_node_tenant(item->node), q->tenant))
            continue;
        if (!hf_node_row(item->node, &row)) {
            p->to.status = HF_STORAGE_FAILURE;
            return;
        }
        if (row.claim.begun_at < q->from)
            return;
        bool alive = hf_claim_alive(&row.claim, now);
        row.claim.state = hf_claim_state_at(&row.claim, now);
        if (alive && hf_paging_wants_claim(q, &row.claim))
            hf_paging_add(&p->to, &row.claim);
    }
}

static void list_kind(struct listing *p)
{
    struct hf_rows *rows = &p->j->tables.rows;
    struct hf_image_key key = { .name = p->to.query->name };
    const struct hf_node *guard;
    switch (p->to.query->kind) {
    case HF_LIST_HOLDS: list_holds(p); break;
    case HF_LIST_RESOURCES: list_order(p, &rows->resources); break;
    case HF_LIST_GUARDS: list_order(p, &rows->guards); break;
    case HF_LIST_OUTBOX: list_order(p, &rows->outbox); break;
    case HF_LIST_CLAIMS: list_claims(p); break;
    case HF_LIST_ENTRIES:
        guard = hf_rows_find(rows, HF_ROW_GUARD, p->to.query->tenant, &key);
        if (guard)
            list_entries(p, guard->entries);
        else
            p->to.status = HF_NOT_KNOWN;
        break;
    }
}

enum hf_status hf_writer_list(struct hf_store *store, const struct hf_query *query,
                              struct hf_page *page)
{
    struct hf_writer *w = hf_writer_of(store);
    struct listing p = { .w = w, .j = w->journal };
    struct hf_query inner = *query;
    const struct hf_sipkey *key = &w->journal->keys.id;
    inner.cursor = hf_cursor_read(key, query->tenant, query->cursor);
    enum hf_status st = hf_paging_begin(&p.to, &inner, page);
    if (st != HF_OK)
        return st;
    pthread_mutex_lock(&w->lock);
    p.begun_ns = w->journal->io->monotonic_ns(w->journal->io->ctx);
    struct hf_cause cause = { .fault = w->failed ? HF_FAULT_STOPPED : HF_FAULT_UNREADABLE };
    if (w->failed)
        p.to.status = HF_STORAGE_FAILURE;
    else
        list_kind(&p);
    uint64_t held = held_ns(&p);
    const struct hf_journal *j = p.j;
    uint64_t needs = j->gather.size ? j->gather.base + 1 : j->flight.size ? j->flight.base + 1 : 0;
    if (p.to.status != HF_STORAGE_FAILURE || !w->failed) {
        st = hf_writer_wait(w, needs);
        if (st != HF_OK)
            p.to.status = st;
    }
    pthread_mutex_unlock(&w->lock);
    if (p.wanted)
        stand_back(held);
    page->next_cursor = hf_cursor_make(key, query->tenant, page->next_cursor);
    return hf_paging_end(&p.to, &cause);
}

static void claim_stats(const struct hf_claims *c, struct hf_stats *out)
{
    out->claims_started = hf_claims_count(c, HF_CLAIMS_RUNNING);
    out->claims_unknown = hf_claims_count(c, HF_CLAIMS_LAPSED);
    out->claims_completed = c->settled[HF_CLAIM_COMPLETED];
    out->claims_failed = c->settled[HF_CLAIM_FAILED];
    out->claims_retryable = c->settled[HF_CLAIM_RETRYABLE];
    out->claims_unknown_since = hf_claims_lapsed_since(c);
}

void hf_writer_stats(struct hf_store *store, bool applying, struct hf_stats *out)
{
    struct hf_writer *w = hf_writer_of(store);
    if (!applying)
        pthread_mutex_lock(&w->lock);
    struct hf_journal *j = w->journal;
    const struct hf_tables *t = &j->tables;
    *out = j->stats;
    out->tokens = t->tokens.used;
    out->holds = t->holds.highest;
    out->holds_live = hf_live_count(&t->live);
    out->resources = t->rows.count[HF_ROW_RESOURCE];
    out->guards = t->rows.count[HF_ROW_GUARD];
    out->entries = t->rows.count[HF_ROW_ENTRY];
    out->claims = t->rows.count[HF_ROW_CLAIM];
    out->clients = t->rows.count[HF_ROW_CLIENT];
    claim_stats(&t->rows.claims, out);
    out->registers = t->rows.count[HF_ROW_REGISTER] - t->rows.left;
    out->outbox = t->rows.count[HF_ROW_OUTBOX];
    out->values = t->rows.count[HF_ROW_VALUE];
    out->journal_bytes = j->end;
    out->memory_bytes = hf_journal_memory(j);
    out->memory_token_bytes = t->tokens.bytes;
    out->memory_used_bytes = hf_journal_used(j);
    out->memory_max_bytes = j->memory_max;
    out->memory_full = hf_journal_is_full(j);
    out->tenants = t->rows.owners.map.used + (hf_owner_records(&t->rows.owners.list[0]) > 0);
    out->now = hf_journal_now(j);
    out->clock_jumps = j->clock.jumps;
    hf_journal_blocked(j, out);
    out->verify_bytes = j->verify.stop;
    out->verified_bytes = j->verify.state == HF_VERIFY_GOOD ? j->verify.stop : j->verify.position;
    out->journal_damaged = j->verify.state == HF_VERIFY_BAD;
    if (!applying)
        pthread_mutex_unlock(&w->lock);
}
