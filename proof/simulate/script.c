#include "simulate/script.h"

#include "base/assert.h"
#include "simulate/disk.h"

#include <stdlib.h>

/* Something that happens before the operation `at`. */
struct event {
    uint32_t at;
    struct sim_step step;
};

enum { EVENTS_MAX = 256, RECENT = 64 };

struct draft {
    const struct sim_mix *mix;
    struct sim_script *script;
    struct sim_chance chance;
    struct event events[EVENTS_MAX];
    size_t event_count;
    size_t asks[RECENT]; /* indices of the newest steps that ask something for the first time */
    uint64_t ask_count;
    uint32_t holds[RECENT]; /* labels of the newest steps that may get a hold */
    uint64_t hold_count;
    uint32_t next_key;
    uint32_t next_number[SIM_TENANTS_MAX][SIM_CLIENTS_MAX];
};

static uint64_t below(struct draft *d, uint64_t n)
{
    return sim_chance_below(&d->chance, n);
}

static bool once_in(struct draft *d, uint64_t n)
{
    return sim_chance_once_in(&d->chance, n);
}

static struct sim_step *add(struct draft *d, struct sim_step step)
{
    step.label = ++d->script->labels;
    if (step.draw == 0)
        step.draw = sim_chance_next(&d->chance);
    return sim_script_add(d->script, &step);
}

/* ---- Events ---- */

static void plan(struct draft *d, uint32_t at, struct sim_step step)
{
    if (d->event_count < EVENTS_MAX)
        d->events[d->event_count++] = (struct event){ at, step };
}

static uint32_t any_time(struct draft *d)
{
    return (uint32_t)below(d, d->mix->operations);
}

/* What lasts for a while: `step` begins it, and another of its kind with the amount `end` ends
 * it. */
static void plan_span(struct draft *d, struct sim_step step, int64_t end)
{
    uint32_t at = any_time(d);
    plan(d, at, step);
    step.amount = end;
    plan(d, at + 1 + (uint32_t)below(d, d->mix->operations / 8 + 1), step);
}

/* Clients come back a while after `at`. */
static void plan_retry(struct draft *d, uint32_t at)
{
    struct sim_step retry = { .kind = SIM_RETRY };
    retry.amount = 1 + (int64_t)below(d, 20);
    retry.variant = (uint8_t)below(d, 2);
    plan(d, at + (uint32_t)below(d, 30), retry);
}

/* Draws are made one after the other, never two in one list of values: a compiler may take those in
 * any order. */
static void plan_cut(struct draft *d)
{
    uint32_t at = any_time(d);
    struct sim_step cut = { .kind = SIM_CUT,
                            .variant = (uint8_t)(once_in(d, 2) ? 0 : below(d, 4)) };
    if (!once_in(d, 6))
        cut.amount = 1 + (int64_t)below(d, 1 + below(d, 200));
    plan(d, at, cut);
    if (once_in(d, 3)) /* while the store is busy with itself */
        plan(d, at, (struct sim_step){ .kind = SIM_MAINTAIN, .amount = 1 + (int64_t)below(d, 60) });
    if (!once_in(d, 4))
        plan_retry(d, at);
}

static void plan_failure(struct draft *d)
{
    static const uint8_t calls[] = { SIM_SYNC,   SIM_SYNC,     SIM_SYNC,    SIM_WRITE,
                                     SIM_WRITE,  SIM_WRITE,    SIM_READ,    SIM_READ,
                                     SIM_OPEN,   SIM_OPEN,     SIM_RENAME,  SIM_DIR_SYNC,
                                     SIM_REMOVE, SIM_MAP,      SIM_SIZE,    SIM_TRUNCATE,
                                     SIM_LOCK,   SIM_DIR_LIST, SIM_DIR_OPEN };
    struct sim_step fail = { .kind = SIM_FAIL };
    uint32_t at = any_time(d);
    fail.variant = calls[below(d, sizeof calls)];
    fail.amount = 1 + (int64_t)below(d, 1 + below(d, 20));
    plan(d, at, fail);
    if (once_in(d, 3)) /* in a start */
        plan(d, at, (struct sim_step){ .kind = SIM_REOPEN, .variant = (uint8_t)below(d, 64) });
    plan_retry(d, at);
}

static void plan_jump(struct draft *d)
{
    static const int64_t spans[] = { 10, 1000, 61000, 3601000, 86401000, 864000000 };
    int64_t most = spans[below(d, sizeof spans / sizeof *spans)];
    int64_t by = 1 + (int64_t)below(d, (uint64_t)most);
    bool back = d->mix->back && once_in(d, 2);
    bool asleep = !back && by % 2 == 0; /* then the boot clock confirms it */
    plan(d, any_time(d),
         (struct sim_step){ .kind = SIM_JUMP, .variant = asleep, .amount = back ? -by : by });
}

/* The wall clock jumps ahead and comes back, mostly before anybody may believe it. What it says
 * meanwhile is looked at. Drawn apart from the rest, so that the rest stays as it is. */
static void plan_flashes(struct draft *d)
{
    static const int64_t spans[] = { 3000, 61000, 3601000, 86401000, 2592000000 };
    struct sim_chance c;
    sim_chance_init(&c, d->mix->seed ^ UINT64_C(0xc10c4));
    for (uint64_t i = sim_chance_below(&c, 4); i > 0; i--) {
        uint32_t at = (uint32_t)sim_chance_below(&c, d->mix->operations);
        uint32_t until = at + (uint32_t)sim_chance_below(&c, 1 + sim_chance_below(&c, 60));
        int64_t by = spans[sim_chance_below(&c, sizeof spans / sizeof *spans)];
        struct sim_step step = { .kind = SIM_JUMP, .amount = by, .draw = 1 };
        plan(d, at, step);
        plan(d, at, (struct sim_step){ .kind = SIM_MAINTAIN, .amount = 3, .draw = 1 });
        step.amount = -by;
        plan(d, until, step);
    }
}

static void plan_reopen(struct draft *d)
{
    uint8_t changes = once_in(d, 2) ? 0 : (uint8_t)below(d, 64);
    if (d->mix->tight && once_in(d, 2))
        changes |= SIM_CHANGE_MEMORY;
    plan(d, any_time(d), (struct sim_step){ .kind = SIM_REOPEN, .variant = changes });
}

/* With chance of their own, so that what a seed did before there were such steps it still does. */
static void plan_stales(struct draft *d)
{
    struct sim_chance chance;
    sim_chance_init(&chance, d->mix->seed ^ UINT64_C(0x57a1e));
    for (uint32_t i = 0; i < d->mix->stales; i++) {
        uint32_t at = (uint32_t)sim_chance_below(&chance, d->mix->operations);
        bool looked = sim_chance_once_in(&chance, 2);
        plan(d, at, (struct sim_step){ .kind = SIM_STALE, .draw = sim_chance_next(&chance) | 1 });
        if (looked)
            plan(d, at,
                 (struct sim_step){ .kind = SIM_LOOK, .draw = sim_chance_next(&chance) | 1 });
    }
}

static int event_compare(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (int)x->step.label - (int)y->step.label;
}

static void plan_all(struct draft *d)
{
    const struct sim_mix *m = d->mix;
    for (uint32_t i = 0; i < m->cuts; i++)
        plan_cut(d);
    for (uint32_t i = 0; i < m->failures; i++)
        plan_failure(d);
    for (uint32_t i = 0; i < m->jumps; i++)
        plan_jump(d);
    for (uint32_t i = 0; i < m->reopens; i++)
        plan_reopen(d);
    for (uint32_t i = 0; i < m->rooms; i++) {
        struct sim_step room = { .kind = SIM_ROOM, .amount = (int64_t)below(d, 150000) };
        plan_span(d, room, -1);
    }
    for (uint32_t i = 0; i < m->slows; i++) {
        struct sim_step slow = { .kind = SIM_SLOW, .amount = 1 + (int64_t)below(d, 300000) };
        plan_span(d, slow, 0);
    }
    for (uint32_t i = 0; i < m->stalls; i++) {
        struct sim_step stall = { .kind = SIM_STALL, .amount = 1 };
        plan_span(d, stall, 0);
    }
    for (uint32_t i = 0; i < m->rots; i++)
        plan(d, any_time(d), (struct sim_step){ .kind = SIM_ROT });
    for (uint32_t i = 0; i < m->looks; i++)
        plan(d, any_time(d), (struct sim_step){ .kind = SIM_LOOK });
    plan_stales(d);
    plan_flashes(d);
    for (size_t i = 0; i < d->event_count; i++)
        d->events[i].step.label = (uint32_t)i; /* qsort is not stable */
    qsort(d->events, d->event_count, sizeof *d->events, event_compare);
}

/* ---- Requests ---- */

static enum hf_action draw_action(struct draft *d)
{
    uint64_t at = below(d, d->mix->weight_total);
    for (unsigned i = 0; i < sizeof d->mix->weights / sizeof *d->mix->weights; i++) {
        if (at < d->mix->weights[i])
            return (enum hf_action)i;
        at -= d->mix->weights[i];
    }
    HF_ASSERT(false);
    return HF_PLACE_HOLD;
}

static const struct sim_step *recent_ask(struct draft *d)
{
    uint64_t known = d->ask_count < RECENT ? d->ask_count : RECENT;
    if (known == 0)
        return NULL;
    uint64_t back = 1 + below(d, 1 + below(d, known));
    return &d->script->steps[d->asks[(d->ask_count - back) % RECENT]];
}

/* Any step that asks, however long ago: a client that comes back. */
static const struct sim_step *any_ask(struct draft *d)
{
    for (int i = 0; i < 8; i++) {
        const struct sim_step *s = &d->script->steps[below(d, d->script->count)];
        if (s->kind == SIM_ASK && !s->first)
            return s;
    }
    return recent_ask(d);
}

static uint32_t recent_hold(struct draft *d)
{
    uint64_t known = d->hold_count < RECENT ? d->hold_count : RECENT;
    if (known == 0 || once_in(d, 60))
        return 0;
    return d->holds[(d->hold_count - 1 - below(d, 1 + below(d, known))) % RECENT];
}

static int64_t span(struct draft *d, int64_t most)
{
    return 1 + (int64_t)below(d, (uint64_t)most);
}

static uint32_t payload(struct draft *d)
{
    return (uint32_t)below(d, 1 + below(d, d->mix->payload_max + 1));
}

static uint8_t fence(struct draft *d)
{
    return (uint8_t)(once_in(d, 4) ? below(d, 4) : SIM_FENCE_NEWEST);
}

/* Mostly none. */
static uint8_t fence_maybe(struct draft *d)
{
    return (uint8_t)(once_in(d, 5) ? below(d, 4) : SIM_FENCE_NONE);
}

static void draw_key(struct draft *d, struct sim_step *s)
{
    const struct sim_mix *m = d->mix;
    if (!m->number_in || !once_in(d, m->number_in)) {
        s->key_kind = SIM_KEY_TOKEN;
        s->key = d->next_key++;
        return;
    }
    uint32_t *next = &d->next_number[s->tenant][s->client];
    s->key_kind = SIM_KEY_NUMBER;
    if (once_in(d, 40)) /* a gap, perhaps past the window */
        *next += (uint32_t)below(d, 2 * HF_SEQUENCE_WINDOW);
    if (once_in(d, 60)) { /* far ahead: about as far as is allowed, and perhaps further */
        s->key = *next + HF_SEQUENCE_AHEAD_MAX - 500 + (uint32_t)below(d, 1000);
        return;
    }
    if (*next > 0 && once_in(d, 20)) /* one that was left out, was used, or is too far back */
        s->key = 1 + (uint32_t)below(d, *next);
    else
        s->key = ++*next;
}

static void draw_claim(struct draft *d, struct sim_step *s)
{
    s->key_kind = SIM_KEY_CLAIM;
    s->key = (uint32_t)below(d, d->mix->claims);
    s->fence = fence(d);
    s->size = payload(d);
    s->variant = (uint8_t)below(d, 4);
    s->who = once_in(d, 12) ? 1 : 0; /* another payload than the others have */
    s->amount = once_in(d, 3) ? 0 : span(d, d->mix->lease_ms_max);
}

static void draw_guard(struct draft *d, struct sim_step *s)
{
    s->amount = span(d, d->mix->guard_ms_max);
    s->variant = (uint8_t)(d->mix->match_rules ? below(d, 16) : 0);
    if (d->mix->volatile_guards && once_in(d, 3))
        s->variant |= 16;
    if (once_in(d, 2))
        s->variant |= 32; /* closed when it cannot answer */
    if (once_in(d, 2))
        s->variant |= 64; /* another match rule, whatever is under guard */
}

/* The parameters that fit the action. */
static void draw_parameters(struct draft *d, struct sim_step *s)
{
    const struct sim_mix *m = d->mix;
    s->thing = (uint32_t)below(d, m->things);
    s->who = (uint32_t)below(d, m->requesters);
    switch ((enum hf_action)s->action) {
    case HF_PLACE_HOLD:
        s->amount = span(d, m->hold_ms_max);
        s->fence = fence_maybe(d);
        break;
    case HF_CONFIRM:
    case HF_RELEASE:
    case HF_EXPIRE:
    case HF_REVERSE:
    case HF_CONFIRM_LATE:
    case HF_GET_HOLD: s->origin = recent_hold(d); break;
    case HF_SET_RESOURCE:
        s->amount = (int64_t)below(d, 5);
        s->variant = (uint8_t)(once_in(d, 3) ? below(d, 3) : 1);
        break;
    case HF_SET_GUARD: draw_guard(d, s); break;
    case HF_CHECK:
    case HF_RECORD:
    case HF_ADMIT:
        s->who = (uint32_t)below(d, m->identities);
        s->variant = (uint8_t)below(d, 8);
        s->size = payload(d);
        break;
    case HF_BEGIN:
    case HF_COMPLETE:
    case HF_FAIL:
    case HF_HEARTBEAT:
    case HF_ABANDON:
    case HF_GET_CLAIM: draw_claim(d, s); break;
    case HF_GRANT: s->amount = span(d, m->lease_ms_max); break;
    case HF_DELETE_LEASE: s->fence = fence_maybe(d); break;
    case HF_DELETE_REGISTER:
        s->fence = fence_maybe(d);
        s->variant = (uint8_t)below(d, 16);
        break;
    case HF_RENEW:
    case HF_RETURN:
        s->fence = fence(d);
        s->amount = once_in(d, 2) ? 0 : span(d, m->lease_ms_max);
        break;
    case HF_WRITE:
        s->fence = fence_maybe(d);
        s->variant = (uint8_t)below(d, 5);
        s->size = payload(d);
        break;
    case HF_MERGE: s->variant = (uint8_t)(once_in(d, 20) ? 1 : 0); break;
    case HF_APPLY:
        s->variant = (uint8_t)below(d, 8);
        s->size = payload(d);
        break;
    default: break;
    }
}

static void spoil(struct draft *d, struct sim_step *s)
{
    switch (below(d, 5)) {
    case 0: s->key_kind = SIM_KEY_NONE; break;
    case 1: s->key_kind = SIM_KEY_LONG; break;
    case 2: s->thing = SIM_NAME_EMPTY; break;
    case 3: s->thing = SIM_NAME_LONG; break;
    case 4: s->amount = once_in(d, 2) ? -1 : HF_DURATION_MAX_MS + 1; break;
    }
}

static bool is_keyed(enum hf_action action)
{
    return (action >= HF_PLACE_HOLD && action <= HF_REVERSE) || action == HF_GRANT ||
           action == HF_WRITE || action == HF_APPLY || action == HF_DELETE_REGISTER ||
           action == HF_DELETE_LEASE || action == HF_CONFIRM_LATE;
}

static void remember(struct draft *d, const struct sim_step *s)
{
    d->asks[d->ask_count++ % RECENT] = (size_t)(s - d->script->steps);
    if (s->action == HF_PLACE_HOLD || s->action == HF_REVERSE || s->action == HF_CONFIRM_LATE)
        d->holds[d->hold_count++ % RECENT] = s->label;
}

/* The key of somebody else's call: another call, or a look at what became of it. */
static void borrow_key(struct draft *d, struct sim_step *s)
{
    const struct sim_step *other = once_in(d, 4) ? any_ask(d) : recent_ask(d);
    if (!other)
        return;
    s->key_kind = other->key_kind;
    s->key = other->key;
    s->tenant = other->tenant;
    s->client = other->client;
}

static void ask(struct draft *d)
{
    const struct sim_mix *m = d->mix;
    struct sim_step s = { .kind = SIM_ASK, .action = (uint8_t)draw_action(d) };
    s.client = (uint8_t)below(d, m->clients);
    s.tenant = (uint8_t)below(d, m->tenants);
    if (is_keyed((enum hf_action)s.action))
        draw_key(d, &s);
    draw_parameters(d, &s);
    if (s.action == HF_GET_TOKEN ||
        (s.key_kind != SIM_KEY_NONE && m->wrong_in && once_in(d, m->wrong_in)))
        borrow_key(d, &s);
    if (m->odd_in && once_in(d, m->odd_in))
        spoil(d, &s);
    remember(d, add(d, s));
}

static void ask_again(struct draft *d, const struct sim_step *first)
{
    struct sim_step s = *first;
    s.first = first->label;
    add(d, s);
}

static void ask_something(struct draft *d)
{
    const struct sim_mix *m = d->mix;
    const struct sim_step *first = NULL;
    if (m->again_in && once_in(d, m->again_in))
        first = once_in(d, 5) ? any_ask(d) : recent_ask(d);
    if (first)
        ask_again(d, first);
    else
        ask(d);
}

/* ---- The whole ---- */

/* Guards are asked only after they were set up, and a strict registry needs its resources. */
static void prepare(struct draft *d)
{
    const struct sim_mix *m = d->mix;
    for (uint32_t i = 0; i < m->tenants * m->things; i++) {
        struct sim_step s = { .kind = SIM_ASK, .tenant = (uint8_t)(i % m->tenants) };
        s.action = HF_SET_GUARD;
        if (m->weights[HF_ADMIT] && !once_in(d, 6)) {
            draw_parameters(d, &s);
            s.thing = i / m->tenants;
            remember(d, add(d, s));
        }
        s.action = HF_SET_RESOURCE;
        if (m->weights[HF_PLACE_HOLD] && once_in(d, m->strict ? 2 : 4)) {
            draw_parameters(d, &s);
            s.thing = i / m->tenants;
            remember(d, add(d, s));
        }
    }
    add(d, (struct sim_step){ .kind = SIM_FLUSH });
}

static void end_batch(struct draft *d)
{
    add(d, (struct sim_step){ .kind = SIM_FLUSH });
    if (d->mix->pace_ms)
        add(d, (struct sim_step){ .kind = SIM_PASS,
                                  .amount = (int64_t)below(d, d->mix->pace_ms + 1) });
}

void sim_script_draw(const struct sim_mix *mix, struct sim_script *script)
{
    struct draft d = { .mix = mix, .script = script };
    size_t event = 0;
    uint64_t batch = 1;
    *script = (struct sim_script){ 0 };
    sim_chance_init(&d.chance, mix->seed ^ UINT64_C(0x5c4197));
    plan_all(&d);
    prepare(&d);
    for (uint32_t i = 0; i < mix->operations; i++) {
        while (event < d.event_count && d.events[event].at <= i)
            add(&d, d.events[event++].step);
        ask_something(&d);
        if (mix->together_in && once_in(&d, mix->together_in))
            ask_again(&d, recent_ask(&d));
        if (--batch == 0) {
            end_batch(&d);
            batch = 1 + below(&d, mix->batch_max);
        }
        if (once_in(&d, mix->maintain_every))
            add(&d, (struct sim_step){ .kind = SIM_MAINTAIN, .amount = 1 + (int64_t)below(&d, 6) });
    }
    add(&d, (struct sim_step){ .kind = SIM_FLUSH });
}
