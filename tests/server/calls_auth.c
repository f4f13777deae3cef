/* Who may make which call: 401 and 403 for every row of the table. */
#include "api/call.h"
#include "base/hash.h"
#include "server/kit/calls.h"

#include <sys/stat.h>

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

static int setup(void **state)
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
            if (call->role > HF_ROLE_READ + r)
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, calls_teardown)
    const struct CMUnitTest tests[] = {
        TEST(nobody_is_let_in_without_a_credential),
        TEST(each_role_may_what_those_below_may),
        TEST(a_refusal_of_head_has_no_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
