/* What a hostile review of the server found, each as it was shown. */
#include "support/server_kit.h"
#include "support/test.h"

#include <unistd.h>

static const char hold[] = "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}";

/* A trace and an export read the journal's files, where a batch stands before it is synced. They waited for nobody and
 * told of holds that a power cut would have undone. */
static void nothing_is_shown_from_the_files_before_it_is_durable(void **state)
{
    (void)state;
    static const char *const questions[] = { "GET /v1/trace/undurable", "GET /v1/export?format=jsonl",
                                             "GET /v1/audit" };
    enum { SYNC_MS = 1200 };
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        struct server s;
        struct reply r;
        server_init(&s);
        s.options.threads = 2;
        server_start(&s);
        server_ask_keyed(&s, "POST /v1/holds", "first", hold, &r);
        reply_free(&r);
        s.io->slow_sync_us = SYNC_MS * 1000;
        char *place = server_request("POST /v1/holds", "Idempotency-Key: undurable\r\n",
                                     "{\"resource\":\"undurable\",\"requester\":\"q\",\"duration\":\"1h\"}");
        int fd = server_connect(&s);
        int64_t sent = server_clock_ms();
        assert_true(server_send_text(fd, place));
        server_pause_ms(300); /* it is written, and the disk is at work */
        server_ask(&s, questions[i], "", NULL, &r);
        int64_t after = server_clock_ms() - sent;
        /* Either it came too late to see it, or it waited for the disk. */
        if (r.status == 200 && reply_has(&r, "undurable"))
            assert_true(after >= SYNC_MS - 100);
        if (i == 2) /* an audit names nothing, but it counts: it waits too */
            assert_true(after >= SYNC_MS - 100);
        reply_free(&r);
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, 201);
        reply_free(&r);
        close(fd);
        free(place);
        s.io->slow_sync_us = 0;
        server_end(&s);
    }
}

/* The end of one request and the beginning of the next in one segment, again and again: each head is quick, and the time
 * of the first was counted for all of them. */
static void each_request_has_its_own_time(void **state)
{
    (void)state;
    struct server s;
    struct reply r;
    server_init(&s);
    s.options.head_ms = 600;
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
        server_pause_ms(100);
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

/* A name that somebody points at this machine makes a page of theirs the same origin as its Host. */
static void a_rebound_name_is_not_ours(void **state)
{
    (void)state;
    struct server s;
    struct reply r;
    server_init(&s);
    server_start(&s);
    int fd = server_connect(&s);
    assert_true(server_send_text(fd,
                                 "PUT /v1/resources/rebound HTTP/1.1\r\nHost: evil.example:4653\r\nOrigin: "
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_shown_from_the_files_before_it_is_durable),
        cmocka_unit_test(each_request_has_its_own_time),
        cmocka_unit_test(a_rebound_name_is_not_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
