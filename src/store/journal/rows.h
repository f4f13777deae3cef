/* rows.h: the rows in memory: resources, guards, entries, claims, leases, registers, clients,
 * values, outbox, successors of holds, configuration. (Holds stay in the journal; see holds.h.)
 *
 * A row is kept as its image, the bytes of the journal, by kind, tenant and name. A change has two
 * steps, so that an operation on several rows is all or nothing when memory runs out: hf_rows_stage
 * finds the place and allocates, hf_rows_put cannot fail. */
#ifndef HF_STORE_JOURNAL_ROWS_H
#define HF_STORE_JOURNAL_ROWS_H

#include "store/journal/claims.h"
#include "store/journal/format.h"
#include "store/journal/map64.h"
#include "store/journal/order.h"
#include "store/journal/owners.h"

struct hf_node;

/* Lists and their cursors use stamps, so a row must have the same stamp after a restart. It is the
 * position of the journal entry that made the row, plus the row's index in that entry, whether the
 * row comes from memory, a snapshot or the journal. Entries that are in no journal have separate
 * stamps: this bit, and a number. */
#define HF_STAMP_VOLATILE (UINT64_C(1) << 63)

struct hf_node {
    uint64_t hash;
    /* where in the journal it was made; orders rows of a kind by age. See HF_STAMP_VOLATILE */
    uint64_t stamp;
    uint32_t key_size, image_size, image_room;
    uint8_t kind, tenant_size;
    bool is_volatile;   /* an entry that is in no journal */
    uint32_t live_root; /* resources: see live.h */
    uint32_t tenant;    /* its place in the table of tenants */
    union {
        /* guards: two, of its entries in the journal and of the others; owned */
        struct hf_order *entries;
        uint64_t *ring;        /* clients: position of number n at n % HF_SEQUENCE_WINDOW; owned */
        struct hf_node *guard; /* entries */
        struct {
            uint32_t at, heap;
        } due; /* unsettled claims: their place in a heap of hf_claims */
        struct hf_node *dead_next;
    };
    /* key: u8 tenant length, tenant, [u16 scope length, scope,] name; then image */
    unsigned char bytes[];
};

struct hf_rows {
    struct hf_map64 map; /* hash of kind and key -> node */
    struct hf_sipkey key;
    struct hf_order resources, guards, outbox;
    struct hf_claims claims;
    uint64_t count[HF_ROW_CONFIG + 1];
    uint64_t bytes; /* nodes, orders, rings; not the map's */
    struct hf_owners owners;
    uint64_t started, deletable; /* of all tenants: see owners.h */
    uint64_t left;               /* rows that deleted registers have left */
    /* owned: erased, but an answer may still point into them; see hf_rows_bury */
    struct hf_node *dead;
    /* During a decision: the hash of the resource that the request names, and that name; 0: none.
     * And the row found last, because it is often looked up again. */
    uint64_t hint;
    struct hf_bytes hint_name;
    struct hf_node *last;
    bool loading;             /* rows come from a snapshot, in any order and with their stamps */
    uint64_t foreign;         /* the highest stamp from a snapshot, or raised */
    uint64_t volatile_stamps; /* number given out so far */
};

bool hf_rows_init(struct hf_rows *r, const struct hf_sipkey *key);
void hf_rows_free(struct hf_rows *r);

/* The row, or NULL. scope: only for entries. */
struct hf_node *hf_rows_find(struct hf_rows *r, enum hf_row_kind kind, struct hf_bytes tenant,
                             const struct hf_image_key *key);

/* The hash under which a row is found. */
uint64_t hf_rows_hash(const struct hf_rows *r, enum hf_row_kind kind, struct hf_bytes tenant,
                      const struct hf_image_key *key);
/* peek: the first row with this hash, of any owner, or NULL. prefetch: load it into the cache. */
const struct hf_node *hf_rows_peek(const struct hf_rows *r, uint64_t hash);
void hf_rows_prefetch(const struct hf_rows *r, uint64_t hash);

struct hf_bytes hf_node_tenant(const struct hf_node *n);
struct hf_bytes hf_node_image(const struct hf_node *n);
/* Decode the row. False if the image is malformed, which recovery would have noticed. */
bool hf_node_row(const struct hf_node *n, struct hf_row *row);
/* An entry's expires_at, without decoding the rest. */
hf_time hf_node_entry_expiry(const struct hf_node *n);

struct hf_staged {
    struct hf_node *old;  /* the row as it is, or NULL */
    struct hf_node *made; /* owned until put or dropped; NULL: the old one is changed in place */
    struct hf_bytes tenant;
    struct hf_image image;
};

/* together: how many rows are staged before the first is put. HF_OK, HF_NO_MEMORY, or
 * HF_STORE_DAMAGED for an image without a valid key, or without its guard. */
enum hf_status hf_rows_stage(struct hf_rows *r, struct hf_bytes tenant,
                             const struct hf_image *image, unsigned together,
                             struct hf_staged *out);
/* The same for an entry that is in no journal; hf_rows_put ignores its stamp. */
enum hf_status hf_rows_stage_volatile(struct hf_rows *r, struct hf_bytes tenant,
                                      const struct hf_image *image, struct hf_staged *out);
void hf_rows_drop(struct hf_rows *r, struct hf_staged *staged);
/* stamp: position of the journal entry plus index of the row in it. It is above all others of its
 * order, except after a snapshot of an older program (doc/FORMAT.md): then it is raised. Returns
 * the row; NULL if it was erased. */
struct hf_node *hf_rows_put(struct hf_rows *r, struct hf_staged *staged, uint64_t stamp);
void hf_rows_erase(struct hf_rows *r, struct hf_node *node);
/* Free the memory of rows that were erased or replaced. */
void hf_rows_bury(struct hf_rows *r);

/* End of loading: sort the orders. False if out of memory. */
bool hf_rows_loaded(struct hf_rows *r);
/* End of the recovery: make the index of the claims. now: those whose lease has ended are unknown
 * already. False if out of memory. */
bool hf_rows_recovered(struct hf_rows *r, hf_time now);

/* Free entries of `guard` that are not seen at `now`, oldest first, at most `max`. Returns how
 * many. */
size_t hf_rows_expire_entries(struct hf_rows *r, struct hf_node *guard, hf_time now, size_t max);

#endif
