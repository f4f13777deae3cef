/* The head of an answer: what is taken from it, and what is refused. */
#include "client/client.h"
#include "support/test.h"

static enum hf_http_parse parse(const char *text, size_t size, struct hf_client_head *head,
                                const char **why)
{
    size_t scanned = 0;
    return hf_client_head_parse(text, size, &scanned, head, why);
}

static const char whole[] = "HTTP/1.1 201 Created\r\n"
                            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                            "Content-Type: Application/JSON; charset=utf-8\r\n"
                            "content-length: \t 12 \r\n"
                            "Idempotent-Replayed: true\r\n"
                            "Holdfast-Verdict: ok\r\n"
                            "X-Other: \xc3\xa9 \"any\" thing\r\n"
                            "X-Empty:\r\n"
                            "\r\n";

static void a_whole_head(void **state)
{
    struct hf_client_head head;
    const char *why = NULL;
    (void)state;
    assert_int_equal(parse(whole, sizeof whole - 1, &head, &why), HF_HTTP_DONE);
    assert_int_equal(head.status, 201);
    assert_int_equal(head.length, 12);
    assert_int_equal(head.date, INT64_C(784111777000));
    assert_string_equal(head.content_type, "application/json");
    assert_string_equal(head.verdict, "ok");
    assert_true(head.replayed);
    assert_true(head.keep_alive);
    assert_int_equal(head.size, sizeof whole - 1);
}

/* Byte by byte, with what was scanned before kept: nothing is found early, and the end is found at
 * once. */
static void any_split_is_like_the_whole(void **state)
{
    static const char behind[] = "{\"a\":1}\r\n\r\n";
    char text[sizeof whole + sizeof behind];
    struct hf_client_head head;
    const char *why = NULL;
    size_t scanned = 0;
    (void)state;
    snprintf(text, sizeof text, "%s%s", whole, behind);
    for (size_t size = 0; size < sizeof whole - 1; size++)
        assert_int_equal(hf_client_head_parse(text, size, &scanned, &head, &why), HF_HTTP_MORE);
    for (size_t step = 1; step < sizeof whole; step++) {
        size_t size = 0;
        scanned = 0;
        enum hf_http_parse got = HF_HTTP_MORE;
        while (got == HF_HTTP_MORE && size < strlen(text)) {
            size = size + step < strlen(text) ? size + step : strlen(text);
            got = hf_client_head_parse(text, size, &scanned, &head, &why);
        }
        assert_int_equal(got, HF_HTTP_DONE);
        assert_int_equal(head.size, sizeof whole - 1);
        assert_int_equal(head.length, 12);
    }
}

/* The words too: two things are wrong here, and the one that ends the waiting is told however the
 * bytes come. */
static void a_refusal_is_the_same_in_pieces(void **state)
{
    static const char text[] = "HTTP/1.1 200 O\x01K\nX: y\r\n\r\n";
    struct hf_client_head head;
    const char *at_once = "", *in_pieces = "";
    size_t scanned = 0, size = 0;
    (void)state;
    assert_int_equal(parse(text, sizeof text - 1, &head, &at_once), HF_HTTP_BAD);
    while (hf_client_head_parse(text, size, &scanned, &head, &in_pieces) == HF_HTTP_MORE)
        size++;
    assert_string_equal(at_once, in_pieces);
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "hello", "it does not speak HTTP/1.1" },
        { "HTTP/2 200 OK\r\n\r\n", "it does not speak HTTP/1.1" },
        { "\x15\x03\x03", "it uses TLS" },
        { "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", "status line" },
        { "HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n", "status" },
        { "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", "status" },
        { "HTTP/1.1 2000\r\nContent-Length: 0\r\n\r\n", "status line" },
        { "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n", "its status is not a number" },
        { "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", "from 100 to 999" },
        { "HTTP/1.1\r\n\r\n", "status line" },
        { "HTTP/1.1 200 OK\r\n\r\n", "no Content-Length" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "not one number" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", "not one number" },
        { "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "not one number" },
        { "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "not one number" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", "not one number" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "is chunked" },
        { "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\n", "a name, a colon and a value" },
        { "HTTP/1.1 200 OK\r\n Content-Length: 1\r\n\r\n", "a name, a colon and a value" },
        { "HTTP/1.1 200 OK\r\n: 1\r\n\r\n", "a name, a colon and a value" },
        { "HTTP/1.1 200 OK\r\nnothing\r\n\r\n", "a name, a colon and a value" },
        { "HTTP/1.1 200 OK\nContent-Length: 1\n\n", "CR and LF" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 1\n\r\n\r\n", "CR and LF" },
        { "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 1\r\n\r\n", "CR and LF" },
        { "HTTP/1.1 200 OK\r\nX: \x01\r\nContent-Length: 1\r\n\r\n", "control bytes" },
        { "HTTP/1.1 100 Continue\r\nContent-Length: 1\r\n\r\n", "interim" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_client_head head;
        const char *why = "";
        enum hf_http_parse got = parse(bad[i].text, strlen(bad[i].text), &head, &why);
        if (got != HF_HTTP_BAD || !strstr(why, bad[i].why))
            fail_msg("%s: got %d, %s", bad[i].text, (int)got, why);
    }
}

static void nul_is_a_control_byte(void **state)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 1\r\n\r\n";
    struct hf_client_head head;
    const char *why = "";
    (void)state;
    assert_int_equal(parse(text, sizeof text - 1, &head, &why), HF_HTTP_BAD);
    assert_non_null(strstr(why, "control bytes"));
}

static void limits(void **state)
{
    static char text[2 * HF_CLIENT_HEAD_MAX];
    struct hf_client_head head;
    const char *why = "";
    (void)state;
    /* As long as a head may be, and a byte more. */
    for (size_t more = 0; more < 2; more++) {
        static const char begin[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ";
        size_t pad = HF_CLIENT_HEAD_MAX + more - (sizeof begin - 1) - 4;
        memcpy(text, begin, sizeof begin - 1);
        memset(text + sizeof begin - 1, 'x', pad);
        memcpy(text + sizeof begin - 1 + pad, "\r\n\r\n", 4);
        assert_int_equal(parse(text, HF_CLIENT_HEAD_MAX + more, &head, &why),
                         more ? HF_HTTP_BAD : HF_HTTP_DONE);
    }
    assert_non_null(strstr(why, "longer than 32768"));
    assert_int_equal(parse(text, HF_CLIENT_HEAD_MAX - 1, &head, &why), HF_HTTP_MORE);
    assert_int_equal(parse(text, HF_CLIENT_HEAD_MAX, &head, &why),
                     HF_HTTP_BAD); /* full, and no end */
    /* As many fields as there may be, and one more. */
    for (size_t more = 0; more < 2; more++) {
        size_t size =
            (size_t)snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
        for (size_t i = 1; i < HF_CLIENT_FIELDS_MAX + more; i++)
            size += (size_t)snprintf(text + size, sizeof text - size, "X: y\r\n");
        size += (size_t)snprintf(text + size, sizeof text - size, "\r\n");
        assert_int_equal(parse(text, size, &head, &why), more ? HF_HTTP_BAD : HF_HTTP_DONE);
    }
    assert_non_null(strstr(why, "more than 128 fields"));
}

static void what_is_not_known_is_nothing(void **state)
{
    static const struct {
        const char *fields;
        hf_time date;
        const char *type;
        bool keep_alive, replayed;
    } rows[] = {
        { "", 0, "", true, false },
        { "Connection: close\r\n", 0, "", false, false },
        { "Connection: Keep-Alive\r\n", 0, "", true, false },
        { "Connection: keep-alive, close\r\n", 0, "", false, false },
        { "Date: Sun, 06 Nov 1994 08:49:37 CET\r\n", 0, "", true, false },
        { "Date: Sunday, 06-Nov-94 08:49:37 GMT\r\n", 0, "", true, false },
        { "Date: Sun, 31 Feb 1994 08:49:37 GMT\r\n", 0, "", true, false },
        { "Date: Sun, 06 Nox 1994 08:49:37 GMT\r\n", 0, "", true, false },
        { "Date: Mon, 16 Nov 2026 01:54:05 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
          INT64_C(1794794045000), "", true, false },
        { "Content-Type: text/plain\r\n", 0, "text/plain", true, false },
        { "Content-Type: text/plain ; x=y\r\n", 0, "text/plain", true, false },
        { "Content-Type: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/b\r\n", 0, "", true,
          false },
        { "Idempotent-Replayed: false\r\n", 0, "", true, false },
        { "Idempotent-Replayed: TRUE\r\n", 0, "", true, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[300];
        struct hf_client_head head;
        const char *why = "";
        int size = snprintf(text, sizeof text, "HTTP/1.1 200\r\nContent-Length: 0\r\n%s\r\n",
                            rows[i].fields);
        assert_int_equal(parse(text, (size_t)size, &head, &why), HF_HTTP_DONE);
        assert_int_equal(head.date, rows[i].date);
        assert_string_equal(head.content_type, rows[i].type);
        assert_int_equal(head.keep_alive, rows[i].keep_alive);
        assert_int_equal(head.replayed, rows[i].replayed);
    }
    struct hf_client_head head;
    const char *why = "";
    const char *old = "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_int_equal(parse(old, strlen(old), &head, &why), HF_HTTP_DONE);
    assert_false(head.keep_alive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_head),
        cmocka_unit_test(any_split_is_like_the_whole),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(nul_is_a_control_byte),
        cmocka_unit_test(limits),
        cmocka_unit_test(what_is_not_known_is_nothing),
        cmocka_unit_test(a_refusal_is_the_same_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
