/* conn.h: one connection to the database, and the statements that it has prepared.
 *
 * hf_pg_send queues statements; hf_pg_run sends them together, waits, and collects one result for
 * each. That is one round trip for any number of statements. */
#ifndef HF_STORE_POSTGRES_CONN_H
#define HF_STORE_POSTGRES_CONN_H

#include "store/postgres/table.h"

enum hf_pg_statement {
    HF_PG_BEGIN,
    HF_PG_COMMIT,
    HF_PG_ROLLBACK,
    HF_PG_HURRY, /* this transaction gets a short lock timeout */
    HF_PG_NOW,   /* -> the clock, the time of the newest entry, the rules in force, the snapshot */
    /* counts of journal numbers, ordinals, fences, outbox numbers -> as above, and an array of
     * each */
    HF_PG_DRAW,
    /* the same outside of a transaction: drawn numbers need not be on disk before the rows that use
     * them */
    HF_PG_DRAW_LIGHTLY,
    HF_PG_JOURNAL, /* entries, as arrays */
    /* writer, generation, batch, chain, version of the rules or NULL, times: fails if the
     * generation differs (23502), if the rules differ or the time is over (40001) -> the
     * transaction, and the load time of the settings, or NULL where commits wait for no standby */
    HF_PG_WRITER,
    HF_PG_SETTINGS,    /* -> HF_PG_SETTLED */
    HF_PG_PATIENCE,    /* the lock timeout of this transaction, as text -> the same */
    HF_PG_READ_WHOLE,  /* keys, each with its entry */
    HF_PG_READ_OF,     /* resources by name, and the resources of holds by ordinal */
    HF_PG_LOCK_OF,     /* the same, locked in order */
    HF_PG_GUARDED,     /* tenant, guard, time -> an identity that is seen then, if there is one */
    HF_PG_OVERDUE,     /* tenants, resources, limits, time -> overdue holds, and the next one */
    HF_PG_KEEP_RULES,  /* block changes of the configuration until this transaction ends */
    HF_PG_KEEP_GUARDS, /* tenants, names: the same for these guards */
    HF_PG_CHANGE_RULES,
    HF_PG_CHANGE_GUARDS,
    HF_PG_TENANT, /* wait for the tenant's lock for HF_APPLY */
    /* limit, time -> lock resources with overdue holds, except those already locked */
    HF_PG_SWEEP,
    HF_PG_FREE_TOKENS,
    HF_PG_FREE_ENTRIES,
    HF_PG_FREE_LEFT, /* rows left by deleted registers */
    /* some of these rows that cannot leave, because they were changed by hand */
    HF_PG_ODD_LEFT,
    HF_PG_FREE_LEASES, /* and deleted leases */
    /* limit, two times -> claims whose lease ended between them, marked as told */
    HF_PG_LAPSE,
    HF_PG_HORIZON,                            /* -> the oldest transaction in progress */
    HF_PG_READ,                               /* + table */
    HF_PG_LOCK = HF_PG_READ + HF_PG_TABLES,   /* + table */
    HF_PG_INSERT = HF_PG_LOCK + HF_PG_TABLES, /* + table */
    HF_PG_UPDATE = HF_PG_INSERT + HF_PG_TABLES,
    HF_PG_DELETE = HF_PG_UPDATE + HF_PG_TABLES,
    HF_PG_STATEMENTS = HF_PG_DELETE + HF_PG_TABLES
};

/* When this database session read the settings; NULL for a minute after a reload. The database's
 * checkpointer decides whether commits wait for standbys, and it may read the settings later than
 * the session. When the database starts, it reads them at once. */
#define HF_PG_SETTLED                                                               \
    "SELECT CASE WHEN pg_conf_load_time() <= greatest(pg_postmaster_start_time(), " \
    "clock_timestamp() - "                                                          \
    "interval "                                                                     \
    "'1 minute') THEN pg_conf_load_time() END"

/* The clock, and the time of the newest entries: engine time is the later of the two, so that it
 * never runs back when the clock does. Sixteen entries, because overlapping transactions may number
 * their entries in another order than they read the time. A time after the year 9999 was written by
 * hand and is ignored (holdfast.engine_now). */
#define HF_PG_NEWEST                                                                               \
    "(SELECT max(at) FROM (SELECT at FROM holdfast.journal ORDER BY number DESC LIMIT 16) newest " \
    "WHERE "                                                                                       \
    "at < timestamptz '10000-01-01 00:00:00+00')"
#define HF_PG_TIMES "date_trunc('milliseconds', clock_timestamp()), " HF_PG_NEWEST

enum hf_pg_outcome {
    HF_PG_FINE,
    HF_PG_CONFLICT, /* another transaction was first, or a deadlock: roll back and retry */
    HF_PG_BUSY,     /* lock timeout: roll back */
    HF_PG_REFUSED,  /* the database refused: full, no rights, not our tables; conn->why */
    HF_PG_LOST      /* the connection is lost: the effect of the last statements is unknown */
};

/* (The outcome of hf_pg_run is for all statements of a round trip. A statement after COMMIT fails
 * alone: the commit stays, and the result of COMMIT says so.) */
enum { HF_PG_PIPELINE_MAX = 32, HF_PG_PARAMS_MAX = HF_PG_COLUMNS_MAX + 3 };

struct hf_pg_conn {
    PGconn *pg; /* owned; NULL: not connected */
    int queued;
    int failed;  /* the first statement of the last run that failed; -1: none */
    bool warned; /* a warning since it was cleared: the wait for a standby was cancelled */
    bool in_transaction;
    int first_host;    /* index of the host in the connection string that is tried first */
    uint32_t timeline; /* of the database: rises when a standby is promoted; 0: unknown */
    int64_t patience_ms;
    char why[400]; /* the last error, without a full stop; never with a password */
    char state[6]; /* its SQLSTATE, HF_PG_UNRULED, or "": not an error of the database */
};
/* In place of a SQLSTATE: the database answers, but its rules are unusable (hf_pg_rules_sound). */
#define HF_PG_UNRULED "XHF01"
#define HF_PG_DISK_FULL "53100" /* SQLSTATE */

/* Connect and check that the database accepts writes. prepare: prepare all statements (the tables
 * must exist) and begin a pipeline. HF_PG_FINE, HF_PG_REFUSED or HF_PG_LOST; conn->why. */
enum hf_pg_outcome hf_pg_connect(struct hf_pg_conn *conn, const char *conninfo, bool prepare);
enum hf_pg_outcome hf_pg_prepare(struct hf_pg_conn *conn);
void hf_pg_disconnect(struct hf_pg_conn *conn);
/* The number of hosts in the connection string (or libpq's environment): 1 or more. */
int hf_pg_hosts(const char *conninfo);

/* Queue a statement. params: arrays or values in binary form, NULL data for SQL's NULL. */
void hf_pg_send(struct hf_pg_conn *conn, int statement, const struct hf_bytes *params, int count);
/* Send the queued statements and collect a result for each, in order. results: out, owned,
 * hf_pg_results_free; filled up to the first failure, the others NULL. */
enum hf_pg_outcome hf_pg_run(struct hf_pg_conn *conn, PGresult **results);
void hf_pg_results_free(PGresult **results, int count);

/* Leave the transaction, if in one. */
void hf_pg_rollback(struct hf_pg_conn *conn);

/* Run one statement by its text, outside the pipeline, for set-up and rare queries; params are
 * text. result: out, may be NULL. binary: the format of the result. */
enum hf_pg_outcome hf_pg_ask(struct hf_pg_conn *conn, const char *sql, int count,
                             const char *const *params, bool binary, PGresult **result);
/* Run several statements at once, without parameters. */
enum hf_pg_outcome hf_pg_script(struct hf_pg_conn *conn, const char *sql);

#endif
