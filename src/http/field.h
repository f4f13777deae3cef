/* field.h: the fields of a head that the server uses. Part of the head's parser: see head.h. */
#ifndef HF_HTTP_FIELD_H
#define HF_HTTP_FIELD_H

#include "http/head.h"

/* A head that is being parsed. */
struct hf_http_reader {
    const unsigned char *p, *end; /* the rest of the buffer */
    struct hf_http_head *out;
    struct hf_http_refusal *why;
    unsigned seen; /* a bit for each field that the server uses */
    bool old;      /* HTTP/1.0; known before the first field */
    bool close;    /* Connection: close */
};

/* Fill in r->why and return HF_HTTP_BAD. code, detail: static. */
enum hf_http_parse hf_http_refuse(struct hf_http_reader *r, unsigned status, const char *code,
                                  const char *detail);
/* The same with 400, invalid-request. */
enum hf_http_parse hf_http_bad(struct hf_http_reader *r, const char *detail);

/* Check a field and keep what is needed of it in r->out. HF_HTTP_DONE or HF_HTTP_BAD. name: a
 * token. value: without control bytes except tab; blanks at its end are removed here. */
enum hf_http_parse hf_http_field_take(struct hf_http_reader *r, struct hf_bytes name,
                                      struct hf_bytes value);

#endif
