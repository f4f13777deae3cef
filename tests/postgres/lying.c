/* Rows that an operator or an intruder has changed by hand. What the store cannot have written is
 * refused where it is needed and nowhere else; what it could have written is found by the audit. */
#include "postgres/kit/postgres.h"
#include "postgres/kit/story.h"
#include "support/test.h"

#include "audit/audit.h"
#include "holdfast.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HOUR_MS = 3600000 };

static struct postgres p;
static struct hf_db *db;
static struct hf_result got = HF_RESULT_INIT;
static char notes[8192];
static _Atomic unsigned note_count;

/* Called by one thread at a time here: nothing runs in the background. */
static void noted(void *arg, int level, const char *line)
{
    size_t used = strlen(notes);
    (void)arg;
    if (level > 0)
        atomic_fetch_add(&note_count, 1);
    snprintf(notes + used, sizeof notes - used, "%s\n", line);
}

static void reopen(void)
{
    struct hf_options options = { .no_background = true,
                                  .postgres = postgres_conninfo(&p),
                                  .on_note = noted };
    struct hf_error why;
    if (db)
        hf_close(db);
    notes[0] = '\0';
    note_count = 0;
    if (hf_open(NULL, &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
}

static int setup(void **state)
{
    (void)state;
    postgres_run(&p, "DROP SCHEMA IF EXISTS holdfast CASCADE");
    reopen();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hf_close(db);
    db = NULL;
    hf_result_clear(&got);
    return 0;
}

/* Until every hold that was placed for a millisecond is overdue, by the clock that engine time
 * follows. */
static void await_overdue(void)
{
    while (postgres_number(
               &p, "SELECT count(*) FROM holdfast.hold WHERE state = 'held' AND expires_at "
                   "BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 minute'") > 0)
        ;
}

static enum hf_status ask(const char *tenant, struct hf_request q)
{
    q.tenant = hf_str(tenant);
    return hf_do(db, &q, &got);
}

static enum hf_status place(const char *tenant, const char *key, const char *resource,
                            int64_t duration_ms, uint64_t fence)
{
    return ask(tenant, (struct hf_request){ .action = HF_PLACE_HOLD,
                                            .key = hf_str(key),
                                            .place_hold = { .resource = hf_str(resource),
                                                            .requester = hf_str("guest"),
                                                            .duration_ms = duration_ms,
                                                            .fence = fence } });
}

static enum hf_status with_hold(enum hf_action action, const char *tenant, const char *key,
                                const char *id)
{
    return ask(tenant, (struct hf_request){
                           .action = action, .key = hf_str(key), .hold = { .id = hf_str(id) } });
}

static enum hf_status with_key(enum hf_action action, const char *tenant, const char *key,
                               uint64_t fence)
{
    return ask(tenant, (struct hf_request){
                           .action = action, .key = hf_str(key), .settle = { .fence = fence } });
}

static uint64_t begin_claim(const char *tenant, const char *key)
{
    assert_int_equal(ask(tenant, (struct hf_request){ .action = HF_BEGIN,
                                                      .key = hf_str(key),
                                                      .begin = { .lease_ms = HOUR_MS } }),
                     HF_OK);
    return got.answer.claim.fence;
}

static enum hf_status grant(const char *tenant, const char *key)
{
    return ask(tenant, (struct hf_request){ .action = HF_GRANT,
                                            .key = hf_str(key),
                                            .lease = { .name = hf_str("lease"),
                                                       .holder = hf_str("holder"),
                                                       .ttl_ms = HOUR_MS } });
}

static size_t listed(const char *tenant, const char *resource)
{
    struct hf_page page = { .count = 0 };
    struct hf_query query = { .kind = HF_LIST_HOLDS,
                              .tenant = hf_str(tenant),
                              .resource = hf_str(resource) };
    assert_int_equal(hf_list(db, &query, &page), HF_OK);
    size_t count = page.count;
    hf_page_clear(&page);
    return count;
}

/* How many records could not be read; and the database is not blamed for them. */
static uint64_t unreadable(void)
{
    struct hf_stats stats;
    hf_stats(db, &stats);
    assert_false(stats.database_away);
    return stats.records_unreadable;
}

/* Rows may be anything from now on: the constraints would refuse some of it. */
static void unbind(const char *table, const char *column)
{
    char sql[256];
    snprintf(sql, sizeof sql, "ALTER TABLE holdfast.%s ALTER COLUMN %s DROP NOT NULL", table,
             column);
    postgres_run(&p, sql);
}

/* ---- Bytes of a row in a buffer that was made for the request ---- */

static void a_started_claim_with_a_response_overruns_nothing(void **state)
{
    (void)state;
    uint64_t fence = begin_claim("", "open"), other = begin_claim("", "other");
    postgres_run(&p,
                 "UPDATE holdfast.token SET response = convert_to(repeat('x', 3000000), 'UTF8') "
                 "WHERE key = 'open'");
    assert_int_equal(with_key(HF_HEARTBEAT, "", "open", fence), HF_STORAGE_FAILURE);
    assert_int_equal(with_key(HF_GET_CLAIM, "", "open", 0), HF_STORAGE_FAILURE);
    assert_int_equal(with_key(HF_HEARTBEAT, "", "other", other), HF_OK);
    /* Small enough for a response, and there must be none all the same. */
    postgres_run(&p, "UPDATE holdfast.token SET response = 'x' WHERE key = 'other'");
    assert_int_equal(with_key(HF_HEARTBEAT, "", "other", other), HF_STORAGE_FAILURE);
    assert_true(unreadable() >= 3);
}

/* The journal's entry has one byte for the length of a tenant's name, and a sweep takes the name
 * from the row. */
static void a_tenant_longer_than_one_can_be_overruns_nothing(void **state)
{
    (void)state;
    assert_int_equal(place("", "key", "room", 1, 0), HF_OK);
    await_overdue();
    postgres_run(&p, "UPDATE holdfast.hold SET tenant = repeat('t', 100000); "
                     "UPDATE holdfast.resource SET tenant = repeat('t', 100000)");
    while (hf_maintain(db))
        ;
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.hold WHERE state = 'held'"),
                     1);
    assert_true(unreadable() > 0);
}

/* ---- One row stops nobody but those who need it ---- */

static void an_unsound_hold_stops_nobody_else(void **state)
{
    (void)state;
    assert_int_equal(place("a", "key", "room", 1, 0), HF_OK);
    assert_int_equal(place("a", "other", "other", HOUR_MS, 0), HF_OK);
    assert_int_equal(place("b", "key", "room", 1, 0), HF_OK);
    await_overdue();
    postgres_run(&p,
                 "UPDATE holdfast.hold SET requester = repeat('x', 2000) WHERE tenant = 'a' AND "
                 "resource = 'room'");
    assert_int_equal(listed("b", ""), 1);
    assert_int_equal(listed("b", "room"), 1);
    assert_int_equal(listed("a", ""), 1);
    assert_int_equal(listed("a", "room"), 0);
    while (hf_maintain(db))
        ;
    assert_int_equal(
        postgres_number(
            &p, "SELECT count(*) FROM holdfast.hold WHERE state = 'expired' AND tenant = 'b'"),
        1);
    assert_true(unreadable() >= 4);
    assert_non_null(strstr(notes, "holdfast.hold"));
    assert_non_null(strstr(notes, "ordinal 1"));
    assert_in_range(note_count, 1, 2);
    /* Who needs the row is refused; who needs its resource is told that it is taken. */
    assert_int_equal(place("a", "next", "room", HOUR_MS, 0), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(place("b", "next", "room", HOUR_MS, 0), HF_OK);
    /* The row is mended: the hold is found overdue again. */
    postgres_run(&p, "UPDATE holdfast.hold SET requester = 'guest'");
    assert_int_equal(place("a", "last", "room", HOUR_MS, 0), HF_OK);
}

/* More than a step of the sweeper takes. */
static void many_unsound_holds_keep_no_other_from_being_swept(void **state)
{
    enum { COUNT = 300 };
    static struct hf_request requests[COUNT];
    static char keys[COUNT][16];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        snprintf(keys[i], sizeof keys[i], "key-%d", i);
        requests[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                           .tenant = hf_str("a"),
                                           .key = hf_str(keys[i]),
                                           .place_hold = { .resource = hf_str(keys[i]),
                                                           .requester = hf_str("guest"),
                                                           .duration_ms = 1 } };
    }
    assert_int_equal(hf_do_many(db, requests, NULL, COUNT), HF_OK);
    await_overdue();
    assert_int_equal(place("b", "key", "room", 1, 0), HF_OK);
    await_overdue();
    postgres_run(&p, "UPDATE holdfast.hold SET requester = repeat('x', 2000) WHERE tenant = 'a'");
    for (int i = 0; i < 4; i++)
        (void)hf_maintain(db);
    assert_int_equal(
        postgres_number(
            &p, "SELECT count(*) FROM holdfast.hold WHERE state = 'expired' AND tenant = 'b'"),
        1);
    assert_true(unreadable() > 0);
}

/* Something in the database makes sweeping fail, and it is about the row: others are served. */
static void a_row_that_cannot_be_swept_is_no_database_that_is_away(void **state)
{
    struct hf_stats stats;
    (void)state;
    assert_int_equal(place("", "short", "short", 1, 0), HF_OK);
    await_overdue();
    postgres_run(
        &p,
        "CREATE FUNCTION holdfast.odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
        "EXCEPTION 'this row is odd' USING ERRCODE = '22008'; END $$; CREATE TRIGGER odd BEFORE "
        "UPDATE ON holdfast.hold FOR EACH ROW EXECUTE FUNCTION holdfast.odd()");
    (void)hf_maintain(db);
    hf_stats(db, &stats);
    assert_false(stats.database_away);
    assert_non_null(strstr(notes, "this row is odd"));
    assert_int_equal(place("", "other", "other", HOUR_MS, 0), HF_OK);
    postgres_run(&p, "DROP TRIGGER odd ON holdfast.hold");
    (void)hf_maintain(db);
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.hold WHERE state = 'held'"),
                     1);
}

static void unsound_rows_in_a_batch_fail_their_own_calls_alone(void **state)
{
    enum { COUNT = 60 };
    static struct hf_request requests[COUNT];
    static char keys[COUNT][16];
    struct hf_result results[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        results[i] = (struct hf_result)HF_RESULT_INIT;
        snprintf(keys[i], sizeof keys[i], "key-%d", i);
        assert_int_equal(place("", keys[i], keys[i], HOUR_MS, 0), HF_OK);
        requests[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                           .key = hf_str(keys[i]),
                                           .place_hold = { .resource = hf_str(keys[i]),
                                                           .requester = hf_str("guest"),
                                                           .duration_ms = HOUR_MS } };
    }
    postgres_run(&p, "UPDATE holdfast.token SET digest = 'x' WHERE key = 'key-7'");
    assert_int_equal(hf_do_many(db, requests, results, COUNT), HF_OK);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(results[i].answer.status, i == 7 ? HF_STORAGE_FAILURE : HF_OK);
        assert_int_equal(results[i].replayed, i != 7);
        hf_result_clear(&results[i]);
    }
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.hold"), COUNT);
    assert_true(unreadable() > 0);
}

/* ---- Ids ---- */

static void a_hold_with_another_id_ends_no_server(void **state)
{
    char first[HF_ID_SIZE], second[HF_ID_SIZE];
    (void)state;
    unbind("hold", "id");
    assert_int_equal(place("", "one", "one", HOUR_MS, 0), HF_OK);
    memcpy(first, got.answer.hold.id, sizeof first);
    assert_int_equal(place("", "two", "two", HOUR_MS, 0), HF_OK);
    memcpy(second, got.answer.hold.id, sizeof second);
    static const char *const lies[] = {
        "UPDATE holdfast.hold SET id = '' WHERE ordinal = 1",
        "UPDATE holdfast.hold SET id = NULL WHERE ordinal = 1",
        "UPDATE holdfast.hold SET id = repeat('-', length(o.id)) FROM (SELECT id FROM "
        "holdfast.hold WHERE ordinal = 2) o WHERE ordinal = 1",
        "UPDATE holdfast.hold SET id = o.id FROM (SELECT id FROM holdfast.hold WHERE ordinal = 2) "
        "o WHERE ordinal = 1",
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        postgres_run(&p, lies[i]);
        assert_int_equal(with_hold(HF_RELEASE, "", "release", first), HF_STORAGE_FAILURE);
        assert_int_equal(got.answer.cause.fault, HF_FAULT_UNREADABLE);
        assert_int_equal(with_hold(HF_GET_HOLD, "", "", first), HF_STORAGE_FAILURE);
        assert_int_equal(with_hold(HF_GET_HOLD, "", "", second), HF_OK);
        assert_int_equal(listed("", ""), 1);
    }
    /* And those that lead to another record. */
    assert_int_equal(with_hold(HF_CONFIRM, "", "confirm", second), HF_OK);
    postgres_run(&p,
                 "UPDATE holdfast.hold SET reverses = repeat('-', length(id)) WHERE ordinal = 2");
    assert_int_equal(with_hold(HF_REVERSE, "", "reverse", second), HF_STORAGE_FAILURE);
    assert_true(unreadable() > 0);
}

/* A column that is NULL is not an empty one: the tenant would be the default tenant. */
static void a_row_without_a_value_where_there_must_be_one_is_unreadable(void **state)
{
    (void)state;
    unbind("hold", "tenant");
    assert_int_equal(place("a", "key", "room", HOUR_MS, 0), HF_OK);
    postgres_run(&p, "UPDATE holdfast.hold SET tenant = NULL");
    assert_int_equal(with_hold(HF_GET_HOLD, "", "", got.answer.hold.id), HF_STORAGE_FAILURE);
    assert_int_equal(listed("", ""), 0);
}

static void a_fence_that_is_no_whole_number_is_unreadable(void **state)
{
    static const char *const lies[] = { "-1", "0.5", "'NaN'", "99999999999999999999",
                                        "18446744073709551616" };
    (void)state;
    postgres_run(&p, "ALTER TABLE holdfast.resource ALTER COLUMN fence TYPE numeric");
    reopen();
    assert_int_equal(place("", "key", "room", HOUR_MS, 7), HF_OK);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        char sql[100];
        snprintf(sql, sizeof sql, "UPDATE holdfast.resource SET fence = %s", lies[i]);
        postgres_run(&p, sql);
        assert_int_equal(ask("", (struct hf_request){ .action = HF_GET_RESOURCE,
                                                      .get = { .name = hf_str("room") } }),
                         HF_STORAGE_FAILURE);
    }
    postgres_run(&p, "UPDATE holdfast.resource SET fence = 18446744073709551615");
    assert_int_equal(ask("", (struct hf_request){ .action = HF_GET_RESOURCE,
                                                  .get = { .name = hf_str("room") } }),
                     HF_OK);
    assert_true(got.answer.resource.fence == UINT64_MAX);
    postgres_run(&p, "UPDATE holdfast.resource SET fence = 10000.000");
    assert_int_equal(ask("", (struct hf_request){ .action = HF_GET_RESOURCE,
                                                  .get = { .name = hf_str("room") } }),
                     HF_OK);
    assert_true(got.answer.resource.fence == 10000);
}

/* ---- The entry of another call ---- */

static void a_key_that_leads_to_another_entry_is_unreadable(void **state)
{
    (void)state;
    assert_int_equal(place("a", "key", "private-of-a", HOUR_MS, 0), HF_OK);
    assert_int_equal(grant("a", "lease"), HF_OK);
    assert_int_equal(place("b", "key", "private-of-b", HOUR_MS, 0), HF_OK);
    assert_int_equal(grant("b", "lease"), HF_OK);
    assert_int_equal(grant("b", "other"), HF_LEASE_HELD);
    assert_int_equal(grant("b", "again"), HF_LEASE_HELD);
    postgres_run(
        &p,
        "UPDATE holdfast.token b SET entry = (SELECT entry FROM holdfast.token a WHERE a.tenant "
        "= 'a' AND a.key = b.key) WHERE tenant = 'b' AND key IN ('key', 'lease')");
    assert_int_equal(with_key(HF_GET_TOKEN, "b", "key", 0), HF_STORAGE_FAILURE);
    assert_int_equal(grant("b", "lease"), HF_STORAGE_FAILURE);
    assert_int_equal(with_key(HF_GET_TOKEN, "a", "key", 0), HF_OK);
    assert_int_equal(grant("a", "lease"), HF_OK);
    assert_true(got.replayed);
    /* Also where it is a call of the same tenant, with the same request. */
    postgres_run(
        &p,
        "UPDATE holdfast.token b SET entry = (SELECT entry FROM holdfast.token a WHERE a.tenant "
        "= 'b' AND a.key = 'other') WHERE tenant = 'b' AND key = 'again'");
    assert_int_equal(grant("b", "again"), HF_STORAGE_FAILURE);
    assert_int_equal(grant("b", "other"), HF_LEASE_HELD);
    assert_true(unreadable() > 0);
}

static enum hf_status write_numbered(const char *client, uint64_t sequence)
{
    return ask("",
               (struct hf_request){ .action = HF_WRITE,
                                    .client = hf_str(client),
                                    .sequence = sequence,
                                    .write = { .name = hf_str(client), .value = hf_str("1") } });
}

static void a_number_that_leads_to_another_entry_is_unreadable(void **state)
{
    (void)state;
    assert_int_equal(write_numbered("one", 1), HF_OK);
    assert_int_equal(write_numbered("one", 2), HF_OK);
    assert_int_equal(write_numbered("two", 1), HF_OK);
    postgres_run(
        &p, "UPDATE holdfast.client_call SET entry = (SELECT entry FROM holdfast.client_call WHERE "
            "client = 'one' AND slot = 2) WHERE client = 'one' AND slot = 1");
    assert_int_equal(write_numbered("one", 1), HF_STORAGE_FAILURE);
    assert_int_equal(write_numbered("one", 2), HF_OK);
    assert_true(got.replayed);
    assert_int_equal(write_numbered("two", 1), HF_OK);
    assert_true(got.replayed);
}

/* ---- What the audit finds ---- */

static void audited(const char *check, const char *words)
{
    struct hf_audit_report report = { .verdict = HF_AUDIT_OK };
    story_audit(&p, &report);
    bool found = words ? report.verdict == HF_AUDIT_VIOLATIONS && story_found(&report, check, words)
                       : report.verdict == HF_AUDIT_OK;
    hf_audit_report_free(&report);
    if (!found)
        fail_msg("the audit does not say \"%s\"", words ? words : "fine");
}

static enum hf_status write_register(const char *key, uint64_t fence)
{
    return ask("", (struct hf_request){
                       .action = HF_WRITE,
                       .key = hf_str(key),
                       .write = { .name = hf_str("reg"), .value = hf_str("1"), .fence = fence } });
}

static void a_fence_that_no_call_carried_stays_found(void **state)
{
    (void)state;
    assert_int_equal(
        ask("", (struct hf_request){ .action = HF_SET_RESOURCE,
                                     .set_resource = { .name = hf_str("room"), .capacity = 9 } }),
        HF_OK);
    assert_int_equal(place("", "first", "room", HOUR_MS, 5), HF_OK);
    assert_int_equal(place("", "second", "room", HOUR_MS, 9), HF_OK);
    assert_int_equal(place("", "third", "room", HOUR_MS, 0), HF_OK);
    audited(NULL, NULL);
    postgres_run(&p, "UPDATE holdfast.resource SET fence = 17");
    assert_int_equal(place("", "without", "room", HOUR_MS, 0), HF_OK);
    audited("FENCES", "resource \"room\" rises from 9 to 17");
    /* Nor by an action that carries none. */
    postgres_run(&p, "UPDATE holdfast.resource SET fence = 30");
    assert_int_equal(with_hold(HF_RELEASE, "", "release", got.answer.hold.id), HF_OK);
    audited("FENCES", "resource \"room\" rises from 17 to 30");
}

static void a_fence_of_a_register_that_no_write_carried_stays_found(void **state)
{
    (void)state;
    assert_int_equal(write_register("first", 5), HF_OK);
    assert_int_equal(write_register("second", 9), HF_OK);
    assert_int_equal(write_register("third", 0), HF_OK);
    audited(NULL, NULL);
    postgres_run(&p, "UPDATE holdfast.register SET fence = 1000");
    assert_int_equal(write_register("without", 0), HF_OK);
    audited("REGISTERS", "register \"reg\" rises from 9 to 1000");
}

static void a_merge_raises_no_fence(void **state)
{
    struct hf_value one = { .type = HF_TYPE_MAX, .number = 1 },
                    two = { .type = HF_TYPE_MAX, .number = 2 };
    (void)state;
    assert_int_equal(
        ask("", (struct hf_request){ .action = HF_MERGE,
                                     .merge = { .name = hf_str("max"), .value = &one } }),
        HF_OK);
    postgres_run(&p, "UPDATE holdfast.register SET fence = 1000");
    assert_int_equal(
        ask("", (struct hf_request){ .action = HF_MERGE,
                                     .merge = { .name = hf_str("max"), .value = &two } }),
        HF_OK);
    audited("REGISTERS", "register \"max\" rises from 0 to 1000");
}

static void when_something_was_made_cannot_be_changed_in_silence(void **state)
{
    (void)state;
    assert_int_equal(
        ask("", (struct hf_request){ .action = HF_SET_RESOURCE,
                                     .set_resource = { .name = hf_str("room"), .capacity = 9 } }),
        HF_OK);
    postgres_run(&p, "UPDATE holdfast.resource SET created_at = created_at - interval '1 day'");
    assert_int_equal(place("", "key", "room", HOUR_MS, 0), HF_OK);
    audited("TABLES", "created_at is");
}

static void when_a_guard_was_made_cannot_be_changed_in_silence(void **state)
{
    struct hf_request q = { .action = HF_SET_GUARD,
                            .set_guard = { .name = hf_str("guard"), .window_ms = HOUR_MS } };
    (void)state;
    assert_int_equal(ask("", q), HF_OK);
    postgres_run(&p, "UPDATE holdfast.guard SET created_at = created_at - interval '1 day'");
    q.set_guard.window_ms = HOUR_MS / 2;
    assert_int_equal(ask("", q), HF_OK);
    audited("TABLES", "created_at is");
}

/* ---- The rules ---- */

static void a_window_that_cannot_be_added_up_is_refused(void **state)
{
    static const char *const lies[] = { "idempotency_window_ms = 9223372036854775807",
                                        "idempotency_window_ms = 315360000001",
                                        "idempotency_window_ms = 0", "token_max_length = 1025",
                                        "token_max_length = 0" };
    char sql[200];
    (void)state;
    assert_int_equal(place("", "before", "before", HOUR_MS, 0), HF_OK);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        snprintf(sql, sizeof sql, "UPDATE holdfast.store SET %s", lies[i]);
        assert_false(postgres_try(&p, sql));
    }
    postgres_run(
        &p,
        "DO $$ DECLARE c text; BEGIN FOR c IN SELECT conname FROM pg_constraint WHERE contype = "
        "'c' AND conrelid = 'holdfast.store'::regclass LOOP EXECUTE format('ALTER TABLE "
        "holdfast.store DROP CONSTRAINT %I', c); END LOOP; END $$");
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct hf_stats stats;
        snprintf(sql, sizeof sql, "UPDATE holdfast.store SET %s", lies[i]);
        postgres_run(&p, sql);
        assert_int_equal(place("", "key", "room", HOUR_MS, 0), HF_STORAGE_FAILURE);
        assert_int_equal(place("", "key", "room", HOUR_MS, 0), HF_STORAGE_FAILURE);
        hf_stats(db, &stats);
        assert_true(stats.database_away); /* nobody can be served: it is not ready */
        postgres_run(
            &p,
            "UPDATE holdfast.store SET idempotency_window_ms = 86400000, token_max_length = 256");
        assert_int_equal(place("", "before", "before", HOUR_MS, 0), HF_OK);
        assert_true(got.replayed);
        (void)hf_maintain(db);
        hf_stats(db, &stats);
        assert_false(stats.database_away);
    }
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.hold"), 1);
    postgres_run(&p, "UPDATE holdfast.store SET idempotency_window_ms = 9223372036854775807");
    struct hf_options options = { .no_background = true, .postgres = postgres_conninfo(&p) };
    struct hf_error why;
    struct hf_db *other;
    assert_int_equal(hf_open(NULL, &options, &other, &why), HF_STORE_DAMAGED);
}

/* ---- What a deleted lease has left ---- */

/* The server says "run the audit". */
static void what_a_deleted_lease_cannot_have_left_is_found(void **state)
{
    static const char *const lies[] = { "ttl_ms = -1", "deleted_at = 'infinity'", "fence = -1",
                                        "granted_at = '-infinity'" };
    (void)state;
    assert_int_equal(grant("", "grant"), HF_OK);
    assert_int_equal(ask("", (struct hf_request){ .action = HF_DELETE_LEASE,
                                                  .key = hf_str("delete"),
                                                  .lease = { .name = hf_str("lease"),
                                                             .fence = got.answer.lease.fence } }),
                     HF_OK);
    postgres_run(&p, "CREATE TABLE saved_lease AS TABLE holdfast.lease");
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct hf_audit_report report = { .verdict = HF_AUDIT_OK };
        char sql[120];
        story_audit(&p, &report);
        assert_int_equal(report.verdict, HF_AUDIT_OK);
        hf_audit_report_free(&report);
        snprintf(sql, sizeof sql, "UPDATE holdfast.lease SET %s", lies[i]);
        postgres_run(&p, sql);
        audited("TABLES",
                "holdfast.lease, name \"lease\": a deleted lease cannot have left this row");
        postgres_run(&p, "TRUNCATE holdfast.lease; INSERT INTO holdfast.lease TABLE saved_lease");
    }
    postgres_run(&p, "DROP TABLE saved_lease");
}

/* ---- Lists ---- */

/* The list of a resource goes from each hold to the one before it. */
static void a_hold_that_leads_back_makes_no_list_endless(void **state)
{
    struct hf_request many = { .action = HF_SET_RESOURCE,
                               .key = hf_str("many"),
                               .set_resource = { .name = hf_str("room"), .capacity = 9 } };
    (void)state;
    assert_int_equal(ask("", many), HF_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(place("", i == 0 ? "a" : i == 1 ? "b" : "c", "room", HOUR_MS, 0), HF_OK);
    postgres_run(
        &p, "UPDATE holdfast.hold SET previous = (SELECT max(ordinal) FROM holdfast.hold) WHERE "
            "ordinal = (SELECT min(ordinal) FROM holdfast.hold)");
    struct hf_page page;
    assert_int_equal(
        hf_list(db, &(struct hf_query){ .kind = HF_LIST_HOLDS, .resource = hf_str("room") }, &page),
        HF_OK);
    assert_int_equal(page.count, 2);
    assert_int_equal(page.next_cursor, 0);
    hf_page_clear(&page);
    (void)hf_maintain(db);
    assert_non_null(strstr(notes, "holdfast.hold, ordinal "));
}

/* ---- What a deleted register has left ---- */

/* It is kept for ever for the sake of its fence. */
static void a_deleted_register_that_lost_its_fence_is_unreadable(void **state)
{
    struct hf_request write = { .action = HF_WRITE,
                                .key = hf_str("write"),
                                .write = {
                                    .name = hf_str("r"), .value = hf_str("v"), .fence = 7 } };
    (void)state;
    assert_int_equal(ask("", write), HF_OK);
    write.action = HF_DELETE_REGISTER;
    write.key = hf_str("delete");
    write.write.value = hf_str("");
    write.write.fence = 8;
    assert_int_equal(ask("", write), HF_OK);
    postgres_run(&p, "UPDATE holdfast.register SET fence = 0");
    write.action = HF_WRITE;
    write.key = hf_str("stale");
    write.write.fence = 6;
    assert_int_equal(ask("", write), HF_STORAGE_FAILURE);
    assert_non_null(
        strstr(notes, "holdfast.register, tenant \"\", name \"r\": the row was changed by hand"));
    postgres_run(&p, "UPDATE holdfast.register SET fence = 8");
    assert_int_equal(ask("", write), HF_STALE_FENCE);
}

/* ---- Times at the end of the numbers (seen by the sanitizer for undefined behaviour) ---- */

static void times_at_the_end_of_the_numbers_overflow_nothing(void **state)
{
    struct hf_audit_report report = { .verdict = HF_AUDIT_OK };
    static const char *const lies[] = { "infinity", "-infinity", "4713-01-01 BC", "294000-01-01" };
    (void)state;
    assert_int_equal(place("", "key", "room", HOUR_MS, 0), HF_OK);
    assert_int_equal(grant("", "lease"), HF_OK);
    uint64_t fence = begin_claim("", "claim");
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        char sql[400];
        snprintf(sql, sizeof sql,
                 "UPDATE holdfast.token SET recorded_at = '%s'; UPDATE holdfast.hold SET ended_at "
                 "= '%s'; UPDATE holdfast.lease SET granted_at = '%s'; UPDATE holdfast.resource "
                 "SET created_at = '%s', due_at = '%s'",
                 lies[i], lies[i], lies[i], lies[i], lies[i]);
        postgres_run(&p, sql);
        (void)place("", "key", "room", HOUR_MS, 0);
        (void)with_key(HF_HEARTBEAT, "", "claim", fence);
        (void)place("", "next", "room", HOUR_MS, 0);
        (void)listed("", "");
        story_audit(&p, &report);
        assert_int_equal(report.verdict, HF_AUDIT_VIOLATIONS);
        hf_audit_report_free(&report);
    }
}

/* The journal tells a server what time others have committed at. */
static void a_time_beyond_all_calendars_moves_no_clock(void **state)
{
    static const char *const lies[] = { "infinity", "294000-01-01" };
    const hf_time year_3000 = INT64_C(32503680000000);
    char sql[200], key[8], other[8], id[HF_ID_SIZE];
    (void)state;
    assert_int_equal(place("", "key", "key", HOUR_MS, 0), HF_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(sql, sizeof sql, "UPDATE holdfast.journal SET at = '%s'", lies[i]);
        snprintf(key, sizeof key, "k%d", i);
        snprintf(other, sizeof other, "c%d", i);
        postgres_run(&p, sql);
        assert_int_equal(place("", key, key, HOUR_MS, 0), HF_OK);
        assert_true(got.answer.hold.expires_at < year_3000);
        memcpy(id, got.answer.hold.id, sizeof id);
        reopen();
        (void)hf_maintain(db);
        assert_int_equal(place("", key, key, HOUR_MS, 0), HF_OK);
        assert_true(got.replayed);
        assert_int_equal(with_hold(HF_CONFIRM, "", other, id), HF_OK);
    }
}

/* Nor does it tell the functions. */
static void a_time_beyond_all_calendars_moves_no_clock_of_functions(void **state)
{
    static const char *const lies[] = { "infinity", "294000-01-01" };
    char sql[200];
    (void)state;
    assert_int_equal(with_key(HF_COMPLETE, "", "claim", begin_claim("", "claim")), HF_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(sql, sizeof sql, "UPDATE holdfast.journal SET at = '%s'", lies[i]);
        postgres_run(&p, sql);
        assert_int_equal(
            postgres_number(&p, "SELECT (holdfast.engine_now() < '3000-01-01')::integer"), 1);
        assert_int_equal(
            postgres_number(
                &p, "SELECT count(*) FROM holdfast.get_claim('claim') WHERE state = 'completed'"),
            1);
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM holdfast.place_hold('f%d', 'f%d', 'me', interval '1 h') "
                 "WHERE status = 'ok'",
                 i, i);
        assert_int_equal(postgres_number(&p, sql), 1);
    }
}

static int begin(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    return 0;
}

static int end(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

/* Somebody puts the sequence back, as an old backup would. */
static void a_fence_that_does_not_rise_is_not_given_out(void **state)
{
    (void)state;
    begin_claim("", "one");
    begin_claim("", "two");
    assert_int_equal(grant("falls", "grant-1"), HF_OK);
    uint64_t fence = got.answer.lease.fence;
    assert_int_equal(
        ask("falls", (struct hf_request){ .action = HF_RETURN,
                                          .lease = { .name = hf_str("lease"), .fence = fence } }),
        HF_OK);
    long long drawn = postgres_number(&p, "SELECT last_value FROM holdfast.fence");
    postgres_run(&p, "SELECT setval('holdfast.fence', 1)");
    assert_int_equal(grant("falls", "grant-2"), HF_STORAGE_FAILURE);
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT setval('holdfast.fence', %lld)", drawn);
    postgres_run(&p, sql);
    assert_int_equal(grant("falls", "grant-2"), HF_OK);
    assert_true(got.answer.lease.fence > fence);
}

static void a_guard_without_a_name_is_passed_over(void **state)
{
    (void)state;
    assert_int_equal(ask("unnamed", (struct hf_request){ .action = HF_SET_GUARD,
                                                         .set_guard = { .name = hf_str("cards"),
                                                                        .window_ms = HOUR_MS } }),
                     HF_OK);
    postgres_run(&p, "UPDATE holdfast.guard SET name = '' WHERE tenant = 'unnamed'");
    reopen();
    hf_maintain(db);
    postgres_run(&p, "DELETE FROM holdfast.guard WHERE tenant = 'unnamed'");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_started_claim_with_a_response_overruns_nothing),
        TEST(a_tenant_longer_than_one_can_be_overruns_nothing),
        TEST(an_unsound_hold_stops_nobody_else),
        TEST(many_unsound_holds_keep_no_other_from_being_swept),
        TEST(a_row_that_cannot_be_swept_is_no_database_that_is_away),
        TEST(unsound_rows_in_a_batch_fail_their_own_calls_alone),
        TEST(a_hold_with_another_id_ends_no_server),
        TEST(a_row_without_a_value_where_there_must_be_one_is_unreadable),
        TEST(a_fence_that_is_no_whole_number_is_unreadable),
        TEST(a_key_that_leads_to_another_entry_is_unreadable),
        TEST(a_number_that_leads_to_another_entry_is_unreadable),
        TEST(a_fence_that_no_call_carried_stays_found),
        TEST(a_fence_of_a_register_that_no_write_carried_stays_found),
        TEST(a_merge_raises_no_fence),
        TEST(when_something_was_made_cannot_be_changed_in_silence),
        TEST(when_a_guard_was_made_cannot_be_changed_in_silence),
        TEST(a_window_that_cannot_be_added_up_is_refused),
        TEST(what_a_deleted_lease_cannot_have_left_is_found),
        TEST(a_hold_that_leads_back_makes_no_list_endless),
        TEST(a_deleted_register_that_lost_its_fence_is_unreadable),
        TEST(times_at_the_end_of_the_numbers_overflow_nothing),
        TEST(a_time_beyond_all_calendars_moves_no_clock),
        TEST(a_time_beyond_all_calendars_moves_no_clock_of_functions),
        TEST(a_fence_that_does_not_rise_is_not_given_out),
        TEST(a_guard_without_a_name_is_passed_over),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
