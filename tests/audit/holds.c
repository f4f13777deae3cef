/* A right history has no violation. Each check of holds finds what is planted for it, by its
 * name. */
#include "audit/kit/journal_story.h"
#include "support/test.h"

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
    assert_int_equal(judge.report.holds, 9);
    assert_int_equal(judge.report.holds_traced, 9);
    assert_int_equal(judge.report.reversals, 1);
    assert_int_equal(judge.report.holds_by_state[HF_CONFIRMED], 2);
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

/* A hold on a resource with two units, expired. */
static void late_story(void)
{
    story_resource(&judge.story, "room", 2);
    story_place(&judge.story, "k1", "room", "ann", 5000);
    story_commit(&judge.story);
    story_pass(&judge.story, 10000);
    story_end(&judge.story, HF_EXPIRE, "k2", 1);
    story_commit(&judge.story);
}

static void reacquired_once(void **state)
{
    (void)state;
    late_story();
    story_reacquire(&judge.story, "k3", 1);
    story_commit(&judge.story);
    story_reverse(&judge.story, "k4", 2); /* the reacquired one is given back */
    story_commit(&judge.story);
    story_refuse(&judge.story, HF_CONFIRM_LATE, "k5", 1, HF_NOT_HELD);
    story_commit(&judge.story);
    judge_run();
    judge_show();
    assert_int_equal(judge.report.verdict, HF_AUDIT_OK);
}

static void reacquired_twice(void **state)
{
    (void)state;
    late_story();
    story_reacquire(&judge.story, "k3", 1);
    story_commit(&judge.story);
    story_reacquire(&judge.story, "k4", 1);
    judged("LATE", "was reacquired before");
    judged_only(" LATE ");
}

static void reacquired_unexpired(void **state)
{
    (void)state;
    story_resource(&judge.story, "room", 2);
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    story_end(&judge.story, HF_RELEASE, "k2", 1);
    story_commit(&judge.story);
    story_reacquire(&judge.story, "k3", 1);
    judged("LATE", "is not expired");
    judged_only(" LATE ");
}

static void reacquired_for_another(void **state)
{
    (void)state;
    late_story();
    story_reacquire(&judge.story, "k3", 1)->rows[0].hold.requester = hf_str("bob");
    judged("LATE", "has another resource or requester");
    judged_only(" LATE ");
}

static void reacquired_but_held(void **state)
{
    (void)state;
    late_story();
    struct jw_entry *e = story_reacquire(&judge.story, "k3", 1);
    e->rows[0].hold.state = HF_HELD;
    e->rows[0].hold.ended_at = 0;
    judged("LATE", "is held instead of confirmed");
}

static void reacquired_beyond_the_capacity(void **state)
{
    (void)state;
    late_story();
    story_place(&judge.story, "p1", "room", "bob", 60000);
    story_commit(&judge.story);
    story_place(&judge.story, "p2", "room", "eve", 60000);
    story_commit(&judge.story);
    story_reacquire(&judge.story, "k3", 1);
    judged("PC11", "3 units taken");
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

/* Each check of keys, IR1 to IR8, finds what is planted for it, by its name. */

/* ---- Keys ---- */

static void ir1_decided_again(void **state)
{
    (void)state;
    story_resource(&judge.story, "room", 5);
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    story_place(&judge.story, "k1", "room", "ann", 60000);
    judged("IR1", "is decided again");
    judged("IR3", "shares its key");
    judged("IR6", "is recorded again");
    judged("IR7", "is used again before that");
    judged("IR8", "and it has a second effect");
    judged_only(" IR1 IR3 IR6 IR7 IR8 ");
    assert_int_equal(judge.report.near_illegitimate, 1);
    assert_non_null(strstr(judge.report.near[0].why, "the same key twice"));
}

static void ir1_wrong_answer(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000)->answer = 255;
    judged("IR1", "is not the hold");
    judged_only(" IR1 ");
}

static void ir2_decided_again(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    story_refuse(&judge.story, HF_EXPIRE, "k2", 1, HF_WINDOW_NOT_ELAPSED);
    story_commit(&judge.story);
    story_refuse(&judge.story, HF_EXPIRE, "k2", 1, HF_WINDOW_NOT_ELAPSED);
    judged("IR2", "is decided again");
    judged_only(" IR2 IR6 IR7 IR8 ");
}

static void ir2_wrong_answer(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    struct jw_entry *e = story_end(&judge.story, HF_CONFIRM, "k2", 1);
    e->answer = 1;
    judged("IR2", "is not the hold");
}

static void ir3_no_key(void **state)
{
    (void)state;
    struct jw_entry *e = story_place(&judge.story, "k1", "room", "ann", 60000);
    e->remember = HF_REMEMBER_NOT;
    e->key = hf_str("");
    judged("IR3", "cannot be traced to a key");
    judged("IR8", "without a key");
    judged_only(" IR3 IR8 ");
}

static void ir4_other_action(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    story_end(&judge.story, HF_CONFIRM, "k1", 1);
    judged("IR4", "was bound to place_hold with other parameters");
    judged_only(" IR4 IR6 IR7 IR8 ");
}

static void ir4_wrong_digest(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000)->digest[0] ^= 1;
    judged("IR4", "the digest does not match");
    judged_only(" IR4 ");
}

static void ir4_claim_and_key(void **state)
{
    (void)state;
    story_begin(&judge.story, "k1");
    story_commit(&judge.story);
    story_place(&judge.story, "k1", "room", "ann", 60000);
    judged("IR4", "bound to a claim");
    judged_only(" IR4 ");
}

static void ir4_key_and_claim(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_commit(&judge.story);
    story_begin(&judge.story, "k1");
    judged("IR4", "begins with a key");
    judged_only(" IR4 ");
}

static void ir5_sums_up(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 1000);
    story_commit(&judge.story);
    story_end(&judge.story, HF_CONFIRM, "k2", 1);
    judged("IR5", "PC7 has 1 violation");
    assert_string_equal(judge.report.checks[HF_AUDIT_IR5].examples[0], "PC7 has 1 violation");
}

static void ir6_extended_window(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000)->expires_at += 1;
    judged("IR6", "but the configured window is 1d");
    judged_only(" IR6 ");
}

static void ir7_too_early(void **state)
{
    (void)state;
    story_refuse_place(&judge.story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&judge.story);
    story_pass(&judge.story, STORY_WINDOW - 1001);
    story_refuse_place(&judge.story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    judged("IR7", "is used again before that");
}

static void ir7_in_time(void **state)
{
    (void)state;
    story_refuse_place(&judge.story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&judge.story);
    story_pass(&judge.story, STORY_WINDOW - 1000);
    story_refuse_place(&judge.story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&judge.story);
    judge.story.tenant = hf_str("another");
    story_refuse_place(&judge.story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&judge.story);
    judge_run();
    judge_show();
    assert_int_equal(judge.report.verdict, HF_AUDIT_OK);
}

static void ir8_refused_with_effect(void **state)
{
    (void)state;
    struct jw_entry *e = story_place(&judge.story, "k1", "room", "ann", 60000);
    e->status = HF_RESOURCE_UNAVAILABLE;
    e->answer = 255;
    judged("IR8", "answered resource-unavailable, it placed 1");
    judged_only(" IR8 ");
}

static void ir8_two_effects(void **state)
{
    (void)state;
    story_resource(&judge.story, "room", 2);
    story_place(&judge.story, "k1", "room", "ann", 60000);
    story_place(&judge.story, "k2", "room", "bob", 60000);
    story_commit(&judge.story);
    struct jw_entry *e = story_end(&judge.story, HF_CONFIRM, "k3", 1);
    struct hf_row *row = jw_row(e, HF_ROW_HOLD);
    row->hold = judge.story.holds[2];
    row->hold.state = HF_CONFIRMED;
    row->hold.ended_at = judge.story.now;
    judged("IR8", "confirmed 2");
}

static void ir8_foreign_row(void **state)
{
    (void)state;
    story_place(&judge.story, "k1", "room", "ann", 60000);
    struct jw_entry *e = story_refuse(&judge.story, HF_CONFIRM, "k2", 1, HF_NOT_KNOWN);
    jw_row(e, HF_ROW_VALUE)->pair = (struct hf_pair){ .key = hf_str("x"), .value = hf_str("y") };
    judged("IR8", "it changed a value");
    judged_only(" IR8 ");
}

static void fault_remembered(void **state)
{
    (void)state;
    story_refuse_place(&judge.story, "k1", "room", "ann", HF_STORAGE_FAILURE);
    judged("FAILURES", "storage-failure must not be remembered");
    judged_only(" FAILURES ");
}

static void long_key(void **state)
{
    static char key[300];
    (void)state;
    memset(key, 'k', sizeof key - 1);
    story_refuse_place(&judge.story, key, "room", "ann", HF_RESOURCE_UNAVAILABLE);
    judged("CONFIG", "a key of 299 bytes");
    judged_only(" CONFIG ");
}

static void other_digest_function(void **state)
{
    (void)state;
    story_configure(&judge.story)->rows[0].config.digest_name = hf_str("md5");
    judged("CONFIG", "the digest is \"md5\"");
}

static void window_changes_count_from_now(void **state)
{
    (void)state;
    judge.story.window_ms = 60000;
    story_configure(&judge.story);
    story_commit(&judge.story);
    story_refuse_place(&judge.story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&judge.story);
    judge_run();
    assert_int_equal(judge.report.verdict, HF_AUDIT_OK);
    assert_int_equal(judge.report.config_count, 2);
    assert_int_equal(judge.report.configs[1].idempotency_window_ms, 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(clean_history),
        T(pc1_two_states),
        T(pc1_no_state),
        T(pc2_acted_upon_by_nobody),
        T(pc2_first_record),
        T(pc3_absorbs),
        T(pc4_other_id),
        T(pc5_other_requester),
        T(pc6_backwards),
        T(pc6_moved),
        T(pc7_late_confirm),
        T(pc8_early_expiry),
        T(pc9_id_again),
        T(pc9_placed_again),
        T(pc10_missing),
        T(pc10_deleted),
        T(pc10_never_placed),
        T(pc11_overbooked),
        T(pc11_miscounted),
        T(pc11_closed),
        T(reversed_twice),
        T(reacquired_once),
        T(reacquired_twice),
        T(reacquired_unexpired),
        T(reacquired_for_another),
        T(reacquired_but_held),
        T(reacquired_beyond_the_capacity),
        T(reversed_unconfirmed),
        T(broken_link),
        T(near_but_ended),
        T(ir1_decided_again),
        T(ir1_wrong_answer),
        T(ir2_decided_again),
        T(ir2_wrong_answer),
        T(ir3_no_key),
        T(ir4_other_action),
        T(ir4_wrong_digest),
        T(ir4_claim_and_key),
        T(ir4_key_and_claim),
        T(ir5_sums_up),
        T(ir6_extended_window),
        T(ir7_too_early),
        T(ir7_in_time),
        T(ir8_refused_with_effect),
        T(ir8_two_effects),
        T(ir8_foreign_row),
        T(fault_remembered),
        T(long_key),
        T(other_digest_function),
        T(window_changes_count_from_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
