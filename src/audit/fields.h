/* fields.h: a row of a database's tables as named values, wherever it comes from.
 *
 * The tables beside the journal must say what the journal says. So each row is brought to this one
 * form from both sides: out of the database (read_postgres.c), and out of the entry that should
 * have made it (fields.c). Values are compared as the text or the bytes that stand here. */
#ifndef HF_AUDIT_FIELDS_H
#define HF_AUDIT_FIELDS_H

#include "audit/record.h"

#include "base/arena.h"

/* The tables, and the parts of some that come about in another way than the rest of their rows. */
enum hf_audit_stored {
    HF_AUDIT_STORED_TOKEN,
    HF_AUDIT_STORED_HOLD,
    HF_AUDIT_STORED_REVERSED, /* holds that were given back: by which record */
    HF_AUDIT_STORED_RESOURCE,
    HF_AUDIT_STORED_RESOURCE_MADE, /* which entry made it */
    /* one that has a hold which ends before its due_at: there must be none */
    HF_AUDIT_STORED_RESOURCE_DUE,
    HF_AUDIT_STORED_GUARD,
    HF_AUDIT_STORED_GUARD_MADE,
    HF_AUDIT_STORED_IDENTITY,
    HF_AUDIT_STORED_LEASE,
    /* what a deleted one has left, and cannot have: there must be none */
    HF_AUDIT_STORED_LEASE_LEFT,
    HF_AUDIT_STORED_REGISTER,
    HF_AUDIT_STORED_CLIENT,
    HF_AUDIT_STORED_CALL,
    HF_AUDIT_STORED_VALUE,
    HF_AUDIT_STORED_OUTBOX,
    HF_AUDIT_STORED_CONFIG,  /* the one row about the store */
    HF_AUDIT_STORED_COUNTER, /* a sequence: its name and how far it is */
    HF_AUDIT_STORED_KEYLESS, /* a table without a primary key: there must be none */
    HF_AUDIT_STORED_BESIDE,  /* the columns of the journal beside the entry */
    HF_AUDIT_STORED_TABLES
};

enum hf_audit_field_type {
    HF_AUDIT_NULL,
    HF_AUDIT_TEXT, /* for people; valid UTF-8 */
    HF_AUDIT_BYTES,
    HF_AUDIT_NUMBER, /* decimal digits */
    HF_AUDIT_TIME_MS /* the same, milliseconds since 1970; "infinity" */
};

struct hf_audit_field {
    const char *name; /* of the column */
    enum hf_audit_field_type type;
    struct hf_bytes value;
};

#define HF_AUDIT_FIELDS_MAX 17

struct hf_audit_fields {
    enum hf_audit_stored table;
    size_t keys, count; /* the first `keys` fields tell the row from all others of the table */
    struct hf_audit_field field[HF_AUDIT_FIELDS_MAX];
};

/* The name of the table, without its schema. Static. */
const char *hf_audit_stored_name(enum hf_audit_stored table);

/* hf_audit_fields_of: the row of a table that `row` of `entry` makes or changes, as it is after
 * that. Bytes are borrowed from the entry or the arena. False if this row stands in no table (then
 * out->count is 0), or without memory (then it is 1). A token's row may also come from the entry
 * itself, as hf_audit_fields_token says. */
bool hf_audit_fields_of(const struct hf_audit_entry *entry, const struct hf_audit_row *row,
                        struct hf_arena *arena, struct hf_audit_fields *out);

/* The row for the key or the client's number that the entry was remembered under. rows: of the
 * entry. */
bool hf_audit_fields_remembered(const struct hf_audit_entry *entry, const struct hf_audit_row *rows,
                                struct hf_arena *arena, struct hf_audit_fields *out);

/* Which entry made the resource or guard, given that this one did. */
bool hf_audit_fields_made(const struct hf_audit_entry *entry, const struct hf_audit_row *row,
                          struct hf_arena *arena, struct hf_audit_fields *out);

/* What must stand beside the entry in the table of the journal. rows: of the entry. */
bool hf_audit_fields_beside(const struct hf_audit_entry *entry, const struct hf_audit_row *rows,
                            struct hf_arena *arena, struct hf_audit_fields *out);

/* Which row of the table it is, and what it says: two hashes. Pure. */
struct hf_audit_fields_hash {
    uint64_t key_high, key_low; /* low is never 0 */
    uint64_t content;
};
struct hf_audit_fields_hash hf_audit_fields_hash(const struct hf_audit_fields *fields);

/* The first field in which two rows of one table differ, keys included; NULL if in none. Of `a`. */
const struct hf_audit_field *hf_audit_fields_differ(const struct hf_audit_fields *a,
                                                    const struct hf_audit_fields *b);

/* The field of that name, or NULL. */
const struct hf_audit_field *hf_audit_fields_find(const struct hf_audit_fields *fields,
                                                  const char *name);

/* The value of a field for a sentence. */
#define HF_AUDIT_FIELD_SHOW 180
struct hf_audit_field_shown {
    char text[HF_AUDIT_FIELD_SHOW];
};
struct hf_audit_field_shown hf_audit_field_show(const struct hf_audit_field *field);

/* Bytes as the text that a key stands as in the tables: a backslash is \\, a NUL or a byte of no
 * valid character \xHH. Borrowed from `key` if it needs none of that, else from the arena; {NULL,
 * 1} without memory. */
struct hf_bytes hf_audit_key_text(struct hf_bytes key, struct hf_arena *arena);

#endif
