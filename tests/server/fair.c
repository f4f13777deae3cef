/* Tenants share one server: what one of them does, however much, keeps no other one waiting or out.
 * Order is told by what is answered first, not by how long it takes. */
#include "base/hash.h"
#include "server/kit/case.h"
#include "server/kit/watch.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* On a busy machine this process may get to look late at what is answered, but not every time. One
 * line for all tenants shows every time. */
enum { TRIES = 20 };

#define AS_ALPHA "Authorization: Bearer alpha\r\n"
#define AS_BETA "Authorization: Bearer beta\r\n"

static char path[600];

static void credentials_write(void)
{
    static const char *const names[] = { "alpha", "beta" };
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint8_t digest[HF_DIGEST_SIZE];
        hf_sha256_of(names[i], strlen(names[i]), digest);
        fprintf(f, "%s admin ", names[i]);
        for (size_t k = 0; k < HF_DIGEST_SIZE; k++)
            fprintf(f, "%02x", digest[k]);
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static void make(struct server *server)
{
    server_init(server);
    snprintf(path, sizeof path, "%s/credentials", server->dir);
    credentials_write();
    server->options.auth_file = path;
    server->options.log_duplicates = false;
}

/* ---- Lists, audits and exports ---- */

/* So many holds of alpha that looking through all of them takes a while. */
static void fill(int batches)
{
    enum { LINES = 4000 };
    struct reply r;
    int fd = server_connect(&s);
    for (int b = 0; b < batches; b++) {
        char *body = malloc(LINES * 120);
        size_t size = 0;
        assert_non_null(body);
        for (int i = 0; i < LINES; i++)
            size +=
                (size_t)sprintf(body + size,
                                "{\"op\":\"place_hold\",\"key\":\"f%d-%d\",\"resource\":\"r%d-%d\","
                                "\"requester\":\"q\",\"duration\":\"1h\"}\n",
                                b, i, b, i);
        assert_true(server_call(fd, "POST /v1/batch", AS_ALPHA, body, &r));
        assert_int_equal(r.status, 200);
        reply_free(&r);
        free(body);
    }
    close(fd);
}

/* Alpha asks `count` times at once, beta once behind it. How many of alpha's are answered when
 * beta's is? */
static int before_beta(const char *what, int count)
{
    enum { MOST = 64 };
    int fds[MOST], done = 0;
    struct reply r;
    int beta = server_connect(&s);
    assert_true(server_call(beta, "GET /healthz", AS_BETA, NULL,
                            &r)); /* it is there before the others ask */
    reply_free(&r);
    for (int i = 0; i < count; i++) {
        fds[i] = server_connect(&s);
        assert_true(server_send_request(fds[i], what, AS_ALPHA, NULL));
    }
    for (int i = 0; i < count; i++)
        server_await_read(fds[i]);
    assert_true(server_call(beta, what, AS_BETA, NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    for (int i = 0; i < count; i++)
        done += poll(&(struct pollfd){ .fd = fds[i], .events = POLLIN }, 1, 0) == 1;
    for (int i = 0; i < count; i++) {
        assert_true(server_receive(fds[i], &r, false));
        assert_int_equal(r.status, 200);
        reply_free(&r);
        close(fds[i]);
    }
    close(beta);
    return done;
}

static void tenants_take_turns(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int count, most;
    } asks[] = { { "GET /v1/audit", 8, 4 },
                 { "GET /v1/export", 2, 1 }, /* more than that are refused */
                 { "GET /v1/trace/f0-1", 8, 6 },
                 { "GET /v1/holds?requester=nobody", 60, 20 } };
    server_start(&s);
    fill(test_size(8));
    int fd = server_connect(&s); /* beta has one, so that there is something to trace */
    struct reply r;
    assert_true(server_call(fd, "POST /v1/holds", AS_BETA "Idempotency-Key: f0-1\r\n",
                            "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}", &r));
    assert_int_equal(r.status, 201);
    reply_free(&r);
    close(fd);
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        int before = asks[i].count;
        for (int tries = 0; tries < TRIES && before > asks[i].most; tries++)
            before = before_beta(asks[i].what, asks[i].count);
        printf("%s: %d of %d before beta's\n", asks[i].what, before, asks[i].count);
        if (before > asks[i].most)
            fail_msg("beta waited for %d of alpha's %d %s", before, asks[i].count, asks[i].what);
    }
}

/* ---- Large bodies ---- */

/* A batch of so many bytes, or some more. Nothing about it takes long but that it is much.
 * Owned. */
static char *large_batch(size_t size, int number)
{
    char *body = malloc(size + 2000);
    size_t at = 0;
    assert_non_null(body);
    for (int i = 0; at < size; i++)
        at += (size_t)sprintf(body + at,
                              "{\"op\":\"place_hold\",\"key\":\"b%d-%d\",\"resource\":\"b%d-%d\","
                              "\"requester\":\"%0900d\",\"duration\":\"1h\"}\n",
                              number, i, number, i, i);
    return body;
}

/* Many large bodies become whole at one moment, and somebody else asks for little, one after the
 * other. How many of the large ones are answered when those are? */
static int before_small_ones(const char *as_large, const char *as_small)
{
    enum { LARGE = 30, SMALL = 3 };
    int fds[LARGE], done = 0;
    static int number; /* every batch is another one */
    struct reply r;
    int small = server_connect(&s);
    assert_true(server_call(small, "GET /healthz", as_small, NULL, &r));
    reply_free(&r);
    for (int i = 0; i < LARGE; i++) {
        char *body = large_batch(300000, number++),
             *text = server_request("POST /v1/batch", as_large, body);
        fds[i] = server_connect(&s);
        assert_true(server_send(fds[i], text, strlen(text) - 1));
        free(text);
        free(body);
    }
    for (int i = 0; i < LARGE; i++)
        server_await_read(fds[i]);
    server_freeze(&s);
    for (int i = 0; i < LARGE; i++)
        assert_true(server_send(fds[i], "\n", 1));
    assert_true(server_send_request(small, "GET /v1/registers/none", as_small, NULL));
    server_thaw(&s);
    server_expect(small, 404);
    for (int i = 1; i < SMALL; i++) {
        assert_true(server_send_request(small, "GET /v1/registers/none", as_small, NULL));
        server_expect(small, 404);
    }
    for (int i = 0; i < LARGE; i++)
        done += poll(&(struct pollfd){ .fd = fds[i], .events = POLLIN }, 1, 0) == 1;
    for (int i = 0; i < LARGE; i++) {
        server_expect(fds[i], 200);
        close(fds[i]);
    }
    close(small);
    return done;
}

/* All that is ready is not worked on in one turn: small requests have theirs in between, also those
 * of the same tenant, and where there are no tenants. */
static void small_ones_do_not_wait_for_all_large_ones(void **state)
{
    (void)state;
    enum { MOST = 15 };
    static const char *const as[][2] = { { AS_ALPHA, AS_BETA },
                                         { AS_ALPHA, AS_ALPHA },
                                         { "", "" } };
    for (size_t i = 0; i < sizeof as / sizeof *as; i++) {
        s.options.auth_file = as[i][0][0] ? path : NULL;
        server_start(&s);
        int before = MOST + 1;
        for (int tries = 0; tries < TRIES && before > MOST; tries++)
            before = before_small_ones(as[i][0], as[i][1]);
        printf("%d of 30 before the small ones\n", before);
        if (before > MOST)
            fail_msg("three small requests waited for %d of 30 large ones", before);
        assert_int_equal(server_stop(&s), 0);
    }
}

/* One that asks for more than may wait is told so, and another one is not. */
static void who_waits_too_much_is_told_so(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    int fds[COUNT], refused = 0;
    struct reply r;
    server_start(&s);
    fill(test_size(4) + 1);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = server_connect(&s);
        assert_true(server_send_request(fds[i], "GET /v1/audit", AS_ALPHA, NULL));
    }
    int beta = server_connect(&s);
    assert_true(server_call(beta, "GET /v1/audit", AS_BETA, NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    close(beta);
    for (int i = 0; i < COUNT; i++) {
        assert_true(server_receive(fds[i], &r, false));
        if (r.status != 200) {
            watch_refused(&r, 503, "too-busy", NULL);
            assert_string_equal(reply_field(&r, "Retry-After"), "1");
            refused++;
        }
        reply_free(&r);
        close(fds[i]);
    }
    assert_true(refused > 0 && refused < COUNT);
}

/* ---- Connections ---- */

static void a_tenant_has_its_own_connections(void **state)
{
    (void)state;
    enum { EACH = 10 };
    int fds[EACH + 1];
    struct reply r;
    s.options.max_connections = 64;
    s.options.tenant_connections = EACH;
    server_start(&s);
    for (int i = 0; i <= EACH; i++) {
        fds[i] = server_connect(&s);
        assert_true(server_call(fds[i], "GET /v1/resources", AS_ALPHA, NULL, &r));
        if (i < EACH) {
            assert_int_equal(r.status, 200);
        } else {
            watch_refused(&r, 503, "too-many-connections", "Your tenant has reached its limit");
            assert_string_equal(reply_field(&r, "Connection"), "close");
            watch_ends(fds[i]);
            close(fds[i]);
        }
        reply_free(&r);
    }
    int beta = server_connect(&s);
    for (int i = 0; i < 3; i++) {
        assert_true(server_call(beta, "GET /v1/resources", AS_BETA, NULL, &r));
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
    assert_int_equal((int)watch_figure(&s, AS_BETA, "holdfast_tenant_connections_refused_total"),
                     1);
    close(fds[0]); /* then there is room for another one */
    int status = 503;
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         status != 200 && server_clock_ms() < until;) {
        fds[0] = server_connect(&s);
        assert_true(server_call(fds[0], "GET /v1/resources", AS_ALPHA, NULL, &r));
        status = r.status;
        reply_free(&r);
        if (status != 200)
            close(fds[0]);
    }
    assert_int_equal(status, 200);
    for (int i = 0; i < EACH; i++)
        close(fds[i]);
    close(beta);
}

/* Connections on which nobody says who calls are many; whoever says it at once is let in all the
 * same, and whoever is in stays in. */
static void silent_connections_keep_nobody_out(void **state)
{
    (void)state;
    enum { SILENT = 200 };
    int fds[SILENT], ended = 0;
    struct reply r;
    s.options.max_connections = 64;
    server_start(&s);
    int alpha = server_connect(&s);
    assert_true(server_call(alpha, "GET /v1/resources", AS_ALPHA, NULL, &r));
    reply_free(&r);
    for (int i = 0; i < SILENT; i++) {
        fds[i] = server_connect(&s);
        if (i % 20 == 10) {
            int beta = server_connect(&s);
            assert_true(server_call(beta, "GET /v1/resources", AS_BETA, NULL, &r));
            assert_int_equal(r.status, 200);
            reply_free(&r);
            close(beta);
        }
    }
    assert_true(server_call(alpha, "GET /v1/resources", AS_ALPHA, NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    assert_true(watch_figure(&s, AS_ALPHA, "holdfast_http_connections_unknown") <= 17);
    assert_true(watch_figure(&s, AS_ALPHA, "holdfast_http_connections_unknown_closed_total") >=
                SILENT - 64);
    for (int i = 0; i < SILENT; i++) {
        ended += server_closed(fds[i], 0);
        close(fds[i]);
    }
    assert_true(ended >= SILENT - 17);
    close(alpha);
}

/* Connections that ask for a document without saying who calls, and do not read it: they are not
 * idle, and were never made to leave. */
static void unread_answers_keep_nobody_out(void **state)
{
    (void)state;
    enum { UNREAD = 40, ASKED = 200 };
    int fds[UNREAD], small = 4096;
    struct reply r;
    s.options.max_connections = 64;
    server_start(&s);
    for (int i = 0; i < UNREAD; i++) {
        fds[i] = server_connect(&s);
        (void)setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        for (int n = 0; n < ASKED; n++)
            (void)server_send_request(fds[i], "GET /v1/openapi.json", "", NULL);
        int beta = server_connect(&s);
        assert_true(server_call(beta, "GET /v1/resources", AS_BETA, NULL, &r));
        assert_int_equal(r.status, 200);
        reply_free(&r);
        close(beta);
    }
    for (int i = 0; i < UNREAD; i++)
        close(fds[i]);
}

/* ---- Memory for bodies ---- */

/* Alpha begins as many large bodies as there is memory for, and ends none; beta's is taken. */
static void bodies_of_one_leave_room_for_another(void **state)
{
    (void)state;
    enum { LARGE = 280, COUNT = 700, SIZE = 1000000, LESS = 100000 };
    static int fds[COUNT];
    static char body[SIZE];
    int refused = 0;
    struct reply r;
    memset(body, ' ', sizeof body);
    server_start(&s);
    for (int i = 0; i < COUNT; i++) {
        char head[256];
        int size = i < LARGE ? SIZE : LESS; /* those fit in between */
        fds[i] = server_connect(&s);
        snprintf(head, sizeof head,
                 "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\n" AS_ALPHA
                 "Content-Length: %d\r\n\r\n",
                 size + 1);
        assert_true(server_send_text(fds[i], head));
        (void)server_send(fds[i], body, (size_t)size);
    }
    body[SIZE - 1] = 0;
    int beta = server_connect(&s);
    assert_true(server_call(beta, "POST /v1/batch", AS_BETA, body, &r));
    assert_int_equal(r.status, 200); /* of the batch; its one line is not JSON */
    reply_free(&r);
    for (int i = 0; i < COUNT; i++) {
        if (poll(&(struct pollfd){ .fd = fds[i], .events = POLLIN }, 1, 0) == 1) {
            assert_true(server_receive(fds[i], &r, false));
            watch_refused(&r, 503, "too-busy", NULL);
            reply_free(&r);
            refused++;
        }
        server_leave(fds[i], true);
    }
    printf("%d of %d refused\n", refused, COUNT);
    assert_true(refused > LARGE / 3 && refused < COUNT);
    close(beta);
}

/* ---- Requests a second ---- */

static void a_tenant_has_its_own_rate(void **state)
{
    (void)state;
    enum { RATE = 5, MANY = 40 };
    int let_in = 0, refused = 0;
    struct reply r;
    s.options.tenant_rate = RATE;
    server_start(&s);
    int alpha = server_connect(&s), beta = server_connect(&s);
    int64_t begun = server_clock_ms();
    for (int i = 0; i < MANY; i++) {
        char fields[128];
        snprintf(fields, sizeof fields, AS_ALPHA "Idempotency-Key: k%d\r\n", i);
        assert_true(server_call(alpha, "PUT /v1/registers/x", fields, "{\"value\":1}", &r));
        if (r.status == 200) {
            let_in++;
        } else {
            watch_refused(&r, 429, "too-many-requests", "limit of requests per second");
            assert_string_equal(reply_field(&r, "Retry-After"), "1");
            refused++;
        }
        reply_free(&r); /* the connection is good for the next one */
    }
    int64_t passed = server_clock_ms() - begun;
    assert_true(let_in >= RATE && let_in <= RATE + 1 + passed * RATE / 1000);
    assert_true(refused == MANY - let_in);
    /* Another one has all of its own, and a batch costs as many as it has lines. */
    assert_true(server_call(beta, "POST /v1/batch", AS_BETA,
                            "{\"op\":\"write\",\"key\":\"b1\",\"name\":\"x\",\"value\":1}\n"
                            "{\"op\":\"write\",\"key\":\"b2\",\"name\":\"x\",\"value\":1}\n"
                            "{\"op\":\"write\",\"key\":\"b3\",\"name\":\"x\",\"value\":1}\n"
                            "{\"op\":\"write\",\"key\":\"b4\",\"name\":\"x\",\"value\":1}\n"
                            "{\"op\":\"write\",\"key\":\"b5\",\"name\":\"x\",\"value\":1}\n"
                            "{\"op\":\"write\",\"key\":\"b6\",\"name\":\"x\",\"value\":1}\n"
                            "{\"op\":\"write\",\"key\":\"b7\",\"name\":\"x\",\"value\":1}\n"
                            "{\"op\":\"write\",\"key\":\"b8\",\"name\":\"x\",\"value\":1}\n",
                            &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    assert_true(server_call(beta, "GET /v1/registers/x", AS_BETA, NULL, &r));
    watch_refused(&r, 429, "too-many-requests", NULL);
    reply_free(&r);
    /* Whether the server lives is nobody's request. */
    assert_true(server_call(beta, "GET /healthz", "", NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    close(alpha);
    close(beta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST_STOPPED(tenants_take_turns, make),
        SERVER_TEST_STOPPED(small_ones_do_not_wait_for_all_large_ones, make),
        SERVER_TEST_STOPPED(who_waits_too_much_is_told_so, make),
        SERVER_TEST_STOPPED(a_tenant_has_its_own_connections, make),
        SERVER_TEST_STOPPED(silent_connections_keep_nobody_out, make),
        SERVER_TEST_STOPPED(unread_answers_keep_nobody_out, make),
        SERVER_TEST_STOPPED(a_tenant_has_its_own_rate, make),
        SERVER_TEST_STOPPED(bodies_of_one_leave_room_for_another, make),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
