/* result.h: the answer of a plan, copied to where its caller owns it. */
#ifndef HF_STORE_RECORD_RESULT_H
#define HF_STORE_RECORD_RESULT_H

#include "core/core.h"

/* Fill `result` (NULL: nobody wants it) from the plan that was decided for the request at `now`.
 * answer_max: more bytes than that are not copied; 0: as many as there are. Returns what hf_do
 * returns: the status of the answer, HF_OK for a look at a key that is known; or, if the answer was
 * not copied, HF_INDETERMINATE (HF_NO_MEMORY for a read, which has done nothing). */
enum hf_status hf_result_answer(const struct hf_request *request, const struct hf_plan *plan,
                                hf_time now, size_t answer_max, struct hf_result *result);

/* Set the result (NULL: nobody wants it) to a bare status, and return that. */
enum hf_status hf_result_status(struct hf_result *result, enum hf_status status);

#endif
