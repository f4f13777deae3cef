#include "base/worker.h"

#include "base/clock.h"

static void *run(void *arg)
{
    struct hf_worker *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stopping) {
        pthread_mutex_unlock(&w->lock);
        int64_t pause_ns = w->step(w->arg), until_ns = hf_clock_monotonic_ns() + pause_ns;
        pthread_mutex_lock(&w->lock);
        while (!w->stopping && hf_clock_wait(&w->wake, &w->lock, until_ns))
            continue;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void forget(struct hf_worker *w)
{
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    w->started = false;
}

bool hf_worker_start(struct hf_worker *w, int64_t (*step)(void *arg), void *arg)
{
    pthread_mutex_init(&w->lock, NULL);
    hf_clock_cond_init(&w->wake);
    w->step = step;
    w->arg = arg;
    w->stopping = false;
    w->started = pthread_create(&w->thread, NULL, run, w) == 0;
    if (w->started)
        return true;
    forget(w);
    return false;
}

void hf_worker_stop(struct hf_worker *w)
{
    if (!w->started)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    forget(w);
}
