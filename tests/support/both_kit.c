#include "support/both_kit.h"

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

void both_empty(void)
{
    if (both_is_postgres())
        postgres_run(both_cluster(), "DROP SCHEMA IF EXISTS holdfast CASCADE");
}

static PGconn *holder; /* of the newest lock, which ends with its statement */

void both_let_commits(void)
{
    char error[256];
    PGcancel *cancel = holder ? PQgetCancel(holder) : NULL;
    if (cancel)
        assert_int_equal(PQcancel(cancel, error, sizeof error), 1);
    PQfreeCancel(cancel);
    PQfinish(holder);
    holder = NULL;
}

void both_stop_commits(int ms)
{
    char script[200];
    PQfinish(holder);
    holder = postgres_connect(both_cluster());
    snprintf(
        script, sizeof script,
        "BEGIN; LOCK TABLE holdfast.journal IN SHARE ROW EXCLUSIVE MODE; SELECT pg_sleep(%d.%03d); COMMIT",
        ms / 1000, ms % 1000);
    assert_int_equal(PQsendQuery(holder, script), 1);
    postgres_await_number(
        both_cluster(),
        "SELECT count(*) FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND granted AND relation = "
        "'holdfast.journal'::regclass",
        1);
}

void both_await_stopped(void)
{
    postgres_await_number(both_cluster(),
                          "SELECT least(count(*), 1) FROM pg_locks WHERE NOT granted AND relation = "
                          "'holdfast.journal'::regclass",
                          1);
}

void both_needs_files(void)
{
    if (both_is_postgres())
        skip();
}
