#include "json/stored.h"

#define MARK_SIZE (sizeof HF_STORED_JSON - 1)

static bool marked(struct hf_bytes bytes)
{
    return bytes.size >= MARK_SIZE && memcmp(bytes.data, HF_STORED_JSON, MARK_SIZE) == 0;
}

bool hf_stored_read(struct hf_reader *r, struct hf_bytes *out)
{
    struct hf_bytes text;
    if (hf_reader_peek(r) == HF_READ_STRING) {
        size_t at = r->at;
        if (!hf_reader_string(r, out))
            return false;
        if (!marked(*out))
            return true;
        text = hf_mem((const unsigned char *)r->text.data + at, r->at - at);
    } else if (!hf_reader_compact(r, &text)) {
        return false;
    }
    unsigned char *data = hf_arena_take(r->arena, MARK_SIZE + text.size);
    if (!data)
        return hf_reader_no_memory(r);
    memcpy(data, HF_STORED_JSON, MARK_SIZE);
    memcpy(data + MARK_SIZE, text.data, text.size);
    *out = hf_mem(data, MARK_SIZE + text.size);
    return true;
}

/* A program that embeds the library may have stored anything after the mark, so the text is
 * checked. White space would be valid, but a line break would split a line of a bulk answer. */
void hf_json_stored(struct hf_json *j, struct hf_bytes bytes)
{
    struct hf_arena arena = { 0 };
    if (!marked(bytes)) {
        hf_json_opaque(j, bytes);
        return;
    }
    struct hf_bytes text =
        hf_mem((const unsigned char *)bytes.data + MARK_SIZE, bytes.size - MARK_SIZE);
    struct hf_reader r = { .text = text, .arena = &arena };
    if (hf_reader_skip(&r) && hf_reader_end(&r) && r.spaces == 0)
        hf_json_raw(j, text);
    else if (r.no_memory)
        j->out->failed = true;
    else
        hf_json_opaque(j, bytes);
    hf_arena_free(&arena);
}
