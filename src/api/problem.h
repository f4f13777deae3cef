/* problem.h: refusals and faults as problem+json (RFC 9457), and the HTTP status of an answer. */
#ifndef HF_API_PROBLEM_H
#define HF_API_PROBLEM_H

#include "refusal/words.h"
#include "json/writer.h"

/* For a refusal by the HTTP server itself. */
enum hf_retry hf_retry_of(unsigned http_status);

/* The HTTP status of an answer to `action`: 201 if something was created, else as
 * hf_refusal_http has it. */
unsigned hf_api_answer_status(enum hf_action action, const struct hf_answer *answer);

/* {"type":"urn:holdfast:<code>","title":...,"status":...,"detail":...,"code":...,"retry":...} */
void hf_api_problem(struct hf_json *j, const struct hf_refusal *problem);

/* The problem of an answer that is not HF_OK. detail: in place of the fixed one; empty: that one.
 * HF_REFUSED has the text of the function that refused, and HF_INVALID_REQUEST that of
 * hf_request.invalid. A claim that is in progress, or whose
 * outcome is unknown, also has key, fence, begun_at, lease_expires_at and unknown_since; a late
 * confirm that found no unit has "verdict":"refund". */
void hf_api_refusal(struct hf_json *j, enum hf_action action, const struct hf_answer *answer,
                    struct hf_bytes detail);

#endif
