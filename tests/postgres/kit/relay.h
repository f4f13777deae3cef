/* relay.h: a TCP relay between clients and PostgreSQL, on loopback, which loses what the test wants
 * to be lost.
 *
 *     client ──▶ relay (a process of its own) ──▶ 127.0.0.1:target
 *
 *     struct relay r;
 *     relay_start(&r, p.port);
 *     relay_at_commit(&r, RELAY_CUT_AFTER, 1);    the next COMMIT happens, and its client does not
 *                                                 hear of it
 *     ... postgres_conninfo_port(text, r.port) ...
 *     assert_int_equal(relay_count(&r, RELAY_CUT_AFTER), 1);
 *     relay_end(&r);
 *
 * The relay understands the protocol (3.0, without TLS: it answers "no" to who asks for it) just as
 * far as to find a COMMIT:
 *   - a Query whose text has the word COMMIT in it, in any case, wherever it stands;
 *   - a Bind of a statement whose text, as prepared on the same connection, has that word;
 *   - a Bind of a statement with the name given by relay_name.
 * The answer to it is the CommandComplete with the tag COMMIT between the ReadyForQuery before and
 * the one behind it, so pipelines are understood too.
 *
 * It is a process and not a thread, because tests fork servers while it runs; it ends with the test
 * process. Its functions come back when the relay does as told, may be called by several threads,
 * and fail the test if the relay is gone. */
#ifndef HF_TESTS_POSTGRES_KIT_RELAY_H
#define HF_TESTS_POSTGRES_KIT_RELAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What can happen to a COMMIT. "Cut" closes both ends of its connection. */
enum relay_fault {
    /* What was sent before the COMMIT goes to the server, the COMMIT does not, then cut: rolled
     * back. */
    RELAY_CUT_BEFORE,
    /* The COMMIT goes to the server, its answer is awaited and thrown away, then cut: committed
     * before the client notices. Nothing reaches the client from the COMMIT on, not even answers to
     * what was before it. */
    RELAY_CUT_AFTER,
    /* The client is cut as soon as the COMMIT is on its way; the server's end stays until it has
     * answered: the client may ask for the outcome while it is still being decided. */
    RELAY_CUT_DURING,
    /* The client is cut at once, and the COMMIT goes to the server only relay_late_ms later. */
    RELAY_CUT_LATE,
    /* Three letters of the COMMIT in the answer reach the client, then cut. If the server refuses
     * the COMMIT, that passes and the fault waits for the next one. */
    RELAY_CUT_IN_ANSWER,
    /* The COMMIT and all that follows it in both directions is kept until relay_pass; all stays
     * open. */
    RELAY_MUTE_BEFORE,
    /* The COMMIT goes to the server; its answer and all that follows is kept until relay_pass. */
    RELAY_MUTE_AFTER,
    RELAY_FAULTS
};

/* What the relay counts besides: how often each fault really happened is counted under the fault's
 * own number. */
enum relay_counter {
    RELAY_CONNECTIONS = RELAY_FAULTS, /* that were taken */
    RELAY_UNREACHABLE,                /* of them: the server could not be reached */
    RELAY_OPEN,                       /* that are open on the client's side now */
    RELAY_COMMITS,                    /* that were found on their way to the server */
    RELAY_CUT_ALL,                    /* connections that relay_cut_all closed */
    RELAY_COUNTERS
};

struct relay {
    int port;  /* where clients connect, on 127.0.0.1; the same until relay_end */
    pid_t pid; /* 0: it was ended */
    int control;
    pthread_mutex_t lock;
};

/* Start one that passes everything to 127.0.0.1:target. r: out, must not move until relay_end. */
void relay_start(struct relay *r, int target);
void relay_end(struct relay *r);
/* Where new connections go, such as to the other server after a failover. */
void relay_target(struct relay *r, int port);
/* A Bind of this statement is a COMMIT. At most 63 bytes; "": none. */
void relay_name(struct relay *r, const char *statement);

/* This happens to the next `times` COMMITs, of whatever connection; it replaces what was ordered
 * before. times 0: none. */
void relay_at_commit(struct relay *r, enum relay_fault fault, unsigned times);
/* How late RELAY_CUT_LATE is; 200 at first. */
void relay_late_ms(struct relay *r, int ms);
/* Forward nothing in either direction, neither bytes nor that an end was closed; take new
 * connections, but do not reach the server for them. False: go on with all that was kept. */
void relay_black_hole(struct relay *r, bool on);
/* Forward each piece so much later, in both directions. 0: at once. */
void relay_delay_ms(struct relay *r, int ms);
/* Refuse new connections; those that are open stay. */
void relay_refuse(struct relay *r, bool on);
/* Cut all connections that are open, now. */
void relay_cut_all(struct relay *r);
/* Let pass: no order for a COMMIT, no black hole, no delay, nothing refused, nothing mute, and what
 * is late goes now. */
void relay_pass(struct relay *r);

/* counter: an enum relay_fault or an enum relay_counter. */
uint64_t relay_count(struct relay *r, unsigned counter);
/* Wait until that is at least `wanted`; fails the test after a minute. */
void relay_await(struct relay *r, unsigned counter, uint64_t wanted);

/* As much of PostgreSQL's protocol as the relay needs: where messages end, and which
 * of them are a COMMIT and its answer. No input or output.
 *
 * Answers are matched with questions by counting: the beginning of a session, each Query, each
 * function call and each Sync is answered by one ReadyForQuery. What lies between two of them is a
 * stretch; a COMMIT is the n-th one of its stretch, and so is its answer. (A Sync that a client
 * sends in the middle of COPY FROM STDIN is not answered; such clients are not understood.) */

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
