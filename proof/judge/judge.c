/* judge.c: what the teller calls. */
#include "judge/model.h"

#include <stdio.h>

hf_time judge_time_on_disk(const struct judge *j)
{
    for (uint64_t n = j->floor; n > 0; n--)
        if (j->ops[n - 1]->lasting && !j->ops[n - 1]->unsure && !j->ops[n - 1]->lost)
            return j->ops[n - 1]->now;
    return 0;
}

static void object(struct judge *j, uint64_t number, const char *why)
{
    if (!j->verdict[0])
        snprintf(j->verdict, sizeof j->verdict, "operation %llu: %s", (unsigned long long)number,
                 why);
}

#define UNHEARD INT64_MAX

static void first_time(struct judge *j, hf_time now)
{
    if (j->opened_until == UNHEARD)
        j->opened_until = now;
}

void judge_opened(struct judge *j, const struct judge_rules *rules)
{
    if (j->verdict[0])
        return;
    if (j->down)
        object(j, j->op_count, "the store was opened after a crash, and nobody told what it shows");
    j->rules = *rules;
    j->opened++;
    j->floor = j->op_count;
    j->now = j->opened_from = judge_time_on_disk(j);
    j->opened_until = UNHEARD;
    judge_undo_trim(j);
}

static void add_up(struct judge *j, const struct judge_op *op)
{
    j->count.effects += op->lasting;
    j->count.replays += op->replayed;
    j->count.collisions += op->status == HF_TOKEN_COLLISION;
    j->count.refusals += op->status != HF_OK && op->status < HF_STORAGE_FAILURE && !op->replayed;
}

uint64_t judge_decided(struct judge *j, hf_time wall, unsigned weather,
                       const struct hf_request *request, const struct judge_effect *effect,
                       enum hf_status status, const struct hf_result *result)
{
    if (j->verdict[0])
        return ++j->count.operations;
    struct judge_op *op = judge_op_copy(j, request, effect, result);
    op->wall = wall;
    op->weather = weather;
    op->status = status;
    if (j->op_count == j->op_room) {
        j->op_room = j->op_room ? 2 * j->op_room : 1024;
        j->ops = judge_grow(j->ops, j->op_room * sizeof(struct judge_op *));
    }
    j->ops[j->op_count++] = op;
    op->number = j->op_count;
    j->count.operations++;
    if (j->down)
        object(j, op->number, "it was decided while the store was down");
    else
        judge_doubt_step(j, op);
    if (status < HF_STORAGE_FAILURE) {
        first_time(j, op->now);
        j->now = op->now > j->now ? op->now : j->now;
    }
    add_up(j, op);
    return op->number;
}

void judge_shown(struct judge *j, uint64_t number, enum hf_status status,
                 const struct hf_result *result)
{
    if (j->verdict[0] || status == HF_INDETERMINATE)
        return;
    if (number < 1 || number > j->op_count) {
        object(j, number, "an answer was shown to something that was never decided");
        return;
    }
    struct judge_op *op = j->ops[number - 1];
    j->count.shown++;
    if (op->lost)
        object(j, number, "it was answered after a crash had taken it back, or may have");
    else if (j->down && number > j->floor)
        object(j, number, "it was answered by a store that is down");
    else if (status != op->status)
        object(j, number, "the caller was shown another status than was decided");
    else if (status < HF_STORAGE_FAILURE && result &&
             (!judge_answer_same(&result->answer, &op->answer) || result->replayed != op->replayed))
        object(j, number, "the caller was shown another answer than was decided");
    op->shown = true;
    uint64_t promised = op->lasting && !op->unsure ? number : op->saw;
    if (promised > j->floor) {
        j->floor = promised;
        judge_undo_trim(j);
    }
}

void judge_timed(struct judge *j, uint64_t number, uint64_t called_ns, uint64_t returned_ns)
{
    if (j->verdict[0])
        return;
    if (number <= j->timed || number > j->op_count)
        object(j, number, "it was timed out of the order in which the operations were decided");
    else if (returned_ns != 0 && returned_ns < called_ns)
        object(j, number, "it was answered before it was called");
    else if (returned_ns != 0 && returned_ns < j->latest_call)
        object(j, number, "it was answered before something was called that was decided before it");
    j->timed = number;
    if (called_ns > j->latest_call)
        j->latest_call = called_ns;
}

void judge_crashed(struct judge *j)
{
    if (j->verdict[0] || j->down)
        return;
    j->count.crashes++;
    j->down = true;
    judge_doubt_crash(j);
}

/* Nobody's engine time may be before what is on disk. */
static bool view_time(struct judge *j, const struct judge_view *view, hf_time least)
{
    if (view->now >= least)
        return true;
    char why[128];
    snprintf(why, sizeof why, "the view after it is of %lld, and engine time was %lld",
             (long long)view->now, (long long)least);
    object(j, j->op_count, why);
    return false;
}

void judge_recovered(struct judge *j, const struct judge_rules *rules,
                     const struct judge_view *view)
{
    char why[JUDGE_WORDS] = "";
    if (j->verdict[0])
        return;
    judge_crashed(j);
    j->rules = *rules;
    j->opened++;
    struct judge_step s = { .j = j, .now = view->now, .serial = ++j->step, .quiet = true };
    judge_hold_revive(&s);
    if (!judge_view_hang(j, view, why)) {
        object(j, j->op_count, why);
        return;
    }
    judge_doubt_recover(j, view);
    if (!j->verdict[0] && !judge_doubt_look(j, view, why))
        object(j, j->op_count, why);
    if (j->verdict[0])
        return;
    judge_view_learn(j, view);
    j->down = false;
    judge_undo_trim(j);
    j->opened_from = judge_time_on_disk(j);
    j->opened_until = view->now;
    if (view_time(j, view, j->opened_from))
        j->now = view->now;
}

void judge_looked(struct judge *j, const struct judge_view *view)
{
    char why[JUDGE_WORDS] = "";
    if (j->verdict[0])
        return;
    j->count.looks++;
    if (!view_time(j, view, j->now))
        return;
    if (!judge_view_hang(j, view, why) || judge_view_count(j, view, why) > 0 ||
        !judge_doubt_look(j, view, why)) {
        object(j, j->op_count, why);
        return;
    }
    judge_view_learn(j, view);
    first_time(j, view->now);
    j->now = view->now;
}

/* ---- Claims that become unknown by themselves ---- */

static bool lapse_said(const struct judge *j, const struct judge_record *key,
                       const struct hf_claim *c)
{
    return key->lapsed_opened == j->opened && key->lapsed_fence == c->fence &&
           key->lapsed_at == c->lease_expires_at;
}

static void object_claim(struct judge *j, const struct hf_claim *c, const char *what)
{
    char why[600];
    snprintf(why, sizeof why, "the claim %.*s, fence %llu, is unknown since %lld: %s",
             (int)(c->key.size < 256 ? c->key.size : 256), (const char *)c->key.data,
             (unsigned long long)c->fence, (long long)c->lease_expires_at, what);
    object(j, j->op_count, why);
}

void judge_lapsed(struct judge *j, hf_time wall, const struct hf_claim *claim)
{
    if (j->verdict[0])
        return;
    j->count.lapsed++;
    struct judge_record *key = judge_find(j, JUDGE_KEY, claim->tenant, claim->key, hf_mem("", 0));
    /* A claim that is abandoned, extended and abandoned again in one millisecond becomes unknown
     * twice. */
    if (lapse_said(j, key, claim) && !key->doubt && key->lapsed_stamp == key->body.stamp)
        object_claim(j, claim, "the store said so before");
    else if (claim->lease_expires_at < j->opened_from)
        object_claim(j, claim, "that was so when the store was opened, and it said so again");
    key->lapsed_at = claim->lease_expires_at;
    key->lapsed_fence = claim->fence;
    key->lapsed_stamp = key->body.stamp;
    key->lapsed_opened = j->opened;
    /* As a read of the claim, by which keys are not too long that others were begun with. */
    struct hf_request read = { .action = HF_GET_CLAIM, .tenant = claim->tenant, .key = claim->key };
    struct hf_result said = { .now = claim->lease_expires_at > j->now ? claim->lease_expires_at
                                                                      : j->now };
    said.answer = (struct hf_answer){ .status = HF_OK, .kind = HF_RECORD_CLAIM, .claim = *claim };
    uint32_t longest = j->rules.token_max_length;
    j->rules.token_max_length = UINT32_MAX;
    uint64_t number = judge_decided(j, wall, JUDGE_FAIR, &read, NULL, HF_OK, &said);
    j->rules.token_max_length = longest;
    judge_shown(j, number, HF_OK, &said);
}

/* How many claims are unknown, and how many are in progress, at `now`? */
struct open_claims {
    uint64_t started, unknown;
    hf_time since; /* of the first that became unknown; 0: none did */
};

static struct open_claims count_open(const struct judge *j, hf_time now)
{
    struct open_claims n = { .started = 0 };
    for (const struct judge_record *r = j->kinds[JUDGE_KEY]; r; r = r->next) {
        const struct hf_claim *c = judge_claim_alive(r, now);
        if (!c || c->state != HF_CLAIM_STARTED)
            continue;
        bool over = now >= c->lease_expires_at;
        n.started += !over;
        n.unknown += over;
        if (over && (n.since == 0 || c->lease_expires_at < n.since))
            n.since = c->lease_expires_at;
    }
    return n;
}

static void judge_counts(struct judge *j, hf_time from, const struct hf_stats *stats)
{
    char why[600];
    for (const struct judge_record *r = j->kinds[JUDGE_KEY]; r; r = r->next)
        if (r->doubt)
            return;
    struct open_claims before = count_open(j, from), after = count_open(j, stats->now);
    bool well = stats->claims_unknown >= before.unknown && stats->claims_unknown <= after.unknown &&
                stats->claims_started + stats->claims_unknown == after.started + after.unknown &&
                stats->claims_unknown_since == (stats->claims_unknown ? after.since : 0);
    if (well)
        return;
    snprintf(why, sizeof why,
             "%llu claims in progress and %llu unknown are counted, since %lld, and there are "
             "%llu and %llu, since %lld",
             (unsigned long long)stats->claims_started, (unsigned long long)stats->claims_unknown,
             (long long)stats->claims_unknown_since, (unsigned long long)after.started,
             (unsigned long long)after.unknown, (long long)after.since);
    object(j, j->op_count, why);
}

void judge_maintained(struct judge *j, hf_time now, const struct hf_stats *stats)
{
    hf_time from = now > j->now ? now : j->now;
    if (j->verdict[0] || j->down)
        return;
    for (const struct judge_record *r = j->kinds[JUDGE_KEY]; r; r = r->next) {
        const struct hf_claim *c = r->doubt ? NULL : judge_claim_alive(r, from);
        if (c && c->state == HF_CLAIM_STARTED && c->lease_expires_at <= from &&
            c->lease_expires_at > j->opened_until && !lapse_said(j, r, c))
            object_claim(j, c, "maintenance has nothing left to do, and the store did not say so");
    }
    if (stats)
        judge_counts(j, from, stats);
}

const char *judge_verdict(const struct judge *j)
{
    return j->verdict[0] ? j->verdict : NULL;
}

struct judge_count judge_counted(const struct judge *j)
{
    return j->count;
}
