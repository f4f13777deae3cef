#include "core/digest.h"

#include "base/bytes.h"
#include "base/hash.h"

/* The canonical form on its way into the hash. Most requests fit into `held` as a whole, and one call of
 * the hash is cheaper than a dozen. */
struct form {
    struct hf_sha256 sha;
    size_t used;
    unsigned char held[256];
};

static void form_add(struct form *f, const void *data, size_t size)
{
    if (size > sizeof f->held - f->used) {
        hf_sha256_add(&f->sha, f->held, f->used);
        f->used = 0;
    }
    if (size > sizeof f->held) {
        hf_sha256_add(&f->sha, data, size);
    } else if (size > 0) {
        memcpy(f->held + f->used, data, size);
        f->used += size;
    }
}

enum field_type { FIELD_BYTES = 1, FIELD_NUMBER = 2 };

static void form_head(struct form *f, const char *name, enum field_type type, size_t size)
{
    unsigned char length[2], rest[5];
    size_t name_size = strlen(name);
    hf_put16(length, (uint16_t)name_size);
    rest[0] = (unsigned char)type;
    hf_put32(rest + 1, (uint32_t)size);
    form_add(f, length, sizeof length);
    form_add(f, name, name_size);
    form_add(f, rest, sizeof rest);
}

static void form_bytes(struct form *f, const char *name, struct hf_bytes value)
{
    form_head(f, name, FIELD_BYTES, value.size);
    form_add(f, value.data, value.size);
}

static void form_number(struct form *f, const char *name, uint64_t value)
{
    unsigned char b[8];
    hf_put64(b, value);
    form_head(f, name, FIELD_NUMBER, sizeof b);
    form_add(f, b, sizeof b);
}

/* 0 means that no fence was given. */
static void form_fence(struct form *f, uint64_t fence)
{
    if (fence != 0)
        form_number(f, "fence", fence);
}

/* An id may come in either case and names the same hold. */
static void form_id(struct form *f, struct hf_bytes id)
{
    const unsigned char *p = id.data;
    form_head(f, "id", FIELD_BYTES, id.size);
    for (size_t i = 0; i < id.size; i++) {
        unsigned char c = p[i];
        if (c >= 'A' && c <= 'Z')
            c = (unsigned char)(c - 'A' + 'a');
        form_add(f, &c, 1);
    }
}

/* The fields of each action, sorted by name. False if the action has no digest. */
static bool form_fields(struct form *f, const struct hf_request *r)
{
    switch (r->action) {
    case HF_PLACE_HOLD:
        form_number(f, "duration_ms", (uint64_t)r->place_hold.duration_ms);
        form_fence(f, r->place_hold.fence);
        form_bytes(f, "requester", r->place_hold.requester);
        form_bytes(f, "resource", r->place_hold.resource);
        return true;
    case HF_CONFIRM:
    case HF_RELEASE:
    case HF_EXPIRE:
    case HF_REVERSE: form_id(f, r->hold.id); return true;
    case HF_GRANT:
        form_bytes(f, "holder", r->lease.holder);
        form_bytes(f, "name", r->lease.name);
        form_number(f, "ttl_ms", (uint64_t)r->lease.ttl_ms);
        return true;
    case HF_WRITE:
        form_fence(f, r->write.fence);
        if (r->write.has_if_version)
            form_number(f, "if_version", r->write.if_version);
        form_bytes(f, "name", r->write.name);
        form_bytes(f, "value", r->write.value);
        return true;
    case HF_DELETE_REGISTER:
        form_fence(f, r->write.fence);
        if (r->write.has_if_version)
            form_number(f, "if_version", r->write.if_version);
        form_bytes(f, "name", r->write.name);
        return true;
    case HF_DELETE_LEASE:
        form_fence(f, r->lease.fence);
        form_bytes(f, "name", r->lease.name);
        return true;
    case HF_APPLY:
        form_bytes(f, "name", r->apply.name);
        form_bytes(f, "payload", r->apply.payload);
        return true;
    default: return false;
    }
}

void hf_digest(const struct hf_request *request, uint8_t out[HF_DIGEST_SIZE])
{
    if (request->action == HF_BEGIN) {
        if (request->begin.fingerprint)
            memcpy(out, request->begin.fingerprint, HF_DIGEST_SIZE);
        else
            hf_sha256_of(request->begin.payload.data, request->begin.payload.size, out);
        return;
    }
    struct form f;
    f.used = 0;
    hf_sha256_init(&f.sha);
    if (form_fields(&f, request)) {
        hf_sha256_add(&f.sha, f.held, f.used);
        hf_sha256_end(&f.sha, out);
    } else {
        memset(out, 0, HF_DIGEST_SIZE);
    }
}
