#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4096, BLOCKS = 4096 };

static bool refuse(const char *what)
{
    fprintf(stderr, "hf_load: disk: %s: %s\n", what, strerror(errno));
    return false;
}

/* Write the file once, so that a sync later has data to write and no size to change. */
static bool prepare(int fd, const char *block)
{
    for (off_t i = 0; i < BLOCKS; i++)
        if (pwrite(fd, block, BLOCK, i * BLOCK) != BLOCK)
            return refuse("write");
    return fsync(fd) == 0 || refuse("fsync");
}

static bool measure(int fd, const char *block, double seconds, struct hf_load_histogram *h)
{
    uint64_t end = hf_load_now() + (uint64_t)(seconds * 1e9), before = hf_load_now();
    for (off_t i = 0; before < end; i++) {
        if (pwrite(fd, block, BLOCK, i % BLOCKS * BLOCK) != BLOCK)
            return refuse("write");
        if (fdatasync(fd) != 0)
            return refuse("fdatasync");
        uint64_t now = hf_load_now();
        hf_load_histogram_add(h, now - before);
        before = now;
    }
    return true;
}

bool hf_load_disk(const char *dir, double seconds)
{
    static struct hf_load_histogram h;
    static char block[BLOCK];
    char path[4096];
    snprintf(path, sizeof path, "%s/hf_load.XXXXXX", dir);
    int fd = mkstemp(path);
    if (fd < 0)
        return refuse(path);
    (void)unlink(path);
    memset(block, 'h', sizeof block);
    bool done = prepare(fd, block) && measure(fd, block, seconds, &h);
    close(fd);
    if (done)
        printf("fdatasync_p50_us %.1f\nfdatasync_p99_us %.1f\nfdatasync_count %llu\n",
               hf_load_histogram_at(&h, 0.5), hf_load_histogram_at(&h, 0.99),
               (unsigned long long)h.total);
    return done;
}
