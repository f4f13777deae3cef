/* Rows that come and go while a batch is under way that found none: it must not take the name for
 * one that was never used. An application keeps a key bound in an open transaction, so that the
 * batch waits at that key, behind its reads and with its numbers and fences drawn; meanwhile others
 * make the row and take it out again, and the servers' maintenance runs; then the application rolls
 * back. */
#include "postgres/kit/functions.h"
#include "postgres/kit/swift.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "base/bytes.h"
#include "store/postgres/transaction.h"

#include <stdlib.h>

static struct hf_db *other;
static struct hf_pg_session sweeper;
static struct hf_result got = HF_RESULT_INIT;

static int begin(void **state)
{
    struct hf_error why;
    swift_set_up(state);
    /* Windows are as short as can be: nothing is kept for their sake. */
    struct hf_options options = { .no_background = true,
                                  .postgres = postgres_conninfo(&swift.p),
                                  .idempotency_window_ms = 1 };
    if (hf_open(NULL, &options, &other, &why) != HF_OK)
        fail_msg("%s", why.text);
    assert_true(hf_pg_session_init(&sweeper, &swift.shared));
    assert_int_equal(hf_pg_session_connect(&sweeper, NULL), HF_PG_FINE);
    return 0;
}

static int end(void **state)
{
    hf_close(other);
    hf_pg_session_free(&sweeper);
    hf_result_clear(&got);
    return swift_tear_down(state);
}

static void maintained(void)
{
    uint64_t freed;
    server_pause_ms(5);
    assert_int_equal(hf_pg_look(&sweeper), HF_PG_DONE);
    assert_int_equal(hf_pg_free_expired(&sweeper, 100, &freed), HF_PG_DONE);
}

/* ---- Calls ---- */

static struct hf_request granting(const char *key, const char *holder)
{
    return (struct hf_request){
        .action = HF_GRANT,
        .key = hf_str(key),
        .lease = { .name = hf_str("L"), .holder = hf_str(holder), .ttl_ms = SWIFT_HOUR_MS }
    };
}

static struct hf_request writing(enum hf_action action, const char *key, const char *value)
{
    return (struct hf_request){ .action = action,
                                .key = hf_str(key),
                                .write = { .name = hf_str("R"), .value = hf_str(value) } };
}

static void done(struct hf_request q)
{
    enum hf_status st = hf_do(other, &q, &got);
    if (st != HF_OK)
        fail_msg("%s: %s", hf_action_name(q.action), hf_status_code(st));
}

static void lease_comes_and_goes(void)
{
    done(granting("theirs", "bob"));
    done((struct hf_request){ .action = HF_DELETE_LEASE,
                              .key = hf_str("delete"),
                              .lease = { .name = hf_str("L"), .fence = got.answer.lease.fence } });
    assert_int_equal(postgres_number(&swift.p,
                                     "SELECT count(*) FROM holdfast.journal WHERE action = "
                                     "'delete_lease' AND status = 'ok'"),
                     1);
}

/* The same by one batch: then no row of the lease is ever seen. (It has the fence that the batch is
 * going to draw.) */
static void lease_comes_and_goes_at_once(void)
{
    uint64_t fence =
        (uint64_t)postgres_number(&swift.p, "SELECT last_value + 1 FROM holdfast.fence");
    const struct hf_request q[] = { granting("theirs", "bob"),
                                    { .action = HF_DELETE_LEASE,
                                      .key = hf_str("delete"),
                                      .lease = { .name = hf_str("L"), .fence = fence } } };
    struct hf_result results[2] = { HF_RESULT_INIT, HF_RESULT_INIT };
    assert_int_equal(hf_do_many(other, q, results, 2), HF_OK);
    assert_int_equal(results[0].answer.status, HF_OK);
    assert_int_equal(results[1].answer.status, HF_OK);
    assert_int_equal(results[0].answer.lease.fence, fence);
    hf_result_clear(&results[0]);
    hf_result_clear(&results[1]);
    assert_int_equal(postgres_number(&swift.p,
                                     "SELECT count(DISTINCT batch) FROM holdfast.journal WHERE "
                                     "action IN ('grant', 'delete_lease')"),
                     1);
}

static void register_comes_and_goes(void)
{
    done(writing(HF_WRITE, "theirs", "other"));
    done(writing(HF_DELETE_REGISTER, "delete", ""));
}

static void key_comes_and_goes(void)
{
    done(writing(HF_WRITE, "mine", "other"));
    done(writing(HF_DELETE_REGISTER, "delete", ""));
}

/* ---- The batch that waits ---- */

enum way { WITHOUT_LOCKS, WITH_LOCKS };

static void gate_shut(struct hf_request q, enum way way)
{
    const struct hf_request both[] = { q, swift_placing("a gate", "room", SWIFT_HOUR_MS) };
    functions_run(swift.user, "BEGIN");
    functions_run(swift.user, "SELECT holdfast.begin('a gate', 'x')");
    long long before = postgres_number(&swift.p, "SELECT last_value FROM holdfast.journal_number");
    swift_make(both, 2);
    swift_calm();
    swift.session.expects_new =
        way == WITHOUT_LOCKS; /* else it looks first, and locks what is there */
    swift_start();
    swift_await_blocked();
    assert_true(postgres_number(&swift.p, "SELECT last_value FROM holdfast.journal_number") >
                before);
}

static void gate_opened(void)
{
    functions_run(swift.user, "ROLLBACK");
    enum hf_pg_end end = swift_join();
    if (end == HF_PG_AGAIN)
        assert_int_equal(swift_again(), HF_PG_DONE);
    else
        assert_int_equal(end, HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_OK);
    assert_int_equal(swift.run.status[1], HF_OK);
    swift_audited();
    assert_int_equal(end, HF_PG_AGAIN);
}

static void a_lease(void (*comes_and_goes)(void), enum way way)
{
    gate_shut(granting("mine", "alice"), way);
    comes_and_goes();
    maintained();
    gate_opened();
    assert_int_equal(
        postgres_number(&swift.p, "SELECT count(*) FROM holdfast.lease WHERE holder = 'alice' AND "
                                  "fence = (SELECT last_value FROM holdfast.fence)"),
        1);
}

static void a_lease_that_came_and_went_was_there(void **state)
{
    (void)state;
    a_lease(lease_comes_and_goes, WITHOUT_LOCKS);
}

static void and_under_locks_as_well(void **state)
{
    (void)state;
    a_lease(lease_comes_and_goes, WITH_LOCKS);
}

static void and_if_it_came_and_went_in_one_batch(void **state)
{
    (void)state;
    a_lease(lease_comes_and_goes_at_once, WITHOUT_LOCKS);
}

static void a_register_that_came_and_went_was_there(void **state)
{
    (void)state;
    for (enum way way = WITHOUT_LOCKS; way <= WITH_LOCKS; way++) {
        gate_shut(writing(HF_WRITE, "mine", "mine"), way);
        register_comes_and_goes();
        maintained();
        gate_opened();
        end(state);
        begin(state);
    }
}

static void a_key_that_came_and_went_was_bound(void **state)
{
    (void)state;
    for (enum way way = WITHOUT_LOCKS; way <= WITH_LOCKS; way++) {
        gate_shut(writing(HF_WRITE, "mine", "mine"), way);
        key_comes_and_goes();
        maintained();
        gate_opened();
        end(state);
        begin(state);
    }
}

/* ---- When it may leave ---- */

static long long leases_left(void)
{
    return postgres_number(&swift.p, "SELECT count(*) FROM holdfast.lease");
}

/* As if that had been a while ago. */
static void time_passes(hf_time ms)
{
    sweeper.horizon.coming_at -= ms;
}

/* Of two leases one was deleted before it was first looked who is under way; of the other the
 * deletion came behind that, though its time, which is the servers' to tell, is as early. */
static void what_a_lease_has_left_goes_when_all_batches_are_over(void **state)
{
    (void)state;
    lease_comes_and_goes();
    maintained();
    functions_run(
        swift.user,
        "INSERT INTO holdfast.lease SELECT tenant, 'late', holder, fence, ttl_ms, granted_at, "
        "expires_at, released_at, deleted_at FROM holdfast.lease");
    assert_int_equal(leases_left(), 2);
    time_passes(HF_PG_LEAVE_MS - 2000);
    maintained();
    assert_int_equal(leases_left(), 2);
    time_passes(2000);
    maintained();
    assert_int_equal(leases_left(), 1);
    time_passes(HF_PG_LEAVE_MS);
    maintained();
    assert_int_equal(leases_left(), 0);
}

/* Somebody changed by hand what deleted registers have left: until when it is kept is no number, or
 * none that could be a time; or the fence is gone, for whose sake it is kept for ever. These rows
 * stay, and are told of. All others leave. */
static void a_row_changed_by_hand_keeps_no_other_from_leaving(void **state)
{
    enum { ODD = 6 };
    struct hf_pg_said said;
    (void)state;
    lease_comes_and_goes();
    register_comes_and_goes();
    functions_run(
        swift.user,
        "INSERT INTO holdfast.register SELECT tenant, 'odd' || n, type, v, version, fence, "
        "coalesce(t, changed_at) FROM holdfast.register, (VALUES (1, ''::bytea, "
        "NULL::timestamptz), (2, '\\x01', NULL), (3, '\\x0000000000000000ff', NULL), (4, "
        "'\\xffffffffffffff7f', NULL), (5, '\\xffffffffffffffff', NULL), (6, "
        "'\\xffffffffffffff7f', '-infinity')) AS odd (n, v, t)");
    for (int i = 0; i < 3; i++) {
        maintained();
        time_passes(HF_PG_LEAVE_MS);
    }
    assert_int_equal(leases_left(), 0);
    assert_int_equal(
        postgres_number(&swift.p, "SELECT count(*) FROM holdfast.register WHERE name = 'R'"), 0);
    assert_int_equal(postgres_number(&swift.p, "SELECT count(*) FROM holdfast.register"), ODD);
    assert_true(atomic_load(&swift.shared.unsound) >= ODD);
    bool named = false;
    while (hf_pg_clock_said(&swift.shared, &said))
        named = named || strstr(said.line, "holdfast.register, tenant \"\", name \"odd") != NULL;
    assert_true(named);
}

static void standbys(const char *names)
{
    char sql[120];
    postgres_set(&swift.p, "synchronous_standby_names", names);
    postgres_reload(&swift.p);
    snprintf(sql, sizeof sql,
             "SELECT (current_setting('synchronous_standby_names') = '%s')::integer", names);
    postgres_await_number(&swift.p, sql, 1);
}

/* Else it is told that a claim is not known, and the standby that takes over has it as it was
 * before it was settled. */
static void what_no_standby_has_does_not_leave(void **state)
{
    uint64_t freed;
    (void)state;
    register_comes_and_goes();
    maintained();
    time_passes(HF_PG_LEAVE_MS);
    standbys("nobody");
    enum hf_pg_end looked = hf_pg_look(&sweeper), end = hf_pg_free_expired(&sweeper, 100, &freed);
    bool waiting = sweeper.horizon.waiting;
    long long left = postgres_number(&swift.p, "SELECT count(*) FROM holdfast.register");
    standbys("");
    assert_int_equal(looked, HF_PG_DONE);
    assert_int_equal(end, HF_PG_DONE);
    assert_true(waiting);
    assert_int_equal(left, 1);
    /* As if a commit had been waited for that began behind. */
    hf_pg_replicated_below(&swift.shared.replicated, sweeper.conn.timeline, sweeper.horizon.ended);
    sweeper.replicates = true;
    assert_int_equal(hf_pg_free_expired(&sweeper, 100, &freed), HF_PG_DONE);
    assert_false(sweeper.horizon.waiting);
    assert_int_equal(postgres_number(&swift.p, "SELECT count(*) FROM holdfast.register"), 0);
}

/* A transaction that has written something and is open may have written that row. */
static void an_open_transaction_keeps_it(void **state)
{
    (void)state;
    functions_run(swift.user, "BEGIN");
    functions_run(swift.user, "SELECT pg_current_xact_id()");
    lease_comes_and_goes();
    for (int i = 0; i < 3; i++) {
        maintained();
        time_passes(HF_PG_LEAVE_MS);
    }
    assert_int_equal(leases_left(), 1);
    functions_run(swift.user, "COMMIT");
    for (int i = 0; i < 3; i++) {
        maintained();
        time_passes(HF_PG_LEAVE_MS);
    }
    assert_int_equal(leases_left(), 0);
}

static void (*in_time)(void *arg, size_t index, const struct hf_plan *plan, hf_time now);
static hf_time shift;

static void clock_shifts(void *arg, size_t index, const struct hf_plan *plan, hf_time now)
{
    swift.session.read_at += shift;
    in_time(arg, index, plan, now);
}

/* A batch is over by then, with locks too; and also if the database's clock was set back
 * meanwhile. */
static void what_was_read_long_ago_is_not_written(void **state)
{
    static const struct {
        enum way way;
        hf_time shift;
    } late[] = { { WITHOUT_LOCKS, -HF_PG_SWIFT_MS },
                 { WITHOUT_LOCKS, 10000 },
                 { WITH_LOCKS, -HF_PG_LOCKED_MS },
                 { WITH_LOCKS, 10000 } };
    struct hf_request q = granting("mine", "alice");
    (void)state;
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        swift_make(&q, 1);
        swift_calm();
        swift.session.expects_new = late[i].way == WITHOUT_LOCKS;
        in_time = swift.run.batch.decided;
        swift.run.batch.decided = clock_shifts;
        shift = late[i].shift;
        assert_int_equal(swift_now(), HF_PG_AGAIN);
        assert_string_equal(swift.session.conn.state, "40001");
        assert_int_equal(leases_left(), 0);
    }
    swift.run.batch.decided = in_time;
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_OK);
}

/* ---- What it is to others ---- */

static void to_functions_it_is_not_there(void **state)
{
    (void)state;
    lease_comes_and_goes();
    assert_int_equal(postgres_number(&swift.p,
                                     "SELECT count(*) FROM holdfast.get_lease('L') WHERE status = "
                                     "'not-known'"),
                     1);
    assert_int_equal(
        postgres_number(&swift.p,
                        "SELECT count(*) FROM holdfast.renew_lease('L', (SELECT fence FROM "
                        "holdfast.lease)) WHERE status = 'not-known'"),
        1);
    assert_int_equal(postgres_number(&swift.p,
                                     "SELECT count(*) FROM holdfast.grant_lease('k', 'L', 'carol', "
                                     "interval '1 h') WHERE status = 'ok'"),
                     1);
    assert_int_equal(
        postgres_number(&swift.p,
                        "SELECT count(*) FROM holdfast.get_lease('L') WHERE status = 'ok' "
                        "AND holder = 'carol' AND fence = (SELECT last_value FROM "
                        "holdfast.fence)"),
        1);
    swift_audited();
}

static void to_servers_it_is_not_there(void **state)
{
    (void)state;
    lease_comes_and_goes();
    uint64_t first = got.answer.lease.fence;
    struct hf_request get = { .action = HF_GET_LEASE, .get = { .name = hf_str("L") } };
    struct hf_request renew = { .action = HF_RENEW,
                                .lease = { .name = hf_str("L"), .fence = first } };
    assert_int_equal(hf_do(other, &get, &got), HF_NOT_KNOWN);
    assert_int_equal(hf_do(other, &renew, &got), HF_NOT_KNOWN);
    done(granting("again", "carol"));
    assert_true(got.answer.lease.fence > first);
    done(get);
    assert_true(hf_bytes_equal(got.answer.lease.holder, hf_str("carol")));
    swift_audited();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_lease_that_came_and_went_was_there),
        TEST(and_under_locks_as_well),
        TEST(and_if_it_came_and_went_in_one_batch),
        TEST(a_register_that_came_and_went_was_there),
        TEST(a_key_that_came_and_went_was_bound),
        TEST(what_a_lease_has_left_goes_when_all_batches_are_over),
        TEST(a_row_changed_by_hand_keeps_no_other_from_leaving),
        TEST(what_no_standby_has_does_not_leave),
        TEST(an_open_transaction_keeps_it),
        TEST(what_was_read_long_ago_is_not_written),
        TEST(to_functions_it_is_not_there),
        TEST(to_servers_it_is_not_there),
    };
    return cmocka_run_group_tests(tests, swift_group_set_up, swift_group_tear_down);
}
