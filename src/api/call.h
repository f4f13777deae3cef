/* call.h: every call of the HTTP interface, in one table.
 *
 * The server dispatches by it, the description at /v1/openapi.json is made from it, the command
 * line finds its paths in it, and tests walk it: a call that is not here does not exist. */
#ifndef HF_API_CALL_H
#define HF_API_CALL_H

#include "http/auth.h"
#include "http/head.h"

enum hf_call_kind {
    HF_CALL_DO,   /* one request of the library */
    HF_CALL_LIST, /* a page */
    HF_CALL_BULK,
    HF_CALL_AUDIT, /* reads the journal's files */
    HF_CALL_TRACE,
    HF_CALL_EXPORT,
    HF_CALL_OPENAPI,
    HF_CALL_METRICS,
    HF_CALL_HEALTH,
    HF_CALL_READY,
    HF_CALL_PAGE,
    HF_CALL_KINDS
};

enum hf_field_type {
    HF_TYPE_OF_TEXT,     /* a string */
    HF_TYPE_OF_DURATION, /* a string such as "15m", or a number of seconds */
    HF_TYPE_OF_NUMBER,   /* a whole number, 0 or more */
    HF_TYPE_OF_FLAG,
    HF_TYPE_OF_JSON,   /* anything */
    HF_TYPE_OF_MATCH,  /* an array of strings, or one string with commas; each out of `choices` */
    HF_TYPE_OF_CHOICE, /* a string out of `choices` */
    HF_TYPE_OF_TIME
};

#define HF_CALL_FIELDS_MAX 7 /* of one call */

/* A field of a body or a query. Offsets are those in struct hf_request; for a list, in struct
 * hf_query. */
struct hf_call_field {
    const char *name;
    enum hf_field_type type;
    bool required;
    const char *choices; /* "a|b" or NULL */
    const char *help;
    /* Where the value is, and how many bytes it has there. 0: nowhere by itself, decode.c has a
     * function. */
    uint16_t at;
    uint16_t has; /* not 0: where a bool says whether it was given */
    uint8_t size;
    bool is_name; /* TEXT: without NUL */
    /* FLAG: the numbers that stand for false and for true. CHOICE: `no` stands for the first. */
    uint8_t no, yes;
    uint32_t most; /* NUMBER: not 0: it is from 1 to this */
};

struct hf_call {
    enum hf_http_method method; /* GET answers HEAD too */
    const char *path;           /* "/v1/holds/{id}/confirm" */
    /* What stands in braces, as a line of a batch calls it; NULL if nothing does. Of a HF_CALL_DO
     * it names the row that the action is about (hf_action_info.row_name). */
    const char *param;
    enum hf_call_kind kind;
    enum hf_action action;  /* HF_CALL_DO */
    enum hf_list_kind list; /* HF_CALL_LIST */
    enum hf_role role;      /* the least that the caller must have */
    bool key;               /* Idempotency-Key is required */
    const char *op;         /* its name in a batch, or NULL */
    /* What its rules may refuse it with, beside HF_INVALID_REQUEST, and HF_TOKEN_COLLISION if it
     * needs a key; HF_OK behind the last. */
    enum hf_status refuses[4];
    const char *answers; /* name of the answer's schema: "hold", "holds", ... */
    const struct hf_call_field
        *fields; /* of the body, or of the query if the method is GET or DELETE */
    size_t field_count;
    const char *help; /* one sentence */
};

/* The number that a request (or a query) has for a field that is no text, and setting it. */
uint64_t hf_call_number(const struct hf_call_field *field, const void *from);
void hf_call_number_set(const struct hf_call_field *field, void *to, uint64_t number);

/* The rows that begin alike ("/v1/holds", "/v1/resources", ...) stand side by side. */
extern const struct hf_call hf_calls[];
extern const size_t hf_call_count;

/* The rows by how their paths begin, in their order. */
struct hf_call_group {
    const char *prefix;
    size_t prefix_size, rows;
};
extern const struct hf_call_group hf_call_groups[];
extern const size_t hf_call_group_count;

/* Does the call read a body? */
static inline bool hf_call_has_body(const struct hf_call *call)
{
    return call->method != HF_HTTP_GET && call->method != HF_HTTP_DELETE;
}

#define HF_CALL_PARAMS 1

struct hf_call_match {
    const struct hf_call *call;             /* NULL: see allow */
    struct hf_bytes params[HF_CALL_PARAMS]; /* still percent-encoded, borrowed from the path */
    char allow[48]; /* no call with this method, but these: "GET, PUT"; "" if the path is unknown */
};

/* Find the call. HEAD finds what GET finds. A parameter is one segment of the path, not empty; all
 * other segments must be written exactly as in the table. */
void hf_call_find(enum hf_http_method method, struct hf_bytes path, struct hf_call_match *match);

/* The call that has this name in a batch, or NULL. */
const struct hf_call *hf_call_of_op(struct hf_bytes op);

#endif
