#include "core/name.h"

#include "base/text.h"

static bool text_valid(struct hf_bytes text, size_t size_max)
{
    return text.size <= size_max && !memchr(text.data, '\0', text.size) && hf_utf8_valid(text);
}

bool hf_name_valid(struct hf_bytes name)
{
    return name.size > 0 && text_valid(name, HF_NAME_MAX);
}

bool hf_tenant_valid(struct hf_bytes tenant)
{
    return tenant.size == 0 || text_valid(tenant, HF_TENANT_MAX);
}

bool hf_duration_valid(int64_t ms)
{
    return ms >= 1 && ms <= HF_DURATION_MAX_MS;
}
