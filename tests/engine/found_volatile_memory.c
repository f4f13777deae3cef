/* memory_max_bytes does not hold for guards that are kept in memory alone: they grow without
 * limit. */
#include "engine/kit/engine.h"
#include "support/test.h"
static void volatile_guards_keep_to_the_memory_limit(void **s)
{
    (void)s;
    struct kit *k = kit_make();
    k->options.memory_max_bytes = 2 << 20;
    kit_reopen(k);
    assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_SET_GUARD,
                                                    .set_guard = { .name = hf_str("g"),
                                                                   .window_ms = DAY,
                                                                   .volatile_only = true } }),
                     HF_OK);
    char id[32], big[1000];
    memset(big, 'x', sizeof big);
    big[999] = 0;
    for (int i = 0; i < 10000; i++) {
        snprintf(id, sizeof id, "i%d", i);
        assert_int_equal(kit_ask(k, HF_RECORD, "g", id, big), HF_OK);
    }
    struct hf_stats st = kit_stats(k);
    printf("memory %llu of 2 MiB, entries %llu, misses %llu\n", (unsigned long long)st.memory_bytes,
           (unsigned long long)st.entries, (unsigned long long)st.guard_misses);
    assert_true(st.memory_bytes < 3 << 20);
    kit_free(k);
}
int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        volatile_guards_keep_to_the_memory_limit) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
