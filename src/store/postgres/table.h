/* table.h: the tables of schema/ and the records that stand for their rows.
 *
 * Each table is described once, column by column: name, type, and where its value is in the record.
 * The statements that read, lock, insert and change rows, the arrays that they take and the rows
 * that come back are all made from that. */
#ifndef HF_STORE_POSTGRES_TABLE_H
#define HF_STORE_POSTGRES_TABLE_H

#include "core/core.h"
#include "store/postgres/wire.h"

/* In the order in which rows are locked, and behind them those that another row's lock protects. */
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
    HF_PG_OUTBOX, /* only ever added to by this store */
    HF_PG_TABLES
};

/* A key in use. A call: `state` is 0. A claim: `action` is HF_BEGIN, and its members below are
 * set. */
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
    struct hf_bytes
        image; /* the entry itself, for a call; none if hf_pg_sql_read has left it out */
};

/* What a numbered call was answered with. */
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
        struct hf_row row; /* all tables but these two */
        struct hf_pg_token token;
        struct hf_pg_call call;
    };
    char reversed_by[HF_ID_SIZE]; /* holds: the record that gave it back, or "" */
    uint64_t number;              /* resources, guards, entries: the journal's entry that made it */
    hf_time due_at;               /* resources: no hold on it becomes overdue before then */
    bool
        unsound; /* it was read, and Holdfast cannot have written it: no more than its key counts */
    hf_time deleted_at; /* leases: it is not there any more since then; 0: it is */
};

enum { HF_PG_COLUMNS_MAX = 17, HF_PG_KEYS_MAX = 3 };

/* Where a row was found, and the transaction that wrote it so: as long as both are the same, nobody
 * has changed it. */
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
    bool has_image;        /* reading brings the journal's entry along, as the last column */
    /* A call may take a row out. Only rows of these tables are in doubt when they are not there
     * (set.h). Keys and entries of guards leave too, and what deleted registers have left, but only
     * when their window has closed, and the standbys have that (transaction.h, "What leaves"): they
     * answer nothing any more, whether they are there or not. */
    bool is_erased;
    /* And the row stays for a while, with deleted_at: transaction.h, "What leaves". */
    bool is_marked;
};

const struct hf_pg_spec *hf_pg_spec(enum hf_pg_table table);
/* Does a call take its rows out of the table itself? */
static inline bool hf_pg_is_taken_out(enum hf_pg_table table)
{
    return hf_pg_spec(table)->is_erased && !hf_pg_spec(table)->is_marked;
}

/* ---- The text of statements. Appended to `b`. ---- */

enum hf_pg_reading {
    /* without the entry of a place_hold that went well: its key's row and the same request say the
     * same */
    HF_PG_AS_NEEDED,
    HF_PG_WHOLE, /* with every entry */
    /* Where reading brings the journal's entry along, the keys alone: a statement that waited for a
     * lock sees the row as it is then, but other tables as they were when it began; so these rows
     * are read by a second statement. */
    HF_PG_LOCKED
};
/* Rows by key (arrays $1 ...), in the order of the arrays. */
void hf_pg_sql_read(struct hf_buffer *b, enum hf_pg_table table, enum hf_pg_reading how);
/* The columns of `table` as `t.a, t.b`. */
void hf_pg_sql_columns(struct hf_buffer *b, enum hf_pg_table table);
/* The same with the row's place behind them, from a `t` that was selected as HF_PG_ALL. */
void hf_pg_sql_row(struct hf_buffer *b, enum hf_pg_table table);
#define HF_PG_ALL "x.*, x.ctid AS place, x.xmin AS written_by"
/* Insert rows from arrays, a parameter for each column; take them out by key. Change them: arrays
 * of the keys and of what is not fixed, then of the places and versions, and how many they are.
 * Fails (40001) if any of them is not where it was, as it was. */
void hf_pg_sql_insert(struct hf_buffer *b, enum hf_pg_table table);
void hf_pg_sql_update(struct hf_buffer *b, enum hf_pg_table table);
void hf_pg_sql_delete(struct hf_buffer *b, enum hf_pg_table table);

/* ---- Values ---- */

/* The type of a column, for hf_pg_array_begin. */
enum hf_pg_oid hf_pg_column_type(enum hf_pg_table table, int column);
/* Append the record's value in that column as an item. */
void hf_pg_column_put(enum hf_pg_table table, int column, const struct hf_pg_record *record,
                      struct hf_buffer *b);
/* Is this column left alone when a row changes? */
bool hf_pg_column_fixed(enum hf_pg_table table, int column);

/* Fill the record from a row of a result whose columns begin at `first`. Bytes are copied into the
 * arena. False: without memory, or with out->unsound: the row is not one that Holdfast can have
 * written, it was changed by hand. */
bool hf_pg_record_read(enum hf_pg_table table, const PGresult *result, int row, int first,
                       struct hf_arena *arena, struct hf_pg_record *out);
/* The claim that a row of holdfast.token with a state stands for. Bytes are borrowed from it. */
void hf_pg_claim_of(const struct hf_pg_token *token, struct hf_claim *out);
/* unsound.c. Can Holdfast have written such a row, by what its columns say? hf_pg_record_read has
 * looked. */
bool hf_pg_record_sound(enum hf_pg_table table, const struct hf_pg_record *record);
/* unsound.c. And by what belongs to it: is a hold's id that of its ordinal, and the entry that came
 * with a key or a number that of its call? id_key: of HF_PG_ID_KEY bytes. */
bool hf_pg_record_fits(const uint8_t *id_key, enum hf_pg_table table,
                       const struct hf_pg_record *record);
/* Which row it is, for a line of the log: its table and its key, cut short. */
void hf_pg_record_name(enum hf_pg_table table, const struct hf_pg_record *record, char *to,
                       size_t room);
/* Copy all bytes that the record points to into the arena. False without memory. */
bool hf_pg_record_keep(enum hf_pg_table table, struct hf_pg_record *record, struct hf_arena *arena);

#endif
