#include "audit/snapshot.h"

#include "audit/directory.h"

#include "base/bytes.h"
#include "base/filename.h"
#include "base/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK_HEAD = 16,
    TYPE_HEADER = 1,
    TYPE_END = 5,
    TYPE_OWNERS = 7,
    TYPE_PASSED = 8, /* the highest type */
    HEADER = 128,    /* payload of the first block */
    END = 72,        /* payload of the last block */
    LEAST = 2 * BLOCK_HEAD + HEADER + END,
    NAME = 30 /* "snapshot-0000000000001000.snap" */
};

static bool name_is(const char *name)
{
    uint64_t start;
    return hf_filename_read(name, &start) == HF_FILENAME_SNAPSHOT;
}

/* The state of reading a file, from its beginning. */
struct reading {
    int fd;
    uint64_t at, blocks;
    unsigned owners; /* number of blocks of type TYPE_OWNERS */
    int *error;
    struct hf_sha256 sha;
};

/* Read `size` more bytes. crc: in and out, continued over the block. False if they cannot be
 * read. */
static bool bytes_pass(struct reading *r, uint64_t size, uint32_t *crc)
{
    unsigned char piece[65536];
    while (size > 0) {
        size_t n = size < sizeof piece ? (size_t)size : sizeof piece;
        if (!hf_audit_read_at(r->fd, piece, n, r->at, r->error))
            return false;
        hf_sha256_add(&r->sha, piece, n);
        *crc = hf_crc32c(*crc, piece, n);
        r->at += n;
        size -= n;
    }
    return true;
}

/* Check one block before the last: known type, right length, right CRC. */
static bool block_pass(struct reading *r, uint64_t last)
{
    unsigned char head[BLOCK_HEAD];
    if (!hf_audit_read_at(r->fd, head, sizeof head, r->at, r->error))
        return false;
    uint32_t type = hf_get32(head), crc = hf_crc32c(0, head, 12);
    uint64_t size = hf_get32(head + 4);
    if ((type == TYPE_HEADER) != (r->blocks == 0) || type == 0 || type == TYPE_END ||
        type > TYPE_PASSED || last - r->at < BLOCK_HEAD || size > last - r->at - BLOCK_HEAD)
        return false;
    hf_sha256_add(&r->sha, head, sizeof head);
    r->at += BLOCK_HEAD;
    r->blocks++;
    r->owners += type == TYPE_OWNERS;
    return bytes_pass(r, size, &crc) && crc == hf_get32(head + 12);
}

/* Are all blocks intact, including the last one, which is at `end`? owned: out, there is one block
 * with the owners. */
static bool blocks_fit(int fd, uint64_t size, const unsigned char *end, bool *owned, int *error)
{
    struct reading r = { .fd = fd, .error = error };
    uint8_t digest[HF_DIGEST_SIZE];
    uint64_t last = size - BLOCK_HEAD - END;
    hf_sha256_init(&r.sha);
    while (r.at < last)
        if (!block_pass(&r, last))
            return false;
    hf_sha256_end(&r.sha, digest);
    *owned = r.owners == 1;
    return hf_get64(end + BLOCK_HEAD + 32) == r.blocks &&
           memcmp(digest, end + BLOCK_HEAD + 40, sizeof digest) == 0 &&
           hf_crc32c(hf_crc32c(0, end, 12), end + BLOCK_HEAD, END) == hf_get32(end + 12);
}

static bool is_of(const unsigned char *h, const struct hf_audit_head *store)
{
    return memcmp(h + 16, store->store_id, 16) == 0 && hf_get64(h + 32) == store->table_key.k0 &&
           hf_get64(h + 40) == store->table_key.k1;
}

/* False if the snapshot is not whole, or if it cannot be read: then *error is an errno. */
static bool file_look(int dir, const char *name, const struct hf_audit_head *store,
                      struct hf_audit_snapshot *out, int *error)
{
    unsigned char head[BLOCK_HEAD + HEADER], last[BLOCK_HEAD + END];
    struct stat st;
    bool owned = false;
    *out = (struct hf_audit_snapshot){ .found = false };
    int fd = hf_audit_open(dir, name);
    if (fd < 0 || fstat(fd, &st) != 0) {
        *error = errno == ENOENT ? 0 : errno;
        if (fd >= 0)
            close(fd);
        return false;
    }
    uint64_t size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
    out->found = size >= LEAST && hf_audit_read_at(fd, head, sizeof head, 0, error) &&
                 hf_audit_read_at(fd, last, sizeof last, size - sizeof last, error) &&
                 hf_get32(head) == TYPE_HEADER && hf_get32(head + 4) == HEADER &&
                 memcmp(head + BLOCK_HEAD, "HOLDSNP1", 8) == 0 &&
                 hf_get32(head + BLOCK_HEAD + 8) == 1 && hf_get32(last) == TYPE_END &&
                 hf_get32(last + 4) == END && blocks_fit(fd, size, last, &owned, error) &&
                 (!store || is_of(head + BLOCK_HEAD, store));
    close(fd);
    if (!out->found)
        return false;
    const unsigned char *h = head + BLOCK_HEAD;
    out->start = hf_get64(h + 64);
    out->next_sequence = hf_get64(h + 72);
    out->now = (hf_time)hf_get64(h + 80);
    memcpy(out->chain, h + 88, HF_DIGEST_SIZE);
    out->end = hf_get64(last + BLOCK_HEAD);
    out->loaded_start = owned ? out->start : 0;
    /* A file whose name does not match its start is not used. */
    char own[NAME + 1];
    snprintf(own, sizeof own, "snapshot-%016llx.snap", (unsigned long long)out->start);
    return out->found = strcmp(own, name) == 0 && hf_audit_now_sound(out->now);
}

/* Does the file still exist? A running server may have removed it during the read. */
static bool still_there(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, 0) == 0;
}

/* The newest snapshot name below `below`, or of all if that is ""; "" if there is none. False: see
 * errno. */
static bool name_next(int dir, const char *below, char newest[NAME + 1])
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    newest[0] = '\0';
    if (!d) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        errno = error;
        return false;
    }
    for (struct dirent *e; errno = 0, (e = readdir(d)) != NULL;)
        if (name_is(e->d_name) && strcmp(e->d_name, newest) > 0 &&
            (below[0] == '\0' || strcmp(e->d_name, below) < 0))
            memcpy(newest, e->d_name, NAME + 1);
    int error = errno;
    closedir(d);
    errno = error;
    return error == 0;
}

bool hf_audit_snapshot_look(int dir, const struct hf_audit_head *store,
                            struct hf_audit_snapshot *out)
{
    char newest[NAME + 1], below[NAME + 1] = "";
    *out = (struct hf_audit_snapshot){ .found = false };
    for (;;) {
        struct hf_audit_snapshot seen;
        int error = 0;
        if (!name_next(dir, below, newest))
            return false;
        if (newest[0] == '\0')
            return true;
        memcpy(below, newest, sizeof below);
        bool whole = file_look(dir, newest, store, &seen, &error);
        if (error) {
            memcpy(out->unusable_name, newest, sizeof newest);
            errno = error;
            return false;
        }
        /* the newest whole snapshot is the evidence, even if the start loads an older one */
        if (whole && !out->found) {
            seen.unusable = out->unusable;
            memcpy(seen.unusable_name, out->unusable_name, sizeof seen.unusable_name);
            *out = seen;
        }
        out->loaded_start = whole ? seen.loaded_start : 0;
        if (out->loaded_start)
            return true;
        if (still_there(dir, newest) && out->unusable++ == 0)
            memcpy(out->unusable_name, newest, sizeof newest);
    }
}
