/* The names that every interface shows. */
#include "support/test.h"

#include "base/clock.h"
#include "base/worker.h"
#include "holdfast.h"

#include <sched.h>
#include <stdatomic.h>

static void statuses(void **state)
{
    (void)state;
    static const struct {
        enum hf_status status;
        const char *code;
        enum hf_status_kind kind;
    } all[] = {
        { HF_OK, "ok", HF_KIND_OK },
        { HF_INVALID_REQUEST, "invalid-request", HF_KIND_REFUSAL },
        { HF_NOT_KNOWN, "not-known", HF_KIND_REFUSAL },
        { HF_RESOURCE_UNAVAILABLE, "resource-unavailable", HF_KIND_REFUSAL },
        { HF_NOT_HELD, "not-held", HF_KIND_REFUSAL },
        { HF_WINDOW_ELAPSED, "window-elapsed", HF_KIND_REFUSAL },
        { HF_WINDOW_NOT_ELAPSED, "window-not-elapsed", HF_KIND_REFUSAL },
        { HF_IN_PROGRESS, "in-progress", HF_KIND_REFUSAL },
        { HF_OUTCOME_UNKNOWN, "outcome-unknown", HF_KIND_REFUSAL },
        { HF_STALE_FENCE, "stale-fence", HF_KIND_REFUSAL },
        { HF_VERSION_MISMATCH, "version-mismatch", HF_KIND_REFUSAL },
        { HF_TOKEN_COLLISION, "token-collision", HF_KIND_REFUSAL },
        { HF_LEASE_HELD, "lease-held", HF_KIND_REFUSAL },
        { HF_REFUSED, "refused", HF_KIND_REFUSAL },
        { HF_STORAGE_FAILURE, "storage-failure", HF_KIND_FAULT },
        { HF_NO_MEMORY, "no-memory", HF_KIND_FAULT },
        { HF_MISUSE, "misuse", HF_KIND_FAULT },
        { HF_STORE_BUSY, "store-busy", HF_KIND_FAULT },
        { HF_STORE_DAMAGED, "store-damaged", HF_KIND_FAULT },
        { HF_STORE_NEWER, "store-newer", HF_KIND_FAULT },
        { HF_STORE_ABSENT, "store-absent", HF_KIND_FAULT },
        { HF_INDETERMINATE, "indeterminate", HF_KIND_INDETERMINATE },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_string_equal(hf_status_code(all[i].status), all[i].code);
        assert_int_equal(hf_status_kind(all[i].status), all[i].kind);
    }
    static const int unknown[] = { -1, 14, 31, 39, 63, 65, 1000 };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_string_equal(hf_status_code((enum hf_status)unknown[i]), "unknown");
}

static void actions(void **state)
{
    (void)state;
    static const char *const names[80] = {
        [1] = "place_hold",    [2] = "confirm",       [3] = "release",
        [4] = "expire",        [5] = "reverse",       [6] = "set_resource",
        [7] = "set_guard",     [8] = "check",         [9] = "record",
        [10] = "admit",        [11] = "begin",        [12] = "complete",
        [13] = "fail",         [14] = "heartbeat",    [15] = "grant",
        [16] = "renew",        [17] = "return",       [18] = "write",
        [19] = "merge",        [20] = "apply",        [21] = "delete_register",
        [22] = "delete_lease", [23] = "abandon",      [24] = "confirm_late",
        [32] = "sweep",        [33] = "configure",    [64] = "get_hold",
        [65] = "get_resource", [66] = "get_guard",    [67] = "get_claim",
        [68] = "get_lease",    [69] = "get_register", [70] = "get_token",
        [71] = "get_value"
    };
    for (int a = 0; a < 80; a++)
        assert_string_equal(hf_action_name((enum hf_action)a), names[a] ? names[a] : "unknown");
    assert_string_equal(hf_action_name((enum hf_action) - 1), "unknown");
}

static void version(void **state)
{
    (void)state;
    assert_string_equal(hf_version(), HF_VERSION);
}

/* The clocks of the system, and waiting by the monotonic one. */

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

/* A thread that makes steps until it is stopped. */

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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses),
        cmocka_unit_test(actions),
        cmocka_unit_test(version),
        cmocka_unit_test(units_agree),
        cmocka_unit_test(wait_ends_in_time),
        cmocka_unit_test(steps_follow_each_other),
        cmocka_unit_test(stop_ends_the_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
