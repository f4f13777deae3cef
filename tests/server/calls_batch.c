/* Batches over HTTP: a line an operation, each by itself, all in one commit, answered in their
 * order. */
#include "server/kit/calls.h"

#define PLACE(key, resource)                                              \
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
        batch(PLACE("k1", "a") "\n" PLACE("k2", "b") "\n" PLACE(
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
    assert_int_equal(batch(PLACE("k1", "a") "\n"                 /* 0: placed */
                           PLACE("k2", "a") "\n"                 /* 1: taken by the line before */
                                            "this is not JSON\n" /* 2 */
                           PLACE("k1", "a") "\n"                 /* 3: the first again */
                           PLACE("k1", "b") "\n"   /* 4: its key with something else */
                                            "\n"   /* 5: nothing */
                           PLACE("k3", "b") "\r\n" /* 6: placed */
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
        CALLS_TEST(each_operation_has_its_line),
        CALLS_TEST(lines_do_not_depend_on_each_other),
        CALLS_TEST(malformed_lines_say_what_is_wrong),
        CALLS_TEST(clients_may_number_their_operations),
        CALLS_TEST(a_batch_has_8192_lines_and_one_commit),
        CALLS_TEST(one_line_more_is_refused_and_nothing_is_done),
        CALLS_TEST(a_body_beyond_the_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
