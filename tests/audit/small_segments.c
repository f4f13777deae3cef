/* A store whose segments are not a multiple of the compressed frame: its last frame is filled up,
 * and the audit has to read it so. And the note of an orderly close, which the audit reads too. */
#include "audit/audit.h"
#include "engine/kit/engine.h"
#include "support/test.h"

#include <fcntl.h>
#include <unistd.h>

static enum hf_audit_verdict verdict_of(struct kit *k, struct hf_audit_report *report)
{
    struct hf_error why;
    assert_int_equal(hf_audit_run(k->dir, NULL, report, &why), HF_OK);
    return report->verdict;
}

static void fill(struct kit *k, int count)
{
    char id[HF_ID_SIZE], name[32];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "room-%d", i);
        kit_held(k, name, HOUR, id);
    }
}

static void compressed_segments_of_64_kib_are_whole(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    struct hf_audit_report report;
    k->options.segment_max_bytes = 65536;
    k->options.snapshot_every_bytes = 65536;
    k->options.idempotency_window_ms = SECOND;
    kit_close(k);
    kit_remove(k, ""); /* begin anew: its first segment was a large one */
    kit_open(k);
    fill(k, 90);
    for (int i = 1; i < 3; i++) { /* only what no key needs any more is compressed */
        kit_at(k, i * MINUTE);
        for (int n = 0; n < 40; n++) {
            char id[HF_ID_SIZE];
            kit_held(k, "again", 100, id);
            kit_at(k, i * MINUTE + n * 200 + 200);
        }
        kit_settle(k);
    }
    assert_true(kit_files(k, ".zst") > 0);
    kit_close(k);
    assert_int_equal(verdict_of(k, &report), HF_AUDIT_OK);
    assert_int_equal(report.holds, 170);
    hf_audit_report_free(&report);
    kit_free(k);
}

/* Change one byte of the newest batch's entries. */
static void damage_the_last_batch(struct kit *k, uint64_t end)
{
    char path[600];
    unsigned char byte;
    snprintf(path, sizeof path, "%s/journal-00000001.log", k->dir);
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
    struct kit *k = kit_make();
    struct hf_audit_report report;
    fill(k, 5);
    uint64_t end = kit_stats(k).journal_bytes;
    kit_close(k);
    assert_int_equal(verdict_of(k, &report), HF_AUDIT_OK);
    hf_audit_report_free(&report);
    damage_the_last_batch(k, end);
    assert_int_equal(verdict_of(k, &report), HF_AUDIT_DAMAGED);
    assert_int_equal(report.damages, 1);
    assert_non_null(strstr(report.damage[0].what, "the note `closed` names a later batch"));
    assert_int_equal(report.holds, 4);
    hf_audit_report_free(&report);
    kit_free(k);
}

/* The header of the first segment is gone: the keys are found in the next one, or not at all.
 * Either way nothing is told about holds that is not true. */
static void without_its_first_header(bool more)
{
    struct kit *k = kit_make();
    struct hf_audit_report report;
    char id[HF_ID_SIZE], path[600];
    unsigned char zeros[512] = { 0 };
    kit_held(k, "seat", HOUR, id);
    assert_int_equal(kit_end(k, HF_CONFIRM, "c", id), HF_OK);
    assert_int_equal(kit_end(k, HF_REVERSE, "r", id), HF_OK);
    if (more)
        assert_int_equal(kit_write(k, 120, 40000, 4), HF_OK);
    kit_close(k);
    snprintf(path, sizeof path, "%s/journal-00000002.log", k->dir);
    int fd = open(path, O_RDONLY);
    bool second = fd >= 0 && read(fd, id, 8) == 8 && memcmp(id, "HOLDSEG1", 8) == 0;
    if (fd >= 0)
        close(fd);
    assert_int_equal(second, more);
    snprintf(path, sizeof path, "%s/journal-00000001.log", k->dir);
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, zeros, sizeof zeros, 0), sizeof zeros);
    close(fd);
    assert_int_equal(verdict_of(k, &report), HF_AUDIT_DAMAGED);
    assert_int_equal(report.journal.keys_known, more);
    for (size_t i = 0; i < report.check_count; i++)
        assert_true(report.checks[i].violations == 0 || i == HF_AUDIT_SEQUENCE ||
                    i == HF_AUDIT_CHAIN || i == HF_AUDIT_FORMAT);
    hf_audit_report_free(&report);
    kit_free(k);
}

static void no_hold_is_accused_for_a_lost_header(void **state)
{
    (void)state;
    without_its_first_header(false);
    without_its_first_header(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_hold_is_accused_for_a_lost_header),
        cmocka_unit_test(compressed_segments_of_64_kib_are_whole),
        cmocka_unit_test(a_last_batch_lost_after_an_orderly_close_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
