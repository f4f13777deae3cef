#include "audit/digest.h"

#include "base/bytes.h"
#include "base/hash.h"

static void field_add(struct hf_sha256 *s, const char *name, uint8_t type, struct hf_bytes value)
{
    unsigned char b[5];
    size_t length = strlen(name);
    hf_put16(b, (uint16_t)length);
    hf_sha256_add(s, b, 2);
    hf_sha256_add(s, name, length);
    b[0] = type;
    hf_put32(b + 1, (uint32_t)value.size);
    hf_sha256_add(s, b, 5);
    hf_sha256_add(s, value.data, value.size);
}

static void bytes_add(struct hf_sha256 *s, const char *name, struct hf_bytes value)
{
    field_add(s, name, 1, value);
}

static void number_add(struct hf_sha256 *s, const char *name, uint64_t value)
{
    unsigned char b[8];
    hf_put64(b, value);
    field_add(s, name, 2, hf_mem(b, sizeof b));
}

void hf_audit_digest_id(const char *id, uint8_t out[HF_DIGEST_SIZE])
{
    struct hf_sha256 s;
    hf_sha256_init(&s);
    bytes_add(&s, "id", hf_str(id));
    hf_sha256_end(&s, out);
}

static enum hf_audit_fits verdict(bool fits)
{
    return fits ? HF_AUDIT_FITS : HF_AUDIT_FITS_NOT;
}

static bool same(const struct hf_audit_entry *entry, const uint8_t digest[HF_DIGEST_SIZE])
{
    return memcmp(entry->digest, digest, HF_DIGEST_SIZE) == 0;
}

static bool id_fits(const struct hf_audit_entry *entry, const char *id)
{
    uint8_t digest[HF_DIGEST_SIZE];
    hf_audit_digest_id(id, digest);
    return same(entry, digest);
}

/* fence: 0: none. */
static bool place_fits_with(const struct hf_audit_entry *entry, const struct hf_hold *hold,
                            uint64_t fence)
{
    struct hf_sha256 s;
    uint8_t digest[HF_DIGEST_SIZE];
    hf_sha256_init(&s);
    number_add(&s, "duration_ms", (uint64_t)hold->expires_at - (uint64_t)hold->placed_at);
    if (fence > 0)
        number_add(&s, "fence", fence);
    bytes_add(&s, "requester", hold->requester);
    bytes_add(&s, "resource", hold->resource);
    hf_sha256_end(&s, digest);
    return same(entry, digest);
}

/* If a fence was given, it is now the resource's highest. */
static bool place_fits(const struct hf_audit_entry *entry, const struct hf_audit_row *rows,
                       const struct hf_hold *hold)
{
    uint64_t fence = 0;
    for (size_t i = 0; i < entry->row_count; i++)
        if (rows[i].kind == HF_ROW_RESOURCE &&
            hf_bytes_equal(rows[i].resource.name, hold->resource))
            fence = rows[i].resource.fence;
    return place_fits_with(entry, hold, 0) || (fence > 0 && place_fits_with(entry, hold, fence));
}

static bool grant_fits(const struct hf_audit_entry *entry, const struct hf_lease *lease)
{
    struct hf_sha256 s;
    uint8_t digest[HF_DIGEST_SIZE];
    hf_sha256_init(&s);
    bytes_add(&s, "holder", lease->holder);
    bytes_add(&s, "name", lease->name);
    number_add(&s, "ttl_ms", (uint64_t)lease->ttl_ms);
    hf_sha256_end(&s, digest);
    return same(entry, digest);
}

/* JSON as servers store it is digested by its first bytes: NUL, j, and the SHA-256 of its canonical
 * form. Anything else is digested as a whole. */
static struct hf_bytes value_part(struct hf_bytes value)
{
    const unsigned char *p = value.data;
    return value.size >= 34 && p[0] == 0 && p[1] == 'j' ? hf_mem(p, 34) : value;
}

enum requires { SAYS_NOTHING, SAYS_WHAT_IS };

/* A write or deletion may have carried the version that it replaced. That is 0 for a new register,
 * even if it continues the version of a deleted one. fenced: it also carried its fence. says: a
 * write may have said what is now required. */
static bool write_fits_with(const struct hf_audit_entry *entry, const struct hf_register *reg,
                            bool fenced, enum requires says)
{
    for (int with = 0; with < 3; with++) {
        struct hf_sha256 s;
        uint8_t digest[HF_DIGEST_SIZE];
        hf_sha256_init(&s);
        if (fenced)
            number_add(&s, "fence", reg->fence);
        if (with > 0)
            number_add(&s, "if_version", with == 1 ? reg->version - 1 : 0);
        bytes_add(&s, "name", reg->name);
        if (says == SAYS_WHAT_IS)
            number_add(&s, "require_fence", reg->require_fence ? 1 : 2);
        if (entry->action == HF_WRITE)
            bytes_add(&s, "value", value_part(reg->value.bytes));
        hf_sha256_end(&s, digest);
        if (same(entry, digest))
            return true;
    }
    return false;
}

static bool write_fits_fenced(const struct hf_audit_entry *entry, const struct hf_register *reg,
                              bool fenced)
{
    return write_fits_with(entry, reg, fenced, SAYS_NOTHING) ||
           (entry->action == HF_WRITE && write_fits_with(entry, reg, fenced, SAYS_WHAT_IS));
}

static bool write_fits(const struct hf_audit_entry *entry, const struct hf_register *reg)
{
    return write_fits_fenced(entry, reg, false) || write_fits_fenced(entry, reg, true);
}

bool hf_audit_digest_requires(const struct hf_audit_entry *entry, const struct hf_register *reg)
{
    if (entry->action != HF_WRITE || entry->status != HF_OK)
        return false;
    return !entry->digest || write_fits_with(entry, reg, false, SAYS_WHAT_IS) ||
           write_fits_with(entry, reg, true, SAYS_WHAT_IS);
}

static bool delete_lease_fits(const struct hf_audit_entry *entry, const struct hf_lease *lease)
{
    for (int with = 0; with < 2; with++) {
        struct hf_sha256 s;
        uint8_t digest[HF_DIGEST_SIZE];
        hf_sha256_init(&s);
        if (with)
            number_add(&s, "fence", lease->fence);
        bytes_add(&s, "name", lease->name);
        hf_sha256_end(&s, digest);
        if (same(entry, digest))
            return true;
    }
    return false;
}

enum hf_audit_fits hf_audit_digest_fits(const struct hf_audit_entry *entry,
                                        const struct hf_audit_row *rows,
                                        const struct hf_audit_row *answer)
{
    if (!entry->digest || entry->status != HF_OK)
        return HF_AUDIT_CANNOT_TELL;
    bool hold = answer->kind == HF_ROW_HOLD;
    switch (entry->action) {
    case HF_PLACE_HOLD: return verdict(hold && place_fits(entry, rows, &answer->hold));
    case HF_CONFIRM:
    case HF_RELEASE:
    case HF_EXPIRE: return verdict(hold && id_fits(entry, answer->hold.id));
    case HF_REVERSE: return verdict(hold && id_fits(entry, answer->hold.reverses));
    case HF_CONFIRM_LATE:
        return verdict(hold && id_fits(entry, answer->hold.reacquires[0] ? answer->hold.reacquires
                                                                         : answer->hold.id));
    case HF_GRANT:
        return verdict(answer->kind == HF_ROW_LEASE && grant_fits(entry, &answer->lease));
    case HF_DELETE_LEASE:
        return verdict(answer->kind == HF_ROW_LEASE && delete_lease_fits(entry, &answer->lease));
    case HF_DELETE_REGISTER:
    case HF_WRITE:
        return verdict(answer->kind == HF_ROW_REGISTER && write_fits(entry, &answer->reg));
    default: return HF_AUDIT_CANNOT_TELL;
    }
}

bool hf_audit_digest_raises(const struct hf_audit_entry *entry, const struct hf_audit_row *rows,
                            const struct hf_audit_row *raised)
{
    struct hf_audit_row answer;
    bool reg = raised->kind == HF_ROW_REGISTER;
    if (entry->status != HF_OK)
        return false;
    if (reg ? entry->action != HF_WRITE && entry->action != HF_DELETE_REGISTER
            : entry->action != HF_PLACE_HOLD)
        return false;
    if (!entry->digest)
        return true;
    if (reg)
        return write_fits_fenced(entry, &raised->reg, true);
    return hf_audit_answer_read(entry, rows, &answer) && answer.kind == HF_ROW_HOLD &&
           hf_bytes_equal(answer.hold.resource, raised->resource.name) &&
           place_fits_with(entry, &answer.hold, raised->resource.fence);
}
