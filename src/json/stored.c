#include "json/stored.h"

#include "base/hash.h"
#include "json/canonical.h"

#define MARK_SIZE (sizeof HF_STORED_JSON - 1)

_Static_assert(MARK_SIZE + HF_DIGEST_SIZE == HF_STORED_HEAD, "the mark and a digest");

static bool marked(struct hf_bytes bytes, size_t size)
{
    return bytes.size >= size && memcmp(bytes.data, HF_STORED_JSON, MARK_SIZE) == 0;
}

struct hf_bytes hf_stored_text(struct hf_bytes bytes)
{
    if (!marked(bytes, HF_STORED_HEAD))
        return bytes;
    return hf_mem((const unsigned char *)bytes.data + HF_STORED_HEAD, bytes.size - HF_STORED_HEAD);
}

/* The SHA-256 of the canonical form of the value at `place`. The reader is then behind it. */
static bool digest_read(struct hf_reader *r, const struct hf_reader_place *place,
                        uint8_t out[HF_DIGEST_SIZE])
{
    struct hf_arena own = { 0 }, *arena = r->arena;
    struct hf_bytes canonical;
    hf_reader_back(r, place);
    r->arena = &own;
    bool ok = hf_reader_canonical(r, &canonical);
    r->arena = arena;
    if (ok)
        hf_sha256_of(canonical.data, canonical.size, out);
    hf_arena_free(&own);
    return ok;
}

bool hf_stored_read(struct hf_reader *r, struct hf_bytes *out)
{
    struct hf_bytes text;
    uint8_t digest[HF_DIGEST_SIZE];
    struct hf_reader_place place;
    enum hf_reader_type type = hf_reader_peek(r);
    hf_reader_here(r, &place);
    if (type == HF_READ_STRING) {
        size_t at = r->at;
        if (!hf_reader_string(r, out))
            return false;
        if (!marked(*out, MARK_SIZE))
            return true;
        text = hf_mem((const unsigned char *)r->text.data + at, r->at - at);
    } else if (!hf_reader_compact(r, &text)) {
        return false;
    }
    if (!digest_read(r, &place, digest))
        return false;
    unsigned char *data = hf_arena_take(r->arena, HF_STORED_HEAD + text.size);
    if (!data)
        return hf_reader_no_memory(r);
    memcpy(data, HF_STORED_JSON, MARK_SIZE);
    memcpy(data + MARK_SIZE, digest, sizeof digest);
    memcpy(data + HF_STORED_HEAD, text.data, text.size);
    *out = hf_mem(data, HF_STORED_HEAD + text.size);
    return true;
}

/* A program that embeds the library may have stored anything after the mark, so the text is
 * checked. White space would be valid, but a line break would split a line of a bulk answer. */
void hf_json_stored(struct hf_json *j, struct hf_bytes bytes)
{
    struct hf_arena arena = { 0 };
    struct hf_bytes text = hf_stored_text(bytes);
    if (!marked(bytes, HF_STORED_HEAD)) {
        hf_json_opaque(j, bytes);
        return;
    }
    struct hf_reader r = { .text = text, .arena = &arena };
    if (hf_reader_skip(&r) && hf_reader_end(&r) && r.spaces == 0)
        hf_json_raw(j, text);
    else if (r.no_memory)
        j->out->failed = true;
    else
        hf_json_opaque(j, bytes);
    hf_arena_free(&arena);
}
