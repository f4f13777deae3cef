/* The driver: N connections on one epoll thread.
 *
 * Closed loop: a connection sends its next call as soon as the last one is answered. Fixed rate:
 * calls are due at even distances, whichever connection is free takes the next, and a call's time
 * runs from the moment it was due, so that a server that stalls is charged for everybody who had to
 * wait. */
#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum phase { WARM, MEASURE, DRAIN };

struct drive {
    const struct hf_load_options *o;
    struct hf_load_result *out;
    struct hf_load_conn *conns; /* owned */
    unsigned *idle;             /* owned: a stack of connections without a call */
    unsigned idle_count, busy;
    int set;
    enum phase phase;
    uint64_t phase_ends_ns, measured_from_ns, heard_ns;
    uint64_t next, last; /* numbers of fresh requests; last: where a counted run ends */
    uint64_t due_ns;     /* fixed rate: when the next call is due */
    uint64_t interval_ns;
    uint64_t seed;
    double client_cpu, server_cpu, machine_cpu; /* when measuring began */
    uint64_t numbers[HF_LOAD_GROUP_MAX];
};

static bool refuse(const struct drive *d, const char *what)
{
    fprintf(stderr, "hf_load: %s: %s\n", d->o->peer->name, what);
    return false;
}

static double own_cpu(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double server_cpu(const struct drive *d)
{
    struct hf_load_usage u = { 0 };
    return hf_load_usage_cpu(d->o, &u) ? u.cpu_seconds : 0;
}

/* ---- Phases ---- */

static void measure_begin(struct drive *d, uint64_t now)
{
    d->phase = MEASURE;
    d->measured_from_ns = now;
    d->phase_ends_ns = d->o->count ? UINT64_MAX : now + (uint64_t)(d->o->seconds * 1e9);
    d->client_cpu = own_cpu();
    d->server_cpu = server_cpu(d);
    d->machine_cpu = hf_load_machine_cpu();
}

static void measure_end(struct drive *d, uint64_t now)
{
    d->phase = DRAIN;
    d->out->seconds = (double)(now - d->measured_from_ns) / 1e9;
    d->out->client_cpu = own_cpu() - d->client_cpu;
    d->out->server_cpu = server_cpu(d) - d->server_cpu;
    d->out->machine_cpu = hf_load_machine_cpu() - d->machine_cpu;
}

static void phase_step(struct drive *d, uint64_t now)
{
    if (d->phase == WARM && now >= d->phase_ends_ns)
        measure_begin(d, now);
    else if (d->phase == MEASURE && now >= d->phase_ends_ns)
        measure_end(d, now);
}

/* ---- Calls ---- */

static unsigned numbers_take(struct drive *d)
{
    unsigned count = 0;
    for (; count < d->o->group; count++) {
        if (d->o->job == HF_LOAD_REPLAY || d->o->job == HF_LOAD_SELECT)
            d->numbers[count] = hf_load_random(&d->seed, d->o->loaded);
        else if (d->next < d->last)
            d->numbers[count] = d->next++;
        else
            break;
    }
    return count;
}

static bool watch(struct drive *d, unsigned index)
{
    struct hf_load_conn *c = &d->conns[index];
    if (c->writing == c->watched_write)
        return true;
    struct epoll_event e = { .events = EPOLLIN | (c->writing ? EPOLLOUT : 0U), .data.u32 = index };
    c->watched_write = c->writing;
    return epoll_ctl(d->set, EPOLL_CTL_MOD, c->fd, &e) == 0 || refuse(d, strerror(errno));
}

/* Let a connection without a call send one, if there is anything to ask. */
static bool call(struct drive *d, unsigned index, uint64_t started_ns)
{
    struct hf_load_conn *c = &d->conns[index];
    unsigned count = d->phase == DRAIN ? 0 : numbers_take(d);
    if (count == 0) {
        d->idle[d->idle_count++] = index;
        return true;
    }
    c->started_ns = started_ns;
    c->busy = true;
    c->due = count;
    d->busy++;
    return (d->o->peer->send(d->o, c, d->numbers, count) || refuse(d, c->why)) && watch(d, index);
}

static bool answered(struct drive *d, unsigned index)
{
    uint64_t now = hf_load_now();
    d->busy--;
    d->heard_ns = now;
    phase_step(d, now);
    if (d->phase == MEASURE)
        hf_load_histogram_add(&d->out->calls, now - d->conns[index].started_ns);
    if (d->o->rate > 0) {
        d->idle[d->idle_count++] = index;
        return true;
    }
    return call(d, index, now);
}

static bool event(struct drive *d, const struct epoll_event *e)
{
    unsigned index = e->data.u32;
    struct hf_load_conn *c = &d->conns[index];
    struct hf_load_tally *t = &d->out->tally;
    if (e->events & EPOLLOUT) {
        if (!d->o->peer->flush(c))
            return refuse(d, c->why);
        if (!watch(d, index))
            return false;
    }
    if (!(e->events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return true;
    bool was_busy = c->busy;
    uint64_t before = t->right + t->wrong;
    if (!d->o->peer->receive(d->o, c, t))
        return refuse(d, c->why);
    if (d->phase == MEASURE)
        d->out->requests += t->right + t->wrong - before;
    return !was_busy || c->busy || answered(d, index);
}

/* Fixed rate: send every call that is due, as far as connections are free. */
static bool calls_due(struct drive *d, uint64_t now)
{
    while (d->idle_count > 0 && d->phase != DRAIN && d->due_ns <= now) {
        uint64_t due = d->due_ns;
        d->due_ns += d->interval_ns;
        if (!call(d, d->idle[--d->idle_count], due))
            return false;
    }
    return true;
}

/* ---- The loop ---- */

static uint64_t wake_ns(const struct drive *d, uint64_t now)
{
    uint64_t at = now + 1000000000;
    if (d->phase != DRAIN && d->phase_ends_ns < at)
        at = d->phase_ends_ns;
    if (d->phase != DRAIN && d->interval_ns && d->idle_count > 0 && d->due_ns < at)
        at = d->due_ns;
    return at > now ? at - now : 0;
}

static bool loop(struct drive *d)
{
    enum { EVENTS = 256 };
    const uint64_t silence_ns = UINT64_C(30000000000);
    struct epoll_event events[EVENTS];
    for (;;) {
        uint64_t now = hf_load_now();
        phase_step(d, now);
        if (d->phase == MEASURE && d->o->count && d->busy == 0 && d->next == d->last)
            measure_end(d, now);
        if (d->interval_ns && !calls_due(d, now))
            return false;
        if (d->phase == DRAIN && d->busy == 0)
            return true;
        if (d->busy > 0 && now - d->heard_ns > silence_ns)
            return refuse(d, "no answer for 30 s");
        if (d->busy == 0)
            d->heard_ns = now;
        uint64_t wait = wake_ns(d, now);
        const struct timespec t = { .tv_sec = (time_t)(wait / 1000000000),
                                    .tv_nsec = (long)(wait % 1000000000) };
        int n = epoll_pwait2(d->set, events, EVENTS, &t, NULL);
        if (n < 0 && errno != EINTR)
            return refuse(d, strerror(errno));
        for (int i = 0; i < n; i++)
            if (!event(d, &events[i]))
                return false;
    }
}

static bool connect_all(struct drive *d)
{
    for (unsigned i = 0; i < d->o->connections; i++) {
        struct hf_load_conn *c = &d->conns[i];
        struct epoll_event e = { .events = EPOLLIN, .data.u32 = i };
        c->server = i % d->o->server_count;
        if (!d->o->peer->connect(d->o, c))
            return refuse(d, c->why);
        if (epoll_ctl(d->set, EPOLL_CTL_ADD, c->fd, &e) != 0)
            return refuse(d, strerror(errno));
    }
    return true;
}

static bool begin(struct drive *d)
{
    /* The kernel may round a sleep up by 50 us for this thread unless it is told not to. */
    (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    uint64_t now = hf_load_now();
    d->heard_ns = d->due_ns = now;
    d->interval_ns = d->o->rate > 0 ? (uint64_t)(1e9 / d->o->rate) : 0;
    d->phase = WARM;
    d->phase_ends_ns = now + (uint64_t)(d->o->warm * 1e9);
    if (d->o->count || d->o->warm <= 0)
        measure_begin(d, now);
    for (unsigned i = 0; i < d->o->connections; i++) {
        if (d->interval_ns)
            d->idle[d->idle_count++] = i;
        else if (!call(d, i, now))
            return false;
    }
    return true;
}

bool hf_load_drive(const struct hf_load_options *o, struct hf_load_result *out)
{
    struct drive *d = calloc(1, sizeof *d);
    bool done = false;
    if (!d)
        return false;
    *d = (struct drive){ .o = o, .out = out, .next = o->first, .last = UINT64_MAX };
    d->seed = o->first * 31 + o->connections;
    if (o->count)
        d->last = o->first + o->count;
    d->set = epoll_create1(EPOLL_CLOEXEC);
    d->conns = calloc(o->connections, sizeof *d->conns);
    d->idle = calloc(o->connections, sizeof *d->idle);
    for (unsigned i = 0; d->conns && i < o->connections; i++)
        d->conns[i].fd = -1;
    if (d->set < 0 || !d->conns || !d->idle)
        refuse(d, "memory");
    else
        done = connect_all(d) && begin(d) && loop(d);
    out->next = d->next;
    for (unsigned i = 0; d->conns && i < o->connections; i++)
        o->peer->close(&d->conns[i]);
    free(d->conns);
    free(d->idle);
    free(d);
    return done;
}
