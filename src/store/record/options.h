/* options.h: checks of hf_options and figures of hf_stats that both stores share. */
#ifndef HF_STORE_RECORD_OPTIONS_H
#define HF_STORE_RECORD_OPTIONS_H

#include "holdfast.h"

/* Check the limits of the options that both stores have. HF_OK, or HF_INVALID_REQUEST with `why`
 * set. */
enum hf_status hf_options_check(const struct hf_options *options, struct hf_error *why);

/* The place of `n` in a histogram of HF_HISTOGRAM counts: the first of the bounds unit, 2 * unit, 4
 * * unit ... that is >= n. */
size_t hf_histogram_place(uint64_t n, uint64_t unit);

#endif
