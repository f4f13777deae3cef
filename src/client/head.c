/* The head of an answer. A head that two readers could understand differently is refused. */
#include "base/text.h"
#include "client/client.h"
#include "http/octet.h"

#include <string.h>
#include <strings.h>

static const char bare[] = "a line of its head does not end with CR and LF";

/* A head that is being read. */
struct reading {
    const char *p, *end; /* what is left, without the empty line */
    struct hf_client_head *out;
    const char **why;
    bool has_length, has_date, close;
};

static bool bad(struct reading *r, const char *why)
{
    *r->why = why;
    return false;
}

static bool is_word(struct hf_bytes text, const char *word)
{
    return text.size == strlen(word) && strncasecmp(text.data, word, text.size) == 0;
}

/* "HTTP/1.1 200 OK" */
static bool status_take(struct reading *r, struct hf_bytes line)
{
    static const char version[] = "HTTP/1.";
    const char *p = line.data;
    const size_t least = sizeof "HTTP/1.1 200" - 1;
    if (line.size < least || memcmp(p, version, sizeof version - 1) != 0 ||
        (p[7] != '0' && p[7] != '1') || p[8] != ' ' || (line.size > least && p[least] != ' '))
        return bad(r, "it does not begin with a status line of HTTP/1.1");
    r->close = p[7] == '0';
    for (size_t i = 9; i < least; i++) {
        if (!hf_octet_digit((unsigned char)p[i]))
            return bad(r, "its status is not a number");
        r->out->status = r->out->status * 10 + (unsigned)(p[i] - '0');
    }
    return r->out->status >= 100 || bad(r, "its status is not a number from 100 to 999");
}

static bool length_take(struct reading *r, struct hf_bytes value)
{
    if (r->has_length || !hf_number_parse(value, &r->out->length))
        return bad(r, "its Content-Length is not one number");
    r->has_length = true;
    return true;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT". Any other text is ignored. */
static void date_take(struct reading *r, struct hf_bytes value)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const char *p = value.data;
    char text[] = "0000-00-00T00:00:00Z";
    r->has_date = true;
    if (value.size != 29 || memcmp(p + 25, " GMT", 4) != 0 || p[7] != ' ' || p[11] != ' ')
        return;
    for (unsigned month = 0; month < 12; month++) {
        if (memcmp(months + (size_t)3 * month, p + 8, 3) != 0)
            continue;
        memcpy(text, p + 12, 4);
        text[5] = (char)('0' + (month + 1) / 10);
        text[6] = (char)('0' + (month + 1) % 10);
        memcpy(text + 8, p + 5, 2);
        memcpy(text + 11, p + 17, 8);
        if (!hf_time_parse(hf_str(text), &r->out->date))
            r->out->date = 0;
    }
}

/* Copy a word in lower case, up to a semicolon. If it is longer than the room, no caller needs it:
 * copy "". */
static void word_take(struct hf_bytes value, char *out, size_t room)
{
    const char *p = value.data;
    size_t size = 0;
    while (size < value.size && p[size] != ';' && !hf_octet_blank((unsigned char)p[size]))
        size++;
    if (size >= room)
        size = 0;
    for (size_t i = 0; i < size; i++)
        out[i] = (char)(p[i] >= 'A' && p[i] <= 'Z' ? p[i] | 0x20 : p[i]);
    out[size] = '\0';
}

static bool field_take(struct reading *r, struct hf_bytes name, struct hf_bytes value)
{
    struct hf_client_head *out = r->out;
    if (is_word(name, "content-length"))
        return length_take(r, value);
    if (is_word(name, "transfer-encoding"))
        return bad(r, "it is chunked, but this program needs a Content-Length");
    if (is_word(name, "connection"))
        r->close = r->close || !is_word(value, "keep-alive");
    else if (is_word(name, "idempotent-replayed"))
        out->replayed = is_word(value, "true");
    else if (is_word(name, "content-type"))
        word_take(value, out->content_type, sizeof out->content_type);
    else if (is_word(name, "holdfast-verdict"))
        word_take(value, out->verdict, sizeof out->verdict);
    else if (is_word(name, "date") && !r->has_date)
        date_take(r, value);
    return true;
}

/* Split "Name: value". */
static bool line_take(struct reading *r, struct hf_bytes line)
{
    const unsigned char *p = line.data;
    size_t name = 0, end = line.size;
    while (name < line.size && hf_octet_is(p[name], HF_OCTET_TOKEN))
        name++;
    if (name == 0 || name == line.size || p[name] != ':')
        return bad(r, "a line of its head is not a name, a colon and a value");
    size_t from = name + 1;
    while (from < end && hf_octet_blank(p[from]))
        from++;
    while (end > from && hf_octet_blank(p[end - 1]))
        end--;
    return field_take(r, hf_mem(p, name), hf_mem(p + from, end - from));
}

/* Take the next line, and check its bytes. */
static bool line_next(struct reading *r, struct hf_bytes *line)
{
    const char *p = r->p;
    while (p < r->end && *p != '\r' && *p != '\n') {
        if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
            return bad(r, "its head contains control bytes");
        p++;
    }
    if (r->end - p < 2 || p[0] != '\r' || p[1] != '\n')
        return bad(r, bare);
    *line = hf_mem(r->p, (size_t)(p - r->p));
    r->p = p + 2;
    return true;
}

static bool head_read(struct reading *r)
{
    struct hf_bytes line;
    unsigned fields = 0;
    if (!line_next(r, &line) || !status_take(r, line))
        return false;
    while (r->p < r->end) {
        if (++fields > HF_CLIENT_FIELDS_MAX)
            return bad(r, "its head has more than 128 fields");
        if (!line_next(r, &line) || !line_take(r, line))
            return false;
    }
    r->out->keep_alive = !r->close;
    if (r->out->status < 200) /* an interim answer has no body; the final one follows */
        return !r->has_length || bad(r, "an interim answer has a Content-Length");
    return r->has_length || bad(r, "it has no Content-Length");
}

/* Does a line end with LF alone? Such a server would never send CR LF CR LF. */
static bool bare_find(const char *data, size_t size, size_t from)
{
    const char *lf = data + from;
    while ((lf = memchr(lf, '\n', (size_t)(data + size - lf))) != NULL) {
        if (lf == data || lf[-1] != '\r')
            return true;
        lf++;
    }
    return false;
}

/* The end of the head, after CR LF CR LF. NULL: not yet received. */
static const char *end_find(const char *data, size_t size, size_t *scanned)
{
    size_t at = *scanned > 3 ? *scanned - 3 : 0;
    for (; size - at >= 4 && at < size; at++) {
        const char *cr = memchr(data + at, '\r', size - at);
        if (!cr || (size_t)(data + size - cr) < 4)
            break;
        at = (size_t)(cr - data);
        if (memcmp(cr, "\r\n\r\n", 4) == 0)
            return cr + 4;
    }
    *scanned = size;
    return NULL;
}

enum hf_http_parse hf_client_head_parse(const char *data, size_t size, size_t *scanned,
                                        struct hf_client_head *out, const char **why)
{
    static const char begin[] = "HTTP/1.";
    size_t known = size < sizeof begin - 1 ? size : sizeof begin - 1;
    *out = (struct hf_client_head){ .status = 0 };
    if (known > 0 && memcmp(data, begin, known) != 0) {
        *why = data[0] == 0x15 || data[0] == 0x16 ? "it uses TLS; use https:// in the URL"
                                                  : "it does not speak HTTP/1.1";
        return HF_HTTP_BAD;
    }
    size_t before = *scanned;
    const char *end = size > 0 ? end_find(data, size, scanned) : NULL;
    if (size > 0 && bare_find(data, end ? (size_t)(end - data) : size, before)) {
        *why = bare;
        return HF_HTTP_BAD;
    }
    if (!end && size < HF_CLIENT_HEAD_MAX)
        return HF_HTTP_MORE;
    if (!end || (size_t)(end - data) > HF_CLIENT_HEAD_MAX) {
        *why = "its head is longer than 32768 bytes";
        return HF_HTTP_BAD;
    }
    struct reading r = { .p = data, .end = end - 2, .out = out, .why = why };
    if (!head_read(&r))
        return HF_HTTP_BAD;
    out->size = (size_t)(end - data);
    return HF_HTTP_DONE;
}
