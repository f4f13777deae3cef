/* replicated.h: which transactions the synchronous standbys are known to have.
 *
 * A transaction that waits for its standby is not yet seen by others. But once its wait is
 * cancelled, its session ended, or the primary has crashed and started again, everybody sees what
 * it wrote, although no standby has it; and so they do with one that did not wait at all
 * (synchronous_commit = local). A server that answers from such a row tells what is lost with the
 * primary.
 *
 * A commit of our own that was replicated says more than that it was: the log is sent in order, so
 * every transaction that could be seen before that commit is replicated as well. What is remembered
 * of that is the lowest transaction that was still under way then (a subtransaction has a higher
 * number than the one that it belongs to): all below it that can be seen at all are replicated.
 * Above it single ones are remembered: our own, and those that were waited for.
 *
 * Whether commits wait is a setting. It may be emptied and set again while a commit is under way,
 * or waits: that one then has waited for nobody, and PostgreSQL does not say so. Each session of it
 * knows when it has read the settings; if that is the same before a commit and behind it, the
 * commit has waited, and only then is anything learned from it.
 *
 * Numbers are those of one timeline: a standby that was promoted may give those that it had not
 * heard of to others. What is learned on a later timeline takes the place of what was known. Any
 * number of threads may ask and learn at once. */
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

/* The number with its epoch, of a row's xmin: the highest below `next`, which no transaction that
 * can be seen has reached. 0: one that is older than all numbers. */
uint64_t hf_pg_xid(uint32_t xmin, uint64_t next);

/* Is the transaction, which can be seen, known to be replicated? */
bool hf_pg_replicated_has(const struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid);
/* Are all transactions that a snapshot can see, to which `next` and those behind it are in the
 * future, known to be replicated? That is what is asked of a row that is not there: who removed it
 * is not known. Looks at no more than HF_PG_KNOWN numbers. */
bool hf_pg_replicated_all(const struct hf_pg_replicated *r, uint32_t timeline, uint64_t next);
/* Are all transactions below `xid` that can be seen known to be replicated? */
bool hf_pg_replicated_is_below(const struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid);
/* A commit was replicated, before which all below `xid` had ended; or this one was. */
void hf_pg_replicated_below(struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid);
void hf_pg_replicated_add(struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid);

#endif
