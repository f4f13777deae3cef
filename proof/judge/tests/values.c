/* The judge minds what breaks the rules of registers, merges and hf_apply. */
#include "judge/tests/told.h"

#define ITEMS(...)                                    \
    .items = (const struct hf_item[]){ __VA_ARGS__ }, \
    .item_count = sizeof((struct hf_item[]){ __VA_ARGS__ }) / sizeof(struct hf_item)

static struct hf_item item(const char *name, uint64_t up, uint64_t down)
{
    return (struct hf_item){ hf_str(name), up, down };
}

/* Merge `value` into register "m", which should then be `want` with this version. */
static struct op merge(const struct hf_value *value, struct hf_value want, uint64_t version)
{
    struct op op = answer(HF_MERGE, HF_OK);
    op.q.merge.name = hf_str("m");
    op.q.merge.value = value;
    op.r.answer.kind = HF_RECORD_REGISTER;
    op.r.answer.reg = (struct hf_register){ .tenant = hf_str(""),
                                            .name = hf_str("m"),
                                            .value = want,
                                            .version = version,
                                            .changed_at = now };
    return op;
}

static struct op apply(const char *key, const char *result)
{
    static const struct judge_row rows[] = { { { "balance", 7 }, { "90", 2 }, false } };
    static const struct judge_intent intents[] = { { { "mail", 4 }, { "sent", 4 } } };
    struct op op = answer(HF_APPLY, HF_OK);
    op.q.apply.name = hf_str("pay");
    op.q.apply.payload = hf_str("10");
    op.e = (struct judge_effect){ .runs = 1,
                                  .returned = HF_OK,
                                  .result = hf_str(result),
                                  .rows = rows,
                                  .row_count = 1,
                                  .outbox = intents,
                                  .outbox_count = 1 };
    op.r.answer.kind = HF_RECORD_VALUE;
    op.r.answer.value = hf_str(result);
    with_key(&op, key);
    return op;
}

static struct op get_value(const char *key, const char *value)
{
    struct op op = answer(HF_GET_VALUE, value ? HF_OK : HF_NOT_KNOWN);
    op.q.get.name = hf_str(key);
    if (value) {
        op.r.answer.kind = HF_RECORD_VALUE;
        op.r.answer.value = hf_str(value);
    }
    return op;
}

static struct op refuse(const struct op *as, const char *key, enum hf_status status)
{
    struct op op = refused(as, key, status);
    op.e.runs = 0;
    return op;
}

/* ---- Well told ---- */

static void a_life_of_a_register(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1), op;
    a.q.write.fence = a.r.answer.reg.fence = 5;
    good(&a);
    op = write_register("b", "r", "two", 2);
    op.r.answer.reg.fence = 5;
    good(&op);
    struct op c = refuse(&op, "c", HF_STALE_FENCE);
    c.q.write.fence = 5;
    good(&c);
    c = refuse(&op, "d", HF_VERSION_MISMATCH);
    c.q.write.has_if_version = true;
    c.q.write.if_version = 1;
    good(&c);
    op = get_register(&op);
    good(&op);
}

/* JSON as servers store it: its head says which value it is. */
static void a_value_in_other_words(void **state)
{
    (void)state;
    static const char one[] = "\0j................................{\"b\":1,\"a\":1.0}",
                      two[] = "\0j................................{\"a\":1,\"b\":1}",
                      other[] = "\0j,...............................{\"a\":1,\"b\":1}";
    struct op a = write_register("a", "r", "", 1), op;
    a.q.write.value = a.r.answer.reg.value.bytes = hf_mem(one, sizeof one - 1);
    good(&a);
    op = again(&a);
    op.q.write.value = hf_mem(two, sizeof two - 1);
    good(&op);
    op.q.write.value = hf_mem(other, sizeof other - 1);
    bad(&op, "collision");
}

/* The register `as` is deleted, one version up; `until`: when the rest is forgotten. */
static struct op delete_register(const char *key, const struct op *as, hf_time until)
{
    struct op op = answer(HF_DELETE_REGISTER, HF_OK);
    op.q.write.name = as->r.answer.reg.name;
    op.r.answer.kind = HF_RECORD_REGISTER;
    op.r.answer.reg = as->r.answer.reg;
    op.r.answer.reg.version++;
    op.r.answer.reg.changed_at = now;
    op.r.answer.reg.value = (struct hf_value){ .type = HF_TYPE_DELETED, .number = until };
    with_key(&op, key);
    return op;
}

static void a_deleted_register_keeps_its_fence(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1), op, gone;
    a.q.write.fence = a.r.answer.reg.fence = 5;
    good(&a);
    gone = delete_register("b", &a, INT64_MAX);
    good(&gone);
    op = refuse(&a, "c", HF_STALE_FENCE);
    op.q.write.fence = 5;
    good(&op);
    op = write_register("d", "r", "again", 3);
    op.r.answer.reg.fence = 5;
    good(&op);
}

static void a_deleted_register_forgets_its_fence(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1), op, gone;
    a.q.write.fence = a.r.answer.reg.fence = 5;
    good(&a);
    gone = delete_register("b", &a, INT64_MAX);
    good(&gone);
    op = write_register("c", "r", "again", 3);
    op.q.write.fence = op.r.answer.reg.fence = 5;
    bad(&op, "an old fence");
}

static void a_version_comes_twice(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1), op, gone;
    good(&a);
    gone = delete_register("b", &a, now + WINDOW);
    good(&gone);
    op = write_register("c", "r", "again", 1);
    bad(&op, "should have version 3");
}

static void every_merge(void **state)
{
    (void)state;
    const struct hf_value max = { .type = HF_TYPE_MAX, .number = 5 };
    struct op op = merge(&max, max, 1);
    good(&op);
    now += 5;
    op.r.now = now;
    good(&op); /* changes nothing */
    const struct hf_value less = { .type = HF_TYPE_MAX, .number = 3 };
    op.q.merge.value = &less;
    good(&op);
    struct hf_value given = { .type = HF_TYPE_COUNTER, ITEMS(item("b", 2, 0), item("a", 1, 0)) };
    struct hf_value want = { .type = HF_TYPE_COUNTER,
                             .number = 3,
                             ITEMS(item("a", 1, 0), item("b", 2, 0)) };
    op = merge(&given, want, 1);
    op.q.merge.name = op.r.answer.reg.name = hf_str("counter");
    good(&op);
    struct hf_value more = { .type = HF_TYPE_COUNTER, ITEMS(item("b", 1, 0), item("c", 4, 0)) };
    struct hf_value both = { .type = HF_TYPE_COUNTER,
                             .number = 7,
                             ITEMS(item("a", 1, 0), item("b", 2, 0), item("c", 4, 0)) };
    op = merge(&more, both, 2);
    op.q.merge.name = op.r.answer.reg.name = hf_str("counter");
    good(&op);
    const struct hf_value old = {
        .type = HF_TYPE_LWW, .timestamp = 1, .node = hf_str("z"), .bytes = hf_str("x")
    };
    const struct hf_value young = {
        .type = HF_TYPE_LWW, .timestamp = 2, .node = hf_str("a"), .bytes = hf_str("y")
    };
    op = merge(&young, young, 1);
    op.q.merge.name = op.r.answer.reg.name = hf_str("lww");
    good(&op);
    op.q.merge.value = &old;
    good(&op);
}

static void a_life_of_an_apply(void **state)
{
    (void)state;
    struct op a = apply("a", "paid"), op;
    good(&a);
    op = get_value("balance", "90");
    good(&op);
    op = again(&a);
    good(&op);
    op = apply("b", "too poor");
    op.e.returned = HF_REFUSED;
    op.st = op.r.answer.status = op.r.token.status = HF_REFUSED;
    good(&op);
    op = apply("c", "");
    op.e.returned = HF_STORAGE_FAILURE; /* the function's own fault needs no other excuse */
    op.st = op.r.answer.status = HF_STORAGE_FAILURE;
    op.r.answer.kind = HF_NO_RECORD;
    good(&op);
    op = apply("c", "paid");
    good(&op);
}

/* ---- Badly told: registers ---- */

static void a_stale_write(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1);
    a.q.write.fence = a.r.answer.reg.fence = 5;
    good(&a);
    a = write_register("b", "r", "two", 2);
    a.q.write.fence = a.r.answer.reg.fence = 5;
    bad(&a, "old fence");
}

static void a_fence_that_was_not_kept(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1);
    a.q.write.fence = 5;
    bad(&a, "fence 5");
}

static void another_version_is_overwritten(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1);
    good(&a);
    a = write_register("b", "r", "two", 2);
    a.q.write.has_if_version = true;
    bad(&a, "version");
}

static void a_version_that_does_not_rise(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1);
    good(&a);
    a = write_register("b", "r", "two", 1);
    bad(&a, "version 2");
}

static void a_lost_write(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1), b;
    good(&a);
    b = write_register("b", "r", "two", 2);
    good(&b);
    a = get_register(&a);
    bad(&a, "value of the register");
}

static void a_write_to_a_merged_register(void **state)
{
    (void)state;
    const struct hf_value max = { .type = HF_TYPE_MAX, .number = 5 };
    struct op op = merge(&max, max, 1);
    good(&op);
    op = write_register("a", "m", "x", 2);
    bad(&op, "merged one");
}

/* ---- Badly told: merges ---- */

static void wrong_merges(void **state)
{
    static const struct {
        struct hf_value first, second, wrong;
    } all[] = {
        { { .type = HF_TYPE_MAX, .number = 5 },
          { .type = HF_TYPE_MAX, .number = 3 },
          { .type = HF_TYPE_MAX, .number = 3 } },
        { { .type = HF_TYPE_MIN, .number = 3 },
          { .type = HF_TYPE_MIN, .number = 5 },
          { .type = HF_TYPE_MIN, .number = 5 } },
        { { .type = HF_TYPE_OR, .flag = true }, { .type = HF_TYPE_OR }, { .type = HF_TYPE_OR } },
        { { .type = HF_TYPE_LWW, .timestamp = 2, .node = { "a", 1 }, .bytes = { "x", 1 } },
          { .type = HF_TYPE_LWW, .timestamp = 1, .node = { "b", 1 }, .bytes = { "y", 1 } },
          { .type = HF_TYPE_LWW, .timestamp = 1, .node = { "b", 1 }, .bytes = { "y", 1 } } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        told_teardown(NULL);
        told_setup(NULL);
        struct op op = merge(&all[i].first, all[i].first, 1);
        good(&op);
        op = merge(&all[i].second, all[i].wrong, 2);
        bad(&op, "value of the register is wrong");
    }
}

static void wrong_merges_of_items(void **state)
{
    static const enum hf_register_type types[] = { HF_TYPE_UNION, HF_TYPE_VECTOR, HF_TYPE_COUNTER,
                                                   HF_TYPE_UPDOWN };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        told_teardown(NULL);
        told_setup(NULL);
        uint64_t up = types[i] == HF_TYPE_UNION ? 0 : 2;
        struct hf_value a = { .type = types[i], ITEMS(item("a", up, 0)) };
        struct hf_value b = { .type = types[i], ITEMS(item("b", up, 0)) };
        if (types[i] == HF_TYPE_COUNTER || types[i] == HF_TYPE_UPDOWN)
            a.number = b.number = 2;
        struct op op = merge(&a, a, 1);
        good(&op);
        op = merge(&b, b, 2); /* replaced instead of joined */
        bad(&op, "value of the register is wrong");
    }
}

static void a_counter_that_counts_a_retry(void **state)
{
    (void)state;
    struct hf_value one = { .type = HF_TYPE_COUNTER, .number = 1, ITEMS(item("a", 1, 0)) };
    struct hf_value two = { .type = HF_TYPE_COUNTER, .number = 2, ITEMS(item("a", 2, 0)) };
    struct op op = merge(&one, one, 1);
    good(&op);
    op = merge(&one, two, 2);
    bad(&op, "value of the register is wrong");
}

static void a_merge_that_changes_nothing_but_the_version(void **state)
{
    (void)state;
    const struct hf_value max = { .type = HF_TYPE_MAX, .number = 5 };
    struct op op = merge(&max, max, 1);
    good(&op);
    op = merge(&max, max, 2);
    bad(&op, "version 1");
}

static void a_merge_of_another_type(void **state)
{
    (void)state;
    const struct hf_value max = { .type = HF_TYPE_MAX, .number = 5 },
                          min = { .type = HF_TYPE_MIN, .number = 5 };
    struct op op = merge(&max, max, 1);
    good(&op);
    op = merge(&min, min, 2);
    bad(&op, "another type");
}

/* ---- Badly told: apply ---- */

static void a_function_that_ran_twice(void **state)
{
    (void)state;
    struct op a = apply("a", "paid");
    a.e.runs = 2;
    bad(&a, "IR8");
}

static void a_function_that_ran_for_a_replay(void **state)
{
    (void)state;
    struct op a = apply("a", "paid"), op;
    good(&a);
    op = again(&a);
    op.e.runs = 1;
    bad(&op, "IR8");
}

static void a_function_that_ran_for_a_collision(void **state)
{
    (void)state;
    struct op a = apply("a", "paid"), op;
    good(&a);
    op = apply("a", "paid");
    op.q.apply.payload = hf_str("20");
    op.st = op.r.answer.status = HF_TOKEN_COLLISION;
    op.r.answer.kind = HF_NO_RECORD;
    bad(&op, "IR8");
}

static void a_function_that_did_not_run(void **state)
{
    (void)state;
    struct op a = apply("a", "paid");
    a.e.runs = 0;
    bad(&a, "IR8");
}

static void another_result_than_the_function_gave(void **state)
{
    (void)state;
    struct op a = apply("a", "paid");
    a.r.answer.value = hf_str("paie");
    bad(&a, "not the function's result");
}

static void a_put_that_is_lost(void **state)
{
    (void)state;
    struct op a = apply("a", "paid");
    good(&a);
    a = get_value("balance", NULL);
    bad(&a, "IR8");
}

static void a_refused_function_with_an_effect(void **state)
{
    (void)state;
    struct op a = apply("a", "no");
    a.e.returned = HF_REFUSED;
    a.st = a.r.answer.status = a.r.token.status = HF_REFUSED;
    good(&a);
    a = get_value("balance", "90");
    bad(&a, "IR8");
}

static void a_refusal_taken_for_a_success(void **state)
{
    (void)state;
    struct op a = apply("a", "no");
    a.e.returned = HF_REFUSED;
    bad(&a, "the function's word");
}

static void a_value_that_nobody_put(void **state)
{
    (void)state;
    struct op a = apply("a", "paid");
    good(&a);
    a = get_value("balance", "80");
    bad(&a, "put last");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOLD(a_life_of_a_register),
        TOLD(a_value_in_other_words),
        TOLD(every_merge),
        TOLD(a_deleted_register_keeps_its_fence),
        TOLD(a_deleted_register_forgets_its_fence),
        TOLD(a_version_comes_twice),
        TOLD(a_life_of_an_apply),
        TOLD(a_stale_write),
        TOLD(a_fence_that_was_not_kept),
        TOLD(another_version_is_overwritten),
        TOLD(a_version_that_does_not_rise),
        TOLD(a_lost_write),
        TOLD(a_write_to_a_merged_register),
        TOLD(wrong_merges),
        TOLD(wrong_merges_of_items),
        TOLD(a_counter_that_counts_a_retry),
        TOLD(a_merge_that_changes_nothing_but_the_version),
        TOLD(a_merge_of_another_type),
        TOLD(a_function_that_ran_twice),
        TOLD(a_function_that_ran_for_a_replay),
        TOLD(a_function_that_ran_for_a_collision),
        TOLD(a_function_that_did_not_run),
        TOLD(another_result_than_the_function_gave),
        TOLD(a_put_that_is_lost),
        TOLD(a_refused_function_with_an_effect),
        TOLD(a_refusal_taken_for_a_success),
        TOLD(a_value_that_nobody_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
