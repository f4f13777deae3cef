/* relay_wire.h: as much of PostgreSQL's protocol as the relay needs: where messages end, and which
 * of them are a COMMIT and its answer. No input or output.
 *
 * Answers are matched with questions by counting: the beginning of a session, each Query, each
 * function call and each Sync is answered by one ReadyForQuery. What lies between two of them is a
 * stretch; a COMMIT is the n-th one of its stretch, and so is its answer. (A Sync that a client
 * sends in the middle of COPY FROM STDIN is not answered; such clients are not understood.) */
#ifndef HF_TESTS_POSTGRES_KIT_RELAY_WIRE_H
#define HF_TESTS_POSTGRES_KIT_RELAY_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RELAY_NAME_MAX = 64, RELAY_NAMES = 16 };

enum relay_wire_kind {
    RELAY_WIRE_OTHER,
    /* from the client: asks for encryption; is to be answered with 'N', not forwarded */
    RELAY_WIRE_NO_TLS,
    RELAY_WIRE_COMMIT,    /* from the client */
    RELAY_WIRE_COMMITTED, /* from the server: the answer to a COMMIT */
    RELAY_WIRE_READY,     /* from the server: the end of a stretch */
    RELAY_WIRE_BROKEN     /* no message can begin like this */
};

struct relay_place {
    uint64_t stretch, number;
};

struct relay_wire {
    bool begun;                         /* the first message, which has no type, has passed */
    struct relay_place asked, answered; /* the next COMMIT and the next answer to one */
    char commits[RELAY_NAMES][RELAY_NAME_MAX]; /* statements whose text says COMMIT */
    bool used[RELAY_NAMES];
};

struct relay_message {
    size_t size; /* 0: it is not whole yet */
    enum relay_wire_kind kind;
    bool ends;                /* from the client: the server answers now what it was asked */
    struct relay_place place; /* of a COMMIT, its answer, or (stretch) of a READY */
};

/* The next message from the client or from the server. Each whole message must be shown exactly
 * once. data: borrowed, begins at a message. name: borrowed, the statement that is a COMMIT by
 * name, "": none. */
struct relay_message relay_wire_client(struct relay_wire *w, const uint8_t *data, size_t size,
                                       const char *name);
struct relay_message relay_wire_server(struct relay_wire *w, const uint8_t *data, size_t size);

/* Has the text this word, in any case, with nothing of a name around it? */
bool relay_wire_has_word(const char *text, size_t size, const char *word);

#endif
