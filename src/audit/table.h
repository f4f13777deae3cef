/* table.h: the auditor's compact hash tables.
 *
 * A table of items of one size, found by a 128-bit hash of their names (truncated SHA-256): the
 * names themselves stay in the journal. An item begins with its struct hf_audit_name. A table with
 * an `old` function drops old items before it grows, so that a journal of any length needs memory
 * only for the live items of one time. */
#ifndef HF_AUDIT_TABLE_H
#define HF_AUDIT_TABLE_H

#include "holdfast.h"

struct hf_audit_name {
    uint64_t high, low; /* low is never 0: 0 marks a free slot */
};

/* The kind of name: the same bytes are different names in different spaces. */
enum hf_audit_space {
    HF_AUDIT_KEYS = 1,
    HF_AUDIT_RESOURCES,
    HF_AUDIT_REQUESTERS,
    HF_AUDIT_GUARDS,
    HF_AUDIT_IDENTITIES,
    HF_AUDIT_CLAIMS,
    HF_AUDIT_LEASES,
    HF_AUDIT_REGISTERS,
    HF_AUDIT_CLIENTS,
    HF_AUDIT_OUTBOX_NUMBERS,
    HF_AUDIT_IDS
};

/* The hash of `first` and `second` (which may be empty) in a tenant. Pure. */
struct hf_audit_name hf_audit_name_of(enum hf_audit_space space, struct hf_bytes tenant,
                                      struct hf_bytes first, struct hf_bytes second);

struct hf_audit_table {
    size_t item_size;
    bool (*old)(const void *item, hf_time now); /* NULL: nothing is ever dropped */
    unsigned char *slots;                       /* owned */
    size_t room, count;
};

/* The item, or NULL. Valid until the next add. */
void *hf_audit_table_find(const struct hf_audit_table *t, struct hf_audit_name name);

/* A new item, zero except its name, which must not exist yet. Other items may move or, if they are
 * old at `now`, be dropped. NULL if out of memory. */
void *hf_audit_table_add(struct hf_audit_table *t, struct hf_audit_name name, hf_time now);

void hf_audit_table_free(struct hf_audit_table *t);

#endif
