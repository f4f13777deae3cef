/* What a transaction keeps locked under a guard stops those who need it, and nobody else. */
#include "engine/kit/engine.h"
#include "postgres/kit/functions.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>

static struct postgres p;
static struct hf_db *db;

/* LONG: until callers are refused whom somebody else's lock has stopped. */
enum {
    ASKING = 4,
    OTHERS = 8,
    DURING_MS = 6000,
    LONG_MS = 15000,
    /* Of what the others do, so much within a minute. Each call would wait two seconds for the
     * lock; then they would come to 240 together, and one alone to 30. */
    ENOUGH = 400,
    ASKED = 100,
};

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
    struct hf_request set = { .action = HF_SET_GUARD,
                              .set_guard = { .name = hf_str("guard"),
                                             .window_ms = HOUR,
                                             .on_unavailable = HF_FAIL_CLOSED } };
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

static bool admits(const char *identity)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request admit = {
        .action = HF_ADMIT, .identity = { .guard = hf_str("guard"), .identity = hf_str(identity) }
    };
    KIT_WANT(hf_do(db, &admit, &result) == HF_OK);
    bool admitted = !result.answer.seen.seen;
    hf_result_clear(&result);
    return admitted;
}

static bool places(const char *name)
{
    struct hf_request place = { .action = HF_PLACE_HOLD,
                                .key = hf_str(name),
                                .place_hold = { .resource = hf_str(name),
                                                .requester = hf_str("guest"),
                                                .duration_ms = HOUR } };
    return hf_do(db, &place, NULL) == HF_OK;
}

static _Atomic bool over;
static _Atomic int named;

/* arg: NULL, each time another; or two identities, in turns. */
static void *ask_for_what_is_locked(void *arg)
{
    const char *const *two = arg;
    for (int i = 0; !over; i++) {
        char name[24];
        snprintf(name, sizeof name, "asked-%d", named++);
        admits(two ? two[i % 2] : name);
    }
    return NULL;
}

/* Callers who do something else: it must go well all the while, and not wait for the lock. */
static struct others {
    bool (*doing)(const char *name);
    _Atomic int begun, done, failed;
} others;

static void *do_something_else(void *arg)
{
    (void)arg;
    while (!over) {
        char name[24];
        snprintf(name, sizeof name, "other-%d", others.begun++);
        others.failed += !others.doing(name);
        others.done++;
        server_pause_ms(20);
    }
    return NULL;
}

static void goes_on(PGconn *user, const char *const *locked, bool (*doing)(const char *name),
                    int during_ms)
{
    pthread_t threads[ASKING + OTHERS];
    over = false;
    others.doing = doing;
    others.begun = others.done = others.failed = 0;
    for (int i = 0; i < ASKING + OTHERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < ASKING ? ask_for_what_is_locked : do_something_else,
                                        (void *)(uintptr_t)locked),
                         0);
    int64_t begun = server_clock_ms();
    server_pause_ms(during_ms);
    while (others.done < ENOUGH && server_clock_ms() - begun < SERVER_PATIENCE_MS)
        server_pause_ms(20);
    int done = others.done;
    over = true;
    functions_run(user, "ROLLBACK");
    for (int i = 0; i < ASKING + OTHERS; i++)
        pthread_join(threads[i], NULL);
    PQfinish(user);
    assert_int_equal(others.failed, 0);
    assert_true(done >= ENOUGH);
}

/* All who asked the guard for anything waited with those who asked for this one, and were then told
 * that it had been seen. */
static void one_identity_that_stays_locked_stops_no_other(void **state)
{
    static const char *const locked[] = { "locked", "locked" };
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.admit('guard', 'locked')");
    goes_on(user, locked, admits, DURING_MS);
}

/* Nor are two a sign that it is the guard. */
static void two_identities_that_stay_locked_stop_no_other(void **state)
{
    static const char *const locked[] = { "one", "two" };
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.admit('guard', 'one'), holdfast.admit('guard', 'two')");
    goes_on(user, locked, admits, LONG_MS);
}

static void an_identity_that_stays_locked_stops_no_other_however_it_is_written(void **state)
{
    static const char *const locked[] = { "locked", "LOCKED" };
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "SELECT holdfast.set_guard('guard', '1 hour', match => 'casefold', "
                        "on_unavailable => 'closed')");
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.admit('guard', 'locked')");
    goes_on(user, locked, admits, LONG_MS);
}

static void *place_what_is_locked(void *arg)
{
    (void)arg;
    while (!over)
        places("locked");
    return NULL;
}

/* Who asks what became of a call is told at once that nothing is committed, also while another
 * server's caller waits. */
static void what_became_of_a_key_is_told_while_it_stays_locked(void **state)
{
    struct hf_request ask = { .action = HF_GET_TOKEN, .key = hf_str("locked") };
    int asked = 0;
    pthread_t thread;
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.place_hold('locked', 'locked', 'user', '1 hour')");
    over = false;
    assert_int_equal(pthread_create(&thread, NULL, place_what_is_locked, NULL), 0);
    int64_t begun = server_clock_ms();
    for (; server_clock_ms() - begun < DURING_MS || asked < ASKED; asked++) {
        assert_int_equal(hf_do(db, &ask, NULL), HF_NOT_KNOWN);
        assert_true(server_clock_ms() - begun < SERVER_PATIENCE_MS);
        server_pause_ms(20);
    }
    over = true;
    functions_run(user, "ROLLBACK");
    pthread_join(thread, NULL);
    PQfinish(user);
}

/* Those who asked any guard, of any tenant, waited, and were then answered by its rule: an open one
 * admitted the same identity again and again. */
static void a_guard_that_is_being_set_stops_nobody_who_asks_another(void **state)
{
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user,
                  "SELECT holdfast.set_guard('another', '1 hour'), holdfast.set_guard('guard', '1 "
                  "hour', tenant => 't1')");
    goes_on(user, NULL, admits, DURING_MS);
}

/* And those who ask that one wait for it. */
static void who_asks_a_guard_that_is_being_set_waits_for_it(void **state)
{
    struct hf_request admit = {
        .action = HF_ADMIT, .identity = { .guard = hf_str("guard"), .identity = hf_str("waits") }
    };
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user,
                  "SELECT holdfast.set_guard('guard', '2 hours', on_unavailable => 'closed')");
    struct hf_result result = HF_RESULT_INIT;
    assert_int_equal(hf_do(db, &admit, &result), HF_OK);
    assert_true(result.answer.seen.seen); /* by the rule: it could not be asked */
    functions_run(user, "COMMIT");
    assert_int_equal(hf_do(db, &admit, &result), HF_OK);
    assert_false(result.answer.seen.seen);
    hf_result_clear(&result);
    PQfinish(user);
}

static void a_guard_that_is_being_changed_stops_nobody_who_does_not_ask_it(void **state)
{
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.set_guard('guard', '2 hours')");
    goes_on(user, NULL, places, DURING_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_identity_that_stays_locked_stops_no_other, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(two_identities_that_stay_locked_stop_no_other, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            an_identity_that_stays_locked_stops_no_other_however_it_is_written, setup, teardown),
        cmocka_unit_test_setup_teardown(what_became_of_a_key_is_told_while_it_stays_locked, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_guard_that_is_being_set_stops_nobody_who_asks_another,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(who_asks_a_guard_that_is_being_set_waits_for_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            a_guard_that_is_being_changed_stops_nobody_who_does_not_ask_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
