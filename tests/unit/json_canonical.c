/* The canonical form of JSON: every way to write a value becomes one text (RFC 8785). The expected
 * texts are those that JavaScript prints for the same values. */
#include "support/test.h"
#include "json/canonical.h"

#include <locale.h>

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
        cmocka_unit_test(one_number_has_one_text),
        cmocka_unit_test(fractions_are_the_nearest_double),
        cmocka_unit_test(integers_keep_their_digits),
        cmocka_unit_test(members_are_in_utf16_order),
        cmocka_unit_test(strings_have_the_shortest_escapes),
        cmocka_unit_test(a_locale_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
