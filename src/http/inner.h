/* inner.h: what the files of the HTTP server share. Private to src/http.
 *
 *   listen.c    starting and stopping          loop.c    the rounds of an I/O thread
 *   conn.c      accept, watch, close           timer.c   timeouts of connections
 *   input.c     from bytes to exchanges        output.c  from answers to bytes
 *   exchange.c  create, reuse, finish
 *   join.c      groups of connections, and those in no group */
#ifndef HF_HTTP_INNER_H
#define HF_HTTP_INNER_H

#include "base/owner.h"
#include "http/chunk.h"
#include "http/server.h"
#include "net/socket.h"
#include "net/stream.h"
#include "net/timer.h"

#include <pthread.h>

/* The timeouts of a connection. Every class has one duration, so its queue is always sorted. */
enum hf_http_timer {
    /* the server is processing a request or holding it back: the time does not count for the
     * client */
    HF_HTTP_TIMER_NONE,
    HF_HTTP_TIMER_HEAD,   /* a head has begun */
    HF_HTTP_TIMER_BODY,   /* a body is being received */
    HF_HTTP_TIMER_IDLE,   /* waiting for a request */
    HF_HTTP_TIMER_WRITE,  /* the client does not read its answer */
    HF_HTTP_TIMER_LINGER, /* the server is done and waits for the client to close */
    HF_HTTP_TIMER_COUNT
};

struct hf_http_conn {
    struct hf_http_thread *thread;
    struct hf_stream stream;
    struct hf_source source; /* the same descriptor, in the thread's loop */

    struct hf_buffer in; /* an unfinished head, or bytes after a request that must finish first */
    size_t scanned;
    struct hf_http_exchange *building; /* its body is being received */
    struct hf_http_chunk chunk;
    uint64_t body_left; /* of a body with a length */

    struct hf_http_exchange *first, **end; /* given to the handler, in order */
    unsigned pending;
    uint64_t round; /* of the count in `taken` */
    unsigned taken; /* requests begun in that round */
    bool alone;     /* the newest exchange must be answered before more is read */
    bool began;     /* a head or a body began or ended in this round: restart the timer */
    bool closing;   /* read nothing more; close when all is sent */
    bool ended;     /* the client sends nothing more */
    bool broken;    /* no more sending or receiving is possible */

    uint64_t answers; /* bytes of finished answers that wait for earlier ones to be rendered */
    struct hf_buffer out;
    size_t out_at;
    bool sent; /* some of it was sent in this round */
    int file;  /* -1, or the file to send after `out` */
    uint64_t file_at, file_left;
    int64_t file_until_ms;
    _Atomic unsigned *file_count; /* decremented when the file is closed; or NULL */

    enum hf_http_timer timer; /* the queue of `patience`, also after it ended */
    struct hf_timer patience;
    struct hf_http_group *group;      /* NULL: none yet */
    struct hf_http_group *counted_in; /* where these bytes of `in` and `out` count; or NULL */
    uint64_t in_counted, out_counted;
    bool unknown; /* in the thread's list of connections that must join a group */
    int64_t accepted_ms;
    struct hf_http_conn *known_later, *known_earlier; /* its neighbours in that list, by age */
    bool dirty;
    struct hf_http_conn *next_dirty;
    bool held; /* in the thread's list of held connections */
    struct hf_http_conn *held_later, *held_earlier;
    struct hf_http_conn *next_conn, *prev_conn; /* of the thread */
};

static inline struct hf_http_conn *hf_http_conn_of(struct hf_timer *patience)
{
    return HF_OWNER(struct hf_http_conn, patience, patience);
}

/* What a group uses of a thread. Groups with the same place in the table share one entry, which is
 * rare: of sixty groups, seldom two. */
struct hf_http_share {
    uint64_t answers_due;
    uint64_t round;                    /* of the count in `bytes` */
    uint64_t bytes;                    /* of requests begun in that round */
    uint64_t rendered_round, rendered; /* the same for rendered bytes */
};

enum { HF_HTTP_SHARES = 4096 };
enum { HF_HTTP_READ = 65536, HF_HTTP_READ_LITTLE = 4096, HF_HTTP_OUT_MAX = 1 << 20 };
enum { HF_HTTP_BACKLOG = 1024, HF_HTTP_ACCEPTS = 64 };

struct hf_http_thread {
    struct hf_http_server *server;
    pthread_t id;
    bool started;
    struct hf_loop loop;
    struct hf_source listener;
    int64_t stopping_since_ms; /* 0: not stopping */
    bool draining;             /* stopping, and the time for requests on their way is over */

    struct hf_http_conn *conns;
    struct hf_http_conn *dirty;
    /* Connections that used their share of a round, or whose group did, and that have more bytes.
     * The longest waiting is first. */
    struct hf_http_conn *held_oldest, *held_newest;
    uint64_t round; /* number of the current round */
    /* The time of handshakes in round `handshake_round`. */
    uint64_t handshake_round;
    int64_t handshake_ns;
    bool handed_over; /* the handler got a request in this round */
    struct hf_timer_queue timers[HF_HTTP_TIMER_COUNT];
    struct hf_http_conn *unknown_oldest, *unknown_newest;
    unsigned unknown_count;

    struct hf_http_exchange *free; /* for reuse */
    unsigned free_count;
    uint64_t live;          /* exchanges in use */
    uint64_t request_bytes; /* of all of them, and of unfinished requests */
    uint64_t out_bytes;     /* of unsent answers, including the part already sent */
    uint64_t answers_due;   /* the most bytes that unfinished answers may need */
    struct hf_http_share shares[HF_HTTP_SHARES];
    struct hf_inbox done; /* finished exchanges, by their `task` */

    struct hf_buffer fields, body; /* for rendering */
    struct hf_buffer spare;        /* the next connection that sends uses it */
    char date[64];
    int64_t date_s;
    char input[2 * HF_HTTP_READ]; /* an unfinished head, and the bytes read after it */

    /* Metrics: written by this thread, read by any. */
    _Atomic uint64_t requests, bytes_in, bytes_out, timeouts, malformed, in_flight;
    _Atomic uint64_t unknown_closed, group_refused;
};

/* Add to a metric of the thread. No other thread writes it, so it needs no locked instruction. */
static inline void hf_http_count(_Atomic uint64_t *figure, uint64_t more)
{
    atomic_store_explicit(figure, atomic_load_explicit(figure, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

struct hf_http_server {
    struct hf_http_options options;
    int listener;
    char address[HF_ADDRESS_TEXT];
    bool loopback;
    pthread_mutex_t lock; /* of tls */
    struct hf_tls *tls;
    struct hf_http_thread **threads;
    unsigned thread_count;
    _Atomic bool stopping;
    _Atomic unsigned stopping_threads; /* that have accepted all connections that were waiting */
    _Atomic int64_t stop_at_ms;        /* the deadline of the stop */
    _Atomic unsigned connections;
    _Atomic unsigned joined; /* the ones in a group */
    unsigned unknown_max;    /* places for connections in no group; 0: they need not join one */
    struct hf_http_group unknown; /* counts the bytes of connections in no group */
    _Atomic unsigned files;       /* files that are being sent */
    _Atomic uint64_t accepted, refused_connections;
};

/* loop.c: the main function of an I/O thread. Returns when the server stops. arg: the thread. */
void *hf_http_loop(void *arg);

/* exchange.c: create an exchange for a request of the connection, NULL if out of memory; and free
 * or reuse it. */
struct hf_http_exchange *hf_http_exchange_new(struct hf_http_conn *conn);
void hf_http_exchange_free(struct hf_http_exchange *x);

/* conn.c: handle the connection at the end of the round; no longer hold it back; close and free
 * it. */
void hf_http_mark(struct hf_http_conn *conn);
void hf_http_let_go(struct hf_http_conn *conn);
void hf_http_drop(struct hf_http_conn *conn);
/* Accept up to HF_HTTP_ACCEPTS waiting clients. True: there may be more. */
bool hf_http_accept(struct hf_http_thread *thread);
/* The same as the callback of the thread's listener; and watch the listener again. */
void hf_http_on_listener(struct hf_source *listener, uint32_t events);
void hf_http_listen_again(struct hf_http_thread *thread);

/* timer.c: start a timeout of the connection; which timeout applies now; close connections whose
 * time is over. */
void hf_http_timer_set(struct hf_http_conn *conn, enum hf_http_timer timer);
enum hf_http_timer hf_http_timer_due(const struct hf_http_conn *conn);
void hf_http_timers_run(struct hf_http_thread *thread);
/* The incoming request is late: 408, and close the connection after it. */
void hf_http_late(struct hf_http_conn *conn);

/* join.c: connections in no group. Add a new one to the list; remove it; close one to make room, an
 * idle one if possible (false if there is none); close those whose time is over. */
void hf_http_unknown_add(struct hf_http_conn *conn);
void hf_http_unknown_remove(struct hf_http_conn *conn);
bool hf_http_unknown_shed(struct hf_http_thread *thread);
void hf_http_unknown_run(struct hf_http_thread *thread);
/* The group in which the connection's bytes count; NULL if connections need not join a group. */
struct hf_http_group *hf_http_counts_in(const struct hf_http_conn *conn);
/* Update the counts of the connection's bytes, of requests and of answers. */
void hf_http_tally(struct hf_http_conn *conn);
/* The share of a group. NULL counts as a group. */
struct hf_http_share *hf_http_share_of(struct hf_http_thread *thread,
                                       const struct hf_http_group *group);
/* Set the most bytes that the answer to x may need; 0: it is finished. */
void hf_http_due(struct hf_http_exchange *x, uint64_t bytes);
/* Have the unfinished answers of the connection's group, or of all, reached their limit of
 * memory? */
bool hf_http_due_full(const struct hf_http_conn *conn);
/* How many of `connections` places are reserved for connections in no group: see
 * hf_http_limits.must_join. */
unsigned hf_http_unknown_share(unsigned connections);
/* May this thread have one more unknown connection without closing one? */
bool hf_http_unknown_fits(const struct hf_http_thread *thread);

/* input.c: read once and hand over complete requests; and the same for bytes that were held back,
 * after an answer made room. */
void hf_http_input(struct hf_http_conn *conn);
void hf_http_input_again(struct hf_http_conn *conn);
/* Refuse the incoming request with `why`, and close the connection after the answer. */
void hf_http_turn_down(struct hf_http_conn *conn, const struct hf_http_refusal *why);
/* Has the connection, or its group, used its share of this round? */
bool hf_http_share_used(const struct hf_http_conn *conn);
/* May the connection be read? Not while too many requests are in progress or too many answers are
 * unsent. */
bool hf_http_may_read(const struct hf_http_conn *conn);
/* Free the memory of an unfinished request. */
void hf_http_input_free(struct hf_http_conn *conn);

/* output.c: render finished answers, and send what can be sent. Sets conn->broken on failure. */
void hf_http_output(struct hf_http_conn *conn);
/* Send one answer to a connection that is not accepted; does not close fd. */
void hf_http_turn_away(struct hf_http_thread *thread, int fd, const struct hf_http_refusal *why);
bool hf_http_output_waits(const struct hf_http_conn *conn);
/* Is an answer finished but not rendered, because its group has used its share of this round? */
bool hf_http_render_waits(const struct hf_http_conn *conn);
void hf_http_file_close(struct hf_http_conn *conn); /* if there is one */
bool hf_http_file_late(const struct hf_http_conn *conn);

#endif
