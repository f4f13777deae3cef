#include "base/bytes.h"
#include "base/hash.h"

#include <stdatomic.h>

/* A table of 256 steps, made at first use. */
static uint32_t table[256];
static atomic_int table_state; /* 0 not made, 1 being made, 2 ready */

#ifdef __x86_64__
static void shift_make(void);
#endif

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
#ifdef __x86_64__
    shift_make();
#endif
    atomic_store(&table_state, 2);
}

static uint32_t crc_table(uint32_t crc, const unsigned char *p, size_t size)
{
    while (size-- > 0)
        crc = (crc >> 8) ^ table[(crc ^ *p++) & 0xff];
    return crc;
}

#ifdef __x86_64__
#include <nmmintrin.h>

/* The instruction takes three cycles, but one can start in each cycle: three interleaved runs are
 * three times as fast. To combine them, the CRC of a run is moved over the RUN bytes after it. That
 * is linear, so it takes one table look-up for each of the four bytes. */
enum { RUN = 1024 };
static uint32_t shift[4][256];

/* `crc` moved over one zero byte. */
static uint32_t over_zero(uint32_t crc)
{
    return (crc >> 8) ^ table[crc & 0xff];
}

static void shift_make(void)
{
    uint32_t moved[32]; /* each single bit, moved over RUN zero bytes */
    for (int bit = 0; bit < 32; bit++) {
        moved[bit] = UINT32_C(1) << bit;
        for (int i = 0; i < RUN; i++)
            moved[bit] = over_zero(moved[bit]);
    }
    for (int byte = 0; byte < 4; byte++)
        for (uint32_t v = 0; v < 256; v++)
            for (int bit = 0; bit < 8; bit++)
                if (v >> bit & 1)
                    shift[byte][v] ^= moved[byte * 8 + bit];
}

static uint32_t over_run(uint32_t crc)
{
    return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^ shift[2][crc >> 16 & 0xff] ^
           shift[3][crc >> 24];
}

__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const unsigned char *p,
                                                            size_t size)
{
    uint64_t a = crc;
    for (; size >= 3 * RUN; p += 3 * RUN, size -= 3 * RUN) {
        uint64_t b = 0, c = 0;
        for (size_t i = 0; i < RUN; i += 8) {
            a = _mm_crc32_u64(a, hf_get64(p + i));
            b = _mm_crc32_u64(b, hf_get64(p + RUN + i));
            c = _mm_crc32_u64(c, hf_get64(p + 2 * RUN + i));
        }
        a = over_run(over_run((uint32_t)a) ^ (uint32_t)b) ^ c;
    }
    for (; size >= 8; p += 8, size -= 8)
        a = _mm_crc32_u64(a, hf_get64(p));
    while (size-- > 0)
        a = _mm_crc32_u8((uint32_t)a, *p++);
    return (uint32_t)a;
}
#endif

uint32_t hf_crc32c(uint32_t crc, const void *data, size_t size)
{
    crc = ~crc;
    if (atomic_load_explicit(&table_state, memory_order_acquire) != 2)
        table_make();
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc_sse42(crc, data, size);
#endif
    return ~crc_table(crc, data, size);
}
