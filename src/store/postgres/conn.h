/* conn.h: one connection to the database, and the statements that it has prepared.
 *
 * Statements are queued with hf_pg_send and go out together: hf_pg_run sends them, waits, and
 * collects one result for each. That is one round trip, however many they are. */
#ifndef HF_STORE_POSTGRES_CONN_H
#define HF_STORE_POSTGRES_CONN_H

#include "store/postgres/table.h"

enum hf_pg_statement {
    HF_PG_BEGIN,
    HF_PG_COMMIT,
    HF_PG_ROLLBACK,
    HF_PG_HURRY, /* this transaction waits for a locked row only for a moment */
    HF_PG_NOW,   /* -> the clock, the time of the newest entry, the rules in force, the snapshot */
    /* how many numbers of the journal, ordinals, fences, outbox numbers -> as above, and an array
     * of each */
    HF_PG_DRAW,
    /* the same outside of a transaction: numbers need not be on disk before what they are drawn
     * for */
    HF_PG_DRAW_LIGHTLY,
    HF_PG_JOURNAL, /* entries, as arrays */
    /* writer, generation, batch, chain, version of the rules or NULL, time: fails if the generation
     * is another (23502), or the rules are, or it is later (40001) -> the transaction, and as
     * HF_PG_SETTINGS or NULL where commits wait for no standby */
    HF_PG_WRITER,
    HF_PG_SETTINGS,   /* -> HF_PG_SETTLED */
    HF_PG_PATIENCE,   /* how long this transaction waits for a lock, as text -> the same */
    HF_PG_READ_WHOLE, /* keys, each with its entry */
    HF_PG_READ_OF,    /* resources by name, and those of holds by ordinal */
    HF_PG_LOCK_OF,    /* the same, locked in order */
    HF_PG_OVERDUE, /* tenants, resources, limits, time -> overdue holds, and the next behind them */
    HF_PG_KEEP_RULES,  /* nobody changes the configuration until this transaction has ended */
    HF_PG_KEEP_GUARDS, /* tenants, names: nor these guards */
    HF_PG_CHANGE_RULES,
    HF_PG_CHANGE_GUARDS,
    HF_PG_TENANT, /* wait for the tenant's lock for HF_APPLY */
    /* limit, time -> lock resources with overdue holds, those that nobody else has locked */
    HF_PG_SWEEP,
    HF_PG_FREE_TOKENS,
    HF_PG_FREE_ENTRIES,
    HF_PG_FREE_LEFT, /* what deleted registers have left */
    /* some of what deleted registers have left and cannot leave: it was changed by hand */
    HF_PG_ODD_LEFT,
    HF_PG_FREE_LEASES,                        /* and deleted leases */
    HF_PG_HORIZON,                            /* -> the oldest transaction that is under way */
    HF_PG_READ,                               /* + table */
    HF_PG_LOCK = HF_PG_READ + HF_PG_TABLES,   /* + table */
    HF_PG_INSERT = HF_PG_LOCK + HF_PG_TABLES, /* + table */
    HF_PG_UPDATE = HF_PG_INSERT + HF_PG_TABLES,
    HF_PG_DELETE = HF_PG_UPDATE + HF_PG_TABLES,
    HF_PG_STATEMENTS = HF_PG_DELETE + HF_PG_TABLES
};

/* When this session of the database has read the settings; NULL for a minute behind a reload.
 * Whether commits wait for standbys is in the hands of the database's checkpointer, which may read
 * the settings later than the session does. At the database's own start it reads them at once. */
#define HF_PG_SETTLED                                                               \
    "SELECT CASE WHEN pg_conf_load_time() <= greatest(pg_postmaster_start_time(), " \
    "clock_timestamp() - "                                                          \
    "interval "                                                                     \
    "'1 minute') THEN pg_conf_load_time() END"

/* The clock, and what the newest entries were decided at: engine time is the later of the two, so
 * that it never runs back, whatever the clock does. Sixteen, because transactions that overlap may
 * number their entries in another order than they took the time. One beyond all calendars was
 * written by hand and does not count (holdfast.engine_now). */
#define HF_PG_NEWEST                                                                               \
    "(SELECT max(at) FROM (SELECT at FROM holdfast.journal ORDER BY number DESC LIMIT 16) newest " \
    "WHERE "                                                                                       \
    "at < timestamptz '10000-01-01 00:00:00+00')"
#define HF_PG_TIMES "date_trunc('milliseconds', clock_timestamp()), " HF_PG_NEWEST

enum hf_pg_outcome {
    HF_PG_FINE,
    HF_PG_CONFLICT, /* somebody else was faster, or a deadlock: roll back and begin again */
    HF_PG_BUSY,     /* a row stayed locked for too long: roll back */
    HF_PG_REFUSED,  /* the database said no: full, no rights, not our tables; conn->why says what */
    HF_PG_LOST      /* the connection is gone: nothing is known about what was sent last */
};

/* (hf_pg_run answers for all statements of a round trip. One that stands behind COMMIT fails by
 * itself: what was committed stays so, and the result of COMMIT says that it was.) */
enum { HF_PG_PIPELINE_MAX = 32, HF_PG_PARAMS_MAX = HF_PG_COLUMNS_MAX + 3 };

struct hf_pg_conn {
    PGconn *pg; /* owned; NULL: not connected */
    int queued;
    int failed;  /* which statement of the last run failed first; -1: none */
    bool warned; /* a warning said since it was cleared that the wait for a standby was given up */
    bool in_transaction;
    int first_host;    /* of those in the connection string, which is tried first */
    uint32_t timeline; /* of the database: rises with each promotion of a standby; 0: not known */
    int64_t patience_ms;
    char why
        [400]; /* what went wrong last, one sentence without its full stop; never with a password */
    char state[6]; /* SQLSTATE of it, HF_PG_UNRULED, or "": it was not the database */
};
/* In place of a SQLSTATE: the database is there, and its rules cannot be gone by
 * (hf_pg_rules_sound). */
#define HF_PG_UNRULED "XHF01"

/* Connect and see that it can be written to. prepare: make all statements ready (the tables must be
 * there) and begin a pipeline. HF_PG_FINE, HF_PG_REFUSED or HF_PG_LOST; conn->why. */
enum hf_pg_outcome hf_pg_connect(struct hf_pg_conn *conn, const char *conninfo, bool prepare);
/* Prepare all statements. */
enum hf_pg_outcome hf_pg_prepare(struct hf_pg_conn *conn);
void hf_pg_disconnect(struct hf_pg_conn *conn);
/* How many hosts the connection string (or libpq's environment) names: 1 and up. */
int hf_pg_hosts(const char *conninfo);

/* Queue a statement. params: arrays or values in binary form, NULL data for SQL's NULL. */
void hf_pg_send(struct hf_pg_conn *conn, int statement, const struct hf_bytes *params, int count);
/* Send what is queued and collect a result for each, in order. results: out, owned,
 * hf_pg_results_free; filled up to the first that failed, the others NULL. */
enum hf_pg_outcome hf_pg_run(struct hf_pg_conn *conn, PGresult **results);
void hf_pg_results_free(PGresult **results, int count);

/* Leave the transaction, if in one. */
void hf_pg_rollback(struct hf_pg_conn *conn);

/* One statement by its text, outside the pipeline; params are text. result: out, may be NULL. For
 * set-up and queries that are not made often. binary: how the result comes. */
enum hf_pg_outcome hf_pg_ask(struct hf_pg_conn *conn, const char *sql, int count,
                             const char *const *params, bool binary, PGresult **result);
/* Several statements at once, without parameters. */
enum hf_pg_outcome hf_pg_script(struct hf_pg_conn *conn, const char *sql);

#endif
