/* Who may call what: credentials, roles, other origins, and the auth file while the server runs.
 * What tenants see of each other is in tenants.c. */
#include "api/call.h"
#include "base/hash.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static struct server s;
static char path[600];

/* ---- The auth file ---- */

struct credential {
    const char *tenant, *role, *credential;
};

static const struct credential people[] = { { "acme", "read", "reader" },
                                            { "acme", "write", "writer" },
                                            { "acme", "admin", "boss" } };

/* Replace the file as an administrator should: another one, renamed. */
static void file_write(const char *text, mode_t mode)
{
    char beside[620];
    snprintf(beside, sizeof beside, "%s.new", path);
    FILE *f = fopen(beside, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(beside, mode), 0);
    assert_int_equal(rename(beside, path), 0);
}

static void credentials_write(const struct credential *list, size_t count)
{
    char text[2048] = "# people\n";
    for (size_t i = 0; i < count; i++) {
        uint8_t digest[HF_DIGEST_SIZE];
        size_t at = strlen(text);
        hf_sha256_of(list[i].credential, strlen(list[i].credential), digest);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s %s ", list[i].tenant, list[i].role);
        for (size_t k = 0; k < HF_DIGEST_SIZE; k++, at += 2)
            snprintf(text + at, sizeof text - at, "%02x", digest[k]);
        snprintf(text + at, sizeof text - at, "\n");
    }
    file_write(text, 0600);
}

static int setup_stopped(void **state)
{
    (void)state;
    server_init(&s);
    snprintf(path, sizeof path, "%s/credentials", s.dir);
    credentials_write(people, 3);
    s.options.auth_file = path;
    return 0;
}

static int setup(void **state)
{
    setup_stopped(state);
    s.options.threads = 2;
    server_start(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    server_end(&s);
    return 0;
}

static const char *bearer(const char *credential)
{
    static char field[256];
    snprintf(field, sizeof field, "Authorization: Bearer %s\r\n", credential);
    return field;
}

static int status_of(const char *what, const char *fields)
{
    struct reply r;
    server_ask(&s, what, fields, NULL, &r);
    int status = r.status;
    reply_free(&r);
    return status;
}

/* ---- Roles ---- */

static const char *method_name(enum hf_http_method method)
{
    return method == HF_HTTP_GET      ? "GET"
           : method == HF_HTTP_PUT    ? "PUT"
           : method == HF_HTTP_DELETE ? "DELETE"
                                      : "POST";
}

/* The call as a request, with something in the place of a parameter. */
static void call_text(const struct hf_call *call, const char *method, char *out, size_t size)
{
    const char *open = strchr(call->path, '{');
    if (open)
        snprintf(out, size, "%s %.*snone%s", method, (int)(open - call->path), call->path,
                 strchr(open, '}') + 1);
    else
        snprintf(out, size, "%s %s", method, call->path);
}

/* What somebody with this role is answered: 401, 403, or something else, which is 0 here. */
static int expected(const struct hf_call *call, enum hf_role role)
{
    if (call->kind == HF_CALL_HEAD && role > HF_ROLE_NONE)
        return 403; /* it is for operators */
    if (role >= call->role)
        return 0;
    return role == HF_ROLE_NONE ? 401 : 403;
}

static void judge(const struct hf_call *call, const char *method, enum hf_role role,
                  const char *fields)
{
    char what[200];
    struct reply r;
    int want = expected(call, role);
    bool head = strcmp(method, "HEAD") == 0;
    int fd = server_connect(&s);
    call_text(call, method, what, sizeof what);
    assert_true(server_call(fd, what, fields, NULL, &r));
    bool refused = r.status == 401 || r.status == 403;
    if (want ? r.status != want : refused)
        fail_msg("%s with role %d: expected %d, got %d %s", what, (int)role, want, r.status,
                 r.body);
    if (want && !head)
        watch_refused(&r, want, want == 401 ? "unauthorized" : "forbidden",
                      want == 401                  ? "Bearer"
                      : call->kind == HF_CALL_HEAD ? "operator"
                                                   : "role");
    const char *ask = reply_field(&r, "WWW-Authenticate");
    assert_int_equal(ask != NULL, want == 401);
    if (ask)
        assert_string_equal(ask, "Bearer");
    reply_free(&r);
    /* Refused or not, the connection is in step: the next answer is that of the next request. */
    assert_true(server_call(fd, "GET /healthz", "", NULL, &r));
    assert_int_equal(r.status, 200);
    assert_string_equal(r.body, "{\"ok\":true}");
    reply_free(&r);
    close(fd);
}

static void every_call_asks_for_its_role(void **state)
{
    (void)state;
    size_t judged = 0;
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        for (int head = 0; head < (call->method == HF_HTTP_GET ? 2 : 1); head++) {
            const char *method = head ? "HEAD" : method_name(call->method);
            judge(call, method, HF_ROLE_NONE, "");
            judge(call, method, HF_ROLE_NONE, bearer("nobody"));
            judge(call, method, HF_ROLE_READ, bearer("reader"));
            judge(call, method, HF_ROLE_WRITE, bearer("writer"));
            judge(call, method, HF_ROLE_ADMIN, bearer("boss"));
            judged += 5;
        }
    }
    assert_true(judged >= 5 * 40);
}

/* The table says who may what; this says what the table must say, by the interface. */
static void the_roles_are_the_right_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        static const char *const open[] = { "/healthz", "/readyz", "/", "/v1/openapi.json" };
        enum hf_role role = call->method == HF_HTTP_GET ? HF_ROLE_READ : HF_ROLE_WRITE;
        if (strcmp(call->path, "/v1/guards/{name}/check") == 0)
            role = HF_ROLE_READ;
        if (strcmp(call->path, "/v1/export") == 0)
            role = HF_ROLE_ADMIN;
        for (size_t k = 0; k < sizeof open / sizeof *open; k++)
            if (strcmp(call->path, open[k]) == 0)
                role = HF_ROLE_NONE;
        if (call->role != role)
            fail_msg("%s %s is for role %d", method_name(call->method), call->path,
                     (int)call->role);
    }
}

/* Who may not is refused before the body comes, and the connection is closed because nobody will
 * read it. */
static void the_body_of_a_stranger_is_not_read(void **state)
{
    (void)state;
    static const char *const credentials[] = { "nobody", "reader" };
    for (int i = 0; i < 2; i++) {
        struct reply r;
        char request[512];
        int fd = server_connect(&s);
        snprintf(request, sizeof request,
                 "POST /v1/holds HTTP/1.1\r\nHost: h\r\n%sContent-Length: 1000000\r\nExpect: "
                 "100-continue\r\n\r\n",
                 bearer(credentials[i]));
        assert_true(server_send_text(fd, request));
        assert_true(server_receive(fd, &r, false));
        watch_refused(&r, i ? 403 : 401, i ? "forbidden" : "unauthorized", NULL);
        assert_string_equal(reply_field(&r, "Connection"), "close");
        reply_free(&r);
        watch_ends(fd);
        close(fd);
    }
}

/* ---- Credentials ---- */

static void credentials_that_are_none(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "Authorization: Bearer\r\n", "Authorization: Bearer \r\n", "Authorization:\r\n",
        "Authorization: reader\r\n", "Authorization: Basic cmVhZGVyOg==\r\n",
        "Authorization: Bearerreader\r\n", "Authorization: Bearer\treader\r\n",
        "Authorization: Bearer reade\r\n", "Authorization: Bearer readerr\r\n",
        "Authorization: Bearer Reader\r\n", "Authorization: Bearer reader extra\r\n",
        "Authorization: Bearer reader,boss\r\n", "Authorization: Bearer \"reader\"\r\n",
        "Authorization: Token reader\r\n",
        /* the hash of it, as it stands in the file */
        ("Authorization: Bearer "
         "3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30\r\n"),
        "Proxy-Authorization: Bearer reader\r\n", "X-Authorization: Bearer reader\r\n"
    };
    static const char *const good[] = { "Authorization: Bearer reader\r\n",
                                        "authorization: bearer reader\r\n",
                                        "AUTHORIZATION:   BEARER    reader  \r\n" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct reply r;
        server_ask(&s, "GET /v1/holds", bad[i], NULL, &r);
        if (r.status != 401)
            fail_msg("%s: %d", bad[i], r.status);
        watch_refused(&r, 401, "unauthorized", "Authorization: Bearer");
        reply_free(&r);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(status_of("GET /v1/holds", good[i]), 200);
    /* Two of them: it would not be clear who calls. */
    assert_int_equal(status_of("GET /v1/holds",
                               "Authorization: Bearer reader\r\nAuthorization: Bearer boss\r\n"),
                     400);
}

/* A credential of nearly the size of a head is wrong like any other. */
static void a_long_credential_is_wrong_too(void **state)
{
    (void)state;
    char fields[15100] = "Authorization: Bearer ";
    size_t at = strlen(fields);
    memset(fields + at, 'x', 15000);
    memcpy(fields + at + 15000, "\r\n", 3);
    assert_int_equal(status_of("GET /v1/holds", fields), 401);
}

/* ---- The file while the server runs ---- */

static void a_new_file_counts_from_the_signal_on(void **state)
{
    (void)state;
    static const struct credential later[] = { { "acme", "read", "newcomer" },
                                               { "acme", "read", "boss" } };
    struct reply r;
    int fd = server_connect(&s);
    assert_true(server_call(fd, "GET /v1/holds", bearer("reader"), NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    credentials_write(later, 2);
    assert_int_equal(status_of("GET /v1/holds", bearer("newcomer")),
                     401); /* not before it is told */
    watch_hangup(&s, " reloaded ");
    assert_int_equal(status_of("GET /v1/holds", bearer("newcomer")), 200);
    assert_int_equal(status_of("GET /v1/holds", bearer("writer")), 401);
    assert_int_equal(status_of("GET /v1/export", bearer("boss")), 403); /* another role now */
    assert_int_equal(status_of("GET /v1/holds", bearer("boss")), 200);
    /* On a connection that was there before, too. */
    assert_true(server_call(fd, "GET /v1/holds", bearer("reader"), NULL, &r));
    watch_refused(&r, 401, "unauthorized", NULL);
    reply_free(&r);
    close(fd);
}

static void a_broken_file_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        mode_t mode;
        const char *words; /* NULL: the file is not there */
    } files[] = { { "acme read nonsense\n", 0600, "credentials:1: the third word" },
                  { "", 0600, "no credential" },
                  { "acme owner 0000000000000000000000000000000000000000000000000000000000000000\n",
                    0600, "role" },
                  { "# nothing\n", 0602, "written by every user" },
                  { NULL, 0, "cannot be opened" } };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (files[i].text)
            file_write(files[i].text, files[i].mode);
        else
            assert_int_equal(unlink(path), 0);
        watch_hangup(&s, "error reload-refused");
        assert_true(watch_log(&s, files[i].words, 1));
        assert_int_equal(status_of("GET /v1/holds", bearer("reader")), 200);
        assert_int_equal(status_of("GET /v1/holds", bearer("nobody")), 401);
    }
    credentials_write(people, 1);
    watch_hangup(&s, " reloaded ");
    assert_int_equal(status_of("GET /v1/holds", bearer("boss")), 401);
}

/* Nobody notices that the file is read again and again. */
static void reading_it_again_disturbs_nobody(void **state)
{
    (void)state;
    enum { TIMES = 40 };
    int fd = server_connect(&s);
    for (unsigned i = 1; i <= TIMES; i++) {
        assert_int_equal(kill(s.pid, SIGHUP), 0);
        for (int k = 0; k < 50; k++) {
            struct reply r;
            assert_true(server_call(fd, "GET /v1/registers/none", bearer("reader"), NULL, &r));
            assert_int_equal(r.status, 404);
            reply_free(&r);
        }
        assert_true(watch_log(&s, " reloaded ", i));
    }
    close(fd);
}

/* ---- Starting ---- */

static void it_does_not_start_with(const char *sentence)
{
    assert_int_equal(server_start_fails(&s), 2);
    char *log = server_log(&s);
    if (!strstr(log, sentence))
        fail_msg("\"%s\" is not said, but: %s", sentence, log);
    free(log);
}

static void without_credentials_only_this_machine_may_call(void **state)
{
    (void)state;
    s.options.auth_file = NULL;
    s.options.listen = "0.0.0.0:0";
    it_does_not_start_with(
        "holdfast: without --auth-file the server listens on loopback addresses only");
    assert_int_equal(access(s.data, F_OK), -1); /* nothing was made */
    s.options.auth_file = path;
    s.options.listen = "127.0.0.1:0";
    server_start(&s);
    assert_int_equal(status_of("GET /v1/holds", bearer("reader")), 200);
}

static void a_wrong_file_is_told_at_the_start(void **state)
{
    (void)state;
    file_write("acme read\n", 0600);
    it_does_not_start_with("credentials:1: expected three words");
    credentials_write(people, 3);
    assert_int_equal(chmod(path, 0602), 0);
    it_does_not_start_with("may be written by every user");
    assert_int_equal(unlink(path), 0);
    it_does_not_start_with("cannot be opened");
    s.options.listen = "nowhere";
    credentials_write(people, 3);
    it_does_not_start_with("expected an address and a port");
}

/* Hashes of credentials open nothing, but other users need not read them. */
static void a_file_that_all_may_read_is_remarked_upon(void **state)
{
    (void)state;
    assert_int_equal(chmod(path, 0644), 0);
    server_start(&s);
    assert_true(watch_log(&s, "credentials may be read by every user", 1));
    assert_int_equal(status_of("GET /v1/holds", bearer("reader")), 200);
}

/* ---- Pages of other sites ---- */

static void another_origin_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        bool refused;
    } origins[] = { { "Origin: http://localhost\r\n", false },
                    { "Origin: https://localhost\r\n", true },
                    { "Origin: http://localhost:80\r\n", true },
                    { "Origin: http://localhost.example\r\n", true },
                    { "Origin: http://example\r\n", true },
                    { "Origin: null\r\n", true },
                    { "Origin:\r\n", true },
                    { "Origin: http://localhost http://example\r\n", true },
                    { "Origin: http://LOCALHOST\r\n", true },
                    { "", false } };
    static const char *const calls[] = { "GET /v1/holds", "POST /v1/holds", "GET /healthz",
                                         "GET /" };
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++)
        for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
            char fields[400];
            struct reply r;
            snprintf(fields, sizeof fields, "%s%s", bearer("boss"), origins[i].fields);
            server_ask(&s, calls[k], fields, k == 1 ? "{}" : NULL, &r);
            if (origins[i].refused)
                watch_refused(&r, 403, "forbidden", "another origin");
            else
                assert_int_not_equal(r.status, 403);
            assert_null(strstr(r.head, "Access-Control-"));
            reply_free(&r);
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_call_asks_for_its_role),
        cmocka_unit_test(the_roles_are_the_right_ones),
        TEST(the_body_of_a_stranger_is_not_read),
        TEST(credentials_that_are_none),
        TEST(a_long_credential_is_wrong_too),
        TEST(a_new_file_counts_from_the_signal_on),
        TEST(a_broken_file_changes_nothing),
        TEST(reading_it_again_disturbs_nobody),
        cmocka_unit_test_setup_teardown(without_credentials_only_this_machine_may_call,
                                        setup_stopped, teardown),
        cmocka_unit_test_setup_teardown(a_wrong_file_is_told_at_the_start, setup_stopped, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_all_may_read_is_remarked_upon, setup_stopped,
                                        teardown),
        TEST(another_origin_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
