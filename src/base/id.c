#include "base/id.h"

#include "base/bytes.h"

#include <stdio.h>

static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

static int digit_value(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        c = (unsigned char)(c - 'A' + 'a');
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

void hf_id_unpack(const uint8_t raw[HF_ID_RAW], char text[HF_ID_SIZE])
{
    /* 128 bits, most significant first, as 26 digits of 5 bits: the first digit has 3 bits. */
    unsigned acc = 0;
    int bits = 2; /* two zero bits in front make 130 */
    size_t out = 0;
    for (size_t i = 0; i < HF_ID_RAW; i++) {
        acc = acc << 8 | raw[i];
        bits += 8;
        while (bits >= 5) {
            bits -= 5;
            text[out++] = digits[acc >> bits & 31];
        }
        acc &= (1U << bits) - 1;
    }
    text[out] = '\0';
}

bool hf_id_pack(struct hf_bytes text, uint8_t raw[HF_ID_RAW])
{
    if (text.size != HF_ID_SIZE - 1)
        return false;
    const unsigned char *p = text.data;
    unsigned acc = 0;
    int bits = -2;
    size_t out = 0;
    for (size_t i = 0; i < HF_ID_SIZE - 1; i++) {
        int v = digit_value(p[i]);
        if (v < 0 || (i == 0 && v > 7))
            return false;
        acc = acc << 5 | (unsigned)v;
        bits += 5;
        if (bits >= 8) {
            bits -= 8;
            raw[out++] = (uint8_t)(acc >> bits);
            acc &= (1U << bits) - 1;
        }
    }
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

void hf_uuid7_make(hf_time now, const uint8_t random[10], char text[HF_UUID_SIZE])
{
    uint64_t ms = (uint64_t)now & 0xffffffffffffU;
    snprintf(text, HF_UUID_SIZE, "%08x-%04x-7%x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             (unsigned)(ms >> 16), (unsigned)(ms & 0xffff), random[0] & 15U, random[1],
             (random[2] & 0x3fU) | 0x80U, random[3], random[4], random[5], random[6], random[7],
             random[8], random[9]);
}
