/* What a transaction keeps locked under a guard stops those who need it, and nobody else. */
#include "support/engine_kit.h"
#include "support/functions_kit.h"
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static struct postgres p;
static struct hf_db *db;

enum { ASKING = 4, DURING_MS = 4000, PATIENT_MS = 3000 };

static int begin(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    return 0;
}

static int end(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

static int setup(void **state)
{
    struct hf_options options = { .postgres = postgres_conninfo(&p), .no_background = true };
    struct hf_request set = {
        .action = HF_SET_GUARD,
        .set_guard = { .name = hf_str("guard"), .window_ms = HOUR, .on_unavailable = HF_FAIL_CLOSED }
    };
    struct hf_error why;
    (void)state;
    postgres_run(&p, "DROP SCHEMA IF EXISTS holdfast CASCADE");
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    assert_int_equal(hf_do(db, &set, NULL), HF_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hf_close(db);
    return 0;
}

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool admits(const char *identity)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request admit = { .action = HF_ADMIT,
                                .identity = { .guard = hf_str("guard"), .identity = hf_str(identity) } };
    KIT_WANT(hf_do(db, &admit, &result) == HF_OK);
    bool admitted = !result.answer.seen.seen;
    hf_result_clear(&result);
    return admitted;
}

static bool places(const char *name)
{
    struct hf_request place = {
        .action = HF_PLACE_HOLD,
        .key = hf_str(name),
        .place_hold = { .resource = hf_str(name), .requester = hf_str("guest"), .duration_ms = HOUR }
    };
    return hf_do(db, &place, NULL) == HF_OK;
}

static _Atomic bool over;
static _Atomic int named;

/* arg: NULL, each time another; or the one identity. */
static void *ask_for_what_is_locked(void *arg)
{
    while (!over) {
        char name[24];
        snprintf(name, sizeof name, "asked-%d", named++);
        admits(arg ? arg : name);
    }
    return NULL;
}

/* `doing` must go well all the while, and never take long. */
static void goes_on(PGconn *user, char *locked, bool (*doing)(const char *name))
{
    pthread_t threads[ASKING];
    int64_t slowest = 0;
    int failed = 0;
    over = false;
    for (int i = 0; i < ASKING; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_for_what_is_locked, locked), 0);
    for (int64_t until = clock_ms() + DURING_MS, n = 0; clock_ms() < until; n++) {
        char name[24];
        snprintf(name, sizeof name, "other-%d", (int)n);
        int64_t begun = clock_ms();
        failed += !doing(name);
        slowest = clock_ms() - begun > slowest ? clock_ms() - begun : slowest;
    }
    over = true;
    functions_run(user, "ROLLBACK");
    for (int i = 0; i < ASKING; i++)
        pthread_join(threads[i], NULL);
    PQfinish(user);
    assert_int_equal(failed, 0);
    assert_in_range(slowest, 0, PATIENT_MS);
}

/* All who asked the guard for anything waited with those who asked for this one, and were then told that it had been seen. */
static void one_identity_that_stays_locked_stops_no_other(void **state)
{
    static char locked[] = "locked";
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.admit('guard', 'locked')");
    goes_on(user, locked, admits);
}

static void a_guard_that_is_being_changed_stops_nobody_who_does_not_ask_it(void **state)
{
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.set_guard('guard', '2 hours')");
    goes_on(user, NULL, places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_identity_that_stays_locked_stops_no_other, setup, teardown),
        cmocka_unit_test_setup_teardown(a_guard_that_is_being_changed_stops_nobody_who_does_not_ask_it, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
