/* On a full disk a request waits for the next segment, and whoever waits for a segment was not to
 * be disturbed by compressing or by cutting off old files: so nothing ever gave room back, and the
 * store refused for good. */
#include "engine/kit/engine.h"
#include "support/test.h"

enum {
    MIB = 1 << 20,
    KIB = 1 << 10,
    SECOND_NS = 1100000000 /* after a failure there is a pause so long */
};

/* A store of 15 MiB of keys that last a minute, three segments of it full. */
static struct kit *with_old_segments(unsigned names)
{
    struct kit *k = kit_make();
    k->options.segment_max_bytes = 8 * MIB; /* 2 MiB are there; 4, 8 and 8 follow */
    k->options.snapshot_every_bytes = 4 * MIB;
    k->options.idempotency_window_ms = MINUTE;
    kit_reopen(k);
    while (kit_stats(k).journal_bytes < 15 * MIB)
        assert_int_equal(kit_write(k, 16, 60000, names), HF_OK);
    return k;
}

/* A snapshot behind the full segments, which are kept as they are by their keys. */
static void snapshot(struct kit *k)
{
    kit_settle(k);
    assert_true(kit_stats(k).snapshots > 0);
    assert_int_equal(kit_files(k, ".zst"), 0);
}

/* Use up what is prepared, until a write is refused. */
static void fill_up(struct kit *k, unsigned names)
{
    unsigned groups = 0;
    while (kit_write(k, 16, 60000, names) == HF_OK)
        assert_true(++groups < 40);
    assert_true(kit_stats(k).out_of_space);
}

static void room_comes_back(struct kit *k)
{
    enum hf_status st = HF_STORAGE_FAILURE;
    for (int tries = 0; tries < 20 && st == HF_STORAGE_FAILURE; tries++) {
        atomic_fetch_add(&k->io.later_ns, SECOND_NS);
        kit_settle(k);
        st = kit_write(k, 1, 60000, 1);
    }
    assert_int_equal(st, HF_OK);
    assert_false(kit_stats(k).out_of_space);
    assert_true(kit_files(k, ".zst") > 0);
    assert_int_equal(atomic_load(&k->fatal), 0);
}

static void what_can_be_compressed_makes_room_on_a_full_disk(void **s)
{
    (void)s;
    struct kit *k = with_old_segments(2);
    snapshot(k);
    atomic_store(&k->io.room, 512 * KIB);
    kit_at(k, HOUR); /* the keys are over: from now on there is something to compress */
    fill_up(k, 2);
    room_comes_back(k);
    kit_reopen(k);
    assert_int_equal(kit_write(k, 1, 60000, 1), HF_OK);
    kit_free(k);
}

static void a_snapshot_without_room_does_not_stand_in_the_way(void **s)
{
    (void)s;
    /* 64 registers of 60,000 bytes: a snapshot of them takes far more than there is. */
    struct kit *k = with_old_segments(64);
    snapshot(k);
    atomic_store(&k->io.room, 512 * KIB);
    kit_at(k, HOUR);
    fill_up(k, 64);
    room_comes_back(k);
    kit_free(k);
}

static void a_snapshot_is_still_written_where_it_helps(void **s)
{
    (void)s;
    struct kit *k = with_old_segments(2);
    atomic_store(&k->io.room, 512 * KIB);
    kit_at(k, HOUR); /* nothing can be compressed before there is a snapshot behind it */
    fill_up(k, 2);
    assert_int_equal(kit_stats(k).snapshots, 0);
    room_comes_back(k);
    assert_true(kit_stats(k).snapshots > 0);
    kit_free(k);
}

static void what_is_on_its_way_out_goes_before_anything_else_is_written(void **s)
{
    (void)s;
    struct kit *k = with_old_segments(2);
    snapshot(k);
    kit_at(k, HOUR);
    assert_int_equal(kit_write(k, 16, 60000, 2), HF_OK);
    /* Compress the third segment, of 8 MiB, and stop before its plain file is cut off. */
    for (int steps = 0; kit_files(k, ".zst") < 3; steps++) {
        hf_maintain(k->db);
        assert_true(steps < 1000);
    }
    assert_int_equal(kit_files(k, "-00000003.tmp"), 1);
    /* The disk is full, a snapshot is due, the next segment is wanted: one step gives room back. */
    while (kit_stats(k).journal_bytes < 31 * MIB)
        assert_int_equal(kit_write(k, 16, 60000, 2), HF_OK);
    atomic_store(&k->io.room, 0);
    fill_up(k, 2);
    assert_int_equal(kit_files(k, "-00000003.tmp"), 1);
    assert_int_equal(atomic_load(&k->io.room), 0);
    int warnings = atomic_load(&k->warnings);
    atomic_fetch_add(&k->io.later_ns, SECOND_NS); /* everything may be tried again */
    hf_maintain(k->db);
    assert_true(atomic_load(&k->io.room) >= 4 * MIB);
    hf_maintain(k->db);
    assert_true(atomic_load(&k->io.room) >= 7 * MIB);
    assert_int_equal(kit_files(k, "-00000003.tmp"), 0);
    assert_int_equal(atomic_load(&k->warnings), warnings); /* nothing else was tried */
    atomic_fetch_add(&k->io.room, MIB);                    /* for the snapshot */
    room_comes_back(k);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_be_compressed_makes_room_on_a_full_disk),
        cmocka_unit_test(a_snapshot_without_room_does_not_stand_in_the_way),
        cmocka_unit_test(a_snapshot_is_still_written_where_it_helps),
        cmocka_unit_test(what_is_on_its_way_out_goes_before_anything_else_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
