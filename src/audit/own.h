/* own.h: a tenant's own numbers.
 *
 * Positions, hold numbers and outbox numbers count over the whole store, so they show a tenant how
 * much the others have written. An export for one tenant has its own numbers instead: 1, 2, 3 in
 * the order of its records. They order and join records like the store's numbers. */
#ifndef HF_AUDIT_OWN_H
#define HF_AUDIT_OWN_H

#include "audit/record.h"
#include "audit/table.h"

struct hf_audit_own {
    struct hf_audit_table holds, outbox; /* the store's number, and the tenant's own */
    uint64_t entries, hold_count, outbox_count;
    bool no_memory;
};

void hf_audit_own_init(struct hf_audit_own *own);
void hf_audit_own_free(struct hf_audit_own *own);

/* Give the next entry of the export its position. */
void hf_audit_own_entry(struct hf_audit_own *own, struct hf_audit_entry *entry);
/* Give the row the tenant's own numbers. own->no_memory if that failed; then the row must not be
 * shown. */
void hf_audit_own_row(struct hf_audit_own *own, struct hf_audit_row *row);

#endif
