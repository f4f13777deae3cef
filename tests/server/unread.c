/* Clients that ask for much and read little or nothing: they cost little, keep nobody out, and are
 * cut off. */
#include "server/kit/case.h"
#include "server/kit/text.h"
#include "server/kit/watch.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
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
    const uint64_t total = 64 << 20;
    struct text t = { 0 };
    char room[2048]; /* little at a time, so that the server is faster */
    size_t sent = 0;
    uint64_t got = 0;
    for (int i = 0; i < 1000; i++)
        text_request(&t, "GET /v1/openapi.json", "", NULL);
    int fd = server_connect_narrow(&s);
    server_await_read(fd);
    long before = watch_memory_kib(&s), most = 0;
    for (uint64_t look = 0; got < total;) {
        if (!move(fd, &t, &sent, &got, room, sizeof room))
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
    free(t.data);
}

/* Ask on several connections for as much as can be asked for in 300 ms each, and read nothing. A
 * slow machine asks for less, and only misses what too much would do. */
static void ask_and_do_not_read(int *fds, size_t count, const struct text *t)
{
    for (size_t i = 0; i < count; i++) {
        size_t sent = 0;
        fds[i] = server_connect_narrow(&s);
        for (int64_t until = server_clock_ms() + 300;
             sent < t->size && server_clock_ms() < until;) {
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

/* The server stays small, serves others meanwhile, and cuts them all off when the idle time is
 * over. */
static void not_reading_costs_little(const struct text *t, long bound_kib)
{
    enum { COUNT = 6 };
    int fds[COUNT];
    struct text lines = { 0 };
    text_repeat(&lines, LINE, 2000);
    watch_peak_forget(&s);
    long before = watch_memory_kib(&s);
    ask_and_do_not_read(fds, COUNT, t);
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
    struct text t = { 0 };
    server_fill_holds(&s, 1000);
    for (int i = 0; i < MANY; i++)
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
    for (int i = 0; i < MANY; i++)
        text_request(&t, "GET /v1/claims/c", "", NULL);
    not_reading_costs_little(&t, 64 * 1024);
    free(t.data);
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
    enum { COUNT = 40, MOST_MIB = 4096 };
#else
    enum { COUNT = 200, MOST_MIB = WATCH_SANITIZED ? 1536 : 1024 };
#endif
    int fds[COUNT];
    struct text t = { 0 };
    struct reply r;
    union_make();
    for (int i = 0; i < 128; i++)
        text_request(&t, "GET /v1/registers/u", "", NULL);
    for (size_t i = 0; i < COUNT; i++)
        fds[i] = server_connect_narrow(&s);
    server_ask(&s, "GET /healthz", "", NULL, &r);
    reply_free(&r);
    watch_peak_forget(&s);
    long before = watch_memory_kib(&s);
    server_freeze(&s); /* so that all come in one turn */
    for (size_t i = 0; i < COUNT; i++)
        assert_true(server_send(fds[i], t.data, t.size));
    server_thaw(&s);
    server_pause_ms(
        1000); /* to make answers; who has made fewer by then only misses what too many would do */
    others_are_served(LINE);
    long peak = watch_peak_kib(&s) - before;
    printf("%ld KiB more memory at most\n", peak);
    for (size_t i = 0; i < COUNT; i++)
        close(fds[i]);
    free(t.data);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
