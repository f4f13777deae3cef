/* A journal of many segments: descriptors and mappings stay few. Once each segment had a descriptor
 * of its own for ever, and a store of 5,232 of them could not start: "Too many open files". */
#include "engine/engine.h"
#include "engine/kit/engine.h"
#include "store/journal/writer.h"
#include "support/test.h"

#include <sys/resource.h>

enum { SEGMENTS = 150, DESCRIPTORS = 48, TIGHT = 24 };

static struct kit *many(bool packed)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.snapshot_every_bytes = packed ? 262144 : UINT64_C(1) << 40;
    k->options.keep_plain = !packed;
    k->options.idempotency_window_ms = packed ? 1000 : 0;
    kit_open(k);
    return k;
}

/* Each write fills most of a segment. The first key of each round is asked for again later. */
static void fill(struct kit *k, bool packed)
{
    for (unsigned i = 0; i < SEGMENTS; i++) {
        char key[32];
        snprintf(key, sizeof key, "order-%u", i);
        kit_at(k, packed ? 2000 * (int64_t)i : i);
        assert_int_equal(kit_place(k, key, key, "guest", 3600000), HF_OK);
        assert_int_equal(kit_write(k, 1, 40000, 1), HF_OK);
        if (i % 10 == 9)
            kit_settle(k);
    }
    assert_true(kit_stats(k).journal_bytes >= (uint64_t)(SEGMENTS - 2) * 65536);
}

static struct rlimit limit(rlim_t soft)
{
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ soft, before.rlim_max }), 0);
    return before;
}

static void look(struct kit *k)
{
    for (unsigned i = 0; i < SEGMENTS; i++) {
        char key[32];
        snprintf(key, sizeof key, "order-%u", i * 7 % SEGMENTS);
        assert_int_equal(kit_place(k, key, key, "guest", 3600000), HF_OK);
        assert_true(k->got.replayed);
    }
}

static void plain_segments_take_no_descriptor_each(void **state)
{
    (void)state;
    struct kit *k = many(false);
    struct rlimit before = limit(DESCRIPTORS);
    fill(k, false);
    look(k);
    kit_reopen(k);
    look(k);
    assert_int_equal(kit_write(k, 1, 40000, 1), HF_OK);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    kit_free(k);
}

static void packed_segments_are_opened_when_needed(void **state)
{
    (void)state;
    struct kit *k = many(true);
    static const char *const tenants[] = { "" };
    fill(k, true);
    kit_at(k, 2000 * SEGMENTS + 10000);
    kit_settle(k);
    assert_true(kit_files(k, ".zst") > SEGMENTS / 2);
    k->options.segment_max_bytes = 65536;
    kit_reopen(k);
    hf_writer_of(k->db->store)->journal->segments.packs_max = 4;
    char *first = kit_dump(k, tenants, 1);
    atomic_store(&k->io.descriptors_most, 0);
    char *again = kit_dump(k, tenants, 1);
    assert_string_equal(first, again);
    assert_non_null(strstr(first, "order-0"));
    assert_true(atomic_load(&k->io.descriptors_most) < 16);
    free(first);
    free(again);
    kit_free(k);
}

/* With fewer descriptors than compressed segments may be open at a time, the older ones give theirs
 * back. Once they kept them: a list, a retry and a start failed with "Too many open files" although
 * each needs one at a time. */
static void packed_segments_give_their_descriptors_back(void **state)
{
    (void)state;
    struct kit *k = many(true);
    static const char *const tenants[] = { "" };
    fill(k, true);
    kit_at(k, 2000 * SEGMENTS + 10000);
    kit_settle(k);
    assert_true(kit_files(k, ".zst") > HF_SEGMENT_PACKS_MAX);
    kit_reopen(k);
    char *enough = kit_dump(k, tenants, 1);
    struct rlimit before = limit(TIGHT);
    kit_reopen(k);
    char *tight = kit_dump(k, tenants, 1);
    struct hf_stats stats = kit_stats(k);
    assert_int_equal(kit_write(k, 1, 40000, 1), HF_OK);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_string_equal(tight, enough);
    assert_int_equal(stats.records_unreadable, 0);
    assert_true(hf_writer_of(k->db->store)->journal->segments.packs < TIGHT);
    free(enough);
    free(tight);
    kit_free(k);
}

/* With a place for three mappings, every look at another segment closes an older one. */
static void mappings_give_way_to_each_other(void **state)
{
    (void)state;
    struct kit *k = many(false);
    fill(k, false);
    kit_reopen(k);
    struct hf_segments *s = &hf_writer_of(k->db->store)->journal->segments;
    s->maps_max = 3;
    look(k);
    look(k);
    size_t mapped = 0;
    for (size_t i = 0; i < s->count; i++)
        mapped += s->list[i].state == HF_SEGMENT_SEALED && s->list[i].data;
    assert_int_equal(mapped, s->maps);
    kit_free(k);
    k = many(false);
    s = &hf_writer_of(k->db->store)->journal->segments;
    s->maps_max = 3;
    fill(k, false);
    look(k);
    assert_true(s->maps <= 3);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(plain_segments_take_no_descriptor_each),
                                        cmocka_unit_test(packed_segments_are_opened_when_needed),
                                        cmocka_unit_test(
                                            packed_segments_give_their_descriptors_back),
                                        cmocka_unit_test(mappings_give_way_to_each_other) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
