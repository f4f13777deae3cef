/* A snapshot of any bytes: it is not used, and the store shows what it showed; and one of right
 * form and any content: the store opens or says why. */
#include "fuzz/support/snapshot.h"
#include "fuzz/support/fuzz.h"
#include "fuzz/support/store.h"

#include "base/bytes.h"

#include <stdio.h>

enum { START_AT = 16 + 64 }; /* in the first block */

/* The first byte says whether blocks follow, to be put into right form, or the file itself. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct fuzz_files files;
    struct hf_buffer shown = { 0 }, built = { 0 };
    unsigned faults = 0;
    bool build = fuzz_u8(&in) & 1;
    struct hf_bytes file = fuzz_rest(&in);
    fuzz_files_init(&files);
    fuzz_files_copy(&files, fuzz_store());
    files.wall = fuzz_store()->wall;
    char name[64];
    snprintf(name, sizeof name, "%s", fuzz_files_find(&files, ".snap"));
    fuzz_files_remove(&files, name);
    if (build) {
        fuzz_snapshot_build(file, &built);
        file = fuzz_held(&built);
        if (built.size >= START_AT + 8) /* its name and its header agree */
            snprintf(name, sizeof name, "snapshot-%016llx.snap",
                     (unsigned long long)hf_get64(built.data + START_AT));
    }
    fuzz_files_put(&files, name, file);
    enum hf_status status = fuzz_store_try(&files, size % 4 == 0, &shown, &faults);
    FUZZ_WANT(build || status == HF_OK);
    if (!build)
        FUZZ_WANT(faults == 0 && hf_bytes_equal(fuzz_held(&shown), fuzz_store_truth()));
    hf_buffer_free(&built);
    hf_buffer_free(&shown);
    fuzz_files_free(&files);
    return 0;
}
