/* closed.h: a note of a batch that was durable: the newest one at an orderly close, or the first
 * one of a segment.
 *
 * A batch that was cut short by a crash and one that was acknowledged and damaged later look the
 * same if they are the last. The note tells them apart: a journal that ends before its note has
 * lost something. The note is only ever too old (a crash leaves the one before), and an old one is
 * true of what came before it, so it is never removed. */
#ifndef HF_STORE_JOURNAL_CLOSED_H
#define HF_STORE_JOURNAL_CLOSED_H

#include "store/io.h"

#define HF_CLOSED_NAME "closed"
#define HF_CLOSED_SIZE 64

struct hf_closed {
    uint64_t sequence;             /* of the batch; 0: there is no note */
    uint64_t end;                  /* the position behind it */
    uint8_t chain[HF_DIGEST_SIZE]; /* its hash */
};

/* Write the note durably, beside the old one first. 0 or a negative errno. */
int hf_closed_write(const struct hf_io *io, struct hf_dir *dir, const struct hf_closed *note);

/* 0: note has it, with sequence 0 if there is none, or none that is whole. A negative errno: it
 * cannot be read, and may say anything. */
int hf_closed_read(const struct hf_io *io, struct hf_dir *dir, struct hf_closed *note);

/* The batch of this sequence has this hash: is that what the note says, if it names the batch? */
bool hf_closed_fits(const struct hf_closed *note, uint64_t sequence,
                    const uint8_t hash[HF_DIGEST_SIZE]);

#endif
