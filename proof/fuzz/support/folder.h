/* folder.h: a folder for targets whose code reads real files. Made when it is first asked for,
 * below TMPDIR or the system's place for temporary files, and removed with its files when the
 * program ends in order. */
#ifndef HF_PROOF_FUZZ_SUPPORT_FOLDER_H
#define HF_PROOF_FUZZ_SUPPORT_FOLDER_H

#include "holdfast.h"

/* Its path. Borrowed, stays. */
const char *fuzz_folder(void);
/* Write a file in it, in place of what was there. */
void fuzz_folder_put(const char *name, struct hf_bytes bytes);
/* Remove all files in it. */
void fuzz_folder_empty(void);

#endif
