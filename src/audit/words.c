#include "audit/words.h"

#include "base/text.h"

#include <stdlib.h>

const char *hf_audit_state_name(enum hf_hold_state state)
{
    switch (state) {
    case HF_HELD: return "held";
    case HF_CONFIRMED: return "confirmed";
    case HF_RELEASED: return "released";
    case HF_EXPIRED: return "expired";
    }
    return "unknown";
}

const char *hf_audit_claim_name(enum hf_claim_state state)
{
    switch (state) {
    case HF_CLAIM_STARTED: return "started";
    case HF_CLAIM_COMPLETED: return "completed";
    case HF_CLAIM_FAILED: return "failed";
    case HF_CLAIM_RETRYABLE: return "retryable";
    case HF_CLAIM_UNKNOWN: return "unknown";
    }
    return "unknown";
}

const char *hf_audit_type_name(enum hf_register_type type)
{
    switch (type) {
    case HF_TYPE_PLAIN: return "plain";
    case HF_TYPE_MAX: return "max";
    case HF_TYPE_MIN: return "min";
    case HF_TYPE_OR: return "or";
    case HF_TYPE_UNION: return "union";
    case HF_TYPE_LWW: return "lww";
    case HF_TYPE_VECTOR: return "vector";
    case HF_TYPE_COUNTER: return "counter";
    case HF_TYPE_UPDOWN: return "updown";
    case HF_TYPE_DELETED: return "deleted";
    }
    return "unknown";
}

const char *hf_audit_match_name(enum hf_match match)
{
    switch (match) {
    case HF_MATCH_EXACT: return "exact";
    case HF_MATCH_TRIM: return "trim";
    case HF_MATCH_CASEFOLD: return "casefold";
    case HF_MATCH_NORMALIZE: return "normalize";
    case HF_MATCH_HASH: return "hash";
    }
    return "unknown";
}

const char *hf_audit_row_name(enum hf_row_kind kind)
{
    switch (kind) {
    case HF_ROW_HOLD: return "hold";
    case HF_ROW_RESOURCE: return "resource";
    case HF_ROW_GUARD: return "guard";
    case HF_ROW_ENTRY: return "identity";
    case HF_ROW_CLAIM: return "claim";
    case HF_ROW_LEASE: return "lease";
    case HF_ROW_REGISTER: return "register";
    case HF_ROW_CLIENT: return "client";
    case HF_ROW_VALUE: return "value";
    case HF_ROW_OUTBOX: return "outbox";
    case HF_ROW_SUCCESSOR: return "successor";
    case HF_ROW_CONFIG: return "config";
    }
    return "unknown";
}

void hf_audit_hex(const uint8_t *bytes, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * size] = '\0';
}

static bool printable(struct hf_bytes bytes)
{
    const unsigned char *p = bytes.data;
    for (size_t i = 0; i < bytes.size; i++)
        if (p[i] < 0x20 || p[i] == 0x7f || p[i] == '"')
            return false;
    return hf_utf8_valid(bytes);
}

struct hf_audit_shown hf_audit_show(struct hf_bytes bytes)
{
    enum { TEXT_MAX = 128, HEX_MAX = 64 };
    struct hf_audit_shown s;
    bool text = printable(bytes);
    size_t n = bytes.size;
    if (text) {
        const unsigned char *p = bytes.data;
        if (n > TEXT_MAX)
            n = TEXT_MAX;
        while (n < bytes.size && n > 0 && (p[n] & 0xc0) == 0x80) /* do not cut inside a character */
            n--;
        snprintf(s.text, sizeof s.text, "\"%.*s%s\"", (int)n, n > 0 ? (const char *)p : "",
                 n < bytes.size ? "..." : "");
        return s;
    }
    char hex[2 * HEX_MAX + 1];
    if (n > HEX_MAX)
        n = HEX_MAX;
    hf_audit_hex(bytes.data, n, hex);
    snprintf(s.text, sizeof s.text, "0x%s%s", hex, n < bytes.size ? "..." : "");
    return s;
}

struct hf_audit_clock hf_audit_at(hf_time t)
{
    struct hf_audit_clock c = { "never" };
    if (t != INT64_MAX)
        hf_time_format(t, c.text);
    return c;
}

struct hf_audit_clock hf_audit_until(hf_time t)
{
    struct hf_audit_clock c = { "for ever" };
    char at[HF_TIME_TEXT];
    if (t == INT64_MAX)
        return c;
    hf_time_format(t, at);
    snprintf(c.text, sizeof c.text, "until %s", at);
    return c;
}

struct hf_audit_clock hf_audit_for(int64_t ms)
{
    struct hf_audit_clock c = { "" };
    hf_duration_format(ms, c.text);
    return c;
}

struct hf_audit_counted hf_audit_count(uint64_t number, const char *one, const char *many)
{
    struct hf_audit_counted c;
    snprintf(c.text, sizeof c.text, "%llu %s", (unsigned long long)number,
             number == 1 ? one : many);
    return c;
}

struct hf_audit_who hf_audit_named(const char *what, struct hf_bytes name, struct hf_bytes tenant)
{
    struct hf_audit_who w;
    int n = snprintf(w.text, sizeof w.text, "%s %s", what, hf_audit_show(name).text);
    if (tenant.size > 0 && n > 0)
        snprintf(w.text + n, sizeof w.text - (size_t)n, " of tenant %s",
                 hf_audit_show(tenant).text);
    return w;
}

char *hf_audit_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

struct hf_audit_who hf_audit_who(const struct hf_audit_entry *entry)
{
    struct hf_audit_who w;
    char tenant[HF_AUDIT_SHOW + 16] = "";
    if (entry->remember == HF_REMEMBER_KEY)
        return hf_audit_named("key", entry->key, entry->tenant);
    if (entry->tenant.size > 0)
        snprintf(tenant, sizeof tenant, " of tenant %s", hf_audit_show(entry->tenant).text);
    if (entry->remember == HF_REMEMBER_SEQUENCE)
        snprintf(w.text, sizeof w.text, "number %llu of client %s%s",
                 (unsigned long long)entry->sequence, hf_audit_show(entry->key).text, tenant);
    else
        snprintf(w.text, sizeof w.text, "no key%s", tenant);
    return w;
}
