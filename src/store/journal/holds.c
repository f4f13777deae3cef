#include "store/journal/holds.h"

#include "base/bytes.h"

#include <errno.h>
#include <stdlib.h>

enum { HEAD = 52 };

bool hf_holds_init(struct hf_holds *h, const struct hf_io *io, struct hf_dir *dir)
{
    *h = (struct hf_holds){ .io = io, .dir = dir };
    return hf_map64_init(&h->moved, 8);
}

void hf_holds_free(struct hf_holds *h)
{
    hf_map64_free(&h->moved);
    hf_dense_free(&h->recent);
    if (h->file)
        h->io->close(h->file);
    h->file = NULL;
}

void hf_holds_open(struct hf_holds *h, const struct hf_store_keys *keys)
{
    unsigned char head[HEAD];
    if (h->io->open(h->dir, "holds.idx", HF_OPEN_WRITE, &h->file) != 0) {
        h->file = NULL;
        return;
    }
    uint64_t size = 0;
    bool good = h->io->read(h->file, head, HEAD, 0) == 0 && memcmp(head, "HOLDIDX1", 8) == 0 &&
                hf_get32(head + 8) == HF_FORMAT_VERSION && memcmp(head + 16, keys->store_id, 16) == 0 &&
                hf_get32(head + 48) == hf_crc32c(0, head, 48) && h->io->size(h->file, &size) == 0 &&
                size >= HF_BLOCK && hf_get64(head + 40) <= (size - HF_BLOCK) / 8;
    if (!good) {
        h->io->close(h->file);
        h->file = NULL;
        return;
    }
    h->covers = hf_get64(head + 32);
    h->covered = hf_get64(head + 40);
}

bool hf_holds_reserve(struct hf_holds *h, uint64_t ordinal, unsigned together)
{
    if (ordinal > h->covered)
        return hf_dense_reserve(&h->recent, ordinal);
    return hf_dense_has(&h->recent, ordinal) || hf_map64_reserve(&h->moved, hf_mix64(ordinal), together);
}

void hf_holds_set(struct hf_holds *h, uint64_t ordinal, uint64_t position)
{
    struct hf_slot *slot = ordinal <= h->covered ? hf_map64_next(&h->moved, hf_mix64(ordinal), NULL) : NULL;
    if (hf_dense_has(&h->recent, ordinal)) {
        /* Its chunk may have come into being after it had moved before: one table knows it, not two. */
        if (slot)
            hf_map64_remove(&h->moved, slot);
        hf_dense_set(&h->recent, ordinal, position);
    } else if (slot) {
        slot->value = position;
    } else {
        hf_map64_add(&h->moved, hf_mix64(ordinal), position);
    }
    if (ordinal > h->highest)
        h->highest = ordinal;
}

int hf_holds_get(struct hf_holds *h, uint64_t ordinal, uint64_t *position)
{
    *position = hf_dense_get(&h->recent, ordinal);
    if (*position)
        return 0;
    const struct hf_slot *slot = hf_map64_next(&h->moved, hf_mix64(ordinal), NULL);
    if (slot) {
        *position = slot->value;
        return 0;
    }
    if (ordinal == 0 || ordinal > h->covered || !h->file)
        return -ENOENT;
    unsigned char b[8];
    int error = h->io->read(h->file, b, 8, HF_BLOCK + 8 * (ordinal - 1));
    *position = error ? 0 : hf_get64(b);
    return error;
}

/* The inverse of hf_mix64: its steps are their own inverses but for the product. */
static uint64_t unmix64(uint64_t x)
{
    const uint64_t inverse = UINT64_C(0xcfee444d8b59a89b);
    x ^= x >> 32;
    x *= inverse;
    x ^= x >> 32;
    x *= inverse;
    return x ^ x >> 32;
}

size_t hf_holds_parts(const struct hf_holds *h)
{
    return hf_map64_parts(&h->moved) + h->recent.count;
}

/* The chunk that a part beyond those of the map stands for, or NULL. */
static const struct hf_dense_chunk *chunk_of(const struct hf_holds *h, size_t part)
{
    return part >= hf_map64_parts(&h->moved) ? h->recent.chunks[part - hf_map64_parts(&h->moved)] : NULL;
}

size_t hf_holds_part_size(const struct hf_holds *h, size_t part)
{
    const struct hf_dense_chunk *chunk = chunk_of(h, part);
    if (part >= hf_map64_parts(&h->moved))
        return chunk ? chunk->used : 0;
    return h->moved.parts[part].used;
}

static size_t chunk_take(const struct hf_dense_chunk *chunk, uint64_t first, uint64_t before,
                         struct hf_moved *out)
{
    size_t n = 0;
    for (size_t i = 0; chunk && i < HF_DENSE_CHUNK; i++)
        if (chunk->values[i] != 0 && chunk->values[i] < before)
            out[n++] = (struct hf_moved){ first + i, chunk->values[i] };
    return n;
}

size_t hf_holds_take(const struct hf_holds *h, size_t part, uint64_t before, struct hf_moved *out)
{
    if (part >= hf_map64_parts(&h->moved)) {
        uint64_t first = (uint64_t)(part - hf_map64_parts(&h->moved)) * HF_DENSE_CHUNK;
        return chunk_take(chunk_of(h, part), first, before, out);
    }
    const struct hf_map_part *p = &h->moved.parts[part];
    size_t n = 0;
    for (uint32_t i = 0; i < p->room; i++)
        if (p->slots[i].value != 0 && p->slots[i].value < before)
            out[n++] = (struct hf_moved){ unmix64(p->slots[i].hash), p->slots[i].value };
    return n;
}

/* A file that is being made anew says that it covers nothing until its first end. */
static int head_write(struct hf_holds *h, const struct hf_store_keys *keys, uint64_t covers, uint64_t covered)
{
    unsigned char head[HF_BLOCK] = { 0 };
    memcpy(head, "HOLDIDX1", 8);
    hf_put32(head + 8, HF_FORMAT_VERSION);
    memcpy(head + 16, keys->store_id, 16);
    hf_put64(head + 32, covers);
    hf_put64(head + 40, covered);
    hf_put32(head + 48, hf_crc32c(0, head, 48));
    return h->io->write(h->file, head, sizeof head, 0);
}

static int ordinal_compare(const void *a, const void *b)
{
    const struct hf_moved *x = a, *y = b;
    if (x->ordinal != y->ordinal)
        return x->ordinal < y->ordinal ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* New holds come in order already. */
static bool in_order(const struct hf_moved *moved, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (ordinal_compare(&moved[i - 1], &moved[i]) > 0)
            return false;
    return true;
}

int hf_holds_make(struct hf_holds *h, const struct hf_store_keys *keys)
{
    if (h->file)
        return 0;
    struct hf_file *file;
    int error = h->io->open(h->dir, "holds.idx", HF_OPEN_CREATE, &file);
    if (error)
        return error;
    h->file = file;
    error = head_write(h, keys, 0, 0);
    if (!error)
        error = h->io->dir_sync(h->dir);
    if (error) {
        h->io->close(file);
        h->file = NULL;
    }
    return error;
}

int hf_holds_write(struct hf_holds *h, struct hf_moved *moved, size_t count)
{
    int error = 0;
    if (!in_order(moved, count))
        qsort(moved, count, sizeof *moved, ordinal_compare);
    for (size_t i = 0; !error && i < count;) {
        unsigned char run[HF_BLOCK];
        size_t n = 0;
        for (; i + n < count && n < sizeof run / 8 && moved[i + n].ordinal == moved[i].ordinal + n; n++)
            hf_put64(run + 8 * n, moved[i + n].position);
        error = h->io->write(h->file, run, 8 * n, HF_BLOCK + 8 * (moved[i].ordinal - 1));
        i += n;
    }
    return error;
}

int hf_holds_end(struct hf_holds *h, const struct hf_store_keys *keys, uint64_t covers, uint64_t covered)
{
    int error = h->io->sync(h->file);
    if (!error)
        error = head_write(h, keys, covers, covered);
    if (!error)
        error = h->io->sync(h->file);
    return error;
}

void hf_holds_forget(struct hf_holds *h, const struct hf_moved *moved, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (hf_dense_get(&h->recent, moved[i].ordinal) == moved[i].position) {
            hf_dense_set(&h->recent, moved[i].ordinal, 0);
            continue;
        }
        struct hf_slot *slot = hf_map64_next(&h->moved, hf_mix64(moved[i].ordinal), NULL);
        if (slot && slot->value == moved[i].position)
            hf_map64_remove(&h->moved, slot);
    }
}
