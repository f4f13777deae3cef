/* Every merged type is a join-semilattice: idempotent, commutative, associative, and it only moves
 * up. So the same set of merges gives the same register, in any order and however often each is
 * heard. */
#include "base/bytes.h"
#include "core/merge.h"
#include "support/test.h"
#include "unit/kit/world.h"

#define ROUNDS 20000
#define ITEMS 8

static struct hf_plan plan;
static uint64_t seed;

static const enum hf_register_type types[] = { HF_TYPE_MAX,     HF_TYPE_MIN,   HF_TYPE_OR,
                                               HF_TYPE_UNION,   HF_TYPE_LWW,   HF_TYPE_VECTOR,
                                               HF_TYPE_COUNTER, HF_TYPE_UPDOWN };
enum { TYPES = sizeof types / sizeof *types };

/* Few names and small numbers meet often; now and then a number is huge. */
static const char *const words[] = { "a", "b", "ab", "node-1", "node-2", "\xc3\xa9", "z", "zz" };

static uint64_t number(void)
{
    return test_below(&seed, 8) == 0 ? (uint64_t)INT64_MAX / 16 - test_below(&seed, 3)
                                     : test_below(&seed, 4);
}

struct made {
    struct hf_value value;
    struct hf_item items[ITEMS];
};

static void make(enum hf_register_type type, struct made *m)
{
    *m = (struct made){ .value = { .type = type } };
    m->value.number = (int64_t)number() - 2;
    m->value.flag = test_below(&seed, 2);
    m->value.timestamp = (int64_t)test_below(&seed, 3) - 1;
    m->value.node = hf_str(words[test_below(&seed, ITEMS)]);
    m->value.bytes = hf_str(words[test_below(&seed, ITEMS)]);
    m->value.items = m->items;
    for (size_t i = 0; i < ITEMS; i++)
        if (test_below(&seed, 2))
            m->items[m->value.item_count++] =
                (struct hf_item){ hf_str(words[i]), number(), number() };
}

static struct hf_bytes encode(const struct made *m)
{
    struct hf_bytes out = { NULL, 0 };
    assert_int_equal(hf_merge_encode(&m->value, &plan, &out), HF_OK);
    return out;
}

static struct hf_bytes join(enum hf_register_type type, struct hf_bytes a, struct hf_bytes b)
{
    struct hf_bytes out = { NULL, 0 };
    assert_int_equal(hf_merge_join(type, a, b, &plan, &out), HF_OK);
    return out;
}

static void laws(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        enum hf_register_type type = types[test_below(&seed, TYPES)];
        struct made m[3];
        struct hf_bytes x[3];
        hf_plan_reset(&plan);
        for (int i = 0; i < 3; i++) {
            make(type, &m[i]);
            x[i] = encode(&m[i]);
        }
        struct hf_bytes xy = join(type, x[0], x[1]);
        assert_true(hf_bytes_equal(join(type, x[0], x[0]), x[0])); /* idempotent */
        assert_true(hf_bytes_equal(join(type, x[1], x[0]), xy));   /* commutative */
        assert_true(hf_bytes_equal(join(type, xy, x[2]),
                                   join(type, x[0], join(type, x[1], x[2])))); /* associative */
        assert_true(hf_bytes_equal(join(type, x[0], xy), xy));                 /* x is below xy */
        assert_true(hf_bytes_equal(join(type, xy, x[1]), xy));
    }
}

/* "Up" in the type's own words, read from the decoded value. */
static bool below(const struct hf_value *a, const struct hf_value *b)
{
    switch (a->type) {
    case HF_TYPE_MAX: return a->number <= b->number;
    case HF_TYPE_MIN: return a->number >= b->number;
    case HF_TYPE_OR: return !a->flag || b->flag;
    case HF_TYPE_LWW: return a->timestamp <= b->timestamp;
    default: break;
    }
    for (size_t i = 0; i < a->item_count; i++) {
        size_t j = 0;
        while (j < b->item_count && !hf_bytes_equal(a->items[i].name, b->items[j].name))
            j++;
        if (j == b->item_count || a->items[i].up > b->items[j].up ||
            a->items[i].down > b->items[j].down)
            return false;
    }
    return true;
}

static void values_only_move_up(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        enum hf_register_type type = types[test_below(&seed, TYPES)];
        struct made a, b;
        struct hf_item room[3][ITEMS];
        struct hf_value x, y, z;
        hf_plan_reset(&plan);
        make(type, &a);
        make(type, &b);
        struct hf_bytes p = encode(&a), q = encode(&b);
        assert_true(hf_merge_decode(type, p, room[0], ITEMS, &x));
        assert_true(hf_merge_decode(type, q, room[1], ITEMS, &y));
        assert_true(hf_merge_decode(type, join(type, p, q), room[2], ITEMS, &z));
        assert_true(below(&x, &z) && below(&y, &z));
        for (size_t i = 0; i < z.item_count; i++) { /* and no higher than it must */
            bool from_x = false, from_y = false;
            for (size_t j = 0; j < x.item_count; j++)
                from_x |= hf_bytes_equal(x.items[j].name, z.items[i].name);
            for (size_t j = 0; j < y.item_count; j++)
                from_y |= hf_bytes_equal(y.items[j].name, z.items[i].name);
            assert_true(from_x || from_y);
        }
    }
}

static void the_order_of_items_does_not_matter(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct made a, b;
        hf_plan_reset(&plan);
        make(types[test_below(&seed, TYPES)], &a);
        b = a;
        b.value.items = b.items;
        for (size_t i = b.value.item_count; i > 1; i--) {
            size_t j = test_below(&seed, i);
            struct hf_item t = b.items[i - 1];
            b.items[i - 1] = b.items[j];
            b.items[j] = t;
        }
        assert_true(hf_bytes_equal(encode(&a), encode(&b)));
    }
}

/* Two replicas hear the same merges, each in its own order and some twice. */
static void replicas_agree(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        enum hf_register_type type = types[test_below(&seed, TYPES)];
        enum { MERGES = 6 };
        struct made m[MERGES];
        struct world *replicas[2] = { world_new(), world_new() };
        for (int i = 0; i < MERGES; i++)
            make(type, &m[i]);
        for (int r = 0; r < 2; r++) {
            unsigned heard = 0;
            uint64_t version = 0;
            while (heard != (1U << MERGES) - 1) {
                unsigned i = (unsigned)test_below(&seed, MERGES);
                struct hf_request request = { .action = HF_MERGE,
                                              .merge = { hf_str("r"), &m[i].value } };
                assert_int_equal(world_do(replicas[r], &request), HF_OK);
                /* Heard before: nothing changes. */
                if (heard >> i & 1)
                    assert_true(replicas[r]->plan.row_count == 0);
                assert_true(replicas[r]->plan.answer.reg.version ==
                            version + replicas[r]->plan.row_count);
                version = replicas[r]->plan.answer.reg.version;
                heard |= 1U << i;
            }
        }
        const struct hf_row *a = world_row(replicas[0], HF_ROW_REGISTER, "", "r", "");
        const struct hf_row *b = world_row(replicas[1], HF_ROW_REGISTER, "", "r", "");
        assert_true(hf_bytes_equal(a->reg.value.bytes, b->reg.value.bytes));
        world_free(replicas[0]);
        world_free(replicas[1]);
    }
}

int main(void)
{
    plan.scratch = malloc(HF_PLAN_SCRATCH);
    seed = test_seed("merges", 20231115);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(laws),
        cmocka_unit_test(values_only_move_up),
        cmocka_unit_test(the_order_of_items_does_not_matter),
        cmocka_unit_test(replicas_agree),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(plan.scratch);
    return failed;
}
