#include "base/clock.h"

#include <time.h>

enum { NS = 1000000000 };

static int64_t read_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * NS + t.tv_nsec;
}

int64_t hf_clock_monotonic_ms(void)
{
    return read_ns(CLOCK_MONOTONIC) / 1000000;
}

int64_t hf_clock_monotonic_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

hf_time hf_clock_boot_ms(void)
{
    return read_ns(CLOCK_BOOTTIME) / 1000000;
}

hf_time hf_clock_wall_ms(void)
{
    return read_ns(CLOCK_REALTIME) / 1000000;
}

void hf_clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool hf_clock_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns)
{
    struct timespec until = { .tv_sec = (time_t)(until_ns / NS), .tv_nsec = (long)(until_ns % NS) };
    return pthread_cond_timedwait(cond, lock, &until) == 0;
}
