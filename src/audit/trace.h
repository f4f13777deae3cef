/* trace.h: the events of one hold or one key, in plain words, from the records alone.
 * If several tenants use the key, each event and each line about its state now names its tenant.
 *
 *     2026-11-15T21:39:57.123Z  placed by key "order-1" for 15m: resource "room-307", ...
 *     2026-11-15T21:40:02.400Z  confirmed by key "order-1-confirm"
 *     2026-11-15T21:41:17.009Z  release by key "order-1-release" refused: not-held
 *
 * A refused attempt has no record of the hold, only the digest of its parameters. The trace
 * computes the digest of an action on this hold, and finds refused attempts by it. */
#ifndef HF_AUDIT_TRACE_H
#define HF_AUDIT_TRACE_H

#include "audit/read.h"

#include <stdio.h>

enum hf_audit_subject {
    HF_AUDIT_SUBJECT_GUESS = 0, /* a hold if it is the id of a recorded hold, else a key */
    HF_AUDIT_SUBJECT_HOLD,
    HF_AUDIT_SUBJECT_KEY
};

struct hf_audit_trace_options {
    enum hf_audit_subject subject;
    /* true: read only entries of this tenant. Then another tenant's hold is not known, like an id
     * that does not exist, and nothing shown depends on what other tenants wrote. false: read all
     * tenants, and name the tenant of each entry. */
    bool has_tenant;
    struct hf_bytes tenant;
    uint64_t sequence; /* for keys; not 0: the key is a client's name, and this is its number */
    /* a claim's lease is compared with this time, or with the time of the newest batch if that is
     * later: a lease that runs out leaves no record */
    hf_time now;
    bool json;
    const char *postgres; /* NULL, or the database to read instead of the directory */
    uint32_t timeline;    /* 0, or the timeline of the primary to read (hf_timeline) */
};

/* hf_audit_trace: `holdfast trace`: read the store in `dir` and print the events of `name` (an id
 * or a key). dir, name, options: borrowed; options may be NULL. why: out. Returns the exit code: 0
 * found, 1 not known (why is set; as JSON, "found" is false), 3 the store could not be read or
 * `out` not be written (why is set). Damage is reported and skipped. */
int hf_audit_trace(const char *dir, struct hf_bytes name,
                   const struct hf_audit_trace_options *options, FILE *out, struct hf_error *why);

#endif
