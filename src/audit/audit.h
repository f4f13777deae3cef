/* audit.h: prove from the records that no duplicate state change occurred.
 *
 * The auditor reads a store's records, from files or a database, and uses nothing else: it shares
 * no code with the rules that made them. Each check has a name, one sentence that says what it
 * means for the records, the number of records that it checked and the number of violations.
 * doc/AUDIT.md explains all of it to readers who do not read C. */
#ifndef HF_AUDIT_AUDIT_H
#define HF_AUDIT_AUDIT_H

#include "audit/read.h"

#include <stdio.h>

enum hf_audit_check_id {
    HF_AUDIT_CHAIN,
    HF_AUDIT_SEQUENCE,
    HF_AUDIT_TIME,
    HF_AUDIT_FORMAT,
    HF_AUDIT_CONFIG,
    HF_AUDIT_PC1,
    HF_AUDIT_PC2,
    HF_AUDIT_PC3,
    HF_AUDIT_PC4,
    HF_AUDIT_PC5,
    HF_AUDIT_PC6,
    HF_AUDIT_PC7,
    HF_AUDIT_PC8,
    HF_AUDIT_PC9,
    HF_AUDIT_PC10,
    HF_AUDIT_PC11,
    HF_AUDIT_REVERSALS,
    HF_AUDIT_LATE,
    HF_AUDIT_LINKS,
    HF_AUDIT_DP1,
    HF_AUDIT_DP2,
    HF_AUDIT_DP3,
    HF_AUDIT_DP4,
    HF_AUDIT_IR1,
    HF_AUDIT_IR2,
    HF_AUDIT_IR3,
    HF_AUDIT_IR4,
    HF_AUDIT_IR5,
    HF_AUDIT_IR6,
    HF_AUDIT_IR7,
    HF_AUDIT_IR8,
    HF_AUDIT_FAILURES,
    HF_AUDIT_SEQUENCES,
    HF_AUDIT_CLAIM,
    HF_AUDIT_LEASE,
    HF_AUDIT_FENCES,
    HF_AUDIT_REGISTER,
    HF_AUDIT_OUTBOX,
    HF_AUDIT_TABLES, /* only for a database: report.check_count excludes it for files */
    HF_AUDIT_CHECKS  /* the number of checks */
};

#define HF_AUDIT_LISTED_MAX 100 /* violations of a check, near-duplicates; all are counted */
#define HF_AUDIT_CONFIGS_MAX 1000

struct hf_audit_check {
    const char *name;    /* static, such as "PC7" */
    const char *title;   /* static, a few words */
    const char *meaning; /* static, one sentence: what is checked over the records */
    uint64_t checked, violations;
    /* some records are lost or cannot be read: without a violation it is still not passed */
    bool incomplete;
    char *examples[HF_AUDIT_LISTED_MAX]; /* owned; each names the records */
    size_t example_count;
};

/* A configuration, in force from `since` until the next one. */
struct hf_audit_in_force {
    hf_time since;
    uint64_t position;
    int64_t idempotency_window_ms;
    uint32_t token_max_length;
    bool strict;
    char digest_name[32], program[32];
};

/* A guard as it was last set. */
struct hf_audit_guard_rule {
    char *who; /* owned: its name and tenant, for people */
    hf_time since;
    int64_t window_ms;
    enum hf_match match[HF_MATCH_MAX];
    uint32_t match_count;
    bool closed, durable; /* closed: on_unavailable */
    /* how often its match rule was changed while identities were under guard, which takes force;
     * and the last time */
    uint64_t forced;
    hf_time forced_at;
};

/* Two holds of one requester on one resource, close in time. */
struct hf_audit_near {
    char first[HF_ID_SIZE], second[HF_ID_SIZE];
    char *resource, *requester; /* owned, for people (hf_audit_show) */
    char *first_key, *second_key;
    hf_time first_at, second_at;
    bool legitimate;
    char *why; /* owned: why the pair is legitimate, or why not */
};

/* What happened to claims. */
struct hf_audit_claims {
    uint64_t begun;      /* in all; of these: */
    uint64_t retried;    /* after a failure that may be retried */
    uint64_t taken_over; /* because the lease ran out and on_abandon is retry */
    uint64_t again;      /* because the retention of the first was over */
    uint64_t abandoned;
    uint64_t settled[HF_CLAIM_RETRYABLE + 1]; /* calls of complete and fail, by the state */
    uint64_t now[HF_CLAIM_UNKNOWN + 1]; /* claims by their state at last_now; settled ones also when
                                         * their retention is over */
};

/* A key that began again after it was settled, or before its outcome was known. */
struct hf_audit_rerun {
    char *who;       /* owned: its key and tenant, for people */
    bool taken_over; /* else its retention was over */
    enum hf_claim_state first_state;
    uint64_t first_fence, second_fence;
    hf_time first_at;         /* begun */
    hf_time ended_at;         /* settled, or its lease ran out */
    hf_time until, second_at; /* remembered until (0: never settled); begun again */
};

enum hf_audit_verdict { HF_AUDIT_OK = 0, HF_AUDIT_VIOLATIONS = 1, HF_AUDIT_DAMAGED = 2 };

/* The result of a check. */
enum hf_audit_outcome { HF_AUDIT_PASSED, HF_AUDIT_BROKEN, HF_AUDIT_INCOMPLETE };

struct hf_audit_report {
    char *directory;  /* owned; NULL: not shown */
    char holder[256]; /* who has the store open, or "" */
    enum hf_audit_verdict verdict;
    /* the report covers only the records of `tenant`, and is printed without anything that shows
     * the other tenants: the store's id, its chain, its size, its positions */
    bool has_tenant;
    struct hf_bytes tenant;
    char *tenant_copy;       /* owned: its bytes */
    uint64_t tenant_entries; /* entries of that tenant */
    struct hf_audit_check checks[HF_AUDIT_CHECKS];
    size_t check_count; /* the first checks, those that apply to this kind of store */

    /* the journal */
    struct hf_audit_journal journal;
    uint64_t batches, entries, rows;
    uint64_t judged_batches; /* fewer than `batches` if batches before some of them are lost */
    hf_time first_now, last_now;
    /* SHA-256 of the newest batch; for a database: over the chain heads of all writers */
    uint8_t chain_head[HF_DIGEST_SIZE];
    uint64_t head_sequence;
    /* a head was expected: is it there? If not, the verdict is at least VIOLATIONS */
    bool head_expected, head_found;
    /* intact, but the chain, the time, the segment's header or the padding is wrong: damage too */
    uint64_t broken_batches;
    uint64_t damages;
    uint64_t gaps;                     /* damages with lost batches */
    struct hf_audit_damage damage[16]; /* the first of them */
    /* parts of holds.idx that were compared with the journal; 0: none, or not possible */
    uint64_t index_parts;
    /* there is no holds.idx, but the snapshot has its checksums: all parts are wrong */
    bool index_missing;
    /* parts that differ, and the byte offset of the first one */
    uint64_t index_wrong, index_wrong_at;
    uint64_t unreadable; /* entries of intact batches that cannot be read: not judged */

    /* of a database */
    uint64_t writers;               /* writers with batches */
    struct hf_audit_writer *writer; /* owned: the newest writers, HF_AUDIT_LISTED_MAX at most */
    size_t writers_listed;
    /* written by functions, in users' own transactions: not in any chain */
    uint64_t function_entries;

    /* what was decided */
    uint64_t remembered;               /* requests remembered with a key or a number */
    uint64_t by_action[256];           /* entries, by action */
    uint64_t failures;                 /* remembered refusals ... */
    uint64_t failures_by_status[256];  /* ... by status */
    uint64_t holds, holds_by_state[5]; /* [0] unused; reversals are not in here */
    uint64_t reversals, overdue;       /* overdue: held, and past its end at last_now */
    uint64_t holds_traced;             /* to the key that placed them */
    uint64_t resources, guards, guards_in_memory, identities, claims, leases, registers, clients,
        outbox;

    struct hf_audit_claims claim;
    struct hf_audit_rerun *reruns; /* owned, HF_AUDIT_LISTED_MAX at most */
    size_t rerun_listed;           /* all are counted: claim.taken_over, claim.again */

    struct hf_audit_in_force *configs; /* owned */
    size_t config_count;
    uint64_t configs_seen;

    struct hf_audit_guard_rule *guard_rules; /* owned, HF_AUDIT_CONFIGS_MAX at most */
    size_t guard_rule_count;

    int64_t near_ms;
    uint64_t near_count;
    uint64_t near_illegitimate; /* of the listed ones */
    struct hf_audit_near *near; /* owned, HF_AUDIT_LISTED_MAX at most */
    size_t near_listed;
};

struct hf_audit_options {
    int64_t near_ms; /* near-duplicates: holds at most this far apart; 0: 60 s */
    /* true: judge, count and name only the records of this tenant, and the configurations, which
     * belong to no tenant: for a reader who must learn nothing about other tenants, not even their
     * number. The chain, the numbering of batches and the format are still checked over the whole
     * journal, because damage anywhere may have destroyed records of this tenant. The report then
     * says that there is damage, but not where or how much. */
    bool has_tenant;
    struct hf_bytes tenant;
    /* true: for a reader on another machine, who must not see the directory's name */
    bool elsewhere;
    /* NULL: the store in the directory. Else a connection string of libpq: the store is in that
     * database, and the directory is ignored */
    const char *postgres;
    uint32_t timeline; /* 0, or the timeline of the primary to read (hf_timeline) */
    /* NULL, or the hash of a batch that must be in the chain; with a database, in one writer's */
    const uint8_t *expect_head;
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes; NULL: nothing */
    void *arg;
};

/* hf_audit_run: read the store in `dir` and judge it. dir, options: borrowed; options may be NULL.
 * report: out, owned, free with hf_audit_report_free, also after a failure. why: out. HF_OK if the
 * journal could be read, whatever the verdict; else HF_STORE_ABSENT, HF_STORE_NEWER,
 * HF_STORAGE_FAILURE or HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_audit_run(const char *dir, const struct hf_audit_options *options,
                                        struct hf_audit_report *report, struct hf_error *why);
void hf_audit_report_free(struct hf_audit_report *report);

/* The result of the check: broken if there is a violation; else incomplete if it could not check
 * everything. */
enum hf_audit_outcome hf_audit_outcome(const struct hf_audit_check *check);

/* hf_audit_print_text, hf_audit_print_json: the report, verdict first. False if writing to `out`
 * failed, or if out of memory. */
HF_MUST_USE bool hf_audit_print_text(const struct hf_audit_report *report, FILE *out);
HF_MUST_USE bool hf_audit_print_json(const struct hf_audit_report *report, FILE *out);

#endif
