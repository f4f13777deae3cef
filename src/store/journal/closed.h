/* closed.h: a note of a batch that was durable: the newest one at an orderly close, or the first
 * one of a segment.
 *
 * If the last batch is incomplete, a crash may have cut it short, or it was acknowledged and
 * damaged later. The note tells these apart: a journal that ends before its note has lost
 * something. The note may be too old (after a crash), but what it says stays true, so it is never
 * removed. */
#ifndef HF_STORE_JOURNAL_CLOSED_H
#define HF_STORE_JOURNAL_CLOSED_H

#include "store/io.h"

#define HF_CLOSED_NAME "closed"
#define HF_CLOSED_SIZE 64

struct hf_closed {
    uint64_t sequence;             /* of the batch; 0: there is no note */
    uint64_t end;                  /* the position after it */
    uint8_t chain[HF_DIGEST_SIZE]; /* its hash */
};

/* Write the note durably: as a new file, then renamed. 0 or a negative errno. */
int hf_closed_write(const struct hf_io *io, struct hf_dir *dir, const struct hf_closed *note);

/* Read the note. 0: sequence is 0 if there is no note, or it is incomplete. A negative errno: it
 * cannot be read. */
int hf_closed_read(const struct hf_io *io, struct hf_dir *dir, struct hf_closed *note);

/* Does this hash of the batch agree with the note? True if the note names another batch or none. */
bool hf_closed_fits(const struct hf_closed *note, uint64_t sequence,
                    const uint8_t hash[HF_DIGEST_SIZE]);

#endif
