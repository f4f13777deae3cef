/* Limits on time: a head, a body and silence last only so long, however a client goes about it; and
 * who is within the limits is left alone. */
#include "server/kit/case.h"
#include "server/kit/watch.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HEAD_MS = 400,
    IDLE_MS = 1000,
    BODY_MS = 700,
    EARLY_MS = 50,
};

static void impatient(struct server *server)
{
    server_init(server);
    server->options.head_ms = HEAD_MS;
    server->options.idle_ms = IDLE_MS;
    server->options.body_ms = BODY_MS;
}

/* ---- Clients that are slow side by side ---- */

#define GET "GET /healthz HTTP/1.1\r\nHost: h\r\n"
#define POST "POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\n"

struct slow {
    const char *name;
    const char *first;   /* sent at once */
    const char *trickle; /* then a byte of this every STEP_MS, again and again; NULL: silence */
    int before;          /* answers with 200 that come before the end */
    bool silent;         /* the end comes without a word; else it is 408 */
    int limit_ms;
};

enum { STEP_MS = 25, SLOW_MAX = 16 };

struct waiting {
    int fd;
    int64_t ended_ms; /* since the start; 0: not yet */
    size_t sent;
};

static bool readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return poll(&p, 1, 0) == 1;
}

/* The end of one of them: when, and with which words. */
static void ends_as_told(const struct slow *c, struct waiting *w, int64_t now_ms)
{
    struct reply r;
    if (now_ms < c->limit_ms - EARLY_MS)
        fail_msg("%s: ended after %d ms already", c->name, (int)now_ms);
    if (!c->silent) {
        assert_true(server_receive(w->fd, &r, false));
        watch_refused(&r, 408, "request-timeout", "did not arrive in time");
        assert_string_equal(reply_field(&r, "Connection"), "close");
        reply_free(&r);
    }
    watch_ends(w->fd);
    w->ended_ms = now_ms;
}

static void start(const struct slow *c, struct waiting *w)
{
    *w = (struct waiting){ .fd = server_connect(&s) };
    assert_true(server_send_text(w->fd, c->first));
    for (int i = 0; i < c->before; i++) {
        struct reply r;
        assert_true(server_receive(w->fd, &r, false));
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
}

/* Let all of them be slow at the same time, and see each of them end. */
static void run(const struct slow *clients, size_t count)
{
    struct waiting w[SLOW_MAX];
    size_t left = count;
    int longest = 0;
    assert_true(count <= SLOW_MAX);
    int64_t begin = server_clock_ms();
    for (size_t i = 0; i < count; i++) {
        start(&clients[i], &w[i]);
        longest = clients[i].limit_ms > longest ? clients[i].limit_ms : longest;
    }
    while (left > 0) {
        int64_t now = server_clock_ms() - begin;
        for (size_t i = 0; i < count; i++) {
            const struct slow *c = &clients[i];
            if (w[i].ended_ms)
                continue;
            if (now > c->limit_ms + SERVER_PATIENCE_MS)
                fail_msg("%s: not ended after %d ms", c->name, (int)now);
            if (readable(w[i].fd)) {
                ends_as_told(c, &w[i], now);
                left--;
            } else if (c->trickle) {
                (void)send(w[i].fd, c->trickle + w[i].sent++ % strlen(c->trickle), 1, MSG_NOSIGNAL);
            }
        }
        server_pause_ms(STEP_MS);
    }
    for (size_t i = 0; i < count; i++)
        close(w[i].fd);
}

static void whoever_is_too_slow_is_told_so(void **state)
{
    (void)state;
    static const struct slow clients[] = {
        { "half a head", GET, NULL, 0, false, HEAD_MS },
        { "one byte", "G", NULL, 0, false, HEAD_MS },
        { "empty lines", "\r\n\r\n", NULL, 0, false, HEAD_MS },
        { "a head, byte by byte", "GET /", "x", 0, false, HEAD_MS },
        { "fields, byte by byte", GET, "X: y\r\n", 0, false, HEAD_MS },
        { "a second head", GET "\r\n" GET, NULL, 1, false, HEAD_MS },
        { "a second head, byte by byte", GET "\r\n" GET, "X: y\r\n", 1, false, HEAD_MS },
        { "no body", POST "Content-Length: 50\r\n\r\n", NULL, 0, false, BODY_MS },
        { "half a body", POST "Content-Length: 50\r\n\r\n{\"resource\":", NULL, 0, false, BODY_MS },
        { "a body, byte by byte", POST "Content-Length: 50000\r\n\r\n", " ", 0, false, BODY_MS },
        { "chunks, byte by byte", POST "Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n", 0, false,
          BODY_MS },
        { "a chunk's size without end", POST "Transfer-Encoding: chunked\r\n\r\n1", NULL, 0, false,
          BODY_MS },
        { "a body behind an answer", GET "\r\n" POST "Content-Length: 50\r\n\r\n{", NULL, 1, false,
          BODY_MS },
        { "nothing", "", NULL, 0, true, IDLE_MS },
        { "nothing behind an answer", GET "\r\n", NULL, 1, true, IDLE_MS },
    };
    run(clients, sizeof clients / sizeof *clients);
    /* 13 were late and told so; 2 had nothing to be told. Nobody else was. */
    assert_int_equal((int)watch_figure(&s, "", "holdfast_http_timeouts_total"), 15);
}

static void the_head_has_ten_seconds_unless_told_otherwise(void **state)
{
    (void)state;
    static const struct slow clients[] = {
        { "half a head", GET, NULL, 0, false, 10000 },
        { "fields, byte by byte", GET, "X: y\r\n", 0, false, 10000 },
        { "a second head", GET "\r\n" GET, NULL, 1, false, 10000 },
    };
    run(clients, sizeof clients / sizeof *clients);
}

/* A client that asked whether it may send, was told to, and does not. */
static void whoever_may_send_and_does_not_is_told_so(void **state)
{
    (void)state;
    char first[512];
    ssize_t n = 0;
    int fd = server_connect(&s);
    assert_true(server_send_text(fd, POST "Content-Length: 50\r\nExpect: 100-continue\r\n\r\n"));
    for (char *end = NULL; !end; end = strstr(first, "\r\n\r\n")) {
        ssize_t got = recv(fd, first + n, 1, 0);
        assert_int_equal(got, 1);
        first[++n] = 0;
    }
    assert_string_equal(first, "HTTP/1.1 100 Continue\r\n\r\n");
    struct reply r;
    assert_true(server_receive(fd, &r, false));
    watch_refused(&r, 408, "request-timeout", NULL);
    reply_free(&r);
    watch_ends(fd);
    close(fd);
}

/* ---- Clients that are within the limits ---- */

/* Is the connection still good, after it was used at `used_ms`? On a busy machine this client may
 * itself be idle for too long; then nothing is known, and it is closed. */
static bool stays(int fd, int64_t used_ms)
{
    struct reply r;
    bool answered = server_call(fd, "GET /healthz", "", NULL, &r);
    if (answered)
        assert_int_equal(r.status, 200);
    else if (server_clock_ms() - used_ms < IDLE_MS)
        fail_msg("closed after %d ms", (int)(server_clock_ms() - used_ms));
    else
        close(fd);
    reply_free(&r);
    return answered;
}

static void a_connection_in_use_stays(void **state)
{
    (void)state;
    int fd = server_connect(&s), late = 0;
    int64_t begun = server_clock_ms();
    while (server_clock_ms() - begun < 3 * IDLE_MS) {
        int64_t used = server_clock_ms();
        server_pause_ms(IDLE_MS / 4);
        if (stays(fd, used))
            continue;
        assert_true(late++ < 20);
        begun = server_clock_ms();
        fd = server_connect(&s);
    }
    close(fd);
}

/* The time that the server needs itself is not the client's. */
static void a_request_that_is_worked_on_stays(void **state)
{
    (void)state;
    int fd = -1;
    int64_t answered;
    for (int late = 0; fd < 0 || !stays(fd, answered); late++) {
        char fields[64];
        assert_true(late < 20);
        snprintf(fields, sizeof fields, "Idempotency-Key: k%d\r\n", late);
        fd = server_connect(&s);
        server_stop_commits(&s);
        assert_true(server_send_request(fd, "PUT /v1/registers/x", fields, "{\"value\":1}"));
        server_await_commit(&s);
        server_pause_ms(IDLE_MS + HEAD_MS);
        answered = server_clock_ms(); /* or later */
        server_let_commits(&s);
        server_expect(fd, 200);
    }
    close(fd);
}

/* A stopped server: more connections wait for it than it looks at in one round, each of them half
 * way through a head or a body, or idle. All send the rest while it stands still. The time is over
 * when it goes on, and nobody is late. */
static void a_server_that_stood_still_blames_nobody(void **state)
{
    (void)state;
    enum { EACH = 120, KINDS = 3, STILL_MS = 5000 };
    static const char *const first[KINDS] = { GET,
                                              POST "Content-Length: 48\r\n\r\n{\"resource\":", "" };
    static const char *const rest[KINDS] = { "\r\n", "\"r\",\"requester\":\"q\",\"duration\":3600}",
                                             GET "\r\n" };
    static const int status[KINDS] = { 200, 201, 200 };
    static int fds[KINDS * EACH];
    s.options.head_ms = s.options.body_ms = s.options.idle_ms = STILL_MS;
    server_start(&s);
    for (int i = 0; i < KINDS * EACH; i++) {
        fds[i] = server_connect(&s);
        assert_true(server_send_text(fds[i], first[i % KINDS]));
    }
    server_freeze(&s);
    for (int i = 0; i < KINDS * EACH; i++)
        assert_true(server_send_text(fds[i], rest[i % KINDS]));
    server_pause_ms(STILL_MS + IDLE_MS);
    server_thaw(&s);
    for (int i = 0; i < KINDS * EACH; i++)
        server_expect(fds[i], status[i % KINDS]);
    assert_int_equal((int)watch_figure(&s, "", "holdfast_http_timeouts_total"), 0);
    for (int i = 0; i < KINDS * EACH; i++)
        close(fds[i]);
}

/* Bytes that come late but in time are put together. */
static void whoever_is_slow_within_the_limits_is_served(void **state)
{
    (void)state;
    char *request = server_request("POST /v1/holds", "Idempotency-Key: k\r\n",
                                   "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}");
    struct reply r;
    int fd = server_connect(&s);
    for (size_t i = 0; request[i] != 0; i++) {
        assert_true(server_send(fd, request + i, 1));
        server_pause_ms(1);
    }
    free(request);
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(r.status, 201);
    reply_free(&r);
    close(fd);
}

/* Who half-closes still gets the answers to what was whole; what was not is dropped without a
 * word. */
static void whoever_sends_no_more_gets_its_answers(void **state)
{
    (void)state;
    static const char *const behind[] = { "", GET, POST "Content-Length: 50\r\n\r\n{" };
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        int fd = server_connect(&s);
        assert_true(server_send_text(fd, GET "\r\n" GET "\r\n"));
        assert_true(server_send_text(fd, behind[i]));
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        for (int k = 0; k < 2; k++) {
            struct reply r;
            assert_true(server_receive(fd, &r, false));
            assert_int_equal(r.status, 200);
            reply_free(&r);
        }
        watch_ends(fd);
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(whoever_is_too_slow_is_told_so, impatient, 1),
        SERVER_TEST(the_head_has_ten_seconds_unless_told_otherwise, server_init, 1),
        SERVER_TEST(whoever_may_send_and_does_not_is_told_so, impatient, 1),
        SERVER_TEST(a_connection_in_use_stays, impatient, 1),
        SERVER_TEST(a_request_that_is_worked_on_stays, impatient, 1),
        SERVER_TEST_STOPPED(a_server_that_stood_still_blames_nobody, server_init),
        SERVER_TEST(whoever_is_slow_within_the_limits_is_served, server_init, 1),
        SERVER_TEST(whoever_sends_no_more_gets_its_answers, server_init, 1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
