/* holds.h: where in the journal each hold's newest record is, for holds of any age.
 *
 * The file holds.idx has one number for each hold ever placed. What changed since it was last brought up
 * to date is in a table in memory; a snapshot writes that into the file. The file is only a help: it is
 * rebuilt from the journal if it is lost. */
#ifndef HF_STORE_JOURNAL_HOLDS_H
#define HF_STORE_JOURNAL_HOLDS_H

#include "store/io.h"
#include "store/journal/dense.h"
#include "store/journal/format.h"
#include "store/journal/map64.h"

struct hf_holds {
    const struct hf_io *io; /* borrowed, like dir */
    struct hf_dir *dir;
    struct hf_file *file;     /* owned; NULL while there is none */
    struct hf_dense recent;   /* ordinal -> position, of holds placed since the file was brought up to date */
    struct hf_map64 moved;    /* mix of the ordinal -> position, of older ones */
    uint64_t highest;         /* greatest ordinal ever given */
    uint64_t covers, covered; /* as in the file's header */
};

bool hf_holds_init(struct hf_holds *h, const struct hf_io *io, struct hf_dir *dir);
void hf_holds_free(struct hf_holds *h);

/* Open the file, if it belongs to this store. Absent or unusable: covers stays 0, which makes recovery
 * read the whole journal. */
void hf_holds_open(struct hf_holds *h, const struct hf_store_keys *keys);

bool hf_holds_reserve(struct hf_holds *h, uint64_t ordinal, unsigned together);
/* Needs a reserve before. */
void hf_holds_set(struct hf_holds *h, uint64_t ordinal, uint64_t position);

/* The position of the newest entry with this hold. 0 or a negative errno; -ENOENT: no such hold. */
int hf_holds_get(struct hf_holds *h, uint64_t ordinal, uint64_t *position);

/* Bring the file up to date, in steps that need no lock between them:
 * take copies the changed positions that lie before `before` (durable) out of the table, part by part;
 * write puts them into the file; end says in its header what it covers. A position that was taken stays in
 * the table until hf_holds_forget. */
struct hf_moved {
    uint64_t ordinal, position;
};
/* part: which part of the tables, of hf_holds_parts. Returns how many were put into `out`, which has room for
 * hf_holds_part_size. */
size_t hf_holds_parts(const struct hf_holds *h);
size_t hf_holds_part_size(const struct hf_holds *h, size_t part);
size_t hf_holds_take(const struct hf_holds *h, size_t part, uint64_t before, struct hf_moved *out);
/* Make the file if there is none. With the lock: others read through it. */
int hf_holds_make(struct hf_holds *h, const struct hf_store_keys *keys);
/* Sorts `moved`. */
int hf_holds_write(struct hf_holds *h, struct hf_moved *moved, size_t count);
int hf_holds_end(struct hf_holds *h, const struct hf_store_keys *keys, uint64_t covers, uint64_t covered);
/* Drop from the tables what is still as it was taken. */
void hf_holds_forget(struct hf_holds *h, const struct hf_moved *moved, size_t count);

#endif
