/* Paths, queries and percent-encoding: what may stand in a target is taken apart without loss. */
#include "fuzz/support/fuzz.h"

#include "api/call.h"
#include "base/bytes.h"

#include <stdlib.h>

/* Unescaping where it stands gives the same as into another place, and what it gives can be escaped
 * again. */
static void unescape(struct hf_bytes text)
{
    char *apart = fuzz_alloc(text.size), *place = fuzz_copy(text), *all = fuzz_alloc(3 * text.size);
    size_t size = 0, again = 0;
    bool good = hf_http_unescape(text, apart, &size);
    FUZZ_WANT(hf_http_unescape(hf_mem(place, text.size), place, &again) == good);
    if (good) {
        FUZZ_WANT(size <= text.size && again == size &&
                  (size == 0 || memcmp(apart, place, size) == 0));
        for (size_t i = 0; i < size; i++) {
            static const char digits[] = "0123456789abcdef";
            all[3 * i] = '%';
            all[3 * i + 1] = digits[(unsigned char)apart[i] >> 4];
            all[3 * i + 2] = digits[apart[i] & 15];
        }
        FUZZ_WANT(hf_http_unescape(hf_mem(all, 3 * size), all, &again));
        FUZZ_WANT(again == size && (size == 0 || memcmp(all, apart, size) == 0));
    }
    free(all);
    free(place);
    free(apart);
}

static bool inside(struct hf_bytes part, struct hf_bytes whole)
{
    const char *p = part.data, *w = whole.data;
    return p >= w && p + part.size <= w + whole.size;
}

/* Every byte of a query is in a name or a value, or is one of the marks between them. */
static void query(struct hf_bytes text)
{
    struct hf_bytes rest = text, name, value;
    size_t taken = 0;
    while (hf_http_query_next(&rest, &name, &value)) {
        FUZZ_WANT(inside(name, text) && inside(value, text) && inside(rest, text));
        FUZZ_WANT(name.size == 0 || !memchr(name.data, '=', name.size));
        FUZZ_WANT((name.size == 0 || !memchr(name.data, '&', name.size)) &&
                  (value.size == 0 || !memchr(value.data, '&', value.size)));
        taken += name.size + value.size;
        unescape(name);
        unescape(value);
    }
    const char *p = text.data;
    size_t marks = 0;
    for (size_t i = 0; i < text.size; i++)
        marks += p[i] == '&' || p[i] == '=';
    FUZZ_WANT(rest.size == 0 && taken <= text.size && taken + marks >= text.size);
}

/* A call that is found has this path: the parameter stands in place of its name in the table. */
static void find(enum hf_http_method method, struct hf_bytes path)
{
    struct hf_call_match match;
    hf_call_find(method, path, &match);
    if (!match.call) {
        FUZZ_WANT(strnlen(match.allow, sizeof match.allow) < sizeof match.allow);
        return;
    }
    const char *row = match.call->path, *open = strchr(row, '{');
    size_t before = open ? (size_t)(open - row) : strlen(row);
    FUZZ_WANT(match.call->method == method ||
              (method == HF_HTTP_HEAD && match.call->method == HF_HTTP_GET));
    FUZZ_WANT(path.size >= before && memcmp(path.data, row, before) == 0);
    if (open) {
        const char *close = strchr(open, '}') + 1;
        FUZZ_WANT(match.params[0].size > 0 && inside(match.params[0], path));
        FUZZ_WANT(!memchr(match.params[0].data, '/', match.params[0].size));
        FUZZ_WANT(path.size == before + match.params[0].size + strlen(close));
        unescape(match.params[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    enum hf_http_method method = (enum hf_http_method)(fuzz_u8(&in) % (HF_HTTP_OPTIONS + 1));
    struct hf_bytes text = fuzz_rest(&in);
    char *copy = fuzz_copy(text);
    const char *mark = memchr(copy, '?', text.size);
    struct hf_bytes path = hf_mem(copy, mark ? (size_t)(mark - copy) : text.size);
    find(method, path);
    unescape(path);
    if (mark)
        query(hf_mem(mark + 1, text.size - path.size - 1));
    free(copy);
    return 0;
}
