/* Figures for Prometheus, in its text format. Names and meanings are part of the interface: the alert rules and the
 * dashboard in examples/ use them. */
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
        hf_buffer_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", f->name, f->help, f->name,
                         f->type, f->name, f->value);
    }
}

static void engine_add(struct hf_buffer *out, const struct hf_stats *s)
{
    const struct figure figures[] = {
        { "idempotency_key_duplicates_total", "counter", "Requests that were answered from a stored answer.",
          s->duplicates },
        { "idempotency_key_race_conditions_total", "counter",
          "Duplicates that came while the first call was still being written; they were serialized.",
          s->races },
        { "idempotency_table_size", "gauge", "Keys that are remembered now.", s->tokens },
        { "holdfast_key_collisions_total", "counter",
          "Keys that came with another action or other parameters.", s->collisions },
        { "holdfast_operations_total", "counter", "Requests that were decided.", s->operations },
        { "holdfast_holds", "gauge", "Holds ever placed, reversals included.", s->holds },
        { "holdfast_holds_live", "gauge", "Holds in state held.", s->holds_live },
        { "holdfast_resources", "gauge", "Resources.", s->resources },
        { "holdfast_guards", "gauge", "Guards.", s->guards },
        { "holdfast_guard_entries", "gauge", "Identities under guard.", s->entries },
        { "holdfast_guard_misses_total", "counter", "Recordings that a full store could not take.",
          s->guard_misses },
        { "holdfast_claims", "gauge", "Claims that are remembered.", s->claims },
        { "holdfast_registers", "gauge", "Registers.", s->registers },
        { "holdfast_outbox_rows", "gauge", "Rows of the outbox.", s->outbox },
        { "holdfast_clock_stalls_total", "counter",
          "Batches for which the wall clock was behind engine time.", s->clock_stalls },
        { "holdfast_storage_failures_total", "counter", "Requests that the store could not take.",
          s->refusals_storage },
        { "holdfast_batches_total", "counter", "Batches written to the journal.", s->batches },
        { "holdfast_journal_bytes", "gauge", "Position of the journal's end; 0 on PostgreSQL.",
          s->journal_bytes },
        { "holdfast_memory_bytes", "gauge", "Memory of all tables; 0 on PostgreSQL.", s->memory_bytes },
        { "holdfast_memory_key_bytes", "gauge", "The part of it that keys take; 0 on PostgreSQL.",
          s->memory_token_bytes },
        { "holdfast_snapshots_total", "counter", "Snapshots written since the start; 0 on PostgreSQL.",
          s->snapshots },
        { "holdfast_out_of_space", "gauge",
          "1 while there is no room: on the disk of the journal, or of the database.", s->out_of_space },
    };
    figures_add(out, figures, sizeof figures / sizeof *figures);
    hf_buffer_printf(
        out,
        "# HELP holdfast_engine_time_seconds Engine time, which never runs backwards.\n"
        "# TYPE holdfast_engine_time_seconds gauge\nholdfast_engine_time_seconds %.3f\n"
        "# HELP holdfast_recovery_seconds How long the last start read the journal; 0 on PostgreSQL.\n"
        "# TYPE holdfast_recovery_seconds gauge\nholdfast_recovery_seconds %.3f\n",
        (double)s->now / 1e3, (double)s->recovery_ns / 1e9);
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
        { "holdfast_http_connections_total", "counter", "Connections that were accepted.", h.accepted },
        { "holdfast_http_connections_refused_total", "counter", "Connections turned away at the limit.",
          h.refused_connections },
        { "holdfast_http_requests_total", "counter", "Requests that arrived in full.", h.requests },
        { "holdfast_http_requests_malformed_total", "counter",
          "Requests refused as malformed, too large or too late.", h.malformed },
        { "holdfast_http_timeouts_total", "counter", "Connections that were too slow or idle too long.",
          h.timeouts },
        { "holdfast_http_received_bytes_total", "counter", "Bytes received.", h.bytes_in },
        { "holdfast_http_sent_bytes_total", "counter", "Bytes sent.", h.bytes_out },
        { "holdfast_queue", "gauge", "Requests being worked on: received and not yet answered.",
          h.in_flight },
        { "holdfast_http_batches_total", "counter", "Batches of operations received.", s->batches },
        { "holdfast_http_batch_lines_total", "counter", "Operations in them.", s->batch_lines },
        { "holdfast_log_lines_dropped_total", "counter",
          "Log lines dropped because their reader was too slow.", hf_log_dropped(s->log) },
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
            hf_buffer_printf(out, "holdfast_refusals_total{code=\"%s\"} %" PRIu64 "\n", code, s->refusals[i]);
    }
    hf_buffer_printf(out,
                     "holdfast_refusals_total{code=\"unauthorized\"} %" PRIu64 "\n"
                     "holdfast_refusals_total{code=\"forbidden\"} %" PRIu64 "\n",
                     s->unauthorized, s->forbidden);
}

void hf_server_metrics(struct hf_server *s, struct hf_buffer *out)
{
    struct hf_db *db = s->db;
    struct hf_stats stats = { 0 };
    hf_buffer_printf(
        out,
        "# HELP holdfast_build_info Version of this program.\n# TYPE holdfast_build_info gauge\n"
        "holdfast_build_info{version=\"%s\"} 1\n"
        "# HELP holdfast_ready 1 when the store is open and takes new keys.\n# TYPE holdfast_ready gauge\n",
        hf_version());
    if (db)
        hf_stats(db, &stats);
    hf_buffer_printf(out, "holdfast_ready %d\n", db && !hf_server_unready(&stats));
    if (db) {
        engine_add(out, &stats);
        if (s->options.store.postgres)
            figures_add(out,
                        &(struct figure){ "holdfast_database_up", "gauge",
                                          "1 while the database can be reached and takes writes.",
                                          !stats.database_away },
                        1);
        histogram_add(out,
                      &(struct histogram){ "holdfast_commit_seconds", "Time to write and sync a batch.",
                                           stats.commits_by_time, 32e-6, (double)stats.sync_ns_total / 1e9 });
        histogram_add(out, &(struct histogram){ "holdfast_batch_operations", "Operations in a batch.",
                                                stats.commits_by_size, 1, (double)stats.batched });
    }
    http_add(s, out);
    refusals_add(s, out);
}
