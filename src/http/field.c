#include "http/field.h"

#include "base/bytes.h"
#include "http/octet.h"

#include <arpa/inet.h>

enum hf_http_parse hf_http_refuse(struct hf_http_reader *r, unsigned status, const char *code,
                                  const char *detail)
{
    *r->why = (struct hf_http_refusal){ status, code, detail };
    return HF_HTTP_BAD;
}

enum hf_http_parse hf_http_bad(struct hf_http_reader *r, const char *detail)
{
    return hf_http_refuse(r, 400, "invalid-request", detail);
}

/* ---- Words and lists ---- */

/* Is `text` equal to `word`, ignoring case? word: lower case letters, digits and '-'. Control
 * bytes, which this would take for those, were refused before. It compares eight bytes at once; the
 * last eight may overlap the previous ones. */
static bool is_word(struct hf_bytes text, const char *word, size_t size)
{
    const unsigned char *p = text.data, *w = (const unsigned char *)word;
    const uint64_t lower = UINT64_C(0x2020202020202020);
    if (text.size != size)
        return false;
    if (size < 8) {
        for (size_t i = 0; i < size; i++)
            if ((p[i] | 0x20) != w[i])
                return false;
        return true;
    }
    for (size_t i = 0; i + 8 < size; i += 8)
        if ((hf_get64(p + i) | lower) != hf_get64(w + i))
            return false;
    return (hf_get64(p + size - 8) | lower) == hf_get64(w + size - 8);
}

#define IS_WORD(text, word) is_word(text, word, sizeof(word) - 1)

/* Take the next item of a comma-separated list, without the blanks around it. False at the end. */
static bool item_next(struct hf_bytes *list, struct hf_bytes *item)
{
    const unsigned char *p = list->data;
    if (p == NULL)
        return false;
    const unsigned char *end = p + list->size;
    const unsigned char *comma = memchr(p, ',', list->size);
    const unsigned char *stop = comma ? comma : end;
    *list = comma ? hf_mem(comma + 1, (size_t)(end - comma) - 1) : hf_mem(NULL, 0);
    while (p < stop && hf_octet_blank(*p))
        p++;
    while (stop > p && hf_octet_blank(stop[-1]))
        stop--;
    *item = hf_mem(p, (size_t)(stop - p));
    return true;
}

/* ---- Host ---- */

/* "[...]" with an IPv6 address in it. rest: the text after the bracket. */
static bool literal_take(struct hf_bytes host, struct hf_bytes *rest)
{
    const char *p = host.data;
    const char *close = memchr(p, ']', host.size);
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (close == NULL || (size_t)(close - p) > sizeof text)
        return false;
    size_t size = (size_t)(close - p) - 1;
    memcpy(text, p + 1, size);
    text[size] = '\0';
    *rest = hf_mem(close + 1, host.size - size - 2);
    return inet_pton(AF_INET6, text, &address) == 1;
}

static bool port_valid(struct hf_bytes port)
{
    const unsigned char *p = port.data;
    unsigned number = 0;
    if (port.size == 0 || port.size > 5)
        return false;
    for (size_t i = 0; i < port.size; i++) {
        if (!hf_octet_digit(p[i]))
            return false;
        number = number * 10 + (unsigned)(p[i] - '0');
    }
    return number <= 65535;
}

/* A name, an IPv4 address or an IPv6 address in brackets, with or without a port. RFC 3986 also
 * allows escapes and punctuation in a name. They are refused: no host has them, and "a,b" may be
 * two fields joined by a proxy. */
static bool host_valid(struct hf_bytes host)
{
    const unsigned char *p = host.data;
    struct hf_bytes rest = host;
    if (host.size > 0 && p[0] == '[') {
        if (!literal_take(host, &rest))
            return false;
    } else {
        size_t n = 0;
        while (n < host.size && hf_octet_is(p[n], HF_OCTET_HOST))
            n++;
        if (n == 0 || n > 255)
            return false;
        rest = hf_mem(p + n, host.size - n);
    }
    p = rest.data;
    return rest.size == 0 || (p[0] == ':' && port_valid(hf_mem(p + 1, rest.size - 1)));
}

/* ---- Values ---- */

/* Only digits, so that no other parser can read a sign, a list or another base. */
static enum hf_http_parse take_length(struct hf_http_reader *r, struct hf_bytes value)
{
    const unsigned char *p = value.data;
    uint64_t length = 0;
    bool fits = true;
    if (value.size == 0 || (value.size > 1 && p[0] == '0'))
        return hf_http_bad(r, "Content-Length must be a number without a leading zero. Correct "
                              "it.");
    for (size_t i = 0; i < value.size; i++) {
        uint64_t digit = (uint64_t)(p[i] - '0');
        if (!hf_octet_digit(p[i]))
            return hf_http_bad(r, "Content-Length must be one number, only digits. Correct it.");
        fits = fits && length <= (UINT64_MAX - digit) / 10;
        length = length * 10 + digit;
    }
    if (r->out->chunked)
        return hf_http_bad(r, "Transfer-Encoding and Content-Length were both sent. Send one of "
                              "them.");
    if (!fits)
        return hf_http_refuse(r, 413, "body-too-large",
                              "Content-Length is above all limits. Send a smaller body.");
    r->out->length = length;
    r->out->has_length = true;
    return HF_HTTP_DONE;
}

/* Exactly "chunked". RFC 9112, 6.3: if another coding is the last one, the end of the body is
 * unknown: 400. 6.1: if chunked is the last and the others are unknown: 501. */
static enum hf_http_parse take_coding(struct hf_http_reader *r, struct hf_bytes value)
{
    struct hf_bytes item;
    unsigned items = 0, empty = 0, chunked = 0;
    bool last = false;
    if (r->old)
        return hf_http_bad(r,
                           "HTTP/1.0 has no Transfer-Encoding. Send HTTP/1.1, or Content-Length.");
    if (r->out->has_length)
        return hf_http_bad(r, "Content-Length and Transfer-Encoding were both sent. Send one of "
                              "them.");
    while (item_next(&value, &item)) {
        last = IS_WORD(item, "chunked");
        chunked += last;
        empty += item.size == 0;
        items++;
    }
    if (!last || chunked > 1 || empty > 0)
        return hf_http_bad(r,
                           "Transfer-Encoding must be \"chunked\" and nothing else. Correct it.");
    if (items > 1)
        return hf_http_refuse(r, 501, "not-implemented",
                              "The server supports only the transfer coding \"chunked\". Leave out "
                              "others.");
    r->out->chunked = true;
    return HF_HTTP_DONE;
}

static enum hf_http_parse take_expect(struct hf_http_reader *r, struct hf_bytes value)
{
    if (!IS_WORD(value, "100-continue"))
        return hf_http_refuse(r, 417, "expectation-failed",
                              "Expect may only be \"100-continue\". Leave it out.");
    r->out->expect_continue =
        !r->old; /* RFC 9110, 10.1.1: not for a client that cannot read the 100 */
    return HF_HTTP_DONE;
}

/* A list of tokens. Only "close" has an effect. Empty items are legal in lists. */
static enum hf_http_parse take_connection(struct hf_http_reader *r, struct hf_bytes value)
{
    struct hf_bytes item;
    while (item_next(&value, &item)) {
        const unsigned char *p = item.data;
        for (size_t i = 0; i < item.size; i++)
            if (!hf_octet_is(p[i], HF_OCTET_TOKEN))
                return hf_http_bad(r, "Connection must be a comma-separated list of names. Correct "
                                      "it.");
        r->close = r->close || IS_WORD(item, "close");
    }
    return HF_HTTP_DONE;
}

/* Keep the value. All users of kept values but keys and clients expect ASCII, so that is checked
 * here, once. */
static enum hf_http_parse take_kept(struct hf_http_reader *r, unsigned field, struct hf_bytes value)
{
    const unsigned char *p = value.data;
    uint64_t all = 0;
    bool any = field == HF_FIELD_IDEMPOTENCY_KEY || field == HF_FIELD_CLIENT;
    size_t i = any ? value.size : 0;
    for (; i + 8 <= value.size; i += 8)
        all |= hf_get64(p + i);
    for (; i < value.size; i++)
        all |= p[i];
    if (all & UINT64_C(0x8080808080808080))
        return hf_http_bad(
            r,
            "Authorization, Holdfast-Sequence, Content-Type, Content-Encoding, Accept, Origin and "
            "Sec-Fetch-Site must be ASCII. Correct it.");
    if (field == HF_FIELD_HOST && !host_valid(value))
        return hf_http_bad(r, "Host must be a name or an address, with or without a port. Correct "
                              "it.");
    r->out->has[field] = true;
    r->out->field[field] = value;
    return HF_HTTP_DONE;
}

/* ---- Finding the field ---- */

/* Fields with a kept value have the numbers of enum hf_http_field; these follow. */
enum { LENGTH = HF_FIELD_COUNT, CODING, EXPECT, CONNECTION, UNKNOWN };

/* Sorted by length; first_of_length has the index of the first field of each length, and any index
 * for other lengths. */
static const struct known {
    const char *name;
    unsigned char size, field;
} known[] = {
    { "host", 4, HF_FIELD_HOST },
    { "accept", 6, HF_FIELD_ACCEPT },
    { "expect", 6, EXPECT },
    { "origin", 6, HF_FIELD_ORIGIN },
    { "connection", 10, CONNECTION },
    { "content-type", 12, HF_FIELD_CONTENT_TYPE },
    { "authorization", 13, HF_FIELD_AUTHORIZATION },
    { "content-length", 14, LENGTH },
    { "sec-fetch-site", 14, HF_FIELD_SEC_FETCH_SITE },
    { "holdfast-client", 15, HF_FIELD_CLIENT },
    { "idempotency-key", 15, HF_FIELD_IDEMPOTENCY_KEY },
    { "content-encoding", 16, HF_FIELD_CONTENT_ENCODING },
    { "holdfast-sequence", 17, HF_FIELD_SEQUENCE },
    { "transfer-encoding", 17, CODING },
};

enum { KNOWN_COUNT = sizeof known / sizeof *known, KNOWN_LONGEST = 17 };

static const unsigned char first_of_length[KNOWN_LONGEST + 1] = {
    [4] = 0, [6] = 1, [10] = 4, [12] = 5, [13] = 6, [14] = 7, [15] = 9, [16] = 11, [17] = 12
};

static unsigned field_of(struct hf_bytes name)
{
    if (name.size > KNOWN_LONGEST)
        return UNKNOWN;
    for (size_t i = first_of_length[name.size]; i < KNOWN_COUNT && known[i].size == name.size; i++)
        if (is_word(name, known[i].name, name.size))
            return known[i].field;
    return UNKNOWN;
}

static enum hf_http_parse take_known(struct hf_http_reader *r, unsigned field,
                                     struct hf_bytes value)
{
    bool again = r->seen & 1U << field;
    r->seen |= 1U << field;
    if (again && field == HF_FIELD_ACCEPT)
        return HF_HTTP_DONE; /* the first one counts */
    if (again && field == HF_FIELD_IDEMPOTENCY_KEY)
        return hf_http_bad(r, "Idempotency-Key was sent more than once. Send it once.");
    if (again && (field == HF_FIELD_CLIENT || field == HF_FIELD_SEQUENCE))
        return hf_http_bad(r, "Holdfast-Client or Holdfast-Sequence was sent more than once. Send "
                              "each of them once.");
    if (again && field != CONNECTION)
        return hf_http_bad(r, "A field was sent twice that may be sent only once: Host, "
                              "Content-Length, Transfer-Encoding, Expect, Authorization, "
                              "Content-Type, Content-Encoding, Origin or Sec-Fetch-Site. Send it "
                              "once.");
    switch (field) {
    case LENGTH: return take_length(r, value);
    case CODING: return take_coding(r, value);
    case EXPECT: return take_expect(r, value);
    case CONNECTION: return take_connection(r, value);
    default: return take_kept(r, field, value);
    }
}

enum hf_http_parse hf_http_field_take(struct hf_http_reader *r, struct hf_bytes name,
                                      struct hf_bytes value)
{
    const unsigned char *p = value.data;
    unsigned field = field_of(name);
    if (field == UNKNOWN)
        return HF_HTTP_DONE;
    while (value.size > 0 && hf_octet_blank(p[value.size - 1]))
        value.size--;
    return take_known(r, field, value);
}
