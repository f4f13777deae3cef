/* A disk that was left by a power cut: does the store recover, and to what it must? */
#include "power/inner.h"

#include "audit/audit.h"
#include "power/words.h"
#include "support/test.h"

#include <errno.h>
#include <unistd.h>

/* ---- The audit, which reads real files ---- */

static bool file_write(void *arg, const char *name, uint64_t size)
{
    struct power *p = arg;
    struct hf_bytes bytes;
    char path[300];
    snprintf(path, sizeof path, "%s/%s", p->ledger->audit_dir, name);
    FILE *f = fopen(path, "wb");
    if (!f || !sim_disk_bytes(p->disk, name, &bytes) ||
        (size > 0 && fwrite(bytes.data, 1, size, f) != size) || fclose(f) != 0)
        power_object(p, "%s cannot be written for the audit", path);
    return true;
}

static bool file_remove(void *arg, const char *name, uint64_t size)
{
    struct power *p = arg;
    char path[300];
    (void)size;
    snprintf(path, sizeof path, "%s/%s", p->ledger->audit_dir, name);
    unlink(path);
    return true;
}

/* What the report says first. Borrowed from it. */
static const char *first_finding(const struct hf_audit_report *r)
{
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        if (r->checks[i].violations > 0)
            return r->checks[i].example_count > 0 ? r->checks[i].examples[0] : r->checks[i].title;
    return r->damages > 0 ? r->damage[0].what : "nothing";
}

static void audit(struct power *p, const char *when)
{
    struct hf_audit_report report;
    struct hf_error why;
    sim_disk_each(p->disk, file_write, p);
    enum hf_status st = hf_audit_run(p->ledger->audit_dir, NULL, &report, &why);
    if (st != HF_OK && st != HF_STORE_ABSENT)
        power_object(p, "the audit fails %s: %s", when, why.text);
    else if (st == HF_OK && report.verdict != HF_AUDIT_OK)
        power_object(p, "the audit objects %s: verdict %d, %s", when, (int)report.verdict,
                     first_finding(&report));
    hf_audit_report_free(&report);
    sim_disk_each(p->disk, file_remove, p);
    p->ledger->count->audits++;
}

/* ---- Requests outside the script ---- */

/* They write registers that nothing else looks at: long, so that it covers what a batch cut short
 * has left, or short. */
static enum hf_status extra(struct power *p, size_t n, struct hf_result *got)
{
    static char value[6000];
    char key[32];
    memset(value, 'x', sizeof value);
    snprintf(key, sizeof key, "extra-%zu", n);
    return hf_do(
        p->db,
        &(struct hf_request){
            .action = HF_WRITE,
            .key = hf_str(key),
            .write = { .name = hf_str(key), .value = hf_mem(value, n == 0 ? sizeof value : 40) } },
        got);
}

static void extras_check(struct power *p)
{
    struct hf_result got = HF_RESULT_INIT;
    for (size_t i = 0; i < p->extra_count; i++)
        if (extra(p, i, &got) != HF_OK || !got.replayed ||
            power_answer_hash(&got.answer) != p->extras[i])
            power_object(
                p, "a write that was answered after the first recovery is answered otherwise: %s%s",
                hf_status_code(got.answer.status), got.replayed ? "" : ", and done again");
    hf_result_clear(&got);
}

static void extras_do(struct power *p)
{
    struct hf_result got = HF_RESULT_INIT;
    for (size_t i = 0; i < POWER_EXTRAS && !power_objected(p); i++) {
        enum hf_status st = extra(p, i, &got);
        if (st != HF_OK)
            power_object(p, "a write after the recovery is answered with %s", hf_status_code(st));
        p->extras[i] = power_answer_hash(&got.answer);
        p->extra_count = i + 1;
    }
    hf_result_clear(&got);
}

/* ---- Judging ---- */

static bool open_must(struct power *p, const char *when)
{
    struct hf_error why;
    enum hf_status st = power_objected(p) ? HF_MISUSE : power_open(p, &why);
    if (st != HF_OK)
        power_object(p, "the store does not open %s: %s: %s", when, hf_status_code(st), why.text);
    return st == HF_OK;
}

/* It must show what was there before the step that was going on, or after it. state: out. */
static bool state_allowed(struct power *p, uint64_t *state)
{
    const uint64_t *states = p->ledger->states;
    if (!power_state(p, state))
        return false;
    bool before = p->step > 0 && *state == states[p->step - 1], after = *state == states[p->step];
    if (p->pinned && *state != p->pins[0] && *state != p->pins[1])
        power_object(p, "what was shown after a recovery is gone");
    else if (!p->pinned && p->answered && !after)
        power_object(p, "what was answered is gone");
    else if (!p->pinned && !before && !after)
        power_object(
            p, "the store shows neither what was there before the step nor what was after it");
    return !power_objected(p);
}

/* Everything that was answered up to step `last` is answered again, and nothing happens. */
static void replays_check(struct power *p, size_t last)
{
    uint64_t before, after;
    if (!power_state(p, &before))
        return;
    for (size_t s = 1; s <= last && !power_objected(p); s++)
        power_step(p, DOING_REPLAY, s);
    extras_check(p);
    if (power_state(p, &after) && before != after)
        power_object(p, "asking again for what was answered has changed something");
}

/* The last step that must be there in a store that shows this. */
static size_t last_there(const struct power *p, uint64_t state)
{
    const uint64_t *states = p->ledger->states;
    /* A step that changes nothing to be seen may have happened or not, unless it was answered. */
    bool doubt =
        p->step > 0 && !p->answered && (state != states[p->step] || state == states[p->step - 1]);
    return p->step - doubt;
}

static bool recovered(struct power *p, const char *when, uint64_t *state)
{
    if (!open_must(p, when) || !state_allowed(p, state))
        return false;
    if (p->warning[0])
        power_object(p, "after a power cut alone there is nothing to warn of: %s", p->warning);
    replays_check(p, last_there(p, *state));
    return !power_objected(p);
}

/* What is shown is durable: nothing that was not synced survives now, and it is still there. */
static bool shown_stays(struct power *p, uint64_t state)
{
    uint64_t now;
    sim_disk_cut(p->disk);
    power_close(p);
    p->choosing = (struct power_choosing){ .way = WAY_OLDEST };
    sim_disk_restart(p->disk);
    if (!open_must(p, "after a second cut that kept nothing") || !power_state(p, &now))
        return false;
    if (now != state)
        power_object(p, "what was shown after the recovery is gone after a second cut");
    extras_check(p);
    return !power_objected(p);
}

/* Work goes on: the step that was cut is done again, and then those behind it. */
static void go_on(struct power *p, size_t steps)
{
    size_t first = p->step > 0 ? p->step : 1, last = p->ledger->script->steps;
    if (p->pinned && p->pins[0] != p->pins[1])
        return; /* house was kept at another moment than in the script */
    if (last > first + steps - 1)
        last = first + steps - 1;
    for (size_t s = first; s <= last && !power_objected(p); s++) {
        uint64_t state;
        power_step(p, DOING_AGAIN, s);
        if (!power_objected(p) && power_state(p, &state) && state != p->ledger->states[s])
            power_object(p, "after the recovery, step %zu leaves something else than it did", s);
    }
    if (!power_objected(p))
        replays_check(p, last);
}

void power_judge(struct power *p)
{
    const struct power_limits *limits = &p->ledger->limits[p->level > 1];
    uint64_t state, now;
    bool with_audit = p->ledger->count->judged % limits->audit_every == 0;
    if (with_audit)
        audit(p, "before the recovery");
    if (recovered(p, "after the cut", &state) && shown_stays(p, state)) {
        go_on(p, limits->go_on);
        if (!power_objected(p) && power_state(p, &state)) {
            power_close(p);
            if (with_audit)
                audit(p, "after the recovery");
            if (open_must(p, "after an orderly close") && power_state(p, &now) && now != state)
                power_object(p, "an orderly close has lost something");
        }
    }
    power_end(p);
}

/* ---- A second fault ---- */

/* Recover, and work on until the store is closed again. pins: in, unless `first`; out. */
static void second_life(const struct power *p, bool first, uint64_t pins[2])
{
    struct power q;
    uint64_t state;
    power_branch(&q, p->ledger, p, p->disk);
    q.hook = first ? HOOK_CALM : HOOK_WATCH;
    if (open_must(&q, "after the cut") && state_allowed(&q, &state)) {
        q.pins[0] = state;
        q.pins[1] = first ? state : pins[1];
        q.pinned = true;
        extras_do(&q);
        power_settle(&q);
        if (!power_objected(&q) && power_state(&q, &state)) {
            pins[0] = q.pins[0];
            pins[1] = state;
        }
        power_close(&q);
    }
    q.hook = HOOK_CALM;
    power_end(&q);
}

void power_second_cuts(const struct power *p)
{
    uint64_t pins[2] = { 0 };
    second_life(p, true, pins); /* to see what will be there in the end */
    if (!power_objected(p))
        second_life(p, false, pins);
}

/* Is this a way to refuse that says what is wrong and makes nobody throw a store away? */
static bool refusal_is_clear(enum hf_status st, const struct hf_error *why)
{
    return (st == HF_STORAGE_FAILURE || st == HF_NO_MEMORY) && strlen(why->text) > 10 &&
           why->status == st;
}

/* Call number `at` of the recovery fails. */
static void fault_at(const struct power *p, uint64_t at, int fault)
{
    struct power q, cut;
    struct hf_error why;
    uint64_t state;
    power_branch(&q, p->ledger, p, p->disk);
    q.hook = HOOK_FAULT;
    q.fault_at = at;
    q.fault = fault;
    q.choosing = (struct power_choosing){ .way = WAY_RANDOM, .random = at };
    enum hf_status st = power_open(&q, &why);
    q.hook = HOOK_CALM;
    p->ledger->count->faults++;
    if (st == HF_OK) {
        if (state_allowed(&q, &state))
            replays_check(&q, last_there(&q, state));
    } else {
        p->ledger->count->refusals++;
        if (!refusal_is_clear(st, &why))
            power_object(&q,
                         "a call of the recovery fails with %d (%s), and the refusal is: %s: %s",
                         fault, strerror(-fault), hf_status_code(st), why.text);
    }
    power_close(&q);
    /* Later all is well again; once after another cut, and once without. */
    power_branch(&cut, q.ledger, &q, q.disk);
    cut.choosing = (struct power_choosing){ .way = at % 2 ? WAY_OLDEST : WAY_RANDOM, .random = at };
    sim_disk_cut(cut.disk);
    sim_disk_restart(cut.disk);
    recovered(&cut, "after a recovery with a fault and another cut", &state);
    power_end(&cut);
    recovered(&q, "after a recovery with a fault", &state);
    power_end(&q);
}

void power_faults(const struct power *p)
{
    struct power q;
    struct hf_error why;
    power_branch(&q, p->ledger, p, p->disk);
    enum hf_status st = power_open(&q, &why);
    uint64_t calls = q.calls;
    if (st != HF_OK)
        power_object(&q, "the store does not open after the cut: %s: %s", hf_status_code(st),
                     why.text);
    power_end(&q);
    for (uint64_t at = 1; at <= calls && !power_objected(p); at++) {
        fault_at(p, at, -EIO);
        fault_at(p, at, at % 2 ? -ENOSPC : -ENOMEM);
    }
}
