/* journal.h: segments of a journal made out of an input, in two ways, and inputs made out of
 * segments.
 *
 * Pieces: what stands at the beginnings of blocks, byte for byte; nothing is made right.
 *     u16 n    n bytes, at the next block of the segment
 *     0xffff   the next segment begins
 *     0xfffe   u16 n: the file of this segment is cut off at 16 n bytes
 *
 * Rows: batches, entries and rows, whose lengths, CRCs, positions, sequences and chain are made
 * right, so that what was changed in them gets past the checks of form. A byte says what comes, by
 * its remainder of 5:
 *     0 batch    u16: it comes so many milliseconds after the one before
 *     1 segment
 *     2 entry    u8 action, u8 status, u8 remember, u8 answer, u8 flags, [u64 recorded at], [u64
 *                expires at], [32 bytes digest], u16 sequence, u8 n and the tenant, u8 n and the
 *                key, [u8 kind, u16 n and the record]; flags 1, 2, 4 and 8 say which of the
 *                brackets are there
 *     3 row      u8 kind, u8 flags, u16 n and the image; flag 128 makes the id of a hold fit its
 *                ordinal
 *     4 lie      i8: the batch says that it has so many entries more, i8: the entry says that it
 *                has so many rows more */
#ifndef HF_PROOF_FUZZ_SUPPORT_JOURNAL_H
#define HF_PROOF_FUZZ_SUPPORT_JOURNAL_H

#include "fuzz/support/fuzz.h"
#include "fuzz/support/store.h"

#define FUZZ_SEGMENTS 6 /* at most so many are made */

/* Put the segments that the input tells of into `files`. */
void fuzz_pieces(struct fuzz_input *in, struct fuzz_files *files);
void fuzz_rows(struct fuzz_input *in, struct fuzz_files *files);

/* The inputs that give the journal in `files`, which is whole and plain. Rows: with other
 * positions, if its segments have another size. out: added to. */
void fuzz_pieces_of(const struct fuzz_files *files, struct hf_buffer *out);
void fuzz_rows_of(const struct fuzz_files *files, struct hf_buffer *out);

#endif
