/* log_text.h: the format of a log line. Pure: no clock, no memory but the line's own. */
#ifndef HF_SERVER_LOG_TEXT_H
#define HF_SERVER_LOG_TEXT_H

#include "server/log.h"

#define HF_LOG_TAIL 48 /* room that is kept for hf_log_text_end */

struct hf_log_text {
    bool json, hash_keys;
    bool cut; /* a field did not fit */
    size_t size;
    char text[HF_LOG_LINE_MAX];
};

/* Write the line without its end. */
void hf_log_text_begin(struct hf_log_text *t, enum hf_log_level level, hf_time when,
                       const char *event);
void hf_log_text_field(struct hf_log_text *t, const struct hf_log_field *field);
/* End the line. dropped: lines dropped since the start, to be shown; 0: do not show it. */
void hf_log_text_end(struct hf_log_text *t, uint64_t dropped);

#endif
