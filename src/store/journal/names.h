/* names.h: lists the files in a store's directory. */
#ifndef HF_STORE_JOURNAL_NAMES_H
#define HF_STORE_JOURNAL_NAMES_H

#include "base/filename.h"
#include "store/journal/segment.h"

struct hf_name {
    char text[HF_SEGMENT_NAME_SIZE];
    uint64_t number; /* of a segment; `start` of a snapshot */
    enum hf_filename kind;
};

struct hf_names {
    struct hf_name *list; /* owned; by number, then by kind */
    size_t count, room;
    bool failed; /* out of memory */
};

/* All files of the store. out: owned, free with hf_names_free, also after an error. 0 or a negative
 * errno. */
int hf_names_list(const struct hf_io *io, struct hf_dir *dir, struct hf_names *out);
void hf_names_free(struct hf_names *n);

#endif
