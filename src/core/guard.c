#include "core/guard.h"

#include "core/answer.h"
#include "core/match.h"
#include "core/name.h"

/* ---- Setting ---- */

static bool set_valid(const struct hf_request *r)
{
    return hf_name_valid(r->set_guard.name) && hf_duration_valid(r->set_guard.window_ms) &&
           hf_match_valid(r->set_guard.match, r->set_guard.match_count) &&
           (unsigned)r->set_guard.on_unavailable <= HF_FAIL_CLOSED;
}

static bool same_rules(const struct hf_guard *a, const struct hf_guard *b)
{
    return a->window_ms == b->window_ms && a->match_count == b->match_count &&
           memcmp(a->match, b->match, a->match_count * sizeof *a->match) == 0 &&
           a->on_unavailable == b->on_unavailable && a->durable == b->durable;
}

/* The next step from *i on that changes something: exact does not. 0: none is left. */
static enum hf_match step_next(const struct hf_guard *g, uint32_t *i)
{
    while (*i < g->match_count && g->match[*i] == HF_MATCH_EXACT)
        ++*i;
    return *i < g->match_count ? g->match[(*i)++] : (enum hf_match)0;
}

/* Do both bring every identity into the same form? */
static bool same_match(const struct hf_guard *a, const struct hf_guard *b)
{
    uint32_t i = 0, k = 0;
    enum hf_match step;
    do {
        step = step_next(a, &i);
        if (step != step_next(b, &k))
            return false;
    } while (step != 0);
    return true;
}

/* Another match rule would not recognise what was recorded under the old one. True: it may change
 * now. False: the answer is complete. */
static bool may_rematch(const struct hf_view *view, const struct hf_guard *was,
                        const struct hf_guard *is, hf_time now, struct hf_plan *plan)
{
    struct hf_scoped name = { was->tenant, was->name };
    if (same_match(was, is))
        return true;
    switch (view->guarded(view->ctx, name, now)) {
    case HF_ABSENT: return true;
    case HF_FOUND:
        hf_answer_record(plan, HF_RECORD_GUARD)->guard = *was;
        plan->answer.status = HF_WINDOW_NOT_ELAPSED;
        return false;
    default: hf_answer_status(plan, HF_STORAGE_FAILURE); return false;
    }
}

void hf_guard_set(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                  struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    if (!set_valid(r)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    struct hf_scoped name = { r->tenant, r->set_guard.name };
    struct hf_guard was;
    enum hf_found found = view->guard(view->ctx, name, &was);
    struct hf_guard is = { .tenant = name.tenant,
                           .name = name.name,
                           .window_ms = r->set_guard.window_ms,
                           .match_count = r->set_guard.match_count,
                           .on_unavailable = r->set_guard.on_unavailable,
                           .durable = !r->set_guard.volatile_only,
                           .created_at = found == HF_FOUND ? was.created_at : now };
    memcpy(is.match, r->set_guard.match, is.match_count * sizeof *is.match);
    bool changed = found != HF_FOUND || !same_rules(&was, &is);
    if (found == HF_UNREADABLE || (changed && cmd->refuse_writes)) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return;
    }
    if (found == HF_FOUND && !r->set_guard.force && !may_rematch(view, &was, &is, now, plan))
        return;
    hf_answer_record(plan, HF_RECORD_GUARD)->guard = is;
    if (changed)
        hf_plan_row(plan, HF_ROW_GUARD)->guard = is;
}

/* ---- Asking ---- */

static bool ask_valid(const struct hf_request *r)
{
    return hf_name_valid(r->identity.guard) && r->identity.identity.size > 0 &&
           r->identity.identity.size <= HF_IDENTITY_MAX &&
           (!r->identity.has_result || r->identity.result.size <= HF_GUARD_RESULT_MAX);
}

/* The guard could not read or write the entry. on_unavailable says whether that counts as seen. A
 * lost recording is counted. Here record always answers not seen. */
static void ask_unavailable(const struct hf_command *cmd, const struct hf_guard *guard,
                            struct hf_plan *plan)
{
    enum hf_action action = cmd->request->action;
    bool seen = action != HF_RECORD && guard->on_unavailable == HF_FAIL_CLOSED;
    plan->answer.seen.seen = seen;
    plan->missed = action != HF_CHECK && !seen;
}

static void ask_record(const struct hf_command *cmd, const struct hf_guard *guard, hf_time now,
                       struct hf_bytes identity, struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    struct hf_entry *entry = &hf_plan_row(plan, HF_ROW_ENTRY)->entry;
    entry->tenant = r->tenant;
    entry->guard = r->identity.guard;
    entry->identity = identity;
    entry->has_result = r->identity.has_result;
    if (entry->has_result)
        entry->result = r->identity.result;
    entry->recorded_at = now;
    entry->expires_at = now + guard->window_ms;
}

void hf_guard_ask(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                  struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    struct hf_scoped name = { r->tenant, r->identity.guard };
    struct hf_guard guard;
    if (!ask_valid(r)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return;
    }
    if (!hf_answer_found(plan, view->guard(view->ctx, name, &guard)))
        return;
    struct hf_bytes identity;
    enum hf_status status = hf_match_apply(&guard, r->identity.identity, plan, &identity);
    if (status != HF_OK) {
        hf_answer_status(plan, status);
        return;
    }
    struct hf_entry entry;
    enum hf_found found = view->entry(view->ctx, name, identity, &entry);
    hf_answer_record(plan, HF_RECORD_SEEN)->seen = (struct hf_seen){ .seen = false };
    /* An entry may still be in memory after its window has closed; it is no longer under guard. */
    if (found == HF_FOUND && now < entry.expires_at) {
        plan->answer.seen = (struct hf_seen){ true, entry.has_result, entry.recorded_at,
                                              entry.expires_at, entry.result };
    } else if (found == HF_UNREADABLE || (r->action != HF_CHECK && cmd->refuse_writes)) {
        ask_unavailable(cmd, &guard, plan);
    } else if (r->action != HF_CHECK) {
        ask_record(cmd, &guard, now, identity, plan);
    }
}
