/* words.h: what can be seen of a store, as one number. Two stores that give the same number show
 * the same records, byte for byte; through the public library alone. */
#ifndef HF_PROOF_POWER_WORDS_H
#define HF_PROOF_POWER_WORDS_H

#include "holdfast.h"

/* What a request was answered with: the status and every byte of the record. */
uint64_t power_answer_hash(const struct hf_answer *answer);

/* Everything that the lists show of each tenant, and the registers, claims, leases and values with
 * these names. Both lists end with NULL. False if a call fails; why: out. */
bool power_state_hash(struct hf_db *db, const char *const *tenants, const char *const *names,
                      uint64_t *out, struct hf_error *why);

#endif
