/* hf_apply: the caller's function runs once a key, inside the atomic unit. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <unistd.h>

static struct kit *k;

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    alarm(0);
    kit_free(k);
    return 0;
}

static enum hf_status apply(const char *key, const char *payload, hf_apply_fn *fn, void *arg)
{
    return kit_do(k, (struct hf_request){ .action = HF_APPLY,
                                          .key = hf_str(key),
                                          .apply = { .name = hf_str("effect"),
                                                     .payload = hf_str(payload),
                                                     .fn = fn,
                                                     .arg = arg } });
}

static bool value_is(const char *key, const char *value)
{
    return kit_get(k, HF_GET_VALUE, key) == HF_OK && kit_is(k->got.answer.value, value);
}

static size_t outbox(struct hf_page *page)
{
    struct hf_query q = { .kind = HF_LIST_OUTBOX,
                          .limit = HF_LIST_MAX,
                          .tenant = k->tenant ? hf_str(k->tenant) : hf_str("") };
    kit_list(k, &q, page);
    return page->count;
}

static size_t outbox_count(void)
{
    struct hf_page page;
    size_t n = outbox(&page);
    hf_page_clear(&page);
    return n;
}

/* ---- Once ---- */

/* Moves 100 from one account to the other; arg counts how often it ran. */
static enum hf_status transfer(struct hf_tx *tx, void *arg)
{
    struct hf_bytes value;
    int a = 1000, b = 0;
    char text[32];
    ++*(int *)arg;
    if (hf_tx_get(tx, hf_str("a"), &value) == HF_OK)
        a = atoi(strncpy(memset(text, 0, sizeof text), value.data, value.size));
    if (hf_tx_get(tx, hf_str("b"), &value) == HF_OK)
        b = atoi(strncpy(memset(text, 0, sizeof text), value.data, value.size));
    if (a < 100) {
        KIT_WANT(hf_tx_result(tx, hf_str("not enough money on a")) == HF_OK);
        KIT_WANT(hf_tx_put(tx, hf_str("a"), hf_str("gone")) == HF_OK);
        return HF_REFUSED;
    }
    snprintf(text, sizeof text, "%d", a - 100);
    KIT_WANT(hf_tx_put(tx, hf_str("a"), hf_str(text)) == HF_OK);
    snprintf(text, sizeof text, "%d", b + 100);
    KIT_WANT(hf_tx_put(tx, hf_str("b"), hf_str(text)) == HF_OK);
    KIT_WANT(hf_tx_enqueue(tx, hf_str("mail"), hf_str("100 moved")) == HF_OK);
    snprintf(text, sizeof text, "a now %d", a - 100);
    KIT_WANT(hf_tx_result(tx, hf_str(text)) == HF_OK);
    return HF_OK;
}

static void the_function_runs_once_a_key_however_often_it_is_asked(void **state)
{
    (void)state;
    int runs = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(apply("t1", "100", transfer, &runs), HF_OK);
        assert_int_equal(k->got.answer.kind, HF_RECORD_VALUE);
        assert_true(kit_is(k->got.answer.value, "a now 900"));
        assert_int_equal(k->got.replayed, i > 0);
        if (i == 2)
            kit_reopen(k);
    }
    assert_int_equal(runs, 1);
    assert_true(value_is("a", "900"));
    assert_true(value_is("b", "100"));
    assert_int_equal(outbox_count(), 1);
    assert_int_equal(apply("t1", "200", transfer, &runs), HF_TOKEN_COLLISION);
    assert_int_equal(runs, 1);
    assert_int_equal(apply("t2", "100", transfer, &runs), HF_OK);
    assert_int_equal(runs, 2);
    assert_true(value_is("a", "800"));
    assert_int_equal(kit_stats(k).values, 2);
}

static void an_expired_key_runs_again(void **state)
{
    (void)state;
    int runs = 0;
    k->options.idempotency_window_ms = MINUTE;
    kit_reopen(k);
    assert_int_equal(apply("t1", "100", transfer, &runs), HF_OK);
    kit_at(k, MINUTE - 1);
    assert_int_equal(apply("t1", "100", transfer, &runs), HF_OK);
    assert_int_equal(runs, 1);
    kit_at(k, MINUTE);
    assert_int_equal(apply("t1", "100", transfer, &runs), HF_OK);
    assert_int_equal(runs, 2);
}

static void a_refusal_is_remembered_with_its_words_and_its_effects_are_dropped(void **state)
{
    (void)state;
    int runs = 0;
    char key[24];
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "t%d", i);
        assert_int_equal(apply(key, "100", transfer, &runs), HF_OK);
    }
    assert_true(value_is("a", "0"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(apply("poor", "100", transfer, &runs), HF_REFUSED);
        assert_int_equal(k->got.answer.status, HF_REFUSED);
        assert_int_equal(k->got.answer.kind, HF_RECORD_VALUE);
        assert_true(kit_is(k->got.answer.value, "not enough money on a"));
        assert_int_equal(k->got.replayed, i > 0);
        kit_reopen(k);
    }
    assert_int_equal(runs, 11);
    assert_true(value_is("a", "0"));
    assert_true(value_is("b", "1000"));
    assert_int_equal(outbox_count(), 10);
    assert_int_equal(kit_get(k, HF_GET_TOKEN, "poor"), HF_OK);
    assert_int_equal(k->got.token.status, HF_REFUSED);
}

struct fault {
    int runs;
    enum hf_status status;
};

static enum hf_status return_status(struct hf_tx *tx, void *arg)
{
    struct fault *f = arg;
    f->runs++;
    KIT_WANT(hf_tx_put(tx, hf_str("effect"), hf_str("1")) == HF_OK);
    KIT_WANT(hf_tx_enqueue(tx, hf_str("mail"), hf_str("1")) == HF_OK);
    KIT_WANT(hf_tx_result(tx, hf_str("words")) == HF_OK);
    return f->status;
}

static void a_fault_leaves_nothing_and_the_key_is_free(void **state)
{
    (void)state;
    static const struct {
        enum hf_status returned, answered;
    } steps[] = {
        { HF_STORAGE_FAILURE, HF_STORAGE_FAILURE },
        { HF_NO_MEMORY, HF_NO_MEMORY },
        { HF_MISUSE, HF_MISUSE },
        { HF_NOT_KNOWN,
          HF_MISUSE }, /* refusals are not the function's to give, but for HF_REFUSED */
        { HF_INDETERMINATE, HF_MISUSE },
        { HF_TOKEN_COLLISION, HF_MISUSE },
        { (enum hf_status)1000, HF_MISUSE },
    };
    struct fault f = { 0, HF_OK };
    uint64_t written = kit_written(k);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        f.status = steps[i].returned;
        assert_int_equal(apply("key", "", return_status, &f), steps[i].answered);
        assert_int_equal(k->got.answer.status, steps[i].answered);
        assert_int_equal(k->got.answer.kind, HF_NO_RECORD);
        assert_int_equal(f.runs, i + 1);
        assert_int_equal(kit_get(k, HF_GET_TOKEN, "key"), HF_NOT_KNOWN);
        assert_int_equal(kit_get(k, HF_GET_VALUE, "effect"), HF_NOT_KNOWN);
    }
    assert_int_equal(kit_written(k), written);
    assert_int_equal(outbox_count(), 0);
    f.status = HF_OK;
    assert_int_equal(apply("key", "", return_status, &f), HF_OK);
    assert_false(k->got.replayed);
    assert_true(value_is("effect", "1"));
    assert_int_equal(outbox_count(), 1);
    struct hf_page page;
    assert_int_equal(outbox(&page), 1);
    if (!k->remote)
        assert_int_equal(page.outbox[0].number, 1); /* the faults took no number */
    hf_page_clear(&page);
}

/* ---- Seeing itself ---- */

static enum hf_status look(struct hf_tx *tx, void *arg)
{
    struct hf_bytes v;
    (void)arg;
    KIT_WANT(hf_tx_get(tx, hf_str("kept"), &v) == HF_OK);
    KIT_WANT(kit_is(v, "from before"));
    struct hf_bytes before = v;
    KIT_WANT(hf_tx_get(tx, hf_str("new"), &v) == HF_NOT_KNOWN);
    KIT_WANT(hf_tx_put(tx, hf_str("new"), hf_str("1")) == HF_OK);
    KIT_WANT(hf_tx_get(tx, hf_str("new"), &v) == HF_OK);
    KIT_WANT(kit_is(v, "1"));
    struct hf_bytes first = v;
    KIT_WANT(hf_tx_put(tx, hf_str("new"), hf_str("22")) == HF_OK);
    KIT_WANT(hf_tx_get(tx, hf_str("new"), &v) == HF_OK);
    KIT_WANT(kit_is(v, "22"));
    KIT_WANT(hf_tx_delete(tx, hf_str("new")) == HF_OK);
    KIT_WANT(hf_tx_get(tx, hf_str("new"), &v) == HF_NOT_KNOWN);
    KIT_WANT(hf_tx_put(tx, hf_str("new"), hf_str("")) == HF_OK);
    KIT_WANT(hf_tx_get(tx, hf_str("new"), &v) == HF_OK);
    KIT_WANT(v.size == 0);
    KIT_WANT(hf_tx_delete(tx, hf_str("kept")) == HF_OK);
    KIT_WANT(hf_tx_get(tx, hf_str("kept"), &v) == HF_NOT_KNOWN);
    KIT_WANT(hf_tx_put(tx, hf_str("kept"), hf_str("changed")) == HF_OK);
    KIT_WANT(hf_tx_delete(tx, hf_str("leaves")) == HF_OK);
    KIT_WANT(hf_tx_delete(tx, hf_str("was never there")) == HF_OK);
    KIT_WANT(kit_is(before, "from before")); /* borrowed until the function returns */
    KIT_WANT(kit_is(first, "1"));
    KIT_WANT(hf_tx_now(tx) == KIT_START + SECOND);
    return HF_OK;
}

static enum hf_status prepare(struct hf_tx *tx, void *arg)
{
    (void)arg;
    KIT_WANT(hf_tx_put(tx, hf_str("kept"), hf_str("from before")) == HF_OK);
    KIT_WANT(hf_tx_put(tx, hf_str("leaves"), hf_str("soon")) == HF_OK);
    return HF_OK;
}

static void the_function_sees_what_is_stored_and_what_it_did_itself(void **state)
{
    (void)state;
    assert_int_equal(apply("prepare", "", prepare, NULL), HF_OK);
    assert_int_equal(k->got.answer.value.size, 0); /* no result is an empty one */
    kit_at(k, SECOND);
    assert_int_equal(apply("look", "", look, NULL), HF_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(value_is("kept", "changed"));
        assert_true(value_is("new", ""));
        assert_int_equal(kit_get(k, HF_GET_VALUE, "leaves"), HF_NOT_KNOWN);
        assert_int_equal(kit_get(k, HF_GET_VALUE, "was never there"), HF_NOT_KNOWN);
        assert_int_equal(kit_stats(k).values, 2);
        kit_reopen(k);
    }
}

static enum hf_status delete_all(struct hf_tx *tx, void *arg)
{
    (void)arg;
    KIT_WANT(hf_tx_delete(tx, hf_str("kept")) == HF_OK);
    KIT_WANT(hf_tx_delete(tx, hf_str("leaves")) == HF_OK);
    return HF_OK;
}

static void deleted_values_stay_deleted_over_snapshots_and_restarts(void **state)
{
    (void)state;
    k->options.snapshot_every_bytes = 50000;
    kit_reopen(k);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(apply(kit_key(k), "", prepare, NULL), HF_OK);
        hf_maintain(k->db);
        assert_int_equal(apply(kit_key(k), "", delete_all, NULL), HF_OK);
        hf_maintain(k->db);
        hf_maintain(k->db);
        if (i % 7 == 6) {
            kit_reopen(k);
            assert_int_equal(kit_stats(k).values, 0);
            assert_int_equal(kit_get(k, HF_GET_VALUE, "kept"), HF_NOT_KNOWN);
        }
    }
}

/* ---- Limits ---- */

struct amount {
    size_t rows, key_size, value_size, result_size;
    enum hf_status last; /* of the newest call of hf_tx_* */
    enum hf_status returned;
};

static enum hf_status put_amount(struct hf_tx *tx, void *arg)
{
    static char key[HF_APP_KEY_MAX + 2], value[HF_APP_VALUE_MAX + 2];
    struct amount *a = arg;
    memset(key, 'k', sizeof key);
    memset(value, 'v', sizeof value);
    a->last = HF_OK;
    for (size_t i = 0; i < a->rows && a->last == HF_OK; i++) {
        if (a->key_size >= 4) {
            char digits[8];
            snprintf(digits, sizeof digits, "%04zu", i % 10000);
            memcpy(key, digits, 4);
        }
        a->last = hf_tx_put(tx, hf_mem(key, a->key_size), hf_mem(value, a->value_size));
    }
    if (a->last == HF_OK)
        a->last = hf_tx_result(tx, hf_mem(value, a->result_size));
    return a->returned;
}

static void every_limit_of_an_apply_holds_at_its_edge_and_not_one_past_it(void **state)
{
    (void)state;
    static const struct {
        struct amount amount;
        enum hf_status status;
    } steps[] = {
        { { .rows = HF_APPLY_ROWS_MAX, .key_size = 4, .value_size = 1 }, HF_OK },
        { { .rows = HF_APPLY_ROWS_MAX + 1, .key_size = 4, .value_size = 1 }, HF_INVALID_REQUEST },
        { { .rows = 1, .key_size = HF_APP_KEY_MAX, .value_size = 1 }, HF_OK },
        { { .rows = 1, .key_size = HF_APP_KEY_MAX + 1, .value_size = 1 }, HF_INVALID_REQUEST },
        { { .rows = 1, .key_size = 0, .value_size = 1 }, HF_INVALID_REQUEST },
        { { .rows = 1, .key_size = 4, .value_size = HF_APPLY_BYTES_MAX - 4 }, HF_OK },
        { { .rows = 1, .key_size = 4, .value_size = HF_APPLY_BYTES_MAX - 3 }, HF_INVALID_REQUEST },
        { { .rows = 1, .key_size = 4, .value_size = HF_APP_VALUE_MAX + 1 }, HF_INVALID_REQUEST },
        { { .rows = 1,
            .key_size = 4,
            .value_size = 1000,
            .result_size = HF_APPLY_BYTES_MAX - 1004 },
          HF_OK },
        { { .rows = 1,
            .key_size = 4,
            .value_size = 1000,
            .result_size = HF_APPLY_BYTES_MAX - 1003 },
          HF_INVALID_REQUEST },
        { { .rows = 0, .result_size = HF_RESPONSE_MAX }, HF_OK },
        { { .rows = 0, .result_size = HF_RESPONSE_MAX + 1 }, HF_INVALID_REQUEST },
        { { .rows = 64, .key_size = 1024, .value_size = 15360 }, HF_OK }, /* 1 MiB to the byte */
        { { .rows = 64, .key_size = 1024, .value_size = 15361 }, HF_INVALID_REQUEST },
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct amount a = steps[i].amount;
        char key[24];
        snprintf(key, sizeof key, "limit-%zu", i);
        uint64_t values = kit_stats(k).values;
        assert_int_equal(apply(key, "", put_amount, &a), steps[i].status);
        assert_int_equal(a.last, steps[i].status);
        if (steps[i].status != HF_OK)
            assert_int_equal(kit_stats(k).values, values); /* nothing of it */
        else
            assert_int_equal(k->got.answer.value.size, a.result_size);
        assert_int_equal(apply(key, "", put_amount, &a), steps[i].status);
        assert_true(k->got.replayed);
        kit_settle(k);
        if (i % 5 == 4)
            kit_reopen(k);
    }
}

static void past_a_limit_nothing_is_committed_whatever_the_function_says(void **state)
{
    (void)state;
    static const struct {
        enum hf_status returned, answered;
    } steps[] = { { HF_OK, HF_INVALID_REQUEST },
                  { HF_REFUSED, HF_INVALID_REQUEST },
                  { HF_STORAGE_FAILURE, HF_STORAGE_FAILURE } };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct amount a = { .rows = HF_APPLY_ROWS_MAX + 1,
                            .key_size = 4,
                            .value_size = 1,
                            .returned = steps[i].returned };
        assert_int_equal(apply(kit_key(k), "", put_amount, &a), steps[i].answered);
        assert_int_equal(kit_stats(k).values, 0);
        assert_int_equal(k->got.answer.kind, HF_NO_RECORD);
    }
}

static enum hf_status enqueue_many(struct hf_tx *tx, void *arg)
{
    size_t count = *(size_t *)arg;
    enum hf_status st = HF_OK;
    for (size_t i = 0; i < count && st == HF_OK; i++) {
        char payload[40];
        snprintf(payload, sizeof payload, "payload %zu", i);
        st = hf_tx_enqueue(tx, hf_str("topic"), hf_str(payload));
    }
    return st == HF_OK ? HF_OK : HF_REFUSED;
}

static enum hf_status enqueue_bad(struct hf_tx *tx, void *arg)
{
    static char topic[HF_NAME_MAX + 1];
    memset(topic, 't', sizeof topic);
    return hf_tx_enqueue(tx, hf_mem(topic, *(size_t *)arg), hf_str("x")) == HF_OK ? HF_OK
                                                                                  : HF_REFUSED;
}

static void outbox_rows_are_listed_newest_first_with_their_key(void **state)
{
    (void)state;
    size_t count = 3;
    assert_int_equal(apply("order-1", "", enqueue_many, &count), HF_OK);
    kit_at(k, SECOND);
    count = HF_APPLY_ROWS_MAX;
    assert_int_equal(apply("order-2", "", enqueue_many, &count), HF_OK);
    count = HF_APPLY_ROWS_MAX + 1;
    assert_int_equal(apply("order-3", "", enqueue_many, &count), HF_INVALID_REQUEST);
    size_t size = 0;
    assert_int_equal(apply(kit_key(k), "", enqueue_bad, &size), HF_INVALID_REQUEST);
    size = HF_NAME_MAX + 1;
    assert_int_equal(apply(kit_key(k), "", enqueue_bad, &size), HF_INVALID_REQUEST);
    k->tenant = "other";
    count = 1;
    assert_int_equal(apply("order-1", "", enqueue_many, &count), HF_OK);
    k->tenant = NULL;
    for (int round = 0; round < 2; round++) {
        struct hf_page page;
        uint64_t before = UINT64_MAX;
        assert_int_equal(outbox(&page), 67);
        for (size_t i = 0; i < page.count; before = page.outbox[i++].number) {
            const struct hf_outbox *o = &page.outbox[i];
            bool second = i < 64;
            char payload[40];
            snprintf(payload, sizeof payload, "payload %zu", second ? 63 - i : 66 - i);
            assert_true(k->remote ? o->number < before : o->number == 67 - i);
            assert_true(kit_is(o->key, second ? "order-2" : "order-1"));
            assert_true(kit_is(o->topic, "topic"));
            assert_true(kit_is(o->payload, payload));
            assert_int_equal(o->state, HF_OUTBOX_PENDING);
            assert_int_equal(o->created_at, KIT_START + (second ? SECOND : 0));
            assert_int_equal(o->tenant.size, 0);
        }
        uint64_t newest = page.outbox[0].number;
        hf_page_clear(&page);
        k->tenant = "other";
        assert_int_equal(outbox(&page), 1);
        assert_true(k->remote ? page.outbox[0].number > newest : page.outbox[0].number == 68);
        hf_page_clear(&page);
        k->tenant = NULL;
        kit_reopen(k);
    }
    count = 1;
    assert_int_equal(apply("order-4", "", enqueue_many, &count), HF_OK);
    struct hf_page page;
    assert_int_equal(outbox(&page), 68);
    assert_true(k->remote ? page.outbox[0].number > page.outbox[1].number
                          : page.outbox[0].number == 69);
    hf_page_clear(&page);
}

static void values_of_tenants_are_apart(void **state)
{
    (void)state;
    int runs = 0;
    assert_int_equal(apply("same", "100", transfer, &runs), HF_OK);
    k->tenant = "other";
    assert_int_equal(kit_get(k, HF_GET_VALUE, "a"), HF_NOT_KNOWN);
    assert_int_equal(apply("same", "100", transfer, &runs), HF_OK);
    assert_false(k->got.replayed);
    assert_int_equal(runs, 2);
    assert_true(value_is("a", "900"));
}

/* ---- Both or neither ---- */

static void effects_and_key_are_both_there_or_both_not_after_a_failed_sync(void **state)
{
    (void)state;
    both_needs_files();
    for (int lost = 0; lost < 2; lost++) {
        int runs = 0;
        char key[24];
        snprintf(key, sizeof key, "pay-%d", lost);
        if (lost)
            atomic_store(&k->io.fail_write, 1); /* nothing reaches the file */
        else
            atomic_store(&k->io.fail_sync, 1); /* all of it does, but nobody can know */
        uint64_t outbox_before = kit_stats(k).outbox;
        assert_int_equal(apply(key, "100", transfer, &runs), HF_INDETERMINATE);
        assert_int_equal(k->got.answer.kind, HF_NO_RECORD); /* no answer that may not last */
        assert_int_equal(atomic_load(&k->fatal), lost + 1);
        assert_int_equal(apply("later", "100", transfer, &runs), HF_STORAGE_FAILURE);
        assert_int_equal(runs, 1);
        kit_reopen(k);
        bool there = kit_get(k, HF_GET_TOKEN, key) == HF_OK;
        assert_int_equal(there, !lost);
        assert_int_equal(kit_stats(k).outbox - outbox_before, there);
        assert_true(value_is("a", "900")); /* of the first, and the second left no trace */
        assert_int_equal(apply(key, "100", transfer, &runs), HF_OK); /* the retry finds the truth */
        assert_int_equal(k->got.replayed, there);
        assert_int_equal(runs, 1 + !there);
        assert_true(value_is("a", lost ? "800" : "900"));
    }
}

static void a_full_store_does_not_run_the_function_at_all(void **state)
{
    (void)state;
    both_needs_files();
    int runs = 0;
    assert_int_equal(apply("before", "100", transfer, &runs), HF_OK);
    atomic_store(&k->io.room, 0);
    struct amount a = { .rows = 1, .key_size = 4, .value_size = 500000 };
    enum hf_status st = HF_OK;
    for (int i = 0; i < 20 && st == HF_OK; i++)
        st = apply(kit_key(k), "", put_amount, &a);
    assert_int_equal(st, HF_STORAGE_FAILURE);
    assert_int_equal(apply("refused", "100", transfer, &runs), HF_STORAGE_FAILURE);
    assert_int_equal(runs, 1);
    assert_int_equal(apply("before", "100", transfer, &runs), HF_OK); /* replays go on */
    assert_true(k->got.replayed);
    assert_true(value_is("a", "900"));
    atomic_store(&k->io.room, -1);
    atomic_fetch_add(&k->io.later_ns,
                     2 * UINT64_C(1000000000)); /* maintenance tries once a second */
    kit_settle(k);
    assert_int_equal(apply("refused", "100", transfer, &runs), HF_OK);
    assert_int_equal(runs, 2);
}

/* ---- Misuse ---- */

static enum hf_status call_back(struct hf_tx *tx, void *arg)
{
    (void)arg;
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request r = { .action = HF_GET_VALUE, .get = { hf_str("a") } };
    KIT_WANT(hf_do(k->db, &r, &result) == HF_MISUSE);
    KIT_WANT(result.answer.status == HF_MISUSE);
    r = (struct hf_request){ .action = HF_PLACE_HOLD,
                             .key = hf_str("inner"),
                             .place_hold = { hf_str("room"), hf_str("guest"), HOUR, 0 } };
    KIT_WANT(hf_do(k->db, &r, &result) == HF_MISUSE);
    KIT_WANT(hf_do_many(k->db, &r, &result, 1) == HF_MISUSE);
    hf_result_clear(&result);
    return hf_tx_put(tx, hf_str("outer"), hf_str("1"));
}

static void calling_the_library_from_inside_is_misuse_and_no_deadlock(void **state)
{
    (void)state;
    alarm(20); /* a deadlock would hang here */
    assert_int_equal(apply("outer", "", call_back, NULL), HF_OK);
    assert_true(value_is("outer", "1"));
    assert_int_equal(kit_stats(k).holds, 0);
    assert_int_equal(kit_place(k, "inner", "room", "guest", HOUR),
                     HF_OK); /* the inner key was not used */
    assert_false(k->got.replayed);
}

static void an_apply_without_a_function_or_a_name_is_refused(void **state)
{
    (void)state;
    int runs = 0;
    assert_int_equal(apply("none", "", NULL, NULL), HF_MISUSE);
    assert_int_equal(kit_get(k, HF_GET_TOKEN, "none"), HF_NOT_KNOWN);
    assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_APPLY,
                                                    .key = hf_str("nameless"),
                                                    .apply = { .fn = transfer, .arg = &runs } }),
                     HF_INVALID_REQUEST);
    assert_int_equal(apply("", "100", transfer, &runs), HF_INVALID_REQUEST);
    assert_int_equal(runs, 0);
    assert_int_equal(apply("none", "100", transfer, &runs), HF_OK);
    assert_int_equal(apply("none", "100", NULL, NULL), HF_OK); /* a retry needs no function */
    assert_true(k->got.replayed);
    assert_int_equal(runs, 1);
}

static void an_apply_under_a_client_number_runs_once_and_sees_itself(void **state)
{
    (void)state;
    int runs = 0;
    struct hf_request r = { .action = HF_APPLY,
                            .client = hf_str("till"),
                            .apply = { .name = hf_str("transfer"), .fn = transfer, .arg = &runs } };
    for (uint64_t n = 1; n <= 300; n++) {
        r.sequence = n;
        enum hf_status st = kit_do(k, r);
        assert_int_equal(st, n <= 10 ? HF_OK : HF_REFUSED);
    }
    assert_int_equal(runs, 300);
    kit_reopen(k);
    for (uint64_t n = 300; n > 300 - HF_SEQUENCE_WINDOW; n--) {
        r.sequence = n;
        assert_int_equal(kit_do(k, r), HF_REFUSED);
        assert_true(kit_is(k->got.answer.value, "not enough money on a"));
        assert_true(k->got.replayed);
    }
    r.sequence = 1;
    assert_int_equal(kit_do(k, r), HF_WINDOW_ELAPSED);
    assert_int_equal(runs, 300);
    struct hf_page page; /* each row goes out with a key of its own */
    assert_int_equal(outbox(&page), 10);
    assert_true(kit_is(page.outbox[0].key, "till/10"));
    assert_true(kit_is(page.outbox[9].key, "till/1"));
    hf_page_clear(&page);
    struct amount a = { .rows = HF_APPLY_ROWS_MAX, .key_size = 4, .value_size = 1 };
    r.apply.fn = put_amount;
    r.apply.arg = &a;
    r.sequence = 301;
    assert_int_equal(kit_do(k, r), HF_OK); /* the client's own row takes none of the 64 */
    a.rows++;
    r.sequence = 302;
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    assert_true(k->got.replayed);
}

/* hf_list, hf_stats, hf_maintain, hf_flush and hf_submit from inside an apply function: a deadlock,
 * not misuse. */

static enum hf_status fn(struct hf_tx *tx, void *arg)
{
    struct hf_page page;
    (void)tx;
    (void)arg;
    KIT_WANT(hf_list(k->db, &(struct hf_query){ .kind = HF_LIST_HOLDS }, &page) == HF_MISUSE);
    hf_flush(k->db);
    KIT_WANT(!hf_maintain(k->db));
    struct hf_stats st;
    hf_stats(k->db, &st);
    return HF_OK;
}

static void no_call_from_inside_an_apply_function_deadlocks(void **s)
{
    (void)s;
    k = kit_make();
    alarm(20); /* a deadlock would hang here */
    assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_APPLY,
                                                    .key = hf_str("k"),
                                                    .apply = { .name = hf_str("n"), .fn = fn } }),
                     HF_OK);
    alarm(0);
    kit_free(k);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_function_runs_once_a_key_however_often_it_is_asked),
        TEST(an_expired_key_runs_again),
        TEST(a_refusal_is_remembered_with_its_words_and_its_effects_are_dropped),
        TEST(a_fault_leaves_nothing_and_the_key_is_free),
        TEST(the_function_sees_what_is_stored_and_what_it_did_itself),
        TEST(deleted_values_stay_deleted_over_snapshots_and_restarts),
        TEST(every_limit_of_an_apply_holds_at_its_edge_and_not_one_past_it),
        TEST(past_a_limit_nothing_is_committed_whatever_the_function_says),
        TEST(outbox_rows_are_listed_newest_first_with_their_key),
        TEST(values_of_tenants_are_apart),
        TEST(effects_and_key_are_both_there_or_both_not_after_a_failed_sync),
        TEST(a_full_store_does_not_run_the_function_at_all),
        TEST(calling_the_library_from_inside_is_misuse_and_no_deadlock),
        TEST(an_apply_without_a_function_or_a_name_is_refused),
        TEST(an_apply_under_a_client_number_runs_once_and_sees_itself),
        cmocka_unit_test(no_call_from_inside_an_apply_function_deadlocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
