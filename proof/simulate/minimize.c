#include "simulate/minimize.h"

#include "base/assert.h"

#include <stdlib.h>

struct attempt {
    const struct sim_minimize *how;
    struct sim_script *best,
        next; /* next: the same without some; has the room of the first script */
    unsigned asked;
    bool ended;
};

/* The steps [from, to) are to be left out. True if the rest still fails: then it is the script from
 * now on. */
static bool without(struct attempt *a, size_t from, size_t to)
{
    struct sim_script *best = a->best, *next = &a->next;
    if (a->how->go_on && !a->how->go_on(a->how->arg)) {
        a->ended = true;
        return false;
    }
    memcpy(next->steps, best->steps, from * sizeof *best->steps);
    memcpy(next->steps + from, best->steps + to, (best->count - to) * sizeof *best->steps);
    next->count = best->count - (to - from);
    next->labels = best->labels;
    a->asked++;
    if (!a->how->fails(a->how->arg, next))
        return false;
    struct sim_script swap = *best;
    *best = *next;
    *next = swap;
    return true;
}

/* Try to leave out each run of `size` steps, from the end on: what comes after the failure is of no
 * use. */
static bool pass(struct attempt *a, size_t size)
{
    bool shorter = false;
    size_t to = a->best->count;
    while (to > 0 && !a->ended) {
        size_t from = to > size ? to - size : 0;
        shorter |= without(a, from, to);
        to = from;
    }
    return shorter;
}

unsigned sim_minimize(struct sim_script *script, const struct sim_minimize *how)
{
    struct attempt a = { .how = how, .best = script };
    size_t room = script->count ? script->count : 1;
    a.next.steps = calloc(room, sizeof *a.next.steps);
    HF_ASSERT(a.next.steps);
    a.next.room = room;
    for (size_t size = script->count / 2; size > 1 && !a.ended; size /= 2)
        pass(&a, size);
    while (!a.ended && pass(&a, 1))
        ;
    sim_script_free(&a.next);
    return a.asked;
}
