/* functions.h: the SQL functions of src/store/postgres/schema in a database of a test, and calls to
 * them.
 *
 *     functions_make(&p, &(struct hf_options){ .idempotency_window_ms = 50 });
 *     PGconn *c = postgres_connect(&p);
 *     PGresult *got = CALL(c, "place_hold", "key", "room", "guest", "15 minutes");
 *     assert_string_equal(functions_text(got, "status"), "ok");
 *     PQclear(got);
 *
 * Whatever the database refuses fails the test, unless it was expected to. */
#ifndef HF_TESTS_POSTGRES_KIT_FUNCTIONS_H
#define HF_TESTS_POSTGRES_KIT_FUNCTIONS_H

#include "holdfast.h"
#include "postgres/kit/postgres.h"

enum { FUNCTIONS_ARGUMENTS_MAX = 10 };

/* What is in schema holdfast goes, and the migrations make it again, in one transaction, with an
 * empty store: window, length of keys and registry as in `options` (0: as in a new store). */
void functions_make(const struct postgres *p, const struct hf_options *options);

/* A file of the source, such as "examples/payment.sql". Owned, NUL-ended. */
char *functions_file(const char *path);

/* What a shell's command says on stdout and stderr, up to the end of the first line, run in the
 * folder of the source with the variables of libpq that lead to the database. It must succeed.
 * Owned. */
char *functions_shell(const struct postgres *p, const char *command);

/* The one row that holdfast.`name` answers with, given its arguments as text; NULL is SQL's NULL.
 * Owned, free with PQclear. */
PGresult *functions_call(PGconn *c, const char *name, const char *const *arguments, size_t count);
#define CALL(c, name, ...)                                        \
    functions_call(c, name, (const char *const[]){ __VA_ARGS__ }, \
                   sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

/* The column's text; "" if it is NULL. Borrowed from the result. */
const char *functions_text(const PGresult *result, const char *column);

/* The same call; its answer must have this status, and be a replay or not. */
void functions_expect(PGconn *c, const char *status, bool replayed, const char *name,
                      const char *const *arguments, size_t count);
#define EXPECT(c, status, replayed, name, ...)                                        \
    functions_expect(c, status, replayed, name, (const char *const[]){ __VA_ARGS__ }, \
                     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

/* That column of an answer must have this text. Frees the answer. */
void functions_is(PGresult *got, const char *column, const char *wanted);
#define IS(c, wanted, column, ...) functions_is(CALL(c, __VA_ARGS__), column, wanted)

/* That column's text. Frees the answer. Owned. */
char *functions_column(PGresult *got, const char *column);
#define COLUMN(c, column, ...) functions_column(CALL(c, __VA_ARGS__), column)

/* Run one statement that has no rows or whose rows do not matter. */
void functions_run(PGconn *c, const char *sql);
/* It must fail with this SQLSTATE. */
void functions_fails(PGconn *c, const char *sqlstate, const char *sql);

/* Every entry in the journal: hf_entry_decode takes it, hf_entry_answer and the columns beside it
 * agree with it, each row in it is well-formed, and hf_entry_encode makes the same bytes from what
 * was read. How many there are. */
size_t functions_check_journal(PGconn *c);

#endif
