/* The audit holds holds.idx against the journal, and tells what is wrong with it without calling
 * the history damaged. */
#include "audit/audit.h"
#include "engine/kit/engine.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOLDS = 1100, PARTS = 3, BLOCK = 4096 };

static char ids[HOLDS][HF_ID_SIZE];
static struct hf_audit_report report;
static struct kit *k;

static void snapshot_make(void)
{
    uint64_t had = kit_stats(k).snapshots;
    kit_settle(k);
    for (int i = 0; kit_stats(k).snapshots == had; i++) {
        assert_true(i < 100);
        assert_int_equal(kit_write(k, 20, 1000, 4), HF_OK);
        kit_settle(k);
    }
}

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    k->options.snapshot_every_bytes = 65536;
    kit_reopen(k);
    assert_int_equal(kit_resource(k, "hall", HOLDS), HF_OK);
    for (int i = 0; i < HOLDS; i++)
        kit_held(k, "hall", DAY, ids[i]);
    snapshot_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

static void audit(void)
{
    struct hf_error why;
    hf_audit_report_free(&report);
    assert_int_equal(hf_audit_run(k->dir, NULL, &report, &why), HF_OK);
    assert_int_equal(report.verdict, HF_AUDIT_OK);
}

static void file_do(void *data, size_t size, off_t at, bool put)
{
    char path[512];
    snprintf(path, sizeof path, "%s/holds.idx", k->dir);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(put ? pwrite(fd, data, size, at) : pread(fd, data, size, at), size);
    close(fd);
}

/* A place that is in use: a snapshot begins with the first ones. */
static off_t place_of(int part)
{
    return (off_t)(2 * part - 1) * BLOCK;
}

static void a_good_index_agrees(void **state)
{
    (void)state;
    audit();
    assert_int_equal(report.index_parts, PARTS);
    assert_int_equal(report.index_wrong, 0);
    /* Holds that changed since are not looked for in the file, with or without the store open. */
    for (int i = 0; i < HOLDS; i += 50)
        assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), ids[i]), HF_OK);
    audit();
    assert_int_equal(report.index_wrong, 0);
    kit_close(k);
    audit();
    assert_int_equal(report.index_parts, PARTS);
    assert_int_equal(report.index_wrong, 0);
    kit_open(k);
}

static void a_wrong_index_is_told_and_is_no_damage(void **state)
{
    (void)state;
    unsigned char c, page[BLOCK];
    for (int part = 1; part <= PARTS; part++) {
        file_do(&c, 1, place_of(part) + 100, false);
        c ^= 1;
        file_do(&c, 1, place_of(part) + 100, true);
        audit();
        assert_int_equal(report.index_parts, PARTS);
        assert_int_equal(report.index_wrong, part);
        assert_int_equal(report.index_wrong_at, place_of(1));
    }
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_true(hf_audit_print_text(&report, out));
    fclose(out);
    assert_non_null(strstr(
        text, "damaged: 3 of its 3 parts do not agree with the journal, the first at byte 4096"));
    free(text);
    kit_reopen(k); /* rebuilt */
    kit_settle(k);
    audit();
    assert_int_equal(report.index_parts, PARTS);
    assert_int_equal(report.index_wrong, 0);
    /* A whole page that was right once. */
    file_do(page, sizeof page, place_of(1), false);
    for (int round = 0; round < 2; round++) {
        for (int i = round; i < HOLDS; i += 50)
            assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), ids[i]), HF_OK);
        snapshot_make();
    }
    file_do(page, sizeof page, place_of(1), true);
    audit();
    assert_int_equal(report.index_wrong, 1);
    /* The header. */
    kit_reopen(k);
    kit_settle(k);
    memset(page, 0, sizeof page);
    file_do(page, sizeof page, 0, true);
    audit();
    assert_int_equal(report.index_wrong, PARTS);
    /* None at all. */
    kit_close(k);
    kit_remove(k, "holds.idx");
    audit();
    assert_true(report.index_missing);
    assert_int_equal(report.index_parts, PARTS);
    assert_int_equal(report.index_wrong, PARTS);
    /* One that cannot be read: the start makes it anew, and the audit tells, and judges everything
     * else. */
    char path[512];
    snprintf(path, sizeof path, "%s/holds.idx", k->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    audit();
    assert_false(report.index_missing);
    assert_int_equal(report.index_wrong, PARTS);
    assert_int_equal(rmdir(path), 0);
    kit_open(k);
    hf_audit_report_free(&report);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = { T(a_good_index_agrees),
                                        T(a_wrong_index_is_told_and_is_no_damage) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
