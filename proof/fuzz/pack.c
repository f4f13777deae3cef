/* A compressed segment of any bytes, and one whose CRCs are right. The store opens and shows what
 * it showed, as far as it can be read, or says what is damaged. */
#include "fuzz/support/fuzz.h"
#include "fuzz/support/snapshot.h"
#include "fuzz/support/store.h"

#include "base/bytes.h"

#include <stdlib.h>

/* The first byte says whether the CRCs are made right (1) and whether snapshot and index are taken
 * away (2), so that the segment is read; the rest is the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct fuzz_files files;
    struct hf_buffer shown = { 0 };
    unsigned faults = 0;
    uint8_t how = fuzz_u8(&in);
    struct hf_bytes rest = fuzz_rest(&in);
    unsigned char *file = (unsigned char *)fuzz_copy(rest);
    if (how & 1)
        fuzz_pack_fix(file, rest.size);
    fuzz_files_init(&files);
    fuzz_files_copy(&files, fuzz_store());
    files.wall = fuzz_store()->wall;
    fuzz_files_put(&files, "journal-00000001.zst", hf_mem(file, rest.size));
    if (how & 2) {
        fuzz_files_remove(&files, fuzz_files_find(&files, ".snap"));
        fuzz_files_remove(&files, "holds.idx");
    }
    enum hf_status status = fuzz_store_try(&files, size % 4 == 0, &shown, &faults);
    if (status == HF_OK && !(how & 1) && faults == 0)
        FUZZ_WANT(hf_bytes_equal(hf_mem(shown.data, shown.size), fuzz_store_truth()));
    hf_buffer_free(&shown);
    fuzz_files_free(&files);
    free(file);
    return 0;
}
