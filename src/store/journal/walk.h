/* walk.h: walks from batch to batch, by the rules of doc/FORMAT.md ("Where the journal ends, and
 * what is damage").
 *
 * There are two users. A start replays everything after the newest snapshot and has to find the end
 * (walk.c). The part before the snapshot has no end to find, only damage: the start verifies it for
 * a while, then the background thread does (verify.c). */
#ifndef HF_STORE_JOURNAL_WALK_H
#define HF_STORE_JOURNAL_WALK_H

#include "store/journal/maintain.h"

/* ---- One batch ---- */

/* Does the segment's header agree with the batch `head`, if that is the segment's first? */
bool hf_head_fits(const struct hf_segment *g, const struct hf_batch_head *head);

/* Check the complete batch `head` (bytes at `data`) in segment `g` against this link. NULL: right;
 * else the error, static. Needs no lock. */
const char *hf_link_check(const struct hf_link *link, const struct hf_segment *g,
                          const struct hf_batch_head *head, const unsigned char *data);
/* The error of a batch whose hash differs from the note `closed` (hf_closed_fits). */
extern const char hf_closed_differs[];
/* Advance past the batch. */
void hf_link_on(struct hf_link *link, const struct hf_batch_head *head, const unsigned char *data);

/* Are all bytes from the batch's end to the next block zeros? data: from hf_journal_batch. */
bool hf_padding_clean(const struct hf_batch_head *head, const unsigned char *data);

/* ---- The end ---- */

struct hf_walk {
    struct hf_journal *j;
    uint64_t position; /* of the expected batch; after DAMAGE: of the error */
    uint64_t from;     /* sealed headers are searched from here on: the newest snapshot's start */
    struct hf_link link;
    uint64_t suspect; /* a batch with nonzero bytes after it, or 0 */
    int error;        /* something could not be read: apparent damage may be none */
    uint64_t unread;  /* and where that is */
    const char *what; /* after DAMAGE: static */
    const unsigned char *data;
    struct hf_batch_head head;
};

enum hf_step { HF_STEP_BATCH, HF_STEP_END, HF_STEP_DAMAGE };

/* Find the batch at w->position, or the first one of the next segment. BATCH: w->data and w->head
 * have it, and hf_walk_on advances past it. With the lock. */
enum hf_step hf_walk_step(struct hf_walk *w);
void hf_walk_on(struct hf_walk *w);
/* Is there proof that more was durable than what was read (doc/FORMAT.md, rule 2)? A header that
 * only the store can have made, anywhere from w->from on; or, in files without a seal key, a batch
 * with a higher sequence than the expected one from `position` on. Also true if something there
 * cannot be read: w->error. */
bool hf_walk_later(struct hf_walk *w, uint64_t position);

/* Apply the entries of the batch at `position` to the tables; or, if holds_only, collect the
 * positions of its holds. HF_OK, HF_NO_MEMORY or HF_STORE_DAMAGED. */
enum hf_status hf_walk_apply(struct hf_journal *j, uint64_t position,
                             const struct hf_batch_head *head, const unsigned char *data,
                             bool holds_only);

/* Clear everything after the end of the journal, durably. 0 or a negative errno. */
int hf_tail_clear(struct hf_journal *j);

/* ---- Before the snapshot (verify.c) ---- */

/* Begin to verify the batches before info->start. rebuild: rebuild holds.idx from them. */
void hf_verify_begin(struct hf_journal *j, const struct hf_snapshot_info *info, bool rebuild);
/* One step of at most some megabytes. lock: released during reads; NULL while opening. True if
 * there is more to do now; an unreadable part (j->verify.error) is retried some seconds later. At
 * the end j->verify.state has the result. */
bool hf_verify_step(struct hf_journal *j, const struct hf_lock *lock);
void hf_verify_end(struct hf_journal *j);

#endif
