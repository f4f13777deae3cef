/* stored.h: any JSON as stored bytes, and back.
 *
 * Where the interface accepts any JSON (a claim's response, an identity's result, a register's
 * value), a string is stored as its bytes. Every other value is stored as HF_STORED_JSON, the
 * SHA-256 of its canonical form, and its compact text: so it is returned as it was, and compared by
 * what it means (holdfast.h). A string that begins with HF_STORED_JSON is stored the second way,
 * with its quotes, so that no value is ambiguous. */
#ifndef HF_JSON_STORED_H
#define HF_JSON_STORED_H

#include "json/reader.h"
#include "json/writer.h"

/* Read the next value, of any type, as stored bytes. out: borrowed from the text or the arena. */
bool hf_stored_read(struct hf_reader *r, struct hf_bytes *out);

/* Write stored bytes as JSON: the text after the first HF_STORED_HEAD bytes unchanged, if it is one
 * value without white space; all other bytes as hf_json_opaque writes them. */
void hf_json_stored(struct hf_json *j, struct hf_bytes bytes);

/* The text of stored JSON; all bytes of anything else. */
struct hf_bytes hf_stored_text(struct hf_bytes bytes);

#endif
