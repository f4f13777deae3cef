#include "http/chunk.h"

#include "http/octet.h"

enum { SIZE_FIRST, SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, LAST_CR, LAST_LF, OVER };

enum { DIGITS_MAX = 16 }; /* 64 bits, so that no size can overflow */

static bool refuse(struct hf_http_refusal *why, const char *detail)
{
    *why = (struct hf_http_refusal){ 400, "invalid-request", detail };
    return false;
}

static bool take_size(struct hf_http_chunk *c, unsigned char b, struct hf_http_refusal *why)
{
    if (hf_octet_is(b, HF_OCTET_HEX)) {
        if (c->digits == DIGITS_MAX)
            return refuse(why, "A chunk's size has more than 16 digits. Send smaller chunks.");
        c->size = c->size << 4 | hf_octet_hex(b);
        c->digits++;
        c->state = SIZE;
        return true;
    }
    if (b != '\r' || c->state == SIZE_FIRST)
        return refuse(why,
                      "Expected the size of a chunk in hexadecimal digits, then CR LF, without an "
                      "extension.");
    c->state = SIZE_LF;
    return true;
}

/* Take one byte outside of the data. False if it is not allowed there. */
static bool take_byte(struct hf_http_chunk *c, unsigned char b, struct hf_http_refusal *why)
{
    switch (c->state) {
    case SIZE_FIRST:
    case SIZE: return take_size(c, b, why);
    case SIZE_LF:
        c->state = c->size > 0 ? DATA : LAST_CR;
        c->left = c->size;
        c->size = c->digits = 0;
        return b == '\n' || refuse(why, "Expected CR LF after the size of a chunk.");
    case DATA_CR:
        c->state = DATA_LF;
        return b == '\r' ||
               refuse(why, "A chunk is longer than its size says, or does not end with CR LF.");
    case DATA_LF:
        c->state = SIZE_FIRST;
        return b == '\n' || refuse(why, "Expected CR LF after the chunk.");
    case LAST_CR:
        c->state = LAST_LF;
        return b == '\r' ||
               refuse(why,
                      "Expected an empty line after the last chunk. Trailers are not accepted.");
    default:
        c->state = OVER;
        return b == '\n' || refuse(why, "Expected CR LF after the last chunk.");
    }
}

/* Move the received part of the chunk to the end of the decoded bytes. Returns its size. */
static size_t take_data(struct hf_http_chunk *c, char *to, const char *from, size_t size)
{
    if (size > c->left)
        size = (size_t)c->left;
    if (to != from)
        memmove(to, from, size);
    c->left -= size;
    if (c->left == 0)
        c->state = DATA_CR;
    return size;
}

enum hf_http_parse hf_http_chunk_decode(struct hf_http_chunk *c, char *data, size_t *size,
                                        size_t *used, struct hf_http_refusal *why)
{
    size_t raw = 0, decoded = 0;
    bool good = true;
    while (good && raw < *size && c->state != OVER) {
        if (c->state == DATA) {
            size_t n = take_data(c, data + decoded, data + raw, *size - raw);
            decoded += n;
            raw += n;
        } else {
            good = take_byte(c, (unsigned char)data[raw], why);
            raw++;
        }
    }
    *size = decoded;
    *used = raw;
    if (!good)
        return HF_HTTP_BAD;
    return c->state == OVER ? HF_HTTP_DONE : HF_HTTP_MORE;
}
