-- Holdfast on PostgreSQL, migration 2: the functions for an application's own transaction.
--
-- An application calls them between its BEGIN and its COMMIT, so that the check, its own effect and
-- the record commit together. The functions follow the same rules as the servers (src/core), use
-- the same rows and write the same journal. A call made through a server and repeated here is a
-- replay, and the other way round.
--
-- The files of this folder are one migration, in the order of their numbers:
--   01 answers (types)      05 time, configuration, keys    09 leases, registers
--   02 numbers as bytes     06 holds, resources             10 what happened to a key
--   03 JSON                 07 guards
--   04 ids, journal entries 08 claims
--
--   SELECT * FROM holdfast.place_hold('order-8123', 'room-307', 'guest-91', interval '15 minutes');
--
-- Each function returns one row. `status` is ok or the code of the refusal. A refusal is an answer,
-- never an exception; if the call has a key, it is remembered, also when an argument is NULL that
-- needs a value, or is out of range (invalid-request). A function raises an exception for misuse (no
-- key, no tenant, a NULL argument of a call without a key), and when the application must retry the
-- whole transaction (deadlock, serialization failure). Call the functions in FROM, as above:
-- `SELECT (f(...)).*` would call the function once for each column.
--
-- Concurrency. A call takes a key by inserting its row. A second call waits until the first has
-- committed or rolled back. Then it gets the first one's answer, or takes the key itself. A call
-- first locks the rows that it changes, in the same order as the servers: existing rows (client,
-- token, guard, guard_entry, lease, register, resource), then new rows in the same order. So a
-- transaction with one call and the servers' batches do not deadlock. (A client's first call makes
-- the client's row before it locks others. If a server makes that row at the same moment, there may
-- be a deadlock.) Only then the call reads the time and draws the number of its journal entry.
-- Locks are held until the transaction ends, so keep it short. The functions are made for READ
-- COMMITTED. In REPEATABLE READ and SERIALIZABLE they raise a serialization failure if another
-- transaction was first.
--
-- Claims, identities and registers store bytes. A server shows stored text as a JSON string. Use
-- json to store other JSON, as_json to read it, and payload for begin:
--
--   SELECT * FROM holdfast.complete('order-8123', 7, holdfast.json('{"charge": "C1"}'));
--   SELECT holdfast.as_json(response) ->> 'charge' FROM holdfast.get_claim('order-8123');
--
-- Durations are cut to whole milliseconds; a month is 30 days, a year 365.25 days. Keys are text
-- here. A client that numbers its calls gives client and sequence, and NULL for the key. Keys that
-- are not valid UTF-8, merges and apply exist on servers only.
--
-- Names that begin with _ are internal. Public functions run with the rights of the schema's owner
-- and with pg_catalog as their search path; every other name is written out. A string with a
-- backslash is E'...', which does not depend on the caller's standard_conforming_strings.

DO $$
BEGIN
    IF pg_catalog.current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'Holdfast needs a database with encoding UTF8; this one has %',
            pg_catalog.current_setting('server_encoding');
    END IF;
END $$;

-- ---- Answers ------------------------------------------------------------------------------------

CREATE TYPE holdfast.hold_answer AS (
    status text,
    replayed boolean,
    id text,
    resource text,
    requester text,
    state text,
    placed_at timestamptz,
    expires_at timestamptz,
    ended_at timestamptz,
    reverses text,
    reacquires text
);
COMMENT ON TYPE holdfast.hold_answer IS
    'A hold as it was when the call was first decided; only status and replayed if it was '
    'refused.';

CREATE TYPE holdfast.resource_answer AS (
    status text,
    replayed boolean,
    name text,
    capacity integer,
    held integer,
    confirmed integer,
    open boolean,
    fence numeric,
    created_at timestamptz,
    require_fence boolean
);
COMMENT ON TYPE holdfast.resource_answer IS 'A resource.';

CREATE TYPE holdfast.guard_answer AS (
    status text,
    replayed boolean,
    name text,
    window_ms bigint,
    match text,
    on_unavailable text,
    durable boolean,
    created_at timestamptz
);
COMMENT ON TYPE holdfast.guard_answer IS 'A guard and its rules.';

CREATE TYPE holdfast.seen_answer AS (
    status text,
    replayed boolean,
    seen boolean,
    recorded_at timestamptz,
    expires_at timestamptz,
    result bytea
);
COMMENT ON TYPE holdfast.seen_answer IS
    'Was the identity under guard already; if so since when, until when, and what was stored '
    'with it (read it with as_json).';

CREATE TYPE holdfast.claim_answer AS (
    status text,
    replayed boolean,
    key text,
    state text,
    on_abandon text,
    fence bigint,
    lease_ms bigint,
    begun_at timestamptz,
    lease_expires_at timestamptz,
    settled_at timestamptz,
    expires_at timestamptz,
    response bytea,
    retention_ms bigint
);
COMMENT ON TYPE holdfast.claim_answer IS
    'A claim: state is started, completed, failed, retryable, or unknown (started, and the lease '
    'has run out: unknown since lease_expires_at). response: of complete, or the error of fail; read it with as_json.';

CREATE TYPE holdfast.lease_answer AS (
    status text,
    replayed boolean,
    name text,
    holder text,
    fence bigint,
    ttl_ms bigint,
    granted_at timestamptz,
    expires_at timestamptz,
    released_at timestamptz
);
COMMENT ON TYPE holdfast.lease_answer IS 'A lease.';

CREATE TYPE holdfast.register_answer AS (
    status text,
    replayed boolean,
    name text,
    type text,
    value bytea,
    version bigint,
    fence numeric,
    changed_at timestamptz,
    require_fence boolean
);
COMMENT ON TYPE holdfast.register_answer IS
    'A register; read a plain value with as_json. The value of a merged type is in the stored '
    'form of doc/FORMAT.md.';

CREATE TYPE holdfast.token_answer AS (
    status text,
    action text,
    answered text,
    digest bytea,
    recorded_at timestamptz,
    expires_at timestamptz,
    entry bigint,
    hold text,
    state text,
    fence bigint,
    response bytea
);
COMMENT ON TYPE holdfast.token_answer IS
    'What a key is bound to: the action, what its first call was answered with, and the hold or '
    'the claim.';
