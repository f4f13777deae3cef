/* closed.h: a note of a batch that was durable: the newest one at an orderly close, or the first
 * one of a segment, or the newest one when the note was made. And of which store it is.
 *
 * If the last batch is incomplete, a crash may have cut it short, or it was acknowledged and
 * damaged later. The note tells these apart: a journal that ends before its note has lost
 * something. The note may be too old (after a crash), but what it says stays true, so it is never
 * removed. */
#ifndef HF_STORE_JOURNAL_CLOSED_H
#define HF_STORE_JOURNAL_CLOSED_H

#include "store/io.h"
#include "store/journal/format.h"

#define HF_CLOSED_NAME "closed"
#define HF_CLOSED_SIZE 136
#define HF_CLOSED_SIZE_1 64 /* without the store: all that earlier programs wrote */

struct hf_closed {
    uint64_t sequence;             /* of the batch; 0: there is no note */
    uint64_t end;                  /* the position after it */
    uint8_t chain[HF_DIGEST_SIZE]; /* its hash */
    bool names_store;              /* false: an earlier program wrote the note */
    uint8_t store[HF_DIGEST_SIZE]; /* of the keys but the seal key */
    uint8_t seal[HF_DIGEST_SIZE];
};

/* Fill in which store it is. keys: borrowed. */
void hf_closed_name(struct hf_closed *note, const struct hf_store_keys *keys);
/* Are these the keys of the store that the note names, if it names one? sealed: the seal key is
 * known. */
bool hf_closed_is_of(const struct hf_closed *note, const struct hf_store_keys *keys, bool sealed);

/* Write the note durably: as a new file, then renamed. 0 or a negative errno. */
int hf_closed_write(const struct hf_io *io, struct hf_dir *dir, const struct hf_closed *note);

/* Read the note. 0: sequence is 0 if there is no note, or it is incomplete. A negative errno: it
 * cannot be read. */
int hf_closed_read(const struct hf_io *io, struct hf_dir *dir, struct hf_closed *note);

/* Does this hash of the batch agree with the note? True if the note names another batch or none. */
bool hf_closed_fits(const struct hf_closed *note, uint64_t sequence,
                    const uint8_t hash[HF_DIGEST_SIZE]);

#endif
