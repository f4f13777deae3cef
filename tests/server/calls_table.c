/* Every row of the table of calls: as the description says, and for whom. */
#include "server/kit/case.h"
#include "server/kit/talk.h"

#include "api/call.h"
#include "base/hash.h"

#include <sys/stat.h>

/* What the description says of answers, met one by one: each call, each media type, each field.
 * That nothing else is sent is asserted with every call of every test that talks
 * (server/kit/described.h). */

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

    char path[100];
    snprintf(path, sizeof path, "POST /v1/holds/%s/confirm", id);
    assert_int_equal(talk_twice(&t, path, "late", "{\"late\":\"reacquire\"}"), 201);
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
        assert_int_equal(talkf(&t, NULL, body, "POST /v1/claims/%s/abandon", ends[i]), 200);
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
        { "POST /v1/batch",
          "{\"op\":\"write\",\"client\":\"c\",\"sequence\":1,\"name\":\"n\",\"value\":1}" },
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
        "/v1/claims",
        "/v1/claims/fail",
        "/v1/leases/l",
        "/v1/registers/x",
        "/v1/tokens/k1",
        "/v1/tokens?client=c&sequence=1",
        "/v1/audit",
        "/v1/head",
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

/* Who may make which call: 401 and 403 for every row of the table. */

static char auth_path[600];

/* A file of three credentials: each is "acme-" and its role. */
static void auth_write(void)
{
    static const char *const roles[] = { "read", "write", "admin" };
    FILE *f = fopen(auth_path, "w");
    assert_non_null(f);
    assert_int_equal(chmod(auth_path, 0600), 0);
    for (size_t i = 0; i < 3; i++) {
        uint8_t digest[HF_DIGEST_SIZE];
        char credential[32];
        snprintf(credential, sizeof credential, "acme-%s", roles[i]);
        hf_sha256_of(credential, strlen(credential), digest);
        fprintf(f, "acme %s ", roles[i]);
        for (size_t k = 0; k < sizeof digest; k++)
            fprintf(f, "%02x", digest[k]);
        fputs("\n", f);
    }
    assert_int_equal(fclose(f), 0);
}

static int setup_auth(void **state)
{
    (void)state;
    talk_server(&s);
    snprintf(auth_path, sizeof auth_path, "%s/auth", s.dir);
    auth_write();
    s.options.auth_file = auth_path;
    server_start(&s);
    talk_open(&t, &s);
    return 0;
}

static const char *method_of(const struct hf_call *call)
{
    return call->method == HF_HTTP_GET      ? "GET"
           : call->method == HF_HTTP_PUT    ? "PUT"
           : call->method == HF_HTTP_DELETE ? "DELETE"
                                            : "POST";
}

/* A path of the call; what its parameter names is not there. */
static const char *path_of(const struct hf_call *call)
{
    static char path[100];
    const char *open = strchr(call->path, '{');
    if (open)
        snprintf(path, sizeof path, "%.*snone%s", (int)(open - call->path), call->path,
                 strchr(open, '}') + 1);
    return open ? path : call->path;
}

static void nobody_is_let_in_without_a_credential(void **state)
{
    (void)state;
    static const char *const fields[] = { NULL,
                                          "Authorization: Bearer acme-guess\r\n",
                                          "Authorization: Bearer\r\n",
                                          "Authorization: Basic YWNtZTphZG1pbg==\r\n",
                                          "Authorization: acme-admin\r\n",
                                          "Authorization: Bearer acme-admin x\r\n" };
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
        talk_as(&t, fields[f]);
        for (size_t i = 0; i < hf_call_count; i++) {
            const struct hf_call *call = &hf_calls[i];
            int status = talkf(&t, NULL, NULL, "%s %s", method_of(call), path_of(call));
            if (call->role == HF_ROLE_NONE) {
                assert_int_equal(status, 200);
                continue;
            }
            talk_refused(&t, 401, "unauthorized");
            assert_string_equal(reply_field(&t.got, "WWW-Authenticate"), "Bearer");
        }
    }
    talk_as(&t, "Authorization: bearer acme-read\r\n"); /* the scheme's name has no case */
    assert_int_equal(talk(&t, "GET /v1/holds", NULL, NULL), 200);
}

static void each_role_may_what_those_below_may(void **state)
{
    (void)state;
    static const char *const roles[] = { "read", "write", "admin" };
    for (size_t r = 0; r < 3; r++) {
        char field[64];
        snprintf(field, sizeof field, "Authorization: Bearer acme-%s\r\n", roles[r]);
        talk_as(&t, field);
        for (size_t i = 0; i < hf_call_count; i++) {
            const struct hf_call *call = &hf_calls[i];
            int status = talkf(&t, NULL, NULL, "%s %s", method_of(call), path_of(call));
            if (call->role > HF_ROLE_READ + r || call->kind == HF_CALL_HEAD) /* for operators */
                talk_refused(&t, 403, "forbidden");
            else
                assert_true(status == 200 || status == 400 || status == 404);
        }
    }
    talk_as(&t, "Authorization: Bearer acme-admin\r\n");
    assert_true(talk_figure(&t, "holdfast_refusals_total{code=\"forbidden\"}") > 10);
    assert_true(talk_figure(&t, "holdfast_refusals_total{code=\"unauthorized\"}") == 0);
}

/* An answer to HEAD has no body, whoever refuses it: what follows on the connection must not be
 * read as one. */
static void a_refusal_of_head_has_no_body(void **state)
{
    (void)state;
    talk_as(&t, NULL);
    assert_int_equal(talk(&t, "HEAD /metrics", NULL, NULL), 401);
    talk_as(&t, "Authorization: Bearer acme-read\r\n");
    assert_int_equal(talk(&t, "HEAD /v1/export", NULL, NULL), 403);
    assert_int_equal(talk(&t, "GET /healthz", NULL, NULL), 200);
    talk_is(&t, "{\"ok\":true}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_auth, calls_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS_TEST(all_that_is_described_happens),
        TEST(nobody_is_let_in_without_a_credential),
        TEST(each_role_may_what_those_below_may),
        TEST(a_refusal_of_head_has_no_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
