#include "audit/directory.h"
#include "base/filename.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int hf_audit_open(int dir, const char *name)
{
    struct stat st;
    /* Without O_NONBLOCK, opening a pipe would block until another process writes to it. */
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    int error = fstat(fd, &st) != 0   ? errno
                : S_ISDIR(st.st_mode) ? EISDIR
                : S_ISREG(st.st_mode) ? 0
                                      : ENXIO;
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

bool hf_audit_read_at(int fd, void *out, size_t size, uint64_t at, int *error)
{
    unsigned char *p = out;
    while (size > 0) {
        ssize_t n = pread(fd, p, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            *error = errno;
        if (n <= 0)
            return false;
        p += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return true;
}

/* The number in the name of a segment; 0 for any other name. */
static uint64_t segment_number(const char *name)
{
    uint64_t number;
    enum hf_filename kind = hf_filename_read(name, &number);
    return kind == HF_FILENAME_LOG || kind == HF_FILENAME_PACK ? number : 0;
}

/* Every name in the directory. 0 or a negative errno. */
static int each_name(int dir, void (*each)(void *arg, const char *name), void *arg)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int error = -errno;
        if (fd >= 0)
            close(fd);
        return error;
    }
    for (struct dirent *e; errno = 0, (e = readdir(d)) != NULL;)
        each(arg, e->d_name);
    int error = -errno; /* unlisted names could be anything */
    closedir(d);
    return error;
}

struct look {
    int dir;
    uint64_t *last, *bytes;
};

static void look_at(void *arg, const char *name)
{
    const struct look *l = arg;
    uint64_t n = segment_number(name);
    struct stat st;
    if (n > *l->last)
        *l->last = n;
    if (n > 0 && l->bytes && fstatat(l->dir, name, &st, 0) == 0 && st.st_size > 0)
        *l->bytes += (uint64_t)st.st_size;
}

bool hf_audit_directory_look(int dir, uint64_t *last, uint64_t *bytes)
{
    struct look l = { dir, last, bytes };
    int error = each_name(dir, look_at, &l);
    errno = -error;
    return error == 0;
}

struct next {
    uint64_t after, found;
};

static void next_at(void *arg, const char *name)
{
    struct next *next = arg;
    uint64_t n = segment_number(name);
    if (n > next->after && (next->found == 0 || n < next->found))
        next->found = n;
}

uint64_t hf_audit_directory_next(int dir, uint64_t after)
{
    struct next next = { after, 0 };
    return each_name(dir, next_at, &next) == 0 ? next.found : after + 1;
}

static void remains_at(void *arg, const char *name)
{
    uint64_t number;
    enum hf_filename kind = hf_filename_read(name, &number);
    *(bool *)arg |= hf_filename_follows_batch(kind, number);
}

int hf_audit_directory_remains(int dir, bool *found)
{
    *found = false;
    return each_name(dir, remains_at, found);
}

static void snapshot_at(void *arg, const char *name)
{
    uint64_t *start = arg, at;
    if (hf_filename_read(name, &at) == HF_FILENAME_SNAPSHOT && at > *start)
        *start = at;
}

int hf_audit_directory_snapshot(int dir, uint64_t *start)
{
    *start = 0;
    return each_name(dir, snapshot_at, start);
}

/* To find out, try: if a shared lock is granted at once, no process holds the lock. */
static bool locked(int fd)
{
    if (fd < 0)
        return false;
    if (flock(fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    return false;
}

void hf_audit_holder(const char *dir, char line[256])
{
    line[0] = '\0';
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    int note = openat(fd, "LOCK", O_RDONLY | O_CLOEXEC);
    /* The directory's lock counts; programs of version 0.1 lock only the LOCK file. */
    if (locked(fd) || locked(note)) {
        ssize_t n = note < 0 ? 0 : pread(note, line, 255, 0);
        line[n > 0 ? n : 0] = '\0';
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '\0')
            snprintf(line, 256, "an unknown process");
    }
    if (note >= 0)
        close(note);
    close(fd);
}
