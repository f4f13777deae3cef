#include "store/postgres/table.h"

#include "base/bytes.h"
#include "base/id.h"

#include <stddef.h>
#include <stdio.h>

enum sort {
    TEXT,         /* struct hf_bytes, valid UTF-8 */
    TENANT,       /* the same, at most HF_TENANT_MAX */
    KEY,          /* struct hf_bytes, any bytes, escaped as text */
    BLOB,         /* struct hf_bytes */
    BLOB_OR_NULL, /* struct hf_bytes; NULL if empty */
    RESULT,       /* of a guard's entry: NULL if it has none */
    DIGEST,       /* HF_DIGEST_SIZE bytes in place */
    USED,         /* the bitmap of a client */
    INT8,         /* int64_t */
    SERIAL,       /* uint64_t that counts from 1 and fits; 0: none */
    SERIAL_OR_NULL,
    INT4,    /* uint32_t */
    FLAG,    /* bool */
    NUMERIC, /* uint64_t, full range */
    TIME,
    TIME_OR_NULL, /* 0 is NULL */
    ID,           /* char[HF_ID_SIZE] */
    ID_OR_NULL,
    NAME, /* an enum, stored by name */
    NAME_OR_NULL,
    MATCH /* a guard's match rule */
};

typedef const char *name_fn(unsigned value);

struct hf_pg_column {
    const char *name;
    enum sort sort;
    size_t at; /* in struct hf_pg_record */
    name_fn *names;
    bool fixed; /* set when the row is made, never changed */
};

/* ---- Names of enums. NULL after the last. ---- */

#define NAMES(function, ...)                                               \
    static const char *function(unsigned value)                            \
    {                                                                      \
        static const char *const names[] = { __VA_ARGS__ };                \
        return value < sizeof names / sizeof *names ? names[value] : NULL; \
    }

NAMES(state_name, "", "held", "confirmed", "released", "expired")
NAMES(claim_name, "", "started", "completed", "failed", "retryable")
NAMES(abandon_name, "", "unknown", "retry")
NAMES(unavailable_name, "open", "closed")
NAMES(type_name, "", "plain", "max", "min", "or", "union", "lww", "vector", "counter", "updown",
      "deleted")
NAMES(outbox_name, "", "pending")
NAMES(match_name, "", "exact", "trim", "casefold", "normalize", "hash")

static const char *action_name(unsigned value)
{
    return value == 0 ? "" : value <= HF_CONFIGURE ? hf_action_name((enum hf_action)value) : NULL;
}

static const char *status_name(unsigned value)
{
    return value <= HF_REFUSED ? hf_status_code((enum hf_status)value) : NULL;
}

/* The value that has this name, or -1. */
static int named(name_fn *names, struct hf_bytes text)
{
    const char *name;
    for (unsigned value = 0; (name = names(value)) != NULL; value++)
        if (hf_bytes_equal(hf_str(name), text))
            return (int)value;
    return -1;
}

/* ---- The tables ---- */

#define AT(member) offsetof(struct hf_pg_record, member)

static const struct hf_pg_column client_columns[] = {
    { "tenant", TENANT, AT(row.client.tenant), NULL, true },
    { "name", TEXT, AT(row.client.name), NULL, true },
    { "highest", NUMERIC, AT(row.client.highest), NULL, false },
    { "used", USED, AT(row.client.used), NULL, false },
};

static const struct hf_pg_column token_columns[] = {
    { "tenant", TENANT, AT(token.tenant), NULL, true },
    { "key", KEY, AT(token.key), NULL, true },
    { "action", NAME, AT(token.action), action_name, false },
    { "status", NAME, AT(token.status), status_name, false },
    { "digest", DIGEST, AT(token.digest), NULL, false },
    { "recorded_at", TIME, AT(token.recorded_at), NULL, false },
    { "expires_at", TIME, AT(token.expires_at), NULL, false },
    { "entry", SERIAL, AT(token.entry), NULL, false },
    { "hold", SERIAL_OR_NULL, AT(token.hold), NULL, false },
    { "previous", SERIAL_OR_NULL, AT(token.previous), NULL, false },
    { "state", NAME_OR_NULL, AT(token.state), claim_name, false },
    { "on_abandon", NAME_OR_NULL, AT(token.on_abandon), abandon_name, false },
    { "fence", SERIAL_OR_NULL, AT(token.fence), NULL, false },
    { "lease_ms", SERIAL_OR_NULL, AT(token.lease_ms), NULL, false },
    { "lease_expires_at", TIME_OR_NULL, AT(token.lease_expires_at), NULL, false },
    { "settled_at", TIME_OR_NULL, AT(token.settled_at), NULL, false },
    { "response", BLOB_OR_NULL, AT(token.response), NULL, false },
    { "retention_ms", SERIAL_OR_NULL, AT(token.retention_ms), NULL, false },
};
_Static_assert(sizeof token_columns / sizeof *token_columns <= HF_PG_COLUMNS_MAX,
               "the widest table fits");

static const struct hf_pg_column guard_columns[] = {
    { "tenant", TENANT, AT(row.guard.tenant), NULL, true },
    { "name", TEXT, AT(row.guard.name), NULL, true },
    { "window_ms", INT8, AT(row.guard.window_ms), NULL, false },
    { "match", MATCH, AT(row.guard), NULL, false },
    { "on_unavailable", NAME, AT(row.guard.on_unavailable), unavailable_name, false },
    { "durable", FLAG, AT(row.guard.durable), NULL, false },
    { "created_at", TIME, AT(row.guard.created_at), NULL, false },
    { "number", SERIAL, AT(number), NULL, true },
};

static const struct hf_pg_column entry_columns[] = {
    { "tenant", TENANT, AT(row.entry.tenant), NULL, true },
    { "guard", TEXT, AT(row.entry.guard), NULL, true },
    { "identity", BLOB, AT(row.entry.identity), NULL, true },
    { "result", RESULT, AT(row.entry), NULL, false },
    { "recorded_at", TIME, AT(row.entry.recorded_at), NULL, false },
    { "expires_at", TIME, AT(row.entry.expires_at), NULL, false },
    { "number", SERIAL, AT(number), NULL, false },
};

static const struct hf_pg_column lease_columns[] = {
    { "tenant", TENANT, AT(row.lease.tenant), NULL, true },
    { "name", TEXT, AT(row.lease.name), NULL, true },
    { "holder", TEXT, AT(row.lease.holder), NULL, false },
    { "fence", SERIAL, AT(row.lease.fence), NULL, false },
    { "ttl_ms", INT8, AT(row.lease.ttl_ms), NULL, false },
    { "granted_at", TIME, AT(row.lease.granted_at), NULL, false },
    { "expires_at", TIME, AT(row.lease.expires_at), NULL, false },
    { "released_at", TIME_OR_NULL, AT(row.lease.released_at), NULL, false },
    { "deleted_at", TIME_OR_NULL, AT(deleted_at), NULL, false },
};

static const struct hf_pg_column register_columns[] = {
    { "tenant", TENANT, AT(row.reg.tenant), NULL, true },
    { "name", TEXT, AT(row.reg.name), NULL, true },
    { "type", NAME, AT(row.reg.value.type), type_name, false },
    { "value", BLOB, AT(row.reg.value.bytes), NULL, false },
    { "version", SERIAL, AT(row.reg.version), NULL, false },
    { "fence", NUMERIC, AT(row.reg.fence), NULL, false },
    { "require_fence", FLAG, AT(row.reg.require_fence), NULL, false },
    { "changed_at", TIME, AT(row.reg.changed_at), NULL, false },
};

static const struct hf_pg_column resource_columns[] = {
    { "tenant", TENANT, AT(row.resource.tenant), NULL, true },
    { "name", TEXT, AT(row.resource.name), NULL, true },
    { "capacity", INT4, AT(row.resource.capacity), NULL, false },
    { "held", INT4, AT(row.resource.held), NULL, false },
    { "confirmed", INT4, AT(row.resource.confirmed), NULL, false },
    { "open", FLAG, AT(row.resource.open), NULL, false },
    { "require_fence", FLAG, AT(row.resource.require_fence), NULL, false },
    { "fence", NUMERIC, AT(row.resource.fence), NULL, false },
    { "newest", SERIAL, AT(row.resource.newest), NULL, false },
    { "due_at", TIME, AT(due_at), NULL, false },
    { "created_at", TIME, AT(row.resource.created_at), NULL, true },
    { "number", SERIAL, AT(number), NULL, true },
};

static const struct hf_pg_column call_columns[] = {
    { "tenant", TENANT, AT(call.tenant), NULL, true },
    { "client", TEXT, AT(call.client), NULL, true },
    { "slot", INT4, AT(call.slot), NULL, true },
    { "sequence", NUMERIC, AT(call.sequence), NULL, false },
    { "action", NAME, AT(call.action), action_name, false },
    { "status", NAME, AT(call.status), status_name, false },
    { "digest", DIGEST, AT(call.digest), NULL, false },
    { "recorded_at", TIME, AT(call.recorded_at), NULL, false },
    { "entry", SERIAL, AT(call.entry), NULL, false },
};

static const struct hf_pg_column hold_columns[] = {
    { "ordinal", SERIAL, AT(row.hold.ordinal), NULL, true },
    { "id", ID, AT(row.hold.id), NULL, true },
    { "tenant", TENANT, AT(row.hold.tenant), NULL, true },
    { "resource", TEXT, AT(row.hold.resource), NULL, true },
    { "requester", TEXT, AT(row.hold.requester), NULL, true },
    { "state", NAME, AT(row.hold.state), state_name, false },
    { "placed_at", TIME, AT(row.hold.placed_at), NULL, true },
    { "expires_at", TIME, AT(row.hold.expires_at), NULL, true },
    { "ended_at", TIME_OR_NULL, AT(row.hold.ended_at), NULL, false },
    { "previous", SERIAL, AT(row.hold.previous), NULL, true },
    { "reverses", ID_OR_NULL, AT(row.hold.reverses), NULL, true },
    { "reacquires", ID_OR_NULL, AT(row.hold.reacquires), NULL, true },
    { "succeeded_by", ID_OR_NULL, AT(succeeded_by), NULL, false },
};

static const struct hf_pg_column value_columns[] = {
    { "tenant", TENANT, AT(row.pair.tenant), NULL, true },
    { "key", BLOB, AT(row.pair.key), NULL, true },
    { "value", BLOB, AT(row.pair.value), NULL, false },
};

static const struct hf_pg_column outbox_columns[] = {
    { "number", SERIAL, AT(row.outbox.number), NULL, true },
    { "tenant", TENANT, AT(row.outbox.tenant), NULL, true },
    { "key", KEY, AT(row.outbox.key), NULL, true },
    { "topic", KEY, AT(row.outbox.topic), NULL, true },
    { "payload", BLOB, AT(row.outbox.payload), NULL, true },
    { "state", NAME, AT(row.outbox.state), outbox_name, false },
    { "created_at", TIME, AT(row.outbox.created_at), NULL, true },
};

#define SPEC(text, columns, keys, kind, image, erased, marked)                                \
    {                                                                                         \
        text, columns, sizeof(columns) / sizeof *(columns), keys, kind, image, erased, marked \
    }

static const struct hf_pg_spec specs[] = {
    [HF_PG_CLIENT] = SPEC("client", client_columns, 2, HF_ROW_CLIENT, false, false, false),
    [HF_PG_TOKEN] = SPEC("token", token_columns, 2, 0, true, false, false),
    [HF_PG_GUARD] = SPEC("guard", guard_columns, 2, HF_ROW_GUARD, false, false, false),
    [HF_PG_ENTRY] = SPEC("guard_entry", entry_columns, 3, HF_ROW_ENTRY, false, false, false),
    [HF_PG_LEASE] = SPEC("lease", lease_columns, 2, HF_ROW_LEASE, false, true, true),
    [HF_PG_REGISTER] = SPEC("register", register_columns, 2, HF_ROW_REGISTER, false, false, false),
    [HF_PG_RESOURCE] = SPEC("resource", resource_columns, 2, HF_ROW_RESOURCE, false, false, false),
    [HF_PG_CALL] = SPEC("client_call", call_columns, 3, 0, true, false, false),
    [HF_PG_HOLD] = SPEC("hold", hold_columns, 1, HF_ROW_HOLD, false, false, false),
    [HF_PG_VALUE] = SPEC("app_value", value_columns, 2, HF_ROW_VALUE, false, true, false),
    [HF_PG_OUTBOX] = SPEC("outbox", outbox_columns, 1, HF_ROW_OUTBOX, false, false, false),
};

const struct hf_pg_spec *hf_pg_spec(enum hf_pg_table table)
{
    return &specs[table];
}

/* ---- Types ---- */

static enum hf_pg_oid oid_of(enum sort sort)
{
    switch (sort) {
    case TEXT:
    case TENANT:
    case KEY:
    case ID:
    case ID_OR_NULL:
    case NAME:
    case NAME_OR_NULL:
    case MATCH: return HF_PG_TEXT;
    case BLOB:
    case BLOB_OR_NULL:
    case RESULT:
    case DIGEST:
    case USED: return HF_PG_BYTEA;
    case INT8:
    case SERIAL:
    case SERIAL_OR_NULL: return HF_PG_INT8;
    case INT4: return HF_PG_INT4;
    case FLAG: return HF_PG_BOOL;
    case NUMERIC: return HF_PG_NUMERIC;
    case TIME:
    case TIME_OR_NULL: return HF_PG_TIMESTAMPTZ;
    }
    return HF_PG_TEXT;
}

static const char *type_text(enum hf_pg_oid oid)
{
    switch (oid) {
    case HF_PG_BOOL: return "boolean";
    case HF_PG_BYTEA: return "bytea";
    case HF_PG_INT8: return "bigint";
    case HF_PG_INT4: return "integer";
    case HF_PG_TEXT: return "text";
    case HF_PG_TIMESTAMPTZ: return "timestamptz";
    case HF_PG_NUMERIC: return "numeric";
    case HF_PG_TID: return "tid";
    case HF_PG_XID: return "xid";
    }
    return "text";
}

enum hf_pg_oid hf_pg_column_type(enum hf_pg_table table, int column)
{
    return oid_of(specs[table].columns[column].sort);
}

bool hf_pg_column_fixed(enum hf_pg_table table, int column)
{
    return specs[table].columns[column].fixed;
}

/* ---- Statements ---- */

/* `a, b, c`, each with `prefix`. */
static void list(struct hf_buffer *b, const struct hf_pg_spec *s, int count, const char *prefix)
{
    for (int i = 0; i < count; i++)
        hf_buffer_printf(b, "%s%s%s", i ? ", " : "", prefix, s->columns[i].name);
}

/* `SELECT unnest($1::text[]) AS a, unnest($2::text[]) AS b, ...` over `count` columns; changing:
 * without the fixed columns, and with the places of the rows. (`FROM unnest($1, $2, ...)` does the
 * same, but first fills a row store for each parameter.) Returns the number of parameters. */
static int unnest(struct hf_buffer *b, const struct hf_pg_spec *s, int count, bool changing)
{
    int n = 0;
    hf_buffer_add_text(b, "SELECT ");
    for (int i = 0; i < count; i++)
        if (i < s->keys || !changing || !s->columns[i].fixed) {
            hf_buffer_printf(b, "%sunnest($%d::%s[]) AS %s", n ? ", " : "", n + 1,
                             type_text(oid_of(s->columns[i].sort)), s->columns[i].name);
            n++;
        }
    if (changing) {
        hf_buffer_printf(b, ", unnest($%d::tid[]) AS place, unnest($%d::xid[]) AS was", n + 1,
                         n + 2);
        n += 2;
    }
    return n;
}

/* `LATERAL (SELECT what FROM table x WHERE x.a = u.a ... LIMIT 1)`: the row of u, by its key. Not a
 * join: the planner could reorder it or read the whole table, because its statistics may say for
 * ever that the table is empty. */
static void by_key(struct hf_buffer *b, const struct hf_pg_spec *s, const char *what, bool lock)
{
    hf_buffer_printf(b, "LATERAL (SELECT %s FROM holdfast.%s x WHERE ", what, s->name);
    for (int i = 0; i < s->keys; i++)
        hf_buffer_printf(b, "%sx.%s = u.%s", i ? " AND " : "", s->columns[i].name,
                         s->columns[i].name);
    hf_buffer_printf(b, " LIMIT 1%s)", lock ? " FOR UPDATE" : "");
}

void hf_pg_sql_columns(struct hf_buffer *b, enum hf_pg_table table)
{
    list(b, &specs[table], specs[table].count, "t.");
}

void hf_pg_sql_row(struct hf_buffer *b, enum hf_pg_table table)
{
    hf_pg_sql_columns(b, table);
    hf_buffer_add_text(b, ", t.place, t.written_by");
}

/* The journal's entry of a call. A claim's row contains its whole answer. Not a join, which costs
 * time for every row, even if the entry is not needed. */
static void entry(struct hf_buffer *b, enum hf_pg_table table, enum hf_pg_reading how)
{
    static const char *const when[] = {
        [HF_PG_AS_NEEDED] = "t.state IS NULL AND NOT (t.action = 'place_hold' AND t.status = 'ok')",
        [HF_PG_WHOLE] = "t.state IS NULL",
    };
    hf_buffer_printf(
        b,
        ", CASE WHEN %s THEN (SELECT e.entry FROM holdfast.journal e WHERE e.number = t.entry "
        "LIMIT 1) END",
        table == HF_PG_TOKEN ? when[how] : "true");
}

void hf_pg_sql_read(struct hf_buffer *b, enum hf_pg_table table, enum hf_pg_reading how)
{
    const struct hf_pg_spec *s = &specs[table];
    bool lock = how == HF_PG_LOCKED;
    hf_buffer_add_text(b, "SELECT ");
    list(b, s, lock && s->has_image ? s->keys : s->count, "t.");
    if (s->has_image && !lock)
        entry(b, table, how);
    if (!s->has_image || !lock)
        hf_buffer_add_text(b, ", t.place, t.written_by");
    hf_buffer_add_text(b, " FROM (");
    unnest(b, s, s->keys, false);
    hf_buffer_add_text(b, ") u CROSS JOIN ");
    by_key(b, s, HF_PG_ALL, lock);
    hf_buffer_add_text(b, " t");
}

void hf_pg_sql_insert(struct hf_buffer *b, enum hf_pg_table table)
{
    const struct hf_pg_spec *s = &specs[table];
    hf_buffer_printf(b, "INSERT INTO holdfast.%s (", s->name);
    list(b, s, s->count, "");
    hf_buffer_add_text(b, ") ");
    unnest(b, s, s->count, false);
    /* An apply function may set a value that it has not read; the tenant's lock excludes others. */
    if (table == HF_PG_VALUE)
        hf_buffer_add_text(b, " ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value");
}

/* Update a row by its place. Its key is compared too, in a way that uses no index: after a table
 * was rewritten, other rows are at these places. */
void hf_pg_sql_update(struct hf_buffer *b, enum hf_pg_table table)
{
    const struct hf_pg_spec *s = &specs[table];
    int n = 0;
    hf_buffer_printf(b, "WITH changed AS (UPDATE holdfast.%s t SET ", s->name);
    for (int i = s->keys; i < s->count; i++)
        if (!s->columns[i].fixed)
            hf_buffer_printf(b, "%s%s = u.%s", n++ ? ", " : "", s->columns[i].name,
                             s->columns[i].name);
    hf_buffer_add_text(b, " FROM (");
    n = unnest(b, s, s->count, true);
    hf_buffer_add_text(b, ") u WHERE t.ctid = u.place AND t.xmin = u.was");
    for (int i = 0; i < s->keys; i++)
        hf_buffer_printf(b, " AND t.%s IS NOT DISTINCT FROM u.%s", s->columns[i].name,
                         s->columns[i].name);
    hf_buffer_printf(b,
                     " RETURNING 1) SELECT CASE WHEN count(*) = $%d::bigint THEN 0 ELSE "
                     "holdfast._conflict() END FROM changed",
                     n + 1);
}

void hf_pg_sql_delete(struct hf_buffer *b, enum hf_pg_table table)
{
    const struct hf_pg_spec *s = &specs[table];
    hf_buffer_printf(b, "DELETE FROM holdfast.%s t USING (SELECT u.*, k.ctid AS place FROM (",
                     s->name);
    unnest(b, s, s->keys, false);
    hf_buffer_add_text(b, ") u CROSS JOIN ");
    by_key(b, s, "x.ctid", false);
    hf_buffer_add_text(b, " k) u WHERE t.ctid = u.place");
}

/* ---- Writing values ---- */

static void put_match(const struct hf_guard *g, struct hf_buffer *b)
{
    char text[64];
    size_t size = 0;
    for (uint32_t i = 0; i < g->match_count; i++) {
        const char *name = match_name(g->match[i]);
        size_t n = strlen(name);
        if (i > 0)
            text[size++] = ',';
        memcpy(text + size, name, n);
        size += n;
    }
    hf_pg_put_bytes(b, hf_mem(text, size));
}

static void put_or_null(bool there, struct hf_bytes bytes, struct hf_buffer *b)
{
    if (there)
        hf_pg_put_bytes(b, bytes);
    else
        hf_pg_put_null(b);
}

static void put_number(const struct hf_pg_column *c, const void *at, struct hf_buffer *b)
{
    int64_t value;
    memcpy(&value, at, sizeof value);
    if (value == 0 && (c->sort == SERIAL_OR_NULL || c->sort == TIME_OR_NULL))
        hf_pg_put_null(b);
    else if (c->sort == TIME || c->sort == TIME_OR_NULL)
        hf_pg_put_time(b, value);
    else if (c->sort == NUMERIC)
        hf_pg_put_numeric(b, (uint64_t)value);
    else
        hf_pg_put_int8(b, value);
}

void hf_pg_column_put(enum hf_pg_table table, int column, const struct hf_pg_record *record,
                      struct hf_buffer *b)
{
    const struct hf_pg_column *c = &specs[table].columns[column];
    const void *at = (const char *)record + c->at;
    const struct hf_bytes *bytes = at;
    const unsigned *value = at;
    switch (c->sort) {
    case TEXT:
    case TENANT:
    case BLOB: hf_pg_put_bytes(b, *bytes); break;
    case KEY: hf_pg_put_key(b, *bytes); break;
    case BLOB_OR_NULL: put_or_null(bytes->size > 0, *bytes, b); break;
    case RESULT: put_or_null(record->row.entry.has_result, record->row.entry.result, b); break;
    case DIGEST: hf_pg_put_bytes(b, hf_mem(at, HF_DIGEST_SIZE)); break;
    case USED: hf_pg_put_bytes(b, hf_mem(at, HF_SEQUENCE_WINDOW / 8)); break;
    case INT4: hf_pg_put_int4(b, (int32_t)*value); break;
    case FLAG: hf_pg_put_bool(b, *(const bool *)at); break;
    case ID: hf_pg_put_bytes(b, hf_str(at)); break;
    case ID_OR_NULL: put_or_null(*(const char *)at != '\0', hf_str(at), b); break;
    case NAME: hf_pg_put_bytes(b, hf_str(c->names(*value))); break;
    case NAME_OR_NULL: put_or_null(*value != 0, hf_str(c->names(*value)), b); break;
    case MATCH: put_match(&record->row.guard, b); break;
    case INT8:
    case SERIAL:
    case SERIAL_OR_NULL:
    case NUMERIC:
    case TIME:
    case TIME_OR_NULL: put_number(c, at, b); break;
    }
}

/* ---- Reading values ---- */

static bool keep(struct hf_bytes *bytes, struct hf_arena *arena)
{
    void *copy = bytes->size > 0 ? hf_arena_take(arena, bytes->size) : NULL;
    if (bytes->size > 0 && !copy)
        return false;
    if (copy)
        memcpy(copy, bytes->data, bytes->size);
    bytes->data = copy;
    return true;
}

static bool get_match(struct hf_bytes text, struct hf_guard *g)
{
    const char *p = text.data, *end = p + text.size;
    g->match_count = 0;
    while (p < end) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        const char *stop = comma ? comma : end;
        int value = named(match_name, hf_mem(p, (size_t)(stop - p)));
        if (value <= 0 || g->match_count == HF_MATCH_MAX)
            return false;
        g->match[g->match_count++] = (enum hf_match)value;
        p = stop + (comma ? 1 : 0);
    }
    return true;
}

static bool get_fixed(struct hf_bytes bytes, void *to, size_t size)
{
    if (bytes.size != size)
        return false;
    memcpy(to, bytes.data, size);
    return true;
}

/* The journal stores ids packed, so an id must be packable. */
static bool get_id(struct hf_bytes text, char *to)
{
    uint8_t raw[HF_ID_RAW];
    to[0] = '\0';
    if (!hf_id_pack(text, raw))
        return false;
    to[HF_ID_SIZE - 1] = '\0';
    return get_fixed(text, to, HF_ID_SIZE - 1);
}

static bool get_name(const struct hf_pg_column *c, struct hf_bytes text, unsigned *to)
{
    int value = named(c->names, text);
    *to = value < 0 ? 0 : (unsigned)value;
    return value >= 0;
}

static bool may_be_null(enum sort sort)
{
    return sort == BLOB_OR_NULL || sort == RESULT || sort == SERIAL_OR_NULL ||
           sort == TIME_OR_NULL || sort == ID_OR_NULL || sort == NAME_OR_NULL;
}

/* Read a column of bytes: copied even if unsound, because log lines show keys. False if out of
 * memory. */
static bool get_text(const struct hf_pg_column *c, const PGresult *result, int row, int column,
                     struct hf_arena *arena, struct hf_pg_record *out)
{
    struct hf_bytes *at = (struct hf_bytes *)(void *)((char *)out + c->at);
    struct hf_bytes bytes = hf_pg_get_bytes(result, row, column);
    if (c->sort == RESULT) {
        out->row.entry.has_result = !PQgetisnull(result, row, column);
        at = &out->row.entry.result;
    }
    *at = c->sort == KEY ? hf_pg_get_key(result, row, column, arena) : bytes;
    if (at->size == 0 && bytes.size > 0)
        return false;
    if (c->sort == TENANT && at->size > HF_TENANT_MAX)
        out->unsound = true;
    return keep(at, arena);
}

/* Read any other column that is not NULL. False: Holdfast cannot have written it. */
static bool get_value(const struct hf_pg_column *c, const PGresult *result, int row, int column,
                      struct hf_pg_record *out)
{
    void *at = (char *)out + c->at;
    struct hf_bytes bytes = hf_pg_get_bytes(result, row, column);
    int64_t number = 0;
    uint64_t whole;
    switch (c->sort) {
    case DIGEST: return get_fixed(bytes, at, HF_DIGEST_SIZE);
    case USED: return get_fixed(bytes, at, HF_SEQUENCE_WINDOW / 8);
    case INT4: *(uint32_t *)at = (uint32_t)hf_pg_get_int4(result, row, column); return true;
    case FLAG: *(bool *)at = hf_pg_get_bool(result, row, column); return true;
    case ID:
    case ID_OR_NULL: return get_id(bytes, at);
    case NAME:
    case NAME_OR_NULL: return get_name(c, bytes, at);
    case MATCH: return get_match(bytes, &out->row.guard);
    case NUMERIC:
        if (!hf_pg_get_numeric(result, row, column, &whole))
            return false;
        memcpy(at, &whole, sizeof whole);
        return true;
    case TIME:
    case TIME_OR_NULL: number = hf_pg_get_time(result, row, column); break;
    default: number = hf_pg_get_int8(result, row, column); break;
    }
    memcpy(at, &number, sizeof number);
    return number >= 0 || c->sort == INT8 || c->sort == TIME || c->sort == TIME_OR_NULL;
}

/* Read one column of a row. False if out of memory. */
static bool get(const struct hf_pg_column *c, const PGresult *result, int row, int column,
                struct hf_arena *arena, struct hf_pg_record *out)
{
    bool is_null = PQgetisnull(result, row, column);
    if (is_null && !may_be_null(c->sort))
        out->unsound = true;
    switch (c->sort) {
    case TEXT:
    case TENANT:
    case KEY:
    case BLOB:
    case BLOB_OR_NULL:
    case RESULT: return get_text(c, result, row, column, arena, out);
    default: break;
    }
    if (!is_null && !get_value(c, result, row, column, out))
        out->unsound = true;
    return true;
}

static bool no_record(struct hf_pg_record *out)
{
    out->unsound = false;
    return false;
}

bool hf_pg_record_read(enum hf_pg_table table, const PGresult *result, int row, int first,
                       struct hf_arena *arena, struct hf_pg_record *out)
{
    const struct hf_pg_spec *s = &specs[table];
    memset(out, 0, sizeof *out);
    if (s->kind)
        out->row.kind = s->kind;
    for (int i = 0; i < s->count; i++)
        if (!get(&s->columns[i], result, row, first + i, arena, out))
            return no_record(out);
    if (s->has_image) {
        struct hf_bytes *image = table == HF_PG_TOKEN ? &out->token.image : &out->call.image;
        *image = hf_pg_get_bytes(result, row, first + s->count);
        if (!keep(image, arena))
            return no_record(out);
    }
    out->unsound = out->unsound || !hf_pg_record_sound(table, out);
    return !out->unsound;
}

/* The printable part of a name for a log line, cut short. */
static int put_shown(char *to, size_t room, struct hf_bytes text)
{
    enum { SHOWN_MAX = 48 };
    char shown[SHOWN_MAX + 1];
    const unsigned char *p = text.data;
    size_t size = text.size < SHOWN_MAX ? text.size : SHOWN_MAX;
    for (size_t i = 0; i < size; i++)
        shown[i] = (char)(p[i] >= ' ' && p[i] < 127 && p[i] != '"' ? p[i] : '?');
    shown[size] = '\0';
    return snprintf(to, room, "\"%s%s\"", shown, text.size > SHOWN_MAX ? "..." : "");
}

void hf_pg_record_name(enum hf_pg_table table, const struct hf_pg_record *record, char *to,
                       size_t room)
{
    const struct hf_pg_spec *s = &specs[table];
    size_t used = (size_t)snprintf(to, room, "holdfast.%s", s->name);
    for (int i = 0; i < s->keys; i++) {
        const struct hf_pg_column *c = &s->columns[i];
        const void *at = (const char *)record + c->at;
        if (used < room)
            used += (size_t)snprintf(to + used, room - used, ", %s ", c->name);
        if (used >= room)
            return;
        if (c->sort == SERIAL || c->sort == INT4)
            used += (size_t)snprintf(to + used, room - used, "%llu",
                                     c->sort == INT4 ? (unsigned long long)*(const uint32_t *)at
                                                     : (unsigned long long)*(const uint64_t *)at);
        else
            used += (size_t)put_shown(to + used, room - used, *(const struct hf_bytes *)at);
    }
}

bool hf_pg_record_keep(enum hf_pg_table table, struct hf_pg_record *record, struct hf_arena *arena)
{
    const struct hf_pg_spec *s = &specs[table];
    bool good = true;
    for (int i = 0; i < s->count; i++) {
        enum sort sort = s->columns[i].sort;
        if (sort == TEXT || sort == TENANT || sort == KEY || sort == BLOB || sort == BLOB_OR_NULL)
            good =
                good && keep((struct hf_bytes *)(void *)((char *)record + s->columns[i].at), arena);
    }
    if (table == HF_PG_ENTRY)
        good = good && keep(&record->row.entry.result, arena);
    return good;
}
