/* The event loop of a thread: what is ready is called, others can wake it and post to it. */
#include "support/test.h"

#include "base/clock.h"
#include "base/owner.h"
#include "net/loop.h"
#include "net/timer.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static struct hf_loop loop;
static struct hf_inbox inbox;

static struct end {
    struct hf_source source;
    unsigned called;
    uint32_t events;
} end;
static int other_end;

static void on_ready(struct hf_source *source, uint32_t events)
{
    struct end *e = HF_OWNER(struct end, source, source);
    e->called++;
    e->events = events;
}

static int setup(void **state)
{
    (void)state;
    int fds[2];
    if (!hf_loop_open(&loop) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0)
        return 1;
    hf_loop_begin(&loop);
    hf_inbox_open(&inbox, &loop);
    end = (struct end){ .source = { .fd = fds[0], .ready = on_ready } };
    other_end = fds[1];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hf_loop_close(&loop);
    close(end.source.fd);
    close(other_end);
    return 0;
}

static void turn(int ms)
{
    hf_loop_wait(&loop, ms);
    hf_loop_dispatch(&loop);
}

static void ready_sources_are_called(void **state)
{
    (void)state;
    assert_true(hf_loop_watch(&loop, &end.source, EPOLLIN));
    turn(0);
    assert_int_equal(end.called, 0);
    assert_int_equal(send(other_end, "x", 1, 0), 1);
    turn(10000);
    assert_int_equal(end.called, 1);
    assert_int_equal(end.events, EPOLLIN);
    hf_loop_dispatch(&loop); /* what is dispatched is not called again */
    assert_int_equal(end.called, 1);
    assert_true(hf_loop_watch(&loop, &end.source, EPOLLOUT)); /* the byte is not asked for now */
    turn(10000);
    assert_int_equal(end.events, EPOLLOUT);
    hf_loop_unwatch(&loop, &end.source);
    hf_loop_unwatch(&loop, &end.source); /* again does no harm */
    turn(0);
    assert_int_equal(end.called, 2);
    assert_true(hf_loop_watch(&loop, &end.source, EPOLLIN));
    turn(10000);
    assert_int_equal(end.called, 3);
}

static void wait_has_an_end(void **state)
{
    (void)state;
    int64_t begun = hf_clock_monotonic_ms();
    turn(30);
    assert_true(loop.now_ms - begun >= 29);
    hf_loop_wake(&loop);
    turn(60000);
    assert_true(hf_clock_monotonic_ms() - begun < 30000);
    int64_t now = loop.now_ms;
    turn(5); /* it was woken once */
    assert_true(loop.now_ms - now >= 4);
    struct hf_source bad = { .fd = -1, .ready = on_ready };
    assert_false(hf_loop_watch(&loop, &bad, EPOLLIN));
    assert_false(bad.watched);
}

enum { THREADS = 4, TASKS = 1000 };

static struct job {
    struct hf_task task;
    unsigned done;
} jobs[THREADS][TASKS];

static void *post_all(void *arg)
{
    struct job *mine = arg;
    assert_false(hf_loop_is_here(&loop));
    for (int i = 0; i < TASKS; i++)
        hf_inbox_put(&inbox, &mine[i].task);
    return NULL;
}

static unsigned take_all(void)
{
    unsigned count = 0;
    struct hf_task *next;
    for (struct hf_task *task = hf_inbox_take(&inbox); task; task = next, count++) {
        next = task->next;
        HF_OWNER(struct job, task, task)->done++;
    }
    return count;
}

static void others_post_and_wake(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    memset(jobs, 0, sizeof jobs);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_all, jobs[i]), 0);
    for (unsigned taken = 0; taken < THREADS * TASKS;) {
        int64_t begun = hf_clock_monotonic_ms();
        turn(60000);
        assert_true(hf_clock_monotonic_ms() - begun < 30000); /* no post is slept over */
        taken += take_all();
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        for (int k = 0; k < TASKS; k++)
            assert_int_equal(jobs[i][k].done, 1);
    }
    assert_null(hf_inbox_take(&inbox));
}

static void own_posts_stay_in_order(void **state)
{
    (void)state;
    struct hf_task tasks[3];
    assert_true(hf_loop_is_here(&loop));
    for (int i = 0; i < 3; i++)
        hf_inbox_put(&inbox, &tasks[i]);
    assert_ptr_equal(inbox.here, &tasks[0]);
    struct hf_task *task = hf_inbox_take(&inbox);
    for (int i = 0; i < 3; i++, task = task->next)
        assert_ptr_equal(task, &tasks[i]);
    assert_null(task);
    assert_null(inbox.here);
}

/* Timers of equal duration: what is due, and in which order. */

static struct thing {
    int number;
    struct hf_timer timer;
} things[4];
static struct hf_timer_queue queue, other;

static int setup_timers(void **state)
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
        setup_timers(NULL);
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
        cmocka_unit_test_setup_teardown(ready_sources_are_called, setup, teardown),
        cmocka_unit_test_setup_teardown(wait_has_an_end, setup, teardown),
        cmocka_unit_test_setup_teardown(others_post_and_wake, setup, teardown),
        cmocka_unit_test_setup_teardown(own_posts_stay_in_order, setup, teardown),
        cmocka_unit_test_setup(oldest_is_due_first, setup_timers),
        cmocka_unit_test_setup(cleared_is_never_due, setup_timers),
        cmocka_unit_test_setup(set_again_counts_anew, setup_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
