/* Requests and answers, and what is told to the judge about both. */
#include "simulate/world.h"

#include "base/assert.h"

#include <stdlib.h>

static void lose(struct sim_world *w, struct sim_ask *ask)
{
    ask->settled = true;
    if (w->lost_count == SIM_LOST_MAX)
        return; /* some clients do not come back */
    struct sim_step *s = &w->lost[w->lost_count++];
    *s = ask->step;
    s->first = s->first ? s->first : s->label;
}

/* A fault is no answer to a client; unless it is its own function that failed. */
static bool is_answer(const struct sim_ask *ask)
{
    enum hf_status_kind kind = hf_status_kind(ask->status);
    if (kind == HF_KIND_OK || kind == HF_KIND_REFUSAL)
        return true;
    return kind == HF_KIND_FAULT && ask->request.action == HF_APPLY && ask->effect.did.runs > 0;
}

/* Did it bind a key at its time? Then that time is on disk. */
static bool is_lasting(const struct sim_ask *ask)
{
    const struct hf_token *t = &ask->result.token;
    return is_answer(ask) && !ask->result.replayed && t->action == ask->request.action &&
           t->recorded_at == ask->result.now &&
           (ask->request.action <= HF_REVERSE || ask->request.action == HF_CONFIRM_LATE) &&
           ask->result.answer.status != HF_TOKEN_COLLISION;
}

/* The answer has come out of the store. */
static void show(struct sim_world *w, struct sim_ask *ask)
{
    if (sim_disk_is_cut(w->disk))
        return; /* nobody is there to send it */
    sim_trace_number(&w->trace, ask->step.label);
    sim_trace_answer(&w->trace, ask->status, &ask->result);
    judge_shown(w->judge, ask->number, ask->status, &ask->result);
    ask->settled = true;
    if (ask->result.now > w->told)
        w->told = ask->result.now;
    if (is_lasting(ask) && ask->result.now > w->lasting)
        w->lasting = ask->result.now;
    if (is_answer(ask))
        sim_known_learn(&w->known, ask);
    else
        lose(w, ask);
}

static void done(struct hf_op *op, enum hf_status status)
{
    struct sim_world *w = op->arg;
    struct sim_ask *ask = (struct sim_ask *)((char *)op - offsetof(struct sim_ask, op));
    ask->done = true;
    ask->status = status;
    if (ask->number && !sim_failed(w))
        show(w, ask);
}

static struct sim_ask *ask_new(struct sim_world *w)
{
    if (w->ask_count == w->ask_room) {
        size_t room = w->ask_room ? w->ask_room * 2 : 32;
        struct sim_ask **asks = realloc(w->asks, room * sizeof *asks);
        HF_ASSERT(asks);
        w->asks = asks;
        for (; w->ask_room < room; w->ask_room++) {
            w->asks[w->ask_room] = calloc(1, sizeof **w->asks);
            HF_ASSERT(w->asks[w->ask_room]);
        }
    }
    struct sim_ask *ask = w->asks[w->ask_count++];
    ask->number = 0;
    ask->done = ask->settled = false;
    ask->effect.did.runs = 0;
    return ask;
}

/* Need the judge not hear of it? Because it was refused when the store could not read or write, so
 * that nothing happened at all; or because the power went while it was asked: then it was decided
 * after that, for nobody and for nothing. */
static bool is_excused(struct sim_world *w, const struct sim_ask *ask, bool failures)
{
    if (sim_disk_is_cut(w->disk))
        return true;
    if (hf_status_kind(ask->op.status) != HF_KIND_FAULT || ask->effect.did.runs > 0)
        return false;
    return w->stopped || failures;
}

/* Decided, and perhaps answered already. */
static void tell(struct sim_world *w, struct sim_ask *ask, bool failures)
{
    if (is_excused(w, ask, failures)) {
        lose(w, ask);
        return;
    }
    const struct judge_effect *effect = ask->request.action == HF_APPLY ? &ask->effect.did : NULL;
    ask->number = judge_decided(w->judge, sim_clock_latest(w), sim_weather(w), &ask->request,
                                effect, ask->op.status, &ask->result);
    if (ask->done)
        show(w, ask);
}

void sim_submit(struct sim_world *w, const struct sim_step *step)
{
    struct sim_ask *ask = ask_new(w);
    ask->step = *step;
    sim_ask_make(ask, w->mix, &w->known, &w->arena);
    ask->op =
        (struct hf_op){ .request = &ask->request, .result = &ask->result, .done = done, .arg = w };
    sim_trace_number(&w->trace, step->label);
    sim_trace_number(&w->trace, (uint64_t)w->wall_us);
    sim_trace_request(&w->trace, &ask->request);
    w->out->operations++;
    uint64_t failures = w->faults_happened;
    /* A batch has one time: that of its first request. */
    hf_time least = w->ask_count == 1 ? sim_clock_least(w) : 0;
    hf_submit(w->db, &ask->op);
    if (w->ask_count == 1 && hf_status_kind(ask->op.status) < HF_KIND_FAULT) {
        if (ask->result.now < least)
            sim_fail(w, "engine time is %lld, and the clocks have gone on to %lld",
                     (long long)ask->result.now, (long long)least);
        sim_clock_read(w, ask->result.now);
    }
    tell(w, ask, w->faults_happened > failures);
    sim_store_died(w);
}

/* All of them are answered, or nobody waits for them any more. */
static void asks_forget(struct sim_world *w)
{
    w->ask_count = 0;
    hf_arena_reset(&w->arena);
}

size_t sim_asks_lose(struct sim_world *w)
{
    size_t before = w->lost_count;
    for (size_t i = 0; i < w->ask_count; i++)
        if (!w->asks[i]->settled)
            lose(w, w->asks[i]);
    asks_forget(w);
    return w->lost_count - before;
}

void sim_flush(struct sim_world *w)
{
    hf_flush(w->db);
    if (sim_store_died(w))
        return;
    for (size_t i = 0; i < w->ask_count; i++)
        if (!w->asks[i]->done)
            sim_fail(w, "hf_flush returned, and the request of step %u has no answer",
                     w->asks[i]->step.label);
    asks_forget(w);
}

void sim_maintain(struct sim_world *w, int64_t steps)
{
    bool more = true, waits = false;
    for (size_t i = 0; i < w->ask_count; i++)
        waits |= !w->asks[i]->done;
    for (int64_t i = 0; more && i < steps; i++) {
        more = hf_maintain(w->db);
        if (sim_store_died(w))
            return;
    }
    if (more)
        return;
    sim_trouble_over(w);
    if (!waits)
        judge_maintained(w->judge, 0, NULL);
}

/* "What happened to my request?", where it has a key that can be asked for. */
static void ask_token(struct sim_world *w, const struct sim_step *lost)
{
    struct sim_step s = *lost;
    if (s.key_kind != SIM_KEY_TOKEN && s.key_kind != SIM_KEY_CLAIM && s.key_kind != SIM_KEY_NUMBER)
        return;
    s.action = HF_GET_TOKEN;
    sim_submit(w, &s);
}

void sim_ask_doubted(struct sim_world *w)
{
    enum { MANY = 5 };
    size_t count = w->doubted;
    w->doubted = 0;
    if (count < MANY || count > w->lost_count)
        return;
    struct sim_step *asked = calloc(count, sizeof *asked);
    HF_ASSERT(asked);
    memcpy(asked, w->lost + (w->lost_count - count), count * sizeof *asked);
    for (size_t i = 0; i < count && !sim_failed(w); i++)
        ask_token(w, &asked[i]);
    free(asked);
    if (!sim_failed(w))
        sim_flush(w);
}

void sim_retry(struct sim_world *w, const struct sim_step *step)
{
    size_t count = w->lost_count < (size_t)step->amount ? w->lost_count : (size_t)step->amount;
    struct sim_step *now = calloc(count ? count : 1, sizeof *now);
    HF_ASSERT(now);
    memcpy(now, w->lost, count * sizeof *now);
    memmove(w->lost, w->lost + count, (w->lost_count - count) * sizeof *w->lost);
    w->lost_count -= count;
    for (size_t i = 0; i < count && !sim_failed(w); i++) {
        if (step->variant)
            ask_token(w, &now[i]);
        sim_submit(w, &now[i]);
    }
    free(now);
}
