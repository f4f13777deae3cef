/* A new store's directory was made and its own files were synced, but nothing synced the directory
 * above: after a power cut all of it could be gone, acknowledged writes and all. */
#define _GNU_SOURCE
#include "holdfast.h"
#include "support/test.h"
#include "support/test_io.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_directory_is_durable_when_the_store_is_open),
        cmocka_unit_test(a_directory_that_cannot_be_made_durable_is_refused),
        cmocka_unit_test(an_empty_directory_that_somebody_just_made_is_made_durable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
