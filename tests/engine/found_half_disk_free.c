/* Segments double in size, and when the next did not fit, the store said that the disk was full
 * while half of it was free. Now it takes what fits. */
#include "engine/kit/engine.h"
#include "support/test.h"

enum { MIB = 1 << 20, SECOND_NS = 1100000000 /* after a failure there is a pause so long */ };

static struct kit *on_a_small_disk(int64_t room)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 64 * MIB;
    k->options.keep_plain = true;
    atomic_store(&k->io.room, room);
    kit_open(k);
    return k;
}

/* Write until it is refused; how many MiB the journal has then. */
static uint64_t fill_up(struct kit *k)
{
    unsigned groups = 0;
    while (kit_write(k, 16, 60000, 2) == HF_OK) {
        kit_settle(k);
        assert_true(++groups < 100);
    }
    assert_true(kit_stats(k).out_of_space);
    return kit_stats(k).journal_bytes / MIB;
}

static void a_smaller_segment_is_taken_where_a_larger_one_does_not_fit(void **s)
{
    (void)s;
    struct kit *k =
        on_a_small_disk(27 * MIB); /* 4 and 8 MiB; 16 do not fit into the rest, 8 and 4 do */
    assert_true(fill_up(k) >= 22);
    assert_int_equal(atomic_load(&k->fatal), 0);
    kit_reopen(k);
    assert_true(kit_stats(k).holds == 0 && kit_stats(k).registers == 2);
    kit_free(k);
}

static void with_room_again_segments_grow_again(void **s)
{
    (void)s;
    struct kit *k = on_a_small_disk(14 * MIB);
    fill_up(k);
    atomic_store(&k->io.room, 200 * MIB);
    atomic_fetch_add(&k->io.later_ns, SECOND_NS);
    kit_settle(k);
    assert_false(kit_stats(k).out_of_space);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(kit_write(k, 16, 60000, 2), HF_OK);
        kit_settle(k);
    }
    assert_true(kit_files(k, ".log") < 9); /* in pieces of 4 MiB it would be a dozen */
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_smaller_segment_is_taken_where_a_larger_one_does_not_fit),
        cmocka_unit_test(with_room_again_segments_grow_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
