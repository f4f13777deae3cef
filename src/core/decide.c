#include "core/decide.h"

#include "core/action.h"
#include "core/answer.h"
#include "core/hold.h"
#include "core/name.h"
#include "core/token.h"

/* Some parameters could not be read: only the key counts. */
static void decide_invalid(const struct hf_invalid *invalid, struct hf_plan *plan)
{
    hf_answer_status(plan, HF_INVALID_REQUEST);
    if (invalid->why.size == 0 || invalid->why.size > HF_WHY_MAX)
        return;
    plan->answer.kind = HF_RECORD_VALUE;
    plan->answer.value = invalid->why;
}

/* The action's own rule. */
static void decide_action(const struct hf_action_info *action, const struct hf_view *view,
                          const struct hf_command *cmd, hf_time now, struct hf_plan *plan)
{
    if (cmd->request->invalid)
        decide_invalid(cmd->request->invalid, plan);
    else
        action->decide(view, cmd, now, plan);
}

/* The key's first call. Its answer is remembered, unless it is a fault: then nothing happened, and
 * the next call with the key is the first. */
static void decide_keyed(const struct hf_action_info *action, const struct hf_view *view,
                         const struct hf_command *cmd, hf_time now, struct hf_plan *plan)
{
    if (!hf_token_admit(view, cmd, now, plan))
        return;
    decide_action(action, view, cmd, now, plan);
    enum hf_status status = plan->answer.status;
    /* Not an ending, and there is no room to remember the refusal. */
    if (cmd->refuse_writes && status != HF_OK)
        status = HF_STORAGE_FAILURE;
    if (status >= HF_STORAGE_FAILURE) {
        hf_plan_reset(plan);
        plan->answer.status = status;
        return;
    }
    plan->token.status = status;
}

void hf_decide(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
               struct hf_plan *plan)
{
    const struct hf_action_info *action = hf_action_of(cmd->request->action);
    hf_plan_reset(plan);
    if (!action->decide || !hf_tenant_valid(cmd->request->tenant))
        hf_answer_status(plan, HF_INVALID_REQUEST);
    else if (action->keyed)
        decide_keyed(action, view, cmd, now, plan);
    else
        decide_action(action, view, cmd, now, plan);
}

void hf_decide_sweep(const struct hf_view *view, const struct hf_hold *hold, hf_time now,
                     struct hf_plan *plan)
{
    struct hf_scoped name = { hold->tenant, hold->resource };
    struct hf_resource resource;
    hf_plan_reset(plan);
    if (hold->state != HF_HELD) {
        hf_answer_status(plan, HF_NOT_HELD);
    } else if (now < hold->expires_at) {
        hf_answer_status(plan, HF_WINDOW_NOT_ELAPSED);
    } else if (view->resource(view->ctx, name, &resource) != HF_FOUND) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
    } else {
        hf_hold_expire_row(hold, now, &resource, plan);
        hf_answer_record(plan, HF_RECORD_HOLD)->hold = plan->rows[0].hold;
        hf_plan_row(plan, HF_ROW_RESOURCE)->resource = resource;
    }
}

void hf_decide_apply(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan)
{
    (void)view;
    (void)now;
    if (!cmd->request->apply.fn)
        hf_answer_status(plan, HF_MISUSE);
    else if (!hf_name_valid(cmd->request->apply.name))
        hf_answer_status(plan, HF_INVALID_REQUEST);
    else
        plan->run = true;
}
