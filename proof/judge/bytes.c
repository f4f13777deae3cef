#include "judge/bytes.h"

#include <stdlib.h>

struct hf_bytes judge_bytes_copy(struct hf_bytes bytes)
{
    void *data = malloc(bytes.size ? bytes.size : 1);
    if (!data)
        abort();
    if (bytes.size)
        memcpy(data, bytes.data, bytes.size);
    return hf_mem(data, bytes.size);
}

bool judge_bytes_equal(struct hf_bytes a, struct hf_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
