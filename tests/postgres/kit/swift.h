/* swift.h: sessions of the store on PostgreSQL, driven without the store's threads, so that a test
 * can act between the two round trips of a batch that takes no locks.
 *
 *     swift_between(&q, 1);                    it has read, and waits for a lock that swift.user
 *                                              has
 *     functions_run(swift.user, "...");        what happens meanwhile, in the transaction that has
 *                                              the lock
 *     assert_int_equal(swift_between_over(), HF_PG_AGAIN);
 *     assert_int_equal(swift_again(), HF_PG_DONE);
 *     ... swift.run.status[0] ...
 *
 * Whatever cannot be done fails the test. */
#ifndef HF_TESTS_POSTGRES_KIT_SWIFT_H
#define HF_TESTS_POSTGRES_KIT_SWIFT_H

#include "holdfast.h"
#include "postgres/kit/postgres.h"
#include "store/postgres/batch.h"

#include <pthread.h>

enum { SWIFT_MANY = 8, SWIFT_HOUR_MS = 3600000 };

/* A batch: what it asks for, and what came of it. */
struct swift_run {
    struct hf_pg_item items[SWIFT_MANY];
    struct hf_request requests[SWIFT_MANY];
    struct hf_pg_batch batch;
    enum hf_status status[SWIFT_MANY];
    bool replayed[SWIFT_MANY];
    char hold[SWIFT_MANY][HF_ID_SIZE]; /* that it was answered with */
    enum hf_pg_end end;
    pthread_t thread;
};

extern struct swift {
    struct postgres p;
    struct hf_pg_shared shared;
    struct hf_pg_session session;
    PGconn *user; /* somebody's own transaction */
    struct swift_run run;
} swift;

/* For cmocka: a cluster for the group, an empty store and a session for each test. */
int swift_group_set_up(void **state);
int swift_group_tear_down(void **state);
int swift_set_up(void **state);
int swift_tear_down(void **state);

/* A server on the same store. Owned, hf_close. */
struct hf_db *swift_open(void);
/* The audit has no objection. */
void swift_audited(void);

struct hf_request swift_placing(const char *key, const char *resource, int64_t duration_ms);
struct hf_request swift_ending(enum hf_action action, const char *key, const char *hold);

/* Make swift.run a batch of these requests: up to SWIFT_MANY, borrowed. */
void swift_make(const struct hf_request *requests, size_t count);
/* Nothing that the session has seen lately keeps it from going without locks and from taking keys
 * for free. */
void swift_calm(void);
/* Run it on a thread of its own; the end of that. */
void swift_start(void);
enum hf_pg_end swift_join(void);
/* Run it here: as it is; and as the engine does after a try in vain, under locks. */
enum hf_pg_end swift_now(void);
enum hf_pg_end swift_again(void);

/* swift_make and all up to swift_start; and all up to swift_join. */
void swift_begin(const struct hf_request *requests, size_t count);
enum hf_pg_end swift_try(const struct hf_request *requests, size_t count);
/* One request, by whatever way it is done. */
enum hf_status swift_do(struct hf_request q);

/* A batch that has read, and may not write until the user's transaction has ended; the end of
 * both. */
void swift_between(const struct hf_request *requests, size_t count);
enum hf_pg_end swift_between_over(void);
/* Wait until one session waits for a lock. */
void swift_await_blocked(void);

#endif
