#include "api/encode.h"
#include "base/text.h"

#include "api/problem.h"
#include "json/stored.h"

/* "name" for number 1, 2, 3 ...; NULL outside of the list. */
static const char *name_of(const char *const *names, size_t count, unsigned number)
{
    return number < count ? names[number] : NULL;
}

#define NAME_OF(names, number) name_of((names), sizeof(names) / sizeof *(names), (unsigned)(number))

const char *hf_api_hold_state(enum hf_hold_state state)
{
    static const char *const names[] = { [HF_HELD] = "held",
                                         [HF_CONFIRMED] = "confirmed",
                                         [HF_RELEASED] = "released",
                                         [HF_EXPIRED] = "expired" };
    return NAME_OF(names, state);
}

const char *hf_api_unavailable(enum hf_unavailable on_unavailable)
{
    static const char *const names[] = { [HF_FAIL_OPEN] = "open", [HF_FAIL_CLOSED] = "closed" };
    return NAME_OF(names, on_unavailable);
}

/* A retryable failure is "failed" too; the member `retryable` tells them apart. */
const char *hf_api_claim_status(enum hf_claim_state state)
{
    static const char *const names[] = { [HF_CLAIM_STARTED] = "started",
                                         [HF_CLAIM_COMPLETED] = "completed",
                                         [HF_CLAIM_FAILED] = "failed",
                                         [HF_CLAIM_RETRYABLE] = "failed",
                                         [HF_CLAIM_UNKNOWN] = "unknown" };
    return NAME_OF(names, state);
}

/* The name of a number from the store; null if a newer program wrote it. */
static void name_add(struct hf_json *j, const char *name)
{
    if (name)
        hf_json_text(j, name);
    else
        hf_json_null(j);
}

void hf_api_hold(struct hf_json *j, const struct hf_hold *hold)
{
    hf_json_object(j);
    hf_json_name(j, "id");
    hf_json_text(j, hold->id);
    hf_json_name(j, "resource");
    hf_json_bytes(j, hold->resource);
    hf_json_name(j, "requester");
    hf_json_bytes(j, hold->requester);
    hf_json_name(j, "state");
    name_add(j, hf_api_hold_state(hold->state));
    hf_json_name(j, "placed_at");
    hf_json_time(j, hold->placed_at);
    hf_json_name(j, "expires_at");
    hf_json_time(j, hold->expires_at);
    if (hold->state == HF_CONFIRMED)
        hf_json_name(j, "confirmed_at");
    else if (hold->state == HF_RELEASED)
        hf_json_name(j, "released_at");
    else if (hold->state == HF_EXPIRED)
        hf_json_name(j, "expired_at");
    if (hold->state != HF_HELD)
        hf_json_time(j, hold->ended_at);
    if (hold->reverses[0]) {
        hf_json_name(j, "reverses");
        hf_json_text(j, hold->reverses);
    }
    if (hold->reacquires[0]) {
        hf_json_name(j, "reacquires");
        hf_json_text(j, hold->reacquires);
    }
    hf_json_object_end(j);
}

uint32_t hf_api_available(const struct hf_resource *resource)
{
    uint64_t taken = (uint64_t)resource->held + resource->confirmed;
    return resource->open && taken < resource->capacity ? (uint32_t)(resource->capacity - taken)
                                                        : 0;
}

void hf_api_resource(struct hf_json *j, const struct hf_resource *resource)
{
    hf_json_object(j);
    hf_json_name(j, "name");
    hf_json_bytes(j, resource->name);
    hf_json_name(j, "capacity");
    hf_json_uint(j, resource->capacity);
    hf_json_name(j, "held");
    hf_json_uint(j, resource->held);
    hf_json_name(j, "confirmed");
    hf_json_uint(j, resource->confirmed);
    hf_json_name(j, "available");
    hf_json_uint(j, hf_api_available(resource));
    hf_json_name(j, "open");
    hf_json_bool(j, resource->open);
    hf_json_name(j, "fence");
    hf_json_uint(j, resource->fence);
    if (resource->require_fence) {
        hf_json_name(j, "require_fence");
        hf_json_bool(j, true);
    }
    hf_json_object_end(j);
}

void hf_api_guard(struct hf_json *j, const struct hf_guard *guard)
{
    hf_json_object(j);
    hf_json_name(j, "name");
    hf_json_bytes(j, guard->name);
    hf_json_name(j, "window");
    hf_json_duration(j, guard->window_ms);
    hf_json_name(j, "match");
    hf_json_array(j);
    for (uint32_t i = 0; i < guard->match_count && i < HF_MATCH_MAX; i++)
        name_add(j, hf_match_name(guard->match[i]));
    if (guard->match_count == 0)
        hf_json_text(j, hf_match_name(HF_MATCH_EXACT));
    hf_json_array_end(j);
    hf_json_name(j, "on_unavailable");
    name_add(j, hf_api_unavailable(guard->on_unavailable));
    hf_json_name(j, "durable");
    hf_json_bool(j, guard->durable);
    hf_json_name(j, "created_at");
    hf_json_time(j, guard->created_at);
    hf_json_object_end(j);
}

/* The times are unknown (0) if a closed guard could not be read. */
void hf_api_seen(struct hf_json *j, const struct hf_seen *seen)
{
    hf_json_object(j);
    hf_json_name(j, "seen");
    hf_json_bool(j, seen->seen);
    if (seen->seen && seen->expires_at != 0) {
        hf_json_name(j, "recorded_at");
        hf_json_time(j, seen->recorded_at);
        hf_json_name(j, "expires_at");
        hf_json_time(j, seen->expires_at);
    }
    if (seen->seen && seen->has_result) {
        hf_json_name(j, "result");
        hf_json_stored(j, seen->result);
    }
    hf_json_object_end(j);
}

void hf_api_entry(struct hf_json *j, const struct hf_entry *entry, bool hashed)
{
    hf_json_object(j);
    if (hashed) {
        hf_json_name(j, "identity_sha256");
        hf_json_hex(j, "", entry->identity);
    } else {
        hf_json_name(j, "identity");
        hf_json_opaque(j, entry->identity);
    }
    hf_json_name(j, "recorded_at");
    hf_json_time(j, entry->recorded_at);
    hf_json_name(j, "expires_at");
    hf_json_time(j, entry->expires_at);
    if (entry->has_result) {
        hf_json_name(j, "result");
        hf_json_stored(j, entry->result);
    }
    hf_json_object_end(j);
}

/* The members of a settled claim. */
static void claim_outcome(struct hf_json *j, const struct hf_claim *claim)
{
    bool failed = claim->state == HF_CLAIM_FAILED || claim->state == HF_CLAIM_RETRYABLE;
    if (claim->state == HF_CLAIM_COMPLETED) {
        hf_json_name(j, "response");
        hf_json_stored(j, claim->response);
    }
    if (failed) {
        hf_json_name(j, "error");
        hf_json_stored(j, claim->response);
        hf_json_name(j, "retryable");
        hf_json_bool(j, claim->state == HF_CLAIM_RETRYABLE);
    }
    if (claim->settled_at != 0) {
        hf_json_name(j, "settled_at");
        hf_json_time(j, claim->settled_at);
    }
    if (claim->expires_at != 0) {
        hf_json_name(j, "expires_at");
        hf_json_time(j, claim->expires_at);
    }
}

static void claim_members(struct hf_json *j, const struct hf_claim *claim)
{
    hf_json_name(j, "key");
    hf_json_opaque(j, claim->key);
    hf_json_name(j, "status");
    name_add(j, hf_api_claim_status(claim->state));
    hf_json_name(j, "fence");
    hf_json_uint(j, claim->fence);
    hf_json_name(j, "fingerprint");
    hf_json_hex(j, "", hf_mem(claim->fingerprint, sizeof claim->fingerprint));
    hf_json_name(j, "on_abandon");
    hf_json_text(j, claim->on_abandon == HF_ABANDON_RETRY ? "retry" : "unknown");
    hf_json_name(j, "lease");
    hf_json_duration(j, claim->lease_ms);
    if (claim->retention_ms != 0) {
        hf_json_name(j, "retention");
        hf_json_duration(j, claim->retention_ms);
    }
    hf_json_name(j, "begun_at");
    hf_json_time(j, claim->begun_at);
    hf_json_name(j, "lease_expires_at");
    hf_json_time(j, claim->lease_expires_at);
    if (claim->state == HF_CLAIM_UNKNOWN) {
        hf_json_name(j, "unknown_since");
        hf_json_time(j, claim->lease_expires_at);
    }
    claim_outcome(j, claim);
}

void hf_api_claim(struct hf_json *j, const struct hf_claim *claim)
{
    hf_json_object(j);
    claim_members(j, claim);
    hf_json_object_end(j);
}

void hf_api_claim_of_tenant(struct hf_json *j, const struct hf_claim *claim)
{
    hf_json_object(j);
    hf_json_name(j, "tenant");
    hf_json_opaque(j, claim->tenant);
    claim_members(j, claim);
    hf_json_object_end(j);
}

void hf_api_lease(struct hf_json *j, const struct hf_lease *lease)
{
    hf_json_object(j);
    hf_json_name(j, "name");
    hf_json_bytes(j, lease->name);
    hf_json_name(j, "holder");
    hf_json_bytes(j, lease->holder);
    hf_json_name(j, "fence");
    hf_json_uint(j, lease->fence);
    hf_json_name(j, "ttl");
    hf_json_duration(j, lease->ttl_ms);
    hf_json_name(j, "granted_at");
    hf_json_time(j, lease->granted_at);
    hf_json_name(j, "expires_at");
    hf_json_time(j, lease->expires_at);
    if (lease->released_at != 0) {
        hf_json_name(j, "released_at");
        hf_json_time(j, lease->released_at);
    }
    hf_json_object_end(j);
}

void hf_api_answer(struct hf_json *j, enum hf_action action, const struct hf_answer *answer)
{
    if (answer->status != HF_OK) {
        hf_api_refusal(j, action, answer, hf_mem(NULL, 0));
        return;
    }
    switch (answer->kind) {
    case HF_RECORD_HOLD: hf_api_hold(j, &answer->hold); return;
    case HF_RECORD_RESOURCE: hf_api_resource(j, &answer->resource); return;
    case HF_RECORD_GUARD: hf_api_guard(j, &answer->guard); return;
    case HF_RECORD_CLAIM: hf_api_claim(j, &answer->claim); return;
    case HF_RECORD_LEASE: hf_api_lease(j, &answer->lease); return;
    case HF_RECORD_REGISTER: hf_api_register(j, &answer->reg); return;
    case HF_RECORD_VALUE: hf_json_opaque(j, answer->value); return;
    case HF_RECORD_SEEN:
        if (action != HF_RECORD) {
            hf_api_seen(j, &answer->seen);
            return;
        }
        break; /* a duplicate of record gets the same answer */
    case HF_NO_RECORD: break;
    }
    hf_json_object(j);
    hf_json_name(j, "ok");
    hf_json_bool(j, true);
    hf_json_object_end(j);
}

/* The body is the first answer, whatever the status of `answer` is. */
void hf_api_token(struct hf_json *j, const struct hf_token *token, const struct hf_answer *answer)
{
    struct hf_answer first = *answer;
    first.status = token->status;
    hf_json_object(j);
    hf_json_name(j, "action");
    hf_json_text(j, hf_action_name(token->action));
    hf_json_name(j, "digest");
    hf_json_hex(j, "", hf_mem(token->digest, sizeof token->digest));
    hf_json_name(j, "digest_function");
    hf_json_text(j, HF_DIGEST_NAME);
    hf_json_name(j, "recorded_at");
    hf_json_time(j, token->recorded_at);
    /* A client's number has no time: it is forgotten when it is too far below the highest. */
    if (token->action == HF_BEGIN || token->expires_at != INT64_MAX) {
        hf_json_name(j, "expires_at");
        hf_json_time(j, token->expires_at);
    }
    hf_json_name(j, "status");
    hf_json_uint(j, hf_api_answer_status(token->action, &first));
    hf_json_name(j, "body");
    hf_api_answer(j, token->action, &first);
    hf_json_object_end(j);
}
