/* format.h: the bytes of doc/FORMAT.md, to and from structs. No I/O, no allocation. */
#ifndef HF_STORE_JOURNAL_FORMAT_H
#define HF_STORE_JOURNAL_FORMAT_H

#include "base/hash.h"
#include "core/core.h"

#define HF_FORMAT_VERSION 2 /* of what is written; version 1 is read too */
#define HF_BLOCK 4096

/* ---- Segment header ---- */

#define HF_SEGMENT_HEAD 160   /* bytes to look at, for every version */
#define HF_SEGMENT_HEAD_1 140 /* what version 1 has of them */

struct hf_store_keys {
    uint8_t store_id[16];
    struct hf_sipkey table, id;
    struct hf_sipkey seal; /* the secret behind every tag; zeros in a store that has version 1 alone */
};

struct hf_segment_head {
    uint32_t version;
    uint64_t number, base, size, first_sequence;
    hf_time created_at;
    struct hf_store_keys keys;
    uint8_t chain[HF_DIGEST_SIZE];
};

/* In the version that is written; head->version does not matter. */
void hf_segment_head_encode(const struct hf_segment_head *head, unsigned char out[HF_BLOCK]);

enum hf_head_state { HF_HEAD_GOOD, HF_HEAD_NONE, HF_HEAD_NEWER };
/* `in` has HF_SEGMENT_HEAD bytes. NONE: no header (unused, foreign or damaged). NEWER: head->version is
 * set and nothing else. The tag is held against the key beside it; the caller compares that with the store's. */
enum hf_head_state hf_segment_head_decode(const unsigned char *in, struct hf_segment_head *head);

/* ---- Batch header ---- */

#define HF_BATCH_MAGIC_1 0x31424648U
#define HF_BATCH_MAGIC 0x32424648U
#define HF_BATCH_HEAD 112
#define HF_BATCH_MAX (16 << 20) /* no batch is longer */
#define HF_BATCH_HEAD_1 80      /* in version 1, and the least that any version has */

struct hf_batch_head {
    uint32_t version; /* of its layout: that of its segment */
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

/* Fill in the header of the batch in `batch`, whose entries are in place; hash of the entries and tag are made here. */
void hf_batch_seal(const struct hf_batch_head *head, const struct hf_sipkey *seal, unsigned char *batch);

/* How a batch must look: as one of a segment of this version. seal: borrowed; NULL: the tag is not looked at, so what
 * is found is evidence that something was here, and nothing that may be believed. */
struct hf_batch_form {
    uint32_t version;
    const struct hf_sipkey *seal;
};

/* Is there a header at `in`, of which `room` bytes may be read, of a batch that is at `position` and not longer than
 * `room`? Checks everything but the entries. */
bool hf_batch_head_decode(const struct hf_batch_form *form, const unsigned char *in, size_t room,
                          uint64_t position, struct hf_batch_head *head);
/* Are the entries behind this header the ones that it was made for? head: as decoded from `batch`, whose
 * head->length bytes may be read. */
bool hf_batch_whole(const struct hf_batch_head *head, const unsigned char *batch);
/* The hash of the batch, which the next one has as its chain. As above. */
void hf_batch_hash(const struct hf_batch_head *head, const unsigned char *batch, uint8_t out[HF_DIGEST_SIZE]);

static inline uint64_t hf_block_up(uint64_t n)
{
    return (n + HF_BLOCK - 1) & ~(uint64_t)(HF_BLOCK - 1);
}

/* ---- Entries ---- */

#define HF_ANSWER_STATUS 255
#define HF_ANSWER_INLINE 254

struct hf_entry_head {
    enum hf_action action;
    enum hf_status status;
    enum hf_remember remember;
    struct hf_bytes tenant, key; /* key: or the client's name */
    hf_time recorded_at, expires_at;
    uint64_t sequence;
    uint8_t digest[HF_DIGEST_SIZE];
};

/* How large the entry of `plan` is. */
size_t hf_entry_size(const struct hf_entry_head *head, const struct hf_plan *plan);

/* Write the entry of `plan`. Returns its size, which is hf_entry_size: the caller has looked whether `out` has room for it. */
size_t hf_entry_encode(const struct hf_entry_head *head, const struct hf_plan *plan, unsigned char *out);

/* An upper bound for the entry that deciding `request` can lead to. */
size_t hf_entry_need(const struct hf_request *request);

/* An entry in place. Slices are borrowed from it. */
struct hf_entry_view {
    struct hf_entry_head head;
    uint32_t size;
    uint8_t answer, row_count;
    struct hf_bytes inline_answer; /* if answer is HF_ANSWER_INLINE */
    enum hf_record inline_kind;
    struct hf_bytes rows;
};

/* False if it is not whole within `room` bytes, or its CRC is wrong. */
bool hf_entry_decode(const unsigned char *in, size_t room, struct hf_entry_view *out);
/* The same without the CRC, for bytes that are known to be good. */
bool hf_entry_parse(const unsigned char *in, size_t room, struct hf_entry_view *out);

struct hf_image {
    enum hf_row_kind kind;
    bool erase;
    struct hf_bytes bytes;
};

/* The next row of `rows`, which is moved on. False at the end, or if what is there is not a row. */
bool hf_image_next(struct hf_bytes *rows, struct hf_image *image);

/* The row in `image`. All slices are borrowed. False if it is not well-formed. */
bool hf_image_decode(const struct hf_image *image, struct hf_bytes tenant, struct hf_row *row);

/* The image of `row`, without the row's own header. Returns its size. */
size_t hf_image_encode(const struct hf_row *row, unsigned char *out);
/* How many bytes that are. */
size_t hf_image_size(const struct hf_row *row);

/* What a row is found by: its name, or for an entry of a guard the guard (scope) and the identity.
 * False for kinds that are not found by name (holds) and for malformed images. */
struct hf_image_key {
    struct hf_bytes scope, name;
};
bool hf_image_key(const struct hf_image *image, struct hf_image_key *key);

/* What the tables need of a hold, without decoding the rest. False if it is not well-formed. */
struct hf_image_hold {
    uint64_t ordinal;
    hf_time expires_at;
    enum hf_hold_state state;
    struct hf_bytes resource;
};
bool hf_image_hold(const struct hf_image *image, struct hf_image_hold *out);

/* The answer that the entry remembers. False if it is not well-formed. */
bool hf_entry_answer(const struct hf_entry_view *entry, struct hf_answer *answer);

#endif
