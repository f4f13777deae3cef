/* Each check of guards (DP1 to DP4), claims, leases, fences, registers, clients and the outbox
 * finds what is planted for it, by its name. */
#include "audit/kit/journal_story.h"
#include "support/test.h"

#include "audit/table.h"
#include "base/bytes.h"

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
    judged("DP1", "which has no record");
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
    judged("DP4", "which is not a valid window");
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
    judged("CLAIMS", "with another fence");
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

static void claim_changes_its_retention(void **state)
{
    (void)state;
    hf_time begun = judge.story.now;
    story_begin(&judge.story, "c")->rows[0].claim.retention_ms = 5000;
    story_commit(&judge.story);
    story_settle(&judge.story, HF_COMPLETE, "c", 1, begun);
    judged("CLAIMS", "changes its retention");
    judged_only(" CLAIMS ");
}

static void claim_is_kept_for_its_retention(void **state)
{
    (void)state;
    hf_time begun = judge.story.now;
    story_begin(&judge.story, "c")->rows[0].claim.retention_ms = 5000;
    story_commit(&judge.story);
    story_settle(&judge.story, HF_COMPLETE, "c", 1, begun)->rows[0].claim.retention_ms = 5000;
    judged("CLAIMS", "is not remembered for exactly its retention");
    judged_only(" CLAIMS ");
}

static void claim_lease_ends_at_another_time(void **state)
{
    (void)state;
    hf_time begun = judge.story.now;
    story_begin(&judge.story, "c");
    story_commit(&judge.story);
    struct hf_claim *c = &story_settle(&judge.story, HF_HEARTBEAT, "c", 1, begun)->rows[0].claim;
    c->lease_expires_at++;
    judged("CLAIMS", "has a lease that ends at another time than the action says");
    judged_only(" CLAIMS ");
}

static void fence_falls(void **state)
{
    (void)state;
    judge.story.fence = 10;
    story_begin(&judge.story, "c");
    story_commit(&judge.story);
    judge.story.fence = 4;
    story_begin(&judge.story, "d");
    judged("FENCES", "gets fence 5, which is not above the earlier fence 11");
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
    judged("LEASES", "while it is held");
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

/* The register `limit` is deleted; what is left of it may be forgotten `after_ms` from now, or
 * never if it is negative. */
static struct jw_entry *deleted(const char *key, uint64_t version, int64_t after_ms)
{
    static unsigned char forms[8][8];
    static size_t used;
    unsigned char *form = forms[used++ % 8];
    struct jw_entry *e = story_write(&judge.story, key, "limit", "", version);
    struct jw_field fields[] = { { .name = "name", .bytes = hf_str("limit") } };
    hf_put64(form, (uint64_t)(after_ms < 0 ? INT64_MAX : judge.story.now + after_ms));
    e->action = HF_DELETE_REGISTER;
    e->rows[0].reg.value = (struct hf_value){ .type = HF_TYPE_DELETED, .bytes = hf_mem(form, 8) };
    jw_digest(fields, 1, e->digest);
    return e;
}

static void register_deleted_and_made_again(void **state)
{
    (void)state;
    story_write(&judge.story, "k1", "limit", "1", 1);
    story_commit(&judge.story);
    deleted("k2", 2, STORY_WINDOW);
    story_commit(&judge.story);
    story_write(&judge.story, "k3", "limit", "2", 3); /* its versions go on */
    story_commit(&judge.story);
    deleted("k4", 4, STORY_WINDOW);
    story_commit(&judge.story);
    story_pass(&judge.story, STORY_WINDOW);
    story_write(&judge.story, "k5", "limit", "3", 1); /* forgotten: they begin anew */
    story_commit(&judge.story);
    judge_run();
    judged_only(" ");
}

static void register_made_again_too_early(void **state)
{
    (void)state;
    story_write(&judge.story, "k1", "limit", "1", 1);
    story_commit(&judge.story);
    deleted("k2", 2, STORY_WINDOW);
    story_commit(&judge.story);
    story_write(&judge.story, "k3", "limit", "2", 1);
    judged("REGISTERS", "goes from version 2 to 1");
    judged_only(" REGISTERS ");
}

static void register_deleted_and_its_fence_falls(void **state)
{
    (void)state;
    struct jw_entry *e = story_write(&judge.story, "k1", "limit", "1", 1);
    struct jw_field fields[] = { { .name = "name", .bytes = hf_str("limit") },
                                 { .name = "value", .bytes = hf_str("1") } };
    e->rows[0].reg.fence = 5;
    jw_digest(fields, 2, e->digest);
    story_commit(&judge.story);
    deleted("k2", 2, -1)->rows[0].reg.fence = 5;
    story_commit(&judge.story);
    story_pass(&judge.story, 2 * STORY_WINDOW);
    story_write(&judge.story, "k3", "limit", "2", 3);
    judged("REGISTERS", "falls from 5 to 0");
    judged_only(" REGISTERS ");
}

static void register_deleted_that_is_not_there(void **state)
{
    (void)state;
    deleted("k1", 1, STORY_WINDOW);
    judged("REGISTERS", "is deleted, but does not exist");
    judged_only(" REGISTERS ");
}

static void register_kept_too_short(void **state)
{
    (void)state;
    story_write(&judge.story, "k1", "limit", "1", 1);
    story_commit(&judge.story);
    deleted("k2", 2, STORY_WINDOW / 2);
    judged("REGISTERS", "kept for the wrong time");
    judged_only(" REGISTERS ");
}

/* The lease `leader` is deleted as it was granted by `grant`. */
static struct jw_entry *lease_deleted(const char *key, hf_time granted_at, hf_time released_at)
{
    struct jw_entry *e = story_grant(&judge.story, key, "leader", "a");
    struct jw_field fields[] = { { .name = "name", .bytes = hf_str("leader") } };
    struct hf_lease *l = &e->rows[0].lease;
    judge.story.fence--;
    *l = (struct hf_lease){ .name = l->name,
                            .holder = l->holder,
                            .fence = judge.story.fence,
                            .ttl_ms = l->ttl_ms,
                            .granted_at = granted_at,
                            .expires_at = granted_at + l->ttl_ms,
                            .released_at = released_at };
    e->action = HF_DELETE_LEASE;
    e->rows[0].erase = true;
    jw_digest(fields, 1, e->digest);
    return e;
}

static void lease_deleted_and_granted_again(void **state)
{
    (void)state;
    hf_time granted = judge.story.now;
    story_grant(&judge.story, "k1", "leader", "a");
    story_commit(&judge.story);
    story_pass(&judge.story, 60000);
    lease_deleted("k2", granted, 0);
    story_commit(&judge.story);
    story_grant(&judge.story, "k3", "leader", "b");
    story_commit(&judge.story);
    judge_run();
    judged_only(" ");
}

static void lease_deleted_twice(void **state)
{
    (void)state;
    hf_time granted = judge.story.now;
    story_grant(&judge.story, "k1", "leader", "a");
    story_commit(&judge.story);
    story_pass(&judge.story, 60000);
    lease_deleted("k2", granted, 0);
    story_commit(&judge.story);
    lease_deleted("k3", granted, 0);
    judged("LEASES", "it is not the lease that was granted");
    judged_only(" LEASES ");
}

static void lease_granted_again_with_an_old_fence(void **state)
{
    (void)state;
    hf_time granted = judge.story.now;
    story_grant(&judge.story, "k1", "leader", "a");
    story_commit(&judge.story);
    story_pass(&judge.story, 60000);
    lease_deleted("k2", granted, 0);
    story_commit(&judge.story);
    judge.story.fence--;
    story_grant(&judge.story, "k3", "leader", "b");
    judged("FENCES", "is not above the earlier fence 1");
    judged_only(" FENCES ");
}

static void lease_leaves_without_being_deleted(void **state)
{
    (void)state;
    story_grant(&judge.story, "k1", "leader", "a")->rows[0].erase = true;
    judged("LEASES", "is removed without a deletion");
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

static void number_far_ahead(void **state)
{
    (void)state;
    story_number(&judge.story, "c", 2 * HF_SEQUENCE_AHEAD_MAX, "a");
    judged("SEQUENCES", "number 2000000 is more than 1000000 above the highest (0)");
}

static void number_far_back(void **state)
{
    (void)state;
    story_number(&judge.story, "c", 300, "a");
    story_commit(&judge.story);
    story_number(&judge.story, "c", 44, "b");
    judged("SEQUENCES", "below the client's window");
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
    judged("TIME", "the entry has another time than its batch");
    judged_only(" TIME ");
}

#define T(name) cmocka_unit_test_setup_teardown(name, judge_setup, judge_teardown)

/* The auditor's tables: names that a client has chosen cost no more than others. */

enum { NAMES = 20000 };

static struct hf_audit_name name_of(uint64_t i, bool chosen)
{
    /* Chosen: all have the same lowest bits. */
    return (struct hf_audit_name){ chosen ? i << 32 : i * UINT64_C(0x9e3779b97f4a7c15),
                                   i << 1 | 1 };
}

static int64_t spent(bool chosen)
{
    struct hf_audit_table t = { .item_size = sizeof(struct hf_audit_name) };
    int64_t begun = test_cpu_ns();
    for (uint64_t i = 0; i < NAMES; i++)
        assert_non_null(hf_audit_table_add(&t, name_of(i, chosen), 0));
    for (uint64_t i = 0; i < NAMES; i++)
        assert_non_null(hf_audit_table_find(&t, name_of(i, chosen)));
    assert_null(hf_audit_table_find(&t, name_of(NAMES, chosen)));
    int64_t took = test_cpu_ns() - begun;
    hf_audit_table_free(&t);
    return took;
}

static void chosen_names_do_not_stand_in_one_run(void **state)
{
    (void)state;
    (void)spent(false);
    int64_t plain = spent(false), chosen = spent(true);
    printf("%lld us for any names, %lld us for chosen ones\n", (long long)plain / 1000,
           (long long)chosen / 1000);
    assert_true(chosen < 8 * plain);
}

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
        T(claim_changes_its_retention),
        T(claim_is_kept_for_its_retention),
        T(claim_lease_ends_at_another_time),
        T(claim_outcome_unknown),
        T(claim_taken_over),
        T(claim_stale_finisher),
        T(claim_settled_twice),
        T(fence_falls),
        T(resource_fence_falls),
        T(lease_granted_twice),
        T(register_skips_version),
        T(register_fence_falls),
        T(register_deleted_and_made_again),
        T(register_made_again_too_early),
        T(register_deleted_and_its_fence_falls),
        T(register_deleted_that_is_not_there),
        T(register_kept_too_short),
        T(lease_deleted_and_granted_again),
        T(lease_deleted_twice),
        T(lease_granted_again_with_an_old_fence),
        T(lease_leaves_without_being_deleted),
        T(number_twice),
        T(number_far_ahead),
        T(number_far_back),
        T(outbox_gap),
        T(time_of_entry),
        cmocka_unit_test(chosen_names_do_not_stand_in_one_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
