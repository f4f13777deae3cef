/* bytes.h: runs of bytes that the judge keeps. */
#ifndef HF_PROOF_JUDGE_BYTES_H
#define HF_PROOF_JUDGE_BYTES_H

#include "holdfast.h"

/* A copy that lives until free() of its data. Aborts without memory: a judge that cannot remember
 * must not pass a verdict. */
struct hf_bytes judge_bytes_copy(struct hf_bytes bytes);
bool judge_bytes_equal(struct hf_bytes a, struct hf_bytes b);

#endif
