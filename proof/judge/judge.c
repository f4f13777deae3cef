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

void judge_opened(struct judge *j, const struct judge_rules *rules)
{
    if (j->verdict[0])
        return;
    if (j->down)
        object(j, j->op_count, "the store was opened after a crash, and nobody told what it shows");
    j->rules = *rules;
    j->opened++;
    j->floor = j->op_count;
    j->now = judge_time_on_disk(j);
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
    if (status < HF_STORAGE_FAILURE && op->now > j->now)
        j->now = op->now;
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
    if (view_time(j, view, judge_time_on_disk(j)))
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
    j->now = view->now;
}

const char *judge_verdict(const struct judge *j)
{
    return j->verdict[0] ? j->verdict : NULL;
}

struct judge_count judge_counted(const struct judge *j)
{
    return j->count;
}
