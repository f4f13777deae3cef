/* A stop: what had come in is answered, nobody waits for long questions, and whoever has nothing to say is let go. */
#include "support/server_watch.h"
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SYNC_MS = 2500,
    MOMENT_MS = 400,  /* an idle connection has a little longer than this to see the end, */
    LINGER_MS = 2000, /* and without a stop it would have this */
};

static struct server s;

static int setup(void **state)
{
    (void)state;
    server_init(&s);
    server_start(&s);
    return 0;
}

/* Two threads: a commit is made by a thread of the store's own, so that others can be served meanwhile. */
static int setup_threads(void **state)
{
    (void)state;
    server_init(&s);
    s.options.threads = 2;
    server_start(&s);
    return 0;
}

static int setup_impatient(void **state)
{
    (void)state;
    server_init(&s);
    s.options.threads = 2;
    s.options.stop_ms = 300;
    server_start(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    server_end(&s);
    return 0;
}

static void send_hold(int fd, int number)
{
    char fields[64], body[128];
    snprintf(fields, sizeof fields, "Idempotency-Key: k%d\r\n", number);
    snprintf(body, sizeof body, "{\"resource\":\"r%d\",\"requester\":\"q\",\"duration\":\"1h\"}", number);
    char *request = server_request("POST /v1/holds", fields, body);
    assert_true(server_send_text(fd, request));
    free(request);
}

static void send_get(int fd, const char *what)
{
    char *request = server_request(what, "", NULL);
    assert_true(server_send_text(fd, request));
    free(request);
}

/* Send a hold and wait until the disk is at work on it, for SYNC_MS. */
static void keep_the_disk_busy(int fd, int number)
{
    uint64_t before = atomic_load(&s.io->syncs);
    atomic_store(&s.io->slow_sync_us, SYNC_MS * 1000);
    send_hold(fd, number);
    for (int64_t until = server_clock_ms() + 20000; atomic_load(&s.io->syncs) == before; server_pause_ms(1))
        assert_true(server_clock_ms() < until);
    atomic_store(&s.io->slow_sync_us, 0);
}

static void answered(int fd, int status)
{
    struct reply r;
    if (!server_receive(fd, &r, false))
        fail_msg("no answer: %s", strerror(errno));
    assert_int_equal(r.status, status);
    reply_free(&r);
}

/* ---- What had come in ---- */

enum { CALLERS = 300 }; /* more than one look at epoll shows, and than are let in at a time */

/* The one thread is busy with the disk while everybody connects and sends, and is told to stop then. */
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
    for (int i = 0; i < CALLERS; i++) {
        answered(fds[i], 201);
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
        answered(fds[i], 200);
    }
    keep_the_disk_busy(fds[0], 0);
    for (int i = 1; i < CALLERS; i++)
        send_hold(fds[i], i);
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    for (int i = 0; i < CALLERS; i++) {
        answered(fds[i], 201);
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
    int writer = server_connect(&s), first = server_connect(&s), fds[QUESTIONS];
    keep_the_disk_busy(writer, 0);
    send_get(first, "GET /v1/audit"); /* waits for the disk */
    server_pause_ms(500);
    for (int i = 0; i < QUESTIONS; i++) {
        fds[i] = server_connect(&s);
        send_get(fds[i], questions[i]);
    }
    server_pause_ms(300); /* they have come in, and wait for the first */
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    answered(writer, 201);
    answered(first, 200);
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
    assert_int_equal(server_wait(&s), 0);
}

/* Patience has an end: who works on an answer then has nobody who waits for it, and the store is not closed under it. */
static void a_stop_does_not_wait_for_ever(void **state)
{
    (void)state;
    int writer = server_connect(&s), asker = server_connect(&s);
    struct reply r;
    keep_the_disk_busy(writer, 0);
    send_get(asker, "GET /v1/audit");
    server_pause_ms(200);
    int64_t begun = server_clock_ms();
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    assert_int_equal(server_wait(&s), 0);
    assert_true(server_clock_ms() - begun < SYNC_MS - 500);
    assert_false(server_receive(asker, &r, false));
    assert_false(server_receive(writer, &r, false));
    close(writer);
    close(asker);
    /* Nobody was told that it is done, so it may be or not; the retry finds out. */
    server_start(&s);
    server_ask_keyed(&s, "POST /v1/holds", "k0",
                     "{\"resource\":\"r0\",\"requester\":\"q\",\"duration\":\"1h\"}", &r);
    assert_int_equal(r.status, 201);
    reply_free(&r);
}

/* Nobody waits for the answer any more, so it is not made: the next one has its turn at once. */
static void what_nobody_waits_for_is_not_made(void **state)
{
    (void)state;
    enum { LEFT = 8 };
    int writer = server_connect(&s), first = server_connect(&s);
    struct reply r;
    keep_the_disk_busy(writer, 0);
    send_get(first, "GET /v1/audit");
    server_pause_ms(200);
    for (int i = 0; i < LEFT; i++) {
        int fd = server_connect(&s);
        struct linger reset = { .l_onoff = 1, .l_linger = 0 };
        send_get(fd, "GET /v1/audit");
        server_pause_ms(20); /* it has come in */
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    answered(writer, 201);
    answered(first, 200);
    close(writer);
    close(first);
    server_ask(&s, "GET /v1/audit", "", NULL, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    /* Each that is left unmade is counted as one that was refused. */
    assert_int_equal((int)watch_figure(&s, "", "holdfast_refusals_total{code=\"storage-failure\"}"), LEFT);
}

/* ---- Idle connections ---- */

/* An idle client sees the end of the stream, and what it sends then is thrown away: a reset could reach it before the
 * answer that it is still reading. It does not have to close for the server to end soon. */
static void idle_connections_are_let_go(void **state)
{
    (void)state;
    char byte;
    int silent = server_connect(&s), used = server_connect(&s);
    send_get(used, "GET /healthz");
    answered(used, 200);
    int64_t begun = server_clock_ms();
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    assert_int_equal(recv(silent, &byte, 1, 0), 0);
    assert_int_equal(recv(used, &byte, 1, 0), 0);
    send_get(used, "GET /healthz");
    server_pause_ms(50);
    bool taken = server_send_text(used, "GET /healthz"); /* a reset would have come by now */
    assert_true(taken || server_clock_ms() - begun > MOMENT_MS);
    assert_int_equal(server_wait(&s), 0);
    assert_true(server_clock_ms() - begun < LINGER_MS);
    close(silent);
    close(used);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_THREADS(name) cmocka_unit_test_setup_teardown(name, setup_threads, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_had_come_in_is_answered),
        TEST(what_had_come_in_on_old_connections_is_answered),
        TEST_THREADS(long_questions_that_wait_are_not_begun),
        cmocka_unit_test_setup_teardown(a_stop_does_not_wait_for_ever, setup_impatient, teardown),
        TEST_THREADS(what_nobody_waits_for_is_not_made),
        TEST(idle_connections_are_let_go),
        TEST_THREADS(idle_connections_are_let_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
