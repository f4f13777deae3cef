/* Clients that ask for much and read little or nothing: they cost little, keep nobody out, and are
 * cut off. */
#define _GNU_SOURCE /* memmem */
#include "server/kit/case.h"
#include "server/kit/text.h"
#include "server/kit/watch.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE "{\"op\":\"check\",\"guard\":\"none\",\"identity\":\"i\"}\n"

enum { IDLE_MS = 1500, MANY = 256 }; /* more than are worked on at one time */

static void impatient(struct server *server)
{
    server_init(server);
    server->options.idle_ms = IDLE_MS;
}

/* Send and receive what goes without waiting; false if nothing did. */
static bool move(int fd, const struct text *requests, size_t *sent, uint64_t *got, char *room,
                 size_t size)
{
    ssize_t n = recv(fd, room, size, MSG_DONTWAIT), m = 0;
    if (n > 0)
        *got += (uint64_t)n;
    assert_true(n != 0 && (n > 0 || errno == EAGAIN));
    m = send(fd, requests->data + *sent, requests->size - *sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (m > 0)
        *sent = (*sent + (size_t)m) % requests->size;
    return n > 0 || m > 0;
}

/* Somebody who always asks for more than was read, and reads all the time: there is always
 * something left to send, and it must not add up. */
static void what_was_sent_is_not_kept(void **state)
{
    (void)state;
    const uint64_t total = (uint64_t)test_size(64) << 20;
    struct text bulk = { 0 };
    char room[2048]; /* little at a time, so that the server is faster */
    size_t sent = 0;
    uint64_t got = 0;
    for (int i = 0; i < 1000; i++)
        text_request(&bulk, "GET /v1/openapi.json", "", NULL);
    int fd = server_connect_narrow(&s);
    server_await_read(fd);
    long before = watch_memory_kib(&s), most = 0;
    for (uint64_t look = 0; got < total;) {
        if (!move(fd, &bulk, &sent, &got, room, sizeof room))
            poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 1000);
        if (got < look)
            continue;
        look += 2 << 20;
        long grown = watch_memory_kib(&s) - before;
        most = grown > most ? grown : most;
    }
    close(fd);
    printf("%llu MiB read, %ld KiB more memory at most\n", (unsigned long long)got >> 20, most);
    if (most > watch_bound_kib(8 * 1024))
        fail_msg("the server has grown by %ld KiB", most);
    free(bulk.data);
}

/* Ask on several connections for as much as can be asked for in 300 ms each, and read nothing. A
 * slow machine asks for less, and only misses what too much would do. */
static void ask_and_do_not_read(int *fds, size_t count, const struct text *bulk)
{
    for (size_t i = 0; i < count; i++) {
        size_t sent = 0;
        fds[i] = server_connect_narrow(&s);
        for (int64_t until = server_clock_ms() + 300;
             sent < bulk->size && server_clock_ms() < until;) {
            ssize_t n =
                send(fds[i], bulk->data + sent, bulk->size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n > 0)
                sent += (size_t)n;
            else
                server_pause_ms(2);
        }
    }
}

/* Others get their page and their batch. */
static void others_are_served(const char *lines)
{
    struct reply r;
    server_ask(&s, "GET /v1/holds?limit=1", "", NULL, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    server_ask(&s, "POST /v1/batch", "", lines, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
}

/* The server stays small, serves others meanwhile, and cuts them all off when the idle time is
 * over. */
static void not_reading_costs_little(const struct text *bulk, long bound_kib)
{
    enum { COUNT = 6 };
    int fds[COUNT];
    struct text lines = { 0 };
    text_repeat(&lines, LINE, 2000);
    watch_peak_forget(&s);
    long before = watch_memory_kib(&s);
    ask_and_do_not_read(fds, COUNT, bulk);
    for (int64_t until = server_clock_ms() + IDLE_MS; server_clock_ms() < until;
         server_pause_ms(20))
        others_are_served(lines.data);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         watch_figure(&s, "", "holdfast_http_connections") > 1; server_pause_ms(20))
        assert_true(server_clock_ms() < until);
    long peak = watch_peak_kib(&s) - before;
    printf("%ld KiB more memory at most\n", peak);
    free(lines.data);
    for (size_t i = 0; i < COUNT; i++)
        close(fds[i]);
    if (peak > watch_bound_kib(bound_kib))
        fail_msg("the server had grown by %ld KiB", peak);
}

static void whoever_does_not_read_its_lists_is_cut_off(void **state)
{
    (void)state;
    struct text bulk = { 0 };
    server_fill_holds(&s, 1000);
    for (int i = 0; i < MANY; i++)
        text_request(&bulk, "GET /v1/holds?limit=1000", "", NULL);
    not_reading_costs_little(&bulk, 64 * 1024);
    free(bulk.data);
}

static void whoever_does_not_read_its_batches_is_cut_off(void **state)
{
    (void)state;
    struct text lines = { 0 }, bulk = { 0 };
    text_repeat(&lines, LINE, 4000);
    for (int i = 0; i < 40; i++)
        text_request(&bulk, "POST /v1/batch", "", lines.data);
    not_reading_costs_little(&bulk, 96 * 1024);
    free(lines.data);
    free(bulk.data);
}

/* The claim "c", with a response of nearly a megabyte. */
static void claim_make(void)
{
    struct text response = { 0 };
    struct reply r;
    text_repeat(&response, "{\"fence\":1,\"response\":\"", 1);
    text_repeat(&response, "xxxxxxxxxx", 90000);
    text_repeat(&response, "\"}", 1);
    server_ask(&s, "POST /v1/claims", "", "{\"key\":\"c\",\"payload\":1}", &r);
    assert_int_equal(r.status, 201);
    reply_free(&r);
    server_ask(&s, "POST /v1/claims/c/complete", "", response.data, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    free(response.data);
}

static void whoever_does_not_read_its_claims_is_cut_off(void **state)
{
    (void)state;
    struct text bulk = { 0 };
    claim_make();
    for (int i = 0; i < MANY; i++)
        text_request(&bulk, "GET /v1/claims/c", "", NULL);
    not_reading_costs_little(&bulk, 64 * 1024);
    free(bulk.data);
}

/* The register "u": a union of a thousand names, together as large as a value may be. */
static void union_make(void)
{
    struct text body = { 0 };
    struct reply r;
    text_string(&body, "{\"type\":\"union\",\"value\":[");
    for (int i = 0; i < 1000; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s\"%d%054d\"", i ? "," : "", i, 0);
        text_string(&body, name);
    }
    text_string(&body, "]}");
    server_ask(&s, "POST /v1/registers/u/merge", "", body.data, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    free(body.data);
}

/* What many ask for at one time and nobody reads: an answer that is made and waits behind others
 * counts as much as one that is being sent. */
static void answers_behind_unread_ones_are_bounded(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__ /* which takes a multiple of the memory and of the time */
    enum { COUNT = 16, MOST_MIB = 4096 };
#else
    enum { COUNT = 200, MOST_MIB = WATCH_SANITIZED ? 1536 : 1024 };
#endif
    int fds[COUNT];
    struct text bulk = { 0 };
    struct reply r;
    union_make();
    for (int i = 0; i < 128; i++)
        text_request(&bulk, "GET /v1/registers/u", "", NULL);
    for (size_t i = 0; i < COUNT; i++)
        fds[i] = server_connect_narrow(&s);
    server_ask(&s, "GET /healthz", "", NULL, &r);
    reply_free(&r);
    watch_peak_forget(&s);
    long before = watch_memory_kib(&s);
    server_freeze(&s); /* so that all come in one turn */
    for (size_t i = 0; i < COUNT; i++)
        assert_true(server_send(fds[i], bulk.data, bulk.size));
    server_thaw(&s);
    server_pause_ms(
        1000); /* to make answers; who has made fewer by then only misses what too many would do */
    others_are_served(LINE);
    long peak = watch_peak_kib(&s) - before;
    printf("%ld KiB more memory at most\n", peak);
    for (size_t i = 0; i < COUNT; i++)
        close(fds[i]);
    free(bulk.data);
    if (peak > MOST_MIB * 1024L)
        fail_msg("the server had grown by %ld KiB", peak);
}

/* Memory that one answer needed is given back when it is sent. */
static void a_large_answer_leaves_nothing_behind(void **state)
{
    (void)state;
    struct text lines = { 0 };
    struct reply r;
    claim_make();
    text_repeat(&lines, "{\"op\":\"begin\",\"key\":\"c\",\"payload\":1}\n", 30);
    long before = watch_memory_kib(&s);
    server_ask(&s, "POST /v1/batch", "", lines.data, &r);
    assert_int_equal(r.status, 200);
    assert_true(r.body_size > 25 << 20);
    reply_free(&r);
    server_ask(&s, "GET /healthz", "", NULL, &r); /* it is behind that one */
    reply_free(&r);
    long grown = watch_memory_kib(&s) - before;
    printf("%ld KiB more memory\n", grown);
    assert_true(grown < watch_bound_kib(16 * 1024));
    free(lines.data);
}

/* A small request for a thousand times the same large answer gets small answers: each has a share
 * of what a batch may be answered with, and who needs more is told to ask by itself. */
static void a_batch_cannot_ask_for_gigabytes(void **state)
{
    (void)state;
    enum { LINES = 1000 };
    struct text lines = { 0 };
    struct reply r;
    size_t told = 0;
    claim_make();
    text_repeat(&lines, "{\"op\":\"begin\",\"key\":\"c\",\"payload\":1}\n", LINES);
    watch_peak_forget(&s);
    long before = watch_memory_kib(&s);
    server_ask(&s, "POST /v1/batch", "", lines.data, &r);
    assert_int_equal(r.status, 200);
    for (const char *at = r.body; (at = strstr(at, "Send it again as a single request")) != NULL;
         at++)
        told++;
    assert_int_equal(told, LINES);
    reply_free(&r);
    long peak = watch_peak_kib(&s) - before;
    printf("%ld KiB more memory at most\n", peak);
    assert_true(peak < watch_bound_kib(96 * 1024));
    free(lines.data);
    server_ask(&s, "POST /v1/claims", "", "{\"key\":\"c\",\"payload\":1}", &r);
    assert_int_equal(r.status, 200);
    assert_true(r.body_size > 900000);
    reply_free(&r);
}

/* Requests that are sent without waiting for answers: they are answered in order, however they were
 * cut on their way, and whoever leaves in the middle does no harm. Clients that do not read are in
 * unread.c. */

#define HEALTH "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"

enum { PIPELINE_MAX = 128 }; /* requests of one connection that are worked on at one time */

/* ---- Order ---- */

/* Quick and slow ones in turn: a page is made on another thread, a write waits for the disk, a
 * refusal for nobody. */
static void answers_come_in_order(void **state)
{
    (void)state;
    enum { TURNS = 200 };
    struct text bulk = { 0 };
    int fd = server_connect(&s);
    for (int i = 0; i < TURNS; i++) {
        char fields[64], body[64];
        snprintf(fields, sizeof fields, "Idempotency-Key: k%d\r\n", i);
        snprintf(body, sizeof body, "{\"value\":%d}", i);
        text_request(&bulk, "PUT /v1/registers/x", fields, body);
        text_request(&bulk, "GET /v1/resources?limit=1", "", NULL);
        text_request(&bulk, "GET /v1/registers/x", "", NULL);
        text_request(&bulk, "GET /nowhere", "", NULL);
        text_request(&bulk, "HEAD /v1/registers/x", "", NULL);
    }
    assert_true(server_send(fd, bulk.data, bulk.size));
    free(bulk.data);
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
        struct text bulk = { 0 };
        struct reply r;
        snprintf(fields, sizeof fields, "Idempotency-Key: r%d\r\n", i);
        snprintf(body, sizeof body,
                 "{\"resource\":\"r%d\",\"requester\":\"q\",\"duration\":\"1h\"}", i);
        snprintf(name, sizeof name, "\"r%d\"", i);
        snprintf(reads[0], sizeof reads[0], "GET /v1/holds?resource=r%d", i);
        snprintf(reads[1], sizeof reads[1], "GET /v1/trace/r%d", i);
        text_request(&bulk, "POST /v1/holds", fields, body);
        text_request(&bulk, what, "", NULL);
        text_string(&bulk, HEALTH);
        assert_true(server_send(fd, bulk.data, bulk.size));
        free(bulk.data);
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
        struct text bulk = { 0 };
        snprintf(fields, sizeof fields, "Idempotency-Key: w%d\r\n", i);
        text_request(&bulk, "PUT /v1/registers/w", fields, "{\"value\":1}");
        text_request(&bulk, "GET /v1/holds?limit=1", "", NULL);
        int fd = server_connect(&s);
        assert_true(server_send(fd, bulk.data, bulk.size));
        free(bulk.data);
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
static int random_request(struct text *bulk, uint64_t *random, unsigned number)
{
    char fields[128], body[3000];
    snprintf(fields, sizeof fields, "Idempotency-Key: r%u\r\n", number);
    switch (test_below(random, 9)) {
    case 0: text_request(bulk, "PUT /v1/registers/x", fields, "{\"value\":1}"); return 200;
    case 1: text_request(bulk, "GET /v1/resources?limit=2", "", NULL); return 200;
    case 2: text_request(bulk, "GET /nowhere", "", NULL); return 404;
    case 3: text_request(bulk, "POST /v1/holds", fields, "{"); return 400;
    case 4: text_string(bulk, HEALTH); return 200;
    case 5: text_request(bulk, "POST /v1/batch", "", LINE LINE LINE); return 200;
    case 6: text_request(bulk, "GET /v1/holds", "Origin: http://elsewhere\r\n", NULL); return 403;
    case 7: { /* long enough for several pieces */
        int size = 100 + (int)test_below(random, 2800);
        snprintf(body, sizeof body, "{\"value\":\"%*d\"}", size, 7);
        text_request(bulk, "PUT /v1/registers/y", fields, body);
        return 200;
    }
    default:
        snprintf(fields, sizeof fields, "Idempotency-Key: r%u\r\nTransfer-Encoding: chunked\r\n",
                 number);
        text_request(bulk, "PUT /v1/registers/z", fields, NULL);
        text_string(bulk, "9\r\n{\"value\":\r\n2\r\n2}\r\n0\r\n\r\n");
        return 200;
    }
}

/* Send all of it in pieces of any size; now and then the server gets the time to look at one by
 * itself. */
static void send_in_pieces(int fd, const struct text *bulk, uint64_t *random)
{
    static const size_t most[] = { 3, 40, 400, 20000 };
    size_t kind = test_below(random, 4);
    for (size_t at = 0; at < bulk->size;) {
        size_t n = 1 + test_below(random, most[kind]);
        n = n < bulk->size - at ? n : bulk->size - at;
        assert_true(server_send(fd, bulk->data + at, n));
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
    enum { MOST = 300 };
    const int rounds = test_size(120);
    uint64_t random = test_seed("pieces", 7);
    unsigned number = 0;
    for (int round = 0; round < rounds; round++) {
        int status[MOST], count = 1 + (int)test_below(&random, round % 10 ? 30 : MOST);
        struct text bulk = { 0 };
        for (int i = 0; i < count; i++)
            status[i] = random_request(&bulk, &random, number++);
        int fd = server_connect(&s);
        send_in_pieces(fd, &bulk, &random);
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
        free(bulk.data);
    }
}

/* ---- Leaving ---- */

/* Close at once: what was sent arrives, and the first answer is met with a reset. */
static void send_and_leave(const struct text *bulk, bool reset)
{
    int fd = server_connect(&s);
    assert_true(server_send(fd, bulk->data, bulk->size));
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
        struct text bulk = { 0 };
        text_repeat(&bulk, HEALTH, PIPELINE_MAX);
        text_string(&bulk, behind[i]);
        for (int k = 0; k < 60; k++)
            send_and_leave(&bulk, k % 4 == 3);
        free(bulk.data);
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
        struct text bulk = { 0 };
        snprintf(fields, sizeof fields,
                 "Idempotency-Key: k%zu\r\nContent-Length: %zu\r\nExpect: 100-continue\r\n", i,
                 sizeof body - 1);
        text_request(&bulk, "GET /v1/export", "", NULL);
        text_request(&bulk, "POST /v1/holds", fields, NULL);
        assert_true(server_send(fd, bulk.data, bulk.size));
        free(bulk.data);
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
    server_fill_registers(&s, (size_t)test_size(WATCH_SANITIZED ? 48 : 96) << 20);
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
        SERVER_TEST(what_was_sent_is_not_kept, server_init, 1),
        SERVER_TEST(whoever_does_not_read_its_lists_is_cut_off, impatient, 1),
        SERVER_TEST(whoever_does_not_read_its_batches_is_cut_off, impatient, 1),
        SERVER_TEST(whoever_does_not_read_its_claims_is_cut_off, impatient, 1),
        SERVER_TEST(answers_behind_unread_ones_are_bounded, server_init, 1),
        SERVER_TEST(a_large_answer_leaves_nothing_behind, server_init, 1),
        SERVER_TEST(a_batch_cannot_ask_for_gigabytes, server_init, 1),
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
