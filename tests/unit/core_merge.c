/* Stored forms: made, joined, read back, and refused. The algebra is tests/property/values.c. */
#include "base/bytes.h"
#include "core/merge.h"
#include "support/test.h"

static struct hf_plan plan;
static struct hf_item items[HF_MERGE_ITEMS_MAX + 1];
static char names[HF_MERGE_ITEMS_MAX + 1][HF_NAME_MAX];

static struct hf_bytes encode(struct hf_value value)
{
    struct hf_bytes out = { NULL, 0 };
    assert_int_equal(hf_merge_encode(&value, &plan, &out), HF_OK);
    return out;
}

static void refused(struct hf_value value)
{
    struct hf_bytes out;
    assert_int_equal(hf_merge_encode(&value, &plan, &out), HF_INVALID_REQUEST);
}

static struct hf_bytes join(enum hf_register_type type, struct hf_bytes a, struct hf_bytes b)
{
    struct hf_bytes out = { NULL, 0 };
    assert_int_equal(hf_merge_join(type, a, b, &plan, &out), HF_OK);
    return out;
}

static void is_bytes(struct hf_bytes got, const char *want, size_t size)
{
    assert_int_equal(got.size, size);
    assert_memory_equal(got.data, want, size);
}

#define IS(got, want) is_bytes(got, want, sizeof(want) - 1)
#define VALUE(...) ((struct hf_value){ __VA_ARGS__ })

static int setup(void **state)
{
    (void)state;
    hf_plan_reset(&plan);
    return 0;
}

static struct hf_item item(const char *name, uint64_t up, uint64_t down)
{
    return (struct hf_item){ hf_str(name), up, down };
}

static void forms_as_described(void **state)
{
    (void)state;
    IS(encode(VALUE(.type = HF_TYPE_MAX, .number = -2)), "\xfe\xff\xff\xff\xff\xff\xff\xff");
    IS(encode(VALUE(.type = HF_TYPE_MIN, .number = 258)), "\x02\x01\0\0\0\0\0\0");
    IS(encode(VALUE(.type = HF_TYPE_OR, .flag = true)), "\x01");
    IS(encode(VALUE(.type = HF_TYPE_OR, .flag = false)), "\x00");
    const struct hf_item three[] = { item("b", 1, 2), item("abc", 3, 4), item("ab", 5, 6) };
    IS(encode(VALUE(.type = HF_TYPE_UNION, .items = three, .item_count = 3)),
       "\x02\0ab\x03\0abc\x01\0b");
    IS(encode(VALUE(.type = HF_TYPE_VECTOR, .items = three, .item_count = 3)),
       "\x02\0ab\x05\0\0\0\0\0\0\0\x03\0abc\x03\0\0\0\0\0\0\0\x01\0b\x01\0\0\0\0\0\0\0");
    IS(encode(VALUE(.type = HF_TYPE_COUNTER, .items = three, .item_count = 1)),
       "\x01\0b\x01\0\0\0\0\0\0\0");
    IS(encode(VALUE(.type = HF_TYPE_UPDOWN, .items = three, .item_count = 1)),
       "\x01\0b\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0");
    IS(encode(
           VALUE(.type = HF_TYPE_LWW, .timestamp = 3, .node = hf_str("n1"), .bytes = hf_str("v"))),
       "\x03\0\0\0\0\0\0\0\x02\0n1v");
    IS(encode(VALUE(.type = HF_TYPE_LWW, .timestamp = -1, .node = hf_str("n"))),
       "\xff\xff\xff\xff\xff\xff\xff\xff\x01\0n");
    assert_int_equal(encode(VALUE(.type = HF_TYPE_UNION)).size, 0);
}

static void unknown_types_and_plain_are_refused(void **state)
{
    (void)state;
    struct hf_bytes out;
    const int types[] = { 0, HF_TYPE_PLAIN, 10, 99, -1 };
    for (size_t i = 0; i < 5; i++) {
        refused(VALUE(.type = (enum hf_register_type)types[i]));
        assert_int_equal(
            hf_merge_join((enum hf_register_type)types[i], hf_str("a"), hf_str("b"), &plan, &out),
            HF_INVALID_REQUEST);
    }
}

static void names_of_items(void **state)
{
    (void)state;
    static char text[HF_NAME_MAX + 1];
    memset(text, 'n', sizeof text);
    const enum hf_register_type types[] = { HF_TYPE_UNION, HF_TYPE_VECTOR, HF_TYPE_COUNTER,
                                            HF_TYPE_UPDOWN };
    for (size_t i = 0; i < 4; i++) {
        struct hf_item one = { .name = hf_mem(text, HF_NAME_MAX) };
        struct hf_value v = { .type = types[i], .items = &one, .item_count = 1 };
        encode(v);
        one.name.size++;
        refused(v);
        one.name = hf_mem(NULL, 0);
        refused(v);
        one.name = hf_str("\xff");
        refused(v);
        one.name = hf_mem("a\0", 2);
        refused(v);
        const struct hf_item twice[] = { item("a", 1, 1), item("b", 1, 1), item("a", 1, 1) };
        refused(VALUE(.type = types[i], .items = twice, .item_count = 3));
    }
    refused(VALUE(.type = HF_TYPE_LWW, .node = hf_mem(NULL, 0)));
    refused(VALUE(.type = HF_TYPE_LWW, .node = hf_mem(text, HF_NAME_MAX + 1)));
    encode(VALUE(.type = HF_TYPE_LWW, .node = hf_mem(text, HF_NAME_MAX)));
}

static void numbers_fit_int64(void **state)
{
    (void)state;
    const uint64_t top = INT64_MAX;
    struct hf_item two[] = { item("a", top, 0), item("b", 1, 0) };
    /* A vector's entries are not added up. */
    encode(VALUE(.type = HF_TYPE_VECTOR, .items = two, .item_count = 2));
    encode(VALUE(.type = HF_TYPE_COUNTER, .items = two, .item_count = 1));
    refused(VALUE(.type = HF_TYPE_COUNTER, .items = two, .item_count = 2));
    refused(VALUE(.type = HF_TYPE_UPDOWN, .items = two, .item_count = 2));
    two[0] = item("a", top - 1, top - 1);
    two[1] = item("b", 1, 1);
    encode(VALUE(.type = HF_TYPE_UPDOWN, .items = two, .item_count = 2));
    two[1].down = 2;
    refused(VALUE(.type = HF_TYPE_UPDOWN, .items = two, .item_count = 2));
    encode(VALUE(.type = HF_TYPE_COUNTER, .items = two, .item_count = 2)); /* has no down */
    two[0] = item("a", top + 1, 0);
    refused(VALUE(.type = HF_TYPE_VECTOR, .items = two, .item_count = 1));
    refused(VALUE(.type = HF_TYPE_COUNTER, .items = two, .item_count = 1));
    refused(VALUE(.type = HF_TYPE_UPDOWN, .items = two, .item_count = 1));
    encode(VALUE(.type = HF_TYPE_UNION, .items = two, .item_count = 1)); /* has no numbers */
    two[0] = item("a", 0, UINT64_MAX);
    encode(VALUE(.type = HF_TYPE_VECTOR, .items = two, .item_count = 1)); /* has no down */
    refused(VALUE(.type = HF_TYPE_UPDOWN, .items = two, .item_count = 1));
    /* A sum that wraps round to nothing is not nothing. */
    two[0] = item("a", 0, 1);
    two[1] = item("b", 0, UINT64_MAX);
    refused(VALUE(.type = HF_TYPE_UPDOWN, .items = two, .item_count = 2));
    two[0] = item("a", 1, 0);
    two[1] = item("b", UINT64_MAX, 0);
    refused(VALUE(.type = HF_TYPE_COUNTER, .items = two, .item_count = 2));
}

/* `count` items with names of `size` bytes, in falling order, all different. */
static struct hf_value many(enum hf_register_type type, size_t count, size_t size, int first)
{
    for (size_t i = 0; i < count; i++) {
        memset(names[i], 'x', size);
        int n = first + (int)(count - i);
        for (int digit = 3; digit >= 0; digit--, n /= 10)
            names[i][digit] = (char)('0' + n % 10);
        items[i] = (struct hf_item){ hf_mem(names[i], size), 1, 1 };
    }
    return (struct hf_value){ .type = type, .items = items, .item_count = count };
}

static void at_most_1024_items_and_65536_bytes(void **state)
{
    (void)state;
    encode(many(HF_TYPE_UNION, HF_MERGE_ITEMS_MAX, 4, 0));
    refused(many(HF_TYPE_UNION, HF_MERGE_ITEMS_MAX + 1, 4, 0));
    assert_int_equal(encode(many(HF_TYPE_UNION, HF_MERGE_ITEMS_MAX, 62, 0)).size, HF_VALUE_MAX);
    refused(many(HF_TYPE_UNION, HF_MERGE_ITEMS_MAX, 63, 0));
    assert_int_equal(encode(many(HF_TYPE_UPDOWN, HF_MERGE_ITEMS_MAX, 46, 0)).size, HF_VALUE_MAX);
    refused(many(HF_TYPE_UPDOWN, HF_MERGE_ITEMS_MAX, 47, 0));
    static char bytes[HF_VALUE_MAX];
    struct hf_value v = { .type = HF_TYPE_LWW,
                          .node = hf_str("node"),
                          .bytes = hf_mem(bytes, HF_VALUE_MAX - 14) };
    assert_int_equal(encode(v).size, HF_VALUE_MAX);
    v.bytes.size++;
    refused(v);
}

static void items_come_out_sorted(void **state)
{
    (void)state;
    struct hf_item got[HF_MERGE_ITEMS_MAX];
    struct hf_value out;
    for (size_t n = 0; n < 200; n++) {
        hf_plan_reset(&plan);
        struct hf_bytes form = encode(many(HF_TYPE_VECTOR, n, 5, 0));
        assert_true(hf_merge_decode(HF_TYPE_VECTOR, form, got, HF_MERGE_ITEMS_MAX, &out));
        assert_int_equal(out.item_count, n);
        for (size_t i = 0; i < n; i++) /* they were given in falling order */
            assert_true(hf_bytes_equal(got[i].name, items[n - 1 - i].name));
    }
}

static void joins(void **state)
{
    (void)state;
    struct hf_bytes a = encode(VALUE(.type = HF_TYPE_MAX, .number = -5));
    struct hf_bytes b = encode(VALUE(.type = HF_TYPE_MAX, .number = 3));
    assert_true(hf_bytes_equal(join(HF_TYPE_MAX, a, b), b));
    assert_true(hf_bytes_equal(join(HF_TYPE_MAX, b, a), b));
    assert_true(hf_bytes_equal(join(HF_TYPE_MIN, a, b), a));
    assert_true(hf_bytes_equal(join(HF_TYPE_MIN, b, a), a));
    assert_true(hf_bytes_equal(join(HF_TYPE_MIN, a, a), a));
    IS(join(HF_TYPE_OR, hf_mem("\0", 1), hf_mem("\1", 1)), "\1");
    IS(join(HF_TYPE_OR, hf_mem("\1", 1), hf_mem("\0", 1)), "\1");
    IS(join(HF_TYPE_OR, hf_mem("\0", 1), hf_mem("\0", 1)), "\0");
    const struct hf_item left[] = { item("a", 1, 9), item("c", 7, 1) };
    const struct hf_item right[] = { item("b", 2, 2), item("c", 3, 4) };
    const struct hf_item both[] = { item("a", 1, 9), item("b", 2, 2), item("c", 7, 4) };
    const enum hf_register_type types[] = { HF_TYPE_UNION, HF_TYPE_VECTOR, HF_TYPE_COUNTER,
                                            HF_TYPE_UPDOWN };
    for (size_t i = 0; i < 4; i++) {
        struct hf_bytes l = encode(VALUE(.type = types[i], .items = left, .item_count = 2));
        struct hf_bytes r = encode(VALUE(.type = types[i], .items = right, .item_count = 2));
        struct hf_bytes want = encode(VALUE(.type = types[i], .items = both, .item_count = 3));
        struct hf_bytes empty = { NULL, 0 };
        assert_true(hf_bytes_equal(join(types[i], l, r), want));
        assert_true(hf_bytes_equal(join(types[i], r, l), want));
        assert_true(hf_bytes_equal(join(types[i], l, empty), l));
        assert_true(hf_bytes_equal(join(types[i], empty, l), l));
        assert_int_equal(join(types[i], empty, empty).size, 0);
    }
}

static void last_writer_wins(void **state)
{
    (void)state;
    /* Each is above the one before: by time, then by node, then by bytes. */
    const struct hf_value rising[] = {
        { .type = HF_TYPE_LWW, .timestamp = -9, .node = hf_str("z"), .bytes = hf_str("z") },
        { .type = HF_TYPE_LWW, .timestamp = 4, .node = hf_str("a"), .bytes = hf_str("z") },
        { .type = HF_TYPE_LWW, .timestamp = 4, .node = hf_str("ab"), .bytes = hf_str("") },
        { .type = HF_TYPE_LWW, .timestamp = 4, .node = hf_str("b"), .bytes = hf_str("") },
        { .type = HF_TYPE_LWW, .timestamp = 4, .node = hf_str("b"), .bytes = hf_str("a") },
        { .type = HF_TYPE_LWW, .timestamp = 4, .node = hf_str("b"), .bytes = hf_str("aa") },
        { .type = HF_TYPE_LWW, .timestamp = 5, .node = hf_str("a"), .bytes = hf_str("") },
    };
    for (size_t i = 0; i < 7; i++) {
        for (size_t j = 0; j < 7; j++) {
            struct hf_bytes a = encode(rising[i]), b = encode(rising[j]);
            assert_true(hf_bytes_equal(join(HF_TYPE_LWW, a, b), i > j ? a : b));
        }
    }
}

static void a_join_past_a_limit_is_refused(void **state)
{
    (void)state;
    struct hf_bytes out;
    struct hf_bytes a = encode(many(HF_TYPE_UNION, HF_MERGE_ITEMS_MAX, 4, 0));
    struct hf_bytes b = encode(many(HF_TYPE_UNION, 1, 4, 5000));
    assert_int_equal(hf_merge_join(HF_TYPE_UNION, a, b, &plan, &out), HF_INVALID_REQUEST);
    assert_int_equal(hf_merge_join(HF_TYPE_UNION, a, a, &plan, &out), HF_OK);
    hf_plan_reset(&plan);
    a = encode(many(HF_TYPE_UNION, HF_MERGE_ITEMS_MAX, 62, 0)); /* 65536 bytes are just right */
    assert_int_equal(hf_merge_join(HF_TYPE_UNION, a, a, &plan, &out), HF_OK);
    assert_int_equal(out.size, HF_VALUE_MAX);
    a = encode(many(HF_TYPE_UNION, 65, 1000, 0));
    b = encode(many(HF_TYPE_UNION, 1, 1000, 5000));
    assert_int_equal(hf_merge_join(HF_TYPE_UNION, a, b, &plan, &out), HF_INVALID_REQUEST);
    const struct hf_item big = item("a", INT64_MAX, INT64_MAX), small = item("b", 1, 0),
                         down = item("b", 0, 1);
    const enum hf_register_type sums[] = { HF_TYPE_COUNTER, HF_TYPE_UPDOWN };
    for (size_t i = 0; i < 2; i++) {
        a = encode(VALUE(.type = sums[i], .items = &big, .item_count = 1));
        b = encode(VALUE(.type = sums[i], .items = &small, .item_count = 1));
        assert_int_equal(hf_merge_join(sums[i], a, b, &plan, &out), HF_INVALID_REQUEST);
        b = encode(VALUE(.type = sums[i], .items = &down, .item_count = 1));
        assert_int_equal(hf_merge_join(sums[i], a, b, &plan, &out),
                         sums[i] == HF_TYPE_UPDOWN ? HF_INVALID_REQUEST : HF_OK);
    }
}

static struct hf_value decoded;
static struct hf_item room[4];

/* From memory of exactly that size, so that the sanitizers see who reads past its end. */
static unsigned char *exact;

static bool decode(enum hf_register_type type, struct hf_bytes form)
{
    free(exact);
    exact = malloc(form.size);
    if (form.size > 0)
        memcpy(exact, form.data, form.size);
    memset(&decoded, 0xff, sizeof decoded);
    return hf_merge_decode(type, hf_mem(exact, form.size), room, 4, &decoded);
}

#define DECODE(type, text) decode(type, hf_mem(text, sizeof(text) - 1))

static void decoding_gives_back_what_was_encoded(void **state)
{
    (void)state;
    assert_true(DECODE(HF_TYPE_PLAIN, "any\0thing"));
    assert_int_equal(decoded.type, HF_TYPE_PLAIN);
    IS(decoded.bytes, "any\0thing");
    assert_true(decode(HF_TYPE_MAX, encode(VALUE(.type = HF_TYPE_MAX, .number = INT64_MIN))));
    assert_true(decoded.number == INT64_MIN);
    assert_true(decode(HF_TYPE_MIN, encode(VALUE(.type = HF_TYPE_MIN, .number = 7))));
    assert_true(decoded.number == 7 && decoded.item_count == 0);
    assert_true(DECODE(HF_TYPE_OR, "\1") && decoded.flag);
    assert_true(DECODE(HF_TYPE_OR, "\0") && !decoded.flag);
    assert_true(decode(HF_TYPE_LWW, encode(VALUE(.type = HF_TYPE_LWW, .timestamp = -4,
                                                 .node = hf_str("n"), .bytes = hf_str("bytes")))));
    assert_true(decoded.timestamp == -4);
    IS(decoded.node, "n");
    IS(decoded.bytes, "bytes");
    const struct hf_item two[] = { item("a", 5, 7), item("b", 1, 2) };
    assert_true(decode(HF_TYPE_UPDOWN,
                       encode(VALUE(.type = HF_TYPE_UPDOWN, .items = two, .item_count = 2))));
    assert_true(decoded.number == -3 && decoded.item_count == 2);
    assert_true(decoded.items[0].up == 5 && decoded.items[0].down == 7 && decoded.items[1].up == 1);
    IS(decoded.items[1].name, "b");
    assert_true(decode(HF_TYPE_COUNTER,
                       encode(VALUE(.type = HF_TYPE_COUNTER, .items = two, .item_count = 2))));
    assert_true(decoded.number == 6 && decoded.items[0].down == 0);
    assert_true(decode(HF_TYPE_VECTOR,
                       encode(VALUE(.type = HF_TYPE_VECTOR, .items = two, .item_count = 2))));
    assert_true(decoded.number == 0 && decoded.items[0].up == 5);
    assert_true(
        decode(HF_TYPE_UNION, encode(VALUE(.type = HF_TYPE_UNION, .items = two, .item_count = 2))));
    assert_true(decoded.item_count == 2 && decoded.items[0].up == 0);
    assert_true(decode(HF_TYPE_UNION, hf_mem(NULL, 0)) && decoded.item_count == 0);
}

#define N8 "\0\0\0\0\0\0\0"

static void decoding_refuses_what_is_not_a_form(void **state)
{
    (void)state;
    assert_false(DECODE((enum hf_register_type)0, ""));
    assert_false(DECODE((enum hf_register_type)10, ""));
    assert_false(DECODE((enum hf_register_type) - 1, ""));
    assert_false(DECODE(HF_TYPE_MAX, "\0\0\0\0\0\0\0"));
    assert_false(DECODE(HF_TYPE_MIN, "\0\0\0\0\0\0\0\0\0"));
    assert_false(DECODE(HF_TYPE_OR, ""));
    assert_false(DECODE(HF_TYPE_OR, "\1\1"));
    assert_false(DECODE(HF_TYPE_OR, "\2"));
    assert_false(DECODE(HF_TYPE_LWW, "\0" N8 "\1")); /* cut in the length */
    assert_false(DECODE(HF_TYPE_LWW, "\0" N8 "\2\0n"));
    assert_false(DECODE(HF_TYPE_LWW, "\0" N8 "\0\0v")); /* no node */
    assert_true(DECODE(HF_TYPE_LWW, "\0" N8 "\1\0n"));
    assert_false(DECODE(HF_TYPE_UNION, "\1"));
    assert_false(DECODE(HF_TYPE_UNION, "\2\0a"));
    assert_false(DECODE(HF_TYPE_UNION, "\0\0"));         /* an empty name */
    assert_false(DECODE(HF_TYPE_UNION, "\1\0b\1\0a"));   /* not sorted */
    assert_false(DECODE(HF_TYPE_UNION, "\1\0a\1\0a"));   /* twice */
    assert_false(DECODE(HF_TYPE_UNION, "\1\0a\1\0b\1")); /* rubbish at the end */
    assert_true(DECODE(HF_TYPE_UNION, "\1\0a\1\0b\1\0c\1\0d"));
    assert_false(
        DECODE(HF_TYPE_UNION, "\1\0a\1\0b\1\0c\1\0d\1\0e")); /* more than there is room for */
    assert_false(DECODE(HF_TYPE_VECTOR, "\1\0a\1"
                                        "\0\0\0\0\0\0"));
    assert_false(DECODE(HF_TYPE_VECTOR, "\1\0a" N8 "\x80")); /* above INT64_MAX */
    assert_false(DECODE(HF_TYPE_COUNTER, "\1\0a\xff\xff\xff\xff\xff\xff\xff\x7f\1\0b\1" N8));
    assert_true(DECODE(HF_TYPE_VECTOR, "\1\0a\xff\xff\xff\xff\xff\xff\xff\x7f\1\0b\1" N8));
    assert_false(DECODE(HF_TYPE_UPDOWN, "\1\0a\1" N8));
}

static void counting_items(void **state)
{
    (void)state;
    assert_int_equal(hf_merge_count(HF_TYPE_UNION, hf_mem("\1\0a\1\0b", 6)), 2);
    assert_int_equal(hf_merge_count(HF_TYPE_UNION, hf_mem(NULL, 0)), 0);
    assert_int_equal(hf_merge_count(HF_TYPE_MAX, hf_mem("\0" N8, 8)), 0);
    assert_int_equal(hf_merge_count(HF_TYPE_PLAIN, hf_str("abc")), 0);
    assert_int_equal(hf_merge_count((enum hf_register_type)77, hf_str("abc")), 0);
    struct hf_bytes form = encode(many(HF_TYPE_UPDOWN, 300, 8, 0));
    assert_int_equal(hf_merge_count(HF_TYPE_UPDOWN, form), 300);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    plan.scratch = malloc(HF_PLAN_SCRATCH);
    const struct CMUnitTest tests[] = {
        TEST(forms_as_described),
        TEST(unknown_types_and_plain_are_refused),
        TEST(names_of_items),
        TEST(numbers_fit_int64),
        TEST(at_most_1024_items_and_65536_bytes),
        TEST(items_come_out_sorted),
        TEST(joins),
        TEST(last_writer_wins),
        TEST(a_join_past_a_limit_is_refused),
        TEST(decoding_gives_back_what_was_encoded),
        TEST(decoding_refuses_what_is_not_a_form),
        TEST(counting_items),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(plan.scratch);
    free(exact);
    return failed;
}
