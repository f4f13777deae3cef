/* Guards over HTTP: their rules, check, record and admit, and what is under guard. */
#include "server/kit/case.h"

static int ask(const char *guard, const char *verb, const char *identity)
{
    char body[3000];
    snprintf(body, sizeof body, "{\"identity\":\"%s\"}", identity);
    return talkf(&t, NULL, body, "POST /v1/guards/%s/%s", guard, verb);
}

/* Is it under guard? */
static bool seen(const char *guard, const char *identity)
{
    if (ask(guard, "check", identity) != 200)
        fail_msg("%d %s", t.got.status, t.got.body);
    return reply_has(&t.got, "{\"seen\":true");
}

static void recorded(const char *guard, const char *identity)
{
    if (ask(guard, "record", identity) != 200)
        fail_msg("%d %s", t.got.status, t.got.body);
    talk_is(&t, "{\"ok\":true}");
}

static void a_guard_is_set_and_shown(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "GET /v1/guards/g", NULL, NULL), 404);
    talk_refused(&t, 404, "not-known");
    assert_int_equal(talk(&t, "PUT /v1/guards/g", NULL, "{\"window\":\"24h\"}"), 200);
    talk_unkeyed(&t);
    const char *plain = "{\"name\":\"g\",\"window\":\"*\",\"match\":[\"exact\"],\"on_unavailable\":"
                        "\"open\",\"durable\":true,"
                        "\"created_at\":\"" TALK_AT "\"}";
    talk_is(&t, plain);
    clock_at(1000);
    assert_int_equal(talk(&t, "GET /v1/guards/g", NULL, NULL), 200);
    talk_is(&t, plain);
    assert_int_equal(talk(&t, "PUT /v1/guards/g", NULL,
                          "{\"window\":60,\"match\":[\"trim\",\"normalize\",\"casefold\",\"hash\"],"
                          "\"on_unavailable\":"
                          "\"closed\",\"durable\":false}"),
                     200);
    talk_is(
        &t,
        "{\"name\":\"g\",\"window\":\"*\",\"match\":[\"trim\",\"normalize\",\"casefold\",\"hash\"],"
        "\"on_unavailable\":\"closed\",\"durable\":false,\"created_at\":\"*\"}");
    /* What is answered can be sent back. */
    char window[32], body[100];
    snprintf(window, sizeof window, "%s", reply_text(&t.got, "window"));
    snprintf(body, sizeof body, "{\"window\":\"%s\"}", window);
    assert_int_equal(talk(&t, "PUT /v1/guards/h", NULL, body), 200);
    assert_string_equal(reply_text(&t.got, "window"), window);
    assert_int_equal(talk(&t, "GET /v1/guards?limit=1", NULL, NULL), 200);
    talk_is(
        &t,
        "{\"guards\":[{\"name\":\"h\",\"window\":\"*\",\"match\":[\"exact\"],\"on_unavailable\":"
        "\"open\",\"durable\":"
        "true,\"created_at\":\"*\"}],\"next_cursor\":\"*\"}");
}

static void a_guard_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{}",
        "",
        "{\"window\":\"0s\"}",
        "{\"window\":\"never\"}",
        "{\"window\":\"4000d\"}",
        "{\"window\":true}",
        "{\"window\":\"1h\",\"match\":[\"fuzzy\"]}",
        "{\"window\":\"1h\",\"match\":[\"hash\",\"trim\"]}",
        "{\"window\":\"1h\",\"match\":[\"trim\",\"trim\"]}",
        "{\"window\":\"1h\",\"match\":[\"exact\",\"trim\",\"casefold\",\"normalize\",\"hash\"]}",
        "{\"window\":\"1h\",\"match\":7}",
        "{\"window\":\"1h\",\"on_unavailable\":\"maybe\"}",
        "{\"window\":\"1h\",\"durable\":\"yes\"}",
        "{\"window\":\"1h\",\"name\":\"g\"}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        talk(&t, "PUT /v1/guards/g", NULL, wrong[i]);
        talk_refused(&t, 400, "invalid-request");
    }
    assert_int_equal(talk(&t, "GET /v1/guards/g", NULL, NULL), 404);
}

/* Under another match rule a duplicate of a live entry might pass. */
static void a_match_rule_stays_while_entries_live(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "PUT /v1/guards/g", NULL, "{\"window\":\"1h\",\"match\":\"trim\"}"),
                     200);
    assert_int_equal(ask("g", "record", "x"), 200);
    static const char *const others[] = {
        "{\"window\":\"1h\"}", "{\"window\":\"1h\",\"match\":\"trim,hash\"}",
        "{\"window\":\"1h\",\"match\":[\"casefold\"],\"force\":false}"
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        talk(&t, "PUT /v1/guards/g", NULL, others[i]);
        talk_refused(&t, 409, "window-not-elapsed");
        assert_non_null(strstr(reply_text(&t.got, "detail"),
                               "the guard has live entries, and its rule is trim."));
    }
    assert_int_equal(talk(&t, "PUT /v1/guards/g", NULL, "{\"window\":\"2h\",\"match\":\"trim\"}"),
                     200);
    clock_at(3600 * 1000);
    assert_int_equal(talk(&t, "PUT /v1/guards/g", NULL, others[0]), 200);
    assert_int_equal(ask("g", "record", "x"), 200);
    assert_int_equal(
        talk(&t, "PUT /v1/guards/g", NULL,
             "{\"window\":\"1h\",\"match\":\"normalize,hash\",\"durable\":true,\"force\":true}"),
        200);
    talk(&t, "PUT /v1/guards/g", NULL, "{\"window\":\"1h\",\"force\":\"yes\"}");
    talk_refused(&t, 400, "invalid-request");
}

static void a_guard_must_be_there(void **state)
{
    (void)state;
    static const char *const verbs[] = { "check", "record", "admit" };
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ask("none", verbs[i], "x"), 404);
        talk_refused(&t, 404, "not-known");
    }
    assert_int_equal(talk(&t, "GET /v1/guards/none/entries", NULL, NULL), 404);
    talk_refused(&t, 404, "not-known");
}

static void check_reads_record_records_once_admit_does_both(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "PUT /v1/guards/pay", NULL, "{\"window\":\"5m\"}"), 200);
    assert_int_equal(ask("pay", "check", "p1"), 200);
    talk_is(&t, "{\"seen\":false}");
    assert_int_equal(talk(&t, "POST /v1/guards/pay/record", NULL,
                          "{\"identity\":\"p1\",\"result\":{\"charge\":\"C1\"}}"),
                     200);
    talk_is(&t, "{\"ok\":true}");
    talk_unkeyed(&t);
    clock_at(60000);
    /* Recording again moves neither the time nor the result. */
    assert_int_equal(
        talk(&t, "POST /v1/guards/pay/record", NULL, "{\"identity\":\"p1\",\"result\":\"other\"}"),
        200);
    const char *first =
        "{\"seen\":true,\"recorded_at\":\"" TALK_AT
        "\",\"expires_at\":\"2023-11-14T22:18:20.000Z\",\"result\":{\"charge\":\"C1\"}}";
    assert_int_equal(ask("pay", "check", "p1"), 200);
    talk_is(&t, first);
    assert_int_equal(ask("pay", "admit", "p1"), 200);
    talk_is(&t, first);
    assert_int_equal(
        talk(&t, "POST /v1/guards/pay/admit", NULL, "{\"identity\":\"p2\",\"result\":null}"), 200);
    talk_is(&t, "{\"seen\":false}");
    assert_int_equal(ask("pay", "admit", "p2"), 200);
    talk_is(&t, "{\"seen\":true,\"recorded_at\":\"2023-11-14T22:14:20.000Z\",\"expires_at\":\"2023-"
                "11-14T22:"
                "19:20.000Z\","
                "\"result\":null}");
    /* The window is half-open. */
    clock_at(5 * 60000 - 1);
    assert_true(seen("pay", "p1"));
    clock_at(5 * 60000);
    assert_false(seen("pay", "p1"));
    recorded("pay", "p1");
    assert_int_equal(ask("pay", "check", "p1"), 200);
    talk_is(&t, "{\"seen\":true,\"recorded_at\":\"2023-11-14T22:18:20.000Z\",\"expires_at\":\"2023-"
                "11-14T22:"
                "23:20.000Z\"}");
}

static void each_match_rule_compares_in_its_own_way(void **state)
{
    (void)state;
    static const struct {
        const char *match, *recorded, *same, *other;
    } rules[] = {
        { "[\"exact\"]", "Milk", "Milk", "milk" },
        { "\"trim\"", " Milk\\t", "Milk", "milk" },
        { "[\"casefold\"]", "STRASSE",
          "stra\xc3\x9f"
          "e",
          "strase" },
        { "[\"normalize\"]", "caf\xc3\xa9  au\\u00a0lait", "cafe\xcc\x81 au lait", "cafe au lait" },
        { "[\"hash\"]", "ann@example.org", "ann@example.org", "Ann@example.org" },
        { "\"trim,casefold\"", " Ann@Example.org ", "ann@example.ORG", "ann @example.org" },
        { "[\"trim\",\"normalize\",\"casefold\",\"hash\"]", "  Great   POST! ", "great post!",
          "greatpost!" },
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char body[200], name[8];
        snprintf(name, sizeof name, "g%zu", i);
        snprintf(body, sizeof body, "{\"window\":\"1h\",\"match\":%s}", rules[i].match);
        assert_int_equal(talkf(&t, NULL, body, "PUT /v1/guards/%s", name), 200);
        recorded(name, rules[i].recorded);
        assert_true(seen(name, rules[i].recorded));
        assert_true(seen(name, rules[i].same));
        assert_false(seen(name, rules[i].other));
    }
}

static void what_is_under_guard_can_be_listed(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "PUT /v1/guards/g", NULL, "{\"window\":\"1h\",\"match\":[\"trim\"]}"),
                     200);
    assert_int_equal(talk(&t, "PUT /v1/guards/h", NULL, "{\"window\":\"1h\",\"match\":[\"hash\"]}"),
                     200);
    recorded("g", " first ");
    clock_at(1000);
    assert_int_equal(talk(&t, "POST /v1/guards/g/record", NULL,
                          "{\"identity\":\"second\",\"result\":[1,\"a\"]}"),
                     200);
    recorded("h", "abc");
    assert_int_equal(talk(&t, "GET /v1/guards/g/entries", NULL, NULL), 200);
    talk_is(&t,
            "{\"entries\":[{\"identity\":\"second\",\"recorded_at\":\"2023-11-14T22:13:21.000Z\","
            "\"expires_at\":"
            "\"2023-11-14T23:13:21.000Z\",\"result\":[1,\"a\"]},{\"identity\":\"first\",\"recorded_"
            "at\":"
            "\"" TALK_AT "\",\"expires_at\":\"2023-11-14T23:13:20.000Z\"}],\"next_cursor\":null}");
    /* A hashed identity is shown as what is stored. */
    assert_int_equal(talk(&t, "GET /v1/guards/h/entries", NULL, NULL), 200);
    talk_is(&t, "{\"entries\":[{\"identity_sha256\":"
                "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\","
                "\"recorded_at\":\"*\",\"expires_at\":\"*\"}],\"next_cursor\":null}");
    /* A page at a time. */
    assert_int_equal(talk(&t, "GET /v1/guards/g/entries?limit=1", NULL, NULL), 200);
    assert_true(reply_has(&t.got, "second"));
    char next[32];
    snprintf(next, sizeof next, "%s", reply_text(&t.got, "next_cursor"));
    assert_string_not_equal(next, "");
    assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/guards/g/entries?limit=1&cursor=%s", next),
                     200);
    assert_true(reply_has(&t.got, "first"));
    static const char *const wrong[] = { "limit=0", "limit=1001", "cursor=x", "state=held" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        talkf(&t, NULL, NULL, "GET /v1/guards/g/entries?%s", wrong[i]);
        talk_refused(&t, 400, "invalid-request");
    }
    clock_at(3600000);
    assert_int_equal(talk(&t, "GET /v1/guards/g/entries", NULL, NULL), 200);
    assert_false(reply_has(&t.got, "first"));
    assert_true(reply_has(&t.got, "second"));
}

static void an_identity_has_its_limits(void **state)
{
    (void)state;
    char identity[1026];
    memset(identity, 'i', sizeof identity);
    assert_int_equal(talk(&t, "PUT /v1/guards/g", NULL, "{\"window\":\"1h\"}"), 200);
    assert_int_equal(talk(&t, "PUT /v1/guards/n", NULL, "{\"window\":\"1h\",\"match\":[\"trim\"]}"),
                     200);
    identity[1025] = 0;
    assert_int_equal(ask("g", "record", identity), 400);
    talk_refused(&t, 400, "invalid-request");
    identity[1024] = 0;
    assert_int_equal(ask("g", "record", identity), 200);
    assert_int_equal(ask("g", "record", ""), 400);
    assert_int_equal(ask("n", "record", " \\t "), 400); /* nothing is left of it */
    talk_refused(&t, 400, "invalid-request");
    static const char *const wrong[] = { "{}", "{\"identity\":7}",
                                         "{\"identity\":\"a\",\"identity\":\"a\"}",
                                         "{\"identity\":\"a\",\"results\":1}", "\"a\"" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        talk(&t, "POST /v1/guards/g/admit", NULL, wrong[i]);
        talk_refused(&t, 400, "invalid-request");
    }
    /* check takes no result */
    talk(&t, "POST /v1/guards/g/check", NULL, "{\"identity\":\"a\",\"result\":1}");
    talk_refused(&t, 400, "invalid-request");
    size_t size = HF_GUARD_RESULT_MAX + 3;
    char *body = malloc(size + 100);
    assert_non_null(body);
    for (size_t extra = 0; extra < 2; extra++) {
        size_t length = HF_GUARD_RESULT_MAX + extra;
        int n = sprintf(body, "{\"identity\":\"big%zu\",\"result\":\"", extra);
        memset(body + n, 'r', length);
        strcpy(body + n + length, "\"}");
        assert_int_equal(talk(&t, "POST /v1/guards/g/record", NULL, body), extra ? 400 : 200);
    }
    free(body);
}

static void a_guard_that_is_not_durable_forgets_at_a_restart(void **state)
{
    (void)state;
    both_needs_files();
    assert_int_equal(talk(&t, "PUT /v1/guards/kept", NULL, "{\"window\":\"1h\"}"), 200);
    assert_int_equal(
        talk(&t, "PUT /v1/guards/light", NULL, "{\"window\":\"1h\",\"durable\":false}"), 200);
    recorded("kept", "x");
    recorded("light", "x");
    assert_true(seen("light", "x"));
    case_restart();
    assert_true(seen("kept", "x"));
    assert_false(seen("light", "x"));
}

static void the_four_examples(void **state)
{
    (void)state;
    /* A to-do list: the same task within a day is the same task. */
    assert_int_equal(talk(&t, "PUT /v1/guards/todo", NULL, "{\"window\":\"24h\"}"), 200);
    recorded("todo", "Buy milk");
    clock_at(23 * 3600000);
    assert_true(seen("todo", "Buy milk"));
    assert_false(seen("todo", "buy milk"));
    clock_at(24 * 3600000);
    assert_false(seen("todo", "Buy milk"));
    /* A comment that was posted twice, with another blank in it. */
    assert_int_equal(talk(&t, "PUT /v1/guards/comment", NULL,
                          "{\"window\":\"60s\",\"match\":[\"trim\",\"normalize\"]}"),
                     200);
    assert_int_equal(ask("comment", "admit", "ann: Nice  post"), 200);
    talk_is(&t, "{\"seen\":false}");
    assert_int_equal(ask("comment", "admit", " ann: Nice post "), 200);
    assert_true(reply_has(&t.got, "{\"seen\":true"));
    /* A payment is answered again with what it was answered first. */
    assert_int_equal(talk(&t, "PUT /v1/guards/payment", NULL,
                          "{\"window\":\"5m\",\"on_unavailable\":\"closed\"}"),
                     200);
    assert_int_equal(talk(&t, "POST /v1/guards/payment/admit", NULL,
                          "{\"identity\":\"cart 9\",\"result\":{\"ok\":true}}"),
                     200);
    talk_is(&t, "{\"seen\":false}");
    assert_int_equal(ask("payment", "check", "cart 9"), 200);
    assert_true(reply_has(&t.got, "\"result\":{\"ok\":true}}"));
    /* A newsletter absorbs a second subscription in silence, however it is written. */
    assert_int_equal(
        talk(&t, "PUT /v1/guards/letter", NULL, "{\"window\":\"1h\",\"match\":\"trim,casefold\"}"),
        200);
    recorded("letter", "Ann@Example.org");
    recorded("letter", "ann@example.org");
    assert_int_equal(talk(&t, "GET /v1/guards/letter/entries", NULL, NULL), 200);
    talk_is(&t, "{\"entries\":[{\"identity\":\"ann@example.org\",\"recorded_at\":\"*\",\"expires_"
                "at\":\"*\"}],"
                "\"next_cursor\":null}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS_TEST(a_guard_is_set_and_shown),
        CALLS_TEST(a_guard_that_makes_no_sense_is_refused),
        CALLS_TEST(a_match_rule_stays_while_entries_live),
        CALLS_TEST(a_guard_must_be_there),
        CALLS_TEST(check_reads_record_records_once_admit_does_both),
        CALLS_TEST(each_match_rule_compares_in_its_own_way),
        CALLS_TEST(what_is_under_guard_can_be_listed),
        CALLS_TEST(an_identity_has_its_limits),
        CALLS_TEST(a_guard_that_is_not_durable_forgets_at_a_restart),
        CALLS_TEST(the_four_examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
