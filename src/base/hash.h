/* hash.h: the four hashes. Each answers another question:
 *   CRC-32C   did the disk give back what we wrote?         (accidents)
 *   SHA-256   is this the same request, the same history?   (adversaries; also identities and digests)
 *   SipHash   where in a table? is this header ours?        (keyed, so that no client can aim or forge)
 *   GMAC      are all these bytes ours?                     (keyed; four times as fast as SHA-256) */
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

#define HF_GMAC_SIZE 16
#define HF_GMAC_NONCE 12

/* AES-128-GMAC. Its key is made from `key` by SHA-256, so that one secret serves SipHash and this.
 * nonce: never the same for two runs of bytes whose tags others may see. */
struct hf_gmac;
/* For many tags under one key, by one thread at a time. Owned, free with hf_gmac_free. NULL without
 * memory. */
struct hf_gmac *hf_gmac_new(const struct hf_sipkey *key);
void hf_gmac_free(struct hf_gmac *gmac);
/* Takes no memory. False if libcrypto fails, which it has no reason to. */
HF_MUST_USE bool hf_gmac_of(struct hf_gmac *gmac, const uint8_t nonce[HF_GMAC_NONCE],
                            struct hf_bytes data, uint8_t out[HF_GMAC_SIZE]);
/* One tag. False without memory. */
HF_MUST_USE bool hf_gmac_once(const struct hf_sipkey *key, const uint8_t nonce[HF_GMAC_NONCE],
                              struct hf_bytes data, uint8_t out[HF_GMAC_SIZE]);

#endif
