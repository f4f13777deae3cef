#include "base/bug.h"
#include "http/inner.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { ACCEPTS = 64, FREE_MAX = 1024, STOP_IDLE_MS = 500, TICK_MS = 200 };
/* How often a connection is read before it is called late: enough for a head or a body of 1 MiB that has come. */
enum { LAST_READS = 32 };

/* ---- Exchanges ---- */

struct hf_http_exchange *hf_http_exchange_new(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    struct hf_http_exchange *x = t->free;
    if (x) {
        t->free = x->next;
        t->free_count--;
    } else {
        size_t own = (sizeof *x + 63) / 64 * 64;
        x = calloc(1, own + t->server->options.handler.own_size);
        if (!x)
            return NULL;
        x->own = (char *)x + own;
    }
    x->thread = t;
    x->conn = conn;
    x->next = NULL;
    x->group = NULL;
    x->refusal.status = 0;
    x->done = x->last = x->wants_continue = x->has_body = false;
    x->alone = x->hang_up = x->in_turn = x->waits = false;
    x->gone = false;
    x->answer_max = x->answer_size = x->took = 0;
    x->body = hf_mem(NULL, 0);
    x->head.method = HF_HTTP_OTHER;
    t->live++;
    atomic_store_explicit(&t->in_flight, t->live, memory_order_relaxed);
    return x;
}

void hf_http_exchange_free(struct hf_http_exchange *x)
{
    struct hf_http_thread *t = x->thread;
    const struct hf_http_handler *handler = &t->server->options.handler;
    handler->release(handler->arg, x);
    t->request_bytes -= x->counted;
    if (x->group && x->counted > 0)
        atomic_fetch_sub_explicit(&x->group->request_bytes, x->counted, memory_order_relaxed);
    x->counted = 0;
    hf_http_due(x, 0);
    hf_buffer_free(&x->input);
    hf_arena_reset(&x->arena);
    t->live--;
    atomic_store_explicit(&t->in_flight, t->live, memory_order_relaxed);
    if (t->free_count >= FREE_MAX) {
        hf_arena_free(&x->arena);
        free(x);
        return;
    }
    x->next = t->free;
    t->free = x;
    t->free_count++;
}

void hf_http_done(struct hf_http_exchange *x)
{
    hf_inbox_put(&x->thread->done, &x->task);
}

/* Let the connections of what is done be looked at. */
static void settle(struct hf_http_thread *t)
{
    struct hf_task *next;
    for (struct hf_task *task = hf_inbox_take(&t->done); task; task = next) {
        struct hf_http_exchange *x = HF_OWNER(struct hf_http_exchange, task, task);
        next = task->next;
        x->done = true;
        hf_http_due(x, 0);
        if (x->conn) {
            x->conn->answers += x->answer_size;
            hf_http_mark(x->conn);
        } else {
            hf_http_exchange_free(x);
        }
    }
}

/* ---- Timers ---- */

static void timer_set(struct hf_http_conn *conn, enum hf_http_timer timer)
{
    struct hf_http_thread *t = conn->thread;
    conn->timer = timer;
    if (timer == HF_HTTP_TIMER_NONE)
        hf_timer_clear(&conn->patience);
    else
        hf_timer_set(&conn->patience, &t->timers[timer], t->loop.now_ms);
}

/* What the connection waits for now. */
static enum hf_http_timer timer_due(const struct hf_http_conn *conn)
{
    if (conn->timer == HF_HTTP_TIMER_LINGER)
        return HF_HTTP_TIMER_LINGER;
    if (hf_http_output_waits(conn))
        return HF_HTTP_TIMER_WRITE;
    if (conn->held)
        return HF_HTTP_TIMER_NONE;
    if (conn->building)
        return conn->pending ? HF_HTTP_TIMER_NONE : HF_HTTP_TIMER_BODY;
    if (conn->pending)
        return HF_HTTP_TIMER_NONE;
    return conn->in.size ? HF_HTTP_TIMER_HEAD : HF_HTTP_TIMER_IDLE;
}

/* Is the client late, and not we? What it sent or took in time may not have been looked at yet: this thread may have
 * stood still, or have more connections than it looks at in one round. */
static bool is_late(struct hf_http_conn *conn)
{
    if (conn->timer == HF_HTTP_TIMER_LINGER)
        return true;
    if (conn->timer == HF_HTTP_TIMER_WRITE) {
        hf_http_output(conn);
        return !conn->sent && hf_http_output_waits(conn);
    }
    const struct hf_http_thread *t = conn->thread;
    hf_http_input_again(conn);
    for (int i = 0; i < LAST_READS && !conn->began && !conn->closing && !conn->broken; i++) {
        uint64_t before = t->bytes_in;
        hf_http_input(conn);
        if (t->bytes_in == before)
            break;
    }
    return !conn->began && timer_due(conn) == conn->timer;
}

static void timed_out(struct hf_http_conn *conn)
{
    static const struct hf_http_refusal late = {
        408, "request-timeout",
        "The request did not arrive in time, so it was not acted upon. Send it "
        "again, in one go."
    };
    hf_http_count(&conn->thread->timeouts, 1);
    if (conn->timer == HF_HTTP_TIMER_HEAD || conn->timer == HF_HTTP_TIMER_BODY)
        hf_http_turn_down(conn, &late);
    else
        conn->broken = true;
    hf_http_mark(conn);
}

/* A client that takes a byte of its file now and then is never idle, and the file has a time all the same: it takes a
 * descriptor and room on disk. Its connection waits to write for as long as there is something left. */
static void files_run(struct hf_http_thread *t)
{
    const struct hf_http_handler *handler = &t->server->options.handler;
    struct hf_timer *timer = t->server->files > 0 ? t->timers[HF_HTTP_TIMER_WRITE].oldest : NULL;
    for (; timer; timer = timer->newer) {
        struct hf_http_conn *conn = hf_http_conn_of(timer);
        if (!hf_http_file_late(conn) || conn->broken)
            continue;
        handler->cut(handler->arg, &(struct hf_http_cut){ .group = conn->group,
                                                          .sent = conn->file_at,
                                                          .size = conn->file_at + conn->file_left });
        hf_http_count(&t->timeouts, 1);
        conn->broken = true;
        hf_http_mark(conn);
    }
}

static void timers_run(struct hf_http_thread *t)
{
    hf_http_unknown_run(t);
    files_run(t);
    for (int i = HF_HTTP_TIMER_HEAD; i < HF_HTTP_TIMER_COUNT; i++) {
        struct hf_timer *due;
        while ((due = hf_timer_take(&t->timers[i], t->loop.now_ms))) {
            struct hf_http_conn *conn = hf_http_conn_of(due);
            if (is_late(conn)) {
                timed_out(conn);
                conn->timer = HF_HTTP_TIMER_NONE;
            } else {
                hf_http_mark(conn); /* its timer is set anew with that */
            }
        }
    }
}

/* ---- Connections ---- */

static void let_go(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    if (!conn->held)
        return;
    if (conn->held_earlier)
        conn->held_earlier->held_later = conn->held_later;
    else
        t->held_oldest = conn->held_later;
    if (conn->held_later)
        conn->held_later->held_earlier = conn->held_earlier;
    else
        t->held_newest = conn->held_earlier;
    conn->held = false;
}

void hf_http_mark(struct hf_http_conn *conn)
{
    if (conn->dirty)
        return;
    conn->dirty = true;
    conn->next_dirty = conn->thread->dirty;
    conn->thread->dirty = conn;
}

static void conn_unlink(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    if (conn->prev_conn)
        conn->prev_conn->next_conn = conn->next_conn;
    else
        t->conns = conn->next_conn;
    if (conn->next_conn)
        conn->next_conn->prev_conn = conn->prev_conn;
}

void hf_http_drop(struct hf_http_conn *conn)
{
    hf_http_input_free(conn);
    while (conn->first) {
        struct hf_http_exchange *x = conn->first;
        conn->first = x->next;
        x->conn = NULL; /* whoever works on it says done some day, and nobody is told */
        x->gone = true;
        if (x->done || x->waits) /* nobody works on one that waits for its turn */
            hf_http_exchange_free(x);
    }
    hf_timer_clear(&conn->patience);
    let_go(conn);
    conn_unlink(conn);
    hf_buffer_free(&conn->out);
    conn->answers = 0;
    hf_http_tally(conn);
    hf_http_file_close(conn);
    hf_stream_close(&conn->stream);
    hf_http_unknown_remove(conn);
    if (conn->group) {
        atomic_fetch_sub(&conn->group->connections, 1);
        atomic_fetch_sub(&conn->thread->server->joined, 1);
    }
    atomic_fetch_sub(&conn->thread->server->connections, 1);
    free(conn);
}

static void listen_again(struct hf_http_thread *t)
{
    (void)hf_loop_watch(&t->loop, &t->listener, EPOLLIN | EPOLLEXCLUSIVE); /* else at the next tick */
}

static void on_event(struct hf_source *source, uint32_t events)
{
    struct hf_http_conn *conn = HF_OWNER(struct hf_http_conn, source, source);
    hf_http_mark(conn);
    if (events & (EPOLLHUP | EPOLLERR))
        conn->broken = true;
    else if (events & EPOLLIN || conn->stream.read_wants_write)
        hf_http_input(conn);
}

/* Take a socket in. False without memory or descriptors. */
static bool conn_open(struct hf_http_thread *t, int fd)
{
    struct hf_http_conn *conn = calloc(1, sizeof *conn);
    if (!conn)
        return false;
    conn->thread = t;
    conn->stream.fd = fd;
    conn->file = -1;
    conn->end = &conn->first;
    pthread_mutex_lock(&t->server->lock);
    struct hf_tls *tls = hf_tls_keep(t->server->tls);
    pthread_mutex_unlock(&t->server->lock);
    if (tls)
        conn->stream.tls = hf_tls_accept(tls, fd);
    hf_tls_drop(tls);
    conn->source = (struct hf_source){ .fd = fd, .ready = on_event };
    if ((tls && !conn->stream.tls) || !hf_loop_watch(&t->loop, &conn->source, EPOLLIN)) {
        hf_tls_close(conn->stream.tls);
        free(conn);
        return false;
    }
    conn->next_conn = t->conns;
    if (t->conns)
        t->conns->prev_conn = conn;
    t->conns = conn;
    hf_http_unknown_add(conn);
    timer_set(conn, HF_HTTP_TIMER_IDLE);
    return true;
}

enum room { ROOM_FREE, ROOM_MADE, ROOM_NONE };

/* Is there room for one more? It is made by closing one that nobody has said who it is, if there is such a one. The place
 * that it takes is free when the round ends, so no more are let in before. */
static enum room room_for_one(struct hf_http_thread *t, unsigned before)
{
    const struct hf_http_server *s = t->server;
    if (before + s->files < s->options.limits.connections_max && hf_http_unknown_fits(t))
        return ROOM_FREE;
    return hf_http_unknown_shed(t) ? ROOM_MADE : ROOM_NONE;
}

/* Let in who waits. True if there may be more of them. */
static bool accept_some(struct hf_http_thread *t)
{
    static const struct hf_http_refusal full = {
        503, "too-many-connections",
        "This server has as many connections as it takes. Close some, or try again in a moment."
    };
    struct hf_http_server *s = t->server;
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = hf_socket_accept(s->listener);
        if (fd < 0) {
            /* Out of descriptors or memory: what waits in the backlog is taken at the next tick. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                (void)hf_http_unknown_shed(t);
                hf_loop_unwatch(&t->loop, &t->listener);
            }
            return false;
        }
        enum room room = room_for_one(t, atomic_fetch_add(&s->connections, 1));
        if (room == ROOM_NONE) {
            if (!s->options.tls)
                hf_http_turn_away(t, fd, &full);
            atomic_fetch_sub(&s->connections, 1);
            s->refused_connections++;
            close(fd);
        } else if (!conn_open(t, fd)) {
            atomic_fetch_sub(&s->connections, 1);
            s->refused_connections++;
            close(fd);
        } else {
            s->accepted++;
        }
        if (room == ROOM_MADE)
            return true;
    }
    return true;
}

void hf_http_accept(struct hf_source *listener, uint32_t events)
{
    (void)events;
    (void)accept_some(HF_OWNER(struct hf_http_thread, listener, listener));
}

/* ---- Rounds ---- */

/* Tell epoll what the connection waits for, if that changed. */
static void watch(struct hf_http_conn *conn)
{
    bool reads = conn->timer == HF_HTTP_TIMER_LINGER || hf_http_may_read(conn);
    uint32_t events = (reads ? EPOLLIN : 0U) |
                      (hf_http_output_waits(conn) || conn->stream.read_wants_write ? EPOLLOUT : 0U);
    if (hf_loop_watch(&conn->thread->loop, &conn->source, events))
        return;
    conn->broken = true; /* nobody would say when it can go on */
    hf_http_mark(conn);
}

/* All is sent and nothing more is taken: say so, and wait for the client to close too. Closing at once while its bytes
 * arrive would reset the connection, and the answer would be lost with it. */
static void wind_up(struct hf_http_conn *conn)
{
    if (conn->ended || conn->timer == HF_HTTP_TIMER_LINGER) {
        conn->broken |= conn->ended;
        return;
    }
    if (!hf_stream_finish(&conn->stream))
        conn->broken = true;
    timer_set(conn, HF_HTTP_TIMER_LINGER);
}

/* What is left of a connection that has had its share is looked at in the next round. */
static void hold_back(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    bool more = conn->in.size > 0 || hf_stream_pending(&conn->stream);
    if (conn->held || !more || !hf_http_share_used(conn))
        return;
    conn->held = true;
    conn->held_later = NULL;
    conn->held_earlier = t->held_newest;
    if (t->held_newest)
        t->held_newest->held_later = conn;
    else
        t->held_oldest = conn;
    t->held_newest = conn;
}

static void tend(struct hf_http_conn *conn)
{
    hf_http_output(conn);
    if (!conn->broken)
        hf_http_input_again(conn);
    if (conn->first && conn->first->done)
        hf_http_output(conn);
    if (!conn->broken && conn->closing && !conn->first && !hf_http_output_waits(conn))
        wind_up(conn);
    if (conn->broken) {
        if (!conn->dirty) /* marked again meanwhile: then it stands in the list, and its turn comes */
            hf_http_drop(conn);
        return;
    }
    hold_back(conn);
    enum hf_http_timer timer = timer_due(conn);
    /* Only what was answered or taken counts: bytes of a TLS record that never ends do not. */
    if (timer != conn->timer || conn->began || !conn->patience.queue ||
        (conn->sent && (timer == HF_HTTP_TIMER_IDLE || timer == HF_HTTP_TIMER_WRITE)))
        timer_set(conn, timer);
    conn->sent = conn->began = false;
    hf_http_tally(conn);
    watch(conn);
}

static void tend_all(struct hf_http_thread *t)
{
    struct hf_http_conn *conn = t->dirty;
    t->dirty = NULL;
    while (conn) {
        struct hf_http_conn *next = conn->next_dirty;
        conn->dirty = false;
        tend(conn);
        conn = next;
    }
}

/* Of those that wait to write, one of the group that has most to send. */
static struct hf_http_group *group_with_most(const struct hf_http_thread *t)
{
    struct hf_http_group *most = NULL;
    for (struct hf_timer *timer = t->timers[HF_HTTP_TIMER_WRITE].oldest; timer; timer = timer->newer) {
        struct hf_http_group *group = hf_http_conn_of(timer)->counted_in;
        if (group && (!most || group->out_bytes > most->out_bytes))
            most = group;
    }
    return most;
}

/* Close who has not taken any of its answers for the longest time, until the others fit. Answers how many bytes are left. */
static uint64_t shed_of(struct hf_http_thread *t, uint64_t left, const struct hf_http_group *group)
{
    uint64_t max = t->server->options.limits.memory_max;
    struct hf_timer *timer = t->timers[HF_HTTP_TIMER_WRITE].oldest;
    for (; timer && left > max; timer = timer->newer) {
        struct hf_http_conn *conn = hf_http_conn_of(timer);
        if (conn->broken || (group && conn->counted_in != group))
            continue;
        left -= conn->out_counted;
        conn->broken = true;
        hf_http_count(&t->timeouts, 1);
        hf_http_mark(conn);
    }
    return left;
}

/* Answers that nobody takes add up to too much. The group that has most of them gives way: a tenant that reads nothing costs
 * no other tenant its answers. */
static void shed(struct hf_http_thread *t)
{
    uint64_t max = t->server->options.limits.memory_max;
    if (t->out_bytes <= max)
        return;
    uint64_t left = shed_of(t, t->out_bytes, HF_BUG(server_sheds_any) ? NULL : group_with_most(t));
    if (left > max)
        (void)shed_of(t, left, NULL);
}

/* The server is to stop: nothing new. What has come in by now is still taken, what is idle is told that this is the end
 * and has a moment to see it. */
static void stop_step(struct hf_http_thread *t)
{
    bool first = t->stopping_since_ms == 0;
    if (first)
        t->stopping_since_ms = t->loop.now_ms;
    for (int left = HF_HTTP_BACKLOG; first && left > 0 && accept_some(t); left -= ACCEPTS)
        ; /* who connected before the stop may have sent a request too */
    hf_loop_unwatch(&t->loop, &t->listener);
    bool patience = t->loop.now_ms < t->server->stop_at_ms;
    bool moment = t->loop.now_ms - t->stopping_since_ms < STOP_IDLE_MS;
    for (struct hf_http_conn *conn = t->conns; conn; conn = conn->next_conn) {
        if (first && !conn->closing && !conn->broken) {
            hf_http_input_again(conn); /* it may have been held back */
            hf_http_input(conn);
        }
        if (!conn->closing)
            hf_http_input_free(conn);
        conn->closing = true;
        if (!patience || (!moment && !conn->first && !hf_http_output_waits(conn)))
            conn->broken = true;
        hf_http_mark(conn);
    }
}

static void round_of(struct hf_http_thread *t)
{
    const struct hf_http_handler *handler = &t->server->options.handler;
    do {
        t->handed_over = false;
        handler->round(handler->arg, t);
        hf_loop_tick(&t->loop); /* what the disk took is not the clients' time */
        settle(t);
        tend_all(t);
        shed(t);
        /* What was pipelined behind an answer may have been handed over just now. */
    } while (t->handed_over || t->done.here || t->dirty);
}

/* A new round: those that were held back come before those that have something new, the one that waits longest first. Where
 * their group has had its share again, they stay in their places. */
static void go_on(struct hf_http_thread *t)
{
    struct hf_http_conn *later;
    for (struct hf_http_conn *conn = t->held_oldest; conn; conn = later) {
        later = conn->held_later;
        if (hf_http_share_used(conn))
            continue;
        let_go(conn);
        hf_http_mark(conn);
        hf_http_input_again(conn);
    }
}

/* How long to wait for events. What was held back is looked at again at once, unless it waits for answers that others
 * make: they say when they are done. */
static int patience_ms(const struct hf_http_thread *t)
{
    if (!t->held_oldest)
        return TICK_MS;
    return hf_http_due_full(t->held_oldest) ? 1 : 0;
}

void *hf_http_loop(void *arg)
{
    struct hf_http_thread *t = arg;
    hf_loop_begin(&t->loop);
    listen_again(t);
    int64_t tick_ms = t->loop.now_ms;
    for (;;) {
        hf_loop_wait(&t->loop, patience_ms(t));
        t->round++;
        go_on(t);
        hf_loop_dispatch(&t->loop);
        if (t->loop.now_ms - tick_ms >= TICK_MS) {
            tick_ms = t->loop.now_ms;
            timers_run(t);
            if (!t->server->stopping)
                listen_again(t);
        }
        bool stopping = t->server->stopping;
        if (stopping)
            stop_step(t);
        round_of(t);
        if (stopping && !t->conns && (t->live == 0 || t->loop.now_ms >= t->server->stop_at_ms))
            return NULL; /* what is still being worked on then has nobody who waits for it */
    }
}
