/* server.h: connections, requests and answers, over epoll.
 *
 *      accept ─▶ head ─▶ body ─▶ handler.request ─▶ (somebody works) ─▶ hf_http_done ─▶ handler.render ─▶ out
 *                 ▲                                                                              │
 *                 └─────────────────────── next request of the connection ◀──────────────────────┘
 *
 * Each I/O thread has an epoll of its own and the connections that it accepted; nothing of a
 * connection is ever touched by another thread. A round is: take what is ready, parse as many
 * requests as there are, hand each to the handler, tell the handler that the round is over (so that
 * it can commit all of them at once), and send what has been answered. Requests of one connection
 * may be pipelined; their answers leave in order.
 *
 * An idle connection has no buffers: input is read into the thread's own and only an unfinished
 * request is kept. Everything has a limit: see struct hf_http_limits. */
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
 * was rendered. */
struct hf_http_exchange {
    struct hf_http_thread *thread; /* the one that it belongs to */
    struct hf_http_conn *conn;
    struct hf_http_exchange *next; /* private: of the connection's queue, or of the free ones */
    struct hf_task task;           /* private: in the thread's inbox of those done */
    struct hf_http_head head;      /* its slices live in the arena */
    struct hf_bytes body;          /* lives in `input` */
    struct hf_arena arena;         /* the request's own memory, for the handler too */
    struct hf_buffer input;        /* private: the bytes of the body */
    struct hf_http_group *group;   /* private: where it counts; NULL: in none */
    uint64_t
        /* private: its bytes that are counted: head, body, `took` and the exchange itself */
        counted;
    struct hf_http_refusal refusal; /* status 0: none */
    _Atomic bool gone; /* nobody waits for the answer any more: there is no need to make one */
    bool has_body;     /* a length above 0, or chunks */
    /* set by the handler in `request`: the answer may be large, so nothing behind this one is
     * looked at before it was rendered */
    bool alone;
    /* set by the handler: in `request`, the bytes that the answer may take at most, or 0 if they
     * are few; and before hf_http_done, those that it does take until it is rendered */
    uint64_t answer_max, answer_size;
    uint64_t due; /* private: what is counted of answer_max */
    /* set by the handler in `request`: the bytes of the arena once the request is decoded; 0 if
     * another thread is still going to take some */
    uint64_t took;
    /* set by the handler in `refuse`: `request` is called when all requests before it on the
     * connection are answered, because the thread that works on it reads the store by itself and
     * would miss their changes */
    bool in_turn;
    bool hang_up; /* set by the handler in `refuse`: the connection is closed behind the answer */
    bool waits;   /* private: for its turn; nothing behind it is looked at meanwhile */
    bool done;    /* private: may be rendered */
    bool last;    /* private: the connection closes after it */
    bool wants_continue; /* private: the client waits for 100 before it sends the body */
    void
        *own; /* the handler's part: handler.own_size bytes, zero when the exchange is first made */
};

/* What a handler renders. The server adds Content-Length, Connection and Date. */
struct hf_http_reply {
    unsigned status;
    const char *content_type; /* NULL: no body */
    struct hf_buffer
        *fields; /* further fields, each "Name: value\r\n"; empty when render is called */
    struct hf_buffer *body; /* empty when render is called */
    struct hf_bytes
        static_body; /* instead of `body` if its size is not 0; must outlive the server */
    int file;        /* -1, or a descriptor that becomes the server's: `file_size` bytes from its
                                  * start are the body */
    uint64_t file_size;
    _Atomic unsigned *file_count; /* NULL, or one less when the file is closed */
};

/* A file that a client did not take in time. */
struct hf_http_cut {
    struct hf_http_group *group; /* of the connection; NULL: none */
    uint64_t sent, size;         /* bytes of it that went out, and all */
};

struct hf_http_handler {
    void *arg;
    size_t own_size;
    /* A request has come in whole, and it is its turn. Answer by calling hf_http_done, now or
     * later, from any thread. */
    void (*request)(void *arg, struct hf_http_exchange *x);
    /* The head is there, the body is not: may it come? True after filling `why`: it is refused
     * before a byte of the body is looked at, and the connection is closed if there is a body. */
    bool (*refuse)(void *arg, struct hf_http_exchange *x, struct hf_http_refusal *why);
    /* All that was ready has been handed over. Returns when what was gathered is on its way. */
    void (*round)(void *arg, struct hf_http_thread *thread);
    /* It is this exchange's turn: say what to answer. On its I/O thread. */
    void (*render)(void *arg, struct hf_http_exchange *x, struct hf_http_reply *reply);
    /* The same for what was refused by the server itself or by `refuse`. x has no usable head if
     * that was the reason. */
    void (*render_refusal)(void *arg, struct hf_http_exchange *x, struct hf_http_reply *reply);
    /* A file took too long and its connection is closed. On its I/O thread. */
    void (*cut)(void *arg, const struct hf_http_cut *cut);
    /* The exchange is over (rendered, or its connection is gone): free what `own` holds, and make
     * it as if new. */
    void (*release)(void *arg, struct hf_http_exchange *x);
};

/* Connections that count together, such as those of one tenant. */
struct hf_http_group {
    _Atomic unsigned connections;
    _Atomic uint64_t request_bytes; /* of requests being received or worked on */
    _Atomic uint64_t out_bytes;     /* of answers that are not sent */
    unsigned max;                   /* connections; 0: as many as there may be */
    bool first; /* it may have half of what is kept for connections in no group */
};

struct hf_http_limits {
    uint64_t body_max; /* bytes: 413 */
    unsigned
        /* over all threads: 503 and closed. Fewer if the system gives fewer files; those being sent
         * count too */
        connections_max;
    bool
        /* a connection has to join a group. An eighth of those that there can be is for connections
         * in none; or 16 if that is more; but never more than a quarter, and at least 1. The one
         * that has been there for the longest time is closed for a new one, one that is idle
         * first */
        must_join;
    unsigned unknown_ms; /* how long a connection may be in none: closed */
    unsigned
        /* requests of one connection being worked on: it is not read further until one is
         * answered */
        pipeline_max;
    unsigned head_ms; /* from the first byte of a head to its end: 408 and closed */
    unsigned
        /* without a byte between requests, while a body comes, or while an answer cannot be sent */
        idle_ms;
    unsigned body_ms; /* from the end of the head to the end of the body: 408 and closed */
    unsigned file_ms,
        /* how long a client may take to read a file: so long, and so long for each MiB; closed */
        file_mib_ms;
    uint64_t
        /* bytes of requests being received or worked on, a thread; each group has half of that, and
         * so have all connections in none. At the limit a body of more than 4 KiB gets 503 and is
         * closed, and a connection is read a little at a time, and not further while a request of
         * it is being worked on: so a small one is always taken. And as many bytes of answers that
         * clients do not take: of the group that has most of them, who has not taken any for the
         * longest time is closed. And as many that the answers being made may take at most, of a
         * group half: what would take more waits until some are made */
        memory_max;
};

struct hf_http_options {
    const char *listen; /* "ADDR:PORT" or "[ADDR]:PORT"; port 0 picks a free one */
    unsigned threads;   /* 1 and up */
    struct hf_http_limits limits;
    unsigned
        /* descriptors that the rest of the process may need, beside the few that every process
         * does */
        files_reserved;
    struct hf_tls *tls; /* NULL: plain; counted, the server keeps its own */
    struct hf_http_handler handler;
};

/* Figures, summed over the threads. */
struct hf_http_stats {
    uint64_t connections, accepted, refused_connections, requests, bytes_in, bytes_out, in_flight;
    uint64_t timeouts, malformed;
    uint64_t unknown;        /* connections in no group, if they must join one */
    uint64_t unknown_closed; /* closed because they joined none in time, or for another one */
    uint64_t group_refused;  /* connections that a group had no room for */
};

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
/* Stop accepting, close idle connections, let what is in flight be answered, for at most `wait_ms`;
 * returns when all threads have ended. */
void hf_http_stop(struct hf_http_server *server, unsigned wait_ms);
void hf_http_free(struct hf_http_server *server);

/* New connections get this certificate from now on. */
void hf_http_set_tls(struct hf_http_server *server, struct hf_tls *tls);
void hf_http_stats(struct hf_http_server *server, struct hf_http_stats *out);

/* How many connections there may be: connections_max, or fewer if the system does not give so many
 * files. */
unsigned hf_http_connections_max(const struct hf_http_server *server);

enum hf_http_joined { HF_HTTP_JOINED, HF_HTTP_GROUP_FULL, HF_HTTP_SERVER_FULL };

/* hf_http_join: the connection of x counts in `group` from now on, unless it counts in one already:
 * that of its first request that was let in. To be called in `refuse`. group: must outlive the
 * server. HF_HTTP_GROUP_FULL: the group has as many as it may. HF_HTTP_SERVER_FULL: all groups
 * together have what there is, without those that are kept for connections in none. In both cases
 * the connection is to be closed. */
enum hf_http_joined hf_http_join(struct hf_http_exchange *x, struct hf_http_group *group);
/* The group that it counts in, or NULL. */
struct hf_http_group *hf_http_group_of(const struct hf_http_exchange *x);

/* The exchange can be rendered. Safe from any thread; exactly once for each. */
void hf_http_done(struct hf_http_exchange *x);

#endif
