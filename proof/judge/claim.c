/* claim.c: a key reserved for an effect outside the store. */
#include "judge/model.h"

#define DEFAULT_LEASE_MS INT64_C(60000)

static struct hf_bytes none(void)
{
    return hf_mem("", 0);
}

const struct hf_claim *judge_claim_alive(const struct judge_record *key, hf_time now)
{
    const struct judge_body *b = &key->body;
    if (!b->key.claimed)
        return NULL;
    const struct hf_claim *c = &b->key.claim;
    return c->state == HF_CLAIM_STARTED || now < c->expires_at ? c : NULL;
}

struct hf_claim judge_claim_shown(const struct hf_claim *claim, hf_time now)
{
    struct hf_claim c = *claim;
    if (c.state == HF_CLAIM_STARTED && now >= c.lease_expires_at)
        c.state = HF_CLAIM_UNKNOWN;
    return c;
}

bool judge_claim_same(const struct hf_claim *a, const struct hf_claim *b)
{
    return judge_bytes_equal(a->tenant, b->tenant) && judge_bytes_equal(a->key, b->key) &&
           memcmp(a->fingerprint, b->fingerprint, HF_DIGEST_SIZE) == 0 && a->state == b->state &&
           a->on_abandon == b->on_abandon && a->fence == b->fence && a->lease_ms == b->lease_ms &&
           a->retention_ms == b->retention_ms && a->begun_at == b->begun_at &&
           a->lease_expires_at == b->lease_expires_at && a->settled_at == b->settled_at &&
           a->expires_at == b->expires_at && judge_bytes_equal(a->response, b->response);
}

/* The claim in the answer should be this one. needed: a refusal may leave it out. */
static void shown(struct judge_step *s, const struct hf_claim *claim, bool needed)
{
    struct hf_claim want = judge_claim_shown(claim, s->now);
    if (!needed && s->op->answer.kind == HF_NO_RECORD)
        return;
    if (judge_has(s, HF_RECORD_CLAIM) && !judge_claim_same(&want, &s->op->answer.claim))
        judge_object(s,
                     "the claim is not as it should be: state %d, fence %llu, begun at %lld, its "
                     "lease until %lld, settled at %lld, remembered until %lld",
                     (int)want.state, (unsigned long long)want.fence, (long long)want.begun_at,
                     (long long)want.lease_expires_at, (long long)want.settled_at,
                     (long long)want.expires_at);
}

static bool key_valid(const struct judge_step *s)
{
    size_t size = s->op->request.key.size;
    return size >= 1 && (s->quiet || size <= s->j->rules.token_max_length);
}

/* ---- Begin ---- */

static void started(struct judge_step *s, struct judge_record *key, const uint8_t *fingerprint)
{
    const struct hf_request *q = &s->op->request;
    if (!judge_has(s, HF_RECORD_CLAIM))
        return;
    uint64_t fence = s->op->answer.claim.fence;
    if (fence <= key->body.key.highest)
        judge_object(s, "the fence of a key rises strictly, for ever: %llu is not above %llu",
                     (unsigned long long)fence, (unsigned long long)key->body.key.highest);
    if (s->op->replayed)
        judge_object(
            s, "the claim is begun, and the answer says that it is a first answer given again");
    struct judge_body *b = judge_change(s, key);
    int64_t lease = q->begin.lease_ms ? q->begin.lease_ms : DEFAULT_LEASE_MS;
    b->present = true;
    b->key.claimed = true;
    b->key.highest = fence;
    b->key.claim = (struct hf_claim){ .tenant = key->tenant,
                                      .key = key->name,
                                      .state = HF_CLAIM_STARTED,
                                      .on_abandon = q->begin.on_abandon,
                                      .fence = fence,
                                      .lease_ms = lease,
                                      .retention_ms = q->begin.retention_ms,
                                      .begun_at = s->now,
                                      .lease_expires_at = s->now + lease };
    memcpy(b->key.claim.fingerprint, fingerprint, HF_DIGEST_SIZE);
    shown(s, &b->key.claim, true);
}

/* A claim has the key. */
static void begun_before(struct judge_step *s, struct judge_record *key, const uint8_t *fingerprint)
{
    const struct hf_claim *c = &key->body.key.claim;
    enum hf_claim_state state = judge_claim_shown(c, s->now).state;
    if (memcmp(c->fingerprint, fingerprint, HF_DIGEST_SIZE) != 0) {
        judge_allow(s, JUDGE_IS(HF_TOKEN_COLLISION),
                    "IR4: the claim was begun with another fingerprint");
    } else if (state == HF_CLAIM_RETRYABLE ||
               (state == HF_CLAIM_UNKNOWN && c->on_abandon == HF_ABANDON_RETRY)) {
        judge_allow(s, JUDGE_IS(HF_OK), "the claim may be begun again");
        if (s->op->status == HF_OK)
            started(s, key, fingerprint);
    } else if (state == HF_CLAIM_UNKNOWN) {
        judge_allow(s, JUDGE_IS(HF_OUTCOME_UNKNOWN), "nobody runs again what may have happened");
        shown(s, c, false);
    } else if (state == HF_CLAIM_STARTED) {
        judge_allow(s, JUDGE_IS(HF_IN_PROGRESS), "somebody is at work on the claim");
        shown(s, c, false);
    } else {
        judge_allow(s, JUDGE_IS(HF_OK), "the claim is settled, and that is the answer");
        if (!s->op->replayed)
            judge_object(s, "IR8: the claim is settled, and this is no replay");
        shown(s, c, true);
    }
}

void judge_rule_begin(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    int policy = (int)q->begin.on_abandon;
    if (!key_valid(s) || q->begin.lease_ms < 0 || q->begin.lease_ms > HF_DURATION_MAX_MS ||
        q->begin.retention_ms < 0 || q->begin.retention_ms > HF_DURATION_MAX_MS ||
        policy < HF_ABANDON_UNKNOWN || policy > HF_ABANDON_RETRY) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the request is malformed");
        return;
    }
    struct judge_record *key = judge_look(s, JUDGE_KEY, q->key, none());
    uint8_t fingerprint[HF_DIGEST_SIZE];
    if (q->begin.fingerprint)
        memcpy(fingerprint, q->begin.fingerprint, sizeof fingerprint);
    else
        judge_sha256(q->begin.payload.data, q->begin.payload.size, fingerprint);
    if (s->quiet) {
        started(s, key, fingerprint); /* nothing else that begin does would last */
    } else if (judge_claim_alive(key, s->now)) {
        begun_before(s, key, fingerprint);
    } else if (key->body.key.first && s->now < key->body.key.expires_at) {
        judge_allow(s, JUDGE_IS(HF_TOKEN_COLLISION), "IR4: another call has the key");
    } else if (judge_allow(s, JUDGE_IS(HF_OK), "nothing has the key")) {
        started(s, key, fingerprint);
    }
}

/* ---- Settling ---- */

static void settled(struct judge_step *s, struct judge_record *key)
{
    const struct hf_request *q = &s->op->request;
    struct judge_body *b = judge_change(s, key);
    struct hf_claim *c = &b->key.claim;
    if (q->action == HF_ABANDON) {
        c->lease_expires_at = s->now;
    } else if (q->action == HF_HEARTBEAT) {
        c->lease_ms = q->settle.lease_ms ? q->settle.lease_ms : c->lease_ms;
        c->lease_expires_at = s->now + c->lease_ms;
    } else {
        c->state = q->action == HF_COMPLETE ? HF_CLAIM_COMPLETED
                   : q->settle.retryable    ? HF_CLAIM_RETRYABLE
                                            : HF_CLAIM_FAILED;
        c->settled_at = s->now;
        c->expires_at =
            s->now + (c->retention_ms ? c->retention_ms : s->j->rules.idempotency_window_ms);
        if (s->quiet && !c->retention_ms) /* the window may be another by now */
            c->expires_at = s->op->answer.claim.expires_at;
        c->response = q->settle.response;
    }
    if (s->op->replayed)
        judge_object(s, "it was settled by this call, and the answer says that it is given again");
    shown(s, c, true);
}

/* It was settled before, by whoever holds the same fence. */
static void settled_before(struct judge_step *s, const struct hf_claim *c)
{
    const struct hf_request *q = &s->op->request;
    enum hf_claim_state state = q->action == HF_COMPLETE ? HF_CLAIM_COMPLETED
                                : q->settle.retryable    ? HF_CLAIM_RETRYABLE
                                                         : HF_CLAIM_FAILED;
    if (q->action == HF_HEARTBEAT || q->action == HF_ABANDON) {
        judge_allow(s, JUDGE_IS(HF_NOT_HELD), "the claim is settled");
    } else if (c->state == state && judge_stored_same(c->response, q->settle.response)) {
        judge_allow(s, JUDGE_IS(HF_OK), "the same end, told again");
        if (!s->op->replayed)
            judge_object(s, "IR8: the claim is settled, and this is no replay");
        shown(s, c, true);
    } else {
        judge_allow(s, JUDGE_IS(HF_TOKEN_COLLISION), "the claim ended in another way");
    }
}

void judge_rule_settle(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    bool heartbeat = q->action == HF_HEARTBEAT;
    bool malformed = !key_valid(s) || q->settle.fence == 0 ||
                     (heartbeat ? q->settle.lease_ms < 0 || q->settle.lease_ms > HF_DURATION_MAX_MS
                                : q->settle.response.size > HF_RESPONSE_MAX);
    if (malformed) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the request is malformed");
        return;
    }
    struct judge_record *key = judge_look(s, JUDGE_KEY, q->key, none());
    if (s->quiet) {
        settled(s, key);
        return;
    }
    const struct hf_claim *c = judge_claim_alive(key, s->now);
    if (!c) {
        judge_allow(s, JUDGE_IS(HF_NOT_KNOWN), "nobody remembers such a claim");
    } else if (q->settle.fence < c->fence) {
        judge_allow(s, JUDGE_IS(HF_STALE_FENCE), "an older fence settles nothing");
    } else if (q->settle.fence > c->fence) {
        judge_allow(s, JUDGE_IS(HF_STALE_FENCE) | JUDGE_IS(HF_INVALID_REQUEST),
                    "this fence was never given out");
    } else if (c->state != HF_CLAIM_STARTED) {
        settled_before(s, c);
    } else if (q->action == HF_ABANDON && s->now >= c->lease_expires_at) {
        judge_allow(s, JUDGE_IS(HF_OK), "the claim is unknown, and stays so since then");
        shown(s, c, true);
    } else if (judge_allow(s, JUDGE_IS(HF_OK), "the newest fence settles the claim")) {
        settled(s, key);
    }
}

bool judge_claim_can_end(struct judge_step *s)
{
    enum { SHORT = 1024 }; /* bytes of a response that there is always room for */
    const struct hf_request *q = &s->op->request;
    const struct judge_record *key = judge_find(s->j, JUDGE_KEY, q->tenant, q->key, none());
    const struct hf_claim *c = judge_claim_alive(key, s->now);
    return !key->doubt && c && c->state == HF_CLAIM_STARTED && c->fence == q->settle.fence &&
           q->settle.response.size <= SHORT;
}

void judge_rule_get_claim(struct judge_step *s)
{
    if (!key_valid(s)) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the key is malformed");
        return;
    }
    struct judge_record *key = judge_look(s, JUDGE_KEY, s->op->request.key, none());
    const struct hf_claim *c = judge_claim_alive(key, s->now);
    if (!c)
        judge_allow(s, JUDGE_IS(HF_NOT_KNOWN), "nobody remembers such a claim");
    else if (judge_allow(s, JUDGE_IS(HF_OK), "a claim is remembered until its retention is over"))
        shown(s, c, true);
}
