/* What a snapshot, a torn batch or a batch that cannot be read leaves behind, and what the next
 * start makes of it. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

/* A snapshot writes the highest ordinal as it is at its last step, not durable yet. If the batch
 * that made that hold is then lost, the store believes in a hold that never was: every list of
 * holds fails for ever. */

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

/* Found with the simulator: maintenance frees what is over by the wall clock, and a snapshot leaves
 * out what was freed. If nothing was written at that time, the clock stepped back and the store was
 * started again, engine time was that of the newest batch: a key or an identity was forgotten
 * before its window had closed, and its request ran twice. */

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

/* A segment that had been compressed was renamed to *.tmp and cut off piece by piece, and nothing
 * made the new name durable first: after a power cut the stump could stand under its old name, and
 * the store did not open any more. */

enum { MIB = 1 << 20 };

/* What the disk may still undo. */
static struct {
    unsigned renames; /* not followed by a sync of the directory */
    bool log_gone;    /* the newest rename took a segment's plain file away */
    unsigned cuts, cuts_too_soon;
    bool fail_then; /* the sync that follows fails */
} seen;

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n >= m && strcmp(name + n - m, suffix) == 0;
}

static int watch(struct test_io *t, enum test_call call, const char *name)
{
    (void)t;
    switch (call) {
    case TEST_RENAME:
        seen.renames++;
        seen.log_gone = ends_with(name, ".tmp") && strncmp(name, "journal-", 8) == 0;
        break;
    case TEST_DIR_SYNC:
        if (seen.log_gone && seen.fail_then)
            return -EIO;
        seen.renames = 0;
        break;
    case TEST_TRUNCATE:
        seen.cuts++;
        seen.cuts_too_soon += seen.renames > 0 || !ends_with(name, ".tmp");
        break;
    case TEST_REMOVE: break;
    }
    return 0;
}

/* A store whose third segment, of 8 MiB, can be compressed: its keys are over and a snapshot is
 * behind it. */
static struct kit *old_segments(void)
{
    struct kit *k = kit_make();
    k->options.segment_max_bytes = 8 * MIB; /* 2 MiB are there; 4 and 8 follow */
    k->options.snapshot_every_bytes = 4 * MIB;
    k->options.idempotency_window_ms = MINUTE;
    kit_reopen(k);
    while (kit_stats(k).journal_bytes < 17 * MIB)
        assert_int_equal(kit_write(k, 16, 60000, 2), HF_OK);
    memset(&seen, 0, sizeof seen);
    k->io.before = watch;
    kit_at(k, HOUR);
    return k;
}

static void a_file_is_cut_off_only_when_its_new_name_is_durable(void **s)
{
    (void)s;
    struct kit *k = old_segments();
    assert_int_equal(kit_write(k, 1, 10, 1), HF_OK);
    kit_settle(k);
    assert_int_equal(kit_files(k, ".zst"), 3);
    assert_true(seen.cuts > 0);
    assert_int_equal(seen.cuts_too_soon, 0);
    assert_int_equal(kit_files(k, ".tmp"), 0);
    kit_reopen(k);
    kit_free(k);
}

static void a_file_whose_new_name_is_not_durable_is_left_alone(void **s)
{
    (void)s;
    struct kit *k = old_segments();
    seen.fail_then = true;
    assert_int_equal(kit_write(k, 1, 10, 1), HF_OK);
    kit_settle(k);
    assert_int_equal(kit_files(k, ".zst"), 3);
    assert_int_equal(seen.cuts, 0);
    assert_int_equal(kit_files(k, ".tmp"), 3);
    k->io.before = NULL;
    kit_reopen(k); /* which removes what is left of them */
    assert_int_equal(kit_files(k, ".tmp"), 0);
    assert_int_equal(kit_write(k, 1, 10, 1), HF_OK);
    kit_free(k);
}

/* A batch that a crash cut short stays where it is if the next one does not fit into its place. Its
 * header may be whole, and then the walk that frees expired keys took it for a batch, came to the
 * part that was never written, and stayed there for good: no key behind it was ever freed. */

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

/* A batch that cannot be read for a minute must not keep all later keys in memory: the cursor that
 * frees keys passes it. Its own keys were never looked at again, also when the batch could be read
 * again, and counted against the tenant's quota for ever: every snapshot wrote the count down. */

enum { KEYS = 300 };

static uint64_t records(struct kit *k, const char *tenant)
{
    struct hf_usage usage;
    hf_usage_of(k->db, hf_str(tenant), &usage);
    return usage.records;
}

static void steps(struct kit *k, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        atomic_fetch_add(&k->io.later_ns, UINT64_C(1000000000));
        for (int n = 0; n < 3; n++)
            hf_maintain(k->db);
    }
}

static struct hf_request write_of(const char *tenant, const char *key)
{
    return (struct hf_request){ .action = HF_WRITE,
                                .tenant = hf_str(tenant),
                                .key = hf_str(key),
                                .write = { .name = hf_str("r"), .value = hf_str("x") } };
}

/* Many keys in one batch. */
static void group_write(struct kit *k)
{
    static struct hf_request requests[KEYS];
    static char keys[KEYS][16];
    for (int i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        requests[i] = write_of("t", keys[i]);
    }
    assert_int_equal(hf_do_many(k->db, requests, NULL, KEYS), HF_OK);
    assert_int_equal(records(k, "t"), KEYS + 1);
}

/* Enough for a snapshot. */
static void others_write(struct kit *k, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(kit_do(k, write_of("other", kit_key(k))), HF_OK);
}

/* A store with keys of one batch that is over, and that the cursor has passed because it cannot be
 * read. */
static struct kit *store_make(void)
{
    struct kit *k = kit_make();
    k->options.segment_max_bytes = 1 << 20;
    k->options.snapshot_every_bytes = 200000;
    k->options.idempotency_window_ms = MINUTE;
    k->options.keep_plain = true;
    kit_leave(k);
    kit_open(k);
    group_write(k); /* the batch at 8192 */
    others_write(k, 1);
    kit_at(k, HOUR);
    atomic_store(&k->io.unreadable_segment, 1);
    atomic_store(&k->io.unreadable, 2 * BLOCK);
    steps(k, 130);
    assert_non_null(strstr(k->note, "position 8192"));
    assert_int_equal(records(k, "t"), KEYS + 1);
    assert_int_equal(records(k, "other"), 1); /* its key, which stands behind, has left */
    return k;
}

static void readable_again(struct kit *k)
{
    atomic_store(&k->io.unreadable, 0);
    steps(k, 200);
    assert_int_equal(records(k, "t"), 1);
    assert_int_equal(kit_stats(k).tokens, 0);
}

static void keys_that_were_passed_leave_when_they_can_be_read(void **s)
{
    (void)s;
    both_needs_files();
    struct kit *k = store_make();
    readable_again(k);
    /* For good: it is the same after a restart, with and without a snapshot of it. */
    kit_reopen(k);
    kit_settle(k);
    assert_int_equal(records(k, "t"), 1);
    others_write(k, 100);
    kit_at(k, 2 * HOUR);
    kit_settle(k);
    assert_true(kit_stats(k).snapshots > 0);
    kit_reopen(k);
    kit_settle(k);
    assert_int_equal(records(k, "t"), 1);
    kit_free(k);
}

static void keys_that_were_passed_are_known_after_restarts(void **s)
{
    (void)s;
    both_needs_files();
    struct kit *k = store_make();
    others_write(k, 100);
    kit_at(k, 2 * HOUR);
    kit_settle(k);
    assert_true(kit_stats(k).snapshots > 0);
    for (int round = 0; round < 2; round++) { /* still unreadable */
        kit_reopen(k);
        kit_settle(k);
        assert_int_equal(records(k, "t"), KEYS + 1);
        others_write(k, 100); /* another snapshot */
        kit_at(k, (3 + round) * HOUR);
        kit_settle(k);
        assert_true(kit_stats(k).snapshots > 0);
    }
    kit_reopen(k);
    readable_again(k);
    kit_free(k);
}

/* Keys of a batch that was passed and whose windows are not over stay until they are. */
static void keys_that_are_not_over_stay(void **s)
{
    (void)s;
    both_needs_files();
    struct kit *k = store_make();
    others_write(k, 100);
    kit_settle(k);
    kit_close(k);
    atomic_store(&k->io.unreadable, 0);
    kit_open(k);
    assert_int_equal(records(k, "t"), KEYS + 1);
    kit_settle(k);
    assert_int_equal(records(k, "t"), 1);
    assert_int_equal(records(k, "other"), 101); /* in their window */
    kit_free(k);
}

static void flip(struct kit *k, long at)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/journal-00000001.log", k->dir);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    int byte = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, f), byte ^ 1);
    assert_int_equal(fclose(f), 0);
}

/* The same for the rest of a batch with an entry that is damaged, when the file is restored. */
static void keys_behind_a_damaged_entry_leave_when_it_is_restored(void **s)
{
    (void)s;
    both_needs_files();
    struct kit *k = kit_make();
    k->options.idempotency_window_ms = MINUTE;
    kit_leave(k);
    kit_open(k);
    group_write(k);
    others_write(k, 1);
    flip(k, 2 * BLOCK + 5000);
    kit_at(k, HOUR);
    steps(k, 130);
    assert_int_equal(records(k, "other"), 1);
    uint64_t stay = records(k, "t");
    assert_true(stay > KEYS / 2 && stay < KEYS + 1);
    flip(k, 2 * BLOCK + 5000);
    steps(k, 130);
    assert_int_equal(records(k, "t"), 1);
    assert_int_equal(kit_stats(k).tokens, 0);
    kit_free(k);
}

/* A batch of more blocks than one step looks at is passed, too. */
static void a_large_batch_is_passed(void **s)
{
    (void)s;
    both_needs_files();
    enum { LARGE = 120, SIZE = 60000, WIDE = 16 << 20 };
    struct kit *k = kit_make();
    k->options.segment_max_bytes = WIDE;
    k->options.idempotency_window_ms = MINUTE;
    kit_leave(k);
    kit_open(k);
    while (kit_stats(k).journal_bytes < 3 * WIDE) /* the first segments are smaller */
        assert_int_equal(kit_write(k, 1, SIZE, 1), HF_OK);
    assert_int_equal(kit_write(k, LARGE, SIZE, 1), HF_OK);
    others_write(k, 1);
    kit_at(k, HOUR);
    atomic_store(&k->io.unreadable, 6 << 20); /* in it, and in a small batch of some others */
    steps(k, 500);
    uint64_t stay = kit_stats(k).tokens;
    assert_true(stay >= LARGE && stay < LARGE + 5);
    assert_int_equal(records(k, "other"), 1);
    atomic_store(&k->io.unreadable, 0);
    steps(k, 500);
    assert_int_equal(kit_stats(k).tokens, 0);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_knows_no_hold_that_was_lost),
        cmocka_unit_test(a_key_is_not_forgotten_early),
        cmocka_unit_test(an_identity_is_not_forgotten_early),
        cmocka_unit_test(a_file_is_cut_off_only_when_its_new_name_is_durable),
        cmocka_unit_test(a_file_whose_new_name_is_not_durable_is_left_alone),
        cmocka_unit_test(keys_behind_a_torn_batch_expire),
        cmocka_unit_test(keys_behind_many_torn_batches_expire),
        cmocka_unit_test(torn_batches_do_not_keep_segments_from_being_compressed),
        cmocka_unit_test(keys_that_were_passed_leave_when_they_can_be_read),
        cmocka_unit_test(keys_that_were_passed_are_known_after_restarts),
        cmocka_unit_test(keys_that_are_not_over_stay),
        cmocka_unit_test(keys_behind_a_damaged_entry_leave_when_it_is_restored),
        cmocka_unit_test(a_large_batch_is_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
