/* Requests, encoded here and decoded as the server does it: they arrive as they were. */
#include "support/test.h"

#include "api/decode.h"
#include "api/encode.h"
#include "base/bytes.h"
#include "client/client.h"
#include "client/inner.h"

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
                                 .has_client = call->client.size > 0,
                                 .client_field = hf_mem(call->client.data, call->client.size),
                                 .body = hf_mem(call->body.data, call->body.size) };
    if (in->has_client) {
        char number[24];
        int n = snprintf(number, sizeof number, "%llu", (unsigned long long)call->sequence);
        char *room = hf_arena_take(&arena, (size_t)n);
        memcpy(room, number, (size_t)n);
        in->has_sequence = true;
        in->sequence_field = hf_mem(room, (size_t)n);
    }
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
    r = (struct hf_request){ .action = HF_GET_TOKEN, .client = hf_str("a/b &c"), .sequence = 77 };
    travel(&r, &call, &got);
    ASSERT_SAME(r.client, got.client);
    assert_true(got.sequence == 77 && call.client.size == 0);
    hf_client_call_free(&call);
    r = (struct hf_request){ .action = HF_EXPIRE, .client = hf_str(" \"t\" "), .sequence = 78 };
    r.hold.id = hf_str("x");
    travel(&r, &call, &got);
    ASSERT_SAME(r.client, got.client);
    assert_true(got.sequence == 78 && got.key.size == 0 && call.key.size == 0);
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

static void leases(void **state)
{
    static const enum hf_action actions[] = { HF_GRANT, HF_RENEW, HF_RETURN, HF_DELETE_LEASE };
    uint64_t random = test_seed("leases", 11);
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct hf_request r = { .action = actions[i % 4] }, got;
        struct hf_client_call call;
        bool keyed = r.action == HF_GRANT || r.action == HF_DELETE_LEASE;
        if (keyed)
            r.key = any_key(&random);
        r.lease.name = any_text(&random);
        if (r.action == HF_GRANT)
            r.lease.holder = any_text(&random);
        else
            r.lease.fence = i % 8 < 4 ? test_random(&random) | 1 : UINT64_MAX;
        if (r.action <= HF_RENEW)
            r.lease.ttl_ms = 1 + (int64_t)test_below(&random, HF_DURATION_MAX_MS);
        travel(&r, &call, &got);
        assert_true(call.changes && call.again);
        ASSERT_SAME(r.lease.name, got.lease.name);
        ASSERT_SAME(r.lease.holder, got.lease.holder);
        assert_int_equal(r.lease.fence, got.lease.fence);
        assert_int_equal(r.lease.ttl_ms, got.lease.ttl_ms);
        hf_client_call_free(&call);
        hf_arena_reset(&arena);
    }
}

/* A merge of every type, a write and a deletion. */
static void registers(void **state)
{
    static const struct hf_item items[] = { { { "a", 1 }, 1, 2 }, { { "b", 1 }, INT64_MAX, 0 } };
    (void)state;
    for (int type = HF_TYPE_MAX; type <= HF_TYPE_UPDOWN; type++) {
        const struct hf_value value = { .type = (enum hf_register_type)type,
                                        .number = INT64_MIN,
                                        .flag = true,
                                        .timestamp = INT64_MAX,
                                        .node = hf_str("n"),
                                        .bytes = hf_str("text"),
                                        .items = items,
                                        .item_count = 2 };
        struct hf_request r = { .action = HF_MERGE, .merge = { hf_str("r"), &value } }, got;
        struct hf_buffer sent = { 0 }, arrived = { 0 };
        struct hf_json from = { .out = &sent }, to = { .out = &arrived };
        struct hf_client_call call;
        travel(&r, &call, &got);
        assert_true(call.changes && call.again);
        hf_api_value(&from, &value);
        hf_api_value(&to, got.merge.value);
        ASSERT_SAME(hf_mem(sent.data, sent.size), hf_mem(arrived.data, arrived.size));
        assert_int_equal(got.merge.value->type, type);
        hf_buffer_free(&sent);
        hf_buffer_free(&arrived);
        hf_client_call_free(&call);
        hf_arena_reset(&arena);
    }
    for (int i = 0; i < 8; i++) {
        struct hf_request r = { .action = i % 2 ? HF_WRITE : HF_DELETE_REGISTER,
                                .key = hf_str("k"),
                                .write = { .name = hf_str("a/b") } },
                          got;
        struct hf_client_call call;
        if (i % 2)
            r.write.value = hf_str("text");
        r.write.fence = i & 2 ? 7 : 0;
        r.write.has_if_version = i & 4;
        travel(&r, &call, &got);
        ASSERT_SAME(r.write.name, got.write.name);
        ASSERT_SAME(r.write.value, got.write.value);
        assert_int_equal(r.write.fence, got.write.fence);
        assert_int_equal(r.write.has_if_version, got.write.has_if_version);
        assert_int_equal(got.write.if_version, 0);
        hf_client_call_free(&call);
        hf_arena_reset(&arena);
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
          .key = hf_str("caf\x01"),
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

/* The head of an answer: what is taken from it, and what is refused. */

static enum hf_http_parse parse(const char *text, size_t size, struct hf_client_head *head,
                                const char **why)
{
    size_t scanned = 0;
    return hf_client_head_parse(text, size, &scanned, head, why);
}

static const char whole[] = "HTTP/1.1 201 Created\r\n"
                            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                            "Content-Type: Application/JSON; charset=utf-8\r\n"
                            "content-length: \t 12 \r\n"
                            "Idempotent-Replayed: true\r\n"
                            "Holdfast-Verdict: ok\r\n"
                            "X-Other: \xc3\xa9 \"any\" thing\r\n"
                            "X-Empty:\r\n"
                            "\r\n";

static void a_whole_head(void **state)
{
    struct hf_client_head head;
    const char *why = NULL;
    (void)state;
    assert_int_equal(parse(whole, sizeof whole - 1, &head, &why), HF_HTTP_DONE);
    assert_int_equal(head.status, 201);
    assert_int_equal(head.length, 12);
    assert_int_equal(head.date, INT64_C(784111777000));
    assert_string_equal(head.content_type, "application/json");
    assert_string_equal(head.verdict, "ok");
    assert_true(head.replayed);
    assert_true(head.keep_alive);
    assert_int_equal(head.size, sizeof whole - 1);
}

/* Byte by byte, with what was scanned before kept: nothing is found early, and the end is found at
 * once. */
static void any_split_is_like_the_whole(void **state)
{
    static const char behind[] = "{\"a\":1}\r\n\r\n";
    char text[sizeof whole + sizeof behind];
    struct hf_client_head head;
    const char *why = NULL;
    size_t scanned = 0;
    (void)state;
    snprintf(text, sizeof text, "%s%s", whole, behind);
    for (size_t size = 0; size < sizeof whole - 1; size++)
        assert_int_equal(hf_client_head_parse(text, size, &scanned, &head, &why), HF_HTTP_MORE);
    for (size_t step = 1; step < sizeof whole; step++) {
        size_t size = 0;
        scanned = 0;
        enum hf_http_parse got = HF_HTTP_MORE;
        while (got == HF_HTTP_MORE && size < strlen(text)) {
            size = size + step < strlen(text) ? size + step : strlen(text);
            got = hf_client_head_parse(text, size, &scanned, &head, &why);
        }
        assert_int_equal(got, HF_HTTP_DONE);
        assert_int_equal(head.size, sizeof whole - 1);
        assert_int_equal(head.length, 12);
    }
}

/* The words too: two things are wrong here, and the one that ends the waiting is told however the
 * bytes come. */
static void a_refusal_is_the_same_in_pieces(void **state)
{
    static const char text[] = "HTTP/1.1 200 O\x01K\nX: y\r\n\r\n";
    struct hf_client_head head;
    const char *at_once = "", *in_pieces = "";
    size_t scanned = 0, size = 0;
    (void)state;
    assert_int_equal(parse(text, sizeof text - 1, &head, &at_once), HF_HTTP_BAD);
    while (hf_client_head_parse(text, size, &scanned, &head, &in_pieces) == HF_HTTP_MORE)
        size++;
    assert_string_equal(at_once, in_pieces);
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "hello", "it does not speak HTTP/1.1" },
        { "HTTP/2 200 OK\r\n\r\n", "it does not speak HTTP/1.1" },
        { "\x15\x03\x03", "it uses TLS" },
        { "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", "status line" },
        { "HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n", "status" },
        { "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", "status" },
        { "HTTP/1.1 2000\r\nContent-Length: 0\r\n\r\n", "status line" },
        { "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n", "its status is not a number" },
        { "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", "from 100 to 999" },
        { "HTTP/1.1\r\n\r\n", "status line" },
        { "HTTP/1.1 200 OK\r\n\r\n", "no Content-Length" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "not one number" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", "not one number" },
        { "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "not one number" },
        { "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "not one number" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", "not one number" },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "is chunked" },
        { "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\n", "a name, a colon and a value" },
        { "HTTP/1.1 200 OK\r\n Content-Length: 1\r\n\r\n", "a name, a colon and a value" },
        { "HTTP/1.1 200 OK\r\n: 1\r\n\r\n", "a name, a colon and a value" },
        { "HTTP/1.1 200 OK\r\nnothing\r\n\r\n", "a name, a colon and a value" },
        { "HTTP/1.1 200 OK\nContent-Length: 1\n\n", "CR and LF" },
        { "HTTP/1.1 200 OK\r\nContent-Length: 1\n\r\n\r\n", "CR and LF" },
        { "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 1\r\n\r\n", "CR and LF" },
        { "HTTP/1.1 200 OK\r\nX: \x01\r\nContent-Length: 1\r\n\r\n", "control bytes" },
        { "HTTP/1.1 100 Continue\r\nContent-Length: 1\r\n\r\n", "interim" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_client_head head;
        const char *why = "";
        enum hf_http_parse got = parse(bad[i].text, strlen(bad[i].text), &head, &why);
        if (got != HF_HTTP_BAD || !strstr(why, bad[i].why))
            fail_msg("%s: got %d, %s", bad[i].text, (int)got, why);
    }
}

static void nul_is_a_control_byte(void **state)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 1\r\n\r\n";
    struct hf_client_head head;
    const char *why = "";
    (void)state;
    assert_int_equal(parse(text, sizeof text - 1, &head, &why), HF_HTTP_BAD);
    assert_non_null(strstr(why, "control bytes"));
}

static void limits(void **state)
{
    static char text[2 * HF_CLIENT_HEAD_MAX];
    struct hf_client_head head;
    const char *why = "";
    (void)state;
    /* As long as a head may be, and a byte more. */
    for (size_t more = 0; more < 2; more++) {
        static const char begin[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ";
        size_t pad = HF_CLIENT_HEAD_MAX + more - (sizeof begin - 1) - 4;
        memcpy(text, begin, sizeof begin - 1);
        memset(text + sizeof begin - 1, 'x', pad);
        memcpy(text + sizeof begin - 1 + pad, "\r\n\r\n", 4);
        assert_int_equal(parse(text, HF_CLIENT_HEAD_MAX + more, &head, &why),
                         more ? HF_HTTP_BAD : HF_HTTP_DONE);
    }
    assert_non_null(strstr(why, "longer than 32768"));
    assert_int_equal(parse(text, HF_CLIENT_HEAD_MAX - 1, &head, &why), HF_HTTP_MORE);
    assert_int_equal(parse(text, HF_CLIENT_HEAD_MAX, &head, &why),
                     HF_HTTP_BAD); /* full, and no end */
    /* As many fields as there may be, and one more. */
    for (size_t more = 0; more < 2; more++) {
        size_t size =
            (size_t)snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
        for (size_t i = 1; i < HF_CLIENT_FIELDS_MAX + more; i++)
            size += (size_t)snprintf(text + size, sizeof text - size, "X: y\r\n");
        size += (size_t)snprintf(text + size, sizeof text - size, "\r\n");
        assert_int_equal(parse(text, size, &head, &why), more ? HF_HTTP_BAD : HF_HTTP_DONE);
    }
    assert_non_null(strstr(why, "more than 128 fields"));
}

static void what_is_not_known_is_nothing(void **state)
{
    static const struct {
        const char *fields;
        hf_time date;
        const char *type;
        bool keep_alive, replayed;
    } rows[] = {
        { "", 0, "", true, false },
        { "Connection: close\r\n", 0, "", false, false },
        { "Connection: Keep-Alive\r\n", 0, "", true, false },
        { "Connection: keep-alive, close\r\n", 0, "", false, false },
        { "Date: Sun, 06 Nov 1994 08:49:37 CET\r\n", 0, "", true, false },
        { "Date: Sunday, 06-Nov-94 08:49:37 GMT\r\n", 0, "", true, false },
        { "Date: Sun, 31 Feb 1994 08:49:37 GMT\r\n", 0, "", true, false },
        { "Date: Sun, 06 Nox 1994 08:49:37 GMT\r\n", 0, "", true, false },
        { "Date: Mon, 16 Nov 2026 01:54:05 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
          INT64_C(1794794045000), "", true, false },
        { "Content-Type: text/plain\r\n", 0, "text/plain", true, false },
        { "Content-Type: text/plain ; x=y\r\n", 0, "text/plain", true, false },
        { "Content-Type: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/b\r\n", 0, "", true,
          false },
        { "Idempotent-Replayed: false\r\n", 0, "", true, false },
        { "Idempotent-Replayed: TRUE\r\n", 0, "", true, true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[300];
        struct hf_client_head head;
        const char *why = "";
        int size = snprintf(text, sizeof text, "HTTP/1.1 200\r\nContent-Length: 0\r\n%s\r\n",
                            rows[i].fields);
        assert_int_equal(parse(text, (size_t)size, &head, &why), HF_HTTP_DONE);
        assert_int_equal(head.date, rows[i].date);
        assert_string_equal(head.content_type, rows[i].type);
        assert_int_equal(head.keep_alive, rows[i].keep_alive);
        assert_int_equal(head.replayed, rows[i].replayed);
    }
    struct hf_client_head head;
    const char *why = "";
    const char *old = "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_int_equal(parse(old, strlen(old), &head, &why), HF_HTTP_DONE);
    assert_false(head.keep_alive);
}

/* Where the server is: URLs that are taken apart, and those that are refused. */

static void taken_apart(void **state)
{
    static const struct {
        const char *text;
        bool tls, literal, loopback;
        const char *host, *port, *field, *prefix, *shown;
    } good[] = {
        { "http://127.0.0.1:4653", false, true, true, "127.0.0.1", "4653", "127.0.0.1:4653", "",
          "http://127.0.0.1:4653" },
        { "http://localhost", false, false, true, "localhost", "80", "localhost", "",
          "http://localhost" },
        { "https://example.org", true, false, false, "example.org", "443", "example.org", "",
          "https://example.org" },
        { "https://example.org:443/", true, false, false, "example.org", "443", "example.org", "",
          "https://example.org" },
        { "http://example.org:443", false, false, false, "example.org", "443", "example.org:443",
          "", "http://example.org:443" },
        { "http://[::1]:4653", false, true, true, "::1", "4653", "[::1]:4653", "",
          "http://[::1]:4653" },
        { "https://[2001:db8::1]", true, true, false, "2001:db8::1", "443", "[2001:db8::1]", "",
          "https://[2001:db8::1]" },
        { "http://h:65535/shop/eu//", false, false, false, "h", "65535", "h:65535", "/shop/eu",
          "http://h:65535/shop/eu" },
        { "http://h/a.b:c@d;e", false, false, false, "h", "80", "h", "/a.b:c@d;e",
          "http://h/a.b:c@d;e" },
        { "http://127.0.0.1.example.org", false, false, false, "127.0.0.1.example.org", "80",
          "127.0.0.1.example.org", "", "http://127.0.0.1.example.org" },
        { "http://h:0080", false, false, false, "h", "80", "h", "", "http://h" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct hf_client_url url;
        struct hf_error why = { .status = HF_OK };
        if (!hf_client_url_parse(good[i].text, &url, &why))
            fail_msg("%s: %s", good[i].text, why.text);
        assert_int_equal(url.tls, good[i].tls);
        assert_int_equal(url.literal, good[i].literal);
        assert_int_equal(hf_client_url_loopback(&url), good[i].loopback);
        assert_string_equal(url.host, good[i].host);
        assert_string_equal(url.port, good[i].port);
        assert_string_equal(url.field, good[i].field);
        assert_string_equal(url.prefix, good[i].prefix);
        assert_string_equal(url.shown, good[i].shown);
    }
}

static void refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "", "begins with http://" },
        { "127.0.0.1:4653", "begins with http://" },
        { "HTTP://h", "begins with http://" },
        { "ws://h", "begins with http://" },
        { "http:/h", "begins with http://" },
        { "http://", "host name" },
        { "http://:80", "host name" },
        { "http://\xc3\xa9", "host name" },
        { "http://a b", "after its host" },
        { "http://a\r\nX: y", "after its host" },
        { "http://user@h", "never in a URL" },
        { "http://user:pass@h/x", "never in a URL" },
        { "http://h:", "no port from 1" },
        { "http://h:0", "no port from 1" },
        { "http://h:65536", "no port from 1" },
        { "http://h:4294967297", "no port from 1" },
        { "http://h:99999999999999999999", "no port from 1" },
        { "http://h:-1", "no port from 1" },
        { "http://h:1x", "no / before it" },
        { "http://h/x?y", "after its host" },
        { "http://h/x#y", "after its host" },
        { "http://h/%2f", "after its host" },
        { "http://h/\x80", "after its host" },
        { "http://[::1", "IPv6" },
        { "http://[]", "IPv6" },
        { "http://[127.0.0.1]", "IPv6" },
        { "http://[::1]x", "no / before it" },
    };
    struct hf_client_url url;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_error why = { .status = HF_OK };
        if (hf_client_url_parse(bad[i].text, &url, &why) || !strstr(why.text, bad[i].why) ||
            why.status != HF_INVALID_REQUEST)
            fail_msg("%s: %s", bad[i].text, why.text);
    }
}

static void lengths(void **state)
{
    char text[700];
    struct hf_client_url url;
    struct hf_error why;
    (void)state;
    for (size_t size = 254; size < 258; size++) {
        memset(text, 'a', sizeof text);
        memcpy(text, "http://", 7);
        text[7 + size] = '\0';
        assert_int_equal(hf_client_url_parse(text, &url, &why), size <= 255);
        memcpy(text + 7, "h/", 2);
        assert_int_equal(hf_client_url_parse(text, &url, &why), size - 1 <= 255);
    }
}

int main(void)
{
    const struct CMUnitTest client_request_tests[] = {
        cmocka_unit_test(holds),    cmocka_unit_test(ends),
        cmocka_unit_test(settings), cmocka_unit_test(identities),
        cmocka_unit_test(looks),    cmocka_unit_test(lists),
        cmocka_unit_test(leases),   cmocka_unit_test(registers),
        cmocka_unit_test(others),   cmocka_unit_test(what_cannot_be_sent),
    };
    const struct CMUnitTest client_head_tests[] = {
        cmocka_unit_test(a_whole_head),
        cmocka_unit_test(any_split_is_like_the_whole),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(nul_is_a_control_byte),
        cmocka_unit_test(limits),
        cmocka_unit_test(what_is_not_known_is_nothing),
        cmocka_unit_test(a_refusal_is_the_same_in_pieces),
        cmocka_unit_test(taken_apart),
        cmocka_unit_test(refused),
        cmocka_unit_test(lengths),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(client_request_tests, NULL, clean);
    failed += cmocka_run_group_tests(client_head_tests, NULL, NULL);
    return failed;
}
