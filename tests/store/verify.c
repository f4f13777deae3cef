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

/* A start used to check the last 8 GiB of the journal before the snapshot. Where that began behind
 * the first segment, any sequence was taken for the first: if the first batch there was damaged,
 * the walk went on in the next segment, and the whole segment passed for sound. Now everything is
 * checked. The segments between are crafted: gigabytes of zeros, compressed to nothing. */

#define GIB (UINT64_C(1) << 30)

enum { PAGE = 4096, SMALL = 131072, BIG_COUNT = 8 };

/* A batch that makes a resource, in the next segment if `next`. */
static void tell(struct jw *w, bool next)
{
    char name[32];
    snprintf(name, sizeof name, "room-%llu", (unsigned long long)w->sequence);
    jw_begin(w, KIT_START);
    struct jw_entry *e = jw_add(w, HF_SET_RESOURCE);
    struct hf_row *row = jw_row(e, HF_ROW_RESOURCE);
    row->resource =
        (struct hf_resource){ .name = hf_str(name), .capacity = 1, .created_at = KIT_START };
    w->next_segment = next;
    jw_commit(w);
}

static uint64_t big(int i)
{
    return i == 0 ? GIB - SMALL : GIB;
}

/* Segments 1 and 2 are small, 3 to 10 have 8 GiB without a small one, and in 11 the journal ends: 8
 * GiB before that is in segment 2. */
static void write_journal(struct jw *w, const char *dir)
{
    jw_open(w, dir, SMALL);
    for (int segment = 1; segment <= 2; segment++)
        for (int i = 0; i < 4; i++)
            tell(w, segment > 1 && i == 0);
    for (int i = 0; i < BIG_COUNT; i++) {
        w->stretched = big(i);
        tell(w, true);
    }
    w->stretched = 0;
    tell(w, true);
    tell(w, false);
    jw_close(w);
    for (int i = 0; i < BIG_COUNT; i++) {
        w->stretched = big(i);
        jw_pack(w, 3 + (uint64_t)i);
    }
    w->stretched = 0;
}

/* The store of that journal, with a snapshot at its end, after a crash. */
static struct kit *long_zeros(struct jw *w)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = SMALL;
    k->options.keep_plain = true;
    write_journal(w, k->dir);
    kit_open(k);
    assert_true(kit_stats(k).journal_bytes > 8 * GIB);
    kit_settle(k);
    assert_int_equal(kit_stats(k).snapshots, 1);
    atomic_store(&k->io.fail_write, 1);
    assert_int_equal(kit_write(k, 1, 10, 1), HF_INDETERMINATE);
    kit_close(k);
    return k;
}

static enum hf_status open_again(struct kit *k, struct hf_error *why)
{
    enum hf_status st = hf_open(k->dir, &k->options, &k->db, why);
    if (st == HF_OK)
        kit_close(k);
    return st;
}

static void damage_in_the_first_batch_that_is_checked_is_found(void **s)
{
    (void)s;
    static struct jw w;
    struct hf_error why;
    struct kit *k = long_zeros(&w);
    assert_int_equal(open_again(k, &why), HF_OK);
    /* In any batch of the segment: the first one too. */
    for (size_t at = PAGE; at <= 4 * PAGE; at += PAGE) {
        jw_flip(k->dir, "journal-00000002.log", at + 100);
        assert_int_equal(open_again(k, &why), HF_STORE_DAMAGED);
        assert_non_null(strstr(why.text, "journal-00000002.log"));
        jw_flip(k->dir, "journal-00000002.log", at + 100);
    }
    jw_flip(k->dir, "journal-00000001.log", PAGE + 100);
    assert_int_equal(open_again(k, &why), HF_STORE_DAMAGED);
    assert_non_null(strstr(why.text, "journal-00000001.log"));
    kit_free(k);
}

static void it_is_found_in_a_compressed_segment_too(void **s)
{
    (void)s;
    static struct jw w;
    struct hf_error why;
    for (int damaged = 0; damaged < 2; damaged++) {
        struct kit *k = long_zeros(&w);
        if (damaged)
            jw_flip(k->dir, "journal-00000002.log", PAGE + 100);
        jw_pack(&w, 2);
        assert_int_equal(open_again(k, &why), damaged ? HF_STORE_DAMAGED : HF_OK);
        if (damaged)
            assert_non_null(strstr(why.text, "journal-00000002.zst"));
        kit_free(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_start_goes_on_in_the_background),
        cmocka_unit_test(damage_is_found_in_the_background),
        cmocka_unit_test(a_failed_read_is_tried_again),
        cmocka_unit_test(an_unreadable_history_does_not_keep_the_store_closed),
        cmocka_unit_test(a_fast_start_checks_everything),
        cmocka_unit_test(the_head_of_the_chain_is_told),
        cmocka_unit_test(damage_in_the_first_batch_that_is_checked_is_found),
        cmocka_unit_test(it_is_found_in_a_compressed_segment_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
