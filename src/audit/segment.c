#include "audit/segment.h"

#include "audit/directory.h"
#include "base/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define HEAD_SIZE 160   /* enough for every version */
#define HEAD_SIZE_1 140 /* in version 1 */
#define PACK_VERSION 1
#define PACK_HEAD 48
#define PACK_FRAME 131072U
#define PACK_ROW 16 /* bytes of the frame table for each frame */
#define NO_FRAME UINT32_MAX

struct frame {
    uint64_t offset;
    uint32_t size, crc;
};

struct hf_audit_frames {
    uint32_t count;
    uint32_t held; /* the frame that is in `plain`, or NO_FRAME */
    ZSTD_DCtx *zstd;
    unsigned char *packed; /* room for one compressed frame */
    unsigned char plain[PACK_FRAME];
    struct frame table[];
};

/* pread until all bytes are read. False at the end of the file or on an error, which is noted: a
 * read error must not look like the end of the journal. */
static bool read_full(struct hf_audit_segment *seg, void *out, size_t size, uint64_t offset)
{
    unsigned char *p = out;
    while (size > 0) {
        ssize_t n = offset > INT64_MAX ? 0 : pread(seg->fd, p, size, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            seg->io_error = errno;
        if (n <= 0)
            return false;
        p += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return true;
}

/* ---- Compressed segments ---- */

static void frames_free(struct hf_audit_frames *f)
{
    if (!f)
        return;
    ZSTD_freeDCtx(f->zstd);
    free(f->packed);
    free(f);
}

/* The file's size limits the table, so a wrong count cannot allocate more memory. */
static struct hf_audit_frames *frames_new(const unsigned char *head, uint64_t file_size)
{
    uint32_t count = hf_get32(head + 40);
    if (count == 0 || count == NO_FRAME || file_size < PACK_HEAD ||
        count > (file_size - PACK_HEAD) / PACK_ROW)
        return NULL;
    struct hf_audit_frames *f = malloc(sizeof *f + (size_t)count * sizeof(struct frame));
    if (!f)
        return NULL;
    f->count = count;
    f->held = NO_FRAME;
    f->zstd = ZSTD_createDCtx();
    f->packed = malloc(ZSTD_COMPRESSBOUND(PACK_FRAME));
    if (f->zstd && f->packed)
        return f;
    frames_free(f);
    return NULL;
}

static bool frame_table_read(struct hf_audit_segment *seg, const unsigned char *head)
{
    struct hf_audit_frames *f = seg->frames;
    uint32_t crc = hf_crc32c(0, head, 44);
    for (uint32_t i = 0; i < f->count; i++) {
        unsigned char row[PACK_ROW];
        if (!read_full(seg, row, sizeof row, PACK_HEAD + (uint64_t)i * PACK_ROW))
            return false;
        crc = hf_crc32c(crc, row, sizeof row);
        f->table[i] = (struct frame){ hf_get64(row), hf_get32(row + 8), hf_get32(row + 12) };
    }
    return crc == hf_get32(head + 44);
}

static enum hf_audit_opened pack_open(struct hf_audit_segment *seg, uint64_t file_size,
                                      uint32_t *version)
{
    unsigned char head[PACK_HEAD];
    if (!read_full(seg, head, sizeof head, 0) || memcmp(head, "HOLDZST1", 8) != 0)
        return HF_AUDIT_BAD_PACK;
    *version = hf_get32(head + 8);
    if (*version > PACK_VERSION)
        return HF_AUDIT_NEWER;
    uint64_t size = hf_get64(head + 32);
    if (*version == 0 || hf_get32(head + 12) != PACK_FRAME || hf_get64(head + 16) != seg->number ||
        size % HF_AUDIT_BLOCK != 0)
        return HF_AUDIT_BAD_PACK;
    errno = 0;
    seg->frames = frames_new(head, file_size);
    if (!seg->frames && errno == ENOMEM)
        return HF_AUDIT_IO;
    if (!seg->frames || !frame_table_read(seg, head))
        return HF_AUDIT_BAD_PACK;
    if (size / PACK_FRAME + (size % PACK_FRAME != 0) != seg->frames->count)
        return HF_AUDIT_BAD_PACK;
    seg->size = size;
    seg->pack_base = hf_get64(head + 24);
    return HF_AUDIT_OPENED;
}

/* Decompress frame `n` into f->plain. The last frame is as long as the others, with zeros after the
 * segment's end. */
static bool frame_load(struct hf_audit_segment *seg, uint32_t n)
{
    struct hf_audit_frames *f = seg->frames;
    const struct frame *row = &f->table[n];
    f->held = NO_FRAME;
    memset(f->plain, 0, PACK_FRAME);
    if (row->size > 0) {
        if (row->size > ZSTD_COMPRESSBOUND(PACK_FRAME) ||
            !read_full(seg, f->packed, row->size, row->offset) ||
            hf_crc32c(0, f->packed, row->size) != row->crc)
            return false;
        if (ZSTD_decompressDCtx(f->zstd, f->plain, PACK_FRAME, f->packed, row->size) != PACK_FRAME)
            return false;
    }
    f->held = n;
    return true;
}

static bool pack_read(struct hf_audit_segment *seg, uint64_t offset, unsigned char *out,
                      size_t size)
{
    while (size > 0) {
        uint32_t n = (uint32_t)(offset / PACK_FRAME);
        size_t at = offset % PACK_FRAME;
        size_t part = PACK_FRAME - at < size ? PACK_FRAME - at : size;
        if (seg->frames->held != n && !frame_load(seg, n))
            return false;
        memcpy(out, seg->frames->plain + at, part);
        out += part;
        offset += part;
        size -= part;
    }
    return true;
}

/* ---- Both ---- */

bool hf_audit_segment_read(struct hf_audit_segment *seg, uint64_t offset, void *out, size_t size)
{
    if (offset > seg->size || size > seg->size - offset)
        return false;
    if (seg->packed)
        return pack_read(seg, offset, out, size);
    return read_full(seg, out, size, offset);
}

uint64_t hf_audit_segment_skip(struct hf_audit_segment *seg, uint64_t offset)
{
    struct stat st;
    if (!seg->packed) {
        if (offset >= seg->file_size && fstat(seg->fd, &st) == 0 && st.st_size > 0)
            seg->file_size = (uint64_t)st.st_size;
        return offset < seg->file_size ? offset : seg->size;
    }
    uint64_t n = offset / PACK_FRAME;
    while (n < seg->frames->count && seg->frames->table[n].size == 0) {
        n++;
        offset = n * PACK_FRAME;
    }
    return offset;
}

static struct hf_sipkey key_get(const unsigned char *in)
{
    return (struct hf_sipkey){ hf_get64(in), hf_get64(in + 8) };
}

/* Is the header's checksum right? A CRC in version 1, later a seal with the key in the header. */
static bool head_check(const unsigned char *b, uint32_t version)
{
    struct hf_sipkey seal = key_get(b + 104);
    if (version == 1)
        return hf_crc32c(0, b, 136) == hf_get32(b + 136);
    return hf_siphash(&seal, hf_mem(b, 152), hf_mem(NULL, 0)) == hf_get64(b + 152);
}

static void head_fill(const unsigned char *b, uint32_t version, struct hf_audit_head *h)
{
    *h = (struct hf_audit_head){ .number = hf_get64(b + 16),
                                 .base = hf_get64(b + 24),
                                 .size = hf_get64(b + 32),
                                 .first_sequence = hf_get64(b + 40),
                                 .first_now = (hf_time)hf_get64(b + 48),
                                 .version = version,
                                 .table_key = key_get(b + 72),
                                 .id_key = key_get(b + 88) };
    memcpy(h->store_id, b + 56, sizeof h->store_id);
    if (version > 1)
        h->seal = key_get(b + 104);
    memcpy(h->chain, b + (version == 1 ? 104 : 120), sizeof h->chain);
}

/* Read the header from the first block. head_good stays false if the header is wrong: the segment
 * is prepared but not used yet, or damaged; the journal's reader finds out which. */
static enum hf_audit_opened head_read(struct hf_audit_segment *seg, uint32_t *version)
{
    unsigned char b[HF_AUDIT_BLOCK];
    if (!hf_audit_segment_read(seg, 0, b, sizeof b) || memcmp(b, "HOLDSEG1", 8) != 0)
        return HF_AUDIT_OPENED;
    *version = hf_get32(b + 8);
    /* A newer format may have its checksum elsewhere. */
    if (*version > HF_AUDIT_VERSION)
        return HF_AUDIT_NEWER;
    struct hf_audit_head *h = &seg->head;
    head_fill(b, *version, h);
    bool right = *version > 0 && head_check(b, *version);
    seg->head_other = right && h->number != seg->number;
    seg->head_good = right && h->number == seg->number && h->size % HF_AUDIT_BLOCK == 0 &&
                     h->size >= 2 * HF_AUDIT_BLOCK && h->base % HF_AUDIT_BLOCK == 0 &&
                     hf_get32(b + 12) == HF_AUDIT_BLOCK;
    for (size_t i = *version == 1 ? HEAD_SIZE_1 : HEAD_SIZE; i < sizeof b; i++)
        seg->head_dirty = seg->head_dirty || (seg->head_good && b[i] != 0);
    /* The header's size counts: a truncated plain file is read as far as it goes. */
    if (seg->head_good && !seg->packed)
        seg->size = h->size;
    return HF_AUDIT_OPENED;
}

static enum hf_audit_opened file_open(struct hf_audit_segment *seg, bool packed, uint32_t *version)
{
    seg->packed = packed;
    snprintf(seg->name, sizeof seg->name, "journal-%08llu.%s", (unsigned long long)seg->number,
             packed ? "zst" : "log");
    seg->fd = hf_audit_open(seg->dir, seg->name);
    if (seg->fd < 0)
        return errno == ENOENT ? HF_AUDIT_MISSING : HF_AUDIT_IO;
    struct stat st;
    if (fstat(seg->fd, &st) != 0)
        return HF_AUDIT_IO;
    seg->device = st.st_dev;
    seg->inode = st.st_ino;
    uint64_t size = st.st_size < 0 ? 0 : (uint64_t)st.st_size;
    seg->file_size = size;
    seg->size = size - size % HF_AUDIT_BLOCK;
    enum hf_audit_opened r = packed ? pack_open(seg, size, version) : HF_AUDIT_OPENED;
    if (r == HF_AUDIT_OPENED)
        r = head_read(seg, version);
    /* The header or the frame table cannot be read: it is not known whether they are right. */
    errno = seg->io_error ? seg->io_error : errno;
    return seg->io_error ? HF_AUDIT_IO : r;
}

enum hf_audit_opened hf_audit_segment_open(int dir, uint64_t number, struct hf_audit_segment *seg,
                                           uint32_t *version)
{
    /* Try plain, compressed, and both again: the file may be compressed between two attempts. */
    enum hf_audit_opened r = HF_AUDIT_MISSING;
    for (int look = 0; look < 4 && r == HF_AUDIT_MISSING; look++) {
        *seg = (struct hf_audit_segment){ .number = number, .dir = dir, .fd = -1 };
        r = file_open(seg, look % 2 == 1, version);
        if (r != HF_AUDIT_OPENED) {
            int why = errno;
            hf_audit_segment_close(seg);
            errno = why;
        }
    }
    if (r == HF_AUDIT_MISSING) /* its name before compression */
        snprintf(seg->name, sizeof seg->name, "journal-%08llu.log", (unsigned long long)number);
    return r;
}

bool hf_audit_segment_stale(const struct hf_audit_segment *seg)
{
    struct stat st;
    if (fstatat(seg->dir, seg->name, &st, 0) != 0)
        return true;
    return st.st_dev != seg->device || st.st_ino != seg->inode;
}

void hf_audit_segment_close(struct hf_audit_segment *seg)
{
    if (seg->fd >= 0)
        close(seg->fd);
    frames_free(seg->frames);
    seg->fd = -1;
    seg->frames = NULL;
}
