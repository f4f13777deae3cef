/* bytes.h: slices of borrowed bytes, and little-endian numbers in them. Pure, header only. */
#ifndef HF_BASE_BYTES_H
#define HF_BASE_BYTES_H

#include "holdfast.h"

#include <stdint.h>
#include <string.h>

static inline bool hf_bytes_equal(struct hf_bytes a, struct hf_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* The order of memcmp; a prefix is before a longer text. */
static inline int hf_bytes_compare(struct hf_bytes a, struct hf_bytes b)
{
    size_t n = a.size < b.size ? a.size : b.size;
    int c = n ? memcmp(a.data, b.data, n) : 0;
    if (c != 0)
        return c;
    return a.size < b.size ? -1 : a.size > b.size;
}

static inline void hf_put16(unsigned char *p, uint16_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

static inline void hf_put32(unsigned char *p, uint32_t v)
{
    hf_put16(p, (uint16_t)v);
    hf_put16(p + 2, (uint16_t)(v >> 16));
}

static inline void hf_put64(unsigned char *p, uint64_t v)
{
    hf_put32(p, (uint32_t)v);
    hf_put32(p + 4, (uint32_t)(v >> 32));
}

static inline uint16_t hf_get16(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t hf_get32(const unsigned char *p)
{
    return hf_get16(p) | (uint32_t)hf_get16(p + 2) << 16;
}

static inline uint64_t hf_get64(const unsigned char *p)
{
    return hf_get32(p) | (uint64_t)hf_get32(p + 4) << 32;
}

#endif
