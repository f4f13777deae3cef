/* maintain.h: background work, in bounded steps. */
#ifndef HF_STORE_JOURNAL_MAINTAIN_H
#define HF_STORE_JOURNAL_MAINTAIN_H

#include "store/journal/journal.h"

/* The owner's lock, which a step releases during I/O. */
struct hf_lock {
    void (*lock)(void *arg);
    void (*unlock)(void *arg);
    void *arg;
};

/* One step of each: expire overdue holds (gathered: the owner commits), prepare a segment, free
 * what has expired, and write a slice of a snapshot, remove a piece of an old file or compress a
 * segment. Only one thread at a time. Called and returns with the lock held; the lock is released
 * during I/O. True if there is more to do now. */
bool hf_journal_maintain(struct hf_journal *j, const struct hf_lock *lock);
/* Why the next segment could not be prepared, if so: sets out_of_space, out_of_files and
 * storage_failing. */
void hf_journal_blocked(const struct hf_journal *j, struct hf_stats *out);

/* It has failed: log it? The first time, and then at most once a minute. */
bool hf_trouble_tell(struct hf_journal *j, struct hf_trouble *t);
/* It works: log it? Only if it had failed. */
bool hf_trouble_over(struct hf_trouble *t);

/* Rows that have expired at this time may be freed. A snapshot that is being written must contain
 * what has not expired at the snapshot's own time. */
hf_time hf_journal_forget_until(struct hf_journal *j);

/* ---- Keys (keys.c) ---- */

/* Free keys whose window has closed, oldest first, by walking the journal's tail; looks at most at
 * `max` entries. Returns how many were freed. */
size_t hf_journal_expire_tokens(struct hf_journal *j, size_t max);
/* The same for unreadable batches that the cursor has passed: from time to time one range, as far
 * as it is readable now. True if there may be more. */
bool hf_journal_revisit_tokens(struct hf_journal *j, size_t max);
/* Note a range that the cursor passes. False if out of memory. */
bool hf_journal_pass(struct hf_journal *j, const struct hf_passed *range);
void hf_journal_passed_free(struct hf_journal *j);

/* Make the next segment now, if none is prepared. With the lock, which is kept (opening: lock is
 * NULL) or released meanwhile. 0 or a negative errno. */
int hf_journal_prepare(struct hf_journal *j, const struct hf_lock *lock);

/* Rename the file to `as` (ending in .tmp) and remove it in pieces; at once if another removal is
 * in progress. Without the lock, by the maintaining thread. hf_journal_shed_end: remove the rest at
 * once. */
void hf_journal_shed(struct hf_journal *j, const char *name, const char *as);
void hf_journal_shed_end(struct hf_journal *j);

/* ---- Snapshots (snapshot.c) ---- */

#define HF_SNAPSHOT_VERSION 1

enum { HF_PASSED_SIZE = 20 }; /* size of a struct hf_passed in the file */

/* Begin one here: the tables contain everything before this moment, and no batch is in flight. */
void hf_snapshot_begin(struct hf_journal *j);
/* Write one slice. True while there may be more to do. A failure drops the snapshot and is logged;
 * the store continues without it. */
bool hf_snapshot_step(struct hf_journal *j, const struct hf_lock *lock);
/* The engine time of the snapshot that is being written. */
hf_time hf_snapshot_now(const struct hf_journal *j);
/* Drop the snapshot that is being written. */
void hf_snapshot_drop(struct hf_journal *j);

/* What a snapshot contains about the journal. */
struct hf_snapshot_info {
    bool whole; /* complete (doc/FORMAT.md); if not, nothing here can be trusted */
    uint64_t start, end;
    uint64_t next_sequence;
    hf_time now;
    uint8_t chain[HF_DIGEST_SIZE];
    uint64_t token_cursor;
    uint32_t token_cursor_entry;
};
/* Load the snapshot in file `name`. HF_OK; HF_STORE_DAMAGED: unusable, and the tables must be
 * initialized again; HF_NO_MEMORY; HF_STORAGE_FAILURE: it cannot be read, *error is the negative
 * errno. info: out. */
enum hf_status hf_snapshot_load(struct hf_journal *j, const char *name,
                                struct hf_snapshot_info *info, int *error);
/* The same without loading. HF_OK: it is complete; HF_STORE_DAMAGED: it is not. */
enum hf_status hf_snapshot_look(struct hf_journal *j, const char *name,
                                struct hf_snapshot_info *info, int *error);

/* ---- Rebuilding parts of holds.idx (reindex.c) ---- */

/* One short step of rebuilding wrong parts, by reading the journal from its beginning. With the
 * lock, which is kept. False if there is nothing to do now. */
bool hf_reindex_step(struct hf_journal *j);
void hf_reindex_drop(struct hf_journal *j);

void hf_snapshot_name(uint64_t start, const char *suffix, char out[HF_SEGMENT_NAME_SIZE]);

#endif
