/* The index of holds: any numbers in it, with right sums too. It is only a help, so what the store
 * shows is what it showed. */
#include "fuzz/support/fuzz.h"
#include "fuzz/support/store.h"

#include "base/bytes.h"

#include <stdlib.h>

enum { HEAD = 40, HEAD_SUM = 32, PAGES = 2, PART_HEAD = 24 };

/* Make the sum of the page right, for the place that it says it is at. */
static void page_fix(unsigned char *page)
{
    unsigned char crc[4];
    hf_put32(crc, hf_crc32c(0, page + PART_HEAD, HF_BLOCK - PART_HEAD));
    uint64_t sum = hf_siphash(&fuzz_store_keys()->table, hf_mem(page + 8, PART_HEAD - 8),
                              hf_mem(crc, sizeof crc));
    hf_put64(page, (sum & ~UINT64_C(1)) | (page[0] & 1));
}

/* The first byte says whether the sum of the header (1) and those of the pages (4) are made right,
 * and whether the store's id is put in (2); then come the header and the pages behind it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct fuzz_files files;
    struct hf_buffer shown = { 0 };
    unsigned faults = 0;
    uint8_t fix = fuzz_u8(&in);
    unsigned char *file = calloc(1 + PAGES, HF_BLOCK);
    FUZZ_WANT(file);
    struct hf_bytes head = fuzz_some(&in, HEAD), rest = fuzz_some(&in, (size_t)PAGES * HF_BLOCK);
    size_t file_size = rest.size > 0 ? HF_BLOCK + rest.size : head.size;
    if (head.size > 0)
        memcpy(file, head.data, head.size);
    if (rest.size > 0)
        memcpy(file + HF_BLOCK, rest.data, rest.size);
    if (fix & 2)
        memcpy(file + 16, fuzz_store_keys()->store_id, 16);
    if (fix & 1)
        hf_put64(file + HEAD_SUM,
                 hf_siphash(&fuzz_store_keys()->table, hf_mem(file, HEAD_SUM), hf_mem(NULL, 0)));
    for (int i = 1; fix & 4 && i <= PAGES; i++)
        page_fix(file + i * HF_BLOCK);
    fuzz_files_init(&files);
    fuzz_files_copy(&files, fuzz_store());
    files.wall = fuzz_store()->wall;
    fuzz_files_put(&files, "holds.idx", hf_mem(file, file_size));
    enum hf_status status = fuzz_store_try(&files, size % 4 == 0, &shown, &faults);
    FUZZ_WANT(status == HF_OK && faults == 0);
    FUZZ_WANT(hf_bytes_equal(fuzz_held(&shown), fuzz_store_truth()));
    hf_buffer_free(&shown);
    fuzz_files_free(&files);
    free(file);
    return 0;
}
