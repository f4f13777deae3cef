/* The clocks of the system, and waiting by the monotonic one. */
#include "base/clock.h"
#include "support/test.h"

#define MS INT64_C(1000000)

static void units_agree(void **state)
{
    (void)state;
    int64_t ms = hf_clock_monotonic_ms(), ns = hf_clock_monotonic_ns();
    assert_in_range(ns / MS - ms, 0, 60000);
    assert_true(hf_clock_monotonic_ns() >= ns);
    assert_true(hf_clock_boot_ms() >= ms); /* the boot clock has also counted the sleep */
    assert_true(hf_clock_wall_ms() > INT64_C(1577836800000)); /* 2020 */
}

static void wait_ends_in_time(void **state)
{
    (void)state;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    hf_clock_cond_init(&cond);
    pthread_mutex_lock(&lock);
    int64_t until = hf_clock_monotonic_ns() + 20 * MS;
    while (hf_clock_wait(&cond, &lock, until))
        continue;
    assert_true(hf_clock_monotonic_ns() >= until);
    assert_false(hf_clock_wait(&cond, &lock, until)); /* it is over already */
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&cond);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(units_agree),
                                        cmocka_unit_test(wait_ends_in_time) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
