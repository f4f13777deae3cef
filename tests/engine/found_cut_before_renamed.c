/* A segment that had been compressed was renamed to *.tmp and cut off piece by piece, and nothing
 * made the new name durable first: after a power cut the stump could stand under its old name, and
 * the store did not open any more. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <errno.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_cut_off_only_when_its_new_name_is_durable),
        cmocka_unit_test(a_file_whose_new_name_is_not_durable_is_left_alone)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
