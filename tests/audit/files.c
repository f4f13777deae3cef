/* Files as a crash, a bad disk or an enemy leaves them. */
#include "audit/audit.h"
#include "audit/kit/journal_story.h"
#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define FIRST "journal-00000001.log"
#define SECOND "journal-00000002.log"

static struct story story;
static struct hf_audit_report report;
static struct hf_error why;

static int setup(void **state)
{
    (void)state;
    story_open_sized(&story, 32 * 1024); /* seven batches a segment */
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hf_audit_report_free(&report);
    story_remove(&story);
    return 0;
}

static void run(void)
{
    story_close(&story);
    hf_audit_report_free(&report);
    assert_int_equal(hf_audit_run(story.dir, NULL, &report, &why), HF_OK);
}

static void outcome(enum hf_audit_check_id id, enum hf_audit_outcome expected)
{
    if (hf_audit_outcome(&report.checks[id]) != expected)
        fail_msg("%s comes to %d instead of %d", report.checks[id].name,
                 (int)hf_audit_outcome(&report.checks[id]), (int)expected);
}

static void remove_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", story.dir, name);
    assert_int_equal(unlink(path), 0);
}

/* n refused requests, one a batch. */
static void tell(unsigned n)
{
    static char keys[64][16];
    for (unsigned i = 0; i < n; i++) {
        snprintf(keys[i], sizeof keys[i], "k%u", i);
        story_refuse_place(&story, keys[i], "room", "ann", HF_RESOURCE_UNAVAILABLE);
        story_commit(&story);
    }
}

static void many_segments(void **state)
{
    (void)state;
    story_tell_all(&story);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    assert_true(report.journal.segments >= 4);
    assert_int_equal(report.journal.packed, 0);
    assert_int_equal(report.batches, story.w.sequence);
    assert_memory_equal(report.chain_head, story.w.chain, HF_DIGEST_SIZE);
    assert_memory_equal(report.journal.store_id, story.w.store_id, 16);
}

static void packed_segments(void **state)
{
    (void)state;
    story_tell_all(&story);
    story_close(&story);
    jw_pack(&story.w, 1);
    jw_pack(&story.w, 2);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    assert_int_equal(report.journal.packed, 2);
    assert_memory_equal(report.chain_head, story.w.chain, HF_DIGEST_SIZE);
}

static void packed_large_frames(void **state)
{
    (void)state;
    story_remove(&story);
    story_open_sized(&story, 512 * 1024);
    story_tell_all(&story);
    story.w.next_segment = true;
    story_record(&story, "payments", "invoice-8", 300000);
    story_commit(&story);
    story_close(&story);
    jw_pack(&story.w, 1);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    assert_int_equal(report.journal.packed, 1);
    assert_int_equal(report.batches, story.w.sequence);
}

static void packed_damaged_frame(void **state)
{
    (void)state;
    tell(12);
    story_close(&story);
    jw_pack(&story.w, 1);
    jw_flip(story.dir, "journal-00000001.zst", 80);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_string_equal(report.damage[0].file, "journal-00000001.zst");
}

static void packed_damaged_table(void **state)
{
    (void)state;
    tell(12);
    story_close(&story);
    jw_pack(&story.w, 1);
    jw_flip(story.dir, "journal-00000001.zst", 50);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_int_equal(report.judged_batches, 0);
    assert_int_equal(report.batches, 13 - 7);
}

static void packed_and_last(void **state)
{
    (void)state;
    tell(
        /* two segments; the second is compressed, which no store does to its last, and broken */
        8);
    story_close(&story);
    jw_pack(&story.w, 2);
    jw_flip(story.dir, "journal-00000002.zst", 50);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_string_equal(report.damage[0].file, "journal-00000002.zst");
    assert_int_equal(report.batches, 7);
}

static void torn_tail(void **state)
{
    (void)state;
    tell(3);
    story_close(&story);
    jw_flip(story.dir, FIRST, 4096 * 4 + 130); /* inside the last batch's entry */
    run();
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    outcome(HF_AUDIT_CHAIN, HF_AUDIT_PASSED);
    assert_int_equal(report.batches, 3);
    assert_int_equal(report.journal.torn_bytes, story.w.last_length);
}

static void truncated_file(void **state)
{
    (void)state;
    size_t size;
    tell(3);
    story_close(&story);
    unsigned char *data = jw_load(story.dir, FIRST, &size);
    jw_save(story.dir, FIRST, data, 4096 * 4 + 100);
    free(data);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED); /* a start refuses it too */
    assert_int_equal(report.batches, 3);
}

static void damaged_middle(void **state)
{
    (void)state;
    tell(3);
    story_close(&story);
    jw_flip(story.dir, FIRST, 4096 * 2 + 130);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_int_equal(report.damages, 1);
    assert_string_equal(report.damage[0].file, FIRST);
    assert_int_equal(report.damage[0].offset, 4096 * 2);
    assert_int_equal(report.damage[0].sequence, 2);
    assert_int_equal(report.damage[0].found_sequence, 3);
    assert_non_null(strstr(report.damage[0].what, "entries do not match"));
    assert_int_equal(report.batches, 3);
    assert_int_equal(report.judged_batches, 1);
}

/* Behind damage nothing is called well that could not be looked at to the end. */
static void damage_leaves_checks_incomplete(void **state)
{
    (void)state;
    char *told;
    size_t size;
    tell(3);
    story_close(&story);
    jw_flip(story.dir, FIRST, 4096 * 2 + 90);
    run();
    for (unsigned i = 0; i < report.check_count; i++)
        outcome((enum hf_audit_check_id)i,
                i == HF_AUDIT_SEQUENCE ? HF_AUDIT_BROKEN : HF_AUDIT_INCOMPLETE);
    FILE *out = open_memstream(&told, &size);
    assert_true(hf_audit_print_text(&report, out));
    assert_true(hf_audit_print_json(&report, out));
    fclose(out);
    assert_non_null(
        strstr(told, "VIOLATIONS: 1, by the checks SEQUENCE\nINCOMPLETE: 37 other checks found"));
    assert_non_null(strstr(told, "\n  CHAIN      INCOMPLETE nothing was changed afterwards\n"));
    assert_non_null(
        strstr(told, "3 checked, 0 violations; lost and unreadable records were not checked"));
    assert_non_null(strstr(told, "\n  SEQUENCE   BROKEN     no batch is missing\n"));
    assert_null(strstr(told, " ok   "));
    assert_non_null(strstr(told, "\"outcome\":\"incomplete\""));
    assert_null(strstr(told, "\"outcome\":\"ok\""));
    free(told);
}

static void damaged_header_of_batch(void **state)
{
    (void)state;
    tell(3);
    story_close(&story);
    jw_flip(story.dir, FIRST, 4096 * 2 + 10);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_non_null(strstr(report.damage[0].what, "header is damaged"));
}

/* In the segment's header, in each of three batches, and in the first bytes of the padding behind
 * them. */
static void every_flipped_byte_is_noticed(void **state)
{
    (void)state;
    tell(2);
    story_close(&story);
    for (size_t block = 0; block <= 3; block++) {
        size_t size = block == 0 ? 140 : story.w.last_length + (block < 3 ? 8 : 0);
        for (size_t at = block * 4096; at < block * 4096 + size; at++) {
            jw_flip(story.dir, FIRST, at);
            hf_audit_report_free(&report);
            enum hf_status st = hf_audit_run(story.dir, NULL, &report, &why);
            if (st == HF_OK && report.verdict == HF_AUDIT_OK && report.batches == 3)
                fail_msg("byte %zu is changed, and nobody notices", at);
            jw_flip(story.dir, FIRST, at);
        }
    }
}

static void damaged_segment_header(void **state)
{
    (void)state;
    tell(10);
    story_close(&story);
    jw_flip(story.dir, SECOND, 30);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_string_equal(report.damage[0].file, SECOND);
    assert_int_equal(report.damage[0].offset, 0);
    assert_int_equal(report.damage[0].found_sequence, report.damage[0].sequence);
    assert_int_equal(report.judged_batches, 11);  /* nothing is lost */
    outcome(HF_AUDIT_CHAIN, HF_AUDIT_INCOMPLETE); /* but for what the header says */
    outcome(HF_AUDIT_SEQUENCE, HF_AUDIT_BROKEN);
    outcome(HF_AUDIT_PC1, HF_AUDIT_PASSED);
}

static void damaged_first_header(void **state)
{
    (void)state;
    tell(3);
    story_close(&story);
    jw_flip(story.dir, FIRST, 60);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_string_equal(report.damage[0].file, FIRST);
    assert_int_equal(report.judged_batches, 4);
    outcome(HF_AUDIT_PC4, HF_AUDIT_INCOMPLETE); /* what ids are made with stands in that header */
    outcome(HF_AUDIT_IR5, HF_AUDIT_INCOMPLETE);
    outcome(HF_AUDIT_PC1, HF_AUDIT_PASSED);
}

static void rotten_segment_header(void **state)
{
    (void)state;
    tell(7); /* the eighth batch is the first of the second segment, and is whole */
    story_close(&story);
    jw_flip(story.dir, SECOND, 30);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_string_equal(report.damage[0].file, SECOND);
    assert_int_equal(report.damage[0].offset, 0);
    assert_int_equal(report.judged_batches, 8); /* nothing is lost */
}

static void torn_segment_header(void **state)
{
    (void)state;
    size_t size;
    tell(
        /* the power went while the header of the second segment was written: its batch came behind
         * that */
        7);
    story_close(&story);
    unsigned char *data = jw_load(story.dir, SECOND, &size);
    memset(data + 30, 0, size - 30);
    jw_save(story.dir, SECOND, data, size);
    free(data);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    assert_int_equal(report.batches, 7);
}

static void missing_segment(void **state)
{
    (void)state;
    tell(20);
    story_close(&story);
    remove_file(SECOND);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_int_equal(report.judged_batches, 7);
    assert_int_equal(report.batches, 14);
}

static void missing_first_segment(void **state)
{
    (void)state;
    tell(10);
    story_close(&story);
    remove_file(FIRST);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_int_equal(report.judged_batches, 0);
    assert_int_equal(report.batches, 4);
}

/* A store prepares files of zeros: one with the header of another segment was put there. A start
 * refuses it too. */
static void first_copied_to(const char *name)
{
    size_t size;
    tell(10);
    story_close(&story);
    unsigned char *old = jw_load(story.dir, FIRST, &size);
    jw_save(story.dir, name, old, size);
    free(old);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_int_equal(report.batches, 11);
}

static void copied_segment_behind(void **state)
{
    (void)state;
    first_copied_to("journal-00000003.log");
}

/* A stray name far behind the others: millions of numbers are missing, and were looked for one by
 * one, for hours. */
static void segment_far_behind(void **state)
{
    (void)state;
    first_copied_to("journal-99999999.log");
}

static void segment_of_another_store(void **state)
{
    (void)state;
    tell(3);
    memcpy(story.w.store_id, "some other store", 16);
    story.w.next_segment = true;
    tell(3);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
}

static void broken_chain(void **state)
{
    (void)state;
    tell(2);
    story.w.break_chain = true;
    story_refuse_place(&story, "x", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&story);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_int_equal(report.checks[HF_AUDIT_CHAIN].violations, 1);
    assert_non_null(strstr(report.checks[HF_AUDIT_CHAIN].examples[0], "batch 4"));
    outcome(HF_AUDIT_CHAIN, HF_AUDIT_BROKEN);
    outcome(HF_AUDIT_PC1, HF_AUDIT_PASSED);
    assert_int_equal(report.judged_batches, 4);
}

static void rewritten_history(void **state)
{
    (void)state;
    size_t size;
    tell(3);
    story_close(&story);
    /* Someone changes a record and makes every CRC right again. */
    unsigned char *data = jw_load(story.dir, FIRST, &size);
    data[2 * 4096 + 112 + 9] = HF_NOT_KNOWN;
    jw_fix(data + 2 * 4096, size - 2 * 4096);
    jw_save(story.dir, FIRST, data, size);
    free(data);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_int_equal(report.damages, 0);
    assert_non_null(strstr(report.checks[HF_AUDIT_CHAIN].examples[0], "batch 3"));
}

static void skipped_sequence(void **state)
{
    (void)state;
    tell(2);
    story.w.skip_sequence = true;
    story_refuse_place(&story, "x", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&story);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_int_equal(report.checks[HF_AUDIT_SEQUENCE].violations, 1);
}

static void time_runs_back(void **state)
{
    (void)state;
    tell(2);
    story.now -= 10000;
    story_guard(&story, "g", 60000);
    story_commit(&story);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_int_equal(report.checks[HF_AUDIT_TIME].violations, 1);
}

static void dirty_padding_and_counts(void **state)
{
    (void)state;
    story.w.dirty_padding = true;
    story.w.wrong_count = true;
    tell(2); /* behind the newest batch it would be a crash */
    run();
    assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    assert_int_equal(report.checks[HF_AUDIT_FORMAT].violations, 2);
}

static void lying_row(void **state)
{
    (void)state;
    story_guard(&story, "g", 60000)->row_lies = true;
    story_commit(&story);
    tell(1);
    run();
    assert_int_equal(report.verdict, HF_AUDIT_VIOLATIONS);
    assert_non_null(
        strstr(report.checks[HF_AUDIT_FORMAT].examples[0], "a row is longer than the entry"));
    assert_int_equal(report.entries, 3);
    outcome(HF_AUDIT_FORMAT, HF_AUDIT_BROKEN);
    outcome(HF_AUDIT_CHAIN, HF_AUDIT_PASSED);
    outcome(HF_AUDIT_DP1, HF_AUDIT_INCOMPLETE); /* the entry was not judged */
}

static void newer_version(void **state)
{
    (void)state;
    story.w.segment[0] = 0;
    story.w.version = 3;
    story.w.next_segment = true;
    tell(1);
    story_close(&story);
    hf_audit_report_free(&report);
    assert_int_equal(hf_audit_run(story.dir, NULL, &report, &why), HF_STORE_NEWER);
    assert_non_null(strstr(why.text, "format version 3"));
    assert_non_null(strstr(why.text, SECOND));
}

static void newer_version_first(void **state)
{
    (void)state;
    size_t size;
    story_close(&story);
    unsigned char *data = jw_load(story.dir, FIRST, &size);
    hf_put32(data + 8, 3);
    hf_put32(data + 136, hf_crc32c(0, data, 136));
    jw_save(story.dir, FIRST, data, size);
    free(data);
    assert_int_equal(hf_audit_run(story.dir, NULL, &report, &why), HF_STORE_NEWER);
    assert_non_null(strstr(why.text, "format version 3"));
}

static void not_a_store(void **state)
{
    (void)state;
    char dir[256], path[512];
    jw_directory(dir);
    assert_int_equal(hf_audit_run(dir, NULL, &report, &why), HF_STORE_ABSENT);
    assert_non_null(strstr(why.text, "not a Holdfast store"));
    snprintf(path, sizeof path, "%s/none", dir);
    hf_audit_report_free(&report);
    assert_int_equal(hf_audit_run(path, NULL, &report, &why), HF_STORE_ABSENT);
    assert_non_null(strstr(why.text, "no such directory"));
    jw_save(dir, "none", "x", 1);
    hf_audit_report_free(&report);
    assert_int_equal(hf_audit_run(path, NULL, &report, &why), HF_STORE_ABSENT);
    assert_non_null(strstr(why.text, "it is a file, but a store is a directory"));
    strcat(path, "/below");
    hf_audit_report_free(&report);
    assert_int_equal(hf_audit_run(path, NULL, &report, &why), HF_STORE_ABSENT);
    assert_non_null(strstr(why.text, "a part of this path is a file"));
    jw_remove(dir);
}

static void prepared_but_empty(void **state)
{
    (void)state;
    char dir[256];
    char *zeros = calloc(1, 16384);
    jw_directory(dir);
    jw_save(dir, FIRST, zeros, 16384);
    assert_int_equal(hf_audit_run(dir, NULL, &report, &why), HF_OK);
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    assert_int_equal(report.batches, 0);
    hf_audit_report_free(&report);
    jw_save(dir, FIRST, zeros, 10); /* not even a block */
    assert_int_equal(hf_audit_run(dir, NULL, &report, &why), HF_OK);
    assert_int_equal(report.batches, 0);
    jw_remove(dir);
    free(zeros);
}

static void open_by(void **state)
{
    (void)state;
    char path[512];
    tell(1);
    jw_save(story.dir, "LOCK", "holdfast serve at 127.0.0.1:4653, pid 4711\n", 43);
    run();
    assert_string_equal(report.holder, "");
    snprintf(path, sizeof path, "%s/LOCK", story.dir);
    int fd = open(path, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    run();
    assert_string_equal(report.holder, "holdfast serve at 127.0.0.1:4653, pid 4711");
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    close(fd);
    run();
    assert_string_equal(report.holder, "");
    /* The directory's lock, with the note and without. */
    fd = open(story.dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    run();
    assert_string_equal(report.holder, "holdfast serve at 127.0.0.1:4653, pid 4711");
    assert_int_equal(unlink(path), 0);
    run();
    assert_string_equal(report.holder, "an unknown process");
    close(fd);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(many_segments),
        T(packed_segments),
        T(packed_large_frames),
        T(packed_damaged_frame),
        T(packed_damaged_table),
        T(packed_and_last),
        T(torn_tail),
        T(truncated_file),
        T(damaged_middle),
        T(damage_leaves_checks_incomplete),
        T(damaged_header_of_batch),
        T(every_flipped_byte_is_noticed),
        T(damaged_segment_header),
        T(damaged_first_header),
        T(rotten_segment_header),
        T(torn_segment_header),
        T(missing_segment),
        T(missing_first_segment),
        T(copied_segment_behind),
        T(segment_far_behind),
        T(segment_of_another_store),
        T(broken_chain),
        T(rewritten_history),
        T(skipped_sequence),
        T(time_runs_back),
        T(dirty_padding_and_counts),
        T(lying_row),
        T(newer_version),
        T(newer_version_first),
        T(not_a_store),
        T(prepared_but_empty),
        T(open_by),
    };
    return cmocka_run_group_tests_name("audit files", tests, NULL, NULL);
}
