/* Redis: the whole job is one EVALSHA of bench/redis/place_hold.lua; a call of more than one
 * request is so many of them in a pipeline. */
#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hf_load_template command;

static bool redis_connect(const struct hf_load_options *o, struct hf_load_conn *c)
{
    if (command.length == 0) {
        errno = 0;
        if (!o->script || strlen(o->script) != 40)
            return hf_load_fail(c, "no script: load bench/redis/place_hold.lua first");
        command.length = (size_t)snprintf(
            command.text, sizeof command.text,
            "*7\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n2\r\n$%d\r\nt:" HF_LOAD_TOKEN_MARK
            "\r\n$%d\r\nr:" HF_LOAD_RESOURCE_MARK "\r\n$%d\r\n" HF_LOAD_REQUESTER_MARK
            "\r\n$8\r\n%d\r\n",
            o->script, HF_LOAD_TOKEN + 2, HF_LOAD_NAME + 2, HF_LOAD_NAME, HF_LOAD_DURATION_MS);
        hf_load_template_mark(&command);
    }
    return hf_load_stream_connect(o, c);
}

static bool redis_send(const struct hf_load_options *o, struct hf_load_conn *c,
                       const uint64_t *numbers, unsigned count)
{
    struct hf_load_request r = { 0 };
    if (!hf_load_buffer_reserve(&c->out, count * command.length))
        return hf_load_fail(c, "memory");
    for (unsigned i = 0; i < count; i++) {
        hf_load_request(numbers[i], o->resources, &r);
        hf_load_template_fill(&command, &r, c->out.bytes + c->out.length);
        c->out.length += command.length;
    }
    return hf_load_stream_flush(c);
}

/* One reply at the start of `bytes`: answers its length, 0 if it is not whole yet. A bulk string's
 * text is given out, of an error or anything else the whole line. */
static size_t reply_parse(const char *bytes, size_t length, const char **text, size_t *text_length)
{
    const char *end = length > 3 ? memchr(bytes, '\n', length) : NULL;
    if (!end)
        return 0;
    size_t head = (size_t)(end + 1 - bytes);
    long size = bytes[0] == '$' ? strtol(bytes + 1, NULL, 10) : -1;
    if (size < 0) {
        *text = bytes;
        *text_length = head - 2;
        return head;
    }
    if (length < head + (size_t)size + 2)
        return 0;
    *text = bytes + head;
    *text_length = (size_t)size;
    return head + (size_t)size + 2;
}

static bool redis_receive(const struct hf_load_options *o, struct hf_load_conn *c,
                          struct hf_load_tally *t)
{
    if (!hf_load_stream_fill(c))
        return false;
    size_t used = 0;
    while (c->due > 0) {
        const char *text;
        size_t length;
        size_t step = reply_parse(c->in.bytes + used, c->in.length - used, &text, &length);
        if (step == 0)
            break;
        hf_load_tally_add_text(t, o->job, text, length);
        c->due--;
        used += step;
    }
    hf_load_stream_eat(c, used);
    c->busy = c->due > 0;
    errno = 0;
    if (!c->busy && c->in.length > 0)
        return hf_load_fail(c, "a reply that nobody asked for");
    return true;
}

const struct hf_load_peer hf_load_redis = {
    .name = "redis",
    .connect = redis_connect,
    .send = redis_send,
    .flush = hf_load_stream_flush,
    .receive = redis_receive,
    .close = hf_load_stream_close,
};
