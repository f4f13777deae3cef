/* hf_submit and hf_flush: every callback once, in order, on whatever thread, and never before the
 * disk has it. On PostgreSQL nobody waits for a flush, and the order is that of deciding, inside a
 * order key. To be run under the thread sanitizer too. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <pthread.h>
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

enum { OPS = 1000 };

static struct async {
    struct hf_op op;
    struct hf_request request;
    struct hf_result result;
    char key[32];
    int index;
    _Atomic int calls;
    enum hf_status status;
} ops[OPS * 2];

static _Atomic int called, slots;
static int order[OPS * 2]; /* filled up to `called` */

static void note_call(struct hf_op *op, enum hf_status status)
{
    struct async *a = op->arg;
    a->status = status;
    KIT_WANT(atomic_fetch_add(&a->calls, 1) == 0);
    order[atomic_fetch_add(&slots, 1)] = a->index;
    atomic_fetch_add(&called, 1);
}

static void async_make(int i, const char *key, void (*done)(struct hf_op *, enum hf_status))
{
    struct async *a = &ops[i];
    hf_result_clear(&a->result);
    memset(a, 0, sizeof *a);
    a->index = i;
    snprintf(a->key, sizeof a->key, "%s", key);
    a->request = place(a->key, a->key);
    a->op = (struct hf_op){ .request = &a->request, .result = &a->result, .done = done, .arg = a };
}

/* orders: how many of them share the operations; 0: none has a order key. */
static void async_make_many(int count, int orders, void (*done)(struct hf_op *, enum hf_status))
{
    atomic_store(&called, 0);
    atomic_store(&slots, 0);
    for (int i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "async-%d", i);
        async_make(i, key, done);
        if (orders)
            ops[i].op.order_key = &ops[i % orders];
    }
}

/* Were they decided in the order of submission? Holds are numbered as they are placed. */
static void assert_decided_in_order(int count, int orders)
{
    for (int i = orders; i < count; i++)
        if (!ops[i].result.replayed && !ops[i - orders].result.replayed)
            assert_true(ops[i].result.answer.hold.ordinal >
                        ops[i - orders].result.answer.hold.ordinal);
}

static void async_clear(int count)
{
    for (int i = 0; i < count; i++)
        hf_result_clear(&ops[i].result);
}

static void submitted_ones_wait_for_the_flush_and_come_in_order(void **state)
{
    (void)state;
    assert_int_equal(kit_place(k, "async-500", "async-500", "guest", HOUR),
                     HF_OK); /* durable already */
    async_make_many(OPS, 1, note_call);
    for (int i = 0; i < OPS; i++) /* in lists of ten */
        ops[i].op.next = i % 10 < 9 ? &ops[i + 1].op : NULL;
    for (int i = 0; i < OPS; i += 10)
        hf_submit(k->db, &ops[i].op);
    if (!k->remote) {
        assert_int_equal(atomic_load(&called), 1); /* the one that need not wait */
        assert_int_equal(order[0], 500);
    }
    uint64_t syncs = atomic_load(&k->io.syncs);
    hf_flush(k->db);
    assert_int_equal(atomic_load(&called), OPS);
    assert_true(atomic_load(&k->io.syncs) - syncs <= 2);
    for (int i = 1, expected = 0; !k->remote && i < OPS; i++, expected++) {
        expected += expected == 500;
        assert_int_equal(order[i], expected);
    }
    for (int i = 0; i < OPS; i++) {
        assert_int_equal(ops[i].status, HF_OK);
        assert_int_equal(ops[i].calls, 1);
        assert_true(kit_is(ops[i].result.answer.hold.resource, ops[i].key));
        assert_null(ops[i].op.next);
        assert_int_equal(ops[i].result.replayed, i == 500);
    }
    assert_decided_in_order(OPS, 1);
    async_clear(OPS);
    hf_flush(k->db); /* with nothing to do */
}

static void an_answer_that_saw_something_undurable_waits_too(void **state)
{
    (void)state;
    async_make_many(4, 1, note_call);
    ops[1].request = ops[0].request; /* the same key: its answer is not on disk yet */
    ops[2].request = (struct hf_request){ .action = HF_GET_RESOURCE, .get = { hf_str("async-0") } };
    ops[3].request = (struct hf_request){ .action = HF_GET_TOKEN, .key = hf_str("async-0") };
    for (int i = 0; i < 3; i++)
        ops[i].op.next = &ops[i + 1].op;
    hf_submit(k->db, &ops[0].op);
    if (!k->remote)
        assert_int_equal(atomic_load(&called), 0);
    hf_flush(k->db);
    assert_int_equal(atomic_load(&called), 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(order[i], i);
        assert_int_equal(ops[i].status, HF_OK);
    }
    assert_true(ops[1].result.replayed);
    assert_int_equal(kit_stats(k).races, 1);
    assert_int_equal(kit_stats(k).holds, 1);
    async_clear(4);
}

static const struct timespec millisecond = { 0, 1000000 };

static void wait_for_calls(int count)
{
    for (int i = 0; atomic_load(&called) < count && i < 60000; i++)
        nanosleep(&millisecond, NULL);
    assert_int_equal(atomic_load(&called), count);
}

static void the_background_thread_answers_without_a_flush(void **state)
{
    (void)state;
    async_make_many(OPS, 1, note_call);
    for (int i = 0; i < OPS; i++)
        hf_submit(k->db, &ops[i].op);
    wait_for_calls(OPS);
    for (int i = 0; !k->remote && i < OPS; i++)
        assert_int_equal(order[i], i);
    assert_decided_in_order(OPS, 1);
    assert_true(kit_stats(k).holds == OPS);
    async_clear(OPS);
}

/* Each callback of the first half submits one of the second. */
static void submit_another(struct hf_op *op, enum hf_status status)
{
    const struct async *a = op->arg;
    note_call(op, status);
    if (a->index < OPS / 2)
        hf_submit(k->db, &ops[a->index + OPS / 2].op);
}

static void a_callback_may_submit(void **state)
{
    (void)state;
    async_make_many(OPS, 0, submit_another);
    for (int i = 0; i < OPS / 2; i++)
        hf_submit(k->db, &ops[i].op);
    while (atomic_load(&called) < OPS) /* a flush answers what was submitted before it */
        hf_flush(k->db);
    for (int i = 0; i < OPS; i++) {
        assert_int_equal(ops[i].calls, 1);
        assert_int_equal(ops[i].status, HF_OK);
    }
    async_clear(OPS);
}

static void a_callback_may_submit_in_the_background_too(void **state)
{
    (void)state;
    async_make_many(OPS, 0, submit_another);
    for (int i = 0; i < OPS / 2; i++)
        hf_submit(k->db, &ops[i].op);
    wait_for_calls(OPS);
    for (int i = 0; i < OPS; i++)
        assert_int_equal(ops[i].calls, 1);
    async_clear(OPS);
}

static void submit_own_part(struct kit_worker *w)
{
    for (int i = w->number; i < OPS; i += 8)
        hf_submit(k->db, &ops[i].op);
    if (w->number % 2)
        hf_flush(k->db);
}

static void submitters_on_many_threads_are_each_answered_once_and_in_their_order(void **state)
{
    (void)state;
    int last[8];
    async_make_many(OPS, 8, note_call);
    run(8, submit_own_part);
    wait_for_calls(OPS);
    for (int i = 0; i < 8; i++)
        last[i] = -1;
    for (int i = 0; i < OPS; i++) {
        assert_true(k->remote || order[i] > last[order[i] % 8]);
        last[order[i] % 8] = order[i];
        assert_int_equal(ops[i].calls, 1);
    }
    assert_decided_in_order(OPS, 8);
    async_clear(OPS);
}

static void close_answers_what_is_in_flight(void **state)
{
    (void)state;
    async_make_many(100, 0, note_call);
    for (int i = 0; i < 100; i++)
        hf_submit(k->db, &ops[i].op);
    kit_close(k);
    assert_int_equal(atomic_load(&called), 100);
    kit_open(k);
    assert_int_equal(kit_stats(k).holds, 100);
    async_clear(100);
}

static void a_failed_sync_tells_everybody_who_waits(void **state)
{
    (void)state;
    both_needs_files();
    assert_int_equal(kit_place(k, "durable", "durable", "guest", HOUR), HF_OK);
    async_make_many(10, 0, note_call);
    for (int i = 0; i < 10; i++)
        hf_submit(k->db, &ops[i].op);
    atomic_store(&k->io.fail_sync, 1);
    hf_flush(k->db);
    assert_int_equal(atomic_load(&called), 10);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(ops[i].status, HF_INDETERMINATE);
        assert_int_equal(ops[i].result.answer.status, HF_INDETERMINATE);
        assert_int_equal(ops[i].result.answer.kind, HF_NO_RECORD);
        assert_int_equal(ops[i].calls, 1);
    }
    assert_int_equal(atomic_load(&k->fatal), 1);
    assert_int_equal(kit_place(k, "later", "later", "guest", HOUR), HF_STORAGE_FAILURE);
    assert_false(hf_maintain(k->db));
    async_make(10, "async-late", note_call);
    hf_submit(k->db, &ops[10].op);
    assert_int_equal(ops[10].calls, 1);
    assert_int_equal(ops[10].status, HF_STORAGE_FAILURE);
    hf_flush(k->db);
    kit_reopen(k);
    for (int i = 0; i < 10;
         i++) { /* the retry finds the truth: here all of it had reached the disk */
        assert_int_equal(kit_place(k, ops[i].key, ops[i].key, "guest", HOUR), HF_OK);
        assert_true(k->got.replayed);
    }
    async_clear(11);
}

/* The record of a refusal only tells why: it must not make an answer of unknown outcome out of
 * it. */
static void a_refusal_that_is_too_long_comes_without_its_record(void **state)
{
    (void)state;
    static const struct hf_value one = { .type = HF_TYPE_MAX, .number = 1 };
    static char value[1000];
    struct hf_request write = { .action = HF_WRITE, .key = hf_str("w") };
    struct hf_request merge = { .action = HF_MERGE, .merge = { hf_str("x"), &one } };
    write.write.name = hf_str("x");
    write.write.value = hf_mem(value, sizeof value);
    assert_int_equal(hf_do(k->db, &write, NULL), HF_OK);
    for (int i = 0; i < 2; i++) {
        struct async a = { .result = HF_RESULT_INIT };
        a.op = (struct hf_op){ .request = &merge,
                               .result = &a.result,
                               .done = note_call,
                               .arg = &a,
                               .answer_max = i ? 100 : 0 };
        hf_submit(k->db, &a.op);
        hf_flush(k->db);
        assert_int_equal(a.calls, 1);
        assert_int_equal(a.status, HF_INVALID_REQUEST);
        assert_int_equal(a.result.answer.kind, i ? HF_NO_RECORD : HF_RECORD_REGISTER);
        if (i == 0)
            assert_int_equal(a.result.answer.reg.value.bytes.size, sizeof value);
        hf_result_clear(&a.result);
    }
    /* One that was asked for is still what it was. */
    struct async a = { .result = HF_RESULT_INIT };
    struct hf_request get = { .action = HF_GET_REGISTER, .get = { hf_str("x") } };
    a.op = (struct hf_op){
        .request = &get, .result = &a.result, .done = note_call, .arg = &a, .answer_max = 100
    };
    hf_submit(k->db, &a.op);
    hf_flush(k->db);
    assert_int_equal(a.status, HF_INDETERMINATE);
    hf_result_clear(&a.result);
}

/* The names of a set take eight times their bytes in an answer, and were not counted: a batch took
 * a gigabyte. */
static void the_items_of_an_answer_count(void **state)
{
    (void)state;
    enum { ITEMS = 200 };
    static char names[ITEMS][8];
    struct hf_item items[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        snprintf(names[i], sizeof names[i], "%03d", i);
        items[i] = (struct hf_item){ .name = hf_str(names[i]) };
    }
    struct hf_value set = { .type = HF_TYPE_UNION, .items = items, .item_count = ITEMS };
    struct hf_request merge = { .action = HF_MERGE, .merge = { hf_str("set"), &set } };
    for (int i = 0; i < 2; i++) {
        struct async a = { .result = HF_RESULT_INIT };
        a.op = (struct hf_op){ .request = &merge,
                               .result = &a.result,
                               .done = note_call,
                               .arg = &a,
                               .answer_max = i ? 4096 : ITEMS * (sizeof(struct hf_item) + 8) };
        hf_submit(k->db, &a.op);
        hf_flush(k->db);
        assert_int_equal(a.status, i ? HF_INDETERMINATE : HF_OK);
        hf_result_clear(&a.result);
    }
}

/* hf_close: "finish what is in flight". An operation that a callback submits while hf_close flushes
 * is never called back. */

struct chain {
    struct hf_op op;
    struct hf_request r;
    char key[32];
    struct kit *k;
    int left, done;
};

static void called_back(struct hf_op *op, enum hf_status st)
{
    struct chain *c = op->arg;
    (void)st;
    c->done++;
    if (c->left-- > 0) {
        snprintf(c->key, sizeof c->key, "c%d", c->left);
        c->r.key = hf_str(c->key);
        hf_submit(c->k->db, op);
    }
}

static void close_with_a_chain(bool background)
{
    struct kit *own = kit_make();
    if (background) {
        own->options.no_background = false;
        kit_reopen(own);
    }
    struct chain c = { .k = own,
                       .left = 3,
                       .r = { .action = HF_PLACE_HOLD,
                              .key = hf_str("first"),
                              .place_hold = { hf_str("x"), hf_str("y"), 1000, 0 } } };
    c.op = (struct hf_op){ .request = &c.r, .done = called_back, .arg = &c };
    hf_submit(own->db, &c.op);
    struct hf_db *db = own->db;
    hf_close(db);
    own->db = NULL;
    printf("callbacks %d of 4\n", c.done);
    assert_int_equal(c.done, 4);
    kit_free(own);
}

static void close_waits_for_what_callbacks_submit(void **s)
{
    (void)s;
    close_with_a_chain(false);
}

static void close_waits_for_what_callbacks_submit_in_the_background(void **s)
{
    (void)s;
    close_with_a_chain(true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_BACKGROUND(name) cmocka_unit_test_setup_teardown(name, setup_background, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(submitted_ones_wait_for_the_flush_and_come_in_order),
        TEST(an_answer_that_saw_something_undurable_waits_too),
        TEST_BACKGROUND(the_background_thread_answers_without_a_flush),
        TEST(a_refusal_that_is_too_long_comes_without_its_record),
        TEST(the_items_of_an_answer_count),
        TEST(a_callback_may_submit),
        TEST_BACKGROUND(a_callback_may_submit_in_the_background_too),
        TEST_BACKGROUND(submitters_on_many_threads_are_each_answered_once_and_in_their_order),
        TEST(close_answers_what_is_in_flight),
        TEST(a_failed_sync_tells_everybody_who_waits),
        cmocka_unit_test(close_waits_for_what_callbacks_submit),
        cmocka_unit_test(close_waits_for_what_callbacks_submit_in_the_background),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
