/* GMAC out of libcrypto: AES-128-GCM with nothing to encrypt. A context costs more to make than a small batch to tag, so each
 * thread keeps one, with the key that it used last. */
#include "base/bytes.h"
#include "base/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct kept {
    EVP_CIPHER_CTX *ctx;
    struct hf_sipkey key;
    bool has_key;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t of_thread;
static bool has_slot;
static EVP_CIPHER *cipher;

static void kept_free(void *arg)
{
    struct kept *k = arg;
    EVP_CIPHER_CTX_free(k->ctx);
    OPENSSL_cleanse(k, sizeof *k);
    free(k);
}

static void prepare(void)
{
    cipher = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
    has_slot = pthread_key_create(&of_thread, kept_free) == 0;
}

/* The thread's context. NULL without memory. */
static struct kept *kept_of_thread(void)
{
    pthread_once(&once, prepare);
    if (!cipher || !has_slot)
        return NULL;
    struct kept *k = pthread_getspecific(of_thread);
    if (k)
        return k;
    k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->ctx = EVP_CIPHER_CTX_new();
    if (!k->ctx || pthread_setspecific(of_thread, k) != 0) {
        kept_free(k);
        return NULL;
    }
    return k;
}

static bool key_set(struct kept *k, const struct hf_sipkey *key)
{
    static const char purpose[] = "holdfast entries"; /* 16 bytes */
    unsigned char secret[32], derived[HF_DIGEST_SIZE];
    if (k->has_key && k->key.k0 == key->k0 && k->key.k1 == key->k1)
        return true;
    memcpy(secret, purpose, 16);
    hf_put64(secret + 16, key->k0);
    hf_put64(secret + 24, key->k1);
    hf_sha256_of(secret, sizeof secret, derived);
    k->has_key = EVP_EncryptInit_ex(k->ctx, cipher, NULL, derived, NULL) == 1;
    k->key = *key;
    OPENSSL_cleanse(secret, sizeof secret);
    OPENSSL_cleanse(derived, sizeof derived);
    return k->has_key;
}

bool hf_gmac(const struct hf_sipkey *key, const uint8_t nonce[HF_GMAC_NONCE], struct hf_bytes data,
             uint8_t out[HF_GMAC_SIZE])
{
    struct kept *k = kept_of_thread();
    unsigned char none[HF_GMAC_SIZE];
    int n = 0;
    return k && data.size <= INT32_MAX && key_set(k, key) &&
           EVP_EncryptInit_ex(k->ctx, NULL, NULL, NULL, nonce) == 1 &&
           (data.size == 0 || EVP_EncryptUpdate(k->ctx, NULL, &n, data.data, (int)data.size) == 1) &&
           EVP_EncryptFinal_ex(k->ctx, none, &n) == 1 &&
           EVP_CIPHER_CTX_ctrl(k->ctx, EVP_CTRL_GCM_GET_TAG, HF_GMAC_SIZE, out) == 1;
}

void hf_gmac_forget(void)
{
    struct kept *k = has_slot ? pthread_getspecific(of_thread) : NULL;
    if (k && pthread_setspecific(of_thread, NULL) == 0)
        kept_free(k);
}
