/* A session's row in holdfast.writer went with a primary whose standby did not have it yet, and the
 * new primary gave the same number to another session. The first one took that session's row for
 * its own: it answered that its batch in doubt had happened, or refused the database for ever. */
#include "postgres/kit/functions.h"
#include "postgres/kit/swift.h"
#include "support/test.h"

/* The row is another session's, which has committed so many batches. */
static void row_of_another(const char *batch)
{
    char sql[200];
    snprintf(
        sql, sizeof sql,
        "UPDATE holdfast.writer SET name = 'another', batch = %s, started_at = now() WHERE id = %d",
        batch, swift.session.writer);
    functions_run(swift.user, sql);
}

static void look(const char *batch)
{
    bool committed = true;
    row_of_another(batch);
    hf_pg_disconnect(&swift.session.conn);
    assert_int_equal(hf_pg_session_connect(&swift.session, &committed), HF_PG_FINE);
    assert_false(committed);
    assert_int_equal(swift.session.writer, 0); /* the next batch takes a row of its own */
    assert_int_equal(
        postgres_number(&swift.p,
                        "SELECT max(generation) FROM holdfast.writer WHERE name = 'another'"),
        1);
}

static void a_batch_of_another_is_not_taken_for_ours(void **state)
{
    (void)state;
    look("1");
    assert_int_equal(hf_pg_session_register(&swift.session), HF_PG_FINE);
    assert_int_equal(swift_do(swift_placing("key", "room", SWIFT_HOUR_MS)), HF_OK);
}

static void a_row_of_another_is_left_alone(void **state)
{
    (void)state;
    look("0");
}

static void the_number_of_another_does_not_lock_us_out(void **state)
{
    (void)state;
    look("53");
}

/* Once something was committed, the row is ours and must say so. */
static void a_row_that_ran_back_is_refused(void **state)
{
    (void)state;
    assert_int_equal(swift_do(swift_placing("key", "room", SWIFT_HOUR_MS)), HF_OK);
    assert_int_equal(swift.session.batch, 1);
    row_of_another("0");
    hf_pg_disconnect(&swift.session.conn);
    assert_int_equal(hf_pg_session_connect(&swift.session, NULL), HF_PG_REFUSED);
    assert_non_null(strstr(swift.session.conn.why, "has lost confirmed commits"));
}

static void our_row_is_taken_up_again(void **state)
{
    (void)state;
    int32_t writer = swift.session.writer;
    assert_int_equal(swift_do(swift_placing("key", "room", SWIFT_HOUR_MS)), HF_OK);
    hf_pg_disconnect(&swift.session.conn);
    assert_int_equal(hf_pg_session_connect(&swift.session, NULL), HF_PG_FINE);
    assert_int_equal(swift.session.writer, writer);
    assert_int_equal(swift.session.generation, 1); /* when something is written, and not before */
    assert_int_equal(swift_do(swift_placing("other", "room-2", SWIFT_HOUR_MS)), HF_OK);
    assert_int_equal(swift.session.writer, writer);
    assert_int_equal(swift.session.generation, 2);
    assert_int_equal(swift.session.batch, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, swift_set_up, swift_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_batch_of_another_is_not_taken_for_ours),
        TEST(a_row_of_another_is_left_alone),
        TEST(the_number_of_another_does_not_lock_us_out),
        TEST(a_row_that_ran_back_is_refused),
        TEST(our_row_is_taken_up_again),
    };
    return cmocka_run_group_tests(tests, swift_group_set_up, swift_group_tear_down);
}
