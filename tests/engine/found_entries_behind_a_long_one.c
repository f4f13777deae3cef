/* A guard whose window was shortened once kept every later entry in memory until the last one of
 * the old window had run out (here ten years). */
#include "engine/kit/engine.h"
#include "support/test.h"
static void entries_of_a_shortened_window_leave_the_memory(void **s)
{
    (void)s;
    struct kit *k = kit_make();
    assert_int_equal(kit_guard(k, "g", HF_DURATION_MAX_MS, NULL, 0), HF_OK);
    assert_int_equal(kit_ask(k, HF_RECORD, "g", "head", NULL), HF_OK);
    assert_int_equal(kit_guard(k, "g", SECOND, NULL, 0), HF_OK);
    for (int i = 0; i < 500; i++) {
        kit_at(k, i * MINUTE);
        assert_int_equal(kit_ask(k, HF_RECORD, "g", kit_key(k), NULL), HF_OK);
    }
    kit_at(k, DAY);
    for (int i = 0; i < 1100; i++) /* once round the table */
        hf_maintain(k->db);
    assert_int_equal(kit_stats(k).entries, 1);
    kit_free(k);
}
int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        entries_of_a_shortened_window_leave_the_memory) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
