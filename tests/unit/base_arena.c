/* Memory that is given back all at once. */
#include "base/arena.h"
#include "support/test.h"

static void pieces(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    unsigned char *taken[200];
    for (size_t i = 0; i < 200; i++) {
        taken[i] = hf_arena_take(&a, 1 + i);
        assert_non_null(taken[i]);
        assert_int_equal((uintptr_t)taken[i] % _Alignof(max_align_t), 0);
        memset(taken[i], (int)i, 1 + i);
    }
    for (size_t i = 0; i < 200; i++) /* none lies over another */
        for (size_t k = 0; k <= i; k++)
            assert_int_equal(taken[i][k], i);
    hf_arena_free(&a);
    assert_null(a.blocks);
    assert_int_equal(a.held, 0);
}

static void one_block_for_a_small_request(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    unsigned char *first = hf_arena_take(&a, 16);
    size_t held = a.held;
    assert_ptr_equal(hf_arena_take(&a, 3), first + 16);
    assert_ptr_equal(hf_arena_take(&a, 16), first + 32); /* three bytes took a whole unit */
    for (int i = 0; i < 50; i++)
        assert_non_null(hf_arena_take(&a, 16));
    assert_int_equal(a.held, held);
    hf_arena_free(&a);
}

static void a_large_wish(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    char *small = hf_arena_take(&a, 8);
    strcpy(small, "kept");
    char *large = hf_arena_take(&a, 100000);
    memset(large, 'x', 100000);
    assert_true(a.held >= 100000);
    assert_string_equal(small, "kept");
    hf_arena_free(&a);
}

/* NULL means that there is no memory, so nothing at all is some of it. */
static void nothing(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    void *first = hf_arena_take(&a, 0);
    assert_non_null(first);
    assert_ptr_not_equal(hf_arena_take(&a, 0), first);
    hf_arena_free(&a);
}

static void too_much(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    assert_null(hf_arena_take(&a, SIZE_MAX));
    assert_null(hf_arena_take(&a, SIZE_MAX / 2 + 1));
    assert_int_equal(a.held, 0);
    hf_arena_free(&a);
}

static void resetting(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    hf_arena_reset(&a);
    assert_null(a.blocks);
    void *first = hf_arena_take(&a, 64);
    size_t held = a.held;
    assert_non_null(hf_arena_take(&a, 2000));
    assert_non_null(hf_arena_take(&a, 50000));
    hf_arena_reset(&a);
    assert_int_equal(a.held, held); /* the first block stays for the next request */
    assert_ptr_equal(hf_arena_take(&a, 64), first);
    assert_int_equal(a.held, held);
    hf_arena_free(&a);

    assert_non_null(hf_arena_take(&a, 50000)); /* usable again after it was freed */
    hf_arena_reset(&a);
    assert_null(a.blocks); /* one great request leaves nothing behind */
    assert_int_equal(a.held, 0);
    assert_non_null(hf_arena_take(&a, 1));
    hf_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),       cmocka_unit_test(one_block_for_a_small_request),
        cmocka_unit_test(a_large_wish), cmocka_unit_test(nothing),
        cmocka_unit_test(too_much),     cmocka_unit_test(resetting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
