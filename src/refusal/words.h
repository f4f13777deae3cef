/* words.h: every refusal and fault in words: code, title, what is wrong, and what to do.
 *
 * The sentences are fixed, because the replay of a refusal must have the same bytes as the first
 * answer. What is not stored can give the exact reason: see why.h. */
#ifndef HF_REFUSAL_WORDS_H
#define HF_REFUSAL_WORDS_H

#include "holdfast.h"

/* What a program may do after a refusal or a fault, without a person. */
enum hf_retry {
    HF_RETRY_NO,       /* the same request never succeeds, or must not run again */
    HF_RETRY_SAME_KEY, /* send the same request with the same key, later */
    HF_RETRY_NEW_KEY   /* the answer is bound to the key: a new attempt needs a new one */
};

struct hf_refusal {
    const char *code; /* such as "token-collision" */
    const char *title;
    struct hf_bytes detail;
    unsigned http_status;
    enum hf_retry retry;
};

/* The texts for `status` as an answer to `action`. Static. status: not HF_OK. */
struct hf_refusal hf_refusal_of(enum hf_action action, enum hf_status status);

/* The HTTP status of a status: 200 for HF_OK, 500 for an unknown number. */
unsigned hf_refusal_http(enum hf_status status);

#endif
