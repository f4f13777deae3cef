/* hold.h: one resource, held for one requester, for a bounded time.
 *
 *   HELD ──confirm──▶ CONFIRMED     each arrow at most once,
 *     ├───release──▶ RELEASED       no arrow back
 *     └───expire───▶ EXPIRED ┄┄ a late confirm ┄┄▶ a new record, CONFIRMED
 *
 * A resource's unit is taken while its hold is HELD or CONFIRMED. Only a reversal gives a confirmed
 * unit back: a new record in state RELEASED that names the original; the original stays CONFIRMED.
 * Invariants PC1 to PC11 in doc/ARCHITECTURE.md. */
#ifndef HF_CORE_HOLD_H
#define HF_CORE_HOLD_H

#include "core/core.h"

/* All of these: view, cmd borrowed; plan out, the answer is always set; pure. */

/* hf_hold_place: HF_OK, HF_INVALID_REQUEST (name empty, too long, not UTF-8 or with NUL; duration
 * not in 1 .. HF_DURATION_MAX_MS), HF_STALE_FENCE (fence given and not above the resource's), or
 * HF_RESOURCE_UNAVAILABLE (full, closed, or unknown to a strict registry), in that order. Rows of
 * the same plan expire overdue holds on the resource first, also if the answer is a refusal. */
void hf_hold_place(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                   struct hf_plan *plan);

/* hf_hold_end: confirm, release or expire, by cmd's action. HF_OK, HF_NOT_KNOWN, HF_NOT_HELD,
 * HF_WINDOW_ELAPSED (confirm at now >= expires_at), HF_WINDOW_NOT_ELAPSED (expire before it), in
 * that order. An overdue hold that is still held can be released. Rows only for HF_OK. */
void hf_hold_end(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                 struct hf_plan *plan);

/* hf_hold_confirm_late: confirm, and if the hold's window has elapsed, place and confirm a new hold
 * in its place. HF_OK, HF_NOT_KNOWN, HF_NOT_HELD (confirmed, released, or reacquired before), or
 * HF_WINDOW_ELAPSED with `refund` (the resource is closed, or no unit is free), in that order. As
 * in hf_hold_place, rows of the same plan expire overdue holds on the resource first, this hold
 * among them, also if the answer is a refusal. The new record: fresh id and ordinal, the old one's
 * resource, requester and duration, CONFIRMED, placed_at = ended_at = now,
 * `reacquires` the old one's id. */
void hf_hold_confirm_late(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                          struct hf_plan *plan);

/* hf_hold_reverse: HF_OK, HF_NOT_KNOWN, HF_NOT_HELD (not confirmed, or given back before, or itself
 * a reversal). The new record: fresh id and ordinal, the original's resource and requester,
 * RELEASED, placed_at = ended_at = now, expires_at = now + the original's duration, `reverses` the
 * original's id. */
void hf_hold_reverse(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan);

/* hf_hold_expire_row: plan the rows that expire `hold` (held and overdue) and take its unit off
 * `resource`, which the caller adds to the plan once, at the end. */
void hf_hold_expire_row(const struct hf_hold *hold, hf_time now, struct hf_resource *resource,
                        struct hf_plan *plan);

/* hf_resource_set: HF_OK, HF_INVALID_REQUEST (name, capacity above HF_CAPACITY_MAX),
 * HF_RESOURCE_UNAVAILABLE (capacity below what is taken), HF_STORAGE_FAILURE. No row if nothing
 * changes. */
void hf_resource_set(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan);

#endif
