/* What a hostile review of the server found, each as it was shown. */
#include "server/kit/text.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <poll.h>
#include <unistd.h>

static const char hold[] = "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}";

/* A trace and an export read the journal's files, where a batch stands before it is synced. They
 * waited for nobody and told of holds that a power cut would have undone. */
static void nothing_is_shown_from_the_files_before_it_is_durable(void **state)
{
    (void)state;
    static const char *const questions[] = { "GET /v1/trace/undurable",
                                             "GET /v1/export?format=jsonl", "GET /v1/audit" };
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        struct server s;
        struct reply r;
        server_init(&s);
        s.options.threads = 2;
        server_start(&s);
        server_ask_keyed(&s, "POST /v1/holds", "first", hold, &r);
        reply_free(&r);
        server_stop_commits(&s);
        char *place =
            server_request("POST /v1/holds", "Idempotency-Key: undurable\r\n",
                           "{\"resource\":\"undurable\",\"requester\":\"q\",\"duration\":\"1h\"}");
        int fd = server_connect(&s), asker = server_connect(&s);
        assert_true(server_send_text(fd, place));
        server_await_commit(&s); /* it is written, and the disk is at work */
        assert_true(server_send_request(asker, questions[i], "", NULL));
        server_await_read(asker);
        /* An answer that comes before the disk is done does not know of it. 500 ms are for an
         * answer that does to come; if it takes longer, this test misses it. An audit names
         * nothing, but it counts: it waits for the disk, too. */
        bool early = poll(&(struct pollfd){ .fd = asker, .events = POLLIN }, 1, 500) == 1;
        assert_false(early && i == 2 && !both_is_postgres());
        if (!early)
            server_let_commits(&s);
        assert_true(server_receive(asker, &r, false));
        assert_false(early && r.status == 200 && reply_has(&r, "undurable"));
        reply_free(&r);
        server_let_commits(&s);
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, 201);
        reply_free(&r);
        close(fd);
        close(asker);
        free(place);
        server_end(&s);
    }
}

/* The end of one request and the beginning of the next in one segment, again and again: each head
 * is quick, and the time of the first was counted for all of them. */
static void each_request_has_its_own_time(void **state)
{
    (void)state;
    enum {
        HEAD_MS = 3000
    }; /* all of them together take longer; the client may be late by nine tenths of it */
    struct server s;
    struct reply r;
    server_init(&s);
    s.options.head_ms = HEAD_MS;
    server_start(&s);
    int fd = server_connect(&s);
    char *one = server_request("GET /healthz", "", NULL);
    size_t half = strlen(one) / 2;
    char *middle = calloc(1, strlen(one) + 1);
    assert_non_null(middle);
    strcpy(middle, one + half); /* the second half, */
    strncat(middle, one, half); /* and the first half of the next */
    assert_true(server_send(fd, one, half));
    for (int i = 0; i < 12; i++) {
        server_pause_ms(HEAD_MS / 10);
        assert_true(server_send_text(fd, middle));
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
    /* One that is really slow is still cut off. */
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(r.status, 408);
    reply_free(&r);
    close(fd);
    free(one);
    free(middle);
    server_end(&s);
}

/* A name that somebody points at this machine makes a page of theirs the same origin as its
 * Host. */
static void a_rebound_name_is_not_ours(void **state)
{
    (void)state;
    struct server s;
    struct reply r;
    server_init(&s);
    server_start(&s);
    int fd = server_connect(&s);
    assert_true(server_send_text(
        fd, "PUT /v1/resources/rebound HTTP/1.1\r\nHost: evil.example:4653\r\nOrigin: "
            "http://evil.example:4653\r\nContent-Length: 14\r\n\r\n{\"capacity\":1}"));
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(r.status, 403);
    reply_free(&r);
    close(fd);
    server_ask(&s, "GET /v1/resources/rebound", "", NULL, &r);
    assert_int_equal(r.status, 404);
    reply_free(&r);
    server_end(&s);
}

/* A body was read to its end, up to a megabyte, where nobody wanted it. */
static void a_body_of_no_use_is_refused_at_its_head(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int status;
        const char *code, *allow;
    } cases[] = {
        { "POST /v1/nothing", 404, "not-known", NULL },
        { "PUT /nothing/at/all", 404, "not-known", NULL },
        { "POST /v1/resources/r", 405, "method-not-allowed", "GET, PUT" },
        { "DELETE /v1/holds", 405, "method-not-allowed", "GET, POST" },
        { "GET /v1/holds", 400, "invalid-request", NULL },
    };
    static const char *const bodies[] = { "Content-Length: 1000000\r\n\r\n",
                                          "Transfer-Encoding: chunked\r\n\r\nf4240\r\n" };
    struct server s;
    server_init(&s);
    server_start(&s);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct reply r;
        char head[256];
        int fd = server_connect(&s);
        snprintf(head, sizeof head, "%s HTTP/1.1\r\nHost: localhost\r\n%s", cases[i / 2].what,
                 bodies[i % 2]);
        assert_true(server_send_text(fd, head)); /* and no byte of what it announces */
        assert_true(server_receive(fd, &r, false));
        watch_refused(&r, cases[i / 2].status, cases[i / 2].code, NULL);
        assert_string_equal(reply_field(&r, "Connection"), "close");
        if (cases[i / 2].allow)
            assert_string_equal(reply_field(&r, "Allow"), cases[i / 2].allow);
        reply_free(&r);
        watch_ends(fd);
        close(fd);
    }
    server_end(&s);
}

/* Once a head had come in two pieces, what came behind it was read in small pieces too, and each
 * piece of a long run was a commit of its own. */
static void what_follows_a_split_head_is_read_in_one_go(void **state)
{
    (void)state;
    enum { REQUESTS = 100 };
    struct server s;
    struct reply r;
    struct text t = { 0 };
    server_init(&s);
    server_start(&s);
    for (int i = 0; i < REQUESTS; i++) {
        char fields[64];
        snprintf(fields, sizeof fields, "Idempotency-Key: k%d\r\n", i);
        text_request(&t, "PUT /v1/registers/x", fields, "{\"value\":1}");
    }
    int fd = server_connect(&s);
    uint64_t before = server_commits(&s);
    assert_true(server_send(fd, t.data, 30));
    server_await_read(fd); /* and now it waits for the rest of the head */
    assert_true(server_send(fd, t.data + 30, t.size - 30));
    for (int i = 0; i < REQUESTS; i++) {
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
    assert_true(server_commits(&s) - before < 10);
    close(fd);
    free(t.data);
    server_end(&s);
}

/* The same with a body that is larger than what is read at once: not a byte of it is lost. */
static void a_long_body_follows_a_split_head(void **state)
{
    (void)state;
    enum { LINES = 2000 };
    struct server s;
    struct reply r;
    struct text lines = { 0 }, t = { 0 };
    for (int i = 0; i < LINES; i++) {
        char line[160];
        int n = snprintf(line, sizeof line,
                         "{\"op\":\"write\",\"key\":\"k%d\",\"name\":\"x\",\"value\":\"%0*d\"}\n",
                         i, 1 + i % 90, i);
        text_add(&lines, line, (size_t)n);
    }
    text_request(&t, "POST /v1/batch", "", lines.data);
    size_t head = t.size - lines.size;
    const size_t splits[] = { 1, 30, head - 4, head - 1, head, head + 1 };
    assert_true(lines.size > 2 * 65536);
    server_init(&s);
    server_start(&s);
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        int fd = server_connect(&s), done = 0;
        assert_true(server_send(fd, t.data, splits[i]));
        server_await_read(fd);
        server_ask(&s, "GET /healthz", "", NULL, &r); /* uses the room that it was read into */
        reply_free(&r);
        assert_true(server_send(fd, t.data + splits[i], t.size - splits[i]));
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, 200);
        /* A line that came as another than before would be another use of its key. */
        const char *good =
            i == 0 ? "\"status\":200,\"replayed\":false" : "\"status\":200,\"replayed\":true";
        for (const char *at = r.body; (at = strstr(at, good)) != NULL; at++)
            done++;
        assert_int_equal(done, LINES);
        reply_free(&r);
        close(fd);
    }
    free(t.data);
    free(lines.data);
    server_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_shown_from_the_files_before_it_is_durable),
        cmocka_unit_test(each_request_has_its_own_time),
        cmocka_unit_test(a_rebound_name_is_not_ours),
        cmocka_unit_test(a_body_of_no_use_is_refused_at_its_head),
        cmocka_unit_test(what_follows_a_split_head_is_read_in_one_go),
        cmocka_unit_test(a_long_body_follows_a_split_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
