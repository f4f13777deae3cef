/* Rows of the tables, from the entries that make them. Written only from the comments of the
 * tables. */
#include "audit/fields.h"

#include "audit/words.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Building ---- */

struct building {
    struct hf_audit_fields *out;
    struct hf_arena *arena;
    bool failed;
};

static struct building begin(struct hf_audit_fields *out, enum hf_audit_stored table, size_t keys,
                             struct hf_arena *arena)
{
    *out = (struct hf_audit_fields){ .table = table, .keys = keys };
    return (struct building){ .out = out, .arena = arena };
}

static void add(struct building *b, const char *name, enum hf_audit_field_type type,
                struct hf_bytes value)
{
    b->out->field[b->out->count++] = (struct hf_audit_field){ name, type, value };
}

static void add_null(struct building *b, const char *name)
{
    add(b, name, HF_AUDIT_NULL, hf_mem("", 0));
}

static void add_text(struct building *b, const char *name, struct hf_bytes value)
{
    add(b, name, HF_AUDIT_TEXT, value);
}

static void add_word(struct building *b, const char *name, const char *word)
{
    add(b, name, HF_AUDIT_TEXT, hf_str(word));
}

static void add_bytes(struct building *b, const char *name, struct hf_bytes value)
{
    add(b, name, HF_AUDIT_BYTES, value);
}

static void add_key(struct building *b, const char *name, struct hf_bytes key)
{
    struct hf_bytes text = hf_audit_key_text(key, b->arena);
    b->failed |= !text.data && text.size > 0;
    add(b, name, HF_AUDIT_TEXT, b->failed ? hf_mem("", 0) : text);
}

static void add_digits(struct building *b, const char *name, enum hf_audit_field_type type,
                       const char *digits)
{
    size_t size = strlen(digits);
    char *copy = hf_arena_take(b->arena, size);
    b->failed |= !copy;
    if (copy)
        memcpy(copy, digits, size);
    add(b, name, type, hf_mem(copy, copy ? size : 0));
}

static void add_uint(struct building *b, const char *name, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    add_digits(b, name, HF_AUDIT_NUMBER, digits);
}

static void add_int(struct building *b, const char *name, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    add_digits(b, name, HF_AUDIT_NUMBER, digits);
}

static void add_time(struct building *b, const char *name, hf_time value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    add_digits(b, name, HF_AUDIT_TIME_MS, value == INT64_MAX ? "infinity" : digits);
}

static void add_time_or_null(struct building *b, const char *name, hf_time value)
{
    value == 0 ? add_null(b, name) : add_time(b, name, value);
}

static void add_bool(struct building *b, const char *name, bool value)
{
    add_word(b, name, value ? "true" : "false");
}

static void add_id_or_null(struct building *b, const char *name, const char *id)
{
    *id ? add_word(b, name, id) : add_null(b, name);
}

static bool end(struct building *b)
{
    if (b->failed)
        b->out->count = 1;
    return !b->failed;
}

static bool none(struct hf_audit_fields *out)
{
    out->count = 0;
    return false;
}

/* ---- Keys as text ---- */

static size_t character(const unsigned char *p, size_t left)
{
    size_t size = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    return p[0] != 0 && size <= left && hf_utf8_valid(hf_mem(p, size)) ? size : 0;
}

struct hf_bytes hf_audit_key_text(struct hf_bytes key, struct hf_arena *arena)
{
    const unsigned char *p = key.data;
    if (key.size == 0 ||
        (!memchr(p, '\\', key.size) && !memchr(p, '\0', key.size) && hf_utf8_valid(key)))
        return key;
    char *text = hf_arena_take(arena, 4 * key.size + 1);
    size_t n = 0;
    if (!text)
        return hf_mem(NULL, 1);
    for (size_t at = 0, size; at < key.size; at += size ? size : 1) {
        size = character(p + at, key.size - at);
        if (size == 0) {
            static const char digits[] = "0123456789abcdef";
            const char escape[] = { '\\', 'x', digits[p[at] >> 4], digits[p[at] & 15] };
            memcpy(text + n, escape, sizeof escape);
            n += sizeof escape;
            continue;
        }
        if (p[at] == '\\')
            text[n++] = '\\';
        memcpy(text + n, p + at, size);
        n += size;
    }
    return hf_mem(text, n);
}

/* ---- The rows ---- */

static bool hold_fields(const struct hf_hold *h, struct hf_arena *arena,
                        struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_HOLD, 1, arena);
    add_uint(&b, "ordinal", h->ordinal);
    add_word(&b, "id", h->id);
    add_text(&b, "tenant", h->tenant);
    add_text(&b, "resource", h->resource);
    add_text(&b, "requester", h->requester);
    add_word(&b, "state", hf_audit_state_name(h->state));
    add_time(&b, "placed_at", h->placed_at);
    add_time(&b, "expires_at", h->expires_at);
    add_time_or_null(&b, "ended_at", h->ended_at);
    add_uint(&b, "previous", h->previous);
    add_id_or_null(&b, "reverses", h->reverses);
    add_id_or_null(&b, "reacquires", h->reacquires);
    return end(&b);
}

static bool succeeded_fields(const struct hf_audit_entry *e, const struct hf_audit_successor *r,
                             struct hf_arena *arena, struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_SUCCEEDED, 2, arena);
    add_text(&b, "tenant", e->tenant);
    add_word(&b, "id", r->original);
    add_word(&b, "succeeded_by", r->successor);
    return end(&b);
}

static bool resource_fields(const struct hf_resource *r, struct hf_arena *arena,
                            struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_RESOURCE, 2, arena);
    add_text(&b, "tenant", r->tenant);
    add_text(&b, "name", r->name);
    add_uint(&b, "capacity", r->capacity);
    add_uint(&b, "held", r->held);
    add_uint(&b, "confirmed", r->confirmed);
    add_bool(&b, "open", r->open);
    add_bool(&b, "require_fence", r->require_fence);
    add_uint(&b, "fence", r->fence);
    add_uint(&b, "newest", r->newest);
    add_time(&b, "created_at", r->created_at);
    return end(&b);
}

/* The steps, separated by commas. */
static void add_match(struct building *b, const struct hf_guard *g)
{
    char *text = hf_arena_take(b->arena, HF_MATCH_MAX * 16);
    size_t n = 0;
    b->failed |= !text;
    for (uint32_t i = 0; text && i < g->match_count && i < HF_MATCH_MAX; i++)
        n += (size_t)snprintf(text + n, 16, "%s%s", i ? "," : "", hf_audit_match_name(g->match[i]));
    add_text(b, "match", hf_mem(text, n));
}

static bool guard_fields(const struct hf_guard *g, struct hf_arena *arena,
                         struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_GUARD, 2, arena);
    add_text(&b, "tenant", g->tenant);
    add_text(&b, "name", g->name);
    add_int(&b, "window_ms", g->window_ms);
    add_match(&b, g);
    add_word(&b, "on_unavailable", g->on_unavailable == HF_FAIL_CLOSED ? "closed" : "open");
    add_bool(&b, "durable", g->durable);
    add_time(&b, "created_at", g->created_at);
    return end(&b);
}

static bool identity_fields(const struct hf_audit_entry *e, const struct hf_entry *i,
                            struct hf_arena *arena, struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_IDENTITY, 3, arena);
    add_text(&b, "tenant", i->tenant);
    add_text(&b, "guard", i->guard);
    add_bytes(&b, "identity", i->identity);
    i->has_result ? add_bytes(&b, "result", i->result) : add_null(&b, "result");
    add_time(&b, "recorded_at", i->recorded_at);
    add_time(&b, "expires_at", i->expires_at);
    add_uint(&b, "number", e->position);
    return end(&b);
}

/* A claim is a token row with the action begin. */
static bool claim_fields(const struct hf_audit_entry *e, const struct hf_claim *c,
                         struct hf_arena *arena, struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_TOKEN, 2, arena);
    add_text(&b, "tenant", c->tenant);
    add_key(&b, "key", c->key);
    add_word(&b, "action", hf_action_name(HF_BEGIN));
    add_word(&b, "status", hf_status_code(HF_OK));
    add_bytes(&b, "digest", hf_mem(c->fingerprint, HF_DIGEST_SIZE));
    add_time(&b, "recorded_at", c->begun_at);
    add_time(&b, "expires_at", c->expires_at ? c->expires_at : INT64_MAX);
    add_uint(&b, "entry", e->position);
    add_null(&b, "hold");
    add_null(&b, "previous");
    add_word(&b, "state", hf_audit_claim_name(c->state));
    add_word(&b, "on_abandon", c->on_abandon == HF_ABANDON_RETRY ? "retry" : "unknown");
    add_uint(&b, "fence", c->fence);
    add_int(&b, "lease_ms", c->lease_ms);
    add_time(&b, "lease_expires_at", c->lease_expires_at);
    add_time_or_null(&b, "settled_at", c->settled_at);
    c->response.size > 0 ? add_bytes(&b, "response", c->response) : add_null(&b, "response");
    c->retention_ms ? add_int(&b, "retention_ms", c->retention_ms) : add_null(&b, "retention_ms");
    return end(&b);
}

/* A deleted lease has only its key fields. */
static bool lease_fields(const struct hf_audit_row *row, struct hf_arena *arena,
                         struct hf_audit_fields *out)
{
    const struct hf_lease *l = &row->lease;
    struct building b = begin(out, HF_AUDIT_STORED_LEASE, 2, arena);
    add_text(&b, "tenant", l->tenant);
    add_text(&b, "name", l->name);
    if (row->flags & HF_AUDIT_ROW_LEAVES)
        return end(&b);
    add_text(&b, "holder", l->holder);
    add_uint(&b, "fence", l->fence);
    add_int(&b, "ttl_ms", l->ttl_ms);
    add_time(&b, "granted_at", l->granted_at);
    add_time(&b, "expires_at", l->expires_at);
    add_time_or_null(&b, "released_at", l->released_at);
    return end(&b);
}

static bool register_fields(const struct hf_register *r, struct hf_arena *arena,
                            struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_REGISTER, 2, arena);
    add_text(&b, "tenant", r->tenant);
    add_text(&b, "name", r->name);
    add_word(&b, "type", hf_audit_type_name(r->value.type));
    add_bytes(&b, "value", r->value.bytes);
    add_uint(&b, "version", r->version);
    add_uint(&b, "fence", r->fence);
    add_bool(&b, "require_fence", r->require_fence);
    add_time(&b, "changed_at", r->changed_at);
    return end(&b);
}

static bool client_fields(const struct hf_audit_entry *e, const struct hf_audit_client *c,
                          struct hf_arena *arena, struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_CLIENT, 2, arena);
    add_text(&b, "tenant", e->tenant);
    add_text(&b, "name", c->name);
    add_uint(&b, "highest", c->highest);
    add_bytes(&b, "used", hf_mem(c->used, HF_SEQUENCE_WINDOW / 8));
    return end(&b);
}

/* A deleted value has only its key fields. */
static bool value_fields(const struct hf_audit_entry *e, const struct hf_audit_row *row,
                         struct hf_arena *arena, struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_VALUE, 2, arena);
    add_text(&b, "tenant", e->tenant);
    add_bytes(&b, "key", row->pair.key);
    if (!(row->flags & HF_AUDIT_ROW_LEAVES))
        add_bytes(&b, "value", row->pair.value);
    return end(&b);
}

static bool outbox_fields(const struct hf_outbox *o, struct hf_arena *arena,
                          struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_OUTBOX, 1, arena);
    add_uint(&b, "number", o->number);
    add_text(&b, "tenant", o->tenant);
    add_key(&b, "key", o->key);
    add_key(&b, "topic", o->topic);
    add_bytes(&b, "payload", o->payload);
    add_word(&b, "state", o->state == HF_OUTBOX_PENDING ? "pending" : "unknown");
    add_time(&b, "created_at", o->created_at);
    return end(&b);
}

static bool config_fields(const struct hf_audit_config *c, struct hf_arena *arena,
                          struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_CONFIG, 0, arena);
    add_int(&b, "idempotency_window_ms", c->idempotency_window_ms);
    add_uint(&b, "token_max_length", c->token_max_length);
    add_bool(&b, "registry_strict", c->strict);
    add_text(&b, "digest_name", c->digest_name);
    add_text(&b, "program", c->program);
    return end(&b);
}

bool hf_audit_fields_of(const struct hf_audit_entry *e, const struct hf_audit_row *row,
                        struct hf_arena *arena, struct hf_audit_fields *out)
{
    switch (row->kind) {
    case HF_ROW_HOLD: return hold_fields(&row->hold, arena, out);
    case HF_ROW_RESOURCE: return resource_fields(&row->resource, arena, out);
    case HF_ROW_GUARD: return guard_fields(&row->guard, arena, out);
    case HF_ROW_ENTRY: return identity_fields(e, &row->identity, arena, out);
    case HF_ROW_CLAIM: return claim_fields(e, &row->claim, arena, out);
    case HF_ROW_LEASE: return lease_fields(row, arena, out);
    case HF_ROW_REGISTER: return register_fields(&row->reg, arena, out);
    case HF_ROW_CLIENT: return client_fields(e, &row->client, arena, out);
    case HF_ROW_VALUE: return value_fields(e, row, arena, out);
    case HF_ROW_OUTBOX: return outbox_fields(&row->outbox, arena, out);
    case HF_ROW_SUCCESSOR: return succeeded_fields(e, &row->successor, arena, out);
    case HF_ROW_CONFIG: return config_fields(&row->config, arena, out);
    }
    return none(out);
}

bool hf_audit_fields_made(const struct hf_audit_entry *e, const struct hf_audit_row *row,
                          struct hf_arena *arena, struct hf_audit_fields *out)
{
    bool resource = row->kind == HF_ROW_RESOURCE;
    if (!resource && row->kind != HF_ROW_GUARD)
        return none(out);
    struct building b =
        begin(out, resource ? HF_AUDIT_STORED_RESOURCE_MADE : HF_AUDIT_STORED_GUARD_MADE, 2, arena);
    add_text(&b, "tenant", e->tenant);
    add_text(&b, "name", resource ? row->resource.name : row->guard.name);
    add_uint(&b, "number", e->position);
    add_time(&b, "created_at", resource ? row->resource.created_at : row->guard.created_at);
    return end(&b);
}

/* ---- Keys and numbers ---- */

static bool call_fields(const struct hf_audit_entry *e, struct hf_arena *arena,
                        struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_CALL, 3, arena);
    add_text(&b, "tenant", e->tenant);
    add_text(&b, "client", e->key);
    add_uint(&b, "slot", e->sequence % HF_SEQUENCE_WINDOW);
    add_uint(&b, "sequence", e->sequence);
    add_word(&b, "action", hf_action_name(e->action));
    add_word(&b, "status", hf_status_code(e->status));
    add_bytes(&b, "digest", hf_mem(e->digest, HF_DIGEST_SIZE));
    add_time(&b, "recorded_at", e->recorded_at);
    add_uint(&b, "entry", e->position);
    return end(&b);
}

bool hf_audit_fields_remembered(const struct hf_audit_entry *e, const struct hf_audit_row *rows,
                                struct hf_arena *arena, struct hf_audit_fields *out)
{
    static const char *const of_claims[] = { "state",    "on_abandon",       "fence",
                                             "lease_ms", "lease_expires_at", "settled_at",
                                             "response", "retention_ms" };
    struct hf_audit_row answer;
    if (e->remember == HF_REMEMBER_SEQUENCE)
        return call_fields(e, arena, out);
    if (e->remember != HF_REMEMBER_KEY)
        return none(out);
    struct building b = begin(out, HF_AUDIT_STORED_TOKEN, 2, arena);
    add_text(&b, "tenant", e->tenant);
    add_key(&b, "key", e->key);
    add_word(&b, "action", hf_action_name(e->action));
    add_word(&b, "status", hf_status_code(e->status));
    add_bytes(&b, "digest", hf_mem(e->digest, HF_DIGEST_SIZE));
    add_time(&b, "recorded_at", e->recorded_at);
    add_time(&b, "expires_at", e->expires_at);
    add_uint(&b, "entry", e->position);
    bool has_hold = hf_audit_answer_read(e, rows, &answer) && answer.kind == HF_ROW_HOLD;
    has_hold ? add_uint(&b, "hold", answer.hold.ordinal) : add_null(&b, "hold");
    bool has_previous =
        has_hold && e->action == HF_PLACE_HOLD && e->status == HF_OK && answer.hold.previous > 0;
    has_previous ? add_uint(&b, "previous", answer.hold.previous) : add_null(&b, "previous");
    for (size_t i = 0; i < sizeof of_claims / sizeof *of_claims; i++)
        add_null(&b, of_claims[i]);
    return end(&b);
}

/* The key of the claim that the entry changes, or NULL. */
static const struct hf_bytes *claim_key(const struct hf_audit_entry *e,
                                        const struct hf_audit_row *rows)
{
    for (size_t i = 0; i < e->row_count; i++)
        if (rows[i].kind == HF_ROW_CLAIM)
            return &rows[i].claim.key;
    return NULL;
}

/* The key, client/number, or the claim's key, as text. */
static void add_under(struct building *b, const struct hf_audit_entry *e,
                      const struct hf_audit_row *rows)
{
    char number[24];
    if (e->remember == HF_REMEMBER_KEY) {
        add_key(b, "key", e->key);
        return;
    }
    if (e->remember != HF_REMEMBER_SEQUENCE) {
        const struct hf_bytes *key = claim_key(e, rows);
        if (key)
            add_key(b, "key", *key);
        else
            add_null(b, "key");
        return;
    }
    size_t digits = (size_t)snprintf(number, sizeof number, "/%" PRIu64, e->sequence);
    char *text = hf_arena_take(b->arena, e->key.size + digits);
    b->failed |= !text;
    if (text && e->key.size > 0)
        memcpy(text, e->key.data, e->key.size);
    if (text)
        memcpy(text + e->key.size, number, digits);
    add_key(b, "key", hf_mem(text, text ? e->key.size + digits : 0));
}

bool hf_audit_fields_beside(const struct hf_audit_entry *e, const struct hf_audit_row *rows,
                            struct hf_arena *arena, struct hf_audit_fields *out)
{
    struct building b = begin(out, HF_AUDIT_STORED_BESIDE, 0, arena);
    add_time(&b, "at", e->recorded_at);
    add_text(&b, "tenant", e->tenant);
    add_word(&b, "action", hf_action_name(e->action));
    add_word(&b, "status", hf_status_code(e->status));
    add_under(&b, e, rows);
    return end(&b);
}

/* ---- Comparing ---- */

static void field_add(struct hf_sha256 *s, const struct hf_audit_field *f)
{
    unsigned char head[5] = { f->type == HF_AUDIT_NULL };
    hf_put32(head + 1, (uint32_t)f->value.size);
    hf_sha256_add(s, head, sizeof head);
    hf_sha256_add(s, f->value.data, f->value.size);
}

struct hf_audit_fields_hash hf_audit_fields_hash(const struct hf_audit_fields *fields)
{
    struct hf_sha256 key, content;
    uint8_t digest[HF_DIGEST_SIZE];
    unsigned char table = (unsigned char)fields->table;
    struct hf_audit_fields_hash out;
    hf_sha256_init(&key);
    hf_sha256_add(&key, &table, 1);
    for (size_t i = 0; i < fields->keys; i++)
        field_add(&key, &fields->field[i]);
    hf_sha256_end(&key, digest);
    out.key_high = hf_get64(digest);
    out.key_low = hf_get64(digest + 8) | 1;
    hf_sha256_init(&content);
    for (size_t i = fields->keys; i < fields->count; i++)
        field_add(&content, &fields->field[i]);
    hf_sha256_end(&content, digest);
    out.content = hf_get64(digest);
    return out;
}

const struct hf_audit_field *hf_audit_fields_differ(const struct hf_audit_fields *a,
                                                    const struct hf_audit_fields *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct hf_audit_field *other = hf_audit_fields_find(b, a->field[i].name);
        if (!other || (other->type == HF_AUDIT_NULL) != (a->field[i].type == HF_AUDIT_NULL) ||
            !hf_bytes_equal(other->value, a->field[i].value))
            return &a->field[i];
    }
    return NULL;
}

const struct hf_audit_field *hf_audit_fields_find(const struct hf_audit_fields *fields,
                                                  const char *name)
{
    for (size_t i = 0; i < fields->count; i++)
        if (strcmp(fields->field[i].name, name) == 0)
            return &fields->field[i];
    return NULL;
}

/* ---- Showing ---- */

const char *hf_audit_stored_name(enum hf_audit_stored table)
{
    static const char *const names[HF_AUDIT_STORED_TABLES] = {
        [HF_AUDIT_STORED_TOKEN] = "token",
        [HF_AUDIT_STORED_HOLD] = "hold",
        [HF_AUDIT_STORED_SUCCEEDED] = "hold",
        [HF_AUDIT_STORED_RESOURCE] = "resource",
        [HF_AUDIT_STORED_RESOURCE_MADE] = "resource",
        [HF_AUDIT_STORED_RESOURCE_DUE] = "resource",
        [HF_AUDIT_STORED_GUARD] = "guard",
        [HF_AUDIT_STORED_GUARD_MADE] = "guard",
        [HF_AUDIT_STORED_IDENTITY] = "guard_entry",
        [HF_AUDIT_STORED_LEASE] = "lease",
        [HF_AUDIT_STORED_LEASE_LEFT] = "lease",
        [HF_AUDIT_STORED_REGISTER] = "register",
        [HF_AUDIT_STORED_CLIENT] = "client",
        [HF_AUDIT_STORED_CALL] = "client_call",
        [HF_AUDIT_STORED_VALUE] = "app_value",
        [HF_AUDIT_STORED_OUTBOX] = "outbox",
        [HF_AUDIT_STORED_CONFIG] = "store",
        [HF_AUDIT_STORED_COUNTER] = "sequence",
        [HF_AUDIT_STORED_KEYLESS] = "table",
        [HF_AUDIT_STORED_BESIDE] = "journal",
    };
    return names[table];
}

struct hf_audit_field_shown hf_audit_field_show(const struct hf_audit_field *field)
{
    struct hf_audit_field_shown s = { "null" };
    char digits[24] = "";
    if (field->type == HF_AUDIT_TEXT || field->type == HF_AUDIT_BYTES) {
        snprintf(s.text, sizeof s.text, "%s", hf_audit_show(field->value).text);
    } else if (field->type != HF_AUDIT_NULL) {
        snprintf(digits, sizeof digits, "%.*s", (int)field->value.size,
                 (const char *)field->value.data);
        snprintf(s.text, sizeof s.text, "%s", digits);
        if (field->type == HF_AUDIT_TIME_MS && digits[0] != 'i') {
            struct hf_audit_clock at = hf_audit_at((hf_time)strtoll(digits, NULL, 10));
            const char *rest = strchr(digits, '.');
            snprintf(s.text, sizeof s.text, rest ? "%s and %s us" : "%s", at.text,
                     rest ? rest + 1 : "");
        }
    }
    return s;
}
