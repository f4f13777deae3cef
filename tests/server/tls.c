/* https: the same server behind TLS, with clients that stop in the handshake, speak something else,
 * or trickle; and a new certificate while it runs. */
#include "server/kit/tls.h"
#include "net/kit/tls.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <openssl/err.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { YEAR = 365 * 86400, IDLE_MS = 1000, HEAD_MS = 500 };

static struct server s;
static struct tls_files files;

static int setup_stopped(void **state)
{
    (void)state;
    server_init(&s);
    tls_files_make(&files, s.dir, "server", -60, YEAR, NULL);
    s.options.tls_cert = files.cert;
    s.options.tls_key = files.key;
    return 0;
}

static int setup(void **state)
{
    setup_stopped(state);
    s.options.threads = 2;
    server_start(&s);
    assert_memory_equal(s.first_line, "holdfast: listening on https://", 31);
    return 0;
}

static int setup_impatient(void **state)
{
    setup_stopped(state);
    s.options.idle_ms = IDLE_MS;
    s.options.head_ms = HEAD_MS;
    server_start(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    server_end(&s);
    return 0;
}

static void is_served(struct client *c)
{
    struct reply r;
    client_ask(c, "GET /healthz", "", NULL, 200, &r);
    assert_string_equal(r.body, "{\"ok\":true}");
    reply_free(&r);
}

static void somebody_is_served(void)
{
    struct client c;
    client_connect(&c, &s, NULL);
    is_served(&c);
    client_close(&c);
}

/* The figure of /metrics. */
static double figure(const char *name)
{
    struct client c;
    struct reply r;
    char line[128];
    client_connect(&c, &s, NULL);
    client_ask(&c, "GET /metrics", "", NULL, 200, &r);
    client_close(&c);
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(r.body, line);
    assert_non_null(at);
    double value = strtod(at + strlen(line), NULL);
    reply_free(&r);
    return value;
}

static void await_connections(int count)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         (int)figure("holdfast_http_connections") != count; server_pause_ms(10))
        assert_true(server_clock_ms() < until);
}

/* ---- Requests ---- */

static void requests_and_answers(void **state)
{
    (void)state;
    static const struct manner manners[] = { { .highest = TLS1_2_VERSION },
                                             { .lowest = TLS1_3_VERSION },
                                             { .protocols = "\x08http/1.1" },
                                             { .protocols = "\x02h2\x08http/1.1" } };
    for (size_t i = 0; i < sizeof manners / sizeof *manners; i++) {
        struct client c;
        client_connect(&c, &s, &manners[i]);
        for (int k = 0; k < 50; k++) { /* the connection stays */
            struct reply r;
            char fields[64];
            snprintf(fields, sizeof fields, "Idempotency-Key: %zu-%d\r\n", i, k / 2);
            client_ask(&c, "PUT /v1/registers/x", fields, "{\"value\":1}", 200, &r);
            assert_int_equal(reply_field(&r, "Idempotent-Replayed") != NULL, k % 2);
            reply_free(&r);
            client_ask(&c, "GET /nowhere", "", NULL, 404, &r);
            reply_free(&r);
        }
        client_close(&c);
    }
}

/* The server's own origin is that of https. */
static void its_own_origin_is_https(void **state)
{
    (void)state;
    struct client c;
    struct reply r;
    client_connect(&c, &s, NULL);
    client_ask(&c, "GET /v1/holds", "Origin: https://localhost\r\n", NULL, 200, &r);
    reply_free(&r);
    client_ask(&c, "GET /v1/holds", "Origin: http://localhost\r\n", NULL, 403, &r);
    reply_free(&r);
    client_close(&c);
}

static void many_requests_at_once(void **state)
{
    (void)state;
    enum { TURNS = 200 };
    struct client c;
    char *text = calloc(TURNS, 400);
    assert_non_null(text);
    client_connect(&c, &s, NULL);
    for (int i = 0; i < TURNS; i++) {
        char fields[64], body[64];
        snprintf(fields, sizeof fields, "Idempotency-Key: k%d\r\n", i);
        snprintf(body, sizeof body, "{\"value\":%d}", i);
        char *write = server_request("PUT /v1/registers/x", fields, body);
        char *list = server_request("GET /v1/resources", "", NULL);
        strcat(strcat(text, write), list);
        free(write);
        free(list);
    }
    client_send(&c, text, strlen(text));
    free(text);
    for (int i = 0; i < TURNS; i++) {
        struct reply r;
        assert_true(client_receive(&c, &r));
        assert_int_equal(r.status, 200);
        assert_int_equal(reply_number(&r, "value"), i);
        reply_free(&r);
        assert_true(client_receive(&c, &r));
        assert_int_equal(r.status, 200);
        reply_free(&r);
    }
    client_close(&c);
}

/* A body of nearly a megabyte there, several back; and a file. */
static void large_bodies_both_ways(void **state)
{
    (void)state;
    enum { LINES = 400 };
    struct client c;
    struct reply r;
    char name[1001], *body = calloc(LINES, 2300);
    assert_non_null(body);
    memset(name, 'n', 1000);
    name[1000] = 0;
    char *at = body;
    for (int i = 0; i < LINES; i++)
        at += sprintf(
            at,
            "{\"op\":\"place_hold\",\"key\":\"k%d\",\"resource\":\"%d%s\",\"requester\":\"%s\","
            "\"duration\":\"1d\"}\n",
            i, i, name, name);
    client_connect(&c, &s, NULL);
    client_ask(&c, "POST /v1/batch", "", body, 200, &r);
    assert_true(r.body_size > LINES * 2000);
    assert_false(reply_has(&r, "{\"status\":4"));
    reply_free(&r);
    size_t listed = 0;
    char what[200] = "GET /v1/holds?limit=1000";
    while (what[0]) { /* a page may have fewer records than were asked for */
        client_ask(&c, what, "", NULL, 200, &r);
        listed += r.body_size;
        what[0] = 0;
        if (reply_text(&r, "next_cursor")[0])
            snprintf(what, sizeof what, "GET /v1/holds?limit=1000&cursor=%.100s",
                     reply_text(&r, "next_cursor"));
        reply_free(&r);
    }
    assert_true(listed > LINES * 2000);
    client_ask(&c, "GET /v1/export", "", NULL, 200, &r);
    assert_true(r.body_size > LINES * 2000);
    assert_int_equal(r.body[r.body_size - 1], '\n');
    reply_free(&r);
    is_served(&c);
    client_close(&c);
    free(body);
}

/* A record for each byte. */
static void a_record_a_byte(void **state)
{
    (void)state;
    struct client c;
    struct reply r;
    char *request = server_request("POST /v1/holds", "Idempotency-Key: k\r\n",
                                   "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}");
    client_connect(&c, &s, NULL);
    for (size_t i = 0; request[i]; i++)
        client_send(&c, request + i, 1);
    free(request);
    assert_true(client_receive(&c, &r));
    assert_int_equal(r.status, 201);
    reply_free(&r);
    client_close(&c);
}

/* A client must be able to tell the end of an answer from a connection that somebody cut. */
static void the_end_is_said(void **state)
{
    (void)state;
    static const char *const fields[] = { "Connection: close\r\n",
                                          "Transfer-Encoding: nonsense\r\n" };
    for (int i = 0; i < 2; i++) {
        struct client c;
        struct reply r;
        char byte;
        size_t n;
        client_connect(&c, &s, NULL);
        client_ask(&c, "GET /healthz", fields[i], NULL, i ? 400 : 200, &r);
        assert_string_equal(reply_field(&r, "Connection"), "close");
        reply_free(&r);
        assert_int_equal(SSL_read_ex(c.ssl, &byte, 1, &n), 0);
        assert_int_equal(SSL_get_error(c.ssl, 0), SSL_ERROR_ZERO_RETURN);
        watch_ends(c.fd);
        client_close(&c);
    }
}

/* ---- Those who do not come to a request ---- */

/* The first flight of a handshake, as bytes. Owned. */
static unsigned char *client_hello(size_t *size)
{
    unsigned char *bytes, *copy;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = ctx ? SSL_new(ctx) : NULL;
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    assert_true(ssl && in && out);
    SSL_set_bio(ssl, in, out);
    assert_int_equal(SSL_connect(ssl), -1);
    *size = (size_t)BIO_get_mem_data(out, (char **)&bytes);
    copy = malloc(*size);
    assert_non_null(copy);
    memcpy(copy, bytes, *size);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    ERR_clear_error();
    return copy;
}

static void whoever_stops_in_the_handshake_does_no_harm(void **state)
{
    (void)state;
    size_t size;
    unsigned char *hello = client_hello(&size);
    struct linger hard = { .l_onoff = 1 };
    long before = watch_memory_kib(&s);
    for (size_t i = 0; i < 600; i++) {
        int fd = server_connect(&s);
        assert_true(server_send(fd, hello, i % 5 == 4 ? size : i % size));
        if (i % 2)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        if (i % 7 == 0)
            shutdown(fd, SHUT_WR);
        close(fd);
    }
    free(hello);
    await_connections(1);
    assert_true(watch_memory_kib(&s) - before < watch_bound_kib(16 * 1024));
}

/* Nothing that is not TLS is answered as if it were HTTP, and bytes that are nothing at all
 * neither. */
static void whoever_does_not_speak_tls_is_closed(void **state)
{
    (void)state;
    static const char *const greetings[] = { "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n",
                                             "HELO example\r\n", "\x16\x03\x01\xff\xff\x01",
                                             "\x80\x2e\x01\x03\x01" };
    for (size_t i = 0; i < sizeof greetings / sizeof *greetings; i++) {
        char got[2048];
        ssize_t size = 0;
        int fd = server_connect(&s);
        assert_true(server_send_text(fd, greetings[i]));
        shutdown(fd, SHUT_WR);
        for (ssize_t n = 1; n > 0 && size<(ssize_t)sizeof got; size += n> 0 ? n : 0)
            n = recv(fd, got + size, sizeof got - (size_t)size, 0);
        assert_true(size < 100); /* an alert at most */
        assert_true(size < 8 || memcmp(got, "HTTP/1.1", 8) != 0);
        close(fd);
    }
    somebody_is_served();
}

static void what_is_old_is_refused(void **state)
{
    (void)state;
    static const struct manner manners[] = {
        { .lowest = TLS1_VERSION, .highest = TLS1_VERSION },
        { .lowest = TLS1_1_VERSION, .highest = TLS1_1_VERSION },
        { .highest = TLS1_2_VERSION, .ciphers = "AES128-SHA" },
        { .highest = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-AES128-SHA" },
        { .protocols = "\x02h2" }
    };
    for (size_t i = 0; i < sizeof manners / sizeof *manners; i++) {
        struct client c;
        client_open(&c, &s, &manners[i]);
        assert_int_not_equal(SSL_connect(c.ssl), 1);
        unsigned long error = ERR_peek_error();
        if (ERR_GET_LIB(error) != ERR_LIB_SSL ||
            ERR_GET_REASON(error) < SSL_AD_REASON_OFFSET) /* an alert came */
            fail_msg("%zu: not refused by the server: %s", i, ERR_reason_error_string(error));
        client_close(&c);
    }
    somebody_is_served();
}

static void tls_on_a_plain_port_is_told_so(void **state)
{
    (void)state;
    size_t size;
    unsigned char *hello = client_hello(&size);
    struct reply r;
    s.options.tls_cert = s.options.tls_key = NULL;
    server_start(&s);
    int fd = server_connect(&s);
    assert_true(server_send(fd, hello, size));
    assert_true(server_receive(fd, &r, false));
    watch_refused(&r, 400, "invalid-request", NULL);
    reply_free(&r);
    watch_ends(fd);
    close(fd);
    free(hello);
}

/* ---- Patience ---- */

/* A byte now and then, until the server closes: that is before it has all, and not before it has
 * been silent for IDLE_MS since `begun`. All bytes would take twenty times as long. */
static void trickle(int fd, int64_t begun, const unsigned char *bytes, size_t size)
{
    assert_true(size > 200);
    for (size_t i = 0; i < size; i++) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        if (poll(&p, 1, IDLE_MS / 10) == 1) {
            assert_true(server_clock_ms() - begun >= IDLE_MS - 100);
            return;
        }
        (void)send(fd, bytes + i, 1, MSG_NOSIGNAL);
    }
    fail_msg("the server has read all %zu bytes in %d ms", size, (int)(server_clock_ms() - begun));
}

/* No part of a handshake or a record makes the time longer that a connection may be silent. */
static void a_trickled_handshake_is_cut_off(void **state)
{
    (void)state;
    size_t size;
    unsigned char *hello = client_hello(&size);
    int64_t begun = server_clock_ms();
    int fd = server_connect(&s);
    trickle(fd, begun, hello, size);
    close(fd);
    free(hello);
}

static void a_trickled_record_is_cut_off(void **state)
{
    (void)state;
    char request[600], *bytes;
    struct client c;
    client_connect(&c, &s, NULL);
    int64_t begun = server_clock_ms();
    is_served(&c);
    /* The next record goes to memory, and from there byte by byte. */
    BIO *memory = BIO_new(BIO_s_mem());
    assert_non_null(memory);
    SSL_set0_wbio(c.ssl, memory);
    memset(request, 'x', sizeof request);
    client_send(&c, request, sizeof request);
    size_t size = (size_t)BIO_get_mem_data(memory, &bytes);
    trickle(c.fd, begun, (unsigned char *)bytes, size);
    client_close(&c);
}

static void a_trickled_head_is_told_so(void **state)
{
    (void)state;
    static const char head[] = "GET /healthz HTTP/1.1\r\nHost: h\r\nX: ";
    struct client c;
    struct reply r;
    client_connect(&c, &s, NULL);
    client_send(&c, head, sizeof head - 1);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; server_clock_ms() < until;) {
        struct pollfd p = { .fd = c.fd, .events = POLLIN };
        if (poll(&p, 1, 20) == 1 && SSL_has_pending(c.ssl) == 0) {
            char byte;
            size_t n;
            if (SSL_peek_ex(c.ssl, &byte, 1, &n) == 1) /* and not a ticket, which comes by itself */
                break;
        }
        client_send(&c, "x", 1);
    }
    assert_true(client_receive(&c, &r));
    watch_refused(&r, 408, "request-timeout", NULL);
    reply_free(&r);
    client_close(&c);
}

/* ---- Another certificate ---- */

static void fingerprint(struct client *c, unsigned char out[32])
{
    unsigned size = 32;
    X509 *cert = SSL_get1_peer_certificate(c->ssl);
    assert_non_null(cert);
    assert_int_equal(X509_digest(cert, EVP_sha256(), out, &size), 1);
    X509_free(cert);
}

static void fingerprint_now(unsigned char out[32])
{
    struct client c;
    client_connect(&c, &s, NULL);
    is_served(&c);
    fingerprint(&c, out);
    client_close(&c);
}

static void files_replace(const struct tls_files *with)
{
    assert_int_equal(rename(with->cert, files.cert), 0);
    assert_int_equal(rename(with->key, files.key), 0);
}

static void a_new_certificate_is_for_new_connections(void **state)
{
    (void)state;
    struct tls_files next;
    unsigned char first[32], second[32], old[32];
    struct client c;
    fingerprint_now(first);
    client_connect(&c, &s, NULL);
    is_served(&c);
    tls_files_make(&next, s.dir, "next", -60, YEAR, NULL);
    files_replace(&next);
    watch_hangup(&s, " reloaded ");
    fingerprint_now(second);
    assert_memory_not_equal(first, second, 32);
    is_served(&c); /* who was there goes on as before */
    fingerprint(&c, old);
    assert_memory_equal(first, old, 32);
    client_close(&c);
}

static void a_broken_certificate_changes_nothing(void **state)
{
    (void)state;
    struct tls_files other;
    unsigned char first[32], second[32];
    fingerprint_now(first);
    tls_files_make(&other, s.dir, "other", -60, YEAR, NULL);
    assert_int_equal(rename(other.cert, files.cert), 0); /* with the key of the old one */
    watch_hangup(&s, "error reload-refused");
    assert_true(watch_log(&s, "is not the key of the certificate", 1));
    fingerprint_now(second);
    assert_memory_equal(first, second, 32);
    assert_int_equal(unlink(files.cert), 0);
    watch_hangup(&s, "error reload-refused");
    fingerprint_now(second);
    assert_memory_equal(first, second, 32);
}

static void a_certificate_that_has_expired_is_remarked_upon(void **state)
{
    (void)state;
    tls_files_make(&files, s.dir, "server", -2 * YEAR, -YEAR, NULL);
    server_start(&s);
    assert_true(watch_log(&s, "has expired", 1));
    somebody_is_served();
    watch_hangup(&s, " reloaded ");
    assert_true(watch_log(&s, "has expired", 2));
}

static void half_of_it_is_not_enough(void **state)
{
    (void)state;
    s.options.tls_key = NULL;
    assert_int_equal(server_start_fails(&s), 2);
    char *log = server_log(&s);
    assert_non_null(strstr(log, "TLS needs both --tls-cert and --tls-key"));
    free(log);
}

/* The first bytes of a client, which cost it nothing: the server has to sign. */
static size_t hello_make(char *out, size_t room)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    BIO *from = BIO_new(BIO_s_mem()), *to = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, from, to);
    assert_true(SSL_connect(ssl) < 0);
    int size = BIO_read(to, out, (int)room);
    assert_true(size > 100 && (size_t)size < room);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return (size_t)size;
}

static int answered(const int *fds, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++) {
        int size = 0;
        assert_int_equal(ioctl(fds[i], FIONREAD, &size), 0);
        sum += size > 0;
    }
    return sum;
}

/* Many begin a handshake at one time. A client that is connected is served before most of them. */
static void handshakes_have_a_share_of_a_turn(void **state)
{
    (void)state;
    enum { CALLERS = 240 };
    static int fds[CALLERS];
    char hello[4096];
    size_t size = hello_make(hello, sizeof hello);
    struct client c;
    int how;
    server_start(&s);
    client_connect(&c, &s, NULL);
    is_served(&c);
    for (int i = 0; i < CALLERS; i++)
        fds[i] = server_connect(&s);
    is_served(&c); /* all are let in */
    assert_int_equal(kill(s.pid, SIGSTOP), 0);
    assert_int_equal(waitpid(s.pid, &how, WUNTRACED), s.pid);
    for (int i = 0; i < CALLERS; i++)
        assert_true(server_send(fds[i], hello, size));
    assert_int_equal(kill(s.pid, SIGCONT), 0);
    while (answered(fds, CALLERS) == 0)
        ;
    is_served(&c);
    int by_then = answered(fds, CALLERS);
    printf("%d of %d handshakes when the client had its answer\n", by_then, CALLERS);
    assert_true(by_then < CALLERS / 2);
    for (int i = 0; i < CALLERS; i++) { /* and they get theirs, too */
        struct pollfd p = { .fd = fds[i], .events = POLLIN };
        assert_int_equal(poll(&p, 1, 30000), 1);
        close(fds[i]);
    }
    client_close(&c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_STOPPED(name) cmocka_unit_test_setup_teardown(name, setup_stopped, teardown)
#define TEST_IMPATIENT(name) cmocka_unit_test_setup_teardown(name, setup_impatient, teardown)
    const struct CMUnitTest tests[] = {
        TEST(requests_and_answers),
        TEST(its_own_origin_is_https),
        TEST(many_requests_at_once),
        TEST(large_bodies_both_ways),
        TEST(a_record_a_byte),
        TEST(the_end_is_said),
        TEST(whoever_stops_in_the_handshake_does_no_harm),
        TEST(whoever_does_not_speak_tls_is_closed),
        TEST(what_is_old_is_refused),
        TEST_STOPPED(tls_on_a_plain_port_is_told_so),
        TEST_IMPATIENT(a_trickled_handshake_is_cut_off),
        TEST_IMPATIENT(a_trickled_record_is_cut_off),
        TEST_IMPATIENT(a_trickled_head_is_told_so),
        TEST(a_new_certificate_is_for_new_connections),
        TEST(a_broken_certificate_changes_nothing),
        TEST_STOPPED(a_certificate_that_has_expired_is_remarked_upon),
        TEST_STOPPED(half_of_it_is_not_enough),
        TEST_STOPPED(handshakes_have_a_share_of_a_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
