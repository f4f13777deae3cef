/* What the store may ask of files (store/io.h), asked of the system's and of those in memory: both
 * answer alike. */
#include "engine/kit/engine.h"
#include "support/test.h"
#include "support/test_io.h"

#include "engine/engine.h"
#include "store/journal/writer.h"

#include <errno.h>
#include <sys/resource.h>

static const struct hf_io *io;
static struct hf_dir *dir;
static char *path;

static int open_dir(const struct hf_io *of)
{
    io = of;
    path = test_dir_make();
    return io->dir_open(io->ctx, path, true, &dir);
}

static int setup_system(void **state)
{
    (void)state;
    return open_dir(hf_io_os());
}

static int setup_memory(void **state)
{
    (void)state;
    return open_dir(hf_io_memory());
}

static int teardown(void **state)
{
    (void)state;
    io->dir_close(dir);
    test_dir_remove(path);
    return 0;
}

static struct hf_file *opened(const char *name, enum hf_open_how how)
{
    struct hf_file *file = NULL;
    assert_int_equal(io->open(dir, name, how, &file), 0);
    return file;
}

static void written(const char *name, const char *text)
{
    struct hf_file *file = opened(name, HF_OPEN_CREATE);
    assert_int_equal(io->write(file, text, strlen(text), 0), 0);
    assert_int_equal(io->sync(file), 0);
    io->close(file);
}

static void has(struct hf_file *file, const char *text)
{
    char got[64];
    uint64_t size;
    assert_int_equal(io->size(file, &size), 0);
    assert_int_equal(size, strlen(text));
    assert_int_equal(io->read(file, got, size, 0), 0);
    assert_memory_equal(got, text, size);
}

static void is(const char *name, const char *text)
{
    struct hf_file *file = opened(name, HF_OPEN_READ);
    has(file, text);
    io->close(file);
}

static void is_absent(const char *name)
{
    struct hf_file *file;
    assert_int_equal(io->open(dir, name, HF_OPEN_READ, &file), -ENOENT);
    assert_int_equal(io->open(dir, name, HF_OPEN_WRITE, &file), -ENOENT);
}

/* ---- One file ---- */

static void a_file_has_what_was_written(void **state)
{
    (void)state;
    char got[8];
    struct hf_file *file = opened("f", HF_OPEN_CREATE);
    has(file, "");
    assert_int_equal(io->write(file, "abc", 3, 0), 0);
    assert_int_equal(io->write(file, "XY", 2, 1), 0);
    io->start(file, 0, 3);
    has(file, "aXY");
    assert_int_equal(io->read(file, got, 1, 2), 0);
    assert_int_equal(got[0], 'Y');
    assert_int_equal(io->read(file, got, 2, 2), -EIO); /* it ends before */
    assert_int_equal(io->read(file, got, 1, 3), -EIO);
    assert_int_equal(io->read(file, got, 1, UINT32_MAX), -EIO);
    assert_int_equal(io->sync(file), 0);
    io->close(file);
    is("f", "aXY");
}

static void a_gap_is_zero(void **state)
{
    (void)state;
    static const char zeros[9000];
    char got[9000];
    struct hf_file *file = opened("f", HF_OPEN_CREATE);
    assert_int_equal(io->write(file, "end", 3, sizeof zeros), 0);
    assert_int_equal(io->read(file, got, sizeof got, 0), 0);
    assert_memory_equal(got, zeros, sizeof zeros);
    /* What was cut off does not come back. */
    assert_int_equal(io->write(file, "full", 4, 0), 0);
    assert_int_equal(io->truncate(file, 2), 0);
    has(file, "fu");
    assert_int_equal(io->write(file, "!", 1, 5), 0);
    assert_int_equal(io->read(file, got, 6, 0), 0);
    assert_memory_equal(got, "fu\0\0\0!", 6);
    io->close(file);
}

static void a_map_shows_later_writes(void **state)
{
    (void)state;
    const unsigned char *map;
    struct hf_file *file = opened("f", HF_OPEN_CREATE);
    assert_int_equal(io->write(file, "0123456789", 10, 0), 0);
    assert_int_equal(io->map(file, 10, &map), 0);
    assert_memory_equal(map, "0123456789", 10);
    assert_int_equal(io->write(file, "now", 3, 4), 0);
    assert_memory_equal(map, "0123now789", 10);
    io->unmap(file, map, 10);
    io->close(file);
}

static void an_open_file_may_be_emptied(void **state)
{
    (void)state;
    written("f", "before");
    struct hf_file *file = opened("f", HF_OPEN_WRITE);
    assert_int_equal(io->write(file, "B", 1, 0), 0);
    has(file, "Before");
    io->close(file);
    is("f", "Before");
    file = opened("f", HF_OPEN_CREATE);
    has(file, "");
    io->close(file);
    is("f", "");
}

/* ---- Names ---- */

static void names_move_and_go(void **state)
{
    (void)state;
    written("a", "A");
    written("b", "B");
    assert_int_equal(io->rename(dir, "a", "c"), 0);
    is_absent("a");
    is("c", "A");
    assert_int_equal(io->rename(dir, "c", "b"), 0); /* in place of another */
    is_absent("c");
    is("b", "A");
    assert_int_equal(io->rename(dir, "b", "b"), 0);
    is("b", "A");
    assert_int_equal(io->rename(dir, "c", "d"), -ENOENT);
    assert_int_equal(io->remove(dir, "b"), 0);
    is_absent("b");
    assert_int_equal(io->remove(dir, "b"), -ENOENT);
    assert_int_equal(io->dir_sync(dir), 0);
}

/* Who has a file open keeps it, whatever becomes of its name. */
static void an_open_file_outlives_its_name(void **state)
{
    (void)state;
    written("gone", "still here");
    written("replaced", "the old one");
    struct hf_file *gone = opened("gone", HF_OPEN_READ),
                   *replaced = opened("replaced", HF_OPEN_READ);
    assert_int_equal(io->remove(dir, "gone"), 0);
    written("new", "the new one");
    assert_int_equal(io->rename(dir, "new", "replaced"), 0);
    has(gone, "still here");
    has(replaced, "the old one");
    is("replaced", "the new one");
    io->close(gone);
    io->close(replaced);
}

struct names {
    int a, b, others, most;
};

static bool name_seen(void *arg, const char *name)
{
    struct names *n = arg;
    n->a += strcmp(name, "a") == 0;
    n->b += strcmp(name, "b") == 0;
    n->others += strcmp(name, "a") != 0 && strcmp(name, "b") != 0;
    return n->a + n->b + n->others < n->most;
}

static void names_are_listed_once(void **state)
{
    (void)state;
    struct names all = { .most = 100 }, one = { .most = 1 };
    assert_int_equal(io->dir_list(dir, name_seen, &all), 0);
    assert_int_equal(all.a + all.b + all.others, 0);
    written("a", "");
    written("b", "");
    assert_int_equal(io->dir_list(dir, name_seen, &all), 0);
    assert_true(all.a == 1 && all.b == 1 && all.others == 0);
    assert_int_equal(io->dir_list(dir, name_seen, &one), 0);
    assert_int_equal(one.a + one.b, 1); /* it was told to stop */
}

/* ---- Time and chance ---- */

static void time_goes_on_and_chance_is_chance(void **state)
{
    (void)state;
    unsigned char first[32] = { 0 }, second[32] = { 0 };
    uint64_t before = io->monotonic_ns(io->ctx);
    assert_true(io->wall_ms(io->ctx) > INT64_C(1700000000000));
    assert_int_equal(io->random(io->ctx, first, sizeof first), 0);
    assert_int_equal(io->random(io->ctx, second, sizeof second), 0);
    assert_memory_not_equal(first, second, sizeof first);
    assert_true(io->monotonic_ns(io->ctx) >= before);
}

/* ---- The system's alone ---- */

static void a_directory_that_cannot_be(void **state)
{
    (void)state;
    char absent[600];
    struct hf_dir *none;
    snprintf(absent, sizeof absent, "%s/absent", path);
    assert_int_equal(io->dir_open(io->ctx, absent, false, &none), -ENOENT);
    snprintf(absent, sizeof absent, "%s/absent/below", path);
    assert_int_equal(io->dir_open(io->ctx, absent, true, &none),
                     -ENOENT); /* its last component alone is made */
    written("f", "");
    snprintf(absent, sizeof absent, "%s/f", path);
    assert_int_equal(io->dir_open(io->ctx, absent, false, &none), -ENOTDIR);
    struct hf_file *file;
    assert_int_equal(io->open(dir, "no/where", HF_OPEN_CREATE, &file), -ENOENT);
}

/* A journal of many segments: descriptors and mappings stay few. Once each segment had a descriptor
 * of its own for ever, and a store of 5,232 of them could not start: "Too many open files". */

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

#define BOTH(name)                                                 \
    cmocka_unit_test_setup_teardown(name, setup_system, teardown), \
        cmocka_unit_test_setup_teardown(name, setup_memory, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(a_file_has_what_was_written),
        BOTH(a_gap_is_zero),
        BOTH(a_map_shows_later_writes),
        BOTH(an_open_file_may_be_emptied),
        BOTH(names_move_and_go),
        BOTH(an_open_file_outlives_its_name),
        BOTH(names_are_listed_once),
        BOTH(time_goes_on_and_chance_is_chance),
        cmocka_unit_test_setup_teardown(a_directory_that_cannot_be, setup_system, teardown),
        cmocka_unit_test(plain_segments_take_no_descriptor_each),
        cmocka_unit_test(packed_segments_are_opened_when_needed),
        cmocka_unit_test(packed_segments_give_their_descriptors_back),
        cmocka_unit_test(mappings_give_way_to_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
