/* From a request of the library to a call of the interface: the reverse of api/decode. */
#include "api/encode.h"
#include "base/text.h"
#include "client/client.h"
#include "core/action.h"
#include "http/octet.h"
#include "json/stored.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void hf_client_call_free(struct hf_client_call *call)
{
    hf_buffer_free(&call->target);
    hf_buffer_free(&call->key);
    hf_buffer_free(&call->client);
    hf_buffer_free(&call->body);
}

/* A call that is being encoded. */
struct encoding {
    struct hf_client_call *call;
    struct hf_error *why;
    struct hf_json json; /* over the body */
};

__attribute__((format(printf, 2, 3))) static void refuse(struct encoding *e, const char *format,
                                                         ...)
{
    va_list args;
    if (e->why->status != HF_OK)
        return;
    va_start(args, format);
    vsnprintf(e->why->text, sizeof e->why->text, format, args);
    va_end(args);
    e->why->status = HF_INVALID_REQUEST;
}

/* JSON and paths are UTF-8. Replacing invalid bytes would change the name. */
static void text_check(struct encoding *e, const char *what, struct hf_bytes text)
{
    if (!hf_utf8_valid(text))
        refuse(e, "%s is not UTF-8, so it cannot be sent to a server", what);
}

/* Was the field given? Without a flag for it, 0 or no bytes mean no. */
static bool is_given(const struct hf_call_field *field, const struct hf_request *r, bool something)
{
    return field->has ? *(const bool *)((const char *)r + field->has)
                      : field->required || something;
}

/* ---- Targets ---- */

static void target_bytes(struct encoding *e, struct hf_bytes text)
{
    static const char hex[] = "0123456789ABCDEF";
    struct hf_buffer *out = &e->call->target;
    const unsigned char *p = text.data;
    bool dots = (text.size == 1 && p[0] == '.') || (text.size == 2 && p[0] == '.' && p[1] == '.');
    for (size_t i = 0; i < text.size; i++) {
        if (hf_octet_is(p[i], HF_OCTET_HOST) && !dots) { /* the unreserved ones of RFC 3986 */
            hf_buffer_add_char(out, (char)p[i]);
            continue;
        }
        hf_buffer_add_char(out, '%');
        hf_buffer_add_char(out, hex[p[i] >> 4]);
        hf_buffer_add_char(out, hex[p[i] & 15]);
    }
}

/* The path of the row, with `name` in place of the part in braces. */
static void target_path(struct encoding *e, const struct hf_call *row, struct hf_bytes name)
{
    const char *open = strchr(row->path, '{'), *close = open ? strchr(open, '}') : NULL;
    if (!close) {
        hf_buffer_add_text(&e->call->target, row->path);
        return;
    }
    text_check(e, "the name or id", name);
    hf_buffer_add(&e->call->target, row->path, (size_t)(open - row->path));
    target_bytes(e, name);
    hf_buffer_add_text(&e->call->target, close + 1);
}

/* "?name=" for the first parameter of a query, "&name=" for the others. */
static void query_name(struct encoding *e, bool *first, const char *name)
{
    hf_buffer_add_char(&e->call->target, *first ? '?' : '&');
    hf_buffer_add_text(&e->call->target, name);
    hf_buffer_add_char(&e->call->target, '=');
    *first = false;
}

static void query_number(struct encoding *e, bool *first, const char *name, uint64_t number)
{
    query_name(e, first, name);
    hf_buffer_printf(&e->call->target, "%" PRIu64, number);
}

static void query_text(struct encoding *e, bool *first, const char *name, struct hf_bytes text)
{
    if (text.size == 0)
        return;
    text_check(e, name, text);
    query_name(e, first, name);
    target_bytes(e, text);
}

/* An operator names the tenant; - is the default one. */
static void query_tenant(struct encoding *e, bool *first, struct hf_bytes tenant)
{
    if (tenant.data)
        query_text(e, first, "tenant", tenant.size > 0 ? tenant : hf_str("-"));
}

/* 0 means no bound. Use milliseconds, which are exact; a time before 1970 needs RFC 3339. */
static void query_time(struct encoding *e, bool *first, const char *name, hf_time time)
{
    char text[HF_TIME_TEXT];
    if (time == 0)
        return;
    query_name(e, first, name);
    hf_time_format(time, text);
    if (time > 0)
        hf_buffer_printf(&e->call->target, "@%" PRId64, time);
    else
        target_bytes(e, hf_str(text));
}

/* A DELETE has no body: its fields, which are numbers, are in the query. */
static void query_fields(struct encoding *e, bool *first, const struct hf_call *row,
                         const struct hf_request *r)
{
    if (row->method != HF_HTTP_DELETE)
        return;
    for (size_t i = 0; i < row->field_count; i++) {
        const struct hf_call_field *field = &row->fields[i];
        uint64_t number = hf_call_number(field, r);
        if (is_given(field, r, number != 0))
            query_number(e, first, field->name, number);
    }
}

/* ---- Keys ---- */

/* Write the key, or the client's name, as a string of RFC 8941, which preserves quotes, commas and
 * blanks at both ends; it may have bytes above 0x7F too. what: "key" or "client". */
static void key_add(struct encoding *e, const char *what, struct hf_bytes key,
                    struct hf_buffer *out)
{
    const unsigned char *p = key.data;
    hf_buffer_add_char(out, '"');
    for (size_t i = 0; i < key.size; i++) {
        if (p[i] < 0x20 || p[i] == 0x7f) {
            refuse(e,
                   "the %s has a control character, so it cannot be sent in an HTTP header. Use "
                   "another %s, such as a UUID",
                   what, what);
            return;
        }
        if (p[i] == '"' || p[i] == '\\')
            hf_buffer_add_char(out, '\\');
        hf_buffer_add_char(out, (char)p[i]);
    }
    hf_buffer_add_char(out, '"');
}

/* ---- Bodies ---- */

static void text_add(struct encoding *e, const char *name, struct hf_bytes text)
{
    char what[64];
    snprintf(what, sizeof what, "the %s", name);
    text_check(e, what, text);
    hf_json_name_bytes(&e->json, hf_str(name));
    hf_json_bytes(&e->json, text);
}

/* is_text: `stored` is the JSON itself. */
static void json_add(struct encoding *e, const char *name, struct hf_bytes stored, bool is_text)
{
    if (is_text) {
        hf_json_name_bytes(&e->json, hf_str(name));
        hf_json_raw(&e->json, stored);
    } else if (stored.size > 0 && *(const char *)stored.data == HF_STORED_JSON[0]) {
        hf_json_name_bytes(&e->json, hf_str(name));
        hf_json_stored(&e->json, stored);
    } else {
        text_add(e, name, stored);
    }
}

static void match_add(struct encoding *e, const char *name, const struct hf_request *r)
{
    if (r->set_guard.match_count == 0)
        return;
    hf_json_name_bytes(&e->json, hf_str(name));
    hf_json_array(&e->json);
    for (uint32_t i = 0; i < r->set_guard.match_count && i < HF_MATCH_MAX; i++)
        hf_json_text(&e->json, hf_match_name(r->set_guard.match[i]));
    hf_json_array_end(&e->json);
}

static void flag_add(struct encoding *e, const struct hf_call_field *field, uint64_t number)
{
    if (number != field->yes && number != field->no) /* not set */
        return;
    hf_json_name_bytes(&e->json, hf_str(field->name));
    hf_json_bool(&e->json, number == field->yes);
}

static void choice_add(struct encoding *e, const struct hf_call_field *field, uint64_t number)
{
    const char *word = field->choices;
    for (uint64_t i = field->no; i < number; i++)
        word += strcspn(word, "|") + 1;
    hf_json_name_bytes(&e->json, hf_str(field->name));
    hf_json_bytes(&e->json, hf_mem(word, strcspn(word, "|")));
}

static void field_add(struct encoding *e, const struct hf_call_field *field,
                      const struct hf_request *r)
{
    struct hf_bytes text;
    uint64_t number;
    switch (field->type) {
    case HF_TYPE_OF_TEXT:
        text = hf_action_bytes(r, field->at);
        if (is_given(field, r, text.size > 0))
            text_add(e, field->name, text);
        return;
    case HF_TYPE_OF_JSON:
        text = hf_action_bytes(r, field->at);
        if (is_given(field, r, text.size > 0))
            json_add(e, field->name, text, r->action == HF_BEGIN);
        return;
    case HF_TYPE_OF_MATCH: match_add(e, field->name, r); return;
    case HF_TYPE_OF_FLAG: flag_add(e, field, hf_call_number(field, r)); return;
    case HF_TYPE_OF_CHOICE: choice_add(e, field, hf_call_number(field, r)); return;
    default: break;
    }
    number = hf_call_number(field, r);
    if (!is_given(field, r, number != 0))
        return;
    hf_json_name_bytes(&e->json, hf_str(field->name));
    if (field->type == HF_TYPE_OF_DURATION)
        hf_json_duration(&e->json, (int64_t)number);
    else
        hf_json_uint(&e->json, number);
}

static void merge_add(struct encoding *e, const struct hf_value *value)
{
    const char *type = hf_register_type_name(value->type);
    hf_json_name(&e->json, "type");
    hf_json_text(&e->json, type ? type : "");
    hf_json_name(&e->json, "value");
    hf_api_value(&e->json, value);
}

static void body_add(struct encoding *e, const struct hf_call *row, const struct hf_request *r)
{
    if (row->field_count == 0 || !hf_call_has_body(row))
        return;
    hf_json_object(&e->json);
    for (size_t i = 0; i < row->field_count; i++)
        if (row->fields[i].becomes == r->action)
            text_add(e, row->fields[i].name, hf_str(row->fields[i].choices));
        else if (row->fields[i].at) /* the others: below */
            field_add(e, &row->fields[i], r);
    if (r->action == HF_MERGE)
        merge_add(e, r->merge.value);
    if (r->action == HF_BEGIN && r->begin.fingerprint) {
        hf_json_name(&e->json, "fingerprint");
        hf_json_hex(&e->json, "", hf_mem(r->begin.fingerprint, HF_DIGEST_SIZE));
    }
    hf_json_object_end(&e->json);
}

/* ---- Calls ---- */

static struct encoding begin(struct hf_client_call *call, const struct hf_call *row,
                             struct hf_error *why)
{
    *call = (struct hf_client_call){ .method = row->method,
                                     .accept = "application/json",
                                     .again = true };
    call->changes = row->role > HF_ROLE_READ && row->method != HF_HTTP_GET;
    *why = (struct hf_error){ HF_OK, "" };
    return (struct encoding){ .call = call, .why = why, .json = { .out = &call->body } };
}

static enum hf_status end(struct encoding *e)
{
    const struct hf_client_call *call = e->call;
    if (e->why->status == HF_OK &&
        (call->target.failed || call->key.failed || call->client.failed || call->body.failed))
        *e->why = (struct hf_error){ HF_NO_MEMORY, "out of memory" };
    if (e->why->status != HF_OK)
        hf_client_call_free(e->call);
    return e->why->status;
}

static enum hf_status no_call(struct hf_client_call *call, struct hf_error *why)
{
    *call = (struct hf_client_call){ .method = HF_HTTP_GET };
    *why = (struct hf_error){ HF_INVALID_REQUEST, "the server's interface has no call for this" };
    return why->status;
}

/* Is the call of the request's action, perhaps by one of its fields? What happened to a key and to
 * a client's number are two calls of one action. */
static bool makes(const struct hf_call *call, const struct hf_request *r)
{
    if (call->kind != HF_CALL_DO)
        return false;
    for (size_t i = 0; i < call->field_count; i++)
        if (call->fields[i].becomes == r->action)
            return true;
    return call->action == r->action &&
           (r->action != HF_GET_TOKEN || (call->param != NULL) == (r->client.size == 0));
}

enum hf_status hf_client_encode(const struct hf_request *r, struct hf_client_call *call,
                                struct hf_error *why)
{
    size_t i = 0;
    while (i < hf_call_count && !makes(&hf_calls[i], r))
        i++;
    if (i == hf_call_count)
        return no_call(call, why);
    const struct hf_call *row = &hf_calls[i];
    bool first = true;
    struct encoding e = begin(call, row, why);
    body_add(&e, row, r);
    target_path(&e, row, hf_action_bytes(r, hf_action_of(r->action)->row_name));
    query_fields(&e, &first, row, r);
    if (r->action == HF_GET_TOKEN && r->client.size > 0) {
        query_text(&e, &first, "client", r->client);
        query_number(&e, &first, "sequence", r->sequence);
    }
    query_tenant(&e, &first, r->tenant);
    if (row->key && r->client.size > 0)
        key_add(&e, "client", r->client, &call->client);
    else if (row->key)
        key_add(&e, "key", r->key, &call->key);
    call->sequence = r->sequence;
    /* A retry of admit is answered with seen, and one of begin with in-progress; a retry of set,
     * record or complete is safe. */
    call->again = r->action != HF_ADMIT && r->action != HF_BEGIN;
    return end(&e);
}

static const struct hf_call *row_of(enum hf_call_kind kind, enum hf_list_kind list)
{
    for (size_t i = 0; i < hf_call_count; i++)
        if (hf_calls[i].kind == kind && hf_calls[i].list == list)
            return &hf_calls[i];
    return NULL;
}

/* A list tells failures apart that a claim shows as one status. */
static const char *claim_status(enum hf_claim_state state)
{
    return state == HF_CLAIM_RETRYABLE ? "retryable" : hf_api_claim_status(state);
}

enum hf_status hf_client_encode_list(const struct hf_query *q, struct hf_client_call *call,
                                     struct hf_error *why)
{
    const struct hf_call *row = row_of(HF_CALL_LIST, q->kind);
    bool first = true;
    if (!row || (q->kind != HF_LIST_HOLDS && q->kind != HF_LIST_CLAIMS))
        return no_call(call, why);
    struct encoding e = begin(call, row, why);
    target_path(&e, row, hf_mem(NULL, 0));
    query_number(&e, &first, "limit", q->limit ? q->limit : 100);
    if (q->cursor != 0)
        query_number(&e, &first, "cursor", q->cursor);
    if (q->state != 0)
        query_text(&e, &first, "state", hf_str(hf_api_hold_state(q->state)));
    query_text(&e, &first, "resource", q->resource);
    query_text(&e, &first, "requester", q->requester);
    query_time(&e, &first, "from", q->from);
    query_time(&e, &first, "to", q->to);
    if (q->claim_state != 0)
        query_text(&e, &first, "status", hf_str(claim_status(q->claim_state)));
    query_text(&e, &first, "prefix", q->prefix);
    query_tenant(&e, &first, q->tenant);
    return end(&e);
}

enum hf_status hf_client_encode_other(enum hf_call_kind kind, struct hf_bytes name,
                                      const char *query, struct hf_client_call *call,
                                      struct hf_error *why)
{
    const struct hf_call *row = row_of(kind, (enum hf_list_kind)0);
    if (!row || row->method != HF_HTTP_GET)
        return no_call(call, why);
    struct encoding e = begin(call, row, why);
    target_path(&e, row, name);
    if (*query) {
        hf_buffer_add_char(&call->target, '?');
        hf_buffer_add_text(&call->target, query);
    }
    return end(&e);
}
