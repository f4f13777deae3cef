/* Opening a store in a database: making it, sharing it, and one clear sentence for everything that
 * stands in the way. */
#include "engine/kit/engine.h"
#include "postgres/kit/postgres.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct postgres p;

static enum hf_status try_open(const char *conninfo, bool no_create, struct hf_error *why)
{
    struct hf_options options = { .postgres = conninfo,
                                  .no_create = no_create,
                                  .no_background = true };
    struct hf_db *db = NULL;
    enum hf_status st = hf_open(NULL, &options, &db, why);
    assert_int_equal(st == HF_OK, db != NULL);
    hf_close(db);
    return st;
}

/* Refused with this status, and a sentence that has these words. */
static void refused(const char *conninfo, bool no_create, enum hf_status status, const char *words)
{
    struct hf_error why;
    assert_int_equal(try_open(conninfo, no_create, &why), status);
    assert_int_equal(why.status, status);
    if (!strstr(why.text, words))
        fail_msg("\"%s\" is not in: %s", words, why.text);
    assert_null(strchr(why.text, '\n'));
}

static int empty(void **state)
{
    (void)state;
    postgres_run(&p, "DROP SCHEMA IF EXISTS holdfast CASCADE");
    return 0;
}

static void a_wrong_connection_string_is_named_and_its_password_is_not(void **state)
{
    char text[200];
    struct hf_error why;
    (void)state;
    refused("host=127.0.0.1 port=1 dbname=x sslmode=disable", false, HF_STORAGE_FAILURE,
            "127.0.0.1");
    snprintf(text, sizeof text,
             "host=127.0.0.1 port=%d user=postgres dbname=nowhere sslmode=disable", p.port);
    refused(text, false, HF_STORAGE_FAILURE, "\"nowhere\" does not exist");
    assert_int_not_equal(try_open("host=127.0.0.1 port=1 password=geheim nonsense=1", false, &why),
                         HF_OK);
    assert_null(strstr(why.text, "geheim"));
    assert_int_not_equal(try_open("postgresql://u:geheim@127.0.0.1:1/x?nonsense=1", false, &why),
                         HF_OK);
    assert_null(strstr(why.text, "geheim"));
}

static void what_is_not_there_is_not_made_where_that_is_not_wanted(void **state)
{
    struct hf_error why;
    (void)state;
    refused(postgres_conninfo(&p), true, HF_STORE_ABSENT, "no schema holdfast");
    assert_int_equal(
        postgres_number(&p, "SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'"), 0);
    assert_int_equal(try_open(postgres_conninfo(&p), false, &why), HF_OK);
    assert_int_equal(try_open(postgres_conninfo(&p), true, &why), HF_OK);
}

static void a_newer_schema_is_refused_and_left_alone(void **state)
{
    struct hf_error why;
    (void)state;
    assert_int_equal(try_open(postgres_conninfo(&p), false, &why), HF_OK);
    postgres_run(
        &p, "INSERT INTO holdfast.migration (version, name, program) VALUES (999, 'later', '9.9')");
    refused(postgres_conninfo(&p), false, HF_STORE_NEWER, "version 999");
    postgres_run(&p, "DELETE FROM holdfast.migration WHERE version = 999");
    assert_int_equal(try_open(postgres_conninfo(&p), false, &why), HF_OK);
}

static void a_database_that_can_only_be_read_or_has_another_encoding_is_refused(void **state)
{
    char text[200];
    (void)state;
    postgres_run(&p, "CREATE ROLE reader LOGIN");
    postgres_run(&p, "ALTER ROLE reader SET default_transaction_read_only = on");
    snprintf(text, sizeof text,
             "host=127.0.0.1 port=%d user=reader dbname=postgres sslmode=disable", p.port);
    refused(text, false, HF_STORAGE_FAILURE, "is read-only");
    postgres_run(
        &p,
        "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
    snprintf(text, sizeof text, "host=127.0.0.1 port=%d user=postgres dbname=latin sslmode=disable",
             p.port);
    refused(text, false, HF_STORAGE_FAILURE, "encoding LATIN1");
    postgres_run(&p, "DROP DATABASE latin");
    postgres_run(&p, "DROP ROLE reader");
}

static void missing_rights_are_named_and_nothing_is_half_made(void **state)
{
    char text[200];
    struct hf_error why;
    (void)state;
    postgres_run(&p, "CREATE ROLE nobody_much LOGIN");
    snprintf(text, sizeof text,
             "host=127.0.0.1 port=%d user=nobody_much dbname=postgres sslmode=disable", p.port);
    refused(text, false, HF_STORAGE_FAILURE,
            "permission denied for database postgres. Start the server once");
    assert_int_equal(
        postgres_number(&p, "SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'"), 0);
    assert_int_equal(try_open(postgres_conninfo(&p), false, &why), HF_OK);
    refused(text, false, HF_STORAGE_FAILURE,
            "permission denied for schema holdfast. Run roles.sql");
    /* It may use the schema, and a migration that is missing needs more than that. */
    postgres_run(&p, "GRANT USAGE ON SCHEMA holdfast TO nobody_much; GRANT SELECT ON "
                     "holdfast.migration TO nobody_much; DELETE FROM holdfast.migration WHERE "
                     "version = 2");
    refused(text, false, HF_STORAGE_FAILURE, ". Start the server once with a role");
    postgres_run(&p, "DROP OWNED BY nobody_much; DROP ROLE nobody_much");
}

static void open_one(struct kit_worker *w);

static void *open_waiting(void *arg)
{
    open_one(arg);
    return NULL;
}

static void open_one(struct kit_worker *w)
{
    struct hf_error why;
    struct hf_options options = { .postgres = postgres_conninfo(&p), .no_background = true };
    struct hf_db *db;
    w->done = hf_open(NULL, &options, &db, &why) == HF_OK;
    if (!w->done)
        fprintf(stderr, "%s\n", why.text);
    hf_close(db);
}

/* All of them have seen that there is nothing, and wait; only the first may still believe it. (One
 * of eight was once seen to believe it longer. That did not happen again on purpose: this test
 * passed before it was mended, too.) */
static void those_who_waited_for_another_to_make_it_find_it_made(void **state)
{
    enum { COUNT = 3 };
    pthread_t threads[COUNT];
    struct kit_worker workers[COUNT] = { 0 };
    (void)state;
    PGconn *first = postgres_connect(&p);
    PQclear(PQexec(first, "SELECT pg_advisory_lock(1213808980, 1)"));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_waiting, &workers[i]), 0);
    postgres_await_number(
        &p, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", COUNT);
    PQfinish(first);
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].done, 1);
    }
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.store"), 1);
}

static void many_that_start_at_once_make_it_once(void **state)
{
    enum { COUNT = 8 };
    struct kit_worker workers[COUNT];
    (void)state;
    kit_run(workers, COUNT, open_one);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(workers[i].done, 1);
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.store"), 1);
    assert_int_equal(
        postgres_number(&p, "SELECT count(*) - count(DISTINCT version) FROM holdfast.migration"),
        0);
    assert_int_equal(
        postgres_number(&p, "SELECT count(*) FROM holdfast.journal WHERE action = 'configure'"), 1);
}

/* The window that one server is started with counts for all, from then on. */
static void the_configuration_in_force_is_shared_and_in_the_journal(void **state)
{
    struct hf_options options = { .postgres = postgres_conninfo(&p), .no_background = true };
    struct hf_db *first, *second;
    struct hf_result got = HF_RESULT_INIT;
    struct hf_error why;
    struct hf_request place = { .action = HF_PLACE_HOLD,
                                .key = hf_str("key"),
                                .place_hold = { .resource = hf_str("room"),
                                                .requester = hf_str("guest"),
                                                .duration_ms = HOUR } };
    (void)state;
    assert_int_equal(hf_open(NULL, &options, &first, &why), HF_OK);
    options.idempotency_window_ms = 5 * MINUTE;
    options.registry = HF_REGISTRY_STRICT;
    assert_int_equal(hf_open(NULL, &options, &second, &why), HF_OK);
    assert_int_equal(hf_do(first, &place, &got), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(got.token.expires_at - got.token.recorded_at, 5 * MINUTE);
    hf_result_clear(&got);
    hf_close(second);
    hf_close(first);
    assert_int_equal(
        postgres_number(&p, "SELECT count(*) FROM holdfast.journal WHERE action = 'configure'"), 2);
}

static void *open_with_a_window(void *arg)
{
    struct hf_error why;
    struct hf_options options = { .postgres = postgres_conninfo(&p),
                                  .idempotency_window_ms = 7 * MINUTE,
                                  .no_background = true };
    struct hf_db *db;
    struct kit_worker *w = arg;
    w->done = hf_open(NULL, &options, &db, &why) == HF_OK;
    if (!w->done)
        fprintf(stderr, "%s\n", why.text);
    hf_close(db);
    return NULL;
}

/* The configuration is changed under a lock, for which it waits while an application has its
 * transaction open. Every write of every server waited behind it, two seconds each. */
static void a_start_that_waits_does_not_keep_others_waiting(void **state)
{
    enum { PLACES = 40 };
    struct hf_options options = { .postgres = postgres_conninfo(&p), .no_background = true };
    struct kit_worker worker = { 0 };
    struct hf_error why;
    struct hf_db *db;
    pthread_t thread;
    int waited = 0;
    (void)state;
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    PGconn *application = postgres_connect(&p);
    PQclear(PQexec(application, "BEGIN"));
    PGresult *placed = PQexec(
        application, "SELECT holdfast.place_hold(key => 'open', resource => 'desk', requester => "
                     "'guest', duration => interval '1 hour')");
    if (PQresultStatus(placed) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(application));
    PQclear(placed);
    assert_int_equal(pthread_create(&thread, NULL, open_with_a_window, &worker), 0);
    postgres_await_number(&p, "SELECT (count(*) > 0)::integer FROM pg_locks WHERE NOT granted", 1);
    for (int i = 0; i < PLACES; i++) {
        char key[16];
        snprintf(key, sizeof key, "key-%d", i);
        struct hf_request place = { .action = HF_PLACE_HOLD,
                                    .key = hf_str(key),
                                    .place_hold = { hf_str(key), hf_str("guest"), HOUR, 0 } };
        int64_t begun = server_clock_ms();
        assert_int_equal(hf_do(db, &place, NULL), HF_OK);
        waited += server_clock_ms() - begun > 1500;
    }
    PQclear(PQexec(application, "COMMIT"));
    PQfinish(application);
    pthread_join(thread, NULL);
    hf_close(db);
    assert_int_equal(worker.done, 1);
    assert_int_equal(postgres_number(&p, "SELECT idempotency_window_ms FROM holdfast.store"),
                     7 * MINUTE);
    if (waited > PLACES / 2)
        fail_msg("%d of %d writes beside a start waited for it", waited, PLACES);
}

static int begin(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    return 0;
}

static int end(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_wrong_connection_string_is_named_and_its_password_is_not, empty),
        cmocka_unit_test_setup(what_is_not_there_is_not_made_where_that_is_not_wanted, empty),
        cmocka_unit_test_setup(a_newer_schema_is_refused_and_left_alone, empty),
        cmocka_unit_test_setup(a_database_that_can_only_be_read_or_has_another_encoding_is_refused,
                               empty),
        cmocka_unit_test_setup(missing_rights_are_named_and_nothing_is_half_made, empty),
        cmocka_unit_test_setup(those_who_waited_for_another_to_make_it_find_it_made, empty),
        cmocka_unit_test_setup(many_that_start_at_once_make_it_once, empty),
        cmocka_unit_test_setup(the_configuration_in_force_is_shared_and_in_the_journal, empty),
        cmocka_unit_test_setup(a_start_that_waits_does_not_keep_others_waiting, empty),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
