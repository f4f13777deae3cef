/* guard.c: have I seen this lately? */
#include "judge/model.h"

static struct hf_bytes none(void)
{
    return hf_mem("", 0);
}

/* ---- Setting ---- */

static bool match_valid(const enum hf_match *match, uint32_t count)
{
    if (count > HF_MATCH_MAX)
        return false;
    unsigned used = 0;
    for (uint32_t i = 0; i < count; i++) {
        int step = (int)match[i];
        if (step < HF_MATCH_EXACT || step > HF_MATCH_HASH || used >> step & 1)
            return false;
        if (step == HF_MATCH_HASH && i + 1 < count)
            return false;
        used |= 1u << step;
    }
    return true;
}

/* The steps that change an identity, as digits. */
static unsigned long rule_of(const enum hf_match *match, uint32_t count)
{
    unsigned long rule = 0;
    for (uint32_t i = 0; i < count && i < HF_MATCH_MAX; i++)
        if (match[i] != HF_MATCH_EXACT)
            rule = rule * 10 + (unsigned long)match[i];
    return rule;
}

/* Is an identity under the guard now? */
static enum judge_there guarded(struct judge_step *s, struct judge_record *guard)
{
    enum judge_there any = s->now < guard->body.guard.cloudy_until ? JUDGE_MAYBE : JUDGE_ABSENT;
    for (struct judge_record *e = s->j->kinds[JUDGE_ENTRY]; e; e = e->next) {
        if (!judge_bytes_equal(e->tenant, guard->tenant) ||
            !judge_bytes_equal(e->name, guard->name))
            continue;
        judge_touch(s, e);
        enum judge_there there = judge_entry_there(s->j, e, guard);
        if (there == JUDGE_ABSENT || s->now >= e->body.entry.entry.expires_at)
            continue;
        if (there == JUDGE_THERE)
            return JUDGE_THERE;
        any = JUDGE_MAYBE;
    }
    return any;
}

/* With another match rule, what is under guard might not be recognised: only by force. */
static uint64_t may_answer(struct judge_step *s, struct judge_record *guard)
{
    const struct hf_request *q = &s->op->request;
    const struct hf_guard *is = &guard->body.guard.guard;
    if (!guard->body.present || q->set_guard.force ||
        rule_of(q->set_guard.match, q->set_guard.match_count) ==
            rule_of(is->match, is->match_count))
        return JUDGE_IS(HF_OK);
    switch (guarded(s, guard)) {
    case JUDGE_THERE: return JUDGE_IS(HF_WINDOW_NOT_ELAPSED);
    case JUDGE_MAYBE: return JUDGE_IS(HF_WINDOW_NOT_ELAPSED) | JUDGE_IS(HF_OK);
    default: return JUDGE_IS(HF_OK);
    }
}

void judge_rule_set_guard(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    int policy = (int)q->set_guard.on_unavailable;
    if (!judge_name_valid(q->set_guard.name) || q->set_guard.window_ms < 1 ||
        q->set_guard.window_ms > HF_DURATION_MAX_MS ||
        !match_valid(q->set_guard.match, q->set_guard.match_count) || policy < HF_FAIL_OPEN ||
        policy > HF_FAIL_CLOSED) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the request is malformed");
        return;
    }
    struct judge_record *r = judge_look(s, JUDGE_GUARD, q->set_guard.name, none());
    judge_allow(s, may_answer(s, r),
                "a match rule changes while nothing is under guard, or by force");
    if (s->op->status == HF_WINDOW_NOT_ELAPSED && judge_has(s, HF_RECORD_GUARD) &&
        !judge_guard_same(&r->body.guard.guard, &s->op->answer.guard))
        judge_object(s, "the guard that is shown is not the one that stays");
    if (s->op->status != HF_OK || !judge_has(s, HF_RECORD_GUARD))
        return;
    struct hf_guard want = { .tenant = r->tenant,
                             .name = r->name,
                             .window_ms = q->set_guard.window_ms,
                             .match_count = q->set_guard.match_count,
                             .on_unavailable = q->set_guard.on_unavailable,
                             .durable = !q->set_guard.volatile_only,
                             .created_at =
                                 r->body.present ? r->body.guard.guard.created_at : s->now };
    memcpy(want.match, q->set_guard.match, want.match_count * sizeof *want.match);
    if (!judge_guard_same(&want, &s->op->answer.guard))
        judge_object(s, "the guard is not as it was set");
    if (r->body.present && judge_guard_same(&want, &r->body.guard.guard))
        return;
    struct judge_body *b = judge_change(s, r);
    b->guard.switched = b->guard.switched || (b->present && b->guard.guard.durable != want.durable);
    b->present = true;
    b->guard.guard = want;
}

void judge_rule_get_guard(struct judge_step *s)
{
    if (!judge_name_valid(s->op->request.get.name)) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the name is malformed");
        return;
    }
    struct judge_record *r = judge_look(s, JUDGE_GUARD, s->op->request.get.name, none());
    if (!judge_allow(s, JUDGE_IS(r->body.present ? HF_OK : HF_NOT_KNOWN),
                     "a guard is known once it was set"))
        return;
    if (r->body.present && judge_has(s, HF_RECORD_GUARD) &&
        !judge_guard_same(&r->body.guard.guard, &s->op->answer.guard))
        judge_object(s, "the guard is not as it was set");
}

/* ---- Asking ---- */

enum judge_there judge_entry_there(struct judge *j, const struct judge_record *entry,
                                   const struct judge_record *guard)
{
    const struct judge_body *b = &entry->body;
    if (!b->present)
        return JUDGE_ABSENT;
    bool reopened = b->entry.opened != j->opened;
    if (reopened && guard->body.guard.switched)
        return JUDGE_MAYBE;
    if (reopened && !b->entry.kept)
        return JUDGE_ABSENT;
    return b->entry.maybe ? JUDGE_MAYBE : JUDGE_THERE;
}

static bool blind(const struct hf_seen *seen)
{
    return seen->recorded_at == 0 && seen->expires_at == 0 && !seen->has_result &&
           seen->result.size == 0;
}

/* The store was in trouble and may not have been able to look or to write. True: that explains the
 * answer. */
static bool unavailable(struct judge_step *s, const struct hf_guard *guard)
{
    const struct hf_seen *shown = &s->op->answer.seen;
    enum hf_action action = s->op->request.action;
    unsigned excuse = JUDGE_NO_MEMORY | (action == HF_CHECK ? 0 : JUDGE_NO_ROOM | JUDGE_AT_LIMIT);
    if (!(s->op->weather & excuse) || !blind(shown))
        return false;
    /* record always answers ok, and then only misses. */
    return shown->seen == (action != HF_RECORD && guard->on_unavailable == HF_FAIL_CLOSED);
}

/* What is in the note was recorded. */
static void recorded(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    struct judge_record *entry = s->note.entry;
    struct judge_body *b = s->note.kept ? judge_change(s, entry) : judge_learn(s, entry);
    b->present = true;
    b->entry.entry = (struct hf_entry){ .tenant = entry->tenant,
                                        .guard = entry->name,
                                        .identity = entry->more,
                                        .result = q->identity.result,
                                        .has_result = q->identity.has_result,
                                        .recorded_at = s->now,
                                        .expires_at = s->note.expires_at };
    b->entry.kept = s->note.kept;
    b->entry.opened = s->note.opened;
    b->entry.maybe = s->unsure = (s->op->weather & ~(unsigned)JUDGE_NO_INDEX) != JUDGE_FAIR;
}

/* The answer is that it was not seen. */
static void not_seen(struct judge_step *s, struct judge_record *guard, struct judge_record *entry,
                     enum judge_there there)
{
    if (!blind(&s->op->answer.seen))
        judge_object(s, "what is not seen has no time and no result");
    if (there == JUDGE_THERE) {
        if (unavailable(s, &guard->body.guard.guard))
            return;
        judge_object(s, "DP4: it was recorded at %lld and is under guard until %lld",
                     (long long)entry->body.entry.entry.recorded_at,
                     (long long)entry->body.entry.entry.expires_at);
    }
    if (s->op->request.action == HF_CHECK) {
        if (there == JUDGE_MAYBE && (s->op->weather & ~(unsigned)JUDGE_NO_INDEX) == JUDGE_FAIR)
            judge_learn(s, entry)->present = false; /* it was missed */
        return;
    }
    s->note.entry = entry;
    s->note.recorded = true;
    recorded(s);
}

static void seen(struct judge_step *s, struct judge_record *guard, struct judge_record *entry,
                 enum judge_there there)
{
    const struct hf_seen *shown = &s->op->answer.seen;
    const struct hf_entry *e = &entry->body.entry.entry;
    if (shown->recorded_at == 0 && unavailable(s, &guard->body.guard.guard))
        return;
    if (there == JUDGE_ABSENT) {
        if (s->now < guard->body.guard.cloudy_until)
            return;
        if (entry->body.present)
            judge_object(s, "DP1, DP4: it is seen, though its window closed at %lld",
                         (long long)e->expires_at);
        else
            judge_object(s, "DP1: it is seen, and was never recorded");
        return;
    }
    if (shown->recorded_at != e->recorded_at || shown->expires_at != e->expires_at)
        judge_object(s, "DP2: it was recorded at %lld until %lld, and is shown from %lld to %lld",
                     (long long)e->recorded_at, (long long)e->expires_at,
                     (long long)shown->recorded_at, (long long)shown->expires_at);
    else if (shown->has_result != e->has_result || !judge_bytes_equal(shown->result, e->result))
        judge_object(s, "DP2: the result is not the one that was recorded first");
    if (there == JUDGE_MAYBE) {
        struct judge_body *b = judge_learn(s, entry);
        b->entry.maybe = false;
        b->entry.opened = s->j->opened;
    }
}

/* The identity is beyond what the judge's match rules know: either answer is right. */
static void cloudy(struct judge_step *s, struct judge_record *guard)
{
    judge_allow(s, JUDGE_IS(HF_OK) | JUDGE_IS(HF_INVALID_REQUEST),
                "check, record and admit answer");
    if (s->op->request.action == HF_CHECK || s->note.expires_at <= guard->body.guard.cloudy_until)
        return;
    struct judge_body *b = s->note.kept ? judge_change(s, guard) : judge_learn(s, guard);
    b->guard.cloudy_until = s->note.expires_at;
    s->note.recorded = true;
}

void judge_rule_identity(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    bool malformed = !judge_name_valid(q->identity.guard) || q->identity.identity.size < 1 ||
                     q->identity.identity.size > HF_IDENTITY_MAX ||
                     (q->identity.has_result && q->identity.result.size > HF_GUARD_RESULT_MAX);
    struct judge_record *guard =
        malformed ? NULL : judge_look(s, JUDGE_GUARD, q->identity.guard, none());
    if (!guard) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the request is malformed");
        return;
    }
    if (!guard->body.present) {
        judge_allow(s, JUDGE_IS(HF_NOT_KNOWN), "there is no such guard");
        return;
    }
    if (s->quiet) {
        if (s->note.entry)
            recorded(s);
        else
            cloudy(s, guard); /* nothing else that lasts */
        return;
    }
    s->note.expires_at = s->now + guard->body.guard.guard.window_ms;
    s->note.kept = guard->body.guard.guard.durable;
    s->note.opened = s->j->opened;
    unsigned char form[JUDGE_FORM_MAX];
    size_t size;
    enum judge_form known =
        judge_match(&guard->body.guard.guard, q->identity.identity, form, &size);
    if (known == JUDGE_FORM_CLOUDY) {
        cloudy(s, guard);
        return;
    }
    if (known == JUDGE_FORM_INVALID) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the match rule leaves nothing to compare");
        return;
    }
    struct judge_record *entry = judge_look(s, JUDGE_ENTRY, q->identity.guard, hf_mem(form, size));
    enum judge_there there = judge_entry_there(s->j, entry, guard);
    if (there != JUDGE_ABSENT && s->now >= entry->body.entry.entry.expires_at)
        there = JUDGE_ABSENT;
    judge_allow(s, JUDGE_IS(HF_OK), "check, record and admit answer once the guard is known");
    if (s->op->status != HF_OK || !judge_has(s, HF_RECORD_SEEN))
        return;
    if (s->op->answer.seen.seen)
        seen(s, guard, entry, there);
    else
        not_seen(s, guard, entry, there);
}
