/* Send and receive bytes, with a deadline on every wait. */
#include "base/clock.h"
#include "client/inner.h"
#include "net/socket.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static bool fail(struct hf_wire_fault *why, bool transient,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    why->transient = transient;
    return false;
}

/* Wait until the socket is ready. True also if it is broken: the next call reports the error. */
static bool ready(int fd, short events, int64_t deadline, struct hf_wire_fault *why)
{
    for (;;) {
        int64_t left = deadline - hf_clock_monotonic_ms();
        struct pollfd p = { .fd = fd, .events = events };
        if (left <= 0)
            return fail(why, false,
                        "timeout while waiting for the answer (use --timeout D for more time)");
        int n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return fail(why, false, "waiting for it failed: %s", strerror(errno));
    }
}

/* The stream is broken. Retrying does not help if the server is the wrong one; it may help if a
 * socket failed. */
static bool fail_stream(const struct hf_stream *wire, int error, struct hf_wire_fault *why)
{
    struct hf_tls_failure f = { HF_TLS_CUT, error, NULL };
    if (wire->tls)
        f = hf_tls_failure(wire->tls);
    switch (f.fault) {
    case HF_TLS_CUT: return fail(why, true, "the connection broke: %s", strerror(f.error));
    case HF_TLS_ENDED: return fail(why, true, "the connection was closed");
    case HF_TLS_UNTRUSTED:
        return fail(why, false,
                    "its certificate is not trusted: %s (use --tls-ca FILE for a private "
                    "authority)",
                    f.reason);
    case HF_TLS_UNSPOKEN: return fail(why, false, "it does not use TLS; try http:// in the URL");
    case HF_TLS_REFUSED: break;
    }
    return fail(why, false, "TLS failed: %s", f.reason);
}

/* ---- Connecting ---- */

/* Connect to one address. Returns the socket, or -1 after filling why. */
static int address_try(const struct addrinfo *found, int64_t deadline, struct hf_wire_fault *why)
{
    struct hf_address address = { .size = found->ai_addrlen };
    memcpy(&address.addr, found->ai_addr, found->ai_addrlen);
    int fd = hf_socket_make(&address);
    int64_t soon = hf_clock_monotonic_ms() + HF_CLIENT_CONNECT_MS;
    if (fd < 0) {
        fail(why, false, "cannot create a socket: %s", strerror(-fd));
        return -1;
    }
    int error = hf_socket_connect(fd, &address);
    if (error == EINPROGRESS)
        error = ready(fd, POLLOUT, soon < deadline ? soon : deadline, why) ? hf_socket_error(fd)
                                                                           : ETIMEDOUT;
    if (error) {
        fail(why, true, "%s%s", strerror(error),
             error == ECONNREFUSED ? "; is it running (holdfast serve), and is this its address?"
                                   : "");
        close(fd);
        return -1;
    }
    return fd;
}

static bool dial(struct hf_stream *wire, const struct hf_client_url *url, int64_t deadline,
                 struct hf_wire_fault *why)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list = NULL;
    hints.ai_flags = AI_NUMERICSERV | (url->literal ? AI_NUMERICHOST : AI_ADDRCONFIG);
    int found = getaddrinfo(url->host, url->port, &hints, &list);
    if (found != 0)
        return fail(why, found == EAI_AGAIN, "cannot resolve its name: %s", gai_strerror(found));
    for (const struct addrinfo *a = list; a && wire->fd < 0; a = a->ai_next)
        wire->fd = address_try(a, deadline, why);
    freeaddrinfo(list);
    return wire->fd >= 0;
}

/* Do the TLS handshake, so that nothing is sent before the server is authenticated. */
static bool shake(struct hf_stream *wire, const struct hf_client_url *url, struct hf_tls *tls,
                  int64_t deadline, struct hf_wire_fault *why)
{
    wire->tls = hf_tls_connect(tls, wire->fd, &(struct hf_tls_peer){ url->host, url->literal });
    if (!wire->tls)
        return fail(why, false, "out of memory");
    enum hf_tls_wants wants;
    while (hf_tls_shake(wire->tls, &wants) != 1) {
        if (wants == HF_TLS_WANTS_NOTHING)
            return fail_stream(wire, 0, why);
        if (!ready(wire->fd, wants == HF_TLS_WANTS_WRITE ? POLLOUT : POLLIN, deadline, why))
            return false;
    }
    return true;
}

bool hf_wire_open(struct hf_stream *wire, const struct hf_client_url *url, struct hf_tls *tls,
                  int64_t deadline, struct hf_wire_fault *why)
{
    *wire = (struct hf_stream){ .fd = -1 };
    if (dial(wire, url, deadline, why) && (!tls || shake(wire, url, tls, deadline, why)))
        return true;
    hf_stream_close(wire);
    return false;
}

/* ---- Bytes ---- */

bool hf_wire_quiet(const struct hf_stream *wire)
{
    struct pollfd p = { .fd = wire->fd, .events = POLLIN };
    return poll(&p, 1, 0) == 0;
}

bool hf_wire_write(struct hf_stream *wire, struct hf_bytes data, int64_t deadline,
                   struct hf_wire_fault *why)
{
    const char *p = data.data;
    for (size_t at = 0; at < data.size;) {
        ssize_t n = hf_stream_write(wire, p + at, data.size - at);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EAGAIN)
            return fail_stream(wire, errno, why);
        else if (!ready(wire->fd, wire->write_wants_read ? POLLIN : POLLOUT, deadline, why))
            return false;
    }
    return true;
}

ssize_t hf_wire_read(struct hf_stream *wire, void *data, size_t size, int64_t deadline,
                     struct hf_wire_fault *why)
{
    short events = POLLIN;
    for (;;) {
        /* ready() checks the deadline even if bytes have arrived, so that an endless answer cannot
         * block the client for ever. */
        if (!hf_stream_pending(wire) && !ready(wire->fd, events, deadline, why))
            return -1;
        ssize_t n = hf_stream_read(wire, data, size);
        if (n >= 0)
            return n;
        if (errno != EAGAIN) {
            (void)fail_stream(wire, errno, why);
            return -1;
        }
        events = wire->read_wants_write ? POLLOUT : POLLIN;
    }
}
