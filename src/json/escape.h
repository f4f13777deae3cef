/* escape.h: the escapes of JSON strings, undone. Pure. */
#ifndef HF_JSON_ESCAPE_H
#define HF_JSON_ESCAPE_H

#include "holdfast.h"

/* The bytes that `raw` means: what stands between the quotes of a JSON string, without control
 * bytes, not ending within an escape. out: room for raw.size, the result is never longer. False: at
 * `bad` stands a backslash with something behind it that JSON does not have, or half of a surrogate
 * pair. */
bool hf_escape_undo(struct hf_bytes raw, unsigned char *out, size_t *out_size, size_t *bad);

#endif
