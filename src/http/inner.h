/* inner.h: what the files of the HTTP server share; nobody else includes it.
 *
 *   listen.c    starting and stopping          loop.c    one I/O thread: rounds
 *   conn.c      let in, watched, closed        timer.c   how long a connection may take
 *   input.c     from bytes to exchanges        output.c  from answers to bytes
 *   exchange.c  made, used again, answered
 *   join.c      whose a connection is, and those that are nobody's yet */
#ifndef HF_HTTP_INNER_H
#define HF_HTTP_INNER_H

#include "base/owner.h"
#include "http/chunk.h"
#include "http/server.h"
#include "net/socket.h"
#include "net/stream.h"
#include "net/timer.h"

#include <pthread.h>

/* How long a connection may stay as it is. Every class has one duration, so its queue is sorted by
 * itself. */
enum hf_http_timer {
    /* a request is being worked on, or held back: the time is ours, not the client's */
    HF_HTTP_TIMER_NONE,
    HF_HTTP_TIMER_HEAD,   /* a head has begun */
    HF_HTTP_TIMER_BODY,   /* a body is on its way */
    HF_HTTP_TIMER_IDLE,   /* nothing is on its way */
    HF_HTTP_TIMER_WRITE,  /* the client does not take its answer */
    HF_HTTP_TIMER_LINGER, /* we are done and wait for the client to see that */
    HF_HTTP_TIMER_COUNT
};

struct hf_http_conn {
    struct hf_http_thread *thread;
    struct hf_stream stream;
    struct hf_source source; /* the same descriptor, in the thread's loop */

    struct hf_buffer
        in; /* bytes of an unfinished head, or behind a request that has to be answered first */
    size_t scanned;
    struct hf_http_exchange *building; /* its body is on its way */
    struct hf_http_chunk chunk;
    uint64_t body_left; /* of a body with a length */

    struct hf_http_exchange *first, **end; /* handed over, in order */
    unsigned pending;
    uint64_t round; /* in which `taken` was counted */
    unsigned taken; /* requests that were begun in that round */
    bool alone;     /* the newest of them is to be answered before more is read */
    bool began;     /* a head or a body began or ended in this round: its time is counted anew */
    bool closing;   /* nothing more is read; closed when all is sent */
    bool ended;     /* the client sends nothing more */
    bool broken;    /* nothing can be sent or received any more */

    uint64_t
        answers; /* bytes of answers that are made and not rendered, because of those before them */
    struct hf_buffer out;
    size_t out_at;
    bool sent; /* some of it went out in this round */
    int file;  /* -1, or what comes behind `out` */
    uint64_t file_at, file_left;
    int64_t file_until_ms;
    _Atomic unsigned *file_count; /* one less when it is closed; or NULL */

    enum hf_http_timer timer; /* the queue in which `patience` is, or was when it ended */
    struct hf_timer patience;
    struct hf_http_group *group; /* NULL: none yet */
    struct hf_http_group *
        /* where these bytes of `in` and `out` are counted, beside the thread; or NULL */
        counted_in;
    uint64_t in_counted, out_counted;
    bool unknown; /* in the thread's list of those that must join one */
    int64_t accepted_ms;
    struct hf_http_conn *known_later,
        *known_earlier; /* in that list: who came after it, and before */
    bool dirty;
    struct hf_http_conn *next_dirty;
    bool held; /* in the thread's list of those that are held back */
    struct hf_http_conn *held_later, *held_earlier;
    struct hf_http_conn *next_conn, *prev_conn; /* of the thread */
};

static inline struct hf_http_conn *hf_http_conn_of(struct hf_timer *patience)
{
    return HF_OWNER(struct hf_http_conn, patience, patience);
}

/* What a group has of a thread. Groups whose places in the table are the same have one share
 * together: of sixty groups, seldom two. */
struct hf_http_share {
    uint64_t answers_due;
    uint64_t round;                    /* in which `bytes` was counted */
    uint64_t bytes;                    /* of requests that were begun in that round */
    uint64_t rendered_round, rendered; /* the same for the bytes of answers that were rendered */
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

    struct hf_http_conn *conns;
    struct hf_http_conn *dirty;
    /* They, or their group, have had their share of a round, and more has come from them. Who waits
     * longest is first. */
    struct hf_http_conn *held_oldest, *held_newest;
    uint64_t round; /* how often the thread has asked what is ready */
    /* What handshakes took of the round that is named. */
    uint64_t handshake_round;
    int64_t handshake_ns;
    bool handed_over; /* the handler got something in this round */
    struct hf_timer_queue timers[HF_HTTP_TIMER_COUNT];
    struct hf_http_conn *unknown_oldest, *unknown_newest;
    unsigned unknown_count;

    struct hf_http_exchange *free; /* made before, for use again */
    unsigned free_count;
    uint64_t live;          /* exchanges that are not free */
    uint64_t request_bytes; /* of all of them, and of what is kept to become one */
    uint64_t out_bytes;     /* of answers that are not sent, with what is sent of them */
    uint64_t answers_due;   /* bytes that those may take which are being made */
    struct hf_http_share shares[HF_HTTP_SHARES];
    struct hf_inbox done; /* exchanges that were answered, by their `task` */

    struct hf_buffer fields, body; /* what is being rendered */
    struct hf_buffer spare;        /* for the next connection that has something to send */
    char date[64];
    int64_t date_s;
    char input[2 * HF_HTTP_READ]; /* an unfinished head, and what was read behind it */

    /* Figures: written here, read by anybody. */
    _Atomic uint64_t requests, bytes_in, bytes_out, timeouts, malformed, in_flight;
    _Atomic uint64_t unknown_closed, group_refused;
};

/* Add to a figure of the thread's own: nobody else writes it, so it needs no locked instruction. */
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
    _Atomic int64_t stop_at_ms; /* when patience ends */
    _Atomic unsigned connections;
    _Atomic unsigned joined; /* those of them that are in a group */
    unsigned
        unknown_max; /* how many places are kept for those in none; 0: they need not join one */
    struct hf_http_group unknown; /* the bytes of those */
    _Atomic unsigned files;       /* that are being sent */
    _Atomic uint64_t accepted, refused_connections;
};

/* loop.c: what an I/O thread does, until the server stops. arg: the thread. */
void *hf_http_loop(void *arg);

/* exchange.c: a new one for a request of the connection, NULL without memory; and what becomes of
 * it. */
struct hf_http_exchange *hf_http_exchange_new(struct hf_http_conn *conn);
void hf_http_exchange_free(struct hf_http_exchange *x);

/* conn.c: look at the connection at the end of the round; hold it back no more; close and free
 * it. */
void hf_http_mark(struct hf_http_conn *conn);
void hf_http_let_go(struct hf_http_conn *conn);
void hf_http_drop(struct hf_http_conn *conn);
/* Let in up to HF_HTTP_ACCEPTS clients that wait. True: there may be more of them. */
bool hf_http_accept(struct hf_http_thread *thread);
/* The same, as the thread's listener calls it; and let that be called. */
void hf_http_on_listener(struct hf_source *listener, uint32_t events);
void hf_http_listen_again(struct hf_http_thread *thread);

/* timer.c: give the connection a time from now on; what it waits for now; close those whose time is
 * over. */
void hf_http_timer_set(struct hf_http_conn *conn, enum hf_http_timer timer);
enum hf_http_timer hf_http_timer_due(const struct hf_http_conn *conn);
void hf_http_timers_run(struct hf_http_thread *thread);

/* join.c: connections that are in no group. Add a new one; take it off the list; close one for
 * another, an idle one if there is any: false if there is none; close those whose time is over. */
void hf_http_unknown_add(struct hf_http_conn *conn);
void hf_http_unknown_remove(struct hf_http_conn *conn);
bool hf_http_unknown_shed(struct hf_http_thread *thread);
void hf_http_unknown_run(struct hf_http_thread *thread);
/* The group in which what the connection has counts; NULL: in none, because none has to be
 * joined. */
struct hf_http_group *hf_http_counts_in(const struct hf_http_conn *conn);
/* Count the bytes that the connection keeps, of requests and of answers, as they are now. */
void hf_http_tally(struct hf_http_conn *conn);
/* The share of a group; NULL is one too. */
struct hf_http_share *hf_http_share_of(struct hf_http_thread *thread,
                                       const struct hf_http_group *group);
/* The answer to x may take so many bytes when it is made; 0: it is made. */
void hf_http_due(struct hf_http_exchange *x, uint64_t bytes);
/* May what is being made for the connection's group, or for all, take as much as it may? */
bool hf_http_due_full(const struct hf_http_conn *conn);
/* How many of so many connections are kept for those in no group: see hf_http_limits.must_join. */
unsigned hf_http_unknown_share(unsigned connections);
/* May this thread have one more without closing one? */
bool hf_http_unknown_fits(const struct hf_http_thread *thread);

/* input.c: read once and hand over what is complete; and again what was left, after an answer made
 * room. */
void hf_http_input(struct hf_http_conn *conn);
void hf_http_input_again(struct hf_http_conn *conn);
/* Refuse whatever is coming in with the server's own words and close behind it. */
void hf_http_turn_down(struct hf_http_conn *conn, const struct hf_http_refusal *why);
/* Has the connection, or its group, had its share of this round? */
bool hf_http_share_used(const struct hf_http_conn *conn);
/* Would it be right to read on? Not while enough is on its way or waits to be sent. */
bool hf_http_may_read(const struct hf_http_conn *conn);
/* Drop what belongs to an unfinished request. */
void hf_http_input_free(struct hf_http_conn *conn);

/* output.c: render what is done, send what can be sent. conn->broken if that failed. */
void hf_http_output(struct hf_http_conn *conn);
/* One answer to a connection that is not let in; fd is not closed. */
void hf_http_turn_away(struct hf_http_thread *thread, int fd, const struct hf_http_refusal *why);
bool hf_http_output_waits(const struct hf_http_conn *conn);
/* Is an answer done, and not rendered because its group has had its share of this round? */
bool hf_http_render_waits(const struct hf_http_conn *conn);
void hf_http_file_close(struct hf_http_conn *conn); /* if there is one */
bool hf_http_file_late(const struct hf_http_conn *conn);

#endif
