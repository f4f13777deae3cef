/* server.h: one call of the server after the other, let fail at every point.
 *
 * The server runs in a process of its own; what is ordered here fails there. Every trial has names
 * of its own (# in a text stands for the trial's number), so that one server lives through
 * thousands of them, and at its end all its memory must be free. What is compared is made
 * independent of numbers and ids first. */
#ifndef HF_PROOF_FAULT_SERVER_H
#define HF_PROOF_FAULT_SERVER_H

#include "fault/kit.h"
#include "server/kit/server.h"

/* In texts: # is the number of the trial, @ the id and ^ the fence in the answer to the newest
 * lead. */
struct fault_request {
    const char *what; /* "POST /v1/holds" */
    const char *key;  /* NULL: none */
    const char *body; /* NULL: none */
};

struct fault_route {
    struct fault_request call;
    struct fault_request leads[2]; /* made before, without faults */
    /* what a call that changes something has changed is seen here; NULL: it reads */
    const char *look;
    const char *fields; /* further ones, each line ended by CRLF; NULL: none */
    bool once;          /* asked a second time it is another call */
    bool loose;         /* the answer tells what changes by itself: only its end is compared */
    /* it has very many points, inside of SQLite or one for each batch: late ones are not all
     * tried */
    bool sparse;
    bool audits; /* it reads the files: bytes that cannot be read are told as damage */
    bool guard;  /* a store that cannot write leaves the answer to the guard's policy */
};

/* The server of the trials, with a store of its own and `threads` I/O threads. */
void fault_server_start(unsigned threads);
/* Its end: everything must have been freed, but for what it keeps on purpose, at most `kept`
 * blocks, and the records must pass the audit. */
void fault_server_end(int kept);
struct server *fault_server(void);

/* A call without faults; an answer must come. reply: out, owned. */
void fault_ask(const struct fault_request *request, const char *fields, struct reply *reply);

/* Let the call fail at every point of the kinds `from` to `to`. kept: on a connection that has been
 * used before. */
void fault_route_try(const struct fault_route *r, enum fault_call from, enum fault_call to,
                     bool kept);

#endif
