/* Every case of tests/http/hostile over a real connection, whole and in pieces, while another
 * client is served as if nothing happened. */
#include "server/kit/hostile.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTEWISE_MAX = 1500, GROWTH_KIB = 16 * 1024 };

static struct hf_hostile all;

/* The two servers of the README, and somebody who is served by each all the time. */
struct scene {
    struct server server[2]; /* plain, auth */
    int control[2];
    long before_kib[2];
    char credentials[600];
    unsigned failures;
};

static struct scene scene;

/* ---- The servers ---- */

/* A copy that is its owner's alone, whatever the checkout made of the file. */
static void credentials_copy(struct scene *c)
{
    static const char here[] = __FILE__, tail[] = "server/hostile.c";
    char from[1024], text[4096];
    snprintf(from, sizeof from, "%.*shttp/hostile/credentials", (int)(sizeof here - sizeof tail),
             here);
    snprintf(c->credentials, sizeof c->credentials, "%s/credentials", c->server[1].dir);
    FILE *in = fopen(from, "r");
    assert_non_null(in);
    size_t size = fread(text, 1, sizeof text, in);
    assert_true(size > 0 && size < sizeof text);
    fclose(in);
    FILE *out = fopen(c->credentials, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(c->credentials, 0600), 0);
}

static void begin(unsigned threads)
{
    scene = (struct scene){ .failures = 0 };
    for (int i = 0; i < 2; i++) {
        server_init(&scene.server[i]);
        scene.server[i].options.threads = threads;
        if (i == 1) {
            credentials_copy(&scene);
            scene.server[i].options.auth_file = scene.credentials;
        }
        server_start(&scene.server[i]);
        scene.control[i] = server_connect(&scene.server[i]);
    }
}

static int setup(void **state)
{
    (void)state;
    begin(1);
    return 0;
}

static int setup_threads(void **state)
{
    (void)state;
    begin(3);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        close(scene.control[i]);
        server_end(&scene.server[i]);
    }
    return 0;
}

/* ---- One case ---- */

__attribute__((format(printf, 2, 3))) static void complain(const struct hf_hostile_case *c,
                                                           const char *format, ...)
{
    va_list args;
    scene.failures++;
    fprintf(stderr, "%s: %s: ", c->where, c->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Send in pieces: a byte at a time, or in three where that would take too long. The server may
 * close before the end. */
static void send_pieces(int fd, const struct hf_hostile_case *c, uint64_t *random)
{
    if (c->size <= BYTEWISE_MAX) {
        for (size_t i = 0; i < c->size; i++)
            if (!server_send(fd, c->bytes + i, 1))
                return;
        return;
    }
    size_t cut[4] = { 0, test_below(random, c->size), test_below(random, c->size), c->size };
    if (cut[1] > cut[2]) {
        size_t later = cut[1];
        cut[1] = cut[2];
        cut[2] = later;
    }
    for (int i = 0; i < 3; i++) {
        if (!server_send(fd, c->bytes + cut[i], cut[i + 1] - cut[i]))
            return;
        server_pause_ms(2); /* so that the pieces are mostly read one by one */
    }
}

/* The other client gets what it asks for, with the case's connection still open. */
static void control_works(const struct hf_hostile_case *c)
{
    struct reply r;
    if (!server_call(scene.control[c->auth], "GET /healthz", "", NULL, &r) || r.status != 200) {
        complain(c, "another client was not served");
        close(scene.control[c->auth]);
        scene.control[c->auth] = server_connect(&scene.server[c->auth]);
    }
    reply_free(&r);
}

static bool answers_are_right(int fd, const struct hf_hostile_case *c)
{
    for (size_t i = 0; i < c->answers; i++) {
        struct reply r;
        if (!server_receive(fd, &r, false)) {
            complain(c, "answer %zu did not come", i + 1);
            return false;
        }
        const char *wrong = r.status >= 400 ? watch_problem(&r) : NULL;
        bool allowed = hf_hostile_allows(c, i, (unsigned)r.status);
        if (!allowed)
            complain(c, "answer %zu is %d: %.300s", i + 1, r.status, r.body);
        else if (wrong)
            complain(c, "answer %zu: %s", i + 1, wrong);
        reply_free(&r);
        if (!allowed)
            return false;
    }
    return true;
}

static void closes(int fd, const struct hf_hostile_case *c)
{
    char byte;
    struct pollfd p = { .fd = fd, .events = POLLIN };
    if (poll(&p, 1, SERVER_PATIENCE_MS) != 1)
        complain(c, "the connection was not closed");
    else if (recv(fd, &byte, 1, 0) > 0)
        complain(c, "there is more behind the last answer");
}

static void stays(int fd, const struct hf_hostile_case *c)
{
    struct reply r;
    if (!server_call(fd, "GET /healthz", "", NULL, &r))
        complain(c, "the connection was closed");
    else if (r.status != 200 || strcmp(r.body, "{\"ok\":true}") != 0)
        complain(c, "the next request was answered with %d: %.300s", r.status, r.body);
    reply_free(&r);
}

static void run_case(const struct hf_hostile_case *c, uint64_t *random)
{
    int fd = server_connect(&scene.server[c->auth]);
    if (random)
        send_pieces(fd, c, random);
    else
        (void)server_send(fd, c->bytes, c->size);
    control_works(c);
    if (answers_are_right(fd, c)) {
        if (c->close == HF_HOSTILE_MUST_CLOSE)
            closes(fd, c);
        else if (c->close == HF_HOSTILE_MUST_STAY)
            stays(fd, c);
    }
    control_works(c);
    close(fd);
}

/* ---- All of them ---- */

/* What the cases wrote is sound. */
static void store_is_sound(const struct server *s)
{
    struct reply r;
    server_ask(s, "GET /v1/audit", "Authorization: Bearer hostile-read\r\n", NULL, &r);
    assert_int_equal(r.status, 200);
    assert_true(reply_has(&r, "\"name\":\"PC1\""));
    assert_false(reply_has(&r, "\"outcome\":\"broken\""));
    reply_free(&r);
}

static void run_all(uint64_t *random)
{
    size_t count[2] = { 0 };
    for (int i = 0; i < 2; i++)
        scene.before_kib[i] = watch_memory_kib(&scene.server[i]);
    for (size_t i = 0; i < all.count; i++) {
        run_case(&all.cases[i], random);
        count[all.cases[i].auth]++;
    }
    for (int i = 0; i < 2; i++) {
        long grown = watch_memory_kib(&scene.server[i]) - scene.before_kib[i];
        printf("%s: %zu cases, %ld KiB more memory\n", i ? "auth" : "plain", count[i], grown);
        if (grown > watch_bound_kib(GROWTH_KIB))
            fail_msg("the server has grown by %ld KiB", grown);
        store_is_sound(&scene.server[i]);
    }
    assert_true(all.count >= 538 && count[1] > 0);
    assert_int_equal(scene.failures, 0);
}

static void each_case_whole(void **state)
{
    (void)state;
    run_all(NULL);
}

static void each_case_in_pieces(void **state)
{
    (void)state;
    uint64_t random = test_seed("pieces", 20261115);
    run_all(&random);
}

static int load(void **state)
{
    (void)state;
    all = hf_hostile_load(NULL);
    return 0;
}

static int unload(void **state)
{
    (void)state;
    hf_hostile_free(&all);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_case_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(each_case_in_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(each_case_whole, setup_threads, teardown),
        cmocka_unit_test_setup_teardown(each_case_in_pieces, setup_threads, teardown),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
