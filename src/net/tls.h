/* tls.h: TLS 1.2 and 1.3 by OpenSSL, in both directions, over sockets that never block.
 *
 * What a payment server has no use for is off: older versions, compression, renegotiation, early
 * data (which an attacker could send twice). A connection that rests has no buffers.
 *
 * A server takes no ciphers without forward secrecy or without authentication of the data.
 * Sessions are resumed by tickets alone, so nothing is kept here for clients that are gone. A
 * client that names protocols (ALPN) must name http/1.1. Clients are not asked for certificates.
 *
 * A client speaks to a server only if its certificate is trusted and for the host that was asked
 * for. */
#ifndef HF_NET_TLS_H
#define HF_NET_TLS_H

#include "holdfast.h"

#include <sys/types.h>

/* A server's certificate and key, or what a client trusts; counted, never changes. */
struct hf_tls;
struct hf_tls_conn; /* one connection's state */

struct hf_tls_files {
    const char *cert; /* PEM, the whole chain, the server's own certificate first */
    const char *key;  /* PEM, without a passphrase */
};

/* Load both files. files: borrowed. tls: out, owned, free with hf_tls_drop; NULL unless HF_OK.
 * why: out. HF_OK, or HF_INVALID_REQUEST with `why` naming the file and what is wrong with it
 * (not readable, not PEM, a key that everybody may read or write, that has a passphrase, or that
 * belongs to another certificate), or HF_NO_MEMORY. A certificate that has expired, or is not
 * valid yet, only gets a note: then HF_OK, and why->text is that note, for the operator;
 * otherwise why->text is empty. */
HF_MUST_USE enum hf_status hf_tls_load(const struct hf_tls_files *files, struct hf_tls **tls,
                                       struct hf_error *why);
/* hf_tls_trust: what a client trusts: the authorities in `ca_file` (PEM), or if that is NULL those
 * that the system trusts. tls: out, owned, free with hf_tls_drop; NULL unless HF_OK. why: out
 * unless HF_OK. HF_OK, or HF_INVALID_REQUEST with `why` naming the file and what is wrong with it,
 * or HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_tls_trust(const char *ca_file, struct hf_tls **tls,
                                        struct hf_error *why);
/* One more owner; and one less. Safe from many threads. NULL is allowed. */
struct hf_tls *hf_tls_keep(struct hf_tls *tls);
void hf_tls_drop(struct hf_tls *tls);

/* The server that a client expects at the other end. */
struct hf_tls_peer {
    const char *host; /* a name, or an address without brackets */
    bool literal;     /* it is an IPv4 or IPv6 address */
};

/* A server's and a client's side of a new connection on `fd`, which stays the caller's and must
 * not block. The connection is an owner of `tls` for as long as it lives. peer: borrowed. Owned,
 * free with hf_tls_close. NULL without memory; or (a client's) if the host cannot be in a
 * certificate. */
struct hf_tls_conn *hf_tls_accept(struct hf_tls *tls, int fd);
struct hf_tls_conn *hf_tls_connect(struct hf_tls *tls, int fd, const struct hf_tls_peer *peer);
/* Nothing more is sent: a close_notify if that is possible without waiting. What the peer still
 * sends is not for TLS any more: read the socket itself and throw it away. NULL is allowed. */
void hf_tls_finish(struct hf_tls_conn *conn);
/* Frees the state; a close_notify is sent if that is possible without waiting. NULL is allowed. */
void hf_tls_close(struct hf_tls_conn *conn);

/* What a step needs before it can go on. */
enum hf_tls_wants { HF_TLS_WANTS_NOTHING, HF_TLS_WANTS_READ, HF_TLS_WANTS_WRITE };

/* Like recv and send on a socket that does not block: bytes moved, 0 at the end of the stream
 * (read), or -1: then wants says whether to wait for readable or writable and call again, or
 * (WANTS_NOTHING) that the connection is broken; it stays so. Either may want either: the
 * handshake happens inside these. No signal is raised when the peer is gone. The end of the
 * stream is the peer's close_notify; a socket that ends without one is broken, as an attacker
 * may have cut it off. After a write that the socket refused, what has come can still be read.
 * data, size: borrowed; size must not be 0. After -1 with something wanted, hf_tls_write must be
 * called with the same bytes again, wherever they are now; more may have been added behind them.
 * It may take a part of them. */
ssize_t hf_tls_read(struct hf_tls_conn *conn, void *data, size_t size, enum hf_tls_wants *wants);
ssize_t hf_tls_write(struct hf_tls_conn *conn, const void *data, size_t size,
                     enum hf_tls_wants *wants);
/* The handshake alone: 1 when it is done, or -1 like the two above. For a caller that has nothing
 * to send yet, or that must know the other end before anything leaves. */
int hf_tls_shake(struct hf_tls_conn *conn, enum hf_tls_wants *wants);
/* Is the handshake over? Until then a read may cost a signature, which takes milliseconds. */
bool hf_tls_is_ready(const struct hf_tls_conn *conn);
/* Are decrypted bytes waiting that epoll cannot see? */
bool hf_tls_pending(const struct hf_tls_conn *conn);

enum hf_tls_fault {
    HF_TLS_CUT,       /* the socket failed: `error` */
    HF_TLS_ENDED,     /* the socket ended without a close_notify */
    HF_TLS_UNTRUSTED, /* the peer's certificate is not trusted, or is not for this host */
    HF_TLS_UNSPOKEN,  /* the peer does not speak TLS */
    HF_TLS_REFUSED    /* by either side */
};

/* Why a connection is broken. reason: a constant, for people. */
struct hf_tls_failure {
    enum hf_tls_fault fault;
    int error;
    const char *reason;
};
struct hf_tls_failure hf_tls_failure(const struct hf_tls_conn *conn);

#endif
