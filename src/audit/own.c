#include "audit/own.h"

#include "base/bytes.h"

struct number {
    struct hf_audit_name name;
    uint64_t own;
};

void hf_audit_own_init(struct hf_audit_own *own)
{
    *own = (struct hf_audit_own){ 0 };
    own->holds.item_size = sizeof(struct number);
    own->outbox.item_size = sizeof(struct number);
}

void hf_audit_own_free(struct hf_audit_own *own)
{
    hf_audit_table_free(&own->holds);
    hf_audit_table_free(&own->outbox);
}

void hf_audit_own_entry(struct hf_audit_own *own, struct hf_audit_entry *entry)
{
    entry->position = ++own->entries;
}

/* The tenant's own number for a number of the store; the next free one if it is new. */
static uint64_t number_of(struct hf_audit_own *own, struct hf_audit_table *table, uint64_t *count,
                          uint64_t store)
{
    unsigned char bytes[8];
    if (store == 0)
        return 0;
    hf_put64(bytes, store);
    struct hf_audit_name name =
        hf_audit_name_of(HF_AUDIT_IDS, hf_mem("", 0), hf_mem(bytes, sizeof bytes), hf_mem("", 0));
    struct number *n = hf_audit_table_find(table, name);
    if (n)
        return n->own;
    n = hf_audit_table_add(table, name, 0);
    if (!n) {
        own->no_memory = true;
        return 0;
    }
    return n->own = ++*count;
}

void hf_audit_own_row(struct hf_audit_own *own, struct hf_audit_row *row)
{
    switch (row->kind) {
    case HF_ROW_HOLD: /* first the previous hold: it is older */
        row->hold.previous = number_of(own, &own->holds, &own->hold_count, row->hold.previous);
        row->hold.ordinal = number_of(own, &own->holds, &own->hold_count, row->hold.ordinal);
        break;
    case HF_ROW_RESOURCE:
        row->resource.newest = number_of(own, &own->holds, &own->hold_count, row->resource.newest);
        break;
    case HF_ROW_OUTBOX:
        row->outbox.number = number_of(own, &own->outbox, &own->outbox_count, row->outbox.number);
        break;
    default: break;
    }
}
