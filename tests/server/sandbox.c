/* The server in its sandbox does all that it does without one: the program itself with --sandbox
 * on, and a store that makes snapshots. What the sandbox forbids is tested in
 * tests/unit/server_sandbox.c. Sanitizers need system calls that it does not allow, so this runs in
 * plain builds only. */
#define _GNU_SOURCE /* syscall */
#include "api/call.h"
#include "base/hash.h"
#include "net/kit/tls.h"
#include "server/kit/talk.h"
#include "server/kit/tls.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct server s;
static char folder[600], credentials[640], program[1024];

static int setup(void **state)
{
    (void)state;
    server_init(&s);
    snprintf(folder, sizeof folder, "%s/conf", s.dir);
    snprintf(credentials, sizeof credentials, "%s/credentials", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    server_end(&s);
    return 0;
}

/* Can this run here? */
static void needs_a_sandbox(void)
{
    if (WATCH_SANITIZED) {
        print_message("skipped: a sanitizer needs calls that the sandbox does not allow\n");
        skip();
    }
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 1) { /* its version */
        print_message("skipped: this kernel has no Landlock\n");
        skip();
    }
}

/* The program, which stands in the folder above that of the tests. */
static const char *program_find(void)
{
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 20);
    assert_true(n > 0);
    program[n] = 0;
    *strrchr(program, '/') = 0;
    strcat(program, "/../holdfast");
    if (access(program, X_OK) != 0) {
        print_message("skipped: there is no program at %s\n", program);
        skip();
    }
    return program;
}

static void credentials_write(const char *credential)
{
    char beside[700];
    uint8_t digest[HF_DIGEST_SIZE];
    snprintf(beside, sizeof beside, "%s.new", credentials);
    FILE *f = fopen(beside, "w");
    assert_non_null(f);
    hf_sha256_of(credential, strlen(credential), digest);
    fprintf(f, "acme admin ");
    for (size_t i = 0; i < HF_DIGEST_SIZE; i++)
        fprintf(f, "%02x", digest[i]);
    fputc('\n', f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(beside, 0600), 0);
    assert_int_equal(rename(beside, credentials), 0);
}

/* Every thread is inside. */
static void is_inside(void)
{
    char path[64];
    unsigned threads = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)s.pid);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char name[400], text[8192];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s/status", path, entry->d_name);
        FILE *f = fopen(name, "r");
        assert_non_null(f);
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
        assert_non_null(strstr(text, "\nSeccomp:\t2\n"));
        assert_non_null(strstr(text, "\nNoNewPrivs:\t1\n"));
        threads++;
    }
    closedir(dir);
    assert_true(threads >= 3);
}

/* Everything that reads, one call after the other. */
static void answers_every_question(struct talk *t)
{
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        if (call->method != HF_HTTP_GET || strchr(call->path, '{'))
            continue;
        int want = call->kind == HF_CALL_HEAD ? 403 : 200; /* the head is for operators */
        bool by_number = strcmp(call->path, "/v1/tokens") == 0;
        const char *query = by_number ? "?client=till&sequence=1" : "";
        if (talkf(t, NULL, NULL, "GET %s%s", call->path, query) != want)
            fail_msg("GET %s: %d %s", call->path, t->got.status, t->got.body);
    }
    assert_int_equal(talk(t, "GET /v1/trace/k1", NULL, NULL), 200);
    assert_int_equal(talk(t, "GET /v1/export?format=sqlite", NULL, NULL), 200);
    assert_memory_equal(t->got.body, "SQLite format 3", 16);
    assert_int_equal(talk(t, "GET /v1/export?format=jsonl", NULL, NULL), 200);
}

static void the_program_does_its_work_inside(void **state)
{
    (void)state;
    struct talk t;
    needs_a_sandbox();
    const char *files[] = { program_find(), "serve",       "--data",      s.data,
                            "--listen",     "127.0.0.1:0", "--auth-file", credentials,
                            "--sandbox",    "on",          NULL };
    const char *database[] = { files[0],    "serve",       "--store",
                               "postgres",  "--postgres",  s.options.store.postgres,
                               "--listen",  "127.0.0.1:0", "--auth-file",
                               credentials, "--sandbox",   "on",
                               NULL };
    s.argv = both_is_postgres() ? database : files;
    credentials_write("first");
    server_start(&s);
    is_inside();
    talk_open(&t, &s);
    talk_as(&t, "Authorization: Bearer first\r\n");
    assert_int_equal(talk(&t, "POST /v1/holds", "k1",
                          "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    assert_int_equal(talk(&t, "POST /v1/batch", NULL,
                          "{\"op\":\"write\",\"client\":\"till\",\"sequence\":1,"
                          "\"name\":\"y\",\"value\":1}\n"),
                     200);
    answers_every_question(&t);
    credentials_write("second"); /* another file, of the same name */
    watch_hangup(&s, " reloaded ");
    talk(&t, "GET /v1/holds", NULL, NULL);
    talk_refused(&t, 401, "unauthorized");
    talk_as(&t, "Authorization: Bearer second\r\n");
    answers_every_question(&t);
    is_inside();
    talk_close(&t);
    assert_int_equal(server_stop(&s), 0);
    /* And again, over the store that it made. */
    server_start(&s);
    talk_open(&t, &s);
    talk_as(&t, "Authorization: Bearer second\r\n");
    assert_int_equal(talk(&t, "POST /v1/holds", "k1",
                          "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    talk_replayed(&t);
    talk_close(&t);
    assert_int_equal(server_stop(&s), 0);
}

/* ---- Background work ---- */

/* Files of the store whose name has this in it. */
static int files_with(const char *text)
{
    int count = 0;
    DIR *dir = opendir(s.data);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += strstr(entry->d_name, text) != NULL;
    closedir(dir);
    return count;
}

/* Write about `size` bytes of journal. */
static void fill(const struct server *to, size_t size)
{
    char value[30000], body[30100];
    memset(value, 'v', sizeof value);
    for (size_t i = 0; i * sizeof value < size; i++) {
        struct reply r;
        char key[32];
        snprintf(key, sizeof key, "fill-%zu", i);
        for (size_t k = 0; k < sizeof value; k += 7)
            value[k] = (char)('a' + (i * 31 + k * 17 + k / 100) % 26);
        snprintf(body, sizeof body, "{\"value\":\"%.*s\"}", (int)sizeof value, value);
        server_ask_keyed(to, "PUT /v1/registers/x", key, body, &r);
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
}

static void snapshots_are_made_inside(void **state)
{
    (void)state;
    struct reply r;
    both_needs_files();
    needs_a_sandbox();
    s.options.sandbox = true;
    s.options.store.segment_max_bytes = 4 << 20;
    s.options.store.snapshot_every_bytes = 8 << 20;
    server_start(&s);
    is_inside();
    fill(&s, 24 << 20);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; files_with("snapshot") == 0;
         server_pause_ms(20))
        if (server_clock_ms() > until) {
            char *log = server_log(&s);
            fail_msg("there is no snapshot: %s", log);
        }
    server_ask(&s, "GET /v1/audit", "", NULL, &r);
    assert_int_equal(r.status, 200);
    assert_false(reply_has(&r, "\"outcome\":\"broken\""));
    reply_free(&r);
    assert_int_equal(server_stop(&s), 0);
    server_start(&s); /* recovery, too, is done inside */
    is_inside();
    server_ask_keyed(&s, "PUT /v1/registers/x", "fill-0", "{\"value\":1}", &r);
    watch_refused(&r, 422, "token-collision", NULL);
    reply_free(&r);
}

/* ---- TLS ---- */

static void ask_over_tls(void)
{
    struct client c;
    struct reply r;
    client_connect(&c, &s, NULL);
    client_ask(&c, "GET /v1/holds", "", NULL, 200, &r);
    reply_free(&r);
    client_close(&c);
}

static void tls_is_served_and_renewed_inside(void **state)
{
    (void)state;
    struct tls_files files;
    needs_a_sandbox();
    tls_files_make(&files, folder, "server", -60, 86400, NULL);
    s.options.sandbox = true;
    s.options.tls_cert = files.cert;
    s.options.tls_key = files.key;
    server_start(&s);
    is_inside();
    ask_over_tls();
    assert_int_equal(unlink(files.cert), 0);
    assert_int_equal(unlink(files.key), 0);
    tls_files_make(&files, folder, "server", -60, 86400, NULL);
    watch_hangup(&s, " reloaded ");
    ask_over_tls();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_program_does_its_work_inside),
        TEST(snapshots_are_made_inside),
        TEST(tls_is_served_and_renewed_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
