#define _GNU_SOURCE /* accept4 */
#include "net/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- Addresses ---- */

bool hf_address_parse(const char *text, struct hf_address *address)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof host || colon == text)
        return false;
    char *end;
    if (colon[1] < '0' || colon[1] > '9')
        return false;
    long port = strtol(colon + 1, &end, 10);
    if (*end != 0 || port < 0 || port > 65535)
        return false;
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = 0;
    *address = (struct hf_address){ 0 };
    size_t length = strlen(host);
    if (host[0] == '[' && host[length - 1] == ']') {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address->addr;
        host[length - 1] = 0;
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)port);
        address->size = sizeof *six;
        return inet_pton(AF_INET6, host + 1, &six->sin6_addr) == 1;
    }
    struct sockaddr_in *four = (struct sockaddr_in *)&address->addr;
    four->sin_family = AF_INET;
    four->sin_port = htons((uint16_t)port);
    address->size = sizeof *four;
    return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                     &four->sin_addr) == 1;
}

void hf_address_print(const struct hf_address *address, char text[HF_ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN];
    if (address->addr.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address->addr;
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        snprintf(text, HF_ADDRESS_TEXT, "[%s]:%u", host, ntohs(six->sin6_port));
        return;
    }
    const struct sockaddr_in *four = (const struct sockaddr_in *)&address->addr;
    inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
    snprintf(text, HF_ADDRESS_TEXT, "%s:%u", host, ntohs(four->sin_port));
}

bool hf_address_is_loopback(const struct hf_address *address)
{
    if (address->addr.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&address->addr)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)&address->addr)->sin_addr.s_addr) >> 24 == 127;
}

/* ---- Sockets ---- */

/* Ignores errors: the socket works without the option too. */
static void option_set(int fd, int level, int option)
{
    int on = 1;
    (void)setsockopt(fd, level, option, &on, sizeof on);
}

int hf_socket_make(const struct hf_address *address)
{
    int fd = socket(address->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    option_set(fd, IPPROTO_TCP, TCP_NODELAY);
    return fd;
}

int hf_socket_listen(struct hf_address *address, int backlog)
{
    int fd = hf_socket_make(address);
    if (fd < 0)
        return fd;
    option_set(fd, SOL_SOCKET, SO_REUSEADDR);
    if (address->addr.ss_family == AF_INET6)
        option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    if (bind(fd, (struct sockaddr *)&address->addr, address->size) == 0 &&
        listen(fd, backlog) == 0 &&
        getsockname(fd, (struct sockaddr *)&address->addr, &address->size) == 0)
        return fd;
    int error = errno;
    close(fd);
    return -error;
}

int hf_socket_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        option_set(fd, IPPROTO_TCP, TCP_NODELAY);
    return fd;
}

int hf_socket_connect(int fd, const struct hf_address *address)
{
    return connect(fd, (const struct sockaddr *)&address->addr, address->size) == 0 ? 0 : errno;
}

int hf_socket_error(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

unsigned hf_socket_allow(unsigned wanted, unsigned reserved)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wanted;
    rlim_t files = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (files < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        files = limit.rlim_max;
    if (files == RLIM_INFINITY)
        return wanted;
    rlim_t most = files > 2 * (rlim_t)reserved ? files - reserved : files / 2;
    return wanted < most ? wanted : (unsigned)most;
}
