#include "core/decide.h"

#include "base/bug.h"
#include "core/answer.h"
#include "core/claim.h"
#include "core/fence.h"
#include "core/guard.h"
#include "core/hold.h"
#include "core/lease.h"
#include "core/name.h"
#include "core/token.h"

/* ---- Reading: the record as it stands, filled in by the view ---- */

static void get_hold(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan)
{
    (void)now;
    struct hf_scoped id = { cmd->request->tenant, cmd->request->hold.id };
    struct hf_answer *answer = hf_answer_record(plan, HF_RECORD_HOLD);
    (void)hf_answer_found(plan, view->hold(view->ctx, id, &answer->hold));
}

/* Resources, guards, leases and registers are found by name. */
static void get_named(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                      struct hf_plan *plan)
{
    (void)now;
    struct hf_scoped name = { cmd->request->tenant, cmd->request->get.name };
    struct hf_answer *answer = &plan->answer;
    enum hf_found found;
    if (!hf_name_valid(name.name)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    switch (cmd->request->action) {
    case HF_GET_RESOURCE:
        answer->kind = HF_RECORD_RESOURCE;
        found = view->resource(view->ctx, name, &answer->resource);
        break;
    case HF_GET_GUARD:
        answer->kind = HF_RECORD_GUARD;
        found = view->guard(view->ctx, name, &answer->guard);
        break;
    case HF_GET_LEASE:
        answer->kind = HF_RECORD_LEASE;
        found = view->lease(view->ctx, name, &answer->lease);
        break;
    default: /* HF_GET_REGISTER */
        answer->kind = HF_RECORD_REGISTER;
        found = view->reg(view->ctx, name, &answer->reg);
        if (found == HF_FOUND && !hf_register_there(&answer->reg))
            found = HF_ABSENT;
        break;
    }
    (void)hf_answer_found(plan, found);
}

static void get_value(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                      struct hf_plan *plan)
{
    (void)now;
    struct hf_scoped key = { cmd->request->tenant, cmd->request->get.name };
    struct hf_answer *answer = hf_answer_record(plan, HF_RECORD_VALUE);
    if (key.name.size == 0 || key.name.size > HF_APP_KEY_MAX)
        hf_answer_status(plan, HF_INVALID_REQUEST);
    else
        (void)hf_answer_found(plan, view->value(view->ctx, key, &answer->value));
}

/* The claim under the key, if it is still remembered. Fills the token too: that is who has the key. */
static void get_claim(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                      struct hf_plan *plan)
{
    struct hf_scoped key = { cmd->request->tenant, cmd->request->key };
    struct hf_claim claim;
    if (!hf_key_valid(cmd, key.name)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    if (!hf_answer_found(plan, view->claim(view->ctx, key, &claim)))
        return;
    if (!hf_claim_alive(&claim, now)) {
        hf_answer_status(plan, HF_NOT_KNOWN);
        return;
    }
    hf_token_of_claim(&claim, &plan->token);
    hf_claim_show(&claim, now, &plan->answer);
}

/* What happened to the request with this key? A call carried it, or a claim has it. */
static void get_token(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                      struct hf_plan *plan)
{
    struct hf_scoped key = { cmd->request->tenant, cmd->request->key };
    struct hf_remembered first;
    enum hf_found found = hf_key_valid(cmd, key.name) ? view->token(view->ctx, key, &first) : HF_ABSENT;
    if (found == HF_UNREADABLE) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
    } else if (found == HF_FOUND && now < first.expires_at) {
        hf_token_of_call(&first, &plan->token);
        plan->answer = first.answer;
    } else {
        get_claim(view, cmd, now, plan);
    }
}

/* ---- Deciding ---- */

/* The effect is the caller's function: here only its name is judged. */
static void apply_run(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
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

typedef void decide_fn(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                       struct hf_plan *plan);

enum trait { PLAIN = 0, KEYED = 1, READS = 2 };

/* Every action a request may ask for. What is not here is not known. */
/* clang-format off */
static const struct rule {
    decide_fn *decide;
    enum trait trait;
} rules[] = {
    [HF_PLACE_HOLD] = { hf_hold_place, KEYED },
    [HF_CONFIRM] = { hf_hold_end, KEYED },
    [HF_RELEASE] = { hf_hold_end, KEYED },
    [HF_EXPIRE] = { hf_hold_end, KEYED },
    [HF_REVERSE] = { hf_hold_reverse, KEYED },
    [HF_SET_RESOURCE] = { hf_resource_set, PLAIN },
    [HF_SET_GUARD] = { hf_guard_set, PLAIN },
    [HF_CHECK] = { hf_guard_ask, READS },
    [HF_RECORD] = { hf_guard_ask, PLAIN },
    [HF_ADMIT] = { hf_guard_ask, PLAIN },
    [HF_BEGIN] = { hf_claim_begin, PLAIN },
    [HF_COMPLETE] = { hf_claim_settle, PLAIN },
    [HF_FAIL] = { hf_claim_settle, PLAIN },
    [HF_HEARTBEAT] = { hf_claim_settle, PLAIN },
    [HF_GRANT] = { hf_lease_grant, KEYED },
    [HF_RENEW] = { hf_lease_renew, PLAIN },
    [HF_RETURN] = { hf_lease_return, PLAIN },
    [HF_WRITE] = { hf_register_write, KEYED },
    [HF_MERGE] = { hf_register_merge, PLAIN },
    [HF_APPLY] = { apply_run, KEYED },
    [HF_DELETE_REGISTER] = { hf_register_delete, KEYED },
    [HF_DELETE_LEASE] = { hf_lease_delete, KEYED },
    [HF_GET_HOLD] = { get_hold, READS },
    [HF_GET_RESOURCE] = { get_named, READS },
    [HF_GET_GUARD] = { get_named, READS },
    [HF_GET_CLAIM] = { get_claim, READS },
    [HF_GET_LEASE] = { get_named, READS },
    [HF_GET_REGISTER] = { get_named, READS },
    [HF_GET_TOKEN] = { get_token, READS },
    [HF_GET_VALUE] = { get_value, READS },
};
/* clang-format on */

/* Number 0 stands for no action, so it has the empty rule of all that is not known. */
static const struct rule *rule_of(enum hf_action action)
{
    return &rules[(unsigned)action < sizeof rules / sizeof *rules ? (unsigned)action : 0];
}

bool hf_action_keyed(enum hf_action action)
{
    return rule_of(action)->trait == KEYED;
}

bool hf_action_reads(enum hf_action action)
{
    return rule_of(action)->trait == READS;
}

bool hf_action_ends(enum hf_action action)
{
    struct hf_request request = { .action = action };
    struct hf_command cmd = { .request = &request, .may_end = true };
    return hf_may_end(&cmd);
}

/* The key's first call. Whatever the answer is, it is remembered, except for a fault: nothing happened
 * then, and the next call with the key is the first. */
static void decide_keyed(const struct rule *rule, const struct hf_view *view, const struct hf_command *cmd,
                         hf_time now, struct hf_plan *plan)
{
    if (!hf_token_admit(view, cmd, now, plan))
        return;
    rule->decide(view, cmd, now, plan);
    enum hf_status status = plan->answer.status;
    if (cmd->refuse_writes && status != HF_OK) /* it ends nothing, and there is no room to remember that */
        status = HF_STORAGE_FAILURE;
    if (status >= HF_STORAGE_FAILURE) {
        hf_plan_reset(plan);
        plan->answer.status = status;
        return;
    }
    plan->token.status = status;
    if (HF_BUG(failure_not_cached) && status != HF_OK)
        plan->remember = HF_REMEMBER_NOT;
}

void hf_decide(const struct hf_view *view, const struct hf_command *cmd, hf_time now, struct hf_plan *plan)
{
    const struct rule *rule = rule_of(cmd->request->action);
    hf_plan_reset(plan);
    if (!rule->decide || !hf_tenant_valid(cmd->request->tenant))
        hf_answer_status(plan, HF_INVALID_REQUEST);
    else if (rule->trait == KEYED)
        decide_keyed(rule, view, cmd, now, plan);
    else
        rule->decide(view, cmd, now, plan);
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
