/* order.h: nodes in the order of their stamps.
 *
 * They are in chunks of up to HF_ORDER_CHUNK, oldest first. Nodes are added at the end and removed
 * anywhere. Removing a node leaves a hole in its chunk; two neighbours that are together at most a
 * quarter full are joined, and an empty chunk is freed. So the memory is at most about four times
 * that of the nodes, whatever the order of removal, and no call moves more than two chunks, or the
 * pointers to the chunks.
 *
 * bytes, in all calls: the owner's count of memory, kept up to date. */
#ifndef HF_STORE_JOURNAL_ORDER_H
#define HF_STORE_JOURNAL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HF_ORDER_CHUNK = 256 };

struct hf_node;

struct hf_order_item {
    uint64_t stamp;
    struct hf_node *node; /* borrowed, NULL for a hole */
};

struct hf_order_chunk {
    uint32_t used, live, room; /* items, items that are not holes, allocated items */
    struct hf_order_item items[];
};

struct hf_order {
    struct hf_order_chunk **chunks; /* owned, with the chunks in it */
    size_t first, end;              /* used chunks; none is empty except perhaps the last */
    size_t spare, room;             /* chunks[end, spare) are empty and in reserve */
    uint64_t live;                  /* number of nodes */
    uint64_t newest;                /* the highest stamp ever added */
};

void hf_order_free(struct hf_order *o, uint64_t *bytes);

/* Make sure that adding `more` nodes needs no memory, also if others are removed before. False if
 * out of memory. */
bool hf_order_reserve(struct hf_order *o, unsigned more, uint64_t *bytes);
/* Add a node at the end: its stamp is not below the others, unless hf_order_sort follows. Needs a
 * reserve before. */
void hf_order_add(struct hf_order *o, uint64_t stamp, struct hf_node *node);
/* Remove a node. No effect if it is not there. */
void hf_order_leave(struct hf_order *o, uint64_t stamp, const struct hf_node *node,
                    uint64_t *bytes);
/* Put `node` in the place of `old`. No effect if it is not there. */
void hf_order_swap(struct hf_order *o, uint64_t stamp, const struct hf_node *old,
                   struct hf_node *node);
/* Sort nodes that were added in any order. False if out of memory. */
bool hf_order_sort(struct hf_order *o);

/* A place between two items. */
struct hf_order_at {
    size_t chunk;
    uint32_t item;
};

/* The place after all items with a stamp below `stamp`. */
struct hf_order_at hf_order_find(const struct hf_order *o, uint64_t stamp);
/* The place after all items. */
struct hf_order_at hf_order_end(const struct hf_order *o);
/* Return the node before (back) or after (next) the place, and move past it. NULL: there is none.
 * Valid until the order changes. */
const struct hf_order_item *hf_order_back(const struct hf_order *o, struct hf_order_at *at);
const struct hf_order_item *hf_order_next(const struct hf_order *o, struct hf_order_at *at);

#endif
