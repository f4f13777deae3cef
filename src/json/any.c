/* Values of any type as a whole: read past, as compact text, as canonical text. */
#include "base/bytes.h"
#include "json/reader.h"
#include "json/writer.h"

#include <stdlib.h>

/* ---- Memory ---- */

/* What is read only to be read past, or to be written down in another form, takes memory aside and
 * gives it back: a small text of escapes and names would take many times its size otherwise. */
struct aside {
    struct hf_arena own, *arena;
    struct hf_bytes *names;
    size_t name_count, name_room;
};

static void aside_begin(struct aside *a, struct hf_reader *r)
{
    *a = (struct aside){
        .arena = r->arena, .names = r->names, .name_count = r->name_count, .name_room = r->name_room
    };
    r->arena = &a->own;
}

/* The names that were open before are where they were. Those that came are not needed any more, or
 * there was an error. */
static void aside_end(struct aside *a, struct hf_reader *r)
{
    r->arena = a->arena;
    r->names = a->names;
    r->name_count = a->name_count;
    r->name_room = a->name_room;
    hf_arena_free(&a->own);
}

/* ---- Past ---- */

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
    struct aside aside;
    aside_begin(&aside, r);
    bool ok = skip(r);
    aside_end(&aside, r);
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
    (void)hf_reader_peek(r); /* white space in front of the value is not of it */
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

/* ---- Canonical ---- */

struct member {
    struct hf_bytes name;
    size_t from, to; /* its text in the output, name and value */
};

struct canon {
    struct hf_reader *r;
    struct hf_buffer text, members, moved;
    struct hf_json j; /* over `text` */
};

static int by_name(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return hf_bytes_compare(x->name, y->name);
}

/* The members of an object stand in the text in the order in which they came: put them into the
 * order of their names. Members are as long afterwards as before, so the place they take together
 * stays the same. */
static void members_sort(struct canon *c, struct member *members, size_t count)
{
    size_t from = members[0].from, size = members[count - 1].to - from;
    bool sorted = true;
    for (size_t i = 1; i < count; i++)
        sorted = sorted && by_name(&members[i - 1], &members[i]) < 0;
    if (sorted)
        return;
    qsort(members, count, sizeof *members, by_name);
    hf_buffer_reset(&c->moved);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            hf_buffer_add_char(&c->moved, ',');
        hf_buffer_add(&c->moved, c->text.data + members[i].from, members[i].to - members[i].from);
    }
    if (c->moved.failed)
        c->text.failed = true;
    else
        memcpy(c->text.data + from, c->moved.data, size);
}

static bool canon_value(struct canon *c);

/* The members that are being gathered are on one stack for all objects that are open. */
static bool canon_object(struct canon *c)
{
    size_t base = c->members.size;
    struct member m;
    if (!hf_reader_object(c->r))
        return false;
    hf_json_object(&c->j);
    while (hf_reader_member(c->r, &m.name)) {
        m.from = c->text.size + c->j.comma;
        hf_json_name_bytes(&c->j, m.name);
        if (!canon_value(c))
            return false;
        m.to = c->text.size;
        hf_buffer_add(&c->members, &m, sizeof m);
    }
    size_t count = (c->members.size - base) / sizeof m;
    if (count > 1 && !c->members.failed && !c->text.failed)
        members_sort(c, (struct member *)(void *)(c->members.data + base), count);
    c->members.size = base;
    hf_json_object_end(&c->j);
    return !c->r->failed;
}

static bool canon_value(struct canon *c)
{
    struct hf_bytes text;
    switch (hf_reader_peek(c->r)) {
    case HF_READ_OBJECT: return canon_object(c);
    case HF_READ_ARRAY:
        hf_json_array(&c->j);
        if (hf_reader_array(c->r))
            while (hf_reader_element(c->r) && canon_value(c))
                ;
        hf_json_array_end(&c->j);
        return !c->r->failed;
    case HF_READ_STRING:
        if (!hf_reader_string(c->r, &text))
            return false;
        hf_json_bytes(&c->j, text);
        return true;
    default:
        if (!hf_reader_compact(c->r, &text))
            return false;
        hf_json_raw(&c->j, text);
        return true;
    }
}

bool hf_reader_canonical(struct hf_reader *r, struct hf_bytes *out)
{
    struct canon c = { .r = r };
    c.j.out = &c.text;
    struct aside aside;
    aside_begin(&aside, r);
    bool ok = canon_value(&c);
    aside_end(&aside, r);
    if (ok && (c.text.failed || c.members.failed)) {
        ok = hf_reader_no_memory(r);
    } else if (ok) {
        void *data = hf_arena_take(r->arena, c.text.size);
        ok = data ? true : hf_reader_no_memory(r);
        if (data)
            memcpy(data, c.text.data, c.text.size);
        *out = hf_mem(data, c.text.size);
    }
    hf_buffer_free(&c.text);
    hf_buffer_free(&c.members);
    hf_buffer_free(&c.moved);
    return ok;
}
