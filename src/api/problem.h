/* problem.h: refusals and faults as problem+json (RFC 9457).
 *
 * Each has a fixed title and one or two fixed sentences of detail: what is wrong, and what to do.
 * They are fixed because the replay of a refusal must have the same bytes as the first answer. */
#ifndef HF_API_PROBLEM_H
#define HF_API_PROBLEM_H

#include "json/writer.h"

/* What a program may do after a refusal or a fault, without a person. */
enum hf_api_retry {
    HF_API_RETRY_NO,       /* the same request never succeeds, or must not run again */
    HF_API_RETRY_SAME_KEY, /* send the same request with the same key, later */
    HF_API_RETRY_NEW_KEY   /* the answer is bound to the key: a new attempt needs a new one */
};

struct hf_api_problem {
    const char *code; /* such as "token-collision" */
    const char *title;
    struct hf_bytes detail;
    unsigned http_status;
    enum hf_api_retry retry;
};

/* For a refusal by the HTTP server itself. */
enum hf_api_retry hf_api_retry_of(unsigned http_status);

/* The HTTP status of a status: 200 for HF_OK, 500 for an unknown number. */
unsigned hf_api_http_status(enum hf_status status);

/* The HTTP status of an answer to `action`: as above, but 201 if something was created. */
unsigned hf_api_answer_status(enum hf_action action, const struct hf_answer *answer);

/* The texts for `status` as an answer to `action`. Static. status: not HF_OK. */
struct hf_api_problem hf_api_problem_of(enum hf_action action, enum hf_status status);

/* {"type":"urn:holdfast:<code>","title":...,"status":...,"detail":...,"code":...,"retry":...} */
void hf_api_problem(struct hf_json *j, const struct hf_api_problem *problem);

/* The problem of an answer that is not HF_OK. detail: in place of the fixed one; empty: that one.
 * HF_REFUSED has the text of the function that refused, and HF_INVALID_REQUEST that of
 * hf_request.invalid. A claim that is in progress, or whose
 * outcome is unknown, also has key, fence, begun_at, lease_expires_at and unknown_since; a late
 * confirm that found no unit has "verdict":"refund". */
void hf_api_refusal(struct hf_json *j, enum hf_action action, const struct hf_answer *answer,
                    struct hf_bytes detail);

#endif
