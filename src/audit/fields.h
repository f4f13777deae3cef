/* fields.h: a row of a database's tables as named values, from either source.
 *
 * The tables must agree with the journal. So each row is brought into this form from both sides:
 * from the database (read_postgres.c), and from the entry that should have made it (fields.c).
 * Values are compared as this text or these bytes. */
#ifndef HF_AUDIT_FIELDS_H
#define HF_AUDIT_FIELDS_H

#include "audit/record.h"

#include "base/arena.h"

/* The tables, and those parts of some tables that are checked separately from the rest of their
 * rows. */
enum hf_audit_stored {
    HF_AUDIT_STORED_TOKEN,
    HF_AUDIT_STORED_HOLD,
    HF_AUDIT_STORED_SUCCEEDED, /* holds that another followed: which one */
    HF_AUDIT_STORED_RESOURCE,
    HF_AUDIT_STORED_RESOURCE_MADE, /* which entry created it */
    /* a resource with a hold that ends before its due_at: there must be none */
    HF_AUDIT_STORED_RESOURCE_DUE,
    HF_AUDIT_STORED_GUARD,
    HF_AUDIT_STORED_GUARD_MADE,
    HF_AUDIT_STORED_IDENTITY,
    HF_AUDIT_STORED_LEASE,
    /* a row that a deleted lease cannot leave: there must be none */
    HF_AUDIT_STORED_LEASE_LEFT,
    HF_AUDIT_STORED_REGISTER,
    HF_AUDIT_STORED_CLIENT,
    HF_AUDIT_STORED_CALL,
    HF_AUDIT_STORED_VALUE,
    HF_AUDIT_STORED_OUTBOX,
    HF_AUDIT_STORED_CONFIG,  /* the one row about the store */
    HF_AUDIT_STORED_COUNTER, /* a sequence: its name and its value */
    HF_AUDIT_STORED_KEYLESS, /* a table without a primary key: there must be none */
    HF_AUDIT_STORED_BESIDE,  /* the columns of the journal next to the entry */
    HF_AUDIT_STORED_TABLES
};

enum hf_audit_field_type {
    HF_AUDIT_NULL,
    HF_AUDIT_TEXT, /* for people; valid UTF-8 */
    HF_AUDIT_BYTES,
    HF_AUDIT_NUMBER, /* decimal digits */
    HF_AUDIT_TIME_MS /* decimal digits, milliseconds since 1970; or "infinity" */
};

struct hf_audit_field {
    const char *name; /* of the column */
    enum hf_audit_field_type type;
    struct hf_bytes value;
};

#define HF_AUDIT_FIELDS_MAX 18

struct hf_audit_fields {
    enum hf_audit_stored table;
    size_t keys, count; /* the first `keys` fields identify the row in the table */
    struct hf_audit_field field[HF_AUDIT_FIELDS_MAX];
};

/* The name of the table, without its schema. Static. */
const char *hf_audit_stored_name(enum hf_audit_stored table);

/* hf_audit_fields_of: the row of a table that `row` of `entry` makes or changes, as it is
 * afterwards. Bytes are borrowed from the entry or the arena. False if no table has this row (then
 * out->count is 0), or if out of memory (then it is 1). A token's row may also come from the entry
 * itself: hf_audit_fields_remembered. */
bool hf_audit_fields_of(const struct hf_audit_entry *entry, const struct hf_audit_row *row,
                        struct hf_arena *arena, struct hf_audit_fields *out);

/* The row for the entry's key or client number. rows: of the entry. */
bool hf_audit_fields_remembered(const struct hf_audit_entry *entry, const struct hf_audit_row *rows,
                                struct hf_arena *arena, struct hf_audit_fields *out);

/* The columns that name the entry which created the resource or guard, if it is this entry. */
bool hf_audit_fields_made(const struct hf_audit_entry *entry, const struct hf_audit_row *row,
                          struct hf_arena *arena, struct hf_audit_fields *out);

/* What the columns next to the entry in the journal table must contain. rows: of the entry. */
bool hf_audit_fields_beside(const struct hf_audit_entry *entry, const struct hf_audit_row *rows,
                            struct hf_arena *arena, struct hf_audit_fields *out);

/* Two hashes: of the row's key and of its content. Pure. */
struct hf_audit_fields_hash {
    uint64_t key_high, key_low; /* low is never 0 */
    uint64_t content;
};
struct hf_audit_fields_hash hf_audit_fields_hash(const struct hf_audit_fields *fields);

/* The first field of `a` that differs from `b`, a row of the same table, keys included; or NULL. */
const struct hf_audit_field *hf_audit_fields_differ(const struct hf_audit_fields *a,
                                                    const struct hf_audit_fields *b);

/* The field of that name, or NULL. */
const struct hf_audit_field *hf_audit_fields_find(const struct hf_audit_fields *fields,
                                                  const char *name);

/* The value of a field as text for a message. */
#define HF_AUDIT_FIELD_SHOW 180
struct hf_audit_field_shown {
    char text[HF_AUDIT_FIELD_SHOW];
};
struct hf_audit_field_shown hf_audit_field_show(const struct hf_audit_field *field);

/* A key as text, as in the tables: a backslash is \\, a NUL or a byte that is not valid UTF-8 is
 * \xHH. Borrowed from `key` if nothing is escaped, else from the arena; {NULL, 1} if out of
 * memory. */
struct hf_bytes hf_audit_key_text(struct hf_bytes key, struct hf_arena *arena);

#endif
