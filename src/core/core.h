/* core.h: what goes into a decision and what comes out of it.
 *
 *     view ────┐
 *     command ─┼──▶ hf_decide ──▶ plan: the answer, the rows to write, whether to remember the key
 *     now ─────┘
 *
 * Everything in this folder is pure: no I/O, no clock, no randomness, no allocation, no state
 * between calls. Ids, fences and the time come with the command. tests/unit/purity checks this with
 * the linker. A shell (src/store, src/engine) provides the view and carries the plan out.
 *
 * All bytes in a view's answers are borrowed until the plan has been carried out; all bytes in a
 * plan are borrowed from the request, the view or the plan's scratch space. */
#ifndef HF_CORE_CORE_H
#define HF_CORE_CORE_H

#include "holdfast.h"

/* A name within a tenant. */
struct hf_scoped {
    struct hf_bytes tenant, name;
};

/* ---- Rows: what is stored ----
 * The numbers are part of the file format. */
enum hf_row_kind {
    HF_ROW_HOLD = 1,
    HF_ROW_RESOURCE = 2,
    HF_ROW_GUARD = 3,
    HF_ROW_ENTRY = 4,
    HF_ROW_CLAIM = 5,
    HF_ROW_LEASE = 6,
    HF_ROW_REGISTER = 7,
    HF_ROW_CLIENT = 8,
    HF_ROW_VALUE = 9,
    HF_ROW_OUTBOX = 10,
    HF_ROW_SUCCESSOR = 11,
    HF_ROW_CONFIG = 12
};

/* Compact keys: which of a client's numbers have been used. Bit (n % HF_SEQUENCE_WINDOW) stands for
 * number n, for n in (highest - HF_SEQUENCE_WINDOW, highest]. */
struct hf_client {
    struct hf_bytes tenant, name;
    uint64_t highest;
    uint8_t used[HF_SEQUENCE_WINDOW / 8];
};

/* A row of the application key space. */
struct hf_pair {
    struct hf_bytes tenant, key, value;
};

/* The record that followed the hold `original`: it gave the confirmed hold back, or it reacquired
 * the expired one. */
struct hf_successor {
    struct hf_bytes tenant;
    char original[HF_ID_SIZE];
    char successor[HF_ID_SIZE];
};

/* The configuration in force, written when it changes. */
struct hf_config {
    int64_t idempotency_window_ms;
    uint32_t token_max_length;
    bool registry_strict;
    struct hf_bytes digest_name; /* HF_DIGEST_NAME */
    struct hf_bytes program;     /* the program version that wrote it */
};

/* In core and store, a register's value is in its stored form (merge.h): value.type, and the form
 * in value.bytes. The other members of struct hf_value are filled when a result is made. */
struct hf_row {
    enum hf_row_kind kind;
    bool erase; /* HF_ROW_VALUE and HF_ROW_LEASE only: delete the row */
    union {
        struct hf_hold hold;
        struct hf_resource resource;
        struct hf_guard guard;
        struct hf_entry entry;
        struct hf_claim claim;
        struct hf_lease lease;
        struct hf_register reg;
        struct hf_client client;
        struct hf_pair pair;
        struct hf_outbox outbox;
        struct hf_successor successor;
        struct hf_config config;
    };
};

/* ---- The view: what is stored now ---- */

enum hf_found {
    HF_ABSENT = 0,
    HF_FOUND = 1,
    HF_UNREADABLE = 2 /* the store has it but cannot read it: the decision is HF_STORAGE_FAILURE */
};

/* What is stored of a key's first call. The view may return it after its window has closed, until
 * it is freed: the core compares `expires_at`. */
struct hf_remembered {
    enum hf_action action;
    uint8_t digest[HF_DIGEST_SIZE];
    hf_time recorded_at;
    hf_time expires_at; /* for compact keys INT64_MAX: they expire by number, not by time */
    struct hf_answer answer;
};

#define HF_OVERDUE_MAX 8

/* Look-ups; `out` is filled if HF_FOUND is returned. A look-up has no effect on later look-ups. */
struct hf_view {
    void *ctx;
    enum hf_found (*token)(void *ctx, struct hf_scoped key, struct hf_remembered *out);
    enum hf_found (*client)(void *ctx, struct hf_scoped client, struct hf_client *out);
    enum hf_found (*sequence)(void *ctx, struct hf_scoped client, uint64_t sequence,
                              struct hf_remembered *out);
    /* By id; a hold of another tenant is absent. */
    enum hf_found (*hold)(void *ctx, struct hf_scoped id, struct hf_hold *out);
    /* Has the confirmed hold `id` been given back? */
    enum hf_found (*successor)(void *ctx, struct hf_scoped id, struct hf_successor *out);
    enum hf_found (*resource)(void *ctx, struct hf_scoped name, struct hf_resource *out);
    /* Held holds on `resource` with expires_at <= now: up to HF_OVERDUE_MAX of them into `out`, the
     * number into *count. HF_FOUND (also for none) or HF_UNREADABLE. */
    enum hf_found (*overdue)(void *ctx, struct hf_scoped resource, hf_time now,
                             struct hf_hold out[HF_OVERDUE_MAX], size_t *count);
    enum hf_found (*guard)(void *ctx, struct hf_scoped name, struct hf_guard *out);
    enum hf_found (*entry)(void *ctx, struct hf_scoped guard, struct hf_bytes identity,
                           struct hf_entry *out);
    /* HF_FOUND: an identity is under this guard at `now`; HF_ABSENT: none is. */
    enum hf_found (*guarded)(void *ctx, struct hf_scoped guard, hf_time now);
    enum hf_found (*claim)(void *ctx, struct hf_scoped key, struct hf_claim *out);
    enum hf_found (*lease)(void *ctx, struct hf_scoped name, struct hf_lease *out);
    enum hf_found (*reg)(void *ctx, struct hf_scoped name, struct hf_register *out);
    enum hf_found (*value)(void *ctx, struct hf_scoped key, struct hf_bytes *out);
};

/* ---- The command: the request, and what the shell adds ---- */

struct hf_rules {
    int64_t idempotency_window_ms;
    uint32_t token_max_length;
    bool registry_strict;
};

struct hf_command {
    const struct hf_request *request;
    const struct hf_rules *rules;
    /* hf_digest(request), for actions with a key; for HF_BEGIN the fingerprint. */
    uint8_t digest[HF_DIGEST_SIZE];
    uint64_t fresh_ordinal; /* for a hold that the plan may make */
    char fresh_id[HF_ID_SIZE];
    /* Above every fence ever given out; 0: none was drawn, and the plan is not carried out. */
    uint64_t fresh_fence;
    bool refuse_writes; /* the store refuses new work now (disk or memory full) */
    bool may_end;       /* it refuses writes, but accepts endings (hf_may_end) */
    bool has_reserve;   /* and also endings that take more memory than was kept for them */
};

/* ---- The plan: the answer, and what to write ---- */

enum hf_remember { HF_REMEMBER_NOT = 0, HF_REMEMBER_KEY = 1, HF_REMEMBER_SEQUENCE = 2 };

#define HF_PLAN_ROWS (HF_APPLY_ROWS_MAX + 4)
#define HF_PLAN_SCRATCH (1024 * 1024 + 512 * 1024)

struct hf_plan {
    struct hf_answer answer;
    bool replayed; /* the answer is a stored one; no rows */
    bool ordinal_used, fence_used;
    bool missed; /* a guard could not record because the store refuses writes */
    bool run;    /* HF_APPLY only: the key is new, the shell must run the function */
    enum hf_remember remember;
    struct hf_token token; /* if replayed, collided or remembered: the key's record */
    size_t row_count;
    struct hf_row rows[HF_PLAN_ROWS];
    /* For canonical identities and merged values. Provided by the shell, reused. */
    unsigned char *scratch; /* HF_PLAN_SCRATCH bytes */
    size_t scratch_used;
};

/* Make the plan empty; keeps plan->scratch. */
void hf_plan_reset(struct hf_plan *plan);

/* The next free row of the plan, zeroed, with its kind set. There is always room for the core's own
 * rows; the shell checks before it adds rows for HF_APPLY. */
struct hf_row *hf_plan_row(struct hf_plan *plan, enum hf_row_kind kind);

/* `size` bytes of scratch, or NULL if less is left. */
unsigned char *hf_plan_room(struct hf_plan *plan, size_t size);

#endif
