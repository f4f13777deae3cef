/* Which transactions the standbys are known to have: numbers that wrap around, timelines, and what
 * is forgotten. No database. */
#include "store/postgres/replicated.h"
#include "support/test.h"

#define EPOCH (UINT64_C(1) << 32)

static void a_number_gets_its_epoch(void **state)
{
    (void)state;
    assert_int_equal(hf_pg_xid(700, 701), 700);
    assert_int_equal(hf_pg_xid(700, 3 * EPOCH + 701), 3 * EPOCH + 700);
    assert_int_equal(hf_pg_xid(700, 3 * EPOCH + 700),
                     2 * EPOCH + 700); /* nobody can see it in this epoch yet */
    assert_int_equal(hf_pg_xid(UINT32_MAX, 3 * EPOCH + 5), 3 * EPOCH - 1);
    for (uint32_t special = 0; special < 3; special++)
        assert_int_equal(hf_pg_xid(special, 3 * EPOCH + 5), 0);
}

static void nothing_is_known_at_first(void **state)
{
    struct hf_pg_replicated r = { .below = 0 };
    (void)state;
    assert_false(hf_pg_replicated_has(&r, 1, 3));
    assert_false(hf_pg_replicated_has(&r, 0, 3));
    assert_true(hf_pg_replicated_has(&r, 1, 0)); /* frozen */
}

static void all_below_are_known_and_single_ones(void **state)
{
    struct hf_pg_replicated r = { .below = 0 };
    (void)state;
    hf_pg_replicated_below(&r, 1, EPOCH + 100);
    assert_true(hf_pg_replicated_has(&r, 1, 99) && hf_pg_replicated_has(&r, 1, EPOCH + 99));
    assert_false(hf_pg_replicated_has(&r, 1, EPOCH + 100));
    hf_pg_replicated_below(&r, 1, 50); /* it was slower */
    assert_true(hf_pg_replicated_has(&r, 1, EPOCH + 99));
    hf_pg_replicated_add(&r, 1, EPOCH + 200);
    assert_true(hf_pg_replicated_has(&r, 1, EPOCH + 200));
    assert_false(hf_pg_replicated_has(&r, 1, EPOCH + 199));
    /* Another with the same place: one of the two is forgotten, and none is made up. */
    assert_false(hf_pg_replicated_has(&r, 1, EPOCH + 200 + HF_PG_KNOWN));
    hf_pg_replicated_add(&r, 1, EPOCH + 200 + HF_PG_KNOWN);
    assert_true(hf_pg_replicated_has(&r, 1, EPOCH + 200 + HF_PG_KNOWN));
    assert_false(hf_pg_replicated_has(&r, 1, EPOCH + 200));
}

/* For a row that is not there. */
static void all_are_known_up_to_a_number(void **state)
{
    struct hf_pg_replicated r = { .below = 0 };
    (void)state;
    assert_false(hf_pg_replicated_all(&r, 1, 100));
    hf_pg_replicated_below(&r, 1, 100);
    assert_true(hf_pg_replicated_all(&r, 1, 99) && hf_pg_replicated_all(&r, 1, 100));
    assert_false(hf_pg_replicated_all(&r, 1, 101) || hf_pg_replicated_all(&r, 2, 100));
    hf_pg_replicated_add(&r, 1, 101);
    assert_false(hf_pg_replicated_all(&r, 1, 102)); /* 100 is missing */
    hf_pg_replicated_add(&r, 1, 100);
    assert_true(hf_pg_replicated_all(&r, 1, 102));
    assert_false(hf_pg_replicated_all(&r, 1, 103));
    for (uint64_t i = 100; i < 101 + HF_PG_KNOWN; i++)
        hf_pg_replicated_add(&r, 1, i);
    assert_false(hf_pg_replicated_all(&r, 1, 101 + HF_PG_KNOWN)); /* 100 is forgotten */
    hf_pg_replicated_below(&r, 1, 101);
    assert_true(hf_pg_replicated_all(&r, 1, 101 + HF_PG_KNOWN));
    assert_false(hf_pg_replicated_all(&r, 1, UINT64_C(1) << 47));
}

/* A standby that was promoted gives numbers that it has not heard of to others. */
static void a_timeline_knows_nothing_of_another(void **state)
{
    struct hf_pg_replicated r = { .below = 0 };
    (void)state;
    hf_pg_replicated_below(&r, 1, 1000);
    hf_pg_replicated_add(&r, 1, 1500);
    assert_false(hf_pg_replicated_has(&r, 2, 999) || hf_pg_replicated_has(&r, 2, 1500));
    hf_pg_replicated_below(&r, 2, 800);
    assert_true(hf_pg_replicated_has(&r, 2, 799));
    assert_false(hf_pg_replicated_has(&r, 2, 999) || hf_pg_replicated_has(&r, 1, 799));
    hf_pg_replicated_below(&r, 1, 2000); /* an old primary does not come back */
    assert_false(hf_pg_replicated_has(&r, 1, 799) || hf_pg_replicated_has(&r, 2, 800));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_gets_its_epoch),
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(all_below_are_known_and_single_ones),
        cmocka_unit_test(all_are_known_up_to_a_number),
        cmocka_unit_test(a_timeline_knows_nothing_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
