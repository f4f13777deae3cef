/* scan.h: reads all tables of a store in a database, as of one moment, row by row.
 *
 * For the audit, which does not use the library: its own connection, one read-only transaction that
 * sees the database as of its start, and cursors. No locks. Memory use does not grow with the
 * number or size of rows. */
#ifndef HF_STORE_POSTGRES_SCAN_H
#define HF_STORE_POSTGRES_SCAN_H

#include "holdfast.h"

#define HF_PG_SCAN_SCHEMA 2      /* the newest version of the schema that a scan knows */
#define HF_PG_SCAN_ID_KEY 32     /* bytes of the store's key for ids */
#define HF_PG_SCAN_VALUES_MAX 18 /* columns of a row */

struct hf_pg_scan;

/* ---- Opening ---- */

/* conninfo: copied. where: the name of the database for messages; copied. timeline: 0, or the
 * timeline of the primary to read. scan: out, owned, hf_pg_scan_close. HF_OK; HF_INVALID_REQUEST
 * (no connection string); HF_STORE_ABSENT; HF_STORE_NEWER; HF_STORAGE_FAILURE (no connection, no
 * right, another timeline); HF_NO_MEMORY. No message shows a password. */
HF_MUST_USE enum hf_status hf_pg_scan_open(const char *conninfo, const char *where,
                                           uint32_t timeline, struct hf_pg_scan **scan,
                                           struct hf_error *why);
void hf_pg_scan_close(struct hf_pg_scan *scan);

/* Set `why` to the error of the last call, from libpq or the database, in one line of printable
 * text. Returns the status. */
enum hf_status hf_pg_scan_failed(const struct hf_pg_scan *scan, struct hf_error *why);

/* The store's own row. */
struct hf_pg_scan_store {
    uint8_t store_id[16];
    bool has_key; /* false: the role has no right to read it */
    uint8_t id_key[HF_PG_SCAN_ID_KEY];
    hf_time as_of;   /* the database's clock at the moment of the scan */
    uint64_t newest; /* the highest number in the journal */
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
/* Call `each` for every writer, in the order of their ids; its argument is borrowed. `each` returns
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

/* A table, or a part of one. */
enum hf_pg_scan_table {
    HF_PG_SCAN_CONFIG,
    HF_PG_SCAN_TOKEN,
    HF_PG_SCAN_HOLD,
    HF_PG_SCAN_SUCCEEDED, /* holds that another followed, and which one */
    HF_PG_SCAN_RESOURCE,
    HF_PG_SCAN_RESOURCE_MADE, /* the entry that made it */
    HF_PG_SCAN_RESOURCE_DUE,  /* with a hold that ends before due_at, or without a hold */
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
    HF_PG_SCAN_COUNTER, /* sequences: NULL where the role has no right */
    HF_PG_SCAN_KEYLESS, /* tables without a primary key */
    HF_PG_SCAN_TABLES
};

/* A row. Borrowed until the next call for the same kind of row. */
struct hf_pg_scan_row {
    enum hf_pg_scan_table table;
    size_t keys, count; /* the first `keys` values identify the row in its table */
    struct hf_pg_scan_value values[HF_PG_SCAN_VALUES_MAX];
};

/* A row of the journal. */
struct hf_pg_scan_entry {
    uint64_t number, batch;
    uint32_t writer;
    struct hf_bytes entry;
    hf_time at;                   /* from the column */
    struct hf_pg_scan_row beside; /* the other columns; `table` and `keys` are unused */
};

enum hf_pg_scan_step { HF_PG_SCAN_ROW, HF_PG_SCAN_END, HF_PG_SCAN_FAILED };

/* The next entry, in the order of the numbers. */
enum hf_pg_scan_step hf_pg_scan_entry(struct hf_pg_scan *scan, struct hf_pg_scan_entry *out);
/* The next call returns the same entry again. */
void hf_pg_scan_entry_again(struct hf_pg_scan *scan);
/* The entry with this number. entry: out, borrowed until the next call; empty unless there is
 * exactly one. False: the database failed. */
bool hf_pg_scan_entry_at(struct hf_pg_scan *scan, uint64_t number, struct hf_bytes *entry);
/* The next row of all tables, one table after the other. */
enum hf_pg_scan_step hf_pg_scan_row(struct hf_pg_scan *scan, struct hf_pg_scan_row *out);

/* ---- Standbys ---- */

/* Wait up to `wait_ms` until the synchronous standbys have everything that was visible in the
 * database before the call. conninfo: borrowed. True: they have it, or none is configured, or the
 * database is a standby itself. False: timeout, or the database did not answer. It commits an empty
 * message to the log, which needs no right. */
bool hf_pg_scan_replicated(const char *conninfo, int wait_ms);

#endif
