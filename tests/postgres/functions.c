/* The SQL functions for holds and resources: each answer, replays and collisions, keys and their
 * windows. */
#include "postgres/kit/functions.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "base/bytes.h"
#include "core/digest.h"
#include "core/match.h"
#include "store/postgres/id.h"
#include "store/postgres/migrate.h"

#include <utf8proc.h>

static struct postgres p;
static PGconn *c;

static int set_up(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

static void begin_with(const struct hf_options *options)
{
    functions_make(&p, options);
    c = postgres_connect(&p);
}

static int begin(void **state)
{
    (void)state;
    begin_with(&(struct hf_options){ 0 });
    return 0;
}

/* Whatever a test did, C can read the entries of it. */
static int end(void **state)
{
    (void)state;
    functions_check_journal(c);
    PQfinish(c);
    return 0;
}

static long long count(const char *query)
{
    return postgres_number(&p, query);
}

/* The id of a new hold. Owned. */
static char *place(const char *key, const char *resource, const char *duration)
{
    PGresult *got = CALL(c, "place_hold", key, resource, "guest", duration);
    assert_string_equal(functions_text(got, "status"), "ok");
    char *id = strdup(functions_text(got, "id"));
    PQclear(got);
    return id;
}

/* ---- Holds ---- */

static void test_place_hold(void **state)
{
    (void)state;
    PGresult *first = CALL(c, "place_hold", "k", "room", "guest", "15 minutes");
    assert_string_equal(functions_text(first, "status"), "ok");
    assert_string_equal(functions_text(first, "replayed"), "f");
    assert_string_equal(functions_text(first, "resource"), "room");
    assert_string_equal(functions_text(first, "requester"), "guest");
    assert_string_equal(functions_text(first, "state"), "held");
    assert_int_equal(strlen(functions_text(first, "id")), HF_ID_SIZE - 1);
    functions_run(c, "UPDATE holdfast.hold SET state = 'released', ended_at = placed_at");
    functions_run(c, "UPDATE holdfast.resource SET held = 0");
    PGresult *again = CALL(c, "place_hold", "k", "room", "guest", "900 seconds");
    for (int i = 0; i < PQnfields(first); i++) /* as it was, whatever became of the hold */
        if (i != PQfnumber(first, "replayed"))
            assert_string_equal(PQgetvalue(first, 0, i), PQgetvalue(again, 0, i));
    assert_string_equal(functions_text(again, "replayed"), "t");
    PQclear(first);
    PQclear(again);
    EXPECT(c, "token-collision", false, "place_hold", "k", "room", "guest", "16 minutes");
    EXPECT(c, "token-collision", false, "place_hold", "k", "room", "another", "15 minutes");
    EXPECT(c, "token-collision", false, "place_hold", "k", "room", "guest", "15 minutes", "1");
    EXPECT(c, "token-collision", false, "confirm", "k", "room");
    assert_int_equal(count("SELECT count(*) FROM holdfast.hold"), 1);
    assert_int_equal(count("SELECT count(*) FROM holdfast.journal"), 1);
}

static void test_refusals_are_remembered(void **state)
{
    (void)state;
    free(place("k1", "room", "1 hour"));
    EXPECT(c, "resource-unavailable", false, "place_hold", "k2", "room", "guest", "1 hour");
    EXPECT(c, "ok", false, "set_resource", "room", "2");
    EXPECT(c, "resource-unavailable", true, "place_hold", "k2", "room", "guest", "1 hour");
    EXPECT(c, "invalid-request", false, "place_hold", "k3", "", "guest", "1 hour");
    EXPECT(c, "invalid-request", true, "place_hold", "k3", "", "guest", "1 hour");
    EXPECT(c, "invalid-request", false, "place_hold", "k4", "room", "guest", "0");
    EXPECT(c, "invalid-request", false, "place_hold", "k5", "room", "guest", "-1 second");
    EXPECT(c, "invalid-request", true, "place_hold", "k5", "room", "guest", "-1 second");
    EXPECT(c, "invalid-request", false, "place_hold", "k6", "room", "guest", "3651 days");
    EXPECT(c, "ok", false, "place_hold", "k7", "room", "guest", "3650 days");
    EXPECT(c, "not-known", false, "confirm", "k8", "nothing");
    EXPECT(c, "not-known", true, "confirm", "k8", "NOTHING");
    EXPECT(c, "token-collision", false, "release", "k8", "nothing");
    char long_name[1026];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    EXPECT(c, "invalid-request", false, "place_hold", "k9", long_name, "guest", "1 hour");
    EXPECT(c, "ok", false, "place_hold", "k10", long_name + 1, "guest", "1 hour");
    assert_int_equal(count("SELECT count(*) FROM holdfast.token"), 10);
    assert_int_equal(count("SELECT count(*) FROM holdfast.journal"), 11);
}

/* Keys and tenants that are not well-formed are not remembered. */
static void test_keys(void **state)
{
    (void)state;
    char key[258];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    EXPECT(c, "invalid-request", false, "place_hold", "", "room", "guest", "1 hour");
    EXPECT(c, "invalid-request", false, "place_hold", key, "room", "guest", "1 hour");
    EXPECT(c, "invalid-request", false, "begin", key, "payload");
    EXPECT(c, "invalid-request", false, "complete", "", "1", "response");
    EXPECT(c, "invalid-request", false, "place_hold", "k", "room", "guest", "1 hour", "0",
           "a tenant whose name is longer than the sixty-four bytes that it may have");
    assert_int_equal(count("SELECT count(*) FROM holdfast.token"), 0);
    assert_int_equal(count("SELECT count(*) FROM holdfast.journal"), 0);
    EXPECT(c, "ok", false, "place_hold", key + 1, "room-1", "guest", "1 hour");
    EXPECT(c, "ok", false, "place_hold", "a\\b\\\\c", "room-2", "guest", "1 hour");
    EXPECT(c, "ok", true, "place_hold", "a\\b\\\\c", "room-2", "guest", "1 hour");
    EXPECT(c, "ok", false, "place_hold", "a\\\\b\\c", "room-3", "guest", "1 hour");
    assert_int_equal(count("SELECT count(*) FROM holdfast.token WHERE key = 'a\\\\b\\\\\\\\c'"), 1);
    EXPECT(c, "ok", false, "begin", "c\\d", "payload");
    IS(c, "c\\d", "key", "get_claim", "c\\d");
    EXPECT(c, "ok", false, "place_hold", "k", "room-\xc3\xa9", "guest", "1 hour");
}

static void test_tenants_are_apart(void **state)
{
    (void)state;
    char *id = place("k", "room", "1 hour");
    EXPECT(c, "ok", false, "place_hold", "k", "room", "guest", "2 hours", "0", "other");
    EXPECT(c, "not-known", false, "confirm", "k2", id, "other");
    EXPECT(c, "not-known", false, "get_hold", id, "other");
    EXPECT(c, "ok", false, "confirm", "k2", id);
    IS(c, "confirmed", "state", "get_hold", id);
    IS(c, "1", "held", "get_resource", "room", "other");
    IS(c, "0", "held", "get_resource", "room");
    free(id);
}

static void test_confirm_and_the_rest(void **state)
{
    (void)state;
    char *a = place("a", "room-a", "1 hour"), *b = place("b", "room-b", "1 hour"),
         *o = place("o", "room-o", "1 ms");
    server_pause_ms(3);
    EXPECT(c, "window-not-elapsed", false, "expire", "1", a);
    EXPECT(c, "ok", false, "confirm", "2", a);
    EXPECT(c, "ok", true, "confirm", "2", a);
    EXPECT(c, "not-held", false, "confirm", "3", a);
    EXPECT(c, "not-held", false, "release", "4", a);
    EXPECT(c, "not-held", false, "expire", "5", a);
    EXPECT(c, "not-held", false, "reverse", "6", b);
    EXPECT(c, "ok", false, "release", "7", b);
    EXPECT(c, "ok", true, "release", "7", b);
    EXPECT(c, "window-elapsed", false, "confirm", "8", o);
    EXPECT(c, "ok", false, "expire", "9", o);
    EXPECT(c, "not-held", false, "expire", "10", o);
    EXPECT(c, "window-elapsed", true, "confirm", "8", o);
    IS(c, a, "reverses", "reverse", "11", a);
    EXPECT(c, "ok", true, "reverse", "11", a);
    EXPECT(c, "not-held", false, "reverse", "12", a);
    IS(c, "confirmed", "state", "get_hold", a);
    char *reversal = COLUMN(c, "id", "reverse", "11", a);
    EXPECT(c, "not-held", false, "reverse", "13", reversal);
    IS(c, "released", "state", "get_hold", reversal);
    assert_int_equal(count("SELECT sum(held + confirmed) FROM holdfast.resource"), 0);
    assert_int_equal(count("SELECT count(*) FROM holdfast.hold WHERE succeeded_by IS NOT NULL"), 1);
    assert_int_equal(count("SELECT previous FROM holdfast.hold WHERE reverses IS NOT NULL"), 1);
    assert_int_equal(count("SELECT newest FROM holdfast.resource WHERE name = 'room-a'"), 4);
    assert_int_equal(count("SELECT count(*) FROM holdfast.token WHERE hold IS NOT NULL"), 7);
    char *released = place("r", "room-a", "1 ms");
    server_pause_ms(3);
    EXPECT(c, "ok", false, "release", "14", released); /* overdue, but still held */
    EXPECT(c, "not-known", false, "get_hold", "nothing");

    /* The payment comes late. */
    IS(c, o, "reacquires", "confirm", "15", o, "", "reacquire");
    EXPECT(c, "ok", true, "confirm", "15", o, "", "reacquire");
    IS(c, "confirmed", "state", "confirm", "15", o, "", "reacquire");
    IS(c, o, "reacquires", "confirm", "15", o, "", "reacquire");
    EXPECT(c, "token-collision", false, "confirm", "15", o);
    EXPECT(c, "not-held", false, "confirm", "16", o, "", "reacquire");
    IS(c, "expired", "state", "get_hold", o);
    char *overdue = place("v", "room-a", "1 ms");
    server_pause_ms(3);
    char *next = place("n", "room-a", "1 hour");
    EXPECT(c, "window-elapsed", false, "confirm", "17", overdue, "", "reacquire");
    EXPECT(c, "window-elapsed", true, "confirm", "17", overdue, "", "reacquire");
    EXPECT(c, "ok", false, "confirm", "18", next, "", "reacquire");
    IS(c, next, "id", "confirm", "18", next, "", "reacquire");
    assert_int_equal(count("SELECT count(*) FROM holdfast.hold WHERE reacquires IS NOT NULL"), 1);
    free(overdue);
    free(next);
    free(a);
    free(b);
    free(o);
    free(reversal);
    free(released);
}

static void test_overdue_holds_are_expired_on_the_way(void **state)
{
    (void)state;
    EXPECT(c, "ok", false, "set_resource", "room", "10");
    for (int i = 0; i < 10; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        free(place(key, "room", "1 ms"));
        functions_run(c, "UPDATE holdfast.hold SET expires_at = placed_at + interval '1 hour' "
                         "WHERE state = 'held'");
    }
    EXPECT(c, "resource-unavailable", false, "place_hold", "full", "room", "guest", "1 hour");
    functions_run(c, "UPDATE holdfast.hold SET expires_at = placed_at + interval '1 millisecond'");
    free(place("first", "room", "1 hour")); /* eight are expired */
    assert_int_equal(count("SELECT count(*) FROM holdfast.hold WHERE state = 'expired'"), 8);
    assert_int_equal(count("SELECT held FROM holdfast.resource"), 3);
    EXPECT(c, "ok", false, "set_resource", "room", "0", "false");
    EXPECT(c, "resource-unavailable", false, "place_hold", "closed", "room", "guest", "1 hour");
    assert_int_equal(count("SELECT held FROM holdfast.resource"),
                     1); /* two more, by a call that was refused */
    assert_int_equal(
        count("SELECT get_byte(entry, 11) FROM holdfast.journal ORDER BY number DESC LIMIT 1"), 3);
}

static void digest_is(const char *key, const struct hf_request *request);

static void test_fences_of_holds(void **state)
{
    (void)state;
    EXPECT(c, "ok", false, "set_resource", "room", "10");
    EXPECT(c, "ok", false, "place_hold", "1", "room", "guest", "1 hour", "7");
    EXPECT(c, "stale-fence", false, "place_hold", "2", "room", "guest", "1 hour", "7");
    EXPECT(c, "ok", false, "place_hold", "3", "room", "guest", "1 hour");
    EXPECT(c, "ok", false, "place_hold", "4", "room", "guest", "1 hour", NULL);
    EXPECT(c, "ok", false, "place_hold", "5", "room", "guest", "1 hour", "18446744073709551615");
    EXPECT(c, "ok", true, "place_hold", "5", "room", "guest", "1 hour", "18446744073709551615");
    IS(c, "18446744073709551615", "fence", "get_resource", "room");
    static const char *const none[] = { "18446744073709551616", "-1", "1.5", "NaN", "1e30" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char key[8];
        snprintf(key, sizeof key, "f%zu", i);
        EXPECT(c, "invalid-request", false, "place_hold", key, "room", "guest", "1 hour", none[i]);
        EXPECT(c, "invalid-request", true, "place_hold", key, "room", "guest", "1 hour", none[i]);
        EXPECT(c, "token-collision", false, "place_hold", key, "room", "guest", "1 hour", "7");
        EXPECT(c, "token-collision", false, "place_hold", key, "room", "guest", "1 hour");
    }
}

/* What a call needs and does not have is remembered, like every other refusal. */
static void test_missing_arguments_are_remembered(void **state)
{
    (void)state;
    struct hf_flaw missing[] = { { "requester", { 0 } }, { "resource", { 0 } } };
    struct hf_invalid invalid = { missing, 1, hf_str("") };
    struct hf_request r = { .action = HF_PLACE_HOLD, .invalid = &invalid };
    r.place_hold.resource = hf_str("room");
    r.place_hold.duration_ms = 60000;
    for (int i = 0; i < 2; i++)
        EXPECT(c, "invalid-request", i == 1, "place_hold", "m1", "room", NULL, "1 minute");
    digest_is("m1", &r);
    EXPECT(c, "token-collision", false, "place_hold", "m1", "room", "", "1 minute");
    EXPECT(c, "token-collision", false, "place_hold", "m1", "room", "guest", "1 minute");
    EXPECT(c, "invalid-request", false, "place_hold", "m2", "room", "guest", NULL);
    EXPECT(c, "invalid-request", false, "place_hold", "m3", NULL, NULL, NULL);
    EXPECT(c, "invalid-request", true, "place_hold", "m3", NULL, NULL, NULL);
    EXPECT(c, "invalid-request", false, "place_hold", "m4", "room", "guest", "178000000 years");
    for (int i = 0; i < 2; i++) {
        EXPECT(c, "invalid-request", i == 1, "confirm", "m5", NULL);
        EXPECT(c, "invalid-request", i == 1, "reverse", "m6", NULL);
        EXPECT(c, "invalid-request", i == 1, "confirm", "m7", "x", "", "later");
        EXPECT(c, "invalid-request", i == 1, "grant_lease", "m8", "n", NULL, "1 hour");
        EXPECT(c, "invalid-request", i == 1, "write", "m9", NULL, "value");
        EXPECT(c, "invalid-request", i == 1, "write", "m10", "n", "value", "-1");
        EXPECT(c, "invalid-request", i == 1, "write", "m11", "n", "value", NULL, "-1");
    }
    EXPECT(c, "token-collision", false, "confirm", "m7", "x", "", "sooner");
    EXPECT(c, "token-collision", false, "confirm", "m7", "x");
    functions_run(c, "DO $$ BEGIN FOR i IN 0..1 LOOP ASSERT (SELECT status = 'invalid-request' AND "
                     "replayed = (i = 1) FROM holdfast.write('m12', 'n', NULL::bytea)); END LOOP; "
                     "END $$");
    assert_int_equal(count("SELECT count(*) FROM holdfast.resource"), 0);
    assert_int_equal(count("SELECT count(*) FROM holdfast.register"), 0);
    functions_check_journal(c);
}

static void test_strict_registry(void **state)
{
    (void)state;
    PQfinish(c);
    begin_with(&(struct hf_options){ .registry = HF_REGISTRY_STRICT });
    EXPECT(c, "resource-unavailable", false, "place_hold", "1", "room", "guest", "1 hour");
    EXPECT(c, "ok", false, "set_resource", "room");
    EXPECT(c, "resource-unavailable", true, "place_hold", "1", "room", "guest", "1 hour");
    EXPECT(c, "ok", false, "place_hold", "2", "room", "guest", "1 hour");
}

static void test_resources(void **state)
{
    (void)state;
    EXPECT(c, "not-known", false, "get_resource", "room");
    EXPECT(c, "ok", false, "set_resource", "room", "3");
    EXPECT(c, "ok", false, "set_resource", "room", "3");
    EXPECT(c, "ok", false, "set_resource", "room", "0", "true");
    assert_int_equal(count("SELECT count(*) FROM holdfast.journal"),
                     1); /* what changes nothing leaves no entry */
    free(place("a", "room", "1 hour"));
    free(place("b", "room", "1 hour"));
    EXPECT(c, "resource-unavailable", false, "set_resource", "room", "1");
    EXPECT(c, "ok", false, "set_resource", "room", "2");
    EXPECT(c, "invalid-request", false, "set_resource", "room", "1000000001");
    EXPECT(c, "invalid-request", false, "set_resource", "room", "-1");
    EXPECT(c, "invalid-request", false, "set_resource", "");
    EXPECT(c, "invalid-request", false, "get_resource", "");
    EXPECT(c, "ok", false, "set_resource", "room", NULL, "f");
    IS(c, "f", "open", "get_resource", "room");
    IS(c, "2", "held", "get_resource", "room");
    EXPECT(c, "ok", false, "set_resource", "big", "1000000000");
}

/* ---- Windows ---- */

static void test_keys_are_free_again(void **state)
{
    (void)state;
    PQfinish(c);
    begin_with(&(struct hf_options){ .idempotency_window_ms = 1 });
    free(place("k", "room-1", "1 hour"));
    server_pause_ms(3);
    EXPECT(c, "not-known", false, "get_claim", "k");
    IS(c, "not-known", "status", "token_status", "k");
    free(place("k", "room-2", "2 hours"));
    server_pause_ms(3);
    PGresult *got = CALL(c, "begin", "k", "payload");
    assert_string_equal(functions_text(got, "state"), "started");
    char *fence = strdup(functions_text(got, "fence"));
    PQclear(got);
    server_pause_ms(3); /* a claim that is not settled does not leave */
    EXPECT(c, "token-collision", false, "place_hold", "k", "room-3", "guest", "1 hour");
    EXPECT(c, "ok", false, "complete", "k", fence, "response");
    server_pause_ms(3);
    EXPECT(c, "not-known", false, "complete", "k", fence, "response");
    free(place("k", "room-3", "1 hour"));
    assert_int_equal(count("SELECT count(*) FROM holdfast.token"), 1);
    assert_int_equal(count("SELECT count(*) FROM holdfast.token WHERE num_nulls(state, on_abandon, "
                           "fence, lease_ms, lease_expires_at, settled_at, response) = 7"),
                     1);
    free(fence);
}

/* The SQL functions and src/core agree on bytes: ids of holds, digests of requests, and when two
 * identities are the same. */

static struct hf_plan plan;

static int match_set_up(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    functions_make(&p, &(struct hf_options){ 0 });
    c = postgres_connect(&p);
    plan.scratch = malloc(HF_PLAN_SCRATCH);
    return plan.scratch ? 0 : -1;
}

static int match_tear_down(void **state)
{
    (void)state;
    free(plan.scratch);
    PQfinish(c);
    postgres_end(&p);
    return 0;
}

static bool full(void)
{
    const char *scale = getenv("HF_SCALE");
    return scale && strcmp(scale, "full") == 0;
}

/* ---- Ids ---- */

static void test_ids(void **state)
{
    (void)state;
    static const int64_t ordinals[] = { 1, 2, 255, 256, 65536, INT64_C(1) << 32, INT64_MAX };
    PGresult *key =
        PQexecParams(c, "SELECT id_key FROM holdfast.store", 0, NULL, NULL, NULL, NULL, 1);
    uint8_t secret[HF_PG_ID_KEY];
    assert_int_equal(PQgetlength(key, 0, 0), sizeof secret);
    memcpy(secret, PQgetvalue(key, 0, 0), sizeof secret);
    PQclear(key);
    for (size_t i = 0; i < 200 + sizeof ordinals / sizeof *ordinals; i++) {
        int64_t ordinal = i < 200 ? (int64_t)i * 7919 : ordinals[i - 200];
        char text[32], id[HF_ID_SIZE], upper[HF_ID_SIZE];
        snprintf(text, sizeof text, "%lld", (long long)ordinal);
        hf_pg_id_make(secret, (uint64_t)ordinal, id);
        IS(c, id, "hold_id", "hold_id", text);
        for (size_t k = 0; k < sizeof id; k++)
            upper[k] = (char)(id[k] >= 'a' && id[k] <= 'z' ? id[k] - 'a' + 'A' : id[k]);
        IS(c, text, "hold_ordinal", "hold_ordinal", id);
        IS(c, text, "hold_ordinal", "hold_ordinal", upper);
        id[i % 26] = id[i % 26] == '0' ? '1' : '0';
        uint64_t ignored;
        assert_false(hf_pg_id_read(secret, hf_str(id), &ignored));
        IS(c, "", "hold_ordinal", "hold_ordinal", id);
    }
    static const char *const wrong[] = { "",
                                         "0",
                                         "00000000000000000000000000",
                                         "80000000000000000000000000",
                                         "uuuuuuuuuuuuuuuuuuuuuuuuuu",
                                         "0000000000000000000000000\xc3\xa9",
                                         "0000000000000000000000000\n",
                                         "000000000000000000000000000" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        IS(c, "", "hold_ordinal", "hold_ordinal", wrong[i]);
}

/* ---- Digests ---- */

static void digest_is(const char *key, const struct hf_request *request)
{
    uint8_t digest[HF_DIGEST_SIZE];
    char hex[3 + 2 * HF_DIGEST_SIZE] = "\\x";
    hf_digest(request, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 + 2 * i, 3, "%02x", digest[i]);
    IS(c, hex, "digest", "token_status", key);
}

static void test_digests(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_PLACE_HOLD };
    r.place_hold.resource = hf_str("r\xc3\xb6om");
    r.place_hold.requester = hf_str("guest \\ \"91\"");
    r.place_hold.duration_ms = 900001;
    PQclear(CALL(c, "place_hold", "d1", "r\xc3\xb6om", "guest \\ \"91\"", "900.001 seconds"));
    digest_is("d1", &r);
    r.place_hold.fence = UINT64_MAX - 1;
    PQclear(CALL(c, "place_hold", "d2", "r\xc3\xb6om", "guest \\ \"91\"", "900.001 seconds",
                 "18446744073709551614"));
    digest_is("d2", &r);
    r.place_hold.duration_ms = -2000;
    PQclear(CALL(c, "place_hold", "d3", "r\xc3\xb6om", "guest \\ \"91\"", "-2 seconds",
                 "18446744073709551614"));
    digest_is("d3", &r);
    r = (struct hf_request){ .action = HF_CONFIRM, .hold.id = hf_str("NOT an \xc3\x84 ID") };
    PQclear(CALL(c, "confirm", "d4", "NOT an \xc3\x84 ID"));
    digest_is("d4", &r);
    r = (struct hf_request){ .action = HF_GRANT };
    r.lease.name = hf_str("leader");
    r.lease.holder = hf_str("me");
    r.lease.ttl_ms = 1;
    PQclear(CALL(c, "grant_lease", "d5", "leader", "me", "1 millisecond"));
    digest_is("d5", &r);
    r = (struct hf_request){ .action = HF_WRITE };
    r.write.name = hf_str("name");
    r.write.value = hf_str("");
    PQclear(CALL(c, "write", "d6", "name", ""));
    digest_is("d6", &r);
    r.write.has_if_version = true;
    r.write.fence = 1;
    PQclear(CALL(c, "write", "d7", "name", "", "1", "0"));
    digest_is("d7", &r);
    r = (struct hf_request){ .action = HF_BEGIN, .begin.payload = hf_str("payload") };
    PQclear(CALL(c, "begin", "d8", "payload"));
    digest_is("d8", &r);
}

/* ---- Identities ---- */

/* As hf_match_apply has it: {NULL, 0} if it is not valid. */
static struct hf_bytes expected(const char *rule, struct hf_bytes identity)
{
    static const char *const names[] = { "exact", "trim", "casefold", "normalize", "hash" };
    struct hf_guard guard = { .window_ms = 1 };
    char copy[64];
    snprintf(copy, sizeof copy, "%s", rule);
    for (char *save = NULL, *step = strtok_r(copy, ",", &save); step;
         step = strtok_r(NULL, ",", &save))
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(step, names[i]) == 0)
                guard.match[guard.match_count++] = (enum hf_match)(i + 1);
    assert_true(hf_match_valid(guard.match, guard.match_count));
    hf_plan_reset(&plan);
    struct hf_bytes out;
    return hf_match_apply(&guard, identity, &plan, &out) == HF_OK ? out : hf_mem(NULL, 0);
}

enum { GROUP = 512, IDENTITY_ROOM = 1024 };

struct group {
    const char *rule;
    size_t count, agreed, same; /* same: of `agreed`, identities that the rule leaves as they are */
    struct hf_bytes identities[GROUP];
    unsigned char room[GROUP][IDENTITY_ROOM];
};

static void fail_identity(const struct group *g, struct hf_bytes identity, struct hf_bytes is)
{
    struct hf_bytes expects = expected(g->rule, identity);
    const struct hf_bytes all[] = { identity, is, expects };
    static const char *const names[] = { "identity", "in SQL", "in C" };
    for (size_t a = 0; a < 3; a++) {
        fprintf(stderr, "%-8s", names[a]);
        for (size_t k = 0; k < all[a].size; k++)
            fprintf(stderr, " %02x", ((const unsigned char *)all[a].data)[k]);
        fputc('\n', stderr);
    }
    fail_msg("another form under %s", g->rule);
}

/* _match for each of the group; every answer must be the core's. */
static void group_ask(struct group *g)
{
    if (g->count == 0)
        return;
    static const char *const sql = "SELECT coalesce(holdfast._match($1, x), '') FROM "
                                   "unnest($2::bytea[]) WITH ORDINALITY u(x, i) ORDER BY i";
    static char array[GROUP * (2 * IDENTITY_ROOM + 8)];
    static const char digits[] = "0123456789abcdef";
    char *at = array;
    for (size_t i = 0; i < g->count; i++) {
        const unsigned char *bytes = g->identities[i].data;
        memcpy(at, i ? ",\"\\\\x" : "{\"\\\\x", 6);
        at += 5;
        for (size_t k = 0; k < g->identities[i].size; k++) {
            *at++ = digits[bytes[k] >> 4];
            *at++ = digits[bytes[k] & 15];
        }
        *at++ = '"';
    }
    memcpy(at, "}", 2);
    const char *values[] = { g->rule, array };
    PGresult *got = PQexecParams(c, sql, 2, NULL, values, NULL, NULL, 1);
    if (PQresultStatus(got) != PGRES_TUPLES_OK)
        fail_msg("%s", PQresultErrorMessage(got));
    assert_int_equal(PQntuples(got), g->count);
    for (size_t i = 0; i < g->count; i++) {
        struct hf_bytes is =
            hf_mem(PQgetvalue(got, (int)i, 0), (size_t)PQgetlength(got, (int)i, 0));
        if (!hf_bytes_equal(is, expected(g->rule, g->identities[i])))
            fail_identity(g, g->identities[i], is);
        g->agreed++;
        g->same += hf_bytes_equal(is, g->identities[i]);
    }
    PQclear(got);
    g->count = 0;
}

static void group_add(struct group *g, const unsigned char *bytes, size_t size)
{
    assert_true(size <= IDENTITY_ROOM);
    memcpy(g->room[g->count], bytes, size);
    g->identities[g->count] = hf_mem(g->room[g->count], size);
    if (++g->count == GROUP)
        group_ask(g);
}

/* The next character, without surrogates. */
static int32_t next_point(int32_t point)
{
    return point == 0xd7ff ? 0xe000 : point + 1;
}

/* Ideographs, characters for private use, and code points that Unicode has not assigned: no
 * rule treats them in different ways. */
static bool is_plain(int32_t point)
{
    return (point >= 0x3400 && point < 0xa000) || (point > 0xe000 && point < 0xf8ff) ||
           (point >= 0x20000 && point < 0x2f800) || (point >= 0x30000 && point < 0xe0000) ||
           point >= 0xe1000;
}

static size_t put(unsigned char *at, const char *text)
{
    memcpy(at, text, strlen(text));
    return strlen(text);
}

/* Every character, with the same text before and after each: many of them in one identity, because
 * a call takes longer than a character. plain: those that is_plain has, too. */
static void every_character(const char *rule, const char *before, const char *after, bool plain)
{
    enum { TEXT_MAX = 320 }; /* its form has at most three times as much */
    static struct group g;
    unsigned char text[TEXT_MAX + 64];
    size_t size = 0;
    g = (struct group){ .rule = rule };
    for (int32_t point = 1; point <= 0x10ffff; point = next_point(point)) {
        bool bare = is_plain(point) && point % 8 != 0 && !full(); /* beside another plain one */
        if (!plain && is_plain(point))
            continue;
        size += bare ? 0 : put(text + size, before);
        size += (size_t)utf8proc_encode_char(point, text + size);
        size += bare ? 0 : put(text + size, after);
        if (size >= TEXT_MAX) {
            group_add(&g, text, size);
            size = 0;
        }
    }
    if (size > 0)
        group_add(&g, text, size);
    group_ask(&g);
    printf("%s, \"%s\" and \"%s\": %zu agree, %zu are not changed\n", rule, before, after, g.agreed,
           g.same);
}

/* Each that the rule changes, or that is a mark, by itself; and each of the first planes. */
static void every_character_alone(const char *rule)
{
    static struct group g;
    g = (struct group){ .rule = rule };
    for (int32_t point = 1; point <= 0x10ffff; point = next_point(point)) {
        unsigned char text[4];
        struct hf_bytes one = hf_mem(text, (size_t)utf8proc_encode_char(point, text));
        if (point < 0x3400 || point % 61 == 0 || utf8proc_category(point) == UTF8PROC_CATEGORY_MN ||
            !hf_bytes_equal(expected(rule, one), one))
            group_add(&g, text, one.size);
    }
    group_ask(&g);
    printf("%s, alone: %zu agree, %zu are not changed\n", rule, g.agreed, g.same);
    assert_true(g.agreed > 20000);
}

static void test_every_character(void **state)
{
    (void)state;
    static const char *const rules[] = { "casefold", "normalize" };
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        every_character_alone(rules[r]);
        every_character(rules[r], "", "-", true);
        every_character(rules[r], "", "\xcc\x88", full() || r == 0); /* between two diaereses */
        every_character(rules[r], "E", "\xcc\x88", full());
        /* a cedilla before it; an acute, and a dot below, which goes before that */
        every_character(rules[r], "a\xcc\xa7", "\xcc\x81\xcc\xa3", full());
        /* Hangul: behind a syllable and a first consonant, before a final consonant and a vowel */
        every_character(rules[r], "\xea\xb0\x80", "\xe1\x86\xa8", full());
        every_character(rules[r], "\xe1\x84\x80", "\xe1\x85\xa1", full());
    }
    every_character_alone("trim");
    every_character("trim", "", "", true);
}

static int32_t some_character(uint64_t *random)
{
    static const struct {
        int32_t from, count;
    } kinds[] = { { 0x20, 95 },     { 0x9, 5 },       { 0xa0, 0x2b0 },  { 0x300, 0x70 },
                  { 0x300, 0x50 },  { 0x340, 8 },     { 0x370, 0x200 }, { 0x591, 40 },
                  { 0x900, 0x80 },  { 0x9be, 0x20 },  { 0xb3e, 0x1a },  { 0xe01, 0x5a },
                  { 0x1100, 0x13 }, { 0x1161, 0x15 }, { 0x11a7, 0x1c }, { 0x1e00, 0x200 },
                  { 0x2000, 0x70 }, { 0x3040, 0x60 }, { 0xac00, 600 },  { 0xac00, 2 },
                  { 0x4e00, 2000 }, { 0xfb00, 0x50 }, { 0xfe00, 0x10 }, { 0x1f600, 80 },
                  { 0x20d0, 0x21 }, { 0xf71, 0x14 },  { 0x1d157, 16 },  { 0x110a5, 0x17 },
                  { 0x11131, 2 },   { 0x2f800, 40 },  { 0x10400, 80 },  { 0xe000, 3 } };
    if (test_below(random, 16) == 0) /* any at all */
        return next_point((int32_t)test_below(random, 0xd7ff));
    size_t kind = (size_t)test_below(random, sizeof kinds / sizeof *kinds);
    return kinds[kind].from + (int32_t)test_below(random, (uint64_t)kinds[kind].count);
}

/* kind: 0 characters; 1 with NULs; 2 marks behind few letters; 3 bytes, some of them no text */
static size_t some_identity(uint64_t *random, int kind, unsigned char *text)
{
    size_t size = 0, count = 1 + (size_t)test_below(random, kind == 2 ? 100 : 30);
    for (size_t k = 0; k < count; k++) {
        int32_t point = some_character(random);
        if (kind == 1 && test_below(random, 4) == 0)
            point = 0;
        while (kind == 2 && k % 25 > 0 && utf8proc_get_property(point)->combining_class == 0)
            point = some_character(random);
        size += (size_t)utf8proc_encode_char(point, text + size);
    }
    if (kind == 3)
        text[test_below(random, size)] = (unsigned char)test_below(random, 256);
    return size;
}

static void test_random_identities(void **state)
{
    (void)state;
    static struct group g;
    static const char *const rules[] = { "trim,casefold,normalize",
                                         "normalize,trim,hash",
                                         "casefold,hash",
                                         "normalize,casefold,trim",
                                         "exact,hash",
                                         "exact",
                                         "casefold",
                                         "normalize",
                                         "trim" };
    uint64_t random = test_seed("identities", 20);
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        g = (struct group){ .rule = rules[r] };
        for (int i = 0; i < (full() ? 16384 : 2048); i++) {
            unsigned char text[IDENTITY_ROOM];
            group_add(&g, text, some_identity(&random, i % 4, text));
        }
        group_ask(&g);
    }
}

/* What became of an identity depends on no locale: in Turkish, I and i are two letters. */
static void test_locale_of_the_database(void **state)
{
    (void)state;
    if (postgres_number(&p,
                        "SELECT count(*) FROM pg_attribute WHERE attrelid = "
                        "'pg_database'::regclass AND attname IN ('daticulocale', 'datlocale')") *
            postgres_number(&p, "SELECT count(*) FROM pg_collation WHERE collprovider = 'i'") ==
        0)
        skip(); /* PostgreSQL 14, or built without ICU */
    functions_run(c,
                  "CREATE DATABASE turkish TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'tr'");
    char conninfo[POSTGRES_CONNINFO_MAX + 32], *unicode = hf_pg_unicode_sql();
    snprintf(conninfo, sizeof conninfo, "%s dbname=turkish", postgres_conninfo(&p));
    PGconn *first = c;
    c = PQconnectdb(conninfo);
    functions_run(c, "SET client_min_messages = warning; CREATE SCHEMA holdfast");
    for (int i = 0; i < hf_pg_migration_count; i++)
        functions_run(c, hf_pg_migrations[i].sql);
    functions_run(c, unicode);
    free(unicode);
    every_character_alone("casefold");
    PQfinish(c);
    c = first;
}

/* No identity makes a call fail: a failed call would roll the caller's transaction back. */
static void test_no_identity_raises(void **state)
{
    (void)state;
    EXPECT(c, "ok", false, "set_guard", "fold", "1 hour", "casefold");
    EXPECT(c, "ok", false, "set_guard", "trim", "1 hour", "trim");
    functions_run(
        c, "DO $$ BEGIN ASSERT (holdfast.admit('fold', E'\\u10a0')).status = 'ok'; " /* Georgian */
           "ASSERT (holdfast.admit('fold', E'\\u2d00')).seen; "
           "ASSERT NOT (holdfast.check_seen('fold', E'\\U0001fae8')).seen; " /* of Unicode 15 */
           "ASSERT NOT (holdfast.admit('fold', E'\\u0e19\\u0e49\\u0e33')).seen; "
           "ASSERT (holdfast.admit('fold', E'\\u0e19\\u0e49\\u0e33')).seen; "
           "ASSERT NOT (holdfast.admit('trim', '\\x204100'::bytea)).seen; "
           "ASSERT (holdfast.check_seen('trim', '\\x410020'::bytea)).status = 'ok'; "
           "ASSERT (holdfast.check_seen('trim', '\\x4100'::bytea)).seen; "
           "ASSERT (holdfast.admit('trim', E'\\u10a0')).status = 'ok'; "
           "ASSERT (holdfast.admit('fold', '\\xff'::bytea)).status = 'invalid-request'; "
           "ASSERT (holdfast.admit('trim', '\\xeda080'::bytea)).status = 'invalid-request'; "
           "ASSERT (holdfast.admit('trim', E' \\u3000\\t')).status = 'invalid-request'; "
           /* Two bytes become three here, and then there are too many. */
           "ASSERT (holdfast.admit('fold', repeat(E'\\u0149', 512))).status = 'invalid-request'; "
           "ASSERT (holdfast.admit('fold', repeat(E'\\u0149', 341))).status = 'ok'; END $$");
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.guard_entry"), 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest functions_tests[] = {
        TEST(test_place_hold),
        TEST(test_refusals_are_remembered),
        TEST(test_keys),
        TEST(test_tenants_are_apart),
        TEST(test_confirm_and_the_rest),
        TEST(test_overdue_holds_are_expired_on_the_way),
        TEST(test_fences_of_holds),
        TEST(test_missing_arguments_are_remembered),
        TEST(test_strict_registry),
        TEST(test_resources),
        TEST(test_keys_are_free_again),
    };
    const struct CMUnitTest functions_match_tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_random_identities),
        cmocka_unit_test(test_locale_of_the_database),
        cmocka_unit_test(test_no_identity_raises),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(functions_tests, set_up, tear_down);
    failed += cmocka_run_group_tests(functions_match_tests, match_set_up, match_tear_down);
    return failed;
}
