/* Idempotency keys over HTTP: their forms, what they are bound to, for how long, and what is known
 * of them. */
#include "server/kit/calls.h"

#define DAY (24 * 60 * 60 * INT64_C(1000))
#define PLACE "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"

static int count_of(const char *needle)
{
    int count = 0;
    for (const char *at = t.got.body; (at = strstr(at, needle)) != NULL; at++)
        count++;
    return count;
}

/* How many holds there are. */
static int holds(void)
{
    assert_int_equal(talk(&t, "GET /v1/holds?limit=1000", NULL, NULL), 200);
    return count_of("\"placed_at\"");
}

/* ---- Forms ---- */

static void bare_and_quoted_name_the_same_key(void **state)
{
    (void)state;
    static const char *const again[] = { "\"order-1\"", "order-1", "  order-1  ",
                                         "\t\"order-1\" " };
    assert_int_equal(talk(&t, "POST /v1/holds", "order-1", PLACE), 201);
    talk_first(&t);
    for (size_t i = 0; i < sizeof again / sizeof *again; i++) {
        assert_int_equal(talk(&t, "POST /v1/holds", again[i], PLACE), 201);
        talk_replayed(&t);
    }
    /* Only \" and \\ are escapes in a string; bare, they are themselves. */
    assert_int_equal(talk(&t, "POST /v1/holds", "\"a\\\"b\\\\c\"",
                          "{\"resource\":\"r2\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    talk_first(&t);
    assert_int_equal(talk(&t, "POST /v1/holds", "a\"b\\c",
                          "{\"resource\":\"r2\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    talk_replayed(&t);
    assert_int_equal(holds(), 2);
}

static void a_key_is_there_once_and_in_one_piece(void **state)
{
    (void)state;
    static const char *const broken[] = { "\"abc",        "\"a\"b\"", "\"a\\n\"", "\"abc\";a=1",
                                          "\"a\", \"b\"", "\"a\\\"",  "\"" };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        talk(&t, "POST /v1/holds", broken[i], PLACE);
        talk_refused(&t, 400, "invalid-request");
        talk_unkeyed(&t);
    }
    assert_int_equal(talk(&t, "POST /v1/holds", NULL, PLACE), 400);
    talk_refused(&t, 400, "invalid-request");
    assert_true(reply_has(&t.got, "Idempotency-Key"));
    talk_unkeyed(&t);
    talk_as(&t, "Idempotency-Key: one\r\n");
    static const char *const second[] = { "one", "two", "\"one\"", "" };
    for (size_t i = 0; i < sizeof second / sizeof *second; i++) {
        talk(&t, "POST /v1/holds", second[i], PLACE);
        talk_refused(&t, 400, "invalid-request");
        talk_unkeyed(&t);
    }
    talk_as(&t, NULL);
    assert_int_equal(talk(&t, "GET /v1/tokens/one", NULL, NULL), 404);
    assert_int_equal(holds(), 0);
}

static void a_call_that_needs_no_key_ignores_it_unless_it_is_broken(void **state)
{
    (void)state;
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(
            talk(&t, "PUT /v1/resources/r", "k", i == 1 ? "{\"capacity\":1}" : "{\"capacity\":2}"),
            200);
        talk_unkeyed(&t);
        assert_int_equal(reply_number(&t.got, "capacity"), i);
    }
    assert_int_equal(talk(&t, "GET /v1/resources/r", "k", NULL), 200);
    assert_int_equal(talk(&t, "GET /v1/tokens/k", NULL, NULL), 404);
    assert_int_equal(talk(&t, "PUT /v1/resources/r", "\"k", "{\"capacity\":3}"), 400);
    talk_refused(&t, 400, "invalid-request");
    assert_int_equal(talk(&t, "GET /v1/holds", "\"k", NULL), 400);
    talk_refused(&t, 400, "invalid-request");
}

static void a_key_has_1_to_256_bytes_unless_configured(void **state)
{
    (void)state;
    char key[300];
    memset(key, 'k', sizeof key);
    talk(&t, "POST /v1/holds", "", PLACE);
    talk_refused(&t, 400, "invalid-request");
    talk_unkeyed(&t);
    talk(&t, "POST /v1/holds", "\"\"", PLACE);
    talk_refused(&t, 400, "invalid-request");
    talk_unkeyed(&t);
    key[257] = 0;
    talk(&t, "POST /v1/holds", key, PLACE);
    talk_refused(&t, 400, "invalid-request");
    talk_unkeyed(&t);
    key[256] = 0;
    assert_int_equal(talk_twice(&t, "POST /v1/holds", key, PLACE), 201);
    s.options.store.token_max_length = 8;
    case_restart();
    assert_int_equal(talk(&t, "POST /v1/holds", "123456789", PLACE), 400);
    assert_int_equal(talk(&t, "POST /v1/holds", "12345678", PLACE), 409);
    talk_first(&t);
}

static void keys_are_compared_byte_for_byte(void **state)
{
    (void)state;
    static const char *const keys[] = { "Key", "key", "key ", "ke y", "%6bey", "key%20" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char body[100];
        snprintf(body, sizeof body,
                 "{\"resource\":\"%zu\",\"requester\":\"q\",\"duration\":\"1h\"}", i == 2 ? 1 : i);
        assert_int_equal(talk(&t, "POST /v1/holds", keys[i], body), 201);
        if (i == 2)
            talk_replayed(&t); /* blanks around a field's value are not part of it */
        else
            talk_first(&t);
    }
    assert_int_equal(holds(), 5);
}

/* ---- Bindings ---- */

static void a_key_is_bound_to_its_action_and_its_parameters(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "POST /v1/holds", "k", PLACE), 201);
    char id[32], path[100];
    snprintf(id, sizeof id, "%s", reply_text(&t.got, "id"));
    static const char *const others[] = {
        "{\"resource\":\"R\",\"requester\":\"q\",\"duration\":\"1h\"}",
        "{\"resource\":\"r\",\"requester\":\"p\",\"duration\":\"1h\"}",
        "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"61m\"}",
        "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\",\"fence\":1}",
        "{\"resource\":\"rq\",\"requester\":\"\",\"duration\":\"1h\"}",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        talk(&t, "POST /v1/holds", "k", others[i]);
        talk_refused(&t, 422, "token-collision");
        talk_first(&t); /* it says until when the key is bound to the other request */
        assert_string_equal(reply_field(&t.got, "Idempotency-Expires"), "2023-11-15T22:13:20.000Z");
    }
    static const char *const verbs[] = { "confirm", "release", "expire", "reverse" };
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "POST /v1/holds/%s/%s", id, verbs[i]);
        talk(&t, path, "k", NULL);
        talk_refused(&t, 422, "token-collision");
    }
    talk(&t, "PUT /v1/registers/x", "k", "{\"value\":1}");
    talk_refused(&t, 422, "token-collision");
    talk(&t, "POST /v1/leases/x", "k", "{\"holder\":\"q\",\"ttl\":\"1h\"}");
    talk_refused(&t, 422, "token-collision");
    talk(&t, "POST /v1/claims", NULL, "{\"key\":\"k\",\"payload\":1}");
    talk_refused(&t, 422, "token-collision");
    /* Nothing changed, and the same request in other words is still the same. */
    assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/holds/%s", id), 200);
    assert_string_equal(reply_text(&t.got, "state"), "held");
    assert_int_equal(
        talk(&t, "POST /v1/holds", "k",
             " { \"duration\" : 3600, \"requester\":\"\\u0071\", \"resource\":\"r\" } "),
        201);
    talk_replayed(&t);
    assert_string_equal(reply_text(&t.got, "id"), id);
    assert_int_equal(holds(), 1);
    assert_true(talk_figure(&t, "holdfast_key_collisions_total") >= 11);
}

static void a_retry_never_extends_the_window_and_after_it_the_key_is_new(void **state)
{
    (void)state;
    char first[32];
    assert_int_equal(talk(&t, "PUT /v1/resources/r", NULL, "{\"capacity\":5}"), 200);
    assert_int_equal(talk(&t, "POST /v1/holds", "k", PLACE), 201);
    snprintf(first, sizeof first, "%s", reply_text(&t.got, "id"));
    for (int i = 1; i <= 3; i++) {
        clock_at(i == 3 ? DAY - 1 : i * 8 * 3600000);
        assert_int_equal(talk(&t, "POST /v1/holds", "k", PLACE), 201);
        talk_replayed(&t);
        assert_string_equal(reply_text(&t.got, "id"), first);
        assert_string_equal(reply_field(&t.got, "Idempotency-Expires"), "2023-11-15T22:13:20.000Z");
        assert_int_equal(talk(&t, "GET /v1/tokens/k", NULL, NULL), 200);
    }
    clock_at(DAY);
    assert_int_equal(talk(&t, "GET /v1/tokens/k", NULL, NULL), 404);
    talk_refused(&t, 404, "not-known");
    assert_int_equal(talk(&t, "POST /v1/holds", "k", PLACE), 201);
    talk_first(&t);
    assert_string_not_equal(reply_text(&t.got, "id"), first);
    assert_string_equal(reply_field(&t.got, "Idempotency-Expires"), "2023-11-16T22:13:20.000Z");
    /* So is one that was bound to something else. */
    clock_at(2 * DAY);
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "k", "{\"value\":1}"), 200);
    talk_first(&t);
}

static void the_window_is_configured_and_each_key_keeps_its_own(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    s.options.store.idempotency_window_ms = 5000;
    case_restart();
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "k2", "{\"value\":1}"), 200);
    assert_string_equal(reply_field(&t.got, "Idempotency-Expires"), "2023-11-14T22:13:25.000Z");
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    talk_replayed(&t);
    assert_string_equal(reply_field(&t.got, "Idempotency-Expires"), "2023-11-15T22:13:20.000Z");
    clock_at(5000);
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "k2", "{\"value\":2}"), 200);
    talk_first(&t);
}

static void answers_are_the_same_after_a_restart(void **state)
{
    (void)state;
    struct reply before[2];
    static const char *const keys[] = { "k1", "k2" };
    for (int i = 0; i < 2; i++) { /* the second is refused: the only unit is taken */
        assert_int_equal(talk(&t, "POST /v1/holds", keys[i], PLACE), i ? 409 : 201);
        before[i] = t.got;
        t.got = (struct reply){ 0 };
    }
    assert_int_equal(server_stop(&s), 0);
    talk_close(&t);
    clock_at(1000);
    server_start(&s);
    talk_open(&t, &s);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(talk(&t, "POST /v1/holds", keys[i], PLACE), before[i].status);
        talk_replayed(&t);
        assert_string_equal(t.got.body, before[i].body);
        reply_free(&before[i]);
    }
}

/* ---- What is known of a key ---- */

static void a_token_tells_what_happened_to_a_request(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "GET /v1/tokens/k1", NULL, NULL), 404);
    talk_refused(&t, 404, "not-known");
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    char body[400], pattern[900];
    snprintf(body, sizeof body, "%s", t.got.body);
    clock_at(5000);
    snprintf(pattern, sizeof pattern,
             "{\"action\":\"place_hold\",\"digest\":\"*\",\"digest_function\":\"sha256/"
             "1\",\"recorded_at\":\"" TALK_AT
             "\",\"expires_at\":\"2023-11-15T22:13:20.000Z\",\"status\":201,\"body\":%s}",
             body);
    assert_int_equal(talk(&t, "GET /v1/tokens/k1", NULL, NULL), 200);
    talk_unkeyed(&t);
    talk_is(&t, pattern);
    assert_int_equal(strlen(reply_text(&t.got, "digest")), 64);
    /* A refusal is remembered the same way, and asking changes nothing. */
    assert_int_equal(talk(&t, "POST /v1/holds", "k2", PLACE), 409);
    snprintf(body, sizeof body, "%s", t.got.body);
    assert_int_equal(talk(&t, "GET /v1/tokens/k2", NULL, NULL), 200);
    snprintf(pattern, sizeof pattern, "\"status\":409,\"body\":%s}", body);
    assert_true(reply_has(&t.got, pattern));
    assert_int_equal(talk(&t, "POST /v1/holds", "k2", PLACE), 409);
    talk_replayed(&t);
}

static void each_kind_of_call_with_a_key_has_its_token(void **state)
{
    (void)state;
    char id[32], path[100];
    assert_int_equal(talk(&t, "POST /v1/holds", "t0", PLACE), 201);
    snprintf(id, sizeof id, "%s", reply_text(&t.got, "id"));
    static const struct {
        const char *verb, *action;
        int status;
    } ends[] = { { "expire", "expire", 409 },
                 { "confirm", "confirm", 200 },
                 { "release", "release", 409 },
                 { "reverse", "reverse", 200 } };
    for (int i = 0; i < 4; i++) {
        char key[8];
        snprintf(key, sizeof key, "e%d", i);
        snprintf(path, sizeof path, "POST /v1/holds/%s/%s", id, ends[i].verb);
        assert_int_equal(talk(&t, path, key, NULL), ends[i].status);
        assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/tokens/%s", key), 200);
        assert_string_equal(reply_text(&t.got, "action"), ends[i].action);
        assert_int_equal(reply_number(&t.got, "status"), ends[i].status);
    }
    assert_int_equal(talk(&t, "POST /v1/leases/l", "l1", "{\"holder\":\"q\",\"ttl\":\"1h\"}"), 201);
    assert_int_equal(talk(&t, "GET /v1/tokens/l1", NULL, NULL), 200);
    assert_int_equal(reply_number(&t.got, "status"), 201);
    assert_string_equal(reply_text(&t.got, "action"), hf_action_name(HF_GRANT));
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "w1", "{\"value\":{\"a\":[1,2]}}"), 200);
    assert_int_equal(talk(&t, "GET /v1/tokens/w1", NULL, NULL), 200);
    assert_string_equal(reply_text(&t.got, "action"), "write");
    assert_true(reply_has(&t.got, "\"value\":{\"a\":[1,2]}"));
    /* The key in a path is any bytes, %-encoded. */
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "a/b?c%20", "{\"value\":2}"), 200);
    assert_int_equal(talk(&t, "GET /v1/tokens/a%2Fb%3fc%2520", NULL, NULL), 200);
}

static void duplicates_are_counted_and_logged(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(talk(&t, "POST /v1/holds", "order \"8123\"", PLACE), 201);
    assert_true(talk_figure(&t, "idempotency_key_duplicates_total") == 2);
    assert_true(talk_figure(&t, "idempotency_key_race_conditions_total") == 0);
    assert_true(talk_figure(&t, "idempotency_table_size") == 1);
    assert_int_equal(server_stop(&s), 0);
    char *log = server_log(&s);
    const char *line = strstr(log, " duplicate ");
    assert_non_null(line);
    assert_non_null(strstr(line, "order \\\"8123\\\""));
    assert_non_null(strstr(line, "action=place_hold"));
    assert_non_null(strstr(line, "first_seen=" TALK_AT));
    assert_non_null(strstr(line, "status=201"));
    free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS_TEST(bare_and_quoted_name_the_same_key),
        CALLS_TEST(a_key_is_there_once_and_in_one_piece),
        CALLS_TEST(a_call_that_needs_no_key_ignores_it_unless_it_is_broken),
        CALLS_TEST(a_key_has_1_to_256_bytes_unless_configured),
        CALLS_TEST(keys_are_compared_byte_for_byte),
        CALLS_TEST(a_key_is_bound_to_its_action_and_its_parameters),
        CALLS_TEST(a_retry_never_extends_the_window_and_after_it_the_key_is_new),
        CALLS_TEST(the_window_is_configured_and_each_key_keeps_its_own),
        CALLS_TEST(answers_are_the_same_after_a_restart),
        CALLS_TEST(a_token_tells_what_happened_to_a_request),
        CALLS_TEST(each_kind_of_call_with_a_key_has_its_token),
        CALLS_TEST(duplicates_are_counted_and_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
