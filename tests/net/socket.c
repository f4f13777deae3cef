/* Addresses, and sockets that find each other without waiting. What is no address:
 * tests/http/listen.c. */
#include "net/socket.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

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
    int client = hf_socket_make(&address);
    int begun = hf_socket_connect(client, &address);
    assert_true(begun == 0 || begun == EINPROGRESS);
    is_ready(client, POLLOUT);
    assert_int_equal(hf_socket_error(client), 0);
    is_ready(listener, POLLIN);
    int server = hf_socket_accept(listener);
    assert_true(server >= 0);
    has_options(client);
    has_options(server);
    close(server);
    close(client);
    close(listener);
}

static void nobody_there_is_an_error(void **state)
{
    (void)state;
    struct hf_address address = address_of("127.0.0.1:0");
    int listener = hf_socket_listen(&address, 4);
    assert_true(listener >= 0);
    close(listener);
    int client = hf_socket_make(&address);
    int error = hf_socket_connect(client, &address);
    if (error == EINPROGRESS) {
        is_ready(client, POLLOUT);
        error = hf_socket_error(client);
    }
    assert_int_equal(error, ECONNREFUSED);
    close(client);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_is_the_inverse_of_parse),
        cmocka_unit_test(connect_meets_accept),
        cmocka_unit_test(nobody_there_is_an_error),
        cmocka_unit_test(some_descriptors_are_set_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
