#define _GNU_SOURCE /* asprintf */
#include "engine/kit/both.h"

#include "audit/audit.h"
#include "support/test.h"

bool both_is_postgres(void)
{
    const char *store = getenv("HF_STORE");
    return store && strcmp(store, "postgres") == 0;
}

struct postgres *both_cluster(void)
{
    static struct postgres p;
    static bool started;
    if (!started) {
        postgres_init(&p);
        postgres_start(&p);
        started = true;
    }
    return &p;
}

static bool made; /* the schema is there */

void both_absent(void)
{
    made = false;
    if (both_is_postgres())
        postgres_run(both_cluster(), "DROP SCHEMA IF EXISTS holdfast CASCADE");
}

/* Deleting the rows takes a tenth of the time of making the schema again. What is left is as in a
 * store that was just made: its configuration has not been recorded yet. */
void both_empty(void)
{
    if (!both_is_postgres())
        return;
    if (!made) {
        struct hf_db *db;
        struct hf_options options = { .postgres = postgres_conninfo(both_cluster()) };
        assert_int_equal(hf_open(NULL, &options, &db, NULL), HF_OK);
        hf_close(db);
        made = true;
    }
    postgres_run(
        both_cluster(),
        "DO $$ DECLARE t text; BEGIN FOR t IN SELECT oid::regclass FROM pg_class WHERE "
        "relnamespace = 'holdfast'::regnamespace AND relkind = 'r' AND relname NOT IN "
        "('migration', 'store') LOOP EXECUTE 'DELETE FROM ' || t; END LOOP; FOR t IN SELECT "
        "oid::regclass FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace AND relkind = "
        "'S' LOOP EXECUTE 'ALTER SEQUENCE ' || t || ' RESTART'; END LOOP; END $$; "
        "UPDATE holdfast.store SET idempotency_window_ms = 86400000, token_max_length = 256, "
        "registry_strict = false, program = 'none'");
}

static PGconn *holder; /* of the lock, which goes with its session */

void both_let_commits(void)
{
    PQfinish(holder);
    holder = NULL;
}

void both_stop_commits(void)
{
    both_let_commits();
    holder = postgres_connect(both_cluster());
    PGresult *locked =
        PQexec(holder, "BEGIN; LOCK TABLE holdfast.journal IN SHARE ROW EXCLUSIVE MODE");
    assert_int_equal(PQresultStatus(locked), PGRES_COMMAND_OK);
    PQclear(locked);
}

void both_await_stopped(void)
{
    postgres_await_number(
        both_cluster(),
        "SELECT least(count(*), 1) FROM pg_locks WHERE NOT granted AND relation = "
        "'holdfast.journal'::regclass",
        1);
}

void both_audit(void)
{
    const struct hf_audit_options options = { .postgres = postgres_conninfo(both_cluster()) };
    struct hf_audit_report report;
    struct hf_error why = { .status = HF_OK };
    enum hf_status st = hf_audit_run("", &options, &report, &why);
    if (st == HF_STORE_ABSENT)
        return;
    if (st != HF_OK)
        fail_msg("the store could not be audited: %s", why.text);
    for (size_t i = 0; i < report.check_count; i++)
        if (hf_audit_outcome(&report.checks[i]) != HF_AUDIT_PASSED)
            fail_msg("the audit does not pass %s: %s", report.checks[i].name,
                     report.checks[i].example_count ? report.checks[i].examples[0] : "incomplete");
    hf_audit_report_free(&report);
}

bool both_stored(const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    char hex[200] = "", query[1200];
    assert_true(2 * size < sizeof hex);
    for (size_t i = 0; i < size; i++)
        snprintf(hex + 2 * i, 3, "%02x", byte[i]);
    snprintf(query, sizeof query,
             "SELECT string_agg(format('SELECT 1 FROM holdfast.%%I WHERE position(''\\x%s''::bytea "
             "in %%s) > 0', table_name, CASE data_type WHEN 'bytea' THEN quote_ident(column_name) "
             "ELSE format('convert_to(%%I::text, ''UTF8'')', column_name) END), ' UNION ALL ') "
             "FROM information_schema.columns WHERE table_schema = 'holdfast'",
             hex);
    char *searches = postgres_ask(both_cluster(), query), *all;
    assert_true(asprintf(&all, "SELECT count(*) FROM (%s) found", searches) > 0);
    bool found = postgres_number(both_cluster(), all) > 0;
    free(searches);
    free(all);
    return found;
}

void both_needs_files(void)
{
    if (both_is_postgres())
        skip();
}
