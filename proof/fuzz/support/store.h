/* store.h: the small store whose files the targets damage, and what is shown of a store that
 * opens. */
#ifndef HF_PROOF_FUZZ_SUPPORT_STORE_H
#define HF_PROOF_FUZZ_SUPPORT_STORE_H

#include "base/buffer.h"
#include "fuzz/support/files.h"
#include "store/journal/format.h"

#define FUZZ_SEGMENT 131072

/* The directory of a store that the library itself made and closed in order: two compressed
 * segments, plain ones, a snapshot, an index of holds, a note of the close. Made at the first call.
 * Borrowed, not to be changed. */
const struct fuzz_files *fuzz_store(void);
/* What that store shows. Borrowed. */
struct hf_bytes fuzz_store_truth(void);
/* Its keys. All stores that are made here have the same ones. */
const struct hf_store_keys *fuzz_store_keys(void);

/* Open the store in `files`, without background and with small segments. HF_OK or one of the
 * refusals that hf_open has for what it finds in a directory, with a sentence. There is memory
 * enough for anything that a store should ask for. */
enum hf_status fuzz_store_open(struct fuzz_files *files, struct hf_db **db);
/* Add everything that lists and reads show to `out`, as JSON. Answers how many of them were faults:
 * records that are there and cannot be read. */
unsigned fuzz_store_show(struct hf_db *db, struct hf_buffer *out);

/* Open the store and look at it; if with_work, work with it, close it and open it again too. A
 * store that opened must do all of that, and show after the close what it showed before, if all of
 * it can be read. The first status of opening is answered; what was shown at first goes to `shown`,
 * and how many faults were among it to *faults. */
enum hf_status fuzz_store_try(struct fuzz_files *files, bool with_work, struct hf_buffer *shown,
                              unsigned *faults);

#endif
