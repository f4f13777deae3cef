/* The head of an answer, as our client reads it: whole and in pieces the same. */
#include "fuzz/support/fuzz.h"

#include "client/client.h"

#include <stdlib.h>

struct outcome {
    enum hf_http_parse parse;
    struct hf_client_head head;
    const char *why;
};

/* suffix: what comes behind the last piece, or "". */
static void parse(const struct fuzz_split *split, const size_t *ends, size_t count,
                  const char *suffix, struct outcome *out)
{
    size_t scanned = 0, more = strlen(suffix);
    *out = (struct outcome){ .parse = HF_HTTP_MORE };
    for (size_t i = 0; i < count + (more > 0) && out->parse == HF_HTTP_MORE; i++) {
        size_t size = i < count ? ends[i] : split->bytes.size;
        char *copy = fuzz_alloc(size + more);
        if (size > 0)
            memcpy(copy, split->bytes.data, size);
        memcpy(copy + size, suffix, i < count ? 0 : more);
        size += i < count ? 0 : more;
        char *exact = fuzz_copy(hf_mem(copy, size));
        out->parse = hf_client_head_parse(exact, size, &scanned, &out->head, &out->why);
        FUZZ_WANT(out->parse != HF_HTTP_MORE || size < HF_CLIENT_HEAD_MAX);
        free(exact);
        free(copy);
    }
}

static void same(const struct outcome *a, const struct outcome *b)
{
    const struct hf_client_head *x = &a->head, *y = &b->head;
    FUZZ_WANT(a->parse == b->parse);
    if (a->parse == HF_HTTP_BAD)
        FUZZ_WANT(fuzz_sentence(a->why, 512) && strcmp(a->why, b->why) == 0);
    if (a->parse != HF_HTTP_DONE)
        return;
    FUZZ_WANT(x->status == y->status && x->length == y->length && x->keep_alive == y->keep_alive);
    FUZZ_WANT(x->replayed == y->replayed && x->date == y->date && x->size == y->size);
    FUZZ_WANT(strcmp(x->content_type, y->content_type) == 0 && strcmp(x->verdict, y->verdict) == 0);
    FUZZ_WANT(x->status >= 100 && x->status <= 999);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct fuzz_split split;
    struct outcome whole, parts;
    fuzz_split(&in, &split);
    parse(&split, &split.bytes.size, 1, "", &whole);
    parse(&split, split.ends, split.count, "", &parts);
    if (whole.parse != parts.parse) { /* what is wrong may be noticed at the end of the head */
        parse(&split, &split.bytes.size, 1, "\r\n\r\n", &whole);
        parse(&split, split.ends, split.count, "\r\n\r\n", &parts);
    }
    same(&whole, &parts);
    FUZZ_WANT(whole.parse != HF_HTTP_DONE || whole.head.size <= split.bytes.size + 4);
    return 0;
}
