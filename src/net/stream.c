#include "net/stream.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* EINTR is a reason to retry, like EAGAIN. */
static ssize_t moved(ssize_t n)
{
    if (n < 0 && (errno == EINTR || errno == EWOULDBLOCK))
        errno = EAGAIN;
    return n;
}

static ssize_t moved_tls(ssize_t n, enum hf_tls_wants wants)
{
    if (n < 0)
        errno = wants == HF_TLS_WANTS_NOTHING ? ECONNRESET : EAGAIN;
    return n;
}

ssize_t hf_stream_read(struct hf_stream *s, void *data, size_t size)
{
    enum hf_tls_wants wants;
    if (!s->tls)
        return moved(recv(s->fd, data, size, 0));
    ssize_t n = hf_tls_read(s->tls, data, size, &wants);
    s->read_wants_write = n < 0 && wants == HF_TLS_WANTS_WRITE;
    return moved_tls(n, wants);
}

ssize_t hf_stream_write(struct hf_stream *s, const void *data, size_t size)
{
    enum hf_tls_wants wants;
    if (!s->tls)
        return moved(send(s->fd, data, size, MSG_NOSIGNAL));
    ssize_t n = hf_tls_write(s->tls, data, size, &wants);
    s->write_wants_read = n < 0 && wants == HF_TLS_WANTS_READ;
    return moved_tls(n, wants);
}

bool hf_stream_finish(struct hf_stream *s)
{
    hf_tls_finish(s->tls);
    return shutdown(s->fd, SHUT_WR) == 0;
}

void hf_stream_close(struct hf_stream *s)
{
    hf_tls_close(s->tls);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct hf_stream){ .fd = -1 };
}
