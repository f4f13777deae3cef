/* corpus.h: the kept inputs of a target, packed into one file: proof/fuzz/corpus/<target>.pack.
 * corpus.c has the format. */
#ifndef HF_PROOF_FUZZ_SUPPORT_CORPUS_H
#define HF_PROOF_FUZZ_SUPPORT_CORPUS_H

#include "base/buffer.h"
#include "holdfast.h"

struct fuzz_corpus {
    /* owned, free with fuzz_corpus_free; their bytes are borrowed from the pack */
    struct hf_bytes *inputs;
    size_t count;
};

/* Read a pack. NULL, or what is wrong with it; then there is nothing to free. */
const char *fuzz_corpus_read(struct hf_bytes pack, struct fuzz_corpus *out);
void fuzz_corpus_free(struct fuzz_corpus *corpus);
/* Append the pack of the inputs, of which there is one at least. Sorts them; one that is there
 * twice is packed once. */
void fuzz_corpus_write(struct hf_bytes *inputs, size_t count, struct hf_buffer *out);

#define FUZZ_NAME_ROOM (2 * HF_DIGEST_SIZE + 1)
/* What an input is called outside of the pack: its SHA-256 in hexadecimal digits. */
void fuzz_corpus_name(struct hf_bytes input, char name[FUZZ_NAME_ROOM]);

/* Append all bytes of a file. False, and errno, if it cannot be read. */
bool fuzz_file_read(const char *path, struct hf_buffer *out);

#endif
