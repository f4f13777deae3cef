/* register.c: a named value, written with a fence or a version, or merged by its algebra. */
#include "judge/model.h"

static struct hf_bytes none(void)
{
    return hf_mem("", 0);
}

static void shown(struct judge_step *s, const struct hf_register *want)
{
    const struct hf_register *got = &s->op->answer.reg;
    if (!judge_has(s, HF_RECORD_REGISTER))
        return;
    if (!judge_value_same(&want->value, &got->value))
        judge_object(s, "the value of the register is wrong");
    else if (!judge_bytes_equal(want->tenant, got->tenant) ||
             !judge_bytes_equal(want->name, got->name) || want->version != got->version ||
             want->fence != got->fence || want->require_fence != got->require_fence ||
             want->changed_at != got->changed_at)
        judge_object(s,
                     "the register should have version %llu, fence %llu and be changed at %lld, "
                     "and has %llu, %llu and %lld",
                     (unsigned long long)want->version, (unsigned long long)want->fence,
                     (long long)want->changed_at, (unsigned long long)got->version,
                     (unsigned long long)got->fence, (long long)got->changed_at);
}

/* Is there a register, and not only what a deleted one has left? */
static bool there(const struct judge_record *r)
{
    return r->body.present && r->body.reg.value.type != HF_TYPE_DELETED;
}

/* Is anything known of it? What a deleted one has left, its version and its fence, is forgotten in
 * time, unless it has a fence. */
static bool known(const struct judge_record *r, hf_time now)
{
    return there(r) || (r->body.present && now < r->body.reg.value.number);
}

static struct hf_register *changed(struct judge_step *s, struct judge_record *r)
{
    bool forgotten = !known(r, s->now);
    struct judge_body *b = judge_change(s, r);
    if (forgotten)
        b->reg = (struct hf_register){ .tenant = r->tenant, .name = r->name };
    b->present = true;
    b->reg.version++;
    b->reg.changed_at = s->now;
    return &b->reg;
}

/* Is a write with this fence refused? Fence 0 is none. */
static bool stale(const struct hf_register *reg, uint64_t fence)
{
    return fence == 0 ? reg->require_fence : fence <= reg->fence;
}

void judge_rule_write(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    struct judge_record *r = NULL;
    if (judge_name_valid(q->write.name) && q->write.value.size <= HF_VALUE_MAX &&
        (unsigned)q->write.require_fence <= HF_NOT_REQUIRED)
        r = judge_look(s, JUDGE_REGISTER, q->write.name, none());
    if (!r || (there(r) && r->body.reg.value.type != HF_TYPE_PLAIN)) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST),
                    "the request is malformed, or the register is a merged one");
        return;
    }
    uint64_t version = there(r) ? r->body.reg.version : 0;
    uint64_t may = 0;
    if (known(r, s->now) && stale(&r->body.reg, q->write.fence))
        may |= JUDGE_IS(HF_STALE_FENCE);
    if (q->write.has_if_version && q->write.if_version != version)
        may |= JUDGE_IS(HF_VERSION_MISMATCH);
    judge_allow(s, may ? may : JUDGE_IS(HF_OK),
                may ? "an old fence or another version is refused"
                    : "nothing stands against the write");
    if (s->op->status != HF_OK)
        return;
    struct hf_register *reg = changed(s, r);
    reg->value = (struct hf_value){ .type = HF_TYPE_PLAIN, .bytes = q->write.value };
    if (q->write.fence != 0)
        reg->fence = q->write.fence;
    if (q->write.require_fence != HF_REQUIRE_UNCHANGED)
        reg->require_fence = q->write.require_fence == HF_REQUIRED;
    shown(s, reg);
}

void judge_rule_delete_register(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    if (!judge_name_valid(q->write.name)) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the name is malformed");
        return;
    }
    struct judge_record *r = judge_look(s, JUDGE_REGISTER, q->write.name, none());
    uint64_t may = there(r) ? 0 : JUDGE_IS(HF_NOT_KNOWN);
    if (there(r) && stale(&r->body.reg, q->write.fence))
        may |= JUDGE_IS(HF_STALE_FENCE);
    if (there(r) && q->write.has_if_version && q->write.if_version != r->body.reg.version)
        may |= JUDGE_IS(HF_VERSION_MISMATCH);
    judge_allow(s, may ? may : JUDGE_IS(HF_OK),
                may ? "an old fence or another version is refused"
                    : "nothing stands against the deletion");
    if (s->op->status != HF_OK)
        return;
    struct hf_register *reg = changed(s, r);
    if (q->write.fence != 0)
        reg->fence = q->write.fence;
    hf_time until = reg->fence != 0 ? INT64_MAX : s->now + s->j->rules.idempotency_window_ms;
    if (s->quiet) /* the window may be another by now */
        until = s->op->answer.reg.value.number;
    reg->value = (struct hf_value){ .type = HF_TYPE_DELETED, .number = until };
    shown(s, reg);
}

void judge_rule_merge(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    struct judge_record *r = NULL;
    struct hf_value joined;
    if (judge_name_valid(q->merge.name) && q->merge.value && judge_value_valid(q->merge.value))
        r = judge_look(s, JUDGE_REGISTER, q->merge.name, none());
    if (!r || (there(r) && r->body.reg.value.type != q->merge.value->type) ||
        !judge_join(s->j, there(r) ? &r->body.reg.value : NULL, q->merge.value, &joined)) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST),
                    "the value is malformed, of another type than the register, or past a limit");
        return;
    }
    judge_allow(s, JUDGE_IS(HF_OK), "a merge is never refused");
    if (s->op->status != HF_OK)
        return;
    if (!there(r) || !judge_value_same(&r->body.reg.value, &joined))
        changed(s, r)->value = joined;
    shown(s, &r->body.reg);
}

void judge_rule_get_register(struct judge_step *s)
{
    if (!judge_name_valid(s->op->request.get.name)) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the name is malformed");
        return;
    }
    struct judge_record *r = judge_look(s, JUDGE_REGISTER, s->op->request.get.name, none());
    if (judge_allow(s, JUDGE_IS(there(r) ? HF_OK : HF_NOT_KNOWN),
                    "a register is known once it was written, until it is deleted") &&
        there(r))
        shown(s, &r->body.reg);
}
