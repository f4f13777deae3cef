/* The JSON writer: commas, escapes, numbers, and bytes that are not text. */
#include "json/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commas, begin, end),
        cmocka_unit_test_setup_teardown(test_numbers, begin, end),
        cmocka_unit_test_setup_teardown(test_times, begin, end),
        cmocka_unit_test_setup_teardown(test_strings, begin, end),
        cmocka_unit_test_setup_teardown(test_opaque, begin, end),
        cmocka_unit_test_setup_teardown(test_all_short_strings, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
