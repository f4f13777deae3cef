/* Numbers in right files that would have made a start ask for gigabytes: a batch in a compressed
 * segment that says it is as long as the segment, which may be mostly zeros and a few bytes on
 * disk. (The highest hold of a snapshot is proof/fuzz/regressions/snapshot/absurd-highest.) */
#include "audit/audit.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "engine/kit/engine.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"

#include <sys/resource.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

enum { SEGMENT = 1 << 20, STRETCHED = 900 << 20, LENGTH = 800 << 20 };

/* As much memory as a small store needs, where no sanitizer needs more. The limit that was before
 * is answered. */
static struct rlimit limit_memory(void)
{
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(SANITIZED)
    limit = (struct rlimit){ (rlim_t)512 << 20, before.rlim_max };
#else
    limit = before;
#endif
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    return before;
}

static void a_compressed_batch(void **state)
{
    (void)state;
    static struct jw w;
    struct kit *k = kit_make();
    struct hf_error why;
    size_t size;
    kit_leave(k);
    jw_open(&w, k->dir, SEGMENT);
    w.stretched = STRETCHED;
    jw_begin(&w, KIT_START);
    jw_row(jw_add(&w, HF_SET_RESOURCE), HF_ROW_RESOURCE)->resource =
        (struct hf_resource){ .name = hf_str("r"), .capacity = 1 };
    jw_commit(&w);
    jw_close(&w);
    unsigned char *bytes = jw_load(k->dir, "journal-00000001.log", &size);
    hf_put32(bytes + 4096 + 4, LENGTH);
    jw_fix_tag(bytes + 4096);
    jw_save(k->dir, "journal-00000001.log", bytes, size);
    free(bytes);
    jw_pack(&w, 1);
    kit_remove(k, "2.log");
    struct hf_audit_report report;
    struct rlimit before = limit_memory();
    enum hf_status audited = hf_audit_run(k->dir, NULL, &report, &why);
    enum hf_status opened = hf_open(k->dir, &k->options, &k->db, &why);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(audited, HF_OK);
    assert_int_not_equal(opened, HF_NO_MEMORY);
    hf_audit_report_free(&report);
    if (opened == HF_OK)
        kit_close(k);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_compressed_batch) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
