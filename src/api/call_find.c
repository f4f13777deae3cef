/* Find the call of a request: first by the prefix of its path, then among the few rows with that
 * prefix. */
#include "api/call.h"
#include "base/bytes.h"

#include <stdio.h>

/* The rest of a path after its prefix: "", "/{param}" or "/{param}/verb". */
struct tail {
    bool has_param, has_verb;
    struct hf_bytes param, verb;
};

/* False if it has another form. `text` is empty or begins with '/'. */
static bool tail_split(struct hf_bytes text, struct tail *out)
{
    *out = (struct tail){ .has_param = text.size > 0 };
    if (text.size == 0)
        return true;
    const char *param = (const char *)text.data + 1, *end = param + text.size - 1;
    const char *slash = memchr(param, '/', (size_t)(end - param));
    out->has_verb = slash != NULL;
    out->param = hf_mem(param, (size_t)((slash ? slash : end) - param));
    if (slash)
        out->verb = hf_mem(slash + 1, (size_t)(end - slash - 1));
    return out->param.size > 0 && !memchr(slash ? slash + 1 : end, '/', out->verb.size);
}

/* Does the tail match the pattern, which is "", "/{name}" or "/{name}/verb"? */
static bool tail_fits(const struct tail *tail, const char *pattern)
{
    if (*pattern == '\0')
        return !tail->has_param;
    const char *slash = strchr(pattern + 1, '/');
    if (!tail->has_param || tail->has_verb != (slash != NULL))
        return false;
    return !slash || hf_bytes_equal(hf_str(slash + 1), tail->verb);
}

/* "GET, PUT" for the methods whose bits are set. */
static void allow_write(unsigned methods, char *out, size_t size)
{
    static const struct {
        enum hf_http_method method;
        const char *name;
    } names[] = { { HF_HTTP_GET, "GET" },
                  { HF_HTTP_POST, "POST" },
                  { HF_HTTP_PUT, "PUT" },
                  { HF_HTTP_DELETE, "DELETE" } };
    size_t at = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (methods & 1U << names[i].method)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at > 0 ? ", " : "", names[i].name);
}

static void rows_search(enum hf_http_method method, const struct hf_call *row,
                        const struct hf_call_group *group, struct hf_bytes text,
                        struct hf_call_match *match)
{
    unsigned others = 0;
    struct tail tail;
    if (!tail_split(text, &tail))
        return;
    for (size_t i = 0; i < group->rows; i++, row++) {
        if (!tail_fits(&tail, row->path + group->prefix_size))
            continue;
        if (row->method == method) {
            match->call = row;
            match->params[0] = tail.param;
            return;
        }
        others |= 1U << row->method;
    }
    allow_write(others, match->allow, sizeof match->allow);
}

void hf_call_find(enum hf_http_method method, struct hf_bytes path, struct hf_call_match *match)
{
    const struct hf_call *row = hf_calls;
    const char *p = path.data;
    *match = (struct hf_call_match){ .call = NULL };
    if (method == HF_HTTP_HEAD)
        method = HF_HTTP_GET;
    for (size_t i = 0; i < hf_call_group_count; row += hf_call_groups[i++].rows) {
        size_t size = hf_call_groups[i].prefix_size;
        if (path.size < size || memcmp(p, hf_call_groups[i].prefix, size) != 0)
            continue;
        if (path.size > size && p[size] != '/')
            continue;
        rows_search(method, row, &hf_call_groups[i], hf_mem(p + size, path.size - size), match);
        return;
    }
}

bool hf_call_is_named(struct hf_bytes path)
{
    const char *p = path.data;
    for (size_t i = 0; i < hf_call_group_count; i++) {
        size_t size = hf_call_groups[i].prefix_size;
        if (path.size <= size || memcmp(p, hf_call_groups[i].prefix, size) != 0 || p[size] != '/')
            continue;
        return memchr(p + size + 1, '/', path.size - size - 1) != NULL;
    }
    return false;
}

const struct hf_call *hf_call_of_op(struct hf_bytes op)
{
    char first = op.size > 0 ? *(const char *)op.data : '\0';
    for (const struct hf_call *row = hf_calls; row < hf_calls + hf_call_count; row++)
        if (row->op && *row->op == first && hf_bytes_equal(hf_str(row->op), op))
            return row;
    return NULL;
}

bool hf_call_needs_body(const struct hf_call *call)
{
    for (size_t i = 0; i < call->field_count; i++)
        if (call->fields[i].required)
            return true;
    return call->method == HF_HTTP_PUT && call->field_count > 0;
}
