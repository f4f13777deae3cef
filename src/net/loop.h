/* loop.h: the event loop of one I/O thread.
 *
 *      hf_loop_begin ─▶ hf_loop_wait ─▶ hf_loop_dispatch ─▶ hf_inbox_take ─┐
 *                            ▲                                             │
 *                            └─────────────────────────────────────────────┘
 *
 * The thread makes these steps itself, so that it decides what else happens in a turn, and where. A
 * loop is its thread's own: other threads may call hf_loop_wake and hf_inbox_put, and nothing else.
 * Every turn has one time, `now_ms`: what happens in it happens at once. */
#ifndef HF_NET_LOOP_H
#define HF_NET_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/* A descriptor that the loop watches, embedded in what it belongs to (base/owner.h). */
struct hf_source {
    int fd; /* borrowed */
    /* Called by hf_loop_dispatch. events: EPOLLIN and the like, those that have happened. */
    void (*ready)(struct hf_source *source, uint32_t events);
    bool watched;    /* private: it is in the epoll */
    uint32_t events; /* private: what epoll is asked for */
};

enum { HF_LOOP_EVENTS = 256 };

struct hf_loop {
    int64_t now_ms; /* of the monotonic clock */
    /* private */
    int epoll;
    struct hf_source wake; /* an eventfd */
    int ready;             /* of `events`, those that were found and not dispatched */
    struct epoll_event events[HF_LOOP_EVENTS];
};

/* loop: out, owned, free with hf_loop_close. False: out of descriptors; there is nothing to
 * free. */
bool hf_loop_open(struct hf_loop *loop);
void hf_loop_close(struct hf_loop *loop);

/* The calling thread runs the loop from now on. */
void hf_loop_begin(struct hf_loop *loop);
/* Is the calling thread the one that runs it? */
bool hf_loop_is_here(const struct hf_loop *loop);

/* Wait until a source is ready, the loop is woken, or `ms` have passed, and read the clock. What is
 * ready waits for hf_loop_dispatch. */
void hf_loop_wait(struct hf_loop *loop, int ms);
/* Call `ready` of each source that was found ready. Meanwhile no watched source but the one
 * called may be freed. */
void hf_loop_dispatch(struct hf_loop *loop);
/* Read the clock again, after something that took long. */
void hf_loop_tick(struct hf_loop *loop);
/* End the wait of the loop, or the next one. From any thread. */
void hf_loop_wake(struct hf_loop *loop);

/* hf_loop_watch: call `ready` when these events happen, and no others any more; EPOLLHUP and
 * EPOLLERR always. A call of the system only if that changes something. source: borrowed, zeros
 * but for fd and ready when it comes first. Closing its descriptor ends the watch too. False:
 * the system refuses, and all is as before. */
bool hf_loop_watch(struct hf_loop *loop, struct hf_source *source, uint32_t events);
/* Watch it no more; nothing if it is not watched. */
void hf_loop_unwatch(struct hf_loop *loop, struct hf_source *source);

/* ---- Posting ---- */

/* Something for the loop's thread to do, embedded in what it is done for. What that is, the
 * owner of the inbox knows. */
struct hf_task {
    struct hf_task *next;
};

struct hf_inbox {
    struct hf_loop *loop;
    struct hf_task *here, **here_end;    /* put in by the loop's thread, oldest first */
    _Atomic(struct hf_task *) elsewhere; /* by others, newest first */
};

/* inbox: out, empty; needs no freeing. loop: borrowed. */
void hf_inbox_open(struct hf_inbox *inbox, struct hf_loop *loop);
/* Put a task in, and wake the loop if that is needed. From any thread; never blocks. task:
 * borrowed until it is taken, and in no other inbox. */
void hf_inbox_put(struct hf_inbox *inbox, struct hf_task *task);
/* Take all out, in a list by `next`: first those of the loop's thread, in order, then those of
 * others, in any. NULL: there are none. */
struct hf_task *hf_inbox_take(struct hf_inbox *inbox);

#endif
