/* both.h: which store the tests of a program run on.
 *
 * The same program is run twice: as it is, with the journal in files, and with HF_STORE=postgres in
 * the environment, with the store in a database (tests/postgres/same.cmake). Then one cluster
 * serves the whole program, and each test begins with an empty database. */
#ifndef HF_TESTS_ENGINE_KIT_BOTH_H
#define HF_TESTS_ENGINE_KIT_BOTH_H

#include "postgres/kit/postgres.h"

bool both_is_postgres(void);

/* The cluster of this program, started when it is first asked for. Only on PostgreSQL. */
struct postgres *both_cluster(void);

/* Throw away all that the store in the database has. No one may have it open. Nothing if the store
 * is in files. */
void both_empty(void);
/* The same, and the database has no store any more. */
void both_absent(void);

/* From now on the store cannot commit: the journal's table is locked. Only on PostgreSQL. Returns
 * when that has begun. A request that waits for longer than six seconds is refused. */
void both_stop_commits(void);
/* Wait until somebody is about to commit and cannot. */
void both_await_stopped(void);
/* Let the store commit again. Nothing if it can. */
void both_let_commits(void);

/* Whatever a test did: the records in the database must pass every check. Nothing if there is no
 * store in it. */
void both_audit(void);
/* Do the bytes, up to 99 of them, stand in any column of any table? */
bool both_stored(const void *bytes, size_t size);

/* Skip the rest of the test on PostgreSQL: it is about the journal's files, or about the memory
 * that holds its tables. */
void both_needs_files(void);

#endif
