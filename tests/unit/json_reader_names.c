/* The JSON reader: a name comes once in an object, however it is written and however many there
 * are. */
#include "support/test.h"
#include "json/canonical.h"

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
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_many_names),
        cmocka_unit_test(test_many_names_inside),
        cmocka_unit_test(test_names_cannot_be_slow),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
