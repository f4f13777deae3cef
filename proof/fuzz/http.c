/* Whole requests on one connection, through the server's own reader and writer of connections:
 * however the bytes are split on their way, the same requests are handed over, the same answers
 * leave and the same refusal ends them. */
#include "fuzz/support/fuzz.h"

#include "base/bytes.h"
#include "http/inner.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BODY_MAX = 2048, PIPELINE_MAX = 3 };

static struct hf_http_server server;
static struct hf_http_thread *thread;

/* One connection, and what is told of it. */
static struct talk {
    struct hf_http_conn *conn;
    int peer;
    struct hf_buffer told; /* what was handed over */
    struct hf_buffer answered;
    unsigned refused; /* status of the refusal that ended it, or 0 */
} * talk;

/* ---- Telling ---- */

static void tell(struct hf_bytes bytes)
{
    hf_buffer_printf(&talk->told, " %zu:", bytes.size);
    hf_buffer_add_bytes(&talk->told, bytes);
}

static bool begins(struct hf_bytes path, const char *with)
{
    return path.size >= strlen(with) && memcmp(path.data, with, strlen(with)) == 0;
}

/* Asked once for each head; one whose path begins with /no is refused. */
static bool on_head(void *arg, struct hf_http_exchange *x, struct hf_http_refusal *why)
{
    const struct hf_http_head *h = &x->head;
    (void)arg;
    hf_buffer_printf(&talk->told, "\nhead %d %d %d %d", h->method, h->chunked, h->keep_alive,
                     x->has_body);
    tell(h->method_name);
    tell(h->path);
    tell(h->query);
    for (size_t i = 0; i < HF_FIELD_COUNT; i++)
        if (h->has[i])
            tell(h->field[i]);
    *why = (struct hf_http_refusal){ 403, "refused", "The path says no." };
    return begins(h->path, "/no");
}

static void on_request(void *arg, struct hf_http_exchange *x)
{
    (void)arg;
    hf_buffer_add_text(&talk->told, "\nbody");
    tell(x->body);
    x->alone = begins(x->head.path, "/alone");
    x->done = true; /* as the loop does it, without waiting for the round */
    hf_http_mark(x->conn);
}

static void on_render(void *arg, struct hf_http_exchange *x, struct hf_http_reply *reply)
{
    (void)arg;
    hf_buffer_add_text(&talk->answered, "answer ");
    reply->status = 200;
    reply->content_type = "application/json";
    hf_buffer_add_bytes(reply->body, x->body);
}

static void on_render_refusal(void *arg, struct hf_http_exchange *x, struct hf_http_reply *reply)
{
    (void)arg;
    reply->status = x->refusal.status;
    if (x->refusal.status == 403)
        hf_buffer_add_text(&talk->answered, "refused ");
    else
        talk->refused = x->refusal.status;
    FUZZ_WANT(x->refusal.status >= 400 && x->refusal.code[0] && x->refusal.detail[0]);
}

static void on_release(void *arg, struct hf_http_exchange *x)
{
    (void)arg;
    FUZZ_WANT(x->thread == thread);
}

/* ---- A connection ---- */

static void start(void)
{
    server.options.limits = (struct hf_http_limits){ .body_max = BODY_MAX,
                                                     .pipeline_max = PIPELINE_MAX,
                                                     .memory_max = UINT64_C(1) << 30 };
    server.options.handler = (struct hf_http_handler){ .request = on_request,
                                                       .refuse = on_head,
                                                       .render = on_render,
                                                       .render_refusal = on_render_refusal,
                                                       .release = on_release };
    thread = calloc(1, sizeof *thread);
    FUZZ_WANT(thread);
    thread->server = &server;
}

static void talk_begin(struct talk *t)
{
    int fds[2];
    FUZZ_WANT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    *t = (struct talk){ .conn = calloc(1, sizeof *t->conn), .peer = fds[1] };
    FUZZ_WANT(t->conn);
    t->conn->thread = thread;
    t->conn->stream.fd = fds[0];
    t->conn->file = -1;
    t->conn->end = &t->conn->first;
    thread->conns = t->conn;
    atomic_fetch_add(&server.connections, 1);
    talk = t;
}

static void talk_end(struct talk *t)
{
    thread->dirty = NULL;
    hf_http_drop(t->conn);
    close(t->peer);
    hf_buffer_free(&t->told);
    hf_buffer_free(&t->answered);
}

static void drain(struct talk *t)
{
    char sink[4096];
    while (recv(t->peer, sink, sizeof sink, 0) > 0)
        continue;
}

/* What the loop does to a connection at the end of a round, until nothing is left to do. */
static void tend(struct talk *t)
{
    struct hf_http_conn *conn = t->conn;
    do {
        thread->dirty = NULL;
        conn->dirty = false;
        hf_http_output(conn);
        drain(t);
        if (!conn->broken)
            hf_http_input_again(conn);
    } while (!conn->broken && (conn->dirty || hf_http_output_waits(conn)));
}

/* Send one piece and let it be worked on. */
static void talk_send(struct talk *t, struct hf_bytes piece)
{
    const char *p = piece.data;
    for (size_t sent = 0; sent < piece.size && !t->conn->closing && !t->conn->broken;) {
        ssize_t n = send(t->peer, p + sent, piece.size - sent, MSG_NOSIGNAL);
        FUZZ_WANT(n > 0);
        sent += (size_t)n;
        for (int waits = 1; waits > 0 && !t->conn->closing && !t->conn->broken;) {
            char one;
            hf_http_input(t->conn);
            tend(t);
            waits = recv(t->conn->stream.fd, &one, 1, MSG_PEEK) > 0;
        }
    }
}

static void talk_pieces(struct talk *t, const struct fuzz_split *split, const size_t *ends,
                        size_t count)
{
    talk_begin(t);
    for (size_t i = 0, at = 0; i < count; at = ends[i++])
        talk_send(t, hf_mem((const char *)split->bytes.data + at, ends[i] - at));
    FUZZ_WANT(!t->conn->broken && !t->told.failed && !t->answered.failed);
}

/* Something wrong in a head may be noticed when it is complete, so it is completed if only one has
 * noticed. */
static void talk_complete(struct talk *t)
{
    talk = t;
    if (t->refused == 0 && t->conn->in.size > 0)
        talk_send(t, hf_str("\r\n\r\n"));
}

static bool same(const struct hf_buffer *a, const struct hf_buffer *b)
{
    return hf_bytes_equal(hf_mem(a->data, a->size), hf_mem(b->data, b->size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct fuzz_split split;
    struct talk whole, parts;
    if (!thread)
        start();
    fuzz_split(&in, &split);
    talk_pieces(&whole, &split, &split.bytes.size, 1);
    thread->conns = NULL;
    talk_pieces(&parts, &split, split.ends, split.count);
    if (whole.refused != parts.refused) {
        talk_complete(&whole);
        talk_complete(&parts);
    }
    /* A body that is both too large and malformed is refused for what is met first. */
    FUZZ_WANT(whole.refused == parts.refused || (whole.refused && parts.refused == 413) ||
              (parts.refused && whole.refused == 413));
    FUZZ_WANT(whole.conn->closing == parts.conn->closing);
    FUZZ_WANT(same(&whole.told, &parts.told) && same(&whole.answered, &parts.answered));
    thread->conns = parts.conn;
    talk_end(&parts);
    thread->conns = whole.conn;
    talk_end(&whole);
    FUZZ_WANT(thread->live == 0 && thread->request_bytes == 0 && thread->out_bytes == 0);
    return 0;
}
