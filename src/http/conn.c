/* Connections: accept, watch, mark for the end of the round, close. */
#include "http/inner.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Lists of the thread ---- */

void hf_http_let_go(struct hf_http_conn *conn)
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
        x->conn = NULL; /* the handler may still work on it: its answer is dropped */
        x->gone = true;
        if (x->done || x->waits) /* the handler does not have it yet */
            hf_http_exchange_free(x);
    }
    hf_timer_clear(&conn->patience);
    hf_http_let_go(conn);
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

/* ---- Accepting ---- */

void hf_http_listen_again(struct hf_http_thread *t)
{
    (void)hf_loop_watch(&t->loop, &t->listener,
                        EPOLLIN | EPOLLEXCLUSIVE); /* if this fails, the next tick tries again */
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

/* Add a socket. False if out of memory or descriptors. */
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
    hf_http_timer_set(conn, HF_HTTP_TIMER_IDLE);
    return true;
}

enum room { ROOM_FREE, ROOM_MADE, ROOM_NONE };

/* Is there room for one more? If not, close an unknown connection, if there is one. Its place is
 * free at the end of the round, so no more connections are accepted before that. */
static enum room room_for_one(struct hf_http_thread *t, unsigned before)
{
    const struct hf_http_server *s = t->server;
    if (before + s->files < s->options.limits.connections_max && hf_http_unknown_fits(t))
        return ROOM_FREE;
    return hf_http_unknown_shed(t) ? ROOM_MADE : ROOM_NONE;
}

bool hf_http_accept(struct hf_http_thread *t)
{
    static const struct hf_http_refusal full = {
        503, "too-many-connections",
        "The server's limit of connections is reached. Close some, or retry later."
    };
    struct hf_http_server *s = t->server;
    for (int i = 0; i < HF_HTTP_ACCEPTS; i++) {
        int fd = hf_socket_accept(s->listener);
        if (fd < 0) {
            /* Out of descriptors or memory: the next tick tries again to accept from the
             * backlog. */
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

void hf_http_on_listener(struct hf_source *listener, uint32_t events)
{
    (void)events;
    (void)hf_http_accept(HF_OWNER(struct hf_http_thread, listener, listener));
}
