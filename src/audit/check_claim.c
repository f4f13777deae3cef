/* Claims: their states, and every key that began more than once. A payment that ran twice ran under
 * two begins of one key: because its worker was silent and the claim allows a retry, or because the
 * retention of the first was over. */
#include "audit/check.h"
#include "audit/words.h"

#include "base/bytes.h"

#include <stdlib.h>

static struct hf_bytes nothing(void)
{
    return hf_mem("", 0);
}

/* ---- For everything that is found by its name ---- */

void *hf_audit_item(struct hf_audit_state *s, struct hf_audit_table *t, struct hf_audit_name name,
                    bool *fresh)
{
    void *item = hf_audit_table_find(t, name);
    *fresh = !item;
    if (!item)
        item = hf_audit_table_add(t, name, hf_audit_over(s, s->batch->now));
    if (!item)
        s->no_memory = true;
    return item;
}

void hf_audit_fresh_fence(struct hf_audit_state *s, const struct hf_audit_entry *e,
                          const char *what, struct hf_bytes name, uint64_t before, uint64_t fence)
{
    uint64_t above = s->database ? before : s->highest_fence;
    hf_audit_looked(s, HF_AUDIT_FENCES, 1);
    if (fence <= above)
        hf_audit_break(s, HF_AUDIT_FENCES, e,
                       "%s %s gets fence %llu, which is not above the earlier fence %s", what,
                       hf_audit_show(name).text, (unsigned long long)fence,
                       hf_audit_figure(s, above).text);
    if (fence > s->highest_fence)
        s->highest_fence = fence;
}

/* ---- States ---- */

static bool claim_settled(uint8_t state)
{
    return state == HF_CLAIM_COMPLETED || state == HF_CLAIM_FAILED;
}

/* A settled claim is remembered until expires_at, any other forever. */
static bool claim_forgotten(const struct hf_audit_claim *c, hf_time now)
{
    return c->expires_at != 0 && c->state != HF_CLAIM_STARTED && now >= c->expires_at;
}

bool hf_audit_claim_alive(const struct hf_audit_state *s, const struct hf_audit_entry *e,
                          hf_time now)
{
    const struct hf_audit_claim *c = hf_audit_table_find(
        &s->claims, hf_audit_name_of(HF_AUDIT_CLAIMS, e->tenant, e->key, nothing()));
    return c && !claim_forgotten(c, now);
}

/* May the key begin (again)? NULL, or why not. */
static const char *begin_wrong(const struct hf_audit_claim *before, const struct hf_claim *row,
                               hf_time now)
{
    if (row->state != HF_CLAIM_STARTED || row->begun_at != now || row->settled_at != 0)
        return "begins in another state than started, or at another time";
    if (row->lease_expires_at != hf_audit_plus(now, row->lease_ms))
        return "begins with a lease of the wrong length";
    if (!before || claim_forgotten(before, now))
        return NULL;
    if (before->fingerprint != hf_get64(row->fingerprint))
        return "begins again with another fingerprint";
    if (before->state == HF_CLAIM_RETRYABLE)
        return NULL;
    if (claim_settled(before->state))
        return "begins again although it is settled";
    if (now < before->lease_expires_at)
        return "begins again while it is in progress";
    return before->on_abandon == HF_ABANDON_RETRY ? NULL
                                                  : "begins again although its outcome is unknown";
}

/* The state that the action may lead to. */
static bool settle_fits(enum hf_action action, enum hf_claim_state state)
{
    switch (action) {
    case HF_COMPLETE: return state == HF_CLAIM_COMPLETED;
    case HF_FAIL: return state == HF_CLAIM_FAILED || state == HF_CLAIM_RETRYABLE;
    case HF_HEARTBEAT:
    case HF_ABANDON: return state == HF_CLAIM_STARTED;
    default: return false;
    }
}

/* An abandon ends the lease, a heartbeat begins it again, and nothing else changes it. */
static bool lease_fits(const struct hf_audit_claim *before, const struct hf_claim *row,
                       const struct hf_audit_entry *e)
{
    hf_time now = e->recorded_at;
    if (e->action == HF_ABANDON)
        return row->lease_expires_at == now && now < before->lease_expires_at;
    if (e->action == HF_HEARTBEAT)
        return row->lease_expires_at == hf_audit_plus(now, row->lease_ms);
    return row->lease_expires_at == before->lease_expires_at;
}

/* Complete, fail, heartbeat and abandon: by the holder of the fence, for a started claim. NULL, or
 * what is wrong. */
static const char *settle_wrong(const struct hf_audit_claim *before, const struct hf_claim *row,
                                const struct hf_audit_entry *e)
{
    if (!before)
        return "is settled, but was never begun";
    if (!settle_fits(e->action, row->state))
        return "gets a state that does not belong to the action";
    if (before->state != HF_CLAIM_STARTED)
        return "is settled although it was not started";
    if (before->fence != row->fence)
        return "is settled with another fence than it began with";
    if (before->fingerprint != hf_get64(row->fingerprint) || before->begun_at != row->begun_at)
        return "changes its fingerprint or its begin time";
    if (before->retention_ms != row->retention_ms)
        return "changes its retention";
    if (!lease_fits(before, row, e))
        return "has a lease that ends at another time than the action says";
    if (claim_settled((uint8_t)row->state) && row->settled_at != e->recorded_at)
        return "is settled at another time than it was recorded";
    return NULL;
}

static bool retention_fits(const struct hf_audit_state *s, const struct hf_claim *row)
{
    return row->retention_ms ? row->expires_at == hf_audit_plus(row->settled_at, row->retention_ms)
                             : hf_audit_window_fits(s, row->settled_at, row->expires_at);
}

/* ---- Begun more than once ---- */

static void rerun_list(struct hf_audit_state *s, const struct hf_claim *row,
                       const struct hf_audit_claim *before, bool taken_over)
{
    struct hf_audit_report *r = s->report;
    if (r->rerun_listed == HF_AUDIT_LISTED_MAX)
        return;
    if (!r->reruns)
        r->reruns = calloc(HF_AUDIT_LISTED_MAX, sizeof *r->reruns);
    struct hf_audit_rerun *rerun = r->reruns ? &r->reruns[r->rerun_listed] : NULL;
    char *who = rerun ? hf_audit_copy(hf_audit_named("key", row->key, row->tenant).text) : NULL;
    if (!who) {
        s->no_memory = true;
        return;
    }
    *rerun = (struct hf_audit_rerun){ .who = who,
                                      .taken_over = taken_over,
                                      .first_state = (enum hf_claim_state)before->state,
                                      .first_fence = before->fence,
                                      .first_at = before->begun_at,
                                      .ended_at = taken_over ? before->lease_expires_at
                                                             : before->settled_at,
                                      .until = before->expires_at,
                                      .second_fence = row->fence,
                                      .second_at = row->begun_at };
    r->rerun_listed++;
}

static void begin_count(struct hf_audit_state *s, const struct hf_audit_entry *e,
                        const struct hf_audit_claim *before, const struct hf_claim *row)
{
    struct hf_audit_claims *c = &s->report->claim;
    c->begun++;
    if (!before)
        return;
    bool over = claim_settled(before->state) && claim_forgotten(before, e->recorded_at);
    c->retried += before->state == HF_CLAIM_RETRYABLE;
    c->taken_over += before->state == HF_CLAIM_STARTED;
    c->again += over;
    if (over || before->state == HF_CLAIM_STARTED)
        rerun_list(s, row, before, !over);
}

static void settle_count(struct hf_audit_claims *c, const struct hf_audit_entry *e,
                         const struct hf_claim *row)
{
    c->abandoned += e->action == HF_ABANDON;
    c->settled[HF_CLAIM_COMPLETED] += e->action == HF_COMPLETE;
    if (e->action == HF_FAIL && row->state == HF_CLAIM_RETRYABLE)
        c->settled[HF_CLAIM_RETRYABLE]++;
    else
        c->settled[HF_CLAIM_FAILED] += e->action == HF_FAIL;
}

void hf_audit_count_claims(struct hf_audit_state *s)
{
    struct hf_audit_claims *counts = &s->report->claim;
    for (size_t i = 0; i < s->claims.room; i++) {
        const struct hf_audit_claim *c = (const void *)(s->claims.slots + i * s->claims.item_size);
        if (c->name.low == 0)
            continue;
        bool unknown = c->state == HF_CLAIM_STARTED && c->lease_expires_at <= s->report->last_now;
        if (unknown)
            counts->now[HF_CLAIM_UNKNOWN]++;
        else if (c->state <= HF_CLAIM_RETRYABLE)
            counts->now[c->state]++;
    }
}

/* ---- One entry ---- */

void hf_audit_judge_claim(struct hf_audit_state *s, const struct hf_audit_entry *e,
                          const struct hf_claim *row)
{
    bool fresh;
    struct hf_audit_claim *c = hf_audit_item(
        s, &s->claims, hf_audit_name_of(HF_AUDIT_CLAIMS, row->tenant, row->key, nothing()), &fresh);
    if (!c)
        return;
    s->report->claims += fresh;
    hf_audit_looked(s, HF_AUDIT_CLAIM, 1);
    const char *wrong = e->action == HF_BEGIN ? begin_wrong(fresh ? NULL : c, row, e->recorded_at)
                                              : settle_wrong(fresh ? NULL : c, row, e);
    if (!wrong && claim_settled((uint8_t)row->state) && !retention_fits(s, row))
        wrong = row->retention_ms
                    ? "is not remembered for exactly its retention after it was settled"
                    : "is not remembered for exactly one window after it was settled";
    if (wrong)
        hf_audit_break(s, HF_AUDIT_CLAIM, e,
                       "claim %s (fence %llu, before: %s since position %s) %s",
                       hf_audit_show(row->key).text, (unsigned long long)row->fence,
                       fresh ? "nothing" : hf_audit_claim_name(c->state),
                       hf_audit_figure(s, c->position).text, wrong);
    if (e->action == HF_BEGIN) {
        begin_count(s, e, fresh ? NULL : c, row);
        hf_audit_fresh_fence(s, e, "claim", row->key, c->fence, row->fence);
        if (hf_audit_key_alive(s, row->tenant, row->key, e->recorded_at))
            hf_audit_break(s, HF_AUDIT_IR4, e,
                           "claim %s begins with a key that another call has used",
                           hf_audit_show(row->key).text);
    } else {
        settle_count(&s->report->claim, e, row);
    }
    c->fence = row->fence;
    c->fingerprint = hf_get64(row->fingerprint);
    c->position = e->position;
    c->begun_at = row->begun_at;
    c->settled_at = row->settled_at;
    c->lease_expires_at = row->lease_expires_at;
    c->expires_at = row->expires_at;
    c->state = (uint8_t)row->state;
    c->on_abandon = (uint8_t)row->on_abandon;
    c->retention_ms = row->retention_ms;
}
