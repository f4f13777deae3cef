#include "base/bytes.h"
#include "base/hash.h"

#include <stdatomic.h>

/* One table of 256 steps for machines without the instruction, made at first use. */
static uint32_t table[256];
static atomic_int table_state; /* 0 not made, 1 being made, 2 ready */

static void table_make(void)
{
    int expected = 0;
    if (!atomic_compare_exchange_strong(&table_state, &expected, 1)) {
        while (atomic_load(&table_state) != 2)
            ;
        return;
    }
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = (c >> 1) ^ (c & 1 ? 0x82f63b78U : 0);
        table[i] = c;
    }
    atomic_store(&table_state, 2);
}

static uint32_t crc_table(uint32_t crc, const unsigned char *p, size_t size)
{
    if (atomic_load(&table_state) != 2)
        table_make();
    while (size-- > 0)
        crc = (crc >> 8) ^ table[(crc ^ *p++) & 0xff];
    return crc;
}

#ifdef __x86_64__
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const unsigned char *p, size_t size)
{
    uint64_t c = crc;
    while (size >= 8) {
        c = _mm_crc32_u64(c, hf_get64(p));
        p += 8;
        size -= 8;
    }
    while (size-- > 0)
        c = _mm_crc32_u8((uint32_t)c, *p++);
    return (uint32_t)c;
}
#endif

uint32_t hf_crc32c(uint32_t crc, const void *data, size_t size)
{
    crc = ~crc;
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc_sse42(crc, data, size);
#endif
    return ~crc_table(crc, data, size);
}
