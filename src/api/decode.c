/* Decode one request: its key, its path and its body. */
#include "api/decode.h"

#include "api/decode_part.h"
#include "base/bytes.h"
#include "base/text.h"
#include "core/action.h"

#include <stddef.h>

/* ---- The key ---- */

static bool is_bare(struct hf_bytes field)
{
    return field.size == 0 || *(const char *)field.data != '"';
}

/* Two headers that a proxy has merged into one are not a key. */
static bool may_be_two(struct hf_bytes field)
{
    return is_bare(field) && field.size > 0 && memchr(field.data, ',', field.size);
}

/* HF_INVALID_REQUEST: a malformed string, or a bare key with a comma. A string is one of RFC 8941,
 * and may have bytes above 0x7F too, as a bare key may. */
static enum hf_status key_read(struct hf_bytes field, struct hf_arena *arena, struct hf_bytes *key)
{
    const unsigned char *p = field.data;
    if (may_be_two(field))
        return HF_INVALID_REQUEST;
    if (is_bare(field)) {
        *key = field;
        return HF_OK;
    }
    if (field.size < 2 || p[field.size - 1] != '"')
        return HF_INVALID_REQUEST;
    size_t end = field.size - 1, escapes = 0;
    for (size_t i = 1; i < end; i++) {
        if (p[i] < 0x20 || p[i] == 0x7f || p[i] == '"')
            return HF_INVALID_REQUEST;
        if (p[i] != '\\')
            continue;
        if (++i == end || (p[i] != '"' && p[i] != '\\'))
            return HF_INVALID_REQUEST;
        escapes++;
    }
    *key = hf_mem(p + 1, end - 1);
    if (escapes == 0)
        return HF_OK;
    unsigned char *data = hf_arena_take(arena, key->size);
    if (!data)
        return HF_NO_MEMORY;
    size_t size = 0;
    for (size_t i = 1; i < end; i++) {
        i += p[i] == '\\';
        data[size++] = p[i];
    }
    *key = hf_mem(data, size);
    return HF_OK;
}

bool hf_api_key(struct hf_bytes field, struct hf_arena *arena, struct hf_bytes *key)
{
    return key_read(field, arena, key) == HF_OK;
}

enum hf_status hf_decode_key(const struct hf_api_input *in, struct hf_arena *arena,
                             struct hf_bytes *key, struct hf_api_fault *why)
{
    *key = hf_mem(NULL, 0);
    enum hf_status status = in->has_key ? key_read(in->key_field, arena, key) : HF_OK;
    if (status == HF_INVALID_REQUEST && may_be_two(in->key_field))
        (void)hf_decode_refuse(
            why, "Idempotency-Key: a key with a comma must be in quotes, because a proxy may have "
                 "merged two headers. Send one key, or write it as \"a,b\".");
    else if (status == HF_INVALID_REQUEST)
        (void)hf_decode_refuse(
            why, "Idempotency-Key: expected a bare key, or a string in quotes with only \\\" and "
                 "\\\\ escaped and nothing after it.");
    return status;
}

/* The name and the number of a numbered client, which replace the key. out: its client and
 * sequence. */
static enum hf_status header_number(const struct hf_api_input *in, struct hf_arena *arena,
                                    struct hf_request *out, struct hf_api_fault *why)
{
    if (in->has_client != in->has_sequence)
        return hf_decode_refuse(why, "Holdfast-Client, Holdfast-Sequence: expected both or none.");
    if (in->has_key)
        return hf_decode_refuse(why, "Idempotency-Key, Holdfast-Client: expected one of the two. A "
                                     "numbered client sends its number in place of a key.");
    enum hf_status status = key_read(in->client_field, arena, &out->client);
    if (status == HF_NO_MEMORY)
        return status;
    if (status != HF_OK || out->client.size == 0)
        return hf_decode_refuse(
            why, "Holdfast-Client: expected a bare name, or a string in quotes with only \\\" and "
                 "\\\\ escaped and nothing after it.");
    if (!hf_number_parse(in->sequence_field, &out->sequence))
        return hf_decode_refuse(why, "Holdfast-Sequence: expected a whole number from 1.");
    return hf_decode_name(why, "Holdfast-Client", out->client);
}

/* A call that needs no key ignores it, but refuses a malformed one too. key: out, from the
 * header. */
static enum hf_status header_key(const struct hf_call *call, const struct hf_api_input *in,
                                 struct hf_arena *arena, struct hf_bytes *key,
                                 struct hf_api_fault *why)
{
    bool numbered = in->has_client || in->has_sequence;
    if (!in->has_key && call->key && !numbered)
        return hf_decode_refuse(
            why, "Idempotency-Key: this header is missing. Send a key that is the same for every "
                 "attempt and new for every new request.");
    return hf_decode_key(in, arena, key, why);
}

/* A claim's key is in its body or its path. A header with another key is refused, because the
 * caller would later look for the claim under the wrong key. A begin without a key in its body has
 * the key of the header. */
static enum hf_status claim_key(const struct hf_api_input *in, struct hf_bytes key,
                                const struct hf_request *r, struct hf_api_fault *why)
{
    const struct hf_action_info *action = hf_action_of(r->action);
    bool claims = action->row == HF_ROW_CLAIM && !action->reads;
    if (claims && in->has_client)
        return hf_decode_refuse(why,
                                "Holdfast-Client: a claim has a key of its own, which is in "
                                "the %s. Leave out the header.",
                                r->action == HF_BEGIN ? "body" : "path");
    if (!in->has_key || !claims || hf_bytes_equal(key, r->key))
        return HF_OK;
    return hf_decode_refuse(
        why,
        "Idempotency-Key: this header is not the claim's key, which is in the %s. Leave out the "
        "header, or send the same key in both.",
        r->action == HF_BEGIN ? "body" : "path");
}

/* ---- From fields to the request ---- */

static int hex_digit(char c)
{
    int low = c | 0x20;
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

bool hf_api_digest(struct hf_bytes text, uint8_t out[HF_DIGEST_SIZE])
{
    const char *p = text.data;
    if (text.size != (size_t)2 * HF_DIGEST_SIZE)
        return false;
    for (size_t i = 0; i < HF_DIGEST_SIZE; i++) {
        int high = hex_digit(p[2 * i]), low = hex_digit(p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static enum hf_status fingerprint_put(struct hf_decoding *d, struct hf_bytes text,
                                      struct hf_request *out)
{
    if (text.size < 1 || text.size > 1024)
        return hf_decode_refuse(d->why, "fingerprint: expected 1 to 1024 bytes, got %zu.",
                                text.size);
    uint8_t *digest = hf_arena_take(d->r.arena, HF_DIGEST_SIZE);
    if (!digest)
        return HF_NO_MEMORY;
    if (hf_api_digest(text, digest))
        out->begin.fingerprint = digest;
    else
        out->begin.payload = text;
    return HF_OK;
}

static enum hf_status begin_put(struct hf_decoding *d, struct hf_request *out)
{
    const struct hf_got *fingerprint = hf_decode_got(d, "fingerprint");
    if (!hf_decode_got(d, "key")->given && out->key.size == 0)
        return hf_decode_refuse(d->why, "key: it is missing. Send a key that is the same for every "
                                        "attempt and new for every new piece of work.");
    if (fingerprint->given == hf_decode_got(d, "payload")->given)
        return hf_decode_refuse(d->why, "fingerprint, payload: expected exactly one of the two.");
    return fingerprint->given ? fingerprint_put(d, fingerprint->text, out) : HF_OK;
}

/* Fields that the table cannot describe. */
static enum hf_status rest_put(struct hf_decoding *d, struct hf_request *out)
{
    switch (out->action) {
    case HF_BEGIN: return begin_put(d, out);
    case HF_MERGE: return hf_decode_value(d, &out->merge.value);
    default: return HF_OK;
    }
}

/* Store the parameter of the path. A key may be any bytes. */
static enum hf_status param_put(struct hf_decoding *d, struct hf_bytes param,
                                struct hf_request *out)
{
    uint16_t at = hf_action_of(out->action)->row_name;
    bool is_key = at == offsetof(struct hf_request, key);
    enum hf_status status = is_key ? HF_OK : hf_decode_name(d->why, d->param, param);
    if (status == HF_OK)
        *(struct hf_bytes *)(void *)((char *)out + at) = param;
    else if (hf_utf8_valid(param))
        return hf_decode_flaw_text(d, d->call->param, at, param);
    return status;
}

/* Keep what is wrong with the parameters for the core, which remembers the refusal. */
static enum hf_status invalid_put(struct hf_decoding *d, struct hf_request *out)
{
    static const char hint[] = " The answer is bound to the key: correct it and use a new key.";
    size_t why = strlen(d->flaw_why.detail), count = d->flaw_count;
    size_t list = count * sizeof *d->flaws;
    struct hf_invalid *invalid =
        hf_arena_take(d->r.arena, sizeof *invalid + list + why + sizeof hint);
    if (!invalid)
        return HF_NO_MEMORY;
    struct hf_flaw *flaws = (struct hf_flaw *)(invalid + 1);
    char *text = (char *)flaws + list;
    memcpy(flaws, d->flaws, list);
    memcpy(text, d->flaw_why.detail, why);
    memcpy(text + why, hint, sizeof hint);
    *invalid = (struct hf_invalid){ flaws, count, hf_mem(text, why + sizeof hint - 1) };
    out->invalid = invalid;
    return HF_OK;
}

enum hf_status hf_decode_request(struct hf_decoding *d, struct hf_bytes param,
                                 struct hf_request *out)
{
    enum hf_status status = HF_OK;
    if (d->call->param && !d->param_flawed)
        status = param_put(d, param, out);
    if (status != HF_OK)
        return status;
    hf_decode_put(d, out);
    return d->flaw_count > 0 ? invalid_put(d, out) : rest_put(d, out);
}

/* ---- The body ---- */

static enum hf_status body_read(struct hf_decoding *d)
{
    struct hf_bytes name;
    if (hf_reader_object(&d->r)) {
        while (hf_reader_member(&d->r, &name)) {
            int index = hf_decode_field_of(d->call, name);
            enum hf_status status = index < 0
                                        ? hf_decode_unknown(d, "member", name, d->call->field_count)
                                        : hf_decode_field(d, (size_t)index);
            if (status != HF_OK)
                return status;
        }
    }
    if (!hf_reader_end(&d->r))
        return hf_decode_failed(d, "body");
    return hf_decode_complete(d);
}

static enum hf_status body_check(struct hf_decoding *d)
{
    bool bare = !hf_call_has_body(d->call);
    if (bare && d->r.text.size > 0)
        return hf_decode_refuse(d->why, "body: expected none, because this call has no body.");
    if (bare)
        return hf_decode_complete(d); /* its fields are in the query */
    if (d->r.text.size == 0 && !hf_call_needs_body(d->call))
        return HF_OK;
    return body_read(d);
}

enum hf_status hf_api_decode(const struct hf_call *call, const struct hf_api_input *in,
                             struct hf_arena *arena, struct hf_request *out,
                             struct hf_api_fault *why)
{
    struct hf_decoding d = {
        .call = call, .why = why, .param = "path", .r = { .text = in->body, .arena = arena }
    };
    *out = (struct hf_request){ .action = call->action, .tenant = in->tenant };
    struct hf_request number = { .sequence = 0 };
    struct hf_bytes key;
    enum hf_status status = header_key(call, in, arena, &key, why);
    if (call->key || call->action == HF_BEGIN) /* a begin may have its key in the body instead */
        out->key = key;
    if (status == HF_OK && (in->has_client || in->has_sequence))
        status = header_number(in, arena, &number, why);
    if (call->key) {
        out->client = number.client;
        out->sequence = number.sequence;
    }
    if (status == HF_OK)
        status = hf_decode_query(&d, in->query, hf_call_has_body(call) ? 0 : call->field_count);
    if (status == HF_OK)
        status = body_check(&d);
    if (status == HF_OK)
        status = hf_decode_request(&d, in->params[0], out);
    return status == HF_OK ? claim_key(in, key, out, why) : status;
}
