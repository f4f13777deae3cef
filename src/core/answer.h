/* answer.h: the small steps that many decisions share. Private to this folder, header only,
 * pure. */
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

/* Was it found? If not, the answer says why: HF_NOT_KNOWN, or HF_STORAGE_FAILURE if unreadable. */
static inline bool hf_answer_found(struct hf_plan *plan, enum hf_found found)
{
    if (found == HF_FOUND)
        return true;
    hf_answer_status(plan, found == HF_ABSENT ? HF_NOT_KNOWN : HF_STORAGE_FAILURE);
    return false;
}

/* How many bytes the response of a claim may have that is settled while the store refuses writes.
 * So much was kept for it. */
#define HF_ENDING_RESPONSE 1024

/* Does the store take the command's action though it refuses writes? True for what ends something
 * that was begun before, and for which room was kept since then: it takes no more than that. An
 * action that turns out to end nothing is refused as a write, so that nothing of it has to be
 * remembered. A reversal makes a record that stays, for which no room was kept, and a long response
 * takes more than was kept: both need the reserve. */
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

/* Is the command's action one that the store cannot take now? */
static inline bool hf_refuses(const struct hf_command *cmd)
{
    return cmd->refuse_writes && !hf_may_end(cmd);
}

/* A key is opaque: only its length can be wrong. */
static inline bool hf_key_valid(const struct hf_command *cmd, struct hf_bytes key)
{
    return key.size > 0 && key.size <= cmd->rules->token_max_length;
}

/* The key's record, as its first call left it. */
static inline void hf_token_of_call(const struct hf_remembered *first, struct hf_token *out)
{
    out->action = first->action;
    out->status = first->answer.status;
    memcpy(out->digest, first->digest, sizeof out->digest);
    out->recorded_at = first->recorded_at;
    out->expires_at = first->expires_at;
}

/* The key's record, where a claim has the key. An unsettled claim does not leave by time. */
static inline void hf_token_of_claim(const struct hf_claim *claim, struct hf_token *out)
{
    out->action = HF_BEGIN;
    out->status = HF_OK;
    memcpy(out->digest, claim->fingerprint, sizeof out->digest);
    out->recorded_at = claim->begun_at;
    out->expires_at = claim->state == HF_CLAIM_STARTED ? INT64_MAX : claim->expires_at;
}

#endif
