/* A pack, with numbers in little-endian order:
 *
 *   at 0    8 bytes   HOLDFUZ1
 *   at 8    u32       number of inputs, 1 and up
 *   at 12   u32       CRC-32C of all that comes behind it
 *   at 16   for each input: u32 length, and its bytes
 *
 * The inputs rise by their SHA-256, so none is there twice, and the same inputs make the same pack.
 * Nothing comes behind the last one. A pack that is not so is refused as a whole: a test that ran a
 * part of it would prove less than it says. */
#include "fuzz/support/corpus.h"

#include "fuzz/support/fuzz.h"

#include "base/bytes.h"
#include "base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAGIC "HOLDFUZ1"
enum { MAGIC_SIZE = 8, HEAD = 16, LENGTH = 4 };

static int by_digest(const void *a, const void *b)
{
    const struct hf_bytes *first = a, *second = b;
    uint8_t one[HF_DIGEST_SIZE], other[HF_DIGEST_SIZE];
    hf_sha256_of(first->data, first->size, one);
    hf_sha256_of(second->data, second->size, other);
    return memcmp(one, other, HF_DIGEST_SIZE);
}

/* Find the inputs behind the head. NULL, or what is wrong. */
static const char *find_inputs(struct hf_bytes pack, struct fuzz_corpus *out)
{
    const unsigned char *start = pack.data, *p = start + HEAD;
    size_t left = pack.size - HEAD;
    for (size_t i = 0; i < out->count; i++) {
        size_t size = left >= LENGTH ? hf_get32(p) : 0;
        if (left < LENGTH || size > left - LENGTH)
            return "it is cut short";
        out->inputs[i] = hf_mem(p + LENGTH, size);
        p += LENGTH + size;
        left -= LENGTH + size;
    }
    if (left > 0)
        return "there is something behind its last input";
    if (hf_get32(start + 12) != hf_crc32c(0, start + HEAD, pack.size - HEAD))
        return "its checksum is wrong";
    for (size_t i = 1; i < out->count; i++)
        if (by_digest(&out->inputs[i - 1], &out->inputs[i]) >= 0)
            return "its inputs are not in order";
    return NULL;
}

const char *fuzz_corpus_read(struct hf_bytes pack, struct fuzz_corpus *out)
{
    const unsigned char *p = pack.data;
    *out = (struct fuzz_corpus){ 0 };
    if (pack.size < MAGIC_SIZE || memcmp(p, MAGIC, MAGIC_SIZE) != 0)
        return "it does not begin with " MAGIC;
    if (pack.size < HEAD)
        return "it is cut short";
    uint32_t count = hf_get32(p + 8);
    if (count == 0)
        return "it has no inputs";
    if (count > (pack.size - HEAD) / LENGTH)
        return "it is cut short";
    out->count = count;
    out->inputs = fuzz_alloc(count * sizeof *out->inputs);
    const char *wrong = find_inputs(pack, out);
    if (wrong)
        fuzz_corpus_free(out);
    return wrong;
}

void fuzz_corpus_free(struct fuzz_corpus *corpus)
{
    free(corpus->inputs);
    *corpus = (struct fuzz_corpus){ 0 };
}

void fuzz_corpus_write(struct hf_bytes *inputs, size_t count, struct hf_buffer *out)
{
    unsigned char head[HEAD] = MAGIC, length[LENGTH];
    size_t start = out->size;
    uint32_t packed = 0;
    FUZZ_WANT(count > 0);
    qsort(inputs, count, sizeof *inputs, by_digest);
    hf_buffer_add(out, head, HEAD);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && hf_bytes_equal(inputs[i - 1], inputs[i]))
            continue;
        FUZZ_WANT(inputs[i].size <= UINT32_MAX && packed < UINT32_MAX);
        hf_put32(length, (uint32_t)inputs[i].size);
        hf_buffer_add(out, length, LENGTH);
        hf_buffer_add_bytes(out, inputs[i]);
        packed++;
    }
    FUZZ_WANT(!out->failed);
    hf_put32(out->data + start + 8, packed);
    hf_put32(out->data + start + 12,
             hf_crc32c(0, out->data + start + HEAD, out->size - start - HEAD));
}

void fuzz_corpus_name(struct hf_bytes input, char name[FUZZ_NAME_ROOM])
{
    uint8_t digest[HF_DIGEST_SIZE];
    hf_sha256_of(input.data, input.size, digest);
    for (size_t i = 0; i < HF_DIGEST_SIZE; i++)
        snprintf(name + 2 * i, 3, "%02x", digest[i]);
}

bool fuzz_file_read(const char *path, struct hf_buffer *out)
{
    char some[4096];
    FILE *in = fopen(path, "rb");
    if (!in)
        return false;
    for (size_t got; (got = fread(some, 1, sizeof some, in)) > 0;)
        hf_buffer_add(out, some, got);
    bool whole = !ferror(in);
    int why = errno;
    fclose(in);
    FUZZ_WANT(!out->failed);
    errno = why;
    return whole;
}
