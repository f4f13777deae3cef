/* owners.h: how much memory and how many records each tenant has.
 *
 * A tenant is in the table while it has a row, a key or a held hold, so the limits on these bound
 * the table, and its own bytes count too. Loading a snapshot and the journal rebuilds it. Rows name
 * their tenant by its place here, which stays the same while the tenant is in the table; place 0 is
 * the default tenant, and always exists. */
#ifndef HF_STORE_JOURNAL_OWNERS_H
#define HF_STORE_JOURNAL_OWNERS_H

#include "base/hash.h"
#include "holdfast.h"
#include "store/journal/map64.h"

/* Upper bounds besides the bytes of rows. OWED: the memory that ending something will take. It
 * counts as used from the beginning, so that there is always room for the ending. */
enum {
    HF_SLOT_BYTES = 48,                     /* an entry of a map */
    HF_LIVE_BYTES = 72,                     /* a held hold */
    HF_OWED_HOLD = 2 * HF_SLOT_BYTES,       /* the key of the ending, and the hold's new position */
    HF_ENDING_ROOM = 1024,                  /* bytes of a claim's response that are owed */
    HF_OWED_CLAIM = HF_ENDING_ROOM * 5 / 4, /* a row that changes its size gets some slack */
    HF_OWED_ROW = HF_SLOT_BYTES             /* the key that deletes a register or a lease */
};

struct hf_owner {
    uint64_t bytes; /* of its rows */
    uint64_t rows, tokens, live;
    uint64_t left;      /* of the rows: those left by deleted registers */
    uint64_t started;   /* claims that are not settled */
    uint64_t deletable; /* registers and leases */
    uint64_t refusals;  /* by its quota, while it is in the table */
    uint32_t next_free;
    uint8_t size;
    char name[HF_TENANT_MAX];
};

struct hf_owners {
    struct hf_owner *list; /* owned */
    uint32_t count, room, free_list, last;
    struct hf_map64 map; /* hash of the name -> place; the default tenant is not in it */
    struct hf_sipkey key;
};

#define HF_OWNER_NONE UINT32_MAX

bool hf_owners_init(struct hf_owners *t, const struct hf_sipkey *key);
void hf_owners_free(struct hf_owners *t);

/* The tenant's place, or HF_OWNER_NONE. */
uint32_t hf_owners_find(struct hf_owners *t, struct hf_bytes name);
/* The same, and it is added if missing; HF_OWNER_NONE if out of memory. */
uint32_t hf_owners_make(struct hf_owners *t, struct hf_bytes name);
/* Remove the tenant if it has nothing left. */
void hf_owners_leave(struct hf_owners *t, uint32_t place);

/* Bytes that the table itself takes. */
uint64_t hf_owners_bytes(const struct hf_owners *t);

/* What counts against the limits of a tenant. The row left by a deleted register is no record,
 * because it may stay for ever; its memory counts. */
uint64_t hf_owner_memory(const struct hf_owner *tenant);
uint64_t hf_owner_records(const struct hf_owner *tenant);
/* The part of its memory that is only owed. */
uint64_t hf_owner_owed(const struct hf_owner *tenant);

#endif
