/* sound.h: could a store have written this row?
 *
 * CRCs find accidental damage. A well-formed row may still be none that a store writes: an unknown
 * state or type, a name or time beyond every limit, a register whose value is not in its stored
 * form. The rules trust stored rows, so rows from files are checked once before use. Pure. */
#ifndef HF_STORE_RECORD_SOUND_H
#define HF_STORE_RECORD_SOUND_H

#include "core/core.h"

/* row: well-formed (hf_image_decode), not an erased one. */
bool hf_row_sound(const struct hf_row *row);

/* The time of a batch. Durations are added to it, so it must not be near the end of the range. */
bool hf_now_sound(hf_time now);

#endif
