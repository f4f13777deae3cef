/* A chunked body, whole and in pieces: the same bytes, the same end, the same refusal. */
#include "fuzz/support/fuzz.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "http/chunk.h"

#include <stdlib.h>

struct outcome {
    struct hf_buffer body; /* owned */
    size_t used;
    enum hf_http_parse parse;
    uint64_t left;
    struct hf_http_refusal why;
};

static void decode(const struct fuzz_split *split, const size_t *ends, size_t count,
                   struct outcome *out)
{
    struct hf_http_chunk c = { 0 };
    *out = (struct outcome){ .parse = HF_HTTP_MORE };
    for (size_t i = 0, at = 0; i < count && out->parse == HF_HTTP_MORE; at = ends[i++]) {
        struct hf_bytes piece = hf_mem((const char *)split->bytes.data + at, ends[i] - at);
        char *copy = fuzz_copy(piece);
        size_t size = piece.size, used = 0;
        out->parse = hf_http_chunk_decode(&c, copy, &size, &used, &out->why);
        FUZZ_WANT(used <= piece.size && size <= used);
        FUZZ_WANT(out->parse != HF_HTTP_MORE || used == piece.size);
        out->used += used;
        hf_buffer_add(&out->body, copy, size);
        free(copy);
    }
    out->left = c.left;
    FUZZ_WANT(!out->body.failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct fuzz_split split;
    struct outcome whole, parts;
    fuzz_split(&in, &split);
    decode(&split, &split.bytes.size, 1, &whole);
    decode(&split, split.ends, split.count, &parts);
    FUZZ_WANT(whole.parse == parts.parse && whole.used == parts.used && whole.left == parts.left);
    FUZZ_WANT(hf_bytes_equal(fuzz_held(&whole.body), fuzz_held(&parts.body)));
    if (whole.parse == HF_HTTP_BAD) {
        FUZZ_WANT(whole.why.status == 400 && parts.why.status == 400);
        FUZZ_WANT(strcmp(whole.why.detail, parts.why.detail) == 0);
    }
    hf_buffer_free(&whole.body);
    hf_buffer_free(&parts.body);
    return 0;
}
