#include "net/timer.h"

#include <stddef.h>

void hf_timer_clear(struct hf_timer *t)
{
    struct hf_timer_queue *q = t->queue;
    if (!q)
        return;
    if (t->older)
        t->older->newer = t->newer;
    else
        q->oldest = t->newer;
    if (t->newer)
        t->newer->older = t->older;
    else
        q->newest = t->older;
    t->queue = NULL;
}

void hf_timer_set(struct hf_timer *t, struct hf_timer_queue *q, int64_t now_ms)
{
    hf_timer_clear(t);
    *t = (struct hf_timer){ .queue = q, .due_ms = now_ms + q->duration_ms, .older = q->newest };
    if (q->newest)
        q->newest->newer = t;
    else
        q->oldest = t;
    q->newest = t;
}

struct hf_timer *hf_timer_take(struct hf_timer_queue *q, int64_t now_ms)
{
    struct hf_timer *t = q->oldest;
    if (!t || t->due_ms > now_ms)
        return NULL;
    hf_timer_clear(t);
    return t;
}
