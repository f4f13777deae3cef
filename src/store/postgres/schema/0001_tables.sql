-- Holdfast on PostgreSQL, migration 1: the tables.
--
-- Every row of these tables is written in the same transaction as the entry of the journal that explains it. Names are
-- compared byte for byte (COLLATE "C"). Times are what the servers call engine time: the database's clock, in whole
-- milliseconds, which never runs back. Keys are bytes and are shown as text: a backslash is \\, and a byte that is no
-- part of valid UTF-8 is \xHH.

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
COMMENT ON TABLE holdfast.store IS 'One row: what holds for the whole store, and the configuration in force.';
COMMENT ON COLUMN holdfast.store.store_id IS 'Tells this store from every other.';
COMMENT ON COLUMN holdfast.store.id_key IS 'Secret: makes the ids of holds, so that nobody can guess one.';
COMMENT ON COLUMN holdfast.store.idempotency_window_ms IS 'How long a key that is used from now on is remembered.';
COMMENT ON COLUMN holdfast.store.token_max_length IS 'The greatest length of a key, in bytes.';
COMMENT ON COLUMN holdfast.store.registry_strict IS 'True: a hold on a resource that was never set is refused.';
COMMENT ON COLUMN holdfast.store.digest_name IS 'How the digests of requests are made.';
COMMENT ON COLUMN holdfast.store.program IS 'The version that set this configuration.';

-- A number that is drawn stands for itself and the 31 behind it: a batch of a server uses them, a function only the first.
CREATE SEQUENCE holdfast.journal_number INCREMENT BY 32;
CREATE SEQUENCE holdfast.hold_ordinal;
CREATE SEQUENCE holdfast.fence;
-- Here it stands for as many as one function may put into the outbox.
CREATE SEQUENCE holdfast.outbox_number INCREMENT BY 64;
CREATE SEQUENCE holdfast.writer_id;

CREATE TABLE holdfast.writer (
    id integer PRIMARY KEY,
    name text NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    batch bigint NOT NULL DEFAULT 0,
    chain bytea NOT NULL CHECK (length(chain) = 32),
    started_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE holdfast.writer IS 'One row for each connection through which a server has written batches.';
COMMENT ON COLUMN holdfast.writer.name IS 'Which server it was: host and process.';
COMMENT ON COLUMN holdfast.writer.generation IS 'Rises when the server reconnects: what an older connection still has under way is refused.';
COMMENT ON COLUMN holdfast.writer.batch IS 'Number of the last batch that was committed: tells whether a commit without an answer happened.';
COMMENT ON COLUMN holdfast.writer.chain IS 'SHA-256 over the writer''s chain before and the entries of its last batch: an entry that is changed or removed later breaks it.';

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
COMMENT ON TABLE holdfast.journal IS 'Everything that was ever changed, in order: only added to. The audit reads this alone.';
COMMENT ON COLUMN holdfast.journal.number IS 'The order of entries that touch the same row. Numbers of transactions that were rolled back are missing.';
COMMENT ON COLUMN holdfast.journal.at IS 'Engine time of the decision.';
COMMENT ON COLUMN holdfast.journal.action IS 'What was asked, such as place_hold; sweep and configure are the store''s own.';
COMMENT ON COLUMN holdfast.journal.status IS 'What was answered: ok, or the code of the refusal.';
COMMENT ON COLUMN holdfast.journal.key IS 'The idempotency key, client/number, or the key of the claim; NULL for what has none.';
COMMENT ON COLUMN holdfast.journal.writer IS 'Who wrote it (holdfast.writer); 0: one of the functions, in somebody''s own transaction.';
COMMENT ON COLUMN holdfast.journal.batch IS 'In which batch of that writer.';
COMMENT ON COLUMN holdfast.journal.entry IS 'The whole entry, in the bytes of doc/FORMAT.md: request, answer, and the new state of every row that it changed.';

-- pglz makes even a key of 1,024 bytes that are no UTF-8 small enough for the primary key; lz4 does not.
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
    PRIMARY KEY (key, tenant)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX token_expires_at ON holdfast.token (expires_at);
COMMENT ON TABLE holdfast.token IS 'Every key in use: the call that it is bound to, or the claim. One key, one row: that is what makes an effect happen once.';
COMMENT ON COLUMN holdfast.token.tenant IS 'Whose key it is; empty: the default tenant.';
COMMENT ON COLUMN holdfast.token.action IS 'The call that the key is bound to; begin: a claim.';
COMMENT ON COLUMN holdfast.token.status IS 'What the first call was answered with.';
COMMENT ON COLUMN holdfast.token.digest IS 'SHA-256 of the request in its canonical form; of a claim, its fingerprint.';
COMMENT ON COLUMN holdfast.token.recorded_at IS 'When the key was bound; of a claim, when it was begun last.';
COMMENT ON COLUMN holdfast.token.expires_at IS 'From then on the key is free again; infinity: a claim that is not settled.';
COMMENT ON COLUMN holdfast.token.entry IS 'The entry of the journal with the answer.';
COMMENT ON COLUMN holdfast.token.hold IS 'The hold (holdfast.hold.ordinal) that the call placed, ended or made.';
COMMENT ON COLUMN holdfast.token.previous IS 'place_hold: the hold before that one on the same resource, as the first answer had it; NULL: none.';
COMMENT ON COLUMN holdfast.token.state IS 'Claims only, as all columns below: started, completed, failed or retryable.';
COMMENT ON COLUMN holdfast.token.on_abandon IS 'What holds when the lease runs out without a word: unknown, or retry.';
COMMENT ON COLUMN holdfast.token.fence IS 'Rises with each begin of the key: only its owner may settle the claim.';
COMMENT ON COLUMN holdfast.token.response IS 'The response of complete, or the error of fail.';

CREATE TABLE holdfast.resource (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    capacity integer NOT NULL,
    held integer NOT NULL CHECK (held >= 0),
    confirmed integer NOT NULL CHECK (confirmed >= 0),
    open boolean NOT NULL,
    fence numeric(20) NOT NULL,
    newest bigint NOT NULL,
    due_at timestamptz NOT NULL DEFAULT 'infinity',
    created_at timestamptz NOT NULL,
    number bigint NOT NULL,
    PRIMARY KEY (name, tenant),
    CONSTRAINT resource_not_oversold CHECK (held + confirmed <= capacity)
) WITH (fillfactor = 70);
-- Indexes for lists are on an expression, so that they serve these alone: a plan that was made while a table was empty must not
-- look a row up by them.
CREATE INDEX resource_newest ON holdfast.resource ((tenant || chr(31)), number);
COMMENT ON TABLE holdfast.resource IS 'What can be held. Whoever changes a hold locks the row of its resource first.';
COMMENT ON COLUMN holdfast.resource.capacity IS 'How many units there are.';
COMMENT ON COLUMN holdfast.resource.held IS 'Units in holds that are held, overdue ones that nobody has expired yet included.';
COMMENT ON COLUMN holdfast.resource.confirmed IS 'Units in holds that are confirmed and not given back.';
COMMENT ON COLUMN holdfast.resource.fence IS 'The highest fence that a hold on it has carried; 0: none.';
COMMENT ON COLUMN holdfast.resource.newest IS 'Ordinal of the newest hold on it; 0: none. holdfast.hold.previous leads on.';
COMMENT ON COLUMN holdfast.resource.due_at IS 'No hold on it becomes overdue before then (the first may do so later); infinity: none is held.';
COMMENT ON COLUMN holdfast.resource.number IS 'The entry of the journal that made it: the order in which lists show it.';

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
    reversed_by text COLLATE "C"
) WITH (fillfactor = 90);
CREATE INDEX hold_overdue ON holdfast.hold (expires_at) WHERE state = 'held';
-- Said in another way, so that the index above does not serve for this one: it has the overdue holds of all resources.
CREATE INDEX hold_held ON holdfast.hold (resource, tenant, expires_at) WHERE left(state, 4) = 'held';
COMMENT ON TABLE holdfast.hold IS 'Every hold ever placed. It ends once: confirmed, released or expired.';
COMMENT ON COLUMN holdfast.hold.ordinal IS 'Rises with each hold; some numbers are missing.';
COMMENT ON COLUMN holdfast.hold.id IS 'What callers know it by; holdfast.hold_ordinal(id) finds it.';
COMMENT ON COLUMN holdfast.hold.expires_at IS 'From then on it may be expired and can no longer be confirmed.';
COMMENT ON COLUMN holdfast.hold.ended_at IS 'When it was confirmed, released or expired.';
COMMENT ON COLUMN holdfast.hold.previous IS 'Ordinal of the hold before this one on the same resource; 0: none.';
COMMENT ON COLUMN holdfast.hold.reverses IS 'This record gives the confirmed hold with that id back.';
COMMENT ON COLUMN holdfast.hold.reversed_by IS 'The record that gave this hold back.';

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
COMMENT ON TABLE holdfast.guard IS 'Have I seen this lately? The rules of each guard.';
COMMENT ON COLUMN holdfast.guard.match IS 'How an identity is made comparable: steps, with commas between them; empty: byte for byte.';
COMMENT ON COLUMN holdfast.guard.on_unavailable IS 'What is answered when the store cannot be asked: open (not seen) or closed (seen).';
COMMENT ON COLUMN holdfast.guard.durable IS 'As it was asked for; on PostgreSQL entries are durable either way.';
COMMENT ON COLUMN holdfast.guard.number IS 'The entry of the journal that made it: the order in which lists show it.';

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
COMMENT ON TABLE holdfast.guard_entry IS 'Identities under guard: seen until expires_at.';
COMMENT ON COLUMN holdfast.guard_entry.identity IS 'As compared, after the match rule; 32 bytes of SHA-256 where the guard keeps only that.';
COMMENT ON COLUMN holdfast.guard_entry.number IS 'The entry of the journal that recorded it.';

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
COMMENT ON TABLE holdfast.lease IS 'Who has authority over a name, until when, and with which fence.';
COMMENT ON COLUMN holdfast.lease.deleted_at IS 'It was deleted then, and is not there: the row stays for some minutes, so that batches under way meet it.';
CREATE INDEX lease_left ON holdfast.lease (deleted_at) WHERE deleted_at IS NOT NULL;
COMMENT ON INDEX holdfast.lease_left IS 'What deleted leases have left.';

CREATE TABLE holdfast.register (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    type text NOT NULL,
    value bytea NOT NULL,
    version bigint NOT NULL,
    fence numeric(20) NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, name)
);
COMMENT ON TABLE holdfast.register IS 'Named values, written with a fence or a version, or merged.';
CREATE INDEX register_left ON holdfast.register (fence, changed_at) WHERE type = 'deleted';
COMMENT ON INDEX holdfast.register_left IS 'What deleted registers have left: those without a fence are taken out when their window has closed.';
COMMENT ON COLUMN holdfast.register.type IS 'plain, or the algebra that it is merged by; deleted: only its version and its fence are left.';
COMMENT ON COLUMN holdfast.register.value IS 'Of plain ones the bytes; of the others the stored form of doc/FORMAT.md.';
COMMENT ON COLUMN holdfast.register.fence IS 'The highest fence that a write has carried; 0: none.';

CREATE TABLE holdfast.client (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    highest numeric(20) NOT NULL,
    used bytea NOT NULL,
    PRIMARY KEY (tenant, name)
);
COMMENT ON TABLE holdfast.client IS 'Clients that number their calls instead of sending keys.';
COMMENT ON COLUMN holdfast.client.used IS 'Which of the last numbers have been used, a bit each.';

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
COMMENT ON TABLE holdfast.client_call IS 'What a client''s last numbered calls were answered with.';
COMMENT ON COLUMN holdfast.client_call.slot IS 'The number modulo 256: a later number takes the place of one that is out of reach.';

CREATE TABLE holdfast.app_value (
    tenant text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (tenant, key)
);
COMMENT ON TABLE holdfast.app_value IS 'The application''s own values, written by the functions it applies once a key.';

CREATE TABLE holdfast.outbox (
    number bigint PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    topic text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    state text NOT NULL,
    created_at timestamptz NOT NULL
);
COMMENT ON TABLE holdfast.outbox IS 'What is to be delivered, committed together with the effect that it belongs to.';

-- Raised by a batch whose rows are no longer as it has read them: it has changed nothing, and the server runs it again.
CREATE FUNCTION holdfast._conflict() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'holdfast: another transaction was faster at the same rows; the server runs this batch again'
        USING ERRCODE = 'serialization_failure';
END $$;
COMMENT ON FUNCTION holdfast._conflict IS 'For the servers: end a batch whose rows have changed since they were read.';
