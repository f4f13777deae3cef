/* id.h: the ordinal inside a hold's id, as its store encodes it: with SipHash in files, with
 * SHA-256 in a database (doc/FORMAT.md). Pure. */
#ifndef HF_AUDIT_ID_H
#define HF_AUDIT_ID_H

#include "audit/read.h"

/* The journal's keys must be known. False if the text is no id of this store. Upper case is
 * accepted. */
bool hf_audit_id_read(const struct hf_audit_journal *journal, struct hf_bytes text,
                      uint64_t *ordinal);
void hf_audit_id_make(const struct hf_audit_journal *journal, uint64_t ordinal,
                      char text[HF_ID_SIZE]);

#endif
