/* UTF-8, durations, times, sizes and numbers. */
#include "support/test.h"

#include "base/filename.h"
#include "base/text.h"

#define UTF8(text) hf_utf8_valid(hf_mem(text, sizeof(text) - 1))

static void utf8(void **state)
{
    (void)state;
    assert_true(hf_utf8_valid(hf_mem("", 0)));
    assert_true(UTF8("plain") && UTF8("a\0b") && UTF8("\x7f"));
    assert_true(UTF8("\xc2\x80") && UTF8("\xdf\xbf"));
    assert_true(UTF8("\xe0\xa0\x80") && UTF8("\xed\x9f\xbf") && UTF8("\xee\x80\x80") &&
                UTF8("\xef\xbf\xbf"));
    assert_true(UTF8("\xf0\x90\x80\x80") && UTF8("\xf4\x8f\xbf\xbf"));
    assert_false(UTF8("\x80") || UTF8("\xbf") || UTF8("\xfe") || UTF8("\xff") ||
                 UTF8("\xf8\x88\x80\x80\x80"));
    assert_false(UTF8("\xc0\x80") || UTF8("\xc1\xbf")); /* overlong */
    assert_false(UTF8("\xe0\x9f\xbf") || UTF8("\xf0\x8f\xbf\xbf"));
    assert_false(UTF8("\xed\xa0\x80") || UTF8("\xed\xbf\xbf")); /* surrogates */
    assert_false(UTF8("\xf4\x90\x80\x80") || UTF8("\xf5\x80\x80\x80"));
    assert_false(UTF8("\xc3") || UTF8("a\xe2\x82") || UTF8("\xf0\x9f\x98")); /* cut short */
    assert_false(UTF8("\xc3(") || UTF8("\xe2(\xac") || UTF8("\xe2\x82(") || UTF8("\xf0\x9f\x98("));
    assert_false(UTF8("\xc3\xc3") || UTF8("\xe2\x82\xc3"));
}

/* Every string of up to three bytes out of the ones that matter, against a slow reading of the
 * rules. */
static bool slow_utf8(const unsigned char *p, size_t n)
{
    while (n > 0) {
        uint32_t c = p[0], least = 0;
        size_t len = c < 0x80 ? 1 : c < 0xc0 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf8 ? 4 : 0;
        if (len == 0 || len > n)
            return false;
        c &= len == 1 ? 0x7f : 0x7fU >> len;
        least = len == 2 ? 0x80 : len == 3 ? 0x800 : len == 4 ? 0x10000 : 0;
        for (size_t i = 1; i < len; i++) {
            if ((p[i] & 0xc0) != 0x80)
                return false;
            c = c << 6 | (p[i] & 63);
        }
        if (c < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            return false;
        p += len;
        n -= len;
    }
    return true;
}

static void utf8_exhaustively(void **state)
{
    (void)state;
    static const unsigned char set[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                         0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                                         0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff };
    enum { N = sizeof set };
    for (size_t i = 0; i < (size_t)N * N * N * N; i++) {
        unsigned char b[4] = { set[i % N], set[i / N % N], set[i / N / N % N], set[i / N / N / N] };
        for (size_t n = 1; n <= 4; n++)
            assert_int_equal(hf_utf8_valid(hf_mem(b, n)), slow_utf8(b, n));
    }
}

static void duration_is(const char *text, int64_t want)
{
    int64_t ms = -7;
    assert_true(hf_duration_parse(hf_str(text), &ms));
    assert_true(ms == want);
}

static void durations(void **state)
{
    (void)state;
    duration_is("0", 0);
    duration_is("90", 90000);
    duration_is("250ms", 250);
    duration_is("30s", 30000);
    duration_is("15m", 900000);
    duration_is("24h", 86400000);
    duration_is("7d", 604800000);
    duration_is("3650d", HF_DURATION_MAX_MS);
    duration_is("315360000000ms", HF_DURATION_MAX_MS);
    duration_is("007s", 7000);
    static const char *const bad[] = { "",
                                       "s",
                                       "-1s",
                                       "+1s",
                                       "1.5s",
                                       " 1s",
                                       "1s ",
                                       "1 s",
                                       "1S",
                                       "1min",
                                       "1x",
                                       "3651d",
                                       "315360000001ms",
                                       "18446744073709551616",
                                       "18446744073709551615",
                                       "213503982335d",
                                       "1h30m",
                                       "0x1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t ms;
        assert_false(hf_duration_parse(hf_str(bad[i]), &ms));
    }
    int64_t ms;
    assert_false(hf_duration_parse(hf_mem("1\0", 2), &ms));
}

/* What a rule may be against, and can be read all the same. */
static void durations_of_any_length(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } all[] = { { "15m", 900000 },
                { "-15m", -900000 },
                { "-0", 0 },
                { "3651d", HF_DURATION_MAX_MS + 86400000 },
                { "9223372036854775807ms", INT64_MAX },
                { "-9223372036854775807ms", -INT64_MAX } };
    static const char *const bad[] = {
        "", "-", "--1", "+1", "-1x", "- 1", "9223372036854775808ms", "9223372036854776s"
    };
    int64_t ms;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(hf_duration_read(hf_str(all[i].text), &ms));
        assert_int_equal(ms, all[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(hf_duration_read(hf_str(bad[i]), &ms));
    assert_false(hf_duration_read(hf_mem(NULL, 0), &ms));
    assert_false(hf_duration_parse(hf_str("-0"), &ms));
}

static void durations_as_text(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } all[] = { { 0, "0ms" },       { 1, "1ms" },        { 999, "999ms" },
                { 1000, "1s" },     { 1001, "1001ms" },  { 60000, "1m" },
                { 90000, "90s" },   { 3600000, "1h" },   { 5400000, "90m" },
                { 86400000, "1d" }, { 90000000, "25h" }, { HF_DURATION_MAX_MS, "3650d" } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[24];
        hf_duration_format(all[i].ms, text);
        assert_string_equal(text, all[i].text);
        duration_is(text, all[i].ms);
    }
}

static void sizes(void **state)
{
    (void)state;
    uint64_t n;
    assert_true(hf_size_parse(hf_str("4096"), &n) && n == 4096);
    assert_true(hf_size_parse(hf_str("7B"), &n) && n == 7);
    assert_true(hf_size_parse(hf_str("64KiB"), &n) && n == 65536);
    assert_true(hf_size_parse(hf_str("1MiB"), &n) && n == 1048576);
    assert_true(hf_size_parse(hf_str("2GiB"), &n) && n == UINT64_C(2147483648));
    assert_true(hf_size_parse(hf_str("17179869183GiB"), &n) && n == UINT64_C(0xffffffffc0000000));
    static const char *const bad[] = { "",    "KiB", "1KB", "1kib", "1 MiB", "-1", "17179869184GiB",
                                       "1TiB" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(hf_size_parse(hf_str(bad[i]), &n));
}

static void numbers(void **state)
{
    (void)state;
    uint64_t n;
    assert_true(hf_number_parse(hf_str("0"), &n) && n == 0);
    assert_true(hf_number_parse(hf_str("18446744073709551615"), &n) && n == UINT64_MAX);
    static const char *const bad[] = {
        "", "-1", "+1", "1 ", " 1", "1a", "18446744073709551616", "99999999999999999999", "/", ":"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(hf_number_parse(hf_str(bad[i]), &n));
}

static void times_as_text(void **state)
{
    (void)state;
    static const struct {
        hf_time t;
        const char *text;
    } all[] = {
        { 0, "1970-01-01T00:00:00.000Z" },
        { -1, "1969-12-31T23:59:59.999Z" },
        { INT64_C(1700000000123), "2023-11-14T22:13:20.123Z" },
        { INT64_C(951782400000), "2000-02-29T00:00:00.000Z" }, /* leap: divisible by 400 */
        { INT64_C(951868800000), "2000-03-01T00:00:00.000Z" },
        { INT64_C(1709164800000), "2024-02-29T00:00:00.000Z" },
        { INT64_C(4107542399999), "2100-02-28T23:59:59.999Z" }, /* not leap: by 100 */
        { INT64_C(4107542400000), "2100-03-01T00:00:00.000Z" },
        { INT64_C(253402300799999), "9999-12-31T23:59:59.999Z" },
        { INT64_C(-62167219200000), "0000-01-01T00:00:00.000Z" },
        { INT64_C(-62162035200001), "0000-02-29T23:59:59.999Z" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[HF_TIME_TEXT];
        hf_time t = 1;
        hf_time_format(all[i].t, text);
        assert_string_equal(text, all[i].text);
        assert_true(hf_time_parse(hf_str(text), &t));
        assert_true(t == all[i].t);
    }
    char text[HF_TIME_TEXT];
    hf_time_format(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    hf_time_format(INT64_MIN, text);
    assert_string_equal(text, "0000-01-01T00:00:00.000Z");
}

static void time_is(const char *text, hf_time want)
{
    hf_time t = 1;
    assert_true(hf_time_parse(hf_str(text), &t));
    assert_true(t == want);
}

static void times_that_are_read(void **state)
{
    (void)state;
    const hf_time noon = INT64_C(1700049600000); /* 2023-11-15T12:00:00Z */
    time_is("2023-11-15", noon - 43200000);
    time_is("2023-11-15T12:00:00Z", noon);
    time_is("2023-11-15t12:00:00z", noon);
    time_is("2023-11-15 12:00:00Z", noon);
    time_is("2023-11-15T12:00:00.5Z", noon + 500);
    time_is("2023-11-15T12:00:00.12Z", noon + 120);
    time_is("2023-11-15T12:00:00.123999999Z", noon + 123); /* cut, not rounded */
    time_is("2023-11-15T13:30:00+01:30", noon);
    time_is("2023-11-15T11:00:00-01:00", noon);
    time_is("2023-11-16T11:59:00+23:59", noon);
    time_is("2023-11-15T12:00:00-00:00", noon);
    time_is("@1700049600000", noon);
    time_is("@0", 0);
    time_is("@253402300799999", INT64_C(253402300799999));
    time_is("2000-02-29", INT64_C(951782400000));
}

static void times_that_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "",
                                       "2023",
                                       "2023-11",
                                       "2023-11-1",
                                       "2023-13-01",
                                       "2023-00-01",
                                       "2023-11-31",
                                       "2023-11-00",
                                       "2023-02-29",
                                       "2100-02-29",
                                       "1900-02-29",
                                       "2023-11-15T",
                                       "2023-11-15T12",
                                       "2023-11-15T12:00",
                                       "2023-11-15T12:00:00",
                                       "2023-11-15T24:00:00Z",
                                       "2023-11-15T12:60:00Z",
                                       "2023-11-15T12:00:60Z",
                                       "2023-11-15T12:00:00.Z",
                                       "2023-11-15T12:00:00.1234567890Z",
                                       "2023-11-15T12:00:00Z ",
                                       "2023-11-15T12:00:00+1:00",
                                       "2023-11-15T12:00:00+0100",
                                       "2023-11-15T12:00:00+24:00",
                                       "2023-11-15T12:00:00+01:60",
                                       "2023-11-15X12:00:00Z",
                                       "2023/11/15",
                                       " 2023-11-15",
                                       "-023-11-15",
                                       "2023-11-15T12-00-00Z",
                                       "2023-11-15T12:00-00Z",
                                       "2023-11-15T1a:00:00Z",
                                       "2023-11-15T12:b0:00Z",
                                       "2023-11-15T12:00:c0Z",
                                       "2023-1115",
                                       "2023-11 15",
                                       "2023-11-15T12:00:00+xx:00",
                                       "2023-11-15T12:00:00+01:xx",
                                       "2023-11-15T12:00:00.123",
                                       "2023-11-15T12:00:00.5:Z",
                                       "2023-11-15T12:00:00./5Z",
                                       "2023-11-15T12:00:00x",
                                       "@",
                                       "@-1",
                                       "@1.5",
                                       "@253402300800000",
                                       "@x",
                                       "12023-11-15",
                                       "2023-11-15Z" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hf_time t;
        if (hf_time_parse(hf_str(bad[i]), &t))
            fail_msg("\"%s\" was read as a time", bad[i]);
    }
    hf_time t;
    assert_false(hf_time_parse(hf_mem("2023-11-15\0", 11), &t));
    assert_false(hf_time_parse(hf_mem("2023-11-15T12:00:00\0", 20), &t));
}

/* No bytes at all, and no place where they are. */
static void nothing(void **state)
{
    (void)state;
    struct hf_bytes none = { NULL, 0 };
    int64_t ms;
    uint64_t n;
    assert_true(hf_utf8_valid(none));
    assert_false(hf_duration_parse(none, &ms));
    assert_false(hf_time_parse(none, &ms));
    assert_false(hf_size_parse(none, &n));
    assert_false(hf_number_parse(none, &n));
}

/* Every day of 800 years goes there and back, and the days follow each other. */
static void every_day(void **state)
{
    (void)state;
    static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    hf_time t = INT64_C(-11676096000000); /* 1600-01-01 */
    for (int y = 1600; y < 2400; y++) {
        for (int m = 1; m <= 12; m++) {
            bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
            int days = lengths[m - 1] + (m == 2 && leap);
            for (int d = 1; d <= days; d++, t += 86400000) {
                char want[32], got[HF_TIME_TEXT];
                snprintf(want, sizeof want, "%04d-%02d-%02d", y, m, d);
                hf_time_format(t, got);
                assert_memory_equal(got, want, 10);
                hf_time back;
                assert_true(hf_time_parse(hf_str(want), &back));
                assert_true(back == t);
            }
        }
    }
}

/* The names of a store's files, taken exactly. */

static void names_are_taken_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum hf_filename kind;
        uint64_t number;
    } names[] = {
        { "journal-00000001.log", HF_FILENAME_LOG, 1 },
        { "journal-99999999.zst", HF_FILENAME_PACK, 99999999 },
        { "snapshot-0000000000000000.snap", HF_FILENAME_SNAPSHOT, 0 },
        { "snapshot-fedcba9876543210.snap", HF_FILENAME_SNAPSHOT, UINT64_C(0xfedcba9876543210) },
        { "holds.idx", HF_FILENAME_INDEX, 0 },
        { "closed", HF_FILENAME_CLOSED, 0 },
        { "journal-00000001.tmp", HF_FILENAME_TMP, 0 },
        { ".tmp", HF_FILENAME_TMP, 0 },
        { "", HF_FILENAME_OTHER, 0 },
        { "journal-", HF_FILENAME_OTHER, 0 },
        { "journal-0000000", HF_FILENAME_OTHER, 0 },
        { "journal-00000001", HF_FILENAME_OTHER, 0 },
        { "journal-00000000.log", HF_FILENAME_OTHER, 0 },
        { "journal-+0000020.log", HF_FILENAME_OTHER, 0 },
        { "journal- 0000020.log", HF_FILENAME_OTHER, 0 },
        { "journal-0000002a.log", HF_FILENAME_OTHER, 0 },
        { "journal-00000001.log2", HF_FILENAME_OTHER, 0 },
        { "journal-000000001.log", HF_FILENAME_OTHER, 0 },
        { "Journal-00000001.log", HF_FILENAME_OTHER, 0 },
        { "snapshot-00000000FFFFF000.snap", HF_FILENAME_OTHER, 0 },
        { "snapshot-0x00000000001000.snap", HF_FILENAME_OTHER, 0 },
        { "snapshot-000000000001000.snap", HF_FILENAME_OTHER, 0 },
        { "snapshot-0000000000001000.snapx", HF_FILENAME_OTHER, 0 },
        { "closed2", HF_FILENAME_OTHER, 0 },
        { "LOCK", HF_FILENAME_OTHER, 0 },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t number = 12345;
        assert_int_equal(hf_filename_read(names[i].name, &number), names[i].kind);
        assert_true(number == names[i].number);
    }
}

static void some_files_follow_a_batch(void **state)
{
    (void)state;
    static const char *const follow[] = { "journal-00000002.log", "journal-00000002.zst",
                                          "snapshot-0000000000001000.snap", "holds.idx" };
    static const char *const others[] = { "journal-00000001.log", "closed", "LOCK",
                                          "holds.idx.tmp" };
    uint64_t number;
    for (size_t i = 0; i < 4; i++) {
        enum hf_filename kind = hf_filename_read(follow[i], &number);
        assert_true(hf_filename_follows_batch(kind, number));
        kind = hf_filename_read(others[i], &number);
        assert_false(hf_filename_follows_batch(kind, number));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8),
        cmocka_unit_test(utf8_exhaustively),
        cmocka_unit_test(durations),
        cmocka_unit_test(durations_of_any_length),
        cmocka_unit_test(durations_as_text),
        cmocka_unit_test(sizes),
        cmocka_unit_test(numbers),
        cmocka_unit_test(times_as_text),
        cmocka_unit_test(times_that_are_read),
        cmocka_unit_test(times_that_are_refused),
        cmocka_unit_test(nothing),
        cmocka_unit_test(every_day),
        cmocka_unit_test(names_are_taken_exactly),
        cmocka_unit_test(some_files_follow_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
