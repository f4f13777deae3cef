/* server.h: a real server in a process of its own, and a client that sends exactly the bytes it is
 * told to.
 *
 * The child runs hf_server_run, so a test reaches everything over the socket, may kill it at any
 * time, and may still order faults: the child's files go through a struct test_io in memory that
 * both processes share.
 *
 * With HF_STORE=postgres in the environment the server's store is in a database instead
 * (tests/engine/kit/both.h); of the faults only the clock counts then. */
#ifndef HF_TESTS_SERVER_KIT_SERVER_H
#define HF_TESTS_SERVER_KIT_SERVER_H

#include "engine/kit/both.h"
#include "server/server.h"
#include "support/test_io.h"

#include <sys/types.h>

/* How long a test waits for what must happen, before it fails. */
enum { SERVER_PATIENCE_MS = 60000 };

struct server {
    char *dir; /* owned: the store is in DIR/data, stderr goes to DIR/log */
    char data[512];
    struct hf_server_options options; /* change them, then start */
    struct test_io *io;               /* shared with the child: clock, room on disk, faults */
    pid_t pid;                        /* 0: not running */
    int out;                          /* the child's stdout */
    int err; /* borrowed: instead of DIR/log, the child's stderr; -1: none */
    int port;
    void (*before)(void);    /* in the child, before the server runs; NULL: nothing */
    const char *const *argv; /* borrowed: run this program instead of hf_server_run; NULL: do not */
    char address[32];        /* by server_fix_port */
    char first_line[160];    /* the first line on stdout */
    uint64_t syncs;          /* private: how many there were at server_stop_commits */
};

/* Defaults: a new directory, 127.0.0.1 and a free port, one thread, no sandbox, a line a duplicate,
 * real time. */
void server_init(struct server *s);
/* Start, and wait until it says that it listens. */
void server_start(struct server *s);
/* The two halves of that. The port is known between them only if it was fixed. */
void server_begin(struct server *s);
void server_await(struct server *s);
/* Listen on the same port again at the next start. */
void server_fix_port(struct server *s);
/* Start one that is expected not to come up: its exit code. */
int server_start_fails(struct server *s);
/* SIGTERM; its exit code (128 + n after signal n). Fails the test if it takes longer than a
 * minute. */
int server_stop(struct server *s);
/* SIGKILL. */
void server_kill(struct server *s);
/* Let the server stand still, and go on. What clients send in between is there at once when it goes
 * on. */
void server_freeze(const struct server *s);
void server_thaw(const struct server *s);
/* Wait for it to end by itself: its exit code, or -1 if it does not within a minute. */
int server_wait(struct server *s);
/* Stop if it runs (exit code 0 is asserted), and remove the directory. */
void server_end(struct server *s);
/* Everything on its stderr so far. Owned, free with free(). */
char *server_log(struct server *s);

/* From now on no commit ends, until server_let_commits. PostgreSQL: both_stop_commits. */
void server_stop_commits(struct server *s);
/* Wait until a commit is under way since then. */
void server_await_commit(struct server *s);
void server_let_commits(struct server *s);
/* How many commits there have been. */
uint64_t server_commits(struct server *s);

/* Audit its records, which must pass every check. How many holds there are. */
uint64_t server_audit(const struct server *s);

/* ---- A client ---- */

struct reply {
    int status; /* 0: the connection was closed before a whole answer came */
    char *head; /* owned: status line and fields, NUL-ended */
    char *body; /* owned: NUL-ended */
    size_t body_size;
};

/* A connection. Reads and writes time out after a minute. */
int server_connect(const struct server *s);
/* The same, or -1 if nobody listens. */
int server_try_connect(const struct server *s);
/* Send all of it; false if the server closed. */
bool server_send(int fd, const void *data, size_t size);
bool server_send_text(int fd, const char *text);
/* Wait until the server has accepted this connection and read all that was sent on it, or has
 * closed it. */
void server_await_read(int fd);
/* Read one answer, no byte more: what follows stays for the next call. `head_only`: it answers
 * HEAD. Interim 100s are skipped. reply: out, owned, free with reply_free. False if none came. */
bool server_receive(int fd, struct reply *reply, bool head_only);
/* Read one, which must have this status. */
void server_expect(int fd, int status);
/* Close; reset: so that the server hears of it at once, and what it has not read is lost. */
void server_leave(int fd, bool reset);
/* Has the server closed this connection? Waits up to `ms`; bytes that come are thrown away. */
bool server_closed(int fd, int ms);
void reply_free(struct reply *reply);
/* The value of a field, or NULL. Static, good until the next call. */
const char *reply_field(const struct reply *reply, const char *name);
/* Does the body have these bytes? */
bool reply_has(const struct reply *reply, const char *text);

/* A request as it goes over the wire. what: method and path, such as "GET /v1/holds". fields:
 * further lines, each ended by CRLF, or "". body: NULL for none (no Content-Length then). Owned,
 * free with free(). */
char *server_request(const char *what, const char *fields, const char *body);
/* Send it and do not wait for an answer; false if the server closed. */
bool server_send_request(int fd, const char *what, const char *fields, const char *body);
/* Send it and read the answer; false if none came. reply: out, owned. */
bool server_call(int fd, const char *what, const char *fields, const char *body,
                 struct reply *reply);
/* The same on a connection of its own; an answer must come. */
void server_ask(const struct server *s, const char *what, const char *fields, const char *body,
                struct reply *reply);
/* The same with an Idempotency-Key. */
void server_ask_keyed(const struct server *s, const char *what, const char *key, const char *body,
                      struct reply *reply);
/* The text behind "name":" in the body, up to the next quote. Static, good until the fourth call
 * after it. "" if it is not there. */
const char *reply_text(const struct reply *reply, const char *name);
/* The number behind "name":, or -1. */
long long reply_number(const struct reply *reply, const char *name);
/* Milliseconds that only go forward. */
int64_t server_clock_ms(void);
/* A test never counts on a pause being long enough for something to happen. It pauses between two
 * looks at what it waits for, for up to SERVER_PATIENCE_MS; or to give a bug the time to show. */
void server_pause_ms(int ms);

#endif
