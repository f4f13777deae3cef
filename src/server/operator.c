/* Operators: their credential belongs to no tenant, so a call names the tenant that it is about. */
#include "base/bytes.h"
#include "base/text.h"
#include "server/inner.h"

/* The text without its percent-escapes. NULL data: out of memory or malformed. */
static struct hf_bytes unescape(struct hf_work *work, struct hf_bytes text)
{
    size_t size = 0;
    char *room = hf_arena_take(&work->x->arena, text.size + 1);
    if (!room || !hf_http_unescape(text, room, &size))
        return hf_mem(NULL, 0);
    return hf_mem(room, size);
}

/* Append a part of a query as it was. */
static void part_add(char *to, size_t *size, struct hf_bytes name, struct hf_bytes value)
{
    if (*size > 0)
        to[(*size)++] = '&';
    if (name.size > 0)
        memcpy(to + *size, name.data, name.size);
    *size += name.size;
    to[(*size)++] = '=';
    if (value.size > 0)
        memcpy(to + *size, value.data, value.size);
    *size += value.size;
}

static bool refuse(struct hf_work *work, const char *detail)
{
    hf_work_fail(work, (enum hf_action)0, HF_INVALID_REQUEST, detail);
    return false;
}

static bool tenant_set(struct hf_work *work, struct hf_bytes value)
{
    struct hf_bytes tenant = unescape(work, value);
    if (!tenant.data)
        return refuse(work, "tenant: expected two hexadecimal digits after each %.");
    if (tenant.size == 0 || tenant.size > HF_TENANT_MAX || !hf_utf8_valid(tenant))
        return refuse(work, "tenant: expected the name of a tenant as in the auth file, or - for "
                            "the default tenant.");
    work->input.tenant = hf_bytes_equal(tenant, hf_str("-")) ? hf_mem(NULL, 0) : tenant;
    return true;
}

bool hf_operator_tenant(struct hf_work *work)
{
    struct hf_bytes query = work->input.query, name, value, tenant = hf_mem(NULL, 0);
    size_t size = 0;
    bool given = false;
    char *rest = hf_arena_take(&work->x->arena, 2 * query.size + 1);
    if (!rest) {
        hf_work_fail(work, (enum hf_action)0, HF_NO_MEMORY, NULL);
        return false;
    }
    while (query.size > 0 && hf_http_query_next(&query, &name, &value)) {
        if (!hf_bytes_equal(name, hf_str("tenant"))) {
            part_add(rest, &size, name, value);
            continue;
        }
        if (given)
            return refuse(work, "tenant: it is given twice; give it once.");
        given = true;
        tenant = value;
    }
    work->input.query = hf_mem(rest, size);
    if (given)
        return tenant_set(work, tenant);
    if (work->match.call->list == HF_LIST_CLAIMS) {
        work->input.all_tenants = true;
        return true;
    }
    return refuse(work, "tenant: it is missing. An operator names the tenant that a call is about, "
                        "such as ?tenant=acme, or ?tenant=- for the default tenant.");
}
