#include "core/fence.h"

#include "base/bytes.h"
#include "core/answer.h"
#include "core/merge.h"
#include "core/name.h"

bool hf_fence_stale(uint64_t fence, uint64_t highest, bool required)
{
    return fence == 0 ? required : fence <= highest;
}

bool hf_fence_require(enum hf_require wish, bool required)
{
    return wish == HF_REQUIRE_UNCHANGED ? required : wish == HF_REQUIRED;
}

bool hf_register_there(const struct hf_register *reg)
{
    return reg->value.type != HF_TYPE_DELETED;
}

bool hf_register_forgotten(const struct hf_register *reg, hf_time now)
{
    return !hf_register_there(reg) && now >= (hf_time)hf_get64(reg->value.bytes.data);
}

/* The register. If there is none, an empty one of `type` that continues the version and the fence
 * of a deleted register of this name. there: out. False: unreadable, the answer is complete. */
static bool register_find(const struct hf_view *view, struct hf_scoped name,
                          enum hf_register_type type, hf_time now, struct hf_register *out,
                          bool *there, struct hf_plan *plan)
{
    enum hf_found found = view->reg(view->ctx, name, out);
    if (found == HF_UNREADABLE) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return false;
    }
    *there = found == HF_FOUND && hf_register_there(out);
    if (*there)
        return true;
    struct hf_register left = { .version = 0 };
    if (found == HF_FOUND && !hf_register_forgotten(out, now))
        left = *out;
    *out = (struct hf_register){ .tenant = name.tenant,
                                 .name = name.name,
                                 .value.type = type,
                                 .version = left.version,
                                 .fence = left.fence,
                                 .require_fence = left.require_fence };
    return true;
}

/* Write the register with the stored form `form`, one version up, and answer with it. */
static void register_change(struct hf_register *reg, struct hf_bytes form, hf_time now,
                            struct hf_plan *plan)
{
    reg->value.bytes = form;
    reg->version += 1;
    reg->changed_at = now;
    hf_plan_row(plan, HF_ROW_REGISTER)->reg = *reg;
    hf_answer_record(plan, HF_RECORD_REGISTER)->reg = *reg;
}

/* The checks that write and delete share. there: the register exists; if not, the caller sees
 * version 0. */
static enum hf_status write_status(const struct hf_request *r, const struct hf_register *reg,
                                   bool there)
{
    if (hf_fence_stale(r->write.fence, reg->fence, reg->require_fence))
        return HF_STALE_FENCE;
    if (r->write.has_if_version && r->write.if_version != (there ? reg->version : 0))
        return HF_VERSION_MISMATCH;
    return HF_OK;
}

void hf_register_write(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                       struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    if (!hf_name_valid(r->write.name) || r->write.value.size > HF_VALUE_MAX ||
        (unsigned)r->write.require_fence > HF_NOT_REQUIRED) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    struct hf_scoped name = { r->tenant, r->write.name };
    struct hf_register reg;
    bool there;
    if (!register_find(view, name, HF_TYPE_PLAIN, now, &reg, &there, plan))
        return;
    enum hf_status status =
        reg.value.type != HF_TYPE_PLAIN ? HF_INVALID_REQUEST : write_status(r, &reg, there);
    if (status != HF_OK) {
        hf_answer_status(plan, status);
        return;
    }
    if (r->write.fence != 0)
        reg.fence = r->write.fence;
    reg.require_fence = hf_fence_require(r->write.require_fence, reg.require_fence);
    register_change(&reg, r->write.value, now, plan);
}

void hf_register_delete(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                        struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    struct hf_scoped name = { r->tenant, r->write.name };
    struct hf_register reg;
    bool there;
    if (!hf_name_valid(r->write.name)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    if (!register_find(view, name, HF_TYPE_PLAIN, now, &reg, &there, plan))
        return;
    enum hf_status status = there ? write_status(r, &reg, true) : HF_NOT_KNOWN;
    unsigned char *form = hf_plan_room(plan, 8);
    if (status != HF_OK || !form) {
        hf_answer_status(plan, form ? status : HF_NO_MEMORY);
        return;
    }
    if (r->write.fence != 0)
        reg.fence = r->write.fence;
    hf_put64(form,
             (uint64_t)(reg.fence != 0 ? INT64_MAX : now + cmd->rules->idempotency_window_ms));
    reg.value = (struct hf_value){ .type = HF_TYPE_DELETED };
    register_change(&reg, hf_mem(form, 8), now, plan);
}

/* The value that `reg` has after merging `given`, both in stored form. */
static enum hf_status merge_form(const struct hf_register *reg, bool there, struct hf_bytes given,
                                 enum hf_register_type type, struct hf_plan *plan,
                                 struct hf_bytes *out)
{
    if (reg->value.type != type)
        return HF_INVALID_REQUEST;
    if (there)
        return hf_merge_join(type, reg->value.bytes, given, plan, out);
    *out = given;
    return HF_OK;
}

void hf_register_merge(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                       struct hf_plan *plan)
{
    const struct hf_value *value = cmd->request->merge.value;
    struct hf_scoped name = { cmd->request->tenant, cmd->request->merge.name };
    struct hf_bytes given, joined;
    if (!hf_name_valid(name.name) || !value || hf_merge_encode(value, plan, &given) != HF_OK) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    struct hf_register reg;
    bool there;
    if (!register_find(view, name, value->type, now, &reg, &there, plan))
        return;
    enum hf_status status = merge_form(&reg, there, given, value->type, plan, &joined);
    if (status != HF_OK) { /* the register shows why */
        hf_answer_record(plan, HF_RECORD_REGISTER)->reg = reg;
        plan->answer.status = status;
        return;
    }
    if (there && hf_bytes_equal(joined, reg.value.bytes))
        hf_answer_record(plan, HF_RECORD_REGISTER)->reg = reg;
    else if (cmd->refuse_writes)
        hf_answer_status(plan, HF_STORAGE_FAILURE);
    else
        register_change(&reg, joined, now, plan);
}
