/* The JSON writer: commas, escapes, numbers, and bytes that are not text. */
#include "support/test.h"

#include "json/canonical.h"
#include "json/writer.h"

#include <locale.h>
#include <stddef.h>
#include <stdint.h>

struct fixture {
    struct hf_buffer out;
    struct hf_json j;
};

static int begin(void **state)
{
    static struct fixture f;
    f = (struct fixture){ .j = { .out = &f.out } };
    *state = &f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    hf_buffer_free(&f->out);
    return 0;
}

static void expect(struct fixture *f, const char *text)
{
    assert_string_equal(hf_buffer_text(&f->out), text);
    hf_buffer_reset(&f->out);
    f->j.comma = false;
}

static void test_commas(void **state)
{
    struct fixture *f = *state;
    struct hf_json *j = &f->j;
    hf_json_object(j);
    hf_json_object_end(j);
    expect(f, "{}");
    hf_json_array(j);
    hf_json_array(j);
    hf_json_array_end(j);
    hf_json_object(j);
    hf_json_object_end(j);
    hf_json_null(j);
    hf_json_array_end(j);
    expect(f, "[[],{},null]");
    hf_json_object(j);
    hf_json_name(j, "a");
    hf_json_array(j);
    hf_json_uint(j, 1);
    hf_json_uint(j, 2);
    hf_json_array_end(j);
    hf_json_name(j, "b");
    hf_json_object(j);
    hf_json_name_bytes(j, hf_str("c\"d"));
    hf_json_bool(j, true);
    hf_json_object_end(j);
    hf_json_name(j, "e");
    hf_json_bool(j, false);
    hf_json_object_end(j);
    expect(f, "{\"a\":[1,2],\"b\":{\"c\\\"d\":true},\"e\":false}");
}

static void test_numbers(void **state)
{
    struct fixture *f = *state;
    struct hf_json *j = &f->j;
    hf_json_array(j);
    hf_json_uint(j, 0);
    hf_json_uint(j, UINT64_MAX);
    hf_json_int(j, INT64_MIN);
    hf_json_int(j, -1);
    hf_json_int(j, INT64_MAX);
    hf_json_array_end(j);
    expect(f, "[0,18446744073709551615,-9223372036854775808,-1,9223372036854775807]");
}

static void test_times(void **state)
{
    struct fixture *f = *state;
    struct hf_json *j = &f->j;
    hf_json_array(j);
    hf_json_time(j, 0);
    hf_json_time(j, INT64_C(1794778797123));
    hf_json_duration(j, 900000);
    hf_json_duration(j, 1001);
    hf_json_array_end(j);
    expect(f, "[\"1970-01-01T00:00:00.000Z\",\"2026-11-15T21:39:57.123Z\",\"15m\",\"1001ms\"]");
}

struct pair {
    const char *in, *out;
};

#define FFFD "\xef\xbf\xbd"

/* Text, and text that is broken in each way that UTF-8 can be. */
static const struct pair strings[] = {
    { "", "\"\"" },
    { "plain", "\"plain\"" },
    { "a\"b\\c/d", "\"a\\\"b\\\\c/d\"" },
    { "\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"" },
    { "\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\"" },
    { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x8e", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x8e\"" },
    { "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"" },
    { "a\x80z", "\"a" FFFD "z\"" }, /* a tail without a head */
    { "a\xffz", "\"a" FFFD "z\"" }, /* never a byte of UTF-8 */
    { "\xc3", "\"" FFFD "\"" },     /* cut short */
    { "\xe2\x82", "\"" FFFD "\"" }, /* cut short, one replacement for both */
    { "\xf0\x9f\x90", "\"" FFFD "\"" },
    { "\xe2\x82z", "\"" FFFD "z\"" },
    { "\xe2z\x82", "\"" FFFD "z" FFFD "\"" },
    { "\xc0\xaf", "\"" FFFD FFFD "\"" }, /* overlong */
    { "\xe0\x80\xaf", "\"" FFFD FFFD FFFD "\"" },
    { "\xf0\x80\x80\xaf", "\"" FFFD FFFD FFFD FFFD "\"" },
    { "\xed\xa0\x80", "\"" FFFD FFFD FFFD "\"" },          /* a surrogate */
    { "\xf4\x90\x80\x80", "\"" FFFD FFFD FFFD FFFD "\"" }, /* above U+10FFFF */
    { "\xc3\"", "\"" FFFD "\\\"\"" },
};

static void test_strings(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        hf_json_text(&f->j, strings[i].in);
        expect(f, strings[i].out);
    }
    hf_json_bytes(&f->j, hf_mem("a\0b", 3));
    expect(f, "\"a\\u0000b\"");
    hf_json_bytes(&f->j, hf_mem(NULL, 0));
    expect(f, "\"\"");
    hf_json_joined(&f->j, "urn:", "x");
    expect(f, "\"urn:x\"");
}

static const struct pair opaque[] = {
    { "text", "\"text\"" },
    { "\xff", "{\"base64\":\"/w==\"}" },
    { "\xff\x01", "{\"base64\":\"/wE=\"}" },
    { "\xff\x01\x02", "{\"base64\":\"/wEC\"}" },
    { "\xff\x01\x02\xfb", "{\"base64\":\"/wEC+w==\"}" },
};

static void test_opaque(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof opaque / sizeof *opaque; i++) {
        hf_json_opaque(&f->j, hf_str(opaque[i].in));
        expect(f, opaque[i].out);
    }
    hf_json_hex(&f->j, "sha256:", hf_mem("\x00\x9f\xff", 3));
    expect(f, "\"sha256:009fff\"");
}

/* Every value up to three bytes long gives valid UTF-8, and a string that JSON allows. */
static void test_all_short_strings(void **state)
{
    struct fixture *f = *state;
    for (uint32_t v = 0; v < 1u << 24; v += v < 1u << 16 ? 1 : 251) {
        unsigned char in[3] = { (unsigned char)(v >> 16), (unsigned char)(v >> 8),
                                (unsigned char)v };
        hf_json_bytes(&f->j, hf_mem(in, 3));
        assert_true(f->out.data[0] == '"' && f->out.data[f->out.size - 1] == '"');
        for (size_t i = 0; i < f->out.size; i++)
            assert_true(f->out.data[i] >= 0x20);
        hf_json_opaque(&f->j, hf_mem(f->out.data, f->out.size));
        assert_null(strstr(hf_buffer_text(&f->out), "base64"));
        hf_buffer_reset(&f->out);
        f->j.comma = false;
    }
}

/* The canonical form of JSON: every way to write a value becomes one text (RFC 8785). The expected
 * texts are those that JavaScript prints for the same values. */

static void becomes(const char *text, const char *wanted)
{
    struct hf_arena arena = { 0 };
    struct hf_reader r = { .text = hf_str(text), .arena = &arena };
    struct hf_bytes out;
    assert_true(hf_reader_canonical(&r, &out) && hf_reader_end(&r));
    assert_int_equal(out.size, strlen(wanted));
    assert_memory_equal(out.data, wanted, out.size);
    hf_arena_free(&arena);
}

static void one_number_has_one_text(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "1", "1" },
        { "1.0", "1" },
        { "10e-1", "1" },
        { "0.1E1", "1" },
        { "-1.50", "-1.5" },
        { "0", "0" },
        { "-0", "0" },
        { "0.000", "0" },
        { "-0e99999999999999999999", "0" },
        { "4.50", "4.5" },
        { "2e-3", "0.002" },
        { "0.000001", "0.000001" },
        { "0.0000001", "1e-7" },
        { "0.000000000000000000000000001", "1e-27" },
        { "1E30", "1e+30" },
        { "1e21", "1e+21" },
        { "100e19", "1e+21" },
        { "1e20", "100000000000000000000" },
        { "123.456e18", "123456000000000000000" },
        { "9.999999999999997e22", "9.999999999999997e+22" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        becomes(pairs[i][0], pairs[i][1]);
}

static void fractions_are_the_nearest_double(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "333333333.33333329", "333333333.3333333" },
        { "1424953923781206.25", "1424953923781206.2" },
        { "0.1000000000000000055511151231257827", "0.1" },
        { "5e-324", "5e-324" },
        { "3e-324", "5e-324" },
        { "2e-324", "0" },
        { "-1e-400", "0" },
        { "1e-99999999999999999999", "1e-99999999999999999999" }, /* absurd: as it is written */
        { "2.2250738585072014e-308", "2.2250738585072014e-308" },
        { "0.30000000000000004", "0.30000000000000004" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        becomes(pairs[i][0], pairs[i][1]);
    /* Half way between two doubles, and a digit beyond: 2^53 + 1 + 10^-900. */
    char text[1024] = "9007199254740993.";
    memset(text + 17, '0', 899);
    strcpy(text + 17 + 899, "1");
    becomes(text, "9007199254740994");
    strcpy(text + 17 + 899, "0");
    becomes(text, "9007199254740993"); /* an integer: all its digits */
}

static void integers_keep_their_digits(void **state)
{
    (void)state;
    becomes("9007199254740993", "9007199254740993");
    becomes("1234567890123456789", "1234567890123456789");
    becomes("1234567890123456789012345", "1.234567890123456789012345e+24");
    becomes("1e400", "1e+400");
    becomes("1797693134862315708145274237317043567981000",
            "1.797693134862315708145274237317043567981e+42");
}

static void members_are_in_utf16_order(void **state)
{
    (void)state;
    becomes("{ \"b\" : 1.0, \"a\" : [ ], \"\" : { \"z\":0, \"y\":0 } }",
            "{\"\":{\"y\":0,\"z\":0},\"a\":[],\"b\":1}");
    /* U+1F600 is D83D DE00 in UTF-16, before U+FB33 and U+E000, and after U+20AC. */
    becomes("{\"\xef\xac\xb3\":1,\"\xf0\x9f\x98\x80\":2,\"\xe2\x82\xac\":3,\"\\uE000\":4,"
            "\"\\u0080\":5}",
            "{\"\xc2\x80\":5,\"\xe2\x82\xac\":3,\"\xf0\x9f\x98\x80\":2,\"\xee\x80\x80\":4,"
            "\"\xef\xac\xb3\":1}");
}

static void strings_have_the_shortest_escapes(void **state)
{
    (void)state;
    becomes("\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\\u007f\"",
            "\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\x7f\"");
}

static void a_locale_changes_nothing(void **state)
{
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "de_DE"))
        skip(); /* the machine has no locale with another decimal point */
    becomes("[0.1,1.5e-9,333333333.33333329]", "[0.1,1.5e-9,333333333.3333333]");
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commas, begin, end),
        cmocka_unit_test_setup_teardown(test_numbers, begin, end),
        cmocka_unit_test_setup_teardown(test_times, begin, end),
        cmocka_unit_test_setup_teardown(test_strings, begin, end),
        cmocka_unit_test_setup_teardown(test_opaque, begin, end),
        cmocka_unit_test_setup_teardown(test_all_short_strings, begin, end),
        cmocka_unit_test(one_number_has_one_text),
        cmocka_unit_test(fractions_are_the_nearest_double),
        cmocka_unit_test(integers_keep_their_digits),
        cmocka_unit_test(members_are_in_utf16_order),
        cmocka_unit_test(strings_have_the_shortest_escapes),
        cmocka_unit_test(a_locale_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
