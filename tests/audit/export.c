/* Both exports, and every question of doc/AUDIT.md on the database. */
#include "audit/export.h"
#include "audit/audit.h"
#include "audit/kit/journal_story.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
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
    assert_int_equal(lines, 29); /* the store, 27 entries, the end */
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
    expect_number(db, "SELECT count(*) FROM holds", 8);
    expect_number(db,
                  "SELECT count(*) FROM holds WHERE state = 'confirmed' AND ended_text = "
                  "'2026-11-15T21:40:00.123Z'",
                  1);
    expect_number(db, "SELECT count(*) FROM tokens WHERE status <> 'ok'", 3);
    expect_number(db, "SELECT count(*) FROM tokens WHERE typeof(key) = 'blob'", 1);
    expect_number(db, "SELECT count(*) FROM hold_life WHERE outcome LIKE 'refused: %'", 2);
    expect_number(db, "SELECT count(*) FROM entries", 27);
    expect_number(db, "SELECT count(*) FROM batches WHERE chain_fits", 25);
    expect_number(db, "SELECT count(*) FROM registers WHERE value = '300' AND version = 2", 1);
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

static void damaged_journal(void **state)
{
    (void)state;
    sqlite3 *db;
    jw_flip(story.dir, "journal-00000001.log", 4096 * 5 + 100);
    assert_int_equal(export(HF_AUDIT_SQLITE), 1);
    assert_int_equal(why.status, HF_STORE_DAMAGED);
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    expect_number(db, "SELECT value FROM store WHERE name = 'damages'", 1);
    expect_number(db, "SELECT count(*) FROM batches", 24);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(lines_of_json),    T(tables),           T(questions_of_a_regulator),
        T(never_overwrites), T(nowhere_to_write), T(damaged_journal),
        T(wrong_history),    T(unsettled_claims), T(near_duplicates_are_counted_as_the_audit_does),
    };
    return cmocka_run_group_tests_name("audit export", tests, NULL, NULL);
}
