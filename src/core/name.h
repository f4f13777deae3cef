/* name.h: which names and tenants are well-formed. */
#ifndef HF_CORE_NAME_H
#define HF_CORE_NAME_H

#include "core/core.h"

/* 1 .. HF_NAME_MAX bytes of UTF-8 without NUL. */
bool hf_name_valid(struct hf_bytes name);
/* 0 .. HF_TENANT_MAX bytes of UTF-8 without NUL. */
bool hf_tenant_valid(struct hf_bytes tenant);
/* 1 .. HF_DURATION_MAX_MS. */
bool hf_duration_valid(int64_t ms);

#endif
