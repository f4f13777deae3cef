#include "store/postgres/scan.h"

#include "base/clock.h"

#include <libpq-fe.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>

/* The commit waits regardless of the default, and warns if its wait was cancelled. */
static const char set_up[] = "SET search_path = pg_catalog; SET client_min_messages = warning; "
                             "SELECT set_config('synchronous_commit', CASE WHEN s IN ('off', "
                             "'local') THEN 'on' ELSE s END, false) "
                             "FROM current_setting('synchronous_commit') s";
static const char commit[] =
    "SELECT pg_logical_emit_message(true, 'holdfast', '') WHERE NOT pg_is_in_recovery() "
    "AND current_setting('synchronous_standby_names') <> ''";

enum { CANCEL_MS = 2000 }; /* how long the database may take to cancel the wait */

static void on_notice(void *warned, const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
    if (severity && strcmp(severity, "WARNING") == 0 && (!function || strstr(function, "SyncRep")))
        *(bool *)warned = true;
}

/* So that no database process stays and waits while the standby is down. */
static void cancel(PGconn *pg)
{
    char why[256];
    PGcancel *c = PQgetCancel(pg);
    if (c)
        (void)PQcancel(c, why, sizeof why);
    PQfreeCancel(c);
}

/* Wait for the result. False: timeout, or the connection is lost. */
static bool await(PGconn *pg, int wait_ms)
{
    for (int64_t until = hf_clock_monotonic_ms() + wait_ms; PQisBusy(pg);) {
        struct pollfd fd = { .fd = PQsocket(pg), .events = POLLIN };
        int64_t left = until - hf_clock_monotonic_ms();
        if (left <= 0)
            return false;
        if (poll(&fd, 1, (int)left) > 0 && PQconsumeInput(pg) != 1)
            return false;
    }
    return true;
}

bool hf_pg_scan_replicated(const char *conninfo, int wait_ms)
{
    const char *const keywords[] = { "connect_timeout", "fallback_application_name", "dbname",
                                     NULL };
    const char *const values[] = { "10", "holdfast audit", conninfo, NULL };
    PGconn *pg = PQconnectdbParams(keywords, values, 1);
    bool warned = false, done = false;
    PQsetNoticeReceiver(pg, on_notice, &warned);
    PGresult *result = PQexec(pg, set_up);
    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQsendQuery(pg, commit) == 1) {
        PQclear(result);
        if (!await(pg, wait_ms)) {
            cancel(pg);
            warned = true;
        }
        result = await(pg, CANCEL_MS) ? PQgetResult(pg) : NULL;
        done = PQresultStatus(result) == PGRES_TUPLES_OK && !warned;
    }
    PQclear(result);
    PQfinish(pg);
    return done;
}
