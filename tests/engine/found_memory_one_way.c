/* A memory limit once reached is never left again: the sweeper is refused too, so overdue holds
 * stay held, and tables do not give back what expired keys took. Only a restart helps. */
#include "engine/kit/engine.h"
#include "support/test.h"
static void after_everything_has_ended_there_is_room_again(void **s)
{
    (void)s;
    static struct hf_request r[8192];
    static struct hf_result got[8192];
    static char key[8192][40];
    struct kit *k = kit_make();
    k->options.memory_max_bytes = 8 << 20;
    k->options.idempotency_window_ms = MINUTE;
    kit_reopen(k);
    bool full = false;
    for (int z = 0; z < 100 && !full; z++) {
        for (int i = 0; i < 8192; i++) {
            snprintf(key[i], sizeof key[i], "n%d-%d", z, i);
            r[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                        .key = hf_str(key[i]),
                                        .place_hold = { hf_str(key[i]), hf_str("g"), SECOND, 0 } };
        }
        assert_int_equal(hf_do_many(k->db, r, got, 8192), HF_OK);
        for (int i = 0; i < 8192; i++) {
            full |= got[i].answer.status == HF_STORAGE_FAILURE;
            hf_result_clear(&got[i]);
        }
    }
    assert_true(full);
    kit_at(k, HOUR);
    kit_settle(k);
    assert_int_equal(kit_stats(k).holds_live, 0); /* fails: none was expired */
    kit_free(k);
}
int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        after_everything_has_ended_there_is_room_again) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
