-- Holdfast on PostgreSQL, migration 2: the functions for an application's own transaction.
--
-- An application calls them between its BEGIN and its COMMIT, so that the check, its own effect and the record are one
-- atomic unit. They decide by the rules of the servers (src/core), share all rows with them and write the same journal:
-- a call made through a server and repeated here is a replay, and the other way round.
--
--   SELECT * FROM holdfast.place_hold('order-8123', 'room-307', 'guest-91', interval '15 minutes');
--
-- Each answers with one row. `status` is ok, or the code of the refusal; a refusal is an answer, remembered where the
-- call has a key, and never an exception. Exceptions are for misuse (an argument that is NULL, a fence that is no whole
-- number) and for what asks for another try of the whole transaction (deadlock, serialization failure). Ask in FROM, as
-- above: `SELECT (f(...)).*` would call once for each column.
--
-- Concurrency. A key is won by inserting its row: whoever comes second waits until the first has committed or rolled
-- back, and then gets its answer or takes its place. What is changed is locked first, in the order of the servers: rows
-- that are there (token, guard, guard_entry, lease, register, resource), then rows that are made, in the same order; so
-- one call in a transaction and the servers' batches do not deadlock. Then the time and the number of the journal's entry
-- are taken. Locks are held until the transaction ends, so keep it short. Made for READ COMMITTED; in REPEATABLE READ and
-- SERIALIZABLE the functions raise serialization failures where another transaction was first.
--
-- What is stored with a claim, an identity or a register is bytes, and text is a JSON string to whoever asks a server. For
-- JSON there is json on the way in, as_json on the way out, and payload for begin:
--
--   SELECT * FROM holdfast.complete('order-8123', 7, holdfast.json('{"charge": "C1"}'));
--   SELECT holdfast.as_json(response) ->> 'charge' FROM holdfast.get_claim('order-8123');
--
-- Durations are cut to whole milliseconds; a month counts as 30 days, a year as 365.25. Keys are text here: keys that are
-- not valid UTF-8 are for the servers alone. So are numbered clients, merges, apply, and what _match cannot do exactly.
--
-- Names that begin with _ are not for callers. What callers use runs with the rights of the schema's owner and sees
-- pg_catalog alone; every other name is written out. A string with a backslash is E'...', which means the same whatever the
-- caller's standard_conforming_strings is.

DO $$
BEGIN
    IF pg_catalog.current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'Holdfast needs a database with encoding UTF8; this one has %',
            pg_catalog.current_setting('server_encoding');
    END IF;
END $$;

-- ---- Answers ----------------------------------------------------------------------------------------------------

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
    reverses text
);
COMMENT ON TYPE holdfast.hold_answer IS 'A hold as it was when the call was first decided; only status and replayed if it was refused.';

CREATE TYPE holdfast.resource_answer AS (
    status text,
    replayed boolean,
    name text,
    capacity integer,
    held integer,
    confirmed integer,
    open boolean,
    fence numeric,
    created_at timestamptz
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
COMMENT ON TYPE holdfast.seen_answer IS 'Was the identity under guard already; if so since when, until when, and what was stored with it (read it with as_json).';

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
    response bytea
);
COMMENT ON TYPE holdfast.claim_answer IS 'A claim: state is started, completed, failed, retryable, or unknown (started, and the lease has run out). response: of complete, or the error of fail; read it with as_json.';

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
    changed_at timestamptz
);
COMMENT ON TYPE holdfast.register_answer IS 'A register; read a plain value with as_json. The value of a merged type is in the stored form of doc/FORMAT.md.';

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
COMMENT ON TYPE holdfast.token_answer IS 'What a key is bound to: the action, what its first call was answered with, and the hold or the claim.';
