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

/* One step of each: expire overdue holds (gathered: the owner commits), prepare a segment, free
 * what has expired, and write a slice of a snapshot, remove a piece of an old file or compress a
 * segment. Only one thread at a time. Called and returns with the lock held, which is given up
 * during I/O. True if there is more to do now. */
bool hf_journal_maintain(struct hf_journal *j, const struct hf_lock *lock);
/* Why the next segment could not be prepared, if it could not: into out_of_space, out_of_files and
 * storage_failing. */
void hf_journal_blocked(const struct hf_journal *j, struct hf_stats *out);

/* It has failed: is the operator to be told? The first time, and then once a minute at most. */
bool hf_trouble_tell(struct hf_journal *j, struct hf_trouble *t);
/* It works: is the operator to be told? Only if it had failed. */
bool hf_trouble_over(struct hf_trouble *t);

/* What is over at this time may be forgotten. A snapshot that is being written must not miss what
 * is not over at the time that it brings back. */
hf_time hf_journal_forget_until(struct hf_journal *j);

/* ---- Keys (keys.c) ---- */

/* Free tokens whose window has closed, oldest first, by walking the journal's tail; at most `max`
 * entries are looked at. Returns how many were freed. */
size_t hf_journal_expire_tokens(struct hf_journal *j, size_t max);
/* The same in what the cursor has passed because it could not be read: now and then one such range,
 * as far as it can be read now. True if there may be more. */
bool hf_journal_revisit_tokens(struct hf_journal *j, size_t max);
/* The cursor passes the range: note it. False without memory. */
bool hf_journal_pass(struct hf_journal *j, const struct hf_passed *range);
void hf_journal_passed_free(struct hf_journal *j);

/* Make the next segment now, if none is prepared. With the lock, which is kept (opening) or given
 * up (lock not NULL). 0 or a negative errno. */
int hf_journal_prepare(struct hf_journal *j, const struct hf_lock *lock);

/* Rename the file to `as` (ending in .tmp) and remove it in pieces; at once if another is on its
 * way out. Without the lock, by the thread that maintains. hf_journal_shed_end: what is left of it,
 * at once. */
void hf_journal_shed(struct hf_journal *j, const char *name, const char *as);
void hf_journal_shed_end(struct hf_journal *j);

/* ---- Snapshots (snapshot.c) ---- */

#define HF_SNAPSHOT_VERSION 1

enum { HF_PASSED_SIZE = 20 }; /* bytes of a struct hf_passed in the file */

/* Begin one here: everything before this moment is in the tables, nothing flies. */
void hf_snapshot_begin(struct hf_journal *j);
/* One slice. True while something may be left to do. A failure drops it and is noted; the store
 * goes on without. */
bool hf_snapshot_step(struct hf_journal *j, const struct hf_lock *lock);
/* The engine time that the one being written brings back. */
hf_time hf_snapshot_now(const struct hf_journal *j);
/* Give up the one that is being written. */
void hf_snapshot_drop(struct hf_journal *j);

/* What a snapshot says of the journal. */
struct hf_snapshot_info {
    bool whole; /* doc/FORMAT.md; if it is not, nothing here proves anything */
    uint64_t start, end;
    uint64_t next_sequence;
    hf_time now;
    uint8_t chain[HF_DIGEST_SIZE];
    uint64_t token_cursor;
    uint32_t token_cursor_entry;
};
/* Load the snapshot in file `name`. HF_OK; HF_STORE_DAMAGED: the tables cannot be loaded from it,
 * and must be made anew; HF_NO_MEMORY; HF_STORAGE_FAILURE: it cannot be read, be it whole or not,
 * and *error is the negative errno. info: out. */
enum hf_status hf_snapshot_load(struct hf_journal *j, const char *name,
                                struct hf_snapshot_info *info, int *error);
/* The same without loading anything. HF_OK: it is whole; HF_STORE_DAMAGED: it is not. */
enum hf_status hf_snapshot_look(struct hf_journal *j, const char *name,
                                struct hf_snapshot_info *info, int *error);

/* ---- Rebuilding parts of holds.idx (reindex.c) ---- */

/* One step of rebuilding the parts that are not right, by reading the journal from its beginning.
 * With the lock, which is kept; a step is short. False if there is nothing to do now. */
bool hf_reindex_step(struct hf_journal *j);
void hf_reindex_drop(struct hf_journal *j);

void hf_snapshot_name(uint64_t start, const char *suffix, char out[HF_SEGMENT_NAME_SIZE]);

#endif
