/* The kit itself: a primary and its standby, and what is lost when the primary dies. */
#include "postgres/kit/postgres.h"
#include "server/kit/server.h"
#include "support/test.h"

static struct postgres a, b;

static int set_up(void **state)
{
    (void)state;
    postgres_init(&a);
    postgres_init(&b);
    postgres_start(&a);
    postgres_run(&a, "CREATE TABLE t (n int PRIMARY KEY)");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    postgres_end(&b);
    postgres_end(&a);
    return 0;
}

static void insert(const struct postgres *p, int n)
{
    char text[64];
    snprintf(text, sizeof text, "INSERT INTO t VALUES (%d)", n);
    postgres_run(p, text);
}

static long long rows(const struct postgres *p)
{
    return postgres_number(p, "SELECT count(*) FROM t");
}

/* Does this session's INSERT wait for the standby? */
static bool waits(PGconn *c)
{
    postgres_await_waiting(&a);
    assert_int_equal(PQconsumeInput(c), 1);
    return PQisBusy(c) != 0;
}

static void test_synchronous(void **state)
{
    (void)state;
    postgres_follow(&b, &a, POSTGRES_SYNC, 0);
    insert(&a, 1);
    postgres_await_copied(&b, &a);
    assert_int_equal(rows(&b), 1);
    assert_false(postgres_try(&b, "INSERT INTO t VALUES (2)")); /* read-only */

    PGconn *c = postgres_connect(&a);
    postgres_pause(&b);
    assert_int_equal(PQsendQuery(c, "INSERT INTO t VALUES (2)"), 1);
    assert_true(waits(c));
    postgres_resume(&b);
    PGresult *result = PQgetResult(c);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(c);
}

/* The primary is killed, the standby takes over, and the old one comes back as it was: both take
 * writes. */
static void test_failover_and_stale_primary(void **state)
{
    (void)state;
    char both[POSTGRES_CONNINFO_MAX];
    postgres_conninfo_pair(both, &a, &b);
    PGconn *first = PQconnectdb(both);
    assert_int_equal(atoi(PQport(first)), a.port);
    PQfinish(first);
    postgres_stop(&a, POSTGRES_KILL);
    postgres_promote(&b);
    assert_int_equal(rows(&b), 2); /* all that was acknowledged */
    insert(&b, 3);
    PGconn *second = PQconnectdb(both);
    assert_int_equal(atoi(PQport(second)), b.port);
    PQfinish(second);

    postgres_set(&a, "synchronous_standby_names", "");
    postgres_start(&a);
    assert_int_equal(rows(&a), 2);
    insert(&a, 4);
    assert_int_equal(postgres_number(&a, "SELECT max(n) FROM t"), 4);
    assert_int_equal(postgres_number(&b, "SELECT max(n) FROM t"), 3);
    assert_int_equal(postgres_number(&a, "SELECT timeline_id FROM pg_control_checkpoint()"), 1);
}

/* The old primary is taken in again as the standby of the new one, and back again. */
static void test_cycles(void **state)
{
    (void)state;
    struct postgres *primary = &b, *standby = &a;
    postgres_stop(&a, POSTGRES_KILL);
    for (int i = 5; i < 7; i++) {
        postgres_follow(standby, primary, POSTGRES_SYNC, 0);
        insert(primary, i);
        postgres_stop(primary, POSTGRES_KILL);
        postgres_promote(standby);
        assert_int_equal(postgres_number(standby, "SELECT max(n) FROM t"), i);
        struct postgres *old = primary;
        primary = standby;
        standby = old;
    }
    postgres_run(primary, "DELETE FROM t");
    postgres_follow(standby, primary, POSTGRES_ASYNC, 0);
    postgres_stop(standby, POSTGRES_IMMEDIATE);
    insert(primary, 1); /* does not wait */
    postgres_start(standby);
    postgres_await_number(standby, "SELECT count(*) FROM t", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_synchronous),
        cmocka_unit_test(test_failover_and_stale_primary),
        cmocka_unit_test(test_cycles),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
