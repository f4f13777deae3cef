/* world.h: a store for tests of the core alone. Plain arrays in memory, searched from end to end;
 * it gives the core its view, carries plans out, and fails the test when a plan breaks its
 * contract.
 *
 *     struct world *w = world_new();
 *     assert_int_equal(world_do(w, &(struct hf_request){ .action = HF_PLACE_HOLD, ... }), HF_OK);
 *     ... w->plan is the plan that was carried out ...
 *     world_free(w); */
#ifndef HF_TESTS_UNIT_KIT_WORLD_H
#define HF_TESTS_UNIT_KIT_WORLD_H

#include "core/core.h"

/* The look-ups of the view, for failure injection. */
enum world_lookup {
    WORLD_TOKEN,
    WORLD_CLIENT,
    WORLD_SEQUENCE,
    WORLD_HOLD,
    WORLD_SUCCESSOR,
    WORLD_RESOURCE,
    WORLD_OVERDUE,
    WORLD_GUARD,
    WORLD_ENTRY,
    WORLD_CLAIM,
    WORLD_LEASE,
    WORLD_REGISTER,
    WORLD_VALUE,
    WORLD_LOOKUPS
};

struct world_table {
    struct hf_row *rows;
    size_t count, room;
};

/* What a key (sequence 0) or a client's number left behind. */
struct world_token {
    struct hf_bytes tenant, name;
    uint64_t sequence;
    struct hf_remembered first;
};

struct world {
    struct hf_rules rules; /* 24 h, 256 bytes, open; a test may change them */
    hf_time now;           /* a test moves it */
    bool refuse_writes, may_end, has_reserve;
    bool unreadable[WORLD_LOOKUPS];

    struct hf_view view;
    struct hf_plan plan;     /* of the last world_do; its bytes live until the next */
    uint64_t ordinal, fence; /* the last ones given out */
    struct world_table tables[HF_ROW_CONFIG + 1]; /* by kind of row */
    struct world_token *tokens;
    size_t token_count, token_room;
    unsigned lookups; /* asked since the world began */
    void **copies;    /* every run of bytes that was stored */
    size_t copy_count, copy_room;
};

#define WORLD_START INT64_C(1700000000000)

/* owned, free with world_free. */
struct world *world_new(void);
void world_free(struct world *w);

/* Make the command for `request` and decide it. Nothing is carried out. */
enum hf_status world_decide(struct world *w, const struct hf_request *request);
/* Decide `request` and carry the plan out. HF_APPLY is carried out as if its function did
 * nothing. */
enum hf_status world_do(struct world *w, const struct hf_request *request);
/* Let the core expire `hold` by itself and carry that out. */
enum hf_status world_sweep(struct world *w, const struct hf_hold *hold);

/* The stored rows, or NULL. Borrowed until the next change. */
const struct hf_row *world_row(struct world *w, enum hf_row_kind kind, const char *tenant,
                               const char *first, const char *second);
size_t world_count(const struct world *w, enum hf_row_kind kind);

/* Fail the test unless PC1 to PC11 hold over the stored rows. */
void world_check(const struct world *w);

#endif
