/* closed.h: a note of how far the journal went when the store was last closed in order.
 *
 * A batch that was cut short by a crash and one that was acknowledged and damaged later look the same if they are
 * the last. The note tells them apart: a journal that ends before its note has lost something. The note is only ever
 * too old (a crash leaves the one before), and an old one is true of what came before it, so it is never removed. */
#ifndef HF_STORE_JOURNAL_CLOSED_H
#define HF_STORE_JOURNAL_CLOSED_H

#include "store/io.h"

#define HF_CLOSED_NAME "closed"
#define HF_CLOSED_SIZE 64

struct hf_closed {
    uint64_t sequence;             /* of the newest batch */
    uint64_t end;                  /* the position behind it */
    uint8_t chain[HF_DIGEST_SIZE]; /* its SHA-256 */
};

/* Write the note durably, beside the old one first. 0 or a negative errno. */
int hf_closed_write(const struct hf_io *io, struct hf_dir *dir, const struct hf_closed *note);

/* False if there is none, or none that is whole. */
bool hf_closed_read(const struct hf_io *io, struct hf_dir *dir, struct hf_closed *note);

#endif
