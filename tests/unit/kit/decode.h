/* decode.h: a call as it comes over HTTP, decoded, for the tests of the decoders. */
#ifndef HF_TESTS_UNIT_KIT_DECODE_H
#define HF_TESTS_UNIT_KIT_DECODE_H

#include "api/decode.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "support/test.h"

#define POST HF_HTTP_POST
#define PUT HF_HTTP_PUT
#define GET HF_HTTP_GET

struct decoded {
    struct hf_arena arena;
    struct hf_request request;
    struct hf_query query;
    struct hf_api_wishes wishes;
    struct hf_api_fault why;
    enum hf_status status;
};

/* One at a time, as a server has it: everything in it is good until the next one. */
static struct decoded decoded;

static inline int decode_end(void **state)
{
    (void)state;
    hf_arena_free(&decoded.arena);
    return 0;
}

/* A request with `target` (path and query); key and body may be NULL.
 */
static inline enum hf_status decode_bytes(enum hf_http_method method, const char *target,
                                          const char *key, struct hf_bytes body)
{
    const char *mark = strchr(target, '?');
    struct hf_bytes path = mark ? hf_mem(target, (size_t)(mark - target)) : hf_str(target);
    struct hf_call_match match;
    struct hf_api_input in = { .tenant = hf_str("t"),
                               .has_key = key != NULL,
                               .key_field = hf_str(key),
                               .query = hf_str(mark ? mark + 1 : ""),
                               .body = body };
    hf_arena_reset(&decoded.arena);
    decoded.why.detail[0] = '\0';
    hf_call_find(method, path, &match);
    assert_non_null(match.call);
    if (match.params[0].size > 0) {
        char *param = hf_arena_take(&decoded.arena, match.params[0].size);
        size_t size;
        assert_true(hf_http_unescape(match.params[0], param, &size));
        in.params[0] = hf_mem(param, size);
    }
    switch (match.call->kind) {
    case HF_CALL_DO:
        decoded.status =
            hf_api_decode(match.call, &in, &decoded.arena, &decoded.request, &decoded.why);
        break;
    case HF_CALL_LIST:
        decoded.status =
            hf_api_decode_list(match.call, &in, &decoded.arena, &decoded.query, &decoded.why);
        break;
    default:
        decoded.status =
            hf_api_decode_other(match.call, &in, &decoded.arena, &decoded.wishes, &decoded.why);
    }
    return decoded.status;
}

static inline enum hf_status decode_line(const char *line)
{
    const struct hf_call *call;
    hf_arena_reset(&decoded.arena);
    decoded.why.detail[0] = '\0';
    decoded.status = hf_api_decode_line(hf_str(line), hf_str("t"), &decoded.arena, &decoded.request,
                                        &call, &decoded.why);
    if (decoded.status == HF_OK)
        assert_int_equal(call->action, decoded.request.action);
    return decoded.status;
}

static inline void expect_good(const char *what)
{
    if (decoded.status != HF_OK)
        fail_msg("%s: %s", what, decoded.why.detail);
    assert_true(hf_bytes_equal(decoded.request.tenant, hf_str("t")));
}

/* Is the refusal left to the core, which remembers it? */
static inline bool is_left_to_core(void)
{
    return decoded.status == HF_OK && decoded.request.invalid != NULL;
}

/* The request is refused, at once or by the core, and the reason has `detail` in it. */
static inline void expect_bad(const char *what, const char *detail)
{
    if (is_left_to_core()) {
        struct hf_bytes why = decoded.request.invalid->why;
        assert_true(why.size < sizeof decoded.why.detail);
        memcpy(decoded.why.detail, why.data, why.size);
        decoded.why.detail[why.size] = '\0';
    } else if (decoded.status != HF_INVALID_REQUEST) {
        fail_msg("%s: status %d", what, decoded.status);
    }
    size_t size = strlen(decoded.why.detail);
    if (!strstr(decoded.why.detail, detail))
        fail_msg("%s: %s", what, decoded.why.detail);
    assert_true(size > 0 && decoded.why.detail[size - 1] == '.'); /* nothing was cut off */
}

static inline const struct hf_request *good(enum hf_http_method method, const char *target,
                                            const char *key, const char *body)
{
    (void)decode_bytes(method, target, key, hf_str(body));
    expect_good(body ? body : target);
    return &decoded.request;
}

static inline void bad(enum hf_http_method method, const char *target, const char *key,
                       const char *body, const char *detail)
{
    (void)decode_bytes(method, target, key, hf_str(body));
    expect_bad(body ? body : target, detail);
}

/* JSON as servers store it: a mark, the SHA-256 of its canonical form, and its text. Good until the
 * 32nd call after this one. */
static inline struct hf_bytes stored_as(const char *canonical, const char *text)
{
    static unsigned char rooms[32][HF_STORED_HEAD + 256];
    static unsigned next;
    unsigned char *room = rooms[next++ % 32];
    size_t size = strlen(text);
    assert_true(size <= 256);
    memcpy(room, HF_STORED_JSON, 2);
    hf_sha256_of(canonical, strlen(canonical), room + 2);
    memcpy(room + HF_STORED_HEAD, text, size);
    return hf_mem(room, HF_STORED_HEAD + size);
}

static inline void same_json(struct hf_bytes got, const char *canonical, const char *text)
{
    if (!hf_bytes_equal(got, stored_as(canonical, text)))
        fail_msg("got other bytes than those of %s", text);
}

static inline void same(struct hf_bytes got, const char *text)
{
    if (!hf_bytes_equal(got, hf_str(text)))
        fail_msg("got %.*s instead of %s", (int)got.size, got.data ? (const char *)got.data : "",
                 text);
}

#endif
