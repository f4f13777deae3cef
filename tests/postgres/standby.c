/* The kit itself: a primary and its standby, and what is lost when the primary dies. */
#include "engine/kit/engine.h"
#include "postgres/kit/functions.h"
#include "postgres/kit/postgres.h"
#include "postgres/kit/relay.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "base/bytes.h"

static struct postgres cluster_a, cluster_b;

static int set_up(void **state)
{
    (void)state;
    postgres_init(&cluster_a);
    postgres_init(&cluster_b);
    postgres_start(&cluster_a);
    postgres_run(&cluster_a, "CREATE TABLE t (n int PRIMARY KEY)");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    postgres_end(&cluster_b);
    postgres_end(&cluster_a);
    return 0;
}

static void insert(const struct postgres *p, int n)
{
    char text[64];
    snprintf(text, sizeof text, "INSERT INTO t VALUES (%d)", n);
    postgres_run(p, text);
}

static long long rows(const struct postgres *p)
{
    return postgres_number(p, "SELECT count(*) FROM t");
}

/* Does this session's INSERT wait for the standby? */
static bool waits(PGconn *c)
{
    postgres_await_waiting(&cluster_a);
    assert_int_equal(PQconsumeInput(c), 1);
    return PQisBusy(c) != 0;
}

static void test_synchronous(void **state)
{
    (void)state;
    postgres_follow(&cluster_b, &cluster_a, POSTGRES_SYNC, 0);
    insert(&cluster_a, 1);
    postgres_await_copied(&cluster_b, &cluster_a);
    assert_int_equal(rows(&cluster_b), 1);
    assert_false(postgres_try(&cluster_b, "INSERT INTO t VALUES (2)")); /* read-only */

    PGconn *c = postgres_connect(&cluster_a);
    postgres_pause(&cluster_b);
    assert_int_equal(PQsendQuery(c, "INSERT INTO t VALUES (2)"), 1);
    assert_true(waits(c));
    postgres_resume(&cluster_b);
    PGresult *result = PQgetResult(c);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(c);
}

/* The primary is killed, the standby takes over, and the old one comes back as it was: both take
 * writes. */
static void test_failover_and_stale_primary(void **state)
{
    (void)state;
    char both[POSTGRES_CONNINFO_MAX];
    postgres_conninfo_pair(both, &cluster_a, &cluster_b);
    PGconn *first = PQconnectdb(both);
    assert_int_equal(atoi(PQport(first)), cluster_a.port);
    PQfinish(first);
    postgres_stop(&cluster_a, POSTGRES_KILL);
    postgres_promote(&cluster_b);
    assert_int_equal(rows(&cluster_b), 2); /* all that was acknowledged */
    insert(&cluster_b, 3);
    PGconn *second = PQconnectdb(both);
    assert_int_equal(atoi(PQport(second)), cluster_b.port);
    PQfinish(second);

    postgres_set(&cluster_a, "synchronous_standby_names", "");
    postgres_start(&cluster_a);
    assert_int_equal(rows(&cluster_a), 2);
    insert(&cluster_a, 4);
    assert_int_equal(postgres_number(&cluster_a, "SELECT max(n) FROM t"), 4);
    assert_int_equal(postgres_number(&cluster_b, "SELECT max(n) FROM t"), 3);
    assert_int_equal(postgres_number(&cluster_a, "SELECT timeline_id FROM pg_control_checkpoint()"),
                     1);
}

/* The old primary is taken in again as the standby of the new one, and back again. */
static void test_cycles(void **state)
{
    (void)state;
    struct postgres *primary = &cluster_b, *standby = &cluster_a;
    postgres_stop(&cluster_a, POSTGRES_KILL);
    for (int i = 5; i < 7; i++) {
        postgres_follow(standby, primary, POSTGRES_SYNC, 0);
        insert(primary, i);
        postgres_stop(primary, POSTGRES_KILL);
        postgres_promote(standby);
        assert_int_equal(postgres_number(standby, "SELECT max(n) FROM t"), i);
        struct postgres *old = primary;
        primary = standby;
        standby = old;
    }
    postgres_run(primary, "DELETE FROM t");
    postgres_follow(standby, primary, POSTGRES_ASYNC, 0);
    postgres_stop(standby, POSTGRES_IMMEDIATE);
    insert(primary, 1); /* does not wait */
    postgres_start(standby);
    postgres_await_number(standby, "SELECT count(*) FROM t", 1);
}

/* What a primary takes with it when it dies: nothing that was acknowledged, if commits wait for the
 * standby; and if they do not, the test must see the loss, or it is blind. */

static struct relay between;

static int set_up_loss(void **state)
{
    (void)state;
    postgres_init(&cluster_a);
    postgres_init(&cluster_b);
    postgres_start(&cluster_a);
    postgres_run(&cluster_a, "CREATE TABLE t (n int PRIMARY KEY)");
    relay_start(&between, cluster_a.port);
    return 0;
}

static int tear_down_loss(void **state)
{
    (void)state;
    relay_end(&between);
    postgres_end(&cluster_b);
    postgres_end(&cluster_a);
    return 0;
}

/* The network between the two is gone, an INSERT is sent, and then the primary dies. */
static void lose(enum postgres_copy how)
{
    postgres_follow(&cluster_b, &cluster_a, how, between.port);
    postgres_run(&cluster_a, "INSERT INTO t VALUES (1)");
    postgres_await_copied(&cluster_b, &cluster_a);
    relay_black_hole(&between, true);
    PGconn *c = postgres_connect(&cluster_a);
    assert_int_equal(PQsendQuery(c, "INSERT INTO t VALUES (2)"), 1);
    if (how == POSTGRES_ASYNC) {
        PGresult *result = PQgetResult(c);
        assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
        PQclear(result);
    } else {
        postgres_await_waiting(&cluster_a);
        assert_int_equal(PQconsumeInput(c), 1);
        assert_int_equal(PQisBusy(c), 1);
    }
    postgres_stop(&cluster_a, POSTGRES_KILL);
    PQfinish(c);
    postgres_promote(&cluster_b);
    assert_int_equal(postgres_number(&cluster_b, "SELECT count(*) FROM t WHERE n = 1"), 1);
    assert_int_equal(postgres_number(&cluster_b, "SELECT count(*) FROM t WHERE n = 2"), 0);
}

static void test_asynchronous_loses(void **state)
{
    (void)state;
    lose(POSTGRES_ASYNC);
}

static void test_synchronous_does_not_acknowledge(void **state)
{
    (void)state;
    lose(POSTGRES_SYNC);
}

/* What a retry is told: the row of its key and the request itself are enough for a place_hold, the
 * journal's entry for the rest. */

static struct postgres p;
static struct hf_db *db;

static int begin(void **state)
{
    struct hf_options options = { .no_background = true };
    struct hf_error why;
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    options.postgres = postgres_conninfo(&p);
    return hf_open(NULL, &options, &db, &why) == HF_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    hf_close(db);
    postgres_end(&p);
    return 0;
}

static struct hf_request placing(const char *key, const char *requester)
{
    return (struct hf_request){ .action = HF_PLACE_HOLD,
                                .key = hf_str(key),
                                .place_hold = { .resource = hf_str("hall"),
                                                .requester = hf_str(requester),
                                                .duration_ms = 3600000 } };
}

static struct hf_request releasing(const char *key, const char *id)
{
    return (struct hf_request){ .action = HF_RELEASE,
                                .key = hf_str(key),
                                .hold = { .id = hf_str(id) } };
}

static void same_hold(const struct hf_hold *a, const struct hf_hold *b)
{
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->reverses, b->reverses);
    assert_true(a->ordinal == b->ordinal && a->previous == b->previous && a->state == b->state);
    assert_true(a->placed_at == b->placed_at && a->expires_at == b->expires_at &&
                a->ended_at == b->ended_at);
    assert_true(hf_bytes_equal(a->tenant, b->tenant) && hf_bytes_equal(a->resource, b->resource) &&
                hf_bytes_equal(a->requester, b->requester));
}

/* Replayed, and the same to the last field. */
static void again(const struct hf_request *request, const struct hf_result *first)
{
    struct hf_result got = HF_RESULT_INIT;
    assert_int_equal(hf_do(db, request, &got), HF_OK);
    assert_true(got.replayed);
    same_hold(&got.answer.hold, &first->answer.hold);
    assert_int_equal(got.token.recorded_at, first->token.recorded_at);
    assert_int_equal(got.token.expires_at, first->token.expires_at);
    hf_result_clear(&got);
}

/* Two holds on one resource, so that the second has one before it; both are over by the time that
 * they are asked for again. */
static void place_two(const char *one, const char *two, struct hf_result first[2])
{
    struct hf_request requests[] = { placing(one, "ann"), placing(two, "bob") };
    struct hf_result got = HF_RESULT_INIT;
    postgres_run(&p, "SELECT holdfast.set_resource('hall', 100)");
    for (int i = 0; i < 2; i++) {
        char key[64];
        assert_int_equal(hf_do(db, &requests[i], &first[i]), HF_OK);
        assert_false(first[i].replayed);
        snprintf(key, sizeof key, "%.40s-over", i ? two : one);
        struct hf_request over = releasing(key, first[i].answer.hold.id);
        assert_int_equal(hf_do(db, &over, &got), HF_OK);
    }
    assert_int_equal(first[1].answer.hold.previous, first[0].answer.hold.ordinal);
    hf_result_clear(&got);
}

static void clear(struct hf_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hf_result_clear(&results[i]);
}

static void a_retry_is_told_what_was_told_first(void **state)
{
    struct hf_result first[2] = { HF_RESULT_INIT, HF_RESULT_INIT };
    struct hf_request one = placing("a1", "ann"), two = placing("a2", "bob");
    (void)state;
    place_two("a1", "a2", first);
    again(&one, &first[0]);
    again(&two, &first[1]);
    clear(first, 2);
}

/* Others ask about the same key in the same batch: with other parameters, with another action, as a
 * claim, and what became of it. */
static void everybody_in_a_batch_is_told_the_truth(void **state)
{
    enum { RETRY, OTHER, RELEASE, BEGIN, WHAT, AGAIN, COUNT };
    struct hf_result first[2] = { HF_RESULT_INIT, HF_RESULT_INIT }, got[COUNT];
    (void)state;
    place_two("b1", "b2", first);
    struct hf_request requests[COUNT] = {
        [RETRY] = placing("b2", "bob"),
        [OTHER] = placing("b2", "eve"),
        [RELEASE] = releasing("b2", first[1].answer.hold.id),
        [BEGIN] = { .action = HF_BEGIN, .key = hf_str("b2"), .begin = { .lease_ms = 1000 } },
        [WHAT] = { .action = HF_GET_TOKEN, .key = hf_str("b2") },
        [AGAIN] = placing("b2", "bob"),
    };
    /* With the question and without it: then the entry is not read. */
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++)
            got[i] = (struct hf_result)HF_RESULT_INIT;
        if (round == 1)
            requests[WHAT] = requests[OTHER];
        assert_int_equal(hf_do_many(db, requests, got, COUNT), HF_OK);
        for (int i = 0; i < COUNT; i++) {
            bool same = i == RETRY || i == AGAIN || (i == WHAT && round == 0);
            assert_int_equal(got[i].answer.status, same ? HF_OK : HF_TOKEN_COLLISION);
            assert_int_equal(got[i].replayed, i == RETRY || i == AGAIN);
            assert_int_equal(got[i].token.action, HF_PLACE_HOLD);
            assert_int_equal(got[i].token.status, HF_OK);
            if (same)
                same_hold(&got[i].answer.hold, &first[1].answer.hold);
        }
        clear(got, COUNT);
    }
    clear(first, 2);
}

/* Without its entry only what needs the entry cannot be answered; that shows that the others do
 * without. */
static void the_journal_is_read_only_where_it_must_be(void **state)
{
    struct hf_result first[2] = { HF_RESULT_INIT, HF_RESULT_INIT }, got = HF_RESULT_INIT;
    struct hf_request two = placing("c2", "bob"),
                      what = { .action = HF_GET_TOKEN, .key = hf_str("c2") };
    (void)state;
    place_two("c1", "c2", first);
    struct hf_request over = releasing("c2-over", first[1].answer.hold.id);
    postgres_run(
        &p,
        "CREATE TABLE public.kept AS SELECT * FROM holdfast.journal WHERE key IN ('c2', 'c2-over');"
        "DELETE FROM holdfast.journal WHERE key IN ('c2', 'c2-over')");
    again(&two, &first[1]);
    assert_int_equal(hf_do(db, &what, &got), HF_STORAGE_FAILURE);
    assert_int_equal(hf_do(db, &over, &got), HF_STORAGE_FAILURE);
    postgres_run(&p, "INSERT INTO holdfast.journal SELECT * FROM public.kept");
    again(&two, &first[1]);
    assert_int_equal(hf_do(db, &over, &got), HF_OK);
    assert_true(got.replayed);
    hf_result_clear(&got);
    clear(first, 2);
}

/* Placed in somebody's own transaction, and asked for again through the library. */
static void what_a_function_placed_is_told_the_same(void **state)
{
    struct hf_result got = HF_RESULT_INIT;
    struct hf_request request = placing("d2", "bob");
    (void)state;
    postgres_run(&p, "SELECT holdfast.set_resource('hall', 100);"
                     "SELECT holdfast.place_hold('d1', 'hall', 'ann', '1 hour');"
                     "SELECT holdfast.place_hold('d2', 'hall', 'bob', '1 hour')");
    assert_int_equal(hf_do(db, &request, &got), HF_OK);
    assert_true(got.replayed);
    assert_int_equal(got.answer.hold.ordinal,
                     postgres_number(&p, "SELECT hold FROM holdfast.token WHERE key = 'd2'"));
    assert_int_equal(got.answer.hold.previous,
                     postgres_number(&p, "SELECT hold FROM holdfast.token WHERE key = 'd1'"));
    struct hf_result stored = HF_RESULT_INIT;
    struct hf_request get = { .action = HF_GET_HOLD, .hold = { .id = hf_str(got.answer.hold.id) } };
    assert_int_equal(hf_do(db, &get, &stored), HF_OK);
    same_hold(&got.answer.hold, &stored.answer.hold);
    hf_result_clear(&stored);
    hf_result_clear(&got);
}

/* A key that is free again is bound to something that has no hold: nothing of the first is left in
 * its row. */
static void a_key_that_is_bound_anew_keeps_nothing(void **state)
{
    struct hf_result first[2] = { HF_RESULT_INIT, HF_RESULT_INIT }, got = HF_RESULT_INIT;
    (void)state;
    static const char over[] =
        "UPDATE holdfast.token SET expires_at = recorded_at + interval '1 ms' WHERE key = 'e2'";
    static const char *const left =
        "SELECT count(*) FROM holdfast.token WHERE key = 'e2' AND (hold IS NOT NULL OR "
        "previous IS NOT NULL)";
    place_two("e1", "e2", first);
    assert_int_equal(postgres_number(&p, left), 1);
    struct hf_request write = { .action = HF_WRITE,
                                .key = hf_str("e2"),
                                .write = { .name = hf_str("sign"), .value = hf_str("on") } };
    postgres_run(&p, over);
    assert_int_equal(hf_do(db, &write, &got), HF_OK);
    assert_false(got.replayed);
    assert_int_equal(postgres_number(&p, left), 0);
    postgres_run(&p, over);
    postgres_run(&p, "SELECT holdfast.place_hold('e2', 'hall', 'bob', '1 hour')");
    assert_int_equal(postgres_number(&p, left), 1);
    postgres_run(&p, over);
    postgres_run(&p, "SELECT holdfast.begin('e2', sha256('x'), '1 minute')");
    assert_int_equal(postgres_number(&p, left), 0);
    hf_result_clear(&got);
    clear(first, 2);
}

/* Somebody asks for what looking is not enough for, so that all of them are looked at first. */
static struct hf_request looking(void)
{
    return (struct hf_request){
        .action = HF_CHECK, .identity = { .guard = hf_str("nobody's"), .identity = hf_str("x") }
    };
}

static struct hf_request settling(enum hf_action action, const char *key, uint64_t fence)
{
    return (struct hf_request){
        .action = action,
        .key = hf_str(key),
        .settle = { .fence = fence, .response = hf_str("no"), .retryable = action == HF_FAIL }
    };
}

static uint64_t begun(const struct hf_request *begin)
{
    struct hf_result got = HF_RESULT_INIT;
    assert_int_equal(hf_do(db, begin, &got), HF_OK);
    uint64_t fence = got.answer.claim.fence;
    hf_result_clear(&got);
    return fence;
}

/* A group is decided in order, also where the last of it could be answered from what was there
 * before it. */
static void who_stands_behind_a_change_of_its_key_sees_it(void **state)
{
    enum { LOOK, FIRST, CHANGE, BEHIND, COUNT };
    struct hf_request start = { .action = HF_BEGIN,
                                .key = hf_str("f1"),
                                .begin = { .lease_ms = 60000 } };
    struct hf_result got[COUNT] = { HF_RESULT_INIT, HF_RESULT_INIT, HF_RESULT_INIT,
                                    HF_RESULT_INIT };
    (void)state;
    uint64_t fence = begun(&start);
    struct hf_request settled[COUNT] = { looking(), placing("f1", "ann"),
                                         settling(HF_COMPLETE, "f1", fence), placing("f1", "ann") };
    assert_int_equal(hf_do_many(db, settled, got, COUNT), HF_OK);
    assert_int_equal(got[FIRST].token.expires_at, INT64_MAX);
    assert_int_equal(got[CHANGE].answer.status, HF_OK);
    assert_int_equal(got[BEHIND].answer.status, HF_TOKEN_COLLISION);
    assert_int_equal(got[BEHIND].token.expires_at, got[CHANGE].answer.claim.expires_at);

    start.key = hf_str("f2");
    fence = begun(&start);
    struct hf_request failing = settling(HF_FAIL, "f2", fence);
    assert_int_equal(hf_do(db, &failing, &got[0]), HF_OK);
    struct hf_request begun_again[COUNT] = { looking(), placing("f2", "ann"), start, failing };
    assert_int_equal(hf_do_many(db, begun_again, got, COUNT), HF_OK);
    assert_int_equal(got[FIRST].answer.status, HF_TOKEN_COLLISION);
    assert_int_equal(got[CHANGE].answer.status, HF_OK);
    assert_int_equal(got[BEHIND].answer.status, HF_STALE_FENCE);
    clear(got, COUNT);
}

/* That a replay waited for another of its group makes it no race: its first call was over long
 * before. */
static void a_replay_that_waits_for_its_group_is_no_race(void **state)
{
    enum { FIRST = 3, COUNT };
    struct hf_result got[COUNT] = { HF_RESULT_INIT, HF_RESULT_INIT, HF_RESULT_INIT,
                                    HF_RESULT_INIT };
    struct hf_stats before, after;
    (void)state;
    postgres_run(&p, "SELECT holdfast.set_resource('hall', 100)");
    struct hf_request first = placing("race-1", "ann");
    assert_int_equal(hf_do(db, &first, &got[0]), HF_OK);
    hf_stats(db, &before);
    struct hf_request group[COUNT] = { looking(), placing("race-2", "ann"),
                                       settling(HF_COMPLETE, "race-1", 9), first };
    assert_int_equal(hf_do_many(db, group, got, COUNT), HF_OK);
    hf_stats(db, &after);
    assert_true(got[FIRST].replayed);
    assert_int_equal(after.races, before.races);
    clear(got, COUNT);
}

int main(void)
{
    const struct CMUnitTest standby_tests[] = {
        cmocka_unit_test(test_synchronous),
        cmocka_unit_test(test_failover_and_stale_primary),
        cmocka_unit_test(test_cycles),
    };
    const struct CMUnitTest loss_tests[] = {
        cmocka_unit_test_setup_teardown(test_asynchronous_loses, set_up_loss, tear_down_loss),
        cmocka_unit_test_setup_teardown(test_synchronous_does_not_acknowledge, set_up_loss,
                                        tear_down_loss),
    };
    const struct CMUnitTest again_tests[] = {
        cmocka_unit_test(a_retry_is_told_what_was_told_first),
        cmocka_unit_test(everybody_in_a_batch_is_told_the_truth),
        cmocka_unit_test(the_journal_is_read_only_where_it_must_be),
        cmocka_unit_test(what_a_function_placed_is_told_the_same),
        cmocka_unit_test(a_key_that_is_bound_anew_keeps_nothing),
        cmocka_unit_test(who_stands_behind_a_change_of_its_key_sees_it),
        cmocka_unit_test(a_replay_that_waits_for_its_group_is_no_race),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(standby_tests, set_up, tear_down);
    failed += cmocka_run_group_tests(loss_tests, NULL, NULL);
    failed += cmocka_run_group_tests(again_tests, begin, end);
    return failed;
}
