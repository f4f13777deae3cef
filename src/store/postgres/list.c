/* Lists, on their own session. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/id.h"
#include "base/text.h"
#include "core/claim.h"
#include "store/postgres/pool.h"
#include "store/record/page.h"

#include <inttypes.h>
#include <stdio.h>

/* LOOK_MAX: records read in one call. LOOK_AT_ONCE: records read in one query. */
enum { LOOK_MAX = 20000, LOOK_AT_ONCE = 1000, ROWS_TEXT = 24 };

/* When no time is given: within the range of the database's times. */
#define TIME_FIRST INT64_C(-62135596800000) /* 0001-01-01 */
#define TIME_LAST INT64_C(253402300800000)  /* 10000-01-01 */

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

/* Select the columns of `table` as t, then `by`: further columns, the last of them that of the
 * transaction. rest: what follows. False, with the status set, if it fails. */
static bool ask(struct listing *l, enum hf_pg_table table, const char *with, const char *by,
                const char *rest, const char *const *params, int count, PGresult **result)
{
    struct hf_buffer sql = { .data = NULL };
    HF_ASSERT(is_complete(table));
    hf_buffer_add_text(&sql, with);
    hf_buffer_add_text(&sql, " SELECT ");
    hf_pg_sql_columns(&sql, table);
    hf_buffer_printf(&sql, ", %s, " NEXT, by);
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
    case HF_LIST_OUTBOX:
    case HF_LIST_CLAIMS: break;
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
    if (!ask(l, table, "", "t.xmin", rest, params, l->to.query->kind == HF_LIST_ENTRIES ? 5 : 3,
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
                       "t.written_by", " FROM t LIMIT $2::bigint", params, 2, &result)
                : !ask(l, HF_PG_HOLD, "", "t.xmin",
                       " FROM holdfast.hold t WHERE ordinal <= $1::bigint ORDER BY ordinal DESC "
                       "LIMIT $2::bigint",
                       params, 2, &result))
            return;
        more = add_holds(l, result, by_resource, &from);
        PQclear(result);
    }
}

/* Engine time, from a result that begins with HF_PG_TIMES. It is read as for a batch: the
 * database's clock is not always trusted, and other servers may have committed at a later time.
 * asked: the boot clock before the query. */
static void take_time(struct listing *l, const PGresult *result, hf_time asked)
{
    struct hf_engine_clock_reading reading = hf_pg_clock_reading(l->shared, result, asked);
    l->now = hf_pg_clock_read(l->shared, &reading);
}

/* Does the guard exist, and which identities have expired? */
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
    if (known)
        take_time(l, result, asked);
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

/* ---- Claims ---- */

/* The newest $4 claims below the cursor, state by state: each state is a part of one index. Of
 * them, up to $6 that match, newest first, and of these as many as a page may have bytes: a
 * response is read only if it is shown. The columns of the claim, then: how many match; where to
 * continue if more claims are left to look at; and those of note_doubtful. There is always a row,
 * with NULLs if no claim matches. */
#define CLAIMS_LOOKED                                                                          \
    "WITH looked AS MATERIALIZED (SELECT l.* FROM unnest($2::text[]) AS s(state) CROSS JOIN "  \
    "LATERAL (SELECT x.tenant, x.key, x.fence, x.state, x.recorded_at, x.expires_at, "         \
    "x.lease_expires_at, coalesce(octet_length(x.response), 0) AS size FROM holdfast.token x " \
    "WHERE "
#define CLAIMS_MATCHING                                                                           \
    " AND x.state = s.state AND x.fence < $3::bigint ORDER BY x.fence DESC LIMIT $4::bigint) l "  \
    "ORDER BY l.fence DESC LIMIT $4::bigint), matching AS MATERIALIZED (SELECT tenant, key, "     \
    "fence, sum(size) OVER (ORDER BY fence DESC) - size AS before FROM looked WHERE "             \
    "starts_with(key, replace($5::text, '\\', '\\\\')) AND recorded_at "                          \
    ">= to_timestamp($7::numeric / 1000) AND recorded_at < to_timestamp($8::numeric / 1000) AND " \
    "CASE WHEN state <> 'started' THEN expires_at > to_timestamp($9::numeric / 1000) WHEN "       \
    "$10::text = '' THEN true ELSE (lease_expires_at <= to_timestamp($9::numeric / 1000)) = "     \
    "($10::text = 'unknown') END ORDER BY fence DESC LIMIT $6::bigint)"
#define CLAIMS_SHOWN                                                                               \
    " FROM (SELECT (SELECT count(*) FROM matching) AS matching, CASE WHEN count(*) = $4::bigint "  \
    "AND min(recorded_at) >= to_timestamp($7::numeric / 1000) THEN min(fence) END AS last FROM "   \
    "looked) e LEFT JOIN (SELECT x.*, x.xmin AS written_by FROM matching m CROSS JOIN LATERAL "    \
    "(SELECT * , xmin FROM holdfast.token x WHERE x.key = m.key AND x.tenant = m.tenant LIMIT 1) " \
    "x WHERE m.before < 8388608) t ON true ORDER BY t.fence DESC"

/* Of one tenant, or of all: unsettled claims have an index of their own. */
static const char claims_of_tenant[] =
    CLAIMS_LOOKED "x.tenant || chr(31) = $1::text || chr(31)" CLAIMS_MATCHING;
static const char claims_of_all[] =
    CLAIMS_LOOKED "x.state = 'started' AND $1::text = ''" CLAIMS_MATCHING;

/* A time as milliseconds; `open` if it is not given. */
static void time_text(char out[ROWS_TEXT], hf_time time, hf_time open)
{
    hf_time t = time == 0           ? open
                : time < TIME_FIRST ? TIME_FIRST
                : time > TIME_LAST  ? TIME_LAST
                                    : time;
    snprintf(out, ROWS_TEXT, "%" PRId64, t);
}

/* Add the claims of the result. */
static void add_claims(struct listing *l, const PGresult *result, int matching)
{
    int count = PQgetisnull(result, 0, 0) ? 0 : PQntuples(result);
    uint64_t last = 0;
    for (int i = 0; i < count && l->to.status == HF_OK && l->to.page->count < l->to.limit; i++) {
        struct hf_pg_record record;
        struct hf_claim claim;
        bool good = hf_pg_record_read(HF_PG_TOKEN, result, i, 0, l->arena, &record);
        last = record.token.fence;
        if (!good) {
            (void)pass_over(l, HF_PG_TOKEN, &record);
            continue;
        }
        hf_pg_claim_of(&record.token, &claim);
        claim.state = hf_claim_state_at(&claim, l->now);
        if (hf_paging_wants_claim(l->to.query, &claim))
            hf_paging_add(&l->to, &claim);
    }
    int64_t all = hf_pg_get_int8(result, 0, matching);
    if (last > 0 && (count < all || all > (int64_t)l->to.limit))
        l->to.page->next_cursor = last;
    else if (!PQgetisnull(result, 0, matching + 1))
        l->to.page->next_cursor = (uint64_t)hf_pg_get_int8(result, 0, matching + 1);
}

/* The parameters of the query, as text. */
struct claims_asked {
    char before[ROWS_TEXT], look[ROWS_TEXT], most[ROWS_TEXT];
    char from[ROWS_TEXT], to[ROWS_TEXT], now[ROWS_TEXT];
    char prefix[HF_TOKEN_MAX + 1];
};

static void ask_claims(struct listing *l)
{
    static const char *const stored[] = { "{started,completed,failed,retryable}",
                                          "{started}",
                                          "{completed}",
                                          "{failed}",
                                          "{retryable}",
                                          "{started}" };
    static const char *const shown[] = {
        [HF_CLAIM_STARTED] = "started", [HF_CLAIM_UNKNOWN] = "unknown"
    };
    const struct hf_query *q = l->to.query;
    struct claims_asked a;
    /* Another prefix is only compared here, not in the database. */
    bool is_text = q->prefix.size > 0 && hf_utf8_valid(q->prefix) &&
                   !memchr(q->prefix.data, 0, q->prefix.size);
    const char *state =
        q->claim_state < sizeof shown / sizeof *shown ? shown[q->claim_state] : NULL;
    bool filters = q->prefix.size > 0 || q->from != 0 || q->to != 0 || state;
    snprintf(a.before, sizeof a.before, "%" PRIu64,
             q->cursor && q->cursor <= INT64_MAX ? q->cursor : INT64_MAX);
    snprintf(a.look, sizeof a.look, "%zu", filters ? (size_t)LOOK_MAX : l->to.limit + 1);
    snprintf(a.most, sizeof a.most, "%zu", l->to.limit + 1);
    time_text(a.from, q->from, TIME_FIRST);
    time_text(a.to, q->to, TIME_LAST);
    time_text(a.now, l->now, 0);
    text_of(a.prefix, sizeof a.prefix, is_text ? q->prefix : hf_mem(NULL, 0));
    const char *const params[] = {
        l->tenant, stored[q->claim_state], a.before, a.look, a.prefix, a.most, a.from, a.to,
        a.now,     state ? state : ""
    };
    PGresult *result;
    if (!ask(l, HF_PG_TOKEN, q->all_tenants ? claims_of_all : claims_of_tenant,
             "NULL::bytea, e.matching, e.last, t.written_by", CLAIMS_SHOWN, params, 10, &result))
        return;
    int matching = PQnfields(result) - 4;
    /* A claim that another state has now is missing here. */
    l->doubtful = l->doubtful || !PQgetisnull(result, 0, PQnfields(result) - 1);
    add_claims(l, result, matching);
    PQclear(result);
}

static void list_claims(struct listing *l)
{
    PGresult *result;
    hf_time asked = hf_pg_clock_boot(l->shared);
    if (hf_pg_ask(l->conn, "SELECT " HF_PG_TIMES, 0, NULL, true, &result) != HF_PG_FINE) {
        l->to.status = HF_STORAGE_FAILURE;
        return;
    }
    take_time(l, result, asked);
    PQclear(result);
    ask_claims(l);
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
    case HF_LIST_CLAIMS: list_claims(l); break;
    case HF_LIST_OUTBOX:
        list_numbered(l, HF_PG_OUTBOX,
                      " FROM holdfast.outbox t WHERE tenant = $1 AND number < $2::bigint ORDER BY "
                      "number DESC LIMIT $3::bigint");
        break;
    }
}

/* Why the last query failed. */
static struct hf_cause cause_of(const struct hf_pg_conn *conn)
{
    struct hf_cause cause = { .fault = HF_FAULT_UNREADABLE };
    if (conn->state[0] && strcmp(conn->state, HF_PG_UNRULED) != 0) {
        cause.fault = HF_FAULT_DATABASE_REFUSED;
        memcpy(cause.sqlstate, conn->state, sizeof cause.sqlstate);
    } else if (!conn->pg) {
        cause.fault = HF_FAULT_DATABASE_AWAY;
    }
    return cause;
}

enum hf_status hf_pool_list(struct hf_store *store, const struct hf_query *query,
                            struct hf_page *page)
{
    struct hf_pool *r = hf_pool_of(store);
    struct listing l = { .conn = &r->reader.conn,
                         .arena = &r->reader.set.arena,
                         .shared = &r->shared };
    struct hf_query inner = *query;
    struct hf_cause cause = { .fault = HF_FAULT_NONE };
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
        if (l.to.status == HF_STORAGE_FAILURE)
            cause = cause_of(l.conn);
        if (!hf_pg_session_is_newest(&r->reader)) {
            l.to.status = HF_STORAGE_FAILURE;
            cause.fault = HF_FAULT_DATABASE_AWAY;
        }
        if (l.to.status != HF_STORAGE_FAILURE || l.conn->pg)
            break;
    }
    hf_arena_reset(l.arena);
    uint32_t timeline = l.conn->timeline;
    pthread_mutex_unlock(&r->reader_lock);
    if (l.doubtful && l.to.status == HF_OK && !hf_pool_confirm(r, timeline, NULL)) {
        l.to.status = HF_STORAGE_FAILURE;
        cause.fault = HF_FAULT_STANDBY;
    }
    page->next_cursor = hf_cursor_make(&key, query->tenant, page->next_cursor);
    return hf_paging_end(&l.to, &cause);
}
