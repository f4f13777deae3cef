/* A batch that a crash cut short stays where it is if the next one does not fit into its place. Its
 * header may be whole, and then the walk that frees expired keys took it for a batch, came to the
 * part that was never written, and stayed there for good: no key behind it was ever freed. */
#include "engine/kit/engine.h"
#include "support/test.h"

enum { SEGMENT = 65536, BLOCK = 4096 };

static struct kit *small_segments(void)
{
    struct kit *k = kit_make();
    k->options.segment_max_bytes = SEGMENT;
    k->options.idempotency_window_ms = MINUTE;
    kit_leave(k);
    kit_open(k);
    return k;
}

/* Write until a group of four blocks still fits into the segment, and a write of 32 KiB does
 * not. */
static void fill_segment(struct kit *k)
{
    while (kit_stats(k).journal_bytes % SEGMENT < SEGMENT - 7 * BLOCK)
        assert_int_equal(kit_write(k, 1, 100, 1), HF_OK);
}

/* A crash while a group of four blocks is written, of which the first `torn` bytes reach the disk;
 * and a batch in the next segment that leaves it behind. */
static void leave_torn(struct kit *k, size_t torn)
{
    fill_segment(k);
    uint64_t end = kit_stats(k).journal_bytes, tokens = kit_stats(k).tokens;
    atomic_store(&k->io.torn, torn);
    atomic_store(&k->io.fail_write, 1);
    assert_int_equal(kit_write(k, 30, 400, 1), HF_INDETERMINATE);
    kit_reopen(k);
    assert_int_equal(kit_stats(k).journal_bytes, end);
    assert_int_equal(kit_stats(k).tokens, tokens);
    assert_int_equal(kit_write(k, 1, 32768, 1), HF_OK);
    assert_int_equal((kit_stats(k).journal_bytes - 1) / SEGMENT, end / SEGMENT + 1);
}

/* All keys but the newest are over: it alone must stay. */
static void all_expire(struct kit *k, int64_t at)
{
    kit_at(k, at);
    assert_int_equal(kit_write(k, 1, 10, 1), HF_OK);
    kit_settle(k);
    assert_int_equal(kit_stats(k).tokens, 1);
}

static void keys_behind_a_torn_batch_expire(void **s)
{
    (void)s;
    /* The header alone; some entries; whole blocks with entries of every one of them but the
     * last. */
    static const size_t torn[] = { 80, 80 + 500, BLOCK, BLOCK + 77, 2 * BLOCK, 3 * BLOCK };
    for (size_t i = 0; i < sizeof torn / sizeof *torn; i++) {
        struct kit *k = small_segments();
        leave_torn(k, torn[i]);
        all_expire(k, HOUR);
        kit_free(k);
    }
}

static void keys_behind_many_torn_batches_expire(void **s)
{
    (void)s;
    struct kit *k = small_segments();
    for (size_t i = 0; i < 6; i++)
        leave_torn(k, 80 + i * 2000);
    all_expire(k, HOUR);
    kit_free(k);
}

/* The walk begins where a snapshot says, which may be at the torn batch itself; and what is freed
 * is freed for good: the segments are compressed, and all of it still opens. */
static void torn_batches_do_not_keep_segments_from_being_compressed(void **s)
{
    (void)s;
    struct kit *k = small_segments();
    k->options.snapshot_every_bytes = SEGMENT;
    kit_reopen(k);
    for (int i = 0; i < 5; i++) {
        leave_torn(k, 80 + (size_t)i * 2500);
        all_expire(k, (i + 1) * HOUR);
        kit_reopen(k);
        assert_int_equal(kit_stats(k).tokens, 1);
    }
    assert_true(kit_files(k, ".zst") >= 4);
    assert_int_equal(atomic_load(&k->warnings), 0);
    kit_remove(k, ".snap"); /* the whole journal is read */
    kit_reopen(k);
    assert_int_equal(kit_write(k, 1, 10, 1), HF_OK);
    all_expire(k, DAY);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_behind_a_torn_batch_expire),
        cmocka_unit_test(keys_behind_many_torn_batches_expire),
        cmocka_unit_test(torn_batches_do_not_keep_segments_from_being_compressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
