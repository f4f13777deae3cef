/* Guard windows are never stretched and never shrunk: every answer against a model that knows only
 * the list of fresh recordings, under random retries, times, guards that change and stores that
 * refuse. */
#include "support/test.h"
#include "unit/kit/world.h"

#define STEPS 60000
#define NAMES 6
#define GUARDS 2

static uint64_t seed;

struct recorded {
    hf_time at, until; /* until == 0: never */
    int result;        /* -1: none */
};

struct model {
    int64_t window_ms[GUARDS];
    struct recorded entries[GUARDS][NAMES];
};

static void set_guard(struct world *w, struct model *m, int g)
{
    char name[16];
    snprintf(name, sizeof name, "g%d", g);
    m->window_ms[g] = 1 + (int64_t)test_below(&seed, 100);
    struct hf_request r = { .action = HF_SET_GUARD,
                            .set_guard = { .name = hf_str(name),
                                           .window_ms = m->window_ms[g],
                                           .on_unavailable = g ? HF_FAIL_CLOSED : HF_FAIL_OPEN } };
    assert_int_equal(world_do(w, &r), HF_OK);
}

static void check_answer(const struct world *w, const struct recorded *e)
{
    const struct hf_seen *s = &w->plan.answer.seen;
    bool under_guard = w->now < e->until;
    assert_int_equal(s->seen, under_guard);
    assert_true(s->recorded_at == (under_guard ? e->at : 0));
    assert_true(s->expires_at == (under_guard ? e->until : 0));
    assert_int_equal(s->has_result, under_guard && e->result >= 0);
    if (s->has_result) {
        char want[16];
        snprintf(want, sizeof want, "%d", e->result);
        assert_true(s->result.size == strlen(want) &&
                    memcmp(s->result.data, want, s->result.size) == 0);
    }
}

static void ask(struct world *w, struct model *m)
{
    static const enum hf_action actions[] = { HF_CHECK, HF_RECORD, HF_ADMIT };
    int g = (int)test_below(&seed, GUARDS), n = (int)test_below(&seed, NAMES);
    enum hf_action action = actions[test_below(&seed, 3)];
    struct recorded *e = &m->entries[g][n];
    char guard[16], identity[16], result[16];
    int word = (int)test_below(&seed, 1000) - 200;
    snprintf(guard, sizeof guard, "g%d", g);
    snprintf(identity, sizeof identity, "i%d", n);
    snprintf(result, sizeof result, "%d", word);
    struct hf_request r = {
        .action = action, .identity = { hf_str(guard), hf_str(identity), hf_str(result), word >= 0 }
    };
    w->refuse_writes = test_below(&seed, 10) == 0;
    bool fresh = action != HF_CHECK && w->now >= e->until;
    assert_int_equal(world_do(w, &r), HF_OK);
    if (fresh && w->refuse_writes) { /* the guard misses this window, or says seen without a time */
        assert_int_equal(w->plan.answer.seen.seen, action == HF_ADMIT && g == 1);
        assert_int_equal(w->plan.missed, !w->plan.answer.seen.seen);
        assert_true(w->plan.row_count == 0 && w->plan.answer.seen.recorded_at == 0);
    } else {
        check_answer(w, e);
        assert_int_equal(w->plan.row_count, fresh);
        assert_false(w->plan.missed);
    }
    if (fresh && !w->refuse_writes)
        *e = (struct recorded){ w->now, w->now + m->window_ms[g], word >= 0 ? word : -1 };
    w->refuse_writes = false;
}

static void windows_are_never_stretched_or_shrunk(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct model m = { .window_ms = { 0 } };
    for (int g = 0; g < GUARDS; g++)
        set_guard(w, &m, g);
    for (int step = 0; step < STEPS; step++) {
        if (test_below(&seed, 3) == 0)
            w->now += (int64_t)test_below(&seed, 20);
        if (test_below(&seed, 100) == 0)
            set_guard(w, &m, (int)test_below(&seed, GUARDS));
        ask(w, &m);
    }
    world_free(w);
}

/* One window, retried at every millisecond: seen exactly until it closes, then fresh for exactly
 * one window again. */
static void retries_at_every_moment(void **state)
{
    (void)state;
    for (int64_t window = 1; window <= 12; window++) {
        struct world *w = world_new();
        struct hf_request set = { .action = HF_SET_GUARD,
                                  .set_guard = { .name = hf_str("g"), .window_ms = window } };
        struct hf_request admit = { .action = HF_ADMIT,
                                    .identity = { .guard = hf_str("g"), .identity = hf_str("x") } };
        assert_int_equal(world_do(w, &set), HF_OK);
        for (int64_t t = 0; t < 5 * window; t++) {
            w->now = WORLD_START + t;
            assert_int_equal(world_do(w, &admit), HF_OK);
            assert_int_equal(w->plan.answer.seen.seen, t % window != 0);
            assert_int_equal(world_do(w, &admit), HF_OK);
            assert_true(w->plan.answer.seen.seen);
        }
        world_free(w);
    }
}

int main(void)
{
    seed = test_seed("windows", 20231116);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_never_stretched_or_shrunk),
        cmocka_unit_test(retries_at_every_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
