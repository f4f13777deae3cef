/* synchronous_standby_names is emptied and set again while a batch is under way: its commit has
 * waited for nobody. What it wrote must not be taken for replicated when commits wait for standbys
 * again. */
#include "postgres/kit/functions.h"
#include "postgres/kit/swift.h"
#include "server/kit/server.h"
#include "support/test.h"

static void standbys(const char *names)
{
    char sql[120];
    postgres_set(&swift.p, "synchronous_standby_names", names);
    postgres_reload(&swift.p);
    snprintf(sql, sizeof sql,
             "SELECT (current_setting('synchronous_standby_names') = '%s')::integer", names);
    postgres_await_number(&swift.p, sql, 1);
    if (names[0] == '\0')
        postgres_run(
            &swift.p,
            "CREATE TABLE IF NOT EXISTS waits_for_nobody ()"); /* it has come to all processes */
}

static int tear_down(void **state)
{
    standbys("");
    return swift_tear_down(state);
}

static void a_commit_that_waited_for_nobody_is_not_replicated(void **state)
{
    struct hf_request place = swift_placing("key", "room", SWIFT_HOUR_MS);
    (void)state;
    assert_int_equal(swift_do(swift_placing("other", "other", SWIFT_HOUR_MS)), HF_OK);
    standbys("nobody");
    swift_between(&place, 1);
    standbys("");
    assert_int_equal(swift_between_over(), HF_PG_DONE);
    standbys("nobody");
    swift_make(&place, 1);
    assert_int_equal(swift_again(), HF_PG_UNSURE);
    assert_true(swift.run.replayed[0]);
}

/* An operator gives up a standby that writers wait for, and takes another one later. */
static void a_commit_whose_standby_was_given_up_is_not_replicated(void **state)
{
    struct hf_request place = swift_placing("key", "room", SWIFT_HOUR_MS);
    (void)state;
    assert_int_equal(swift_do(swift_placing("other", "other", SWIFT_HOUR_MS)), HF_OK);
    standbys("nobody");
    swift_begin(&place, 1);
    postgres_await_number(&swift.p,
                          "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", 1);
    standbys("");
    assert_int_equal(swift_join(), HF_PG_DONE);
    standbys("another");
    swift_make(&place, 1);
    assert_int_equal(swift_again(), HF_PG_UNSURE);
    assert_true(swift.run.replayed[0]);
}

/* What was confirmed once stays so. */
static void a_reload_that_changes_nothing_costs_nothing(void **state)
{
    struct hf_request place = swift_placing("key", "room", SWIFT_HOUR_MS);
    (void)state;
    assert_int_equal(swift_do(place), HF_OK);
    standbys("nobody");
    swift_make(&place, 1);
    assert_int_equal(swift_again(), HF_PG_UNSURE);
    hf_pg_batch_sure(&swift.session); /* as if it had been waited for */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(swift_again(), HF_PG_DONE);
        postgres_reload(&swift.p);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, swift_set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_commit_that_waited_for_nobody_is_not_replicated),
        TEST(a_commit_whose_standby_was_given_up_is_not_replicated),
        TEST(a_reload_that_changes_nothing_costs_nothing),
    };
    return cmocka_run_group_tests(tests, swift_group_set_up, swift_group_tear_down);
}
