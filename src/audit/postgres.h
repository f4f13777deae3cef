/* postgres.h: what the two files of the reader of a database share; nobody else includes it.
 *
 *   read_postgres.c   the connection, the journal, the writers and their chains
 *   read_tables.c     the tables beside the journal, and values out of results */
#ifndef HF_AUDIT_POSTGRES_H
#define HF_AUDIT_POSTGRES_H

#include "audit/read.h"

#include <libpq-fe.h>

#define HF_AUDIT_SCHEMA 2 /* the newest version of the schema that this reader knows */

/* A cursor, read in pages of about PAGE_BYTES, so that neither many rows nor large ones fill the memory. */
struct hf_audit_cursor {
    const char *name; /* static; NULL: none is open */
    PGresult *page;   /* owned */
    int row, rows;    /* the next row of the page, and how many it has */
    int fetch;        /* how many to ask for next */
};

/* A writer while its batches are read. */
struct hf_audit_writing {
    struct hf_audit_writer told;
    bool open; /* a batch has begun whose end is not known yet */
    struct hf_sha256 sha;
    uint64_t sequence, first;
    uint32_t length, count;
    hf_time now, previous_now;
    bool number_fits;
};

enum hf_audit_phase {
    HF_AUDIT_PHASE_ENTRIES,
    HF_AUDIT_PHASE_BATCHES,
    HF_AUDIT_PHASE_WRITERS,
    HF_AUDIT_PHASE_TABLES
};

struct hf_audit_postgres {
    struct hf_audit_reader reader;
    PGconn *pg;     /* owned */
    char *conninfo; /* owned: what is in it must not be told */
    enum hf_audit_phase phase;
    struct hf_audit_cursor journal, table;
    struct hf_audit_writing *writers; /* owned, in the order of their ids */
    size_t writer_count, at;          /* at: the writer, or the table, that comes next */
    uint64_t sequence;                /* batches that have begun */
    PGresult *side;                   /* owned: for hf_audit_reader_entry */
    struct hf_audit_fields beside;
    char digits[HF_AUDIT_FIELDS_MAX][24]; /* numbers of a row as text */
    bool broken;                          /* an entry could not be read again: the next step fails */
};

/* Say why the database cannot be read: what libpq or the server said, without passwords. Returns the status. */
enum hf_status hf_audit_postgres_fail(const struct hf_audit_postgres *r, struct hf_error *why);

/* Begin to read the rows of a SELECT. False: hf_audit_postgres_fail tells why. */
bool hf_audit_cursor_open(struct hf_audit_postgres *r, struct hf_audit_cursor *c, const char *name,
                          const char *select);
/* The next row is c->page's c->row - 1. 1: there is one; 0: no more; -1: hf_audit_postgres_fail tells why. */
int hf_audit_cursor_next(struct hf_audit_postgres *r, struct hf_audit_cursor *c);
void hf_audit_cursor_close(struct hf_audit_postgres *r, struct hf_audit_cursor *c);

/* The values of a row in binary form, from column `first` on, into the fields out->count .. of `out`, with the digits of
 * numbers in `digits`. False if there is a type that Holdfast's tables do not have. */
bool hf_audit_row_fields(const PGresult *result, int row, int first, char digits[][24],
                         struct hf_audit_fields *out);

/* Single values in binary form; 0 if they are null or of another size. */
int64_t hf_audit_get_number(const PGresult *result, int row, int column);
hf_time hf_audit_get_time(const PGresult *result, int row, int column);
struct hf_bytes hf_audit_get_bytes(const PGresult *result, int row, int column);

/* The next row of the tables beside the journal, as hf_audit_reader_stored says. */
bool hf_audit_postgres_stored(struct hf_audit_reader *reader, struct hf_audit_fields *row,
                              struct hf_error *why);

#endif
