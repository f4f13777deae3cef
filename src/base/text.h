/* text.h: durations, times, sizes and names as people write them, and the test for UTF-8. Pure. */
#ifndef HF_BASE_TEXT_H
#define HF_BASE_TEXT_H

#include "holdfast.h"

/* Well-formed UTF-8 (no surrogates, nothing overlong, nothing above U+10FFFF). */
bool hf_utf8_valid(struct hf_bytes text);

/* A duration: "250ms", "30s", "15m", "24h", "7d", or a bare number of seconds. Digits only, no
 * sign, no fraction, no space. False if the text is not a duration, or longer than
 * HF_DURATION_MAX_MS. */
bool hf_duration_parse(struct hf_bytes text, int64_t *ms);
/* The same, with an optional minus sign and of any length: the caller refuses what is too long or
 * negative. False if the text is not a duration, or if its milliseconds do not fit into int64_t. */
bool hf_duration_read(struct hf_bytes text, int64_t *ms);
/* The shortest exact form of a duration, such as "15m". `out` has at least 24 bytes. */
void hf_duration_format(int64_t ms, char *out);

#define HF_TIME_TEXT 25 /* "2026-11-15T21:39:57.123Z" and a NUL */
/* RFC 3339, UTC, with milliseconds. Earlier times than year 0 and later times than 9999 are cut to
 * these bounds. */
void hf_time_format(hf_time t, char out[HF_TIME_TEXT]);
/* RFC 3339 with any offset and 0 to 9 digits of fraction (cut to milliseconds), a date alone
 * (midnight UTC), or "@" and milliseconds since 1970. */
bool hf_time_parse(struct hf_bytes text, hf_time *t);

/* The names of a match step and of a register type, the same in every interface. Static; NULL for
 * other numbers. */
const char *hf_match_name(enum hf_match match);
const char *hf_register_type_name(enum hf_register_type type);

/* A size: "4096", "64KiB", "1MiB", "2GiB". */
bool hf_size_parse(struct hf_bytes text, uint64_t *bytes);

/* A whole number without sign. False if empty, too large, or anything but digits. */
bool hf_number_parse(struct hf_bytes text, uint64_t *number);

#endif
