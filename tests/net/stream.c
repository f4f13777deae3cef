/* Both ends of a stream, plain and with TLS, and what a client is told of a server that is not the
 * one it expects. */
#include "net/kit/tls.h"
#include "support/test.h"
#include "support/test_io.h"

#include "net/socket.h"
#include "net/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define YEAR (365L * 86400)

static char *dir;
static struct tls_files files, other_files;
static struct hf_tls *serving, *trusting, *distrusting;
static struct hf_stream server, client;
static struct hf_error why;

static int setup(void **state)
{
    (void)state;
    dir = test_dir_make();
    tls_files_make(&files, dir, "server", -60, YEAR, NULL);
    tls_files_make(&other_files, dir, "other", -60, YEAR, NULL);
    struct hf_tls_files names = { files.cert, files.key };
    return hf_tls_load(&names, &serving, &why) || hf_tls_trust(files.cert, &trusting, &why) ||
           hf_tls_trust(other_files.cert, &distrusting, &why);
}

static int teardown(void **state)
{
    (void)state;
    hf_tls_drop(serving);
    hf_tls_drop(trusting);
    hf_tls_drop(distrusting);
    test_dir_remove(dir);
    return 0;
}

static void pair(void)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    server = (struct hf_stream){ .fd = fds[0] };
    client = (struct hf_stream){ .fd = fds[1] };
}

static void pair_tls(struct hf_tls *trust, const char *host, bool literal)
{
    pair();
    server.tls = hf_tls_accept(serving, server.fd);
    client.tls = hf_tls_connect(trust, client.fd, &(struct hf_tls_peer){ host, literal });
    assert_true(server.tls && client.tls);
}

static int close_both(void **state)
{
    (void)state;
    hf_stream_close(&server);
    hf_stream_close(&client);
    hf_stream_close(&client); /* again does no harm */
    return 0;
}

/* Let both shake hands. 1, or -1 if the client is broken. */
static int shake(void)
{
    enum hf_tls_wants wants, ignored;
    for (int i = 0; i < 100; i++) {
        int done = hf_tls_shake(client.tls, &wants);
        if (done == 1 || wants == HF_TLS_WANTS_NOTHING)
            return done;
        (void)hf_tls_shake(server.tls, &ignored);
    }
    fail_msg("the handshake has no end");
    return 0;
}

/* Move `text` one way. With TLS the handshake may be under way, so both ends are looked at. */
static void moves(struct hf_stream *from, struct hf_stream *to, const char *text)
{
    char got[64];
    size_t size = strlen(text), sent = 0, there = 0;
    for (int i = 0; i < 100 && there < size; i++) {
        ssize_t n = sent < size ? hf_stream_write(from, text + sent, size - sent) : 0;
        assert_true(n >= 0 || errno == EAGAIN);
        sent += n > 0 ? (size_t)n : 0;
        n = hf_stream_read(to, got + there, sizeof got - there);
        assert_true(n > 0 || (n < 0 && errno == EAGAIN));
        there += n > 0 ? (size_t)n : 0;
    }
    assert_int_equal(there, size);
    assert_memory_equal(got, text, size);
}

static void plain_bytes_go_both_ways(void **state)
{
    (void)state;
    pair();
    moves(&client, &server, "ping");
    moves(&server, &client, "pong");
    assert_false(hf_stream_pending(&client));
    assert_true(hf_stream_finish(&server));
    char byte;
    assert_int_equal(hf_stream_read(&client, &byte, 1), 0);
    hf_stream_close(&server);
    assert_int_equal(hf_stream_write(&client, "x", 1), -1);
    assert_int_equal(errno, EPIPE);
}

static void tls_bytes_go_both_ways(void **state)
{
    (void)state;
    char byte;
    pair_tls(trusting, "localhost", false);
    moves(&client, &server, "ping"); /* the handshake happens inside */
    moves(&server, &client, "pong");
    assert_int_equal(hf_stream_write(&server, "two", 3), 3);
    assert_int_equal(hf_stream_read(&client, &byte, 1), 1);
    assert_true(hf_stream_pending(&client)); /* the socket is empty, and there is more */
    char rest[2];
    assert_int_equal(hf_stream_read(&client, rest, 2), 2);
    assert_false(hf_stream_pending(&client));
    assert_true(hf_stream_finish(&server));
    assert_int_equal(hf_stream_read(&client, &byte, 1), 0);
}

static void fails_with(enum hf_tls_fault fault)
{
    struct hf_tls_failure f = hf_tls_failure(client.tls);
    if (f.fault != fault)
        fail_msg("fault %d, error %d: %s", f.fault, f.error, f.reason);
    assert_true(f.reason[0]);
}

static void client_speaks_to_the_expected_server_alone(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool literal, trusts;
    } bad[] = { { "localhost", false, false },
                { "example.org", false, true },
                { "127.0.0.2", true, true } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pair_tls(bad[i].trusts ? trusting : distrusting, bad[i].host, bad[i].literal);
        assert_int_equal(shake(), -1);
        fails_with(HF_TLS_UNTRUSTED);
        assert_int_equal(hf_stream_write(&client, "x", 1), -1);
        assert_int_equal(errno, ECONNRESET);
        close_both(NULL);
    }
    pair_tls(trusting, "localhost", false);
    assert_int_equal(shake(), 1);
}

static void client_says_what_is_wrong(void **state)
{
    (void)state;
    static const char plain[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    pair_tls(trusting, "localhost", false);
    assert_int_equal(send(server.fd, plain, sizeof plain - 1, 0), sizeof plain - 1);
    assert_int_equal(shake(), -1);
    fails_with(HF_TLS_UNSPOKEN);
    close_both(NULL);

    pair_tls(trusting, "localhost", false);
    shutdown(server.fd, SHUT_WR);
    enum hf_tls_wants wants;
    assert_int_equal(hf_tls_shake(client.tls, &wants), -1);
    fails_with(HF_TLS_ENDED);
    close_both(NULL);

    pair_tls(trusting, "localhost", false);
    close(server.fd);
    server.fd = -1;
    assert_int_equal(hf_tls_shake(client.tls, &wants), -1);
    fails_with(HF_TLS_CUT);
    assert_int_equal(hf_tls_failure(client.tls).error, EPIPE);
}

static void answer_outlives_a_write_that_failed(void **state)
{
    (void)state;
    char got[4];
    pair_tls(trusting, "localhost", false);
    moves(&client, &server, "ping");
    moves(&server, &client, "pong");
    assert_int_equal(hf_stream_write(&server, "late", 4), 4);
    shutdown(server.fd, SHUT_RD); /* the server reads no further */
    assert_int_equal(hf_stream_write(&client, "more", 4), -1);
    assert_int_equal(errno, ECONNRESET);
    fails_with(HF_TLS_CUT);
    assert_int_equal(hf_stream_write(&client, "more", 4), -1); /* it stays so */
    assert_int_equal(hf_stream_read(&client, got, sizeof got), 4);
    assert_memory_equal(got, "late", 4);
}

static void trust_needs_certificates(void **state)
{
    (void)state;
    struct hf_tls *tls;
    assert_int_equal(hf_tls_trust(files.key, &tls, &why), HF_INVALID_REQUEST);
    assert_null(tls);
    assert_non_null(strstr(why.text, files.key));
    assert_int_equal(hf_tls_trust(NULL, &tls, &why), HF_OK); /* as the system does */
    hf_tls_drop(tls);
}

/* Addresses, and sockets that find each other without waiting. What is no address:
 * tests/http/listen.c. */

static struct hf_address address_of(const char *text)
{
    struct hf_address address;
    if (!hf_address_parse(text, &address))
        fail_msg("\"%s\" is no address", text);
    return address;
}

static void print_is_the_inverse_of_parse(void **state)
{
    (void)state;
    static const char *const same[] = { "127.0.0.1:4653", "0.0.0.0:0", "[::1]:65535",
                                        "[2001:db8::2]:80" };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char text[HF_ADDRESS_TEXT];
        struct hf_address address = address_of(same[i]);
        hf_address_print(&address, text);
        assert_string_equal(text, same[i]);
        assert_int_equal(hf_address_is_loopback(&address),
                         strstr(same[i], "127") || strstr(same[i], "[::1"));
    }
}

static void is_ready(int fd, short events)
{
    struct pollfd p = { .fd = fd, .events = events };
    assert_int_equal(poll(&p, 1, 10000), 1);
}

static void has_options(int fd)
{
    int on = 0;
    socklen_t size = sizeof on;
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
    assert_true(on);
}

static void connect_meets_accept(void **state)
{
    (void)state;
    struct hf_address address = address_of("127.0.0.1:0");
    int listener = hf_socket_listen(&address, 4);
    assert_true(listener >= 0);
    assert_int_equal(hf_socket_accept(listener), -1);
    assert_int_equal(errno, EAGAIN);
    int connected = hf_socket_make(&address);
    int begun = hf_socket_connect(connected, &address);
    assert_true(begun == 0 || begun == EINPROGRESS);
    is_ready(connected, POLLOUT);
    assert_int_equal(hf_socket_error(connected), 0);
    is_ready(listener, POLLIN);
    int accepted = hf_socket_accept(listener);
    assert_true(accepted >= 0);
    has_options(connected);
    has_options(accepted);
    close(accepted);
    close(connected);
    close(listener);
}

static void nobody_there_is_an_error(void **state)
{
    (void)state;
    struct hf_address address = address_of("127.0.0.1:0");
    int listener = hf_socket_listen(&address, 4);
    assert_true(listener >= 0);
    close(listener);
    int connected = hf_socket_make(&address);
    int error = hf_socket_connect(connected, &address);
    if (error == EINPROGRESS) {
        is_ready(connected, POLLOUT);
        error = hf_socket_error(connected);
    }
    assert_int_equal(error, ECONNREFUSED);
    close(connected);
    address = address_of("192.0.2.1:0"); /* an address of no machine */
    assert_int_equal(hf_socket_listen(&address, 4), -EADDRNOTAVAIL);
}

static void some_descriptors_are_set_apart(void **state)
{
    (void)state;
    assert_int_equal(hf_socket_allow(1, 0), 1);
    unsigned all = hf_socket_allow(1u << 30, 0), most = hf_socket_allow(1u << 30, 16);
    assert_true(all == 1u << 30 || most == all - 16);
}

int main(void)
{
    const struct CMUnitTest stream_tests[] = {
        cmocka_unit_test_teardown(plain_bytes_go_both_ways, close_both),
        cmocka_unit_test_teardown(tls_bytes_go_both_ways, close_both),
        cmocka_unit_test_teardown(client_speaks_to_the_expected_server_alone, close_both),
        cmocka_unit_test_teardown(client_says_what_is_wrong, close_both),
        cmocka_unit_test_teardown(answer_outlives_a_write_that_failed, close_both),
        cmocka_unit_test(trust_needs_certificates),
    };
    const struct CMUnitTest socket_tests[] = {
        cmocka_unit_test(print_is_the_inverse_of_parse),
        cmocka_unit_test(connect_meets_accept),
        cmocka_unit_test(nobody_there_is_an_error),
        cmocka_unit_test(some_descriptors_are_set_apart),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(stream_tests, setup, teardown);
    failed += cmocka_run_group_tests(socket_tests, NULL, NULL);
    return failed;
}
