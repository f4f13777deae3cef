#include "fuzz/support/pack.h"

#include "base/bytes.h"
#include "base/hash.h"

enum { HEAD = 48, ROW = 16 };

void fuzz_pack_fix(unsigned char *file, size_t size)
{
    if (size < HEAD)
        return;
    uint64_t frames = hf_get32(file + 40);
    if (frames > (size - HEAD) / ROW)
        return;
    for (uint64_t i = 0; i < frames; i++) {
        unsigned char *row = file + HEAD + i * ROW;
        uint64_t at = hf_get64(row), length = hf_get32(row + 8);
        if (at <= size && length <= size - at && length > 0)
            hf_put32(row + 12, hf_crc32c(0, file + at, length));
    }
    hf_put32(file + 44, hf_crc32c(hf_crc32c(0, file, 44), file + HEAD, frames * ROW));
}
