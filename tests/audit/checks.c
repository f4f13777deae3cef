/* Every check finds the violation that is planted for it, by its own name, and a right history has none.
 */
#include "audit/audit.h"
#include "support/journal_story.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>

static struct story story;
static struct hf_audit_report report;

static int setup(void **state)
{
    (void)state;
    story_open(&story);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hf_audit_report_free(&report);
    story_remove(&story);
    return 0;
}

static void audit(void)
{
    struct hf_error why;
    story_close(&story);
    assert_int_equal(hf_audit_run(story.dir, NULL, &report, &why), HF_OK);
}

static void show_broken(void)
{
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        for (size_t k = 0; k < report.checks[i].example_count; k++)
            print_message("%s: %s\n", report.checks[i].name, report.checks[i].examples[k]);
}

/* Commit, audit, and expect a violation of `name`, whose sentence has `words` in it. */
static void expect(const char *name, const char *words)
{
    if (story.w.open)
        story_commit(&story);
    if (story.w.segment)
        audit();
    assert_int_not_equal(report.verdict, HF_AUDIT_OK);
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++) {
        const struct hf_audit_check *c = &report.checks[i];
        if (strcmp(c->name, name) != 0)
            continue;
        for (size_t k = 0; k < c->example_count; k++)
            if (strstr(c->examples[k], words))
                return;
    }
    show_broken();
    fail_msg("%s does not say \"%s\"", name, words);
}

/* No other check than the named ones (separated by spaces) is broken. */
static void expect_only(const char *names)
{
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++) {
        char word[32];
        snprintf(word, sizeof word, " %s ", report.checks[i].name);
        if (report.checks[i].violations > 0 && !strstr(names, word)) {
            show_broken();
            fail_msg("%s is broken too", report.checks[i].name);
        }
    }
}

/* ---- A right history ---- */

static void clean_history(void **state)
{
    (void)state;
    story_tell_all(&story);
    audit();
    show_broken();
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        if (report.checks[i].checked == 0)
            fail_msg("%s looked at nothing", report.checks[i].name);
    assert_int_equal(report.holds, 8);
    assert_int_equal(report.holds_traced, 8);
    assert_int_equal(report.reversals, 1);
    assert_int_equal(report.holds_by_state[HF_CONFIRMED], 1);
    assert_int_equal(report.holds_by_state[HF_EXPIRED], 1);
    assert_int_equal(report.failures, 3);
    assert_int_equal(report.failures_by_status[HF_NOT_HELD], 2);
    assert_int_equal(report.failures_by_status[HF_RESOURCE_UNAVAILABLE], 1);
    assert_int_equal(report.config_count, 1);
    assert_int_equal(report.near_count, 1);
    assert_true(report.near[0].legitimate);
    assert_non_null(strstr(report.near[0].why, "different idempotency keys"));
    assert_int_equal(report.journal.torn_bytes, 0);
}

/* ---- Holds ---- */

static void pc1_two_states(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000)->rows[0].hold.ended_at = story.now;
    expect("PC1", "in state held");
    expect_only(" PC1 IR5 ");
}

static void pc1_no_state(void **state)
{
    (void)state;
    struct jw_entry *e = story_place(&story, "k1", "room", "ann", 60000);
    e->rows[0].hold.state = (enum hf_hold_state)9;
    expect("PC1", "state unknown (9)");
}

static void pc2_acted_upon_by_nobody(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    struct jw_entry *e = story_end(&story, HF_CONFIRM, "k2", 1);
    e->action = HF_SET_RESOURCE;
    e->remember = HF_REMEMBER_NOT;
    e->key = hf_str("");
    expect("PC2", "becomes confirmed by an action that does not do that");
    expect_only(" PC2 IR5 IR8 ");
}

static void pc2_first_record(void **state)
{
    (void)state;
    struct jw_entry *e = story_place(&story, "k1", "room", "ann", 60000);
    e->rows[0].hold.state = HF_CONFIRMED;
    e->rows[0].hold.ended_at = story.now;
    expect("PC2", "the first record");
}

static void pc3_absorbs(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_end(&story, HF_RELEASE, "k2", 1);
    story_commit(&story);
    story.resources[0].held = 1;
    story_end(&story, HF_CONFIRM, "k3", 1);
    expect("PC3", "was released since");
    expect_only(" PC3 IR5 ");
}

static void pc4_other_id(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000)->rows[0].hold.id[5] ^= 1;
    expect("PC4", "not an id of this store");
    expect_only(" PC4 IR5 ");
}

static void pc5_other_requester(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story_end(&story, HF_CONFIRM, "k2", 1)->rows[0].hold.requester = hf_str("bob");
    expect("PC5", "for requester \"bob\"");
    expect_only(" PC5 IR5 ");
}

static void pc6_backwards(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 0);
    expect("PC6", "is placed at");
    expect_only(" PC6 IR5 ");
}

static void pc6_moved(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story_end(&story, HF_CONFIRM, "k2", 1)->rows[0].hold.expires_at += 1;
    expect("PC6", "a later record says");
    expect_only(" PC6 IR5 ");
}

static void pc7_late_confirm(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 1000);
    story_commit(&story);
    story_end(&story, HF_CONFIRM, "k2", 1);
    expect("PC7", "is confirmed at");
    expect_only(" PC7 IR5 ");
}

static void pc8_early_expiry(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story_end(&story, HF_SWEEP, NULL, 1);
    expect("PC8", "expired at");
    expect_only(" PC8 IR5 ");
}

static void pc9_id_again(void **state)
{
    (void)state;
    story_resource(&story, "room", 3);
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    struct jw_entry *e = story_place(&story, "k2", "room", "bob", 60000);
    memcpy(e->rows[0].hold.id, story.holds[1].id, HF_ID_SIZE);
    expect("PC9", "is used again by hold number 2");
}

static void pc9_placed_again(void **state)
{
    (void)state;
    story_resource(&story, "room", 3);
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    struct jw_entry *e = story_place(&story, "k2", "room", "ann", 60000);
    e->rows[0].hold = story.holds[1];
    expect("PC9", "is placed again");
}

static void pc10_missing(void **state)
{
    (void)state;
    story.hold_count = 1; /* number 1 was never written */
    story_place(&story, "k1", "room", "ann", 60000);
    expect("PC10", "1 records are missing");
    expect_only(" PC10 IR5 ");
}

static void pc10_deleted(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story_end(&story, HF_RELEASE, "k2", 1)->rows[0].erase = true;
    expect("PC10", "is deleted");
    expect_only(" PC10 IR5 ");
}

static void pc10_never_placed(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story.w.entry_count = 0; /* the placing is lost */
    story_commit(&story);
    story_end(&story, HF_CONFIRM, "k2", 1);
    expect("PC10", "no record of its placing");
}

static void pc11_overbooked(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story_place(&story, "k2", "room", "bob", 60000);
    expect("PC11", "resource \"room\" has capacity 1 and 2 units taken");
    expect_only(" PC11 IR5 ");
}

static void pc11_miscounted(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000)->rows[1].resource.held = 0;
    expect("PC11", "recorded with 0 held");
    expect_only(" PC11 IR5 ");
}

static void pc11_closed(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000)->rows[1].resource.open = false;
    expect("PC11", "which is closed");
    expect_only(" PC11 IR5 ");
}

static void reversed_twice(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_end(&story, HF_CONFIRM, "k2", 1);
    story_reverse(&story, "k3", 1);
    story_commit(&story);
    story.resources[0].confirmed = 1;
    story_reverse(&story, "k4", 1);
    expect("REVERSALS", "was reversed before");
    expect_only(" REVERSALS ");
}

static void reversed_unconfirmed(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story.resources[0].confirmed = 1;
    story_reverse(&story, "k2", 1);
    expect("REVERSALS", "is not confirmed");
}

static void broken_link(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000)->rows[0].hold.previous = 7;
    expect("LINKS", "number 7 was before it");
    expect_only(" LINKS ");
}

/* ---- Guards ---- */

static void dp1_other_window(void **state)
{
    (void)state;
    story_guard(&story, "g", 60000);
    story_record(&story, "g", "a", 60001);
    expect("DP1", "the window is 1m");
    expect_only(" DP1 IR6 ");
}

static void dp1_no_guard(void **state)
{
    (void)state;
    story_record(&story, "g", "a", 60000);
    expect("DP1", "of which there is no record");
}

static void dp2_again(void **state)
{
    (void)state;
    story_guard(&story, "g", 60000);
    story_record(&story, "g", "a", 60000);
    story_commit(&story);
    story_pass(&story, 60000 - 1001);
    story_record(&story, "g", "a", 60000);
    expect("DP2", "is recorded again");
    expect_only(" DP2 IR6 ");
}

static void dp2_at_the_end(void **state)
{
    (void)state;
    story_guard(&story, "g", 60000);
    story_record(&story, "g", "a", 60000);
    story_commit(&story);
    story_pass(&story, 60000 - 1000);
    story_record(&story, "g", "a", 60000);
    story_commit(&story);
    audit();
    assert_int_equal(report.verdict, HF_AUDIT_OK);
}

static void dp3_check_left_a_record(void **state)
{
    (void)state;
    story_guard(&story, "g", 60000);
    story_record(&story, "g", "a", 60000)->action = HF_CHECK;
    expect("DP3", "a check left a record");
    expect_only(" DP3 IR6 ");
}

static void dp4_never_ends(void **state)
{
    (void)state;
    story_guard(&story, "g", 60000);
    story_record(&story, "g", "a", 60000)->rows[0].entry.expires_at = INT64_MAX;
    expect("DP4", "it would never leave");
    expect_only(" DP1 DP4 IR6 ");
}

/* ---- Keys ---- */

static void ir1_decided_again(void **state)
{
    (void)state;
    story_resource(&story, "room", 5);
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story_place(&story, "k1", "room", "ann", 60000);
    expect("IR1", "is decided again");
    expect("IR3", "shares its key");
    expect("IR6", "is recorded again");
    expect("IR7", "is free again before");
    expect("IR8", "and has another");
    expect_only(" IR1 IR3 IR6 IR7 IR8 ");
    assert_int_equal(report.near_illegitimate, 1);
    assert_non_null(strstr(report.near[0].why, "the same key twice"));
}

static void ir1_wrong_answer(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000)->answer = 255;
    expect("IR1", "is not the hold");
    expect_only(" IR1 ");
}

static void ir2_decided_again(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story_refuse(&story, HF_EXPIRE, "k2", 1, HF_WINDOW_NOT_ELAPSED);
    story_commit(&story);
    story_refuse(&story, HF_EXPIRE, "k2", 1, HF_WINDOW_NOT_ELAPSED);
    expect("IR2", "is decided again");
    expect_only(" IR2 IR6 IR7 IR8 ");
}

static void ir2_wrong_answer(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    struct jw_entry *e = story_end(&story, HF_CONFIRM, "k2", 1);
    e->answer = 1;
    expect("IR2", "is not the hold");
}

static void ir3_no_key(void **state)
{
    (void)state;
    struct jw_entry *e = story_place(&story, "k1", "room", "ann", 60000);
    e->remember = HF_REMEMBER_NOT;
    e->key = hf_str("");
    expect("IR3", "cannot be traced to a key");
    expect("IR8", "without a key");
    expect_only(" IR3 IR8 ");
}

static void ir4_other_action(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story_end(&story, HF_CONFIRM, "k1", 1);
    expect("IR4", "was bound to place_hold with other parameters");
    expect_only(" IR4 IR6 IR7 IR8 ");
}

static void ir4_wrong_digest(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000)->digest[0] ^= 1;
    expect("IR4", "the digest is not the one");
    expect_only(" IR4 ");
}

static void ir4_claim_and_key(void **state)
{
    (void)state;
    story_begin(&story, "k1");
    story_commit(&story);
    story_place(&story, "k1", "room", "ann", 60000);
    expect("IR4", "bound to a claim");
    expect_only(" IR4 ");
}

static void ir4_key_and_claim(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story_begin(&story, "k1");
    expect("IR4", "begins under a key");
    expect_only(" IR4 ");
}

static void ir5_sums_up(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 1000);
    story_commit(&story);
    story_end(&story, HF_CONFIRM, "k2", 1);
    expect("IR5", "PC7 has 1 violations");
}

static void ir6_extended_window(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000)->expires_at += 1;
    expect("IR6", "though the window in force is 1d");
    expect_only(" IR6 ");
}

static void ir7_too_early(void **state)
{
    (void)state;
    story_refuse_place(&story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&story);
    story_pass(&story, STORY_WINDOW - 1001);
    story_refuse_place(&story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    expect("IR7", "is free again before");
}

static void ir7_in_time(void **state)
{
    (void)state;
    story_refuse_place(&story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&story);
    story_pass(&story, STORY_WINDOW - 1000);
    story_refuse_place(&story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&story);
    story.tenant = hf_str("another");
    story_refuse_place(&story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&story);
    audit();
    show_broken();
    assert_int_equal(report.verdict, HF_AUDIT_OK);
}

static void ir8_refused_with_effect(void **state)
{
    (void)state;
    struct jw_entry *e = story_place(&story, "k1", "room", "ann", 60000);
    e->status = HF_RESOURCE_UNAVAILABLE;
    e->answer = 255;
    expect("IR8", "answered resource-unavailable, it placed 1");
    expect_only(" IR8 ");
}

static void ir8_two_effects(void **state)
{
    (void)state;
    story_resource(&story, "room", 2);
    story_place(&story, "k1", "room", "ann", 60000);
    story_place(&story, "k2", "room", "bob", 60000);
    story_commit(&story);
    struct jw_entry *e = story_end(&story, HF_CONFIRM, "k3", 1);
    struct hf_row *row = jw_row(e, HF_ROW_HOLD);
    row->hold = story.holds[2];
    row->hold.state = HF_CONFIRMED;
    row->hold.ended_at = story.now;
    expect("IR8", "confirmed 2");
}

static void ir8_foreign_row(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    struct jw_entry *e = story_refuse(&story, HF_CONFIRM, "k2", 1, HF_NOT_KNOWN);
    jw_row(e, HF_ROW_VALUE)->pair = (struct hf_pair){ .key = hf_str("x"), .value = hf_str("y") };
    expect("IR8", "it changed a value");
    expect_only(" IR8 ");
}

static void fault_remembered(void **state)
{
    (void)state;
    story_refuse_place(&story, "k1", "room", "ann", HF_STORAGE_FAILURE);
    expect("FAILURES", "storage-failure was remembered");
    expect_only(" FAILURES ");
}

static void long_key(void **state)
{
    static char key[300];
    (void)state;
    memset(key, 'k', sizeof key - 1);
    story_refuse_place(&story, key, "room", "ann", HF_RESOURCE_UNAVAILABLE);
    expect("CONFIG", "a key of 299 bytes");
    expect_only(" CONFIG ");
}

static void other_digest_function(void **state)
{
    (void)state;
    story_configure(&story)->rows[0].config.digest_name = hf_str("md5");
    expect("CONFIG", "the digest is \"md5\"");
}

static void window_changes_count_from_now(void **state)
{
    (void)state;
    story.window_ms = 60000;
    story_configure(&story);
    story_commit(&story);
    story_refuse_place(&story, "k1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&story);
    audit();
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    assert_int_equal(report.config_count, 2);
    assert_int_equal(report.configs[1].idempotency_window_ms, 60000);
}

/* ---- Claims, leases, fences, registers, clients, outbox ---- */

static void claim_begins_twice(void **state)
{
    (void)state;
    story_begin(&story, "c");
    story_commit(&story);
    story_begin(&story, "c");
    expect("CLAIMS", "while it is in progress");
    expect_only(" CLAIMS ");
}

static void claim_outcome_unknown(void **state)
{
    (void)state;
    story_begin(&story, "c");
    story_commit(&story);
    story_pass(&story, 60000);
    story_begin(&story, "c");
    expect("CLAIMS", "its outcome is unknown");
}

static void claim_taken_over(void **state)
{
    (void)state;
    story_begin(&story, "c")->rows[0].claim.on_abandon = HF_ABANDON_RETRY;
    story_commit(&story);
    story_pass(&story, 60000);
    story_begin(&story, "c");
    story_commit(&story);
    audit();
    show_broken();
    assert_int_equal(report.verdict, HF_AUDIT_OK);
}

static void claim_stale_finisher(void **state)
{
    (void)state;
    hf_time begun = story.now;
    story_begin(&story, "c");
    story_commit(&story);
    story_settle(&story, HF_COMPLETE, "c", 7, begun);
    expect("CLAIMS", "under another fence");
    expect_only(" CLAIMS ");
}

static void claim_settled_twice(void **state)
{
    (void)state;
    hf_time begun = story.now;
    story_begin(&story, "c");
    story_settle(&story, HF_COMPLETE, "c", 1, begun);
    story_settle(&story, HF_FAIL, "c", 1, begun);
    expect("CLAIMS", "although it was not started");
}

static void fence_falls(void **state)
{
    (void)state;
    story.fence = 10;
    story_begin(&story, "c");
    story_commit(&story);
    story.fence = 4;
    story_begin(&story, "d");
    expect("FENCES", "gets fence 5, which is not above 11");
    expect_only(" FENCES ");
}

static void resource_fence_falls(void **state)
{
    (void)state;
    story_resource(&story, "room", 1)->rows[0].resource.fence = 9;
    story_commit(&story);
    story_resource(&story, "room", 1)->rows[0].resource.fence = 8;
    expect("FENCES", "falls from 9 to 8");
}

static void lease_granted_twice(void **state)
{
    (void)state;
    story_grant(&story, "k1", "leader", "a");
    story_commit(&story);
    story_grant(&story, "k2", "leader", "b");
    expect("LEASES", "while another has it");
    expect_only(" LEASES ");
}

static void register_skips_version(void **state)
{
    (void)state;
    story_write(&story, "k1", "limit", "1", 1);
    story_commit(&story);
    story_write(&story, "k2", "limit", "2", 3);
    expect("REGISTERS", "goes from version 1 to 3");
    expect_only(" REGISTERS ");
}

static void register_fence_falls(void **state)
{
    (void)state;
    struct jw_entry *e = story_write(&story, "k1", "limit", "1", 1);
    e->rows[0].reg.fence = 5;
    story_commit(&story);
    story_write(&story, "k2", "limit", "2", 2);
    expect("REGISTERS", "falls from 5 to 0");
}

static void number_twice(void **state)
{
    (void)state;
    story_number(&story, "c", 1, "a");
    story_commit(&story);
    story_number(&story, "c", 1, "b");
    expect("SEQUENCES", "number 1 was used before");
    expect_only(" SEQUENCES IR8 ");
}

static void number_far_back(void **state)
{
    (void)state;
    story_number(&story, "c", 300, "a");
    story_commit(&story);
    story_number(&story, "c", 44, "b");
    expect("SEQUENCES", "too far back");
}

static void outbox_gap(void **state)
{
    (void)state;
    story_apply(&story, "k1", 1);
    story_commit(&story);
    story_apply(&story, "k2", 3);
    expect("OUTBOX", "row 3 comes after row 1");
    expect_only(" OUTBOX ");
}

static void time_of_entry(void **state)
{
    (void)state;
    story_guard(&story, "g", 60000)->recorded_at -= 1;
    expect("TIME", "the entry's batch has time");
    expect_only(" TIME ");
}

static void near_but_ended(void **state)
{
    (void)state;
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story_end(&story, HF_RELEASE, "k2", 1);
    story_commit(&story);
    story_place(&story, "k3", "room", "ann", 60000);
    story_commit(&story);
    audit();
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    assert_int_equal(report.near_count, 1);
    assert_non_null(strstr(report.near[0].why, "released at"));
    assert_string_equal(report.near[0].first, story.holds[1].id);
    assert_string_equal(report.near[0].second, story.holds[2].id);
    assert_string_equal(report.near[0].first_key, "key \"k1\"");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
        T(reversed_unconfirmed),
        T(broken_link),
        T(dp1_other_window),
        T(dp1_no_guard),
        T(dp2_again),
        T(dp2_at_the_end),
        T(dp3_check_left_a_record),
        T(dp4_never_ends),
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
        T(near_but_ended),
    };
    return cmocka_run_group_tests_name("audit checks", tests, NULL, NULL);
}
