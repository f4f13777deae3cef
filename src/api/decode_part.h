/* decode_part.h: what the decoders of bodies, lines and queries share. Private to src/api. */
#ifndef HF_API_DECODE_PART_H
#define HF_API_DECODE_PART_H

#include "api/decode.h"
#include "json/reader.h"

/* The received value of one field; all zero if it is missing. */
struct hf_got {
    bool given;
    bool flawed;                 /* missing, or not what the field takes: see hf_decode_flaw */
    bool flag;                   /* FLAG */
    uint64_t number;             /* NUMBER; CHOICE: its index; MATCH: the number of steps */
    int64_t ms;                  /* DURATION, TIME */
    struct hf_bytes text;        /* TEXT; JSON: stored, or canonical in a begin */
    size_t at, end;              /* JSON of a merge: its position in the text */
    uint8_t match[HF_MATCH_MAX]; /* MATCH: the steps */
};

struct hf_decoding {
    const struct hf_call *call;
    struct hf_api_fault *why; /* borrowed */
    bool line;                /* a line of a bulk request: op, key and parameter are members too */
    const char *param;        /* name of the path's parameter: "id", "guard", ... */
    bool param_flawed;        /* it is in `flaws` */
    struct hf_reader r;       /* the body or the line; all decoders share its arena */
    struct hf_got got[HF_CALL_FIELDS_MAX];
    /* What is wrong with the parameters, of a call with a key. */
    struct hf_flaw flaws[HF_CALL_FIELDS_MAX + HF_CALL_PARAMS];
    size_t flaw_count;
    struct hf_api_fault flaw_why; /* of the first */
};

/* The key in the Idempotency-Key field, if there is one. */
enum hf_status hf_decode_key(const struct hf_api_input *in, struct hf_arena *arena,
                             struct hf_bytes *key, struct hf_api_fault *why);
/* Set the reason. Always HF_INVALID_REQUEST. */
enum hf_status hf_decode_refuse(struct hf_api_fault *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Set the reason why the reader failed at `what`. HF_INVALID_REQUEST or HF_NO_MEMORY. */
enum hf_status hf_decode_failed(struct hf_decoding *d, const char *what);
/* A parameter is missing (`sent` is empty), or the call does not take the JSON that was sent.
 * d->why says what is wrong. A call with a key remembers it: HF_OK, with a flaw. Others refuse it:
 * HF_INVALID_REQUEST. at: the offset of the parameter in struct hf_request, or 0. */
enum hf_status hf_decode_flaw(struct hf_decoding *d, const char *name, uint16_t at,
                              struct hf_bytes sent);
/* The same for the value at `place`, which the reader has refused. HF_INVALID_REQUEST too if it is
 * no JSON; HF_NO_MEMORY. */
enum hf_status hf_decode_flawed(struct hf_decoding *d, const char *name, uint16_t at,
                                const struct hf_reader_place *place);
/* The same for text that was not JSON. */
enum hf_status hf_decode_flaw_text(struct hf_decoding *d, const char *name, uint16_t at,
                                   struct hf_bytes text);
/* Read a whole number, also if it is written as 1.0 or 1e0. */
bool hf_decode_whole(struct hf_reader *r, uint64_t *number);
/* Check that a name is UTF-8 without NUL. The core checks its length. */
enum hf_status hf_decode_name(struct hf_api_fault *why, const char *what, struct hf_bytes name);

/* The index of `name` among the fields, or -1. */
int hf_decode_field_of(const struct hf_call *call, struct hf_bytes name);
/* The index of `word` in "a|b|c", or -1. */
int hf_decode_choice(const char *choices, struct hf_bytes word);
/* A description of what the field expects: "one of open, closed". */
struct hf_decode_words {
    char text[128];
};
struct hf_decode_words hf_decode_expected(const struct hf_call_field *field);
/* The value of the field with this name, which must be a field of the call. */
const struct hf_got *hf_decode_got(const struct hf_decoding *d, const char *name);
/* Read the value of field `index` into d->got. */
enum hf_status hf_decode_field(struct hf_decoding *d, size_t index);
/* Refuse a member or a query parameter that the call does not have. count: fields that it has
 * there. */
enum hf_status hf_decode_unknown(struct hf_decoding *d, const char *what, struct hf_bytes name,
                                 size_t count);
/* A required field that is missing is a flaw. */
enum hf_status hf_decode_complete(struct hf_decoding *d);

/* Store the values in `out`, a request or a query, at the offsets of the fields. */
void hf_decode_put(const struct hf_decoding *d, void *out);

/* Fill the request from d->got and `param`, the path's parameter or the member of a line. `out` has
 * its action and tenant, and its key unless that is the parameter. */
enum hf_status hf_decode_request(struct hf_decoding *d, struct hf_bytes param,
                                 struct hf_request *out);
/* Decode the value of a merge. out: in the arena. */
enum hf_status hf_decode_value(struct hf_decoding *d, const struct hf_value **out);

/* Read a query into d->got. It may have the first `count` fields of the call. */
enum hf_status hf_decode_query(struct hf_decoding *d, struct hf_bytes query, size_t count);

#endif
