/* Where commits wait for standbys, a question stands behind the COMMIT of each batch, in the same
 * round trip: whether the settings were loaded again meanwhile. It may fail: somebody cancels what
 * the session does, memory is short, the session is ended. The batch is committed all the same, and
 * its callers are told so. */
#include "postgres/kit/postgres.h"
#include "postgres/kit/story.h"
#include "support/test.h"

#include "audit/audit.h"
#include "holdfast.h"

#include <stdio.h>
#include <stdlib.h>

enum { HOUR_MS = 3600000 };

static struct postgres a, b;
static struct hf_db *db;
static struct hf_result got = HF_RESULT_INIT;

/* Cancelled; out of memory; the session is ended; somebody was faster; the database's own fault. */
static const char *const states[] = { "57014", "53200", "57P01", "40001", "XX000" };
static const char *const lease_keys[] = { "l1", "l2", "l3", "l4", "l5" };
enum { STATES = sizeof states / sizeof *states };

/* The function that is asked behind COMMIT fails, with the state in public.failing, wherever no
 * transaction has written something. */
static void function_may_fail(void)
{
    postgres_run(
        &a,
        "CREATE TABLE public.failing (state text);ALTER FUNCTION pg_catalog.pg_conf_load_time() "
        "RENAME TO pg_conf_load_time_itself;CREATE FUNCTION pg_catalog.pg_conf_load_time() RETURNS "
        "timestamptz LANGUAGE plpgsql AS $$ DECLARE f text; BEGIN SELECT state INTO f FROM "
        "public.failing; IF f IS NOT NULL AND pg_current_xact_id_if_assigned() IS NULL THEN RAISE "
        "EXCEPTION 'this fails behind COMMIT' USING ERRCODE = f; END IF; RETURN "
        "pg_conf_load_time_itself(); END $$");
}

static void fails_with(const char *state)
{
    char sql[120];
    snprintf(sql, sizeof sql,
             "DELETE FROM public.failing; INSERT INTO public.failing VALUES ('%s')",
             state ? state : "");
    postgres_run(&a, state ? sql : "DELETE FROM public.failing");
}

static int begin(void **state)
{
    struct hf_options options = { .no_background = true };
    struct hf_error why;
    (void)state;
    postgres_init(&a);
    postgres_init(&b);
    postgres_start(&a);
    postgres_follow(&b, &a, POSTGRES_SYNC, 0);
    function_may_fail();
    options.postgres = postgres_conninfo(&a);
    if (hf_open(NULL, &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (db)
        hf_close(db);
    hf_result_clear(&got);
    postgres_end(&b);
    postgres_end(&a);
    return 0;
}

static enum hf_status ask(struct hf_request q)
{
    return hf_do(db, &q, &got);
}

static void audited(void)
{
    struct hf_audit_report report = { .verdict = HF_AUDIT_VIOLATIONS };
    story_audit(&a, &report);
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    hf_audit_report_free(&report);
}

static void what_is_committed_is_done_whatever_fails_behind_it(void **state)
{
    struct hf_request guard = { .action = HF_SET_GUARD,
                                .set_guard = { .name = hf_str("guard"),
                                               .window_ms = HOUR_MS,
                                               .on_unavailable = HF_FAIL_CLOSED } };
    (void)state;
    assert_int_equal(ask(guard), HF_OK);
    for (int i = 0; i < STATES; i++) {
        struct hf_request claim = { .action = HF_BEGIN,
                                    .key = hf_str(states[i]),
                                    .begin = { .lease_ms = HOUR_MS } };
        struct hf_request admit = { .action = HF_ADMIT,
                                    .identity = { .guard = hf_str("guard"),
                                                  .identity = hf_str(states[i]) } };
        struct hf_request lease = {
            .action = HF_GRANT,
            .key = hf_str(lease_keys[i]),
            .lease = { .name = hf_str(states[i]), .holder = hf_str("me"), .ttl_ms = HOUR_MS }
        };
        fails_with(states[i]);
        assert_int_equal(ask(claim), HF_OK);
        assert_false(got.replayed);
        uint64_t fence = got.answer.claim.fence;
        assert_int_equal(ask(admit), HF_OK);
        assert_false(got.answer.seen.seen);
        assert_int_equal(ask(lease), HF_OK);
        fails_with(NULL);
        struct hf_request complete = { .action = HF_COMPLETE,
                                       .key = hf_str(states[i]),
                                       .settle = { .fence = fence, .response = hf_str("done") } };
        assert_int_equal(ask(complete), HF_OK);
    }
    assert_int_equal(
        postgres_number(&a, "SELECT count(*) FROM holdfast.journal WHERE action = 'admit'"),
        STATES);
    audited();
}

static void what_is_swept_is_swept_whatever_fails_behind_it(void **state)
{
    struct hf_stats stats;
    (void)state;
    for (int i = 0; i < STATES; i++) {
        struct hf_request place = { .action = HF_PLACE_HOLD,
                                    .key = hf_str(states[i]),
                                    .place_hold = { .resource = hf_str(states[i]),
                                                    .requester = hf_str("me"),
                                                    .duration_ms = 1 } };
        assert_int_equal(ask(place), HF_OK);
        postgres_await_number(&a,
                              "SELECT count(*) FROM holdfast.hold WHERE state = 'held' AND "
                              "expires_at > clock_timestamp()",
                              0);
        fails_with(states[i]);
        (void)hf_maintain(db);
        hf_stats(db, &stats);
        if (strcmp(states[i], "57P01") != 0) /* else it has to connect again */
            assert_false(stats.database_away);
        fails_with(NULL);
        (void)hf_maintain(db);
    }
    assert_int_equal(
        postgres_number(&a, "SELECT count(*) FROM holdfast.hold WHERE state = 'expired'"), STATES);
    audited();
}

/* Any warning counted as the one that says that the wait for a standby was given up. Near the
 * wraparound of its transactions the database warns at each of them: every write and read was
 * refused for good. */
static void a_warning_about_something_else_stops_nothing(void **state)
{
    (void)state;
    postgres_run(&a, "CREATE FUNCTION public.warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                     "RAISE WARNING 'the database must be vacuumed'; RETURN NULL; END $$;CREATE "
                     "CONSTRAINT TRIGGER warns AFTER INSERT OR UPDATE ON holdfast.hold DEFERRABLE "
                     "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.warn();CREATE "
                     "CONSTRAINT TRIGGER warns AFTER INSERT OR UPDATE ON holdfast.writer "
                     "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.warn()");
    for (int i = 0; i < 3; i++) {
        char key[16];
        snprintf(key, sizeof key, "warned-%d", i);
        struct hf_request place = { .action = HF_PLACE_HOLD,
                                    .key = hf_str(key),
                                    .place_hold = { hf_str(key), hf_str("guest"), HOUR_MS, 0 } };
        assert_int_equal(hf_do(db, &place, &got), HF_OK);
        assert_false(got.replayed);
        /* And when the session has to connect again. */
        postgres_run(
            &a,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE "
            "'holdfast%' AND pid <> pg_backend_pid()");
        assert_int_equal(hf_do(db, &place, &got), HF_OK);
        assert_true(got.replayed);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_is_committed_is_done_whatever_fails_behind_it),
        TEST(what_is_swept_is_swept_whatever_fails_behind_it),
        TEST(a_warning_about_something_else_stops_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
