#include "store/postgres/scan.h"

#include "base/error.h"
#include "store/postgres/conninfo.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A cursor, read in pages of about PAGE_BYTES. */
#define PAGE_BYTES (4 << 20)
enum { PAGE_FIRST = 16, PAGE_MAX = 2000 };

struct cursor {
    const char *name; /* static; NULL: none is open */
    PGresult *page;   /* owned */
    int row, rows;    /* the next row of the page, and how many it has */
    int fetch;        /* how many rows to fetch next */
};

typedef char digits_of[HF_PG_SCAN_VALUES_MAX][24]; /* numbers of a row as text */

struct hf_pg_scan {
    PGconn *pg;     /* owned */
    char *conninfo; /* owned: never shown in a message */
    char *where;    /* owned */
    struct cursor journal, table;
    size_t at;      /* the next table */
    PGresult *side; /* owned: of hf_pg_scan_entry_at */
    digits_of entry_digits, row_digits;
};

/* ---- Errors ---- */

/* The database's message may contain any bytes: replace control characters, which a terminal would
 * act on. */
static void make_harmless(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

/* The first line of the message, without "ERROR:" or "FATAL:". */
static void message_copy(const struct hf_pg_scan *r, char *out, size_t room)
{
    const char *text = r->pg ? PQerrorMessage(r->pg) : "";
    if (strncmp(text, "ERROR:  ", 8) == 0 || strncmp(text, "FATAL:  ", 8) == 0)
        text += 8;
    snprintf(out, room, "%.*s", (int)strcspn(text, "\n"), text);
    hf_conninfo_hide(r->conninfo, out, room);
    make_harmless(out);
    if (out[0] == '\0')
        snprintf(out, room, "a column has a type that Holdfast's tables do not have");
}

enum hf_status hf_pg_scan_failed(const struct hf_pg_scan *r, struct hf_error *why)
{
    char told[200];
    message_copy(r, told, sizeof told);
    bool rights = strncmp(told, "permission denied", 17) == 0;
    return hf_error_set(why, HF_STORAGE_FAILURE, "The records in %s cannot be read: %s%s.",
                        r->where, told,
                        rights ? ". Use the role holdfast_auditor (doc/POSTGRES.md, Roles)" : "");
}

static enum hf_status no_memory(struct hf_error *why)
{
    return hf_error_set(why, HF_NO_MEMORY, "Not enough memory to read the journal.");
}

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

static int64_t number_of(const PGresult *result, int row, int column)
{
    const char *p = PQgetvalue(result, row, column);
    switch (PQgetlength(result, row, column)) {
    case 4: return (int32_t)number_at(p, 4);
    case 8: return (int64_t)number_at(p, 8);
    default: return 0;
    }
}

static hf_time time_of(const PGresult *result, int row, int column)
{
    int64_t us = number_of(result, row, column);
    return us == INT64_MAX ? INT64_MAX : us / 1000 + EPOCH_MS;
}

static struct hf_bytes bytes_of(const PGresult *result, int row, int column)
{
    return hf_mem(PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
}

/* A time as the digits of its milliseconds. Holdfast writes whole milliseconds; a row changed by
 * hand may have a fraction. */
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
                       struct hf_pg_scan_value *out)
{
    struct hf_bytes bytes = bytes_of(result, row, column);
    *out = (struct hf_pg_scan_value){ PQfname(result, column), HF_PG_SCAN_NULL, hf_mem("", 0) };
    if (PQgetisnull(result, row, column))
        return true;
    switch ((enum oid)PQftype(result, column)) {
    case OID_BOOL:
        out->type = HF_PG_SCAN_TEXT;
        out->value = hf_str(bytes.size > 0 && *(const char *)bytes.data ? "true" : "false");
        return true;
    case OID_TEXT:
        out->type = HF_PG_SCAN_TEXT;
        out->value = bytes;
        return true;
    case OID_BYTEA:
        out->type = HF_PG_SCAN_BYTES;
        out->value = bytes;
        return true;
    case OID_INT4:
    case OID_INT8:
        out->type = HF_PG_SCAN_NUMBER;
        snprintf(digits, 24, "%" PRId64, number_of(result, row, column));
        break;
    case OID_TIMESTAMPTZ:
        out->type = HF_PG_SCAN_TIME;
        time_digits(number_of(result, row, column), digits);
        break;
    default: return false;
    }
    out->value = hf_str(digits);
    return true;
}

/* Read the values of a row in binary form, from column `first` on. False for a type that Holdfast's
 * tables do not have. */
static bool row_fill(const PGresult *result, int row, int first, digits_of digits,
                     struct hf_pg_scan_row *out)
{
    for (int i = first; i < PQnfields(result) && out->count < HF_PG_SCAN_VALUES_MAX;
         i++, out->count++)
        if (!field_fill(result, row, i, digits[out->count], &out->values[out->count]))
            return false;
    return true;
}

/* ---- Cursors ---- */

static bool cursor_open(struct hf_pg_scan *r, struct cursor *c, const char *name,
                        const char *select)
{
    char sql[800];
    snprintf(sql, sizeof sql, "DECLARE %s NO SCROLL CURSOR FOR %s", name, select);
    PGresult *result = PQexec(r->pg, sql);
    bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    *c = (struct cursor){ .name = done ? name : NULL, .fetch = PAGE_FIRST };
    return done;
}

static void cursor_close(struct hf_pg_scan *r, struct cursor *c)
{
    char sql[64];
    if (c->name) {
        snprintf(sql, sizeof sql, "CLOSE %s", c->name);
        PQclear(PQexec(r->pg, sql));
    }
    PQclear(c->page);
    *c = (struct cursor){ .name = NULL };
}

/* Next time fetch as many rows as fit into a page, by the size of these. */
static int fetch_next(const struct cursor *c)
{
    size_t room = PAGE_BYTES / (PQresultMemorySize(c->page) / (size_t)c->rows + 1);
    return room < 1 ? 1 : room > PAGE_MAX ? PAGE_MAX : (int)room;
}

/* Advance: the row is row c->row - 1 of c->page. 1: there is one; 0: no more; -1: failed. */
static int cursor_next(struct hf_pg_scan *r, struct cursor *c)
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

/* In the order of enum hf_pg_scan_table; keys first, then the columns in the order of
 * audit/fields.c. */
static const struct {
    enum hf_pg_scan_table table;
    size_t keys;
    const char *select;
} tables[] = {
    { HF_PG_SCAN_CONFIG, 0,
      "SELECT idempotency_window_ms, token_max_length, registry_strict, digest_name, program "
      "FROM holdfast.store" },
    { HF_PG_SCAN_TOKEN, 2,
      "SELECT tenant, key, action, status, digest, recorded_at, expires_at, entry, hold, previous, "
      "state, on_abandon, fence, lease_ms, lease_expires_at, settled_at, response, "
      "retention_ms FROM holdfast.token" },
    { HF_PG_SCAN_HOLD, 1,
      "SELECT ordinal, id, tenant, resource, requester, state, placed_at, expires_at, ended_at, "
      "previous, reverses, reacquires FROM holdfast.hold" },
    { HF_PG_SCAN_SUCCEEDED, 2,
      "SELECT tenant, id, succeeded_by FROM holdfast.hold WHERE succeeded_by IS NOT NULL" },
    { HF_PG_SCAN_RESOURCE, 2,
      "SELECT tenant, name, capacity, held, confirmed, open, require_fence, fence::text AS fence, "
      "newest, created_at FROM holdfast.resource" },
    { HF_PG_SCAN_RESOURCE_MADE, 2,
      "SELECT tenant, name, number, created_at FROM holdfast.resource" },
    { HF_PG_SCAN_RESOURCE_DUE, 2,
      "SELECT r.tenant, r.name, r.due_at, h.ends_at FROM holdfast.resource r LEFT JOIN (SELECT "
      "tenant, resource, min(expires_at) AS ends_at FROM holdfast.hold WHERE state = 'held' GROUP "
      "BY tenant, resource) h ON h.tenant = r.tenant AND h.resource = r.name WHERE h.ends_at < "
      "r.due_at OR r.due_at IS NULL" },
    { HF_PG_SCAN_GUARD, 2,
      "SELECT tenant, name, window_ms, match, on_unavailable, durable, created_at FROM "
      "holdfast.guard" },
    { HF_PG_SCAN_GUARD_MADE, 2, "SELECT tenant, name, number, created_at FROM holdfast.guard" },
    { HF_PG_SCAN_IDENTITY, 3,
      "SELECT tenant, guard, identity, result, recorded_at, expires_at, number FROM "
      "holdfast.guard_entry" },
    { HF_PG_SCAN_LEASE, 2,
      "SELECT tenant, name, holder, fence, ttl_ms, granted_at, expires_at, released_at "
      "FROM holdfast.lease WHERE deleted_at IS NULL" },
    { HF_PG_SCAN_LEASE_LEFT, 2,
      "SELECT tenant, name, ttl_ms, deleted_at FROM holdfast.lease WHERE deleted_at IS NOT NULL "
      "AND (ttl_ms BETWEEN 0 AND 315360000000 AND fence >= 0 AND octet_length(holder) <= 1024 AND "
      "granted_at <= deleted_at AND isfinite(granted_at) AND isfinite(expires_at) AND deleted_at "
      "<= (SELECT max(at) FROM holdfast.journal)) IS NOT TRUE" },
    { HF_PG_SCAN_REGISTER, 2,
      "SELECT tenant, name, type, value, version, fence::text AS fence, require_fence, "
      "changed_at FROM holdfast.register" },
    { HF_PG_SCAN_CLIENT, 2,
      "SELECT tenant, name, highest::text AS highest, used FROM holdfast.client" },
    { HF_PG_SCAN_CALL, 3,
      "SELECT tenant, client, slot, sequence::text AS sequence, action, status, digest, "
      "recorded_at, entry FROM holdfast.client_call" },
    { HF_PG_SCAN_VALUE, 2, "SELECT tenant, key, value FROM holdfast.app_value" },
    { HF_PG_SCAN_OUTBOX, 1,
      "SELECT number, tenant, key, topic, payload, state, created_at FROM holdfast.outbox" },
    { HF_PG_SCAN_COUNTER, 1,
      "SELECT sequencename::text AS name, CASE WHEN has_sequence_privilege(format('%I.%I', "
      "schemaname, sequencename), 'SELECT, USAGE') THEN coalesce(last_value, 0) END AS value FROM "
      "pg_sequences WHERE schemaname = 'holdfast'" },
    { HF_PG_SCAN_KEYLESS, 1,
      "SELECT c.relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = "
      "c.relnamespace WHERE n.nspname = 'holdfast' AND c.relname IN ('store', 'writer', 'journal', "
      "'token', 'resource', 'hold', 'guard', 'guard_entry', 'lease', 'register', 'client', "
      "'client_call', 'app_value', 'outbox') AND NOT EXISTS (SELECT FROM pg_index i WHERE "
      "i.indrelid = c.oid AND i.indisprimary AND i.indisvalid)" },
};

enum hf_pg_scan_step hf_pg_scan_row(struct hf_pg_scan *r, struct hf_pg_scan_row *out)
{
    for (; r->at < sizeof tables / sizeof *tables; r->at++) {
        if (!r->table.name &&
            !cursor_open(r, &r->table, "holdfast_audit_rows", tables[r->at].select))
            return HF_PG_SCAN_FAILED;
        int got = cursor_next(r, &r->table);
        *out = (struct hf_pg_scan_row){ .table = tables[r->at].table, .keys = tables[r->at].keys };
        if (got > 0 && row_fill(r->table.page, r->table.row - 1, 0, r->row_digits, out))
            return HF_PG_SCAN_ROW;
        if (got != 0)
            return HF_PG_SCAN_FAILED;
        cursor_close(r, &r->table);
    }
    return HF_PG_SCAN_END;
}

/* ---- The journal ---- */

enum { COLUMN_NUMBER, COLUMN_WRITER, COLUMN_BATCH, COLUMN_ENTRY, COLUMN_BESIDE };
#define JOURNAL                                                                                   \
    "SELECT number, writer, batch, entry, at, tenant, action, status, key FROM holdfast.journal " \
    "ORDER BY "                                                                                   \
    "number"

enum hf_pg_scan_step hf_pg_scan_entry(struct hf_pg_scan *r, struct hf_pg_scan_entry *out)
{
    if (!r->journal.name && !r->journal.page &&
        !cursor_open(r, &r->journal, "holdfast_audit", JOURNAL))
        return HF_PG_SCAN_FAILED;
    int got = cursor_next(r, &r->journal);
    if (got <= 0) {
        if (got == 0)
            cursor_close(r, &r->journal);
        return got == 0 ? HF_PG_SCAN_END : HF_PG_SCAN_FAILED;
    }
    const PGresult *page = r->journal.page;
    int row = r->journal.row - 1;
    *out = (struct hf_pg_scan_entry){ .number = (uint64_t)number_of(page, row, COLUMN_NUMBER),
                                      .batch = (uint64_t)number_of(page, row, COLUMN_BATCH),
                                      .writer = (uint32_t)number_of(page, row, COLUMN_WRITER),
                                      .entry = bytes_of(page, row, COLUMN_ENTRY),
                                      .at = time_of(page, row, COLUMN_BESIDE) };
    return row_fill(page, row, COLUMN_BESIDE, r->entry_digits, &out->beside) ? HF_PG_SCAN_ROW
                                                                             : HF_PG_SCAN_FAILED;
}

void hf_pg_scan_entry_again(struct hf_pg_scan *r)
{
    r->journal.row--;
}

bool hf_pg_scan_entry_at(struct hf_pg_scan *r, uint64_t position, struct hf_bytes *entry)
{
    char number[24];
    const char *params[] = { number };
    snprintf(number, sizeof number, "%lld", (long long)position); /* a row changed by hand may have
                                                                   * a negative number */
    PQclear(r->side);
    r->side = PQexecParams(r->pg, "SELECT entry FROM holdfast.journal WHERE number = $1::bigint", 1,
                           NULL, params, NULL, NULL, 1);
    *entry = hf_mem("", 0);
    if (PQresultStatus(r->side) != PGRES_TUPLES_OK)
        return false;
    if (PQntuples(r->side) == 1)
        *entry = bytes_of(r->side, 0, 0);
    return true;
}

bool hf_pg_scan_writers(struct hf_pg_scan *r,
                        bool (*each)(void *arg, const struct hf_pg_scan_writer *writer), void *arg)
{
    PGresult *result =
        PQexecParams(r->pg, "SELECT id, name, batch, chain FROM holdfast.writer ORDER BY id", 0,
                     NULL, NULL, NULL, NULL, 1);
    bool done = PQresultStatus(result) == PGRES_TUPLES_OK, goes_on = true;
    for (int i = 0; done && goes_on && i < PQntuples(result); i++) {
        char name[128];
        snprintf(name, sizeof name, "%s", PQgetvalue(result, i, 1));
        make_harmless(name);
        goes_on = each(arg, &(struct hf_pg_scan_writer){ .id = (uint32_t)number_of(result, i, 0),
                                                         .batch = (uint64_t)number_of(result, i, 2),
                                                         .name = name,
                                                         .chain = bytes_of(result, i, 3) });
    }
    PQclear(result);
    return done;
}

/* ---- Opening and closing ---- */

static enum hf_status connect_to(struct hf_pg_scan *r, struct hf_error *why)
{
    /* Do not wait for ever for a database that stops answering. The connection string comes later
     * in the list, and wins. */
    const char *const keywords[] = { "connect_timeout",
                                     "keepalives_idle",
                                     "keepalives_interval",
                                     "tcp_user_timeout",
                                     "fallback_application_name",
                                     "dbname",
                                     NULL };
    const char *const values[] = { "10", "30", "10", "60000", "holdfast audit", r->conninfo, NULL };
    char told[240];
    r->pg = PQconnectdbParams(keywords, values, 1);
    if (!r->pg)
        return no_memory(why);
    if (PQstatus(r->pg) == CONNECTION_OK && PQsetClientEncoding(r->pg, "UTF8") == 0)
        return HF_OK;
    message_copy(r, told, sizeof told);
    return hf_error_set(why, HF_STORAGE_FAILURE, "Cannot connect to %s: %s.", r->where, told);
}

static bool run(struct hf_pg_scan *r, const char *sql)
{
    PGresult *result = PQexec(r->pg, sql);
    bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return done;
}

/* Read a number from the database. False: hf_pg_scan_failed has the error. */
static bool ask(struct hf_pg_scan *r, const char *sql, int *answer)
{
    PGresult *result = PQexec(r->pg, sql);
    bool asked = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
    *answer = asked ? atoi(PQgetvalue(result, 0, 0)) : 0;
    PQclear(result);
    return asked;
}

/* Does the store exist, and do we know its tables? */
static enum hf_status store_find(struct hf_pg_scan *r, struct hf_error *why)
{
    int there = 0, version = 0;
    if (!ask(r, "SELECT (to_regclass('holdfast.journal') IS NOT NULL)::integer", &there) ||
        (there && !ask(r, "SELECT max(version) FROM holdfast.migration", &version)))
        return hf_pg_scan_failed(r, why);
    if (there && version <= HF_PG_SCAN_SCHEMA)
        return HF_OK;
    if (there) {
        return hf_error_set(why, HF_STORE_NEWER,
                            "The schema holdfast in %s has version %d; this program (%s) knows "
                            "versions up to %d. Use a newer holdfast.",
                            r->where, version, HF_VERSION, HF_PG_SCAN_SCHEMA);
    }
    return hf_error_set(why, HF_STORE_ABSENT,
                        "No Holdfast store is in %s: there is no table holdfast.journal.",
                        r->where);
}

/* Read the secret of the hold ids. Not every auditor may read it: without it, ids are known from
 * the records alone. */
static bool key_read(struct hf_pg_scan *r, struct hf_pg_scan_store *out)
{
    int may = 0;
    if (!ask(r, "SELECT has_column_privilege('holdfast.store', 'id_key', 'SELECT')::integer", &may))
        return false;
    if (!may)
        return true;
    PGresult *result =
        PQexecParams(r->pg, "SELECT id_key FROM holdfast.store", 0, NULL, NULL, NULL, NULL, 1);
    bool asked = PQresultStatus(result) == PGRES_TUPLES_OK;
    struct hf_bytes key = asked && PQntuples(result) == 1 ? bytes_of(result, 0, 0) : hf_mem("", 0);
    out->has_key = key.size == sizeof out->id_key;
    if (out->has_key)
        memcpy(out->id_key, key.data, key.size);
    PQclear(result);
    return asked;
}

enum hf_status hf_pg_scan_store(struct hf_pg_scan *r, struct hf_pg_scan_store *out,
                                struct hf_error *why)
{
    enum hf_status st = HF_OK;
    *out = (struct hf_pg_scan_store){ .newest = 0 };
    if (!key_read(r, out))
        return hf_pg_scan_failed(r, why);
    PGresult *result =
        PQexecParams(r->pg,
                     "SELECT store_id, date_trunc('milliseconds', now()), "
                     "(SELECT max(number) FROM holdfast.journal) FROM holdfast.store",
                     0, NULL, NULL, NULL, NULL, 1);
    bool asked = PQresultStatus(result) == PGRES_TUPLES_OK;
    if (asked && PQntuples(result) == 1) {
        struct hf_bytes id = bytes_of(result, 0, 0);
        if (id.size == sizeof out->store_id)
            memcpy(out->store_id, id.data, id.size);
        out->as_of = time_of(result, 0, 1);
        out->newest = (uint64_t)number_of(result, 0, 2);
    } else if (asked) {
        st = hf_error_set(why, HF_STORE_DAMAGED,
                          "holdfast.store in %s must contain exactly one row, with the store's "
                          "id and keys. Restore the row from a backup.",
                          r->where);
    } else {
        st = hf_pg_scan_failed(r, why);
    }
    PQclear(result);
    return st;
}

/* Is this the primary that the server uses? A former primary that came back may have commits that
 * no other database has. */
static enum hf_status timeline_is(struct hf_pg_scan *r, uint32_t timeline, struct hf_error *why)
{
    int is = 0;
    if (timeline == 0)
        return HF_OK;
    if (!ask(r,
             "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint",
             &is))
        return hf_pg_scan_failed(r, why);
    if ((uint32_t)is == timeline)
        return HF_OK;
    return hf_error_set(why, HF_STORAGE_FAILURE,
                        "Timeline mismatch: the database is on timeline %d, the server on "
                        "timeline %u. A standby was promoted; do not use the database with the "
                        "lower timeline any more.",
                        is, (unsigned)timeline);
}

static enum hf_status database_open(struct hf_pg_scan *r, uint32_t timeline, struct hf_error *why)
{
    enum hf_status st = connect_to(r, why);
    if (st != HF_OK)
        return st;
    if (!run(r, "SET search_path = pg_catalog") ||
        !run(r, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
        return hf_pg_scan_failed(r, why);
    st = timeline_is(r, timeline, why);
    return st == HF_OK ? store_find(r, why) : st;
}

void hf_pg_scan_close(struct hf_pg_scan *r)
{
    if (!r)
        return;
    PQclear(r->journal.page);
    PQclear(r->table.page);
    PQclear(r->side);
    PQfinish(r->pg);
    free(r->conninfo);
    free(r->where);
    free(r);
}

enum hf_status hf_pg_scan_open(const char *conninfo, const char *where, uint32_t timeline,
                               struct hf_pg_scan **scan, struct hf_error *why)
{
    struct hf_pg_scan *r = calloc(1, sizeof *r);
    *scan = NULL;
    if (r) {
        r->conninfo = strdup(conninfo);
        r->where = strdup(where);
    }
    enum hf_status st =
        r && r->conninfo && r->where ? hf_conninfo_check(conninfo, why) : no_memory(why);
    if (st == HF_OK)
        st = database_open(r, timeline, why);
    if (st == HF_OK)
        *scan = r;
    else
        hf_pg_scan_close(r);
    return st;
}
