/* The report for programs, as one JSON object. */
#include "audit/audit.h"
#include "audit/words.h"

#include "json/writer.h"

/* ---- One member ---- */

static void put_uint(struct hf_json *j, const char *name, uint64_t number)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_uint(j, number);
}

static void put_int(struct hf_json *j, const char *name, int64_t number)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_int(j, number);
}

static void put_bool(struct hf_json *j, const char *name, bool value)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_bool(j, value);
}

static void put_text(struct hf_json *j, const char *name, const char *text)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_text(j, text);
}

static void put_time(struct hf_json *j, const char *name, hf_time at)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_time(j, at);
}

static void put_time_or_null(struct hf_json *j, const char *name, bool known, hf_time at)
{
    hf_json_name_bytes(j, hf_str(name));
    known ? hf_json_time(j, at) : hf_json_null(j);
}

static void put_hex(struct hf_json *j, const char *name, const uint8_t *bytes, size_t size)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_hex(j, "", hf_mem(bytes, size));
}

static void begin_object(struct hf_json *j, const char *name)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_object(j);
}

static void begin_array(struct hf_json *j, const char *name)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_array(j);
}

/* ---- The report's parts ---- */

static void json_checks(struct hf_json *j, const struct hf_audit_report *r)
{
    static const char *const outcomes[] = { "ok", "broken", "incomplete" };
    begin_array(j, "checks");
    for (size_t i = 0; i < r->check_count; i++) {
        const struct hf_audit_check *c = &r->checks[i];
        hf_json_object(j);
        put_text(j, "name", c->name);
        put_text(j, "title", c->title);
        put_text(j, "meaning", c->meaning);
        put_text(j, "outcome", outcomes[hf_audit_outcome(c)]);
        put_uint(j, "checked", c->checked);
        put_uint(j, "violations", c->violations);
        begin_array(j, "examples");
        for (size_t k = 0; k < c->example_count; k++)
            hf_json_text(j, c->examples[k]);
        hf_json_array_end(j);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

/* The tenant of the report; null: all tenants. */
static void json_scope(struct hf_json *j, const struct hf_audit_report *r)
{
    hf_json_name(j, "tenant");
    r->has_tenant ? hf_json_opaque(j, r->tenant) : hf_json_null(j);
    if (!r->has_tenant)
        return;
    put_uint(j, "tenant_entries", r->tenant_entries);
}

static void json_configs(struct hf_json *j, const struct hf_audit_report *r)
{
    begin_array(j, "configuration");
    for (size_t i = 0; i < r->config_count; i++) {
        const struct hf_audit_in_force *c = &r->configs[i];
        hf_json_object(j);
        put_time(j, "since", c->since);
        if (!r->has_tenant) {
            put_uint(j, "position", c->position);
        }
        hf_json_name(j, "idempotency_window");
        hf_json_duration(j, c->idempotency_window_ms);
        put_int(j, "idempotency_window_ms", c->idempotency_window_ms);
        put_uint(j, "token_max_length", c->token_max_length);
        put_text(j, "registry", c->strict ? "strict" : "open");
        put_text(j, "digest_function", c->digest_name);
        put_text(j, "program", c->program);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

static void json_guards(struct hf_json *j, const struct hf_audit_report *r)
{
    begin_array(j, "guards");
    for (size_t i = 0; i < r->guard_rule_count; i++) {
        const struct hf_audit_guard_rule *g = &r->guard_rules[i];
        hf_json_object(j);
        put_text(j, "guard", g->who);
        put_int(j, "window_ms", g->window_ms);
        begin_array(j, "match");
        for (uint32_t k = 0; k < g->match_count && k < HF_MATCH_MAX; k++)
            hf_json_text(j, hf_audit_match_name(g->match[k]));
        hf_json_array_end(j);
        put_text(j, "on_unavailable", g->closed ? "closed" : "open");
        put_bool(j, "durable", g->durable);
        put_time(j, "since", g->since);
        put_uint(j, "forced", g->forced);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

static void json_near(struct hf_json *j, const struct hf_audit_report *r)
{
    begin_object(j, "near_duplicates");
    put_int(j, "within_ms", r->near_ms);
    put_uint(j, "count", r->near_count);
    put_uint(j, "not_legitimate", r->near_illegitimate);
    begin_array(j, "listed");
    for (size_t i = 0; i < r->near_listed; i++) {
        const struct hf_audit_near *n = &r->near[i];
        hf_json_object(j);
        put_text(j, "first", n->first);
        put_time(j, "first_at", n->first_at);
        put_text(j, "first_key", n->first_key ? n->first_key : "");
        put_text(j, "second", n->second);
        put_time(j, "second_at", n->second_at);
        put_text(j, "second_key", n->second_key ? n->second_key : "");
        put_text(j, "resource", n->resource);
        put_text(j, "requester", n->requester);
        put_bool(j, "legitimate", n->legitimate);
        put_text(j, "why", n->why);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
    hf_json_object_end(j);
}

static void json_claims(struct hf_json *j, const struct hf_audit_report *r)
{
    const struct hf_audit_claims *c = &r->claim;
    begin_object(j, "claims");
    put_uint(j, "count", r->claims);
    put_uint(j, "begun", c->begun);
    put_uint(j, "retried", c->retried);
    put_uint(j, "taken_over", c->taken_over);
    put_uint(j, "begun_again", c->again);
    put_uint(j, "completed", c->settled[HF_CLAIM_COMPLETED]);
    put_uint(j, "failed", c->settled[HF_CLAIM_FAILED]);
    put_uint(j, "failed_retryable", c->settled[HF_CLAIM_RETRYABLE]);
    put_uint(j, "abandoned", c->abandoned);
    begin_object(j, "now");
    for (int i = HF_CLAIM_STARTED; i <= HF_CLAIM_UNKNOWN; i++)
        put_uint(j, hf_audit_claim_name((enum hf_claim_state)i), c->now[i]);
    hf_json_object_end(j);
    begin_array(j, "listed");
    for (size_t i = 0; i < r->rerun_listed; i++) {
        const struct hf_audit_rerun *p = &r->reruns[i];
        hf_json_object(j);
        put_text(j, "claim", p->who);
        put_text(j, "because", p->taken_over ? "taken-over" : "retention-over");
        put_text(j, "first_state", hf_audit_claim_name(p->first_state));
        put_time(j, "first_at", p->first_at);
        put_uint(j, "first_fence", p->first_fence);
        put_time(j, "first_ended_at", p->ended_at);
        put_time_or_null(j, "remembered_until", p->until != 0, p->until);
        put_time(j, "second_at", p->second_at);
        put_uint(j, "second_fence", p->second_fence);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
    hf_json_object_end(j);
}

static void json_damage(struct hf_json *j, const struct hf_audit_report *r)
{
    begin_array(j, "damage");
    for (size_t i = 0; i < r->damages && i < sizeof r->damage / sizeof *r->damage; i++) {
        const struct hf_audit_damage *d = &r->damage[i];
        hf_json_object(j);
        put_text(j, "file", d->file);
        put_uint(j, "offset", d->offset);
        put_uint(j, "sequence", d->sequence);
        put_text(j, "what", d->what);
        put_uint(j, "next_whole_sequence", d->found_sequence);
        put_text(j, "next_whole_file", d->found_file);
        put_uint(j, "next_whole_offset", d->found_offset);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

static void json_writers(struct hf_json *j, const struct hf_audit_report *r)
{
    put_uint(j, "entries_by_functions", r->function_entries);
    put_uint(j, "writers", r->writers);
    begin_array(j, "newest_writers");
    for (size_t i = 0; i < r->writers_listed; i++) {
        const struct hf_audit_writer *w = &r->writer[i];
        hf_json_object(j);
        put_uint(j, "writer", w->id);
        hf_json_name(j, "name");
        hf_json_bytes(j, hf_str(w->name));
        put_uint(j, "entries", w->entries);
        put_uint(j, "batches", w->batch);
        put_hex(j, "chain_head", w->chain, sizeof w->chain);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

/* The time span of the records, and whether they are damaged: for every reader. */
static void json_span(struct hf_json *j, const struct hf_audit_report *r)
{
    put_time_or_null(j, "first_at", r->entries > 0, r->first_now);
    put_time_or_null(j, "last_at", r->entries > 0, r->last_now);
    put_bool(j, "damaged", r->verdict == HF_AUDIT_DAMAGED);
}

/* What one tenant may know about the journal: its own entries, and whether the journal is
 * damaged. */
static void json_own(struct hf_json *j, const struct hf_audit_report *r)
{
    begin_object(j, "journal");
    put_uint(j, "entries", r->entries);
    put_uint(j, "records", r->rows);
    json_span(j, r);
    hf_json_object_end(j);
}

static void json_journal(struct hf_json *j, const struct hf_audit_report *r)
{
    begin_object(j, "journal");
    if (r->directory) {
        put_text(j, "directory", r->directory);
    }
    if (r->journal.database) {
        put_text(j, "database", r->journal.where);
    }
    hf_json_name(j, "open_by");
    r->holder[0] ? hf_json_text(j, r->holder) : hf_json_null(j);
    put_hex(j, "store_id", r->journal.store_id, sizeof r->journal.store_id);
    hf_json_name(j, "chain_head");
    r->head_sequence ? hf_json_hex(j, "", hf_mem(r->chain_head, sizeof r->chain_head))
                     : hf_json_null(j);
    put_uint(j, "chain_head_sequence", r->head_sequence);
    put_uint(j, "batches", r->batches);
    put_uint(j, "batches_judged", r->judged_batches);
    put_uint(j, "entries", r->entries);
    put_uint(j, "records", r->rows);
    put_uint(j, "segments", r->journal.segments);
    put_uint(j, "segments_compressed", r->journal.packed);
    put_uint(j, "end", r->journal.end);
    put_uint(j, "torn_bytes", r->journal.torn_bytes);
    put_uint(j, "snapshots_unusable", r->journal.snapshots_unusable);
    put_uint(j, "index_parts", r->index_parts);
    put_uint(j, "index_wrong", r->index_wrong);
    json_span(j, r);
    if (r->journal.database)
        json_writers(j, r);
    json_damage(j, r);
    hf_json_object_end(j);
}

static void json_holds(struct hf_json *j, const struct hf_audit_report *r)
{
    begin_object(j, "holds");
    put_uint(j, "count", r->holds);
    put_uint(j, "traced_to_key", r->holds_traced);
    for (unsigned i = HF_HELD; i <= HF_EXPIRED; i++) {
        put_uint(j, hf_audit_state_name((enum hf_hold_state)i), r->holds_by_state[i]);
    }
    put_uint(j, "overdue", r->overdue);
    put_uint(j, "reversals", r->reversals);
    hf_json_object_end(j);
}

static void json_failures(struct hf_json *j, const struct hf_audit_report *r)
{
    begin_object(j, "failures_cached");
    put_uint(j, "remembered", r->remembered);
    put_uint(j, "count", r->failures);
    begin_object(j, "by_code");
    for (unsigned i = 0; i < 256; i++) {
        if (r->failures_by_status[i] == 0)
            continue;
        put_uint(j, hf_status_code((enum hf_status)i), r->failures_by_status[i]);
    }
    hf_json_object_end(j);
    hf_json_object_end(j);
}

static void json_records(struct hf_json *j, const struct hf_audit_report *r)
{
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = { { "resources", r->resources },
                   { "guards", r->guards },
                   { "guards_in_memory", r->guards_in_memory },
                   { "recordings", r->identities },
                   { "leases", r->leases },
                   { "registers", r->registers },
                   { "clients", r->clients },
                   { "outbox", r->outbox } };
    begin_object(j, "records");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        put_uint(j, counts[i].name, counts[i].count);
    }
    hf_json_object_end(j);
}

bool hf_audit_print_json(const struct hf_audit_report *report, FILE *out)
{
    static const char *const verdicts[] = { "ok", "violations", "damaged" };
    struct hf_buffer b = { 0 };
    struct hf_json j = { .out = &b };
    hf_json_object(&j);
    hf_json_name(&j, "verdict");
    hf_json_text(&j, verdicts[report->verdict]);
    json_scope(&j, report);
    if (report->head_expected)
        put_bool(&j, "expected_head_found", report->head_found);
    json_checks(&j, report);
    json_configs(&j, report);
    json_guards(&j, report);
    json_near(&j, report);
    json_claims(&j, report);
    report->has_tenant ? json_own(&j, report) : json_journal(&j, report);
    json_holds(&j, report);
    json_failures(&j, report);
    json_records(&j, report);
    hf_json_object_end(&j);
    hf_buffer_add_char(&b, '\n');
    bool done = !b.failed && fwrite(b.data, 1, b.size, out) == b.size && fflush(out) == 0;
    hf_buffer_free(&b);
    return done;
}
