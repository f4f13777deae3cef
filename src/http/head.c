#include "base/assert.h"
#include "base/bytes.h"
#include "http/field.h"
#include "http/octet.h"

/* ---- Lines ---- */

static enum hf_http_parse line_end(struct hf_http_reader *r)
{
    if (r->p == r->end)
        return HF_HTTP_MORE;
    if (*r->p != '\r')
        return hf_http_bad(r, "Invalid byte in the head, or a line that ends with LF alone. Lines "
                              "end with CR LF.");
    if (r->end - r->p == 1)
        return HF_HTTP_MORE;
    if (r->p[1] != '\n')
        return hf_http_bad(r, "CR without LF. Lines end with CR LF.");
    r->p += 2;
    return HF_HTTP_DONE;
}

/* Is the byte allowed in a field's value? The user of the value checks bytes from 0x80 on. */
static bool is_value(unsigned char c)
{
    return (c >= 0x20 && c != 0x7f) || c == '\t';
}

/* The first byte that is not allowed in a value, or `end`. Eight bytes at once: the lowest top bit
 * that is set marks, in one mask, the first byte below 0x20, and in the other the first 0x7f. */
static const unsigned char *value_end(const unsigned char *p, const unsigned char *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    while (end - p >= 8) {
        uint64_t v = hf_get64(p), del = v ^ ones * 0x7f;
        uint64_t found = (((v - ones * 0x20) & ~v) | ((del - ones) & ~del)) & tops;
        if (found == 0) {
            p += 8;
            continue;
        }
        p += __builtin_ctzll(found) / 8;
        if (*p != '\t')
            return p;
        p++;
    }
    while (p < end && is_value(*p))
        p++;
    return p;
}

static enum hf_http_parse read_field(struct hf_http_reader *r)
{
    const unsigned char *p = r->p, *end = r->end, *name = p;
    if (hf_octet_blank(*p))
        return hf_http_bad(r, "A line begins with white space. Put each field on its own line.");
    while (p < end && hf_octet_is(*p, HF_OCTET_TOKEN))
        p++;
    if (p == end)
        return HF_HTTP_MORE;
    if (*p != ':' || p == name)
        return hf_http_bad(
            r, "Expected a field: a name, a colon directly after it, a value, and CR LF.");
    struct hf_bytes name_bytes = hf_mem(name, (size_t)(p - name));
    p++;
    while (p < end && hf_octet_blank(*p))
        p++;
    r->p = value_end(p, end);
    struct hf_bytes value = hf_mem(p, (size_t)(r->p - p));
    enum hf_http_parse parse = line_end(r);
    return parse == HF_HTTP_DONE ? hf_http_field_take(r, name_bytes, value) : parse;
}

static enum hf_http_parse read_fields(struct hf_http_reader *r)
{
    for (unsigned count = 0;; count++) {
        if (r->p == r->end)
            return HF_HTTP_MORE;
        if (*r->p == '\r')
            return line_end(r);
        if (count == HF_HTTP_FIELDS_MAX)
            return hf_http_refuse(r, 431, "too-many-headers",
                                  "A request has at most 64 header fields. Send fewer.");
        enum hf_http_parse parse = read_field(r);
        if (parse != HF_HTTP_DONE)
            return parse;
    }
}

static enum hf_http_method method_of(struct hf_bytes name)
{
    static const struct {
        const char *name;
        enum hf_http_method method;
    } methods[] = { { "POST", HF_HTTP_POST },     { "GET", HF_HTTP_GET },
                    { "PUT", HF_HTTP_PUT },       { "HEAD", HF_HTTP_HEAD },
                    { "DELETE", HF_HTTP_DELETE }, { "OPTIONS", HF_HTTP_OPTIONS } };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (hf_bytes_equal(name, hf_str(methods[i].name)))
            return methods[i].method;
    return HF_HTTP_OTHER;
}

static enum hf_http_parse read_method(struct hf_http_reader *r)
{
    const unsigned char *method = r->p;
    while (r->p < r->end && hf_octet_is(*r->p, HF_OCTET_TOKEN))
        r->p++;
    if (r->p == r->end)
        return HF_HTTP_MORE;
    if (*r->p != ' ' || r->p == method)
        return hf_http_bad(
            r, "Expected a method and a space. Did the client send HTTP/1.1, without TLS?");
    r->out->method_name = hf_mem(method, (size_t)(r->p - method));
    r->out->method = method_of(r->out->method_name);
    r->p++;
    return HF_HTTP_DONE;
}

/* Read the target and the space after it. An incomplete escape is refused. */
static enum hf_http_parse read_target(struct hf_http_reader *r)
{
    const unsigned char *target = r->p, *p = r->p, *end = r->end;
    for (;;) {
        while (p < end && hf_octet_is(*p, HF_OCTET_TARGET))
            p++;
        if (p == end)
            return HF_HTTP_MORE;
        if (*p != '%')
            break;
        for (int i = 1; i <= 2; i++) {
            if (end - p == i)
                return HF_HTTP_MORE;
            if (!hf_octet_is(p[i], HF_OCTET_HEX))
                return hf_http_bad(
                    r, "Expected two hexadecimal digits after a % in the target. Write % as %25.");
        }
        p += 3;
    }
    if (*p != ' ' || p == target)
        return hf_http_bad(r, "Invalid byte in the target. Write it as %XX.");
    r->p = p + 1;
    size_t size = (size_t)(p - target);
    const unsigned char *query = memchr(target, '?', size);
    r->out->path = hf_mem(target, query ? (size_t)(query - target) : size);
    r->out->query = query ? hf_mem(query + 1, (size_t)(p - query) - 1) : hf_mem(p, 0);
    return HF_HTTP_DONE;
}

/* The version and the end of its line. */
static enum hf_http_parse read_version(struct hf_http_reader *r)
{
    static const char form[] = "HTTP/0.0";
    const unsigned char *version = r->p;
    for (size_t i = 0; i < sizeof form - 1; i++) {
        if (r->p == r->end)
            return HF_HTTP_MORE;
        if (form[i] == '0' ? !hf_octet_digit(*r->p) : *r->p != (unsigned char)form[i])
            return hf_http_bad(r, "Expected one space and HTTP/1.1 at the end of the request "
                                  "line.");
        r->p++;
    }
    enum hf_http_parse parse = line_end(r);
    if (parse != HF_HTTP_DONE)
        return parse;
    r->old = version[7] == '0';
    if (version[5] != '1' || version[7] > '1')
        return hf_http_refuse(r, 505, "version-not-supported",
                              "The server supports only HTTP/1.1 and HTTP/1.0.");
    return HF_HTTP_DONE;
}

/* Check the version before the form of the target, so that the preface of HTTP/2 gets 505. */
static enum hf_http_parse read_request_line(struct hf_http_reader *r)
{
    enum hf_http_parse parse = read_method(r);
    if (parse == HF_HTTP_DONE)
        parse = read_target(r);
    if (parse == HF_HTTP_DONE)
        parse = read_version(r);
    if (parse != HF_HTTP_DONE)
        return parse;
    if (*(const char *)r->out->path.data != '/')
        return hf_http_bad(r,
                           "The target must be a path that begins with '/'. This is not a proxy.");
    return HF_HTTP_DONE;
}

static enum hf_http_parse skip_empty_lines(struct hf_http_reader *r)
{
    for (unsigned count = 0; r->p < r->end; count++) {
        if (*r->p != '\r')
            return HF_HTTP_DONE;
        if (count == HF_HTTP_EMPTY_MAX)
            return hf_http_bad(r, "Too many empty lines before the request. Send none.");
        enum hf_http_parse parse = line_end(r);
        if (parse != HF_HTTP_DONE)
            return parse;
    }
    return HF_HTTP_MORE;
}

/* ---- The head ---- */

/* Parse from left to right. The first wrong byte decides, so more bytes never change a refusal. */
static enum hf_http_parse read_head(const char *data, size_t size, struct hf_http_head *out,
                                    struct hf_http_refusal *why)
{
    const unsigned char *begin = (const unsigned char *)data;
    struct hf_http_reader r = { .p = begin, .end = begin + size, .out = out, .why = why };
    *out = (struct hf_http_head){ .method = HF_HTTP_OTHER };
    enum hf_http_parse parse = skip_empty_lines(&r);
    if (parse == HF_HTTP_DONE)
        parse = read_request_line(&r);
    if (parse == HF_HTTP_DONE)
        parse = read_fields(&r);
    if (parse != HF_HTTP_DONE)
        return parse;
    if (!out->has[HF_FIELD_HOST] && !r.old)
        return hf_http_bad(&r, "HTTP/1.1 requires a Host field. Send one.");
    out->keep_alive = !r.old && !r.close;
    out->size = (size_t)(r.p - begin);
    return HF_HTTP_DONE;
}

/* Can the bytes from `from` on complete the head, or make it bad? An empty line and a LF without CR
 * can, and so can the end of the request line, so that other protocols are refused at once. This is
 * true a few times in a head. */
static bool worth_reading(const char *data, size_t from, size_t size)
{
    const char *end = data + size, *p = memchr(data + from, '\n', size - from);
    if (p != NULL && memchr(data, '\n', from) == NULL)
        return true;
    for (; p != NULL; p = memchr(p + 1, '\n', (size_t)(end - p) - 1))
        if (p[-1] != '\r' || p[-2] == '\n')
            return true;
    return false;
}

enum hf_http_parse hf_http_head_parse(const char *data, size_t size, size_t *scanned,
                                      struct hf_http_head *out, struct hf_http_refusal *why)
{
    HF_ASSERT(*scanned <= size && *scanned < HF_HTTP_HEAD_MAX);
    bool full = size >= HF_HTTP_HEAD_MAX;
    if (full)
        size = HF_HTTP_HEAD_MAX;
    if (size == *scanned)
        return HF_HTTP_MORE;
    if (full || *scanned == 0 || worth_reading(data, *scanned, size)) {
        enum hf_http_parse parse = read_head(data, size, out, why);
        if (parse != HF_HTTP_MORE)
            return parse;
    }
    if (full) {
        *why = (struct hf_http_refusal){ 431, "head-too-large",
                                         "A request's head has at most 16384 bytes. Send less." };
        return HF_HTTP_BAD;
    }
    *scanned = size;
    return HF_HTTP_MORE;
}
