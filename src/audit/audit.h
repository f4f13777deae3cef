/* audit.h: can you prove that no duplicate state change occurred?
 *
 * The auditor reads a store's records, from files or a database, and judges them alone: it shares
 * no code with the rules that made them. Each check has a name, one sentence that says what it
 * means over the records, how many records it looked at and how many break it. doc/AUDIT.md
 * explains all of it to those who do not read C. */
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
    HF_AUDIT_TABLES, /* of a database alone: report.check_count leaves it out for files */
    HF_AUDIT_CHECKS  /* how many there are */
};

#define HF_AUDIT_LISTED_MAX \
    100 /* violations of a check, near-duplicates: listed; all are counted */
#define HF_AUDIT_CONFIGS_MAX 1000

struct hf_audit_check {
    const char *name;    /* static, such as "PC7" */
    const char *title;   /* static, a few words */
    const char *meaning; /* static, one sentence: what is checked over the records */
    uint64_t checked, violations;
    bool
        /* what is lost, or cannot be read, was not looked at: no violation is not a pass */
        incomplete;
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

/* Two holds of one requester on one resource, close in time. */
struct hf_audit_near {
    char first[HF_ID_SIZE], second[HF_ID_SIZE];
    char *resource, *requester; /* owned, for people (hf_audit_show) */
    char *first_key, *second_key;
    hf_time first_at, second_at;
    bool legitimate;
    char *why; /* owned: why it is legitimate, or why not */
};

enum hf_audit_verdict { HF_AUDIT_OK = 0, HF_AUDIT_VIOLATIONS = 1, HF_AUDIT_DAMAGED = 2 };

/* What a check came to. */
enum hf_audit_outcome { HF_AUDIT_PASSED, HF_AUDIT_BROKEN, HF_AUDIT_INCOMPLETE };

struct hf_audit_report {
    char *directory;  /* owned; NULL: not to be told */
    char holder[256]; /* who has the store open, or "" */
    enum hf_audit_verdict verdict;
    bool
        /* all that follows is about the records of `tenant` alone, and is printed without what it
         * would tell of the others: the store's id, its chain, its size, its positions */
        has_tenant;
    struct hf_bytes tenant;
    char *tenant_copy;       /* owned: its bytes */
    uint64_t tenant_entries; /* how many entries are that tenant's */
    struct hf_audit_check checks[HF_AUDIT_CHECKS];
    size_t check_count; /* those that there are for this kind of store: the first ones */

    /* the journal */
    struct hf_audit_journal journal;
    uint64_t batches, entries, rows;
    uint64_t judged_batches; /* fewer than `batches` if what came before the others is lost */
    hf_time first_now, last_now;
    uint8_t chain_head
        /* SHA-256 of the newest batch; of a database: over those of all writers */
        [HF_DIGEST_SIZE];
    uint64_t head_sequence;
    uint64_t
        /* intact, but the chain, the time, the segment's header or the padding does not fit: damage
         * too */
        broken_batches;
    uint64_t damages;
    uint64_t gaps;                     /* damages that something was lost by */
    struct hf_audit_damage damage[16]; /* the first of them */
    uint64_t
        /* of holds.idx that were held against the journal; 0: there is none, or it could not be
         * done */
        index_parts;
    bool
        /* there is no holds.idx, and the snapshot says what should be in it: all parts are wrong */
        index_missing;
    uint64_t index_wrong,
        /* how many do not agree with it, and where the first of them is: the byte */
        index_wrong_at;
    uint64_t unreadable; /* entries of whole batches that cannot be read: not judged */

    /* of a database */
    uint64_t writers;               /* who wrote batches */
    struct hf_audit_writer *writer; /* owned: the newest of them, HF_AUDIT_LISTED_MAX at most */
    size_t writers_listed;
    uint64_t
        /* written by functions, in users' own transactions: no chain holds these */
        function_entries;

    /* what was decided */
    uint64_t remembered;               /* requests that were remembered under a key or a number */
    uint64_t by_action[256];           /* entries, by action */
    uint64_t failures;                 /* remembered refusals ... */
    uint64_t failures_by_status[256];  /* ... by status */
    uint64_t holds, holds_by_state[5]; /* [0] unused; reversals are not in here */
    uint64_t reversals, overdue;       /* overdue: held, and past its end at last_now */
    uint64_t holds_traced;             /* to the key that placed them */
    uint64_t resources, guards, guards_in_memory, identities, claims, leases, registers, clients,
        outbox;

    struct hf_audit_in_force *configs; /* owned */
    size_t config_count;
    uint64_t configs_seen;

    int64_t near_ms;
    uint64_t near_count;
    uint64_t near_illegitimate; /* of those that are listed */
    struct hf_audit_near *near; /* owned, HF_AUDIT_LISTED_MAX at most */
    size_t near_listed;
};

struct hf_audit_options {
    int64_t near_ms; /* near-duplicates: holds at most this far apart; 0: 60 s */
    /* true: judge, count and name the records of this tenant alone, and the configurations, which
     * are nobody's: for a reader who must learn nothing of the others, not even how many they are.
     * The chain, the numbering of batches and the format are still checked over the whole journal,
     * as damage anywhere may have taken records of this tenant; the report then says that there is
     * damage, and neither where nor how much. */
    bool has_tenant;
    struct hf_bytes tenant;
    bool
        /* true: for a reader on another machine, whom the directory's name does not concern */
        elsewhere;
    const char *
        /* NULL: the store in the directory. Else a connection string of libpq: the store is in that
         * database, and the directory is not looked at */
        postgres;
    uint32_t timeline; /* 0, or of the primary that is to be read (hf_timeline) */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes; NULL: nothing */
    void *arg;
};

/* hf_audit_run: read the store in `dir` and judge it. dir, options: borrowed; options may be NULL.
 * report: out, owned, free with hf_audit_report_free, also after a failure. why: out. HF_OK
 * whenever the journal could be read, whatever the verdict; else HF_STORE_ABSENT, HF_STORE_NEWER,
 * HF_STORAGE_FAILURE or HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_audit_run(const char *dir, const struct hf_audit_options *options,
                                        struct hf_audit_report *report, struct hf_error *why);
void hf_audit_report_free(struct hf_audit_report *report);

/* What the check came to: broken if anything breaks it; else incomplete if it could not look at
 * everything. */
enum hf_audit_outcome hf_audit_outcome(const struct hf_audit_check *check);

/* hf_audit_print_text, hf_audit_print_json: the report, verdict first. False if `out` could not
 * take it or memory ran out. */
HF_MUST_USE bool hf_audit_print_text(const struct hf_audit_report *report, FILE *out);
HF_MUST_USE bool hf_audit_print_json(const struct hf_audit_report *report, FILE *out);

#endif
