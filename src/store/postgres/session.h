/* session.h: a writer: one connection that runs batches, and what it must know to tell, after a
 * lost connection, whether its last commit happened.
 *
 * Each session has a row in holdfast.writer with the number of its last batch, written in the same
 * transaction as the batch. After a reconnect the session first raises the row's generation, which
 * waits for, or shuts out, whatever the old connection still has under way; then the number says
 * for certain what became of the batch in doubt. */
#ifndef HF_STORE_POSTGRES_SESSION_H
#define HF_STORE_POSTGRES_SESSION_H

#include "store/engine_clock.h"
#include "store/io.h"
#include "store/postgres/conn.h"
#include "store/postgres/replicated.h"
#include "store/postgres/set.h"

#include <pthread.h>
#include <stdatomic.h>

/* Something about the clock or the rows that the operator should be told. */
struct hf_pg_said {
    int level;
    char line[HF_ENGINE_CLOCK_LINE];
};
enum { HF_PG_SAID_MAX = 4 };

/* What all sessions of a process share. */
struct hf_pg_shared {
    const char *conninfo; /* borrowed */
    const struct hf_io
        *io; /* borrowed; NULL: the time is the database's. Tests have a clock of their own */
    uint8_t store_id[16];
    uint8_t id_key[HF_PG_ID_KEY];
    _Atomic uint32_t timeline; /* the highest that any of them has seen */
    pthread_mutex_t
        /* of the four below and the two of `unsound`; no other lock is taken inside it */
        clock_lock;
    struct hf_engine_clock clock;
    struct hf_pg_said said[HF_PG_SAID_MAX];
    size_t said_count;
    _Atomic int64_t
        /* the latest engine time that anybody was told: clock.now, to be read without the lock */
        told;
    _Atomic uint64_t stalls; /* how often the clock was behind it when something was written */
    char name[96];           /* of this process, for holdfast.writer */

    /* What the last batches were like: for how many batches yet something is done at once that is
     * rarely needed, because one had to begin again without it. */
    _Atomic int locking;  /* rows are locked: others change the same ones */
    _Atomic int calm;     /* how many batches went well without locks since */
    _Atomic int caution;  /* for how many they were locked the last time */
    _Atomic int looking;  /* keys are looked up: retries come */
    _Atomic int sweeping; /* overdue holds are looked for */

    _Atomic uint64_t unsound; /* how often a row came that Holdfast cannot have written */
    hf_time
        /* with clock_lock: when the operator was last told of one, by the boot clock */
        unsound_said;
    char unsound_name[160]; /* with clock_lock: of which; "": of none yet */

    struct hf_pg_replicated replicated; /* what the standbys have */
    _Atomic bool replicates;            /* commits wait for them, as far as was seen last */
};

/* Which rows may leave (transaction.h): all transactions below `ended` had ended long ago, those
 * below `coming` when `coming_at`, by the boot clock. 0: that is not known yet on this connection;
 * a transaction has another number on another database. */
struct hf_pg_horizon {
    uint64_t ended, coming;
    hf_time ended_now, coming_now; /* engine time then */
    hf_time coming_at;
    bool moved; /* since rows were taken out last */
    bool
        /* rows may leave when the standbys are known to have what was written below `ended` */
        waiting;
};

struct hf_pg_session {
    struct hf_pg_conn conn;
    struct hf_pg_shared *shared; /* borrowed */
    int32_t writer;              /* 0: not registered yet */
    bool resumed;                /* this connection may write with it */
    int64_t registered_at;       /* when, by the row, in microseconds: whose row it is */
    int64_t generation, batch;   /* batch: the last that is known to be committed */
    uint8_t chain[HF_DIGEST_SIZE];
    uint8_t next_chain[HF_DIGEST_SIZE]; /* of the batch that is being committed */

    struct hf_pg_set set;
    struct hf_plan *plan; /* owned */
    struct hf_buffer params[HF_PG_PARAMS_MAX];
    struct hf_rules rules; /* as of the last batch */
    unsigned char rules_version[4];
    hf_time read_at; /* when the last batch was read, by the database's clock */
    hf_time now;
    bool
        /* a lock was waited for in vain, and it was that of the rules of all guards */
        stuck_at_guards;
    bool is_behind;   /* the clock is behind `now`: it was set back */
    bool expects_new; /* most calls of the last batch were */
    unsigned
        /* so many overdue holds in front cannot be swept: the next sweep begins behind them */
        sweep_skip;

    /* For replicated.h, when the last batch was read. */
    bool replicates; /* commits wait for a standby */
    bool doubtful;   /* and it is not known to have the rules in force */
    uint64_t oldest; /* transaction that was under way */
    uint64_t next;   /* nobody could see this one or those behind it */

    struct hf_pg_horizon horizon; /* for hf_pg_free_expired */
};

/* False without memory. */
bool hf_pg_session_init(struct hf_pg_session *s, struct hf_pg_shared *shared);
void hf_pg_session_free(struct hf_pg_session *s);

/* Connect (again). committed: out, if not NULL: did the batch behind the last known one happen?
 * Then the writer's row, if there is one, is taken up again, which waits for the standbys. Else it
 * is only looked at, so that questions need no standby. HF_PG_FINE; HF_PG_LOST: not now;
 * HF_PG_REFUSED: not this database, conn.why says why. */
enum hf_pg_outcome hf_pg_session_connect(struct hf_pg_session *s, bool *committed);
/* Before a batch that writes, outside of a transaction: make a row of its own in holdfast.writer,
 * or take it up again on a new connection. Who only asks leaves none. */
enum hf_pg_outcome hf_pg_session_register(struct hf_pg_session *s);
/* The same for one that only reads: it is not registered, and no statement is prepared. An old
 * primary is refused to it too. */
enum hf_pg_outcome hf_pg_session_read(struct hf_pg_session *s);

/* Is the session's database the newest primary that any session of this process has seen? False: a
 * standby was promoted since the session connected. Its connection is closed then, and conn.why
 * says so; the next connect finds the new primary. */
bool hf_pg_session_is_newest(struct hf_pg_session *s);

/* ---- clock.c ---- */

/* What the boot clock of this machine says. */
hf_time hf_pg_clock_boot(const struct hf_pg_shared *shared);
/* The reading in a result whose first columns are HF_PG_TIMES. asked: what the boot clock said
 * before the question was sent. */
struct hf_engine_clock_reading hf_pg_clock_reading(const struct hf_pg_shared *shared,
                                                   const PGresult *result, hf_time asked);
/* The database's clock was read, between two moments of the boot clock. Returns engine time. */
hf_time hf_pg_clock_read(struct hf_pg_shared *shared,
                         const struct hf_engine_clock_reading *reading);
uint64_t hf_pg_clock_jumps(struct hf_pg_shared *shared);
/* A row came that Holdfast cannot have written: it is counted, and the operator told: of one a
 * second, and of the same one once a minute. */
void hf_pg_unsound(struct hf_pg_shared *shared, enum hf_pg_table table,
                   const struct hf_pg_record *record);
/* Can these be in force? What is beyond the limits cannot be added to a time. */
bool hf_pg_rules_sound(const struct hf_rules *rules);
/* Take what the operator should be told next. False: nothing. */
bool hf_pg_clock_said(struct hf_pg_shared *shared, struct hf_pg_said *out);

#endif
