/* The note of an orderly close: any bytes in its place, and such whose CRC is right. */
#include "fuzz/support/fuzz.h"
#include "fuzz/support/store.h"

#include "base/bytes.h"
#include "store/journal/closed.h"

/* The first byte says whether the CRC is made right, the rest is the note. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct fuzz_files files;
    struct hf_buffer shown = { 0 };
    unsigned char note[2 * HF_CLOSED_SIZE];
    unsigned faults = 0;
    bool fix = fuzz_u8(&in) & 1;
    struct hf_bytes rest = fuzz_some(&in, sizeof note);
    if (rest.size > 0)
        memcpy(note, rest.data, rest.size);
    if (fix && rest.size >= HF_CLOSED_SIZE)
        hf_put32(note + 60, hf_crc32c(0, note, 60));
    fuzz_files_init(&files);
    fuzz_files_copy(&files, fuzz_store());
    files.wall = fuzz_store()->wall;
    fuzz_files_put(&files, HF_CLOSED_NAME, hf_mem(note, rest.size));
    enum hf_status status = fuzz_store_try(&files, size % 4 == 0, &shown, &faults);
    FUZZ_WANT(status == HF_OK || status == HF_STORE_DAMAGED);
    if (status == HF_OK)
        FUZZ_WANT(faults == 0 && hf_bytes_equal(fuzz_held(&shown), fuzz_store_truth()));
    hf_buffer_free(&shown);
    fuzz_files_free(&files);
    return 0;
}
