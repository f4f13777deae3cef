/* Connections and the groups that they count in.
 *
 * With an auth file, a connection that has sent no valid credential is unknown. A few of them may
 * be open at a time, for a short time, and a new one takes the place of the oldest. So a client
 * that opens many keeps out no client that sends its credential at once, and takes no place of
 * those that did. */
#include "http/inner.h"

/* One of UNKNOWN_SHARE connections is for unknown callers, at least UNKNOWN_LEAST, but at most one
 * of UNKNOWN_MOST. */
enum { UNKNOWN_SHARE = 8, UNKNOWN_LEAST = 16, UNKNOWN_MOST = 4 };

unsigned hf_http_unknown_share(unsigned connections)
{
    unsigned share = connections / UNKNOWN_SHARE, most = connections / UNKNOWN_MOST;
    share = share < UNKNOWN_LEAST ? UNKNOWN_LEAST : share;
    share = share > most ? most : share;
    return share ? share : 1;
}

void hf_http_unknown_add(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    conn->accepted_ms = t->loop.now_ms;
    if (t->server->unknown_max == 0)
        return;
    conn->unknown = true;
    conn->known_earlier = t->unknown_newest;
    if (t->unknown_newest)
        t->unknown_newest->known_later = conn;
    else
        t->unknown_oldest = conn;
    t->unknown_newest = conn;
    t->unknown_count++;
}

void hf_http_unknown_remove(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    if (!conn->unknown)
        return;
    if (conn->known_earlier)
        conn->known_earlier->known_later = conn->known_later;
    else
        t->unknown_oldest = conn->known_later;
    if (conn->known_later)
        conn->known_later->known_earlier = conn->known_earlier;
    else
        t->unknown_newest = conn->known_earlier;
    conn->unknown = false;
    t->unknown_count--;
}

/* No request of it waits for an answer, so closing it loses nothing. */
static bool is_idle(const struct hf_http_conn *conn)
{
    return !conn->first && !hf_http_output_waits(conn);
}

static void close_unknown(struct hf_http_conn *conn)
{
    hf_http_unknown_remove(conn);
    hf_http_count(&conn->thread->unknown_closed, 1);
    conn->broken = true;
    hf_http_mark(conn);
}

bool hf_http_unknown_shed(struct hf_http_thread *t)
{
    struct hf_http_conn *conn = t->unknown_oldest;
    while (conn && !is_idle(conn))
        conn = conn->known_later;
    /* Clients that do not read their answers must not block others. */
    if (!conn)
        conn = t->unknown_oldest;
    if (conn)
        close_unknown(conn);
    return conn != NULL;
}

bool hf_http_unknown_fits(const struct hf_http_thread *t)
{
    const struct hf_http_server *s = t->server;
    unsigned max = s->unknown_max;
    return max == 0 || t->unknown_count < (max + s->thread_count - 1) / s->thread_count;
}

void hf_http_unknown_run(struct hf_http_thread *t)
{
    struct hf_http_conn *conn = t->unknown_oldest;
    while (conn && conn->accepted_ms + t->server->options.limits.unknown_ms <= t->loop.now_ms) {
        struct hf_http_conn *later = conn->known_later;
        close_unknown(conn);
        hf_http_count(&t->timeouts, 1);
        conn = later;
    }
}

struct hf_http_group *hf_http_counts_in(const struct hf_http_conn *conn)
{
    struct hf_http_server *s = conn->thread->server;
    return conn->group ? conn->group : s->unknown_max > 0 ? &s->unknown : NULL;
}

void hf_http_tally(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    struct hf_http_group *before = conn->counted_in, *now = hf_http_counts_in(conn);
    uint64_t in = conn->in.size, out = conn->out.size + conn->answers;
    if (in == conn->in_counted && out == conn->out_counted && (before == now || in + out == 0))
        return; /* the usual case: nothing is kept */
    t->request_bytes = t->request_bytes - conn->in_counted + in;
    t->out_bytes = t->out_bytes - conn->out_counted + out;
    if (before) {
        atomic_fetch_sub_explicit(&before->request_bytes, conn->in_counted, memory_order_relaxed);
        atomic_fetch_sub_explicit(&before->out_bytes, conn->out_counted, memory_order_relaxed);
    }
    if (now) {
        atomic_fetch_add_explicit(&now->request_bytes, in, memory_order_relaxed);
        atomic_fetch_add_explicit(&now->out_bytes, out, memory_order_relaxed);
    }
    conn->counted_in = now;
    conn->in_counted = in;
    conn->out_counted = out;
}

struct hf_http_share *hf_http_share_of(struct hf_http_thread *t, const struct hf_http_group *group)
{
    uint64_t hash = (uint64_t)(uintptr_t)group * UINT64_C(0x9e3779b97f4a7c15);
    return &t->shares[(hash >> 32) % HF_HTTP_SHARES];
}

void hf_http_due(struct hf_http_exchange *x, uint64_t bytes)
{
    uint64_t more = bytes - x->due; /* modulo 2^64, like the sums */
    if (more == 0)
        return;
    x->thread->answers_due += more;
    hf_http_share_of(x->thread, x->group)->answers_due += more;
    x->due = bytes;
}

bool hf_http_due_full(const struct hf_http_conn *conn)
{
    uint64_t max = conn->thread->server->options.limits.memory_max;
    const struct hf_http_group *group = hf_http_counts_in(conn);
    return conn->thread->answers_due >= max ||
           (group && hf_http_share_of(conn->thread, group)->answers_due >= max / 2);
}

static bool take_place(_Atomic unsigned *count, unsigned max)
{
    if (atomic_fetch_add(count, 1) < max)
        return true;
    atomic_fetch_sub(count, 1);
    return false;
}

enum hf_http_joined hf_http_join(struct hf_http_exchange *x, struct hf_http_group *group)
{
    struct hf_http_conn *conn = x->conn;
    struct hf_http_server *s = conn->thread->server;
    unsigned max = s->options.limits.connections_max;
    unsigned reserved = s->unknown_max < max ? s->unknown_max : 0;
    if (conn->group)
        return HF_HTTP_JOINED;
    if (!take_place(&group->connections, group->max ? group->max : UINT32_MAX)) {
        hf_http_count(&conn->thread->group_refused, 1);
        return HF_HTTP_GROUP_FULL;
    }
    if (group->first)
        reserved /= 2;
    if (!take_place(&s->joined, max - reserved)) {
        atomic_fetch_sub(&group->connections, 1);
        s->refused_connections++;
        return HF_HTTP_SERVER_FULL;
    }
    conn->group = group;
    hf_http_unknown_remove(conn);
    return HF_HTTP_JOINED;
}

struct hf_http_group *hf_http_group_of(const struct hf_http_exchange *x)
{
    return x->conn->group;
}
