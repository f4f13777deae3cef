#include "core/digest.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "core/action.h"

/* Buffers the canonical form for the hash. Most requests fit into `held`, and one call of the hash
 * is cheaper than a dozen. */
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

enum field_type { FIELD_BYTES = 1, FIELD_NUMBER = 2, FIELD_FLAW = 4 };

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

/* Upper and lower case name the same hold. */
static void form_id(struct form *f, const char *name, struct hf_bytes id)
{
    const unsigned char *p = id.data;
    form_head(f, name, FIELD_BYTES, id.size);
    for (size_t i = 0; i < id.size; i++) {
        unsigned char c = p[i];
        if (c >= 'A' && c <= 'Z')
            c = (unsigned char)(c - 'A' + 'a');
        form_add(f, &c, 1);
    }
}

static void form_field(struct form *f, const struct hf_digest_field *field,
                       const struct hf_request *r)
{
    const void *at = (const char *)r + field->at;
    uint64_t number;
    uint32_t choice;
    if (field->has && !*(const bool *)((const char *)r + field->has))
        return;
    switch (field->type) {
    case HF_DIGEST_BYTES: form_bytes(f, field->name, hf_action_bytes(r, field->at)); return;
    case HF_DIGEST_VALUE:
        form_bytes(f, field->name, hf_digest_value(hf_action_bytes(r, field->at)));
        return;
    case HF_DIGEST_ID: form_id(f, field->name, hf_action_bytes(r, field->at)); return;
    case HF_DIGEST_NUMBER:
    case HF_DIGEST_GIVEN:
        memcpy(&number, at, sizeof number);
        if (number != 0 || field->type == HF_DIGEST_NUMBER)
            form_number(f, field->name, number);
        return;
    case HF_DIGEST_CHOICE:
        memcpy(&choice, at, sizeof choice);
        if (choice != 0)
            form_number(f, field->name, choice);
        return;
    }
}

/* A flaw takes the place of the field with its name. */
static void form_flaw(struct form *f, const struct hf_flaw *flaw)
{
    if (flaw->sent.size == 0)
        return;
    form_head(f, flaw->name, FIELD_FLAW, flaw->sent.size);
    form_add(f, flaw->sent.data, flaw->sent.size);
}

/* The fields and the flaws, both sorted by name, as one sorted list. */
static void form_request(struct form *f, const struct hf_digest_field *field,
                         const struct hf_request *r)
{
    size_t flaws = r->invalid ? r->invalid->count : 0, i = 0;
    while (field->name || i < flaws) {
        const struct hf_flaw *flaw = i < flaws ? &r->invalid->flaws[i] : NULL;
        int order = !field->name ? 1 : !flaw ? -1 : strcmp(field->name, flaw->name);
        if (order < 0)
            form_field(f, field, r);
        else
            form_flaw(f, flaw);
        i += order >= 0;
        field += order <= 0;
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
    const struct hf_digest_field *field = hf_action_of(request->action)->digest;
    if (!field) {
        memset(out, 0, HF_DIGEST_SIZE);
        return;
    }
    struct form f;
    f.used = 0;
    hf_sha256_init(&f.sha);
    form_request(&f, field, request);
    hf_sha256_add(&f.sha, f.held, f.used);
    hf_sha256_end(&f.sha, out);
}
