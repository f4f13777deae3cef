#include "core/read.h"

#include "core/action.h"
#include "core/answer.h"
#include "core/claim.h"
#include "core/fence.h"
#include "core/name.h"
#include "core/token.h"

void hf_read_hold(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                  struct hf_plan *plan)
{
    (void)now;
    struct hf_scoped id = { cmd->request->tenant, cmd->request->hold.id };
    struct hf_answer *answer = hf_answer_record(plan, HF_RECORD_HOLD);
    (void)hf_answer_found(plan, view->hold(view->ctx, id, &answer->hold));
}

void hf_read_named(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
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
    switch (hf_action_of(cmd->request->action)->row) {
    case HF_ROW_RESOURCE:
        answer->kind = HF_RECORD_RESOURCE;
        found = view->resource(view->ctx, name, &answer->resource);
        break;
    case HF_ROW_GUARD:
        answer->kind = HF_RECORD_GUARD;
        found = view->guard(view->ctx, name, &answer->guard);
        break;
    case HF_ROW_LEASE:
        answer->kind = HF_RECORD_LEASE;
        found = view->lease(view->ctx, name, &answer->lease);
        break;
    default: /* HF_ROW_REGISTER */
        answer->kind = HF_RECORD_REGISTER;
        found = view->reg(view->ctx, name, &answer->reg);
        if (found == HF_FOUND && !hf_register_there(&answer->reg))
            found = HF_ABSENT;
        break;
    }
    (void)hf_answer_found(plan, found);
}

void hf_read_value(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
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

void hf_read_claim(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
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

/* The first answer to a client's number. */
static void read_number(const struct hf_view *view, const struct hf_command *cmd,
                        struct hf_plan *plan)
{
    struct hf_remembered first;
    bool old = false;
    if (!hf_token_valid(cmd)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    enum hf_found found = hf_token_number(view, cmd->request, &first, &old);
    if (old) {
        hf_answer_status(plan, HF_WINDOW_ELAPSED);
    } else if (hf_answer_found(plan, found)) {
        hf_token_of_call(&first, &plan->token);
        plan->answer = first.answer;
    }
}

void hf_read_token(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                   struct hf_plan *plan)
{
    if (cmd->request->client.size > 0) {
        read_number(view, cmd, plan);
        return;
    }
    struct hf_scoped key = { cmd->request->tenant, cmd->request->key };
    struct hf_remembered first;
    enum hf_found found =
        hf_key_valid(cmd, key.name) ? view->token(view->ctx, key, &first) : HF_ABSENT;
    if (found == HF_UNREADABLE) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
    } else if (found == HF_FOUND && now < first.expires_at) {
        hf_token_of_call(&first, &plan->token);
        plan->answer = first.answer;
    } else {
        hf_read_claim(view, cmd, now, plan);
    }
}
