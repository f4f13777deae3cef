/* A stop: what had come in is answered, nobody waits for long questions, and whoever has nothing to
 * say is let go. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "net/kit/tls.h"
#include "server/kit/case.h"
#include "server/kit/text.h"
#include "server/kit/tls.h"
#include "server/kit/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOMENT_MS =
        1500,        /* a connection that has seen the end has a little longer than this to close */
    SOON_MS = 20000, /* so a stop takes about three seconds; 30 s if it waited for its clients */
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

/* ---- Busy clients ---- */

/* No client is too slow for this: the tests wait for what happens and count on no time. */
static void patient(struct server *server)
{
    server_init(server);
    server->options.stop_idle_ms = SERVER_PATIENCE_MS;
}

static struct tls_files files;

static void patient_tls(struct server *server)
{
    patient(server);
    tls_files_make(&files, server->dir, "server", -60, 86400, NULL);
    server->options.tls_cert = files.cert;
    server->options.tls_key = files.key;
}

/* SIGTERM, and wait until the server stops: it refuses connections. */
static void begin_to_stop(void)
{
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    for (int fd; (fd = server_try_connect(&s)) >= 0; server_pause_ms(1))
        close(fd);
}

enum { BUSY = 8, STOPS = 6 };

enum ended { RUNS, IN_ORDER, WAS_LOST, WAS_RESET, WENT_ON };

/* What a busy client has seen, for the test in another process. */
struct busy {
    _Atomic int answers;
    _Atomic enum ended ended;
};

/* A connection of a busy client; ssl is NULL without TLS. */
static bool busy_ask(struct client *c, const char *request, struct reply *r)
{
    size_t sent, size = strlen(request);
    if (c->ssl)
        return SSL_write_ex(c->ssl, request, size, &sent) == 1 && client_receive(c, r);
    return server_send(c->fd, request, size) && server_receive(c->fd, r, false);
}

/* The stream must end here, and not be reset; with TLS it says so itself. */
static enum ended busy_end(struct client *c)
{
    char byte;
    size_t n;
    if (c->ssl && (SSL_read_ex(c->ssl, &byte, 1, &n) == 1 ||
                   SSL_get_error(c->ssl, 0) != SSL_ERROR_ZERO_RETURN))
        return WAS_LOST;
    ssize_t got = recv(c->fd, &byte, 1, 0);
    return got == 0 ? IN_ORDER : got > 0 ? WENT_ON : WAS_RESET;
}

/* Place one hold after the other, until an answer says that it is the last. */
static enum ended busy_run(struct client *c, struct busy *busy, int number)
{
    for (;;) {
        struct text text = { 0 };
        struct reply r;
        text_hold(&text, number + BUSY * busy->answers);
        errno = 0;
        if (!busy_ask(c, text.data, &r))
            return errno == ECONNRESET || errno == EPIPE ? WAS_RESET : WAS_LOST;
        free(text.data);
        if (r.status != 201)
            return WENT_ON;
        const char *field = reply_field(&r, "Connection");
        bool last = field && strcmp(field, "close") == 0;
        reply_free(&r);
        busy->answers++;
        if (last)
            return busy_end(c);
    }
}

static pid_t busy_begin(struct busy *busy, int number)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    struct client c = { 0 };
    if (s.options.tls_cert)
        client_connect(&c, &s, NULL);
    else
        c.fd = server_connect(&s);
    busy->ended = busy_run(&c, busy, number);
    _exit(0);
}

/* Eight clients send requests all the time. Each gets an answer to each, the last one says that it
 * is the last, and then the stream ends. */
static void busy_clients_lose_no_answer(void **state)
{
    (void)state;
    struct busy *busy =
        mmap(NULL, BUSY * sizeof *busy, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(busy, MAP_FAILED);
    for (int stop = 1; stop <= STOPS; stop++) {
        pid_t pids[BUSY];
        int had[BUSY];
        for (int i = 0; i < BUSY; i++) {
            busy[i].ended = RUNS;
            had[i] = busy[i].answers;
            pids[i] = busy_begin(&busy[i], i);
        }
        for (int i = 0; i < BUSY; i++)
            while (busy[i].answers < had[i] + 3 * stop && busy[i].ended == RUNS)
                server_pause_ms(1);
        assert_int_equal(server_stop(&s), 0);
        for (int i = 0; i < BUSY; i++) {
            assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
            assert_int_equal(busy[i].ended, IN_ORDER);
        }
        server_start(&s);
    }
    uint64_t answers = 0;
    for (int i = 0; i < BUSY; i++)
        answers += (uint64_t)busy[i].answers;
    assert_int_equal(server_stop(&s), 0);
    assert_int_equal(server_audit(&s), answers);
    munmap(busy, BUSY * sizeof *busy);
}

/* A client that never waits for an answer gets a last one all the same. Its later requests are not
 * begun, and it can know that. */
static void a_pipeline_that_never_ends_is_ended(void **state)
{
    (void)state;
    int fd = server_connect(&s);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        while (server_send_request(fd, "GET /healthz", "", NULL))
            ;
        _exit(0);
    }
    server_expect(fd, 200);
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    bool last = false;
    while (!last) {
        struct reply r;
        assert_true(server_receive(fd, &r, false));
        last = reply_field(&r, "Connection") != NULL;
        reply_free(&r);
    }
    assert_true(server_closed(fd, SERVER_PATIENCE_MS));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(fd);
    assert_int_equal(server_wait(&s), 0);
}

/* ---- Idle connections ---- */

static void expect_last(int fd, int status)
{
    struct reply r;
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(r.status, status);
    const char *field = reply_field(&r, "Connection");
    assert_non_null(field);
    assert_string_equal(field, "close");
    reply_free(&r);
    assert_true(server_closed(fd, SERVER_PATIENCE_MS));
}

/* Requests that were on their way when the server began to stop: a whole one on a connection that
 * was idle, and the rest of one. */
static void what_was_on_its_way_is_answered(void **state)
{
    (void)state;
    struct text text = { 0 };
    int idle = server_connect(&s), half = server_connect(&s), begun = server_connect(&s);
    text_hold(&text, 1);
    assert_true(server_send(half, text.data, text.size - 5));
    server_await_read(half);
    assert_true(server_send_text(begun, "GET /hea"));
    server_await_read(begun);
    send_get(idle, "GET /healthz");
    server_expect(idle, 200);
    begin_to_stop();
    send_get(idle, "GET /healthz");
    expect_last(idle, 200);
    assert_true(server_send(half, text.data + text.size - 5, 5));
    expect_last(half, 201);
    assert_true(server_send_text(begun, "lthz HTTP/1.1\r\nHost: h\r\n\r\n"));
    expect_last(begun, 200);
    free(text.data);
    close(idle);
    close(half);
    close(begun);
    assert_int_equal(server_wait(&s), 0);
}

/* What does not come is not waited for: its client is told so. */
static void what_does_not_come_is_refused(void **state)
{
    (void)state;
    int fd = server_connect(&s);
    assert_true(server_send_text(fd, "GET /hea"));
    server_await_read(fd);
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    expect_last(fd, 408);
    close(fd);
    assert_int_equal(server_wait(&s), 0);
}

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
    int64_t ended = server_clock_ms();
    send_get(used, "GET /healthz");
    server_pause_ms(50); /* for a reset to come; if it takes longer, this test misses it */
    bool taken = server_send_text(used, "GET /healthz");
    assert_true(taken || server_clock_ms() - ended > MOMENT_MS);
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
        SERVER_TEST(busy_clients_lose_no_answer, patient, 1),
        SERVER_TEST(busy_clients_lose_no_answer, patient, 2),
        SERVER_TEST(busy_clients_lose_no_answer, patient_tls, 1),
        SERVER_TEST(busy_clients_lose_no_answer, patient_tls, 2),
        SERVER_TEST(a_pipeline_that_never_ends_is_ended, server_init, 1),
        SERVER_TEST(what_was_on_its_way_is_answered, patient, 1),
        SERVER_TEST(what_was_on_its_way_is_answered, patient, 2),
        SERVER_TEST(what_does_not_come_is_refused, server_init, 1),
        SERVER_TEST(idle_connections_are_let_go, server_init, 1),
        SERVER_TEST(idle_connections_are_let_go, server_init, 2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
