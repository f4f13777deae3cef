/* Two servers' stores on one database, many threads, the same few keys and resources, in every
 * order. */
#include "engine/kit/engine.h"
#include "postgres/kit/postgres.h"
#include "support/test.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_key_is_one_hold_however_many_servers_ask, empty),
        cmocka_unit_test_setup(batches_that_need_the_same_rows_never_wait_in_a_circle, empty),
        cmocka_unit_test_setup(a_claim_has_one_owner_at_a_time_over_all_servers, empty),
        cmocka_unit_test_setup(functions_of_different_tenants_never_draw_the_same_number, empty),
        cmocka_unit_test_setup(what_one_server_did_every_other_one_knows_at_once, empty),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
