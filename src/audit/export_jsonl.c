/* The history as lines of JSON. */
#include "audit/export.h"

#include "audit/words.h"

#include "base/error.h"
#include "json/stored.h"
#include "json/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define ITEMS_MAX HF_MERGE_ITEMS_MAX

struct jsonl {
    const struct hf_audit_export_options *options; /* borrowed */
    FILE *out;
    bool database;
    bool standard; /* stdout: do not close it */
    struct hf_buffer line;
    struct hf_item items[ITEMS_MAX];
};

/* ---- Members ---- */

#define TIME(j, member, value) (hf_json_name(j, member), hf_json_time(j, value))
#define UINT(j, member, value) (hf_json_name(j, member), hf_json_uint(j, value))
#define INT(j, member, value) (hf_json_name(j, member), hf_json_int(j, value))
#define TEXT(j, member, value) (hf_json_name(j, member), hf_json_text(j, value))
#define OPAQUE(j, member, value) (hf_json_name(j, member), hf_json_opaque(j, value))
/* Values that were stored as JSON are written as JSON. */
#define STORED(j, member, value) (hf_json_name(j, member), hf_json_stored(j, value))
#define BOOL(j, member, value) (hf_json_name(j, member), hf_json_bool(j, value))
#define HEX(j, member, data, size) (hf_json_name(j, member), hf_json_hex(j, "", hf_mem(data, size)))

static void hold_members(struct hf_json *j, const struct hf_hold *h)
{
    TEXT(j, "id", h->id);
    UINT(j, "ordinal", h->ordinal);
    UINT(j, "previous", h->previous);
    TEXT(j, "state", hf_audit_state_name(h->state));
    OPAQUE(j, "resource", h->resource);
    OPAQUE(j, "requester", h->requester);
    TIME(j, "placed_at", h->placed_at);
    TIME(j, "expires_at", h->expires_at);
    if (h->ended_at)
        TIME(j, "ended_at", h->ended_at);
    if (h->reverses[0])
        TEXT(j, "reverses", h->reverses);
    if (h->reacquires[0])
        TEXT(j, "reacquires", h->reacquires);
}

static void resource_members(struct hf_json *j, const struct hf_resource *r)
{
    OPAQUE(j, "name", r->name);
    UINT(j, "capacity", r->capacity);
    UINT(j, "held", r->held);
    UINT(j, "confirmed", r->confirmed);
    BOOL(j, "open", r->open);
    BOOL(j, "require_fence", r->require_fence);
    UINT(j, "fence", r->fence);
    UINT(j, "newest", r->newest);
    TIME(j, "created_at", r->created_at);
}

static void guard_members(struct hf_json *j, const struct hf_guard *g)
{
    OPAQUE(j, "name", g->name);
    hf_json_name(j, "window");
    hf_json_duration(j, g->window_ms);
    INT(j, "window_ms", g->window_ms);
    hf_json_name(j, "match");
    hf_json_array(j);
    for (uint32_t i = 0; i < g->match_count; i++)
        hf_json_text(j, hf_audit_match_name(g->match[i]));
    hf_json_array_end(j);
    TEXT(j, "on_unavailable", g->on_unavailable == HF_FAIL_CLOSED ? "closed" : "open");
    BOOL(j, "durable", g->durable);
    TIME(j, "created_at", g->created_at);
}

static void identity_members(struct hf_json *j, const struct hf_entry *e)
{
    OPAQUE(j, "guard", e->guard);
    OPAQUE(j, "identity", e->identity);
    TIME(j, "recorded_at", e->recorded_at);
    TIME(j, "expires_at", e->expires_at);
    if (e->has_result)
        STORED(j, "result", e->result);
}

static void claim_members(struct hf_json *j, const struct hf_claim *c)
{
    OPAQUE(j, "key", c->key);
    TEXT(j, "state", hf_audit_claim_name(c->state));
    TEXT(j, "on_abandon", c->on_abandon == HF_ABANDON_RETRY ? "retry" : "unknown");
    UINT(j, "fence", c->fence);
    INT(j, "lease_ms", c->lease_ms);
    if (c->retention_ms)
        INT(j, "retention_ms", c->retention_ms);
    TIME(j, "begun_at", c->begun_at);
    TIME(j, "lease_expires_at", c->lease_expires_at);
    if (c->settled_at)
        TIME(j, "settled_at", c->settled_at);
    if (c->expires_at)
        TIME(j, "expires_at", c->expires_at);
    HEX(j, "fingerprint", c->fingerprint, HF_DIGEST_SIZE);
    STORED(j, "response", c->response);
}

static void lease_members(struct hf_json *j, const struct hf_lease *l)
{
    OPAQUE(j, "name", l->name);
    OPAQUE(j, "holder", l->holder);
    UINT(j, "fence", l->fence);
    INT(j, "ttl_ms", l->ttl_ms);
    TIME(j, "granted_at", l->granted_at);
    TIME(j, "expires_at", l->expires_at);
    if (l->released_at)
        TIME(j, "released_at", l->released_at);
}

static void items_member(struct hf_json *j, const struct hf_value *v)
{
    size_t count = v->item_count < ITEMS_MAX ? v->item_count : ITEMS_MAX;
    hf_json_name(j, "items");
    hf_json_array(j);
    for (size_t i = 0; i < count; i++) {
        hf_json_object(j);
        OPAQUE(j, "name", v->items[i].name);
        if (v->type != HF_TYPE_UNION)
            UINT(j, "up", v->items[i].up);
        if (v->type == HF_TYPE_UPDOWN)
            UINT(j, "down", v->items[i].down);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

static void value_members(struct hf_json *j, const struct hf_value *stored, struct hf_item *items)
{
    struct hf_value v;
    if (!hf_audit_value_read(stored, items, ITEMS_MAX, &v)) {
        HEX(j, "value_hex", stored->bytes.data, stored->bytes.size);
        return;
    }
    switch (v.type) {
    case HF_TYPE_PLAIN: STORED(j, "value", v.bytes); break;
    case HF_TYPE_MAX:
    case HF_TYPE_MIN: INT(j, "value", v.number); break;
    case HF_TYPE_OR: BOOL(j, "value", v.flag); break;
    case HF_TYPE_LWW:
        INT(j, "timestamp", v.timestamp);
        OPAQUE(j, "node", v.node);
        STORED(j, "value", v.bytes);
        break;
    case HF_TYPE_COUNTER:
    case HF_TYPE_UPDOWN:
        INT(j, "value", v.number);
        items_member(j, &v);
        break;
    case HF_TYPE_UNION:
    case HF_TYPE_VECTOR: items_member(j, &v); break;
    case HF_TYPE_DELETED:
        if (v.number != INT64_MAX)
            TIME(j, "forgotten_at", v.number);
        break;
    }
}

static void register_members(struct hf_json *j, const struct hf_register *r, struct hf_item *items)
{
    OPAQUE(j, "name", r->name);
    TEXT(j, "type", hf_audit_type_name(r->value.type));
    UINT(j, "version", r->version);
    UINT(j, "fence", r->fence);
    BOOL(j, "require_fence", r->require_fence);
    TIME(j, "changed_at", r->changed_at);
    value_members(j, &r->value, items);
}

static void config_members(struct hf_json *j, const struct hf_audit_config *c)
{
    INT(j, "idempotency_window_ms", c->idempotency_window_ms);
    UINT(j, "token_max_length", c->token_max_length);
    TEXT(j, "registry", c->strict ? "strict" : "open");
    OPAQUE(j, "digest_function", c->digest_name);
    OPAQUE(j, "program", c->program);
}

static void outbox_members(struct hf_json *j, const struct hf_outbox *o)
{
    UINT(j, "number", o->number);
    UINT(j, "state", (uint64_t)o->state);
    TIME(j, "created_at", o->created_at);
    OPAQUE(j, "key", o->key);
    OPAQUE(j, "topic", o->topic);
    OPAQUE(j, "payload", o->payload);
}

static void row_json(struct hf_json *j, const struct hf_audit_row *row, struct hf_item *items)
{
    hf_json_object(j);
    TEXT(j, "kind", hf_audit_row_name(row->kind));
    if (row->flags & HF_AUDIT_ROW_LEAVES)
        BOOL(j, "leaves", true);
    switch (row->kind) {
    case HF_ROW_HOLD: hold_members(j, &row->hold); break;
    case HF_ROW_RESOURCE: resource_members(j, &row->resource); break;
    case HF_ROW_GUARD: guard_members(j, &row->guard); break;
    case HF_ROW_ENTRY: identity_members(j, &row->identity); break;
    case HF_ROW_CLAIM: claim_members(j, &row->claim); break;
    case HF_ROW_LEASE: lease_members(j, &row->lease); break;
    case HF_ROW_REGISTER: register_members(j, &row->reg, items); break;
    case HF_ROW_CLIENT:
        OPAQUE(j, "name", row->client.name);
        UINT(j, "highest", row->client.highest);
        HEX(j, "used", row->client.used, HF_SEQUENCE_WINDOW / 8);
        break;
    case HF_ROW_VALUE:
        OPAQUE(j, "key", row->pair.key);
        OPAQUE(j, "value", row->pair.value);
        break;
    case HF_ROW_OUTBOX: outbox_members(j, &row->outbox); break;
    case HF_ROW_SUCCESSOR:
        TEXT(j, "original", row->successor.original);
        TEXT(j, "successor", row->successor.successor);
        break;
    case HF_ROW_CONFIG: config_members(j, &row->config); break;
    }
    hf_json_object_end(j);
}

/* ---- Lines ---- */

static bool write_failed(struct hf_error *why, const char *reason)
{
    (void)hf_error_set(
        why, HF_STORAGE_FAILURE,
        "The export cannot be written: %s. Free disk space, or export to another place.", reason);
    return false;
}

static bool line_write(struct jsonl *x, struct hf_error *why)
{
    hf_buffer_add_char(&x->line, '\n');
    if (!x->line.failed && fwrite(x->line.data, 1, x->line.size, x->out) == x->line.size)
        return true;
    return write_failed(why, x->line.failed ? "not enough memory" : strerror(errno));
}

static struct hf_json line_begin(struct jsonl *x, const char *type)
{
    hf_buffer_reset(&x->line);
    struct hf_json j = { .out = &x->line };
    hf_json_object(&j);
    TEXT(&j, "type", type);
    return j;
}

static bool jsonl_begin(void *ctx, const struct hf_audit_journal *journal,
                        const struct hf_audit_export_options *options, struct hf_error *why)
{
    struct jsonl *x = ctx;
    x->options = options;
    x->database = journal->database;
    struct hf_json j = line_begin(x, "store");
    TEXT(&j, "format", "holdfast-export/1");
    if (!options->has_tenant)
        HEX(&j, "store_id", journal->store_id, sizeof journal->store_id);
    TEXT(&j, "program", HF_VERSION);
    if (options->has_tenant)
        OPAQUE(&j, "tenant", options->tenant);
    hf_json_object_end(&j);
    return line_write(x, why);
}

static bool jsonl_batch(void *ctx, const struct hf_audit_batch *batch, struct hf_error *why)
{
    (void)ctx;
    (void)batch;
    (void)why;
    return true; /* each entry names its batch */
}

static bool jsonl_entry(void *ctx, const struct hf_audit_batch *batch,
                        const struct hf_audit_entry *e, const struct hf_audit_row *rows,
                        const struct hf_audit_row *answer, struct hf_error *why)
{
    struct jsonl *x = ctx;
    struct hf_json j = line_begin(x, "entry");
    if (!x->options->has_tenant)
        UINT(&j, "batch", batch->sequence);
    if (x->database && !x->options->has_tenant) {
        UINT(&j, "writer", batch->writer);
        UINT(&j, "writer_batch", batch->writer_batch);
    }
    UINT(&j, "position", e->position);
    TIME(&j, "at", e->recorded_at);
    INT(&j, "at_ms", e->recorded_at);
    TEXT(&j, "action", hf_action_name(e->action));
    TEXT(&j, "status", hf_status_code(e->status));
    OPAQUE(&j, "tenant", e->tenant);
    if (e->remember == HF_REMEMBER_KEY) {
        OPAQUE(&j, "key", e->key);
        TIME(&j, "key_expires_at", e->expires_at);
    } else if (e->remember == HF_REMEMBER_SEQUENCE) {
        OPAQUE(&j, "client", e->key);
        UINT(&j, "sequence", e->sequence);
    }
    if (e->digest)
        HEX(&j, "digest", e->digest, HF_DIGEST_SIZE);
    if (e->answer < e->row_count) {
        UINT(&j, "answer_row", e->answer);
    } else if (answer) {
        hf_json_name(&j, "answer");
        row_json(&j, answer, x->items);
    }
    hf_json_name(&j, "rows");
    hf_json_array(&j);
    for (size_t i = 0; i < e->row_count; i++)
        row_json(&j, &rows[i], x->items);
    hf_json_array_end(&j);
    hf_json_object_end(&j);
    return line_write(x, why);
}

static bool jsonl_end(void *ctx, const struct hf_audit_export_sum *sum, struct hf_error *why)
{
    struct jsonl *x = ctx;
    struct hf_json j = line_begin(x, "end");
    if (x->options->has_tenant) {
        UINT(&j, "entries", sum->entries);
        BOOL(&j, "damaged", sum->damages > 0 || sum->unreadable > 0);
    } else {
        UINT(&j, "batches", sum->batches);
        UINT(&j, "entries", sum->entries);
        UINT(&j, "entries_unreadable", sum->unreadable);
        UINT(&j, "damages", sum->damages);
        UINT(&j, "torn_bytes", sum->torn_bytes);
        HEX(&j, "chain_head", sum->chain_head, HF_DIGEST_SIZE);
    }
    hf_json_object_end(&j);
    if (!line_write(x, why))
        return false;
    if (fflush(x->out) == 0 && (x->standard || fsync(fileno(x->out)) == 0))
        return true;
    return write_failed(why, strerror(errno));
}

static void jsonl_close(void *ctx)
{
    struct jsonl *x = ctx;
    if (!x->standard)
        fclose(x->out);
    hf_buffer_free(&x->line);
    free(x);
}

bool hf_audit_jsonl_open(const char *path, struct hf_audit_sink *sink, struct hf_error *why)
{
    struct jsonl *x = calloc(1, sizeof *x);
    int fd = -1;
    if (x && strcmp(path, "-") == 0) {
        x->standard = true;
        x->out = stdout;
    } else if (x) {
        /* the same mode as the store's files */
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        x->out = fd < 0 ? NULL : fdopen(fd, "w");
    }
    if (!x || !x->out) {
        (void)hf_error_set(why, HF_STORAGE_FAILURE,
                           "%.300s cannot be created: %s. Name another file.", path,
                           x ? strerror(errno) : "not enough memory");
        if (fd >= 0)
            close(fd);
        free(x);
        return false;
    }
    sink->ctx = x;
    sink->begin = jsonl_begin;
    sink->batch = jsonl_batch;
    sink->entry = jsonl_entry;
    sink->end = jsonl_end;
    sink->close = jsonl_close;
    return true;
}
