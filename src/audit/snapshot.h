/* snapshot.h: what the newest snapshot says about its journal. */
#ifndef HF_AUDIT_SNAPSHOT_H
#define HF_AUDIT_SNAPSHOT_H

#include "audit/segment.h"

struct hf_audit_snapshot {
    bool found;          /* false: there is no whole snapshot */
    uint64_t start, end; /* positions */
    uint64_t next_sequence;
    hf_time now;                   /* at start */
    uint8_t chain[HF_DIGEST_SIZE]; /* at start */
    /* A start loads an older snapshot if this one has no owners. loaded_start: the start of the
     * loaded snapshot, 0 if there is none. unusable: how many newer ones are skipped, and the
     * newest of these, or "". */
    uint64_t loaded_start;
    uint64_t unusable;
    char unusable_name[HF_AUDIT_NAME_SIZE];
};

/* hf_audit_snapshot_look: the newest whole snapshot (doc/FORMAT.md) of this store in the directory
 * `dir` (a descriptor, borrowed). store: the header of a segment, borrowed; NULL: the store's
 * identity is not known. out: out. False if the directory or a snapshot cannot be read: see errno;
 * unusable_name is the snapshot, "" if it is the directory. */
bool hf_audit_snapshot_look(int dir, const struct hf_audit_head *store,
                            struct hf_audit_snapshot *out);

#endif
