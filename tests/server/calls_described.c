/* What the description says of answers, met one by one: each call, each media type, each field.
 * That nothing else is sent is asserted with every call of every test that talks
 * (server/kit/described.h). */
#include "server/kit/calls.h"
#include "server/kit/described.h"

#define HOUR (60 * 60 * INT64_C(1000))

static char id[32];

/* Place a hold, and keep its id. */
static void held(const char *key)
{
    char body[100];
    snprintf(body, sizeof body, "{\"resource\":\"for %s\",\"requester\":\"q\",\"duration\":\"1h\"}",
             key);
    assert_int_equal(talk_twice(&t, "POST /v1/holds", key, body), 201);
    snprintf(id, sizeof id, "%s", reply_text(&t.got, "id"));
}

static void done_to_it(const char *verb, const char *key)
{
    char what[100];
    snprintf(what, sizeof what, "POST /v1/holds/%s/%s", id, verb);
    assert_int_equal(talk_twice(&t, what, key, NULL), 200);
}

static void holds(void)
{
    held("k1");
    done_to_it("confirm", "k2");
    done_to_it("reverse", "k3");
    held("k4");
    done_to_it("release", "k5");
    held("k6");
    clock_at(2 * HOUR);
    done_to_it("expire", "k7");
}

static void claims(void)
{
    static const char *const ends[] = { "complete", "fail" };
    const char *begin[] = { "{\"key\":\"complete\",\"payload\":1}",
                            "{\"key\":\"fail\",\"payload\":1}" };
    for (size_t i = 0; i < 2; i++) {
        char body[100];
        assert_int_equal(talk(&t, "POST /v1/claims", NULL, begin[i]), 201);
        snprintf(body, sizeof body, "{\"fence\":%lld}", reply_number(&t.got, "fence"));
        assert_int_equal(talkf(&t, NULL, body, "POST /v1/claims/%s/heartbeat", ends[i]), 200);
        for (int k = 0; k < 2; k++)
            assert_int_equal(talkf(&t, NULL, body, "POST /v1/claims/%s/%s", ends[i], ends[i]), 200);
        assert_int_equal(talk(&t, "POST /v1/claims", NULL, begin[i]), 200);
    }
}

static void leases(void)
{
    char body[100];
    assert_int_equal(talk_twice(&t, "POST /v1/leases/l", "k8", "{\"holder\":\"h\",\"ttl\":\"1h\"}"),
                     201);
    snprintf(body, sizeof body, "{\"fence\":%lld}", reply_number(&t.got, "fence"));
    assert_int_equal(talk(&t, "POST /v1/leases/l/renew", NULL, body), 200);
    assert_int_equal(talk(&t, "POST /v1/leases/l/release", NULL, body), 200);
}

static void changes_without_a_key(void)
{
    static const char *const calls[][2] = {
        { "PUT /v1/resources/r", "{\"capacity\":2}" },
        { "PUT /v1/guards/g", "{\"window\":\"1h\"}" },
        { "POST /v1/guards/g/check", "{\"identity\":\"i\"}" },
        { "POST /v1/guards/g/record", "{\"identity\":\"i\"}" },
        { "POST /v1/guards/g/admit", "{\"identity\":\"i\"}" },
        { "POST /v1/registers/m/merge", "{\"type\":\"max\",\"value\":1}" },
        { "POST /v1/batch", "{\"op\":\"check\",\"guard\":\"g\",\"identity\":\"i\"}" },
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_int_equal(talk(&t, calls[i][0], NULL, calls[i][1]), 200);
}

static void questions(void)
{
    static const char *const paths[] = {
        "/v1/holds",
        "/v1/resources",
        "/v1/resources/r",
        "/v1/guards/g",
        "/v1/guards",
        "/v1/guards/g/entries",
        "/v1/claims/fail",
        "/v1/leases/l",
        "/v1/registers/x",
        "/v1/tokens/k1",
        "/v1/audit",
        "/v1/trace/k1",
        "/v1/export",
        "/v1/export?format=sqlite",
        "/v1/openapi.json",
        "/healthz",
        "/readyz",
        "/metrics",
        "/",
    };
    assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/holds/%s", id), 200);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_equal(talkf(&t, NULL, NULL, "GET %s", paths[i]), 200);
        assert_int_equal(talkf(&t, NULL, NULL, "HEAD %s", paths[i]), 200);
    }
    talk_as(&t, "Accept: text/plain\r\n");
    assert_int_equal(talk(&t, "GET /v1/audit", NULL, NULL), 200);
    assert_string_equal(reply_field(&t.got, "Holdfast-Verdict"), "ok");
    assert_int_equal(talk(&t, "GET /v1/trace/k1", NULL, NULL), 200);
    assert_null(reply_field(&t.got, "Holdfast-Verdict"));
    talk_as(&t, NULL);
}

static void all_that_is_described_happens(void **state)
{
    (void)state;
    holds();
    claims();
    leases();
    assert_int_equal(talk_twice(&t, "PUT /v1/registers/x", "k9", "{\"value\":1}"), 200);
    changes_without_a_key();
    questions();
    assert_int_equal(talk_twice(&t, "DELETE /v1/leases/l", "k10", NULL), 200);
    assert_int_equal(talk_twice(&t, "DELETE /v1/registers/x", "k11", NULL), 200);
    described_all_met();
}

int main(void)
{
    const struct CMUnitTest tests[] = { CALLS_TEST(all_that_is_described_happens) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
