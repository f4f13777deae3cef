/* migrate.h: creates, updates and reads the schema `holdfast` in a database.
 *
 * Migrations are numbered SQL scripts (schema/). All missing ones are applied once, under a lock,
 * in one transaction; holdfast.migration records them. The Unicode tables of the SQL functions are
 * not in these scripts: the program makes them, and replaces older ones at its start. */
#ifndef HF_STORE_POSTGRES_MIGRATE_H
#define HF_STORE_POSTGRES_MIGRATE_H

#include "store/postgres/session.h"

struct hf_pg_migration {
    int version;
    const char *name;
    const char *sql;
};

/* In order. Generated from schema/ by the build. */
extern const struct hf_pg_migration hf_pg_migrations[];
extern const int hf_pg_migration_count;

/* ---- unicode.c ---- */

/* The SQL that creates or replaces the Unicode tables of the SQL functions, made from the utf8proc
 * that this process uses. Owned, free with free(). NULL if out of memory. */
char *hf_pg_unicode_sql(void);
/* Are tables with this comment older than those of hf_pg_unicode_sql? comment: borrowed; NULL or
 * not a comment of ours: there are none, so they are. */
bool hf_pg_unicode_is_older(const char *comment);

/* ---- migrate.c ---- */

/* Check that the schema exists and has this program's version; create or update it if needed. Read
 * holdfast.store into `shared` and `rules`. options: borrowed (no_create, and the settings of a new
 * store). conn: connected, without prepared statements, not in a pipeline. HF_OK, HF_STORE_ABSENT,
 * HF_STORE_NEWER, HF_STORE_DAMAGED (not our tables), HF_STORAGE_FAILURE; why: out. */
enum hf_status hf_pg_migrate(struct hf_pg_conn *conn, const struct hf_options *options,
                             struct hf_pg_shared *shared, struct hf_rules *rules,
                             struct hf_error *why);

#endif
