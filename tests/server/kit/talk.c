#include "server/kit/talk.h"

#include "base/bytes.h"
#include "server/inner.h"
#include "server/kit/json_tree.h"
#include "support/test.h"

#include <strings.h>
#include <unistd.h>

void talk_server(struct server *s)
{
    server_init(s);
    atomic_store(&s->io->wall, TALK_START);
    s->options.store.no_background = true;
}

void talk_open(struct talk *t, const struct server *s)
{
    *t = (struct talk){ .server = s, .fd = -1 };
}

void talk_close(struct talk *t)
{
    if (t->fd >= 0)
        close(t->fd);
    reply_free(&t->got);
    free(t->fields);
    *t = (struct talk){ .fd = -1 };
}

void talk_as(struct talk *t, const char *fields)
{
    free(t->fields);
    t->fields = fields ? strdup(fields) : NULL;
}

/* ---- What every answer has ---- */

static void problem_is_whole(const struct reply *r)
{
    char status[32], type[128];
    snprintf(status, sizeof status, "\"status\":%d,", r->status);
    snprintf(type, sizeof type, "{\"type\":\"urn:holdfast:%s\",\"title\":\"",
             reply_text(r, "code"));
    if (strncmp(r->body, type, strlen(type)) != 0 || !reply_has(r, status) ||
        reply_text(r, "code")[0] == 0 || reply_text(r, "title")[0] == 0 ||
        reply_text(r, "detail")[0] == 0)
        fail_msg("not a problem+json: %s", r->body);
}

static void answer_is_sound(const char *what, const struct reply *r)
{
    const char *type = reply_field(r, "Content-Type");
    bool not_ready =
        r->status == 503 && strstr(what, "/readyz") != NULL; /* an answer like any other */
    bool refused = r->status >= 400 && !not_ready;
    assert_non_null(type);
    assert_int_equal(strcmp(type, "application/problem+json") == 0, refused);
    assert_non_null(reply_field(r, "Content-Length"));
    assert_non_null(reply_field(r, "Date"));
    if (refused && strncmp(what, "HEAD ", 5) != 0)
        problem_is_whole(r);
    bool waits = r->status == 503 || r->status == 429 ||
                 (refused && strcmp(reply_text(r, "code"), "in-progress") == 0);
    if (strncmp(what, "HEAD ", 5) != 0)
        assert_int_equal(reply_field(r, "Retry-After") != NULL, waits);
}

/* ---- Calling ---- */

static int call(struct talk *t, const char *what, const char *key, const char *body)
{
    char fields[4096];
    int n = snprintf(fields, sizeof fields, "%s%s%s%s", t->fields ? t->fields : "",
                     key ? "Idempotency-Key: " : "", key ? key : "", key ? "\r\n" : "");
    assert_true(n >= 0 && (size_t)n < sizeof fields);
    reply_free(&t->got);
    if (t->fd < 0)
        t->fd = server_connect(t->server);
    if (!server_call(t->fd, what, fields, body, &t->got))
        fail_msg("no answer to %s", what);
    const char *connection = reply_field(&t->got, "Connection");
    if (connection && strcmp(connection, "close") == 0) {
        close(t->fd);
        t->fd = -1;
    }
    answer_is_sound(what, &t->got);
    described_check(what, &t->got);
    return t->got.status;
}

int talk(struct talk *t, const char *what, const char *key, const char *body)
{
    return call(t, what, key, body);
}

int talkf(struct talk *t, const char *key, const char *body, const char *what, ...)
{
    char text[8192];
    va_list args;
    va_start(args, what);
    int n = vsnprintf(text, sizeof text, what, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof text);
    return call(t, text, key, body);
}

int talk_twice(struct talk *t, const char *what, const char *key, const char *body)
{
    int status = talk(t, what, key, body);
    talk_first(t);
    struct reply first = t->got;
    char expires[64];
    snprintf(expires, sizeof expires, "%s", reply_field(&first, "Idempotency-Expires"));
    t->got = (struct reply){ 0 };
    assert_int_equal(talk(t, what, key, body), status);
    talk_replayed(t);
    assert_string_equal(reply_field(&t->got, "Idempotency-Expires"), expires);
    assert_string_equal(reply_field(&t->got, "Content-Type"),
                        status < 400 ? "application/json" : "application/problem+json");
    assert_int_equal(t->got.body_size, first.body_size);
    assert_memory_equal(t->got.body, first.body, first.body_size);
    reply_free(&first);
    return status;
}

/* ---- Asserting ---- */

void talk_refused(const struct talk *t, int status, const char *code)
{
    if (t->got.status != status || strcmp(reply_text(&t->got, "code"), code) != 0)
        fail_msg("expected %d %s, got %d %s", status, code, t->got.status, t->got.body);
}

static bool matches(const char *pattern, const char *text)
{
    for (; *pattern; pattern++, text++) {
        if (*pattern == '*') {
            size_t most = strcspn(text, "\"");
            for (size_t n = 0; n <= most; n++)
                if (matches(pattern + 1, text + n))
                    return true;
            return false;
        }
        if (*pattern == '#') {
            size_t digits = strspn(text, "0123456789");
            return digits > 0 && matches(pattern + 1, text + digits);
        }
        if (*pattern != *text)
            return false;
    }
    return *text == 0;
}

void talk_is(const struct talk *t, const char *pattern)
{
    if (!matches(pattern, t->got.body))
        fail_msg("expected %s, got %d %s", pattern, t->got.status, t->got.body);
}

static void keyed(const struct talk *t)
{
    const char *expires = reply_field(&t->got, "Idempotency-Expires");
    if (!expires)
        fail_msg("no Idempotency-Expires: %s", t->got.head);
    assert_int_equal(strlen(expires), strlen(TALK_AT));
    assert_int_equal(expires[strlen(expires) - 1], 'Z');
}

void talk_first(const struct talk *t)
{
    keyed(t);
    assert_null(reply_field(&t->got, "Idempotent-Replayed"));
}

void talk_replayed(const struct talk *t)
{
    keyed(t);
    const char *replayed = reply_field(&t->got, "Idempotent-Replayed");
    assert_non_null(replayed);
    assert_string_equal(replayed, "true");
}

void talk_unkeyed(const struct talk *t)
{
    assert_null(reply_field(&t->got, "Idempotency-Expires"));
    assert_null(reply_field(&t->got, "Idempotent-Replayed"));
}

/* How many rows there are: the server reads it out of the database only every few seconds. */
static double rows_now(const char *name, double figure)
{
    static const struct {
        const char *name, *query;
    } counts[] = {
        { "holdfast_holds", "SELECT count(*) FROM holdfast.hold" },
        { "idempotency_table_size",
          "SELECT (SELECT count(*) FROM holdfast.token) + (SELECT count(*) FROM holdfast.client)" },
    };
    for (size_t i = 0; both_is_postgres() && i < sizeof counts / sizeof *counts; i++)
        if (strcmp(name, counts[i].name) == 0)
            return (double)postgres_number(both_cluster(), counts[i].query);
    return figure;
}

double talk_figure(struct talk *t, const char *name)
{
    assert_int_equal(talk(t, "GET /metrics", NULL, NULL), 200);
    size_t size = strlen(name);
    for (const char *at = t->got.body; (at = strstr(at, name)) != NULL; at++)
        if ((at == t->got.body || at[-1] == '\n') && at[size] == ' ')
            return rows_now(name, strtod(at + size, NULL));
    fail_msg("there is no figure %s", name);
    return -1;
}

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
