/* One line of a bulk request: path, header and body as members of one object. */
#include "api/decode_part.h"
#include "base/bytes.h"
#include "core/action.h"

/* The members of a line besides the fields of its call. */
struct extra {
    struct hf_bytes key, client, param;
    bool has_key, has_client, has_param, has_sequence;
    uint64_t sequence;
};

/* Find the call that `op` names. `op` may be anywhere in the line. */
static enum hf_status op_find(struct hf_decoding *d)
{
    struct hf_reader *r = &d->r;
    struct hf_bytes name, op;
    (void)hf_reader_object(r);
    while (hf_reader_member(r, &name) && !hf_bytes_equal(name, hf_str("op")))
        (void)hf_reader_skip(r);
    if (r->failed && !r->no_memory)
        return hf_decode_refuse(
            d->why, "line: %s. Each line must be one JSON object, such as {\"op\":\"check\", ...}.",
            r->error);
    if (r->failed)
        return hf_decode_failed(d, "line");
    if (r->depth == 0)
        return hf_decode_refuse(
            d->why, "op: missing, expected the name of an operation such as \"place_hold\".");
    (void)hf_reader_peek(r);
    size_t at = r->at;
    if (!hf_reader_string(r, &op))
        return hf_decode_failed(d, "op");
    d->call = hf_call_of_op(op);
    if (d->call)
        return HF_OK;
    (void)hf_reader_refuse(
        r, at,
        "place_hold, confirm, release, expire, reverse, check, record, admit, begin, "
        "complete, fail, heartbeat, abandon, merge, write, delete_register or delete_lease");
    return hf_decode_failed(d, "op");
}

static uint16_t param_at(const struct hf_decoding *d)
{
    return hf_action_of(d->call->action)->row_name;
}

/* Read a member that is not a field of the call. */
static enum hf_status extra_read(struct hf_decoding *d, struct hf_bytes name, struct extra *extra)
{
    struct hf_reader *r = &d->r;
    struct hf_reader_place place;
    bool ok;
    hf_reader_here(r, &place);
    if (hf_bytes_equal(name, hf_str("op"))) {
        ok = hf_reader_skip(r);
    } else if (d->param && hf_bytes_equal(name, hf_str(d->param))) {
        extra->has_param = true;
        ok = hf_reader_string(r, &extra->param);
        d->param_flawed = !ok;
        if (!ok)
            return hf_decode_flawed(d, d->param, param_at(d), &place);
    } else if (hf_bytes_equal(name, hf_str("key"))) {
        extra->has_key = true;
        ok = hf_reader_string(r, &extra->key);
    } else if (d->call->key && hf_bytes_equal(name, hf_str("client"))) {
        extra->has_client = true;
        ok = hf_reader_string(r, &extra->client);
    } else if (d->call->key && hf_bytes_equal(name, hf_str("sequence"))) {
        extra->has_sequence = true;
        ok = hf_decode_whole(r, &extra->sequence);
    } else {
        return hf_decode_unknown(d, "member", name, d->call->field_count);
    }
    char what[HF_READER_EXCERPT];
    return ok ? HF_OK : hf_decode_failed(d, hf_reader_excerpt(name, what));
}

static enum hf_status members_read(struct hf_decoding *d, struct extra *extra)
{
    struct hf_bytes name;
    (void)hf_reader_object(&d->r);
    while (hf_reader_member(&d->r, &name)) {
        int index = hf_decode_field_of(d->call, name);
        enum hf_status status =
            index < 0 ? extra_read(d, name, extra) : hf_decode_field(d, (size_t)index);
        if (status != HF_OK)
            return status;
    }
    if (!hf_reader_end(&d->r))
        return hf_decode_failed(d, "line");
    return hf_decode_complete(d);
}

static enum hf_status key_put(struct hf_decoding *d, const struct extra *extra,
                              struct hf_request *out)
{
    if (extra->has_client != extra->has_sequence)
        return hf_decode_refuse(d->why, "client, sequence: expected both or none.");
    if (extra->has_key == extra->has_client)
        return hf_decode_refuse(
            d->why, "key: expected a string, or client and sequence instead, but not both.");
    out->key = extra->key;
    out->client = extra->client;
    out->sequence = extra->sequence;
    return hf_decode_name(d->why, "client", extra->client);
}

enum hf_status hf_api_decode_line(struct hf_bytes line, struct hf_bytes tenant,
                                  struct hf_arena *arena, struct hf_request *out,
                                  const struct hf_call **call, struct hf_api_fault *why)
{
    struct hf_decoding d = { .why = why, .line = true, .r = { .text = line, .arena = arena } };
    struct extra extra = { .has_key = false };
    *out = (struct hf_request){ .tenant = tenant };
    enum hf_status status = op_find(&d);
    *call = d.call;
    if (status != HF_OK)
        return status;
    out->action = d.call->action;
    d.param = d.call->param;
    d.r = (struct hf_reader){ .text = line, .arena = arena };
    status = members_read(&d, &extra);
    if (status == HF_OK && d.param && !extra.has_param) {
        (void)hf_decode_refuse(why, "%s: missing, expected a string.", d.param);
        d.param_flawed = true;
        status = hf_decode_flaw(&d, d.param, param_at(&d), hf_mem(NULL, 0));
    }
    if (status == HF_OK && d.call->key)
        status = key_put(&d, &extra, out);
    return status == HF_OK ? hf_decode_request(&d, extra.param, out) : status;
}
