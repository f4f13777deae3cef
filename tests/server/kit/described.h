/* described.h: the description at /v1/openapi.json, held against answers that a server really
 * gave. */
#ifndef HF_TESTS_SERVER_KIT_DESCRIBED_H
#define HF_TESTS_SERVER_KIT_DESCRIBED_H

#include "server/kit/server.h"

/* Assert that the answer to `what` ("GET /v1/holds?limit=1") is described: its status (or it is one
 * of those that every call may have), its media type, and each of its fields but those of every
 * answer: Date, Content-Length, Content-Type and Connection. */
void described_check(const char *what, const struct reply *r);

/* Assert that in this process, each media type and each field that is described for an answer that
 * is no refusal was met by described_check at least once: nothing is described that does not
 * happen. */
void described_all_met(void);

#endif
