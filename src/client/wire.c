/* Bytes to and from the server, with a deadline on every wait. OpenSSL works on memory alone and the socket stays ours,
 * so that both kinds of connection wait in one place and no signal is raised when the server is gone. */
#include "base/clock.h"
#include "base/error.h"
#include "client/inner.h"
#include "net/socket.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
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

static bool no_memory(struct hf_wire_fault *why)
{
    return fail(why, false, "there is not enough memory");
}

/* ---- The socket ---- */

/* Wait until the socket is ready. True also when it is broken: the next call says how. */
static bool ready(int fd, short events, int64_t deadline, struct hf_wire_fault *why)
{
    for (;;) {
        int64_t left = deadline - hf_clock_monotonic_ms();
        struct pollfd p = { .fd = fd, .events = events };
        if (left <= 0)
            return fail(why, false, "the time for an answer has run out (--timeout D gives it more)");
        int n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return fail(why, false, "waiting for it failed: %s", strerror(errno));
    }
}

static bool socket_send(int fd, struct hf_bytes data, int64_t deadline, struct hf_wire_fault *why)
{
    const char *p = data.data;
    for (size_t at = 0; at < data.size;) {
        ssize_t n = send(fd, p + at, data.size - at, MSG_NOSIGNAL);
        if (n > 0)
            at += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!ready(fd, POLLOUT, deadline, why))
                return false;
        } else if (errno != EINTR)
            return fail(why, true, "the connection broke: %s", strerror(errno));
    }
    return true;
}

static ssize_t socket_receive(int fd, void *data, size_t size, int64_t deadline, struct hf_wire_fault *why)
{
    for (;;) {
        if (!ready(fd, POLLIN, deadline, why))
            return -1;
        ssize_t n = recv(fd, data, size, 0);
        if (n >= 0)
            return n;
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
            continue;
        fail(why, true, "the connection broke: %s", strerror(errno));
        return -1;
    }
}

/* ---- Connecting ---- */

/* Connect to one address. The socket, or -1 after filling why. */
static int address_try(const struct addrinfo *found, int64_t deadline, struct hf_wire_fault *why)
{
    struct hf_address address = { .size = found->ai_addrlen };
    memcpy(&address.addr, found->ai_addr, found->ai_addrlen);
    int fd = hf_socket_make(&address);
    int64_t soon = hf_clock_monotonic_ms() + HF_CLIENT_CONNECT_MS;
    if (fd < 0) {
        fail(why, false, "the system gives no socket: %s", strerror(-fd));
        return -1;
    }
    int error = hf_socket_connect(fd, &address);
    if (error == EINPROGRESS)
        error = ready(fd, POLLOUT, soon < deadline ? soon : deadline, why) ? hf_socket_error(fd) : ETIMEDOUT;
    if (error) {
        fail(why, true, "%s%s", strerror(error),
             error == ECONNREFUSED ? "; is it running (holdfast serve), and is this its address?" : "");
        close(fd);
        return -1;
    }
    return fd;
}

static bool dial(struct hf_wire *wire, const struct hf_client_url *url, int64_t deadline,
                 struct hf_wire_fault *why)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list = NULL;
    hints.ai_flags = AI_NUMERICSERV | (url->literal ? AI_NUMERICHOST : AI_ADDRCONFIG);
    int found = getaddrinfo(url->host, url->port, &hints, &list);
    if (found != 0)
        return fail(why, found == EAI_AGAIN, "its name is not known: %s", gai_strerror(found));
    for (const struct addrinfo *a = list; a && wire->fd < 0; a = a->ai_next)
        wire->fd = address_try(a, deadline, why);
    freeaddrinfo(list);
    return wire->fd >= 0;
}

/* ---- TLS ---- */

/* What OpenSSL says first is what went wrong. */
static const char *reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_error());
    return text ? text : "no reason given";
}

/* A handshake that failed. A certificate that is not trusted stays so; the rest is told as OpenSSL tells it. */
static bool fail_tls(const struct hf_wire *wire, struct hf_wire_fault *why)
{
    long verified = SSL_get_verify_result(wire->ssl);
    unsigned long code = ERR_peek_error();
    if (verified != X509_V_OK)
        return fail(why, false,
                    "its certificate is not trusted: %s (--tls-ca FILE trusts a private authority)",
                    X509_verify_cert_error_string(verified));
    if (ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER || ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST)
        return fail(why, false, "it does not speak TLS; perhaps the URL begins with http://");
    return fail(why, false, "TLS failed: %s", reason());
}

/* Send what OpenSSL has written. */
static bool tls_flush(const struct hf_wire *wire, int64_t deadline, struct hf_wire_fault *why)
{
    char data[4096];
    int n;
    while ((n = BIO_read(SSL_get_wbio(wire->ssl), data, sizeof data)) > 0)
        if (!socket_send(wire->fd, hf_mem(data, (size_t)n), deadline, why))
            return false;
    return true;
}

/* Receive something for OpenSSL to read. */
static bool tls_feed(const struct hf_wire *wire, int64_t deadline, struct hf_wire_fault *why)
{
    char data[4096];
    ssize_t n = socket_receive(wire->fd, data, sizeof data, deadline, why);
    if (n < 0)
        return false;
    if (n == 0)
        return fail(why, true, "the connection was closed");
    return BIO_write(SSL_get_rbio(wire->ssl), data, (int)n) == (int)n || no_memory(why);
}

/* A step of OpenSSL gave `result`: do what it waits for. True: try the step again. False: why is filled. */
static bool tls_wait(const struct hf_wire *wire, int result, int64_t deadline, struct hf_wire_fault *why)
{
    int wants = SSL_get_error(wire->ssl, result);
    if (wants == SSL_ERROR_WANT_READ || wants == SSL_ERROR_WANT_WRITE)
        return tls_flush(wire, deadline, why) &&
               (wants == SSL_ERROR_WANT_WRITE || tls_feed(wire, deadline, why));
    fail_tls(wire, why);
    struct hf_wire_fault ignored;
    (void)tls_flush(wire, hf_clock_monotonic_ms() + 100,
                    &ignored); /* the alert, so that the server knows too */
    return false;
}

/* Who is expected at the other end: the certificate must be for this name or address. */
static bool tls_expect(SSL *ssl, const struct hf_client_url *url)
{
    if (url->literal)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), url->host) == 1;
    char name[sizeof url->host]; /* OpenSSL takes no const here */
    memcpy(name, url->host, sizeof name);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static bool shake(struct hf_wire *wire, const struct hf_client_url *url, SSL_CTX *tls, int64_t deadline,
                  struct hf_wire_fault *why)
{
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    wire->ssl = SSL_new(tls);
    if (!wire->ssl || !in || !out) {
        BIO_free(in);
        BIO_free(out);
        return no_memory(why);
    }
    BIO_set_mem_eof_return(in, -1); /* empty means: wait for more */
    SSL_set_bio(wire->ssl, in, out);
    if (!tls_expect(wire->ssl, url))
        return fail(why, false, "TLS cannot be told whom to expect: %s", reason());
    for (;;) {
        ERR_clear_error();
        int n = SSL_connect(wire->ssl);
        if (n == 1)
            return tls_flush(wire, deadline, why);
        if (!tls_wait(wire, n, deadline, why))
            return false;
    }
}

SSL_CTX *hf_wire_context(const char *ca_file, struct hf_error *why)
{
    static const unsigned char http[] = "\x08http/1.1";
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    *why = (struct hf_error){ HF_NO_MEMORY, "there is not enough memory for TLS" };
    if (!tls || SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_alpn_protos(tls, http, sizeof http - 1) != 0) {
        SSL_CTX_free(tls);
        return NULL;
    }
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    ERR_clear_error();
    if (ca_file ? SSL_CTX_load_verify_locations(tls, ca_file, NULL) : SSL_CTX_set_default_verify_paths(tls))
        return tls;
    (void)hf_error_set(why, HF_INVALID_REQUEST,
                       "%.300s is not a readable file of certificates in PEM: %.100s",
                       ca_file ? ca_file : "what the system trusts", reason());
    SSL_CTX_free(tls);
    return NULL;
}

/* ---- Both kinds ---- */

bool hf_wire_open(struct hf_wire *wire, const struct hf_client_url *url, SSL_CTX *tls, int64_t deadline,
                  struct hf_wire_fault *why)
{
    *wire = (struct hf_wire){ .fd = -1 };
    if (dial(wire, url, deadline, why) && (!tls || shake(wire, url, tls, deadline, why)))
        return true;
    hf_wire_close(wire);
    return false;
}

void hf_wire_close(struct hf_wire *wire)
{
    SSL_free(wire->ssl);
    if (wire->fd >= 0)
        close(wire->fd);
    *wire = (struct hf_wire){ .fd = -1 };
}

bool hf_wire_quiet(const struct hf_wire *wire)
{
    struct pollfd p = { .fd = wire->fd, .events = POLLIN };
    return poll(&p, 1, 0) == 0;
}

bool hf_wire_write(struct hf_wire *wire, struct hf_bytes data, int64_t deadline, struct hf_wire_fault *why)
{
    if (!wire->ssl)
        return socket_send(wire->fd, data, deadline, why);
    for (;;) {
        size_t written;
        ERR_clear_error();
        int n = SSL_write_ex(wire->ssl, data.data, data.size, &written);
        if (n == 1) /* memory takes all of it at once */
            return tls_flush(wire, deadline, why);
        if (!tls_wait(wire, n, deadline, why))
            return false;
    }
}

ssize_t hf_wire_read(struct hf_wire *wire, void *data, size_t size, int64_t deadline,
                     struct hf_wire_fault *why)
{
    if (!wire->ssl)
        return socket_receive(wire->fd, data, size, deadline, why);
    for (;;) {
        size_t got;
        ERR_clear_error();
        int n = SSL_read_ex(wire->ssl, data, size, &got);
        if (n == 1)
            return (ssize_t)got;
        if (SSL_get_error(wire->ssl, n) == SSL_ERROR_ZERO_RETURN)
            return 0;
        if (!tls_wait(wire, n, deadline, why))
            return -1;
    }
}
