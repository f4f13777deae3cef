#include "store/record/options.h"

#include "base/error.h"

enum hf_status hf_options_check(const struct hf_options *o, struct hf_error *why)
{
    if (o->idempotency_window_ms < 0 || o->idempotency_window_ms > HF_DURATION_MAX_MS)
        return hf_error_set(why, HF_INVALID_REQUEST,
                            "the idempotency window must be 1 ms to 10 years");
    if (o->token_max_length > HF_TOKEN_MAX)
        return hf_error_set(why, HF_INVALID_REQUEST, "the maximum key length must be 1 to %d bytes",
                            HF_TOKEN_MAX);
    if ((unsigned)o->registry > HF_REGISTRY_STRICT)
        return hf_error_set(why, HF_INVALID_REQUEST, "the registry must be open or strict");
    return HF_OK;
}

size_t hf_histogram_place(uint64_t n, uint64_t unit)
{
    size_t i = 0;
    while (i < HF_HISTOGRAM - 1 && n > unit << i)
        i++;
    return i;
}
