/* walk.h: from batch to batch, by the rules of doc/FORMAT.md ("Where the journal ends, and what is
 * damage").
 *
 * Two readers share it. The start replays everything behind the newest snapshot and has to find the
 * end (walk.c). What lies before the snapshot has no end to find, only damage: it is verified by
 * the start for a while and then in the background (verify.c). */
#ifndef HF_STORE_JOURNAL_WALK_H
#define HF_STORE_JOURNAL_WALK_H

#include "store/journal/maintain.h"

/* ---- One batch ---- */

/* Does the segment's header say of the batch `head`, if that is its first, what it is? */
bool hf_head_fits(const struct hf_segment *g, const struct hf_batch_head *head);

/* What is wrong with the whole batch `head` (its bytes at `data`) behind this link, in segment `g`?
 * NULL: nothing. Static otherwise. Needs no lock. */
const char *hf_link_check(const struct hf_link *link, const struct hf_segment *g,
                          const struct hf_batch_head *head, const unsigned char *data);
/* What is wrong with a batch whose hash is not the one that the note `closed` says
 * (hf_closed_fits). */
extern const char hf_closed_differs[];
/* Go on behind the batch. */
void hf_link_on(struct hf_link *link, const struct hf_batch_head *head, const unsigned char *data);

/* Is everything from the batch's end to the next block zeros? data: as hf_journal_batch gives
 * it. */
bool hf_padding_clean(const struct hf_batch_head *head, const unsigned char *data);

/* ---- The end ---- */

struct hf_walk {
    struct hf_journal *j;
    uint64_t position; /* of the batch that is expected; after DAMAGE: of what is wrong */
    struct hf_link link;
    uint64_t suspect; /* a batch with something behind it that should be zeros, or 0 */
    int error;        /* something could not be read: what looks like damage may be none */
    const char *what; /* after DAMAGE: static */
    const unsigned char *data;
    struct hf_batch_head head;
};

enum hf_step { HF_STEP_BATCH, HF_STEP_END, HF_STEP_DAMAGE };

/* Find the batch at w->position, or the first one of the next segment. BATCH: w->data and w->head
 * have it, and hf_walk_on goes on behind it. With the lock. */
enum hf_step hf_walk_step(struct hf_walk *w);
void hf_walk_on(struct hf_walk *w);
/* Is there a batch with a higher sequence than the expected one anywhere from `position` on, or a
 * header that only the store can have made of one? Also true if something there cannot be read:
 * w->error. */
bool hf_walk_later(struct hf_walk *w, uint64_t position);

/* Apply the entries of the batch at `position` to the tables; or, if holds_only, note where its
 * holds are. HF_OK, HF_NO_MEMORY or HF_STORE_DAMAGED. */
enum hf_status hf_walk_apply(struct hf_journal *j, uint64_t position,
                             const struct hf_batch_head *head, const unsigned char *data,
                             bool holds_only);

/* Clear everything behind the end of the journal, durably. 0 or a negative errno. */
int hf_tail_clear(struct hf_journal *j);

/* ---- What lies before the snapshot (verify.c) ---- */

/* Begin to verify the batches before info->start. rebuild: holds.idx is made anew from them. */
void hf_verify_begin(struct hf_journal *j, const struct hf_snapshot_info *info, bool rebuild);
/* One step, of at most some megabytes. lock: given up while the bytes are read; NULL while opening.
 * True if there is more to do now; something that could not be read (j->verify.error) is tried
 * again some seconds later. After the last one j->verify.state tells. */
bool hf_verify_step(struct hf_journal *j, const struct hf_lock *lock);
void hf_verify_end(struct hf_journal *j);

#endif
