/* The HTTP interface as an OpenAPI 3.1 document. It is made from the table of calls, so that it
 * always agrees with the server. */
#include "server/openapi.h"

#include "server/inner.h"

void hf_openapi_text(struct hf_json *j, const char *name, const char *text)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_text(j, text);
}

void hf_openapi_ref(struct hf_json *j, const char *kind, const char *name)
{
    char place[32] = "#/components/";
    strncat(place, kind, sizeof place - sizeof "#/components/" - 1);
    strncat(place, "/", 2);
    hf_json_object(j);
    hf_json_name(j, "$ref");
    hf_json_joined(j, place, name);
    hf_json_object_end(j);
}

void hf_openapi_choices(struct hf_json *j, const char *choices)
{
    hf_json_name(j, "enum");
    hf_json_array(j);
    while (*choices) {
        size_t size = strcspn(choices, "|");
        hf_json_bytes(j, hf_mem(choices, size));
        choices += size + (choices[size] == '|');
    }
    hf_json_array_end(j);
}

/* ---- Calls ---- */

static void path_parameter_add(struct hf_json *j, const struct hf_call *call)
{
    const char *open = strchr(call->path, '{');
    if (!open)
        return;
    hf_json_object(j);
    hf_json_name(j, "name");
    hf_json_bytes(j, hf_mem(open + 1, strcspn(open + 1, "}")));
    hf_openapi_text(j, "in", "path");
    hf_json_name(j, "required");
    hf_json_bool(j, true);
    hf_openapi_text(j, "description", "One segment of the path. Write a slash in it as %2F.");
    hf_json_name(j, "schema");
    hf_json_object(j);
    hf_openapi_text(j, "type", "string");
    hf_json_name(j, "minLength");
    hf_json_uint(j, 1);
    hf_json_object_end(j);
    hf_json_object_end(j);
}

static void query_parameters_add(struct hf_json *j, const struct hf_call *call)
{
    for (size_t i = 0; !hf_call_has_body(call) && i < call->field_count; i++) {
        const struct hf_call_field *field = &call->fields[i];
        hf_json_object(j);
        hf_openapi_text(j, "name", field->name);
        hf_openapi_text(j, "in", "query");
        hf_json_name(j, "required");
        hf_json_bool(j, field->required);
        hf_openapi_text(j, "description", field->help);
        hf_json_name(j, "schema");
        hf_openapi_field(j, field, false);
        hf_json_object_end(j);
    }
}

static void parameters_add(struct hf_json *j, const struct hf_call *call)
{
    bool queries = !hf_call_has_body(call) && call->field_count > 0;
    if (!strchr(call->path, '{') && !queries && !call->key)
        return;
    hf_json_name(j, "parameters");
    hf_json_array(j);
    path_parameter_add(j, call);
    query_parameters_add(j, call);
    if (call->key) {
        hf_openapi_ref(j, "parameters", "Idempotency-Key");
        hf_openapi_ref(j, "parameters", "Holdfast-Client");
        hf_openapi_ref(j, "parameters", "Holdfast-Sequence");
    }
    hf_json_array_end(j);
}

static void body_add(struct hf_json *j, const struct hf_call *call)
{
    bool batch = call->kind == HF_CALL_BULK;
    if (!hf_call_has_body(call))
        return;
    hf_json_name(j, "requestBody");
    hf_json_object(j);
    if (batch)
        hf_openapi_text(j, "description",
                        "One operation per line, at most " HF_BULK_LINES_TEXT
                        ". Each line is decided by itself.");
    hf_json_name(j, "required");
    hf_json_bool(j, batch || hf_call_needs_body(call));
    hf_json_name(j, "content");
    hf_json_object(j);
    if (batch) {
        hf_openapi_content(j, "application/x-ndjson", NULL, "batch_operation");
    } else {
        hf_json_name(j, "application/json");
        hf_json_object(j);
        hf_json_name(j, "schema");
        hf_openapi_body(j, call);
        hf_json_object_end(j);
    }
    hf_json_object_end(j);
    hf_json_object_end(j);
}

/* With an auth file, a call needs a credential of at least this role; without one, none. */
static void security_add(struct hf_json *j, const struct hf_call *call)
{
    static const char *const roles[] = {
        [HF_ROLE_READ] = "read", [HF_ROLE_WRITE] = "write", [HF_ROLE_ADMIN] = "admin"
    };
    hf_json_name(j, "security");
    hf_json_array(j);
    if (call->role > HF_ROLE_NONE) {
        hf_json_object(j);
        hf_json_name(j, "bearer");
        hf_json_array(j);
        hf_json_text(j, roles[call->role]);
        hf_json_array_end(j);
        hf_json_object_end(j);
        hf_json_object(j);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

/* clang-format off */
static const struct tag {
    const char *prefix, *name, *about;
} tags[] = {
    { "/v1/holds", "holds", "Hold a unit of a resource, then confirm or release it." },
    { "/v1/resources", "resources", "Things with units that can be held." },
    { "/v1/guards", "guards", "Was this identity recorded within the window?" },
    { "/v1/claims", "claims", "An effect outside of this store, once." },
    { "/v1/leases", "leases", "Authority over a name, with a fence." },
    { "/v1/registers", "registers", "Named values, written or merged." },
    { "/v1/batch", "batch", "Bulk requests: many operations in one body." },
    { "/v1/openapi", "server", "The server itself." },
    { "/v1/", "records", "What happened, from the records." },
    { "/", "server", NULL },
};
/* clang-format on */

static void tag_add(struct hf_json *j, const struct hf_call *call)
{
    const struct tag *tag = tags;
    while (strncmp(tag->prefix, call->path, strlen(tag->prefix)) != 0)
        tag++;
    hf_json_name(j, "tags");
    hf_json_array(j);
    hf_json_text(j, tag->name);
    hf_json_array_end(j);
}

static void call_add(struct hf_json *j, const struct hf_call *call)
{
    static const char *const methods[] = { [HF_HTTP_GET] = "get",
                                           [HF_HTTP_POST] = "post",
                                           [HF_HTTP_PUT] = "put",
                                           [HF_HTTP_DELETE] = "delete" };
    hf_json_name_bytes(j, hf_str(methods[call->method]));
    hf_json_object(j);
    tag_add(j, call);
    hf_openapi_text(j, "summary", call->help);
    hf_json_name(j, "operationId");
    if (call->action == HF_GET_TOKEN && !call->param) /* two calls have this action */
        hf_json_text(j, "get_token_of_number");
    else if (call->kind == HF_CALL_DO)
        hf_json_text(j, hf_action_name(call->action));
    else
        hf_json_joined(j, call->kind == HF_CALL_LIST ? "list_" : "", call->answers);
    security_add(j, call);
    parameters_add(j, call);
    body_add(j, call);
    hf_openapi_responses(j, call);
    hf_json_object_end(j);
}

static bool path_is_new(size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(hf_calls[i].path, hf_calls[index].path) == 0)
            return false;
    return true;
}

static void paths_add(struct hf_json *j)
{
    hf_json_name(j, "paths");
    hf_json_object(j);
    for (size_t i = 0; i < hf_call_count; i++) {
        if (!path_is_new(i))
            continue;
        hf_json_name_bytes(j, hf_str(hf_calls[i].path));
        hf_json_object(j);
        for (size_t k = i; k < hf_call_count; k++)
            if (strcmp(hf_calls[k].path, hf_calls[i].path) == 0)
                call_add(j, &hf_calls[k]);
        hf_json_object_end(j);
    }
    hf_json_object_end(j);
}

/* ---- What calls share ---- */

/* clang-format off */
static const struct header {
    const char *name, *type, *choices, *about; /* choices: "a|b" or NULL */
} headers[] = {
    { "Allow", "string", NULL, "With 405: the methods of the path." },
    { "Cache-Control", "string", NULL, "`no-store`: the page shows the current state." },
    { "Content-Security-Policy", "string", NULL,
      "What the page may load: nothing from other servers." },
    { "Holdfast-Verdict", "string", "ok|violations|damaged",
      "The result for the records: `ok`; `violations`: an invariant does not hold; `damaged`: not "
      "all records could be read. An export does not look for violations." },
    { "Idempotency-Expires", "string", NULL,
      "When the key's window closes (RFC 3339). Until then the same request gets the same answer; "
      "after that the key is new. Missing if nothing is remembered, and for a numbered client." },
    { "Idempotent-Replayed", "string", NULL, "`true` if this is a replay. Otherwise missing." },
    { "Referrer-Policy", "string", NULL, "`no-referrer`: links do not send the page's address." },
    { "Retry-After", "integer", NULL, "Seconds to wait before a retry." },
    { "WWW-Authenticate", "string", NULL, "How to authenticate." },
    { "X-Content-Type-Options", "string", NULL, "`nosniff`: browsers must not guess the type." },
};
/* clang-format on */

static void shared_headers_add(struct hf_json *j)
{
    hf_json_name(j, "headers");
    hf_json_object(j);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        hf_json_name_bytes(j, hf_str(headers[i].name));
        hf_json_object(j);
        hf_openapi_text(j, "description", headers[i].about);
        hf_json_name(j, "schema");
        hf_json_object(j);
        hf_openapi_text(j, "type", headers[i].type);
        if (headers[i].choices)
            hf_openapi_choices(j, headers[i].choices);
        hf_json_object_end(j);
        hf_json_object_end(j);
    }
    hf_json_object_end(j);
}

/* A header field that calls with a key take. `whole`: a number from 1; else text. */
static void shared_parameter_add(struct hf_json *j, const char *name, bool whole, const char *about)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_object(j);
    hf_openapi_text(j, "name", name);
    hf_openapi_text(j, "in", "header");
    hf_json_name(j, "required");
    hf_json_bool(j, false); /* either the key or the other two are */
    hf_openapi_text(j, "description", about);
    hf_json_name(j, "schema");
    hf_json_object(j);
    hf_openapi_text(j, "type", whole ? "integer" : "string");
    hf_json_name_bytes(j, hf_str(whole ? "minimum" : "minLength"));
    hf_json_uint(j, 1);
    hf_json_object_end(j);
    hf_json_object_end(j);
}

static void shared_parameters_add(struct hf_json *j)
{
    hf_json_name(j, "parameters");
    hf_json_object(j);
    shared_parameter_add(
        j, "Idempotency-Key", false,
        "Required, unless Holdfast-Client and Holdfast-Sequence are sent instead. The same for "
        "every attempt at one request, new for every new request. Plain or in quotes (a string of "
        "RFC 8941); both are the same key. Bytes above 0x7F are allowed, and keys are compared "
        "byte "
        "by byte. A key with a comma must be in quotes, because a proxy may have merged two "
        "headers. At most 256 bytes, unless the server is configured otherwise. A request that can "
        "be read is remembered with its refusal, also if a member is missing or has the wrong "
        "type. Calls without this parameter ignore the field; but a claim's key is in its body or "
        "path, and a field with another key is refused.");
    shared_parameter_add(
        j, "Holdfast-Client", false,
        "In place of Idempotency-Key, together with Holdfast-Sequence: the name of a client that "
        "numbers its requests. Plain or in quotes, as a key.");
    shared_parameter_add(
        j, "Holdfast-Sequence", true,
        "The number of the client's request: 1, 2, 3 ... The same for every attempt at it. The "
        "last 256 numbers are remembered; one more than a million above the highest is refused.");
    hf_json_object_end(j);
}

static void components_add(struct hf_json *j)
{
    hf_json_name(j, "components");
    hf_json_object(j);
    hf_json_name(j, "securitySchemes");
    hf_json_object(j);
    hf_json_name(j, "bearer");
    hf_json_object(j);
    hf_openapi_text(j, "type", "http");
    hf_openapi_text(j, "scheme", "bearer");
    hf_openapi_text(
        j, "description",
        "A credential of the server's auth file. A server without an auth file needs no "
        "credential, and accepts calls only from its own machine.");
    hf_json_object_end(j);
    hf_json_object_end(j);
    shared_parameters_add(j);
    shared_headers_add(j);
    hf_openapi_shared_responses(j);
    hf_json_name(j, "schemas");
    hf_json_object(j);
    hf_openapi_answers(j);
    hf_openapi_operations(j);
    hf_json_object_end(j);
    hf_json_object_end(j);
}

/* ---- The document ---- */

static void info_add(struct hf_json *j)
{
    hf_json_name(j, "info");
    hf_json_object(j);
    hf_openapi_text(j, "title", "Holdfast");
    hf_openapi_text(j, "summary", "Retry-safe writes.");
    hf_openapi_text(
        j, "description",
        "Every change has an idempotency key. The key, the change and the answer are written in "
        "one commit. A retry with the same key gets the first answer, byte for byte, and nothing "
        "happens a second time. If the request can be read, a refusal is remembered like a "
        "success: a request against a rule (a resource without a free unit, a duration of 0 or -5, "
        "a member that is missing or of the wrong type) has this refusal as the key's answer, with "
        "Idempotency-Expires. A request that cannot be read (malformed JSON, an unknown or "
        "duplicate member) is not remembered, and the key is still free; nor is a begin that is "
        "refused, because the key is the claim's. Every path with GET also has HEAD.");
    hf_openapi_text(j, "version", hf_version());
    hf_json_name(j, "license");
    hf_json_object(j);
    hf_openapi_text(j, "name", "Apache License 2.0");
    hf_openapi_text(j, "identifier", "Apache-2.0");
    hf_json_object_end(j);
    hf_json_object_end(j);
}

static void tags_add(struct hf_json *j)
{
    hf_json_name(j, "tags");
    hf_json_array(j);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (!tags[i].about)
            continue;
        hf_json_object(j);
        hf_openapi_text(j, "name", tags[i].name);
        hf_openapi_text(j, "description", tags[i].about);
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

static void document_add(struct hf_buffer *out)
{
    struct hf_json json = { .out = out }, *j = &json;
    hf_json_object(j);
    hf_openapi_text(j, "openapi", "3.1.0");
    info_add(j);
    hf_json_name(j, "servers");
    hf_json_array(j);
    hf_json_object(j);
    hf_openapi_text(j, "url", "/");
    hf_openapi_text(j, "description", "The server of this description.");
    hf_json_object_end(j);
    hf_json_array_end(j);
    tags_add(j);
    paths_add(j);
    components_add(j);
    hf_json_object_end(j);
}

/* The document never changes while the program runs, so it is made once: many requests for it cost
 * little. */
static struct hf_buffer kept;

static void document_keep(void)
{
    document_add(&kept);
}

void hf_server_openapi(struct hf_buffer *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, document_keep);
    if (kept.failed) /* out of memory at that time: try again */
        document_add(out);
    else
        hf_buffer_add(out, kept.data, kept.size);
}
