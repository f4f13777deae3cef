/* Requests that are sent without waiting for answers: they are answered in order, whoever leaves in the middle does no
 * harm, and whoever does not read costs little and is cut off. */
#define _GNU_SOURCE /* TCP_MAXSEG */
#include "support/server_watch.h"
#include "support/test.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEALTH "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"

#define LINE "{\"op\":\"check\",\"guard\":\"none\",\"identity\":\"i\"}\n"

enum { IDLE_MS = 1500, PIPELINE_MAX = 128 };

static struct server s;

static int setup(void **state)
{
    (void)state;
    server_init(&s);
    server_start(&s);
    return 0;
}

/* Several I/O threads, so that commits are made by another one than answers. */
static int setup_threads(void **state)
{
    (void)state;
    server_init(&s);
    s.options.threads = 3;
    server_start(&s);
    return 0;
}

static int setup_impatient(void **state)
{
    (void)state;
    server_init(&s);
    s.options.idle_ms = IDLE_MS;
    server_start(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    server_end(&s);
    return 0;
}

/* ---- Text that grows ---- */

struct text {
    char *data; /* owned */
    size_t size, room;
};

static void text_add(struct text *t, const char *data, size_t size)
{
    if (t->size + size + 1 > t->room) {
        t->room = 2 * (t->size + size + 1);
        t->data = realloc(t->data, t->room);
        assert_non_null(t->data);
    }
    memcpy(t->data + t->size, data, size);
    t->size += size;
    t->data[t->size] = 0;
}

static void text_repeat(struct text *t, const char *what, size_t times)
{
    for (size_t i = 0; i < times; i++)
        text_add(t, what, strlen(what));
}

/* Add the request; what: as for server_request. */
static void text_request(struct text *t, const char *what, const char *fields, const char *body)
{
    char *request = server_request(what, fields, body);
    text_add(t, request, strlen(request));
    free(request);
}

/* ---- Order ---- */

/* Quick and slow ones in turn: a page is made on another thread, a write waits for the disk, a refusal for nobody. */
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

/* ---- Leaving ---- */

/* Close at once: what was sent arrives, and the first answer is met with a reset. */
static void send_and_leave(const struct text *t, bool reset)
{
    int fd = server_connect(&s);
    struct linger hard = { .l_onoff = 1 };
    assert_true(server_send(fd, t->data, t->size));
    if (reset)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
}

/* More requests than are worked on at one time, and behind them something that is answered at once: while the first
 * answers are being sent the rest is looked at, and by then nobody is there any more. */
static void whoever_leaves_in_the_middle_does_no_harm(void **state)
{
    (void)state;
    static const char *const behind[] = {
        "NONSENSE\r\n\r\n",
        "GET /v1/holds HTTP/1.1\r\nHost: h\r\nOrigin: http://elsewhere\r\n\r\n",
        "POST /v1/holds HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
        "POST /v1/holds HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999999\r\n\r\n",
        "GET /v1/resources HTTP/1.1\r\nHost: h\r\n\r\n",
        HEALTH HEALTH HEALTH HEALTH,
    };
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        struct text t = { 0 };
        text_repeat(&t, HEALTH, PIPELINE_MAX);
        text_repeat(&t, behind[i], 1);
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

/* Holds with long names, so that lists and exports are large. */
static void fill(size_t count)
{
    char *name = malloc(1025);
    struct text t = { 0 };
    assert_non_null(name);
    memset(name, 'r', 1024);
    name[1024] = 0;
    for (size_t i = 0; i < count; i++) {
        char number[24], line[2600];
        snprintf(number, sizeof number, "%08zu", i);
        memcpy(name, number, 8);
        snprintf(line, sizeof line,
                 "{\"op\":\"place_hold\",\"key\":\"fill-%zu\",\"resource\":\"%s\",\"requester\":\"%s\","
                 "\"duration\":\"1d\"}\n",
                 i, name, name);
        text_add(&t, line, strlen(line));
        if (t.size > 900000 || i + 1 == count) {
            struct reply r;
            server_ask(&s, "POST /v1/batch", "", t.data, &r);
            assert_int_equal(r.status, 200);
            assert_false(reply_has(&r, "{\"status\":4"));
            reply_free(&r);
            t.size = 0;
        }
    }
    free(t.data);
    free(name);
}

/* A client that takes little at a time, over a path that takes little at a time: with small segments the kernel keeps
 * little for the server, as it does over a network. */
static int connect_narrow(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)s.port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), room = 16384, segment = 536;
    assert_true(fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* The 100 of a request belongs between two answers, also when the one before it is a file that takes long to send. */
static void the_100_never_stands_within_an_answer(void **state)
{
    (void)state;
    static const char body[] = "{\"resource\":\"a\",\"requester\":\"q\",\"duration\":\"1h\"}";
    static const size_t sizes[] = { 0, 3000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct reply whole, r;
        char fields[128];
        fill(sizes[i]);
        server_ask(&s, "GET /v1/export", "", NULL, &whole);
        int fd = connect_narrow();
        struct text t = { 0 };
        snprintf(fields, sizeof fields,
                 "Idempotency-Key: k%zu\r\nContent-Length: %zu\r\nExpect: 100-continue\r\n", i,
                 sizeof body - 1);
        text_request(&t, "GET /v1/export", "", NULL);
        text_request(&t, "POST /v1/holds", fields, NULL);
        assert_true(server_send(fd, t.data, t.size));
        free(t.data);
        server_pause_ms(100); /* the export is made, and as much of it sent as fits */
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, 200);
        assert_int_equal(r.body_size, whole.body_size);
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

/* ---- Reading slowly, or not at all ---- */

/* Send and receive what goes without waiting; false if nothing did. */
static bool move(int fd, const struct text *requests, size_t *sent, uint64_t *got, char *room, size_t size)
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

/* Somebody who always asks for more than was read, and reads all the time: there is always something left to send, and it
 * must not add up. */
static void what_was_sent_is_not_kept(void **state)
{
    (void)state;
    const uint64_t total = WATCH_SANITIZED ? 64 << 20 : 192 << 20;
    struct text t = { 0 };
    char *room = malloc(65536);
    size_t sent = 0;
    uint64_t got = 0;
    assert_non_null(room);
    for (int i = 0; i < 1000; i++)
        text_request(&t, "GET /v1/openapi.json", "", NULL);
    int fd = connect_narrow();
    server_pause_ms(20);
    long before = watch_memory_kib(&s);
    while (got < total) {
        if (!move(fd, &t, &sent, &got, room, 65536))
            poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 1000);
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL); /* the server is faster */
    }
    long grown = watch_memory_kib(&s) - before;
    printf("%llu MiB read, %ld KiB more memory\n", (unsigned long long)got >> 20, grown);
    if (grown > watch_bound_kib(32 * 1024))
        fail_msg("the server has grown by %ld KiB", grown);
    close(fd);
    free(t.data);
    free(room);
}

/* Ask on several connections for as much as can be asked for, and read nothing. */
static void ask_and_do_not_read(int *fds, size_t count, const struct text *t)
{
    for (size_t i = 0; i < count; i++) {
        size_t sent = 0;
        fds[i] = connect_narrow();
        for (int64_t until = server_clock_ms() + 300; sent < t->size && server_clock_ms() < until;) {
            ssize_t n = send(fds[i], t->data + sent, t->size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
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

/* The server stays small, serves others meanwhile, and cuts them all off when the idle time is over. */
static void not_reading_costs_little(const struct text *t, long bound_kib)
{
    enum { COUNT = 6 };
    int fds[COUNT];
    struct text lines = { 0 };
    text_repeat(&lines, LINE, 2000);
    watch_peak_forget(&s);
    long before = watch_memory_kib(&s);
    ask_and_do_not_read(fds, COUNT, t);
    for (int64_t until = server_clock_ms() + IDLE_MS; server_clock_ms() < until; server_pause_ms(20))
        others_are_served(lines.data);
    for (int64_t until = server_clock_ms() + 20000; watch_figure(&s, "", "holdfast_http_connections") > 1;
         server_pause_ms(20))
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
    struct text t = { 0 };
    fill(1000);
    for (int i = 0; i < 2 * PIPELINE_MAX; i++)
        text_request(&t, "GET /v1/holds?limit=1000", "", NULL);
    not_reading_costs_little(&t, 64 * 1024);
    free(t.data);
}

static void whoever_does_not_read_its_batches_is_cut_off(void **state)
{
    (void)state;
    struct text lines = { 0 }, t = { 0 };
    text_repeat(&lines, LINE, 4000);
    for (int i = 0; i < 40; i++)
        text_request(&t, "POST /v1/batch", "", lines.data);
    not_reading_costs_little(&t, 96 * 1024);
    free(lines.data);
    free(t.data);
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
    struct text t = { 0 };
    claim_make();
    for (int i = 0; i < 2 * PIPELINE_MAX; i++)
        text_request(&t, "GET /v1/claims/c", "", NULL);
    not_reading_costs_little(&t, 64 * 1024);
    free(t.data);
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

/* A small request for a thousand times the same large answer gets small answers: each has a share of what a batch may be
 * answered with, and who needs more is told to ask by itself. */
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
    for (const char *at = r.body; (at = strstr(at, "ask again by itself")) != NULL; at++)
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_THREADS(name) cmocka_unit_test_setup_teardown(name, setup_threads, teardown)
#define TEST_IMPATIENT(name) cmocka_unit_test_setup_teardown(name, setup_impatient, teardown)
    const struct CMUnitTest tests[] = {
        TEST(answers_come_in_order),
        TEST_THREADS(answers_come_in_order),
        TEST(whoever_leaves_in_the_middle_does_no_harm),
        TEST_THREADS(whoever_leaves_in_the_middle_does_no_harm),
        TEST(the_100_never_stands_within_an_answer),
        TEST_THREADS(the_100_never_stands_within_an_answer),
        TEST(what_was_sent_is_not_kept),
        TEST_IMPATIENT(whoever_does_not_read_its_lists_is_cut_off),
        TEST_IMPATIENT(whoever_does_not_read_its_batches_is_cut_off),
        TEST_IMPATIENT(whoever_does_not_read_its_claims_is_cut_off),
        TEST(a_large_answer_leaves_nothing_behind),
        TEST(a_batch_cannot_ask_for_gigabytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
