/* match.h: when are two identities the same? The canonical form of an identity under a guard's
 * rule. */
#ifndef HF_CORE_MATCH_H
#define HF_CORE_MATCH_H

#include "core/core.h"

/* hf_match_valid: is this a valid match rule? Each step at most once, HF_MATCH_HASH last, at most
 * HF_MATCH_MAX steps, none unknown. */
bool hf_match_valid(const enum hf_match *match, uint32_t count);

/* hf_match_apply: bring `identity` into canonical form, step by step in order. guard, identity:
 * borrowed. out: borrowed from `identity` or from the plan's scratch. HF_OK, or HF_INVALID_REQUEST:
 * empty, longer than HF_IDENTITY_MAX before the steps or after them, not UTF-8 where a step needs
 * it (all but exact and hash), or empty after a step. */
enum hf_status hf_match_apply(const struct hf_guard *guard, struct hf_bytes identity,
                              struct hf_plan *plan, struct hf_bytes *out);

#endif
