/* error.h: why a call failed, in one sentence for people. */
#ifndef HF_BASE_ERROR_H
#define HF_BASE_ERROR_H

#include "holdfast.h"

/* Set *why (may be NULL) and return the status. A sentence that is too long is cut off. */
enum hf_status hf_error_set(struct hf_error *why, enum hf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
