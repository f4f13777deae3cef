#include "base/clock.h"
#include "http/inner.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* The size of a body that is always accepted; and of the arena of a small request. */
enum { SMALL_BODY = 4096, ARENA = 1024 };

/* The most requests of one connection in a round; then it is the turn of other connections. A
 * connection in no group gets one: its caller is unknown, and hundreds of such connections may send
 * as fast as they can. */
enum { SHARE = 128, SHARE_UNKNOWN = 1 };
/* The most bytes of all connections of a group in a round, plus one body, because others wait while
 * these are processed. After that, each of its connections may still have one small request, so
 * that small requests do not wait for large ones. */
enum { SHARE_BYTES = 512 << 10 };
/* The time for handshakes in a round, plus one handshake. */
enum { SHARE_HANDSHAKES_NS = 1000000 };

static const struct hf_http_refusal no_memory = {
    503, "storage-failure", "The server is out of memory. Nothing was changed. Retry later."
};
static const struct hf_http_refusal too_busy = {
    503, "too-busy", "Too many bytes of requests are in progress. Nothing was changed. Retry later."
};
static const struct hf_http_refusal body_too_large = {
    413, "body-too-large",
    "The body is larger than the server's limit. Send less at once, or raise --max-body."
};

/* ---- Memory ---- */

/* Is there memory for `more` bytes? A group may use half of it. */
static bool fits(const struct hf_http_conn *conn, uint64_t more)
{
    uint64_t max = conn->thread->server->options.limits.memory_max;
    const struct hf_http_group *group = hf_http_counts_in(conn);
    return conn->thread->request_bytes + more <= max &&
           (!group ||
            atomic_load_explicit(&group->request_bytes, memory_order_relaxed) + more <= max / 2);
}

/* Is there memory for a body of `size` bytes, `more` of which have not arrived yet? A small one
 * always fits: otherwise a client that sends large bodies slowly would block all others. has_place
 * limits the number of small ones: one for each connection, once the memory is used up. */
static bool has_room(const struct hf_http_conn *conn, uint64_t size, uint64_t more)
{
    return size <= SMALL_BODY || fits(conn, more);
}

static void count(struct hf_http_exchange *x, uint64_t more)
{
    x->counted += more;
    x->thread->request_bytes += more;
    if (x->group)
        atomic_fetch_add_explicit(&x->group->request_bytes, more, memory_order_relaxed);
}

/* The bytes of an exchange without its body, its arena included. */
static uint64_t own_bytes(const struct hf_http_exchange *x)
{
    return sizeof *x + x->thread->server->options.handler.own_size + ARENA + x->head.size;
}

/* ---- Shares of a round ---- */

/* Has the group used its share? A stopping server has no next round, and accepts all that has
 * arrived. */
static bool group_had_share(const struct hf_http_conn *conn)
{
    const struct hf_http_thread *t = conn->thread;
    const struct hf_http_share *share = hf_http_share_of(conn->thread, hf_http_counts_in(conn));
    return share->round == t->round && share->bytes >= SHARE_BYTES && !t->server->stopping;
}

/* Is the next request small? The length of a chunked body is unknown before its end. */
static bool next_is_small(const struct hf_http_conn *conn)
{
    if (!conn->building)
        return conn->round != conn->thread->round || conn->taken == 0;
    return !conn->building->head.chunked && conn->building->head.length <= SMALL_BODY;
}

bool hf_http_share_used(const struct hf_http_conn *conn)
{
    unsigned share = conn->unknown ? SHARE_UNKNOWN : SHARE;
    return (conn->round == conn->thread->round && conn->taken >= share) ||
           (group_had_share(conn) && !next_is_small(conn)) || hf_http_due_full(conn);
}

static void share_count(struct hf_http_conn *conn, uint64_t bytes)
{
    struct hf_http_share *share = hf_http_share_of(conn->thread, hf_http_counts_in(conn));
    if (share->round != conn->thread->round)
        share->bytes = 0;
    share->round = conn->thread->round;
    share->bytes += bytes;
}

static void request_count(struct hf_http_conn *conn, uint64_t bytes)
{
    if (conn->round != conn->thread->round)
        conn->taken = 0;
    conn->round = conn->thread->round;
    conn->taken++;
    share_count(conn, bytes);
}

/* ---- Exchanges ---- */

static void link_exchange(struct hf_http_conn *conn, struct hf_http_exchange *x)
{
    x->next = NULL;
    *conn->end = x;
    conn->end = &x->next;
    conn->pending++;
}

/* Queue `why` as the answer to x. */
static void refuse_exchange(struct hf_http_conn *conn, struct hf_http_exchange *x,
                            const struct hf_http_refusal *why, bool last)
{
    x->refusal = *why;
    x->last = last;
    conn->closing |= last;
    link_exchange(conn, x);
    x->done = true;
    hf_http_mark(conn);
}

void hf_http_turn_down(struct hf_http_conn *conn, const struct hf_http_refusal *why)
{
    struct hf_http_exchange *x = conn->building ? conn->building : hf_http_exchange_new(conn);
    conn->building = NULL;
    hf_buffer_free(&conn->in);
    if (!x) {
        conn->broken = true;
        hf_http_mark(conn);
        return;
    }
    hf_http_count(&conn->thread->malformed, 1);
    refuse_exchange(conn, x, why, true);
}

void hf_http_input_free(struct hf_http_conn *conn)
{
    if (conn->building) {
        conn->building->conn = NULL;
        hf_http_exchange_free(conn->building);
    }
    conn->building = NULL;
    hf_buffer_free(&conn->in);
}

/* Give the newest exchange of the connection to the handler. */
static void give(struct hf_http_conn *conn, struct hf_http_exchange *x)
{
    const struct hf_http_handler *handler = &conn->thread->server->options.handler;
    x->waits = false;
    conn->thread->handed_over = true;
    handler->request(handler->arg, x);
    hf_http_due(x, x->answer_max);
    if (x->took > ARENA + x->head.size)
        count(x, x->took - ARENA - x->head.size);
    conn->alone = x->alone;
}

/* Does an exchange wait for its turn, and has it come? All before it must be answered, and not too
 * many answers may be unsent. */
static bool turn_has_come(const struct hf_http_conn *conn)
{
    return conn->first && conn->first->waits && conn->out.size - conn->out_at < HF_HTTP_OUT_MAX;
}

/* The request is complete. */
static void hand_over(struct hf_http_conn *conn)
{
    struct hf_http_exchange *x = conn->building;
    conn->building = NULL;
    conn->began = true;
    if (x->counted == 0)
        count(x, own_bytes(x));
    x->body = hf_mem(x->input.data, x->input.size);
    share_count(conn, x->input.size);
    x->last = x->hang_up || !x->head.keep_alive;
    conn->closing |= x->last;
    x->waits = x->in_turn && conn->first;
    link_exchange(conn, x);
    hf_http_count(&conn->thread->requests, 1);
    if (x->waits)
        conn->alone = true;
    else
        give(conn, x);
}

/* ---- Heads ---- */

static void rebase(struct hf_bytes *slice, const char *from, const char *to)
{
    if (slice->data)
        slice->data = to + ((const char *)slice->data - from);
}

/* The head's slices point into a buffer that will be reused: copy them to the arena. */
static bool settle_head(struct hf_http_exchange *x, const char *data)
{
    struct hf_http_head *head = &x->head;
    char *copy = hf_arena_take(&x->arena, head->size);
    if (!copy)
        return false;
    memcpy(copy, data, head->size);
    rebase(&head->method_name, data, copy);
    rebase(&head->path, data, copy);
    rebase(&head->query, data, copy);
    for (size_t i = 0; i < HF_FIELD_COUNT; i++)
        if (head->has[i])
            rebase(&head->field[i], data, copy);
    return true;
}

/* A head is complete: begin its exchange, and refuse it now if that needs no body. */
static void begin(struct hf_http_conn *conn, const struct hf_http_head *head, const char *data)
{
    const struct hf_http_options *options = &conn->thread->server->options;
    struct hf_http_exchange *x = hf_http_exchange_new(conn);
    struct hf_http_refusal why = { 0 };
    conn->began = true;
    request_count(conn, head->size);
    if (!x) {
        conn->broken = true;
        hf_http_mark(conn);
        return;
    }
    x->head = *head;
    conn->building = x;
    x->has_body = head->chunked || head->length > 0;
    if (!settle_head(x, data)) {
        hf_http_turn_down(conn, &no_memory);
        return;
    }
    if (options->handler.refuse(options->handler.arg, x, &why)) {
        conn->building = NULL;
        x->group = hf_http_counts_in(conn);
        count(x, own_bytes(x));
        refuse_exchange(conn, x, &why, x->hang_up || x->has_body || !head->keep_alive);
        return;
    }
    if (head->length > options->limits.body_max) {
        hf_http_turn_down(conn, &body_too_large);
        return;
    }
    if (!has_room(conn, head->length, head->length)) {
        hf_http_turn_down(conn, &too_busy);
        return;
    }
    x->group = hf_http_counts_in(conn);
    conn->body_left = head->length;
    conn->chunk = (struct hf_http_chunk){ 0 };
    x->wants_continue = head->expect_continue && x->has_body;
    if (x->wants_continue)
        hf_http_mark(conn);
    if (!x->has_body)
        hand_over(conn);
}

/* ---- Bodies ---- */

/* Add decoded bytes. False after refusing. */
static bool body_add(struct hf_http_conn *conn, const char *data, size_t size)
{
    struct hf_http_exchange *x = conn->building;
    x->wants_continue = false; /* the client did not wait for the 100 */
    if (x->input.size + size > conn->thread->server->options.limits.body_max) {
        hf_http_turn_down(conn, &body_too_large);
        return false;
    }
    if (!has_room(conn, x->input.size + size, size)) {
        hf_http_turn_down(conn, &too_busy);
        return false;
    }
    hf_buffer_add(&x->input, data, size);
    if (x->input.failed) {
        hf_http_turn_down(conn, &no_memory);
        return false;
    }
    count(x, x->counted == 0 ? own_bytes(x) + size : size);
    return true;
}

/* Take the bytes that belong to the body. Returns how many. */
static size_t body_take(struct hf_http_conn *conn, char *data, size_t size)
{
    if (!conn->building->head.chunked) {
        size_t n = size < conn->body_left ? size : (size_t)conn->body_left;
        if (!body_add(conn, data, n))
            return size;
        conn->body_left -= n;
        if (conn->body_left == 0)
            hand_over(conn);
        return n;
    }
    struct hf_http_refusal why;
    size_t decoded = size, used = 0;
    enum hf_http_parse got = hf_http_chunk_decode(&conn->chunk, data, &decoded, &used, &why);
    if (got == HF_HTTP_BAD) {
        hf_http_turn_down(conn, &why);
        return size;
    }
    if (!body_add(conn, data, decoded))
        return size;
    /* Refuse a chunk that is too large as soon as it is announced. */
    if (conn->chunk.left >
        conn->thread->server->options.limits.body_max - conn->building->input.size) {
        hf_http_turn_down(conn, &body_too_large);
        return size;
    }
    if (got == HF_HTTP_DONE)
        hand_over(conn);
    return used;
}

/* ---- Bytes ---- */

static bool has_place(const struct hf_http_conn *conn)
{
    return !conn->closing && !conn->broken &&
           conn->pending < conn->thread->server->options.limits.pipeline_max &&
           conn->out.size - conn->out_at < HF_HTTP_OUT_MAX && (conn->pending == 0 || fits(conn, 0));
}

/* Is the server draining, and has the connection requests to answer? The answers must come to an
 * end, however many requests the client sends meanwhile. */
static bool drains(const struct hf_http_conn *conn)
{
    return conn->thread->draining && conn->pending > 0 && !conn->building;
}

/* May another exchange begin? */
static bool may_take(const struct hf_http_conn *conn)
{
    return has_place(conn) && !conn->alone && !hf_http_share_used(conn) && !drains(conn);
}

bool hf_http_may_read(const struct hf_http_conn *conn)
{
    return has_place(conn) && ((!conn->alone && !hf_http_share_used(conn)) || conn->in.size == 0);
}

/* Turn the bytes into exchanges. Returns how many were used; the rest is an unfinished head, or has
 * to wait. */
static size_t consume(struct hf_http_conn *conn, char *data, size_t size)
{
    size_t at = 0;
    while (at < size && may_take(conn)) {
        if (conn->building) {
            at += body_take(conn, data + at, size - at);
            continue;
        }
        struct hf_http_head head;
        struct hf_http_refusal why;
        enum hf_http_parse got =
            hf_http_head_parse(data + at, size - at, &conn->scanned, &head, &why);
        if (got == HF_HTTP_MORE)
            break;
        conn->scanned = 0;
        if (got == HF_HTTP_BAD) {
            hf_http_turn_down(conn, &why);
            return size;
        }
        begin(conn, &head, data + at);
        at += head.size;
    }
    return conn->closing || conn->broken ? size : at;
}

/* Keep the unused bytes at the front of conn->in. */
static void keep(struct hf_http_conn *conn, const char *data, size_t size)
{
    if (size == 0) {
        hf_buffer_free(&conn->in);
        return;
    }
    const char *kept = (const char *)conn->in.data;
    if (kept && kept <= data && data < kept + conn->in.size) {
        memmove(conn->in.data, data, size);
        conn->in.size = size;
        return;
    }
    hf_buffer_add(&conn->in, data, size);
    if (conn->in.failed)
        conn->broken = true;
}

/* Read and drop what a client sends after its last request. */
static void discard(struct hf_http_conn *conn)
{
    ssize_t n = recv(conn->stream.fd, conn->thread->input, HF_HTTP_READ, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        conn->broken = true;
}

static void ended(struct hf_http_conn *conn)
{
    conn->ended = true;
    conn->closing = true;
    hf_http_input_free(conn);
    hf_http_mark(conn);
}

/* Read. Handshakes have a share of the round, because a flood of them costs the clients nothing and
 * would delay all others. Handshakes beyond it stay in their sockets, and epoll reports them
 * again. */
static ssize_t read_some(struct hf_http_conn *conn, char *to, size_t size)
{
    struct hf_http_thread *t = conn->thread;
    if (!conn->stream.tls || hf_tls_is_ready(conn->stream.tls))
        return hf_stream_read(&conn->stream, to, size);
    if (t->handshake_round != t->round)
        t->handshake_ns = 0;
    t->handshake_round = t->round;
    if (t->handshake_ns >= SHARE_HANDSHAKES_NS && !t->server->stopping) {
        errno = EAGAIN;
        return -1;
    }
    int64_t before = hf_clock_monotonic_ns();
    ssize_t n = hf_stream_read(&conn->stream, to, size);
    t->handshake_ns += hf_clock_monotonic_ns() - before;
    return n;
}

void hf_http_input(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    if (conn->timer == HF_HTTP_TIMER_LINGER) {
        discard(conn);
        return;
    }
    if (!hf_http_may_read(conn))
        return;
    /* An unfinished head precedes the new bytes. It is kept in a buffer of its own size, because
     * thousands of clients may be slow; but the read uses a large buffer, because fast clients send
     * many requests at once. */
    size_t before = conn->in.size;
    if (before > HF_HTTP_READ)
        return;
    bool little = !fits(conn, 0) || conn->unknown;
    ssize_t n = read_some(conn, t->input + before, little ? HF_HTTP_READ_LITTLE : HF_HTTP_READ);
    if (n <= 0) {
        if (n == 0)
            ended(conn);
        else if (errno != EAGAIN)
            conn->broken = true;
        return;
    }
    hf_http_count(&t->bytes_in, (uint64_t)n);
    if (before > 0)
        memcpy(t->input, conn->in.data, before);
    hf_buffer_reset(&conn->in);
    size_t size = before + (size_t)n;
    size_t used = consume(conn, t->input, size);
    keep(conn, t->input + used, size - used);
    if (hf_stream_pending(&conn->stream))
        hf_http_mark(conn);
}

void hf_http_input_again(struct hf_http_conn *conn)
{
    if (turn_has_come(conn))
        give(conn, conn->first);
    if (conn->in.size > 0 && may_take(conn) && conn->scanned == 0) {
        char *data = (char *)conn->in.data;
        size_t size = conn->in.size;
        size_t used = consume(conn, data, size);
        keep(conn, data + used, size - used);
    }
    if (hf_stream_pending(&conn->stream) && may_take(conn))
        hf_http_input(conn);
}
