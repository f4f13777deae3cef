/* journal_story.h: whole histories for tests, right unless a test makes them wrong.
 *
 * A story keeps the little state that is needed to write correct rows. Each call adds one entry to
 * the open batch and returns it; the test may change anything in it before story_commit, which
 * writes the batch and lets a second pass. Names and keys are borrowed until the story ends. */
#ifndef HF_TESTS_AUDIT_KIT_JOURNAL_STORY_H
#define HF_TESTS_AUDIT_KIT_JOURNAL_STORY_H

#include "audit/audit.h"
#include "store/kit/journal_writer.h"

#define STORY_START INT64_C(1794778797123) /* 2026-11-15T21:39:57.123Z */
#define STORY_WINDOW INT64_C(86400000)
#define STORY_MAX 64

struct story {
    struct jw w;
    char dir[256];
    hf_time now;
    int64_t window_ms;
    struct hf_bytes tenant;
    struct hf_hold holds[STORY_MAX + 1]; /* by ordinal */
    uint64_t hold_count;
    struct hf_resource resources[STORY_MAX];
    size_t resource_count;
    uint64_t fence;
    hf_time lease_until; /* of the claim that was begun or beat last */
};

/* A new store in a new directory, with its configuration written. */
void story_open(struct story *s);
/* The same with other segments than 256 KiB. */
void story_open_sized(struct story *s, uint64_t segment_size);
/* Write everything to disk; the directory stays until story_remove. */
void story_close(struct story *s);
void story_remove(struct story *s);

void story_commit(struct story *s);
void story_pass(struct story *s, int64_t ms);

struct jw_entry *story_configure(struct story *s);
struct jw_entry *story_resource(struct story *s, const char *name, uint32_t capacity);
/* Answered ok, with the row of the hold first and the row of its resource second. Overdue holds are
 * not looked for. The hold is s->holds[s->hold_count]. */
struct jw_entry *story_place(struct story *s, const char *key, const char *resource,
                             const char *requester, int64_t duration_ms);
/* Confirm, release, expire or sweep (key NULL): row of the hold, row of the resource. */
struct jw_entry *story_end(struct story *s, enum hf_action action, const char *key,
                           uint64_t ordinal);
/* Rows: the new hold, the reversal, the resource. */
struct jw_entry *story_reverse(struct story *s, const char *key, uint64_t ordinal);
/* A late confirm of an expired hold. Rows: the new hold, its successor row, the resource. */
struct jw_entry *story_reacquire(struct story *s, const char *key, uint64_t ordinal);
/* An action on a hold that was refused: remembered, no rows. */
struct jw_entry *story_refuse(struct story *s, enum hf_action action, const char *key,
                              uint64_t ordinal, enum hf_status status);
/* A place_hold that was refused. */
struct jw_entry *story_refuse_place(struct story *s, const char *key, const char *resource,
                                    const char *requester, enum hf_status status);
struct jw_entry *story_guard(struct story *s, const char *name, int64_t window_ms);
struct jw_entry *story_record(struct story *s, const char *guard, const char *identity,
                              int64_t window_ms);
/* begin: a fresh fence, a lease of a minute. The row is the first. */
struct jw_entry *story_begin(struct story *s, const char *key);
/* complete, fail or heartbeat of a claim as story_begin made it, begun at `begun_at`. */
struct jw_entry *story_settle(struct story *s, enum hf_action action, const char *key,
                              uint64_t fence, hf_time begun_at);
struct jw_entry *story_grant(struct story *s, const char *key, const char *name,
                             const char *holder);
struct jw_entry *story_write(struct story *s, const char *key, const char *name, const char *value,
                             uint64_t version);
/* Number n of a client: a place_hold like story_place, with the client's row last. `used` in the
 * row has the numbers 1 .. n. */
struct jw_entry *story_number(struct story *s, const char *client, uint64_t n,
                              const char *resource);
struct jw_entry *story_apply(struct story *s, const char *key, uint64_t outbox_number);

/* A history of a bit of everything, right from end to end. */
void story_tell_all(struct story *s);

/* One story, one audit, and what is expected of it. For the tests of the auditor's
 * checks. */

struct judge {
    struct story story;
    struct hf_audit_report report;
};

extern struct judge judge;

/* A fresh story, and the end of it: setup and teardown of a test. */
int judge_setup(void **state);
int judge_teardown(void **state);

/* Write the story out and audit it. */
void judge_run(void);

/* Print all violations. */
void judge_show(void);

/* Commit what is open, audit (once a test), and expect a violation of the check `name` whose
 * sentence has `words` in it. */
void judged(const char *name, const char *words);

/* Expect that no other check is broken than those named, each between spaces: " PC1 IR5 ". */
void judged_only(const char *names);

#endif
