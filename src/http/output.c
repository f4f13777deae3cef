#include "http/inner.h"

#include "base/assert.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- Heads of answers ---- */

enum { SPARE_MAX = 65536, FILE_TURN = 1 << 20 };
/* The most bytes of answers that are rendered for a group in a round, plus one answer; then it is
 * the turn of others. */
enum { SHARE_RENDERED = 1 << 20 };

struct line {
    unsigned status;
    const char *text;
};

static const struct line lines[] = {
    { 200, "HTTP/1.1 200 OK\r\n" },
    { 201, "HTTP/1.1 201 Created\r\n" },
    { 202, "HTTP/1.1 202 Accepted\r\n" },
    { 400, "HTTP/1.1 400 Bad Request\r\n" },
    { 401, "HTTP/1.1 401 Unauthorized\r\n" },
    { 403, "HTTP/1.1 403 Forbidden\r\n" },
    { 404, "HTTP/1.1 404 Not Found\r\n" },
    { 405, "HTTP/1.1 405 Method Not Allowed\r\n" },
    { 408, "HTTP/1.1 408 Request Timeout\r\n" },
    { 409, "HTTP/1.1 409 Conflict\r\n" },
    { 412, "HTTP/1.1 412 Precondition Failed\r\n" },
    { 413, "HTTP/1.1 413 Content Too Large\r\n" },
    { 415, "HTTP/1.1 415 Unsupported Media Type\r\n" },
    { 417, "HTTP/1.1 417 Expectation Failed\r\n" },
    { 422, "HTTP/1.1 422 Unprocessable Content\r\n" },
    { 429, "HTTP/1.1 429 Too Many Requests\r\n" },
    { 431, "HTTP/1.1 431 Request Header Fields Too Large\r\n" },
    { 500, "HTTP/1.1 500 Internal Server Error\r\n" },
    { 501, "HTTP/1.1 501 Not Implemented\r\n" },
    { 503, "HTTP/1.1 503 Service Unavailable\r\n" },
    { 505, "HTTP/1.1 505 HTTP Version Not Supported\r\n" },
};

static void add_line(struct hf_buffer *out, unsigned status)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (lines[i].status == status) {
            hf_buffer_add_text(out, lines[i].text);
            return;
        }
    }
    hf_buffer_printf(out, "HTTP/1.1 %u Answer\r\n", status);
}

/* The Date field, updated each second. */
static void add_date(struct hf_http_thread *t, struct hf_buffer *out)
{
    int64_t second = t->loop.now_ms / 1000;
    if (second != t->date_s || t->date[0] == 0) {
        time_t now = time(NULL);
        struct tm tm;
        gmtime_r(&now, &tm);
        strftime(t->date, sizeof t->date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
        t->date_s = second;
    }
    hf_buffer_add_text(out, t->date);
}

static void add_length(struct hf_buffer *out, uint64_t length)
{
    char text[24];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + length % 10);
        length /= 10;
    } while (length > 0);
    hf_buffer_add_text(out, "Content-Length: ");
    hf_buffer_add(out, text + at, sizeof text - at);
    hf_buffer_add(out, "\r\n", 2);
}

static void add_reply(struct hf_http_thread *t, struct hf_buffer *out,
                      const struct hf_http_reply *reply, bool last, bool head_only)
{
    struct hf_bytes body =
        reply->static_body.size ? reply->static_body : hf_mem(reply->body->data, reply->body->size);
    add_line(out, reply->status);
    add_date(t, out);
    if (reply->content_type) {
        hf_buffer_add_text(out, "Content-Type: ");
        hf_buffer_add_text(out, reply->content_type);
        hf_buffer_add(out, "\r\n", 2);
    }
    add_length(out, reply->file >= 0 ? reply->file_size : body.size);
    hf_buffer_add(out, reply->fields->data, reply->fields->size);
    if (last)
        hf_buffer_add_text(out, "Connection: close\r\n");
    hf_buffer_add(out, "\r\n", 2);
    if (!head_only && reply->file < 0)
        hf_buffer_add_bytes(out, body);
}

/* ---- Rendering ---- */

static struct hf_http_reply reply_begin(struct hf_http_thread *t)
{
    hf_buffer_reset(&t->fields);
    hf_buffer_reset(&t->body);
    return (
        struct hf_http_reply){ .status = 500, .fields = &t->fields, .body = &t->body, .file = -1 };
}

/* Begin to send the file of an answer after its head; or close it if the body is not wanted. */
static void file_begin(struct hf_http_conn *conn, const struct hf_http_reply *reply, bool wanted)
{
    const struct hf_http_limits *limits = &conn->thread->server->options.limits;
    conn->file = reply->file;
    conn->file_count = reply->file_count;
    conn->file_at = 0;
    conn->file_left = reply->file_size;
    conn->file_until_ms = conn->thread->loop.now_ms + limits->file_ms +
                          (int64_t)(reply->file_size >> 20) * limits->file_mib_ms;
    atomic_fetch_add(&conn->thread->server->files, 1);
    if (!wanted)
        hf_http_file_close(conn);
}

bool hf_http_file_late(const struct hf_http_conn *conn)
{
    return conn->file >= 0 && conn->file_until_ms <= conn->thread->loop.now_ms;
}

/* ---- Shares of a round ---- */

static void rendered_count(struct hf_http_conn *conn, uint64_t bytes)
{
    struct hf_http_share *share = hf_http_share_of(conn->thread, hf_http_counts_in(conn));
    if (share->rendered_round != conn->thread->round)
        share->rendered = 0;
    share->rendered_round = conn->thread->round;
    share->rendered += bytes;
}

static bool had_share(const struct hf_http_conn *conn)
{
    const struct hf_http_share *share = hf_http_share_of(conn->thread, hf_http_counts_in(conn));
    return share->rendered_round == conn->thread->round && share->rendered >= SHARE_RENDERED;
}

static bool may_render(const struct hf_http_conn *conn)
{
    return conn->first && conn->first->done && conn->file < 0 && !conn->broken &&
           conn->out.size - conn->out_at < HF_HTTP_OUT_MAX;
}

bool hf_http_render_waits(const struct hf_http_conn *conn)
{
    return may_render(conn) && had_share(conn);
}

/* Does the connection close after this answer? When the server stops, after the one that leaves
 * nothing to answer. */
static bool is_last(const struct hf_http_conn *conn, const struct hf_http_exchange *x)
{
    const struct hf_http_thread *t = conn->thread;
    if (x->last || x->next)
        return x->last;
    bool more =
        !t->draining && (conn->building || conn->in.size > 0 || hf_stream_pending(&conn->stream));
    return conn->closing || (t->stopping_since_ms != 0 && !more);
}

/* Render the first exchange of the queue and remove it. */
static void render(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    const struct hf_http_handler *handler = &t->server->options.handler;
    struct hf_http_exchange *x = conn->first;
    struct hf_http_reply reply = reply_begin(t);
    if (x->refusal.status)
        handler->render_refusal(handler->arg, x, &reply);
    else
        handler->render(handler->arg, x, &reply);
    bool last = is_last(conn, x);
    bool head_only = x->head.method == HF_HTTP_HEAD;
    add_reply(t, &conn->out, &reply, last, head_only);
    rendered_count(conn, t->fields.size + t->body.size + reply.static_body.size);
    if (t->body.room > HF_HTTP_OUT_MAX)
        hf_buffer_free(&t->body); /* do not keep the memory of one large answer */
    if (t->fields.failed || t->body.failed || conn->out.failed)
        conn->broken = true; /* no memory for the answer: a retry gets it */
    if (reply.file >= 0)
        file_begin(conn, &reply, !head_only && !conn->broken);
    conn->closing |= last;
    if (last)
        hf_http_input_free(conn); /* a request that began to arrive while the server drained */
    conn->alone = conn->alone && !x->alone;
    conn->first = x->next;
    if (!conn->first)
        conn->end = &conn->first;
    conn->pending--;
    conn->answers -= x->answer_size;
    hf_http_exchange_free(x);
    /* A waiting exchange or held bytes may continue now. No event would say so. */
    if (conn->in.size > 0 || (conn->first && conn->first->waits))
        hf_http_mark(conn);
    HF_ASSERT(!last || !conn->first); /* no request is accepted after the last one */
}

/* ---- Sending ---- */

bool hf_http_output_waits(const struct hf_http_conn *conn)
{
    return conn->out.size > conn->out_at || conn->file >= 0;
}

/* Connections that can send at once, as nearly all can, share one buffer of the thread. A
 * connection that has to wait keeps it. */
static void out_borrow(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    if (conn->out.data)
        return;
    conn->out = t->spare;
    t->spare = (struct hf_buffer){ 0 };
}

static void out_give_back(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    conn->out_at = 0;
    if (t->spare.data || conn->out.room > SPARE_MAX) {
        hf_buffer_free(&conn->out);
        return;
    }
    t->spare = conn->out;
    hf_buffer_reset(&t->spare);
    conn->out = (struct hf_buffer){ 0 };
}

/* Move the unsent bytes to the front once as many were sent. Otherwise a client that always leaves
 * some unread would make the buffer grow for ever. */
static void out_close_up(struct hf_http_conn *conn)
{
    size_t left = conn->out.size - conn->out_at;
    if (conn->out_at < left)
        return;
    memmove(conn->out.data, conn->out.data + conn->out_at, left);
    conn->out.size = left;
    conn->out_at = 0;
}

/* Send from `out`. False if it cannot continue now. */
static bool send_out(struct hf_http_conn *conn)
{
    while (conn->out.size > conn->out_at) {
        ssize_t n = hf_stream_write(&conn->stream, conn->out.data + conn->out_at,
                                    conn->out.size - conn->out_at);
        if (n < 0) {
            conn->broken |= errno != EAGAIN;
            out_close_up(conn);
            return false;
        }
        conn->out_at += (size_t)n;
        hf_http_count(&conn->thread->bytes_out, (uint64_t)n);
        conn->sent = true;
    }
    out_give_back(conn);
    return true;
}

void hf_http_file_close(struct hf_http_conn *conn)
{
    if (conn->file < 0)
        return;
    close(conn->file);
    conn->file = -1;
    atomic_fetch_sub(&conn->thread->server->files, 1);
    if (conn->file_count)
        atomic_fetch_sub(conn->file_count, 1);
}

static bool send_file(struct hf_http_conn *conn)
{
    char part[16384];
    uint64_t turn = FILE_TURN; /* a fast reader must not delay other connections */
    while (conn->file >= 0 && conn->file_left > 0) {
        if (turn < sizeof part)
            return false; /* epoll reports at once that it can continue */
        turn -= sizeof part;
        out_borrow(conn);
        size_t want = conn->file_left < sizeof part ? (size_t)conn->file_left : sizeof part;
        ssize_t got = pread(conn->file, part, want, (off_t)conn->file_at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            conn->broken = true; /* the client sees that the body is too short */
            return false;
        }
        hf_buffer_add(&conn->out, part, (size_t)got);
        conn->file_at += (uint64_t)got;
        conn->file_left -= (uint64_t)got;
        if (conn->out.failed)
            conn->broken = true;
        if (conn->broken || !send_out(conn))
            return false;
    }
    hf_http_file_close(conn);
    return true;
}

/* A client that sent Expect gets its 100 when all requests before it are answered. */
static bool continue_due(const struct hf_http_conn *conn)
{
    return conn->building && conn->building->wants_continue && !conn->first && conn->file < 0;
}

static void send_continue(struct hf_http_conn *conn)
{
    if (!continue_due(conn))
        return;
    conn->building->wants_continue = false;
    hf_buffer_add_text(&conn->out, "HTTP/1.1 100 Continue\r\n\r\n");
    if (conn->out.failed)
        conn->broken = true; /* else it would wait for ever for the 100 */
}

void hf_http_output(struct hf_http_conn *conn)
{
    for (;;) {
        out_borrow(conn);
        while (may_render(conn) && !had_share(conn))
            render(conn);
        send_continue(conn);
        if (conn->broken || !send_out(conn) || !send_file(conn))
            return;
        if ((!may_render(conn) || had_share(conn)) && !continue_due(conn))
            return;
    }
}

void hf_http_turn_away(struct hf_http_thread *t, int fd, const struct hf_http_refusal *why)
{
    struct hf_http_exchange x = { .refusal = *why };
    struct hf_buffer out = { 0 };
    struct hf_http_reply reply = reply_begin(t);
    const struct hf_http_handler *handler = &t->server->options.handler;
    handler->render_refusal(handler->arg, &x, &reply);
    add_reply(t, &out, &reply, true, false);
    if (!out.failed)
        (void)!send(fd, out.data, out.size, MSG_NOSIGNAL | MSG_DONTWAIT); /* one attempt only */
    hf_buffer_free(&out);
}
