/* Lists of claims over HTTP, and claims that become unknown by themselves: the log and the figures
 * say so although no client asks. */
#include "server/kit/case.h"
#include "server/kit/watch.h"

static long long begun(const char *key, const char *lease)
{
    char body[200];
    snprintf(body, sizeof body, "{\"key\":\"%s\",\"payload\":1,\"lease\":\"%s\"}", key, lease);
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, body), 201);
    return reply_number(&t.got, "fence");
}

static void settled(const char *key, const char *verb, long long fence, const char *more)
{
    char body[200];
    snprintf(body, sizeof body, "{\"fence\":%lld%s}", fence, more);
    assert_int_equal(talkf(&t, NULL, body, "POST /v1/claims/%s/%s", key, verb), 200);
}

/* The keys of the claims in a list, each with a space after it. */
static const char *keys_of(const char *query)
{
    static char keys[1000];
    size_t size = 0;
    assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/claims%s", query), 200);
    keys[0] = '\0';
    for (const char *at = t.got.body; (at = strstr(at, "\"key\":\"")) != NULL;) {
        at += strlen("\"key\":\"");
        size += (size_t)snprintf(keys + size, sizeof keys - size, "%.*s ",
                                 (int)(strchr(at, '"') - at), at);
        assert_true(size < sizeof keys);
    }
    return keys;
}

/* Five claims, one of each state, begun a second apart. */
static void begin_five(void)
{
    settled("pay-1", "complete", begun("pay-1", "30s"), ",\"response\":{\"charge\":\"C1\"}");
    clock_at(1000);
    settled("pay-2", "fail", begun("pay-2", "30s"), ",\"error\":\"no funds\"");
    clock_at(2000);
    settled("mail-3", "fail", begun("mail-3", "30s"), ",\"retryable\":true");
    clock_at(3000);
    begun("mail-4", "1s");
    clock_at(4000);
    begun("pay-5", "1h");
}

static void claims_are_listed_by_status_time_and_prefix(void **state)
{
    (void)state;
    assert_string_equal(keys_of(""), "");
    talk_is(&t, "{\"claims\":[],\"next_cursor\":null}");
    begin_five();
    assert_string_equal(keys_of(""), "pay-5 mail-4 mail-3 pay-2 pay-1 ");
    assert_string_equal(keys_of("?status=completed"), "pay-1 ");
    talk_is(&t, "{\"claims\":[{\"key\":\"pay-1\",\"status\":\"completed\",\"fence\":#,"
                "\"fingerprint\":\"*\",\"on_abandon\":\"unknown\",\"lease\":\"30s\",\"begun_at\":"
                "\"" TALK_AT "\",\"lease_expires_at\":\"*\",\"response\":{\"charge\":\"C1\"},"
                "\"settled_at\":\"*\",\"expires_at\":\"*\"}],\"next_cursor\":null}");
    assert_string_equal(keys_of("?status=failed"), "pay-2 ");
    assert_string_equal(keys_of("?status=retryable"), "mail-3 ");
    assert_string_equal(keys_of("?status=unknown"), "mail-4 ");
    assert_true(reply_has(&t.got, "\"unknown_since\":\"2023-11-14T22:13:24.000Z\""));
    assert_string_equal(keys_of("?status=started"), "pay-5 ");
    assert_string_equal(keys_of("?prefix=pay-"), "pay-5 pay-2 pay-1 ");
    assert_string_equal(keys_of("?prefix=pay-&status=failed"), "pay-2 ");
    assert_string_equal(keys_of("?from=2023-11-14T22:13:22Z"), "pay-5 mail-4 mail-3 ");
    assert_string_equal(keys_of("?to=2023-11-14T22:13:22Z"), "pay-2 pay-1 ");
    assert_string_equal(keys_of("?from=2023-11-14T22:13:21Z&to=2023-11-14T22:13:23Z&prefix=mail"),
                        "mail-3 ");
    assert_string_equal(keys_of("?to=1969-01-01"), "");
    /* Pages, by their cursors. */
    assert_string_equal(keys_of("?limit=2"), "pay-5 mail-4 ");
    char query[100];
    snprintf(query, sizeof query, "?limit=2&cursor=%s", reply_text(&t.got, "next_cursor"));
    assert_string_equal(keys_of(query), "mail-3 pay-2 ");
    snprintf(query, sizeof query, "?limit=2&cursor=%s", reply_text(&t.got, "next_cursor"));
    assert_string_equal(keys_of(query), "pay-1 ");
}

static void queries_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = { "?state=unknown", "?status=lost",
                                         "?limit=0",       "?limit=1001",
                                         "?from=soon",     "?cursor=x",
                                         "?prefix=%zz",    "?status=unknown&status=failed" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        talkf(&t, NULL, NULL, "GET /v1/claims%s", wrong[i]);
        talk_refused(&t, 400, "invalid-request");
    }
}

/* With the background thread, and its log perhaps with hashes. */
static void restart(bool hashes)
{
    s.options.store.no_background = false;
    s.options.log_hash_keys = hashes;
    case_restart();
}

static void a_claim_becomes_unknown_without_being_asked_for(void **state)
{
    (void)state;
    restart(false);
    long long fence = begun("pay-7", "1s");
    watch_await_figure(&s, "", "holdfast_claims{state=\"started\"}", 1);
    clock_at(999);
    assert_false(talk_figure(&t, "holdfast_claims_unknown_oldest_seconds") > 0);
    clock_at(5000);
    assert_true(watch_log(&s,
                          "warning claim-unknown key=\"pay-7\" tenant=\"\" fence=1 "
                          "begun=2023-11-14T22:13:20.000Z unknown_since=2023-11-14T22:13:21.000Z "
                          "on_abandon=unknown",
                          1));
    watch_await_figure(&s, "", "holdfast_claims{state=\"unknown\"}", 1);
    watch_await_figure(&s, "", "holdfast_claims{state=\"started\"}", 0);
    watch_await_figure(&s, "", "holdfast_claims_unknown_oldest_seconds", 4);
    settled("pay-7", "complete", fence, "");
    watch_await_figure(&s, "", "holdfast_claims{state=\"unknown\"}", 0);
    watch_await_figure(&s, "", "holdfast_claims{state=\"completed\"}", 1);
    watch_await_figure(&s, "", "holdfast_claims_unknown_oldest_seconds", 0);
}

static void the_line_has_the_hash_of_the_key_if_so_configured(void **state)
{
    (void)state;
    restart(true);
    begun("pay-7", "1s");
    clock_at(1000);
    assert_true(watch_log(&s, "warning claim-unknown key=", 1));
    char *log = server_log(&s);
    assert_null(strstr(log, "pay-7"));
    free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS_TEST(claims_are_listed_by_status_time_and_prefix),
        CALLS_TEST(queries_that_make_no_sense_are_refused),
        CALLS_TEST(a_claim_becomes_unknown_without_being_asked_for),
        CALLS_TEST(the_line_has_the_hash_of_the_key_if_so_configured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
