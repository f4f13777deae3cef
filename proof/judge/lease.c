/* lease.c: authority over a name, with a fence that rises strictly for ever. */
#include "judge/model.h"

static struct hf_bytes none(void)
{
    return hf_mem("", 0);
}

static bool alive(const struct judge_record *r, hf_time now)
{
    return r->body.present && r->body.lease.released_at == 0 && now < r->body.lease.expires_at;
}

static void shown(struct judge_step *s, const struct hf_lease *want)
{
    const struct hf_lease *got = &s->op->answer.lease;
    if (!judge_has(s, HF_RECORD_LEASE))
        return;
    if (!judge_bytes_equal(want->tenant, got->tenant) ||
        !judge_bytes_equal(want->name, got->name) ||
        !judge_bytes_equal(want->holder, got->holder) || want->fence != got->fence ||
        want->ttl_ms != got->ttl_ms || want->granted_at != got->granted_at ||
        want->expires_at != got->expires_at || want->released_at != got->released_at)
        judge_object(
            s, "the lease is not as it should be: fence %llu, from %lld to %lld, released at %lld",
            (unsigned long long)want->fence, (long long)want->granted_at,
            (long long)want->expires_at, (long long)want->released_at);
}

void judge_rule_grant(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    if (!judge_name_valid(q->lease.name) || !judge_name_valid(q->lease.holder) ||
        q->lease.ttl_ms < 1 || q->lease.ttl_ms > HF_DURATION_MAX_MS) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the request is malformed");
        return;
    }
    struct judge_record *r = judge_look(s, JUDGE_LEASE, q->lease.name, none());
    if (alive(r, s->now))
        judge_allow(s, JUDGE_IS(HF_LEASE_HELD), "one holder at a time");
    else
        judge_allow(s, JUDGE_IS(HF_OK), "the lease is free");
    if (s->op->status != HF_OK || !judge_has(s, HF_RECORD_LEASE))
        return;
    uint64_t fence = s->op->answer.lease.fence;
    if (fence <= r->body.lease.fence) /* of one that was deleted too; 0 if there never was one */
        judge_object(s, "the fence of a lease rises strictly, for ever: %llu is not above %llu",
                     (unsigned long long)fence, (unsigned long long)r->body.lease.fence);
    struct judge_body *b = judge_change(s, r);
    b->present = true;
    b->lease = (struct hf_lease){ .tenant = r->tenant,
                                  .name = r->name,
                                  .holder = q->lease.holder,
                                  .fence = fence,
                                  .ttl_ms = q->lease.ttl_ms,
                                  .granted_at = s->now,
                                  .expires_at = s->now + q->lease.ttl_ms };
    shown(s, &b->lease);
}

/* What a renewal or a return does, once it is allowed. */
static void carried_out(struct judge_step *s, struct judge_record *r)
{
    const struct hf_request *q = &s->op->request;
    if (q->action == HF_RETURN && r->body.lease.released_at != 0) {
        shown(s, &r->body.lease); /* told again */
        return;
    }
    struct hf_lease *l = &judge_change(s, r)->lease;
    if (q->action == HF_RETURN) {
        l->released_at = s->now;
    } else {
        l->ttl_ms = q->lease.ttl_ms ? q->lease.ttl_ms : l->ttl_ms;
        l->expires_at = s->now + l->ttl_ms;
    }
    shown(s, l);
}

void judge_rule_renew(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    bool renew = q->action == HF_RENEW;
    if (!judge_name_valid(q->lease.name) || q->lease.fence == 0 ||
        (renew && (q->lease.ttl_ms < 0 || q->lease.ttl_ms > HF_DURATION_MAX_MS))) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the request is malformed");
        return;
    }
    struct judge_record *r = judge_look(s, JUDGE_LEASE, q->lease.name, none());
    const struct hf_lease *l = &r->body.lease;
    bool again = !renew && r->body.present && l->released_at != 0;
    if (!r->body.present)
        judge_allow(s, JUDGE_IS(HF_NOT_KNOWN), "nobody was ever granted this lease");
    else if (q->lease.fence < l->fence)
        judge_allow(s, JUDGE_IS(HF_STALE_FENCE), "an older fence is refused");
    else if (q->lease.fence > l->fence)
        judge_allow(s, JUDGE_IS(HF_STALE_FENCE) | JUDGE_IS(HF_INVALID_REQUEST),
                    "this fence was never given out");
    else if (!alive(r, s->now) && !again)
        judge_allow(s, JUDGE_IS(HF_NOT_HELD), "the lease ran out, or was given back");
    else
        judge_allow(s, JUDGE_IS(HF_OK), "the holder has the current fence");
    if (s->op->status == HF_OK && r->body.present)
        carried_out(s, r);
}

void judge_rule_delete_lease(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    if (!judge_name_valid(q->lease.name)) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the name is malformed");
        return;
    }
    struct judge_record *r = judge_look(s, JUDGE_LEASE, q->lease.name, none());
    const struct hf_lease *l = &r->body.lease;
    if (!r->body.present)
        judge_allow(s, JUDGE_IS(HF_NOT_KNOWN), "there is no such lease");
    else if (q->lease.fence != 0 && q->lease.fence < l->fence)
        judge_allow(s, JUDGE_IS(HF_STALE_FENCE), "an older fence is refused");
    else if (q->lease.fence > l->fence)
        judge_allow(s, JUDGE_IS(HF_STALE_FENCE) | JUDGE_IS(HF_INVALID_REQUEST),
                    "this fence was never given out");
    else if (alive(r, s->now) && q->lease.fence == 0)
        judge_allow(s, JUDGE_IS(HF_LEASE_HELD), "only its holder may delete a lease that is held");
    else
        judge_allow(s, JUDGE_IS(HF_OK), "nothing stands against the deletion");
    if (s->op->status != HF_OK || !r->body.present)
        return;
    bool held = alive(r, s->now);
    struct judge_body *b = judge_change(s, r);
    if (held)
        b->lease.released_at = s->now;
    b->present = false;
    shown(s, &b->lease);
}

bool judge_lease_can_end(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    const struct judge_record *r = judge_find(s->j, JUDGE_LEASE, q->tenant, q->lease.name, none());
    return !r->doubt && alive(r, s->now) && r->body.lease.fence == q->lease.fence;
}

void judge_rule_get_lease(struct judge_step *s)
{
    if (!judge_name_valid(s->op->request.get.name)) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the name is malformed");
        return;
    }
    struct judge_record *r = judge_look(s, JUDGE_LEASE, s->op->request.get.name, none());
    if (judge_allow(s, JUDGE_IS(r->body.present ? HF_OK : HF_NOT_KNOWN),
                    "a lease is known once it was granted") &&
        r->body.present)
        shown(s, &r->body.lease);
}
