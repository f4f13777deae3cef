/* problem.h: refusals and faults as people and programs read them (RFC 9457, problem+json).
 *
 * Each has a fixed title and a fixed sentence or two of detail: what was wrong, and what to do.
 * Fixed, because a refusal that is replayed must be the same bytes as the first one. */
#ifndef HF_API_PROBLEM_H
#define HF_API_PROBLEM_H

#include "json/writer.h"

struct hf_api_problem {
    const char *code; /* such as "token-collision" */
    const char *title;
    struct hf_bytes detail;
    unsigned http_status;
};

/* The HTTP status of a status: 200 for HF_OK, 500 for numbers that are none. */
unsigned hf_api_http_status(enum hf_status status);

/* The HTTP status of an answer to `action`: as above, but 201 where something was made. */
unsigned hf_api_answer_status(enum hf_action action, const struct hf_answer *answer);

/* The words for `status` as an answer to `action`. Static. status: not HF_OK. */
struct hf_api_problem hf_api_problem_of(enum hf_action action, enum hf_status status);

/* {"type":"urn:holdfast:<code>","title":...,"status":...,"detail":...,"code":...} */
void hf_api_problem(struct hf_json *j, const struct hf_api_problem *problem);

/* The problem of an answer that is not HF_OK. HF_REFUSED has the words of the function that
 * refused. */
void hf_api_refusal(struct hf_json *j, enum hf_action action, const struct hf_answer *answer);

#endif
