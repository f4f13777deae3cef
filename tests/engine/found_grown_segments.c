/* A store made with 64 KiB segments and reopened with larger ones: a request that is too big for
 * the next small segment makes hf_do prepare segments for ever (until the disk is full). */
#include "engine/kit/engine.h"
#include "support/test.h"
static enum hf_status fn(struct hf_tx *tx, void *arg)
{
    (void)arg;
    return hf_tx_put(tx, hf_str("a"), hf_str("1"));
}
static void segments_are_not_prepared_without_end(void **s)
{
    (void)s;
    struct kit *k = kit_make();
    kit_close(k);
    test_dir_remove(k->dir);
    k->dir = test_dir_make();
    k->options.segment_max_bytes = 65536;
    kit_open(k);
    char id[HF_ID_SIZE];
    kit_held(k, "r", 1000, id);
    k->options.segment_max_bytes = 0;
    kit_reopen(k);
    atomic_store(&k->io.room, 600 << 20);
    enum hf_status st =
        kit_do(k, (struct hf_request){ .action = HF_APPLY,
                                       .key = hf_str("k"),
                                       .apply = { .name = hf_str("n"), .fn = fn } });
    printf("status %s, room left %lld, files %zu\n", hf_status_code(st),
           (long long)atomic_load(&k->io.room), kit_files(k, ".log"));
    assert_int_equal(st, HF_OK);
    kit_free(k);
}
int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(segments_are_not_prepared_without_end) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
