/* What answers tell a user who has nothing but the README: pages, keys, refusals that say why,
 * outcomes that are not known. */
#include "server/kit/case.h"
#include "server/kit/text.h"
#include "server/kit/watch.h"

#include <unistd.h>

static const char hold[] = "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}";

/* Assert that the newest answer is a refusal whose detail is this. */
static void says(int status, const char *code, const char *detail)
{
    char whole[600];
    talk_refused(&t, status, code);
    snprintf(whole, sizeof whole, "\"detail\":\"%s\"", detail);
    if (!reply_has(&t.got, whole))
        fail_msg("expected %s, got %s", detail, t.got.body);
}

/* ---- Lists ---- */

enum { OTHERS = 26000, PAGE_MS = 250 /* so long a page is looked for */ };

/* Far more holds for another requester than the library looks at in one go. */
static void others_place(void)
{
    struct text lines = { 0 };
    assert_int_equal(talk(&t, "PUT /v1/resources/r", NULL, "{\"capacity\":1000000}"), 200);
    for (int i = 0; i < OTHERS; i++) {
        char line[160];
        int n = snprintf(
            line, sizeof line,
            "{\"op\":\"place_hold\",\"key\":\"o%d\",\"resource\":\"r\",\"requester\":\"o\","
            "\"duration\":\"1h\"}\n",
            i);
        text_add(&lines, line, (size_t)n);
        if (i % 6500 != 6499 && i + 1 != OTHERS)
            continue;
        assert_int_equal(talk(&t, "POST /v1/batch", NULL, lines.data), 200);
        assert_false(reply_has(&t.got, "\"status\":4"));
        lines.size = 0;
    }
    free(lines.data);
}

/* The page behind the cursor, "" for the first one; cursor: out, "" if there is no more. A page
 * that has less than it was asked for and is not the last has taken its time, as on a machine that
 * is busy; an empty one is gone past. */
static void page_ask(const char *query, bool all, char cursor[64])
{
    do {
        int64_t begun = server_clock_ms();
        assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/holds?%s%s%s", query,
                               cursor[0] ? "&cursor=" : "", cursor),
                         200);
        bool slow = server_clock_ms() - begun >= PAGE_MS;
        snprintf(cursor, 64, "%s", reply_text(&t.got, "next_cursor"));
        assert_true(slow || !cursor[0] || (!all && !reply_has(&t.got, "\"holds\":[]")));
    } while (cursor[0] && reply_has(&t.got, "\"holds\":[]"));
}

/* A page ended after 20000 records, those that do not match included: empty, with a cursor that
 * nobody expects there. */
static void a_page_is_not_empty_while_there_is_more(void **state)
{
    (void)state;
    char first[64], cursor[64] = "";
    assert_int_equal(talk(&t, "POST /v1/holds", "needle-1", hold), 201);
    assert_int_equal(talk(&t, "PUT /v1/resources/r", NULL, "{\"capacity\":2}"), 200);
    assert_int_equal(talk(&t, "POST /v1/holds", "needle-2", hold), 201);
    snprintf(first, sizeof first, "%s", reply_text(&t.got, "id"));
    others_place();
    page_ask("requester=q&limit=1", false, cursor);
    assert_string_equal(reply_text(&t.got, "id"), first);
    assert_string_not_equal(cursor, "");
    page_ask("requester=q&limit=1", false, cursor);
    assert_true(reply_has(&t.got, "\"requester\":\"q\""));
    int count = 0;
    cursor[0] = 0;
    do {
        page_ask("requester=q", true, cursor);
        for (const char *at = t.got.body; (at = strstr(at, "\"requester\":\"q\"")) != NULL; at++)
            count++;
    } while (cursor[0]);
    assert_true(reply_has(&t.got, "\"next_cursor\":null}"));
    assert_int_equal(count, 2);
    /* And one that nobody has is told to be the end. */
    page_ask("requester=nobody", true, cursor);
    assert_string_equal(t.got.body, "{\"holds\":[],\"next_cursor\":null}");
}

/* ---- Keys ---- */

static void a_header_that_contradicts_the_claim_is_refused(void **state)
{
    (void)state;
    static const char wrong[] =
        "Idempotency-Key: this header is not the claim's key, which is in the %s. Leave out the "
        "header, or send the same key in both.";
    char text[256];
    snprintf(text, sizeof text, wrong, "body");
    assert_int_equal(talk(&t, "POST /v1/claims", "other", "{\"key\":\"pay-1\",\"payload\":1}"),
                     400);
    says(400, "invalid-request", text);
    assert_int_equal(talk(&t, "GET /v1/claims/pay-1", NULL, NULL), 404);
    assert_int_equal(talk(&t, "GET /v1/claims/other", NULL, NULL), 404);
    /* The same, bare or quoted, is fine. */
    assert_int_equal(talk(&t, "POST /v1/claims", "\"pay-1\"", "{\"key\":\"pay-1\",\"payload\":1}"),
                     201);
    long long fence = reply_number(&t.got, "fence");
    snprintf(text, sizeof text, wrong, "path");
    static const char *const verbs[] = { "complete", "fail", "heartbeat", "abandon" };
    for (size_t i = 0; i < 4; i++) {
        char body[64];
        snprintf(body, sizeof body, "{\"fence\":%lld}", fence);
        assert_int_equal(talkf(&t, "other", body, "POST /v1/claims/pay-1/%s", verbs[i]), 400);
        says(400, "invalid-request", text);
    }
    assert_int_equal(talk(&t, "POST /v1/claims/pay-1/complete", "pay-1", "{\"fence\":1}"), 200);
    /* Calls that take no key do not look at one. */
    assert_int_equal(talk(&t, "PUT /v1/guards/g", "k", "{\"window\":\"1h\"}"), 200);
    assert_int_equal(talk(&t, "POST /v1/guards/g/admit", "k", "{\"identity\":\"a\"}"), 200);
    assert_int_equal(talk(&t, "POST /v1/guards/g/admit", "k", "{\"identity\":\"b\"}"), 200);
    assert_true(reply_has(&t.got, "\"seen\":false"));
    talk_unkeyed(&t);
}

/* What can be read is judged by the rules, and the refusal is remembered; what cannot, is not. */
static void a_refusal_is_remembered_if_the_request_can_be_read(void **state)
{
    (void)state;
    static const char *const read[] = { "0",       "-5",
                                        "\"-5m\"", "-0.5",
                                        "null",    "\"3651d\"",
                                        "1.5e-4",  "999999999999",
                                        "true",    "\"soon\"",
                                        "[]",      "10000000000000000",
                                        "-1e1",    "\"9223372036854775808ms\"",
                                        "0.0001" };
    static const char *const not_read[] = { "", "01", "\"\\ud800\"", "1,\"duration\":1",
                                            "1,\"colour\":1" };
    char body[200], key[32];
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        snprintf(key, sizeof key, "read-%zu", i);
        snprintf(body, sizeof body, "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":%s}",
                 read[i]);
        assert_int_equal(talk_twice(&t, "POST /v1/holds", key, body), 400);
        talk_refused(&t, 400, "invalid-request");
        /* The key is bound to it. */
        assert_int_equal(talk(&t, "POST /v1/holds", key, hold), 422);
        assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/tokens/%s", key), 200);
        snprintf(key, sizeof key, "lease-%zu", i);
        snprintf(body, sizeof body, "{\"holder\":\"h\",\"ttl\":%s}", read[i]);
        assert_int_equal(talk_twice(&t, "POST /v1/leases/n", key, body), 400);
    }
    for (size_t i = 0; i < sizeof not_read / sizeof *not_read; i++) {
        snprintf(key, sizeof key, "not-%zu", i);
        snprintf(body, sizeof body, "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":%s}",
                 not_read[i]);
        assert_int_equal(talk(&t, "POST /v1/holds", key, body), 400);
        talk_unkeyed(&t);
        assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/tokens/%s", key), 404);
    }
    /* Nothing of it happened. */
    assert_int_equal(talk(&t, "GET /v1/holds", NULL, NULL), 200);
    assert_string_equal(t.got.body, "{\"holds\":[],\"next_cursor\":null}");
    assert_int_equal(talk(&t, "GET /v1/leases/n", NULL, NULL), 404);
    /* Without a key there is nothing to be remembered under; a duration is refused all the same. */
    assert_int_equal(
        talk(&t, "POST /v1/claims", NULL, "{\"key\":\"c\",\"payload\":1,\"lease\":-5}"), 400);
    says(400, "invalid-request",
         "lease: expected a duration from 1ms to 3650d, got -5000ms. Correct it and retry.");
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"key\":\"c\",\"payload\":1,\"lease\":0}"),
                     400);
    assert_int_equal(talk(&t, "PUT /v1/guards/g", NULL, "{\"window\":-1}"), 400);
}

/* ---- What was wrong ---- */

static void fences_that_are_not_the_newest_are_named(void **state)
{
    (void)state;
    assert_int_equal(
        talk(&t, "POST /v1/claims", NULL,
             "{\"key\":\"c\",\"payload\":1,\"lease\":\"1s\",\"on_abandon\":\"retry\"}"),
        201);
    assert_int_equal(talk(&t, "POST /v1/claims/c/complete", NULL, "{\"fence\":9}"), 400);
    says(400, "invalid-request",
         "fence: 9 was never given for this claim. Its newest fence is 1. Send the fence from the "
         "answer that you received.");
    assert_int_equal(talk(&t, "POST /v1/claims/c/heartbeat", NULL, "{\"fence\":0}"), 400);
    says(400, "invalid-request",
         "fence: 0 is not a fence. Send the fence from the answer that you "
         "received.");
    clock_at(1000);
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"key\":\"c\",\"payload\":1}"), 201);
    assert_int_equal(talk(&t, "POST /v1/claims/c/fail", NULL, "{\"fence\":1}"), 412);
    says(412, "stale-fence",
         "Fence 1 is stale. The newest fence of this claim is 2: it was begun again, or the "
         "fence belongs to another one. Nothing was changed. Stop.");
    /* The same in a batch, and of leases. */
    assert_int_equal(
        talk(&t, "POST /v1/batch", NULL, "{\"op\":\"complete\",\"key\":\"c\",\"fence\":1}"), 200);
    assert_true(reply_has(&t.got, "\"status\":412,\"replayed\":false"));
    assert_true(reply_has(
        &t.got, "Fence 1 is stale. The newest fence of this claim is 2: it was begun again"));
    assert_int_equal(talk(&t, "POST /v1/leases/l", "l-1", "{\"holder\":\"h\",\"ttl\":\"1s\"}"),
                     201);
    assert_int_equal(talk(&t, "POST /v1/leases/l/renew", NULL, "{\"fence\":77}"), 400);
    says(400, "invalid-request",
         "fence: 77 was never given for this lease. Its newest fence is 3. Send the fence from the "
         "answer that you received.");
    clock_at(2000);
    assert_int_equal(talk(&t, "POST /v1/leases/l", "l-2", "{\"holder\":\"h\",\"ttl\":\"1s\"}"),
                     201);
    assert_int_equal(talk(&t, "POST /v1/leases/l/release", NULL, "{\"fence\":3}"), 412);
    says(412, "stale-fence",
         "Fence 3 is stale. The newest fence of this lease is 4: it was granted again, or the "
         "fence belongs to another one. Nothing was changed. Stop.");
    /* A write is remembered, so its words are fixed; they are true of an equal fence too. */
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "w-1", "{\"value\":1,\"fence\":4}"), 200);
    assert_int_equal(talk_twice(&t, "PUT /v1/registers/x", "w-2", "{\"value\":2,\"fence\":4}"),
                     412);
    says(412, "stale-fence",
         "A write has already used this fence or a higher one (GET shows the register's `fence`), "
         "and a fence is valid for one write of a register; or there is no fence, and the register "
         "requires one. Acquire a new lease and use its fence, with a new key.");
    /* One without a fence is applied, unless one is required. */
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "w-3", "{\"value\":3}"), 200);
}

static void a_merge_that_is_refused_says_why(void **state)
{
    (void)state;
    static const char what[] = "POST /v1/registers/m/merge";
    /* A set does not mind hearing of a member twice. */
    assert_int_equal(
        talk(&t, what, NULL, "{\"type\":\"union\",\"value\":[\"b\",\"a\",\"b\",\"\\u0061\"]}"),
        200);
    talk_is(
        &t,
        "{\"name\":\"m\",\"type\":\"union\",\"value\":[\"a\",\"b\"],\"version\":1,\"fence\":0}");
    assert_int_equal(talk(&t, what, NULL, "{\"type\":\"max\",\"value\":1}"), 400);
    says(400, "invalid-request",
         "type: the register has the type union, which cannot change, and this is a merge of type "
         "max. Use another name.");
    assert_int_equal(talk(&t, "PUT /v1/registers/p", "k", "{\"value\":1}"), 200);
    assert_int_equal(talk(&t, "POST /v1/registers/p/merge", NULL, "{\"type\":\"max\",\"value\":1}"),
                     400);
    says(400, "invalid-request",
         "type: the register has the type plain, which cannot change, and this is a merge of type "
         "max. Use another name.");
    static const char count[] = "POST /v1/registers/c/merge";
    assert_int_equal(talk(&t, count, NULL,
                          "{\"type\":\"counter\",\"value\":{\"a\":9223372036854775807,\"b\":1}}"),
                     400);
    says(400, "invalid-request",
         "value: the sum of its numbers is above the limit of a counter, 9223372036854775807.");
    assert_int_equal(
        talk(&t, count, NULL, "{\"type\":\"counter\",\"value\":{\"a\":9223372036854775808}}"), 400);
    says(400, "invalid-request",
         "value: expected numbers up to 9223372036854775807, got a higher one.");
    assert_int_equal(
        talk(&t, count, NULL, "{\"type\":\"counter\",\"value\":{\"a\":9223372036854775807}}"), 200);
    assert_int_equal(talk(&t, count, NULL, "{\"type\":\"counter\",\"value\":{\"b\":1}}"), 400);
    says(400, "invalid-request",
         "value: merged with the register's value it is above the limits of a register (1024 "
         "items, 65536 bytes, a total of 9223372036854775807).");
    assert_int_equal(talk(&t, count, NULL, "{\"type\":\"counter\",\"value\":{\"\":1}}"), 400);
    says(400, "invalid-request",
         "value: each name in it: expected 1 to 1024 bytes, got 0. Correct it and retry.");
}

static void a_key_that_cannot_be_one_is_named(void **state)
{
    (void)state;
    static const char empty[] =
        "key: it is empty. Use a key of 1 byte or more, the same for every attempt and new for "
        "every new request.";
    char key[300], text[200];
    memset(key, 'k', 257);
    key[257] = 0;
    snprintf(text, sizeof text,
             "key: it has 257 bytes, which is above the server's limit (token-max-length, 256 by "
             "default). Use a shorter key.");
    assert_int_equal(talk(&t, "POST /v1/holds", "\"\"", hold), 400);
    says(400, "invalid-request", empty);
    talk_unkeyed(&t);
    assert_int_equal(talk(&t, "POST /v1/holds/0/confirm", "\"\"", NULL), 400);
    says(400, "invalid-request", empty);
    assert_int_equal(talk(&t, "PUT /v1/registers/x", key, "{\"value\":1}"), 400);
    says(400, "invalid-request", text);
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"key\":\"\",\"payload\":1}"), 400);
    says(400, "invalid-request", empty);
    assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/tokens/%s", key), 400);
    says(400, "invalid-request", text);
    /* Whatever is wrong with a capacity is told in the same words. */
    static const char *const capacities[] = { "0", "1.5", "-1", "1000000001", "true" };
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        char body[64];
        snprintf(body, sizeof body, "{\"capacity\":%s}", capacities[i]);
        snprintf(text, sizeof text,
                 "capacity: expected a whole number from 1 to 1000000000, got %s.", capacities[i]);
        assert_int_equal(talk(&t, "PUT /v1/resources/r", NULL, body), 400);
        says(400, "invalid-request", text);
    }
    assert_int_equal(talk(&t, "POST /v1/batch", NULL, "xx\n"), 200);
    assert_true(reply_has(
        &t.got,
        "line: expected an object at byte 0, got 'x'. Each line must be one JSON object, such "
        "as {\\\"op\\\":\\\"check\\\", ...}."));
}

/* ---- Outcomes that are not known ---- */

static void an_unknown_outcome_can_be_found(void **state)
{
    (void)state;
    assert_int_equal(
        talk(&t, "POST /v1/claims", NULL, "{\"key\":\"pay-7\",\"payload\":1,\"lease\":\"1s\"}"),
        201);
    assert_int_equal(talk(&t, "GET /v1/trace/pay-7", NULL, NULL), 200);
    assert_true(reply_has(
        &t.got, "bound until its claim is settled; the lease runs until 2023-11-14T22:13:21.000Z"));
    clock_at(5000);
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"key\":\"pay-7\",\"payload\":1}"), 409);
    talk_refused(&t, 409, "outcome-unknown");
    assert_true(watch_log(
        &s,
        "2023-11-14T22:13:25.000Z warning outcome-unknown key=\"pay-7\" tenant=\"\" fence=1 "
        "begun=2023-11-14T22:13:20.000Z unknown_since=2023-11-14T22:13:21.000Z",
        1));
    assert_int_equal(talk(&t, "GET /v1/trace/pay-7", NULL, NULL), 200);
    assert_true(reply_has(
        &t.got,
        "As of 2023-11-14T22:13:25.000Z: the lease ran out before the claim was settled, so the "
        "outcome is "
        "unknown since 2023-11-14T22:13:21.000Z; bound until the claim is settled with fence 1"));
    /* A line of a batch is told of too. */
    assert_int_equal(
        talk(&t, "POST /v1/batch", NULL, "{\"op\":\"begin\",\"key\":\"pay-7\",\"payload\":1}"),
        200);
    assert_true(watch_log(&s, "outcome-unknown", 2));
}

static void an_unknown_outcome_is_hashed_if_so_configured(void **state)
{
    (void)state;
    talk_server(&s);
    s.options.log_hash_keys = true;
    server_start(&s);
    talk_open(&t, &s);
    assert_int_equal(
        talk(&t, "POST /v1/claims", NULL, "{\"key\":\"pay-7\",\"payload\":1,\"lease\":\"1s\"}"),
        201);
    clock_at(1000);
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"key\":\"pay-7\",\"payload\":1}"), 409);
    assert_true(watch_log(&s, "warning outcome-unknown key=", 1));
    char *log = server_log(&s);
    assert_null(strstr(log, "pay-7"));
    free(log);
    talk_close(&t);
    server_end(&s);
}

/* ---- Who may ask ---- */

/* Ask with these fields, Host included, on a connection of its own; the status. */
static int asked(const char *what, const char *fields)
{
    char text[600];
    struct reply r;
    int fd = server_connect(&s);
    snprintf(text, sizeof text, "%s HTTP/1.1\r\n%s\r\n", what, fields);
    assert_true(server_send_text(fd, text));
    assert_true(server_receive(fd, &r, strncmp(what, "HEAD", 4) == 0));
    int status = r.status;
    if (status == 403)
        assert_true(strncmp(what, "HEAD", 4) == 0 || reply_has(&r, "\"code\":\"forbidden\""));
    reply_free(&r);
    close(fd);
    return status;
}

/* A name that somebody points at this machine: the browser thinks that page and server are one, and
 * says nothing. */
static void a_name_of_somebody_else_is_refused(void **state)
{
    (void)state;
    static const char *const hosts[] = { "evil.example",
                                         "evil.example:4653",
                                         "localhost.evil.example",
                                         "127.0.0.1.evil.example",
                                         "10.0.0.1",
                                         "[2001:db8::1]",
                                         "0.0.0.0",
                                         "128.0.0.1",
                                         "[::ffff:10.0.0.1]",
                                         "notlocalhost" };
    static const char *const ours[] = {
        "localhost", "LocalHost:1", "127.0.0.1",         "127.0.0.1:4653",         "127.9.9.9",
        "[::1]",     "[::1]:4653",  "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]:4653"
    };
    char fields[300];
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        snprintf(fields, sizeof fields, "Host: %s\r\n", hosts[i]);
        assert_int_equal(asked("GET /v1/holds", fields), 403);
        assert_int_equal(asked("HEAD /v1/holds", fields), 403);
        assert_int_equal(asked("GET /", fields), 403);
        assert_int_equal(asked("GET /metrics", fields), 403);
        assert_int_equal(asked("GET /v1/nothing", fields), 403);
        assert_int_equal(asked("POST /v1/holds/x/confirm", fields), 403);
        /* That it lives is for everybody. */
        assert_int_equal(asked("GET /healthz", fields), 200);
        assert_int_equal(asked("GET /readyz", fields), 200);
    }
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        snprintf(fields, sizeof fields, "Host: %s\r\n", ours[i]);
        assert_int_equal(asked("GET /v1/holds", fields), 200);
    }
    assert_int_equal(asked("GET /v1/holds", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n"),
                     403);
    assert_int_equal(asked("GET /v1/holds", "Host: localhost\r\nSec-Fetch-Site: same-origin\r\n"),
                     200);
    assert_int_equal(asked("GET /", "Host: localhost\r\nSec-Fetch-Site: none\r\n"), 200);
    assert_int_equal(
        asked("GET /v1/holds",
              "Host: localhost\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n"),
        400);
}

/* With an auth file a browser sends no credential by itself, and the server may have any name. */
static void with_an_auth_file_the_name_does_not_matter(void **state)
{
    (void)state;
    char path[600];
    talk_server(&s);
    snprintf(path, sizeof path, "%s/auth", s.dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    /* The SHA-256 of "t". */
    fputs("- admin e3b98a4da31a127d4bde6e43033f66ba274cab0eb7eb1c70ec41402bf6273dd8\n", f);
    fclose(f);
    s.options.auth_file = path;
    server_start(&s);
    talk_open(&t, &s);
    assert_int_equal(
        asked("GET /v1/holds", "Host: holdfast.example.com\r\nAuthorization: Bearer t\r\n"), 200);
    assert_int_equal(asked("GET /v1/holds",
                           "Host: a\r\nAuthorization: Bearer t\r\nSec-Fetch-Site: cross-site\r\n"),
                     200);
    assert_int_equal(asked("GET /v1/holds", "Host: a\r\nAuthorization: Bearer x\r\n"), 401);
    /* An audit does not tell where the server keeps its files. */
    talk_as(&t, "Authorization: Bearer t\r\n");
    assert_int_equal(talk(&t, "GET /v1/audit", NULL, NULL), 200);
    assert_true(reply_has(&t.got, "\"journal\":{\"entries\":"));
    assert_false(reply_has(&t.got, s.dir));
    talk_as(&t, "Authorization: Bearer t\r\nAccept: text/plain\r\n");
    reply_free(&t.got);
    struct reply r;
    server_ask(&s, "GET /v1/audit", "Authorization: Bearer t\r\nAccept: text/plain\r\n", NULL, &r);
    assert_int_equal(r.status, 200);
    assert_false(reply_has(&r, s.dir));
    reply_free(&r);
    talk_close(&t);
    server_end(&s);
}

static void a_body_that_is_encoded_is_refused(void **state)
{
    (void)state;
    talk_as(&t, "Content-Encoding: gzip\r\n");
    assert_int_equal(talk(&t, "POST /v1/holds", "k", hold), 415);
    says(415, "encoding-not-supported",
         "The body has a Content-Encoding that the server does not support. Send it without "
         "encoding.");
    assert_int_equal(talk(&t, "GET /v1/holds", NULL, NULL),
                     200); /* there is nothing to be decoded */
    talk_as(&t, "Content-Encoding: Identity\r\n");
    assert_int_equal(talk(&t, "POST /v1/holds", "k", hold), 201);
    talk_as(&t, "Content-Encoding: identity, gzip\r\n");
    assert_int_equal(talk(&t, "POST /v1/holds", "k", hold), 415);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS_TEST(a_page_is_not_empty_while_there_is_more),
        CALLS_TEST(a_header_that_contradicts_the_claim_is_refused),
        CALLS_TEST(a_refusal_is_remembered_if_the_request_can_be_read),
        CALLS_TEST(fences_that_are_not_the_newest_are_named),
        CALLS_TEST(a_merge_that_is_refused_says_why),
        CALLS_TEST(a_key_that_cannot_be_one_is_named),
        CALLS_TEST(an_unknown_outcome_can_be_found),
        cmocka_unit_test(an_unknown_outcome_is_hashed_if_so_configured),
        CALLS_TEST(a_name_of_somebody_else_is_refused),
        cmocka_unit_test(with_an_auth_file_the_name_does_not_matter),
        CALLS_TEST(a_body_that_is_encoded_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
