/* Requests out of path, key and body: every call, with what it takes and what it refuses. */
#include "unit/kit/decode.h"

#define HOLD "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"15m\"}"

static void test_place_hold(void **state)
{
    (void)state;
    const struct hf_request *r = good(POST, "/v1/holds", "k", HOLD);
    assert_int_equal(r->action, HF_PLACE_HOLD);
    same(r->key, "k");
    same(r->place_hold.resource, "r");
    same(r->place_hold.requester, "q");
    assert_int_equal(r->place_hold.duration_ms, 900000);
    assert_int_equal(r->place_hold.fence, 0);
    assert_int_equal(r->client.size, 0);
    r = good(POST, "/v1/holds", "k",
             " { \"fence\" : 18446744073709551615 , \"duration\" : 1.5 ,\n\"requester\" : "
             "\"\\u0071\\n\" , \"resource\" : \"caf\xc3\xa9\" } ");
    same(r->place_hold.resource, "caf\xc3\xa9");
    same(r->place_hold.requester, "q\n");
    assert_int_equal(r->place_hold.duration_ms, 1500);
    assert_int_equal(r->place_hold.fence, UINT64_MAX);
    /* What is well-formed but against a rule is for the core to refuse, under the key. */
    r = good(POST, "/v1/holds", "k",
             "{\"resource\":\"\",\"requester\":\"\",\"duration\":0,\"fence\":0}");
    assert_int_equal(r->place_hold.duration_ms, 0);
}

/* The usual body is borrowed as a whole. */
static void test_nothing_is_allocated(void **state)
{
    (void)state;
    hf_arena_free(&decoded.arena);
    good(POST, "/v1/holds", "k", HOLD);
    good(POST, "/v1/holds", "\"k\"", HOLD);
    assert_int_equal(
        decode_line("{\"op\":\"place_hold\",\"key\":\"k\",\"resource\":\"r\",\"requester\":\"q\","
                    "\"duration\":\"15m\"}"),
        HF_OK);
    assert_int_equal(decoded.arena.held, 0);
}

static void test_bodies(void **state)
{
    (void)state;
    static const struct {
        const char *body, *detail;
    } cases[] = {
        { NULL, "body: expected an object at byte 0, got the end." },
        { "", "body: expected an object at byte 0, got the end." },
        { "  ", "body: expected an object at byte 2, got the end." },
        { "null", "body: expected an object, got null." },
        { "[]", "body: expected an object, got an array." },
        { "\"x\"", "body: expected an object, got \"x\"." },
        { "\xef\xbb\xbf" HOLD,
          "body: the text begins with a byte order mark, which JSON must not have." },
        { HOLD "x", "body: expected nothing more at byte 49, got 'x'." },
        { HOLD HOLD, "body: expected nothing more" },
        { HOLD ",", "body: expected nothing more" },
        { "{\"resource\":\"r\"", "body: expected ',' or '}' at byte 15, got the end." },
        { "{\"resource\":\"r\",}", "body: expected a name in quotes at byte 16, got '}'." },
        { "{\"resource\":\"r\xff\"}", "resource: expected UTF-8; byte 14 is not valid." },
        { "{\"resource\":\"\\ud800\"}",
          "resource: expected four hexadecimal digits, and surrogates in pairs" },
        { "{\"resource\":\"r\",\"resource\":\"r\"}",
          "body: duplicate member \"resource\", the second one before byte 26." },
        { "{\"resource\":\"r\",\"\\u0072esource\":\"r\"}", "body: duplicate member \"resource\"" },
        { "{\"colour\":1}", "Unknown member \"colour\". This call takes resource, requester, "
                            "duration, fence." },
        { "{\"Resource\":\"r\"}", "Unknown member \"Resource\"" },
        { "{\"\":1}", "Unknown member \"\"" },
        { "{\"resource\":\"r\",\"requester\":\"q\"}",
          "duration: missing, expected a duration such as \"15m\" or a number of seconds, at most "
          "3650d." },
        { "{}", "resource: missing, expected a string." },
        { "{\"resource\":null}", "resource: expected a string, got null." },
        { "{\"resource\":17}", "resource: expected a string, got 17." },
        { "{\"resource\":[\"r\"]}", "resource: expected a string, got an array." },
        { "{\"resource\":}", "resource: expected a string at byte 12, got '}'." },
        { "{\"resource\":\"a\\u0000b\",\"requester\":\"q\",\"duration\":1}",
          "resource: expected text without NUL." },
        { "{\"resource\":\"r\",\"requester\":\"\\u0000\",\"duration\":1}",
          "requester: expected text without NUL." },
        { "{\"fence\":-1}",
          "fence: expected a whole number from 0 to 18446744073709551615, got -1." },
        { "{\"fence\":1e-1}", "got 1e-1." },
        { "{\"fence\":1e21}", "got 1e21." },
        { "{\"fence\":1.5}", "got 1.5." },
        { "{\"fence\":\"1\"}", "got \"1\"." },
        { "{\"fence\":18446744073709551616}", "got 18446744073709551616." },
        { "{\"fence\":null}", "got null." },
        { "{\"fence\":01}", "fence: expected no digit after a leading zero at byte 10, got '1'." },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        bad(POST, "/v1/holds", "k", cases[i].body, cases[i].detail);
    char deep[200] = "{\"resource\":";
    memset(deep + 12, '[', 100);
    bad(POST, "/v1/holds", "k", deep, "resource: expected at most 32 nested arrays and objects");
    (void)decode_bytes(POST, "/v1/holds", "k",
                       hf_mem(HOLD "\0", sizeof HOLD)); /* a NUL is something behind */
    expect_bad("NUL", "body: expected nothing more at byte 49, got byte 0x00.");
}

/* A call with a key is remembered with its refusal if it can be read; what it says in another way
 * is the same request. */
static void test_flaws(void **state)
{
    (void)state;
    static const struct {
        const char *body, *flaws; /* NULL: it is no request of this call */
    } cases[] = {
        { "{}", "duration_ms= requester= resource= " },
        { " { \"duration\" : \"90s\" } ", "requester= resource= " },
        { "{\"resource\":null,\"requester\":\"q\",\"duration\":1}", "resource=null " },
        { "{\"resource\":[1.0, {\"b\":1, \"a\":2e1}],\"requester\":\"q\",\"duration\":-1e-4}",
          "duration_ms=-0.0001 resource=[1,{\"a\":20,\"b\":1}] " },
        { "{\"fence\":-7,\"resource\":\"\\u0000\",\"requester\":\"q\",\"duration\":\"soon\"}",
          "duration_ms=\"soon\" fence=-7 resource=\"\\u0000\" " },
        { "{\"resource\":7,\"colour\":1}", NULL },
        { "{\"resource\":7,\"resource\":7}", NULL },
        { "{\"resource\":{\"a\":1,\"a\":1}}", NULL },
        { "{\"resource\":7", NULL },
        { "{\"resource\":7} x", NULL },
        { "{\"resource\":[7,}", NULL },
        { "{\"resource\":7,\"requester\":\"\xff\"}", NULL },
        { "[]", NULL },
        { "", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[300] = "";
        (void)decode_bytes(POST, "/v1/holds", "k", hf_str(cases[i].body));
        expect_bad(cases[i].body, "");
        if (is_left_to_core() != (cases[i].flaws != NULL))
            fail_msg("%s: %s", cases[i].body, decoded.why.detail);
        if (!cases[i].flaws)
            continue;
        const struct hf_invalid *invalid = decoded.request.invalid;
        for (size_t k = 0; k < invalid->count; k++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s=%.*s ",
                     invalid->flaws[k].name, (int)invalid->flaws[k].sent.size,
                     invalid->flaws[k].sent.data ? (const char *)invalid->flaws[k].sent.data : "");
        assert_string_equal(text, cases[i].flaws);
    }
    /* The path and the query too; what is no UTF-8 is no request. */
    bad(PUT, "/v1/registers/a%00b", "k", "{\"value\":1}", "path: expected text without NUL.");
    assert_true(is_left_to_core());
    bad(HF_HTTP_DELETE, "/v1/registers/n?fence=x", "k", NULL, "fence: expected a whole number.");
    assert_true(is_left_to_core());
    assert_string_equal(decoded.request.invalid->flaws[0].name, "fence");
    bad(PUT, "/v1/registers/a%ff", "k", "{\"value\":1}", "path: expected UTF-8.");
    assert_false(is_left_to_core());
    /* Without a key there is nothing to remember it with. */
    bad(POST, "/v1/holds", NULL, "{}", "Idempotency-Key: this header is missing");
    assert_false(is_left_to_core());
    bad(PUT, "/v1/guards/g", "k", "{}", "window: missing");
    assert_false(is_left_to_core());
    bad(POST, "/v1/claims", "k", "{\"payload\":1,\"lease\":7.0001}", "lease: expected");
    assert_false(is_left_to_core());
}

/* Long names of members and values do not cut a sentence off. */
static void test_long_names(void **state)
{
    (void)state;
    char body[1200], name[1001];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(body, sizeof body, "{\"%s\":1}", name);
    bad(POST, "/v1/holds", "k", body, "xxx...\". This call takes");
    snprintf(body, sizeof body, "{\"duration\":\"%s\"}", name);
    bad(POST, "/v1/holds", "k", body, "duration: expected a duration such as");
    snprintf(body, sizeof body, "{\"type\":\"%s\"}", name);
    bad(POST, "/v1/registers/x/merge", NULL, body,
        "type: expected one of max, min, or, union, lww, vector, counter, updown, got \"xxx");
}

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } fine[] = {
        { "\"250ms\"", 250 },
        { "\"30s\"", 30000 },
        { "\"15m\"", 900000 },
        { "\"24h\"", 86400000 },
        { "\"7d\"", 604800000 },
        { "\"5\"", 5000 },
        { "\"0s\"", 0 },
        { "0", 0 },
        { "5", 5000 },
        { "0.001", 1 },
        { "1.25", 1250 },
        { "2.5", 2500 },
        { "0.000", 0 },
        { "3.120", 3120 },
        { "315360000", 315360000000 },
        { "315360000.0", 315360000000 },
        { "\"3650d\"", 315360000000 },
        /* Against the rules, but readable: the core says so, and remembers it. */
        { "-0", 0 },
        { "-1", -1000 },
        { "-1.25", -1250 },
        { "\"-1s\"", -1000 },
        { "\"-0\"", 0 },
        { "\"3651d\"", 315446400000 },
        { "315360000.001", 315360000001 },
        { "315360001", 315360001000 },
        { "9223372036854775.807", INT64_MAX },
        { "-9223372036854775.807", -INT64_MAX },
        { "\"9223372036854775807ms\"", INT64_MAX },
        /* The same numbers in other words. */
        { "-1e1", -10000 },
        { "1e3", 1000000 },
        { "1.0e0", 1000 },
        { "1.0000", 1000 },
        { "15e-1", 1500 },
    };
    static const char *const wrong[] = {
        "true",
        "null",
        "[]",
        "{}",
        "\"\"",
        "\"15 m\"",
        "\"--1s\"",
        "\"+1s\"",
        "\"-\"",
        "\"- 1s\"",
        "\"1.5s\"",
        "\"15M\"",
        "\"15\\u0000\"",
        "1e-4",
        "1e21",
        "0.0005",
        "1.2345",
        "9223372036854775.808",
        "9223372036854776",
        "-9223372036854775.808",
        "99999999999999999999999",
        "\"9223372036854775808ms\"",
        "\"99999999999999999999s\"",
        "\"fifteen minutes\"",
    };
    char body[128];
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        snprintf(body, sizeof body, "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":%s}",
                 fine[i].text);
        assert_int_equal(good(POST, "/v1/holds", "k", body)->place_hold.duration_ms, fine[i].ms);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(body, sizeof body, "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":%s}",
                 wrong[i]);
        bad(POST, "/v1/holds", "k", body,
            "duration: expected a duration such as \"15m\" or a number of seconds, at most 3650d, "
            "got ");
    }
}

/* ---- Paths and queries ---- */

static void test_params(void **state)
{
    (void)state;
    same(good(POST, "/v1/holds/abc/confirm", "k", NULL)->hold.id, "abc");
    same(good(POST, "/v1/holds/abc/release", "k", "{}")->hold.id, "abc");
    same(good(POST, "/v1/holds/abc/expire", "k", " { } ")->hold.id, "abc");
    same(good(POST, "/v1/holds/abc/reverse", "k", NULL)->hold.id, "abc");
    same(good(GET, "/v1/holds/abc", NULL, NULL)->hold.id, "abc");
    same(good(GET, "/v1/resources/a%2Fb", NULL, NULL)->get.name, "a/b");
    same(good(GET, "/v1/guards/g", NULL, NULL)->get.name, "g");
    same(good(GET, "/v1/leases/l", NULL, NULL)->get.name, "l");
    same(good(GET, "/v1/registers/caf%C3%A9", NULL, NULL)->get.name, "caf\xc3\xa9");
    /* A key may be any bytes; a name may not. */
    same(good(GET, "/v1/claims/%ff%41", NULL, NULL)->key, "\xff"
                                                          "A");
    const struct hf_request *r = good(GET, "/v1/tokens/a%00b", NULL, NULL);
    assert_int_equal(r->action, HF_GET_TOKEN);
    assert_int_equal(r->key.size, 3);
    bad(GET, "/v1/resources/%ff", NULL, NULL, "path: expected UTF-8.");
    bad(GET, "/v1/resources/a%00b", NULL, NULL, "path: expected text without NUL.");
    bad(PUT, "/v1/guards/%00", NULL, "{\"window\":1}", "path: expected text without NUL.");
    bad(POST, "/v1/guards/%ed%a0%80/check", NULL, "{\"identity\":\"i\"}", "path: expected UTF-8.");
    bad(POST, "/v1/leases/%00", "k", "{\"holder\":\"h\",\"ttl\":1}",
        "path: expected text without NUL.");
    bad(PUT, "/v1/registers/%00", "k", "{\"value\":1}", "path: expected text without NUL.");
    bad(POST, "/v1/registers/%00/merge", NULL, "{\"type\":\"max\",\"value\":1}",
        "path: expected text without NUL.");
    bad(GET, "/v1/holds/%00", NULL, NULL, "path: expected text without NUL.");
}

/* "none or {}", and GET with nothing at all. */
static void test_no_body(void **state)
{
    (void)state;
    static const char *const wrong[] = { "null", "[]", "{", "{}x", "\"\"", "0", " " };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        bad(POST, "/v1/holds/x/confirm", "k", wrong[i], "body: expected ");
    bad(POST, "/v1/holds/x/confirm", "k", "{\"id\":1}",
        "Unknown member \"id\". This call takes late.");
    bad(POST, "/v1/holds/x/confirm", "k", "{\"late\":\"refund\"}",
        "late: expected one of reacquire");
    bad(POST, "/v1/holds/x/release", "k", "{\"late\":\"reacquire\"}",
        "Unknown member \"late\". This call takes none.");
    static const char *const asked[] = {
        "/v1/holds/x",     "/v1/holds",    "/v1/resources/x", "/v1/guards/x/entries",
        "/v1/claims/x",    "/v1/tokens/x", "/v1/audit",       "/v1/trace/x",
        "/v1/registers/x", "/v1/leases/x", "/v1/export",      "/healthz"
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        bad(GET, asked[i], NULL, "{}", "body: expected none");
        bad(GET, asked[i], NULL, " ", "body: expected none");
        assert_int_equal(decode_bytes(GET, asked[i], NULL, hf_str("")), HF_OK);
    }
}

/* A query behind a call that has none is refused, whatever it says. */
static void test_no_query(void **state)
{
    (void)state;
    good(GET, "/v1/holds/x?", NULL, NULL);
    good(GET, "/v1/holds/x?&&", NULL, NULL);
    bad(GET, "/v1/holds/x?a=1", NULL, NULL, "Unknown query parameter \"a\"");
    bad(GET, "/v1/holds/x?a", NULL, NULL, "Unknown query parameter \"a\"");
    bad(POST, "/v1/holds?resource=r", "k", HOLD,
        "Unknown query parameter \"resource\". This call takes none.");
    bad(POST, "/v1/holds/x/confirm?force=1", "k", NULL, "Unknown query parameter \"force\"");
    bad(GET, "/v1/audit?x=1", NULL, NULL, "Unknown query parameter \"x\"");
}

/* ---- The other calls ---- */

static void test_resources(void **state)
{
    (void)state;
    const struct hf_request *r = good(PUT, "/v1/resources/room%201", NULL, "{\"capacity\":3}");
    assert_int_equal(r->action, HF_SET_RESOURCE);
    same(r->set_resource.name, "room 1");
    assert_int_equal(r->set_resource.capacity, 3);
    assert_int_equal(r->set_resource.open, HF_LEAVE);
    r = good(PUT, "/v1/resources/x", NULL, "{\"open\":false}");
    assert_int_equal(r->set_resource.capacity, 0); /* as it is */
    assert_int_equal(r->set_resource.open, HF_SET_CLOSED);
    r = good(PUT, "/v1/resources/x", NULL, "{\"open\":true,\"capacity\":1000000000}");
    assert_int_equal(r->set_resource.open, HF_SET_OPEN);
    assert_int_equal(r->set_resource.capacity, HF_CAPACITY_MAX);
    good(PUT, "/v1/resources/x", NULL, "{}");
    bad(PUT, "/v1/resources/x", NULL, NULL, "body: expected an object");
    /* 0 means "as it is" in the library, and must not become that by accident; nor may it wrap
     * around. */
    bad(PUT, "/v1/resources/x", NULL, "{\"capacity\":0}",
        "capacity: expected a whole number from 1 to 1000000000, got 0.");
    bad(PUT, "/v1/resources/x", NULL, "{\"capacity\":1000000001}", "got 1000000001.");
    bad(PUT, "/v1/resources/x", NULL, "{\"capacity\":4294967297}", "got 4294967297.");
    bad(PUT, "/v1/resources/x", NULL, "{\"capacity\":\"3\"}", "capacity: expected a whole number");
    bad(PUT, "/v1/resources/x", NULL, "{\"capacity\":1.5}",
        "capacity: expected a whole number from 1 to 1000000000, got 1.5.");
    bad(PUT, "/v1/resources/x", NULL, "{\"capacity\":-1}",
        "capacity: expected a whole number from 1 to 1000000000, got -1.");
    bad(PUT, "/v1/resources/x", NULL, "{\"open\":1}", "open: expected true or false, got 1.");
    bad(PUT, "/v1/resources/x", NULL, "{\"open\":null}", "open: expected true or false, got null.");
}

static void test_guards(void **state)
{
    (void)state;
    const struct hf_request *r = good(PUT, "/v1/guards/g", NULL, "{\"window\":\"60s\"}");
    assert_int_equal(r->action, HF_SET_GUARD);
    same(r->set_guard.name, "g");
    assert_int_equal(r->set_guard.window_ms, 60000);
    assert_int_equal(r->set_guard.match_count, 0);
    assert_int_equal(r->set_guard.on_unavailable, HF_FAIL_OPEN);
    assert_false(r->set_guard.volatile_only);
    r = good(
        PUT, "/v1/guards/g", NULL,
        "{\"match\":[\"trim\",\"casefold\",\"normalize\",\"hash\"],\"on_unavailable\":\"closed\","
        "\"durable\":false,\"window\":60}");
    assert_int_equal(r->set_guard.match_count, 4);
    assert_int_equal(r->set_guard.match[0], HF_MATCH_TRIM);
    assert_int_equal(r->set_guard.match[1], HF_MATCH_CASEFOLD);
    assert_int_equal(r->set_guard.match[2], HF_MATCH_NORMALIZE);
    assert_int_equal(r->set_guard.match[3], HF_MATCH_HASH);
    assert_int_equal(r->set_guard.on_unavailable, HF_FAIL_CLOSED);
    assert_true(r->set_guard.volatile_only);
    r = good(PUT, "/v1/guards/g", NULL,
             "{\"window\":0,\"match\":\"trim,hash\",\"on_unavailable\":\"open\",\"durable\":true}");
    assert_int_equal(r->set_guard.match_count, 2);
    assert_int_equal(r->set_guard.match[1], HF_MATCH_HASH);
    assert_int_equal(r->set_guard.on_unavailable, HF_FAIL_OPEN);
    assert_false(r->set_guard.volatile_only);
    assert_int_equal(
        good(PUT, "/v1/guards/g", NULL, "{\"window\":1,\"match\":[]}")->set_guard.match_count, 0);
    assert_int_equal(
        good(PUT, "/v1/guards/g", NULL, "{\"window\":1,\"match\":\"exact\"}")->set_guard.match[0],
        HF_MATCH_EXACT);
    static const char *const wrong[] = { "\"\"",
                                         "\"trim,\"",
                                         "\",trim\"",
                                         "\"trim, hash\"",
                                         "\"TRIM\"",
                                         "[\"trim,hash\"]",
                                         "[\"\"]",
                                         "5",
                                         "null",
                                         "{}",
                                         "[\"trim\",\"casefold\",\"normalize\",\"hash\",\"exact\"]",
                                         "\"trim,trim,trim,trim,trim\"" };
    char body[160];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(body, sizeof body, "{\"window\":1,\"match\":%s}", wrong[i]);
        bad(PUT, "/v1/guards/g", NULL, body,
            "match: expected at most 4, in an array, of exact, trim, casefold, normalize, "
            "hash, got ");
    }
    bad(PUT, "/v1/guards/g", NULL, "{\"window\":1,\"match\":[5]}",
        "match: expected a string, got 5.");
    bad(PUT, "/v1/guards/g", NULL, "{\"match\":\"trim\"}", "window: missing, expected a duration");
    bad(PUT, "/v1/guards/g", NULL, "{\"window\":1,\"on_unavailable\":\"maybe\"}",
        "on_unavailable: expected one of open, closed, got \"maybe\".");
    bad(PUT, "/v1/guards/g", NULL, "{\"window\":1,\"on_unavailable\":true}",
        "on_unavailable: expected one of open, closed, got true.");
    bad(PUT, "/v1/guards/g", NULL, "{\"window\":1,\"durable\":\"yes\"}",
        "durable: expected true or false, got \"yes\".");
}

static void test_identities(void **state)
{
    (void)state;
    static const struct {
        const char *verb;
        enum hf_action action;
    } calls[] = { { "record", HF_RECORD }, { "admit", HF_ADMIT } };
    for (size_t i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "/v1/guards/g%%20h/%s", calls[i].verb);
        const struct hf_request *r = good(POST, path, NULL, "{\"identity\":\"i\"}");
        assert_int_equal(r->action, calls[i].action);
        same(r->identity.guard, "g h");
        same(r->identity.identity, "i");
        assert_false(r->identity.has_result);
        r = good(POST, path, NULL, "{\"identity\":\"i\",\"result\":\"done\"}");
        assert_true(r->identity.has_result);
        same(r->identity.result, "done");
        r = good(POST, path, NULL, "{\"identity\":\"i\",\"result\":null}");
        assert_true(r->identity.has_result);
        same_json(r->identity.result, "null", "null");
        bad(POST, path, NULL, "{\"result\":1}", "identity: missing, expected a string.");
        bad(POST, path, NULL, "{\"identity\":5}", "identity: expected a string, got 5.");
        bad(POST, path, NULL, "{\"identity\":\"i\",\"result\":{\"a\":1,\"a\":2}}",
            "result: duplicate member \"a\", the second one before byte 35.");
    }
    const struct hf_request *r =
        good(POST, "/v1/guards/g/check", NULL, "{\"identity\":\"a\\u0000b\"}");
    assert_int_equal(r->action, HF_CHECK);
    assert_int_equal(r->identity.identity.size, 3); /* an identity may be any bytes */
    bad(POST, "/v1/guards/g/check", NULL, "{\"identity\":\"i\",\"result\":1}",
        "Unknown member \"result\". This call takes identity.");
}

#define HEX "00112233445566778899aabbccddeeffABCDEFabcdef0123456789abcdef0123"

static void test_begin(void **state)
{
    (void)state;
    const struct hf_request *r =
        good(POST, "/v1/claims", NULL, "{\"key\":\"c\",\"fingerprint\":\"" HEX "\"}");
    assert_int_equal(r->action, HF_BEGIN);
    same(r->key, "c");
    assert_non_null(r->begin.fingerprint);
    assert_memory_equal(r->begin.fingerprint,
                        "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"
                        "\xab\xcd\xef\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23",
                        HF_DIGEST_SIZE);
    assert_int_equal(r->begin.lease_ms, 0);
    assert_int_equal(r->begin.retention_ms, 0);
    assert_int_equal(r->begin.on_abandon, HF_ABANDON_UNKNOWN);
    r = good(POST, "/v1/claims", "c",
             "{\"on_abandon\":\"retry\",\"lease\":\"5s\",\"retention\":\"90d\","
             "\"fingerprint\":\"abc\",\"key\":\"c\"}");
    assert_int_equal(r->begin.retention_ms, INT64_C(90) * 24 * 3600 * 1000);
    same(r->key, "c");
    assert_null(r->begin.fingerprint);
    same(r->begin.payload, "abc");
    assert_int_equal(r->begin.lease_ms, 5000);
    assert_int_equal(r->begin.on_abandon, HF_ABANDON_RETRY);
    r = good(POST, "/v1/claims", NULL,
             "{\"key\":\"c\",\"payload\":{\"b\" : [1, 2],\"\\u0061\":\"x\\/y\"}}");
    assert_null(r->begin.fingerprint);
    same(r->begin.payload, "{\"a\":\"x/y\",\"b\":[1,2]}");
    same(good(POST, "/v1/claims", NULL, "{\"key\":\"c\",\"payload\":\"abc\"}")->begin.payload,
         "\"abc\"");
    same(good(POST, "/v1/claims", NULL, "{\"key\":\"c\",\"payload\":null}")->begin.payload, "null");
    /* 63 and 65 digits, and 64 of which one is none, are text. */
    same(good(POST, "/v1/claims", NULL, "{\"key\":\"c\",\"fingerprint\":\"" HEX "0\"}")
             ->begin.payload,
         HEX "0");
    char text[65] = HEX, body[1200];
    text[63] = 'g';
    snprintf(body, sizeof body, "{\"key\":\"c\",\"fingerprint\":\"%s\"}", text);
    same(good(POST, "/v1/claims", NULL, body)->begin.payload, text);
    static const struct {
        const char *body, *detail;
    } wrong[] = {
        { "{\"key\":\"c\"}", "fingerprint, payload: expected exactly one of the two." },
        { "{\"key\":\"c\",\"payload\":1,\"fingerprint\":\"x\"}",
          "fingerprint, payload: expected exactly one of the two." },
        { "{\"payload\":1}", "key: it is missing. Send a key" },
        { "{\"key\":1,\"payload\":1}", "key: expected a string, got 1." },
        { "{\"key\":\"c\",\"fingerprint\":\"\"}", "fingerprint: expected 1 to 1024 bytes, got 0." },
        { "{\"key\":\"c\",\"fingerprint\":5}", "fingerprint: expected a string, got 5." },
        { "{\"key\":\"c\",\"payload\":1,\"on_abandon\":\"stop\"}",
          "on_abandon: expected one of unknown, retry, got \"stop\"." },
        { "{\"key\":\"c\",\"payload\":1,\"lease\":0}",
          "lease: expected a duration of at least 1ms, or nothing, got 0." },
        { "{\"key\":\"c\",\"payload\":1,\"lease\":\"0ms\"}",
          "lease: expected a duration of at least 1ms, or nothing" },
        { "{\"key\":\"c\",\"payload\":{\"x\":[1,{\"a\":1,\"a\":1}]}}",
          "payload: duplicate member \"a\"" },
        { "{\"key\":\"c\",\"payload\":[1,]}", "payload: expected a value at byte 24, got ']'." },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        bad(POST, "/v1/claims", NULL, wrong[i].body, wrong[i].detail);
    memset(body, 'x', sizeof body);
    memcpy(body, "{\"key\":\"c\",\"fingerprint\":\"", 26);
    memcpy(body + 26 + 1024, "\"}", 3);
    assert_int_equal(good(POST, "/v1/claims", NULL, body)->begin.payload.size, 1024);
    memcpy(body + 26 + 1024, "x\"}", 4);
    bad(POST, "/v1/claims", NULL, body, "fingerprint: expected 1 to 1024 bytes, got 1025.");
}

static void test_settle(void **state)
{
    (void)state;
    const struct hf_request *r = good(POST, "/v1/claims/c%2Fd/complete", NULL, "{\"fence\":7}");
    assert_int_equal(r->action, HF_COMPLETE);
    same(r->key, "c/d");
    assert_int_equal(r->settle.fence, 7);
    assert_int_equal(r->settle.response.size, 0);
    r = good(POST, "/v1/claims/c/complete", NULL, "{\"response\":{\"a\": 1},\"fence\":7}");
    same_json(r->settle.response, "{\"a\":1}", "{\"a\":1}");
    r = good(POST, "/v1/claims/c/fail", NULL, "{\"fence\":7,\"retryable\":true,\"error\":\"no\"}");
    assert_int_equal(r->action, HF_FAIL);
    assert_true(r->settle.retryable);
    same(r->settle.response, "no");
    assert_false(good(POST, "/v1/claims/c/fail", NULL, "{\"fence\":7}")->settle.retryable);
    r = good(POST, "/v1/claims/c/heartbeat", NULL, "{\"fence\":7,\"lease\":\"2m\"}");
    assert_int_equal(r->action, HF_HEARTBEAT);
    assert_int_equal(r->settle.fence, 7);
    assert_int_equal(r->settle.lease_ms, 120000);
    assert_int_equal(good(POST, "/v1/claims/c/heartbeat", NULL, "{\"fence\":7}")->settle.lease_ms,
                     0);
    bad(POST, "/v1/claims/c/heartbeat", NULL, "{\"fence\":7,\"lease\":0}",
        "lease: expected a duration of at least 1ms");
    bad(POST, "/v1/claims/c/complete", NULL, "{}", "fence: missing, expected a whole number.");
    bad(POST, "/v1/claims/c/complete", NULL, "{\"fence\":7,\"retryable\":true}",
        "Unknown member \"retryable\". This call takes fence, response.");
    bad(POST, "/v1/claims/c/fail", NULL, "{\"fence\":7,\"retryable\":\"yes\"}",
        "retryable: expected true or false");
    bad(POST, "/v1/claims/c/fail", NULL, "{\"fence\":7,\"response\":1}",
        "Unknown member \"response\"");
}

static void test_leases(void **state)
{
    (void)state;
    const struct hf_request *r =
        good(POST, "/v1/leases/n", "k", "{\"holder\":\"h\",\"ttl\":\"30s\"}");
    assert_int_equal(r->action, HF_GRANT);
    same(r->key, "k");
    same(r->lease.name, "n");
    same(r->lease.holder, "h");
    assert_int_equal(r->lease.ttl_ms, 30000);
    assert_int_equal(good(POST, "/v1/leases/n", "k", "{\"holder\":\"h\",\"ttl\":0}")->lease.ttl_ms,
                     0);
    r = good(POST, "/v1/leases/n/renew", NULL, "{\"fence\":3,\"ttl\":45}");
    assert_int_equal(r->action, HF_RENEW);
    same(r->lease.name, "n");
    assert_int_equal(r->lease.fence, 3);
    assert_int_equal(r->lease.ttl_ms, 45000);
    r = good(POST, "/v1/leases/n/release", NULL, "{\"fence\":3}");
    assert_int_equal(r->action, HF_RETURN);
    assert_int_equal(r->lease.fence, 3);
    bad(POST, "/v1/leases/n", "k", "{\"holder\":\"h\"}", "ttl: missing, expected a duration");
    bad(POST, "/v1/leases/n", "k", "{\"ttl\":1}", "holder: missing, expected a string.");
    bad(POST, "/v1/leases/n", "k", "{\"holder\":\"\\u0000\",\"ttl\":1}",
        "holder: expected text without NUL.");
    bad(POST, "/v1/leases/n/renew", NULL, "{\"fence\":3,\"ttl\":0}",
        "ttl: expected a duration of at least 1ms");
    bad(POST, "/v1/leases/n/renew", NULL, "{}", "fence: missing");
    bad(POST, "/v1/leases/n/release", NULL, "{\"fence\":3,\"ttl\":1}", "Unknown member \"ttl\"");
    bad(POST, "/v1/leases/n/release", NULL, NULL, "body: expected an object");
}

static void test_write(void **state)
{
    (void)state;
    const struct hf_request *r = good(PUT, "/v1/registers/n", "k", "{\"value\":\"v\"}");
    assert_int_equal(r->action, HF_WRITE);
    same(r->key, "k");
    same(r->write.name, "n");
    same(r->write.value, "v");
    assert_int_equal(r->write.fence, 0);
    assert_false(r->write.has_if_version);
    r = good(PUT, "/v1/registers/n", "k", "{\"if_version\":0,\"fence\":9,\"value\":[1, 2]}");
    assert_int_equal(r->write.fence, 9);
    assert_true(r->write.has_if_version);
    assert_int_equal(r->write.if_version, 0);
    same_json(r->write.value, "[1,2]", "[1,2]");
    assert_int_equal(
        good(PUT, "/v1/registers/n", "k", "{\"if_version\":12,\"value\":1}")->write.if_version, 12);
    bad(PUT, "/v1/registers/n", "k", "{\"fence\":9}", "value: missing, expected any JSON.");
    bad(PUT, "/v1/registers/n", "k", "{\"value\":1,\"if_version\":-1}",
        "if_version: expected a whole number");
    bad(PUT, "/v1/registers/n", "k", "{\"value\":1,\"if_version\":null}",
        "if_version: expected a whole number");
    bad(PUT, "/v1/registers/n", "k", "{\"value\":nul}",
        "value: expected true, false or null at byte 9, got 'n'.");
    bad(PUT, "/v1/registers/n", "k", "{\"value\":undefined}",
        "value: expected a value at byte 9, got 'u'.");
}

/* Idempotency-Key: bare or quoted, needed or not. */

static void test_keys(void **state)
{
    (void)state;
    static const struct {
        const char *field, *key;
    } fine[] = {
        { "abc", "abc" },
        { "\"abc\"", "abc" },
        { "", "" }, /* for the core to refuse */
        { "\"\"", "" },
        { "\"a\\\"b\\\\c\"", "a\"b\\c" },
        { "\"\\\\\"", "\\" },
        { "\"a b~\"", "a b~" },
        { "a\"b", "a\"b" },
        { "abc\"", "abc\"" },
        { "'abc'", "'abc'" },
        { "a\\\"b", "a\\\"b" },
        { "\xff\xfe", "\xff\xfe" },
        { "\"\xff\xc3\xa9\"", "\xff\xc3\xa9" },
        { "\"with, comma; and more\"", "with, comma; and more" },
    };
    static const char *const broken[] = {
        "\"",          "\"abc",    "\"a\"b\"",  "\"a\\\"",  "\"a\\b\"", "\"a\\u0062\"",
        "\"abc\";x=1", "\"abc\" ", "\"a\x1f\"", "\"a\tb\"", "\"\\",     "\"a\x7f\"",
    };
    static const char *const merged[] = { "a,b", "a, b", ",", "a,", "a,\"b\"", "'a,b'" };
    struct hf_bytes key;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        assert_true(hf_api_key(hf_str(fine[i].field), &decoded.arena, &key));
        same(key, fine[i].key);
        same(good(POST, "/v1/holds/x/confirm", fine[i].field, NULL)->key, fine[i].key);
    }
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_false(hf_api_key(hf_str(broken[i]), &decoded.arena, &key));
        bad(POST, "/v1/holds/x/confirm", broken[i], NULL,
            "Idempotency-Key: expected a bare key, or a string in quotes");
        /* Calls that need no key ignore it, if it is one. */
        bad(GET, "/v1/holds/x", broken[i], NULL, "Idempotency-Key: ");
        bad(GET, "/v1/holds", broken[i], NULL, "Idempotency-Key: ");
        bad(GET, "/v1/export", broken[i], NULL, "Idempotency-Key: ");
        bad(POST, "/v1/guards/g/check", broken[i], "{\"identity\":\"i\"}", "Idempotency-Key: ");
    }
    for (size_t i = 0; i < sizeof merged / sizeof *merged; i++) {
        assert_false(hf_api_key(hf_str(merged[i]), &decoded.arena, &key));
        bad(POST, "/v1/holds/x/confirm", merged[i], NULL,
            "Idempotency-Key: a key with a comma must be in quotes, because a proxy may have "
            "merged "
            "two headers. Send one key, or write it as \"a,b\".");
    }
    assert_int_equal(good(GET, "/v1/holds/x", "k", NULL)->key.size, 0);
    assert_int_equal(good(POST, "/v1/guards/g/check", "k", "{\"identity\":\"i\"}")->key.size, 0);
    /* A claim's key stands elsewhere; a header may only say the same. */
    same(good(POST, "/v1/claims/c/complete", "\"c\"", "{\"fence\":1}")->key, "c");
    bad(POST, "/v1/claims/c/complete", "k", "{\"fence\":1}",
        "Idempotency-Key: this header is not the claim's key, which is in the path.");
    bad(POST, "/v1/claims", "", "{\"key\":\"c\",\"payload\":1}",
        "Idempotency-Key: this header is not the claim's key, which is in the body.");
    same(good(GET, "/v1/claims/c", "k", NULL)->key, "c");
    assert_true(hf_api_key(hf_mem(NULL, 0), &decoded.arena, &key));
}

/* Every call that is marked K, without one. */
static void test_missing_keys(void **state)
{
    (void)state;
    unsigned count = 0;
    for (const struct hf_call *call = hf_calls; call < hf_calls + hf_call_count; call++) {
        struct hf_api_input in = { .params = { hf_str("x") } };
        struct hf_api_fault why = { .detail = "" };
        struct hf_request request;
        if (!call->key)
            continue;
        count++;
        assert_int_equal(hf_api_decode(call, &in, &decoded.arena, &request, &why),
                         HF_INVALID_REQUEST);
        assert_non_null(strstr(why.detail, "Idempotency-Key: this header is missing"));
    }
    assert_int_equal(count, 9);
}

/* Decode a call with the fields of a numbered client; NULL: without that field. */
static enum hf_status by_number(const char *path, const char *key, const char *client,
                                const char *sequence)
{
    struct hf_call_match match;
    struct hf_api_input in = { .has_key = key != NULL,
                               .key_field = hf_str(key),
                               .has_client = client != NULL,
                               .client_field = hf_str(client),
                               .has_sequence = sequence != NULL,
                               .sequence_field = hf_str(sequence) };
    hf_arena_reset(&decoded.arena);
    decoded.why.detail[0] = '\0';
    hf_call_find(POST, hf_str(path), &match);
    assert_non_null(match.call);
    in.params[0] = match.params[0];
    if (match.call->action == HF_CHECK)
        in.body = hf_str("{\"identity\":\"i\"}");
    if (match.call->action == HF_BEGIN)
        in.body = hf_str("{\"payload\":1}");
    return hf_api_decode(match.call, &in, &decoded.arena, &decoded.request, &decoded.why);
}

static void test_numbers_in_place_of_keys(void **state)
{
    (void)state;
    static const char confirm[] = "/v1/holds/x/confirm";
    assert_int_equal(by_number(confirm, NULL, "till 4", "7"), HF_OK);
    same(decoded.request.client, "till 4");
    assert_true(decoded.request.sequence == 7 && decoded.request.key.size == 0);
    assert_int_equal(by_number(confirm, NULL, "\"till \\\"4\\\"\"", "18446744073709551615"), HF_OK);
    same(decoded.request.client, "till \"4\"");
    assert_true(decoded.request.sequence == UINT64_MAX);
    assert_int_equal(by_number(confirm, NULL, "c", "0"), HF_OK); /* for the core to refuse */
    static const struct {
        const char *path, *key, *client, *sequence, *why;
    } wrong[] = {
        { confirm, NULL, "c", NULL, "Holdfast-Client, Holdfast-Sequence: expected both or none." },
        { confirm, NULL, NULL, "1", "Holdfast-Client, Holdfast-Sequence: expected both or none." },
        { confirm, "k", "c", "1", "Idempotency-Key, Holdfast-Client: expected one of the two." },
        { confirm, NULL, "", "1", "Holdfast-Client: expected a bare name" },
        { confirm, NULL, "\"c", "1", "Holdfast-Client: expected a bare name" },
        { confirm, NULL, "\xff", "1", "Holdfast-Client: expected UTF-8." },
        { confirm, NULL, "c", "", "Holdfast-Sequence: expected a whole number from 1." },
        { confirm, NULL, "c", "+1", "Holdfast-Sequence: expected a whole number from 1." },
        { confirm, NULL, "c", "1.0", "Holdfast-Sequence: expected a whole number from 1." },
        { confirm, NULL, "c", "18446744073709551616", "Holdfast-Sequence: expected a whole" },
        { "/v1/guards/g/check", NULL, "c", "x", "Holdfast-Sequence: expected a whole number" },
        { "/v1/claims", NULL, "c", "1", "key: it is missing." },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(by_number(wrong[i].path, wrong[i].key, wrong[i].client, wrong[i].sequence),
                         HF_INVALID_REQUEST);
        if (strncmp(decoded.why.detail, wrong[i].why, strlen(wrong[i].why)) != 0)
            fail_msg("case %zu: %s", i, decoded.why.detail);
    }
    assert_int_equal(by_number("/v1/guards/g/check", NULL, "c", "1"), HF_OK); /* ignored */
    assert_int_equal(decoded.request.client.size, 0);
}

static void test_what_happened_to_a_number(void **state)
{
    (void)state;
    const struct hf_request *r = good(GET, "/v1/tokens?client=till%204&sequence=9", NULL, NULL);
    assert_int_equal(r->action, HF_GET_TOKEN);
    same(r->client, "till 4");
    assert_true(r->sequence == 9 && r->key.size == 0);
    static const char *const wrong[] = { "/v1/tokens",
                                         "/v1/tokens?client=c",
                                         "/v1/tokens?sequence=1",
                                         "/v1/tokens?client=c&sequence=x",
                                         "/v1/tokens?client=%00&sequence=1",
                                         "/v1/tokens?client=c&sequence=1&key=k" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(decode_bytes(GET, wrong[i], NULL, hf_mem(NULL, 0)), HF_INVALID_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_hold),
        cmocka_unit_test(test_nothing_is_allocated),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_params),
        cmocka_unit_test(test_no_body),
        cmocka_unit_test(test_no_query),
        cmocka_unit_test(test_resources),
        cmocka_unit_test(test_guards),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_begin),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_leases),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_flaws),
        cmocka_unit_test(test_missing_keys),
        cmocka_unit_test(test_numbers_in_place_of_keys),
        cmocka_unit_test(test_what_happened_to_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, decode_end);
}
