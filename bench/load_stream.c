#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool hf_load_fail(struct hf_load_conn *c, const char *what)
{
    snprintf(c->why, sizeof c->why, "%s%s%s", what, errno ? ": " : "",
             errno ? strerror(errno) : "");
    return false;
}

bool hf_load_buffer_reserve(struct hf_load_buffer *b, size_t more)
{
    if (b->room - b->length >= more)
        return true;
    size_t room = b->room ? b->room : 2048;
    while (room - b->length < more)
        room *= 2;
    char *grown = realloc(b->bytes, room);
    if (!grown)
        return false;
    b->bytes = grown;
    b->room = room;
    return true;
}

int hf_load_stream_dial(const struct hf_load_address *server)
{
    const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM,
                                     .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    if (getaddrinfo(server->host, server->port, &wanted, &found) != 0) {
        errno = EINVAL;
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        int why = errno;
        close(fd);
        fd = -1;
        errno = why;
    }
    freeaddrinfo(found);
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

bool hf_load_stream_connect(const struct hf_load_options *o, struct hf_load_conn *c)
{
    c->fd = hf_load_stream_dial(&o->servers[c->server]);
    if (c->fd < 0)
        return hf_load_fail(c, "connect");
    if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0)
        return hf_load_fail(c, "fcntl");
    return true;
}

bool hf_load_stream_flush(struct hf_load_conn *c)
{
    while (c->sent < c->out.length) {
        ssize_t n = send(c->fd, c->out.bytes + c->sent, c->out.length - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            return hf_load_fail(c, "send");
        if (n < 0)
            break;
        c->sent += (size_t)n;
    }
    c->writing = c->sent < c->out.length;
    if (!c->writing)
        c->sent = c->out.length = 0;
    return true;
}

bool hf_load_stream_fill(struct hf_load_conn *c)
{
    enum { AT_ONCE = 65536 };
    /* A small answer needs a small buffer; a buffer that was filled to the brim doubles. */
    size_t more = c->in.room - c->in.length;
    if (!hf_load_buffer_reserve(&c->in, more > 0 ? more : (c->in.room ? c->in.room : 4096)))
        return hf_load_fail(c, "memory");
    more = c->in.room - c->in.length;
    ssize_t n = recv(c->fd, c->in.bytes + c->in.length, more < AT_ONCE ? more : AT_ONCE, 0);
    if (n > 0) {
        c->in.length += (size_t)n;
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n == 0)
        errno = 0;
    return hf_load_fail(c, n == 0 ? "the server closed the connection" : "recv");
}

void hf_load_stream_eat(struct hf_load_conn *c, size_t bytes)
{
    c->in.length -= bytes;
    if (c->in.length > 0)
        memmove(c->in.bytes, c->in.bytes + bytes, c->in.length);
}

void hf_load_stream_close(struct hf_load_conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    free(c->in.bytes);
    free(c->out.bytes);
    c->in = c->out = (struct hf_load_buffer){ 0 };
}
