/* The tables beside the journal, row by row, and values out of results. */
#include "audit/postgres.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE_BYTES (4 << 20)
enum { PAGE_FIRST = 16, PAGE_MAX = 2000 };

/* ---- Values ---- */

enum oid {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_TIMESTAMPTZ = 1184
};

/* PostgreSQL counts microseconds from 2000, we milliseconds from 1970. */
#define EPOCH_MS INT64_C(946684800000)

static uint64_t number_at(const char *p, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | (unsigned char)p[i];
    return value;
}

int64_t hf_audit_get_number(const PGresult *result, int row, int column)
{
    const char *p = PQgetvalue(result, row, column);
    switch (PQgetlength(result, row, column)) {
    case 4: return (int32_t)number_at(p, 4);
    case 8: return (int64_t)number_at(p, 8);
    default: return 0;
    }
}

hf_time hf_audit_get_time(const PGresult *result, int row, int column)
{
    int64_t us = hf_audit_get_number(result, row, column);
    return us == INT64_MAX ? INT64_MAX : us / 1000 + EPOCH_MS;
}

struct hf_bytes hf_audit_get_bytes(const PGresult *result, int row, int column)
{
    return hf_mem(PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
}

/* A time as the digits of its milliseconds. Holdfast writes whole ones: what somebody else has written may not be. */
static void time_digits(int64_t us, char digits[24])
{
    if (us == INT64_MAX)
        snprintf(digits, 24, "infinity");
    else if (us % 1000 != 0)
        snprintf(digits, 24, "%" PRId64 ".%03d", us / 1000 + EPOCH_MS,
                 (int)(us % 1000 < 0 ? -(us % 1000) : us % 1000));
    else
        snprintf(digits, 24, "%" PRId64, us / 1000 + EPOCH_MS);
}

static bool field_fill(const PGresult *result, int row, int column, char digits[24],
                       struct hf_audit_field *out)
{
    struct hf_bytes bytes = hf_audit_get_bytes(result, row, column);
    *out = (struct hf_audit_field){ PQfname(result, column), HF_AUDIT_NULL, hf_mem("", 0) };
    if (PQgetisnull(result, row, column))
        return true;
    switch ((enum oid)PQftype(result, column)) {
    case OID_BOOL:
        out->type = HF_AUDIT_TEXT;
        out->value = hf_str(bytes.size > 0 && *(const char *)bytes.data ? "true" : "false");
        return true;
    case OID_TEXT:
        out->type = HF_AUDIT_TEXT;
        out->value = bytes;
        return true;
    case OID_BYTEA:
        out->type = HF_AUDIT_BYTES;
        out->value = bytes;
        return true;
    case OID_INT4:
    case OID_INT8:
        out->type = HF_AUDIT_NUMBER;
        snprintf(digits, 24, "%" PRId64, hf_audit_get_number(result, row, column));
        break;
    case OID_TIMESTAMPTZ:
        out->type = HF_AUDIT_TIME_MS;
        time_digits(hf_audit_get_number(result, row, column), digits);
        break;
    default: return false;
    }
    out->value = hf_str(digits);
    return true;
}

bool hf_audit_row_fields(const PGresult *result, int row, int first, char digits[][24],
                         struct hf_audit_fields *out)
{
    for (int i = first; i < PQnfields(result) && out->count < HF_AUDIT_FIELDS_MAX; i++, out->count++)
        if (!field_fill(result, row, i, digits[out->count], &out->field[out->count]))
            return false;
    return true;
}

/* ---- Cursors ---- */

bool hf_audit_cursor_open(struct hf_audit_postgres *r, struct hf_audit_cursor *c, const char *name,
                          const char *select)
{
    char sql[800];
    snprintf(sql, sizeof sql, "DECLARE %s NO SCROLL CURSOR FOR %s", name, select);
    PGresult *result = PQexec(r->pg, sql);
    bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    *c = (struct hf_audit_cursor){ .name = done ? name : NULL, .fetch = PAGE_FIRST };
    return done;
}

void hf_audit_cursor_close(struct hf_audit_postgres *r, struct hf_audit_cursor *c)
{
    char sql[64];
    if (c->name) {
        snprintf(sql, sizeof sql, "CLOSE %s", c->name);
        PQclear(PQexec(r->pg, sql));
    }
    PQclear(c->page);
    *c = (struct hf_audit_cursor){ .name = NULL };
}

/* Ask for as many rows the next time as fit into a page by the size of these. */
static int fetch_next(const struct hf_audit_cursor *c)
{
    size_t room = PAGE_BYTES / (PQresultMemorySize(c->page) / (size_t)c->rows + 1);
    return room < 1 ? 1 : room > PAGE_MAX ? PAGE_MAX : (int)room;
}

int hf_audit_cursor_next(struct hf_audit_postgres *r, struct hf_audit_cursor *c)
{
    char sql[64];
    if (c->row < c->rows) {
        c->row++;
        return 1;
    }
    if (c->page && c->rows == 0)
        return 0;
    PQclear(c->page);
    snprintf(sql, sizeof sql, "FETCH %d FROM %s", c->fetch, c->name);
    c->page = PQexecParams(r->pg, sql, 0, NULL, NULL, NULL, NULL, 1);
    c->row = c->rows = 0;
    if (PQresultStatus(c->page) != PGRES_TUPLES_OK)
        return -1;
    c->rows = PQntuples(c->page);
    if (c->rows == 0)
        return 0;
    c->fetch = fetch_next(c);
    c->row = 1;
    return 1;
}

/* ---- The tables ---- */

/* The columns in the order of fields.c, keys first. */
static const struct {
    enum hf_audit_stored table;
    size_t keys;
    const char *select;
} tables[] = {
    { HF_AUDIT_STORED_CONFIG, 0,
      "SELECT idempotency_window_ms, token_max_length, registry_strict, digest_name, program "
      "FROM holdfast.store" },
    { HF_AUDIT_STORED_TOKEN, 2,
      "SELECT tenant, key, action, status, digest, recorded_at, expires_at, entry, hold, previous, state, "
      "on_abandon, fence, lease_ms, lease_expires_at, settled_at, response FROM holdfast.token" },
    { HF_AUDIT_STORED_HOLD, 1,
      "SELECT ordinal, id, tenant, resource, requester, state, placed_at, expires_at, ended_at, previous, "
      "reverses FROM holdfast.hold" },
    { HF_AUDIT_STORED_REVERSED, 2,
      "SELECT tenant, id, reversed_by FROM holdfast.hold WHERE reversed_by IS NOT NULL" },
    { HF_AUDIT_STORED_RESOURCE, 2,
      "SELECT tenant, name, capacity, held, confirmed, open, fence::text AS fence, newest, created_at "
      "FROM holdfast.resource" },
    { HF_AUDIT_STORED_RESOURCE_MADE, 2, "SELECT tenant, name, number, created_at FROM holdfast.resource" },
    { HF_AUDIT_STORED_RESOURCE_DUE, 2,
      "SELECT r.tenant, r.name, r.due_at, h.ends_at FROM holdfast.resource r LEFT JOIN (SELECT tenant, "
      "resource, "
      "min(expires_at) AS ends_at FROM holdfast.hold WHERE state = 'held' GROUP BY tenant, resource) h "
      "ON h.tenant = r.tenant AND h.resource = r.name WHERE h.ends_at < r.due_at OR r.due_at IS "
      "NULL" },
    { HF_AUDIT_STORED_GUARD, 2,
      "SELECT tenant, name, window_ms, match, on_unavailable, durable, created_at FROM holdfast.guard" },
    { HF_AUDIT_STORED_GUARD_MADE, 2, "SELECT tenant, name, number, created_at FROM holdfast.guard" },
    { HF_AUDIT_STORED_IDENTITY, 3,
      "SELECT tenant, guard, identity, result, recorded_at, expires_at, number FROM holdfast.guard_entry" },
    { HF_AUDIT_STORED_LEASE, 2,
      "SELECT tenant, name, holder, fence, ttl_ms, granted_at, expires_at, released_at "
      "FROM holdfast.lease WHERE deleted_at IS NULL" },
    { HF_AUDIT_STORED_LEASE_LEFT, 2,
      "SELECT tenant, name, ttl_ms, deleted_at FROM holdfast.lease WHERE deleted_at IS NOT NULL AND (ttl_ms "
      "BETWEEN 0 AND 315360000000 AND fence >= 0 AND octet_length(holder) <= 1024 AND granted_at <= "
      "deleted_at "
      "AND isfinite(granted_at) AND isfinite(expires_at) AND deleted_at <= (SELECT max(at) FROM "
      "holdfast.journal)) IS NOT TRUE" },
    { HF_AUDIT_STORED_REGISTER, 2,
      "SELECT tenant, name, type, value, version, fence::text AS fence, changed_at "
      "FROM holdfast.register" },
    { HF_AUDIT_STORED_CLIENT, 2, "SELECT tenant, name, highest::text AS highest, used FROM holdfast.client" },
    { HF_AUDIT_STORED_CALL, 3,
      "SELECT tenant, client, slot, sequence::text AS sequence, action, status, digest, recorded_at, entry "
      "FROM holdfast.client_call" },
    { HF_AUDIT_STORED_VALUE, 2, "SELECT tenant, key, value FROM holdfast.app_value" },
    { HF_AUDIT_STORED_OUTBOX, 1,
      "SELECT number, tenant, key, topic, payload, state, created_at FROM holdfast.outbox" },
    { HF_AUDIT_STORED_COUNTER, 1,
      "SELECT sequencename::text AS name, CASE WHEN has_sequence_privilege(format('%I.%I', schemaname, "
      "sequencename), 'SELECT, USAGE') THEN coalesce(last_value, 0) END AS value FROM pg_sequences "
      "WHERE schemaname = 'holdfast'" },
    { HF_AUDIT_STORED_KEYLESS, 1,
      "SELECT c.relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
      "n.nspname = 'holdfast' AND c.relname IN ('store', 'writer', 'journal', 'token', 'resource', 'hold', "
      "'guard', 'guard_entry', 'lease', 'register', 'client', 'client_call', 'app_value', 'outbox') AND NOT "
      "EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid)" },
};

/* A sequence whose place we may not look at has none. */
static bool counter_unseen(const struct hf_audit_fields *row, struct hf_error *why)
{
    if (row->table != HF_AUDIT_STORED_COUNTER || row->field[1].type != HF_AUDIT_NULL)
        return false;
    *why =
        (struct hf_error){ HF_STORAGE_FAILURE,
                           "The sequences of the schema holdfast cannot be looked at: permission denied; an "
                           "auditor's role may (doc/POSTGRES.md, Roles)." };
    return true;
}

bool hf_audit_postgres_stored(struct hf_audit_reader *reader, struct hf_audit_fields *row,
                              struct hf_error *why)
{
    struct hf_audit_postgres *r = (struct hf_audit_postgres *)reader;
    for (; r->at < sizeof tables / sizeof *tables; r->at++) {
        int got = r->broken ? -1 : 1;
        if (got > 0 && !r->table.name &&
            !hf_audit_cursor_open(r, &r->table, "holdfast_audit_rows", tables[r->at].select))
            got = -1;
        if (got > 0)
            got = hf_audit_cursor_next(r, &r->table);
        *row = (struct hf_audit_fields){ .table = tables[r->at].table, .keys = tables[r->at].keys };
        if (got > 0 && hf_audit_row_fields(r->table.page, r->table.row - 1, 0, r->digits, row) &&
            !counter_unseen(row, why))
            return true;
        if (got != 0 && why->status != HF_OK)
            return false;
        if (got != 0) {
            hf_audit_postgres_fail(r, why);
            return false;
        }
        hf_audit_cursor_close(r, &r->table);
    }
    return false;
}
