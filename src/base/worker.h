/* worker.h: a thread that makes one step after another, with a pause between them, until it is
 * stopped. */
#ifndef HF_BASE_WORKER_H
#define HF_BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Embedded in what it works for. All zero: not started. */
struct hf_worker {
    /* private */
    pthread_t thread;
    pthread_mutex_t lock; /* of `stopping` */
    pthread_cond_t wake;
    bool started, stopping;
    int64_t (*step)(void *arg);
    void *arg;
};

/* hf_worker_start: call step(arg) on a new thread, again and again. It answers how many
 * nanoseconds to pause before the next step, which may be 0. False: the system gives no thread;
 * there is nothing to stop. */
bool hf_worker_start(struct hf_worker *worker, int64_t (*step)(void *arg), void *arg);
/* End the pause, or wait for the end of the step under way, and end the thread. Nothing if it
 * was not started, or is stopped. Not from within a step. */
void hf_worker_stop(struct hf_worker *worker);

#endif
