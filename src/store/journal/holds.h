/* holds.h: where in the journal the newest record of each hold is, for holds of any age.
 *
 * The file holds.idx has one number for each hold ever placed. Changes since its last update are in
 * tables in memory; a snapshot writes them into the file and stores the checksum of each part
 * (doc/FORMAT.md). The file can be rebuilt: a part with a wrong checksum is ignored and rebuilt
 * from the journal.
 *
 *   holds.c       the tables in memory
 *   holds_file.c  the file
 *   reindex.c     rebuilding parts of it in the background */
#ifndef HF_STORE_JOURNAL_HOLDS_H
#define HF_STORE_JOURNAL_HOLDS_H

#include "store/io.h"
#include "store/journal/dense.h"
#include "store/journal/format.h"
#include "store/journal/map64.h"

#include <stdatomic.h>

#define HF_INDEX_ENTRIES 509 /* holds in a part of the file */

/* Special values in place of a part's checksum. No part has such a checksum. */
#define HF_INDEX_BLANK UINT64_C(0)        /* not in the file: its holds are in memory only */
#define HF_INDEX_BAD UINT64_MAX           /* wrong: none of its holds can be read from the file */
#define HF_INDEX_MENDING (UINT64_MAX - 1) /* the same, and it is being rebuilt */

struct hf_index_sum {
    uint64_t part, sum;
};

struct hf_holds {
    const struct hf_io *io; /* borrowed, like dir */
    struct hf_dir *dir;
    struct hf_sipkey key; /* of the checksums */
    struct hf_file *file; /* owned; NULL while there is none */
    /* ordinal -> position, of holds placed since the last update of the file */
    struct hf_dense recent;
    struct hf_map64 moved; /* mix of the ordinal -> position, of older ones */
    uint64_t highest;      /* greatest ordinal so far */
    /* the file is up to date to the position `covers`; `covered` holds were placed before it */
    uint64_t covers, covered;
    uint64_t next_sequence; /* sequence of the batch at `covers` */

    /* owned: the checksum of part p at p - 1; changed under the lock only */
    _Atomic uint64_t *sums;
    bool told;              /* a snapshot has set them */
    bool head_due;          /* the file's header is wrong and must be rewritten */
    size_t parts, sum_room; /* number of parts, and allocated */
    size_t bad;             /* number of HF_INDEX_BAD parts */
    uint64_t bad_at;        /* file offset of the newest of them */
    unsigned char *page;    /* owned: the last part read */
    uint64_t page_part;     /* its number; 0: none */
    /* owned: checksums of written parts that are not in use yet, in order */
    struct hf_index_sum *fresh;
    size_t fresh_count, fresh_room;
};

bool hf_holds_init(struct hf_holds *h, const struct hf_io *io, struct hf_dir *dir,
                   const struct hf_sipkey *key);
void hf_holds_free(struct hf_holds *h);
uint64_t hf_holds_bytes(const struct hf_holds *h);

bool hf_holds_reserve(struct hf_holds *h, uint64_t ordinal, unsigned together);
/* The same for one of many neighbours, of any age: takes less memory for each. */
bool hf_holds_reserve_many(struct hf_holds *h, uint64_t ordinal);
/* Needs a reserve before. */
void hf_holds_set(struct hf_holds *h, uint64_t ordinal, uint64_t position);

/* Is its position in memory? Then the file is not read. */
bool hf_holds_remembers(const struct hf_holds *h, uint64_t ordinal, uint64_t *position);
/* The position of the newest entry with this hold. 0 or a negative errno; -ENOENT: no such hold;
 * -EBADMSG: its part of the file is wrong, and is now counted in hf_holds.bad. */
int hf_holds_get(struct hf_holds *h, uint64_t ordinal, uint64_t *position);
/* The position from the file cannot be right: mark its part. No effect if it was not from the
 * file. */
void hf_holds_distrust(struct hf_holds *h, uint64_t ordinal);

/* Update the file, in steps that need no lock between them: take copies changed positions before
 * `before` (durable) from the tables, part by part; write puts them into the file, beside the
 * copies in use, and syncs it; landed puts the new copies into use, after a snapshot with the new
 * checksums was written. A position that was taken stays in the tables until hf_holds_forget. */
struct hf_moved {
    uint64_t ordinal, position;
};
/* part: index of a part of the tables, below hf_holds_parts. Returns how many were put into `out`,
 * which has room for hf_holds_part_size. */
size_t hf_holds_parts(const struct hf_holds *h);
size_t hf_holds_part_size(const struct hf_holds *h, size_t part);
size_t hf_holds_take(const struct hf_holds *h, size_t part, uint64_t before, struct hf_moved *out);
/* Rewrite the header if it was wrong when the file was opened. 0 or a negative errno. */
int hf_holds_settle(struct hf_holds *h, const struct hf_store_keys *keys);
/* Create the file if there is none, and allocate checksums for so many holds. With the lock,
 * because others read through it. */
int hf_holds_make(struct hf_holds *h, const struct hf_store_keys *keys, uint64_t covered);
/* Sorts `moved`. -EBADMSG: a part that changes is wrong; *bad: out, its number, for
 * hf_holds_bad. */
int hf_holds_write(struct hf_holds *h, struct hf_moved *moved, size_t count, uint64_t covers,
                   uint64_t *bad);
/* The checksum of part p once the written copies are in use. *at: 0 at first; call with parts in
 * order. */
uint64_t hf_holds_new_sum(const struct hf_holds *h, uint64_t p, size_t *at);
/* With the lock. */
void hf_holds_landed(struct hf_holds *h, uint64_t covers, uint64_t next_sequence, uint64_t covered);
/* Remove positions from the tables that have not changed since they were taken. */
void hf_holds_forget(struct hf_holds *h, const struct hf_moved *moved, size_t count);

/* ---- The file (holds_file.c) ---- */

static inline uint64_t hf_index_part_of(uint64_t ordinal)
{
    return (ordinal + HF_INDEX_ENTRIES - 1) / HF_INDEX_ENTRIES;
}

/* Take over from a snapshot: `covered` holds were placed before its start, and these are the
 * checksums of `count` parts from `first` on. False if that is impossible; *no_memory: out. */
bool hf_holds_told(struct hf_holds *h, uint64_t covered, uint64_t first, const unsigned char *sums,
                   size_t count, bool *no_memory);
/* Open the file for a store whose snapshot begins at `start`, before the batch `next_sequence`.
 * NULL, or the error (static); level: out, the level of its log line. If the snapshot had the
 * checksums, the file is used as far as possible: a wrong header is rewritten, and without a file
 * all parts are bad. Otherwise it is not used, as after hf_holds_close. */
const char *hf_holds_open(struct hf_holds *h, const struct hf_store_keys *keys, uint64_t start,
                          uint64_t next_sequence, int *level);
/* Check the newest parts, at most `max` bytes, and mark wrong ones as bad. Returns the file offset
 * of the first wrong one; 0: all are right. */
uint64_t hf_holds_check(struct hf_holds *h, uint64_t max);
/* Do not use the file: covers and covered are 0, which makes recovery read the whole journal. */
void hf_holds_close(struct hf_holds *h);

/* Part p of the file is wrong: count it in hf_holds.bad, unless it is being rebuilt. */
void hf_holds_bad(struct hf_holds *h, uint64_t p);
/* For holds.c: the hold's position in the file; 0 or a negative errno, as hf_holds_get. */
int hf_holds_file_get(struct hf_holds *h, uint64_t ordinal, uint64_t *position);

#endif
