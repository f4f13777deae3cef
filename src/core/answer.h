/* answer.h: small steps that many decisions share. Private to this folder, header only, pure. */
#ifndef HF_CORE_ANSWER_H
#define HF_CORE_ANSWER_H

#include "core/action.h"

/* The answer is `status` and carries no record. */
static inline void hf_answer_status(struct hf_plan *plan, enum hf_status status)
{
    plan->answer.status = status;
    plan->answer.kind = HF_NO_RECORD;
}

/* The answer is HF_OK with a record of `kind`, which the caller fills in. */
static inline struct hf_answer *hf_answer_record(struct hf_plan *plan, enum hf_record kind)
{
    plan->answer.status = HF_OK;
    plan->answer.kind = kind;
    return &plan->answer;
}

/* Was the row found? If not, sets the answer: HF_NOT_KNOWN, or HF_STORAGE_FAILURE if unreadable. */
static inline bool hf_answer_found(struct hf_plan *plan, enum hf_found found)
{
    if (found == HF_FOUND)
        return true;
    hf_answer_status(plan, found == HF_ABSENT ? HF_NOT_KNOWN : HF_STORAGE_FAILURE);
    return false;
}

/* The longest response of a claim that can be settled while the store refuses writes: the room that
 * was kept for it. */
#define HF_ENDING_RESPONSE 1024

/* Does the store accept the command's action although it refuses writes? True for an action that
 * ends something: room was kept for the ending since the thing was begun, and the ending takes no
 * more. An action that turns out to end nothing is refused as a write, so that nothing has to be
 * remembered. A reversal makes a record that stays and has no room kept; a long response takes more
 * than was kept. Both need the reserve. */
static inline bool hf_may_end(const struct hf_command *cmd)
{
    if (!cmd->may_end)
        return false;
    const struct hf_action_info *action = hf_action_of(cmd->request->action);
    switch (action->ends) {
    case HF_ENDS_BEGUN:
    case HF_ENDS_RECORD: return true;
    case HF_ENDS_PAYLOAD:
        return cmd->has_reserve ||
               hf_action_bytes(cmd->request, action->payload).size <= HF_ENDING_RESPONSE;
    case HF_ENDS_RESERVE: return cmd->has_reserve;
    default: return false;
    }
}

/* Does the store refuse the command's action now? */
static inline bool hf_refuses(const struct hf_command *cmd)
{
    return cmd->refuse_writes && !hf_may_end(cmd);
}

/* A key is opaque: only its length can be wrong. */
static inline bool hf_key_valid(const struct hf_command *cmd, struct hf_bytes key)
{
    return key.size > 0 && key.size <= cmd->rules->token_max_length;
}

/* The key's record, from its first call. */
static inline void hf_token_of_call(const struct hf_remembered *first, struct hf_token *out)
{
    out->action = first->action;
    out->status = first->answer.status;
    memcpy(out->digest, first->digest, sizeof out->digest);
    out->recorded_at = first->recorded_at;
    out->expires_at = first->expires_at;
}

/* The key's record, if a claim has the key. An unsettled claim does not expire. */
static inline void hf_token_of_claim(const struct hf_claim *claim, struct hf_token *out)
{
    out->action = HF_BEGIN;
    out->status = HF_OK;
    memcpy(out->digest, claim->fingerprint, sizeof out->digest);
    out->recorded_at = claim->begun_at;
    out->expires_at = claim->state == HF_CLAIM_STARTED ? INT64_MAX : claim->expires_at;
}

#endif
