#include "simulate/record.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void sim_record_free(struct sim_record *record)
{
    free(record->ranges);
    *record = (struct sim_record){ 0 };
}

/* ---- Merging ---- */

static void append(struct sim_record *r, const struct sim_range *range)
{
    if (r->count == r->room) {
        size_t room = r->room ? r->room * 2 : 64;
        struct sim_range *ranges = realloc(r->ranges, room * sizeof *ranges);
        HF_ASSERT(ranges);
        r->ranges = ranges;
        r->room = room;
    }
    r->ranges[r->count++] = *range;
}

static bool same_runs(const struct sim_range *a, const struct sim_range *b)
{
    return a->operations == b->operations && a->version == b->version;
}

static int range_compare(const void *a, const void *b)
{
    const struct sim_range *x = a, *y = b;
    if (x->version != y->version)
        return x->version < y->version ? -1 : 1;
    if (x->operations != y->operations)
        return x->operations < y->operations ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Make room for the new range: what it covers of older ones is theirs no more. */
static void cover(struct sim_record *r, const struct sim_range *range)
{
    size_t kept = 0, count = r->count;
    for (size_t i = 0; i < count; i++) {
        struct sim_range old = r->ranges[i];
        if (!same_runs(&old, range) || old.to < range->from || old.from > range->to) {
            r->ranges[kept++] = old;
            continue;
        }
        struct sim_range behind = old;
        if (old.from < range->from) {
            old.to = range->from - 1;
            r->ranges[kept++] = old;
        }
        if (behind.to > range->to) {
            behind.from = range->to + 1;
            append(r, &behind);
        }
    }
    /* What was cut off behind the range stands behind `count`. */
    memmove(r->ranges + kept, r->ranges + count, (r->count - count) * sizeof *r->ranges);
    r->count -= count - kept;
}

static void join(struct sim_record *r)
{
    size_t kept = 0;
    for (size_t i = 1; i < r->count; i++) {
        struct sim_range *last = &r->ranges[kept];
        const struct sim_range *next = &r->ranges[i];
        if (same_runs(last, next) && last->failed == next->failed && last->to + 1 == next->from)
            last->to = next->to;
        else
            r->ranges[++kept] = *next;
    }
    if (r->count > 0)
        r->count = kept + 1;
}

void sim_record_add(struct sim_record *r, const struct sim_range *range)
{
    if (r->count > 0)
        cover(r, range);
    append(r, range);
    qsort(r->ranges, r->count, sizeof *r->ranges, range_compare);
    join(r);
}

uint64_t sim_record_last(const struct sim_record *r, uint32_t operations, uint32_t version)
{
    uint64_t last = 0;
    for (size_t i = 0; i < r->count; i++)
        if (r->ranges[i].operations == operations && r->ranges[i].version == version &&
            r->ranges[i].to > last)
            last = r->ranges[i].to;
    return last;
}

void sim_record_total(const struct sim_record *r, uint32_t version, uint64_t *seeds,
                      uint64_t *failed)
{
    *seeds = *failed = 0;
    for (size_t i = 0; i < r->count; i++) {
        uint64_t n = r->ranges[i].to - r->ranges[i].from + 1;
        if (r->ranges[i].version != version)
            continue;
        *seeds += n;
        *failed += r->ranges[i].failed ? n : 0;
    }
}

/* ---- The file ---- */

static bool refuse(struct hf_error *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(struct hf_error *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    why->status = HF_STORAGE_FAILURE;
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return false;
}

static bool line_parse(const char *line, struct sim_range *out)
{
    char result[8];
    int used = 0;
    if (sscanf(line, "%" SCNu64 "-%" SCNu64 " %" SCNu32 " %" SCNu32 " %7s %n", &out->from, &out->to,
               &out->operations, &out->version, result, &used) != 5 ||
        line[used] != '\0' || out->from == 0 || out->to < out->from || out->to == UINT64_MAX)
        return false;
    out->failed = strcmp(result, "failed") == 0;
    return out->failed || strcmp(result, "ok") == 0;
}

/* All lines of the file, added to the record. */
static bool lines_read(FILE *file, const char *path, struct sim_record *record,
                       struct hf_error *why)
{
    char line[160];
    for (unsigned number = 1; fgets(line, sizeof line, file); number++) {
        struct sim_range range;
        if (!line_parse(line, &range))
            return refuse(why, "line %u of %s is not `from-to operations version result`", number,
                          path);
        sim_record_add(record, &range);
    }
    return !ferror(file) || refuse(why, "%s cannot be read: %s", path, strerror(errno));
}

bool sim_record_read(const char *path, struct sim_record *record, struct hf_error *why)
{
    *record = (struct sim_record){ 0 };
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT || refuse(why, "%s cannot be read: %s", path, strerror(errno));
    bool good = lines_read(file, path, record, why);
    fclose(file);
    if (!good)
        sim_record_free(record);
    return good;
}

/* Write it beside the file, then put it in its place: whoever reads sees the old one or the new
 * one. */
static bool replace(const char *path, const struct sim_record *record, struct hf_error *why)
{
    char beside[4096];
    if (snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside)
        return refuse(why, "the name of the record is too long");
    FILE *file = fopen(beside, "we");
    if (!file)
        return refuse(why, "%s cannot be written: %s", beside, strerror(errno));
    for (size_t i = 0; i < record->count; i++) {
        const struct sim_range *r = &record->ranges[i];
        fprintf(file, "%" PRIu64 "-%" PRIu64 " %" PRIu32 " %" PRIu32 " %s\n", r->from, r->to,
                r->operations, r->version, r->failed ? "failed" : "ok");
    }
    bool bad = ferror(file) || fflush(file) != 0 || fsync(fileno(file)) != 0;
    bad |= fclose(file) != 0;
    if (bad || rename(beside, path) != 0) {
        refuse(why, "%s cannot be written: %s", path, strerror(errno));
        unlink(beside);
        return false;
    }
    return true;
}

/* The file, locked until it is closed. It may have been replaced while the lock was waited for:
 * then the new one is wanted. NULL: errno says why. */
static FILE *lock_open(const char *path)
{
    for (;;) {
        struct stat mine, there;
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
            return NULL;
        if (fcntl(fd, F_SETLKW, &lock) != 0 || fstat(fd, &mine) != 0) {
            int error = errno;
            close(fd);
            errno = error;
            return NULL;
        }
        if (stat(path, &there) == 0 && mine.st_ino == there.st_ino && mine.st_dev == there.st_dev)
            return fdopen(fd, "r+");
        close(fd);
    }
}

bool sim_record_merge(const char *path, const struct sim_record *more, struct hf_error *why)
{
    struct sim_record all = { 0 };
    FILE *file = lock_open(path);
    if (!file)
        return refuse(why, "%s cannot be opened: %s", path, strerror(errno));
    bool good = lines_read(file, path, &all, why);
    for (size_t i = 0; good && i < more->count; i++)
        sim_record_add(&all, &more->ranges[i]);
    good = good && replace(path, &all, why);
    sim_record_free(&all);
    fclose(file);
    return good;
}
