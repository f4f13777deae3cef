/* Holdfast over HTTP/1.1, keep-alive. A call of one request is POST /v1/holds; a call of more is
 * one POST /v1/batch, a line each. */
#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct hf_load_template single, line, empty, resource;

static void template_make(struct hf_load_template *t, const struct hf_load_options *o,
                          const char *request, const char *headers, const char *body)
{
    int n = snprintf(t->text, sizeof t->text, "%s HTTP/1.1\r\nHost: %s:%s\r\n%s", request,
                     o->servers[0].host, o->servers[0].port, headers);
    if (body[0])
        n += snprintf(t->text + n, sizeof t->text - (size_t)n,
                      "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    n += snprintf(t->text + n, sizeof t->text - (size_t)n, "\r\n%s", body);
    t->length = (size_t)n;
    hf_load_template_mark(t);
}

static void templates_make(const struct hf_load_options *o)
{
    char capacity[64];
    snprintf(capacity, sizeof capacity, "{\"capacity\":%d}", HF_LOAD_CAPACITY);
    template_make(&single, o, "POST /v1/holds", "Idempotency-Key: " HF_LOAD_TOKEN_MARK "\r\n",
                  "{\"resource\":\"" HF_LOAD_RESOURCE_MARK
                  "\",\"requester\":\"" HF_LOAD_REQUESTER_MARK "\",\"duration\":\"" HF_LOAD_DURATION
                  "\"}");
    template_make(&empty, o, "GET /healthz", "", "");
    template_make(&resource, o, "PUT /v1/resources/" HF_LOAD_RESOURCE_MARK, "", capacity);
    line.length = (size_t)snprintf(line.text, sizeof line.text,
                                   "{\"op\":\"place_hold\",\"key\":\"" HF_LOAD_TOKEN_MARK
                                   "\",\"resource\":\"" HF_LOAD_RESOURCE_MARK
                                   "\",\"requester\":\"" HF_LOAD_REQUESTER_MARK
                                   "\",\"duration\":\"" HF_LOAD_DURATION "\"}\n");
    hf_load_template_mark(&line);
}

static bool holdfast_connect(const struct hf_load_options *o, struct hf_load_conn *c)
{
    if (single.length == 0)
        templates_make(o);
    return hf_load_stream_connect(o, c);
}

static void append(struct hf_load_conn *c, const struct hf_load_template *t,
                   const struct hf_load_request *r)
{
    hf_load_template_fill(t, r, c->out.bytes + c->out.length);
    c->out.length += t->length;
}

static bool batch_append(const struct hf_load_options *o, struct hf_load_conn *c,
                         const uint64_t *numbers, unsigned count)
{
    struct hf_load_request r = { 0 };
    if (!hf_load_buffer_reserve(&c->out, 512 + count * line.length))
        return hf_load_fail(c, "memory");
    c->out.length +=
        (size_t)snprintf(c->out.bytes, c->out.room,
                         "POST /v1/batch HTTP/1.1\r\nHost: %s:%s\r\n"
                         "Content-Type: application/x-ndjson\r\nContent-Length: %zu\r\n\r\n",
                         o->servers[0].host, o->servers[0].port, count * line.length);
    for (unsigned i = 0; i < count; i++) {
        hf_load_request(numbers[i], o->resources, &r);
        append(c, &line, &r);
    }
    return true;
}

static bool single_append(const struct hf_load_options *o, struct hf_load_conn *c, uint64_t number)
{
    struct hf_load_request r = { 0 };
    const struct hf_load_template *t = &single;
    if (o->job == HF_LOAD_EMPTY) {
        t = &empty;
    } else if (o->job == HF_LOAD_RESOURCE) {
        t = &resource;
        hf_load_resource(number, r.resource);
    } else {
        hf_load_request(number, o->resources, &r);
    }
    if (!hf_load_buffer_reserve(&c->out, t->length))
        return hf_load_fail(c, "memory");
    append(c, t, &r);
    return true;
}

static bool holdfast_send(const struct hf_load_options *o, struct hf_load_conn *c,
                          const uint64_t *numbers, unsigned count)
{
    bool made = o->group > 1 ? batch_append(o, c, numbers, count) : single_append(o, c, numbers[0]);
    return made && hf_load_stream_flush(c);
}

size_t hf_load_head_parse(const char *bytes, size_t length, struct hf_load_head *out)
{
    static const char body_length[] = "content-length:", replayed[] = "idempotent-replayed: true";
    *out = (struct hf_load_head){ 0 };
    const char *end = memmem(bytes, length, "\r\n\r\n", 4);
    if (!end)
        return 0;
    if (end - bytes > 12 && memcmp(bytes, "HTTP/1.1 ", 9) == 0)
        out->status = (unsigned)strtoul(bytes + 9, NULL, 10);
    for (const char *at = bytes; at < end; at++) {
        at = memchr(at, '\n', (size_t)(end + 2 - at));
        if (!at || at >= end)
            break;
        char first = (char)(at[1] | 0x20);
        if (first == 'c' && strncasecmp(at + 1, body_length, sizeof body_length - 1) == 0) {
            out->body = strtoul(at + sizeof body_length, NULL, 10);
            out->has_body_length = true;
        } else if (first == 'i' && strncasecmp(at + 1, replayed, sizeof replayed - 1) == 0) {
            out->replayed = true;
        }
    }
    return (size_t)(end + 4 - bytes);
}

/* A line of a batch's answer: {"status":201,"replayed":false,"body":{...}}. */
static void line_count(const struct hf_load_options *o, struct hf_load_tally *t, const char *text,
                       size_t length)
{
    static const char status[] = "{\"status\":", again[] = "\"replayed\":true";
    unsigned code = 0;
    if (length > sizeof status + 3 && memcmp(text, status, sizeof status - 1) == 0)
        code = (unsigned)strtoul(text + sizeof status - 1, NULL, 10);
    bool replayed = memmem(text, length < 48 ? length : 48, again, sizeof again - 1) != NULL;
    hf_load_tally_add(t, o->job, code, replayed, text, length);
}

static bool batch_count(const struct hf_load_options *o, struct hf_load_conn *c,
                        struct hf_load_tally *t, const char *body, size_t length)
{
    const char *at = body, *end = body + length;
    unsigned lines = 0;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            stop = end;
        line_count(o, t, at, (size_t)(stop - at));
        lines++;
        at = stop + 1;
    }
    errno = 0;
    if (lines != c->due)
        return hf_load_fail(c, "a batch was answered with another number of lines than it had");
    c->due = 0;
    return true;
}

static bool holdfast_receive(const struct hf_load_options *o, struct hf_load_conn *c,
                             struct hf_load_tally *t)
{
    struct hf_load_head head;
    if (!hf_load_stream_fill(c))
        return false;
    size_t length = hf_load_head_parse(c->in.bytes, c->in.length, &head);
    if (length == 0)
        return true;
    errno = 0;
    if (!head.has_body_length)
        return hf_load_fail(c, "an answer without Content-Length");
    if (c->in.length - length < head.body)
        return true;
    const char *body = c->in.bytes + length;
    if (o->group > 1 && head.status == 200) {
        if (!batch_count(o, c, t, body, head.body))
            return false;
    } else {
        /* A batch that is refused as a whole is one wrong answer for each of its lines. */
        for (; c->due > 0; c->due--)
            hf_load_tally_add(t, o->job, head.status, head.replayed, body, head.body);
    }
    hf_load_stream_eat(c, length + head.body);
    c->busy = false;
    if (c->in.length > 0)
        return hf_load_fail(c, "an answer that nobody asked for");
    return true;
}

const struct hf_load_peer hf_load_holdfast = {
    .name = "holdfast",
    .connect = holdfast_connect,
    .send = holdfast_send,
    .flush = hf_load_stream_flush,
    .receive = holdfast_receive,
    .close = hf_load_stream_close,
};
