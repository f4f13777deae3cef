/* The lines of a config file, without any file. What they mean for the options is tried in
 * tests/cli/serve.sh. */
#include "support/test.h"

/* The program's own objects bring a main along, so the one file that is tried here is taken in
 * whole. */
#include "cli/config_text.c"

#include <stdlib.h>

static struct {
    struct hf_cli_setting settings[64];
    size_t count, refuse_at;
} got;

static bool take(void *arg, const struct hf_cli_setting *setting)
{
    assert_ptr_equal(arg, &got);
    assert_true(got.count < 64);
    got.settings[got.count++] = *setting;
    return got.count != got.refuse_at;
}

static char *text; /* of exactly the size that is promised, so that a sanitizer sees more */
static struct hf_cli_config_refusal refusal;

static bool parse(const char *bytes, size_t size)
{
    free(text);
    text = malloc(size + 1);
    memcpy(text, bytes, size);
    text[size] = 'x';
    got.count = 0;
    refusal = (struct hf_cli_config_refusal){ 77, "not filled" };
    return hf_cli_config_parse(text, size, take, &got, &refusal);
}

static void is(size_t i, unsigned line, const char *name, const char *value)
{
    assert_true(i < got.count);
    assert_int_equal(got.settings[i].line, line);
    assert_string_equal(got.settings[i].name, name);
    assert_string_equal(got.settings[i].value, value);
}

static void a_whole_file(void **state)
{
    (void)state;
    static const char file[] = "# a comment\n"
                               "\n"
                               "data = /srv/hold fast\n"
                               "   \t\n"
                               "\tlisten=127.0.0.1:0  # behind the proxy\n"
                               "auth-file =\t\"/etc/the \\\"shop\\\"\\\\x\" # quoted\r\n"
                               "  # another\r\n"
                               "\r\n"
                               "empty = \"\"\n"
                               "hash = a#b\n"
                               "quoted-hash = \" # \"#c\n"
                               "equals = a=b = c\n"
                               "inner = say \"hi\" now\n"
                               "backslash = C:\\dir\\\n"
                               "gr\xc3\xbc\xc3\x9f = \xe2\x9c\x93\n"
                               "last = no line end";
    assert_true(parse(file, sizeof file - 1));
    assert_int_equal(refusal.line, 0);
    assert_int_equal(got.count, 11);
    is(0, 3, "data", "/srv/hold fast");
    is(1, 5, "listen", "127.0.0.1:0");
    is(2, 6, "auth-file", "/etc/the \"shop\"\\x");
    is(3, 9, "empty", "");
    is(4, 10, "hash", "a#b");
    is(5, 11, "quoted-hash", " # ");
    is(6, 12, "equals", "a=b = c");
    is(7, 13, "inner", "say \"hi\" now");
    is(8, 14, "backslash", "C:\\dir\\");
    is(9, 15, "gr\xc3\xbc\xc3\x9f", "\xe2\x9c\x93");
    is(10, 16, "last", "no line end");
    assert_true(parse("", 0) && got.count == 0);
    assert_true(parse("\n", 1) && got.count == 0);
    assert_true(parse("#", 1) && got.count == 0);
}

static void malformed_lines(void **state)
{
    (void)state;
    static const struct {
        struct hf_bytes line;
        const char *words;
    } cases[] = {
#define BYTES(b) { b, sizeof(b) - 1 }
        { BYTES("data"), "name = value" },
        { BYTES("data /srv"), "name = value" },
        { BYTES("data # = /srv"), "name = value" },
        { BYTES("two words = x"), "name = value" },
        { BYTES("= /srv"), "name = value" },
        { BYTES("[section]"), "name = value" },
        { BYTES("data ="), "missing" },
        { BYTES("data = \t "), "missing" },
        { BYTES("data = # none"), "missing" },
        { BYTES("data = 'x'"), "not '" },
        { BYTES("data = \""), "closing quote is missing" },
        { BYTES("data = \"abc"), "closing quote is missing" },
        { BYTES("data = \"abc # x"), "closing quote is missing" },
        { BYTES("data = \"abc\\\""), "closing quote is missing" },
        { BYTES("data = \"abc\\"), "escapes" },
        { BYTES("data = \"a\\nb\""), "escapes" },
        { BYTES("data = \"a\" b"), "after the closing quote" },
        { BYTES("data = \"a\"\"b\""), "after the closing quote" },
        { BYTES("data = a\0b"), "control" },
        { BYTES("data = a\x1b[0m"), "control" },
        { BYTES("data = a\x7f"), "control" },
        { BYTES("data = a\rb"), "control" },
        { BYTES("# a\x01"), "control" },
        { BYTES("data = \xff"), "UTF-8" },
        { BYTES("# \xc3"), "UTF-8" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int ended = 0; ended < 2; ended++) {
            char file[200] = "first = 1\n\n";
            size_t size = strlen(file);
            memcpy(file + size, cases[i].line.data, cases[i].line.size);
            size += cases[i].line.size;
            if (ended) {
                memcpy(file + size, "\nlater = 2\n", 11);
                size += 11;
            }
            assert_false(parse(file, size));
            if (refusal.line != 3 || !strstr(refusal.what, cases[i].words) || got.count != 1)
                fail_msg("case %zu: line %u: %s", i, refusal.line, refusal.what);
        }
    }
}

static void long_lines(void **state)
{
    (void)state;
    enum { MAX = HF_CLI_CONFIG_LINE_MAX };
    static char file[MAX + 10];
    memset(file, 'v', sizeof file);
    memcpy(file, "n = ", 4);
    memcpy(file + MAX, "\r\n", 2);
    assert_true(parse(file, MAX + 2));
    assert_int_equal(strlen(got.settings[0].value), MAX - 4);
    assert_true(parse(file, MAX));
    memcpy(file + MAX, "v\n", 2);
    assert_false(parse(file, MAX + 2));
    assert_int_equal(refusal.line, 1);
    assert_non_null(strstr(refusal.what, "4096 bytes"));
}

static void who_listens_may_stop(void **state)
{
    (void)state;
    got.refuse_at = 2;
    assert_false(parse("a = 1\nb = 2\nc = 3\n", 18));
    assert_int_equal(got.count, 2);
    assert_int_equal(refusal.line, 0);
    got.refuse_at = 0;
}

/* Whatever stands there: every value lies in the text, and quoting it again gives the same. */
static void random_text(void **state)
{
    (void)state;
    static const char alphabet[] = "ab=\"\\#' \t\n\r\xc3\xbc\x01";
    uint64_t seed = test_seed("config", 5);
    unsigned good = 0;
    for (int i = 0; i < 50000; i++) {
        char file[40], again[200];
        size_t size = test_below(&seed, sizeof file);
        for (size_t k = 0; k < size; k++)
            file[k] = alphabet[test_below(&seed, sizeof alphabet - (i % 4 ? 5 : 1))];
        if (i % 2 && size > 4)
            memcpy(file, "a = ", 4);
        if (!parse(file, size) || got.count == 0)
            continue;
        good++;
        const char *value = got.settings[got.count - 1].value;
        assert_true(value > text && value + strlen(value) <= text + size);
        size_t at = (size_t)snprintf(again, sizeof again, "n=\"");
        for (const char *p = value; *p; p++) {
            if (*p == '"' || *p == '\\')
                again[at++] = '\\';
            again[at++] = *p;
        }
        again[at++] = '"';
        char before[80];
        snprintf(before, sizeof before, "%s", value);
        assert_true(parse(again, at));
        is(0, 1, "n", before);
    }
    assert_true(good > 1000);
}

static int end(void **state)
{
    (void)state;
    free(text);
    return 0;
}

/* Every line is read, also after a malformed one. */
static void each_take(void *arg, const struct hf_cli_setting *setting)
{
    (void)take(arg, setting);
}

static struct hf_cli_config_refusal refusals[8];
static size_t refusal_count;

static void malformed(void *arg, const struct hf_cli_config_refusal *r)
{
    assert_ptr_equal(arg, &got);
    assert_true(refusal_count < 8);
    refusals[refusal_count++] = *r;
}

static void all_lines_after_malformed_ones(void **state)
{
    (void)state;
    static const char file[] = "a = 1\nb\nc = 3\nd = \"\x01\"\n\ne = \"x\nf = 6";
    const struct hf_cli_config_sink sink = { each_take, malformed, &got };
    free(text);
    text = malloc(sizeof file);
    memcpy(text, file, sizeof file);
    got.count = 0;
    got.refuse_at = 0;
    hf_cli_config_parse_all(text, sizeof file - 1, &sink);
    assert_int_equal(got.count, 3);
    is(0, 1, "a", "1");
    is(1, 3, "c", "3");
    is(2, 7, "f", "6");
    assert_int_equal(refusal_count, 3);
    assert_int_equal(refusals[0].line, 2);
    assert_string_equal(refusals[0].what, "expected: name = value");
    assert_int_equal(refusals[1].line, 4);
    assert_int_equal(refusals[2].line, 6);
    assert_string_equal(refusals[2].what, "the closing quote is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lines_after_malformed_ones),
        cmocka_unit_test(a_whole_file),
        cmocka_unit_test(malformed_lines),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(who_listens_may_stop),
        cmocka_unit_test(random_text),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
