/* The JSON reader: what it takes, what it refuses and in which words. */
#include "support/test.h"

#include "base/bytes.h"
#include "json/canonical.h"

#include <inttypes.h>

static struct hf_arena arena;

static int end(void **state)
{
    (void)state;
    hf_arena_free(&arena);
    return 0;
}

static struct hf_reader on(struct hf_bytes text)
{
    return (struct hf_reader){ .text = text, .arena = &arena };
}

static void expect_text(struct hf_bytes got, const char *text)
{
    if (!hf_bytes_equal(got, hf_str(text)))
        fail_msg("got %.*s instead of %s", (int)got.size, (const char *)got.data, text);
}

/* ---- Whole values ---- */

struct value {
    const char *text, *compact, *canonical;
};

static const struct value values[] = {
    { "null", "null", "null" },
    { " true ", "true", "true" },
    { "\t\r\nfalse\n", "false", "false" },
    { "0", "0", "0" },
    { "-0", "-0", "0" },
    { "-12.50e+07", "-12.50e+07", "-125000000" },
    { "1E400", "1E400", "1e+400" },
    { "0.1e-2", "0.1e-2", "0.001" },
    { "\"\"", "\"\"", "\"\"" },
    { "\" a b \"", "\" a b \"", "\" a b \"" },
    { "[]", "[]", "[]" },
    { "[ ]", "[]", "[]" },
    { "{}", "{}", "{}" },
    { "{ }", "{}", "{}" },
    { "[ 1 , [ ] , { } , \"x\" ]", "[1,[],{},\"x\"]", "[1,[],{},\"x\"]" },
    { "{\"b\":1,\"a\":2}", "{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}" },
    { "{ \"b\" : [1, 2] ,\n\"a\" : { \"d\":1 ,\"c\" : 2 } }",
      "{\"b\":[1,2],\"a\":{\"d\":1,\"c\":2}}", "{\"a\":{\"c\":2,\"d\":1},\"b\":[1,2]}" },
    { "{\"aa\":1,\"a\":2,\"\":3}", "{\"aa\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"aa\":1}" },
    /* white space, brackets and escaped quotes inside of strings */
    { "[ \"a \\\" ] b\" , \"\\\\\" ]", "[\"a \\\" ] b\",\"\\\\\"]", "[\"a \\\" ] b\",\"\\\\\"]" },
    /* one spelling for one string */
    { "\"\\u0061\\/\\u00e9\\u0022\\u000a\\u001F\\ud83d\\ude00\"",
      "\"\\u0061\\/\\u00e9\\u0022\\u000a\\u001F\\ud83d\\ude00\"",
      "\"a/\xc3\xa9\\\"\\n\\u001f\xf0\x9f\x98\x80\"" },
    /* sorted by what the names mean and not by how they are written */
    { "{\"\\u0062\":1,\"a\":2}", "{\"\\u0062\":1,\"a\":2}", "{\"a\":2,\"b\":1}" },
    { "{\"\xc3\xa9\":1,\"z\":2}", "{\"\xc3\xa9\":1,\"z\":2}", "{\"z\":2,\"\xc3\xa9\":1}" },
    { "[{\"b\":1,\"a\":{\"z\":{},\"y\":[{\"q\":1,\"p\":2}]}},{\"b\":1,\"a\":2}]",
      "[{\"b\":1,\"a\":{\"z\":{},\"y\":[{\"q\":1,\"p\":2}]}},{\"b\":1,\"a\":2}]",
      "[{\"a\":{\"y\":[{\"p\":2,\"q\":1}],\"z\":{}},\"b\":1},{\"a\":2,\"b\":1}]" },
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct hf_bytes out = { NULL, 0 };
        struct hf_reader r = on(hf_str(values[i].text));
        if (!hf_reader_compact(&r, &out) || !hf_reader_end(&r))
            fail_msg("%s: %s", values[i].text, r.error);
        expect_text(out, values[i].compact);
        r = on(hf_str(values[i].text));
        assert_true(hf_reader_canonical(&r, &out) && hf_reader_end(&r));
        expect_text(out, values[i].canonical);
        r = on(hf_str(values[i].text));
        assert_true(hf_reader_skip(&r) && hf_reader_end(&r));
    }
}

/* Text that needs no change is not copied. */
static void test_borrowing(void **state)
{
    (void)state;
    struct hf_arena own = { 0 };
    const char *text = " {\"a\":[1,\"b\",{\"c\":null}]} ";
    struct hf_reader r = { .text = hf_str(text), .arena = &own };
    struct hf_bytes out;
    assert_true(hf_reader_compact(&r, &out));
    assert_ptr_equal(out.data, text + 1);
    assert_int_equal(out.size, strlen(text) - 2);
    r = (struct hf_reader){ .text = hf_str("\"caf\xc3\xa9\""), .arena = &own };
    assert_true(hf_reader_string(&r, &out));
    assert_ptr_equal(out.data, (const char *)r.text.data + 1);
    assert_int_equal(own.held, 0);
}

/* ---- What is refused ---- */

struct bad {
    const char *text, *error;
};

static const struct bad bads[] = {
    { "", "expected a value at byte 0, got the end" },
    { "  ", "expected a value at byte 2, got the end" },
    { "\xef\xbb\xbf{}", "the text begins with a byte order mark, which JSON must not have" },
    { "nul", "expected true, false or null at byte 0, got 'n'" },
    { "True", "expected a value at byte 0, got 'T'" },
    { "nullx", "expected nothing more at byte 4, got 'x'" },
    { "{} {}", "expected nothing more at byte 3, got '{'" },
    { "1 2", "expected nothing more at byte 2, got '2'" },
    { "[1] // no", "expected nothing more at byte 4, got '/'" },
    { "/* no */1", "expected a value at byte 0, got '/'" },
    { "'a'", "expected a value at byte 0, got '''" },
    { "NaN", "expected a value at byte 0, got 'N'" },
    { "Infinity", "expected a value at byte 0, got 'I'" },
    { "-Infinity", "expected a digit at byte 1, got 'I'" },
    { "+1", "expected a value at byte 0, got '+'" },
    { "-", "expected a digit at byte 1, got the end" },
    { "01", "expected no digit after a leading zero at byte 1, got '1'" },
    { "-01", "expected no digit after a leading zero at byte 2, got '1'" },
    { "1.", "expected a digit after the point at byte 2, got the end" },
    { ".5", "expected a value at byte 0, got '.'" },
    { "1.e5", "expected a digit after the point at byte 2, got 'e'" },
    { "1e", "expected a digit of the exponent at byte 2, got the end" },
    { "1e+", "expected a digit of the exponent at byte 3, got the end" },
    { "0x10", "expected nothing more at byte 1, got 'x'" },
    { "\x0c"
      "1",
      "expected a value at byte 0, got byte 0x0c" },
    { "\xc2\xa0"
      "1",
      "expected a value at byte 0, got byte 0xc2" },
    { "[", "expected a value at byte 1, got the end" },
    { "[1", "expected ',' or ']' at byte 2, got the end" },
    { "[1,", "expected a value at byte 3, got the end" },
    { "[1,]", "expected a value at byte 3, got ']'" },
    { "[,1]", "expected a value at byte 1, got ','" },
    { "[1 2]", "expected ',' or ']' at byte 3, got '2'" },
    { "[1}", "expected ',' or ']' at byte 2, got '}'" },
    { "]", "expected a value at byte 0, got ']'" },
    { "{", "expected a name in quotes or '}' at byte 1, got the end" },
    { "{a:1}", "expected a name in quotes or '}' at byte 1, got 'a'" },
    { "{1:1}", "expected a name in quotes or '}' at byte 1, got '1'" },
    { "{\"a\"}", "expected ':' at byte 4, got '}'" },
    { "{\"a\" 1}", "expected ':' at byte 5, got '1'" },
    { "{\"a\":}", "expected a value at byte 5, got '}'" },
    { "{\"a\":1,}", "expected a name in quotes at byte 7, got '}'" },
    { "{\"a\":1 \"b\":2}", "expected ',' or '}' at byte 7, got '\"'" },
    { "{\"a\":1]", "expected ',' or '}' at byte 6, got ']'" },
    { "{,}", "expected a name in quotes or '}' at byte 1, got ','" },
    { "\"a", "expected the quote that ends the string at byte 2, got the end" },
    { "\"a\\", "expected the quote that ends the string at byte 3, got the end" },
    { "\"a\\\"", "expected the quote that ends the string at byte 4, got the end" },
    { "\"a\nb\"", "expected control bytes to be escaped at byte 2, got byte 0x0a" },
    { "\"12345678901234567\x1f\"",
      "expected control bytes to be escaped at byte 18, got byte 0x1f" },
    { "\"\\x\"", "expected one of \" \\ / b f n r t u after a backslash at byte 2, got 'x'" },
    { "\"ab\\U0061\"", "expected one of \" \\ / b f n r t u after a backslash at byte 4, got 'U'" },
    { "\"\\u12\"", "after \\u at byte 1" },
    { "\"\\u12g4\"", "after \\u at byte 1" },
    { "\"\\u 123\"", "after \\u at byte 1" },
    { "\"a\\ud800\"", "surrogates in pairs, after \\u at byte 2" },
    { "\"\\udc00\"", "surrogates in pairs" },
    { "\"\\ud800x\"", "surrogates in pairs" },
    { "\"\\ud800\\n\"", "surrogates in pairs" },
    { "\"\\ud800\\u0041\"", "surrogates in pairs" },
    { "\"\\ud800\\ud800\"", "surrogates in pairs" },
    { "\"\\udc00\\ud800\"", "surrogates in pairs" },
    { "\"\\ud800\\udc0\"", "surrogates in pairs" },
    /* UTF-8 that is none */
    { "\"a\x80\"", "expected UTF-8; byte 2 is not valid" },
    { "\"\xc3\xa9\xff\"", "expected UTF-8; byte 3" },
    { "\"\xc0\xaf\"", "expected UTF-8; byte 1" },
    { "\"\xed\xa0\x80\"", "expected UTF-8; byte 1" },
    { "\"\xf4\x90\x80\x80\"", "expected UTF-8; byte 1" },
    { "\"ok \xe2\x82\"", "expected UTF-8; byte 4" },
    { "{\"\xff\":1}", "expected UTF-8; byte 2" },
    { "\xff", "expected a value at byte 0, got byte 0xff" },
    { "\"\\\xc3\xa9\"", "after a backslash at byte 2, got byte 0xc3" },
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        struct hf_reader r = on(hf_str(bads[i].text));
        struct hf_bytes out;
        if (hf_reader_skip(&r) && hf_reader_end(&r))
            fail_msg("%s was taken", bads[i].text);
        assert_false(r.no_memory);
        if (!strstr(r.error, bads[i].error))
            fail_msg("%s: %s", bads[i].text, r.error);
        r = on(hf_str(bads[i].text));
        assert_false(hf_reader_compact(&r, &out) && hf_reader_end(&r));
        r = on(hf_str(bads[i].text));
        assert_false(hf_reader_canonical(&r, &out) && hf_reader_end(&r));
    }
}

/* Bytes of the text that are NUL are no end of it. */
static void test_nul(void **state)
{
    (void)state;
    struct hf_reader r = on(hf_mem("1\0", 2));
    assert_true(hf_reader_skip(&r));
    assert_false(hf_reader_end(&r));
    assert_string_equal(r.error, "expected nothing more at byte 1, got byte 0x00");
    r = on(hf_mem("\"a\0b\"", 5));
    assert_false(hf_reader_skip(&r));
    assert_string_equal(r.error, "expected control bytes to be escaped at byte 2, got byte 0x00");
    r = on(hf_mem(NULL, 0));
    assert_false(hf_reader_skip(&r));
    struct hf_bytes out;
    r = on(hf_str("\"a\\u0000b\""));
    assert_true(hf_reader_string(&r, &out));
    assert_int_equal(out.size, 3);
    assert_memory_equal(out.data, "a\0b", 3);
}

static void test_first_error_sticks(void **state)
{
    (void)state;
    struct hf_reader r = on(hf_str("[1 x]"));
    struct hf_bytes out;
    uint64_t number;
    int64_t whole;
    bool flag;
    assert_true(hf_reader_array(&r) && hf_reader_element(&r) && hf_reader_uint(&r, &number));
    assert_false(hf_reader_element(&r));
    assert_true(r.failed);
    const char *error = "expected ',' or ']' at byte 3, got 'x'";
    assert_string_equal(r.error, error);
    assert_int_equal(hf_reader_peek(&r), HF_READ_NONE);
    assert_false(hf_reader_object(&r));
    assert_false(hf_reader_member(&r, &out));
    assert_false(hf_reader_array(&r));
    assert_false(hf_reader_element(&r));
    assert_false(hf_reader_string(&r, &out));
    assert_false(hf_reader_bool(&r, &flag));
    assert_false(hf_reader_null(&r));
    assert_false(hf_reader_number(&r, &out));
    assert_false(hf_reader_uint(&r, &number));
    assert_false(hf_reader_int(&r, &whole));
    assert_false(hf_reader_compact(&r, &out));
    assert_false(hf_reader_canonical(&r, &out));
    assert_false(hf_reader_skip(&r));
    assert_false(hf_reader_end(&r));
    assert_false(hf_reader_refuse(&r, 0, "nothing"));
    assert_string_equal(r.error, error);
}

/* Every beginning of a value that is no value itself is refused, wherever it is cut. */
static void test_cut_short(void **state)
{
    (void)state;
    const char *text =
        "{\"a\":[1.5e3,true,null,\"\\ud83d\\ude00 \xe2\x82\xac\"],\"b\":{\"c\":false}}";
    for (size_t size = 0; size < strlen(text); size++) {
        char *copy =
            malloc(size + 1); /* exactly as long, so that a sanitizer sees a step too far */
        memcpy(copy, text, size);
        copy = realloc(copy, size > 0 ? size : 1);
        struct hf_reader r = on(hf_mem(copy, size));
        assert_false(hf_reader_skip(&r));
        free(copy);
    }
}

/* ---- Depth ---- */

static void nested(char *text, size_t depth, const char *open, const char *close)
{
    *text = '\0';
    for (size_t i = 0; i < depth; i++)
        strcat(text, open);
    strcat(text, "1");
    for (size_t i = 0; i < depth; i++)
        strcat(text, close);
}

static void test_depth(void **state)
{
    (void)state;
    static char text[1 << 20];
    struct hf_bytes out;
    static const struct {
        const char *open, *close;
    } kinds[] = { { "[", "]" }, { "{\"a\":", "}" }, { " [ ", " ] " } };
    for (size_t i = 0; i < 3; i++) {
        nested(text, HF_READER_DEPTH, kinds[i].open, kinds[i].close);
        struct hf_reader r = on(hf_str(text));
        assert_true(hf_reader_skip(&r) && hf_reader_end(&r));
        assert_int_equal(r.depth, 0);
        r = on(hf_str(text));
        assert_true(hf_reader_canonical(&r, &out) && hf_reader_end(&r));
        nested(text, HF_READER_DEPTH + 1, kinds[i].open, kinds[i].close);
        r = on(hf_str(text));
        assert_false(hf_reader_skip(&r));
        assert_non_null(strstr(r.error, "expected at most 32 nested arrays and objects; byte "));
        r = on(hf_str(text));
        assert_false(hf_reader_canonical(&r, &out));
    }
    memset(text, '[', sizeof text);
    struct hf_reader r = on(hf_mem(text, sizeof text));
    assert_false(hf_reader_skip(&r));
    r = on(hf_str("[[[],[]],[]]")); /* side by side is not inside */
    assert_true(hf_reader_skip(&r) && hf_reader_end(&r));
}

/* ---- Values of one type ---- */

static void test_strings(void **state)
{
    (void)state;
    static const struct {
        const char *text, *means;
    } cases[] = {
        { "\"\"", "" },
        { "\"plain\"", "plain" },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
        { "\"\\u0041\\u00DF\\u6771\\ud834\\udd1e\"", "A\xc3\x9f\xe6\x9d\xb1\xf0\x9d\x84\x9e" },
        { "\"\\uDBFF\\uDFFF\\u007f\\u0080\\u07ff\\u0800\\uffff\"",
          "\xf4\x8f\xbf\xbf\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf" },
        { "\"ab\\ncd\\\\ef\"", "ab\ncd\\ef" },
        { "\"\x7f\xc2\x80\xf4\x8f\xbf\xbf\"", "\x7f\xc2\x80\xf4\x8f\xbf\xbf" },
        { "\"1234567\"", "1234567" },
        { "\"12345678\"", "12345678" },
        { "\"123456789abcdef\"", "123456789abcdef" },
        { "\"123456789abcdef\\t\"", "123456789abcdef\t" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hf_reader r = on(hf_str(cases[i].text));
        struct hf_bytes out;
        if (!hf_reader_string(&r, &out) || !hf_reader_end(&r))
            fail_msg("%s: %s", cases[i].text, r.error);
        expect_text(out, cases[i].means);
    }
}

/* Each byte at each place of a string is judged alike, whatever stands around it. */
static void test_every_byte_everywhere(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 256; c++) {
        for (size_t at = 0; at < 24; at++) {
            char text[26];
            struct hf_bytes out;
            memset(text, 'a', sizeof text);
            text[0] = text[25] = '"';
            text[1 + at] = (char)c;
            struct hf_reader r = on(hf_mem(text, sizeof text));
            bool plain = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
            bool ok = hf_reader_string(&r, &out);
            assert_int_equal(ok, plain || c == '"');
            assert_int_equal(ok && hf_reader_end(&r), plain);
            if (c == '"')
                assert_int_equal(out.size, at);
        }
    }
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_uint, is_int;
    } cases[] = {
        { "0", true, true },
        { "7", true, true },
        { "9223372036854775807", true, true },
        { "9223372036854775808", true, false },
        { "18446744073709551615", true, false },
        { "18446744073709551616", false, false },
        { "99999999999999999999999999999999", false, false },
        { "-1", false, true },
        { "-9223372036854775808", false, true },
        { "-9223372036854775809", false, false },
        { "-99999999999999999999999999999", false, false },
        { "-0", false, false },
        { "1.0", false, false },
        { "1e5", false, false },
        { "1E0", false, false },
        { "-1.5", false, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hf_reader r = on(hf_str(cases[i].text));
        struct hf_bytes text;
        uint64_t u = 0;
        int64_t n = 0;
        char back[32];
        assert_true(hf_reader_number(&r, &text));
        expect_text(text, cases[i].text);
        r = on(hf_str(cases[i].text));
        assert_int_equal(hf_reader_uint(&r, &u), cases[i].is_uint);
        if (cases[i].is_uint)
            snprintf(back, sizeof back, "%" PRIu64, u);
        else
            assert_non_null(
                strstr(r.error, "expected a whole number from 0 to 18446744073709551615, got "));
        r = on(hf_str(cases[i].text));
        assert_int_equal(hf_reader_int(&r, &n), cases[i].is_int);
        if (cases[i].is_int)
            snprintf(back, sizeof back, "%" PRId64, n);
        else
            assert_non_null(
                strstr(r.error, "expected a whole number from -9223372036854775808 to "));
        if (cases[i].is_uint || cases[i].is_int)
            assert_string_equal(back, cases[i].text);
    }
}

static void test_types(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum hf_reader_type type;
        const char *got;
    } cases[] = {
        { " {\"a\":1}", HF_READ_OBJECT, "an object" },
        { "[1]", HF_READ_ARRAY, "an array" },
        { "\"s\"", HF_READ_STRING, "\"s\"" },
        { "-5", HF_READ_NUMBER, "-5" },
        { "true", HF_READ_TRUE, "true" },
        { "false", HF_READ_FALSE, "false" },
        { "null", HF_READ_NULL, "null" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum hf_reader_type type = cases[i].type;
        struct hf_bytes text;
        int64_t number;
        bool flag, ok[6];
        struct hf_reader r[6];
        for (size_t k = 0; k < 6; k++) {
            r[k] = on(hf_str(cases[i].text));
            assert_int_equal(hf_reader_peek(&r[k]), type);
        }
        ok[0] = hf_reader_object(&r[0]);
        ok[1] = hf_reader_array(&r[1]);
        ok[2] = hf_reader_string(&r[2], &text);
        ok[3] = hf_reader_int(&r[3], &number);
        ok[4] = hf_reader_bool(&r[4], &flag);
        ok[5] = hf_reader_null(&r[5]);
        static const char *const names[] = { "an object", "an array",      "a string",
                                             NULL,        "true or false", "null" };
        static const int types[][2] = { { HF_READ_OBJECT },
                                        { HF_READ_ARRAY },
                                        { HF_READ_STRING },
                                        { HF_READ_NUMBER },
                                        { HF_READ_TRUE, HF_READ_FALSE },
                                        { HF_READ_NULL } };
        for (int k = 0; k < 6; k++) {
            char error[96];
            assert_int_equal(ok[k], types[k][0] == (int)type || types[k][1] == (int)type);
            snprintf(error, sizeof error, "expected %s, got %s", names[k] ? names[k] : "",
                     cases[i].got);
            if (!ok[k] && names[k])
                assert_string_equal(r[k].error, error);
        }
        if (type == HF_READ_TRUE || type == HF_READ_FALSE)
            assert_int_equal(flag, type == HF_READ_TRUE);
    }
}

static void test_walking(void **state)
{
    (void)state;
    struct hf_reader r = on(
        hf_str(" { \"a\" : 1 , \"list\" : [ \"x\" , \"y\" ] , \"none\" : [ ] , \"z\" : null } "));
    struct hf_bytes name = { NULL, 0 }, item = { NULL, 0 };
    uint64_t number;
    assert_true(hf_reader_object(&r));
    assert_true(hf_reader_member(&r, &name));
    expect_text(name, "a");
    assert_true(hf_reader_uint(&r, &number));
    assert_true(hf_reader_member(&r, &name));
    assert_true(hf_reader_array(&r));
    assert_true(hf_reader_element(&r) && hf_reader_string(&r, &item));
    expect_text(item, "x");
    assert_true(hf_reader_element(&r) && hf_reader_string(&r, &item));
    expect_text(item, "y");
    assert_false(hf_reader_element(&r));
    assert_true(hf_reader_member(&r, &name));
    assert_true(hf_reader_array(&r));
    assert_false(hf_reader_element(&r));
    assert_true(hf_reader_member(&r, &name));
    assert_true(hf_reader_null(&r));
    assert_false(hf_reader_member(&r, &name));
    assert_false(r.failed);
    assert_true(hf_reader_end(&r));
}

/* An error repeats as much of a value as is bearable, and never half of a character. */
static void test_excerpts(void **state)
{
    (void)state;
    char long_text[200] = "\"", error[200];
    for (int i = 0; i < 50; i++)
        strcat(long_text, "\xe2\x82\xac");
    strcat(long_text, "\"");
    struct hf_reader r = on(hf_str(long_text));
    assert_false(hf_reader_null(&r));
    strcpy(error, "expected null, got \"");
    for (int i = 0; i < 13; i++)
        strcat(error, "\xe2\x82\xac");
    assert_string_equal(r.error, strcat(error, "..."));
    r = on(hf_str("[\"x\", tru]")); /* broken inside: that is said, and not that it is no string */
    assert_false(hf_reader_null(&r));
    assert_string_equal(r.error, "expected true, false or null at byte 6, got 't'");
    /* Control characters, of a terminal too, are not repeated; a NUL does not hide what is behind
     * it. */
    r = on(hf_str("\"a\x7f\xc2\x9b\xc2\xa0z\""));
    assert_false(hf_reader_null(&r));
    assert_string_equal(r.error, "expected null, got \"a???\xc2\xa0z\"");
    char out[HF_READER_EXCERPT];
    assert_string_equal(hf_reader_excerpt(hf_mem("a\0b\x1b[2J", 7), out), "a?b?[2J");
}

/* The JSON reader: a name comes once in an object, however it is written and however many there
 * are. */

static void expect_twice(const char *text, const char *name)
{
    char error[96];
    struct hf_bytes out;
    struct hf_reader r = on(hf_str(text));
    snprintf(error, sizeof error, "duplicate member \"%s\"", name);
    if (hf_reader_skip(&r))
        fail_msg("%s was taken", text);
    if (!strstr(r.error, error))
        fail_msg("%s: %s", text, r.error);
    r = on(hf_str(text));
    assert_false(hf_reader_canonical(&r, &out));
}

static void test_twice(void **state)
{
    (void)state;
    expect_twice("{\"a\":1,\"a\":1}", "a");
    expect_twice("{\"a\":1,\"b\":2,\"a\":3}", "a");
    expect_twice("{\"\":1,\"\":2}", "");
    expect_twice("{\"a\":1,\"\\u0061\":2}", "a");
    expect_twice("{\"\\u00e9\":1,\"\xc3\xa9\":2}", "\xc3\xa9");
    expect_twice("{\"\\/\":1,\"/\":2}", "/");
    expect_twice("{\"x\":{\"a\":1,\"b\":{},\"a\":2}}", "a");
    expect_twice("{\"a\":{\"a\":{\"a\":1}},\"b\":[],\"a\":1}", "a");
    expect_twice("[{\"a\":1},{\"a\":1,\"b\":{\"c\":1},\"b\":1}]", "b");
    expect_twice("{\"a12345678901234567890123456789012345678901234567890\":1,"
                 "\"a12345678901234567890123456789012345678901234567890\":1}",
                 "a123456789012345678901234567890123456789...");
    /* the same name in different objects, names that begin alike, and a name that is another's
     * value */
    const char *fine =
        "{\"a\":{\"a\":{\"a\":\"a\"},\"aa\":1},\"b\":[{\"a\":1},{\"a\":1}],\"aa\":\"b\",\"\":\"\"}";
    struct hf_reader r = on(hf_str(fine));
    assert_true(hf_reader_skip(&r) && hf_reader_end(&r));
}

/* An object of `count` members, the last of which has the name of member `again` (if that is below
 * count). */
static void many(struct hf_buffer *b, size_t count, size_t again)
{
    hf_buffer_reset(b);
    for (size_t i = 0; i < count; i++)
        hf_buffer_printf(b, "%c\"n%zu\":{\"n%zu\":%zu}", i ? ',' : '{',
                         i + 1 == count && again < count ? again : i, i, i);
    hf_buffer_add_char(b, '}');
}

/* Around the number of names up to which they are compared one by one, and far above. */
static void test_many_names(void **state)
{
    (void)state;
    struct hf_buffer b = { 0 };
    static const size_t counts[] = { 2, 15, 16, 17, 18, 31, 32, 33, 100, 5000 };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        size_t n = counts[i];
        many(&b, n, n);
        struct hf_reader r = on(hf_mem(b.data, b.size));
        assert_true(hf_reader_skip(&r) && hf_reader_end(&r));
        for (size_t again = 0; again<n - 1; again += n> 100 ? 997 : 1) {
            many(&b, n, again);
            r = on(hf_mem(b.data, b.size));
            assert_false(hf_reader_skip(&r));
            assert_non_null(strstr(r.error, "duplicate member"));
            hf_arena_reset(&arena);
        }
    }
    hf_buffer_free(&b);
}

/* After an object with many names, those of the object around it are still known. */
static void test_many_names_inside(void **state)
{
    (void)state;
    struct hf_buffer inner = { 0 }, text = { 0 };
    many(&inner, 40, 40);
    hf_buffer_add_text(&text, "{\"a\":");
    hf_buffer_add(&text, inner.data, inner.size);
    hf_buffer_add_text(&text, ",\"b\":");
    hf_buffer_add(&text, inner.data, inner.size);
    hf_buffer_add_text(&text, ",\"a\":1}");
    struct hf_reader r = on(hf_mem(text.data, text.size));
    assert_false(hf_reader_skip(&r));
    assert_non_null(strstr(r.error, "duplicate member \"a\""));
    hf_buffer_free(&inner);
    hf_buffer_free(&text);
}

/* A body as large as one may be, made to be slow: a hundred thousand names in one object take less
 * than the seconds that comparing each with each would. */
static void test_names_cannot_be_slow(void **state)
{
    (void)state;
    struct hf_buffer b = { 0 };
    struct hf_bytes out;
    for (size_t i = 0; i < 100000; i++)
        hf_buffer_printf(&b, "%c\"%06zx\":1", i ? ',' : '{', i * 7919 % 100000);
    hf_buffer_add_char(&b, '}');
    int64_t from = test_cpu_ns();
    struct hf_reader r = on(hf_mem(b.data, b.size));
    assert_true(hf_reader_skip(&r) && hf_reader_end(&r));
    r = on(hf_mem(b.data, b.size));
    assert_true(hf_reader_canonical(&r, &out) && hf_reader_end(&r));
    assert_true(test_cpu_ns() - from < INT64_C(3000000000));
    assert_int_equal(out.size, b.size);
    assert_memory_equal(out.data, "{\"000000\":1,\"000001\":1,\"000002\":1,", 34);
    hf_buffer_free(&b);
    hf_arena_reset(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_borrowing),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_first_error_sticks),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_every_byte_everywhere),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_walking),
        cmocka_unit_test(test_excerpts),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_many_names),
        cmocka_unit_test(test_many_names_inside),
        cmocka_unit_test(test_names_cannot_be_slow),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
