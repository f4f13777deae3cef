/* Lists, on their own session. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/id.h"
#include "store/postgres/pool.h"
#include "store/record/page.h"

#include <inttypes.h>
#include <stdio.h>

/* LOOK_MAX: records read in one call. LOOK_AT_ONCE: records read in one query. */
enum { LOOK_MAX = 20000, LOOK_AT_ONCE = 1000, ROWS_TEXT = 24 };

/* A batch reads the time and then draws an ordinal, and batches overlap: a hold placed later may
 * have the lower ordinal, by a moment. */
enum { ORDER_MS = 1000 };

struct listing {
    struct hf_paging to;
    struct hf_pg_conn *conn;
    struct hf_pg_shared *shared;
    hf_time now; /* engine time, for lists of identities */
    struct hf_arena *arena;
    bool doubtful; /* it has seen a row that a standby may not have */
    char tenant[HF_TENANT_MAX + 1], name[HF_NAME_MAX + 1];
};

static void text_of(char *to, size_t size, struct hf_bytes from)
{
    snprintf(to, size, "%.*s", (int)from.size, from.size ? (const char *)from.data : "");
}

/* The last columns of every query: the transaction that wrote the row, and the first transaction
 * that is not visible; NULL where commits wait for no standby. */
#define NEXT                                                                     \
    "(SELECT CASE WHEN current_setting('synchronous_standby_names') <> '' THEN " \
    "pg_snapshot_xmax(pg_current_snapshot()) END)"
#define WRITTEN(by) by ", " NEXT

/* Does a standby have all rows? */
static void note_doubtful(struct listing *l, const PGresult *result)
{
    int next = PQnfields(result) - 1;
    for (int i = 0; i < PQntuples(result) && !l->doubtful && !PQgetisnull(result, i, next); i++) {
        struct hf_bytes by = hf_pg_get_bytes(result, i, next - 1);
        uint64_t xid = by.size == 4 ? hf_pg_xid(hf_pg_version(by.data),
                                                (uint64_t)hf_pg_get_int8(result, i, next))
                                    : UINT64_MAX;
        l->doubtful = !hf_pg_replicated_has(&l->shared->replicated, l->conn->timeline, xid);
    }
}

/* No list shows rows that a call can remove: a row that is missing on a page never existed, or its
 * window is over. */
static bool is_complete(enum hf_pg_table table)
{
    return !hf_pg_spec(table)->is_erased;
}

/* Select the columns of `table` as t, which has the column `by` (or is a table: xmin), followed by
 * `rest`. False, with the status set, if it fails. */
static bool ask(struct listing *l, enum hf_pg_table table, const char *with, const char *by,
                const char *rest, const char *const *params, int count, PGresult **result)
{
    struct hf_buffer sql = { .data = NULL };
    HF_ASSERT(is_complete(table));
    hf_buffer_add_text(&sql, with);
    hf_buffer_add_text(&sql, " SELECT ");
    hf_pg_sql_columns(&sql, table);
    hf_buffer_printf(&sql, ", t.%s, " NEXT, by);
    hf_buffer_add_text(&sql, rest);
    const char *text = hf_buffer_text(&sql);
    enum hf_pg_outcome outcome =
        text ? hf_pg_ask(l->conn, text, count, params, true, result) : HF_PG_REFUSED;
    hf_buffer_free(&sql);
    if (outcome != HF_PG_FINE)
        l->to.status = HF_STORAGE_FAILURE;
    else
        note_doubtful(l, *result);
    return outcome == HF_PG_FINE;
}

/* The page's record in `record`. */
static const void *record_of(const struct listing *l, const struct hf_pg_record *record)
{
    switch (l->to.query->kind) {
    case HF_LIST_HOLDS: return &record->row.hold;
    case HF_LIST_RESOURCES: return &record->row.resource;
    case HF_LIST_GUARDS: return &record->row.guard;
    case HF_LIST_ENTRIES: return &record->row.entry;
    case HF_LIST_OUTBOX: break;
    }
    return &record->row.outbox;
}

/* The row could not be read. A row that was changed by hand is left out; other records are still
 * valid. False if out of memory. */
static bool pass_over(struct listing *l, enum hf_pg_table table, const struct hf_pg_record *record)
{
    if (record->unsound)
        hf_pg_unsound(l->shared, table, record);
    else
        l->to.status = HF_NO_MEMORY;
    return record->unsound;
}

/* Read a hold; its id is checked only if the hold is shown. */
static bool hold_read(struct listing *l, const PGresult *result, int row, struct hf_pg_record *out)
{
    if (!hf_pg_record_read(HF_PG_HOLD, result, row, 0, l->arena, out))
        return false;
    out->unsound = hf_paging_wants(l->to.query, &out->row.hold) &&
                   !hf_pg_record_fits(l->shared->id_key, HF_PG_HOLD, out);
    return !out->unsound;
}

/* A page of records that are listed by number. */
static void list_numbered(struct listing *l, enum hf_pg_table table, const char *rest)
{
    char before[ROWS_TEXT], most[ROWS_TEXT], now[ROWS_TEXT];
    PGresult *result;
    snprintf(before, sizeof before, "%" PRIu64,
             l->to.query->cursor && l->to.query->cursor <= INT64_MAX ? l->to.query->cursor
                                                                     : INT64_MAX);
    snprintf(most, sizeof most, "%zu", l->to.limit + 1);
    snprintf(now, sizeof now, "%" PRId64, l->now);
    const char *const params[] = { l->tenant, before, most, l->name, now };
    if (!ask(l, table, "", "xmin", rest, params, l->to.query->kind == HF_LIST_ENTRIES ? 5 : 3,
             &result))
        return;
    for (int i = 0; i < PQntuples(result) && l->to.status == HF_OK; i++) {
        struct hf_pg_record record;
        if (!hf_pg_record_read(table, result, i, 0, l->arena, &record)) {
            (void)pass_over(l, table, &record);
        } else if (l->to.page->count < l->to.limit) {
            hf_paging_add(&l->to, record_of(l, &record));
        } else {
            uint64_t number = table == HF_PG_OUTBOX ? record.row.outbox.number : record.number;
            l->to.page->next_cursor = number + 1;
        }
    }
    PQclear(result);
}

/* Add holds, newest first. False: the page is complete. from: in and out, where to continue. */
static bool add_holds(struct listing *l, const PGresult *result, bool by_resource, uint64_t *from)
{
    const struct hf_query *q = l->to.query;
    for (int i = 0; i < PQntuples(result); i++) {
        struct hf_pg_record record;
        const struct hf_hold *hold = &record.row.hold;
        bool good = hold_read(l, result, i, &record);
        if (!good && !pass_over(l, HF_PG_HOLD, &record))
            return false;
        *from = by_resource ? hold->previous : hold->ordinal - 1;
        if (by_resource && hold->previous >= hold->ordinal) { /* a loop */
            *from = 0;
            return false;
        }
        if (!good)
            continue;
        if (l->to.page->count == l->to.limit) {
            l->to.page->next_cursor = hold->ordinal + 1;
            return false;
        }
        if (hold->placed_at + ORDER_MS < q->from)
            return false;
        if (hold->placed_at >= q->from && hf_paging_wants(q, hold))
            hf_paging_add(&l->to, hold);
    }
    if (PQntuples(result) == 0 || *from > INT64_MAX) /* an ordinal below 1 ends the list too */
        *from = 0;
    return *from > 0 && l->to.status == HF_OK;
}

/* The newest hold that may be on the page. */
static bool newest_hold(struct listing *l, uint64_t *out)
{
    PGresult *result;
    const char *const params[] = { l->tenant, l->name };
    bool by_resource = l->to.query->resource.size > 0;
    if (hf_pg_ask(l->conn,
                  by_resource
                      ? "SELECT newest, " WRITTEN(
                            "xmin") " FROM holdfast.resource WHERE tenant = $1 AND name = $2"
                      : "SELECT ordinal, " WRITTEN(
                            "xmin") " FROM holdfast.hold ORDER BY ordinal DESC LIMIT 1",
                  by_resource ? 2 : 0, params, true, &result) != HF_PG_FINE) {
        l->to.status = HF_STORAGE_FAILURE;
        return false;
    }
    note_doubtful(l, result);
    *out = PQntuples(result) > 0 ? (uint64_t)hf_pg_get_int8(result, 0, 0) : 0;
    PQclear(result);
    if (l->to.query->cursor && l->to.query->cursor - 1 < *out)
        *out = l->to.query->cursor - 1;
    return true;
}

static void list_holds(struct listing *l)
{
    bool by_resource = l->to.query->resource.size > 0;
    uint64_t from;
    bool more = newest_hold(l, &from) && from > 0;
    for (unsigned looked = 0; more; looked += LOOK_AT_ONCE) {
        char start[ROWS_TEXT], most[ROWS_TEXT];
        PGresult *result;
        if (looked >= LOOK_MAX) {
            l->to.page->next_cursor = from + 1;
            return;
        }
        snprintf(start, sizeof start, "%" PRIu64, from);
        snprintf(most, sizeof most, "%d", LOOK_AT_ONCE);
        const char *const params[] = { start, most };
        if (by_resource
                ? !ask(l, HF_PG_HOLD,
                       "WITH RECURSIVE t AS (SELECT *, xmin AS written_by FROM holdfast.hold WHERE "
                       "ordinal = $1::bigint UNION ALL SELECT h.*, h.xmin FROM t JOIN "
                       "holdfast.hold h ON h.ordinal = t.previous)",
                       "written_by", " FROM t LIMIT $2::bigint", params, 2, &result)
                : !ask(l, HF_PG_HOLD, "", "xmin",
                       " FROM holdfast.hold t WHERE ordinal <= $1::bigint ORDER BY ordinal DESC "
                       "LIMIT $2::bigint",
                       params, 2, &result))
            return;
        more = add_holds(l, result, by_resource, &from);
        PQclear(result);
    }
}

/* Does the guard exist, and which identities have expired? Engine time is read as for a batch: the
 * database's clock is not always trusted, and other servers may have committed at a later time. */
static void list_entries(struct listing *l)
{
    PGresult *result;
    const char *const params[] = { l->tenant, l->name };
    hf_time asked = hf_pg_clock_boot(l->shared);
    if (hf_pg_ask(l->conn,
                  "SELECT " HF_PG_TIMES
                  ", " WRITTEN("xmin") " FROM holdfast.guard WHERE tenant = $1 AND name = $2",
                  2, params, true, &result) != HF_PG_FINE) {
        l->to.status = HF_STORAGE_FAILURE;
        return;
    }
    note_doubtful(l, result);
    bool known = PQntuples(result) == 1;
    if (known) {
        struct hf_engine_clock_reading reading = hf_pg_clock_reading(l->shared, result, asked);
        l->now = hf_pg_clock_read(l->shared, &reading);
    }
    PQclear(result);
    if (!known)
        l->to.status = HF_NOT_KNOWN;
    else
        list_numbered(
            l, HF_PG_ENTRY,
            " FROM holdfast.guard_entry t WHERE tenant || chr(31) || guard = $1::text || chr(31) "
            "|| $4::text AND (tenant, guard) IS NOT DISTINCT FROM ($1::text, $4::text) AND number "
            "< $2::bigint AND expires_at > to_timestamp($5::numeric / 1000) ORDER BY number DESC "
            "LIMIT $3::bigint");
}

static void list_kind(struct listing *l)
{
    switch (l->to.query->kind) {
    case HF_LIST_HOLDS: list_holds(l); break;
    case HF_LIST_RESOURCES:
        list_numbered(
            l, HF_PG_RESOURCE,
            " FROM holdfast.resource t WHERE tenant || chr(31) = $1::text || chr(31) AND number < "
            "$2::bigint ORDER BY number DESC LIMIT $3::bigint");
        break;
    case HF_LIST_GUARDS:
        list_numbered(
            l, HF_PG_GUARD,
            " FROM holdfast.guard t WHERE tenant || chr(31) = $1::text || chr(31) AND number < "
            "$2::bigint ORDER BY number DESC LIMIT $3::bigint");
        break;
    case HF_LIST_ENTRIES: list_entries(l); break;
    case HF_LIST_OUTBOX:
        list_numbered(l, HF_PG_OUTBOX,
                      " FROM holdfast.outbox t WHERE tenant = $1 AND number < $2::bigint ORDER BY "
                      "number DESC LIMIT $3::bigint");
        break;
    }
}

enum hf_status hf_pool_list(struct hf_store *store, const struct hf_query *query,
                            struct hf_page *page)
{
    struct hf_pool *r = hf_pool_of(store);
    struct listing l = { .conn = &r->reader.conn,
                         .arena = &r->reader.set.arena,
                         .shared = &r->shared };
    struct hf_query inner = *query;
    const struct hf_sipkey key = { hf_get64(r->shared.id_key), hf_get64(r->shared.id_key + 8) };
    inner.cursor = hf_cursor_read(&key, query->tenant, query->cursor);
    enum hf_status st = hf_paging_begin(&l.to, &inner, page);
    if (st != HF_OK)
        return st;
    text_of(l.tenant, sizeof l.tenant, query->tenant);
    text_of(l.name, sizeof l.name, query->kind == HF_LIST_HOLDS ? query->resource : query->name);
    pthread_mutex_lock(&r->reader_lock);
    /* A connection that died while idle shows only when it is used: then try once more. The same
     * for a primary that is replaced during the read. */
    (void)hf_pg_session_is_newest(&r->reader); /* closes it if not */
    for (int tries = 0; tries < 2; tries++) {
        l.to.status = HF_OK;
        l.doubtful = false;
        l.to.page->count = 0;
        l.to.bytes.size = 0;
        if (!l.conn->pg && hf_pg_session_read(&r->reader) != HF_PG_FINE)
            l.to.status = HF_STORAGE_FAILURE;
        else
            list_kind(&l);
        if (!hf_pg_session_is_newest(&r->reader))
            l.to.status = HF_STORAGE_FAILURE;
        if (l.to.status != HF_STORAGE_FAILURE || l.conn->pg)
            break;
    }
    hf_arena_reset(l.arena);
    uint32_t timeline = l.conn->timeline;
    pthread_mutex_unlock(&r->reader_lock);
    if (l.doubtful && l.to.status == HF_OK && !hf_pool_confirm(r, timeline, NULL))
        l.to.status = HF_STORAGE_FAILURE;
    page->next_cursor = hf_cursor_make(&key, query->tenant, page->next_cursor);
    return hf_paging_end(&l.to);
}
