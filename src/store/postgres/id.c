#include "store/postgres/id.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/id.h"

static uint64_t hash(const uint8_t key[HF_PG_ID_KEY], const char *purpose, uint64_t value)
{
    struct hf_sha256 s;
    unsigned char b[8];
    uint8_t out[HF_DIGEST_SIZE];
    hf_put64(b, value);
    hf_sha256_init(&s);
    hf_sha256_add(&s, key, HF_PG_ID_KEY);
    hf_sha256_add(&s, purpose, strlen(purpose));
    hf_sha256_add(&s, b, sizeof b);
    hf_sha256_end(&s, out);
    return hf_get64(out);
}

void hf_pg_id_make(const uint8_t key[HF_PG_ID_KEY], uint64_t ordinal, char text[HF_ID_SIZE])
{
    uint8_t raw[HF_ID_RAW];
    uint64_t tag = hash(key, "tag", ordinal);
    hf_put64(raw, ordinal ^ hash(key, "mask", tag));
    hf_put64(raw + 8, tag);
    hf_id_unpack(raw, text);
}

bool hf_pg_id_fits(const uint8_t key[HF_PG_ID_KEY], const struct hf_hold *hold)
{
    char text[HF_ID_SIZE];
    hf_pg_id_make(key, hold->ordinal, text);
    return strcmp(text, hold->id) == 0;
}

bool hf_pg_id_read(const uint8_t key[HF_PG_ID_KEY], struct hf_bytes text, uint64_t *ordinal)
{
    uint8_t raw[HF_ID_RAW];
    if (!hf_id_pack(text, raw))
        return false;
    uint64_t tag = hf_get64(raw + 8);
    *ordinal = hf_get64(raw) ^ hash(key, "mask", tag);
    return hash(key, "tag", *ordinal) == tag;
}
