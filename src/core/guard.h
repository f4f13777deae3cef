/* guard.h: have I seen this lately?
 *
 * An identity recorded at t in a guard with window w is seen while now - t < w. Recording it again
 * inside the window changes nothing, neither the time nor the result. Invariants DP1 to DP4. */
#ifndef HF_CORE_GUARD_H
#define HF_CORE_GUARD_H

#include "core/core.h"

/* hf_guard_set: make or change a guard. HF_OK, HF_INVALID_REQUEST (name, window not in 1 ..
 * HF_DURATION_MAX_MS, match rule), HF_STORAGE_FAILURE. A new window or rule is for later
 * recordings: recorded identities keep their end and their form. No row if nothing changes. */
void hf_guard_set(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                  struct hf_plan *plan);

/* hf_guard_ask: check, record or admit, by cmd's action. HF_OK with kind HF_RECORD_SEEN,
 * HF_INVALID_REQUEST (guard name, identity, result longer than HF_GUARD_RESULT_MAX), HF_NOT_KNOWN
 * (no such guard). check never has a row. record and admit have one exactly if the identity is not
 * under guard and the store accepts writes. If the store refuses writes: record answers HF_OK and
 * the plan says `missed`; admit does the same in a guard that fails open, and answers seen, with no
 * times, in a guard that fails closed. If the entry cannot be read: check and admit answer by
 * on_unavailable, record HF_OK and `missed`. */
void hf_guard_ask(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                  struct hf_plan *plan);

#endif
