/* clock.h: the system's clocks, and waiting by the monotonic clock.
 *
 * Engine time, by which the store decides, is in store/engine_clock.h. */
#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include "holdfast.h"

#include <pthread.h>

/* The monotonic clock: starts at any value and never goes back, whatever happens to the wall
 * clock. */
int64_t hf_clock_monotonic_ms(void);
int64_t hf_clock_monotonic_ns(void);
/* Milliseconds since the machine started, including those when it was suspended. */
hf_time hf_clock_boot_ms(void);
/* Milliseconds since 1970. People and programs set this clock. */
hf_time hf_clock_wall_ms(void);

/* A condition for hf_clock_wait. cond: out, owned, free with pthread_cond_destroy. */
void hf_clock_cond_init(pthread_cond_t *cond);
/* Wait for `cond`, at the latest until hf_clock_monotonic_ns says `until_ns`. lock: held by the
 * caller, released while waiting. False: the time is up. True may be a spurious wake-up: the caller
 * must test its condition again. */
bool hf_clock_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns);

#endif
