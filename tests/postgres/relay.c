/* The kit itself: each fault of the relay, as a client sees it and as the database tells it
 * afterwards. */
#include "postgres/kit/relay.h"
#include "postgres/kit/postgres.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static struct postgres p;
static struct relay r;
static char through[POSTGRES_CONNINFO_MAX];
static int next_row = 1;

static int set_up(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    postgres_run(&p, "CREATE TABLE t (n int PRIMARY KEY, done timestamptz)");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    relay_start(&r, p.port);
    postgres_conninfo_port(through, r.port);
    return 0;
}

static int end(void **state)
{
    (void)state;
    relay_end(&r);
    return 0;
}

static PGconn *connect_through(void)
{
    PGconn *c = PQconnectdb(through);
    if (PQstatus(c) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(c));
    return c;
}

static bool does(PGconn *c, const char *text)
{
    PGresult *result = PQexec(c, text);
    bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return done;
}

static bool there(int n)
{
    char text[64];
    snprintf(text, sizeof text, "SELECT count(*) FROM t WHERE n = %d", n);
    return postgres_number(&p, text) == 1;
}

static void await_there(int n)
{
    char text[64];
    snprintf(text, sizeof text, "SELECT count(*) FROM t WHERE n = %d", n);
    postgres_await_number(&p, text, 1);
}

/* ---- The ways in which clients commit. Each answers whether the client heard that it did. ---- */

static bool by_query(PGconn *c, int n)
{
    char text[64];
    snprintf(text, sizeof text, "INSERT INTO t VALUES (%d)", n);
    return does(c, "BEGIN") && does(c, text) && does(c, "COMMIT");
}

static bool by_script(PGconn *c, int n)
{
    char text[96];
    snprintf(text, sizeof text, "BEGIN; INSERT INTO t VALUES (%d); commit", n);
    return does(c, text);
}

static bool by_parameters(PGconn *c, int n)
{
    char value[16];
    const char *values[] = { value };
    snprintf(value, sizeof value, "%d", n);
    PGresult *result = does(c, "BEGIN") ? PQexecParams(c, "INSERT INTO t VALUES ($1)", 1, NULL,
                                                       values, NULL, NULL, 0)
                                        : NULL;
    PQclear(result);
    result = PQexecParams(c, "COMMIT", 0, NULL, NULL, NULL, NULL, 0);
    bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return done;
}

/* All of a transaction in one pipeline, with statements prepared before; the COMMIT among them
 * bears `name`. */
static bool pipeline(PGconn *c, int n, const char *name)
{
    char value[16];
    const char *values[] = { value };
    unsigned good = 0;
    snprintf(value, sizeof value, "%d", n);
    assert_int_equal(PQenterPipelineMode(c), 1);
    bool sent = PQsendQueryPrepared(c, "start", 0, NULL, NULL, NULL, 0) &&
                PQsendQueryPrepared(c, "put", 1, values, NULL, NULL, 0) &&
                PQsendQueryPrepared(c, name, 0, NULL, NULL, NULL, 0) && PQpipelineSync(c);
    for (unsigned nulls = 0; sent && nulls < 2 && PQstatus(c) == CONNECTION_OK;) {
        PGresult *result = PQgetResult(c);
        nulls = result ? 0 : nulls + 1;
        good += PQresultStatus(result) == PGRES_COMMAND_OK;
        bool last = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        PQclear(result);
        if (last)
            break;
    }
    return good == 3;
}

static void prepare(PGconn *c, const char *name)
{
    PQclear(PQprepare(c, "start", "BEGIN", 0, NULL));
    PQclear(PQprepare(c, "put", "INSERT INTO t VALUES ($1)", 1, NULL));
    PQclear(PQprepare(c, name, "COMMIT", 0, NULL));
}

static bool by_pipeline(PGconn *c, int n)
{
    prepare(c, "finish");
    return pipeline(c, n, "finish");
}

typedef bool way(PGconn *c, int n);
static way *const ways[] = { by_query, by_script, by_parameters, by_pipeline };
enum { WAYS = sizeof ways / sizeof *ways };

/* Let a fault happen to each way once. present: whether the row is there when the client has lost
 * its connection. */
static void each_way(enum relay_fault fault, bool present)
{
    for (size_t i = 0; i < WAYS; i++) {
        int n = next_row++;
        PGconn *c = connect_through();
        relay_at_commit(&r, fault, 1);
        if (ways[i](c, n))
            fail_msg("way %zu: the client heard of its COMMIT", i);
        assert_int_equal(PQstatus(c), CONNECTION_BAD);
        if (there(n) != present)
            fail_msg("way %zu: the row is %s", i, present ? "not there" : "there");
        assert_int_equal(relay_count(&r, fault), i + 1);
        PQfinish(c);
    }
}

static void test_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < WAYS; i++) {
        PGconn *c = connect_through();
        assert_true(ways[i](c, next_row));
        assert_true(there(next_row++));
        PQfinish(c);
    }
    assert_int_equal(relay_count(&r, RELAY_COMMITS), WAYS);
    assert_int_equal(relay_count(&r, RELAY_CONNECTIONS), WAYS);
    for (unsigned fault = 0; fault < RELAY_FAULTS; fault++)
        assert_int_equal(relay_count(&r, fault), 0);
}

/* More than fits into any buffer, both ways. */
static void test_passes_much(void **state)
{
    (void)state;
    enum { SIZE = 6 << 20 };
    char *text = malloc(SIZE + 1);
    assert_non_null(text);
    memset(text, 'x', SIZE);
    text[SIZE] = 0;
    const char *values[] = { text };
    PGconn *c = connect_through();
    PGresult *result = PQexecParams(c, "SELECT $1::text || 'y'", 1, NULL, values, NULL, NULL, 0);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    assert_int_equal(PQgetlength(result, 0, 0), SIZE + 1);
    assert_memory_equal(PQgetvalue(result, 0, 0), text, SIZE);
    PQclear(result);
    PQfinish(c);
    free(text);
}

static void test_cut_before(void **state)
{
    (void)state;
    each_way(RELAY_CUT_BEFORE, false);
}

static void test_cut_after(void **state)
{
    (void)state;
    each_way(RELAY_CUT_AFTER, true);
}

static void test_cut_in_answer(void **state)
{
    (void)state;
    each_way(RELAY_CUT_IN_ANSWER, true);
}

/* The client is gone while the server still works on the COMMIT: a deferred trigger makes it wait
 * for us. */
static void test_cut_during(void **state)
{
    (void)state;
    postgres_run(&p,
                 "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
                 "'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';"
                 "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED "
                 "FOR EACH ROW EXECUTE FUNCTION wait()");
    for (size_t i = 0; i < WAYS; i++) {
        int n = next_row++;
        PGconn *c = connect_through(), *holder = postgres_connect(&p);
        PQclear(PQexec(holder, "SELECT pg_advisory_lock(1)"));
        relay_at_commit(&r, RELAY_CUT_DURING, 1);
        assert_false(ways[i](c, n));
        assert_int_equal(PQstatus(c), CONNECTION_BAD);
        assert_int_equal(relay_count(&r, RELAY_CUT_DURING), i + 1);
        assert_false(there(n));
        PQfinish(c);
        PQfinish(holder);
        await_there(n);
    }
    postgres_run(&p, "DROP TRIGGER slow ON t; DROP FUNCTION wait");
}

static void test_cut_late(void **state)
{
    (void)state;
    relay_late_ms(&r, 60000);
    for (size_t i = 0; i < WAYS; i++) {
        int n = next_row++;
        PGconn *c = connect_through();
        relay_at_commit(&r, RELAY_CUT_LATE, 1);
        assert_false(ways[i](c, n));
        assert_int_equal(PQstatus(c), CONNECTION_BAD);
        assert_int_equal(relay_count(&r, RELAY_CUT_LATE), i + 1);
        assert_false(there(n));
        PQfinish(c);
        if (i + 1 == WAYS)
            relay_late_ms(&r, 0); /* of those to come */
        relay_pass(&r);
        await_there(n);
    }
    PGconn *c = connect_through();
    relay_at_commit(&r, RELAY_CUT_LATE, 1);
    assert_false(by_query(c, next_row));
    await_there(next_row++);
    PQfinish(c);
}

/* Send COMMIT and see that no answer comes for a while. */
static PGconn *mute(enum relay_fault fault, int n)
{
    char text[64];
    PGconn *c = connect_through();
    snprintf(text, sizeof text, "INSERT INTO t VALUES (%d)", n);
    relay_at_commit(&r, fault, 1);
    assert_true(does(c, "BEGIN") && does(c, text));
    assert_int_equal(PQsendQuery(c, "COMMIT"), 1);
    relay_await(&r, fault, 1);
    struct pollfd one = { .fd = PQsocket(c), .events = POLLIN };
    assert_int_equal(poll(&one, 1, 100), 0); /* an answer that takes longer is missed */
    return c;
}

static void answers(PGconn *c)
{
    PGresult *result = PQgetResult(c);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    assert_null(PQgetResult(c));
    assert_true(does(c, "BEGIN") && does(c, "ROLLBACK"));
    PQfinish(c);
}

static void test_mute(void **state)
{
    (void)state;
    int before = next_row++, after = next_row++;
    PGconn *c = mute(RELAY_MUTE_BEFORE, before), *d = mute(RELAY_MUTE_AFTER, after);
    assert_false(there(before));
    assert_true(there(after));
    relay_pass(&r);
    answers(c);
    answers(d);
    assert_true(there(before));
}

/* The COMMIT is known by its name alone: its Parse went another way. */
static void test_by_name(void **state)
{
    (void)state;
    PGconn *c = connect_through();
    int n = next_row++;
    PQclear(PQprepare(c, "start", "BEGIN", 0, NULL));
    PQclear(PQprepare(c, "put", "INSERT INTO t VALUES ($1)", 1, NULL));
    PQclear(PQprepare(c, "finish", "END", 0, NULL));
    relay_at_commit(&r, RELAY_CUT_AFTER, 1);
    assert_true(pipeline(c, n++, "finish"));
    PQexitPipelineMode(c);
    relay_name(&r, "finish");
    next_row++;
    assert_false(pipeline(c, n, "finish"));
    assert_true(there(n));
    assert_int_equal(relay_count(&r, RELAY_CUT_AFTER), 1);
    PQfinish(c);
}

/* So many times, and no more; a COMMIT that the server refuses is none whose answer could be
 * cut. */
static void test_times(void **state)
{
    (void)state;
    relay_at_commit(&r, RELAY_CUT_BEFORE, 2);
    for (int i = 0; i < 3; i++) {
        PGconn *c = connect_through();
        assert_int_equal(by_query(c, next_row++), i == 2);
        PQfinish(c);
    }
    assert_int_equal(relay_count(&r, RELAY_CUT_BEFORE), 2);

    PGconn *c = connect_through();
    relay_at_commit(&r, RELAY_CUT_IN_ANSWER, 1);
    assert_true(does(c, "BEGIN"));
    assert_false(does(c, "SELECT 1 / 0"));
    assert_true(does(c, "COMMIT")); /* which says ROLLBACK */
    assert_int_equal(relay_count(&r, RELAY_CUT_IN_ANSWER), 0);
    assert_false(by_query(c, next_row++));
    assert_int_equal(relay_count(&r, RELAY_CUT_IN_ANSWER), 1);
    PQfinish(c);

    relay_at_commit(&r, RELAY_CUT_BEFORE, 1);
    relay_pass(&r);
    c = connect_through();
    assert_true(by_query(c, next_row++));
    PQfinish(c);
}

/* A client that is killed right behind its COMMIT: what it sent still arrives. */
static void test_client_goes(void **state)
{
    (void)state;
    char text[64];
    int n = next_row++;
    PGconn *c = connect_through();
    snprintf(text, sizeof text, "INSERT INTO t VALUES (%d)", n);
    assert_true(does(c, "BEGIN") && does(c, text));
    relay_delay_ms(&r, 100);
    assert_int_equal(PQsendQuery(c, "COMMIT"), 1);
    PQfinish(c);
    await_there(n);
    relay_delay_ms(&r, 0);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         relay_count(&r, RELAY_OPEN) > 0 && server_clock_ms() < until;)
        server_pause_ms(5);
    assert_int_equal(relay_count(&r, RELAY_OPEN), 0);
}

#define UNSEEN "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'unseen'"

static void test_black_hole(void **state)
{
    (void)state;
    PGconn *c = connect_through();
    relay_black_hole(&r, true);
    assert_int_equal(PQsendQuery(c, "SET application_name TO 'unseen'"), 1);
    PGconn *newcomer = PQconnectStart(through);
    struct pollfd one = { .fd = PQsocket(c), .events = POLLIN };
    assert_int_equal(poll(&one, 1, 100), 0); /* an answer that takes longer is missed */
    assert_int_equal(postgres_number(&p, UNSEEN), 0);
    relay_await(&r, RELAY_CONNECTIONS, 2);
    relay_black_hole(&r, false);
    answers(c);
    PQfinish(newcomer);
}

static void test_delay(void **state)
{
    (void)state;
    PGconn *c = connect_through();
    relay_delay_ms(&r, 60);
    int64_t from = server_clock_ms();
    assert_true(does(c, "BEGIN"));
    assert_true(server_clock_ms() - from >= 110);
    relay_delay_ms(&r, 0);
    assert_true(does(c, "ROLLBACK"));
    PQfinish(c);
}

static void test_refuse_and_cut_all(void **state)
{
    (void)state;
    PGconn *c = connect_through(), *d = connect_through();
    assert_int_equal(relay_count(&r, RELAY_OPEN), 2);
    relay_refuse(&r, true);
    PGconn *e = PQconnectdb(through);
    assert_int_equal(PQstatus(e), CONNECTION_BAD);
    PQfinish(e);
    assert_true(does(c, "BEGIN") && does(c, "ROLLBACK"));
    relay_cut_all(&r);
    assert_int_equal(relay_count(&r, RELAY_CUT_ALL), 2);
    assert_false(does(c, "BEGIN"));
    assert_false(does(d, "BEGIN"));
    PQfinish(c);
    PQfinish(d);
    relay_refuse(&r, false);
    c = connect_through();
    assert_true(does(c, "BEGIN"));
    PQfinish(c);
}

static void test_target(void **state)
{
    (void)state;
    int port, reserved = postgres_reserve_port(&port); /* nobody listens there */
    relay_target(&r, port);
    PGconn *c = PQconnectdb(through);
    assert_int_equal(PQstatus(c), CONNECTION_BAD);
    PQfinish(c);
    assert_int_equal(relay_count(&r, RELAY_UNREACHABLE), 1);
    relay_target(&r, p.port);
    PQfinish(connect_through());
    close(reserved);
}

/* A client that asks for TLS is told that there is none; and a server that dies is passed on. */
static void test_tls_and_death(void **state)
{
    (void)state;
    char text[POSTGRES_CONNINFO_MAX];
    snprintf(text, sizeof text,
             "host=127.0.0.1 port=%d user=postgres dbname=postgres sslmode=prefer", r.port);
    PGconn *c = PQconnectdb(text);
    assert_int_equal(PQstatus(c), CONNECTION_OK);
    postgres_stop(&p, POSTGRES_KILL);
    assert_false(does(c, "BEGIN"));
    PQfinish(c);
    postgres_start(&p);
}

/* ---- Many at once ---- */

enum { CLIENTS = 4, EACH = 25 };

struct client {
    pthread_t thread;
    int first;
    unsigned heard, there,
        not_there; /* the client heard of it; it did not, and the row is there, or is not */
    bool wrong;    /* it heard of a COMMIT whose row is not there */
};

static bool look(PGconn *c, int n)
{
    char text[64];
    snprintf(text, sizeof text, "SELECT FROM t WHERE n = %d", n);
    PGresult *result = PQexec(c, text);
    bool found = PQntuples(result) == 1;
    PQclear(result);
    return found;
}

static void *client_run(void *arg)
{
    struct client *me = arg;
    PGconn *direct = PQconnectdb(p.conninfo);
    for (int i = 0; i < EACH; i++) {
        PGconn *c = PQconnectdb(through);
        bool heard = ways[(size_t)i % WAYS](c, me->first + i), found = look(direct, me->first + i);
        me->heard += heard;
        me->there += !heard && found;
        me->not_there += !heard && !found;
        me->wrong |= heard && !found;
        PQfinish(c);
    }
    PQfinish(direct);
    return NULL;
}

/* Whatever happens to whom: as many are told nothing as faults were counted, and the rows are as
 * the faults say. */
static void test_many(void **state)
{
    (void)state;
    static const enum relay_fault faults[] = { RELAY_CUT_BEFORE, RELAY_CUT_AFTER,
                                               RELAY_CUT_IN_ANSWER };
    uint64_t seed = test_seed("many", 7), committed = 0, lost = 0;
    struct client clients[CLIENTS] = { { .first = 0 } };
    unsigned heard = 0, found = 0, not_found = 0;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].first = next_row;
        next_row += EACH;
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_run, &clients[i]), 0);
    }
    relay_at_commit(&r, RELAY_CUT_BEFORE, 1); /* each at least once, however slow this process is */
    relay_await(&r, RELAY_CUT_BEFORE, 1);
    relay_at_commit(&r, RELAY_CUT_AFTER, 1);
    relay_await(&r, RELAY_CUT_AFTER, 1);
    while (relay_count(&r, RELAY_COMMITS) < CLIENTS * EACH * 9 / 10) {
        relay_at_commit(&r, faults[test_below(&seed, 3)], (unsigned)test_below(&seed, 3));
        server_pause_ms((int)test_below(&seed, 8));
    }
    relay_at_commit(&r, RELAY_CUT_BEFORE, 0);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_false(clients[i].wrong);
        heard += clients[i].heard;
        found += clients[i].there;
        not_found += clients[i].not_there;
    }
    committed = relay_count(&r, RELAY_CUT_AFTER) + relay_count(&r, RELAY_CUT_IN_ANSWER);
    lost = relay_count(&r, RELAY_CUT_BEFORE);
    assert_int_equal(found, committed);
    assert_int_equal(not_found, lost);
    assert_int_equal(heard + found + not_found, CLIENTS * EACH);
    assert_int_equal(relay_count(&r, RELAY_COMMITS), CLIENTS * EACH);
    assert_true(found > 0 && not_found > 0 && heard > 0);
}

#define WITH_RELAY(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RELAY(test_passes),        WITH_RELAY(test_passes_much),
        WITH_RELAY(test_cut_before),    WITH_RELAY(test_cut_after),
        WITH_RELAY(test_cut_in_answer), WITH_RELAY(test_cut_during),
        WITH_RELAY(test_cut_late),      WITH_RELAY(test_mute),
        WITH_RELAY(test_by_name),       WITH_RELAY(test_times),
        WITH_RELAY(test_client_goes),   WITH_RELAY(test_black_hole),
        WITH_RELAY(test_delay),         WITH_RELAY(test_refuse_and_cut_all),
        WITH_RELAY(test_target),        WITH_RELAY(test_tls_and_death),
        WITH_RELAY(test_many),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
