/* octet.h: the classes of bytes in a request. */
#ifndef HF_HTTP_OCTET_H
#define HF_HTTP_OCTET_H

#include "holdfast.h"

/* Allowed in a token (RFC 9110); in a target (RFC 3986: path and query, without '%'); in the name
 * of a host; in a hexadecimal number. */
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

/* The value of a hexadecimal digit. c: must be one. */
static inline unsigned hf_octet_hex(unsigned char c)
{
    return hf_octet_digit(c) ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;
}

#endif
