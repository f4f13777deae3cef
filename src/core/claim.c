#include "core/claim.h"

#include "base/bytes.h"
#include "core/answer.h"
#include "core/digest.h"
#include "core/name.h"

#define LEASE_DEFAULT_MS 60000

bool hf_claim_alive(const struct hf_claim *claim, hf_time now)
{
    return claim->state == HF_CLAIM_STARTED || now < claim->expires_at;
}

enum hf_claim_state hf_claim_state_at(const struct hf_claim *claim, hf_time now)
{
    bool lapsed = claim->state == HF_CLAIM_STARTED && now >= claim->lease_expires_at;
    return lapsed ? HF_CLAIM_UNKNOWN : claim->state;
}

/* Leaves answer->status to the caller. */
void hf_claim_show(const struct hf_claim *claim, hf_time now, struct hf_answer *answer)
{
    answer->kind = HF_RECORD_CLAIM;
    answer->claim = *claim;
    answer->claim.state = hf_claim_state_at(claim, now);
}

/* The live claim under the command's key. HF_ABSENT if there is none, or only a forgotten one. */
static enum hf_found claim_find(const struct hf_view *view, const struct hf_command *cmd,
                                hf_time now, struct hf_claim *out)
{
    struct hf_scoped key = { cmd->request->tenant, cmd->request->key };
    enum hf_found found = view->claim(view->ctx, key, out);
    return found == HF_FOUND && !hf_claim_alive(out, now) ? HF_ABSENT : found;
}

/* Answer `status` with the claim as it stands. */
static void answer_claim(const struct hf_claim *claim, hf_time now, enum hf_status status,
                         struct hf_plan *plan)
{
    hf_claim_show(claim, now, &plan->answer);
    plan->answer.status = status;
}

/* ---- Begin ---- */

/* What a begin with the right fingerprint gets, by the state of the claim. */
static const struct meeting {
    enum hf_status status;
    bool replayed; /* settled: this is the answer */
    bool starts;   /* the claim starts again with a higher fence */
} meetings[] = {
    [HF_CLAIM_STARTED] = { HF_IN_PROGRESS, false, false },
    [HF_CLAIM_COMPLETED] = { HF_OK, true, false },
    [HF_CLAIM_FAILED] = { HF_OK, true, false },
    [HF_CLAIM_RETRYABLE] = { HF_OK, false, true },
    [HF_CLAIM_UNKNOWN] = { HF_OUTCOME_UNKNOWN, false, false },
};

/* A claim has the key. True: this call may start it again. False: the answer is complete. */
static bool begin_meets(const struct hf_command *cmd, const struct hf_claim *claim, hf_time now,
                        struct hf_plan *plan)
{
    if (memcmp(claim->fingerprint, cmd->digest, sizeof cmd->digest) != 0) {
        hf_token_of_claim(claim, &plan->token);
        hf_answer_status(plan, HF_TOKEN_COLLISION);
        return false;
    }
    enum hf_claim_state state = hf_claim_state_at(claim, now);
    const struct meeting *m = &meetings[state];
    if (m->starts || (state == HF_CLAIM_UNKNOWN && claim->on_abandon == HF_ABANDON_RETRY))
        return true;
    if (m->replayed)
        hf_token_of_claim(claim, &plan->token);
    plan->replayed = m->replayed;
    answer_claim(claim, now, m->status, plan);
    return false;
}

/* No claim has the key. True: no call has used it either. False: the answer is complete. */
static bool begin_is_new(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                         struct hf_plan *plan)
{
    struct hf_scoped key = { cmd->request->tenant, cmd->request->key };
    struct hf_remembered first;
    enum hf_found found = view->token(view->ctx, key, &first);
    if (found == HF_UNREADABLE) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return false;
    }
    if (found == HF_FOUND && now < first.expires_at) {
        hf_token_of_call(&first, &plan->token);
        hf_answer_status(plan, HF_TOKEN_COLLISION);
        return false;
    }
    return true;
}

static void begin_start(const struct hf_command *cmd, int64_t lease_ms, hf_time now,
                        struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    struct hf_claim *claim = &hf_plan_row(plan, HF_ROW_CLAIM)->claim;
    claim->tenant = r->tenant;
    claim->key = r->key;
    memcpy(claim->fingerprint, cmd->digest, sizeof claim->fingerprint);
    claim->state = HF_CLAIM_STARTED;
    claim->on_abandon = r->begin.on_abandon;
    claim->fence = cmd->fresh_fence;
    claim->lease_ms = lease_ms;
    claim->retention_ms = r->begin.retention_ms;
    claim->begun_at = now;
    claim->lease_expires_at = now + lease_ms;
    plan->fence_used = true;
    answer_claim(claim, now, HF_OK, plan);
}

void hf_claim_begin(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                    struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    int64_t lease_ms = r->begin.lease_ms == 0 ? LEASE_DEFAULT_MS : r->begin.lease_ms;
    if (!hf_key_valid(cmd, r->key) || !hf_duration_valid(lease_ms) ||
        !(r->begin.retention_ms == 0 || hf_duration_valid(r->begin.retention_ms)) ||
        (unsigned)r->begin.on_abandon > HF_ABANDON_RETRY) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    struct hf_claim claim;
    enum hf_found found = claim_find(view, cmd, now, &claim);
    if (found == HF_FOUND && !begin_meets(cmd, &claim, now, plan))
        return;
    if (found == HF_ABSENT && !begin_is_new(view, cmd, now, plan))
        return;
    /* Fences always rise. A store that was restored from an older copy could let two workers
     * settle. */
    bool falls = found == HF_FOUND && cmd->fresh_fence != 0 && cmd->fresh_fence <= claim.fence;
    if (found == HF_UNREADABLE || falls || cmd->refuse_writes)
        hf_answer_status(plan, HF_STORAGE_FAILURE);
    else
        begin_start(cmd, lease_ms, now, plan);
}

/* ---- Complete, fail, heartbeat, abandon ---- */

/* The state that the action leads to. A heartbeat and an abandon only move the end of the lease. */
static enum hf_claim_state settled_state(const struct hf_request *r)
{
    if (r->action == HF_HEARTBEAT || r->action == HF_ABANDON)
        return HF_CLAIM_STARTED;
    if (r->action == HF_COMPLETE)
        return HF_CLAIM_COMPLETED;
    return r->settle.retryable ? HF_CLAIM_RETRYABLE : HF_CLAIM_FAILED;
}

static bool settle_valid(const struct hf_command *cmd)
{
    const struct hf_request *r = cmd->request;
    return hf_key_valid(cmd, r->key) && r->settle.fence != 0 &&
           r->settle.response.size <= HF_RESPONSE_MAX &&
           (r->action != HF_HEARTBEAT || r->settle.lease_ms == 0 ||
            hf_duration_valid(r->settle.lease_ms));
}

/* The claim was settled under this fence: the same call is a replay, any other is refused. */
static void settle_again(const struct hf_command *cmd, const struct hf_claim *claim, hf_time now,
                         struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    if (settled_state(r) == HF_CLAIM_STARTED) {
        hf_answer_status(plan, HF_NOT_HELD);
        return;
    }
    hf_token_of_claim(claim, &plan->token);
    plan->replayed =
        settled_state(r) == claim->state &&
        hf_bytes_equal(hf_digest_value(r->settle.response), hf_digest_value(claim->response));
    if (plan->replayed)
        answer_claim(claim, now, HF_OK, plan);
    else
        hf_answer_status(plan, HF_TOKEN_COLLISION);
}

static void settle_now(const struct hf_command *cmd, struct hf_claim *claim, hf_time now,
                       struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    claim->state = settled_state(r);
    if (r->action == HF_ABANDON) {
        claim->lease_expires_at = now;
    } else if (r->action == HF_HEARTBEAT) {
        if (r->settle.lease_ms != 0)
            claim->lease_ms = r->settle.lease_ms;
        claim->lease_expires_at = now + claim->lease_ms;
    } else {
        claim->settled_at = now;
        claim->expires_at =
            now + (claim->retention_ms ? claim->retention_ms : cmd->rules->idempotency_window_ms);
        claim->response = r->settle.response;
    }
    hf_plan_row(plan, HF_ROW_CLAIM)->claim = *claim;
    answer_claim(claim, now, HF_OK, plan);
}

void hf_claim_settle(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan)
{
    uint64_t fence = cmd->request->settle.fence;
    struct hf_claim claim;
    if (!settle_valid(cmd)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    if (!hf_answer_found(plan, claim_find(view, cmd, now, &claim)))
        return;
    if (fence > claim.fence)
        answer_claim(&claim, now, HF_INVALID_REQUEST, plan);
    else if (fence < claim.fence)
        answer_claim(&claim, now, HF_STALE_FENCE, plan);
    else if (claim.state != HF_CLAIM_STARTED)
        settle_again(cmd, &claim, now, plan);
    else if (cmd->request->action == HF_ABANDON && now >= claim.lease_expires_at)
        answer_claim(&claim, now, HF_OK, plan); /* it stays unknown since then */
    else if (hf_refuses(cmd))
        hf_answer_status(plan, HF_STORAGE_FAILURE);
    else
        settle_now(cmd, &claim, now, plan);
}
