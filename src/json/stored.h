/* stored.h: any JSON as stored bytes, and back.
 *
 * Where the interface accepts any JSON (a claim's response, an identity's result, a register's
 * value), a string is stored as its bytes. Every other value is stored as its compact text after
 * the two bytes of HF_STORED_JSON, so that it is returned as it was. A string that begins with
 * these two bytes is stored the second way, with its quotes, so that no value is ambiguous. */
#ifndef HF_JSON_STORED_H
#define HF_JSON_STORED_H

#include "json/reader.h"
#include "json/writer.h"

#define HF_STORED_JSON "\0j"

/* Read the next value, of any type, as stored bytes. out: borrowed from the text or the arena. */
bool hf_stored_read(struct hf_reader *r, struct hf_bytes *out);

/* Write stored bytes as JSON: the text after HF_STORED_JSON unchanged, if it is one value without
 * white space; all other bytes as hf_json_opaque writes them. */
void hf_json_stored(struct hf_json *j, struct hf_bytes bytes);

#endif
