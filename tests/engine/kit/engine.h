/* engine.h: a store in a directory of its own, a clock that the test moves, and one short call for
 * each action. For tests of the public library alone: everything here goes through holdfast.h.
 *
 * With HF_STORE=postgres in the environment the store is in a database instead (both.h): the same
 * tests hold for both. */
#ifndef HF_TESTS_ENGINE_KIT_ENGINE_H
#define HF_TESTS_ENGINE_KIT_ENGINE_H

#include "engine/kit/both.h"
#include "support/test_io.h"

#include <stdbool.h>

#define KIT_START INT64_C(1700000000000) /* what the clock says when a kit is made */
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* For functions that the library calls and for threads, out of which a failed assertion must not
 * jump. */
#define KIT_WANT(cond) ((cond) ? (void)0 : kit_unwanted(#cond, __FILE__, __LINE__))
_Noreturn void kit_unwanted(const char *what, const char *file, int line);

struct kit {
    char *dir;   /* owned */
    bool remote; /* the store is PostgreSQL: there are no files */
    struct test_io io;
    struct hf_options options; /* change them, then kit_reopen */
    struct hf_db *db;          /* owned; NULL while closed */
    const char *tenant;        /* of every request below; NULL is the default tenant */
    struct hf_result got;      /* of the newest request below */
    int keys;                  /* for kit_key */
    _Atomic int fatal, warnings;
    char note[512]; /* the newest warning */
};

/* An open store: no background thread, the clock at KIT_START, segments of 2 MiB. */
struct kit *kit_make(void);
void kit_free(struct kit *k);

void kit_open(struct kit *k);
void kit_close(struct kit *k);
/* Close and open again. */
void kit_reopen(struct kit *k);
/* Close, and go to a new, empty directory, or database. */
void kit_leave(struct kit *k);

/* Set the clock to `ms` after KIT_START. */
void kit_at(struct kit *k, int64_t ms);
/* Run maintenance until it says that there is no more. */
void kit_settle(struct kit *k);
/* The figures as they are now, also where the library knows some of them only as they were some
 * seconds ago. */
struct hf_stats kit_stats(struct kit *k);
/* How much was ever written to the journal: bytes, or on PostgreSQL entries. */
uint64_t kit_written(struct kit *k);

/* A key that no other call of this kit gave. Good until seven more were asked for. */
const char *kit_key(struct kit *k);

/* ---- Actions: the answer is in k->got ---- */
enum hf_status kit_do(struct kit *k, struct hf_request request);
enum hf_status kit_place(struct kit *k, const char *key, const char *resource,
                         const char *requester, int64_t duration_ms);
/* HF_CONFIRM, HF_RELEASE, HF_EXPIRE or HF_REVERSE. */
enum hf_status kit_end(struct kit *k, enum hf_action action, const char *key, const char *id);
enum hf_status kit_resource(struct kit *k, const char *name, uint32_t capacity);
enum hf_status kit_guard(struct kit *k, const char *name, int64_t window_ms,
                         const enum hf_match *match, uint32_t match_count);
/* HF_CHECK, HF_RECORD or HF_ADMIT; result may be NULL. */
enum hf_status kit_ask(struct kit *k, enum hf_action action, const char *guard,
                       const char *identity, const char *result);
enum hf_status kit_get(struct kit *k, enum hf_action action, const char *name);
enum hf_status kit_get_hold(struct kit *k, const char *id);
enum hf_status kit_begin(struct kit *k, const char *key, const char *payload, int64_t lease_ms,
                         enum hf_abandon on_abandon);
enum hf_status kit_settle_claim(struct kit *k, enum hf_action action, const char *key,
                                uint64_t fence, const char *response, bool retryable);

/* `count` writes of `size` bytes in one group, each with a key of its own, to registers of which
 * there are `names`. The first answer that is not HF_OK, or HF_OK. */
enum hf_status kit_write(struct kit *k, unsigned count, size_t size, unsigned names);

/* Place a hold that must succeed; its id goes to `id`. */
void kit_held(struct kit *k, const char *resource, int64_t duration_ms, char id[HF_ID_SIZE]);

bool kit_is(struct hf_bytes bytes, const char *text);

/* ---- Threads ---- */

struct kit_worker {
    int number;      /* 0, 1, 2 ... */
    uint64_t random; /* a seed of its own */
    uint64_t done;   /* for the test's own count */
    void (*work)(struct kit_worker *w);
};

/* Run `count` threads of `work` and wait for them. workers: out, `count` of them. */
void kit_run(struct kit_worker *workers, int count, void (*work)(struct kit_worker *w));

/* ---- What can be seen ---- */

/* The answer of the newest request as text, every byte of it. Owned, free with free(). */
char *kit_answer(struct kit *k);
/* The same of any result. */
char *kit_answer_of(const struct hf_result *result);

/* The first page that is full or the last one. A page may be cut short when its call takes long, as
 * it does on a busy machine: then it is asked for again. page: out, owned, free with
 * hf_page_clear. */
void kit_list(struct kit *k, const struct hf_query *query, struct hf_page *page);

/* Everything that the lists of the tenants show, as text. Owned, free with free(). */
char *kit_dump(struct kit *k, const char *const *tenants, size_t count);

/* ---- The directory ---- */
/* How many files end with `suffix`. */
size_t kit_files(struct kit *k, const char *suffix);
/* Remove the files that end with `suffix`; how many there were. The store should be closed. */
size_t kit_remove(struct kit *k, const char *suffix);
/* Do the bytes stand in any file, or on PostgreSQL in any table? Up to 99 bytes. */
bool kit_on_disk(struct kit *k, const void *bytes, size_t size);

#endif
