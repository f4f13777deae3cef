/* decode_part.h: what the decoders of bodies, lines and queries share. Private to src/api. */
#ifndef HF_API_DECODE_PART_H
#define HF_API_DECODE_PART_H

#include "api/decode.h"
#include "json/reader.h"

/* What came for one field; all zero if nothing came. */
struct hf_got {
    bool given;
    bool flag;                   /* FLAG */
    uint64_t number;             /* NUMBER; CHOICE: which one; MATCH: how many steps */
    int64_t ms;                  /* DURATION, TIME */
    struct hf_bytes text;        /* TEXT; JSON: stored, or canonical in a begin */
    size_t at, end;              /* JSON of a merge: where it stands in the text */
    uint8_t match[HF_MATCH_MAX]; /* MATCH: which ones */
};

struct hf_decoding {
    const struct hf_call *call;
    struct hf_api_fault *why; /* borrowed */
    bool line;                /* a line of a batch: op, key and parameter are members too */
    const char *param;  /* what the parameter of the path is called here: "id", "guard", ... */
    struct hf_reader r; /* the body or the line; its arena is everybody's */
    struct hf_got got[HF_CALL_FIELDS_MAX];
};

/* The key in the Idempotency-Key field, if there is one. */
enum hf_status hf_decode_key(const struct hf_api_input *in, struct hf_arena *arena,
                             struct hf_bytes *key, struct hf_api_fault *why);
/* Say why; always HF_INVALID_REQUEST. */
enum hf_status hf_decode_refuse(struct hf_api_fault *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Say why the reader has failed at `what`: HF_INVALID_REQUEST or HF_NO_MEMORY. */
enum hf_status hf_decode_failed(struct hf_decoding *d, const char *what);
/* Names are UTF-8 without NUL. How long they may be, the core decides. */
enum hf_status hf_decode_name(struct hf_api_fault *why, const char *what, struct hf_bytes name);

/* The index of `name` among the fields, or -1. */
int hf_decode_field_of(const struct hf_call *call, struct hf_bytes name);
/* The index of `word` in "a|b|c", or -1. */
int hf_decode_choice(const char *choices, struct hf_bytes word);
/* What the field expects, in words: "one of open, closed". */
struct hf_decode_words {
    char text[128];
};
struct hf_decode_words hf_decode_expected(const struct hf_call_field *field);
/* What came for the field of this name, which the call has. */
const struct hf_got *hf_decode_got(const struct hf_decoding *d, const char *name);
/* Read the value of field `index` into d->got. */
enum hf_status hf_decode_field(struct hf_decoding *d, size_t index);
/* Refuse a member, or a parameter of the query, that the call does not have; it has `count` fields
 * there. */
enum hf_status hf_decode_unknown(struct hf_decoding *d, const char *what, struct hf_bytes name,
                                 size_t count);
/* Refuse if a field is missing that is required. */
enum hf_status hf_decode_complete(struct hf_decoding *d);

/* Put what came into `out`, a request or a query, where the fields say. */
enum hf_status hf_decode_put(const struct hf_decoding *d, void *out);

/* Make the request from d->got and from what stands in the path (or is given instead). `out` has
 * action and tenant, and its key where that is not the parameter. */
enum hf_status hf_decode_request(struct hf_decoding *d, struct hf_bytes param,
                                 struct hf_request *out);
/* The value of a merge; out: in the arena. */
enum hf_status hf_decode_value(struct hf_decoding *d, const struct hf_value **out);

/* Read a query into d->got: `count` fields of the call are allowed in it. */
enum hf_status hf_decode_query(struct hf_decoding *d, struct hf_bytes query, size_t count);

#endif
