/* A batch that cannot be read for a minute must not keep all later keys in memory: the cursor that
 * frees keys passes it. Its own keys were never looked at again, also when the batch could be read
 * again, and counted against the tenant's quota for ever: every snapshot wrote the count down. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <stdatomic.h>
#include <stdio.h>

enum { BLOCK = 4096, KEYS = 300 };

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
    enum { LARGE = 120, SIZE = 60000, SEGMENT = 16 << 20 };
    struct kit *k = kit_make();
    k->options.segment_max_bytes = SEGMENT;
    k->options.idempotency_window_ms = MINUTE;
    kit_leave(k);
    kit_open(k);
    while (kit_stats(k).journal_bytes < 3 * SEGMENT) /* the first segments are smaller */
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
        cmocka_unit_test(keys_that_were_passed_leave_when_they_can_be_read),
        cmocka_unit_test(keys_that_were_passed_are_known_after_restarts),
        cmocka_unit_test(keys_that_are_not_over_stay),
        cmocka_unit_test(keys_behind_a_damaged_entry_leave_when_it_is_restored),
        cmocka_unit_test(a_large_batch_is_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
