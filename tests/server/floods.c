/* Many at once: more connections than are allowed, thousands that trickle, come and go or stop in
 * the middle, more files than the system gives, more bytes than there is memory for. The server
 * refuses clearly, stays small, and serves whoever behaves. */
#define _GNU_SOURCE /* prlimit */
#include "server/kit/case.h"
#include "server/kit/text.h"
#include "server/kit/watch.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HOLD "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"

static void asks_and_gets(int fd, int status)
{
    struct reply r;
    assert_true(server_call(fd, "GET /healthz", "", NULL, &r));
    assert_int_equal(r.status, status);
    reply_free(&r);
}

static void is_served(void)
{
    int fd = server_connect(&s);
    asks_and_gets(fd, 200);
    close(fd);
}

/* Wait until the server has so many connections, the one that asks included. */
static void await_connections(int count)
{
    watch_await_figure(&s, "", "holdfast_http_connections", count);
}

/* ---- Connections that are too many ---- */

static void the_one_too_many_is_told_so(void **state)
{
    (void)state;
    enum { MAX = 5 };
    int fds[MAX];
    struct reply r;
    s.options.max_connections = MAX;
    server_start(&s);
    for (int i = 0; i < MAX; i++) {
        fds[i] = server_connect(&s);
        asks_and_gets(fds[i], 200);
    }
    for (int i = 0; i < 20; i++) { /* whether it has asked already or not */
        int fd = server_connect(&s);
        if (i % 2)
            (void)server_send_text(fd, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_true(server_receive(fd, &r, false));
        watch_refused(&r, 503, "too-many-connections", "limit of connections is reached");
        assert_string_equal(reply_field(&r, "Connection"), "close");
        reply_free(&r);
        watch_ends(fd);
        close(fd);
    }
    for (int i = 0; i < MAX; i++)
        asks_and_gets(fds[i], 200); /* those who are in are not disturbed */
    close(fds[0]);
    int status = 503;
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         status != 200 && server_clock_ms() < until; server_pause_ms(5)) {
        fds[0] = server_connect(&s);
        assert_true(server_call(fds[0], "GET /metrics", "", NULL, &r));
        status = r.status;
        if (status == 200)
            assert_non_null(strstr(r.body, "holdfast_http_connections_refused_total 2"));
        else
            close(fds[0]);
        reply_free(&r);
    }
    assert_int_equal(status, 200);
    for (int i = 0; i < MAX; i++)
        close(fds[i]);
}

/* ---- Thousands that trickle ---- */

enum { TRICKLERS = 2000, WORKERS = 32, WORK_MS = 1500, REQUESTS_MAX = 500000 };

struct worker {
    int fd;
    int64_t asked_us;
};

static int64_t clock_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

static void ask(struct worker *w, int number)
{
    char fields[64];
    snprintf(fields, sizeof fields, "Idempotency-Key: w%d\r\n", number);
    char *request = server_request("PUT /v1/registers/x", fields, "{\"value\":1}");
    w->asked_us = clock_us();
    assert_true(server_send_text(w->fd, request));
    free(request);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct delay {
    int requests;
    int64_t median_us, p99_us, worst_us;
};

/* 32 connections ask and wait, again and again, for WORK_MS. Meanwhile each of the tricklers sends
 * a byte a second. */
static struct delay work(struct worker *workers, const int *tricklers, size_t count, int first)
{
    static const char field[] = "X-Slow: 1\r\n";
    static int64_t took[REQUESTS_MAX];
    struct pollfd p[WORKERS];
    int done = 0, waiting = WORKERS;
    size_t turn = 0;
    int64_t begun_us = clock_us(), passed_us = 0;
    for (int i = 0; i < WORKERS; i++) {
        p[i] = (struct pollfd){ .fd = workers[i].fd, .events = POLLIN };
        ask(&workers[i], first + i);
    }
    while (waiting > 0) {
        assert_true(poll(p, WORKERS, SERVER_PATIENCE_MS) > 0);
        passed_us = clock_us() - begun_us;
        for (int i = 0; i < WORKERS; i++) {
            struct reply r;
            if (!(p[i].revents & POLLIN))
                continue;
            assert_true(server_receive(p[i].fd, &r, false));
            assert_int_equal(r.status, 200);
            reply_free(&r);
            took[done++] = clock_us() - workers[i].asked_us;
            waiting--;
            if (passed_us < WORK_MS * 1000 && done + waiting < REQUESTS_MAX) {
                ask(&workers[i], first + WORKERS + done);
                waiting++;
            }
        }
        for (size_t due = (size_t)passed_us * count / 1000000; turn < due; turn++)
            (void)send(tricklers[turn % count], field + turn / count % (sizeof field - 1), 1,
                       MSG_NOSIGNAL);
    }
    qsort(took, (size_t)done, sizeof *took, by_size);
    return (struct delay){ done, took[done / 2], took[done * 99 / 100], took[done - 1] };
}

static void print_delay(const char *what, struct delay d)
{
    printf("%s: %d requests, median %lld us, p99 %lld us, worst %lld us\n", what, d.requests,
           (long long)d.median_us, (long long)d.p99_us, (long long)d.worst_us);
}

/* Every one of them is told that it was too slow. */
static void all_are_told(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct reply r;
        assert_true(server_receive(fds[i], &r, false));
        watch_refused(&r, 408, "request-timeout", NULL);
        reply_free(&r);
        close(fds[i]);
    }
}

/* True if the tricklers were there until the workers had done their work: a head has `head_ms`, and
 * on a busy machine that is over too soon. */
static bool work_among_tricklers(unsigned head_ms)
{
    static int fds[TRICKLERS];
    struct worker workers[WORKERS];
    size_t count = TRICKLERS;
    if (watch_allow_files(TRICKLERS + 200) < TRICKLERS + 200)
        count = watch_allow_files(TRICKLERS + 200) / 2;
    s.options.head_ms = head_ms;
    server_start(&s);
    for (int i = 0; i < WORKERS; i++)
        workers[i].fd = server_connect(&s);
    struct delay alone = work(workers, NULL, 0, 0);
    long before = watch_memory_kib(&s);
    int64_t begun = server_clock_ms();
    for (size_t i = 0; i < count; i++) {
        fds[i] = server_connect(&s);
        assert_true(server_send_text(fds[i], "GET /healthz HTTP/1.1\r\nHost: h\r\n"));
    }
    await_connections((int)count + WORKERS + 1);
    struct delay crowded = work(workers, fds, count, REQUESTS_MAX);
    bool there = server_clock_ms() - begun < head_ms;
    long grown = watch_memory_kib(&s) - before;
    print_delay("alone", alone);
    printf("%zu tricklers take %ld KiB\n", count, grown);
    print_delay("among them", crowded);
    assert_true(!there || crowded.requests > alone.requests / 20);
    assert_true(grown < watch_bound_kib((long)count * 24));
    all_are_told(fds, count);
    for (int i = 0; i < WORKERS; i++) {
        asks_and_gets(workers[i].fd, 200);
        close(workers[i].fd);
    }
    return there;
}

static void tricklers_do_not_disturb(void **state)
{
    (void)state;
    unsigned head_ms = 6000;
    while (!work_among_tricklers(head_ms)) {
        assert_true(head_ms < 100000);
        head_ms *= 3;
        assert_int_equal(server_stop(&s), 0);
    }
}

/* ---- Coming and going ---- */

static void ten_thousand_come_and_go(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    server_start(&s);
    int control = server_connect(&s);
    asks_and_gets(control, 200);
    long before = watch_memory_kib(&s);
    int files = watch_files(&s);
    for (int i = 0; i < COUNT; i++) {
        int fd = server_connect(&s);
        if (i % 8 == 0)
            close(fd);
        else
            server_leave(fd, true);
        if (i % 500 == 0)
            asks_and_gets(control, 200);
    }
    await_connections(2);
    long grown = watch_memory_kib(&s) - before;
    printf("%d connections, %ld KiB more memory\n", COUNT, grown);
    assert_true(grown < watch_bound_kib(16 * 1024));
    assert_true(watch_files(&s) <= files + 2);
    asks_and_gets(control, 200);
    close(control);
}

/* Requests that stop in the middle, each at another place. */
static void thousands_stop_in_the_middle(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static const char *const halves[] = {
        "G",
        "GET /healthz HTTP/1.1\r\nHost: h\r\n",
        "POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{\"resource\":",
        "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n{",
        "GET /v1/holds HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\nGET",
        ("POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: "
         "100-continue\r\n\r\n"),
    };
    server_start(&s);
    int control = server_connect(&s);
    asks_and_gets(control, 200);
    long before = watch_memory_kib(&s);
    for (int i = 0; i < COUNT; i++) {
        int fd = server_connect(&s);
        assert_true(server_send_text(fd, halves[(size_t)i % (sizeof halves / sizeof *halves)]));
        if (i % 3 == 0)
            close(fd);
        else
            server_leave(fd, true);
        if (i % 100 == 0)
            asks_and_gets(control, 200);
    }
    await_connections(2);
    long grown = watch_memory_kib(&s) - before;
    printf("%d half requests, %ld KiB more memory\n", COUNT, grown);
    assert_true(grown < watch_bound_kib(24 * 1024));
    assert_int_equal((int)watch_figure(&s, "", "holdfast_queue"), 1);
    close(control);
}

/* ---- Files ---- */

/* The lowest number that no file of the server has. */
static unsigned lowest_free(void)
{
    for (unsigned number = 0;; number++) {
        char path[64];
        struct stat st;
        snprintf(path, sizeof path, "/proc/%d/fd/%u", (int)s.pid, number);
        if (lstat(path, &st) != 0)
            return number;
    }
}

/* The same, but a segment of the journal counts as no file: the store closes one and opens the next
 * again and again, with two numbers between them, so these would do for ever. */
static unsigned lowest_without_segments(void)
{
    for (unsigned number = 0;; number++) {
        char link[64], path[512];
        snprintf(link, sizeof link, "/proc/%d/fd/%u", (int)s.pid, number);
        ssize_t size = readlink(link, path, sizeof path - 1);
        if (size < 0)
            return number;
        path[size] = 0;
        if (strstr(path, "/data/journal-"))
            return number;
    }
}

static void allow_server(rlim_t count)
{
    struct rlimit limit;
    assert_int_equal(prlimit(s.pid, RLIMIT_NOFILE, NULL, &limit), 0);
    limit.rlim_cur = count;
    assert_int_equal(prlimit(s.pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

/* The system gives no more files: who is in goes on, who waits is let in when some leave or the
 * limit is lifted. */
static void without_files_the_others_wait(void **state)
{
    (void)state;
    enum { IN = 10, WAITING = 20 };
    int in[IN], waiting[WAITING];
    struct reply r;
    s.options.store.no_background = true; /* it opens and closes files when it likes */
    server_start(&s);
    for (int i = 0; i < IN; i++) {
        in[i] = server_connect(&s);
        asks_and_gets(in[i], 200);
    }
    allow_server(lowest_free());
    for (int i = 0; i < WAITING; i++) {
        waiting[i] = server_connect(&s); /* the system takes it; the server cannot */
        assert_true(server_send_text(waiting[i], "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"));
    }
    for (int i = 0; i < IN; i++) {
        char fields[64];
        snprintf(fields, sizeof fields, "Idempotency-Key: f%d\r\n", i);
        assert_true(server_call(in[i], "PUT /v1/registers/x", fields, "{\"value\":1}", &r));
        assert_int_equal(r.status, 200);
        reply_free(&r);
        assert_true(server_call(in[i], "GET /v1/export", "", NULL, &r)); /* it would need a file */
        watch_refused(&r, 503, "storage-failure", NULL);
        reply_free(&r);
    }
    close(in[0]);
    assert_true(server_receive(waiting[0], &r, false));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    /* One leaves, and one is let in. 300 ms are for one too many; if it takes longer, this test
     * misses it. */
    assert_int_equal(poll(&(struct pollfd){ .fd = waiting[1], .events = POLLIN }, 1, 300), 0);
    allow_server(1000);
    for (int i = 1; i < WAITING; i++) {
        assert_true(server_receive(waiting[i], &r, false));
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
    for (int i = 0; i < WAITING; i++)
        close(waiting[i]);
    for (int i = 1; i < IN; i++) {
        assert_true(server_call(in[i], "GET /v1/export", "", NULL, &r));
        assert_int_equal(r.status, 200);
        reply_free(&r);
        close(in[i]);
    }
}

static void allow_200_files(void)
{
    struct rlimit limit = { .rlim_cur = 100, .rlim_max = 200 };
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(98);
}

/* Fewer files than connections are allowed: the store's own are not given away to connections. */
static void connections_leave_files_for_the_store(void **state)
{
    (void)state;
    enum { COUNT = 250 };
    int fds[COUNT];
    int in = 0, refused = 0;
    struct reply r;
    s.before = allow_200_files;
    server_start(&s);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = server_connect(&s);
        assert_true(server_call(fds[i], "GET /healthz", "", NULL, &r));
        if (r.status == 200)
            in++;
        else
            watch_refused(&r, 503, "too-many-connections", NULL);
        refused += r.status != 200;
        reply_free(&r);
    }
    printf("%d let in, %d refused\n", in, refused);
    assert_true(in >= 100 && refused >= 50);
    assert_true(server_call(fds[0], "GET /v1/export?format=sqlite", "", NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    assert_true(server_call(fds[0], "POST /v1/holds", "Idempotency-Key: k\r\n", HOLD, &r));
    assert_int_equal(r.status, 201);
    reply_free(&r);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
}

static void allow_400_files(void)
{
    struct rlimit limit = { .rlim_cur = 400, .rlim_max = 400 };
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(98);
}

/* Write so many registers of 60000 bytes each. The status of the first that was not taken, or
 * 200. */
static int write_much(int fd, int count, const char *prefix)
{
    static char body[60100];
    int status = 200;
    strcpy(body, "{\"value\":\"");
    memset(body + 10, 'v', 60000);
    strcpy(body + 60010, "\"}");
    for (int i = 0; i < count && status == 200; i++) {
        char fields[64];
        struct reply r;
        snprintf(fields, sizeof fields, "Idempotency-Key: %s%d\r\n", prefix, i);
        assert_true(server_call(fd, "PUT /v1/registers/x", fields, body, &r));
        status = r.status;
        reply_free(&r);
    }
    return status;
}

/* Idle connections take all that is given to connections, and the journal goes on to a new segment
 * again and again. */
static void idle_connections_take_no_file_of_the_store(void **state)
{
    (void)state;
    enum { COUNT = 450 };
    int fds[COUNT];
    struct reply r;
    s.before = allow_400_files;
    s.options.store.segment_max_bytes = 128 << 10;
    s.options.store.keep_plain = true;
    server_start(&s);
    int writer = server_connect(&s);
    asks_and_gets(writer, 200);
    for (int i = 0; i < COUNT; i++)
        fds[i] = server_connect(&s);
    assert_int_equal(write_much(writer, 90, "w"), 200);
    assert_true(server_call(writer, "GET /readyz", "", NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    assert_true(server_call(writer, "GET /v1/export?format=sqlite", "", NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    char *log = server_log(&s);
    assert_non_null(strstr(log, "too low for max-connections 4096"));
    free(log);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    close(writer);
}

/* When the system gives no file after all, that is said, and nobody is sent to look at the disk. */
static void without_files_the_cause_is_named(void **state)
{
    (void)state;
    struct reply r;
    s.options.store.segment_max_bytes = 128 << 10;
    s.options.store.keep_plain = true;
    server_start(&s);
    int writer = server_connect(&s);
    assert_int_equal(write_much(writer, 2, "a"), 200);
    allow_server(lowest_without_segments());
    assert_int_equal(write_much(writer, 100, "b"), 503);
    assert_true(server_call(writer, "GET /readyz", "", NULL, &r));
    assert_int_equal(r.status, 503);
    assert_true(reply_has(&r, "\"why\":\"too many open files\""));
    reply_free(&r);
    assert_true(server_call(writer, "GET /metrics", "", NULL, &r));
    assert_true(reply_has(&r, "\nholdfast_out_of_space 0\n"));
    assert_true(reply_has(&r, "\nholdfast_out_of_files 1\n"));
    reply_free(&r);
    assert_true(watch_log(&s, "Too many open files", 1)); /* another thread writes the log */
    allow_server(1000);
    int status = 503; /* it tries again by itself */
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         status != 200 && server_clock_ms() < until; server_pause_ms(20))
        status = write_much(writer, 1, "c");
    assert_int_equal(status, 200);
    assert_int_equal(write_much(writer, 10, "d"), 200);
    close(writer);
}

/* ---- Memory ---- */

enum { MEMORY_KIB = 256 * 1024, SLACK_KIB = 96 * 1024 };

/* Begin a body, and send all of it but the last byte. */
static int hold_back(size_t size)
{
    char head[128], *body = malloc(size);
    int fd = server_connect(&s);
    assert_non_null(body);
    memset(body, ' ', size);
    snprintf(head, sizeof head,
             "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", size + 1);
    assert_true(server_send_text(fd, head));
    (void)server_send(fd, body, size);
    free(body);
    return fd;
}

/* Is it refused, when the server has read it? For want of memory, then. */
static bool is_refused(int fd)
{
    struct reply r;
    server_await_read(fd);
    is_served(); /* then the one thread has done with what it read before */
    if (poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) != 1)
        return false;
    assert_true(server_receive(fd, &r, false));
    watch_refused(&r, 503, "too-busy", "Too many bytes of requests");
    reply_free(&r);
    return true;
}

/* Large bodies that never end: when they take as much memory as is meant for them the next is
 * refused, and small ones still get through. */
static void large_bodies_have_a_bound_together(void **state)
{
    (void)state;
    enum { LARGE = 300, REST = 400, SMALL = 20 };
    static const size_t sizes[] = { 1000000, 100000, 20000, 5000 }; /* what fits in between */
    static int fds[LARGE + REST];
    int count = 0, refused = 0;
    server_start(&s);
    long before = watch_memory_kib(&s);
    while (count < LARGE)
        fds[count++] = hold_back(1000000);
    for (int i = 0; i < LARGE; i++)
        refused += is_refused(fds[i]);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bool full = false;
        while (!full) {
            assert_true(count < LARGE + REST);
            fds[count] = hold_back(sizes[i]);
            full = is_refused(fds[count++]);
        }
    }
    int small[SMALL];
    for (int i = 0; i < SMALL; i++)
        small[i] = hold_back(4000);
    for (int i = 0; i < SMALL; i++) {
        struct reply r;
        assert_true(server_send_text(small[i], "\n"));
        assert_true(server_receive(small[i], &r, false));
        assert_int_equal(r.status, 200);
        reply_free(&r);
        close(small[i]);
    }
    long peak = watch_peak_kib(&s) - before;
    printf("%d of %d refused, %ld KiB more memory at most\n", refused, LARGE, peak);
    assert_true(refused > 0 && refused < LARGE);
    assert_true(peak < watch_bound_kib(MEMORY_KIB + SLACK_KIB));
    for (int i = 0; i < count; i++)
        server_leave(fds[i], true);
    await_connections(1);
    is_served();
}

/* Answers that nobody takes: when they take as much memory as is meant for them, those who have
 * taken nothing for the longest time are closed, long before their idle time is over; who reads is
 * not. */
static void unread_answers_have_a_bound_together(void **state)
{
    (void)state;
    enum { COUNT = 450, EACH = 16 };
    static int fds[COUNT];
    int closed = 0;
    char *one = server_request("GET /v1/openapi.json", "", NULL),
         *requests = calloc(EACH, strlen(one) + 1);
    assert_non_null(requests);
    for (int i = 0; i < EACH; i++)
        strcat(requests, one);
    server_start(&s);
    int control = server_connect(&s);
    long before = watch_memory_kib(&s);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = server_connect_narrow(&s);
        assert_true(server_send_text(fds[i], requests));
        asks_and_gets(control, 200);
    }
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         closed < 10 && server_clock_ms() < until; server_pause_ms(50)) {
        closed = COUNT + 2 - (int)watch_figure(&s, "", "holdfast_http_connections");
        asks_and_gets(control, 200);
    }
    long grown = watch_memory_kib(&s) - before;
    printf("%d of %d closed, %ld KiB more memory\n", closed, COUNT, grown);
    assert_true(closed >= 10 && closed < COUNT * 3 / 4);
    assert_true(grown < watch_bound_kib(MEMORY_KIB + SLACK_KIB));
    asks_and_gets(control, 200);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    close(control);
    free(one);
    free(requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST_STOPPED(the_one_too_many_is_told_so, server_init),
        SERVER_TEST_STOPPED(tricklers_do_not_disturb, server_init),
        SERVER_TEST_STOPPED(ten_thousand_come_and_go, server_init),
        SERVER_TEST_STOPPED(thousands_stop_in_the_middle, server_init),
        SERVER_TEST_STOPPED(without_files_the_others_wait, server_init),
        SERVER_TEST_STOPPED(connections_leave_files_for_the_store, server_init),
        SERVER_TEST_STOPPED(idle_connections_take_no_file_of_the_store, server_init),
        SERVER_TEST_STOPPED(without_files_the_cause_is_named, server_init),
        SERVER_TEST_STOPPED(large_bodies_have_a_bound_together, server_init),
        SERVER_TEST_STOPPED(unread_answers_have_a_bound_together, server_init),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
