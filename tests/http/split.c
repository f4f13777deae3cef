/* The head of a request gives the same answer however it is split on its way. */
#include "http/kit/head.h"
#include "support/test.h"

#define TYPICAL                                                                             \
    "POST /v1/holds?a=b&c HTTP/1.1\r\nHost: 127.0.0.1:4653\r\nUser-Agent: curl/7.88.1\r\n"  \
    "Accept: */*\r\ncontent-type:application/json\r\nIDEMPOTENCY-KEY: \t order 8123\t \r\n" \
    "Authorization: Bearer 0123456789abcdef\r\nOrigin: http://h\r\nContent-Length: 67\r\n"  \
    "Accept: text/html\r\nExpect: 100-Continue\r\nConnection: keep-alive, x\r\n\r\n"

#define RAW(text)              \
    {                          \
        text, sizeof(text) - 1 \
    }

/* Heads of all kinds; the hostile requests come on top of them in another test. */
static const struct hf_bytes heads[] = {
    RAW(TYPICAL),
    RAW(TYPICAL "{\"resource\":\"r\"}\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    RAW("GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    RAW("\r\n\r\n\r\n\r\nGET /a%20b?c HTTP/1.1\r\nHost: [::1]:80\r\nX:\t\r\nY: \t z "
        "\xff\t\r\n\r\n"),
    RAW("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"),
    RAW("GET / HTTP/1.0\r\n\r\n"),
    RAW("GET / HTTP/1.0\r\n\r\n\r\n\r\n"),
    RAW("GET / HTTP/1.1\r\n\r\n"),
    RAW("GET /%z HTTP/1.1\r\nHost: h\r\n\r\n"),
    RAW("GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n"),
    RAW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    RAW("GET / HTTP/1.1\nHost: h\n\n"),
    RAW("GET / HTTP/1.1\r\nHost: h\n\r\n"),
    RAW("GET / HTTP/1.1\r\nHost: h\r\n\n"),
    RAW("GET / HTTP/1.1\r\nHost: h\r\n\r\r\n"),
    RAW("GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n"),
    RAW("GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n"),
    RAW("GET / HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n"),
    RAW("GET / HTTP/1.1\r\nHost: h\r\nX: \0\r\n\r\n"),
    RAW("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
    RAW("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
    RAW("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n"),
    RAW("POST / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n"),
    RAW("\n\n\n"),
    RAW("\r\r\n\r\n"),
    RAW("\r\n\r\n"),
    RAW("GET / HTTP/1.1\r\nHost: h\r\nX: not yet over"),
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
    RAW("\r\n"),
    RAW("\n"),
    RAW("\r"),
    RAW("\0"),
    RAW(" "),
    RAW("\t"),
    RAW(":"),
    RAW(","),
    RAW("chunked"),
    RAW("Content-Length: 5\r\n"),
    RAW("\r\n\r\n"),
    RAW("\r\n "),
    RAW("Host: h\r\n"),
    RAW("\x80"),
    RAW("Transfer-Encoding: chunked\r\n"),
    RAW("%"),
    RAW("?"),
    RAW("HTTP/1.1"),
    RAW("Idempotency-Key: k\r\n"),
    RAW("Connection: close\r\n"),
    RAW("[::1]"),
    RAW("0"),
    RAW("\x7f"),
    RAW("Expect: 100-continue\r\n"),
    RAW("GET / HTTP/1.1\r\n"),
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
        cmocka_unit_test(every_split),
        cmocka_unit_test(random_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
