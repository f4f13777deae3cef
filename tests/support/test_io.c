#define _GNU_SOURCE
#include "support/test_io.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The real handles, with the test beside them. */
struct hf_dir {
    struct test_io *test;
    void *real;
};

struct hf_file {
    struct test_io *test;
    void *real;
    char name[64];
    bool detached;
};

/* The note `closed`. */
static bool is_note(const struct hf_file *file)
{
    return strcmp(file->name, "closed.tmp") == 0;
}

static const struct hf_io *os(void)
{
    return hf_io_os();
}

/* Counts down; true when it is this one's turn to fail. */
static bool due(_Atomic int *countdown)
{
    int n = atomic_load(countdown);
    while (n > 0)
        if (atomic_compare_exchange_weak(countdown, &n, n - 1))
            return n == 1;
    return false;
}

static int ask(struct test_io *t, enum test_call call, const char *name)
{
    return t->before ? t->before(t, call, name) : 0;
}

static void room_back(struct test_io *t, uint64_t bytes)
{
    if (atomic_load(&t->room) >= 0)
        atomic_fetch_add(&t->room, (int64_t)bytes);
}

static int t_dir_open(void *ctx, const char *path, bool create, struct hf_dir **out)
{
    struct hf_dir *dir = malloc(sizeof *dir);
    struct hf_dir *real;
    int error = os()->dir_open(NULL, path, create, &real);
    if (error) {
        free(dir);
        return error;
    }
    dir->test = ctx;
    dir->real = real;
    *out = dir;
    return 0;
}

static void t_dir_close(struct hf_dir *dir)
{
    os()->dir_close(dir->real);
    free(dir);
}

static int t_dir_sync(struct hf_dir *dir)
{
    int error = ask(dir->test, TEST_DIR_SYNC, NULL);
    return error ? error : os()->dir_sync(dir->real);
}

static int t_dir_list(struct hf_dir *dir, bool (*each)(void *arg, const char *name), void *arg)
{
    return os()->dir_list(dir->real, each, arg);
}

static int t_rename(struct hf_dir *dir, const char *from, const char *to)
{
    int error = ask(dir->test, TEST_RENAME, to);
    return error ? error : os()->rename(dir->real, from, to);
}

static int t_remove(struct hf_dir *dir, const char *name)
{
    struct hf_file *real;
    uint64_t size = 0;
    int error = ask(dir->test, TEST_REMOVE, name);
    if (error)
        return error;
    if (os()->open(dir->real, name, HF_OPEN_READ, &real) == 0) {
        if (os()->size(real, &size) != 0)
            size = 0;
        os()->close(real);
    }
    error = os()->remove(dir->real, name);
    if (!error)
        room_back(dir->test, size);
    return error;
}

static int t_lock(struct hf_dir *dir, const char *who, char *holder, size_t holder_size)
{
    return os()->lock(dir->real, who, holder, holder_size);
}

static bool t_dir_shared(struct hf_dir *dir)
{
    return os()->dir_shared(dir->real);
}

static int t_open(struct hf_dir *dir, const char *name, enum hf_open_how how, struct hf_file **out)
{
    if (due(&dir->test->fail_open))
        return -EMFILE;
    struct hf_file *real;
    int error = os()->open(dir->real, name, how, &real);
    if (error)
        return error;
    struct hf_file *file = malloc(sizeof *file);
    file->test = dir->test;
    file->real = real;
    snprintf(file->name, sizeof file->name, "%s", name);
    file->detached = false;
    int open_now = atomic_fetch_add(&dir->test->descriptors, 1) + 1;
    int most = atomic_load(&dir->test->descriptors_most);
    while (open_now > most &&
           !atomic_compare_exchange_weak(&dir->test->descriptors_most, &most, open_now))
        ;
    *out = file;
    return 0;
}

static void t_close(struct hf_file *file)
{
    if (!file->detached)
        atomic_fetch_sub(&file->test->descriptors, 1);
    os()->close(file->real);
    free(file);
}

static int t_size(struct hf_file *file, uint64_t *out)
{
    return os()->size(file->real, out);
}

static int t_read(struct hf_file *file, void *data, size_t size, uint64_t at)
{
    return os()->read(file->real, data, size, at);
}

static int t_write(struct hf_file *file, const void *data, size_t size, uint64_t at)
{
    struct test_io *t = file->test;
    uint64_t had = 0;
    atomic_fetch_add(&t->writes, 1);
    if (!is_note(file) && due(&t->fail_write)) {
        size_t torn = atomic_load(&t->torn);
        int error = torn ? os()->write(file->real, data, torn < size ? torn : size, at) : 0;
        return error ? error : -EIO;
    }
    int64_t room = atomic_load(&t->room);
    if (room >= 0 && os()->size(file->real, &had) == 0 && at + size > had) {
        int64_t growth = (int64_t)(at + size - had);
        if (growth > room)
            return atomic_load(&t->room_error) ? -atomic_load(&t->room_error) : -ENOSPC;
        atomic_fetch_sub(&t->room, growth);
    }
    return os()->write(file->real, data, size, at);
}

static int t_sync(struct hf_file *file)
{
    struct test_io *t = file->test;
    /* The background thread notes each new segment when it comes to it: who waits for a sync means
     * that of a commit. */
    if (is_note(file))
        return os()->sync(file->real);
    atomic_fetch_add(&t->syncs, 1);
    if (due(&t->fail_sync))
        return -EIO;
    int slow = atomic_load(&t->slow_sync_us);
    if (slow)
        usleep((useconds_t)slow);
    while (atomic_load(&t->stop_sync))
        usleep(500);
    return os()->sync(file->real);
}

static void t_start(struct hf_file *file, uint64_t at, size_t size)
{
    os()->start(file->real, at, size);
}

static int t_truncate(struct hf_file *file, uint64_t size)
{
    uint64_t had = 0;
    int error = ask(file->test, TEST_TRUNCATE, file->name);
    if (!error)
        error = os()->size(file->real, &had);
    if (!error)
        error = os()->truncate(file->real, size);
    if (!error && had > size)
        room_back(file->test, had - size);
    return error;
}

static int t_map(struct hf_file *file, size_t size, const unsigned char **out)
{
    return os()->map(file->real, size, out);
}

static void t_unmap(struct hf_file *file, const unsigned char *data, size_t size)
{
    os()->unmap(file->real, data, size);
}

static int t_touch(struct hf_file *file, const unsigned char *map, uint64_t at, size_t size)
{
    const struct test_io *t = file->test;
    uint64_t bad = atomic_load(&t->unreadable);
    if (atomic_load(&t->unreadable_snapshot) && strstr(file->name, ".snap"))
        return -EIO;
    int only = atomic_load(&t->unreadable_segment);
    if (only && atoi(file->name + strcspn(file->name, "0")) != only)
        bad = 0;
    if (bad && strstr(file->name, "journal-") && bad < at + size && bad + 512 > at)
        return -EIO;
    return os()->touch(file->real, map, at, size);
}

static void t_detach(struct hf_file *file)
{
    atomic_fetch_sub(&file->test->descriptors, 1);
    file->detached = true;
    os()->detach(file->real);
}

static hf_time t_wall_ms(void *ctx)
{
    struct test_io *t = ctx;
    hf_time wall = atomic_load(&t->wall);
    atomic_fetch_add(&t->looks, 1);
    return wall ? wall : os()->wall_ms(NULL);
}

static hf_time t_boot_ms(void *ctx)
{
    struct test_io *t = ctx;
    hf_time boot = atomic_load(&t->boot), wall = t_wall_ms(t);
    if (boot)
        return boot;
    while (atomic_flag_test_and_set(&t->following))
        ;
    if (wall > t->followed)
        t->follows += wall - t->followed;
    t->followed = wall;
    boot = t->follows;
    atomic_flag_clear(&t->following);
    return boot;
}

static uint64_t t_monotonic_ns(void *ctx)
{
    struct test_io *t = ctx;
    uint64_t step = atomic_load(&t->step_ns);
    return os()->monotonic_ns(NULL) + atomic_fetch_add(&t->later_ns, step) + step;
}

static int t_random(void *ctx, void *data, size_t size)
{
    (void)ctx;
    return os()->random(NULL, data, size);
}

void test_io_init(struct test_io *t)
{
    memset(t, 0, sizeof *t);
    atomic_store(&t->room, -1);
    t->io = (struct hf_io){ .ctx = t,
                            .dir_open = t_dir_open,
                            .dir_close = t_dir_close,
                            .dir_sync = t_dir_sync,
                            .dir_list = t_dir_list,
                            .rename = t_rename,
                            .remove = t_remove,
                            .lock = t_lock,
                            .dir_shared = t_dir_shared,
                            .open = t_open,
                            .close = t_close,
                            .size = t_size,
                            .read = t_read,
                            .write = t_write,
                            .start = t_start,
                            .sync = t_sync,
                            .truncate = t_truncate,
                            .map = t_map,
                            .unmap = t_unmap,
                            .touch = t_touch,
                            .detach = t_detach,
                            .wall_ms = t_wall_ms,
                            .boot_ms = t_boot_ms,
                            .monotonic_ns = t_monotonic_ns,
                            .random = t_random };
}

char *test_dir_make(void)
{
    const char *tmp = getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&path, "%s/holdfast-test-XXXXXX", tmp ? tmp : "/tmp") < 0 || !mkdtemp(path))
        abort();
    return path;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void test_dir_remove(char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}
