#define _GNU_SOURCE /* accept4, SOCK_NONBLOCK */
#include "postgres/kit/relay_process.h"

#include "postgres/kit/postgres.h"
#include "server/kit/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNS_MAX = 512,
    PIECE = 64 << 10,
    WAITING_MAX = 1 << 20,
    LOOK_MS = 200,
    CONNECT_MS = 1000,
    LETTERS = 3
};

/* Bytes on their way in one direction: some may be written, some have been looked at but are kept,
 * some have not been
 * looked at because their message is not whole.   0 <= released <= seen <= size <= room */
struct direction {
    uint8_t *data;
    size_t released, seen, size, room;
    int64_t due; /* the released ones are not written before */
    bool ended;  /* no more will come from its source */
};

enum phase {
    PASSING,
    CUTTING_UP,   /* cut when the released bytes are with the server */
    CUTTING_DOWN, /* cut when the released bytes are with the client */
    SWALLOWING,   /* nothing for the client; cut when the COMMIT is answered */
    COLLECTING,   /* the COMMIT is there, what it needs to be answered is not yet */
    LEAVING,      /* the client is cut when the COMMIT is with the server */
    LATE,         /* the client is cut; the COMMIT goes to the server at `late` */
    DRAINING,     /* the client is cut; the server may finish */
    WATCHING,     /* the answer to the COMMIT will be cut in the middle */
    MUTE_UP,      /* the COMMIT is kept, and what follows in both directions */
    MUTE_DOWN     /* what the server says is kept */
};

struct conn {
    int client, server; /* -1: not open */
    bool reached;       /* a connection to the server was tried */
    struct direction up, down;
    struct relay_wire wire;
    enum phase phase;
    enum relay_fault fault;
    struct relay_place commit;
    uint64_t order; /* by which of the orders */
    int64_t late;
};

static struct {
    int control, reserved, listener;
    int port, target;
    char name[RELAY_NAME_MAX];
    enum relay_fault fault;
    uint64_t times, order;
    int late_ms, delay_ms;
    bool hole;
    bool hurry; /* there may be something to do though nothing comes */
    uint64_t counts[RELAY_COUNTERS];
    struct conn *conns[CONNS_MAX];
    size_t conn_count;
} relay;

/* ---- Connections ---- */

static void close_end(int *fd)
{
    if (*fd >= 0) {
        shutdown(*fd, SHUT_RDWR);
        close(*fd);
    }
    *fd = -1;
}

static void cut(struct conn *c)
{
    close_end(&c->client);
    close_end(&c->server);
}

/* A fault has happened as ordered. */
static void happened(const struct conn *c)
{
    relay.counts[c->fault]++;
}

static void listen_again(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)relay.port) };
    int on = 1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    relay.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (relay.listener < 0 ||
        setsockopt(relay.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(relay.listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(relay.listener, 128) != 0)
        _exit(1);
}

static void take(void)
{
    int on = 1;
    int fd = accept4(relay.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct conn *c = fd >= 0 ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        close_end(&fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->client = fd;
    c->server = -1;
    relay.conns[relay.conn_count++] = c;
    relay.counts[RELAY_CONNECTIONS]++;
}

static void reach_server(struct conn *c)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)relay.target) };
    int on = 1, error = 0;
    socklen_t size = sizeof error;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->reached = true;
    c->server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->server < 0)
        _exit(1);
    setsockopt(c->server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct pollfd one = { .fd = c->server, .events = POLLOUT };
    if (connect(c->server, (struct sockaddr *)&at, sizeof at) != 0 && errno != EINPROGRESS)
        error = errno;
    else if (poll(&one, 1, CONNECT_MS) <= 0)
        error = ETIMEDOUT;
    else
        getsockopt(c->server, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0)
        return;
    relay.counts[RELAY_UNREACHABLE]++;
    cut(c);
}

static void drop(size_t i)
{
    struct conn *c = relay.conns[i];
    cut(c);
    free(c->up.data);
    free(c->down.data);
    free(c);
    relay.conns[i] = relay.conns[--relay.conn_count];
}

/* ---- Lanes ---- */

/* Take what has come. An error is an end: what came before it still goes on. */
static void receive(struct direction *l, int fd)
{
    if (l->room - l->size < PIECE) {
        l->room = l->room * 2 + PIECE;
        l->data = realloc(l->data, l->room);
        if (!l->data)
            _exit(1);
    }
    ssize_t n = recv(fd, l->data + l->size, l->room - l->size, 0);
    if (n > 0)
        l->size += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        l->ended = true;
}

static void remove_at(struct direction *l, size_t from, size_t size)
{
    memmove(l->data + from, l->data + from + size, l->size - from - size);
    l->size -= size;
}

static void release(struct direction *l, size_t upto, int64_t now)
{
    if (l->released == 0 && upto > 0)
        l->due = now + relay.delay_ms;
    l->released = upto;
}

/* Write what may be written. Whoever does not listen any more misses it. */
static void forward(struct direction *l, int fd, int64_t now)
{
    if (l->released == 0 || l->due > now)
        return;
    ssize_t n = fd < 0 ? (ssize_t)l->released : send(fd, l->data, l->released, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    size_t gone = n < 0 ? l->released : (size_t)n;
    remove_at(l, 0, gone);
    l->released -= gone;
    l->seen -= gone;
}

/* ---- The COMMIT on its way up ---- */

/* What is ordered for a COMMIT, at the moment when it was seen and not yet released. `from` is
 * where it begins. */
static void begin_fault(struct conn *c, size_t from)
{
    static const enum phase next[RELAY_FAULTS] = {
        [RELAY_CUT_BEFORE] = CUTTING_UP,  [RELAY_CUT_AFTER] = SWALLOWING,
        [RELAY_CUT_DURING] = COLLECTING,  [RELAY_CUT_LATE] = COLLECTING,
        [RELAY_CUT_IN_ANSWER] = WATCHING, [RELAY_MUTE_BEFORE] = MUTE_UP,
        [RELAY_MUTE_AFTER] = MUTE_DOWN,
    };
    relay.times--;
    c->fault = relay.fault;
    c->order = relay.order;
    c->phase = next[c->fault];
    if (c->phase == CUTTING_UP)
        c->up.size = c->up.seen = from;
    if (c->phase == MUTE_UP || c->phase == MUTE_DOWN)
        happened(c);
}

static bool keeps(const struct conn *c)
{
    return c->phase == MUTE_UP || (c->phase == COLLECTING && c->fault == RELAY_CUT_LATE);
}

/* All that the server needs to answer the COMMIT is there. */
static void collected(struct conn *c, int64_t now)
{
    c->phase = LEAVING;
    if (c->fault == RELAY_CUT_LATE) {
        c->phase = LATE;
        c->late = now + relay.late_ms;
        close_end(&c->client);
        happened(c);
    }
}

static void look_up(struct conn *c, int64_t now)
{
    struct direction *l = &c->up;
    while (l->seen < l->size && c->client >= 0 && c->phase != MUTE_UP && c->phase != CUTTING_UP &&
           c->phase != LEAVING) {
        size_t from = l->seen;
        struct relay_message m =
            relay_wire_client(&c->wire, l->data + from, l->size - from, relay.name);
        if (m.kind == RELAY_WIRE_BROKEN)
            cut(c);
        if (m.size == 0)
            return;
        if (m.kind == RELAY_WIRE_NO_TLS) {
            remove_at(l, from, m.size);
            (void)!send(c->client, "N", 1, MSG_NOSIGNAL);
            continue;
        }
        l->seen += m.size;
        if (m.kind == RELAY_WIRE_COMMIT) {
            relay.counts[RELAY_COMMITS]++;
            if (relay.times > 0 && c->phase == PASSING) {
                c->commit = m.place;
                begin_fault(c, from);
            }
        }
        if (!keeps(c))
            release(l, l->seen, now);
        if (m.ends && c->phase == COLLECTING)
            collected(c, now);
    }
}

/* ---- Its answer on the way down ---- */

static bool is_answer(const struct conn *c, const struct relay_message *m)
{
    return m->kind == RELAY_WIRE_COMMITTED && m->place.stretch == c->commit.stretch &&
           m->place.number == c->commit.number;
}

/* The end of the COMMIT's stretch: if it was not answered before, it never will be. */
static bool is_over(const struct conn *c, const struct relay_message *m)
{
    return m->kind == RELAY_WIRE_READY && m->place.stretch == c->commit.stretch;
}

/* The server refused the COMMIT whose answer was to be cut: the order stands again. */
static void take_back(struct conn *c)
{
    if (relay.order == c->order)
        relay.times++;
    c->phase = PASSING;
}

/* True if the message is for the client. */
static bool look_at_answer(struct conn *c, const struct relay_message *m)
{
    bool answered = is_answer(c, m) || is_over(c, m);
    switch (c->phase) {
    case SWALLOWING:
        if (answered) {
            happened(c);
            cut(c);
        }
        return false;
    case DRAINING:
        if (answered)
            cut(c);
        return false;
    case WATCHING:
        if (is_answer(c, m))
            c->phase = CUTTING_DOWN;
        else if (is_over(c, m))
            take_back(c);
        return true;
    case LEAVING:
    case LATE: return false;
    default: return true;
    }
}

static void look_down(struct conn *c, int64_t now)
{
    struct direction *l = &c->down;
    while (l->seen < l->size && c->server >= 0 && c->phase != CUTTING_DOWN &&
           c->phase != MUTE_DOWN) {
        struct relay_message m = relay_wire_server(&c->wire, l->data + l->seen, l->size - l->seen);
        if (m.kind == RELAY_WIRE_BROKEN)
            cut(c);
        if (m.size == 0)
            return;
        if (!look_at_answer(c, &m)) {
            remove_at(l, l->seen, m.size);
            continue;
        }
        l->seen += c->phase == CUTTING_DOWN ? 5 + LETTERS : m.size;
        release(l, l->seen, now);
    }
}

/* ---- One turn of a connection ---- */

static bool reads_up(const struct conn *c)
{
    return c->client >= 0 && !c->up.ended && c->phase != MUTE_UP && c->phase != CUTTING_UP &&
           c->up.released < (relay.delay_ms ? 1 : WAITING_MAX);
}

static bool reads_down(const struct conn *c)
{
    return c->server >= 0 && !c->down.ended && c->phase != MUTE_UP && c->phase != MUTE_DOWN &&
           c->phase != CUTTING_DOWN && c->down.released < (relay.delay_ms ? 1 : WAITING_MAX);
}

/* An end that was closed is passed on when all before it was. */
static void pass_ends(struct conn *c, int64_t now)
{
    if (c->up.ended && c->phase == COLLECTING)
        collected(c, now);
    if (c->up.ended && c->up.seen == 0 && c->server >= 0)
        shutdown(c->server, SHUT_WR);
    if (c->down.ended && c->down.released == 0) {
        if (c->phase == SWALLOWING)
            happened(c); /* the server went away while it was asked to commit */
        cut(c);
    }
}

static void serve(struct conn *c, int client_events, int server_events, int64_t now)
{
    if (!c->reached)
        reach_server(c);
    if (client_events && reads_up(c))
        receive(&c->up, c->client);
    if (server_events && reads_down(c))
        receive(&c->down, c->server);
    look_up(c, now);
    if (c->phase == LATE && now >= c->late) {
        release(&c->up, c->up.seen, now);
        c->phase = DRAINING;
    }
    look_down(c, now);
    forward(&c->up, c->server, now);
    if (c->phase != MUTE_UP && c->phase != MUTE_DOWN)
        forward(&c->down, c->client, now);
    if (c->phase == LEAVING && c->up.released == 0) {
        close_end(&c->client);
        c->phase = DRAINING;
        happened(c);
        look_down(c, now);
    }
    if ((c->phase == CUTTING_UP && c->up.released == 0) ||
        (c->phase == CUTTING_DOWN && c->down.released == 0)) {
        happened(c);
        cut(c);
    }
    pass_ends(c, now);
}

/* ---- Orders ---- */

static uint64_t open_count(void)
{
    uint64_t open = 0;
    for (size_t i = 0; i < relay.conn_count; i++)
        open += relay.conns[i]->client >= 0;
    return open;
}

static void cut_all(void)
{
    relay.counts[RELAY_CUT_ALL] += open_count();
    while (relay.conn_count > 0)
        drop(0);
}

static void refuse(bool on)
{
    if (on)
        close_end(&relay.listener);
    else if (relay.listener < 0)
        listen_again();
}

static void pass(int64_t now)
{
    relay.times = 0;
    relay.order++;
    relay.delay_ms = 0;
    relay.hole = false;
    refuse(false);
    for (size_t i = 0; i < relay.conn_count; i++) {
        struct conn *c = relay.conns[i];
        if (c->phase == LATE)
            c->late = now;
        if (c->phase != MUTE_UP && c->phase != MUTE_DOWN)
            continue;
        release(&c->up, c->up.seen, now);
        c->phase = PASSING;
    }
}

static uint64_t obey(const struct relay_order *o, int64_t now)
{
    switch (o->kind) {
    case RELAY_ORDER_TARGET: relay.target = (int)o->value; break;
    case RELAY_ORDER_NAME: memcpy(relay.name, o->name, sizeof relay.name); break;
    case RELAY_ORDER_AT_COMMIT:
        relay.fault = (enum relay_fault)o->value;
        relay.times = o->times;
        relay.order++;
        break;
    case RELAY_ORDER_LATE: relay.late_ms = (int)o->value; break;
    case RELAY_ORDER_HOLE: relay.hole = o->value; break;
    case RELAY_ORDER_DELAY: relay.delay_ms = (int)o->value; break;
    case RELAY_ORDER_REFUSE: refuse(o->value); break;
    case RELAY_ORDER_CUT: cut_all(); break;
    case RELAY_ORDER_PASS: pass(now); break;
    case RELAY_ORDER_COUNT: return o->value == RELAY_OPEN ? open_count() : relay.counts[o->value];
    }
    return 0;
}

static void take_order(int64_t now)
{
    struct relay_order order;
    ssize_t n = recv(relay.control, &order, sizeof order, 0);
    if (n != (ssize_t)sizeof order)
        _exit(0); /* the test is gone */
    uint64_t answer = obey(&order, now);
    relay.hurry = true;
    if (send(relay.control, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer)
        _exit(0);
}

/* ---- The loop ---- */

/* What to wait for at one end of a connection. A descriptor that nothing is wanted from must not be
 * shown to poll, which would tell that it was hung up again and again. */
static struct pollfd wish(int fd, bool reads, const struct direction *out, int64_t now)
{
    short events = 0;
    if (reads)
        events |= POLLIN;
    if (out->released > 0 && out->due <= now)
        events |= POLLOUT;
    return (struct pollfd){ .fd = events ? fd : -1, .events = events };
}

/* When a connection wants a turn by itself. */
static int64_t next_turn(const struct conn *c, int64_t now)
{
    int64_t at = now + LOOK_MS;
    if (!c->reached)
        return now;
    if (c->up.released > 0 && c->up.due > now && c->up.due < at)
        at = c->up.due;
    if (c->down.released > 0 && c->down.due > now && c->down.due < at)
        at = c->down.due;
    if (c->phase == LATE && c->late < at)
        at = c->late;
    return at;
}

static void turn(void)
{
    static struct pollfd fds[2 + 2 * CONNS_MAX];
    int64_t now = server_clock_ms(), wake = now + LOOK_MS;
    size_t count = relay.conn_count;
    fds[0] = (struct pollfd){ .fd = relay.control, .events = POLLIN };
    fds[1] = (struct pollfd){ .fd = count < CONNS_MAX ? relay.listener : -1, .events = POLLIN };
    for (size_t i = 0; i < count; i++) {
        const struct conn *c = relay.conns[i];
        bool muted = c->phase == MUTE_UP || c->phase == MUTE_DOWN;
        static const struct direction nothing;
        fds[2 + 2 * i] =
            wish(relay.hole ? -1 : c->client, reads_up(c), muted ? &nothing : &c->down, now);
        fds[3 + 2 * i] = wish(relay.hole ? -1 : c->server, reads_down(c), &c->up, now);
        if (!relay.hole && next_turn(c, now) < wake)
            wake = next_turn(c, now);
    }
    if (poll(fds, 2 + 2 * count, relay.hurry ? 0 : (int)(wake - now)) < 0 && errno != EINTR)
        _exit(1);
    relay.hurry = false;
    now = server_clock_ms();
    for (size_t i = count; i-- > 0 && !relay.hole;) {
        serve(relay.conns[i], fds[2 + 2 * i].revents, fds[3 + 2 * i].revents, now);
        if (relay.conns[i]->client < 0 && relay.conns[i]->server < 0)
            drop(i);
    }
    if (fds[1].revents)
        take();
    if (fds[0].revents)
        take_order(now);
}

_Noreturn void relay_process_run(int control, int target, pid_t parent)
{
    relay.control = control;
    relay.target = target;
    relay.late_ms = 200;
    relay.reserved = postgres_reserve_port(&relay.port);
    listen_again();
    uint64_t port = (uint64_t)relay.port;
    if (send(control, &port, sizeof port, MSG_NOSIGNAL) != (ssize_t)sizeof port)
        _exit(1);
    while (getppid() == parent)
        turn();
    _exit(0);
}
