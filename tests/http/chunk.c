/* Chunked bodies: right ones, wrong ones, and the same answer however they are split. */
#include "http/kit/head.h"
#include "support/test.h"

#include "http/chunk.h"

struct outcome {
    enum hf_http_parse parse;
    unsigned status;
    size_t used, size;
    char bytes[4096];
};

/* Decode raw[0 .. size) in pieces, each in a block of its own so that the sanitizer sees every byte
 * read beyond it. cuts: where the pieces end, the last one at `size`. */
static void decode(const char *raw, const size_t *cuts, size_t count, struct outcome *out)
{
    struct hf_http_chunk c = { 0 };
    size_t from = 0;
    *out = (struct outcome){ .parse = HF_HTTP_MORE };
    for (size_t i = 0; i < count && out->parse == HF_HTTP_MORE; i++) {
        struct hf_http_refusal why = { 0 };
        size_t size = cuts[i] - from, used = 99999;
        char *piece = malloc(size + 1);
        assert_non_null(piece);
        memcpy(piece + 1, raw + from, size); /* not aligned */
        size_t decoded = size;
        out->parse = hf_http_chunk_decode(&c, piece + 1, &decoded, &used, &why);
        assert_true(used <= size && decoded <= used);
        assert_true(out->parse != HF_HTTP_MORE || used == size);
        assert_true((out->parse == HF_HTTP_BAD) == (why.status == 400));
        if (out->parse == HF_HTTP_BAD)
            assert_string_equal(why.code, "invalid-request");
        assert_true(out->size + decoded <= sizeof out->bytes);
        memcpy(out->bytes + out->size, piece + 1, decoded);
        out->size += decoded;
        out->used += used;
        out->status = why.status;
        free(piece);
        from = cuts[i];
    }
}

static void same(const struct outcome *a, const struct outcome *b)
{
    assert_int_equal(a->parse, b->parse);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->used, b->used);
    if (a->parse == HF_HTTP_BAD)
        return; /* what was decoded before is of no use */
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->bytes, b->bytes, a->size);
}

/* Whole, in two pieces at every place, in three at every pair of places, and byte by byte. */
static void decode_all_ways(const char *raw, size_t size, struct outcome *whole)
{
    static struct outcome parts;
    size_t each[512];
    assert_true(size <= 512);
    decode(raw, &size, 1, whole);
    for (size_t i = 0; i <= size; i++)
        for (size_t j = i; j <= size; j++) {
            decode(raw, (size_t[]){ i, j, size }, 3, &parts);
            same(whole, &parts);
        }
    for (size_t i = 0; i < size; i++)
        each[i] = i + 1;
    decode(raw, each, size, &parts);
    same(whole, &parts);
}

#define RAW(text) text, sizeof(text) - 1

struct sample {
    const char *raw;
    size_t size;
    const char *bytes; /* NULL: refused */
    size_t used;       /* 0: all of it */
};

static const struct sample samples[] = {
    { RAW("0\r\n\r\n"), "", 0 },
    { RAW("0000000000000000\r\n\r\n"), "", 0 },
    { RAW("5\r\nhello\r\n0\r\n\r\n"), "hello", 0 },
    { RAW("5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n"), "hello", 15 },
    { RAW("1\r\na\r\n2\r\nbc\r\n0A\r\n0123456789\r\na\r\n9876543210\r\n0\r\n\r\n\r\n"),
      "abc01234567899876543210", 49 },
    { RAW("0000000000000002\r\n\r\n\r\n0\r\n\r\n"), "\r\n", 0 },
    { RAW("6\r\n0\r\n\r\n0\r\n0\r\n\r\n"), "0\r\n\r\n0", 0 },
    { RAW("00000000000000001\r\na\r\n0\r\n\r\n"), NULL, 17 },
    { RAW("10000000000000001\r\na\r\n0\r\n\r\n"), NULL, 17 },
    { RAW("\r\n"), NULL, 1 },
    { RAW("\n"), NULL, 1 },
    { RAW("g\r\n"), NULL, 1 },
    { RAW(" 1\r\na\r\n0\r\n\r\n"), NULL, 1 },
    { RAW("1 \r\na\r\n0\r\n\r\n"), NULL, 2 },
    { RAW("1\t\r\na\r\n0\r\n\r\n"), NULL, 2 },
    { RAW("1;x\r\na\r\n0\r\n\r\n"), NULL, 2 },
    { RAW("0x1\r\na\r\n0\r\n\r\n"), NULL, 2 },
    { RAW("+1\r\na\r\n0\r\n\r\n"), NULL, 1 },
    { RAW("-1\r\na\r\n0\r\n\r\n"), NULL, 1 },
    { RAW("1\0\r\na\r\n0\r\n\r\n"), NULL, 2 },
    { RAW("1\na\r\n0\r\n\r\n"), NULL, 2 },
    { RAW("1\ra\r\n0\r\n\r\n"), NULL, 3 },
    { RAW("1\r\r\na\r\n0\r\n\r\n"), NULL, 3 },
    { RAW("1\r\nab\r\n0\r\n\r\n"), NULL, 5 },
    { RAW("1\r\na\n0\r\n\r\n"), NULL, 5 },
    { RAW("1\r\na\r0\r\n\r\n"), NULL, 6 },
    { RAW("3\r\na\r\n0\r\n\r\n"), NULL, 7 },
    { RAW("0\r\nX: y\r\n\r\n"), NULL, 4 },
    { RAW("0\r\n\n"), NULL, 4 },
    { RAW("0\r\n\r\r\n"), NULL, 5 },
    { RAW("0\n\n"), NULL, 2 },
};

static void samples_in_every_split(void **state)
{
    (void)state;
    static struct outcome whole;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *s = &samples[i];
        decode_all_ways(s->raw, s->size, &whole);
        assert_int_equal(whole.parse, s->bytes ? HF_HTTP_DONE : HF_HTTP_BAD);
        assert_int_equal(whole.used, s->used ? s->used : s->size);
        if (s->bytes) {
            assert_int_equal(whole.size, strlen(s->bytes));
            assert_memory_equal(whole.bytes, s->bytes, whole.size);
        }
    }
}

/* Every byte in every place outside of the data: exactly the right ones are taken. */
static void every_byte(void **state)
{
    (void)state;
    static struct outcome out;
    static const char right[] = "1\r\na\r\n0\r\n\r\n";
    static const char *const allowed[] = {
        "0123456789abcdefABCDEF", "\r0123456789abcdefABCDEF", "\n", NULL, "\r", "\n",
        "0123456789abcdefABCDEF", "\r0123456789abcdefABCDEF", "\n", "\r", "\n"
    };
    for (size_t at = 0; at < sizeof right - 1; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            char raw[sizeof right];
            memcpy(raw, right, sizeof right);
            raw[at] = (char)byte;
            size_t size = at + 1;
            decode(raw, &size, 1, &out);
            bool good =
                allowed[at] == NULL || (byte != 0 && strchr(allowed[at], (int)byte) != NULL);
            assert_int_equal(out.parse == HF_HTTP_BAD, !good);
        }
}

/* An unfinished body is never done, and nothing behind the end is touched. */
static void unfinished(void **state)
{
    (void)state;
    static struct outcome out;
    static const char right[] = "3\r\nabc\r\n0\r\n\r\n";
    for (size_t size = 0; size < sizeof right - 1; size++) {
        decode(right, &size, 1, &out);
        assert_int_equal(out.parse, HF_HTTP_MORE);
        assert_int_equal(out.used, size);
    }
    struct hf_http_chunk c = { 0 };
    struct hf_http_refusal why;
    char data[] = "0\r\n\r\nnext";
    size_t n = 9, used;
    assert_int_equal(hf_http_chunk_decode(&c, data, &n, &used, &why), HF_HTTP_DONE);
    assert_int_equal(used, 5);
    n = 4;
    assert_int_equal(hf_http_chunk_decode(&c, data + 5, &n, &used, &why), HF_HTTP_DONE);
    assert_int_equal(used, 0);
    assert_int_equal(n, 0);
    assert_memory_equal(data + 5, "next", 4);
    c = (struct hf_http_chunk){ 0 };
    n = 0;
    assert_int_equal(hf_http_chunk_decode(&c, NULL, &n, &used, &why), HF_HTTP_MORE);
}

/* What is announced is known as soon as the size's line is complete, and not before: so a refusal
 * by size does not depend on the splitting. */
static void announced(void **state)
{
    (void)state;
    static const char line[] = "ffffffffffffffff\r\n";
    struct hf_http_chunk c = { 0 };
    struct hf_http_refusal why;
    for (size_t i = 0; i < sizeof line - 1; i++) {
        char byte = line[i];
        size_t size = 1, used;
        assert_true(c.left == 0);
        assert_int_equal(hf_http_chunk_decode(&c, &byte, &size, &used, &why), HF_HTTP_MORE);
        assert_int_equal(size, 0);
    }
    assert_true(c.left == UINT64_MAX);
    char data[8] = "12345678";
    size_t size = 8, used;
    assert_int_equal(hf_http_chunk_decode(&c, data, &size, &used, &why), HF_HTTP_MORE);
    assert_int_equal(size, 8);
    assert_true(c.left == UINT64_MAX - 8);
}

/* Cuts at random places in [0, size], the last at `size`. How many. */
static size_t random_cuts(uint64_t *random, size_t size, size_t *cuts, size_t room)
{
    size_t count = 0, at = 0;
    uint64_t step = 1 + test_below(random, 40);
    while (count + 1 < room && at < size) {
        at += test_below(random, step + 1);
        cuts[count++] = at < size ? at : size;
    }
    cuts[count++] = size;
    return count;
}

/* A body of random chunks; its raw size. */
static size_t random_body(uint64_t *random, char *raw, size_t room, char *plain, size_t *plain_size)
{
    size_t size = 0;
    *plain_size = 0;
    while (size + 100 < room && test_below(random, 12) != 0) {
        size_t n = 1 + test_below(random, 40);
        size += (size_t)snprintf(raw + size, room - size,
                                 test_below(random, 2) ? "%0*zX\r\n" : "%0*zx\r\n",
                                 (int)test_below(random, 17), n);
        for (size_t i = 0; i < n; i++)
            plain[*plain_size + i] = (char)test_random(random);
        memcpy(raw + size, plain + *plain_size, n);
        memcpy(raw + size + n, "\r\n", 2);
        size += n + 2;
        *plain_size += n;
    }
    memcpy(raw + size, "0\r\n\r\n", 5);
    return size + 5;
}

static void random_bodies(void **state)
{
    (void)state;
    static struct outcome whole, parts;
    static char raw[2048], plain[2048];
    size_t cuts[4096], plain_size;
    uint64_t random = test_seed("random_bodies", 41);
    for (int i = 0; i < 3000; i++) {
        size_t size = random_body(&random, raw, sizeof raw, plain, &plain_size);
        decode(raw, &size, 1, &whole);
        assert_int_equal(whole.parse, HF_HTTP_DONE);
        assert_int_equal(whole.used, size);
        assert_int_equal(whole.size, plain_size);
        assert_memory_equal(whole.bytes, plain, plain_size);
        decode(raw, cuts, random_cuts(&random, size, cuts, 4096), &parts);
        same(&whole, &parts);
        /* The same with bytes turned over, doubled or lost. */
        for (int change = 0; change < 8; change++) {
            size_t at = test_below(&random, size);
            unsigned kind = (unsigned)test_below(&random, 3);
            if (kind == 0)
                raw[at] = "\r\n;0 fF\0"[test_below(&random, 8)];
            else if (kind == 1 && size < sizeof raw)
                memmove(raw + at + 1, raw + at, size++ - at);
            else if (size > 1)
                memmove(raw + at, raw + at + 1, --size - at);
            decode(raw, &size, 1, &whole);
            decode(raw, cuts, random_cuts(&random, size, cuts, 4096), &parts);
            same(&whole, &parts);
        }
    }
}

/* The head of a request gives the same answer however it is split on its way. */

#define TYPICAL                                                                             \
    "POST /v1/holds?a=b&c HTTP/1.1\r\nHost: 127.0.0.1:4653\r\nUser-Agent: curl/7.88.1\r\n"  \
    "Accept: */*\r\ncontent-type:application/json\r\nIDEMPOTENCY-KEY: \t order 8123\t \r\n" \
    "Authorization: Bearer 0123456789abcdef\r\nOrigin: http://h\r\nContent-Length: 67\r\n"  \
    "Accept: text/html\r\nExpect: 100-Continue\r\nConnection: keep-alive, x\r\n\r\n"

#define RAW_OF(text)           \
    {                          \
        text, sizeof(text) - 1 \
    }

/* Heads of all kinds; the hostile requests come on top of them in another test. */
static const struct hf_bytes heads[] = {
    RAW_OF(TYPICAL),
    RAW_OF(TYPICAL "{\"resource\":\"r\"}\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    RAW_OF("GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    RAW_OF("\r\n\r\n\r\n\r\nGET /a%20b?c HTTP/1.1\r\nHost: [::1]:80\r\nX:\t\r\nY: \t z "
           "\xff\t\r\n\r\n"),
    RAW_OF("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    RAW_OF("GET / HTTP/1.0\r\n\r\n"),
    RAW_OF("GET / HTTP/1.0\r\n\r\n\r\n\r\n"),
    RAW_OF("GET / HTTP/1.1\r\n\r\n"),
    RAW_OF("GET /%z HTTP/1.1\r\nHost: h\r\n\r\n"),
    RAW_OF("GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n"),
    RAW_OF("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    RAW_OF("GET / HTTP/1.1\nHost: h\n\n"),
    RAW_OF("GET / HTTP/1.1\r\nHost: h\n\r\n"),
    RAW_OF("GET / HTTP/1.1\r\nHost: h\r\n\n"),
    RAW_OF("GET / HTTP/1.1\r\nHost: h\r\n\r\r\n"),
    RAW_OF("GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n"),
    RAW_OF("GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n"),
    RAW_OF("GET / HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n"),
    RAW_OF("GET / HTTP/1.1\r\nHost: h\r\nX: \0\r\n\r\n"),
    RAW_OF("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
    RAW_OF("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
    RAW_OF("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n"),
    RAW_OF("POST / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n"),
    RAW_OF("\n\n\n"),
    RAW_OF("\r\r\n\r\n"),
    RAW_OF("\r\n\r\n"),
    RAW_OF("GET / HTTP/1.1\r\nHost: h\r\nX: not yet over"),
};

/* In two pieces, cut at every place, and in steps. */
static void try_splits(struct hf_bytes data)
{
    struct head_outcome whole;
    head_parse_whole(data, &whole);
    head_check(data, &whole);
    for (size_t at = 0; at <= data.size; at++)
        head_same_cut(data, (size_t[]){ at, data.size }, 2, &whole);
    for (size_t step = 1; step <= 7; step++)
        head_same_steps(data, step, &whole);
}

static void every_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        try_splits(heads[i]);
    struct head_outcome whole; /* and the first in three pieces, cut at every pair of places */
    head_parse_whole(heads[0], &whole);
    for (size_t i = 0; i <= heads[0].size; i++)
        for (size_t j = i; j <= heads[0].size; j++)
            head_same_cut(heads[0], (size_t[]){ i, j, heads[0].size }, 3, &whole);
}

/* Pieces that hostile requests are made of. */
static const struct hf_bytes pieces[] = {
    RAW_OF("\r\n"),
    RAW_OF("\n"),
    RAW_OF("\r"),
    RAW_OF("\0"),
    RAW_OF(" "),
    RAW_OF("\t"),
    RAW_OF(":"),
    RAW_OF(","),
    RAW_OF("chunked"),
    RAW_OF("Content-Length: 5\r\n"),
    RAW_OF("\r\n\r\n"),
    RAW_OF("\r\n "),
    RAW_OF("Host: h\r\n"),
    RAW_OF("\x80"),
    RAW_OF("Transfer-Encoding: chunked\r\n"),
    RAW_OF("%"),
    RAW_OF("?"),
    RAW_OF("HTTP/1.1"),
    RAW_OF("Idempotency-Key: k\r\n"),
    RAW_OF("Connection: close\r\n"),
    RAW_OF("[::1]"),
    RAW_OF("0"),
    RAW_OF("\x7f"),
    RAW_OF("Expect: 100-continue\r\n"),
    RAW_OF("GET / HTTP/1.1\r\n"),
};

/* Change data[0 .. size) in one place. The new size. */
static size_t mutate(uint64_t *random, char *data, size_t size, size_t room)
{
    size_t at = test_below(random, size + 1), some = 1 + test_below(random, 8);
    struct hf_bytes piece = pieces[test_below(random, sizeof pieces / sizeof *pieces)];
    switch (test_below(random, 12)) {
    case 0: /* the end is lost */ return at;
    case 1:
    case 2: /* a bit is turned over */
        if (at < size)
            data[at] = (char)((unsigned char)data[at] ^ 1U << test_below(random, 8));
        return size;
    case 3:
    case 4: /* any byte */
        if (at < size)
            data[at] = (char)test_random(random);
        return size;
    case 5:
    case 6: /* some are lost */
        if (at + some > size)
            return size;
        memmove(data + at, data + at + some, size - at - some);
        return size - some;
    case 7:
    case 8: /* some come twice */
        if (at + some > size || size + some > room)
            return size;
        memmove(data + at + some, data + at, size - at);
        return size + some;
    default: /* something else in between */
        if (size + piece.size > room)
            return size;
        memmove(data + at + piece.size, data + at, size - at);
        memcpy(data + at, piece.data, piece.size);
        return size + piece.size;
    }
}

static void random_changes(void **state)
{
    (void)state;
    static char data[1024];
    uint64_t random = test_seed("random_changes", 42);
    unsigned seen[3] = { 0 };
    for (int i = 0; i < 40000; i++) {
        struct hf_bytes from =
            heads[test_below(&random, 5)]; /* most are right, so that changes go deep */
        size_t size = from.size, cuts[20];
        memcpy(data, from.data, size);
        for (uint64_t changes = test_below(&random, 4); changes > 0; changes--)
            size = mutate(&random, data, size, sizeof data);
        struct head_outcome whole;
        head_parse_whole(hf_mem(data, size), &whole);
        head_check(hf_mem(data, size), &whole);
        seen[whole.parse]++;
        size_t count = test_below(&random, 20), at = 0;
        for (size_t c = 0; c < count; c++)
            cuts[c] = at += test_below(&random, (size - at) / 2 + 1);
        cuts[count] = size;
        head_same_cut(hf_mem(data, size), cuts, count + 1, &whole);
        head_same_steps(hf_mem(data, size), 1 + test_below(&random, 3), &whole);
    }
    printf("%u not yet over, %u accepted, %u refused\n", seen[0], seen[1], seen[2]);
    for (int i = 0; i < 3; i++)
        assert_true(seen[i] > 1000); /* or the changes are too many or too few */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_in_every_split),
        cmocka_unit_test(every_byte),
        cmocka_unit_test(unfinished),
        cmocka_unit_test(announced),
        cmocka_unit_test(random_bodies),
        cmocka_unit_test(every_split),
        cmocka_unit_test(random_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
