/* Who may do what (schema/roles.sql), and the payment of examples/payment.sql, whose output stands
 * in its comment. */
#include "postgres/kit/functions.h"
#include "support/test.h"

static struct postgres p;
static PGconn *c;

/* The roles, each with somebody who logs in with it. */
static int set_up(void **state)
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

static int tear_down(void **state)
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
    IS(as, "\\x006a7b7d", "json", "json", "{ }");
    IS(as, "\\x7b7d", "payload", "payload", "{ }");
    IS(as, "{}", "as_json", "as_json", "\\x006a7b7d");
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
        "UPDATE holdfast.hold SET state = state, ended_at = ended_at, reversed_by = reversed_by",
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_application), cmocka_unit_test(test_hostile_path),
        cmocka_unit_test(test_server),      cmocka_unit_test(test_auditor_and_stranger),
        cmocka_unit_test(test_payment),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
