/* A thread that makes steps until it is stopped. */
#include "base/clock.h"
#include "base/worker.h"
#include "support/test.h"

#include <sched.h>
#include <stdatomic.h>

static atomic_uint steps;
static atomic_bool under_way;
static int64_t pause_ns;

static int64_t step(void *arg)
{
    under_way = true;
    sched_yield();
    under_way = false;
    atomic_fetch_add((atomic_uint *)arg, 1);
    return pause_ns;
}

static void await_steps(unsigned wanted)
{
    for (int64_t until = hf_clock_monotonic_ms() + 20000; steps < wanted; sched_yield())
        assert_true(hf_clock_monotonic_ms() < until);
}

static void steps_follow_each_other(void **state)
{
    (void)state;
    static const int64_t pauses[] = { 0, 1000, 2000000 };
    for (size_t i = 0; i < 3; i++) {
        struct hf_worker w = { 0 };
        steps = 0;
        pause_ns = pauses[i];
        int64_t begun = hf_clock_monotonic_ns();
        assert_true(hf_worker_start(&w, step, &steps));
        await_steps(20);
        assert_true(hf_clock_monotonic_ns() - begun >= 19 * pause_ns);
        hf_worker_stop(&w);
        assert_false(under_way);
        unsigned made = steps;
        hf_worker_stop(&w); /* again does no harm */
        assert_int_equal(steps, made);
    }
}

static void stop_ends_the_pause(void **state)
{
    (void)state;
    struct hf_worker w = { 0 };
    hf_worker_stop(&w); /* it was never started */
    steps = 0;
    pause_ns = INT64_C(60000000000);
    int64_t begun = hf_clock_monotonic_ms();
    assert_true(hf_worker_start(&w, step, &steps));
    await_steps(1);
    hf_worker_stop(&w);
    assert_true(hf_clock_monotonic_ms() - begun < 30000);
    assert_int_equal(steps, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(steps_follow_each_other),
                                        cmocka_unit_test(stop_ends_the_pause) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
