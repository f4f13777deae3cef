/* On a full disk the store tried once a second to write a snapshot, or to compress a segment, and
 * warned each time: 86400 lines a day that say the same. It warns once, then once a minute at most,
 * and says when it works again. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <stdatomic.h>
#include <string.h>

enum { MIB = 1 << 20, SECONDS = 300 };

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_that_fails_is_told_once_a_minute),
        cmocka_unit_test(a_segment_that_cannot_be_compressed_is_told_once_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
