/* The primary is killed, its standby promoted, the old one revived, while clients of two servers go on: what was acknowledged
 * is there, and nothing happened twice. The control: with asynchronous replication the same test sees a loss. */
#include "support/engine_kit.h"
#include "support/postgres_kit.h"
#include "support/relay_kit.h"
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { STORES = 2, CLIENTS = 16, CALLS_MAX = 1000000 };

static struct postgres a, b;
static struct hf_db *stores[STORES];
static _Atomic bool stop;
static _Atomic int acknowledged;

/* What a client knows: its calls are numbered, and the ids are those it was told. */
struct ledger {
    pthread_t thread;
    int number, count;
    char (*ids)[HF_ID_SIZE]; /* owned */
};
static struct ledger ledgers[CLIENTS];

static void key_of(const struct ledger *l, int call, char key[32])
{
    snprintf(key, 32, "c%d-%d", l->number, call);
}

/* Ask until there is an answer: that is what a client does whose answer was lost. */
static void *client(void *arg)
{
    struct ledger *l = arg;
    struct hf_result got = HF_RESULT_INIT;
    while (!atomic_load(&stop) && l->count < CALLS_MAX) {
        char key[32];
        key_of(l, l->count, key);
        struct hf_request place = {
            .action = HF_PLACE_HOLD,
            .key = hf_str(key),
            .place_hold = { .resource = hf_str(key), .requester = hf_str("guest"), .duration_ms = DAY }
        };
        enum hf_status st = hf_do(stores[l->number % STORES], &place, &got);
        if (st != HF_OK) {
            struct timespec a_moment = { 0, 20000000 };
            KIT_WANT(st == HF_STORAGE_FAILURE || st == HF_INDETERMINATE);
            nanosleep(&a_moment, NULL);
            continue;
        }
        memcpy(l->ids[l->count++], got.answer.hold.id, HF_ID_SIZE);
        atomic_fetch_add(&acknowledged, 1);
    }
    hf_result_clear(&got);
    return NULL;
}

static void clients_start(const char *conninfo)
{
    atomic_store(&stop, false);
    atomic_store(&acknowledged, 0);
    for (int i = 0; i < STORES; i++) {
        struct hf_options options = { .postgres = conninfo };
        struct hf_error why;
        if (hf_open(NULL, &options, &stores[i], &why) != HF_OK)
            fail_msg("%s", why.text);
    }
    for (int i = 0; i < CLIENTS; i++) {
        ledgers[i] = (struct ledger){ .number = i, .ids = calloc(CALLS_MAX, sizeof *ledgers[i].ids) };
        assert_non_null(ledgers[i].ids);
        assert_int_equal(pthread_create(&ledgers[i].thread, NULL, client, &ledgers[i]), 0);
    }
}

static void clients_stop(void)
{
    atomic_store(&stop, true);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(ledgers[i].thread, NULL);
    for (int i = 0; i < STORES; i++)
        hf_close(stores[i]);
}

static void ledgers_free(void)
{
    for (int i = 0; i < CLIENTS; i++)
        free(ledgers[i].ids);
}

/* Wait until so many more calls were acknowledged. */
static void more(int count)
{
    int wanted = atomic_load(&acknowledged) + count;
    for (int i = 0; atomic_load(&acknowledged) < wanted; i++) {
        struct timespec a_moment = { 0, 5000000 };
        if (i > 8000)
            fail_msg("nothing goes on: %d of %d calls in 40 s", atomic_load(&acknowledged), wanted);
        nanosleep(&a_moment, NULL);
    }
}

/* How many acknowledged holds are not in the database, under their own id and key. */
static long long lost(const struct postgres *p)
{
    PGconn *pg = postgres_connect(p);
    long long missing = 0;
    for (int i = 0; i < CLIENTS; i++)
        for (int call = 0; call < ledgers[i].count; call++) {
            char key[32];
            key_of(&ledgers[i], call, key);
            const char *const params[] = { key, ledgers[i].ids[call] };
            PGresult *result =
                PQexecParams(pg,
                             "SELECT 1 FROM holdfast.token t JOIN holdfast.hold h ON h.ordinal = t.hold "
                             "WHERE t.tenant = '' AND t.key = $1 AND h.id = $2",
                             2, NULL, params, NULL, NULL, 0);
            assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
            missing += PQntuples(result) != 1;
            PQclear(result);
        }
    PQfinish(pg);
    return missing;
}

static void nothing_twice(const struct postgres *p)
{
    assert_int_equal(
        postgres_number(p,
                        "SELECT count(*) FROM (SELECT resource FROM holdfast.hold GROUP BY resource HAVING "
                        "count(*) > 1) twice"),
        0);
    assert_int_equal(postgres_number(p, "SELECT count(*) - count(DISTINCT hold) FROM holdfast.token"), 0);
}

static bool is_full(void)
{
    const char *scale = getenv("HF_SCALE");
    return scale && strcmp(scale, "full") == 0;
}

static void what_was_acknowledged_survives_every_failover(void **state)
{
    char conninfo[POSTGRES_CONNINFO_MAX];
    struct postgres *primary = &a, *standby = &b;
    int cycles = getenv("HF_CYCLES") ? atoi(getenv("HF_CYCLES")) : is_full() ? 20 : 2;
    (void)state;
    postgres_follow(standby, primary, POSTGRES_SYNC, 0);
    postgres_conninfo_pair(conninfo, &a, &b);
    clients_start(conninfo);
    for (int i = 0; i < cycles; i++) {
        if (isatty(2))
            fprintf(stderr, "\rcycle %d of %d, %d calls acknowledged ", i + 1, cycles,
                    atomic_load(&acknowledged));
        more(100);
        postgres_stop(primary, POSTGRES_KILL);
        postgres_promote(standby);
        more(100);
        /* The old primary comes back as it was, and takes writes if anybody lets it: nobody may. */
        postgres_set(primary, "synchronous_standby_names", "");
        postgres_start(primary);
        long long written = postgres_number(primary, "SELECT count(*) FROM holdfast.journal");
        postgres_run(
            standby,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'");
        more(100);
        assert_int_equal(postgres_number(primary, "SELECT count(*) FROM holdfast.journal"), written);
        postgres_stop(primary, POSTGRES_IMMEDIATE);
        struct postgres *old = primary;
        primary = standby;
        standby = old;
        postgres_follow(standby, primary, POSTGRES_SYNC, 0);
    }
    more(100);
    clients_stop();
    assert_int_equal(lost(primary), 0);
    nothing_twice(primary);
    print_message("%d cycles, %d calls acknowledged, none lost, none twice\n", cycles,
                  atomic_load(&acknowledged));
    ledgers_free();
}

/* The standby is behind when the primary dies: what it had not received is lost, although it was acknowledged. If this test saw
 * nothing, the one above would prove nothing. */
static void without_a_synchronous_standby_the_same_test_sees_the_loss(void **state)
{
    char conninfo[POSTGRES_CONNINFO_MAX];
    struct relay relay;
    (void)state;
    relay_start(&relay, a.port);
    postgres_follow(&b, &a, POSTGRES_ASYNC, relay.port);
    postgres_conninfo_pair(conninfo, &a, &b);
    clients_start(conninfo);
    more(100);
    relay_black_hole(&relay, true); /* the standby hears nothing more */
    more(200);
    atomic_store(&stop, true);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(ledgers[i].thread, NULL);
    postgres_stop(&a, POSTGRES_KILL);
    postgres_promote(&b);
    long long missing = lost(&b);
    print_message("%lld of %d acknowledged calls lost with asynchronous replication\n", missing,
                  atomic_load(&acknowledged));
    assert_true(missing > 0);
    for (int i = 0; i < STORES; i++)
        hf_close(stores[i]);
    ledgers_free();
    relay_end(&relay);
}

static int begin(void **state)
{
    (void)state;
    postgres_init(&a);
    postgres_init(&b);
    postgres_start(&a);
    return 0;
}

static int end(void **state)
{
    (void)state;
    postgres_end(&a);
    postgres_end(&b);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_acknowledged_survives_every_failover, begin, end),
        cmocka_unit_test_setup_teardown(without_a_synchronous_standby_the_same_test_sees_the_loss, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
