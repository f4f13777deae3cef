/* session.h: a writer: one connection that runs batches. After a lost connection it can tell
 * whether its last commit happened.
 *
 * Each session has a row in holdfast.writer with the number of its last batch, written in the same
 * transaction as the batch. After a reconnect the session first raises the row's generation. That
 * waits for the old connection's transaction, or makes it fail. Then the number in the row tells
 * whether the batch was committed. */
#ifndef HF_STORE_POSTGRES_SESSION_H
#define HF_STORE_POSTGRES_SESSION_H

#include "store/engine_clock.h"
#include "store/io.h"
#include "store/postgres/conn.h"
#include "store/postgres/replicated.h"
#include "store/postgres/set.h"

#include <pthread.h>
#include <stdatomic.h>

/* A line about the clock or the rows for the operator's log. */
struct hf_pg_said {
    int level;
    char line[HF_ENGINE_CLOCK_LINE];
};
enum { HF_PG_SAID_MAX = 4 };

/* What all sessions of a process share. */
struct hf_pg_shared {
    const char *conninfo;   /* borrowed */
    const struct hf_io *io; /* borrowed; NULL: the database's clock. Tests set one */
    uint8_t store_id[16];
    uint8_t id_key[HF_PG_ID_KEY];
    _Atomic uint32_t timeline; /* the highest that any session has seen */
    /* of the four below and the two of `unsound`; no other lock is taken inside it */
    pthread_mutex_t clock_lock;
    struct hf_engine_clock clock;
    struct hf_pg_said said[HF_PG_SAID_MAX];
    size_t said_count;
    /* the latest engine time in any answer: clock.now, readable without the lock */
    _Atomic int64_t told;
    _Atomic uint64_t stalls; /* how often the clock was behind it at a write */
    char name[96];           /* of this process, for holdfast.writer */

    /* What to expect from the next batches. Each counter says for how many more batches a rarely
     * needed step is done at once, because a batch had to start again without it. */
    _Atomic int locking;  /* lock rows: other sessions change the same ones */
    _Atomic int calm;     /* successful batches without locks since */
    _Atomic int caution;  /* for how many batches rows were locked the last time */
    _Atomic int looking;  /* look up keys: retries arrive */
    _Atomic int sweeping; /* look for overdue holds */

    _Atomic uint64_t unsound; /* how often a row was read that Holdfast cannot have written */
    /* with clock_lock: when one was last logged, by the boot clock */
    hf_time unsound_said;
    char unsound_name[160]; /* with clock_lock: the row that was logged; "": none yet */

    struct hf_pg_replicated replicated; /* what the standbys have */
    _Atomic bool replicates;            /* commits wait for them, as last seen */
};

/* Which rows may leave (transaction.h): all transactions below `ended` had ended long ago; those
 * below `coming` had ended at `coming_at`, by the boot clock. 0: not yet known on this connection;
 * transaction numbers differ between databases. */
struct hf_pg_horizon {
    uint64_t ended, coming;
    hf_time ended_now, coming_now; /* engine time at that moment */
    hf_time coming_at;
    bool moved; /* since rows were last removed */
    /* rows may leave once the standbys are known to have everything below `ended` */
    bool waiting;
};

struct hf_pg_session {
    struct hf_pg_conn conn;
    struct hf_pg_shared *shared; /* borrowed */
    int32_t writer;              /* 0: not registered yet */
    bool resumed;                /* this connection may write with it */
    int64_t registered_at;       /* by the row, in microseconds: tells whether it is our row */
    int64_t generation, batch;   /* batch: the last one known to be committed */
    uint8_t chain[HF_DIGEST_SIZE];
    uint8_t next_chain[HF_DIGEST_SIZE]; /* of the batch that is being committed */

    struct hf_pg_set set;
    struct hf_plan *plan; /* owned */
    struct hf_buffer params[HF_PG_PARAMS_MAX];
    struct hf_rules rules; /* as of the last batch */
    unsigned char rules_version[4];
    hf_time read_at; /* the database's clock when the last batch was read */
    hf_time now;
    /* the lock that timed out was the one of the guards' rules */
    bool stuck_at_guards;
    bool is_behind;   /* the clock is behind `now`: it was set back */
    bool expects_new; /* most calls of the last batch were new */
    /* the first so many overdue holds cannot be expired: the next sweep begins after them */
    unsigned sweep_skip;
    /* claims whose lease ended before have been told, if they were not locked at that time */
    hf_time lapsed_until;

    /* For replicated.h, when the last batch was read. */
    bool replicates; /* commits wait for a standby */
    bool doubtful;   /* and the standby may not have the rules in force */
    uint64_t oldest; /* lowest transaction in progress */
    uint64_t next;   /* this transaction and higher ones were not visible */

    struct hf_pg_horizon horizon; /* for hf_pg_free_expired */
};

/* False if out of memory. */
bool hf_pg_session_init(struct hf_pg_session *s, struct hf_pg_shared *shared);
void hf_pg_session_free(struct hf_pg_session *s);

/* Connect (again). committed: out, may be NULL: was the batch after the last known one committed?
 * If not NULL, the session resumes its writer's row, if there is one, which waits for the standbys.
 * If NULL, it only reads that row, so that reads need no standby. HF_PG_FINE; HF_PG_LOST: not now;
 * HF_PG_REFUSED: not this database, see conn.why. */
enum hf_pg_outcome hf_pg_session_connect(struct hf_pg_session *s, bool *committed);
/* Before a batch that writes, outside of a transaction: create the session's row in
 * holdfast.writer, or resume it on a new connection. Read-only sessions have no row. */
enum hf_pg_outcome hf_pg_session_register(struct hf_pg_session *s);
/* Connect a read-only session: it is not registered, and no statement is prepared. It refuses an
 * old primary too. */
enum hf_pg_outcome hf_pg_session_read(struct hf_pg_session *s);

/* Is the session's database the newest primary that any session of this process has seen? False: a
 * standby was promoted since the session connected. Then the connection is closed and conn.why is
 * set; the next connect finds the new primary. */
bool hf_pg_session_is_newest(struct hf_pg_session *s);

/* ---- clock.c ---- */

/* The boot clock of this machine. */
hf_time hf_pg_clock_boot(const struct hf_pg_shared *shared);
/* The reading in a result whose first columns are HF_PG_TIMES. asked: the boot clock before the
 * query was sent. */
struct hf_engine_clock_reading hf_pg_clock_reading(const struct hf_pg_shared *shared,
                                                   const PGresult *result, hf_time asked);
/* Process a reading of the database's clock. Returns engine time. */
hf_time hf_pg_clock_read(struct hf_pg_shared *shared,
                         const struct hf_engine_clock_reading *reading);
uint64_t hf_pg_clock_jumps(struct hf_pg_shared *shared);
/* Count a row that Holdfast cannot have written, and log it: at most one row a second, and the same
 * row once a minute. */
void hf_pg_unsound(struct hf_pg_shared *shared, enum hf_pg_table table,
                   const struct hf_pg_record *record);
/* Are these rules within the limits? Larger values cannot be added to a time. */
bool hf_pg_rules_sound(const struct hf_rules *rules);
/* Take the next line for the operator's log. False: there is none. */
bool hf_pg_clock_said(struct hf_pg_shared *shared, struct hf_pg_said *out);

#endif
