/* escape.h: unescape JSON strings. Pure. */
#ifndef HF_JSON_ESCAPE_H
#define HF_JSON_ESCAPE_H

#include "holdfast.h"

/* Unescape `raw`: the text between the quotes of a JSON string, without control bytes, that does
 * not end within an escape. out: room for raw.size; the result is never longer. False: `bad` is the
 * offset of a backslash that begins an unknown escape, or half of a surrogate pair. */
bool hf_escape_undo(struct hf_bytes raw, unsigned char *out, size_t *out_size, size_t *bad);

#endif
