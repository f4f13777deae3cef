/* Two servers' stores on one database, many threads, the same few keys and resources, in every
 * order. */
#include "engine/kit/engine.h"
#include "postgres/kit/postgres.h"
#include "support/test.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { STORES = 2, THREADS = 8, ROUNDS = 30, GROUP = 24, KEYS = 60, RESOURCES = 12, CAPACITY = 3 };

static struct postgres p;
static struct hf_db *stores[STORES];

/* What each key's hold is, as the first who was answered saw it. */
static char ids[KEYS * ROUNDS][HF_ID_SIZE];
static pthread_mutex_t ids_lock = PTHREAD_MUTEX_INITIALIZER;
static int refused;

static void open_all(void)
{
    for (int i = 0; i < STORES; i++) {
        struct hf_options options = { .postgres = postgres_conninfo(&p) };
        struct hf_error why;
        if (hf_open(NULL, &options, &stores[i], &why) != HF_OK)
            fail_msg("%s", why.text);
    }
}

/* Nobody has set the clock back, in whatever order several connections hear of the time. */
static void close_all(void)
{
    for (int i = 0; i < STORES; i++) {
        struct hf_stats stats;
        hf_stats(stores[i], &stats);
        assert_int_equal(stats.clock_stalls, 0);
        hf_close(stores[i]);
    }
}

static void check_answer(int key, const struct hf_result *result)
{
    pthread_mutex_lock(&ids_lock);
    if (result->answer.status == HF_RESOURCE_UNAVAILABLE) {
        refused++;
    } else {
        KIT_WANT(result->answer.status == HF_OK);
        if (ids[key][0] == '\0')
            memcpy(ids[key], result->answer.hold.id, HF_ID_SIZE);
        KIT_WANT(strcmp(ids[key], result->answer.hold.id) == 0);
    }
    pthread_mutex_unlock(&ids_lock);
}

/* Groups of the same keys, in another order for each thread. */
static void place_groups(struct kit_worker *w)
{
    char keys[GROUP][24], resources[GROUP][24];
    struct hf_request requests[GROUP];
    struct hf_result results[GROUP];
    int chosen[GROUP];
    memset(results, 0, sizeof results);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < GROUP; i++) {
            w->random = w->random * UINT64_C(6364136223846793005) + 1442695040888963407U;
            chosen[i] = round * KEYS + (int)((w->random >> 33) % KEYS);
            snprintf(keys[i], sizeof keys[i], "key-%d", chosen[i]);
            snprintf(resources[i], sizeof resources[i], "room-%d-%d", round, chosen[i] % RESOURCES);
            requests[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                               .key = hf_str(keys[i]),
                                               .place_hold = { .resource = hf_str(resources[i]),
                                                               .requester = hf_str("guest"),
                                                               .duration_ms = HOUR } };
        }
        KIT_WANT(hf_do_many(stores[w->number % STORES], requests, results, GROUP) == HF_OK);
        for (int i = 0; i < GROUP; i++)
            check_answer(chosen[i], &results[i]);
    }
    for (int i = 0; i < GROUP; i++)
        hf_result_clear(&results[i]);
}

static void one_key_is_one_hold_however_many_servers_ask(void **state)
{
    struct kit_worker workers[THREADS];
    struct hf_result result = HF_RESULT_INIT;
    (void)state;
    open_all();
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < RESOURCES; i++) {
            char name[24];
            snprintf(name, sizeof name, "room-%d-%d", round, i);
            assert_int_equal(hf_do(stores[0],
                                   &(struct hf_request){ .action = HF_SET_RESOURCE,
                                                         .set_resource = { .name = hf_str(name),
                                                                           .capacity = CAPACITY } },
                                   &result),
                             HF_OK);
        }
    hf_result_clear(&result);
    kit_run(workers, THREADS, place_groups);
    close_all();
    long long holds = 0;
    for (int i = 0; i < KEYS * ROUNDS; i++)
        holds += ids[i][0] != '\0';
    assert_true(refused > 0 && holds > 0);
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.hold"), holds);
    assert_int_equal(
        postgres_number(&p,
                        "SELECT count(DISTINCT hold) FROM holdfast.token WHERE hold IS NOT NULL"),
        holds);
    assert_int_equal(
        postgres_number(
            &p, "SELECT count(*) FROM holdfast.resource r WHERE held <> (SELECT count(*) FROM "
                "holdfast.hold h WHERE h.tenant = r.tenant AND h.resource = r.name)"),
        0);
    assert_int_equal(postgres_number(&p, "SELECT max(held) FROM holdfast.resource"), CAPACITY);
}

/* New keys on the same few resources, in any order, on two servers: every batch locks most of
 * them. */
static void place_crosswise(struct kit_worker *w)
{
    char keys[GROUP][40], resources[GROUP][24];
    struct hf_request requests[GROUP];
    struct hf_result results[GROUP];
    memset(results, 0, sizeof results);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < GROUP; i++) {
            w->random = w->random * UINT64_C(6364136223846793005) + 1442695040888963407U;
            snprintf(keys[i], sizeof keys[i], "cross-%d-%d-%d", w->number, round, i);
            snprintf(resources[i], sizeof resources[i], "hall-%d",
                     (int)((w->random >> 33) % RESOURCES));
            requests[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                               .key = hf_str(keys[i]),
                                               .place_hold = { .resource = hf_str(resources[i]),
                                                               .requester = hf_str("guest"),
                                                               .duration_ms = HOUR } };
        }
        KIT_WANT(hf_do_many(stores[w->number % STORES], requests, results, GROUP) == HF_OK);
        for (int i = 0; i < GROUP; i++)
            KIT_WANT(results[i].answer.status == HF_OK && !results[i].replayed);
    }
    for (int i = 0; i < GROUP; i++)
        hf_result_clear(&results[i]);
}

static void batches_that_need_the_same_rows_never_wait_in_a_circle(void **state)
{
    static const char count[] =
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    struct kit_worker workers[THREADS];
    struct hf_result result = HF_RESULT_INIT;
    (void)state;
    open_all();
    for (int i = 0; i < RESOURCES; i++) {
        char name[24];
        snprintf(name, sizeof name, "hall-%d", i);
        assert_int_equal(hf_do(stores[0],
                               &(struct hf_request){
                                   .action = HF_SET_RESOURCE,
                                   .set_resource = { .name = hf_str(name), .capacity = 1000000 } },
                               &result),
                         HF_OK);
    }
    hf_result_clear(&result);
    long long before = postgres_number(&p, count);
    kit_run(workers, THREADS, place_crosswise);
    close_all(); /* so that their figures are counted */
    assert_int_equal(postgres_number(&p, "SELECT sum(held) FROM holdfast.resource"),
                     THREADS * ROUNDS * GROUP);
    assert_int_equal(postgres_number(&p, count) - before, 0);
}

/* Every fence is given once, and rises for each key, over both servers. */
static uint64_t fences[THREADS * ROUNDS];

static void begin_and_fail(struct kit_worker *w)
{
    struct hf_result result = HF_RESULT_INIT;
    uint64_t last = 0;
    for (int round = 0; round < ROUNDS;) {
        struct hf_request begin = { .action = HF_BEGIN,
                                    .key = hf_str("claimed"),
                                    .begin = { .lease_ms = MINUTE } };
        enum hf_status st = hf_do(stores[w->number % STORES], &begin, &result);
        if (st == HF_IN_PROGRESS)
            continue;
        KIT_WANT(st == HF_OK && result.answer.claim.fence > last);
        last = fences[w->number * ROUNDS + round] = result.answer.claim.fence;
        struct hf_request fail = { .action = HF_FAIL,
                                   .key = hf_str("claimed"),
                                   .settle = { .fence = last, .retryable = true } };
        KIT_WANT(hf_do(stores[w->number % STORES], &fail, &result) == HF_OK);
        round++;
    }
    hf_result_clear(&result);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void a_claim_has_one_owner_at_a_time_over_all_servers(void **state)
{
    struct kit_worker workers[THREADS];
    (void)state;
    open_all();
    kit_run(workers, THREADS, begin_and_fail);
    close_all();
    qsort(fences, THREADS * ROUNDS, sizeof *fences, by_value);
    for (int i = 1; i < THREADS * ROUNDS; i++)
        assert_true(fences[i] > fences[i - 1]);
}

/* Functions of tenants that have nothing to do with each other: none is run again for what another
 * one did. */
static enum hf_status enqueue_three(struct hf_tx *tx, void *arg)
{
    ++*(uint64_t *)arg;
    for (int i = 0; i < 3; i++)
        if (hf_tx_enqueue(tx, hf_str("topic"), hf_str("payload")) != HF_OK)
            return HF_STORAGE_FAILURE;
    return HF_OK;
}

static void apply_alone(struct kit_worker *w)
{
    struct hf_result result = HF_RESULT_INIT;
    char tenant[24], key[24];
    snprintf(tenant, sizeof tenant, "tenant-%d", w->number);
    for (int round = 0; round < ROUNDS; round++) {
        snprintf(key, sizeof key, "key-%d", round);
        struct hf_request apply = {
            .action = HF_APPLY,
            .tenant = hf_str(tenant),
            .key = hf_str(key),
            .apply = { .name = hf_str("three"), .fn = enqueue_three, .arg = &w->done }
        };
        KIT_WANT(hf_do(stores[w->number % STORES], &apply, &result) == HF_OK);
    }
    hf_result_clear(&result);
}

static void functions_of_different_tenants_never_draw_the_same_number(void **state)
{
    struct kit_worker workers[THREADS];
    (void)state;
    open_all();
    kit_run(workers, THREADS, apply_alone);
    close_all();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(workers[i].done, ROUNDS);
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.outbox"),
                     THREADS * ROUNDS * 3);
}

/* A server that dies takes nothing with it: what it was answered, another one replays. */
static void what_one_server_did_every_other_one_knows_at_once(void **state)
{
    struct hf_result a = HF_RESULT_INIT, b = HF_RESULT_INIT;
    (void)state;
    open_all();
    for (int i = 0; i < 50; i++) {
        char key[24];
        snprintf(key, sizeof key, "shared-%d", i);
        struct hf_request place = { .action = HF_PLACE_HOLD,
                                    .key = hf_str(key),
                                    .place_hold = { .resource = hf_str(key),
                                                    .requester = hf_str("guest"),
                                                    .duration_ms = HOUR } };
        assert_int_equal(hf_do(stores[i % 2], &place, &a), HF_OK);
        assert_false(a.replayed);
        assert_int_equal(hf_do(stores[1 - i % 2], &place, &b), HF_OK);
        assert_true(b.replayed);
        assert_string_equal(a.answer.hold.id, b.answer.hold.id);
        assert_true(b.now >= a.now);
    }
    hf_result_clear(&a);
    hf_result_clear(&b);
    close_all();
}

static int empty(void **state)
{
    (void)state;
    postgres_run(&p, "DROP SCHEMA IF EXISTS holdfast CASCADE");
    return 0;
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

/* A day of keys that come and go: the table of tokens, the identities under guard and their indexes
 * keep their size. */

enum { HOURS = 24, GROUPS = 10, STEADY_GROUP = 200, SETTLED = 8 };

static struct kit *k;
static PGconn *pg;

static long long number(const char *query)
{
    PGresult *result = PQexec(pg, query);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    long long value = atoll(PQgetvalue(result, 0, 0));
    PQclear(result);
    return value;
}

/* An hour's work: new keys for holds that are released at once, and new identities. */
static void hour(int n)
{
    static struct hf_request requests[STEADY_GROUP];
    static struct hf_result results[STEADY_GROUP];
    static char texts[STEADY_GROUP][32];
    for (int g = 0; g < GROUPS; g++) {
        kit_at(k, n * HOUR + g * HOUR / GROUPS);
        for (int i = 0; i < STEADY_GROUP; i++) {
            unsigned serial = (unsigned)((n * GROUPS + g) * STEADY_GROUP + i);
            snprintf(texts[i], sizeof texts[i], "%08x-%u", serial * 2654435761U,
                     serial); /* as random as keys are */
            if (i % 2)
                requests[i] = (struct hf_request){ .action = HF_ADMIT,
                                                   .identity = { .guard = hf_str("g"),
                                                                 .identity = hf_str(texts[i]) } };
            else
                requests[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                                   .key = hf_str(texts[i]),
                                                   .place_hold = { .resource = hf_str(texts[i]),
                                                                   .requester = hf_str("guest"),
                                                                   .duration_ms = MINUTE } };
        }
        assert_int_equal(hf_do_many(k->db, requests, results, STEADY_GROUP), HF_OK);
        for (int i = 0; i < STEADY_GROUP; i++) {
            assert_int_equal(results[i].answer.status, HF_OK);
            hf_result_clear(&results[i]);
        }
        kit_settle(k);
        /* What autovacuum does when it comes by; a test cannot wait for it. */
        PQclear(PQexec(pg, "VACUUM holdfast.token"));
        PQclear(PQexec(pg, "VACUUM holdfast.guard_entry"));
    }
}

static void tables_and_indexes_keep_their_size_over_a_day(void **state)
{
    static const char *const sizes[] = { "SELECT pg_table_size('holdfast.token')",
                                         "SELECT pg_indexes_size('holdfast.token')",
                                         "SELECT pg_table_size('holdfast.guard_entry')",
                                         "SELECT pg_indexes_size('holdfast.guard_entry')" };
    long long settled[4] = { 0 };
    (void)state;
    setenv("HF_STORE", "postgres", 1);
    k = kit_make();
    k->options.idempotency_window_ms = 2 * HOUR;
    kit_reopen(k);
    pg = PQconnectdb(k->options.postgres);
    assert_int_equal(kit_guard(k, "g", 2 * HOUR, NULL, 0), HF_OK);
    for (int n = 0; n < HOURS; n++) {
        hour(n);
        for (int i = 0; i < 4 && n == SETTLED; i++)
            settled[i] = number(sizes[i]);
    }
    /* Two hours of keys are there, and the rest was taken out. */
    assert_in_range(number("SELECT count(*) FROM holdfast.token"), GROUPS * STEADY_GROUP,
                    GROUPS * STEADY_GROUP * 5 / 4);
    assert_int_equal(number("SELECT count(*) FROM holdfast.hold"),
                     HOURS * GROUPS * STEADY_GROUP / 2);
    for (int i = 0; i < 4; i++) {
        long long now = number(sizes[i]);
        print_message("%s: %lld after %d hours, %lld after %d\n", sizes[i], settled[i], SETTLED + 1,
                      now, HOURS);
        assert_true(now <= settled[i] + settled[i] / 4);
    }
    PQfinish(pg);
    kit_free(k);
}

static void change(enum hf_action action, const char *name, uint64_t fence)
{
    char key[32];
    snprintf(key, sizeof key, "%d %s", (int)action, name);
    struct hf_request q = { .action = action,
                            .key = hf_str(key),
                            .write = {
                                .name = hf_str(name), .value = hf_str(""), .fence = fence } };
    assert_int_equal(hf_do(k->db, &q, NULL), HF_OK);
}

/* What a deleted lease has left goes soon, and that of a register when its window has closed,
 * unless it keeps a fence; and it is counted as none. */
static void what_deleted_registers_and_leases_have_left_goes(void **state)
{
    (void)state;
    setenv("HF_STORE", "postgres", 1);
    k = kit_make();
    k->options.idempotency_window_ms = 2 * HOUR;
    kit_reopen(k);
    pg = PQconnectdb(k->options.postgres);
    kit_at(k, 0);
    change(HF_WRITE, "stays", 0);
    change(HF_WRITE, "fenced", 7);
    change(HF_DELETE_REGISTER, "fenced", 8);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "goes-%d", i);
        change(HF_WRITE, name, 0);
        change(HF_DELETE_REGISTER, name, 0);
    }
    struct hf_request lease = { .action = HF_GRANT,
                                .key = hf_str("grant"),
                                .lease = {
                                    .name = hf_str("l"), .holder = hf_str("me"), .ttl_ms = 1 } };
    assert_int_equal(hf_do(k->db, &lease, NULL), HF_OK);
    kit_at(k, 1);
    lease = (struct hf_request){ .action = HF_DELETE_LEASE,
                                 .key = hf_str("gone"),
                                 .lease = { .name = hf_str("l") } };
    assert_int_equal(hf_do(k->db, &lease, NULL), HF_OK);
    assert_int_equal(number("SELECT count(*) FROM holdfast.lease"), 1);
    assert_int_equal(kit_stats(k).registers, 1);
    kit_at(k, 2 * HOUR - 1);
    kit_settle(k);
    assert_int_equal(number("SELECT count(*) FROM holdfast.register"), 5);
    assert_int_equal(number("SELECT count(*) FROM holdfast.lease"), 0);
    kit_at(k, 2 * HOUR);
    kit_settle(k);
    assert_int_equal(number("SELECT count(*) FROM holdfast.register"), 2);
    assert_int_equal(kit_stats(k).registers, 1);
    PQfinish(pg);
    kit_free(k); /* and it audits the tables */
}

int main(void)
{
    const struct CMUnitTest many_tests[] = {
        cmocka_unit_test_setup(one_key_is_one_hold_however_many_servers_ask, empty),
        cmocka_unit_test_setup(batches_that_need_the_same_rows_never_wait_in_a_circle, empty),
        cmocka_unit_test_setup(a_claim_has_one_owner_at_a_time_over_all_servers, empty),
        cmocka_unit_test_setup(functions_of_different_tenants_never_draw_the_same_number, empty),
        cmocka_unit_test_setup(what_one_server_did_every_other_one_knows_at_once, empty),
    };
    const struct CMUnitTest steady_tests[] = {
        cmocka_unit_test(tables_and_indexes_keep_their_size_over_a_day),
        cmocka_unit_test(what_deleted_registers_and_leases_have_left_goes),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(many_tests, begin, end);
    failed += cmocka_run_group_tests(steady_tests, NULL, NULL);
    return failed;
}
