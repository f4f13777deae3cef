/* A call of the interface: its key, what stands in its path, its query and its body, decoded for
 * every row of the table. What was understood can be written down and understood again as the
 * same. */
#include "fuzz/support/fuzz.h"

#include "api/decode.h"
#include "api/encode.h"
#include "base/bytes.h"
#include "base/text.h"
#include "client/client.h"
#include "json/reader.h"
#include "json/stored.h"

#include <stdlib.h>

static struct hf_arena arena;

static void refused(enum hf_status status, const struct hf_api_fault *why)
{
    FUZZ_WANT(status == HF_INVALID_REQUEST);
    FUZZ_WANT(fuzz_sentence(why->detail, sizeof why->detail));
    FUZZ_WANT(why->detail[strlen(why->detail) - 1] == '.'); /* nothing was cut off */
}

/* ---- What was decoded, sent by our own client, is decoded as the same ---- */

static void same_identity(const struct hf_request *a, const struct hf_request *b)
{
    FUZZ_WANT(hf_bytes_equal(a->identity.guard, b->identity.guard));
    FUZZ_WANT(hf_bytes_equal(a->identity.identity, b->identity.identity));
    FUZZ_WANT(a->identity.has_result == b->identity.has_result);
    FUZZ_WANT(hf_bytes_equal(a->identity.result, b->identity.result));
}

static void same_guard(const struct hf_request *a, const struct hf_request *b)
{
    FUZZ_WANT(hf_bytes_equal(a->set_guard.name, b->set_guard.name));
    FUZZ_WANT(a->set_guard.window_ms == b->set_guard.window_ms);
    FUZZ_WANT(a->set_guard.match_count == b->set_guard.match_count);
    for (uint32_t i = 0; i < a->set_guard.match_count; i++)
        FUZZ_WANT(a->set_guard.match[i] == b->set_guard.match[i]);
    FUZZ_WANT(a->set_guard.on_unavailable == b->set_guard.on_unavailable);
    FUZZ_WANT(a->set_guard.volatile_only == b->set_guard.volatile_only);
}

static void same_request(const struct hf_request *a, const struct hf_request *b)
{
    FUZZ_WANT(a->action == b->action && hf_bytes_equal(a->key, b->key));
    FUZZ_WANT(hf_bytes_equal(a->client, b->client) && a->sequence == b->sequence);
    switch (a->action) {
    case HF_PLACE_HOLD:
        FUZZ_WANT(hf_bytes_equal(a->place_hold.resource, b->place_hold.resource));
        FUZZ_WANT(hf_bytes_equal(a->place_hold.requester, b->place_hold.requester));
        FUZZ_WANT(a->place_hold.duration_ms == b->place_hold.duration_ms);
        FUZZ_WANT(a->place_hold.fence == b->place_hold.fence);
        break;
    case HF_CONFIRM:
    case HF_RELEASE:
    case HF_EXPIRE:
    case HF_REVERSE:
    case HF_CONFIRM_LATE:
    case HF_GET_HOLD: FUZZ_WANT(hf_bytes_equal(a->hold.id, b->hold.id)); break;
    case HF_SET_RESOURCE:
        FUZZ_WANT(hf_bytes_equal(a->set_resource.name, b->set_resource.name));
        FUZZ_WANT(a->set_resource.capacity == b->set_resource.capacity);
        FUZZ_WANT(a->set_resource.open == b->set_resource.open);
        FUZZ_WANT(a->set_resource.require_fence == b->set_resource.require_fence);
        break;
    case HF_SET_GUARD: same_guard(a, b); break;
    case HF_CHECK:
    case HF_RECORD:
    case HF_ADMIT: same_identity(a, b); break;
    case HF_BEGIN:
        FUZZ_WANT(memcmp(a->begin.fingerprint, b->begin.fingerprint, HF_DIGEST_SIZE) == 0);
        FUZZ_WANT(a->begin.lease_ms == b->begin.lease_ms);
        FUZZ_WANT(a->begin.retention_ms == b->begin.retention_ms);
        FUZZ_WANT(a->begin.on_abandon == b->begin.on_abandon);
        break;
    case HF_COMPLETE:
    case HF_FAIL:
    case HF_HEARTBEAT:
    case HF_ABANDON:
        FUZZ_WANT(a->settle.fence == b->settle.fence);
        FUZZ_WANT(hf_bytes_equal(a->settle.response, b->settle.response));
        FUZZ_WANT(a->settle.retryable == b->settle.retryable);
        FUZZ_WANT(a->settle.lease_ms == b->settle.lease_ms);
        break;
    case HF_GET_CLAIM: break;
    default: FUZZ_WANT(hf_bytes_equal(a->get.name, b->get.name)); break;
    }
}

static void take(const struct hf_call *call, const struct hf_api_input *in, struct hf_request *out)
{
    struct hf_api_fault why;
    FUZZ_WANT(hf_api_decode(call, in, &arena, out, &why) == HF_OK);
}

/* Can our client ask a server for it? It knows some actions; it gets the work of a begin as JSON or
 * as a fingerprint, and what was decoded does not say which text was JSON. An empty key is not
 * sent. */
static bool asked(const struct hf_request *request)
{
    enum hf_action action = request->action;
    if (action == HF_BEGIN)
        return request->begin.fingerprint && request->key.size > 0;
    return (action >= HF_PLACE_HOLD && action <= HF_HEARTBEAT) || action == HF_ABANDON ||
           action == HF_CONFIRM_LATE || (action >= HF_GET_HOLD && action <= HF_GET_CLAIM);
}

/* Ask a server for it, if our client can. */
static void ask_again(const struct hf_request *request)
{
    struct hf_client_call call;
    struct hf_error why = { HF_OK, "" };
    struct hf_call_match match;
    struct hf_request again;
    struct hf_request own = *request;
    if (!asked(request))
        return;
    own.tenant = hf_mem(NULL, 0); /* as who is no operator */
    if (hf_client_encode(&own, &call, &why) != HF_OK) {
        FUZZ_WANT(why.status == HF_INVALID_REQUEST && fuzz_sentence(why.text, sizeof why.text));
        return;
    }
    struct hf_bytes path = hf_mem(call.target.data, call.target.size);
    hf_call_find(call.method, path, &match);
    FUZZ_WANT(match.call && match.call->action == request->action);
    struct hf_api_input in = { .has_key = call.key.size > 0,
                               .key_field = hf_mem(call.key.data, call.key.size),
                               .body = hf_mem(call.body.data, call.body.size) };
    char *param = fuzz_alloc(match.params[0].size);
    FUZZ_WANT(hf_http_unescape(match.params[0], param, &in.params[0].size));
    in.params[0].data = param;
    take(match.call, &in, &again);
    same_request(request, &again);
    free(param);
    hf_client_call_free(&call);
}

/* ---- A merge: what it would be shown as can be sent back ---- */

static void show(const struct hf_value *value, struct hf_buffer *out)
{
    struct hf_json json = { .out = out };
    const struct hf_register reg = { .name = hf_str("n"), .value = *value, .version = 1 };
    hf_api_register(&json, &reg);
    FUZZ_WANT(!out->failed);
}

/* The body of a merge with the type and the value of a register as it is shown. */
static struct hf_bytes merge_body(struct hf_bytes shown, struct hf_buffer *out)
{
    struct hf_reader r = { .text = shown, .arena = &arena };
    struct hf_bytes name, text;
    struct hf_json json = { .out = out };
    hf_json_object(&json);
    FUZZ_WANT(hf_reader_object(&r));
    while (hf_reader_member(&r, &name)) {
        FUZZ_WANT(hf_reader_compact(&r, &text));
        if (!hf_bytes_equal(name, hf_str("type")) && !hf_bytes_equal(name, hf_str("value")))
            continue;
        hf_json_name_bytes(&json, name);
        hf_json_raw(&json, text);
    }
    FUZZ_WANT(hf_reader_end(&r));
    hf_json_object_end(&json);
    return hf_mem(out->data, out->size);
}

static void merge_again(const struct hf_call *call, const struct hf_request *request)
{
    struct hf_buffer shown = { 0 }, body = { 0 }, again = { 0 };
    struct hf_request second;
    show(request->merge.value, &shown);
    struct hf_api_input in = { .params = { request->merge.name },
                               .body = merge_body(fuzz_held(&shown), &body) };
    take(call, &in, &second);
    show(second.merge.value, &again);
    FUZZ_WANT(hf_bytes_equal(fuzz_held(&shown), fuzz_held(&again)));
    hf_buffer_free(&again);
    hf_buffer_free(&body);
    hf_buffer_free(&shown);
}

/* ---- The input: the call's number, then lines with key, parameter and query, then the body
 * ---- */

static struct hf_bytes line(struct fuzz_input *in)
{
    const uint8_t *feed = in->left > 0 ? memchr(in->p, '\n', in->left) : NULL;
    struct hf_bytes text = fuzz_some(in, feed ? (size_t)(feed - in->p) : in->left);
    (void)fuzz_u8(in);
    return text;
}

static void decode(const struct hf_call *call, const struct hf_api_input *in)
{
    struct hf_api_fault why = { "" };
    struct hf_request request = { .action = 0 };
    struct hf_query query;
    struct hf_api_wishes wishes;
    enum hf_status status;
    switch (call->kind) {
    case HF_CALL_DO: status = hf_api_decode(call, in, &arena, &request, &why); break;
    case HF_CALL_LIST: status = hf_api_decode_list(call, in, &arena, &query, &why); break;
    default: status = hf_api_decode_other(call, in, &arena, &wishes, &why);
    }
    if (status != HF_OK) {
        refused(status, &why);
    } else if (call->kind == HF_CALL_DO) {
        FUZZ_WANT(request.action == call->action && hf_bytes_equal(request.tenant, in->tenant));
        ask_again(&request);
        if (call->action == HF_MERGE)
            merge_again(call, &request);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    const struct hf_call *call = &hf_calls[fuzz_u8(&in) % hf_call_count];
    struct hf_api_input got = { .tenant = hf_str("t") };
    got.key_field = line(&in);
    got.has_key = got.key_field.size > 0;
    struct hf_bytes param = line(&in);
    got.query = line(&in);
    got.body = fuzz_rest(&in);
    char *body = fuzz_copy(got.body), *name = fuzz_alloc(param.size);
    got.body.data = body;
    bool there = !strchr(call->path, '{') || param.size > 0; /* a path has no empty parameter */
    if (there && hf_http_unescape(param, name, &got.params[0].size)) {
        got.params[0].data = name;
        decode(call, &got);
    }
    free(name);
    free(body);
    hf_arena_reset(&arena);
    return 0;
}
