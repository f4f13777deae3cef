-- Holdfast on PostgreSQL: roles and rights. This is not a migration: run it by hand after a server
-- has created the schema, and again after an update. The first time run it as a superuser, because
-- it creates roles; later the owner of the schema may run it too. Running it again is safe.
-- doc/POSTGRES.md, Roles, has all commands from the beginning.
--
--   psql -X -v ON_ERROR_STOP=1 -1 -f roles.sql
--
-- Three roles without a login; grant them to your own roles:
--
--   GRANT holdfast_server TO billing_holdfast;   servers: read and write rows, add to the journal,
--                                                change no table
--   GRANT holdfast_application TO billing;       applications: call the functions, no table access
--   GRANT holdfast_auditor TO revision;          auditors: read everything except the secret of the
--                                                hold ids
--
-- The role that started the first server owns the schema. Functions that applications call run with
-- the owner's rights, so use a role that owns nothing else, and no superuser:
--
--   CREATE ROLE holdfast_owner LOGIN; GRANT CREATE ON DATABASE shop TO holdfast_owner;
--
-- A server that has only holdfast_server cannot create or update the schema; start the new version
-- once as the owner.

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

-- ---- Servers: the rights that the statements of src/store/postgres need, and no others ----

GRANT SELECT ON holdfast.migration TO holdfast_server;
GRANT SELECT, UPDATE ON holdfast.store TO holdfast_server;
GRANT SELECT, INSERT, UPDATE ON holdfast.writer TO holdfast_server;
GRANT SELECT, INSERT ON holdfast.journal TO holdfast_server;
GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast.token, holdfast.guard_entry, holdfast.app_value,
    holdfast.lease, holdfast.register TO holdfast_server;
GRANT SELECT, INSERT, UPDATE ON holdfast.resource, holdfast.guard, holdfast.client,
    holdfast.client_call TO holdfast_server;
-- A hold ends and may be reversed; its other columns never change, and it is never deleted.
GRANT SELECT, INSERT, UPDATE (state, ended_at, succeeded_by) ON holdfast.hold TO holdfast_server;
GRANT SELECT, INSERT ON holdfast.outbox TO holdfast_server;
GRANT USAGE ON SEQUENCE holdfast.journal_number, holdfast.hold_ordinal, holdfast.fence,
    holdfast.outbox_number, holdfast.writer_id TO holdfast_server;
GRANT SELECT ON SEQUENCE holdfast.met_duplicate, holdfast.met_race, holdfast.met_collision
    TO holdfast_server;
GRANT EXECUTE ON FUNCTION holdfast.hold_id, holdfast.hold_ordinal, holdfast.engine_now
    TO holdfast_server;

-- ---- Applications: the functions, except hold_id, which would let them guess ids of holds ----

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
GRANT SELECT (only_one, store_id, idempotency_window_ms, token_max_length, registry_strict,
    digest_name, program, created_at) ON holdfast.store TO holdfast_auditor;
GRANT SELECT ON ALL SEQUENCES IN SCHEMA holdfast TO holdfast_auditor;
GRANT EXECUTE ON FUNCTION holdfast.hold_ordinal, holdfast.engine_now, holdfast.as_json
    TO holdfast_auditor;
