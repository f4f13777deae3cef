/* fence.h: registers. A stale writer is refused because of its fence or the version that it saw;
 * merged values need neither. */
#ifndef HF_CORE_FENCE_H
#define HF_CORE_FENCE_H

#include "core/core.h"

/* The rule of fencing: a write must carry a fence above every fence seen before. 0 means no fence,
 * which is stale too where one is required. */
bool hf_fence_stale(uint64_t fence, uint64_t highest, bool required);
/* Is a fence required after this wish? */
bool hf_fence_require(enum hf_require wish, bool required);

/* hf_register_write: HF_OK, HF_INVALID_REQUEST (name, value longer than HF_VALUE_MAX, the register
 * holds a merged type), HF_STALE_FENCE, HF_VERSION_MISMATCH, in that order. The version rises by
 * one. */
void hf_register_write(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                       struct hf_plan *plan);

/* hf_register_delete: HF_OK, HF_INVALID_REQUEST (name), HF_NOT_KNOWN, HF_STALE_FENCE,
 * HF_VERSION_MISMATCH, in that order. It leaves a row of the type HF_TYPE_DELETED, one version up
 * and with the highest fence. The row's value is the time from which it may be forgotten: one
 * window from now, or INT64_MAX if there is a fence. No caller sees such a row, and a new register
 * of the same name continues its version and its fence. */
void hf_register_delete(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                        struct hf_plan *plan);
/* Is this a register, and not the row that a deleted register left? */
bool hf_register_there(const struct hf_register *reg);
/* Is the row that a deleted register left forgotten at `now`? */
bool hf_register_forgotten(const struct hf_register *reg, hf_time now);

/* hf_register_merge: HF_OK, HF_INVALID_REQUEST (name, value, the register has another type),
 * HF_STORAGE_FAILURE. A refusal because of the register's type or limits carries the register. A
 * merge that changes nothing is HF_OK, has no row and keeps the version. */
void hf_register_merge(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                       struct hf_plan *plan);

#endif
