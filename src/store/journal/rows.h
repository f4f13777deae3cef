/* rows.h: the rows that live in memory: resources, guards, entries, claims, leases, registers, clients,
 * values, outbox, reversals, configuration. (Holds stay in the journal; see holds.h.)
 *
 * A row is kept as its image, the bytes of the journal, under its kind, tenant and name. Changing one is
 * done in two steps, so that an operation of several rows can be all or nothing when memory runs out:
 * hf_rows_stage finds the place and gets the memory, hf_rows_put cannot fail. */
#ifndef HF_STORE_JOURNAL_ROWS_H
#define HF_STORE_JOURNAL_ROWS_H

#include "store/journal/format.h"
#include "store/journal/map64.h"

struct hf_node;

/* Nodes in the order of their stamps, with holes where one has left. */
struct hf_order {
    struct hf_order_item {
        uint64_t stamp;
        struct hf_node *node; /* borrowed, NULL for a hole */
    } * items;                /* owned */
    size_t start, end, room;
};

struct hf_node {
    uint64_t hash;
    uint64_t stamp; /* where in the journal it was made; orders rows of a kind by age */
    uint32_t key_size, image_size, image_room;
    uint8_t kind, tenant_size;
    bool is_volatile;   /* an entry that is in no journal */
    uint32_t live_root; /* resources: see live.h */
    union {
        struct hf_order *entries; /* guards: its entries; owned */
        uint64_t *ring;           /* clients: position of number n at n % HF_SEQUENCE_WINDOW; owned */
        struct hf_node *guard;    /* entries */
        struct hf_node *dead_next;
    };
    unsigned char bytes[]; /* key: u8 tenant length, tenant, [u16 scope length, scope,] name; then image */
};

struct hf_rows {
    struct hf_map64 map; /* hash of kind and key -> node */
    struct hf_sipkey key;
    struct hf_order resources, guards, outbox;
    uint64_t count[HF_ROW_CONFIG + 1];
    uint64_t bytes;       /* nodes, orders, rings; not the map's */
    struct hf_node *dead; /* owned: erased, but an answer may still point into them; see hf_rows_bury */
    /* While a request is decided: the hash of the resource that it names, and that name; 0: none. And the
     * row found last, which is asked for several times in a row. */
    uint64_t hint;
    struct hf_bytes hint_name;
    struct hf_node *last;
    bool loading; /* rows come out of a snapshot, in any order and with their stamps */
};

bool hf_rows_init(struct hf_rows *r, const struct hf_sipkey *key);
void hf_rows_free(struct hf_rows *r);

/* The row, or NULL. scope is empty but for entries. */
struct hf_node *hf_rows_find(struct hf_rows *r, enum hf_row_kind kind, struct hf_bytes tenant,
                             const struct hf_image_key *key);

/* The hash under which a row is found. */
uint64_t hf_rows_hash(const struct hf_rows *r, enum hf_row_kind kind, struct hf_bytes tenant,
                      const struct hf_image_key *key);
/* The first row with this hash, whose ever it is, or NULL; and: ask the memory for it. */
const struct hf_node *hf_rows_peek(const struct hf_rows *r, uint64_t hash);
void hf_rows_prefetch(const struct hf_rows *r, uint64_t hash);

struct hf_bytes hf_node_tenant(const struct hf_node *n);
struct hf_bytes hf_node_image(const struct hf_node *n);
/* The row in the node. False if the image is not well-formed, which recovery would have noticed. */
bool hf_node_row(const struct hf_node *n, struct hf_row *row);
/* An entry's expires_at, without decoding the rest. */
hf_time hf_node_entry_expiry(const struct hf_node *n);

struct hf_staged {
    struct hf_node *old;  /* the row as it is, or NULL */
    struct hf_node *made; /* owned until put or dropped; NULL: the old one is changed in place */
    struct hf_bytes tenant;
    struct hf_image image;
};

/* together: how many rows are staged before the first of them is put.
 * HF_OK, HF_NO_MEMORY, or HF_STORE_DAMAGED for an image without a proper key, or without its guard. */
enum hf_status hf_rows_stage(struct hf_rows *r, struct hf_bytes tenant, const struct hf_image *image,
                             unsigned together, struct hf_staged *out);
void hf_rows_drop(struct hf_rows *r, struct hf_staged *staged);
/* stamp: position of the journal entry and index of the row in it; it is raised where needed to be above
 * all others of its order. Returns the row; NULL if it was erased. */
struct hf_node *hf_rows_put(struct hf_rows *r, struct hf_staged *staged, uint64_t stamp);
void hf_rows_erase(struct hf_rows *r, struct hf_node *node);
/* Free the memory of rows that were erased or replaced. */
void hf_rows_bury(struct hf_rows *r);

/* The end of loading: sort what has to be in order. */
void hf_rows_loaded(struct hf_rows *r);

/* Free entries of `guard` that are not seen at `now`, oldest first, at most `max`. Returns how many. */
size_t hf_rows_expire_entries(struct hf_rows *r, struct hf_node *guard, hf_time now, size_t max);

/* The index in items[start, end) of the first item with a stamp of at least `stamp`. */
size_t hf_order_find(const struct hf_order *o, uint64_t stamp);

#endif
