/* Sessions, keys and guards that are in the way of each other, and rows that somebody keeps
 * locked: each of these went wrong once. */
#include "postgres/kit/postgres.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "audit/audit.h"
#include "base/hash.h"
#include "holdfast.h"
#include "store/postgres/set.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct postgres p;
static struct hf_db *db;
static struct hf_result got = HF_RESULT_INIT;
static char conninfo[2 * POSTGRES_CONNINFO_MAX];

static void open_with(const char *more)
{
    struct hf_options options = { .no_background = true, .postgres = conninfo };
    struct hf_error why;
    postgres_run(&p, "DROP SCHEMA IF EXISTS holdfast CASCADE");
    snprintf(conninfo, sizeof conninfo, "%s %s", postgres_conninfo(&p), more);
    if (hf_open(NULL, &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
}

static int teardown(void **state)
{
    (void)state;
    if (db)
        hf_close(db);
    db = NULL;
    hf_result_clear(&got);
    return 0;
}

static struct hf_request placing(const char *key, const char *resource, int64_t duration_ms)
{
    return (struct hf_request){ .action = HF_PLACE_HOLD,
                                .key = hf_str(key),
                                .place_hold = { .resource = hf_str(resource),
                                                .requester = hf_str("guest"),
                                                .duration_ms = duration_ms } };
}

static enum hf_status place(const char *key, const char *resource, int64_t duration_ms)
{
    struct hf_request q = placing(key, resource, duration_ms);
    return hf_do(db, &q, &got);
}

/* ---- A wait for the standby that was given up ---- */

static void standby_wanted(bool wanted)
{
    postgres_set(&p, "synchronous_standby_names", wanted ? "nobody" : "");
    postgres_reload(&p);
    postgres_await_number(
        &p, "SELECT (current_setting('synchronous_standby_names') = 'nobody')::integer", wanted);
}

static atomic_bool standby_is_back;

/* An operator cancels the commit that waits for a standby, and brings the standby back only
 * then. */
static void *cancel_then_come_back(void *arg)
{
    (void)arg;
    postgres_await_number(
        &p,
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = "
        "'SyncRep'",
        1);
    server_pause_ms(500); /* for an answer that comes too soon; one that takes longer is missed */
    atomic_store(&standby_is_back, true);
    standby_wanted(false);
    return NULL;
}

/* That the wait was given up is a warning; a role that hears of errors alone must not take the
 * commit for safe. */
static void a_role_that_hears_no_warnings_waits_for_the_standby_all_the_same(void **state)
{
    pthread_t operator;
    (void)state;
    open_with("options='-c client_min_messages=error'");
    standby_wanted(true);
    atomic_store(&standby_is_back, false);
    assert_int_equal(pthread_create(&operator, NULL, cancel_then_come_back, NULL), 0);
    enum hf_status st = place("key", "room", 3600000);
    bool was_back = atomic_load(&standby_is_back);
    pthread_join(operator, NULL);
    assert_int_equal(st, HF_OK);
    assert_true(was_back);
}

/* ---- Keys that were chosen to be in each other's way ---- */

/* What this process works for as many as a batch takes. chosen: all of them in one bucket, for
 * whoever knows how slots are found. */
static int64_t took_ms(const char *prefix, bool chosen)
{
    enum { COUNT = 8192 };
    static char keys[COUNT][32];
    static struct hf_request requests[COUNT];
    const struct hf_sipkey guess = { HF_PG_TOKEN, 0 };
    for (unsigned i = 0, n = 0; i < COUNT; n++) {
        snprintf(keys[i], sizeof keys[i], "%s-%u", prefix, n);
        if (chosen && hf_siphash(&guess, hf_mem(NULL, 0), hf_str(keys[i])) % HF_PG_BUCKETS != 0)
            continue;
        requests[i] = placing(keys[i], keys[i], 3600000);
        i++;
    }
    int64_t begun = test_cpu_ns();
    assert_int_equal(hf_do_many(db, requests, NULL, COUNT), HF_OK);
    return (test_cpu_ns() - begun) / 1000000;
}

static void nobody_can_choose_keys_that_make_a_batch_slow(void **state)
{
    const char *scale = getenv("HF_SCALE");
    (void)state;
    if (!scale || strcmp(scale, "full") != 0)
        skip(); /* a matter of time alone, which says nothing under a sanitizer */
    open_with("");
    took_ms("warm", false);
    int64_t any = took_ms("any", false), chosen = took_ms("chosen", true);
    if (chosen > 3 * any + 500)
        fail_msg("%lld ms for keys that were chosen, %lld for others", (long long)chosen,
                 (long long)any);
}

/* ---- Guards that are changed in somebody's own transaction ---- */

static atomic_bool admitted;

static void *admit(void *arg)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request q = { .action = HF_ADMIT,
                            .identity = { .guard = hf_str("guard"), .identity = hf_str("one") } };
    (void)arg;
    enum hf_status st = hf_do(db, &q, &result);
    atomic_store(&admitted, true);
    hf_result_clear(&result);
    return st == HF_OK ? NULL : &db;
}

static void audited_fine(void)
{
    struct hf_audit_options options = { .postgres = conninfo };
    struct hf_audit_report report = { .verdict = HF_AUDIT_OK };
    struct hf_error why;
    assert_int_equal(hf_audit_run(NULL, &options, &report, &why), HF_OK);
    enum hf_audit_verdict verdict = report.verdict;
    hf_audit_report_free(&report);
    assert_int_equal(verdict, HF_AUDIT_OK);
}

/* The entry of the change has its number already; whoever decides behind it must go by the new
 * rules. */
static void who_asks_a_guard_waits_while_a_transaction_changes_it(void **state)
{
    pthread_t server;
    void *failed;
    (void)state;
    open_with("");
    struct hf_request q = { .action = HF_SET_GUARD,
                            .set_guard = { .name = hf_str("guard"), .window_ms = 3600000 } };
    assert_int_equal(hf_do(db, &q, &got), HF_OK);
    PGconn *user = postgres_connect(&p);
    PQclear(PQexec(user, "BEGIN"));
    PQclear(PQexec(user, "SELECT holdfast.set_guard('guard', interval '1 minute')"));
    atomic_store(&admitted, false);
    assert_int_equal(pthread_create(&server, NULL, admit, NULL), 0);
    postgres_await_number(&p, "SELECT (count(*) > 0)::integer FROM pg_locks WHERE NOT granted", 1);
    bool was_early = atomic_load(&admitted);
    PQclear(PQexec(user, "COMMIT"));
    PQfinish(user);
    pthread_join(server, &failed);
    assert_null(failed);
    assert_false(was_early);
    assert_int_equal(
        postgres_number(&p, "SELECT extract(epoch FROM expires_at - recorded_at)::integer FROM "
                            "holdfast.guard_entry"),
        60);
    audited_fine();
}

/* To say once more what holds already changes nothing, and nobody waits for it. */
static void a_guard_that_is_set_again_as_it_is_stops_nobody(void **state)
{
    (void)state;
    open_with("");
    postgres_run(&p, "SELECT holdfast.set_guard('guard', interval '1 minute')");
    PGconn *user = postgres_connect(&p);
    PQclear(PQexec(user, "BEGIN"));
    PGresult *again =
        PQexec(user, "SELECT status FROM holdfast.set_guard('guard', interval '1 minute') AS g");
    assert_int_equal(PQresultStatus(again), PGRES_TUPLES_OK);
    assert_string_equal(PQgetvalue(again, 0, 0), "ok");
    PQclear(again);
    assert_null(admit(NULL));
    PQfinish(user);
}

/* ---- What is found in the tables ---- */

/* To check is to ask, though the guard has to be read first. */
static void who_only_asks_leaves_no_row_among_the_writers(void **state)
{
    static const char writers[] = "SELECT count(*) FROM holdfast.writer";
    struct hf_options options = { .no_background = true, .postgres = conninfo };
    struct hf_error why;
    (void)state;
    open_with("");
    struct hf_request set = { .action = HF_SET_GUARD,
                              .set_guard = { .name = hf_str("guard"), .window_ms = 3600000 } };
    assert_int_equal(hf_do(db, &set, &got), HF_OK);
    hf_close(db);
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    long long before = postgres_number(&p, writers);
    struct hf_request q = { .action = HF_CHECK,
                            .identity = { .guard = hf_str("guard"), .identity = hf_str("one") } };
    assert_int_equal(hf_do(db, &q, &got), HF_OK);
    assert_false(got.answer.seen.seen);
    assert_int_equal(postgres_number(&p, writers), before);
    q.action = HF_ADMIT;
    assert_int_equal(hf_do(db, &q, &got), HF_OK);
    assert_int_equal(postgres_number(&p, writers), before + 1);
}

static void the_life_of_a_claim_is_found_by_its_key(void **state)
{
    (void)state;
    open_with("");
    struct hf_request q = { .action = HF_BEGIN,
                            .key = hf_str("a\\b"),
                            .begin = { .lease_ms = 3600000 } };
    assert_int_equal(hf_do(db, &q, &got), HF_OK);
    uint64_t fence = got.answer.claim.fence;
    q = (struct hf_request){ .action = HF_HEARTBEAT,
                             .key = hf_str("a\\b"),
                             .settle = { .fence = fence } };
    assert_int_equal(hf_do(db, &q, &got), HF_OK);
    q.action = HF_COMPLETE;
    assert_int_equal(hf_do(db, &q, &got), HF_OK);
    assert_int_equal(
        postgres_number(&p, "SELECT count(*) FROM holdfast.journal WHERE tenant = '' AND key = "
                            "'a\\\\b' AND action IN ('begin', 'heartbeat', 'complete')"),
        3);
    audited_fine();
}

/* ---- Sweeping ---- */

/* More overdue holds on one resource than a step takes, and somebody keeps that one locked. */
static void a_locked_resource_keeps_no_other_from_being_swept(void **state)
{
    enum { COUNT = 300 };
    static const char expired[] = "SELECT count(*) FROM holdfast.hold WHERE state = 'expired'";
    static struct hf_request requests[COUNT];
    static char keys[COUNT][16];
    (void)state;
    open_with("");
    struct hf_request q = { .action = HF_SET_RESOURCE,
                            .set_resource = { .name = hf_str("large"), .capacity = COUNT } };
    assert_int_equal(hf_do(db, &q, &got), HF_OK);
    for (int i = 0; i < COUNT; i++) {
        snprintf(keys[i], sizeof keys[i], "key-%d", i);
        requests[i] = placing(keys[i], "large", 1);
    }
    assert_int_equal(hf_do_many(db, requests, NULL, COUNT), HF_OK);
    server_pause_ms(5);
    assert_int_equal(place("small", "small", 1), HF_OK);
    server_pause_ms(5);
    PGconn *user = postgres_connect(&p);
    PQclear(PQexec(user, "BEGIN"));
    PQclear(PQexec(user, "SELECT 1 FROM holdfast.resource WHERE name = 'large' FOR UPDATE"));
    (void)hf_maintain(db);
    long long first = postgres_number(&p, expired);
    PQclear(PQexec(user, "ROLLBACK"));
    PQfinish(user);
    while (hf_maintain(db))
        ;
    assert_int_equal(first, 1);
    assert_int_equal(postgres_number(&p, expired), COUNT + 1);
}

/* ---- A row that somebody keeps locked ---- */

enum { HOT = 6 };
static atomic_bool hot_stop;
static atomic_int hot_refused, hot_placed;

/* Asks for the locked row again and again, as impatient callers do. */
static void *ask_for_the_locked_row(void *arg)
{
    struct hf_result result = HF_RESULT_INIT;
    const int *me = arg;
    char key[32];
    for (int n = 0; !atomic_load(&hot_stop); n++) {
        snprintf(key, sizeof key, "hot-%d-%d", *me, n);
        struct hf_request q = placing(key, "locked", 3600000);
        enum hf_status st = hf_do(db, &q, &result);
        if (st == HF_OK)
            atomic_fetch_add(&hot_placed, 1);
        else if (st == HF_STORAGE_FAILURE)
            atomic_fetch_add(&hot_refused, 1);
    }
    hf_result_clear(&result);
    return NULL;
}

/* Wait until that has come to so many. */
static void await_count(const atomic_int *counter, int count)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; atomic_load(counter) < count;
         server_pause_ms(5))
        assert_true(server_clock_ms() < until);
}

/* Place holds on other resources, which would take minutes if each waited for the locked row. */
static void others_are_placed(void)
{
    int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
    for (int n = 0; n < 200; n++) {
        char name[32];
        snprintf(name, sizeof name, "other-%d", n);
        assert_int_equal(place(name, name, 3600000), HF_OK);
        assert_true(server_clock_ms() < until);
    }
}

/* Every session of the server waited for that row in the end, and nobody got anything done. */
static void who_needs_other_rows_does_not_wait_for_one_that_stays_locked(void **state)
{
    pthread_t threads[HOT];
    int names[HOT];
    (void)state;
    open_with("");
    postgres_run(&p, "SELECT holdfast.set_resource('locked', 1000000)");
    PGconn *user = postgres_connect(&p);
    PQclear(PQexec(user, "BEGIN"));
    PQclear(PQexec(user, "SELECT holdfast.place_hold('mine', 'locked', 'me', interval '1 h')"));
    atomic_store(&hot_stop, false);
    int64_t begun = server_clock_ms();
    for (int i = 0; i < HOT; i++) {
        names[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, ask_for_the_locked_row, &names[i]), 0);
    }
    await_count(&hot_refused, HOT); /* by then it is known which row it is */
    others_are_placed();
    int64_t passed_ms = server_clock_ms() - begun;
    int refused = atomic_load(&hot_refused), placed = atomic_load(&hot_placed);
    PQclear(PQexec(user, "COMMIT"));
    PQfinish(user);
    await_count(&hot_placed, 1);
    atomic_store(&hot_stop, true);
    for (int i = 0; i < HOT; i++)
        pthread_join(threads[i], NULL);
    assert_true(refused <= HOT * (2 + passed_ms / 1000));
    assert_int_equal(placed, 0);
    audited_fine();
}

static void *ask_once_for_the_locked_row(void *arg)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request q = placing("hot", "locked", 3600000);
    atomic_bool *done = arg;
    enum hf_status st = hf_do(db, &q, &result);
    atomic_store(done, true);
    hf_result_clear(&result);
    return st == HF_OK ? NULL : &db;
}

/* All sessions slept but the one that waited, and nobody woke them. */
static void a_second_caller_does_not_wait_for_the_first_ones_row(void **state)
{
    pthread_t first;
    atomic_bool first_done = false;
    void *failed;
    (void)state;
    open_with("");
    postgres_run(&p, "SELECT holdfast.set_resource('locked', 1000000)");
    PGconn *user = postgres_connect(&p);
    PQclear(PQexec(user, "BEGIN"));
    PQclear(PQexec(user, "SELECT 1 FROM holdfast.resource WHERE name = 'locked' FOR UPDATE"));
    server_pause_ms(100); /* for all to sleep; one that does not makes this test easier to pass */
    assert_int_equal(pthread_create(&first, NULL, ask_once_for_the_locked_row, &first_done), 0);
    postgres_await_number(&p, "SELECT (count(*) > 0)::integer FROM pg_locks WHERE NOT granted", 1);
    enum hf_status st = place("other", "other", 3600000);
    bool waited = atomic_load(&first_done);
    PQclear(PQexec(user, "ROLLBACK"));
    PQfinish(user);
    pthread_join(first, &failed);
    assert_null(failed);
    assert_int_equal(st, HF_OK);
    assert_false(waited);
}

/* ---- Figures ---- */

/* From 10,000 rows on they come from the database's statistics, which know of the whole table
 * alone. */
static void keys_and_claims_are_told_apart_where_there_are_many(void **state)
{
    struct hf_stats stats;
    (void)state;
    open_with("");
    postgres_run(
        &p, "INSERT INTO holdfast.token (tenant, key, action, status, digest, recorded_at, "
            "expires_at, entry, state) SELECT '', 'key-' || i, 'begin', 'ok', '', now(), now() + "
            "interval '1 h', 0, CASE WHEN i % 4 = 0 THEN 'started' END FROM generate_series(1, "
            "20000) i; ANALYZE holdfast.token");
    hf_stats(db, &stats);
    assert_in_range(stats.tokens, 14500, 15500);
    assert_in_range(stats.claims, 4500, 5500);
}

/* Somebody has made another store where this one was: a session that had not written yet went on in
 * that, with ids and a chain of the old one. A list must not show it either. */
static void another_store_in_the_same_place_is_not_used(void **state)
{
    struct hf_options options = { .no_background = true, .postgres = conninfo };
    struct hf_error why;
    struct hf_db *other = NULL;
    struct hf_page page = { 0 };
    (void)state;
    open_with("");
    hf_close(db);
    db = NULL;
    assert_int_equal(hf_open(NULL, &options, &db, &why),
                     HF_OK); /* it has nothing to write into this one */
    postgres_run(&p, "DROP SCHEMA holdfast CASCADE");
    assert_int_equal(hf_open(NULL, &options, &other, &why), HF_OK);
    hf_close(other);
    postgres_run(&p, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                     "application_name = 'holdfast'");
    assert_int_equal(place("key", "room", 1000), HF_STORAGE_FAILURE);
    assert_int_equal(got.answer.cause.fault, HF_FAULT_DATABASE_REFUSED);
    assert_int_equal(hf_list(db, &(struct hf_query){ .kind = HF_LIST_RESOURCES }, &page),
                     HF_STORAGE_FAILURE);
    assert_int_not_equal(page.cause.fault, HF_FAULT_NONE);
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.hold"), 0);
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.writer"),
                     1); /* of who made it */
}

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

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nobody_can_choose_keys_that_make_a_batch_slow),
        TEST(a_role_that_hears_no_warnings_waits_for_the_standby_all_the_same),
        TEST(who_asks_a_guard_waits_while_a_transaction_changes_it),
        TEST(a_guard_that_is_set_again_as_it_is_stops_nobody),
        TEST(who_only_asks_leaves_no_row_among_the_writers),
        TEST(the_life_of_a_claim_is_found_by_its_key),
        TEST(a_locked_resource_keeps_no_other_from_being_swept),
        TEST(who_needs_other_rows_does_not_wait_for_one_that_stays_locked),
        TEST(a_second_caller_does_not_wait_for_the_first_ones_row),
        TEST(keys_and_claims_are_told_apart_where_there_are_many),
        TEST(another_store_in_the_same_place_is_not_used),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
