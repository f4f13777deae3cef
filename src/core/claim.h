/* claim.h: reserve a key, do the outside effect, store the result. The states are drawn in
 * holdfast.h. */
#ifndef HF_CORE_CLAIM_H
#define HF_CORE_CLAIM_H

#include "core/core.h"

/* Is the claim still remembered at `now`? Settled claims for their retention; unsettled claims
 * forever. */
bool hf_claim_alive(const struct hf_claim *claim, hf_time now);

/* hf_claim_begin answers, in this order:
 *   HF_INVALID_REQUEST   tenant, key, or lease or retention not in 1 .. HF_DURATION_MAX_MS
 *   HF_TOKEN_COLLISION   other fingerprint, or another call has used the key
 *   HF_OK, replayed      the claim is settled
 *   HF_IN_PROGRESS       with the claim
 *   HF_OUTCOME_UNKNOWN   with the claim: its lease ran out, and its policy is unknown
 *   HF_STORAGE_FAILURE
 *   HF_OK                with the claim started under a fresh fence: new key, retryable failure,
 *                        or a lapsed lease with policy retry (the policy given when it began)
 * The new start takes lease, retention and policy from this call. */
void hf_claim_begin(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                    struct hf_plan *plan);

/* hf_claim_settle: complete, fail, heartbeat or abandon, by cmd's action, in this order:
 * HF_INVALID_REQUEST (key; fence 0 or above the claim's; response longer than HF_RESPONSE_MAX;
 * lease); HF_NOT_KNOWN; HF_STALE_FENCE (fence below the claim's); a refusal because of the fence
 * carries the claim. If already settled: the same call (same action, same response or error) is
 * HF_OK and replayed; heartbeat and abandon are HF_NOT_HELD; anything else is HF_TOKEN_COLLISION.
 * An abandon of a claim that is unknown is HF_OK and changes nothing. Else HF_STORAGE_FAILURE or
 * HF_OK. The holder of the current fence may settle after its lease ran out. */
void hf_claim_settle(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan);

/* The state as shown at `now`: STARTED with a lease that ran out is UNKNOWN. */
enum hf_claim_state hf_claim_state_at(const struct hf_claim *claim, hf_time now);
/* Is it the state of a claim that is not settled? */
static inline bool hf_claim_state_is_open(enum hf_claim_state state)
{
    return state == HF_CLAIM_STARTED || state == HF_CLAIM_UNKNOWN;
}
/* The claim as shown at `now`. */
void hf_claim_show(const struct hf_claim *claim, hf_time now, struct hf_answer *answer);

#endif
