/* Timeouts of connections. */
#include "http/inner.h"

/* How often a connection is read before it counts as late: enough for a head or a body of 1 MiB
 * that has already arrived. */
enum { LAST_READS = 32 };

void hf_http_timer_set(struct hf_http_conn *conn, enum hf_http_timer timer)
{
    struct hf_http_thread *t = conn->thread;
    conn->timer = timer;
    if (timer == HF_HTTP_TIMER_NONE)
        hf_timer_clear(&conn->patience);
    else
        hf_timer_set(&conn->patience, &t->timers[timer], t->loop.now_ms);
}

enum hf_http_timer hf_http_timer_due(const struct hf_http_conn *conn)
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

/* Is the client late, and not the server? The client may have sent or received bytes in time that
 * this thread has not seen yet, because it was delayed or has more connections than fit into one
 * round. */
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
    return !conn->began && hf_http_timer_due(conn) == conn->timer;
}

void hf_http_late(struct hf_http_conn *conn)
{
    static const struct hf_http_refusal late = {
        408, "request-timeout",
        "The request did not arrive in time, so nothing was done. Send it again, without pauses."
    };
    hf_http_count(&conn->thread->timeouts, 1);
    hf_http_turn_down(conn, &late);
    hf_http_mark(conn);
}

static void timed_out(struct hf_http_conn *conn)
{
    if (conn->timer == HF_HTTP_TIMER_HEAD || conn->timer == HF_HTTP_TIMER_BODY) {
        hf_http_late(conn);
        return;
    }
    hf_http_count(&conn->thread->timeouts, 1);
    conn->broken = true;
    hf_http_mark(conn);
}

/* A client that reads a byte of its file now and then is never idle. The file has a time limit all
 * the same, because it uses a descriptor and disk space. Its connection waits to write until the
 * whole file is sent. */
static void files_run(struct hf_http_thread *t)
{
    const struct hf_http_handler *handler = &t->server->options.handler;
    struct hf_timer *timer = t->server->files > 0 ? t->timers[HF_HTTP_TIMER_WRITE].oldest : NULL;
    for (; timer; timer = timer->newer) {
        struct hf_http_conn *conn = hf_http_conn_of(timer);
        if (!hf_http_file_late(conn) || conn->broken)
            continue;
        handler->cut(handler->arg,
                     &(struct hf_http_cut){ .group = conn->group,
                                            .sent = conn->file_at,
                                            .size = conn->file_at + conn->file_left });
        hf_http_count(&t->timeouts, 1);
        conn->broken = true;
        hf_http_mark(conn);
    }
}

void hf_http_timers_run(struct hf_http_thread *t)
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
                hf_http_mark(conn); /* this sets its timer again */
            }
        }
    }
}
