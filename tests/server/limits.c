/* Several tenants on one server with a limit of memory: one that fills its share stops nobody else,
 * what was begun can be ended, and the operator is told. */
#include "server/kit/talk.h"
#include "server/kit/text.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include "base/hash.h"

#include <sys/stat.h>
#include <unistd.h>

enum { GREEDY, SECOND_GREEDY, OTHER, TENANTS };

static struct server s;
static struct talk t[TENANTS];
static char path[600];

static void credentials_write(void)
{
    static const char *const names[TENANTS] = { "greedy", "grabby", "other" };
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

static void clients_open(void)
{
    static const char *const fields[TENANTS] = { "Authorization: Bearer greedy\r\n",
                                                 "Authorization: Bearer grabby\r\n",
                                                 "Authorization: Bearer other\r\n" };
    for (int i = 0; i < TENANTS; i++) {
        talk_open(&t[i], &s);
        talk_as(&t[i], fields[i]);
    }
}

static int setup(void **state)
{
    (void)state;
    talk_server(&s);
    snprintf(path, sizeof path, "%s/credentials", s.dir);
    credentials_write();
    s.options.auth_file = path;
    s.options.store.memory_max_bytes = 16 << 20;
    server_start(&s);
    clients_open();
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

static void restart(void)
{
    for (int i = 0; i < TENANTS; i++)
        talk_close(&t[i]);
    server_stop(&s);
    server_start(&s);
    clients_open();
}

/* Registers of 60 KB, and then small ones, until nothing more is taken. */
static int fills(struct talk *who)
{
    static char body[60100];
    char key[40], what[64];
    int n = 0;
    for (size_t size = 60000; size > 0; size /= 100) {
        strcpy(body, "{\"value\":\"");
        memset(body + 10, 'v', size);
        strcpy(body + 10 + size, "\"}");
        int status = 200;
        while (status == 200) {
            snprintf(what, sizeof what, "PUT /v1/registers/r%d", n);
            snprintf(key, sizeof key, "w%d", n++);
            status = talk(who, what, key, body);
            assert_true(n < 20000);
        }
        talk_refused(who, 503, "storage-failure");
        talk_unkeyed(who);
    }
    return n;
}

/* One thing of each kind, begun and ended. */
static void works(struct talk *who, int round)
{
    char key[40];
    static const char *const ends[] = { "confirm", "release" };
    for (int i = 0; i < 2; i++) {
        snprintf(key, sizeof key, "place-%d-%d", round, i);
        assert_int_equal(talkf(who, key,
                               "{\"resource\":\"room\",\"requester\":\"q\",\"duration\":\"1h\"}",
                               "POST /v1/holds"),
                         201);
        char id[64];
        snprintf(id, sizeof id, "%s", reply_text(&who->got, "id"));
        snprintf(key, sizeof key, "end-%d-%d", round, i);
        assert_int_equal(talkf(who, key, NULL, "POST /v1/holds/%s/%s", id, ends[i]), 200);
        if (i == 0) {
            snprintf(key, sizeof key, "back-%d", round);
            assert_int_equal(talkf(who, key, NULL, "POST /v1/holds/%s/reverse", id), 200);
        }
    }
    char body[80];
    snprintf(body, sizeof body, "{\"key\":\"claim-%d\",\"payload\":1}", round);
    assert_int_equal(talk(who, "POST /v1/claims", NULL, body), 201);
    snprintf(body, sizeof body, "{\"fence\":%lld,\"response\":1}",
             reply_number(&who->got, "fence"));
    assert_int_equal(talkf(who, NULL, body, "POST /v1/claims/claim-%d/complete", round), 200);
}

static void a_tenant_that_fills_its_share_stops_no_other(void **state)
{
    (void)state;
    both_needs_files();
    assert_int_equal(talk(&t[GREEDY], "POST /v1/holds", "first",
                          "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    char id[64];
    snprintf(id, sizeof id, "%s", reply_text(&t[GREEDY].got, "id"));
    fills(&t[GREEDY]);
    assert_true(reply_has(&t[GREEDY].got, "memory quota"));
    works(&t[OTHER], 1);
    assert_int_equal(talk(&t[OTHER], "GET /readyz", NULL, NULL), 200);
    restart();
    assert_int_equal(talk(&t[GREEDY], "PUT /v1/registers/new", "new", "{\"value\":1}"), 503);
    talk_unkeyed(&t[GREEDY]);
    works(&t[OTHER], 2);
    assert_int_equal(talkf(&t[GREEDY], "end", NULL, "POST /v1/holds/%s/release", id), 200);
    /* What a tenant sees of it is its own. */
    assert_true(talk_figure(&t[GREEDY], "holdfast_tenant_memory_bytes{tenant=\"greedy\"}") >=
                8 << 20);
    assert_false(reply_has(&t[GREEDY].got, "\"other\""));
    assert_true(talk_figure(&t[OTHER], "holdfast_tenant_memory_bytes{tenant=\"other\"}") < 1 << 20);
    assert_true(talk_figure(&t[OTHER], "holdfast_tenant_memory_limit_bytes") == 8 << 20);
    assert_true(talk_figure(&t[OTHER], "holdfast_quota_refusals_total") >= 1);
    assert_true(talk_figure(&t[OTHER], "holdfast_memory_full") == 0);
    assert_true(talk_figure(&t[OTHER], "holdfast_ready") == 1);
}

static void when_the_memory_is_full_it_says_so_and_takes_endings(void **state)
{
    (void)state;
    both_needs_files();
    char id[64];
    assert_int_equal(talk(&t[OTHER], "POST /v1/holds", "k",
                          "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    snprintf(id, sizeof id, "%s", reply_text(&t[OTHER].got, "id"));
    assert_int_equal(talk(&t[OTHER], "POST /v1/claims", NULL, "{\"key\":\"c\",\"payload\":1}"),
                     201);
    long long fence = reply_number(&t[OTHER].got, "fence");
    fills(&t[GREEDY]);
    assert_int_equal(talk(&t[OTHER], "GET /readyz", NULL, NULL), 200);
    fills(&t[SECOND_GREEDY]);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(talk(&t[OTHER], "GET /readyz", NULL, NULL), 503);
        assert_true(reply_has(&t[OTHER].got, "memory-max"));
        assert_true(talk_figure(&t[OTHER], "holdfast_memory_full") == 1);
        assert_true(talk_figure(&t[OTHER], "holdfast_memory_limit_bytes") == 16 << 20);
        assert_true(talk_figure(&t[OTHER], "holdfast_memory_used_bytes") >= 15 << 20);
        assert_true(talk_figure(&t[OTHER], "holdfast_ready") == 0);
        assert_int_equal(talk(&t[OTHER], "PUT /v1/registers/new", "new", "{\"value\":1}"), 503);
        assert_true(reply_has(&t[OTHER].got, "memory limit is reached"));
        restart();
    }
    assert_int_equal(talkf(&t[OTHER], "e", NULL, "POST /v1/holds/%s/confirm", id), 200);
    assert_int_equal(talkf(&t[OTHER], "b", NULL, "POST /v1/holds/%s/reverse", id), 200);
    char body[64];
    snprintf(body, sizeof body, "{\"fence\":%lld,\"response\":\"done\"}", fence);
    assert_int_equal(talk(&t[OTHER], "POST /v1/claims/c/complete", NULL, body), 200);
}

/* Deleting needs no room, frees some, and so lifts the refusal. */
static void deletion_frees_memory(void **state)
{
    (void)state;
    both_needs_files();
    struct talk *who = &t[GREEDY];
    assert_int_equal(talk(who, "POST /v1/leases/leader", "l", "{\"holder\":\"me\",\"ttl\":\"1h\"}"),
                     201);
    long long fence = reply_number(&who->got, "fence");
    int n = fills(who);
    restart();
    assert_int_equal(talk(who, "PUT /v1/registers/new", "new", "{\"value\":1}"), 503);
    assert_int_equal(talk(who, "DELETE /v1/registers/r0", NULL, NULL), 400); /* without a key */
    assert_int_equal(talk(who, "DELETE /v1/registers/r0?if_version=7", "d", NULL),
                     503); /* it would be refused */
    for (int i = 0; i < n; i++) {
        char key[40];
        snprintf(key, sizeof key, "d%d", i);
        int status = talkf(who, key, NULL, "DELETE /v1/registers/r%d?if_version=1", i);
        assert_true(status == 200 || (status == 404 && i > n - 5) || (status == 503 && i > n - 5));
    }
    assert_int_equal(talk(who, "DELETE /v1/registers/r0?if_version=1", "d0", NULL), 200);
    talk_replayed(who);
    talk_is(who, "{\"name\":\"r0\",\"type\":\"deleted\",\"value\":null,\"version\":2,\"fence\":0}");
    assert_int_equal(talk(who, "GET /v1/registers/r0", NULL, NULL), 404);
    assert_int_equal(talk(who, "PUT /v1/registers/new", "new", "{\"value\":1}"), 200);
    assert_int_equal(talk(who, "DELETE /v1/registers/new?if_version=7", "d", NULL), 412);
    assert_int_equal(talk(who, "DELETE /v1/registers/new?fence=x", "dx", NULL), 400);
    talk(who, "DELETE /v1/leases/leader", "dl", NULL);
    talk_refused(who, 409, "lease-held");
    assert_int_equal(talkf(who, "dl2", NULL, "DELETE /v1/leases/leader?fence=%lld", fence), 200);
    assert_int_equal(talk(who, "GET /v1/leases/leader", NULL, NULL), 404);
    assert_int_equal(
        talk(who, "POST /v1/batch", NULL,
             "{\"op\":\"delete_register\",\"key\":\"b1\",\"name\":\"new\",\"if_version\":1}\n"
             "{\"op\":\"delete_lease\",\"key\":\"b2\",\"name\":\"leader\"}\n"),
        200);
    assert_true(reply_has(&who->got, "\"type\":\"deleted\"") &&
                reply_has(&who->got, "{\"status\":404,"));
    assert_true(talk_figure(who, "holdfast_tenant_memory_bytes{tenant=\"greedy\"}") < 1 << 20);
    assert_int_equal(talk(who, "GET /v1/audit", NULL, NULL), 200);
    assert_string_equal(reply_field(&who->got, "Holdfast-Verdict"), "ok");
}

/* Every limit on size: what just fits is taken, one more is refused with a code and a sentence of
 * its own, before any work. Limits on time are in patience.c, limits on connections in floods.c. */

enum { BODY_MAX = 65536 };
static struct talk talker;

static int setup_limits(void **state)
{
    (void)state;
    talk_server(&s);
    s.options.max_body = BODY_MAX;
    server_start(&s);
    talk_open(&talker, &s);
    return 0;
}

static int setup_default(void **state)
{
    (void)state;
    talk_server(&s);
    server_start(&s);
    talk_open(&talker, &s);
    return 0;
}

static int teardown_limits(void **state)
{
    (void)state;
    talk_close(&talker);
    server_end(&s);
    return 0;
}

/* `count` times the letter. Owned. */
static char *run_of(char letter, size_t count)
{
    char *text = malloc(count + 1);
    assert_non_null(text);
    memset(text, letter, count);
    text[count] = 0;
    return text;
}

static void send_all(int fd, const char *text)
{
    assert_true(server_send_text(fd, text));
}

static void answered(int fd, int status)
{
    struct reply r;
    assert_true(server_receive(fd, &r, false));
    if (r.status != status)
        fail_msg("expected %d, got %d %s", status, r.status, r.body);
    reply_free(&r);
}

/* The next answer is this refusal, and then the connection ends. */
static void refused_and_closed(int fd, int status, const char *code, const char *sentence)
{
    struct reply r;
    assert_true(server_receive(fd, &r, false));
    watch_refused(&r, status, code, sentence);
    assert_string_equal(reply_field(&r, "Connection"), "close");
    reply_free(&r);
    watch_ends(fd);
}

/* ---- The head ---- */

/* A head of exactly `size` bytes, in one field or in several lines before it. */
static void head_of(int fd, size_t size, bool empty_lines)
{
    static const char begin[] = "GET /healthz HTTP/1.1\r\nHost: h\r\nX: ", end[] = "\r\n\r\n",
                      lines[] = "\r\n\r\n";
    size_t around = sizeof begin - 1 + sizeof end - 1 + (empty_lines ? sizeof lines - 1 : 0);
    char *filling = run_of('x', size - around);
    if (empty_lines)
        send_all(fd, lines);
    send_all(fd, begin);
    send_all(fd, filling);
    send_all(fd, end);
    free(filling);
}

static void a_head_has_16_kib(void **state)
{
    (void)state;
    for (int empty_lines = 0; empty_lines < 2; empty_lines++) {
        int fd = server_connect(&s);
        head_of(fd, 16384, empty_lines);
        answered(fd, 200);
        head_of(fd, 16384, empty_lines);
        answered(fd, 200);
        head_of(fd, 16385, empty_lines);
        refused_and_closed(fd, 431, "head-too-large", "at most 16384 bytes");
        close(fd);
    }
}

static void fields_of(int fd, int count)
{
    send_all(fd, "GET /healthz HTTP/1.1\r\nHost: h\r\n");
    for (int i = 1; i < count; i++)
        send_all(fd, "X: y\r\n");
    send_all(fd, "\r\n");
}

static void a_head_has_64_fields(void **state)
{
    (void)state;
    int fd = server_connect(&s);
    fields_of(fd, 64);
    answered(fd, 200);
    fields_of(fd, 65);
    refused_and_closed(fd, 431, "too-many-headers", "at most 64 header fields");
    close(fd);
}

/* ---- The body ---- */

#define HOLD "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"

/* A right body of exactly `size` bytes. Owned. */
static char *body_of(size_t size)
{
    char *body = run_of(' ', size);
    memcpy(body, HOLD, sizeof HOLD - 1);
    return body;
}

static void begin_hold(int fd, const char *key, const char *fields)
{
    char head[1024];
    snprintf(head, sizeof head,
             "POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: %s\r\n%s\r\n", key,
             fields);
    send_all(fd, head);
}

static void a_body_that_just_fits_is_taken(void **state)
{
    (void)state;
    char *body = body_of(BODY_MAX);
    assert_int_equal(talk(&talker, "POST /v1/holds", "k", body), 201);
    free(body);
}

/* Before a byte of it has come: none is ever sent here. */
static void a_body_too_large_by_its_length_is_refused_at_once(void **state)
{
    (void)state;
    static const char *const lengths[] = { "65537", "1048576", "18446744073709551615",
                                           "18446744073709551616",
                                           "99999999999999999999999999999999" };
    static const char *const expects[] = { "", "Expect: 100-continue\r\n" };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t k = 0; k < 2; k++) {
            char fields[200];
            int fd = server_connect(&s);
            snprintf(fields, sizeof fields, "Content-Length: %s\r\n%s", lengths[i], expects[k]);
            begin_hold(fd, "k", fields);
            refused_and_closed(fd, 413, "body-too-large", i < 3 ? "--max-body" : NULL);
            close(fd);
        }
    talk(&talker, "GET /v1/tokens/k", NULL, NULL);
    talk_refused(&talker, 404, "not-known");
}

/* A client that goes on sending all the same can still read why it is refused. */
static void a_body_too_large_that_comes_is_thrown_away(void **state)
{
    (void)state;
    enum { SIZE = 8 << 20 };
    char *body = run_of('x', SIZE), fields[64];
    int fd = server_connect(&s);
    snprintf(fields, sizeof fields, "Content-Length: %d\r\n", SIZE);
    begin_hold(fd, "k", fields);
    (void)server_send(fd, body, SIZE); /* it may be closed before all is sent */
    refused_and_closed(fd, 413, "body-too-large", "--max-body");
    free(body);
    close(fd);
}

static void chunk(int fd, const char *data)
{
    char line[32];
    snprintf(line, sizeof line, "%zx\r\n", strlen(data));
    send_all(fd, line);
    send_all(fd, data);
    send_all(fd, "\r\n");
}

static void a_chunked_body_has_the_same_limit(void **state)
{
    (void)state;
    char *half = run_of(' ', BODY_MAX / 2), *rest = run_of(' ', BODY_MAX / 2 - (sizeof HOLD - 1));
    int fd = server_connect(&s);
    begin_hold(fd, "just", "Transfer-Encoding: chunked\r\n");
    chunk(fd, half);
    chunk(fd, HOLD);
    chunk(fd, rest);
    send_all(fd, "0\r\n\r\n");
    answered(fd, 201);
    begin_hold(fd, "more", "Transfer-Encoding: chunked\r\n");
    chunk(fd, half);
    chunk(fd, HOLD);
    chunk(fd, rest);
    send_all(fd, "1\r\n \r\n");
    refused_and_closed(fd, 413, "body-too-large", "--max-body");
    close(fd);
    free(half);
    free(rest);
}

static void a_chunk_too_large_is_refused_when_it_is_announced(void **state)
{
    (void)state;
    static const char *const sizes[] = { "10001", "fffffffffffffff", "ffffffffffffffff",
                                         "7fffffffffffffff" };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int fd = server_connect(&s);
        begin_hold(fd, "k", "Transfer-Encoding: chunked\r\n");
        if (i > 0)
            chunk(fd, HOLD);
        send_all(fd, sizes[i]);
        send_all(fd, "\r\n");
        refused_and_closed(fd, 413, "body-too-large", "--max-body");
        close(fd);
    }
}

static void whoever_waits_for_100_gets_it(void **state)
{
    (void)state;
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    char got[sizeof go_on] = "", fields[100];
    int fd = server_connect(&s);
    for (int turn = 0; turn < 2; turn++) { /* the connection stays */
        snprintf(fields, sizeof fields, "Content-Length: %zu\r\nExpect: 100-Continue\r\n",
                 sizeof HOLD - 1);
        begin_hold(fd, turn ? "k1" : "k0",
                   turn ? "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n" : fields);
        for (size_t n = 0; n < sizeof go_on - 1; n++)
            assert_int_equal(read(fd, got + n, 1), 1);
        assert_string_equal(got, go_on);
        if (turn)
            chunk(fd, HOLD);
        send_all(fd, turn ? "0\r\n\r\n" : HOLD);
        answered(fd, turn ? 409 : 201);
    }
    close(fd);
}

/* ---- Batches ---- */

static char *lines_of(size_t count, const char *line)
{
    size_t size = strlen(line);
    char *body = malloc(count * size + 1);
    assert_non_null(body);
    for (size_t i = 0; i < count; i++)
        memcpy(body + i * size, line, size);
    body[count * size] = 0;
    return body;
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

static void a_batch_has_8192_lines(void **state)
{
    (void)state;
    static const char line[] = "{\"op\":\"merge\",\"name\":\"x\",\"type\":\"max\",\"value\":7}\n";
    char *body = lines_of(8193, line);
    talk(&talker, "POST /v1/batch", NULL, body);
    talk_refused(&talker, 413, "batch-too-large");
    assert_non_null(strstr(reply_text(&talker.got, "detail"), "at most 8192 lines"));
    talk(&talker, "GET /v1/registers/x", NULL, NULL);
    talk_refused(&talker, 404, "not-known"); /* nothing of it was done */
    body[8192 * (sizeof line - 1)] = 0;
    assert_int_equal(talk(&talker, "POST /v1/batch", NULL, body), 200);
    assert_int_equal(count_of(talker.got.body, "{\"status\":200,"), 8192);
    body[8192 * (sizeof line - 1) - 1] = 0; /* the last line needs no end */
    assert_int_equal(talk(&talker, "POST /v1/batch", NULL, body), 200);
    assert_int_equal(count_of(talker.got.body, "\n"), 8192);
    free(body);
    body = lines_of(8193, "\n"); /* empty lines are lines */
    talk(&talker, "POST /v1/batch", NULL, body);
    talk_refused(&talker, 413, "batch-too-large");
    free(body);
    talk(&talker, "POST /v1/batch", NULL, "");
    talk_refused(&talker, 400, "invalid-request");
}

/* ---- Names ---- */

struct named {
    const char *what, *key, *body; /* with %s where the name goes, in one of the two */
    int status;                    /* if the name fits */
};

static const struct named names[] = {
    { "POST /v1/holds", "n1", "{\"resource\":\"%s\",\"requester\":\"q\",\"duration\":\"1h\"}",
      201 },
    { "POST /v1/holds", "n2", "{\"resource\":\"r\",\"requester\":\"%s\",\"duration\":\"1h\"}",
      201 },
    { "PUT /v1/resources/%s", NULL, "{\"capacity\":1}", 200 },
    { "GET /v1/resources/%s", NULL, NULL, 200 },
    { "PUT /v1/guards/%s", NULL, "{\"window\":\"1h\"}", 200 },
    { "GET /v1/guards/%s", NULL, NULL, 200 },
    { "POST /v1/guards/%s/check", NULL, "{\"identity\":\"i\"}", 200 },
    { "POST /v1/guards/%s/record", NULL, "{\"identity\":\"i\"}", 200 },
    { "POST /v1/guards/%s/admit", NULL, "{\"identity\":\"i\"}", 200 },
    { "POST /v1/guards/g/check", NULL, "{\"identity\":\"%s\"}", 200 },
    { "POST /v1/guards/g/record", NULL, "{\"identity\":\"%s\"}", 200 },
    { "POST /v1/guards/g/admit", NULL, "{\"identity\":\"%s\"}", 200 },
    { "POST /v1/leases/%s", "n3", "{\"holder\":\"h\",\"ttl\":\"1h\"}", 201 },
    { "POST /v1/leases/l", "n4", "{\"holder\":\"%s\",\"ttl\":\"1h\"}", 201 },
    { "PUT /v1/registers/%s", "n5", "{\"value\":1}", 200 },
    { "GET /v1/registers/%s", NULL, NULL, 200 },
};

/* `pattern` with the name in it, if it has a place for one. Owned; NULL for NULL. */
static char *filled(const char *pattern, const char *name)
{
    const char *place = pattern ? strstr(pattern, "%s") : NULL;
    if (!place)
        return pattern ? strdup(pattern) : NULL;
    size_t room = strlen(pattern) + strlen(name) + 1;
    char *text = malloc(room);
    assert_non_null(text);
    snprintf(text, room, "%.*s%s%s", (int)(place - pattern), pattern, name, place + 2);
    return text;
}

static int call_named(const struct named *n, const char *key, const char *name)
{
    char *what = filled(n->what, name), *body = filled(n->body, name);
    int status = talk(&talker, what, key, body);
    free(what);
    free(body);
    return status;
}

static void a_name_or_identity_has_1_kib(void **state)
{
    (void)state;
    char *fits = run_of('n', 1024), *over = run_of('n', 1025), *umlauts = malloc(1027);
    assert_non_null(umlauts);
    for (size_t i = 0; i < 1026; i++) /* bytes are counted, not letters */
        umlauts[i] = i % 2 ? '\xa4' : '\xc3';
    umlauts[1026] = 0;
    assert_int_equal(talk(&talker, "PUT /v1/guards/g", NULL, "{\"window\":\"1h\"}"), 200);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool in_path = strstr(names[i].what, "%s") != NULL;
        if (call_named(&names[i], names[i].key, fits) != names[i].status)
            fail_msg("%s: expected %d, got %d %s", names[i].what, names[i].status,
                     talker.got.status, talker.got.body);
        char key[2][32]; /* a refusal by the rules is bound to its key */
        snprintf(key[0], sizeof key[0], "over-%zu", i);
        snprintf(key[1], sizeof key[1], "umlauts-%zu", i);
        call_named(&names[i], names[i].key ? key[0] : NULL, over);
        talk_refused(&talker, 400, "invalid-request");
        if (!in_path) {
            call_named(&names[i], names[i].key ? key[1] : NULL, umlauts);
            talk_refused(&talker, 400, "invalid-request");
        }
    }
    free(fits);
    free(over);
    free(umlauts);
}

/* A register has one kind, so this one needs another name than those above. */
static void the_name_of_a_merged_register_has_1_kib(void **state)
{
    (void)state;
    static const struct named merge = { "POST /v1/registers/%s/merge", NULL,
                                        "{\"type\":\"max\",\"value\":1}", 200 };
    char *fits = run_of('m', 1024), *over = run_of('m', 1025);
    assert_int_equal(call_named(&merge, NULL, fits), 200);
    call_named(&merge, NULL, over);
    talk_refused(&talker, 400, "invalid-request");
    free(fits);
    free(over);
}

static void a_key_has_256_bytes(void **state)
{
    (void)state;
    char *fits = run_of('k', 256), *over = run_of('k', 257);
    assert_int_equal(talk(&talker, "POST /v1/holds", fits, HOLD), 201);
    assert_int_equal(talkf(&talker, NULL, NULL, "GET /v1/tokens/%s", fits), 200);
    talk(&talker, "POST /v1/holds", over, HOLD);
    talk_refused(&talker, 400, "invalid-request");
    free(fits);
    free(over);
}

static void a_page_has_1_to_1000_records(void **state)
{
    (void)state;
    static const char *const good[] = { "1", "1000" };
    static const char *const bad[] = { "0", "1001", "-1", "18446744073709551617", "", "1x" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(talkf(&talker, NULL, NULL, "GET /v1/holds?limit=%s", good[i]), 200);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        talkf(&talker, NULL, NULL, "GET /v1/holds?limit=%s", bad[i]);
        talk_refused(&talker, 400, "invalid-request");
    }
}

/* ---- Values ---- */

static void a_value_has_its_limit(void **state)
{
    (void)state;
    static const struct named values[] = {
        { "PUT /v1/registers/x", "v1", "{\"value\":\"%s\"}", 200 },
        { "POST /v1/guards/g/record", NULL, "{\"identity\":\"i\",\"result\":\"%s\"}", 200 },
    };
    char *fits = run_of('v', 65536), *over = run_of('v', 65537);
    assert_int_equal(talk(&talker, "PUT /v1/guards/g", NULL, "{\"window\":\"1h\"}"), 200);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        call_named(&values[i], values[i].key ? "over" : NULL, over);
        talk_refused(&talker, 400, "invalid-request");
        assert_int_equal(call_named(&values[i], values[i].key, fits), values[i].status);
    }
    free(fits);
    free(over);
}

#define TEST_LIMITS(name) cmocka_unit_test_setup_teardown(name, setup_limits, teardown_limits)
#define TEST_DEFAULT(name) cmocka_unit_test_setup_teardown(name, setup_default, teardown_limits)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tenant_that_fills_its_share_stops_no_other, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(when_the_memory_is_full_it_says_so_and_takes_endings, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(deletion_frees_memory, setup, teardown),
        TEST_LIMITS(a_head_has_16_kib),
        TEST_LIMITS(a_head_has_64_fields),
        TEST_LIMITS(a_body_that_just_fits_is_taken),
        TEST_LIMITS(a_body_too_large_by_its_length_is_refused_at_once),
        TEST_LIMITS(a_body_too_large_that_comes_is_thrown_away),
        TEST_LIMITS(a_chunked_body_has_the_same_limit),
        TEST_LIMITS(a_chunk_too_large_is_refused_when_it_is_announced),
        TEST_LIMITS(whoever_waits_for_100_gets_it),
        TEST_DEFAULT(a_batch_has_8192_lines),
        TEST_DEFAULT(a_name_or_identity_has_1_kib),
        TEST_DEFAULT(the_name_of_a_merged_register_has_1_kib),
        TEST_DEFAULT(a_key_has_256_bytes),
        TEST_DEFAULT(a_page_has_1_to_1000_records),
        TEST_DEFAULT(a_value_has_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
