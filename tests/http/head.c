/* The head of a request: what it says, and what is refused. */
#include "http/kit/head.h"
#include "base/bytes.h"
#include "support/test.h"

static struct head_outcome got;

static struct hf_bytes text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A head in a place of its own, good until the next. */
static struct hf_bytes text(const char *format, ...)
{
    static char place[65536];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(place, sizeof place, format, args);
    va_end(args);
    assert_in_range(size, 0, sizeof place - 1);
    return hf_mem(place, (size_t)size);
}

static const struct hf_http_head *accepted(struct hf_bytes data)
{
    head_parse_whole(data, &got);
    if (got.parse != HF_HTTP_DONE)
        print_error("%s: %.*s\n", got.why.detail, (int)data.size, (const char *)data.data);
    assert_int_equal(got.parse, HF_HTTP_DONE);
    head_check(data, &got);
    return &got.head;
}

static void refused(struct hf_bytes data, unsigned status)
{
    head_parse_whole(data, &got);
    if (got.parse != HF_HTTP_BAD || got.why.status != status)
        print_error("%d, %u: %.*s\n", got.parse, got.why.status, (int)data.size,
                    (const char *)data.data);
    assert_int_equal(got.parse, HF_HTTP_BAD);
    assert_int_equal(got.why.status, status);
}

#define IS(slice, word) assert_true(hf_bytes_equal(slice, hf_str(word)))

/* The value of one field. field: with its CR LF. */
static const struct hf_http_head *with(const char *field)
{
    return accepted(text("POST /p HTTP/1.1\r\nHost: h\r\n%s\r\n", field));
}

static void refused_with(const char *field, unsigned status)
{
    refused(text("POST /p HTTP/1.1\r\nHost: h\r\n%s\r\n", field), status);
}

/* ---- What it says ---- */

#define TYPICAL                                                                             \
    "POST /v1/holds?a=b&c HTTP/1.1\r\nHost: 127.0.0.1:4653\r\nUser-Agent: curl/7.88.1\r\n"  \
    "Accept: */*\r\ncontent-type:application/json\r\nIDEMPOTENCY-KEY: \t order 8123\t \r\n" \
    "Authorization: Bearer 0123456789abcdef\r\nOrigin: http://h\r\nContent-Length: 67\r\n"  \
    "Accept: text/html\r\nExpect: 100-Continue\r\nConnection: keep-alive, x\r\n"            \
    "Sec-Fetch-Site: cross-site\r\nContent-Encoding: gzip\r\nHoldfast-Client: till 4\r\n"   \
    "Holdfast-Sequence: 17\r\n\r\n"

static void a_typical_head(void **state)
{
    (void)state;
    const struct hf_http_head *h = accepted(text("%s{\"resource\"", TYPICAL));
    assert_int_equal(h->method, HF_HTTP_POST);
    IS(h->method_name, "POST");
    IS(h->path, "/v1/holds");
    IS(h->query, "a=b&c");
    for (int f = 0; f < HF_FIELD_COUNT; f++)
        assert_true(h->has[f]);
    IS(h->field[HF_FIELD_HOST], "127.0.0.1:4653");
    IS(h->field[HF_FIELD_AUTHORIZATION], "Bearer 0123456789abcdef");
    IS(h->field[HF_FIELD_IDEMPOTENCY_KEY], "order 8123");
    IS(h->field[HF_FIELD_CONTENT_TYPE], "application/json");
    IS(h->field[HF_FIELD_ACCEPT], "*/*"); /* the first */
    IS(h->field[HF_FIELD_ORIGIN], "http://h");
    IS(h->field[HF_FIELD_SEC_FETCH_SITE], "cross-site");
    IS(h->field[HF_FIELD_CONTENT_ENCODING], "gzip");
    IS(h->field[HF_FIELD_CLIENT], "till 4");
    IS(h->field[HF_FIELD_SEQUENCE], "17");
    assert_true(h->has_length && h->length == 67 && !h->chunked);
    assert_true(h->keep_alive && h->expect_continue);
    assert_int_equal(h->size, strlen(TYPICAL));
}

static void a_short_head(void **state)
{
    (void)state;
    const struct hf_http_head *h = accepted(text("GET / HTTP/1.1\r\nHost:h\r\n\r\n"));
    assert_int_equal(h->method, HF_HTTP_GET);
    IS(h->path, "/");
    IS(h->query, "");
    for (int f = 0; f < HF_FIELD_COUNT; f++)
        assert_int_equal(h->has[f], f == HF_FIELD_HOST);
    assert_true(!h->has_length && h->length == 0 && !h->chunked && h->keep_alive &&
                !h->expect_continue);
    h = accepted(text("GET / HTTP/1.0\r\n\r\n"));
    assert_false(h->keep_alive || h->has[HF_FIELD_HOST]);
}

static void methods(void **state)
{
    (void)state;
    static const char *const names[] = {
        [HF_HTTP_GET] = "GET", [HF_HTTP_HEAD] = "HEAD",     [HF_HTTP_POST] = "POST",
        [HF_HTTP_PUT] = "PUT", [HF_HTTP_DELETE] = "DELETE", [HF_HTTP_OPTIONS] = "OPTIONS"
    };
    static const char *const others[] = { "get",   "GETS",    "GE", "Post", "TRACE",
                                          "PATCH", "CONNECT", "X",  "0" };
    for (unsigned i = HF_HTTP_GET; i <= HF_HTTP_OPTIONS; i++)
        assert_int_equal(accepted(text("%s / HTTP/1.1\r\nHost: h\r\n\r\n", names[i]))->method, i);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const struct hf_http_head *h =
            accepted(text("%s / HTTP/1.1\r\nHost: h\r\n\r\n", others[i]));
        assert_int_equal(h->method, HF_HTTP_OTHER);
        IS(h->method_name, others[i]);
    }
}

static void targets(void **state)
{
    (void)state;
    static const char *const good[][3] = {
        { "/", "/", "" },         { "/?", "/", "" },
        { "/??", "/", "?" },      { "/a/b?c=d?e", "/a/b", "c=d?e" },
        { "//", "//", "" },       { "/%00%fF/%2f", "/%00%fF/%2f", "" },
        { "/a?%41", "/a", "%41" }
    };
    static const char *const bad[] = { "",     "*",     "a",    "?",    "?a",   "http://h/",
                                       "h:80", "/%",    "/%4",  "/%g0", "/%0g", "/a%",
                                       "/?%",  "/?a%2", "/a#b", "/a b" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const struct hf_http_head *h =
            accepted(text("GET %s HTTP/1.1\r\nHost: h\r\n\r\n", good[i][0]));
        IS(h->path, good[i][1]);
        IS(h->query, good[i][2]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(text("GET %s HTTP/1.1\r\nHost: h\r\n\r\n", bad[i]), 400);
}

static void versions(void **state)
{
    (void)state;
    static const char *const bad[] = { "",         "HTTP",     "HTTP/",     "HTTP/1",    "HTTP/1.",
                                       "http/1.1", "HTTP/11",  "HTTP/1.10", "HTTP/1.1 ", "HTTP-1.1",
                                       "HTTQ/1.1", "HTTP/a.1", "HTTP/1.a" };
    for (int major = 0; major <= 9; major++)
        for (int minor = 0; minor <= 9; minor++) {
            struct hf_bytes data = text("GET / HTTP/%d.%d\r\nHost: h\r\n\r\n", major, minor);
            if (major == 1 && minor <= 1)
                assert_int_equal(accepted(data)->keep_alive, minor);
            else
                refused(data, 505);
        }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(text("GET / %s\r\nHost: h\r\n\r\n", bad[i]), 400);
}

static void lengths(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",    "00",  "01", "+1", "-1",    "1,1", "1, 1", "0x1", "1.0",
        "1 1", "one", "1;", "a",  "\"1\"", "1e3", "/",    ":",   "18446744073709551616x"
    };
    assert_true(with("Content-Length: 0\r\n")->length == 0 && got.head.has_length);
    assert_true(with("Content-Length: 1048576 \t\r\n")->length == 1048576);
    assert_true(with("Content-Length: 18446744073709551615\r\n")->length == UINT64_MAX);
    refused_with("Content-Length: 18446744073709551616\r\n", 413);
    refused_with("Content-Length: 99999999999999999999999999\r\n", 413);
    refused_with("Content-Length: 18446744073709551616\r\nTransfer-Encoding: chunked\r\n", 413);
    refused_with("Transfer-Encoding: chunked\r\nContent-Length: 18446744073709551616\r\n", 400);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(text("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %s\r\n\r\n", bad[i]), 400);
}

static void codings(void **state)
{
    (void)state;
    static const char *const bad[] = { "",
                                       "gzip",
                                       "identity",
                                       "chunked,",
                                       ",chunked",
                                       "xchunked",
                                       "chunkedx",
                                       "chunked, chunked",
                                       "chunked;x",
                                       "chunked gzip",
                                       "\"chunked\"",
                                       "gzip,,chunked",
                                       "chunked, gzip, chunked" };
    assert_true(with("Transfer-Encoding: chunked\r\n")->chunked && !got.head.has_length);
    assert_true(with("transfer-encoding:ChUnKeD\t\r\n")->chunked);
    refused_with("Transfer-Encoding: gzip, chunked\r\n", 501);
    refused_with("Transfer-Encoding: a;b=c,d ,\tCHUNKED\r\n", 501);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(text("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: %s\r\n\r\n", bad[i]), 400);
    refused_with("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", 400);
    refused_with("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", 400);
    refused(text("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

static void expectations(void **state)
{
    (void)state;
    assert_true(with("Expect: 100-CONTINUE\r\n")->expect_continue);
    assert_false(
        accepted(text("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"))->expect_continue);
    refused_with("Expect: \r\n", 417);
    refused_with("Expect: 100\r\n", 417);
    refused_with("Expect: 100-continue;x\r\n", 417);
    refused_with("Expect: 100-continue, 100-continue\r\n", 417);
}

static void connections(void **state)
{
    (void)state;
    assert_true(with("Connection: keep-alive\r\n")->keep_alive);
    assert_true(with("Connection: Upgrade, xclose, closex\r\n")->keep_alive);
    assert_true(with("Connection:\r\n")->keep_alive);
    assert_true(with("Connection: ,, ,\r\n")->keep_alive);
    assert_false(with("Connection: close\r\n")->keep_alive);
    assert_false(with("Connection: ,keep-alive , \tCLOSE\t,x\r\n")->keep_alive);
    assert_false(with("Connection: close\r\nConnection: keep-alive\r\n")->keep_alive);
    assert_false(with("Connection: keep-alive\r\nConnection: close\r\n")->keep_alive);
    assert_false(accepted(text("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"))->keep_alive);
    refused_with("Connection: clo se\r\n", 400);
    refused_with("Connection: close;\r\n", 400);
    refused_with("Connection: x, \"close\"\r\n", 400);
}

static void hosts(void **state)
{
    (void)state;
    static const char *const good[] = { "h",
                                        "h:80",
                                        "a-b.c_d~e",
                                        "127.0.0.1",
                                        "127.0.0.1:65535",
                                        "[::1]",
                                        "[::1]:0",
                                        "[::ffff:1.2.3.4]",
                                        "h.",
                                        "0",
                                        "[2001:db8:1:2:3:4:5:6]:4653",
                                        "[abcd:abcd:abcd:abcd:abcd:abcd:255.255.255.255]" };
    static const char *const bad[] = {
        "",        ":",   ":80",    "h:",     "h:x",      "h:65536",   "h:000080", "h:+1",
        "h:80:80", "h h", "h,h",    "h/",     "u@h",      "h%41",      "[",        "[]",
        "[::1",    "::1", "[::1]x", "[::1]:", "[::g]",    "[1.2.3.4]", "[::1%1]",  "[::1]]",
        "[[::1]]", "]",   "h]",     "h\\",    "http://h", "[v1.x]",    "h?",       "*"
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        IS(accepted(text("GET / HTTP/1.1\r\nHost: %s\r\n\r\n", good[i]))->field[HF_FIELD_HOST],
           good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refused(text("GET / HTTP/1.1\r\nHost: %s\r\n\r\n", bad[i]), 400);
        refused(text("GET / HTTP/1.0\r\nHost: %s\r\n\r\n", bad[i]), 400);
    }
    for (int size = 1; size <= 300; size++) {
        struct hf_bytes data = text("GET / HTTP/1.1\r\nHost: %0*d\r\n\r\n", size, 0);
        if (size <= 255)
            accepted(data);
        else
            refused(data, 400);
    }
    refused(text("GET / HTTP/1.1\r\n\r\n"), 400);
    refused(text("GET / HTTP/1.1\r\nHost: [%0*d]\r\n\r\n", 60, 0), 400);
}

/* Lines that are no fields. */
static void lines_that_are_none(void **state)
{
    (void)state;
    static const char *const bad[] = { ": x\r\n",        "X\r\n",  "X : y\r\n",  "X\t: y\r\n",
                                       "\r:x\r\n",       "X: y\n", "X: y\n\r\n", "X: y\r\r\n",
                                       "X: y\rZ: z\r\n", "X: y\r" };
    static const char *const folded[] = { " X: y\r\n", "\tX: y\r\n", "X: y\r\n z\r\n",
                                          "X:\r\n\ty\r\n", " \r\n" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused_with(bad[i], 400);
    for (size_t i = 0; i < sizeof folded / sizeof *folded; i++) {
        refused_with(folded[i], 400);
        assert_non_null(strstr(got.why.detail, "white space"));
    }
}

/* What may come once, in any case of letters; Accept and Connection may come again. */
static void repeated_fields(void **state)
{
    (void)state;
    static const char *const once[] = { "hOST: h",
                                        "Content-Length: 1",
                                        "Transfer-Encoding: chunked",
                                        "Expect: 100-continue",
                                        "Authorization: x",
                                        "Idempotency-Key: x",
                                        "Holdfast-Client: x",
                                        "Holdfast-Sequence: 1",
                                        "Content-Type: x",
                                        "Origin: x" };
    for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
        const char *host = once[i][0] == 'h' ? "" : "Host: h\r\n";
        accepted(text("POST / HTTP/1.1\r\n%s%s\r\n\r\n", host, once[i]));
        refused(text("POST / HTTP/1.1\r\n%s%s\r\nX: y\r\n%s\r\n\r\n", host, once[i], once[i]), 400);
    }
    refused(text("POST / HTTP/1.1\r\nHost: h\r\nIdempotency-Key:\r\nIDEMPOTENCY-key:\r\n\r\n"),
            400);
    assert_string_equal(got.why.detail, "Idempotency-Key was sent more than once. Send it once.");
    IS(with("Accept: a\r\nAccept: b\r\nAccept:\r\n")->field[HF_FIELD_ACCEPT], "a");
}

/* Names that differ from a known one by a letter, its length or an underscore are other names. */
static void near_names(void **state)
{
    (void)state;
    static const char *const known[] = { "Host",
                                         "Accept",
                                         "Expect",
                                         "Origin",
                                         "Connection",
                                         "Content-Type",
                                         "Authorization",
                                         "Content-Length",
                                         "Idempotency-Key",
                                         "Transfer-Encoding",
                                         "Holdfast-Client",
                                         "Holdfast-Sequence" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t size = strlen(known[i]);
        for (size_t at = 0; at <= size; at++) {
            char name[32];
            memcpy(name, known[i], size + 1);
            if (at < size)
                name[at] = name[at] == '-' ? '_' : name[at] == 'z' ? 'y' : (char)(name[at] + 1);
            else
                memcpy(name + size, "s", 2);
            const struct hf_http_head *h =
                accepted(text("GET / HTTP/1.1\r\nHost: h\r\n%s: clos\xe9, 1 2\r\n\r\n", name));
            for (int f = 0; f < HF_FIELD_COUNT; f++)
                assert_int_equal(h->has[f], f == HF_FIELD_HOST);
            assert_true(h->keep_alive && !h->has_length && !h->chunked && !h->expect_continue);
        }
    }
}

/* ---- Every byte in every kind of place ---- */

static bool in(const char *set, unsigned byte)
{
    return byte != 0 && strchr(set, (int)byte) != NULL;
}

static bool alnum(unsigned byte)
{
    return in("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", byte);
}

static bool token(unsigned byte)
{
    return alnum(byte) || in("!#$%&'*+-.^_`|~", byte);
}

/* Behind the first byte of a name: a colon makes the rest a value. */
static bool token_or_end(unsigned byte)
{
    return token(byte) || byte == ':';
}

static bool target(unsigned byte)
{
    return alnum(byte) || in("-._~!$&'()*+,;=:@/?", byte);
}

static bool host(unsigned byte)
{
    return alnum(byte) || in("-._~", byte);
}

static bool ascii_value(unsigned byte)
{
    return byte == '\t' || (byte >= 0x20 && byte < 0x7f);
}

static bool any_value(unsigned byte)
{
    return ascii_value(byte) || byte >= 0x80;
}

/* Put each byte between `before` and `after`: accepted are exactly those for which `right` says
 * so. */
static void try_bytes(const char *before, const char *after, bool (*right)(unsigned byte))
{
    char data[256];
    size_t at = strlen(before), behind = strlen(after);
    memcpy(data, before, at);
    memcpy(data + at + 1, after, behind);
    for (unsigned byte = 0; byte < 256; byte++) {
        data[at] = (char)byte;
        head_parse_whole(hf_mem(data, at + 1 + behind), &got);
        if ((got.parse == HF_HTTP_DONE) != right(byte))
            print_error("byte 0x%02x behind %s\n", byte, before);
        assert_int_equal(got.parse, right(byte) ? HF_HTTP_DONE : HF_HTTP_BAD);
        head_check(hf_mem(data, at + 1 + behind), &got);
    }
}

#define LINE "GET / HTTP/1.1\r\nHost: h\r\n"

/* A key and a client's name may have bytes above 0x7F. */
static bool bytes_too(const char *field)
{
    return strcmp(field, "Idempotency-Key") == 0 || strcmp(field, "Holdfast-Client") == 0;
}

static void every_byte(void **state)
{
    (void)state;
    try_bytes("G", "T / HTTP/1.1\r\nHost: h\r\n\r\n", token);
    try_bytes("GET /", " HTTP/1.1\r\nHost: h\r\n\r\n", target);
    try_bytes("GET /a?", "b HTTP/1.1\r\nHost: h\r\n\r\n", target);
    try_bytes("GET / HTTP/1.1\r\nHost: a", "b\r\n\r\n", host);
    try_bytes(LINE "X", "Y: z\r\n\r\n", token_or_end);
    try_bytes(LINE "Content-Leng", "h: 5\r\n\r\n", token_or_end);
    static const char *const kept[] = { "Authorization",    "Idempotency-Key", "Content-Type",
                                        "Accept",           "Origin",          "Holdfast-Client",
                                        "Holdfast-Sequence" };
    char before[128];
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        for (int pad = 0; pad <= 17; pad++) {
            snprintf(before, sizeof before, LINE "%s: %.*s", kept[i], pad, "abcdefghijklmnopq");
            try_bytes(before, "z\r\n\r\n", bytes_too(kept[i]) ? any_value : ascii_value);
        }
    /* Every place in the eight bytes that are looked at together, with and without a tab before
     * it. */
    for (int pad = 0; pad <= 17; pad++) {
        snprintf(before, sizeof before, LINE "X: %.*s", pad, "abcdefg\xe9i\tklmnopq");
        try_bytes(before, "yz\r\n\r\n", any_value);
        try_bytes(before, "\x80 0123456789\r\n\r\n", any_value);
    }
}

/* ---- Limits ---- */

static void size_of_a_head(void **state)
{
    (void)state;
    static char data[HF_HTTP_HEAD_MAX + 64];
    static const char begin[] = LINE "X: ";
    size_t fixed = sizeof begin - 1;
    for (size_t size = HF_HTTP_HEAD_MAX - 3; size <= HF_HTTP_HEAD_MAX + 3; size++) {
        memset(data, 'x', sizeof data);
        memcpy(data, begin, fixed);
        memcpy(data + size - 4, "\r\n\r\n", 4);
        struct hf_bytes whole = hf_mem(data, size + 20); /* with bytes of a body behind it */
        if (size <= HF_HTTP_HEAD_MAX) {
            assert_int_equal(accepted(whole)->size, size);
        } else {
            refused(whole, 431);
            assert_string_equal(got.why.code, "head-too-large");
        }
        for (size_t step = 1; step < 20000; step = step * 3 + 1)
            head_same_steps(whole, step, &got);
    }
    /* It is not waited for when the limit is reached, and not refused before. */
    memset(data + fixed, 'x', sizeof data - fixed);
    head_parse_whole(hf_mem(data, HF_HTTP_HEAD_MAX - 1), &got);
    assert_int_equal(got.parse, HF_HTTP_MORE);
    refused(hf_mem(data, HF_HTTP_HEAD_MAX), 431);
    /* What is wrong before the limit decides, even if it is seen only there. */
    data[4] = '|';
    head_parse_steps(hf_mem(data, sizeof data), 1, &got);
    assert_int_equal(got.why.status, 400);
    memcpy(data, LINE, sizeof LINE - 1);
    data[1000] = '\0';
    head_parse_steps(hf_mem(data, sizeof data), 1, &got);
    assert_int_equal(got.why.status, 400);
    assert_int_equal(got.calls, HF_HTTP_HEAD_MAX);
}

static void number_of_fields(void **state)
{
    (void)state;
    char data[4096];
    for (int count = 62; count <= 66; count++) {
        size_t size = (size_t)snprintf(data, sizeof data, LINE);
        for (int i = 1; i < count; i++)
            size += (size_t)snprintf(data + size, sizeof data - size, "X: y\r\n");
        memcpy(data + size, "\r\n", 2);
        if (count <= HF_HTTP_FIELDS_MAX) {
            accepted(hf_mem(data, size + 2));
        } else {
            refused(hf_mem(data, size + 2), 431);
            assert_string_equal(got.why.code, "too-many-headers");
        }
    }
}

static void empty_lines_in_front(void **state)
{
    (void)state;
    for (int count = 0; count <= 6; count++) {
        struct hf_bytes data = text("%.*s" LINE "\r\n", 2 * count, "\r\n\r\n\r\n\r\n\r\n\r\n");
        if (count <= HF_HTTP_EMPTY_MAX)
            assert_int_equal(accepted(data)->size, data.size);
        else
            refused(data, 400);
    }
    refused(text("\n" LINE "\r\n"), 400);
    refused(text("\r" LINE "\r\n"), 400);
    refused(text("\r\n " LINE "\r\n"), 400);
    head_parse_whole(hf_mem("\r\n\r\n", 4), &got);
    assert_int_equal(got.parse, HF_HTTP_MORE);
}

/* A request line that is wrong is refused when it is there, also if it came byte by byte. */
static void other_protocols_at_once(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "SSH-2.0-OpenSSH_9.2\r\n", "EHLO h\r\n", "GET /\r\n", "*1\r\n", "\x16\x03\x01",
        "GET / HTTP/2.0\r\n",      "GET /\n",    "\n",        "QUIT\n"
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct hf_bytes data = hf_str(lines[i]);
        head_parse_steps(data, 1, &got);
        assert_int_equal(got.parse, HF_HTTP_BAD);
    }
}

/* ---- Inside the target ---- */

static void unescaping(void **state)
{
    (void)state;
    static const char *const bad[] = { "%",    "a%",    "%4",     "a%4", "%4g", "%g4",
                                       "%%41", "%4%31", "%u0041", "%-1", "% 1" };
    char out[64];
    size_t size;
    assert_true(hf_http_unescape(hf_str("a+%41%00%fF%2b%25/"), out, &size));
    assert_int_equal(size, 8);
    assert_memory_equal(out, "a+A\0\xff+%/", 8);
    assert_true(hf_http_unescape(hf_mem(NULL, 0), out, &size));
    assert_int_equal(size, 0);
    strcpy(out, "%61%62%63"); /* where it stands */
    assert_true(hf_http_unescape(hf_str(out), out, &size));
    assert_int_equal(size, 3);
    assert_memory_equal(out, "abc", 3);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(hf_http_unescape(hf_str(bad[i]), out, &size));
    assert_false(hf_http_unescape(hf_mem("%41", 2), out,
                                  &size)); /* the digit behind the end is not its own */
    assert_false(hf_http_unescape(hf_mem("%41", 1), out, &size));
    for (unsigned byte = 0; byte < 256; byte++) {
        char in[4];
        snprintf(in, sizeof in, byte % 2 ? "%%%02x" : "%%%02X", byte);
        assert_true(hf_http_unescape(hf_mem(in, 3), out, &size));
        assert_true(size == 1 && (unsigned char)out[0] == byte);
    }
}

static void queries(void **state)
{
    (void)state;
    static const char *const parts[][2] = { { "a", "b" }, { "c", "" },    { "d", "" },
                                            { "", "e" },  { "f", "g=h" }, { "%3d", "%26" } };
    struct hf_bytes rest = hf_str("&a=b&&c=&d&=e&f=g=h&%3d=%26&&"), name, value;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        assert_true(hf_http_query_next(&rest, &name, &value));
        IS(name, parts[i][0]);
        IS(value, parts[i][1]);
    }
    assert_false(hf_http_query_next(&rest, &name, &value));
    assert_false(hf_http_query_next(&rest, &name, &value));
    rest = hf_mem(NULL, 0);
    assert_false(hf_http_query_next(&rest, &name, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_typical_head),
        cmocka_unit_test(a_short_head),
        cmocka_unit_test(methods),
        cmocka_unit_test(targets),
        cmocka_unit_test(versions),
        cmocka_unit_test(lengths),
        cmocka_unit_test(codings),
        cmocka_unit_test(expectations),
        cmocka_unit_test(connections),
        cmocka_unit_test(hosts),
        cmocka_unit_test(lines_that_are_none),
        cmocka_unit_test(repeated_fields),
        cmocka_unit_test(near_names),
        cmocka_unit_test(every_byte),
        cmocka_unit_test(size_of_a_head),
        cmocka_unit_test(number_of_fields),
        cmocka_unit_test(empty_lines_in_front),
        cmocka_unit_test(other_protocols_at_once),
        cmocka_unit_test(unescaping),
        cmocka_unit_test(queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
