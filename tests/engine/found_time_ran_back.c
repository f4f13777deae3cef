/* Found by the judge: a question moved nothing on disk, so when the wall clock stepped back behind
 * it, engine time went back as well. A guard that had said "not seen, the window is over" then said
 * "seen" again. */
#include "engine/kit/engine.h"
#include "support/test.h"

static void a_question_holds_the_time_too(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    assert_int_equal(kit_guard(k, "g", MINUTE, NULL, 0), HF_OK);
    assert_int_equal(kit_ask(k, HF_ADMIT, "g", "x", NULL), HF_OK);
    kit_at(k, MINUTE);
    assert_int_equal(kit_ask(k, HF_CHECK, "g", "x", NULL), HF_OK);
    assert_false(k->got.answer.seen.seen);
    kit_at(k, MINUTE - 1); /* the wall clock is set back */
    assert_int_equal(kit_ask(k, HF_CHECK, "g", "x", NULL), HF_OK);
    assert_false(k->got.answer.seen.seen);
    assert_int_equal(k->got.now, KIT_START + MINUTE);
    assert_int_equal(kit_stats(k).clock_stalls, 0); /* which counts batches */
    assert_int_equal(kit_ask(k, HF_ADMIT, "g", "x", NULL), HF_OK);
    assert_false(k->got.answer.seen.seen);
    assert_int_equal(k->got.now, KIT_START + MINUTE);
    assert_int_equal(kit_stats(k).clock_stalls, 1);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_question_holds_the_time_too) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
