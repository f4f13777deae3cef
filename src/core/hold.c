#include "core/hold.h"

#include "base/assert.h"
#include "core/answer.h"
#include "core/fence.h"
#include "core/name.h"

/* ---- Placing ---- */

void hf_hold_expire_row(const struct hf_hold *hold, hf_time now, struct hf_resource *resource,
                        struct hf_plan *plan)
{
    HF_ASSERT(hold->state == HF_HELD && now >= hold->expires_at && resource->held > 0);
    struct hf_hold *expired = &hf_plan_row(plan, HF_ROW_HOLD)->hold;
    *expired = *hold;
    expired->state = HF_EXPIRED;
    expired->ended_at = now;
    resource->held -= 1;
}

/* Expire the overdue holds on `resource`, so that the new hold need not wait for the sweeper. True:
 * *changed says whether there was any. False: unreadable. */
static bool expire_overdue(const struct hf_view *view, hf_time now, struct hf_resource *resource,
                           struct hf_plan *plan, bool *changed)
{
    struct hf_hold overdue[HF_OVERDUE_MAX];
    struct hf_scoped name = { resource->tenant, resource->name };
    size_t count;
    if (view->overdue(view->ctx, name, now, overdue, &count) != HF_FOUND)
        return false;
    for (size_t i = 0; i < count; i++)
        hf_hold_expire_row(&overdue[i], now, resource, plan);
    *changed = count > 0;
    return true;
}

/* Has the resource room for another hold? HF_OK, HF_STALE_FENCE or HF_RESOURCE_UNAVAILABLE. */
static enum hf_status place_status(const struct hf_resource *resource, uint64_t fence)
{
    if (hf_fence_stale(fence, resource->fence))
        return HF_STALE_FENCE;
    if (!resource->open || resource->held + resource->confirmed >= resource->capacity)
        return HF_RESOURCE_UNAVAILABLE;
    return HF_OK;
}

/* Plan the new hold, answer with it, and take a unit of `resource`. */
static void place_new(const struct hf_command *cmd, hf_time now, struct hf_resource *resource,
                      struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    struct hf_hold *hold = &hf_plan_row(plan, HF_ROW_HOLD)->hold;
    memcpy(hold->id, cmd->fresh_id, sizeof hold->id);
    hold->ordinal = cmd->fresh_ordinal;
    hold->previous = resource->newest;
    hold->state = HF_HELD;
    hold->tenant = r->tenant;
    hold->resource = r->place_hold.resource;
    hold->requester = r->place_hold.requester;
    hold->placed_at = now;
    hold->expires_at = now + r->place_hold.duration_ms;
    plan->ordinal_used = true;
    hf_answer_record(plan, HF_RECORD_HOLD)->hold = *hold;

    resource->held += 1;
    resource->newest = hold->ordinal;
    if (r->place_hold.fence != 0)
        resource->fence = r->place_hold.fence;
}

void hf_hold_place(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                   struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    if (!hf_name_valid(r->place_hold.resource) || !hf_name_valid(r->place_hold.requester) ||
        !hf_duration_valid(r->place_hold.duration_ms)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    struct hf_resource resource;
    struct hf_scoped name = { r->tenant, r->place_hold.resource };
    enum hf_found found = view->resource(view->ctx, name, &resource);
    if (found == HF_ABSENT) {
        if (cmd->rules->registry_strict) {
            hf_answer_status(plan, HF_RESOURCE_UNAVAILABLE);
            return;
        }
        resource = (struct hf_resource){
            .tenant = r->tenant, .name = name.name, .capacity = 1, .open = true, .created_at = now
        };
    }
    bool changed = false;
    if (found == HF_UNREADABLE ||
        (resource.held > 0 && !expire_overdue(view, now, &resource, plan, &changed))) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return;
    }
    enum hf_status status = place_status(&resource, r->place_hold.fence);
    if (status == HF_OK) {
        place_new(cmd, now, &resource, plan);
        changed = true;
    } else {
        hf_answer_status(plan, status);
    }
    if (changed)
        hf_plan_row(plan, HF_ROW_RESOURCE)->resource = resource;
}

/* ---- Ending ---- */

enum when { AT_ANY_TIME, BEFORE_THE_END, FROM_THE_END_ON };

/* The arrows out of HELD: the new state, when it is allowed, and the answer if it is not. */
static const struct arrow {
    enum hf_hold_state to;
    enum when when;
    enum hf_status otherwise;
} arrows[] = {
    [HF_CONFIRM] = { HF_CONFIRMED, BEFORE_THE_END, HF_WINDOW_ELAPSED },
    [HF_RELEASE] = { HF_RELEASED, AT_ANY_TIME, HF_OK },
    [HF_EXPIRE] = { HF_EXPIRED, FROM_THE_END_ON, HF_WINDOW_NOT_ELAPSED },
};

static enum hf_status end_status(const struct arrow *arrow, const struct hf_hold *hold, hf_time now)
{
    if (hold->state != HF_HELD)
        return HF_NOT_HELD;
    enum when is = now < hold->expires_at ? BEFORE_THE_END : FROM_THE_END_ON;
    return arrow->when == AT_ANY_TIME || arrow->when == is ? HF_OK : arrow->otherwise;
}

/* The hold's resource. Every hold has one, so a missing resource means that the store cannot read
 * it. */
static bool resource_of(const struct hf_view *view, const struct hf_hold *hold,
                        struct hf_resource *resource, struct hf_plan *plan)
{
    struct hf_scoped name = { hold->tenant, hold->resource };
    if (view->resource(view->ctx, name, resource) == HF_FOUND)
        return true;
    hf_answer_status(plan, HF_STORAGE_FAILURE);
    return false;
}

void hf_hold_end(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                 struct hf_plan *plan)
{
    const struct arrow *arrow = &arrows[cmd->request->action];
    struct hf_scoped id = { cmd->request->tenant, cmd->request->hold.id };
    struct hf_hold hold;
    if (!hf_answer_found(plan, view->hold(view->ctx, id, &hold)))
        return;
    enum hf_status status = end_status(arrow, &hold, now);
    if (status != HF_OK) {
        hf_answer_status(plan, status);
        return;
    }
    struct hf_resource resource;
    if (!resource_of(view, &hold, &resource, plan))
        return;
    HF_ASSERT(resource.held > 0);
    hold.state = arrow->to;
    hold.ended_at = now;
    resource.held -= 1;
    if (arrow->to == HF_CONFIRMED)
        resource.confirmed += 1;
    hf_plan_row(plan, HF_ROW_HOLD)->hold = hold;
    hf_plan_row(plan, HF_ROW_RESOURCE)->resource = resource;
    hf_answer_record(plan, HF_RECORD_HOLD)->hold = hold;
}

/* ---- Giving back ---- */

/* May the hold be given back? HF_OK, HF_NOT_HELD or HF_STORAGE_FAILURE. */
static enum hf_status reverse_status(const struct hf_view *view, const struct hf_hold *hold)
{
    /* A reversal is RELEASED, so it cannot be given back. */
    if (hold->state != HF_CONFIRMED)
        return HF_NOT_HELD;
    struct hf_reversal before;
    struct hf_scoped id = { hold->tenant, hf_str(hold->id) };
    enum hf_found found = view->reversal(view->ctx, id, &before);
    if (found == HF_UNREADABLE)
        return HF_STORAGE_FAILURE;
    return found == HF_FOUND ? HF_NOT_HELD : HF_OK;
}

/* Plan the record that gives `original` back, and answer with it. */
static void reverse_new(const struct hf_command *cmd, hf_time now, const struct hf_hold *original,
                        struct hf_resource *resource, struct hf_plan *plan)
{
    struct hf_hold *hold = &hf_plan_row(plan, HF_ROW_HOLD)->hold;
    *hold = *original;
    memcpy(hold->id, cmd->fresh_id, sizeof hold->id);
    memcpy(hold->reverses, original->id, sizeof hold->reverses);
    hold->ordinal = cmd->fresh_ordinal;
    hold->previous = resource->newest;
    hold->state = HF_RELEASED;
    hold->placed_at = hold->ended_at = now;
    hold->expires_at = now + (original->expires_at - original->placed_at);
    plan->ordinal_used = true;
    hf_answer_record(plan, HF_RECORD_HOLD)->hold = *hold;

    HF_ASSERT(resource->confirmed > 0);
    resource->confirmed -= 1;
    resource->newest = hold->ordinal;
    hf_plan_row(plan, HF_ROW_RESOURCE)->resource = *resource;

    struct hf_reversal *reversal = &hf_plan_row(plan, HF_ROW_REVERSAL)->reversal;
    reversal->tenant = original->tenant;
    memcpy(reversal->original, original->id, sizeof reversal->original);
    memcpy(reversal->reversal, cmd->fresh_id, sizeof reversal->reversal);
}

void hf_hold_reverse(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan)
{
    struct hf_scoped id = { cmd->request->tenant, cmd->request->hold.id };
    struct hf_hold original;
    if (!hf_answer_found(plan, view->hold(view->ctx, id, &original)))
        return;
    enum hf_status status = reverse_status(view, &original);
    if (status != HF_OK) {
        hf_answer_status(plan, status);
        return;
    }
    struct hf_resource resource;
    if (resource_of(view, &original, &resource, plan))
        reverse_new(cmd, now, &original, &resource, plan);
}

/* ---- Resources ---- */

void hf_resource_set(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    if (!hf_name_valid(r->set_resource.name) || r->set_resource.capacity > HF_CAPACITY_MAX ||
        (unsigned)r->set_resource.open > HF_SET_CLOSED) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    struct hf_scoped name = { r->tenant, r->set_resource.name };
    struct hf_resource was, is;
    enum hf_found found = view->resource(view->ctx, name, &was);
    if (found == HF_ABSENT)
        was = (struct hf_resource){
            .tenant = name.tenant, .name = name.name, .capacity = 1, .open = true, .created_at = now
        };
    if (found == HF_UNREADABLE) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return;
    }
    is = was;
    if (r->set_resource.capacity != 0)
        is.capacity = r->set_resource.capacity;
    if (r->set_resource.open != HF_LEAVE)
        is.open = r->set_resource.open == HF_SET_OPEN;
    bool changed = found == HF_ABSENT || is.capacity != was.capacity || is.open != was.open;
    if (is.capacity < is.held + is.confirmed) {
        hf_answer_status(plan, HF_RESOURCE_UNAVAILABLE);
    } else if (changed && cmd->refuse_writes) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
    } else {
        hf_answer_record(plan, HF_RECORD_RESOURCE)->resource = is;
        if (changed)
            hf_plan_row(plan, HF_ROW_RESOURCE)->resource = is;
    }
}
