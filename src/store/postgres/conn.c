#include "store/postgres/conn.h"

#include "base/clock.h"

#include "store/postgres/conninfo.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- What went wrong ---- */

/* Keep the first line of the message of libpq or the server. */
static void why_set(struct hf_pg_conn *conn, const char *message, const char *state)
{
    size_t size = strcspn(message, "\n");
    const char *text = message;
    /* "connection to server at ... failed: FATAL: ..." and "ERROR: ..." are the same to a
     * reader. */
    if (strncmp(text, "ERROR:  ", 8) == 0) {
        text += 8;
        size -= 8;
    }
    snprintf(conn->why, sizeof conn->why, "%.*s",
             (int)(size < sizeof conn->why ? size : sizeof conn->why - 1), text);
    snprintf(conn->state, sizeof conn->state, "%s", state ? state : "");
}

static bool state_is(const char *state, const char *list)
{
    return strlen(state) == 5 && strstr(list, state) != NULL;
}

/* Classify the error of a failed statement. */
static enum hf_pg_outcome judge(struct hf_pg_conn *conn, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    why_set(conn, PQresultErrorMessage(result), state);
    if (!state || PQstatus(conn->pg) == CONNECTION_BAD)
        return HF_PG_LOST;
    if (state_is(state, "23505 40001 40P01"))
        return HF_PG_CONFLICT;
    if (state_is(state,
                 /* lock timeout, or a statement timeout shorter than ours */
                 "55P03 57014"))
        return HF_PG_BUSY;
    /* Shut down, starting, or now a standby: another host of the connection string may be the
     * primary. 23502: another session has taken over this writer's row and raised its generation
     * (see the statement). */
    if (strncmp(state, "08", 2) == 0 || state_is(state, "57P01 57P02 57P03 25006 23502"))
        return HF_PG_LOST;
    return HF_PG_REFUSED;
}

static void on_notice(void *arg, const PGresult *result)
{
    struct hf_pg_conn *conn = arg;
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
    /* The wait for a standby was cancelled. Other warnings do not concern the commit. */
    if (severity && strcmp(severity, "WARNING") == 0 && (!function || strstr(function, "SyncRep")))
        conn->warned = true;
}

/* ---- Waiting ---- */

/* Wait until there is something to read (or to write, if output is pending). False: timeout, or the
 * connection is lost. */
static bool wait_for(struct hf_pg_conn *conn, int64_t until)
{
    for (;;) {
        int more = PQflush(conn->pg);
        if (more < 0)
            return false;
        struct pollfd fd = { .fd = PQsocket(conn->pg),
                             .events = (short)(more ? POLLIN | POLLOUT : POLLIN) };
        int64_t left = until - hf_clock_monotonic_ms();
        int n = fd.fd < 0 || left <= 0 ? -2 : poll(&fd, 1, (int)left);
        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0 || n == -2)
                why_set(conn, "the database did not answer in time", NULL);
            return false;
        }
        if (fd.revents & (POLLIN | POLLHUP | POLLERR)) {
            return PQconsumeInput(conn->pg) == 1;
        }
    }
}

/* The next result, NULL between two statements. False: the connection is lost. */
static bool next_result(struct hf_pg_conn *conn, int64_t until, PGresult **out)
{
    *out = NULL;
    while (PQisBusy(conn->pg))
        if (!wait_for(conn, until))
            return false;
    *out = PQgetResult(conn->pg);
    return PQstatus(conn->pg) != CONNECTION_BAD;
}

static enum hf_pg_outcome lost(struct hf_pg_conn *conn)
{
    if (conn->pg && PQerrorMessage(conn->pg)[0] != '\0')
        why_set(conn, PQerrorMessage(conn->pg), NULL);
    hf_pg_disconnect(conn);
    return HF_PG_LOST;
}

/* ---- Statements in a pipeline ---- */

static void statement_name(int statement, char name[24])
{
    if (statement == HF_PG_COMMIT)
        snprintf(name, 24, "commit");
    else
        snprintf(name, 24, "hf%d", statement);
}

static void sql_of(int statement, struct hf_buffer *b);

/* Preparing a statement that changes or locks rows waits for any lock on its whole table, and an
 * application that sets a guard in its own transaction locks holdfast.guard. Only calls that set a
 * guard too may wait for that: they send the text. */
static bool is_by_text(int statement)
{
    int table = statement >= HF_PG_READ ? (statement - HF_PG_READ) % HF_PG_TABLES : HF_PG_TABLES;
    return table == HF_PG_GUARD && statement - table != HF_PG_READ;
}

static bool send_text(struct hf_pg_conn *conn, int statement, const char *const *values,
                      const int *lengths, const int *formats, int count)
{
    struct hf_buffer sql = { .data = NULL };
    sql_of(statement, &sql);
    const char *text = hf_buffer_text(&sql);
    bool sent =
        text && PQsendQueryParams(conn->pg, text, count, NULL, values, lengths, formats, 1) == 1;
    hf_buffer_free(&sql);
    return sent;
}

void hf_pg_send(struct hf_pg_conn *conn, int statement, const struct hf_bytes *params, int count)
{
    const char *values[HF_PG_PARAMS_MAX];
    int lengths[HF_PG_PARAMS_MAX], formats[HF_PG_PARAMS_MAX];
    char name[24];
    for (int i = 0; i < count; i++) {
        values[i] = params[i].data;
        lengths[i] = (int)params[i].size;
        formats[i] = 1;
    }
    statement_name(statement, name);
    if (statement == HF_PG_BEGIN)
        conn->in_transaction = true;
    if (!conn->pg)
        return;
    if (is_by_text(statement)
            ? send_text(conn, statement, values, lengths, formats, count)
            : PQsendQueryPrepared(conn->pg, name, count, values, lengths, formats, 1) == 1)
        conn->queued++;
    else
        lost(conn);
}

void hf_pg_results_free(PGresult **results, int count)
{
    for (int i = 0; i < count; i++) {
        PQclear(results[i]);
        results[i] = NULL;
    }
}

/* The result of one statement. */
static enum hf_pg_outcome collect(struct hf_pg_conn *conn, int64_t until, PGresult **out)
{
    PGresult *result, *none;
    if (!next_result(conn, until, &result)) {
        PQclear(result);
        return HF_PG_LOST;
    }
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        *out = result;
        return next_result(conn, until, &none) && !none ? HF_PG_FINE : HF_PG_LOST;
    }
    enum hf_pg_outcome outcome =
        status == PGRES_PIPELINE_ABORTED ? HF_PG_CONFLICT : judge(conn, result);
    PQclear(result);
    return next_result(conn, until, &none) && !none ? outcome : HF_PG_LOST;
}

enum hf_pg_outcome hf_pg_run(struct hf_pg_conn *conn, PGresult **results)
{
    int count = conn->queued;
    int64_t until = hf_clock_monotonic_ms() + conn->patience_ms;
    enum hf_pg_outcome outcome = HF_PG_FINE;
    PGresult *sync;
    conn->queued = 0;
    conn->failed = -1;
    conn->state[0] = '\0';
    memset(results, 0, (size_t)count * sizeof *results);
    if (!conn->pg || PQpipelineSync(conn->pg) != 1)
        return lost(conn);
    for (int i = 0; i < count; i++) {
        PGresult *result = NULL;
        enum hf_pg_outcome one = collect(conn, until, &result);
        results[i] = result;
        if (one == HF_PG_LOST && !conn->state[0]) /* the connection itself */
            return lost(conn);
        if (outcome == HF_PG_FINE && one != HF_PG_FINE) {
            conn->failed = i;
            outcome = one;
        }
    }
    if (!next_result(conn, until, &sync) || PQresultStatus(sync) != PGRES_PIPELINE_SYNC) {
        PQclear(sync);
        return lost(conn);
    }
    PQclear(sync);
    if (outcome == HF_PG_LOST)
        hf_pg_disconnect(conn);
    return outcome;
}

void hf_pg_rollback(struct hf_pg_conn *conn)
{
    PGresult *result = NULL;
    if (!conn->pg || !conn->in_transaction)
        return;
    char why[sizeof conn->why], state[sizeof conn->state];
    memcpy(why, conn->why, sizeof why);
    memcpy(state, conn->state, sizeof state);
    conn->queued = 0;
    hf_pg_send(conn, HF_PG_ROLLBACK, NULL, 0);
    if (hf_pg_run(conn, &result) != HF_PG_FINE)
        hf_pg_disconnect(conn);
    PQclear(result);
    memcpy(conn->why, why, sizeof why);
    memcpy(conn->state, state, sizeof state);
    conn->in_transaction = false;
}

/* ---- Statements by their text ---- */

static enum hf_pg_outcome asked(struct hf_pg_conn *conn, PGresult **result)
{
    PGresult *last = NULL, *one;
    enum hf_pg_outcome outcome = HF_PG_FINE;
    int64_t until = hf_clock_monotonic_ms() + conn->patience_ms;
    for (;;) {
        if (!next_result(conn, until, &one)) {
            PQclear(one);
            PQclear(last);
            return lost(conn);
        }
        if (!one)
            break;
        if (outcome == HF_PG_FINE && PQresultStatus(one) != PGRES_TUPLES_OK &&
            PQresultStatus(one) != PGRES_COMMAND_OK)
            outcome = judge(conn, one);
        PQclear(last);
        last = one;
    }
    if (outcome == HF_PG_FINE && result) {
        *result = last;
        last = NULL;
    }
    PQclear(last);
    if (outcome == HF_PG_LOST)
        hf_pg_disconnect(conn);
    return outcome;
}

enum hf_pg_outcome hf_pg_ask(struct hf_pg_conn *conn, const char *sql, int count,
                             const char *const *params, bool binary, PGresult **result)
{
    if (result)
        *result = NULL;
    if (!conn->pg)
        return HF_PG_LOST;
    bool piped = PQpipelineStatus(conn->pg) != PQ_PIPELINE_OFF;
    if (piped && PQexitPipelineMode(conn->pg) != 1)
        return lost(conn);
    if (PQsendQueryParams(conn->pg, sql, count, NULL, params, NULL, NULL, binary) != 1)
        return lost(conn);
    enum hf_pg_outcome outcome = asked(conn, result);
    if (piped && conn->pg && PQenterPipelineMode(conn->pg) != 1)
        return lost(conn);
    return outcome;
}

enum hf_pg_outcome hf_pg_script(struct hf_pg_conn *conn, const char *sql)
{
    if (!conn->pg)
        return HF_PG_LOST;
    return PQsendQuery(conn->pg, sql) == 1 ? asked(conn, NULL) : lost(conn);
}

/* ---- The text of the statements ---- */

#define RULES "s.idempotency_window_ms, s.token_max_length, s.registry_strict, s.xmin"

/* For replicated.h; NULL where commits wait for no standby. One column, because each column costs
 * time in every batch. */
#define SNAPSHOT \
    "CASE WHEN current_setting('synchronous_standby_names') <> '' THEN pg_current_snapshot() END"

/* So many numbers of a sequence as an array; NULL for none. */
#define DRAWN_OF(sequence, count)                                                          \
    "CASE WHEN " count "::integer > 0 THEN ARRAY(SELECT nextval('holdfast." sequence "') " \
    "FROM generate_series(1, " count "::integer)) END"
#define DRAWN                                                  \
    DRAWN_OF("journal_number", "$1")                           \
    ", " DRAWN_OF("hold_ordinal", "$2") ", " DRAWN_OF("fence", \
                                                      "$3") ", " DRAWN_OF("outbox_number", "$4")

/* Holds that may be overdue. Engine time is read only after this statement, so the bound is not
 * before the time that this process has used, and OVERDUE_SOON includes holds that become overdue
 * meanwhile. The core decides which are overdue. */
#define OVERDUE_NOW(told) "greatest(statement_timestamp(), " told "::timestamptz, " HF_PG_NEWEST ")"
#define OVERDUE_SOON(told) \
    "greatest(statement_timestamp() + interval '1 s', " told "::timestamptz, " HF_PG_NEWEST ")"

/* Until when the row left by a deleted register is kept, in milliseconds: the eight bytes of its
 * value, lowest first. NULL if the length differs: the row was changed by hand. This must not fail
 * for any value, or no row would be removed. So it compares numbers, and not times, which have
 * other limits. The value also covers a window that was longer once than the one in force. */
/* clang-format off */
#define BYTE(n, bits) "get_byte(value, " n ")::bigint << " bits
#define LEFT_UNTIL                                                                        \
    "(CASE WHEN octet_length(value) = 8 THEN (" BYTE("0", "0") ") | (" BYTE("1", "8")     \
    ") | (" BYTE("2", "16") ") | (" BYTE("3", "24") ") | (" BYTE("4", "32") ") | ("       \
    BYTE("5", "40") ") | (" BYTE("6", "48") ") | (" BYTE("7", "56") ") END)"
/* clang-format on */
#define LEFT_NOW "(extract(epoch FROM $2::timestamptz) * 1000)::bigint"
#define WINDOW_MAX "315360000000" /* HF_DURATION_MAX_MS */
#define LEFT_CLOSED                                                                           \
    "type = 'deleted' AND fence = 0 AND changed_at <= $2::timestamptz - (SELECT greatest(0, " \
    "least("                                                                                  \
    "idempotency_window_ms, " WINDOW_MAX ")) * interval '1 ms' FROM holdfast.store)"

/* Had the transaction that wrote the row ended when $3 was the oldest in progress? NULL: ignore
 * this condition. */
#define ENDED "($3::xid IS NULL OR age(xmin) > age($3::xid))"

/* One lock for each guard, by its name, in one order; holdfast.set_guard takes the same. No table
 * lock: a transaction that sets a guard and stays open would block the calls of all other guards,
 * of all tenants. */
#define GUARDS_OF                                                                                 \
    "(1213808981, u.hash) FROM (SELECT DISTINCT hashtext(g.tenant || chr(31) || g.name) AS hash " \
    "FROM "                                                                                       \
    "(SELECT unnest($1::text[]) AS tenant, unnest($2::text[]) AS name) g ORDER BY 1) u"

static const char *const texts[] = {
    [HF_PG_BEGIN] = "BEGIN",
    [HF_PG_COMMIT] = "COMMIT",
    [HF_PG_ROLLBACK] = "ROLLBACK",
    [HF_PG_HURRY] = "SET LOCAL lock_timeout = '100ms'",
    [HF_PG_NOW] = "SELECT " HF_PG_TIMES ", " RULES ", " SNAPSHOT " FROM holdfast.store s",
    [HF_PG_DRAW] =
        "SELECT " HF_PG_TIMES ", " RULES ", " SNAPSHOT ", " DRAWN " FROM holdfast.store s",
    [HF_PG_DRAW_LIGHTLY] =
        "SELECT " HF_PG_TIMES ", " RULES ", " SNAPSHOT ", " DRAWN
        ", (SELECT set_config('synchronous_commit', 'off', true)) FROM holdfast.store s",
    [HF_PG_JOURNAL] =
        "INSERT INTO holdfast.journal (number, at, tenant, action, status, key, writer, batch, "
        "entry) SELECT unnest($1::bigint[]), unnest($2::timestamptz[]), unnest($3::text[]), "
        "unnest($4::text[]), unnest($5::text[]), unnest($6::text[]), $7::integer, $8::bigint, "
        "unnest($9::bytea[])",
    /* A NULL makes the statement fail, and the transaction with it. */
    [HF_PG_WRITER] =
        "UPDATE holdfast.writer SET batch = CASE WHEN ($5::xid IS NULL OR $5 = (SELECT s.xmin FROM "
        "holdfast.store s)) AND clock_timestamp() BETWEEN $6::timestamptz AND $7::timestamptz THEN "
        "$3::bigint ELSE holdfast._conflict() END, chain = $4::bytea, changed_at = now(), "
        "generation = CASE WHEN generation = $2::bigint THEN generation END WHERE id = $1::integer "
        "RETURNING pg_current_xact_id(), CASE WHEN current_setting('synchronous_standby_names') <> "
        "'' THEN pg_conf_load_time() END",
    [HF_PG_SETTINGS] = HF_PG_SETTLED,
    [HF_PG_PATIENCE] = "SELECT set_config('lock_timeout', $1::text, true)",
    /* A decision must be in the journal after the rules that it used. So a change of the rules
     * waits until all transactions that use them have committed, and later ones wait for the
     * change. No row is written for this lock. */
    [HF_PG_KEEP_RULES] = "LOCK TABLE holdfast.store IN ROW SHARE MODE",
    [HF_PG_KEEP_GUARDS] = "SELECT pg_advisory_xact_lock_shared" GUARDS_OF,
    [HF_PG_CHANGE_RULES] = "LOCK TABLE holdfast.store IN EXCLUSIVE MODE",
    [HF_PG_CHANGE_GUARDS] = "SELECT pg_advisory_xact_lock" GUARDS_OF,
    [HF_PG_TENANT] = "SELECT pg_advisory_xact_lock(1213808980, hashtext($1::text))",
    [HF_PG_FREE_TOKENS] =
        "DELETE FROM holdfast.token WHERE ctid = ANY(ARRAY(SELECT ctid FROM holdfast.token WHERE "
        "expires_at <= $2::timestamptz AND " ENDED
        " ORDER BY expires_at LIMIT $1::integer FOR UPDATE SKIP LOCKED))",
    [HF_PG_FREE_ENTRIES] = "DELETE FROM holdfast.guard_entry WHERE ctid = ANY(ARRAY(SELECT ctid "
                           "FROM holdfast.guard_entry WHERE "
                           "expires_at <= $2::timestamptz AND " ENDED
                           " ORDER BY expires_at LIMIT $1::integer FOR UPDATE SKIP LOCKED))",
    [HF_PG_FREE_LEFT] =
        "DELETE FROM holdfast.register WHERE ctid = ANY(ARRAY(SELECT ctid FROM "
        "holdfast.register WHERE " LEFT_CLOSED " AND " LEFT_UNTIL " BETWEEN 0 AND " LEFT_NOW
        " AND " ENDED " ORDER BY changed_at LIMIT $1::integer FOR UPDATE SKIP LOCKED))",
    [HF_PG_FREE_LEASES] = "DELETE FROM holdfast.lease WHERE ctid = ANY(ARRAY(SELECT ctid FROM "
                          "holdfast.lease WHERE deleted_at "
                          "<= "
                          "$2::timestamptz AND " ENDED
                          " ORDER BY deleted_at LIMIT $1::integer FOR UPDATE SKIP LOCKED))",
    [HF_PG_HORIZON] = "SELECT pg_snapshot_xmin(pg_current_snapshot())",
};

/* As in the index hold_held. */
#define HELD_ON                                                                                  \
    " FROM holdfast.hold x WHERE x.tenant = u.tenant AND x.resource = u.name AND left(x.state, " \
    "4) = 'held'"

static void sql_of(int statement, struct hf_buffer *b)
{
    hf_buffer_reset(b);
    if (statement >= HF_PG_READ) {
        enum hf_pg_table table = (enum hf_pg_table)((statement - HF_PG_READ) % HF_PG_TABLES);
        switch (statement - (statement - HF_PG_READ) % HF_PG_TABLES) {
        case HF_PG_READ: hf_pg_sql_read(b, table, HF_PG_AS_NEEDED); break;
        case HF_PG_LOCK: hf_pg_sql_read(b, table, HF_PG_LOCKED); break;
        case HF_PG_INSERT: hf_pg_sql_insert(b, table); break;
        case HF_PG_UPDATE: hf_pg_sql_update(b, table); break;
        default: hf_pg_sql_delete(b, table); break;
        }
        return;
    }
    switch (statement) {
    case HF_PG_READ_WHOLE: hf_pg_sql_read(b, HF_PG_TOKEN, HF_PG_WHOLE); break;
    case HF_PG_READ_OF:
    case HF_PG_LOCK_OF:
        hf_buffer_add_text(b, "SELECT ");
        hf_pg_sql_row(b, HF_PG_RESOURCE);
        hf_buffer_printf(
            b,
            " FROM (SELECT * FROM (SELECT unnest($1::text[]) AS tenant, unnest($2::text[]) AS name "
            "UNION SELECT h.tenant, h.resource FROM (SELECT unnest($3::bigint[]) AS ordinal) o "
            "CROSS JOIN "
            "LATERAL (SELECT tenant, resource FROM holdfast.hold h WHERE h.ordinal = o.ordinal "
            "LIMIT 1) h) "
            "u%s) u CROSS JOIN LATERAL (SELECT " HF_PG_ALL
            " FROM holdfast.resource x WHERE x.tenant = u.tenant AND x.name = u.name LIMIT 1%s) t",
            statement == HF_PG_LOCK_OF ? " ORDER BY u.tenant COLLATE \"C\", u.name COLLATE \"C\""
                                       : "",
            statement == HF_PG_LOCK_OF ? " FOR UPDATE" : "");
        break;
    case HF_PG_OVERDUE:
        hf_buffer_add_text(b, "SELECT ");
        hf_pg_sql_row(b, HF_PG_HOLD);
        hf_buffer_add_text(
            b, " FROM (SELECT unnest($1::text[]) AS tenant, unnest($2::text[]) AS name, "
               "unnest($3::integer[]) AS n) "
               "u CROSS JOIN LATERAL "
               "((SELECT " HF_PG_ALL HELD_ON " AND x.expires_at <= " OVERDUE_SOON(
                   "$4") " ORDER BY x.expires_at LIMIT u.n) UNION ALL (SELECT " HF_PG_ALL HELD_ON
                         " AND x.expires_at > " OVERDUE_SOON(
                             "$4") " ORDER BY x.expires_at LIMIT 1)) t");
        break;
    case HF_PG_GUARDED:
        hf_buffer_add_text(b, "SELECT ");
        hf_pg_sql_row(b, HF_PG_ENTRY);
        hf_buffer_add_text(
            b, " FROM (SELECT " HF_PG_ALL
               " FROM holdfast.guard_entry x WHERE x.tenant || chr(31) || x.guard = $1::text || "
               "chr(31) || $2::text AND x.tenant = $1::text AND x.expires_at > $3::timestamptz "
               "ORDER BY x.number DESC LIMIT 1) t");
        break;
    case HF_PG_SWEEP:
        hf_buffer_add_text(b, "SELECT ");
        hf_pg_sql_row(b, HF_PG_RESOURCE);
        hf_buffer_add_text(
            /* Skip locked resources: otherwise one with many holds would block others for ever.
             * This statement never waits, so its lock order does not matter. A resource comes once
             * for each of its holds. */
            b,
            " FROM (SELECT tenant, resource FROM holdfast.hold WHERE state = 'held' AND expires_at "
            "<= " OVERDUE_NOW(
                "$2") " ORDER BY expires_at OFFSET $3::integer LIMIT 64 * "
                      "$1::integer) overdue CROSS JOIN LATERAL (SELECT " HF_PG_ALL
                      " FROM holdfast.resource x WHERE x.tenant = "
                      "overdue.tenant AND x.name = overdue.resource LIMIT 1 FOR UPDATE SKIP "
                      "LOCKED) t LIMIT $1::integer");
        break;
    case HF_PG_ODD_LEFT:
        hf_buffer_add_text(b, "SELECT ");
        hf_pg_sql_row(b, HF_PG_REGISTER);
        hf_buffer_add_text(b, " FROM (SELECT " HF_PG_ALL
                              " FROM holdfast.register x WHERE " LEFT_CLOSED " AND (" LEFT_UNTIL
                              " BETWEEN 0 AND " LEFT_NOW " + " WINDOW_MAX ") IS NOT TRUE AND " ENDED
                              " ORDER BY changed_at LIMIT least($1::integer, 8)) t");
        break;
    case HF_PG_LAPSE:
        hf_buffer_add_text(
            b, "WITH due AS (SELECT ctid AS place FROM holdfast.token WHERE state = 'started' AND "
               "lease_expires_at > $2::timestamptz AND lease_expires_at <= $3::timestamptz AND "
               "told_at IS DISTINCT FROM lease_expires_at ORDER BY lease_expires_at LIMIT "
               "$1::integer FOR UPDATE SKIP LOCKED), t AS (UPDATE holdfast.token x SET told_at = "
               "x.lease_expires_at FROM due WHERE x.ctid = due.place RETURNING x.*) SELECT ");
        hf_pg_sql_columns(b, HF_PG_TOKEN);
        hf_buffer_add_text(b, ", NULL::bytea FROM t ORDER BY t.lease_expires_at");
        break;
    default: hf_buffer_add_text(b, texts[statement]); break;
    }
}

/* Not every table is read, changed or deleted by key. */
static bool is_used(int statement)
{
    int table = statement >= HF_PG_READ ? (statement - HF_PG_READ) % HF_PG_TABLES : 0;
    int sort = statement >= HF_PG_READ ? statement - table : 0;
    if (sort == HF_PG_LOCK)
        return table <= HF_PG_RESOURCE;
    if (sort == HF_PG_UPDATE)
        return table != HF_PG_OUTBOX;
    return sort != HF_PG_DELETE || hf_pg_is_taken_out((enum hf_pg_table)table);
}

enum hf_pg_outcome hf_pg_prepare(struct hf_pg_conn *conn)
{
    struct hf_buffer sql = { .data = NULL };
    enum hf_pg_outcome outcome = HF_PG_FINE;
    char name[24];
    for (int i = 0; i < HF_PG_STATEMENTS && outcome == HF_PG_FINE; i++) {
        if (!is_used(i) || is_by_text(i))
            continue;
        sql_of(i, &sql);
        statement_name(i, name);
        const char *text = hf_buffer_text(&sql);
        if (!text || PQsendPrepare(conn->pg, name, text, 0, NULL) != 1)
            outcome = lost(conn);
        else
            outcome = asked(conn, NULL);
    }
    hf_buffer_free(&sql);
    return outcome;
}

/* ---- Connecting ---- */

/* Use index plans for arrays of any length, so that a plan does not depend on the tables' sizes
 * when it was made. An answered commit is on disk, and on the synchronous standby if there is one,
 * regardless of the database's default. A cancelled wait for a standby is reported as a warning,
 * which a role may have switched off. After waiting for a lock, a statement must see what was
 * committed meanwhile. */
static const char set_up[] =
    "SET default_transaction_isolation = 'read committed'; SET standard_conforming_strings = on; "
    "SET search_path = pg_catalog; SET enable_seqscan = off; SET enable_bitmapscan = off; SET "
    "enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET "
    "plan_cache_mode = force_generic_plan; SET jit = off; SET lock_timeout = '2s'; SET "
    "idle_in_transaction_session_timeout = '60s'; SET timezone = 'UTC'; SET client_min_messages = "
    "warning; SELECT set_config('synchronous_commit', CASE WHEN s IN ('off', 'local') THEN 'on' "
    "ELSE s END, false) FROM current_setting('synchronous_commit') s";

static enum hf_pg_outcome look(struct hf_pg_conn *conn)
{
    PGresult *result;
    enum hf_pg_outcome outcome = hf_pg_ask(
        conn,
        "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean, "
        "getdatabaseencoding(), current_setting('server_version_num')",
        0, NULL, false, &result);
    if (outcome != HF_PG_FINE)
        return outcome;
    if (strcmp(PQgetvalue(result, 0, 0), "t") == 0) {
        snprintf(conn->why, sizeof conn->why,
                 "the database is read-only (a standby, or default_transaction_read_only is on). "
                 "Connect to the primary, or list several hosts with "
                 "target_session_attrs=read-write");
        outcome = HF_PG_REFUSED;
    } else if (strcmp(PQgetvalue(result, 0, 1), "UTF8") != 0) {
        snprintf(conn->why, sizeof conn->why,
                 "the database has the encoding %.20s, but Holdfast needs UTF8",
                 PQgetvalue(result, 0, 1));
        outcome = HF_PG_REFUSED;
    } else if (atoi(PQgetvalue(result, 0, 2)) < 140000) {
        snprintf(conn->why, sizeof conn->why,
                 "the server is PostgreSQL %.20s, but Holdfast needs 14 or newer",
                 PQgetvalue(result, 0, 2));
        outcome = HF_PG_REFUSED;
    }
    PQclear(result);
    return outcome;
}

/* Read the timeline, if the server has one and shows it. */
static enum hf_pg_outcome look_timeline(struct hf_pg_conn *conn)
{
    PGresult *result = NULL;
    conn->timeline = 0;
    enum hf_pg_outcome outcome =
        hf_pg_ask(conn, "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)", 0, NULL,
                  false, &result);
    if (outcome == HF_PG_FINE)
        conn->timeline = (uint32_t)strtoul(PQgetvalue(result, 0, 0), NULL, 16);
    PQclear(result);
    return outcome == HF_PG_REFUSED ? HF_PG_FINE : outcome;
}

enum { HOSTS_TEXT = 1024, QUICK_MS = 1000 };

static int items_of(const char *conninfo, const char *keyword)
{
    char list[HOSTS_TEXT];
    int count = 1;
    hf_conninfo_value(conninfo, keyword, list, sizeof list);
    for (const char *p = list; *p; p++)
        count += *p == ',';
    return count;
}

int hf_pg_hosts(const char *conninfo)
{
    int names = items_of(conninfo, "host"), addresses = items_of(conninfo, "hostaddr");
    return names > addresses ? names : addresses;
}

/* libpq's list for `keyword`, with its first `by` items moved to the end. NULL: there is no
 * list. */
static const char *rotated(const char *conninfo, const char *keyword, int by, char out[HOSTS_TEXT])
{
    char list[HOSTS_TEXT];
    hf_conninfo_value(conninfo, keyword, list, sizeof list);
    const char *at = list;
    for (int i = 0; i < by && at; i++) {
        const char *comma = strchr(at, ',');
        at = comma ? comma + 1 : NULL;
    }
    if (!at || at == list)
        return NULL;
    size_t behind = strlen(at), before = (size_t)(at - list) - 1; /* without the comma */
    memcpy(out, at, behind);
    out[behind] = ',';
    memcpy(out + behind + 1, list, before);
    out[behind + 1 + before] = '\0';
    return out;
}

/* Try all hosts once, from first_host on. */
static bool dial_once(struct hf_pg_conn *conn, const char *conninfo)
{
    /* Later parameters win: the connection string over our defaults, and the rotated hosts over
     * that. */
    const char *names[8] = { "connect_timeout", "fallback_application_name", "dbname",
                             "client_encoding", NULL };
    const char *values[8] = { "3", "holdfast", conninfo, "UTF8", NULL };
    static const char *const lists[] = { "host", "hostaddr", "port" };
    char orders[3][HOSTS_TEXT];
    for (int i = 0, n = 4; i < 3 && conn->first_host > 0; i++) {
        values[n] = rotated(conninfo, lists[i], conn->first_host, orders[i]);
        if (values[n])
            names[n++] = lists[i];
        names[n] = NULL;
    }
    hf_pg_disconnect(conn);
    conn->why[0] = conn->state[0] = '\0';
    conn->pg = PQconnectdbParams(names, values, 1);
    return conn->pg && PQstatus(conn->pg) == CONNECTION_OK;
}

/* libpq tries the next host if one is unreachable or read-only, but not if a host accepts the
 * connection and then closes it, as a proxy without its database does. Then start with the next
 * host, at once if this failure was quick. */
static bool dial(struct hf_pg_conn *conn, const char *conninfo)
{
    int hosts = hf_pg_hosts(conninfo);
    int64_t until = hf_clock_monotonic_ms() + QUICK_MS;
    for (int i = 1; !dial_once(conn, conninfo); i++) {
        conn->first_host = (conn->first_host + 1) % hosts;
        if (i >= hosts || hf_clock_monotonic_ms() > until)
            return false;
    }
    return true;
}

enum hf_pg_outcome hf_pg_connect(struct hf_pg_conn *conn, const char *conninfo, bool prepare)
{
    if (!dial(conn, conninfo)) {
        if (!conn->pg)
            why_set(conn, "not enough memory", NULL);
        enum hf_pg_outcome outcome = lost(conn);
        hf_conninfo_hide(conninfo, conn->why, sizeof conn->why);
        return outcome;
    }
    PQsetNoticeReceiver(conn->pg, on_notice, conn);
    if (PQsetnonblocking(conn->pg, 1) != 0)
        return lost(conn);
    enum hf_pg_outcome outcome = hf_pg_script(conn, set_up);
    if (outcome == HF_PG_FINE)
        outcome = look(conn);
    if (outcome == HF_PG_FINE)
        outcome = look_timeline(conn);
    if (outcome == HF_PG_FINE && prepare)
        outcome = hf_pg_prepare(conn);
    if (outcome == HF_PG_FINE && prepare && PQenterPipelineMode(conn->pg) != 1)
        return lost(conn);
    if (outcome != HF_PG_FINE)
        hf_pg_disconnect(conn);
    return outcome;
}

void hf_pg_disconnect(struct hf_pg_conn *conn)
{
    if (conn->pg)
        PQfinish(conn->pg);
    conn->pg = NULL;
    conn->queued = 0;
    conn->in_transaction = false;
}
