/* A primary that was replaced by its standby, and came back: what is read of its tables is told to
 * nobody by a server that knows the new one, nor is what was written there called done. It may
 * never have been away: a server whose line to it was cut has moved to the new one with some of its
 * sessions, and the others still have their connections. And what was read of a primary before a
 * failover is not released by what the new one confirms. */
#include "postgres/kit/postgres.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "holdfast.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct postgres a, b;
static struct server s;
static char both[POSTGRES_CONNINFO_MAX];

static int begin(void **state)
{
    (void)state;
    postgres_init(&a);
    postgres_init(&b);
    postgres_start(&a);
    postgres_follow(&b, &a, POSTGRES_SYNC, 0);
    postgres_conninfo_pair(both, &a, &b);
    return 0;
}

static int end(void **state)
{
    (void)state;
    postgres_end(&b);
    postgres_end(&a);
    return 0;
}

static void fail_over(void)
{
    postgres_stop(&a, POSTGRES_KILL);
    postgres_promote(&b);
}

static int status_of(const char *what)
{
    struct reply reply;
    server_ask(&s, what, "", "", &reply);
    int status = reply.status;
    reply_free(&reply);
    return status;
}

static bool places(const char *key)
{
    struct reply reply;
    server_ask_keyed(&s, "POST /v1/holds", key,
                     "{\"resource\":\"room\",\"requester\":\"me\",\"duration\":\"1h\"}", &reply);
    int status = reply.status;
    reply_free(&reply);
    return status == 201;
}

static void no_record_of_an_old_primary_is_shown(void **state)
{
    static const char *const calls[] = { "GET /v1/audit", "GET /v1/trace/lost", "GET /v1/export" };
    (void)state;
    server_init(&s);
    s.options.store.postgres = both;
    server_start(&s);
    assert_int_equal(status_of("GET /v1/audit"), 200);
    fail_over();
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; !places("key");
         server_pause_ms(50))
        assert_true(server_clock_ms() < until);
    postgres_set(&a, "synchronous_standby_names", "");
    postgres_start(&a);
    postgres_run(&a, "SELECT holdfast.place_hold('lost', 'room', 'nobody', interval '1 h')");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_int_equal(status_of(calls[i]), 503);
    postgres_stop(&a, POSTGRES_FAST);
    assert_int_equal(status_of("GET /v1/audit"), 200);
    assert_int_equal(status_of("GET /v1/trace/lost"), 404);
    server_stop(&s);
    server_end(&s);
}

static void what_was_read_before_a_failover_is_not_released(void **state)
{
    struct hf_options options = { .no_background = true, .postgres = both };
    struct hf_error why;
    struct hf_db *db = NULL;
    struct hf_request get = { .action = HF_GET_RESOURCE, .get = { .name = hf_str("room") } };
    (void)state;
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    uint32_t before = hf_timeline(db);
    assert_int_equal(before, 1);
    assert_int_equal(hf_barrier_on(db, before), HF_OK);
    fail_over();
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         hf_do(db, &get, NULL) != HF_NOT_KNOWN; server_pause_ms(50))
        assert_true(server_clock_ms() < until);
    assert_int_equal(hf_timeline(db), 2);
    assert_int_equal(hf_barrier_on(db, before), HF_INDETERMINATE);
    assert_int_equal(hf_barrier_on(db, 2), HF_OK);
    assert_int_equal(hf_barrier(db), HF_OK);
    hf_close(db);
}

/* ---- A primary that lives on ---- */

/* Two workers, the reader of lists, the confirmer. */
enum { SESSIONS = 4 };

static struct hf_db *db;
static PGconn *beside, *locker; /* of the old primary; `beside` is in another database */
static int first_pid;           /* of the first worker's session there */

static long long told(PGconn *c, const char *sql)
{
    PGresult *result = PQexec(c, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(c));
    long long number = PQntuples(result) == 1 ? atoll(PQgetvalue(result, 0, 0)) : 0;
    PQclear(result);
    return number;
}

static void await(PGconn *c, const char *sql, long long wanted)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; told(c, sql) != wanted;
         server_pause_ms(5))
        if (server_clock_ms() >= until)
            fail_msg("%s: it is still not %lld", sql, wanted);
}

static struct hf_request placing(const char *key, const char *resource)
{
    return (struct hf_request){ .action = HF_PLACE_HOLD,
                                .key = hf_str(key),
                                .place_hold = { .resource = hf_str(resource),
                                                .requester = hf_str("me"),
                                                .duration_ms = 3600000 } };
}

static enum hf_status place(const char *key, const char *resource)
{
    struct hf_request q = placing(key, resource);
    return hf_do(db, &q, NULL);
}

static enum hf_status get(const char *resource)
{
    struct hf_request q = { .action = HF_GET_RESOURCE, .get = { .name = hf_str(resource) } };
    return hf_do(db, &q, NULL);
}

static size_t resources(void)
{
    struct hf_page page;
    if (hf_list(db, &(struct hf_query){ .kind = HF_LIST_RESOURCES }, &page) != HF_OK)
        return 0;
    size_t count = page.count;
    hf_page_clear(&page);
    return count;
}

static enum hf_status lists(void)
{
    return resources() == 2 ? HF_OK : HF_NOT_KNOWN;
}

static enum hf_status gets(void)
{
    return get("fresh");
}

/* (A resource that was not configured takes one hold.) */
static enum hf_status places_locked(void)
{
    static unsigned count;
    char key[24];
    snprintf(key, sizeof key, "locked-%u", ++count);
    return place(key, "room");
}

/* Where the resource is new, the journal is locked. */
static enum hf_status places_more(void)
{
    return place("more", "other");
}

/* What a thread does, and what came of it. */
static enum hf_status (*doing)(void);
static enum hf_status done;
static pthread_t thread;

static void *does(void *arg)
{
    done = doing();
    return arg;
}

#define WAITING                                                                                    \
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = " \
    "'holdfast'"

/* Somebody locks a row or a table, and a thread of ours waits for that. */
static void begins_to_wait(enum hf_status (*what)(void), PGconn *lock, const char *sql,
                           PGconn *watch)
{
    doing = what;
    told(lock, "BEGIN");
    told(lock, sql);
    assert_int_equal(pthread_create(&thread, NULL, does, NULL), 0);
    await(watch, WAITING, 1);
}

static enum hf_status ends_to_wait(PGconn *lock)
{
    told(lock, "COMMIT");
    pthread_join(thread, NULL);
    return done;
}

#define LOCK_ROOM "SELECT 1 FROM holdfast.resource WHERE name = 'room' FOR UPDATE"
#define LOCK_JOURNAL "LOCK TABLE holdfast.journal IN EXCLUSIVE MODE"
#define LOCK_RESOURCES "LOCK TABLE holdfast.resource IN ACCESS EXCLUSIVE MODE"

static int live_begin(void **state)
{
    struct hf_options options = { .no_background = true, .postgres = both };
    struct hf_error why;
    char elsewhere[POSTGRES_CONNINFO_MAX + 32];
    begin(state);
    if (hf_open(NULL, &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    locker = postgres_connect(&a);
    snprintf(elsewhere, sizeof elsewhere, "%s dbname=template1", postgres_conninfo(&a));
    beside = PQconnectdb(elsewhere);
    assert_int_equal(PQstatus(beside), CONNECTION_OK);
    await(beside, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast'", 1);
    first_pid =
        (int)told(beside, "SELECT pid FROM pg_stat_activity WHERE application_name = 'holdfast'");
    assert_int_equal(place("first", "room"), HF_OK);
    return 0;
}

static int live_end(void **state)
{
    hf_close(db);
    PQfinish(locker);
    PQfinish(beside);
    return end(state);
}

/* The line to the old primary is cut for those who come anew, and its standby is promoted. */
static void line_cut(void)
{
    postgres_set(&a, "synchronous_standby_names", "");
    postgres_reload(&a);
    postgres_await_number(&a, "SELECT (current_setting('synchronous_standby_names') = '')::integer",
                          1);
    postgres_promote(&b);
    told(beside, "ALTER DATABASE postgres ALLOW_CONNECTIONS false");
}

static void line_back(void)
{
    told(beside, "ALTER DATABASE postgres ALLOW_CONNECTIONS true");
}

/* The first worker, whose session is ended, finds the new primary. The others are left where they
 * are. */
static void first_moves(void)
{
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d)", first_pid);
    told(beside, sql);
    assert_int_equal(place("second", "fresh"), HF_OK);
    assert_int_equal(hf_timeline(db), 2);
    assert_int_equal(postgres_number(&b, "SELECT count(*) FROM holdfast.hold"), 2);
}

static void sessions_that_are_left_on_the_old_primary_are_not_asked(void **state)
{
    (void)state;
    assert_int_equal(resources(), 1);
    assert_int_equal(hf_barrier(db), HF_OK);
    begins_to_wait(places_locked, locker, LOCK_ROOM,
                   beside); /* so that another worker has a session, too */
    assert_int_equal(get("room"), HF_OK);
    assert_int_equal(ends_to_wait(locker), HF_RESOURCE_UNAVAILABLE);
    assert_true(
        told(beside, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast'") >=
        SESSIONS);
    line_cut();
    first_moves();
    line_back();
    assert_int_equal(hf_barrier(db), HF_OK);
    assert_int_equal(hf_barrier_on(db, 1), HF_INDETERMINATE);
    assert_int_equal(resources(), 2);
    PGconn *other = postgres_connect(&b), *watch = postgres_connect(&b);
    begins_to_wait(places_locked, other, LOCK_ROOM, watch);
    PQfinish(watch);
    for (int i = 0; i < 20; i++)
        assert_int_equal(get("fresh"), HF_OK);
    (void)ends_to_wait(other);
    PQfinish(other);
}

static void what_was_committed_on_a_primary_replaced_meanwhile_is_asked_of_the_new_one(void **state)
{
    (void)state;
    line_cut();
    begins_to_wait(places_more, locker, LOCK_JOURNAL, beside);
    assert_int_equal(place("second", "fresh"), HF_OK);
    assert_int_equal(hf_timeline(db), 2);
    assert_int_equal(ends_to_wait(locker), HF_OK);
    assert_int_equal(postgres_number(&b, "SELECT count(*) FROM holdfast.token WHERE key = 'more'"),
                     1);
    line_back();
    assert_int_equal(place("more", "other"), HF_OK);
    assert_int_equal(postgres_number(&b, "SELECT count(*) FROM holdfast.hold"), 3);
}

static void what_was_read_of_a_primary_replaced_meanwhile_is_read_again(void **state)
{
    (void)state;
    line_cut();
    begins_to_wait(gets, locker, LOCK_RESOURCES, beside);
    assert_int_equal(place("second", "fresh"), HF_OK);
    assert_int_equal(ends_to_wait(locker), HF_OK);
}

static void a_list_of_a_primary_replaced_meanwhile_is_read_again(void **state)
{
    (void)state;
    assert_int_equal(resources(), 1);
    line_cut();
    begins_to_wait(lists, locker, LOCK_RESOURCES, beside);
    first_moves();
    assert_int_equal(ends_to_wait(locker), HF_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
#define LIVE(name) cmocka_unit_test_setup_teardown(name, live_begin, live_end)
    const struct CMUnitTest tests[] = {
        TEST(no_record_of_an_old_primary_is_shown),
        TEST(what_was_read_before_a_failover_is_not_released),
        LIVE(sessions_that_are_left_on_the_old_primary_are_not_asked),
        LIVE(what_was_committed_on_a_primary_replaced_meanwhile_is_asked_of_the_new_one),
        LIVE(what_was_read_of_a_primary_replaced_meanwhile_is_read_again),
        LIVE(a_list_of_a_primary_replaced_meanwhile_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
