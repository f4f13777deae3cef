/* The index of holds: any numbers in it. It is only a help, so what the store shows is what it showed, or it says that a
 * record cannot be read; never another record. */
#include "fuzz/support/fuzz.h"
#include "fuzz/support/store.h"

#include "base/bytes.h"

#include <stdlib.h>

enum { HEAD = 52, POSITIONS = 512 };

/* The first byte says whether the header's CRC is made right (1) and whether the store's id is put in (2); then come the
 * header and the numbers behind it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct fuzz_files files;
    struct hf_buffer shown = { 0 };
    unsigned faults = 0;
    uint8_t fix = fuzz_u8(&in);
    unsigned char *file = calloc(1, HF_BLOCK + 8 * POSITIONS);
    FUZZ_WANT(file);
    struct hf_bytes head = fuzz_some(&in, HEAD), rest = fuzz_some(&in, (size_t)8 * POSITIONS);
    size_t file_size = rest.size > 0 ? HF_BLOCK + rest.size : head.size;
    if (head.size > 0)
        memcpy(file, head.data, head.size);
    if (rest.size > 0)
        memcpy(file + HF_BLOCK, rest.data, rest.size);
    if (fix & 2)
        memcpy(file + 16, fuzz_store_keys()->store_id, 16);
    if (fix & 1)
        hf_put32(file + 48, hf_crc32c(0, file, 48));
    fuzz_files_init(&files);
    fuzz_files_copy(&files, fuzz_store());
    files.wall = fuzz_store()->wall;
    fuzz_files_put(&files, "holds.idx", hf_mem(file, file_size));
    enum hf_status status = fuzz_store_try(&files, size % 4 == 0, &shown, &faults);
    FUZZ_WANT(status == HF_OK);
    if (faults == 0)
        FUZZ_WANT(hf_bytes_equal(fuzz_held(&shown), fuzz_store_truth()));
    hf_buffer_free(&shown);
    fuzz_files_free(&files);
    free(file);
    return 0;
}
