/* Opening a store in a database: making it, sharing it, and one clear sentence for everything that
 * stands in the way. */
#include "engine/kit/engine.h"
#include "postgres/kit/functions.h"
#include "postgres/kit/postgres.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>
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

static void set_unicode(const char *version)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "CREATE OR REPLACE FUNCTION holdfast._unicode_folded() RETURNS jsonb LANGUAGE sql "
             "IMMUTABLE AS 'SELECT ''{}''::jsonb'; "
             "COMMENT ON FUNCTION holdfast._unicode_marks() IS '%s'",
             version);
    postgres_run(&p, sql);
}

static bool folds(void)
{
    return postgres_number(&p, "SELECT (holdfast._unicode_folded() ? U&'\\00c4')::integer") == 1;
}

/* A server with a newer library and the SQL functions must find the same identities. */
static void older_unicode_tables_are_replaced(void **state)
{
    char text[200];
    struct hf_error why;
    (void)state;
    assert_int_equal(try_open(postgres_conninfo(&p), false, &why), HF_OK);
    assert_true(folds());
    set_unicode("Unicode 99.0.0 (utf8proc 9.0.0): those of a newer program");
    assert_int_equal(try_open(postgres_conninfo(&p), false, &why), HF_OK);
    assert_false(folds());
    char *roles = functions_file("src/store/postgres/schema/roles.sql");
    postgres_run(&p, roles);
    free(roles);
    postgres_run(&p, "CREATE ROLE one_server LOGIN IN ROLE holdfast_server");
    set_unicode("Unicode 9.0.0 (utf8proc 2.0.2): those of an older program");
    snprintf(text, sizeof text,
             "host=127.0.0.1 port=%d user=one_server dbname=postgres sslmode=disable", p.port);
    assert_int_equal(try_open(text, false, &why), HF_OK); /* it may not replace them */
    assert_false(folds());
    assert_int_equal(try_open(postgres_conninfo(&p), false, &why), HF_OK);
    assert_true(folds());
    assert_int_equal(postgres_number(&p, "SELECT has_function_privilege('one_server', "
                                         "'holdfast._unicode_folded()', 'EXECUTE')::integer"),
                     0);
    postgres_run(&p, "DROP OWNED BY holdfast_server, holdfast_application, holdfast_auditor; "
                     "DROP ROLE one_server, holdfast_server, holdfast_application, "
                     "holdfast_auditor");
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

/* Databases, roles and sessions with other defaults than PostgreSQL ships with, or with something
 * added by hand: the rules hold all the same. */

static int empty_database(void **state)
{
    (void)state;
    postgres_run(&p, "DROP SCHEMA IF EXISTS holdfast CASCADE; ALTER DATABASE postgres RESET ALL");
    return 0;
}

static struct hf_db *opened(struct hf_options options)
{
    struct hf_error why = { HF_OK, "" };
    struct hf_db *db;
    options.postgres = postgres_conninfo(&p);
    options.no_background = true;
    if (hf_open(NULL, &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    return db;
}

/* ---- Servers ---- */

static _Atomic bool first_runs;

/* Each writes its own value unless the other one is there; the first has seen that it is not, and
 * waits until the second is asked for. */
static enum hf_status first_function(struct hf_tx *tx, void *arg)
{
    struct hf_bytes value;
    (void)arg;
    enum hf_status other = hf_tx_get(tx, hf_str("second"), &value);
    first_runs = true;
    postgres_await_number(
        &p, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", 1);
    return other == HF_NOT_KNOWN ? hf_tx_put(tx, hf_str("first"), hf_str("x")) : HF_OK;
}

static enum hf_status second_function(struct hf_tx *tx, void *arg)
{
    struct hf_bytes value;
    (void)arg;
    return hf_tx_get(tx, hf_str("first"), &value) == HF_NOT_KNOWN
               ? hf_tx_put(tx, hf_str("second"), hf_str("x"))
               : HF_OK;
}

static enum hf_status apply(struct hf_db *db, const char *key, hf_apply_fn *fn)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request request = { .action = HF_APPLY,
                                  .key = hf_str(key),
                                  .apply = { .name = hf_str(key), .fn = fn } };
    enum hf_status st = hf_do(db, &request, &result);
    hf_result_clear(&result);
    return st;
}

static void *apply_first(void *db)
{
    KIT_WANT(apply(db, "first", first_function) == HF_OK);
    return NULL;
}

/* Functions of one tenant run one after another, each over what those before it have done. */
static void functions_see_each_other_whatever_the_isolation_of_the_database(void **state)
{
    static const char *const levels[] = { "repeatable read", "serializable" };
    (void)state;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        char sql[100];
        pthread_t thread;
        empty_database(state);
        snprintf(sql, sizeof sql,
                 "ALTER DATABASE postgres SET default_transaction_isolation = '%s'", levels[i]);
        postgres_run(&p, sql);
        struct hf_db *one = opened((struct hf_options){ 0 }),
                     *two = opened((struct hf_options){ 0 });
        first_runs = false;
        assert_int_equal(pthread_create(&thread, NULL, apply_first, one), 0);
        while (!first_runs)
            server_pause_ms(1);
        assert_int_equal(apply(two, "second", second_function), HF_OK);
        pthread_join(thread, NULL);
        hf_close(two);
        hf_close(one);
        assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.app_value"), 1);
    }
}

static void a_store_is_made_where_backslashes_in_strings_are_escapes(void **state)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request place = { .action = HF_PLACE_HOLD,
                                .key = hf_str("a\\b"),
                                .place_hold = { .resource = hf_str("room"),
                                                .requester = hf_str("guest"),
                                                .duration_ms = HOUR } };
    (void)state;
    postgres_run(&p, "ALTER DATABASE postgres SET standard_conforming_strings = off; "
                     "ALTER DATABASE postgres SET escape_string_warning = off");
    struct hf_db *db = opened((struct hf_options){ 0 });
    assert_int_equal(hf_do(db, &place, &result), HF_OK);
    hf_result_clear(&result);
    hf_close(db);
    PGconn *c = postgres_connect(&p);
    EXPECT(c, "ok", true, "place_hold", "a\\b", "room", "guest", "1 hour");
    EXPECT(c, "ok", false, "set_guard", "guard", "1 hour", "casefold");
    EXPECT(c, "ok", false, "admit", "guard", "\303\204\\");
    IS(c, "t", "seen", "check_seen", "guard", "\303\244\\");
    EXPECT(c, "ok", false, "write", "w\\", "register", "value");
    char *fence = COLUMN(c, "fence", "begin", "c\\", "payload");
    EXPECT(c, "ok", false, "complete", "c\\", fence, "response");
    IS(c, "c\\", "key", "get_claim", "c\\");
    free(fence);
    assert_int_equal(functions_check_journal(c), 7);
    PQfinish(c);
    char *bytes = postgres_ask(&p, "SELECT holdfast.json(E'{\"a  b\" : \"\\\\\\\\ \\\\\" \"}')");
    assert_string_equal(bytes, "\\x006a"
                               "07f2c6dd486b07858c96c761c05c024469128ce5106021a5080ea8a506a465ac"
                               "7b2261202062223a225c5c205c2220227d");
    free(bytes);
}

/* A byte that is no UTF-8 is four in the column, and an index takes 2,704 bytes: it is always small
 * enough as it is compressed. */
static void a_key_of_any_bytes_fits_whatever_compression_the_database_prefers(void **state)
{
    enum { SIZE = 1024, KEYS = 20 };
    static const struct hf_options options = { .token_max_length = SIZE };
    unsigned char key[SIZE];
    char tenant[HF_TENANT_MAX];
    unsigned seed = 1;
    (void)state;
    if (!postgres_number(&p,
                         "SELECT ('lz4' = ANY(enumvals))::integer FROM pg_settings WHERE name = "
                         "'default_toast_compression'"))
        skip();
    postgres_run(&p, "ALTER DATABASE postgres SET default_toast_compression = 'lz4'");
    struct hf_db *db = opened(options);
    for (int n = 0; n < KEYS; n++) {
        struct hf_request q = { .action = HF_BEGIN,
                                .tenant = hf_mem(tenant, sizeof tenant),
                                .key = hf_mem(key, sizeof key),
                                .begin = { .lease_ms = HOUR } };
        for (int i = 0; i < SIZE; i++)
            key[i] =
                (unsigned char)(n % 2 ? 0x80 + rand_r(&seed) % 0x40 : 0xc0 + rand_r(&seed) % 0x40);
        for (size_t i = 0; i < sizeof tenant; i++)
            tenant[i] = (char)('0' + rand_r(&seed) % 64);
        assert_int_equal(hf_do(db, &q, NULL), HF_OK);
        assert_int_equal(hf_do(db, &q, NULL), HF_IN_PROGRESS);
    }
    hf_close(db);
}

/* It is one caller's value that an index which somebody added has no room for. */
static void what_the_database_cannot_take_from_one_it_takes_from_the_others(void **state)
{
    static unsigned char large[HF_VALUE_MAX];
    struct hf_stats stats;
    unsigned seed = 1;
    (void)state;
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (unsigned char)rand_r(&seed);
    struct hf_db *db = opened((struct hf_options){ 0 });
    postgres_run(&p, "CREATE INDEX ON holdfast.register (value)");
    const struct hf_request requests[] = {
        { .action = HF_WRITE,
          .key = hf_str("1"),
          .write = { .name = hf_str("before"), .value = hf_str("x") } },
        { .action = HF_WRITE,
          .key = hf_str("2"),
          .write = { .name = hf_str("large"), .value = hf_mem(large, sizeof large) } },
        { .action = HF_WRITE,
          .key = hf_str("3"),
          .write = { .name = hf_str("behind"), .value = hf_str("x") } }
    };
    struct hf_result results[] = { HF_RESULT_INIT, HF_RESULT_INIT, HF_RESULT_INIT };
    assert_int_equal(hf_do_many(db, requests, results, 3), HF_OK);
    assert_int_equal(results[0].answer.status, HF_OK);
    assert_int_equal(results[1].answer.status, HF_STORAGE_FAILURE);
    assert_int_equal(results[2].answer.status, HF_OK);
    hf_stats(db, &stats);
    assert_false(stats.database_away);
    for (int i = 0; i < 3; i++)
        hf_result_clear(&results[i]);
    hf_close(db);
}

/* ---- Applications ---- */

/* What is in the journal behind a change of the rules goes by the new ones. */
static void functions_do_not_decide_by_rules_that_their_snapshot_is_too_old_for(void **state)
{
    static const char *const levels[] = { "REPEATABLE READ", "SERIALIZABLE" };
    (void)state;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        char sql[100];
        empty_database(state);
        hf_close(opened((struct hf_options){ 0 }));
        PGconn *c = postgres_connect(&p), *reader = postgres_connect(&p);
        snprintf(sql, sizeof sql, "BEGIN ISOLATION LEVEL %s", levels[i]);
        functions_run(c, sql);
        functions_run(c, "SELECT FROM pg_class");
        functions_run(reader, sql);
        functions_run(reader, "SET TRANSACTION READ ONLY");
        functions_run(reader, "SELECT FROM pg_class");
        hf_close(opened(
            (struct hf_options){ .idempotency_window_ms = HOUR, .registry = HF_REGISTRY_STRICT }));
        functions_fails(c, "40001",
                        "SELECT holdfast.place_hold('key', 'new room', 'guest', '1 hour')");
        functions_run(c, "ROLLBACK");
        IS(reader, "not-known", "status", "token_status", "key");
        functions_run(reader, "ROLLBACK");
        functions_run(c, sql);
        EXPECT(c, "resource-unavailable", false, "place_hold", "key", "new room", "guest",
               "1 hour");
        functions_run(c, "COMMIT");
        PQfinish(reader);
        PQfinish(c);
    }
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
        cmocka_unit_test_setup(older_unicode_tables_are_replaced, empty),
        cmocka_unit_test_setup(those_who_waited_for_another_to_make_it_find_it_made, empty),
        cmocka_unit_test_setup(many_that_start_at_once_make_it_once, empty),
        cmocka_unit_test_setup(the_configuration_in_force_is_shared_and_in_the_journal, empty),
        cmocka_unit_test_setup(a_start_that_waits_does_not_keep_others_waiting, empty),
        cmocka_unit_test_setup(functions_see_each_other_whatever_the_isolation_of_the_database,
                               empty_database),
        cmocka_unit_test_setup(a_store_is_made_where_backslashes_in_strings_are_escapes,
                               empty_database),
        cmocka_unit_test_setup(a_key_of_any_bytes_fits_whatever_compression_the_database_prefers,
                               empty_database),
        cmocka_unit_test_setup(what_the_database_cannot_take_from_one_it_takes_from_the_others,
                               empty_database),
        cmocka_unit_test_setup(functions_do_not_decide_by_rules_that_their_snapshot_is_too_old_for,
                               empty_database),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
