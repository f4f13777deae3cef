/* Requests, encoded here and decoded as the server does it: they arrive as they were. */
#include "api/decode.h"
#include "base/bytes.h"
#include "client/client.h"
#include "support/test.h"

static struct hf_arena arena;

static int clean(void **state)
{
    (void)state;
    hf_arena_free(&arena);
    return 0;
}

/* What the server makes of the target: the call, and what its decoders start from. */
static const struct hf_call *arrive(const struct hf_client_call *call, struct hf_api_input *in)
{
    struct hf_bytes target = hf_mem(call->target.data, call->target.size);
    const char *mark = memchr(target.data, '?', target.size);
    struct hf_bytes path =
        hf_mem(target.data, mark ? (size_t)(mark - (const char *)target.data) : target.size);
    struct hf_call_match match;
    hf_call_find(call->method, path, &match);
    *in = (struct hf_api_input){ .has_key = call->key.size > 0,
                                 .key_field = hf_mem(call->key.data, call->key.size),
                                 .body = hf_mem(call->body.data, call->body.size) };
    if (mark)
        in->query = hf_mem(mark + 1, target.size - path.size - 1);
    if (match.call && match.params[0].size > 0) {
        char *room = hf_arena_take(&arena, match.params[0].size);
        size_t size;
        assert_true(hf_http_unescape(match.params[0], room, &size));
        in->params[0] = hf_mem(room, size);
    }
    for (size_t i = 0; i < target.size; i++)
        assert_in_range(((const unsigned char *)target.data)[i], 0x21, 0x7e);
    return match.call;
}

/* Send it there. out: what arrived; lives in the arena and the call. */
static void travel(const struct hf_request *request, struct hf_client_call *call,
                   struct hf_request *out)
{
    struct hf_error why;
    struct hf_api_fault fault = { "" };
    struct hf_api_input in;
    assert_int_equal(hf_client_encode(request, call, &why), HF_OK);
    const struct hf_call *row = arrive(call, &in);
    assert_non_null(row);
    assert_int_equal(row->action, request->action);
    if (hf_api_decode(row, &in, &arena, out, &fault) != HF_OK)
        fail_msg("%s", fault.detail);
    assert_true(hf_bytes_equal(request->key, out->key));
}

#define ASSERT_SAME(a, b) assert_true(hf_bytes_equal((a), (b)))

/* Names and keys out of everything that may be in them. */
static struct hf_bytes any_text(uint64_t *random)
{
    static const char *const parts[] = {
        "a",    "/",  "%",    "?",   "&",  "=",        "#",
        "+",    " ",  ".",    "\"",  "\\", "\xc3\xa9", "\xf0\x9f\x94\x91",
        "\x01", "\t", "\x7f", "%2F", "{",  "}",        ";",
        "~",    "-"
    };
    char *text = hf_arena_take(&arena, 128);
    size_t size = 0;
    for (uint64_t count = 1 + test_below(random, 12); count > 0; count--) {
        const char *part = parts[test_below(random, sizeof parts / sizeof *parts)];
        memcpy(text + size, part, strlen(part));
        size += strlen(part);
    }
    return hf_mem(text, size);
}

static struct hf_bytes any_key(uint64_t *random)
{
    char *text = hf_arena_take(&arena, 64);
    size_t size = 1 + test_below(random, 63);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)(0x20 + test_below(random, 0x5f));
    return hf_mem(text, size);
}

static void holds(void **state)
{
    uint64_t random = test_seed("holds", 1);
    (void)state;
    for (int i = 0; i < 500; i++) {
        struct hf_request r = { .action = HF_PLACE_HOLD, .key = any_key(&random) }, got;
        struct hf_client_call call;
        r.place_hold.resource = any_text(&random);
        r.place_hold.requester = any_text(&random);
        r.place_hold.duration_ms = (int64_t)test_below(&random, HF_DURATION_MAX_MS + 1);
        r.place_hold.fence = i % 3 ? test_random(&random) : 0;
        travel(&r, &call, &got);
        assert_true(call.changes && call.again);
        ASSERT_SAME(r.place_hold.resource, got.place_hold.resource);
        ASSERT_SAME(r.place_hold.requester, got.place_hold.requester);
        assert_int_equal(r.place_hold.duration_ms, got.place_hold.duration_ms);
        assert_int_equal(r.place_hold.fence, got.place_hold.fence);
        hf_client_call_free(&call);
        hf_arena_reset(&arena);
    }
}

static void ends(void **state)
{
    static const enum hf_action actions[] = { HF_CONFIRM, HF_RELEASE, HF_EXPIRE, HF_REVERSE,
                                              HF_GET_HOLD };
    (void)state;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        bool looks = actions[i] == HF_GET_HOLD;
        struct hf_request r = { .action = actions[i],
                                .hold = { hf_str("0d1b6cv3p1d2pjhxab2na5d60k") } },
                          got;
        struct hf_client_call call;
        if (!looks)
            r.key = hf_str("k");
        travel(&r, &call, &got);
        ASSERT_SAME(r.hold.id, got.hold.id);
        assert_int_equal(call.changes, !looks);
        assert_true(call.again);
        hf_client_call_free(&call);
    }
}

static void settings(void **state)
{
    uint64_t random = test_seed("settings", 2);
    (void)state;
    for (int i = 0; i < 300; i++) {
        struct hf_request r = { .action = HF_SET_RESOURCE }, g = { .action = HF_SET_GUARD }, got;
        struct hf_client_call call;
        r.set_resource.name = any_text(&random);
        r.set_resource.capacity = (uint32_t)test_below(&random, HF_CAPACITY_MAX);
        r.set_resource.open = i % 3;
        travel(&r, &call, &got);
        ASSERT_SAME(r.set_resource.name, got.set_resource.name);
        assert_int_equal(r.set_resource.capacity, got.set_resource.capacity);
        assert_int_equal(r.set_resource.open, got.set_resource.open);
        assert_true(call.changes && call.again);
        hf_client_call_free(&call);
        g.set_guard.name = any_text(&random);
        g.set_guard.window_ms = 1 + (int64_t)test_below(&random, HF_DURATION_MAX_MS);
        g.set_guard.match_count = (uint32_t)test_below(&random, HF_MATCH_MAX + 1);
        for (uint32_t m = 0; m < g.set_guard.match_count; m++)
            g.set_guard.match[m] = (enum hf_match)(1 + test_below(&random, 5));
        g.set_guard.on_unavailable = i % 2 ? HF_FAIL_CLOSED : HF_FAIL_OPEN;
        g.set_guard.volatile_only = i % 5 == 0;
        travel(&g, &call, &got);
        ASSERT_SAME(g.set_guard.name, got.set_guard.name);
        assert_int_equal(g.set_guard.window_ms, got.set_guard.window_ms);
        assert_int_equal(g.set_guard.match_count, got.set_guard.match_count);
        for (uint32_t m = 0; m < g.set_guard.match_count; m++)
            assert_int_equal(g.set_guard.match[m], got.set_guard.match[m]);
        assert_int_equal(g.set_guard.on_unavailable, got.set_guard.on_unavailable);
        assert_int_equal(g.set_guard.volatile_only, got.set_guard.volatile_only);
        hf_client_call_free(&call);
        hf_arena_reset(&arena);
    }
}

static void identities(void **state)
{
    static const enum hf_action actions[] = { HF_CHECK, HF_RECORD, HF_ADMIT };
    uint64_t random = test_seed("identities", 3);
    (void)state;
    for (int i = 0; i < 300; i++) {
        struct hf_request r = { .action = actions[i % 3] }, got;
        struct hf_client_call call;
        r.identity.guard = any_text(&random);
        r.identity.identity = any_text(&random);
        r.identity.has_result = r.action != HF_CHECK && i % 2;
        if (r.identity.has_result)
            r.identity.result = any_text(&random);
        travel(&r, &call, &got);
        ASSERT_SAME(r.identity.guard, got.identity.guard);
        ASSERT_SAME(r.identity.identity, got.identity.identity);
        assert_int_equal(r.identity.has_result, got.identity.has_result);
        ASSERT_SAME(r.identity.result, got.identity.result);
        assert_int_equal(call.changes, r.action != HF_CHECK);
        assert_int_equal(call.again,
                         r.action != HF_ADMIT); /* a second admit would be answered with seen */
        hf_client_call_free(&call);
        hf_arena_reset(&arena);
    }
}

static void looks(void **state)
{
    static const enum hf_action actions[] = { HF_GET_RESOURCE, HF_GET_GUARD };
    static const char *const odd[] = { ".", "..", "...", "a/../b", "%", "%41", "?" };
    (void)state;
    for (size_t a = 0; a < sizeof actions / sizeof *actions; a++) {
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            struct hf_request r = { .action = actions[a], .get = { hf_str(odd[i]) } }, got;
            struct hf_client_call call;
            travel(&r, &call, &got);
            ASSERT_SAME(r.get.name, got.get.name);
            assert_false(call.changes);
            const char *last = strrchr(hf_buffer_text(&call.target), '/');
            assert_true(strcmp(last, "/.") != 0 &&
                        strcmp(last, "/..") != 0); /* others tidy such paths up */
            hf_client_call_free(&call);
        }
    }
    struct hf_request r = { .action = HF_GET_TOKEN, .key = hf_str("a/b c") }, got;
    struct hf_client_call call;
    travel(&r, &call, &got);
    assert_int_equal(call.key.size, 0);
    hf_client_call_free(&call);
}

static void lists(void **state)
{
    uint64_t random = test_seed("lists", 4);
    (void)state;
    for (int i = 0; i < 500; i++) {
        struct hf_query q = { .kind = HF_LIST_HOLDS,
                              .limit = 1 + (uint32_t)test_below(&random, HF_LIST_MAX) },
                        got;
        struct hf_client_call call;
        struct hf_error why;
        struct hf_api_fault fault = { "" };
        struct hf_api_input in;
        q.state = (enum hf_hold_state)test_below(&random, 5);
        q.cursor = i % 2 ? 1 + test_below(&random, UINT64_MAX) : 0;
        if (i % 3)
            q.resource = any_text(&random);
        if (i % 5)
            q.requester = any_text(&random);
        if (i % 7)
            q.from =
                (hf_time)test_below(&random, INT64_C(200000000000000)) - INT64_C(50000000000000);
        if (i % 11)
            q.to = (hf_time)test_below(&random, INT64_C(200000000000000));
        assert_int_equal(hf_client_encode_list(&q, &call, &why), HF_OK);
        const struct hf_call *row = arrive(&call, &in);
        assert_non_null(row);
        if (hf_api_decode_list(row, &in, &arena, &got, &fault) != HF_OK)
            fail_msg("%s: %s", hf_buffer_text(&call.target), fault.detail);
        assert_int_equal(q.kind, got.kind);
        assert_int_equal(q.limit, got.limit);
        assert_int_equal(q.cursor, got.cursor);
        assert_int_equal(q.state, got.state);
        assert_int_equal(q.from, got.from);
        assert_int_equal(q.to, got.to);
        ASSERT_SAME(q.resource, got.resource);
        ASSERT_SAME(q.requester, got.requester);
        assert_true(!call.changes && call.again);
        hf_client_call_free(&call);
        hf_arena_reset(&arena);
    }
}

static void others(void **state)
{
    static const struct {
        enum hf_call_kind kind;
        const char *name, *query, *target;
    } rows[] = {
        { HF_CALL_AUDIT, "", "", "/v1/audit" },
        { HF_CALL_TRACE, "a/b \xc3\xa9", "", "/v1/trace/a%2Fb%20%C3%A9" },
        { HF_CALL_EXPORT, "", "format=sqlite", "/v1/export?format=sqlite" },
        { HF_CALL_OPENAPI, "", "", "/v1/openapi.json" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hf_client_call call;
        struct hf_error why;
        struct hf_api_input in;
        assert_int_equal(
            hf_client_encode_other(rows[i].kind, hf_str(rows[i].name), rows[i].query, &call, &why),
            HF_OK);
        assert_string_equal(hf_buffer_text(&call.target), rows[i].target);
        const struct hf_call *row = arrive(&call, &in);
        assert_non_null(row);
        assert_int_equal(row->kind, rows[i].kind);
        assert_true(!call.changes && call.again && call.method == HF_HTTP_GET);
        hf_client_call_free(&call);
    }
}

static void what_cannot_be_sent(void **state)
{
    const struct hf_bytes broken = hf_str("a\xff");
    struct hf_request requests[] = {
        { .action = HF_PLACE_HOLD,
          .key = hf_str("k"),
          .place_hold = { .resource = broken, .requester = hf_str("q") } },
        { .action = HF_PLACE_HOLD,
          .key = hf_str("k"),
          .place_hold = { .resource = hf_str("r"), .requester = broken } },
        { .action = HF_PLACE_HOLD,
          .key = hf_str("caf\xc3\xa9"),
          .place_hold = { .resource = hf_str("r") } },
        { .action = HF_CONFIRM, .key = hf_str("a\nb"), .hold = { hf_str("x") } },
        { .action = HF_CONFIRM, .key = hf_str("a\x7f"), .hold = { hf_str("x") } },
        { .action = HF_GET_RESOURCE, .get = { broken } },
        { .action = HF_CHECK, .identity = { .guard = broken, .identity = hf_str("x") } },
        { .action = HF_CHECK, .identity = { .guard = hf_str("g"), .identity = broken } },
        { .action = HF_RECORD,
          .identity = { .guard = hf_str("g"),
                        .identity = hf_str("x"),
                        .result = broken,
                        .has_result = true } },
        { .action = HF_APPLY, .apply = { .name = hf_str("x") } },
    };
    struct hf_client_call call;
    struct hf_error why;
    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        assert_int_equal(hf_client_encode(&requests[i], &call, &why), HF_INVALID_REQUEST);
        assert_true(strlen(why.text) > 10);
    }
    struct hf_query q = { .kind = HF_LIST_HOLDS, .resource = broken };
    assert_int_equal(hf_client_encode_list(&q, &call, &why), HF_INVALID_REQUEST);
    q = (struct hf_query){ .kind = HF_LIST_OUTBOX };
    assert_int_equal(hf_client_encode_list(&q, &call, &why), HF_INVALID_REQUEST);
    assert_int_equal(hf_client_encode_other(HF_CALL_TRACE, broken, "", &call, &why),
                     HF_INVALID_REQUEST);
    assert_int_equal(hf_client_encode_other(HF_CALL_BULK, hf_str(""), "", &call, &why),
                     HF_INVALID_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds),    cmocka_unit_test(ends),
        cmocka_unit_test(settings), cmocka_unit_test(identities),
        cmocka_unit_test(looks),    cmocka_unit_test(lists),
        cmocka_unit_test(others),   cmocka_unit_test(what_cannot_be_sent),
    };
    return cmocka_run_group_tests(tests, NULL, clean);
}
