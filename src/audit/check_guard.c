/* Guards: DP1 to DP4. */
#include "audit/check.h"
#include "audit/words.h"

#include <stdlib.h>
#include <string.h>

/* Add the guard to the report, if there is room. Its place, or 0. */
static uint32_t rule_add(struct hf_audit_state *s, const struct hf_guard *row)
{
    struct hf_audit_report *r = s->report;
    if (r->guard_rule_count == HF_AUDIT_CONFIGS_MAX)
        return 0;
    struct hf_audit_guard_rule *more =
        realloc(r->guard_rules, (r->guard_rule_count + 1) * sizeof *more);
    if (more)
        r->guard_rules = more;
    char *who = more ? hf_audit_copy(hf_audit_named("guard", row->name, row->tenant).text) : NULL;
    if (!who) {
        s->no_memory = true;
        return 0;
    }
    r->guard_rules[r->guard_rule_count++] = (struct hf_audit_guard_rule){ .who = who };
    return (uint32_t)r->guard_rule_count;
}

static void rule_set(struct hf_audit_guard_rule *rule, const struct hf_guard *row, hf_time now)
{
    rule->since = now;
    rule->window_ms = row->window_ms;
    memcpy(rule->match, row->match, sizeof rule->match);
    rule->match_count = row->match_count;
    rule->closed = row->on_unavailable == HF_FAIL_CLOSED;
    rule->durable = row->durable;
}

static unsigned steps_of(const struct hf_guard *row)
{
    unsigned steps = 0;
    for (uint32_t i = 0; i < row->match_count && i < HF_MATCH_MAX; i++)
        if (row->match[i] != HF_MATCH_EXACT)
            steps = steps * 10 + (unsigned)row->match[i] % 10;
    return steps;
}

static void guard_set(struct hf_audit_state *s, const struct hf_guard *row, hf_time now)
{
    struct hf_audit_name name =
        hf_audit_name_of(HF_AUDIT_GUARDS, row->tenant, row->name, hf_mem("", 0));
    struct hf_audit_guard *g = hf_audit_table_find(&s->guards, name);
    if (!g) {
        g = hf_audit_table_add(&s->guards, name, now);
        if (!g) {
            s->no_memory = true;
            return;
        }
        s->report->guards++;
        g->listed = rule_add(s, row);
    } else {
        s->report->guards_in_memory -= !g->durable;
    }
    struct hf_audit_guard_rule *rule =
        g->listed > 0 ? &s->report->guard_rules[g->listed - 1] : NULL;
    if (rule)
        rule_set(rule, row, now);
    if (rule && now < g->live_until && steps_of(row) != g->steps) {
        rule->forced++;
        rule->forced_at = now;
    }
    g->steps = steps_of(row);
    g->window_ms = row->window_ms;
    g->durable = row->durable;
    s->report->guards_in_memory += !g->durable;
}

/* DP1 and DP4: a recording begins now and ends one window later, at most HF_DURATION_MAX_MS. */
static void judge_guard_window(struct hf_audit_state *s, const struct hf_audit_entry *e,
                               const struct hf_entry *row)
{
    struct hf_audit_guard *g = hf_audit_table_find(
        &s->guards, hf_audit_name_of(HF_AUDIT_GUARDS, row->tenant, row->guard, hf_mem("", 0)));
    if (g && g->live_until < row->expires_at)
        g->live_until = row->expires_at;
    struct hf_audit_shown identity = hf_audit_show(row->identity);
    struct hf_audit_shown guard = hf_audit_show(row->guard);
    hf_audit_looked(s, HF_AUDIT_DP1, 1);
    if (!g)
        hf_audit_break(s, HF_AUDIT_DP1, e,
                       "identity %s is recorded in guard %s, which has no record", identity.text,
                       guard.text);
    else if (row->recorded_at != e->recorded_at ||
             row->expires_at != hf_audit_plus(row->recorded_at, g->window_ms))
        hf_audit_break(s, HF_AUDIT_DP1, e,
                       "identity %s in guard %s is recorded from %s until %s; the window is %s",
                       identity.text, guard.text, hf_audit_at(row->recorded_at).text,
                       hf_audit_at(row->expires_at).text, hf_audit_for(g->window_ms).text);
    hf_audit_looked(s, HF_AUDIT_DP4, 1);
    if (row->expires_at <= row->recorded_at ||
        (uint64_t)row->expires_at - (uint64_t)row->recorded_at > (uint64_t)HF_DURATION_MAX_MS)
        hf_audit_break(
            s, HF_AUDIT_DP4, e,
            "identity %s in guard %s is recorded from %s until %s, which is not a valid window",
            identity.text, guard.text, hf_audit_at(row->recorded_at).text,
            hf_audit_at(row->expires_at).text);
}

static void judge_identity(struct hf_audit_state *s, const struct hf_audit_entry *e,
                           const struct hf_entry *row)
{
    struct hf_audit_name name =
        hf_audit_name_of(HF_AUDIT_IDENTITIES, row->tenant, row->guard, row->identity);
    struct hf_audit_identity *i = hf_audit_table_find(&s->identities, name);
    judge_guard_window(s, e, row);
    hf_audit_looked(s, HF_AUDIT_DP2, 1);
    if (i && e->recorded_at < i->expires_at)
        hf_audit_break(s, HF_AUDIT_DP2, e,
                       "identity %s in guard %s was recorded at position %s until %s, and is "
                       "recorded again before that",
                       hf_audit_show(row->identity).text, hf_audit_show(row->guard).text,
                       hf_audit_figure(s, i->position).text, hf_audit_at(i->expires_at).text);
    if (!i)
        i = hf_audit_table_add(&s->identities, name, hf_audit_over(s, e->recorded_at));
    if (!i) {
        s->no_memory = true;
        return;
    }
    i->expires_at = row->expires_at;
    i->position = e->position;
    s->report->identities++;
}

void hf_audit_judge_guards(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    hf_audit_looked(s, HF_AUDIT_DP3, 1);
    if (e->action == HF_CHECK)
        hf_audit_break(s, HF_AUDIT_DP3, e, "a check left a record with %u rows",
                       (unsigned)e->row_count);
    for (size_t i = 0; i < e->row_count; i++) {
        if (s->rows[i].kind == HF_ROW_GUARD)
            guard_set(s, &s->rows[i].guard, e->recorded_at);
        else if (s->rows[i].kind == HF_ROW_ENTRY)
            judge_identity(s, e, &s->rows[i].identity);
    }
}
