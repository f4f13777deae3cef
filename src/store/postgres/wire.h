/* wire.h: values to and from PostgreSQL's binary form.
 *
 * Our statements work on whole batches, so each parameter is an array with one item for each row.
 * Times are milliseconds here, and microseconds since 2000 in PostgreSQL. Keys are bytes here and
 * text there: a backslash becomes \\, and invalid UTF-8 (or a NUL) becomes \xHH, so that people can
 * read every key and SQL can find it. */
#ifndef HF_STORE_POSTGRES_WIRE_H
#define HF_STORE_POSTGRES_WIRE_H

#include "base/arena.h"
#include "base/buffer.h"

#include <libpq-fe.h>

/* From PostgreSQL's catalogue; they never change. */
enum hf_pg_oid {
    HF_PG_BOOL = 16,
    HF_PG_BYTEA = 17,
    HF_PG_INT8 = 20,
    HF_PG_INT4 = 23,
    HF_PG_TEXT = 25,
    HF_PG_TID = 27,
    HF_PG_XID = 28,
    HF_PG_TIMESTAMPTZ = 1184,
    HF_PG_NUMERIC = 1700
};

/* ---- Writing an array: begin, an item for each row, end ---- */

void hf_pg_array_begin(struct hf_buffer *b, enum hf_pg_oid type);
void hf_pg_array_end(struct hf_buffer *b, uint32_t count);
/* The same, but an empty array if all items are NULL: unnest beside longer arrays fills up with
 * NULL. */
void hf_pg_array_end_short(struct hf_buffer *b, uint32_t count);

void hf_pg_put_null(struct hf_buffer *b);
void hf_pg_put_bytes(struct hf_buffer *b, struct hf_bytes bytes); /* bytea, or valid text */
void hf_pg_put_key(struct hf_buffer *b, struct hf_bytes key);     /* text, escaped */
void hf_pg_put_int8(struct hf_buffer *b, int64_t value);
void hf_pg_put_int4(struct hf_buffer *b, int32_t value);
void hf_pg_put_bool(struct hf_buffer *b, bool value);
void hf_pg_put_numeric(struct hf_buffer *b, uint64_t value);
void hf_pg_put_time(struct hf_buffer *b, hf_time value); /* INT64_MAX is infinity */
/* PostgreSQL's number for a time; infinity or -infinity if out of its range. */
int64_t hf_pg_time(hf_time value);

/* ---- Reading a column of a result. Bytes are borrowed from the result. ---- */

struct hf_bytes hf_pg_get_bytes(const PGresult *result, int row, int column);
int64_t hf_pg_get_int8(const PGresult *result, int row, int column);
/* Item `index` of an int8 array; false if there is none. value: out. */
bool hf_pg_get_item8(const PGresult *result, int row, int column, int index, int64_t *value);
int32_t hf_pg_get_int4(const PGresult *result, int row, int column);
bool hf_pg_get_bool(const PGresult *result, int row, int column);
/* False: not a whole number from 0 to 2^64 - 1. */
bool hf_pg_get_numeric(const PGresult *result, int row, int column, uint64_t *value);
hf_time hf_pg_get_time(const PGresult *result, int row, int column);
/* From a pg_snapshot: the lowest transaction in progress, and the first one that is not visible.
 * False: it is NULL. */
bool hf_pg_get_snapshot(const PGresult *result, int row, int column, uint64_t *oldest,
                        uint64_t *next);
/* The key without its escapes. Borrowed from the result or the arena; {NULL, 0} if out of
 * memory. */
struct hf_bytes hf_pg_get_key(const PGresult *result, int row, int column, struct hf_arena *arena);

#endif
