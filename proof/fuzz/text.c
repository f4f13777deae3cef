/* Durations, times, sizes, numbers and ids as people write them: what is understood is written so
 * that it is understood as the same. */
#include "fuzz/support/fuzz.h"

#include "base/bytes.h"
#include "base/id.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

static void duration(struct hf_bytes text)
{
    int64_t ms, again;
    char shown[24];
    if (!hf_duration_parse(text, &ms))
        return;
    FUZZ_WANT(ms >= 0 && ms <= HF_DURATION_MAX_MS);
    hf_duration_format(ms, shown);
    FUZZ_WANT(hf_duration_parse(hf_str(shown), &again) && again == ms);
}

static void moment(struct hf_bytes text)
{
    hf_time t, again;
    char shown[HF_TIME_TEXT];
    if (!hf_time_parse(text, &t))
        return;
    hf_time_format(t, shown);
    FUZZ_WANT(hf_time_parse(hf_str(shown), &again));
    char same[HF_TIME_TEXT];
    hf_time_format(again, same);
    FUZZ_WANT(strcmp(shown, same) == 0);
    FUZZ_WANT(again == t || strncmp(shown, "0000-01-01", 10) == 0 ||
              strncmp(shown, "9999-12-31", 10) == 0);
}

static void number(struct hf_bytes text)
{
    uint64_t n, again;
    char shown[24];
    if (hf_size_parse(text, &n)) {
        snprintf(shown, sizeof shown, "%llu", (unsigned long long)n);
        FUZZ_WANT(hf_size_parse(hf_str(shown), &again) && again == n);
    }
    if (hf_number_parse(text, &n)) {
        snprintf(shown, sizeof shown, "%llu", (unsigned long long)n);
        FUZZ_WANT(hf_number_parse(hf_str(shown), &again) && again == n);
    }
}

static void id(struct hf_bytes text)
{
    const struct hf_sipkey key = { 1, 2 };
    uint8_t raw[HF_ID_RAW], again[HF_ID_RAW];
    char shown[HF_ID_SIZE];
    uint64_t ordinal;
    bool good = hf_id_pack(text, raw);
    if (good) {
        hf_id_unpack(raw, shown);
        FUZZ_WANT(hf_id_pack(hf_str(shown), again) && memcmp(raw, again, sizeof raw) == 0);
    }
    if (hf_id_read(&key, text, &ordinal)) {
        FUZZ_WANT(good);
        hf_id_make(&key, ordinal, shown);
        FUZZ_WANT(hf_id_pack(hf_str(shown), again) && memcmp(raw, again, sizeof raw) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = fuzz_copy(hf_mem(data, size));
    struct hf_bytes text = hf_mem(copy, size);
    duration(text);
    moment(text);
    number(text);
    id(text);
    (void)hf_utf8_valid(text);
    free(copy);
    return 0;
}
