/* Recovery from a journal of right form and any content: rows that no store writes behind CRCs that
 * are right. */
#include "fuzz/support/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct fuzz_files files;
    struct hf_buffer shown = { 0 };
    unsigned faults;
    fuzz_files_init(&files);
    fuzz_rows(&in, &files);
    (void)fuzz_store_try(&files, true, &shown, &faults);
    hf_buffer_free(&shown);
    fuzz_files_free(&files);
    return 0;
}
