/* Timers of equal duration: what is due, and in which order. */
#include "net/timer.h"
#include "base/owner.h"
#include "support/test.h"

static struct thing {
    int number;
    struct hf_timer timer;
} things[4];
static struct hf_timer_queue queue, other;

static int setup(void **state)
{
    (void)state;
    memset(things, 0, sizeof things);
    queue = (struct hf_timer_queue){ .duration_ms = 100 };
    other = (struct hf_timer_queue){ .duration_ms = 5 };
    for (int i = 0; i < 4; i++) {
        things[i].number = i;
        hf_timer_set(&things[i].timer, &queue, 1000 + i);
    }
    return 0;
}

/* The number of the next that is due, or -1. */
static int due(int64_t now_ms)
{
    struct hf_timer *timer = hf_timer_take(&queue, now_ms);
    return timer ? HF_OWNER(struct thing, timer, timer)->number : -1;
}

static void oldest_is_due_first(void **state)
{
    (void)state;
    assert_int_equal(due(1099), -1);
    assert_int_equal(due(1101), 0);
    assert_int_equal(due(1101), 1);
    assert_int_equal(due(1101), -1);
    assert_null(things[0].timer.queue);
    assert_int_equal(due(5000), 2);
    assert_int_equal(due(5000), 3);
    assert_int_equal(due(5000), -1);
    assert_true(!queue.oldest && !queue.newest);
}

static void cleared_is_never_due(void **state)
{
    (void)state;
    static const int orders[][4] = { { 0, 3, 1, 2 }, { 1, 2, 0, 3 }, { 3, 2, 1, 0 } };
    for (size_t k = 0; k < 3; k++) {
        setup(NULL);
        for (int i = 0; i < 4; i++) {
            hf_timer_clear(&things[orders[k][i]].timer);
            hf_timer_clear(&things[orders[k][i]].timer); /* again does no harm */
            int left = 0;
            for (struct hf_timer *t = queue.oldest; t; t = t->newer)
                left++;
            assert_int_equal(left, 3 - i);
        }
        assert_int_equal(due(9999), -1);
    }
}

static void set_again_counts_anew(void **state)
{
    (void)state;
    hf_timer_set(&things[0].timer, &queue, 1010);
    hf_timer_set(&things[1].timer, &other, 1010); /* or in another queue */
    assert_int_equal(due(1110), 2);
    assert_int_equal(due(1110), 3);
    assert_int_equal(due(1110), 0);
    assert_int_equal(due(1110), -1);
    assert_ptr_equal(hf_timer_take(&other, 1015), &things[1].timer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(oldest_is_due_first, setup),
        cmocka_unit_test_setup(cleared_is_never_due, setup),
        cmocka_unit_test_setup(set_again_counts_anew, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
