/* pool.h: the store in a database: sessions, the threads that run them, and what they share. Only
 * the files of this store include it.
 *
 *   submit ──▶ queue ──▶ a worker takes what waits ──▶ one transaction ──▶ done, on the worker's thread
 *
 * Each worker has a session (session.h). Two work at a time as a rule: while one waits for its
 * commit, the other takes what came meanwhile. The others come in only when a batch takes long, so
 * that a row that stays locked delays only the requests that need it. Operations with the same order key
 * are never in two batches at once. Tenants take turns.
 *
 * While the database is away, operations wait for it for some seconds and are then answered
 * HF_STORAGE_FAILURE. After COMMIT was sent, the answer is given when the session has found out
 * what became of it, or is HF_INDETERMINATE.
 *
 *   pool.c      opening, closing, calls that wait
 *   queue.c     what waits, and which worker takes it
 *   worker.c    a worker: batches, retries, doubt
 *   guard.c     guards while the database is away
 *   stuck.c     rows that stay locked by another transaction
 *   confirm.c   waiting until the standbys have what was seen
 *   maintain.c  maintenance and figures
 *   list.c      lists */
#ifndef HF_STORE_POSTGRES_POOL_H
#define HF_STORE_POSTGRES_POOL_H

#include "base/worker.h"
#include "store/postgres/batch.h"
#include "store/record/result.h"
#include "store/store.h"

/* WORKERS: sessions that write. One of them at a time, so that what comes meanwhile makes the next
 * batch a large one, whose statements cost hardly more than those of a small one; BUSY while FULL
 * operations wait; all, if a batch takes longer than SLOW_MS. */
enum {
    HF_POOL_WORKERS = 4,
    HF_POOL_BUSY = 2,
    HF_POOL_FULL = 24,
    HF_POOL_SLOW_MS = 30,
    HF_POOL_SLOTS = 4096
};

/* How long operations wait for a database that is away; how long for the fate of a commit; and how
 * long for a row that somebody else keeps locked. */
enum { HF_POOL_AWAY_MS = 4000, HF_POOL_DOUBT_MS = 10000, HF_POOL_LOCKED_MS = 6000 };

/* A row that stayed locked. */
enum { HF_POOL_STUCK = 64 };
struct hf_pool_stuck {
    uint64_t hash; /* 0: none */
    int64_t until_ms;
};

/* What waits of one tenant. */
struct hf_pool_part {
    uint64_t hash; /* of the tenant, under the store's secret */
    struct hf_op *first, **end;
    size_t queued;
    struct hf_pool_part *chain;       /* the next with the same hash, or the next that is unused */
    struct hf_pool_part *next, *prev; /* in the ring of those who wait */
};

/* SMALL: a tenant with more waiting operations is a large one. SHARE: so many of one tenant are in
 * a batch. MIXED_MS: for how long after two tenants were seen there is more than one. */
enum {
    HF_POOL_PARTS = 1024,
    HF_POOL_PART_BUCKETS = 256,
    HF_POOL_SMALL = 64,
    HF_POOL_SHARE = 512,
    HF_POOL_MIXED_MS = 600000
};

struct hf_pool_queue {
    struct hf_pool_part *turn; /* the ring begins with whose turn it is; NULL: nobody waits */
    size_t waiting;            /* how many it has */
    bool large_next;           /* where both wait, it is the turn of large ones */
    unsigned bulk_busy;        /* how many workers have a batch of large ones */
    uint64_t tenant;           /* who submitted last, by hash; 0: nobody */
    int64_t mixed_until_ms;
    struct hf_pool_part *unused, *buckets[HF_POOL_PART_BUCKETS];
    struct hf_pool_part parts[HF_POOL_PARTS],
        rest; /* rest: of all tenants for whom there is none */
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
    int64_t begun_ms;      /* of its batch; 0: idle */
    int64_t head_noted_ms; /* when its chain was last told to the operator; 0: never */
    bool answering;        /* its batch is over; it tells those who asked */
    bool stuck;            /* it waits for a row that is known to be locked */
    bool tried;            /* it has one that was tried before */
    bool bulk;             /* it has a batch of tenants that had many waiting */
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

/* Empty commits, numbered from 1, that tell what the standbys have. */
struct hf_pool_confirm {
    pthread_mutex_t lock;
    pthread_cond_t wake, confirmed;
    uint64_t asked, begun,
        done;        /* the highest that is waited for, that was begun, that was answered */
    uint64_t proven; /* and that has waited for the standbys: not if they were given up meanwhile */
    unsigned waiting;  /* calls */
    uint32_t timeline; /* of `done` */
    int64_t since_ms;  /* when the first was begun behind `done`; 0: none is under way */
    int64_t
        /* the same for those that the database has taken; 0: it has answered, or is away */
        silent_since_ms;
    bool stopping, started;
    bool said;              /* that the standbys confirm nothing */
    int socket;             /* owned: of the connection, for hf_pool_confirm_stop; -1: none yet */
    int left_behind;        /* process of the database that may wait for a standby yet; 0: none */
    uint32_t left_timeline; /* of that database */
    struct hf_pg_session session; /* the thread's alone */
    pthread_t thread;
};

struct hf_pool {
    struct hf_store store; /* what the engine sees of it */
    struct hf_store_host host;
    struct hf_options options;
    char *conninfo; /* owned */
    struct hf_pg_shared shared;

    pthread_mutex_t lock;
    pthread_cond_t rest; /* something was answered */
    struct hf_pool_queue queue;
    size_t queued, in_flight;
    unsigned busy;
    unsigned watchers; /* idle ones who look again soon, for as long as others are busy */
    bool stopping;
    struct hf_pool_slot orders[HF_POOL_SLOTS];
    struct hf_pool_slot rows
        [HF_POOL_SLOTS]; /* by hash: two batches at once would be in each other's way at a row */
    struct hf_pool_stuck stuck[HF_POOL_STUCK];
    int64_t stuck_until_ms; /* all of them are over then; 0: there was none */
    bool stuck_busy;        /* a worker has one who waits for such a row */
    unsigned tried_busy;    /* how many have one that was tried before */
    unsigned epoch;         /* 0 or 1: what is submitted now belongs to it */
    uint64_t unanswered[2]; /* by epoch */
    bool flushing;

    int64_t away_since_ms; /* 0: the database is there */
    bool away_said;        /* and the operator was told */
    bool refused;          /* it is there and refuses to write */
    bool is_full;          /* and that is for want of room */
    struct hf_pool_complaint {
        char line[480];
        int64_t said_ms;
    } complaints[4];  /* what was said about that, newest first */
    bool behind_said; /* that the clock was set back */
    struct hf_stats stats;

    struct hf_pool_guards *guards; /* owned */
    struct hf_pool_confirm confirm;

    struct hf_pool_worker workers[HF_POOL_WORKERS];
    /* A lock for each, because the sweeper waits for standbys, and the reader must not wait for the
     * sweeper. */
    pthread_mutex_t sweeper_lock, reader_lock;
    struct hf_pg_session sweeper, reader;
    int64_t sweeping_since_ms; /* with `lock`; 0: it is not at work */
    struct hf_worker maintainer;
    unsigned ticks; /* its steps */
};

static inline struct hf_pool *hf_pool_of(struct hf_store *store)
{
    return (struct hf_pool *)store;
}

/* Without the lock. The session could not reach the database, or reached it. While the standbys are
 * silent, nothing is said: the session failed because it waited for a standby, and the database is
 * there. */
void hf_pool_away(struct hf_pool *pool, const char *why);
void hf_pool_back(struct hf_pool *pool);
/* Without the lock. It answered with a refusal, which is in `conn`; NULL: it takes writes again.
 * Only one that has a SQLSTATE (or HF_PG_UNRULED) counts as a refusal of the database; every one is
 * said. */
void hf_pool_refused(struct hf_pool *pool, const struct hf_pg_conn *conn);
void hf_pool_note(struct hf_pool *pool, int level, const char *line);
/* Tell the operator the head of the worker's chain, if it has committed something: at the first
 * batch, then every hour, and if `now`. By its own thread, or when that has ended. */
void hf_pool_note_head(struct hf_pool_worker *worker, bool now);
/* worker.c. Without the lock: what the operator should be told about the database's clock. */
void hf_pool_clock_note(struct hf_pool *pool);

/* queue.c. With the lock. Put linked operations into the queue. */
void hf_pool_queue_init(struct hf_pool_queue *queue);
void hf_pool_queue_add(struct hf_pool *pool, struct hf_op *first, int64_t now);
/* Is there more than one tenant? */
bool hf_pool_queue_mixed(const struct hf_pool *pool, int64_t now);
/* False: it is not the worker's turn, or there is nothing for it. True: it has a batch, which is
 * empty if all that it may have is behind operations that must wait. */
bool hf_pool_take(struct hf_pool_worker *worker);
/* Give the batch back to the front of the queue, each operation to be tried alone. */
void hf_pool_give_back(struct hf_pool_worker *worker);
/* The operation's order key and row are nobody's any more. */
void hf_pool_slots_give_back(struct hf_pool *pool, const struct hf_op *op);

/* worker.c. What the database refused last: is it likely that a single operation, or a single row,
 * is the reason? Data that the database does not take; a row changed by hand; a value that is too
 * large for an index. */
bool hf_pool_is_about_one(const struct hf_pg_conn *conn);
/* worker.c: the worker's thread. arg: the worker. */
void *hf_pool_worker_run(void *arg);
/* With the lock. Wake one who is idle: always the same if possible, whose part of the database is
 * warm, and one that has a connection. */
void hf_pool_wake(struct hf_pool *pool);
/* guard.c. */
struct hf_pool_guards *hf_pool_guards_make(void);
void hf_pool_guards_free(struct hf_pool_guards *known);
/* Without the lock. Remember the rules of the guards that a batch has read. */
void hf_pool_guards_learn(struct hf_pool *pool, const struct hf_pg_set *set);
/* Without the lock. Remember the rules of all guards. session: between batches, and nobody else's
 * meanwhile. */
enum hf_pg_outcome hf_pool_guards_read(struct hf_pool *pool, struct hf_pg_session *session);
/* Without the lock. Answer a question to a guard whose store cannot be asked, by its rule. plan,
 * now: out. False: it is no such question, or the guard was never seen. */
bool hf_pool_guards_answer(struct hf_pool *pool, const struct hf_request *request,
                           struct hf_plan *plan, hf_time *now);

/* stuck.c. Which row the request needs besides its key, as an index into `rows`; 0: none, or it is
 * not known. */
unsigned hf_pool_row(const struct hf_request *request);
/* With the lock. Does the operation need a row that stayed locked lately? */
bool hf_pool_is_stuck(struct hf_pool *pool, const struct hf_op *op);
/* Without the lock. What it needs stayed locked; what it needed is free again. by_guard: it was the
 * guard that it asks, not the identity. */
void hf_pool_stuck_learn(struct hf_pool *pool, const struct hf_op *op, bool by_guard);
void hf_pool_stuck_forget(struct hf_pool *pool, const struct hf_op *op);

/* confirm.c. Without any lock. Wait until the standbys have all that could be seen in the database
 * before. timeline: of the connection that saw it. proven: out, may be NULL: they do; else none is
 * wanted any more. False: not in time, or it was another primary that confirmed. */
bool hf_pool_confirm(struct hf_pool *pool, uint32_t timeline, bool *proven);
/* Without any lock. For how long the standbys have confirmed nothing; 0: they do, or for less than
 * a call waits, or nobody knows. */
uint64_t hf_pool_silent_ms(struct hf_pool *pool);
/* With the pool's lock, or none. Is a commit of its own waiting for them? */
bool hf_pool_is_silent(struct hf_pool *pool);
/* make, free: of its members; false without memory. start, stop: its thread. */
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
void hf_pool_flush(struct hf_store *store);

/* maintain.c: a step of the maintainer, and how long it pauses then. arg: the pool. */
int64_t hf_pool_maintain_pace(void *arg);

/* What an operation carries in `needs`: its epoch, whether it was tried in a batch and is to be
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
/* With the lock. NULL: it has none. */
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

/* With the lock. The place of its order key in the table; NULL for none. */
static inline struct hf_pool_slot *hf_pool_order_slot(struct hf_pool *pool, const struct hf_op *op)
{
    uint64_t h = (uint64_t)(uintptr_t)op->order_key * UINT64_C(0x9e3779b97f4a7c15);
    return op->order_key ? &pool->orders[(h >> 32) % HF_POOL_SLOTS] : NULL;
}

#endif
