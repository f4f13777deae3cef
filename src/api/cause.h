/* cause.h: what exactly was wrong with a request that was refused.
 *
 * problem.h has one fixed sentence for each refusal, because a refusal that is remembered must be
 * the same bytes for ever, also to whoever asks for the key and not for the call. Most refusals of
 * calls without an Idempotency-Key, and those of a key that cannot be one, are remembered nowhere:
 * they may say what it was. */
#ifndef HF_API_CAUSE_H
#define HF_API_CAUSE_H

#include "api/problem.h"

struct hf_api_cause {
    char text[256]; /* a sentence or two; "": nothing better than the fixed one */
};

/* hf_api_cause: why `result` is a refusal of `request`. Both: borrowed. "" for what is remembered
 * under a key. Pure: the same request and result give the same words. */
struct hf_api_cause hf_api_cause(const struct hf_request *request, const struct hf_result *result);

#endif
