/* filename.h: the names of a store's files (doc/FORMAT.md, "The directory").
 *
 * The start and the audit read them here, so that no file counts for the one and not for the
 * other. */
#ifndef HF_BASE_FILENAME_H
#define HF_BASE_FILENAME_H

#include "holdfast.h"

enum hf_filename {
    HF_FILENAME_OTHER,    /* not one of a store's files */
    HF_FILENAME_LOG,      /* journal-00000001.log; the number is that of the segment */
    HF_FILENAME_PACK,     /* journal-00000001.zst; likewise */
    HF_FILENAME_SNAPSHOT, /* snapshot-0000000000001000.snap; the number is its `start` */
    HF_FILENAME_INDEX,    /* holds.idx */
    HF_FILENAME_CLOSED,   /* closed */
    HF_FILENAME_TMP       /* anything that ends with .tmp: of a process that died */
};

/* What the name says, taken exactly: eight decimal digits, of which one is not 0; sixteen
 * hexadecimal ones, without capitals. number: out, 0 where there is none. */
enum hf_filename hf_filename_read(const char *name, uint64_t *number);

/* Is it the name of a file that only a store with a batch in its journal has? A segment behind the
 * first, a snapshot or holds.idx. */
bool hf_filename_follows_batch(enum hf_filename kind, uint64_t number);

#endif
