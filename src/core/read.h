/* read.h: the rules of the actions that only read: the record as the view has it. They plan no
 * rows. */
#ifndef HF_CORE_READ_H
#define HF_CORE_READ_H

#include "core/core.h"

/* hf_read_hold: HF_OK, HF_NOT_KNOWN, or HF_STORAGE_FAILURE (unreadable), as all functions below. */
void hf_read_hold(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                  struct hf_plan *plan);
/* hf_read_named: a resource, guard, lease or register, by its name. Also HF_INVALID_REQUEST (name).
 * A deleted register is not known. */
void hf_read_named(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                   struct hf_plan *plan);
/* hf_read_value: a value of the application key space. Also HF_INVALID_REQUEST (key). */
void hf_read_value(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                   struct hf_plan *plan);
/* hf_read_claim: the claim with the key, if it is still remembered. Also HF_INVALID_REQUEST (key).
 * Fills plan->token too. */
void hf_read_claim(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                   struct hf_plan *plan);
/* hf_read_token: the first answer of the call that used this key, or the claim with this key.
 * Otherwise as hf_read_claim. The same for a client's number; HF_WINDOW_ELAPSED if it is below the
 * window. */
void hf_read_token(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                   struct hf_plan *plan);

#endif
