/* hash.h: the four hashes, and the question that each one answers:
 *   CRC-32C   did the disk return what we wrote?           (against accidents)
 *   SHA-256   is this the same request, the same history?  (against attackers; identities, digests)
 *   SipHash   where in a table? is this header ours?       (keyed: no client can aim or forge)
 *   GMAC      are all these bytes ours?                    (keyed; 4 times as fast as SHA-256) */
#ifndef HF_BASE_HASH_H
#define HF_BASE_HASH_H

#include "holdfast.h"

#include <openssl/sha.h>
#include <stdint.h>

/* CRC-32C (Castagnoli) of `size` bytes, continued from `crc` (0 at the start). */
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

/* SipHash-2-4 of `first` followed by `second`. */
uint64_t hf_siphash(const struct hf_sipkey *key, struct hf_bytes first, struct hf_bytes second);

#define HF_GMAC_SIZE 16
#define HF_GMAC_NONCE 12

/* AES-128-GMAC. Its key is derived from `key` by SHA-256, so that one secret is enough for SipHash
 * and GMAC. nonce: never the same for two tags that others may see. */
struct hf_gmac;
/* For many tags under one key, by one thread at a time. Owned, free with hf_gmac_free. NULL if out
 * of memory. */
struct hf_gmac *hf_gmac_new(const struct hf_sipkey *key);
void hf_gmac_free(struct hf_gmac *gmac);
/* Allocates nothing. False if libcrypto fails, which is not expected. */
HF_MUST_USE bool hf_gmac_of(struct hf_gmac *gmac, const uint8_t nonce[HF_GMAC_NONCE],
                            struct hf_bytes data, uint8_t out[HF_GMAC_SIZE]);
/* One tag. False if out of memory. */
HF_MUST_USE bool hf_gmac_once(const struct hf_sipkey *key, const uint8_t nonce[HF_GMAC_NONCE],
                              struct hf_bytes data, uint8_t out[HF_GMAC_SIZE]);

#endif
