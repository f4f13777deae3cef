/* A batch: lines of JSON, each an operation. */
#include "fuzz/support/fuzz.h"

#include "api/decode.h"
#include "base/bytes.h"

#include <stdlib.h>

static struct hf_arena arena;

static void decode(struct hf_bytes text)
{
    const struct hf_call *call = NULL;
    struct hf_request request;
    struct hf_api_fault why = { "" };
    char *copy = fuzz_copy(text);
    enum hf_status status =
        hf_api_decode_line(hf_mem(copy, text.size), hf_str("t"), &arena, &request, &call, &why);
    if (status == HF_OK) {
        FUZZ_WANT(call && call->op && call->kind == HF_CALL_DO && call->action == request.action);
        FUZZ_WANT(hf_bytes_equal(request.tenant, hf_str("t")));
        FUZZ_WANT(request.client.size == 0 || (call->key && request.key.size == 0));
    } else {
        FUZZ_WANT(status == HF_INVALID_REQUEST);
        FUZZ_WANT(fuzz_sentence(why.detail, sizeof why.detail) &&
                  why.detail[strlen(why.detail) - 1] == '.');
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    while (size > 0) {
        const uint8_t *feed = memchr(data, '\n', size);
        size_t line = feed ? (size_t)(feed - data) : size;
        decode(hf_mem(data, line));
        data += feed ? line + 1 : line;
        size -= feed ? line + 1 : line;
    }
    hf_arena_reset(&arena);
    return 0;
}
