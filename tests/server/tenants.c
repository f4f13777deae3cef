/* Two tenants on one server: neither sees, changes or even notices what the other has, whatever it
 * asks and whatever names it guesses. */
#define _GNU_SOURCE /* memmem */
#include "api/call.h"
#include "base/hash.h"
#include "server/kit/talk.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <sys/stat.h>

/* Every name that alpha uses, and every value that it keeps. Nobody else may ever be shown the
 * second; and the first only after choosing the same name. */
#define NAME "alpha-name"
#define CLAIM NAME "-claim" /* claims and other keys share one space */
#define VALUE "alpha-value"

enum { ALPHA, BETA, NOBODY_ELSE, TENANTS }; /* the third is the default tenant */

static struct server s;
static struct talk t[TENANTS];
static char path[600], hold_id[64], cursor[256];
static long long fence;

/* ---- The scene ---- */

static void credentials_write(void)
{
    static const char *const names[TENANTS] = { "alpha", "beta", "-" };
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < TENANTS; i++) {
        uint8_t digest[HF_DIGEST_SIZE];
        hf_sha256_of(names[i], strlen(names[i]), digest);
        fprintf(f, "%s admin ", names[i]);
        for (size_t k = 0; k < HF_DIGEST_SIZE; k++)
            fprintf(f, "%02x", digest[k]);
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

/* Alpha gets one of everything. */
static void alpha_begins(void)
{
    struct talk *a = &t[ALPHA];
    assert_int_equal(talk(a, "POST /v1/holds", NAME,
                          "{\"resource\":\"" NAME "\",\"requester\":\"" VALUE
                          "\",\"duration\":\"1h\"}"),
                     201);
    snprintf(hold_id, sizeof hold_id, "%s", reply_text(&a->got, "id"));
    assert_int_equal(talk(a, "POST /v1/holds", "second",
                          "{\"resource\":\"" NAME "2\",\"requester\":\"" VALUE
                          "\",\"duration\":\"1h\"}"),
                     201);
    assert_int_equal(talk(a, "PUT /v1/guards/" NAME, NULL, "{\"window\":\"1h\"}"), 200);
    assert_int_equal(talk(a, "POST /v1/guards/" NAME "/record", NULL,
                          "{\"identity\":\"" NAME "\",\"result\":\"" VALUE "\"}"),
                     200);
    assert_int_equal(talk(a, "POST /v1/claims", NULL, "{\"key\":\"" CLAIM "\",\"payload\":1}"),
                     201);
    assert_int_equal(talk(a, "POST /v1/claims/" CLAIM "/complete", NULL,
                          "{\"fence\":1,\"response\":\"" VALUE "\"}"),
                     200);
    assert_int_equal(
        talk(a, "POST /v1/leases/" NAME, "lease", "{\"holder\":\"" VALUE "\",\"ttl\":\"1h\"}"),
        201);
    fence = reply_number(&a->got, "fence");
    assert_int_equal(talk(a, "PUT /v1/registers/" NAME, "register", "{\"value\":\"" VALUE "\"}"),
                     200);
    assert_int_equal(talk(a, "POST /v1/batch", NULL,
                          "{\"op\":\"write\",\"client\":\"" NAME "\",\"sequence\":1,"
                          "\"name\":\"" NAME "3\",\"value\":\"" VALUE "\"}\n"),
                     200);
    assert_int_equal(talk(a, "GET /v1/holds?limit=1", NULL, NULL), 200);
    snprintf(cursor, sizeof cursor, "%s", reply_text(&a->got, "next_cursor"));
    assert_true(cursor[0] != 0);
}

static int setup(void **state)
{
    (void)state;
    static const char *const fields[TENANTS] = { "Authorization: Bearer alpha\r\n",
                                                 "Authorization: Bearer beta\r\n",
                                                 "Authorization: Bearer -\r\n" };
    talk_server(&s);
    snprintf(path, sizeof path, "%s/credentials", s.dir);
    credentials_write();
    s.options.auth_file = path;
    server_start(&s);
    for (int i = 0; i < TENANTS; i++) {
        talk_open(&t[i], &s);
        talk_as(&t[i], fields[i]);
    }
    alpha_begins();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < TENANTS; i++)
        talk_close(&t[i]);
    server_end(&s);
    return 0;
}

/* ---- Every question ---- */

/* A path of the call with alpha's name or id in the place of the parameter. */
static const char *path_of(const struct hf_call *call)
{
    static char text[300];
    const char *open = strchr(call->path, '{');
    if (strcmp(call->path, "/v1/tokens") == 0)
        return "/v1/tokens?client=" NAME "&sequence=1";
    if (!open)
        return call->path;
    const char *param = strncmp(open, "{id}", 4) == 0                ? hold_id
                        : strncmp(call->path, "/v1/claims", 10) == 0 ? CLAIM
                                                                     : NAME;
    snprintf(text, sizeof text, "%.*s%s%s", (int)(open - call->path), call->path, param,
             strchr(open, '}') + 1);
    return text;
}

static void shows_nothing(const struct talk *other, const char *text, const char *what)
{
    if (memmem(other->got.body, other->got.body_size, text, strlen(text)))
        fail_msg("%s shows %s: %s", what, text, other->got.body);
}

/* Is it a question about one thing, which is there or not? */
static bool names_one(const struct hf_call *call)
{
    return strcmp(path_of(call), call->path) != 0 && call->kind != HF_CALL_LIST;
}

static void asks_in_vain(struct talk *other)
{
    static const char *const more[] = { "/v1/export?format=sqlite", "/v1/export?format=jsonl",
                                        "/v1/holds?requester=" VALUE, "/v1/holds?resource=" NAME,
                                        "/v1/holds?state=held&limit=1000" };
    size_t asked = 0;
    char continued[400];
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        if (call->method != HF_HTTP_GET)
            continue;
        int status = talkf(other, NULL, NULL, "GET %s", path_of(call));
        if (names_one(call) && status != 404)
            fail_msg("GET %s: %d %s", call->path, status, other->got.body);
        shows_nothing(other, VALUE, call->path);
        if (!names_one(call)) { /* those may say what it is that they do not know */
            shows_nothing(other, "alpha", call->path);
            shows_nothing(other, hold_id, call->path);
        }
        asked++;
    }
    assert_true(asked >= 18);
    snprintf(continued, sizeof continued, "/v1/holds?cursor=%s", cursor);
    for (size_t i = 0; i <= sizeof more / sizeof *more; i++) {
        const char *what = i < sizeof more / sizeof *more ? more[i] : continued;
        talkf(other, NULL, NULL, "GET %s", what);
        shows_nothing(other, "alpha", what);
        shows_nothing(other, hold_id, what);
    }
    talk(other, "GET /v1/trace/" NAME, NULL, NULL);
    talk_refused(other, 404, "not-known");
    talk(other, "POST /v1/guards/" NAME "/check", NULL, "{\"identity\":\"" NAME "\"}");
    shows_nothing(other, "alpha", "check");
}

static void nobody_sees_what_alpha_has(void **state)
{
    (void)state;
    asks_in_vain(&t[BETA]);
    asks_in_vain(&t[NOBODY_ELSE]);
    /* The other way round all of it is there: these questions would have shown it. */
    for (size_t i = 0; i < hf_call_count; i++)
        if (hf_calls[i].method == HF_HTTP_GET && names_one(&hf_calls[i]))
            assert_int_equal(talkf(&t[ALPHA], NULL, NULL, "GET %s", path_of(&hf_calls[i])), 200);
    assert_int_equal(talk(&t[ALPHA], "GET /v1/export", NULL, NULL), 200);
    assert_true(reply_has(&t[ALPHA].got, VALUE));
}

/* ---- Every change ---- */

/* What alpha sees of its own: the answers to all questions, one behind the other. Owned. */
static char *view_of_alpha(void)
{
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        if (call->method != HF_HTTP_GET || (call->kind != HF_CALL_DO && call->kind != HF_CALL_LIST))
            continue;
        assert_int_equal(talkf(&t[ALPHA], NULL, NULL, "GET %s", path_of(call)), 200);
        strcat(strcat(text, t[ALPHA].got.body), "\n");
    }
    return text;
}

/* A right body for each call that changes something, with alpha's names. */
static const char *body_of(const struct hf_call *call)
{
    static char text[256];
    switch (call->action) {
    case HF_PLACE_HOLD:
        return "{\"resource\":\"" NAME "\",\"requester\":\"" NAME "\",\"duration\":\"1h\"}";
    case HF_SET_RESOURCE: return "{\"capacity\":7}";
    case HF_SET_GUARD: return "{\"window\":\"2h\"}";
    case HF_CHECK:
    case HF_RECORD:
    case HF_ADMIT: return "{\"identity\":\"" NAME "\"}";
    case HF_BEGIN: return "{\"key\":\"" CLAIM "\",\"payload\":1}";
    case HF_GRANT: return "{\"holder\":\"" NAME "\",\"ttl\":\"1h\"}";
    case HF_WRITE: return "{\"value\":2}";
    case HF_MERGE: return "{\"type\":\"max\",\"value\":2}";
    case HF_COMPLETE:
    case HF_FAIL:
    case HF_HEARTBEAT:
    case HF_ABANDON: return "{\"fence\":1}";
    case HF_RENEW:
    case HF_RETURN: snprintf(text, sizeof text, "{\"fence\":%lld}", fence); return text;
    default: return NULL;
    }
}

static void changes_nothing_of_alpha(struct talk *other)
{
    char *before = view_of_alpha();
    size_t tried = 0;
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        char key[32];
        if (call->method == HF_HTTP_GET || call->kind != HF_CALL_DO)
            continue;
        snprintf(key, sizeof key, "other-%zu", i);
        talkf(other, call->key ? key : NULL, body_of(call), "%s %s",
              call->method == HF_HTTP_PUT      ? "PUT"
              : call->method == HF_HTTP_DELETE ? "DELETE"
                                               : "POST",
              path_of(call));
        if (strncmp(call->path, "/v1/holds/", 10) == 0)
            talk_refused(other, 404, "not-known");
        if (other->got.status == 400 &&
            call->action != HF_MERGE) /* its own register has another type */
            fail_msg("%s was not tried: %s", call->path, other->got.body);
        shows_nothing(other, VALUE, call->path);
        tried++;
    }
    assert_true(tried >= 18);
    char *after = view_of_alpha();
    assert_string_equal(after, before);
    free(before);
    free(after);
}

static void nobody_changes_what_alpha_has(void **state)
{
    (void)state;
    changes_nothing_of_alpha(&t[BETA]);
    changes_nothing_of_alpha(&t[NOBODY_ELSE]);
}

/* The same in a batch, where the names stand in the lines. */
static void a_batch_is_its_callers_alone(void **state)
{
    (void)state;
    char lines[2048];
    char *before = view_of_alpha();
    snprintf(lines, sizeof lines,
             "{\"op\":\"confirm\",\"key\":\"b1\",\"id\":\"%s\"}\n"
             "{\"op\":\"release\",\"key\":\"b2\",\"id\":\"%s\"}\n"
             "{\"op\":\"check\",\"guard\":\"" NAME "\",\"identity\":\"" NAME "\"}\n"
             "{\"op\":\"begin\",\"key\":\"" CLAIM "\",\"payload\":1}\n"
             "{\"op\":\"write\",\"key\":\"b3\",\"name\":\"" NAME "\",\"value\":3}\n"
             "{\"op\":\"place_hold\",\"key\":\"" NAME "\",\"resource\":\"" NAME
             "\",\"requester\":\"q\",\"duration\":\"1h\"}\n",
             hold_id, hold_id);
    assert_int_equal(talk(&t[BETA], "POST /v1/batch", NULL, lines), 200);
    static const int statuses[] = { 404, 404, 404, 201, 200, 201 };
    const char *at = t[BETA].got.body;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        char begin[64];
        snprintf(begin, sizeof begin, "{\"status\":%d,\"replayed\":false,", statuses[i]);
        if (!at || strncmp(at, begin, strlen(begin)) != 0)
            fail_msg("line %zu: expected %s, got %s", i, begin, at);
        at = strchr(at, '\n') + 1;
    }
    shows_nothing(&t[BETA], VALUE, "the batch");
    char *after = view_of_alpha();
    assert_string_equal(after, before);
    free(before);
    free(after);
}

/* ---- The same words, twice ---- */

static void the_same_key_is_another_key(void **state)
{
    (void)state;
    static const char body[] = "{\"resource\":\"shared\",\"requester\":\"q\",\"duration\":\"1h\"}";
    char ids[TENANTS][64], expires[TENANTS][64];
    for (int i = 0; i < TENANTS; i++) { /* one unit each: they do not compete */
        assert_int_equal(talk(&t[i], "POST /v1/holds", "shared", body), 201);
        talk_first(&t[i]);
        snprintf(ids[i], sizeof ids[i], "%s", reply_text(&t[i].got, "id"));
        snprintf(expires[i], sizeof expires[i], "%s",
                 reply_field(&t[i].got, "Idempotency-Expires"));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(ids[i], ids[k]);
    }
    for (int i = 0; i < TENANTS; i++) {
        assert_int_equal(talk(&t[i], "POST /v1/holds", "shared", body), 201);
        talk_replayed(&t[i]);
        assert_string_equal(reply_text(&t[i].got, "id"), ids[i]);
        assert_int_equal(talk(&t[i], "GET /v1/tokens/shared", NULL, NULL), 200);
        assert_true(reply_has(&t[i].got, ids[i]));
    }
    /* Another request under the key collides with its own tenant's only. */
    assert_int_equal(talk(&t[BETA], "POST /v1/holds", "second",
                          "{\"resource\":\"x\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    talk(&t[ALPHA], "POST /v1/holds", "second", body);
    talk_refused(&t[ALPHA], 422, "token-collision");
}

static void the_same_name_is_another_thing(void **state)
{
    (void)state;
    for (int i = 0; i < TENANTS; i++) {
        char body[64];
        assert_int_equal(talk(&t[i], "POST /v1/claims", NULL, "{\"key\":\"c\",\"payload\":1}"),
                         201);
        assert_int_equal(talk(&t[i], "POST /v1/leases/l", "l", "{\"holder\":\"h\",\"ttl\":\"1h\"}"),
                         201);
        snprintf(body, sizeof body, "{\"capacity\":%d}", 10 + i);
        assert_int_equal(talk(&t[i], "PUT /v1/resources/r", NULL, body), 200);
        snprintf(body, sizeof body, "{\"type\":\"max\",\"value\":%d}", 10 - i);
        assert_int_equal(talk(&t[i], "POST /v1/registers/m/merge", NULL, body), 200);
        assert_int_equal(talk(&t[i], "PUT /v1/guards/g", NULL, "{\"window\":\"1h\"}"), 200);
        assert_int_equal(talk(&t[i], "POST /v1/guards/g/admit", NULL, "{\"identity\":\"i\"}"), 200);
        assert_true(reply_has(&t[i].got, "\"seen\":false"));
    }
    for (int i = 0; i < TENANTS; i++) {
        assert_int_equal(talk(&t[i], "GET /v1/resources/r", NULL, NULL), 200);
        assert_int_equal(reply_number(&t[i].got, "capacity"), 10 + i);
        assert_int_equal(talk(&t[i], "GET /v1/registers/m", NULL, NULL), 200);
        assert_int_equal(reply_number(&t[i].got, "value"), 10 - i);
    }
    /* And the records of all of them are sound. */
    for (int i = 0; i < TENANTS; i++) {
        assert_int_equal(talk(&t[i], "GET /v1/audit", NULL, NULL), 200);
        assert_false(reply_has(&t[i].got, "\"outcome\":\"broken\""));
    }
}

/* ---- Nothing of one depends on what another does ---- */

enum { VIEWS = 5 };

/* What beta is shown about the records. Each is owned. */
static void views_of_beta(char *view[VIEWS], size_t size[VIEWS])
{
    static const char *const asks[VIEWS] = { "GET /v1/audit", "GET /v1/audit", "GET /v1/export",
                                             "GET /v1/export?format=sqlite",
                                             "GET /v1/trace/beta-key" };
    struct talk *b = &t[BETA];
    for (int i = 0; i < VIEWS; i++) {
        talk_as(b, i == 1 ? "Authorization: Bearer beta\r\nAccept: text/plain\r\n"
                          : "Authorization: Bearer beta\r\n");
        assert_int_equal(talk(b, asks[i], NULL, NULL), 200);
        size[i] = b->got.body_size;
        view[i] = malloc(size[i] + 1);
        assert_non_null(view[i]);
        memcpy(view[i], b->got.body, size[i]);
        view[i][size[i]] = 0;
    }
    for (char *at = view[4]; (at = strstr(at, "As of ")) != NULL;) /* that is the clock's */
        at += 6, memset(at, '*', 24);
    for (char *at = view[4]; (at = strstr(at, "\"as_of\":\"")) != NULL;)
        at += 9, memset(at, '*', 24);
}

static void alpha_does_more(void)
{
    struct talk *a = &t[ALPHA];
    for (int i = 0; i < 40; i++) {
        char key[32];
        snprintf(key, sizeof key, "more-%d", i);
        assert_int_equal(talkf(a, key,
                               "{\"resource\":\"more\",\"requester\":\"q\",\"duration\":\"1h\"}",
                               "POST /v1/holds"),
                         i == 0 ? 201 : 409);
        assert_int_equal(talkf(a, NULL, "{\"window\":\"1h\"}", "PUT /v1/guards/more-%d", i), 200);
        assert_int_equal(talkf(a, key, "{\"value\":2}", "PUT /v1/registers/more-%d", i), 422);
    }
}

/* Beta's audit, export and traces are the same to the byte, whatever alpha does meanwhile: no
 * count, no position and no hash of the store that both are in. */
static void what_alpha_does_shows_nowhere(void **state)
{
    (void)state;
    char *before[VIEWS], *after[VIEWS];
    size_t size[VIEWS], size_after[VIEWS];
    struct talk *b = &t[BETA];
    assert_int_equal(talk(b, "POST /v1/holds", "beta-key",
                          "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    assert_int_equal(talk(b, "PUT /v1/guards/g", NULL, "{\"window\":\"1h\"}"), 200);
    views_of_beta(before, size);
    alpha_does_more();
    views_of_beta(after, size_after);
    for (int i = 0; i < VIEWS; i++) {
        if (size[i] != size_after[i] || memcmp(before[i], after[i], size[i]) != 0)
            fail_msg("view %d of beta shows that alpha was at work:\n%.3000s\n%.3000s", i,
                     before[i], after[i]);
        free(before[i]);
        free(after[i]);
    }
}

/* A cursor tells neither how many holds there are nor where they stand. */
static void a_cursor_is_no_number_of_the_store(void **state)
{
    (void)state;
    char other[256];
    assert_true(strtoull(cursor, NULL, 10) > 1000);
    for (int i = 0; i < 2; i++)
        assert_int_equal(talkf(&t[BETA], i ? "b" : "a",
                               "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}",
                               "POST /v1/holds"),
                         i ? 409 : 201);
    assert_int_equal(talk(&t[BETA], "POST /v1/holds", "c",
                          "{\"resource\":\"r2\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    assert_int_equal(talk(&t[BETA], "GET /v1/holds?limit=1", NULL, NULL), 200);
    snprintf(other, sizeof other, "%s", reply_text(&t[BETA].got, "next_cursor"));
    assert_true(strtoull(other, NULL, 10) > 1000);
    assert_int_equal(talkf(&t[BETA], NULL, NULL, "GET /v1/holds?cursor=%s", other), 200);
    assert_true(reply_has(&t[BETA].got, "\"resource\":\"r\""));
    assert_true(reply_has(&t[BETA].got, "\"next_cursor\":null"));
}

/* ---- Who runs the server ---- */

static void operator_added(void)
{
    uint8_t digest[HF_DIGEST_SIZE];
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    hf_sha256_of("op", 2, digest);
    fprintf(f, "* operator ");
    for (size_t k = 0; k < HF_DIGEST_SIZE; k++)
        fprintf(f, "%02x", digest[k]);
    fputc('\n', f);
    assert_int_equal(fclose(f), 0);
}

/* An operator reads what any tenant has, if it names the tenant, and settles claims; it makes no
 * other change. */
static void an_operator_reads_every_tenant_and_settles_claims(void **state)
{
    (void)state;
    struct talk op;
    for (int i = 0; i < TENANTS; i++)
        talk_close(&t[i]);
    operator_added();
    assert_int_equal(server_stop(&s), 0);
    server_start(&s);
    talk_open(&t[BETA], &s);
    talk_as(&t[BETA], "Authorization: Bearer beta\r\n");
    assert_int_equal(talk(&t[BETA], "POST /v1/claims", NULL,
                          "{\"key\":\"beta pay\",\"payload\":1,\"lease\":\"1s\"}"),
                     201);
    long long beta_fence = reply_number(&t[BETA].got, "fence");
    char body[100];
    snprintf(body, sizeof body, "{\"fence\":%lld}", beta_fence);
    talk_open(&op, &s);
    talk_as(&op, "Authorization: Bearer op\r\n");
    /* Without a tenant: only unsettled claims, of all tenants. */
    assert_int_equal(talk(&op, "GET /v1/claims?status=started", NULL, NULL), 200);
    assert_true(reply_has(&op.got, "{\"tenant\":\"beta\",\"key\":\"beta pay\","));
    static const char *const nameless[] = {
        "GET /v1/claims",
        "GET /v1/claims?status=failed",
        "GET /v1/holds",
        "GET /v1/resources",
        "GET /v1/claims/beta%20pay",
        "GET /v1/tokens/k",
        "GET /v1/holds?tenant=",
        "GET /v1/holds?tenant=%ff",
        "GET /v1/holds?tenant=a&tenant=b",
        "GET /v1/holds?tenant=%zz",
    };
    for (size_t i = 0; i < sizeof nameless / sizeof *nameless; i++) {
        talk(&op, nameless[i], NULL, NULL);
        talk_refused(&op, 400, "invalid-request");
    }
    /* With one: what the tenant would see, and the rest of the query holds too. */
    assert_int_equal(talk(&op, "GET /v1/claims/beta%20pay?tenant=beta", NULL, NULL), 200);
    assert_true(reply_has(&op.got, "{\"key\":\"beta pay\","));
    assert_int_equal(
        talk(&op, "GET /v1/claims?tenant=beta&status=started&prefix=beta%20", NULL, NULL), 200);
    assert_true(reply_has(&op.got, "{\"claims\":[{\"key\":\"beta pay\","));
    assert_int_equal(talk(&op, "GET /v1/claims?prefix=b&tenant=alpha", NULL, NULL), 200);
    assert_false(reply_has(&op.got, "beta pay"));
    assert_int_equal(talk(&op, "GET /v1/claims?tenant=-", NULL, NULL), 200);
    assert_false(reply_has(&op.got, "beta pay"));
    assert_int_equal(talk(&op, "GET /v1/claims/beta%20pay?tenant=alpha", NULL, NULL), 404);
    assert_int_equal(talk(&op, "GET /v1/holds?tenant=alpha", NULL, NULL), 200);
    assert_true(reply_has(&op.got, NAME));
    /* Settling, in the tenant that is named and in no other. */
    talk(&op, "POST /v1/claims/beta%20pay/complete", NULL, body);
    talk_refused(&op, 400, "invalid-request");
    assert_int_equal(talk(&op, "POST /v1/claims/beta%20pay/complete?tenant=alpha", NULL, body),
                     404);
    assert_int_equal(talk(&op, "POST /v1/claims/beta%20pay/complete?tenant=beta", NULL, body), 200);
    assert_int_equal(talk(&t[BETA], "GET /v1/claims/beta%20pay", NULL, NULL), 200);
    assert_true(reply_has(&t[BETA].got, "\"status\":\"completed\""));
    /* No other change. */
    static const char *const changes[] = {
        "POST /v1/claims?tenant=beta",     "POST /v1/holds?tenant=beta",
        "PUT /v1/resources/r?tenant=beta", "POST /v1/batch?tenant=beta",
        "PUT /v1/registers/x?tenant=beta", "POST /v1/guards/g/record?tenant=beta",
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        talk(&op, changes[i], "k", "{\"key\":\"x\",\"payload\":1}");
        talk_refused(&op, 403, "forbidden");
    }
    /* And a tenant names none, not even itself. */
    talk(&t[BETA], "GET /v1/claims?tenant=alpha", NULL, NULL);
    talk_refused(&t[BETA], 400, "invalid-request");
    talk(&t[BETA], "GET /v1/claims?tenant=beta", NULL, NULL);
    talk_refused(&t[BETA], 400, "invalid-request");
    talk_close(&op);
}

/* The store's id, its chain head and the figures are for operators, once there is one. */
static void the_whole_is_for_operators(void **state)
{
    (void)state;
    struct talk op;
    assert_int_equal(talk(&t[BETA], "GET /metrics", NULL, NULL), 200); /* there is none yet */
    for (int i = 0; i < TENANTS; i++)
        talk_close(&t[i]);
    operator_added();
    assert_int_equal(server_stop(&s), 0);
    server_start(&s);
    for (int i = 0; i < TENANTS; i++) {
        static const char *const fields[TENANTS] = { "Authorization: Bearer alpha\r\n",
                                                     "Authorization: Bearer beta\r\n",
                                                     "Authorization: Bearer -\r\n" };
        talk_open(&t[i], &s);
        talk_as(&t[i], fields[i]);
        talk(&t[i], "GET /metrics", NULL, NULL);
        talk_refused(&t[i], 403, "forbidden");
        assert_int_equal(talk(&t[i], "GET /", NULL, NULL), 200);
        shows_nothing(&t[i], "class=\"figures\"", "the page");
        assert_int_equal(talk(&t[i], "GET /v1/audit", NULL, NULL), 200);
        shows_nothing(&t[i], "store_id", "the audit");
    }
    talk_open(&op, &s);
    talk_as(&op, "Authorization: Bearer op\r\n");
    assert_int_equal(talk(&op, "GET /v1/audit", NULL, NULL), 200);
    assert_true(reply_has(&op.got, "\"tenant\":null,"));
    assert_true(reply_has(&op.got, "\"store_id\":\""));
    assert_true(reply_has(&op.got, "\"chain_head\":\""));
    assert_int_equal(talk(&op, "GET /v1/head", NULL, NULL), 200);
    assert_true(reply_has(&op.got, "\"hash\":\""));
    char head[80];
    snprintf(head, sizeof head, "%s", reply_text(&op.got, "hash"));
    assert_int_equal(talkf(&op, NULL, NULL, "GET /v1/audit?expect_head=%s", head), 200);
    assert_true(reply_has(&op.got, "\"verdict\":\"ok\""));
    assert_true(reply_has(&op.got, "\"expected_head_found\":true"));
    head[0] = head[0] == '0' ? '1' : '0';
    assert_int_equal(talkf(&op, NULL, NULL, "GET /v1/audit?expect_head=%s", head), 200);
    assert_true(reply_has(&op.got, "\"verdict\":\"violations\""));
    talkf(&t[BETA], NULL, NULL, "GET /v1/audit?expect_head=%s", head);
    talk_refused(&t[BETA], 403, "forbidden");
    talk(&t[BETA], "GET /v1/head", NULL, NULL);
    talk_refused(&t[BETA], 403, "forbidden");
    assert_int_equal(talk(&op, "GET /v1/export", NULL, NULL), 200);
    assert_true(reply_has(&op.got, VALUE));
    assert_int_equal(talkf(&op, NULL, NULL, "GET /v1/trace/%s", hold_id), 200);
    assert_int_equal(talk(&op, "GET /metrics", NULL, NULL), 200);
    assert_int_equal(talk(&op, "GET /", NULL, NULL), 200);
    assert_true(reply_has(&op.got, "class=\"figures\""));
    talk(&op, "PUT /v1/registers/x", "k", "{\"value\":1}");
    talk_refused(&op, 403, "forbidden");
    talk_close(&op);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nobody_sees_what_alpha_has),
        TEST(nobody_changes_what_alpha_has),
        TEST(a_batch_is_its_callers_alone),
        TEST(the_same_key_is_another_key),
        TEST(the_same_name_is_another_thing),
        TEST(what_alpha_does_shows_nowhere),
        TEST(a_cursor_is_no_number_of_the_store),
        TEST(the_whole_is_for_operators),
        TEST(an_operator_reads_every_tenant_and_settles_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
