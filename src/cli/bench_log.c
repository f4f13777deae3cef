/* The bare log: only append and fdatasync, to files that were filled before. */
#include "cli/bench.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 64 << 20, STEP = 1 << 20, BLOCK = 4096, WRITE_MAX = 16 << 20 };

struct hf_bench_log {
    int fd;
    char name[4096];
    size_t at;
    unsigned char *bytes;
};

struct hf_bench_log *hf_bench_log_open(const char *dir)
{
    struct hf_bench_log *log = calloc(1, sizeof *log);
    if (!log)
        return NULL;
    log->bytes = malloc(WRITE_MAX);
    snprintf(log->name, sizeof log->name, "%s/bare.log", dir);
    log->fd = open(log->name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = log->bytes && log->fd >= 0;
    if (good) {
        memset(log->bytes, 0, WRITE_MAX);
        for (size_t at = 0; good && at < FILE_BYTES; at += STEP)
            good = pwrite(log->fd, log->bytes, STEP, (off_t)at) == STEP && fdatasync(log->fd) == 0;
        /* Not zeros: the file system or the disk could write zeros faster than the store's
         * bytes. */
        for (size_t i = 0; i < WRITE_MAX; i++)
            log->bytes[i] = (unsigned char)(i * 2654435761U >> 13);
    }
    if (!good) {
        hf_bench_log_close(log);
        return NULL;
    }
    return log;
}

void hf_bench_log_close(struct hf_bench_log *log)
{
    if (log->fd >= 0) {
        close(log->fd);
        unlink(log->name);
    }
    free(log->bytes);
    free(log);
}

bool hf_bench_log_run(struct hf_bench_log *log, unsigned group, double bytes, double seconds,
                      struct hf_bench_point *out)
{
    size_t size = ((size_t)bytes + BLOCK - 1) / BLOCK * BLOCK;
    struct hf_bench_times times = { 0 };
    uint64_t groups = 0;
    if (size > WRITE_MAX)
        size = WRITE_MAX;
    double begun = hf_bench_clock(), cpu = hf_bench_cpu();
    double now = begun;
    while (now - begun < seconds) {
        if (log->at + size > FILE_BYTES)
            log->at = 0;
        if (pwrite(log->fd, log->bytes, size, (off_t)log->at) != (ssize_t)size ||
            fdatasync(log->fd) != 0)
            return false;
        log->at += size;
        double then = now;
        now = hf_bench_clock();
        groups++;
        if (!hf_bench_times_add(&times, (now - then) * 1e6))
            return false;
    }
    *out =
        (struct hf_bench_point){ .group = group,
                                 .per_second = (double)(groups * group) / (now - begun),
                                 .cpu_us = (hf_bench_cpu() - cpu) * 1e6 / (double)(groups * group),
                                 .group_bytes = (double)size };
    hf_bench_times_end(&times, out);
    return true;
}
