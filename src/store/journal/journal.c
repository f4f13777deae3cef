#include "store/journal/journal.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/id.h"
#include "core/action.h"
#include "core/digest.h"
#include "store/journal/maintain.h"
#include "store/record/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* START_LEAST: from this size on, an early start of the disk write pays off. */
enum { START_LEAST = 12288 };
/* When to retry an overdue hold that is unreadable; or whose part of holds.idx is being rebuilt. */
enum { UNREADABLE_MS = 60000, AWAITED_MS = 1000 };

void hf_journal_note(struct hf_journal *j, int level, const char *format, ...)
{
    char line[512];
    if (!j->on_note)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    j->on_note(j->arg, level, line);
}

void hf_journal_note_head(struct hf_journal *j)
{
    char hex[2 * HF_DIGEST_SIZE + 1];
    j->head_noted_ns = j->io->monotonic_ns(j->io->ctx);
    if (!j->on_note)
        return;
    for (size_t i = 0; i < HF_DIGEST_SIZE; i++)
        snprintf(hex + 2 * i, 3, "%02x", j->chain[i]);
    hf_journal_note(j, 0, "chain head: %s after batch %llu", hex,
                    (unsigned long long)(j->next_sequence - 1));
}

/* ---- Gathering ---- */

/* Read the clocks: the boot clock before the wall clock, and again after it if the difference may
 * matter, because this thread may be delayed between the two. Within the same millisecond of the
 * wall clock there is nothing to do. */
static void clock_read(struct hf_journal *j)
{
    enum { MATTERS_MS = 100 };
    const struct hf_io *io = j->io;
    struct hf_engine_clock *c = &j->clock;
    struct hf_engine_clock_reading r = { .committed = j->now };
    char line[HF_ENGINE_CLOCK_LINE];
    if (c->started && !c->doubted && io->wall_ms(io->ctx) == c->wall && j->now <= c->now)
        return;
    r.from = io->boot_ms(io->ctx);
    r.wall = io->wall_ms(io->ctx);
    r.to = r.wall > c->now + MATTERS_MS ? io->boot_ms(io->ctx) : r.from;
    enum hf_engine_clock_event event = hf_engine_clock_read(c, &r);
    if (event != HF_ENGINE_CLOCK_GOES && hf_engine_clock_tell(c, event, "the wall", line))
        hf_journal_note(j, event != HF_ENGINE_CLOCK_RETURNED, "%s", line);
}

hf_time hf_journal_now(struct hf_journal *j)
{
    if (j->gather.size > 0)
        return j->gather.now;
    clock_read(j);
    /* Reads return the time and write nothing: it must not run back after them either. */
    return j->clock.now;
}

/* Find where a batch with room for `need` bytes of entries can begin. */
static bool place_find(struct hf_journal *j, size_t need)
{
    const struct hf_segments *s = &j->segments;
    const struct hf_segment *g = j->active ? hf_segments_at(s, j->end) : NULL;
    if (g && g->number == j->active && g->version == HF_FORMAT_VERSION &&
        j->end + HF_BATCH_HEAD + need <= g->base + g->size) {
        j->place =
            (struct hf_place){ (size_t)(g - s->list), j->end, 0, g->base + g->size - j->end };
        return true;
    }
    g = NULL;
    for (size_t i = s->count; i > 0 && s->list[i - 1].state == HF_SEGMENT_PREPARED; i--)
        g = &s->list[i - 1];
    if (!g || HF_BLOCK + HF_BATCH_HEAD + need > g->size)
        return false;
    j->place = (struct hf_place){ (size_t)(g - s->list), g->base + HF_BLOCK, HF_BLOCK,
                                  g->size - HF_BLOCK };
    return true;
}

static bool gather_grow(struct hf_journal *j, size_t lead, size_t need)
{
    struct hf_batch *b = &j->gather;
    /* One more block: the padding that the commit adds. */
    size_t room = lead + (b->size ? b->size : HF_BATCH_HEAD) + need + HF_BLOCK;
    if (room <= b->room)
        return true;
    size_t grown = b->room ? b->room * 2 : 1 << 16;
    while (grown < room)
        grown *= 2;
    unsigned char *data = realloc(b->data, grown);
    if (!data)
        return false;
    b->data = data;
    b->room = grown;
    return true;
}

static void gather_open(struct hf_journal *j, hf_time now)
{
    const struct hf_place *p = &j->place;
    const struct hf_segment *g = &j->segments.list[p->segment];
    struct hf_batch *b = &j->gather;
    b->lead = p->lead;
    b->size = HF_BATCH_HEAD;
    b->limit = p->avail < HF_BATCH_MAX ? (size_t)p->avail : HF_BATCH_MAX;
    b->base = p->base;
    b->segment_end = g->base + g->size;
    b->segment = g->number;
    b->count = 0;
    b->now = now;
    b->file = g->writer;
    b->file_at = p->base - p->lead - g->base;
    b->head.number = g->number;
    b->head.base = g->base;
    b->head.size = g->size;
    if (j->clock.wall < now && j->stats.clock_stalls++ == 0)
        hf_journal_note(j, 1,
                        "the wall clock is behind engine time: engine time stands still until "
                        "the wall clock has caught up");
    j->now = now;
}

uint64_t hf_journal_memory(const struct hf_journal *j)
{
    return hf_tables_bytes(&j->tables) + (j->is_memory ? j->end : 0);
}

/* The size of the segment after the active one: its real size, or the planned one. */
static uint64_t next_segment_size(const struct hf_journal *j)
{
    const struct hf_segments *s = &j->segments;
    size_t i = s->count;
    while (i > 0 && s->list[i - 1].state == HF_SEGMENT_PREPARED)
        i--;
    return i < s->count ? s->list[i].size
                        : hf_segments_next_size(s, i > 0 ? s->list[i - 1].size : 0);
}

/* ---- Limits ---- */

/* This fraction of each limit is reserved for endings that take more than was owed for them. */
enum { RESERVE_PART = 16 };

/* Counts the content of the tables, not their allocated room: otherwise a limit once reached would
 * stay reached. */
uint64_t hf_journal_used(const struct hf_journal *j)
{
    return hf_tables_in_use(&j->tables) + hf_tables_owed(&j->tables) + (j->is_memory ? j->end : 0);
}

bool hf_journal_is_full(const struct hf_journal *j)
{
    return j->memory_max && hf_journal_used(j) >= j->memory_max - j->memory_max / RESERVE_PART;
}

struct limited {
    enum hf_limit limit;
    bool has_reserve;
    struct hf_owner *tenant; /* whose quota it is */
};

/* Check the tenant's quotas. Without quotas the tenant is not looked up. */
static struct limited quota_of(struct hf_journal *j, struct hf_bytes name)
{
    struct limited got = { .limit = HF_LIMIT_NONE };
    struct hf_owners *tenants = &j->tables.rows.owners;
    if (!j->tenant_memory_max && !j->tenant_records_max)
        return got;
    uint32_t place = name.size <= HF_TENANT_MAX ? hf_owners_find(tenants, name) : HF_OWNER_NONE;
    if (place == HF_OWNER_NONE)
        return got;
    struct hf_owner *tenant = &tenants->list[place];
    uint64_t memory = hf_owner_memory(tenant), records = hf_owner_records(tenant);
    if (j->tenant_memory_max && memory >= j->tenant_memory_max)
        got.limit = HF_LIMIT_TENANT_MEMORY;
    else if (j->tenant_records_max && records >= j->tenant_records_max)
        got.limit = HF_LIMIT_TENANT_RECORDS;
    if (got.limit)
        got.tenant = tenant;
    got.has_reserve = (!j->tenant_memory_max ||
                       memory < j->tenant_memory_max + j->tenant_memory_max / RESERVE_PART) &&
                      (!j->tenant_records_max ||
                       records <= j->tenant_records_max + j->tenant_records_max / RESERVE_PART);
    return got;
}

/* The memory limit that refuses new work of the tenant, if any. */
static struct limited memory_limited(struct hf_journal *j, struct hf_bytes tenant)
{
    struct limited got = quota_of(j, tenant);
    if (!hf_journal_is_full(j))
        return got;
    bool within = hf_journal_used(j) < j->memory_max;
    got.has_reserve = within && (!got.limit || got.has_reserve);
    got.limit = HF_LIMIT_MEMORY;
    got.tenant = NULL;
    return got;
}

/* Log that the memory limit is reached; once a minute while it refuses requests. */
static void full_note(struct hf_journal *j)
{
    const uint64_t again_ns = UINT64_C(60) * 1000000000;
    uint64_t now = j->io->monotonic_ns(j->io->ctx);
    if (j->full_noted && now - j->full_noted_ns < again_ns)
        return;
    j->full_noted = true;
    j->full_noted_ns = now;
    hf_journal_note(j, 1,
                    "memory-max is reached: %llu of %llu bytes are used, and the rest is "
                    "reserved for endings. New writes are refused; endings, and the "
                    "deletion of registers and leases, are still accepted",
                    (unsigned long long)hf_journal_used(j), (unsigned long long)j->memory_max);
}

/* The limit has refused the request. */
static void limit_tell(struct hf_journal *j, const struct limited *by)
{
    struct hf_owner *tenant = by->tenant;
    j->plan->answer.limit = by->limit;
    j->rows_wanted = true;
    if (by->limit == HF_LIMIT_MEMORY)
        full_note(j);
    if (tenant) {
        j->stats.refusals_quota++;
        tenant->refusals++;
    }
}

enum ready { READY, READY_NOT, READY_FULL, READY_WAIT };

/* Can an entry of `need` bytes be gathered now, leaving `keep` bytes free after it if the disk has
 * no room for the next segment? */
static enum ready gather_ready(struct hf_journal *j, size_t need, size_t keep)
{
    struct hf_batch *b = &j->gather;
    if (b->size > 0) {
        if (b->size + need > b->limit)
            return READY_FULL;
        if (keep && b->base + b->size + need + keep > b->segment_end)
            return READY_NOT;
        return gather_grow(j, b->lead, need) ? READY : READY_NOT;
    }
    if (!place_find(j, need + keep)) {
        bool too_big = HF_BLOCK + HF_BATCH_HEAD + need > next_segment_size(j);
        j->segment_wanted = !too_big;
        return j->out_of_space || too_big ? READY_NOT : READY_WAIT;
    }
    return gather_grow(j, j->place.lead, need) ? READY : READY_NOT;
}

/* The last sixteenth of the last segment that the disk has room for is kept for endings. */
static size_t kept_back(const struct hf_journal *j)
{
    enum { PART = 16, LEAST = 64 << 10 };
    const struct hf_segment *g =
        j->out_of_space && j->active ? hf_segments_at(&j->segments, j->end) : NULL;
    if (!g)
        return 0;
    size_t part = (size_t)(g->size / PART);
    return part < LEAST && g->size > 4 * LEAST ? LEAST : part;
}

/* Can the request be gathered now? tight: out, only because it is an ending. */
static enum ready request_ready(struct hf_journal *j, const struct hf_request *request, bool *tight)
{
    size_t need = hf_entry_need(request), keep = kept_back(j);
    enum ready ready = gather_ready(j, need, keep);
    *tight = false;
    if (ready != READY_NOT || keep == 0 || !hf_action_ends(request->action))
        return ready;
    ready = gather_ready(j, need, 0);
    *tight = ready == READY;
    return ready;
}

/* Encode the plan's entry after the gathered ones and apply it. */
static enum hf_status gather_append(struct hf_journal *j, const struct hf_entry_head *head,
                                    hf_time now)
{
    struct hf_batch *b = &j->gather;
    bool opened = b->size == 0;
    if (opened)
        gather_open(j, now);
    unsigned char *at = b->data + b->lead + b->size;
    size_t size = hf_entry_size(head, j->plan);
    HF_ASSERT(b->lead + b->size + size + HF_BLOCK <= b->room);
    size_t written = hf_entry_encode(head, j->plan, at);
    HF_ASSERT(written == size);
    struct hf_entry_view entry;
    bool parsed = hf_entry_parse(at, size, &entry);
    HF_ASSERT(parsed);
    enum hf_status st = hf_tables_apply(&j->tables, &entry, b->base + b->size, false);
    if (st != HF_OK) {
        if (opened)
            b->size = 0;
        return st;
    }
    b->size += size;
    b->count++;
    return HF_OK;
}

/* ---- Why not ---- */

/* The limit behind a file error; HF_LIMIT_NONE: it is none. error: a negative errno. */
static enum hf_limit limit_of(int error)
{
    switch (-error) {
    case ENOSPC: return HF_LIMIT_DISK;
    case EDQUOT: return HF_LIMIT_DISK_QUOTA;
    case EFBIG: return HF_LIMIT_FILE_SIZE;
    case EMFILE:
    case ENFILE: return HF_LIMIT_FILES;
    default: return HF_LIMIT_NONE;
    }
}

/* Why no entry of this size can be gathered (READY_NOT). */
static struct hf_cause unready_cause(const struct hf_journal *j, size_t need)
{
    struct hf_cause cause = { .fault = HF_FAULT_MEMORY };
    if (j->out_of_space)
        cause = (struct hf_cause){ .fault = HF_FAULT_DISK, .error = -j->prepare_error };
    else if (HF_BLOCK + HF_BATCH_HEAD + need > next_segment_size(j))
        cause.fault = HF_FAULT_TOO_LARGE;
    return cause;
}

/* ---- Taking ---- */

static bool guard_is_volatile(struct hf_journal *j, const struct hf_request *request)
{
    enum { DURABLE_AT = 9 };
    if (request->action != HF_RECORD && request->action != HF_ADMIT)
        return false;
    if (request->tenant.size > HF_TENANT_MAX)
        return false;
    struct hf_image_key key = { .name = request->identity.guard };
    const struct hf_node *node = hf_rows_find(&j->tables.rows, HF_ROW_GUARD, request->tenant, &key);
    return node && ((const unsigned char *)hf_node_image(node).data)[DURABLE_AT] == 0;
}

/* Apply the plan of a guard whose entries are only in memory. */
static enum hf_status apply_volatile(struct hf_journal *j, const struct hf_request *request)
{
    unsigned char *room = hf_plan_room(j->plan, HF_GUARD_RESULT_MAX + 16 * HF_IDENTITY_MAX);
    if (!room)
        return HF_NO_MEMORY;
    struct hf_image image = { .kind = HF_ROW_ENTRY,
                              .bytes = { room, hf_image_encode(&j->plan->rows[0], room) } };
    return hf_tables_apply_volatile(&j->tables, request->tenant, &image);
}

static void plan_fault(struct hf_journal *j, enum hf_status status)
{
    hf_plan_reset(j->plan);
    j->plan->answer.status = status == HF_NO_MEMORY ? HF_STORAGE_FAILURE : status;
    j->plan->answer.kind = HF_NO_RECORD;
}

/* The newest position that state in memory depends on, if it is not durable yet. */
static uint64_t newest_undurable(const struct hf_journal *j)
{
    if (j->gather.size > 0)
        return j->gather.base + 1;
    return j->flight.size > 0 ? j->flight.base + 1 : 0;
}

static void count_answer(struct hf_journal *j, uint64_t needs)
{
    const struct hf_plan *plan = j->plan;
    j->stats.operations++;
    if (plan->replayed) {
        j->stats.duplicates++;
        j->stats.races += needs > j->durable;
    }
    j->stats.races += plan->answer.status == HF_IN_PROGRESS;
    j->stats.collisions += plan->answer.status == HF_TOKEN_COLLISION;
    j->stats.refusals_storage += plan->answer.status == HF_STORAGE_FAILURE;
    j->stats.guard_misses += plan->missed;
}

void hf_journal_hash_request(const struct hf_journal *j, const struct hf_request *request,
                             struct hf_hashed *out)
{
    const struct hf_tables *t = &j->tables;
    hf_digest(request, out->digest);
    out->token_hash = out->resource_hash = 0;
    if (request->tenant.size > HF_TENANT_MAX)
        return;
    if (hf_action_keyed(request->action) && request->key.size > 0 &&
        request->key.size <= HF_TOKEN_MAX)
        out->token_hash = hf_tables_hash(t, (struct hf_scoped){ request->tenant, request->key });
    if (request->action == HF_PLACE_HOLD && request->place_hold.resource.size <= HF_NAME_MAX) {
        struct hf_image_key key = { .name = request->place_hold.resource };
        out->resource_hash = hf_rows_hash(&t->rows, HF_ROW_RESOURCE, request->tenant, &key);
    }
}

/* Prefetch the entry of a key that was used before, if its segment is mapped. */
static void entry_prefetch(const struct hf_journal *j, uint64_t position)
{
    enum { LINE = 64, LINES = 4 };
    const struct hf_segment *g = hf_segments_at(&j->segments, position);
    if (!g || !g->data)
        return;
    const unsigned char *at = g->data + (position - g->base);
    for (size_t i = 0; i < LINES; i++)
        __builtin_prefetch(at + i * LINE);
}

/* Each step reads what the previous step has prefetched, so all requests take one step at a
 * time. */
void hf_journal_prefetch(const struct hf_journal *j, const struct hf_hashed *hashed, size_t count)
{
    const struct hf_tables *t = &j->tables;
    for (size_t i = 0; i < count; i++) {
        if (hashed[i].token_hash)
            hf_map64_prefetch(&t->tokens, hashed[i].token_hash);
        if (hashed[i].resource_hash)
            hf_map64_prefetch(&t->rows.map, hashed[i].resource_hash);
    }
    for (size_t i = 0; i < count; i++) {
        const struct hf_slot *s =
            hashed[i].token_hash ? hf_map64_next(&t->tokens, hashed[i].token_hash, NULL) : NULL;
        if (s)
            entry_prefetch(j, s->value);
        else if (hashed[i].resource_hash)
            hf_rows_prefetch(&t->rows, hashed[i].resource_hash);
    }
    for (size_t i = 0; i < count; i++) {
        const struct hf_node *n =
            hashed[i].resource_hash ? hf_rows_peek(&t->rows, hashed[i].resource_hash) : NULL;
        if (n && n->live_root)
            __builtin_prefetch(hf_live_node(&t->live, n->live_root));
    }
    for (size_t i = 0; i < count; i++) {
        const struct hf_node *n =
            hashed[i].resource_hash ? hf_rows_peek(&t->rows, hashed[i].resource_hash) : NULL;
        if (n && n->live_root && hf_live_node(&t->live, n->live_root)->child)
            __builtin_prefetch(hf_live_node(&t->live, hf_live_node(&t->live, n->live_root)->child));
    }
}

enum hf_take hf_journal_take(struct hf_journal *j, const struct hf_request *request,
                             const struct hf_hashed *hashed, uint64_t *needs, hf_time *now)
{
    struct hf_plan *plan = j->plan;
    struct hf_command cmd = { .request = request, .rules = &j->rules };
    bool in_memory = guard_is_volatile(j, request);
    enum ready ready = READY;
    struct limited limited = { .limit = HF_LIMIT_NONE };
    bool tight = false;
    hf_rows_bury(&j->tables.rows);
    hf_segments_tick(&j->segments);
    if (!hf_action_reads(request->action)) {
        limited = memory_limited(j, request->tenant);
        if (!in_memory)
            ready = request_ready(j, request, &tight);
    }
    if (ready == READY_FULL || ready == READY_WAIT)
        return ready == READY_FULL ? HF_TAKE_FULL : HF_TAKE_WAIT;
    memcpy(cmd.digest, hashed->digest, HF_DIGEST_SIZE);
    cmd.refuse_writes = ready != READY || tight || limited.limit;
    cmd.may_end = ready == READY;
    cmd.has_reserve = limited.has_reserve && !tight;
    if (ready != READY || tight)
        limited = (struct limited){ .limit = j->out_of_space ? limit_of(j->prepare_error)
                                                             : HF_LIMIT_NONE };
    uint64_t unreadable = j->stats.records_unreadable;
    cmd.fresh_ordinal = j->tables.holds.highest + 1;
    if (hf_action_of(request->action)->draws == HF_DRAWS_ORDINAL)
        hf_id_make(&j->keys.id, cmd.fresh_ordinal, cmd.fresh_id);
    cmd.fresh_fence = j->tables.highest_fence + 1;
    *now = hf_journal_now(j);
    j->seen_position = 0;

    j->tables.hint_token = hashed->token_hash;
    j->tables.rows.hint = hashed->resource_hash;
    j->tables.rows.hint_name = request->place_hold.resource; /* used only with a hint */
    hf_decide(&j->view, &cmd, *now, plan);
    if (plan->run)
        j->run_apply(j->run_arg, request, plan, *now);

    enum hf_status st = HF_OK;
    if (in_memory && plan->row_count > 0) {
        st = apply_volatile(j, request);
    } else if (plan->row_count > 0 || plan->remember != HF_REMEMBER_NOT) {
        struct hf_entry_head head;
        hf_entry_head_fill(request, cmd.digest, plan, *now, &head);
        st = gather_append(j, &head, *now);
    }
    j->tables.hint_token = j->tables.rows.hint = 0;
    if (st != HF_OK && (request->action == HF_RECORD || request->action == HF_ADMIT)) {
        cmd.refuse_writes = true; /* a guard still has an answer: its rule */
        hf_decide(&j->view, &cmd, *now, plan);
    } else if (st != HF_OK) {
        plan_fault(j, st);
    }
    if (plan->answer.status == HF_STORAGE_FAILURE) {
        if (st != HF_OK)
            plan->answer.cause.fault = HF_FAULT_MEMORY;
        else if (!cmd.refuse_writes || j->stats.records_unreadable > unreadable)
            plan->answer.cause.fault = HF_FAULT_UNREADABLE;
        else if (limited.limit)
            limit_tell(j, &limited);
        else
            plan->answer.cause = unready_cause(j, hf_entry_need(request));
    }
    if (plan->replayed && j->seen_position)
        *needs = j->seen_position >= j->durable ? j->seen_position + 1 : 0;
    else
        *needs = newest_undurable(j);
    count_answer(j, *needs);
    return HF_TAKEN;
}

/* Append an entry of the store itself: no key, no answer. */
static enum hf_status append_own(struct hf_journal *j, enum hf_action action,
                                 struct hf_bytes tenant, hf_time now)
{
    struct hf_entry_head head = {
        .action = action, .status = HF_OK, .tenant = tenant, .recorded_at = now
    };
    return gather_append(j, &head, now);
}

size_t hf_journal_sweep(struct hf_journal *j, size_t max)
{
    static const struct hf_request biggest = { .action = HF_PLACE_HOLD };
    size_t swept = 0;
    hf_rows_bury(&j->tables.rows);
    while (swept < max) {
        hf_segments_tick(&j->segments);
        hf_time now = hf_journal_now(j);
        uint64_t ordinal = hf_live_first_overdue(&j->tables.live, now);
        struct hf_hold hold;
        if (ordinal == 0 || gather_ready(j, hf_entry_need(&biggest), 0) != READY)
            break;
        int error = hf_journal_hold(j, ordinal, &hold);
        if (error || !hf_journal_counted(j, &hold)) {
            /* It must not block the expiry of others, and may be readable later. */
            bool soon = error && hf_journal_hold_awaited(j, ordinal, error);
            if (!soon)
                hf_journal_note(j, 1,
                                "cannot read the record of an overdue hold (number %llu). Run "
                                "`holdfast audit`",
                                (unsigned long long)ordinal);
            hf_live_put_off(&j->tables.live, ordinal, now + (soon ? AWAITED_MS : UNREADABLE_MS));
            continue;
        }
        hf_decide_sweep(&j->view, &hold, now, j->plan);
        if (j->plan->row_count == 0 || append_own(j, HF_SWEEP, hold.tenant, now) != HF_OK)
            break;
        swept++;
    }
    return swept;
}

enum hf_status hf_journal_configure(struct hf_journal *j)
{
    static const struct hf_request small = { .action = HF_CONFIRM };
    const struct hf_config *in_force = &j->tables.config;
    if (j->tables.has_config && in_force->idempotency_window_ms == j->rules.idempotency_window_ms &&
        in_force->token_max_length == j->rules.token_max_length &&
        in_force->registry_strict == j->rules.registry_strict)
        return HF_OK;
    if (gather_ready(j, hf_entry_need(&small), 0) != READY)
        return HF_STORAGE_FAILURE;
    hf_plan_reset(j->plan);
    struct hf_row *row = hf_plan_row(j->plan, HF_ROW_CONFIG);
    row->config = (struct hf_config){ .idempotency_window_ms = j->rules.idempotency_window_ms,
                                      .token_max_length = j->rules.token_max_length,
                                      .registry_strict = j->rules.registry_strict,
                                      .digest_name = hf_str(HF_DIGEST_NAME),
                                      .program = hf_str(HF_VERSION) };
    return append_own(j, HF_CONFIGURE, hf_mem(NULL, 0), hf_journal_now(j));
}

/* ---- Committing ---- */

void hf_journal_seal(struct hf_journal *j)
{
    HF_ASSERT(j->gather.size > 0 && j->flight.size == 0);
    struct hf_batch spare = j->flight;
    j->flight = j->gather;
    j->gather = (struct hf_batch){ .data = spare.data, .room = spare.room };
    j->end = hf_block_up(j->flight.base + j->flight.size);
    j->flight_sequence = j->next_sequence++;
    j->sealed_highest = j->tables.holds.highest;
    if (j->flight.lead) {
        for (size_t i = 0; i < j->segments.count; i++) {
            struct hf_segment *g = &j->segments.list[i];
            if (g->number == j->active)
                hf_segments_become(&j->segments, g, HF_SEGMENT_SEALED);
            if (g->number == j->flight.segment) {
                hf_segments_become(&j->segments, g, HF_SEGMENT_ACTIVE);
                g->version = HF_FORMAT_VERSION;
            }
        }
        j->active = j->flight.segment;
    }
}

/* Write the header of the segment that this batch begins. It is durable before the batch is
 * written: then a complete first batch without its header is damage, and never left by a crash. */
static int segment_begin(struct hf_journal *j)
{
    struct hf_batch *b = &j->flight;
    b->head.first_sequence = j->flight_sequence;
    b->head.created_at = b->now;
    b->head.keys = j->keys;
    memcpy(b->head.chain, j->chain, HF_DIGEST_SIZE);
    hf_segment_head_encode(&b->head, b->data);
    int error = j->io->write(b->file, b->data, b->lead, b->file_at);
    return error ? error : j->io->sync(b->file);
}

int hf_journal_commit(struct hf_journal *j)
{
    struct hf_batch *b = &j->flight;
    unsigned char *batch = b->data + b->lead;
    struct hf_batch_head head = { .version = HF_FORMAT_VERSION,
                                  .length = (uint32_t)b->size,
                                  .count = b->count,
                                  .sequence = j->flight_sequence,
                                  .position = b->base,
                                  .now = b->now };
    memcpy(head.chain, j->chain, HF_DIGEST_SIZE);
    int error = hf_batch_seal(&head, &j->keys.seal, j->gmac, batch);
    size_t padded = (size_t)hf_block_up(b->size);
    memset(batch + b->size, 0, padded - b->size);
    if (!error && b->lead)
        error = segment_begin(j);
    if (!error)
        error = j->io->write(b->file, batch, padded, b->file_at + b->lead);
    if (error)
        return error;
    uint64_t before = j->io->monotonic_ns(j->io->ctx);
    if (padded >= START_LEAST)
        j->io->start(b->file, b->file_at + b->lead, padded);
    hf_batch_hash(&head, batch, j->chain);
    error = j->io->sync(b->file);
    j->flight_sync_ns = j->io->monotonic_ns(j->io->ctx) - before;
    return error;
}

void hf_journal_landed(struct hf_journal *j)
{
    struct hf_batch *b = &j->flight;
    j->durable = hf_block_up(b->base + b->size);
    j->head.position = j->durable;
    j->head.at = b->now;
    memcpy(j->head.hash, j->chain, HF_DIGEST_SIZE);
    j->stats.batches++;
    j->stats.syncs++;
    j->stats.sync_ns_total += j->flight_sync_ns;
    j->stats.commits_by_time[hf_histogram_place(j->flight_sync_ns, 32000)]++;
    j->stats.commits_by_size[hf_histogram_place(b->count, 1)]++;
    j->stats.batched += b->count;
    if (j->flight_sync_ns > j->stats.sync_ns_max)
        j->stats.sync_ns_max = j->flight_sync_ns;
    size_t freed_max = (size_t)b->count * 2 + 16;
    if (b->lead) {
        j->begun = (struct hf_closed){ .sequence = j->flight_sequence, .end = j->durable };
        memcpy(j->begun.chain, j->chain, HF_DIGEST_SIZE);
        hf_closed_name(&j->begun, &j->keys);
    }
    b->size = 0;
    hf_journal_expire_tokens(j, freed_max);
    if (j->snapshot_wanted)
        hf_snapshot_begin(j);
}
