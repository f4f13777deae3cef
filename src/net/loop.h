/* loop.h: the event loop of one I/O thread.
 *
 *      hf_loop_begin ─▶ hf_loop_wait ─▶ hf_loop_dispatch ─▶ hf_inbox_take ─┐
 *                            ▲                                             │
 *                            └─────────────────────────────────────────────┘
 *
 * The thread calls these steps itself, so that it can do other work between them. A loop belongs to
 * its thread: other threads may only call hf_loop_wake and hf_inbox_put. The time of a turn is
 * `now_ms`: everything in one turn happens at the same time. */
#ifndef HF_NET_LOOP_H
#define HF_NET_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* A descriptor that the loop watches, embedded in its owner (base/owner.h). */
struct hf_source {
    int fd; /* borrowed */
    /* Called by hf_loop_dispatch. events: the EPOLLIN and other flags that have happened. */
    void (*ready)(struct hf_source *source, uint32_t events);
    bool watched;    /* private: it is in the epoll */
    uint32_t events; /* private: the events that epoll watches */
};

enum { HF_LOOP_EVENTS = 256 };

struct hf_loop {
    int64_t now_ms; /* monotonic clock */
    /* private */
    int epoll;
    struct hf_source wake; /* an eventfd */
    int ready;             /* the number of undispatched `events` */
    struct epoll_event events[HF_LOOP_EVENTS];
};

/* loop: out, owned, free with hf_loop_close. False: out of descriptors; nothing to free. */
bool hf_loop_open(struct hf_loop *loop);
void hf_loop_close(struct hf_loop *loop);

/* The calling thread runs the loop from now on. */
void hf_loop_begin(struct hf_loop *loop);
/* Is the calling thread the one that runs it? */
bool hf_loop_is_here(const struct hf_loop *loop);

/* Wait until a source is ready, the loop is woken, or `ms` have passed, and read the clock. Call
 * hf_loop_dispatch for the ready sources. */
void hf_loop_wait(struct hf_loop *loop, int ms);
/* Call `ready` of each ready source. During that, no watched source may be freed except the one
 * whose `ready` is running. */
void hf_loop_dispatch(struct hf_loop *loop);
/* Read the clock again, after long work. */
void hf_loop_tick(struct hf_loop *loop);
/* End the current wait of the loop, or the next one. Thread-safe. */
void hf_loop_wake(struct hf_loop *loop);

/* hf_loop_watch: call `ready` for these events and no others; always for EPOLLHUP and EPOLLERR.
 * Makes a system call only if the events change. source: borrowed; at first all zero except fd and
 * ready. Closing its descriptor ends the watch too. False: the system refused, and nothing has
 * changed. */
bool hf_loop_watch(struct hf_loop *loop, struct hf_source *source, uint32_t events);
/* Stop watching; does nothing if it is not watched. */
void hf_loop_unwatch(struct hf_loop *loop, struct hf_source *source);

/* ---- Posting ---- */

/* A task for the loop's thread, embedded in its object. The owner of the inbox knows the type of
 * that object. */
struct hf_task {
    struct hf_task *next;
};

struct hf_inbox {
    struct hf_loop *loop;
    struct hf_task *here, **here_end;    /* from the loop's thread, oldest first */
    _Atomic(struct hf_task *) elsewhere; /* from other threads, newest first */
};

/* inbox: out, empty; needs no freeing. loop: borrowed. */
void hf_inbox_open(struct hf_inbox *inbox, struct hf_loop *loop);
/* Add a task, and wake the loop if needed. Thread-safe; never blocks. task: borrowed until it is
 * taken, and in no other inbox. */
void hf_inbox_put(struct hf_inbox *inbox, struct hf_task *task);
/* Take all tasks, as a list by `next`: first those of the loop's thread, in order, then those of
 * other threads, in any order. NULL: none. */
struct hf_task *hf_inbox_take(struct hf_inbox *inbox);

#endif
