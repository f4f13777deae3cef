/* A start used to check the last 8 GiB of the journal before the snapshot. Where that began behind
 * the first segment, any sequence was taken for the first: if the first batch there was damaged,
 * the walk went on in the next segment, and the whole segment passed for sound. Now everything is
 * checked. The segments between are crafted: gigabytes of zeros, compressed to nothing. */
#include "engine/kit/engine.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"

#define GIB (UINT64_C(1) << 30)

enum { BLOCK = 4096, SMALL = 131072, BIG_COUNT = 8 };

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
static struct kit *long_store(struct jw *w)
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
    struct kit *k = long_store(&w);
    assert_int_equal(open_again(k, &why), HF_OK);
    /* In any batch of the segment: the first one too. */
    for (size_t at = BLOCK; at <= 4 * BLOCK; at += BLOCK) {
        jw_flip(k->dir, "journal-00000002.log", at + 100);
        assert_int_equal(open_again(k, &why), HF_STORE_DAMAGED);
        assert_non_null(strstr(why.text, "journal-00000002.log"));
        jw_flip(k->dir, "journal-00000002.log", at + 100);
    }
    jw_flip(k->dir, "journal-00000001.log", BLOCK + 100);
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
        struct kit *k = long_store(&w);
        if (damaged)
            jw_flip(k->dir, "journal-00000002.log", BLOCK + 100);
        jw_pack(&w, 2);
        assert_int_equal(open_again(k, &why), damaged ? HF_STORE_DAMAGED : HF_OK);
        if (damaged)
            assert_non_null(strstr(why.text, "journal-00000002.zst"));
        kit_free(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
                                            damage_in_the_first_batch_that_is_checked_is_found),
                                        cmocka_unit_test(it_is_found_in_a_compressed_segment_too) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
