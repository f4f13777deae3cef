/* The names of a store's files, taken exactly. */
#include "base/filename.h"
#include "support/test.h"

static void names_are_taken_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum hf_filename kind;
        uint64_t number;
    } names[] = {
        { "journal-00000001.log", HF_FILENAME_LOG, 1 },
        { "journal-99999999.zst", HF_FILENAME_PACK, 99999999 },
        { "snapshot-0000000000000000.snap", HF_FILENAME_SNAPSHOT, 0 },
        { "snapshot-fedcba9876543210.snap", HF_FILENAME_SNAPSHOT, UINT64_C(0xfedcba9876543210) },
        { "holds.idx", HF_FILENAME_INDEX, 0 },
        { "closed", HF_FILENAME_CLOSED, 0 },
        { "journal-00000001.tmp", HF_FILENAME_TMP, 0 },
        { ".tmp", HF_FILENAME_TMP, 0 },
        { "", HF_FILENAME_OTHER, 0 },
        { "journal-", HF_FILENAME_OTHER, 0 },
        { "journal-0000000", HF_FILENAME_OTHER, 0 },
        { "journal-00000001", HF_FILENAME_OTHER, 0 },
        { "journal-00000000.log", HF_FILENAME_OTHER, 0 },
        { "journal-+0000020.log", HF_FILENAME_OTHER, 0 },
        { "journal- 0000020.log", HF_FILENAME_OTHER, 0 },
        { "journal-0000002a.log", HF_FILENAME_OTHER, 0 },
        { "journal-00000001.log2", HF_FILENAME_OTHER, 0 },
        { "journal-000000001.log", HF_FILENAME_OTHER, 0 },
        { "Journal-00000001.log", HF_FILENAME_OTHER, 0 },
        { "snapshot-00000000FFFFF000.snap", HF_FILENAME_OTHER, 0 },
        { "snapshot-0x00000000001000.snap", HF_FILENAME_OTHER, 0 },
        { "snapshot-000000000001000.snap", HF_FILENAME_OTHER, 0 },
        { "snapshot-0000000000001000.snapx", HF_FILENAME_OTHER, 0 },
        { "closed2", HF_FILENAME_OTHER, 0 },
        { "LOCK", HF_FILENAME_OTHER, 0 },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t number = 12345;
        assert_int_equal(hf_filename_read(names[i].name, &number), names[i].kind);
        assert_true(number == names[i].number);
    }
}

static void some_files_follow_a_batch(void **state)
{
    (void)state;
    static const char *const follow[] = { "journal-00000002.log", "journal-00000002.zst",
                                          "snapshot-0000000000001000.snap", "holds.idx" };
    static const char *const others[] = { "journal-00000001.log", "closed", "LOCK",
                                          "holds.idx.tmp" };
    uint64_t number;
    for (size_t i = 0; i < 4; i++) {
        enum hf_filename kind = hf_filename_read(follow[i], &number);
        assert_true(hf_filename_follows_batch(kind, number));
        kind = hf_filename_read(others[i], &number);
        assert_false(hf_filename_follows_batch(kind, number));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(names_are_taken_exactly),
                                        cmocka_unit_test(some_files_follow_a_batch) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
