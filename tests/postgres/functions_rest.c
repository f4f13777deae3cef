/* The SQL functions for claims, guards, leases, registers and keys: each answer; misuse; and what a
 * rollback leaves. */
#include "postgres/kit/functions.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "core/action.h"

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

static int begin(void **state)
{
    (void)state;
    functions_make(&p, &(struct hf_options){ 0 });
    c = postgres_connect(&p);
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

/* A number's neighbour. */
static const char *next_to(const char *number, int step)
{
    static char text[24];
    snprintf(text, sizeof text, "%lld", strtoll(number, NULL, 10) + step);
    return text;
}

/* ---- Claims ---- */

static void test_claims(void **state)
{
    (void)state;
    functions_run(c, "SELECT setval('holdfast.fence', 40)");
    PGresult *got = CALL(c, "begin", "k", "payload");
    assert_string_equal(functions_text(got, "status"), "ok");
    assert_string_equal(functions_text(got, "state"), "started");
    assert_string_equal(functions_text(got, "lease_ms"), "60000");
    assert_string_equal(functions_text(got, "on_abandon"), "unknown");
    assert_string_equal(functions_text(got, "fence"), "41");
    PQclear(got);
    EXPECT(c, "in-progress", false, "begin", "k", "payload");
    IS(c, "41", "fence", "begin", "k", "payload"); /* the refusal has the claim */
    EXPECT(c, "token-collision", false, "begin", "k", "another payload");
    EXPECT(c, "token-collision", false, "place_hold", "k", "room", "guest", "1 hour");
    EXPECT(c, "not-known", false, "complete", "other", "41", "response");
    EXPECT(c, "stale-fence", false, "complete", "k", "40", "response");
    IS(c, "41", "fence", "complete", "k", "40", "response");
    EXPECT(c, "invalid-request", false, "complete", "k", "42", "response");
    IS(c, "41", "fence", "complete", "k", "42", "response");
    EXPECT(c, "invalid-request", false, "complete", "k", "0", "response");
    EXPECT(c, "invalid-request", false, "complete", "k", "-1", "response");
    EXPECT(c, "ok", false, "heartbeat", "k", "41", "2 minutes");
    IS(c, "120000", "lease_ms", "get_claim", "k");
    EXPECT(c, "ok", false, "heartbeat", "k", "41");
    EXPECT(c, "ok", false, "heartbeat", "k", "41", "0");
    EXPECT(c, "invalid-request", false, "heartbeat", "k", "41", "-1 second");
    EXPECT(c, "stale-fence", false, "abandon", "k", "40");
    EXPECT(c, "ok", false, "abandon", "k", "41");
    IS(c, "unknown", "state", "get_claim", "k");
    char *since = COLUMN(c, "lease_expires_at", "get_claim", "k");
    EXPECT(c, "ok", false, "abandon", "k", "41"); /* it stays unknown since then */
    IS(c, since, "lease_expires_at", "get_claim", "k");
    free(since);
    EXPECT(c, "outcome-unknown", false, "begin", "k", "payload");
    EXPECT(c, "ok", false, "complete", "k", "41", "response");
    EXPECT(c, "ok", true, "complete", "k", "41", "response");
    EXPECT(c, "token-collision", false, "complete", "k", "41", "another");
    EXPECT(c, "token-collision", false, "fail", "k", "41", "response");
    EXPECT(c, "not-held", false, "heartbeat", "k", "41");
    EXPECT(c, "not-held", false, "abandon", "k", "41");
    EXPECT(c, "ok", true, "begin", "k", "payload");
    IS(c, "\\x726573706f6e7365", "response", "begin", "k", "payload");
    IS(c, "completed", "state", "get_claim", "k");
    EXPECT(c, "not-known", false, "get_claim", "other");
    EXPECT(c, "invalid-request", false, "get_claim", "");
    assert_int_equal(count("SELECT count(*) FROM holdfast.journal"), 6);
}

/* The keys that the list has, in its order. */
static void listed(const char *wanted, const char *arguments)
{
    char sql[300];
    snprintf(sql, sizeof sql,
             "SELECT coalesce(string_agg(key || ' ' || state, ', '), '-') AS list FROM "
             "holdfast.claims(%s)",
             arguments);
    PGresult *got = PQexec(c, sql);
    if (PQresultStatus(got) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(c));
    assert_string_equal(PQgetvalue(got, 0, 0), wanted);
    PQclear(got);
}

static void test_claims_are_listed_by_state_time_and_prefix(void **state)
{
    (void)state;
    functions_run(c, "SELECT setval('holdfast.fence', 40)");
    listed("-", "");
    EXPECT(c, "ok", false, "begin", "pay-1", "p");
    EXPECT(c, "ok", false, "complete", "pay-1", "41", "r");
    EXPECT(c, "ok", false, "begin", "pay\\2", "p");
    EXPECT(c, "ok", false, "fail", "pay\\2", "42", "e", "true");
    EXPECT(c, "ok", false, "begin", "mail-3", "p");
    EXPECT(c, "ok", false, "abandon", "mail-3", "43");
    EXPECT(c, "ok", false, "begin", "mail-4", "p");
    EXPECT(c, "ok", false, "begin", "mail-5", "p", NULL, "unknown", "blue");
    EXPECT(c, "ok", false, "begin", "short", "p", NULL, "unknown", "", "1 millisecond");
    EXPECT(c, "ok", false, "fail", "short", "46", "e");
    functions_run(c, "SELECT pg_sleep(0.01)"); /* its retention is over */
    listed("mail-4 started, mail-3 unknown, pay\\2 retryable, pay-1 completed", "");
    listed("mail-4 started", "'started'");
    listed("mail-3 unknown", "'unknown'");
    listed("pay-1 completed", "'completed'");
    listed("-", "'failed'");
    listed("pay\\2 retryable", "'retryable'");
    listed("pay\\2 retryable", "prefix => 'pay\\'");
    listed("mail-4 started, mail-3 unknown", "prefix => 'mail-'");
    listed("mail-4 started, mail-3 unknown", "at_most => 2");
    listed("pay\\2 retryable, pay-1 completed", "at_most => 2, below_fence => 43");
    listed("mail-5 started", "tenant => 'blue'");
    listed("-", "begun_from => now() + interval '1 hour'");
    listed("-", "begun_before => now() - interval '1 hour'");
    functions_fails(c, "22023", "SELECT holdfast.claims('lost')");
    functions_fails(c, "22023", "SELECT holdfast.claims(at_most => 0)");
}

static void test_retention_is_kept_with_the_claim(void **state)
{
    (void)state;
    EXPECT(c, "invalid-request", false, "begin", "k", "p", NULL, "unknown", "", "-1 second");
    EXPECT(c, "ok", false, "begin", "k", "p", NULL, "unknown", "", "90 days");
    IS(c, "7776000000", "retention_ms", "get_claim", "k");
    char *fence = COLUMN(c, "fence", "get_claim", "k");
    EXPECT(c, "ok", false, "complete", "k", fence, "r");
    assert_int_equal(count("SELECT count(*) FROM holdfast.get_claim('k') WHERE expires_at = "
                           "settled_at + interval '90 days'"),
                     1);
    functions_check_journal(c);
    free(fence);
}

static void test_begin_in_other_words(void **state)
{
    (void)state;
    EXPECT(c, "ok", false, "begin", "k", "payload");
    functions_run(
        c, "DO $$ BEGIN ASSERT (holdfast.begin('k', 'payload'::bytea)).status = 'in-progress'; "
           "ASSERT (holdfast.begin('k', 'payload'::text)).status = 'in-progress'; "
           "ASSERT (holdfast.begin_with_fingerprint('k', sha256('payload'))).status = "
           "'in-progress'; END $$");
    functions_fails(c, "22023", "SELECT holdfast.begin_with_fingerprint('k', 'short')");
    EXPECT(c, "invalid-request", false, "begin", "l", "payload", "11 years");
    EXPECT(c, "invalid-request", false, "begin", "l", "payload", "-1 second");
    EXPECT(c, "invalid-request", false, "begin", "l", "payload", "1 minute", "never");
    EXPECT(c, "ok", false, "begin", "l", "payload", "0", "retry");
    IS(c, "60000", "lease_ms", "get_claim", "l");
}

static void test_failures(void **state)
{
    (void)state;
    EXPECT(c, "ok", false, "begin", "k", "payload");
    char *fence = COLUMN(c, "fence", "get_claim", "k");
    EXPECT(c, "ok", false, "fail", "k", fence, "no money", "true");
    EXPECT(c, "ok", true, "fail", "k", fence, "no money", "true");
    EXPECT(c, "token-collision", false, "fail", "k", fence, "no money", "false");
    EXPECT(c, "ok", false, "begin", "k", "payload"); /* again, under a higher fence */
    char *next = COLUMN(c, "fence", "get_claim", "k");
    assert_true(strtoll(next, NULL, 10) > strtoll(fence, NULL, 10));
    EXPECT(c, "stale-fence", false, "complete", "k", fence, "late");
    EXPECT(c, "ok", false, "fail", "k", next, "", "false");
    EXPECT(c, "ok", true, "fail", "k", next, "");
    EXPECT(c, "ok", true, "begin", "k", "payload");
    IS(c, "failed", "state", "begin", "k", "payload");
    IS(c, "\\x", "response", "begin", "k", "payload");
    assert_int_equal(count("SELECT count(*) FROM holdfast.token WHERE response IS NULL"), 1);
    free(fence);
    free(next);
}

static void test_leases_that_run_out(void **state)
{
    (void)state;
    EXPECT(c, "ok", false, "begin", "unknown", "payload", "1 ms");
    EXPECT(c, "ok", false, "begin", "retry", "payload", "1 ms", "retry");
    server_pause_ms(3);
    EXPECT(c, "outcome-unknown", false, "begin", "unknown", "payload");
    IS(c, "unknown", "state", "begin", "unknown", "payload");
    IS(c, "unknown", "state", "token_status", "unknown");
    char *fence = COLUMN(c, "fence", "get_claim", "unknown");
    EXPECT(c, "ok", false, "complete", "unknown", fence, "settled by hand");
    char *first = COLUMN(c, "fence", "get_claim", "retry");
    EXPECT(c, "token-collision", false, "begin", "retry", "another payload");
    EXPECT(c, "ok", false, "begin", "retry", "payload", "1 hour", "unknown");
    EXPECT(c, "stale-fence", false, "complete", "retry", first, "late");
    EXPECT(c, "in-progress", false, "begin", "retry", "payload");
    IS(c, "unknown", "on_abandon", "get_claim", "retry"); /* the policy is of the newest begin */
    free(fence);
    free(first);
}

/* ---- Guards ---- */

static void test_guards(void **state)
{
    (void)state;
    EXPECT(c, "not-known", false, "admit", "g", "identity");
    EXPECT(c, "ok", false, "set_guard", "g", "1 hour");
    EXPECT(c, "ok", false, "set_guard", "g", "1 hour", "");
    assert_int_equal(count("SELECT count(*) FROM holdfast.journal"), 1);
    IS(c, "f", "seen", "check_seen", "g", "identity");
    IS(c, "f", "seen", "admit", "g", "identity", "result");
    IS(c, "t", "seen", "admit", "g", "identity", "another result");
    IS(c, "\\x726573756c74", "result", "check_seen", "g", "identity");
    IS(c, "t", "seen", "record", "g", "identity");
    IS(c, "f", "seen", "check_seen", "g", "Identity");
    IS(c, "f", "seen", "record", "g", "without a result");
    assert_int_equal(count("SELECT count(*) FROM holdfast.guard_entry WHERE result IS NULL"), 1);
    EXPECT(c, "invalid-request", false, "admit", "g", "");
    EXPECT(c, "invalid-request", false, "admit", "", "identity");
    EXPECT(c, "ok", false, "get_guard", "g");
    EXPECT(c, "not-known", false, "get_guard", "h");
    EXPECT(c, "invalid-request", false, "set_guard", "g", "0");
    EXPECT(c, "invalid-request", false, "set_guard", "", "1 hour");
    EXPECT(c, "invalid-request", false, "set_guard", "g", "1 hour", "hash,trim");
    EXPECT(c, "invalid-request", false, "set_guard", "g", "1 hour", "trim,trim");
    EXPECT(c, "invalid-request", false, "set_guard", "g", "1 hour", "trim,");
    EXPECT(c, "invalid-request", false, "set_guard", "g", "1 hour", "soundex");
    EXPECT(c, "invalid-request", false, "set_guard", "g", "1 hour",
           "exact,trim,casefold,normalize,hash");
    EXPECT(c, "invalid-request", false, "set_guard", "g", "1 hour", "exact", "ajar");
    EXPECT(c, "ok", false, "set_guard", "g", "1 hour", "exact", "closed", "false");
    IS(c, "closed", "on_unavailable", "get_guard", "g");
    IS(c, "t", "seen", "check_seen", "g", "identity"); /* what was recorded keeps its end */
}

/* Under another match rule a duplicate of a live entry might pass. */
static void test_match_rules_stay(void **state)
{
    (void)state;
    EXPECT(c, "ok", false, "set_guard", "g", "1 hour", "trim");
    EXPECT(c, "ok", false, "record", "g", "x");
    EXPECT(c, "window-not-elapsed", false, "set_guard", "g", "1 hour", "casefold");
    IS(c, "trim", "match", "set_guard", "g", "1 hour", "casefold");
    EXPECT(c, "ok", false, "set_guard", "g", "2 hours", "exact,trim");
    EXPECT(c, "ok", false, "set_guard", "g", "1 hour", "trim");
    EXPECT(c, "ok", false, "set_guard", "g", "1 hour", "casefold", "open", "t", "", "t");
    IS(c, "casefold", "match", "get_guard", "g");
    functions_run(c, "UPDATE holdfast.guard_entry SET expires_at = clock_timestamp() - "
                     "interval '1 second'");
    EXPECT(c, "ok", false, "set_guard", "g", "1 hour", "hash");
}

static void test_guards_forget(void **state)
{
    (void)state;
    EXPECT(c, "ok", false, "set_guard", "g", "1 ms");
    for (int i = 0; i < 3; i++) {
        IS(c, "f", "seen", "admit", "g", "identity");
        server_pause_ms(3);
        IS(c, "f", "seen", "check_seen", "g", "identity");
    }
    assert_int_equal(count("SELECT count(*) FROM holdfast.guard_entry"), 1);
    assert_int_equal(count("SELECT count(*) FROM holdfast.journal"), 4);
}

static void test_limits_of_guards(void **state)
{
    (void)state;
    EXPECT(c, "ok", false, "set_guard", "g", "1 hour", "hash");
    functions_run(
        c, "DO $$ BEGIN ASSERT (holdfast.admit('g', repeat('x', 1024), repeat('y', 65536))).status "
           "= 'ok'; ASSERT (holdfast.admit('g', repeat('x', 1025))).status = 'invalid-request'; "
           "ASSERT (holdfast.admit('g', 'x', repeat('y', 65537))).status = 'invalid-request'; "
           "ASSERT (holdfast.admit('g', '\\xff00'::bytea, ''::bytea)).status = 'ok'; ASSERT "
           "(holdfast.check_seen('g', '\\xff00'::bytea)).result = ''; ASSERT (SELECT "
           "bool_and(length(identity) = 32) FROM holdfast.guard_entry); END $$");
}

/* ---- Leases and registers ---- */

static void test_leases(void **state)
{
    (void)state;
    functions_run(c, "SELECT setval('holdfast.fence', 10)");
    EXPECT(c, "not-known", false, "get_lease", "leader");
    EXPECT(c, "not-known", false, "renew_lease", "leader", "1");
    PGresult *got = CALL(c, "grant_lease", "k1", "leader", "a", "1 hour");
    assert_string_equal(functions_text(got, "status"), "ok");
    char *fence = strdup(functions_text(got, "fence"));
    PQclear(got);
    EXPECT(c, "lease-held", false, "grant_lease", "k2", "leader", "b", "1 hour");
    EXPECT(c, "stale-fence", false, "renew_lease", "leader", next_to(fence, -1));
    EXPECT(c, "invalid-request", false, "renew_lease", "leader", next_to(fence, 1));
    IS(c, fence, "fence", "renew_lease", "leader",
       next_to(fence, 1)); /* the refusal has the lease */
    EXPECT(c, "invalid-request", false, "renew_lease", "leader", "0");
    EXPECT(c, "invalid-request", false, "renew_lease", "leader", fence, "-1 second");
    IS(c, "7200000", "ttl_ms", "renew_lease", "leader", fence, "2 hours");
    IS(c, "7200000", "ttl_ms", "renew_lease", "leader", fence);
    EXPECT(c, "ok", false, "return_lease", "leader", fence);
    EXPECT(c, "ok", false, "return_lease", "leader", fence);
    EXPECT(c, "not-held", false, "renew_lease", "leader", fence);
    EXPECT(c, "lease-held", true, "grant_lease", "k2", "leader", "b", "1 hour");
    EXPECT(c, "ok", true, "grant_lease", "k1", "leader", "a", "1 hour");
    IS(c, "3600000", "ttl_ms", "grant_lease", "k1", "leader", "a",
       "1 hour"); /* as it was granted */
    EXPECT(c, "token-collision", false, "grant_lease", "k1", "leader", "b", "1 hour");
    EXPECT(c, "ok", false, "grant_lease", "k3", "leader", "b", "1 ms");
    server_pause_ms(3);
    char *last = COLUMN(c, "fence", "get_lease", "leader");
    EXPECT(c, "not-held", false, "return_lease", "leader", last);
    EXPECT(c, "stale-fence", false, "return_lease", "leader", fence);
    EXPECT(c, "ok", false, "grant_lease", "k4", "leader", "b", "1 hour");
    EXPECT(c, "invalid-request", false, "grant_lease", "k5", "leader", "", "1 hour");
    EXPECT(c, "invalid-request", true, "grant_lease", "k5", "leader", "", "1 hour");
    EXPECT(c, "invalid-request", false, "get_lease", "");
    free(fence);
    free(last);
}

static void test_registers(void **state)
{
    (void)state;
    EXPECT(c, "version-mismatch", false, "write", "k1", "r", "value", "0", "1");
    EXPECT(c, "not-known", false, "get_register", "r");
    assert_int_equal(count("SELECT count(*) FROM holdfast.register"), 0);
    EXPECT(c, "ok", false, "write", "k2", "r", "one", "0", "0");
    EXPECT(c, "version-mismatch", true, "write", "k1", "r", "value", "0", "1");
    EXPECT(c, "version-mismatch", false, "write", "k3", "r", "two", "0", "0");
    EXPECT(c, "ok", false, "write", "k4", "r", "two", "42", "1");
    EXPECT(c, "stale-fence", false, "write", "k5", "r", "three", "41");
    EXPECT(c, "ok", false, "write", "k6", "r", "three");
    EXPECT(c, "stale-fence", false, "write", "k7", "r", "three", "42",
           "99"); /* judged before the version */
    EXPECT(c, "ok", true, "write", "k2", "r", "one", "0", "0");
    IS(c, "\\x6f6e65", "value", "write", "k2", "r", "one", "0", "0");
    IS(c, "1", "version", "write", "k2", "r", "one", "0", "0");
    EXPECT(c, "token-collision", false, "write", "k2", "r", "one", "0");
    EXPECT(c, "token-collision", false, "write", "k2", "r", "other", "0", "0");
    IS(c, "3", "version", "get_register", "r");
    IS(c, "42", "fence", "get_register", "r");
    functions_run(
        c,
        "DO $$ BEGIN ASSERT (holdfast.write('f1', 'f', 'one', require_fence => true))"
        ".require_fence; ASSERT (holdfast.write('f1', 'f', 'one', require_fence => "
        "true)).replayed; "
        "ASSERT (holdfast.write('f1', 'f', 'one')).status = 'token-collision'; "
        "ASSERT (holdfast.write('f2', 'f', 'two')).status = 'stale-fence'; "
        "ASSERT (holdfast.write('f3', 'f', 'two', require_fence => false)).status = 'stale-fence'; "
        "ASSERT (holdfast.write('f4', 'f', 'two', 1)).require_fence; "
        "ASSERT (holdfast.get_register('f')).require_fence; "
        "ASSERT NOT (holdfast.write('f5', 'f', 'two', 2, require_fence => false)).require_fence; "
        "ASSERT (holdfast.write('f6', 'f', 'three')).status = 'ok'; END $$");
    functions_run(
        c, "DO $$ BEGIN ASSERT (holdfast.set_resource('f', require_fence => true)).require_fence; "
           "ASSERT (holdfast.place_hold('f7', 'f', 'q', '1h')).status = 'stale-fence'; "
           "ASSERT (holdfast.place_hold('f8', 'f', 'q', '1h', 3)).status = 'ok'; "
           "ASSERT (holdfast.set_resource('f', 9)).require_fence; "
           "ASSERT NOT (holdfast.set_resource('f', require_fence => false)).require_fence; "
           "ASSERT (holdfast.place_hold('f9', 'f', 'q', '1h')).status = 'ok'; END $$");
    EXPECT(c, "invalid-request", false, "write", "k8", "", "value");
    EXPECT(c, "ok", false, "write", "k9", "huge", "", "18446744073709551615");
    IS(c, "18446744073709551615", "fence", "write", "k9", "huge", "", "18446744073709551615");
    functions_run(c, "UPDATE holdfast.register SET type = 'max' WHERE name = 'huge'");
    EXPECT(c, "invalid-request", false, "write", "k10", "huge", "value");
    functions_run(
        c, "DO $$ BEGIN ASSERT (holdfast.write('k11', 'b', repeat('x', 65536))).status = 'ok'; "
           "ASSERT (holdfast.write('k11', 'b', repeat('x', 65536)::bytea)).replayed; "
           "ASSERT (holdfast.write('k12', 'b', repeat('x', 65537))).status = 'invalid-request'; "
           "END $$");
    /* JSON in other words is the same value, and shown as it came first. */
    functions_run(
        c,
        "DO $$ BEGIN ASSERT (holdfast.write('k14', 'j', holdfast.json('{\"b\":1.0,\"a\":2}'), "
        "0)).status = 'ok'; ASSERT (SELECT w.replayed AND convert_from(substring(w.value, 35), "
        "'UTF8') = '{\"b\":1.0,\"a\":2}' FROM holdfast.write('k14', 'j', holdfast.json('{\"a\": 2, "
        "\"b\": 1}'), 0) w); ASSERT (holdfast.write('k14', 'j', holdfast.json('{\"a\":3}'), "
        "0)).status = 'token-collision'; END $$");
}

/* ---- Keys, misuse, transactions ---- */

static void test_token_status(void **state)
{
    (void)state;
    IS(c, "not-known", "status", "token_status", "k");
    IS(c, "invalid-request", "status", "token_status", "");
    char *id = COLUMN(c, "id", "place_hold", "k", "room", "guest", "1 hour");
    IS(c, "ok", "status", "token_status", "k");
    IS(c, "place_hold", "action", "token_status", "k");
    IS(c, id, "hold", "token_status", "k");
    EXPECT(c, "not-known", false, "confirm", "l", "nothing");
    IS(c, "ok", "status", "token_status", "l");
    IS(c, "not-known", "answered", "token_status", "l");
    EXPECT(c, "ok", false, "begin", "m", "payload");
    IS(c, "begin", "action", "token_status", "m");
    IS(c, "started", "state", "token_status", "m");
    IS(c, "", "expires_at", "token_status", "m");
    free(id);
}

static void test_misuse(void **state)
{
    (void)state;
    static const char *const calls[] = {
        "place_hold(NULL, 'r', 'g', '1 hour')",
        "place_hold('k', 'r', 'g', '1 hour', 0, NULL)",
        "release(NULL, 'h')",
        "set_resource(NULL)",
        "get_resource(NULL)",
        "get_hold(NULL)",
        "begin('k', NULL::text)",
        "begin(NULL, 'p')",
        "complete('k', NULL, 'r')",
        "complete('k', 1, NULL::text)",
        "fail('k', 1, 'e', NULL)",
        "heartbeat('k', NULL)",
        "abandon('k', NULL)",
        "get_claim(NULL)",
        "set_guard('g', NULL)",
        "set_guard('g', '1 hour', NULL)",
        "set_guard('g', '1 hour', force => NULL)",
        "admit('g', NULL::text)",
        "check_seen(NULL, 'i')",
        "renew_lease('n', NULL)",
        "return_lease(NULL, 1)",
        "get_lease(NULL)",
        "get_register(NULL)",
        "token_status(NULL)",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT holdfast.%s", calls[i]);
        functions_fails(c, "22004", sql);
    }
    functions_run(c,
                  /* no server has recorded the configuration yet */
                  "UPDATE holdfast.store SET program = 'none'");
    functions_fails(c, "55000", "SELECT holdfast.place_hold('k', 'r', 'g', '1 hour')");
    functions_run(c, "DELETE FROM holdfast.store");
    functions_fails(c, "55000", "SELECT holdfast.place_hold('k', 'r', 'g', '1 hour')");
    assert_int_equal(count("SELECT count(*) FROM holdfast.journal"), 0);
}

/* One of each that changes something. */
static void everything(void)
{
    char *id = COLUMN(c, "id", "place_hold", "k1", "room", "guest", "1 hour");
    EXPECT(c, "ok", false, "confirm", "k2", id);
    EXPECT(c, "ok", false, "reverse", "k3", id);
    EXPECT(c, "not-known", false, "release", "k4", "nothing");
    EXPECT(c, "ok", false, "set_resource", "room", "5");
    EXPECT(c, "ok", false, "set_guard", "g", "1 hour");
    EXPECT(c, "ok", false, "admit", "g", "identity");
    EXPECT(c, "ok", false, "begin", "k5", "payload");
    EXPECT(c, "ok", false, "grant_lease", "k6", "lease", "me", "1 hour");
    EXPECT(c, "ok", false, "write", "k7", "register", "value");
    free(id);
}

static const char *const rows_of_all =
    "SELECT (SELECT count(*) FROM holdfast.token) + (SELECT count(*) FROM holdfast.resource) + "
    "(SELECT count(*) FROM holdfast.hold) + (SELECT count(*) FROM holdfast.guard) + "
    "(SELECT count(*) FROM holdfast.guard_entry) + (SELECT count(*) FROM holdfast.lease) + "
    "(SELECT count(*) FROM holdfast.register) + (SELECT count(*) FROM holdfast.journal)";

static void test_rollback_leaves_nothing(void **state)
{
    (void)state;
    functions_run(c, "BEGIN");
    everything();
    functions_run(c, "ROLLBACK");
    assert_int_equal(count(rows_of_all), 0);
    functions_run(c, "BEGIN; SAVEPOINT here");
    everything();
    functions_run(c, "ROLLBACK TO here");
    everything();                                             /* all as if it was the first time */
    EXPECT(c, "not-known", true, "release", "k4", "nothing"); /* seen by itself */
    functions_run(c, "COMMIT");
    assert_int_equal(count(rows_of_all), 7 + 1 + 2 + 1 + 1 + 1 + 1 + 10);
}

/* Others see nothing of it before the commit; and the strict isolation levels see it too. */
static void test_isolation(void **state)
{
    (void)state;
    PGconn *other = postgres_connect(&p);
    functions_run(c, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    everything();
    IS(other, "not-known", "status", "token_status", "k1");
    EXPECT(other, "not-known", false, "get_resource", "room");
    functions_run(c, "COMMIT");
    functions_run(c, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    EXPECT(c, "ok", true, "write", "k7", "register",
           "value"); /* from here on it sees this moment */
    EXPECT(other, "ok", false, "place_hold", "new", "room", "guest", "1 hour");
    functions_fails(c, "40001", "SELECT holdfast.place_hold('new', 'room', 'guest', '1 hour')");
    functions_run(c, "ROLLBACK");
    EXPECT(c, "ok", true, "place_hold", "new", "room", "guest", "1 hour");
    /* What was recorded since cannot be seen, so the match rule stays. */
    EXPECT(c, "ok", false, "set_guard", "seen", "1 hour");
    functions_run(c, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    EXPECT(c, "ok", true, "write", "k7", "register", "value");
    functions_run(other, "SELECT holdfast.admit('seen', 'ABC')");
    EXPECT(c, "ok", false, "set_guard", "seen", "2 hours");
    functions_run(c, "SAVEPOINT s");
    functions_fails(c, "0A000", "SELECT holdfast.set_guard('seen', '1 hour', 'casefold')");
    functions_run(c, "ROLLBACK TO s");
    functions_run(c, "SELECT holdfast.set_guard('seen', '1 hour', 'casefold', force => true)");
    functions_run(c, "ROLLBACK");
    EXPECT(c, "window-not-elapsed", false, "set_guard", "seen", "1 hour", "casefold");
    PQfinish(other);
}

/* The functions number their actions as the table does; those that they do not write have no
 * number. */
static void test_numbers_of_actions(void **state)
{
    (void)state;
    int known = 0;
    for (int a = 1; a < HF_ACTIONS_END; a++) {
        if (!hf_actions[a].name)
            continue;
        char *number = COLUMN(c, "_action_number", "_action_number", hf_actions[a].name);
        known += number[0] != 0;
        assert_true(number[0] == 0 || atoi(number) == a);
        free(number);
    }
    assert_int_equal(known, HF_WRITE + 2); /* and abandon and confirm_late */
}

/* Who may do what (schema/roles.sql), and the payment of examples/payment.sql, whose output stands
 * in its comment. */

/* The roles, each with somebody who logs in with it. */
static int roles_set_up(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    functions_make(&p, &(struct hf_options){ 0 });
    c = postgres_connect(&p);
    /* The servers' own table, which their migrations make. */
    functions_run(c, "CREATE TABLE holdfast.migration (version integer PRIMARY KEY)");
    char *roles = functions_file("src/store/postgres/schema/roles.sql");
    functions_run(c, roles);
    functions_run(c, roles);
    free(roles);
    functions_run(
        c,
        "CREATE ROLE server LOGIN IN ROLE holdfast_server; CREATE ROLE application LOGIN IN ROLE "
        "holdfast_application; CREATE ROLE auditor LOGIN IN ROLE holdfast_auditor; CREATE ROLE "
        "stranger LOGIN");
    return 0;
}

static int roles_tear_down(void **state)
{
    (void)state;
    PQfinish(c);
    postgres_end(&p);
    return 0;
}

static PGconn *log_in(const char *role)
{
    char conninfo[POSTGRES_CONNINFO_MAX + 64];
    snprintf(conninfo, sizeof conninfo, "%s user=%s", postgres_conninfo(&p), role);
    PGconn *as = PQconnectdb(conninfo);
    assert_int_equal(PQstatus(as), CONNECTION_OK);
    return as;
}

static void each_fails(PGconn *as, const char *const *statements, size_t count)
{
    for (size_t i = 0; i < count; i++)
        functions_fails(as, "42501", statements[i]);
}
#define EACH_FAILS(as, statements) \
    each_fails(as, statements, sizeof(statements) / sizeof *(statements))

static void test_application(void **state)
{
    (void)state;
    static const char *const forbidden[] = {
        "SELECT FROM holdfast.token",
        "SELECT FROM holdfast.store",
        "INSERT INTO holdfast.guard VALUES ('', 'g', 1, '', 'open', true, now(), 1)",
        "UPDATE holdfast.resource SET capacity = 2",
        "DELETE FROM holdfast.journal",
        "SELECT nextval('holdfast.fence')",
        "SELECT holdfast.hold_id(1)",
        "SELECT holdfast.engine_now()",
        "SELECT holdfast._rules()",
        "SELECT holdfast._journal(1, now(), '', 'confirm', 'ok', NULL, 0, 255, NULL, NULL, '{}')",
        "SELECT holdfast._id_raw(1)",
        "CREATE TABLE holdfast.mine ()",
    };
    PGconn *as = log_in("application");
    EACH_FAILS(as, forbidden);
    char *id = COLUMN(as, "id", "place_hold", "a1", "room", "guest", "1 hour");
    EXPECT(as, "ok", false, "confirm", "a2", id);
    EXPECT(as, "ok", false, "reverse", "a3", id);
    EXPECT(as, "ok", false, "get_hold", id);
    EXPECT(as, "ok", false, "set_resource", "room", "2");
    EXPECT(as, "ok", false, "get_resource", "room");
    EXPECT(as, "ok", false, "set_guard", "guard", "1 hour");
    EXPECT(as, "ok", false, "admit", "guard", "identity");
    EXPECT(as, "ok", false, "record", "guard", "identity");
    EXPECT(as, "ok", false, "check_seen", "guard", "identity");
    char *fence = COLUMN(as, "fence", "begin", "a4", "payload");
    EXPECT(as, "ok", false, "heartbeat", "a4", fence);
    EXPECT(as, "ok", false, "complete", "a4", fence, "response");
    IS(as, "ok", "status", "token_status", "a4");
    char *lease = COLUMN(as, "fence", "grant_lease", "a5", "lease", "me", "1 hour");
    EXPECT(as, "ok", false, "renew_lease", "lease", lease);
    EXPECT(as, "ok", false, "return_lease", "lease", lease);
    EXPECT(as, "ok", false, "write", "a6", "register", "value");
    EXPECT(as, "ok", false, "get_register", "register");
    functions_run(as, "SELECT holdfast.hold_ordinal('x')");
    functions_run(
        as, "SELECT holdfast.as_json(holdfast.json('{}')), holdfast.json('{}'::json), "
            "holdfast.json('{}'::jsonb), holdfast.payload('{}'), holdfast.payload('{}'::json), "
            "holdfast.payload('{}'::jsonb)");
    PQfinish(as);
    free(id);
    free(fence);
    free(lease);
}

/* What a caller puts in front of pg_catalog, or into its temporary schema, is not what the
 * functions run. */
/* The SHA-256 of {} */
#define EMPTY "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

static void test_hostile_path(void **state)
{
    (void)state;
    functions_run(c, "CREATE SCHEMA evil AUTHORIZATION application; GRANT TEMP ON DATABASE "
                     "postgres TO application");
    PGconn *as = log_in("application");
    functions_run(
        as, "CREATE FUNCTION evil.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT "
            "'\\x00'::bytea $$;CREATE FUNCTION evil.convert_to(text, name) RETURNS bytea LANGUAGE "
            "sql AS $$ SELECT '\\x00'::bytea $$;CREATE FUNCTION evil.octet_length(text) RETURNS "
            "integer LANGUAGE sql AS $$ SELECT 1 / 0 $$;CREATE FUNCTION evil.bad(text, text) "
            "RETURNS boolean LANGUAGE sql AS $$ SELECT 1 / 0 = 1 $$;CREATE OPERATOR evil.= "
            "(LEFTARG = text, RIGHTARG = text, FUNCTION = evil.bad);CREATE FUNCTION "
            "evil.json_typeof(json) RETURNS text LANGUAGE sql AS $$ SELECT 1 / 0 || '' $$;CREATE "
            "DOMAIN pg_temp.json AS text CHECK (false); CREATE DOMAIN pg_temp.jsonb AS text CHECK "
            "(false);CREATE TEMP TABLE token (tenant text, key text, action text);CREATE DOMAIN "
            "pg_temp.bytea AS text CHECK (false); CREATE DOMAIN pg_temp.text AS pg_catalog.text "
            "CHECK (false);SET search_path = evil, pg_temp, pg_catalog");
    EXPECT(as, "ok", false, "begin", "h1", "payload");
    EXPECT(as, "ok", false, "admit", "guard", "another identity");
    EXPECT(as, "ok", false, "place_hold", "h2", "room-2", "guest", "1 hour");
    IS(as, "\\x006a" EMPTY "7b7d", "json", "json", "{ }");
    IS(as, "\\x7b7d", "payload", "payload", "{ }");
    IS(as, "{}", "as_json", "as_json", "\\x006a" EMPTY "7b7d");
    PQfinish(as);
    EXPECT(c, "in-progress", false, "begin", "h1", "payload"); /* with the right fingerprint */
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.guard_entry"), 2);
}

static void test_server(void **state)
{
    (void)state;
    static const char *const forbidden[] = {
        "DELETE FROM holdfast.journal",
        "UPDATE holdfast.journal SET status = 'ok'",
        "TRUNCATE holdfast.journal",
        "DELETE FROM holdfast.hold",
        "UPDATE holdfast.hold SET requester = 'me'",
        "DELETE FROM holdfast.resource",
        "INSERT INTO holdfast.store SELECT * FROM holdfast.store",
        "SELECT setval('holdfast.fence', 1)",
        "SELECT holdfast.place_hold('k', 'room', 'guest', '1 hour')",
        "CREATE TABLE holdfast.mine ()",
        "DROP TABLE holdfast.hold",
    };
    static const char *const allowed[] = {
        "SELECT version FROM holdfast.migration",
        "UPDATE holdfast.store SET program = program",
        "BEGIN; LOCK TABLE holdfast.store IN EXCLUSIVE MODE; ROLLBACK",
        "INSERT INTO holdfast.writer (id, name, chain) VALUES (nextval('holdfast.writer_id'), 'x', "
        "sha256(''))",
        "UPDATE holdfast.writer SET batch = 1",
        "SELECT * FROM holdfast.hold FOR UPDATE",
        "UPDATE holdfast.hold SET state = state, ended_at = ended_at, succeeded_by = succeeded_by",
        "SELECT * FROM holdfast.resource FOR UPDATE",
        "UPDATE holdfast.resource SET held = held",
        "DELETE FROM holdfast.token WHERE expires_at < now()",
        "DELETE FROM holdfast.guard_entry WHERE expires_at < now()",
        "DELETE FROM holdfast.app_value",
        "SELECT nextval('holdfast.journal_number'), nextval('holdfast.hold_ordinal'), "
        "nextval('holdfast.fence'), nextval('holdfast.outbox_number'), holdfast.engine_now(), "
        "holdfast.hold_ordinal(holdfast.hold_id(1))",
        "INSERT INTO holdfast.journal SELECT nextval('holdfast.journal_number'), at, tenant, "
        "action, status, key, 1, 1, entry FROM holdfast.journal LIMIT 1",
    };
    PGconn *as = log_in("server");
    EACH_FAILS(as, forbidden);
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        functions_run(as, allowed[i]);
    PQfinish(as);
}

static void test_auditor_and_stranger(void **state)
{
    (void)state;
    static const char *const forbidden[] = {
        "SELECT id_key FROM holdfast.store",
        "SELECT * FROM holdfast.store",
        "SELECT holdfast.hold_id(1)",
        "SELECT holdfast.begin('k', 'payload')",
        "SELECT holdfast.token_status('k')",
        "UPDATE holdfast.token SET status = 'ok'",
        "INSERT INTO holdfast.journal SELECT * FROM holdfast.journal",
        "SELECT * FROM holdfast.hold FOR UPDATE",
    };
    static const char *const strange[] = {
        "SELECT FROM holdfast.hold",
        "SELECT holdfast.get_hold('x')",
        "SELECT holdfast.place_hold('k', 'room', 'guest', '1 hour')",
    };
    PGconn *as = log_in("auditor");
    EACH_FAILS(as, forbidden);
    functions_run(as, "SELECT store_id, idempotency_window_ms, program FROM holdfast.store");
    functions_run(as, "SELECT key, holdfast.as_json(response) FROM holdfast.token");
    functions_run(
        as,
        "SELECT * FROM holdfast.journal, holdfast.hold WHERE ordinal = holdfast.hold_ordinal(id)");
    PQfinish(as);
    as = log_in("stranger");
    EACH_FAILS(as, strange);
    PQfinish(as);
}

/* ---- The example ---- */

/* Each "-- $ command" in the comment of the file, and the line behind it. How many there are. */
static int replay(const char *path)
{
    char *script = functions_file(path);
    int commands = 0;
    for (char *save = NULL, *line = strtok_r(script, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "-- $ ", 5) != 0)
            continue;
        const char *wanted = strtok_r(NULL, "\n", &save);
        char *said = functions_shell(&p, line + 5);
        assert_string_equal(said, strncmp(wanted, "-- ", 3) == 0 ? wanted + 3 : "");
        free(said);
        commands++;
    }
    free(script);
    return commands;
}

/* The tables are made by a superuser, and the payments by one who may only call the functions. */
static void test_payment(void **state)
{
    (void)state;
    functions_run(c, "CREATE ROLE billing LOGIN IN ROLE holdfast_application");
    assert_int_equal(replay("examples/payment-tables.sql"), 1);
    assert_int_equal(replay("examples/payment.sql"), 5);
    assert_int_equal(replay("examples/payment-tables.sql"), 1); /* once more is no harm */
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM shop.charge"), 1);
    assert_int_equal(postgres_number(&p, "SELECT balance FROM shop.account"), 900);
    functions_check_journal(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest functions_rest_tests[] = {
        TEST(test_numbers_of_actions),
        TEST(test_claims),
        TEST(test_claims_are_listed_by_state_time_and_prefix),
        TEST(test_retention_is_kept_with_the_claim),
        TEST(test_begin_in_other_words),
        TEST(test_failures),
        TEST(test_leases_that_run_out),
        TEST(test_guards),
        TEST(test_match_rules_stay),
        TEST(test_guards_forget),
        TEST(test_limits_of_guards),
        TEST(test_leases),
        TEST(test_registers),
        TEST(test_token_status),
        TEST(test_misuse),
        TEST(test_rollback_leaves_nothing),
        TEST(test_isolation),
    };
    const struct CMUnitTest functions_roles_tests[] = {
        cmocka_unit_test(test_application), cmocka_unit_test(test_hostile_path),
        cmocka_unit_test(test_server),      cmocka_unit_test(test_auditor_and_stranger),
        cmocka_unit_test(test_payment),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(functions_rest_tests, set_up, tear_down);
    failed += cmocka_run_group_tests(functions_roles_tests, roles_set_up, roles_tear_down);
    return failed;
}
