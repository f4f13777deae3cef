/* The low-level calls of libcrypto: like the EVP calls they use the CPU's SHA instructions, but
 * they allocate nothing and look nothing up. This halves the cost of hashing a request of 200
 * bytes. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/hash.h"

void hf_sha256_init(struct hf_sha256 *s)
{
    SHA256_Init(&s->ctx);
}

void hf_sha256_add(struct hf_sha256 *s, const void *data, size_t size)
{
    if (size > 0)
        SHA256_Update(&s->ctx, data, size);
}

void hf_sha256_end(struct hf_sha256 *s, uint8_t out[HF_DIGEST_SIZE])
{
    SHA256_Final(out, &s->ctx);
}

void hf_sha256_of(const void *data, size_t size, uint8_t out[HF_DIGEST_SIZE])
{
    struct hf_sha256 s;
    hf_sha256_init(&s);
    hf_sha256_add(&s, data, size);
    hf_sha256_end(&s, out);
}
