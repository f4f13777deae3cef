/* A right history has no violation. Each check of holds finds what is planted for it, by its
 * name. */
#include "audit/kit/judge.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* ---- A right history ---- */

static void clean_history(void **state)
{
    (void)state;
    story_tell_all(&judge.story);
    judge_run();
    judge_show();
    assert_int_equal(judge.report.verdict, HF_AUDIT_OK);
    for (size_t i = 0; i < judge.report.check_count; i++)
        if (judge.report.checks[i].checked == 0)
            fail_msg("%s looked at nothing", judge.report.checks[i].name);
    assert_int_equal(judge.report.holds, 8);
    assert_int_equal(judge.report.holds_traced, 8);
    assert_int_equal(judge.report.reversals, 1);
    assert_int_equal(judge.report.holds_by_state[HF_CONFIRMED], 1);
    assert_int_equal(judge.report.holds_by_state[HF_EXPIRED], 1);
    assert_int_equal(judge.report.failures, 3);
    assert_int_equal(judge.report.failures_by_status[HF_NOT_HELD], 2);
    assert_int_equal(judge.report.failures_by_status[HF_RESOURCE_UNAVAILABLE], 1);
    assert_int_equal(judge.report.config_count, 1);
    assert_int_equal(judge.report.near_count, 1);
    assert_true(judge.report.near[0].legitimate);
    assert_non_null(strstr(judge.report.near[0].why, "different idempotency keys"));
    assert_int_equal(judge.report.journal.torn_bytes, 0);
}

/* ---- Holds ---- */

static void pc1_two_states(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000)->rows[0].hold.ended_at = judge.story.now;
    judged("PC1", "in state held");
    judged_only(" PC1 IR5 ");
}

static void pc1_no_state(void **state)
{
    (void)state;
    struct jw_entry *e = story_place(&judge.story, "k1", "room", "ann", 60000);
    e->rows[0].hold.state = (enum hf_hold_state)9;
    judged("PC1", "state unknown (9)");
}

static void pc2_acted_upon_by_nobody(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    struct jw_entry *e = story_end(&judge.story, HF_CONFIRM, "k2", 1);
    e->action = HF_SET_RESOURCE;
    e->remember = HF_REMEMBER_NOT;
    e->key = hf_str("");
    judged("PC2", "an action that cannot do so makes it confirmed");
    judged_only(" PC2 IR5 IR8 ");
}

static void pc2_first_record(void **state)
{
    (void)state;
    struct jw_entry *e = story_place(&judge.story, "k1", "room", "ann", 60000);
    e->rows[0].hold.state = HF_CONFIRMED;
    e->rows[0].hold.ended_at = judge.story.now;
    judged("PC2", "the first record");
}

static void pc3_absorbs(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_end(&judge.story, HF_RELEASE, "k2", 1);
    story_commit(&judge.story);
    judge.story.resources[0].held = 1;
    story_end(&judge.story, HF_CONFIRM, "k3", 1);
    judged("PC3", "was released since");
    judged_only(" PC3 IR5 ");
}

static void pc4_other_id(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000)->rows[0].hold.id[5] ^= 1;
    judged("PC4", "not an id of this store");
    judged_only(" PC4 IR5 ");
}

static void pc5_other_requester(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    story_end(&judge.story, HF_CONFIRM, "k2", 1)->rows[0].hold.requester = hf_str("bob");
    judged("PC5", "requester \"bob\"");
    judged_only(" PC5 IR5 ");
}

static void pc6_backwards(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 0);
    judged("PC6", "is placed at");
    judged_only(" PC6 IR5 ");
}

static void pc6_moved(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    story_end(&judge.story, HF_CONFIRM, "k2", 1)->rows[0].hold.expires_at += 1;
    judged("PC6", "a later record has");
    judged_only(" PC6 IR5 ");
}

static void pc7_late_confirm(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 1000);
    story_commit(&judge.story);
    story_end(&judge.story, HF_CONFIRM, "k2", 1);
    judged("PC7", "is confirmed at");
    judged_only(" PC7 IR5 ");
}

static void pc8_early_expiry(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    story_end(&judge.story, HF_SWEEP, NULL, 1);
    judged("PC8", "expired at");
    judged_only(" PC8 IR5 ");
}

static void pc9_id_again(void **state)
{
    (void)state;
    story_resource(&judge.story, "room", 3);
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    struct jw_entry *e = story_place(&judge.story, "k2", "room", "bob", 60000);
    memcpy(e->rows[0].hold.id, judge.story.holds[1].id, HF_ID_SIZE);
    judged("PC9", "is used again by hold number 2");
}

static void pc9_placed_again(void **state)
{
    (void)state;
    story_resource(&judge.story, "room", 3);
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    struct jw_entry *e = story_place(&judge.story, "k2", "room", "ann", 60000);
    e->rows[0].hold = judge.story.holds[1];
    judged("PC9", "is placed again");
}

static void pc10_missing(void **state)
{
    (void)state;
    judge.story.hold_count = 1; /* number 1 was never written */
    story_place(&judge.story, "k1", "room", "ann", 60000);
    judged("PC10", "1 records are missing");
    judged_only(" PC10 IR5 ");
}

static void pc10_deleted(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    story_end(&judge.story, HF_RELEASE, "k2", 1)->rows[0].erase = true;
    judged("PC10", "is deleted");
    judged_only(" PC10 IR5 ");
}

static void pc10_never_placed(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    judge.story.w.entry_count = 0; /* the placing is lost */
    story_commit(&judge.story);
    story_end(&judge.story, HF_CONFIRM, "k2", 1);
    judged("PC10", "no record of its placing");
}

static void pc11_overbooked(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    story_place(&judge.story, "k2", "room", "bob", 60000);
    judged("PC11", "resource \"room\" has capacity 1 and 2 units taken");
    judged_only(" PC11 IR5 ");
}

static void pc11_miscounted(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000)->rows[1].resource.held = 0;
    judged("PC11", "recorded with 0 held");
    judged_only(" PC11 IR5 ");
}

static void pc11_closed(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000)->rows[1].resource.open = false;
    judged("PC11", "which is closed");
    judged_only(" PC11 IR5 ");
}

static void reversed_twice(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_end(&judge.story, HF_CONFIRM, "k2", 1);
    story_reverse(&judge.story, "k3", 1);
    story_commit(&judge.story);
    judge.story.resources[0].confirmed = 1;
    story_reverse(&judge.story, "k4", 1);
    judged("REVERSALS", "was reversed before");
    judged_only(" REVERSALS ");
}

static void reversed_unconfirmed(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    judge.story.resources[0].confirmed = 1;
    story_reverse(&judge.story, "k2", 1);
    judged("REVERSALS", "is not confirmed");
}

static void broken_link(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000)->rows[0].hold.previous = 7;
    judged("LINKS", "names number 7 as the previous hold");
    judged_only(" LINKS ");
}

static void near_but_ended(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    story_end(&judge.story, HF_RELEASE, "k2", 1);
    story_commit(&judge.story);
    story_place(&judge.story, "k3", "room", "ann", 60000);
    story_commit(&judge.story);
    judge_run();
    assert_int_equal(judge.report.verdict, HF_AUDIT_OK);
    assert_int_equal(judge.report.near_count, 1);
    assert_non_null(strstr(judge.report.near[0].why, "released at"));
    assert_string_equal(judge.report.near[0].first, judge.story.holds[1].id);
    assert_string_equal(judge.report.near[0].second, judge.story.holds[2].id);
    assert_string_equal(judge.report.near[0].first_key, "key \"k1\"");
}

#define T(name) cmocka_unit_test_setup_teardown(name, judge_setup, judge_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(clean_history),     T(pc1_two_states),
        T(pc1_no_state),      T(pc2_acted_upon_by_nobody),
        T(pc2_first_record),  T(pc3_absorbs),
        T(pc4_other_id),      T(pc5_other_requester),
        T(pc6_backwards),     T(pc6_moved),
        T(pc7_late_confirm),  T(pc8_early_expiry),
        T(pc9_id_again),      T(pc9_placed_again),
        T(pc10_missing),      T(pc10_deleted),
        T(pc10_never_placed), T(pc11_overbooked),
        T(pc11_miscounted),   T(pc11_closed),
        T(reversed_twice),    T(reversed_unconfirmed),
        T(broken_link),       T(near_but_ended),
    };
    return cmocka_run_group_tests_name("audit of holds", tests, NULL, NULL);
}
