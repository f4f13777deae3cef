/* The history as a SQLite database: prepared statements, one transaction. */
#include "audit/export.h"

#include "audit/digest.h"
#include "audit/words.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "json/stored.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

enum statement {
    ADD_STORE,
    ADD_BATCH,
    ADD_ENTRY,
    ADD_TOKEN,
    ADD_HOLD,
    ADD_HOLD_EVENT,
    ADD_SUCCESSOR,
    ADD_RESOURCE,
    ADD_RESOURCE_EVENT,
    ADD_GUARD,
    ADD_GUARD_ENTRY,
    ADD_CLAIM,
    ADD_CLAIM_EVENT,
    ADD_LEASE,
    ADD_LEASE_EVENT,
    ADD_REGISTER,
    ADD_REGISTER_EVENT,
    ADD_CLIENT,
    ADD_VALUE,
    DROP_LEASE,
    DROP_VALUE,
    ADD_OUTBOX,
    ADD_CONFIG,
    STATEMENTS
};

/* `OR IGNORE` where a wrong history might have a record twice: the first one stays, and the audit
 * reports it. */
static const char *const statements[STATEMENTS] = {
    [ADD_STORE] = "INSERT INTO store VALUES(?,?)",
    [ADD_BATCH] = "INSERT INTO batches VALUES(?,?,?,?,?,?,?,?,?,?)",
    [ADD_ENTRY] = "INSERT INTO entries VALUES(?,?,?,?,?,?,?)",
    [ADD_TOKEN] = "INSERT INTO tokens VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
    [ADD_HOLD] =
        ("INSERT INTO holds VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(ordinal) DO UPDATE SET "
         "state = excluded.state, ended_at = excluded.ended_at"),
    [ADD_HOLD_EVENT] = "INSERT OR IGNORE INTO hold_events VALUES(?,?,?,?,?,?)",
    [ADD_SUCCESSOR] = "INSERT OR IGNORE INTO successors VALUES(?,?,?)",
    [ADD_RESOURCE] = "INSERT OR REPLACE INTO resources VALUES(?,?,?,?,?,?,?,?,?,?)",
    [ADD_RESOURCE_EVENT] = "INSERT INTO resource_events VALUES(?,?,?,?,?,?,?,?,?,?)",
    [ADD_GUARD] = "INSERT OR REPLACE INTO guards VALUES(?,?,?,?,?,?,?)",
    [ADD_GUARD_ENTRY] = "INSERT OR IGNORE INTO guard_entries VALUES(?,?,?,?,?,?,?)",
    [ADD_CLAIM] = "INSERT OR REPLACE INTO claims VALUES(?,?,?,?,?,?,?,?,?,?,?)",
    [ADD_CLAIM_EVENT] = "INSERT OR IGNORE INTO claim_events VALUES(?,?,?,?,?,?,?,?,?,?)",
    [ADD_LEASE] = "INSERT OR REPLACE INTO leases VALUES(?,?,?,?,?,?,?,?)",
    [ADD_LEASE_EVENT] = "INSERT OR IGNORE INTO lease_events VALUES(?,?,?,?,?,?,?,?,?)",
    [ADD_REGISTER] = "INSERT OR REPLACE INTO registers VALUES(?,?,?,?,?,?,?,?,?)",
    [ADD_REGISTER_EVENT] = "INSERT OR IGNORE INTO register_events VALUES(?,?,?,?,?,?,?,?,?)",
    [ADD_CLIENT] = "INSERT OR REPLACE INTO clients VALUES(?,?,?,?)",
    [ADD_VALUE] = "INSERT OR REPLACE INTO app_values VALUES(?,?,?)",
    [DROP_LEASE] = "DELETE FROM leases WHERE tenant = ? AND name = ?",
    [DROP_VALUE] = "DELETE FROM app_values WHERE tenant = ? AND key = ?",
    [ADD_OUTBOX] = "INSERT OR REPLACE INTO outbox VALUES(?,?,?,?,?,?,?,?)",
    [ADD_CONFIG] = "INSERT OR IGNORE INTO config VALUES(?,?,?,?,?,?,?)",
};

struct sqlite {
    sqlite3 *db;
    sqlite3_stmt *st[STATEMENTS];
    const struct hf_audit_export_options *options; /* borrowed */
    char *path;                                    /* owned */
    struct hf_item items[HF_MERGE_ITEMS_MAX];      /* of the value that is written */
};

/* ---- Binding: one value after the other ---- */

struct row {
    sqlite3_stmt *st;
    int n;
    int failed; /* the result of the first binding that failed */
};

static struct row row_of(struct sqlite *x, enum statement which)
{
    return (struct row){ x->st[which], 0, SQLITE_OK };
}

/* A value whose binding failed would be NULL in the row. */
static void bound(struct row *r, int result)
{
    if (r->failed == SQLITE_OK)
        r->failed = result;
}

static void add_int(struct row *r, int64_t v)
{
    bound(r, sqlite3_bind_int64(r->st, ++r->n, v));
}

/* SQLite has no unsigned numbers; in a correct history no number comes near the limit. */
static void add_uint(struct row *r, uint64_t v)
{
    add_int(r, v > INT64_MAX ? INT64_MAX : (int64_t)v);
}

static void add_null(struct row *r)
{
    bound(r, sqlite3_bind_null(r->st, ++r->n));
}

/* A missing time (0) and "never" (INT64_MAX) are NULL. */
static void add_time(struct row *r, hf_time t)
{
    if (t == 0 || t == INT64_MAX)
        add_null(r);
    else
        add_int(r, t);
}

static void add_text(struct row *r, const char *text)
{
    bound(r, sqlite3_bind_text(r->st, ++r->n, text, -1, SQLITE_TRANSIENT));
}

/* An id, or NULL for "". */
static void add_id(struct row *r, const char *id)
{
    if (id[0])
        add_text(r, id);
    else
        add_null(r);
}

static void add_bytes(struct row *r, struct hf_bytes b)
{
    static const char none[] = "";
    const char *p = b.size > 0 ? b.data : none;
    bool text = hf_utf8_valid(b) && (b.size == 0 || !memchr(b.data, 0, b.size));
    if (text)
        bound(r, sqlite3_bind_text(r->st, ++r->n, p, (int)b.size, SQLITE_STATIC));
    else
        bound(r, sqlite3_bind_blob(r->st, ++r->n, p, (int)b.size, SQLITE_STATIC));
}

/* Frees the text. */
static void add_json(struct row *r, struct hf_buffer *text)
{
    bound(r, text->failed ? SQLITE_NOMEM
                          : sqlite3_bind_text(r->st, ++r->n, (const char *)text->data,
                                              (int)text->size, SQLITE_TRANSIENT));
    hf_buffer_free(text);
}

/* What the interface accepts as any JSON, as the text of the JSON; NULL: nothing was stored. */
static void add_stored(struct row *r, struct hf_bytes stored)
{
    struct hf_buffer text = { 0 };
    struct hf_json j = { .out = &text };
    if (stored.size == 0) {
        add_null(r);
        return;
    }
    hf_json_stored(&j, stored);
    add_json(r, &text);
}

static void add_hex(struct row *r, const uint8_t *bytes)
{
    char hex[2 * HF_DIGEST_SIZE + 1];
    hf_audit_hex(bytes, HF_DIGEST_SIZE, hex);
    add_text(r, hex);
}

static void write_failed(const struct sqlite *x, struct hf_error *why)
{
    (void)hf_error_set(why, HF_STORAGE_FAILURE,
                       "%.200s cannot be written: %.200s. Free disk space, or name another file.",
                       x->path, sqlite3_errmsg(x->db));
}

/* Execute the statement and release the borrowed values. */
static bool put(struct sqlite *x, struct row *r, struct hf_error *why)
{
    bool done = r->failed == SQLITE_OK && sqlite3_step(r->st) == SQLITE_DONE;
    if (!done)
        write_failed(x, why);
    sqlite3_reset(r->st);
    sqlite3_clear_bindings(r->st);
    return done;
}

/* ---- Rows ---- */

static bool put_hold(struct sqlite *x, const struct hf_audit_entry *e, const struct hf_hold *h,
                     struct hf_error *why)
{
    uint8_t digest[HF_DIGEST_SIZE];
    hf_audit_digest_id(h->id, digest);
    struct row r = row_of(x, ADD_HOLD);
    add_uint(&r, h->ordinal);
    add_text(&r, h->id);
    add_bytes(&r, h->tenant);
    add_bytes(&r, h->resource);
    add_bytes(&r, h->requester);
    add_text(&r, hf_audit_state_name(h->state));
    add_int(&r, h->placed_at);
    add_int(&r, h->expires_at);
    add_time(&r, h->ended_at);
    add_id(&r, h->reverses);
    add_id(&r, h->reacquires);
    add_uint(&r, h->previous);
    add_uint(&r, e->position);
    add_hex(&r, digest);
    if (!put(x, &r, why))
        return false;
    r = row_of(x, ADD_HOLD_EVENT);
    add_uint(&r, e->position);
    add_uint(&r, h->ordinal);
    add_text(&r, h->id);
    add_int(&r, e->recorded_at);
    add_text(&r, hf_action_name(e->action));
    add_text(&r, hf_audit_state_name(h->state));
    return put(x, &r, why);
}

static bool put_resource(struct sqlite *x, const struct hf_audit_entry *e,
                         const struct hf_resource *row, struct hf_error *why)
{
    struct row r = row_of(x, ADD_RESOURCE);
    add_bytes(&r, row->tenant);
    add_bytes(&r, row->name);
    add_uint(&r, row->capacity);
    add_uint(&r, row->held);
    add_uint(&r, row->confirmed);
    add_int(&r, row->open);
    add_int(&r, row->require_fence);
    add_uint(&r, row->fence);
    add_uint(&r, row->newest);
    add_int(&r, row->created_at);
    if (!put(x, &r, why))
        return false;
    r = row_of(x, ADD_RESOURCE_EVENT);
    add_uint(&r, e->position);
    add_int(&r, e->recorded_at);
    add_bytes(&r, row->tenant);
    add_bytes(&r, row->name);
    add_uint(&r, row->capacity);
    add_uint(&r, row->held);
    add_uint(&r, row->confirmed);
    add_int(&r, row->open);
    add_int(&r, row->require_fence);
    add_uint(&r, row->fence);
    return put(x, &r, why);
}

static bool put_guard(struct sqlite *x, const struct hf_guard *g, struct hf_error *why)
{
    char match[64] = "";
    for (uint32_t i = 0, used = 0; i < g->match_count && used < sizeof match; i++)
        used += (uint32_t)snprintf(match + used, sizeof match - used, "%s%s", i ? "," : "",
                                   hf_audit_match_name(g->match[i]));
    struct row r = row_of(x, ADD_GUARD);
    add_bytes(&r, g->tenant);
    add_bytes(&r, g->name);
    add_int(&r, g->window_ms);
    add_text(&r, match[0] ? match : "exact");
    add_text(&r, g->on_unavailable == HF_FAIL_CLOSED ? "closed" : "open");
    add_int(&r, g->durable);
    add_int(&r, g->created_at);
    return put(x, &r, why);
}

static bool put_identity(struct sqlite *x, const struct hf_audit_entry *e,
                         const struct hf_entry *row, struct hf_error *why)
{
    struct row r = row_of(x, ADD_GUARD_ENTRY);
    add_uint(&r, e->position);
    add_bytes(&r, row->tenant);
    add_bytes(&r, row->guard);
    add_bytes(&r, row->identity);
    add_int(&r, row->recorded_at);
    add_time(&r, row->expires_at);
    add_stored(&r, row->has_result ? row->result : hf_mem(NULL, 0));
    return put(x, &r, why);
}

static bool put_claim(struct sqlite *x, const struct hf_audit_entry *e, const struct hf_claim *c,
                      struct hf_error *why)
{
    struct row r = row_of(x, ADD_CLAIM);
    add_bytes(&r, c->tenant);
    add_bytes(&r, c->key);
    add_text(&r, hf_audit_claim_name(c->state));
    add_text(&r, c->on_abandon == HF_ABANDON_RETRY ? "retry" : "unknown");
    add_uint(&r, c->fence);
    add_int(&r, c->begun_at);
    add_int(&r, c->lease_expires_at);
    add_time(&r, c->settled_at);
    add_time(&r, c->expires_at);
    add_hex(&r, c->fingerprint);
    add_stored(&r, c->response);
    if (!put(x, &r, why))
        return false;
    r = row_of(x, ADD_CLAIM_EVENT);
    add_uint(&r, e->position);
    add_int(&r, e->recorded_at);
    add_bytes(&r, c->tenant);
    add_bytes(&r, c->key);
    add_text(&r, hf_action_name(e->action));
    add_text(&r, hf_audit_claim_name(c->state));
    add_uint(&r, c->fence);
    add_int(&r, c->lease_expires_at);
    add_time(&r, c->expires_at);
    add_stored(&r, c->response);
    return put(x, &r, why);
}

static bool put_lease(struct sqlite *x, const struct hf_audit_entry *e,
                      const struct hf_audit_row *row, struct hf_error *why)
{
    const struct hf_lease *l = &row->lease;
    bool leaves = row->flags & HF_AUDIT_ROW_LEAVES;
    struct row r = row_of(x, leaves ? DROP_LEASE : ADD_LEASE);
    add_bytes(&r, l->tenant);
    add_bytes(&r, l->name);
    if (!leaves) {
        add_bytes(&r, l->holder);
        add_uint(&r, l->fence);
        add_int(&r, l->ttl_ms);
        add_int(&r, l->granted_at);
        add_int(&r, l->expires_at);
        add_time(&r, l->released_at);
    }
    if (!put(x, &r, why))
        return false;
    r = row_of(x, ADD_LEASE_EVENT);
    add_uint(&r, e->position);
    add_int(&r, e->recorded_at);
    add_bytes(&r, l->tenant);
    add_bytes(&r, l->name);
    add_text(&r, hf_action_name(e->action));
    add_bytes(&r, l->holder);
    add_uint(&r, l->fence);
    add_int(&r, l->expires_at);
    add_time(&r, l->released_at);
    return put(x, &r, why);
}

/* The number of a node, or what it counted up and down. */
static void item_json(struct hf_json *j, enum hf_register_type type, const struct hf_item *item)
{
    hf_json_name_bytes(j, item->name);
    if (type != HF_TYPE_UPDOWN) {
        hf_json_uint(j, item->up);
        return;
    }
    hf_json_object(j);
    hf_json_name(j, "up");
    hf_json_uint(j, item->up);
    hf_json_name(j, "down");
    hf_json_uint(j, item->down);
    hf_json_object_end(j);
}

/* As the interface shows it: ["a","b"], {"node":1} or {"node":{"up":1,"down":2}}. */
static void add_items(struct row *r, const struct hf_value *v)
{
    struct hf_buffer text = { 0 };
    struct hf_json j = { .out = &text };
    bool is_set = v->type == HF_TYPE_UNION;
    if (is_set)
        hf_json_array(&j);
    else
        hf_json_object(&j);
    for (size_t i = 0; i < v->item_count; i++)
        if (is_set)
            hf_json_opaque(&j, v->items[i].name);
        else
            item_json(&j, v->type, &v->items[i]);
    if (is_set)
        hf_json_array_end(&j);
    else
        hf_json_object_end(&j);
    add_json(r, &text);
}

/* Two columns: the value, and the total of a counter. Numbers and flags are integers, everything
 * else is JSON text; only what cannot be decoded stays in its stored form. */
static void add_value(struct sqlite *x, struct row *r, const struct hf_value *stored)
{
    struct hf_value v;
    bool good = hf_audit_value_read(stored, x->items, HF_MERGE_ITEMS_MAX, &v);
    if (!good || v.item_count > HF_MERGE_ITEMS_MAX) {
        add_bytes(r, stored->bytes);
        add_null(r);
        return;
    }
    switch (v.type) {
    case HF_TYPE_MAX:
    case HF_TYPE_MIN: add_int(r, v.number); break;
    case HF_TYPE_OR: add_int(r, v.flag); break;
    case HF_TYPE_PLAIN:
    case HF_TYPE_LWW: add_stored(r, v.bytes); break;
    case HF_TYPE_DELETED: add_null(r); break;
    default: add_items(r, &v);
    }
    if (v.type == HF_TYPE_COUNTER || v.type == HF_TYPE_UPDOWN)
        add_int(r, v.number);
    else
        add_null(r);
}

static bool put_register(struct sqlite *x, const struct hf_audit_entry *e,
                         const struct hf_register *g, struct hf_error *why)
{
    struct row r = row_of(x, ADD_REGISTER);
    add_bytes(&r, g->tenant);
    add_bytes(&r, g->name);
    add_text(&r, hf_audit_type_name(g->value.type));
    add_uint(&r, g->version);
    add_uint(&r, g->fence);
    add_int(&r, g->require_fence);
    add_int(&r, g->changed_at);
    add_value(x, &r, &g->value);
    if (!put(x, &r, why))
        return false;
    r = row_of(x, ADD_REGISTER_EVENT);
    add_uint(&r, e->position);
    add_int(&r, e->recorded_at);
    add_bytes(&r, g->tenant);
    add_bytes(&r, g->name);
    add_uint(&r, g->version);
    add_uint(&r, g->fence);
    add_int(&r, g->require_fence);
    add_value(x, &r, &g->value);
    return put(x, &r, why);
}

static bool put_value(struct sqlite *x, const struct hf_audit_entry *e,
                      const struct hf_audit_row *row, struct hf_error *why)
{
    bool leaves = row->flags & HF_AUDIT_ROW_LEAVES;
    struct row r = row_of(x, leaves ? DROP_VALUE : ADD_VALUE);
    add_bytes(&r, e->tenant);
    add_bytes(&r, row->pair.key);
    if (!leaves)
        add_bytes(&r, row->pair.value);
    return put(x, &r, why);
}

static bool put_client(struct sqlite *x, const struct hf_audit_entry *e,
                       const struct hf_audit_client *c, struct hf_error *why)
{
    struct row r = row_of(x, ADD_CLIENT);
    add_bytes(&r, e->tenant);
    add_bytes(&r, c->name);
    add_uint(&r, c->highest);
    add_hex(&r, c->used);
    return put(x, &r, why);
}

static bool put_outbox(struct sqlite *x, const struct hf_audit_entry *e, const struct hf_outbox *o,
                       struct hf_error *why)
{
    struct row r = row_of(x, ADD_OUTBOX);
    add_uint(&r, o->number);
    add_uint(&r, e->position);
    add_bytes(&r, o->tenant);
    add_bytes(&r, o->key);
    add_bytes(&r, o->topic);
    add_bytes(&r, o->payload);
    add_int(&r, (int64_t)o->state);
    add_int(&r, o->created_at);
    return put(x, &r, why);
}

static bool put_config(struct sqlite *x, const struct hf_audit_entry *e,
                       const struct hf_audit_config *c, struct hf_error *why)
{
    struct row r = row_of(x, ADD_CONFIG);
    add_uint(&r, e->position);
    add_int(&r, e->recorded_at);
    add_int(&r, c->idempotency_window_ms);
    add_uint(&r, c->token_max_length);
    add_text(&r, c->strict ? "strict" : "open");
    add_bytes(&r, c->digest_name);
    add_bytes(&r, c->program);
    return put(x, &r, why);
}

static bool put_successor(struct sqlite *x, const struct hf_audit_entry *e,
                          const struct hf_audit_successor *v, struct hf_error *why)
{
    struct row r = row_of(x, ADD_SUCCESSOR);
    add_text(&r, v->original);
    add_text(&r, v->successor);
    add_uint(&r, e->position);
    return put(x, &r, why);
}

static bool put_row(struct sqlite *x, const struct hf_audit_entry *e,
                    const struct hf_audit_row *row, struct hf_error *why)
{
    switch (row->kind) {
    case HF_ROW_HOLD: return put_hold(x, e, &row->hold, why);
    case HF_ROW_RESOURCE: return put_resource(x, e, &row->resource, why);
    case HF_ROW_GUARD: return put_guard(x, &row->guard, why);
    case HF_ROW_ENTRY: return put_identity(x, e, &row->identity, why);
    case HF_ROW_CLAIM: return put_claim(x, e, &row->claim, why);
    case HF_ROW_LEASE: return put_lease(x, e, row, why);
    case HF_ROW_REGISTER: return put_register(x, e, &row->reg, why);
    case HF_ROW_CLIENT: return put_client(x, e, &row->client, why);
    case HF_ROW_VALUE: return put_value(x, e, row, why);
    case HF_ROW_OUTBOX: return put_outbox(x, e, &row->outbox, why);
    case HF_ROW_SUCCESSOR: return put_successor(x, e, &row->successor, why);
    case HF_ROW_CONFIG: return put_config(x, e, &row->config, why);
    }
    return true;
}

/* ---- Batches and entries ---- */

static bool put_token(struct sqlite *x, const struct hf_audit_entry *e,
                      const struct hf_audit_row *answer, struct hf_error *why)
{
    struct row r = row_of(x, ADD_TOKEN);
    add_uint(&r, e->position);
    add_bytes(&r, e->tenant);
    if (e->remember == HF_REMEMBER_KEY) {
        add_bytes(&r, e->key);
        add_null(&r);
        add_null(&r);
    } else {
        add_null(&r);
        add_bytes(&r, e->key);
        add_uint(&r, e->sequence);
    }
    add_text(&r, hf_action_name(e->action));
    add_text(&r, hf_status_code(e->status));
    add_hex(&r, e->digest);
    add_int(&r, e->recorded_at);
    add_time(&r, e->expires_at);
    if (answer && answer->kind == HF_ROW_HOLD)
        add_text(&r, answer->hold.id);
    else
        add_null(&r);
    if (answer && answer->kind == HF_ROW_VALUE)
        add_bytes(&r, answer->pair.value);
    else
        add_null(&r);
    return put(x, &r, why);
}

static bool sqlite_entry(void *ctx, const struct hf_audit_batch *batch,
                         const struct hf_audit_entry *e, const struct hf_audit_row *rows,
                         const struct hf_audit_row *answer, struct hf_error *why)
{
    struct sqlite *x = ctx;
    struct row r = row_of(x, ADD_ENTRY);
    add_uint(&r, e->position);
    add_uint(&r, x->options->has_tenant ? 0 : batch->sequence);
    add_bytes(&r, e->tenant);
    add_text(&r, hf_action_name(e->action));
    add_text(&r, hf_status_code(e->status));
    add_int(&r, e->recorded_at);
    add_int(&r, e->row_count);
    if (!put(x, &r, why))
        return false;
    if (e->remember != HF_REMEMBER_NOT && !put_token(x, e, answer, why))
        return false;
    for (size_t i = 0; i < e->row_count; i++)
        if (!put_row(x, e, &rows[i], why))
            return false;
    return true;
}

static bool sqlite_batch(void *ctx, const struct hf_audit_batch *b, struct hf_error *why)
{
    struct sqlite *x = ctx;
    struct row r = row_of(x, ADD_BATCH);
    add_uint(&r, b->sequence);
    add_uint(&r, b->position);
    add_uint(&r, b->length);
    add_uint(&r, b->entry_count);
    add_int(&r, b->now);
    add_hex(&r, b->chain);
    add_hex(&r, b->hash);
    add_int(&r, b->chain_fits);
    if (b->writer) {
        add_uint(&r, b->writer);
        add_uint(&r, b->writer_batch);
    } else {
        add_null(&r);
        add_null(&r);
    }
    return put(x, &r, why);
}

/* ---- The whole ---- */

static bool run(struct sqlite *x, const char *sql, struct hf_error *why)
{
    if (sqlite3_exec(x->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    write_failed(x, why);
    return false;
}

static bool put_bytes(struct sqlite *x, const char *name, struct hf_bytes value,
                      struct hf_error *why)
{
    struct row r = row_of(x, ADD_STORE);
    add_text(&r, name);
    add_bytes(&r, value);
    return put(x, &r, why);
}

static bool put_fact(struct sqlite *x, const char *name, const char *value, struct hf_error *why)
{
    return put_bytes(x, name, hf_str(value), why);
}

/* The file is new and gets its name when it is complete, so SQLite needs no journal. */
static bool sqlite_begin(void *ctx, const struct hf_audit_journal *journal,
                         const struct hf_audit_export_options *options, struct hf_error *why)
{
    struct sqlite *x = ctx;
    char hex[33];
    if (!run(x, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 8192;",
             why) ||
        !run(x, hf_audit_sqlite_tables(), why) || !run(x, "BEGIN", why))
        return false;
    for (int i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v2(x->db, statements[i], -1, &x->st[i], NULL) != SQLITE_OK) {
            write_failed(x, why);
            return false;
        }
    hf_audit_hex(journal->store_id, sizeof journal->store_id, hex);
    x->options = options;
    return put_fact(x, "format", "holdfast-export/1", why) &&
           put_fact(x, "program", HF_VERSION, why) &&
           (options->has_tenant ? put_bytes(x, "tenant", options->tenant, why)
                                : put_fact(x, "store_id", hex, why));
}

static bool put_number(struct sqlite *x, const char *name, uint64_t number, struct hf_error *why)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return put_fact(x, name, text, why);
}

/* SQLite does not sync (synchronous = OFF): one sync at the end is enough. */
static bool make_durable(const struct sqlite *x, struct hf_error *why)
{
    int fd = open(x->path, O_RDONLY | O_CLOEXEC);
    bool durable = fd >= 0 && fsync(fd) == 0;
    if (!durable) {
        (void)hf_error_set(why, HF_STORAGE_FAILURE,
                           "%.200s cannot be synced to disk: %s. Name another file.", x->path,
                           strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    return durable;
}

/* Facts about the whole journal: not for the export of one tenant. */
static bool put_journal(struct sqlite *x, const struct hf_audit_export_sum *sum,
                        struct hf_error *why)
{
    char hex[2 * HF_DIGEST_SIZE + 1];
    hf_audit_hex(sum->chain_head, HF_DIGEST_SIZE, hex);
    return put_fact(x, "chain_head", hex, why) && put_number(x, "batches", sum->batches, why) &&
           put_number(x, "entries_unreadable", sum->unreadable, why) &&
           put_number(x, "damages", sum->damages, why) &&
           put_number(x, "torn_bytes", sum->torn_bytes, why);
}

static bool sqlite_end(void *ctx, const struct hf_audit_export_sum *sum, struct hf_error *why)
{
    struct sqlite *x = ctx;
    bool good = put_number(x, "entries", sum->entries, why) &&
                (x->options->has_tenant
                     ? put_number(x, "damaged", sum->damages > 0 || sum->unreadable > 0, why)
                     : put_journal(x, sum, why)) &&
                put_fact(x, "first_at", hf_audit_at(sum->first_now).text, why) &&
                put_fact(x, "last_at", hf_audit_at(sum->last_now).text, why) &&
                run(x, hf_audit_sqlite_views(), why) && run(x, "COMMIT", why);
    return good && make_durable(x, why);
}

static void sqlite_close(void *ctx)
{
    struct sqlite *x = ctx;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(x->st[i]);
    sqlite3_close(x->db);
    free(x->path);
    free(x);
}

/* SQLite would create a file that all users can read. It accepts an empty file as a new
 * database. */
static bool file_make(const char *path, struct hf_error *why)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
        return true;
    }
    (void)hf_error_set(why, HF_STORAGE_FAILURE, "%.300s cannot be created: %s. Name another file.",
                       path, strerror(errno));
    return false;
}

bool hf_audit_sqlite_open(const char *path, struct hf_audit_sink *sink, struct hf_error *why)
{
    struct sqlite *x = calloc(1, sizeof *x);
    if (x)
        x->path = malloc(strlen(path) + 1);
    if (!x || !x->path) {
        *why = (struct hf_error){ HF_NO_MEMORY, "Out of memory while exporting the journal." };
        free(x);
        return false;
    }
    memcpy(x->path, path, strlen(path) + 1);
    if (!file_make(path, why)) {
        free(x->path);
        free(x);
        return false;
    }
    if (sqlite3_open_v2(path, &x->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        write_failed(x, why);
        sqlite_close(x);
        return false;
    }
    *sink = (struct hf_audit_sink){ x,          sqlite_begin, sqlite_batch, sqlite_entry,
                                    sqlite_end, sqlite_close };
    return true;
}
