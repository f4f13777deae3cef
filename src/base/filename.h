/* filename.h: the names of a store's files (doc/FORMAT.md, "The directory").
 *
 * The start and the audit share this code, so that both recognise the same files. */
#ifndef HF_BASE_FILENAME_H
#define HF_BASE_FILENAME_H

#include "holdfast.h"

enum hf_filename {
    HF_FILENAME_OTHER,    /* not one of a store's files */
    HF_FILENAME_LOG,      /* journal-00000001.log; with the number of the segment */
    HF_FILENAME_PACK,     /* journal-00000001.zst; the same, compressed */
    HF_FILENAME_SNAPSHOT, /* snapshot-0000000000001000.snap; the number is its `start` */
    HF_FILENAME_INDEX,    /* holds.idx */
    HF_FILENAME_CLOSED,   /* closed */
    HF_FILENAME_TMP       /* any name that ends with .tmp: left by a process that died */
};

/* The kind of file, by its exact name: eight decimal digits, not all 0; sixteen hexadecimal digits,
 * lower case. number: out, 0 if the name has none. */
enum hf_filename hf_filename_read(const char *name, uint64_t *number);

/* Is it a file that only a store with a batch in its journal has? A segment after the first, a
 * snapshot or holds.idx. */
bool hf_filename_follows_batch(enum hf_filename kind, uint64_t number);

/* For an error message: the first directory above `path` that does not exist. out: cut to `size`;
 * the empty text if all exist. */
void hf_filename_missing(const char *path, char *out, size_t size);

#endif
