/* trace.h: the life of one hold, or of one key, in plain words, from the files alone.
 *
 *     2026-11-15T21:39:57.123Z  placed by key "order-1" for 15m: resource "room-307", requester
 * "guest-91" ... 2026-11-15T21:40:02.400Z confirmed by key "order-1-confirm"
 * 2026-11-15T21:41:17.009Z release by key "order-1-release" refused: not-held
 *
 * Refused attempts carry no record of the hold, only the digest of what was asked; the digest of
 * the same question about this hold is computed here, and that is how they are found. */
#ifndef HF_AUDIT_TRACE_H
#define HF_AUDIT_TRACE_H

#include "audit/read.h"

#include <stdio.h>

enum hf_audit_subject {
    HF_AUDIT_SUBJECT_GUESS =
        0, /* a hold if it is an id of this store that there is a record of, else a key */
    HF_AUDIT_SUBJECT_HOLD,
    HF_AUDIT_SUBJECT_KEY
};

struct hf_audit_trace_options {
    enum hf_audit_subject subject;
    /* true: only entries of this tenant are read. Another one's hold is not known then, and nothing
     * tells it from an id that nobody has; and nothing that is told depends on what the others
     * wrote. false: all tenants are, and each is named. */
    bool has_tenant;
    struct hf_bytes tenant;
    uint64_t sequence; /* keys: not 0: the key is a client's name, and this its number */
    hf_time
        /* a claim's lease is judged at this time, or at that of the newest batch if that is later:
         * a lease that runs out leaves no record */
        now;
    bool json;
    const char *postgres; /* NULL, or the database to read instead of the directory */
    uint32_t timeline;    /* 0, or of the primary that is to be read (hf_timeline) */
};

/* hf_audit_trace: `holdfast trace`: read the store in `dir` and print the life of `name` (an id or
 * a key). dir, name, options: borrowed; options may be NULL. why: out. Returns the exit code: 0
 * found, 1 nothing is known of it (why says so; as JSON, "found" is false), 3 the store could not
 * be read (why says so, nothing is printed). Damage is told and read past. */
int hf_audit_trace(const char *dir, struct hf_bytes name,
                   const struct hf_audit_trace_options *options, FILE *out, struct hf_error *why);

#endif
