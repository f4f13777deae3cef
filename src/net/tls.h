/* tls.h: TLS 1.2 and 1.3 with OpenSSL, for servers and clients, over non-blocking sockets.
 *
 * Older versions, compression, renegotiation and early data (which an attacker could replay) are
 * off. An idle connection has no buffers.
 *
 * A server accepts only ciphers with forward secrecy and authenticated data. Sessions are resumed
 * only by tickets, so the server stores nothing for clients that are gone. A client that offers
 * protocols (ALPN) must offer http/1.1. The server requests no client certificates.
 *
 * A client accepts a server only if its certificate is trusted and is for the expected host. */
#ifndef HF_NET_TLS_H
#define HF_NET_TLS_H

#include "holdfast.h"

#include <sys/types.h>

/* A server's certificate and key, or a client's trusted authorities; reference-counted,
 * immutable. */
struct hf_tls;
struct hf_tls_conn; /* one connection's state */

struct hf_tls_files {
    const char *cert; /* PEM, the whole chain, the server's own certificate first */
    const char *key;  /* PEM, without a passphrase */
};

/* Load both files. files: borrowed. tls: out, owned, free with hf_tls_drop; NULL unless HF_OK. why:
 * out. HF_OK, or HF_INVALID_REQUEST with `why` naming the file and what is wrong with it (not
 * readable, not PEM, a key that every user may read or write, that has a passphrase, or that
 * belongs to another certificate), or HF_NO_MEMORY. A certificate that has expired, or is not valid
 * yet, only causes a warning: HF_OK, with the warning for the operator in why->text; otherwise
 * why->text is empty. */
HF_MUST_USE enum hf_status hf_tls_load(const struct hf_tls_files *files, struct hf_tls **tls,
                                       struct hf_error *why);
/* hf_tls_trust: a client's trusted authorities: those in `ca_file` (PEM), or the system's if it is
 * NULL. tls: out, owned, free with hf_tls_drop; NULL unless HF_OK. why: out unless HF_OK. HF_OK, or
 * HF_INVALID_REQUEST with `why` naming the file and what is wrong with it, or HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_tls_trust(const char *ca_file, struct hf_tls **tls,
                                        struct hf_error *why);
/* Add and drop a reference. Thread-safe. NULL is allowed. */
struct hf_tls *hf_tls_keep(struct hf_tls *tls);
void hf_tls_drop(struct hf_tls *tls);

/* The server that a client expects. */
struct hf_tls_peer {
    const char *host; /* a name, or an address without brackets */
    bool literal;     /* it is an IPv4 or IPv6 address */
};

/* Begin a connection on `fd` as a server, or as a client. fd: borrowed, non-blocking. The
 * connection keeps a reference to `tls` until it is closed. peer: borrowed. The result is owned,
 * free with hf_tls_close; NULL if out of memory, or (client) if a certificate cannot contain the
 * host. */
struct hf_tls_conn *hf_tls_accept(struct hf_tls *tls, int fd);
struct hf_tls_conn *hf_tls_connect(struct hf_tls *tls, int fd, const struct hf_tls_peer *peer);
/* Send nothing more: sends a close_notify if that is possible without waiting. After it, read what
 * the peer still sends from the socket itself, and drop it. NULL is allowed. */
void hf_tls_finish(struct hf_tls_conn *conn);
/* Frees the state; a close_notify is sent if that is possible without waiting. NULL is allowed. */
void hf_tls_close(struct hf_tls_conn *conn);

/* What a step needs before it can continue. */
enum hf_tls_wants { HF_TLS_WANTS_NOTHING, HF_TLS_WANTS_READ, HF_TLS_WANTS_WRITE };

/* Like recv and send on a non-blocking socket: returns the bytes moved, 0 at the end of the stream
 * (read), or -1. After -1, wants says whether to wait for readable or writable and call again, or
 * (WANTS_NOTHING) that the connection is broken for good. Both may want both, because the handshake
 * happens inside them. No signal is raised when the peer is gone. The end of the stream is the
 * peer's close_notify; a socket that ends without one is broken, because an attacker may have cut
 * it off. After a write that the socket refused, received bytes can still be read. data, size:
 * borrowed; size must not be 0. After -1 with something wanted, call hf_tls_write with the same
 * bytes again, at any address; more may follow them. It may take a part of them. */
ssize_t hf_tls_read(struct hf_tls_conn *conn, void *data, size_t size, enum hf_tls_wants *wants);
ssize_t hf_tls_write(struct hf_tls_conn *conn, const void *data, size_t size,
                     enum hf_tls_wants *wants);
/* Do only the handshake: 1 when it is done, or -1 like the two above. For a caller that has nothing
 * to send yet, or that must authenticate the peer before it sends anything. */
int hf_tls_shake(struct hf_tls_conn *conn, enum hf_tls_wants *wants);
/* Is the handshake done? Until then a read may need a signature, which takes milliseconds. */
bool hf_tls_is_ready(const struct hf_tls_conn *conn);
/* Are decrypted bytes waiting that epoll does not report? */
bool hf_tls_pending(const struct hf_tls_conn *conn);

enum hf_tls_fault {
    HF_TLS_CUT,       /* the socket failed: `error` */
    HF_TLS_ENDED,     /* the socket ended without a close_notify */
    HF_TLS_UNTRUSTED, /* the peer's certificate is not trusted, or is not for this host */
    HF_TLS_UNSPOKEN,  /* the peer does not use TLS */
    HF_TLS_REFUSED    /* by either side */
};

/* Why a connection is broken. reason: static, for people. */
struct hf_tls_failure {
    enum hf_tls_fault fault;
    int error;
    const char *reason;
};
struct hf_tls_failure hf_tls_failure(const struct hf_tls_conn *conn);

#endif
