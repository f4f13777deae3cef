/* server.h: connections, requests and answers, over epoll.
 *
 *      accept ─▶ head ─▶ body ─▶ handler.request ─▶ hf_http_done ─▶ handler.render ─▶ out
 *                 ▲                                                           │
 *                 └───────────── next request of the connection ◀─────────────┘
 *
 * Each I/O thread has its own epoll and the connections that it accepted; no other thread touches a
 * connection. In a round the thread reads what is ready, parses all complete requests, gives each
 * to the handler, tells the handler that the round is over (so that it can commit all of them at
 * once), and sends finished answers. Requests of one connection may be pipelined; their answers are
 * sent in order.
 *
 * An idle connection has no buffers: the thread reads into its own buffer, and keeps only
 * unfinished requests. Everything has a limit: see struct hf_http_limits. */
#ifndef HF_HTTP_SERVER_H
#define HF_HTTP_SERVER_H

#include "base/arena.h"
#include "base/buffer.h"
#include "http/auth.h"
#include "http/head.h"
#include "net/loop.h"
#include "net/tls.h"

#include <stdatomic.h>

struct hf_http_server;
struct hf_http_thread; /* one I/O thread */
struct hf_http_conn;

/* One request and its answer. Owned by the server; the handler may use it from `request` until it
 * is rendered. */
struct hf_http_exchange {
    struct hf_http_thread *thread; /* the I/O thread that it belongs to */
    struct hf_http_conn *conn;
    struct hf_http_exchange *next; /* private: in the connection's queue, or among the free ones */
    struct hf_task task;           /* private: in the thread's inbox of finished exchanges */
    struct hf_http_head head;      /* its slices live in the arena */
    struct hf_bytes body;          /* lives in `input` */
    struct hf_arena arena;         /* the request's own memory, for the handler too */
    struct hf_buffer input;        /* private: the bytes of the body */
    struct hf_http_group *group;   /* private: the group that it counts in; NULL: none */
    uint64_t counted; /* private: its counted bytes: head, body, `took` and the exchange itself */
    struct hf_http_refusal refusal; /* status 0: none */
    _Atomic bool gone;              /* the client is gone: no answer is needed */
    bool has_body;                  /* a length above 0, or chunks */
    /* set by the handler in `request`: the answer may be large, so no later request is read before
     * this one is rendered */
    bool alone;
    /* set by the handler: in `request`, the most bytes that the answer may need, or 0 if they are
     * few; before hf_http_done, the bytes that it uses until it is rendered */
    uint64_t answer_max, answer_size;
    uint64_t due; /* private: the counted bytes of answer_max */
    /* set by the handler in `request`: the bytes of the arena after the request is decoded; 0 if
     * another thread will still allocate from it */
    uint64_t took;
    /* set by the handler in `refuse`: `request` is called only when all earlier requests of the
     * connection are answered, because a thread that reads the store by itself would miss their
     * changes */
    bool in_turn;
    bool hang_up;        /* set by the handler in `refuse`: close the connection after the answer */
    bool waits;          /* private: for its turn; no later request is read meanwhile */
    bool done;           /* private: may be rendered */
    bool last;           /* private: the connection closes after it */
    bool wants_continue; /* private: the client waits for 100 before it sends the body */
    void *own;           /* the handler's part: handler.own_size bytes, zero in a new exchange */
};

/* What a handler renders. The server adds Content-Length, Connection and Date. */
struct hf_http_reply {
    unsigned status;
    const char *content_type;    /* NULL: no body */
    struct hf_buffer *fields;    /* more fields, each "Name: value\r\n"; empty before render */
    struct hf_buffer *body;      /* empty before render */
    struct hf_bytes static_body; /* used in place of `body` if not empty; must outlive the server */
    /* -1, or a descriptor whose first `file_size` bytes are the body; the server then owns it */
    int file;
    uint64_t file_size;
    _Atomic unsigned *file_count; /* NULL, or decremented when the file is closed */
};

/* A file that a client did not read in time. */
struct hf_http_cut {
    struct hf_http_group *group; /* of the connection; NULL: none */
    uint64_t sent, size;         /* bytes that were sent, and in all */
};

struct hf_http_handler {
    void *arg;
    size_t own_size;
    /* A request is complete, and it is its turn. Call hf_http_done when it is answered, now or
     * later, from any thread. */
    void (*request)(void *arg, struct hf_http_exchange *x);
    /* The head is complete, the body is not. Return true and fill `why` to refuse the request
     * before its body is read; the connection is then closed if there is a body. */
    bool (*refuse)(void *arg, struct hf_http_exchange *x, struct hf_http_refusal *why);
    /* All requests of the round were handed over. Returns when they are submitted. */
    void (*round)(void *arg, struct hf_http_thread *thread);
    /* Fill in the answer of this exchange. Called on its I/O thread. */
    void (*render)(void *arg, struct hf_http_exchange *x, struct hf_http_reply *reply);
    /* The same for a request that the server or `refuse` refused. x has no usable head if the head
     * was the reason. */
    void (*render_refusal)(void *arg, struct hf_http_exchange *x, struct hf_http_reply *reply);
    /* A file took too long and its connection is closed. Called on its I/O thread. */
    void (*cut)(void *arg, const struct hf_http_cut *cut);
    /* The exchange is over (rendered, or its connection is gone): free what `own` has, and reset it
     * for reuse. */
    void (*release)(void *arg, struct hf_http_exchange *x);
};

/* Connections that share limits, such as those of one tenant. */
struct hf_http_group {
    _Atomic unsigned connections;
    _Atomic uint64_t request_bytes; /* of requests that are received or processed now */
    _Atomic uint64_t out_bytes;     /* of unsent answers */
    unsigned max;                   /* connections; 0: no limit */
    bool first; /* it may use half of the places reserved for connections in no group */
};

struct hf_http_limits {
    uint64_t body_max; /* bytes: 413 */
    /* over all threads: 503 and closed. Fewer if the system allows fewer descriptors; files that
     * are being sent count too */
    unsigned connections_max;
    /* a connection has to join a group. An eighth of the places is for connections in no group; or
     * 16 if that is more; but at most a quarter, and at least 1. If they are all used, the oldest
     * of these connections is closed for a new one, an idle one first */
    bool must_join;
    unsigned unknown_ms; /* how long a connection may be in no group: closed */
    /* requests of one connection in progress: at the limit it is not read until one is answered */
    unsigned pipeline_max;
    unsigned head_ms; /* from the first byte of a head to its end: 408 and closed */
    /* without a byte between requests, in a body, or while an answer cannot be sent */
    unsigned idle_ms;
    unsigned body_ms; /* from the end of the head to the end of the body: 408 and closed */
    /* how long a client may take to read a file: file_ms, plus file_mib_ms for each MiB; closed */
    unsigned file_ms, file_mib_ms;
    unsigned stop_idle_ms, stop_part_ms; /* see hf_http_stop */
    /* bytes for each thread, three times:
     * - of requests that are received or processed now. Each group may use half, and so may all
     *   connections in no group together. At the limit, a body of more than 4 KiB gets 503 and its
     *   connection is closed. A connection is then read a little at a time, and not while a request
     *   of it is in progress: so a small request is always accepted.
     * - of unread answers. At the limit, the connection that has not read for the longest time is
     *   closed, in the group that has most of these bytes.
     * - that unfinished answers may need at most. A group may use half. A request that would exceed
     *   this waits until some answers are finished. */
    uint64_t memory_max;
};

struct hf_http_options {
    const char *listen; /* "ADDR:PORT" or "[ADDR]:PORT"; port 0 means any free port */
    unsigned threads;   /* 1 and up */
    struct hf_http_limits limits;
    /* descriptors for the rest of the process, besides the few that every process needs */
    unsigned files_reserved;
    struct hf_tls *tls; /* NULL: plain; the server keeps its own reference */
    struct hf_http_handler handler;
};

/* Figures, summed over the threads. */
struct hf_http_stats {
    uint64_t connections, accepted, refused_connections, requests, bytes_in, bytes_out, in_flight;
    uint64_t timeouts, malformed;
    uint64_t unknown;        /* connections in no group, if must_join */
    uint64_t unknown_closed; /* closed because they joined no group in time, or to make room */
    uint64_t group_refused;  /* connections refused because their group was full */
};

/* Is this an address to listen on, and is it loopback? Nothing is bound. listen: borrowed. HF_OK,
 * or HF_INVALID_REQUEST with `why`. */
HF_MUST_USE enum hf_status hf_http_listen_check(const char *listen, bool *loopback,
                                                struct hf_error *why);

/* Bind and listen; nothing is accepted yet. server: out, owned, free with hf_http_free. HF_OK,
 * HF_INVALID_REQUEST (the address), HF_STORAGE_FAILURE (cannot be listened on, no memory for
 * threads). */
enum hf_status hf_http_listen(const struct hf_http_options *options, struct hf_http_server **server,
                              struct hf_error *why);
/* "127.0.0.1:4653", the port as bound. Borrowed. */
const char *hf_http_address(const struct hf_http_server *server);
/* Is it a loopback address? */
bool hf_http_loopback(const struct hf_http_server *server);

/* Start the threads. */
enum hf_status hf_http_start(struct hf_http_server *server, struct hf_error *why);
/* Stop, in this order:
 * - Refuse new connections. All requests that have arrived are processed, also those of connections
 *   that wait to be accepted.
 * - The last answer of each connection has "Connection: close". Its write side is then shut down,
 *   and it is read, without use, until the client closes too: closing at once could reset it, and
 *   the reset could destroy the answer.
 * - An idle connection is kept for stop_idle_ms, because a request may be on its way. Then its
 *   write side is shut down too. A request that has begun to arrive has stop_part_ms: then it gets
 *   408.
 * At most `wait_ms`: what is then still open is closed. Returns when all threads have ended. */
void hf_http_stop(struct hf_http_server *server, unsigned wait_ms);
void hf_http_free(struct hf_http_server *server);

/* Use this certificate for new connections. */
void hf_http_set_tls(struct hf_http_server *server, struct hf_tls *tls);
void hf_http_stats(struct hf_http_server *server, struct hf_http_stats *out);

/* The limit of connections: connections_max, or fewer if the system allows fewer descriptors. */
unsigned hf_http_connections_max(const struct hf_http_server *server);

enum hf_http_joined { HF_HTTP_JOINED, HF_HTTP_GROUP_FULL, HF_HTTP_SERVER_FULL };

/* hf_http_join: count the connection of x in `group` from now on. If it already counts in a group,
 * the group of its first accepted request, nothing changes. Call it in `refuse`. group: must
 * outlive the server. HF_HTTP_GROUP_FULL: the group is at its limit. HF_HTTP_SERVER_FULL: all
 * groups together are at the limit, without the places reserved for connections in no group. In
 * both cases the caller must close the connection. */
enum hf_http_joined hf_http_join(struct hf_http_exchange *x, struct hf_http_group *group);
/* The group of the connection, or NULL. */
struct hf_http_group *hf_http_group_of(const struct hf_http_exchange *x);

/* The exchange can be rendered. Thread-safe; call it exactly once for each exchange. */
void hf_http_done(struct hf_http_exchange *x);

#endif
