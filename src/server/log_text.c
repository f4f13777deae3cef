#include "server/log_text.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <utf8proc.h>

static const char digits[] = "0123456789abcdef";

/* After the first text that does not fit, add nothing: the whole field is removed later. */
static void put(struct hf_log_text *t, const void *data, size_t size)
{
    if (t->cut || size > sizeof t->text - HF_LOG_TAIL - t->size) {
        t->cut = true;
        return;
    }
    memcpy(t->text + t->size, data, size);
    t->size += size;
}

static void put_text(struct hf_log_text *t, const char *text)
{
    put(t, text, strlen(text));
}

/* ---- Text from outside ---- */

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_utf16(struct hf_log_text *t, unsigned unit)
{
    char text[6] = { '\\',
                     'u',
                     digits[unit >> 12 & 15],
                     digits[unit >> 8 & 15],
                     digits[unit >> 4 & 15],
                     digits[unit & 15] };
    put(t, text, sizeof text);
}

/* A character that must be escaped: it would end the string or the line, move the cursor, change
 * the text direction or be invisible. */
static void put_escaped(struct hf_log_text *t, unsigned c)
{
    char text[16];
    if (c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t') {
        text[0] = '\\';
        text[1] = (char)(c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : (char)c);
        put(t, text, 2);
    } else if (!t->json) {
        int size = snprintf(text, sizeof text, c < 0x80 ? "\\x%02x" : "\\u{%x}", c);
        put(t, text, (size_t)size);
    } else if (c < 0x10000) {
        put_utf16(t, c);
    } else {
        put_utf16(t, 0xd7c0 + (c >> 10));
        put_utf16(t, 0xdc00 | (c & 0x3ff));
    }
}

static bool is_hidden(utf8proc_int32_t c)
{
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return true;
    default: return false;
    }
}

/* A byte that is not valid UTF-8. JSON cannot express it. */
static void put_byte(struct hf_log_text *t, unsigned char byte)
{
    char text[4] = { '\\', 'x', digits[byte >> 4], digits[byte & 15] };
    if (t->json)
        put(t, "\xef\xbf\xbd", 3);
    else
        put(t, text, sizeof text);
}

/* Where to cut: at HF_LOG_TEXT_MAX bytes, but not in the middle of a character. */
static size_t shown_size(struct hf_bytes text)
{
    const unsigned char *p = text.data;
    size_t size = HF_LOG_TEXT_MAX;
    if (text.size <= size)
        return text.size;
    while (size > HF_LOG_TEXT_MAX - 3 && (p[size] & 0xc0) == 0x80)
        size--;
    return size;
}

static void put_quoted(struct hf_log_text *t, struct hf_bytes text)
{
    const unsigned char *p = text.data;
    size_t size = shown_size(text);
    put(t, "\"", 1);
    for (size_t at = 0; at < size && !t->cut;) {
        size_t run = at;
        while (run < size && is_plain(p[run]))
            run++;
        put(t, p + at, run - at);
        at = run;
        if (at == size)
            break;
        utf8proc_int32_t c = -1;
        utf8proc_ssize_t n = utf8proc_iterate(p + at, (utf8proc_ssize_t)(size - at), &c);
        if (n <= 0) {
            put_byte(t, p[at++]);
            continue;
        }
        if (n == 1 || is_hidden(c))
            put_escaped(t, (unsigned)c);
        else
            put(t, p + at, (size_t)n);
        at += (size_t)n;
    }
    put_text(t, size < text.size ? "...\"" : "\"");
}

/* In a line of text, our own single words need no quotes. */
static bool is_word(struct hf_bytes text)
{
    const unsigned char *p = text.data;
    for (size_t i = 0; i < text.size; i++)
        if (!is_plain(p[i]) || p[i] == ' ' || p[i] == '=')
            return false;
    return text.size > 0 && text.size <= HF_LOG_TEXT_MAX;
}

static void put_hashed(struct hf_log_text *t, struct hf_bytes name)
{
    uint8_t digest[HF_DIGEST_SIZE];
    char text[18] = { '"', [17] = '"' };
    hf_sha256_of(name.data, name.size, digest);
    for (size_t i = 0; i < 16; i++)
        text[i + 1] = digits[i % 2 ? digest[i / 2] & 15 : digest[i / 2] >> 4];
    put(t, text, sizeof text);
}

static void put_time(struct hf_log_text *t, hf_time when, const char *quote)
{
    char text[HF_TIME_TEXT];
    hf_time_format(when, text);
    put_text(t, quote);
    put(t, text, HF_TIME_TEXT - 1);
    put_text(t, quote);
}

static void put_number(struct hf_log_text *t, int64_t number)
{
    char text[20];
    size_t at = sizeof text;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        text[--at] = digits[rest % 10];
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        text[--at] = '-';
    put(t, text + at, sizeof text - at);
}

static void put_value(struct hf_log_text *t, const struct hf_log_field *field)
{
    switch (field->type) {
    case HF_LOG_TEXT:
        if (!t->json && is_word(field->text))
            put(t, field->text.data, field->text.size);
        else
            put_quoted(t, field->text);
        break;
    case HF_LOG_NAME:
        if (t->hash_keys)
            put_hashed(t, field->text);
        else
            put_quoted(t, field->text);
        break;
    case HF_LOG_NUMBER: put_number(t, field->number); break;
    case HF_LOG_TIME: put_time(t, field->number, t->json ? "\"" : ""); break;
    }
}

/* ---- The line ---- */

static void put_name(struct hf_log_text *t, const char *name)
{
    put_text(t, t->json ? ",\"" : " ");
    put_text(t, name);
    put_text(t, t->json ? "\":" : "=");
}

void hf_log_text_begin(struct hf_log_text *t, enum hf_log_level level, hf_time when,
                       const char *event)
{
    static const char *const levels[] = { "info", "warning", "error" };
    t->size = 0;
    t->cut = false;
    put_text(t, t->json ? "{\"time\":\"" : "");
    put_time(t, when, "");
    put_text(t, t->json ? "\",\"level\":\"" : " ");
    put_text(t, levels[level]);
    put_text(t, t->json ? "\",\"event\":\"" : " ");
    put_text(t, event);
    put_text(t, t->json ? "\"" : "");
    HF_ASSERT(!t->cut);
}

void hf_log_text_field(struct hf_log_text *t, const struct hf_log_field *field)
{
    size_t before = t->size;
    put_name(t, field->name);
    put_value(t, field);
    if (t->cut)
        t->size = before;
}

void hf_log_text_end(struct hf_log_text *t, uint64_t dropped)
{
    char tail[HF_LOG_TAIL + 1];
    int size = 0;
    tail[0] = '\0';
    if (t->cut)
        size += snprintf(tail, sizeof tail, t->json ? ",\"cut\":1" : " cut=1");
    if (dropped)
        size += snprintf(tail + size, sizeof tail - (size_t)size,
                         t->json ? ",\"dropped\":%" PRIu64 : " dropped=%" PRIu64, dropped);
    memcpy(t->text + t->size, tail, (size_t)size);
    t->size += (size_t)size;
    if (t->json)
        t->text[t->size++] = '}';
    t->text[t->size++] = '\n';
}
