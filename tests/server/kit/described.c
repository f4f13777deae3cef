#include "server/kit/described.h"

#include "base/bytes.h"
#include "server/inner.h"
#include "server/kit/json_tree.h"
#include "support/test.h"

#include <strings.h>

static struct hf_arena arena;
static struct hf_buffer text;
static struct tree *document;

static const struct tree
    *met[1024]; /* media types and fields of answers, as they stand in the document */
static size_t met_count;

static void meet(const struct tree *t)
{
    for (size_t i = 0; i < met_count; i++)
        if (met[i] == t)
            return;
    assert_true(met_count < sizeof met / sizeof *met);
    met[met_count++] = t;
}

static bool was_met(const struct tree *t)
{
    for (size_t i = 0; i < met_count; i++)
        if (met[i] == t)
            return true;
    return false;
}

static struct tree *the_document(void)
{
    if (!document) {
        hf_server_openapi(&text);
        document = tree_read(hf_mem(text.data, text.size), &arena);
        assert_non_null(document);
    }
    return document;
}

static struct tree *followed(struct tree *t)
{
    const struct tree *ref = tree_get(t, "$ref");
    return ref ? tree_resolve(document, ref->text) : t;
}

/* ---- One answer ---- */

static const struct hf_call *call_of(const char *what)
{
    static const struct {
        const char *name;
        enum hf_http_method method;
    } methods[] = { { "GET ", HF_HTTP_GET },
                    { "HEAD ", HF_HTTP_GET },
                    { "POST ", HF_HTTP_POST },
                    { "PUT ", HF_HTTP_PUT },
                    { "DELETE ", HF_HTTP_DELETE } };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        size_t size = strlen(methods[i].name);
        struct hf_call_match match;
        if (strncmp(what, methods[i].name, size) != 0)
            continue;
        hf_call_find(methods[i].method, hf_mem(what + size, strcspn(what + size, "?")), &match);
        return match.call;
    }
    return NULL;
}

static const char *method_of(const struct hf_call *call)
{
    return call->method == HF_HTTP_GET      ? "get"
           : call->method == HF_HTTP_PUT    ? "put"
           : call->method == HF_HTTP_DELETE ? "delete"
                                            : "post";
}

/* What is said of answers with this status: of the call's own, or of all. A request for no call is
 * answered with what all have. */
static struct tree *response_of(const struct hf_call *call, int status)
{
    char name[16];
    snprintf(name, sizeof name, "%d", status);
    struct tree *all = the_document();
    if (!call)
        return tree_at(all, "components", "responses", "problem", NULL);
    struct tree *responses = tree_at(all, "paths", call->path, method_of(call), "responses", NULL);
    struct tree *own = tree_get(responses, name);
    return followed(own ? own : tree_get(responses, "default"));
}

static bool is_of_every_answer(const char *name, size_t size)
{
    static const char *const names[] = { "Date", "Content-Length", "Content-Type", "Connection" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == size && strncasecmp(names[i], name, size) == 0)
            return true;
    return false;
}

static void field_check(const char *what, int status, struct tree *response, const char *name,
                        size_t size)
{
    const struct tree *headers = tree_get(response, "headers");
    for (const struct tree *h = headers ? headers->child : NULL; h; h = h->next)
        if (hf_bytes_equal(h->name, hf_mem(name, size))) {
            meet(h);
            return;
        }
    if (!is_of_every_answer(name, size))
        fail_msg("%s: %d has %.*s, which is not described", what, status, (int)size, name);
}

void described_check(const char *what, const struct reply *r)
{
    struct tree *response = response_of(call_of(what), r->status);
    const char *type = reply_field(r, "Content-Type");
    char media[128];
    assert_non_null(response);
    snprintf(media, sizeof media, "%.*s", type ? (int)strcspn(type, ";") : 0, type ? type : "");
    const struct tree *content = tree_at(response, "content", media, NULL);
    if (!content)
        fail_msg("%s: %d is %s, which is not described", what, r->status, media);
    meet(content);
    for (const char *line = strstr(r->head, "\r\n"); line[2] != '\r';
         line = strstr(line + 2, "\r\n"))
        field_check(what, r->status, response, line + 2, strcspn(line + 2, ":"));
}

/* ---- All of them ---- */

static void all_met(const struct hf_call *call, const struct tree *response, const char *part)
{
    const struct tree *list = tree_get(response, part);
    for (const struct tree *c = list ? list->child : NULL; c; c = c->next)
        if (!was_met(c))
            fail_msg("%s %s: %.*s has %s %.*s, which no answer had", method_of(call), call->path,
                     (int)response->name.size, (const char *)response->name.data, part,
                     (int)c->name.size, (const char *)c->name.data);
}

void described_all_met(void)
{
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct tree *responses = tree_at(the_document(), "paths", hf_calls[i].path,
                                               method_of(&hf_calls[i]), "responses", NULL);
        for (const struct tree *r = responses->child; r; r = r->next) {
            if (r->name.size != 3 || *(const char *)r->name.data != '2')
                continue;
            all_met(&hf_calls[i], r, "content");
            all_met(&hf_calls[i], r, "headers");
        }
    }
}
