/* socket.h: addresses, listening, accepting, connecting, and the limit of descriptors.
 *
 * All sockets are non-blocking and close-on-exec. Small packets are sent at once (TCP_NODELAY):
 * requests and answers are written in one piece, and waiting for more bytes would only delay
 * them. */
#ifndef HF_NET_SOCKET_H
#define HF_NET_SOCKET_H

#include "holdfast.h"

#include <sys/socket.h>

struct hf_address {
    struct sockaddr_storage addr;
    socklen_t size;
};

#define HF_ADDRESS_TEXT 64 /* bytes for the text of any address */

/* hf_address_parse: "ADDR:PORT" or "[ADDR]:PORT", IPv4 or IPv6. Only numeric addresses: a name
 * could mean another machine tomorrow. "localhost" means 127.0.0.1. text: borrowed. address: out.
 * False: not an address. */
bool hf_address_parse(const char *text, struct hf_address *address);
/* The address as text, in the shortest form. */
void hf_address_print(const struct hf_address *address, char text[HF_ADDRESS_TEXT]);
bool hf_address_is_loopback(const struct hf_address *address);

/* hf_socket_listen: listen on `address`. An IPv6 socket accepts no IPv4. address: in and out; if
 * its port was 0, it gets the bound port. Returns the socket, or a negative errno. */
int hf_socket_listen(struct hf_address *address, int backlog);
/* Accept the next connection of a listener. Returns -1 and errno on failure; EAGAIN: none is
 * waiting. */
int hf_socket_accept(int listener);

/* Create a socket for a connection to `address`. Returns the socket, or a negative errno. */
int hf_socket_make(const struct hf_address *address);
/* hf_socket_connect: begin to connect. 0: connected. EINPROGRESS: in progress; when the socket is
 * writable, hf_socket_error has the result. Any other errno: it failed. */
int hf_socket_connect(int fd, const struct hf_address *address);
/* The pending error of the socket, an errno; 0: none. */
int hf_socket_error(int fd);

/* hf_socket_allow: raise the process's limit of descriptors to the system's maximum. Returns how
 * many sockets there can be, at most `wanted`. `reserved` descriptors, or half of all if that is
 * fewer, are kept for the rest of the process. Without them, the server could not answer a refused
 * connection, and the store could run out of descriptors. */
unsigned hf_socket_allow(unsigned wanted, unsigned reserved);

#endif
