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

/* Expire the overdue holds on `resource`, so that the new hold need not wait for the sweeper.
 * `expired`: the ordinal of one that the plan has expired already, or 0. True: *changed is set if
 * there was any. False: unreadable. */
static bool expire_overdue(const struct hf_view *view, hf_time now, uint64_t expired,
                           struct hf_resource *resource, struct hf_plan *plan, bool *changed)
{
    struct hf_hold overdue[HF_OVERDUE_MAX];
    struct hf_scoped name = { resource->tenant, resource->name };
    size_t count;
    if (resource->held == 0)
        return true;
    if (view->overdue(view->ctx, name, now, overdue, &count) != HF_FOUND)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (overdue[i].ordinal == expired)
            continue;
        hf_hold_expire_row(&overdue[i], now, resource, plan);
        *changed = true;
    }
    return true;
}

static bool has_room(const struct hf_resource *resource)
{
    return resource->open && resource->held + resource->confirmed < resource->capacity;
}

/* May another hold be placed? HF_OK, HF_STALE_FENCE or HF_RESOURCE_UNAVAILABLE. */
static enum hf_status place_status(const struct hf_resource *resource, uint64_t fence)
{
    if (hf_fence_stale(fence, resource->fence, resource->require_fence))
        return HF_STALE_FENCE;
    return has_room(resource) ? HF_OK : HF_RESOURCE_UNAVAILABLE;
}

/* Plan the new hold, with the resource, requester and duration that `hold` has, and in its state;
 * answer with it. The caller counts its unit. */
static void hold_new(const struct hf_command *cmd, hf_time now, int64_t duration_ms,
                     struct hf_hold *hold, struct hf_resource *resource, struct hf_plan *plan)
{
    memcpy(hold->id, cmd->fresh_id, sizeof hold->id);
    hold->ordinal = cmd->fresh_ordinal;
    hold->previous = resource->newest;
    hold->placed_at = now;
    hold->expires_at = now + duration_ms;
    hold->ended_at = hold->state == HF_HELD ? 0 : now;
    resource->newest = hold->ordinal;
    plan->ordinal_used = true;
    hf_plan_row(plan, HF_ROW_HOLD)->hold = *hold;
    hf_answer_record(plan, HF_RECORD_HOLD)->hold = *hold;
}

/* Plan the new hold, answer with it, and take a unit of `resource`. */
static void place_new(const struct hf_command *cmd, hf_time now, struct hf_resource *resource,
                      struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    struct hf_hold hold = { .state = HF_HELD,
                            .tenant = r->tenant,
                            .resource = r->place_hold.resource,
                            .requester = r->place_hold.requester };
    hold_new(cmd, now, r->place_hold.duration_ms, &hold, resource, plan);
    resource->held += 1;
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
    if (found == HF_UNREADABLE || !expire_overdue(view, now, 0, &resource, plan, &changed)) {
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

/* End the held `hold` as the arrow says, and answer with it. */
static void end(const struct hf_view *view, const struct arrow *arrow, struct hf_hold *hold,
                hf_time now, struct hf_plan *plan)
{
    struct hf_resource resource;
    if (!resource_of(view, hold, &resource, plan))
        return;
    HF_ASSERT(resource.held > 0);
    hold->state = arrow->to;
    hold->ended_at = now;
    resource.held -= 1;
    if (arrow->to == HF_CONFIRMED)
        resource.confirmed += 1;
    hf_plan_row(plan, HF_ROW_HOLD)->hold = *hold;
    hf_plan_row(plan, HF_ROW_RESOURCE)->resource = resource;
    hf_answer_record(plan, HF_RECORD_HOLD)->hold = *hold;
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
    if (status == HF_OK)
        end(view, arrow, &hold, now, plan);
    else
        hf_answer_status(plan, status);
}

/* ---- A hold that follows another ---- */

/* Has no hold followed this one? HF_OK, HF_NOT_HELD or HF_STORAGE_FAILURE. */
static enum hf_status last_status(const struct hf_view *view, const struct hf_hold *hold)
{
    struct hf_successor before;
    struct hf_scoped id = { hold->tenant, hf_str(hold->id) };
    enum hf_found found = view->successor(view->ctx, id, &before);
    if (found == HF_UNREADABLE)
        return HF_STORAGE_FAILURE;
    return found == HF_FOUND ? HF_NOT_HELD : HF_OK;
}

/* Plan the hold that follows `original`, and answer with it. The caller has counted its unit. */
static void follow(const struct hf_command *cmd, hf_time now, const struct hf_hold *original,
                   struct hf_hold *hold, struct hf_resource *resource, struct hf_plan *plan)
{
    hold->tenant = original->tenant;
    hold->resource = original->resource;
    hold->requester = original->requester;
    hold_new(cmd, now, original->expires_at - original->placed_at, hold, resource, plan);
    hf_plan_row(plan, HF_ROW_RESOURCE)->resource = *resource;

    struct hf_successor *successor = &hf_plan_row(plan, HF_ROW_SUCCESSOR)->successor;
    successor->tenant = original->tenant;
    memcpy(successor->original, original->id, sizeof successor->original);
    memcpy(successor->successor, cmd->fresh_id, sizeof successor->successor);
}

/* ---- Giving back ---- */

/* Plan the record that gives `original` back, and answer with it. */
static void reverse_new(const struct hf_command *cmd, hf_time now, const struct hf_hold *original,
                        struct hf_resource *resource, struct hf_plan *plan)
{
    struct hf_hold hold = { .state = HF_RELEASED };
    HF_ASSERT(resource->confirmed > 0);
    memcpy(hold.reverses, original->id, sizeof hold.reverses);
    resource->confirmed -= 1;
    follow(cmd, now, original, &hold, resource, plan);
}

void hf_hold_reverse(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan)
{
    struct hf_scoped id = { cmd->request->tenant, cmd->request->hold.id };
    struct hf_hold original;
    if (!hf_answer_found(plan, view->hold(view->ctx, id, &original)))
        return;
    /* A reversal is RELEASED, so it cannot be given back. */
    enum hf_status status =
        original.state == HF_CONFIRMED ? last_status(view, &original) : HF_NOT_HELD;
    if (status != HF_OK) {
        hf_answer_status(plan, status);
        return;
    }
    struct hf_resource resource;
    if (resource_of(view, &original, &resource, plan))
        reverse_new(cmd, now, &original, &resource, plan);
}

/* ---- The late payment ---- */

/* The window of `late` has elapsed: confirm a new hold in its place, or refuse. */
static void reacquire(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                      const struct hf_hold *late, struct hf_plan *plan)
{
    struct hf_resource resource;
    if (cmd->refuse_writes && !cmd->has_reserve) { /* the record that it makes stays */
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return;
    }
    if (!resource_of(view, late, &resource, plan))
        return;
    bool changed = late->state == HF_HELD;
    if (changed)
        hf_hold_expire_row(late, now, &resource, plan);
    if (!expire_overdue(view, now, late->ordinal, &resource, plan, &changed)) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return;
    }
    if (has_room(&resource)) { /* a late confirm takes no fence */
        struct hf_hold hold = { .state = HF_CONFIRMED };
        memcpy(hold.reacquires, late->id, sizeof hold.reacquires);
        resource.confirmed += 1;
        follow(cmd, now, late, &hold, &resource, plan);
        return;
    }
    hf_answer_status(plan, HF_WINDOW_ELAPSED);
    plan->answer.refund = true;
    if (changed)
        hf_plan_row(plan, HF_ROW_RESOURCE)->resource = resource;
}

void hf_hold_confirm_late(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                          struct hf_plan *plan)
{
    struct hf_scoped id = { cmd->request->tenant, cmd->request->hold.id };
    struct hf_hold hold;
    if (!hf_answer_found(plan, view->hold(view->ctx, id, &hold)))
        return;
    enum hf_status status = end_status(&arrows[HF_CONFIRM], &hold, now);
    if (status == HF_OK) {
        end(view, &arrows[HF_CONFIRM], &hold, now, plan);
        return;
    }
    if (status == HF_NOT_HELD && hold.state == HF_EXPIRED)
        status = last_status(view, &hold);
    if (status == HF_OK || status == HF_WINDOW_ELAPSED)
        reacquire(view, cmd, now, &hold, plan);
    else
        hf_answer_status(plan, status);
}

/* ---- Resources ---- */

void hf_resource_set(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    if (!hf_name_valid(r->set_resource.name) || r->set_resource.capacity > HF_CAPACITY_MAX ||
        (unsigned)r->set_resource.open > HF_SET_CLOSED ||
        (unsigned)r->set_resource.require_fence > HF_NOT_REQUIRED) {
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
    is.require_fence = hf_fence_require(r->set_resource.require_fence, was.require_fence);
    bool changed = found == HF_ABSENT || is.capacity != was.capacity || is.open != was.open ||
                   is.require_fence != was.require_fence;
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
