/* A primary that was replaced by its standby, and came back: what is read of its tables is told to nobody by a server that knows the
 * new one. And what was read of a primary before a failover is not released by what the new one confirms. */
#include "support/postgres_kit.h"
#include "support/server_kit.h"
#include "support/test.h"

#include "holdfast.h"

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
    for (int64_t until = server_clock_ms() + 30000; !places("key"); server_pause_ms(50))
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
    for (int64_t until = server_clock_ms() + 30000; hf_do(db, &get, NULL) != HF_NOT_KNOWN;
         server_pause_ms(50))
        assert_true(server_clock_ms() < until);
    assert_int_equal(hf_timeline(db), 2);
    assert_int_equal(hf_barrier_on(db, before), HF_INDETERMINATE);
    assert_int_equal(hf_barrier_on(db, 2), HF_OK);
    assert_int_equal(hf_barrier(db), HF_OK);
    hf_close(db);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(no_record_of_an_old_primary_is_shown),
        TEST(what_was_read_before_a_failover_is_not_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
