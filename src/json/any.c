/* Whole values of any type: skipped, or as compact text. */
#include "base/bytes.h"
#include "json/reader.h"

/* ---- Memory ---- */

void hf_reader_aside(struct hf_reader *r, struct hf_reader_aside *a)
{
    *a = (struct hf_reader_aside){
        .arena = r->arena, .names = r->names, .name_count = r->name_count, .name_room = r->name_room
    };
    r->arena = &a->own;
}

void hf_reader_aside_end(struct hf_reader *r, struct hf_reader_aside *a)
{
    r->arena = a->arena;
    r->names = a->names;
    r->name_count = a->name_count;
    r->name_room = a->name_room;
    hf_arena_free(&a->own);
}

/* ---- Reading again ---- */

void hf_reader_here(const struct hf_reader *r, struct hf_reader_place *place)
{
    *place = (struct hf_reader_place){ .at = r->at,
                                       .name_count = r->name_count,
                                       .name_base = r->name_base,
                                       .depth = r->depth,
                                       .first = r->first };
}

void hf_reader_back(struct hf_reader *r, const struct hf_reader_place *place)
{
    r->at = place->at;
    r->name_count = place->name_count;
    r->name_base = place->name_base;
    r->depth = place->depth;
    r->first = place->first;
    r->failed = r->no_memory = false;
}

/* ---- Skipping ---- */

static bool skip(struct hf_reader *r)
{
    struct hf_bytes text;
    bool flag;
    switch (hf_reader_peek(r)) {
    case HF_READ_OBJECT:
        if (hf_reader_object(r))
            while (hf_reader_member(r, &text) && skip(r))
                ;
        return !r->failed;
    case HF_READ_ARRAY:
        if (hf_reader_array(r))
            while (hf_reader_element(r) && skip(r))
                ;
        return !r->failed;
    case HF_READ_STRING: return hf_reader_string(r, &text);
    case HF_READ_TRUE:
    case HF_READ_FALSE: return hf_reader_bool(r, &flag);
    case HF_READ_NULL: return hf_reader_null(r);
    case HF_READ_NUMBER: return hf_reader_number(r, &text);
    case HF_READ_NONE: break;
    }
    return hf_reader_refuse(r, r->at, "a value");
}

bool hf_reader_skip(struct hf_reader *r)
{
    struct hf_reader_aside aside;
    hf_reader_aside(r, &aside);
    bool ok = skip(r);
    hf_reader_aside_end(r, &aside);
    return ok;
}

/* ---- Compact ---- */

/* Copy a value that was checked before, without the white space between its parts. */
static size_t squeeze(struct hf_bytes from, unsigned char *to)
{
    const unsigned char *p = from.data;
    bool quoted = false;
    size_t size = 0;
    for (size_t i = 0; i < from.size; i++) {
        if (!quoted && p[i] <= ' ')
            continue;
        to[size++] = p[i];
        if (p[i] == '"')
            quoted = !quoted;
        else if (quoted && p[i] == '\\')
            to[size++] = p[++i];
    }
    return size;
}

bool hf_reader_compact(struct hf_reader *r, struct hf_bytes *out)
{
    (void)hf_reader_peek(r); /* skips white space before the value */
    size_t at = r->at, spaces = r->spaces;
    if (!hf_reader_skip(r))
        return false;
    *out = hf_mem((const unsigned char *)r->text.data + at, r->at - at);
    if (r->spaces == spaces)
        return true;
    unsigned char *data = hf_arena_take(r->arena, out->size);
    if (!data)
        return hf_reader_no_memory(r);
    *out = hf_mem(data, squeeze(*out, data));
    return true;
}
