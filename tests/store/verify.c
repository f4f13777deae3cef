/* What lies before the snapshot is checked, by the start for a second and then in the
 * background. */
#include "engine/kit/engine.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"

enum { BLOCK = 4096 };

/* Some megabytes before a snapshot, and a crash. */
static struct kit *long_store(void)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 1 << 20;
    k->options.snapshot_every_bytes = 5 << 20;
    k->options.keep_plain = true;
    kit_open(k);
    for (unsigned i = 0; i < 110; i++)
        assert_int_equal(kit_write(k, 1, 50000, 1), HF_OK);
    kit_settle(k);
    assert_int_equal(kit_stats(k).snapshots, 1);
    assert_int_equal(kit_place(k, "late", "room", "guest", 600000), HF_OK);
    kit_close(k);
    return k;
}

static void the_start_goes_on_in_the_background(void **state)
{
    (void)state;
    struct kit *k = long_store();
    atomic_store(&k->io.step_ns, 300000000); /* a slow machine */
    kit_open(k);
    atomic_store(&k->io.step_ns, 0);
    struct hf_stats s = kit_stats(k);
    assert_true(s.verify_bytes >= 5 << 20 && s.verified_bytes < s.verify_bytes &&
                !s.journal_damaged);
    assert_int_equal(kit_place(k, "late", "room", "guest", 600000), HF_OK);
    assert_true(k->got.replayed);
    for (int i = 0; i < 200 && s.verified_bytes < s.verify_bytes; i++) {
        atomic_fetch_add(&k->io.later_ns, UINT64_C(60000000000));
        hf_maintain(k->db);
        s = kit_stats(k);
    }
    assert_true(s.verified_bytes == s.verify_bytes && !s.journal_damaged);
    kit_free(k);
}

static void damage_is_found_in_the_background(void **state)
{
    (void)state;
    struct kit *k = long_store();
    jw_flip(k->dir, "journal-00000004.log", BLOCK + 1000);
    atomic_store(&k->io.step_ns, 300000000);
    kit_open(k);
    atomic_store(&k->io.step_ns, 0);
    struct hf_stats s = kit_stats(k);
    assert_false(s.journal_damaged);
    k->note[0] = '\0';
    for (int i = 0; i < 200 && !s.journal_damaged; i++) {
        atomic_fetch_add(&k->io.later_ns, UINT64_C(60000000000));
        hf_maintain(k->db);
        s = kit_stats(k);
    }
    assert_true(s.journal_damaged);
    assert_non_null(strstr(k->note, "journal-00000004.log at byte 4096"));
    /* The store goes on. */
    assert_int_equal(kit_place(k, "late", "room", "guest", 600000), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(kit_write(k, 1, 100, 1), HF_OK);
    kit_free(k);
}

/* A file that cannot be opened for a moment is no damage: the check goes on later. */
static void a_failed_read_is_tried_again(void **state)
{
    (void)state;
    struct kit *k = long_store();
    atomic_store(&k->io.step_ns, 300000000);
    kit_open(k);
    atomic_store(&k->io.step_ns, 0);
    struct hf_stats s = kit_stats(k);
    atomic_store(&k->io.fail_open, 1);
    for (int i = 0; i < 300 && s.verified_bytes < s.verify_bytes; i++) {
        atomic_fetch_add(&k->io.later_ns, UINT64_C(60000000000));
        hf_maintain(k->db);
        s = kit_stats(k);
        assert_false(s.journal_damaged);
    }
    assert_int_equal(atomic_load(&k->io.fail_open), 0);
    assert_int_equal(s.verified_bytes, s.verify_bytes);
    kit_free(k);
}

/* What lies before the snapshot is not needed to open: a sector there that cannot be read keeps
 * nobody out. */
static void an_unreadable_history_does_not_keep_the_store_closed(void **state)
{
    (void)state;
    struct kit *k = long_store();
    atomic_store(&k->io.unreadable, 100 * BLOCK);
    atomic_store(&k->io.unreadable_segment, 2);
    kit_open(k);
    struct hf_stats s = kit_stats(k);
    assert_true(s.verified_bytes < s.verify_bytes && !s.journal_damaged &&
                s.records_unreadable > 0);
    assert_int_equal(kit_place(k, "late", "room", "guest", 600000), HF_OK);
    assert_true(k->got.replayed);
    atomic_store(&k->io.unreadable, 0);
    for (int i = 0; i < 300 && s.verified_bytes < s.verify_bytes; i++) {
        atomic_fetch_add(&k->io.later_ns, UINT64_C(60000000000));
        hf_maintain(k->db);
        s = kit_stats(k);
    }
    assert_int_equal(s.verified_bytes, s.verify_bytes);
    kit_free(k);
}

static void a_fast_start_checks_everything(void **state)
{
    (void)state;
    struct kit *k = long_store();
    struct hf_error why;
    kit_open(k);
    struct hf_stats s = kit_stats(k);
    assert_true(s.verify_bytes > 0 && s.verified_bytes == s.verify_bytes);
    kit_close(k);
    jw_flip(k->dir, "journal-00000004.log", BLOCK + 1000);
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORE_DAMAGED);
    k->db = NULL;
    assert_non_null(strstr(why.text, "journal-00000004.log at byte 4096"));
    kit_free(k);
}

static char heads[4][128];
static int head_count;

static void note_head(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    if (strncmp(line, "chain head: ", 12) == 0 && head_count < 4)
        snprintf(heads[head_count++], sizeof heads[0], "%s", line);
}

/* The head of the chain is told at the start, every hour and at the end. */
static void the_head_of_the_chain_is_told(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    kit_close(k);
    k->options.on_note = note_head;
    head_count = 0;
    kit_open(k);
    assert_int_equal(head_count, 1);
    hf_maintain(k->db);
    assert_int_equal(head_count, 1);
    assert_int_equal(kit_place(k, "late", "room", "guest", 600000), HF_OK);
    atomic_fetch_add(&k->io.later_ns, UINT64_C(3601) * 1000000000);
    hf_maintain(k->db);
    hf_maintain(k->db);
    assert_int_equal(head_count, 2);
    kit_close(k);
    assert_int_equal(head_count, 3);
    assert_string_not_equal(heads[0], heads[1]);
    assert_string_equal(heads[1], heads[2]);
    kit_open(k);
    assert_string_equal(heads[2], heads[3]);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_start_goes_on_in_the_background),
                                        cmocka_unit_test(damage_is_found_in_the_background),
                                        cmocka_unit_test(a_failed_read_is_tried_again),
                                        cmocka_unit_test(
                                            an_unreadable_history_does_not_keep_the_store_closed),
                                        cmocka_unit_test(a_fast_start_checks_everything),
                                        cmocka_unit_test(the_head_of_the_chain_is_told) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
