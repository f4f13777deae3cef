/* Idempotency keys over HTTP: their forms, what they are bound to, for how long, and what is known
 * of them. */
#include "server/kit/case.h"

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

/* A key is bytes, and only in quotes it may have a comma: else two headers may have been merged. */
static void a_key_has_any_bytes_and_commas_in_quotes(void **state)
{
    (void)state;
    static const struct {
        const char *key, *again, *path;
    } keys[] = {
        { "caf\xc3\xa9", "\"caf\xc3\xa9\"", "GET /v1/tokens/caf%C3%A9" },
        { "caf\xe9", "\"caf\xe9\"", "GET /v1/tokens/caf%E9" },
        { "\xff\x80", "\"\xff\x80\"", "GET /v1/tokens/%FF%80" },
        { "cafe\xcc\x81", "\"cafe\xcc\x81\"", "GET /v1/tokens/cafe%CC%81" },
        { "\"a,b\"", "\"a,b\"", "GET /v1/tokens/a,b" },
        { "\"a, \\\"b\\\"\"", "\"a, \\\"b\\\"\"", "GET /v1/tokens/a%2C%20%22b%22" },
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char body[100];
        snprintf(body, sizeof body,
                 "{\"resource\":\"r%zu\",\"requester\":\"q\",\"duration\":\"1h\"}", i);
        assert_int_equal(talk(&t, "POST /v1/holds", keys[i].key, body), 201);
        talk_first(&t);
        assert_int_equal(talk(&t, "POST /v1/holds", keys[i].again, body), 201);
        talk_replayed(&t);
        assert_int_equal(talk(&t, keys[i].path, NULL, NULL), 200);
    }
    assert_int_equal(talk(&t, "POST /v1/holds", "one,two", PLACE), 400);
    assert_non_null(strstr(reply_text(&t.got, "detail"), "a proxy may have merged two headers"));
    talk_unkeyed(&t);
    assert_int_equal(holds(), (int)(sizeof keys / sizeof *keys));
}

static void a_key_is_there_once_and_in_one_piece(void **state)
{
    (void)state;
    static const char *const broken[] = { "\"abc",        "\"a\"b\"", "\"a\\n\"",   "\"abc\";a=1",
                                          "\"a\", \"b\"", "\"a\\\"",  "\"",         "a,b",
                                          "a, b",         ",",        "one,\"two\"" };
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

/* Batches over HTTP: a line an operation, each by itself, all in one commit, answered in their
 * order. */

#define PLACE_LINE(key, resource)                                         \
    "{\"op\":\"place_hold\",\"key\":\"" key "\",\"resource\":\"" resource \
    "\",\"requester\":\"q\",\"duration\":\"1h\"}"

enum { LINES_MAX = 8192 };

/* Send it; how many lines came back. */
static size_t batch(const char *body)
{
    if (talk(&t, "POST /v1/batch", NULL, body) != 200)
        fail_msg("%d %s", t.got.status, t.got.body);
    assert_string_equal(reply_field(&t.got, "Content-Type"), "application/x-ndjson");
    size_t lines = 0;
    for (size_t i = 0; i < t.got.body_size; i++)
        lines += t.got.body[i] == '\n';
    assert_int_equal(t.got.body[t.got.body_size - 1], '\n');
    return lines;
}

/* Line `n` of the newest answer, as an answer of its own: its status, and its body in `line`. */
static struct reply line;

static int at(size_t n)
{
    static char copy[4096];
    const char *from = t.got.body;
    while (n-- > 0)
        from = strchr(from, '\n') + 1;
    snprintf(copy, sizeof copy, "%.*s", (int)strcspn(from, "\n"), from);
    int status = 0;
    assert_int_equal(sscanf(copy, "{\"status\":%d,", &status), 1);
    assert_non_null(strstr(copy, "\"replayed\":"));
    assert_non_null(strstr(copy, ",\"body\":{"));
    line = (struct reply){ .status = status, .body = copy, .body_size = strlen(copy) };
    return status;
}

static bool replayed(void)
{
    return reply_has(&line, "\"replayed\":true,");
}

static void refused(size_t n, int status, const char *code)
{
    assert_int_equal(at(n), status);
    assert_string_equal(reply_text(&line, "code"), code);
    assert_true(reply_has(&line, "\"body\":{\"type\":\"urn:holdfast:"));
    assert_true(reply_has(&line, "\"title\":"));
    assert_true(reply_has(&line, "\"detail\":"));
}

static void each_operation_has_its_line(void **state)
{
    (void)state;
    char body[4096];
    assert_int_equal(talk(&t, "PUT /v1/guards/g", NULL, "{\"window\":\"1h\"}"), 200);
    assert_int_equal(
        batch(PLACE_LINE("k1", "a") "\n" PLACE_LINE("k2", "b") "\n" PLACE_LINE(
            "k3", "c") "\n"
                       "{\"op\":\"begin\",\"key\":\"c1\",\"payload\":{},\"lease\":\"1h\"}\n"
                       "{\"op\":\"begin\",\"key\":\"c2\",\"fingerprint\":\"f\"}"),
        5);
    char ids[3][32];
    long long fences[2];
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(at(i), 201);
        assert_false(replayed());
        if (i < 3)
            snprintf(ids[i], sizeof ids[i], "%s", reply_text(&line, "id"));
        else
            fences[i - 3] = reply_number(&line, "fence");
    }
    snprintf(
        body, sizeof body,
        "{\"op\":\"confirm\",\"key\":\"k4\",\"id\":\"%s\"}\n"
        "{\"op\":\"release\",\"key\":\"k5\",\"id\":\"%s\"}\n"
        "{\"op\":\"expire\",\"key\":\"k6\",\"id\":\"%s\"}\n"
        "{\"op\":\"reverse\",\"key\":\"k7\",\"id\":\"%s\"}\n"
        "{\"op\":\"check\",\"guard\":\"g\",\"identity\":\"x\"}\n"
        "{\"op\":\"record\",\"guard\":\"g\",\"identity\":\"x\",\"result\":[1]}\n"
        "{\"op\":\"admit\",\"guard\":\"g\",\"identity\":\"x\"}\n"
        "{\"op\":\"heartbeat\",\"key\":\"c1\",\"fence\":%lld}\n"
        "{\"op\":\"complete\",\"key\":\"c1\",\"fence\":%lld,\"response\":{\"a\":1}}\n"
        "{\"op\":\"fail\",\"key\":\"c2\",\"fence\":%lld,\"retryable\":false,\"error\":\"no\"}\n"
        "{\"op\":\"begin\",\"key\":\"c1\",\"payload\":{}}\n"
        "{\"op\":\"merge\",\"name\":\"m\",\"type\":\"max\",\"value\":3}\n"
        "{\"op\":\"write\",\"key\":\"k8\",\"name\":\"w\",\"value\":{\"b\":2},\"fence\":4}\n"
        "{\"op\":\"write\",\"key\":\"k8\",\"name\":\"w\",\"value\":{\"b\":2},\"fence\":4}\n",
        ids[0], ids[1], ids[2], ids[0], fences[0], fences[0], fences[1]);
    assert_int_equal(batch(body), 14);
    static const struct {
        int status;
        const char *has;
    } answers[] = {
        { 200, "\"state\":\"confirmed\"" },
        { 200, "\"state\":\"released\"" },
        { 409, "\"code\":\"window-not-elapsed\"" },
        { 200, "\"reverses\":" },
        { 200, "\"body\":{\"seen\":false}}" },
        { 200, "\"body\":{\"ok\":true}}" },
        { 200, "\"result\":[1]}}" },
        { 200, "\"status\":\"started\"" },
        { 200, "\"response\":{\"a\":1}" },
        { 200, "\"error\":\"no\",\"retryable\":false" },
        { 200, "\"replayed\":true,\"body\":{\"key\":\"c1\",\"status\":\"completed\"" },
        { 200, "\"value\":3,\"version\":1" },
        { 200,
          "\"replayed\":false,\"body\":{\"name\":\"w\",\"type\":\"plain\",\"value\":{\"b\":2}" },
        { 200,
          "\"replayed\":true,\"body\":{\"name\":\"w\",\"type\":\"plain\",\"value\":{\"b\":2}" }
    };
    for (size_t i = 0; i < 14; i++) {
        assert_int_equal(at(i), answers[i].status);
        if (!reply_has(&line, answers[i].has))
            fail_msg("line %zu: expected %s, got %s", i, answers[i].has, line.body);
    }
}

static void lines_do_not_depend_on_each_other(void **state)
{
    (void)state;
    assert_int_equal(
        batch(PLACE_LINE("k1", "a") "\n"                 /* 0: placed */
              PLACE_LINE("k2", "a") "\n"                 /* 1: taken by the line before */
                                    "this is not JSON\n" /* 2 */
              PLACE_LINE("k1", "a") "\n"                 /* 3: the first again */
              PLACE_LINE("k1", "b") "\n"                 /* 4: its key with something else */
                                    "\n"                 /* 5: nothing */
              PLACE_LINE("k3", "b") "\r\n"               /* 6: placed */
                                    /* 7: no line feed at the end */
                                    "{\"op\":\"confirm\",\"key\":\"k4\",\"id\":\"none\"}"),
        8);
    assert_int_equal(at(0), 201);
    char id[32];
    snprintf(id, sizeof id, "%s", reply_text(&line, "id"));
    refused(1, 409, "resource-unavailable");
    refused(2, 400, "invalid-request");
    assert_int_equal(at(3), 201);
    assert_true(replayed());
    assert_string_equal(reply_text(&line, "id"), id);
    refused(4, 422, "token-collision");
    refused(5, 400, "invalid-request");
    assert_int_equal(at(6), 201);
    refused(7, 404, "not-known");
    /* A key of a batch is the same key everywhere. */
    assert_int_equal(talk(&t, "POST /v1/holds", "k1",
                          "{\"resource\":\"a\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    talk_replayed(&t);
    assert_string_equal(reply_text(&t.got, "id"), id);
}

static void malformed_lines_say_what_is_wrong(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{}",
        "[]",
        "7",
        "{\"op\":7}",
        "{\"op\":\"grant\",\"key\":\"k\",\"name\":\"l\",\"holder\":\"h\",\"ttl\":\"1s\"}",
        "{\"op\":\"Place_hold\"}",
        "{\"op\":\"place_hold\",\"op\":\"place_hold\"}",
        "{\"op\":\"place_hold\",\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}",
        "{\"op\":\"place_hold\",\"key\":\"\",\"resource\":\"r\",\"requester\":\"q\",\"duration\":"
        "\"1h\"}",
        "{\"op\":\"place_hold\",\"key\":7,\"resource\":\"r\",\"requester\":\"q\",\"duration\":"
        "\"1h\"}",
        "{\"op\":\"place_hold\",\"key\":\"k\",\"resource\":\"r\",\"requester\":\"q\",\"duration\":"
        "\"1h\",\"id\":\"x\"}",
        "{\"op\":\"place_hold\",\"key\":\"k\",\"resource\":\"r\",\"requester\":\"q\",\"duration\":"
        "\"1h\"} x",
        "{\"op\":\"confirm\",\"key\":\"k\"}",
        "{\"op\":\"check\",\"identity\":\"x\"}",
        "{\"op\":\"complete\",\"fence\":1}",
        "{\"op\":\"merge\",\"name\":\"m\",\"type\":\"max\",\"value\":\"x\"}",
        "{\"op\":\"place_hold\",\"key\":\"k\",\"client\":\"c\",\"sequence\":1,\"resource\":\"r\","
        "\"requester\":\"q\",\"duration\":\"1h\"}",
        "{\"op\":\"place_hold\",\"client\":\"c\",\"resource\":\"r\",\"requester\":\"q\","
        "\"duration\":\"1h\"}",
        "\xff",
    };
    enum { COUNT = sizeof lines / sizeof *lines };
    char body[8192] = "";
    for (size_t i = 0; i < COUNT; i++) {
        strcat(body, lines[i]);
        strcat(body, "\n");
    }
    assert_int_equal(batch(body), COUNT);
    for (size_t i = 0; i < COUNT; i++)
        refused(i, 400, "invalid-request");
    assert_int_equal(talk(&t, "GET /v1/holds", NULL, NULL), 200);
    talk_is(&t, "{\"holds\":[],\"next_cursor\":null}");
}

static void clients_may_number_their_operations(void **state)
{
    (void)state;
    char body[4096] = "";
    static const int numbers[] = { 1, 2, 1, 300, 2 };
    for (size_t i = 0; i < 5; i++)
        sprintf(body + strlen(body),
                "{\"op\":\"write\",\"client\":\"till "
                "4\",\"sequence\":%d,\"name\":\"w%d\",\"value\":1}\n",
                numbers[i], numbers[i]);
    assert_int_equal(batch(body), 5);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(at(i), 200);
        assert_int_equal(replayed(), i == 2);
    }
    refused(4, 409, "window-elapsed"); /* too far behind 300 to be remembered */
}

/* Whole numbers in other words are the same request, in a batch too. */
static void one_is_one_however_it_is_written(void **state)
{
    (void)state;
    static const char *const ones[] = { "1", "1.0", "1e0", "10E-1" };
    char body[200];
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        snprintf(body, sizeof body, "{\"value\":1,\"fence\":%s,\"if_version\":%s}", ones[i],
                 i ? "0.0" : "0");
        assert_int_equal(talk(&t, "PUT /v1/registers/one", "one", body), 200);
        snprintf(body, sizeof body,
                 "{\"op\":\"write\",\"client\":\"ones\",\"sequence\":%s,\"name\":\"two\","
                 "\"value\":%s}\n",
                 ones[i], ones[i]);
        assert_int_equal(batch(body), 1);
        assert_int_equal(at(0), 200);
        assert_int_equal(replayed(), i > 0);
        snprintf(body, sizeof body, "{\"resource\":\"one\",\"requester\":\"q\",\"duration\":%s}",
                 ones[i]);
        assert_int_equal(talk(&t, "POST /v1/holds", "one-hold", body), 201);
    }
}

static int place_by_number(const char *fields, const char *resource)
{
    char body[200];
    snprintf(body, sizeof body, "{\"resource\":\"%s\",\"requester\":\"q\",\"duration\":\"1h\"}",
             resource);
    talk_as(&t, fields);
    int status = talk(&t, "POST /v1/holds", NULL, body);
    talk_as(&t, NULL);
    return status;
}

static void a_number_in_the_header_is_a_key(void **state)
{
    (void)state;
    static const char one[] = "Holdfast-Client: \"till 4\"\r\nHoldfast-Sequence: 1\r\n";
    char id[32], body[200];
    assert_int_equal(place_by_number(one, "a"), 201);
    snprintf(id, sizeof id, "%s", reply_text(&t.got, "id"));
    /* It is forgotten by number, not at a time. */
    assert_null(reply_field(&t.got, "Idempotency-Expires"));
    assert_null(reply_field(&t.got, "Idempotent-Replayed"));
    assert_int_equal(place_by_number("holdfast-sequence: 1\r\nHOLDFAST-CLIENT: till 4\r\n", "a"),
                     201);
    assert_string_equal(reply_field(&t.got, "Idempotent-Replayed"), "true");
    assert_string_equal(reply_text(&t.got, "id"), id);
    assert_int_equal(place_by_number(one, "b"), 422);
    talk_refused(&t, 422, "token-collision");
    /* The same number in a bulk request. */
    assert_int_equal(batch("{\"op\":\"place_hold\",\"client\":\"till 4\",\"sequence\":1,"
                           "\"resource\":\"a\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     1);
    assert_int_equal(at(0), 201);
    assert_true(replayed());
    /* Every call with a key takes it. */
    talk_as(&t, "Holdfast-Client: till 4\r\nHoldfast-Sequence: 2\r\n");
    assert_int_equal(talkf(&t, NULL, NULL, "POST /v1/holds/%s/confirm", id), 200);
    talk_as(&t, "Holdfast-Client: till 4\r\nHoldfast-Sequence: 3\r\n");
    assert_int_equal(talkf(&t, NULL, NULL, "POST /v1/holds/%s/reverse", id), 200);
    talk_as(&t, "Holdfast-Client: till 4\r\nHoldfast-Sequence: 4\r\n");
    assert_int_equal(talk(&t, "PUT /v1/registers/w", NULL, "{\"value\":1}"), 200);
    talk_as(&t, "Holdfast-Client: till 4\r\nHoldfast-Sequence: 5\r\n");
    assert_int_equal(talk(&t, "POST /v1/leases/l", NULL, "{\"holder\":\"h\",\"ttl\":\"1h\"}"), 201);
    talk_as(&t, "Holdfast-Client: till 4\r\nHoldfast-Sequence: 6\r\n");
    assert_int_equal(talk(&t, "DELETE /v1/registers/w", NULL, NULL), 200);
    talk_as(&t, NULL);
    assert_int_equal(place_by_number("Holdfast-Client: c\r\n", "d"), 400);
    assert_int_equal(place_by_number("Holdfast-Sequence: 1\r\n", "d"), 400);
    snprintf(body, sizeof body, "%s%s", one, "Idempotency-Key: k\r\n");
    assert_int_equal(place_by_number(body, "d"), 400);
    assert_non_null(strstr(reply_text(&t.got, "detail"), "one of the two"));
}

static void a_wild_number_does_not_lock_the_client_out(void **state)
{
    (void)state;
    assert_int_equal(place_by_number("Holdfast-Client: c\r\nHoldfast-Sequence: 1\r\n", "a"), 201);
    assert_int_equal(place_by_number("Holdfast-Client: c\r\nHoldfast-Sequence: 1000002\r\n", "b"),
                     400);
    talk_refused(&t, 400, "invalid-request");
    assert_non_null(strstr(reply_text(&t.got, "detail"), "1000002 is more than 1000000 above"));
    assert_int_equal(place_by_number("Holdfast-Client: c\r\nHoldfast-Sequence: 2\r\n", "b"), 201);
    assert_int_equal(place_by_number("Holdfast-Client: c\r\nHoldfast-Sequence: 1000002\r\n", "e"),
                     201);
}

static void what_happened_to_a_number(void **state)
{
    (void)state;
    assert_int_equal(place_by_number("Holdfast-Client: a/b\r\nHoldfast-Sequence: 300\r\n", "a"),
                     201);
    assert_int_equal(place_by_number("Holdfast-Client: a/b\r\nHoldfast-Sequence: 301\r\n", "a"),
                     409);
    assert_int_equal(talk(&t, "GET /v1/tokens?client=a%2Fb&sequence=300", NULL, NULL), 200);
    talk_is(&t, "{\"action\":\"place_hold\",\"digest\":\"*\",\"digest_function\":\"sha256/1\","
                "\"recorded_at\":\"*\",\"status\":201,\"body\":{\"id\":\"*\",\"resource\":\"a\","
                "\"requester\":\"q\",\"state\":\"held\",\"placed_at\":\"*\","
                "\"expires_at\":\"*\"}}");
    assert_int_equal(talk(&t, "GET /v1/tokens?client=a%2Fb&sequence=301", NULL, NULL), 200);
    assert_true(reply_has(&t.got, "\"status\":409,\"body\":{"));
    assert_int_equal(talk(&t, "GET /v1/tokens?client=a%2Fb&sequence=302", NULL, NULL), 404);
    talk_refused(&t, 404, "not-known");
    assert_int_equal(talk(&t, "GET /v1/tokens?client=a%2Fb&sequence=44", NULL, NULL), 409);
    talk_refused(&t, 409, "window-elapsed");
    assert_int_equal(talk(&t, "GET /v1/tokens?client=a%2Fb", NULL, NULL), 400);
    assert_int_equal(talk(&t, "GET /v1/tokens?client=a%2Fb&sequence=0", NULL, NULL), 400);
    assert_int_equal(talk(&t, "GET /v1/trace/a%2Fb?sequence=300", NULL, NULL), 200);
    assert_true(reply_has(&t.got, "\"client\":\"a/b\",\"sequence\":300"));
    assert_int_equal(talk(&t, "GET /v1/trace/a%2Fb?sequence=302", NULL, NULL), 404);
}

static char *many(size_t count)
{
    char *body = malloc(count * 128 + 1);
    size_t size = 0;
    assert_non_null(body);
    for (size_t i = 0; i < count; i++)
        size += (size_t)sprintf(
            body + size, "{\"op\":\"write\",\"key\":\"m%zu\",\"name\":\"n%zu\",\"value\":%zu}\n", i,
            i % 64, i);
    return body;
}

static void a_batch_has_8192_lines_and_one_commit(void **state)
{
    (void)state;
    char *body = many(LINES_MAX);
    uint64_t before = server_commits(&s);
    assert_int_equal(batch(body), LINES_MAX);
    uint64_t after = server_commits(&s);
    assert_int_equal(after - before, 1);
    for (size_t i = 0; i < LINES_MAX; i += 1000) {
        char expected[64];
        assert_int_equal(at(i), 200);
        assert_false(replayed());
        snprintf(expected, sizeof expected, "\"name\":\"n%zu\",\"type\":\"plain\",\"value\":%zu,",
                 i % 64, i);
        assert_true(reply_has(&line, expected));
    }
    /* Again: everything is answered from what is stored, and nothing is written. */
    assert_int_equal(batch(body), LINES_MAX);
    for (size_t i = 0; i < LINES_MAX; i += 1000) {
        assert_int_equal(at(i), 200);
        assert_true(replayed());
    }
    assert_int_equal(server_commits(&s), after);
    free(body);
    assert_true(talk_figure(&t, "holdfast_http_batches_total") == 2);
    assert_true(talk_figure(&t, "holdfast_http_batch_lines_total") == 2 * LINES_MAX);
    assert_true(talk_figure(&t, "idempotency_key_duplicates_total") == LINES_MAX);
}

static void one_line_more_is_refused_and_nothing_is_done(void **state)
{
    (void)state;
    char *body = many(LINES_MAX + 1);
    assert_int_equal(talk(&t, "POST /v1/batch", NULL, body), 413);
    talk_refused(&t, 413, "batch-too-large");
    free(body);
    assert_int_equal(talk(&t, "GET /v1/tokens/m0", NULL, NULL), 404);
    static const char *const empty[] = { "", NULL };
    for (size_t i = 0; i < 2; i++) {
        talk(&t, "POST /v1/batch", NULL, empty[i]);
        talk_refused(&t, 400, "invalid-request");
    }
}

static void a_body_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    char *body = malloc((1 << 20) + 2);
    assert_non_null(body);
    memset(body, ' ', (1 << 20) + 1);
    body[(1 << 20) + 1] = 0;
    assert_int_equal(talk(&t, "POST /v1/batch", NULL, body), 413);
    talk_refused(&t, 413, "body-too-large");
    body[1 << 20] = 0;
    assert_int_equal(batch(body), 1);
    refused(0, 400, "invalid-request");
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS_TEST(bare_and_quoted_name_the_same_key),
        CALLS_TEST(a_key_has_any_bytes_and_commas_in_quotes),
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
        CALLS_TEST(each_operation_has_its_line),
        CALLS_TEST(lines_do_not_depend_on_each_other),
        CALLS_TEST(malformed_lines_say_what_is_wrong),
        CALLS_TEST(clients_may_number_their_operations),
        CALLS_TEST(one_is_one_however_it_is_written),
        CALLS_TEST(a_number_in_the_header_is_a_key),
        CALLS_TEST(a_wild_number_does_not_lock_the_client_out),
        CALLS_TEST(what_happened_to_a_number),
        CALLS_TEST(a_batch_has_8192_lines_and_one_commit),
        CALLS_TEST(one_line_more_is_refused_and_nothing_is_done),
        CALLS_TEST(a_body_beyond_the_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
