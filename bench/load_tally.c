#include "load.h"

#include <stdio.h>

static unsigned expected_status(enum hf_load_job job)
{
    return job <= HF_LOAD_SELECT ? 201 : 200;
}

void hf_load_tally_add(struct hf_load_tally *t, enum hf_load_job job, unsigned status,
                       bool replayed, const char *text, size_t length)
{
    if (status >= sizeof t->by_status / sizeof *t->by_status)
        status = 0;
    t->by_status[status]++;
    if (status == expected_status(job) &&
        replayed == (job == HF_LOAD_REPLAY || job == HF_LOAD_SELECT)) {
        t->right++;
        return;
    }
    if (t->wrong++ == 0) {
        int keep = (int)(length < 180 ? length : 180);
        snprintf(t->first_wrong, sizeof t->first_wrong, "status %u%s: %.*s", status,
                 replayed ? ", replayed" : "", keep, text);
    }
}

void hf_load_tally_add_text(struct hf_load_tally *t, enum hf_load_job job, const char *text,
                            size_t length)
{
    unsigned status = 0;
    bool whole = length >= 5 && (text[0] == '0' || text[0] == '1') && text[1] == ' ';
    for (size_t i = 2; whole && i < 5; i++) {
        unsigned digit = (unsigned)text[i] - '0';
        whole = digit <= 9;
        status = status * 10 + digit;
    }
    hf_load_tally_add(t, job, whole ? status : 0, whole && text[0] == '1', text, length);
}
