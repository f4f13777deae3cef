/* Tenants take turns: a tenant that sends thousands of operations at a time does not make others
 * wait behind them. How long others wait is told in operations of the first that are answered
 * meanwhile, whatever the machine. */
#include "postgres/kit/postgres.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "holdfast.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { FLOODS = 4, LINES = 8000, FLOOD = 5 * LINES, CALLS = 4000, ORDERED = 300 };

static struct postgres p;
static struct hf_db *db;
static atomic_bool over;
static atomic_long answered; /* of the tenant that floods */

static int begin(void **state)
{
    struct hf_options options = { .no_background = true };
    struct hf_error why;
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    options.postgres = postgres_conninfo(&p);
    if (hf_open(NULL, &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_close(db);
    postgres_end(&p);
    return 0;
}

/* ---- The flood ---- */

struct flood {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t done;
    size_t left;
    unsigned number;
    struct hf_op ops[LINES];
    struct hf_request requests[LINES];
    char keys[LINES][32], rooms[LINES][32];
};
static struct flood *floods;

static void flood_done(struct hf_op *op, enum hf_status status)
{
    struct flood *f = op->arg;
    if (status != HF_OK)
        atomic_store(&over, true);
    atomic_fetch_add(&answered, 1);
    pthread_mutex_lock(&f->lock);
    if (--f->left == 0)
        pthread_cond_signal(&f->done);
    pthread_mutex_unlock(&f->lock);
}

static void *flood_run(void *arg)
{
    struct flood *f = arg;
    for (unsigned round = 0; !atomic_load(&over); round++) {
        for (size_t i = 0; i < LINES; i++) {
            snprintf(f->keys[i], sizeof f->keys[i], "%u-%u-%zu", f->number, round, i);
            snprintf(f->rooms[i], sizeof f->rooms[i], "%u-%zu", f->number, i);
            f->requests[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                                  .tenant = hf_str("a"),
                                                  .key = hf_str(f->keys[i]),
                                                  .place_hold = { .resource = hf_str(f->rooms[i]),
                                                                  .requester = hf_str("x"),
                                                                  .duration_ms = 1 } };
            f->ops[i] = (struct hf_op){ .request = &f->requests[i],
                                        .done = flood_done,
                                        .arg = f,
                                        .order_key = f,
                                        .next = i + 1 < LINES ? &f->ops[i + 1] : NULL };
        }
        f->left = LINES;
        hf_submit(db, f->ops);
        pthread_mutex_lock(&f->lock);
        while (f->left > 0)
            pthread_cond_wait(&f->done, &f->lock);
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

static void flood_begin(void)
{
    atomic_store(&over, false);
    atomic_store(&answered, 0);
    floods = calloc(FLOODS, sizeof *floods);
    assert_non_null(floods);
    for (unsigned i = 0; i < FLOODS; i++) {
        floods[i].number = i;
        pthread_mutex_init(&floods[i].lock, NULL);
        pthread_cond_init(&floods[i].done, NULL);
        assert_int_equal(pthread_create(&floods[i].thread, NULL, flood_run, &floods[i]), 0);
    }
    while (atomic_load(&answered) < LINES)
        sched_yield();
}

static void flood_end(void)
{
    assert_false(atomic_load(&over)); /* all of it went well */
    atomic_store(&over, true);
    for (unsigned i = 0; i < FLOODS; i++)
        pthread_join(floods[i].thread, NULL);
    free(floods);
}

/* ---- The other tenant ---- */

static enum hf_status write_next(const char *tenant, unsigned number)
{
    char key[32];
    snprintf(key, sizeof key, "k%u", number);
    struct hf_request q = { .action = HF_WRITE,
                            .tenant = hf_str(tenant),
                            .key = hf_str(key),
                            .write = { .name = hf_str("r"), .value = hf_str("v") } };
    return hf_do(db, &q, NULL);
}

static int ascending(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static void a_flood_does_not_make_others_wait(void **state)
{
    static long waited[CALLS];
    unsigned calls = 0;
    (void)state;
    assert_int_equal(write_next("b", CALLS), HF_OK);
    flood_begin();
    while (calls < CALLS && atomic_load(&answered) < FLOOD) {
        long before = atomic_load(&answered);
        assert_int_equal(write_next("b", calls), HF_OK);
        waited[calls++] = atomic_load(&answered) - before;
        server_pause_ms(10);
    }
    flood_end();
    qsort(waited, calls, sizeof *waited, ascending);
    printf("%u calls, while so many were answered to another: nine of ten up to %ld, most %ld\n",
           calls, waited[calls * 9 / 10], waited[calls - 1]);
    assert_true(calls > 20);
    assert_true(waited[calls * 9 / 10] <= 2048);
    assert_true(waited[calls - 1] <= 8192);
}

/* ---- The order of one order key ---- */

static atomic_int left, failed;

static void ordered_done(struct hf_op *op, enum hf_status status)
{
    (void)op;
    if (status != HF_OK)
        atomic_fetch_add(&failed, 1);
    atomic_fetch_sub(&left, 1);
}

/* Two tenants with one order key, each of whose writes comes behind the one before it. */
static void what_is_in_a_lane_stays_in_order(void **state)
{
    static struct hf_op ops[ORDERED];
    static struct hf_request requests[ORDERED];
    static char keys[ORDERED][16];
    (void)state;
    flood_begin();
    atomic_store(&left, ORDERED);
    atomic_store(&failed, 0);
    for (unsigned i = 0; i < ORDERED; i++) {
        snprintf(keys[i], sizeof keys[i], "o%u", i);
        requests[i] =
            (struct hf_request){ .action = HF_WRITE,
                                 .tenant = hf_str(i % 3 ? "b" : "c"),
                                 .key = hf_str(keys[i]),
                                 .write = { .name = hf_str("ordered"),
                                            .value = hf_str("v"),
                                            .has_if_version = true,
                                            .if_version = i % 3 ? i - i / 3 - 1 : i / 3 } };
        ops[i] = (struct hf_op){
            .request = &requests[i],
            .done = ordered_done,
            .order_key = ops,
            .next = i % 50 != 49 && i + 1 < ORDERED ? &ops[i + 1] : NULL,
        };
    }
    for (unsigned i = 0; i < ORDERED; i += 50)
        hf_submit(db, &ops[i]);
    while (atomic_load(&left) > 0)
        sched_yield();
    flood_end();
    assert_int_equal(atomic_load(&failed), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_flood_does_not_make_others_wait),
        TEST(what_is_in_a_lane_stays_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
