/* Compare holds.idx with the journal (doc/FORMAT.md). It is not part of the history: errors in it
 * are reported, but are no violations. */
#include "audit/check.h"
#include "audit/directory.h"

#include "base/bytes.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 4096, ENTRIES = 509, PART_HEAD = 24, HEAD_SUM = 32, TRIES = 3 };
enum {
    SNAP_HEAD = 16,
    SNAP_FIRST = 1,
    SNAP_INDEX = 6,
    SNAP_FIRST_LEAST = 72,
    SNAP_INDEX_MAX = 1 << 20
};

struct index {
    uint64_t start, covered; /* of the newest snapshot */
    uint64_t *sums;          /* owned, of all parts */
    size_t count, parts;     /* known sums, and all parts */
    int error;               /* errno: the data may exist, but could not be read */
};

/* False: there is no file or it is too short, or it cannot be read (x->error). */
static bool read_at(struct index *x, int fd, void *data, size_t size, uint64_t at)
{
    return fd >= 0 && hf_audit_read_at(fd, data, size, at, &x->error);
}

/* The payload of the block at `at`. owned; NULL: the CRC is wrong, it cannot be read, or out of
 * memory (x->error). */
static unsigned char *payload_read(struct index *x, int fd, uint64_t at, const unsigned char *head)
{
    size_t size = hf_get32(head + 4);
    unsigned char *data = size <= SNAP_INDEX_MAX ? malloc(size + 1) : NULL;
    if (!data && size <= SNAP_INDEX_MAX)
        x->error = ENOMEM;
    if (data && read_at(x, fd, data, size, at + SNAP_HEAD) &&
        hf_crc32c(hf_crc32c(0, head, 12), data, size) == hf_get32(head + 12))
        return data;
    free(data);
    return NULL;
}

static bool sums_add(struct index *x, const unsigned char *p, size_t size, uint32_t count)
{
    if (size != 16 + (size_t)count * 8 || hf_get64(p + 8) != x->count + 1)
        return false;
    x->covered = hf_get64(p);
    x->parts = (size_t)((x->covered + ENTRIES - 1) / ENTRIES);
    uint64_t *sums = realloc(x->sums, (x->count + count + 1) * sizeof *sums);
    if (!sums) {
        x->error = ENOMEM;
        return false;
    }
    x->sums = sums;
    for (uint32_t i = 0; i < count; i++)
        x->sums[x->count++] = hf_get64(p + 16 + 8 * (size_t)i);
    return true;
}

/* What the snapshot says about the index. Its other blocks are skipped. */
static bool snapshot_read(int fd, const struct hf_audit_journal *j, struct index *x)
{
    unsigned char head[SNAP_HEAD];
    bool told = false;
    for (uint64_t at = 0; read_at(x, fd, head, sizeof head, at);
         at += SNAP_HEAD + hf_get32(head + 4)) {
        uint32_t type = hf_get32(head);
        if (told && type != SNAP_INDEX)
            return x->count == x->parts;
        if (at > 0 && type != SNAP_INDEX)
            continue;
        unsigned char *p = payload_read(x, fd, at, head);
        bool good = p != NULL;
        if (at == 0)
            good = good && type == SNAP_FIRST && hf_get32(head + 4) >= SNAP_FIRST_LEAST &&
                   memcmp(p + 16, j->store_id, 16) == 0 && hf_get64(p + 64) == x->start;
        else
            good = told = good && sums_add(x, p, hf_get32(head + 4), hf_get32(head + 8));
        free(p);
        if (!good)
            return false;
    }
    return false;
}

/* ---- The file ---- */

static bool head_right(struct index *x, int fd, const struct hf_audit_journal *j)
{
    unsigned char head[HEAD_SUM + 8];
    return read_at(x, fd, head, sizeof head, 0) && memcmp(head, "HOLDIDX2", 8) == 0 &&
           hf_get32(head + 8) == 2 && memcmp(head + 16, j->store_id, 16) == 0 &&
           hf_get64(head + HEAD_SUM) ==
               hf_siphash(&j->table_key, hf_mem(head, HEAD_SUM), hf_mem("", 0));
}

/* Is the sum right? Its lowest bit is the place, and ignored. */
static bool sum_right(const struct hf_sipkey *key, const unsigned char *page)
{
    unsigned char crc[4];
    hf_put32(crc, hf_crc32c(0, page + PART_HEAD, BLOCK - PART_HEAD));
    uint64_t sum = hf_siphash(key, hf_mem(page + 8, PART_HEAD - 8), hf_mem(crc, sizeof crc));
    if (sum <= 1 || sum >= UINT64_MAX - 1)
        sum = 2;
    return sum >> 1 == hf_get64(page) >> 1;
}

/* Does part p have the position of the newest record of each of its holds? Holds that changed since
 * the snapshot are not looked up in the file. */
static bool part_right(const struct hf_audit_state *s, const struct index *x, uint64_t p,
                       const unsigned char *page)
{
    if (hf_get64(page) != x->sums[p - 1] || hf_get64(page + 8) != p ||
        !sum_right(&s->report->journal.table_key, page))
        return false;
    for (uint64_t i = 0; i < ENTRIES; i++) {
        const struct hf_audit_hold *h = hf_audit_hold_at(s, (p - 1) * ENTRIES + 1 + i);
        if ((p - 1) * ENTRIES + 1 + i <= x->covered && h && h->newest < x->start &&
            hf_get64(page + PART_HEAD + 8 * i) != h->newest)
            return false;
    }
    return true;
}

static void file_judge(struct hf_audit_state *s, int fd, struct index *x)
{
    struct hf_audit_report *r = s->report;
    unsigned char page[BLOCK];
    r->index_parts = x->parts;
    r->index_wrong = r->index_wrong_at = 0;
    bool headed = fd >= 0 && head_right(x, fd, &r->journal);
    for (uint64_t p = 1; p <= x->parts; p++) {
        uint64_t at = BLOCK * (2 * p - 1 + (x->sums[p - 1] & 1));
        if (headed && read_at(x, fd, page, sizeof page, at) && part_right(s, x, p, page))
            continue;
        if (r->index_wrong++ == 0)
            r->index_wrong_at = headed ? at : 0;
    }
}

/* Is it not a regular file, but a directory or a pipe? The start makes a new one. */
static bool is_bad_file(int error)
{
    return error == EISDIR || error == ENXIO;
}

/* Open a file that may be missing: then *fd is -1. False if it cannot be opened for another
 * reason. */
static bool file_open(int dir, const char *name, int *fd)
{
    *fd = hf_audit_open(dir, name);
    return *fd >= 0 || errno == ENOENT;
}

/* Compare the newest snapshot and the file. *told: there was something to compare. 0, or a negative
 * errno: one of them cannot be read. */
static int index_judge(struct hf_audit_state *s, int dir, struct index *x, bool *told)
{
    char name[40];
    int snapshot = -1, file = -1, error = 0;
    *told = false;
    if (x->start == 0 || x->start > s->report->journal.end)
        return 0;
    snprintf(name, sizeof name, "snapshot-%016" PRIx64 ".snap", x->start);
    bool bad = false;
    if (!file_open(dir, name, &snapshot))
        error = -errno;
    else if (snapshot >= 0 && !file_open(dir, "holds.idx", &file)) {
        bad = is_bad_file(errno);
        error = bad ? 0 : -errno;
    }
    s->report->index_missing = !error && !bad && snapshot >= 0 && file < 0;
    *told = (file >= 0 || bad || s->report->index_missing) &&
            snapshot_read(snapshot, &s->report->journal, x);
    if (*told)
        file_judge(s, file, x);
    if (file >= 0)
        close(file);
    if (snapshot >= 0)
        close(snapshot);
    return x->error ? -x->error : error;
}

/* A place that the newest snapshot uses is only overwritten after a newer snapshot exists: if there
 * is none, the comparison is valid. */
enum hf_status hf_audit_judge_index(struct hf_audit_state *s, const char *dir, struct hf_error *why)
{
    struct hf_audit_report *r = s->report;
    if (r->damages > 0 || r->unreadable > 0 || !r->journal.keys_known)
        return HF_OK; /* nothing reliable to compare it with */
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = fd < 0 ? -errno : 0;
    for (int i = 0; !error && i < TRIES; i++) {
        struct index x = { .start = r->journal.snapshot_start };
        uint64_t newer = 0;
        bool told = false;
        /* A snapshot that the start skips says nothing about the index. */
        if (!r->journal.snapshots_unusable)
            error = hf_audit_directory_snapshot(fd, &x.start);
        if (!error)
            error = index_judge(s, fd, &x, &told);
        free(x.sums);
        if (!error)
            error = hf_audit_directory_snapshot(fd, &newer);
        if (error || !told || r->index_wrong == 0 || newer == x.start)
            break;
        r->index_parts = r->index_wrong = 0; /* it was overwritten meanwhile */
    }
    if (fd >= 0)
        close(fd);
    if (!error)
        return HF_OK;
    return hf_error_set(why, error == -ENOMEM ? HF_NO_MEMORY : HF_STORAGE_FAILURE,
                        "Cannot compare holds.idx in %s with the journal: %s.", dir,
                        strerror(-error));
}
