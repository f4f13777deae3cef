/* maintain.h: the work beside the requests, in bounded steps. */
#ifndef HF_STORE_JOURNAL_MAINTAIN_H
#define HF_STORE_JOURNAL_MAINTAIN_H

#include "store/journal/journal.h"

/* The owner's lock, which a step gives up while it does I/O. */
struct hf_lock {
    void (*lock)(void *arg);
    void (*unlock)(void *arg);
    void *arg;
};

/* One step of each: expire overdue holds (gathered: the owner commits), prepare a segment, free what has expired,
 * and write a slice of a snapshot, remove a piece of an old file or compress a segment. Only one thread at a time.
 * Called and returns with the lock held, which is given up during I/O. True if there is more to do now. */
bool hf_journal_maintain(struct hf_journal *j, const struct hf_lock *lock);

/* Free tokens whose window has closed, oldest first, by walking the journal's tail; at most `max` entries
 * are looked at. Returns how many were freed. */
size_t hf_journal_expire_tokens(struct hf_journal *j, size_t max);

/* Make the next segment now, if none is prepared. With the lock, which is kept (opening) or given up
 * (lock not NULL). 0 or a negative errno. */
int hf_journal_prepare(struct hf_journal *j, const struct hf_lock *lock);

/* Rename the file to `as` (ending in .tmp) and remove it in pieces; at once if another is on its way out.
 * Without the lock, by the thread that maintains. hf_journal_shed_end: what is left of it, at once. */
void hf_journal_shed(struct hf_journal *j, const char *name, const char *as);
void hf_journal_shed_end(struct hf_journal *j);

/* ---- Snapshots (snapshot.c) ---- */

/* Begin one here: everything before this moment is in the tables, nothing flies. */
void hf_snapshot_begin(struct hf_journal *j);
/* One slice. True while something may be left to do. A failure drops it and is noted; the store goes on without. */
bool hf_snapshot_step(struct hf_journal *j, const struct hf_lock *lock);
/* The engine time that the one being written brings back. */
hf_time hf_snapshot_now(const struct hf_journal *j);
/* Give up the one that is being written. */
void hf_snapshot_drop(struct hf_journal *j);

/* Load the snapshot in file `name`. HF_OK; HF_STORE_DAMAGED: it cannot be used, and the tables must be made
 * anew; HF_NO_MEMORY. start, end: out. */
struct hf_snapshot_info {
    uint64_t start, end;
    uint64_t next_sequence;
    hf_time now;
    uint8_t chain[HF_DIGEST_SIZE];
    uint64_t token_cursor;
};
enum hf_status hf_snapshot_load(struct hf_journal *j, const char *name, struct hf_snapshot_info *info);

void hf_snapshot_name(uint64_t start, const char *suffix, char out[HF_SEGMENT_NAME_SIZE]);

#endif
