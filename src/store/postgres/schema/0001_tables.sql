-- Holdfast on PostgreSQL, migration 1: the tables.
--
-- Every row of these tables is written in the same transaction as the journal entry that explains
-- it. Names are compared byte for byte (COLLATE "C"). Times are engine time: the database's clock
-- in whole milliseconds, which never runs back. Keys are bytes, stored as text: a backslash is \\,
-- and a byte that is not part of valid UTF-8 is \xHH.

CREATE TABLE holdfast.store (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    store_id bytea NOT NULL CHECK (length(store_id) = 16),
    id_key bytea NOT NULL CHECK (length(id_key) = 32),
    idempotency_window_ms bigint NOT NULL CHECK (idempotency_window_ms BETWEEN 1 AND 315360000000),
    token_max_length integer NOT NULL CHECK (token_max_length BETWEEN 1 AND 1024),
    registry_strict boolean NOT NULL,
    digest_name text NOT NULL,
    program text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE holdfast.store IS
    'One row: the settings of the whole store, and the configuration in force.';
COMMENT ON COLUMN holdfast.store.store_id IS 'Identifies this store.';
COMMENT ON COLUMN holdfast.store.id_key IS
    'Secret: makes the ids of holds, so that they cannot be guessed.';
COMMENT ON COLUMN holdfast.store.idempotency_window_ms IS
    'How long a newly used key is remembered.';
COMMENT ON COLUMN holdfast.store.token_max_length IS 'The maximum length of a key, in bytes.';
COMMENT ON COLUMN holdfast.store.registry_strict IS
    'True: a hold on a resource that was never set is refused.';
COMMENT ON COLUMN holdfast.store.digest_name IS 'The method that makes the digests of requests.';
COMMENT ON COLUMN holdfast.store.program IS 'The version that set this configuration.';

-- A drawn number stands for itself and the next 31: a server's batch uses all, a function only the
-- first.
CREATE SEQUENCE holdfast.journal_number INCREMENT BY 32;
CREATE SEQUENCE holdfast.hold_ordinal;
CREATE SEQUENCE holdfast.fence;
-- A drawn number stands for as many as one apply function may add to the outbox.
CREATE SEQUENCE holdfast.outbox_number INCREMENT BY 64;
CREATE SEQUENCE holdfast.writer_id;
-- What the functions for applications met: servers add it to their figures. Sequences, because a
-- replay then writes no row and waits for no other replay.
CREATE SEQUENCE holdfast.met_duplicate;
CREATE SEQUENCE holdfast.met_race;
CREATE SEQUENCE holdfast.met_collision;

CREATE TABLE holdfast.writer (
    id integer PRIMARY KEY,
    name text NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    batch bigint NOT NULL DEFAULT 0,
    chain bytea NOT NULL CHECK (length(chain) = 32),
    started_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE holdfast.writer IS
    'One row for each connection through which a server has written batches.';
COMMENT ON COLUMN holdfast.writer.name IS 'The server: host and process.';
COMMENT ON COLUMN holdfast.writer.generation IS
    'Rises when the server reconnects: a transaction of an older connection that is still in '
    'progress fails.';
COMMENT ON COLUMN holdfast.writer.batch IS
    'Number of the last committed batch: tells whether a commit without an answer happened.';
COMMENT ON COLUMN holdfast.writer.chain IS
    'SHA-256 over the writer''s previous chain and the entries of its last batch: changing or '
    'removing an entry later breaks it.';

CREATE TABLE holdfast.journal (
    number bigint PRIMARY KEY,
    at timestamptz NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    action text NOT NULL,
    status text NOT NULL,
    key text COLLATE "C",
    writer integer NOT NULL,
    batch bigint NOT NULL,
    entry bytea NOT NULL
);
COMMENT ON TABLE holdfast.journal IS
    'Every change, in order; rows are only added. The audit needs only this table.';
COMMENT ON COLUMN holdfast.journal.number IS
    'The order of entries that change the same row. Numbers of rolled-back transactions are '
    'missing.';
COMMENT ON COLUMN holdfast.journal.at IS 'Engine time of the decision.';
COMMENT ON COLUMN holdfast.journal.action IS
    'The request, such as place_hold; sweep and configure are actions of the store itself.';
COMMENT ON COLUMN holdfast.journal.status IS 'The answer: ok, or the code of the refusal.';
COMMENT ON COLUMN holdfast.journal.key IS
    'The idempotency key, client/number, or the key of the claim; NULL if there is none.';
COMMENT ON COLUMN holdfast.journal.writer IS
    'The writer (holdfast.writer); 0: a function, in the transaction of an application.';
COMMENT ON COLUMN holdfast.journal.batch IS 'The batch of that writer.';
COMMENT ON COLUMN holdfast.journal.entry IS
    'The whole entry, in the format of doc/FORMAT.md: request, answer, and the new state of every '
    'changed row.';

-- pglz makes even a key of 1,024 bytes of invalid UTF-8 small enough for the primary key; lz4 does
-- not.
CREATE TABLE holdfast.token (
    tenant text COLLATE "C" NOT NULL,
    key text COMPRESSION pglz COLLATE "C" NOT NULL,
    action text NOT NULL,
    status text NOT NULL,
    digest bytea NOT NULL,
    recorded_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    entry bigint NOT NULL,
    hold bigint,
    previous bigint,
    state text,
    on_abandon text,
    fence bigint,
    lease_ms bigint,
    lease_expires_at timestamptz,
    settled_at timestamptz,
    response bytea,
    retention_ms bigint,
    told_at timestamptz,
    PRIMARY KEY (key, tenant)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX token_expires_at ON holdfast.token (expires_at);
-- Lists of claims, newest begin first; claims by the end of their lease. See resource_newest.
CREATE INDEX token_claims ON holdfast.token ((tenant || chr(31)), state, fence)
    WHERE state IS NOT NULL;
CREATE INDEX token_started ON holdfast.token (lease_expires_at) WHERE state = 'started';
COMMENT ON TABLE holdfast.token IS
    'Every key in use: the call that it is bound to, or the claim. One key has one row, so an '
    'effect happens once.';
COMMENT ON COLUMN holdfast.token.tenant IS 'The tenant; empty: the default tenant.';
COMMENT ON COLUMN holdfast.token.action IS 'The call that the key is bound to; begin: a claim.';
COMMENT ON COLUMN holdfast.token.status IS 'The status of the first answer.';
COMMENT ON COLUMN holdfast.token.digest IS
    'SHA-256 of the request in its canonical form; for a claim, its fingerprint.';
COMMENT ON COLUMN holdfast.token.recorded_at IS
    'When the key was bound; for a claim, when it was last begun.';
COMMENT ON COLUMN holdfast.token.expires_at IS
    'From then on the key is free again; infinity: a claim that is not settled.';
COMMENT ON COLUMN holdfast.token.entry IS 'The journal entry with the answer.';
COMMENT ON COLUMN holdfast.token.hold IS
    'The hold (holdfast.hold.ordinal) that the call placed, ended or made.';
COMMENT ON COLUMN holdfast.token.previous IS
    'place_hold: the previous hold on the same resource, as in the first answer; NULL: none.';
COMMENT ON COLUMN holdfast.token.state IS
    'Only for claims, like all columns below: started, completed, failed or retryable.';
COMMENT ON COLUMN holdfast.token.on_abandon IS
    'What applies when the lease runs out before the claim is settled: unknown, or retry.';
COMMENT ON COLUMN holdfast.token.fence IS
    'Rises with each begin of the key: only the holder of the newest fence may settle the claim.';
COMMENT ON COLUMN holdfast.token.response IS 'The response of complete, or the error of fail.';
COMMENT ON COLUMN holdfast.token.retention_ms IS
    'How long the claim is remembered once it is settled; NULL: the idempotency window.';
COMMENT ON COLUMN holdfast.token.told_at IS
    'The end of the lease which a server has logged as the moment when the claim became unknown.';

CREATE TABLE holdfast.resource (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    capacity integer NOT NULL,
    held integer NOT NULL CHECK (held >= 0),
    confirmed integer NOT NULL CHECK (confirmed >= 0),
    open boolean NOT NULL,
    require_fence boolean NOT NULL DEFAULT false,
    fence numeric(20) NOT NULL,
    newest bigint NOT NULL,
    due_at timestamptz NOT NULL DEFAULT 'infinity',
    created_at timestamptz NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (name, tenant),
    CONSTRAINT resource_not_oversold CHECK (held + confirmed <= capacity)
) WITH (fillfactor = 70);
-- Indexes for lists are on an expression, so that only lists use them: a plan that was made while a
-- table was empty must not look up a row with them.
CREATE INDEX resource_newest ON holdfast.resource ((tenant || chr(31)), number);
COMMENT ON TABLE holdfast.resource IS
    'Resources that can be held. Every change of a hold locks the row of its resource first.';
COMMENT ON COLUMN holdfast.resource.capacity IS 'How many units there are.';
COMMENT ON COLUMN holdfast.resource.held IS
    'Units in held holds, including overdue ones that are not yet expired.';
COMMENT ON COLUMN holdfast.resource.confirmed IS
    'Units in holds that are confirmed and not reversed.';
COMMENT ON COLUMN holdfast.resource.require_fence IS 'Is a hold without a fence refused?';
COMMENT ON COLUMN holdfast.resource.fence IS
    'The highest fence that a hold on it has carried; 0: none.';
COMMENT ON COLUMN holdfast.resource.newest IS
    'Ordinal of the newest hold on it; 0: none. holdfast.hold.previous links to the others.';
COMMENT ON COLUMN holdfast.resource.due_at IS
    'No hold on it becomes overdue before then (the first may do so later); infinity: none is '
    'held.';
COMMENT ON COLUMN holdfast.resource.number IS
    'The journal entry that made it: lists are in this order.';

CREATE TABLE holdfast.hold (
    ordinal bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    resource text COLLATE "C" NOT NULL,
    requester text COLLATE "C" NOT NULL,
    state text NOT NULL CHECK (state IN ('held', 'confirmed', 'released', 'expired')),
    placed_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    previous bigint NOT NULL,
    reverses text COLLATE "C",
    reacquires text COLLATE "C",
    succeeded_by text COLLATE "C"
) WITH (fillfactor = 90);
CREATE INDEX hold_overdue ON holdfast.hold (expires_at) WHERE state = 'held';
-- Another condition than above, so that a query by resource does not use the index above, which has
-- the overdue holds of all resources.
CREATE INDEX hold_held ON holdfast.hold (resource, tenant, expires_at)
    WHERE left(state, 4) = 'held';
COMMENT ON TABLE holdfast.hold IS
    'Every hold ever placed. It ends once: confirmed, released or expired.';
COMMENT ON COLUMN holdfast.hold.ordinal IS 'Rises with each hold; some numbers are missing.';
COMMENT ON COLUMN holdfast.hold.id IS
    'The id that clients use; holdfast.hold_ordinal(id) finds the row.';
COMMENT ON COLUMN holdfast.hold.expires_at IS
    'From then on it may be expired and can no longer be confirmed.';
COMMENT ON COLUMN holdfast.hold.ended_at IS 'When it was confirmed, released or expired.';
COMMENT ON COLUMN holdfast.hold.previous IS
    'Ordinal of the previous hold on the same resource; 0: none.';
COMMENT ON COLUMN holdfast.hold.reverses IS 'This record reverses the confirmed hold with that id.';
COMMENT ON COLUMN holdfast.hold.reacquires IS
    'This hold was confirmed late, in the place of the expired one with that id.';
COMMENT ON COLUMN holdfast.hold.succeeded_by IS
    'The record that reversed this confirmed hold, or reacquired this expired one.';

CREATE TABLE holdfast.guard (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    window_ms bigint NOT NULL,
    match text NOT NULL,
    on_unavailable text NOT NULL,
    durable boolean NOT NULL,
    created_at timestamptz NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE INDEX guard_newest ON holdfast.guard ((tenant || chr(31)), number);
COMMENT ON TABLE holdfast.guard IS
    'Guards: was this identity recorded within the window? The rules of each guard.';
COMMENT ON COLUMN holdfast.guard.match IS
    'The match rule: steps that make an identity comparable, separated by commas; empty: byte for '
    'byte.';
COMMENT ON COLUMN holdfast.guard.on_unavailable IS
    'The answer when the store is unavailable: open (not seen) or closed (seen).';
COMMENT ON COLUMN holdfast.guard.durable IS
    'As requested; on PostgreSQL entries are always durable.';
COMMENT ON COLUMN holdfast.guard.number IS
    'The journal entry that made it: lists are in this order.';

CREATE TABLE holdfast.guard_entry (
    tenant text COLLATE "C" NOT NULL,
    guard text COLLATE "C" NOT NULL,
    identity bytea NOT NULL,
    result bytea,
    recorded_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (tenant, guard, identity)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX guard_entry_expires_at ON holdfast.guard_entry (expires_at);
CREATE INDEX guard_entry_newest ON holdfast.guard_entry ((tenant || chr(31) || guard), number);
COMMENT ON TABLE holdfast.guard_entry IS 'Recorded identities: seen until expires_at.';
COMMENT ON COLUMN holdfast.guard_entry.identity IS
    'As compared, after the match rule; 32 bytes of SHA-256 if the guard stores only the hash.';
COMMENT ON COLUMN holdfast.guard_entry.number IS 'The journal entry that recorded it.';

CREATE TABLE holdfast.lease (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    fence bigint NOT NULL,
    ttl_ms bigint NOT NULL,
    granted_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    released_at timestamptz,
    deleted_at timestamptz,
    PRIMARY KEY (tenant, name)
);
COMMENT ON TABLE holdfast.lease IS 'The holder of each name, until when, and with which fence.';
COMMENT ON COLUMN holdfast.lease.deleted_at IS
    'When the lease was deleted: the row stays for some minutes, so that batches in progress find '
    'it.';
CREATE INDEX lease_left ON holdfast.lease (deleted_at) WHERE deleted_at IS NOT NULL;
COMMENT ON INDEX holdfast.lease_left IS 'Rows left by deleted leases.';

CREATE TABLE holdfast.register (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    type text NOT NULL,
    value bytea NOT NULL,
    version bigint NOT NULL,
    fence numeric(20) NOT NULL,
    changed_at timestamptz NOT NULL,
    require_fence boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, name)
);
COMMENT ON TABLE holdfast.register IS 'Named values, written with a fence or a version, or merged.';
CREATE INDEX register_left ON holdfast.register (fence, changed_at) WHERE type = 'deleted';
COMMENT ON INDEX holdfast.register_left IS
    'Rows left by deleted registers: those without a fence are removed when their window has '
    'closed.';
COMMENT ON COLUMN holdfast.register.type IS
    'plain, or the kind of merge; deleted: only the version and the fence are left.';
COMMENT ON COLUMN holdfast.register.value IS
    'The bytes of a plain register; otherwise the stored form of doc/FORMAT.md.';
COMMENT ON COLUMN holdfast.register.fence IS 'The highest fence that a write has carried; 0: none.';
COMMENT ON COLUMN holdfast.register.require_fence IS
    'Is a write without a fence refused? Merges need none.';

CREATE TABLE holdfast.client (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    highest numeric(20) NOT NULL,
    used bytea NOT NULL,
    PRIMARY KEY (tenant, name)
);
COMMENT ON TABLE holdfast.client IS
    'Numbered clients: they send a name and a number in place of a key.';
COMMENT ON COLUMN holdfast.client.used IS 'Which of the last numbers are used, one bit each.';

CREATE TABLE holdfast.client_call (
    tenant text COLLATE "C" NOT NULL,
    client text COLLATE "C" NOT NULL,
    slot integer NOT NULL,
    sequence numeric(20) NOT NULL,
    action text NOT NULL,
    status text NOT NULL,
    digest bytea NOT NULL,
    recorded_at timestamptz NOT NULL,
    entry bigint NOT NULL,
    PRIMARY KEY (tenant, client, slot)
);
COMMENT ON TABLE holdfast.client_call IS 'The stored answers of a client''s last numbered calls.';
COMMENT ON COLUMN holdfast.client_call.slot IS
    'The number modulo 256: a later number replaces one that is too old.';

CREATE TABLE holdfast.app_value (
    tenant text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (tenant, key)
);
COMMENT ON TABLE holdfast.app_value IS
    'The application''s own values, written by its apply functions, once for each key.';

CREATE TABLE holdfast.outbox (
    number bigint PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    topic text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    state text NOT NULL,
    created_at timestamptz NOT NULL
);
COMMENT ON TABLE holdfast.outbox IS 'Messages to deliver, committed together with their effect.';

-- Raised by a batch whose rows have changed since it read them: it is rolled back, and the server
-- runs it again.
CREATE FUNCTION holdfast._conflict() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION
        'holdfast: another transaction has changed the same rows; the server retries this batch'
        USING ERRCODE = 'serialization_failure';
END $$;
COMMENT ON FUNCTION holdfast._conflict IS
    'For servers: fail a batch whose rows have changed since they were read.';
