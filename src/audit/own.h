/* own.h: the numbers of one tenant's own.
 *
 * Positions, hold numbers and outbox numbers run through the whole store, so that they tell one
 * tenant how much the others have written. An export for one tenant has numbers of its own instead:
 * 1, 2, 3 in the order in which its records came. They order and join records as the store's do. */
#ifndef HF_AUDIT_OWN_H
#define HF_AUDIT_OWN_H

#include "audit/record.h"
#include "audit/table.h"

struct hf_audit_own {
    struct hf_audit_table holds, outbox; /* the store's number, and ours */
    uint64_t entries, hold_count, outbox_count;
    bool no_memory;
};

void hf_audit_own_init(struct hf_audit_own *own);
void hf_audit_own_free(struct hf_audit_own *own);

/* The next entry of the export: gets its position. */
void hf_audit_own_entry(struct hf_audit_own *own, struct hf_audit_entry *entry);
/* Give the row the tenant's own numbers. own->no_memory if that failed; the row is then not to be
 * shown. */
void hf_audit_own_row(struct hf_audit_own *own, struct hf_audit_row *row);

#endif
