/* clock.h: the clocks of the system as they are, and waiting by the one that only goes forward.
 *
 * What the store takes for the time is another matter: store/engine_clock.h. */
#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include "holdfast.h"

#include <pthread.h>

/* The monotonic clock: from any start, never back, whatever happens to the wall clock. */
int64_t hf_clock_monotonic_ms(void);
int64_t hf_clock_monotonic_ns(void);
/* Milliseconds since the machine was started, those included in which it slept. */
hf_time hf_clock_boot_ms(void);
/* Milliseconds since 1970. People and programs set this clock. */
hf_time hf_clock_wall_ms(void);

/* A condition for hf_clock_wait. cond: out, owned, free with pthread_cond_destroy. */
void hf_clock_cond_init(pthread_cond_t *cond);
/* Wait for `cond`, at the latest until hf_clock_monotonic_ns says `until_ns`. lock: held, given
 * back meanwhile. False: the time is up. True says nothing about what is waited for: look again. */
bool hf_clock_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns);

#endif
