/* Figures for Prometheus, in its text format. Names and meanings are part of the interface: the
 * alert rules and the dashboard in examples/ use them. */
#include "server/inner.h"

#include <inttypes.h>

struct figure {
    const char *name, *type, *help;
    uint64_t value;
};

static void figures_add(struct hf_buffer *out, const struct figure *figures, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct figure *f = &figures[i];
        hf_buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", f->name, f->help,
                         f->name, f->type, f->name, f->value);
    }
}

/* An unknown claim may be a payment that happened or did not: its age is a figure of its own. */
static void claims_add(struct hf_buffer *out, const struct hf_stats *s)
{
    const struct {
        const char *state;
        uint64_t count;
    } states[] = {
        { "started", s->claims_started },     { "unknown", s->claims_unknown },
        { "completed", s->claims_completed }, { "failed", s->claims_failed },
        { "retryable", s->claims_retryable },
    };
    hf_buffer_add_text(out, "# HELP holdfast_claims Claims remembered now, by state.\n"
                            "# TYPE holdfast_claims gauge\n");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        hf_buffer_printf(out, "holdfast_claims{state=\"%s\"} %" PRIu64 "\n", states[i].state,
                         states[i].count);
    hf_time since = s->claims_unknown_since;
    hf_buffer_printf(out,
                     "# HELP holdfast_claims_unknown_oldest_seconds How long the oldest unknown "
                     "claim has been so; 0: there is none.\n"
                     "# TYPE holdfast_claims_unknown_oldest_seconds gauge\n"
                     "holdfast_claims_unknown_oldest_seconds %.3f\n",
                     since != 0 && s->now > since ? (double)(s->now - since) / 1e3 : 0);
}

static void engine_add(struct hf_buffer *out, const struct hf_stats *s)
{
    const struct figure figures[] = {
        { "idempotency_key_duplicates_total", "counter",
          "Duplicates: requests that were answered with a stored answer.", s->duplicates },
        { "idempotency_key_race_conditions_total", "counter",
          "Duplicates that arrived while the first call, or the claim, was in progress; they were "
          "serialized.",
          s->races },
        { "idempotency_table_size", "gauge",
          "Keys remembered now: of requests, of claims, and of clients that number their requests.",
          s->tokens + s->claims + s->clients },
        { "holdfast_key_collisions_total", "counter",
          "Requests whose key was used before with another action or other parameters.",
          s->collisions },
        { "holdfast_operations_total", "counter", "Requests that were decided.", s->operations },
        { "holdfast_holds", "gauge", "Holds ever placed, reversals included.", s->holds },
        { "holdfast_holds_live", "gauge", "Holds in state held.", s->holds_live },
        { "holdfast_resources", "gauge", "Resources.", s->resources },
        { "holdfast_guards", "gauge", "Guards.", s->guards },
        { "holdfast_guard_entries", "gauge", "Identities under guard.", s->entries },
        { "holdfast_guard_misses_total", "counter",
          "Recordings that were lost because the store refused writes.", s->guard_misses },
        { "holdfast_registers", "gauge", "Registers.", s->registers },
        { "holdfast_outbox_rows", "gauge", "Rows of the outbox.", s->outbox },
        { "holdfast_clock_stalls_total", "counter",
          "Batches for which the wall clock was behind engine time.", s->clock_stalls },
        { "holdfast_index_rebuilds_total", "counter",
          "Damaged parts of holds.idx that were rebuilt; 0 on PostgreSQL.", s->index_rebuilds },
        { "holdfast_records_unreadable_total", "counter",
          "How often a record was needed, but damaged or unreadable.", s->records_unreadable },
        { "holdfast_clock_jumps_total", "counter",
          "Jumps of the wall clock that the boot clock did not confirm.", s->clock_jumps },
        { "holdfast_storage_failures_total", "counter", "Requests that the store could not accept.",
          s->refusals_storage },
        { "holdfast_batches_total", "counter", "Batches written to the journal.", s->batches },
        { "holdfast_journal_bytes", "gauge", "Position of the journal's end; 0 on PostgreSQL.",
          s->journal_bytes },
        { "holdfast_memory_bytes", "gauge", "Memory of all tables; 0 on PostgreSQL.",
          s->memory_bytes },
        { "holdfast_memory_key_bytes", "gauge", "Memory of keys; 0 on PostgreSQL.",
          s->memory_token_bytes },
        { "holdfast_memory_used_bytes", "gauge",
          "Memory that counts towards the limit; 0 on PostgreSQL.", s->memory_used_bytes },
        { "holdfast_memory_limit_bytes", "gauge", "The memory limit; 0: none.",
          s->memory_max_bytes },
        { "holdfast_memory_full", "gauge", "1 while the memory limit is reached.", s->memory_full },
        { "holdfast_tenants", "gauge", "Tenants with records in memory; 0 on PostgreSQL.",
          s->tenants },
        { "holdfast_quota_refusals_total", "counter",
          "Requests refused because their tenant is at its quota.", s->refusals_quota },
        { "holdfast_snapshots_total", "counter",
          "Snapshots written since the start; 0 on PostgreSQL.", s->snapshots },
        { "holdfast_journal_verify_bytes", "gauge",
          "Bytes of the journal before the snapshot of the last start, which are verified in the "
          "background; 0 on PostgreSQL.",
          s->verify_bytes },
        { "holdfast_journal_verified_bytes", "gauge", "Bytes verified so far.", s->verified_bytes },
        { "holdfast_journal_damaged", "gauge", "1 if the verification found damage.",
          s->journal_damaged },
        { "holdfast_out_of_space", "gauge",
          "1 while the disk of the journal or of the database is full.", s->out_of_space },
        { "holdfast_out_of_files", "gauge",
          "1 while the journal cannot open a file because of the limit of open files; 0 on "
          "PostgreSQL.",
          s->out_of_files },
    };
    figures_add(out, figures, sizeof figures / sizeof *figures);
    hf_buffer_printf(
        out,
        "# HELP holdfast_engine_time_seconds Engine time, which never runs back.\n"
        "# TYPE holdfast_engine_time_seconds gauge\nholdfast_engine_time_seconds %.3f\n"
        "# HELP holdfast_recovery_seconds Duration of the recovery at the last start; 0 on "
        "PostgreSQL.\n"
        "# TYPE holdfast_recovery_seconds gauge\nholdfast_recovery_seconds %.3f\n",
        (double)s->now / 1e3, (double)s->recovery_ns / 1e9);
}

/* Figures that only a server on PostgreSQL has. */
static void database_add(struct hf_buffer *out, const struct hf_stats *s)
{
    const struct figure figures[] = {
        { "holdfast_database_up", "gauge",
          "1 while the database can be reached and accepts writes.", !s->database_away },
        { "holdfast_standby_silent_seconds", "gauge",
          "How long commits have waited for the synchronous standbys; 0 while they confirm.",
          s->standby_silent_ms / 1000 },
    };
    figures_add(out, figures, sizeof figures / sizeof *figures);
}

struct histogram {
    const char *name, *help;
    const uint64_t *counts;
    double unit; /* upper bound of the first bucket; each next one is twice that */
    double sum;
};

static void histogram_add(struct hf_buffer *out, const struct histogram *h)
{
    uint64_t total = 0;
    double bound = h->unit;
    hf_buffer_printf(out, "# HELP %s %s\n# TYPE %s histogram\n", h->name, h->help, h->name);
    for (size_t i = 0; i < HF_HISTOGRAM; i++, bound *= 2) {
        total += h->counts[i];
        if (i + 1 < HF_HISTOGRAM)
            hf_buffer_printf(out, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n", h->name, bound, total);
        else
            hf_buffer_printf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", h->name, total);
    }
    hf_buffer_printf(out, "%s_sum %.9g\n%s_count %" PRIu64 "\n", h->name, h->sum, h->name, total);
}

static void http_add(struct hf_server *s, struct hf_buffer *out)
{
    struct hf_http_stats h;
    hf_http_stats(s->http, &h);
    const struct figure figures[] = {
        { "holdfast_http_connections", "gauge", "Open connections.", h.connections },
        { "holdfast_http_connections_total", "counter", "Connections accepted.", h.accepted },
        { "holdfast_http_connections_refused_total", "counter", "Connections refused at the limit.",
          h.refused_connections },
        { "holdfast_http_connections_unknown", "gauge",
          "Open connections without a valid credential so far; 0 without an auth file.",
          h.unknown },
        { "holdfast_http_connections_unknown_closed_total", "counter",
          "Connections closed because they sent no valid credential in time.", h.unknown_closed },
        { "holdfast_tenant_connections_refused_total", "counter",
          "Connections refused because their tenant was at its limit.", h.group_refused },
        { "holdfast_slow_waiting", "gauge",
          "Lists, audits, traces and exports waiting or in progress.",
          s->slow[0].count + s->slow[1].count },
        { "holdfast_http_requests_total", "counter", "Requests received in full.", h.requests },
        { "holdfast_http_requests_malformed_total", "counter",
          "Requests refused as malformed, too large or too late.", h.malformed },
        { "holdfast_http_timeouts_total", "counter",
          "Connections that were too slow or idle too long.", h.timeouts },
        { "holdfast_http_received_bytes_total", "counter", "Bytes received.", h.bytes_in },
        { "holdfast_http_sent_bytes_total", "counter", "Bytes sent.", h.bytes_out },
        { "holdfast_queue", "gauge", "Requests in progress: received and not yet answered.",
          h.in_flight },
        { "holdfast_http_batches_total", "counter", "Bulk requests received.", s->batches },
        { "holdfast_http_batch_lines_total", "counter", "Operations in bulk requests.",
          s->batch_lines },
        { "holdfast_log_lines_dropped_total", "counter",
          "Log lines dropped because the reader of the log was too slow.", hf_log_dropped(s->log) },
    };
    figures_add(out, figures, sizeof figures / sizeof *figures);
}

static void refusals_add(struct hf_server *s, struct hf_buffer *out)
{
    hf_buffer_add_text(out, "# HELP holdfast_refusals_total Answers that were refusals, by code.\n"
                            "# TYPE holdfast_refusals_total counter\n");
    for (int i = HF_INVALID_REQUEST; i < HF_STATUS_SLOTS; i++) {
        const char *code = hf_status_code((enum hf_status)i);
        if (i <= HF_LEASE_HELD || s->refusals[i] > 0)
            hf_buffer_printf(out, "holdfast_refusals_total{code=\"%s\"} %" PRIu64 "\n", code,
                             s->refusals[i]);
    }
    hf_buffer_printf(out,
                     "holdfast_refusals_total{code=\"unauthorized\"} %" PRIu64 "\n"
                     "holdfast_refusals_total{code=\"forbidden\"} %" PRIu64 "\n"
                     "holdfast_refusals_total{code=\"too-many-requests\"} %" PRIu64 "\n",
                     s->unauthorized, s->forbidden, s->too_many_requests);
}

/* ---- What each tenant uses ---- */

/* A label's value: a backslash, a quote and a line feed are escaped. */
static void label_add(struct hf_buffer *out, const char *value)
{
    for (; *value; value++) {
        if (*value == '\n')
            hf_buffer_add_text(out, "\\n");
        else if (*value == '"' || *value == '\\')
            hf_buffer_printf(out, "\\%c", *value);
        else
            hf_buffer_add(out, value, 1);
    }
}

static void usage_add(struct hf_buffer *out, const char *name, const char *help,
                      const struct hf_usage *list, size_t count, size_t offset)
{
    hf_buffer_printf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
    for (size_t i = 0; i < count; i++) {
        hf_buffer_printf(out, "%s{tenant=\"", name);
        label_add(out, list[i].tenant);
        uint64_t value;
        memcpy(&value, (const char *)&list[i] + offset, sizeof value);
        hf_buffer_printf(out, "\"} %" PRIu64 "\n", value);
    }
}

/* The tenants that use most, and the sum of all others: this limits the number of series. With an
 * auth file, a caller that is no operator sees only its own tenant. */
static void tenants_add(struct hf_server *s, const struct hf_caller *caller, struct hf_buffer *out)
{
    enum { TOP = 20 };
    struct hf_usage list[TOP], others = { .records = 0 };
    size_t count = 1;
    bool own = s->options.auth_file && !caller->is_operator;
    if (own)
        hf_usage_of(s->db, hf_mem(caller->tenant, caller->tenant_size), &list[0]);
    else
        count = hf_usage(s->db, list, TOP, &others);
    usage_add(out, "holdfast_tenant_memory_bytes",
              "Memory of a tenant's records, for the tenants that use most.", list, count,
              offsetof(struct hf_usage, memory_bytes));
    usage_add(out, "holdfast_tenant_records", "Rows, live keys and held holds of a tenant.", list,
              count, offsetof(struct hf_usage, records));
    const struct figure figures[] = {
        { "holdfast_tenant_others_memory_bytes", "gauge", "Memory of all other tenants' records.",
          others.memory_bytes },
        { "holdfast_tenant_others_records", "gauge", "Records of all other tenants.",
          others.records },
        { "holdfast_tenant_memory_limit_bytes", "gauge", "The memory limit of one tenant; 0: none.",
          s->tenant_memory_max },
        { "holdfast_tenant_records_limit", "gauge", "The limit of records of one tenant; 0: none.",
          s->options.store.tenant_records_max },
    };
    figures_add(out, figures, own ? 0 : 2);
    figures_add(out, figures + 2, 2);
}

void hf_server_metrics(struct hf_server *s, const struct hf_caller *caller, struct hf_buffer *out)
{
    struct hf_db *db = s->db;
    struct hf_stats stats = { 0 };
    hf_buffer_printf(
        out,
        "# HELP holdfast_build_info Version of this program.\n# TYPE holdfast_build_info gauge\n"
        "holdfast_build_info{version=\"%s\"} 1\n"
        "# HELP holdfast_ready 1 if the store is open and accepts new keys.\n# TYPE holdfast_ready "
        "gauge\n",
        hf_version());
    if (db)
        hf_stats(db, &stats);
    hf_buffer_printf(out, "holdfast_ready %d\n", db && !hf_server_unready(&stats));
    if (db) {
        engine_add(out, &stats);
        claims_add(out, &stats);
        if (s->options.store.postgres)
            database_add(out, &stats);
        else
            tenants_add(s, caller, out);
        histogram_add(out, &(struct histogram){
                               "holdfast_commit_seconds", "Time to write and sync a batch.",
                               stats.commits_by_time, 32e-6, (double)stats.sync_ns_total / 1e9 });
        histogram_add(out,
                      &(struct histogram){ "holdfast_batch_operations", "Operations in a batch.",
                                           stats.commits_by_size, 1, (double)stats.batched });
    }
    http_add(s, out);
    refusals_add(s, out);
}
