/* action.h: what every action is, one row each.
 *
 * Engine, stores, interface and audit read this table and have no list of actions of their own. An
 * action's rule decides; this table has everything that other code must know about the action
 * before that. */
#ifndef HF_CORE_ACTION_H
#define HF_CORE_ACTION_H

#include "core/core.h"

/* The rule of an action: decide `cmd` at `now`. plan: out, reset before. Pure. */
typedef void hf_decide_fn(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                          struct hf_plan *plan);

/* Endings (GLOSSARY): accepted while the store refuses new work, because they end something that
 * was begun, or keep it alive. */
enum hf_ends {
    HF_ENDS_NOTHING = 0,
    HF_ENDS_BEGUN = 1,   /* a hold, a claim or a lease */
    HF_ENDS_PAYLOAD = 2, /* the same; a payload above HF_ENDING_RESPONSE needs the reserve */
    HF_ENDS_RESERVE = 3, /* it makes a record that stays, and always needs the reserve */
    HF_ENDS_RECORD = 4   /* it deletes a record; no client waits for the deletion */
};

/* The fresh number that a plan may use. */
enum hf_draws { HF_DRAWS_NOTHING = 0, HF_DRAWS_ORDINAL = 1, HF_DRAWS_FENCE = 2 };

enum hf_digest_type {
    HF_DIGEST_BYTES = 1,  /* struct hf_bytes */
    HF_DIGEST_ID = 2,     /* struct hf_bytes: an id, which means the same in either case */
    HF_DIGEST_NUMBER = 3, /* 64 bits */
    HF_DIGEST_GIVEN = 4,  /* 64 bits, left out of the digest if they are 0 */
    HF_DIGEST_VALUE = 5,  /* struct hf_bytes: of a value (hf_digest_value) */
    HF_DIGEST_CHOICE = 6  /* an enum, left out of the digest if it is 0 */
};

/* A member of a request that its key is bound to. Offsets are in struct hf_request. */
struct hf_digest_field {
    const char *name; /* NULL behind the last */
    enum hf_digest_type type;
    uint16_t at;
    uint16_t has; /* not 0: a bool; if it is false, the field is left out of the digest */
};

/* Offsets lead to a struct hf_bytes in struct hf_request; 0 means none. */
struct hf_action_info {
    const char *name;     /* in every interface; NULL: there is no such action */
    hf_decide_fn *decide; /* NULL: not for requests */
    /* For an action with a key: what the key is bound to, sorted by name. */
    const struct hf_digest_field *digest;
    bool keyed; /* the key is remembered with the answer (K) */
    bool reads; /* it changes nothing */
    /* Every row that its rule reads is one that it changes, or a key that it binds. */
    bool swift;
    bool overdue; /* it expires overdue holds first, on the resource that it needs a unit of */
    enum hf_ends ends;
    enum hf_draws draws;

    /* The row that it is about, and where the request names that row. For HF_ROW_ENTRY it is the
     * name of the guard: the guard has not brought the identity into its form yet. */
    enum hf_row_kind row;
    uint16_t row_name;

    /* Its record in the journal: bits 1 << hf_row_kind of all rows that it may have, and the kind
     * of row that it has exactly once if the answer is ok (0: any number). */
    uint16_t changes;
    enum hf_row_kind changes_once;

    /* The member that may be large, and how much of it is stored at most. */
    uint16_t payload;
    uint32_t payload_max;
    /* Bytes that its record may take in addition to the payload and to what every record has. */
    uint32_t record_max;
    /* Bytes that its answer may have, if they are more than a few names; else 0. */
    uint32_t answer_max;
    /* Estimated bytes of memory to decide it, without the payload. */
    uint32_t weight;
};

#define HF_ACTIONS_END (HF_GET_VALUE + 1)

/* Indexed by enum hf_action. Row 0 is empty and stands for every number that is not an action. */
extern const struct hf_action_info hf_actions[HF_ACTIONS_END];

/* The row of the action; the empty row for other numbers. */
static inline const struct hf_action_info *hf_action_of(enum hf_action action)
{
    return &hf_actions[(unsigned)action < HF_ACTIONS_END ? (unsigned)action : 0];
}

/* The bytes at an offset of the table; none at offset 0. */
static inline struct hf_bytes hf_action_bytes(const struct hf_request *request, uint16_t at)
{
    return at ? *(const struct hf_bytes *)(const void *)((const char *)request + at)
              : (struct hf_bytes){ NULL, 0 };
}

/* Does the action have a key that is remembered with its answer (K)? */
static inline bool hf_action_keyed(enum hf_action action)
{
    return hf_action_of(action)->keyed;
}

/* Does the action only read? */
static inline bool hf_action_reads(enum hf_action action)
{
    return hf_action_of(action)->reads;
}

/* Does it end something that was begun before, or keep it alive? The store accepts such actions
 * while it refuses new work. */
static inline bool hf_action_ends(enum hf_action action)
{
    enum hf_ends ends = hf_action_of(action)->ends;
    return ends != HF_ENDS_NOTHING && ends != HF_ENDS_RESERVE;
}

#endif
