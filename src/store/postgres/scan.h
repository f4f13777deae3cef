/* scan.h: the tables of a store in a database, as they were at one moment, row by row.
 *
 * For the audit, which reads without the library: a connection of its own, one read-only
 * transaction that sees the database as it was when it began, and cursors. Nothing is locked.
 * Neither many rows nor large ones fill the memory. */
#ifndef HF_STORE_POSTGRES_SCAN_H
#define HF_STORE_POSTGRES_SCAN_H

#include "holdfast.h"

#define HF_PG_SCAN_SCHEMA 2      /* the newest version of the schema that a scan knows */
#define HF_PG_SCAN_ID_KEY 32     /* bytes of the store's key for ids */
#define HF_PG_SCAN_VALUES_MAX 17 /* columns of a row */

struct hf_pg_scan;

/* ---- Opening ---- */

/* conninfo: copied. where: which database that is, for messages; copied. timeline: 0, or that of
 * the primary that is to be read. scan: out, owned, hf_pg_scan_close. HF_OK; HF_INVALID_REQUEST (no
 * connection string); HF_STORE_ABSENT; HF_STORE_NEWER; HF_STORAGE_FAILURE (no connection, no right,
 * another timeline); HF_NO_MEMORY. No sentence shows a password. */
HF_MUST_USE enum hf_status hf_pg_scan_open(const char *conninfo, const char *where,
                                           uint32_t timeline, struct hf_pg_scan **scan,
                                           struct hf_error *why);
void hf_pg_scan_close(struct hf_pg_scan *scan);

/* Say why the last call failed: what libpq or the database said, in one line that a terminal can
 * show. Returns the status. */
enum hf_status hf_pg_scan_failed(const struct hf_pg_scan *scan, struct hf_error *why);

/* The store's own row. */
struct hf_pg_scan_store {
    uint8_t store_id[16];
    bool has_key; /* false: the role may not read it */
    uint8_t id_key[HF_PG_SCAN_ID_KEY];
    hf_time as_of;   /* the database's clock at the moment that is read */
    uint64_t newest; /* number in the journal */
};
/* HF_STORE_DAMAGED: there is no such row. */
HF_MUST_USE enum hf_status hf_pg_scan_store(struct hf_pg_scan *scan, struct hf_pg_scan_store *out,
                                            struct hf_error *why);

struct hf_pg_scan_writer {
    uint32_t id;
    uint64_t batch;
    const char *name;
    struct hf_bytes chain;
};
/* Call `each` for every writer, in the order of their ids; what it gets is borrowed. It answers
 * false to stop. False: the database failed (hf_pg_scan_failed). */
bool hf_pg_scan_writers(struct hf_pg_scan *scan,
                        bool (*each)(void *arg, const struct hf_pg_scan_writer *writer), void *arg);

/* ---- Rows ---- */

enum hf_pg_scan_type {
    HF_PG_SCAN_NULL,
    HF_PG_SCAN_TEXT,
    HF_PG_SCAN_BYTES,
    HF_PG_SCAN_NUMBER, /* decimal digits */
    HF_PG_SCAN_TIME    /* the same, milliseconds since 1970; "infinity" */
};

struct hf_pg_scan_value {
    const char *name; /* of the column */
    enum hf_pg_scan_type type;
    struct hf_bytes value;
};

/* What is read: a table, or a part of one. */
enum hf_pg_scan_table {
    HF_PG_SCAN_CONFIG,
    HF_PG_SCAN_TOKEN,
    HF_PG_SCAN_HOLD,
    HF_PG_SCAN_REVERSED, /* holds that were given back: by which record */
    HF_PG_SCAN_RESOURCE,
    HF_PG_SCAN_RESOURCE_MADE, /* which entry made it */
    HF_PG_SCAN_RESOURCE_DUE,  /* those with a hold that ends before their due_at, or without one */
    HF_PG_SCAN_GUARD,
    HF_PG_SCAN_GUARD_MADE,
    HF_PG_SCAN_IDENTITY,
    HF_PG_SCAN_LEASE,
    HF_PG_SCAN_LEASE_LEFT, /* rows of deleted leases that cannot be right */
    HF_PG_SCAN_REGISTER,
    HF_PG_SCAN_CLIENT,
    HF_PG_SCAN_CALL,
    HF_PG_SCAN_VALUE,
    HF_PG_SCAN_OUTBOX,
    HF_PG_SCAN_COUNTER, /* sequences: NULL where the role may not look */
    HF_PG_SCAN_KEYLESS, /* tables without a primary key */
    HF_PG_SCAN_TABLES
};

/* A row. All of it is borrowed until the next call for the same kind of row. */
struct hf_pg_scan_row {
    enum hf_pg_scan_table table;
    size_t keys, count; /* the first `keys` values tell the row from all others of the table */
    struct hf_pg_scan_value values[HF_PG_SCAN_VALUES_MAX];
};

/* A row of the journal. */
struct hf_pg_scan_entry {
    uint64_t number, batch;
    uint32_t writer;
    struct hf_bytes entry;
    hf_time at; /* as the column says */
    struct hf_pg_scan_row
        beside; /* the columns beside the entry; `table` and `keys` mean nothing */
};

enum hf_pg_scan_step { HF_PG_SCAN_ROW, HF_PG_SCAN_END, HF_PG_SCAN_FAILED };

/* The next entry, in the order of their numbers. */
enum hf_pg_scan_step hf_pg_scan_entry(struct hf_pg_scan *scan, struct hf_pg_scan_entry *out);
/* The next call gives the same entry once more. */
void hf_pg_scan_entry_again(struct hf_pg_scan *scan);
/* The entry with this number. entry: out, borrowed until the next call; empty if there is not
 * exactly one. False: the database failed. */
bool hf_pg_scan_entry_at(struct hf_pg_scan *scan, uint64_t number, struct hf_bytes *entry);
/* The next row of all tables, one table after the other. */
enum hf_pg_scan_step hf_pg_scan_row(struct hf_pg_scan *scan, struct hf_pg_scan_row *out);

/* ---- Standbys ---- */

/* Wait up to `wait_ms` until the synchronous standbys have all that could be seen in the database
 * before the call. conninfo: borrowed. True: they have, or none is named, or the database is a
 * standby itself. False: not in time, or the database could not be asked. A commit that writes
 * nothing but an empty message to the log tells; it needs no right. */
bool hf_pg_scan_replicated(const char *conninfo, int wait_ms);

#endif
