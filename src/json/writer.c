#include "json/writer.h"

#include "base/text.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Write the comma before a value, if one is due. */
static void value_begin(struct hf_json *j)
{
    if (j->comma)
        hf_buffer_add_char(j->out, ',');
    j->comma = true;
}

static void bracket_open(struct hf_json *j, char c)
{
    value_begin(j);
    hf_buffer_add_char(j->out, c);
    j->comma = false;
}

static void bracket_close(struct hf_json *j, char c)
{
    hf_buffer_add_char(j->out, c);
    j->comma = true;
}

void hf_json_object(struct hf_json *j)
{
    bracket_open(j, '{');
}

void hf_json_object_end(struct hf_json *j)
{
    bracket_close(j, '}');
}

void hf_json_array(struct hf_json *j)
{
    bracket_open(j, '[');
}

void hf_json_array_end(struct hf_json *j)
{
    bracket_close(j, ']');
}

void hf_json_name_quoted(struct hf_json *j, const char *quoted, size_t size)
{
    value_begin(j);
    hf_buffer_add(j->out, quoted, size);
    j->comma = false;
}

/* The length of the character that begins at p, or 0. Then *bad is the number of bytes that one
 * U+FFFD replaces: as many as could have begun a character (Unicode 3.9, "maximal subpart"). */
static size_t character_size(const unsigned char *p, const unsigned char *end, size_t *bad)
{
    unsigned c = *p;
    size_t size = c >= 0xc2 && c <= 0xdf   ? 2
                  : c >= 0xe0 && c <= 0xef ? 3
                  : c >= 0xf0 && c <= 0xf4 ? 4
                                           : 0;
    unsigned lowest = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned highest = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    *bad = 1;
    for (size_t i = 1; i < size; i++) {
        if (p + i == end || p[i] < lowest || p[i] > highest) {
            *bad = i;
            return 0;
        }
        lowest = 0x80;
        highest = 0xbf;
    }
    return size;
}

static void escape_add(struct hf_buffer *out, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    char text[6] = { '\\', 'u', '0', '0', digits[c >> 4], digits[c & 15] };
    size_t size = 2;
    switch (c) {
    case '"':
    case '\\': text[1] = (char)c; break;
    case '\b': text[1] = 'b'; break;
    case '\f': text[1] = 'f'; break;
    case '\n': text[1] = 'n'; break;
    case '\r': text[1] = 'r'; break;
    case '\t': text[1] = 't'; break;
    default: size = sizeof text;
    }
    hf_buffer_add(out, text, size);
}

static bool passes(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Runs that need no change are copied at once; nearly always that is the whole string. */
static void string_add(struct hf_buffer *out, struct hf_bytes text)
{
    const unsigned char *p = text.size > 0 ? text.data : (const unsigned char *)"";
    const unsigned char *end = p + text.size;
    hf_buffer_add_char(out, '"');
    while (p < end) {
        const unsigned char *run = p;
        size_t bad = 0;
        while (p < end) {
            size_t size = passes(*p) ? 1 : *p >= 0x80 ? character_size(p, end, &bad) : 0;
            if (size == 0)
                break;
            p += size;
        }
        hf_buffer_add(out, run, (size_t)(p - run));
        if (p == end)
            break;
        if (*p < 0x80) {
            escape_add(out, *p++);
        } else {
            hf_buffer_add(out, REPLACEMENT, 3);
            p += bad;
        }
    }
    hf_buffer_add_char(out, '"');
}

void hf_json_name_bytes(struct hf_json *j, struct hf_bytes name)
{
    value_begin(j);
    string_add(j->out, name);
    hf_buffer_add_char(j->out, ':');
    j->comma = false;
}

void hf_json_bytes(struct hf_json *j, struct hf_bytes text)
{
    value_begin(j);
    string_add(j->out, text);
}

void hf_json_text(struct hf_json *j, const char *text)
{
    hf_json_bytes(j, hf_str(text));
}

void hf_json_joined(struct hf_json *j, const char *first, const char *second)
{
    value_begin(j);
    hf_buffer_add_char(j->out, '"');
    hf_buffer_add_text(j->out, first);
    hf_buffer_add_text(j->out, second);
    hf_buffer_add_char(j->out, '"');
}

static void base64_add(struct hf_buffer *out, struct hf_bytes bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = bytes.data;
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t n = bytes.size - i;
        unsigned v =
            (unsigned)p[i] << 16 | (n > 1 ? (unsigned)p[i + 1] << 8 : 0) | (n > 2 ? p[i + 2] : 0);
        char four[4] = { digits[v >> 18], digits[v >> 12 & 63], n > 1 ? digits[v >> 6 & 63] : '=',
                         n > 2 ? digits[v & 63] : '=' };
        hf_buffer_add(out, four, sizeof four);
    }
}

void hf_json_opaque(struct hf_json *j, struct hf_bytes bytes)
{
    if (bytes.size == 0 || hf_utf8_valid(bytes)) {
        hf_json_bytes(j, bytes);
        return;
    }
    value_begin(j);
    hf_buffer_add_text(j->out, "{\"base64\":\"");
    base64_add(j->out, bytes);
    hf_buffer_add_text(j->out, "\"}");
}

void hf_json_raw(struct hf_json *j, struct hf_bytes text)
{
    value_begin(j);
    hf_buffer_add_bytes(j->out, text);
}

void hf_json_hex(struct hf_json *j, const char *prefix, struct hf_bytes bytes)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *p = bytes.data;
    value_begin(j);
    hf_buffer_add_char(j->out, '"');
    hf_buffer_add_text(j->out, prefix);
    for (size_t i = 0; i < bytes.size; i++) {
        char two[2] = { digits[p[i] >> 4], digits[p[i] & 15] };
        hf_buffer_add(j->out, two, sizeof two);
    }
    hf_buffer_add_char(j->out, '"');
}

void hf_json_uint(struct hf_json *j, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    value_begin(j);
    hf_buffer_add(j->out, digits + at, sizeof digits - at);
}

void hf_json_int(struct hf_json *j, int64_t number)
{
    if (number >= 0) {
        hf_json_uint(j, (uint64_t)number);
        return;
    }
    value_begin(j);
    hf_buffer_add_char(j->out, '-');
    j->comma = false;
    hf_json_uint(j, 0 - (uint64_t)number);
}

void hf_json_bool(struct hf_json *j, bool value)
{
    value_begin(j);
    hf_buffer_add_text(j->out, value ? "true" : "false");
}

void hf_json_null(struct hf_json *j)
{
    value_begin(j);
    hf_buffer_add_text(j->out, "null");
}

void hf_json_time(struct hf_json *j, hf_time t)
{
    char text[HF_TIME_TEXT + 2] = "\"";
    hf_time_format(t, text + 1);
    text[HF_TIME_TEXT] = '"';
    value_begin(j);
    hf_buffer_add(j->out, text, HF_TIME_TEXT + 1);
}

void hf_json_duration(struct hf_json *j, int64_t ms)
{
    char text[24];
    hf_duration_format(ms, text);
    hf_json_text(j, text);
}
