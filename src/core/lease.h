/* lease.h: authority over a name, with a fence that only rises. */
#ifndef HF_CORE_LEASE_H
#define HF_CORE_LEASE_H

#include "core/core.h"

/* hf_lease_grant: HF_OK under a fresh fence, HF_INVALID_REQUEST (name, holder, ttl), HF_LEASE_HELD
 * (by any holder, also the same one, while now < expires_at and not given back). */
void hf_lease_grant(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                    struct hf_plan *plan);

/* hf_lease_renew, hf_lease_return: HF_OK, HF_INVALID_REQUEST (name, fence 0 or above the lease's,
 * ttl), HF_NOT_KNOWN, HF_STALE_FENCE (fence below the lease's), HF_NOT_HELD (ran out or given back;
 * a repeated return with the same fence is HF_OK, without a row), HF_STORAGE_FAILURE. A refusal
 * because of the fence carries the lease. Renew sets expires_at to now + ttl (0: the ttl of the
 * lease). */
void hf_lease_renew(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                    struct hf_plan *plan);
void hf_lease_return(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan);

/* hf_lease_delete: HF_OK, HF_INVALID_REQUEST (name, a fence above the lease's), HF_NOT_KNOWN,
 * HF_STALE_FENCE (a fence below the lease's), HF_LEASE_HELD (it is held, and no fence was given).
 * The row is deleted; fences come from one counter, so the next fence of the name is above this
 * one. The answer is the lease as it was, given back now if it was held. */
void hf_lease_delete(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan);

#endif
