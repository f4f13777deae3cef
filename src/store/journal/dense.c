#include "store/journal/dense.h"

#include "base/assert.h"

#include <stdlib.h>

void hf_dense_free(struct hf_dense *d)
{
    for (size_t i = 0; i < d->count; i++)
        free(d->chunks[i]);
    free(d->chunks);
    *d = (struct hf_dense){ 0 };
}

bool hf_dense_reserve(struct hf_dense *d, uint64_t ordinal)
{
    size_t c = (size_t)(ordinal / HF_DENSE_CHUNK);
    if (c >= d->count) {
        size_t count = d->count ? d->count : 64;
        while (count <= c)
            count *= 2;
        struct hf_dense_chunk **chunks =
            realloc(d->chunks, count * sizeof(struct hf_dense_chunk *));
        if (!chunks)
            return false;
        for (size_t i = d->count; i < count; i++)
            chunks[i] = NULL;
        d->bytes += (count - d->count) * sizeof(struct hf_dense_chunk *);
        d->chunks = chunks;
        d->count = count;
    }
    if (!d->chunks[c]) {
        d->chunks[c] = calloc(1, sizeof *d->chunks[c]);
        if (!d->chunks[c])
            return false;
        d->bytes += sizeof *d->chunks[c];
    }
    return true;
}

void hf_dense_set(struct hf_dense *d, uint64_t ordinal, uint64_t value)
{
    size_t c = (size_t)(ordinal / HF_DENSE_CHUNK);
    if (value == 0 && !hf_dense_has(d, ordinal))
        return;
    HF_ASSERT(hf_dense_has(d, ordinal));
    struct hf_dense_chunk *chunk = d->chunks[c];
    uint64_t *at = &chunk->values[ordinal % HF_DENSE_CHUNK];
    chunk->used += (uint32_t)(value != 0) - (uint32_t)(*at != 0);
    *at = value;
    if (chunk->used == 0) {
        free(chunk);
        d->chunks[c] = NULL;
        d->bytes -= sizeof *chunk;
    }
}
