/* A store that the engine itself has written, with every type of register, every match rule and a
 * claim that was abandoned: the audit passes, and the export shows each as what it is. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include "api/decode.h"
#include "audit/audit.h"
#include "audit/export.h"
#include "audit/trace.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

static struct kit *k;
static struct hf_arena arena;
static char file[300];

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    snprintf(file, sizeof file, "%s/export", k->dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    hf_arena_free(&arena);
    return 0;
}

/* One operation, as a line of a batch has it, which must succeed. */
static void does(const char *line)
{
    struct hf_request request;
    const struct hf_call *call;
    struct hf_api_fault fault = { "" };
    if (hf_api_decode_line(hf_str(line), hf_str(""), &arena, &request, &call, &fault) != HF_OK)
        fail_msg("%s: %s", line, fault.detail);
    if (kit_do(k, request) != HF_OK)
        fail_msg("%s: %s", line, hf_status_code(k->got.answer.status));
}

static void audit_passes(struct hf_audit_report *report)
{
    struct hf_error why;
    kit_close(k);
    assert_int_equal(hf_audit_run(k->dir, NULL, report, &why), HF_OK);
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        if (hf_audit_outcome(&report->checks[i]) != HF_AUDIT_PASSED)
            fail_msg("%s: %s", report->checks[i].name,
                     report->checks[i].example_count ? report->checks[i].examples[0]
                                                     : "incomplete");
    assert_int_equal(report->verdict, HF_AUDIT_OK);
}

/* ---- Values ---- */

static const char *const merges[] = {
    "\"name\":\"highest\",\"type\":\"max\",\"value\":-5",
    "\"name\":\"lowest\",\"type\":\"min\",\"value\":-9",
    "\"name\":\"once\",\"type\":\"or\",\"value\":true",
    "\"name\":\"all\",\"type\":\"union\",\"value\":[\"pear\",\"apple\"]",
    ("\"name\":\"newest\",\"type\":\"lww\",\"value\":{\"value\":{\"a\":1},\"timestamp\":7,\"node\":"
     "\"n1\"}"),
    "\"name\":\"seen\",\"type\":\"vector\",\"value\":{\"n1\":3,\"n2\":4}",
    "\"name\":\"count\",\"type\":\"counter\",\"value\":{\"n1\":3,\"n2\":4}",
    "\"name\":\"stock\",\"type\":\"updown\",\"value\":{\"n1\":{\"up\":9,\"down\":2}}",
};

static void fill(void)
{
    static const enum hf_match match[] = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD, HF_MATCH_NORMALIZE,
                                           HF_MATCH_HASH };
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        char line[200];
        snprintf(line, sizeof line, "{\"op\":\"merge\",%s}", merges[i]);
        does(line);
    }
    does("{\"op\":\"write\",\"key\":\"w\",\"name\":\"plain\",\"value\":[1,2]}");
    assert_int_equal(kit_guard(k, "mail", HOUR, match, 4), HF_OK);
    assert_int_equal(kit_ask(k, HF_RECORD, "mail", " Ann@Example.ORG ", NULL), HF_OK);
    assert_int_equal(kit_begin(k, "lost", "p", MINUTE, HF_ABANDON_UNKNOWN), HF_OK);
    kit_at(k, 2 * MINUTE);
    assert_int_equal(kit_begin(k, "lost", "p", MINUTE, HF_ABANDON_UNKNOWN), HF_OUTCOME_UNKNOWN);
}

static char *exported(enum hf_audit_format format)
{
    struct hf_audit_export_options options = { .format = format };
    struct hf_error why;
    if (hf_audit_export(k->dir, &options, file, &why) != 0)
        fail_msg("%s", why.text);
    if (format == HF_AUDIT_SQLITE)
        return NULL;
    FILE *f = fopen(file, "r");
    char *text = calloc(1, 1 << 20);
    assert_true(f && text);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    assert_true(n > 0 && n < (1 << 20) - 1);
    fclose(f);
    assert_int_equal(unlink(file), 0);
    return text;
}

static void each_type_is_exported_as_what_it_is(void **state)
{
    (void)state;
    static const char *const shown[] = {
        "\"name\":\"highest\",\"type\":\"max\",",
        "\"value\":-5",
        "\"name\":\"lowest\",\"type\":\"min\",",
        "\"value\":-9",
        "\"name\":\"once\",\"type\":\"or\",",
        "\"name\":\"all\",\"type\":\"union\",",
        "\"items\":[{\"name\":\"apple\"},{\"name\":\"pear\"}]",
        "\"name\":\"newest\",\"type\":\"lww\",",
        "\"timestamp\":7,\"node\":\"n1\",\"value\":{\"a\":1}",
        "\"name\":\"seen\",\"type\":\"vector\",",
        "\"items\":[{\"name\":\"n1\",\"up\":3},{\"name\":\"n2\",\"up\":4}]",
        "\"name\":\"count\",\"type\":\"counter\",",
        "\"value\":7,\"items\":[{\"name\":\"n1\",\"up\":3},{\"name\":\"n2\",\"up\":4}]",
        "\"name\":\"stock\",\"type\":\"updown\",",
        "\"value\":7,\"items\":[{\"name\":\"n1\",\"up\":9,\"down\":2}]",
        "\"name\":\"plain\",\"type\":\"plain\",",
        "\"value\":[1,2]",
        "\"match\":[\"trim\",\"casefold\",\"normalize\",\"hash\"]",
        /* that its outcome is unknown follows from its lease, and is not written down */
        "\"state\":\"started\"",
    };
    struct hf_audit_report report;
    fill();
    audit_passes(&report);
    hf_audit_report_free(&report);
    char *text = exported(HF_AUDIT_JSONL);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (!strstr(text, shown[i]))
            fail_msg("%s is not in\n%s", shown[i], text);
    assert_null(strstr(text, "Example")); /* of what is hashed, the hash alone is there */
    assert_null(strstr(text, "example"));
    free(text);
}

static void the_database_has_the_same_registers(void **state)
{
    (void)state;
    sqlite3 *db;
    sqlite3_stmt *st;
    fill();
    kit_close(k);
    (void)exported(HF_AUDIT_SQLITE);
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    static const char *const types[] = { "counter", "lww",   "max",    "min",   "or",
                                         "plain",   "union", "updown", "vector" };
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT type FROM registers ORDER BY type", -1, &st, NULL),
        SQLITE_OK);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        assert_int_equal(sqlite3_step(st), SQLITE_ROW);
        assert_string_equal((const char *)sqlite3_column_text(st, 0), types[i]);
    }
    assert_int_equal(sqlite3_step(st), SQLITE_DONE);
    sqlite3_finalize(st);
    static const char *const values[] = {
        "all text [\"apple\",\"pear\"] -",
        "count text {\"n1\":3,\"n2\":4} 7",
        "highest integer -5 -",
        "lowest integer -9 -",
        "newest text {\"a\":1} -",
        "once integer 1 -",
        "plain text [1,2] -",
        "seen text {\"n1\":3,\"n2\":4} -",
        "stock text {\"n1\":{\"up\":9,\"down\":2}} 7",
    };
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT r.name || ' ' || typeof(r.value) || ' ' || r.value "
                           "|| ' ' || ifnull(r.total, '-') FROM registers r JOIN "
                           "register_events e ON e.name = r.name AND e.value = r.value "
                           "AND e.total IS r.total ORDER BY r.name",
                           -1, &st, NULL),
        SQLITE_OK);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_int_equal(sqlite3_step(st), SQLITE_ROW);
        assert_string_equal((const char *)sqlite3_column_text(st, 0), values[i]);
    }
    assert_int_equal(sqlite3_step(st), SQLITE_DONE);
    sqlite3_finalize(st);
    sqlite3_close(db);
}

/* ---- Long histories ---- */

/* What no longer matters is forgotten while the journal is read; what comes again is new, and that
 * is right. */
static void things_come_again_after_their_time(void **state)
{
    (void)state;
    enum { ROUNDS = 3, THINGS = 40 }; /* a table of the auditor begins with room for 48 */
    struct hf_audit_report report;
    assert_int_equal(kit_guard(k, "g", MINUTE, NULL, 0), HF_OK);
    for (int round = 0; round < ROUNDS; round++) {
        kit_at(k, round * 2 * DAY);
        for (int i = 0; i < THINGS; i++) {
            char name[32];
            snprintf(name, sizeof name, "thing %d", i + round % 2 * 20); /* some again, some new */
            assert_int_equal(kit_ask(k, HF_ADMIT, "g", name, NULL), HF_OK);
            assert_false(k->got.answer.seen.seen);
            assert_int_equal(kit_begin(k, name, "p", MINUTE, HF_ABANDON_RETRY), HF_OK);
            assert_int_equal(
                kit_settle_claim(k, HF_COMPLETE, name, k->got.answer.claim.fence, "1", false),
                HF_OK);
        }
    }
    audit_passes(&report);
    hf_audit_report_free(&report);
}

/* ---- Traces ---- */

static char *traced(const char *name, bool json)
{
    struct hf_audit_trace_options options = { .json = json };
    struct hf_error why;
    char *told = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&told, &size);
    assert_non_null(out);
    assert_int_equal(hf_audit_trace(k->dir, hf_str(name), &options, out, &why), 0);
    assert_int_equal(fclose(out), 0);
    return told;
}

static size_t times_in(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

/* A claim that was extended thousands of times: its trace has the first and the newest events, and
 * says how many are not shown. Else one key could take all of the server's memory. */
static void a_long_trace_shows_both_ends(void **state)
{
    (void)state;
    enum { BEATS = 3000, SHOWN = 1000 };
    assert_int_equal(kit_begin(k, "c", "p", HOUR, HF_ABANDON_UNKNOWN), HF_OK);
    char line[120];
    snprintf(line, sizeof line, "{\"op\":\"heartbeat\",\"key\":\"c\",\"fence\":%llu}",
             (unsigned long long)k->got.answer.claim.fence);
    for (int i = 0; i < BEATS; i++) {
        kit_at(k, 1000 * (i + 1));
        does(line);
    }
    kit_close(k);
    char *told = traced("c", false);
    assert_int_equal(times_in(told, "\n20"), SHOWN);
    assert_non_null(strstr(told, "Key \"c\": 3001 events\n"));
    assert_non_null(strstr(told, "claim begin: started"));
    assert_non_null(
        strstr(told, "\n... 2001 events not shown. `holdfast export` has all of them.\n"));
    free(told);
    told = traced("c", true);
    assert_int_equal(times_in(told, "{\"at\":\""), SHOWN);
    assert_int_equal(times_in(told, "},{\"at\":\""), SHOWN - 1);
    assert_non_null(strstr(told, ",\"omitted\":2001,\"events\":[{\"at\":"));
    assert_non_null(strstr(told, "\"}]}\n"));
    free(told);
}

/* A store whose segments are not a multiple of the compressed frame: its last frame is filled up,
 * and the audit has to read it so. And the note of an orderly close, which the audit reads too. */

static enum hf_audit_verdict verdict_of(struct kit *own, struct hf_audit_report *report)
{
    struct hf_error why;
    assert_int_equal(hf_audit_run(own->dir, NULL, report, &why), HF_OK);
    return report->verdict;
}

static void place_holds(struct kit *own, int count)
{
    char id[HF_ID_SIZE], name[32];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "room-%d", i);
        kit_held(own, name, HOUR, id);
    }
}

static void compressed_segments_of_64_kib_are_whole(void **state)
{
    (void)state;
    struct kit *own = kit_make();
    struct hf_audit_report report;
    own->options.segment_max_bytes = 65536;
    own->options.snapshot_every_bytes = 65536;
    own->options.idempotency_window_ms = SECOND;
    kit_close(own);
    kit_remove(own, ""); /* begin anew: its first segment was a large one */
    kit_open(own);
    place_holds(own, 90);
    for (int i = 1; i < 3; i++) { /* only what no key needs any more is compressed */
        kit_at(own, i * MINUTE);
        for (int n = 0; n < 40; n++) {
            char id[HF_ID_SIZE];
            kit_held(own, "again", 100, id);
            kit_at(own, i * MINUTE + n * 200 + 200);
        }
        kit_settle(own);
    }
    assert_true(kit_files(own, ".zst") > 0);
    kit_close(own);
    assert_int_equal(verdict_of(own, &report), HF_AUDIT_OK);
    assert_int_equal(report.holds, 170);
    hf_audit_report_free(&report);
    kit_free(own);
}

/* Change one byte of the newest batch's entries. */
static void damage_the_last_batch(struct kit *own, uint64_t end)
{
    char path[600];
    unsigned char byte;
    snprintf(path, sizeof path, "%s/journal-00000001.log", own->dir);
    int fd = open(path, O_RDWR);
    off_t at = (off_t)end - 4096 + 100;
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void a_last_batch_lost_after_an_orderly_close_is_damage(void **state)
{
    (void)state;
    struct kit *own = kit_make();
    struct hf_audit_report report;
    place_holds(own, 5);
    uint64_t end = kit_stats(own).journal_bytes;
    kit_close(own);
    assert_int_equal(verdict_of(own, &report), HF_AUDIT_OK);
    hf_audit_report_free(&report);
    damage_the_last_batch(own, end);
    assert_int_equal(verdict_of(own, &report), HF_AUDIT_DAMAGED);
    assert_int_equal(report.damages, 1);
    assert_non_null(strstr(report.damage[0].what, "the note `closed` names a later batch"));
    assert_int_equal(report.holds, 4);
    hf_audit_report_free(&report);
    kit_free(own);
}

/* The header of the first segment is gone: the keys are found in the next one, or not at all.
 * Either way nothing is told about holds that is not true. */
static void without_its_first_header(bool more)
{
    struct kit *own = kit_make();
    struct hf_audit_report report;
    char id[HF_ID_SIZE], path[600];
    unsigned char zeros[512] = { 0 };
    kit_held(own, "seat", HOUR, id);
    assert_int_equal(kit_end(own, HF_CONFIRM, "c", id), HF_OK);
    assert_int_equal(kit_end(own, HF_REVERSE, "r", id), HF_OK);
    if (more)
        assert_int_equal(kit_write(own, 120, 40000, 4), HF_OK);
    kit_close(own);
    snprintf(path, sizeof path, "%s/journal-00000002.log", own->dir);
    int fd = open(path, O_RDONLY);
    bool second = fd >= 0 && read(fd, id, 8) == 8 && memcmp(id, "HOLDSEG1", 8) == 0;
    if (fd >= 0)
        close(fd);
    assert_int_equal(second, more);
    snprintf(path, sizeof path, "%s/journal-00000001.log", own->dir);
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, zeros, sizeof zeros, 0), sizeof zeros);
    close(fd);
    assert_int_equal(verdict_of(own, &report), HF_AUDIT_DAMAGED);
    assert_int_equal(report.journal.keys_known, more);
    for (size_t i = 0; i < report.check_count; i++)
        assert_true(report.checks[i].violations == 0 || i == HF_AUDIT_SEQUENCE ||
                    i == HF_AUDIT_CHAIN || i == HF_AUDIT_FORMAT);
    hf_audit_report_free(&report);
    kit_free(own);
}

static void no_hold_is_accused_for_a_lost_header(void **state)
{
    (void)state;
    without_its_first_header(false);
    without_its_first_header(true);
}

/* The audit objected to bytes behind the newest batch that belong to no batch. A crash leaves them
 * there if it tears the write of a batch over what an earlier crash has left: the batch is whole,
 * the zeros behind it are not. The store itself opens then, and cleans them up. */

/* Put a byte where the zeros behind the batch end that ends before `end`. */
static void soil(struct kit *own, uint64_t end)
{
    char path[600];
    snprintf(path, sizeof path, "%s/journal-00000001.log", own->dir);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "x", 1, (off_t)end - 1), 1);
    close(fd);
}

static enum hf_audit_verdict verdict_of_the_last(struct kit *own)
{
    struct hf_audit_report report;
    struct hf_error why;
    assert_int_equal(hf_audit_run(own->dir, NULL, &report, &why), HF_OK);
    enum hf_audit_verdict verdict = report.verdict;
    hf_audit_report_free(&report);
    return verdict;
}

static void bytes_behind_the_newest_batch_are_a_crash(void **s)
{
    (void)s;
    struct kit *own = kit_make();
    assert_int_equal(kit_write(own, 1, 10, 1), HF_OK);
    uint64_t first = kit_stats(own).journal_bytes;
    assert_int_equal(kit_write(own, 1, 10, 1), HF_OK);
    uint64_t second = kit_stats(own).journal_bytes;
    kit_close(own);
    soil(own, second);
    assert_int_equal(verdict_of_the_last(own), HF_AUDIT_OK);
    kit_open(own); /* which cleans up */
    assert_int_equal(kit_write(own, 1, 10, 1), HF_OK);
    kit_close(own);
    assert_int_equal(verdict_of_the_last(own), HF_AUDIT_OK);
    soil(own, first);
    assert_int_equal(verdict_of_the_last(own), HF_AUDIT_DAMAGED);
    kit_free(own);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_type_is_exported_as_what_it_is),
        TEST(the_database_has_the_same_registers),
        TEST(things_come_again_after_their_time),
        TEST(a_long_trace_shows_both_ends),
        cmocka_unit_test(no_hold_is_accused_for_a_lost_header),
        cmocka_unit_test(compressed_segments_of_64_kib_are_whole),
        cmocka_unit_test(a_last_batch_lost_after_an_orderly_close_is_damage),
        cmocka_unit_test(bytes_behind_the_newest_batch_are_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
