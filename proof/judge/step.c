/* step.c: which rule an operation is held against, what time it may say, and which faults are
 * excused. */
#include "judge/model.h"

/* Those that change nothing, and those that need a key. */
enum sort { SORT_READ, SORT_WRITE, SORT_KEYED };

static const struct {
    enum hf_action action;
    enum sort sort;
    void (*rule)(struct judge_step *s);
} rules[] = {
    { HF_PLACE_HOLD, SORT_KEYED, judge_rule_place },
    { HF_CONFIRM, SORT_KEYED, judge_rule_end },
    { HF_RELEASE, SORT_KEYED, judge_rule_end },
    { HF_EXPIRE, SORT_KEYED, judge_rule_end },
    { HF_REVERSE, SORT_KEYED, judge_rule_end },
    { HF_CONFIRM_LATE, SORT_KEYED, judge_rule_confirm_late },
    { HF_SET_RESOURCE, SORT_WRITE, judge_rule_set_resource },
    { HF_SET_GUARD, SORT_WRITE, judge_rule_set_guard },
    { HF_CHECK, SORT_READ, judge_rule_identity },
    { HF_RECORD, SORT_WRITE, judge_rule_identity },
    { HF_ADMIT, SORT_WRITE, judge_rule_identity },
    { HF_BEGIN, SORT_WRITE, judge_rule_begin },
    { HF_COMPLETE, SORT_WRITE, judge_rule_settle },
    { HF_FAIL, SORT_WRITE, judge_rule_settle },
    { HF_HEARTBEAT, SORT_WRITE, judge_rule_settle },
    { HF_ABANDON, SORT_WRITE, judge_rule_settle },
    { HF_GRANT, SORT_KEYED, judge_rule_grant },
    { HF_RENEW, SORT_WRITE, judge_rule_renew },
    { HF_RETURN, SORT_WRITE, judge_rule_renew },
    { HF_WRITE, SORT_KEYED, judge_rule_write },
    { HF_MERGE, SORT_WRITE, judge_rule_merge },
    { HF_APPLY, SORT_KEYED, judge_rule_apply },
    { HF_DELETE_REGISTER, SORT_KEYED, judge_rule_delete_register },
    { HF_DELETE_LEASE, SORT_KEYED, judge_rule_delete_lease },
    { HF_GET_HOLD, SORT_READ, judge_rule_get_hold },
    { HF_GET_RESOURCE, SORT_READ, judge_rule_get_resource },
    { HF_GET_GUARD, SORT_READ, judge_rule_get_guard },
    { HF_GET_CLAIM, SORT_READ, judge_rule_get_claim },
    { HF_GET_LEASE, SORT_READ, judge_rule_get_lease },
    { HF_GET_REGISTER, SORT_READ, judge_rule_get_register },
    { HF_GET_TOKEN, SORT_READ, judge_rule_get_token },
    { HF_GET_VALUE, SORT_READ, judge_rule_get_value },
};

/* The function of an apply may have asked for the fault itself. */
static bool asked_for(const struct judge_op *op)
{
    if (op->request.action != HF_APPLY)
        return false;
    if (!op->request.apply.fn && op->effect.runs == 0)
        return op->status == HF_MISUSE;
    if (op->effect.runs == 0 || op->effect.returned == HF_OK || op->effect.returned == HF_REFUSED)
        return false;
    bool fault =
        op->effect.returned >= HF_STORAGE_FAILURE && op->effect.returned < HF_INDETERMINATE;
    return op->status == (fault ? op->effect.returned : HF_MISUSE);
}

/* Does it look at the record of a hold: of the one that it names, or of one that is overdue? */
static bool needs_hold(enum hf_action action)
{
    switch (action) {
    case HF_PLACE_HOLD:
    case HF_CONFIRM:
    case HF_RELEASE:
    case HF_EXPIRE:
    case HF_REVERSE:
    case HF_CONFIRM_LATE:
    case HF_GET_HOLD: return true;
    default: return false;
    }
}

/* Is it about something that was begun, and can it be ended? For that there is room at every limit
 * of memory. */
static bool can_be_ended(struct judge_step *s)
{
    if (s->op->request.invalid)
        return false;
    switch (s->op->request.action) {
    case HF_CONFIRM:
    case HF_RELEASE: return judge_hold_can_end(s);
    case HF_COMPLETE:
    case HF_FAIL:
    case HF_HEARTBEAT:
    case HF_ABANDON: return judge_claim_can_end(s);
    case HF_RENEW:
    case HF_RETURN: return judge_lease_can_end(s);
    default: return false;
    }
}

/* A fault has no effect, so all there is to judge is whether it is excused. A full disk excuses
 * writes alone: what is remembered is still answered, and reading needs no room. */
static void judge_fault(struct judge_step *s, enum sort sort)
{
    const struct judge_op *op = s->op;
    if (op->effect.runs > 1)
        judge_object(s, "IR8: the function ran %u times in one call", op->effect.runs);
    if (asked_for(op)) {
        if (sort == SORT_KEYED && op->effect.runs > 0 && judge_key_remembered(s))
            judge_object(s, "IR8: the function ran again for a key that was answered");
        return;
    }
    bool storage = op->status == HF_STORAGE_FAILURE;
    if (op->weather & JUDGE_NO_MEMORY && (storage || op->status == HF_NO_MEMORY))
        return;
    if (op->weather & JUDGE_NO_INDEX && storage && needs_hold(op->request.action)) {
        if (sort == SORT_KEYED && judge_key_remembered(s))
            judge_object(s, "an index that is not right does not excuse it: the key has an answer");
        return;
    }
    if (op->weather & (JUDGE_NO_ROOM | JUDGE_AT_LIMIT) && storage) {
        if (sort == SORT_READ)
            judge_object(s, "a full store does not excuse it: reading needs no room");
        else if (sort == SORT_KEYED && judge_key_remembered(s))
            judge_object(s, "a full store does not excuse it: the key has an answer");
        else if (!(op->weather & JUDGE_NO_ROOM) && can_be_ended(s))
            judge_object(s, "a limit of memory does not excuse it: what was begun can be ended");
        return;
    }
    judge_object(s, "nothing excuses the fault");
}

static void judge_time(struct judge_step *s)
{
    const struct judge_op *op = s->op;
    if (op->now > op->wall)
        judge_object(s,
                     "engine time is past the wall clock, or past what it could be believed: %lld",
                     (long long)op->wall);
    if (op->now < s->j->now)
        judge_object(s, "engine time ran back from %lld", (long long)s->j->now);
    if (op->answer.status != op->status && op->request.action != HF_GET_TOKEN)
        judge_object(s, "the answer's status is %s", judge_status_name(op->answer.status));
}

void judge_step_run(struct judge_step *s, struct judge *j, const struct judge_op *op, bool quiet)
{
    s->j = j;
    s->op = op;
    s->now = op->now;
    s->serial = ++j->step;
    s->quiet = quiet;
    s->bad = s->lasting = s->unsure = false;
    s->saw = 0;
    s->note = quiet ? op->note : (struct judge_note){ .entry = NULL };
    s->touched_count = 0;
    s->why[0] = '\0';
    size_t i = 0;
    while (i < sizeof rules / sizeof *rules && rules[i].action != op->request.action)
        i++;
    if (i == sizeof rules / sizeof *rules) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST) | JUDGE_IS(HF_MISUSE),
                    "there is no such action");
        return;
    }
    if (op->status >= HF_INDETERMINATE) {
        judge_object(s, "what was decided cannot be indeterminate");
        return;
    }
    if (op->status >= HF_STORAGE_FAILURE) {
        if (s->now ==
            0) /* it was not decided, so it has no time: take the latest that it can have been */
            s->now = op->wall;
        judge_fault(s, rules[i].sort);
        return;
    }
    if (!op->has_result) {
        judge_object(s, "an answer without a result");
        return;
    }
    if (!quiet)
        judge_time(s);
    if (op->request.tenant.size > HF_TENANT_MAX)
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the tenant's name is too long");
    else if (rules[i].sort == SORT_KEYED)
        judge_rule_keyed(s, rules[i].rule);
    else if (op->request.invalid)
        judge_rule_invalid(s);
    else
        rules[i].rule(s);
}

void judge_step_note(const struct judge_step *s, struct judge_op *op)
{
    op->lasting = s->lasting;
    op->unsure = s->unsure;
    op->saw = s->saw;
    op->note = s->note;
}
