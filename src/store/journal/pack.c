#include "store/journal/pack.h"

#include "base/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { HEAD = 48, ROW = 16, LEVEL = 3 };

struct hf_pack {
    const struct hf_io *io;
    struct hf_file *file;
    uint64_t number, base, size, file_size;
    uint32_t frames;
    unsigned char *table; /* owned: HEAD and the frame table, as in the file */
};

static uint32_t frames_of(uint64_t size)
{
    return (uint32_t)((size + HF_PACK_FRAME - 1) / HF_PACK_FRAME);
}

static uint32_t table_crc(const unsigned char *table, uint32_t frames)
{
    uint32_t crc = hf_crc32c(0, table, 44);
    return hf_crc32c(crc, table + HEAD, (size_t)frames * ROW);
}

static bool all_zeros(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* Compress a frame and write it at *at; fill in its row of the table. */
static int frame_write(const struct hf_io *io, struct hf_file *file, const unsigned char *plain,
                       unsigned char *room, uint64_t *at, unsigned char *row)
{
    hf_put64(row, *at);
    if (all_zeros(plain, HF_PACK_FRAME))
        return 0; /* size and CRC stay 0 */
    size_t n = ZSTD_compress(room, ZSTD_compressBound(HF_PACK_FRAME), plain, HF_PACK_FRAME, LEVEL);
    if (ZSTD_isError(n))
        return -ENOMEM;
    hf_put32(row + 8, (uint32_t)n);
    hf_put32(row + 12, hf_crc32c(0, room, n));
    int error = io->write(file, room, n, *at);
    *at += n;
    return error;
}

int hf_pack_write(const struct hf_io *io, struct hf_file *file, const struct hf_segment_head *head,
                  const struct hf_mapped *from, uint64_t used)
{
    uint32_t frames = frames_of(head->size);
    size_t table_size = HEAD + (size_t)frames * ROW;
    unsigned char *table = calloc(1, table_size);
    unsigned char *plain = malloc(HF_PACK_FRAME);
    unsigned char *room = malloc(ZSTD_compressBound(HF_PACK_FRAME));
    int error = table && plain && room ? 0 : -ENOMEM;
    uint64_t at = table_size;
    for (uint32_t i = 0; !error && i < frames; i++) {
        uint64_t start = (uint64_t)i * HF_PACK_FRAME;
        size_t n = start >= used                  ? 0
                   : used - start < HF_PACK_FRAME ? (size_t)(used - start)
                                                  : HF_PACK_FRAME;
        error = io->touch(from->file, from->data, start, n);
        if (error)
            break;
        if (n)
            memcpy(plain, from->data + start, n);
        memset(plain + n, 0, HF_PACK_FRAME - n);
        error = frame_write(io, file, plain, room, &at, table + HEAD + (size_t)i * ROW);
    }
    if (!error) {
        memcpy(table, "HOLDZST1", 8);
        hf_put32(table + 8, HF_PACK_VERSION);
        hf_put32(table + 12, HF_PACK_FRAME);
        hf_put64(table + 16, head->number);
        hf_put64(table + 24, head->base);
        hf_put64(table + 32, head->size);
        hf_put32(table + 40, frames);
        hf_put32(table + 44, table_crc(table, frames));
        error = io->write(file, table, table_size, 0);
    }
    if (!error)
        error = io->sync(file);
    free(table);
    free(plain);
    free(room);
    return error;
}

int hf_pack_open(const struct hf_io *io, struct hf_file *file, struct hf_pack **out)
{
    unsigned char head[HEAD];
    uint64_t file_size = 0;
    /* A file that is too short is damaged; one that cannot be read may be intact. */
    int error = io->size(file, &file_size);
    if (!error)
        error = file_size < HEAD ? -EBADMSG : io->read(file, head, HEAD, 0);
    if (error)
        return error;
    uint64_t size = hf_get64(head + 32);
    uint32_t frames = hf_get32(head + 40);
    size_t table_size = HEAD + (size_t)frames * ROW;
    if (memcmp(head, "HOLDZST1", 8) != 0 || hf_get32(head + 8) != HF_PACK_VERSION ||
        hf_get32(head + 12) != HF_PACK_FRAME || size > UINT32_MAX || frames != frames_of(size) ||
        table_size > file_size)
        return -EBADMSG;
    struct hf_pack *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    *p = (struct hf_pack){ .io = io,
                           .file = file,
                           .number = hf_get64(head + 16),
                           .base = hf_get64(head + 24),
                           .size = size,
                           .file_size = file_size,
                           .frames = frames };
    p->table = malloc(table_size);
    error = p->table ? io->read(file, p->table, table_size, 0) : -ENOMEM;
    if (!error && hf_get32(head + 44) != table_crc(p->table, frames))
        error = -EBADMSG;
    if (error) {
        hf_pack_close(p);
        return error;
    }
    *out = p;
    return 0;
}

uint32_t hf_pack_version(const struct hf_io *io, struct hf_file *file)
{
    unsigned char head[12];
    uint64_t size = 0;
    if (io->size(file, &size) != 0 || size < HEAD || io->read(file, head, sizeof head, 0) != 0)
        return 0;
    return memcmp(head, "HOLDZST1", 8) == 0 ? hf_get32(head + 8) : 0;
}

void hf_pack_close(struct hf_pack *pack)
{
    free(pack->table);
    free(pack);
}

void hf_pack_head(const struct hf_pack *pack, struct hf_segment_head *head)
{
    head->number = pack->number;
    head->base = pack->base;
    head->size = pack->size;
}

void hf_pack_cache_free(struct hf_pack_cache *cache)
{
    free(cache->packed);
    free(cache->plain);
    *cache = (struct hf_pack_cache){ 0 };
}

static int room_grow(unsigned char **data, size_t *room, size_t need)
{
    if (*room >= need)
        return 0;
    unsigned char *grown = realloc(*data, need);
    if (!grown)
        return -ENOMEM;
    *data = grown;
    *room = need;
    return 0;
}

static int frame_load(const struct hf_pack *p, struct hf_pack_cache *cache, uint32_t frame,
                      unsigned char *out)
{
    const unsigned char *row = p->table + HEAD + (size_t)frame * ROW;
    size_t size = hf_get32(row + 8);
    if (size == 0) {
        memset(out, 0, HF_PACK_FRAME);
        return 0;
    }
    if (size > ZSTD_compressBound(HF_PACK_FRAME) || size > p->file_size ||
        hf_get64(row) > p->file_size - size)
        return -EBADMSG;
    int error = room_grow(&cache->packed, &cache->packed_room, ZSTD_compressBound(HF_PACK_FRAME));
    if (!error)
        error = p->io->read(p->file, cache->packed, size, hf_get64(row));
    if (error)
        return error;
    if (hf_crc32c(0, cache->packed, size) != hf_get32(row + 12))
        return -EBADMSG;
    size_t n = ZSTD_decompress(out, HF_PACK_FRAME, cache->packed, size);
    if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
        return -ENOMEM;
    return n == HF_PACK_FRAME ? 0 : -EBADMSG;
}

int hf_pack_read(const struct hf_pack *pack, struct hf_pack_cache *cache, uint64_t at, size_t size,
                 const unsigned char **out)
{
    if (at > pack->size || size > pack->size - at)
        return -EINVAL;
    uint32_t first = (uint32_t)(at / HF_PACK_FRAME);
    uint32_t last = size ? (uint32_t)((at + size - 1) / HF_PACK_FRAME) : first;
    bool there = cache->number == pack->number && cache->first <= first &&
                 last < cache->first + cache->loaded;
    if (!there) {
        cache->number = 0;
        int error = room_grow(&cache->plain, &cache->plain_room,
                              (size_t)(last - first + 1) * HF_PACK_FRAME);
        for (uint32_t i = first; !error && i <= last; i++)
            error = frame_load(pack, cache, i, cache->plain + (size_t)(i - first) * HF_PACK_FRAME);
        if (error)
            return error;
        cache->number = pack->number;
        cache->first = first;
        cache->loaded = last - first + 1;
    }
    *out = cache->plain + (at - (uint64_t)cache->first * HF_PACK_FRAME);
    return 0;
}
