/* The names of statuses, match steps and register types, the same in every interface. */
#include "base/text.h"

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

const char *hf_version(void)
{
    return HF_VERSION;
}

const char *hf_match_name(enum hf_match match)
{
    static const char *const names[] = { [HF_MATCH_EXACT] = "exact",
                                         [HF_MATCH_TRIM] = "trim",
                                         [HF_MATCH_CASEFOLD] = "casefold",
                                         [HF_MATCH_NORMALIZE] = "normalize",
                                         [HF_MATCH_HASH] = "hash" };
    return (size_t)match < sizeof names / sizeof *names ? names[match] : NULL;
}

const char *hf_register_type_name(enum hf_register_type type)
{
    static const char *const names[] = {
        [HF_TYPE_PLAIN] = "plain",    [HF_TYPE_MAX] = "max",         [HF_TYPE_MIN] = "min",
        [HF_TYPE_OR] = "or",          [HF_TYPE_UNION] = "union",     [HF_TYPE_LWW] = "lww",
        [HF_TYPE_VECTOR] = "vector",  [HF_TYPE_COUNTER] = "counter", [HF_TYPE_UPDOWN] = "updown",
        [HF_TYPE_DELETED] = "deleted"
    };
    return (size_t)type < sizeof names / sizeof *names ? names[type] : NULL;
}
