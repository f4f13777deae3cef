/* head.h: the head of an HTTP/1.1 request, read strictly.
 *
 * The parser borrows: every slice points into the caller's buffer. It has no state of its own,
 * never allocates, and gives the same result however the bytes were split by the network. It
 * refuses what two programs could understand differently: a bare LF, a folded line, white space
 * before a colon, NUL and other control bytes, both lengths, a length given twice, a transfer
 * coding other than exactly "chunked", a missing or repeated Host. */
#ifndef HF_HTTP_HEAD_H
#define HF_HTTP_HEAD_H

#include "holdfast.h"

#define HF_HTTP_HEAD_MAX 16384 /* bytes of request line and fields, the empty line included */
#define HF_HTTP_FIELDS_MAX 64
#define HF_HTTP_EMPTY_MAX 4 /* empty lines before the request line; they belong to the head */

enum hf_http_method {
    HF_HTTP_OTHER,
    HF_HTTP_GET,
    HF_HTTP_HEAD,
    HF_HTTP_POST,
    HF_HTTP_PUT,
    HF_HTTP_DELETE,
    HF_HTTP_OPTIONS
};

/* The fields that the server uses. Each may appear once; a second one is refused (also of
 * Idempotency-Key: the interface says so). Their values are ASCII without control bytes except tab.
 * Other fields are checked for form and dropped, and may have bytes from 0x80 on in their
 * values. */
enum hf_http_field {
    HF_FIELD_HOST, /* present in HTTP/1.1, valid, not empty */
    HF_FIELD_AUTHORIZATION,
    HF_FIELD_IDEMPOTENCY_KEY,
    HF_FIELD_CLIENT, /* Holdfast-Client, and below Holdfast-Sequence: of a numbered client */
    HF_FIELD_SEQUENCE,
    HF_FIELD_CONTENT_TYPE,
    HF_FIELD_ACCEPT, /* may be repeated: the first one counts */
    HF_FIELD_ORIGIN,
    HF_FIELD_SEC_FETCH_SITE, /* sent by browsers: the origin of the page */
    HF_FIELD_CONTENT_ENCODING,
    HF_FIELD_COUNT
};

struct hf_http_head {
    enum hf_http_method method;
    struct hf_bytes method_name;
    /* as sent, begins with '/', not yet percent-decoded, without the query; RFC 3986 allows every
     * byte of it there, and every % has its two digits */
    struct hf_bytes path;
    struct hf_bytes query; /* after the first '?', or empty; valid as the path is */
    bool has[HF_FIELD_COUNT];
    struct hf_bytes field[HF_FIELD_COUNT]; /* without white space at both ends */
    bool chunked;                          /* Transfer-Encoding: chunked */
    uint64_t length;                       /* Content-Length, or 0 */
    bool has_length;
    bool keep_alive;      /* HTTP/1.1 and no "Connection: close" */
    bool expect_continue; /* never with HTTP/1.0 */
    size_t size;          /* bytes of the head in the buffer, the empty line included */
};

enum hf_http_parse { HF_HTTP_MORE, HF_HTTP_DONE, HF_HTTP_BAD };

/* Why a request is refused. After any of these the connection is closed. */
struct hf_http_refusal {
    unsigned status;    /* 400, 413, 417, 431, 501, 505 */
    const char *code;   /* "invalid-request", "head-too-large", ...; static */
    const char *detail; /* what is wrong and what to do; static */
};

/* Parse a head from the first `size` bytes of `data`. data: borrowed; each call may have more bytes
 * at its end, and the slices of `out` point into it. scanned: in and out, 0 for a new head; how
 * much of `data` was already scanned without a result, so that a slow sender costs no more than a
 * fast one. out: filled when done. why: filled when bad. HF_HTTP_MORE: no error so far, but the
 * empty line has not arrived. An error is refused at the latest when the head is complete or
 * exceeds its limit, and an error in the request line when that line is complete. The first wrong
 * byte decides, so the kind of an error never depends on the splitting. A head without an error
 * that does not end within HF_HTTP_HEAD_MAX is 431. Empty lines (CR LF) before the request line are
 * skipped, at most HF_HTTP_EMPTY_MAX of them, as RFC 9112 requires.
 *
 * Status and code: 400 invalid-request; 413 body-too-large (a Content-Length that does not fit into
 * 64 bits); 417 expectation-failed; 431 head-too-large or too-many-headers; 501 not-implemented (a
 * transfer coding); 505 version-not-supported. */
enum hf_http_parse hf_http_head_parse(const char *data, size_t size, size_t *scanned,
                                      struct hf_http_head *out, struct hf_http_refusal *why);

/* Decode %XX of `in` into `out` (room for in.size; may be the same memory as `in`). False for an
 * incomplete escape, which a parsed path or query never has. '+' stays '+', and %00 becomes a NUL:
 * names are checked elsewhere. */
bool hf_http_unescape(struct hf_bytes in, char *out, size_t *out_size);

/* Take the next name=value of a query; both still encoded. False at the end. An empty part is
 * skipped; a part without '=' is a name with an empty value. */
bool hf_http_query_next(struct hf_bytes *rest, struct hf_bytes *name, struct hf_bytes *value);

#endif
