/* A snapshot writes the highest ordinal as it is at its last step, not durable yet. If the batch
 * that made that hold is then lost, the store believes in a hold that never was: every list of
 * holds fails for ever. */
#include "engine/kit/engine.h"
#include "support/test.h"
static void fill(struct kit *k)
{
    char id[HF_ID_SIZE];
    for (int i = 0; i < 40; i++) {
        char r[16];
        snprintf(r, sizeof r, "r%d", i);
        kit_held(k, r, HOUR, id);
    }
}
static struct kit *small(void)
{
    struct kit *k = kit_make();
    k->options.snapshot_every_bytes = 100000;
    kit_reopen(k);
    fill(k);
    return k;
}
static void nothing(struct hf_op *op, enum hf_status st)
{
    (void)op;
    printf("op: %s\n", hf_status_code(st));
}
static void a_snapshot_knows_no_hold_that_was_lost(void **s)
{
    (void)s;
    struct kit *k = small();
    int steps = 0;
    while (kit_stats(k).snapshots == 0) {
        hf_maintain(k->db);
        steps++;
        assert_true(steps < 1000);
    }
    kit_free(k);
    k = small();
    for (int i = 0; i < steps - 1; i++)
        hf_maintain(k->db);
    assert_int_equal(kit_stats(k).snapshots, 0);
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .key = hf_str("late"),
                            .place_hold = { hf_str("late"), hf_str("y"), 1000, 0 } };
    struct hf_op op = { .request = &r, .done = nothing };
    hf_submit(k->db, &op);
    atomic_store(&k->io.fail_write, 2); /* the snapshot's last write goes well, the batch is lost */
    hf_maintain(k->db);
    assert_int_equal(kit_stats(k).snapshots, 1);
    assert_int_equal(k->fatal, 1);
    kit_reopen(k);
    struct hf_page page;
    printf("holds %llu\n", (unsigned long long)kit_stats(k).holds);
    enum hf_status st = hf_list(k->db, &(struct hf_query){ .kind = HF_LIST_HOLDS }, &page);
    printf("list %s\n", hf_status_code(st));
    assert_int_equal(kit_stats(k).holds, 40);
    assert_int_equal(st, HF_OK);
    hf_page_clear(&page);
    kit_free(k);
}
int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_snapshot_knows_no_hold_that_was_lost) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
