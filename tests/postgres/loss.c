/* What a primary takes with it when it dies: nothing that was acknowledged, if commits wait for the
 * standby; and if they do not, the test must see the loss, or it is blind. */
#include "postgres/kit/postgres.h"
#include "postgres/kit/relay.h"
#include "server/kit/server.h"
#include "support/test.h"

static struct postgres a, b;
static struct relay between;

static int set_up(void **state)
{
    (void)state;
    postgres_init(&a);
    postgres_init(&b);
    postgres_start(&a);
    postgres_run(&a, "CREATE TABLE t (n int PRIMARY KEY)");
    relay_start(&between, a.port);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    relay_end(&between);
    postgres_end(&b);
    postgres_end(&a);
    return 0;
}

/* The network between the two is gone, an INSERT is sent, and then the primary dies. */
static void lose(enum postgres_copy how)
{
    postgres_follow(&b, &a, how, between.port);
    postgres_run(&a, "INSERT INTO t VALUES (1)");
    postgres_await_copied(&b, &a);
    relay_black_hole(&between, true);
    PGconn *c = postgres_connect(&a);
    assert_int_equal(PQsendQuery(c, "INSERT INTO t VALUES (2)"), 1);
    if (how == POSTGRES_ASYNC) {
        PGresult *result = PQgetResult(c);
        assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
        PQclear(result);
    } else {
        postgres_await_waiting(&a);
        assert_int_equal(PQconsumeInput(c), 1);
        assert_int_equal(PQisBusy(c), 1);
    }
    postgres_stop(&a, POSTGRES_KILL);
    PQfinish(c);
    postgres_promote(&b);
    assert_int_equal(postgres_number(&b, "SELECT count(*) FROM t WHERE n = 1"), 1);
    assert_int_equal(postgres_number(&b, "SELECT count(*) FROM t WHERE n = 2"), 0);
}

static void test_asynchronous_loses(void **state)
{
    (void)state;
    lose(POSTGRES_ASYNC);
}

static void test_synchronous_does_not_acknowledge(void **state)
{
    (void)state;
    lose(POSTGRES_SYNC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_asynchronous_loses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_synchronous_does_not_acknowledge, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
