/* Several tenants on one server with a limit of memory: one that fills its share stops nobody else,
 * what was begun can be ended, and the operator is told. */
#include "base/hash.h"
#include "server/kit/talk.h"
#include "server/kit/text.h"
#include "support/test.h"

#include <sys/stat.h>

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
    assert_int_equal(talk(who, "DELETE /v1/registers/new?fence=x", "d", NULL), 400);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tenant_that_fills_its_share_stops_no_other, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(when_the_memory_is_full_it_says_so_and_takes_endings, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(deletion_frees_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
