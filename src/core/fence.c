#include "core/fence.h"

#include "base/bug.h"
#include "base/bytes.h"
#include "core/answer.h"
#include "core/merge.h"
#include "core/name.h"

bool hf_fence_stale(uint64_t fence, uint64_t highest)
{
    return fence != 0 && (HF_BUG(fence_equal) ? fence < highest : fence <= highest);
}

/* The register, or an empty one of `type` at version 0. False: unreadable, the answer is complete. */
static bool register_find(const struct hf_view *view, struct hf_scoped name, enum hf_register_type type,
                          struct hf_register *out, struct hf_plan *plan)
{
    enum hf_found found = view->reg(view->ctx, name, out);
    if (found == HF_UNREADABLE) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return false;
    }
    if (found == HF_ABSENT)
        *out = (struct hf_register){ .tenant = name.tenant, .name = name.name, .value.type = type };
    return true;
}

/* Write the register with the stored form `form`, one version up, and answer with it. */
static void register_change(struct hf_register *reg, struct hf_bytes form, hf_time now, struct hf_plan *plan)
{
    reg->value.bytes = form;
    reg->version += 1;
    reg->changed_at = now;
    hf_plan_row(plan, HF_ROW_REGISTER)->reg = *reg;
    hf_answer_record(plan, HF_RECORD_REGISTER)->reg = *reg;
}

static enum hf_status write_status(const struct hf_request *r, const struct hf_register *reg)
{
    if (reg->value.type != HF_TYPE_PLAIN)
        return HF_INVALID_REQUEST;
    if (hf_fence_stale(r->write.fence, reg->fence))
        return HF_STALE_FENCE;
    if (r->write.has_if_version && r->write.if_version != reg->version && !HF_BUG(version_ignored))
        return HF_VERSION_MISMATCH;
    return HF_OK;
}

void hf_register_write(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                       struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    if (!hf_name_valid(r->write.name) || r->write.value.size > HF_VALUE_MAX) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    struct hf_scoped name = { r->tenant, r->write.name };
    struct hf_register reg;
    if (!register_find(view, name, HF_TYPE_PLAIN, &reg, plan))
        return;
    enum hf_status status = write_status(r, &reg);
    if (status != HF_OK) {
        hf_answer_status(plan, status);
        return;
    }
    if (r->write.fence != 0)
        reg.fence = r->write.fence;
    register_change(&reg, r->write.value, now, plan);
}

/* The value that `reg` has after merging `given`, both in stored form. */
static enum hf_status merge_form(const struct hf_register *reg, struct hf_bytes given,
                                 enum hf_register_type type, struct hf_plan *plan, struct hf_bytes *out)
{
    if (reg->value.type != type)
        return HF_INVALID_REQUEST;
    if (reg->version > 0)
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
    if (!register_find(view, name, value->type, &reg, plan))
        return;
    enum hf_status status = merge_form(&reg, given, value->type, plan, &joined);
    if (status != HF_OK) { /* the register shows why */
        hf_answer_record(plan, HF_RECORD_REGISTER)->reg = reg;
        plan->answer.status = status;
        return;
    }
    if (reg.version > 0 && hf_bytes_equal(joined, reg.value.bytes))
        hf_answer_record(plan, HF_RECORD_REGISTER)->reg = reg;
    else if (cmd->refuse_writes)
        hf_answer_status(plan, HF_STORAGE_FAILURE);
    else
        register_change(&reg, joined, now, plan);
}
