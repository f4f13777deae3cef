#include "base/id.h"

#include "base/bytes.h"

#include <stdio.h>

static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

/* One more than the value of each digit, in both cases; 0: not a digit. */
static const unsigned char values[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['g'] = 17, ['h'] = 18, ['j'] = 19, ['k'] = 20, ['m'] = 21, ['n'] = 22, ['p'] = 23, ['q'] = 24,
    ['r'] = 25, ['s'] = 26, ['t'] = 27, ['v'] = 28, ['w'] = 29, ['x'] = 30, ['y'] = 31, ['z'] = 32,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16, ['G'] = 17, ['H'] = 18,
    ['J'] = 19, ['K'] = 20, ['M'] = 21, ['N'] = 22, ['P'] = 23, ['Q'] = 24, ['R'] = 25, ['S'] = 26,
    ['T'] = 27, ['V'] = 28, ['W'] = 29, ['X'] = 30, ['Y'] = 31, ['Z'] = 32,
};

static uint64_t big_get(const uint8_t *p)
{
    return (uint64_t)p[0] << 56 | (uint64_t)p[1] << 48 | (uint64_t)p[2] << 40 |
           (uint64_t)p[3] << 32 | (uint64_t)p[4] << 24 | (uint64_t)p[5] << 16 |
           (uint64_t)p[6] << 8 | p[7];
}

static void big_put(uint8_t *p, uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        p[i] = (uint8_t)v;
}

/* 26 digits of 5 bits are 130: two zero bits and the 128. Digits 0 to 12 and one bit of digit 13
 * are the high half, the rest of digit 13 and digits 14 to 25 the low one. */
enum { SPLIT = 13 };

void hf_id_unpack(const uint8_t raw[HF_ID_RAW], char text[HF_ID_SIZE])
{
    uint64_t high = big_get(raw), low = big_get(raw + 8);
    text[HF_ID_SIZE - 1] = '\0';
    for (int i = HF_ID_SIZE - 2; i > SPLIT; i--, low >>= 5)
        text[i] = digits[low & 31];
    text[SPLIT] = digits[(low | high << 4) & 31];
    high >>= 1;
    for (int i = SPLIT - 1; i >= 0; i--, high >>= 5)
        text[i] = digits[high & 31];
}

bool hf_id_pack(struct hf_bytes text, uint8_t raw[HF_ID_RAW])
{
    if (text.size != HF_ID_SIZE - 1)
        return false;
    const unsigned char *p = text.data;
    uint64_t high = 0, low;
    unsigned all = 0; /* above 31 at the end if any was not a digit */
    unsigned value[HF_ID_SIZE - 1];
    for (int i = 0; i < HF_ID_SIZE - 1; i++) {
        value[i] = (unsigned)values[p[i]] - 1;
        all |= value[i];
    }
    if (all > 31 || value[0] > 7)
        return false;
    for (int i = 0; i < SPLIT; i++)
        high = high << 5 | value[i];
    high = high << 1 | value[SPLIT] >> 4;
    low = value[SPLIT] & 15;
    for (int i = SPLIT + 1; i < HF_ID_SIZE - 1; i++)
        low = low << 5 | value[i];
    big_put(raw, high);
    big_put(raw + 8, low);
    return true;
}

static uint64_t tag_of(const struct hf_sipkey *key, uint64_t ordinal)
{
    unsigned char b[8];
    hf_put64(b, ordinal);
    return hf_siphash(key, hf_mem("tag", 3), hf_mem(b, sizeof b));
}

static uint64_t mask_of(const struct hf_sipkey *key, uint64_t tag)
{
    unsigned char b[8];
    hf_put64(b, tag);
    return hf_siphash(key, hf_mem("mask", 4), hf_mem(b, sizeof b));
}

void hf_id_make(const struct hf_sipkey *key, uint64_t ordinal, char text[HF_ID_SIZE])
{
    uint8_t raw[HF_ID_RAW];
    uint64_t tag = tag_of(key, ordinal);
    hf_put64(raw, ordinal ^ mask_of(key, tag));
    hf_put64(raw + 8, tag);
    hf_id_unpack(raw, text);
}

bool hf_id_read(const struct hf_sipkey *key, struct hf_bytes text, uint64_t *ordinal)
{
    uint8_t raw[HF_ID_RAW];
    if (!hf_id_pack(text, raw))
        return false;
    uint64_t tag = hf_get64(raw + 8);
    *ordinal = hf_get64(raw) ^ mask_of(key, tag);
    return tag_of(key, *ordinal) == tag;
}

/* Four rounds of a Feistel network with a keyed hash: a permutation of all numbers of 64 bits. */
enum { ROUNDS = 4 };

static uint32_t round_of(const struct hf_sipkey *key, struct hf_bytes tenant, int round,
                         uint32_t half)
{
    unsigned char b[8] = { 'c', 'u', 'r', (unsigned char)round };
    hf_put32(b + 4, half);
    return (uint32_t)hf_siphash(key, tenant, hf_mem(b, sizeof b));
}

static uint64_t permute(const struct hf_sipkey *key, struct hf_bytes tenant, uint64_t value,
                        bool back)
{
    uint32_t left = (uint32_t)(value >> 32), right = (uint32_t)value;
    for (int i = 0; i < ROUNDS; i++) {
        if (back) {
            uint32_t was = right ^ round_of(key, tenant, ROUNDS - 1 - i, left);
            right = left;
            left = was;
        } else {
            uint32_t is = left ^ round_of(key, tenant, i, right);
            left = right;
            right = is;
        }
    }
    return (uint64_t)left << 32 | right;
}

/* 0 means none. So a number that would become 0 becomes what 0 would become. */
static uint64_t permute_kept(const struct hf_sipkey *key, struct hf_bytes tenant, uint64_t value,
                             bool back)
{
    uint64_t other = value ? permute(key, tenant, value, back) : 0;
    return value && other == 0 ? permute(key, tenant, 0, back) : other;
}

uint64_t hf_cursor_make(const struct hf_sipkey *key, struct hf_bytes tenant, uint64_t place)
{
    return permute_kept(key, tenant, place, false);
}

uint64_t hf_cursor_read(const struct hf_sipkey *key, struct hf_bytes tenant, uint64_t cursor)
{
    return permute_kept(key, tenant, cursor, true);
}

void hf_uuid7_make(hf_time now, const uint8_t random[10], char text[HF_UUID_SIZE])
{
    uint64_t ms = (uint64_t)now & 0xffffffffffffU;
    snprintf(text, HF_UUID_SIZE, "%08x-%04x-7%x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             (unsigned)(ms >> 16), (unsigned)(ms & 0xffff), random[0] & 15U, random[1],
             (random[2] & 0x3fU) | 0x80U, random[3], random[4], random[5], random[6], random[7],
             random[8], random[9]);
}
