/* worker.h: a background thread that calls a step again and again, with pauses, until it is
 * stopped. */
#ifndef HF_BASE_WORKER_H
#define HF_BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Embedded in the struct that it works for. All zero: not started. */
struct hf_worker {
    /* private */
    pthread_t thread;
    pthread_mutex_t lock; /* of `stopping` */
    pthread_cond_t wake;
    bool started, stopping;
    int64_t (*step)(void *arg);
    void *arg;
};

/* hf_worker_start: call step(arg) on a new thread, again and again. The step returns how many
 * nanoseconds to pause before the next one; 0 is allowed. False: the thread could not be started,
 * and there is nothing to stop. */
bool hf_worker_start(struct hf_worker *worker, int64_t (*step)(void *arg), void *arg);
/* End the pause, or wait for the end of the running step, and end the thread. Does nothing if the
 * worker is not started or already stopped. Must not be called from a step. */
void hf_worker_stop(struct hf_worker *worker);

#endif
