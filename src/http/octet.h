/* octet.h: what a byte of a request may be part of. */
#ifndef HF_HTTP_OCTET_H
#define HF_HTTP_OCTET_H

#include "holdfast.h"

/* Part of a token (RFC 9110); of a target as it is (RFC 3986: path and query, '%' apart); of the
 * name of a host; of a hexadecimal number. */
enum { HF_OCTET_TOKEN = 1, HF_OCTET_TARGET = 2, HF_OCTET_HOST = 4, HF_OCTET_HEX = 8 };

extern const unsigned char hf_http_octets[256];

static inline bool hf_octet_is(unsigned char c, unsigned kinds)
{
    return hf_http_octets[c] & kinds;
}

static inline bool hf_octet_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static inline bool hf_octet_blank(unsigned char c)
{
    return c == ' ' || c == '\t';
}

/* The value of a hexadecimal digit. c: one of them. */
static inline unsigned hf_octet_hex(unsigned char c)
{
    return hf_octet_digit(c) ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;
}

#endif
