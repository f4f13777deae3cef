#include "server/kit/tls.h"

#include "support/test.h"

#include <openssl/err.h>
#include <unistd.h>

void client_open(struct client *c, const struct server *s, const struct manner *m)
{
    c->fd = server_connect(s);
    c->ctx = SSL_CTX_new(TLS_client_method());
    assert_non_null(c->ctx);
    SSL_CTX_set_security_level(c->ctx, 0); /* or OpenSSL itself would not offer what is old */
    if (m && m->lowest)
        assert_int_equal(SSL_CTX_set_min_proto_version(c->ctx, m->lowest), 1);
    if (m && m->highest)
        assert_int_equal(SSL_CTX_set_max_proto_version(c->ctx, m->highest), 1);
    if (m && m->ciphers)
        assert_int_equal(SSL_CTX_set_cipher_list(c->ctx, m->ciphers), 1);
    c->ssl = SSL_new(c->ctx);
    assert_non_null(c->ssl);
    if (m && m->protocols)
        assert_int_equal(SSL_set_alpn_protos(c->ssl, (const unsigned char *)m->protocols,
                                             (unsigned)strlen(m->protocols)),
                         0);
    assert_int_equal(SSL_set_fd(c->ssl, c->fd), 1);
    SSL_set_connect_state(c->ssl);
}

void client_close(struct client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    close(c->fd);
    ERR_clear_error();
}

void client_connect(struct client *c, const struct server *s, const struct manner *m)
{
    client_open(c, s, m);
    if (SSL_connect(c->ssl) != 1)
        fail_msg("no handshake: %s", ERR_reason_error_string(ERR_peek_error()));
}

void client_send(struct client *c, const char *text, size_t size)
{
    while (size > 0) {
        size_t n;
        assert_int_equal(SSL_write_ex(c->ssl, text, size, &n), 1);
        text += n;
        size -= n;
    }
}

static bool read_some(struct client *c, char *to, size_t size)
{
    while (size > 0) {
        size_t n;
        if (SSL_read_ex(c->ssl, to, size, &n) != 1)
            return false;
        to += n;
        size -= n;
    }
    return true;
}

bool client_receive(struct client *c, struct reply *r)
{
    size_t size = 0;
    *r = (struct reply){ .head = calloc(1, 8192) };
    assert_non_null(r->head);
    while (size < 4 || memcmp(r->head + size - 4, "\r\n\r\n", 4) != 0) {
        assert_true(size < 8000);
        if (!read_some(c, r->head + size, 1)) {
            reply_free(r);
            return false;
        }
        size++;
    }
    assert_int_equal(sscanf(r->head, "HTTP/1.1 %d ", &r->status), 1);
    r->body_size = strtoull(reply_field(r, "Content-Length"), NULL, 10);
    r->body = calloc(1, r->body_size + 1);
    assert_non_null(r->body);
    return read_some(c, r->body, r->body_size);
}

void client_ask(struct client *c, const char *what, const char *fields, const char *body,
                int status, struct reply *r)
{
    char *request = server_request(what, fields, body);
    client_send(c, request, strlen(request));
    free(request);
    assert_true(client_receive(c, r));
    if (r->status != status)
        fail_msg("%s: expected %d, got %d %.300s", what, status, r->status, r->body);
}
