/* Canonical forms: each step is idempotent, and identities that Unicode holds for the same get the
 * same form. utf8proc's own maps are the witness here. */
#include "core/match.h"
#include "support/test.h"

#include <utf8proc.h>

#define ROUNDS 20000

static struct hf_plan plan;
static uint64_t seed;

/* Code points that meet the rules' edges more often than chance would. */
static int32_t any_point(void)
{
    static const int32_t special[] = { ' ',    '\t',   '\n',   0xa0,   0x2000, 0x3000,  0x85,
                                       'A',    'z',    0xdf,   0x130,  0x131,  0x149,   0x1f0,
                                       0x345,  0x300,  0x301,  0x308,  0x323,  0x327,   0x390,
                                       0x3a3,  0x3c2,  0x1e9e, 0x1fb7, 0x1f82, 0x212b,  0x958,
                                       0x1100, 0x1161, 0x11a8, 0xac00, 0xfb03, 0x10400, 0x1d15e,
                                       0x587,  0xfffd, 0xffff };
    if (test_below(&seed, 4))
        return special[test_below(&seed, sizeof special / sizeof *special)];
    int32_t c = (int32_t)test_below(&seed, test_below(&seed, 2) ? 0x3000 : 0x110000);
    return c >= 0xd800 && c < 0xe000 ? 'x' : c;
}

static size_t any_text(unsigned char *out)
{
    size_t size = 0;
    for (uint64_t n = 1 + test_below(&seed, 10); n > 0; n--)
        size += (size_t)utf8proc_encode_char(any_point(), out + size);
    return size;
}

/* The form under one step, copied out; 0 if there is none. */
static size_t form_of(enum hf_match step, const unsigned char *text, size_t size,
                      unsigned char *out)
{
    struct hf_guard guard = { .match = { step }, .match_count = 1 };
    struct hf_bytes form;
    hf_plan_reset(&plan);
    if (hf_match_apply(&guard, hf_mem(text, size), &plan, &form) != HF_OK)
        return 0;
    memcpy(out, form.data, form.size);
    return form.size;
}

static void same_form(enum hf_match step, const unsigned char *a, size_t a_size,
                      const unsigned char *b, size_t b_size)
{
    unsigned char x[HF_IDENTITY_MAX], y[HF_IDENTITY_MAX];
    size_t n = form_of(step, a, a_size, x), m = form_of(step, b, b_size, y);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
}

static void steps_are_idempotent(void **state)
{
    (void)state;
    static const enum hf_match steps[] = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD, HF_MATCH_NORMALIZE };
    unsigned char text[64], once[HF_IDENTITY_MAX], twice[HF_IDENTITY_MAX];
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = any_text(text);
        for (int i = 0; i < 3; i++) {
            size_t n = form_of(steps[i], text, size, once);
            if (n == 0)
                continue; /* white space alone, trimmed */
            size_t m = form_of(steps[i], once, n, twice);
            assert_int_equal(n, m);
            assert_memory_equal(once, twice, n);
        }
    }
}

static void mapped(const unsigned char *text, size_t size, int options, enum hf_match step)
{
    utf8proc_uint8_t *other;
    utf8proc_ssize_t n =
        utf8proc_map(text, (utf8proc_ssize_t)size, &other, (utf8proc_option_t)options);
    assert_true(n > 0);
    same_form(step, text, size, other, (size_t)n);
    free(other);
}

static void equivalent_texts_have_one_form(void **state)
{
    (void)state;
    unsigned char text[64];
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = any_text(text);
        mapped(text, size, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, HF_MATCH_NORMALIZE);
        mapped(text, size, UTF8PROC_STABLE | UTF8PROC_COMPOSE, HF_MATCH_NORMALIZE);
        mapped(text, size, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, HF_MATCH_CASEFOLD);
        mapped(text, size, UTF8PROC_STABLE | UTF8PROC_COMPOSE, HF_MATCH_CASEFOLD);
    }
}

/* Upper and lower case of every code point that has both fold to one form. */
static void both_cases_have_one_form(void **state)
{
    (void)state;
    for (int32_t c = 0; c < 0x110000; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        int32_t lower = utf8proc_tolower(c), upper = utf8proc_toupper(c);
        /* Where there and back is not the same letter, case folding is not about case alone: the
         * dotted and dotless i of Turkish, and what only looks like a capital. */
        if (lower == c || upper != c || utf8proc_toupper(lower) != c || c == 0x130)
            continue;
        unsigned char a[4], b[4];
        size_t n = (size_t)utf8proc_encode_char(c, a), m = (size_t)utf8proc_encode_char(lower, b);
        same_form(HF_MATCH_CASEFOLD, a, n, b, m);
    }
}

/* Normalised text is in NFC, and holds no white space but single U+0020. */
static void normalized_is_nfc_with_single_spaces(void **state)
{
    (void)state;
    unsigned char text[64], form[HF_IDENTITY_MAX + 1];
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = form_of(HF_MATCH_NORMALIZE, text, any_text(text), form);
        assert_true(n > 0);
        utf8proc_uint8_t *nfc;
        utf8proc_ssize_t m = utf8proc_map(form, (utf8proc_ssize_t)n, &nfc,
                                          (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        assert_true(m == (utf8proc_ssize_t)n);
        assert_memory_equal(nfc, form, n);
        free(nfc);
        form[n] = '\0';
        assert_null(strstr((const char *)form, "  "));
        for (const char *bad = "\t\n\v\f\r"; *bad; bad++)
            assert_null(memchr(form, *bad, n));
    }
}

int main(void)
{
    plan.scratch = malloc(HF_PLAN_SCRATCH);
    seed = test_seed("matches", 20231120);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_idempotent),
        cmocka_unit_test(equivalent_texts_have_one_form),
        cmocka_unit_test(both_cases_have_one_form),
        cmocka_unit_test(normalized_is_nfc_with_single_spaces),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(plan.scratch);
    return failed;
}
