/* The bytes between client and server: connections that are kept, requests that are pipelined,
 * split, chunked, announced, and cut off. */
#include "server/kit/case.h"
#include "server/kit/text.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* The clock stands still, and the store's background works. */
static void make(struct server *server)
{
    talk_server(server);
    server->options.store.no_background = false;
}

/* ---- One connection, many requests ---- */

static void a_connection_is_kept(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    double before = talk_figure(&t, "holdfast_http_connections_total");
    for (int i = 0; i < COUNT; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i % 50);
        assert_int_equal(talk(&t, "PUT /v1/registers/x", key, "{\"value\":1}"), 200);
        assert_int_equal(reply_field(&t.got, "Idempotent-Replayed") != NULL, i >= 50);
        assert_null(reply_field(&t.got, "Connection"));
    }
    assert_true(talk_figure(&t, "holdfast_http_connections_total") == before);
}

/* What request `i` of the mix is answered with. */
static void mixed_answer(int fd, int i)
{
    struct reply r;
    char expected[64] = "";
    static const int statuses[] = { 201, 200, 404, 200, 400, 200, 405, 200 };
    if (!server_receive(fd, &r, i % 8 == 5))
        fail_msg("no answer to request %d", i);
    switch (i % 8) {
    case 0: snprintf(expected, sizeof expected, "\"resource\":\"r%d\"", i); break;
    case 1: snprintf(expected, sizeof expected, "\"value\":%d,", i); break;
    case 2: snprintf(expected, sizeof expected, "\"code\":\"not-known\""); break;
    case 3: snprintf(expected, sizeof expected, "\"next_cursor\":"); break;
    case 4: snprintf(expected, sizeof expected, "\"code\":\"invalid-request\""); break;
    case 6: snprintf(expected, sizeof expected, "\"code\":\"method-not-allowed\""); break;
    case 7:
        snprintf(expected, sizeof expected, "\"replayed\":false,\"body\":{\"name\":\"b%d\"", i);
        break;
    default: break;
    }
    if (r.status != statuses[i % 8] || !reply_has(&r, expected))
        fail_msg("request %d: expected %d %s, got %d %s", i, statuses[i % 8], expected, r.status,
                 r.body);
    reply_free(&r);
}

/* Some are answered at once, some after a commit, some by another thread. */
static void mixed_requests(struct text *text, int count)
{
    for (int i = 0; i < count; i++) {
        char key[64], body[200];
        snprintf(key, sizeof key, "Idempotency-Key: m%d\r\n", i);
        switch (i % 8) {
        case 0: text_hold(text, i); break;
        case 1:
            snprintf(body, sizeof body, "{\"value\":%d}", i);
            text_request(text, "PUT /v1/registers/x", key, body);
            break;
        case 2: text_request(text, "GET /v1/holds/none", "", NULL); break;
        case 3: text_request(text, "GET /v1/holds?limit=3", "", NULL); break;
        case 4: text_request(text, "POST /v1/holds", key, "{\"resource\":"); break;
        case 5: text_request(text, "HEAD /healthz", "", NULL); break;
        case 6: text_request(text, "DELETE /v1/holds", "", NULL); break;
        default:
            snprintf(body, sizeof body,
                     "{\"op\":\"merge\",\"name\":\"b%d\",\"type\":\"max\",\"value\":1}\n", i);
            text_request(text, "POST /v1/batch", "", body);
        }
    }
}

static void pipelined_answers_come_in_order(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    struct text text = { 0 };
    mixed_requests(&text, COUNT);
    int fd = server_connect(&s);
    assert_true(server_send(fd, text.data, text.size));
    for (int i = 0; i < COUNT; i++)
        mixed_answer(fd, i);
    close(fd);
    free(text.data);
}

/* A client that has said its last word still gets every answer, however many are waiting. */
static void a_half_closed_client_gets_its_answers(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    struct text text = { 0 };
    mixed_requests(&text, COUNT);
    atomic_store(&s.io->slow_sync_us, 2000);
    int fd = server_connect(&s);
    assert_true(server_send(fd, text.data, text.size));
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    for (int i = 0; i < COUNT; i++)
        mixed_answer(fd, i);
    assert_true(server_closed(fd, SERVER_PATIENCE_MS));
    close(fd);
    free(text.data);
}

/* A client that sends and does not read is not read from either, and gets everything once it
 * reads. */
static void answers_wait_for_a_client_that_does_not_read(void **state)
{
    (void)state;
    enum { COUNT = 1500 };
    struct text text = { 0 };
    for (int i = 0; i < COUNT; i++)
        text_request(&text, i % 2 ? "GET /v1/openapi.json" : "GET /healthz", "", NULL);
    int fd = server_connect(&s);
    int room = 65536;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    assert_true(server_send(fd, text.data, text.size));
    free(text.data);
    assert_int_equal(talk(&t, "GET /v1/openapi.json", NULL, NULL),
                     200); /* others are served meanwhile */
    for (int i = 0; i < COUNT; i++) {
        struct reply r;
        if (!server_receive(fd, &r, false))
            fail_msg("no answer to request %d", i);
        assert_int_equal(r.status, 200);
        assert_string_equal(r.body, i % 2 ? t.got.body : "{\"ok\":true}");
        reply_free(&r);
    }
    close(fd);
}

/* Files are sent in their turn, whole, between other answers, to a client that takes its time. */
static void files_and_other_answers_take_turns(void **state)
{
    (void)state;
    enum { LINES = 6000, TURNS = 6 };
    static const char *const asked[] = {
        "GET /v1/export",  "GET /healthz",  "GET /v1/export?format=sqlite",
        "HEAD /v1/export", "GET /v1/audit", "GET /v1/trace/w1"
    };
    static const char *const begins[] = {
        "{\"type\":\"store\"", "{\"ok\":true}", "SQLite format 3", "", "{", "{"
    };
    struct text text = { 0 };
    for (int i = 0; i < LINES; i++) {
        char line[128];
        snprintf(line, sizeof line,
                 "{\"op\":\"write\",\"key\":\"w%d\",\"name\":\"n%d\",\"value\":%d}\n", i, i, i);
        text_string(&text, line);
    }
    assert_int_equal(talk(&t, "POST /v1/batch", NULL, text.data), 200);
    text.size = 0;
    for (int i = 0; i < 2 * TURNS; i++)
        text_request(&text, asked[i % TURNS], "", NULL);
    int fd = server_connect(&s), room = 65536;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    assert_true(server_send(fd, text.data, text.size));
    free(text.data);
    size_t sizes[TURNS];
    for (int i = 0; i < 2 * TURNS; i++) {
        struct reply r;
        server_pause_ms(20); /* so that the answers behind it may pile up */
        if (!server_receive(fd, &r, strncmp(asked[i % TURNS], "HEAD", 4) == 0))
            fail_msg("no answer to %s", asked[i % TURNS]);
        assert_int_equal(r.status, 200);
        assert_memory_equal(r.body, begins[i % TURNS], strlen(begins[i % TURNS]));
        if (i < TURNS)
            sizes[i] = r.body_size;
        else
            assert_int_equal(r.body_size, sizes[i % TURNS]);
        reply_free(&r);
    }
    assert_true(sizes[0] > 1 << 20);
    close(fd);
}

/* ---- Splitting ---- */

/* The same requests for every split: with bodies, without, in chunks, and some that are refused. */
static void stream_make(struct text *text)
{
    text_string(text, "\r\nPUT /v1/registers/x HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: "
                      "s1\r\nContent-Length: 11\r\n\r\n"
                      "{\"value\":1}");
    text_string(text, "GET /v1/registers/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
    text_string(text, "POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
                      "chunked\r\nIdempotency-Key: \"s2\"\r\n\r\n"
                      "1\r\n{\r\n0017\r\n\"resource\":\"r\",\"request\r\nB\r\ner\":\"q\","
                      "\"du\r\nE\r\nration\":\"1h\"}\n\r\n"
                      "0\r\n\r\n");
    text_string(text, "POST /v1/batch HTTP/1.1\r\nhost:localhost\r\ncontent-length:\t59 \r\n\r\n"
                      "{\"op\":\"merge\",\"name\":\"m\",\"type\":\"or\",\"value\":true}\nnonsense");
    text_string(text, "HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    text_string(text, "POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
    text_string(text, "DELETE /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

/* All that comes on the connection, without the times; ended by the server. Owned. */
static char *everything(int fd)
{
    struct text text = { 0 };
    char part[4096];
    ssize_t n;
    text_string(&text, "");
    while ((n = recv(fd, part, sizeof part, 0)) > 0)
        text_add(&text, part, (size_t)n);
    if (n < 0)
        fail_msg("the connection was reset behind: %s", text.data);
    for (char *date = text.data; (date = strstr(date, "\r\nDate: ")) != NULL;) {
        const char *end = strstr(date + 2, "\r\n");
        memmove(date, end, strlen(end) + 1);
    }
    return text.data;
}

static void any_split_is_answered_like_the_whole(void **state)
{
    (void)state;
    enum { AT_ONCE = 64 };
    struct text text = { 0 };
    char *whole = NULL;
    stream_make(&text);
    for (int round = 0; round < 2;
         round++) { /* in the second, the keys are known, as in all that follow */
        int fd = server_connect(&s);
        assert_true(server_send(fd, text.data, text.size));
        free(whole);
        whole = everything(fd);
        close(fd);
    }
    if (!strstr(whole, "\"code\":\"method-not-allowed\"") || !strstr(whole, "201 Created"))
        fail_msg("not all was answered: %s", whole);
    for (size_t from = 1; from < text.size; from += AT_ONCE) {
        int fds[AT_ONCE];
        size_t count = text.size - from < AT_ONCE ? text.size - from : AT_ONCE;
        for (size_t i = 0; i < count; i++) {
            fds[i] = server_connect(&s);
            assert_true(server_send(fds[i], text.data, from + i));
        }
        for (size_t i = 0; i < count; i++)
            server_await_read(fds[i]);
        for (size_t i = 0; i < count; i++)
            assert_true(server_send(fds[i], text.data + from + i, text.size - from - i));
        for (size_t i = 0; i < count; i++) {
            char *split = everything(fds[i]);
            if (strcmp(split, whole) != 0)
                fail_msg("split at %zu: expected %s, got %s", from + i, whole, split);
            free(split);
            close(fds[i]);
        }
    }
    /* And a byte at a time. */
    int fd = server_connect(&s);
    for (size_t i = 0; i < text.size; i++)
        assert_true(server_send(fd, text.data + i, 1));
    char *split = everything(fd);
    assert_string_equal(split, whole);
    free(split);
    close(fd);
    free(whole);
    free(text.data);
}

/* ---- Fields that change the connection ---- */

static void a_client_may_ask_before_it_sends(void **state)
{
    (void)state;
    struct reply r;
    char interim[26] = "";
    int fd = server_connect(&s);
    assert_true(server_send_text(
        fd, "PUT /v1/registers/x HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: e1\r\n"
            "Expect: 100-continue\r\nContent-Length: 11\r\n\r\n"));
    assert_int_equal(recv(fd, interim, 25, MSG_WAITALL), 25);
    assert_string_equal(interim, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_int_equal(talk(&t, "GET /healthz", NULL, NULL), 200);
    assert_int_equal(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0), 0);
    assert_true(server_send_text(fd, "{\"value\":1}"));
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(r.status, 200);
    reply_free(&r);
    /* Behind another request, the leave to send comes behind its answer. */
    assert_true(server_send_text(
        fd, "GET /v1/holds HTTP/1.1\r\nHost: localhost\r\n\r\n"
            "PUT /v1/registers/x HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: e2\r\n"
            "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"));
    assert_true(server_receive(fd, &r, false));
    assert_true(reply_has(&r, "\"holds\":[]"));
    reply_free(&r);
    assert_int_equal(recv(fd, interim, 25, MSG_WAITALL), 25);
    assert_string_equal(interim, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_true(server_send_text(fd, "b\r\n{\"value\":2}\r\n0\r\n\r\n"));
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(reply_number(&r, "value"), 2);
    reply_free(&r);
    /* One that does not wait gets no leave, and one that is refused gets the refusal instead. */
    assert_true(server_send_text(
        fd, "PUT /v1/registers/x HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: e3\r\n"
            "Expect: 100-continue\r\nContent-Length: 11\r\n\r\n{\"value\":3}"));
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(reply_number(&r, "value"), 3);
    reply_free(&r);
    assert_true(server_send_text(
        fd, "PUT /v1/registers/x HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: e4\r\n"
            "Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n"));
    assert_int_equal(recv(fd, interim, 12, MSG_WAITALL | MSG_PEEK), 12);
    assert_memory_equal(interim, "HTTP/1.1 413", 12);
    assert_true(server_closed(fd, SERVER_PATIENCE_MS));
    close(fd);
}

static void a_connection_is_closed_when_asked_to(void **state)
{
    (void)state;
    static const char *const last[] = {
        "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n",
        "GET /healthz HTTP/1.0\r\n\r\n",
        "GET /healthz HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"
    };
    for (size_t i = 0; i < 4; i++) {
        struct reply r;
        int fd = server_connect(&s);
        assert_true(server_send_text(fd, "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_true(server_send_text(fd, last[i]));
        assert_true(server_send_text(
            fd, "PUT /v1/registers/x HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: behind\r\n"
                "Content-Length: 11\r\n\r\n{\"value\":1}")); /* nobody reads that */
        assert_true(server_receive(fd, &r, false));
        assert_true(reply_has(&r, "\"ready\":true"));
        assert_null(reply_field(&r, "Connection"));
        reply_free(&r);
        assert_true(server_receive(fd, &r, false));
        assert_true(reply_has(&r, "\"ok\":true"));
        assert_string_equal(reply_field(&r, "Connection"), "close");
        reply_free(&r);
        assert_false(server_receive(fd, &r, false));
        close(fd);
    }
    assert_int_equal(talk(&t, "GET /v1/tokens/behind", NULL, NULL), 404);
}

/* ---- Clients that leave ---- */

static void whoever_leaves_has_done_it_or_not(void **state)
{
    (void)state;
    char key[32], path[64];
    int number = 0;
    struct text first = { 0 };
    text_hold(&first, 1000);
    size_t head = (size_t)(strstr(first.data, "\r\n\r\n") + 4 - first.data), size = first.size;
    free(first.data);
    /* From before the first byte to behind the last one. */
    for (size_t cut = 0; cut <= size; cut += cut + 3 >= head && cut < size - 3 ? 1 : 3)
        for (int reset = 0; reset < 2; reset++) {
            struct text text = { 0 };
            int fd = server_connect(&s);
            text_hold(&text, 1000 + number);
            assert_true(server_send(fd, text.data, cut < text.size ? cut : text.size));
            server_leave(fd, reset);
            snprintf(key, sizeof key, "h%d", 1000 + number++);
            snprintf(path, sizeof path, "GET /v1/tokens/%s", key);
            int status = talk(&t, path, NULL, NULL);
            if (cut < text.size)
                assert_int_equal(status, 404);
            else
                assert_true(status == 200 || status == 404); /* it may not have been read yet */
            free(text.data);
        }
    assert_true(number > 100);
    /* Whatever became of them: all again, and each is there once. */
    for (int i = 0; i < number; i++) {
        struct text text = { 0 };
        struct reply r;
        int fd = server_connect(&s);
        text_hold(&text, 1000 + i);
        assert_true(server_send(fd, text.data, text.size));
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, 201);
        reply_free(&r);
        close(fd);
        free(text.data);
    }
    assert_true(talk_figure(&t, "holdfast_holds") == number);
}

/* What is refused by its head is answered before its turn to be read again has come: a client that
 * leaves then must not be tended after it is gone. */
static void whoever_is_refused_many_times_may_leave(void **state)
{
    (void)state;
    struct text text = { 0 };
    for (int i = 0; i < 600; i++)
        text_request(&text, "GET /healthz", "Origin: http://evil.example\r\n", NULL);
    for (int i = 0; i < 40; i++) {
        int fd = server_connect(&s);
        assert_true(server_send(fd, text.data, text.size));
        if (i % 4 == 3)
            server_pause_ms(1); /* for some of them to be read */
        server_leave(fd, i % 2);
    }
    free(text.data);
    assert_int_equal(talk(&t, "GET /healthz", NULL, NULL), 200);
}

/* The same while answers wait for the disk: nobody may be told, and nothing may be touched that is
 * gone. */
static void whoever_pipelines_and_leaves_is_done_with(void **state)
{
    (void)state;
    enum { COUNT = 300, CLIENTS = 24 };
    struct text text = { 0 };
    atomic_store(&s.io->slow_sync_us, 3000);
    mixed_requests(&text, COUNT);
    for (int i = 0; i < CLIENTS; i++) {
        int fd = server_connect(&s);
        size_t size = text.size - (size_t)i * 97;
        assert_true(server_send(fd, text.data, size));
        if (i % 3 == 0) {
            struct reply r;
            assert_true(server_receive(fd, &r, false));
            reply_free(&r);
        }
        server_leave(fd, i % 2);
    }
    free(text.data);
    atomic_store(&s.io->slow_sync_us, 0);
    double waiting = 2;
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         waiting > 1 && server_clock_ms() < until; server_pause_ms(5))
        waiting = talk_figure(&t, "holdfast_queue");
    assert_true(waiting == 1); /* the question itself */
    assert_true(talk_figure(&t, "holdfast_http_connections") == 1);
}

/* The end of one request and the beginning of the next in one segment, again and again: each head
 * is quick, and the time of the first was counted for all of them. */
static void each_request_has_its_own_time(void **state)
{
    (void)state;
    enum {
        HEAD_MS = 3000
    }; /* all of them together take longer; the client may be late by nine tenths of it */
    struct server own;
    struct reply r;
    server_init(&own);
    own.options.head_ms = HEAD_MS;
    server_start(&own);
    int fd = server_connect(&own);
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
    server_end(&own);
}

/* A name that somebody points at this machine makes a page of theirs the same origin as its
 * Host. */
static void a_rebound_name_is_not_ours(void **state)
{
    (void)state;
    struct server own;
    struct reply r;
    server_init(&own);
    server_start(&own);
    int fd = server_connect(&own);
    assert_true(server_send_text(
        fd, "PUT /v1/resources/rebound HTTP/1.1\r\nHost: evil.example:4653\r\nOrigin: "
            "http://evil.example:4653\r\nContent-Length: 14\r\n\r\n{\"capacity\":1}"));
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(r.status, 403);
    reply_free(&r);
    close(fd);
    server_ask(&own, "GET /v1/resources/rebound", "", NULL, &r);
    assert_int_equal(r.status, 404);
    reply_free(&r);
    server_end(&own);
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
    struct server own;
    server_init(&own);
    server_start(&own);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct reply r;
        char head[256];
        int fd = server_connect(&own);
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
    server_end(&own);
}

/* Once a head had come in two pieces, what came behind it was read in small pieces too, and each
 * piece of a long run was a commit of its own. */
static void what_follows_a_split_head_is_read_in_one_go(void **state)
{
    (void)state;
    enum { REQUESTS = 100 };
    struct server own;
    struct reply r;
    struct text bulk = { 0 };
    server_init(&own);
    server_start(&own);
    for (int i = 0; i < REQUESTS; i++) {
        char fields[64];
        snprintf(fields, sizeof fields, "Idempotency-Key: k%d\r\n", i);
        text_request(&bulk, "PUT /v1/registers/x", fields, "{\"value\":1}");
    }
    int fd = server_connect(&own);
    uint64_t before = server_commits(&own);
    assert_true(server_send(fd, bulk.data, 30));
    server_await_read(fd); /* and now it waits for the rest of the head */
    assert_true(server_send(fd, bulk.data + 30, bulk.size - 30));
    for (int i = 0; i < REQUESTS; i++) {
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
    assert_true(server_commits(&own) - before < 10);
    close(fd);
    free(bulk.data);
    server_end(&own);
}

/* The same with a body that is larger than what is read at once: not a byte of it is lost. */
static void a_long_body_follows_a_split_head(void **state)
{
    (void)state;
    enum { LINES = 2000 };
    struct server own;
    struct reply r;
    struct text lines = { 0 }, bulk = { 0 };
    for (int i = 0; i < LINES; i++) {
        char line[160];
        int n = snprintf(line, sizeof line,
                         "{\"op\":\"write\",\"key\":\"k%d\",\"name\":\"x\",\"value\":\"%0*d\"}\n",
                         i, 1 + i % 90, i);
        text_add(&lines, line, (size_t)n);
    }
    text_request(&bulk, "POST /v1/batch", "", lines.data);
    size_t head = bulk.size - lines.size;
    const size_t splits[] = { 1, 30, head - 4, head - 1, head, head + 1 };
    assert_true(lines.size > 2 * 65536);
    server_init(&own);
    server_start(&own);
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        int fd = server_connect(&own), done = 0;
        assert_true(server_send(fd, bulk.data, splits[i]));
        server_await_read(fd);
        server_ask(&own, "GET /healthz", "", NULL, &r); /* uses the room that it was read into */
        reply_free(&r);
        assert_true(server_send(fd, bulk.data + splits[i], bulk.size - splits[i]));
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
    free(bulk.data);
    free(lines.data);
    server_end(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(a_connection_is_kept, make, 1),
        SERVER_TEST(pipelined_answers_come_in_order, make, 1),
        SERVER_TEST(pipelined_answers_come_in_order, make, 4),
        SERVER_TEST(a_half_closed_client_gets_its_answers, make, 1),
        SERVER_TEST(a_half_closed_client_gets_its_answers, make, 4),
        SERVER_TEST(answers_wait_for_a_client_that_does_not_read, make, 1),
        SERVER_TEST(files_and_other_answers_take_turns, make, 1),
        SERVER_TEST(files_and_other_answers_take_turns, make, 4),
        SERVER_TEST(any_split_is_answered_like_the_whole, make, 1),
        SERVER_TEST(any_split_is_answered_like_the_whole, make, 4),
        SERVER_TEST(a_client_may_ask_before_it_sends, make, 1),
        SERVER_TEST(a_client_may_ask_before_it_sends, make, 4),
        SERVER_TEST(a_connection_is_closed_when_asked_to, make, 1),
        SERVER_TEST(a_connection_is_closed_when_asked_to, make, 4),
        SERVER_TEST(whoever_leaves_has_done_it_or_not, make, 1),
        SERVER_TEST(whoever_leaves_has_done_it_or_not, make, 4),
        SERVER_TEST(whoever_is_refused_many_times_may_leave, make, 1),
        SERVER_TEST(whoever_is_refused_many_times_may_leave, make, 4),
        SERVER_TEST(whoever_pipelines_and_leaves_is_done_with, make, 1),
        SERVER_TEST(whoever_pipelines_and_leaves_is_done_with, make, 4),
        cmocka_unit_test(each_request_has_its_own_time),
        cmocka_unit_test(a_rebound_name_is_not_ours),
        cmocka_unit_test(a_body_of_no_use_is_refused_at_its_head),
        cmocka_unit_test(what_follows_a_split_head_is_read_in_one_go),
        cmocka_unit_test(a_long_body_follows_a_split_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
