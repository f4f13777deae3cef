#include "audit/id.h"

#include "base/bytes.h"
#include "base/id.h"

/* The first 8 bytes of SHA-256 of the key, a word and a number. */
static uint64_t keyed(const struct hf_audit_journal *j, const char *word, uint64_t number)
{
    struct hf_sha256 sha;
    unsigned char bytes[8];
    uint8_t digest[HF_DIGEST_SIZE];
    hf_put64(bytes, number);
    hf_sha256_init(&sha);
    hf_sha256_add(&sha, j->database_key, sizeof j->database_key);
    hf_sha256_add(&sha, word, strlen(word));
    hf_sha256_add(&sha, bytes, sizeof bytes);
    hf_sha256_end(&sha, digest);
    return hf_get64(digest);
}

bool hf_audit_id_read(const struct hf_audit_journal *j, struct hf_bytes text, uint64_t *ordinal)
{
    uint8_t raw[HF_ID_RAW];
    if (!j->database)
        return hf_id_read(&j->id_key, text, ordinal);
    if (!hf_id_pack(text, raw))
        return false;
    *ordinal = hf_get64(raw) ^ keyed(j, "mask", hf_get64(raw + 8));
    return keyed(j, "tag", *ordinal) == hf_get64(raw + 8);
}

void hf_audit_id_make(const struct hf_audit_journal *j, uint64_t ordinal, char text[HF_ID_SIZE])
{
    uint8_t raw[HF_ID_RAW];
    if (!j->database) {
        hf_id_make(&j->id_key, ordinal, text);
        return;
    }
    uint64_t tag = keyed(j, "tag", ordinal);
    hf_put64(raw, ordinal ^ keyed(j, "mask", tag));
    hf_put64(raw + 8, tag);
    hf_id_unpack(raw, text);
}
