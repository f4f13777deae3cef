/* Nodes in order: at random against a plain list, and how much memory and work that takes. */
#include "store/journal/order.h"

#include "store/journal/rows.h"
#include "support/test.h"

#include <stdlib.h>

enum { MOST = 20000 };

static struct hf_order o;
static uint64_t bytes;
static uint64_t random_state;

static uint64_t below(uint64_t n)
{
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    return hf_mix64(random_state) % n;
}

/* The plain list: [i] is the node with stamp 3 * i + 1, if it is there. */
static struct hf_node *nodes;
static bool there[MOST];
static size_t made, count;

static int setup(void **state)
{
    (void)state;
    nodes = calloc(MOST, sizeof *nodes);
    memset(there, 0, sizeof there);
    made = count = 0;
    bytes = 0;
    random_state = 7;
    return nodes ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    hf_order_free(&o, &bytes);
    assert_int_equal(bytes, 0);
    free(nodes);
    return 0;
}

static uint64_t stamp_of(size_t i)
{
    return 3 * i + 1;
}

static void add(void)
{
    assert_true(hf_order_reserve(&o, 1, &bytes));
    hf_order_add(&o, stamp_of(made), &nodes[made]);
    there[made++] = true;
    count++;
}

static void leave(size_t i)
{
    hf_order_leave(&o, stamp_of(i), &nodes[i], &bytes);
    count -= there[i];
    there[i] = false;
}

/* Memory is bounded by what is there: an item takes 16 bytes. */
static void bounded(void)
{
    assert_in_range(bytes, 0, count * 16 * 5 + 4 * HF_ORDER_CHUNK * 16);
    assert_int_equal(o.live, count);
}

static void same_from(uint64_t stamp)
{
    struct hf_order_at at = hf_order_find(&o, stamp), back = at;
    size_t i = (size_t)((stamp + 1) / 3);
    const struct hf_order_item *item;
    for (size_t n = i; n < made; n++)
        if (there[n]) {
            item = hf_order_next(&o, &at);
            assert_non_null(item);
            assert_int_equal(item->stamp, stamp_of(n));
            assert_ptr_equal(item->node, &nodes[n]);
        }
    assert_null(hf_order_next(&o, &at));
    for (size_t n = i < made ? i : made; n > 0; n--)
        if (there[n - 1]) {
            item = hf_order_back(&o, &back);
            assert_non_null(item);
            assert_ptr_equal(item->node, &nodes[n - 1]);
        }
    assert_null(hf_order_back(&o, &back));
}

static void it_is_the_same_as_a_plain_list(void **state)
{
    (void)state;
    for (int round = 0; made < MOST; round++) {
        size_t adds = 1 + below(600), leaves = below(2) ? below(600) : below(60);
        for (size_t i = 0; i < adds && made < MOST; i++)
            add();
        size_t from = below(made), kind = below(3);
        for (size_t i = 0; i < leaves; i++)
            leave(kind == 0 ? below(made) : kind == 1 ? (from + i) % made : i);
        bounded();
        if (round % 8 == 0)
            same_from(below(3 * made + 3));
    }
    same_from(0);
    same_from(UINT64_MAX / 2);
    for (size_t i = 0; i < made; i++)
        leave(below(2) ? i : made - 1 - i);
    for (size_t i = 0; i < made; i++)
        leave(i);
    bounded();
    assert_int_equal(count, 0);
    same_from(0);
    for (size_t i = 0; i < 3; i++)
        leave(i); /* not there any more */
    assert_int_equal(o.live, 0);
}

/* One in so many stays, at the front or everywhere. */
static void few_that_stay_keep_little(void **state)
{
    (void)state;
    static const size_t every[] = { MOST, 3000, 256, 100, 3 };
    for (size_t e = 0; e < sizeof every / sizeof *every; e++) {
        for (size_t i = 0; made < MOST; i++) {
            add();
            if (i >= 300 && (i - 300) % every[e] != 0)
                leave(i - 300);
        }
        bounded();
        same_from(0);
        for (size_t i = 0; i < made; i++)
            leave(i);
        bounded();
        made = 0; /* stamps begin anew: nothing is there */
    }
}

static void what_is_reserved_is_there_whatever_leaves(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    for (int round = 0; round < 10; round++) {
        size_t before = made;
        assert_true(hf_order_reserve(&o, MANY, &bytes));
        uint64_t had = bytes;
        for (size_t i = 0; i < before; i++)
            if (below(4))
                leave(i);
        assert_true(bytes <= had);
        for (size_t i = 0; i < MANY; i++) {
            hf_order_add(&o, stamp_of(made), &nodes[made]);
            there[made++] = true;
            count++;
        }
        same_from(below(3 * made));
    }
}

static void what_came_in_no_order_is_sorted(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    for (size_t i = 0; i < COUNT; i++) {
        size_t n = i * 1237 % COUNT;
        assert_true(hf_order_reserve(&o, 1, &bytes));
        hf_order_add(&o, stamp_of(n), &nodes[n]);
        there[n] = true;
    }
    made = count = COUNT;
    assert_true(hf_order_sort(&o));
    assert_int_equal(o.newest, stamp_of(COUNT - 1));
    same_from(0);
    same_from(7777);
    leave(2500);
    same_from(0);
}

/* A file may bring two of one stamp. */
static void two_of_one_stamp_are_told_apart(void **state)
{
    (void)state;
    assert_true(hf_order_reserve(&o, 3, &bytes));
    for (size_t i = 0; i < 3; i++)
        hf_order_add(&o, 5, &nodes[i]);
    hf_order_leave(&o, 5, &nodes[1], &bytes);
    hf_order_leave(&o, 5, &nodes[2], &bytes);
    hf_order_leave(&o, 5, &nodes[3], &bytes);
    struct hf_order_at at = hf_order_find(&o, 0);
    assert_ptr_equal(hf_order_next(&o, &at)->node, &nodes[0]);
    assert_null(hf_order_next(&o, &at));
    hf_order_leave(&o, 5, &nodes[0], &bytes);
    assert_int_equal(o.live, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_the_same_as_a_plain_list),
        TEST(few_that_stay_keep_little),
        TEST(what_is_reserved_is_there_whatever_leaves),
        TEST(what_came_in_no_order_is_sorted),
        TEST(two_of_one_stamp_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
