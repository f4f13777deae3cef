/* decide.h: one request in, one plan out. */
#ifndef HF_CORE_DECIDE_H
#define HF_CORE_DECIDE_H

#include "core/core.h"

/* hf_decide: decide `cmd` at `now`. view, cmd: borrowed. plan: out, overwritten (its scratch is
 * reused). The plan's answer is always set. It has rows only if answer.status is HF_OK, or for a
 * remembered refusal (lazy expiry, a client's number). Order of checking: the action is known; the
 * tenant and the key are well-formed (else HF_INVALID_REQUEST, not remembered); the key is new
 * (else the first answer, or HF_TOKEN_COLLISION); the store accepts writes (else
 * HF_STORAGE_FAILURE); all parameters could be read (else HF_INVALID_REQUEST, remembered with
 * request.invalid.why); then the action's own rules. For HF_APPLY with a new key the plan says
 * `run` and has remember and token set: the shell runs the function, sets the answer and adds the
 * rows, or drops the plan. Pure. */
void hf_decide(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
               struct hf_plan *plan);

/* hf_decide_sweep: the store wants to expire `hold`, which is overdue at `now`. plan: out: the
 * hold's and the resource's rows and HF_OK, or another status and no rows if the hold is not held
 * or not overdue, or its resource cannot be read. Pure. */
void hf_decide_sweep(const struct hf_view *view, const struct hf_hold *hold, hf_time now,
                     struct hf_plan *plan);

/* hf_decide_apply: the rule of HF_APPLY. The effect is the caller's function: this only checks its
 * name. HF_MISUSE (no function), HF_INVALID_REQUEST (name), or the plan says `run`. Pure. */
void hf_decide_apply(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan);

#endif
