#include "net/loop.h"

#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

static _Thread_local const struct hf_loop *this_loop;

/* ---- The loop ---- */

static void woken(struct hf_source *wake, uint32_t events)
{
    uint64_t count;
    (void)events;
    (void)!read(wake->fd, &count, sizeof count);
}

bool hf_loop_open(struct hf_loop *loop)
{
    loop->now_ms = 0;
    loop->ready = 0;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = (struct hf_source){ .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .ready = woken };
    if (loop->epoll >= 0 && loop->wake.fd >= 0 && hf_loop_watch(loop, &loop->wake, EPOLLIN))
        return true;
    hf_loop_close(loop);
    return false;
}

void hf_loop_close(struct hf_loop *loop)
{
    if (loop->epoll >= 0)
        close(loop->epoll);
    if (loop->wake.fd >= 0)
        close(loop->wake.fd);
}

void hf_loop_begin(struct hf_loop *loop)
{
    this_loop = loop;
    hf_loop_tick(loop);
}

bool hf_loop_is_here(const struct hf_loop *loop)
{
    return this_loop == loop;
}

void hf_loop_tick(struct hf_loop *loop)
{
    loop->now_ms = hf_clock_monotonic_ms();
}

void hf_loop_wait(struct hf_loop *loop, int ms)
{
    int n = epoll_wait(loop->epoll, loop->events, HF_LOOP_EVENTS, ms);
    loop->ready = n > 0 ? n : 0;
    hf_loop_tick(loop);
}

void hf_loop_dispatch(struct hf_loop *loop)
{
    for (int i = 0; i < loop->ready; i++) {
        struct hf_source *source = loop->events[i].data.ptr;
        source->ready(source, loop->events[i].events);
    }
    loop->ready = 0;
}

void hf_loop_wake(struct hf_loop *loop)
{
    uint64_t one = 1;
    while (write(loop->wake.fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

bool hf_loop_watch(struct hf_loop *loop, struct hf_source *source, uint32_t events)
{
    struct epoll_event ev = { .events = events, .data.ptr = source };
    if (source->watched && events == source->events)
        return true;
    if (epoll_ctl(loop->epoll, source->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, source->fd, &ev) !=
        0)
        return false;
    source->watched = true;
    source->events = events;
    return true;
}

void hf_loop_unwatch(struct hf_loop *loop, struct hf_source *source)
{
    if (source->watched && epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL) == 0)
        source->watched = false;
}

/* ---- Posting ---- */

void hf_inbox_open(struct hf_inbox *inbox, struct hf_loop *loop)
{
    inbox->loop = loop;
    inbox->here = NULL;
    inbox->here_end = &inbox->here;
    atomic_init(&inbox->elsewhere, NULL);
}

void hf_inbox_put(struct hf_inbox *inbox, struct hf_task *task)
{
    if (hf_loop_is_here(inbox->loop)) {
        task->next = NULL;
        *inbox->here_end = task;
        inbox->here_end = &task->next;
        return;
    }
    struct hf_task *top = atomic_load_explicit(&inbox->elsewhere, memory_order_relaxed);
    do
        task->next = top;
    while (!atomic_compare_exchange_weak_explicit(&inbox->elsewhere, &top, task,
                                                  memory_order_release, memory_order_relaxed));
    if (!top) /* otherwise an earlier task has woken the loop */
        hf_loop_wake(inbox->loop);
}

struct hf_task *hf_inbox_take(struct hf_inbox *inbox)
{
    *inbox->here_end = atomic_exchange_explicit(&inbox->elsewhere, NULL, memory_order_acquire);
    struct hf_task *all = inbox->here;
    inbox->here = NULL;
    inbox->here_end = &inbox->here;
    return all;
}
