/* The audit of a store in a database: what a server has written passes, with the same figures as in
 * files, and whatever somebody changes by hand is found and named. */
#include "audit/export.h"
#include "postgres/kit/functions.h"
#include "postgres/kit/story.h"
#include "store/postgres/migrate.h"
#include "store/postgres/scan.h"
#include "support/test.h"

static struct postgres p;
static struct kit *k;

static int group_set_up(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    return 0;
}

static int group_tear_down(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    k = kit_make();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

/* ---- What was written in order ---- */

static void all_pass(const struct hf_audit_report *report)
{
    for (size_t i = 0; i < report->check_count; i++)
        if (hf_audit_outcome(&report->checks[i]) != HF_AUDIT_PASSED)
            fail_msg("%s: %s", report->checks[i].name,
                     report->checks[i].example_count ? report->checks[i].examples[0]
                                                     : "incomplete");
    assert_int_equal(report->verdict, HF_AUDIT_OK);
}

static void what_was_written_passes(void **state)
{
    (void)state;
    struct hf_audit_report report;
    story_database(&p, k);
    story_do_all(k);
    story_audit(&p, &report); /* the store is open */
    all_pass(&report);
    assert_int_equal(report.check_count, HF_AUDIT_CHECKS);
    for (size_t i = 0; i < report.check_count; i++)
        if (report.checks[i].checked == 0)
            fail_msg("%s looked at nothing", report.checks[i].name);
    assert_int_equal(report.entries, postgres_number(&p, "SELECT count(*) FROM holdfast.journal"));
    assert_int_equal(report.batches, postgres_number(&p, "SELECT sum(batch) FROM holdfast.writer"));
    assert_int_equal(report.writers, postgres_number(&p, "SELECT count(*) FROM holdfast.writer"));
    assert_int_equal(report.function_entries, 0);
    hf_audit_report_free(&report);
}

static void an_empty_store_passes(void **state)
{
    (void)state;
    struct hf_audit_report report;
    story_database(&p, k);
    story_audit(&p, &report);
    all_pass(&report);
    hf_audit_report_free(&report);
}

/* The same operations in files and in the database come to the same. */
static void the_figures_are_those_of_files(void **state)
{
    (void)state;
    struct hf_audit_report files, database;
    struct hf_error why;
    story_do_all(k);
    kit_close(k);
    assert_int_equal(hf_audit_run(k->dir, NULL, &files, &why), HF_OK);
    story_database(&p, k);
    story_do_all(k);
    story_audit(&p, &database);
    assert_int_equal(files.verdict, database.verdict);
    assert_int_equal(files.entries, database.entries);
    assert_int_equal(files.rows, database.rows);
    assert_int_equal(files.remembered, database.remembered);
    assert_int_equal(files.failures, database.failures);
    assert_memory_equal(files.by_action, database.by_action, sizeof files.by_action);
    assert_memory_equal(files.failures_by_status, database.failures_by_status,
                        sizeof files.failures_by_status);
    assert_memory_equal(files.holds_by_state, database.holds_by_state, sizeof files.holds_by_state);
    assert_int_equal(files.holds, database.holds);
    assert_int_equal(files.holds_traced, database.holds_traced);
    assert_int_equal(files.reversals, database.reversals);
    assert_int_equal(files.resources, database.resources);
    assert_int_equal(files.guards, database.guards);
    assert_int_equal(files.identities, database.identities);
    assert_int_equal(files.claims, database.claims);
    assert_int_equal(files.leases, database.leases);
    assert_int_equal(files.registers, database.registers);
    assert_int_equal(files.clients, database.clients);
    assert_int_equal(files.outbox, database.outbox);
    assert_int_equal(files.near_count, database.near_count);
    assert_int_equal(files.near_listed, database.near_listed);
    assert_int_equal(files.near_illegitimate, database.near_illegitimate);
    for (size_t i = HF_AUDIT_PC1; i < files.check_count; i++)
        assert_int_equal(files.checks[i].checked, database.checks[i].checked);
    hf_audit_report_free(&files);
    hf_audit_report_free(&database);
}

/* ---- What somebody changed by hand ---- */

struct change {
    const char *table; /* which is put back afterwards */
    const char *sql;
    const char *words; /* of the sentence that names it */
};

static const struct change changes[] = {
    { "token", "UPDATE holdfast.token SET status = 'ok' WHERE key = 'order-4' AND tenant = ''",
      "holdfast.token, key \"order-4\": status is \"ok\", but in the journal it is "
      "\"resource-unavailable\"" },
    { "token", "UPDATE holdfast.token SET expires_at = now() WHERE key = 'order-1' AND tenant = ''",
      "holdfast.token, key \"order-1\": expires_at is " },
    { "token",
      "UPDATE holdfast.token SET recorded_at = recorded_at + interval '1 microsecond' WHERE key = "
      "'paid-1'",
      "recorded_at is " },
    { "token", "UPDATE holdfast.token SET hold = NULL WHERE key = 'order-1' AND tenant = 'shop'",
      "holdfast.token, tenant \"shop\", key \"order-1\": hold is null" },
    { "token", "UPDATE holdfast.token SET previous = 77 WHERE key = 'order-1' AND tenant = 'shop'",
      "holdfast.token, tenant \"shop\", key \"order-1\": previous is 77, but in the journal it "
      "is " },
    { "token", "UPDATE holdfast.token SET digest = sha256(digest) WHERE key = 'w1'",
      "key \"w1\": digest is 0x" },
    { "token", "UPDATE holdfast.token SET entry = entry + 1 WHERE key = 'w1'",
      "key \"w1\": entry is " },
    { "token", "UPDATE holdfast.token SET key = 'order-9' WHERE key = 'order-1' AND tenant = ''",
      "key \"order-9\": the row exists, but no entry of the journal made it" },
    { "token", "UPDATE holdfast.token SET key = 'order-9' WHERE key = 'order-1' AND tenant = ''",
      "holdfast.token, key \"order-1\": the row is missing [place_hold under key \"order-1\"" },
    { "token", "DELETE FROM holdfast.token WHERE key LIKE 'k\\\\xff%'",
      "the row is missing [apply under key" },
    { "token", "UPDATE holdfast.token SET state = 'completed' WHERE key = 'charge-2'",
      "key \"charge-2\": state is \"completed\", but in the journal it is \"started\"" },
    { "token", "UPDATE holdfast.token SET state = 'retryable' WHERE key = 'charge-1'",
      "state is \"retryable\"" },
    { "token", "UPDATE holdfast.token SET fence = fence - 1 WHERE key = 'charge-2'",
      "key \"charge-2\": fence is " },
    { "token", "UPDATE holdfast.token SET on_abandon = 'unknown' WHERE key = 'charge-2'",
      "on_abandon is \"unknown\"" },
    { "token", "UPDATE holdfast.token SET response = 'x' WHERE key = 'charge-1'",
      "response is \"x\"" },
    { "token", "UPDATE holdfast.token SET lease_expires_at = 'infinity' WHERE key = 'charge-3'",
      "lease_expires_at is infinity" },
    { "token",
      "UPDATE holdfast.token SET expires_at = now() - interval '1 hour' WHERE key = 'charge-3'",
      "but in the journal it is infinity" },
    { "hold",
      "UPDATE holdfast.hold SET state = 'confirmed', ended_at = now() WHERE resource = 'seat 2' "
      "AND tenant = ''",
      "state is \"confirmed\", but in the journal it is \"held\"" },
    { "hold",
      "UPDATE holdfast.hold SET expires_at = expires_at + interval '1 day' WHERE resource = 'seat "
      "2'",
      "expires_at is " },
    { "hold", "UPDATE holdfast.hold SET requester = 'eve' WHERE resource = 'seat' AND tenant = ''",
      "requester is \"eve\", but in the journal it is \"bob\"" },
    { "resource",
      "UPDATE holdfast.resource SET due_at = 'infinity' WHERE name = 'seat 2' AND tenant = ''",
      "holdfast.resource, name \"seat 2\": due_at is infinity, but a hold on it ends at 2" },
    { "resource",
      "UPDATE holdfast.resource SET due_at = due_at + interval '1 microsecond' WHERE name = 'seat "
      "2'",
      "holdfast.resource, name \"seat 2\": due_at is " },
    { "hold", "DELETE FROM holdfast.hold WHERE resource = 'seat 3' AND tenant = 'shop'",
      "the row is missing [place_hold under number 3 of client \"till\" of tenant \"shop\"" },
    { "hold",
      "INSERT INTO holdfast.hold SELECT 4711, 'x', tenant, resource, requester, state, placed_at, "
      "expires_at, ended_at, previous, reverses, succeeded_by FROM holdfast.hold WHERE resource = "
      "'seat' AND tenant = ''",
      "holdfast.hold, ordinal 4711: the row exists, but no entry of the journal made it" },
    { "hold",
      "UPDATE holdfast.hold SET succeeded_by = NULL WHERE succeeded_by IS NOT NULL AND tenant = ''",
      "the row is missing [reverse under key \"refund-1\"" },
    { "hold", "UPDATE holdfast.hold SET succeeded_by = id WHERE resource = 'seat' AND tenant = ''",
      "the row exists, but no entry of the journal made it" },
    { "hold",
      "UPDATE holdfast.hold SET succeeded_by = 'y' WHERE succeeded_by IS NOT NULL AND tenant = ''",
      "succeeded_by is \"y\"" },
    { "resource", "UPDATE holdfast.resource SET capacity = 3 WHERE name = 'room' AND tenant = ''",
      "holdfast.resource, name \"room\": capacity is 3, but in the journal it is 2" },
    { "resource", "UPDATE holdfast.resource SET held = 0 WHERE name = 'seat' AND tenant = ''",
      "held is 0" },
    { "resource", "UPDATE holdfast.resource SET fence = 8 WHERE name = 'seat 3' AND tenant = ''",
      "fence is 8, but in the journal it is 7" },
    { "resource", "UPDATE holdfast.resource SET open = false WHERE name = 'seat 3' AND tenant = ''",
      "open is \"false\"" },
    { "resource", "UPDATE holdfast.resource SET number = 1 WHERE name = 'seat 3' AND tenant = ''",
      "number is 1, but in the journal it is " },
    { "guard", "UPDATE holdfast.guard SET window_ms = 1 WHERE name = 'mail' AND tenant = ''",
      "holdfast.guard, name \"mail\": window_ms is 1, but in the journal it is 3600000" },
    { "guard", "UPDATE holdfast.guard SET match = 'trim' WHERE name = 'mail' AND tenant = ''",
      "match is \"trim\", but in the journal it is \"trim,casefold\"" },
    { "guard", "UPDATE holdfast.guard SET number = 1 WHERE name = 'mail' AND tenant = ''",
      "number is 1" },
    { "guard_entry",
      "UPDATE holdfast.guard_entry SET expires_at = now() WHERE guard = 'mail' AND tenant = ''",
      "holdfast.guard_entry, guard \"mail\", identity \"ann@example.org\": expires_at is " },
    { "guard_entry",
      "UPDATE holdfast.guard_entry SET result = NULL WHERE guard = 'mail' AND tenant = ''",
      "result is null" },
    { "guard_entry", "DELETE FROM holdfast.guard_entry WHERE guard = 'plain' AND tenant = ''",
      "identity \"once\": the row is missing [admit under no key" },
    { "guard_entry",
      "INSERT INTO holdfast.guard_entry VALUES ('', 'plain', 'twice', NULL, now(), now() + '1 "
      "day', 5)",
      "identity \"twice\": the row exists, but no entry of the journal made it" },
    { "lease", "UPDATE holdfast.lease SET holder = 'eve' WHERE name = 'leader'",
      "holdfast.lease, name \"leader\": holder is \"eve\", but in the journal it is \"n1\"" },
    { "lease", "UPDATE holdfast.lease SET released_at = NULL WHERE name = 'other'",
      "released_at is null" },
    { "lease", "DELETE FROM holdfast.lease WHERE name = 'leader'",
      "the row is missing [renew under no key" },
    { "lease", "UPDATE holdfast.lease SET deleted_at = now() WHERE name = 'leader'",
      "the row is missing [renew under no key" },
    { "register", "UPDATE holdfast.register SET value = 'x' WHERE name = 'plain'",
      "holdfast.register, name \"plain\": value is \"x\"" },
    { "register", "UPDATE holdfast.register SET version = 7 WHERE name = 'plain'", "version is 7" },
    { "register", "UPDATE holdfast.register SET fence = 0 WHERE name = 'plain'",
      "fence is 0, but in the journal it is 18446744073709551615" },
    { "client", "UPDATE holdfast.client SET highest = 1 WHERE name = 'till' AND tenant = ''",
      "holdfast.client, name \"till\": highest is 1, but in the journal it is 3" },
    { "client", "UPDATE holdfast.client SET used = set_byte(used, 0, 0) WHERE tenant = ''",
      "used is 0x00" },
    { "client_call",
      "UPDATE holdfast.client_call SET status = 'not-held' WHERE slot = 3 AND tenant = ''",
      "holdfast.client_call, client \"till\", slot 3: status is \"not-held\"" },
    { "app_value", "UPDATE holdfast.app_value SET value = 'x' WHERE key = 'counter'",
      "holdfast.app_value, key \"counter\": value is \"x\"" },
    { "app_value", "INSERT INTO holdfast.app_value VALUES ('', 'old', 'x')",
      "key \"old\": the row exists, but in the journal it was deleted" },
    { "outbox", "UPDATE holdfast.outbox SET topic = 'y' WHERE key = 'apply-1'", "topic is \"y\"" },
    { "outbox", "DELETE FROM holdfast.outbox WHERE key = 'apply-1'",
      "the row is missing [apply under key \"apply-1\"" },
    { "store", "UPDATE holdfast.store SET idempotency_window_ms = 5",
      "holdfast.store: idempotency_window_ms is 5, but in the journal it is 86400000" },
    { "journal", "UPDATE holdfast.journal SET key = 'other' WHERE key = 'w1'",
      "column key of holdfast.journal is \"other\", but in the entry it is \"w1\"" },
    { "journal", "UPDATE holdfast.journal SET key = NULL WHERE key = 'till/3' AND tenant = ''",
      "column key of holdfast.journal is null, but in the entry it is \"till/3\"" },
    { "journal", "UPDATE holdfast.journal SET tenant = 'x' WHERE key = 'w1'",
      "column tenant of holdfast.journal is \"x\"" },
    { "journal", "UPDATE holdfast.journal SET at = at + interval '1 hour' WHERE key = 'w1'",
      "column at of holdfast.journal is " },
    { "journal", "UPDATE holdfast.journal SET status = 'refused' WHERE key = 'w1'",
      "column status of holdfast.journal" },
};

static void put_back(const char *table)
{
    char sql[300];
    snprintf(sql, sizeof sql,
             "TRUNCATE holdfast.%s; INSERT INTO holdfast.%s SELECT * FROM saved.%s", table, table,
             table);
    postgres_run(&p, sql);
}

static void save_all(void)
{
    postgres_run(
        &p, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS saved CASCADE; CREATE SCHEMA "
            "saved; DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE "
            "schemaname = 'holdfast' LOOP EXECUTE format('CREATE TABLE saved.%I AS TABLE "
            "holdfast.%I', t, t); END LOOP; END $$");
}

static void each_changed_row_is_found_and_named(void **state)
{
    (void)state;
    struct hf_audit_report report;
    story_database(&p, k);
    story_do_all(k);
    kit_close(k);
    save_all();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char *before = postgres_ask(&p, "SELECT txid_current()");
        free(before);
        postgres_run(&p, changes[i].sql);
        story_audit(&p, &report);
        if (!story_found(&report, "TABLES", changes[i].words))
            fail_msg("%s\nis not told as: %s", changes[i].sql, changes[i].words);
        assert_int_equal(report.verdict, HF_AUDIT_VIOLATIONS);
        hf_audit_report_free(&report);
        put_back(changes[i].table);
    }
    story_audit(&p, &report);
    all_pass(&report);
    hf_audit_report_free(&report);
}

static void a_sequence_that_was_set_back_is_found(void **state)
{
    (void)state;
    static const char *const counters[] = { "journal_number", "hold_ordinal", "fence",
                                            "outbox_number", "writer_id" };
    struct hf_audit_report report;
    story_database(&p, k);
    story_do_all(k);
    kit_reopen(k); /* so that there is a second writer, however quickly all was done */
    story_do(k, HF_OK,
             "{\"op\":\"place_hold\",\"key\":\"late\",\"resource\":\"late\",\"requester\":\"ann\","
             "\"duration\":\"15m\"}");
    kit_close(k);
    for (size_t i = 0; i < 5; i++) {
        char sql[200], words[100];
        snprintf(sql, sizeof sql, "SELECT setval('holdfast.%s', 1)", counters[i]);
        snprintf(words, sizeof words, "the sequence holdfast.%s is at 1, but ", counters[i]);
        postgres_run(&p, sql);
        story_audit(&p, &report);
        assert_true(story_found(&report, "TABLES", words));
        hf_audit_report_free(&report);
    }
}

/* A primary key that was dropped, or whose index is damaged, lets rows in twice. Which of the two a
 * server finds is chance. */
static void a_row_that_is_there_twice_is_found(void **state)
{
    (void)state;
    static const char *const tables[] = { "token", "hold",   "resource",    "lease",    "register",
                                          "guard", "client", "guard_entry", "app_value" };
    struct hf_audit_report report;
    story_database(&p, k);
    story_do_all(k);
    kit_close(k);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char sql[300], words[100];
        snprintf(sql, sizeof sql,
                 "CREATE TABLE public.twice AS TABLE holdfast.%s; ALTER TABLE holdfast.%s DROP "
                 "CONSTRAINT %s_pkey; INSERT INTO holdfast.%s TABLE public.twice",
                 tables[i], tables[i], tables[i], tables[i]);
        postgres_run(&p, sql);
        story_audit(&p, &report);
        snprintf(words, sizeof words, "the table holdfast.%s has no primary key", tables[i]);
        assert_true(story_found(&report, "TABLES", words));
        if (!story_found(&report, "TABLES", "the row is a duplicate"))
            fail_msg("holdfast.%s has all rows twice, and that is not told", tables[i]);
        hf_audit_report_free(&report);
        snprintf(sql, sizeof sql,
                 "TRUNCATE holdfast.%s; INSERT INTO holdfast.%s TABLE public.twice; DROP TABLE "
                 "public.twice; ALTER TABLE holdfast.%s ADD CONSTRAINT %s_pkey PRIMARY KEY (%s)",
                 tables[i], tables[i], tables[i], tables[i],
                 strcmp(tables[i], "hold") == 0          ? "ordinal"
                 : strcmp(tables[i], "token") == 0       ? "key, tenant"
                 : strcmp(tables[i], "app_value") == 0   ? "tenant, key"
                 : strcmp(tables[i], "guard_entry") == 0 ? "tenant, guard, identity"
                                                         : "tenant, name");
        postgres_run(&p, sql);
    }
    story_audit(&p, &report);
    all_pass(&report);
    hf_audit_report_free(&report);
    postgres_run(&p, "DROP SEQUENCE holdfast.fence");
    story_audit(&p, &report);
    assert_true(story_found(&report, "TABLES", "the sequence holdfast.fence is missing"));
    hf_audit_report_free(&report);
}

/* The audit looks entries up again by their number. */
static void a_number_below_zero_ends_no_audit(void **state)
{
    (void)state;
    static const char *const changes_of_number[] = {
        "INSERT INTO holdfast.journal SELECT -7, at, tenant, action, status, key, 0, 0, entry FROM "
        "holdfast.journal WHERE action = 'place_hold' LIMIT 1",
        "UPDATE holdfast.journal SET number = -number WHERE number = (SELECT min(number) FROM "
        "holdfast.journal WHERE action = 'place_hold')",
        "UPDATE holdfast.journal SET number = -9223372036854775808 WHERE number = (SELECT "
        "max(number) FROM "
        "holdfast.journal)"
    };
    struct hf_audit_report report;
    story_database(&p, k);
    story_do_all(k);
    kit_close(k);
    save_all();
    for (size_t i = 0; i < 3; i++) {
        postgres_run(&p, changes_of_number[i]);
        story_audit(&p, &report);
        assert_int_not_equal(report.verdict, HF_AUDIT_OK);
        assert_true(report.checks[HF_AUDIT_CHAIN].violations > 0 ||
                    report.checks[HF_AUDIT_TABLES].violations > 0);
        hf_audit_report_free(&report);
        put_back("journal");
    }
}

/* What is over may be there or not. */
static void what_is_over_may_leave(void **state)
{
    (void)state;
    struct hf_audit_report report;
    k->options.idempotency_window_ms = 200;
    story_database(&p, k);
    story_do(k, HF_OK,
             "{\"op\":\"place_hold\",\"key\":\"a\",\"resource\":\"r\",\"requester\":\"q\","
             "\"duration\":\"15m\"}");
    assert_int_equal(kit_guard(k, "g", 200, NULL, 0), HF_OK);
    assert_int_equal(kit_ask(k, HF_ADMIT, "g", "once", NULL), HF_OK);
    assert_int_equal(kit_begin(k, "c", "p", MINUTE, HF_ABANDON_RETRY), HF_OK);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "c", k->got.answer.claim.fence, "1", false),
                     HF_OK);
    kit_close(k);
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.token"), 2);
    postgres_run(&p, "SELECT pg_sleep(0.4)");
    story_audit(&p, &report);
    all_pass(&report);
    hf_audit_report_free(&report);
    postgres_run(&p, "DELETE FROM holdfast.token; DELETE FROM holdfast.guard_entry");
    story_audit(&p, &report);
    all_pass(&report);
    hf_audit_report_free(&report);
}

/* ---- The journal itself ---- */

static const struct {
    const char *sql, *check, *words;
} damages[] = {
    { "UPDATE holdfast.journal SET entry = set_byte(entry, 40, get_byte(entry, 40) # 1) WHERE key "
      "= 'order-2' AND tenant = ''",
      "CHAIN", "do not match the chain in holdfast.writer" },
    { "UPDATE holdfast.journal SET entry = set_byte(entry, 40, get_byte(entry, 40) # 1) WHERE key "
      "= 'order-2' AND tenant = ''",
      "FORMAT", "cannot be read: its CRC is wrong" },
    { "UPDATE holdfast.journal SET entry = entry || 'x'::bytea WHERE key = 'order-2' AND tenant = "
      "''",
      "FORMAT", "cannot be read: there are bytes after it" },
    { "UPDATE holdfast.journal SET entry = ''::bytea WHERE key = 'order-2' AND tenant = ''",
      "FORMAT", "cannot be read: its size is not valid" },
    { "DELETE FROM holdfast.journal WHERE key = 'order-2' AND tenant = ''", "SEQUENCE",
      "does not follow the writer's previous batch" },
    { "DELETE FROM holdfast.journal WHERE key = 'order-2' AND tenant = ''", "TABLES",
      "holdfast.token, key \"order-2\": the row exists, but no entry of the journal made it" },
    { "DELETE FROM holdfast.journal WHERE number = (SELECT max(number) FROM holdfast.journal)",
      "SEQUENCE", "batches are missing at the end" },
    { "UPDATE holdfast.journal SET number = number + 100000 WHERE key = 'order-2' AND tenant = ''",
      "CHAIN", "do not match the chain" },
    { "UPDATE holdfast.journal SET batch = batch + 1000000 WHERE number = (SELECT max(number) FROM "
      "holdfast.journal)",
      "SEQUENCE", "does not follow the writer's previous batch" },
    { "UPDATE holdfast.journal SET writer = 77 WHERE key = 'order-2' AND tenant = ''", "SEQUENCE",
      "1 entry is of writer 77, which is not in holdfast.writer" },
    { "UPDATE holdfast.writer SET chain = sha256(chain) WHERE batch > 0", "CHAIN",
      "do not match the chain" },
    { "UPDATE holdfast.writer SET batch = batch + 1 WHERE batch > 0", "SEQUENCE",
      "batches are missing at the end" },
    { "UPDATE holdfast.writer SET chain = sha256(chain), name = E'a\\x1b[2Jb' WHERE batch > 0",
      "CHAIN", "(a?[2Jb)" },
    { "DELETE FROM holdfast.writer WHERE batch > 0", "SEQUENCE",
      "which is not in holdfast.writer" },
    { "UPDATE holdfast.store SET store_id = sha256(store_id)::bytea WHERE false; UPDATE "
      "holdfast.store SET store_id = '0123456789abcdef'",
      "CHAIN", "do not match the chain" },
    { "UPDATE holdfast.store SET id_key = sha256(id_key)", "PC4",
      "which is not an id of this store" },
    { "INSERT INTO holdfast.journal SELECT 1000000, at, tenant, action, status, key, writer, "
      "batch, entry FROM holdfast.journal WHERE key = 'order-2' AND tenant = ''",
      "IR8", "the key had its effect at position " },
};

static void a_changed_journal_is_found(void **state)
{
    (void)state;
    struct hf_audit_report report;
    story_database(&p, k);
    story_do_all(k);
    kit_close(k);
    save_all();
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        postgres_run(&p, damages[i].sql);
        story_audit(&p, &report);
        if (!story_found(&report, damages[i].check, damages[i].words))
            fail_msg("%s\nis not told by %s as: %s", damages[i].sql, damages[i].check,
                     damages[i].words);
        assert_int_not_equal(report.verdict, HF_AUDIT_OK);
        if (strcmp(damages[i].check, "PC4") != 0)
            assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
        hf_audit_report_free(&report);
        put_back("journal");
        put_back("writer");
        put_back("store");
    }
    story_audit(&p, &report);
    all_pass(&report);
    hf_audit_report_free(&report);
}

/* Entries of functions are in nobody's chain. */
static void entries_of_functions_are_told(void **state)
{
    (void)state;
    struct hf_audit_report report;
    char *text = NULL;
    size_t size;
    story_database(&p, k);
    story_do_all(k);
    postgres_run(&p,
                 "SELECT * FROM holdfast.place_hold('sql-1', 'hall', 'ann', interval '15 minutes');"
                 "SELECT * FROM holdfast.begin('sql-2', 'payload')");
    story_audit(&p, &report);
    all_pass(&report);
    assert_int_equal(report.function_entries, 2);
    FILE *out = open_memstream(&text, &size);
    assert_true(hf_audit_print_text(&report, out));
    assert_true(hf_audit_print_json(&report, out));
    fclose(out);
    assert_non_null(
        strstr(text, "2 entries were written by functions, in users' own transactions"));
    assert_non_null(strstr(text, "\"entries_by_functions\":2"));
    free(text);
    hf_audit_report_free(&report);
}

/* ---- Whose records are named ---- */

static void another_tenants_rows_are_left_out(void **state)
{
    (void)state;
    struct hf_audit_options options = { .postgres = postgres_conninfo(&p),
                                        .has_tenant = true,
                                        .tenant = hf_str("shop") };
    struct hf_audit_report report;
    struct hf_error why;
    story_database(&p, k);
    story_do_all(k);
    postgres_run(
        &p, "UPDATE holdfast.token SET status = 'x' WHERE key = 'order-1' AND tenant = '';"
            "DELETE FROM holdfast.token WHERE key = 'order-2' AND tenant = '';"
            "UPDATE holdfast.token SET status = 'y' WHERE key = 'order-3' AND tenant = 'shop'");
    assert_int_equal(hf_audit_run("", &options, &report, &why), HF_OK);
    const struct hf_audit_check *c = &report.checks[HF_AUDIT_TABLES];
    assert_int_equal(c->violations, 1);
    assert_int_equal(c->example_count, 1);
    assert_non_null(strstr(c->examples[0], "order-3"));
    assert_true(c->checked > 0);
    hf_audit_report_free(&report);
}

/* ---- Helpers: what is refused, and roles ---- */

static void fails(const char *conninfo, enum hf_status status, const char *words)
{
    struct hf_audit_options options = { .postgres = conninfo };
    struct hf_audit_report report;
    struct hf_error why = { HF_OK, "" };
    if (hf_audit_run("", &options, &report, &why) != status)
        fail_msg("%s: %s", conninfo, why.text);
    if (!strstr(why.text, words) || strstr(why.text, "s3cret"))
        fail_msg("%s", why.text);
    hf_audit_report_free(&report);
}

/* The roles of the script, and two users who have them. */
static void roles_make(void)
{
    char *script = functions_file("src/store/postgres/schema/roles.sql");
    postgres_run(&p, script);
    free(script);
    postgres_run(
        &p,
        "SET client_min_messages = warning; DROP ROLE IF EXISTS anna; DROP ROLE IF EXISTS server1; "
        "CREATE ROLE anna LOGIN; CREATE ROLE server1 LOGIN; GRANT holdfast_auditor TO anna; GRANT "
        "holdfast_server TO server1");
}

/* ---- An auditor who may not know the secret inside ids ---- */

static void audit_as(const char *user, struct hf_audit_report *report)
{
    char conninfo[POSTGRES_CONNINFO_MAX];
    struct hf_audit_options options = { .postgres = conninfo };
    struct hf_error why = { HF_OK, "" };
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d dbname=postgres user=%s", p.port,
             user);
    if (hf_audit_run("", &options, report, &why) != HF_OK)
        fail_msg("%s", why.text);
}

static void an_auditors_role_is_enough(void **state)
{
    (void)state;
    static const char *const users[] = { "anna", "server1" };
    struct hf_audit_report all, report;
    story_database(&p, k);
    story_do_all(k);
    story_audit(&p, &all);
    roles_make();
    for (size_t u = 0; u < 2; u++) {
        audit_as(users[u], &report);
        all_pass(&report);
        for (size_t i = 0; i < all.check_count; i++)
            assert_int_equal(report.checks[i].checked, all.checks[i].checked);
        assert_int_equal(report.near_listed, all.near_listed);
        for (size_t i = 0; i < all.near_listed; i++)
            assert_string_equal(report.near[i].first, all.near[i].first);
        hf_audit_report_free(&report);
    }
    hf_audit_report_free(&all);
    postgres_run(&p, "REVOKE SELECT ON SEQUENCE holdfast.fence FROM holdfast_auditor");
    char conninfo[POSTGRES_CONNINFO_MAX];
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d dbname=postgres user=anna", p.port);
    fails(conninfo, HF_STORAGE_FAILURE, "The sequences of the schema holdfast cannot be read");
    postgres_run(&p, "GRANT SELECT ON ALL SEQUENCES IN SCHEMA holdfast TO holdfast_auditor");
}

/* ---- Databases that cannot be audited ---- */

static void what_cannot_be_read_is_told_without_the_password(void **state)
{
    (void)state;
    char conninfo[POSTGRES_CONNINFO_MAX + 60];
    kit_close(k);
    postgres_run(&p, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS holdfast CASCADE");
    fails(postgres_conninfo(&p), HF_STORE_ABSENT, "there is no table holdfast.journal");
    snprintf(conninfo, sizeof conninfo, "%s password=s3cret", postgres_conninfo(&p));
    fails(conninfo, HF_STORE_ABSENT, "No Holdfast store is in database \"postgres\" at 127.0.0.1:");
    fails("host=127.0.0.1 port=1 dbname=a password=s3cret", HF_STORAGE_FAILURE,
          "Cannot connect to database \"a\" at 127.0.0.1:1: ");
    fails("host=127.0.0.1 password=very s3cret", HF_INVALID_REQUEST,
          "The connection string cannot be read: missing");
    fails("postgresql://app:s3cret/2@h:x/d", HF_INVALID_REQUEST, "the port is not a number");
    fails("postgresql://app:12/s3cret@h/d", HF_INVALID_REQUEST, "there is an extra @");
    fails("postgresql://app:1@s3cret@h/d", HF_INVALID_REQUEST, "there is an extra @");
    fails("postgresql://app:s3cret%zz@h/d", HF_INVALID_REQUEST,
          "The connection string cannot be read: ");
    fails("s3cret", HF_INVALID_REQUEST, "The connection string cannot be read: ");
    postgres_run(&p, "DROP ROLE IF EXISTS nobody; CREATE ROLE nobody LOGIN");
    story_database(&p, k);
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d dbname=postgres user=nobody",
             p.port);
    fails(conninfo, HF_STORAGE_FAILURE, "permission denied for schema holdfast");
    postgres_run(
        &p, "INSERT INTO holdfast.migration (version, name, program) VALUES (1000, 'later', 'x')");
    fails(postgres_conninfo(&p), HF_STORE_NEWER, "has version 1000; this program");
    postgres_run(&p,
                 "DELETE FROM holdfast.migration WHERE version = 1000; DELETE FROM holdfast.store");
    fails(postgres_conninfo(&p), HF_STORE_DAMAGED, "must contain exactly one row");
}

static void the_reader_knows_the_newest_schema(void **state)
{
    (void)state;
    assert_int_equal(hf_pg_migrations[hf_pg_migration_count - 1].version, HF_PG_SCAN_SCHEMA);
}

/* The connection is cut in the middle. */
static void cut(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    postgres_run(&p, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                     "application_name = 'holdfast audit'");
}

static void a_lost_connection_is_a_failure(void **state)
{
    (void)state;
    char file[300];
    struct hf_audit_options options = { .postgres = postgres_conninfo(&p), .progress = cut };
    struct hf_audit_export_options to = { .postgres = postgres_conninfo(&p),
                                          .progress = cut,
                                          .format = HF_AUDIT_JSONL };
    struct hf_audit_report report;
    struct hf_error why = { HF_OK, "" };
    story_database(&p, k);
    story_do_all(k);
    assert_int_equal(hf_audit_run("", &options, &report, &why), HF_STORAGE_FAILURE);
    assert_non_null(strstr(why.text, "cannot be read: "));
    hf_audit_report_free(&report);
    snprintf(file, sizeof file, "%s/export", k->dir);
    assert_int_equal(hf_audit_export("", &to, file, &why), 3);
    assert_non_null(strstr(why.text, "cannot be read: "));
    assert_int_equal(kit_files(k, "export") + kit_files(k, ".tmp"), 0);
}

/* So does the library that would write there. */
static void opening_tells_no_password(void **state)
{
    (void)state;
    static const char *const wrong[] = { "host=127.0.0.1 password=very s3cret",
                                         "postgresql://app:s3cret/2@h:x/d",
                                         "host=127.0.0.1 port=1 password=s3cret" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct hf_options options = { .postgres = wrong[i], .no_background = true };
        struct hf_error why = { HF_OK, "" };
        struct hf_db *db = NULL;
        assert_int_equal(hf_open("", &options, &db, &why),
                         i < 2 ? HF_INVALID_REQUEST : HF_STORAGE_FAILURE);
        assert_true(why.text[0] && !strstr(why.text, "s3cret"));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_passes),
        TEST(an_empty_store_passes),
        TEST(the_figures_are_those_of_files),
        TEST(each_changed_row_is_found_and_named),
        TEST(a_sequence_that_was_set_back_is_found),
        TEST(a_row_that_is_there_twice_is_found),
        TEST(a_number_below_zero_ends_no_audit),
        TEST(what_is_over_may_leave),
        TEST(a_changed_journal_is_found),
        TEST(entries_of_functions_are_told),
        TEST(another_tenants_rows_are_left_out),
        TEST(an_auditors_role_is_enough),
        TEST(the_reader_knows_the_newest_schema),
        TEST(what_cannot_be_read_is_told_without_the_password),
        TEST(opening_tells_no_password),
        TEST(a_lost_connection_is_a_failure),
    };
    return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
