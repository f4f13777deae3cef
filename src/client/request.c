/* From a request of the library to a call of the interface: the other direction of api/decode. */
#include "api/encode.h"
#include "base/text.h"
#include "client/client.h"
#include "http/octet.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void hf_client_call_free(struct hf_client_call *call)
{
    hf_buffer_free(&call->target);
    hf_buffer_free(&call->key);
    hf_buffer_free(&call->body);
}

/* A call that is being made. */
struct encoding {
    struct hf_client_call *call;
    struct hf_error *why;
    struct hf_json json; /* over the body */
};

__attribute__((format(printf, 2, 3))) static void refuse(struct encoding *e, const char *format, ...)
{
    va_list args;
    if (e->why->status != HF_OK)
        return;
    va_start(args, format);
    vsnprintf(e->why->text, sizeof e->why->text, format, args);
    va_end(args);
    e->why->status = HF_INVALID_REQUEST;
}

/* JSON and paths are UTF-8. Replacing what is not would make another name of it. */
static void text_check(struct encoding *e, const char *what, struct hf_bytes text)
{
    if (!hf_utf8_valid(text))
        refuse(e, "%s is not UTF-8, and only UTF-8 can be sent to a server", what);
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

/* The path of the row, with `name` where it has a part in braces. */
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

/* 0 is no bound. Milliseconds are exact; before 1970, only the other form has them. */
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

/* ---- Keys ---- */

/* As a string of RFC 8941, which keeps blanks at both ends and quotes in it. */
static void key_add(struct encoding *e, struct hf_bytes key)
{
    const unsigned char *p = key.data;
    struct hf_buffer *out = &e->call->key;
    hf_buffer_add_char(out, '"');
    for (size_t i = 0; i < key.size; i++) {
        if (p[i] < 0x20 || p[i] > 0x7e) {
            refuse(e, "the key has bytes that are not printable ASCII, and a field of HTTP cannot carry "
                      "others; give "
                      "one without them, such as a UUID");
            return;
        }
        if (p[i] == '"' || p[i] == '\\')
            hf_buffer_add_char(out, '\\');
        hf_buffer_add_char(out, (char)p[i]);
    }
    hf_buffer_add_char(out, '"');
}

/* ---- Bodies ---- */

/* A member that is text. */
#define ADD_TEXT(e, name, text)               \
    do {                                      \
        text_check((e), "the " name, (text)); \
        hf_json_name(&(e)->json, name);       \
        hf_json_bytes(&(e)->json, (text));    \
    } while (0)

static void place_body(struct encoding *e, const struct hf_request *r)
{
    ADD_TEXT(e, "resource", r->place_hold.resource);
    ADD_TEXT(e, "requester", r->place_hold.requester);
    hf_json_name(&e->json, "duration");
    hf_json_duration(&e->json, r->place_hold.duration_ms);
    if (r->place_hold.fence != 0) {
        hf_json_name(&e->json, "fence");
        hf_json_uint(&e->json, r->place_hold.fence);
    }
}

static void resource_body(struct encoding *e, const struct hf_request *r)
{
    if (r->set_resource.capacity != 0) {
        hf_json_name(&e->json, "capacity");
        hf_json_uint(&e->json, r->set_resource.capacity);
    }
    if (r->set_resource.open != HF_LEAVE) {
        hf_json_name(&e->json, "open");
        hf_json_bool(&e->json, r->set_resource.open == HF_SET_OPEN);
    }
}

static void guard_body(struct encoding *e, const struct hf_request *r)
{
    struct hf_json *j = &e->json;
    hf_json_name(j, "window");
    hf_json_duration(j, r->set_guard.window_ms);
    if (r->set_guard.match_count > 0) {
        hf_json_name(j, "match");
        hf_json_array(j);
        for (uint32_t i = 0; i < r->set_guard.match_count && i < HF_MATCH_MAX; i++)
            hf_json_text(j, hf_api_match(r->set_guard.match[i]));
        hf_json_array_end(j);
    }
    hf_json_name(j, "on_unavailable");
    hf_json_text(j, hf_api_unavailable(r->set_guard.on_unavailable));
    hf_json_name(j, "durable");
    hf_json_bool(j, !r->set_guard.volatile_only);
}

static void identity_body(struct encoding *e, const struct hf_request *r)
{
    ADD_TEXT(e, "identity", r->identity.identity);
    if (r->identity.has_result && r->action != HF_CHECK)
        ADD_TEXT(e, "result", r->identity.result);
}

/* The body, and what stands in the path. */
static struct hf_bytes body_add(struct encoding *e, const struct hf_request *r)
{
    switch (r->action) {
    case HF_PLACE_HOLD: place_body(e, r); return hf_mem(NULL, 0);
    case HF_SET_RESOURCE: resource_body(e, r); return r->set_resource.name;
    case HF_SET_GUARD: guard_body(e, r); return r->set_guard.name;
    case HF_CHECK:
    case HF_RECORD:
    case HF_ADMIT: identity_body(e, r); return r->identity.guard;
    case HF_CONFIRM:
    case HF_RELEASE:
    case HF_EXPIRE:
    case HF_REVERSE:
    case HF_GET_HOLD: return r->hold.id;
    case HF_GET_TOKEN: return r->key;
    default: return r->get.name;
    }
}

/* ---- Calls ---- */

static struct encoding begin(struct hf_client_call *call, const struct hf_call *row, struct hf_error *why)
{
    *call = (struct hf_client_call){ .method = row->method, .accept = "application/json", .again = true };
    call->changes = row->role > HF_ROLE_READ && row->method != HF_HTTP_GET;
    *why = (struct hf_error){ HF_OK, "" };
    return (struct encoding){ .call = call, .why = why, .json = { .out = &call->body } };
}

static enum hf_status end(struct encoding *e)
{
    const struct hf_client_call *call = e->call;
    if (e->why->status == HF_OK && (call->target.failed || call->key.failed || call->body.failed))
        *e->why = (struct hf_error){ HF_NO_MEMORY, "there is not enough memory to ask the server" };
    if (e->why->status != HF_OK)
        hf_client_call_free(e->call);
    return e->why->status;
}

static enum hf_status no_call(struct hf_client_call *call, struct hf_error *why)
{
    *call = (struct hf_client_call){ .method = HF_HTTP_GET };
    *why = (struct hf_error){ HF_INVALID_REQUEST, "a server has no call for this" };
    return why->status;
}

enum hf_status hf_client_encode(const struct hf_request *r, struct hf_client_call *call, struct hf_error *why)
{
    size_t i = 0;
    while (i < hf_call_count && (hf_calls[i].kind != HF_CALL_DO || hf_calls[i].action != r->action))
        i++;
    if (i == hf_call_count)
        return no_call(call, why);
    const struct hf_call *row = &hf_calls[i];
    struct encoding e = begin(call, row, why);
    bool has_body = row->field_count > 0 && hf_call_has_body(row);
    if (has_body)
        hf_json_object(&e.json);
    target_path(&e, row, body_add(&e, r));
    if (has_body)
        hf_json_object_end(&e.json);
    if (row->key)
        key_add(&e, r->key);
    call->again = r->action !=
                  HF_ADMIT; /* twice would be answered with seen; setting and recording twice is like once */
    return end(&e);
}

static const struct hf_call *row_of(enum hf_call_kind kind, enum hf_list_kind list)
{
    for (size_t i = 0; i < hf_call_count; i++)
        if (hf_calls[i].kind == kind && hf_calls[i].list == list)
            return &hf_calls[i];
    return NULL;
}

enum hf_status hf_client_encode_list(const struct hf_query *q, struct hf_client_call *call,
                                     struct hf_error *why)
{
    const struct hf_call *row = q->kind == HF_LIST_HOLDS ? row_of(HF_CALL_LIST, HF_LIST_HOLDS) : NULL;
    bool first = true;
    if (!row)
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
    return end(&e);
}

enum hf_status hf_client_encode_other(enum hf_call_kind kind, struct hf_bytes name, const char *query,
                                      struct hf_client_call *call, struct hf_error *why)
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
