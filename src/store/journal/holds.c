#include "store/journal/holds.h"

#include <errno.h>
#include <stdlib.h>

bool hf_holds_init(struct hf_holds *h, const struct hf_io *io, struct hf_dir *dir,
                   const struct hf_sipkey *key)
{
    *h = (struct hf_holds){ .io = io, .dir = dir, .key = *key };
    return hf_map64_init(&h->moved, 8);
}

void hf_holds_free(struct hf_holds *h)
{
    hf_map64_free(&h->moved);
    hf_dense_free(&h->recent);
    if (h->file)
        h->io->close(h->file);
    h->file = NULL;
    free(h->sums);
    free(h->page);
    free(h->fresh);
    h->sums = NULL;
    h->page = NULL;
    h->fresh = NULL;
}

uint64_t hf_holds_bytes(const struct hf_holds *h)
{
    return h->moved.bytes + h->recent.bytes + h->sum_room * sizeof *h->sums;
}

bool hf_holds_reserve(struct hf_holds *h, uint64_t ordinal, unsigned together)
{
    if (ordinal > h->covered)
        return hf_dense_reserve(&h->recent, ordinal);
    return hf_dense_has(&h->recent, ordinal) ||
           hf_map64_reserve(&h->moved, hf_mix64(ordinal), together);
}

bool hf_holds_reserve_many(struct hf_holds *h, uint64_t ordinal)
{
    return hf_dense_reserve(&h->recent, ordinal);
}

void hf_holds_set(struct hf_holds *h, uint64_t ordinal, uint64_t position)
{
    struct hf_slot *slot =
        ordinal <= h->covered ? hf_map64_next(&h->moved, hf_mix64(ordinal), NULL) : NULL;
    if (hf_dense_has(&h->recent, ordinal)) {
        /* Its chunk may be newer than its entry in `moved`: keep it in one table only. */
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

bool hf_holds_remembers(const struct hf_holds *h, uint64_t ordinal, uint64_t *position)
{
    *position = hf_dense_get(&h->recent, ordinal);
    if (*position)
        return true;
    const struct hf_slot *slot = hf_map64_next(&h->moved, hf_mix64(ordinal), NULL);
    *position = slot ? slot->value : 0;
    return slot != NULL;
}

int hf_holds_get(struct hf_holds *h, uint64_t ordinal, uint64_t *position)
{
    return hf_holds_remembers(h, ordinal, position) ? 0 : hf_holds_file_get(h, ordinal, position);
}

/* The inverse of hf_mix64: each step is its own inverse, except the product. */
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

/* The chunk of a part; NULL for a part of the map, or if empty. */
static const struct hf_dense_chunk *chunk_of(const struct hf_holds *h, size_t part)
{
    return part >= hf_map64_parts(&h->moved) ? h->recent.chunks[part - hf_map64_parts(&h->moved)]
                                             : NULL;
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
