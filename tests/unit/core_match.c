/* The canonical form of an identity. */
#include "base/hash.h"
#include "core/match.h"
#include "support/test.h"

#include <utf8proc.h>

static struct hf_plan plan;
static struct hf_bytes form;

#define STEPS(...) { __VA_ARGS__ }, sizeof((enum hf_match[]){ __VA_ARGS__ }) / sizeof(enum hf_match)

static enum hf_status apply_bytes(struct hf_bytes identity, uint32_t count,
                                  const enum hf_match *match)
{
    struct hf_guard guard = { .match_count = count };
    memcpy(guard.match, match, count * sizeof *match);
    hf_plan_reset(&plan);
    form = hf_mem(NULL, 0);
    return hf_match_apply(&guard, identity, &plan, &form);
}

#define APPLY(identity, ...)                                                                \
    apply_bytes(identity, sizeof((enum hf_match[]){ __VA_ARGS__ }) / sizeof(enum hf_match), \
                (const enum hf_match[]){ __VA_ARGS__ })

#define BECOMES(identity, want, ...)                                   \
    do {                                                               \
        assert_int_equal(APPLY(hf_str(identity), __VA_ARGS__), HF_OK); \
        assert_int_equal(form.size, strlen(want));                     \
        assert_memory_equal(form.data, want, form.size);               \
    } while (0)

#define E HF_MATCH_EXACT
#define T HF_MATCH_TRIM
#define C HF_MATCH_CASEFOLD
#define N HF_MATCH_NORMALIZE
#define H HF_MATCH_HASH

static void rules_a_guard_may_have(void **state)
{
    (void)state;
    const struct {
        enum hf_match match[HF_MATCH_MAX];
        uint32_t count;
        bool valid;
    } rules[] = {
        { { 0 }, 0, true },          { STEPS(E), true },        { STEPS(T, C, N, H), true },
        { STEPS(E, T, C, N), true }, { STEPS(H), true },        { STEPS(N, T), true },
        { STEPS(H, T), false },      { STEPS(T, H, C), false }, { STEPS(T, T), false },
        { STEPS(E, T, E), false },   { STEPS(0), false },       { STEPS(6), false },
        { STEPS(T, 99), false },     { STEPS(-1), false },      { STEPS(H, H), false },
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        assert_int_equal(hf_match_valid(rules[i].match, rules[i].count), rules[i].valid);
    const enum hf_match five[5] = { E, T, C, N, H };
    assert_false(hf_match_valid(five, 5));
    assert_true(hf_match_valid(NULL, 0));
}

static void no_steps_and_exact_leave_the_bytes_alone(void **state)
{
    (void)state;
    struct hf_guard none = { .match_count = 0 };
    struct hf_bytes raw = hf_mem(" A\xff\0 ", 5); /* not UTF-8, and none is needed */
    hf_plan_reset(&plan);
    assert_int_equal(hf_match_apply(&none, raw, &plan, &form), HF_OK);
    assert_ptr_equal(form.data, raw.data);
    assert_int_equal(form.size, 5);
    assert_int_equal(APPLY(raw, E), HF_OK);
    assert_int_equal(form.size, 5);
    assert_memory_equal(form.data, raw.data, 5);
    assert_int_equal(plan.scratch_used, 0);
}

static void lengths(void **state)
{
    (void)state;
    static char text[HF_IDENTITY_MAX + 1];
    memset(text, 'A', sizeof text);
    const enum hf_match all[] = { E, T, C, N, H };
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(APPLY(hf_mem(NULL, 0), all[i]), HF_INVALID_REQUEST);
        assert_int_equal(APPLY(hf_mem(text, 1), all[i]), HF_OK);
        assert_int_equal(APPLY(hf_mem(text, HF_IDENTITY_MAX), all[i]), HF_OK);
        assert_int_equal(APPLY(hf_mem(text, HF_IDENTITY_MAX + 1), all[i]), HF_INVALID_REQUEST);
    }
}

static void a_form_may_not_outgrow_the_limit(void **state)
{
    (void)state;
    static char text[HF_IDENTITY_MAX];
    size_t size = 0;
    while (size + 3 <=
           sizeof text) { /* U+FB03, the ligature ffi: three bytes, folds to three letters */
        memcpy(text + size, "\xef\xac\x83", 3);
        size += 3;
    }
    assert_int_equal(APPLY(hf_mem(text, size), C), HF_OK);
    assert_int_equal(form.size, size);
    size = 0;
    while (size + 2 <= sizeof text) { /* U+0149: two bytes, folds to U+02BC n: three */
        memcpy(text + size, "\xc5\x89", 2);
        size += 2;
    }
    assert_int_equal(APPLY(hf_mem(text, size), C), HF_INVALID_REQUEST);
    assert_int_equal(APPLY(hf_mem(text, size), C, H), HF_OK); /* hashed, it is short again */
    assert_int_equal(form.size, HF_DIGEST_SIZE);
    assert_int_equal(APPLY(hf_mem(text, 682), C), HF_OK); /* 341 of them: 1023 bytes */
    assert_int_equal(form.size, 1023);
    assert_int_equal(APPLY(hf_mem(text, 684), C), HF_INVALID_REQUEST);
}

static void bytes_that_are_not_text(void **state)
{
    (void)state;
    struct hf_bytes raw = hf_str("caf\xe9");
    assert_int_equal(APPLY(raw, T), HF_INVALID_REQUEST);
    assert_int_equal(APPLY(raw, C), HF_INVALID_REQUEST);
    assert_int_equal(APPLY(raw, N), HF_INVALID_REQUEST);
    assert_int_equal(APPLY(raw, E, T), HF_INVALID_REQUEST);
    assert_int_equal(APPLY(raw, H), HF_OK);
}

static void trim(void **state)
{
    (void)state;
    BECOMES("  buy milk\t\r\n", "buy milk", T);
    BECOMES("a", "a", T);
    BECOMES(" \xe2\x82\xac ", "\xe2\x82\xac", T);
    BECOMES("a  b", "a  b", T);
    assert_int_equal(APPLY(hf_str(" \t\xe3\x80\x80"), T), HF_INVALID_REQUEST); /* nothing is left */
    assert_int_equal(APPLY(hf_str(" "), T, H), HF_INVALID_REQUEST);
    assert_int_equal(APPLY(hf_mem("\0 ", 2), T), HF_OK); /* NUL is not white space */
    assert_int_equal(form.size, 1);
}

/* Every code point with White_Space and its neighbours, at both ends. */
static void white_space_is_unicodes(void **state)
{
    (void)state;
    static const int32_t spaces[] = { 0x09,   0x0a,   0x0b,   0x0c,   0x0d,   0x20,   0x85,
                                      0xa0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004,
                                      0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028,
                                      0x2029, 0x202f, 0x205f, 0x3000 };
    size_t next = 0;
    for (int32_t c = 0; c <= 0xffff; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        unsigned char t[8];
        size_t n = 0;
        if (c < 0x80) {
            t[n++] = (unsigned char)c;
        } else if (c < 0x800) {
            t[n++] = (unsigned char)(0xc0 | c >> 6);
            t[n++] = (unsigned char)(0x80 | (c & 63));
        } else {
            t[n++] = (unsigned char)(0xe0 | c >> 12);
            t[n++] = (unsigned char)(0x80 | (c >> 6 & 63));
            t[n++] = (unsigned char)(0x80 | (c & 63));
        }
        bool space = next < sizeof spaces / sizeof *spaces && spaces[next] == c;
        next += space;
        t[n++] = 'x';
        memcpy(t + n, t, n - 1);
        assert_int_equal(APPLY(hf_mem(t, 2 * n - 1), T), HF_OK);
        assert_int_equal(form.size, space ? 1 : 2 * n - 1);
    }
    assert_int_equal(next, sizeof spaces / sizeof *spaces);
}

static void casefold(void **state)
{
    (void)state;
    BECOMES("Mail@Example.ORG[@`{Zz09", "mail@example.org[@`{zz09", C);
    BECOMES("Stra\xc3\x9f"
            "e",
            "strasse", C); /* full folding: sharp s to ss */
    BECOMES("\xce\xa3\xcf\x82\xcf\x83", "\xcf\x83\xcf\x83\xcf\x83", C); /* all three sigmas */
    BECOMES("E\xcc\x81", "\xc3\xa9", C);                                /* composed */
    BECOMES("\xc3\x89", "\xc3\xa9", C);
    BECOMES("\xc3\x84  B", "\xc3\xa4  b", C); /* white space stays */
    /* Alpha, iota subscript, acute: in either order of the marks, or as one character (D145). */
    BECOMES("\xce\x91\xcd\x85\xcc\x81", "\xce\xac\xce\xb9", C);
    BECOMES("\xce\x91\xcc\x81\xcd\x85", "\xce\xac\xce\xb9", C);
    BECOMES("\xe1\xbe\xb4", "\xce\xac\xce\xb9", C);
    assert_int_equal(APPLY(hf_mem("A\0B", 3), C), HF_OK);
    assert_memory_equal(form.data, "a\0b", 3);
}

static void normalize(void **state)
{
    (void)state;
    BECOMES("nice \t\n post", "nice post", N);
    BECOMES("  a  ", " a ", N); /* the ends collapse; removing them is trim's job */
    BECOMES("  a  ", "a", N, T);
    BECOMES("e\xcc\x81", "\xc3\xa9", N);
    BECOMES("a\xc2\xa0\xe3\x80\x80"
            "b",
            "a b", N);
    BECOMES("\xe2\x84\xab", "\xc3\x85", N);     /* the Angstrom sign is A with ring */
    BECOMES("\xef\xac\x81", "\xef\xac\x81", N); /* NFC, not NFKC: the ligature stays */
    BECOMES("\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc",
            N); /* a composition that Unicode excludes */
    BECOMES("\xe1\x84\x80\xe1\x85\xa1", "\xea\xb0\x80", N);  /* Hangul */
    BECOMES("a\xcc\x81\xcc\xa3", "\xe1\xba\xa1\xcc\x81", N); /* marks are put in order first */
    BECOMES("Case STAYS", "Case STAYS", N);
}

static void hash(void **state)
{
    (void)state;
    uint8_t want[HF_DIGEST_SIZE];
    hf_sha256_of("mail@example.org", 16, want);
    assert_int_equal(APPLY(hf_str(" Mail@Example.org\n"), T, C, H), HF_OK);
    assert_int_equal(form.size, HF_DIGEST_SIZE);
    assert_memory_equal(form.data, want, HF_DIGEST_SIZE);
    hf_sha256_of("\xff", 1, want);
    assert_int_equal(APPLY(hf_mem("\xff", 1), H), HF_OK);
    assert_memory_equal(form.data, want, HF_DIGEST_SIZE);
}

static void steps_run_in_order(void **state)
{
    (void)state;
    /* NFC turns U+2000 into U+2002, both white space; trimming before or after is the same here,
     * and all four together are one form. */
    BECOMES("\xe2\x80\x80 Stra\xc3\x9f"
            "e  7 ",
            "strasse 7", T, N, C);
    BECOMES("\xe2\x80\x80 Stra\xc3\x9f"
            "e  7 ",
            "strasse 7", C, N, T);
    BECOMES("\xe2\x80\x80 Stra\xc3\x9f"
            "e  7 ",
            "strasse 7", E, C, N, T);
}

/* Marks of many classes, in falling or rising order of their classes; as UTF-8. */
static struct hf_bytes marks(bool falling, unsigned char *out, size_t size)
{
    static int32_t found[1024];
    size_t count = 0, at = 0;
    for (unsigned class = 1; class < 240 && count < 450; class ++)
        for (int32_t c = 0x300; c < 0x700 && count < 450; c++)
            if (utf8proc_get_property(c)->combining_class == (int)class)
                found[count++] = c;
    assert_true(count > 100);
    for (size_t i = 0; at + 2 <= size && i < 450; i++) {
        size_t k = i * count / 450;
        at += (size_t)utf8proc_encode_char(found[falling ? count - 1 - k : k], out + at);
    }
    return hf_mem(out, at);
}

/* The forms are those that utf8proc itself makes, whatever order the marks come in. */
static void marks_are_put_in_order_as_utf8proc_does(void **state)
{
    (void)state;
    static unsigned char text[HF_IDENTITY_MAX];
    static const int32_t some[] = { 'a',   'e',   0x344,  0x345,  0x301,  0x316,
                                    0x327, 0xf73, 0xf81,  0x1e14, 0x1f82, 0x3099,
                                    0x5b0, 0x64b, 0xac01, 0x11a8, 0x1161, 0x1d15e };
    uint64_t random = 7;
    for (int round = 0; round < 20000; round++) {
        size_t at = 0, length = 1 + (size_t)test_below(&random, 20);
        for (size_t i = 0; i < length; i++)
            at += (size_t)utf8proc_encode_char(
                some[test_below(&random, sizeof some / sizeof *some)], text + at);
        utf8proc_uint8_t *want;
        utf8proc_ssize_t size =
            utf8proc_map(text, (utf8proc_ssize_t)at, &want, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        assert_true(size > 0);
        assert_int_equal(APPLY(hf_mem(text, at), N), HF_OK);
        assert_int_equal(form.size, (size_t)size);
        assert_memory_equal(form.data, want, form.size);
        free(want);
    }
}

/* An identity of nothing but marks in the worst order costs about what it costs in the best: a
 * request cannot be made expensive. */
static void no_order_of_marks_is_expensive(void **state)
{
    (void)state;
    static unsigned char text[2][900];
    int64_t spent[2] = { 0, 0 };
    for (int round = 0; round < 50; round++)
        for (int falling = 0; falling < 2; falling++) {
            struct hf_bytes identity = marks(falling, text[falling], sizeof text[falling]);
            int64_t begun = test_cpu_ns();
            (void)!APPLY(identity, C, N);
            spent[falling] += test_cpu_ns() - begun;
        }
    printf("%lld us in order, %lld us the other way round\n", (long long)spent[0] / 50000,
           (long long)spent[1] / 50000);
    assert_true(spent[1] < 8 * spent[0]);
}

int main(void)
{
    plan.scratch = malloc(HF_PLAN_SCRATCH);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_a_guard_may_have),
        cmocka_unit_test(no_steps_and_exact_leave_the_bytes_alone),
        cmocka_unit_test(lengths),
        cmocka_unit_test(a_form_may_not_outgrow_the_limit),
        cmocka_unit_test(bytes_that_are_not_text),
        cmocka_unit_test(trim),
        cmocka_unit_test(white_space_is_unicodes),
        cmocka_unit_test(casefold),
        cmocka_unit_test(normalize),
        cmocka_unit_test(hash),
        cmocka_unit_test(steps_run_in_order),
        cmocka_unit_test(marks_are_put_in_order_as_utf8proc_does),
        cmocka_unit_test(no_order_of_marks_is_expensive),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(plan.scratch);
    return failed;
}
