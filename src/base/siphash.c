/* SipHash-2-4 (Aumasson and Bernstein). */
#include "base/bytes.h"
#include "base/hash.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotl(uint64_t x, int b)
{
    return x << b | x >> (64 - b);
}

static inline void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotl(s->v1, 13) ^ s->v0;
    s->v0 = rotl(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotl(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotl(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotl(s->v1, 17) ^ s->v2;
    s->v2 = rotl(s->v2, 32);
}

static inline void sip_word(struct sip *s, uint64_t m)
{
    s->v3 ^= m;
    sip_round(s);
    sip_round(s);
    s->v0 ^= m;
}

/* Hash the whole words of `b`. `rest` keeps the bytes of an unfinished word, `have` counts them. */
static void sip_run(struct sip *s, struct hf_bytes b, uint64_t *rest, unsigned *have)
{
    const unsigned char *p = b.data;
    size_t n = b.size;
    while (*have != 0 && n > 0) {
        *rest |= (uint64_t)*p++ << (8 * *have);
        n--;
        *have = (*have + 1) % 8;
        if (*have == 0) {
            sip_word(s, *rest);
            *rest = 0;
        }
    }
    for (; n >= 8; p += 8, n -= 8)
        sip_word(s, hf_get64(p));
    for (; n > 0; n--)
        *rest |= (uint64_t)*p++ << (8 * (*have)++);
}

uint64_t hf_siphash(const struct hf_sipkey *key, struct hf_bytes first, struct hf_bytes second)
{
    struct sip s = { key->k0 ^ 0x736f6d6570736575U, key->k1 ^ 0x646f72616e646f6dU,
                     key->k0 ^ 0x6c7967656e657261U, key->k1 ^ 0x7465646279746573U };
    uint64_t rest = 0;
    unsigned have = 0;
    sip_run(&s, first, &rest, &have);
    sip_run(&s, second, &rest, &have);
    sip_word(&s, rest | (uint64_t)(first.size + second.size) << 56);
    s.v2 ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
