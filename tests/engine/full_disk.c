/* A disk that is full, nearly full, or has room again. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <stdatomic.h>
#include <string.h>

/* On a full disk a request waits for the next segment, and whoever waits for a segment was not to
 * be disturbed by compressing or by cutting off old files: so nothing ever gave room back, and the
 * store refused for good. */

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
    int warned = atomic_load(&k->warnings);
    atomic_fetch_add(&k->io.later_ns, SECOND_NS); /* everything may be tried again */
    hf_maintain(k->db);
    assert_true(atomic_load(&k->io.room) >= 4 * MIB);
    hf_maintain(k->db);
    assert_true(atomic_load(&k->io.room) >= 7 * MIB);
    assert_int_equal(kit_files(k, "-00000003.tmp"), 0);
    assert_int_equal(atomic_load(&k->warnings), warned); /* nothing else was tried */
    atomic_fetch_add(&k->io.room, MIB);                  /* for the snapshot */
    room_comes_back(k);
    kit_free(k);
}

/* On a full disk the store tried once a second to write a snapshot, or to compress a segment, and
 * warned each time: 86400 lines a day that say the same. It warns once, then once a minute at most,
 * and says when it works again. */

enum { SECONDS = 300 };

static const char *what; /* is looked for */
static int warnings, returns;

static void on_note(void *arg, int level, const char *line)
{
    (void)arg;
    if (strstr(line, what) && level == 1)
        warnings++;
    if (strstr(line, what) && level == 0)
        returns++;
}

static void steps(struct kit *k, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        atomic_fetch_add(&k->io.later_ns, UINT64_C(1000000000));
        for (int n = 0; n < 10; n++)
            hf_maintain(k->db);
    }
}

/* The disk is full for five minutes, and then it is not, and then again. */
static void full_for_a_while(struct kit *k)
{
    warnings = returns = 0;
    atomic_store(&k->io.room, 0);
    steps(k, SECONDS);
    assert_in_range(warnings, 2, SECONDS / 60 + 1);
    assert_int_equal(returns, 0);
    atomic_store(&k->io.room, -1);
    steps(k, 10);
    assert_int_equal(returns, 1);
}

static void a_snapshot_that_fails_is_told_once_a_minute(void **s)
{
    (void)s;
    both_needs_files();
    struct kit *k = kit_make();
    what = "a snapshot";
    k->options.snapshot_every_bytes = 100000;
    k->options.on_note = on_note;
    kit_reopen(k);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(kit_write(k, 4, 60000, 1), HF_OK);
        full_for_a_while(k);
        assert_true(kit_stats(k).snapshots > 0);
    }
    kit_free(k);
}

static void a_segment_that_cannot_be_compressed_is_told_once_a_minute(void **s)
{
    (void)s;
    both_needs_files();
    struct kit *k = kit_make();
    what = "compress";
    k->options.snapshot_every_bytes = 4 * MIB;
    k->options.idempotency_window_ms = MINUTE;
    k->options.on_note = on_note;
    kit_reopen(k);
    while (kit_stats(k).journal_bytes < 7 * MIB)
        assert_int_equal(kit_write(k, 16, 60000, 1), HF_OK);
    kit_settle(k);
    assert_true(kit_stats(k).snapshots > 0);
    assert_int_equal(kit_files(k, ".zst"), 0);
    kit_at(k, HOUR); /* the keys are over: from now on there is something to compress */
    full_for_a_while(k);
    assert_true(kit_files(k, ".zst") > 0);
    kit_free(k);
}

/* Segments double in size, and when the next did not fit, the store said that the disk was full
 * while half of it was free. Now it takes what fits. */

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
static uint64_t fill_up_settling(struct kit *k)
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
    assert_true(fill_up_settling(k) >= 22);
    assert_int_equal(atomic_load(&k->fatal), 0);
    kit_reopen(k);
    assert_true(kit_stats(k).holds == 0 && kit_stats(k).registers == 2);
    kit_free(k);
}

static void with_room_again_segments_grow_again(void **s)
{
    (void)s;
    struct kit *k = on_a_small_disk(14 * MIB);
    fill_up_settling(k);
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

/* A store made with 64 KiB segments and reopened with larger ones: a request that is too big for
 * the next small segment makes hf_do prepare segments for ever (until the disk is full). */

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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_be_compressed_makes_room_on_a_full_disk),
        cmocka_unit_test(a_snapshot_without_room_does_not_stand_in_the_way),
        cmocka_unit_test(a_snapshot_is_still_written_where_it_helps),
        cmocka_unit_test(what_is_on_its_way_out_goes_before_anything_else_is_written),
        cmocka_unit_test(a_snapshot_that_fails_is_told_once_a_minute),
        cmocka_unit_test(a_segment_that_cannot_be_compressed_is_told_once_a_minute),
        cmocka_unit_test(a_smaller_segment_is_taken_where_a_larger_one_does_not_fit),
        cmocka_unit_test(with_room_again_segments_grow_again),
        cmocka_unit_test(segments_are_not_prepared_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
