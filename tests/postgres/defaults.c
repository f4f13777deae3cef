/* Databases, roles and sessions with other defaults than PostgreSQL ships with, or with something
 * added by hand: the rules hold all the same. */
#include "engine/kit/engine.h"
#include "postgres/kit/functions.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static struct postgres p;

static int empty(void **state)
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
        empty(state);
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
    assert_string_equal(bytes, "\\x006a7b2261202062223a225c5c205c2220227d");
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
        empty(state);
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
        cmocka_unit_test_setup(functions_see_each_other_whatever_the_isolation_of_the_database,
                               empty),
        cmocka_unit_test_setup(a_store_is_made_where_backslashes_in_strings_are_escapes, empty),
        cmocka_unit_test_setup(a_key_of_any_bytes_fits_whatever_compression_the_database_prefers,
                               empty),
        cmocka_unit_test_setup(what_the_database_cannot_take_from_one_it_takes_from_the_others,
                               empty),
        cmocka_unit_test_setup(functions_do_not_decide_by_rules_that_their_snapshot_is_too_old_for,
                               empty),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
