/* files.h: a directory in memory, behind struct hf_io, that outlives the store that is opened in
 * it.
 *
 * A target puts files there, opens a store, and looks at what is left. One thread. Time stands at
 * `wall` until the target moves it, and randomness is a counter, so that a run is a function of its
 * input. */
#ifndef HF_PROOF_FUZZ_SUPPORT_FILES_H
#define HF_PROOF_FUZZ_SUPPORT_FILES_H

#include "store/io.h"

struct fuzz_content;

struct fuzz_files {
    struct hf_io io;            /* give &files->io to hf_options.io */
    struct fuzz_content *first; /* owned */
    hf_time wall, boot, followed;
    uint64_t ticks, random;
    uint64_t bytes; /* of all files; past FUZZ_FILES_MAX there is no room */
};

#define FUZZ_FILES_MAX (UINT64_C(16) << 20)
#define FUZZ_START INT64_C(1700000000000) /* what the clock says at first */

/* Empty. files: out, must stay where it is; end with fuzz_files_free. */
void fuzz_files_init(struct fuzz_files *files);
/* All handles must have been closed. */
void fuzz_files_free(struct fuzz_files *files);

/* Make a file, or put other bytes into it. bytes: copied. */
void fuzz_files_put(struct fuzz_files *files, const char *name, struct hf_bytes bytes);
/* The bytes of a file; data is NULL if there is none. Borrowed until it changes. */
struct hf_bytes fuzz_files_get(const struct fuzz_files *files, const char *name);
void fuzz_files_remove(struct fuzz_files *files, const char *name);
/* Put a copy of each file of `from` into `to`. */
void fuzz_files_copy(struct fuzz_files *to, const struct fuzz_files *from);
/* The name of the first file that ends with `suffix`, or NULL. Borrowed. */
const char *fuzz_files_find(const struct fuzz_files *files, const char *suffix);
/* Every file, until `each` returns false. */
void fuzz_files_each(const struct fuzz_files *files,
                     bool (*each)(void *arg, const char *name, struct hf_bytes bytes), void *arg);

#endif
