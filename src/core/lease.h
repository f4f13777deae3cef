/* lease.h: authority over a name, with a fence that only rises. */
#ifndef HF_CORE_LEASE_H
#define HF_CORE_LEASE_H

#include "core/core.h"

/* hf_lease_grant: HF_OK under a fresh fence, HF_INVALID_REQUEST (name, holder, ttl), HF_LEASE_HELD
 * (by anyone, the same holder too, while now < expires_at and not given back). */
void hf_lease_grant(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                    struct hf_plan *plan);

/* hf_lease_renew, hf_lease_return: HF_OK, HF_INVALID_REQUEST (name, fence 0 or above the lease's,
 * ttl), HF_NOT_KNOWN, HF_STALE_FENCE (fence below the lease's), HF_NOT_HELD (ran out or given back;
 * returning what this fence has given back already is HF_OK again, without a row),
 * HF_STORAGE_FAILURE. A fence that is not the lease's is refused with the lease. Renewing sets
 * expires_at to now + ttl (0: as granted). */
void hf_lease_renew(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                    struct hf_plan *plan);
void hf_lease_return(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan);

/* hf_lease_delete: HF_OK, HF_INVALID_REQUEST (name, a fence above the lease's), HF_NOT_KNOWN,
 * HF_STALE_FENCE (a fence below the lease's), HF_LEASE_HELD (it is held, and no fence was given).
 * The row leaves; fences come from one counter, so that the next one of the name is above this one
 * all the same. The answer is the lease as it was last, given back now if it was held. */
void hf_lease_delete(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                     struct hf_plan *plan);

#endif
