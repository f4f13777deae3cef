/* test.h: cmocka with what it needs in front of it, and a random number for property tests. */
#ifndef HF_TESTS_SUPPORT_TEST_H
#define HF_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* splitmix64: small, and the same on every machine. */
static inline uint64_t test_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A number in 0 .. n-1. */
static inline uint64_t test_below(uint64_t *state, uint64_t n)
{
    return test_random(state) % n;
}

/* How much of something a test does. The thread sanitizer makes a program ten times slower: there
 * it is a quarter. The other builds do all of it. */
static inline int test_size(int all)
{
#ifdef __SANITIZE_THREAD__
    return (all + 3) / 4;
#else
    return all;
#endif
}

/* What this process has worked so far: whatever else runs on the machine does not count. */
static inline int64_t test_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The seed of a property test: HF_SEED from the environment, or `fixed`. It is printed, so that a
 * failure can be run again. */
static inline uint64_t test_seed(const char *what, uint64_t fixed)
{
    const char *given = getenv("HF_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : fixed;
    printf("%s: seed %llu\n", what, (unsigned long long)seed);
    return seed;
}

#endif
