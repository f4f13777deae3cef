#include "base/clock.h"
#include "cli/bench.h"

#include <stdlib.h>
#include <time.h>

double hf_bench_clock(void)
{
    return (double)hf_clock_monotonic_ns() / 1e9;
}

double hf_bench_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

bool hf_bench_times_add(struct hf_bench_times *t, double us)
{
    if (t->count == t->room) {
        size_t room = t->room ? t->room * 2 : 4096;
        float *grown = realloc(t->us, room * sizeof *grown);
        if (!grown)
            return false;
        t->us = grown;
        t->room = room;
    }
    t->us[t->count++] = (float)us;
    return true;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

void hf_bench_times_end(struct hf_bench_times *t, struct hf_bench_point *out)
{
    if (t->count > 0) {
        qsort(t->us, t->count, sizeof *t->us, compare);
        out->p50_us = (double)t->us[t->count / 2];
        out->p99_us = (double)t->us[t->count - 1 - t->count / 100];
        out->p999_us = (double)t->us[t->count - 1 - t->count / 1000];
        out->max_us = (double)t->us[t->count - 1];
    }
    free(t->us);
    *t = (struct hf_bench_times){ 0 };
}
