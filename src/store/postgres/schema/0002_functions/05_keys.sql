-- ---- Time, rules, names -------------------------------------------------------------------------

CREATE FUNCTION holdfast.engine_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$
    SELECT greatest(pg_catalog.date_trunc('milliseconds', pg_catalog.clock_timestamp()),
        (SELECT pg_catalog.max(n.at) FROM (SELECT j.at FROM holdfast.journal j ORDER BY j.number DESC LIMIT 16) n
        WHERE n.at < timestamptz '10000-01-01 00:00:00+00'))
$$;
COMMENT ON FUNCTION holdfast.engine_now IS
    'Engine time: the database''s clock in whole milliseconds, and never before what has been '
    'decided last.';

CREATE FUNCTION holdfast._rules() RETURNS holdfast.store LANGUAGE plpgsql AS $$
DECLARE
    rules holdfast.store;
BEGIN
    -- A change of the configuration takes the table's EXCLUSIVE lock first, so it waits for every
    -- transaction that has read the configuration here.
    LOCK TABLE holdfast.store IN ROW SHARE MODE;
    -- In REPEATABLE READ the row may be older than that lock. Then FOR SHARE fails, instead of
    -- deciding by an old configuration. A read-only transaction decides nothing.
    IF current_setting('transaction_isolation') = 'read committed' OR current_setting('transaction_read_only')::boolean THEN
        SELECT s.* INTO rules FROM holdfast.store s;
    ELSE
        SELECT s.* INTO rules FROM holdfast.store s FOR SHARE;
    END IF;
    IF NOT FOUND OR rules.program = 'none' THEN
        RAISE EXCEPTION 'the Holdfast store in this database has not been set up: start a server on it once'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN rules;
END $$;
COMMENT ON FUNCTION holdfast._rules IS
    'The configuration in force, which stays in force until the transaction ends.';

CREATE FUNCTION holdfast._need(call text, given boolean) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF NOT given THEN
        RAISE EXCEPTION 'holdfast.%: an argument is NULL that must have a value', call
            USING ERRCODE = 'null_value_not_allowed';
    END IF;
END $$;
COMMENT ON FUNCTION holdfast._need IS 'Refuse a call without an argument that it needs.';

CREATE FUNCTION holdfast._replicate() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- A transaction that writes nothing ends without waiting for the synchronous standbys, and what
    -- it was shown may not be there: rows whose own wait was given up can be seen by all. With this
    -- it has something to wait for.
    IF current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery() THEN
        PERFORM pg_logical_emit_message(true, 'holdfast', '');
    END IF;
END $$;
COMMENT ON FUNCTION holdfast._replicate IS
    'The COMMIT of this transaction waits until the synchronous standbys have all that the call '
    'is shown.';

CREATE FUNCTION holdfast._fence(call text, fence numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF fence < 0 OR fence > 18446744073709551615 OR fence <> trunc(fence) THEN
        RAISE EXCEPTION 'holdfast.%: % is not a fence: a whole number from 0 (none) to 18446744073709551615',
            call, fence USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN coalesce(fence, 0);
END $$;
COMMENT ON FUNCTION holdfast._fence IS 'A fence that can be one; NULL is none.';

CREATE FUNCTION holdfast._name_valid(name text) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT pg_catalog.octet_length(name) BETWEEN 1 AND 1024 $$;
COMMENT ON FUNCTION holdfast._name_valid IS
    'May a resource, requester, guard, lease, holder or register have this name?';

CREATE FUNCTION holdfast._duration_valid(ms bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT ms BETWEEN 1 AND 315360000000 $$;
COMMENT ON FUNCTION holdfast._duration_valid IS 'From one millisecond to ten years.';

-- ---- Keys ---------------------------------------------------------------------------------------

CREATE FUNCTION holdfast._field(name text, type integer, value bytea) RETURNS bytea LANGUAGE sql STABLE AS
$$
    SELECT holdfast._str(holdfast._bytes(name)) || holdfast._u8(type) ||
        holdfast._le4(pg_catalog.length(value)) || value
$$;
COMMENT ON FUNCTION holdfast._field IS
    'A field of the canonical form that is digested (src/core/digest.h). type: 1 bytes, 2 a '
    'number.';

CREATE FUNCTION holdfast._key_look(tenant text, key text, OUT first holdfast.token, OUT alive boolean,
    OUT locked boolean) LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        locked := false;
        SELECT t.* INTO first FROM holdfast.token t
        WHERE t.tenant = _key_look.tenant AND t.key = _key_look.key;
        alive := FOUND AND first.expires_at > holdfast.engine_now();
        EXIT WHEN alive OR first.key IS NULL;
        SELECT t.* INTO first FROM holdfast.token t
        WHERE t.tenant = _key_look.tenant AND t.key = _key_look.key FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        alive := first.expires_at > holdfast.engine_now();
        locked := NOT alive;
        EXIT;
    END LOOP;
END $$;
COMMENT ON FUNCTION holdfast._key_look IS
    'What has the key? alive: the call or claim in `first`. locked: its window has closed, and '
    'this call holds the lock on the row. Neither: there is no row.';

CREATE FUNCTION holdfast._key_insert(tenant text, key text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    -- Waits while another transaction inserts the key. If that one rolls back, this insert succeeds.
    INSERT INTO holdfast.token (tenant, key, action, status, digest, recorded_at, expires_at, entry)
    VALUES (_key_insert.tenant, _key_insert.key, '', '', '', '-infinity', '-infinity', 0)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION holdfast._key_insert IS
    'Take the key: true if this call inserted its row, false if another call was faster.';

CREATE TYPE holdfast._admitted AS (
    status text,
    replayed boolean,
    image bytea,
    won boolean,
    window_ms bigint,
    known_only boolean
);
COMMENT ON TYPE holdfast._admitted IS
    'status NULL: the key is new, and the call is to be decided once it is won. Else the answer.';

CREATE FUNCTION holdfast._admit(tenant text, key text, action text, digest bytea)
    RETURNS holdfast._admitted LANGUAGE plpgsql AS $$
DECLARE
    rules constant holdfast.store := holdfast._rules();
    owner record;
    a holdfast._admitted;
BEGIN
    a.replayed := false;
    a.won := false;
    a.window_ms := rules.idempotency_window_ms;
    a.known_only := rules.registry_strict;
    IF octet_length(tenant) > 64 OR octet_length(key) NOT BETWEEN 1 AND rules.token_max_length THEN
        a.status := 'invalid-request';
        RETURN a;
    END IF;
    owner := holdfast._key_look(tenant, holdfast._key_column(key));
    a.won := owner.locked;
    IF NOT owner.alive THEN
        RETURN a;
    END IF;
    IF (owner.first).action <> action OR (owner.first).digest <> digest THEN
        a.status := 'token-collision';
        RETURN a;
    END IF;
    a.status := (owner.first).status;
    a.replayed := true;
    SELECT holdfast._answer_image(j.entry) INTO STRICT a.image FROM holdfast.journal j
    WHERE j.number = (owner.first).entry;
    RETURN a;
END $$;
COMMENT ON FUNCTION holdfast._admit IS
    'Is this the first call with the key? As hf_token_admit of src/core/token.h.';

CREATE FUNCTION holdfast._win(admitted holdfast._admitted, tenant text, key text, action text, digest bytea)
    RETURNS holdfast._admitted LANGUAGE plpgsql AS $$
DECLARE
    a holdfast._admitted := admitted;
BEGIN
    WHILE a.status IS NULL AND NOT a.won LOOP
        a.won := holdfast._key_insert(tenant, holdfast._key_column(key));
        IF NOT a.won THEN
            a := holdfast._admit(tenant, key, action, digest);
        END IF;
    END LOOP;
    RETURN a;
END $$;
COMMENT ON FUNCTION holdfast._win IS
    'Take the key, after all existing rows are locked. A status means that another call was '
    'faster, and is the answer.';

-- The first use of a name. A call inserts the row of the name after it has taken its key. By then a
-- server may have inserted that row and wait for the key: a deadlock. So the call waits only a
-- moment for the row. Then it gives the key back (a subtransaction) and begins again by locking the
-- row, which exists now.

CREATE FUNCTION holdfast._lost() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'holdfast: the row was made meanwhile' USING ERRCODE = 'HF001';
END $$;
COMMENT ON FUNCTION holdfast._lost IS 'Leave the subtransaction: another transaction has inserted the row.';

CREATE FUNCTION holdfast._hurry() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before constant text := current_setting('lock_timeout');
BEGIN
    PERFORM set_config('lock_timeout', '50ms', true);
    RETURN before;
END $$;
COMMENT ON FUNCTION holdfast._hurry IS
    'Wait only a moment for locks until the subtransaction ends. Returns the setting that was '
    'before.';

CREATE FUNCTION holdfast._patience(since timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    most constant interval := current_setting('lock_timeout')::interval;
BEGIN
    IF most > interval '0' AND clock_timestamp() - since > most THEN
        RAISE EXCEPTION 'canceling statement due to lock timeout' USING ERRCODE = 'lock_not_available';
    END IF;
END $$;
COMMENT ON FUNCTION holdfast._patience IS
    'Fail as a lock would, if the caller has set a lock_timeout and it has passed.';

CREATE FUNCTION holdfast._remember(tenant text, key text, action text, status text, digest bytea, at timestamptz,
    window_ms bigint, number bigint, hold bigint, previous bigint, answer integer, rows bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ends constant timestamptz := holdfast._after(at, window_ms);
BEGIN
    UPDATE holdfast.token t
    SET action = _remember.action, status = _remember.status, digest = _remember.digest, recorded_at = at,
        expires_at = ends, entry = number, hold = _remember.hold, previous = _remember.previous, state = NULL, on_abandon = NULL,
        fence = NULL, lease_ms = NULL, lease_expires_at = NULL, settled_at = NULL, response = NULL,
        retention_ms = NULL
    WHERE t.tenant = _remember.tenant AND t.key = holdfast._key_column(_remember.key);
    PERFORM holdfast._journal(number, at, tenant, action, status, key, 1, answer, ends, digest, rows);
END $$;
COMMENT ON FUNCTION holdfast._remember IS
    'Bind the key, whose row this call has locked, to the call and its answer.';
