/* why.h: the exact reason why a request was refused. hf_explain of holdfast.h is here too.
 *
 * words.h has one fixed sentence for each refusal, because a replay of a stored refusal must have
 * the same bytes, also in GET /v1/tokens. Most refusals of calls without an Idempotency-Key, and
 * those of an invalid key, are not stored: they can give the exact reason. */
#ifndef HF_REFUSAL_WHY_H
#define HF_REFUSAL_WHY_H

#include "refusal/words.h"

struct hf_why {
    char text[256]; /* one or two sentences; "": use the fixed one */
};

/* hf_why: why `result` refuses `request`. Both: borrowed. "" for a refusal that is stored
 * with a key. Pure: the same request and result give the same text. */
struct hf_why hf_why(const struct hf_request *request, const struct hf_result *result);
/* The same for a list that the store could not make. page: as hf_list left it. */
struct hf_why hf_why_page(enum hf_status status, const struct hf_page *page);

/* hf_why_name: a word for the limit, or else the cause, of a HF_STORAGE_FAILURE, for logs:
 * "disk-full", "lock-timeout". Static; "unknown" if neither is set. */
const char *hf_why_name(enum hf_limit limit, enum hf_fault fault);

#endif
