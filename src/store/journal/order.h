/* order.h: nodes in the order of their stamps.
 *
 * They stand in chunks of up to HF_ORDER_CHUNK, oldest first. Nodes are added behind all others and
 * leave from anywhere. A node that leaves makes a hole in its chunk; two neighbours that are a
 * quarter full together become one, and an empty one is freed. So there is memory for at most about
 * four times the nodes that are there, whatever the order in which they leave, and no call moves
 * more than two chunks, or the pointers to the chunks.
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
    uint32_t used, live,
        room; /* items, those that are no holes, and for how many there is memory */
    struct hf_order_item items[];
};

struct hf_order {
    struct hf_order_chunk **chunks; /* owned, and those in it */
    size_t first, end;              /* chunks that are used; none is empty but perhaps the last */
    size_t spare, room;             /* chunks[end, spare) are empty and wait */
    uint64_t live;                  /* nodes in all of them */
    uint64_t newest;                /* the highest stamp that was ever added */
};

void hf_order_free(struct hf_order *o, uint64_t *bytes);

/* Make sure that `more` nodes can be added without needing memory, also if others leave before.
 * False without memory. */
bool hf_order_reserve(struct hf_order *o, unsigned more, uint64_t *bytes);
/* Add one behind all others: its stamp is not below theirs, unless hf_order_sort follows. Needs a
 * reserve before. */
void hf_order_add(struct hf_order *o, uint64_t stamp, struct hf_node *node);
/* Take one out. Nothing happens if it is not there. */
void hf_order_leave(struct hf_order *o, uint64_t stamp, const struct hf_node *node,
                    uint64_t *bytes);
/* Put in order what was added in none. False without memory. */
bool hf_order_sort(struct hf_order *o);

/* A place between two items. */
struct hf_order_at {
    size_t chunk;
    uint32_t item;
};

/* Behind all items with a stamp below `stamp`. */
struct hf_order_at hf_order_find(const struct hf_order *o, uint64_t stamp);
/* Behind all of them. */
struct hf_order_at hf_order_end(const struct hf_order *o);
/* The node in front of the place, or behind it, and pass it. NULL: there is none. Valid until the
 * order changes. */
const struct hf_order_item *hf_order_back(const struct hf_order *o, struct hf_order_at *at);
const struct hf_order_item *hf_order_next(const struct hf_order *o, struct hf_order_at *at);

#endif
