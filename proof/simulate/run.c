#include "simulate/run.h"

#include "base/assert.h"
#include "simulate/script.h"
#include "simulate/world.h"

#include <stdarg.h>
#include <stdlib.h>

enum { SETTLE_ROUNDS = 4, SETTLE_STEPS = 5000, AUDIT_EVERY = 50 };

void sim_fail(struct sim_world *w, const char *format, ...)
{
    va_list args;
    if (w->out->failed)
        return;
    va_start(args, format);
    vsnprintf(w->out->sentence, sizeof w->out->sentence, format, args);
    va_end(args);
    w->out->failed = true;
    w->out->label = w->step ? w->step->label : 0;
    snprintf(w->out->fault, sizeof w->out->fault, "%s", w->fault[0] ? w->fault : "none");
}

bool sim_failed(const struct sim_world *w)
{
    return w->out->failed;
}

static void ask_judge(struct sim_world *w)
{
    const char *verdict = judge_verdict(w->judge);
    if (verdict)
        sim_fail(w, "%s", verdict);
}

/* ---- The steps ---- */

static void look(struct sim_world *w)
{
    sim_flush(w);
    if (sim_failed(w))
        return;
    uint64_t failures = w->faults_happened;
    enum sim_look seen = sim_look(w, w->db, NULL);
    /* What is not right in holds.idx is rebuilt by itself. */
    for (int round = 0; seen != SIM_LOOK_OK && w->stale && round < SETTLE_ROUNDS; round++) {
        if (sim_store_died(w))
            return;
        sim_maintain(w, SETTLE_STEPS);
        sim_pass_us(w, 1200000);
        sim_flush(w);
        if (sim_failed(w))
            return;
        seen = sim_look(w, w->db, NULL);
    }
    if (sim_failed(w) || seen == SIM_LOOK_OK || sim_store_died(w))
        return;
    if (w->faults_happened == failures)
        sim_fail(w, "the store cannot list what it holds");
}

static void cut(struct sim_world *w, const struct sim_step *s)
{
    w->cuts_left = s->variant;
    if (s->amount > 0) {
        w->cut_at = w->calls + (uint64_t)s->amount;
        return;
    }
    snprintf(w->fault, sizeof w->fault, "a power cut between two calls");
    sim_disk_cut(w->disk);
    sim_store_died(w);
}

static void set_room(struct sim_world *w, int64_t left)
{
    w->limited = left >= 0;
    if (w->limited)
        snprintf(w->fault, sizeof w->fault, "a full disk");
    sim_disk_room(w->disk, left < 0 ? UINT64_MAX : sim_disk_used(w->disk) + (uint64_t)left);
    w->troubled = true;
    w->troubled_ns = w->steady_ns;
}

static void carry_out(struct sim_world *w, const struct sim_step *s)
{
    sim_chance_init(&w->chance, s->draw);
    switch ((enum sim_kind)s->kind) {
    case SIM_ASK: sim_submit(w, s); break;
    case SIM_FLUSH: sim_flush(w); break;
    case SIM_MAINTAIN: sim_maintain(w, s->amount); break;
    case SIM_LOOK: look(w); break;
    case SIM_RETRY: sim_retry(w, s); break;
    case SIM_PASS: sim_pass_us(w, (uint64_t)s->amount * 1000); break;
    case SIM_JUMP: (s->variant ? sim_clock_sleep : sim_clock_jump)(w, s->amount); break;
    case SIM_STALL: w->stalled = s->amount != 0; break;
    case SIM_CUT: cut(w, s); break;
    case SIM_REOPEN: sim_store_reopen(w, s); break;
    case SIM_ROOM: set_room(w, s->amount); break;
    case SIM_FAIL: sim_fault_arm(w, (enum sim_call)s->variant, (uint64_t)s->amount, s->draw); break;
    case SIM_SLOW: w->slow_us = (uint64_t)s->amount; break;
    case SIM_ROT: sim_store_rot(w, s); break;
    case SIM_STALE: sim_store_stale(w, s); break;
    }
}

/* ---- The end ---- */

/* Maintenance says that nothing is left to do, now and a little later, and the store has got over
 * what failed. No time passes after it has said so the last time. */
static void settle_store(struct sim_world *w)
{
    struct hf_stats before, after;
    for (int round = 0; round < SETTLE_ROUNDS; round++) {
        int steps = 0;
        hf_stats(w->db, &before);
        while (steps < SETTLE_STEPS && hf_maintain(w->db))
            steps++;
        if (steps == SETTLE_STEPS) {
            sim_fail(w, "maintenance does not come to an end");
            return;
        }
        sim_trouble_over(w);
        if (round > 0 && !w->troubled) {
            hf_stats(w->db, &after);
            judge_maintained(w->judge, before.now, &after);
            return;
        }
        sim_pass_us(w, 1200000);
    }
    sim_fail(w, "the store does not recover though nothing fails any more");
}

/* Every client gets an answer. */
static void settle_clients(struct sim_world *w)
{
    struct sim_step all = { .kind = SIM_RETRY, .amount = SIM_LOST_MAX };
    for (int round = 0; round < 2 && w->lost_count > 0 && !sim_failed(w); round++) {
        sim_retry(w, &all);
        if (!sim_failed(w))
            sim_flush(w);
        ask_judge(w);
    }
    if (w->lost_count > 0)
        sim_fail(
            w,
            "%zu clients get no answer though nothing fails any more; the first is that of step %u",
            w->lost_count, w->lost[0].first);
}

/* Long after the last window has closed, no key is left in memory. Windows close by the time of
 * what was written last, so something is written. */
static void settle_windows(struct sim_world *w)
{
    struct hf_stats stats;
    struct sim_step set = { .kind = SIM_ASK, .action = HF_SET_RESOURCE, .variant = HF_SET_OPEN };
    sim_pass_us(w, (UINT64_C(86400000) * 2) * 1000);
    for (set.amount = HF_CAPACITY_MAX - 1; set.amount <= HF_CAPACITY_MAX && !sim_failed(w);
         set.amount++) {
        sim_submit(w, &set);
        sim_flush(w);
    }
    if (!sim_failed(w))
        settle_store(w);
    if (sim_failed(w))
        return;
    hf_stats(w->db, &stats);
    if (stats.tokens > 0)
        sim_fail(w, "%llu keys are still in memory long after all windows have closed",
                 (unsigned long long)stats.tokens);
}

/* A wall clock that stays where it is is believed after a minute. */
static void settle_clock(struct sim_world *w)
{
    struct hf_stats stats;
    hf_stats(w->db, &stats);
    if (w->wall_us / 1000 <= stats.now) {
        w->wall_us = stats.now * 1000; /* it catches up */
        return;
    }
    sim_pass_us(w, 60001000);
    hf_stats(w->db, &stats);
    if (stats.now != w->wall_us / 1000)
        sim_fail(w, "engine time is %lld though the wall clock has said more for a minute",
                 (long long)stats.now);
}

static void settle(struct sim_world *w)
{
    struct sim_step reopen = { .kind = SIM_REOPEN };
    sim_faults_stop(w);
    sim_flush(w);
    if (!sim_failed(w) && (w->unread || w->options.memory_max_bytes))
        sim_store_reopen(w, &reopen);
    if (sim_failed(w))
        return;
    settle_clock(w);
    if (!sim_failed(w))
        settle_store(w);
    if (!sim_failed(w))
        settle_clients(w);
    if (!sim_failed(w))
        settle_store(w);
    if (!sim_failed(w) && sim_overdue(w) > 0)
        sim_fail(w, "holds are overdue, and maintenance says that nothing is left to do");
}

static void finish(struct sim_world *w)
{
    static void (*const acts[])(struct sim_world * w) = {
        settle, look, sim_store_close, sim_store_open, settle_windows, look, sim_store_close
    };
    for (size_t i = 0; i < sizeof acts / sizeof *acts && !sim_failed(w); i++) {
        acts[i](w);
        ask_judge(w);
    }
    if (!sim_failed(w) && w->mix->seed % AUDIT_EVERY == 0)
        sim_audit(w);
}

/* ---- The whole ---- */

static void begin(struct sim_world *w)
{
    const struct sim_mix *m = w->mix;
    w->options.segment_max_bytes = m->segment_bytes;
    w->options.snapshot_every_bytes = m->snapshot_bytes;
    w->options.keep_plain = m->keep_plain;
    w->rules = (struct judge_rules){ .idempotency_window_ms = m->window_ms,
                                     .token_max_length = m->token_max ? m->token_max : 256,
                                     .strict = m->strict };
    sim_store_open(w);
    ask_judge(w);
}

void sim_run(const struct sim_mix *mix, const struct sim_script *script, struct sim_outcome *out)
{
    struct sim_world *w = malloc(sizeof *w);
    HF_ASSERT(w);
    memset(out, 0, sizeof *out);
    sim_world_init(w, mix, script->labels, out);
    begin(w);
    for (size_t i = 0; i < script->count && !out->failed; i++) {
        w->step = &script->steps[i];
        carry_out(w, w->step);
        ask_judge(w);
        if (!out->failed && w->doubted)
            sim_ask_doubted(w);
    }
    w->step = NULL;
    if (!out->failed)
        finish(w);
    w->quiet = true;
    sim_trace_number(&w->trace, sim_disk_hash(w->disk));
    hf_close(w->db);
    out->trace = w->trace.hash;
    out->lost = judge_counted(w->judge).lost;
    sim_world_free(w);
    free(w);
}

void sim_run_seed(uint64_t seed, uint32_t operations, struct sim_outcome *out)
{
    struct sim_mix mix;
    struct sim_script script;
    sim_mix_draw(&mix, seed, operations);
    sim_script_draw(&mix, &script);
    sim_run(&mix, &script, out);
    sim_script_free(&script);
}
