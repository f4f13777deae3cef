/* problem.h: refusals and faults as problem+json (RFC 9457).
 *
 * Each has a fixed title and one or two fixed sentences of detail: what is wrong, and what to do.
 * They are fixed because the replay of a refusal must have the same bytes as the first answer. */
#ifndef HF_API_PROBLEM_H
#define HF_API_PROBLEM_H

#include "json/writer.h"

struct hf_api_problem {
    const char *code; /* such as "token-collision" */
    const char *title;
    struct hf_bytes detail;
    unsigned http_status;
};

/* The HTTP status of a status: 200 for HF_OK, 500 for an unknown number. */
unsigned hf_api_http_status(enum hf_status status);

/* The HTTP status of an answer to `action`: as above, but 201 if something was created. */
unsigned hf_api_answer_status(enum hf_action action, const struct hf_answer *answer);

/* The texts for `status` as an answer to `action`. Static. status: not HF_OK. */
struct hf_api_problem hf_api_problem_of(enum hf_action action, enum hf_status status);

/* {"type":"urn:holdfast:<code>","title":...,"status":...,"detail":...,"code":...} */
void hf_api_problem(struct hf_json *j, const struct hf_api_problem *problem);

/* The problem of an answer that is not HF_OK. HF_REFUSED has the text of the function that
 * refused. */
void hf_api_refusal(struct hf_json *j, enum hf_action action, const struct hf_answer *answer);

#endif
