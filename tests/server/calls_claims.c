/* Claims over HTTP: begun, kept alive, settled, abandoned, taken over. */
#include "server/kit/case.h"

#define DAY (24 * 60 * 60 * INT64_C(1000))
#define STARTED                                                                                  \
    "{\"key\":\"*\",\"status\":\"started\",\"fence\":#,\"fingerprint\":\"*\",\"on_abandon\":\"*" \
    "\","                                                                                        \
    "\"lease\":\"*\","                                                                           \
    "\"begun_at\":\"*\",\"lease_expires_at\":\"*\"}"

/* Begin `key` with a payload of its own; further members begin with a comma. */
static int begin(const char *key, const char *more)
{
    char body[400];
    snprintf(body, sizeof body, "{\"key\":\"%s\",\"payload\":{\"pay\":100}%s}", key, more);
    return talk(&t, "POST /v1/claims", NULL, body);
}

/* A begin that must start; its fence. */
static long long started(const char *key, const char *more)
{
    if (begin(key, more) != 201)
        fail_msg("%d %s", t.got.status, t.got.body);
    talk_is(&t, STARTED);
    talk_unkeyed(&t);
    return reply_number(&t.got, "fence");
}

/* complete, fail or heartbeat; further members begin with a comma. */
static int settle(const char *key, const char *verb, long long fence, const char *more)
{
    char body[4096];
    snprintf(body, sizeof body, "{\"fence\":%lld%s}", fence, more);
    return talkf(&t, NULL, body, "POST /v1/claims/%s/%s", key, verb);
}

static void a_claim_is_begun_completed_and_answered_again(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "GET /v1/claims/pay-1", NULL, NULL), 404);
    talk_refused(&t, 404, "not-known");
    long long fence = started("pay-1", ",\"lease\":\"30s\"");
    assert_string_equal(reply_text(&t.got, "lease_expires_at"), "2023-11-14T22:13:50.000Z");
    assert_int_equal(talk(&t, "GET /v1/claims/pay-1", NULL, NULL), 200);
    talk_is(&t, STARTED);
    clock_at(1000);
    assert_int_equal(
        settle("pay-1", "complete", fence, ",\"response\":{\"charge\":\"C1\",\"cents\":100}"), 200);
    const char *settled =
        "{\"key\":\"pay-1\",\"status\":\"completed\",\"fence\":#,\"fingerprint\":\"*\",\"on_"
        "abandon\":"
        "\"unknown\","
        "\"lease\":\"*\",\"begun_at\":\"" TALK_AT
        "\",\"lease_expires_at\":\"*\",\"response\":{\"charge\":"
        "\"C1\",\"cents\":100},\"settled_at\":\"2023-11-14T22:13:21.000Z\",\"expires_at\":"
        "\"2023-11-15T22:13:21.000Z\"}";
    const char *until = "2023-11-15T22:13:21.000Z";
    talk_is(&t, settled);
    assert_string_equal(reply_field(&t.got, "Idempotency-Expires"), until);
    assert_int_equal(begin("pay-1", ""), 200);
    talk_is(&t, settled);
    assert_string_equal(reply_field(&t.got, "Idempotent-Replayed"), "true");
    assert_string_equal(reply_field(&t.got, "Idempotency-Expires"), until);
    assert_int_equal(talk(&t, "GET /v1/claims/pay-1", NULL, NULL), 200);
    talk_is(&t, settled);
    assert_string_equal(reply_field(&t.got, "Idempotency-Expires"), until);
    assert_null(reply_field(&t.got, "Idempotent-Replayed"));
    /* The answer lives for one window after it was settled, and the fence rises for ever. */
    clock_at(DAY + 999);
    assert_int_equal(begin("pay-1", ""), 200);
    clock_at(DAY + 1000);
    assert_true(started("pay-1", "") > fence);
}

static void a_key_with_a_slash_is_explained(void **state)
{
    (void)state;
    long long fence = started("order/8/pay", "");
    talk(&t, "GET /v1/claims/order/8/pay", NULL, NULL);
    talk_refused(&t, 404, "not-known");
    assert_true(reply_has(&t.got, "Write a slash in a key or a name as %2F."));
    talk(&t, "POST /v1/claims/order/8/pay/complete", NULL, "{\"fence\":1}");
    talk_refused(&t, 404, "not-known");
    assert_true(reply_has(&t.got, "Write a slash in a key or a name as %2F."));
    assert_int_equal(talk(&t, "GET /v1/claims/order%2F8%2fpay", NULL, NULL), 200);
    assert_int_equal(settle("order%2F8%2Fpay", "complete", fence, ""), 200);
    talk(&t, "GET /v1/nothing/here", NULL, NULL);
    talk_refused(&t, 404, "not-known");
    assert_false(reply_has(&t.got, "%2F"));
}

static void the_header_may_have_the_key_of_a_begin(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "POST /v1/claims", "\"pay 9\"", "{\"payload\":1,\"lease\":\"30s\"}"),
                     201);
    assert_string_equal(reply_text(&t.got, "key"), "pay 9");
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"key\":\"pay 9\",\"payload\":1}"), 409);
    talk_refused(&t, 409, "in-progress");
    assert_int_equal(talk(&t, "POST /v1/claims", "pay 9", "{\"key\":\"pay 9\",\"payload\":1}"),
                     409);
    talk_refused(&t, 409, "in-progress");
    assert_int_equal(talk(&t, "POST /v1/claims", "other", "{\"key\":\"pay 9\",\"payload\":1}"),
                     400);
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"payload\":1}"), 400);
    assert_non_null(strstr(t.got.body, "key: it is missing."));
}

static void a_claim_in_progress_asks_to_wait(void **state)
{
    (void)state;
    long long fence = started("k", ",\"lease\":60");
    assert_int_equal(begin("k", ""), 409);
    talk_refused(&t, 409, "in-progress");
    assert_string_equal(reply_field(&t.got, "Retry-After"), "1");
    /* Other work under this key is a collision, even while the first is in flight. */
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"key\":\"k\",\"payload\":{\"pay\":101}}"),
                     422);
    talk_refused(&t, 422, "token-collision");
    /* A heartbeat keeps it alive, as long as the lease was or as told. */
    clock_at(59999);
    assert_int_equal(settle("k", "heartbeat", fence, ""), 200);
    assert_string_equal(reply_text(&t.got, "lease_expires_at"), "2023-11-14T22:15:19.999Z");
    assert_int_equal(settle("k", "heartbeat", fence, ",\"lease\":\"10m\""), 200);
    assert_string_equal(reply_text(&t.got, "lease_expires_at"), "2023-11-14T22:24:19.999Z");
    clock_at(600000);
    assert_int_equal(begin("k", ""), 409);
    talk_refused(&t, 409, "in-progress");
}

static void an_abandoned_claim_is_unknown_until_somebody_settles_it(void **state)
{
    (void)state;
    long long fence = started("k", ",\"lease\":\"10s\"");
    clock_at(10000);
    assert_int_equal(begin("k", ""), 409);
    talk_refused(&t, 409, "outcome-unknown");
    assert_int_equal(begin("k", ",\"on_abandon\":\"retry\""), 409); /* it was begun otherwise */
    talk_refused(&t, 409, "outcome-unknown");
    assert_int_equal(talk(&t, "GET /v1/claims/k", NULL, NULL), 200);
    assert_string_equal(reply_text(&t.got, "status"), "unknown");
    clock_at(30 * DAY); /* never forgotten, never run again by itself */
    assert_int_equal(begin("k", ""), 409);
    assert_int_equal(settle("k", "complete", fence, ",\"response\":\"found out by hand\""), 200);
    assert_int_equal(begin("k", ""), 200);
    assert_string_equal(reply_text(&t.got, "response"), "found out by hand");
}

static void a_worker_that_does_not_know_abandons_its_claim(void **state)
{
    (void)state;
    assert_int_equal(begin("k", ",\"lease\":\"10m\",\"retention\":\"90d\""), 201);
    long long fence = reply_number(&t.got, "fence");
    assert_string_equal(reply_text(&t.got, "retention"), "90d");
    clock_at(5000);
    assert_int_equal(settle("k", "abandon", fence, ""), 200);
    assert_string_equal(reply_text(&t.got, "status"), "unknown");
    assert_string_equal(reply_text(&t.got, "unknown_since"), "2023-11-14T22:13:25.000Z");
    clock_at(6000);
    assert_int_equal(settle("k", "abandon", fence, ""), 200);
    assert_string_equal(reply_text(&t.got, "unknown_since"), "2023-11-14T22:13:25.000Z");
    assert_int_equal(begin("k", ""), 409);
    talk_refused(&t, 409, "outcome-unknown");
    assert_string_equal(reply_text(&t.got, "unknown_since"), "2023-11-14T22:13:25.000Z");
    assert_int_equal(settle("k", "complete", fence, ",\"response\":1"), 200);
    assert_string_equal(reply_field(&t.got, "Idempotency-Expires"), "2024-02-12T22:13:26.000Z");
    assert_int_equal(settle("k", "abandon", fence, ""), 409);
    talk_refused(&t, 409, "not-held");
    clock_at(6000 + 90 * DAY - 1);
    assert_int_equal(begin("k", ""), 200);
    clock_at(6000 + 90 * DAY);
    assert_true(started("k", "") > fence);
}

static void an_abandoned_claim_is_taken_over_with_a_higher_fence(void **state)
{
    (void)state;
    long long first = started("k", ",\"lease\":\"10s\",\"on_abandon\":\"retry\"");
    clock_at(9999);
    assert_int_equal(begin("k", ",\"on_abandon\":\"retry\""), 409);
    talk_refused(&t, 409, "in-progress");
    clock_at(10000);
    long long second = started("k", ",\"on_abandon\":\"retry\"");
    assert_true(second > first);
    /* The one that was thought dead comes late and is refused, whatever it says. */
    static const char *const verbs[] = { "complete", "fail", "heartbeat", "abandon" };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(settle("k", verbs[i], first, ""), 412);
        talk_refused(&t, 412, "stale-fence");
    }
    assert_int_equal(settle("k", "complete", second, ",\"response\":1"), 200);
    assert_int_equal(settle("k", "heartbeat", second, ""), 409);
    talk_refused(&t, 409, "not-held");
    /* Saying the same again is fine, saying another thing is not. */
    assert_int_equal(settle("k", "complete", second, ",\"response\":1"), 200);
    assert_int_equal(settle("k", "complete", second, ",\"response\":2"), 422);
    talk_refused(&t, 422, "token-collision");
    assert_int_equal(settle("k", "fail", second, ""), 422);
    talk_refused(&t, 422, "token-collision");
    assert_int_equal(settle("k", "complete", second + 1, ",\"response\":1"), 400);
    talk_refused(&t, 400, "invalid-request");
}

static void a_failure_is_the_answer_or_may_be_tried_again(void **state)
{
    (void)state;
    long long fence = started("good", "");
    assert_int_equal(settle("good", "fail", fence, ",\"error\":{\"why\":\"card declined\"}"), 200);
    assert_true(reply_has(&t.got, "\"status\":\"failed\""));
    assert_true(reply_has(&t.got, "\"error\":{\"why\":\"card declined\"},\"retryable\":false"));
    assert_int_equal(begin("good", ""), 200);
    assert_true(reply_has(&t.got, "\"error\":{\"why\":\"card declined\"},\"retryable\":false"));
    assert_string_equal(reply_field(&t.got, "Idempotent-Replayed"), "true");
    fence = started("again", "");
    assert_int_equal(settle("again", "fail", fence, ",\"retryable\":true,\"error\":\"timeout\""),
                     200);
    assert_true(reply_has(&t.got, "\"status\":\"failed\""));
    assert_true(reply_has(&t.got, "\"error\":\"timeout\",\"retryable\":true"));
    assert_true(started("again", "") > fence);
}

static void a_response_comes_back_as_it_was(void **state)
{
    (void)state;
    static const char *const shapes[] = { "null",
                                          "true",
                                          "0",
                                          "-12.5e+3",
                                          "123456789012345678901234567890",
                                          "\"\"",
                                          "\"text\"",
                                          "\"{\\\"a\\\":1}\"",
                                          "\"\\u0000j1\"",
                                          "\"\\u0000\"",
                                          "\"line\\nbreak\"",
                                          "[]",
                                          "{}",
                                          "[1,[2,[3,[]]],{\"a\":{\"b\":null}}]",
                                          "{\"z\":1,\"a\":2,\"caf\xc3\xa9\":\"\xe2\x82\xac\"}" };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char key[16], more[200], expected[200];
        snprintf(key, sizeof key, "s%zu", i);
        long long fence = started(key, "");
        snprintf(more, sizeof more, ",\"response\":%s", shapes[i]);
        snprintf(expected, sizeof expected, ",\"response\":%s,\"settled_at\":", shapes[i]);
        assert_int_equal(settle(key, "complete", fence, more), 200);
        if (!reply_has(&t.got, expected))
            fail_msg("%s became %s", shapes[i], t.got.body);
        assert_int_equal(begin(key, ""), 200);
        assert_true(reply_has(&t.got, expected));
    }
    /* White space between tokens is not part of it; none at all is an empty string. */
    long long fence = started("spaces", "");
    assert_int_equal(settle("spaces", "complete", fence, ",\"response\": { \"a\" :\\n [ 1 , 2 ] }"),
                     400);
    assert_int_equal(settle("spaces", "complete", fence, ",\"response\": { \"a\" :\n [ 1 , 2 ] }"),
                     200);
    assert_true(reply_has(&t.got, "\"response\":{\"a\":[1,2]},"));
    fence = started("nothing", "");
    assert_int_equal(settle("nothing", "complete", fence, ""), 200);
    assert_true(reply_has(&t.got, "\"response\":\"\","));
}

static void a_fingerprint_may_be_given_or_made_from_the_payload(void **state)
{
    (void)state;
    const char *digest =
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; /* of "abc" */
    char body[400];
    snprintf(body, sizeof body, "{\"key\":\"f\",\"fingerprint\":\"%s\"}", digest);
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, body), 201);
    assert_string_equal(reply_text(&t.got, "fingerprint"), digest);
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"key\":\"f\",\"fingerprint\":\"abc\"}"),
                     409);
    talk_refused(&t, 409, "in-progress"); /* the same work: other texts are hashed */
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"key\":\"f\",\"fingerprint\":\"abd\"}"),
                     422);
    /* A payload is compared as JSON, not as bytes. */
    assert_int_equal(talk(&t, "POST /v1/claims", NULL,
                          "{\"key\":\"p\",\"payload\":{\"a\":1,\"b\":[true,\"x\"]}}"),
                     201);
    assert_int_equal(
        talk(&t, "POST /v1/claims", NULL,
             "{\"payload\": { \"b\" : [ true, \"\\u0078\" ], \"a\" : 1 }, \"key\":\"p\"}"),
        409);
    talk_refused(&t, 409, "in-progress");
    assert_int_equal(talk(&t, "POST /v1/claims", NULL,
                          "{\"key\":\"p\",\"payload\":{\"a\":1,\"b\":[\"x\",true]}}"),
                     422);
    talk_refused(&t, 422, "token-collision");
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "{}",
        "{\"key\":\"k\"}",
        "{\"payload\":1}",
        "{\"key\":\"k\",\"payload\":1,\"fingerprint\":\"f\"}",
        "{\"key\":\"\",\"payload\":1}",
        "{\"key\":7,\"payload\":1}",
        "{\"key\":\"k\",\"payload\":1,\"lease\":\"0s\"}",
        "{\"key\":\"k\",\"payload\":1,\"lease\":\"4000d\"}",
        "{\"key\":\"k\",\"payload\":1,\"on_abandon\":\"hope\"}",
        "{\"key\":\"k\",\"fingerprint\":\"\"}",
        "{\"key\":\"k\",\"payload\":1,\"x\":1}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        talk(&t, "POST /v1/claims", NULL, wrong[i]);
        talk_refused(&t, 400, "invalid-request");
    }
    static const char *const verbs[] = { "complete", "fail", "heartbeat", "abandon" };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(settle("none", verbs[i], 1, ""), 404);
        talk_refused(&t, 404, "not-known");
        assert_int_equal(talkf(&t, NULL, "{}", "POST /v1/claims/none/%s", verbs[i]), 400);
        talk_refused(&t, 400, "invalid-request");
    }
    /* A key in the path may have any bytes. */
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"key\":\"a/b \\u0000?\",\"payload\":1}"),
                     201);
    assert_int_equal(settle("a%2Fb%20%00%3F", "complete", reply_number(&t.got, "fence"), ""), 200);
    assert_int_equal(talk(&t, "GET /v1/claims/a%2fb%20%00%3f", NULL, NULL), 200);
    assert_string_equal(reply_text(&t.got, "status"), "completed");
}

static void claims_outlive_a_restart(void **state)
{
    (void)state;
    long long fence = started("k", ",\"on_abandon\":\"retry\",\"lease\":\"1h\"");
    case_restart();
    assert_int_equal(begin("k", ",\"on_abandon\":\"retry\""), 409);
    assert_int_equal(settle("k", "complete", fence, ",\"response\":[1]"), 200);
    assert_int_equal(begin("k", ""), 200);
    assert_true(reply_has(&t.got, "\"response\":[1]"));
}

/* Leases and registers over HTTP: fences that only rise, versions, and merges that may be heard
 * twice. */

/* ---- Leases ---- */

static int lease(const char *verb, long long fence, const char *more)
{
    char body[200];
    snprintf(body, sizeof body, "{\"fence\":%lld%s}", fence, more);
    return talkf(&t, NULL, body, "POST /v1/leases/leader/%s", verb);
}

static void a_lease_is_granted_once_a_key_and_held_by_one(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "GET /v1/leases/leader", NULL, NULL), 404);
    talk_refused(&t, 404, "not-known");
    assert_int_equal(
        talk_twice(&t, "POST /v1/leases/leader", "k1", "{\"holder\":\"ann\",\"ttl\":\"10s\"}"),
        201);
    talk_is(&t, "{\"name\":\"leader\",\"holder\":\"ann\",\"fence\":#,\"ttl\":\"*\",\"granted_at\":"
                "\"" TALK_AT "\",\"expires_at\":\"2023-11-14T22:13:30.000Z\"}");
    long long first = reply_number(&t.got, "fence");
    assert_int_equal(
        talk_twice(&t, "POST /v1/leases/leader", "k2", "{\"holder\":\"bob\",\"ttl\":\"10s\"}"),
        409);
    talk_refused(&t, 409, "lease-held");
    clock_at(9999);
    assert_int_equal(
        talk(&t, "POST /v1/leases/leader", "k3", "{\"holder\":\"bob\",\"ttl\":\"10s\"}"), 409);
    clock_at(10000);
    assert_int_equal(
        talk(&t, "POST /v1/leases/leader", "k4", "{\"holder\":\"bob\",\"ttl\":\"1h\"}"), 201);
    assert_true(reply_number(&t.got, "fence") > first);
    assert_int_equal(
        talk(&t, "POST /v1/leases/leader", "k1", "{\"holder\":\"ann\",\"ttl\":\"10s\"}"), 201);
    talk_replayed(
        &t); /* the answer of then, fence and all: whoever uses it is refused by what it guards */
    assert_int_equal(reply_number(&t.got, "fence"), first);
}

static void a_lease_is_renewed_and_given_back_by_its_fence(void **state)
{
    (void)state;
    assert_int_equal(lease("renew", 1, ""), 404);
    talk_refused(&t, 404, "not-known");
    assert_int_equal(
        talk(&t, "POST /v1/leases/leader", "k1", "{\"holder\":\"ann\",\"ttl\":\"10s\"}"), 201);
    long long first = reply_number(&t.got, "fence");
    clock_at(5000);
    assert_int_equal(lease("renew", first, ""), 200);
    talk_unkeyed(&t);
    assert_string_equal(reply_text(&t.got, "expires_at"), "2023-11-14T22:13:35.000Z");
    assert_int_equal(lease("renew", first, ",\"ttl\":\"1m\""), 200);
    assert_string_equal(reply_text(&t.got, "expires_at"), "2023-11-14T22:14:25.000Z");
    assert_int_equal(lease("release", first, ""), 200);
    talk_is(&t, "{\"name\":\"leader\",\"holder\":\"ann\",\"fence\":#,\"ttl\":\"*\",\"granted_at\":"
                "\"*\",\"expires_at\":\"*\",\"released_at\":\"2023-11-14T22:13:25.000Z\"}");
    assert_int_equal(lease("renew", first, ""), 409);
    talk_refused(&t, 409, "not-held");
    assert_int_equal(
        talk(&t, "POST /v1/leases/leader", "k2", "{\"holder\":\"bob\",\"ttl\":\"10s\"}"), 201);
    long long second = reply_number(&t.got, "fence");
    assert_true(second > first);
    assert_int_equal(lease("renew", first, ""), 412);
    talk_refused(&t, 412, "stale-fence");
    assert_int_equal(lease("release", first, ""), 412);
    talk_refused(&t, 412, "stale-fence");
    assert_int_equal(talk(&t, "GET /v1/leases/leader", NULL, NULL), 200);
    assert_string_equal(reply_text(&t.got, "holder"), "bob");
    clock_at(60000);
    assert_int_equal(lease("renew", second, ""), 409); /* it ran out */
    talk_refused(&t, 409, "not-held");
}

static void a_lease_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = { "",
                                         "{}",
                                         "{\"holder\":\"a\"}",
                                         "{\"ttl\":\"1s\"}",
                                         "{\"holder\":\"a\",\"ttl\":\"0s\"}",
                                         "{\"holder\":\"\",\"ttl\":\"1s\"}",
                                         "{\"holder\":\"a\",\"ttl\":\"1s\",\"fence\":1}",
                                         "{\"holder\":\"a\\u0000\",\"ttl\":\"1s\"}" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%zu", i);
        talk(&t, "POST /v1/leases/leader", key, wrong[i]);
        talk_refused(&t, 400, "invalid-request");
    }
    assert_int_equal(talk(&t, "POST /v1/leases/leader", NULL, "{\"holder\":\"a\",\"ttl\":\"1s\"}"),
                     400);
    talk_refused(&t, 400, "invalid-request");
    assert_int_equal(lease("renew", 1, ",\"ttl\":\"0s\""), 400);
    assert_int_equal(lease("release", 1, ",\"ttl\":\"1s\""), 400);
    assert_int_equal(talk(&t, "POST /v1/leases/leader/renew", NULL, "{}"), 400);
    talk_refused(&t, 400, "invalid-request");
}

/* ---- Registers ---- */

static int put(const char *key, const char *body)
{
    return talk_twice(&t, "PUT /v1/registers/x", key, body);
}

static void a_register_is_written_once_a_key(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "GET /v1/registers/x", NULL, NULL), 404);
    talk_refused(&t, 404, "not-known");
    assert_int_equal(put("k1", "{\"value\":{\"n\":[1,2.50,null]}}"), 200);
    const char *first = "{\"name\":\"x\",\"type\":\"plain\",\"value\":{\"n\":[1,2.50,null]},"
                        "\"version\":1,\"fence\":0}";
    talk_is(&t, first);
    assert_int_equal(put("k2", "{\"value\":\"two\"}"), 200);
    talk_is(&t, "{\"name\":\"x\",\"type\":\"plain\",\"value\":\"two\",\"version\":2,\"fence\":0}");
    assert_int_equal(
        talk(&t, "PUT /v1/registers/x", "k1", "{\"value\": {\"n\" : [1.0,25e-1,null] } }"), 200);
    talk_is(&t, first);
    talk_replayed(&t);
    assert_int_equal(talk(&t, "GET /v1/registers/x", NULL, NULL), 200);
    talk_is(&t, "{\"name\":\"x\",\"type\":\"plain\",\"value\":\"two\",\"version\":2,\"fence\":0}");
    talk_unkeyed(&t);
    assert_int_equal(talk(&t, "PUT /v1/registers/x", NULL, "{\"value\":1}"), 400);
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "k3", "{}"), 400);
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "k4", "{\"value\":1,\"if_version\":-1}"), 400);
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "k3", "{\"value\":1,\"version\":1}"), 400);
    talk_refused(&t, 400, "invalid-request");
}

/* The order of members, white space and 1 for 1.0 make no other request: not for a write, not for
 * the response of a claim, one by one or in bulk. What is stored is what came first. */
static void the_same_json_in_other_words_is_the_same_request(void **state)
{
    (void)state;
    static const struct {
        const char *json, *again, *other;
    } values[] = {
        { "{\"b\":1.0,\"a\":[1e2,\"x\"]}", "{ \"a\": [100, \"\\u0078\"], \"b\": 1 }",
          "{\"b\":1.5,\"a\":[1e2,\"x\"]}" },
        { "-0", " 0.0 ", "1" },
        { "\"text\"", "\"\\u0074ext\"", "[\"text\"]" },
        { "12345678901234567890", "12345678901234567890.0", "12345678901234567891" },
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char key[16], path[64], body[300];
        snprintf(key, sizeof key, "v%zu", i);
#define BODY(value) (snprintf(body, sizeof body, "{\"value\":%s}", value), body)
        assert_int_equal(talk(&t, "PUT /v1/registers/same", key, BODY(values[i].json)), 200);
        talk_first(&t);
        char first[300];
        snprintf(first, sizeof first, "%s", t.got.body);
        assert_non_null(strstr(first, values[i].json));
        assert_int_equal(talk(&t, "PUT /v1/registers/same", key, BODY(values[i].again)), 200);
        talk_replayed(&t);
        assert_string_equal(t.got.body, first);
        assert_int_equal(talk(&t, "PUT /v1/registers/same", key, BODY(values[i].other)), 422);
        snprintf(body, sizeof body,
                 "{\"value\":%s,\"op\":\"write\",\"name\":\"same\",\"key\":\"%s\"}",
                 values[i].again, key);
        assert_int_equal(talk(&t, "POST /v1/batch", NULL, body), 200);
        assert_non_null(strstr(t.got.body, "{\"status\":200,\"replayed\":true,"));
        snprintf(body, sizeof body, "{\"key\":\"c%zu\",\"payload\":%s}", i, values[i].json);
        assert_int_equal(talk(&t, "POST /v1/claims", NULL, body), 201);
        int fence = (int)reply_number(&t.got, "fence");
        snprintf(path, sizeof path, "POST /v1/claims/c%zu/complete", i);
#define SETTLE(value) \
    (snprintf(body, sizeof body, "{\"fence\":%d,\"response\":%s}", fence, value), body)
        assert_int_equal(talk(&t, path, NULL, SETTLE(values[i].json)), 200);
        assert_int_equal(talk(&t, path, NULL, SETTLE(values[i].again)), 200);
        talk_replayed(&t);
        assert_int_equal(talk(&t, path, NULL, SETTLE(values[i].other)), 422);
        snprintf(body, sizeof body, "{\"key\":\"c%zu\",\"payload\":%s}", i, values[i].again);
        assert_int_equal(talk(&t, "POST /v1/claims", NULL, body), 200);
        snprintf(body, sizeof body, "{\"key\":\"c%zu\",\"payload\":%s}", i, values[i].other);
        assert_int_equal(talk(&t, "POST /v1/claims", NULL, body), 422);
    }
}

static void a_write_may_ask_for_a_version(void **state)
{
    (void)state;
    assert_int_equal(put("k1", "{\"value\":1,\"if_version\":1}"), 412);
    talk_refused(&t, 412, "version-mismatch");
    assert_int_equal(put("k2", "{\"value\":1,\"if_version\":0}"), 200);
    assert_int_equal(put("k3", "{\"value\":2,\"if_version\":0}"), 412);
    assert_int_equal(put("k4", "{\"value\":2,\"if_version\":1}"), 200);
    assert_int_equal(put("k5", "{\"value\":3,\"if_version\":1}"), 412);
    talk_refused(&t, 412, "version-mismatch");
    assert_int_equal(talk(&t, "GET /v1/registers/x", NULL, NULL), 200);
    talk_is(&t, "{\"name\":\"x\",\"type\":\"plain\",\"value\":2,\"version\":2,\"fence\":0}");
}

static void a_write_with_an_older_fence_is_refused(void **state)
{
    (void)state;
    assert_int_equal(put("k1", "{\"value\":\"a\",\"fence\":41}"), 200);
    assert_int_equal(put("k2", "{\"value\":\"b\",\"fence\":42}"), 200);
    assert_int_equal(put("k3", "{\"value\":\"late\",\"fence\":41}"), 412);
    talk_refused(&t, 412, "stale-fence");
    assert_int_equal(put("k4", "{\"value\":\"same\",\"fence\":42}"), 412);
    assert_int_equal(put("k5", "{\"value\":\"c\",\"fence\":43,\"if_version\":1}"), 412);
    talk_refused(&t, 412, "version-mismatch");
    assert_int_equal(talk(&t, "GET /v1/registers/x", NULL, NULL), 200);
    talk_is(&t, "{\"name\":\"x\",\"type\":\"plain\",\"value\":\"b\",\"version\":2,\"fence\":42}");
}

/* ---- Merges ---- */

static void merges_need_no_key_and_may_be_heard_twice(void **state)
{
    (void)state;
    static const struct {
        const char *type, *values[3], *shown;
    } kinds[] = {
        { "max", { "3", "-9223372036854775808", "7" }, "7,\"version\"" },
        { "min", { "3", "9223372036854775807", "-7" }, "-7,\"version\"" },
        { "or", { "false", "true", "false" }, "true,\"version\"" },
        { "union", { "[\"b\",\"a\"]", "[]", "[\"c\",\"a\"]" }, "[\"a\",\"b\",\"c\"],\"version\"" },
        { "lww",
          { "{\"value\":{\"v\":1},\"timestamp\":5,\"node\":\"a\"}",
            "{\"value\":2,\"timestamp\":6,\"node\":\"a\"}",
            "{\"value\":3,\"timestamp\":6,\"node\":\"b\"}" },
          "{\"value\":3,\"timestamp\":6,\"node\":\"b\"},\"version\"" },
        { "vector",
          { "{\"n1\":4}", "{\"n1\":3,\"n2\":1}", "{\"n2\":2}" },
          "{\"n1\":4,\"n2\":2},\"version\"" },
        { "counter",
          { "{\"n1\":4}", "{\"n1\":3,\"n2\":1}", "{\"n2\":2}" },
          "{\"n1\":4,\"n2\":2},\"total\":6,\"version\"" },
        { "updown",
          { "{\"n1\":{\"up\":4}}", "{\"n1\":{\"down\":7}}", "{\"n2\":{\"up\":1,\"down\":0}}" },
          "{\"n1\":{\"up\":4,\"down\":7},\"n2\":{\"up\":1,\"down\":0}},\"total\":-2,\"version\"" },
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        char body[200], expected[200];
        snprintf(expected, sizeof expected, "{\"name\":\"%s\",\"type\":\"%s\",\"value\":%s",
                 kinds[k].type, kinds[k].type, kinds[k].shown);
        for (int round = 0; round < 2; round++)
            for (int v = 0; v < 3; v++) {
                /* The second time in another order: it changes nothing. */
                snprintf(body, sizeof body, "{\"value\":%s,\"type\":\"%s\"}",
                         kinds[k].values[round ? 2 - v : v], kinds[k].type);
                if (talkf(&t, NULL, body, "POST /v1/registers/%s/merge", kinds[k].type) != 200)
                    fail_msg("%s: %s", body, t.got.body);
                talk_unkeyed(&t);
                if (round && !reply_has(&t.got, expected))
                    fail_msg("expected %s, got %s", expected, t.got.body);
            }
        long long version = reply_number(&t.got, "version");
        assert_true(version >= 2 &&
                    version <= 3); /* a merge that changes nothing makes no version */
        assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/registers/%s", kinds[k].type), 200);
        assert_true(reply_has(&t.got, expected));
    }
}

static void a_merge_of_another_type_or_shape_is_refused(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "POST /v1/registers/x/merge", NULL, "{\"type\":\"max\",\"value\":1}"),
                     200);
    static const char *const wrong[] = {
        "",
        "{\"type\":\"max\"}",
        "{\"value\":1}",
        "{\"type\":\"plain\",\"value\":1}",
        "{\"type\":\"sum\",\"value\":1}",
        "{\"type\":\"min\",\"value\":1}",
        "{\"type\":\"max\",\"value\":1.5}",
        "{\"type\":\"max\",\"value\":\"1\"}",
        "{\"type\":\"max\",\"value\":9223372036854775808}",
        "{\"type\":\"max\",\"value\":1,\"fence\":1}",
        "{\"type\":\"union\",\"value\":[1]}",
        "{\"type\":\"union\",\"value\":[\"\"]}",
        "{\"type\":\"lww\",\"value\":{\"value\":1,\"timestamp\":1}}",
        "{\"type\":\"vector\",\"value\":{\"n\":-1}}",
        "{\"type\":\"counter\",\"value\":{\"n\":1,\"n\":1}}",
        "{\"type\":\"updown\",\"value\":{\"n\":{\"left\":1}}}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        talk(&t, "POST /v1/registers/x/merge", NULL, wrong[i]);
        talk_refused(&t, 400, "invalid-request");
    }
    /* Neither may a merged register be written, nor a written one merged. */
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "k1", "{\"value\":1}"), 400);
    assert_int_equal(talk(&t, "PUT /v1/registers/y", "k2", "{\"value\":1}"), 200);
    assert_int_equal(talk(&t, "POST /v1/registers/y/merge", NULL, "{\"type\":\"max\",\"value\":1}"),
                     400);
    talk_refused(&t, 400, "invalid-request");
    assert_int_equal(talk(&t, "GET /v1/registers/x", NULL, NULL), 200);
    talk_is(&t, "{\"name\":\"x\",\"type\":\"max\",\"value\":1,\"version\":1,\"fence\":0}");
}

static void a_value_has_at_most_65536_bytes(void **state)
{
    (void)state;
    char *body = malloc(HF_VALUE_MAX + 100);
    assert_non_null(body);
    for (size_t extra = 0; extra < 2; extra++) {
        size_t length = HF_VALUE_MAX + extra;
        strcpy(body, "{\"value\":\"");
        memset(body + 10, 'v', length);
        strcpy(body + 10 + length, "\"}");
        assert_int_equal(talk(&t, "PUT /v1/registers/big", extra ? "k2" : "k1", body),
                         extra ? 400 : 200);
        talk_first(&t);
    }
    free(body);
    assert_int_equal(talk(&t, "GET /v1/registers/big", NULL, NULL), 200);
    assert_true(t.got.body_size > HF_VALUE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS_TEST(a_claim_is_begun_completed_and_answered_again),
        CALLS_TEST(a_key_with_a_slash_is_explained),
        CALLS_TEST(the_header_may_have_the_key_of_a_begin),
        CALLS_TEST(a_claim_in_progress_asks_to_wait),
        CALLS_TEST(an_abandoned_claim_is_unknown_until_somebody_settles_it),
        CALLS_TEST(a_worker_that_does_not_know_abandons_its_claim),
        CALLS_TEST(an_abandoned_claim_is_taken_over_with_a_higher_fence),
        CALLS_TEST(a_failure_is_the_answer_or_may_be_tried_again),
        CALLS_TEST(a_response_comes_back_as_it_was),
        CALLS_TEST(a_fingerprint_may_be_given_or_made_from_the_payload),
        CALLS_TEST(what_makes_no_sense_is_refused),
        CALLS_TEST(claims_outlive_a_restart),
        CALLS_TEST(a_lease_is_granted_once_a_key_and_held_by_one),
        CALLS_TEST(a_lease_is_renewed_and_given_back_by_its_fence),
        CALLS_TEST(a_lease_that_makes_no_sense_is_refused),
        CALLS_TEST(a_register_is_written_once_a_key),
        CALLS_TEST(the_same_json_in_other_words_is_the_same_request),
        CALLS_TEST(a_write_may_ask_for_a_version),
        CALLS_TEST(a_write_with_an_older_fence_is_refused),
        CALLS_TEST(merges_need_no_key_and_may_be_heard_twice),
        CALLS_TEST(a_merge_of_another_type_or_shape_is_refused),
        CALLS_TEST(a_value_has_at_most_65536_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
