/* Found with the simulator: maintenance frees what is over by the wall clock, and a snapshot leaves
 * out what was freed. If nothing was written at that time, the clock stepped back and the store was
 * started again, engine time was that of the newest batch: a key or an identity was forgotten
 * before its window had closed, and its request ran twice. */
#include "engine/kit/engine.h"
#include "support/test.h"

/* A store with a key and an identity whose windows are not over, and a snapshot that was made while
 * the clock said that they were; started again after the clock was set right. */
static struct kit *after_a_wrong_hour(void)
{
    struct kit *k = kit_make();
    k->options.idempotency_window_ms = MINUTE;
    k->options.snapshot_every_bytes = 65536;
    kit_reopen(k);
    assert_int_equal(kit_guard(k, "g", MINUTE, NULL, 0), HF_OK);
    assert_int_equal(kit_ask(k, HF_ADMIT, "g", "x", NULL), HF_OK);
    assert_int_equal(kit_place(k, "again", "room", "guest", HOUR), HF_OK);
    for (int i = 0; i < 40; i++)
        assert_int_equal(kit_write(k, 1, 3000, 4), HF_OK);
    kit_at(k, HOUR - 1);
    kit_settle(k);
    assert_true(kit_stats(k).snapshots > 0);
    kit_at(k, SECOND);
    kit_reopen(k);
    return k;
}

static void a_key_is_not_forgotten_early(void **state)
{
    (void)state;
    struct kit *k = after_a_wrong_hour();
    enum hf_status st = kit_place(k, "again", "room", "guest", HOUR);
    assert_true(k->got.replayed || k->got.now >= KIT_START + MINUTE);
    assert_int_equal(st, k->got.replayed ? HF_OK : HF_RESOURCE_UNAVAILABLE);
    kit_free(k);
}

static void an_identity_is_not_forgotten_early(void **state)
{
    (void)state;
    struct kit *k = after_a_wrong_hour();
    assert_int_equal(kit_ask(k, HF_ADMIT, "g", "x", NULL), HF_OK);
    assert_true(k->got.answer.seen.seen || k->got.now >= KIT_START + MINUTE);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_key_is_not_forgotten_early),
                                        cmocka_unit_test(an_identity_is_not_forgotten_early) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
