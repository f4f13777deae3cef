/* hash.h: the three hashes. Each answers another question:
 *   CRC-32C   did the disk give back what we wrote?         (accidents)
 *   SHA-256   is this the same request, the same history?   (adversaries; also identities and digests)
 *   SipHash   where in a table?                             (keyed, so nobody can aim at one bucket) */
#ifndef HF_BASE_HASH_H
#define HF_BASE_HASH_H

#include "holdfast.h"

#include <openssl/sha.h>
#include <stdint.h>

/* CRC-32C (Castagnoli) of `size` bytes, going on from `crc` (0 at the start). */
uint32_t hf_crc32c(uint32_t crc, const void *data, size_t size);

struct hf_sha256 {
    SHA256_CTX ctx;
};

void hf_sha256_init(struct hf_sha256 *s);
void hf_sha256_add(struct hf_sha256 *s, const void *data, size_t size);
void hf_sha256_end(struct hf_sha256 *s, uint8_t out[HF_DIGEST_SIZE]);
void hf_sha256_of(const void *data, size_t size, uint8_t out[HF_DIGEST_SIZE]);

struct hf_sipkey {
    uint64_t k0, k1;
};

/* SipHash-2-4 of two runs of bytes as if they were one. */
uint64_t hf_siphash(const struct hf_sipkey *key, struct hf_bytes first, struct hf_bytes second);

#endif
