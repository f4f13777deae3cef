/* timer.h: deadlines in queues of equal duration.
 *
 * A timer that is set last is due last, so a queue is always sorted: setting, clearing and taking a
 * due timer take constant time. For one thread; the caller passes the time. */
#ifndef HF_NET_TIMER_H
#define HF_NET_TIMER_H

#include <stdint.h>

/* Embedded in its owner (base/owner.h). All zero: not set. */
struct hf_timer {
    struct hf_timer_queue *queue; /* NULL: not set */
    int64_t due_ms;
    struct hf_timer *newer, *older; /* private */
};

/* All zero except the duration: empty. To iterate, go from `oldest` by `newer`. */
struct hf_timer_queue {
    int64_t duration_ms;
    struct hf_timer *oldest, *newest;
};

/* Set the timer to now plus the queue's duration, also if it was set before. now_ms: not before an
 * earlier call for this queue. */
void hf_timer_set(struct hf_timer *timer, struct hf_timer_queue *queue, int64_t now_ms);
/* Clear the timer; does nothing if it is not set. */
void hf_timer_clear(struct hf_timer *timer);
/* Remove the timer that has been due for the longest time from the queue; NULL: none is due. */
struct hf_timer *hf_timer_take(struct hf_timer_queue *queue, int64_t now_ms);

#endif
