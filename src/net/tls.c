#include "net/tls.h"

#include "base/assert.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct hf_tls {
    atomic_size_t owners;
    SSL_CTX *ctx;
    BIO_METHOD *socket; /* owned; lives as long as the last connection made with it */
};

struct hf_tls_conn {
    struct hf_tls *tls; /* a reference */
    SSL *ssl;
    int fd;
    /* OpenSSL's state must not be used any more, not even for a close_notify; or it was sent. */
    bool broken;
    bool mute;           /* the socket accepts no more bytes */
    bool ended;          /* the peer has closed the socket */
    int error;           /* errno of the socket when it failed; 0: it did not */
    unsigned long fault; /* OpenSSL's error when the connection broke; 0: none */
};

/* ---- A BIO for the socket. OpenSSL's own uses write(), which raises SIGPIPE. ---- */

static int socket_write(BIO *bio, const char *data, int size)
{
    struct hf_tls_conn *conn = BIO_get_data(bio);
    ssize_t n;
    BIO_clear_retry_flags(bio);
    do
        n = send(conn->fd, data, (size_t)size, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_write(bio);
    else if (n < 0)
        conn->error = errno;
    return (int)n;
}

static int socket_read(BIO *bio, char *data, int size)
{
    struct hf_tls_conn *conn = BIO_get_data(bio);
    ssize_t n;
    BIO_clear_retry_flags(bio);
    do
        n = recv(conn->fd, data, (size_t)size, 0);
    while (n < 0 && errno == EINTR);
    conn->ended = n == 0;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_read(bio);
    else if (n < 0)
        conn->error = errno;
    return (int)n;
}

static long socket_control(BIO *bio, int what, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return what == BIO_CTRL_FLUSH; /* nothing is buffered here */
}

static BIO_METHOD *socket_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket without signals");
    if (!method)
        return NULL;
    if (BIO_meth_set_write(method, socket_write) && BIO_meth_set_read(method, socket_read) &&
        BIO_meth_set_ctrl(method, socket_control))
        return method;
    BIO_meth_free(method);
    return NULL;
}

/* ---- Loading ---- */

static enum hf_status no_memory(struct hf_error *why)
{
    *why = (struct hf_error){ HF_NO_MEMORY, "Out of memory for TLS." };
    return HF_NO_MEMORY;
}

/* OpenSSL's first error is the cause; the others are consequences. */
static const char *reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_error());
    return text ? text : "unknown reason";
}

/* Check that the file can be read and, for a key, not by every user. OpenSSL's messages are less
 * clear. */
static enum hf_status file_check(const char *path, bool secret, struct hf_error *why)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return hf_error_set(why, HF_INVALID_REQUEST, "%.200s cannot be opened: %s.", path,
                            strerror(errno));
    int error = fstat(fd, &st) == 0 ? 0 : errno;
    close(fd);
    if (error)
        return hf_error_set(why, HF_INVALID_REQUEST, "%.200s cannot be read: %s.", path,
                            strerror(error));
    if (!S_ISREG(st.st_mode))
        return hf_error_set(why, HF_INVALID_REQUEST, "%.200s is not a regular file.", path);
    if (secret && st.st_mode & (S_IROTH | S_IWOTH))
        return hf_error_set(why, HF_INVALID_REQUEST,
                            "%.200s may be %s by every user; use chmod o-rw.", path,
                            st.st_mode & S_IWOTH ? "written" : "read");
    return HF_OK;
}

/* Refuse a key with a passphrase: OpenSSL would ask for it on the terminal, and the server would
 * hang. */
static int passphrase_none(char *out, int size, int writing, void *arg)
{
    (void)out;
    (void)size;
    (void)writing;
    *(bool *)arg = true;
    return -1;
}

static enum hf_status files_load(SSL_CTX *ctx, const struct hf_tls_files *files,
                                 struct hf_error *why)
{
    bool asked = false;
    enum hf_status st = file_check(files->cert, false, why);
    if (st == HF_OK)
        st = file_check(files->key, true, why);
    if (st != HF_OK)
        return st;
    SSL_CTX_set_default_passwd_cb(ctx, passphrase_none);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, &asked);
    if (SSL_CTX_use_certificate_chain_file(ctx, files->cert) != 1)
        return hf_error_set(why, HF_INVALID_REQUEST,
                            "%.200s is not a usable chain of certificates in PEM: %.200s.",
                            files->cert, reason());
    ERR_clear_error();
    bool key_read = SSL_CTX_use_PrivateKey_file(ctx, files->key, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    if (key_read && SSL_CTX_check_private_key(ctx) == 1)
        return HF_OK;
    if (asked)
        return hf_error_set(
            why, HF_INVALID_REQUEST,
            "%.200s has a passphrase, which the server cannot enter. Store the key without one.",
            files->key);
    if (ERR_GET_LIB(ERR_peek_error()) == ERR_LIB_X509)
        return hf_error_set(why, HF_INVALID_REQUEST,
                            "%.180s is not the key of the certificate in %.180s: %.80s.",
                            files->key, files->cert, reason());
    return hf_error_set(why, HF_INVALID_REQUEST,
                        "%.200s is not a usable private key in PEM: %.200s.", files->key, reason());
}

/* Warn if the certificate is not valid now. */
static void validity_note(SSL_CTX *ctx, const char *path, struct hf_error *why)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx);
    if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
        snprintf(why->text, sizeof why->text, "The certificate in %.200s has expired.", path);
    else if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
        snprintf(why->text, sizeof why->text, "The certificate in %.200s is not valid yet.", path);
}

static const unsigned char http[] = "\x08http/1.1"; /* the only protocol of both sides */

static int protocol_choose(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                           const unsigned char *in, unsigned in_size, void *arg)
{
    unsigned char *chosen;
    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&chosen, out_size, http, sizeof http - 1, in, in_size) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL; /* no common protocol: RFC 7301, 3.2 */
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool server_set(SSL_CTX *ctx)
{
    static const unsigned char name[] = "holdfast";
    SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_alpn_select_cb(ctx, protocol_choose, NULL);
    return SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 &&
           SSL_CTX_set_session_id_context(ctx, name, sizeof name - 1) == 1 &&
           SSL_CTX_set_max_early_data(ctx, 0) == 1;
}

/* Create a context with the settings of both sides, with one reference; NULL if out of memory. */
static struct hf_tls *context_make(const SSL_METHOD *method)
{
    struct hf_tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return NULL;
    atomic_init(&tls->owners, 1);
    ERR_clear_error();
    tls->ctx = SSL_CTX_new(method);
    tls->socket = socket_method();
    if (!tls->ctx || !tls->socket || SSL_CTX_set_min_proto_version(tls->ctx, TLS1_2_VERSION) != 1) {
        ERR_clear_error();
        hf_tls_drop(tls);
        return NULL;
    }
    SSL_CTX_set_options(tls->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(tls->ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                   SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(tls->ctx, SSL_SESS_CACHE_OFF);
    return tls;
}

enum hf_status hf_tls_load(const struct hf_tls_files *files, struct hf_tls **out,
                           struct hf_error *why)
{
    struct hf_tls *tls = context_make(TLS_server_method());
    *out = NULL;
    *why = (struct hf_error){ HF_OK, "" };
    enum hf_status st =
        tls && server_set(tls->ctx) ? files_load(tls->ctx, files, why) : no_memory(why);
    ERR_clear_error();
    if (st != HF_OK) {
        hf_tls_drop(tls);
        return st;
    }
    validity_note(tls->ctx, files->cert, why);
    *out = tls;
    return HF_OK;
}

enum hf_status hf_tls_trust(const char *ca_file, struct hf_tls **out, struct hf_error *why)
{
    struct hf_tls *tls = context_make(TLS_client_method());
    *out = NULL;
    if (!tls || SSL_CTX_set_alpn_protos(tls->ctx, http, sizeof http - 1) != 0) {
        hf_tls_drop(tls);
        return hf_error_set(why, HF_NO_MEMORY, "out of memory for TLS");
    }
    SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_PEER, NULL);
    ERR_clear_error();
    if (ca_file ? SSL_CTX_load_verify_locations(tls->ctx, ca_file, NULL)
                : SSL_CTX_set_default_verify_paths(tls->ctx)) {
        *out = tls;
        return HF_OK;
    }
    (void)hf_error_set(why, HF_INVALID_REQUEST,
                       "%.300s is not a readable file of certificates in PEM: %.100s",
                       ca_file ? ca_file : "the system's list of authorities", reason());
    ERR_clear_error();
    hf_tls_drop(tls);
    return HF_INVALID_REQUEST;
}

struct hf_tls *hf_tls_keep(struct hf_tls *tls)
{
    if (tls)
        atomic_fetch_add_explicit(&tls->owners, 1, memory_order_relaxed);
    return tls;
}

void hf_tls_drop(struct hf_tls *tls)
{
    if (!tls || atomic_fetch_sub_explicit(&tls->owners, 1, memory_order_acq_rel) != 1)
        return;
    SSL_CTX_free(tls->ctx);
    BIO_meth_free(tls->socket);
    free(tls);
}

/* ---- Connections ---- */

/* The state that both sides have in common. */
static struct hf_tls_conn *conn_make(struct hf_tls *tls, int fd)
{
    struct hf_tls_conn *conn = calloc(1, sizeof *conn);
    BIO *bio = BIO_new(tls->socket);
    SSL *ssl = SSL_new(tls->ctx);
    if (!conn || !bio || !ssl) {
        ERR_clear_error();
        SSL_free(ssl);
        BIO_free(bio);
        free(conn);
        return NULL;
    }
    *conn = (struct hf_tls_conn){ .tls = hf_tls_keep(tls), .ssl = ssl, .fd = fd };
    BIO_set_data(bio, conn);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio); /* the SSL owns it now */
    return conn;
}

struct hf_tls_conn *hf_tls_accept(struct hf_tls *tls, int fd)
{
    struct hf_tls_conn *conn = conn_make(tls, fd);
    if (conn)
        SSL_set_accept_state(conn->ssl);
    return conn;
}

/* The certificate must be for this name or address. */
static bool peer_expect(SSL *ssl, const struct hf_tls_peer *peer)
{
    if (peer->literal)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), peer->host) == 1;
    char name[TLSEXT_MAXLEN_host_name +
              2]; /* OpenSSL needs it non-const, and refuses a longer one */
    snprintf(name, sizeof name, "%s", peer->host);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

struct hf_tls_conn *hf_tls_connect(struct hf_tls *tls, int fd, const struct hf_tls_peer *peer)
{
    struct hf_tls_conn *conn = conn_make(tls, fd);
    if (!conn)
        return NULL;
    SSL_set_connect_state(conn->ssl);
    if (peer_expect(conn->ssl, peer))
        return conn;
    ERR_clear_error();
    conn->broken = true; /* send no close_notify */
    hf_tls_close(conn);
    return NULL;
}

void hf_tls_finish(struct hf_tls_conn *conn)
{
    if (!conn || conn->broken)
        return;
    ERR_clear_error();
    if (SSL_is_init_finished(conn->ssl) && !conn->mute)
        SSL_shutdown(conn->ssl); /* one attempt, without waiting for the peer's */
    ERR_clear_error();
    conn->broken = true;
}

void hf_tls_close(struct hf_tls_conn *conn)
{
    if (!conn)
        return;
    hf_tls_finish(conn);
    SSL_free(conn->ssl);
    hf_tls_drop(conn->tls);
    free(conn);
}

/* The result of a step that failed: 0 at the end of the stream, else -1. */
static ssize_t step_failed(struct hf_tls_conn *conn, int result, enum hf_tls_wants *wants)
{
    int error = SSL_get_error(conn->ssl, result);
    unsigned long fault = ERR_peek_error();
    ERR_clear_error();
    *wants = HF_TLS_WANTS_NOTHING;
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    if (error == SSL_ERROR_WANT_READ)
        *wants = HF_TLS_WANTS_READ;
    else if (error == SSL_ERROR_WANT_WRITE)
        *wants = HF_TLS_WANTS_WRITE;
    else
        conn->broken = true;
    if (conn->broken)
        conn->fault = fault;
    return -1;
}

int hf_tls_shake(struct hf_tls_conn *conn, enum hf_tls_wants *wants)
{
    *wants = HF_TLS_WANTS_NOTHING;
    if (conn->broken)
        return -1;
    ERR_clear_error();
    int result = SSL_do_handshake(conn->ssl);
    if (result == 1)
        return 1;
    if (step_failed(conn, result, wants) == 0)
        conn->broken = true; /* the peer sent a close_notify instead */
    return -1;
}

ssize_t hf_tls_read(struct hf_tls_conn *conn, void *data, size_t size, enum hf_tls_wants *wants)
{
    size_t done;
    HF_ASSERT(size > 0);
    *wants = HF_TLS_WANTS_NOTHING;
    if (conn->broken)
        return -1;
    /* errors of other connections on this thread: SSL_get_error checks the whole queue */
    ERR_clear_error();
    int result = SSL_read_ex(conn->ssl, data, size, &done);
    return result == 1 ? (ssize_t)done : step_failed(conn, result, wants);
}

ssize_t hf_tls_write(struct hf_tls_conn *conn, const void *data, size_t size,
                     enum hf_tls_wants *wants)
{
    size_t done;
    HF_ASSERT(size > 0);
    *wants = HF_TLS_WANTS_NOTHING;
    if (conn->broken || conn->mute)
        return -1;
    ERR_clear_error();
    /* One record. With more, OpenSSL would report no progress before the last byte is sent, which
     * is long for a slow client. */
    size = size < SSL3_RT_MAX_PLAIN_LENGTH ? size : SSL3_RT_MAX_PLAIN_LENGTH;
    int result = SSL_write_ex(conn->ssl, data, size, &done);
    if (result == 1)
        return (ssize_t)done;
    ssize_t failed = step_failed(conn, result, wants);
    if (failed == 0)
        conn->broken = true; /* the peer sent a close_notify */
    if (conn->broken && conn->error && SSL_is_init_finished(conn->ssl)) {
        conn->broken = false; /* the peer may have answered before it closed its end */
        conn->mute = true;
    }
    return -1;
}

bool hf_tls_is_ready(const struct hf_tls_conn *conn)
{
    return SSL_is_init_finished(conn->ssl) != 0;
}

bool hf_tls_pending(const struct hf_tls_conn *conn)
{
    return !conn->broken && SSL_pending(conn->ssl) > 0;
}

/* OpenSSL's error comes first: the socket may have been closed while OpenSSL reported it. */
struct hf_tls_failure hf_tls_failure(const struct hf_tls_conn *conn)
{
    long verified = SSL_get_verify_result(conn->ssl);
    int code = ERR_GET_REASON(conn->fault);
    if (verified != X509_V_OK)
        return (struct hf_tls_failure){ HF_TLS_UNTRUSTED, 0,
                                        X509_verify_cert_error_string(verified) };
    if (code == SSL_R_WRONG_VERSION_NUMBER || code == SSL_R_HTTP_REQUEST)
        return (struct hf_tls_failure){ HF_TLS_UNSPOKEN, 0, ERR_reason_error_string(conn->fault) };
    if (conn->fault == 0 && conn->error)
        return (struct hf_tls_failure){ HF_TLS_CUT, conn->error, "the socket failed" };
    if (conn->fault == 0 && conn->ended)
        return (struct hf_tls_failure){ HF_TLS_ENDED, 0, "the socket ended" };
    const char *reason = ERR_reason_error_string(conn->fault);
    return (struct hf_tls_failure){ HF_TLS_REFUSED, 0, reason ? reason : "no reason given" };
}
