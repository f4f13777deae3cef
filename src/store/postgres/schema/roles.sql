-- Holdfast on PostgreSQL: who may do what. Not a migration: run it by hand after a server has made the schema, and
-- again after an update; the first time as a superuser, because it creates roles, later as the owner of the schema too. It
-- may be run as often as you like. The commands from nothing are in doc/POSTGRES.md, Roles.
--
--   psql -X -v ON_ERROR_STOP=1 -1 -f roles.sql
--
-- Three roles that nobody logs in with; give them to your own:
--
--   GRANT holdfast_server TO billing_holdfast;        servers: read and write rows, add to the journal, change no table
--   GRANT holdfast_application TO billing;            applications: call the functions, touch no table
--   GRANT holdfast_auditor TO revision;               auditors: read everything but the secret inside the ids of holds
--
-- The schema itself belongs to whoever started the first server on it. Functions that applications call run with that
-- role's rights, so let it be a role that owns nothing else, rather than a superuser:
--
--   CREATE ROLE holdfast_owner LOGIN; GRANT CREATE ON DATABASE shop TO holdfast_owner;
--
-- A server with holdfast_server alone cannot make or update the schema; start the new version once as the owner.

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY '{holdfast_server,holdfast_application,holdfast_auditor}'::text[] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = role) THEN
            EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;
END $$;

GRANT USAGE ON SCHEMA holdfast TO holdfast_server, holdfast_application, holdfast_auditor;

-- ---- Servers: what the statements of src/store/postgres need, and nothing more ----

GRANT SELECT ON holdfast.migration TO holdfast_server;
GRANT SELECT, UPDATE ON holdfast.store TO holdfast_server;
GRANT SELECT, INSERT, UPDATE ON holdfast.writer TO holdfast_server;
GRANT SELECT, INSERT ON holdfast.journal TO holdfast_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast.token, holdfast.guard_entry, holdfast.app_value, holdfast.lease,
    holdfast.register TO holdfast_server;
GRANT SELECT, INSERT, UPDATE ON holdfast.resource, holdfast.guard, holdfast.client, holdfast.client_call
    TO holdfast_server;
-- A hold ends, and may be given back; what it is never changes, and it never goes.
GRANT SELECT, INSERT, UPDATE (state, ended_at, reversed_by) ON holdfast.hold TO holdfast_server;
GRANT SELECT, INSERT ON holdfast.outbox TO holdfast_server;
GRANT USAGE ON SEQUENCE holdfast.journal_number, holdfast.hold_ordinal, holdfast.fence, holdfast.outbox_number,
    holdfast.writer_id TO holdfast_server;
GRANT EXECUTE ON FUNCTION holdfast.hold_id, holdfast.hold_ordinal, holdfast.engine_now TO holdfast_server;

-- ---- Applications: the functions, but not hold_id, which would let them guess what they were never told ----

DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN
        SELECT p.oid FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'holdfast'::regnamespace AND p.proname !~ '^_'
            AND p.proname NOT IN ('hold_id', 'engine_now')
    LOOP
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO holdfast_application', f);
    END LOOP;
END $$;

-- ---- Auditors ----

GRANT SELECT ON ALL TABLES IN SCHEMA holdfast TO holdfast_auditor;
REVOKE SELECT ON holdfast.store FROM holdfast_auditor;
GRANT SELECT (only_one, store_id, idempotency_window_ms, token_max_length, registry_strict, digest_name, program,
    created_at) ON holdfast.store TO holdfast_auditor;
GRANT SELECT ON ALL SEQUENCES IN SCHEMA holdfast TO holdfast_auditor;
GRANT EXECUTE ON FUNCTION holdfast.hold_ordinal, holdfast.engine_now, holdfast.as_json TO holdfast_auditor;
