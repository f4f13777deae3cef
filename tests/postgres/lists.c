/* Lists over what many wrote at once. */
#include "engine/kit/engine.h"
#include "postgres/kit/functions.h"
#include "support/test.h"

static struct postgres p;

static int begin(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    return 0;
}

static int end(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

static size_t listed(struct hf_db *db, hf_time from, hf_time to)
{
    struct hf_page page = { .count = 0 };
    struct hf_query query = { .kind = HF_LIST_HOLDS, .from = from, .to = to };
    assert_int_equal(hf_list(db, &query, &page), HF_OK);
    size_t count = page.count;
    assert_int_equal(page.next_cursor, 0);
    hf_page_clear(&page);
    return count;
}

/* Transactions that overlap draw their ordinals in another order than they took the time: the third
 * was placed before the second. */
static void a_hold_is_listed_by_its_time_whoever_was_numbered_before_it(void **state)
{
    struct hf_options options = { .postgres = postgres_conninfo(&p), .no_background = true };
    struct hf_error why;
    struct hf_db *db;
    (void)state;
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    postgres_run(&p, "SELECT holdfast.place_hold('k' || i, 'r' || i, 'guest', '1 hour') FROM "
                     "generate_series(1, 4) i");
    postgres_run(&p, "UPDATE holdfast.hold SET placed_at = '2026-01-01 00:00:00Z'::timestamptz + "
                     "(ARRAY[0, 20, 18, 30])[ordinal] * interval '1 ms'");
    const hf_time start = INT64_C(1767225600000);
    assert_int_equal(listed(db, 0, 0), 4);
    assert_int_equal(listed(db, 0, start + 20), 2);
    assert_int_equal(listed(db, start + 20, 0), 2);
    assert_int_equal(listed(db, start + 19, start + 30), 1);
    assert_int_equal(listed(db, start + 31, 0), 0);
    hf_close(db);
}

/* Another server has committed something at a later time, of which this one has heard nothing
 * yet. */
static void identities_are_listed_by_engine_time(void **state)
{
    struct hf_options options = { .postgres = postgres_conninfo(&p), .no_background = true };
    struct hf_query query = { .kind = HF_LIST_ENTRIES, .name = hf_str("seen") };
    struct hf_page page = { .count = 0 };
    struct hf_error why;
    struct hf_db *db;
    (void)state;
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    struct hf_request set = { .action = HF_SET_GUARD,
                              .set_guard = { .name = hf_str("seen"), .window_ms = 1800000 } };
    struct hf_request record = { .action = HF_RECORD,
                                 .identity = { hf_str("seen"), hf_str("x"), hf_str(""), false } };
    assert_int_equal(hf_do(db, &set, NULL), HF_OK);
    assert_int_equal(hf_do(db, &record, NULL), HF_OK);
    assert_int_equal(hf_list(db, &query, &page), HF_OK);
    assert_int_equal(page.count, 1);
    hf_page_clear(&page);
    postgres_run(&p, "UPDATE holdfast.journal SET at = at + interval '1 hour' WHERE number = "
                     "(SELECT max(number) FROM holdfast.journal)");
    assert_int_equal(hf_list(db, &query, &page), HF_OK);
    assert_int_equal(page.count, 0);
    hf_page_clear(&page);
    hf_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hold_is_listed_by_its_time_whoever_was_numbered_before_it),
        cmocka_unit_test(identities_are_listed_by_engine_time),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
