/* Each check of keys, IR1 to IR8, finds what is planted for it, by its name. */
#include "audit/kit/judge.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

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

#define T(name) cmocka_unit_test_setup_teardown(name, judge_setup, judge_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    return cmocka_run_group_tests_name("audit of keys", tests, NULL, NULL);
}
