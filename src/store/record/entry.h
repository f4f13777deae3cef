/* entry.h: the record of one request as bytes (doc/FORMAT.md, "Entries"), to and from structs. Both
 * stores keep their history in this form: the journal in its batches, PostgreSQL in
 * holdfast.journal. No I/O, no allocation. */
#ifndef HF_STORE_RECORD_ENTRY_H
#define HF_STORE_RECORD_ENTRY_H

#include "core/core.h"

#define HF_ANSWER_STATUS 255
#define HF_ANSWER_INLINE 254

/* A bit beside the type of a register in its image. */
#define HF_REGISTER_REQUIRES_FENCE 0x80u

struct hf_entry_head {
    enum hf_action action;
    enum hf_status status;
    enum hf_remember remember;
    struct hf_bytes tenant, key; /* key: or the client's name */
    hf_time recorded_at, expires_at;
    uint64_t sequence;
    uint8_t digest[HF_DIGEST_SIZE];
};

/* The size of the entry of `plan` in bytes. */
size_t hf_entry_size(const struct hf_entry_head *head, const struct hf_plan *plan);

/* Write the entry of `plan`. Returns its size, which is hf_entry_size. out: has room for it. */
size_t hf_entry_encode(const struct hf_entry_head *head, const struct hf_plan *plan,
                       unsigned char *out);

/* An upper bound for the size of any entry that `request` can lead to. */
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

/* False if the entry does not fit into `room` bytes, or its CRC is wrong. */
bool hf_entry_decode(const unsigned char *in, size_t room, struct hf_entry_view *out);
/* The same without the CRC, for bytes that are known to be good. */
bool hf_entry_parse(const unsigned char *in, size_t room, struct hf_entry_view *out);

struct hf_image {
    enum hf_row_kind kind;
    bool erase;
    struct hf_bytes bytes;
};

/* Read the next row of `rows` and advance `rows`. False at the end, or if the bytes are not a
 * row. */
bool hf_image_next(struct hf_bytes *rows, struct hf_image *image);

/* The row in `image`. All slices are borrowed. False if it is not well-formed. */
bool hf_image_decode(const struct hf_image *image, struct hf_bytes tenant, struct hf_row *row);

/* The image of `row`, without the row's own header. Returns its size. */
size_t hf_image_encode(const struct hf_row *row, unsigned char *out);
/* The size of that image in bytes. */
size_t hf_image_size(const struct hf_row *row);

/* The lookup key of a row: its name, or, for an entry of a guard, the guard (scope) and the
 * identity. False for kinds without a name (holds) and for malformed images. */
struct hf_image_key {
    struct hf_bytes scope, name;
};
bool hf_image_key(const struct hf_image *image, struct hf_image_key *key);

/* The fields of a hold that the tables need, without decoding the rest. False if malformed. */
struct hf_image_hold {
    uint64_t ordinal;
    hf_time expires_at;
    enum hf_hold_state state;
    struct hf_bytes resource;
};
bool hf_image_hold(const struct hf_image *image, struct hf_image_hold *out);

/* The answer that the entry remembers. False if malformed. */
bool hf_entry_answer(const struct hf_entry_view *entry, struct hf_answer *answer);

/* Fill the head of the entry for a plan that was decided for the request at `now`. digest: of the
 * request. out: borrows its slices from the request. */
void hf_entry_head_fill(const struct hf_request *request, const uint8_t digest[HF_DIGEST_SIZE],
                        const struct hf_plan *plan, hf_time now, struct hf_entry_head *out);

#endif
