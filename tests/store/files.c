/* What the store may ask of files (store/io.h), asked of the system's and of those in memory: both
 * answer alike. */
#include "support/test.h"
#include "support/test_io.h"

#include <errno.h>

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

int main(void)
{
#define BOTH(name)                                                 \
    cmocka_unit_test_setup_teardown(name, setup_system, teardown), \
        cmocka_unit_test_setup_teardown(name, setup_memory, teardown)
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
