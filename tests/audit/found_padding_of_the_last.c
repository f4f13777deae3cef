/* The audit objected to bytes behind the newest batch that belong to no batch. A crash leaves them
 * there if it tears the write of a batch over what an earlier crash has left: the batch is whole,
 * the zeros behind it are not. The store itself opens then, and cleans them up. */
#include "audit/audit.h"
#include "engine/kit/engine.h"
#include "support/test.h"

#include <fcntl.h>
#include <unistd.h>

/* Put a byte where the zeros behind the batch end that ends before `end`. */
static void soil(struct kit *k, uint64_t end)
{
    char path[600];
    snprintf(path, sizeof path, "%s/journal-00000001.log", k->dir);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "x", 1, (off_t)end - 1), 1);
    close(fd);
}

static enum hf_audit_verdict verdict_of(struct kit *k)
{
    struct hf_audit_report report;
    struct hf_error why;
    assert_int_equal(hf_audit_run(k->dir, NULL, &report, &why), HF_OK);
    enum hf_audit_verdict verdict = report.verdict;
    hf_audit_report_free(&report);
    return verdict;
}

static void bytes_behind_the_newest_batch_are_a_crash(void **s)
{
    (void)s;
    struct kit *k = kit_make();
    assert_int_equal(kit_write(k, 1, 10, 1), HF_OK);
    uint64_t first = kit_stats(k).journal_bytes;
    assert_int_equal(kit_write(k, 1, 10, 1), HF_OK);
    uint64_t second = kit_stats(k).journal_bytes;
    kit_close(k);
    soil(k, second);
    assert_int_equal(verdict_of(k), HF_AUDIT_OK);
    kit_open(k); /* which cleans up */
    assert_int_equal(kit_write(k, 1, 10, 1), HF_OK);
    kit_close(k);
    assert_int_equal(verdict_of(k), HF_AUDIT_OK);
    soil(k, first);
    assert_int_equal(verdict_of(k), HF_AUDIT_DAMAGED);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        bytes_behind_the_newest_batch_are_a_crash) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
