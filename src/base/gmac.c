/* GMAC from libcrypto: AES-128-GCM with nothing to encrypt. */
#include "base/bytes.h"
#include "base/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct hf_gmac {
    EVP_CIPHER_CTX *ctx;
};

/* The cipher, looked up once: libcrypto's search takes longer than a tag of a small batch. Kept
 * until the process ends. NULL: libcrypto has no memory for it now. */
static const EVP_CIPHER *cipher(void)
{
    static _Atomic(EVP_CIPHER *) known;
    EVP_CIPHER *none = NULL, *found = atomic_load_explicit(&known, memory_order_acquire);
    if (found)
        return found;
    found = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
    if (found && !atomic_compare_exchange_strong(&known, &none, found)) {
        EVP_CIPHER_free(found); /* another thread was first */
        found = none;
    }
    return found;
}

static bool key_set(EVP_CIPHER_CTX *ctx, const struct hf_sipkey *key)
{
    static const char purpose[] = "holdfast entries"; /* 16 bytes */
    const EVP_CIPHER *aes = cipher();
    unsigned char secret[32], derived[HF_DIGEST_SIZE];
    memcpy(secret, purpose, 16);
    hf_put64(secret + 16, key->k0);
    hf_put64(secret + 24, key->k1);
    hf_sha256_of(secret, sizeof secret, derived);
    bool good = aes && EVP_EncryptInit_ex(ctx, aes, NULL, derived, NULL) == 1;
    OPENSSL_cleanse(secret, sizeof secret);
    OPENSSL_cleanse(derived, sizeof derived);
    return good;
}

struct hf_gmac *hf_gmac_new(const struct hf_sipkey *key)
{
    struct hf_gmac *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->ctx = EVP_CIPHER_CTX_new();
    if (!g->ctx || !key_set(g->ctx, key)) {
        hf_gmac_free(g);
        return NULL;
    }
    return g;
}

void hf_gmac_free(struct hf_gmac *g)
{
    if (!g)
        return;
    EVP_CIPHER_CTX_free(g->ctx);
    free(g);
}

bool hf_gmac_of(struct hf_gmac *g, const uint8_t nonce[HF_GMAC_NONCE], struct hf_bytes data,
                uint8_t out[HF_GMAC_SIZE])
{
    unsigned char none[HF_GMAC_SIZE];
    int n = 0;
    return data.size <= INT32_MAX && EVP_EncryptInit_ex(g->ctx, NULL, NULL, NULL, nonce) == 1 &&
           (data.size == 0 ||
            EVP_EncryptUpdate(g->ctx, NULL, &n, data.data, (int)data.size) == 1) &&
           EVP_EncryptFinal_ex(g->ctx, none, &n) == 1 &&
           EVP_CIPHER_CTX_ctrl(g->ctx, EVP_CTRL_GCM_GET_TAG, HF_GMAC_SIZE, out) == 1;
}

bool hf_gmac_once(const struct hf_sipkey *key, const uint8_t nonce[HF_GMAC_NONCE],
                  struct hf_bytes data, uint8_t out[HF_GMAC_SIZE])
{
    struct hf_gmac *g = hf_gmac_new(key);
    bool good = g && hf_gmac_of(g, nonce, data, out);
    hf_gmac_free(g);
    return good;
}
