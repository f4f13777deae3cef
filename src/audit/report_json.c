/* The report for machines: the same, as one JSON object. */
#include "audit/audit.h"
#include "audit/words.h"

#include "api/json.h"

static void json_hex(struct hf_json *j, const uint8_t *bytes, size_t size)
{
    hf_json_hex(j, "", hf_mem(bytes, size));
}

static void json_checks(struct hf_json *j, const struct hf_audit_report *r)
{
    static const char *const outcomes[] = { "ok", "broken", "incomplete" };
    hf_json_name(j, "checks");
    hf_json_array(j);
    for (size_t i = 0; i < r->check_count; i++) {
        const struct hf_audit_check *c = &r->checks[i];
        hf_json_object(j);
        hf_json_name(j, "name");
        hf_json_text(j, c->name);
        hf_json_name(j, "title");
        hf_json_text(j, c->title);
        hf_json_name(j, "meaning");
        hf_json_text(j, c->meaning);
        hf_json_name(j, "outcome");
        hf_json_text(j, outcomes[hf_audit_outcome(c)]);
        hf_json_name(j, "checked");
        hf_json_uint(j, c->checked);
        hf_json_name(j, "violations");
        hf_json_uint(j, c->violations);
        hf_json_name(j, "examples");
        hf_json_array(j);
        for (size_t k = 0; k < c->example_count; k++)
            hf_json_text(j, c->examples[k]);
        hf_json_array_end(j);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

/* Whose records are named: null for everybody's. */
static void json_scope(struct hf_json *j, const struct hf_audit_report *r)
{
    hf_json_name(j, "tenant");
    r->has_tenant ? hf_json_opaque(j, r->tenant) : hf_json_null(j);
    if (!r->has_tenant)
        return;
    hf_json_name(j, "tenant_entries");
    hf_json_uint(j, r->tenant_entries);
}

static void json_configs(struct hf_json *j, const struct hf_audit_report *r)
{
    hf_json_name(j, "configuration");
    hf_json_array(j);
    for (size_t i = 0; i < r->config_count; i++) {
        const struct hf_audit_in_force *c = &r->configs[i];
        hf_json_object(j);
        hf_json_name(j, "since");
        hf_json_time(j, c->since);
        hf_json_name(j, "position");
        hf_json_uint(j, c->position);
        hf_json_name(j, "idempotency_window");
        hf_json_duration(j, c->idempotency_window_ms);
        hf_json_name(j, "idempotency_window_ms");
        hf_json_int(j, c->idempotency_window_ms);
        hf_json_name(j, "token_max_length");
        hf_json_uint(j, c->token_max_length);
        hf_json_name(j, "registry");
        hf_json_text(j, c->strict ? "strict" : "open");
        hf_json_name(j, "digest_function");
        hf_json_text(j, c->digest_name);
        hf_json_name(j, "program");
        hf_json_text(j, c->program);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

static void json_near(struct hf_json *j, const struct hf_audit_report *r)
{
    hf_json_name(j, "near_duplicates");
    hf_json_object(j);
    hf_json_name(j, "within_ms");
    hf_json_int(j, r->near_ms);
    hf_json_name(j, "count");
    hf_json_uint(j, r->near_count);
    hf_json_name(j, "not_legitimate");
    hf_json_uint(j, r->near_illegitimate);
    hf_json_name(j, "listed");
    hf_json_array(j);
    for (size_t i = 0; i < r->near_listed; i++) {
        const struct hf_audit_near *n = &r->near[i];
        hf_json_object(j);
        hf_json_name(j, "first");
        hf_json_text(j, n->first);
        hf_json_name(j, "first_at");
        hf_json_time(j, n->first_at);
        hf_json_name(j, "first_key");
        hf_json_text(j, n->first_key ? n->first_key : "");
        hf_json_name(j, "second");
        hf_json_text(j, n->second);
        hf_json_name(j, "second_at");
        hf_json_time(j, n->second_at);
        hf_json_name(j, "second_key");
        hf_json_text(j, n->second_key ? n->second_key : "");
        hf_json_name(j, "resource");
        hf_json_text(j, n->resource);
        hf_json_name(j, "requester");
        hf_json_text(j, n->requester);
        hf_json_name(j, "legitimate");
        hf_json_bool(j, n->legitimate);
        hf_json_name(j, "why");
        hf_json_text(j, n->why);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
    hf_json_object_end(j);
}

static void json_damage(struct hf_json *j, const struct hf_audit_report *r)
{
    hf_json_name(j, "damage");
    hf_json_array(j);
    for (size_t i = 0; i < r->damages && i < sizeof r->damage / sizeof *r->damage; i++) {
        const struct hf_audit_damage *d = &r->damage[i];
        hf_json_object(j);
        hf_json_name(j, "file");
        hf_json_text(j, d->file);
        hf_json_name(j, "offset");
        hf_json_uint(j, d->offset);
        hf_json_name(j, "sequence");
        hf_json_uint(j, d->sequence);
        hf_json_name(j, "what");
        hf_json_text(j, d->what);
        hf_json_name(j, "next_whole_sequence");
        hf_json_uint(j, d->found_sequence);
        hf_json_name(j, "next_whole_file");
        hf_json_text(j, d->found_file);
        hf_json_name(j, "next_whole_offset");
        hf_json_uint(j, d->found_offset);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

static void json_writers(struct hf_json *j, const struct hf_audit_report *r)
{
    hf_json_name(j, "entries_by_functions");
    hf_json_uint(j, r->function_entries);
    hf_json_name(j, "writers");
    hf_json_uint(j, r->writers);
    hf_json_name(j, "newest_writers");
    hf_json_array(j);
    for (size_t i = 0; i < r->writers_listed; i++) {
        const struct hf_audit_writer *w = &r->writer[i];
        hf_json_object(j);
        hf_json_name(j, "writer");
        hf_json_uint(j, w->id);
        hf_json_name(j, "name");
        hf_json_bytes(j, hf_str(w->name));
        hf_json_name(j, "entries");
        hf_json_uint(j, w->entries);
        hf_json_name(j, "batches");
        hf_json_uint(j, w->batch);
        hf_json_name(j, "chain_head");
        json_hex(j, w->chain, sizeof w->chain);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

static void json_journal(struct hf_json *j, const struct hf_audit_report *r)
{
    hf_json_name(j, "journal");
    hf_json_object(j);
    if (r->directory) {
        hf_json_name(j, "directory");
        hf_json_text(j, r->directory);
    }
    if (r->journal.database) {
        hf_json_name(j, "database");
        hf_json_text(j, r->journal.where);
    }
    hf_json_name(j, "open_by");
    r->holder[0] ? hf_json_text(j, r->holder) : hf_json_null(j);
    hf_json_name(j, "store_id");
    json_hex(j, r->journal.store_id, sizeof r->journal.store_id);
    hf_json_name(j, "chain_head");
    r->head_sequence ? json_hex(j, r->chain_head, sizeof r->chain_head) : hf_json_null(j);
    hf_json_name(j, "chain_head_sequence");
    hf_json_uint(j, r->head_sequence);
    hf_json_name(j, "batches");
    hf_json_uint(j, r->batches);
    hf_json_name(j, "batches_judged");
    hf_json_uint(j, r->judged_batches);
    hf_json_name(j, "entries");
    hf_json_uint(j, r->entries);
    hf_json_name(j, "records");
    hf_json_uint(j, r->rows);
    hf_json_name(j, "segments");
    hf_json_uint(j, r->journal.segments);
    hf_json_name(j, "segments_compressed");
    hf_json_uint(j, r->journal.packed);
    hf_json_name(j, "end");
    hf_json_uint(j, r->journal.end);
    hf_json_name(j, "torn_bytes");
    hf_json_uint(j, r->journal.torn_bytes);
    hf_json_name(j, "first_at");
    r->entries ? hf_json_time(j, r->first_now) : hf_json_null(j);
    hf_json_name(j, "last_at");
    r->entries ? hf_json_time(j, r->last_now) : hf_json_null(j);
    if (r->journal.database)
        json_writers(j, r);
    json_damage(j, r);
    hf_json_object_end(j);
}

static void json_holds(struct hf_json *j, const struct hf_audit_report *r)
{
    hf_json_name(j, "holds");
    hf_json_object(j);
    hf_json_name(j, "count");
    hf_json_uint(j, r->holds);
    hf_json_name(j, "traced_to_key");
    hf_json_uint(j, r->holds_traced);
    for (unsigned i = HF_HELD; i <= HF_EXPIRED; i++) {
        hf_json_name_bytes(j, hf_str(hf_audit_state_name((enum hf_hold_state)i)));
        hf_json_uint(j, r->holds_by_state[i]);
    }
    hf_json_name(j, "overdue");
    hf_json_uint(j, r->overdue);
    hf_json_name(j, "reversals");
    hf_json_uint(j, r->reversals);
    hf_json_object_end(j);
}

static void json_failures(struct hf_json *j, const struct hf_audit_report *r)
{
    hf_json_name(j, "failures_cached");
    hf_json_object(j);
    hf_json_name(j, "remembered");
    hf_json_uint(j, r->remembered);
    hf_json_name(j, "count");
    hf_json_uint(j, r->failures);
    hf_json_name(j, "by_code");
    hf_json_object(j);
    for (unsigned i = 0; i < 256; i++) {
        if (r->failures_by_status[i] == 0)
            continue;
        hf_json_name_bytes(j, hf_str(hf_status_code((enum hf_status)i)));
        hf_json_uint(j, r->failures_by_status[i]);
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
                   { "claims", r->claims },
                   { "leases", r->leases },
                   { "registers", r->registers },
                   { "clients", r->clients },
                   { "outbox", r->outbox } };
    hf_json_name(j, "records");
    hf_json_object(j);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        hf_json_name_bytes(j, hf_str(counts[i].name));
        hf_json_uint(j, counts[i].count);
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
    json_checks(&j, report);
    json_configs(&j, report);
    json_near(&j, report);
    json_journal(&j, report);
    json_holds(&j, report);
    json_failures(&j, report);
    json_records(&j, report);
    hf_json_object_end(&j);
    hf_buffer_add_char(&b, '\n');
    bool done = !b.failed && fwrite(b.data, 1, b.size, out) == b.size && fflush(out) == 0;
    hf_buffer_free(&b);
    return done;
}
