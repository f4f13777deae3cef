/* claims.h: the claims in the order of their begin, and which of them become unknown next.
 *
 * Fences rise with every begin, so the order of the fences is the order of the begins. `all` has
 * every claim, `open` those that are not settled. Each open claim is also in one of two heaps, by
 * the end of its lease:
 *
 *   RUNNING ── the lease has ended (hf_claims_lapse) ──▶ LAPSED
 *      ▲                                                   │
 *      └──────────── heartbeat, or a new begin ────────────┘
 *
 * The rows are the truth, and this is an index over them. Replaying the journal over a snapshot may
 * set a row back for a while, so the index is made when the replay has ended (hf_claims_made).
 *
 * bytes, in all calls: the owner's count of memory, kept up to date. */
#ifndef HF_STORE_JOURNAL_CLAIMS_H
#define HF_STORE_JOURNAL_CLAIMS_H

#include "holdfast.h"
#include "store/journal/order.h"

enum hf_claims_heap { HF_CLAIMS_RUNNING = 0, HF_CLAIMS_LAPSED = 1, HF_CLAIMS_HEAPS = 2 };

struct hf_claims_item {
    hf_time lease_expires_at;
    struct hf_node *node; /* borrowed */
};

struct hf_claims {
    bool made; /* false: the index is not kept yet */
    struct hf_order all, open;
    struct {
        struct hf_claims_item *items; /* owned */
        size_t count, room;
    } heaps[HF_CLAIMS_HEAPS];
    uint64_t settled[HF_CLAIM_RETRYABLE + 1]; /* claims in each state except STARTED */
};

/* What the index knows of a claim's row. */
struct hf_claim_mark {
    uint64_t fence;
    enum hf_claim_state state; /* as stored */
    hf_time lease_expires_at;
};

void hf_claims_free(struct hf_claims *c, uint64_t *bytes);

/* Read the mark from a claim's image, which has been checked. */
struct hf_claim_mark hf_claim_mark(const void *image);

/* Make sure that adding `more` begun claims needs no memory. False if out of memory. Settling a
 * claim, and moving its lease, never needs any. */
bool hf_claims_reserve(struct hf_claims *c, unsigned more, uint64_t *bytes);

/* The row `old` with mark `was` is replaced by `node` with mark `is`; they may be the same node. No
 * old: the row is new. No node: it is removed. Needs a reserve before, if `is` has a new fence. */
void hf_claims_change(struct hf_claims *c, struct hf_node *old, const struct hf_claim_mark *was,
                      struct hf_node *node, const struct hf_claim_mark *is, uint64_t *bytes);

/* The replay has ended. add: a claim's row, in any order; false if out of memory. made: all are
 * added; false if out of memory. now: claims whose lease had ended then are LAPSED. */
bool hf_claims_add(struct hf_claims *c, struct hf_node *node, const struct hf_claim_mark *is,
                   hf_time now, uint64_t *bytes);
bool hf_claims_made(struct hf_claims *c);

/* Move the running claim whose lease ended first to the lapsed ones, and return it; NULL if no
 * running claim's lease has ended at `now`. */
struct hf_node *hf_claims_lapse(struct hf_claims *c, hf_time now);

static inline uint64_t hf_claims_count(const struct hf_claims *c, enum hf_claims_heap heap)
{
    return c->heaps[heap].count;
}

/* When the first of the lapsed claims lapsed; 0 if there is none. */
hf_time hf_claims_lapsed_since(const struct hf_claims *c);

#endif
