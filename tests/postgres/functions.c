/* The SQL functions for holds and resources: each answer, replays and collisions, keys and their
 * windows. */
#include "postgres/kit/functions.h"
#include "server/kit/server.h"
#include "support/test.h"

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
    assert_int_equal(count("SELECT count(*) FROM holdfast.hold WHERE reversed_by IS NOT NULL"), 1);
    assert_int_equal(count("SELECT previous FROM holdfast.hold WHERE reverses IS NOT NULL"), 1);
    assert_int_equal(count("SELECT newest FROM holdfast.resource WHERE name = 'room-a'"), 4);
    assert_int_equal(count("SELECT count(*) FROM holdfast.token WHERE hold IS NOT NULL"), 7);
    char *released = place("r", "room-a", "1 ms");
    server_pause_ms(3);
    EXPECT(c, "ok", false, "release", "14", released); /* overdue, but still held */
    EXPECT(c, "not-known", false, "get_hold", "nothing");
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
    functions_fails(
        c, "22023",
        "SELECT holdfast.place_hold('6', 'room', 'guest', '1 hour', 18446744073709551616)");
    functions_fails(c, "22023", "SELECT holdfast.place_hold('6', 'room', 'guest', '1 hour', -1)");
    functions_fails(c, "22023", "SELECT holdfast.place_hold('6', 'room', 'guest', '1 hour', 1.5)");
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_place_hold),
        TEST(test_refusals_are_remembered),
        TEST(test_keys),
        TEST(test_tenants_are_apart),
        TEST(test_confirm_and_the_rest),
        TEST(test_overdue_holds_are_expired_on_the_way),
        TEST(test_fences_of_holds),
        TEST(test_strict_registry),
        TEST(test_resources),
        TEST(test_keys_are_free_again),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
