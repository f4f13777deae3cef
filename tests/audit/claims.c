/* The audit's verdict covers claims: how often keys began, what became of them, and every key that
 * began again although its effect may have happened. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include "audit/audit.h"
#include "audit/export.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

static struct kit *k;
static struct hf_audit_report report;

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hf_audit_report_free(&report);
    kit_free(k);
    return 0;
}

static uint64_t begun(const char *key, int64_t retention_ms, enum hf_abandon on_abandon)
{
    struct hf_request r = { .action = HF_BEGIN, .key = hf_str(key) };
    r.begin.payload = hf_str("charge 100");
    r.begin.lease_ms = MINUTE;
    r.begin.retention_ms = retention_ms;
    r.begin.on_abandon = on_abandon;
    assert_int_equal(kit_do(k, r), HF_OK);
    assert_false(k->got.replayed);
    return k->got.answer.claim.fence;
}

static void settled(enum hf_action action, const char *key, uint64_t fence, bool retryable)
{
    /* JSON, as it is stored */
    static const char response[] = "\0j................................{\"charge\":\"ch_1\"}";
    struct hf_request r = { .action = action, .key = hf_str(key) };
    r.settle.fence = fence;
    r.settle.retryable = retryable;
    if (action != HF_ABANDON)
        r.settle.response = hf_mem(response, sizeof response - 1);
    assert_int_equal(kit_do(k, r), HF_OK);
}

static void audited(void)
{
    struct hf_error why;
    kit_close(k);
    if (hf_audit_run(k->dir, NULL, &report, &why) != HF_OK)
        fail_msg("%s", why.text);
    assert_int_equal(report.verdict, HF_AUDIT_OK);
}

/* The text of the report. Owned. */
static char *text_of(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(hf_audit_print_text(&report, out));
    fclose(out);
    return text;
}

static void says(const char *words)
{
    char *text = text_of();
    if (!strstr(text, words))
        fail_msg("the report does not say: %s\n%s", words, text);
    free(text);
}

/* Two keys whose effect may have happened twice, and two for which it did not. */
static void four_stories(void)
{
    uint64_t fence = begun("paid-twice", HOUR, HF_ABANDON_UNKNOWN);
    settled(HF_COMPLETE, "paid-twice", fence, false);
    begun("taken-over", 0, HF_ABANDON_RETRY);
    fence = begun("failed-first", 0, HF_ABANDON_UNKNOWN);
    settled(HF_FAIL, "failed-first", fence, true);
    fence = begun("failed-first", 0, HF_ABANDON_UNKNOWN);
    settled(HF_COMPLETE, "failed-first", fence, false);
    fence = begun("given-up", 0, HF_ABANDON_UNKNOWN);
    settled(HF_ABANDON, "given-up", fence, false);
    kit_at(k, 2 * HOUR);
    kit_settle(k);
    begun("paid-twice", 0, HF_ABANDON_UNKNOWN);
    begun("taken-over", 0, HF_ABANDON_UNKNOWN);
}

static void every_key_that_began_again_is_listed(void **state)
{
    (void)state;
    four_stories();
    audited();
    const struct hf_audit_claims *c = &report.claim;
    assert_int_equal(report.claims, 4);
    assert_int_equal(c->begun, 7);
    assert_int_equal(c->retried, 1);
    assert_int_equal(c->taken_over, 1);
    assert_int_equal(c->again, 1);
    assert_int_equal(c->abandoned, 1);
    assert_int_equal(c->settled[HF_CLAIM_COMPLETED], 2);
    assert_int_equal(c->settled[HF_CLAIM_RETRYABLE], 1);
    assert_int_equal(c->settled[HF_CLAIM_FAILED], 0);
    assert_int_equal(c->now[HF_CLAIM_STARTED], 2);
    assert_int_equal(c->now[HF_CLAIM_UNKNOWN], 1);
    assert_int_equal(c->now[HF_CLAIM_COMPLETED], 1);
    assert_int_equal(report.rerun_listed, 2);
    const struct hf_audit_rerun *paid = &report.reruns[0], *taken = &report.reruns[1];
    assert_string_equal(paid->who, "key \"paid-twice\"");
    assert_false(paid->taken_over);
    assert_int_equal(paid->first_state, HF_CLAIM_COMPLETED);
    assert_int_equal(paid->first_at, KIT_START);
    assert_int_equal(paid->until, KIT_START + HOUR);
    assert_int_equal(paid->second_at, KIT_START + 2 * HOUR);
    assert_true(paid->second_fence > paid->first_fence);
    assert_string_equal(taken->who, "key \"taken-over\"");
    assert_true(taken->taken_over);
    assert_int_equal(taken->ended_at, KIT_START + MINUTE);
    says("4 claims were begun 7 times: 1 completed, 0 failed, 2 in progress, 1 unknown.\n");
    says("BEGUN AGAIN: 2 times a key began again");
    says("UNKNOWN: the lease of 1 claim ended before it was settled");
    says("remembered until 2023-11-14T23:13:20.000Z\n    begun again at 2023-11-15T00:13:20.000Z");
}

static void a_store_without_such_keys_says_so(void **state)
{
    (void)state;
    settled(HF_COMPLETE, "once", begun("once", 0, HF_ABANDON_UNKNOWN), false);
    audited();
    assert_int_equal(report.rerun_listed, 0);
    says("1 claim was begun 1 time: 1 completed, 0 failed, 0 in progress, 0 unknown.\n");
    char *text = text_of();
    assert_null(strstr(text, "BEGUN AGAIN"));
    assert_null(strstr(text, "UNKNOWN"));
    free(text);
}

static void a_store_without_claims_says_nothing_of_them_in_its_verdict(void **state)
{
    (void)state;
    char id[HF_ID_SIZE];
    kit_held(k, "room", HOUR, id);
    audited();
    char *text = text_of();
    assert_null(strstr(text, "claims were begun"));
    free(text);
}

/* More such keys than the report lists: all are counted. */
static void a_hundred_are_listed_and_all_are_counted(void **state)
{
    (void)state;
    enum { MANY = HF_AUDIT_LISTED_MAX + 5 };
    char key[24];
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "pay-%d", i);
        begun(key, 0, HF_ABANDON_RETRY);
    }
    kit_at(k, 2 * MINUTE);
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "pay-%d", i);
        begun(key, 0, HF_ABANDON_RETRY);
    }
    audited();
    assert_int_equal(report.claim.taken_over, MANY);
    assert_int_equal(report.rerun_listed, HF_AUDIT_LISTED_MAX);
}

static void the_rules_of_guards_are_in_the_report(void **state)
{
    (void)state;
    static const enum hf_match match[] = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD };
    assert_int_equal(kit_guard(k, "mail", HOUR, NULL, 0), HF_OK);
    assert_int_equal(kit_guard(k, "pay", MINUTE, match, 2), HF_OK);
    kit_at(k, SECOND);
    assert_int_equal(kit_guard(k, "mail", 2 * HOUR, NULL, 0), HF_OK);
    audited();
    assert_int_equal(report.guard_rule_count, 2);
    says("guard \"mail\": window 2h, match exact, on unavailable open, durable, since "
         "2023-11-14T22:13:21.000Z\n");
    says("guard \"pay\": window 1m, match trim,casefold, on unavailable open, durable, since "
         "2023-11-14T22:13:20.000Z\n");
}

/* Changed while an identity was under guard: a duplicate of it may have passed. */
static void match_rules_changed_by_force_are_in_the_report(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_SET_GUARD,
                            .set_guard = { .name = hf_str("g"), .window_ms = HOUR } };
    assert_int_equal(kit_do(k, r), HF_OK);
    r.set_guard.match[0] = HF_MATCH_TRIM;
    r.set_guard.match_count = 1;
    assert_int_equal(kit_do(k, r), HF_OK);
    assert_int_equal(kit_ask(k, HF_RECORD, "g", "x", NULL), HF_OK);
    kit_at(k, SECOND);
    r.set_guard.match[0] = HF_MATCH_CASEFOLD;
    r.set_guard.force = true;
    assert_int_equal(kit_do(k, r), HF_OK);
    kit_at(k, HOUR);
    r.set_guard.match[0] = HF_MATCH_HASH;
    assert_int_equal(kit_do(k, r), HF_OK);
    audited();
    assert_int_equal(report.guard_rules[0].forced, 1);
    says("its match rule was changed over live entries 1 time, the last time at "
         "2023-11-14T22:13:21.000Z");
}

/* ---- The export ---- */

static void the_export_has_every_response_as_json(void **state)
{
    (void)state;
    char path[300];
    struct hf_audit_export_options options = { .format = HF_AUDIT_SQLITE };
    struct hf_error why;
    sqlite3 *db;
    sqlite3_stmt *st;
    four_stories();
    kit_close(k);
    snprintf(path, sizeof path, "%s/export", k->dir);
    if (hf_audit_export(k->dir, &options, path, &why) != 0)
        fail_msg("%s", why.text);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    const char *sql = "SELECT group_concat(action || ' ' || coalesce(json_extract(response, "
                      "'$.charge'), '-'), ', ') FROM (SELECT * FROM claim_events WHERE key = "
                      "'paid-twice' ORDER BY position)";
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(st, 0),
                        "begin -, complete ch_1, begin -");
    sqlite3_finalize(st);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(every_key_that_began_again_is_listed),
        TEST(a_store_without_such_keys_says_so),
        TEST(a_store_without_claims_says_nothing_of_them_in_its_verdict),
        TEST(a_hundred_are_listed_and_all_are_counted),
        TEST(the_rules_of_guards_are_in_the_report),
        TEST(match_rules_changed_by_force_are_in_the_report),
        TEST(the_export_has_every_response_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
