/* fuzz.h: what the fuzz targets share.
 *
 * A target is one file in proof/fuzz with LLVMFuzzerTestOneInput. `make fuzz` links it with
 * libFuzzer; every other build links it with main/replay.c, which gives it the kept inputs.
 * Whatever bytes come, a target ends: in a crash, a sanitizer's report or an unwanted outcome only
 * if there is a bug. A target keeps nothing from one input to the next that the next could see, so
 * that an input alone tells what happened. */
#ifndef HF_PROOF_FUZZ_SUPPORT_FUZZ_H
#define HF_PROOF_FUZZ_SUPPORT_FUZZ_H

#include "base/buffer.h"
#include "holdfast.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Assertions of the targets: what must hold whatever the input is. */
#define FUZZ_WANT(cond) ((cond) ? (void)0 : fuzz_unwanted(#cond, __FILE__, __LINE__))
_Noreturn void fuzz_unwanted(const char *what, const char *file, int line);

/* The input, taken off its front. What is asked for beyond its end is zeros, or shorter. */
struct fuzz_input {
    const uint8_t *p;
    size_t left;
};

uint8_t fuzz_u8(struct fuzz_input *in);
uint16_t fuzz_u16(struct fuzz_input *in);
uint64_t fuzz_u64(struct fuzz_input *in);
/* Up to `size` bytes. Borrowed from the input. */
struct hf_bytes fuzz_some(struct fuzz_input *in, size_t size);
/* All that is left. */
struct hf_bytes fuzz_rest(struct fuzz_input *in);

/* Memory that is there, or the program ends. Owned, free with free(). */
void *fuzz_alloc(size_t size);
/* The bytes in a block of exactly their size, so that a sanitizer sees what is read beyond them.
 * Owned, never NULL. */
char *fuzz_copy(struct hf_bytes bytes);
/* The same with a NUL behind them; bytes behind a NUL inside are left out. */
char *fuzz_text(struct hf_bytes bytes);

#define FUZZ_CUTS 16
/* An input that comes in pieces: how many cuts, the distance of each from the one before, and the
 * bytes. */
struct fuzz_split {
    struct hf_bytes bytes;  /* borrowed */
    size_t ends[FUZZ_CUTS]; /* of the pieces, rising; the last is bytes.size */
    size_t count;           /* of the pieces, 1 and up */
};
void fuzz_split(struct fuzz_input *in, struct fuzz_split *out);

/* What a buffer holds. Borrowed; never NULL, also when there is nothing in it. */
struct hf_bytes fuzz_held(const struct hf_buffer *buffer);

/* Is it a sentence? Not empty, ended with NUL within its room, UTF-8, without control bytes. */
bool fuzz_sentence(const char *text, size_t room);

/* A folder for targets whose code reads real files. Made when it is first asked for,
 * below TMPDIR or the system's place for temporary files, and removed with its files when the
 * program ends in order. */

/* Its path. Borrowed, stays. */
const char *fuzz_folder(void);
/* Write a file in it, in place of what was there. */
void fuzz_folder_put(const char *name, struct hf_bytes bytes);
/* Remove all files in it. */
void fuzz_folder_empty(void);

#endif
