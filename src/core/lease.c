#include "core/lease.h"

#include "core/answer.h"
#include "core/name.h"

static bool lease_held(const struct hf_lease *lease, hf_time now)
{
    return lease->released_at == 0 && now < lease->expires_at;
}

void hf_lease_grant(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                    struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    if (!hf_name_valid(r->lease.name) || !hf_name_valid(r->lease.holder) ||
        !hf_duration_valid(r->lease.ttl_ms)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    struct hf_scoped name = { r->tenant, r->lease.name };
    struct hf_lease before;
    enum hf_found found = view->lease(view->ctx, name, &before);
    if (found == HF_UNREADABLE) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return;
    }
    if (found == HF_FOUND && lease_held(&before, now)) {
        hf_answer_status(plan, HF_LEASE_HELD);
        return;
    }
    /* Fences always rise. A store that was restored from an older copy could let two holders
     * write. */
    if (found == HF_FOUND && cmd->fresh_fence != 0 && cmd->fresh_fence <= before.fence) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return;
    }
    struct hf_lease *lease = &hf_plan_row(plan, HF_ROW_LEASE)->lease;
    lease->tenant = r->tenant;
    lease->name = r->lease.name;
    lease->holder = r->lease.holder;
    lease->fence = cmd->fresh_fence;
    lease->ttl_ms = r->lease.ttl_ms;
    lease->granted_at = now;
    lease->expires_at = now + r->lease.ttl_ms;
    plan->fence_used = true;
    hf_answer_record(plan, HF_RECORD_LEASE)->lease = *lease;
}

/* The checks that renew and return share. True: the caller's fence is the fence of `lease`, held or
 * not. False: the answer is complete. */
static bool lease_find(const struct hf_view *view, const struct hf_request *r,
                       struct hf_lease *lease, struct hf_plan *plan)
{
    if (!hf_name_valid(r->lease.name) || r->lease.fence == 0) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return false;
    }
    struct hf_scoped name = { r->tenant, r->lease.name };
    if (!hf_answer_found(plan, view->lease(view->ctx, name, lease)))
        return false;
    if (r->lease.fence != lease->fence) {
        hf_answer_record(plan, HF_RECORD_LEASE)->lease = *lease;
        plan->answer.status = r->lease.fence > lease->fence ? HF_INVALID_REQUEST : HF_STALE_FENCE;
        return false;
    }
    return true;
}

/* Write the changed lease and answer with it, if the store accepts the action. */
static void lease_change(const struct hf_command *cmd, const struct hf_lease *lease,
                         struct hf_plan *plan)
{
    if (hf_refuses(cmd)) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return;
    }
    hf_plan_row(plan, HF_ROW_LEASE)->lease = *lease;
    hf_answer_record(plan, HF_RECORD_LEASE)->lease = *lease;
}

void hf_lease_renew(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                    struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    struct hf_lease lease;
    if (r->lease.ttl_ms != 0 && !hf_duration_valid(r->lease.ttl_ms)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    if (!lease_find(view, r, &lease, plan))
        return;
    if (!lease_held(&lease, now)) {
        hf_answer_status(plan, HF_NOT_HELD);
        return;
    }
    if (r->lease.ttl_ms != 0)
        lease.ttl_ms = r->lease.ttl_ms;
    lease.expires_at = now + lease.ttl_ms;
    lease_change(cmd, &lease, plan);
}

void hf_lease_return(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan)
{
    struct hf_lease lease;
    if (!lease_find(view, cmd->request, &lease, plan))
        return;
    if (lease.released_at != 0) {
        hf_answer_record(plan, HF_RECORD_LEASE)->lease = lease;
    } else if (!lease_held(&lease, now)) {
        hf_answer_status(plan, HF_NOT_HELD);
    } else {
        lease.released_at = now;
        lease_change(cmd, &lease, plan);
    }
}

void hf_lease_delete(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    struct hf_scoped name = { r->tenant, r->lease.name };
    struct hf_lease lease;
    if (!hf_name_valid(r->lease.name)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    if (!hf_answer_found(plan, view->lease(view->ctx, name, &lease)))
        return;
    if (r->lease.fence != 0 && r->lease.fence != lease.fence) {
        hf_answer_status(plan, r->lease.fence > lease.fence ? HF_INVALID_REQUEST : HF_STALE_FENCE);
        return;
    }
    if (lease_held(&lease, now)) {
        if (r->lease.fence == 0) {
            hf_answer_status(plan, HF_LEASE_HELD);
            return;
        }
        lease.released_at = now;
    }
    struct hf_row *row = hf_plan_row(plan, HF_ROW_LEASE);
    row->lease = lease;
    row->erase = true;
    hf_answer_record(plan, HF_RECORD_LEASE)->lease = lease;
}
