/* Batches without locks look for overdue holds only where the resource says that there may be some:
 * it must never say so too late. And everybody at once: servers, functions and sweepers at the same
 * few rows. */
#include "postgres/kit/functions.h"
#include "postgres/kit/swift.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <stdatomic.h>

/* ---- When the first hold of a resource may be overdue ---- */

static const char too_late[] = "SELECT count(*) FROM holdfast.hold h JOIN holdfast.resource r ON "
                               "(r.tenant, r.name) = (h.tenant, "
                               "h.resource) WHERE h.state = 'held' AND h.expires_at < r.due_at";

/* Whoever placed it, and whoever comes, and be there a unit left or not: nobody waits for a
 * sweeper. */
static void who_places_expires_what_is_overdue(void **state)
{
    struct hf_request q;
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool placed_here = i % 2 == 0, came_here = i < 2;
        char first[16], second[16], room[16];
        snprintf(first, sizeof first, "first-%d", i);
        snprintf(second, sizeof second, "second-%d", i);
        snprintf(room, sizeof room, "room-%d", i);
        EXPECT(swift.user, "ok", false, "set_resource", room, i % 3 == 0 ? "1" : "2");
        if (placed_here)
            assert_int_equal(swift_do(swift_placing(first, room, 20)), HF_OK);
        else
            EXPECT(swift.user, "ok", false, "place_hold", first, room, "guest", "20 ms");
        q = swift_placing(second, room, SWIFT_HOUR_MS);
        server_pause_ms(30);
        if (came_here)
            assert_int_equal(swift_do(q), HF_OK);
        else
            EXPECT(swift.user, "ok", false, "place_hold", second, room, "guest", "1 h");
    }
    assert_int_equal(
        postgres_number(&swift.p, "SELECT count(*) FROM holdfast.hold WHERE state = 'expired'"), 4);
    assert_int_equal(postgres_number(&swift.p, too_late), 0);
    swift_audited();
}

/* The one hold that was known to come next ends in the same batch, and there is another behind
 * it. */
static void behind_a_hold_that_ends_there_may_be_others(void **state)
{
    char next[HF_ID_SIZE];
    (void)state;
    functions_run(swift.user, "SELECT holdfast.set_resource('room', 9)");
    assert_int_equal(swift_do(swift_placing("next", "room", SWIFT_HOUR_MS)), HF_OK);
    memcpy(next, swift.run.hold[0], sizeof next);
    assert_int_equal(swift_do(swift_placing("behind", "room", 2 * SWIFT_HOUR_MS)), HF_OK);
    const struct hf_request q[] = { swift_ending(HF_RELEASE, "release", next),
                                    swift_placing("last", "room", 3 * SWIFT_HOUR_MS) };
    swift_make(q, 2);
    assert_int_equal(swift_again(), HF_PG_DONE); /* and so it looks for overdue ones */
    assert_int_equal(postgres_number(&swift.p, too_late), 0);
    assert_int_equal(
        postgres_number(
            &swift.p,
            "SELECT round(extract(epoch FROM due_at - now()) / 3600) FROM holdfast.resource"),
        1);
}

/* Nothing is left of what was looked at, and so it is known again: nobody looks in vain for
 * ever. */
static void what_was_overdue_is_forgotten(void **state)
{
    (void)state;
    assert_int_equal(swift_do(swift_placing("first", "room", 1)), HF_OK);
    server_pause_ms(5);
    assert_int_equal(swift_do(swift_placing("second", "room", SWIFT_HOUR_MS)), HF_OK);
    assert_int_equal(
        postgres_number(
            &swift.p,
            "SELECT count(*) FROM holdfast.resource r JOIN holdfast.hold h ON h.expires_at = "
            "r.due_at AND h.state = 'held'"),
        1);
}

/* Any mixture: holds of all lengths, more overdue ones than a call expires, ends of all sorts, by
 * batches with locks and without, by functions and by the sweeper. */
static void no_hold_ends_before_its_resource_is_due(void **state)
{
    enum { HOLDS = 400 };
    static char ids[HOLDS][HF_ID_SIZE], keys[HOLDS * 4][24];
    bool full = getenv("HF_SCALE") && strcmp(getenv("HF_SCALE"), "full") == 0;
    uint64_t seed = test_seed("no_hold_ends_before_its_resource_is_due", 5);
    size_t holds = 0, n = 0, steps = full ? 250 : 60;
    struct hf_request q[SWIFT_MANY];
    (void)state;
    functions_run(swift.user,
                  "SELECT holdfast.set_resource('a', 40), holdfast.set_resource('b', 3)");
    for (size_t step = 0; step < steps && holds + SWIFT_MANY < HOLDS; step++) {
        size_t count = 1 + test_below(&seed, SWIFT_MANY - 1);
        for (size_t i = 0; i < count; i++, n++) {
            static const int64_t lengths[] = {
                1, 1, 5, 50, 1000, SWIFT_HOUR_MS, 2 * SWIFT_HOUR_MS
            };
            static const enum hf_action ends[] = { HF_CONFIRM, HF_RELEASE, HF_EXPIRE, HF_REVERSE };
            snprintf(keys[n], sizeof keys[n], "key-%zu", n);
            if (holds == 0 || test_below(&seed, 3) > 0)
                q[i] = swift_placing(keys[n], test_below(&seed, 2) ? "a" : "b",
                                     lengths[test_below(&seed, 7)]);
            else /* one of the latest, as it is with callers */
                q[i] = swift_ending(ends[test_below(&seed, 4)], keys[n],
                                    ids[holds - 1 - test_below(&seed, holds < 12 ? holds : 12)]);
        }
        swift_make(q, count);
        swift.session.expects_new = true;
        if (test_below(&seed, 2))
            swift.run.batch.careful = true;
        (void)swift_now();
        if (swift.run.end != HF_PG_DONE)
            assert_int_equal(swift_again(), HF_PG_DONE);
        for (size_t i = 0; i < count; i++)
            if (q[i].action == HF_PLACE_HOLD && swift.run.status[i] == HF_OK)
                memcpy(ids[holds++], swift.run.hold[i], HF_ID_SIZE);
        char sql[200];
        unsigned swept;
        snprintf(sql, sizeof sql,
                 "SELECT holdfast.place_hold('u-%zu', '%s', 'u', interval '%d ms')", step,
                 test_below(&seed, 2) ? "a" : "b", 1 + (int)test_below(&seed, 20));
        functions_run(swift.user, sql);
        if (test_below(&seed, 8) == 0)
            assert_int_equal(
                hf_pg_sweep(&swift.session, 1 + (unsigned)test_below(&seed, 9), &swept),
                HF_PG_DONE);
        assert_int_equal(postgres_number(&swift.p, too_late), 0);
    }
    swift_audited();
}

/* ---- Everybody at the same few rows ---- */

enum { SERVERS = 2, CALLERS = 3 };
static struct hf_db *servers[SERVERS];
static atomic_bool stop;
static atomic_int faults, effects;

static void caller_answered(enum hf_status st)
{
    if (st == HF_OK)
        atomic_fetch_add(&effects, 1);
    else if (st >= HF_STORAGE_FAILURE)
        atomic_fetch_add(&faults, 1);
}

/* Through a server: places and ends holds, takes and gives back leases, writes; each twice now and
 * then, as retries are. */
static void *call_a_server(void *arg)
{
    const int me = *(const int *)arg;
    struct hf_db *db = servers[me % SERVERS];
    struct hf_result got = HF_RESULT_INIT;
    uint64_t seed = (uint64_t)me + 1;
    char key[32], end_key[40], hold[HF_ID_SIZE];
    for (int n = 0; !atomic_load(&stop); n++) {
        snprintf(key, sizeof key, "key-%d-%d", me, n);
        snprintf(end_key, sizeof end_key, "end-%d-%d", me, n);
        struct hf_request q = swift_placing(key, test_below(&seed, 2) ? "a" : "b",
                                            1 + (int64_t)test_below(&seed, 30));
        if (n % 4 == 3)
            q = (struct hf_request){
                .action = HF_GRANT,
                .key = hf_str(key),
                .lease = { .name = hf_str("name"), .holder = hf_str("me"), .ttl_ms = 5 }
            };
        enum hf_status st = hf_do(db, &q, &got);
        caller_answered(st);
        if (st == HF_OK && q.action == HF_GRANT) {
            q = (struct hf_request){ .action = HF_RETURN,
                                     .lease = { .name = hf_str("name"),
                                                .fence = got.answer.lease.fence } };
            caller_answered(hf_do(db, &q, &got));
        } else if (st == HF_OK) {
            memcpy(hold, got.answer.hold.id, sizeof hold);
            q = swift_ending(test_below(&seed, 2) ? HF_CONFIRM : HF_RELEASE, end_key, hold);
            st = hf_do(db, &q, &got);
            caller_answered(st);
            snprintf(key, sizeof key, "back-%d-%d", me, n);
            if (st == HF_OK && q.action == HF_CONFIRM) {
                q = swift_ending(HF_REVERSE, key, hold);
                caller_answered(hf_do(db, &q, &got));
            }
        }
    }
    hf_result_clear(&got);
    return NULL;
}

static void *call_functions(void *arg)
{
    PGconn *c = postgres_connect(&swift.p);
    (void)arg;
    for (int n = 0; !atomic_load(&stop); n++) {
        char sql[200];
        snprintf(sql, sizeof sql, "SELECT holdfast.place_hold('f-%d', '%s', 'f', interval '3 ms')",
                 n, n % 2 ? "a" : "b");
        PQclear(PQexec(c, sql));
        server_pause_ms(2);
    }
    PQfinish(c);
    return NULL;
}

static void *sweep(void *arg)
{
    (void)arg;
    for (int n = 0; !atomic_load(&stop); n++) {
        (void)hf_maintain(servers[n % SERVERS]);
        server_pause_ms(10);
    }
    return NULL;
}

static void everybody_at_the_same_rows_comes_to_what_the_audit_expects(void **state)
{
    pthread_t threads[CALLERS * SERVERS + 2];
    int names[CALLERS * SERVERS];
    bool full = getenv("HF_SCALE") && strcmp(getenv("HF_SCALE"), "full") == 0;
    (void)state;
    functions_run(swift.user,
                  "SELECT holdfast.set_resource('a', 3), holdfast.set_resource('b', 1)");
    for (int i = 0; i < SERVERS; i++)
        servers[i] = swift_open();
    atomic_store(&stop, false);
    atomic_store(&faults, 0);
    atomic_store(&effects, 0);
    for (int i = 0; i < CALLERS * SERVERS; i++) {
        names[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, call_a_server, &names[i]), 0);
    }
    assert_int_equal(pthread_create(&threads[CALLERS * SERVERS], NULL, call_functions, NULL), 0);
    assert_int_equal(pthread_create(&threads[CALLERS * SERVERS + 1], NULL, sweep, NULL), 0);
    server_pause_ms(full ? 6000 : 1500);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         atomic_load(&effects) <= 20 && server_clock_ms() < until;)
        server_pause_ms(20);
    atomic_store(&stop, true);
    for (int i = 0; i < CALLERS * SERVERS + 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SERVERS; i++)
        hf_close(servers[i]);
    assert_int_equal(atomic_load(&faults), 0);
    assert_true(atomic_load(&effects) > 20);
    assert_int_equal(postgres_number(&swift.p, too_late), 0);
    assert_int_equal(
        postgres_number(&swift.p,
                        "SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"),
        0);
    swift_audited();
}

/* A session's row in holdfast.writer went with a primary whose standby did not have it yet, and the
 * new primary gave the same number to another session. The first one took that session's row for
 * its own: it answered that its batch in doubt had happened, or refused the database for ever. */

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, swift_set_up, swift_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_places_expires_what_is_overdue),
        TEST(behind_a_hold_that_ends_there_may_be_others),
        TEST(what_was_overdue_is_forgotten),
        TEST(no_hold_ends_before_its_resource_is_due),
        TEST(everybody_at_the_same_rows_comes_to_what_the_audit_expects),
        TEST(a_batch_of_another_is_not_taken_for_ours),
        TEST(a_row_of_another_is_left_alone),
        TEST(the_number_of_another_does_not_lock_us_out),
        TEST(a_row_that_ran_back_is_refused),
        TEST(our_row_is_taken_up_again),
    };
    return cmocka_run_group_tests(tests, swift_group_set_up, swift_group_tear_down);
}
