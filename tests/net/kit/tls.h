/* tls.h: certificates made on the spot, and a client whose every byte the test moves. */
#ifndef HF_TESTS_NET_KIT_TLS_H
#define HF_TESTS_NET_KIT_TLS_H

#include "net/tls.h"

#include <openssl/ssl.h>

/* A P-256 key and a certificate of its own for "localhost", good from `from` to `to` (seconds from
 * now), as PEM files `cert` and `key`, the key readable by its owner alone. passphrase: NULL, or
 * what the key is locked with. */
struct tls_files {
    char cert[256], key[256];
};
void tls_files_make(struct tls_files *files, const char *dir, const char *name, long from, long to,
                    const char *passphrase);

/* A server's connection and a client, joined by a pair of sockets that do not block. */
struct tls_link {
    struct hf_tls_conn *server; /* owned; NULL after it was closed */
    int server_fd, client_fd;
    SSL *client; /* owned; it works on memory, and tls_pump moves the bytes */
};

/* ctx: borrowed, the client's. */
void tls_link_open(struct tls_link *l, struct hf_tls *tls, SSL_CTX *ctx);
void tls_link_close(struct tls_link *l);

/* Move at most `most` bytes from the client to its socket, and as many back. True if any moved. */
bool tls_pump(struct tls_link *l, size_t most);

/* Handshake if there was none yet, then "ping" there and "pong" back, at most `most` bytes at a
 * time. False if either side is broken. */
bool tls_echo(struct tls_link *l, size_t most);

#endif
