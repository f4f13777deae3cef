/* migrate.h: the schema `holdfast` in a database: made, brought up to date, and read.
 *
 * Migrations are numbered SQL scripts (schema/), each applied once, under a lock, in one
 * transaction with all others that are missing; holdfast.migration remembers which. */
#ifndef HF_STORE_POSTGRES_MIGRATE_H
#define HF_STORE_POSTGRES_MIGRATE_H

#include "store/postgres/session.h"

struct hf_pg_migration {
    int version;
    const char *name;
    const char *sql;
};

/* In order. Made from schema/ when the program is built. */
extern const struct hf_pg_migration hf_pg_migrations[];
extern const int hf_pg_migration_count;

/* See that the schema is there and of this program's version, making or updating it where needed,
 * and read what is in holdfast.store into `shared` and `rules`. options: borrowed (no_create, and
 * what a new store begins with). conn: connected, without prepared statements, not in a pipeline.
 * HF_OK, HF_STORE_ABSENT, HF_STORE_NEWER, HF_STORE_DAMAGED (not our tables), HF_STORAGE_FAILURE;
 * why: out. */
enum hf_status hf_pg_migrate(struct hf_pg_conn *conn, const struct hf_options *options,
                             struct hf_pg_shared *shared, struct hf_rules *rules,
                             struct hf_error *why);

#endif
