/* batch.h: is there a whole batch at this place? Written from doc/FORMAT.md, independently of the
 * store's code. */
#ifndef HF_AUDIT_BATCH_H
#define HF_AUDIT_BATCH_H

#include "audit/segment.h"
#include "base/buffer.h"

#define HF_AUDIT_BATCH_HEAD 112  /* bytes of a header */
#define HF_AUDIT_BATCH_HEAD_1 80 /* in version 1 */
#define HF_AUDIT_BATCH_MAX (UINT32_C(16) << 20)

struct hf_audit_batch_head {
    uint32_t version, size; /* of the layout; of the header in bytes */
    uint32_t length, count;
    uint64_t sequence;
    hf_time now;
    uint8_t chain[HF_DIGEST_SIZE];
};

enum hf_audit_batch_state {
    HF_AUDIT_BATCH_WHOLE,
    HF_AUDIT_BATCH_NONE,      /* nothing that looks like a batch */
    HF_AUDIT_BATCH_UNSEALED,  /* looks like a batch, but the header's CRC or seal is wrong */
    HF_AUDIT_BATCH_ELSEWHERE, /* its header has another position */
    HF_AUDIT_BATCH_CUT        /* the header is right, but the entries do not match it */
};

/* hf_audit_batch_read: the batch at `offset` of the segment, whose first byte is at position
 * `base`. seal: the store's key, NULL if not known: then a batch whose seal cannot be checked is
 * accepted, also in a segment without a header. head: out, for WHOLE and CUT. bytes: its bytes, for
 * WHOLE; bytes->failed if out of memory. */
enum hf_audit_batch_state hf_audit_batch_read(struct hf_audit_segment *seg, uint64_t base,
                                              uint64_t offset, const struct hf_sipkey *seal,
                                              struct hf_audit_batch_head *head,
                                              struct hf_buffer *bytes);

#define HF_AUDIT_SECTOR 512 /* the least that a disk writes; no header is longer */

/* The sequence in a sealed header in the sector at `b`, of a batch or of a segment of version 2,
 * whatever position it names; 0: there is none. position: out, the one that it names: of the batch,
 * or of the segment's first byte. */
uint64_t hf_audit_sealed_sequence(const unsigned char *b, const struct hf_sipkey *seal,
                                  uint64_t *position);
/* The hash of a whole batch, which the next batch has as its chain. */
void hf_audit_batch_hash(const struct hf_audit_batch_head *head, const unsigned char *batch,
                         uint8_t out[HF_DIGEST_SIZE]);

#endif
