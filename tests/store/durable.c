/* Directories, names and removed files: what must be durable before the store counts on it. */
#define _GNU_SOURCE
#include "simulate/disk.h"
#include "support/test.h"
#include "support/test_io.h"

#include "holdfast.h"
#include "store/journal/maintain.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A new store's directory was made and its own files were synced, but nothing synced the directory
 * above: after a power cut all of it could be gone, acknowledged writes and all. */

/* ---- What is synced: this fsync stands in front of the system's ---- */

static struct {
    dev_t device;
    ino_t inode;
    unsigned syncs; /* of that directory */
    int fail;       /* how many of them fail from now on */
} above;

int fsync(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_dev == above.device && st.st_ino == above.inode) {
        if (above.fail > 0) {
            above.fail--;
            errno = EIO;
            return -1;
        }
        above.syncs++;
    }
    return (int)syscall(SYS_fsync, fd);
}

static void watch(const char *dir)
{
    struct stat st;
    assert_int_equal(stat(dir, &st), 0);
    memset(&above, 0, sizeof above);
    above.device = st.st_dev;
    above.inode = st.st_ino;
}

/* ---- Stores below it ---- */

static enum hf_status open_in(const char *dir, const char *name, struct hf_db **db,
                              struct hf_error *why)
{
    char path[512];
    struct hf_options options = { .segment_max_bytes = 65536, .no_background = true };
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return hf_open(path, &options, db, why);
}

static void open_and_close(const char *dir, const char *name)
{
    struct hf_db *db;
    struct hf_error why;
    if (open_in(dir, name, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    hf_close(db);
}

static void a_new_directory_is_durable_when_the_store_is_open(void **state)
{
    (void)state;
    char *dir = test_dir_make();
    watch(dir);
    open_and_close(dir, "store");
    assert_true(above.syncs > 0);
    /* An old one was made durable long ago. */
    above.syncs = 0;
    open_and_close(dir, "store");
    assert_int_equal(above.syncs, 0);
    /* However it is spelt. */
    open_and_close(dir, "another/");
    assert_true(above.syncs > 0);
    test_dir_remove(dir);
}

static void a_directory_that_cannot_be_made_durable_is_refused(void **state)
{
    (void)state;
    struct hf_db *db;
    struct hf_error why;
    char *dir = test_dir_make();
    watch(dir);
    above.fail = 2;
    assert_int_equal(open_in(dir, "store", &db, &why), HF_STORAGE_FAILURE);
    assert_null(db);
    assert_non_null(strstr(why.text, strerror(EIO)));
    /* It is there now, and still not durable: finding it is no reason to trust it. */
    assert_int_equal(open_in(dir, "store", &db, &why), HF_STORAGE_FAILURE);
    assert_int_equal(above.syncs, 0);
    open_and_close(dir, "store");
    assert_true(above.syncs > 0);
    test_dir_remove(dir);
}

static void an_empty_directory_that_somebody_just_made_is_made_durable(void **state)
{
    (void)state;
    char *dir = test_dir_make();
    char path[512];
    snprintf(path, sizeof path, "%s/store", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    watch(dir);
    open_and_close(dir, "store");
    assert_true(above.syncs > 0);
    test_dir_remove(dir);
}

/* The process died, or was told of a failure, between giving the next segment its name and making
 * the name durable. The next start found the segment and wrote into it; the name was still not
 * durable, and a power cut took it away with everything that had been acknowledged since. (Seed
 * 40908 of the simulator.) */

struct world {
    struct sim_disk_owner owner;
    struct sim_disk *disk;
    struct hf_db *db;
    bool names_fail;
    unsigned failed;
    uint64_t random, keys;
};

static int before(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size)
{
    struct world *w = arg;
    (void)name;
    (void)at;
    (void)size;
    if (call != SIM_DIR_SYNC || !w->names_fail)
        return 0;
    w->failed++;
    return -EIO;
}

/* Whatever was not synced is lost. */
static uint32_t choose(void *arg, uint32_t n)
{
    (void)arg;
    (void)n;
    return 0;
}

static hf_time wall_ms(void *arg)
{
    (void)arg;
    return INT64_C(1700000000000);
}

static uint64_t monotonic_ns(void *arg)
{
    (void)arg;
    return 1;
}

static int fill_random(void *arg, void *data, size_t size)
{
    struct world *w = arg;
    unsigned char *p = data;
    for (size_t i = 0; i < size; i++)
        p[i] = (unsigned char)test_random(&w->random);
    return 0;
}

static void world_open(struct world *w)
{
    struct hf_options options = { .no_background = true,
                                  .segment_max_bytes = 131072,
                                  .keep_plain = true,
                                  .io = sim_disk_io(w->disk) };
    struct hf_error why;
    if (hf_open("store", &options, &w->db, &why) != HF_OK)
        fail_msg("cannot open: %s", why.text);
}

/* Write with key `n`; was it a replay? */
static bool write_once(struct world *w, uint64_t n)
{
    static const char value[3000] = "v";
    char key[32];
    struct hf_result result = HF_RESULT_INIT;
    snprintf(key, sizeof key, "key-%llu", (unsigned long long)n);
    struct hf_request r = { .action = HF_WRITE,
                            .key = hf_str(key),
                            .write = { .name = hf_str("file"),
                                       .value = hf_mem(value, sizeof value) } };
    assert_int_equal(hf_do(w->db, &r, &result), HF_OK);
    bool replayed = result.replayed;
    hf_result_clear(&result);
    return replayed;
}

static void what_is_acknowledged_in_a_segment_survives(void **state)
{
    (void)state;
    struct world w = { .random = 7 };
    w.owner = (struct sim_disk_owner){ .arg = &w,
                                       .before = before,
                                       .choose = choose,
                                       .wall_ms = wall_ms,
                                       .monotonic_ns = monotonic_ns,
                                       .random = fill_random };
    w.disk = sim_disk_new(&w.owner);
    world_open(&w);
    /* Half of the first segment; then the next one is named, and its name cannot be made
     * durable. */
    while (w.keys < 15)
        assert_false(write_once(&w, w.keys++));
    w.names_fail = true;
    for (int i = 0; i < 20; i++)
        hf_maintain(w.db);
    assert_true(w.failed > 0);
    hf_close(w.db);
    w.names_fail = false;
    world_open(&w);
    while (w.keys < 50)
        assert_false(write_once(&w, w.keys++));
    sim_disk_cut(w.disk);
    hf_close(w.db);
    sim_disk_restart(w.disk);
    world_open(&w);
    for (uint64_t n = 0; n < w.keys; n++)
        if (!write_once(&w, n))
            fail_msg("key %llu was acknowledged, and is lost", (unsigned long long)n);
    hf_close(w.db);
    sim_disk_free(w.disk);
}

/* Getting rid of a file while another one was on its way out forgot the first: its handle leaked,
 * and half of it stayed on the disk as *.tmp. One that could not be opened under its new name
 * stayed whole. */

enum { MIB = 1 << 20 };

struct shop {
    char *dir; /* owned */
    struct test_io io;
    struct hf_options options;
    struct hf_journal *j;
};

static void shop_open(struct shop *s)
{
    struct hf_error why;
    s->dir = test_dir_make();
    test_io_init(&s->io);
    s->options = (struct hf_options){ .segment_max_bytes = 65536, .io = &s->io.io };
    if (hf_journal_open(s->dir, &s->options, &s->io.io, &s->j, &why) != HF_OK)
        fail_msg("%s", why.text);
}

static void shop_close(struct shop *s)
{
    hf_journal_close(s->j);
    test_dir_remove(s->dir);
}

static void file_make(const struct shop *s, const char *name, off_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
}

static bool is_there(const struct shop *s, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    return access(path, F_OK) == 0;
}

static void settle(struct shop *s)
{
    int steps = 0;
    while (hf_journal_maintain(s->j, NULL))
        assert_true(++steps < 1000);
}

static void the_first_goes_on_and_the_second_goes_at_once(void **state)
{
    (void)state;
    struct shop s;
    shop_open(&s);
    settle(&s); /* what has to be prepared */
    file_make(&s, "first", 13 * MIB);
    file_make(&s, "second", 9 * MIB);
    hf_journal_shed(s.j, "first", "first.tmp");
    assert_true(hf_journal_maintain(s.j, NULL)); /* one piece of it */
    hf_journal_shed(s.j, "second", "second.tmp");
    assert_false(is_there(&s, "second") || is_there(&s, "second.tmp"));
    assert_true(is_there(&s, "first.tmp"));
    settle(&s);
    assert_false(is_there(&s, "first") || is_there(&s, "first.tmp"));
    /* And there is room for the next. */
    file_make(&s, "third", 9 * MIB);
    hf_journal_shed(s.j, "third", "third.tmp");
    assert_true(is_there(&s, "third.tmp"));
    settle(&s);
    assert_false(is_there(&s, "third.tmp"));
    shop_close(&s);
}

static void one_on_its_way_out_is_gone_when_the_store_closes(void **state)
{
    (void)state;
    struct shop s;
    shop_open(&s);
    file_make(&s, "first", 13 * MIB);
    file_make(&s, "second", 9 * MIB);
    hf_journal_shed(s.j, "first", "first.tmp");
    hf_journal_shed(s.j, "second", "second.tmp");
    hf_journal_close(s.j);
    s.j = NULL;
    assert_false(is_there(&s, "first.tmp") || is_there(&s, "second") || is_there(&s, "second.tmp"));
    shop_close(&s);
}

static void one_that_cannot_be_opened_goes_at_once(void **state)
{
    (void)state;
    struct shop s;
    shop_open(&s);
    file_make(&s, "first", 9 * MIB);
    s.io.fail_open = 1;
    hf_journal_shed(s.j, "first", "first.tmp");
    assert_int_equal(s.io.fail_open, 0);
    assert_false(is_there(&s, "first") || is_there(&s, "first.tmp"));
    shop_close(&s);
}

static int no_rename(struct test_io *t, enum test_call call, const char *name)
{
    (void)t;
    (void)name;
    return call == TEST_RENAME ? -EIO : 0;
}

static void one_that_cannot_be_renamed_goes_at_once(void **state)
{
    (void)state;
    struct shop s;
    shop_open(&s);
    file_make(&s, "first", 9 * MIB);
    s.io.before = no_rename;
    hf_journal_shed(s.j, "first", "first.tmp");
    assert_false(is_there(&s, "first") || is_there(&s, "first.tmp"));
    shop_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_directory_is_durable_when_the_store_is_open),
        cmocka_unit_test(a_directory_that_cannot_be_made_durable_is_refused),
        cmocka_unit_test(an_empty_directory_that_somebody_just_made_is_made_durable),
        cmocka_unit_test(what_is_acknowledged_in_a_segment_survives),
        cmocka_unit_test(the_first_goes_on_and_the_second_goes_at_once),
        cmocka_unit_test(one_on_its_way_out_is_gone_when_the_store_closes),
        cmocka_unit_test(one_that_cannot_be_opened_goes_at_once),
        cmocka_unit_test(one_that_cannot_be_renamed_goes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
