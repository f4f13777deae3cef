/* A guard kept a place for every entry that it ever had, as long as one that lasts stood before
 * them (92 MB after 2.4 million); and a mass of rows that were over at once was looked through
 * again for each row that was freed, under the lock that every request waits for. Counted, not
 * timed. */
#include "engine/engine.h"
#include "engine/kit/engine.h"
#include "store/journal/writer.h"
#include "support/test.h"

enum { GROUP = 500, STEP_MAX = 4096, FREED_MAX = 1024 };

static struct kit *k;
static unsigned made;

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    made = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

/* So many requests of one action, on guards of which there are `guards`; each with a new name. */
static void ask_many(enum hf_action action, unsigned count, unsigned guards)
{
    static struct hf_request r[GROUP];
    static char names[GROUP][24], of[GROUP][24];
    for (unsigned done = 0; done < count; done += GROUP) {
        for (unsigned i = 0; i < GROUP; i++, made++) {
            snprintf(names[i], sizeof names[i], "n-%u", made);
            snprintf(of[i], sizeof of[i], "g-%u", made % guards);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_has_left_takes_no_memory),
        TEST(a_mass_of_entries_leaves_in_bounded_steps),
        TEST(so_does_one_behind_an_entry_that_lasts),
        TEST(many_guards_are_looked_at_in_bounded_steps),
        TEST(a_mass_of_claims_leaves_in_bounded_steps),
        TEST(guards_come_back_out_of_several_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
