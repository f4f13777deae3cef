/* The head of a request, whole and in the pieces that the input asks for: the same answer, and what
 * head.h promises. */
#include "http/kit/head.h"
#include "fuzz/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct fuzz_split split;
    struct head_outcome whole;
    fuzz_split(&in, &split);
    head_parse_whole(split.bytes, &whole);
    head_check(split.bytes, &whole);
    head_same_cut(split.bytes, split.ends, split.count, &whole);
    return 0;
}
