#include "load.h"

#include <time.h>

/* Values below 64 have a slot each; above, the six bits behind the leading one choose the slot. */
static unsigned slot_of(uint64_t ns)
{
    if (ns < 64)
        return (unsigned)ns;
    unsigned power = 63U - (unsigned)__builtin_clzll(ns);
    return 64 * (power - 5) + (unsigned)((ns >> (power - 6)) & 63);
}

/* The greatest value that falls into a slot. */
static uint64_t top_of(unsigned slot)
{
    if (slot < 64)
        return slot;
    unsigned power = slot / 64 + 5;
    uint64_t step = UINT64_C(1) << (power - 6);
    return (UINT64_C(1) << power) + (slot % 64) * step + (step - 1);
}

void hf_load_histogram_add(struct hf_load_histogram *h, uint64_t ns)
{
    h->count[slot_of(ns)]++;
    h->total++;
    if (ns > h->max_ns)
        h->max_ns = ns;
}

double hf_load_histogram_at(const struct hf_load_histogram *h, double part)
{
    uint64_t wanted = (uint64_t)((double)h->total * part), seen = 0;
    for (unsigned slot = 0; slot < sizeof h->count / sizeof *h->count; slot++) {
        seen += h->count[slot];
        if (seen > wanted || (seen == h->total && seen > 0)) {
            uint64_t top = top_of(slot);
            return (double)(top < h->max_ns ? top : h->max_ns) / 1000;
        }
    }
    return 0;
}

uint64_t hf_load_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
