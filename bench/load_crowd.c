/* Crowds of connections to Holdfast: idle ones, whose memory is measured, and slow ones, which are
 * there to disturb the others. And the walk over the resources that counts what is held. */
#include "load.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static bool refuse(const char *what)
{
    fprintf(stderr, "hf_load: holdfast: %s\n", what);
    return false;
}

/* ---- Idle connections ---- */

/* Every connection puts the same resource: a request with a body, so that connections are measured
 * which have been of use, and the store does not grow with them. */
static bool ask(const struct hf_load_options *o, struct hf_load_conn *c)
{
    const uint64_t number = 0;
    c->busy = true;
    c->due = 1;
    return o->peer->send(o, c, &number, 1) || refuse(c->why);
}

static bool answer_await(const struct hf_load_options *o, struct hf_load_conn *c,
                         struct hf_load_tally *t)
{
    while (c->busy) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        if (poll(&p, 1, 30000) <= 0)
            return refuse("no answer for 30 s");
        if (!o->peer->receive(o, c, t))
            return refuse(c->why);
    }
    return t->wrong == 0 || refuse(t->first_wrong);
}

/* All ask before the first is listened to: a server that keeps what each of them needed will show
 * it. */
static bool crowd_open(const struct hf_load_options *o, struct hf_load_conn *conns,
                       struct hf_load_tally *t)
{
    for (unsigned i = 0; i < o->connections; i++)
        if (!o->peer->connect(o, &conns[i]))
            return refuse(conns[i].why);
    for (unsigned i = 0; i < o->connections; i++)
        if (!ask(o, &conns[i]))
            return false;
    for (unsigned i = 0; i < o->connections; i++)
        if (!answer_await(o, &conns[i], t))
            return false;
    return true;
}

static void crowd_close(const struct hf_load_options *o, struct hf_load_conn *conns, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        o->peer->close(&conns[i]);
}

static bool usage_read(const struct hf_load_options *o, struct hf_load_usage *out)
{
    return hf_load_usage_memory(o, out) || refuse("the server's memory may not be read");
}

bool hf_load_idle(const struct hf_load_options *o)
{
    enum { WARM = 64 };
    struct hf_load_usage before = { 0 }, after = { 0 };
    struct hf_load_conn *conns = calloc(o->connections, sizeof *conns);
    if (!conns)
        return refuse("memory");
    for (unsigned i = 0; i < o->connections; i++)
        conns[i].fd = -1;
    /* Some requests first, on one connection: what the server sets up for the first is not the
     * crowd's. */
    static struct hf_load_tally tally;
    bool done = o->peer->connect(o, &conns[0]) || refuse(conns[0].why);
    for (unsigned i = 0; done && i < WARM; i++)
        done = ask(o, &conns[0]) && answer_await(o, &conns[0], &tally);
    crowd_close(o, conns, 1);
    done = done && usage_read(o, &before) && crowd_open(o, conns, &tally) && usage_read(o, &after);
    if (done)
        printf("connections %u\nidle_bytes %.0f\nidle_private_bytes %.0f\n", o->connections,
               ((double)after.memory_bytes - (double)before.memory_bytes) / o->connections,
               ((double)after.private_bytes - (double)before.private_bytes) / o->connections);
    crowd_close(o, conns, o->connections);
    free(conns);
    return done;
}

/* ---- Slow senders ---- */

struct slow {
    int fd;
    size_t sent;
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

/* Every other one sends its head at once and trickles the body; the rest trickle the head. */
static bool slow_dial(const struct hf_load_options *o, struct slow *s, bool head_at_once,
                      const char *head)
{
    s->sent = 0;
    s->fd = hf_load_stream_dial(&o->servers[0]);
    if (s->fd < 0)
        return false;
    if (head_at_once)
        s->sent = strlen(head);
    return send(s->fd, head, s->sent, MSG_NOSIGNAL) == (ssize_t)s->sent;
}

/* One byte more. False: the server has closed this one, as it may. */
static bool slow_step(struct slow *s, const char *head)
{
    char drop[1024];
    ssize_t n = recv(s->fd, drop, sizeof drop, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN))
        return false;
    char byte = s->sent < strlen(head) ? head[s->sent] : ' ';
    if (send(s->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        return false;
    s->sent++;
    return true;
}

bool hf_load_slow(const struct hf_load_options *o)
{
    enum { TICKS = 100 }; /* a second; each connection has its turn in one of them */
    char head[512];
    struct slow *all = calloc(o->connections, sizeof *all);
    uint64_t closed = 0;
    struct sigaction action = { .sa_handler = stop };
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    snprintf(head, sizeof head,
             "POST /v1/holds HTTP/1.1\r\nHost: %s:%s\r\nContent-Type: application/json\r\n"
             "Idempotency-Key: slow\r\nContent-Length: 4000\r\n\r\n",
             o->servers[0].host, o->servers[0].port);
    bool done = all != NULL;
    for (unsigned i = 0; done && i < o->connections; i++)
        done = slow_dial(o, &all[i], i % 2 == 1, head);
    if (!done)
        refuse("a slow sender could not connect");
    printf("ready\n");
    fflush(stdout);
    for (unsigned tick = 0; done && !stopped; tick++) {
        for (unsigned i = tick % TICKS; done && i < o->connections; i += TICKS) {
            if (slow_step(&all[i], head))
                continue;
            closed++;
            close(all[i].fd);
            done = slow_dial(o, &all[i], i % 2 == 1, head) ||
                   refuse("a slow sender could not reconnect");
        }
        const struct timespec pause = { .tv_nsec = 1000000000 / TICKS };
        nanosleep(&pause, NULL);
    }
    printf("slow_connections %u\nslow_closed_by_server %llu\n", o->connections,
           (unsigned long long)closed);
    for (unsigned i = 0; all && i < o->connections; i++)
        close(all[i].fd);
    free(all);
    return done;
}

/* ---- What is held ---- */

/* Ask on a blocking connection; in has the whole answer. Answers the head's length, 0 on
 * failure. */
static size_t fetch(const struct hf_load_options *o, struct hf_load_conn *c, const char *cursor,
                    struct hf_load_head *head)
{
    char request[4096];
    int n = snprintf(request, sizeof request,
                     "GET /v1/resources?limit=1000%s%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n",
                     cursor[0] ? "&cursor=" : "", cursor, o->servers[0].host, o->servers[0].port);
    if (n >= (int)sizeof request || send(c->fd, request, (size_t)n, MSG_NOSIGNAL) != n)
        return 0;
    for (;;) {
        if (!hf_load_stream_fill(c))
            return 0;
        size_t length = hf_load_head_parse(c->in.bytes, c->in.length, head);
        if (length > 0 && (!head->has_body_length || head->status != 200))
            return 0;
        if (length > 0 && c->in.length >= length + head->body)
            return length;
    }
}

static uint64_t held_sum(const char *body, size_t length, uint64_t *resources)
{
    static const char mark[] = "\"held\":";
    uint64_t sum = 0;
    const char *at = body;
    while ((at = memmem(at, length - (size_t)(at - body), mark, sizeof mark - 1))) {
        at += sizeof mark - 1;
        sum += strtoull(at, NULL, 10);
        ++*resources;
    }
    return sum;
}

/* The next page's cursor, made fit for a URL; empty if there is none. */
static void cursor_take(const char *body, size_t length, char *out, size_t room)
{
    static const char mark[] = "\"next_cursor\":\"";
    const char *at = memmem(body, length, mark, sizeof mark - 1), *end = body + length;
    size_t n = 0;
    for (at = at ? at + sizeof mark - 1 : end; at < end && *at != '"' && n + 4 < room; at++) {
        if (isalnum((unsigned char)*at) || strchr("-._~", *at))
            out[n++] = *at;
        else
            n += (size_t)snprintf(out + n, room - n, "%%%02X", (unsigned)(unsigned char)*at);
    }
    out[n] = '\0';
}

bool hf_load_held(const struct hf_load_options *o)
{
    struct hf_load_conn c = { .fd = hf_load_stream_dial(&o->servers[0]) };
    char cursor[2048] = "";
    uint64_t held = 0, resources = 0;
    bool done = c.fd >= 0;
    while (done) {
        struct hf_load_head head;
        size_t length = fetch(o, &c, cursor, &head);
        done = length > 0;
        if (!done)
            break;
        held += held_sum(c.in.bytes + length, head.body, &resources);
        cursor_take(c.in.bytes + length, head.body, cursor, sizeof cursor);
        hf_load_stream_eat(&c, length + head.body);
        if (cursor[0] == '\0')
            break;
    }
    hf_load_stream_close(&c);
    if (!done)
        return refuse("the resources could not be listed");
    printf("held %llu\nresources %llu\n", (unsigned long long)held, (unsigned long long)resources);
    return true;
}
