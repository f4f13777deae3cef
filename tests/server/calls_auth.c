/* Who may call, and what a tenant sees of another: nothing. */
#include "api/call.h"
#include "base/hash.h"
#include "support/server_talk.h"
#include "support/test.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE "{\"resource\":\"room\",\"requester\":\"q\",\"duration\":\"1h\"}"

static struct server s;
static struct talk acme, zeta;
static char auth_path[600];

/* Write the file anew: each token is "TENANT-ROLE", such as "acme-write". */
static void auth_write(const char *const tokens[], size_t count)
{
    FILE *f = fopen(auth_path, "w");
    assert_non_null(f);
    assert_int_equal(chmod(auth_path, 0600), 0);
    fputs("# who may call\n", f);
    for (size_t i = 0; i < count; i++) {
        uint8_t digest[HF_DIGEST_SIZE];
        const char *dash = strchr(tokens[i], '-');
        hf_sha256_of(tokens[i], strlen(tokens[i]), digest);
        fprintf(f, "%.*s %s ", (int)(dash - tokens[i]), tokens[i], dash + 1);
        for (size_t k = 0; k < sizeof digest; k++)
            fprintf(f, "%02x", digest[k]);
        fputs("\n", f);
    }
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    (void)state;
    static const char *const tokens[] = { "acme-admin", "acme-write", "acme-read", "zeta-admin" };
    talk_server(&s);
    snprintf(auth_path, sizeof auth_path, "%s/auth", s.dir);
    auth_write(tokens, 4);
    s.options.auth_file = auth_path;
    server_start(&s);
    talk_open(&acme, &s);
    talk_open(&zeta, &s);
    talk_as(&acme, "Authorization: Bearer acme-admin\r\n");
    talk_as(&zeta, "Authorization: Bearer zeta-admin\r\n");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    talk_close(&acme);
    talk_close(&zeta);
    server_end(&s);
    return 0;
}

static const char *method_of(const struct hf_call *call)
{
    return call->method == HF_HTTP_GET ? "GET" : call->method == HF_HTTP_PUT ? "PUT" : "POST";
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

static void nobody_is_let_in_without_a_token(void **state)
{
    (void)state;
    static const char *const fields[] = { NULL,
                                          "Authorization: Bearer acme-guess\r\n",
                                          "Authorization: Bearer\r\n",
                                          "Authorization: Basic YWNtZTphZG1pbg==\r\n",
                                          "Authorization: acme-admin\r\n",
                                          "Authorization: Bearer acme-admin x\r\n" };
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
        talk_as(&acme, fields[f]);
        for (size_t i = 0; i < hf_call_count; i++) {
            const struct hf_call *call = &hf_calls[i];
            int status = talkf(&acme, NULL, NULL, "%s %s", method_of(call), path_of(call));
            if (call->role == HF_ROLE_NONE) {
                assert_int_equal(status, 200);
                continue;
            }
            talk_refused(&acme, 401, "unauthorized");
            assert_string_equal(reply_field(&acme.got, "WWW-Authenticate"), "Bearer");
        }
    }
    talk_as(&acme, "Authorization: bearer acme-read\r\n"); /* the scheme's name has no case */
    assert_int_equal(talk(&acme, "GET /v1/holds", NULL, NULL), 200);
}

/* What was refused is refused before its body: a body that is announced is not waited for. */
static void a_refusal_does_not_wait_for_the_body(void **state)
{
    (void)state;
    struct reply r;
    int fd = server_connect(&s);
    assert_true(
        server_send_text(fd, "POST /v1/batch HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{\"op\":"));
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(r.status, 401);
    reply_free(&r);
    assert_true(server_closed(fd, 10000));
    close(fd);
}

static void each_role_may_what_those_below_may(void **state)
{
    (void)state;
    static const char *const roles[] = { "read", "write", "admin" };
    for (size_t r = 0; r < 3; r++) {
        char field[64];
        snprintf(field, sizeof field, "Authorization: Bearer acme-%s\r\n", roles[r]);
        talk_as(&acme, field);
        for (size_t i = 0; i < hf_call_count; i++) {
            const struct hf_call *call = &hf_calls[i];
            int status = talkf(&acme, NULL, NULL, "%s %s", method_of(call), path_of(call));
            if (call->role > HF_ROLE_READ + r)
                talk_refused(&acme, 403, "forbidden");
            else
                assert_true(status == 200 || status == 400 || status == 404);
        }
    }
    talk_as(&acme, "Authorization: Bearer acme-admin\r\n");
    assert_true(talk_figure(&acme, "holdfast_refusals_total{code=\"forbidden\"}") > 10);
    assert_true(talk_figure(&acme, "holdfast_refusals_total{code=\"unauthorized\"}") == 0);
}

/* An answer to HEAD has no body, whoever refuses it: what follows on the connection must not be read as one. */
static void a_refusal_of_head_has_no_body(void **state)
{
    (void)state;
    talk_as(&acme, NULL);
    assert_int_equal(talk(&acme, "HEAD /metrics", NULL, NULL), 401);
    talk_as(&acme, "Authorization: Bearer acme-read\r\n");
    assert_int_equal(talk(&acme, "HEAD /v1/export", NULL, NULL), 403);
    assert_int_equal(talk(&acme, "GET /healthz", NULL, NULL), 200);
    talk_is(&acme, "{\"ok\":true}");
}

static void tenants_share_nothing(void **state)
{
    (void)state;
    char id[32], trace[64];
    assert_int_equal(talk(&acme, "POST /v1/holds", "k", PLACE), 201);
    snprintf(id, sizeof id, "%s", reply_text(&acme.got, "id"));
    assert_int_equal(talk(&acme, "PUT /v1/guards/g", NULL, "{\"window\":\"1h\"}"), 200);
    assert_int_equal(talk(&acme, "POST /v1/guards/g/record", NULL, "{\"identity\":\"i\"}"), 200);
    assert_int_equal(talk(&acme, "POST /v1/claims", NULL, "{\"key\":\"c\",\"payload\":1}"), 201);
    assert_int_equal(talk(&acme, "POST /v1/leases/l", "k2", "{\"holder\":\"acme\",\"ttl\":\"1h\"}"), 201);
    assert_int_equal(talk(&acme, "PUT /v1/registers/x", "k3", "{\"value\":\"acme's\"}"), 200);

    snprintf(trace, sizeof trace, "GET /v1/trace/%s", id);
    const char *const hidden[] = { "GET /v1/tokens/k", "GET /v1/resources/room",   "GET /v1/guards/g",
                                   "GET /v1/claims/c", "GET /v1/leases/l",         "GET /v1/registers/x",
                                   "GET /v1/trace/k",  "GET /v1/guards/g/entries", trace };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        talk(&zeta, hidden[i], NULL, NULL);
        talk_refused(&zeta, 404, "not-known");
    }
    static const char *const verbs[] = { "", "/confirm", "/release", "/expire", "/reverse" };
    for (size_t i = 0; i < 5; i++) {
        char key[8];
        snprintf(key, sizeof key, "z%zu", i);
        talkf(&zeta, i ? key : NULL, NULL, "%s /v1/holds/%s%s", i ? "POST" : "GET", id, verbs[i]);
        talk_refused(&zeta, 404, "not-known");
    }
    static const char *const lists[] = { "holds", "resources", "guards" };
    for (size_t i = 0; i < 3; i++) {
        char empty[64];
        snprintf(empty, sizeof empty, "{\"%s\":[],\"next_cursor\":null}", lists[i]);
        assert_int_equal(talkf(&zeta, NULL, NULL, "GET /v1/%s", lists[i]), 200);
        talk_is(&zeta, empty);
    }
    /* The same names and keys are free for the other. */
    assert_int_equal(talk(&zeta, "POST /v1/holds", "k", PLACE), 201);
    talk_first(&zeta);
    assert_string_not_equal(reply_text(&zeta.got, "id"), id);
    assert_int_equal(talk(&zeta, "POST /v1/claims", NULL, "{\"key\":\"c\",\"payload\":2}"), 201);
    assert_int_equal(talk(&zeta, "POST /v1/leases/l", "k2", "{\"holder\":\"zeta\",\"ttl\":\"1h\"}"), 201);
    assert_int_equal(talk(&zeta, "PUT /v1/registers/x", "k3", "{\"value\":\"zeta's\"}"), 200);
    assert_int_equal(talk(&zeta, "POST /v1/batch", NULL,
                          "{\"op\":\"place_hold\",\"key\":\"k\",\"resource\":\"room\",\"requester\":\"q\","
                          "\"duration\":\"1h\"}"),
                     200);
    assert_true(reply_has(&zeta.got, "\"replayed\":true"));
    assert_false(reply_has(&zeta.got, id));
    assert_int_equal(talk(&zeta, "GET /v1/export", NULL, NULL), 200);
    assert_false(reply_has(&zeta.got, id));
    assert_false(reply_has(&zeta.got, "acme"));
    assert_int_equal(talk(&zeta, "GET /v1/audit", NULL, NULL), 200);
    assert_false(reply_has(&zeta.got, "acme"));
    assert_false(reply_has(&zeta.got, "\"outcome\":\"broken\""));
    /* And what the first one has is as it was. */
    assert_int_equal(talk(&acme, "POST /v1/holds", "k", PLACE), 201);
    talk_replayed(&acme);
    assert_string_equal(reply_text(&acme.got, "id"), id);
    assert_int_equal(talk(&acme, "GET /v1/registers/x", NULL, NULL), 200);
    assert_string_equal(reply_text(&acme.got, "value"), "acme's");
}

/* A page of another site may not use the rights of a browser that happens to reach the server. */
static void a_foreign_origin_is_refused(void **state)
{
    (void)state;
    talk_as(&acme, "Authorization: Bearer acme-admin\r\nOrigin: http://evil.example\r\n");
    assert_int_equal(talk(&acme, "POST /v1/holds", "k", PLACE), 403);
    talk_refused(&acme, 403, "forbidden");
    talk_as(&acme, "Authorization: Bearer acme-admin\r\nOrigin: http://localhost\r\n");
    assert_int_equal(talk(&acme, "POST /v1/holds", "k", PLACE), 201);
    talk_first(&acme);
}

static void sighup_reads_the_file_again(void **state)
{
    (void)state;
    static const char *const changed[] = { "zeta-admin", "omega-admin" };
    int64_t until = server_clock_ms() + 10000;
    assert_int_equal(talk(&acme, "GET /v1/holds", NULL, NULL), 200);
    auth_write(changed, 2);
    assert_int_equal(kill(s.pid, SIGHUP), 0);
    while (talk(&acme, "GET /v1/holds", NULL, NULL) == 200 && server_clock_ms() < until)
        server_pause_ms(5);
    talk_refused(&acme, 401, "unauthorized");
    assert_int_equal(talk(&zeta, "GET /v1/holds", NULL, NULL), 200);
    talk_as(&acme, "Authorization: Bearer omega-admin\r\n");
    assert_int_equal(talk(&acme, "GET /v1/holds", NULL, NULL), 200);
    /* One that cannot be read leaves what was. */
    FILE *f = fopen(auth_path, "w");
    assert_non_null(f);
    fputs("this is no credential\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(kill(s.pid, SIGHUP), 0);
    bool said = false;
    while (!said && server_clock_ms() < until) {
        server_pause_ms(5);
        char *log = server_log(&s);
        said = strstr(log, "reload-refused") != NULL;
        free(log);
    }
    assert_true(said);
    assert_int_equal(talk(&acme, "GET /v1/holds", NULL, NULL), 200);
}

static void it_does_not_start_with_a_file_that_makes_no_sense(void **state)
{
    (void)state;
    assert_int_equal(server_stop(&s), 0);
    FILE *f = fopen(auth_path, "w");
    assert_non_null(f);
    fputs("acme owner 00\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(server_start_fails(&s), 2);
    char *log = server_log(&s);
    assert_non_null(strstr(log, auth_path));
    free(log);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nobody_is_let_in_without_a_token),
        TEST(a_refusal_does_not_wait_for_the_body),
        TEST(each_role_may_what_those_below_may),
        TEST(a_refusal_of_head_has_no_body),
        TEST(tenants_share_nothing),
        TEST(a_foreign_origin_is_refused),
        TEST(sighup_reads_the_file_again),
        TEST(it_does_not_start_with_a_file_that_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
