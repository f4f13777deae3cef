/* Each check of guards (DP1 to DP4), claims, leases, fences, registers, clients and the outbox finds what
 * is planted for it, by its name. */
#include "support/audit_judge.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* ---- Guards ---- */

static void dp1_other_window(void **state)
{
    (void)state;
    story_guard(&judge.story, "g", 60000);
    story_record(&judge.story, "g", "a", 60001);
    judged("DP1", "the window is 1m");
    judged_only(" DP1 IR6 ");
}

static void dp1_no_guard(void **state)
{
    (void)state;
    story_record(&judge.story, "g", "a", 60000);
    judged("DP1", "of which there is no record");
}

static void dp2_again(void **state)
{
    (void)state;
    story_guard(&judge.story, "g", 60000);
    story_record(&judge.story, "g", "a", 60000);
    story_commit(&judge.story);
    story_pass(&judge.story, 60000 - 1001);
    story_record(&judge.story, "g", "a", 60000);
    judged("DP2", "is recorded again");
    judged_only(" DP2 IR6 ");
}

static void dp2_at_the_end(void **state)
{
    (void)state;
    story_guard(&judge.story, "g", 60000);
    story_record(&judge.story, "g", "a", 60000);
    story_commit(&judge.story);
    story_pass(&judge.story, 60000 - 1000);
    story_record(&judge.story, "g", "a", 60000);
    story_commit(&judge.story);
    judge_run();
    assert_int_equal(judge.report.verdict, HF_AUDIT_OK);
}

static void dp3_check_left_a_record(void **state)
{
    (void)state;
    story_guard(&judge.story, "g", 60000);
    story_record(&judge.story, "g", "a", 60000)->action = HF_CHECK;
    judged("DP3", "a check left a record");
    judged_only(" DP3 IR6 ");
}

static void dp4_never_ends(void **state)
{
    (void)state;
    story_guard(&judge.story, "g", 60000);
    story_record(&judge.story, "g", "a", 60000)->rows[0].entry.expires_at = INT64_MAX;
    judged("DP4", "it would never leave");
    judged_only(" DP1 DP4 IR6 ");
}

/* ---- Claims, leases, fences, registers, clients, outbox ---- */

static void claim_begins_twice(void **state)
{
    (void)state;
    story_begin(&judge.story, "c");
    story_commit(&judge.story);
    story_begin(&judge.story, "c");
    judged("CLAIMS", "while it is in progress");
    judged_only(" CLAIMS ");
}

static void claim_outcome_unknown(void **state)
{
    (void)state;
    story_begin(&judge.story, "c");
    story_commit(&judge.story);
    story_pass(&judge.story, 60000);
    story_begin(&judge.story, "c");
    judged("CLAIMS", "its outcome is unknown");
}

static void claim_taken_over(void **state)
{
    (void)state;
    story_begin(&judge.story, "c")->rows[0].claim.on_abandon = HF_ABANDON_RETRY;
    story_commit(&judge.story);
    story_pass(&judge.story, 60000);
    story_begin(&judge.story, "c");
    story_commit(&judge.story);
    judge_run();
    judge_show();
    assert_int_equal(judge.report.verdict, HF_AUDIT_OK);
}

static void claim_stale_finisher(void **state)
{
    (void)state;
    hf_time begun = judge.story.now;
    story_begin(&judge.story, "c");
    story_commit(&judge.story);
    story_settle(&judge.story, HF_COMPLETE, "c", 7, begun);
    judged("CLAIMS", "under another fence");
    judged_only(" CLAIMS ");
}

static void claim_settled_twice(void **state)
{
    (void)state;
    hf_time begun = judge.story.now;
    story_begin(&judge.story, "c");
    story_settle(&judge.story, HF_COMPLETE, "c", 1, begun);
    story_settle(&judge.story, HF_FAIL, "c", 1, begun);
    judged("CLAIMS", "although it was not started");
}

static void fence_falls(void **state)
{
    (void)state;
    judge.story.fence = 10;
    story_begin(&judge.story, "c");
    story_commit(&judge.story);
    judge.story.fence = 4;
    story_begin(&judge.story, "d");
    judged("FENCES", "gets fence 5, which is not above 11");
    judged_only(" FENCES ");
}

static void resource_fence_falls(void **state)
{
    (void)state;
    story_resource(&judge.story, "room", 1)->rows[0].resource.fence = 9;
    story_commit(&judge.story);
    story_resource(&judge.story, "room", 1)->rows[0].resource.fence = 8;
    judged("FENCES", "falls from 9 to 8");
}

static void lease_granted_twice(void **state)
{
    (void)state;
    story_grant(&judge.story, "k1", "leader", "a");
    story_commit(&judge.story);
    story_grant(&judge.story, "k2", "leader", "b");
    judged("LEASES", "while another has it");
    judged_only(" LEASES ");
}

static void register_skips_version(void **state)
{
    (void)state;
    story_write(&judge.story, "k1", "limit", "1", 1);
    story_commit(&judge.story);
    story_write(&judge.story, "k2", "limit", "2", 3);
    judged("REGISTERS", "goes from version 1 to 3");
    judged_only(" REGISTERS ");
}

static void register_fence_falls(void **state)
{
    (void)state;
    struct jw_entry *e = story_write(&judge.story, "k1", "limit", "1", 1);
    e->rows[0].reg.fence = 5;
    story_commit(&judge.story);
    story_write(&judge.story, "k2", "limit", "2", 2);
    judged("REGISTERS", "falls from 5 to 0");
}

static void number_twice(void **state)
{
    (void)state;
    story_number(&judge.story, "c", 1, "a");
    story_commit(&judge.story);
    story_number(&judge.story, "c", 1, "b");
    judged("SEQUENCES", "number 1 was used before");
    judged_only(" SEQUENCES IR8 ");
}

static void number_far_back(void **state)
{
    (void)state;
    story_number(&judge.story, "c", 300, "a");
    story_commit(&judge.story);
    story_number(&judge.story, "c", 44, "b");
    judged("SEQUENCES", "too far back");
}

static void outbox_gap(void **state)
{
    (void)state;
    story_apply(&judge.story, "k1", 1);
    story_commit(&judge.story);
    story_apply(&judge.story, "k2", 3);
    judged("OUTBOX", "row 3 comes after row 1");
    judged_only(" OUTBOX ");
}

static void time_of_entry(void **state)
{
    (void)state;
    story_guard(&judge.story, "g", 60000)->recorded_at -= 1;
    judged("TIME", "the entry's batch has time");
    judged_only(" TIME ");
}

#define T(name) cmocka_unit_test_setup_teardown(name, judge_setup, judge_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(dp1_other_window),
        T(dp1_no_guard),
        T(dp2_again),
        T(dp2_at_the_end),
        T(dp3_check_left_a_record),
        T(dp4_never_ends),
        T(claim_begins_twice),
        T(claim_outcome_unknown),
        T(claim_taken_over),
        T(claim_stale_finisher),
        T(claim_settled_twice),
        T(fence_falls),
        T(resource_fence_falls),
        T(lease_granted_twice),
        T(register_skips_version),
        T(register_fence_falls),
        T(number_twice),
        T(number_far_back),
        T(outbox_gap),
        T(time_of_entry),
    };
    return cmocka_run_group_tests_name("audit of guards, claims, leases, registers", tests, NULL, NULL);
}
