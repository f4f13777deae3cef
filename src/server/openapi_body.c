/* The inputs of a call, from its fields. Unknown members are refused, so no object allows them. */
#include "server/openapi.h"

#define BYTES_MAX 1024 /* the maximum of a name, identity, key or fingerprint */

static void text_add(struct hf_json *j, bool required)
{
    hf_openapi_text(j, "type", "string");
    if (required) {
        hf_json_name(j, "minLength");
        hf_json_uint(j, 1);
    }
    hf_json_name(j, "maxLength");
    hf_json_uint(j, BYTES_MAX);
}

/* An array of choices, or one string with commas. */
static void match_add(struct hf_json *j, const char *choices)
{
    hf_json_name(j, "anyOf");
    hf_json_array(j);
    hf_json_object(j);
    hf_openapi_text(j, "type", "array");
    hf_json_name(j, "items");
    hf_json_object(j);
    hf_openapi_text(j, "type", "string");
    hf_openapi_choices(j, choices);
    hf_json_object_end(j);
    hf_json_name(j, "maxItems");
    hf_json_uint(j, HF_MATCH_MAX);
    hf_json_object_end(j);
    hf_json_object(j);
    hf_openapi_text(j, "type", "string");
    hf_json_object_end(j);
    hf_json_array_end(j);
}

void hf_openapi_field(struct hf_json *j, const struct hf_call_field *field, bool with_help)
{
    hf_json_object(j);
    switch (field->type) {
    case HF_TYPE_OF_TIME:
    case HF_TYPE_OF_TEXT: text_add(j, field->required); break;
    case HF_TYPE_OF_DURATION:
        hf_json_name(j, "anyOf");
        hf_json_array(j);
        hf_openapi_ref(j, "schemas", "duration");
        hf_openapi_ref(j, "schemas", "seconds");
        hf_json_array_end(j);
        break;
    case HF_TYPE_OF_NUMBER:
        hf_openapi_text(j, "type", "integer");
        hf_json_name(j, "minimum");
        hf_json_uint(j, field->most ? 1 : 0);
        if (field->most) {
            hf_json_name(j, "maximum");
            hf_json_uint(j, field->most);
        }
        break;
    case HF_TYPE_OF_FLAG: hf_openapi_text(j, "type", "boolean"); break;
    case HF_TYPE_OF_JSON: break;
    case HF_TYPE_OF_MATCH: match_add(j, field->choices); break;
    case HF_TYPE_OF_CHOICE:
        hf_openapi_text(j, "type", "string");
        hf_openapi_choices(j, field->choices);
        break;
    }
    if (with_help)
        hf_openapi_text(j, "description", field->help);
    hf_json_object_end(j);
}

static void fields_add(struct hf_json *j, const struct hf_call *call)
{
    for (size_t i = 0; i < call->field_count; i++) {
        hf_json_name_bytes(j, hf_str(call->fields[i].name));
        hf_openapi_field(j, &call->fields[i], true);
    }
}

static void required_add(struct hf_json *j, const struct hf_call *call)
{
    for (size_t i = 0; i < call->field_count; i++)
        if (call->fields[i].required)
            hf_json_text(j, call->fields[i].name);
}

/* An alternative of a oneOf: these members are required. second: may be NULL. */
static void alternative_add(struct hf_json *j, const char *first, const char *second)
{
    hf_json_object(j);
    hf_json_name(j, "required");
    hf_json_array(j);
    hf_json_text(j, first);
    if (second)
        hf_json_text(j, second);
    hf_json_array_end(j);
    hf_json_object_end(j);
}

/* A claim has a fingerprint or a payload, never both. */
static void begin_add(struct hf_json *j)
{
    hf_json_name(j, "oneOf");
    hf_json_array(j);
    alternative_add(j, "fingerprint", NULL);
    alternative_add(j, "payload", NULL);
    hf_json_array_end(j);
}

static void closed_add(struct hf_json *j)
{
    hf_json_name(j, "additionalProperties");
    hf_json_bool(j, false);
}

void hf_openapi_body(struct hf_json *j, const struct hf_call *call)
{
    hf_json_object(j);
    hf_openapi_text(j, "type", "object");
    hf_json_name(j, "properties");
    hf_json_object(j);
    fields_add(j, call);
    hf_json_object_end(j);
    hf_json_name(j, "required");
    hf_json_array(j);
    required_add(j, call);
    hf_json_array_end(j);
    if (call->action == HF_BEGIN)
        begin_add(j);
    closed_add(j);
    hf_json_object_end(j);
}

/* ---- Lines of a bulk request ---- */

struct extra {
    const char *name;
    bool whole; /* a number, else a text */
    const char *help;
};

static void extra_add(struct hf_json *j, const struct extra *extra)
{
    hf_json_name_bytes(j, hf_str(extra->name));
    hf_json_object(j);
    if (extra->whole) {
        hf_openapi_text(j, "type", "integer");
        hf_json_name(j, "minimum");
        hf_json_uint(j, 1);
    } else {
        text_add(j, true);
    }
    hf_openapi_text(j, "description", extra->help);
    hf_json_object_end(j);
}

/* What a line has in addition to the fields of the call. A call without a key accepts one and
 * ignores it. */
static void extras_add(struct hf_json *j, const struct hf_call *call, const char *param)
{
    static const struct extra key = { "key", false, "the Idempotency-Key" };
    static const struct extra unused = { "key", false, "not needed here, and ignored" };
    static const struct extra claim = { "key", false, "the claim's key" };
    static const struct extra client = {
        "client", false, "instead of key, for numbered clients: the client's name"
    };
    static const struct extra sequence = { "sequence", true, "the client's number: 1, 2, 3 ..." };
    bool is_key = param && strcmp(param, "key") == 0;
    if (is_key)
        extra_add(j, &claim);
    else if (param)
        extra_add(j, &(struct extra){ param, false, "the part of the call's path" });
    if (call->key) {
        extra_add(j, &key);
        extra_add(j, &client);
        extra_add(j, &sequence);
    } else if (!is_key && call->action != HF_BEGIN) { /* begin has the key in its fields */
        extra_add(j, &unused);
    }
}

/* The required members, and the alternatives. */
static void line_rules_add(struct hf_json *j, const struct hf_call *call, const char *param)
{
    hf_json_name(j, "required");
    hf_json_array(j);
    hf_json_text(j, "op");
    if (param)
        hf_json_text(j, param);
    required_add(j, call);
    if (call->action == HF_BEGIN) /* a line has no header that could have the key */
        hf_json_text(j, "key");
    hf_json_array_end(j);
    if (call->action == HF_BEGIN)
        begin_add(j);
    if (!call->key)
        return;
    hf_json_name(j, "oneOf");
    hf_json_array(j);
    alternative_add(j, "key", NULL);
    alternative_add(j, "client", "sequence");
    hf_json_array_end(j);
}

static void operation_add(struct hf_json *j, const struct hf_call *call)
{
    const char *param = call->param;
    hf_json_object(j);
    hf_openapi_text(j, "description", call->help);
    hf_openapi_text(j, "type", "object");
    hf_json_name(j, "properties");
    hf_json_object(j);
    hf_json_name(j, "op");
    hf_json_object(j);
    hf_openapi_text(j, "type", "string");
    hf_openapi_text(j, "const", call->op);
    hf_json_object_end(j);
    extras_add(j, call, param);
    fields_add(j, call);
    hf_json_object_end(j);
    line_rules_add(j, call, param);
    closed_add(j);
    hf_json_object_end(j);
}

struct operation_name {
    char text[64];
};

static struct operation_name name_of(const struct hf_call *call)
{
    struct operation_name name = { "batch_" };
    strncat(name.text, call->op, sizeof name.text - sizeof "batch_");
    return name;
}

static void discriminator_add(struct hf_json *j)
{
    hf_json_name(j, "discriminator");
    hf_json_object(j);
    hf_openapi_text(j, "propertyName", "op");
    hf_json_name(j, "mapping");
    hf_json_object(j);
    for (size_t i = 0; i < hf_call_count; i++) {
        if (!hf_calls[i].op)
            continue;
        hf_json_name_bytes(j, hf_str(hf_calls[i].op));
        hf_json_joined(j, "#/components/schemas/", name_of(&hf_calls[i]).text);
    }
    hf_json_object_end(j);
    hf_json_object_end(j);
}

void hf_openapi_operations(struct hf_json *j)
{
    for (size_t i = 0; i < hf_call_count; i++) {
        if (!hf_calls[i].op)
            continue;
        hf_json_name_bytes(j, hf_str(name_of(&hf_calls[i]).text));
        operation_add(j, &hf_calls[i]);
    }
    hf_json_name(j, "batch_operation");
    hf_json_object(j);
    hf_openapi_text(j, "description", "A line of a bulk request.");
    hf_json_name(j, "oneOf");
    hf_json_array(j);
    for (size_t i = 0; i < hf_call_count; i++)
        if (hf_calls[i].op)
            hf_openapi_ref(j, "schemas", name_of(&hf_calls[i]).text);
    hf_json_array_end(j);
    discriminator_add(j);
    hf_json_object_end(j);
}
