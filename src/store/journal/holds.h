/* holds.h: where in the journal each hold's newest record is, for holds of any age.
 *
 * The file holds.idx has one number for each hold ever placed. What changed since it was last
 * brought up to date is in tables in memory; a snapshot writes that into the file, and remembers
 * the sum of each of its parts (doc/FORMAT.md). The file is only a help: a part that is not as it
 * was written is not believed, and is rebuilt from the journal.
 *
 *   holds.c       the tables in memory
 *   holds_file.c  the file
 *   reindex.c     rebuilding parts of it while the store works */
#ifndef HF_STORE_JOURNAL_HOLDS_H
#define HF_STORE_JOURNAL_HOLDS_H

#include "store/io.h"
#include "store/journal/dense.h"
#include "store/journal/format.h"
#include "store/journal/map64.h"

#include <stdatomic.h>

#define HF_INDEX_ENTRIES 509 /* holds in a part of the file */

/* What stands in place of a part's sum. No part has such a sum. */
#define HF_INDEX_BLANK \
    UINT64_C(0) /* nothing in the file: all that is known of its holds is in memory */
#define HF_INDEX_BAD UINT64_MAX /* not right: none of its holds can be read from the file */
#define HF_INDEX_MENDING (UINT64_MAX - 1) /* the same, and it is being rebuilt */

struct hf_index_sum {
    uint64_t part, sum;
};

struct hf_holds {
    const struct hf_io *io; /* borrowed, like dir */
    struct hf_dir *dir;
    struct hf_sipkey key; /* of the sums */
    struct hf_file *file; /* owned; NULL while there is none */
    struct hf_dense
        recent; /* ordinal -> position, of holds placed since the file was brought up to date */
    struct hf_map64 moved; /* mix of the ordinal -> position, of older ones */
    uint64_t highest;      /* greatest ordinal ever given */
    uint64_t covers,
        /* the file is up to date to this position, and so many holds were placed before it */
        covered;
    uint64_t next_sequence; /* of the batch there */

    _Atomic uint64_t
        *sums; /* owned: the sum that part p must have, at p - 1; changed under the lock alone */
    bool told; /* a snapshot has said what they are */
    bool head_due;          /* the header of the file is not right, and is to be written again */
    size_t parts, sum_room; /* how many parts there are, and room for */
    size_t bad;             /* how many are HF_INDEX_BAD */
    uint64_t bad_at;        /* where in the file the newest of them should have been */
    unsigned char *page;    /* owned: the part that was read last */
    uint64_t page_part;     /* its number; 0: none */
    struct hf_index_sum
        *fresh; /* owned: the sums of parts that were written and are not in use yet, in order */
    size_t fresh_count, fresh_room;
};

bool hf_holds_init(struct hf_holds *h, const struct hf_io *io, struct hf_dir *dir,
                   const struct hf_sipkey *key);
void hf_holds_free(struct hf_holds *h);
uint64_t hf_holds_bytes(const struct hf_holds *h);

bool hf_holds_reserve(struct hf_holds *h, uint64_t ordinal, unsigned together);
/* The same for one of many that lie together, whatever their age: takes less memory for each. */
bool hf_holds_reserve_many(struct hf_holds *h, uint64_t ordinal);
/* Needs a reserve before. */
void hf_holds_set(struct hf_holds *h, uint64_t ordinal, uint64_t position);

/* Is its position in memory? Then the file is not asked. */
bool hf_holds_remembers(const struct hf_holds *h, uint64_t ordinal, uint64_t *position);
/* The position of the newest entry with this hold. 0 or a negative errno; -ENOENT: no such hold;
 * -EBADMSG: the part of the file that would say so is not right, and is counted in hf_holds.bad
 * from now on. */
int hf_holds_get(struct hf_holds *h, uint64_t ordinal, uint64_t *position);
/* The position that the file gave cannot be right. Nothing if it did not come from the file. */
void hf_holds_distrust(struct hf_holds *h, uint64_t ordinal);

/* Bring the file up to date, in steps that need no lock between them: take copies the changed
 * positions that lie before `before` (durable) out of the tables, part by part; write puts them
 * into the file, beside what is in use there, and syncs it; landed says that it is to be used from
 * now on, which a snapshot with the new sums must have said before. A position that was taken stays
 * in the tables until hf_holds_forget. */
struct hf_moved {
    uint64_t ordinal, position;
};
/* part: which part of the tables, of hf_holds_parts. Returns how many were put into `out`, which
 * has room for hf_holds_part_size. */
size_t hf_holds_parts(const struct hf_holds *h);
size_t hf_holds_part_size(const struct hf_holds *h, size_t part);
size_t hf_holds_take(const struct hf_holds *h, size_t part, uint64_t before, struct hf_moved *out);
/* Write the header again, if it was not right when the file was opened. 0 or a negative errno. */
int hf_holds_settle(struct hf_holds *h, const struct hf_store_keys *keys);
/* Make the file if there is none, and room for the sums of so many holds. With the lock: others
 * read through it. */
int hf_holds_make(struct hf_holds *h, const struct hf_store_keys *keys, uint64_t covered);
/* Sorts `moved`. -EBADMSG: a part that changes is not right as it is; *bad: out, its number, for
 * hf_holds_bad. */
int hf_holds_write(struct hf_holds *h, struct hf_moved *moved, size_t count, uint64_t covers,
                   uint64_t *bad);
/* The sum that part p has once what was written is in use. *at: 0 at first, for parts in order. */
uint64_t hf_holds_new_sum(const struct hf_holds *h, uint64_t p, size_t *at);
/* With the lock. */
void hf_holds_landed(struct hf_holds *h, uint64_t covers, uint64_t next_sequence, uint64_t covered);
/* Drop from the tables what is still as it was taken. */
void hf_holds_forget(struct hf_holds *h, const struct hf_moved *moved, size_t count);

/* ---- The file (holds_file.c) ---- */

static inline uint64_t hf_index_part_of(uint64_t ordinal)
{
    return (ordinal + HF_INDEX_ENTRIES - 1) / HF_INDEX_ENTRIES;
}

/* A snapshot says that `covered` holds were placed before its start, and what the sums of `count`
 * parts from `first` on are. False if that cannot be; *no_memory: out. */
bool hf_holds_told(struct hf_holds *h, uint64_t covered, uint64_t first, const unsigned char *sums,
                   size_t count, bool *no_memory);
/* Open the file for a store whose snapshot begins at `start`, before the batch `next_sequence`.
 * NULL; or what is wrong (static); level: out, that of the line about it. If the snapshot has told
 * the sums, it is used as far as it can be: its header is written again, and without a file all
 * parts are bad. Else it is not used, as after hf_holds_close. */
const char *hf_holds_open(struct hf_holds *h, const struct hf_store_keys *keys, uint64_t start,
                          uint64_t next_sequence, int *level);
/* Read the newest parts, `max` bytes at most; those that are not right are bad from now on. Where
 * the first of them should have been: the byte; 0: all are right. */
uint64_t hf_holds_check(struct hf_holds *h, uint64_t max);
/* Do not use the file: covers and covered are 0, which makes recovery read the whole journal. */
void hf_holds_close(struct hf_holds *h);

/* Part p of the file is not right: it is counted in hf_holds.bad from now on, unless it is being
 * rebuilt. */
void hf_holds_bad(struct hf_holds *h, uint64_t p);
/* For holds.c: the position that the file has for the hold; 0 or a negative errno as of
 * hf_holds_get. */
int hf_holds_file_get(struct hf_holds *h, uint64_t ordinal, uint64_t *position);

#endif
