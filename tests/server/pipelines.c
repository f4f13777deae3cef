/* Requests that are sent without waiting for answers: they are answered in order, however they were
 * cut on their way, and whoever leaves in the middle does no harm. Clients that do not read are in
 * unread.c. */
#define _GNU_SOURCE /* memmem */
#include "server/kit/case.h"
#include "server/kit/text.h"
#include "server/kit/watch.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEALTH "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"

#define LINE "{\"op\":\"check\",\"guard\":\"none\",\"identity\":\"i\"}\n"

enum { PIPELINE_MAX = 128 }; /* requests of one connection that are worked on at one time */

/* ---- Order ---- */

/* Quick and slow ones in turn: a page is made on another thread, a write waits for the disk, a
 * refusal for nobody. */
static void answers_come_in_order(void **state)
{
    (void)state;
    enum { TURNS = 200 };
    struct text t = { 0 };
    int fd = server_connect(&s);
    for (int i = 0; i < TURNS; i++) {
        char fields[64], body[64];
        snprintf(fields, sizeof fields, "Idempotency-Key: k%d\r\n", i);
        snprintf(body, sizeof body, "{\"value\":%d}", i);
        text_request(&t, "PUT /v1/registers/x", fields, body);
        text_request(&t, "GET /v1/resources?limit=1", "", NULL);
        text_request(&t, "GET /v1/registers/x", "", NULL);
        text_request(&t, "GET /nowhere", "", NULL);
        text_request(&t, "HEAD /v1/registers/x", "", NULL);
    }
    assert_true(server_send(fd, t.data, t.size));
    free(t.data);
    for (int i = 0; i < TURNS; i++) {
        static const int status[] = { 200, 200, 200, 404, 200 };
        char value[64];
        snprintf(value, sizeof value, "\"value\":%d,", i);
        for (int k = 0; k < 5; k++) {
            struct reply r;
            assert_true(server_receive(fd, &r, k == 4));
            assert_int_equal(r.status, status[k]);
            if (k == 0 || k == 2)
                assert_true(reply_has(&r, value));
            if (k == 1)
                assert_true(reply_has(&r, "\"resources\":["));
            reply_free(&r);
        }
    }
    close(fd);
}

/* What is read behind a write of the same connection shows it, also if another thread reads it. */
static void a_connection_reads_its_own_writes(void **state)
{
    (void)state;
    enum { TURNS = 90 };
    int fd = server_connect(&s);
    for (int i = 0; i < TURNS; i++) {
        char fields[64], body[128], name[16], reads[3][64] = { "", "", "GET /v1/export" };
        const char *what = reads[i % 3];
        struct text t = { 0 };
        struct reply r;
        snprintf(fields, sizeof fields, "Idempotency-Key: r%d\r\n", i);
        snprintf(body, sizeof body,
                 "{\"resource\":\"r%d\",\"requester\":\"q\",\"duration\":\"1h\"}", i);
        snprintf(name, sizeof name, "\"r%d\"", i);
        snprintf(reads[0], sizeof reads[0], "GET /v1/holds?resource=r%d", i);
        snprintf(reads[1], sizeof reads[1], "GET /v1/trace/r%d", i);
        text_request(&t, "POST /v1/holds", fields, body);
        text_request(&t, what, "", NULL);
        text_string(&t, HEALTH);
        assert_true(server_send(fd, t.data, t.size));
        free(t.data);
        server_expect(fd, 201);
        assert_true(server_receive(fd, &r, false));
        if (r.status != 200 || !reply_has(&r, name))
            fail_msg("%s behind the write was answered with %d: %s", what, r.status, r.body);
        reply_free(&r);
        server_expect(fd, 200);
    }
    close(fd);
}

/* Whoever leaves, or sends no more, while a read waits for the write before it. */
static void a_read_that_waits_is_answered_or_let_go(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        char fields[64];
        struct text t = { 0 };
        snprintf(fields, sizeof fields, "Idempotency-Key: w%d\r\n", i);
        text_request(&t, "PUT /v1/registers/w", fields, "{\"value\":1}");
        text_request(&t, "GET /v1/holds?limit=1", "", NULL);
        int fd = server_connect(&s);
        assert_true(server_send(fd, t.data, t.size));
        free(t.data);
        if (i % 2 == 0) {
            shutdown(fd, SHUT_WR);
            server_expect(fd, 200);
            server_expect(fd, 200);
            watch_ends(fd);
        }
        server_leave(fd, i % 4 == 1);
    }
    watch_await_figure(&s, "", "holdfast_queue", 1);
}

/* A request out of a few kinds, and what it is answered with; the number makes keys unique. */
static int random_request(struct text *t, uint64_t *random, unsigned number)
{
    char fields[128], body[3000];
    snprintf(fields, sizeof fields, "Idempotency-Key: r%u\r\n", number);
    switch (test_below(random, 9)) {
    case 0: text_request(t, "PUT /v1/registers/x", fields, "{\"value\":1}"); return 200;
    case 1: text_request(t, "GET /v1/resources?limit=2", "", NULL); return 200;
    case 2: text_request(t, "GET /nowhere", "", NULL); return 404;
    case 3: text_request(t, "POST /v1/holds", fields, "{"); return 400;
    case 4: text_string(t, HEALTH); return 200;
    case 5: text_request(t, "POST /v1/batch", "", LINE LINE LINE); return 200;
    case 6: text_request(t, "GET /v1/holds", "Origin: http://elsewhere\r\n", NULL); return 403;
    case 7: { /* long enough for several pieces */
        int size = 100 + (int)test_below(random, 2800);
        snprintf(body, sizeof body, "{\"value\":\"%*d\"}", size, 7);
        text_request(t, "PUT /v1/registers/y", fields, body);
        return 200;
    }
    default:
        snprintf(fields, sizeof fields, "Idempotency-Key: r%u\r\nTransfer-Encoding: chunked\r\n",
                 number);
        text_request(t, "PUT /v1/registers/z", fields, NULL);
        text_string(t, "9\r\n{\"value\":\r\n2\r\n2}\r\n0\r\n\r\n");
        return 200;
    }
}

/* Send all of it in pieces of any size; now and then the server gets the time to look at one by
 * itself. */
static void send_in_pieces(int fd, const struct text *t, uint64_t *random)
{
    static const size_t most[] = { 3, 40, 400, 20000 };
    size_t kind = test_below(random, 4);
    for (size_t at = 0; at < t->size;) {
        size_t n = 1 + test_below(random, most[kind]);
        n = n < t->size - at ? n : t->size - at;
        assert_true(server_send(fd, t->data + at, n));
        at += n;
        if (test_below(random, 50) == 0) {
            server_pause_ms(1);
            kind = test_below(random, 4);
        }
    }
}

/* However the bytes are cut on their way, they are the same requests. At the end the client sends
 * no more, and still gets every answer. */
static void any_pieces_are_the_same_requests(void **state)
{
    (void)state;
    enum { ROUNDS = 120, MOST = 300 };
    uint64_t random = test_seed("pieces", 7);
    unsigned number = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int status[MOST], count = 1 + (int)test_below(&random, round % 10 ? 30 : MOST);
        struct text t = { 0 };
        for (int i = 0; i < count; i++)
            status[i] = random_request(&t, &random, number++);
        int fd = server_connect(&s);
        send_in_pieces(fd, &t, &random);
        if (round % 2)
            shutdown(fd, SHUT_WR);
        for (int i = 0; i < count; i++) {
            struct reply r;
            if (!server_receive(fd, &r, false))
                fail_msg("round %d: answer %d of %d did not come", round, i + 1, count);
            if (r.status != status[i])
                fail_msg("round %d: answer %d is %d instead of %d: %s", round, i + 1, r.status,
                         status[i], r.body);
            reply_free(&r);
        }
        if (round % 2)
            watch_ends(fd);
        close(fd);
        free(t.data);
    }
}

/* ---- Leaving ---- */

/* Close at once: what was sent arrives, and the first answer is met with a reset. */
static void send_and_leave(const struct text *t, bool reset)
{
    int fd = server_connect(&s);
    assert_true(server_send(fd, t->data, t->size));
    server_leave(fd, reset);
}

/* More requests than are worked on at one time, and behind them something that is answered at once:
 * while the first answers are being sent the rest is looked at, and by then nobody is there any
 * more. */
static void whoever_leaves_in_the_middle_does_no_harm(void **state)
{
    (void)state;
    static const char *const behind[] = {
        "NONSENSE\r\n\r\n",
        "GET /v1/holds HTTP/1.1\r\nHost: localhost\r\nOrigin: http://elsewhere\r\n\r\n",
        "POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: "
        "100-continue\r\n\r\n",
        "POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\n",
        "GET /v1/resources HTTP/1.1\r\nHost: localhost\r\n\r\n",
        HEALTH HEALTH HEALTH HEALTH,
    };
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        struct text t = { 0 };
        text_repeat(&t, HEALTH, PIPELINE_MAX);
        text_string(&t, behind[i]);
        for (int k = 0; k < 60; k++)
            send_and_leave(&t, k % 4 == 3);
        free(t.data);
    }
    struct reply r;
    server_ask(&s, "GET /readyz", "", NULL, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
}

/* ---- A file, and somebody who wants to send ---- */

/* The 100 of a request belongs between two answers, also when the one before it is a file that
 * takes long to send. */
static void the_100_never_stands_within_an_answer(void **state)
{
    (void)state;
    static const char body[] = "{\"resource\":\"a\",\"requester\":\"q\",\"duration\":\"1h\"}";
    static const size_t sizes[] = { 0, 3000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct reply whole, r;
        char fields[128];
        server_fill_holds(&s, sizes[i]);
        server_ask(&s, "GET /v1/export", "", NULL, &whole);
        int fd = server_connect_narrow(&s);
        struct text t = { 0 };
        snprintf(fields, sizeof fields,
                 "Idempotency-Key: k%zu\r\nContent-Length: %zu\r\nExpect: 100-continue\r\n", i,
                 sizeof body - 1);
        text_request(&t, "GET /v1/export", "", NULL);
        text_request(&t, "POST /v1/holds", fields, NULL);
        assert_true(server_send(fd, t.data, t.size));
        free(t.data);
        assert_int_equal(
            poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, SERVER_PATIENCE_MS), 1);
        server_pause_ms(50); /* so that as much of the export is sent as fits */
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, 200);
        assert_int_equal(r.body_size, whole.body_size);
        assert_null(memmem(r.body, r.body_size, "HTTP/1.1", 8));
        /* where it also tells of the server's sessions, and they come when they are needed */
        if (!both_is_postgres())
            assert_memory_equal(r.body, whole.body, whole.body_size);
        reply_free(&r);
        reply_free(&whole);
        assert_true(server_send_text(fd, body));
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, i == 0 ? 201 : 409);
        reply_free(&r);
        close(fd);
    }
}

/* Take an export as fast as it comes, and tell when it began and ended. */
static _Noreturn void take_export(int tell)
{
    static char room[1 << 20];
    int64_t when[2] = { 0 };
    int fd = server_connect(&s);
    bool good = server_send_text(
        fd, "GET /v1/export HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    for (ssize_t n; good && (n = recv(fd, room, sizeof room, 0)) > 0;)
        if (when[0] == 0)
            when[0] = server_clock_ms();
    when[1] = server_clock_ms();
    _exit(good && write(tell, when, sizeof when) == sizeof when ? 0 : 1);
}

/* However fast somebody takes a large file, others have their turn in between. */
static void an_export_lets_others_in(void **state)
{
    (void)state;
    enum { ASKS = 20000 };
    static int64_t answered[ASKS];
    int64_t when[2];
    int ends[2], count = 0, within = 0;
    server_fill_registers(&s, WATCH_SANITIZED ? 48 << 20 : 96 << 20);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        take_export(ends[1]);
    int fd = server_connect(&s);
    while (poll(&(struct pollfd){ .fd = ends[0], .events = POLLIN }, 1, 1) == 0 && count < ASKS) {
        struct reply r;
        assert_true(server_call(fd, "GET /healthz", "", NULL, &r));
        assert_int_equal(r.status, 200);
        reply_free(&r);
        answered[count++] = server_clock_ms();
    }
    assert_int_equal(read(ends[0], when, sizeof when), sizeof when);
    for (int i = 0; i < count; i++)
        within += answered[i] > when[0] && answered[i] < when[1];
    printf("%d requests were answered within %d ms of export\n", within, (int)(when[1] - when[0]));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(within >= 5);
    close(fd);
    close(ends[0]);
    close(ends[1]);
}

/* With several I/O threads commits are made by another one than answers. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(answers_come_in_order, server_init, 1),
        SERVER_TEST(answers_come_in_order, server_init, 3),
        SERVER_TEST(a_connection_reads_its_own_writes, server_init, 1),
        SERVER_TEST(a_connection_reads_its_own_writes, server_init, 3),
        SERVER_TEST(a_read_that_waits_is_answered_or_let_go, server_init, 1),
        SERVER_TEST(a_read_that_waits_is_answered_or_let_go, server_init, 3),
        SERVER_TEST(any_pieces_are_the_same_requests, server_init, 1),
        SERVER_TEST(any_pieces_are_the_same_requests, server_init, 3),
        SERVER_TEST(whoever_leaves_in_the_middle_does_no_harm, server_init, 1),
        SERVER_TEST(whoever_leaves_in_the_middle_does_no_harm, server_init, 3),
        SERVER_TEST(the_100_never_stands_within_an_answer, server_init, 1),
        SERVER_TEST(the_100_never_stands_within_an_answer, server_init, 3),
        SERVER_TEST(an_export_lets_others_in, server_init, 1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
