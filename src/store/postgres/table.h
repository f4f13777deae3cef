/* table.h: the tables of schema/ and the records for their rows.
 *
 * Each table is described once, column by column: name, type, and the place of its value in the
 * record. The statements that read, lock, insert and change rows, their array parameters and the
 * reading of results are all generated from that description. */
#ifndef HF_STORE_POSTGRES_TABLE_H
#define HF_STORE_POSTGRES_TABLE_H

#include "core/core.h"
#include "store/postgres/wire.h"

/* In the order of locking; then the tables whose rows are protected by the lock of another row. */
enum hf_pg_table {
    HF_PG_CLIENT,
    HF_PG_TOKEN,
    HF_PG_GUARD,
    HF_PG_ENTRY,
    HF_PG_LEASE,
    HF_PG_REGISTER,
    HF_PG_RESOURCE,
    HF_PG_CALL,   /* under its client */
    HF_PG_HOLD,   /* under its resource */
    HF_PG_VALUE,  /* under the tenant's lock for HF_APPLY */
    HF_PG_OUTBOX, /* this store only adds to it */
    HF_PG_TABLES
};

/* A key in use. For a call, `state` is 0. For a claim, `action` is HF_BEGIN, and the members from
 * `state` on are set. */
struct hf_pg_token {
    struct hf_bytes tenant, key;
    enum hf_action action;
    enum hf_status status;
    uint8_t digest[HF_DIGEST_SIZE];
    hf_time recorded_at, expires_at; /* expires_at: INT64_MAX for a claim that is not settled */
    uint64_t entry;                  /* number of the journal's entry with the answer */
    uint64_t hold;                   /* ordinal, or 0 */
    uint64_t previous;               /* place_hold: ordinal of the hold before that one, or 0 */
    enum hf_claim_state state;
    unsigned on_abandon; /* one more than enum hf_abandon; 0 for a call */
    uint64_t fence;
    int64_t lease_ms;
    hf_time lease_expires_at, settled_at;
    struct hf_bytes response;
    int64_t retention_ms;  /* 0: none was given */
    struct hf_bytes image; /* the entry itself, for a call; empty if hf_pg_sql_read left it out */
};

/* The stored answer of a numbered call. */
struct hf_pg_call {
    struct hf_bytes tenant, client;
    uint32_t slot; /* sequence % HF_SEQUENCE_WINDOW */
    uint64_t sequence;
    enum hf_action action;
    enum hf_status status;
    uint8_t digest[HF_DIGEST_SIZE];
    hf_time recorded_at;
    uint64_t entry;
    struct hf_bytes image;
};

struct hf_pg_record {
    union {
        struct hf_row row; /* for all other tables */
        struct hf_pg_token token;
        struct hf_pg_call call;
    };
    char succeeded_by[HF_ID_SIZE]; /* holds: the record that reversed it, or "" */
    uint64_t number;               /* resources, guards, entries: the entry that made it */
    hf_time due_at;                /* resources: no hold becomes overdue before then */
    bool unsound;       /* Holdfast cannot have written this row: only its key is valid */
    hf_time deleted_at; /* leases: when it was deleted; 0: it was not */
};

enum { HF_PG_COLUMNS_MAX = 18, HF_PG_KEYS_MAX = 3 };

/* Where a row was found, and the transaction that wrote it. While both are the same, the row is
 * unchanged. */
struct hf_pg_place {
    unsigned char at[6];      /* its ctid, as the wire has it */
    unsigned char version[4]; /* its xmin */
};
static inline uint32_t hf_pg_version(const unsigned char version[4])
{
    return (uint32_t)version[0] << 24 | (uint32_t)version[1] << 16 | (uint32_t)version[2] << 8 |
           version[3];
}

struct hf_pg_column;

struct hf_pg_spec {
    const char *name;
    const struct hf_pg_column *columns; /* the first `keys` of them are the primary key */
    int count, keys;
    enum hf_row_kind kind; /* of the rows; 0: not a row of the core */
    bool has_image;        /* a read also returns the journal's entry, as the last column */
    /* A call may remove a row. Only in these tables may a missing row be in doubt (set.h). Keys,
     * entries of guards and the rows left by deleted registers are removed too, but only when their
     * window has closed and the standbys have that (transaction.h, "What leaves"): then they no
     * longer change any answer. */
    bool is_erased;
    /* The row stays for a while, with deleted_at: transaction.h, "What leaves". */
    bool is_marked;
};

const struct hf_pg_spec *hf_pg_spec(enum hf_pg_table table);
/* Does a call delete rows from this table itself? */
static inline bool hf_pg_is_taken_out(enum hf_pg_table table)
{
    return hf_pg_spec(table)->is_erased && !hf_pg_spec(table)->is_marked;
}

/* ---- The text of statements. Appended to `b`. ---- */

enum hf_pg_reading {
    /* without the entry of a successful place_hold: its key's row and the same request contain the
     * same */
    HF_PG_AS_NEEDED,
    HF_PG_WHOLE, /* with every entry */
    /* If a read also returns the journal's entry, this reads the keys alone. A statement that
     * waited for a lock sees the row as it is then, but other tables as they were when it began; so
     * a second statement reads these rows. */
    HF_PG_LOCKED
};
/* Rows by key (arrays $1 ...), in the order of the arrays. */
void hf_pg_sql_read(struct hf_buffer *b, enum hf_pg_table table, enum hf_pg_reading how);
/* The columns of `table` as `t.a, t.b`. */
void hf_pg_sql_columns(struct hf_buffer *b, enum hf_pg_table table);
/* The same, followed by the row's place, from a `t` that was selected as HF_PG_ALL. */
void hf_pg_sql_row(struct hf_buffer *b, enum hf_pg_table table);
#define HF_PG_ALL "x.*, x.ctid AS place, x.xmin AS written_by"
/* Insert rows from arrays, one parameter for each column; delete rows by key. Update: arrays of the
 * keys and of the columns that are not fixed, then of the places and versions, and their count. The
 * update fails (40001) if any row has moved or changed. */
void hf_pg_sql_insert(struct hf_buffer *b, enum hf_pg_table table);
void hf_pg_sql_update(struct hf_buffer *b, enum hf_pg_table table);
void hf_pg_sql_delete(struct hf_buffer *b, enum hf_pg_table table);

/* ---- Values ---- */

/* The type of a column, for hf_pg_array_begin. */
enum hf_pg_oid hf_pg_column_type(enum hf_pg_table table, int column);
/* Append the record's value in that column as an item. */
void hf_pg_column_put(enum hf_pg_table table, int column, const struct hf_pg_record *record,
                      struct hf_buffer *b);
/* Does this column keep its value when a row changes? */
bool hf_pg_column_fixed(enum hf_pg_table table, int column);

/* Fill the record from a row of a result whose columns begin at `first`. Bytes are copied into the
 * arena. False: out of memory; or, with out->unsound, Holdfast cannot have written this row: it was
 * changed by hand. */
bool hf_pg_record_read(enum hf_pg_table table, const PGresult *result, int row, int first,
                       struct hf_arena *arena, struct hf_pg_record *out);
/* The claim in a row of holdfast.token that has a state. Bytes are borrowed from the row. */
void hf_pg_claim_of(const struct hf_pg_token *token, struct hf_claim *out);
/* unsound.c. Can Holdfast have written this row, judged by its columns? hf_pg_record_read calls
 * it. */
bool hf_pg_record_sound(enum hf_pg_table table, const struct hf_pg_record *record);
/* unsound.c. The same judged by related data: does a hold's id belong to its ordinal, and does the
 * entry of a key or a number belong to its call? id_key: HF_PG_ID_KEY bytes. */
bool hf_pg_record_fits(const uint8_t *id_key, enum hf_pg_table table,
                       const struct hf_pg_record *record);
/* The row's table and key for a log line, cut to `room`. */
void hf_pg_record_name(enum hf_pg_table table, const struct hf_pg_record *record, char *to,
                       size_t room);
/* Copy all bytes that the record points to into the arena. False if out of memory. */
bool hf_pg_record_keep(enum hf_pg_table table, struct hf_pg_record *record, struct hf_arena *arena);

#endif
