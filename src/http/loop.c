/* The rounds of an I/O thread. */
#include "http/inner.h"

#include <sys/socket.h>

enum { TICK_MS = 200 };

/* Mark the connections of finished exchanges. */
static void settle(struct hf_http_thread *t)
{
    struct hf_task *next;
    for (struct hf_task *task = hf_inbox_take(&t->done); task; task = next) {
        struct hf_http_exchange *x = HF_OWNER(struct hf_http_exchange, task, task);
        next = task->next;
        x->done = true;
        hf_http_due(x, x->answer_size); /* until it is rendered, or until due_no_more */
        if (x->conn) {
            x->conn->answers += x->answer_size;
            hf_http_mark(x->conn);
        } else {
            hf_http_exchange_free(x);
        }
    }
}

/* Update epoll's events if the connection waits for others now. */
static void watch(struct hf_http_conn *conn)
{
    bool reads = conn->timer == HF_HTTP_TIMER_LINGER || hf_http_may_read(conn);
    uint32_t events = (reads ? EPOLLIN : 0U) |
                      (hf_http_output_waits(conn) || conn->stream.read_wants_write ? EPOLLOUT : 0U);
    if (hf_loop_watch(&conn->thread->loop, &conn->source, events))
        return;
    conn->broken = true; /* no event would come for it */
    hf_http_mark(conn);
}

/* All is sent and no more requests are accepted: shut down, and wait until the client closes too.
 * Closing at once while its bytes arrive would reset the connection and lose the answer. */
static void wind_up(struct hf_http_conn *conn)
{
    if (conn->ended || conn->timer == HF_HTTP_TIMER_LINGER) {
        conn->broken |= conn->ended;
        return;
    }
    if (!hf_stream_finish(&conn->stream))
        conn->broken = true;
    hf_http_timer_set(conn, HF_HTTP_TIMER_LINGER);
}

/* The connection has used its share: continue in the next round. */
static void hold_back(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    bool more = conn->in.size > 0 || hf_stream_pending(&conn->stream);
    if (conn->held || !((more && hf_http_share_used(conn)) || hf_http_render_waits(conn)))
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

/* A finished answer may wait for an earlier answer that is unfinished, or that its client does not
 * read. It then counts as unsent, and no longer as being made. */
static void due_no_more(struct hf_http_conn *conn)
{
    for (struct hf_http_exchange *x = hf_http_render_waits(conn) ? NULL : conn->first; x;
         x = x->next)
        if (x->done)
            hf_http_due(x, 0);
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
        /* if it was marked again, it is in the list and comes up again */
        if (!conn->dirty)
            hf_http_drop(conn);
        return;
    }
    due_no_more(conn);
    hold_back(conn);
    enum hf_http_timer timer = hf_http_timer_due(conn);
    /* Sent bytes, and heads and bodies that begin or end, restart the timer. The bytes of an
     * endless TLS record do not. */
    if (timer != conn->timer || conn->began || !conn->patience.queue ||
        (conn->sent && (timer == HF_HTTP_TIMER_IDLE || timer == HF_HTTP_TIMER_WRITE)))
        hf_http_timer_set(conn, timer);
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

/* Among the connections that wait to write, find the group with the most unsent bytes. */
static struct hf_http_group *group_with_most(const struct hf_http_thread *t)
{
    struct hf_http_group *most = NULL;
    for (struct hf_timer *timer = t->timers[HF_HTTP_TIMER_WRITE].oldest; timer;
         timer = timer->newer) {
        struct hf_http_group *group = hf_http_conn_of(timer)->counted_in;
        if (group && (!most || group->out_bytes > most->out_bytes))
            most = group;
    }
    return most;
}

/* Close the connections that have not read for the longest time, until the rest fits. Returns the
 * bytes that are left. */
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

/* There are too many bytes of unread answers. Close connections of the group that has most of them:
 * a tenant that does not read must not cost another tenant its answers. */
static void shed(struct hf_http_thread *t)
{
    uint64_t max = t->server->options.limits.memory_max;
    if (t->out_bytes <= max)
        return;
    uint64_t left = shed_of(t, t->out_bytes, group_with_most(t));
    if (left > max)
        (void)shed_of(t, left, NULL);
}

/* The server begins to stop: accept the clients that have connected before, because they may have
 * sent requests; and take all that has arrived. The last thread to do so ends the listening: a
 * client that connects from then on is refused at once, and can go to another server. */
static void stop_begin(struct hf_http_thread *t)
{
    struct hf_http_server *s = t->server;
    t->stopping_since_ms = t->loop.now_ms;
    for (int left = HF_HTTP_BACKLOG; left > 0 && hf_http_accept(t); left -= HF_HTTP_ACCEPTS)
        ;
    hf_loop_unwatch(&t->loop, &t->listener);
    if (atomic_fetch_add(&s->stopping_threads, 1) + 1 == s->thread_count)
        shutdown(s->listener, SHUT_RDWR);
    for (struct hf_http_conn *conn = t->conns; conn; conn = conn->next_conn) {
        if (conn->closing || conn->broken)
            continue;
        hf_http_input_again(conn); /* its bytes may have been held back */
        hf_http_input(conn);
    }
}

/* The server is stopping. A connection whose last answer is sent closes by itself (wind_up). Of the
 * others, let go of those that have nothing to say for a while, and of requests that arrive too
 * slowly. */
static void stop_step(struct hf_http_thread *t)
{
    const struct hf_http_limits *limits = &t->server->options.limits;
    if (t->stopping_since_ms == 0)
        stop_begin(t);
    int64_t since_ms = t->loop.now_ms - t->stopping_since_ms;
    bool patience = t->loop.now_ms < t->server->stop_at_ms;
    t->draining = since_ms >= limits->stop_idle_ms;
    for (struct hf_http_conn *conn = t->conns; conn; conn = conn->next_conn) {
        bool open = !conn->closing && !conn->first && !conn->held && !hf_http_output_waits(conn);
        bool part = conn->building || conn->in.size > 0;
        if (!patience)
            conn->broken = true;
        else if (open && part && since_ms >= limits->stop_part_ms)
            hf_http_late(conn);
        else if (open && !part && t->draining)
            conn->closing = true;
        hf_http_mark(conn);
    }
}

static void round_of(struct hf_http_thread *t)
{
    const struct hf_http_handler *handler = &t->server->options.handler;
    do {
        t->handed_over = false;
        handler->round(handler->arg, t);
        hf_loop_tick(&t->loop); /* time spent on the disk does not count against the clients */
        settle(t);
        tend_all(t);
        shed(t);
        /* Requests that were pipelined after an answer may have been handed over just now. */
    } while (t->handed_over || t->done.here || t->dirty);
}

/* A new round: connections that were held back come before those with new bytes, the longest
 * waiting first. If their group has already used its share, they keep their places. */
static void go_on(struct hf_http_thread *t)
{
    struct hf_http_conn *later;
    for (struct hf_http_conn *conn = t->held_oldest; conn; conn = later) {
        later = conn->held_later;
        bool answered = conn->first && conn->first->done;
        if (answered ? hf_http_render_waits(conn) : hf_http_share_used(conn))
            continue;
        hf_http_let_go(conn);
        hf_http_mark(conn);
        hf_http_output(conn);
        hf_http_input_again(conn);
    }
}

/* How long to wait for events. Held connections continue at once, unless they wait for answers of
 * other threads, which wake the loop. */
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
    hf_http_listen_again(t);
    int64_t tick_ms = t->loop.now_ms;
    for (;;) {
        hf_loop_wait(&t->loop, patience_ms(t));
        t->round++;
        go_on(t);
        hf_loop_dispatch(&t->loop);
        if (t->loop.now_ms - tick_ms >= TICK_MS) {
            tick_ms = t->loop.now_ms;
            hf_http_timers_run(t);
            if (!t->server->stopping)
                hf_http_listen_again(t);
        }
        bool stopping = t->server->stopping;
        if (stopping)
            stop_step(t);
        round_of(t);
        if (stopping && !t->conns && (t->live == 0 || t->loop.now_ms >= t->server->stop_at_ms))
            return NULL; /* no client waits for the unfinished exchanges */
    }
}
