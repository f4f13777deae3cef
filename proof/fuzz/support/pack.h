/* pack.h: make the CRCs of a compressed segment right, as far as its frames can be found. */
#ifndef HF_PROOF_FUZZ_SUPPORT_PACK_H
#define HF_PROOF_FUZZ_SUPPORT_PACK_H

#include "holdfast.h"

void fuzz_pack_fix(unsigned char *file, size_t size);

#endif
