/* id.h: hold ids and request keys.
 *
 * A hold's id is 128 bits, shown as 26 characters of Crockford's base 32 in lower case. It contains
 * the hold's ordinal, masked, and a keyed tag. So an id leads to its record in one step, does not
 * show how many holds there are, and cannot be guessed. */
#ifndef HF_BASE_ID_H
#define HF_BASE_ID_H

#include "base/hash.h"

#define HF_ID_RAW 16

void hf_id_make(const struct hf_sipkey *key, uint64_t ordinal, char text[HF_ID_SIZE]);

/* The ordinal inside `text`. False if the text is not an id made with this key. Upper case is
 * accepted. */
bool hf_id_read(const struct hf_sipkey *key, struct hf_bytes text, uint64_t *ordinal);

/* The 16 bytes of an id on disk, and back. hf_id_pack is false if the text is not 26 such
 * characters. */
bool hf_id_pack(struct hf_bytes text, uint8_t raw[HF_ID_RAW]);
void hf_id_unpack(const uint8_t raw[HF_ID_RAW], char text[HF_ID_SIZE]);

/* The place in a list where a page ended, as a cursor for `tenant`, and back. Places are numbers
 * over the whole store; a cursor does not show its place, and two cursors do not show their
 * distance. 0 stays 0, and nothing else becomes 0. Any number is the cursor of some place. */
uint64_t hf_cursor_make(const struct hf_sipkey *key, struct hf_bytes tenant, uint64_t place);
uint64_t hf_cursor_read(const struct hf_sipkey *key, struct hf_bytes tenant, uint64_t cursor);

/* A UUIDv7 as text: 48 bits of `now`, the rest from `random`. */
#define HF_UUID_SIZE 37
void hf_uuid7_make(hf_time now, const uint8_t random[10], char text[HF_UUID_SIZE]);

#endif
