/* record.h: which seeds have been run, in a file that grows over many runs.
 *
 * A line is `from-to operations version result`, where result is `ok` or `failed`; version is that
 * of the simulator. Ranges that touch or overlap are one line, if all else is the same. */
#ifndef HF_PROOF_SIMULATE_RECORD_H
#define HF_PROOF_SIMULATE_RECORD_H

#include "holdfast.h"

struct sim_range {
    uint64_t from, to; /* both included */
    uint32_t operations, version;
    bool failed;
};

struct sim_record {
    /* owned, free with sim_record_free; in order of version, operations, from */
    struct sim_range *ranges;
    size_t count, room;
};

void sim_record_free(struct sim_record *record);

/* Add a range; what it touches is merged. A seed that is added again has its new result. */
void sim_record_add(struct sim_record *record, const struct sim_range *range);

/* The highest seed that was run with as many operations by this version; 0: none. */
uint64_t sim_record_last(const struct sim_record *record, uint32_t operations, uint32_t version);
/* How many seeds were run by this version, and how many of them failed. */
void sim_record_total(const struct sim_record *record, uint32_t version, uint64_t *seeds,
                      uint64_t *failed);

/* sim_record_read: the record in the file; a file that does not exist is an empty one.
 * record: out, owned. why: out, a sentence. False if it cannot be read, or is not a record. */
bool sim_record_read(const char *path, struct sim_record *record, struct hf_error *why);

/* Add what is in `more` to the file, which another process may be doing at the same time. */
bool sim_record_merge(const char *path, const struct sim_record *more, struct hf_error *why);

#endif
