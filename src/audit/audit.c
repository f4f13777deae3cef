#include "audit/audit.h"

#include "audit/check.h"
#include "audit/directory.h"
#include "audit/words.h"

#include "base/bytes.h"

#include <stdlib.h>

/* ---- When an item can be dropped ---- */

static bool use_old(const void *item, hf_time now)
{
    return ((const struct hf_audit_use *)item)->expires_at <= now;
}

static bool identity_old(const void *item, hf_time now)
{
    return ((const struct hf_audit_identity *)item)->expires_at <= now;
}

static bool close_old(const void *item, hf_time now)
{
    return ((const struct hf_audit_close *)item)->forget_at < now;
}

static void state_init(struct hf_audit_state *s)
{
    s->resource_names.item_size = sizeof(struct hf_audit_resource_item);
    s->keys = (struct hf_audit_table){ .item_size = sizeof(struct hf_audit_use), .old = use_old };
    s->identities = (struct hf_audit_table){ .item_size = sizeof(struct hf_audit_identity),
                                             .old = identity_old };
    s->guards.item_size = sizeof(struct hf_audit_guard);
    s->claims.item_size = sizeof(struct hf_audit_claim); /* kept: a key may begin again later */
    s->leases.item_size = sizeof(struct hf_audit_lease);
    s->registers.item_size = sizeof(struct hf_audit_register);
    s->clients.item_size = sizeof(struct hf_audit_numbers);
    s->close =
        (struct hf_audit_table){ .item_size = sizeof(struct hf_audit_close), .old = close_old };
    s->outbox_numbers.item_size = sizeof(struct hf_audit_number);
    s->ids.item_size = sizeof(struct hf_audit_id);
    s->stored =
        (struct hf_audit_table){ .item_size = hf_audit_stored_size, .old = hf_audit_stored_old };
    hf_sha256_init(&s->heads);
}

static void state_free(struct hf_audit_state *s)
{
    for (size_t i = 0; i < s->chunk_count; i++)
        free(s->holds[i]);
    free(s->holds);
    free(s->resources);
    hf_audit_table_free(&s->resource_names);
    hf_audit_table_free(&s->keys);
    hf_audit_table_free(&s->identities);
    hf_audit_table_free(&s->guards);
    hf_audit_table_free(&s->claims);
    hf_audit_table_free(&s->leases);
    hf_audit_table_free(&s->registers);
    hf_audit_table_free(&s->clients);
    hf_audit_table_free(&s->close);
    hf_audit_table_free(&s->outbox_numbers);
    hf_audit_table_free(&s->ids);
    hf_audit_table_free(&s->stored);
    hf_arena_free(&s->arena);
    free(s);
}

/* ---- Configuration ---- */

static void copy_short(char *out, size_t room, struct hf_bytes text)
{
    size_t n = text.size < room - 1 ? text.size : room - 1;
    const unsigned char *p = text.data;
    for (size_t i = 0; i < n; i++)
        out[i] = p[i] >= 0x20 && p[i] < 0x7f ? (char)p[i] : '?';
    out[n] = '\0';
}

static void config_list(struct hf_audit_state *s)
{
    struct hf_audit_report *r = s->report;
    r->configs_seen++;
    if (r->config_count == HF_AUDIT_CONFIGS_MAX)
        return;
    struct hf_audit_in_force *more = realloc(r->configs, (r->config_count + 1) * sizeof *more);
    if (!more) {
        s->no_memory = true;
        return;
    }
    r->configs = more;
    r->configs[r->config_count++] = s->config;
}

void hf_audit_judge_config(struct hf_audit_state *s, const struct hf_audit_entry *e,
                           const struct hf_audit_config *row)
{
    hf_audit_looked(s, HF_AUDIT_CONFIG, 1);
    if (!hf_bytes_equal(row->digest_name, hf_str(HF_DIGEST_NAME)))
        hf_audit_break(s, HF_AUDIT_CONFIG, e, "the digest is %s instead of " HF_DIGEST_NAME,
                       hf_audit_show(row->digest_name).text);
    s->config = (struct hf_audit_in_force){ .since = e->recorded_at,
                                            .position = e->position,
                                            .idempotency_window_ms = row->idempotency_window_ms,
                                            .token_max_length = row->token_max_length,
                                            .strict = row->strict };
    copy_short(s->config.digest_name, sizeof s->config.digest_name, row->digest_name);
    copy_short(s->config.program, sizeof s->config.program, row->program);
    s->config_known = true;
    config_list(s);
}

/* ---- One entry ---- */

static void judge_rows(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    for (size_t i = 0; i < e->row_count && !s->no_memory; i++) {
        const struct hf_audit_row *row = &s->rows[i];
        switch (row->kind) {
        case HF_ROW_CLAIM: hf_audit_judge_claim(s, e, &row->claim); break;
        case HF_ROW_LEASE: hf_audit_judge_lease(s, e, row); break;
        case HF_ROW_REGISTER: hf_audit_judge_register(s, e, row); break;
        case HF_ROW_OUTBOX: hf_audit_judge_outbox(s, e, &row->outbox); break;
        default: break;
        }
        if ((row->flags & ~HF_AUDIT_ROW_LEAVES) != 0 ||
            (row->flags != 0 && row->kind != HF_ROW_VALUE && row->kind != HF_ROW_HOLD &&
             row->kind != HF_ROW_LEASE))
            hf_audit_break(s, HF_AUDIT_FORMAT, e, "a %s record has flags %u",
                           hf_audit_row_name(row->kind), (unsigned)row->flags);
    }
}

static void judge_entry(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    /* A configuration applies to the rows of its own entry too, so it is judged first. */
    for (size_t i = 0; i < e->row_count; i++)
        if (s->rows[i].kind == HF_ROW_CONFIG)
            hf_audit_judge_config(s, e, &s->rows[i].config);
    if (!s->config_known && s->seen == 1)
        hf_audit_break(s, HF_AUDIT_CONFIG, e, "the first entry is not a configuration");
    hf_audit_looked(s, HF_AUDIT_TIME, 1);
    if (e->recorded_at != s->batch->now)
        hf_audit_break(s, HF_AUDIT_TIME, e, "the entry has another time than its batch, %s",
                       hf_audit_at(s->batch->now).text);
    hf_audit_judge_holds(s, e);
    if (!s->no_memory)
        hf_audit_judge_token(s, e);
    if (!s->no_memory)
        hf_audit_judge_guards(s, e);
    hf_audit_judge_effects(s, e);
    judge_rows(s, e);
    if (s->database && !s->no_memory)
        hf_audit_note_tables(s, e);
}

/* ---- One batch ---- */

/* Count something that belongs to the whole store. A report for one tenant counts that tenant's
 * entries instead. */
static void looked_store(struct hf_audit_state *s, enum hf_audit_check_id id)
{
    hf_audit_looked(s, id, s->report->has_tenant ? 0 : 1);
}

static void judge_batch(struct hf_audit_state *s, const struct hf_audit_batch *b)
{
    unsigned long long n = b->sequence;
    unsigned long long at = b->position;
    looked_store(s, HF_AUDIT_CHAIN);
    looked_store(s, HF_AUDIT_SEQUENCE);
    looked_store(s, HF_AUDIT_TIME);
    s->report->broken_batches +=
        !b->chain_fits || !b->now_fits || !b->head_fits || s->padded_sequence;
    if (!b->chain_fits)
        hf_audit_break_store(s, HF_AUDIT_CHAIN,
                             "batch %llu (position %llu, segment %llu, offset %llu) does not have "
                             "the SHA-256 of the batch before it: a batch before it was changed",
                             n, at, (unsigned long long)b->segment, (unsigned long long)b->offset);
    if (!b->head_fits)
        hf_audit_break_store(s, HF_AUDIT_CHAIN,
                             "the header of segment %llu does not match its first batch, %llu, or "
                             "the size of its file",
                             (unsigned long long)b->segment, n);
    if (!b->now_fits)
        hf_audit_break_store(s, HF_AUDIT_TIME,
                             "batch %llu (position %llu) has time %s, earlier than %s before it", n,
                             at, hf_audit_at(b->now).text, hf_audit_at(b->previous_now).text);
    /* A crash may have cut off the padding of the newest batch; only a batch with a successor was
     * surely written in full. */
    if (s->padded_sequence)
        hf_audit_break_store(
            s, HF_AUDIT_FORMAT,
            "there are bytes after batch %llu (position %llu) that belong to no batch",
            (unsigned long long)s->padded_sequence, (unsigned long long)s->padded_position);
    s->padded_sequence = b->padding_fits ? 0 : b->sequence;
    s->padded_position = b->position;
}

/* An entry of another tenant than the report's. Only its fences, outbox numbers and ordinals are
 * noted: they are numbered over the whole store, and the tenant's own numbers are judged by all
 * earlier ones. */
static void pass_over(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    if (!s->config_known && s->seen == 1)
        hf_audit_break_store(s, HF_AUDIT_CONFIG, "the first entry is not a configuration");
    for (size_t i = 0; i < e->row_count; i++) {
        const struct hf_audit_row *row = &s->rows[i];
        uint64_t fence = row->kind == HF_ROW_CLAIM   ? row->claim.fence
                         : row->kind == HF_ROW_LEASE ? row->lease.fence
                                                     : 0;
        if (fence > s->highest_fence)
            s->highest_fence = fence;
        if (row->kind == HF_ROW_OUTBOX && row->outbox.number > s->outbox_number)
            s->outbox_number = row->outbox.number;
        if (row->kind == HF_ROW_HOLD)
            hf_audit_note_ordinal(s, row->hold.ordinal);
    }
}

static void times_of(struct hf_audit_report *r, hf_time now, bool first)
{
    if (first || now < r->first_now)
        r->first_now = now;
    if (first || now > r->last_now)
        r->last_now = now;
}

/* An entry that can be read and that the report covers. */
static void take_entry(struct hf_audit_state *s, const struct hf_audit_batch *b,
                       const struct hf_audit_entry *e, bool config)
{
    struct hf_audit_report *r = s->report;
    if (!r->has_tenant || !config) {
        r->entries++;
        r->rows += e->row_count;
        r->by_action[(unsigned)e->action & 255]++;
        hf_audit_looked(s, HF_AUDIT_FORMAT, 1);
    }
    if (r->has_tenant && !config) {
        r->tenant_entries++;
        hf_audit_looked(s, HF_AUDIT_CHAIN, 1);
        hf_audit_looked(s, HF_AUDIT_SEQUENCE, 1);
        times_of(r, b->now, r->tenant_entries == 1);
    }
    if (!b->after_gap)
        judge_entry(s, e);
}

static void judge_entries(struct hf_audit_state *s, const struct hf_audit_batch *b)
{
    struct hf_audit_entry e;
    const char *problem;
    uint32_t at = 0, count = 0;
    while (!s->no_memory && hf_audit_batch_entry(b, &at, &e, &problem)) {
        count++;
        s->seen++;
        if (!problem)
            problem = hf_audit_rows_read(&e, s->rows);
        if (problem) {
            s->report->entries += !s->report->has_tenant;
            looked_store(s, HF_AUDIT_FORMAT);
            s->report->unreadable++;
            hf_audit_break_store(
                s, HF_AUDIT_FORMAT, "the entry at position %llu (batch %llu) cannot be read: %s",
                (unsigned long long)e.position, (unsigned long long)b->sequence, problem);
            continue;
        }
        bool config = hf_audit_is_config(&e, s->rows);
        if (config || hf_audit_may_name(s, e.tenant))
            take_entry(s, b, &e, config);
        else
            pass_over(s, &e);
    }
    if (count != b->entry_count)
        hf_audit_break_store(s, HF_AUDIT_FORMAT,
                             "batch %llu (position %llu) should have %u entries and has %u",
                             (unsigned long long)b->sequence, (unsigned long long)b->position,
                             b->entry_count, count);
}

static void take_entries(struct hf_audit_state *s, const struct hf_audit_batch *b)
{
    struct hf_audit_report *r = s->report;
    bool first = s->seen == 0 && r->batches == 0;
    s->batch = b;
    judge_entries(s, b);
    if (!r->has_tenant)
        times_of(r, b->now, first);
    if (first || b->now > s->newest)
        s->newest = b->now;
}

/* Is this the batch whose hash was noted? */
static void look_for_head(struct hf_audit_state *s, const uint8_t *hash)
{
    if (s->expect_head && memcmp(hash, s->expect_head, HF_DIGEST_SIZE) == 0)
        s->report->head_found = true;
}

static void take_batch(struct hf_audit_state *s, const struct hf_audit_batch *b)
{
    struct hf_audit_report *r = s->report;
    judge_batch(s, b);
    take_entries(s, b);
    r->batches++;
    r->judged_batches += !b->after_gap;
    memcpy(r->chain_head, b->hash, sizeof r->chain_head);
    r->head_sequence = b->sequence;
    look_for_head(s, b->hash);
}

/* ---- The writers of a database ---- */

static void take_whole(struct hf_audit_state *s, const struct hf_audit_batch *b)
{
    looked_store(s, HF_AUDIT_SEQUENCE);
    looked_store(s, HF_AUDIT_TIME);
    look_for_head(s, b->hash);
    s->report->batches++;
    s->report->judged_batches++;
    s->report->broken_batches += !b->number_fits || !b->now_fits;
    if (!b->number_fits)
        hf_audit_break_store(
            s, HF_AUDIT_SEQUENCE,
            "batch %llu of writer %u (entry %llu) does not follow the writer's previous batch: "
            "entries of this writer are missing or in another order",
            (unsigned long long)b->writer_batch, b->writer, (unsigned long long)b->position);
    if (!b->now_fits)
        hf_audit_break_store(
            s, HF_AUDIT_TIME,
            "batch %llu of writer %u (entry %llu) has time %s, earlier than %s before it",
            (unsigned long long)b->writer_batch, b->writer, (unsigned long long)b->position,
            hf_audit_at(b->now).text, hf_audit_at(b->previous_now).text);
}

/* The newest writers are listed, because they may still be active. */
static void writer_list(struct hf_audit_state *s, const struct hf_audit_writer *w)
{
    struct hf_audit_report *r = s->report;
    if (!r->writer)
        r->writer = calloc(HF_AUDIT_LISTED_MAX, sizeof *r->writer);
    if (!r->writer) {
        s->no_memory = true;
        return;
    }
    if (r->writers_listed == HF_AUDIT_LISTED_MAX)
        memmove(r->writer, r->writer + 1, --r->writers_listed * sizeof *r->writer);
    r->writer[r->writers_listed++] = *w;
}

static void take_writer(struct hf_audit_state *s, const struct hf_audit_writer *w)
{
    unsigned long long batch = w->batch, told = w->told_batch;
    if (w->id == 0) { /* functions: each call is in a user's own transaction */
        s->report->function_entries = w->entries;
        return;
    }
    looked_store(s, HF_AUDIT_CHAIN);
    looked_store(s, HF_AUDIT_SEQUENCE);
    bool chain_fits = w->known && memcmp(w->chain, w->told_chain, HF_DIGEST_SIZE) == 0;
    if (!w->known)
        hf_audit_break_store(s, HF_AUDIT_SEQUENCE,
                             "%s of writer %u, which is not in holdfast.writer",
                             hf_audit_count(w->entries, "entry is", "entries are").text, w->id);
    else if (batch != told)
        hf_audit_break_store(s, HF_AUDIT_SEQUENCE,
                             "the newest batch of writer %u (%s) is %llu, but holdfast.writer has "
                             "%llu: batches are missing at the end, or were added",
                             w->id, w->name, batch, told);
    if (w->known && !chain_fits)
        hf_audit_break_store(s, HF_AUDIT_CHAIN,
                             "the %llu entries of writer %u (%s) do not match the chain in "
                             "holdfast.writer: an entry was changed, added or removed",
                             (unsigned long long)w->entries, w->id, w->name);
    s->report->broken_batches += !w->known || batch != told || !chain_fits;
    s->report->writers++;
    s->highest_writer = w->id; /* writers come in order */
    s->report->head_sequence += w->batch;
    hf_audit_writer_add(&s->heads, w, s->report->chain_head);
    writer_list(s, w);
}

static void take_damage(struct hf_audit_state *s)
{
    const struct hf_audit_damage *d = hf_audit_reader_damage(s->reader);
    struct hf_audit_report *r = s->report;
    if (r->damages < sizeof r->damage / sizeof *r->damage)
        r->damage[r->damages] = *d;
    r->damages++;
    r->gaps += d->found_sequence != d->sequence;
    hf_audit_break_store(s, HF_AUDIT_SEQUENCE, "%s, offset %llu: batch %llu should be here, but %s",
                         d->file, (unsigned long long)d->offset, (unsigned long long)d->sequence,
                         d->what);
}

/* ---- The whole ---- */

static enum hf_status no_memory(struct hf_error *why)
{
    *why = (struct hf_error){
        HF_NO_MEMORY, "Out of memory. Audit a copy of the directory on a machine with more memory."
    };
    return why->status;
}

static enum hf_status read_all(struct hf_audit_state *s, const struct hf_audit_options *options,
                               struct hf_error *why)
{
    const struct hf_audit_journal *j = hf_audit_reader_journal(s->reader);
    for (;;) {
        struct hf_audit_batch batch;
        switch (hf_audit_reader_next(s->reader, &batch, why)) {
        case HF_AUDIT_BATCH: take_batch(s, &batch); break;
        case HF_AUDIT_PART: take_entries(s, &batch); break;
        case HF_AUDIT_WHOLE: take_whole(s, &batch); break;
        case HF_AUDIT_WRITER: take_writer(s, hf_audit_reader_writer(s->reader)); break;
        case HF_AUDIT_DAMAGE: take_damage(s); break;
        case HF_AUDIT_FAILED: return why->status;
        case HF_AUDIT_END:
            if (options->progress)
                options->progress(options->arg, j->bytes_total, j->bytes_total);
            return HF_OK;
        }
        if (s->no_memory)
            return no_memory(why);
        /* With compressed segments the position is larger than the bytes on disk. */
        if (options->progress && s->seen % 64 == 1)
            options->progress(options->arg, j->end < j->bytes_total ? j->end : j->bytes_total,
                              j->bytes_total);
    }
}

static void count_holds(struct hf_audit_state *s)
{
    struct hf_audit_report *r = s->report;
    for (uint64_t n = 1; n <= s->hold_count && (n - 1) / HF_AUDIT_CHUNK < s->chunk_count; n++) {
        const struct hf_audit_hold *h = hf_audit_hold_at(s, n);
        if (!s->holds[(n - 1) / HF_AUDIT_CHUNK])
            n += HF_AUDIT_CHUNK - 1; /* skip the whole chunk: no hold has these numbers */
        if (!h)
            continue;
        r->holds++;
        if (h->flags & HF_AUDIT_IS_REVERSAL)
            r->reversals++;
        else if (h->state <= HF_EXPIRED)
            r->holds_by_state[h->state]++;
        r->overdue += h->state == HF_HELD && h->expires_at <= s->newest;
    }
}

/* A check that sums up others: it has all their violations, and names the checks. */
static void sum_up(struct hf_audit_state *s, enum hf_audit_check_id sum,
                   enum hf_audit_check_id first, enum hf_audit_check_id last)
{
    for (unsigned i = first; i <= (unsigned)last; i++) {
        const struct hf_audit_check *part = &s->report->checks[i];
        s->report->checks[sum].checked += part->checked;
        if (part->violations == 0)
            continue;
        hf_audit_break(s, sum, NULL, "%s has %s", part->name,
                       hf_audit_count(part->violations, "violation", "violations").text);
        s->report->checks[sum].violations += part->violations - 1;
    }
}

/* What could not be read was not judged. A check that found no violation in the rest must not be
 * reported as passed. */
static void mark_incomplete(const struct hf_audit_state *s)
{
    struct hf_audit_report *r = s->report;
    bool unjudged = r->gaps > 0 || r->unreadable > 0;
    bool ids_unknown = s->seen > 0 && !r->journal.keys_known && !r->journal.database;
    for (size_t i = 0; i < r->check_count; i++)
        r->checks[i].incomplete = unjudged;
    /* segment headers are part of the chain */
    r->checks[HF_AUDIT_CHAIN].incomplete = r->damages > 0;
    r->checks[HF_AUDIT_SEQUENCE].incomplete = r->gaps > 0;
    r->checks[HF_AUDIT_PC4].incomplete |= ids_unknown;
    r->checks[HF_AUDIT_PC9].incomplete |= ids_unknown;
    r->checks[HF_AUDIT_REVERSALS].incomplete |= ids_unknown;
    r->checks[HF_AUDIT_LATE].incomplete |= ids_unknown;
    r->checks[HF_AUDIT_IR5].incomplete |= ids_unknown;
}

void hf_audit_judge_end(struct hf_audit_state *s)
{
    struct hf_audit_report *r = s->report;
    count_holds(s);
    hf_audit_count_claims(s);
    sum_up(s, HF_AUDIT_IR5, HF_AUDIT_PC1, HF_AUDIT_PC11);
    sum_up(s, HF_AUDIT_IR6, HF_AUDIT_DP1, HF_AUDIT_DP4);
    r->journal = *hf_audit_reader_journal(s->reader);
    mark_incomplete(s);
    r->verdict = HF_AUDIT_OK;
    for (size_t i = 0; i < r->check_count; i++)
        if (r->checks[i].violations > 0)
            r->verdict = HF_AUDIT_VIOLATIONS;
    if (r->head_expected && !r->head_found)
        r->verdict = HF_AUDIT_VIOLATIONS;
    if (r->damages > 0 || r->broken_batches > 0)
        r->verdict = HF_AUDIT_DAMAGED;
}

static char *copy_of(const void *data, size_t size)
{
    char *copy = malloc(size + 1); /* malloc(0) could return NULL */
    if (copy && size > 0)
        memcpy(copy, data, size);
    return copy;
}

/* An empty report with the options. False if out of memory. */
static bool report_init(struct hf_audit_report *report, const char *dir,
                        const struct hf_audit_options *options)
{
    *report = (struct hf_audit_report){ 0 };
    hf_audit_checks_init(report, options->postgres != NULL);
    report->near_ms = options->near_ms > 0 ? options->near_ms : 60000;
    bool told = !options->elsewhere && !options->postgres;
    report->directory = told ? copy_of(dir, strlen(dir) + 1) : NULL;
    report->has_tenant = options->has_tenant;
    report->tenant_copy = copy_of(options->tenant.data, options->tenant.size);
    report->tenant = hf_mem(report->tenant_copy, options->tenant.size);
    return (report->directory || !told) && report->tenant_copy;
}

enum hf_status hf_audit_run(const char *dir, const struct hf_audit_options *options,
                            struct hf_audit_report *report, struct hf_error *why)
{
    static const struct hf_audit_options defaults;
    struct hf_audit_state *s = calloc(1, sizeof *s);
    if (!options)
        options = &defaults;
    if (!report_init(report, dir, options) || !s) {
        free(s);
        return no_memory(why);
    }
    state_init(s);
    s->report = report;
    s->expect_head = options->expect_head;
    report->head_expected = options->expect_head != NULL;
    s->database = options->postgres != NULL;
    if (!s->database)
        hf_audit_holder(dir, report->holder);
    enum hf_status st =
        s->database ? hf_audit_reader_connect(options->postgres, options->timeline, &s->reader, why)
                    : hf_audit_reader_open(dir, &s->reader, why);
    if (st == HF_OK)
        st = read_all(s, options, why);
    if (st == HF_OK && s->database)
        st = hf_audit_judge_tables(s, why);
    if (st == HF_OK && s->no_memory)
        st = no_memory(why);
    if (st == HF_OK)
        hf_audit_judge_end(s);
    if (st == HF_OK && !s->database && !report->has_tenant) /* the index covers all tenants */
        st = hf_audit_judge_index(s, dir, why);
    hf_audit_reader_close(s->reader);
    state_free(s);
    return st;
}
