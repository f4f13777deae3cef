/* call.h: every call of the HTTP interface, in one table.
 *
 * The server dispatches by this table, /v1/openapi.json is generated from it, the command line
 * takes its paths from it, and tests walk it: a call that is not here does not exist. */
#ifndef HF_API_CALL_H
#define HF_API_CALL_H

#include "http/auth.h"
#include "http/head.h"

enum hf_call_kind {
    HF_CALL_DO,   /* one request of the library */
    HF_CALL_LIST, /* a page */
    HF_CALL_BULK,
    HF_CALL_AUDIT, /* reads the whole journal */
    HF_CALL_TRACE,
    HF_CALL_EXPORT,
    HF_CALL_HEAD,
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
    HF_TYPE_OF_JSON,   /* any value */
    HF_TYPE_OF_MATCH,  /* an array of strings, or one string with commas; each from `choices` */
    HF_TYPE_OF_CHOICE, /* a string from `choices` */
    HF_TYPE_OF_TIME
};

#define HF_CALL_FIELDS_MAX 7 /* of one call */

/* A field of a body or a query. Offsets are in struct hf_request; for a list, in struct
 * hf_query. */
struct hf_call_field {
    const char *name;
    enum hf_field_type type;
    bool required;
    const char *choices; /* "a|b" or NULL */
    const char *help;
    /* The value's offset, and below its size in bytes. 0: a function in decode.c stores it. */
    uint16_t at;
    uint16_t has; /* not 0: offset of a bool that says whether it was given */
    uint8_t size;
    bool is_name; /* TEXT: without NUL */
    /* FLAG: the numbers for false and for true. CHOICE: `no` is the number of the first choice. */
    uint8_t no, yes;
    uint32_t most; /* NUMBER: not 0: the range is 1 to this */
    /* CHOICE with one word and without an offset: a request that has it is of this action, not of
     * the call's. 0: none */
    enum hf_action becomes;
};

struct hf_call {
    enum hf_http_method method; /* GET includes HEAD */
    const char *path;           /* "/v1/holds/{id}/confirm" */
    /* The name of the part in braces, in a line of a bulk request; NULL if there is none. In a
     * HF_CALL_DO it names the row that the action is about (hf_action_info.row_name). */
    const char *param;
    enum hf_call_kind kind;
    enum hf_action action;  /* HF_CALL_DO */
    enum hf_list_kind list; /* HF_CALL_LIST */
    enum hf_role role;      /* the lowest role that may call it */
    bool key;               /* Idempotency-Key is required */
    bool by_operator;       /* an operator may make the call, in the tenant of ?tenant= */
    const char *op;         /* its name in a bulk request, or NULL */
    /* Its refusals, besides HF_INVALID_REQUEST, and HF_TOKEN_COLLISION if it needs a key; HF_OK
     * after the last. */
    enum hf_status refuses[4];
    const char *answers;                /* name of the answer's schema: "hold", "holds", ... */
    const struct hf_call_field *fields; /* of the body; of the query for GET and DELETE */
    size_t field_count;
    const char *help; /* one sentence */
};

/* Get and set the number of a field that is not text, in a request or a query. */
uint64_t hf_call_number(const struct hf_call_field *field, const void *from);
void hf_call_number_set(const struct hf_call_field *field, void *to, uint64_t number);

/* Rows with the same prefix ("/v1/holds", "/v1/resources", ...) are adjacent. */
extern const struct hf_call hf_calls[];
extern const size_t hf_call_count;

/* The rows by prefix, in the order of the table. */
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
/* Must there be one? It may be left out, like {}, where every member is optional, but not where the
 * body replaces what is there. */
bool hf_call_needs_body(const struct hf_call *call);

#define HF_CALL_PARAMS 1

struct hf_call_match {
    const struct hf_call *call;             /* NULL: see allow */
    struct hf_bytes params[HF_CALL_PARAMS]; /* still percent-encoded, borrowed from the path */
    char allow[48]; /* if call is NULL: the path's methods, "GET, PUT"; "" if it is unknown */
};

/* Find the call. HEAD finds the same as GET. A parameter is one non-empty segment of the path; all
 * other segments must be exactly as in the table. */
void hf_call_find(enum hf_http_method method, struct hf_bytes path, struct hf_call_match *match);

/* Does the path begin like that of a call with a parameter, and go on after one? Then a parameter
 * may have a slash in it. */
bool hf_call_is_named(struct hf_bytes path);

/* The call with this name in a bulk request, or NULL. */
const struct hf_call *hf_call_of_op(struct hf_bytes op);

#endif
