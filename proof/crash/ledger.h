/* ledger.h: what one client of the crash tests asked for and was told, kept on its own side.
 *
 * A file that only grows, a line a fact, its parts separated by tabs, written before a request
 * leaves and after an answer came. It outlives everyone and is read by the judge, and by a person
 * when something is wrong:
 *
 *   +  number  kind  sequence  subject  fields        this is going to be asked
 *   >  number  how  time                              it leaves: s alone, p pipelined, b in a batch
 *   =  number  status  replayed  time  body           this was answered; "not now" may be a doubt
 *   ?  number                                         the server went away without a word
 *   f  number  fence                                  a claim in doubt was begun, with this fence
 *   !  sentence                                       what is wrong
 *
 * A time is in nanoseconds of CLOCK_MONOTONIC, taken before the request leaves and when the answer
 * has come: what was asked for happened between the two. */
#ifndef HF_PROOF_CRASH_LEDGER_H
#define HF_PROOF_CRASH_LEDGER_H

#include "crash/op.h"

#include <stdio.h>

struct crash_ledger {
    FILE *file; /* NULL: it was read back */
    unsigned client;
    struct crash_op **ops; /* owned, by number */
    size_t count, room;
};

/* A new one. False if the file cannot be made. */
bool crash_ledger_make(struct crash_ledger *l, const char *path, unsigned client);
/* One that was written before: the operations with their first answers. False, with why in
 * `complaint`, if it cannot be read or does not make sense. */
bool crash_ledger_read(struct crash_ledger *l, const char *path, unsigned client, char *complaint,
                       size_t size);
void crash_ledger_free(struct crash_ledger *l);

/* Note it. op: copied; numbered here. The operation in the ledger, which stays where it is. */
struct crash_op *crash_ledger_add(struct crash_ledger *l, const struct crash_op *op);
void crash_ledger_sent(struct crash_ledger *l, struct crash_op *op, char how);
void crash_ledger_answered(struct crash_ledger *l, struct crash_op *op, int status, bool replayed,
                           const char *body);
/* Does the answer say "not now"? 503, or "seen" by the rule of a guard whose store is away. */
bool crash_ledger_put_off(int status, const char *body);
void crash_ledger_doubted(struct crash_ledger *l, struct crash_op *op);
void crash_ledger_fenced(struct crash_ledger *l, struct crash_op *op, uint64_t fence);
void crash_ledger_says(struct crash_ledger *l, const char *sentence);
/* Everything so far is in the file. */
void crash_ledger_flush(struct crash_ledger *l);

#endif
