/* format.h: the bytes of doc/FORMAT.md, to and from structs. No I/O, no allocation. */
#ifndef HF_STORE_JOURNAL_FORMAT_H
#define HF_STORE_JOURNAL_FORMAT_H

#include "base/hash.h"
#include "core/core.h"

#define HF_FORMAT_VERSION 1
#define HF_BLOCK 4096

/* ---- Segment header ---- */

#define HF_SEGMENT_HEAD 140

struct hf_store_keys {
    uint8_t store_id[16];
    struct hf_sipkey table, id;
};

struct hf_segment_head {
    uint32_t version;
    uint64_t number, base, size, first_sequence;
    hf_time created_at;
    struct hf_store_keys keys;
    uint8_t chain[HF_DIGEST_SIZE];
};

void hf_segment_head_encode(const struct hf_segment_head *head, unsigned char out[HF_BLOCK]);

enum hf_head_state { HF_HEAD_GOOD, HF_HEAD_NONE, HF_HEAD_NEWER };
/* `in` has HF_SEGMENT_HEAD bytes. NONE: no header (unused, foreign or damaged). NEWER: head->version is
 * set and nothing else. */
enum hf_head_state hf_segment_head_decode(const unsigned char *in, struct hf_segment_head *head);

/* ---- Batch header ---- */

#define HF_BATCH_MAGIC 0x31424648U
#define HF_BATCH_HEAD 80

struct hf_batch_head {
    uint32_t length, count;
    uint64_t sequence, position;
    hf_time now;
    uint8_t chain[HF_DIGEST_SIZE];
};

/* Fill in the header of the batch in `batch`, whose entries are in place; both CRCs are made here. */
void hf_batch_seal(const struct hf_batch_head *head, unsigned char *batch);

/* Is there a batch at `in`, of which `room` bytes may be read, that says it is at `position`? Checks
 * magic, header CRC, position, length, and the CRC of the entries if `deep`. */
bool hf_batch_head_decode(const unsigned char *in, size_t room, uint64_t position, bool deep,
                          struct hf_batch_head *head);

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

/* Write the entry of `plan`. Returns its size. `out` has at least hf_entry_need(request) bytes. */
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
