/* decode.h: from JSON, path and key to a request of the library.
 *
 * What is no request (malformed JSON, invalid UTF-8, bytes after the end) and what has unknown or
 * repeated members is refused here and not stored. A request that can be read and has a key goes to
 * the core, which stores the refusal with the key: also if a member is missing, null, of the wrong
 * type or out of range (hf_request.invalid), or breaks a rule (a duration of zero or less, a name
 * too long). Without a key, nothing is stored, and all of it is refused here. */
#ifndef HF_API_DECODE_H
#define HF_API_DECODE_H

#include "api/call.h"
#include "base/arena.h"

/* Everything is borrowed and must live as long as the request that is decoded from it. */
struct hf_api_input {
    struct hf_bytes tenant;
    bool all_tenants; /* a list of claims: of every tenant; `tenant` is empty */
    struct hf_bytes params[HF_CALL_PARAMS]; /* percent-decoded */
    bool has_key;
    /* the value of Idempotency-Key, as sent: bare, or an RFC 8941 string */
    struct hf_bytes key_field;
    bool has_client, has_sequence;
    /* the values of Holdfast-Client (in the form of a key) and Holdfast-Sequence, as sent */
    struct hf_bytes client_field, sequence_field;
    struct hf_bytes query; /* as sent */
    struct hf_bytes body;
};

struct hf_api_fault {
    char detail[256]; /* what is wrong, where, and what to do */
};

/* Decode the request of a HF_CALL_DO; `invalid` is set in one that the core is to refuse. arena:
 * gets what cannot be borrowed from the input. HF_OK; HF_INVALID_REQUEST with `why` filled;
 * HF_NO_MEMORY. */
enum hf_status hf_api_decode(const struct hf_call *call, const struct hf_api_input *in,
                             struct hf_arena *arena, struct hf_request *out,
                             struct hf_api_fault *why);

/* The same for the query of a HF_CALL_LIST. */
enum hf_status hf_api_decode_list(const struct hf_call *call, const struct hf_api_input *in,
                                  struct hf_arena *arena, struct hf_query *out,
                                  struct hf_api_fault *why);

/* What the query of any other GET says; all zero if nothing. */
struct hf_api_wishes {
    unsigned format; /* of an export: 0 is jsonl, 1 is sqlite */
    bool has_head;   /* of an audit: the hash of a batch that must be in the chain */
    uint8_t head[HF_DIGEST_SIZE];
    uint64_t sequence; /* of a trace: the number of a client's request; 0: none */
};

/* The same for the query of any other GET. */
enum hf_status hf_api_decode_other(const struct hf_call *call, const struct hf_api_input *in,
                                   struct hf_arena *arena, struct hf_api_wishes *out,
                                   struct hf_api_fault *why);

/* The same for one line of a bulk request: {"op":"place_hold","key":"k1", ... the call's fields,
 * and `id`, `guard` or `name` for the parameter of the path}. `key` is the Idempotency-Key, or the
 * claim's key. Where a key is required, `client` and `sequence` may replace it; where none is
 * required, it is ignored. line, tenant: as in hf_api_input. call: out, the call that `op` names,
 * or NULL if it is unknown. */
enum hf_status hf_api_decode_line(struct hf_bytes line, struct hf_bytes tenant,
                                  struct hf_arena *arena, struct hf_request *out,
                                  const struct hf_call **call, struct hf_api_fault *why);

/* Read the next value of a register of the type value->type, as an answer has it. value: in and
 * out; borrowed from the text or r->arena. False: r->error says why. */
struct hf_reader;
bool hf_api_value_read(struct hf_reader *r, struct hf_value *value);

/* Read 64 hexadecimal digits. False if `text` is anything else. */
bool hf_api_digest(struct hf_bytes text, uint8_t out[HF_DIGEST_SIZE]);

/* The key in an Idempotency-Key field: bare bytes as they are, or the content of an RFC 8941
 * string. Both may have bytes above 0x7F. key: borrowed from the field or the arena. False if a
 * string is malformed, a bare key has a comma (or there is no memory for a string with escapes). An
 * empty key is accepted here: the core refuses it. */
bool hf_api_key(struct hf_bytes field, struct hf_arena *arena, struct hf_bytes *key);

#endif
