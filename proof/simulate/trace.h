/* trace.h: everything that happened in a run, in one number.
 *
 * Requests, answers, calls to the disk and times are folded in one after the other, so two runs
 * with the same hash did the same in the same order. Not a cryptographic hash: nobody tries to fool
 * it. */
#ifndef HF_PROOF_SIMULATE_TRACE_H
#define HF_PROOF_SIMULATE_TRACE_H

#include "holdfast.h"

struct sim_trace {
    uint64_t hash;
};

static inline void sim_trace_number(struct sim_trace *t, uint64_t n)
{
    uint64_t h = (t->hash ^ n) * UINT64_C(0x9e3779b97f4a7c15);
    t->hash = h ^ h >> 29;
}

void sim_trace_bytes(struct sim_trace *t, struct hf_bytes bytes);

/* What was asked: action, tenant, key or number. The parameters follow from the script. */
void sim_trace_request(struct sim_trace *t, const struct hf_request *request);
/* What was answered, every field that the caller sees. */
void sim_trace_answer(struct sim_trace *t, enum hf_status status, const struct hf_result *result);

#endif
