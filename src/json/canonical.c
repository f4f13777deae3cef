#include "json/canonical.h"

#include "base/bytes.h"
#include "json/writer.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct member {
    struct hf_bytes name;
    size_t from, to; /* its text in the output, name and value */
};

struct canon {
    struct hf_reader *r;
    struct hf_buffer text, members, moved, digits;
    struct hf_json j; /* over `text` */
};

/* ---- Numbers ---- */

/* 0.d1d2d3... times 10^exponent. The first and the last digit are not 0; without digits it is 0. */
struct decimal {
    const char *digits;
    size_t count;
    int64_t exponent;
    bool negative;
};

/* More digits of an exponent than anybody needs: such a number stays as it is written. */
enum { EXPONENT_DIGITS = 15 };

/* Take a number apart. digits: scratch, has the digits afterwards. False: its exponent is
 * absurd. */
static bool number_read(struct hf_bytes text, struct hf_buffer *digits, struct decimal *out)
{
    const char *p = text.data, *end = p + text.size;
    *out = (struct decimal){ .negative = *p == '-' };
    hf_buffer_reset(digits);
    bool fraction = false;
    for (p += out->negative; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        out->exponent += !fraction;
        if (*p == '0' && digits->size == 0)
            out->exponent--; /* a zero in front of all other digits moves the point */
        else
            hf_buffer_add_char(digits, *p);
    }
    while (digits->size > 0 && digits->data[digits->size - 1] == '0')
        digits->size--;
    out->digits = (const char *)digits->data;
    out->count = digits->size;
    if (p == end || out->count == 0)
        return true;
    bool down = *++p == '-';
    p += *p == '-' || *p == '+';
    while (p < end && *p == '0')
        p++;
    if (end - p > EXPONENT_DIGITS)
        return false;
    int64_t exponent = 0;
    for (; p < end; p++)
        exponent = exponent * 10 + (*p - '0');
    out->exponent += down ? -exponent : exponent;
    return true;
}

/* Digits that decide which double is nearest, with one more for all that come behind them. */
enum { NEAREST_DIGITS = 800 };

static double number_double(const struct decimal *d)
{
    char text[NEAREST_DIGITS + 32];
    size_t count = d->count < NEAREST_DIGITS ? d->count : NEAREST_DIGITS;
    bool more = count < d->count;
    /* Without a point: which character that is depends on the locale of the caller. */
    snprintf(text, sizeof text, "%.*s%se%lld", (int)count, d->digits, more ? "1" : "",
             (long long)(d->exponent - (int64_t)count - more));
    return strtod(text, NULL);
}

#define DOUBLE_DIGITS 17

/* The fewest digits that are read back as `x`, and of those the nearest. out: points into room. */
static void number_shortest(double x, char room[DOUBLE_DIGITS], struct decimal *out)
{
    char text[40];
    /* 15 digits are right for any number that was written with no more; subnormals have fewer. */
    for (int many = x < DBL_MIN ? 1 : 15;; many++) {
        snprintf(text, sizeof text, "%.*e", many - 1, x);
        const char *e = strchr(text, 'e');
        size_t count = 0;
        for (const char *p = text; p < e; p++)
            if (*p >= '0' && *p <= '9')
                room[count++] = *p;
        while (count > 1 && room[count - 1] == '0')
            count--;
        out->digits = room;
        out->count = count;
        out->exponent = strtol(e + 1, NULL, 10) + 1;
        if (many == DOUBLE_DIGITS || number_double(out) == x)
            return;
    }
}

static void zeros_add(struct hf_buffer *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        hf_buffer_add_char(out, '0');
}

/* Number::toString of ECMAScript, in the same order of cases. */
static void number_write(const struct decimal *d, struct hf_buffer *out)
{
    int64_t count = (int64_t)d->count, e = d->exponent;
    if (d->negative)
        hf_buffer_add_char(out, '-');
    if (count <= e && e <= 21) {
        hf_buffer_add(out, d->digits, d->count);
        zeros_add(out, e - count);
    } else if (0 < e && e <= 21) {
        hf_buffer_add(out, d->digits, (size_t)e);
        hf_buffer_add_char(out, '.');
        hf_buffer_add(out, d->digits + e, (size_t)(count - e));
    } else if (-6 < e && e <= 0) {
        hf_buffer_add_text(out, "0.");
        zeros_add(out, -e);
        hf_buffer_add(out, d->digits, d->count);
    } else {
        hf_buffer_add_char(out, *d->digits);
        if (count > 1) {
            hf_buffer_add_char(out, '.');
            hf_buffer_add(out, d->digits + 1, d->count - 1);
        }
        hf_buffer_printf(out, "e%+lld", (long long)(e - 1));
    }
}

static void canon_number(struct canon *c, struct hf_bytes text)
{
    struct decimal d;
    char room[DOUBLE_DIGITS];
    if (!number_read(text, &c->digits, &d)) {
        hf_json_raw(&c->j, text);
        return;
    }
    if (c->digits.failed) {
        c->text.failed = true;
        return;
    }
    /* A fraction is the nearest double. Integers, and what no double may hold, keep their
     * digits. */
    if (d.exponent < (int64_t)d.count && d.exponent <= DBL_MAX_10_EXP) {
        double x = number_double(&d);
        d.count = 0; /* nearest to 0 */
        if (x > 0)
            number_shortest(x, room, &d);
    }
    hf_json_raw(&c->j, hf_mem(NULL, 0)); /* the comma that is due */
    if (d.count == 0)
        hf_buffer_add_char(&c->text, '0');
    else
        number_write(&d, &c->text);
}

/* ---- Members ---- */

/* UTF-8 sorts as UTF-16 does, but for its first bytes 0xEE and 0xEF (U+E000 to U+FFFF): these come
 * behind the four-byte characters, which are surrogates in UTF-16. */
static int utf16_rank(unsigned char byte)
{
    return byte == 0xEE || byte == 0xEF ? byte + 16 : byte;
}

static int by_name(const void *a, const void *b)
{
    const struct hf_bytes x = ((const struct member *)a)->name;
    const struct hf_bytes y = ((const struct member *)b)->name;
    const unsigned char *p = x.data, *q = y.data;
    size_t size = x.size < y.size ? x.size : y.size;
    for (size_t i = 0; i < size; i++)
        if (p[i] != q[i])
            return utf16_rank(p[i]) - utf16_rank(q[i]);
    return (x.size > y.size) - (x.size < y.size);
}

/* Sort the members of an object, which are in the text in the order of arrival, by name. Their
 * length does not change, so together they fill the same place. */
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

/* ---- Values ---- */

static bool canon_value(struct canon *c);

/* All open objects share one stack of members. */
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
    case HF_READ_NUMBER:
        if (!hf_reader_number(c->r, &text))
            return false;
        canon_number(c, text);
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
    struct hf_reader_aside aside;
    hf_reader_aside(r, &aside);
    bool ok = canon_value(&c);
    hf_reader_aside_end(r, &aside);
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
    hf_buffer_free(&c.digits);
    return ok;
}
