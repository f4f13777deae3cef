/* sound.h: could a store have written this row?
 *
 * CRCs find what broke by accident. A row that is well-formed and still none of ours (a state or
 * type that there is not, a name or time beyond every limit, a register whose value is not in its
 * stored form) would lead the rules, which trust what is stored, astray; so rows from files are
 * looked at once, before anybody relies on them. Pure. */
#ifndef HF_STORE_RECORD_SOUND_H
#define HF_STORE_RECORD_SOUND_H

#include "core/core.h"

/* row: well-formed (hf_image_decode), not one that leaves. */
bool hf_row_sound(const struct hf_row *row);

/* The time of a batch, with which durations are added up. */
bool hf_now_sound(hf_time now);

#endif
