/* tls.h: a client that speaks https, with every part of it at hand. */
#ifndef HF_TESTS_SERVER_KIT_TLS_H
#define HF_TESTS_SERVER_KIT_TLS_H

#include "server/kit/server.h"

#include <openssl/ssl.h>

struct client {
    int fd;
    SSL_CTX *ctx;
    SSL *ssl;
};

struct manner { /* 0 and NULL: as OpenSSL likes it */
    int lowest, highest;
    const char *ciphers;
    const char *protocols; /* of ALPN, in wire form */
};

/* A connection without a handshake yet. m: borrowed, may be NULL. c: out, owned, free with
 * client_close. */
void client_open(struct client *c, const struct server *s, const struct manner *m);
void client_close(struct client *c);
/* The same with the handshake, which is asserted to succeed. */
void client_connect(struct client *c, const struct server *s, const struct manner *m);

/* Send all of it. */
void client_send(struct client *c, const char *text, size_t size);
/* Read one answer, no byte more. r: out, owned, free with reply_free. False if the connection ended
 * before. */
bool client_receive(struct client *c, struct reply *r);
/* Ask, and assert that the answer has this status. what, fields, body: as for server_request. r: as
 * above. */
void client_ask(struct client *c, const char *what, const char *fields, const char *body,
                int status, struct reply *r);

#endif
