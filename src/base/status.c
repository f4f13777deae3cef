/* The names of statuses and actions: the one list that every interface shows. */
#include "holdfast.h"

static const char *const refusals[] = {
    [HF_OK] = "ok",
    [HF_INVALID_REQUEST] = "invalid-request",
    [HF_NOT_KNOWN] = "not-known",
    [HF_RESOURCE_UNAVAILABLE] = "resource-unavailable",
    [HF_NOT_HELD] = "not-held",
    [HF_WINDOW_ELAPSED] = "window-elapsed",
    [HF_WINDOW_NOT_ELAPSED] = "window-not-elapsed",
    [HF_IN_PROGRESS] = "in-progress",
    [HF_OUTCOME_UNKNOWN] = "outcome-unknown",
    [HF_STALE_FENCE] = "stale-fence",
    [HF_VERSION_MISMATCH] = "version-mismatch",
    [HF_TOKEN_COLLISION] = "token-collision",
    [HF_LEASE_HELD] = "lease-held",
    [HF_REFUSED] = "refused",
};

static const char *const faults[] = {
    [0] = "storage-failure",
    [HF_NO_MEMORY - HF_STORAGE_FAILURE] = "no-memory",
    [HF_MISUSE - HF_STORAGE_FAILURE] = "misuse",
    [HF_STORE_BUSY - HF_STORAGE_FAILURE] = "store-busy",
    [HF_STORE_DAMAGED - HF_STORAGE_FAILURE] = "store-damaged",
    [HF_STORE_NEWER - HF_STORAGE_FAILURE] = "store-newer",
    [HF_STORE_ABSENT - HF_STORAGE_FAILURE] = "store-absent",
};

enum { REFUSALS = sizeof refusals / sizeof *refusals, FAULTS = sizeof faults / sizeof *faults };

enum hf_status_kind hf_status_kind(enum hf_status status)
{
    if (status == HF_OK)
        return HF_KIND_OK;
    if (status >= HF_INDETERMINATE)
        return HF_KIND_INDETERMINATE;
    return status >= HF_STORAGE_FAILURE ? HF_KIND_FAULT : HF_KIND_REFUSAL;
}

const char *hf_status_code(enum hf_status status)
{
    unsigned n = (unsigned)status;
    if (n < REFUSALS)
        return refusals[n];
    if (n >= HF_STORAGE_FAILURE && n - HF_STORAGE_FAILURE < FAULTS)
        return faults[n - HF_STORAGE_FAILURE];
    return status == HF_INDETERMINATE ? "indeterminate" : "unknown";
}

const char *hf_action_name(enum hf_action action)
{
    switch (action) {
    case HF_PLACE_HOLD: return "place_hold";
    case HF_CONFIRM: return "confirm";
    case HF_RELEASE: return "release";
    case HF_EXPIRE: return "expire";
    case HF_REVERSE: return "reverse";
    case HF_SET_RESOURCE: return "set_resource";
    case HF_SET_GUARD: return "set_guard";
    case HF_CHECK: return "check";
    case HF_RECORD: return "record";
    case HF_ADMIT: return "admit";
    case HF_BEGIN: return "begin";
    case HF_COMPLETE: return "complete";
    case HF_FAIL: return "fail";
    case HF_HEARTBEAT: return "heartbeat";
    case HF_GRANT: return "grant";
    case HF_RENEW: return "renew";
    case HF_RETURN: return "return";
    case HF_WRITE: return "write";
    case HF_MERGE: return "merge";
    case HF_APPLY: return "apply";
    case HF_DELETE_REGISTER: return "delete_register";
    case HF_DELETE_LEASE: return "delete_lease";
    case HF_SWEEP: return "sweep";
    case HF_CONFIGURE: return "configure";
    case HF_GET_HOLD: return "get_hold";
    case HF_GET_RESOURCE: return "get_resource";
    case HF_GET_GUARD: return "get_guard";
    case HF_GET_CLAIM: return "get_claim";
    case HF_GET_LEASE: return "get_lease";
    case HF_GET_REGISTER: return "get_register";
    case HF_GET_TOKEN: return "get_token";
    case HF_GET_VALUE: return "get_value";
    }
    return "unknown";
}

const char *hf_version(void)
{
    return HF_VERSION;
}
