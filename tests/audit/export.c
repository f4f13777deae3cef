/* Both exports, and every question of doc/AUDIT.md on the database. */
#include "audit/kit/journal_story.h"
#include "support/test.h"

#include "audit/audit.h"
#include "audit/export.h"
#include "audit/trace.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct story story;
static struct hf_error why;
static char file[300];

static int setup(void **state)
{
    (void)state;
    story_open(&story);
    story_tell_all(&story);
    story_close(&story);
    snprintf(file, sizeof file, "%s/export", story.dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    story_remove(&story);
    return 0;
}

static int export(enum hf_audit_format format)
{
    struct hf_audit_export_options options = { .format = format };
    return hf_audit_export(story.dir, &options, file, &why);
}

static sqlite3 *database(void)
{
    sqlite3 *db;
    assert_int_equal(export(HF_AUDIT_SQLITE), 0);
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    return db;
}

static void expect_number(sqlite3 *db, const char *sql, int number)
{
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    if (sqlite3_column_int(st, 0) != number)
        fail_msg("%s gives %d instead of %d", sql, sqlite3_column_int(st, 0), number);
    sqlite3_finalize(st);
}

static void lines_of_json(void **state)
{
    (void)state;
    size_t size, lines = 0;
    assert_int_equal(export(HF_AUDIT_JSONL), 0);
    unsigned char *data = jw_load(story.dir, "export", &size);
    data[size] = '\0';
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    const char *text = (const char *)data;
    assert_int_equal(lines, 30); /* the store, 28 entries, the end */
    assert_ptr_equal(strstr(text, "{\"type\":\"store\""), text);
    assert_non_null(strstr(
        text, "\"action\":\"place_hold\",\"status\":\"ok\",\"tenant\":\"\",\"key\":\"order-1\""));
    assert_non_null(strstr(text, "{\"kind\":\"hold\",\"id\":\""));
    assert_non_null(strstr(text, "\"key\":{\"base64\":\"AP8B\"}"));
    assert_non_null(strstr(text, "\"client\":\"terminal-5\",\"sequence\":2"));
    assert_non_null(
        strstr(text, "\"answer\":{\"kind\":\"value\",\"key\":\"\",\"value\":\"done\"}"));
    assert_non_null(strstr(text, "{\"type\":\"end\",\"batches\":"));
    free(data);
}

static void tables(void **state)
{
    (void)state;
    sqlite3 *db = database();
    expect_number(db, "SELECT count(*) FROM holds", 9);
    expect_number(
        db,
        "SELECT count(*) FROM holds h JOIN holds o ON o.id = h.reacquires JOIN successors s "
        "ON s.original = o.id AND s.successor = h.id WHERE o.state = 'expired'",
        1);
    expect_number(db,
                  "SELECT count(*) FROM hold_life WHERE action = 'confirm_late' AND outcome LIKE "
                  "'reacquired by %'",
                  1);
    expect_number(db,
                  "SELECT count(*) FROM holds WHERE state = 'confirmed' AND ended_text = "
                  "'2026-11-15T21:40:00.123Z'",
                  1);
    expect_number(db, "SELECT count(*) FROM tokens WHERE status <> 'ok'", 3);
    expect_number(db, "SELECT count(*) FROM tokens WHERE typeof(key) = 'blob'", 1);
    expect_number(db, "SELECT count(*) FROM hold_life WHERE outcome LIKE 'refused: %'", 2);
    expect_number(db, "SELECT count(*) FROM entries", 28);
    expect_number(db, "SELECT count(*) FROM batches WHERE chain_fits", 26);
    expect_number(db, "SELECT count(*) FROM registers WHERE value = '\"300\"' AND version = 2", 1);
    expect_number(db, "SELECT count(*) FROM claims WHERE state = 'completed'", 1);
    expect_number(db, "SELECT count(*) FROM outbox", 2);
    expect_number(db, "SELECT count(*) FROM guard_entries", 2);
    expect_number(
        db, "SELECT count(*) FROM tokens WHERE client = 'terminal-5' AND expires_at IS NULL", 2);
    expect_number(db, "SELECT count(*) FROM claims WHERE lease_expires_text LIKE '2026-11-15T%Z'",
                  1);
    expect_number(db, "SELECT count(*) FROM leases WHERE released_text IS NULL", 1);
    expect_number(db,
                  "SELECT count(*) FROM lease_events WHERE expires_text LIKE '2026-11-15T%Z' AND "
                  "released_text IS NULL",
                  1);
    sqlite3_close(db);
}

static void value_of(const char *name, char out[80])
{
    static const char hex[] = "0123456789abcdef";
    snprintf(out, 80, "%s",
             strcmp(name, ":id") == 0          ? story.holds[1].id
             : strcmp(name, ":key") == 0       ? "order-1"
             : strcmp(name, ":requester") == 0 ? "guest-91"
                                               : "room-307");
    for (size_t i = 0; i < HF_DIGEST_SIZE && strcmp(name, ":head") == 0; i++) {
        out[2 * i] = hex[story.w.chain[i] >> 4];
        out[2 * i + 1] = hex[story.w.chain[i] & 15];
        out[2 * i + 2] = '\0';
    }
}

static void run_question(sqlite3 *db, const char *sql, size_t size)
{
    sqlite3_stmt *st;
    char value[80];
    if (sqlite3_prepare_v2(db, sql, (int)size, &st, NULL) != SQLITE_OK)
        fail_msg("%.*s\n%s", (int)size, sql, sqlite3_errmsg(db));
    for (int i = 1; i <= sqlite3_bind_parameter_count(st); i++) {
        value_of(sqlite3_bind_parameter_name(st, i), value);
        sqlite3_bind_text(st, i, value, -1, SQLITE_TRANSIENT);
    }
    int count = 0, code;
    while ((code = sqlite3_step(st)) == SQLITE_ROW)
        count++;
    sqlite3_finalize(st);
    assert_int_equal(code, SQLITE_DONE);
    char *block = strndup(sql, size);
    bool want_rows = strstr(block, "-- expect: rows") != NULL;
    bool want_none = strstr(block, "-- expect: none") != NULL;
    bool want_any = strstr(block, "-- expect: any") != NULL;
    if (want_rows + want_none + want_any != 1 || (!want_any && want_rows != (count > 0)))
        fail_msg("%s\ngives %d rows", block, count);
    free(block);
}

/* All blocks of SQL in the page, in order. */
static void questions_of_a_regulator(void **state)
{
    (void)state;
    char dir[1024];
    size_t size, count = 0;
    snprintf(dir, sizeof dir, "%s", __FILE__);
    *strstr(dir, "tests/audit") = '\0';
    strcat(dir, "doc");
    unsigned char *page = jw_load(dir, "AUDIT.md", &size);
    page[size] = '\0';
    sqlite3 *db = database();
    for (const char *at = (const char *)page; (at = strstr(at, "```sql\n")) != NULL; count++) {
        at += strlen("```sql\n");
        const char *end = strstr(at, "\n```");
        assert_non_null(end);
        run_question(db, at, (size_t)(end - at));
        at = end;
    }
    assert_true(count >= 25);
    sqlite3_close(db);
    free(page);
}

/* The block of SQL in the page that has this question. Owned. */
static char *question(const char *words)
{
    char dir[1024];
    size_t size;
    snprintf(dir, sizeof dir, "%s", __FILE__);
    *strstr(dir, "tests/audit") = '\0';
    strcat(dir, "doc");
    unsigned char *page = jw_load(dir, "AUDIT.md", &size);
    page[size] = '\0';
    char *at = strstr((char *)page, words);
    assert_non_null(at);
    char *from = strchr(at, '\n') + 1;
    *strstr(from, "\n```") = '\0';
    char *sql = strdup(from);
    free(page);
    return sql;
}

/* An alert says that an outcome is not known: which claims are those? */
static void unsettled_claims(void **state)
{
    (void)state;
    struct story right = story;
    sqlite3_stmt *st;
    story_open(&story);
    story_begin(&story, "silent")->rows[0].claim.lease_expires_at = 1000;
    story_commit(&story);
    story_begin(&story, "at-work")->rows[0].claim.lease_expires_at = INT64_C(253402300799999);
    story_commit(&story);
    story_begin(&story, "done");
    story_commit(&story);
    story_settle(&story, HF_COMPLETE, "done", 3, story.now);
    story_commit(&story);
    story_close(&story);
    snprintf(file, sizeof file, "%s/export", story.dir);
    sqlite3 *db = database();
    char *sql =
        question("-- question: Which claims has nobody settled, although their lease ran out?");
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(st, 1), "silent");
    assert_string_equal((const char *)sqlite3_column_text(st, 5), "1970-01-01T00:00:01.000Z");
    assert_int_equal(sqlite3_step(st), SQLITE_DONE);
    sqlite3_finalize(st);
    free(sql);
    sqlite3_close(db);
    story_remove(&story);
    story = right;
}

/* The audit counts a hold with the one before it; the database counted it with all of them. */
static void near_duplicates_are_counted_as_the_audit_does(void **state)
{
    (void)state;
    static const char *const keys[] = { "k1", "k2", "k3", "k4", "k5", "k6" };
    struct story right = story;
    struct hf_audit_report report;
    story_open(&story);
    story_resource(&story, "room", 20);
    for (size_t i = 0; i < 6; i++) {
        if (i == 4)
            story_pass(&story, 60001); /* not near the one before */
        story_place(&story, keys[i], "room", i == 2 ? "ben" : "ann", 600000);
        story_commit(&story);
    }
    story_close(&story);
    snprintf(file, sizeof file, "%s/export", story.dir);
    assert_int_equal(hf_audit_run(story.dir, NULL, &report, &why), HF_OK);
    assert_int_equal(report.near_count, 3); /* k1-k2, k2-k4, k5-k6 */
    hf_audit_report_free(&report);
    sqlite3 *db = database();
    expect_number(db, "SELECT count(*) FROM near_duplicates", 3);
    expect_number(
        db, "SELECT count(*) FROM near_duplicates WHERE first_key = 'k2' AND second_key = 'k4'", 1);
    sqlite3_close(db);
    story_remove(&story);
    story = right;
}

static void never_overwrites(void **state)
{
    (void)state;
    size_t size;
    jw_save(story.dir, "export", "mine", 4);
    assert_int_equal(export(HF_AUDIT_SQLITE), 1);
    assert_non_null(strstr(why.text, "already exists"));
    assert_int_equal(export(HF_AUDIT_JSONL), 1);
    unsigned char *data = jw_load(story.dir, "export", &size);
    assert_int_equal(size, 4);
    free(data);
    assert_int_equal(unlink(file), 0);
    jw_save(story.dir, "export.tmp", "old", 3);
    assert_int_equal(export(HF_AUDIT_JSONL), 1);
    assert_non_null(strstr(why.text, "perhaps from an interrupted export"));
}

static void nowhere_to_write(void **state)
{
    (void)state;
    snprintf(file, sizeof file, "%s/none/export", story.dir);
    assert_int_equal(export(HF_AUDIT_SQLITE), 3);
    assert_int_equal(export(HF_AUDIT_JSONL), 3);
    assert_non_null(strstr(why.text, "cannot be created"));
}

static void export_of_a_damaged_journal(void **state)
{
    (void)state;
    sqlite3 *db;
    jw_flip(story.dir, "journal-00000001.log", 4096 * 5 + 100);
    assert_int_equal(export(HF_AUDIT_SQLITE), 1);
    assert_int_equal(why.status, HF_STORE_DAMAGED);
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    expect_number(db, "SELECT value FROM store WHERE name = 'damages'", 1);
    expect_number(db, "SELECT count(*) FROM batches", 25);
    sqlite3_close(db);
}

/* A wrong history is exported as it is: the database is for finding out, too. */
static void wrong_history(void **state)
{
    (void)state;
    struct story right = story;
    sqlite3 *db;
    story_open(&story);
    story_resource(&story, "room", 5);
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    story_place(&story, "k1", "room", "ann", 60000);
    story_commit(&story);
    struct jw_entry *e = story_place(&story, "k2", "room", "ann", 60000);
    e->rows[0].hold = story.holds[1];
    story_commit(&story);
    story_close(&story);
    snprintf(file, sizeof file, "%s/export", story.dir);
    db = database();
    expect_number(db, "SELECT count(*) FROM keys_used_twice", 1);
    expect_number(db, "SELECT count(*) FROM near_duplicates WHERE why = 'the same key: a double'",
                  1);
    sqlite3_close(db);
    story_remove(&story);
    story = right;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* The life of a hold and of a key, told from the files. */

static char *told;
static size_t told_size;

static int setup_told(void **state)
{
    (void)state;
    story_open(&story);
    story_tell_all(&story);
    story_close(&story);
    return 0;
}

static int teardown_told(void **state)
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
    expect("reacquired by key \"order-4-late\": hold ");
    expect(": expired since");
}

static void reversal_and_number(void **state)
{
    (void)state;
    assert_int_equal(trace(hf_str(story.holds[3].id), (struct hf_audit_trace_options){ 0 }), 0);
    expect("made by key \"order-1-back\" as a reversal");
    assert_int_equal(trace(hf_str(story.holds[5].id), (struct hf_audit_trace_options){ 0 }), 0);
    expect("made and confirmed by key \"order-4-late\", whose payment for hold ");
    expect(": confirmed since");
    assert_int_equal(trace(hf_str(story.holds[6].id), (struct hf_audit_trace_options){ 0 }), 0);
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
    snprintf(words, sizeof words, "hold %s, held", story.holds[8].id);
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
    expect(": bound until the client's highest number is 258");
    expect("1 event\n");
    assert_int_equal(trace(hf_mem("\x00\xff\x01", 3), (struct hf_audit_trace_options){ 0 }), 0);
    expect("Key 0x00ff01 of tenant \"clinic\": 1 event\n");
    expect("by key 0x00ff01 answered");
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

static void trace_of_a_damaged_journal(void **state)
{
    (void)state;
    jw_flip(story.dir, "journal-00000001.log", 4096 * 5 + 100);
    assert_int_equal(trace(hf_str(story.holds[1].id), (struct hf_audit_trace_options){ 0 }), 0);
    expect("the journal is damaged");
}

#define TOLD(name) cmocka_unit_test_setup_teardown(name, setup_told, teardown_told)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(lines_of_json),
        T(tables),
        T(questions_of_a_regulator),
        T(never_overwrites),
        T(nowhere_to_write),
        T(export_of_a_damaged_journal),
        T(wrong_history),
        T(unsettled_claims),
        T(near_duplicates_are_counted_as_the_audit_does),
        TOLD(life_of_a_hold),
        TOLD(swept_hold),
        TOLD(reversal_and_number),
        TOLD(expired_to_make_way),
        TOLD(claim_that_is_open),
        TOLD(only_refused),
        TOLD(life_of_a_key),
        TOLD(claims_numbers_and_odd_keys),
        TOLD(unknown_names),
        TOLD(as_json),
        TOLD(trace_of_a_damaged_journal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
