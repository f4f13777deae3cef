#include "power/kit.h"

#include "power/inner.h"
#include "power/words.h"
#include "support/test.h"
#include "support/test_io.h"

#include <stdarg.h>

/* ---- Objections ---- */

bool power_objected(const struct power *p)
{
    return p->ledger->objection[0] != '\0';
}

void power_object(struct power *p, const char *format, ...)
{
    char *out = p->ledger->objection;
    size_t room = sizeof p->ledger->objection;
    va_list args;
    if (power_objected(p))
        return;
    va_start(args, format);
    int n = vsnprintf(out, room, format, args);
    va_end(args);
    for (const struct power *q = p; q && n > 0 && (size_t)n < room; q = q->above)
        n += snprintf(out + n, room - (size_t)n, "\n  in %s, step %zu, call %llu: %s",
                      p->ledger->script->name, q->step, (unsigned long long)q->calls, q->where);
}

/* ---- The disk's owner ---- */

static bool changes(enum sim_call call, uint64_t at)
{
    switch (call) {
    case SIM_OPEN: return at == HF_OPEN_CREATE;
    case SIM_WRITE:
    case SIM_SYNC:
    case SIM_RENAME:
    case SIM_REMOVE:
    case SIM_TRUNCATE:
    case SIM_DIR_SYNC: return true;
    default: return false;
    }
}

static int owner_before(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size)
{
    struct power *p = arg;
    p->calls++;
    if (p->hook == HOOK_CALM || (p->hook == HOOK_FAULT && p->calls != p->fault_at))
        return 0;
    snprintf(p->where, sizeof p->where, "before call %d of %s at %llu, %zu bytes", (int)call, name,
             (unsigned long long)at, size);
    if (p->hook == HOOK_FAULT)
        return p->fault;
    if (changes(call, at))
        power_cut_here(p);
    return 0;
}

static uint32_t owner_choose(void *arg, uint32_t n)
{
    struct power *p = arg;
    return power_choose(&p->choosing, n);
}

static hf_time owner_wall_ms(void *arg)
{
    const struct power *p = arg;
    return p->wall;
}

static uint64_t owner_monotonic_ns(void *arg)
{
    const struct power *p = arg;
    return (uint64_t)p->wall * 1000000;
}

/* The same for every store, so that a store that is made anew is the one of the first run. */
static int owner_random(void *arg, void *data, size_t size)
{
    (void)arg;
    unsigned char *out = data;
    for (size_t i = 0; i < size; i++)
        out[i] = (unsigned char)(i * 37 + 11);
    return 0;
}

static void on_fatal(void *arg, const char *sentence)
{
    /* A power cut is one; whoever waited is told. */
    (void)arg;
    (void)sentence;
}

static void on_note(void *arg, int level, const char *line)
{
    struct power *p = arg;
    if (level > 0)
        snprintf(p->warning, sizeof p->warning, "%s", line);
}

/* ---- Runs ---- */

void power_branch(struct power *p, struct power_ledger *ledger, const struct power *above,
                  const struct sim_disk *disk)
{
    struct sim_disk_owner owner = { .arg = p,
                                    .before = owner_before,
                                    .choose = owner_choose,
                                    .wall_ms = owner_wall_ms,
                                    .monotonic_ns = owner_monotonic_ns,
                                    .random = owner_random };
    if (above)
        *p = *above;
    else
        *p = (struct power){ .wall = POWER_START, .options = ledger->script->options };
    p->ledger = ledger;
    p->above = above;
    p->db = NULL;
    p->hook = HOOK_CALM;
    p->calls = 0;
    p->where[0] = '\0';
    p->disk = disk ? sim_disk_copy(disk, &owner) : sim_disk_new(&owner);
    p->io = *sim_disk_io(p->disk);
    if (ledger->script->plant)
        ledger->script->plant(&p->io);
    p->options.no_background = true;
    p->options.io = &p->io;
    p->options.on_fatal = on_fatal;
    p->options.on_note = on_note;
    p->options.arg = p;
}

void power_end(struct power *p)
{
    power_close(p);
    sim_disk_free(p->disk);
}

enum hf_status power_open(struct power *p, struct hf_error *why)
{
    why->text[0] = p->warning[0] = '\0';
    return hf_open("store", &p->options, &p->db, why);
}

void power_close(struct power *p)
{
    hf_close(p->db);
    p->db = NULL;
}

bool power_state(struct power *p, uint64_t *out)
{
    const struct power_script *s = p->ledger->script;
    struct hf_error why;
    enum power_hook hook = p->hook;
    p->hook = HOOK_CALM;
    bool good = power_state_hash(p->db, s->tenants, s->names, out, &why);
    p->hook = hook;
    if (!good)
        power_object(p, "the store cannot be looked at: %s", why.text);
    return good;
}

/* ---- For a script's step ---- */

static bool has_key(enum hf_action action)
{
    switch (action) {
    case HF_PLACE_HOLD:
    case HF_CONFIRM:
    case HF_RELEASE:
    case HF_EXPIRE:
    case HF_REVERSE:
    case HF_CONFIRM_LATE:
    case HF_GRANT:
    case HF_WRITE:
    case HF_APPLY: return true;
    default: return false;
    }
}

static void id_add(struct power_ledger *l, const char *id)
{
    if (l->id_count == l->id_room) {
        l->id_room = l->id_room ? l->id_room * 2 : 64;
        l->ids = realloc(l->ids, l->id_room * sizeof *l->ids);
        assert_non_null(l->ids);
    }
    memcpy(l->ids[l->id_count++], id, HF_ID_SIZE);
}

/* The first run: write down what was answered. */
static void note_answer(struct power *p, const struct hf_request *request,
                        const struct hf_result *got)
{
    struct power_ledger *l = p->ledger;
    size_t n = l->answer_counts[p->step]++;
    l->answers[p->step] = realloc(l->answers[p->step], (n + 1) * sizeof **l->answers);
    assert_non_null(l->answers[p->step]);
    l->answers[p->step][n] =
        (struct power_answered){ .hash = power_answer_hash(&got->answer),
                                 .expires_at =
                                     has_key(request->action) ? got->token.expires_at : 0 };
    if (hf_status_kind(got->answer.status) > HF_KIND_REFUSAL)
        power_object(p, "%s was answered with %s in the first run", hf_action_name(request->action),
                     hf_status_code(got->answer.status));
    if (request->action == HF_PLACE_HOLD && got->answer.status == HF_OK)
        id_add(l, got->answer.hold.id);
}

/* A request of the script was asked again, or for the first time after a recovery. */
static void check_answer(struct power *p, size_t step, size_t n, const struct hf_request *request,
                         const struct hf_result *got)
{
    const struct power_answered *was = &p->ledger->answers[step][n];
    if (!has_key(request->action))
        return;
    if (power_answer_hash(&got->answer) != was->hash)
        power_object(
            p, "request %zu of step %zu (%s %.*s) is answered with something else than before: %s",
            n, step, hf_action_name(request->action), (int)request->key.size,
            (const char *)request->key.data, hf_status_code(got->answer.status));
    else if (p->doing == DOING_REPLAY && !got->replayed)
        power_object(p, "request %zu of step %zu (%s %.*s) was done a second time", n, step,
                     hf_action_name(request->action), (int)request->key.size,
                     (const char *)request->key.data);
}

/* Ask everything that was answered, and is still remembered, again. */
static void replay(struct power *p, size_t step, const struct hf_request *requests, size_t count)
{
    struct hf_result got = HF_RESULT_INIT;
    for (size_t i = 0; i < count && !power_objected(p); i++) {
        if (p->ledger->answers[step][i].expires_at <= p->wall)
            continue;
        if (hf_do(p->db, &requests[i], &got) == HF_INDETERMINATE)
            power_object(p, "a request that was answered before is indeterminate now");
        check_answer(p, step, i, &requests[i], &got);
    }
    hf_result_clear(&got);
}

/* One is answered: the whole group, which is one batch, must be durable. */
static void group_answered(struct hf_op *op, enum hf_status status)
{
    struct power *p = op->arg;
    if (status == HF_OK)
        p->answered = true;
}

/* Without waiting, and with a retry of the first request and a look at its key in the same group:
 * none of them may be answered before all is durable. */
static void submit(struct power *p, const struct hf_request *requests, struct hf_result *results,
                   size_t count)
{
    const struct hf_request look = { .action = HF_GET_TOKEN,
                                     .tenant = requests[0].tenant,
                                     .key = requests[0].key };
    struct hf_op *ops = calloc(count + 2, sizeof *ops);
    assert_non_null(ops);
    for (size_t i = 0; i < count + 2; i++)
        ops[i] = (struct hf_op){ .request = i <= count ? &requests[i % count] : &look,
                                 .result = i < count ? &results[i] : NULL,
                                 .done = group_answered,
                                 .arg = p,
                                 .next = i <= count ? &ops[i + 1] : NULL };
    hf_submit(p->db, &ops[0]);
    hf_flush(p->db);
    free(ops);
}

void power_do(struct power *p, const struct hf_request *requests, size_t count)
{
    if (power_objected(p) || !p->db)
        return;
    if (p->doing == DOING_REPLAY) {
        replay(p, p->step, requests, count);
        return;
    }
    struct hf_result *results = calloc(count, sizeof *results);
    assert_non_null(results);
    enum hf_status st = HF_OK;
    if (p->step % 2 && has_key(requests[0].action))
        submit(p, requests, results, count);
    else
        st = hf_do_many(p->db, requests, results, count);
    if (st != HF_OK)
        power_object(p, "the group was not answered: %s", hf_status_code(st));
    for (size_t i = 0; i < count; i++) {
        if (p->doing == DOING_FIRST && p->hook == HOOK_CALM)
            note_answer(p, &requests[i], &results[i]);
        else
            check_answer(p, p->step, i, &requests[i], &results[i]);
        hf_result_clear(&results[i]);
    }
    free(results);
}

void power_at(struct power *p, int64_t ms)
{
    if (p->doing != DOING_REPLAY)
        p->wall = POWER_START + ms;
}

void power_settle(struct power *p)
{
    enum { STEPS_MAX = 10000 };
    int steps = 0;
    if (p->doing == DOING_REPLAY)
        return;
    while (!power_objected(p) && p->db && hf_maintain(p->db))
        if (++steps == STEPS_MAX)
            power_object(p, "maintenance does not come to an end");
}

void power_reopen(struct power *p, int64_t window_ms)
{
    struct hf_error why;
    if (p->doing == DOING_REPLAY || power_objected(p))
        return;
    p->options.idempotency_window_ms = window_ms;
    power_close(p);
    enum hf_status st = power_open(p, &why);
    if (st != HF_OK)
        power_object(p, "the store that was closed in order does not open: %s: %s",
                     hf_status_code(st), why.text);
}

const char *power_id(const struct power *p, size_t n)
{
    assert_true(n < p->ledger->id_count);
    return p->ledger->ids[n];
}

void power_step(struct power *p, enum power_doing doing, size_t step)
{
    size_t in_progress = p->step;
    p->doing = doing;
    p->step = step;
    if (doing != DOING_REPLAY)
        p->answered = false;
    p->ledger->script->step(p, step);
    p->doing = DOING_FIRST;
    if (doing == DOING_REPLAY)
        p->step = in_progress;
}

/* ---- Exploring ---- */

static struct power_limits limits_by_scale(unsigned level)
{
    const char *scale = getenv("HF_SCALE");
    bool full = scale && strcmp(scale, "full") == 0;
    if (level > 0)
        return (struct power_limits){ .all_max = full ? 27 : 9,
                                      .ones_max = full ? 8 : 3,
                                      .names_max = full ? 4 : 2,
                                      .random = full ? 4 : 1,
                                      .audit_every = 31,
                                      .go_on = 1 };
    return (struct power_limits){ .all_max = full ? 729 : 27,
                                  .ones_max = full ? 24 : 6,
                                  .names_max = full ? 6 : 3,
                                  .random = full ? 16 : 3,
                                  .second_every = full ? 71 : 397,
                                  .fault_every = full ? 47 : 251,
                                  .audit_every = full ? 13 : 17,
                                  .go_on = full ? 3 : 2 };
}

static bool count_packed(void *arg, const char *name, uint64_t size)
{
    uint64_t *packed = arg;
    (void)size;
    *packed += strstr(name, ".zst") != NULL;
    return true;
}

static void count_house(struct power *p)
{
    struct hf_stats stats;
    hf_stats(p->db, &stats);
    p->ledger->count->snapshots = stats.snapshots;
    sim_disk_each(p->disk, count_packed, &p->ledger->count->packed);
}

/* One run over the whole script. */
static void run(struct power_ledger *l, enum power_hook hook)
{
    struct power p;
    struct hf_error why;
    power_branch(&p, l, NULL, NULL);
    p.hook = hook;
    enum hf_status st = power_open(&p, &why);
    if (st != HF_OK)
        power_object(&p, "the store cannot be made: %s: %s", hf_status_code(st), why.text);
    for (size_t s = 0; s <= l->script->steps && !power_objected(&p); s++) {
        uint64_t state;
        p.step = s;
        if (s > 0)
            power_step(&p, DOING_FIRST, s);
        if (!power_state(&p, &state))
            break;
        if (hook == HOOK_CALM)
            l->states[s] = state;
        else if (l->states[s] != state)
            power_object(&p, "two runs of the script are not the same");
    }
    if (hook == HOOK_CALM && p.db)
        count_house(&p);
    p.hook = HOOK_CALM;
    power_end(&p);
}

static void ledger_free(struct power_ledger *l)
{
    for (size_t s = 0; s <= l->script->steps; s++)
        free(l->answers[s]);
    free(l->answers);
    free(l->answer_counts);
    free(l->states);
    free(l->ids);
    free(l->seen);
    test_dir_remove(l->audit_dir);
}

const char *power_explore(const struct power_script *script, struct power_count *count)
{
    static struct power_ledger l;
    size_t n = script->steps + 1;
    *count = (struct power_count){ 0 };
    l = (struct power_ledger){ .script = script, .count = count };
    l.limits[0] = limits_by_scale(0);
    l.limits[1] = limits_by_scale(1);
    l.states = calloc(n, sizeof *l.states);
    l.answers = calloc(n, sizeof(struct power_answered *));
    l.answer_counts = calloc(n, sizeof *l.answer_counts);
    assert_true(l.states && l.answers && l.answer_counts);
    l.audit_dir = test_dir_make();
    run(&l, HOOK_CALM);
    if (!l.objection[0])
        run(&l, HOOK_WATCH);
    ledger_free(&l);
    return l.objection[0] ? l.objection : NULL;
}

void power_print(const struct power_script *script, const struct power_count *count)
{
    printf("%s: %llu cuts left %llu disks, %llu different ones judged (%llu of them after a second "
           "cut); %llu recoveries with a fault, %llu of them refused; %llu audits\n",
           script->name, (unsigned long long)count->cuts, (unsigned long long)count->states,
           (unsigned long long)count->judged, (unsigned long long)count->second_states,
           (unsigned long long)count->faults, (unsigned long long)count->refusals,
           (unsigned long long)count->audits);
}
