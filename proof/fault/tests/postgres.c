/* Batches on PostgreSQL without memory: whichever allocation fails, a batch is there as a whole or
 * not at all. */
#include "postgres/kit/postgres.h"
#include "fault/kit.h"
#include "support/test.h"

#include "audit/audit.h"
#include "holdfast.h"

#include <stdio.h>
#include <stdlib.h>

/* So many that what is written for them does not fit into memory that is there already. */
enum { COUNT = 300 };

static struct postgres p;
static struct hf_db *db;
static struct hf_request requests[COUNT];
static char names[COUNT][24];

static void batch_make(unsigned round)
{
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%u-%d", round, i);
        requests[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                           .key = hf_str(names[i]),
                                           .place_hold = { .resource = hf_str(names[i]),
                                                           .requester = hf_str("guest"),
                                                           .duration_ms = 3600000 } };
    }
}

/* Each hold has a token, a resource and an entry: by how much do their numbers differ? */
static long long torn(void)
{
    return postgres_number(&p, "SELECT max(n) - min(n) FROM (SELECT count(*) n FROM holdfast.token "
                               "UNION ALL SELECT count(*) FROM "
                               "holdfast.resource UNION ALL SELECT count(*) FROM holdfast.hold "
                               "UNION ALL SELECT count(*) FROM "
                               "holdfast.journal WHERE action = 'place_hold') counts");
}

/* How many allocations a batch makes that nobody disturbs. */
static unsigned allocations(void)
{
    batch_make(0);
    assert_int_equal(hf_do_many(db, requests, NULL, COUNT), HF_OK);
    batch_make(1);
    fault_forget();
    assert_int_equal(hf_do_many(db, requests, NULL, COUNT), HF_OK);
    return fault_count(FAULT_ALLOC);
}

/* The last ones are those of writing: the rows of some tables are on their way already, and COMMIT
 * is to follow. */
static void a_batch_is_there_as_a_whole_or_not_at_all(void **state)
{
    enum { LAST = 24 };
    struct hf_options options = { .no_background = true, .postgres = postgres_conninfo(&p) };
    struct hf_error why;
    (void)state;
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    fault_here(true);
    unsigned total = allocations(), points = 0;
    for (unsigned n = total > LAST ? total - LAST : 1; n <= total + LAST / 4; n++) {
        batch_make(n + 1);
        fault_arm(FAULT_ALLOC, n, FAULT_ONCE);
        enum hf_status st = hf_do_many(db, requests, NULL, COUNT);
        unsigned failed = fault_lift();
        assert_true(st == HF_OK || st == HF_NO_MEMORY || st == HF_INDETERMINATE);
        assert_int_equal(torn(), 0);
        assert_int_equal(hf_do_many(db, requests, NULL, COUNT), HF_OK);
        points += failed;
    }
    fault_here(false);
    hf_close(db);
    assert_true(points > 0);
}

static void the_audit_finds_nothing_wrong(void **state)
{
    struct hf_audit_options options = { .postgres = postgres_conninfo(&p) };
    struct hf_audit_report report = { .verdict = HF_AUDIT_OK };
    struct hf_error why;
    (void)state;
    assert_int_equal(hf_audit_run(NULL, &options, &report, &why), HF_OK);
    enum hf_audit_verdict verdict = report.verdict;
    hf_audit_report_free(&report);
    assert_int_equal(verdict, HF_AUDIT_OK);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_there_as_a_whole_or_not_at_all),
        cmocka_unit_test(the_audit_finds_nothing_wrong),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
