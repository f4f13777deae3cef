#include "json/escape.h"

/* Four hexadecimal digits, or -1. */
static int hex4(const unsigned char *p, size_t size)
{
    int v = 0;
    if (size < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        int c = p[i], low = c | 0x20;
        if (c >= '0' && c <= '9')
            v = v * 16 + (c - '0');
        else if (low >= 'a' && low <= 'f')
            v = v * 16 + (low - 'a' + 10);
        else
            return -1;
    }
    return v;
}

static unsigned char *utf8_put(unsigned char *out, unsigned c)
{
    if (c < 0x80) {
        *out++ = (unsigned char)c;
        return out;
    }
    if (c < 0x800) {
        *out++ = (unsigned char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *out++ = (unsigned char)(0xe0 | c >> 12);
        } else {
            *out++ = (unsigned char)(0xf0 | c >> 18);
            *out++ = (unsigned char)(0x80 | (c >> 12 & 0x3f));
        }
        *out++ = (unsigned char)(0x80 | (c >> 6 & 0x3f));
    }
    *out++ = (unsigned char)(0x80 | (c & 0x3f));
    return out;
}

/* The code point after "\u"; two halves of a surrogate pair give one. *used: bytes after the
 * "\u". */
static int code_point(const unsigned char *p, size_t size, size_t *used)
{
    int c = hex4(p, size);
    *used = 4;
    if (c < 0xd800 || c > 0xdfff)
        return c;
    if (c > 0xdbff || size < 10 || p[4] != '\\' || p[5] != 'u')
        return -1;
    int low = hex4(p + 6, size - 6);
    *used = 10;
    return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : -1;
}

static int short_escape(unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/': return c;
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return -1;
    }
}

bool hf_escape_undo(struct hf_bytes raw, unsigned char *out, size_t *out_size, size_t *bad)
{
    const unsigned char *p = raw.data;
    unsigned char *to = out;
    for (size_t i = 0; i < raw.size;) {
        const unsigned char *slash = memchr(p + i, '\\', raw.size - i);
        size_t run = slash ? (size_t)(slash - p) - i : raw.size - i, used = 0;
        memcpy(to, p + i, run);
        to += run;
        i += run;
        if (!slash)
            break;
        int c = p[i + 1] == 'u' ? code_point(p + i + 2, raw.size - i - 2, &used)
                                : short_escape(p[i + 1]);
        if (c < 0) {
            *bad = i;
            return false;
        }
        to = utf8_put(to, (unsigned)c);
        i += 2 + used;
    }
    *out_size = (size_t)(to - out);
    return true;
}
