/* The library on a database and the SQL functions share keys, holds, guards, claims, leases and
 * registers: what one was asked the other answers again, at any time and under load; and the audit
 * finds nothing wrong with what both have written. */
#include "base/text.h"
#include "postgres/kit/functions.h"
#include "postgres/kit/story.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <pthread.h>

static struct postgres p;
static struct hf_db *db;
static PGconn *c;
static struct hf_result got;

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

/* A new store, made by the library with its migrations. */
static void begin_with(int64_t window_ms)
{
    struct hf_error why;
    postgres_run(&p, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS holdfast CASCADE");
    if (hf_open("",
                &(struct hf_options){ .postgres = postgres_conninfo(&p),
                                      .idempotency_window_ms = window_ms },
                &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    c = postgres_connect(&p);
    functions_run(c, "SET TIME ZONE 'UTC'");
    got = (struct hf_result)HF_RESULT_INIT;
}

static int begin(void **state)
{
    (void)state;
    begin_with(0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    struct hf_audit_report report;
    hf_result_clear(&got);
    hf_close(db);
    functions_check_journal(c);
    PQfinish(c);
    story_audit(&p, &report);
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    assert_true(report.function_entries > 0 && report.entries > report.function_entries);
    hf_audit_report_free(&report);
    return 0;
}

static enum hf_status ask(const struct hf_request *r)
{
    return hf_do(db, r, &got);
}

/* A moment of an answer of the functions. */
static hf_time moment(const PGresult *theirs, const char *column)
{
    char text[64];
    hf_time t;
    snprintf(text, sizeof text, "%s:00", functions_text(theirs, column));
    assert_true(hf_time_parse(hf_str(text), &t));
    return t;
}

/* The library's hold in `got` and the functions' answer are one and the same. Frees the answer. */
static void same_hold(PGresult *theirs, bool replayed)
{
    const struct hf_hold *h = &got.answer.hold;
    assert_string_equal(functions_text(theirs, "status"), hf_status_code(got.answer.status));
    assert_string_equal(functions_text(theirs, "replayed"), replayed ? "t" : "f");
    if (got.answer.status == HF_OK) {
        assert_string_equal(functions_text(theirs, "id"), h->id);
        assert_string_equal(functions_text(theirs, "reverses"), h->reverses);
        assert_string_equal(functions_text(theirs, "reacquires"), h->reacquires);
        assert_int_equal(moment(theirs, "placed_at"), h->placed_at);
        assert_int_equal(moment(theirs, "expires_at"), h->expires_at);
        if (h->ended_at)
            assert_int_equal(moment(theirs, "ended_at"), h->ended_at);
    }
    PQclear(theirs);
}

static struct hf_request place_request(const char *key, const char *resource)
{
    struct hf_request r = { .action = HF_PLACE_HOLD, .key = hf_str(key) };
    r.place_hold.resource = hf_str(resource);
    r.place_hold.requester = hf_str("guest");
    r.place_hold.duration_ms = 3600000;
    return r;
}

static void test_holds(void **state)
{
    (void)state;
    static const struct {
        enum hf_action action;
        const char *function;
    } ends[] = { { HF_CONFIRM, "confirm" },
                 { HF_RELEASE, "release" },
                 { HF_REVERSE, "reverse" },
                 { HF_EXPIRE, "expire" } };
    struct hf_request r = place_request("ours", "room \\ 1");
    assert_int_equal(ask(&r), HF_OK);
    same_hold(CALL(c, "place_hold", "ours", "room \\ 1", "guest", "1 hour"), true);
    EXPECT(c, "token-collision", false, "place_hold", "ours", "room \\ 1", "guest", "2 hours");
    PGresult *theirs = CALL(c, "place_hold", "th\\eirs", "room 2", "guest", "1 hour");
    r = place_request("th\\eirs", "room 2");
    assert_int_equal(ask(&r), HF_OK);
    assert_true(got.replayed);
    PQclear(theirs);
    same_hold(CALL(c, "place_hold", "th\\eirs", "room 2", "guest", "1 hour"), true);
    r.place_hold.duration_ms++;
    assert_int_equal(ask(&r), HF_TOKEN_COLLISION);
    char id[HF_ID_SIZE];
    r.place_hold.duration_ms--;
    assert_int_equal(ask(&r), HF_OK);
    memcpy(id, got.answer.hold.id, sizeof id);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char key[32];
        snprintf(key, sizeof key, "end-%zu", i);
        r = (struct hf_request){ .action = ends[i].action,
                                 .key = hf_str(key),
                                 .hold.id = hf_str(id) };
        if (i % 2 == 0) {
            enum hf_status status = ask(&r);
            assert_int_equal(status, i == 0 || i == 2 ? HF_OK : HF_NOT_HELD);
            same_hold(CALL(c, ends[i].function, key, id), true);
        } else {
            theirs = CALL(c, ends[i].function, key, id);
            assert_int_equal(ask(&r), HF_NOT_HELD);
            assert_true(got.replayed);
            PQclear(theirs);
        }
    }
    EXPECT(c, "ok", false, "set_resource", "room 2", "7");
    r = (struct hf_request){ .action = HF_GET_RESOURCE, .get.name = hf_str("room 2") };
    assert_int_equal(ask(&r), HF_OK);
    assert_int_equal(got.answer.resource.capacity, 7);
    assert_int_equal(got.answer.resource.confirmed, 0);
    r = (struct hf_request){ .action = HF_GET_HOLD, .hold.id = hf_str(id) };
    assert_int_equal(ask(&r), HF_OK);
    assert_int_equal(got.answer.hold.state, HF_CONFIRMED);
}

static void test_claims(void **state)
{
    (void)state;
    char fence[24];
    struct hf_request r = { .action = HF_BEGIN,
                            .key = hf_str("a"),
                            .begin.payload = hf_str("payload") };
    assert_int_equal(ask(&r), HF_OK);
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)got.answer.claim.fence);
    EXPECT(c, "in-progress", false, "begin", "a", "payload");
    IS(c, fence, "fence", "begin", "a", "payload");
    EXPECT(c, "ok", false, "heartbeat", "a", fence, "2 minutes");
    EXPECT(c, "ok", false, "complete", "a", fence, "response");
    assert_int_equal(ask(&r), HF_OK);
    assert_true(got.replayed);
    assert_int_equal(got.answer.claim.lease_ms, 120000);
    assert_memory_equal(got.answer.claim.response.data, "response", 8);
    char *theirs = COLUMN(c, "fence", "begin", "b", "payload", "1 hour", "retry");
    assert_true(strtoull(theirs, NULL, 10) > strtoull(fence, NULL, 10));
    r.key = hf_str("b");
    assert_int_equal(ask(&r), HF_IN_PROGRESS);
    struct hf_request settle = { .action = HF_FAIL, .key = hf_str("b") };
    settle.settle.fence = strtoull(theirs, NULL, 10);
    settle.settle.retryable = true;
    assert_int_equal(ask(&settle), HF_OK);
    EXPECT(c, "ok", true, "fail", "b", theirs, "", "true");
    EXPECT(c, "ok", false, "begin", "b", "payload");
    assert_int_equal(ask(&settle), HF_STALE_FENCE);
    struct hf_request other = place_request("b", "room");
    assert_int_equal(ask(&other), HF_TOKEN_COLLISION);
    free(theirs);
}

static void test_guards_leases_registers(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_SET_GUARD };
    r.set_guard.name = hf_str("g");
    r.set_guard.window_ms = 3600000;
    r.set_guard.match[0] = HF_MATCH_CASEFOLD;
    r.set_guard.match_count = 1;
    assert_int_equal(ask(&r), HF_OK);
    struct hf_request admit = { .action = HF_ADMIT };
    admit.identity.guard = hf_str("g");
    admit.identity.identity = hf_str("GROSS");
    assert_int_equal(ask(&admit), HF_OK);
    IS(c, "t", "seen", "admit", "g", "gro\xc3\x9f");
    IS(c, "f", "seen", "admit", "g", "\xc3\x89t\xc3\xa9", "theirs");
    admit.identity.identity = hf_str("e\xcc\x81T\xc3\x89"); /* in another form */
    assert_int_equal(ask(&admit), HF_OK);
    assert_true(got.answer.seen.seen && got.answer.seen.has_result);
    EXPECT(c, "ok", false, "set_guard", "h", "1 hour", "exact");
    r = (struct hf_request){ .action = HF_GET_GUARD, .get.name = hf_str("h") };
    assert_int_equal(ask(&r), HF_OK);
    assert_int_equal(got.answer.guard.match_count, 1);

    r = (struct hf_request){ .action = HF_GRANT, .key = hf_str("l1") };
    r.lease.name = hf_str("lease");
    r.lease.holder = hf_str("ours");
    r.lease.ttl_ms = 3600000;
    assert_int_equal(ask(&r), HF_OK);
    char fence[24];
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)got.answer.lease.fence);
    EXPECT(c, "ok", true, "grant_lease", "l1", "lease", "ours", "1 hour");
    EXPECT(c, "lease-held", false, "grant_lease", "l2", "lease", "theirs", "1 hour");
    EXPECT(c, "ok", false, "return_lease", "lease", fence);
    EXPECT(c, "ok", false, "grant_lease", "l3", "lease", "theirs", "1 hour");
    r.key = hf_str("l3");
    r.lease.holder = hf_str("theirs");
    assert_int_equal(ask(&r), HF_OK);
    assert_true(got.replayed && got.answer.lease.fence > strtoull(fence, NULL, 10));

    r = (struct hf_request){ .action = HF_WRITE, .key = hf_str("w1") };
    r.write.name = hf_str("register");
    r.write.value = hf_str("value");
    r.write.fence = UINT64_MAX - 1;
    assert_int_equal(ask(&r), HF_OK);
    EXPECT(c, "ok", true, "write", "w1", "register", "value", "18446744073709551614");
    EXPECT(c, "stale-fence", false, "write", "w2", "register", "value", "18446744073709551614");
    EXPECT(c, "ok", false, "write", "w3", "register", "another", "18446744073709551615", "1");
    r.key = hf_str("w3");
    r.write.value = hf_str("another");
    r.write.fence = UINT64_MAX;
    r.write.has_if_version = true;
    r.write.if_version = 1;
    assert_int_equal(ask(&r), HF_OK);
    assert_true(got.replayed && got.answer.reg.version == 2 && got.answer.reg.fence == UINT64_MAX);
    struct hf_value top = { .type = HF_TYPE_MAX, .number = 5 };
    r = (struct hf_request){ .action = HF_MERGE, .merge = { hf_str("merged"), &top } };
    assert_int_equal(ask(&r), HF_OK);
    EXPECT(c, "invalid-request", false, "write", "w4", "merged", "value");
    IS(c, "max", "type", "get_register", "merged");
}

/* The number of a client is the same key for both. */
static void test_numbered_clients(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_PLACE_HOLD, .client = hf_str("till \\ 4"), .sequence = 1 };
    r.place_hold.resource = hf_str("room");
    r.place_hold.requester = hf_str("guest");
    r.place_hold.duration_ms = 3600000;
    assert_int_equal(ask(&r), HF_OK);
    char id[HF_ID_SIZE];
    memcpy(id, got.answer.hold.id, sizeof id);
#define BY(number) "0", "", "till \\ 4", number
    EXPECT(c, "ok", true, "place_hold", NULL, "room", "guest", "1 hour", BY("1"));
    IS(c, id, "id", "place_hold", NULL, "room", "guest", "1 hour", BY("1"));
    EXPECT(c, "token-collision", false, "place_hold", NULL, "hall", "guest", "1 hour", BY("1"));
    EXPECT(c, "resource-unavailable", false, "place_hold", NULL, "room", "x", "1 hour", BY("2"));
    r.sequence = 2;
    r.place_hold.requester = hf_str("x");
    assert_int_equal(ask(&r), HF_RESOURCE_UNAVAILABLE);
    assert_true(got.replayed);
    EXPECT(c, "ok", false, "confirm", NULL, id, "", NULL, "till \\ 4", "299");
    struct hf_request confirm = { .action = HF_CONFIRM, .client = r.client, .sequence = 299 };
    confirm.hold.id = hf_str(id);
    assert_int_equal(ask(&confirm), HF_OK);
    assert_true(got.replayed && got.answer.hold.state == HF_CONFIRMED);
    EXPECT(c, "window-elapsed", false, "release", NULL, id, "", "till \\ 4", "43");
    EXPECT(c, "invalid-request", false, "release", NULL, id, "", "till \\ 4", "1000300");
    EXPECT(c, "invalid-request", false, "release", NULL, id, "", "till \\ 4", "0");
    EXPECT(c, "ok", false, "write", NULL, "w", "value", "0", NULL, "", "till \\ 4", "301");
    EXPECT(c, "ok", false, "grant_lease", NULL, "l", "me", "1 hour", "", "till \\ 4", "300");
    /* A client that is new. */
    EXPECT(c, "invalid-request", false, "expire", NULL, id, "", "new", "1000001");
    EXPECT(c, "not-held", false, "expire", NULL, id, "", "new", "1000000");
    EXPECT(c, "ok", false, "reverse", NULL, id, "", "new", "1000255");
    /* What happened to a number? */
    r = (struct hf_request){ .action = HF_GET_TOKEN, .client = r.client, .sequence = 301 };
    assert_int_equal(ask(&r), HF_OK);
    assert_true(got.token.action == HF_WRITE && got.answer.reg.version == 1);
    IS(c, "write", "action", "token_status", NULL, "", "till \\ 4", "301");
    IS(c, "not-known", "status", "token_status", NULL, "", "till \\ 4", "298");
    IS(c, "not-known", "status", "token_status", NULL, "", "till \\ 4", "302");
    IS(c, "window-elapsed", "status", "token_status", NULL, "", "till \\ 4", "2");
    IS(c, "not-known", "status", "token_status", NULL, "", "nobody", "1");
    IS(c, "not-held", "answered", "token_status", NULL, "", "new", "1000000");
    IS(c, id, "hold", "token_status", NULL, "", "till \\ 4", "299");
    functions_fails(c, "22023", "SELECT holdfast.release('k', 'h', client => 'c', sequence => 1)");
    functions_fails(c, "22023",
                    "SELECT holdfast.release(NULL, 'h', client => 'c', sequence => 1.5)");
    functions_fails(c, "22004", "SELECT holdfast.release(NULL, 'h', client => 'c')");
    functions_fails(c, "22004", "SELECT holdfast.release(NULL, 'h', sequence => 1)");
    /* What is rolled back takes no number. */
    functions_run(c, "BEGIN");
    EXPECT(c, "not-held", false, "release", NULL, id, "", "third", "1");
    functions_run(c, "ROLLBACK");
    IS(c, "not-known", "status", "token_status", NULL, "", "third", "1");
    struct hf_request third = { .action = HF_RELEASE, .client = hf_str("third"), .sequence = 1 };
    third.hold.id = hf_str(id);
    assert_int_equal(ask(&third), HF_NOT_HELD);
    assert_false(got.replayed);
}

/* What the library deletes is not there for the functions; its fence and its version are. */
static void test_what_is_deleted(void **state)
{
    (void)state;

    struct hf_request r = { .action = HF_DELETE_REGISTER,
                            .key = hf_str("d1"),
                            .write = { .name = hf_str("register") } };
    EXPECT(c, "ok", false, "write", "w1", "register", "value", "7");
    assert_int_equal(ask(&r), HF_OK);
    assert_int_equal(got.answer.reg.version, 2);
    EXPECT(c, "not-known", false, "get_register", "register");
    EXPECT(c, "stale-fence", false, "write", "w2", "register", "value", "7");
    EXPECT(c, "version-mismatch", false, "write", "w3", "register", "value", "8", "2");
    EXPECT(c, "ok", false, "write", "w4", "register", "again", "8", "0");
    IS(c, "3", "version", "get_register", "register");
    IS(c, "8", "fence", "get_register", "register");
    struct hf_value top = { .type = HF_TYPE_MAX, .number = 5 };
    struct hf_request merge = { .action = HF_MERGE, .merge = { hf_str("merged"), &top } };
    assert_int_equal(ask(&merge), HF_OK);
    r.key = hf_str("d2");
    r.write.name = hf_str("merged");
    assert_int_equal(ask(&r), HF_OK);
    EXPECT(c, "ok", false, "write", "w5", "merged", "plain now");
    IS(c, "plain", "type", "get_register", "merged");
    IS(c, "3", "version", "get_register", "merged");

    EXPECT(c, "ok", false, "grant_lease", "l1", "lease", "ours", "1 hour");
    struct hf_request gone = { .action = HF_DELETE_LEASE,
                               .key = hf_str("d3"),
                               .lease = { .name = hf_str("lease") } };
    assert_int_equal(ask(&gone), HF_LEASE_HELD);
    struct hf_request look = { .action = HF_GET_LEASE, .get = { hf_str("lease") } };
    assert_int_equal(ask(&look), HF_OK);
    gone.key = hf_str("d4");
    gone.lease.fence = got.answer.lease.fence;
    assert_int_equal(ask(&gone), HF_OK);
    EXPECT(c, "not-known", false, "get_lease", "lease");
    EXPECT(c, "ok", false, "grant_lease", "l2", "lease", "theirs", "1 hour");
}

/* ---- Both at once ---- */

enum { WORKERS = 4, KEYS = 150, ROOMS = 4 };

struct worker {
    pthread_t thread;
    uint64_t random;
    int calls;
    PGconn *as; /* NULL: by the library */
    unsigned fresh[KEYS], answered[KEYS];
    char error[256];
};

/* The key tells everything else, so that all with the same key ask for the same. */
static void work_ours(struct worker *w, unsigned n)
{
    char key[24], name[24];
    struct hf_result r = HF_RESULT_INIT;
    snprintf(key, sizeof key, "key-%u", n);
    snprintf(name, sizeof name,
             n % 3 == 0   ? "room-%u"
             : n % 3 == 1 ? "register-%u"
                          : "lease-%u",
             n % ROOMS);
    struct hf_request q = place_request(key, name);
    if (n % 3 == 1) {
        q = (struct hf_request){ .action = HF_WRITE, .key = hf_str(key) };
        q.write.name = hf_str(name);
        q.write.value = hf_str(key);
    } else if (n % 3 == 2) {
        q = (struct hf_request){ .action = HF_GRANT, .key = hf_str(key) };
        q.lease.name = hf_str(name);
        q.lease.holder = hf_str(key);
        q.lease.ttl_ms = 1;
    }
    enum hf_status status = hf_do(db, &q, &r);
    if (hf_status_kind(status) > HF_KIND_REFUSAL || status == HF_TOKEN_COLLISION)
        snprintf(w->error, sizeof w->error, "%s: %s", key, hf_status_code(status));
    w->fresh[n] += !r.replayed;
    w->answered[n]++;
    hf_result_clear(&r);
}

static void work_theirs(struct worker *w, unsigned n)
{
    static const char *const calls[] = {
        "SELECT status, replayed FROM holdfast.place_hold('key-%u', 'room-%u', 'guest', '1 hour')",
        "SELECT status, replayed FROM holdfast.write('key-%u', 'register-%u', 'key-%u')",
        "SELECT status, replayed FROM holdfast.grant_lease('key-%u', 'lease-%u', 'key-%u', '1 ms')",
    };
    char sql[256], format[160];
    bool rolled_back = test_below(&w->random, 4) == 0;
    snprintf(format, sizeof format, "%s", calls[n % 3]);
    char *to = sql, *from = format;
    for (int i = 0; *from;
         from++) { /* the numbers one after the other: the key's, the name's, the key's */
        if (from[0] == '%' && from[1] == 'u') {
            to += snprintf(to, 12, "%u", i++ == 1 ? n % ROOMS : n);
            from++;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    PQclear(PQexec(w->as, "BEGIN"));
    PGresult *r = PQexec(w->as, sql);
    if (PQresultStatus(r) != PGRES_TUPLES_OK) {
        snprintf(w->error, sizeof w->error, "%s", PQresultErrorMessage(r));
    } else if (strcmp(PQgetvalue(r, 0, 0), "token-collision") == 0) {
        snprintf(w->error, sizeof w->error, "key-%u: token-collision", n);
    } else if (!rolled_back) {
        w->fresh[n] += PQgetvalue(r, 0, 1)[0] == 'f';
        w->answered[n]++;
    }
    PQclear(r);
    PQclear(PQexec(w->as, rolled_back ? "ROLLBACK" : "COMMIT"));
}

static void *work(void *arg)
{
    struct worker *w = arg;
    for (int i = 0; i < w->calls && !w->error[0]; i++) {
        unsigned n = (unsigned)test_below(&w->random, KEYS);
        if (w->as)
            work_theirs(w, n);
        else
            work_ours(w, n);
    }
    return NULL;
}

static void test_one_key_one_effect(void **state)
{
    (void)state;
    static struct worker workers[2 * WORKERS];
    const char *scale = getenv("HF_SCALE");
    uint64_t seed = test_seed("both at once", 11);
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < 2 * WORKERS; i++) {
        struct worker *w = &workers[i];
        w->random = seed * 1000 + (uint64_t)i;
        w->calls = scale && strcmp(scale, "full") == 0 ? 1000 : 150;
        w->as = i < WORKERS ? postgres_connect(&p) : NULL;
        assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
    }
    for (int i = 0; i < 2 * WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        PQfinish(workers[i].as);
        if (workers[i].error[0])
            fail_msg("%s", workers[i].error);
    }
    for (unsigned n = 0; n < KEYS; n++) {
        unsigned fresh = 0, answered = 0;
        for (int i = 0; i < 2 * WORKERS; i++) {
            fresh += workers[i].fresh[n];
            answered += workers[i].answered[n];
        }
        if (fresh != (answered > 0))
            fail_msg("key-%u was answered %u times, %u of them as new", n, answered, fresh);
    }
    assert_int_equal(
        postgres_number(
            &p, "SELECT count(*) FROM (SELECT key FROM holdfast.journal WHERE key IS NOT NULL "
                "GROUP BY key HAVING count(*) > 1) twice"),
        0);
    assert_true(postgres_number(&p, "SELECT count(*) FROM holdfast.journal WHERE writer = 0") > 0);
    assert_true(
        postgres_number(
            &p, "SELECT count(*) FROM holdfast.journal WHERE writer > 0 AND key IS NOT NULL") > 0);
}

/* ---- The first use of a name by both ---- */

/* A function makes what it is the first to use behind its key; and meanwhile a server has made it,
 * and comes with the same key. The function must not wait for the server's row as long as it has
 * the key. */
static const struct first_use {
    const char *table, *is_function; /* a row that a function inserts, to be filled in */
    struct hf_request request;
    const char *call;
} first_uses[] = {
    { "register",
      "NEW.version = 0",
      { .action = HF_WRITE, .write = { .name = { "new", 3 }, .value = { "v", 1 } } },
      "SELECT replayed FROM holdfast.write('both', 'new', 'v')" },
    { "lease",
      "NEW.fence = 0",
      { .action = HF_GRANT,
        .lease = { .name = { "new", 3 }, .holder = { "h", 1 }, .ttl_ms = 60000 } },
      "SELECT replayed FROM holdfast.grant_lease('both', 'new', 'h', '60 s')" },
    { "resource",
      "NEW.number = 0",
      { .action = HF_PLACE_HOLD,
        .place_hold = { .resource = { "new", 3 }, .requester = { "h", 1 }, .duration_ms = 60000 } },
      "SELECT replayed FROM holdfast.place_hold('both', 'new', 'h', '60 s')" },
};

static void *ask_with_the_key(void *arg)
{
    struct hf_request q = *(const struct hf_request *)arg;
    struct hf_result r = HF_RESULT_INIT;
    q.key = hf_str("both");
    enum hf_status status = hf_do(db, &q, &r);
    hf_result_clear(&r);
    return hf_status_kind(status) > HF_KIND_REFUSAL ? arg : NULL;
}

static void await(const char *sql)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; postgres_number(&p, sql) == 0;
         server_pause_ms(5))
        if (server_clock_ms() > until)
            fail_msg("never more than none: %s", sql);
}

static void test_first_use(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof first_uses / sizeof *first_uses; i++) {
        const struct first_use *u = &first_uses[i];
        struct hf_request q = u->request;
        PGconn *theirs = postgres_connect(&p);
        char sql[400];
        pthread_t thread;
        void *failed;
        q.key = hf_str("server");
        functions_run(c, "SELECT pg_advisory_lock(7)");
        /* Without the short patience of whoever calls it: on a slow machine that would be over too
         * soon. */
        functions_run(c,
                      "CREATE OR REPLACE FUNCTION public.pause() RETURNS trigger LANGUAGE plpgsql "
                      "SET lock_timeout = 0 AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(7); "
                      "RETURN NEW; END'");
        snprintf(sql, sizeof sql,
                 "CREATE TRIGGER pause BEFORE INSERT ON holdfast.%s FOR EACH ROW WHEN (%s) EXECUTE "
                 "FUNCTION public.pause()",
                 u->table, u->is_function);
        functions_run(c, sql);
        assert_int_equal(PQsendQuery(theirs, u->call), 1);
        await("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'");
        assert_int_equal(ask(&q), HF_OK);
        assert_int_equal(pthread_create(&thread, NULL, ask_with_the_key, &q), 0);
        await("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast' AND "
              "wait_event = 'transactionid'");
        functions_run(c, "SELECT pg_advisory_unlock(7)");
        PGresult *answer = PQgetResult(theirs);
        if (PQresultStatus(answer) != PGRES_TUPLES_OK)
            fail_msg("%s: %s", u->table, PQresultErrorMessage(answer));
        assert_string_equal(PQgetvalue(answer, 0, 0), "t");
        pthread_join(thread, &failed);
        assert_null(failed);
        PQclear(answer);
        PQfinish(theirs);
        functions_run(c, "DROP FUNCTION public.pause() CASCADE");
        hf_close(db);
        PQfinish(c);
        begin_with(0);
    }
    char *log = postgres_log(&p);
    assert_null(strstr(log, "deadlock detected"));
    free(log);
    struct hf_request q =
        place_request("ours", "room 1"); /* for `end`, which wants something of both */
    assert_int_equal(ask(&q), HF_OK);
    EXPECT(c, "ok", false, "place_hold", "theirs", "room 2", "guest", "1 hour");
}

/* A key whose window has closed is taken over by either. */
static void test_keys_leave(void **state)
{
    (void)state;
    hf_close(db);
    PQfinish(c);
    begin_with(1);
    for (int i = 0; i < 10; i++) {
        char name[24];
        snprintf(name, sizeof name, "room-%d", i);
        struct hf_request r = place_request("k", name);
        if (i % 2)
            assert_int_equal(ask(&r), HF_OK);
        else
            EXPECT(c, "ok", false, "place_hold", "k", name, "guest", "1 hour");
        server_pause_ms(3);
    }
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.hold"), 10);
}

/* ---- Figures ---- */

enum { SERVERS = 2 };

/* What both servers together have counted since they were opened. */
static struct hf_stats figures_of(struct hf_db *const servers[SERVERS])
{
    struct hf_stats sum = { 0 };
    for (int i = 0; i < SERVERS; i++) {
        struct hf_stats one;
        hf_stats(servers[i], &one);
        sum.duplicates += one.duplicates;
        sum.races += one.races;
        sum.collisions += one.collisions;
    }
    return sum;
}

static void counted(struct hf_db *const servers[SERVERS], uint64_t duplicates, uint64_t races,
                    uint64_t collisions)
{
    for (int i = 0; i < 2; i++) { /* once, however often it is looked at */
        struct hf_stats sum = figures_of(servers);
        assert_int_equal(sum.duplicates, duplicates);
        assert_int_equal(sum.races, races);
        assert_int_equal(sum.collisions, collisions);
    }
}

#define PLACE(key, resource) \
    "SELECT * FROM holdfast.place_hold('" key "', '" resource "', 'q', '1h')"

static void test_what_functions_meet_is_counted_once(void **state)
{
    (void)state;
    struct hf_db *servers[SERVERS];
    struct hf_error why;
    const struct hf_request r = place_request("server", "own");
    assert_int_equal(ask(&r), HF_OK);
    hf_close(db); /* it would count too, in its own time */
    for (int i = 0; i < SERVERS; i++) {
        const struct hf_options options = { .postgres = postgres_conninfo(&p),
                                            .no_background = true };
        assert_int_equal(hf_open("", &options, &servers[i], &why), HF_OK);
    }
    counted(servers, 0, 0, 0);
    functions_run(c, PLACE("a", "r"));
    counted(servers, 0, 0, 0);
    functions_run(c, PLACE("a", "r"));
    functions_run(c, PLACE("a", "other"));
    counted(servers, 1, 0, 1);
    functions_run(c, "SELECT holdfast.write(NULL, 'w', 'v', client => 'till', sequence => n) FROM "
                     "unnest('{1,1,2}'::integer[]) n");
    functions_run(c, "SELECT holdfast.write(NULL, 'other', 'v', client => 'till', sequence => 2)");
    counted(servers, 2, 0, 2);
    functions_run(c, "SELECT holdfast.begin('pay', '1'), holdfast.begin('pay', '1'), "
                     "holdfast.begin('pay', '2')");
    counted(servers, 2, 1, 3);
    functions_run(c, "SELECT holdfast.complete('pay', (holdfast.get_claim('pay')).fence, 'yes')");
    functions_run(c, "SELECT holdfast.complete('pay', (holdfast.get_claim('pay')).fence, 'yes'), "
                     "holdfast.begin('pay', '1')");
    functions_run(c, "SELECT holdfast.complete('pay', (holdfast.get_claim('pay')).fence, 'no')");
    counted(servers, 4, 1, 4);
    /* What is rolled back was met all the same; and a replay needs no transaction that writes. */
    functions_run(c, "BEGIN; " PLACE("a", "r") "; ROLLBACK");
    functions_run(c, "BEGIN READ ONLY; " PLACE("a", "r") "; COMMIT");
    counted(servers, 5, 1, 4);
    /* One arrives while the first is not committed. */
    PGconn *first = postgres_connect(&p);
    functions_run(first, "BEGIN; " PLACE("raced", "q"));
    assert_int_equal(PQsendQuery(c, PLACE("raced", "q")), 1);
    postgres_await_number(&p, "SELECT count(*) FROM pg_locks WHERE NOT granted", 1);
    functions_run(first, "COMMIT");
    PGresult *result = PQgetResult(c);
    assert_string_equal(functions_text(result, "replayed"), "t");
    PQclear(result);
    assert_null(PQgetResult(c));
    PQfinish(first);
    counted(servers, 6, 2, 4);
    /* The other one counts when the one that did is gone. */
    hf_close(servers[0]);
    db = servers[1];
    functions_run(c, PLACE("a", "r"));
    struct hf_stats after;
    hf_stats(servers[1], &after);
    uint64_t before = after.duplicates;
    functions_run(c, PLACE("a", "r"));
    hf_stats(servers[1], &after);
    assert_int_equal(after.duplicates, before + 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_holds),
        TEST(test_claims),
        TEST(test_guards_leases_registers),
        TEST(test_what_is_deleted),
        TEST(test_numbered_clients),
        TEST(test_one_key_one_effect),
        TEST(test_first_use),
        TEST(test_keys_leave),
        TEST(test_what_functions_meet_is_counted_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
