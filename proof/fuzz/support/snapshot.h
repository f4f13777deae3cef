/* snapshot.h: snapshots out of inputs, and inputs out of snapshots.
 *
 * An input is a run of blocks, each u8 type, u16 count, u16 n and n bytes of payload, which get
 * their CRCs. Of the last block (type 5) the first 32 bytes are the payload's numbers; the count of
 * blocks and the SHA-256 are made right. */
#ifndef HF_PROOF_FUZZ_SUPPORT_SNAPSHOT_H
#define HF_PROOF_FUZZ_SUPPORT_SNAPSHOT_H

#include "base/buffer.h"
#include "holdfast.h"

/* out: added to. */
void fuzz_snapshot_build(struct hf_bytes input, struct hf_buffer *out);
/* The input that gives the snapshot `file`, which is whole and small. */
void fuzz_snapshot_of(struct hf_bytes file, struct hf_buffer *out);

/* Make the CRCs of a compressed segment right, as far as its frames can be found. */
void fuzz_pack_fix(unsigned char *file, size_t size);

#endif
