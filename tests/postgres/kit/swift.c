#include "postgres/kit/swift.h"

#include "postgres/kit/functions.h"
#include "support/test.h"

#include "audit/audit.h"
#include "core/digest.h"
#include "store/postgres/migrate.h"

struct swift swift;

int swift_group_set_up(void **state)
{
    (void)state;
    postgres_init(&swift.p);
    postgres_start(&swift.p);
    return 0;
}

int swift_group_tear_down(void **state)
{
    (void)state;
    postgres_end(&swift.p);
    return 0;
}

/* ---- A store, and a session of it ---- */

struct hf_db *swift_open(void)
{
    struct hf_options options = { .no_background = true, .postgres = postgres_conninfo(&swift.p) };
    struct hf_error why;
    struct hf_db *db = NULL;
    if (hf_open(NULL, &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    return db;
}

int swift_set_up(void **state)
{
    struct hf_options options = { .postgres = postgres_conninfo(&swift.p) };
    struct hf_pg_conn conn = { .patience_ms = 20000 };
    struct hf_rules rules;
    struct hf_error why;
    (void)state;
    postgres_run(&swift.p, "DROP SCHEMA IF EXISTS holdfast CASCADE");
    hf_close(swift_open());
    memset(&swift.shared, 0, sizeof swift.shared);
    pthread_mutex_init(&swift.shared.clock_lock, NULL);
    swift.shared.conninfo = postgres_conninfo(&swift.p);
    snprintf(swift.shared.name, sizeof swift.shared.name, "test");
    assert_int_equal(hf_pg_connect(&conn, swift.shared.conninfo, false), HF_PG_FINE);
    assert_int_equal(hf_pg_migrate(&conn, &options, &swift.shared, &rules, &why), HF_OK);
    hf_pg_disconnect(&conn);
    assert_true(hf_pg_session_init(&swift.session, &swift.shared));
    assert_int_equal(hf_pg_session_connect(&swift.session, NULL), HF_PG_FINE);
    assert_int_equal(hf_pg_session_register(&swift.session), HF_PG_FINE);
    assert_int_equal(
        hf_pg_ask(&swift.session.conn, "SET lock_timeout = '10s'", 0, NULL, false, NULL),
        HF_PG_FINE);
    swift.user = postgres_connect(&swift.p);
    return 0;
}

int swift_tear_down(void **state)
{
    (void)state;
    hf_pg_session_free(&swift.session);
    PQfinish(swift.user);
    return 0;
}

void swift_audited(void)
{
    struct hf_audit_options options = { .postgres = postgres_conninfo(&swift.p) };
    struct hf_audit_report report = { .verdict = HF_AUDIT_OK };
    struct hf_error why;
    assert_int_equal(hf_audit_run(NULL, &options, &report, &why), HF_OK);
    for (size_t i = 0; i < report.check_count; i++)
        if (report.checks[i].example_count > 0)
            fail_msg("%s: %s", report.checks[i].name, report.checks[i].examples[0]);
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    hf_audit_report_free(&report);
}

/* ---- Requests ---- */

struct hf_request swift_placing(const char *key, const char *resource, int64_t duration_ms)
{
    return (struct hf_request){ .action = HF_PLACE_HOLD,
                                .key = hf_str(key),
                                .place_hold = { .resource = hf_str(resource),
                                                .requester = hf_str("guest"),
                                                .duration_ms = duration_ms } };
}

struct hf_request swift_ending(enum hf_action action, const char *key, const char *hold)
{
    return (
        struct hf_request){ .action = action, .key = hf_str(key), .hold = { .id = hf_str(hold) } };
}

/* ---- Batches ---- */

static void decided(void *arg, size_t index, const struct hf_plan *plan, hf_time now)
{
    struct swift_run *r = arg;
    (void)now;
    r->status[index] = plan->answer.status;
    r->replayed[index] = plan->replayed;
    if (plan->answer.kind == HF_RECORD_HOLD)
        memcpy(r->hold[index], plan->answer.hold.id, HF_ID_SIZE);
}

static void *run_thread(void *arg)
{
    struct swift_run *r = arg;
    r->end = hf_pg_batch_run(&swift.session, &r->batch);
    return NULL;
}

void swift_make(const struct hf_request *requests, size_t count)
{
    memset(&swift.run, 0, sizeof swift.run);
    swift.run.batch = (struct hf_pg_batch){
        .items = swift.run.items, .count = count, .decided = decided, .arg = &swift.run
    };
    for (size_t i = 0; i < count; i++) {
        swift.run.requests[i] = requests[i];
        swift.run.items[i].request = &swift.run.requests[i];
        hf_digest(&swift.run.requests[i], swift.run.items[i].digest);
    }
}

void swift_calm(void)
{
    swift.session.expects_new = true;
    atomic_store(&swift.shared.locking, 0);
    atomic_store(&swift.shared.looking, 0);
    atomic_store(&swift.shared.sweeping, 0);
}

void swift_start(void)
{
    assert_int_equal(pthread_create(&swift.run.thread, NULL, run_thread, &swift.run), 0);
}

enum hf_pg_end swift_join(void)
{
    pthread_join(swift.run.thread, NULL);
    return swift.run.end;
}

enum hf_pg_end swift_now(void)
{
    run_thread(&swift.run);
    return swift.run.end;
}

enum hf_pg_end swift_again(void)
{
    swift.run.batch.careful = true;
    return swift_now();
}

void swift_begin(const struct hf_request *requests, size_t count)
{
    swift_make(requests, count);
    swift_calm();
    swift_start();
}

enum hf_pg_end swift_try(const struct hf_request *requests, size_t count)
{
    swift_begin(requests, count);
    return swift_join();
}

enum hf_status swift_do(struct hf_request q)
{
    if (swift_try(&q, 1) != HF_PG_DONE)
        assert_int_equal(swift_again(), HF_PG_DONE);
    return swift.run.status[0];
}

static const char drawn[] = "SELECT last_value FROM holdfast.journal_number";

/* A batch with locks would wait for this one before it reads, and not have drawn its numbers by
 * then. */
void swift_between(const struct hf_request *requests, size_t count)
{
    long long before = postgres_number(&swift.p, drawn);
    functions_run(swift.user, "BEGIN");
    functions_run(swift.user, "LOCK TABLE holdfast.store IN EXCLUSIVE MODE");
    swift_begin(requests, count);
    postgres_await_number(&swift.p,
                          "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = "
                          "'holdfast.store'::regclass",
                          1);
    assert_true(postgres_number(&swift.p, drawn) > before);
}

enum hf_pg_end swift_between_over(void)
{
    functions_run(swift.user, "COMMIT");
    return swift_join();
}

void swift_await_blocked(void)
{
    postgres_await_number(&swift.p, "SELECT count(*) FROM pg_locks WHERE NOT granted", 1);
}
