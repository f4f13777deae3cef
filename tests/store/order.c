/* Nodes in order: at random against a plain list, and how much memory and work that takes. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include "engine/engine.h"
#include "store/journal/order.h"
#include "store/journal/rows.h"
#include "store/journal/writer.h"

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

/* A guard kept a place for every entry that it ever had, as long as one that lasts stood before
 * them (92 MB after 2.4 million); and a mass of rows that were over at once was looked through
 * again for each row that was freed, under the lock that every request waits for. Counted, not
 * timed. */

enum { GROUP = 500, STEP_MAX = 4096, FREED_MAX = 1024 };

static struct kit *k;
static unsigned entries_made;

static int setup_store(void **state)
{
    (void)state;
    k = kit_make();
    entries_made = 0;
    return 0;
}

static int teardown_store(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

/* So many requests of one action, on guards of which there are `guards`; each with a new name. */
static void ask_many(enum hf_action action, unsigned rows, unsigned guards)
{
    static struct hf_request r[GROUP];
    static char names[GROUP][24], of[GROUP][24];
    for (unsigned done = 0; done < rows; done += GROUP) {
        for (unsigned i = 0; i < GROUP; i++, entries_made++) {
            snprintf(names[i], sizeof names[i], "n-%u", entries_made);
            snprintf(of[i], sizeof of[i], "g-%u", entries_made % guards);
            r[i] = (struct hf_request){ .action = action };
            if (action == HF_RECORD) {
                r[i].identity.guard = hf_str(of[i]);
                r[i].identity.identity = hf_str(names[i]);
            } else if (action == HF_SET_GUARD) {
                r[i].set_guard.name = hf_str(of[i]);
                r[i].set_guard.window_ms = SECOND;
            } else {
                r[i].key = hf_str(names[i]);
                r[i].begin.lease_ms = SECOND;
            }
        }
        assert_int_equal(hf_do_many(k->db, r, NULL, GROUP), HF_OK);
    }
}

/* Maintain until `entries` are left. Each step is bounded. Returns how many steps that were. */
static unsigned maintain_until(uint64_t entries)
{
    unsigned steps = 0;
    for (uint64_t left; (left = kit_stats(k).entries) > entries; steps++) {
        assert_true(steps < 100000);
        hf_maintain(k->db);
        assert_true(left - kit_stats(k).entries <= FREED_MAX);
        assert_true(hf_writer_of(k->db->store)->journal->looked <= STEP_MAX);
    }
    return steps;
}

static void what_has_left_takes_no_memory(void **state)
{
    (void)state;
    uint64_t before = 0;
    assert_int_equal(kit_guard(k, "g-0", HF_DURATION_MAX_MS, NULL, 0), HF_OK);
    assert_int_equal(kit_ask(k, HF_RECORD, "g-0", "head", NULL), HF_OK);
    assert_int_equal(kit_guard(k, "g-0", SECOND, NULL, 0), HF_OK);
    for (int round = 0; round < 40; round++) {
        kit_at(k, round * MINUTE);
        ask_many(HF_RECORD, GROUP, 1);
        kit_at(k, round * MINUTE + SECOND);
        maintain_until(1);
        if (round == 20) /* until then the parts of the tables grow, once */
            before = kit_stats(k).memory_bytes;
    }
    assert_in_range(kit_stats(k).memory_bytes, 0, before + 16384);
    assert_int_equal(kit_ask(k, HF_CHECK, "g-0", "head", NULL), HF_OK);
    assert_true(k->got.answer.seen.seen);
}

static void a_mass_of_entries_leaves_in_bounded_steps(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    assert_int_equal(kit_guard(k, "g-0", SECOND, NULL, 0), HF_OK);
    ask_many(HF_RECORD, COUNT, 1);
    kit_at(k, MINUTE);
    assert_in_range(maintain_until(0), COUNT / FREED_MAX, COUNT / 128);
}

/* Behind one that lasts they leave in no order: by looking through the table. */
static void so_does_one_behind_an_entry_that_lasts(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    assert_int_equal(kit_guard(k, "g-0", HOUR, NULL, 0), HF_OK);
    assert_int_equal(kit_ask(k, HF_RECORD, "g-0", "head", NULL), HF_OK);
    assert_int_equal(kit_guard(k, "g-0", SECOND, NULL, 0), HF_OK);
    ask_many(HF_RECORD, COUNT, 1);
    kit_at(k, MINUTE);
    assert_in_range(maintain_until(1), COUNT / FREED_MAX, COUNT / 64);
}

static void many_guards_are_looked_at_in_bounded_steps(void **state)
{
    (void)state;
    enum { GUARDS = 5000 };
    ask_many(HF_SET_GUARD, GUARDS, GUARDS);
    ask_many(HF_RECORD, GUARDS, GUARDS);
    assert_int_equal(kit_stats(k).entries, GUARDS);
    kit_settle(k);
    assert_int_equal(kit_stats(k).entries, GUARDS);
    kit_at(k, MINUTE);
    maintain_until(0);
    ask_many(HF_RECORD, GROUP, GUARDS); /* and again, of some guards somewhere */
    kit_at(k, 2 * MINUTE);
    kit_settle(k);
    assert_int_equal(kit_stats(k).entries, 0);
}

static void a_mass_of_claims_leaves_in_bounded_steps(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    k->options.idempotency_window_ms = MINUTE;
    kit_reopen(k);
    ask_many(HF_BEGIN, COUNT, 1);
    for (unsigned i = 0; i < COUNT; i += GROUP) {
        static struct hf_request r[GROUP];
        static char names[GROUP][24];
        for (unsigned n = 0; n < GROUP; n++) {
            snprintf(names[n], sizeof names[n], "n-%u", i + n);
            r[n] = (struct hf_request){ .action = HF_COMPLETE, .key = hf_str(names[n]) };
            r[n].settle.fence = i + n + 1;
        }
        assert_int_equal(hf_do_many(k->db, r, NULL, GROUP), HF_OK);
    }
    assert_int_equal(kit_stats(k).claims, COUNT);
    kit_at(k, HOUR);
    unsigned steps = 0;
    for (uint64_t left; (left = kit_stats(k).claims) > 0; steps++) {
        assert_true(steps < COUNT / 16);
        hf_maintain(k->db);
        assert_true(left - kit_stats(k).claims <= FREED_MAX);
        assert_true(hf_writer_of(k->db->store)->journal->looked <= STEP_MAX);
    }
}

/* More guards than a snapshot copies at once, each with an entry, which needs its guard before
 * it. */
static void guards_come_back_out_of_several_slices(void **state)
{
    (void)state;
    enum { GUARDS = 4000, NAME = 500 };
    static char name[NAME + 1];
    k->options.snapshot_every_bytes = 1 << 20;
    kit_reopen(k);
    memset(name, 'g', NAME);
    for (unsigned i = 0; i < GUARDS; i += GROUP) {
        static struct hf_request r[GROUP];
        static char names[GROUP][NAME + 1];
        for (unsigned n = 0; n < GROUP; n++) {
            snprintf(names[n], sizeof names[n], "%s", name);
            names[n][snprintf(names[n], sizeof names[n], "%u", i + n)] = 'g';
            r[n] = (struct hf_request){ .action = HF_SET_GUARD };
            r[n].set_guard.name = hf_str(names[n]);
            r[n].set_guard.window_ms = HOUR;
        }
        assert_int_equal(hf_do_many(k->db, r, NULL, GROUP), HF_OK);
        for (unsigned n = 0; n < GROUP; n++) {
            r[n] = (struct hf_request){ .action = HF_RECORD };
            r[n].identity.guard = hf_str(names[n]);
            r[n].identity.identity = hf_str("x");
        }
        assert_int_equal(hf_do_many(k->db, r, NULL, GROUP), HF_OK);
    }
    kit_settle(k);
    assert_true(kit_stats(k).snapshots > 0);
    kit_reopen(k);
    assert_true(kit_stats(k).recovery_replayed < GUARDS);
    assert_int_equal(kit_stats(k).guards, GUARDS);
    assert_int_equal(kit_stats(k).entries, GUARDS);
    kit_at(k, HOUR);
    kit_settle(k);
    assert_int_equal(kit_stats(k).entries, 0);
}

#define TEST_STORE(name) cmocka_unit_test_setup_teardown(name, setup_store, teardown_store)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_the_same_as_a_plain_list),
        TEST(few_that_stay_keep_little),
        TEST(what_is_reserved_is_there_whatever_leaves),
        TEST(what_came_in_no_order_is_sorted),
        TEST(two_of_one_stamp_are_told_apart),
        TEST_STORE(what_has_left_takes_no_memory),
        TEST_STORE(a_mass_of_entries_leaves_in_bounded_steps),
        TEST_STORE(so_does_one_behind_an_entry_that_lasts),
        TEST_STORE(many_guards_are_looked_at_in_bounded_steps),
        TEST_STORE(a_mass_of_claims_leaves_in_bounded_steps),
        TEST_STORE(guards_come_back_out_of_several_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
