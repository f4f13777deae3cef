/* What one tenant or an unknown caller may take of what the server has: connections, exports,
 * memory for requests, and requests a second. Each test lets one tenant take all it can, and then
 * lets another one in. */
#include "base/hash.h"
#include "server/kit/talk.h"
#include "server/kit/text.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define AS_ALPHA "Authorization: Bearer alpha\r\n"
#define AS_BETA "Authorization: Bearer beta\r\n"
#define AS_GAMMA "Authorization: Bearer gamma\r\n"
#define AS_OPERATOR "Authorization: Bearer op\r\n"
#define HOLD "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"

static struct server s;
static char path[600];

static void credentials_write(void)
{
    static const char *const names[] = { "alpha", "beta", "gamma", "op" };
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint8_t digest[HF_DIGEST_SIZE];
        hf_sha256_of(names[i], strlen(names[i]), digest);
        fprintf(f, "%s ", strcmp(names[i], "op") == 0 ? "* operator" : names[i]);
        fputs(strcmp(names[i], "op") == 0 ? "" : "admin ", f);
        for (size_t k = 0; k < HF_DIGEST_SIZE; k++)
            fprintf(f, "%02x", digest[k]);
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static int setup(void **state)
{
    (void)state;
    server_init(&s);
    snprintf(path, sizeof path, "%s/credentials", s.dir);
    credentials_write();
    s.options.auth_file = path;
    s.options.log_duplicates = false;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    server_end(&s);
    return 0;
}

/* ---- Connections ---- */

enum join { IN, TENANT_FULL, SERVER_FULL };

/* One more connection of a tenant. fd: out, -1 if it was not let in. */
static enum join joins(const char *as, int *fd)
{
    struct reply r;
    enum join got = IN;
    *fd = server_connect(&s);
    assert_true(server_call(*fd, "GET /healthz", as, NULL, &r));
    if (r.status != 200) {
        watch_refused(&r, 503, "too-many-connections", NULL);
        got = reply_has(&r, "Your tenant has reached its limit") ? TENANT_FULL : SERVER_FULL;
        assert_true(got == TENANT_FULL || reply_has(&r, "This server has as many connections"));
        close(*fd);
        *fd = -1;
    }
    reply_free(&r);
    return got;
}

/* As many connections of a tenant as it gets, up to `max`. why: out, what ended it. */
static int joins_many(const char *as, int *fds, int max, enum join *why)
{
    int count = 0;
    *why = IN;
    while (count < max && (*why = joins(as, &fds[count])) == IN)
        count++;
    return count;
}

static void allow_400_files(void)
{
    struct rlimit limit = { .rlim_cur = 400, .rlim_max = 400 };
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(98);
}

/* The system gives far fewer descriptors than max-connections: half of what is left is a tenant's,
 * and not half of what was configured. */
static void shares_are_of_what_is_possible(void **state)
{
    (void)state;
    enum { MOST = 400 };
    static int alpha[MOST], beta[MOST], gamma[MOST];
    enum join why;
    s.before = allow_400_files;
    s.options.tenant_connections = *(const unsigned *)*state;
    server_start(&s);
    int a = joins_many(AS_ALPHA, alpha, MOST, &why);
    assert_int_equal(why, TENANT_FULL);
    int b = joins_many(AS_BETA, beta, MOST, &why);
    printf("%d of alpha, %d of beta\n", a, b);
    assert_int_equal(why, SERVER_FULL);
    assert_int_equal(joins(AS_GAMMA, gamma), SERVER_FULL);
    assert_true(b >= a / 2);
    assert_int_equal(watch_log(&s, "too low for max-connections 4096", 1), true);
    for (int i = 0; i < a; i++)
        close(alpha[i]);
    for (int i = 0; i < b; i++)
        close(beta[i]);
}

/* However few connections there are, the reserve for unknown callers is at most a quarter of
 * them. */
static void most_of_few_connections_are_for_known_callers(void **state)
{
    (void)state;
    static const struct {
        unsigned max;
        int alpha, beta;
    } cases[] = { { 8, 4, 2 }, { 16, 8, 4 }, { 3, 1, 1 }, { 64, 32, 16 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int alpha[64], beta[64], gamma;
        enum join why;
        s.options.max_connections = cases[i].max;
        server_start(&s);
        int a = joins_many(AS_ALPHA, alpha, 64, &why);
        printf("%u: %d of alpha\n", cases[i].max, a);
        assert_int_equal(a, cases[i].alpha);
        assert_int_equal(why, TENANT_FULL);
        assert_int_equal(joins_many(AS_BETA, beta, cases[i].beta, &why), cases[i].beta);
        assert_int_equal(joins(AS_GAMMA, &gamma), SERVER_FULL);
        if (cases[i].max > 4) { /* then there is a place for who has to look into it */
            int op;
            assert_int_equal(joins(AS_OPERATOR, &op), IN);
            close(op);
        }
        for (int k = 0; k < a; k++)
            close(alpha[k]);
        for (int k = 0; k < cases[i].beta; k++)
            close(beta[k]);
        assert_int_equal(server_stop(&s), 0);
    }
}

/* ---- Exports ---- */

/* Holds of alpha, so that its export is many times what the kernel keeps for a connection. */
static void fill(void)
{
    enum { LINES = 4000, BATCHES = 4 };
    struct reply r;
    int fd = server_connect(&s);
    for (int b = 0; b < BATCHES; b++) {
        struct text body = { 0 };
        for (int i = 0; i < LINES; i++) {
            char line[160];
            snprintf(line, sizeof line,
                     "{\"op\":\"place_hold\",\"key\":\"f%d-%d\",\"resource\":\"r%d-%d\","
                     "\"requester\":\"q\",\"duration\":\"1h\"}\n",
                     b, i, b, i);
            text_string(&body, line);
        }
        assert_true(server_call(fd, "POST /v1/batch", AS_ALPHA, body.data, &r));
        assert_int_equal(r.status, 200);
        reply_free(&r);
        free(body.data);
    }
    close(fd);
}

/* An export that is being sent and that nobody reads. */
static int unread_export(void)
{
    int fd = server_connect_narrow(&s);
    assert_true(server_send_request(fd, "GET /v1/export", AS_ALPHA, NULL));
    assert_int_equal(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, SERVER_PATIENCE_MS),
                     1);
    return fd;
}

static void unread_exports_of_a_tenant_are_two(void **state)
{
    (void)state;
    struct reply r;
    int status = 503;
    server_start(&s);
    fill();
    int first = unread_export(), second = unread_export(), third = server_connect(&s);
    assert_true(server_call(third, "GET /v1/export", AS_ALPHA, NULL, &r));
    watch_refused(&r, 503, "too-busy", "exports");
    assert_string_equal(reply_field(&r, "Retry-After"), "1");
    reply_free(&r);
    assert_true(server_call(third, "GET /v1/audit", AS_ALPHA, NULL, &r)); /* that is no export */
    assert_int_equal(r.status, 200);
    reply_free(&r);
    int beta = server_connect(&s);
    assert_true(server_call(beta, "GET /v1/export", AS_BETA, NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    server_leave(first, true);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         status == 503 && server_clock_ms() < until;) {
        assert_true(server_call(third, "GET /v1/export", AS_ALPHA, NULL, &r));
        status = r.status;
        reply_free(&r);
    }
    assert_int_equal(status, 200);
    close(second);
    close(third);
    close(beta);
}

/* A client that reads a little now and then is never idle. It is cut off when its time is over, the
 * log says so, and its place is free. */
static void a_slow_reader_of_an_export_is_cut_off(void **state)
{
    (void)state;
    struct reply r;
    char part[512];
    bool cut = false;
    s.options.send_ms = 700;
    server_start(&s);
    fill();
    int slow = unread_export();
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; !cut && server_clock_ms() < until;
         server_pause_ms(20)) {
        (void)recv(slow, part, sizeof part, MSG_DONTWAIT);
        char *log = server_log(&s);
        cut = strstr(log, " warning export-cut tenant=\"alpha\" sent=") != NULL;
        free(log);
    }
    assert_true(cut);
    assert_true(server_closed(slow, SERVER_PATIENCE_MS));
    close(slow);
    int fast = server_connect(&s);
    assert_true(server_call(fast, "GET /v1/export", AS_ALPHA, NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    close(fast);
}

/* ---- Memory for requests ---- */

enum { PIPES = 160, DEPTH = 128 };

struct pipe_of {
    int fd;
    size_t sent, seen; /* bytes sent, and answers seen */
    char last[4];      /* the newest bytes that were received */
};

/* Count the answers in what has come: each begins with its status line, and all are 200. */
static void count_answers(struct pipe_of *p)
{
    static char got[65536 + 1];
    static const char begin[] = "HTTP/1.1 ";
    ssize_t n = recv(p->fd, got, sizeof got - 1, MSG_DONTWAIT);
    assert_true(n > 0 || (n < 0 && errno == EAGAIN));
    if (n <= 0)
        return;
    got[n] = 0;
    for (const char *at = got; (at = strstr(at, "\r\n\r\n{")) != NULL; at += 5)
        p->seen++;
    for (const char *at = got; (at = strstr(at, begin)) != NULL; at += sizeof begin - 1)
        if (strncmp(at + sizeof begin - 1, "200", 3) != 0)
            fail_msg("an answer was %.12s", at);
}

/* Requests with small bodies and large heads, as deep as a pipeline goes, over many connections,
 * while commits are slow: all are answered, and they never take more memory together than a tenant
 * may have. */
static void small_requests_of_one_have_a_bound_together(void **state)
{
    (void)state;
    static struct pipe_of pipes[PIPES];
    static struct pollfd polls[PIPES];
    struct text all = { 0 };
    char *pad = calloc(1, 8001);
    struct reply r;
    char id[64], what[96];
    assert_non_null(pad);
    memset(pad, 'p', 8000);
    s.options.threads = 2; /* then the commits are made on a thread of their own */
    server_start(&s);
    int control = server_connect(&s);
    assert_true(
        server_call(control, "POST /v1/holds", AS_ALPHA "Idempotency-Key: h\r\n", HOLD, &r));
    assert_int_equal(r.status, 201);
    snprintf(id, sizeof id, "%s", reply_text(&r, "id"));
    reply_free(&r);
    for (int i = 0; i < DEPTH; i++) { /* the value is one that takes no room in the answer */
        char fields[8200], body[4096];
        snprintf(fields, sizeof fields, AS_ALPHA "Idempotency-Key: k\r\nX-Pad: %s\r\n", pad);
        snprintf(body, sizeof body, "{\"value\":1%*s}", 4000, "");
        text_request(&all, "PUT /v1/registers/x", fields, body);
    }
    for (int i = 0; i < PIPES; i++) {
        pipes[i] = (struct pipe_of){ .fd = server_connect(&s) };
        polls[i] = (struct pollfd){ .fd = pipes[i].fd, .events = POLLIN | POLLOUT };
    }
    long before = watch_memory_kib(&s);
    watch_peak_forget(&s);
    atomic_store(&s.io->slow_sync_us, 1500000);
    bool ended = false;
    for (int left = PIPES; left > 0;) {
        assert_true(poll(polls, PIPES, SERVER_PATIENCE_MS) > 0);
        for (int i = 0; i < PIPES; i++) {
            struct pipe_of *p = &pipes[i];
            if (polls[i].revents & POLLOUT) {
                ssize_t n = send(p->fd, all.data + p->sent, all.size - p->sent,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
                p->sent += n > 0 ? (size_t)n : 0;
                if (p->sent == all.size)
                    polls[i].events = POLLIN;
            }
            if (polls[i].revents & (POLLIN | POLLHUP))
                count_answers(p);
            if (p->seen == DEPTH && polls[i].fd >= 0) {
                polls[i].fd = -1;
                left--;
            }
        }
        if (!ended && left < PIPES) { /* an ending of the same tenant is taken meanwhile */
            snprintf(what, sizeof what, "POST /v1/holds/%s/release", id);
            assert_true(server_call(control, what, AS_ALPHA "Idempotency-Key: e\r\n", NULL, &r));
            assert_int_equal(r.status, 200);
            reply_free(&r);
            atomic_store(&s.io->slow_sync_us, 0);
            ended = true;
        }
    }
    long grown = watch_peak_kib(&s) - before;
    printf("%d connections, %zu bytes each, %ld KiB more memory at most\n", PIPES, all.size, grown);
    assert_true(grown < watch_bound_kib((128 + 48) * 1024));
    for (int i = 0; i < PIPES; i++)
        close(pipes[i].fd);
    close(control);
    free(all.data);
    free(pad);
}

/* Beta does not read an answer for a while. Then another caller does not read so many that there is
 * no memory for them: the other one's are closed, and beta still gets its own. */
static void unread_answers_cost_beta_nothing(const char *as)
{
    enum { COUNT = 320, ASKED = 16 };
    static int fds[COUNT];
    struct text other = { 0 }, beta = { 0 };
    int closed = 0;
    for (int i = 0; i < ASKED; i++) {
        text_request(&other, "GET /v1/openapi.json", as, NULL);
        text_request(&beta, "GET /v1/openapi.json", AS_BETA, NULL);
    }
    server_start(&s);
    int reader = server_connect_narrow(&s);
    assert_true(server_send(reader, beta.data, beta.size));
    assert_int_equal(
        poll(&(struct pollfd){ .fd = reader, .events = POLLIN }, 1, SERVER_PATIENCE_MS), 1);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = server_connect_narrow(&s);
        assert_true(server_send(fds[i], other.data, other.size));
        watch_figure(&s, AS_OPERATOR, "holdfast_queue");
    }
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         closed == 0 && server_clock_ms() < until;)
        closed = COUNT + 2 - (int)watch_figure(&s, AS_OPERATOR, "holdfast_http_connections");
    printf("%d of %d closed\n", closed, COUNT);
    assert_true(closed > 0 && closed < COUNT);
    for (int i = 0; i < ASKED; i++)
        server_expect(reader, 200);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    close(reader);
    free(other.data);
    free(beta.data);
}

static void unread_answers_of_a_tenant_cost_no_other(void **state)
{
    (void)state;
    unread_answers_cost_beta_nothing(AS_ALPHA);
}

static void unread_answers_of_unknown_callers_cost_no_tenant(void **state)
{
    (void)state;
    unread_answers_cost_beta_nothing("");
}

/* ---- Requests a second ---- */

static char *batch_of(int lines)
{
    struct text body = { 0 };
    for (int i = 0; i < lines; i++) {
        char line[96];
        snprintf(line, sizeof line,
                 "{\"op\":\"write\",\"key\":\"b%d-%d\",\"name\":\"x\",\"value\":1}\n", lines, i);
        text_string(&body, line);
    }
    return body.data;
}

/* A batch costs its tenant at most ten seconds, and what was begun can be ended meanwhile. */
static void a_batch_locks_no_tenant_out(void **state)
{
    (void)state;
    enum { RATE = 5, MOST = 10 * RATE };
    struct reply r;
    char id[64], what[96];
    s.options.tenant_rate = RATE;
    server_start(&s);
    int fd = server_connect(&s);
    assert_true(server_call(fd, "POST /v1/holds", AS_ALPHA "Idempotency-Key: h\r\n", HOLD, &r));
    assert_int_equal(r.status, 201);
    snprintf(id, sizeof id, "%s", reply_text(&r, "id"));
    reply_free(&r);
    char *body = batch_of(1000);
    assert_true(server_call(fd, "POST /v1/batch", AS_ALPHA, body, &r));
    watch_refused(&r, 413, "batch-too-large", "at most 50 lines");
    reply_free(&r);
    free(body);
    body = batch_of(MOST);
    assert_true(server_call(fd, "POST /v1/batch", AS_ALPHA, body, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    assert_true(server_call(fd, "GET /v1/registers/x", AS_ALPHA, NULL, &r));
    watch_refused(&r, 429, "too-many-requests", NULL);
    assert_in_range(atoi(reply_field(&r, "Retry-After")), 1, 10);
    reply_free(&r);
    assert_true(server_call(fd, "POST /v1/batch", AS_ALPHA, body,
                            &r)); /* nor does a second one add to it */
    watch_refused(&r, 429, "too-many-requests", NULL);
    assert_in_range(atoi(reply_field(&r, "Retry-After")), 1, 10);
    reply_free(&r);
    free(body);
    snprintf(what, sizeof what, "POST /v1/holds/%s/release", id);
    assert_true(server_call(fd, what, AS_ALPHA "Idempotency-Key: e\r\n", NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    close(fd);
}

/* Endings have a limit too. */
static void endings_have_a_rate_of_their_own(void **state)
{
    (void)state;
    enum { RATE = 5, MANY = 40 };
    struct reply r;
    int taken = 0;
    s.options.tenant_rate = RATE;
    server_start(&s);
    int fd = server_connect(&s);
    int64_t begun = server_clock_ms();
    for (int i = 0; i < MANY; i++) {
        assert_true(server_call(fd, "POST /v1/holds/0/release", AS_ALPHA "Idempotency-Key: e\r\n",
                                NULL, &r));
        taken += r.status != 429;
        reply_free(&r);
    }
    int64_t passed = server_clock_ms() - begun;
    assert_true(taken >= RATE && taken <= RATE + 1 + passed * RATE / 1000);
    assert_true(server_call(fd, "GET /v1/resources", AS_ALPHA, NULL, &r));
    assert_int_equal(r.status, 200); /* and take nothing of what is not one */
    reply_free(&r);
    close(fd);
}

/* ---- Log lines ---- */

/* Two tenants reach their quota in the same moment: the line about one does not hide the other. */
static void each_tenant_at_its_quota_is_named(void **state)
{
    (void)state;
    static const char *const as[] = { AS_ALPHA, AS_BETA };
    s.options.store.tenant_records_max = 4;
    server_start(&s);
    for (int i = 0; i < 2; i++) {
        int fd = server_connect(&s), status = 200;
        for (int n = 0; status == 200 && n < 20; n++) {
            char fields[128], what[64];
            struct reply r;
            snprintf(fields, sizeof fields, "%sIdempotency-Key: k%d\r\n", as[i], n);
            snprintf(what, sizeof what, "PUT /v1/registers/r%d", n);
            assert_true(server_call(fd, what, fields, "{\"value\":1}", &r));
            status = r.status;
            reply_free(&r);
        }
        assert_int_equal(status, 503);
        close(fd);
    }
    assert_true(watch_log(&s, " warning quota tenant=\"alpha\" limit=records", 1));
    assert_true(watch_log(&s, " warning quota tenant=\"beta\" limit=records", 1));
}

/* A client asks for an abandoned claim again and again. So many lines a second say so, and the
 * figures count all. */
static void warnings_about_one_tenant_have_a_rate(void **state)
{
    (void)state;
    enum { ASKED = 600, RATE = 100 };
    struct reply r;
    unsigned lines = 0;
    server_start(&s);
    int fd = server_connect(&s);
    assert_true(server_call(fd, "POST /v1/claims", AS_ALPHA,
                            "{\"key\":\"c\",\"payload\":1,\"lease\":\"1ms\"}", &r));
    assert_int_equal(r.status, 201);
    reply_free(&r);
    for (int status = 0; status != 409;) { /* until its lease has run out */
        assert_true(
            server_call(fd, "POST /v1/claims", AS_ALPHA, "{\"key\":\"c\",\"payload\":1}", &r));
        status = reply_has(&r, "outcome-unknown") ? r.status : 0;
        reply_free(&r);
    }
    int64_t begun = server_clock_ms();
    for (int i = 0; i < ASKED; i++) {
        assert_true(
            server_call(fd, "POST /v1/claims", AS_ALPHA, "{\"key\":\"c\",\"payload\":1}", &r));
        assert_int_equal(r.status, 409);
        reply_free(&r);
    }
    int64_t passed = server_clock_ms() - begun;
    assert_true(watch_figure(&s, AS_OPERATOR, "holdfast_refusals_total{code=\"outcome-unknown\"}") >
                ASKED);
    assert_int_equal(server_stop(&s), 0); /* all lines are written then */
    char *log = server_log(&s);
    for (const char *at = log; (at = strstr(at, "outcome-unknown")) != NULL; at++)
        lines++;
    printf("%u lines in %d ms\n", lines, (int)passed);
    assert_true(lines >= RATE && lines <= 2 * RATE + passed * RATE / 1000);
    free(log);
    close(fd);
}

/* ---- Time of the I/O thread ---- */

static size_t received(const int *fds, int count)
{
    size_t sum = 0;
    for (int i = 0; i < count; i++) {
        int size = 0;
        assert_int_equal(ioctl(fds[i], FIONREAD, &size), 0);
        sum += (size_t)size;
    }
    return sum;
}

/* Clients without a credential send pipelines of requests, and a known caller asks at the same time,
 * last of all. The answer, which has the number of requests up to then, comes long before all of
 * theirs. */
static void unknown_callers_have_one_request_a_turn(void **state)
{
    (void)state;
    enum { CALLERS = 60, EACH = 200 };
    static const char figure[] = "\nholdfast_http_requests_total ";
    static int fds[CALLERS];
    struct text all = { 0 };
    struct reply r;
    text_repeat(&all, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n", EACH);
    server_start(&s);
    int fd = server_connect(&s);
    assert_true(server_call(fd, "GET /metrics", AS_OPERATOR, NULL, &r));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    for (int i = 0; i < CALLERS; i++)
        fds[i] = server_connect(&s);
    server_freeze(&s);
    for (int i = 0; i < CALLERS; i++)
        assert_true(server_send(fds[i], all.data, all.size));
    assert_true(server_send_request(fd, "GET /metrics", AS_OPERATOR, NULL));
    server_thaw(&s);
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(r.status, 200);
    const char *at = strstr(r.body, figure);
    assert_non_null(at);
    long answers = strtol(at + sizeof figure - 1, NULL, 10);
    reply_free(&r);
    for (int k = 0; k < EACH; k++) /* and theirs are answered, too */
        server_expect(fds[0], 200);
    printf("%ld requests when the known one had its answer\n", answers);
    assert_true(answers < CALLERS * EACH / 4);
    for (int i = 0; i < CALLERS; i++)
        close(fds[i]);
    close(fd);
    free(all.data);
}

/* A register of 61 KB, of bytes that take six each in JSON. */
static void escapes_make(void)
{
    struct text body = { 0 };
    struct reply r;
    text_string(&body, "{\"type\":\"union\",\"value\":[");
    for (int i = 0; i < 60; i++) {
        char number[8];
        snprintf(number, sizeof number, "%s\"%02d", i ? "," : "", i);
        text_string(&body, number);
        text_repeat(&body, "\\u0001", 1000);
        text_string(&body, "\"");
    }
    text_string(&body, "]}");
    server_ask(&s, "POST /v1/registers/escapes/merge", AS_ALPHA, body.data, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    free(body.data);
}

/* A tenant asks for many large answers at one time. What another tenant asks for comes before most
 * of them. */
static void large_answers_have_a_share_of_a_turn(void **state)
{
    (void)state;
    enum { CALLERS = 10, EACH = 60 };
    static int fds[CALLERS];
    struct text all = { 0 };
    struct reply r;
    int how;
    server_start(&s);
    escapes_make();
    for (int i = 0; i < EACH; i++)
        text_request(&all, "HEAD /v1/registers/escapes", AS_ALPHA, NULL);
    int fd = server_connect(&s);
    assert_true(server_call(fd, "GET /v1/resources", AS_BETA, NULL, &r));
    reply_free(&r);
    for (int i = 0; i < CALLERS; i++)
        fds[i] = server_connect(&s);
    assert_int_equal(kill(s.pid, SIGSTOP), 0);
    assert_int_equal(waitpid(s.pid, &how, WUNTRACED), s.pid);
    for (int i = 0; i < CALLERS; i++)
        assert_true(server_send(fds[i], all.data, all.size));
    assert_int_equal(kill(s.pid, SIGCONT), 0);
    while (received(fds, CALLERS) == 0)
        ;
    assert_true(server_call(fd, "GET /v1/resources", AS_BETA, NULL, &r));
    size_t by_then = received(fds, CALLERS), in_the_end = 0;
    assert_int_equal(r.status, 200);
    reply_free(&r);
    for (int i = 0; i < CALLERS; i++) { /* and theirs are answered, too */
        shutdown(fds[i], SHUT_WR);
        char part[4096];
        for (ssize_t n; (n = recv(fds[i], part, sizeof part, 0)) > 0;)
            in_the_end += (size_t)n;
        close(fds[i]);
    }
    printf("%zu of %zu bytes to others when the tenant had its own\n", by_then, in_the_end);
    assert_true(in_the_end > (size_t)CALLERS * EACH * 100);
    assert_true(by_then < in_the_end / 2);
    close(fd);
    free(all.data);
}

/* ---- Credentials that were taken out ---- */

/* A connection that belongs to a tenant is closed behind a request without a known credential: else
 * a credential that was taken out could keep the connections of its tenant for ever. */
static void a_lost_credential_keeps_no_connection(void **state)
{
    (void)state;
    static const char *const asks[] = { "GET /v1/resources", "GET /healthz" };
    struct reply r;
    int fds[2];
    server_start(&s);
    for (int i = 0; i < 2; i++)
        assert_int_equal(joins(AS_ALPHA, &fds[i]), IN);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_true(fputc('#', f) == '#'); /* alpha's line is a comment now */
    assert_int_equal(fclose(f), 0);
    watch_hangup(&s, "reloaded");
    for (int i = 0; i < 2; i++) {
        assert_true(server_call(fds[i], asks[i], AS_ALPHA, NULL, &r));
        assert_int_equal(r.status, i == 0 ? 401 : 200);
        assert_non_null(reply_field(&r, "Connection"));
        assert_string_equal(reply_field(&r, "Connection"), "close");
        reply_free(&r);
        watch_ends(fds[i]);
        close(fds[i]);
    }
}

int main(void)
{
    static unsigned unset = 0, given = 300;
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        { "shares_are_of_what_is_possible", shares_are_of_what_is_possible, setup, teardown,
          &unset },
        { "shares_are_of_what_is_possible_if_given", shares_are_of_what_is_possible, setup,
          teardown, &given },
        TEST(most_of_few_connections_are_for_known_callers),
        TEST(unread_exports_of_a_tenant_are_two),
        TEST(a_slow_reader_of_an_export_is_cut_off),
        TEST(small_requests_of_one_have_a_bound_together),
        TEST(unread_answers_of_a_tenant_cost_no_other),
        TEST(unread_answers_of_unknown_callers_cost_no_tenant),
        TEST(a_batch_locks_no_tenant_out),
        TEST(endings_have_a_rate_of_their_own),
        TEST(each_tenant_at_its_quota_is_named),
        TEST(warnings_about_one_tenant_have_a_rate),
        TEST(unknown_callers_have_one_request_a_turn),
        TEST(large_answers_have_a_share_of_a_turn),
        TEST(a_lost_credential_keeps_no_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
