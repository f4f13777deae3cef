/* text.h: requests in bulk, and stores with much in them. */
#ifndef HF_TESTS_SERVER_KIT_TEXT_H
#define HF_TESTS_SERVER_KIT_TEXT_H

#include "server/kit/server.h"

/* Text that grows; it ends with a NUL that is not counted. */
struct text {
    char *data; /* owned, free with free() */
    size_t size, room;
};

void text_add(struct text *t, const char *data, size_t size);
void text_string(struct text *t, const char *what);
void text_repeat(struct text *t, const char *what, size_t times);
/* Add a request; what, fields, body: as for server_request. */
void text_request(struct text *t, const char *what, const char *fields, const char *body);

/* Add one that places a hold on "r<number>" under the key "h<number>". */
void text_hold(struct text *t, int number);

/* `count` holds with names of a kilobyte each, so that lists and exports are large. Once a
 * store. */
void server_fill_holds(const struct server *s, size_t count);
/* Registers with about `size` bytes of values. Once a store. */
void server_fill_registers(const struct server *s, size_t size);

/* A connection that takes little at a time, over a path that takes little at a time: with small
 * segments the kernel keeps little for the server, as it does over a network. */
int server_connect_narrow(const struct server *s);

#endif
