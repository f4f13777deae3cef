/* canonical.h: one text for every way to write the same JSON value (RFC 8785).
 *
 *   members   sorted by name, in the order of UTF-16 code units; no white space
 *   strings   escaped only where JSON demands it, in the shortest way
 *   numbers   as JavaScript prints the nearest double: 1.0, 1 and 10e-1 are all 1
 *
 * One difference from the RFC, which leaves integers beyond a double to the application: they keep
 * all their digits. Two requests that differ in the last digit of a 64-bit id are two requests. */
#ifndef HF_JSON_CANONICAL_H
#define HF_JSON_CANONICAL_H

#include "json/reader.h"

/* Read the next value, of any type, as its canonical text. out: in the arena. */
bool hf_reader_canonical(struct hf_reader *r, struct hf_bytes *out);

#endif
