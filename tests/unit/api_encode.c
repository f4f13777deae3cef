/* The encoders: each record of holdfast.h against the exact bytes that the interface promises. */
#include "api/encode.h"
#include "api/problem.h"
#include "refusal/why.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define T0 INT64_C(1794778797123)
#define T0_TEXT "2026-11-15T21:39:57.123Z"
#define T1_TEXT "2026-11-15T21:54:57.123Z" /* 15 minutes later */

static struct hf_buffer out;

static struct hf_json fresh(void)
{
    hf_buffer_reset(&out);
    return (struct hf_json){ .out = &out };
}

static void expect(const char *text)
{
    assert_string_equal(hf_buffer_text(&out), text);
}

static struct hf_hold hold_sample(void)
{
    return (struct hf_hold){ .id = "2pchzd8hasq1k79e61jzn6k0wx",
                             .state = HF_HELD,
                             .resource = hf_str("room-307"),
                             .requester = hf_str("guest \"91\""),
                             .placed_at = T0,
                             .expires_at = T0 + 900000 };
}

#define HOLD_HEAD                                                                             \
    "{\"id\":\"2pchzd8hasq1k79e61jzn6k0wx\",\"resource\":\"room-307\",\"requester\":\"guest " \
    "\\\"91\\\"\","
#define HOLD_TIMES "\"placed_at\":\"" T0_TEXT "\",\"expires_at\":\"" T1_TEXT "\""

static void test_hold(void **state)
{
    (void)state;
    static const struct {
        enum hf_hold_state state;
        const char *tail;
    } cases[] = {
        { HF_HELD, "\"state\":\"held\"," HOLD_TIMES "}" },
        { HF_CONFIRMED,
          "\"state\":\"confirmed\"," HOLD_TIMES ",\"confirmed_at\":\"" T0_TEXT "\"}" },
        { HF_RELEASED, "\"state\":\"released\"," HOLD_TIMES ",\"released_at\":\"" T0_TEXT "\"}" },
        { HF_EXPIRED, "\"state\":\"expired\"," HOLD_TIMES ",\"expired_at\":\"" T0_TEXT "\"}" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hf_hold hold = hold_sample();
        char text[512] = HOLD_HEAD;
        hold.state = cases[i].state;
        hold.ended_at = hold.state == HF_HELD ? 0 : T0;
        struct hf_json j = fresh();
        hf_api_hold(&j, &hold);
        expect(strcat(text, cases[i].tail));
    }
}

static void test_hold_reversal(void **state)
{
    (void)state;
    struct hf_hold hold = hold_sample();
    struct hf_json j = fresh();
    hold.state = HF_RELEASED;
    hold.ended_at = T0;
    strcpy(hold.reverses, "5w0crm2eyxsy4k3pv1y0ajt7d2");
    hf_api_hold(&j, &hold);
    expect(HOLD_HEAD "\"state\":\"released\"," HOLD_TIMES ",\"released_at\":\"" T0_TEXT
                     "\",\"reverses\":\"5w0crm2eyxsy4k3pv1y0ajt7d2\"}");
}

static void test_resource(void **state)
{
    (void)state;
    struct hf_resource r = {
        .name = hf_str("r"), .capacity = 5, .held = 1, .confirmed = 2, .open = true, .fence = 7
    };
    struct hf_json j = fresh();
    hf_api_resource(&j, &r);
    expect(
        "{\"name\":\"r\",\"capacity\":5,\"held\":1,\"confirmed\":2,\"available\":2,\"open\":true,"
        "\"fence\":7}");
    r.open = false;
    assert_int_equal(hf_api_available(&r), 0);
    r = (struct hf_resource){ .capacity = 1, .held = UINT32_MAX, .confirmed = 2, .open = true };
    assert_int_equal(hf_api_available(&r), 0); /* what is taken does not wrap around */
}

static void test_guard(void **state)
{
    (void)state;
    struct hf_guard g = {
        .name = hf_str("g"), .window_ms = 60000, .durable = true, .created_at = T0
    };
    struct hf_json j = fresh();
    hf_api_guard(&j, &g);
    expect("{\"name\":\"g\",\"window\":\"1m\",\"match\":[\"exact\"],\"on_unavailable\":\"open\","
           "\"durable\":true,\"created_at\":\"" T0_TEXT "\"}");
    g.match[0] = HF_MATCH_TRIM;
    g.match[1] = HF_MATCH_CASEFOLD;
    g.match[2] = HF_MATCH_NORMALIZE;
    g.match[3] = HF_MATCH_HASH;
    g.match_count = 4;
    g.on_unavailable = HF_FAIL_CLOSED;
    g.durable = false;
    j = fresh();
    hf_api_guard(&j, &g);
    expect("{\"name\":\"g\",\"window\":\"1m\",\"match\":[\"trim\",\"casefold\",\"normalize\","
           "\"hash\"],"
           "\"on_unavailable\":\"closed\",\"durable\":false,\"created_at\":\"" T0_TEXT "\"}");
}

static void test_seen(void **state)
{
    (void)state;
    struct hf_json j = fresh();
    hf_api_seen(&j, &(struct hf_seen){ .seen = false });
    expect("{\"seen\":false}");
    j = fresh();
    hf_api_seen(&j, &(struct hf_seen){ .seen = true }); /* a closed guard that could not be asked */
    expect("{\"seen\":true}");
    j = fresh();
    hf_api_seen(&j, &(struct hf_seen){ .seen = true,
                                       .recorded_at = T0,
                                       .expires_at = T0 + 900000,
                                       .has_result = true,
                                       .result = hf_str("ok") });
    expect("{\"seen\":true,\"recorded_at\":\"" T0_TEXT "\",\"expires_at\":\"" T1_TEXT
           "\",\"result\":\"ok\"}");
    j = fresh();
    struct hf_answer recorded = { .kind = HF_RECORD_SEEN,
                                  .seen = { .seen = true, .expires_at = T0 } };
    hf_api_answer(&j, HF_RECORD, &recorded);
    expect("{\"ok\":true}");
}

static void test_entry(void **state)
{
    (void)state;
    struct hf_entry e = { .identity = hf_mem("\xff\x00", 2),
                          .recorded_at = T0,
                          .expires_at = T0 + 900000 };
    struct hf_json j = fresh();
    hf_api_entry(&j, &e, false);
    expect("{\"identity\":{\"base64\":\"/wA=\"},\"recorded_at\":\"" T0_TEXT
           "\",\"expires_at\":\"" T1_TEXT "\"}");
    e.has_result = true;
    j = fresh();
    hf_api_entry(&j, &e, true);
    expect("{\"identity_sha256\":\"ff00\",\"recorded_at\":\"" T0_TEXT "\",\"expires_at\":\"" T1_TEXT
           "\",\"result\":\"\"}");
}

#define PRINT "0000000000000000000000000000000000000000000000000000000000000000"
#define CLAIM(status, fence)                                                                \
    "{\"key\":\"k\",\"status\":\"" status "\",\"fence\":" fence ",\"fingerprint\":\"" PRINT \
    "\",\"on_abandon\":\"unknown\",\"lease\":\"15m\",\"begun_at\":\"" T0_TEXT               \
    "\",\"lease_expires_at\":\"" T1_TEXT "\""

static void test_claim(void **state)
{
    (void)state;
    struct hf_claim c = { .key = hf_str("k"),
                          .state = HF_CLAIM_STARTED,
                          .fence = 3,
                          .lease_ms = 900000,
                          .begun_at = T0,
                          .lease_expires_at = T0 + 900000 };
    struct hf_json j = fresh();
    hf_api_claim(&j, &c);
    expect(CLAIM("started", "3") "}");
    c.state = HF_CLAIM_COMPLETED;
    c.response = hf_str("{\"a\":1}");
    c.settled_at = T0;
    c.expires_at = T0 + 900000;
    j = fresh();
    hf_api_claim(&j, &c);
    expect(CLAIM("completed", "3") ",\"response\":\"{\\\"a\\\":1}\",\"settled_at\":\"" T0_TEXT
                                   "\",\"expires_at\":\"" T1_TEXT "\"}");
    c.state = HF_CLAIM_RETRYABLE;
    c.settled_at = c.expires_at = 0;
    j = fresh();
    hf_api_claim(&j, &c);
    expect(CLAIM("failed", "3") ",\"error\":\"{\\\"a\\\":1}\",\"retryable\":true}");
    c.state = HF_CLAIM_FAILED;
    c.response = hf_str("no");
    j = fresh();
    hf_api_claim(&j, &c);
    expect(CLAIM("failed", "3") ",\"error\":\"no\",\"retryable\":false}");
    c.state = HF_CLAIM_UNKNOWN;
    j = fresh();
    hf_api_claim(&j, &c);
    expect(CLAIM("unknown", "3") ",\"unknown_since\":\"" T1_TEXT "\"}");
    c.state = HF_CLAIM_STARTED;
    c.retention_ms = 3600000;
    j = fresh();
    hf_api_claim(&j, &c);
    assert_non_null(strstr(hf_buffer_text(j.out), "\"lease\":\"15m\",\"retention\":\"1h\","));
}

static void test_lease(void **state)
{
    (void)state;
    struct hf_lease l = { .name = hf_str("n"),
                          .holder = hf_str("h"),
                          .fence = 9,
                          .ttl_ms = 900000,
                          .granted_at = T0,
                          .expires_at = T0 + 900000 };
    struct hf_json j = fresh();
    hf_api_lease(&j, &l);
    expect("{\"name\":\"n\",\"holder\":\"h\",\"fence\":9,\"ttl\":\"15m\",\"granted_at\":\"" T0_TEXT
           "\",\"expires_at\":\"" T1_TEXT "\"}");
    l.released_at = T0;
    j = fresh();
    hf_api_lease(&j, &l);
    expect("{\"name\":\"n\",\"holder\":\"h\",\"fence\":9,\"ttl\":\"15m\",\"granted_at\":\"" T0_TEXT
           "\",\"expires_at\":\"" T1_TEXT "\",\"released_at\":\"" T0_TEXT "\"}");
}

static void test_register(void **state)
{
    (void)state;
    const struct hf_item items[] = { { .name = hf_str("a"), .up = 5, .down = 2 },
                                     { .name = hf_str("b\n"), .up = 1, .down = 3 } };
    const struct {
        struct hf_value value;
        const char *text;
    } cases[] = {
        { { .type = HF_TYPE_PLAIN, .bytes = hf_str("{\"x\":1}") },
          "\"plain\",\"value\":\"{\\\"x\\\":1}\"" },
        { { .type = HF_TYPE_PLAIN, .bytes = hf_mem("\xfe", 1) },
          "\"plain\",\"value\":{\"base64\":\"/g==\"}" },
        { { .type = HF_TYPE_MAX, .number = -7 }, "\"max\",\"value\":-7" },
        { { .type = HF_TYPE_MIN, .number = INT64_MAX }, "\"min\",\"value\":9223372036854775807" },
        { { .type = HF_TYPE_OR, .flag = true }, "\"or\",\"value\":true" },
        { { .type = HF_TYPE_UNION, .items = items, .item_count = 2 },
          "\"union\",\"value\":[\"a\",\"b\\n\"]" },
        { { .type = HF_TYPE_LWW, .bytes = hf_str("v"), .timestamp = 12, .node = hf_str("n") },
          "\"lww\",\"value\":{\"value\":\"v\",\"timestamp\":12,\"node\":\"n\"}" },
        { { .type = HF_TYPE_VECTOR, .items = items, .item_count = 2 },
          "\"vector\",\"value\":{\"a\":5,\"b\\n\":1}" },
        { { .type = HF_TYPE_COUNTER, .items = items, .item_count = 2, .number = 6 },
          "\"counter\",\"value\":{\"a\":5,\"b\\n\":1},\"total\":6" },
        { { .type = HF_TYPE_UPDOWN, .items = items, .item_count = 2, .number = 1 },
          "\"updown\",\"value\":{\"a\":{\"up\":5,\"down\":2},\"b\\n\":{\"up\":1,\"down\":3}},"
          "\"total\":1" },
        { { .type = (enum hf_register_type)77 }, "\"unknown\",\"value\":null" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hf_register r = {
            .name = hf_str("r"), .value = cases[i].value, .version = 4, .fence = 8
        };
        char text[256] = "{\"name\":\"r\",\"type\":";
        struct hf_json j = fresh();
        hf_api_register(&j, &r);
        strcat(strcat(text, cases[i].text), ",\"version\":4,\"fence\":8}");
        expect(text);
    }
}

static void test_pages(void **state)
{
    (void)state;
    struct hf_resource resources[2] = { { .name = hf_str("a"), .capacity = 1, .open = true },
                                        { .name = hf_str("b"), .capacity = 1 } };
    struct hf_page page = { .count = 0 };
    struct hf_json j = fresh();
    hf_api_holds(&j, &page);
    expect("{\"holds\":[],\"next_cursor\":null}");
    page = (struct hf_page){ .count = 2, .next_cursor = UINT64_MAX, .resources = resources };
    j = fresh();
    hf_api_resources(&j, &page);
    expect(
        "{\"resources\":[{\"name\":\"a\",\"capacity\":1,\"held\":0,\"confirmed\":0,\"available\":1,"
        "\"open\":true,\"fence\":0},{\"name\":\"b\",\"capacity\":1,\"held\":0,\"confirmed\":0,"
        "\"available\":0,\"open\":false,\"fence\":0}],\"next_cursor\":\"18446744073709551615\"}");
    page.count = 0;
    j = fresh();
    hf_api_guards(&j, &page);
    expect("{\"guards\":[],\"next_cursor\":\"18446744073709551615\"}");
    j = fresh();
    hf_api_entries(&j, &page, true);
    expect("{\"entries\":[],\"next_cursor\":\"18446744073709551615\"}");
}

static void test_token(void **state)
{
    (void)state;
    struct hf_token t = {
        .action = HF_PLACE_HOLD, .status = HF_OK, .recorded_at = T0, .expires_at = T0 + 900000
    };
    struct hf_answer a = { .kind = HF_RECORD_HOLD, .hold = hold_sample() };
    struct hf_json j = fresh();
    hf_api_token(&j, &t, &a);
    expect("{\"action\":\"place_hold\",\"digest\":\"" PRINT
           "\",\"digest_function\":\"sha256/1\",\"recorded_at\":\"" T0_TEXT
           "\",\"expires_at\":\"" T1_TEXT "\",\"status\":201,\"body\":" HOLD_HEAD
           "\"state\":\"held\"," HOLD_TIMES "}}");
    t.status = HF_TOKEN_COLLISION;
    j = fresh();
    hf_api_token(&j, &t, &(struct hf_answer){ .status = HF_OK });
    assert_non_null(strstr(hf_buffer_text(&out),
                           "\"status\":422,\"body\":{\"type\":\"urn:holdfast:token-coll"));
}

static void test_problem_bytes(void **state)
{
    (void)state;
    struct hf_json j = fresh();
    hf_api_answer(&j, HF_GET_TOKEN, &(struct hf_answer){ .status = HF_NOT_KNOWN });
    expect("{\"type\":\"urn:holdfast:not-known\",\"title\":\"Not "
           "known\",\"status\":404,\"detail\":\"No call with this key is remembered: it never "
           "arrived, or its window is over.\",\"code\":\"not-known\",\"retry\":\"no\"}");
    j = fresh();
    struct hf_answer refused = { .status = HF_REFUSED,
                                 .kind = HF_RECORD_VALUE,
                                 .value = hf_str("no \"funds\"") };
    hf_api_answer(&j, HF_APPLY, &refused);
    expect("{\"type\":\"urn:holdfast:refused\",\"title\":\"Refused by the "
           "application\",\"status\":409,\"detail\":\"no "
           "\\\"funds\\\"\",\"code\":\"refused\",\"retry\":\"no\"}");
}

/* A begin that is refused tells what is needed to settle the claim. */
static void unsettled_claims_show_how_to_settle_them(void **state)
{
    (void)state;
    struct hf_answer answer = { .status = HF_IN_PROGRESS,
                                .kind = HF_RECORD_CLAIM,
                                .claim = { .key = hf_str("pay-77"),
                                           .state = HF_CLAIM_STARTED,
                                           .fence = 9,
                                           .begun_at = 1000,
                                           .lease_expires_at = 61000 } };
    struct hf_json j = fresh();
    hf_api_answer(&j, HF_BEGIN, &answer);
    assert_non_null(strstr(hf_buffer_text(&out),
                           "\"code\":\"in-progress\",\"retry\":\"same-key\",\"key\":\"pay-77\","
                           "\"fence\":9,\"begun_at\":\"1970-01-01T00:00:01.000Z\","
                           "\"lease_expires_at\":\"1970-01-01T00:01:01.000Z\"}"));
    answer.status = HF_OUTCOME_UNKNOWN;
    answer.claim.state = HF_CLAIM_UNKNOWN;
    j = fresh();
    hf_api_answer(&j, HF_BEGIN, &answer);
    assert_non_null(strstr(hf_buffer_text(&out), "\"retry\":\"no\",\"key\":\"pay-77\""));
    assert_non_null(
        strstr(hf_buffer_text(&out), ",\"unknown_since\":\"1970-01-01T00:01:01.000Z\"}"));
}

static const struct {
    enum hf_status status;
    unsigned http;
} statuses[] = {
    { HF_OK, 200 },
    { HF_INVALID_REQUEST, 400 },
    { HF_NOT_KNOWN, 404 },
    { HF_RESOURCE_UNAVAILABLE, 409 },
    { HF_NOT_HELD, 409 },
    { HF_WINDOW_ELAPSED, 409 },
    { HF_WINDOW_NOT_ELAPSED, 409 },
    { HF_IN_PROGRESS, 409 },
    { HF_OUTCOME_UNKNOWN, 409 },
    { HF_STALE_FENCE, 412 },
    { HF_VERSION_MISMATCH, 412 },
    { HF_TOKEN_COLLISION, 422 },
    { HF_LEASE_HELD, 409 },
    { HF_REFUSED, 409 },
    { HF_STORAGE_FAILURE, 503 },
    { HF_NO_MEMORY, 503 },
    { HF_MISUSE, 500 },
    { HF_STORE_BUSY, 503 },
    { HF_STORE_DAMAGED, 503 },
    { HF_STORE_NEWER, 503 },
    { HF_STORE_ABSENT, 503 },
    { HF_INDETERMINATE, 503 },
    { (enum hf_status)99, 500 },
};

static void test_http_statuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        assert_int_equal(hf_refusal_http(statuses[i].status), statuses[i].http);
    struct hf_answer ok = { .status = HF_OK,
                            .kind = HF_RECORD_CLAIM,
                            .claim = { .state = HF_CLAIM_STARTED } };
    assert_int_equal(hf_api_answer_status(HF_BEGIN, &ok), 201);
    ok.claim.state = HF_CLAIM_COMPLETED;
    assert_int_equal(hf_api_answer_status(HF_BEGIN, &ok), 200);
    assert_int_equal(hf_api_answer_status(HF_PLACE_HOLD, &ok), 201);
    assert_int_equal(hf_api_answer_status(HF_GRANT, &ok), 201);
    assert_int_equal(hf_api_answer_status(HF_CONFIRM, &ok), 200);
    ok.status = HF_LEASE_HELD;
    assert_int_equal(hf_api_answer_status(HF_GRANT, &ok), 409);
}

/* Whatever refuses whatever: a code, a title, and a detail of whole sentences. */
static void test_problem_words(void **state)
{
    (void)state;
    for (int action = 0; action <= HF_GET_VALUE; action++) {
        for (size_t i = 1; i < sizeof statuses / sizeof *statuses; i++) {
            struct hf_refusal p = hf_refusal_of((enum hf_action)action, statuses[i].status);
            const char *detail = p.detail.data;
            assert_true(p.title[0] && p.title[strlen(p.title) - 1] != '.');
            assert_true(p.detail.size > 20 && detail[p.detail.size - 1] == '.');
            assert_string_equal(p.code, hf_status_code(statuses[i].status));
            assert_int_equal(p.http_status, statuses[i].http);
        }
    }
}

static void test_answers_without_record(void **state)
{
    (void)state;
    struct hf_json j = fresh();
    hf_api_answer(&j, HF_MERGE, &(struct hf_answer){ .status = HF_OK });
    expect("{\"ok\":true}");
    j = fresh();
    hf_api_answer(&j, HF_APPLY,
                  &(struct hf_answer){ .kind = HF_RECORD_VALUE, .value = hf_str("v") });
    expect("\"v\"");
}

static int end(void **state)
{
    (void)state;
    hf_buffer_free(&out);
    return 0;
}

/* Each limit and each failure of the store has a sentence and a word of its own. */
static void test_causes(void **state)
{
    enum { CAUSES = HF_LIMIT_FILES + HF_FAULT_STANDBY };
    static struct hf_why said[CAUSES];
    const char *words[CAUSES];
    const struct hf_request request = { .action = HF_PLACE_HOLD };
    (void)state;
    for (int i = 0; i < CAUSES; i++) {
        struct hf_result result = { .answer = { .status = HF_STORAGE_FAILURE } };
        if (i < HF_LIMIT_FILES)
            result.answer.limit = (enum hf_limit)(i + 1);
        else
            result.answer.cause.fault = (enum hf_fault)(i - HF_LIMIT_FILES + 1);
        result.answer.cause.error = 5;
        strcpy(result.answer.cause.sqlstate, "42501");
        said[i] = hf_why(&request, &result);
        words[i] = hf_why_name(result.answer.limit, result.answer.cause.fault);
        size_t size = strlen(said[i].text);
        assert_in_range(size, 40, sizeof said[i].text - 2);
        assert_int_equal(said[i].text[size - 1], '.');
        assert_string_not_equal(words[i], "unknown");
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(said[i].text, said[k].text);
            assert_string_not_equal(words[i], words[k]);
        }
        struct hf_page page = { .cause = result.answer.cause };
        assert_string_equal(hf_why_page(HF_STORAGE_FAILURE, &page).text,
                            i < HF_LIMIT_FILES ? "" : said[i].text);
    }
    assert_string_equal(hf_why_name(HF_LIMIT_NONE, HF_FAULT_NONE), "unknown");
    assert_non_null(strstr(said[HF_LIMIT_FILES + HF_FAULT_DISK - 1].text, ": Input/output error."));
    assert_non_null(
        strstr(said[HF_LIMIT_FILES + HF_FAULT_DATABASE_REFUSED - 1].text, "(SQLSTATE 42501)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_causes),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_hold_reversal),
        cmocka_unit_test(test_resource),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_seen),
        cmocka_unit_test(test_entry),
        cmocka_unit_test(test_claim),
        cmocka_unit_test(test_lease),
        cmocka_unit_test(test_register),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_problem_bytes),
        cmocka_unit_test(unsettled_claims_show_how_to_settle_them),
        cmocka_unit_test(test_http_statuses),
        cmocka_unit_test(test_problem_words),
        cmocka_unit_test(test_answers_without_record),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
