/* read.h: the rules of questions: a record as it stands, as the view has it. They plan no rows. */
#ifndef HF_CORE_READ_H
#define HF_CORE_READ_H

#include "core/core.h"

/* hf_read_hold: HF_OK, HF_NOT_KNOWN, or HF_STORAGE_FAILURE (unreadable), as all others do. */
void hf_read_hold(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                  struct hf_plan *plan);
/* hf_read_named: a resource, guard, lease or register, by its name. Also HF_INVALID_REQUEST (name).
 * A register that was deleted is not known. */
void hf_read_named(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                   struct hf_plan *plan);
/* hf_read_value: of the application key space. Also HF_INVALID_REQUEST (key). */
void hf_read_value(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                   struct hf_plan *plan);
/* hf_read_claim: the claim under the key, if it is still remembered. Also HF_INVALID_REQUEST (key).
 * Fills the token too: the claim has the key. */
void hf_read_claim(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                   struct hf_plan *plan);
/* hf_read_token: what happened to the request with this key? A call carried it, or a claim has it.
 * As hf_read_claim. */
void hf_read_token(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                   struct hf_plan *plan);

#endif
