/* Many threads on one store: one effect a key, one answer for all, commits that are shared. To be
 * run under the thread sanitizer too. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

static struct kit *k;

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    return 0;
}

static int setup_background(void **state)
{
    (void)state;
    k = kit_make();
    k->options.no_background = false;
    kit_reopen(k);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

static struct kit_worker workers[32];

static void run(int count, void (*work)(struct kit_worker *w))
{
    kit_run(workers, count, work);
}

static struct hf_request place(const char *key, const char *resource)
{
    return (struct hf_request){ .action = HF_PLACE_HOLD,
                                .key = hf_str(key),
                                .place_hold = { hf_str(resource), hf_str("guest"), HOUR, 0 } };
}

/* ---- One effect a key ---- */

enum { THREADS = 16, KEYS = 40, ROUNDS = 120 };

static struct first {
    pthread_mutex_t lock;
    bool known;
    enum hf_status status;
    struct hf_hold hold; /* its slices are not looked at */
    int fresh;
} firsts[KEYS];

static void compare_with_first(struct first *f, const struct hf_result *got)
{
    const struct hf_hold *h = &got->answer.hold;
    pthread_mutex_lock(&f->lock);
    f->fresh += !got->replayed;
    if (!f->known) {
        f->known = true;
        f->status = got->answer.status;
        f->hold = *h;
    }
    KIT_WANT(got->answer.status == f->status);
    KIT_WANT(f->status != HF_OK ||
             (strcmp(h->id, f->hold.id) == 0 && h->ordinal == f->hold.ordinal &&
              h->state == f->hold.state && h->placed_at == f->hold.placed_at &&
              h->expires_at == f->hold.expires_at));
    pthread_mutex_unlock(&f->lock);
}

static void place_few_keys(struct kit_worker *w)
{
    struct hf_result got = HF_RESULT_INIT;
    for (int i = 0; i < ROUNDS; i++) {
        int n = (int)test_below(&w->random, KEYS);
        char key[24], resource[24];
        snprintf(key, sizeof key, "key-%d", n);
        snprintf(resource, sizeof resource, "resource-%d",
                 n / 2); /* two keys want each: one is refused */
        struct hf_request r = place(key, resource);
        enum hf_status st = hf_do(k->db, &r, &got);
        KIT_WANT(st == HF_OK || st == HF_RESOURCE_UNAVAILABLE);
        compare_with_first(&firsts[n], &got);
    }
    hf_result_clear(&got);
}

static void sixteen_threads_over_few_keys_see_one_effect_and_one_answer_a_key(void **state)
{
    (void)state;
    for (int i = 0; i < KEYS; i++) {
        firsts[i] = (struct first){ .known = false };
        pthread_mutex_init(&firsts[i].lock, NULL);
    }
    run(THREADS, place_few_keys);
    for (int i = 0; i < KEYS; i++) {
        assert_true(firsts[i].known);
        assert_int_equal(firsts[i].fresh, 1);
        pthread_mutex_destroy(&firsts[i].lock);
    }
    struct hf_stats st = kit_stats(k);
    assert_int_equal(st.holds, KEYS / 2);
    assert_int_equal(st.operations, THREADS * ROUNDS);
    assert_int_equal(st.duplicates, THREADS * ROUNDS - KEYS);
    assert_int_equal(st.tokens, KEYS);
}

static _Atomic int inside, refused;
enum { CAPACITY = 3 };

/* The holds on one resource are a semaphore: nobody may get in past its capacity. */
static void enter_and_leave(struct kit_worker *w)
{
    struct hf_result got = HF_RESULT_INIT;
    for (int i = 0; i < 60; i++) {
        char key[32], id[HF_ID_SIZE];
        snprintf(key, sizeof key, "in-%d-%d", w->number, i);
        struct hf_request r = place(key, "room");
        enum hf_status st = hf_do(k->db, &r, &got);
        if (st != HF_OK) {
            KIT_WANT(st == HF_RESOURCE_UNAVAILABLE);
            atomic_fetch_add(&refused, 1);
            continue;
        }
        KIT_WANT(atomic_fetch_add(&inside, 1) + 1 <= CAPACITY);
        w->done++;
        memcpy(id, got.answer.hold.id, HF_ID_SIZE);
        sched_yield();
        atomic_fetch_sub(&inside, 1);
        snprintf(key, sizeof key, "out-%d-%d", w->number, i);
        r = (struct hf_request){ .action = HF_RELEASE, .key = hf_str(key), .hold = { hf_str(id) } };
        st = hf_do(k->db, &r, &got);
        KIT_WANT(st == HF_OK);
    }
    hf_result_clear(&got);
}

static void capacity_is_never_passed(void **state)
{
    (void)state;
    atomic_store(&inside, 0);
    atomic_store(&refused, 0);
    assert_int_equal(kit_resource(k, "room", CAPACITY), HF_OK);
    run(THREADS, enter_and_leave);
    uint64_t entered = 0;
    for (int i = 0; i < THREADS; i++)
        entered += workers[i].done;
    assert_int_equal(kit_stats(k).holds, entered);
    assert_true(atomic_load(&refused) > 0); /* there was a crowd */
    assert_int_equal(entered + (uint64_t)atomic_load(&refused), THREADS * 60);
    assert_int_equal(kit_get(k, HF_GET_RESOURCE, "room"), HF_OK);
    assert_int_equal(k->got.answer.resource.held, 0);
}

/* ---- Sharing a commit ---- */

static void place_own_keys(struct kit_worker *w)
{
    for (int i = 0; i < 20; i++) {
        char key[32];
        snprintf(key, sizeof key, "own-%d-%d", w->number, i);
        struct hf_request r = place(key, key);
        enum hf_status st = hf_do(k->db, &r, NULL);
        KIT_WANT(st == HF_OK);
    }
}

static void threads_that_wait_together_share_a_sync(void **state)
{
    (void)state;
    atomic_store(&k->io.slow_sync_us, 20000); /* others get the processor meanwhile */
    uint64_t before = atomic_load(&k->io.syncs);
    run(32, place_own_keys);
    uint64_t syncs = atomic_load(&k->io.syncs) - before;
    atomic_store(&k->io.slow_sync_us, 0);
    assert_int_equal(kit_stats(k).holds, 32 * 20);
    assert_true(syncs * 4 < 32 * 20);
    /* How many meet in a batch on PostgreSQL depends on how fast the machine is: some do. */
    assert_true(kit_stats(k).syncs * (k->remote ? 1 : 4) < 32 * 20);
}

static void admit_one(struct kit_worker *w)
{
    struct hf_result got = HF_RESULT_INIT;
    for (int i = 0; i < 100; i++) {
        char identity[24];
        snprintf(identity, sizeof identity, "identity-%d", i);
        struct hf_request r = { .action = HF_ADMIT,
                                .identity = { .guard = hf_str(w->number % 2 ? "disk" : "memory"),
                                              .identity = hf_str(identity) } };
        enum hf_status st = hf_do(k->db, &r, &got);
        KIT_WANT(st == HF_OK);
        w->done += !got.answer.seen.seen;
    }
    hf_result_clear(&got);
}

static void admit_lets_one_thread_in_for_each_identity(void **state)
{
    (void)state;
    assert_int_equal(kit_guard(k, "disk", HOUR, NULL, 0), HF_OK);
    assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_SET_GUARD,
                                                    .set_guard = { .name = hf_str("memory"),
                                                                   .window_ms = HOUR,
                                                                   .volatile_only = true } }),
                     HF_OK);
    run(THREADS, admit_one);
    uint64_t in[2] = { 0, 0 };
    for (int i = 0; i < THREADS; i++)
        in[i % 2] += workers[i].done;
    assert_int_equal(in[0], 100);
    assert_int_equal(in[1], 100);
}

/* ---- Many at once ---- */

static struct hf_request group[HF_GROUP_MAX + 1];
static struct hf_result results[HF_GROUP_MAX];
static char group_keys[HF_GROUP_MAX + 1][24];

static void eight_thousand_requests_in_one_call_are_decided_in_order(void **state)
{
    (void)state;
    for (int i = 0; i <= HF_GROUP_MAX; i++) {
        snprintf(group_keys[i], sizeof group_keys[i], "g-%d", i);
        group[i] = place(group_keys[i], group_keys[i]);
    }
    for (int i = 1; i < HF_GROUP_MAX; i += 16)
        group[i] = group[i - 1]; /* some come twice */
    assert_int_equal(hf_do_many(k->db, group, results, HF_GROUP_MAX + 1), HF_MISUSE);
    assert_int_equal(kit_stats(k).holds, 0);
    uint64_t syncs = kit_stats(k).syncs;
    assert_int_equal(hf_do_many(k->db, group, results, HF_GROUP_MAX), HF_OK);
    assert_true(kit_stats(k).syncs - syncs < 20);
    uint64_t ordinal = 0, holds = 0;
    for (int i = 0; i < HF_GROUP_MAX; i++) {
        bool twice = i % 16 == 1;
        assert_int_equal(results[i].answer.status, HF_OK);
        assert_int_equal(results[i].replayed, twice);
        assert_true(twice ? results[i].answer.hold.ordinal == ordinal
                          : results[i].answer.hold.ordinal > ordinal);
        ordinal = results[i].answer.hold.ordinal;
        holds += !twice;
    }
    assert_true(k->remote || ordinal == holds); /* without a gap */
    assert_int_equal(kit_stats(k).holds, holds);
    kit_reopen(k);
    assert_int_equal(hf_do_many(k->db, group, results, HF_GROUP_MAX), HF_OK);
    for (int i = 0; i < HF_GROUP_MAX; i++) {
        assert_true(results[i].replayed);
        assert_true(kit_is(results[i].answer.hold.resource, group_keys[i % 16 == 1 ? i - 1 : i]));
        hf_result_clear(&results[i]);
    }
    assert_int_equal(kit_stats(k).holds, holds);
    assert_int_equal(hf_do_many(k->db, group, NULL, 0), HF_OK);
}

/* ---- Everything at the same time ---- */

static const struct timespec millisecond = { 0, 1000000 };
static _Atomic bool stop;
static _Atomic int writers;

static void list_and_count(struct kit_worker *w)
{
    static const enum hf_list_kind kinds[] = { HF_LIST_HOLDS, HF_LIST_RESOURCES, HF_LIST_GUARDS };
    while (!atomic_load(&stop)) {
        struct hf_page page;
        struct hf_query q = { .kind = kinds[test_below(&w->random, 3)], .limit = 50 };
        do {
            enum hf_status st = hf_list(k->db, &q, &page);
            KIT_WANT(st == HF_OK);
            for (size_t i = 0; q.kind == HF_LIST_RESOURCES && i < page.count; i++)
                KIT_WANT(page.resources[i].held + page.resources[i].confirmed <=
                         page.resources[i].capacity);
            for (size_t i = 1; q.kind == HF_LIST_HOLDS && i < page.count; i++)
                KIT_WANT(page.holds[i].ordinal < page.holds[i - 1].ordinal);
            q.cursor = page.next_cursor;
            hf_page_clear(&page);
        } while (q.cursor != 0 && !atomic_load(&stop));
        struct hf_stats st;
        hf_stats(k->db, &st);
        KIT_WANT(st.holds_live <= st.holds);
        w->done++;
    }
}

static void write_mixed(struct kit_worker *w)
{
    struct hf_result got = HF_RESULT_INIT;
    char key[32], resource[32], id[HF_ID_SIZE] = "";
    for (int i = 0; i < 150; i++) {
        snprintf(key, sizeof key, "mixed-%d-%d", w->number, i);
        snprintf(resource, sizeof resource, "shared-%llu",
                 (unsigned long long)test_below(&w->random, 5));
        struct hf_request r = place(key, resource);
        switch (i % 5) {
        case 1:
            r = (struct hf_request){ .action = HF_CONFIRM,
                                     .key = hf_str(key),
                                     .hold = { hf_str(id) } };
            break;
        case 2:
            r = (struct hf_request){ .action = HF_REVERSE,
                                     .key = hf_str(key),
                                     .hold = { hf_str(id) } };
            break;
        case 3:
            r = (struct hf_request){ .action = HF_SET_GUARD,
                                     .set_guard = { .name = hf_str(resource),
                                                    .window_ms = 1 + i } };
            break;
        case 4:
            r = (struct hf_request){ .action = HF_ADMIT,
                                     .identity = { .guard = hf_str(resource),
                                                   .identity = hf_str(key) } };
            break;
        default: break;
        }
        enum hf_status st = hf_do(k->db, &r, &got);
        KIT_WANT(st < HF_STORAGE_FAILURE);
        if (i % 5 == 0 && st == HF_OK)
            memcpy(id, got.answer.hold.id, HF_ID_SIZE);
        atomic_fetch_add(&k->io.wall, 1);
    }
    hf_result_clear(&got);
}

static void write_or_read(struct kit_worker *w)
{
    if (w->number >= 6) {
        list_and_count(w);
        return;
    }
    write_mixed(w);
    if (atomic_fetch_sub(&writers, 1) == 1)
        atomic_store(&stop, true);
}

static void lists_figures_and_writes_go_on_together(void **state)
{
    (void)state;
    atomic_store(&stop, false);
    atomic_store(&writers, 6);
    run(8, write_or_read);
    assert_true(workers[6].done > 0 && workers[7].done > 0);
    assert_int_equal(kit_stats(k).operations, 6 * 150);
    static const char *const tenants[] = { "" };
    char *before = kit_dump(k, tenants, 1);
    kit_reopen(k);
    char *after = kit_dump(k, tenants, 1);
    assert_string_equal(after, before);
    free(before);
    free(after);
}

static void place_or_maintain(struct kit_worker *w)
{
    if (w->number < 4) {
        write_mixed(w);
        return;
    }
    for (int i = 0; i < 300; i++) {
        hf_maintain(k->db);
        sched_yield();
    }
}

static void maintenance_may_be_called_from_several_threads(void **state)
{
    (void)state;
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.snapshot_every_bytes = 65536;
    k->options.idempotency_window_ms = 100;
    kit_open(k);
    for (int round = 0; round < 3; round++) {
        run(8, place_or_maintain);
        kit_at(k, (round + 1) * DAY);
    }
    kit_settle(k);
    struct hf_stats st = kit_stats(k);
    assert_int_equal(st.holds_live, 0); /* all are overdue */
    assert_int_equal(st.tokens, 0);
    assert_true(k->remote || (st.snapshots > 0 && kit_files(k, ".zst") > 0));
}

static _Atomic int boxes_out, next_number;

/* A request in flight with all that it borrows, freed by its callback. */
struct box {
    struct hf_op op;
    struct hf_request request;
    char key[32], resource[32];
};

static void box_done(struct hf_op *op, enum hf_status status)
{
    KIT_WANT(status < HF_STORAGE_FAILURE);
    atomic_fetch_sub(&boxes_out, 1);
    free(op->arg);
}

static void box_submit(const char *key, const char *resource)
{
    struct box *b = calloc(1, sizeof *b);
    KIT_WANT(b);
    snprintf(b->key, sizeof b->key, "%s", key);
    snprintf(b->resource, sizeof b->resource, "%s", resource);
    b->request = place(b->key, b->resource);
    b->request.place_hold.duration_ms = 50;
    b->op = (struct hf_op){ .request = &b->request, .done = box_done, .arg = b };
    atomic_fetch_add(&boxes_out, 1);
    hf_submit(k->db, &b->op);
}

static void list_some(uint64_t *random)
{
    struct hf_query q = { .kind = HF_LIST_HOLDS,
                          .limit = 20,
                          .state = (enum hf_hold_state)test_below(random, HF_EXPIRED + 1) };
    for (int pages = 0; pages < 5; pages++) {
        struct hf_page page;
        enum hf_status st = hf_list(k->db, &q, &page);
        KIT_WANT(st == HF_OK);
        q.cursor = page.next_cursor;
        hf_page_clear(&page);
        if (q.cursor == 0)
            break;
    }
}

static void do_anything(struct kit_worker *w)
{
    static const enum hf_action ends[] = { HF_CONFIRM, HF_RELEASE, HF_REVERSE, HF_REVERSE };
    struct hf_result got = HF_RESULT_INIT;
    char id[HF_ID_SIZE] = "";
    for (int i = 0; i < 300; i++) {
        char key[32], resource[32];
        int n = atomic_fetch_add(&next_number, 1) + 1;
        snprintf(key, sizeof key, "any-%d", n);
        snprintf(resource, sizeof resource, "any-%llu",
                 (unsigned long long)test_below(&w->random, 40));
        uint64_t what = test_below(&w->random, 8);
        struct hf_request r = place(key, resource);
        r.place_hold.duration_ms = 1 + (int64_t)test_below(&w->random, 200);
        if (what == 0) {
            list_some(&w->random);
            continue;
        }
        if (what == 1) {
            box_submit(key, resource);
            continue;
        }
        if (what <= 4)
            r = (struct hf_request){ .action = ends[test_below(&w->random, 4)],
                                     .hold = { hf_str(id) } };
        if (what == 4) {
            r.client = hf_str(resource);
            r.sequence = (uint64_t)n;
        } else {
            r.key = hf_str(key);
        }
        enum hf_status st = hf_do(k->db, &r, &got);
        KIT_WANT(st < HF_STORAGE_FAILURE);
        if (r.action == HF_PLACE_HOLD && st == HF_OK)
            memcpy(id, got.answer.hold.id, HF_ID_SIZE);
        atomic_fetch_add(&k->io.wall, (int64_t)test_below(&w->random, 3));
    }
    hf_result_clear(&got);
}

static void the_background_sweeps_snapshots_and_compresses_while_everybody_writes(void **state)
{
    (void)state;
    static const char *const tenants[] = { "" };
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.snapshot_every_bytes = 65536;
    k->options.idempotency_window_ms = 50;
    kit_open(k);
    uint64_t snapshots = 0;
    atomic_store(&next_number, 0);
    for (int round = 0; round < (k->remote ? 1 : 3); round++) {
        run(8, do_anything);
        hf_flush(k->db);
        assert_int_equal(atomic_load(&boxes_out), 0);
        snapshots += kit_stats(k).snapshots;
        atomic_fetch_add(&k->io.wall, DAY); /* everything is overdue now */
        for (int i = 0; kit_stats(k).holds_live > 0 && i < 60000; i++) {
            hf_maintain(k->db); /* beside the background thread */
            nanosleep(&millisecond, NULL);
        }
        assert_int_equal(kit_stats(k).holds_live, 0);
        for (int i = 0; !k->remote && kit_files(k, ".zst") == 0 && i < 60000; i++)
            nanosleep(&millisecond, NULL); /* the background gets round to it */
        char *before = kit_dump(k, tenants, 1);
        kit_reopen(k);
        char *after = kit_dump(k, tenants, 1);
        assert_string_equal(after, before);
        free(before);
        free(after);
    }
    assert_true(k->remote || (snapshots > 0 && kit_files(k, ".zst") > 0));
    assert_int_equal(atomic_load(&k->warnings), 0);
}

static void without_a_background_thread_nothing_expires_by_itself(void **state)
{
    (void)state;
    char id[HF_ID_SIZE];
    kit_held(k, "room", 1, id);
    kit_at(k, HOUR);
    struct timespec a_while = { 0, 200000000 };
    nanosleep(&a_while,
              NULL); /* for it to expire after all; if it takes longer, this test misses it */
    assert_int_equal(kit_get_hold(k, id), HF_OK);
    assert_int_equal(k->got.answer.hold.state, HF_HELD);
    assert_true(hf_maintain(k->db));
    assert_int_equal(kit_get_hold(k, id), HF_OK);
    assert_int_equal(k->got.answer.hold.state, HF_EXPIRED);
    assert_int_equal(k->got.answer.hold.ended_at, KIT_START + HOUR);
    kit_settle(k);
    assert_false(hf_maintain(k->db));
}

/* TSan: misused() reads db->deciding while another thread's apply writes it. And background is
 * written unlocked. */

static enum hf_status fn(struct hf_tx *tx, void *arg)
{
    (void)arg;
    for (int z = 0; z < 3; z++)
        sched_yield();
    return hf_tx_put(tx, hf_str("a"), hf_str("1"));
}

static _Atomic int n;

static void *apply_and_ask(void *arg)
{
    (void)arg;
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "k%d", atomic_fetch_add(&n, 1));
        struct hf_request r = { .action = HF_APPLY,
                                .key = hf_str(key),
                                .apply = { .name = hf_str("n"), .fn = fn } };
        KIT_WANT(hf_do(k->db, &r, NULL) == HF_OK);
    }
    return NULL;
}

static void asking_while_an_apply_runs_does_not_race(void **s)
{
    (void)s;
    k = kit_make();
    pthread_t th[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&th[i], NULL, apply_and_ask, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(th[i], NULL);
    kit_free(k);
}

static void opening_while_others_commit_does_not_race(void **s)
{
    (void)s;
    k = kit_make();
    char id[HF_ID_SIZE];
    for (int i = 0; i < 300; i++) {
        char r[16];
        snprintf(r, sizeof r, "r%d", i);
        kit_held(k, r, 1, id);
    }
    kit_at(k, 1000);
    k->options.no_background = false;
    for (int i = 0; i < 20; i++) {
        kit_reopen(k);
        for (int z = 0; z < 20; z++) {
            char r[16];
            snprintf(r, sizeof r, "q%d-%d", i, z);
            kit_held(k, r, 1, id);
        }
        kit_at(k, 2000 * (i + 1));
    }
    kit_free(k);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_BACKGROUND(name) cmocka_unit_test_setup_teardown(name, setup_background, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sixteen_threads_over_few_keys_see_one_effect_and_one_answer_a_key),
        TEST(capacity_is_never_passed),
        TEST(threads_that_wait_together_share_a_sync),
        TEST(admit_lets_one_thread_in_for_each_identity),
        TEST(eight_thousand_requests_in_one_call_are_decided_in_order),
        TEST_BACKGROUND(lists_figures_and_writes_go_on_together),
        TEST(maintenance_may_be_called_from_several_threads),
        TEST_BACKGROUND(the_background_sweeps_snapshots_and_compresses_while_everybody_writes),
        TEST(without_a_background_thread_nothing_expires_by_itself),
        cmocka_unit_test(asking_while_an_apply_runs_does_not_race),
        cmocka_unit_test(opening_while_others_commit_does_not_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
