/* kit.h: the n-th allocation, open, write, sync ... fails, for every n, on order.
 *
 * The programs in proof/fault are linked with --wrap for the functions that kit.c names
 * (proof/CMakeLists.txt lists them), so every such call of the program's own objects comes here
 * first: those of the library, the server, the audit and the client, not those that other libraries
 * make inside. zstd is let fail as a whole, SQLite allocates through fault_sqlite, OpenSSL is left
 * alone (tests/net/tls_memory.c has its allocations).
 *
 *     fault_here(true);                          what this process calls from now on is counted
 *     for (unsigned n = 1;; n = fault_next(n)) {
 *         fault_arm(FAULT_WRITE, n, FAULT_ONCE);
 *         ... the call ...
 *         if (fault_lift() == 0)
 *             break;                             it makes fewer than n such calls
 *     }
 *
 * What is ordered stands in memory that forked children share: a test lets the calls of its server
 * fail. A program of another folder that links this file is not affected: nothing is wrapped
 * there. */
#ifndef HF_PROOF_FAULT_KIT_H
#define HF_PROOF_FAULT_KIT_H

#include <stdbool.h>
#include <stdint.h>

enum fault_call {
    FAULT_NONE,
    /* malloc, calloc, realloc, strdup; a stream, a directory's reader; zstd; getaddrinfo */
    FAULT_ALLOC,
    FAULT_OPEN,        /* open, openat */
    FAULT_STAT,        /* fstat */
    FAULT_READ,        /* pread, read */
    FAULT_WRITE,       /* pwrite */
    FAULT_SYNC,        /* fdatasync */
    FAULT_FOLDER_SYNC, /* fsync */
    FAULT_TRUNCATE,
    FAULT_MAP,
    FAULT_RENAME,
    FAULT_REMOVE, /* unlink, unlinkat */
    FAULT_FOLDER, /* mkdir */
    FAULT_LOCK,   /* flock */
    FAULT_RANDOM, /* getrandom */
    FAULT_THREAD, /* pthread_create */
    FAULT_SOCKET, /* socket, bind, listen, connect, epoll_create1, eventfd */
    FAULT_ACCEPT,
    FAULT_RECV,
    FAULT_SEND,
    FAULT_WAIT,  /* epoll_wait, poll */
    FAULT_WATCH, /* epoll_ctl */
    FAULT_SAY,   /* write: to the log, or to wake a thread */
    FAULT_CALLS
};

/* The last two must not be noticed by anybody. */
enum fault_mode {
    FAULT_ONCE,        /* the n-th alone fails */
    FAULT_LASTING,     /* it and all that follow, until it is lifted */
    FAULT_INTERRUPTED, /* the n-th is interrupted by a signal (EINTR) */
    FAULT_SHORT,       /* the n-th moves half of its bytes */
    FAULT_MODES
};

/* Can a call of this kind be interrupted, or be short? */
bool fault_has_mode(enum fault_call call, enum fault_mode mode);
const char *fault_name(enum fault_call call, enum fault_mode mode);

/* Count and let fail what this process calls from now on; or not. */
void fault_here(bool on);
/* Order: the n-th call (1: the next) of this kind fails. */
void fault_arm(enum fault_call call, unsigned n, enum fault_mode mode);
/* The order is withdrawn. How many calls have failed by it. */
unsigned fault_lift(void);
/* The same without withdrawing it. */
unsigned fault_failed(void);

/* Every read of byte `at` of this file fails from now on. path: borrowed until the next call; NULL:
 * none does. */
void fault_sector(const char *path, int64_t at);

/* How many calls of this kind were made since the last fault_forget, failed or not. */
unsigned fault_count(enum fault_call call);
void fault_forget(void);

/* ---- How much is tried ---- */

/* HF_SCALE=full? */
bool fault_full(void);
/* The number behind n: n + 1 in a full run. In a small one the steps grow, and chance decides how
 * large they are. */
unsigned fault_next(unsigned n);
/* Is it this one's turn? One in `of` times, by chance (HF_SEED). */
bool fault_chosen(unsigned of);
/* The same in a small run; in a full one always. */
bool fault_wanted(unsigned of);
/* Count a call that was tried, and a point at which it failed. */
void fault_tried(void);
void fault_point(void);
/* Print how many points in how many calls. */
void fault_report(const char *program);

/* ---- What is left behind ---- */

/* Memory that was allocated while fault_here was on, since the mark. */
uint64_t fault_mark(void);
/* How many blocks since the mark are still there; where the first of them were allocated goes to
 * stderr, as addresses in the program for addr2line. */
unsigned fault_leaked(uint64_t mark);
/* Descriptors and mappings of this process. */
unsigned fault_descriptors(void);
int fault_mappings(void);
/* When this process exits, its leaks since now are counted for fault_leaked_there, which the parent
 * reads. */
void fault_watch_exit(void);
/* -1: the child did not come to its end. */
int fault_leaked_there(void);

/* Naps of this process take no time while faults are on, so that whoever tries again does it at
 * once. */
void fault_no_naps(void);

/* SQLite's memory comes from here too. Before anything else is asked of it. */
void fault_sqlite(void);

#endif
