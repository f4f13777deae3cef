/* format.h: segments and batches (doc/FORMAT.md), to and from structs. The entries of a batch are
 * in store/record/entry.h. No I/O, no allocation. */
#ifndef HF_STORE_JOURNAL_FORMAT_H
#define HF_STORE_JOURNAL_FORMAT_H

#include "base/hash.h"
#include "store/record/entry.h"

#define HF_FORMAT_VERSION 2 /* the version written; version 1 is read too */
#define HF_BLOCK 4096
#define HF_SECTOR 512 /* the least that a disk writes; no header is longer */

/* ---- Segment header ---- */

#define HF_SEGMENT_HEAD 160   /* bytes to read, for every version */
#define HF_SEGMENT_HEAD_1 140 /* bytes of version 1 */

struct hf_store_keys {
    uint8_t store_id[16];
    struct hf_sipkey table, id;
    struct hf_sipkey seal; /* the secret behind every tag; zeros in a store of version 1 */
};

struct hf_segment_head {
    uint32_t version;
    uint64_t number, base, size, first_sequence;
    hf_time created_at;
    struct hf_store_keys keys;
    uint8_t chain[HF_DIGEST_SIZE];
};

/* Encode in HF_FORMAT_VERSION; head->version is ignored. */
void hf_segment_head_encode(const struct hf_segment_head *head, unsigned char out[HF_BLOCK]);

enum hf_head_state { HF_HEAD_GOOD, HF_HEAD_NONE, HF_HEAD_NEWER };
/* `in` has HF_SEGMENT_HEAD bytes. NONE: no header (unused, foreign or damaged). NEWER: only
 * head->version is set. The tag is checked with the key beside it; the caller compares that key
 * with the store's. */
enum hf_head_state hf_segment_head_decode(const unsigned char *in, struct hf_segment_head *head);

/* ---- Batch header ---- */

#define HF_BATCH_MAGIC_1 0x31424648U
#define HF_BATCH_MAGIC 0x32424648U
#define HF_BATCH_HEAD 112
#define HF_BATCH_MAX (16 << 20) /* no batch is longer */
#define HF_BATCH_HEAD_1 80      /* in version 1, the smallest of any version */

struct hf_batch_head {
    uint32_t version; /* of its layout: the version of its segment */
    uint32_t length, count;
    uint64_t sequence, position;
    hf_time now;
    uint8_t chain[HF_DIGEST_SIZE];
};

/* Where the entries begin. */
static inline uint32_t hf_batch_head_size(uint32_t version)
{
    return version == 1 ? HF_BATCH_HEAD_1 : HF_BATCH_HEAD;
}

/* Fill in the header of the batch in `batch`, whose entries are in place. Makes both tags, with the
 * same key. 0, or -EIO if libcrypto fails. */
HF_MUST_USE int hf_batch_seal(const struct hf_batch_head *head, const struct hf_sipkey *seal,
                              struct hf_gmac *gmac, unsigned char *batch);

/* The expected form of a batch: that of a segment of this version. seal: borrowed; NULL: the tag is
 * not checked. Then a match shows that there was a batch, but nothing in it can be trusted. */
struct hf_batch_form {
    uint32_t version;
    const struct hf_sipkey *seal;
};

/* Is there a header at `in` (`room` readable bytes) of a batch that is at `position` and not longer
 * than `room`? Checks everything except the entries. */
bool hf_batch_head_decode(const struct hf_batch_form *form, const unsigned char *in, size_t room,
                          uint64_t position, struct hf_batch_head *head);
/* What a sealed header says of itself, wherever it is. */
struct hf_sealed {
    uint64_t sequence; /* of the batch, or of the first one of the segment */
    uint64_t position; /* of the batch, or of the segment's first byte */
};
/* Is there a sealed header at `in`, of a batch or of a segment of version 2? in: HF_SEGMENT_HEAD
 * bytes. The tag is computed only if the magic is right. */
bool hf_sealed_read(const struct hf_sipkey *seal, const unsigned char *in, struct hf_sealed *out);
/* Do the entries match this header? head: as decoded from `batch` in this form; head->length bytes
 * are readable. 0: yes; or, without the seal's key, unknown. -EBADMSG: no. -ENOMEM: out of
 * memory. */
HF_MUST_USE int hf_batch_whole(const struct hf_batch_form *form, const struct hf_batch_head *head,
                               const unsigned char *batch);
/* The hash of the batch, which the next batch has as its chain. Arguments as above. */
void hf_batch_hash(const struct hf_batch_head *head, const unsigned char *batch,
                   uint8_t out[HF_DIGEST_SIZE]);

static inline uint64_t hf_block_up(uint64_t n)
{
    return (n + HF_BLOCK - 1) & ~(uint64_t)(HF_BLOCK - 1);
}

#endif
