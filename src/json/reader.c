#include "json/reader.h"

#include "base/bytes.h"
#include "base/text.h"
#include "json/escape.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define COLD __attribute__((noinline, cold))

/* ---- Errors ---- */

COLD bool hf_reader_fail(struct hf_reader *r, const char *format, ...)
{
    va_list args;
    if (r->failed)
        return false;
    r->failed = true;
    va_start(args, format);
    vsnprintf(r->error, sizeof r->error, format, args);
    va_end(args);
    return false;
}

COLD bool hf_reader_no_memory(struct hf_reader *r)
{
    r->no_memory = r->no_memory || !r->failed;
    return hf_reader_fail(r, "out of memory");
}

static const unsigned char *text_of(const struct hf_reader *r)
{
    return r->text.data;
}

/* "expected `what` at byte `at`, got 'x'". For text that is not a whole value. */
COLD static bool fail_form(struct hf_reader *r, size_t at, const char *what)
{
    char got[24] = "the end";
    unsigned c = at < r->text.size ? text_of(r)[at] : 0;
    if (at < r->text.size)
        snprintf(got, sizeof got, c > ' ' && c < 0x7f ? "'%c'" : "byte 0x%02x", c);
    (void)hf_reader_fail(r, "expected %s at byte %zu, got %s", what, at, got);
    return false;
}

/* Is byte i part of a control character? A message must not control the reader's terminal. */
static bool is_control(const unsigned char *p, size_t i)
{
    bool second = i > 0 && p[i - 1] == 0xc2 && p[i] < 0xa0; /* U+0080 to U+009F */
    return p[i] < 0x20 || p[i] == 0x7f || second || (p[i] == 0xc2 && p[i + 1] < 0xa0);
}

COLD const char *hf_reader_excerpt(struct hf_bytes text, char out[HF_READER_EXCERPT])
{
    const unsigned char *p = text.data;
    size_t size = text.size;
    if (size > HF_READER_EXCERPT - 4) {
        size = HF_READER_EXCERPT - 4;
        while (size > 0 && (p[size] & 0xc0) == 0x80)
            size--;
    }
    for (size_t i = 0; i < size; i++)
        out[i] = (char)(is_control(p, i) ? '?' : p[i]);
    snprintf(out + size, HF_READER_EXCERPT - size, "%s", size < text.size ? "..." : "");
    return out;
}

COLD bool hf_reader_refuse(struct hf_reader *r, size_t at, const char *expected)
{
    static const char mark[] = "\xef\xbb\xbf";
    char got[HF_READER_EXCERPT];
    if (r->failed)
        return false;
    if (at == 0 && r->text.size >= 3 && memcmp(r->text.data, mark, 3) == 0)
        return hf_reader_fail(r,
                              "the text begins with a byte order mark, which JSON must not have");
    r->at = at;
    enum hf_reader_type type = hf_reader_peek(r);
    size_t from = r->at;
    if (type == HF_READ_NONE)
        return fail_form(r, from, expected);
    if (!hf_reader_skip(r)) /* if the value is broken, that error is reported */
        return false;
    if (type == HF_READ_OBJECT || type == HF_READ_ARRAY)
        return hf_reader_fail(r, "expected %s, got %s", expected,
                              type == HF_READ_OBJECT ? "an object" : "an array");
    struct hf_bytes value = hf_mem(text_of(r) + from, r->at - from);
    return hf_reader_fail(r, "expected %s, got %s", expected, hf_reader_excerpt(value, got));
}

/* ---- Between the values ---- */

__attribute__((noinline)) static void space_skip(struct hf_reader *r)
{
    const unsigned char *p = text_of(r);
    while (r->at < r->text.size &&
           (p[r->at] == ' ' || p[r->at] == '\n' || p[r->at] == '\r' || p[r->at] == '\t'))
        r->at++;
    r->spaces++;
}

/* The next byte that is not white space, or -1 at the end. */
static int next(struct hf_reader *r)
{
    const unsigned char *p = text_of(r);
    if (r->at < r->text.size && p[r->at] <= ' ')
        space_skip(r);
    return r->at < r->text.size ? p[r->at] : -1;
}

enum hf_reader_type hf_reader_peek(struct hf_reader *r)
{
    if (r->failed)
        return HF_READ_NONE;
    int c = next(r);
    switch (c) {
    case '{': return HF_READ_OBJECT;
    case '[': return HF_READ_ARRAY;
    case '"': return HF_READ_STRING;
    case 't': return HF_READ_TRUE;
    case 'f': return HF_READ_FALSE;
    case 'n': return HF_READ_NULL;
    default: return c == '-' || (c >= '0' && c <= '9') ? HF_READ_NUMBER : HF_READ_NONE;
    }
}

bool hf_reader_end(struct hf_reader *r)
{
    if (r->failed)
        return false;
    return next(r) < 0 || fail_form(r, r->at, "nothing more");
}

/* ---- Strings ---- */

/* Does the word have a byte that ends a plain run: a control byte, '"', '\\' or a byte of UTF-8
 * above 0x7f? Each term sets the top bit of such a byte, and sets no top bit below the first such
 * byte. */
static bool word_stops(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones * 0x80;
    uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';
    return ((word | (word - ones * 0x20) | (quote - ones) | (slash - ones)) & tops) != 0;
}

static size_t plain_run(const unsigned char *p, size_t at, size_t size)
{
    uint64_t word;
    for (; size - at >= sizeof word; at += sizeof word) {
        memcpy(&word, p + at, sizeof word);
        if (word_stops(word))
            break;
    }
    while (at < size && p[at] >= 0x20 && p[at] < 0x80 && p[at] != '"' && p[at] != '\\')
        at++;
    return at;
}

/* The first byte of `text` that is not valid UTF-8. There is one. */
COLD static size_t broken_at(struct hf_bytes text)
{
    const unsigned char *p = text.data;
    size_t at = 0;
    while (at < text.size) {
        size_t size = p[at] < 0x80 ? 1 : p[at] < 0xe0 ? 2 : p[at] < 0xf0 ? 3 : 4;
        if (size > text.size - at || !hf_utf8_valid(hf_mem(p + at, size)))
            break;
        at += size;
    }
    return at;
}

/* Unescape into the arena. raw: the text between the quotes, at offset `from`; it has escapes. */
static bool unescape(struct hf_reader *r, size_t from, struct hf_bytes raw, struct hf_bytes *out)
{
    unsigned char *data = hf_arena_take(r->arena, raw.size);
    size_t size, bad;
    if (!data)
        return hf_reader_no_memory(r);
    if (hf_escape_undo(raw, data, &size, &bad)) {
        *out = hf_mem(data, size);
        return true;
    }
    if (text_of(r)[from + bad + 1] == 'u')
        return hf_reader_fail(
            r, "expected four hexadecimal digits, and surrogates in pairs, after \\u at byte %zu",
            from + bad);
    return fail_form(r, from + bad + 1, "one of \" \\ / b f n r t u after a backslash");
}

/* The string whose opening quote is at r->at. */
static bool string_read(struct hf_reader *r, struct hf_bytes *out)
{
    const unsigned char *p = text_of(r);
    size_t size = r->text.size, from = r->at + 1, at = plain_run(p, from, size);
    bool escaped = false, high = false;
    while (at < size && p[at] != '"') {
        if (p[at] < 0x20)
            return fail_form(r, at, "control bytes to be escaped");
        if (p[at] == '\\') {
            escaped = true;
            at++; /* skip the escaped byte too, even a quote */
        } else {
            high = true;
        }
        at = at < size ? plain_run(p, at + 1, size) : size;
    }
    if (at >= size)
        return fail_form(r, size, "the quote that ends the string");
    struct hf_bytes raw = hf_mem(p + from, at - from);
    if (high && !hf_utf8_valid(raw))
        return hf_reader_fail(r, "expected UTF-8; byte %zu is not valid", from + broken_at(raw));
    if (escaped && !unescape(r, from, raw, out))
        return false;
    if (!escaped)
        *out = raw;
    r->at = at + 1;
    return true;
}

bool hf_reader_string(struct hf_reader *r, struct hf_bytes *out)
{
    if (hf_reader_peek(r) != HF_READ_STRING)
        return hf_reader_refuse(r, r->at, "a string");
    return string_read(r, out);
}

/* ---- Numbers and words ---- */

static size_t digits_run(const struct hf_reader *r, size_t at)
{
    const unsigned char *p = text_of(r);
    while (at < r->text.size && p[at] >= '0' && p[at] <= '9')
        at++;
    return at;
}

static bool is_at(const struct hf_reader *r, size_t at, unsigned char a, unsigned char b)
{
    const unsigned char *p = text_of(r);
    return at < r->text.size && (p[at] == a || p[at] == b);
}

/* The number whose first byte, a digit or a minus, is at r->at. */
static bool number_read(struct hf_reader *r, struct hf_bytes *out)
{
    size_t at = r->at + is_at(r, r->at, '-', '-'), end = digits_run(r, at);
    if (end == at)
        return fail_form(r, end, "a digit");
    if (is_at(r, at, '0', '0') && end - at > 1)
        return fail_form(r, at + 1, "no digit after a leading zero");
    if (is_at(r, end, '.', '.')) {
        at = end + 1;
        end = digits_run(r, at);
        if (end == at)
            return fail_form(r, end, "a digit after the point");
    }
    if (is_at(r, end, 'e', 'E')) {
        at = end + 1 + is_at(r, end + 1, '+', '-');
        end = digits_run(r, at);
        if (end == at)
            return fail_form(r, end, "a digit of the exponent");
    }
    *out = hf_mem(text_of(r) + r->at, end - r->at);
    r->at = end;
    return true;
}

bool hf_reader_number(struct hf_reader *r, struct hf_bytes *out)
{
    if (hf_reader_peek(r) != HF_READ_NUMBER)
        return hf_reader_refuse(r, r->at, "a number");
    return number_read(r, out);
}

bool hf_reader_uint(struct hf_reader *r, uint64_t *out)
{
    static const char expected[] = "a whole number from 0 to 18446744073709551615";
    struct hf_bytes text;
    if (hf_reader_peek(r) != HF_READ_NUMBER)
        return hf_reader_refuse(r, r->at, expected);
    size_t at = r->at;
    if (!number_read(r, &text))
        return false;
    return hf_number_parse(text, out) || hf_reader_refuse(r, at, expected);
}

bool hf_reader_int(struct hf_reader *r, int64_t *out)
{
    static const char expected[] =
        "a whole number from -9223372036854775808 to 9223372036854775807";
    struct hf_bytes text;
    uint64_t number;
    if (hf_reader_peek(r) != HF_READ_NUMBER)
        return hf_reader_refuse(r, r->at, expected);
    size_t at = r->at;
    if (!number_read(r, &text))
        return false;
    bool minus = *(const char *)text.data == '-';
    struct hf_bytes digits = hf_mem((const char *)text.data + minus, text.size - minus);
    if (!hf_number_parse(digits, &number) || number > (uint64_t)INT64_MAX + minus ||
        (minus && number == 0))
        return hf_reader_refuse(r, at, expected);
    *out = minus ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

static bool word_read(struct hf_reader *r, const char *word)
{
    size_t size = strlen(word);
    if (r->text.size - r->at < size || memcmp(text_of(r) + r->at, word, size) != 0)
        return fail_form(r, r->at, "true, false or null");
    r->at += size;
    return true;
}

bool hf_reader_bool(struct hf_reader *r, bool *out)
{
    enum hf_reader_type type = hf_reader_peek(r);
    if (type != HF_READ_TRUE && type != HF_READ_FALSE)
        return hf_reader_refuse(r, r->at, "true or false");
    *out = type == HF_READ_TRUE;
    return word_read(r, *out ? "true" : "false");
}

bool hf_reader_null(struct hf_reader *r)
{
    if (hf_reader_peek(r) != HF_READ_NULL)
        return hf_reader_refuse(r, r->at, "null");
    return word_read(r, "null");
}

/* ---- Names, each once ---- */

static bool names_push(struct hf_reader *r, struct hf_bytes entry)
{
    if (!r->names) {
        r->names = r->few;
        r->name_room = HF_READER_NAMES;
    }
    if (r->name_count == r->name_room) {
        struct hf_bytes *more = hf_arena_take(r->arena, 2 * r->name_room * sizeof *more);
        if (!more)
            return hf_reader_no_memory(r);
        memcpy(more, r->names, r->name_count * sizeof *more);
        r->names = more;
        r->name_room *= 2;
    }
    r->names[r->name_count++] = entry;
    return true;
}

COLD static bool fail_twice(struct hf_reader *r, struct hf_bytes name)
{
    char text[HF_READER_EXCERPT];
    return hf_reader_fail(r, "duplicate member \"%s\", the second one before byte %zu",
                          hf_reader_excerpt(name, text), r->at);
}

/* A few names are compared pairwise; many are sorted once, when the object ends, so that no input
 * makes this slow. */
static bool name_add(struct hf_reader *r, struct hf_bytes name)
{
    if (r->name_count - r->name_base < HF_READER_NAMES)
        for (size_t i = r->name_base; i < r->name_count; i++)
            if (hf_bytes_equal(r->names[i], name))
                return fail_twice(r, name);
    return names_push(r, name);
}

/* Any order that puts equal names next to each other. */
static int by_size(const void *a, const void *b)
{
    const struct hf_bytes *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->size > 0 ? memcmp(x->data, y->data, x->size) : 0;
}

static bool names_leave(struct hf_reader *r)
{
    size_t base = r->name_base, count = r->name_count - base;
    if (count > HF_READER_NAMES) {
        qsort(r->names + base, count, sizeof *r->names, by_size);
        for (size_t i = base + 1; i < base + count; i++)
            if (hf_bytes_equal(r->names[i - 1], r->names[i]))
                return fail_twice(r, r->names[i]);
    }
    r->name_count = base - 1;
    r->name_base = r->names[base - 1].size;
    return true;
}

/* ---- Objects and arrays ---- */

static bool enter(struct hf_reader *r)
{
    if (r->depth == HF_READER_DEPTH)
        return hf_reader_fail(
            r, "expected at most %d nested arrays and objects; byte %zu begins one more",
            HF_READER_DEPTH, r->at);
    r->at++;
    r->depth++;
    r->first = true;
    return true;
}

static void leave(struct hf_reader *r)
{
    r->at++;
    r->depth--;
    r->first = false;
}

/* Go to the next member or element. False: at `end`, or an error. */
static bool part(struct hf_reader *r, char end, const char *expected)
{
    if (r->failed)
        return false;
    int c = next(r);
    if (c == end)
        return false;
    if (!r->first) {
        if (c != ',')
            return fail_form(r, r->at, expected);
        r->at++;
    }
    r->first = false;
    return true;
}

bool hf_reader_object(struct hf_reader *r)
{
    if (hf_reader_peek(r) != HF_READ_OBJECT)
        return hf_reader_refuse(r, r->at, "an object");
    if (!enter(r) || !names_push(r, hf_mem(NULL, r->name_base)))
        return false;
    r->name_base = r->name_count;
    return true;
}

bool hf_reader_member(struct hf_reader *r, struct hf_bytes *name)
{
    bool first = r->first;
    if (!part(r, '}', "',' or '}'")) {
        if (!r->failed && names_leave(r))
            leave(r);
        return false;
    }
    if (next(r) != '"')
        return fail_form(r, r->at, first ? "a name in quotes or '}'" : "a name in quotes");
    if (!string_read(r, name) || !name_add(r, *name))
        return false;
    if (next(r) != ':')
        return fail_form(r, r->at, "':'");
    r->at++;
    return true;
}

bool hf_reader_array(struct hf_reader *r)
{
    if (hf_reader_peek(r) != HF_READ_ARRAY)
        return hf_reader_refuse(r, r->at, "an array");
    return enter(r);
}

bool hf_reader_element(struct hf_reader *r)
{
    if (part(r, ']', "',' or ']'"))
        return true;
    if (!r->failed)
        leave(r);
    return false;
}
