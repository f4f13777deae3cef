/* entries.h: all entries of a journal in memory, in an order in which they can have been decided.
 *
 * Of files that is the order of the journal. In a database many write at a time: transactions that
 * do not touch each other may take their time and their numbers in different orders. Those that do
 * are ordered by locks, and take both while they have them. So the order of times, and at the same
 * time of numbers, is one in which all can have happened one after the other, and in which nothing
 * stands before what had been answered when it was asked for. */
#ifndef HF_PROOF_CRASH_ENTRIES_H
#define HF_PROOF_CRASH_ENTRIES_H

#include "audit/read.h"

struct crash_entries {
    struct hf_audit_entry *all; /* owned; what they borrow is in `pages` */
    size_t count, room;
    struct hf_arena pages;
};

/* The journal in the directory `dir`, or in the database `postgres` if that is not NULL. out:
 * owned, free with crash_entries_free whatever comes of it. False with `why` if it cannot be read,
 * or if there is damage in it. */
bool crash_entries_read(const char *dir, const char *postgres, struct crash_entries *out,
                        struct hf_error *why);
void crash_entries_free(struct crash_entries *e);

#endif
