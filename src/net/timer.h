/* timer.h: deadlines in queues of equal duration.
 *
 * Whatever is set last in a queue is due last, so a queue is sorted by itself: setting, clearing
 * and looking for what is due take the same few steps however many timers there are. For one
 * thread; the caller says what time it is. */
#ifndef HF_NET_TIMER_H
#define HF_NET_TIMER_H

#include <stdint.h>

/* Embedded in what it is for (base/owner.h leads back to that). All zero: not set. */
struct hf_timer {
    struct hf_timer_queue *queue; /* NULL: not set */
    int64_t due_ms;
    struct hf_timer *newer, *older; /* private */
};

/* All zero but for the duration: empty. To see all of them, go from `oldest` by `newer`. */
struct hf_timer_queue {
    int64_t duration_ms;
    struct hf_timer *oldest, *newest;
};

/* Due when the queue's duration has passed from now on, whatever it was set to before. now_ms: not
 * before that of an earlier call for this queue. */
void hf_timer_set(struct hf_timer *timer, struct hf_timer_queue *queue, int64_t now_ms);
/* Not due any more; nothing if it is not set. */
void hf_timer_clear(struct hf_timer *timer);
/* Take the timer that is due longest off the queue; NULL: none is due. */
struct hf_timer *hf_timer_take(struct hf_timer_queue *queue, int64_t now_ms);

#endif
