/* snapshot.h: what the newest snapshot of a store says about the journal that it was taken of. */
#ifndef HF_AUDIT_SNAPSHOT_H
#define HF_AUDIT_SNAPSHOT_H

#include "audit/segment.h"

struct hf_audit_snapshot {
    bool found;          /* false: there is none that is whole */
    uint64_t start, end; /* positions */
    uint64_t next_sequence;
    hf_time now;                   /* at start */
    uint8_t chain[HF_DIGEST_SIZE]; /* at start */
    /* The start loads the tables from another one if this has no owners: where that began, 0 if
     * there is none. Those that it passes over, and the newest of them, or "". */
    uint64_t loaded_start;
    uint64_t unusable;
    char unusable_name[HF_AUDIT_NAME_SIZE];
};

/* hf_audit_snapshot_look: the newest whole snapshot (doc/FORMAT.md) of this store in the directory
 * `dir` (a descriptor, borrowed). store: the header of a segment, borrowed; NULL: it is not known
 * which store it is. out: out. False if the directory or a snapshot cannot be read; errno says why,
 * and unusable_name which snapshot, "" if it is the directory. */
bool hf_audit_snapshot_look(int dir, const struct hf_audit_head *store,
                            struct hf_audit_snapshot *out);

#endif
