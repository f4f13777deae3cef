/* The schema of refusals, with all codes. */
#include "api/problem.h"
#include "server/inner.h"
#include "server/openapi.h"

/* clang-format off */
/* The server's own codes, in addition to those of the library. */
static const struct { const char *code; unsigned status; const char *title; } own_codes[] = {
    { "unauthorized", 401, "No credential, or an unknown one" },
    { "forbidden", 403, "The credential's role may not do this, or a web page of another "
                        "origin asks; without an auth file also: Host is no loopback name "
                        "or address" },
    { "method-not-allowed", 405, "The path does not have this method; see Allow" },
    { "request-timeout", 408, "The request was sent too slowly" },
    { "batch-too-large", 413, "More than " HF_BULK_LINES_TEXT " operations, or more than the "
                              "tenant's rate allows in 10 seconds" },
    { "body-too-large", 413, "The body exceeds the server's limit" },
    { "encoding-not-supported", 415, "A body in a Content-Encoding other than identity" },
    { "expectation-failed", 417, "An Expect other than 100-continue" },
    { "too-many-requests", 429, "The tenant exceeds its limit of requests per second" },
    { "head-too-large", 431, "More than 16384 bytes of request line and fields" },
    { "too-many-headers", 431, "More than 64 fields" },
    { "not-implemented", 501, "A transfer coding other than chunked" },
    { "too-busy", 503, "Too many requests are in progress" },
    { "too-many-connections", 503, "The server or the tenant is at its limit of connections" },
    { "version-not-supported", 505, "Neither HTTP/1.1 nor HTTP/1.0" },
};
/* clang-format on */

/* The next code of the library; HF_OK after the last. */
static enum hf_status status_next(enum hf_status status)
{
    int i = (int)status;
    do {
        if (++i > HF_INDETERMINATE)
            return HF_OK;
    } while (strcmp(hf_status_code((enum hf_status)i), "unknown") == 0);
    return (enum hf_status)i;
}

/* A table of all codes, for people. */
static void codes_describe(struct hf_json *j)
{
    struct hf_buffer text = { 0 };
    hf_buffer_add_text(
        &text, "The error code, for programs.\n\n| code | status | meaning |\n|---|---|---|\n");
    for (enum hf_status s = status_next(HF_OK); s != HF_OK; s = status_next(s)) {
        struct hf_refusal p = hf_refusal_of((enum hf_action)0, s);
        hf_buffer_printf(&text, "| %s | %u | %s |\n", p.code, p.http_status, p.title);
    }
    for (size_t i = 0; i < sizeof own_codes / sizeof *own_codes; i++)
        hf_buffer_printf(&text, "| %s | %u | %s |\n", own_codes[i].code, own_codes[i].status,
                         own_codes[i].title);
    j->out->failed |= text.failed;
    hf_openapi_text(j, "description", text.failed ? "" : hf_buffer_text(&text));
    hf_buffer_free(&text);
}

static void codes_add(struct hf_json *j)
{
    hf_json_name(j, "code");
    hf_json_object(j);
    codes_describe(j);
    hf_openapi_text(j, "type", "string");
    hf_json_name(j, "enum");
    hf_json_array(j);
    for (enum hf_status s = status_next(HF_OK); s != HF_OK; s = status_next(s))
        hf_json_text(j, hf_status_code(s));
    for (size_t i = 0; i < sizeof own_codes / sizeof *own_codes; i++)
        hf_json_text(j, own_codes[i].code);
    hf_json_array_end(j);
    hf_json_object_end(j);
}

static bool has_status(unsigned http_status)
{
    for (enum hf_status s = status_next(HF_OK); s != HF_OK; s = status_next(s))
        if (hf_refusal_http(s) == http_status)
            return true;
    for (size_t i = 0; i < sizeof own_codes / sizeof *own_codes; i++)
        if (own_codes[i].status == http_status)
            return true;
    return false;
}

static void statuses_add(struct hf_json *j)
{
    hf_json_name(j, "status");
    hf_json_object(j);
    hf_openapi_text(j, "description", "The HTTP status.");
    hf_openapi_text(j, "type", "integer");
    hf_json_name(j, "enum");
    hf_json_array(j);
    for (unsigned status = 400; status < 600; status++)
        if (has_status(status))
            hf_json_uint(j, status);
    hf_json_array_end(j);
    hf_json_object_end(j);
}

static void problem_text_add(struct hf_json *j, const char *name, const char *help)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_object(j);
    hf_openapi_text(j, "type", "string");
    hf_openapi_text(j, "description", help);
    hf_json_object_end(j);
}

static void retry_add(struct hf_json *j)
{
    static const char *const values[] = { "same-key", "new-key", "no" };
    hf_json_name(j, "retry");
    hf_json_object(j);
    hf_openapi_text(j, "type", "string");
    hf_openapi_text(j, "description",
                    "What a program may do. `same-key`: send the same request with the same key, "
                    "later. `new-key`: a new attempt needs a new key. `no`: do not retry.");
    hf_json_name(j, "enum");
    hf_json_array(j);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        hf_json_text(j, values[i]);
    hf_json_array_end(j);
    hf_json_object_end(j);
}

/* Of in-progress, outcome-unknown, and window-elapsed. */
static const struct claim_member {
    const char *name, *type, *format, *help;
} claim_members[] = {
    { "key", NULL, NULL, "the claim's key; {\"base64\": ...} if it is not UTF-8" },
    { "fence", "integer", NULL, "the claim's newest fence" },
    { "begun_at", "string", "date-time", "when the claim was begun" },
    { "lease_expires_at", "string", "date-time", "when its lease ends, or has ended" },
    { "unknown_since", "string", "date-time", "outcome-unknown: since when" },
    { "verdict", "string", NULL, "refund: a late confirm found no free unit" },
};

static void claim_member_add(struct hf_json *j, const struct claim_member *m)
{
    hf_json_name_bytes(j, hf_str(m->name));
    hf_json_object(j);
    if (m->type)
        hf_openapi_text(j, "type", m->type);
    if (m->format)
        hf_openapi_text(j, "format", m->format);
    hf_openapi_text(j, "description", m->help);
    hf_json_object_end(j);
}

void hf_openapi_problem(struct hf_json *j)
{
    static const char *const required[] = { "type", "title", "status", "detail", "code", "retry" };
    hf_json_name(j, "problem");
    hf_json_object(j);
    hf_openapi_text(j, "description", "Why a request was refused (RFC 9457).");
    hf_openapi_text(j, "type", "object");
    hf_json_name(j, "properties");
    hf_json_object(j);
    problem_text_add(j, "type", "urn:holdfast: and the code");
    problem_text_add(j, "title", "what happened, in a few words");
    statuses_add(j);
    problem_text_add(j, "detail", "what happened, and what to do");
    codes_add(j);
    retry_add(j);
    for (size_t i = 0; i < sizeof claim_members / sizeof *claim_members; i++)
        claim_member_add(j, &claim_members[i]);
    hf_json_object_end(j);
    hf_json_name(j, "required");
    hf_json_array(j);
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        hf_json_text(j, required[i]);
    hf_json_array_end(j);
    hf_json_object_end(j);
}
