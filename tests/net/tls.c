/* TLS as the server sees it: what is negotiated, what is refused, and that no client can hold,
 * crash or fill it. The client is OpenSSL's too, with every byte moved by hand. */
#define _GNU_SOURCE /* mallinfo2 */
#include "net/kit/tls.h"
#include "support/test.h"
#include "support/test_io.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <openssl/err.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define YEAR (365L * 86400)

static char *dir;
static struct tls_files files;
static struct hf_tls *tls;
static SSL_CTX *client; /* trusts the certificate */
static struct tls_link l;
static struct hf_error why;

static struct hf_tls_files names(const struct tls_files *f)
{
    return (struct hf_tls_files){ f->cert, f->key };
}

static int setup(void **state)
{
    (void)state;
    dir = test_dir_make();
    tls_files_make(&files, dir, "server", -60, YEAR, NULL);
    struct hf_tls_files n = names(&files);
    if (hf_tls_load(&n, &tls, &why) != HF_OK || why.text[0])
        return 1;
    client = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(client, SSL_VERIFY_PEER, NULL);
    return SSL_CTX_load_verify_locations(client, files.cert, NULL) == 1 ? 0 : 1;
}

static int teardown(void **state)
{
    (void)state;
    SSL_CTX_free(client);
    hf_tls_drop(tls);
    test_dir_remove(dir);
    return 0;
}

static int link_setup(void **state)
{
    (void)state;
    tls_link_open(&l, tls, client);
    return 0;
}

static int link_teardown(void **state)
{
    (void)state;
    tls_link_close(&l);
    return 0;
}

static ssize_t server_read(void *data, size_t size)
{
    enum hf_tls_wants wants;
    ssize_t n = hf_tls_read(l.server, data, size, &wants);
    return n < 0 && wants == HF_TLS_WANTS_NOTHING ? -2 : n; /* -2: broken */
}

static void is_broken(void)
{
    char b[16];
    enum hf_tls_wants wants = HF_TLS_WANTS_READ;
    assert_int_equal(server_read(b, sizeof b), -2);
    assert_int_equal(hf_tls_write(l.server, "x", 1, &wants), -1);
    assert_int_equal(wants, HF_TLS_WANTS_NOTHING);
    assert_false(hf_tls_pending(l.server));
}

/* ---- Handshakes ---- */

static void versions_in_single_bytes(void **state)
{
    (void)state;
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    static const size_t mosts[] = { 1, 7, 100000 };
    for (size_t i = 0; i < 6; i++) {
        tls_link_open(&l, tls, client);
        SSL_set_min_proto_version(l.client, versions[i % 2]);
        SSL_set_max_proto_version(l.client, versions[i % 2]);
        assert_true(tls_echo(&l, mosts[i / 2]));
        assert_true(tls_echo(&l, mosts[i / 2]));
        assert_int_equal(SSL_version(l.client), versions[i % 2]);
        assert_int_equal(SSL_get_verify_result(l.client), X509_V_OK);
        assert_null(SSL_get_current_compression(l.client));
        tls_link_close(&l);
    }
}

/* A client that may speak what we do not. */
static SSL_CTX *careless(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    assert_non_null(ctx);
    SSL_CTX_set_security_level(ctx, 0);
    return ctx;
}

static void old_versions(void **state)
{
    (void)state;
    SSL_CTX *ctx = careless();
    static const int versions[] = { TLS1_VERSION, TLS1_1_VERSION };
    for (size_t i = 0; i < 2; i++) {
        SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION);
        assert_int_equal(SSL_CTX_set_max_proto_version(ctx, versions[i]), 1);
        tls_link_open(&l, tls, ctx);
        assert_false(tls_echo(&l, 100000));
        is_broken();
        SSL_do_handshake(l.client);
        assert_int_equal(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
        ERR_clear_error();
        tls_link_close(&l);
    }
    SSL_CTX_free(ctx);
}

static void weak_ciphers(void **state)
{
    (void)state;
    /* No forward secrecy; no authentication of the data together with its encryption; nobody
     * authenticated. */
    static const char *const weak[] = { "AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA",
                                        "AECDH-AES128-SHA", "ECDHE-ECDSA-NULL-SHA" };
    for (size_t i = 0; i < sizeof weak / sizeof *weak; i++) {
        SSL_CTX *ctx = careless();
        SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
        assert_int_equal(SSL_CTX_set_cipher_list(ctx, weak[i]), 1);
        tls_link_open(&l, tls, ctx);
        assert_false(tls_echo(&l, 100000));
        is_broken();
        tls_link_close(&l);
        SSL_CTX_free(ctx);
    }
}

static void client_that_refuses_the_certificate(void **state)
{
    (void)state;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL); /* and trusts nobody */
    tls_link_open(&l, tls, ctx);
    assert_false(tls_echo(&l, 100000));
    char b[16];
    while (tls_pump(&l, 100000))
        server_read(b, sizeof b);
    is_broken();
    tls_link_close(&l);
    SSL_CTX_free(ctx);
}

static void protocols(void **state)
{
    (void)state;
    static const struct {
        const char *offered;
        bool works;
        const char *chosen;
    } cases[] = {
        { "\x02h2\x08http/1.1", true, "http/1.1" },
        { "\x08http/1.1", true, "http/1.1" },
        { "\x02h2", false, "" },
        { "\x04smtp\x08http/1.0", false, "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const unsigned char *chosen;
        unsigned size;
        tls_link_open(&l, tls, client);
        assert_int_equal(SSL_set_alpn_protos(l.client, (const unsigned char *)cases[i].offered,
                                             (unsigned)strlen(cases[i].offered)),
                         0);
        assert_int_equal(tls_echo(&l, 100000), cases[i].works);
        SSL_get0_alpn_selected(l.client, &chosen, &size);
        assert_int_equal(size, strlen(cases[i].chosen));
        if (size > 0)
            assert_memory_equal(chosen, cases[i].chosen, size);
        tls_link_close(&l);
    }
}

static SSL_SESSION *ticket;

static int ticket_take(SSL *ssl, SSL_SESSION *session)
{
    (void)ssl;
    SSL_SESSION_free(ticket);
    ticket = session;
    return 1;
}

static void sessions_by_ticket(void **state)
{
    (void)state;
    SSL_CTX_set_session_cache_mode(client, SSL_SESS_CACHE_CLIENT);
    SSL_CTX_sess_set_new_cb(client, ticket_take);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        ticket = NULL;
        for (int i = 0; i < 2; i++) {
            tls_link_open(&l, tls, client);
            SSL_set_min_proto_version(l.client, version);
            SSL_set_max_proto_version(l.client, version);
            if (i == 1)
                assert_int_equal(SSL_set_session(l.client, ticket), 1);
            assert_true(tls_echo(&l, 100000));
            assert_non_null(ticket);
            assert_int_equal(SSL_session_reused(l.client), i);
            /* What is sent before the handshake could be sent again by anybody. */
            assert_int_equal(SSL_SESSION_get_max_early_data(ticket), 0);
            SSL_set_shutdown(
                l.client, SSL_SENT_SHUTDOWN); /* a session that ends otherwise is not used again */
            tls_link_close(&l);
        }
        SSL_SESSION_free(ticket);
    }
    SSL_CTX_sess_set_new_cb(client, NULL);
    SSL_CTX_set_session_cache_mode(client, SSL_SESS_CACHE_OFF);
}

static void renegotiation(void **state)
{
    (void)state;
    char b[16];
    tls_link_open(&l, tls, client);
    SSL_set_max_proto_version(l.client, TLS1_2_VERSION);
    assert_true(tls_echo(&l, 100000));
    SSL_clear_options(l.client, SSL_OP_NO_RENEGOTIATION);
    assert_int_equal(SSL_renegotiate(l.client), 1);
    bool refused_it = false;
    for (int i = 0; i < 20 && !refused_it; i++) {
        int n = SSL_do_handshake(l.client);
        refused_it = n <= 0 && SSL_get_error(l.client, n) == SSL_ERROR_SSL;
        if (refused_it)
            assert_int_equal(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_NO_RENEGOTIATION);
        ERR_clear_error();
        tls_pump(&l, 100000);
        assert_true(server_read(b, sizeof b) < 0);
    }
    assert_true(refused_it);
    tls_link_close(&l);
}

/* ---- Hostile beginnings ---- */

static void send_all(const void *data, size_t size)
{
    assert_int_equal(send(l.client_fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void garbage_for_a_hello(void **state)
{
    (void)state;
    static const char *const beginnings[] = { "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                              "\x16\x03\x01\xff\xff rest of it",
                                              "SSH-2.0-OpenSSH_9.2\r\n",
                                              "\x80\x2e\x01\x00\x02 version two",
                                              "\x15\x03\x03\x00\x02\x02\x28 an alert" };
    static const char filler[20000];
    char b[16];
    uint64_t seed = test_seed("garbage", 7);
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        tls_link_open(&l, tls, client);
        send_all(beginnings[i], strlen(beginnings[i]));
        if (server_read(b, sizeof b) == -1) { /* it may go on */
            send_all(filler, sizeof filler);
            assert_int_equal(server_read(b, sizeof b), -2);
        }
        is_broken();
        tls_link_close(&l);
    }
    for (int i = 0; i < 200; i++) {
        unsigned char noise[600];
        tls_link_open(&l, tls, client);
        for (size_t k = 0; k < sizeof noise; k++)
            noise[k] = (unsigned char)test_random(&seed);
        if (i % 2) /* something that begins like a hello */
            memcpy(noise, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
        send_all(noise, sizeof noise);
        assert_true(server_read(b, sizeof b) < 0);
        shutdown(l.client_fd, SHUT_WR);
        while (server_read(b, sizeof b) == -1)
            continue;
        is_broken();
        tls_link_close(&l);
    }
}

static void client_that_goes_away(void **state)
{
    (void)state;
    char b[16];
    enum hf_tls_wants wants;
    for (int i = 0; i < 3; i++) { /* at once; amid the handshake; after it, without goodbye */
        tls_link_open(&l, tls, client);
        if (i == 1) {
            SSL_do_handshake(l.client);
            tls_pump(&l, 50);
            assert_int_equal(server_read(b, sizeof b), -1);
        } else if (i == 2) {
            assert_true(tls_echo(&l, 100000));
        }
        close(l.client_fd);
        l.client_fd = -1;
        while (server_read(b, sizeof b) == -1)
            continue;
        is_broken();
        tls_link_close(&l);
    }
    /* Writing to who is gone is an error like another: no signal, or this test would have ended
     * here. */
    tls_link_open(&l, tls, client);
    assert_true(tls_echo(&l, 100000));
    close(l.client_fd);
    l.client_fd = -1;
    assert_int_equal(hf_tls_write(l.server, "late", 4, &wants), -1);
    assert_int_equal(wants, HF_TLS_WANTS_NOTHING);
    is_broken();
    tls_link_close(&l);
    tls_link_open(&l, tls, client);
    assert_true(tls_echo(&l, 100000));
    close(l.client_fd);
    l.client_fd = -1;
    tls_link_close(&l); /* the close_notify cannot be sent: no signal either */
}

/* ---- The end ---- */

static void goodbyes(void **state)
{
    (void)state;
    char b[16];
    enum hf_tls_wants wants;
    assert_true(tls_echo(&l, 100000));
    assert_int_equal(SSL_shutdown(l.client), 0); /* says that it will send no more */
    tls_pump(&l, 100000);
    assert_int_equal(server_read(b, sizeof b), 0);
    assert_int_equal(server_read(b, sizeof b), 0);
    assert_int_equal(hf_tls_write(l.server, "bye", 3, &wants), 3); /* it may still hear */
    hf_tls_close(l.server);
    l.server = NULL;
    hf_tls_close(NULL);
    while (tls_pump(&l, 100000))
        continue;
    assert_int_equal(SSL_read(l.client, b, sizeof b), 3);
    assert_memory_equal(b, "bye", 3);
    int n = SSL_read(l.client, b, sizeof b);
    assert_int_equal(SSL_get_error(l.client, n), SSL_ERROR_ZERO_RETURN);
}

/* ---- Bytes ---- */

static unsigned char pattern(size_t at)
{
    return (unsigned char)(at * 131 + (at >> 11));
}

static void small_buffers(void)
{
    int size = 4096;
    assert_int_equal(setsockopt(l.server_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    assert_int_equal(setsockopt(l.client_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
}

/* The server writes out of a buffer that is somewhere else at each try, and sometimes longer. */
static void much_to_the_client(void **state)
{
    (void)state;
    enum { TOTAL = 3 << 20, WINDOW = 60000 };
    unsigned char *places[2] = { malloc(WINDOW), malloc(WINDOW) };
    static unsigned char got[20000];
    size_t sent = 0, received = 0, window = 1000;
    uint64_t seed = test_seed("much", 11);
    unsigned waits = 0, parts = 0;
    enum hf_tls_wants wants;
    small_buffers();
    assert_true(tls_echo(&l, 100000));
    for (int turn = 0; received < TOTAL; turn++) {
        if (sent < TOTAL) {
            unsigned char *place = places[turn % 2];
            memset(places[1 - turn % 2], 0, WINDOW); /* nobody may read there any more */
            window = window > TOTAL - sent ? TOTAL - sent : window;
            for (size_t i = 0; i < window; i++)
                place[i] = pattern(sent + i);
            ssize_t n = hf_tls_write(l.server, place, window, &wants);
            if (n > 0) {
                parts += (size_t)n < window;
                sent += (size_t)n;
                window = 1 + test_below(&seed, WINDOW);
            } else {
                assert_int_equal(n, -1);
                assert_int_equal(wants, HF_TLS_WANTS_WRITE);
                waits++;
                window += test_below(&seed, WINDOW - window + 1); /* more came behind it */
            }
        }
        tls_pump(&l, 1 + test_below(&seed, 20000));
        int n = SSL_read(l.client, got, sizeof got);
        for (int i = 0; i < n; i++)
            assert_int_equal(got[i], pattern(received + (size_t)i));
        received += n > 0 ? (size_t)n : 0;
    }
    assert_int_equal(received, sent);
    assert_true(waits > 0);
    assert_true(parts > 0); /* what fits is taken, instead of nothing until all fits */
    free(places[0]);
    free(places[1]);
}

static void much_to_the_server(void **state)
{
    (void)state;
    enum { TOTAL = 3 << 20 };
    static unsigned char out[30000], got[9000];
    size_t sent = 0, received = 0;
    uint64_t seed = test_seed("much back", 12);
    small_buffers();
    assert_true(tls_echo(&l, 100000));
    while (received < TOTAL) {
        if (sent < TOTAL && BIO_pending(SSL_get_wbio(l.client)) < 100000) {
            size_t size = 1 + test_below(&seed, sizeof out);
            size = size > TOTAL - sent ? TOTAL - sent : size;
            for (size_t i = 0; i < size; i++)
                out[i] = pattern(sent + i);
            assert_int_equal(SSL_write(l.client, out, (int)size), (int)size);
            sent += size;
        }
        tls_pump(&l, 1 + test_below(&seed, 20000));
        ssize_t n = server_read(got, 1 + test_below(&seed, sizeof got));
        assert_true(n == -1 || n > 0);
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(got[i], pattern(received + (size_t)i));
        received += n > 0 ? (size_t)n : 0;
    }
}

static void pending_bytes(void **state)
{
    (void)state;
    char data[5000];
    memset(data, 'd', sizeof data);
    assert_true(tls_echo(&l, 100000));
    assert_false(hf_tls_pending(l.server));
    assert_int_equal(SSL_write(l.client, data, sizeof data), (int)sizeof data);
    while (tls_pump(&l, 100000))
        continue;
    assert_false(hf_tls_pending(l.server)); /* epoll sees these */
    assert_int_equal(server_read(data, 1), 1);
    assert_true(hf_tls_pending(l.server)); /* and not these */
    assert_int_equal(server_read(data, sizeof data), (ssize_t)sizeof data - 1);
    assert_false(hf_tls_pending(l.server));
    assert_int_equal(server_read(data, sizeof data), -1);
}

/* OpenSSL keeps errors in a queue for each thread: what another connection left there is none of
 * ours. */
static void errors_of_others(void **state)
{
    (void)state;
    char b[16];
    assert_true(tls_echo(&l, 100000));
    ERR_raise(ERR_LIB_USER, 1);
    assert_int_equal(server_read(b, sizeof b), -1);
    ERR_raise(ERR_LIB_USER, 1);
    assert_true(tls_echo(&l, 100000));
    assert_int_equal(ERR_peek_error(), 0);
}

/* ---- Owners and memory ---- */

static void connections_outlive_a_reload(void **state)
{
    (void)state;
    struct hf_tls *old = NULL;
    struct hf_tls_files n = names(&files);
    assert_int_equal(hf_tls_load(&n, &old, &why), HF_OK);
    tls_link_open(&l, old, client);
    assert_true(tls_echo(&l, 3));
    hf_tls_drop(old); /* another certificate is in force from now on */
    assert_true(tls_echo(&l, 3));
    tls_link_close(&l);
    assert_null(hf_tls_keep(NULL));
    hf_tls_drop(NULL);
}

static void *accept_again_and_again(void *arg)
{
    bool *good = arg;
    for (int i = 0; i < 30 && *good; i++) {
        struct tls_link mine;
        struct hf_tls *kept = hf_tls_keep(tls);
        tls_link_open(&mine, kept, client);
        hf_tls_drop(kept);
        *good = tls_echo(&mine, 100000);
        tls_link_close(&mine);
    }
    return NULL;
}

static void threads_share_a_certificate(void **state)
{
    (void)state;
    pthread_t threads[4];
    bool good[4] = { true, true, true, true };
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, accept_again_and_again, &good[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(good[i]);
    }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INSTRUMENTED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INSTRUMENTED 1
#endif
#endif

#ifndef INSTRUMENTED
/* A server with thousands of clients that rest must not pay for buffers: 34 KiB each, without
 * care. */
static void idle_connections_are_small(void **state)
{
    (void)state;
    enum { CONNECTIONS = 100, BYTES_MAX = 24 << 10 };
    static struct tls_link links[CONNECTIONS];
    struct tls_link once;
    tls_link_open(&once, tls, client); /* what is made once is not counted */
    assert_true(tls_echo(&once, 100000));
    tls_link_close(&once);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < CONNECTIONS; i++) {
        tls_link_open(&links[i], tls, client);
        assert_true(tls_echo(&links[i], 100000));
    }
    size_t both = mallinfo2().uordblks - before;
    for (int i = 0; i < CONNECTIONS; i++) {
        SSL_free(links[i].client);
        links[i].client = NULL;
    }
    size_t servers = mallinfo2().uordblks - before;
    print_message("a resting connection has %zu bytes, with its client %zu\n",
                  servers / CONNECTIONS, both / CONNECTIONS);
    assert_true(servers / CONNECTIONS < BYTES_MAX);
    for (int i = 0; i < CONNECTIONS; i++)
        tls_link_close(&links[i]);
}
#endif

#define WITH_LINK(test) cmocka_unit_test_setup_teardown(test, link_setup, link_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_in_single_bytes),
        cmocka_unit_test(old_versions),
        cmocka_unit_test(weak_ciphers),
        cmocka_unit_test(client_that_refuses_the_certificate),
        cmocka_unit_test(protocols),
        cmocka_unit_test(sessions_by_ticket),
        cmocka_unit_test(renegotiation),
        cmocka_unit_test(garbage_for_a_hello),
        cmocka_unit_test(client_that_goes_away),
        WITH_LINK(goodbyes),
        WITH_LINK(much_to_the_client),
        WITH_LINK(much_to_the_server),
        WITH_LINK(pending_bytes),
        WITH_LINK(errors_of_others),
        cmocka_unit_test(connections_outlive_a_reload),
        cmocka_unit_test(threads_share_a_certificate),
#ifndef INSTRUMENTED
        cmocka_unit_test(idle_connections_are_small),
#endif
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
