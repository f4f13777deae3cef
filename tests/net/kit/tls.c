#include "net/kit/tls.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MUST(cond) \
    ((cond) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond), abort()))

static FILE *file_make(const char *path, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    MUST(file);
    return file;
}

static X509 *certificate_make(EVP_PKEY *key, long from, long to)
{
    X509 *x = X509_new();
    MUST(x && X509_set_version(x, 2) && ASN1_INTEGER_set(X509_get_serialNumber(x), 1));
    MUST(X509_gmtime_adj(X509_getm_notBefore(x), from) &&
         X509_gmtime_adj(X509_getm_notAfter(x), to));
    X509_NAME *name = X509_get_subject_name(x);
    MUST(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost",
                                    -1, -1, 0));
    MUST(X509_set_issuer_name(x, name) && X509_set_pubkey(x, key) &&
         X509_sign(x, key, EVP_sha256()) > 0);
    return x;
}

void tls_files_make(struct tls_files *files, const char *dir, const char *name, long from, long to,
                    const char *passphrase)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    MUST(key);
    X509 *cert = certificate_make(key, from, to);
    snprintf(files->cert, sizeof files->cert, "%s/%s.crt", dir, name);
    snprintf(files->key, sizeof files->key, "%s/%s.key", dir, name);
    FILE *out = file_make(files->cert, 0644);
    MUST(PEM_write_X509(out, cert) == 1 && fclose(out) == 0);
    out = file_make(files->key, 0600);
    MUST(PEM_write_PKCS8PrivateKey(out, key, passphrase ? EVP_aes_128_cbc() : NULL, passphrase,
                                   passphrase ? (int)strlen(passphrase) : 0, NULL, NULL) == 1);
    MUST(fclose(out) == 0);
    X509_free(cert);
    EVP_PKEY_free(key);
}

void tls_link_open(struct tls_link *l, struct hf_tls *tls, SSL_CTX *ctx)
{
    int fds[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    MUST(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(fds[1], F_SETFL, O_NONBLOCK) == 0);
    *l = (struct tls_link){ .server = hf_tls_accept(tls, fds[0]),
                            .server_fd = fds[0],
                            .client_fd = fds[1] };
    l->client = SSL_new(ctx);
    BIO *in = BIO_new(BIO_s_mem());
    BIO *out = BIO_new(BIO_s_mem());
    MUST(l->server && l->client && in && out);
    SSL_set_bio(l->client, in, out);
    SSL_set_connect_state(l->client);
}

void tls_link_close(struct tls_link *l)
{
    hf_tls_close(l->server);
    SSL_free(l->client);
    if (l->server_fd >= 0)
        close(l->server_fd);
    if (l->client_fd >= 0)
        close(l->client_fd);
}

bool tls_pump(struct tls_link *l, size_t most)
{
    char buffer[16384];
    char *waiting;
    long size = BIO_get_mem_data(SSL_get_wbio(l->client), &waiting);
    most = most < sizeof buffer ? most : sizeof buffer;
    ssize_t sent = 0, got = 0;
    if (size > 0) {
        sent = send(l->client_fd, waiting, (size_t)size < most ? (size_t)size : most, MSG_NOSIGNAL);
        if (sent > 0)
            MUST(BIO_read(SSL_get_wbio(l->client), buffer, (int)sent) == sent);
    }
    got = recv(l->client_fd, buffer, most, 0);
    if (got > 0)
        MUST(BIO_write(SSL_get_rbio(l->client), buffer, (int)got) == got);
    return sent > 0 || got > 0;
}

static bool client_broken(struct tls_link *l, int result)
{
    int error = result > 0 ? SSL_ERROR_NONE : SSL_get_error(l->client, result);
    ERR_clear_error();
    return error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
}

/* How far an echo is. */
struct echo {
    char there[4], back[4];
    size_t asked, heard, answered, got;
    bool moved;
};

/* One step of the server: hear "ping", then answer. False if it is broken or at its end. */
static bool server_step(struct tls_link *l, struct echo *e)
{
    static const char pong[] = "pong";
    enum hf_tls_wants wants = HF_TLS_WANTS_NOTHING;
    ssize_t n = 0;
    if (e->heard < 4) {
        n = hf_tls_read(l->server, e->there + e->heard, 4 - e->heard, &wants);
        e->heard += n > 0 ? (size_t)n : 0;
    } else if (e->answered < 4) {
        n = hf_tls_write(l->server, pong + e->answered, 4 - e->answered, &wants);
        e->answered += n > 0 ? (size_t)n : 0;
    } else {
        return true;
    }
    e->moved = e->moved || n > 0;
    return n > 0 || (n < 0 && wants != HF_TLS_WANTS_NOTHING);
}

static bool client_step(struct tls_link *l, struct echo *e)
{
    int n = e->asked ? SSL_read(l->client, e->back + e->got, (int)(4 - e->got))
                     : SSL_write(l->client, "ping", 4);
    if (client_broken(l, n))
        return false;
    e->moved = e->moved || n > 0;
    e->got += e->asked && n > 0 ? (size_t)n : 0;
    e->asked += !e->asked && n > 0 ? (size_t)n : 0;
    return true;
}

bool tls_echo(struct tls_link *l, size_t most)
{
    struct echo e = { .got = 0 };
    while (e.got < 4) {
        e.moved = false;
        if (!client_step(l, &e))
            return false;
        e.moved = tls_pump(l, most) || e.moved;
        if (!server_step(l, &e)) {
            while (tls_pump(l, most)) /* what the server had to say about it */
                continue;
            return false;
        }
        MUST(e.moved); /* or both wait for ever */
    }
    MUST(memcmp(e.there, "ping", 4) == 0 && memcmp(e.back, "pong", 4) == 0);
    return true;
}
