/* check.h: inside the auditor: its state after each entry, and the judges, one file each.
 *
 * The state is built from the records alone, by rules written from doc/FORMAT.md and the behaviour
 * page: the library is never called. A record that breaks a rule is counted and named, and the
 * state follows the record, so that one wrong record is not reported again for each later one. */
#ifndef HF_AUDIT_CHECK_H
#define HF_AUDIT_CHECK_H

#include "audit/audit.h"
#include "audit/table.h"

#include "base/arena.h"

/* ---- What is remembered of each thing ---- */

enum { HF_AUDIT_IS_REVERSAL = 1, HF_AUDIT_IS_REVERSED = 2, HF_AUDIT_IS_REACQUIRED = 4 };

struct hf_audit_hold {
    uint64_t position; /* of the entry that placed it; 0 if that entry is missing */
    uint64_t newest;   /* of the entry with its newest record */
    hf_time placed_at, expires_at, ended_at;
    uint64_t requester; /* hash */
    uint32_t resource;  /* index */
    uint8_t state;      /* enum hf_hold_state; 0 if there is no record of it */
    uint8_t flags;
};

struct hf_audit_resource {
    uint32_t capacity, row_held, row_confirmed; /* by its newest record */
    uint32_t held, confirmed;                   /* counted here: its holds in these states */
    uint64_t fence, row_newest, newest;
    hf_time created_at;
    bool recorded, open, requires_fence;
};

struct hf_audit_resource_item {
    struct hf_audit_name name;
    uint32_t index;
};

/* The newest use of a key. */
struct hf_audit_use {
    struct hf_audit_name name;
    hf_time expires_at;
    uint64_t position, digest; /* the digest's first 8 bytes */
    uint8_t action, placed;    /* placed: it placed a hold */
};

struct hf_audit_identity {
    struct hf_audit_name name;
    hf_time expires_at;
    uint64_t position;
};

struct hf_audit_guard {
    struct hf_audit_name name;
    int64_t window_ms;
    unsigned steps;     /* of its match rule that change something, a decimal digit each */
    hf_time live_until; /* the latest end of an identity on record */
    bool durable;
    uint32_t listed; /* its place in the report's list, from 1; 0: the list is full */
};

struct hf_audit_claim {
    struct hf_audit_name name;
    uint64_t fence, fingerprint, position;
    hf_time begun_at, lease_expires_at, settled_at, expires_at;
    int64_t retention_ms;
    uint8_t state, on_abandon;
};

struct hf_audit_lease {
    struct hf_audit_name name;
    uint64_t fence, holder;
    hf_time granted_at, expires_at, released_at;
    bool gone; /* deleted; its fence stays */
};

struct hf_audit_register {
    struct hf_audit_name name;
    uint64_t version, fence;
    hf_time forgotten_at; /* of a deleted register */
    uint8_t type;
    bool requires_fence;
};

struct hf_audit_numbers {
    struct hf_audit_name name;
    uint64_t highest;
    uint8_t used[HF_SEQUENCE_WINDOW / 8];
};

struct hf_audit_number {
    struct hf_audit_name name;
};

struct hf_audit_id {
    struct hf_audit_name name;
    uint64_t ordinal;
};

struct hf_audit_close {
    struct hf_audit_name name; /* resource and requester */
    uint64_t ordinal;
    hf_time placed_at, forget_at;
};

/* ---- What one entry did to holds ---- */

struct hf_audit_touched {
    uint32_t index; /* of the resource */
    struct hf_bytes name;
};

struct hf_audit_effects {
    unsigned placed, confirmed, released, expired, reversed, reacquired, other;
    uint64_t placed_ordinal; /* of the last hold placed, or reversal made */
    uint64_t ended_ordinal;  /* of the last hold confirmed, released or expired */
    struct hf_audit_touched touched[2 * HF_AUDIT_ROWS_MAX]; /* resources */
    size_t touched_count;
};

/* Holds are kept in chunks, so that growing moves none of them; small ones, because a store with
 * few holds has one all the same. */
#define HF_AUDIT_CHUNK 16384

struct hf_audit_state {
    struct hf_audit_report *report; /* borrowed */
    struct hf_audit_reader *reader; /* borrowed */
    const struct hf_audit_batch *batch;
    /* of the newest batch, if there are bytes after it that belong to no batch; else 0 */
    uint64_t padded_sequence, padded_position;
    bool no_memory;

    const uint8_t *expect_head; /* borrowed; NULL: none */
    struct hf_audit_in_force config;
    bool config_known;
    uint64_t seen;                      /* entries of all tenants, so far */
    hf_time newest;                     /* of all batches */
    bool journal_told[HF_AUDIT_CHECKS]; /* set by hf_audit_break_store */

    struct hf_audit_hold **holds; /* owned chunks; by ordinal - 1 */
    size_t chunk_count;
    uint64_t hold_count;                 /* the highest ordinal */
    unsigned counters_seen;              /* a bit for each sequence that exists */
    struct hf_audit_resource *resources; /* owned */
    uint32_t resource_count, resource_room;
    struct hf_audit_table resource_names, keys, identities, guards, claims, leases, registers,
        clients, close;
    uint64_t highest_fence, outbox_number;

    /* of a database */
    bool database;
    struct hf_audit_table outbox_numbers;
    struct hf_audit_table ids; /* if the id key may not be read: the ordinal of each id */
    uint32_t highest_writer;
    struct hf_audit_table stored; /* what each row of the tables must contain */
    struct hf_arena arena;        /* for one entry */
    struct hf_sha256 heads;       /* over the chain heads of all writers so far */

    struct hf_audit_row rows[HF_AUDIT_ROWS_MAX];
    struct hf_audit_effects effects;
};

/* Times from the records are not checked yet: the sum may be wrong, but must not overflow. */
static inline hf_time hf_audit_plus(hf_time t, int64_t ms)
{
    return (hf_time)((uint64_t)t + (uint64_t)ms);
}

/* Items that ended before this time can be dropped. In a database, entries about different rows may
 * be slightly out of order by time. */
static inline hf_time hf_audit_over(const struct hf_audit_state *s, hf_time now)
{
    return s->database ? hf_audit_plus(now, -3600000) : now;
}

/* ---- Counting ---- */

/* The check has looked at `count` more records. */
void hf_audit_looked(struct hf_audit_state *s, enum hf_audit_check_id id, uint64_t count);

/* A position, or another number that counts over the whole store, as text: digits, or "(not shown)"
 * if the report is for one tenant, because the number shows how much other tenants have written. */
struct hf_audit_numeral {
    char text[24];
};
struct hf_audit_numeral hf_audit_figure(const struct hf_audit_state *s, uint64_t number);

/* May the report name records of this tenant? */
bool hf_audit_may_name(const struct hf_audit_state *s, struct hf_bytes tenant);

/* A violation. The entry's action, key, time and position are added to the sentence. The sentence
 * names the records: ids, keys and times, and numbers of the store by hf_audit_figure. If the
 * report is for one tenant, `entry` must be one of that tenant, or a configuration. */
void hf_audit_break(struct hf_audit_state *s, enum hf_audit_check_id id,
                    const struct hf_audit_entry *entry, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for an error of the journal itself, which belongs to no tenant. A report for one tenant
 * says once that there is an error, but not where or how often. */
void hf_audit_break_store(struct hf_audit_state *s, enum hf_audit_check_id id, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));

/* The names, titles and meanings; counts at zero. */
void hf_audit_checks_init(struct hf_audit_report *report, bool database);

/* ---- check_claim.c: for everything that is found by its name ---- */

/* Find the item or add a new one; *fresh: it is new. NULL if out of memory. */
void *hf_audit_item(struct hf_audit_state *s, struct hf_audit_table *t, struct hf_audit_name name,
                    bool *fresh);
/* A new fence must be above every earlier fence; in a database, above the earlier fences of the
 * same key or name, because writers draw fences at the same time. before: the last fence of the
 * same key or name. */
void hf_audit_fresh_fence(struct hf_audit_state *s, const struct hf_audit_entry *e,
                          const char *what, struct hf_bytes name, uint64_t before, uint64_t fence);

/* ---- The judges: entry borrowed, its rows in s->rows ---- */

void hf_audit_judge_holds(struct hf_audit_state *s, const struct hf_audit_entry *entry);
/* After hf_audit_judge_holds: needs s->effects. */
void hf_audit_judge_token(struct hf_audit_state *s, const struct hf_audit_entry *entry);
void hf_audit_judge_effects(struct hf_audit_state *s, const struct hf_audit_entry *entry);
void hf_audit_judge_guards(struct hf_audit_state *s, const struct hf_audit_entry *entry);
void hf_audit_judge_claim(struct hf_audit_state *s, const struct hf_audit_entry *entry,
                          const struct hf_claim *claim);
/* After everything is read: count the claims by their state then. */
void hf_audit_count_claims(struct hf_audit_state *s);
void hf_audit_judge_lease(struct hf_audit_state *s, const struct hf_audit_entry *entry,
                          const struct hf_audit_row *row);
void hf_audit_judge_register(struct hf_audit_state *s, const struct hf_audit_entry *entry,
                             const struct hf_audit_row *row);
void hf_audit_judge_sequence(struct hf_audit_state *s, const struct hf_audit_entry *entry);
void hf_audit_judge_outbox(struct hf_audit_state *s, const struct hf_audit_entry *entry,
                           const struct hf_outbox *outbox);
void hf_audit_judge_config(struct hf_audit_state *s, const struct hf_audit_entry *entry,
                           const struct hf_audit_config *config);
/* A hold was placed: is there a similar one shortly before? */
void hf_audit_judge_near(struct hf_audit_state *s, const struct hf_audit_entry *entry,
                         const struct hf_hold *hold);
/* After everything is read: the checks that sum up others, and the figures. */
void hf_audit_judge_end(struct hf_audit_state *s);

/* ---- check_tables.c: the tables of a database must agree with its journal ---- */

/* Note what the tables must contain after the entry; its rows are in s->rows. */
void hf_audit_note_tables(struct hf_audit_state *s, const struct hf_audit_entry *entry);
/* After everything is read: compare. HF_OK, or HF_STORAGE_FAILURE with why. */
HF_MUST_USE enum hf_status hf_audit_judge_tables(struct hf_audit_state *s, struct hf_error *why);
/* For the table s->stored: can the item be dropped? */
bool hf_audit_stored_old(const void *item, hf_time now);
extern const size_t hf_audit_stored_size;

/* ---- Look-ups ---- */

/* Another tenant has a hold with this ordinal: only the number is noted. */
void hf_audit_note_ordinal(struct hf_audit_state *s, uint64_t ordinal);

/* Compare holds.idx with the journal, after its end. Not HF_OK: holds.idx cannot be read. */
HF_MUST_USE enum hf_status hf_audit_judge_index(struct hf_audit_state *s, const char *dir,
                                                struct hf_error *why);
/* The hold with this ordinal, or NULL. */
struct hf_audit_hold *hf_audit_hold_at(const struct hf_audit_state *s, uint64_t ordinal);
/* The ordinal inside an id; 0 if it is no id of this store. If the id key is not known, the ordinal
 * of the hold that was placed with the id. */
uint64_t hf_audit_ordinal_of(const struct hf_audit_state *s, const char *id);
/* Is `until` one window after `from`, by the configuration in force? */
bool hf_audit_window_fits(const struct hf_audit_state *s, hf_time from, hf_time until);
/* Is there a live claim with the entry's key at `now`? */
bool hf_audit_claim_alive(const struct hf_audit_state *s, const struct hf_audit_entry *entry,
                          hf_time now);
/* Is a key's window open at `now`? */
bool hf_audit_key_alive(const struct hf_audit_state *s, struct hf_bytes tenant, struct hf_bytes key,
                        hf_time now);

#endif
