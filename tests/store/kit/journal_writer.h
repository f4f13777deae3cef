/* journal_writer.h: journals made by hand, right ones and wrong ones.
 *
 * Written from doc/FORMAT.md alone, apart from both the store that writes journals and the auditor
 * that reads them. A test fills in entries as plain structs, may change anything in them, and
 * commits; knobs make what no store would write. Anything that fails (disk, memory) aborts the test
 * program. */
#ifndef HF_TESTS_STORE_KIT_JOURNAL_WRITER_H
#define HF_TESTS_STORE_KIT_JOURNAL_WRITER_H

#include "base/buffer.h"
#include "base/hash.h"
#include "core/core.h"

#define JW_ENTRIES_MAX 32
#define JW_ROWS_MAX 12

struct jw_entry {
    enum hf_action action;
    enum hf_status status;
    enum hf_remember remember;
    uint8_t answer; /* 255, 254 or a row's index */
    struct hf_bytes tenant, key;
    hf_time recorded_at, expires_at;
    uint8_t digest[HF_DIGEST_SIZE];
    uint64_t sequence;
    enum hf_record inline_kind; /* if answer is 254: the kind and the image's bytes */
    struct hf_bytes inline_image;
    size_t row_count;
    struct hf_row rows[JW_ROWS_MAX];
    bool row_lies; /* knob: the last row says that it is longer than it is */
};

struct jw {
    char dir[512];
    uint64_t segment_size;
    /* of segment headers and batches; 2. 1 makes those of the old format; one that begins with 1
     * may go on with 2 in the next segment. Above 2: the layout of 2 */
    uint32_t version;
    /* knob: unless 0, a segment that begins is said to be so large, and one that is packed is, with
     * zeros behind what was written. Its plain file is not, so it has to be packed. */
    uint64_t stretched;
    uint64_t number, base, offset, sequence;
    hf_time now;
    uint8_t chain[HF_DIGEST_SIZE];
    uint8_t store_id[16];
    struct hf_sipkey id_key;
    unsigned char *segment; /* owned */
    bool open;              /* a batch is being gathered */
    hf_time batch_now;
    size_t entry_count;
    struct jw_entry entries[JW_ENTRIES_MAX];
    /* knobs, for the next batch alone */
    bool break_chain, skip_sequence, wrong_count, dirty_padding, next_segment;
    uint64_t last_position; /* of the batch committed last */
    uint32_t last_length;
};

/* A new store in `dir`, which must exist and be empty. */
void jw_open(struct jw *w, const char *dir, uint64_t segment_size);
/* Write out the current segment, and a prepared one of zeros behind it. */
void jw_close(struct jw *w);

void jw_begin(struct jw *w, hf_time now);
/* A new entry of the batch, recorded at its now, status ok, without key, rows or record.
 * Borrowed. */
struct jw_entry *jw_add(struct jw *w, enum hf_action action);
struct hf_row *jw_row(struct jw_entry *e, enum hf_row_kind kind);
void jw_commit(struct jw *w);

/* Put segment `number`, which is no longer written to, into its compressed form. */
void jw_pack(struct jw *w, uint64_t number);

/* The image of a row. */
void jw_image(const struct hf_row *row, struct hf_buffer *out);

/* Make everything right that checks the batch at `b`, of either version, and the CRCs of its
 * entries as far as they can be found: what somebody can do who has the store's secret. */
void jw_fix(unsigned char *b, size_t room);
/* The secret of every store that is made here. */
extern const struct hf_sipkey jw_seal;
/* Put the tag of the entries into the batch at `b`, of version 2 and `length` bytes, under this
 * secret. */
void jw_entries_tag(const struct hf_sipkey *seal, unsigned char *b, size_t length);
/* Make the tag of the batch header at `b` right, of version 2, and nothing else. */
void jw_fix_tag(unsigned char *b);
/* Seal the segment header in the block at `h`, of version 2. */
void jw_fix_head(unsigned char *h);

/* Bytes of a file in the store, whole; *size is its size. Owned. */
unsigned char *jw_load(const char *dir, const char *name, size_t *size);
void jw_save(const char *dir, const char *name, const void *data, size_t size);
/* Turn over one byte of a file. */
void jw_flip(const char *dir, const char *name, size_t offset);

/* "sha256/1": fields sorted by name, each bytes (number NULL) or a number. */
struct jw_field {
    const char *name;
    struct hf_bytes bytes;
    const int64_t *number;
};
void jw_digest(const struct jw_field *fields, size_t count, uint8_t out[HF_DIGEST_SIZE]);

/* A fresh empty directory under the system's place for such, and its removal with everything in
 * it. */
void jw_directory(char out[256]);
void jw_remove(const char *dir);

#endif
