/* The audit of a database that two servers, several threads each, and users' own transactions write
 * to at the same time: over few names, with windows and leases that run out while everybody is at
 * work. Whatever moment an audit sees must pass every check, and so must the end. */
#include "postgres/kit/story.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SERVERS = 2, THREADS = 3, NAMES = 4, WINDOW_MS = 300 };

static struct postgres p;
static struct hf_db *db[SERVERS];
static _Atomic bool stop;
static _Atomic unsigned long done;

static void word(char out[32], const char *what, uint64_t *random, uint64_t names)
{
    snprintf(out, 32, "%s-%llu", what, (unsigned long long)test_below(random, names));
}

static enum hf_status effect(struct hf_tx *tx, void *arg)
{
    struct hf_bytes value;
    uint64_t *random = arg;
    if (test_below(random, 4) == 0)
        return HF_REFUSED;
    if (hf_tx_get(tx, hf_str("sum"), &value) == HF_STORAGE_FAILURE)
        return HF_STORAGE_FAILURE;
    if (test_below(random, 3) == 0)
        return hf_tx_delete(tx, hf_str("sum"));
    KIT_WANT(hf_tx_enqueue(tx, hf_str("t"), hf_str("x")) == HF_OK);
    return hf_tx_put(tx, hf_str("sum"), hf_str("1"));
}

/* What one thread remembers of what it was told. */
struct memory {
    uint64_t random, sequence;
    char id[HF_ID_SIZE];
    uint64_t fence, lease;
    char claim[32], name[32], client[32];
};

static void hold_make(struct memory *m, struct hf_request *r, const char *key)
{
    static const enum hf_action ends[] = { HF_CONFIRM, HF_RELEASE, HF_EXPIRE, HF_REVERSE };
    word(m->name, "room", &m->random, NAMES);
    r->key = hf_str(key);
    if (m->id[0] && test_below(&m->random, 2)) {
        r->action = ends[test_below(&m->random, 4)];
        r->hold.id = hf_str(m->id);
        return;
    }
    r->action = HF_PLACE_HOLD;
    r->place_hold.resource = hf_str(m->name);
    r->place_hold.requester = hf_str("q");
    r->place_hold.duration_ms = 20 + (int64_t)test_below(&m->random, 200);
}

static void claim_make(struct memory *m, struct hf_request *r)
{
    static const enum hf_action settle[] = { HF_COMPLETE, HF_FAIL, HF_HEARTBEAT };
    if (m->fence && test_below(&m->random, 2)) {
        r->action = settle[test_below(&m->random, 3)];
        r->key = hf_str(m->claim);
        r->settle.fence = m->fence;
        r->settle.retryable = r->action == HF_FAIL && test_below(&m->random, 2);
        if (r->action != HF_HEARTBEAT)
            r->settle.response = hf_str("1");
        return;
    }
    word(m->claim, "k", &m->random, 2 * NAMES); /* the names of keys: claims and calls meet */
    r->action = HF_BEGIN;
    r->key = hf_str(m->claim);
    r->begin.payload = hf_str("p");
    r->begin.lease_ms = 10 + (int64_t)test_below(&m->random, 50);
    r->begin.on_abandon = test_below(&m->random, 2) ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN;
}

static void lease_make(struct memory *m, struct hf_request *r, const char *key)
{
    word(m->name, "lease", &m->random, NAMES);
    r->lease.name = hf_str(m->name);
    if (m->lease && test_below(&m->random, 2)) {
        r->action = test_below(&m->random, 2) ? HF_RENEW : HF_RETURN;
        r->lease.fence = m->lease;
        return;
    }
    r->action = HF_GRANT;
    r->key = hf_str(key);
    r->lease.holder = hf_str("n");
    r->lease.ttl_ms = 10 + (int64_t)test_below(&m->random, 50);
}

static void other_make(struct memory *m, struct hf_request *r, const char *key)
{
    static const struct hf_value up = { .type = HF_TYPE_MAX, .number = 7 };
    switch (test_below(&m->random, 6)) {
    case 0:
        word(m->name, "guard", &m->random, NAMES);
        r->action = HF_SET_GUARD;
        r->set_guard.name = hf_str(m->name);
        r->set_guard.window_ms = 10 + (int64_t)test_below(&m->random, 50);
        return;
    case 1:
        word(m->name, "guard", &m->random, NAMES);
        r->action = test_below(&m->random, 2) ? HF_ADMIT : HF_RECORD;
        r->identity.guard = hf_str(m->name);
        r->identity.identity = hf_str(key);
        return;
    case 2:
        word(m->name, "room", &m->random, NAMES);
        r->action = HF_SET_RESOURCE;
        r->set_resource.name = hf_str(m->name);
        r->set_resource.capacity = 5 + (uint32_t)test_below(&m->random, 20);
        r->set_resource.open = test_below(&m->random, 8) ? HF_SET_OPEN : HF_SET_CLOSED;
        return;
    case 3:
        word(m->name, "reg", &m->random, NAMES);
        r->action = HF_WRITE;
        r->key = hf_str(key);
        r->write.name = hf_str(m->name);
        r->write.value = hf_str(key);
        r->write.fence = test_below(&m->random, 3) ? 0 : test_below(&m->random, 1000);
        return;
    case 4:
        word(m->name, "max", &m->random, NAMES);
        r->action = HF_MERGE;
        r->merge.name = hf_str(m->name);
        r->merge.value = &up;
        return;
    default:
        r->action = HF_APPLY;
        r->key = hf_str(key);
        r->apply.name = hf_str("add");
        r->apply.fn = effect;
        r->apply.arg = &m->random;
    }
}

static void step(struct memory *m, struct hf_db *at)
{
    char key[32];
    struct hf_request r = { .action = 0 };
    struct hf_result result = HF_RESULT_INIT;
    word(key, "k", &m->random, 2 * NAMES);
    switch (test_below(&m->random, 4)) {
    case 0:
    case 1: hold_make(m, &r, key); break;
    case 2: test_below(&m->random, 2) ? claim_make(m, &r) : lease_make(m, &r, key); break;
    default: other_make(m, &r, key);
    }
    if (r.action == HF_PLACE_HOLD && test_below(&m->random, 4) == 0) {
        r.key = hf_mem(NULL, 0);
        r.client = hf_str(m->client);
        r.sequence = ++m->sequence;
    }
    enum hf_status st = hf_do(at, &r, &result);
    KIT_WANT(st != HF_STORAGE_FAILURE && st != HF_INDETERMINATE && st != HF_MISUSE);
    if (st == HF_OK && r.action == HF_PLACE_HOLD)
        memcpy(m->id, result.answer.hold.id, HF_ID_SIZE);
    if (st == HF_OK && r.action == HF_BEGIN && !result.replayed)
        m->fence = result.answer.claim.fence;
    if (st == HF_OK && r.action == HF_GRANT)
        m->lease = result.answer.lease.fence;
    hf_result_clear(&result);
    done++;
}

static void *work(void *arg)
{
    size_t number = (size_t)arg;
    struct memory m = { .random = test_seed("worker", 1000) + 1000 * number };
    snprintf(m.client, sizeof m.client, "client-%zu", number);
    while (!stop)
        step(&m, db[number % SERVERS]);
    return NULL;
}

/* Users' own transactions, of which some are rolled back. */
static void *call_functions(void *arg)
{
    static const struct {
        const char *sql, *name;
    } calls[] = {
        { "SELECT holdfast.place_hold($1::text, $2::text, 'q', interval '50 ms')", "room" },
        { "SELECT holdfast.admit($2::text, $1::text)", "guard" },
        { "SELECT holdfast.begin($1::text, 'p'::text, interval '20 ms', 'retry'), $2::text",
          "none" },
        { "SELECT holdfast.write($1::text, $2::text, 'v'::text)", "reg" },
        { "SELECT holdfast.place_hold($1::text, $2::text, 'q', interval '1 hour')", "room" },
    };
    uint64_t random = test_seed("functions", 77);
    (void)arg;
    PGconn *c = PQconnectdb(postgres_conninfo(&p));
    KIT_WANT(PQstatus(c) == CONNECTION_OK);
    while (!stop) {
        bool good = true;
        PQclear(PQexec(c, "BEGIN"));
        for (uint64_t n = test_below(&random, 2) + 1; n > 0 && good; n--) {
            char key[32], name[32];
            const char *const params[] = { key, name };
            uint64_t which = test_below(&random, sizeof calls / sizeof *calls);
            word(key, "k", &random, 2 * NAMES);
            word(name, calls[which].name, &random, NAMES);
            PGresult *result = PQexecParams(c, calls[which].sql, 2, NULL, params, NULL, NULL, 0);
            good = PQresultStatus(result) == PGRES_TUPLES_OK;
            const char *state = good ? "" : PQresultErrorField(result, PG_DIAG_SQLSTATE);
            if (!good && strcmp(state, "40P01") != 0 && strcmp(state, "40001") != 0)
                kit_unwanted(PQresultErrorMessage(result), __FILE__, __LINE__);
            PQclear(result);
        }
        PQclear(PQexec(c, good && test_below(&random, 4) ? "COMMIT" : "ROLLBACK"));
    }
    PQfinish(c);
    return NULL;
}

static void every_moment_passes(void **state)
{
    (void)state;
    bool full = getenv("HF_SCALE") && strcmp(getenv("HF_SCALE"), "full") == 0;
    pthread_t threads[SERVERS * THREADS + 1];
    struct hf_audit_report report = { .verdict = HF_AUDIT_OK };
    struct hf_options options = { .postgres = postgres_conninfo(&p),
                                  .idempotency_window_ms = WINDOW_MS };
    struct hf_error why;
    for (size_t i = 0; i < SERVERS; i++)
        if (hf_open("", &options, &db[i], &why) != HF_OK)
            fail_msg("%s", why.text);
    for (size_t i = 0; i < SERVERS * THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    assert_int_equal(pthread_create(&threads[SERVERS * THREADS], NULL, call_functions, NULL), 0);
    for (int i = 0; i < (full ? 40 : 8) && report.verdict == HF_AUDIT_OK; i++) {
        server_pause_ms(300);
        story_audit(&p, &report);
        if (report.verdict == HF_AUDIT_OK)
            hf_audit_report_free(&report);
    }
    stop = true;
    for (size_t i = 0; i <= SERVERS * THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < SERVERS; i++)
        hf_close(db[i]);
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    story_audit(&p, &report);
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    print_message("%lu operations, %llu entries, %llu of functions\n", (unsigned long)done,
                  (unsigned long long)report.entries, (unsigned long long)report.function_entries);
    assert_true(report.function_entries > 0 && report.entries > report.function_entries);
    hf_audit_report_free(&report);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_moment_passes) };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
