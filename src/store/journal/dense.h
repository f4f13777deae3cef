/* dense.h: numbers by ordinal. Ordinals are given out in sequence, so the newest are close
 * together: a table of chunks; empty chunks are not allocated. */
#ifndef HF_STORE_JOURNAL_DENSE_H
#define HF_STORE_JOURNAL_DENSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF_DENSE_CHUNK 4096

struct hf_dense_chunk {
    uint32_t used;
    uint64_t values[HF_DENSE_CHUNK];
};

struct hf_dense {
    struct hf_dense_chunk **chunks; /* owned; by ordinal / HF_DENSE_CHUNK; NULL if empty */
    size_t count;
    uint64_t bytes;
};

void hf_dense_free(struct hf_dense *d);

/* The value of `ordinal`; 0: none. */
static inline uint64_t hf_dense_get(const struct hf_dense *d, uint64_t ordinal)
{
    size_t c = (size_t)(ordinal / HF_DENSE_CHUNK);
    return c < d->count && d->chunks[c] ? d->chunks[c]->values[ordinal % HF_DENSE_CHUNK] : 0;
}

/* Is there a chunk for `ordinal`? Then hf_dense_set cannot fail. */
static inline bool hf_dense_has(const struct hf_dense *d, uint64_t ordinal)
{
    size_t c = (size_t)(ordinal / HF_DENSE_CHUNK);
    return c < d->count && d->chunks[c];
}

/* Make the chunk for `ordinal`. False if out of memory. */
bool hf_dense_reserve(struct hf_dense *d, uint64_t ordinal);

/* Set the value; 0 removes it, and frees the chunk after its last one. Other values need a reserve
 * before. */
void hf_dense_set(struct hf_dense *d, uint64_t ordinal, uint64_t value);

#endif
