/* result.h: copies the answer of a plan into memory that the caller owns. */
#ifndef HF_STORE_RECORD_RESULT_H
#define HF_STORE_RECORD_RESULT_H

#include "core/core.h"

/* Fill `result` (may be NULL) from the plan that was decided for the request at `now`. answer_max:
 * an answer of more bytes is not copied; 0: no limit. Returns what hf_do returns: the status of the
 * answer, or HF_OK if HF_GET_TOKEN found the key. If the answer was not copied: HF_INDETERMINATE,
 * or HF_NO_MEMORY for a read that was out of memory. */
enum hf_status hf_result_answer(const struct hf_request *request, const struct hf_plan *plan,
                                hf_time now, size_t answer_max, struct hf_result *result);

/* Set the result (may be NULL) to a bare status, and return that status. */
enum hf_status hf_result_status(struct hf_result *result, enum hf_status status);
/* hf_result_fault: the same with HF_STORAGE_FAILURE, and why. cause: borrowed. */
enum hf_status hf_result_fault(struct hf_result *result, const struct hf_cause *cause);

#endif
