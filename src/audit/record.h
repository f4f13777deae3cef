/* record.h: decode entries and rows, by doc/FORMAT.md.
 *
 * Written only from that page and shared with no other code, so that it does not repeat errors of
 * the store's decoder. No byte is trusted: every length is checked against the rest of the input
 * before it is used. Pure; nothing is allocated; all slices are borrowed from the input. */
#ifndef HF_AUDIT_RECORD_H
#define HF_AUDIT_RECORD_H

#include "core/core.h"
#include "holdfast.h"

#define HF_AUDIT_ANSWER_STATUS 255 /* the answer is the status alone */
#define HF_AUDIT_ANSWER_RECORD 254 /* a record follows */
#define HF_AUDIT_ROWS_MAX 255
#define HF_AUDIT_ROW_LEAVES 1 /* flag of a row */

/* One entry: the request and its answer. */
struct hf_audit_entry {
    uint64_t position; /* of the entry's first byte, in the journal; 0 if it was read by itself */
    uint32_t size;
    enum hf_action action;
    enum hf_status status;
    enum hf_remember remember;
    uint8_t row_count;
    uint8_t answer; /* HF_AUDIT_ANSWER_*, or the index of a row */
    struct hf_bytes tenant;
    struct hf_bytes key; /* or the client's name, by `remember` */
    hf_time recorded_at;
    hf_time expires_at;         /* if remember */
    const uint8_t *digest;      /* HF_DIGEST_SIZE bytes if remember, else NULL */
    uint64_t sequence;          /* if remember is HF_REMEMBER_SEQUENCE */
    enum hf_record answer_kind; /* if answer is HF_AUDIT_ANSWER_RECORD */
    struct hf_bytes answer_image;
    struct hf_bytes rows;
};

struct hf_audit_client {
    struct hf_bytes name;
    uint64_t highest;
    const uint8_t *used; /* HF_SEQUENCE_WINDOW / 8 bytes */
};

struct hf_audit_pair {
    struct hf_bytes key, value;
};

struct hf_audit_successor {
    char original[HF_ID_SIZE], successor[HF_ID_SIZE];
};

struct hf_audit_config {
    int64_t idempotency_window_ms;
    uint32_t token_max_length;
    bool strict;
    struct hf_bytes digest_name, program;
};

/* One row. A register's value stays in its stored form: reg.value.type, and the form in
 * reg.value.bytes. */
struct hf_audit_row {
    enum hf_row_kind kind;
    uint8_t flags;
    union {
        struct hf_hold hold;
        struct hf_resource resource;
        struct hf_guard guard;
        struct hf_entry identity;
        struct hf_claim claim;
        struct hf_lease lease;
        struct hf_register reg;
        struct hf_audit_client client;
        struct hf_audit_pair pair;
        struct hf_outbox outbox;
        struct hf_audit_successor successor;
        struct hf_audit_config config;
    };
};

/* hf_audit_entry_read: the entry at the front of `in`, its CRC included. in: borrowed. out: out.
 * NULL if it is well-formed, else what is wrong with it (static); then out->size is the entry's
 * size if it is reliable (the CRC is right), else 0. */
const char *hf_audit_entry_read(struct hf_bytes in, struct hf_audit_entry *out);

/* hf_audit_rows_read: all rows of the entry. rows: out, HF_AUDIT_ROWS_MAX of them; entry->row_count
 * are filled. NULL, or what is wrong (static). */
const char *hf_audit_rows_read(const struct hf_audit_entry *entry, struct hf_audit_row *rows);

/* hf_audit_answer_read: the record in the entry's answer, either one of its rows or stored
 * separately (a value is then a row of kind HF_ROW_VALUE without a key). rows: as filled above.
 * False if the answer is only a status, or not well-formed. */
bool hf_audit_answer_read(const struct hf_audit_entry *entry, const struct hf_audit_row *rows,
                          struct hf_audit_row *out);

/* Is it only a configuration? Such an entry belongs to no tenant, and every tenant may see it. */
bool hf_audit_is_config(const struct hf_audit_entry *entry, const struct hf_audit_row *rows);

/* Decode a register's stored form: fills the members of `out` for its type, and up to `room` items.
 * False if the form is not well-formed. out->item_count may be larger than `room`. */
bool hf_audit_value_read(const struct hf_value *stored, struct hf_item *items, size_t room,
                         struct hf_value *out);

#endif
