/* live.h: which holds are held, and which of them expire next, overall and on one resource.
 *
 * Each held hold is a node of 48 bytes in two heaps: a binary heap over all of them, for the
 * sweeper, and a pairing heap for its resource, so that placing a hold finds an overdue one at
 * once. */
#ifndef HF_STORE_JOURNAL_LIVE_H
#define HF_STORE_JOURNAL_LIVE_H

#include "holdfast.h"
#include "store/journal/dense.h"

struct hf_live_node {
    uint64_t ordinal;
    hf_time expires_at;
    uint32_t *root;    /* borrowed: the resource's place for the root of its pairing heap */
    uint64_t resource; /* the resource's stamp */
    uint32_t heap_at;  /* its index in the binary heap */
    uint32_t child, next, prev; /* pairing heap; prev is the left sibling, or the parent */
};

struct hf_live_heap_item {
    hf_time expires_at;
    uint32_t node;
};

struct hf_live {
    struct hf_live_node **chunks; /* owned */
    uint32_t chunk_count, node_count, free_list;
    struct hf_live_heap_item *heap; /* owned */
    uint32_t heap_count, heap_room;
    struct hf_dense by_ordinal; /* ordinal -> node */
    uint64_t bytes;             /* of nodes and heap */
};

void hf_live_init(struct hf_live *l);
void hf_live_free(struct hf_live *l);

/* Make sure that adding a hold of this ordinal needs no memory. */
bool hf_live_reserve(struct hf_live *l, uint64_t ordinal);

/* Add a held hold. Needs a reserve before; no effect if it is there already. root, resource: of its
 * resource; *root must stay at its address and start as 0. False if it was there. */
bool hf_live_add(struct hf_live *l, uint64_t ordinal, hf_time expires_at, uint32_t *root,
                 uint64_t resource);

/* Remove a hold that is no longer held. False if it was not there. */
bool hf_live_remove(struct hf_live *l, uint64_t ordinal);
/* Make hf_live_first_overdue skip an overdue hold until then. */
void hf_live_put_off(struct hf_live *l, uint64_t ordinal, hf_time until);

static inline uint64_t hf_live_count(const struct hf_live *l)
{
    return l->heap_count;
}

/* The ordinal of the hold that expires first, if it is overdue at `now`; else 0. */
uint64_t hf_live_first_overdue(const struct hf_live *l, hf_time now);
/* When the next one expires; INT64_MAX if none is held. */
hf_time hf_live_next_expiry(const struct hf_live *l);

/* Ordinals of overdue holds below `root`: the earliest, and others that are cheap to find, at most
 * `max`. Returns how many. */
size_t hf_live_overdue(const struct hf_live *l, uint32_t root, hf_time now, uint64_t *out,
                       size_t max);

/* The node that by_ordinal names, for a snapshot. */
const struct hf_live_node *hf_live_node(const struct hf_live *l, uint64_t value);

#endif
