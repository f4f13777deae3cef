/* pool.h: the store in a database: sessions, their threads, and shared state. Only the files of
 * this store include it.
 *
 *   submit ──▶ queue ──▶ a worker takes a batch ──▶ one transaction ──▶ done, on its thread
 *
 * Each worker has a session (session.h). Usually two work at a time: while one waits for its
 * commit, the other takes the operations that arrived meanwhile. The others start only when a batch
 * takes long, so that a locked row delays only the requests that need it. Operations with the same
 * order key are never in two batches at once. Tenants take turns.
 *
 * While the database is unreachable, operations wait for some seconds and are then answered
 * HF_STORAGE_FAILURE. If the connection is lost after COMMIT was sent, the session finds out
 * whether it committed; if it cannot, the answer is HF_INDETERMINATE.
 *
 *   pool.c      opening, closing, blocking calls
 *   queue.c     the queue, and which worker takes what
 *   worker.c    a worker: batches, retries, unknown outcomes
 *   guard.c     guards while the database is unreachable
 *   stuck.c     rows that another transaction keeps locked
 *   confirm.c   waiting until the standbys have what was read
 *   maintain.c  maintenance and figures
 *   list.c      lists */
#ifndef HF_STORE_POSTGRES_POOL_H
#define HF_STORE_POSTGRES_POOL_H

#include "base/worker.h"
#include "store/postgres/batch.h"
#include "store/record/result.h"
#include "store/store.h"

/* WORKERS: sessions that write. One at a time, so that operations gather for a large next batch,
 * which costs hardly more than a small one; BUSY at a time while FULL operations wait; all of them
 * if a batch takes longer than SLOW_MS. */
enum {
    HF_POOL_WORKERS = 4,
    HF_POOL_BUSY = 2,
    HF_POOL_FULL = 24,
    HF_POOL_SLOW_MS = 30,
    HF_POOL_SLOTS = 4096
};

/* How long operations wait for an unreachable database; for the outcome of a commit; and for a row
 * that another transaction keeps locked. */
enum { HF_POOL_AWAY_MS = 4000, HF_POOL_DOUBT_MS = 10000, HF_POOL_LOCKED_MS = 6000 };

/* A row that stayed locked lately. */
enum { HF_POOL_STUCK = 64 };
struct hf_pool_stuck {
    uint64_t hash; /* 0: none */
    int64_t until_ms;
};

/* The waiting operations of one tenant. */
struct hf_pool_part {
    uint64_t hash; /* of the tenant, under the store's secret */
    struct hf_op *first, **end;
    size_t queued;
    struct hf_pool_part *chain;       /* the next with the same hash, or the next unused one */
    struct hf_pool_part *next, *prev; /* in the ring of waiting tenants */
};

/* SMALL: a tenant with more waiting operations is a large one. SHARE: the most operations of one
 * tenant in a batch. MIXED_MS: after two tenants were seen, the queue counts as mixed for so
 * long. */
enum {
    HF_POOL_PARTS = 1024,
    HF_POOL_PART_BUCKETS = 256,
    HF_POOL_SMALL = 64,
    HF_POOL_SHARE = 512,
    HF_POOL_MIXED_MS = 600000
};

struct hf_pool_queue {
    struct hf_pool_part *turn; /* the ring begins with the next tenant; NULL: nothing waits */
    size_t waiting;            /* tenants in the ring */
    bool large_next;           /* if both sizes wait, a large tenant is next */
    unsigned bulk_busy;        /* how many workers have a batch of large tenants */
    uint64_t tenant;           /* hash of the tenant that submitted last; 0: none */
    int64_t mixed_until_ms;
    struct hf_pool_part *unused, *buckets[HF_POOL_PART_BUCKETS];
    struct hf_pool_part parts[HF_POOL_PARTS],
        rest; /* rest: all tenants without a part of their own */
};

struct hf_pool_worker {
    struct hf_pool *pool;
    unsigned index;
    pthread_t thread;
    bool started;
    struct hf_pg_session session;
    struct hf_op **ops;       /* of its batch, in order; owned */
    struct hf_pg_item *items; /* owned */
    size_t count;
    int64_t begun_ms;      /* start of its batch; 0: idle */
    int64_t head_noted_ms; /* when its chain head was last logged; 0: never */
    bool answering;        /* its batch is over; it calls `done` */
    bool stuck;            /* it waits for a row that is known to be locked */
    bool tried;            /* its batch has an operation that was tried before */
    bool bulk;             /* its batch is of large tenants */
    unsigned seed;         /* for waiting times */
    bool idle;             /* it waits for `wake` */
    pthread_cond_t wake;
};

/* Which worker has operations with an order key, or on a row, and how many. */
struct hf_pool_slot {
    uint32_t count;
    uint32_t worker;
};

struct hf_pool_guards;

/* Empty commits, numbered from 1: they show what the standbys have. */
struct hf_pool_confirm {
    pthread_mutex_t lock;
    pthread_cond_t wake, confirmed;
    uint64_t asked, begun, done; /* the highest requested, begun, answered */
    uint64_t proven;             /* the highest that waited for the standbys */
    unsigned waiting;            /* number of waiting calls */
    uint32_t timeline;           /* of `done` */
    int64_t since_ms;            /* start of the first one after `done`; 0: none is in progress */
    /* the same for those that were sent; 0: the database has answered, or is unreachable */
    int64_t silent_since_ms;
    bool stopping, started;
    bool said;              /* it was logged that the standbys confirm nothing */
    int socket;             /* owned: of the connection, for hf_pool_confirm_stop; -1: none yet */
    int left_behind;        /* database process that may still wait for a standby; 0: none */
    uint32_t left_timeline; /* of that database */
    struct hf_pg_session session; /* used only by the thread */
    pthread_t thread;
};

/* How often the SQL functions have met a duplicate, a race or a collision. */
struct hf_pool_met {
    bool known;
    uint64_t duplicates, races, collisions;
};

struct hf_pool {
    struct hf_store store; /* the engine's view of it */
    struct hf_store_host host;
    struct hf_options options;
    char *conninfo; /* owned */
    struct hf_pg_shared shared;

    pthread_mutex_t lock;
    pthread_cond_t rest; /* something was answered */
    struct hf_pool_queue queue;
    size_t queued, in_flight;
    unsigned busy;
    unsigned watchers; /* idle workers that look again soon while others are busy */
    bool stopping;
    struct hf_pool_slot orders[HF_POOL_SLOTS];
    struct hf_pool_slot rows[HF_POOL_SLOTS]; /* by hash: keeps two batches off the same row */
    struct hf_pool_stuck stuck[HF_POOL_STUCK];
    int64_t stuck_until_ms; /* by then none is stuck; 0: there was none */
    bool stuck_busy;        /* a worker waits for such a row */
    unsigned tried_busy;    /* how many workers have a batch that was tried before */
    unsigned epoch;         /* 0 or 1: the epoch of new operations */
    uint64_t unanswered[2]; /* by epoch */
    bool flushing;

    int64_t away_since_ms; /* 0: the database is reachable */
    bool away_said;        /* and it was logged */
    bool refused;          /* it is reachable and refuses writes */
    bool is_full;          /* because it is out of disk space */
    struct hf_pool_complaint {
        char line[480];
        int64_t said_ms;
    } complaints[4];  /* its log lines, newest first */
    bool behind_said; /* it was logged that the clock was set back */
    struct hf_stats stats;

    struct hf_pool_guards *guards; /* owned */
    struct hf_pool_confirm confirm;

    struct hf_pool_worker workers[HF_POOL_WORKERS];
    /* Two locks, because the sweeper waits for standbys, and the reader must not wait for the
     * sweeper. */
    pthread_mutex_t sweeper_lock, reader_lock;
    struct hf_pg_session sweeper, reader;
    struct hf_pool_met met;    /* with reader_lock */
    int64_t sweeping_since_ms; /* with `lock`; 0: it is idle */
    struct hf_worker maintainer;
    unsigned ticks; /* its steps so far */
};

static inline struct hf_pool *hf_pool_of(struct hf_store *store)
{
    return (struct hf_pool *)store;
}

/* Without the lock. The session could not reach the database, or reached it. While the standbys are
 * silent, nothing is logged: the session failed because it waited for a standby, and the database
 * is reachable. */
void hf_pool_away(struct hf_pool *pool, const char *why);
void hf_pool_back(struct hf_pool *pool);
/* Without the lock. The database refused (the error is in `conn`); NULL: it accepts writes again.
 * Only an error with a SQLSTATE (or HF_PG_UNRULED) counts as a refusal; every error is logged. */
void hf_pool_refused(struct hf_pool *pool, const struct hf_pg_conn *conn);
void hf_pool_note(struct hf_pool *pool, int level, const char *line);
/* Log the chain head of the worker, if it has committed: after the first batch, then every hour,
 * and if `now`. Called by the worker's thread, or after that thread has ended. */
void hf_pool_note_head(struct hf_pool_worker *worker, bool now);
/* worker.c. Without the lock: log the pending lines about the database's clock. */
void hf_pool_clock_note(struct hf_pool *pool);

/* queue.c. With the lock. Put linked operations into the queue. */
void hf_pool_queue_init(struct hf_pool_queue *queue);
void hf_pool_queue_add(struct hf_pool *pool, struct hf_op *first, int64_t now);
/* Is there more than one tenant? */
bool hf_pool_queue_mixed(const struct hf_pool *pool, int64_t now);
/* False: it is not the worker's turn, or there is nothing for it. True: it has a batch; the batch
 * is empty if all its operations must wait behind others. */
bool hf_pool_take(struct hf_pool_worker *worker);
/* Put the batch back to the front of the queue; each operation is then tried alone. */
void hf_pool_give_back(struct hf_pool_worker *worker);
/* Free the operation's order key and row. */
void hf_pool_slots_give_back(struct hf_pool *pool, const struct hf_op *op);

/* worker.c. Is it likely that a single operation or row caused the last refusal of the database?
 * Data that the database rejects; a row changed by hand; a value too large for an index. */
bool hf_pool_is_about_one(const struct hf_pg_conn *conn);
/* worker.c: the worker's thread. arg: the worker. */
void *hf_pool_worker_run(void *arg);
/* With the lock. Wake an idle worker: if possible the same one each time, because its database
 * process is warm, and one that has a connection. */
void hf_pool_wake(struct hf_pool *pool);
/* guard.c. */
struct hf_pool_guards *hf_pool_guards_make(void);
void hf_pool_guards_free(struct hf_pool_guards *known);
/* Without the lock. Remember the rules of the guards that a batch has read. */
void hf_pool_guards_learn(struct hf_pool *pool, const struct hf_pg_set *set);
/* Without the lock. Remember the rules of all guards. session: between batches, used by no other
 * thread meanwhile. */
enum hf_pg_outcome hf_pool_guards_read(struct hf_pool *pool, struct hf_pg_session *session);
/* Without the lock. Answer a call of a guard by the guard's rule, because the database is
 * unreachable. plan, now: out. False: it is not such a call, or the guard was never read. */
bool hf_pool_guards_answer(struct hf_pool *pool, const struct hf_request *request,
                           struct hf_plan *plan, hf_time *now);

/* stuck.c. The row that the request needs besides its key, as an index into `rows`; 0: none, or
 * unknown. */
unsigned hf_pool_row(const struct hf_request *request);
/* With the lock. Does the operation need a row that stayed locked lately? */
bool hf_pool_is_stuck(struct hf_pool *pool, const struct hf_op *op);
/* Without the lock. learn: the lock that the operation needs timed out; forget: its row is free
 * again. by_guard: the lock of the guard timed out, not that of the identity. */
void hf_pool_stuck_learn(struct hf_pool *pool, const struct hf_op *op, bool by_guard);
void hf_pool_stuck_forget(struct hf_pool *pool, const struct hf_op *op);

/* confirm.c. Without any lock. Wait until the standbys have everything that was visible in the
 * database before. timeline: of the connection that read it. proven: out, may be NULL: true if they
 * have it, false if there is no synchronous standby any more. False: timeout, or another primary
 * confirmed. */
bool hf_pool_confirm(struct hf_pool *pool, uint32_t timeline, bool *proven);
/* Without any lock. For how long the standbys have confirmed nothing; 0: they confirm, or it is
 * shorter than a call waits, or it is unknown. */
uint64_t hf_pool_silent_ms(struct hf_pool *pool);
/* With the pool's lock, or none. Is a commit of this module waiting for them? */
bool hf_pool_is_silent(struct hf_pool *pool);
/* make, free: its members; false if out of memory. start, stop: its thread. */
bool hf_pool_confirm_make(struct hf_pool *pool);
bool hf_pool_confirm_start(struct hf_pool *pool);
void hf_pool_confirm_stop(struct hf_pool *pool);
void hf_pool_confirm_free(struct hf_pool *pool);

/* maintain.c, list.c, confirm.c: the operations of store.h. */
bool hf_pool_maintain(struct hf_store *store);
void hf_pool_stats(struct hf_store *store, bool applying, struct hf_stats *out);
enum hf_status hf_pool_list(struct hf_store *store, const struct hf_query *query,
                            struct hf_page *page);
enum hf_status hf_pool_barrier(struct hf_store *store, uint32_t timeline);
/* maintain.c */
enum hf_status hf_pool_head(struct hf_store *store, struct hf_head *out);
void hf_pool_flush(struct hf_store *store);

/* maintain.c: one step of the maintainer. Returns the pause after it. arg: the pool. */
int64_t hf_pool_maintain_pace(void *arg);

/* The content of `needs` of an operation: its epoch, whether it was tried in a batch and must run
 * alone, since when it waits, and its row. */
enum { HF_POOL_ROW_SHIFT = 52 };
static inline uint64_t hf_pool_ticket(int64_t since_ms, unsigned epoch, unsigned row)
{
    return (uint64_t)row << HF_POOL_ROW_SHIFT | (uint64_t)since_ms << 2 | epoch;
}
static inline int64_t hf_pool_since(const struct hf_op *op)
{
    return (int64_t)((op->needs & ((UINT64_C(1) << HF_POOL_ROW_SHIFT) - 1)) >> 2);
}
/* With the lock. NULL: the operation has no row. */
static inline struct hf_pool_slot *hf_pool_row_slot(struct hf_pool *pool, const struct hf_op *op)
{
    unsigned row = (unsigned)(op->needs >> HF_POOL_ROW_SHIFT);
    return row ? &pool->rows[row] : NULL;
}
static inline unsigned hf_pool_epoch(const struct hf_op *op)
{
    return (unsigned)(op->needs & 1);
}
static inline bool hf_pool_tried(const struct hf_op *op)
{
    return (op->needs & 2) != 0;
}
static inline bool hf_pool_alone(const struct hf_op *op)
{
    return hf_pool_tried(op) || op->request->action == HF_APPLY;
}

/* With the lock. The slot of the operation's order key; NULL if it has none. */
static inline struct hf_pool_slot *hf_pool_order_slot(struct hf_pool *pool, const struct hf_op *op)
{
    uint64_t h = (uint64_t)(uintptr_t)op->order_key * UINT64_C(0x9e3779b97f4a7c15);
    return op->order_key ? &pool->orders[(h >> 32) % HF_POOL_SLOTS] : NULL;
}

#endif
