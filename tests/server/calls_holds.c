/* Holds and resources over HTTP: every call, every refusal, lists and their cursors. */
#include "server/kit/case.h"

#define HOUR (60 * 60 * INT64_C(1000))
#define DAY (24 * HOUR)

/* Place a hold that must succeed. Its id is good until four more were asked for. */
static const char *held(const char *key, const char *resource, const char *requester)
{
    static char ids[4][32];
    static unsigned turn;
    char body[512];
    char *id = ids[turn++ % 4];
    snprintf(body, sizeof body, "{\"resource\":\"%s\",\"requester\":\"%s\",\"duration\":\"1h\"}",
             resource, requester);
    if (talk(&t, "POST /v1/holds", key, body) != 201)
        fail_msg("%d %s", t.got.status, t.got.body);
    snprintf(id, sizeof ids[0], "%s", reply_text(&t.got, "id"));
    return id;
}

static int end(const char *id, const char *verb, const char *key)
{
    return talkf(&t, key, NULL, "POST /v1/holds/%s/%s", id, verb);
}

/* ---- Placing ---- */

static void a_hold_is_placed_once_a_key(void **state)
{
    (void)state;
    const char *body = "{\"resource\":\"room 7\",\"requester\":\"ann\",\"duration\":\"15m\"}";
    assert_int_equal(talk_twice(&t, "POST /v1/holds", "k1", body), 201);
    talk_is(&t, "{\"id\":\"*\",\"resource\":\"room "
                "7\",\"requester\":\"ann\",\"state\":\"held\",\"placed_at\":\"" TALK_AT
                "\",\"expires_at\":\"2023-11-14T22:28:20.000Z\"}");
    assert_string_equal(reply_field(&t.got, "Idempotency-Expires"), "2023-11-15T22:13:20.000Z");
    assert_int_equal(strlen(reply_text(&t.got, "id")), HF_ID_SIZE - 1);
    assert_int_equal(talk(&t, "GET /v1/holds", NULL, NULL), 200);
    talk_is(&t, "{\"holds\":[{\"id\":\"*\",*\"resource\":\"room "
                "7\",\"requester\":\"ann\",\"state\":\"held\",\"placed_at\":\"*\",\"expires_at\":"
                "\"*\"}],\"next_cursor\":null}");
}

static void durations_are_texts_or_seconds(void **state)
{
    (void)state;
    static const char *const forms[][2] = {
        { "\"250ms\"", "2023-11-14T22:13:20.250Z" }, { "\"30s\"", "2023-11-14T22:13:50.000Z" },
        { "\"7d\"", "2023-11-21T22:13:20.000Z" },    { "90", "2023-11-14T22:14:50.000Z" },
        { "0.125", "2023-11-14T22:13:20.125Z" },     { "\"45\"", "2023-11-14T22:14:05.000Z" }
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char body[200], key[16];
        snprintf(key, sizeof key, "d%zu", i);
        snprintf(body, sizeof body, "{\"resource\":\"r%zu\",\"requester\":\"q\",\"duration\":%s}",
                 i, forms[i][0]);
        assert_int_equal(talk(&t, "POST /v1/holds", key, body), 201);
        assert_string_equal(reply_text(&t.got, "expires_at"), forms[i][1]);
    }
}

static void a_full_resource_refuses_and_the_refusal_is_remembered(void **state)
{
    (void)state;
    const char *body = "{\"resource\":\"seat\",\"requester\":\"bob\",\"duration\":\"1h\"}";
    const char *id = held("k1", "seat", "ann");
    assert_int_equal(talk_twice(&t, "POST /v1/holds", "k2", body), 409);
    talk_refused(&t, 409, "resource-unavailable");
    /* The unit comes back, and the key stays bound to its refusal: another try needs another
     * key. */
    assert_int_equal(end(id, "release", "k3"), 200);
    assert_int_equal(talk(&t, "POST /v1/holds", "k2", body), 409);
    talk_replayed(&t);
    assert_int_equal(talk(&t, "POST /v1/holds", "k4", body), 201);
}

static void what_can_be_read_is_remembered_and_what_is_malformed_is_not(void **state)
{
    (void)state;
    static const char *const readable[] = {
        "{}",
        "{\"resource\":\"r\",\"requester\":\"q\"}",
        "{\"resource\":null,\"requester\":\"q\",\"duration\":\"1h\"}",
        "{\"resource\":7,\"requester\":\"q\",\"duration\":\"1h\"}",
        "{\"resource\":\"\",\"requester\":\"q\",\"duration\":\"1h\"}",
        "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"0s\"}",
        "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"soon\"}",
        "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"-\"}",
        "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":10000000000000000}",
        "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\",\"fence\":\"7\"}",
        "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\",\"fence\":-7}",
        "{\"resource\":\"\\u0000\",\"requester\":\"q\",\"duration\":\"1h\"}",
    };
    enum { READABLE = sizeof readable / sizeof *readable };
    for (size_t i = 0; i < READABLE; i++) {
        char key[16], path[64];
        snprintf(key, sizeof key, "r%zu", i);
        assert_int_equal(talk_twice(&t, "POST /v1/holds", key, readable[i]), 400);
        talk_refused(&t, 400, "invalid-request");
        snprintf(path, sizeof path, "GET /v1/tokens/%s", key);
        assert_int_equal(talk(&t, path, NULL, NULL), 200);
        assert_string_equal(reply_text(&t.got, "action"), "place_hold");
        assert_int_equal(talk(&t, "POST /v1/holds", key, readable[(i + 1) % READABLE]), 422);
        talk_refused(&t, 422, "token-collision");
    }
    static const char *const malformed[] = {
        "",
        "{",
        "[]",
        "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\",\"colour\":\"red\"}",
        "{\"resource\":\"r\",\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}",
        "{\"resource\":\"\xff\",\"requester\":\"q\",\"duration\":\"1h\"}",
        "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"} {}",
        "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\",}",
    };
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        talk(&t, "POST /v1/holds", "k2", malformed[i]);
        talk_refused(&t, 400, "invalid-request");
        talk_unkeyed(&t);
    }
    held("k2", "r", "q");
}

/* Members in another order, white space, 1 for 1.0: the first answer, byte for byte. */
static void a_flawed_request_in_other_words_is_the_same_one(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "POST /v1/holds", "k", "{\"resource\":[1.0],\"duration\":\"1m\"}"),
                     400);
    talk_first(&t);
    char body[1024];
    snprintf(body, sizeof body, "%s", t.got.body);
    assert_int_equal(
        talk(&t, "POST /v1/holds", "\"k\"", "{ \"duration\": 60, \"resource\": [ 1 ] }"), 400);
    talk_replayed(&t);
    assert_string_equal(t.got.body, body);
    assert_int_equal(talk(&t, "POST /v1/holds", "k", "{\"resource\":[2],\"duration\":60}"), 422);
}

/* Every call that needs a key. */
static void flawed_requests_of_every_kind_are_remembered(void **state)
{
    (void)state;
    static const struct {
        const char *call, *body, *line;
    } calls[] = {
        { "POST /v1/holds", "{\"resource\":7}", "\"op\":\"place_hold\",\"resource\":7" },
        { "POST /v1/holds/x/confirm", "{\"late\":7}",
          "\"op\":\"confirm\",\"id\":\"x\",\"late\":7" },
        { "POST /v1/leases/n", "{\"holder\":null,\"ttl\":\"1m\"}", NULL },
        { "PUT /v1/registers/n", "{\"fence\":[]}", "\"op\":\"write\",\"name\":\"n\",\"fence\":[]" },
        { "PUT /v1/registers/a%00b", "{\"value\":1}",
          "\"op\":\"write\",\"name\":\"a\\u0000b\",\"value\":1" },
        { "DELETE /v1/registers/n?fence=x", NULL,
          "\"op\":\"delete_register\",\"name\":\"n\",\"fence\":\"x\"" },
        { "DELETE /v1/leases/n?fence=-1", NULL,
          "\"op\":\"delete_lease\",\"name\":\"n\",\"fence\":\"-1\"" },
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char key[16], line[200], detail[300];
        snprintf(key, sizeof key, "k%zu", i);
        assert_int_equal(talk_twice(&t, calls[i].call, key, calls[i].body), 400);
        talk_refused(&t, 400, "invalid-request");
        snprintf(detail, sizeof detail, "%s", reply_text(&t.got, "detail"));
        if (!calls[i].line)
            continue;
        snprintf(line, sizeof line, "{%s,\"key\":\"%s\"}", calls[i].line, key);
        assert_int_equal(talk(&t, "POST /v1/batch", NULL, line), 200);
        assert_non_null(strstr(t.got.body, "{\"status\":400,\"replayed\":true,"));
        assert_non_null(strstr(t.got.body, detail));
    }
}

static void names_have_1_to_1024_bytes(void **state)
{
    (void)state;
    char name[1026], body[4096];
    memset(name, 'n', sizeof name);
    for (size_t size = 1024; size <= 1025; size++) {
        char key[16];
        snprintf(key, sizeof key, "n%zu", size);
        snprintf(body, sizeof body,
                 "{\"resource\":\"%.*s\",\"requester\":\"%.*s\",\"duration\":\"1h\"}", (int)size,
                 name, (int)size, name);
        assert_int_equal(talk(&t, "POST /v1/holds", key, body), size == 1024 ? 201 : 400);
        talk_first(&t);
    }
    assert_int_equal(talk(&t, "POST /v1/holds", "n0",
                          "{\"resource\":\"\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     400);
    talk_refused(&t, 400, "invalid-request");
}

static void a_hold_with_a_fence_fences_older_ones_off(void **state)
{
    (void)state;
    char text[200];
    assert_int_equal(talk(&t, "PUT /v1/resources/pool", NULL, "{\"capacity\":9}"), 200);
    static const struct {
        int fence, status;
    } steps[] = { { 7, 201 }, { 7, 412 }, { 6, 412 }, { 8, 201 } };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char key[16];
        snprintf(key, sizeof key, "f%zu", i);
        snprintf(text, sizeof text,
                 "{\"resource\":\"pool\",\"requester\":\"q\",\"duration\":\"1h\",\"fence\":%d}",
                 steps[i].fence);
        assert_int_equal(talk_twice(&t, "POST /v1/holds", key, text), steps[i].status);
        if (steps[i].status == 412)
            talk_refused(&t, 412, "stale-fence");
    }
    assert_int_equal(talk(&t, "GET /v1/resources/pool", NULL, NULL), 200);
    talk_is(&t, "{\"name\":\"pool\",\"capacity\":9,\"held\":2,\"confirmed\":0,\"available\":7,"
                "\"open\":true,\"fence\":8}");
}

static void a_fence_can_be_required(void **state)
{
    (void)state;
    static const char without[] =
        "{\"resource\":\"crane\",\"requester\":\"q\",\"duration\":\"1h\"}";
    assert_int_equal(talk(&t, "PUT /v1/resources/crane", NULL, "{\"require_fence\":true}"), 200);
    talk_is(&t, "{\"name\":\"crane\",\"capacity\":1,\"held\":0,\"confirmed\":0,\"available\":1,"
                "\"open\":true,\"fence\":0,\"require_fence\":true}");
    assert_int_equal(talk_twice(&t, "POST /v1/holds", "crane-1", without), 412);
    talk_refused(&t, 412, "stale-fence");
    assert_true(reply_has(&t.got, "requires one"));
    assert_int_equal(talk(&t, "PUT /v1/resources/crane", NULL, "{\"require_fence\":false}"), 200);
    assert_false(reply_has(&t.got, "require_fence"));
    assert_int_equal(talk(&t, "POST /v1/holds", "crane-2", without), 201);
    assert_int_equal(
        talk(&t, "PUT /v1/registers/crane", "crane-3", "{\"value\":1,\"require_fence\":true}"),
        200);
    talk_is(&t, "{\"name\":\"crane\",\"type\":\"plain\",\"value\":1,\"version\":1,\"fence\":0,"
                "\"require_fence\":true}");
    assert_int_equal(talk_twice(&t, "PUT /v1/registers/crane", "crane-4", "{\"value\":2}"), 412);
    assert_true(reply_has(&t.got, "requires one"));
    assert_int_equal(talk(&t, "DELETE /v1/registers/crane", "crane-5", NULL), 412);
    assert_int_equal(talk(&t, "DELETE /v1/registers/crane?fence=1", "crane-6", NULL), 200);
    assert_int_equal(talk(&t, "PUT /v1/registers/crane", "crane-7", "{\"value\":2}"), 412);
    assert_int_equal(
        talk_twice(&t, "PUT /v1/registers/crane", "crane-8", "{\"value\":2,\"require_fence\":7}"),
        400);
}

/* ---- Ending ---- */

static void each_end_answers_with_the_hold(void **state)
{
    (void)state;
    static const char *const ends[][2] = { { "confirm", "confirmed" }, { "release", "released" } };
    for (size_t i = 0; i < 2; i++) {
        char key[16], path[128], pattern[400];
        snprintf(key, sizeof key, "p%zu", i);
        const char *id = held(key, ends[i][0], "q");
        clock_at(1000);
        snprintf(path, sizeof path, "POST /v1/holds/%s/%s", id, ends[i][0]);
        snprintf(key, sizeof key, "e%zu", i);
        assert_int_equal(talk_twice(&t, path, key, NULL), 200);
        snprintf(pattern, sizeof pattern,
                 "{\"id\":\"%s\",\"resource\":\"%s\",\"requester\":\"q\",\"state\":\"%s\",\"placed_"
                 "at\":\"*\",\"expires_at\":\"*\",\"%s_at\":\"2023-11-14T22:13:21.000Z\"}",
                 id, ends[i][0], ends[i][1], ends[i][1]);
        talk_is(&t, pattern);
        assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/holds/%s", id), 200);
        talk_is(&t, pattern);
        talk_unkeyed(&t);
        /* It ends once. */
        snprintf(key, sizeof key, "a%zu", i);
        assert_int_equal(talk_twice(&t, path, key, "{}"), 409);
        talk_refused(&t, 409, "not-held");
    }
}

static void a_body_of_an_end_is_nothing_or_an_empty_object(void **state)
{
    (void)state;
    const char *id = held("k1", "r", "q");
    assert_int_equal(talkf(&t, "k2", "{\"why\":\"so\"}", "POST /v1/holds/%s/confirm", id), 400);
    talk_refused(&t, 400, "invalid-request");
    assert_int_equal(talkf(&t, "k2", "{}x", "POST /v1/holds/%s/confirm", id), 400);
    assert_int_equal(talkf(&t, "k2", "", "POST /v1/holds/%s/confirm", id), 200);
    talk_first(&t);
    /* Both forms are the same request. */
    assert_int_equal(talkf(&t, "k2", " {} ", "POST /v1/holds/%s/confirm", id), 200);
    talk_replayed(&t);
}

static void windows_are_half_open(void **state)
{
    (void)state;
    char id[32];
    snprintf(id, sizeof id, "%s", held("k1", "r", "q"));
    assert_int_equal(talkf(&t, "k2", NULL, "POST /v1/holds/%s/expire", id), 409);
    talk_refused(&t, 409, "window-not-elapsed");
    talk_first(&t);
    clock_at(HOUR - 1);
    assert_int_equal(end(id, "expire", "k3"), 409);
    clock_at(HOUR);
    assert_int_equal(end(id, "confirm", "k4"), 409);
    talk_refused(&t, 409, "window-elapsed");
    talk_first(&t);
    /* The refusal of before is its key's answer for ever; a new key expires it. */
    assert_int_equal(end(id, "expire", "k2"), 409);
    talk_replayed(&t);
    assert_int_equal(end(id, "expire", "k5"), 200);
    talk_is(&t, "{\"id\":\"*\",\"resource\":\"r\",\"requester\":\"q\",\"state\":\"expired\","
                "\"placed_at\":\"*\",\"expires_at\":\"2023-11-14T23:13:20.000Z\",\"expired_at\":"
                "\"2023-11-14T23:13:20.000Z\"}");
    assert_int_equal(end(id, "confirm", "k6"), 409);
    talk_refused(&t, 409, "not-held");
}

static void an_overdue_hold_makes_way_for_the_next_or_can_be_released(void **state)
{
    (void)state;
    char first[32], second[32];
    snprintf(first, sizeof first, "%s", held("k1", "r", "ann"));
    clock_at(HOUR);
    snprintf(second, sizeof second, "%s", held("k2", "r", "bob"));
    assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/holds/%s", first), 200);
    assert_string_equal(reply_text(&t.got, "state"), "expired");
    clock_at(3 * HOUR);
    assert_int_equal(end(second, "release", "k3"), 200);
    assert_string_equal(reply_text(&t.got, "state"), "released");
}

#define LATE "{\"late\":\"reacquire\"}"

static void a_late_payment_gets_a_new_hold_or_goes_back(void **state)
{
    (void)state;
    char id[32], path[128], late[32], full[32];
    snprintf(id, sizeof id, "%s", held("k1", "r", "ann"));
    snprintf(full, sizeof full, "%s", held("k2", "full", "ann"));
    snprintf(path, sizeof path, "POST /v1/holds/%s/confirm", id);
    clock_at(2 * HOUR);
    assert_int_equal(talk_twice(&t, path, "plain", "{}"), 409); /* without `late` */
    assert_false(reply_has(&t.got, "verdict"));
    assert_int_equal(talk_twice(&t, path, "paid", LATE), 201);
    assert_string_equal(reply_text(&t.got, "reacquires"), id);
    assert_string_equal(reply_text(&t.got, "state"), "confirmed");
    assert_string_equal(reply_text(&t.got, "requester"), "ann");
    snprintf(late, sizeof late, "%s", reply_text(&t.got, "id"));
    assert_string_not_equal(late, id);
    assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/holds/%s", id), 200);
    assert_string_equal(reply_text(&t.got, "state"), "expired");
    assert_int_equal(talk_twice(&t, path, "again", LATE), 409);
    talk_refused(&t, 409, "not-held");
    assert_int_equal(talk(&t, path, "paid", "{}"), 422); /* another request */
    assert_int_equal(talk(&t, "GET /v1/tokens/paid", NULL, NULL), 200);
    assert_true(reply_has(&t.got, "reacquires"));

    held("k3", "full", "bob");
    snprintf(path, sizeof path, "POST /v1/holds/%s/confirm", full);
    assert_int_equal(talk_twice(&t, path, "gone", LATE), 409);
    talk_refused(&t, 409, "window-elapsed");
    assert_string_equal(reply_text(&t.got, "verdict"), "refund");
    assert_string_equal(reply_text(&t.got, "retry"), "no");
    assert_int_equal(talk(&t, "GET /v1/tokens/gone", NULL, NULL), 200);
    assert_true(reply_has(&t.got, "verdict"));

    snprintf(id, sizeof id, "%s", held("k4", "soon", "eve"));
    snprintf(path, sizeof path, "POST /v1/holds/%s/confirm", id);
    assert_int_equal(talk_twice(&t, path, "soon", LATE), 200); /* it was in time */
    assert_string_equal(reply_text(&t.got, "id"), id);
}

static void late_payments_in_a_bulk_request(void **state)
{
    (void)state;
    char id[32], lines[400];
    snprintf(id, sizeof id, "%s", held("k1", "r", "ann"));
    clock_at(2 * HOUR);
    snprintf(lines, sizeof lines,
             "{\"op\":\"confirm\",\"key\":\"a\",\"id\":\"%s\",\"late\":\"reacquire\"}\n"
             "{\"op\":\"confirm\",\"key\":\"b\",\"id\":\"%s\",\"late\":\"reacquire\"}\n",
             id, id);
    assert_int_equal(talk(&t, "POST /v1/batch", NULL, lines), 200);
    assert_true(reply_has(&t.got, "{\"status\":201,\"replayed\":false,"));
    assert_true(reply_has(&t.got, "\"reacquires\":"));
    assert_true(reply_has(&t.got, "{\"status\":409,\"replayed\":false,"));
    assert_true(reply_has(&t.got, "\"code\":\"not-held\""));
}

/* The number of a numbered client is too low. No money moved, so nobody is told to refund. */
static void a_low_number_is_no_refund(void **state)
{
    (void)state;
    char id[32], line[300];
    snprintf(id, sizeof id, "%s", held("k1", "r", "ann"));
    clock_at(2 * HOUR);
    const int numbers[] = { 900, 1 };
    for (size_t i = 0; i < 2; i++) {
        snprintf(line, sizeof line,
                 "{\"op\":\"confirm\",\"client\":\"c\",\"sequence\":%d,\"id\":\"%s\",\"late\":"
                 "\"reacquire\"}\n",
                 numbers[i], id);
        assert_int_equal(talk(&t, "POST /v1/batch", NULL, line), 200);
    }
    assert_true(reply_has(&t.got, "window-elapsed"));
    assert_false(reply_has(&t.got, "refund"));
}

static void a_reversal_is_a_record_of_its_own(void **state)
{
    (void)state;
    char id[32], path[128], reversal[32];
    snprintf(id, sizeof id, "%s", held("k1", "r", "q"));
    snprintf(path, sizeof path, "POST /v1/holds/%s/reverse", id);
    assert_int_equal(talk_twice(&t, path, "k2", NULL),
                     409); /* only what is confirmed can be given back */
    talk_refused(&t, 409, "not-held");
    assert_int_equal(end(id, "confirm", "k3"), 200);
    assert_int_equal(talk(&t, "GET /v1/resources/r", NULL, NULL), 200);
    talk_is(
        &t,
        "{\"name\":\"r\",\"capacity\":1,\"held\":0,\"confirmed\":1,\"available\":0,\"open\":true,"
        "\"fence\":0}");
    assert_int_equal(talk_twice(&t, path, "k4", "{}"), 200);
    assert_string_equal(reply_text(&t.got, "reverses"), id);
    snprintf(reversal, sizeof reversal, "%s", reply_text(&t.got, "id"));
    assert_string_not_equal(reversal, id);
    assert_int_equal(talk(&t, "GET /v1/resources/r", NULL, NULL), 200);
    talk_is(
        &t,
        "{\"name\":\"r\",\"capacity\":1,\"held\":0,\"confirmed\":0,\"available\":1,\"open\":true,"
        "\"fence\":0}");
    assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/holds/%s", id), 200);
    assert_string_equal(reply_text(&t.got, "state"), "confirmed"); /* the original is as it was */
    assert_false(reply_has(&t.got, "reverses"));
    assert_int_equal(end(id, "reverse", "k5"), 409);
    talk_refused(&t, 409, "not-held");
}

static void a_hold_that_never_was_is_not_known(void **state)
{
    (void)state;
    static const char *const verbs[] = { "confirm", "release", "expire", "reverse" };
    static const char *const ids[] = { "00000000000000000000000000", "nothing", "%FF", "a%2Fb" };
    for (size_t i = 0; i < 4; i++) {
        char path[128], key[16];
        snprintf(path, sizeof path, "POST /v1/holds/00000000000000000000000000/%s", verbs[i]);
        snprintf(key, sizeof key, "v%zu", i);
        assert_int_equal(talk_twice(&t, path, key, NULL), 404);
        talk_refused(&t, 404, "not-known");
    }
    for (size_t i = 0; i < 4; i++) {
        int status = talkf(&t, NULL, NULL, "GET /v1/holds/%s", ids[i]);
        talk_refused(&t, status, status == 404 ? "not-known" : "invalid-request");
        assert_int_equal(status, i == 2 ? 400 : 404);
    }
}

/* ---- Resources ---- */

static void a_resource_is_set_shown_and_closed(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "GET /v1/resources/van", NULL, NULL), 404);
    talk_refused(&t, 404, "not-known");
    assert_int_equal(talk(&t, "PUT /v1/resources/van", NULL, "{\"capacity\":2}"), 200);
    talk_unkeyed(&t);
    talk_is(
        &t,
        "{\"name\":\"van\",\"capacity\":2,\"held\":0,\"confirmed\":0,\"available\":2,\"open\":true,"
        "\"fence\":0}");
    held("k1", "van", "a");
    held("k2", "van", "b");
    assert_int_equal(talk(&t, "PUT /v1/resources/van", NULL, "{\"capacity\":1}"), 409);
    talk_refused(&t, 409, "resource-unavailable");
    assert_int_equal(talk(&t, "PUT /v1/resources/van", NULL, "{\"capacity\":3,\"open\":false}"),
                     200);
    talk_is(&t, "{\"name\":\"van\",\"capacity\":3,\"held\":2,\"confirmed\":0,\"available\":0,"
                "\"open\":false,\"fence\":0}");
    assert_int_equal(talk(&t, "POST /v1/holds", "k3",
                          "{\"resource\":\"van\",\"requester\":\"c\",\"duration\":\"1h\"}"),
                     409);
    talk_refused(&t, 409, "resource-unavailable");
    assert_int_equal(talk(&t, "PUT /v1/resources/van", NULL, "{\"open\":true}"), 200);
    held("k4", "van", "c");
    static const char *const wrong[] = { "{\"capacity\":0}",
                                         "{\"capacity\":1000000001}",
                                         "{\"capacity\":-1}",
                                         "{\"capacity\":1.5}",
                                         "{\"capacity\":\"2\"}",
                                         "{\"open\":1}",
                                         "{\"capacity\":2,\"x\":1}",
                                         "[2]",
                                         "" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        talk(&t, "PUT /v1/resources/van", NULL, wrong[i]);
        talk_refused(&t, 400, "invalid-request");
    }
    assert_int_equal(talk(&t, "PUT /v1/resources/van", NULL, "{\"capacity\":1000000000}"), 200);
    assert_int_equal(reply_number(&t.got, "capacity"), 1000000000);
}

static void a_name_in_the_path_may_be_any_text(void **state)
{
    (void)state;
    assert_int_equal(
        talk(&t, "PUT /v1/resources/caf%C3%A9%20%2F%20bar%3F", NULL, "{\"capacity\":4}"), 200);
    assert_string_equal(reply_text(&t.got, "name"), "caf\xc3\xa9 / bar?");
    assert_int_equal(talk(&t, "GET /v1/resources/caf%c3%a9%20%2f%20bar%3f", NULL, NULL), 200);
    assert_int_equal(reply_number(&t.got, "capacity"), 4);
    static const char *const wrong[] = { "PUT /v1/resources/%FF", "PUT /v1/resources/a%00b" };
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(talk(&t, wrong[i], NULL, "{\"capacity\":4}"), 400);
        talk_refused(&t, 400, "invalid-request");
    }
}

static void a_strict_registry_knows_what_was_set(void **state)
{
    (void)state;
    const char *body = "{\"resource\":\"new\",\"requester\":\"q\",\"duration\":\"1h\"}";
    s.options.store.registry = HF_REGISTRY_STRICT;
    case_restart();
    assert_int_equal(talk_twice(&t, "POST /v1/holds", "k1", body), 409);
    talk_refused(&t, 409, "resource-unavailable");
    assert_int_equal(talk(&t, "PUT /v1/resources/new", NULL, "{\"capacity\":1}"), 200);
    assert_int_equal(talk(&t, "POST /v1/holds", "k2", body), 201);
}

/* ---- Lists ---- */

/* How many records the page of the newest answer has, and where the next one begins. */
static int page(char next[32])
{
    int count = 0;
    for (const char *at = t.got.body; (at = strstr(at, "\"placed_at\"")) != NULL; at++)
        count++;
    snprintf(next, 32, "%s", reply_text(&t.got, "next_cursor"));
    return count;
}

/* The list may cut a page short on a slow machine, so it is read to its end: how many there are. */
static int listed(const char *query)
{
    char next[32] = "";
    int count = 0;
    do {
        assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/holds?%s&cursor=%s", query, next), 200);
        count += page(next);
    } while (next[0]);
    return count;
}

static void holds_are_listed_by_state_resource_requester_and_time(void **state)
{
    (void)state;
    char id[32];
    for (int i = 0; i < 6; i++) {
        char key[16], resource[16];
        clock_at(i * INT64_C(60000));
        snprintf(key, sizeof key, "k%d", i);
        snprintf(resource, sizeof resource, "r%d", i);
        snprintf(id, sizeof id, "%s",
                 held(key,
                      i < 4    ? resource
                      : i == 4 ? "r x"
                               : "ry",
                      i % 2 ? "odd" : "even"));
    }
    assert_int_equal(end(id, "confirm", "c1"), 200);
    held("k7", "rz", "odd");
    assert_int_equal(end(reply_text(&t.got, "id"), "release", "c2"), 200);
    assert_int_equal(listed(""), 7);
    assert_int_equal(listed("state=held"), 5);
    assert_int_equal(listed("state=confirmed"), 1);
    assert_int_equal(listed("state=released"), 1);
    assert_int_equal(listed("state=expired"), 0);
    assert_int_equal(listed("resource=r%20x"), 1);
    assert_int_equal(listed("resource=none"), 0);
    assert_int_equal(listed("requester=odd"), 4);
    assert_int_equal(listed("requester=odd&state=held"), 2);
    assert_int_equal(listed("from=2023-11-14T22:14:20.000Z"), 6);
    assert_int_equal(listed("to=2023-11-14T22:14:20.000Z"), 1);
    assert_int_equal(listed("from=2023-11-14T22:14:20Z&to=2023-11-14T22:16:20Z"), 2);
    assert_int_equal(listed("from=2023-11-15"), 0);
    /* The newest comes first. */
    assert_int_equal(talk(&t, "GET /v1/holds?limit=1", NULL, NULL), 200);
    assert_string_equal(reply_text(&t.got, "resource"), "rz");
}

static void a_list_takes_what_it_knows_and_nothing_else(void **state)
{
    (void)state;
    static const char *const wrong[] = { "limit=0",    "limit=1001",     "limit=-1",
                                         "limit=x",    "limit=",         "state=open",
                                         "state=HELD", "from=yesterday", "to=2023-13-01",
                                         "cursor=x",   "cursor=0",       "limit=1&limit=1",
                                         "colour=red", "resource=a%00b", "requester=%FF" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        talkf(&t, NULL, NULL, "GET /v1/holds?%s", wrong[i]);
        talk_refused(&t, 400, "invalid-request");
    }
    assert_int_equal(talk(&t, "GET /v1/holds?cursor=&limit=1000", NULL, NULL), 200);
    assert_int_equal(talk(&t, "GET /v1/holds?limit=1", NULL, NULL), 200);
    talk_is(&t, "{\"holds\":[],\"next_cursor\":null}");
    assert_int_equal(talk(&t, "GET /v1/holds", NULL, "{}"), 400);
    talk_refused(&t, 400, "invalid-request");
}

static void a_page_has_100_records_unless_told_and_1000_at_most(void **state)
{
    (void)state;
    enum { COUNT = 1050 };
    struct {
        char *text;
        size_t size;
    } batch = { calloc(COUNT, 128), 0 };
    assert_non_null(batch.text);
    for (int i = 0; i < COUNT; i++)
        batch.size += (size_t)snprintf(
            batch.text + batch.size, 128,
            "{\"op\":\"place_hold\",\"key\":\"b%d\",\"resource\":\"b%d\",\"requester\":\"q\","
            "\"duration\":\"1h\"}\n",
            i, i);
    assert_int_equal(talk(&t, "POST /v1/batch", NULL, batch.text), 200);
    free(batch.text);
    char next[32];
    assert_int_equal(talk(&t, "GET /v1/holds", NULL, NULL), 200);
    assert_int_equal(page(next), 100);
    assert_string_not_equal(next, "");
    assert_int_equal(talk(&t, "GET /v1/holds?limit=1000", NULL, NULL), 200);
    assert_true(page(next) <= 1000);
    assert_int_equal(listed("limit=1000"), COUNT);
    assert_int_equal(talk(&t, "GET /v1/resources?limit=1", NULL, NULL), 200);
    talk_is(&t, "{\"resources\":[{\"name\":\"b1049\",\"capacity\":1,\"held\":1,\"confirmed\":0,"
                "\"available\":0,\"open\":true,\"fence\":0}],\"next_cursor\":\"*\"}");
    static const char *const wrong[] = { "limit=0", "limit=1001", "state=held", "cursor=x" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        talkf(&t, NULL, NULL, "GET /v1/resources?%s", wrong[i]);
        talk_refused(&t, 400, "invalid-request");
    }
}

static void what_was_there_at_the_first_page_is_seen_once_while_writes_go_on(void **state)
{
    (void)state;
    enum { COUNT = 60 };
    bool seen[COUNT] = { false };
    char next[32] = "", key[32], resource[32];
    for (int i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "k%d", i);
        snprintf(resource, sizeof resource, "old %d.", i);
        held(key, resource, "q");
    }
    int pages = 0, seen_count = 0;
    do {
        assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/holds?limit=7&cursor=%s", next), 200);
        struct reply kept = t.got;
        t.got = (struct reply){ 0 };
        snprintf(next, sizeof next, "%s", reply_text(&kept, "next_cursor"));
        for (int i = 0; i < COUNT; i++) {
            snprintf(resource, sizeof resource, "\"old %d.\"", i);
            if (!reply_has(&kept, resource))
                continue;
            assert_false(seen[i]);
            seen[i] = true;
            seen_count++;
        }
        reply_free(&kept);
        snprintf(key, sizeof key, "new%d", pages);
        snprintf(resource, sizeof resource, "new %d", pages++);
        held(key, resource, "q"); /* in front of what is being read */
    } while (next[0]);
    assert_int_equal(seen_count, COUNT);
    assert_true(pages >= COUNT / 7);
}

static void the_sweeper_expires_what_is_overdue(void **state)
{
    (void)state;
    s.options.store.no_background = false;
    case_restart();
    const char *id = held("k1", "r", "q");
    clock_at(HOUR);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; server_clock_ms() < until;) {
        assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/holds/%s", id), 200);
        if (strcmp(reply_text(&t.got, "state"), "expired") == 0)
            break;
    }
    assert_string_equal(reply_text(&t.got, "state"), "expired");
    assert_string_equal(reply_text(&t.got, "expired_at"), "2023-11-14T23:13:20.000Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS_TEST(a_hold_is_placed_once_a_key),
        CALLS_TEST(durations_are_texts_or_seconds),
        CALLS_TEST(a_full_resource_refuses_and_the_refusal_is_remembered),
        CALLS_TEST(what_can_be_read_is_remembered_and_what_is_malformed_is_not),
        CALLS_TEST(a_flawed_request_in_other_words_is_the_same_one),
        CALLS_TEST(flawed_requests_of_every_kind_are_remembered),
        CALLS_TEST(names_have_1_to_1024_bytes),
        CALLS_TEST(a_hold_with_a_fence_fences_older_ones_off),
        CALLS_TEST(a_fence_can_be_required),
        CALLS_TEST(each_end_answers_with_the_hold),
        CALLS_TEST(a_body_of_an_end_is_nothing_or_an_empty_object),
        CALLS_TEST(windows_are_half_open),
        CALLS_TEST(an_overdue_hold_makes_way_for_the_next_or_can_be_released),
        CALLS_TEST(a_reversal_is_a_record_of_its_own),
        CALLS_TEST(a_late_payment_gets_a_new_hold_or_goes_back),
        CALLS_TEST(late_payments_in_a_bulk_request),
        CALLS_TEST(a_low_number_is_no_refund),
        CALLS_TEST(a_hold_that_never_was_is_not_known),
        CALLS_TEST(a_resource_is_set_shown_and_closed),
        CALLS_TEST(a_name_in_the_path_may_be_any_text),
        CALLS_TEST(a_strict_registry_knows_what_was_set),
        CALLS_TEST(holds_are_listed_by_state_resource_requester_and_time),
        CALLS_TEST(a_list_takes_what_it_knows_and_nothing_else),
        CALLS_TEST(a_page_has_100_records_unless_told_and_1000_at_most),
        CALLS_TEST(what_was_there_at_the_first_page_is_seen_once_while_writes_go_on),
        CALLS_TEST(the_sweeper_expires_what_is_overdue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
