/* Keys: IR1 to IR8, and that refusals are remembered like successes. */
#include "audit/check.h"
#include "audit/digest.h"
#include "audit/words.h"

#include "base/bytes.h"
#include "core/action.h"

/* ---- What each action does to the records when it is answered ok ---- */

/* Did the entry change holds exactly as its action and answer say? A refusal changes nothing; a
 * place_hold or a late confirm may also expire overdue holds, refused or not. */
static bool effects_fit(const struct hf_audit_entry *e, const struct hf_audit_effects *did)
{
    unsigned once = e->status == HF_OK;
    struct hf_audit_effects want = { 0 };
    switch (e->action) {
    case HF_PLACE_HOLD:
        want.placed = once;
        want.expired = did->expired;
        break;
    case HF_CONFIRM: want.confirmed = once; break;
    case HF_CONFIRM_LATE:
        want.reacquired = once && did->confirmed == 0;
        want.confirmed = once && did->confirmed > 0;
        want.expired = want.confirmed ? 0 : did->expired;
        break;
    case HF_RELEASE: want.released = once; break;
    case HF_EXPIRE:
    case HF_SWEEP: want.expired = once; break;
    case HF_REVERSE: want.reversed = once; break;
    default: break;
    }
    return did->placed == want.placed && did->confirmed == want.confirmed &&
           did->released == want.released && did->expired == want.expired &&
           did->reversed == want.reversed && did->reacquired == want.reacquired && did->other == 0;
}

void hf_audit_judge_effects(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    const struct hf_audit_effects *did = &s->effects;
    const struct hf_action_info *rule = hf_action_of(e->action);
    hf_audit_looked(s, HF_AUDIT_IR8, 1);
    if (!rule->changes) {
        if (e->action != HF_CHECK) /* DP3 reports this one */
            hf_audit_break(s, HF_AUDIT_FORMAT, e, "action %d must not leave a record",
                           (int)e->action);
        return;
    }
    if (rule->keyed && e->remember == HF_REMEMBER_NOT)
        hf_audit_break(s, HF_AUDIT_IR8, e, "a state-changing call was carried out without a key");
    if (!effects_fit(e, did))
        hf_audit_break(s, HF_AUDIT_IR8, e,
                       "answered %s, it placed %u, confirmed %u, released %u, expired %u, "
                       "reversed %u and reacquired %u holds",
                       hf_status_code(e->status), did->placed, did->confirmed, did->released,
                       did->expired, did->reversed, did->reacquired);
    unsigned main = 0;
    for (size_t i = 0; i < e->row_count; i++) {
        enum hf_row_kind kind = s->rows[i].kind;
        bool client = kind == HF_ROW_CLIENT && e->remember == HF_REMEMBER_SEQUENCE;
        bool may = e->status == HF_OK || rule->overdue;
        main += kind == rule->changes_once;
        if (!client && !(may && (rule->changes >> kind & 1)))
            hf_audit_break(s, HF_AUDIT_IR8, e, "answered %s, it changed a %s",
                           hf_status_code(e->status), hf_audit_row_name(kind));
    }
    if (e->status == HF_OK && rule->changes_once != 0 && main != 1)
        hf_audit_break(s, HF_AUDIT_IR8, e, "the call changed %u %s records instead of one", main,
                       hf_audit_row_name(rule->changes_once));
}

/* ---- The stored answer ---- */

static bool answer_is_hold(const struct hf_audit_entry *e, const struct hf_audit_row *answer,
                           const struct hf_audit_effects *did)
{
    static const enum hf_hold_state states[] = {
        [HF_PLACE_HOLD] = HF_HELD, [HF_CONFIRM] = HF_CONFIRMED, [HF_RELEASE] = HF_RELEASED,
        [HF_EXPIRE] = HF_EXPIRED,  [HF_REVERSE] = HF_RELEASED,  [HF_CONFIRM_LATE] = HF_CONFIRMED
    };
    bool makes = e->action == HF_PLACE_HOLD || e->action == HF_REVERSE || did->reacquired > 0;
    return answer && answer->kind == HF_ROW_HOLD && answer->hold.state == states[e->action] &&
           answer->hold.ordinal == (makes ? did->placed_ordinal : did->ended_ordinal);
}

static bool is_of_holds(enum hf_action action)
{
    return action <= HF_REVERSE || action == HF_CONFIRM_LATE;
}

/* IR1 and IR2 need one stored answer that is true: then every retry gets the same answer. */
static void judge_answer(struct hf_audit_state *s, const struct hf_audit_entry *e,
                         const struct hf_audit_row *answer)
{
    if (!is_of_holds(e->action))
        return;
    enum hf_audit_check_id id = e->action == HF_PLACE_HOLD ? HF_AUDIT_IR1 : HF_AUDIT_IR2;
    hf_audit_looked(s, id, 1);
    if (e->status == HF_OK && !answer_is_hold(e, answer, &s->effects))
        hf_audit_break(s, id, e, "the stored answer is not the hold that this call changed");
    if (e->status != HF_OK && answer && answer->kind == HF_ROW_HOLD)
        hf_audit_break(s, id, e, "refused as %s, but the stored answer is a hold (%s)",
                       hf_status_code(e->status), answer->hold.id);
}

static void judge_failure(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    hf_audit_looked(s, HF_AUDIT_FAILURES, 1);
    enum hf_status_kind kind = hf_status_kind(e->status);
    if (e->status != HF_OK) {
        s->report->failures++;
        s->report->failures_by_status[(unsigned)e->status & 255]++;
    }
    if ((kind != HF_KIND_OK && kind != HF_KIND_REFUSAL) || e->status == HF_TOKEN_COLLISION)
        hf_audit_break(s, HF_AUDIT_FAILURES, e, "%s must not be remembered",
                       hf_status_code(e->status));
}

/* ---- The key and its window ---- */

bool hf_audit_key_alive(const struct hf_audit_state *s, struct hf_bytes tenant, struct hf_bytes key,
                        hf_time now)
{
    const struct hf_audit_use *use =
        hf_audit_table_find(&s->keys, hf_audit_name_of(HF_AUDIT_KEYS, tenant, key, hf_mem("", 0)));
    return use && now < use->expires_at;
}

bool hf_audit_window_fits(const struct hf_audit_state *s, hf_time from, hf_time until)
{
    return !s->config_known || until == hf_audit_plus(from, s->config.idempotency_window_ms);
}

static void judge_window(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    hf_audit_looked(s, HF_AUDIT_IR6, 1);
    if (e->remember == HF_REMEMBER_SEQUENCE) {
        if (e->expires_at != INT64_MAX)
            hf_audit_break(s, HF_AUDIT_IR6, e, "a client's number must not expire, but ends at %s",
                           hf_audit_at(e->expires_at).text);
        return;
    }
    if (!s->config_known)
        return;
    if (!hf_audit_window_fits(s, e->recorded_at, e->expires_at))
        hf_audit_break(s, HF_AUDIT_IR6, e,
                       "recorded at %s, its window closes at %s, but the configured window is %s",
                       hf_audit_at(e->recorded_at).text, hf_audit_at(e->expires_at).text,
                       hf_audit_for(s->config.idempotency_window_ms).text);
    hf_audit_looked(s, HF_AUDIT_CONFIG, 1);
    if (e->key.size == 0 || e->key.size > s->config.token_max_length)
        hf_audit_break(s, HF_AUDIT_CONFIG, e,
                       "a key of %zu bytes was accepted; 1 to %u are allowed", e->key.size,
                       s->config.token_max_length);
}

/* Two entries with one key while the window of the first was open: a duplicate effect. */
static void judge_overlap(struct hf_audit_state *s, const struct hf_audit_entry *e,
                          const struct hf_audit_use *first)
{
    struct hf_audit_numeral at = hf_audit_figure(s, first->position);
    bool placed = s->effects.placed + s->effects.reacquired > 0;
    struct hf_audit_clock until = hf_audit_at(first->expires_at);
    hf_audit_break(
        s, HF_AUDIT_IR6, e,
        "the key was recorded at position %s until %s, and is recorded again before that", at.text,
        until.text);
    hf_audit_break(s, HF_AUDIT_IR7, e,
                   "the key was bound at position %s until %s, and is used again before that",
                   at.text, until.text);
    hf_audit_break(s, HF_AUDIT_IR8, e,
                   "the key had its effect at position %s, its window is open until %s, and it has "
                   "a second effect",
                   at.text, until.text);
    if (placed && first->placed)
        hf_audit_break(s, HF_AUDIT_IR3, e,
                       "hold number %s shares its key with the hold placed at position %s",
                       hf_audit_figure(s, s->effects.placed_ordinal).text, at.text);
    if (first->action != (uint8_t)e->action || first->digest != hf_get64(e->digest))
        hf_audit_break(s, HF_AUDIT_IR4, e,
                       "the key was bound to %s with other parameters at position %s",
                       hf_action_name((enum hf_action)first->action), at.text);
    else if (is_of_holds(e->action))
        hf_audit_break(s, e->action == HF_PLACE_HOLD ? HF_AUDIT_IR1 : HF_AUDIT_IR2, e,
                       "the same request was decided at position %s, and is decided again",
                       at.text);
}

static void judge_reuse(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    struct hf_audit_name name = hf_audit_name_of(HF_AUDIT_KEYS, e->tenant, e->key, hf_mem("", 0));
    struct hf_audit_use *use = hf_audit_table_find(&s->keys, name);
    hf_audit_looked(s, HF_AUDIT_IR7, 1);
    if (use && e->recorded_at < use->expires_at)
        judge_overlap(s, e, use);
    if (!use)
        use = hf_audit_table_add(&s->keys, name, hf_audit_over(s, e->recorded_at));
    if (!use) {
        s->no_memory = true;
        return;
    }
    use->expires_at = e->expires_at;
    use->position = e->position;
    use->digest = hf_get64(e->digest);
    use->action = (uint8_t)e->action;
    use->placed = s->effects.placed + s->effects.reacquired > 0;
}

static void judge_binding(struct hf_audit_state *s, const struct hf_audit_entry *e,
                          const struct hf_audit_row *answer)
{
    hf_audit_looked(s, HF_AUDIT_IR4, 1);
    if (answer && hf_audit_digest_fits(e, s->rows, answer) == HF_AUDIT_FITS_NOT)
        hf_audit_break(s, HF_AUDIT_IR4, e,
                       "the digest does not match the parameters in the record");
    if (e->remember == HF_REMEMBER_KEY && hf_audit_claim_alive(s, e, e->recorded_at))
        hf_audit_break(s, HF_AUDIT_IR4, e, "the key is bound to a claim that is still remembered");
}

static void judge_traced(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    unsigned made = s->effects.placed + s->effects.reversed + s->effects.reacquired;
    if (made == 0)
        return;
    hf_audit_looked(s, HF_AUDIT_IR3, made);
    if (made > 1)
        hf_audit_break(s, HF_AUDIT_IR3, e, "one call made %u holds", made);
    if (e->remember == HF_REMEMBER_NOT)
        hf_audit_break(s, HF_AUDIT_IR3, e, "hold number %s cannot be traced to a key",
                       hf_audit_figure(s, s->effects.placed_ordinal).text);
    else
        s->report->holds_traced += made;
}

void hf_audit_judge_token(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    struct hf_audit_row answer;
    judge_traced(s, e);
    if (e->remember == HF_REMEMBER_NOT)
        return;
    bool answered = hf_audit_answer_read(e, s->rows, &answer);
    s->report->remembered++;
    judge_failure(s, e);
    judge_answer(s, e, answered ? &answer : NULL);
    judge_window(s, e);
    judge_binding(s, e, answered ? &answer : NULL);
    if (e->remember == HF_REMEMBER_KEY)
        judge_reuse(s, e);
    else
        hf_audit_judge_sequence(s, e);
}
