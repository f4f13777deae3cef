/* A wall clock that was thirty days ahead for a second and a half was believed: the sweeper
 * committed that time, every key and every identity was forgotten, every hold expired, and a retry
 * acted again. */
#include "engine/kit/engine.h"
#include "support/test.h"

#define JUMP (30 * DAY)

static struct kit *k;
static char id[HF_ID_SIZE];

/* The boot clock is `boot` after the start, and the wall clock is ahead of it by `ahead`. */
static void at(int64_t boot, int64_t ahead)
{
    kit_at(k, boot + ahead);
    atomic_store(&k->io.boot, 1000000 + boot);
}

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    at(0, 0);
    kit_reopen(k);
    assert_int_equal(kit_guard(k, "g", HOUR, NULL, 0), HF_OK);
    assert_int_equal(kit_ask(k, HF_RECORD, "g", "x", NULL), HF_OK);
    assert_int_equal(kit_place(k, "key", "room", "guest", HOUR), HF_OK);
    memcpy(id, k->got.answer.hold.id, HF_ID_SIZE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

/* Clients only ask; the store does its own work. */
static void a_moment_passes(void)
{
    for (int i = 0; i < 30; i++)
        hf_maintain(k->db);
    assert_int_equal(kit_get_hold(k, id), HF_OK);
    assert_int_equal(kit_ask(k, HF_CHECK, "g", "x", NULL), HF_OK);
}

static void nothing_was_forgotten(void)
{
    assert_int_equal(kit_get_hold(k, id), HF_OK);
    assert_int_equal(k->got.answer.hold.state, HF_HELD);
    assert_int_equal(kit_ask(k, HF_CHECK, "g", "x", NULL), HF_OK);
    assert_true(k->got.answer.seen.seen);
    struct hf_page page;
    kit_list(k, &(struct hf_query){ .kind = HF_LIST_ENTRIES, .name = hf_str("g") }, &page);
    assert_int_equal(page.count, 1);
    hf_page_clear(&page);
    assert_int_equal(kit_place(k, "key", "room", "guest", HOUR), HF_OK);
    assert_true(k->got.replayed);
    assert_string_equal(k->got.answer.hold.id, id);
}

static void a_jump_of_a_moment_forgets_nothing(void **state)
{
    (void)state;
    at(500, JUMP);
    a_moment_passes();
    at(1500, JUMP);
    a_moment_passes();
    nothing_was_forgotten();
    assert_int_equal(k->got.now, KIT_START + 1500); /* it goes on with the boot clock */
    at(2000, 0);
    a_moment_passes();
    nothing_was_forgotten();
    assert_int_equal(k->got.now, KIT_START + 2000); /* and did not stand still */
    assert_int_equal(kit_stats(k).clock_jumps, 1);
    assert_int_equal(kit_stats(k).clock_stalls, 0);
    kit_reopen(k);
    nothing_was_forgotten();
}

static void a_clock_that_stays_is_believed(void **state)
{
    (void)state;
    at(500, JUMP);
    a_moment_passes();
    assert_int_equal(atomic_load(&k->warnings), 1);
    assert_non_null(strstr(k->note, "jumped ahead"));
    at(60499, JUMP);
    a_moment_passes();
    nothing_was_forgotten();
    at(60500, JUMP);
    a_moment_passes();
    assert_int_equal(kit_stats(k).now, KIT_START + 60500 + JUMP);
    assert_int_equal(atomic_load(&k->warnings), 2);
    assert_non_null(strstr(k->note, "has stayed ahead"));
    kit_settle(k);
    assert_int_equal(kit_get_hold(k, id), HF_OK);
    assert_int_equal(k->got.answer.hold.state, HF_EXPIRED);
    assert_int_equal(kit_place(k, "key", "room", "guest", HOUR), HF_OK);
    assert_false(k->got.replayed);
    assert_int_equal(kit_stats(k).clock_jumps, 1);
}

/* A machine that slept: the boot clock has counted it. */
static void a_sleep_is_believed_at_once(void **state)
{
    (void)state;
    at(JUMP, 0);
    assert_int_equal(kit_place(k, "key", "room", "guest", HOUR), HF_OK);
    assert_false(k->got.replayed);
    assert_int_equal(kit_stats(k).clock_jumps, 0);
}

/* The boot clock does not say how long the store was closed. */
static void the_first_reading_is_believed(void **state)
{
    (void)state;
    kit_close(k);
    at(0, JUMP);
    kit_open(k);
    assert_int_equal(kit_stats(k).now, KIT_START + JUMP);
    assert_int_equal(kit_place(k, "key", "room", "guest", HOUR), HF_OK);
    assert_false(k->got.replayed);
    assert_int_equal(kit_stats(k).clock_jumps, 0);
}

/* What is written while the clock is not believed has the time that the boot clock gave. */
static void what_is_written_meanwhile_is_at_engine_time(void **state)
{
    (void)state;
    char other[HF_ID_SIZE];
    at(1000, JUMP);
    kit_held(k, "other", MINUTE, other);
    assert_int_equal(k->got.answer.hold.placed_at, KIT_START + 1000);
    assert_int_equal(k->got.answer.hold.expires_at, KIT_START + 1000 + MINUTE);
    at(2000, 0);
    assert_int_equal(kit_end(k, HF_CONFIRM, kit_key(k), other), HF_OK);
    assert_int_equal(k->got.answer.hold.ended_at, KIT_START + 2000);
    assert_int_equal(kit_stats(k).clock_stalls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_jump_of_a_moment_forgets_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_clock_that_stays_is_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sleep_is_believed_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_reading_is_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_written_meanwhile_is_at_engine_time, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
