/* talk.h: one client of a server, with the newest answer at hand and what every answer must look
 * like. */
#ifndef HF_TESTS_SERVER_KIT_TALK_H
#define HF_TESTS_SERVER_KIT_TALK_H

#include "server/kit/server.h"

#define TALK_START INT64_C(1700000000000) /* 2023-11-14T22:13:20.000Z */
#define TALK_AT "2023-11-14T22:13:20.000Z"

struct talk {
    const struct server *server; /* borrowed */
    int fd;                      /* a connection that is kept open; -1: none */
    struct reply got;            /* the newest answer */
    char *fields; /* owned: sent with every call, each line ended by CRLF; NULL: none */
};

/* A server whose clock stands at TALK_START and is moved by the test alone, without the store's
 * background thread, so that nothing expires by itself. Not started. */
void talk_server(struct server *s);

void talk_open(struct talk *t, const struct server *s);
void talk_close(struct talk *t);
/* Send these fields with every call from now on. NULL: none. */
void talk_as(struct talk *t, const char *fields);

/* One call; its status. what: "POST /v1/holds". key: of Idempotency-Key, or NULL. body: or NULL.
 * Rules that hold for every answer are asserted: a refusal is a whole problem+json, a body has its
 * type and length, and whatever the answer has is described at /v1/openapi.json. */
int talk(struct talk *t, const char *what, const char *key, const char *body);
/* The same with a path that is made as printf does. */
int talkf(struct talk *t, const char *key, const char *body, const char *what, ...)
    __attribute__((format(printf, 4, 5)));

/* Assert that the newest answer is a refusal with this status and code. */
void talk_refused(const struct talk *t, int status, const char *code);
/* Assert that the body is this text, in which * stands for anything without a quote and # for a
 * number. */
void talk_is(const struct talk *t, const char *pattern);
/* Assert that the answer is that of a call with a key, which says when the key's window closes: a
 * first answer, or one that was given again. */
void talk_first(const struct talk *t);
void talk_replayed(const struct talk *t);
/* Assert that the answer belongs to no key. */
void talk_unkeyed(const struct talk *t);

/* Call twice, and assert that the second answer is the first one again, byte for byte, with
 * Idempotent-Replayed and the same Idempotency-Expires. Answers the status. */
int talk_twice(struct talk *t, const char *what, const char *key, const char *body);

/* The figure of /metrics, which must be there. */
double talk_figure(struct talk *t, const char *name);

/* The description at /v1/openapi.json, held against answers that a server really
 * gave. */

/* Assert that the answer to `what` ("GET /v1/holds?limit=1") is described: its status (or it is one
 * of those that every call may have), its media type, and each of its fields but those of every
 * answer: Date, Content-Length, Content-Type and Connection. */
void described_check(const char *what, const struct reply *r);

/* Assert that in this process, each media type and each field that is described for an answer that
 * is no refusal was met by described_check at least once: nothing is described that does not
 * happen. */
void described_all_met(void);

#endif
