#include "crash/op.h"

#include "support/test.h"

#define HOLD(verb)                                                                            \
    .op = verb, .method = "POST", .before = "/v1/holds/", .after = "/" verb, .subject = "id", \
    .keyed = true
#define CLAIM(verb) \
    .op = verb, .method = "POST", .before = "/v1/claims/", .after = "/" verb, .subject = "key"

const struct crash_call crash_calls[CRASH_KINDS] = {
    [CRASH_PLACE] = { .op = "place_hold",
                      .method = "POST",
                      .before = "/v1/holds",
                      .after = "",
                      .keyed = true,
                      .done = 201,
                      .refused = { 409 } },
    [CRASH_NUMBERED] = { .op = "place_hold", .keyed = true, .done = 201, .refused = { 409 } },
    [CRASH_CONFIRM] = { HOLD("confirm"), .done = 200, .refused = { 409 } },
    [CRASH_RELEASE] = { HOLD("release"), .done = 200, .refused = { 409 } },
    [CRASH_EXPIRE] = { HOLD("expire"), .done = 200, .refused = { 409 } },
    [CRASH_REVERSE] = { HOLD("reverse"), .done = 200, .refused = { 409 } },
    [CRASH_ADMIT] = { .op = "admit",
                      .method = "POST",
                      .before = "/v1/guards/",
                      .after = "/admit",
                      .subject = "guard",
                      .done = 200 },
    [CRASH_BEGIN] = { .op = "begin",
                      .method = "POST",
                      .before = "/v1/claims",
                      .after = "",
                      .subject = "key",
                      .done = 201,
                      .refused = { 200, 409 } },
    [CRASH_COMPLETE] = { CLAIM("complete"), .done = 200, .refused = { 412 } },
    [CRASH_FAIL] = { CLAIM("fail"), .done = 200, .refused = { 412 } },
    [CRASH_GRANT] = { .method = "POST",
                      .before = "/v1/leases/",
                      .after = "",
                      .keyed = true,
                      .done = 201,
                      .refused = { 409 } },
    [CRASH_WRITE] = { .op = "write",
                      .method = "PUT",
                      .before = "/v1/registers/",
                      .after = "",
                      .subject = "name",
                      .keyed = true,
                      .done = 200,
                      .refused = { 412 } },
    [CRASH_MERGE] = { .op = "merge",
                      .method = "POST",
                      .before = "/v1/registers/",
                      .after = "/merge",
                      .subject = "name",
                      .done = 200 },
};

const char *crash_op_name(const struct crash_op *op, char out[CRASH_NAME_MAX])
{
    snprintf(out, CRASH_NAME_MAX, "c%u-%016u", op->client,
             op->number); /* long, and different at its end */
    return out;
}

void crash_op_request(const struct crash_op *op, struct text *out)
{
    const struct crash_call *call = &crash_calls[op->kind];
    char name[CRASH_NAME_MAX], what[128], fields[64] = "", body[256];
    bool in_body = op->kind == CRASH_BEGIN; /* its key is no part of the path */
    snprintf(what, sizeof what, "%s %s%s%s", call->method, call->before, in_body ? "" : op->subject,
             call->after);
    if (call->keyed)
        snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", crash_op_name(op, name));
    if (in_body)
        snprintf(body, sizeof body, "{\"key\":\"%s\",%s}", op->subject, op->fields);
    else
        snprintf(body, sizeof body, "{%s}", op->fields);
    text_request(out, what, fields, body);
}

void crash_op_line(const struct crash_op *op, struct text *out)
{
    const struct crash_call *call = &crash_calls[op->kind];
    char name[CRASH_NAME_MAX], line[384];
    int n = snprintf(line, sizeof line, "{\"op\":\"%s\"", call->op);
    if (op->kind == CRASH_NUMBERED)
        n += snprintf(line + n, sizeof line - (size_t)n, ",\"client\":\"c%u\",\"sequence\":%u",
                      op->client, op->sequence);
    else if (call->keyed)
        n +=
            snprintf(line + n, sizeof line - (size_t)n, ",\"key\":\"%s\"", crash_op_name(op, name));
    if (call->subject)
        n += snprintf(line + n, sizeof line - (size_t)n, ",\"%s\":\"%s\"", call->subject,
                      op->subject);
    n += snprintf(line + n, sizeof line - (size_t)n, "%s%s}\n", op->fields[0] ? "," : "",
                  op->fields);
    text_add(out, line, (size_t)n);
}

void crash_op_ends(struct crash_op *hold, const struct crash_op *op)
{
    static const char *const states[CRASH_KINDS] = {
        [CRASH_CONFIRM] = "confirmed", [CRASH_RELEASE] = "released", [CRASH_EXPIRE] = "expired"
    };
    if (op->kind == CRASH_REVERSE) {
        hold->reversals++;
        return;
    }
    hold->ends++;
    hold->state = states[op->kind];
}

bool crash_op_may_be(const struct crash_op *op, const char *state)
{
    bool brief = strstr(op->fields, "ms\"") != NULL; /* the store may have expired it by itself */
    if (op->state)
        return strcmp(op->state, state) == 0;
    return strcmp(state, "held") == 0 || (brief && strcmp(state, "expired") == 0);
}

bool crash_op_done(const struct crash_op *op)
{
    return op->status == crash_calls[op->kind].done;
}

bool crash_op_fits(const struct crash_op *op, int status)
{
    const struct crash_call *call = &crash_calls[op->kind];
    return status == call->done ||
           (status && (status == call->refused[0] || status == call->refused[1]));
}

const char *crash_text(const char *body, const char *name, char *out, size_t size)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":\"", name);
    const char *at = strstr(body, quoted);
    at = at ? at + strlen(quoted) : "";
    snprintf(out, size, "%.*s", (int)strcspn(at, "\""), at);
    return out;
}

long long crash_number(const char *body, const char *name)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(body, quoted);
    return at ? strtoll(at + strlen(quoted), NULL, 10) : -1;
}
