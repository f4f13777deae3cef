/* Queries: the parameters after the question mark. */
#include "api/decode_part.h"
#include "base/bytes.h"
#include "base/text.h"
#include "core/claim.h"

/* Percent-decode a part of a query. Most parts need no decoding. */
static enum hf_status part_decode(struct hf_decoding *d, struct hf_bytes part, struct hf_bytes *out)
{
    size_t size;
    *out = part;
    if (part.size == 0 || !memchr(part.data, '%', part.size))
        return HF_OK;
    char *data = hf_arena_take(d->r.arena, part.size);
    if (!data)
        return HF_NO_MEMORY;
    if (!hf_http_unescape(part, data, &size))
        return hf_decode_refuse(d->why, "query: expected two hexadecimal digits after each %%.");
    *out = hf_mem(data, size);
    return HF_OK;
}

/* Read `text` into d->got, by the type of field `index`. */
static enum hf_status value_read(struct hf_decoding *d, size_t index, struct hf_bytes text)
{
    const struct hf_call_field *field = &d->call->fields[index];
    struct hf_got *got = &d->got[index];
    int choice;
    got->text = text;
    switch (field->type) {
    case HF_TYPE_OF_NUMBER:
        if (!hf_number_parse(text, &got->number))
            return hf_decode_refuse(d->why, "%s: expected a whole number.", field->name);
        return HF_OK;
    case HF_TYPE_OF_TIME:
        if (!hf_time_parse(text, &got->ms))
            return hf_decode_refuse(
                d->why,
                "%s: expected a time such as 2026-11-15T21:39:57Z, a date such as "
                "2026-11-15, or @ and milliseconds since 1970.",
                field->name);
        return HF_OK;
    case HF_TYPE_OF_CHOICE:
        choice = hf_decode_choice(field->choices, text);
        if (choice < 0)
            return hf_decode_refuse(d->why, "%s: expected %s.", field->name,
                                    hf_decode_expected(field).text);
        got->number = (uint64_t)choice;
        return HF_OK;
    default: return hf_decode_name(d->why, field->name, text);
    }
}

static enum hf_status part_read(struct hf_decoding *d, struct hf_bytes name, struct hf_bytes value,
                                size_t count)
{
    enum hf_status status = part_decode(d, name, &name);
    if (status == HF_OK)
        status = part_decode(d, value, &value);
    if (status == HF_OK)
        status = hf_decode_name(d->why, "query", name);
    if (status != HF_OK)
        return status;
    int index = hf_decode_field_of(d->call, name);
    if (index < 0 || (size_t)index >= count)
        return hf_decode_unknown(d, "query parameter", name, count);
    if (d->got[index].given)
        return hf_decode_refuse(d->why, "%s: it is given twice; give it once.",
                                d->call->fields[index].name);
    const struct hf_call_field *field = &d->call->fields[index];
    struct hf_got *got = &d->got[index];
    got->given = true;
    status = value_read(d, (size_t)index, value);
    got->flawed = status != HF_OK;
    if (status != HF_INVALID_REQUEST || !hf_utf8_valid(value))
        return status;
    return hf_decode_flaw_text(d, field->name, field->at, value);
}

enum hf_status hf_decode_query(struct hf_decoding *d, struct hf_bytes query, size_t count)
{
    struct hf_bytes name, value;
    enum hf_status status = HF_OK;
    while (status == HF_OK && query.size > 0 && hf_http_query_next(&query, &name, &value))
        status = part_read(d, name, value, count);
    return status;
}

static enum hf_status no_body(struct hf_decoding *d, const struct hf_api_input *in)
{
    struct hf_bytes key;
    enum hf_status status = hf_decode_key(in, d->r.arena, &key, d->why);
    if (status != HF_OK)
        return status;
    if (in->body.size > 0)
        return hf_decode_refuse(d->why, "body: expected none, because this call has no body.");
    return HF_OK;
}

static enum hf_status limits_put(struct hf_decoding *d, struct hf_query *out)
{
    const struct hf_got *limit = hf_decode_got(d, "limit"), *cursor = hf_decode_got(d, "cursor");
    if (limit->given && (limit->number < 1 || limit->number > HF_LIST_MAX))
        return hf_decode_refuse(d->why, "limit: expected a whole number from 1 to %d.",
                                HF_LIST_MAX);
    if (cursor->text.size > 0 && (!hf_number_parse(cursor->text, &out->cursor) || out->cursor == 0))
        return hf_decode_refuse(
            d->why, "cursor: expected the next_cursor of a page, or nothing for the first page.");
    return HF_OK;
}

enum hf_status hf_api_decode_list(const struct hf_call *call, const struct hf_api_input *in,
                                  struct hf_arena *arena, struct hf_query *out,
                                  struct hf_api_fault *why)
{
    struct hf_decoding d = { .call = call, .why = why, .r = { .arena = arena } };
    *out = (struct hf_query){ .kind = call->list,
                              .tenant = in->tenant,
                              .all_tenants = in->all_tenants };
    enum hf_status status = no_body(&d, in);
    if (status == HF_OK)
        status = hf_decode_query(&d, in->query, call->field_count);
    if (status == HF_OK)
        status = limits_put(&d, out);
    if (status != HF_OK)
        return status;
    hf_decode_put(&d, out);
    if (out->all_tenants && !hf_claim_state_is_open(out->claim_state))
        return hf_decode_refuse(why,
                                "status: the list of all tenants has only claims that are not "
                                "settled: add status=unknown or status=started, or name a tenant, "
                                "such as tenant=acme.");
    /* 0 would mean that no end was given. Nothing happened before 1970 or in its first
     * millisecond. */
    if ((call->list == HF_LIST_HOLDS || call->list == HF_LIST_CLAIMS) &&
        hf_decode_got(&d, "to")->given && out->to <= 0)
        out->to = 1;
    if (call->list == HF_LIST_ENTRIES) {
        out->name = in->params[0];
        status = hf_decode_name(why, "path", out->name);
    }
    return status;
}

enum hf_status hf_api_decode_other(const struct hf_call *call, const struct hf_api_input *in,
                                   struct hf_arena *arena, struct hf_api_wishes *out,
                                   struct hf_api_fault *why)
{
    struct hf_decoding d = { .call = call, .why = why, .r = { .arena = arena } };
    *out = (struct hf_api_wishes){ .format = 0 };
    enum hf_status status = no_body(&d, in);
    if (status == HF_OK)
        status = hf_decode_query(&d, in->query, call->field_count);
    if (status != HF_OK || !d.got[0].given)
        return status;
    const char *name = call->fields[0].name;
    switch (call->fields[0].type) {
    case HF_TYPE_OF_TEXT:
        out->has_head = hf_api_digest(d.got[0].text, out->head);
        return out->has_head ? HF_OK
                             : hf_decode_refuse(
                                   why, "%s: expected the 64 hexadecimal digits of a hash.", name);
    case HF_TYPE_OF_NUMBER:
        out->sequence = d.got[0].number;
        return out->sequence > 0
                   ? HF_OK
                   : hf_decode_refuse(why, "%s: expected a whole number from 1.", name);
    default: out->format = (unsigned)d.got[0].number; return HF_OK;
    }
}
