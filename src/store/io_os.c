/* The operating system behind struct hf_io. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "store/io.h"
#include "store/touch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct hf_dir {
    int fd;
    int lock_fd;
};

struct hf_file {
    int fd;
};

static int os_dir_list(struct hf_dir *dir, bool (*each)(void *arg, const char *name), void *arg)
{
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    DIR *d = fdopendir(fd);
    if (!d) {
        int error = -errno;
        close(fd);
        return error;
    }
    struct dirent *entry;
    errno = 0;
    while ((entry = readdir(d)) != NULL) {
        if (entry->d_name[0] != '.' && !each(arg, entry->d_name))
            break;
        errno = 0;
    }
    int error = entry ? 0 : -errno;
    closedir(d);
    return error;
}

static bool name_found(void *arg, const char *name)
{
    (void)name;
    *(bool *)arg = true;
    return false;
}

/* Create the directory, and make its entry in the parent directory durable. If it exists already,
 * we may have created it just before a failure, or our caller just now: only a directory with files
 * in it is known to be durable. */
static int folder_make(const char *path)
{
    bool made = mkdir(path, 0700) == 0, used = false;
    if (!made && errno != EEXIST)
        return -errno;
    struct hf_dir self = { .fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .lock_fd = -1 };
    if (self.fd < 0)
        return -errno;
    int error = made ? 0 : os_dir_list(&self, name_found, &used);
    if (!error && !used) {
        int above = openat(self.fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        error = above < 0 || fsync(above) != 0 ? -errno : 0;
        if (above >= 0)
            close(above);
    }
    close(self.fd);
    /* If another user created it, we may have no access to the parent. */
    return error == -EACCES && !made ? 0 : error;
}

static int os_dir_open(void *ctx, const char *path, bool create, struct hf_dir **out)
{
    (void)ctx;
    struct hf_dir *dir = malloc(sizeof *dir);
    if (!dir)
        return -ENOMEM;
    int error = create ? folder_make(path) : 0;
    if (error) {
        free(dir);
        return error;
    }
    dir->lock_fd = -1;
    dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd < 0) {
        error = -errno;
        free(dir);
        return error;
    }
    *out = dir;
    return 0;
}

static void os_dir_close(struct hf_dir *dir)
{
    if (dir->lock_fd >= 0) {
        /* The name of a previous holder would mislead the next reader. */
        if (ftruncate(dir->lock_fd, 0) != 0)
            (void)errno;
        close(dir->lock_fd);
    }
    close(dir->fd);
    free(dir);
}

static int os_dir_sync(struct hf_dir *dir)
{
    return fsync(dir->fd) == 0 ? 0 : -errno;
}

static int os_rename(struct hf_dir *dir, const char *from, const char *to)
{
    return renameat(dir->fd, from, dir->fd, to) == 0 ? 0 : -errno;
}

static int os_remove(struct hf_dir *dir, const char *name)
{
    return unlinkat(dir->fd, name, 0) == 0 ? 0 : -errno;
}

static int os_write(struct hf_file *file, const void *data, size_t size, uint64_t at);

/* 0, -EBUSY or another negative errno. */
static int lock_take(int fd)
{
    /* An audit tests the lock by taking it for an instant: retry, so that we do not refuse because
     * of that. */
    for (int tries = 20; flock(fd, LOCK_EX | LOCK_NB) != 0;
         nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL))
        if (errno != EINTR && (errno != EWOULDBLOCK || --tries == 0))
            return errno == EWOULDBLOCK ? -EBUSY : -errno;
    return 0;
}

/* Read the lock holder's name from the file LOCK; "" if there is none. */
static void holder_read(const struct hf_dir *dir, char *holder, size_t holder_size)
{
    int fd = openat(dir->fd, "LOCK", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : pread(fd, holder, holder_size - 1, 0);
    holder[n > 0 ? n : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

/* The lock on the directory itself keeps a second process out: it cannot be removed without the
 * store. The file LOCK is locked too: version 0.1 knows no other lock, and some network file
 * systems show a directory's lock only to this machine. */
static int os_lock(struct hf_dir *dir, const char *who, char *holder, size_t holder_size)
{
    int error = lock_take(dir->fd), fd = -1;
    if (!error) {
        fd = openat(dir->fd, "LOCK", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        error = fd < 0 ? -errno : lock_take(fd);
    }
    if (error == -EBUSY)
        holder_read(dir, holder, holder_size);
    if (!error) {
        struct hf_file file = { fd };
        error = ftruncate(fd, 0) != 0 ? -errno : os_write(&file, who, strlen(who), 0);
        /* A store on a full disk must still open for reading and replays. */
        if (error == -ENOSPC || error == -EDQUOT || error == -EFBIG)
            error = 0;
    }
    if (error && fd >= 0)
        close(fd);
    if (!error)
        dir->lock_fd = fd;
    return error;
}

static bool os_dir_shared(struct hf_dir *dir)
{
    struct stat st;
    return fstat(dir->fd, &st) == 0 && (st.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH)) != 0;
}

/* A directory or a pipe with the name of a file cannot be read, and its size means nothing. */
static int file_check(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    return S_ISREG(st.st_mode) ? 0 : S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
}

static int os_open(struct hf_dir *dir, const char *name, enum hf_open_how how, struct hf_file **out)
{
    static const int flags[] = { [HF_OPEN_READ] =
                                     O_RDONLY | O_NONBLOCK, /* do not wait for a pipe */
                                 [HF_OPEN_WRITE] = O_RDWR,
                                 [HF_OPEN_CREATE] = O_RDWR | O_CREAT | O_TRUNC };
    struct hf_file *file = malloc(sizeof *file);
    if (!file)
        return -ENOMEM;
    file->fd = openat(dir->fd, name, flags[how] | O_CLOEXEC, 0600);
    int error = file->fd < 0 ? -errno : file_check(file->fd);
    if (error) {
        if (file->fd >= 0)
            close(file->fd);
        free(file);
        return error;
    }
    *out = file;
    return 0;
}

static void os_close(struct hf_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    free(file);
}

static int os_size(struct hf_file *file, uint64_t *out)
{
    struct stat st;
    if (fstat(file->fd, &st) != 0)
        return -errno;
    *out = (uint64_t)st.st_size;
    return 0;
}

static int os_read(struct hf_file *file, void *data, size_t size, uint64_t at)
{
    unsigned char *p = data;
    while (size > 0) {
        ssize_t n = pread(file->fd, p, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        p += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

static int os_write(struct hf_file *file, const void *data, size_t size, uint64_t at)
{
    const unsigned char *p = data;
    while (size > 0) {
        ssize_t n = pwrite(file->fd, p, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        p += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

static void os_start(struct hf_file *file, uint64_t at, size_t size)
{
    sync_file_range(file->fd, (off_t)at, (off_t)size, SYNC_FILE_RANGE_WRITE);
}

static int os_truncate(struct hf_file *file, uint64_t size)
{
    return ftruncate(file->fd, (off_t)size) == 0 ? 0 : -errno;
}

static int os_sync(struct hf_file *file)
{
    return fdatasync(file->fd) == 0 ? 0 : -errno;
}

static int os_map(struct hf_file *file, size_t size, const unsigned char **out)
{
    int error = hf_touch_ready();
    if (error)
        return error;
    void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, file->fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    *out = p;
    return 0;
}

/* munmap and madvise take a pointer to non-const; the mapping itself is read-only. */
static void *unconst(const unsigned char *data)
{
    return (void *)(uintptr_t)data;
}

static void os_unmap(struct hf_file *file, const unsigned char *data, size_t size)
{
    (void)file;
    munmap(unconst(data), size);
}

static int os_touch(struct hf_file *file, const unsigned char *map, uint64_t at, size_t size)
{
    (void)file;
    return hf_touch(map + at, size);
}

static void os_detach(struct hf_file *file)
{
    close(file->fd);
    file->fd = -1;
}

static hf_time os_wall_ms(void *ctx)
{
    (void)ctx;
    return hf_clock_wall_ms();
}

static hf_time os_boot_ms(void *ctx)
{
    (void)ctx;
    return hf_clock_boot_ms();
}

static uint64_t os_monotonic_ns(void *ctx)
{
    (void)ctx;
    return (uint64_t)hf_clock_monotonic_ns();
}

static int os_random(void *ctx, void *data, size_t size)
{
    (void)ctx;
    return getrandom(data, size, 0) == (ssize_t)size ? 0 : -EIO;
}

static const struct hf_io os = {
    .dir_open = os_dir_open,
    .dir_close = os_dir_close,
    .dir_sync = os_dir_sync,
    .dir_list = os_dir_list,
    .rename = os_rename,
    .remove = os_remove,
    .lock = os_lock,
    .dir_shared = os_dir_shared,
    .open = os_open,
    .close = os_close,
    .size = os_size,
    .read = os_read,
    .write = os_write,
    .start = os_start,
    .sync = os_sync,
    .truncate = os_truncate,
    .map = os_map,
    .unmap = os_unmap,
    .touch = os_touch,
    .detach = os_detach,
    .wall_ms = os_wall_ms,
    .boot_ms = os_boot_ms,
    .monotonic_ns = os_monotonic_ns,
    .random = os_random,
};

const struct hf_io *hf_io_os(void)
{
    return &os;
}
