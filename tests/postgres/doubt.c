/* Connections that break at COMMIT, databases that go away and come back: what the library answers
 * is always true. */
#include "postgres/kit/postgres.h"
#include "postgres/kit/relay.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "holdfast.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct postgres p;
static struct relay relay;
static struct hf_db *db;
static char conninfo[POSTGRES_CONNINFO_MAX];
static struct hf_result got = HF_RESULT_INIT;
static int keys;

static int setup(void **state)
{
    struct hf_options options = { .no_background = true, .postgres = conninfo };
    struct hf_error why;
    (void)state;
    postgres_run(&p, "DROP SCHEMA IF EXISTS holdfast CASCADE");
    relay_pass(&relay);
    if (hf_open(NULL, &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    relay_pass(&relay);
    hf_close(db);
    hf_result_clear(&got);
    return 0;
}

/* For a server, which must not be forked off a process with threads: no store is open here. */
static int setup_without_store(void **state)
{
    (void)state;
    postgres_run(&p, "DROP SCHEMA IF EXISTS holdfast CASCADE");
    relay_pass(&relay);
    return 0;
}

static int teardown_without_store(void **state)
{
    (void)state;
    relay_pass(&relay);
    return 0;
}

static enum hf_status place(const char *key, const char *resource)
{
    return hf_do(db,
                 &(struct hf_request){ .action = HF_PLACE_HOLD,
                                       .key = hf_str(key),
                                       .place_hold = { .resource = hf_str(resource),
                                                       .requester = hf_str("guest"),
                                                       .duration_ms = 3600000 } },
                 &got);
}

/* A counter that every merge raises would show a merge that was done twice or not at all: (node,
 * up) is set by who knows. */
static enum hf_status raise_to(uint64_t up)
{
    struct hf_item item = { .name = hf_str("node"), .up = up };
    struct hf_value value = { .type = HF_TYPE_COUNTER, .items = &item, .item_count = 1 };
    return hf_do(db,
                 &(struct hf_request){ .action = HF_MERGE,
                                       .merge = { .name = hf_str("count"), .value = &value } },
                 &got);
}

static long long holds(void)
{
    return postgres_number(&p, "SELECT count(*) FROM holdfast.hold");
}

/* One call with the fault, and what must be true of it then. */
static void once(enum relay_fault fault)
{
    char key[24], resource[24], id[HF_ID_SIZE];
    long long before = holds();
    uint64_t seen = relay_count(&relay, fault);
    snprintf(key, sizeof key, "key-%d", ++keys);
    snprintf(resource, sizeof resource, "room-%d", keys);
    relay_at_commit(&relay, fault, 1);
    assert_int_equal(place(key, resource), HF_OK);
    assert_int_equal(relay_count(&relay, fault), seen + 1);
    memcpy(id, got.answer.hold.id, sizeof id);
    assert_int_equal(holds(), before + 1);
    assert_int_equal(place(key, resource), HF_OK);
    assert_true(got.replayed);
    assert_string_equal(got.answer.hold.id, id);
    /* What has no key is found out all the same, by the batch that it was in. */
    relay_at_commit(&relay, fault, 1);
    assert_int_equal(raise_to((uint64_t)keys), HF_OK);
    assert_int_equal(got.answer.reg.version, keys);
    assert_int_equal(relay_count(&relay, fault), seen + 2);
}

static void a_commit_that_was_cut_is_found_out_and_answered_truly(void **state)
{
    static const enum relay_fault faults[] = { RELAY_CUT_BEFORE, RELAY_CUT_AFTER, RELAY_CUT_DURING,
                                               RELAY_CUT_LATE, RELAY_CUT_IN_ANSWER };
    (void)state;
    keys = 0;
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            once(faults[i]);
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.token"), keys);
}

/* A COMMIT that reaches the server only after the client has asked what became of it must not
 * happen any more. */
static void a_commit_that_comes_late_is_shut_out_or_waited_for(void **state)
{
    (void)state;
    keys = 0;
    relay_late_ms(&relay, 700);
    for (int i = 0; i < 3; i++)
        once(RELAY_CUT_LATE);
    relay_pass(&relay); /* what is late goes now */
    server_pause_ms(
        1000); /* for one to happen after all; if it takes longer, this test misses it */
    assert_int_equal(holds(), keys);
    relay_late_ms(&relay, 200);
}

static void connections_that_are_cut_between_batches_are_made_again(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        char key[24];
        snprintf(key, sizeof key, "again-%d", i);
        relay_cut_all(&relay);
        assert_int_equal(place(key, key), HF_OK);
        assert_false(got.replayed);
    }
    assert_int_equal(holds(), 20);
}

/* A proxy whose database is down takes a connection and ends it; libpq asks no other host then. */
static void a_host_that_ends_connections_is_passed_over(void **state)
{
    char both[POSTGRES_CONNINFO_MAX];
    struct relay proxy;
    struct hf_db *other;
    struct hf_error why;
    int nobody, reserved = postgres_reserve_port(&nobody);
    (void)state;
    relay_start(&proxy, nobody);
    postgres_conninfo_pair(both, &(struct postgres){ .port = proxy.port },
                           &(struct postgres){ .port = relay.port });
    if (hf_open(NULL, &(struct hf_options){ .postgres = both }, &other, &why) != HF_OK)
        fail_msg("%s", why.text);
    struct hf_page page = { 0 };
    for (int i = 0; i < 5; i++) {
        char key[24];
        snprintf(key, sizeof key, "proxy-%d", i);
        assert_int_equal(hf_do(other,
                               &(struct hf_request){ .action = HF_PLACE_HOLD,
                                                     .key = hf_str(key),
                                                     .place_hold = { .resource = hf_str(key),
                                                                     .requester = hf_str("guest"),
                                                                     .duration_ms = 3600000 } },
                               &got),
                         HF_OK);
        assert_int_equal(hf_list(other, &(struct hf_query){ .kind = HF_LIST_HOLDS }, &page), HF_OK);
        assert_int_equal(page.count, i + 1);
        hf_page_clear(&page);
        relay_cut_all(&relay);
    }
    hf_close(other);
    relay_end(&proxy);
    close(reserved);
}

static void while_the_database_is_away_nothing_happens_and_it_is_said_within_seconds(void **state)
{
    struct hf_stats stats;
    (void)state;
    assert_int_equal(place("before", "a"), HF_OK);
    relay_refuse(&relay, true);
    relay_cut_all(&relay);
    int64_t begun = server_clock_ms();
    assert_int_equal(place("during", "b"), HF_STORAGE_FAILURE);
    assert_int_equal(got.answer.cause.fault, HF_FAULT_DATABASE_AWAY);
    int64_t waited = server_clock_ms() - begun;
    assert_true(waited < SERVER_PATIENCE_MS);
    hf_stats(db, &stats);
    assert_true(stats.database_away);
    assert_false(stats.out_of_space);
    begun = server_clock_ms();
    assert_int_equal(place("during", "b"),
                     HF_STORAGE_FAILURE); /* and not again after so long a wait */
    assert_true(server_clock_ms() - begun < waited);
    relay_refuse(&relay, false);
    assert_int_equal(place("during", "b"), HF_OK);
    assert_false(got.replayed);
    assert_int_equal(place("before", "a"), HF_OK);
    assert_true(got.replayed);
    hf_stats(db, &stats);
    assert_false(stats.database_away);
    assert_int_equal(holds(), 2);
}

/* COMMIT was sent, and then the database stays away: nobody knows, and that is what is said; the
 * retry finds the truth. */
static void an_outcome_that_cannot_be_found_out_is_told_as_such(void **state)
{
    (void)state;
    for (int committed = 0; committed < 2; committed++) {
        const char *key = committed ? "done" : "not done";
        long long before = holds();
        relay_at_commit(&relay, committed ? RELAY_CUT_AFTER : RELAY_CUT_BEFORE, 1);
        relay_refuse(&relay, true);
        assert_int_equal(place(key, key), HF_INDETERMINATE);
        assert_int_equal(holds(), before + committed);
        relay_refuse(&relay, false);
        assert_int_equal(place(key, key), HF_OK);
        assert_int_equal(got.replayed, committed);
        assert_int_equal(holds(), before + 1);
    }
}

/* A server's caller reads it from the code, and is asked to come again. */
static void a_server_calls_it_indeterminate_and_its_retry_finds_the_truth(void **state)
{
    struct server s;
    struct reply reply;
    (void)state;
    server_init(&s);
    s.options.store.postgres = conninfo;
    server_start(&s);
    for (int committed = 0; committed < 2; committed++) {
        const char *key = committed ? "done" : "not done";
        const char *body = committed
                               ? "{\"resource\":\"a\",\"requester\":\"guest\",\"duration\":\"1h\"}"
                               : "{\"resource\":\"b\",\"requester\":\"guest\",\"duration\":\"1h\"}";
        server_ask_keyed(&s, "POST /v1/holds", committed ? "warm" : "up",
                         "{\"resource\":\"r\",\"requester\":\"guest\",\"duration\":\"1ms\"}",
                         &reply);
        reply_free(&reply);
        long long before = holds();
        relay_at_commit(&relay, committed ? RELAY_CUT_AFTER : RELAY_CUT_BEFORE,
                        9); /* the sweeper's, too */
        relay_refuse(&relay, true);
        server_ask_keyed(&s, "POST /v1/holds", key, body, &reply);
        assert_int_equal(reply.status, 503);
        assert_string_equal(reply_text(&reply, "code"), "indeterminate");
        assert_string_equal(reply_text(&reply, "type"), "urn:holdfast:indeterminate");
        assert_non_null(reply_field(&reply, "Retry-After"));
        reply_free(&reply);
        assert_int_equal(holds(), before + committed);
        relay_pass(&relay);
        server_ask_keyed(&s, "POST /v1/holds", key, body, &reply);
        assert_int_equal(reply.status, 201);
        assert_int_equal(reply_field(&reply, "Idempotent-Replayed") != NULL, committed);
        reply_free(&reply);
        assert_int_equal(holds(), before + 1);
    }
    server_end(&s);
}

/* So is everything else that was decided over it: its key again, and a question behind it. */
static void what_was_seen_of_an_unknown_outcome_is_unknown_too(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    struct hf_request first = { .action = HF_PLACE_HOLD,
                                .key = hf_str("key"),
                                .place_hold = { hf_str("room"), hf_str("guest"), 3600000, 0 } };
    struct hf_request known = first;
    known.key = known.place_hold.resource = hf_str("known");
    assert_int_equal(hf_do(db, &known, NULL), HF_OK);
    struct hf_request requests[COUNT] = {
        first, first, { .action = HF_GET_RESOURCE, .get = { hf_str("room") } }, known
    };
    struct hf_result results[COUNT];
    memset(results, 0, sizeof results);
    relay_at_commit(&relay, RELAY_CUT_BEFORE, 1);
    relay_refuse(&relay, true);
    assert_int_equal(hf_do_many(db, requests, results, COUNT), HF_INDETERMINATE);
    relay_refuse(&relay, false);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(results[i].answer.status, i < 3 ? HF_INDETERMINATE : HF_OK);
        hf_result_clear(&results[i]);
    }
    assert_int_equal(holds(), 1);
}

static void set_guard(struct hf_db *on, const char *name, bool closed)
{
    struct hf_request q = { .action = HF_SET_GUARD,
                            .set_guard = { .name = hf_str(name),
                                           .window_ms = 60000,
                                           .on_unavailable =
                                               closed ? HF_FAIL_CLOSED : HF_FAIL_OPEN } };
    assert_int_equal(hf_do(on, &q, &got), HF_OK);
}

/* Also one that nobody has asked here, and one whose rule was changed elsewhere since. */
static void guards_answer_by_their_rule_while_the_database_is_away(void **state)
{
    static const char *const names[] = { "open", "closed", "opened", "shut" };
    struct hf_options direct = { .no_background = true, .postgres = postgres_conninfo(&p) };
    struct hf_stats stats;
    struct hf_error why;
    struct hf_db *other;
    (void)state;
    assert_int_equal(hf_open(NULL, &direct, &other, &why), HF_OK);
    for (int i = 0; i < 4; i++)
        set_guard(other, names[i], i % 2 == 1);
    hf_close(db);
    direct.postgres = conninfo;
    assert_int_equal(hf_open(NULL, &direct, &db, &why), HF_OK);
    set_guard(other, "opened", true);
    set_guard(other, "shut", false);
    hf_close(other);
    hf_stats(db, &stats); /* what a server does by itself every few seconds */
    relay_refuse(&relay, true);
    relay_cut_all(&relay);
    for (int i = 0; i < 4; i++) {
        struct hf_request ask = {
            .action = HF_ADMIT, .identity = { .guard = hf_str(names[i]), .identity = hf_str("x") }
        };
        assert_int_equal(hf_do(db, &ask, &got), HF_OK);
        assert_int_equal(got.answer.seen.seen, i == 1 || i == 2);
    }
    struct hf_request unknown = {
        .action = HF_ADMIT, .identity = { .guard = hf_str("never seen"), .identity = hf_str("x") }
    };
    assert_int_equal(hf_do(db, &unknown, &got), HF_STORAGE_FAILURE);
}

/* Somebody's own transaction keeps a row locked: who needs it waits and is refused, everybody else
 * goes on. */
static void a_row_that_stays_locked_stops_only_those_who_need_it(void **state)
{
    (void)state;
    assert_int_equal(place("first", "locked"), HF_OK);
    PGconn *other = postgres_connect(&p);
    PQclear(PQexec(other, "BEGIN"));
    PQclear(PQexec(other, "SELECT 1 FROM holdfast.resource WHERE name = 'locked' FOR UPDATE"));
    enum { COUNT = 9 };
    struct hf_request requests[COUNT];
    struct hf_result results[COUNT];
    char texts[COUNT][16];
    memset(results, 0, sizeof results);
    for (int i = 0; i < COUNT; i++) {
        snprintf(texts[i], sizeof texts[i], "free-%d", i);
        requests[i] =
            (struct hf_request){ .action = HF_PLACE_HOLD,
                                 .key = hf_str(texts[i]),
                                 .place_hold = { .resource = hf_str(i == 4 ? "locked" : texts[i]),
                                                 .requester = hf_str("guest"),
                                                 .duration_ms = 1000 } };
    }
    assert_int_equal(hf_do_many(db, requests, results, COUNT), HF_OK);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(results[i].answer.status, i == 4 ? HF_STORAGE_FAILURE : HF_OK);
        hf_result_clear(&results[i]);
    }
    PQclear(PQexec(other, "COMMIT"));
    PQfinish(other);
    assert_int_equal(place("free-4", "locked"),
                     HF_RESOURCE_UNAVAILABLE); /* nothing was remembered of it */
}

static int begin(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    relay_start(&relay, p.port);
    postgres_conninfo_port(conninfo, relay.port);
    return 0;
}

static int end(void **state)
{
    (void)state;
    relay_end(&relay);
    postgres_end(&p);
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_commit_that_was_cut_is_found_out_and_answered_truly),
        TEST(a_commit_that_comes_late_is_shut_out_or_waited_for),
        TEST(connections_that_are_cut_between_batches_are_made_again),
        TEST(a_host_that_ends_connections_is_passed_over),
        TEST(while_the_database_is_away_nothing_happens_and_it_is_said_within_seconds),
        TEST(an_outcome_that_cannot_be_found_out_is_told_as_such),
        cmocka_unit_test_setup_teardown(
            a_server_calls_it_indeterminate_and_its_retry_finds_the_truth, setup_without_store,
            teardown_without_store),
        TEST(what_was_seen_of_an_unknown_outcome_is_unknown_too),
        TEST(guards_answer_by_their_rule_while_the_database_is_away),
        TEST(a_row_that_stays_locked_stops_only_those_who_need_it),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
