/* replicated.h: which transactions the synchronous standbys are known to have.
 *
 * While a transaction waits for its standby, other transactions do not see it. But if the wait is
 * cancelled, its session ends, or the primary crashes and restarts, every transaction sees its
 * rows, although no standby has them. The same holds for a transaction that does not wait at all
 * (synchronous_commit = local). An answer from such a row would be lost with the primary.
 *
 * The log is sent in order. So when one of our commits was replicated, every transaction that was
 * visible before that commit is replicated too. We remember the lowest transaction that was in
 * progress then (a subtransaction has a higher number than its parent): all visible ones below it
 * are replicated. Above it, single transactions are remembered: our own, and those that were waited
 * for.
 *
 * Whether commits wait is a setting. An operator may empty it and set it again while a commit is in
 * progress: that commit has not waited, and PostgreSQL does not report it. Each database session
 * knows when it last read the settings. If that time is the same before and after a commit, the
 * commit has waited; only then do we learn from it.
 *
 * Transaction numbers belong to one timeline: a promoted standby may use numbers again that it had
 * not received. Knowledge from a later timeline replaces the old. Any number of threads may call
 * these functions at once. */
#ifndef HF_STORE_POSTGRES_REPLICATED_H
#define HF_STORE_POSTGRES_REPLICATED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { HF_PG_KNOWN = 1024 };

/* All zero: nothing is known. */
struct hf_pg_replicated {
    _Atomic uint64_t below;              /* private */
    _Atomic uint64_t known[HF_PG_KNOWN]; /* private: by the number's lowest bits */
};

/* The number with its epoch, of a row's xmin: the highest below `next`, which no visible
 * transaction has reached. 0: a frozen one. */
uint64_t hf_pg_xid(uint32_t xmin, uint64_t next);

/* Is this visible transaction known to be replicated? */
bool hf_pg_replicated_has(const struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid);
/* Are all transactions known to be replicated that a snapshot can see, for which `next` and higher
 * ones are in the future? Needed for a missing row: it is unknown which transaction removed it.
 * Checks at most HF_PG_KNOWN numbers. */
bool hf_pg_replicated_all(const struct hf_pg_replicated *r, uint32_t timeline, uint64_t next);
/* Are all visible transactions below `xid` known to be replicated? */
bool hf_pg_replicated_is_below(const struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid);
/* below: a commit was replicated that began after all below `xid` had ended. add: `xid` was
 * replicated. */
void hf_pg_replicated_below(struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid);
void hf_pg_replicated_add(struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid);

#endif
