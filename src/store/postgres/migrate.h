/* migrate.h: creates, updates and reads the schema `holdfast` in a database.
 *
 * Migrations are numbered SQL scripts (schema/). All missing ones are applied once, under a lock,
 * in one transaction; holdfast.migration records them. */
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

/* Check that the schema exists and has this program's version; create or update it if needed. Read
 * holdfast.store into `shared` and `rules`. options: borrowed (no_create, and the settings of a new
 * store). conn: connected, without prepared statements, not in a pipeline. HF_OK, HF_STORE_ABSENT,
 * HF_STORE_NEWER, HF_STORE_DAMAGED (not our tables), HF_STORAGE_FAILURE; why: out. */
enum hf_status hf_pg_migrate(struct hf_pg_conn *conn, const struct hf_options *options,
                             struct hf_pg_shared *shared, struct hf_rules *rules,
                             struct hf_error *why);

#endif
