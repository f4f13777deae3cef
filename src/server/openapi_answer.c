/* The answers of a call: successes, refusals, and the refusals that all calls share. */
#include "api/problem.h"
#include "server/handler.h"
#include "server/openapi.h"

/* ---- What a call can be refused with ---- */

/* By the library; the server's own refusals are not in here. */
static bool may_refuse(const struct hf_call *call, enum hf_status status)
{
    if (status == HF_INVALID_REQUEST)
        return hf_handler_of(call)->needs_store;
    if (status == HF_TOKEN_COLLISION && call->key)
        return true;
    for (size_t i = 0; i < sizeof call->refuses / sizeof *call->refuses; i++)
        if (call->refuses[i] == status)
            return true;
    return false;
}

/* Can the answer be a replay? */
static bool may_replay(const struct hf_call *call)
{
    bool settles =
        call->action == HF_BEGIN || call->action == HF_COMPLETE || call->action == HF_FAIL;
    return call->kind == HF_CALL_DO && (call->key || settles);
}

/* ---- Answers ---- */

static void header_add(struct hf_json *j, const char *name)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_openapi_ref(j, "headers", name);
}

/* names: NULL after the last. */
static void headers_add(struct hf_json *j, const char *const *names)
{
    if (!names[0])
        return;
    hf_json_name(j, "headers");
    hf_json_object(j);
    for (; *names; names++)
        header_add(j, *names);
    hf_json_object_end(j);
}

/* The header fields of a success. A claim that was just begun is no replay. */
static void success_headers_add(struct hf_json *j, const struct hf_call *call, unsigned status)
{
    bool first = call->action == HF_BEGIN && status == 201;
    static const char *const none[] = { NULL };
    static const char *const keyed[] = { "Idempotency-Expires", "Idempotent-Replayed", NULL };
    static const char *const replayed[] = { "Idempotent-Replayed", NULL };
    static const char *const expires[] = { "Idempotency-Expires", NULL };
    bool settled = !first && (call->action == HF_BEGIN || call->action == HF_COMPLETE ||
                              call->action == HF_FAIL || call->action == HF_GET_CLAIM);
    bool replays = may_replay(call) && !first;
    if (call->kind == HF_CALL_DO)
        headers_add(j, call->key || (settled && replays) ? keyed
                       : settled                         ? expires
                       : replays                         ? replayed
                                                         : none);
    else
        headers_add(j, hf_handler_of(call)->headers);
}

/* The header fields of a refusal by the rules, which is remembered and replayed like any answer. */
static void refusal_headers_add(struct hf_json *j, const struct hf_call *call, bool retry)
{
    const char *names[4] = { NULL };
    size_t count = 0;
    if (call->key)
        names[count++] = "Idempotency-Expires";
    if (may_replay(call))
        names[count++] = "Idempotent-Replayed";
    if (retry)
        names[count++] = "Retry-After";
    headers_add(j, names);
}

void hf_openapi_content(struct hf_json *j, const char *media, const char *schema, const char *line)
{
    hf_json_name_bytes(j, hf_str(media));
    hf_json_object(j);
    hf_json_name(j, "schema");
    if (schema) {
        hf_openapi_ref(j, "schemas", schema);
    } else {
        hf_json_object(j);
        hf_openapi_text(j, "type", "string");
        hf_json_object_end(j);
    }
    if (line) {
        hf_json_name(j, "x-itemSchema");
        hf_openapi_ref(j, "schemas", line);
    }
    hf_json_object_end(j);
}

static void answer_content_add(struct hf_json *j, const struct hf_call *call)
{
    const char *const *media = hf_handler_of(call)->media;
    hf_json_name(j, "content");
    hf_json_object(j);
    for (; *media; media++) {
        if (strcmp(*media, "application/json") == 0) {
            hf_openapi_content(j, *media, call->answers, NULL);
        } else if (strcmp(*media, "application/vnd.sqlite3") == 0) {
            hf_json_name_bytes(j, hf_str(*media)); /* binary, without a schema */
            hf_json_object(j);
            hf_json_object_end(j);
        } else {
            hf_openapi_content(j, *media, NULL, call->kind == HF_CALL_BULK ? "batch_line" : NULL);
        }
    }
    hf_json_object_end(j);
}

static void status_name_add(struct hf_json *j, unsigned status)
{
    char text[4] = { (char)('0' + status / 100), (char)('0' + status / 10 % 10),
                     (char)('0' + status % 10), 0 };
    hf_json_name_bytes(j, hf_str(text));
}

static void success_add(struct hf_json *j, const struct hf_call *call, unsigned status,
                        const char *about)
{
    status_name_add(j, status);
    hf_json_object(j);
    hf_openapi_text(j, "description", about);
    success_headers_add(j, call, status);
    answer_content_add(j, call);
    hf_json_object_end(j);
}

/* The status of a success. A begin has two: the claim is new, or it was settled before. So has a
 * confirm: of the hold, or late, of a new one. */
static void successes_add(struct hf_json *j, const struct hf_call *call)
{
    struct hf_answer begun = { .status = HF_OK,
                               .kind = HF_RECORD_CLAIM,
                               .claim = { .state = HF_CLAIM_STARTED } };
    struct hf_answer settled = { .status = HF_OK,
                                 .kind = HF_RECORD_CLAIM,
                                 .claim = { .state = HF_CLAIM_COMPLETED } };
    const char *about = hf_openapi_about(call->answers);
    bool does = call->kind == HF_CALL_DO;
    unsigned first = does ? hf_api_answer_status(call->action, &begun) : 200;
    unsigned second = does ? hf_api_answer_status(call->action, &settled) : 200;
    success_add(j, call, first,
                first == second
                    ? about
                    : "Begun: do the work, then complete or fail the claim with this fence.");
    if (second != first)
        success_add(j, call, second,
                    "Settled before: this is the stored result. Do not do the work again.");
    for (size_t i = 0; i < call->field_count; i++)
        if (call->fields[i].becomes == HF_CONFIRM_LATE)
            success_add(j, call, 201,
                        "The window had elapsed: a new hold is confirmed in its place.");
}

static void problem_content_add(struct hf_json *j)
{
    hf_json_name(j, "content");
    hf_json_object(j);
    hf_openapi_content(j, "application/problem+json", "problem", NULL);
    hf_json_object_end(j);
}

/* The refusals of the call with this HTTP status, as one answer. */
static void refused_add(struct hf_json *j, const struct hf_call *call, unsigned http_status)
{
    struct hf_buffer about = { 0 };
    bool retry = false;
    for (int i = HF_INVALID_REQUEST; i < HF_STORAGE_FAILURE; i++) {
        enum hf_status status = (enum hf_status)i;
        if (!may_refuse(call, status) || hf_refusal_http(status) != http_status)
            continue;
        struct hf_refusal p = hf_refusal_of(call->action, status);
        hf_buffer_printf(&about, "%s`%s`: %s.", about.size ? " " : "", p.code, p.title);
        retry |= status == HF_IN_PROGRESS;
    }
    if (about.size > 0) {
        status_name_add(j, http_status);
        hf_json_object(j);
        hf_openapi_text(j, "description", hf_buffer_text(&about));
        refusal_headers_add(j, call, retry);
        problem_content_add(j);
        hf_json_object_end(j);
    }
    j->out->failed |= about.failed;
    hf_buffer_free(&about);
}

static void shared_add(struct hf_json *j, unsigned status, const char *name)
{
    status_name_add(j, status);
    hf_openapi_ref(j, "responses", name);
}

/* "Not ready" is not a problem document. */
static void not_ready_add(struct hf_json *j, const struct hf_call *call)
{
    static const char *const later[] = { "Retry-After", NULL };
    status_name_add(j, 503);
    hf_json_object(j);
    hf_openapi_text(j, "description",
                    "Not ready: the server is still reading the journal, or the store does not "
                    "accept new keys; `why` has the reason.");
    headers_add(j, later);
    answer_content_add(j, call);
    hf_json_object_end(j);
}

void hf_openapi_responses(struct hf_json *j, const struct hf_call *call)
{
    hf_json_name(j, "responses");
    hf_json_object(j);
    successes_add(j, call);
    refused_add(j, call, 400);
    if (call->role > HF_ROLE_NONE) {
        shared_add(j, 401, "unauthorized");
        shared_add(j, 403, "forbidden");
    }
    for (unsigned status = 404; status < 413; status++)
        refused_add(j, call, status);
    if (call->method != HF_HTTP_GET)
        shared_add(j, 413, "too-large");
    refused_add(j, call, 422);
    if (call->role > HF_ROLE_NONE)
        shared_add(j, 429, "too-many");
    if (hf_handler_of(call)->needs_store)
        shared_add(j, 503, "unavailable");
    if (call->kind == HF_CALL_READY)
        not_ready_add(j, call);
    hf_json_name(j, "default");
    hf_openapi_ref(j, "responses", "problem");
    hf_json_object_end(j);
}

/* ---- What calls share ---- */

/* clang-format off */
static const struct shared {
    const char *name, *about, *headers[3]; /* NULL after the last */
} shared[] = {
    { "problem",
      "Refused before it was decoded: malformed, too large, too slow, not HTTP/1.1, or with a "
      "method that the path does not have.",
      { "Allow", "Retry-After" } },
    { "unauthorized", "`unauthorized`: the request has no credential, or an unknown one.",
      { "WWW-Authenticate" } },
    { "forbidden", "`forbidden`: the credential's role may not make this call.", { NULL } },
    { "too-large", "`body-too-large`, `batch-too-large`: nothing was done.", { NULL } },
    { "too-many",
      "`too-many-requests`: the tenant exceeds its limit of requests per second. Nothing was done. "
      "Retry after the time in Retry-After, with the same key.",
      { "Retry-After" } },
    { "unavailable",
      "`storage-failure`, `no-memory`, `too-busy`: nothing was done and nothing is remembered. "
      "`indeterminate`: the request may have been done. In all cases, retry with the same key.",
      { "Retry-After" } },
};
/* clang-format on */

void hf_openapi_shared_responses(struct hf_json *j)
{
    hf_json_name(j, "responses");
    hf_json_object(j);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        hf_json_name_bytes(j, hf_str(shared[i].name));
        hf_json_object(j);
        hf_openapi_text(j, "description", shared[i].about);
        headers_add(j, shared[i].headers);
        problem_content_add(j);
        hf_json_object_end(j);
    }
    hf_json_object_end(j);
}
