#include "store/postgres/wire.h"

#include "base/text.h"

#include <string.h>

/* Big-endian, like everything in PostgreSQL's protocol. */
static void big32(unsigned char *p, uint32_t v)
{
    for (int i = 3; i >= 0; i--, v >>= 8)
        p[i] = (unsigned char)v;
}

static void big64(unsigned char *p, uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        p[i] = (unsigned char)v;
}

static uint64_t big_of(const unsigned char *p, int size)
{
    uint64_t v = 0;
    for (int i = 0; i < size; i++)
        v = v << 8 | p[i];
    return v;
}

/* ---- Writing ---- */

enum { ARRAY_HEAD = 20 };

void hf_pg_array_begin(struct hf_buffer *b, enum hf_pg_oid type)
{
    unsigned char head[ARRAY_HEAD];
    big32(head, 1);     /* one dimension */
    big32(head + 4, 1); /* there may be NULLs */
    big32(head + 8, (uint32_t)type);
    big32(head + 12, 0); /* items: set at the end */
    big32(head + 16, 1); /* the index of the first item */
    hf_buffer_reset(b);
    hf_buffer_add(b, head, sizeof head);
}

void hf_pg_array_end(struct hf_buffer *b, uint32_t count)
{
    if (b->failed)
        return;
    if (count == 0)
        big32(b->data, 0); /* an empty array has no dimension */
    big32(b->data + 12, count);
    if (count == 0)
        b->size = 12;
}

void hf_pg_array_end_short(struct hf_buffer *b, uint32_t count)
{
    bool all_null = b->size == ARRAY_HEAD + 4 * (size_t)count; /* only NULL and "" are that short */
    for (uint32_t i = 0; i < count && all_null; i++)
        all_null = b->data[ARRAY_HEAD + 4 * i] == 255;
    hf_pg_array_end(b, all_null ? 0 : count);
}

static void item(struct hf_buffer *b, const void *data, size_t size)
{
    unsigned char head[4];
    big32(head, (uint32_t)size);
    hf_buffer_add(b, head, sizeof head);
    hf_buffer_add(b, data, size);
}

void hf_pg_put_null(struct hf_buffer *b)
{
    static const unsigned char none[4] = { 255, 255, 255, 255 };
    hf_buffer_add(b, none, sizeof none);
}

void hf_pg_put_bytes(struct hf_buffer *b, struct hf_bytes bytes)
{
    item(b, bytes.data, bytes.size);
}

static void escape(struct hf_buffer *b, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    char text[4] = { '\\', 'x', digits[c >> 4], digits[c & 15] };
    hf_buffer_add(b, text, sizeof text);
}

/* The size of the character at `p`, if it is a complete valid character other than NUL; else 0. */
static size_t character(const unsigned char *p, size_t left)
{
    size_t size = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    return p[0] != 0 && size <= left && hf_utf8_valid(hf_mem(p, size)) ? size : 0;
}

static bool plain(struct hf_bytes key)
{
    return key.size == 0 || (!memchr(key.data, '\\', key.size) && !memchr(key.data, 0, key.size) &&
                             hf_utf8_valid(key));
}

void hf_pg_put_key(struct hf_buffer *b, struct hf_bytes key)
{
    if (plain(key)) {
        item(b, key.data, key.size);
        return;
    }
    const unsigned char *p = key.data;
    size_t head = b->size;
    hf_pg_put_null(b); /* placeholder for the length */
    for (size_t i = 0; i < key.size;) {
        size_t size = character(p + i, key.size - i);
        if (size == 0)
            escape(b, p[i]);
        else if (p[i] == '\\')
            hf_buffer_add_text(b, "\\\\");
        else
            hf_buffer_add(b, p + i, size);
        i += size > 0 ? size : 1;
    }
    if (!b->failed)
        big32(b->data + head, (uint32_t)(b->size - head - 4));
}

void hf_pg_put_int8(struct hf_buffer *b, int64_t value)
{
    unsigned char bytes[8];
    big64(bytes, (uint64_t)value);
    item(b, bytes, sizeof bytes);
}

void hf_pg_put_int4(struct hf_buffer *b, int32_t value)
{
    unsigned char bytes[4];
    big32(bytes, (uint32_t)value);
    item(b, bytes, sizeof bytes);
}

void hf_pg_put_bool(struct hf_buffer *b, bool value)
{
    unsigned char byte = value ? 1 : 0;
    item(b, &byte, 1);
}

/* numeric: digits of base 10000, the highest first; before them their count, the weight of the
 * first, sign, scale. */
enum { DIGITS_MAX = 5, DIGIT_BASE = 10000 };

void hf_pg_put_numeric(struct hf_buffer *b, uint64_t value)
{
    unsigned char bytes[8 + 2 * DIGITS_MAX] = { 0 };
    uint16_t digits[DIGITS_MAX];
    unsigned count = 0;
    for (; value > 0; value /= DIGIT_BASE)
        digits[count++] = (uint16_t)(value % DIGIT_BASE);
    bytes[1] = (unsigned char)count;
    bytes[3] = (unsigned char)(count > 0 ? count - 1 : 0);
    for (unsigned i = 0; i < count; i++) {
        bytes[8 + 2 * i] = (unsigned char)(digits[count - 1 - i] >> 8);
        bytes[9 + 2 * i] = (unsigned char)digits[count - 1 - i];
    }
    item(b, bytes, 8 + 2 * (size_t)count);
}

/* From 1970 to 2000. */
#define EPOCH_MS INT64_C(946684800000)

int64_t hf_pg_time(hf_time value)
{
    int64_t us;
    if (value == INT64_MAX || value <= INT64_MIN + EPOCH_MS)
        return value < 0 ? INT64_MIN : INT64_MAX;
    if (__builtin_mul_overflow(value - EPOCH_MS, INT64_C(1000), &us))
        return value < 0 ? INT64_MIN : INT64_MAX;
    return us;
}

void hf_pg_put_time(struct hf_buffer *b, hf_time value)
{
    hf_pg_put_int8(b, hf_pg_time(value));
}

/* ---- Reading ---- */

struct hf_bytes hf_pg_get_bytes(const PGresult *result, int row, int column)
{
    return hf_mem(PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
}

static uint64_t number(const PGresult *result, int row, int column)
{
    int size = PQgetlength(result, row, column);
    return big_of((const unsigned char *)PQgetvalue(result, row, column), size > 8 ? 8 : size);
}

int64_t hf_pg_get_int8(const PGresult *result, int row, int column)
{
    return (int64_t)number(result, row, column);
}

bool hf_pg_get_item8(const PGresult *result, int row, int column, int index, int64_t *value)
{
    enum {
        HEAD = 20,
        ITEM = 12
    }; /* dimensions, flags, type, length, first index; then each item after its size */
    if (index < 0 || row >= PQntuples(result) ||
        PQgetlength(result, row, column) < HEAD + (int64_t)(index + 1) * ITEM)
        return false;
    const unsigned char *item =
        (const unsigned char *)PQgetvalue(result, row, column) + HEAD + index * ITEM;
    *value = (int64_t)big_of(item + 4, 8);
    return true;
}

int32_t hf_pg_get_int4(const PGresult *result, int row, int column)
{
    return (int32_t)(uint32_t)number(result, row, column);
}

bool hf_pg_get_bool(const PGresult *result, int row, int column)
{
    return number(result, row, column) != 0;
}

/* PostgreSQL sends no zeros at either end: digits after the weight are a fraction. */
bool hf_pg_get_numeric(const PGresult *result, int row, int column, uint64_t *value)
{
    struct hf_bytes bytes = hf_pg_get_bytes(result, row, column);
    const unsigned char *p = bytes.data;
    *value = 0;
    if (bytes.size < 8 || big_of(p + 4, 2) != 0 || bytes.size != 8 + 2 * big_of(p, 2))
        return false; /* negative, or not a number */
    uint64_t count = big_of(p, 2), weight = big_of(p + 2, 2);
    if (count > 0 && (weight >= DIGITS_MAX || count > weight + 1))
        return false;
    for (uint64_t i = 0; count > 0 && i <= weight; i++)
        if (__builtin_mul_overflow(*value, (uint64_t)DIGIT_BASE, value) ||
            __builtin_add_overflow(*value, i < count ? big_of(p + 8 + 2 * i, 2) : 0, value))
            return false;
    return true;
}

hf_time hf_pg_get_time(const PGresult *result, int row, int column)
{
    int64_t value = hf_pg_get_int8(result, row, column);
    if (value == INT64_MAX)
        return INT64_MAX;
    int64_t ms = value / 1000 - (value % 1000 < 0);
    return ms + EPOCH_MS;
}

bool hf_pg_get_snapshot(const PGresult *result, int row, int column, uint64_t *oldest,
                        uint64_t *next)
{
    enum { OLDEST = 4, NEXT = 12, SIZE = 20 }; /* the count in progress, these two, then each one */
    const unsigned char *at = (const unsigned char *)PQgetvalue(result, row, column);
    bool whole = PQgetlength(result, row, column) >= SIZE;
    *oldest = whole ? big_of(at + OLDEST, 8) : 0;
    *next = whole ? big_of(at + NEXT, 8) : 0;
    return !PQgetisnull(result, row, column);
}

static int hex(unsigned char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct hf_bytes hf_pg_get_key(const PGresult *result, int row, int column, struct hf_arena *arena)
{
    struct hf_bytes text = hf_pg_get_bytes(result, row, column);
    const unsigned char *p = text.data, *end = p + text.size;
    if (!memchr(p, '\\', text.size))
        return text;
    unsigned char *out = hf_arena_take(arena, text.size), *to = out;
    if (!out)
        return hf_mem(NULL, 0);
    while (p < end) {
        if (*p != '\\' || end - p < 2) {
            *to++ = *p++;
        } else if (p[1] == 'x' && end - p >= 4 && hex(p[2]) >= 0 && hex(p[3]) >= 0) {
            *to++ = (unsigned char)(hex(p[2]) << 4 | hex(p[3]));
            p += 4;
        } else {
            *to++ = p[1];
            p += 2;
        }
    }
    return hf_mem(out, (size_t)(to - out));
}
