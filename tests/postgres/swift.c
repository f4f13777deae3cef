/* Batches without locks: rows are read in one round trip and written in the next, and whatever
 * happens between the two is found by the commit. */
#include "postgres/kit/swift.h"
#include "postgres/kit/functions.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "base/buffer.h"

#include <stdatomic.h>

static struct hf_request asking_for_a_lease(void)
{
    return (struct hf_request){ .action = HF_GET_LEASE, .get = { .name = hf_str("nobody's") } };
}

/* ---- Rows that change between the two trips ---- */

/* What a batch changes is as it was read, or the batch begins again. `made` before, `changed` in
 * between; # is the number of the race, %h its hold on the room, %l the fence of its lease, %c that
 * of its claim. */
static const struct race {
    const char *made, *changed;
    enum hf_action action;
    enum hf_status status; /* of who comes second */
} races[] = {
    { "", "holdfast.place_hold('u#', 'room#', 'u', interval '1 h')", HF_PLACE_HOLD, HF_OK },
    { "holdfast.set_resource('room#', 2)", "holdfast.set_resource('room#', 1)", HF_PLACE_HOLD,
      HF_RESOURCE_UNAVAILABLE },
    { "", "holdfast.release('u#', %h)", HF_CONFIRM, HF_NOT_HELD },
    { "", "holdfast.confirm('u#', %h)", HF_RELEASE, HF_NOT_HELD },
    { "holdfast.confirm('c#', %h)", "holdfast.reverse('u#', %h)", HF_REVERSE, HF_NOT_HELD },
    { "", "holdfast.grant_lease('u#', 'name#', 'u', interval '1 h')", HF_GRANT, HF_LEASE_HELD },
    { "holdfast.grant_lease('c#', 'name#', 'u', interval '1 ms')",
      "holdfast.grant_lease('u#', 'name#', 'u', interval '1 h')", HF_GRANT, HF_LEASE_HELD },
    { "holdfast.grant_lease('c#', 'name#', 'u', interval '1 h')",
      "holdfast.return_lease('name#', %l)", HF_RENEW, HF_NOT_HELD },
    { "holdfast.grant_lease('c#', 'name#', 'u', interval '1 h')",
      "holdfast.return_lease('name#', %l)", HF_RETURN, HF_OK },
    { "holdfast.write('c#', 'name#', 'old')", "holdfast.write('u#', 'name#', 'new')", HF_WRITE,
      HF_VERSION_MISMATCH },
    { "", "holdfast.begin('key#', 'other')", HF_BEGIN, HF_TOKEN_COLLISION },
    { "holdfast.begin('key#', 'x')", "holdfast.fail('key#', %c, 'no')", HF_COMPLETE,
      HF_TOKEN_COLLISION },
    { "holdfast.begin('key#', 'x')", "holdfast.complete('key#', %c, 'yes')", HF_HEARTBEAT,
      HF_NOT_HELD },
};

static struct {
    char number[8], key[16], room[16], name[16], hold[HF_ID_SIZE];
} mine; /* of the race that is run */

/* The user's call, with what stands for # and % in it. */
static void act(const char *text)
{
    struct hf_buffer sql = { 0 };
    hf_buffer_add_text(&sql, *text ? "SELECT " : "SELECT");
    for (; *text; text++)
        if (*text == '#')
            hf_buffer_add_text(&sql, mine.number);
        else if (*text != '%')
            hf_buffer_add(&sql, text, 1);
        else if (*++text == 'h')
            hf_buffer_printf(&sql, "'%s'", mine.hold);
        else
            hf_buffer_printf(&sql, "(SELECT max(fence) FROM holdfast.%s)",
                             *text == 'l' ? "lease" : "token");
    functions_run(swift.user, hf_buffer_text(&sql));
    hf_buffer_free(&sql);
}

static struct hf_request request_of(enum hf_action action)
{
    struct hf_request q = { .action = action, .key = hf_str(mine.key) };
    switch (action) {
    case HF_PLACE_HOLD: return swift_placing(mine.key, mine.room, SWIFT_HOUR_MS);
    case HF_RENEW:
    case HF_RETURN:
        q.key = hf_mem(NULL, 0);
        q.lease.fence =
            (uint64_t)postgres_number(&swift.p, "SELECT max(fence) FROM holdfast.lease");
        q.lease.name = hf_str(mine.name);
        break;
    case HF_GRANT:
        q.lease.name = hf_str(mine.name);
        q.lease.holder = hf_str("me");
        q.lease.ttl_ms = SWIFT_HOUR_MS;
        break;
    case HF_WRITE:
        q.write.name = hf_str(mine.name);
        q.write.value = hf_str("mine");
        q.write.has_if_version = true;
        q.write.if_version = 1;
        break;
    case HF_BEGIN: q.begin.payload = hf_str("mine"); break;
    case HF_COMPLETE:
    case HF_HEARTBEAT:
        q.settle.fence =
            (uint64_t)postgres_number(&swift.p, "SELECT max(fence) FROM holdfast.token");
        break;
    default: q.hold.id = hf_str(mine.hold); break;
    }
    return q;
}

/* A room with three units, one of which is held. */
static void room_make(size_t number)
{
    char first[24];
    snprintf(mine.number, sizeof mine.number, "%zu", number);
    snprintf(mine.key, sizeof mine.key, "key%zu", number);
    snprintf(mine.room, sizeof mine.room, "room%zu", number);
    snprintf(mine.name, sizeof mine.name, "name%zu", number);
    snprintf(first, sizeof first, "first%zu", number);
    act("holdfast.set_resource('room#', 3)");
    assert_int_equal(swift_do(swift_placing(first, mine.room, SWIFT_HOUR_MS)), HF_OK);
    memcpy(mine.hold, swift.run.hold[0], sizeof mine.hold);
}

static void who_comes_second_decides_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof races / sizeof *races; i++) {
        const struct race *race = &races[i];
        room_make(i);
        act(race->made);
        server_pause_ms(2);
        struct hf_request q = request_of(race->action);
        swift_between(&q, 1);
        act(race->changed);
        if (swift_between_over() != HF_PG_AGAIN)
            fail_msg("race %zu: it did not begin again", i);
        assert_int_equal(swift_again(), HF_PG_DONE);
        if (swift.run.status[0] != race->status)
            fail_msg("race %zu: %s", i, hf_status_code(swift.run.status[0]));
    }
    swift_audited();
}

/* The row is being changed while the batch writes: it waits, and goes on only if it was not changed
 * after all. */
static void a_row_that_is_being_changed_is_waited_for(void **state)
{
    struct hf_request q = swift_placing("key", "room", SWIFT_HOUR_MS);
    (void)state;
    functions_run(swift.user, "SELECT holdfast.set_resource('room', 2)");
    for (int commits = 0; commits < 2; commits++) {
        functions_run(swift.user, "BEGIN");
        functions_run(swift.user,
                      commits ? "SELECT holdfast.place_hold('u', 'room', 'u', interval '1 h')"
                              : "SELECT holdfast.set_resource('room', 1)");
        q.key = hf_str(commits ? "second" : "first");
        swift_begin(&q, 1);
        swift_await_blocked();
        functions_run(swift.user, commits ? "COMMIT" : "ROLLBACK");
        assert_int_equal(swift_join(), commits ? HF_PG_AGAIN : HF_PG_DONE);
    }
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(postgres_number(&swift.p, "SELECT held FROM holdfast.resource"), 2);
    swift_audited();
}

/* A table that is written anew has its rows elsewhere: a newer one may stand where the old one
 * was. */
static void a_changed_row_in_the_same_place_is_another(void **state)
{
    static const char place[] = "SELECT (ctid = '(0,1)')::integer FROM holdfast.resource";
    struct hf_request q = swift_placing("key", "room", SWIFT_HOUR_MS);
    (void)state;
    functions_run(swift.user, "SELECT holdfast.set_resource('room', 2)");
    postgres_run(&swift.p, "VACUUM FULL holdfast.resource");
    assert_int_equal(postgres_number(&swift.p, place), 1);
    swift_between(&q, 1);
    postgres_run(&swift.p, "UPDATE holdfast.resource SET open = false");
    postgres_run(&swift.p, "VACUUM FULL holdfast.resource");
    assert_int_equal(postgres_number(&swift.p, place), 1);
    assert_int_equal(swift_between_over(), HF_PG_AGAIN);
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_RESOURCE_UNAVAILABLE);
}

/* In a backup that was restored one transaction has written all rows. Another one may stand where
 * the row was. */
static void another_row_in_the_same_place_is_not_taken_for_it(void **state)
{
    struct hf_request q = swift_placing("key", "a", SWIFT_HOUR_MS);
    (void)state;
    functions_run(swift.user, "SELECT holdfast.set_resource('x', 5)");
    functions_run(swift.user, "SELECT holdfast.set_resource('a', 6)");
    functions_run(swift.user, "SELECT holdfast.set_resource('b', 7)");
    functions_run(swift.user,
                  "CREATE TABLE held AS SELECT * FROM holdfast.resource ORDER BY capacity");
    functions_run(swift.user, "TRUNCATE holdfast.resource");
    functions_run(swift.user, "INSERT INTO holdfast.resource SELECT * FROM held");
    functions_run(swift.user, "DROP TABLE held");
    functions_run(swift.user, "UPDATE holdfast.resource SET open = open WHERE name = 'x'");
    swift_between(&q, 1);
    postgres_run(&swift.p, "VACUUM FULL holdfast.resource");
    assert_int_equal(
        postgres_number(
            &swift.p,
            "SELECT count(*) FROM holdfast.resource a, holdfast.resource b WHERE a.name = 'a' AND "
            "b.name = 'b' AND b.ctid = '(0,2)' AND a.xmin = b.xmin"),
        1);
    assert_int_equal(swift_between_over(), HF_PG_AGAIN);
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_OK);
    assert_int_equal(
        postgres_number(&swift.p, "SELECT held FROM holdfast.resource WHERE name = 'b'"), 0);
    swift_audited();
}

/* Nobody has changed a row; only the rules that it was decided by are others. */
static void rules_that_changed_are_gone_by(void **state)
{
    struct hf_request q = swift_placing("key", "unknown", SWIFT_HOUR_MS);
    (void)state;
    swift_between(&q, 1);
    functions_run(swift.user, "UPDATE holdfast.store SET registry_strict = true");
    assert_int_equal(swift_between_over(), HF_PG_AGAIN);
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(postgres_number(&swift.p, "SELECT count(*) FROM holdfast.hold"), 0);
}

/* A numbered call changes its client's row, whatever else it does. */
static void a_clients_number_is_used_once(void **state)
{
    struct hf_request q = swift_placing("", "room", SWIFT_HOUR_MS);
    (void)state;
    functions_run(swift.user, "SELECT holdfast.set_resource('room', 9)");
    q.key = hf_mem(NULL, 0);
    q.client = hf_str("client");
    q.sequence = 1;
    assert_int_equal(swift_do(q), HF_OK);
    q.sequence = 2;
    swift_between(&q, 1);
    functions_run(swift.user, "UPDATE holdfast.client SET highest = highest");
    assert_int_equal(swift_between_over(), HF_PG_AGAIN);
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift_do(q), HF_OK);
    assert_true(swift.run.replayed[0]);
    swift_audited();
}

/* ---- Answers over rows that the commit does not change ---- */

/* The unit was given back by an entry with a lower number, which the batch could not see yet: a
 * refusal behind it would be a wrong one for ever. */
static void a_refusal_is_not_decided_without_a_lock(void **state)
{
    struct hf_request q = swift_placing("key", "room", SWIFT_HOUR_MS);
    (void)state;
    assert_int_equal(swift_do(swift_placing("first", "room", SWIFT_HOUR_MS)), HF_OK);
    memcpy(mine.hold, swift.run.hold[0], sizeof mine.hold);
    functions_run(swift.user, "BEGIN");
    act("holdfast.release('u', %h)");
    assert_int_equal(swift_try(&q, 1), HF_PG_AGAIN);
    functions_run(swift.user, "COMMIT");
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_OK);
    swift_audited();
}

/* ---- Keys that are not looked up ---- */

static void a_key_that_is_bound_has_no_second_effect(void **state)
{
    struct hf_request q = swift_placing("key", "room", SWIFT_HOUR_MS);
    (void)state;
    functions_run(swift.user, "SELECT holdfast.set_resource('room', 9)");
    functions_run(swift.user, "SELECT holdfast.place_hold('key', 'room', 'guest', interval '1 h')");
    assert_int_equal(swift_try(&q, 1), HF_PG_AGAIN);
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_true(swift.run.replayed[0]);
    assert_false(swift.run.items[0].raced); /* it was bound long before */
    assert_true(atomic_load(&swift.shared.looking) > 0);
    assert_int_equal(postgres_number(&swift.p, "SELECT held FROM holdfast.resource"), 1);
    swift_audited();
}

static void a_key_that_is_being_bound_is_waited_for(void **state)
{
    struct hf_request q = swift_placing("key", "room", SWIFT_HOUR_MS);
    (void)state;
    functions_run(swift.user, "SELECT holdfast.set_resource('room', 9)");
    functions_run(swift.user, "SELECT holdfast.set_resource('other', 9)");
    for (int commits = 0; commits < 2; commits++) {
        functions_run(swift.user, "BEGIN");
        functions_run(swift.user,
                      commits ? "SELECT holdfast.place_hold('two', 'other', 'u', interval '1 h')"
                              : "SELECT holdfast.place_hold('one', 'other', 'u', interval '1 h')");
        q.key = hf_str(commits ? "two" : "one");
        swift_begin(&q, 1);
        swift_await_blocked();
        functions_run(swift.user, commits ? "COMMIT" : "ROLLBACK");
        assert_int_equal(swift_join(), commits ? HF_PG_AGAIN : HF_PG_DONE);
    }
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_TOKEN_COLLISION);
    swift_audited();
}

/* The second is the answer of the first, and stands and falls with it. */
static void a_key_twice_in_a_batch_has_one_effect(void **state)
{
    const struct hf_request q[] = { swift_placing("key", "room", SWIFT_HOUR_MS),
                                    swift_placing("key", "room", SWIFT_HOUR_MS),
                                    swift_placing("key", "other", SWIFT_HOUR_MS) };
    (void)state;
    assert_int_equal(swift_try(q, 3), HF_PG_DONE);
    assert_int_equal(swift.run.status[1], HF_OK);
    assert_true(swift.run.replayed[1] && swift.run.items[1].raced && swift.run.items[1].waits);
    assert_int_equal(swift.run.status[2], HF_TOKEN_COLLISION);
    assert_int_equal(postgres_number(&swift.p, "SELECT count(*) FROM holdfast.hold"), 1);
    swift_audited();
}

/* Its window closes and its row leaves, while a batch that has taken it for free is under way: when
 * the call was decided, the key was bound. */
static void a_key_that_leaves_between_the_trips_was_bound(void **state)
{
    struct hf_request q = swift_placing("key", "room", SWIFT_HOUR_MS);
    uint64_t freed;
    (void)state;
    functions_run(swift.user, "UPDATE holdfast.store SET idempotency_window_ms = 400");
    functions_run(swift.user, "SELECT holdfast.set_resource('room', 9)");
    struct hf_pg_session sweeper;
    assert_true(hf_pg_session_init(&sweeper, &swift.shared));
    assert_int_equal(hf_pg_session_connect(&sweeper, NULL), HF_PG_FINE);
    assert_int_equal(swift_do(swift_placing("key", "room", SWIFT_HOUR_MS)), HF_OK);
    swift_between(&q, 1);
    server_pause_ms(450);
    assert_int_equal(hf_pg_look(&sweeper), HF_PG_DONE);
    assert_int_equal(hf_pg_free_expired(&sweeper, 10, &freed), HF_PG_DONE);
    hf_pg_session_free(&sweeper);
    functions_run(swift.user, "COMMIT");
    if (swift_join() != HF_PG_DONE)
        assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(
        postgres_number(
            &swift.p,
            "SELECT count(*) FROM holdfast.journal a, holdfast.journal b WHERE a.key = 'key' "
            "AND b.key = 'key' AND a.number < b.number AND b.at < a.at + interval '400 ms'"),
        0);
}

static void (*in_time)(void *arg, size_t index, const struct hf_plan *plan, hf_time now);

/* As if what it was decided over had been read half a minute ago. */
static void too_late(void *arg, size_t index, const struct hf_plan *plan, hf_time now)
{
    swift.session.read_at -= 31000;
    in_time(arg, index, plan, now);
}

/* Keys leave a minute after their window: a batch must be over by then, or it could have missed
 * one. */
static void what_was_read_long_ago_is_not_written(void **state)
{
    struct hf_request q = swift_placing("key", "room", SWIFT_HOUR_MS);
    (void)state;
    functions_run(swift.user, "SELECT holdfast.set_resource('room', 9)");
    swift_make(&q, 1);
    swift_calm();
    in_time = swift.run.batch.decided;
    swift.run.batch.decided = too_late;
    assert_int_equal(swift_now(), HF_PG_AGAIN);
    assert_string_equal(swift.session.conn.state, "40001");
    assert_int_equal(postgres_number(&swift.p, "SELECT count(*) FROM holdfast.hold"), 0);
    swift.run.batch.decided = in_time;
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_OK);
}

/* A call of long ago, and one that could not be decided: the second try has nothing to do with the
 * first of the two. */
static void a_retry_beside_a_conflict_is_no_race(void **state)
{
    const struct hf_request q[] = { swift_placing("old", "room", SWIFT_HOUR_MS),
                                    swift_placing("new", "room", SWIFT_HOUR_MS) };
    (void)state;
    functions_run(swift.user, "SELECT holdfast.set_resource('room', 9)");
    assert_int_equal(swift_do(q[0]), HF_OK);
    functions_run(swift.user, "BEGIN");
    functions_run(swift.user, "SELECT holdfast.place_hold('u', 'room', 'u', interval '1 h')");
    swift_make(q, 2);
    swift_calm();
    atomic_store(&swift.shared.looking, 1);
    swift_start();
    swift_await_blocked();
    functions_run(swift.user, "COMMIT");
    assert_int_equal(swift_join(), HF_PG_AGAIN);
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_true(swift.run.replayed[0]);
    assert_false(swift.run.items[0].raced);
}

/* ---- Rows of one trip that were read at different times ---- */

/* Resources are read before holds, and here a lease in between, which the user has locked
 * meanwhile. The resource counts nothing as confirmed then, and the hold is. The server stopped at
 * that, as if it were a fault of its own. */
static void a_hold_that_changed_behind_its_resource_is_read_again(void **state)
{
    (void)state;
    assert_int_equal(swift_do(swift_placing("first", "room", SWIFT_HOUR_MS)), HF_OK);
    memcpy(mine.hold, swift.run.hold[0], sizeof mine.hold);
    const struct hf_request q[] = { swift_ending(HF_REVERSE, "key", mine.hold),
                                    asking_for_a_lease() };
    functions_run(swift.user, "BEGIN");
    functions_run(swift.user, "LOCK TABLE holdfast.lease IN ACCESS EXCLUSIVE MODE");
    swift_begin(q, 2);
    swift_await_blocked();
    act("holdfast.confirm('u', %h)");
    functions_run(swift.user, "COMMIT");
    assert_int_equal(swift_join(), HF_PG_AGAIN);
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_OK);
    swift_audited();
}

/* The same where it counts nothing as held, and there is a hold. */
static void a_hold_that_came_behind_its_resource_is_read_again(void **state)
{
    (void)state;
    functions_run(swift.user, "SELECT holdfast.set_resource('room', 9)");
    /* Its id is known before it is there: that is how it is with a transaction that tells too
     * early. */
    functions_run(swift.user, "BEGIN");
    functions_run(swift.user, "LOCK TABLE holdfast.lease IN ACCESS EXCLUSIVE MODE");
    char *hold = COLUMN(swift.user, "id", "place_hold", "u", "room", "u", "1 h");
    const struct hf_request q[] = { swift_placing("key", "room", SWIFT_HOUR_MS),
                                    swift_ending(HF_CONFIRM, "confirm", hold),
                                    asking_for_a_lease() };
    struct hf_request others[3] = { q[1], q[2], q[0] };
    swift_begin(others, 3);
    swift_await_blocked();
    functions_run(swift.user, "COMMIT");
    assert_int_equal(swift_join(), HF_PG_AGAIN);
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_OK);
    assert_int_equal(swift.run.status[2], HF_OK);
    free(hold);
    swift_audited();
}

/* More overdue holds than the resource counted when it was read: that is no damage. */
static void overdue_holds_that_came_behind_their_resource_are_no_damage(void **state)
{
    const struct hf_request q[] = { swift_placing("key", "room", SWIFT_HOUR_MS),
                                    asking_for_a_lease() };
    (void)state;
    functions_run(swift.user, "SELECT holdfast.set_resource('room', 9)");
    assert_int_equal(swift_do(swift_placing("first", "room", 1)), HF_OK);
    functions_run(swift.user, "BEGIN");
    functions_run(swift.user, "LOCK TABLE holdfast.lease IN ACCESS EXCLUSIVE MODE");
    swift_make(q, 2);
    swift_calm();
    atomic_store(&swift.shared.looking, 1);
    atomic_store(&swift.shared.sweeping, 1);
    swift_start();
    swift_await_blocked();
    functions_run(swift.user, "SELECT holdfast.place_hold('u', 'room', 'u', interval '100 ms')");
    functions_run(swift.user, "SELECT holdfast.place_hold('v', 'room', 'u', interval '100 ms')");
    server_pause_ms(150);
    functions_run(swift.user, "COMMIT");
    assert_int_equal(swift_join(), HF_PG_AGAIN);
    assert_int_equal(swift_again(), HF_PG_DONE);
    assert_int_equal(swift.run.status[0], HF_OK);
    swift_audited();
}

/* Under the lock the same is damage: a fault for who asks, and the server goes on. */
static void a_resource_that_was_changed_by_hand_is_a_fault(void **state)
{
    (void)state;
    assert_int_equal(swift_do(swift_placing("first", "room", SWIFT_HOUR_MS)), HF_OK);
    memcpy(mine.hold, swift.run.hold[0], sizeof mine.hold);
    functions_run(swift.user, "UPDATE holdfast.resource SET held = 0");
    assert_int_equal(swift_do(swift_ending(HF_CONFIRM, "key", mine.hold)), HF_STORAGE_FAILURE);
}

/* Every server that swept stopped at that. */
static void a_sweep_passes_over_what_was_changed_by_hand(void **state)
{
    unsigned swept;
    (void)state;
    assert_int_equal(swift_do(swift_placing("first", "room", 1)), HF_OK);
    functions_run(swift.user, "UPDATE holdfast.resource SET held = 0");
    assert_int_equal(swift_do(swift_placing("second", "other", 1)), HF_OK);
    server_pause_ms(5);
    assert_int_equal(hf_pg_sweep(&swift.session, 10, &swept), HF_PG_DONE);
    assert_int_equal(swept, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, swift_set_up, swift_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(who_comes_second_decides_again),
        TEST(a_row_that_is_being_changed_is_waited_for),
        TEST(a_changed_row_in_the_same_place_is_another),
        TEST(another_row_in_the_same_place_is_not_taken_for_it),
        TEST(rules_that_changed_are_gone_by),
        TEST(a_clients_number_is_used_once),
        TEST(a_refusal_is_not_decided_without_a_lock),
        TEST(a_key_that_is_bound_has_no_second_effect),
        TEST(a_key_that_is_being_bound_is_waited_for),
        TEST(a_key_twice_in_a_batch_has_one_effect),
        TEST(a_key_that_leaves_between_the_trips_was_bound),
        TEST(what_was_read_long_ago_is_not_written),
        TEST(a_retry_beside_a_conflict_is_no_race),
        TEST(a_hold_that_changed_behind_its_resource_is_read_again),
        TEST(a_hold_that_came_behind_its_resource_is_read_again),
        TEST(overdue_holds_that_came_behind_their_resource_are_no_damage),
        TEST(a_resource_that_was_changed_by_hand_is_a_fault),
        TEST(a_sweep_passes_over_what_was_changed_by_hand),
    };
    return cmocka_run_group_tests(tests, swift_group_set_up, swift_group_tear_down);
}
