#include "server/kit/json_tree.h"

#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Reading ---- */

static struct tree *value_read(struct hf_reader *r);

static bool is_open(struct hf_reader *r, const struct tree *t, struct hf_bytes *name)
{
    return t->type == HF_READ_OBJECT ? hf_reader_member(r, name) : hf_reader_element(r);
}

static bool children_read(struct hf_reader *r, struct tree *t)
{
    struct tree **end = &t->child;
    struct hf_bytes name = { NULL, 0 };
    if (!(t->type == HF_READ_OBJECT ? hf_reader_object(r) : hf_reader_array(r)))
        return false;
    while (is_open(r, t, &name)) {
        *end = value_read(r);
        if (!*end)
            return false;
        (*end)->name = name;
        end = &(*end)->next;
    }
    return !r->failed;
}

static struct tree *value_read(struct hf_reader *r)
{
    struct tree *t = hf_arena_take(r->arena, sizeof *t);
    bool flag;
    if (!t)
        abort();
    *t = (struct tree){ .type = hf_reader_peek(r) };
    bool ok = false;
    switch (t->type) {
    case HF_READ_NONE: break;
    case HF_READ_OBJECT:
    case HF_READ_ARRAY: ok = children_read(r, t); break;
    case HF_READ_STRING: ok = hf_reader_string(r, &t->text); break;
    case HF_READ_NUMBER: ok = hf_reader_number(r, &t->text); break;
    case HF_READ_TRUE:
    case HF_READ_FALSE: ok = hf_reader_bool(r, &flag); break;
    case HF_READ_NULL: ok = hf_reader_null(r); break;
    }
    return ok ? t : NULL;
}

struct tree *tree_read(struct hf_bytes text, struct hf_arena *arena)
{
    struct hf_reader r = { .text = text, .arena = arena };
    struct tree *t = value_read(&r);
    if (t && hf_reader_end(&r))
        return t;
    fprintf(stderr, "not JSON: %s\n", r.error);
    return NULL;
}

/* ---- Looking ---- */

static struct tree *get_bytes(const struct tree *t, struct hf_bytes name)
{
    struct tree *found = NULL;
    if (t && t->type == HF_READ_OBJECT)
        for (struct tree *c = t->child; c; c = c->next)
            if (hf_bytes_equal(c->name, name))
                found = c;
    return found;
}

struct tree *tree_get(const struct tree *t, const char *name)
{
    return get_bytes(t, hf_str(name));
}

struct tree *tree_at(const struct tree *t, ...)
{
    struct tree *at = NULL;
    const char *name;
    va_list names;
    va_start(names, t);
    while ((name = va_arg(names, const char *)) != NULL)
        t = at = tree_get(t, name);
    va_end(names);
    return at;
}

size_t tree_count(const struct tree *t)
{
    size_t count = 0;
    for (const struct tree *c = t ? t->child : NULL; c; c = c->next)
        count++;
    return count;
}

bool tree_is(const struct tree *t, const char *text)
{
    return t && t->type == HF_READ_STRING && hf_bytes_equal(t->text, hf_str(text));
}

bool tree_has(const struct tree *array, const char *text)
{
    for (const struct tree *c = array ? array->child : NULL; c; c = c->next)
        if (tree_is(c, text))
            return true;
    return false;
}

struct tree *tree_resolve(struct tree *document, struct hf_bytes pointer)
{
    char part[256];
    const char *p = pointer.data, *end = p + pointer.size;
    struct tree *t = document;
    if (pointer.size < 1 || *p++ != '#')
        return NULL;
    while (t && p < end && *p == '/') {
        size_t size = 0;
        for (p++; p < end && *p != '/' && size < sizeof part; p++) {
            bool escaped = *p == '~' && p + 1 < end;
            part[size++] = escaped ? (p[1] == '1' ? '/' : '~') : *p;
            p += escaped;
        }
        t = get_bytes(t, hf_mem(part, size));
    }
    return p == end ? t : NULL;
}

/* ---- Judging ---- */

struct judge {
    struct tree *document;
    char *why;
};

static bool obeys(const struct judge *j, struct tree *schema, const struct tree *value);

static bool wrong(const struct judge *j, const struct tree *value, const char *what)
{
    snprintf(j->why, 256, "%.*s (%.*s): %s", (int)value->name.size,
             value->name.size ? (const char *)value->name.data : "", (int)value->text.size,
             value->text.size ? (const char *)value->text.data : "", what);
    return false;
}

static bool is_type(const struct tree *value, const struct tree *type)
{
    static const char *const names[] = {
        [HF_READ_OBJECT] = "object", [HF_READ_ARRAY] = "array",   [HF_READ_STRING] = "string",
        [HF_READ_TRUE] = "boolean",  [HF_READ_FALSE] = "boolean", [HF_READ_NULL] = "null",
        [HF_READ_NUMBER] = "integer"
    };
    bool whole = value->type != HF_READ_NUMBER || !memchr(value->text.data, '.', value->text.size);
    return whole && tree_is(type, names[value->type]);
}

static bool type_fits(const struct tree *type, const struct tree *value)
{
    if (!type)
        return true;
    if (type->type == HF_READ_STRING)
        return is_type(value, type);
    for (const struct tree *c = type->child; c; c = c->next)
        if (is_type(value, c))
            return true;
    return false;
}

static bool same(const struct tree *a, const struct tree *b)
{
    return a->type == b->type && hf_bytes_equal(a->text, b->text);
}

static bool choice_fits(const struct tree *schema, const struct tree *value)
{
    const struct tree *constant = tree_get(schema, "const"), *choices = tree_get(schema, "enum");
    if (constant && !same(constant, value))
        return false;
    if (!choices)
        return true;
    for (const struct tree *c = choices->child; c; c = c->next)
        if (same(c, value))
            return true;
    return false;
}

static double number_of(const struct tree *t)
{
    char text[40];
    snprintf(text, sizeof text, "%.*s", (int)t->text.size, (const char *)t->text.data);
    return strtod(text, NULL);
}

static bool bounds_fit(const struct tree *schema, const struct tree *value)
{
    const struct tree *least = tree_get(schema, "minimum"), *most = tree_get(schema, "maximum");
    const struct tree *shortest = tree_get(schema, "minLength"),
                      *longest = tree_get(schema, "maxLength");
    if (value->type == HF_READ_NUMBER)
        return (!least || number_of(value) >= number_of(least)) &&
               (!most || number_of(value) <= number_of(most));
    if (value->type == HF_READ_STRING) /* bytes for characters: the texts of the tests are ASCII */
        return (!shortest || (double)value->text.size >= number_of(shortest)) &&
               (!longest || (double)value->text.size <= number_of(longest));
    return true;
}

/* The patterns that are in use, and no others: a new one must be taught here. */
static bool pattern_fits(const struct tree *pattern, const struct tree *value)
{
    const char *p = value->text.data;
    size_t size = value->text.size, digits = 0;
    if (!pattern || value->type != HF_READ_STRING)
        return true;
    if (tree_is(pattern, "^([0-9a-f][0-9a-f])*$")) {
        while (digits < size && memchr("0123456789abcdef", p[digits], 16))
            digits++;
        return digits == size && size % 2 == 0;
    }
    if (!tree_is(pattern, "^[0-9]+(ms|s|m|h|d)?$"))
        return false;
    while (digits < size && p[digits] >= '0' && p[digits] <= '9')
        digits++;
    struct hf_bytes unit = hf_mem(p + digits, size - digits);
    return digits > 0 && (unit.size == 0 || hf_bytes_equal(unit, hf_str("ms")) ||
                          (unit.size == 1 && memchr("smhd", *(const char *)unit.data, 4)));
}

static bool time_fits(const struct tree *format, const struct tree *value)
{
    static const char form[] = "0000-00-00T00:00:00.000Z";
    const char *p = value->text.data;
    if (!format || value->type != HF_READ_STRING || !tree_is(format, "date-time"))
        return true;
    if (value->text.size != sizeof form - 1)
        return false;
    for (size_t i = 0; i < sizeof form - 1; i++)
        if (form[i] == '0' ? p[i] < '0' || p[i] > '9' : p[i] != form[i])
            return false;
    return true;
}

static bool members_fit(const struct judge *j, struct tree *schema, const struct tree *value)
{
    struct tree *properties = tree_get(schema, "properties"),
                *rest = tree_get(schema, "additionalProperties");
    const struct tree *required = tree_get(schema, "required");
    for (const struct tree *c = required ? required->child : NULL; c; c = c->next)
        if (!get_bytes(value, c->text))
            return wrong(j, c, "required, and not there");
    for (const struct tree *c = value->child; c; c = c->next) {
        struct tree *property = get_bytes(properties, c->name);
        if (!property && rest && rest->type == HF_READ_OBJECT)
            property = rest;
        if (!property)
            return !properties && !rest ? true : wrong(j, c, "not among the properties");
        if (!obeys(j, property, c))
            return false;
    }
    return true;
}

static size_t alternatives(const struct judge *j, const struct tree *list, const struct tree *value)
{
    size_t fitting = 0;
    for (struct tree *c = list->child; c; c = c->next)
        fitting += obeys(j, c, value);
    return fitting;
}

static bool obeys(const struct judge *j, struct tree *schema, const struct tree *value)
{
    const struct tree *ref = tree_get(schema, "$ref");
    if (ref) {
        schema = tree_resolve(j->document, ref->text);
        if (!schema)
            return wrong(j, ref, "this reference leads nowhere");
    }
    if (!type_fits(tree_get(schema, "type"), value))
        return wrong(j, value, "of another type");
    if (!choice_fits(schema, value))
        return wrong(j, value, "not among the choices");
    if (!bounds_fit(schema, value) || !pattern_fits(tree_get(schema, "pattern"), value) ||
        !time_fits(tree_get(schema, "format"), value))
        return wrong(j, value, "not of the form");
    const struct tree *any = tree_get(schema, "anyOf"), *one = tree_get(schema, "oneOf");
    if (any && alternatives(j, any, value) == 0)
        return false;
    if (one && alternatives(j, one, value) != 1)
        return wrong(j, value, "not exactly one of the alternatives");
    struct tree *items = tree_get(schema, "items");
    for (const struct tree *c = value->type == HF_READ_ARRAY && items ? value->child : NULL; c;
         c = c->next)
        if (!obeys(j, items, c))
            return false;
    return value->type != HF_READ_OBJECT || members_fit(j, schema, value);
}

bool tree_obeys(struct tree *document, struct tree *schema, const struct tree *value, char why[256])
{
    struct judge j = { document, why };
    why[0] = '\0';
    return obeys(&j, schema, value);
}
