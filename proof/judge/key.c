/* key.c: one key, one action, one effect; and the compact keys of clients that number their
 * operations. */
#include "judge/model.h"

/* Where the key of the request is remembered. */
struct place {
    struct judge_record *client; /* of a number, else NULL */
    struct judge_record *record; /* NULL: the key is malformed */
    bool too_late;               /* a number that has left the window of numbers */
    bool too_far;                /* a number that is too far above the highest */
};

static struct place place_of(struct judge_step *s)
{
    const struct hf_request *r = &s->op->request;
    bool numbered = r->client.size > 0 || r->sequence > 0;
    struct place p = { 0 };
    if (!numbered) {
        if (r->key.size > 0 && (s->quiet || r->key.size <= s->j->rules.token_max_length))
            p.record = judge_look(s, JUDGE_KEY, r->key, hf_mem("", 0));
        return p;
    }
    if (r->key.size > 0 || r->sequence == 0 || !judge_name_valid(r->client))
        return p;
    p.client = judge_find(s->j, JUDGE_CLIENT, r->tenant, r->client, hf_mem("", 0));
    judge_touch_only(s, p.client);
    p.record = judge_look(s, JUDGE_NUMBER, r->client, hf_mem(&r->sequence, sizeof r->sequence));
    uint64_t highest = p.client->body.present ? p.client->body.client.highest : 0;
    p.too_far = r->sequence > highest && r->sequence - highest > 1000000;
    p.too_late = p.client->body.present && p.client->body.client.highest >= HF_SEQUENCE_WINDOW &&
                 r->sequence <= p.client->body.client.highest - HF_SEQUENCE_WINDOW;
    return p;
}

/* The call that has the key at this time, or NULL. Numbers leave by number, not by time. */
static const struct judge_op *first_of(const struct place *p, hf_time now)
{
    const struct judge_body *b = &p->record->body;
    if (p->too_late || !b->key.first || (!p->client && now >= b->key.expires_at))
        return NULL;
    return b->key.first;
}

bool judge_key_remembered(struct judge_step *s)
{
    struct place p = place_of(s);
    return p.record && (first_of(&p, s->now) || judge_claim_alive(p.record, s->now));
}

static void not_run(struct judge_step *s)
{
    if (s->op->effect.runs > 0)
        judge_object(s, "IR8: the function ran, though the key has an answer");
}

static void answered_again(struct judge_step *s, const struct judge_op *first)
{
    const struct judge_op *op = s->op;
    not_run(s);
    if (op->status != first->status)
        judge_object(s, "IR1, IR2: the same key was answered %s by operation %llu",
                     judge_status_name(first->status), (unsigned long long)first->number);
    else if (!op->replayed)
        judge_object(s, "IR8: the key was answered by operation %llu, and this is no replay",
                     (unsigned long long)first->number);
    else if (!judge_answer_same(&op->answer, &first->answer))
        judge_object(s,
                     "IR1, IR2: the replay is not, byte for byte, what operation %llu was answered",
                     (unsigned long long)first->number);
    else if (memcmp(op->token.digest, first->token.digest, HF_DIGEST_SIZE) != 0 ||
             op->token.action != first->token.action || op->token.status != first->token.status ||
             op->token.recorded_at != first->token.recorded_at ||
             op->token.expires_at != first->token.expires_at)
        judge_object(s, "DP2: the replay does not show the key as operation %llu left it",
                     (unsigned long long)first->number);
}

static void remember(struct judge_step *s, struct place *p)
{
    const struct judge_op *op = s->op;
    int64_t window = s->j->rules.idempotency_window_ms;
    if (op->token.action != op->request.action || op->token.status != op->status)
        judge_object(s, "IR4: the key should be bound to %s and %s",
                     judge_action_name(op->request.action), judge_status_name(op->status));
    if (op->token.recorded_at != op->now)
        judge_object(s, "IR6: the key should be recorded at %lld, and is at %lld",
                     (long long)op->now, (long long)op->token.recorded_at);
    if (!p->client && op->token.expires_at != op->now + window)
        judge_object(s, "IR6: the key's window should close at %lld, and closes at %lld",
                     (long long)op->now + (long long)window, (long long)op->token.expires_at);
    struct judge_body *b = judge_change(s, p->record);
    b->present = true;
    b->key.first = op;
    b->key.recorded_at = op->now;
    b->key.expires_at = op->token.expires_at;
    if (p->client &&
        (!p->client->body.present || p->client->body.client.highest < op->request.sequence)) {
        b = judge_change(s, p->client);
        b->present = true;
        b->client.highest = op->request.sequence;
    }
}

/* What a malformed or late key, a replay and a collision have in common: nothing happens. */
static bool bound(struct judge_step *s, const struct place *p)
{
    const struct judge_op *op = s->op;
    if (!p->record) {
        not_run(s);
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "a malformed key is refused before all else");
        if (op->replayed)
            judge_object(s, "a malformed key is not remembered");
        return true;
    }
    if (p->too_late) {
        judge_touch(s, p->client);
        not_run(s);
        judge_allow(s, JUDGE_IS(HF_WINDOW_ELAPSED),
                    "a number so far behind the highest is too late for ever");
        return true;
    }
    if (p->too_far) {
        judge_touch(s, p->client);
        not_run(s);
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST),
                    "a number more than a million above the highest is refused");
        if (op->replayed || op->token.action != 0)
            judge_object(s, "a number that is too far above the highest is not remembered");
        return true;
    }
    const struct judge_op *first = first_of(p, op->now);
    if (first && judge_request_same(&first->request, &op->request)) {
        answered_again(s, first);
        return true;
    }
    if (first || judge_claim_alive(p->record, op->now)) {
        not_run(s);
        judge_allow(s, JUDGE_IS(HF_TOKEN_COLLISION), "IR4: the key is bound to something else");
        return true;
    }
    return false;
}

void judge_rule_keyed(struct judge_step *s, void (*rule)(struct judge_step *s))
{
    struct place p = place_of(s);
    bool forgotten = s->op->status == HF_INVALID_REQUEST && s->op->token.action == 0;
    if (s->quiet && (!p.record || s->op->replayed || forgotten))
        return;
    if (!s->quiet && bound(s, &p))
        return;
    if (s->op->replayed)
        judge_object(s, "IR7: the key is new, and its answer came as a replay");
    if (s->op->request.invalid)
        judge_rule_invalid(s);
    else
        rule(s);
    remember(s, &p);
}

void judge_rule_invalid(struct judge_step *s)
{
    struct hf_bytes why = s->op->request.invalid->why;
    not_run(s);
    if (!judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "not all of its parameters could be read"))
        return;
    if (why.size == 0 || why.size > HF_WHY_MAX)
        return;
    if (judge_has(s, HF_RECORD_VALUE) && !judge_bytes_equal(s->op->answer.value, why))
        judge_object(s, "the answer does not say what is wrong with the request");
}

/* ---- What happened to my request? ---- */

static void claim_of_token(struct judge_step *s, const struct hf_claim *claim)
{
    struct hf_claim want = judge_claim_shown(claim, s->now);
    if (!judge_allow(s, JUDGE_IS(HF_OK), "a claim has the key") || !judge_has(s, HF_RECORD_CLAIM))
        return;
    if (!judge_claim_same(&want, &s->op->answer.claim))
        judge_object(s, "the claim is not as it was left");
    if (s->op->token.action != HF_BEGIN)
        judge_object(s, "IR4: a claim has the key");
}

void judge_rule_get_token(struct judge_step *s)
{
    const struct judge_op *op = s->op;
    struct place p = place_of(s);
    if (!p.record) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the key is malformed");
        return;
    }
    const struct judge_op *first = first_of(&p, op->now);
    const struct hf_claim *claim = judge_claim_alive(p.record, op->now);
    if (!first && claim) {
        claim_of_token(s, claim);
        return;
    }
    if (p.too_late) {
        judge_allow(s, JUDGE_IS(HF_WINDOW_ELAPSED), "a number so far behind is forgotten");
        return;
    }
    if (!first) {
        judge_allow(s, JUDGE_IS(HF_NOT_KNOWN), "IR7: nothing has the key");
        return;
    }
    if (!judge_allow(s, JUDGE_IS(HF_OK), "IR7: the key is remembered"))
        return;
    if (!judge_answer_same(&op->answer, &first->answer))
        judge_object(s, "IR1: the answer is not that of operation %llu",
                     (unsigned long long)first->number);
    else if (op->token.action != first->request.action || op->token.status != first->status ||
             op->token.recorded_at != first->token.recorded_at ||
             op->token.expires_at != first->token.expires_at ||
             memcmp(op->token.digest, first->token.digest, HF_DIGEST_SIZE) != 0)
        judge_object(s, "IR4, DP2: the key is not as operation %llu left it",
                     (unsigned long long)first->number);
}
