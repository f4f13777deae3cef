/* A stop: what had come in is answered, nobody waits for long questions, and whoever has nothing to
 * say is let go. */
#include "server/kit/case.h"
#include "server/kit/text.h"
#include "server/kit/watch.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MOMENT_MS = 400, /* an idle connection has a little longer than this to see the end, */
    SOON_MS = 20000, /* so a stop takes about half a second; 30 s if it waited for its clients */
};

static void impatient(struct server *server)
{
    server_init(server);
    server->options.stop_ms = 300;
}

static void send_hold(int fd, int number)
{
    struct text text = { 0 };
    text_hold(&text, number);
    assert_true(server_send(fd, text.data, text.size));
    free(text.data);
}

static void send_get(int fd, const char *what)
{
    assert_true(server_send_request(fd, what, "", NULL));
}

/* Send a hold and wait until the disk is at work on it, until server_let_commits. */
static void keep_the_disk_busy(int fd, int number)
{
    server_stop_commits(&s);
    send_hold(fd, number);
    server_await_commit(&s);
}

/* Ask a long question and wait until it is being worked on. Its answer waits for the disk. */
static void begin_export(int fd)
{
    send_get(fd, "GET /v1/export");
    watch_await_file(&s, "/export.");
}

/* ---- What had come in ---- */

enum { CALLERS = 300 }; /* more than one look at epoll shows, and than are let in at a time */

/* The one thread is busy with the disk while everybody connects and sends, and is told to stop
 * then. */
static void what_had_come_in_is_answered(void **state)
{
    (void)state;
    int fds[CALLERS];
    fds[0] = server_connect(&s);
    keep_the_disk_busy(fds[0], 0);
    for (int i = 1; i < CALLERS; i++) {
        fds[i] = server_connect(&s);
        send_hold(fds[i], i);
    }
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    server_let_commits(&s);
    for (int i = 0; i < CALLERS; i++) {
        server_expect(fds[i], 201);
        close(fds[i]);
    }
    assert_int_equal(server_wait(&s), 0);
    assert_int_equal(server_audit(&s), CALLERS);
}

/* The same for who was let in long before. */
static void what_had_come_in_on_old_connections_is_answered(void **state)
{
    (void)state;
    int fds[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        fds[i] = server_connect(&s);
        send_get(fds[i], "GET /healthz");
        server_expect(fds[i], 200);
    }
    keep_the_disk_busy(fds[0], 0);
    for (int i = 1; i < CALLERS; i++)
        send_hold(fds[i], i);
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    server_let_commits(&s);
    for (int i = 0; i < CALLERS; i++) {
        server_expect(fds[i], 201);
        close(fds[i]);
    }
    assert_int_equal(server_wait(&s), 0);
    assert_int_equal(server_audit(&s), CALLERS);
}

/* ---- Long questions ---- */

/* One is being worked on: it is finished. Those behind it are not begun, and told so. */
static void long_questions_that_wait_are_not_begun(void **state)
{
    (void)state;
    static const char *const questions[] = { "GET /v1/audit", "GET /v1/export?format=jsonl",
                                             "GET /v1/trace/r0", "GET /v1/export?format=sqlite" };
    enum { QUESTIONS = sizeof questions / sizeof *questions };
    int writer = server_connect(&s), first = server_connect(&s), idle = server_connect(&s);
    int fds[QUESTIONS];
    keep_the_disk_busy(writer, 0);
    begin_export(first);
    for (int i = 0; i < QUESTIONS; i++) {
        fds[i] = server_connect(&s);
        send_get(fds[i], questions[i]);
    }
    watch_await_figure(&s, "", "holdfast_slow_waiting", 1 + QUESTIONS);
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    assert_true(server_closed(idle, SERVER_PATIENCE_MS)); /* then it has begun to stop */
    server_let_commits(&s);
    server_expect(writer, 201);
    server_expect(first, 200);
    for (int i = 0; i < QUESTIONS; i++) {
        struct reply r;
        assert_true(server_receive(fds[i], &r, false));
        watch_refused(&r, 503, "storage-failure", "was not begun");
        assert_non_null(reply_field(&r, "Retry-After"));
        reply_free(&r);
        close(fds[i]);
    }
    close(writer);
    close(first);
    close(idle);
    assert_int_equal(server_wait(&s), 0);
}

/* Patience has an end: the server ends although the disk does not go on. A thread that is still
 * working on an answer has no client any more, and the store is not closed under it. */
static void a_stop_does_not_wait_for_ever(void **state)
{
    (void)state;
    int writer = server_connect(&s), asker = server_connect(&s);
    struct reply r;
    keep_the_disk_busy(writer, 0);
    begin_export(asker);
    assert_int_equal(server_stop(&s), 0);
    server_let_commits(&s);
    assert_false(server_receive(asker, &r, false));
    assert_false(server_receive(writer, &r, false));
    close(writer);
    close(asker);
    /* Nobody was told that it is done, so it may be or not; the retry finds out. */
    server_start(&s);
    writer = server_connect(&s);
    send_hold(writer, 0);
    server_expect(writer, 201);
    close(writer);
}

/* Nobody waits for the answer any more, so it is not made: the next one has its turn at once. */
static void what_nobody_waits_for_is_not_made(void **state)
{
    (void)state;
    enum { LEFT = 8 };
    int writer = server_connect(&s), first = server_connect(&s);
    keep_the_disk_busy(writer, 0);
    begin_export(first);
    for (int i = 0; i < LEFT; i++) {
        int fd = server_connect(&s);
        send_get(fd, "GET /v1/audit");
        watch_await_figure(&s, "", "holdfast_slow_waiting", 2 + i);
        server_leave(fd, true);
    }
    /* The server has seen them leave: there are the two others, and the one that asks. */
    watch_await_figure(&s, "", "holdfast_http_connections", 3);
    server_let_commits(&s);
    server_expect(writer, 201);
    server_expect(first, 200);
    close(writer);
    close(first);
    int next = server_connect(&s);
    send_get(next, "GET /v1/audit");
    server_expect(next, 200);
    close(next);
    /* Each that is left unmade is counted as one that was refused. */
    assert_int_equal((int)watch_figure(&s, "", "holdfast_refusals_total{code=\"storage-failure\"}"),
                     LEFT);
}

/* ---- Idle connections ---- */

/* An idle client sees the end of the stream, and what it sends then is thrown away: a reset could
 * reach it before the answer that it is still reading. It does not have to close for the server to
 * end soon. */
static void idle_connections_are_let_go(void **state)
{
    (void)state;
    char byte;
    int silent = server_connect(&s), used = server_connect(&s);
    send_get(used, "GET /healthz");
    server_expect(used, 200);
    int64_t begun = server_clock_ms();
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    assert_int_equal(recv(silent, &byte, 1, 0), 0);
    assert_int_equal(recv(used, &byte, 1, 0), 0);
    send_get(used, "GET /healthz");
    server_pause_ms(50); /* for a reset to come; if it takes longer, this test misses it */
    bool taken = server_send_text(used, "GET /healthz");
    assert_true(taken || server_clock_ms() - begun > MOMENT_MS);
    assert_int_equal(server_wait(&s), 0);
    assert_true(server_clock_ms() - begun < SOON_MS);
    close(silent);
    close(used);
}

/* With two threads a commit is made by a thread of the store's own, so that others can be served
 * meanwhile. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(what_had_come_in_is_answered, server_init, 1),
        SERVER_TEST(what_had_come_in_on_old_connections_is_answered, server_init, 1),
        SERVER_TEST(long_questions_that_wait_are_not_begun, server_init, 2),
        SERVER_TEST(a_stop_does_not_wait_for_ever, impatient, 2),
        SERVER_TEST(what_nobody_waits_for_is_not_made, server_init, 2),
        SERVER_TEST(idle_connections_are_let_go, server_init, 1),
        SERVER_TEST(idle_connections_are_let_go, server_init, 2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
