/* socket.h: addresses, listening, accepting, connecting, and how many descriptors there may be.
 *
 * Every socket made here never blocks and is closed by exec. Small packets leave at once
 * (TCP_NODELAY): requests and answers are written whole, and waiting for more would only delay
 * them. */
#ifndef HF_NET_SOCKET_H
#define HF_NET_SOCKET_H

#include "holdfast.h"

#include <sys/socket.h>

struct hf_address {
    struct sockaddr_storage addr;
    socklen_t size;
};

#define HF_ADDRESS_TEXT 64 /* bytes that the text of any address takes */

/* hf_address_parse: "ADDR:PORT" or "[ADDR]:PORT", IPv4 or IPv6. Numbers only: a name could mean
 * another machine tomorrow. "localhost" is taken as 127.0.0.1. text: borrowed. address: out.
 * False: it is none. */
bool hf_address_parse(const char *text, struct hf_address *address);
/* The same text again, in the shortest form. */
void hf_address_print(const struct hf_address *address, char text[HF_ADDRESS_TEXT]);
bool hf_address_is_loopback(const struct hf_address *address);

/* hf_socket_listen: listen on `address`. IPv6 takes no IPv4. address: in and out, its port is
 * the one that was bound, if it was 0. The socket, or an errno as a negative number. */
int hf_socket_listen(struct hf_address *address, int backlog);
/* The next connection of a listener, or -1 and errno; EAGAIN: there is none. */
int hf_socket_accept(int listener);

/* A socket to connect to `address` with; or an errno as a negative number. */
int hf_socket_make(const struct hf_address *address);
/* hf_socket_connect: begin to connect. 0: it is connected. EINPROGRESS: it is under way; when
 * the socket is writable, hf_socket_error says how it ended. Any other errno: it failed. */
int hf_socket_connect(int fd, const struct hf_address *address);
/* The error that is pending on the socket, as an errno; 0: none. */
int hf_socket_error(int fd);

/* hf_socket_allow: let the process have as many descriptors as the system allows. How many
 * sockets there can be then, at most `wanted`: `reserved` descriptors are set apart for the rest
 * of the process, or half of all if that is fewer. Sockets beyond that could not be refused with
 * words, and the store would find no descriptor when it needs one. */
unsigned hf_socket_allow(unsigned wanted, unsigned reserved);

#endif
