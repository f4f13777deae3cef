#include "server/kit/talk.h"

#include "server/kit/described.h"
#include "support/test.h"

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
        { "idempotency_table_size", "SELECT count(*) FROM holdfast.token WHERE state IS NULL" },
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
