/* The life of a hold and of a key, told from the files. */
#include "audit/trace.h"
#include "audit/kit/journal_story.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>

static struct story story;
static struct hf_error why;
static char *told;
static size_t told_size;

static int setup(void **state)
{
    (void)state;
    story_open(&story);
    story_tell_all(&story);
    story_close(&story);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(told);
    told = NULL;
    story_remove(&story);
    return 0;
}

static int trace(struct hf_bytes name, struct hf_audit_trace_options options)
{
    free(told);
    FILE *out = open_memstream(&told, &told_size);
    int code = hf_audit_trace(story.dir, name, &options, out, &why);
    fclose(out);
    return code;
}

static void expect(const char *words)
{
    if (!strstr(told, words))
        fail_msg("\"%s\" is not in:\n%s", words, told);
}

static void life_of_a_hold(void **state)
{
    (void)state;
    assert_int_equal(trace(hf_str(story.holds[1].id), (struct hf_audit_trace_options){ 0 }), 0);
    expect("2026-11-15T21:39:59.123Z  placed by key \"order-1\" for 15m: resource \"room-307\", "
           "requester \"guest-91\", held until 2026-11-15T21:54:59.123Z");
    expect("2026-11-15T21:40:00.123Z  confirmed by key \"order-1-confirm\"\n");
    expect("2026-11-15T21:40:01.123Z  release by key \"order-1-release\" refused: not-held");
    expect("reversed by key \"order-1-back\": reversal ");
    expect(": confirmed since 2026-11-15T21:40:00.123Z, and reversed");
    expect("4 events");
}

static void swept_hold(void **state)
{
    (void)state;
    assert_int_equal(trace(hf_str(story.holds[4].id), (struct hf_audit_trace_options){ 0 }), 0);
    expect("expired by the sweeper: it was overdue since");
    expect("confirm by key \"order-4-confirm\" refused: not-held");
    expect(": expired since");
}

static void reversal_and_number(void **state)
{
    (void)state;
    assert_int_equal(trace(hf_str(story.holds[3].id), (struct hf_audit_trace_options){ 0 }), 0);
    expect("made by key \"order-1-back\" as a reversal");
    assert_int_equal(trace(hf_str(story.holds[5].id), (struct hf_audit_trace_options){ 0 }), 0);
    expect("placed by number 1 of client \"terminal-5\"");
    expect("As of ");
    expect(": held, and overdue");
}

static void expired_to_make_way(void **state)
{
    (void)state;
    struct story s;
    story_open(&s);
    story_place(&s, "a", "room", "ann", 1000);
    story_commit(&s);
    story_end(&s, HF_SWEEP, NULL, 1);
    struct hf_row expired = s.w.entries[0].rows[0];
    s.w.entry_count = 0;
    *jw_row(story_place(&s, "b", "room", "bob", 1000), HF_ROW_HOLD) = expired;
    story_commit(&s);
    story_close(&s);
    struct story kept = story;
    story = s;
    assert_int_equal(trace(hf_str(s.holds[1].id), (struct hf_audit_trace_options){ 0 }), 0);
    expect("expired by the place_hold of key \"b\"");
    story = kept;
    story_remove(&s);
}

static void claim_that_is_open(void **state)
{
    (void)state;
    story_remove(&story);
    story_open(&story);
    story_begin(&story, "charge-9");
    story_commit(&story);
    story_close(&story);
    assert_int_equal(trace(hf_str("charge-9"), (struct hf_audit_trace_options){ 0 }), 0);
    expect("As of 2026-11-15T21:39:58.123Z: bound until its claim is settled; the lease runs until "
           "2026-11-15T21:40:58.123Z");
    /* Nothing is written when a lease runs out: only whoever asks knows how late it is. */
    const hf_time end = STORY_START + 61000;
    assert_int_equal(trace(hf_str("charge-9"), (struct hf_audit_trace_options){ .now = end - 1 }),
                     0);
    expect("the lease runs until");
    assert_int_equal(trace(hf_str("charge-9"), (struct hf_audit_trace_options){ .now = end }), 0);
    expect("As of 2026-11-15T21:40:58.123Z: the lease ran out before the claim was settled, so the "
           "outcome is "
           "unknown since 2026-11-15T21:40:58.123Z; bound until the claim is settled with fence "
           "1\n");
    assert_int_equal(
        trace(hf_str("charge-9"), (struct hf_audit_trace_options){ .now = end, .json = true }), 0);
    expect("\"summary\":\"As of 2026-11-15T21:40:58.123Z: the lease ran out");
}

/* The journal has refused calls on a hold, and no record of the hold itself. */
static void only_refused(void **state)
{
    (void)state;
    story_remove(&story);
    story_open(&story);
    story_place(&story, "k1", "room", "ann", 1000);
    story.w.entry_count = 0;
    story_refuse(&story, HF_CONFIRM, "k2", 1, HF_NOT_KNOWN);
    story_commit(&story);
    story_close(&story);
    assert_int_equal(trace(hf_str(story.holds[1].id), (struct hf_audit_trace_options){ 0 }), 0);
    expect("confirm by key \"k2\" refused: not-known");
    expect(": the hold itself has no record");
}

static void life_of_a_key(void **state)
{
    (void)state;
    assert_int_equal(trace(hf_str("order-1"), (struct hf_audit_trace_options){ 0 }), 0);
    char words[128];
    snprintf(words, sizeof words, "place_hold by key \"order-1\" answered ok, hold %s, held",
             story.holds[1].id);
    expect(words);
    snprintf(words, sizeof words, "hold %s, held", story.holds[7].id);
    expect(words);
    expect("every retry until 2026-11-16T21:39:59.123Z gets the same answer and changes nothing");
    expect("2 events");
    expect(": bound until");
    assert_int_equal(trace(hf_str("order-3"), (struct hf_audit_trace_options){ 0 }), 0);
    expect("answered resource-unavailable;");
    expect(": free; its window closed at");
}

static void claims_numbers_and_odd_keys(void **state)
{
    (void)state;
    assert_int_equal(trace(hf_str("charge-1"), (struct hf_audit_trace_options){ 0 }), 0);
    expect("claim begin: started with fence 1");
    expect("claim complete: completed under fence 1");
    assert_int_equal(trace(hf_str("apply-1"), (struct hf_audit_trace_options){ 0 }), 0);
    expect("outbox row 1 for topic \"mail\"");
    assert_int_equal(trace(hf_str("terminal-5"), (struct hf_audit_trace_options){ .sequence = 2 }),
                     0);
    expect("number 2 of client \"terminal-5\"");
    expect("every retry while the number is in the client's window gets the same answer");
    expect(": bound for ever");
    expect("1 event\n");
    assert_int_equal(trace(hf_mem("\x00\xff\x01", 3), (struct hf_audit_trace_options){ 0 }), 0);
    expect("key 0x00ff01 of tenant \"clinic\"");
    assert_int_equal(
        trace(hf_mem("\x00\xff\x01", 3), (struct hf_audit_trace_options){ .has_tenant = true }), 1);
}

static void unknown_names(void **state)
{
    (void)state;
    assert_int_equal(trace(hf_str("nobody"), (struct hf_audit_trace_options){ 0 }), 1);
    assert_int_equal(why.status, HF_NOT_KNOWN);
    assert_string_equal(
        why.text, "No hold or key \"nobody\" is in the journal. Check the spelling and the store.");
    assert_int_equal(trace(hf_str("order-1"),
                           (struct hf_audit_trace_options){ .subject = HF_AUDIT_SUBJECT_HOLD }),
                     1);
    assert_int_equal(hf_audit_trace("/nonexistent/store", hf_str("x"), NULL, stdout, &why), 3);
    assert_int_equal(why.status, HF_STORE_ABSENT);
}

static void as_json(void **state)
{
    (void)state;
    assert_int_equal(
        trace(hf_str(story.holds[1].id), (struct hf_audit_trace_options){ .json = true }), 0);
    expect("{\"kind\":\"hold\",\"name\":\"");
    expect("\"found\":true");
    expect("\"action\":\"release\",\"status\":\"not-held\"");
    expect("\"key\":\"order-1\"");
    assert_int_equal(trace(hf_str("nobody"), (struct hf_audit_trace_options){ .json = true }), 1);
    expect("\"found\":false");
    expect("\"events\":[]}");
    assert_int_equal(
        trace(hf_mem("\x00\xff\x01", 3), (struct hf_audit_trace_options){ .json = true }), 0);
    expect("{\"base64\":\"AP8B\"}");
}

static void damaged_journal(void **state)
{
    (void)state;
    jw_flip(story.dir, "journal-00000001.log", 4096 * 5 + 100);
    assert_int_equal(trace(hf_str(story.holds[1].id), (struct hf_audit_trace_options){ 0 }), 0);
    expect("the journal is damaged");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(life_of_a_hold),      T(swept_hold),
        T(reversal_and_number), T(expired_to_make_way),
        T(claim_that_is_open),  T(only_refused),
        T(life_of_a_key),       T(claims_numbers_and_odd_keys),
        T(unknown_names),       T(as_json),
        T(damaged_journal),
    };
    return cmocka_run_group_tests_name("audit trace", tests, NULL, NULL);
}
